"""vmap of every registered op equals a loop over the members: in both modes, to second order, nested. A new op needs no line here."""

import itertools

import numpy as np
import pytest

import symgrad
from symgrad import autograd
from symgrad.engine.traced import core
from symgrad.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from symgrad.methods.extending import BUILT_IN
from tests.support.exemptions import exempt
from tests.support.points import arrays, differentiable, examples, random_like

EPSILON = np.finfo(np.float64).eps
ROUNDINGS = 16  # allowed in a sum, in units of the sum of the absolute values of its terms
CASES = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in map(REGISTRY.__getitem__, sorted(BUILT_IN))
         if op.kind != "composite" and op.name not in exempt("alone") for parameters in examples(op)]
DIFFERENTIABLE = [case for case in CASES if case.values[0].differentiable]
SMOOTH = [case for case in DIFFERENTIABLE if COMPLEX not in case.values[0].domain]


def say(op, parameters, what, got, expected):
    return f"{op.name}{parameters}: {what}: got {got}, expected {expected}"


def members(op, count, seed=0):
    """The arrays of several calls of an op: a list of them for each argument."""
    rng = np.random.default_rng(seed)
    drawn = [arrays(op, rng) for _ in range(count)]
    columns = [[row[i] for row in drawn] for i in range(len(drawn[0]))]
    if op.domain and COMPLEX in op.domain and op.name not in ("complex", "polar_parts", "view_as_complex"):
        columns = [[x + 1j * random_like(rng, x) for x in column] for column in columns]
    if op.name == "view_as_complex":
        columns = [[np.stack([x, x], -1) for x in column] for column in columns]
    return columns


def function(op, parameters):
    return (lambda *xs: core(op)(list(xs), *parameters)) if op.arity is None else lambda *xs: core(op)(*xs, *parameters)


def subsets(n):
    """Every choice of some of n arguments."""
    return [s for size in range(1, n + 1) for s in itertools.combinations(range(n), size)]


def stacked(columns, batched, dim=0):
    """The arguments of a call with those that are batched as one array, and where their members are."""
    given = [np.stack(column, dim) if i in batched else column[0] for i, column in enumerate(columns)]
    return given, tuple(dim if i in batched else None for i in range(len(columns)))


def member(columns, batched, k):
    return [column[k] if i in batched else column[0] for i, column in enumerate(columns)]


def tensors(xs):
    return [symgrad.tensor(x) for x in xs]


def numbers(tree):
    return [x for t in tree for x in numbers(t)] if isinstance(tree, (tuple, list)) else [np.asarray(tree.detach().numpy())]


def sum_of_terms(f, given):
    """Of each result of f, the sum of the absolute values of its terms, where f is linear in the list of arrays `given`."""
    total = []
    for i, x in enumerate(given):
        for place in np.ndindex(x.shape):
            unit = [np.zeros_like(other) for other in given]
            unit[i][place] = x[place]
            term = [np.abs(y) for y in numbers(f(*tensors(unit)))]
            total = [a + b for a, b in zip(total, term)] if total else term
    return total


def agree(op, parameters, what, got, members, sizes=None, terms=None):
    """The batch equal to its members, up to 16 roundings of the largest element of each, or of `terms(k)` in sums where terms cancel."""
    for j, rows in enumerate(zip(*map(numbers, members))):
        a, b = numbers(got)[j], np.stack(rows)
        assert (a.shape, a.dtype) == (b.shape, b.dtype), say(op, parameters, f"shape and dtype of the {what}", (a.shape, a.dtype), (b.shape, b.dtype))
        if a.dtype.kind not in "fc":
            assert np.array_equal(a, b), say(op, parameters, what, a, b)
            continue
        assert np.all(np.isfinite(a)), say(op, parameters, what, a, b)
        scale = np.max(np.abs(b), axis=tuple(range(1, b.ndim)), keepdims=True, initial=0.0 if sizes is None else sizes[j])
        wrong = np.abs(a - b) > ROUNDINGS * EPSILON * scale
        if terms is not None and np.any(wrong):
            wrong &= np.abs(a - b) > ROUNDINGS * EPSILON * np.stack([terms(k)[j] for k in range(len(rows))])
        assert not np.any(wrong), say(op, parameters, what, a, b)


def check(op, parameters, what, f, columns, batched, extra=(), fixed=0):
    """vmap of a function of tensors, equal to the function of each member.

    `extra` are arrays that are always batched; f is linear in those after the first `fixed`.
    """
    given, dims = stacked(columns, batched)
    got = vmap(f, in_dims=(*dims, *(0 for _ in extra)))(*tensors(given), *tensors(map(np.stack, extra)))
    count = len(columns[0])

    def terms(k):
        xs = tensors([*member(columns, batched, k), *(e[k] for e in extra[:fixed])])
        return sum_of_terms(lambda *linear: f(*xs, *linear), [e[k] for e in extra[fixed:]])

    agree(op, parameters, f"{what} with arguments {batched} batched", got,
          [f(*tensors(member(columns, batched, k)), *tensors(e[k] for e in extra)) for k in range(count)], terms=terms if extra else None)


