"""The benchmark runs and has all its rows; its figures are never tested."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ["120 ops, shape ()", "120 ops, shape (10,)", "120 ops, shape (1000,)", "120 ops, shape (100000,)", "120 ops, shape ()", "import symgrad",
        "memory of a recorded graph, shape ()", "memory of a recorded graph, shape (1000,)"]
BESIDE = ["torch eager"] * 3 + ["NumPy by hand", "HIPS autograd", "import numpy", "the data of its values", "the data of its values"]


def python(*arguments):
    ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def cells(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")][2:]


def test_the_table_has_every_row():
    found = cells(python("-m", "tests.benchmarks", "--quick"))
    assert [row[0] for row in found] == WORK
    assert [row[1] for row in found] == BESIDE
    assert all(row[2] and row[3] for row in found)


def test_what_is_not_installed_is_named_with_the_remedy():
    without = "import sys; sys.modules['torch'] = sys.modules['autograd'] = None; from tests.benchmarks.__main__ import main; main(['--quick'])"
    text = python("-c", without)
    assert [row[2] == "not installed" for row in cells(text)] == [True, True, True, False, True, False, False, False]
    assert text.endswith("Not measured: HIPS autograd and torch eager. To install what is missing: pip install -e '.[parity]'\n")
