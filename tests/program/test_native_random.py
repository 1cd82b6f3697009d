"""The C back end against the interpreter in random programs, whose steps read each other in every way."""

from __future__ import annotations

from typing import Any

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
