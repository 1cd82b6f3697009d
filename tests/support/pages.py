"""The pages of the documentation, their code blocks, and what these print.

A comment before a block marks it: `check` and `test` are the commands that `.ci/run` takes from the README; `torch` needs torch.
"""

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = sorted((ROOT / "examples" / "guide").glob("*.md"))
PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "README.md", ROOT / "symgrad" / "README.md", *GUIDE)}
BLOCK = re.compile(r"^(?:<!-- (?P<mark>\w+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text, language=None, mark=None):
    """The code blocks of a page in a language, with a mark or without any."""
    return [found for found in BLOCK.finditer(text) if language in (None, found["language"]) and found["mark"] == mark]


def failures(text, name="README.md"):
    """The failed examples among the Python blocks of a page, which share one namespace from top to bottom."""
    source = "\n".join(block["text"] for block in blocks(text, "python"))
    test = doctest.DocTestParser().get_doctest(source, {}, name, name, 0)
    report = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    return "".join(report)


def session(text):
    """The commands of a shell session and what each printed."""
    steps = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [tuple(step.split("\n", 1)) for step in steps]


def sessions(mark=None):
    """The name of a page, a command and what it printed, for all shell sessions with a mark or without any."""
    return [(name, *step) for name, text in PAGES.items() for block in blocks(text, "console", mark) for step in session(block["text"])]
