"""Memory of transforms: results alias nothing, programs belong to their transform or to a bounded cache, and hold no argument or constant."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.func.evaluation import unshared
from symgrad.program import cache
from symgrad.trees import flatten
from tests.engine.test_memory import shared
from tests.support.tables import table

C, M = symgrad.tensor([1.0, -2.0, 0.5]), symgrad.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])

# Many of these have derivatives that do not depend on the argument, which a remembered program may hand out again and again.
SCALARS = table(globals(), "SCALARS")
VECTORS = table(globals(), "VECTORS")
NUMBERS = table(globals(), "NUMBERS")


def solved(x):
    """The solution y of M y = x, by a number of steps."""
    y = symgrad.zeros(3)
    for _ in range(60):
        y = y - 0.2 * (M @ y - x)
    return y


def doubled(of_rows):
    return lambda x: of_rows(symgrad.stack([x, 2 * x]))


def product(operator):
    return lambda x, v: operator(x) @ v


def of(*names):
    """The transforms that are called with a function alone."""
    return {name: getattr(func, name) for name in names}


def at(*names):
    """Those that are called with a function, a point and a vector."""
    return {name: lambda f, name=name: lambda x, v: getattr(func, name)(f, x, v) for name in names}


MODES = {**table(globals(), "MODES"), **of("jacrev", "jacfwd")}
OF_SCALARS = {**table(globals(), "OF_SCALARS"), **at("hvp", "vhp"), **of(
    "grad", "grad_and_value", "hessian", "laplacian", "value_and_laplacian", "hessian_diag", "hessian_trace", "jacrev", "jacfwd", "hessian_factors",
    "extreme_eigenvalues")}
OF_VECTORS = {**table(globals(), "OF_VECTORS"), **MODES, **of("jacobian", "divergence", "curl")}
OF_NUMBERS = {**table(globals(), "OF_NUMBERS"), **MODES, **{name: OF_SCALARS[name] for name in ("grad", "grad_and_value", "hessian", "hvp", "vjp")}}
POINT, NUMBER = symgrad.tensor([0.3, 0.7, -1.2]), symgrad.tensor(0.3)
TABLES = {"scalars": (OF_SCALARS, SCALARS, POINT), "vectors": (OF_VECTORS, VECTORS, POINT), "numbers": (OF_NUMBERS, NUMBERS, NUMBER)}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("transform, of", [(name, of) for of, (table, _, _) in TABLES.items() for name in table])
def test_transforms_share_no_memory(transform, of):
    table, functions, x = TABLES[of]
    wrong, called = [], 0
    for name, f in functions.items():
        call = table[transform](f)
        for args in ((x.clone(),), (x.clone(), 1 + x)):
            found = shared(call, args)
            called += found is not None
            if found:
                wrong.append(f"{name}: {found}")
    assert not wrong, "\n".join(wrong)
    assert called


class Scaled(symgrad.autograd.Function):
    """An op whose backward returns a tensor that it stores."""

    @staticmethod
    def forward(ctx, x):
        return x * C

    @staticmethod
    def backward(ctx, g):
        return C


def test_a_linear_map_shares_no_memory_between_its_calls():
    for f in (*VECTORS.values(), Scaled.apply):
        x = symgrad.tensor([0.3, 0.7, -1.2])
        for call in (func.linearize(f, x)[1], func.vjp(f, x)[1]):
            assert not shared(call, (C + 1,))


REPEATED = table(globals(), "REPEATED")


@pytest.mark.parametrize("kind", ["quadratic", "cubic", "linear"])
@pytest.mark.parametrize("name", REPEATED)
def test_results_of_repeated_calls_may_be_written(name, kind):
    """Also constant ones, and those of programs: the next call gives the same."""
    matrix = symgrad.tensor([[2.0, 1.0], [1.0, 3.0]])
    f = {"quadratic": lambda x: x @ matrix @ x, "cubic": lambda x: (x**3).sum() + x.prod().tanh(), "linear": lambda x: (matrix @ x).sum()}[kind]
    transform, x = REPEATED[name](f), symgrad.tensor([0.5, -1.5])
    first = None
    for _ in range(7):
        found = [t for t in flatten(transform(x))[0] if isinstance(t, symgrad.Tensor)]
        first = first or [t.clone() for t in found]
        for a, b in zip(found, first):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-14)
            a.detach().fill_(77.0)
    assert matrix.tolist() == [[2.0, 1.0], [1.0, 3.0]] and x.tolist() == [0.5, -1.5]


def test_results_of_points_share_no_memory():
    points = symgrad.stack([POINT, 2 * POINT])
    for f in (lambda x: ((x - C) ** 2).sum(-1), lambda x: (C * x).sum(-1), lambda x: (x.tanh() @ M).sum(-1)):
        assert not shared(func.laplacian(f, dim=-1), (points,))
    for operator in (func.laplacian(lambda x: x * x, dim=()), func.divergence(lambda x: x * C, dim=-1), func.curl(lambda x: x * C, dim=-1)):
        assert not shared(operator, (points,))


def test_scalars_do_not_share_a_version():
    x = symgrad.tensor(2.0, requires_grad=True)
    y = x * func.grad(lambda t: t)(NUMBER)
    func.grad(lambda t: t)(NUMBER).add_(1.0)
    func.jvp(lambda t: t + 1, (NUMBER,), (x.detach(),))[1].add_(1.0)
    y.backward()
    assert x.grad.item() == 1.0 and x.item() == 2.0


def test_results_in_fresh_memory_are_not_copied():
    fresh, other = np.ones(3), np.ones((2, 3))
    assert unshared(fresh) is fresh
    view = other.reshape(6)
    del other
    assert unshared(view) is view
    again = fresh
    assert unshared(fresh) is not fresh and unshared(again) is not again


tensor, N = symgrad.tensor, 50


class Cube(symgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g

    @staticmethod
    def vmap(info, in_dims, x):
        return Cube.apply(x), in_dims[0]


def nested(f, x):
    return func.grad(lambda y: func.grad(f)(y).sum())(x)


def custom(f, x):
    g = func.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, t: (t * x,))
    return func.jacrev(func.grad(g))(x)


TRANSFORMS = table(globals(), "TRANSFORMS")
BODIES = table(globals(), "BODIES")


REFUSED = ("jvp", "linearize", "jet", "jet differentiated")  # for a Function without a pushforward


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name, body", [(name, body) for name in TRANSFORMS for body in BODIES if body != "custom Function" or name not in REFUSED])
def test_transforms_are_collected(name, body):
    left = {}

    def go():
        c, x, g = tensor(np.linspace(0.5, 1.5, N)), tensor(np.linspace(-1.0, 2.0, N)), BODIES[body]
        nodes = []

        def f(z):
            y = g(z, c)
            if y._node is not None:
                nodes.append(weakref.ref(y._node))
            return y

        for _ in range(4):
            found = TRANSFORMS[name](f, x)
            for _ in range(4 if callable(found) and not isinstance(found, symgrad.Tensor) else 0):
                found(x)
        left.update({"constant": weakref.ref(c._value), "argument": weakref.ref(x._value), "tensor": weakref.ref(c), "function": weakref.ref(f)})
        left.update({f"node {i}": node for i, node in enumerate(nodes)})

    go()
    gc.collect()
    assert not [word for word, reference in left.items() if reference() is not None]


@pytest.mark.sweep
def test_the_shared_cache_is_bounded():
    """The forms of many large functions that are forgotten."""
    x = tensor(np.linspace(0.5, 1.5, 100_000))
    nested(lambda z: (z * z).sum(), x)
    gc.collect()
    tracemalloc.start()
    for k in range(12):
        nested(lambda z, k=k: (z ** (k + 2) * (z + k).sin()).sum(), x)
        func.hessian(lambda z, k=k: (z[k:] * z[:len(z) - k]).square().sum(), structure="auto")(x)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < cache.BUDGET * 1.25


def test_a_cache_evicts_the_least_recently_used_entry():
    known = cache.Cache(4 * (cache.LEAST + 10))
    for k in range(4):
        known.put(k, f"value {k}", 10)
    assert known.get(0) == "value 0" and known.put(4, "value 4", 9) == "value 4"
    assert known.get(1) is None and known.get(0) == "value 0" and known.nbytes <= known.budget
    known.put(5, "large", 3 * cache.LEAST)
    assert known.get(5) is None
    for k in range(10, 20):
        known.put(k, k, 8)
    assert known.nbytes <= known.budget and known.get(19) == 19
