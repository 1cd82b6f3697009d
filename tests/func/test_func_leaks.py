"""Memory of transforms: programs belong to their transform or to a bounded shared cache, and hold no graph, argument or constant."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.program import cache

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


TRANSFORMS = {  # of a scalar function, called on a vector
    "grad": lambda f, x: func.grad(f)(x),
    "grad of grad": nested,
    "three times": lambda f, x: nested(lambda z: func.grad(f)(z).sum(), x),
    "hessian": lambda f, x: func.hessian(f),
    "auto": lambda f, x: func.hessian(f, structure="auto"),
    "local": lambda f, x: func.hessian(f, structure="local"),
    "factors": lambda f, x: func.hessian(f, structure="factors")(x),
    "hvp": lambda f, x: func.hvp(f, x, x),
    "jacobian": lambda f, x: func.jacobian(f),
    "jacrev of grad": lambda f, x: func.jacrev(func.grad(f)),
    "laplacian": lambda f, x: func.laplacian(f),
    "vjp": lambda f, x: func.vjp(f, x)[1](tensor(1.0)),
    "jvp": lambda f, x: func.jvp(f, (x,), (x,)),
    "linearize": lambda f, x: func.linearize(f, x)[1](x),
    "jet": lambda f, x: func.jet(f, (x,), ([x, x],)),
    "jet differentiated": lambda f, x: func.grad(lambda w: func.jet(lambda z: f(z * w), (x,), ([x, x],))[1][1])(x),
    "vmap": lambda f, x: func.vmap(func.hessian(f))(symgrad.stack([x, x])),
    "checkpoint": lambda f, x: func.grad(lambda z: func.checkpoint(f, z))(x),
    "custom_vjp": custom,
    "operator": lambda f, x: func.hessian_operator(f)(x) @ np.ones(N),
    "trace": lambda f, x: func.hessian_trace(f)(x),
    "diagonal": lambda f, x: func.hessian_diag(f)(x),
    "functional": lambda f, x: symgrad.autograd.functional.hessian(f, x),
}
BODIES = {"plain": lambda x, c: (x * x * c).sum(), "curved": lambda x, c: (x * c).sin().sum() + c.sum(), "custom Function": lambda x, c: (
    Cube.apply(x) * c).sum(), "indexed": lambda x, c: (x[1:] * c[1:] * x[:-1]).sum(), "placed": lambda x, c: (x * c)[c.numpy() > 0].square().sum()}


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
