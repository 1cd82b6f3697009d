"""The public strategies for numbers, arrays, shapes and tangents: drawn values lie inside, edges are drawn, and failures shrink."""

import math
import random

import hypothesis
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import symgrad
from symgrad.dtypes.dtype import numpy_dtype
from symgrad.graph.domains import BOOLEAN, INTEGER, NONZERO, POSITIVE, REAL, UNIT_CLOSED, UNIT_OPEN, Domain, Interval
from symgrad.sampling.domain_reader import domain_of
from symgrad.sampling.floats import Floats
from symgrad.sampling.numbers import edge_numbers, table
from symgrad.testing import strategies

DTYPES = ["float64", "float32", "float16", "bfloat16"]
TAN = Domain("TAN", (Interval(),), tuple((k + 0.5) * math.pi for k in range(-20, 20)))
DOMAINS = {
    "real": REAL, "positive": POSITIVE, "nonzero": NONZERO, "open": UNIT_OPEN, "closed": UNIT_CLOSED, "whole": INTEGER, "truth": BOOLEAN, "tan": TAN,
    "from 1": (1, math.inf), "text": "(0, pi/2]", "far": (1e4, 1.5e4), "narrow": (0.1, 0.2), "numbers": "{-1, 1, 2.5}", "nonpositive": "nonpositive",
    "union": sympy.Union(sympy.Interval.open(-3, -1), sympy.Interval(2, sympy.oo)) - sympy.FiniteSet(4, 5), "naturals": sympy.S.Naturals,
    "holes side by side": Domain("holes", (Interval(0.0, 1.0),), (0.0, 5e-324, 1.0, float(np.nextafter(1.0, 0.0))))}


def found(strategy, condition=lambda x: True, seed=0):
    """The simplest value with a property, found by hypothesis with a fixed seed."""
    settings = hypothesis.settings(max_examples=300, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    return hypothesis.find(strategy, condition, settings=settings, random=random.Random(seed))


def drawn(strategy, count):
    """So many examples, the same every time."""
    out = []

    @hypothesis.seed(0)
    @hypothesis.settings(max_examples=count, database=None, deadline=None, phases=[hypothesis.Phase.generate],
                         suppress_health_check=list(hypothesis.HealthCheck))
    @given(strategy)
    def draw(x):
        out.append(x)

    draw()
    return out


def outside(xs, domain):
    """The numbers that do not lie in a domain."""
    return [x for x in np.ravel(xs).astype(np.float64).tolist() if x not in domain]


# Numbers


@pytest.mark.sampled(21)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DOMAINS)
def test_every_number_that_can_be_drawn_lies_in_the_domain_and_is_one_of_the_type(name, dtype):
    domain = domain_of(DOMAINS[name])
    numbers = table(domain, dtype)
    assert not outside(numbers, domain)
    with np.errstate(over="raise"):
        assert np.array_equal(numbers.astype(numpy_dtype(dtype)).astype(np.float64), numbers)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DOMAINS)
def test_every_number_drawn_lies_in_the_domain_and_is_one_of_the_type(name, dtype):
    domain = domain_of(DOMAINS[name])
    for x in drawn(strategies.numbers(DOMAINS[name], dtype), 25):
        assert type(x) is float and x in domain and float(np.asarray(x, numpy_dtype(dtype))) == x


@pytest.mark.sampled(23)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DOMAINS)
def test_edges_lie_in_the_domain(name, dtype):
    domain, numbers = domain_of(DOMAINS[name]), strategies.edges(DOMAINS[name], dtype)
    assert not outside(numbers, domain) and len({(x, math.copysign(1.0, x)) for x in numbers}) == len(numbers) > 0
    assert all(float(np.asarray(x, numpy_dtype(dtype))) == x for x in numbers)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_edges_of_all_real_numbers(dtype):
    numbers, limits = strategies.edges(REAL, dtype), Floats(dtype)
    for x in (0.0, 1.0, 2.0, limits.largest, limits.normal, limits.smallest):
        assert x in numbers and -x in numbers
    assert {math.copysign(1.0, x) for x in numbers if x == 0} == {1.0, -1.0}


@pytest.mark.parametrize("dtype", DTYPES)
def test_ends_and_holes_are_approached(dtype):
    digits, type_ = Floats(dtype).digits, numpy_dtype(dtype)
    below = float(np.nextafter(np.asarray(1.0, type_), np.asarray(0.0, type_)))
    closed, opened = strategies.edges((0, 1), dtype), strategies.edges(UNIT_OPEN, dtype)
    assert 1.0 in closed and below in closed and 1.0 not in opened and below in opened and -below in opened
    around = strategies.edges(sympy.S.Reals - sympy.FiniteSet(2), dtype)
    assert 2.0 not in around
    for step in (2.0**-3, 2.0 ** (1 - digits)):
        assert 2.0 + step in around and 2.0 - step in around


