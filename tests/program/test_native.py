"""The C back end against the interpreter, word by word."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symgrad.carriers import PROTOCOL
from symgrad.program.native import Unsupported, find_compiler, native
from symgrad.program.program import Program, Spec, Step, interpreter
from tests.support.programs import Builder, Value, chain

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler was found")

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 1e-5, 1e3, -40.0, 800.0, -800.0, 1e300, 1e-300, 5e-324, math.inf, -math.inf, math.nan]
UNARY = ("neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh sech sech_square "
         "asinh acosh atanh sigmoid logsigmoid softplus relu one_minus_square floor ceil round trunc conj isfinite isnan isinf logical_not").split()
BINARY = ("add sub mul div pow atan2 hypot direction logaddexp maximum minimum remainder fmod floor_divide eq ne lt le gt ge logical_and logical_or "
          "sigmoid_slope").split()
DTYPES = st.sampled_from((np.float64, np.float32))
SHAPES = st.sampled_from(((), (1,), (3,), (10,), (64,), (0,), (2, 3), (5, 1), (1, 7), (4, 3, 2), (70, 11), (1000,)))


def assert_close(got: Any, expected: Any, ulps: float = 16, scale: Any = None) -> None:
    """Equal shapes, dtypes, NaN and infinities; numbers within some units in the last place of the largest size of `scale` or their own."""
    assert np.shape(got) == np.shape(expected) and got.dtype == expected.dtype
    assert type(got) is type(expected)
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, expected)
        return
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    finite = np.isfinite(expected) & np.isfinite(got)
    np.testing.assert_array_equal(np.where(finite, 0, got), np.where(finite, 0, expected))
    with np.errstate(all="ignore"):
        size = np.spacing(np.maximum(np.abs(np.where(finite, expected, 1)), 0 if scale is None else scale).astype(got.dtype))
        wrong = np.where(finite, np.abs(got - expected), 0) > ulps * size
    assert not np.any(wrong), (got[wrong], expected[wrong])


def run_both(program: Program, inputs: list[Any], ulps: float = 16, scale: Any = None) -> None:
    with np.errstate(all="ignore"):
        expected = interpreter(program)(inputs)
        got = native(program)(inputs)
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        assert_close(a, b, ulps, scale)


def numbers(shape: tuple[int, ...], dtype: Any, seed: int, edges: bool = False) -> Any:
    rng = np.random.default_rng(seed)
    out = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3, shape)
    if edges:
        out = np.where(rng.random(shape) < 0.5, rng.choice(EDGES, shape), out)
    with np.errstate(over="ignore"):
        return np.asarray(out).astype(dtype)[()]


@pytest.fixture(scope="module", autouse=True)
def _objects(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path_factory.mktemp("objects")))
        yield


ELEMENTWISE_ULPS = {"pow": 64, "logaddexp": 64, "remainder": 0, "fmod": 0}


@pytest.mark.parametrize("dtype", (np.float64, np.float32))
@pytest.mark.parametrize("shape", ((), (7,), (150,)))
def test_elementwise_words_at_edges(dtype: Any, shape: tuple[int, ...]) -> None:
    x, y = numbers(shape, dtype, 1, True), numbers(shape, dtype, 2, True)
    if shape == (150,):
        x, y = (np.resize(z, (150,)).astype(dtype) for z in np.meshgrid(EDGES[:12], EDGES[:12]))
    for word in UNARY:
        b = Builder(x)
        with np.errstate(all="ignore"):
            program = b.program(getattr(b, word)(*b.inputs))
            expected, got = interpreter(program)([x])[0], native(program)([x])[0]
        assert_close(got, expected)
    for word in BINARY:
        b = Builder(x, y)
        with np.errstate(all="ignore"):
            program = b.program(getattr(b, word)(*b.inputs))
            expected, got = interpreter(program)([x, y])[0], native(program)([x, y])[0]
        assert_close(got, expected)
