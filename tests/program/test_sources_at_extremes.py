"""Sources of elementwise functions beside eager ones, at extreme points: the same digits, infinities and NaNs, of values and of gradients."""

import ctypes
import subprocess
import warnings

import numpy as np
import pytest
import sympy

import symgrad
from symgrad import func
from symgrad.program.native import find_compiler

POINTS = np.array([0.0, -0.0, 5e-324, -3e-310, 1e-170, -1e-17, 3.3e-9, -0.37, 1 / 3, 0.71, 1.0, -1.0, 1.9, -2.6, 17.3, -36.9, 41.7, 88.9,
                   -88.2, -103.7, 709.1, -709.9, -740.0, 740.0, 1.7e6, -1e19, 1e160, np.inf, -np.inf, np.nan])
PAIRS = np.array([(a, b) for a in POINTS[::2] for b in POINTS[1::3]] + [(np.nan, 0.7), (-1.3, np.nan)] + [(a, a) for a in POINTS])
"""Of both parameters of functions of two."""


VALUES = ("abs asinh atan2 atanh ceil cosh erf erfc erfcx exp exp2 expm1 floor floor_divide frac hypot log log10 log1p log2 logaddexp "
          "logaddexp2 logsigmoid maximum minimum pow reciprocal relu remainder rsqrt sech sigmoid sign sin sinc sinh sqrt square tan tanh "
          "trunc").split()
WITHOUT_GRADIENT = "atan2 hypot logaddexp logaddexp2 pow remainder floor_divide sinc".split()
"""Whose formulas have no derivative at (0, 0), or none of two equal infinities; and that of sinc loses its digits at large numbers."""
TWO = "atan2 floor_divide hypot logaddexp logaddexp2 maximum minimum pow remainder".split()


def expected_of(name, points):
    """Values and gradients, computed eagerly."""
    function = function_of(name)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        columns = [symgrad.tensor(column) for column in points.T]
        gradients = func.grad(lambda *xs: function(*xs).sum(), tuple(range(len(columns))))(*columns)
        return np.stack([function(*columns).numpy(), *[g.numpy() for g in gradients]], 1)


def agree(found, expected, points, what):
    """Hold numbers to others: NaN where they are NaN, infinite where they are infinite, and else to some units, also of subnormal ones."""
    with np.errstate(all="ignore"):
        close = np.isclose(found, expected, rtol=1e-13, atol=5e-323, equal_nan=True)
    bad = [(tuple(p), f.tolist(), e.tolist()) for p, f, e, ok in zip(points, found, expected, close) if not ok.all()]
    assert not bad, f"{what}: {len(bad)} points, such as {bad[:6]}"


def function_of(name):
    return getattr(symgrad, name, None) or getattr(symgrad.special, name)


def run_c(text, points, results, folder):
    count = points.shape[1]
    given = ", ".join(f"p[{count} * i + {k}]" for k in range(count))
    call = f"f({given}, out + {results} * i, out + {results} * i + 1)" if results > 1 else f"out[i] = f({given})"
    (folder / "f.c").write_text(f"{text}\nvoid run(long n, const double *p, double *out) {{ for (long i = 0; i < n; i++) {call}; }}\n")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", folder / "f.so", folder / "f.c", "-lm"], check=True, capture_output=True)
    out = np.zeros((len(points), results))
    pointer = ctypes.POINTER(ctypes.c_double)
    points = np.ascontiguousarray(points)
    ctypes.CDLL(str(folder / "f.so")).run(ctypes.c_long(len(points)), points.ctypes.data_as(pointer), out.ctypes.data_as(pointer))
    return out


def run_python(text, points):
    space = {}
    exec(text, space)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = space["f"](*points.T)
    value, gradient = found if isinstance(found, tuple) else (found, ())
    return np.stack([np.broadcast_to(np.asarray(x, float), len(points)) for x in (value, *gradient)], 1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in VALUES if name != "sinc"])  # which is NumPy's
def test_python_at_extremes(name):
    points = PAIRS if name in TWO else POINTS[:, None]
    derivatives = int(name not in WITHOUT_GRADIENT)
    expected = expected_of(name, points)[:, :None if derivatives else 1]
    agree(run_python(symgrad.to_python(function_of(name), derivatives=derivatives, name="f"), points), expected, points, name)


