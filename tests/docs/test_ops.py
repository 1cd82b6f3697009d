"""The catalogue of ops: what `symgrad ops` prints, writes and refuses."""

import math
import re

import pytest
import sympy

from symgrad.cli import main
from symgrad.graph.op import REGISTRY
from symgrad.scanning.catalogue import OpEntry, catalogue, is_listed, kink_table, page, scanned_calls, table
from tests.accuracy.test_scanning_ops import SHARE_OF_ALL
from tests.support.pages import ROOT


@pytest.mark.sweep
def test_every_public_op_has_an_entry():
    entries = catalogue()
    assert [e.name for e in entries] == sorted(op.name for op in REGISTRY.values() if is_listed(op))
    assert {"gelu", "tanh", "bessel_j0"} <= {e.name for e in entries}
    assert all(e.formula is not None or e.summary for e in entries)


def test_derivatives_are_those_of_the_formula():
    x, y = sympy.symbols("x y", real=True)
    seen = 0
    for entry in catalogue(["exp", "tanh", "atan2", "hypot", "log1p", "softplus", "erf"]):
        for symbol, derivative in zip((x, y), entry.derivatives):
            difference = (sympy.diff(entry.formula, symbol) - derivative).subs({x: sympy.Rational(3, 7), y: sympy.Rational(5, 11)})
            assert abs(difference.evalf(30)) < 1e-25, entry.name
            seen += 1
    assert seen == 9


def test_a_scan_counts_its_numbers():
    (entry,) = catalogue(["exp"], 2)
    assert len(entry.ulp) == 4 and all(0 <= u <= 8 for u in entry.ulp) and entry.points > 10
    assert 0 < entry.within == entry.compared


@pytest.mark.sweep
def test_the_command_prints_writes_and_refuses(capsys, tmp_path):
    assert main(["ops", "tanh", "absolute"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 4 and "| `abs` `absolute` |" in out and r"\tanh" in out
    file = tmp_path / "ops.md"
    assert main(["ops", "exp", "--write", str(file)]) == 0 and "1 public ops" in file.read_text()
    assert "1 ops" in capsys.readouterr().out
    assert main(["ops", "expp"]) == 2 and "expp: there is no such op" in capsys.readouterr().err
    assert main(["ops", "--write", str(tmp_path / "no" / "ops.md")]) == 2
    assert main(["ops", "--scan", "-1"]) == 2 and "--scan is a number of points, not -1" in capsys.readouterr().err


@pytest.mark.sweep
def test_infinite_errors_and_bars_are_written():
    entry = OpEntry("f", (), "elementwise", "a | b", None, (), "", "", (1.0, math.inf), 3, 5, 6)
    assert "a \\| b" in table([entry]) and "1 / inf" in table([entry])
    assert "5 of 6 values and derivatives (83.333%)" in page([entry])


def test_formulas_of_composites_are_those_of_their_calls():
    gelu, jv = catalogue(["gelu", "jv"])
    x = sympy.Symbol("x", real=True)
    assert sympy.simplify(gelu.formula - x * (1 + sympy.erf(x / sympy.sqrt(2))) / 2) == 0
    assert jv.formula == sympy.besselj(0, x) and "for order = 0" in table([jv])


def test_the_counts_of_the_page_are_those_of_its_rows_and_of_the_declarations():
    text = (ROOT / "examples" / "guide" / "ops.md").read_text(encoding="utf-8")
    listed = [op for op in REGISTRY.values() if is_listed(op)]
    rows = {line.split("`")[1]: line for line in text.partition("## Kinks")[0].splitlines() if line.startswith("| `")}
    scanned = {op.name for op in listed if scanned_calls(op)}
    assert {name for name, row in rows.items() if not row.endswith("|  |")} == scanned
    ops, within, compared = (int(re.search(pattern, text)[1].replace(",", "")) for pattern in (
        r"(\d+) ops, all that map", r"([\d,]+) of [\d,]+ values and", r"[\d,]+ of ([\d,]+) values and"))
    assert ops == len(scanned) and within >= SHARE_OF_ALL * compared and compared > 100 * ops
    assert f"\n{len(listed)} public ops" in text


@pytest.mark.sweep
def test_the_page_has_the_ops_of_the_registry():
    text = (ROOT / "examples" / "guide" / "ops.md").read_text(encoding="utf-8")
    both = f"{table(catalogue())}\n{kink_table()}"
    shown, expected = ([line.split(" | ")[:3] for line in each.splitlines() if line.startswith("| `")] for each in (text, both))
    assert shown == expected
