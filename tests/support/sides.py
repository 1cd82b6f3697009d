"""Recorded programs: run with PyTorch they were recorded, run with symgrad they must say the same.

`programs/NAME.txt` has lists of steps, each list under its [name]: lines of Python, `show x` for the text of a value (or the type of what computing
it raises) and `numbers x, y` for elements. Steps above the first name come first in each program of the file. Steps see `torch`, the `words` and some
modules. `programs/NAME.json` has what PyTorch said: `ATEN_CPU_CAPABILITY=default python -m tests.support.sides NAME` records it.
"""

import copy
import json
import math
import pickle
import re
import sys
import threading
import warnings
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.support.words import words

FOLDER = Path(__file__).parent / "programs"
GIVEN = {"copy": copy, "math": math, "pickle": pickle, "threading": threading, "warnings": warnings, "np": np, "OrderedDict": OrderedDict,
         "partial": partial}


class Program(NamedTuple):
    path: Path
    name: str
    steps: str  # as Python, on their lines


class Log:
    """What a program said, as data that JSON can hold, and the line of the step that said it."""

    def __init__(self, program):
        self.program, self.said, self.lines = program, [], []

    def add(self, entry):
        frame = sys._getframe(1)
        while frame and frame.f_code.co_filename != str(self.program.path):
            frame = frame.f_back
        self.said.append(entry)
        self.lines.append(frame.f_lineno if frame else 0)

    def __call__(self, *calls):
        """The text of what each call gave, or the types of what it raised, with the categories of the warnings on the way."""
        for call in calls:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of overflow
                warnings.filterwarnings("ignore", "This process .* is multi-threaded, use of fork", DeprecationWarning)  # a worker of pytest-xdist is
                try:
                    text = repr(call())
                except Exception as error:
                    text = "|".join(kind.__name__ for kind in type(error).__mro__[:-3] if kind.__module__ == "builtins") or type(error).__name__
            self.add("\n".join([text, *(w.category.__name__ for w in caught)]))

    def numbers(self, *tensors):
        """The elements of tensors, to be compared as numbers."""
        for t in tensors:
            self.add(plain(t))


def plain(value):
    """Tensors as lists, in lists and dictionaries of any depth."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(v) for key, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def programs(name):
    """The programs of a file by name."""
    path = FOLDER / f"{name}.txt"
    lines = path.read_text().splitlines()
    steps = [re.sub(r"^( *)numbers (.*)", r"\1log.numbers(\2)", re.sub(r"^( *)show (.*)", r"\1log(lambda: \2)", line)) for line in lines]
    heads = [i for i, line in enumerate(lines) if re.fullmatch(r"\[\w+\]", line)]
    front = steps[:heads[0]]
    return {lines[i][1:-1]: Program(path, lines[i][1:-1], "\n".join([*front, *[""] * (i + 1 - len(front)), *steps[i + 1:end]]))
            for i, end in zip(heads, [*heads[1:], len(lines)])}


def recorded(name):
    """What PyTorch said for each program of a file."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def run(program, torch):
    """The log of a program with a library."""
    log = Log(program)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        exec(compile(program.steps, program.path, "exec"), {"__name__": program.path.stem, "torch": torch, "log": log, **GIVEN, **words(torch, log)})
    finally:
        torch.set_default_dtype(before)
    log.said = json.loads(json.dumps(log.said))
    return log


def same(a, b, rel=0.0, absolute=0.0):
    """Equal, numbers up to a relative and an absolute difference, an error of the recorded type or a special one; NaN is never equal."""
    if isinstance(b, list):
        return isinstance(a, list) and len(a) == len(b) and all(same(x, y, rel, absolute) for x, y in zip(a, b))
    if isinstance(b, dict):
        return isinstance(a, dict) and list(a) == list(b) and all(same(a[key], b[key], rel, absolute) for key in b)
    if isinstance(b, float) and isinstance(a, float):
        return a == b or abs(a - b) <= rel * abs(b) + absolute
    if isinstance(b, str) and isinstance(a, str) and a != b:
        (raised, *told), (expected, *warned) = a.split("\n"), b.split("\n")
        return told == warned and expected.partition("|")[0] in raised.split("|")
    return type(a) is type(b) and a == b


def compare(program, torch, expected, rel=0.0, absolute=0.0):
    """Raise where a program says something else than was recorded."""
    log = run(program, torch)
    wrong = [f"{program.path.name}:{line}: {a}\nwas recorded as {b}" for line, a, b in zip(log.lines, log.said, expected)
             if not same(a, b, rel, absolute)]
    assert not wrong, "\n".join([f"{program.name}: {len(wrong)} of {len(expected)} differ", *wrong])
    assert len(log.said) == len(expected)


if __name__ == "__main__":
    import torch

    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.txt")):
        said = {key: run(program, torch).said for key, program in programs(name).items()}
        lines = [f"{json.dumps(key)}: [\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in value) + "\n]"
                 for key, value in said.items()]
        (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(name, {key: len(value) for key, value in said.items()})
