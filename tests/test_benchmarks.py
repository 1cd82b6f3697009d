"""The benchmark runs and has the rows and bars of the README's table; its figures are never tested."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python(*arguments):
    ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def rows(text):
    """The cells of the table in a text: work, beside, figure, bar, and two times."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")][2:]


def test_the_table_has_the_rows_and_bars_of_the_readme():
    shown = rows((ROOT / "README.md").read_text().split("\n## Speed\n")[1])
    measured = rows(python("-m", "tests.benchmarks", "--quick"))
    assert [(row[0], row[1], row[3]) for row in measured] == [(row[0], row[1], row[3]) for row in shown]
    assert measured and all(row[2] for row in measured)


def test_what_is_not_installed_is_named_with_the_remedy():
    without = "import sys; sys.modules['torch'] = sys.modules['autograd'] = None; from tests.benchmarks.__main__ import main; main(['--quick'])"
    text = python("-c", without)
    assert {row[1] for row in rows(text) if row[2] == "not installed"} == {"torch eager", "HIPS autograd"}
    assert {row[1] for row in rows(text) if row[2] != "not installed"} >= {"NumPy by hand", "import numpy"}
    assert text.endswith("Not measured: HIPS autograd and torch eager. To install what is missing: pip install -e '.[parity]'\n")