def cotangents(op, f, columns, count):
    rng = np.random.default_rng(1)
    y = f(*tensors(member(columns, range(len(columns)), 0)))
    return [random_like(rng, y._value) for _ in range(count)]


def pulled(f, n, every):
    """The pullback of a function of n tensors, as a function of them and a cotangent."""
    def pull(*given):
        xs, g = given[:n], given[n]

        def of(*moving):
            call = list(xs)
            for i, x in zip(every, moving):
                call[i] = x
            return f(*call)

        return vjp(of, *(xs[i] for i in every))[1](g)

    return pull


def pushed(f, n, every):
    """The pushforward of a function of n tensors, as a function of them and their tangents."""
    def push(*given):
        xs = given[:n]

        def of(*moving):
            call = list(xs)
            for i, x in zip(every, moving):
                call[i] = x
            return f(*call)

        return jvp(of, tuple(xs[i] for i in every), given[n:])[1]

    return push


def doubled(f, n, every):
    """Σ g · y pulled back, and that along v: both orders at once, as a function of the tensors, g, and the vs."""
    pull = pulled(f, n, every)

    def second(*given):
        xs, g, vs = given[:n], given[n], given[n + 1:]

        def gradient(*moving):
            call = list(xs)
            for i, x in zip(every, moving):
                call[i] = x
            return pull(*call, g)

        return jvp(gradient, tuple(xs[i] for i in every), tuple(vs))[1]

    return second


@pytest.mark.sampled(49)
@pytest.mark.parametrize("op, parameters", CASES)
def test_values(op, parameters):
    f = function(op, parameters)
    for count in (3, 1):
        columns = members(op, count)
        for batched in subsets(len(columns)):
            check(op, parameters, "value", f, columns, batched)


@pytest.mark.sampled(34)
@pytest.mark.parametrize("op, parameters", DIFFERENTIABLE)
def test_both_modes(op, parameters):
    f, columns = function(op, parameters), members(op, 3)
    every = [i for i, c in enumerate(columns) if c[0].dtype.kind in "fc"]
    gs = cotangents(op, f, columns, 3)
    vs = [[random_like(np.random.default_rng(10 * i + k), x).astype(x.dtype) for k, x in enumerate(columns[i])] for i in every]
    for batched in subsets(len(columns)):
        check(op, parameters, "vjp", pulled(f, len(columns), every), columns, batched, [gs])
        check(op, parameters, "jvp", pushed(f, len(columns), every), columns, batched, vs)


@pytest.mark.sampled(32)
@pytest.mark.parametrize("op, parameters", SMOOTH)
def test_second_order(op, parameters):
    f, columns = function(op, parameters), members(op, 3)
    every = differentiable([c[0] for c in columns])
    gs = cotangents(op, f, columns, 3)
    vs = [[random_like(np.random.default_rng(10 * i + k), x) for k, x in enumerate(columns[i])] for i in every]
    for batched in subsets(len(columns)):
        check(op, parameters, "second derivative", doubled(f, len(columns), every), columns, batched, [gs, *vs], 1)


@pytest.mark.sampled(65)
@pytest.mark.parametrize("op, parameters", DIFFERENTIABLE)
def test_gradients_of_captured_leaves(op, parameters):
    """Gradients of leaves that vmap is called with: shared ones get the sum over the members."""
    f, columns, count = function(op, parameters), members(op, 3), 3
    gs = cotangents(op, f, columns, count)
    every = [i for i, c in enumerate(columns) if c[0].dtype.kind in "fc"]
    for batched in subsets(len(columns)):
        given, dims = stacked(columns, batched)
        leaves = [symgrad.tensor(x, requires_grad=i in every) for i, x in enumerate(given)]
        y = vmap(f, in_dims=dims)(*leaves)
        found = autograd.grad(y, [leaves[i] for i in every], symgrad.tensor(np.stack(gs)))
        rows = []
        for k in range(count):
            own = [symgrad.tensor(x, requires_grad=i in every) for i, x in enumerate(member(columns, batched, k))]
            rows.append(autograd.grad(f(*own), [own[i] for i in every], symgrad.tensor(gs[k])))
        for i, g, *each in zip(every, found, *rows):
            parts = np.stack([t.numpy() for t in each])
            expected, size = (parts, np.abs(parts)) if i in batched else (parts.sum(0), np.abs(parts).sum(0))
            assert g.shape == expected.shape and g.numpy().dtype == expected.dtype
            assert np.all(np.abs(g.numpy() - expected) <= ROUNDINGS * EPSILON * np.max(size, initial=0.0)), say(op, parameters, i, g, expected)


