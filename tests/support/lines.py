"""Tables of tests that stand in texts: `corpus/NAME.txt` has a line for each case, with bars between its fields; lines after # say what they are."""

from pathlib import Path


def lines(name):
    """The fields of each line."""
    text = (Path(__file__).parent / "corpus" / f"{name}.txt").read_text(encoding="utf-8")
    return [line.split(" | ") for line in text.splitlines() if line and not line.startswith("# ")]
