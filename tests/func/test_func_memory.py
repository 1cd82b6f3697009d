"""Results of transforms alias nothing: a write into one changes no argument, constant, other result or later call."""

import itertools

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.trees import flatten

tensor = symgrad.tensor


class Scaled(symgrad.autograd.Function):
    """An op whose backward returns a tensor that it stores."""

    slope = tensor([2.0, 3.0, 4.0])

    @staticmethod
    def forward(ctx, x):
        return x * Scaled.slope

    @staticmethod
    def backward(ctx, g):
        return Scaled.slope


C = tensor([1.0, 2.0, 3.0])
M = tensor([[1.0, 2.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 3.0]])
ONE = tensor(1.0)
FUNCTIONS = {  # of a vector
    "identity": lambda x: x, "shifted": lambda x: x + 1, "view": lambda x: x[1:], "expanded": lambda x: x.expand(2, 3), "constant": lambda x: C,
    "constant and argument": lambda x: (x, C), "twice": lambda x: (x, x), "times one": lambda x: x * ONE, "times a constant": lambda x: x * C,
    "reshaped": lambda x: x.reshape(3, 1), "matrix": lambda x: M @ x, "square": lambda x: x * x, "chosen": lambda x: symgrad.where(C > 1.5, x, C),
    "detached": lambda x: x * x.detach(),
}
SCALARS = {
    "distance": lambda x: ((x - C) ** 2).sum(), "sum": lambda x: x.sum(), "weighted": lambda x: (C * x).sum(), "form": lambda x: x @ M @ x / 2,
    "cubes": lambda x: (x**3).sum(), "exponentials": lambda x: x.exp().sum(), "product": lambda x: x.prod(), "one element": lambda x: x[1],
    "dot": lambda x: x.dot(C), "half": lambda x: (x * x).sum() / 2, "relu": lambda x: symgrad.relu(x - C).square().sum(),
    "constant": lambda x: ONE, "logarithm": lambda x: symgrad.logsumexp(x, 0), "shared factor": lambda x: x.sum() * x.sum(),
}
V, W = tensor([1.0, -1.0, 2.0]), tensor([0.5, 1.0, 1.5])


def like(y):
    """Ones in the form of an output."""
    leaves, form = flatten(y)
    return form.unflatten([symgrad.ones(*t.shape) for t in leaves])


TRANSFORMS = {
    "vjp": lambda f: lambda x: (lambda y, pull: (y, pull(COTANGENTS(y)), pull(COTANGENTS(y))))(*func.vjp(f, x)),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (V,)),
    "linearize": lambda f: lambda x: (lambda y, along: (y, along(V), along(V)))(*func.linearize(f, x)),
    "jacrev": func.jacrev, "jacfwd": func.jacfwd,
    "jet": lambda f: lambda x: func.jet(f, (x,), ([V, W],)),
    "directional_derivatives": lambda f: lambda x: func.directional_derivatives(f, 2)(x, V),
    "vmap": lambda f: lambda x: func.vmap(f)(symgrad.stack([x, x])),
    "hessian": func.hessian,
}
OF_SCALARS = {
    "grad": func.grad, "grad_and_value": func.grad_and_value, "hessian": func.hessian, "hessian auto": lambda f: func.hessian(f, structure="auto"),
    "hessian local": lambda f: func.hessian(f, structure="local"), "hvp": lambda f: lambda x: func.hvp(f, x, V),
    "vhp": lambda f: lambda x: func.vhp(f, x, V), "laplacian": func.laplacian, "value_and_laplacian": func.value_and_laplacian,
    "grad of grad": lambda f: func.grad(lambda x: func.grad(f)(x).sum()), "hessian of a gradient": lambda f: func.jacrev(func.grad(f)),
    "chunks": lambda f: func.hessian(f, chunk_size=2), "jacobian": lambda f: func.jacobian(f),
    "derivatives": lambda f: lambda x: func.derivatives(lambda t: f(t * C), 3)(tensor(1.0)),
    "vmap of hessian": lambda f: lambda x: func.vmap(func.hessian(f))(symgrad.stack([x, x])),
    "two arguments": lambda f: lambda x: func.hessian(lambda a, b: f(a + b), (0, 1))(x, V),
}
_kept: dict = {}


