"""The errors of the functions of vectors, in units in the last place, over the whole range of floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
import pytest

from symgrad.program.native import find_compiler, native
from tests.support.programs import Builder

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler was found")

EXACT: dict[str, Callable[[Any], Any]] = {name: getattr(gmpy2, name) for name in (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh sech asinh acosh atanh sqrt").split()}
EXACT |= {
    "sech_square": lambda x: gmpy2.sech(x) ** 2,
    "sigmoid": lambda x: 1 / (1 + gmpy2.exp(-x)),
    "softplus": lambda x: gmpy2.log1p(gmpy2.exp(x)) if x < 100 else x + gmpy2.log1p(gmpy2.exp(-x)),
    "logsigmoid": lambda x: -gmpy2.log1p(gmpy2.exp(-x)) if x > -100 else x - gmpy2.log1p(gmpy2.exp(x)),
    "rsqrt": lambda x: 1 / gmpy2.sqrt(x),
}
ULPS = 4


def points(count: int, dtype: Any) -> np.ndarray:
    """Numbers of all sizes down to subnormals, near 0, near 1, near the zeros of sin and cos, and where exponentials over- and underflow."""
    rng, info = np.random.default_rng(count), np.finfo(dtype)
    low, high = math.log2(float(info.smallest_subnormal)), math.log2(float(info.max))
    signs = rng.choice([-1.0, 1.0], count)
    rows = [signs * 2.0 ** rng.uniform(low, high, count), rng.uniform(-1, 1, count), rng.uniform(-5, 5, count), rng.uniform(-800, 800, count),
            1 + rng.normal(size=count) * 1e-3, signs * 2.0 ** rng.uniform(-30, 10, count), np.pi / 2 * rng.integers(-50, 50, count),
            rng.uniform(87, 105, count) * signs, rng.uniform(340, 380, count) * signs, rng.uniform(700, 750, count) * signs]
    return np.concatenate([*rows, [0.0, -0.0, math.inf, -math.inf, math.nan, info.max, info.tiny]]).astype(dtype)


def error(got: float, exact: Any, dtype: Any) -> float:
    """The distance from the exact value in units in its last place; infinite if one of them is NaN."""
    info = np.finfo(dtype)
    if gmpy2.is_nan(exact) or math.isnan(got):
        return 0.0 if gmpy2.is_nan(exact) and math.isnan(got) else math.inf
    largest = float(info.max)
    if math.isinf(got):
        return 0.0 if abs(exact) > largest * (1 - ULPS * float(info.eps)) and (exact > 0) == (got > 0) else math.inf
    size = min(abs(float(exact)), 0.75 * largest)
    return float(abs(gmpy2.mpfr(got) - exact) / float(np.spacing(dtype(size))))


@pytest.mark.parametrize("dtype", (np.float64, np.float32))
@pytest.mark.parametrize("count", (150, pytest.param(4000, marks=pytest.mark.sweep)))
def test_functions_of_vectors_are_accurate(dtype: Any, count: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path))
    x = points(count, dtype)
    b = Builder()
    p = b.input(x)
    with np.errstate(all="ignore"):
        run = native(b.program(*[getattr(b, word)(p) for word in EXACT]))
    with gmpy2.context(precision=200, emin=gmpy2.get_emin_min(), emax=gmpy2.get_emax_max()):
        numbers = [gmpy2.mpfr(v) for v in x.tolist()]
        for (word, exact), row in zip(EXACT.items(), run([x]), strict=True):
            worst, at, got = max((error(y, exact(v), dtype), float(v), y) for v, y in zip(numbers, row.tolist()))
            assert worst <= ULPS, (word, worst, at, got)
