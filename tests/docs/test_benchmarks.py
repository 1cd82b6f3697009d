"""The benchmark runs and has the rows and bars of the tables in the guide; their figures are never tested."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import page
from tests.benchmarks.__main__ import main
from tests.benchmarks.table import Row

ROOT = Path(__file__).parents[2]


def python(*arguments):
    ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def tables(text):
    """The tables in a text, each as rows of cells: work, beside, figure, bar, and two times."""
    found = []
    for before, line in zip(["", *text.splitlines()], text.splitlines()):
        if line.startswith("|"):
            if not before.startswith("|"):
                found.append([])
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return [table[2:] for table in found]


def rows(text):
    return [row for table in tables(text) for row in table]


def bars(table):
    return [(row[0], row[1], row[3]) for row in table]


@pytest.mark.sweep
def test_the_tables_have_the_rows_and_bars_of_the_page():
    shown = tables(page.PAGE.read_text(encoding="utf-8"))
    measured = tables(python("-m", "tests.benchmarks", "--quick"))
    assert len(measured) == 6 and all(measured)
    for ours, theirs in zip(measured, shown):
        assert bars(ours) == bars(theirs)
    assert all(row[2] for table in measured for row in table)


def test_the_page_is_written_by_the_benchmark():
    text = page.PAGE.read_text(encoding="utf-8")
    (on,), others = (re.findall(f"^{name}: (.*)$", text, re.MULTILINE) for name in ("Machine", "Machine of this section"))
    above = re.findall(r"^Above [^|]*?\.$(?=\n\n)", text, re.MULTILINE)
    assert len(above) == 2
    found = [[Row(*cells) for cells in table] for table in tables(text)]
    assert page.text(found, "\n\n".join(above), on, *others) == text
    for name, table, known, machine in zip(page.SECTIONS, (found[1], found[4]), ("\n\n".join(above), ""), others, strict=True):
        assert page.section(name, table, known, "another") == text.replace(machine, "another")
    assert re.search("SIMD of NumPy up to .*; Python .*, numpy", page.machine()) and "SIMD of NumPy up to" in on


@pytest.mark.parametrize("wanted", [["--page"], ["--section", "training"]])
def test_a_page_of_some_figures_is_refused(wanted):
    with pytest.raises(SystemExit):
        main([*wanted, "--quick"])


@pytest.mark.sweep
def test_what_is_not_installed_is_named_with_the_remedy():
    without = ("import sys; sys.modules.update(dict.fromkeys(('torch', 'autograd', 'jax', 'casadi'))); "
               "from tests.benchmarks.__main__ import main; main(['--quick'])")
    text = python("-c", without)
    assert {row[1] for row in rows(text) if row[2] == "not installed"} >= {"torch eager", "HIPS autograd", "jax.jit"}
    assert {row[1] for row in rows(text) if row[2] != "not installed"} >= {"NumPy by hand", "import numpy"}
    assert text.splitlines()[-1].startswith("Not measured: CasADi; HIPS autograd; jax.jit; torch")
    assert text.endswith(" To install what is missing: pip install -e '.[parity]'\n")
