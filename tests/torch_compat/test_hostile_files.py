"""Files that are damaged, or made to do harm, are refused by one error, in memory of their size, and do nothing else."""

import io
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import symgrad
from symgrad.utils.serialization import LoadError
from tests.support.tables import rows

from .hostile_files import CHANGES, STRUCTURE, attack, members, packed

ONES = np.ones(2)
NUMBERS = {"memory": 0, "dtype": "float64", "shape": [2]}
BOTH = {"strides": [1], "offset": 0}
FLAGS = {"memory": 0, "dtype": "bool", "shape": [16]}


def holding(*found, array=ONES, document=None):
    """A file with an object and an array, whose sizes and checksums are right."""
    file = io.BytesIO()
    np.save(file, array)
    parts = {"0.npy": file.getvalue(), STRUCTURE: json.dumps({"format": "symgrad", "version": 1, "object": list(found)} | (document or {}))}
    return packed(parts)


def with_header(old, new):
    parts = members(holding({"array": NUMBERS}))
    assert old in parts["0.npy"]
    return packed({**parts, "0.npy": parts["0.npy"].replace(old, new)})


def directory(changes):
    """A file whose directory has other bytes in its first entry."""
    content = bytearray(holding({"array": NUMBERS}))
    for offset, value in changes.items():
        content[content.index(b"PK\1\2") + offset] = value
    return bytes(content)


def overlapping():
    """Two entries of the directory that have one member."""
    content = bytearray(packed({**members(holding()), "1.npy": members(holding())["0.npy"]}))
    entries = [i for i in range(len(content)) if content[i:i + 4] == b"PK\1\2"]
    content[entries[2] + 42:entries[2] + 46] = content[entries[0] + 42:entries[0] + 46]
    return bytes(content)


REFUSED = rows(globals(), "REFUSED")


@pytest.mark.parametrize("words, content", REFUSED)
def test_every_lie_is_refused_for_its_reason(words, content):
    tracemalloc.start()
    try:
        with pytest.raises(LoadError, match=words) as found:
            symgrad.load(io.BytesIO(content))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000 + 20 * len(content)
    finally:
        tracemalloc.stop()
    assert isinstance(found.value, RuntimeError) and isinstance(found.value, ValueError) and isinstance(found.value, EOFError)


def test_numbers_of_either_byte_order_are_read():
    for dtype in (">f8", "<f8", ">i2", ">c8"):
        (found,) = symgrad.load(io.BytesIO(holding({"array": NUMBERS | {"dtype": np.dtype(dtype).name}}, array=np.array([1, 2], dtype))))
        assert found.tolist() == [1, 2] and found.dtype.isnative


@pytest.mark.sweep
def test_hostile_files_are_refused_or_hold_what_was_saved():
    counts = attack(range(150))
    assert sum(counts[f"{change.__name__} refused"] for change in CHANGES) > 100


@pytest.mark.sweep
def test_many_hostile_files_do_nothing_but_raise(tmp_path):
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", "import sys, runpy; sys.path.insert(0, sys.argv.pop(1)); "
                          "runpy.run_module('tests.torch_compat.hostile_files', run_name='__main__')", str(root), "150", "3150"],
                         capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert not run.returncode, run.stderr
    counts = json.loads(run.stdout)
    print(counts)
    assert not list(tmp_path.iterdir()) and all(counts[f"{change.__name__} refused"] > 200 for change in CHANGES)