@pytest.mark.skipif(not find_compiler(), reason="no C compiler")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["sigmoid", *[name for name in VALUES if name != "sigmoid"]])
def test_c_at_extremes(name, tmp_path):
    points = PAIRS if name in TWO else POINTS[:, None]
    derivatives = int(name not in WITHOUT_GRADIENT)
    expected = expected_of(name, points)[:, :None if derivatives else 1]
    found = run_c(symgrad.to_c(function_of(name), derivatives=derivatives, name="f"), points, expected.shape[1], tmp_path)
    agree(found, expected, points, name)


x, y = sympy.symbols("x y", real=True)
CHOICES = [sympy.Piecewise((x, x < 1)), sympy.Piecewise((x**2, x < 1), (sympy.sin(x), x > 2)), sympy.Piecewise((sympy.Rational(1, 3), x < 1)),
           sympy.exp(x) * sympy.Piecewise((x * y, x < 1)), sympy.Piecewise((x + y / 3, (x < 1) & (y > -1)))]


@pytest.mark.sweep
@pytest.mark.parametrize("at", [1.9, 0.37])
@pytest.mark.parametrize("expr", CHOICES, ids=str)
def test_a_choice_without_a_default_is_nan_elsewhere(expr, at):
    """Its value, and its derivatives by what it depends on, by all routes."""
    f, inside = symgrad.from_sympy(expr), at < 1
    values = [at, 0.7][:len(f.symbols)]
    tensors = [symgrad.tensor(v) for v in values]
    places = tuple(range(len(values)))
    subs = dict(zip(f.symbols, values))
    truth = [expr.subs(subs), *[expr.diff(s).subs(subs) for s in f.symbols], *[expr.diff(s, t).subs(subs) for s in f.symbols for t in f.symbols]]
    truth = np.array([float(v) if inside else np.nan for v in truth])
    eager = [f(*tensors), *func.grad(f, places)(*tensors), *[h for row in func.hessian(f, places)(*tensors) for h in row]]
    space = {}
    exec(symgrad.to_python(expr, derivatives=2, name="f"), space)
    value, gradient, hessian = space["f"](*map(np.float64, values))
    sources = [[value, *gradient, *[h for row in hessian for h in row]]]
    op = symgrad.op_from_sympy("choice", expr, domain={s.name: (-0.5, 0.9) for s in f.symbols}, check=False)
    sources.append([op(*tensors), *func.grad(op, places)(*tensors), *[h for row in func.hessian(op, places)(*tensors) for h in row]])
    compiled = symgrad.compile(f, argnums=places, backend="numpy")
    sources.append([compiled(*tensors), *compiled.gradient(*tensors), *[h for row in compiled.hessian(*tensors) for h in row]])
    for found in (eager, *sources):
        np.testing.assert_allclose([float(v) for v in found], truth, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("write", [symgrad.to_python, symgrad.to_c, symgrad.to_torch, symgrad.to_jax])
@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extremes_of_several_values_are_written_with_all_of_them(write, name):
    source = write(lambda x: getattr(symgrad, name)(x, 0), (4,), name="extreme")
    assert all(f"x[{i}]" in source for i in range(4)), source


def fmod_by(c):
    return lambda x: symgrad.fmod(x, c)


MERGED = {  # compositions that SymPy writes as one formula, in which the functions are no longer seen
    "logaddexp(u, -u)": lambda x: symgrad.logaddexp(x / 3, -x / 3), "log(2 cosh)": lambda x: symgrad.logaddexp(0.7 * x, -0.7 * x) / 3,
    **{f"fmod by {c}": fmod_by(c) for c in (3, 3.7, -1 / 3, 1e-5, 1.0)},
    "fmod of a sum": lambda x: symgrad.fmod(1.7 * x + 1, 0.46) - 1 / 3,
}


@pytest.mark.parametrize("name", MERGED)
def test_compositions_that_are_merged(name):
    f, points = MERGED[name], POINTS[np.isfinite(POINTS)]
    expected = f(symgrad.tensor(points)).numpy()[:, None]
    agree(run_python(symgrad.to_python(f, name="f"), points[:, None]), expected, points[:, None], name)
