"""The C back end against the interpreter: every word, at edges, with broadcasting, and in random programs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symgrad.program.native import find_compiler, mathematics, native
from symgrad.program.program import Operand, Program, interpreter
from tests.support.programs import Builder, Slot

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler was found")

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 1e-5, 1e3, -40.0, 800.0, -800.0, 1e300, 1e-300, 5e-324, math.inf, -math.inf, math.nan]
UNARY = ("neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh sech sech_square "
         "asinh acosh atanh sigmoid logsigmoid softplus relu one_minus_square floor ceil round trunc conj isfinite isnan isinf logical_not").split()
BINARY = ("add sub mul div pow atan2 hypot direction logaddexp maximum minimum remainder fmod floor_divide eq ne lt le gt ge logical_and logical_or "
          "sigmoid_slope").split()
DTYPES = np.float64, pytest.param(np.float32, marks=pytest.mark.sweep)
EITHER_ZERO = ("maximum", "minimum", "relu")  # of zeros of both signs NumPy returns one or the other


@pytest.fixture(autouse=True, scope="module")
def _objects(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path_factory.mktemp("objects")))
        yield


def assert_close(got: Any, expected: Any, ulps: float = 4, zeros: bool = True, what: Any = "") -> None:
    """Equal types, shapes, dtypes, NaN, infinities and signs of zeros; other numbers within some units in the last place."""
    assert np.shape(got) == np.shape(expected) and got.dtype == expected.dtype and type(got) is type(expected), what
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, expected, str(what))
        return
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected), str(what))
    finite = np.isfinite(expected) & np.isfinite(got)
    np.testing.assert_array_equal(np.where(finite, 0, got), np.where(finite, 0, expected), str(what))
    wrong = np.where(finite, np.abs(got - expected), 0) > ulps * np.spacing(np.abs(np.where(finite, expected, 1)))
    if zeros:
        wrong |= (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    assert not np.any(wrong), (what, np.argwhere(wrong)[:5].tolist(), got[wrong][:5], expected[wrong][:5])


def run_both(program: Program, inputs: list[Any], ulps: float = 4, names: Any = None, zeros: bool = True) -> None:
    """Run both back ends and compare all outputs."""
    with np.errstate(all="ignore"):
        expected, got = interpreter(program)(inputs), native(program)(inputs)
        assert len(got) == len(expected)
        for i, (a, b) in enumerate(zip(got, expected)):
            name = names[i] if names else i
            assert_close(a, b, ulps, zeros and name not in EITHER_ZERO, name)


def all_words(x: Any, y: Any) -> tuple[Program, list[str]]:
    """Every elementwise word of floats, each an output."""
    b = Builder()
    p, q = b.input(x), b.input(y)
    with np.errstate(all="ignore"):
        out = {word: getattr(b, word)(p) for word in UNARY} | {word: getattr(b, word)(p, q) for word in BINARY}
        out["where"] = b.where(out["lt"], p, q)
        out["indicator"] = b.indicator(out["ge"], p)
        out["exp2_derivative"] = b.exp2_derivative(p, 2)
        out["log_derivative"] = b.log_derivative(p, 10)
        out["softplus of beta"] = b.softplus(p, 2.0)
        for n in (0, 1, 2, 3, 4, -1, 0.5, -2, 1.5):
            out[f"pow {n}"] = b.pow(p, n)
        out["of a number"] = b.div(1.5, b.sub(2, q))
    return b.program(*out.values()), list(out)


@pytest.mark.parametrize("dtype", (np.float64, np.float32))
def test_every_elementwise_word_at_edges(dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x, y = (np.ascontiguousarray(z.ravel(), dtype) for z in np.meshgrid(EDGES, EDGES))
    program, names = all_words(x, y)
    run_both(program, [x, y], 4 if dtype is np.float64 else 6, names)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
def test_platforms_without_functions_of_vectors(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mathematics, "has_vector_function", lambda *_: False)
    with np.errstate(all="ignore"):
        x = np.asarray(EDGES, dtype)
    program, names = all_words(x, x[::-1].copy())
    assert "lmvec" not in str(mathematics.libraries(native(program).source))
    run_both(program, [x, x[::-1].copy()], 4 if dtype is np.float64 else 6, names)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_elementwise_word_of_scalars(dtype: Any) -> None:
    program, names = all_words(dtype(0.3), dtype(0.7))
    run = native(program)
    for x, y in itertools.product(EDGES, (0.7, -3.0, 0.0, math.inf, math.nan)):
        with np.errstate(all="ignore"):
            inputs = [dtype(x), dtype(y)]
            for name, a, b in zip(names, run(inputs), interpreter(program)(inputs)):
                assert_close(a, b, 4 if dtype is np.float64 else 8, name not in EITHER_ZERO, (name, x, y))


SHAPES = st.lists(st.sampled_from((1, 2, 3, 7, 16, 0)), max_size=3).map(tuple)


@st.composite
def broadcastable(draw: Callable[..., Any]) -> list[tuple[int, ...]]:
    """Three shapes that broadcast together."""
    whole = draw(SHAPES)
    shapes = []
    for _ in range(3):
        part = whole[draw(st.integers(0, len(whole))):]
        shapes.append(tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in part))
    return shapes


@pytest.mark.parametrize("examples", (4, pytest.param(60, marks=pytest.mark.sweep)))
def test_broadcasting(examples: int) -> None:
    settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)(
        given(broadcastable(), st.sampled_from((np.float64, np.float32)), st.integers(0, 999))(check_broadcasting))()


def check_broadcasting(shapes: list[tuple[int, ...]], dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = [np.asarray(rng.normal(size=shape)).astype(dtype)[()] for shape in shapes]
    b = Builder()
    x, y, z = map(b.input, inputs)
    s = b.add(x, y)
    t = b.mul(b.exp(s), z)
    small = b.mul(y, y)
    choice = b.where(b.lt(s, z), t, b.tanh(small))
    run_both(b.program(s, t, choice, small, b.ge(x, z)), inputs, 8)


def cases(dtype: Any) -> tuple[Program, list[Any], list[str]]:
    """The words that move, combine and reduce elements, each an output."""
    rng = np.random.default_rng(5)
    inputs = [rng.normal(size=shape).astype(dtype) for shape in ((4, 6), (6, 3), (2, 4, 6), (6,), (5, 1, 3), (40, 40), (3000,), (4, 4))]
    inputs.append(dtype(0.75))
    b = Builder()
    a, c, t, v, k, m, long, q, s = map(b.input, inputs)
    positive = b.exp(a)
    out: dict[str, Slot] = {}
    for word in ("sum", "prod", "amax", "amin", "logsumexp", "norm"):
        for i, (x, args) in enumerate(((a, ()), (a, (0,)), (a, (1, True)), (t, ((0, 2),)), (t, ((1,), True)), (v, ()), (m, (0,)), (s, ()),
                                       (b.permute(t, (2, 0, 1)), ((0, 1),)), (b.getitem(m, (slice(None), 3)), (0,)), (t, ((0, 1), True)))):
            out[f"{word} {i}"] = getattr(b, word)(x, *args)
    out["long sum"] = b.sum(b.square(long))
    for word in ("softmax", "log_softmax", "centred"):
        out[word] = getattr(b, word)(a, (1,))
        out[f"{word} of two"] = getattr(b, word)(t, (0, 2))
    for word in ("argmax", "argmin"):
        out[word], out[f"{word} 1"], out[f"{word} 0"] = getattr(b, word)(a), getattr(b, word)(a, 1), getattr(b, word)(a, 0, True)
    for word in ("cumsum", "cumprod"):
        out[word], out[f"{word} 0"], out[f"{word} -1"] = getattr(b, word)(v, 0), getattr(b, word)(t, 0), getattr(b, word)(t, -1)
        out[f"{word} of transposed"] = getattr(b, word)(b.permute(a, (1, 0)), 1)
    out["all"], out["any"] = b.all(b.gt(a, 0), 1), b.any(b.gt(a, 1), 0, True)
    out["all of floats"] = b.all(a)
    out["count"] = b.sum(b.gt(a, 0), 0)
    out["reference"] = b.reference(a, positive, (1,))
    out["reference of two"] = b.reference(t, t, (0, 2))
    for i, shape in enumerate(((6,), (1, 6), (4, 1), (), (4, 6), (1, 1))):
        out[f"sum_to_size {i}"] = b.sum_to_size(a, shape)
    out["sum_to_size of a stack"] = b.sum_to_size(t, (1, 6))
    out["reshape"], out["view"] = b.reshape(b.permute(a, (1, 0)), (3, 8)), b.view(b.exp(a), (24,))
    out["reshape -1"] = b.reshape(a, (2, -1))
    out["permute"], out["permuted twice"] = b.permute(t, (2, 0, 1)), b.permute(b.permute(t, (2, 0, 1)), (1, 2, 0))
    out["broadcast_to"] = b.add(b.broadcast_to(v, (4, 6)), a)
    out["broadcast"] = b.broadcast_to(b.exp(v), (3, 6))
    for i, index in enumerate((1, (slice(None), 2), (slice(None, None, 2), slice(1, 5)), (Ellipsis, 0), (None, slice(None), 1), slice(3, 0, -1),
                               (1, 2), (np.array([0, 2, 2]),), (slice(None), np.array([1, 1, 0])), (np.array([0, 3]), np.array([5, 1])),
                               (np.arange(4) % 2 == 0,), slice(2, 2))):
        got = out[f"getitem {i}"] = b.getitem(a, index)
        out[f"place {i}"] = b.place(got, index, (4, 6))
        out[f"product of getitem {i}"] = b.mul(b.getitem(b.exp(a), index), 2.0)
        out[f"put {i}"] = b.put(a, b.neg(got), index)
        out[f"accumulating put {i}"] = b.put(a, got, index, True)
        out[f"put of a scalar {i}"] = b.put(b.exp(a), s, index)
    out["cat"], out["cat 1"] = b.cat([a, b.neg(a)], 0), b.cat([a, b.getitem(a, (slice(None), slice(0, 2)))], 1)
    out["stack"], out["stack -1"], out["stack of scalars"] = b.stack([a, a], 1), b.stack([v, b.exp(v)], -1), b.stack([s, b.sin(s), s], 0)
    out["flip"], out["flip 2"] = b.flip(a, (0,)), b.exp(b.flip(t, (0, 2)))
    out["roll"], out["roll 2"], out["roll all"] = b.roll(a, 2, 0), b.roll(a, (1, -2), (0, 1)), b.roll(a, 5, None)
    out["diag"], out["diag 1"], out["diag of vector"], out["diag of vector -2"] = b.diag(a), b.diag(a, 1), b.diag(v), b.diag(v, -2)
    out["diagonal"], out["diagonal of stack"] = b.diagonal(a, 1, 0, 1), b.exp(b.diagonal(t, -1, 1, 2))
    out["diagonal_place"] = b.diagonal_place(v, 1, (8, 9))
    out["trace"], out["tril"], out["triu"], out["tril of stack"] = b.trace(q), b.tril(a), b.triu(a, 1), b.tril(t, -1)
    out["unfold"] = b.unfold(a, 1, 3, 2)
    out["astype"] = b.astype(a, np.float32 if dtype is np.float64 else np.float64)
    out["astype int"], out["astype bool"] = b.astype(b.mul(a, 3.0), np.int64), b.astype(a, bool)
    out["int arithmetic"] = b.add(b.mul(out["astype int"], 3), b.reshape(out["argmax 1"], (4, 1)))
    out["int to float"], out["mean of counts"] = b.mul(out["int arithmetic"], 0.5), b.div(out["count"], 3)
    out["int compare"] = b.where(b.gt(out["int arithmetic"], 1), a, 0.0)
    out["copy"], out["copied order"] = b.copy(a), b.copy(b.permute(a, (1, 0)), "C")
    out["zeros"], out["ones"], out["eye"] = b.zeros_like(a), b.ones_like(a, (3,)), b.eye_like(a, 5)
    out["eye in a product"] = b.mul(b.eye_like(a, 4), q)
    out["unbatch"] = b.unbatch(a, 1, 0, 3)
    products = {
        "mm": b.mm(a, c), "mm of transposed": b.mm(b.permute(c, (1, 0)), b.permute(a, (1, 0))), "mv": b.mv(a, v), "dot": b.dot(v, v),
        "matmul of stacks": b.matmul(t, c), "large": b.mm(m, m), "large transposed": b.mm(b.permute(m, (1, 0)), m),
        "large of strided": b.mm(b.getitem(m, (slice(None), slice(None, None, 2))), b.getitem(m, slice(None, None, 2))),
        "large mv": b.mv(m, b.getitem(m, 0)), "large mv of transposed": b.mv(b.permute(m, (1, 0)), b.getitem(m, (slice(None), 1))),
        "vm": b.matmul(b.getitem(m, 0), m), "long dot": b.dot(long, long),
        "broadcast stacks": b.matmul(b.reshape(t, (2, 1, 4, 6)), b.reshape(c, (1, 6, 3))),
        "outer": b.mm(b.reshape(long, (3000, 1)), b.reshape(v, (1, 6))),
        "block": b.mm(b.getitem(m, (slice(3, 30), slice(1, 20))), b.getitem(m, slice(0, 19))),
        "einsum": b.einsum("ij,jk->ik", [a, c]), "einsum 3": b.einsum("ij,jk,nij->kn", [a, c, t]), "einsum trace": b.einsum("ii->", [q]),
        "einsum diagonal": b.einsum("ii->i", [q]), "einsum outer": b.einsum("i,j->ji", [v, v]), "einsum stack": b.einsum("nij,jk->nik", [t, c]),
        "einsum sum": b.einsum("nij->j", [t]), "einsum implicit": b.einsum("ij,j", [a, v]), "einsum shared": b.einsum("nij,nij->ni", [t, t]),
        "einsum large": b.einsum("ij,kj->ki", [m, m]),
    }
    return b.program(*out.values(), *products.values()), inputs, [*out, *products]


def test_sums_are_those_of_numpy() -> None:
    rows = [np.random.default_rng(n).normal(size=n) for n in (1, 7, 8, 12, 127, 128, 129, 1000, 4099)]
    b = Builder()
    for got, expected in zip(native(b.program(*[b.sum(b.input(x)) for x in rows]))(rows), map(np.sum, rows), strict=True):
        assert got == expected


@pytest.mark.parametrize("dtype", (np.float64, np.float32))
@pytest.mark.parametrize("shape", ((), (200,)))
def test_arithmetic_is_that_of_numpy_to_the_last_bit(shape: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(1)
    rows = [np.asarray(rng.normal(size=shape), dtype)[()] for _ in range(3)]
    b = Builder()
    x, y, z = map(b.input, rows)
    product = b.mul(x, y)
    program = b.program(b.add(product, z), b.sub(z, product), b.div(b.add(x, y), z), b.sqrt(b.abs(x)), b.sub(b.add(b.add(x, 1e16), y), 1e16))
    for got, expected in zip(native(program)(rows), interpreter(program)(rows), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", (np.float64, np.float32))
def test_sums_in_loops(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for size in (5, 500, 513, 100_003):
        x = (rng.normal(size=size) * 10.0 ** rng.integers(-6, 6, size)).astype(dtype)
        b = Builder()
        a = b.input(x)
        y = b.mul(a, a)
        run = native(b.program(b.sum(y), b.sum(b.sin(a)), y, b.div(b.sum(b.neg(y)), b.sum(y)), b.sum(b.reshape(b.div(1.0, a), (-1, 1)))))
        total, waves, squares, ratio, inverses = run([x])
        exact = x.astype(np.longdouble)
        for got, terms in ((total, exact * exact), (waves, np.sin(exact)), (inverses, 1 / exact)):
            assert abs(got - terms.sum()) <= 8 * np.finfo(dtype).eps * np.abs(terms).sum()
        np.testing.assert_array_equal(squares, x * x)
        assert ratio == -1
        x[0] = math.inf
        assert run([x])[0] == math.inf and math.isnan(run([x])[1])


@pytest.mark.sweep
def test_indices_of_the_program() -> None:
    x, i, j = np.arange(24.0).reshape(2, 3, 4), np.array([1, 0, -1, 2]), np.array([[0], [1]])
    b = Builder()
    a, p, q = map(b.input, (x, i, j))
    full = slice(None)
    outputs = []
    for ins, index in (((p,), (full, Operand(1))), ((p, q), (Operand(2), Operand(1))), ((p,), (0, Operand(1), slice(1, 3))),
                       ((p,), (..., Operand(1))), ((q,), Operand(1)), ((p,), (0, full, Operand(1))), ((p,), (None, 1, Operand(1))),
                       ((q,), (np.array([1, 0]), full, Operand(1)))):
        got = b.step("getitem", [a, *ins], (index,))
        outputs += [got, b.step("place", [got, *ins], (index, x.shape)), b.step("put", [a, b.neg(got), *ins], (_later(index), False))]
        outputs.append(b.step("put", [b.exp(a), got, *ins], (_later(index), True)))
    run = native(b.program(*outputs))
    for got, expected in zip(run([x, i, j]), interpreter(b.program(*outputs))([x, i, j]), strict=True):
        np.testing.assert_allclose(got, expected, 1e-15)
    for wrong in (np.array([0, 0, 3, 0]), np.array([0, 0, 0, -4])):
        with pytest.raises(IndexError):
            run([x, wrong, j])
    np.testing.assert_array_equal(run([x, i, j])[0], x[:, i])


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_with_matrices_that_select(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    pick, eye = np.eye(4)[[2, 0, 0, 3, 1, 2]].astype(dtype), np.eye(4, dtype=dtype)
    b = Builder()
    x, stack = rng.normal(size=(4, 7)).astype(dtype), rng.normal(size=(3, 4, 4)).astype(dtype)
    p, q = b.input(x), b.input(stack)
    transposed = b.permute(p, (1, 0))
    outputs = [b.mm(b.constant(eye), p), b.mm(transposed, b.constant(eye)), b.mm(b.constant(pick), p), b.mm(transposed, b.constant(pick.T)),
               b.mm(b.constant(np.asfortranarray(pick)), p), b.mm(b.permute(b.constant(pick.T), (1, 0)), p),
               b.mm(b.constant(pick.T), b.constant(pick)), b.matmul(b.constant(pick), q), b.matmul(q, b.constant(pick.T)),
               b.mm(b.constant(pick), b.getitem(p, (slice(None), slice(1, 7, 2)))),
               b.mm(transposed, b.permute(b.constant(pick), (1, 0))), b.mm(b.constant(2 * eye), p), b.matmul(b.constant(eye), b.getitem(q, (0, 1)))]
    program = b.program(*outputs)
    assert native(program).source.count("selected_") > 8
    for bad in (0.5, math.inf, -math.inf, math.nan):
        x[1, 2] = x[1, 5] = x[3, 5] = stack[1, 0, 3] = bad
        run_both(program, [x, stack], zeros=False)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
def test_small_products(dtype: Any) -> None:
    rng = np.random.default_rng(4)
    b, inputs, outputs = Builder(), [], []
    with np.errstate(all="ignore"):
        for m, n, k in itertools.product((1, 2, 5, 13, 70), (1, 3, 16, 37), (1, 4, 20)):
            left, right = rng.integers(-9, 9, size=(m, k)).astype(dtype), rng.integers(-9, 9, size=(k, n)).astype(dtype)
            left[rng.random((m, k)) < 0.01], right[rng.random((k, n)) < 0.01] = math.inf, math.nan
            inputs += [left, right, np.ascontiguousarray(left.T), np.ascontiguousarray(right.T)]
            x, y, p, q = map(b.input, inputs[-4:])
            p, q = b.permute(p, (1, 0)), b.permute(q, (1, 0))
            outputs += [b.mm(x, y), b.mm(p, y), b.mm(x, q), b.mm(p, q)]
            outputs += [b.mv(x, b.getitem(y, (slice(None), 0))), b.mv(p, b.getitem(q, (slice(None), 0)))]
    run_both(b.program(*outputs), inputs, 0, zeros=False)


@pytest.mark.sweep
def test_arrays_are_visited_in_the_order_of_memory() -> None:
    rng = np.random.default_rng(5)
    inputs = [rng.integers(1, 9, size=shape).astype(float) for shape in ((30, 40), (30, 40), (30,), (2, 3, 40))]
    b = Builder()
    x, y, v, t = map(b.input, inputs)
    turned = [b.permute(z, (1, 0)) for z in (x, y)]
    scaled = b.mul(b.sub(*turned), v)
    program = b.program(b.mm(scaled, x), b.sum(scaled), b.sum(scaled, 0), b.mm(b.square(b.permute(scaled, (1, 0))), scaled))
    assert "gather_d((Ed *)t0, p" not in native(program).source
    run_both(program, inputs, 0, zeros=False)
    p = b.permute(t, (2, 0, 1))
    program = b.program(b.add(p, 1.0), b.add(turned[0], b.reshape(x, (40, 30))), b.mul(b.flip(p, (0,)), p), b.reshape(b.neg(p), (-1,)), b.mul(p, p))
    run_both(program, inputs)


@pytest.mark.sweep
def test_values_are_computed_in_the_loop_of_their_first_reader() -> None:
    rng = np.random.default_rng(6)
    inputs = [rng.integers(-9, 9, size=shape).astype(float) for shape in ((1000,), (1000, 20), (20,))]
    b = Builder()
    x, m, v = map(b.input, inputs)
    y = b.mul(x, 2.0)
    first = b.add(b.sub(y, x), b.mv(m, v))
    program = b.program(b.sum(b.square(first)), b.mul(b.sum(first), y))
    assert native(program).source.count("for (long k") == 2
    run_both(program, inputs, 0)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_put_into_constants_of_equal_elements(dtype: Any) -> None:
    x = np.arange(1.0, 5.0).astype(dtype)
    b = Builder()
    p, outputs = b.input(x), []
    for number in (0.0, -0.0, 1.5, math.nan):
        for whole in (np.full((4, 5), number, dtype), np.broadcast_to(dtype(number), (4, 5)), np.full((5, 4), number, dtype).T):
            c = b.constant(whole)
            outputs += [b.put(c, p, (np.arange(4), np.array([3, 1, 4, 1]))), b.put(c, p, (slice(None), 2)),
                        b.put(c, b.exp(p), (slice(None), 0), True),
                        b.reshape(b.put(b.reshape(c, (20,)), p, np.array([19, 0, 7, 3])), (2, 10)), c, b.mul(b.reshape(p, (4, 1)), c)]
    run_both(b.program(*outputs), [x])
    assert "memset" in native(b.program(*outputs)).source


def _later(index: Any) -> Any:
    """The index with its operands one place later."""
    if type(index) is tuple:
        return tuple(map(_later, index))
    return Operand(index.number + 1) if type(index) is Operand else index


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_word_that_moves_combines_or_reduces(dtype: Any) -> None:
    program, inputs, names = cases(dtype)
    expected, got = interpreter(program)(inputs), native(program)(inputs)
    for name, a, b in zip(names, got, expected, strict=True):
        assert np.shape(a) == np.shape(b) and a.dtype == b.dtype and type(a) is type(b), name
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(a, b, 100 * eps, 20 * eps * max(1, np.max(np.abs(b), initial=0)), err_msg=name)


@pytest.mark.sweep
@pytest.mark.parametrize("count", [9, 150])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_many_pieces(count: int, dtype: Any) -> None:
    """They are copied by one statement, whatever the kinds of the pieces: compilers need time with the square of the number of statements."""
    rng = np.random.default_rng(count)
    b = Builder()
    x, total = b.input(rng.normal(size=6).astype(dtype)), None
    scalars, vectors, parts = [], [], []
    for k in range(count):
        total = b.mul(b.sum(x, 0, False) if total is None else total, dtype(0.99))
        scalars.append(b.add(total, dtype(k / 7)))
        vectors.append(b.mul(x, dtype(k / 3)))
        parts.append(vectors[-1] if k % 3 else b.getitem(vectors[-1], (slice(k % 5, 6),)))
    program = b.program(b.stack(scalars, 0), b.stack(vectors, 0), b.stack(vectors, 1), b.cat(parts, 0))
    run_both(program, [rng.normal(size=6).astype(dtype)])
    assert native(program).source.count("runs[][3]") >= 3
