"""The examples run, find the answers that are known, and would say so if they did not."""

import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import symgrad

FOLDER = Path(__file__).parents[2] / "examples"
FILES = sorted(FOLDER.glob("*.py"))
# What each example prints, and a change of its formula or its data after which it must fail.
ANSWERS = {
    "anharmonic_oscillator": ("lowest energy at g = 0.1: 0.559146327184", ("np.arange(states) + 0.5", "np.arange(states) + 0.501")),
    "black_scholes": ("price     10.450584", ("volatility * volatility / 2", "volatility * volatility / 2.001")),
    "burgers": ("largest residual", ("a**2 * t", "a**2 * t * 1.001")),
    "challenger": ("15.0429  standard error 7.3786", ("DISTRESS * z", "DISTRESS * z * 1.001")),
    "finite_elements": ("Hessian: tridiagonal, 999 x 999", ("slope @ slope / 2", "slope @ slope / 2.001")),
    "gamma_regression": ("standard error 0.0009275", ("symgrad.lgamma(shape) -", "1.001 * symgrad.lgamma(shape) -")),
    "gaussian_process": ("-log likelihood", ("factor.diagonal().log().sum()", "1.001 * factor.diagonal().log().sum()")),
    "helmholtz": ("largest relative error of the gradient", ("symgrad.sum(x * symgrad.log", "symgrad.sum(1.001 * x * symgrad.log")),
    "kalman": ("variance of the level     1469", ("transition @ spread @ transition.T + step", "transition @ spread @ transition.T + 1.001 * step")),
    "lennard_jones": ("lowest energy -16.505384", ("4.0 * symgrad.sum(", "4.000001 * symgrad.sum(")),
    "spectral_energy": ("energy 5.1050880620834", ("symgrad.sum(WAVES**2", "1.001 * symgrad.sum(WAVES**2")),
    "van_der_waals": ("p = 1, p' = 0, p'' = 0, p''' = -9", ("8.0 * T", "8.001 * T")),
}
WITHOUT_FORMULA = {"anharmonic_oscillator": "of a matrix of expressions there is no formula in general"}


def inputs(path):
    """The functions of an example that `symgrad check` would take: every parameter has a default."""
    names = runpy.run_path(str(path))
    own = [f for f in names.values() if inspect.isfunction(f) and f.__module__ == "<run_path>"]
    return [f for f in own if (p := inspect.signature(f).parameters) and all(q.default is not q.empty for q in p.values())]


def test_every_example_is_tested_and_listed():
    assert {path.stem for path in FILES} == set(ANSWERS)
    listed = re.findall(r"^\| `(\w+)\.py` \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(ANSWERS)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_finds_the_known_answer(path, tmp_path):
    run = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    assert ANSWERS[path.stem][0] in run.stdout


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_notices_a_wrong_formula(path):
    right, wrong = ANSWERS[path.stem][1]
    source = path.read_text(encoding="utf-8")
    assert source.count(right) == 1
    with pytest.raises(AssertionError):
        exec(compile(source.replace(right, wrong), str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_has_one_function_with_its_inputs_as_defaults(path):
    (function,) = inputs(path)
    values = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    leaves = {name: symgrad.tensor(value, requires_grad=True, symbol=name) for name, value in values.items()}
    y = function(**leaves)
    assert y.shape == ()
    if path.stem in WITHOUT_FORMULA:
        with pytest.raises(TypeError, match=WITHOUT_FORMULA[path.stem]):
            assert y.expr
        return
    assert y.expr is not None
    free = {s.name for s in y.expr.free_symbols}
    assert free == {"_".join([name, *map(str, i)]) for name, x in leaves.items() for i in _indices(x)}


def _indices(x):
    return [()] if not x.ndim else [(i,) for i in range(len(x))]


def test_the_flights_before_challenger():
    lines = (FOLDER / "data" / "challenger.csv").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if not line.startswith("#")][1:]
    assert len(rows) == 23 and sum(row.endswith(",1") for row in rows) == 7
    assert "Dalal" in "".join(line for line in lines if line.startswith("#"))
