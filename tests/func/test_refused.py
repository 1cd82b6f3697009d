"""What the transforms refuse: each line of `refused.txt` is a call, the type of its error, and a pattern of what the error says."""

import builtins
import re
from pathlib import Path

import pytest

GIVEN, *SECTIONS = re.split(r"^\[(\w+)\]\n", Path(__file__).with_name("refused.txt").read_text(encoding="utf-8"), flags=re.M)
CALLS = [(name, *re.fullmatch(r"(.+) -> (\w+): (.*)", line).groups())
         for name, lines in zip(SECTIONS[::2], SECTIONS[1::2]) for line in lines.splitlines() if line]


@pytest.fixture(scope="module")
def names():
    found = {}
    exec(GIVEN, found)
    return found


@pytest.mark.sampled(40)
@pytest.mark.parametrize("section, call, error, words", CALLS, ids=lambda text: text[:60])
def test_refused(section, call, error, words, names):
    with pytest.raises(getattr(builtins, error), match=words):
        eval(call, dict(names))