def COTANGENTS(y):
    """Equal cotangents at every call, so that a result that shares their memory is found."""
    shapes = tuple(t.shape for t in flatten(y)[0])
    return _kept.setdefault(shapes, like(y))


def arrays(tree):
    out = []
    for t in flatten(tree)[0]:
        if hasattr(t, "indptr"):
            out.append(t.data)
        else:
            out.append(t._array() if isinstance(t, symgrad.Tensor) else t)
    return [a for a in out if isinstance(a, np.ndarray)]


def attacked(transformed, x):
    """Call three times, and write into every result in between."""
    held = [x, C, M, ONE, V, W, Scaled.slope, *itertools.chain.from_iterable(flatten(k)[0] for k in _kept.values())]
    before, first = [t.detach().clone() for t in held], None
    for _ in range(4):
        found = arrays(transformed(x))
        if first is None:
            first = [a.copy() for a in found]
        assert len(found) == len(first) and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, first)), "a later call"
        for a, b in itertools.combinations(found, 2):
            assert not np.shares_memory(a, b), "two results"
        for a in found:
            assert a.flags.writeable
            a += 100.0
        assert all(symgrad.equal(a, b) for a, b in zip(held, before)), "an argument or a constant"


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_for_functions_with_tensor_outputs(name, function):
    attacked(TRANSFORMS[name](FUNCTIONS[function]), tensor([0.5, 1.5, 2.5]))


@pytest.mark.sampled(142)
@pytest.mark.parametrize("name", OF_SCALARS)
@pytest.mark.parametrize("function", SCALARS)
def test_results_for_functions_with_scalar_outputs(name, function):
    attacked(OF_SCALARS[name](SCALARS[function]), tensor([0.5, 1.5, 2.5]))


@pytest.mark.parametrize("name", ["hessian", "laplacian", "grad of grad", "jacobian"])
@pytest.mark.parametrize("function", ["distance", "weighted", "half", "sum"])
def test_results_inside_another_transform(name, function):
    def inner(x):
        found = OF_SCALARS[name](SCALARS[function])(x)
        first = found.clone()
        found.add_(100.0)
        return first.sum() + (found - 100.0).sum() + (OF_SCALARS[name](SCALARS[function])(x) * C).sum()

    attacked(func.grad(inner), tensor([0.5, 1.5, 2.5]))


def test_laplacians_of_points():
    points = tensor([[0.5, 1.5, 2.5], [1.0, 2.0, 3.0]])
    for f in (lambda x: ((x - C) ** 2).sum(-1), lambda x: (C * x).sum(-1), lambda x: (x**3).sum(-1), lambda x: (x.tanh() @ M).sum(-1)):
        attacked(func.laplacian(f, dim=-1), points)
    attacked(func.laplacian(lambda x: x * x, dim=()), points)
    attacked(func.divergence(lambda x: x * C, dim=-1), points)
    attacked(func.curl(lambda x: x * C, dim=-1), points)


def test_a_backward_that_returns_a_saved_tensor():
    attacked(func.grad(lambda x: Scaled.apply(x).sum()), tensor([0.5, 1.5, 2.5]))
    attacked(lambda x: func.vjp(Scaled.apply, x)[1](V), tensor([0.5, 1.5, 2.5]))


def test_scalars_do_not_share_a_version():
    x = tensor(2.0, requires_grad=True)
    y = x * symgrad.func.grad(lambda t: t)(tensor(1.0))
    func.grad(lambda t: t)(tensor(1.0)).add_(1.0)
    func.jvp(lambda t: t + 1, (tensor(1.0),), (x.detach(),))[1].add_(1.0)
    y.backward()
    assert x.grad.item() == 1.0 and x.item() == 2.0


def test_results_in_fresh_memory_are_not_copied():
    """A result in fresh memory is returned without a copy."""
    from symgrad.func.evaluation import unshared

    fresh, other = np.ones(3), np.ones((2, 3))
    assert unshared(fresh) is fresh
    view = other.reshape(6)
    del other
    assert unshared(view) is view
    again = fresh
    assert unshared(fresh) is not fresh and unshared(again) is not again
