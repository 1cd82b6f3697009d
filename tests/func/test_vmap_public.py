"""vmap of composite functions, indices, losses and layers, each equal to a loop over the members; what depends on data or writes is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad
from symgrad import autograd
from symgrad.func import grad, jvp, vjp, vmap
from tests.support.tables import table

EPSILON = np.finfo(float).eps
COUNT = 3


def drawn(*shapes, seed=0, low=0.2, high=2.0):
    """Tensors of several members each, no two elements alike."""
    rng = np.random.default_rng(seed)
    return [symgrad.tensor(rng.uniform(low, high, (COUNT, *shape)) * rng.choice([-1.0, 1.0], (COUNT, *shape))) for shape in shapes]


def parts(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [x for t in tree for x in parts(t)] if isinstance(tree, (tuple, list)) else [tree]


def agree(got, rows, what):
    """A batch equal to its members, to 32 ULP of the largest element."""
    for a, *each in zip(parts(got), *map(parts, rows)):
        a, b = a.detach().numpy(), np.stack([t.detach().numpy() for t in each])
        assert a.shape == b.shape and a.dtype == b.dtype, (what, a.shape, b.shape, a.dtype, b.dtype)
        if a.dtype.kind in "fc":
            assert np.all(np.abs(a - b) <= 32 * EPSILON * np.max(np.abs(b), initial=0.0)) or np.array_equal(a, b, equal_nan=True), (what, a, b)
        else:
            assert np.array_equal(a, b), (what, a, b)


def some(n):
    return [s for size in range(1, n + 1) for s in itertools.combinations(range(n), size)]


def check(f, *xs, derivatives=True):
    """Values, gradients inside and outside, and tangents, for every choice of the arguments that are batched."""
    for chosen in some(len(xs)):
        dims = tuple(0 if i in chosen else None for i in range(len(xs)))
        args = [x if i in chosen else x[0] for i, x in enumerate(xs)]
        members = [[x[k] if i in chosen else x[0] for i, x in enumerate(xs)] for k in range(COUNT)]
        got = vmap(f, dims)(*args)
        rows = [f(*m) for m in members]
        agree(got, rows, f"value batched at {chosen}")
        floats = [i for i, x in enumerate(xs) if x.is_floating_point()]
        if not derivatives or not floats or not any(t.is_floating_point() for t in parts(got)):
            continue

        def total(*given):
            return sum((t * t.detach().cos()).sum() for t in parts(f(*given)) if t.is_floating_point())

        agree(vmap(grad(total, tuple(floats)), dims)(*args), [grad(total, tuple(floats))(*m) for m in members], f"gradient batched at {chosen}")
        leaves = [a.detach().clone().requires_grad_(a.is_floating_point()) for a in args]
        found = autograd.grad(vmap(total, dims)(*leaves).sum(), [leaves[i] for i in floats], materialize_grads=True)
        each = [grad(total, tuple(floats))(*m) for m in members]
        for i, g, *rows in zip(floats, found, *each):
            stack = np.stack([r.numpy() for r in rows])
            expected, size = (stack, np.abs(stack)) if i in chosen else (stack.sum(0), np.abs(stack).sum(0))
            assert np.all(np.abs(g.numpy() - expected) <= 32 * EPSILON * np.max(size, initial=0.0)), (chosen, i, g, expected)

        def along(*given, floats=floats):
            def of(*moving):
                call = dict(zip(floats, moving))
                return [t for t in parts(f(*(call.get(i, x) for i, x in enumerate(given)))) if t.is_floating_point()]

            return jvp(of, tuple(given[i] for i in floats), tuple(given[i].cos() for i in floats))[1]

        agree(vmap(along, dims)(*args), [along(*m) for m in members], f"tangent batched at {chosen}")


V, M, T3, S = (4,), (3, 4), (2, 3, 3), ()
ONE = table(globals(), "ONE")


def quiet(a):
    with symgrad.no_grad():
        return a * 2


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_tensor(name):
    check(ONE[name], *drawn(M))


PRODUCTS = [(V, V), (M, V), (V, (4, 2)), (M, (4, 2)), (T3, (3,)), ((3,), T3), (T3, (3, 2)), ((2, 3), (2, 3, 4)), (T3, (2, 3, 1)), (T3, (1, 3, 2)),
            ((2, 1, 3, 2), (3, 2, 2))]


@pytest.mark.parametrize("shapes", PRODUCTS, ids=str)
def test_matmul_of_all_ranks(shapes):
    check(lambda a, b: a @ b, *drawn(*shapes))


TWO = table(globals(), "TWO")


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_tensors(name):
    f, *shapes = TWO[name]
    check(f, *drawn(*shapes))


PLACES = table(globals(), "PLACES")


@pytest.mark.parametrize("name", PLACES)
def test_batched_indices(name):
    (a,) = drawn(M)
    i = symgrad.tensor(np.random.default_rng(1).integers(0, 3, (COUNT, 3, 4)))
    i[:, 0, 0] = symgrad.tensor([2, 0, 0])  # some class that is not ignored
    check(PLACES[name], a, i)


PARTS = st.one_of(st.integers(-2, 1), st.just(slice(None)), st.slices(3), st.none(), st.just("batched 0"), st.just("batched 1"), st.just("batched 2"),
                  st.lists(st.integers(-2, 1), min_size=1, max_size=1), st.lists(st.integers(-2, 1), min_size=3, max_size=3))


@pytest.mark.sweep
@settings(max_examples=400)
@given(index=st.lists(PARTS, min_size=1, max_size=4), dots=st.integers(-1, 3), seed=st.integers(0, 99), shared=st.booleans())
def test_every_index(index, dots, seed, shared):
    """Reading and adding at any index, some parts of which differ between the members: the same elements as NumPy's for each."""
    rng = np.random.default_rng(seed)
    x = symgrad.tensor(rng.standard_normal((COUNT, 2, 3, 2, 2)))
    if 0 <= dots < len(index):
        index = [*index[:dots], ..., *index[dots:]]
    batched = [symgrad.tensor(rng.integers(-2, 2, (COUNT, *(3,) * int(p[-1])))) for p in index if isinstance(p, str)]

    def read(x, *places):
        left = iter(places)
        return x[tuple(next(left) if isinstance(p, str) else symgrad.tensor(p) if isinstance(p, list) else p for p in index)]

    def member(k):
        return read(x[0] if shared else x[k], *(b[k] for b in batched))

    try:
        rows = [member(k) for k in range(COUNT)]
    except (IndexError, RuntimeError, ValueError):
        return
    dims = (None if shared else 0, *(0 for _ in batched))
    if shared and not batched:
        return
    got = vmap(read, dims)(x[0] if shared else x, *batched)
    assert np.array_equal(got.numpy(), np.stack([r.numpy() for r in rows]))
    for seeds, own in ((got.cos(), 0), (got[0].cos().expand(got.shape), None)):
        found = vmap(lambda x, g, *b: vjp(lambda x: read(x, *b), x)[1](g)[0], (dims[0], own, *dims[1:]))(x[0] if shared else x,
            seeds if own == 0 else seeds[0], *batched)
        rows = [vjp(lambda x, k=k: read(x, *(b[k] for b in batched)), x[0] if shared else x[k])[1](seeds[k])[0] for k in range(COUNT)]
        np.testing.assert_allclose(found.numpy(), np.stack([r.numpy() for r in rows]), rtol=1e-15, atol=1e-15)