def test_sizes_of_a_type():
    assert 5e-324 in strategies.edges(POSITIVE) and 5e-324 not in strategies.edges(POSITIVE, "float32")
    assert max(strategies.edges(REAL, "float16")) == 65504.0 and 2.0**-24 in strategies.edges(REAL, "float16")
    assert 2.0**-133 in strategies.edges(REAL, "bfloat16")


def test_edges_are_drawn():
    for domain in (REAL, NONZERO, UNIT_OPEN, TAN):
        assert set(edge_numbers(domain)) <= set(table(domain).ravel().tolist())
    numbers = table(REAL).ravel()
    for low, high in ((-math.inf, -1e3), (-10, -1), (-1, 0), (0, 1e-300), (1e-300, 1e-8), (1e-3, 1), (1, 10), (1e3, 1e100), (1e100, math.inf)):
        assert np.count_nonzero((numbers > low) & (numbers < high)) > 50
    assert len(set(numbers.tolist())) > 8000


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(10))
def test_numbers_shrink_to_simple_ones(seed):
    assert found(strategies.numbers(), seed=seed) == 0.0
    assert found(strategies.numbers(POSITIVE), seed=seed) == 1.0
    assert found(strategies.numbers(), lambda x: x < -1, seed) == -2.0
    assert found(strategies.numbers(), lambda x: 0 < x < 1, seed) in (0.5, 0.25, 0.75, 0.125, 0.12)
    assert found(strategies.numbers(INTEGER), lambda x: x > 3, seed) == 4.0
    assert found(strategies.numbers(UNIT_OPEN), lambda x: x < 0, seed) in (-0.5, -0.25)
    assert found(strategies.numbers(REAL, "bfloat16"), lambda x: x > 1, seed) in (2.0, 1.5)


@pytest.mark.sweep
def test_complex_numbers():
    for dtype, part in (("complex128", "float64"), ("complex64", "float32")):
        strategy = strategies.numbers(POSITIVE, dtype)
        for z in drawn(strategy, 30):
            assert type(z) is complex and z.real > 0 and all(float(np.dtype(part).type(x)) == x for x in (z.real, z.imag))
        assert found(strategy) == 1 and found(strategy, lambda z: z.imag < -1) == 1 - 2j


def test_invalid_domains_and_types_are_refused():
    for strategy in (strategies.numbers, strategies.edges):
        with pytest.raises(TypeError, match="^the domain is 3; expected a pair"):
            strategy(3)
        with pytest.raises(TypeError, match="floating-point types, not for int64"):
            strategy(REAL, "int64")
        with pytest.raises(ValueError, match="no number of the type float16"):
            strategy((1e6, 1e7), "float16")


def test_types_may_be_symgrads_or_numpys():
    for dtype in (symgrad.float16, np.float16, np.dtype("float16"), "float16"):
        assert strategies.edges(REAL, dtype) == strategies.edges(REAL, "float16")
    assert strategies.edges(REAL, symgrad.bfloat16) == strategies.edges(REAL, "bfloat16")


@pytest.mark.parametrize("dtype", DTYPES)
def test_neighbours(dtype):
    grid, type_ = Floats(dtype), numpy_dtype(dtype)
    xs = np.array([0.0, 1.0, -1.0, grid.normal, -grid.smallest, 0.75 * grid.normal, 1.25])
    for up in (1, -1):
        expected = np.nextafter(xs.astype(type_), np.asarray(up * np.inf, type_)).astype(np.float64)
        assert np.array_equal(grid.moved(xs, up), expected)
    assert grid.moved(grid.largest, 2**40) == grid.largest and grid.moved(-1.0, -2**62) == -grid.largest


# Arrays


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", [*DTYPES, "complex128", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2), (9, 11)], ids=str)
def test_arrays_have_their_shape_and_type_and_lie_in_the_domain(shape, dtype):
    for domain in (UNIT_OPEN, domain_of(DOMAINS["union"])):
        for x in drawn(strategies.arrays(domain, shape, dtype), 15):
            assert x.shape == shape and x.dtype == numpy_dtype(dtype)
            assert not outside(x.real if x.dtype.kind == "c" else x, domain)


@pytest.mark.sweep
def test_arrays_of_drawn_shapes():
    assert found(strategies.arrays(shape=strategies.shapes(max_dims=2, max_side=2)), lambda x: x.ndim == 2).shape == (1, 1)