@pytest.mark.sampled(26)
@pytest.mark.parametrize("op, parameters", SMOOTH)
def test_jacobians_and_hessians(op, parameters):
    """Batches of unit vectors through rules whose values are not batched, and in a batch through those whose values are."""
    f, columns = function(op, parameters), members(op, 2)
    every = differentiable([c[0] for c in columns])
    ns = tuple(every)
    check(op, parameters, "jacfwd", jacfwd(f, ns), columns, range(len(columns)))
    check(op, parameters, "jacrev", jacrev(f, ns), columns, range(len(columns)))
    g = cotangents(op, f, columns, 1)[0]

    def total(*xs):
        return (f(*xs) * symgrad.tensor(g)).sum()

    xs = tensors(member(columns, range(len(columns)), 0))
    pulled_rows, pushed_columns = jacrev(f, ns)(*xs), jacfwd(f, ns)(*xs)
    agree(op, parameters, "jacrev", [t.unsqueeze(0) for t in pulled_rows], [pushed_columns])
    dense, pushed_gradient = hessian(total, ns)(*xs), jacfwd(grad(total, ns), ns)(*xs)
    scale = max([np.max(np.abs(t.numpy()), initial=0.0) for row in pushed_gradient for t in row])
    agree(op, parameters, "hessian", [[t.unsqueeze(0) for t in row] for row in dense], [pushed_gradient], [scale] * len(every)**2)
    check(op, parameters, "hessian", hessian(total, ns), columns, range(len(columns)))


INNER, OUTER = 1, 2


def twofold(n):
    """At which of two levels each of n arguments is batched: all choices of two, and some of more."""
    every = [c for c in itertools.product(range(4), repeat=n) if any(w & INNER for w in c) and any(w & OUTER for w in c)]
    return every if n < 3 else every[::len(every) // 12]


@pytest.mark.sampled(13)
@pytest.mark.parametrize("op, parameters", DIFFERENTIABLE)
def test_nested(op, parameters):
    f = function(op, parameters)
    columns = members(op, 6)
    n, every = len(columns), [i for i, c in enumerate(columns) if c[0].dtype.kind in "fc"]
    pull = pulled(f, n, every)
    g = cotangents(op, f, columns, 1)[0]
    for where in twofold(n):
        given, inner, outer = [], [], []
        for w, column in zip(where, columns):
            whole = np.stack(column).reshape((2, 3, *column[0].shape))
            given.append(whole if w == INNER | OUTER else whole[0] if w == INNER else whole[:, 0] if w == OUTER else whole[0, 0])
            inner.append(0 if w & INNER else None)
            outer.append(0 if w & OUTER else None)
        for what, of, rest in (("value", f, []), ("vjp", pull, [g])):
            none = [None] * len(rest)
            got = vmap(vmap(of, (*inner, *none)), (*outer, *none))(*tensors(given), *tensors(rest))
            for i in range(2):
                rows = [of(*tensors(x[(i,) * (w >> 1) + (j,) * (w & 1)] for w, x in zip(where, given)), *tensors(rest)) for j in range(3)]
                agree(op, parameters, f"{what} batched at {where}", [t[i] for t in got] if isinstance(got, tuple) else got[i], rows)


@pytest.mark.sampled(47)
@pytest.mark.parametrize("op, parameters", CASES)
def test_layouts_and_sizes(op, parameters):
    """Members along any dimension, in memory that is not contiguous, and none of them."""
    f = function(op, parameters)
    columns = members(op, 3)
    every = tuple(range(len(columns)))
    whole = vmap(f)(*tensors(stacked(columns, every)[0]))
    last = [np.stack(c, -1) for c in columns]
    spread = [np.repeat(np.stack(c), 2, 0)[::2] for c in columns]
    backwards = [np.stack(c[::-1])[::-1] for c in columns]
    for given, dims in ((last, -1), (spread, 0), (backwards, 0)):
        found = vmap(f, in_dims=dims)(*[symgrad.from_numpy(x) for x in given])
        agree(op, parameters, "value of another layout", found, [f(*tensors(member(columns, every, k))) for k in range(3)])
    out = vmap(f, out_dims=-1)(*tensors(stacked(columns, every)[0]))
    assert np.array_equal(np.moveaxis(out.numpy(), -1, 0), whole.numpy())
    none = [symgrad.tensor(np.stack(c)[:0], requires_grad=c[0].dtype.kind in "fc" and op.differentiable) for c in columns]
    empty = vmap(f)(*none)
    assert empty.shape == (0, *whole.shape[1:]) and empty.dtype is whole.dtype
    if op.differentiable:
        for x, d in zip(none, autograd.grad(empty, [x for x in none if x.requires_grad], empty.detach())):
            assert d.shape == x.shape
