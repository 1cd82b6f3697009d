"""The C back end against the interpreter in random programs, and the errors of its functions of vectors over the whole range of floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symgrad.program.native import find_compiler, loops, native
from symgrad.program.program import interpreter
from tests.support.programs import Builder, Slot

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler was found")

SHAPES = ((), (1,), (3,), (3, 3), (2, 3), (1, 3), (3, 1), (2, 1, 3), (0, 3), (40, 3))
UNARY = ("sin", "cos", "tanh", "sech_square", "neg", "abs", "sigmoid", "relu", "softplus", "sign")
BINARY = ("add", "sub", "mul", "maximum", "minimum", "atan2", "hypot")
REDUCTIONS = ("sum", "amax", "norm", "cumsum", "softmax", "logsumexp")


class Writer:
    """Adds random steps to a program; all values stay of moderate size."""

    def __init__(self, rng: np.random.Generator, dtype: Any):
        self.b, self.rng = Builder(), rng
        self.pool = [self.b.input(np.asarray(rng.normal(size=SHAPES[i]), dtype)[()]) for i in rng.integers(len(SHAPES), size=4)]

    def pick(self) -> Slot:
        return self.pool[self.rng.integers(max(0, len(self.pool) - 12), len(self.pool))] if self.rng.random() < 0.7 else self.rng_choice(self.pool)

    def rng_choice(self, xs: Any) -> Any:
        return xs[self.rng.integers(len(xs))]

    def step(self) -> None:
        b, x, choose = self.b, self.pick(), self.rng_choice
        ndim, kind = len(x.shape), self.rng.integers(12)
        out = None
        if kind < 3:
            word = choose(UNARY)
            out = getattr(b, word)(x)
            if word == "sign":
                out = b.mul(out, x)  # steps would make differences of their own of a rounding error
        elif kind < 6:
            y = self.pick()
            try:
                shape = np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return
            if np.prod(shape, dtype=int) <= 2000:
                out = b.tanh(getattr(b, choose(BINARY))(x, y)) if self.rng.random() < 0.5 else b.where(b.lt(x, y), b.add(y, b.sin(b.sub(x, y))), y)
        elif kind == 6 and ndim:
            dim = int(self.rng.integers(ndim))
            word = choose(REDUCTIONS)
            if x.shape[dim]:
                args = (dim,) if word in ("cumsum", "softmax") else (dim, bool(self.rng.random() < 0.5))
                out = getattr(b, word)(x, *args)
        elif kind == 7 and ndim:
            index = choose((0, slice(None, None, -1), slice(0, 2), (..., 0), None, (slice(None),) * (ndim - 1) + (np.array([0, 0]),)))
            if 0 not in x.shape:
                out = b.getitem(x, index)
                if self.rng.random() < 0.5:
                    out = b.place(out, index, x.shape)
        elif kind == 8:
            out = b.permute(x, tuple(self.rng.permutation(ndim).tolist())) if ndim else b.broadcast_to(x, (2, 3))
        elif kind == 9 and ndim:
            out = b.reshape(x, (-1,) if x.value.size else x.shape[::-1]) if self.rng.random() < 0.5 else b.flip(x, (0,))
        elif kind == 10 and ndim and x.value.size < 200:
            out = choose((b.cat, b.stack))([x, b.neg(x), x], int(self.rng.integers(ndim)))
        elif kind == 11 and ndim == 2:
            out = b.tanh(b.matmul(x, b.permute(x, (1, 0))))
        if out is not None and out.value.ndim < 5 and out.value.size <= 2000:
            self.pool.append(out)


def check(seed: int, dtype: Any, count: int) -> None:
    rng = np.random.default_rng(seed)
    writer = Writer(rng, dtype)
    for _ in range(count):
        writer.step()
    chosen = [writer.pool[i] for i in rng.choice(len(writer.pool), size=min(6, len(writer.pool)), replace=False)]
    program, inputs = writer.b.program(*chosen), writer.b.values[0]
    run = native(program)
    for _ in range(2):
        for got, expected in zip(run(inputs), interpreter(program)(inputs), strict=True):
            assert np.shape(got) == np.shape(expected) and got.dtype == expected.dtype
            scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
            np.testing.assert_allclose(got, expected, 0, 3e4 * float(np.finfo(dtype).eps) * scale)
        inputs = [np.asarray(x) * dtype(0.5) for x in inputs]
        inputs = [x if x.ndim else x[()] for x in inputs]


@pytest.mark.sweep
@pytest.mark.parametrize("examples", (3, pytest.param(300, marks=pytest.mark.sweep)))
def test_random_programs(examples: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path))

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.integers(0, 2**32), st.sampled_from((np.float64, np.float32)), st.integers(1, 60))
    def run(seed: int, dtype: Any, count: int) -> None:
        check(seed, dtype, count)

    run()


@pytest.mark.sweep
def test_a_wrong_text_is_found(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(loops.VECTOR, "sub", "{1} - {0}")
    monkeypatch.setitem(loops.SCALAR, "sub", "{1} - {0}")
    with pytest.raises(AssertionError):
        for seed in range(40):
            check(seed, np.float64, 30)


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


@pytest.mark.sweep
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
