"""Ops from formulas at floats of every size and next to removable singularities of two arguments, against many digits: value, first, second order."""

import functools
import itertools
import math
import warnings

import ml_dtypes
import mpmath
import numpy as np
import pytest
import sympy
from sympy import atan, cos, cosh, exp, log, sin, sinh, sqrt, tanh  # noqa: F401  the formulas name them

from symgrad.graph.domains import POSITIVE, REAL
from symgrad.symbolic.formula import OpFormula
from tests.support.lines import lines

x, y = sympy.symbols("x y", real=True)
p, q = sympy.symbols("p q", positive=True)
# Units in the last place of the true value, by the size of a change that one unit in the last place of an argument makes.
BOUND, OF_TWO = 8, 16
DIGITS, MOVED = 1700, "1e-200"

SIZES = (1e-300, 1e-166, 1e-150, 1e-110, 1e-103, 1e-54, 1e-20, 1e-7, 0.02, 0.7, 1.9, 30.0, 350.0, 712.5, 751.0, 1200.0, 1e20, 1e54, 1e77, 1e103,
         1e150, 1e155, 1e166, 1e300)
FORMULAS = {name: eval(text) for name, text in lines("formulas_of_all_sizes")}
ONE, TWO = ({name: e for name, e in FORMULAS.items() if len(e.free_symbols) == count} for count in (1, 2))
CENTRES = (-3.0, -1e-3, 1e-150, 1e-5, 0.7, 3.0, 40.0, 1e3, 1e150)
DISTANCES = (0.0, 2.0**-52, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.03, 0.2, 0.5, 1.0, 3.0, 20.0)


@functools.cache
def formula(name):
    expr = FORMULAS[name]
    symbols = sorted(expr.free_symbols, key=str)
    return OpFormula(name, symbols, expr, [POSITIVE if s.is_positive else REAL for s in symbols])


@functools.cache
def by_mpmath(name, order):
    f = formula(name)
    expr = FORMULAS[name]
    for symbol, count in zip(f.symbols, order):
        expr = sympy.diff(expr, symbol, count)
    return sympy.lambdify(f.symbols, expr, "mpmath")


def truth(name, order, at):
    """A derivative with many digits, next to a point where the formula is 0/0, and the condition number of the point."""
    with mpmath.workdps(DIGITS):
        f, values = by_mpmath(name, order), [mpmath.mpf(v) for v in at]
        if len(values) > 1:
            values[0] *= 1 + mpmath.mpf(MOVED)
        true, condition, h = f(*values), 0.0, mpmath.mpf("1e-30")
        for i, v in enumerate(values):
            moved = f(*values[:i], v * (1 + h), *values[i + 1:])
            condition += float(abs(moved - true) / (h * abs(true))) if true else 0.0
        return true, condition


def assert_digits(name, order, points):
    form = formula(name).form(order)
    with np.errstate(all="ignore"):
        found = np.broadcast_to(form.code(*[np.array([point[i] for point in points]) for i in form.places]), len(points)).tolist()
        alone = [float(form.code(*[np.float64(points[0][i]) for i in form.places]))]
    assert alone == pytest.approx(found[:1], rel=1e-15, abs=0, nan_ok=True)
    wrong = []
    for at, got in zip(points, found):
        true, condition = truth(name, order, at)
        plain = float(true)
        if condition > 1e16:  # the function varies between neighbouring floats
            wrong += [(at, got, plain)] * (got != got)
            continue
        if not 1e-290 < abs(plain) < 1e300:
            if not (abs(got) <= 1e-280 if abs(plain) < 1 else abs(got) > 1e290):
                wrong.append((at, got, plain))
            continue
        with mpmath.workdps(40):
            error = float(abs(got - true)) / math.ulp(plain) if math.isfinite(got) else math.inf
        if not error <= (BOUND if len(order) == 1 else OF_TWO) * (1 + condition):
            wrong.append((at, got, plain, f"{error:.1f} ULP, condition {condition:.1f}"))
    assert not wrong, f"{name}, order {order}: {form.code.source}\n" + "\n".join(map(str, wrong))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", range(3))
@pytest.mark.parametrize("name", ONE)
def test_floats_of_every_size(name, order):
    (symbol,) = formula(name).symbols
    assert_digits(name, (order,), [(s * v,) for v in SIZES for s in ((1,) if symbol.is_positive else (1, -1))])


@pytest.mark.sweep
@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", [k for k in itertools.product(range(3), repeat=2) if sum(k) < 3], ids=str)
@pytest.mark.parametrize("name", TWO)
def test_on_the_diagonal_and_beside_it(name, order):
    positive = formula(name).symbols[0].is_positive
    centres = [c for c in CENTRES if not positive or c > 0]
    points = [(c * (1 + d), c) for c in centres for d in DISTANCES] + [(c, c * (1 + d)) for c in centres for d in (1e-9, 0.2, 3.0)]
    assert_digits(name, order, points)


@pytest.mark.sweep
def test_lost_digits_are_reported(made):
    with pytest.warns(RuntimeWarning, match=r"lossy_op: the code of the formula is wrong by .* ULP at x = .*, y = "):
        op = made("lossy_op", cos(x) * cosh(y) - 1)
    assert op.report.worst > 1e7 and "ULP at" in str(op.report)


@pytest.mark.sweep
def test_accurate_code_has_no_warning(made):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        op = made("quiet_op", (exp(x) - exp(y)) / (x - y), check=True)
    assert op.report.worst < 10 and op.report.verdict in ("proved", "verified")
    assert op(1.0, 1.0).item() == pytest.approx(math.e, rel=1e-15)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.float64])
def test_a_number_keeps_its_dtype_next_to_a_series(made, dtype):
    ratio, bell = made("typed_ratio", sin(x) / x), made("typed_bell", x * exp(-x**2))
    difference = made("typed_difference", (exp(x) - exp(y)) / (x - y))
    for order in range(3):
        for shape in ((), (2,)):
            one = np.full(shape, 0.25, dtype)
            assert ratio._formula.form((order,)).code(one).dtype == one.dtype
            assert ratio._formula.form((order,)).code(one[()]).dtype == one.dtype
            assert bell._formula.form((order,)).code((one * 100)[()]).dtype == one.dtype
            assert difference._formula.form((order, 0)).code(one[()], one[()]).dtype == one.dtype