# What depends on the data of a member, and what is written

X = symgrad.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
INDEX = symgrad.tensor([[0, 1], [2, 2]])
DATA = table(globals(), "DATA")


@pytest.mark.parametrize("name", DATA)
def test_dependence_on_the_data_of_a_member_is_refused(name):
    with pytest.raises(RuntimeError, match=r"^(\w+(\(\))?: )?vmap: .*depends on the data of each"):
        vmap(DATA[name])(X)
    with pytest.raises(RuntimeError, match=r"^(\w+(\(\))?: )?vmap: .*depends on the data of each"):
        vmap(vmap(DATA[name]))(X[None])


WRITES = table(globals(), "WRITES")


def augmented(a):
    a += 1
    return a


def setitem(a, index, value):
    a[index] = value
    return a


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_refused(name):
    before = X.clone()
    with pytest.raises(RuntimeError, match="vmap: .*(writes in place|depends on the data)"):
        vmap(WRITES[name], randomness="same")(X)
    assert symgrad.equal(X, before)


# Random numbers

HALF = symgrad.ones(4, 30) * 0.5
DRAWN = table(globals(), "DRAWN")


@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers_are_the_same_or_different(name):
    """For all members of a batch, of two batches one in the other, and of two of which one asks for the same and one for different numbers."""
    f = DRAWN[name]
    symgrad.manual_seed(1)
    with pytest.raises(RuntimeError, match="random numbers are drawn inside"):
        vmap(f)(HALF)
    same, different = (vmap(f, randomness=how)(HALF) for how in ("same", "different"))
    assert symgrad.equal(same[0], same[3]) and not symgrad.equal(different[0], different[3])
    grid = HALF.expand(2, 4, 30)
    for outer, inner in (("same", "different"), ("different", "same"), ("different", "different"), ("same", "same")):
        found = vmap(vmap(f, randomness=inner), randomness=outer)(grid)
        assert found.shape == (2, *different.shape) and found.dtype is different.dtype
        assert symgrad.equal(found[0], found[1]) == (outer == "same") and symgrad.equal(found[0, 0], found[0, 3]) == (inner == "same")


def test_rates_that_differ_have_no_common_numbers():
    rates = symgrad.tensor([1.0, 1000.0])
    found = vmap(lambda a: symgrad.poisson(a.expand(50)), randomness="different")(rates)
    assert found[0].max() < 20 < 700 < found[1].min()
    with pytest.raises(RuntimeError, match="no equal random numbers"):
        vmap(symgrad.poisson, randomness="same")(rates)