@pytest.mark.sweep
def test_shapes_are_tuples_lists_or_numbers_and_anything_else_is_refused():
    assert found(strategies.arrays("real", 3)).shape == found(strategies.tangents(3)).shape == (3,)
    assert found(strategies.arrays("real", [2, 0])).shape == found(strategies.tied_arrays(shape=[2, 0]))[0].shape == (2, 0)
    for make in (lambda shape: strategies.arrays("real", shape), strategies.tangents, lambda shape: strategies.tied_arrays(shape=shape)):
        with pytest.raises(ValueError, match=r"a shape is \(2, -1\), with a negative side"):
            make((2, -1))
        with pytest.raises(TypeError, match=r"a shape is 'two'; expected a tuple such as \(2, 3\), a number, or a strategy of shapes"):
            make("two")
    with pytest.raises(ValueError, match="count is 0; expected a number of arrays"):
        strategies.tied_arrays(count=0)
    for bounds in ({"max_dims": 2, "min_dims": 3}, {"max_side": 0}, {"min_dims": -1}):
        with pytest.raises(ValueError, match=r"shapes: min_\w+ is -?\d and max_\w+ is \d; expected 0 <= min_\w+ <= max_\w+"):
            strategies.shapes(**bounds)


def test_arrays_of_truth_values():
    assert found(strategies.arrays(BOOLEAN, (3,)), lambda x: x.any()).dtype == bool


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2))
def test_arrays_shrink(seed):
    assert np.array_equal(found(strategies.arrays(REAL, (2, 2)), seed=seed), np.zeros((2, 2)))
    x = found(strategies.arrays(REAL, (4,)), lambda x: x[2] < -1, seed)
    assert x[2] in (-2.0, -1.5) and np.count_nonzero(x) <= 2


@pytest.mark.sweep
def test_arrays_have_ties_equal_rows_zeros_and_order():
    strategy = strategies.arrays(REAL, (3, 4))
    for condition in (lambda x: len(set(x.ravel())) == 1 and x[0, 0] > 5, lambda x: (x[0] == x[1]).all() and x[0, 0] != x[0, 1] and x[0, 2] > 2,
                      lambda x: (np.diff(x.ravel()) > 0).sum() > 6 and (np.diff(x.ravel()) >= 0).all(),
                      lambda x: (np.diff(x.ravel()) < 0).sum() > 6 and (np.diff(x.ravel()) <= 0).all()):
        assert condition(found(strategy, condition))


@pytest.mark.sweep
def test_tied_arrays():
    strategy = strategies.tied_arrays(NONZERO, 3, (4,))
    examples = drawn(strategy, 60)
    assert all(a.shape == b.shape == c.shape == (4,) and not outside((a, b, c), NONZERO) for a, b, c in examples)
    equal = {int(np.count_nonzero(first == other)) for first, *others in drawn(strategy, 600) for other in others}
    assert equal == {0, 1, 2, 3, 4}
    assert all(np.array_equal(x, np.ones(4)) for x in found(strategy))
    assert found(strategies.tied_arrays(shape=st.just((2,))))[0].shape == (2,)


# Shapes and tangents


@pytest.mark.sweep
def test_shapes():
    for dims in range(4):
        assert found(strategies.shapes(), lambda s, dims=dims: len(s) == dims) == (1,) * dims
    assert found(strategies.shapes(min_side=0), lambda s: 0 in s) == (0,)
    assert found(strategies.shapes(min_dims=2, max_dims=2, max_side=5), lambda s: max(s) == 5) in ((1, 5), (5, 1))


@pytest.mark.sweep
def test_broadcastable_shapes():
    strategy = strategies.broadcastable_shapes(3, min_side=0)
    examples = drawn(strategy, 150)
    assert all(len(shapes) == 3 and len(np.broadcast_shapes(*shapes)) <= 3 for shapes in examples)
    assert found(strategy) == ((), (), ())
    for condition in (lambda a, b: a == () != b, lambda a, b: 0 in a and a[-1:] == (0,) and b[-1:] == (1,), lambda a, b: len(a) == 3 and len(b) == 1,
                      lambda a, b: a == b != ()):
        assert any(condition(a, b) for a, b, _ in examples)
    assert any(np.broadcast_shapes(a, b) not in (a, b) and 0 not in a + b for a, b, _ in examples)  # as (2, 1) and (3,)


@pytest.mark.sweep
def test_tangents():
    for dtype in (*DTYPES, "complex128"):
        for t in drawn(strategies.tangents((2, 3), dtype), 30):
            assert t.shape == (2, 3) and t.dtype == numpy_dtype(dtype)
            assert np.all(np.abs(t) >= 0.5) and np.all(np.abs(t) <= 5)
            assert all(len(repr(abs(float(x)))) <= 4 for x in t.real.astype(np.float64).ravel())
    assert np.array_equal(found(strategies.tangents((3,))), np.ones(3))
    assert found(strategies.tangents(), lambda t: t < 0) == -1.0
    assert found(strategies.tangents((2,)), lambda t: t[0] != t[1]).tolist() == [1.0, -1.0]
    assert found(strategies.tangents(st.just((2, 1)))).shape == (2, 1)
    assert found(strategies.tangents((), "complex64"), lambda t: t.imag < 0) == 1 - 1j
