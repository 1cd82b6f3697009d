"""Tables of tests that are text: beside a test module stands a file of its name, where each line under [TABLE] is `name | expression`."""

import re
from pathlib import Path


def rows(names, title):
    """The names and values of one table of the module whose globals are given; the lines above the first table are run in them first."""
    path = Path(names["__file__"]).with_suffix(".txt")
    front, *parts = re.split(r"^\[(\w+)\]\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    exec(compile(front, path, "exec"), names)
    lines = dict(zip(parts[::2], parts[1::2]))[title].splitlines()
    found = [line.partition(" | ") for line in lines if line]
    return [(name, eval(compile(text, path, "eval"), names)) for name, _, text in found]


def table(names, title):
    """The same as a dictionary."""
    return dict(rows(names, title))
