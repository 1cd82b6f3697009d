"""Second and third derivatives through what a Function's forward stores on ctx for its backward.

Bad is x³, and its backward wants x²; so the second and third derivative of x Bad(x) at 2 are 48.
"""

import gc

import pytest

import symgrad
from symgrad import tensor
from symgrad.autograd import grad
from symgrad.graph.node import Node
from tests.support.functions import cubed, derivatives, function_of, leaf, left
from tests.support.tables import table


def nested(ctx, x):
    """The square by another Function, which leaves something itself."""
    inner = function_of(left(lambda inner, x: x * x), cubed(lambda inner: inner.square), "Inner")
    return inner.apply(x) / x


def written(ctx, x):
    y = x * 1
    y.mul_(x)
    return y


def overwritten(ctx, x):
    y = symgrad.ones_like(x)
    y.copy_(x)
    y *= x
    return y


def elements(ctx, x):
    y = symgrad.zeros(3)
    y[0] = x
    y[1] = (y[0] * 1) * x
    return y


def by_view(ctx, x):
    y = x.reshape(1) * 1
    y[:1].mul_(x)
    return y


def under_view(ctx, x):
    y = x.reshape(1) * 1
    view = y[:1]
    y.mul_(x)
    return view


def enabled(ctx, x):
    with symgrad.enable_grad():
        return x * x


def dirtied(ctx, x):
    y = x.clone()
    ctx.before = y
    y += 1
    return (y - 1) * x


def grouped(ctx, x):
    return [[{"deep": (x * x,)}]]


RIGHT = table(globals(), "RIGHT")


@pytest.mark.parametrize("how", RIGHT)
def test_higher_derivatives_through_attributes_of_ctx(how):
    make, get = RIGHT[how]
    Bad = function_of(left(make), cubed(get))
    x = leaf(2.0)
    assert derivatives(x * Bad.apply(x), x) == [16.0, 32.0, 48.0, 48.0]
    (g,) = grad(x * Bad.apply(x), x, create_graph=True)
    g.backward()
    assert x.grad.item() == 48.0


def test_an_output_that_the_backward_uses():
    for keep, get in ((lambda ctx, y: ctx.save_for_backward(y), lambda ctx: ctx.saved_tensors[0]),
                      (lambda ctx, y: setattr(ctx, "y", y), lambda ctx: ctx.y)):
        def forward(ctx, x, keep=keep):
            y = x.exp()
            keep(ctx, y)
            return y

        Exp = function_of(forward, lambda ctx, g, get=get: g * get(ctx))
        x = leaf(0.0)
        assert derivatives(Exp.apply(x), x, 4) == [1.0] * 5
        y = Exp.apply(x)
        assert not hasattr(y.grad_fn, "y") or y.grad_fn.y.grad_fn is y.grad_fn


def test_tensors_on_ctx_do_not_change():
    """Tensors on ctx are constants to everybody else, before and after a derivative of the derivative."""
    Cube = function_of(left(lambda ctx, x: x * x), cubed(lambda ctx: ctx.square))
    x = leaf(2.0)
    y = Cube.apply(x)
    for _ in range(2):
        assert not y.grad_fn.square.requires_grad and y.grad_fn.square.is_leaf
        assert grad(y.grad_fn.square * x, x)[0].item() == 4.0
        grad(y, x, create_graph=True)


def test_tensors_of_an_earlier_call_are_constants():
    """A mean that runs along is no part of any graph, and does not keep those of earlier calls."""
    mean = tensor(0.0)

    def forward(ctx, x):
        mean.mul_(0.5).add_(0.5 * x)
        ctx.mean = mean * 1
        return x * x

    Running = function_of(forward, lambda ctx, g: g * ctx.mean)
    x = leaf(2.0)
    for _ in range(3):
        y = Running.apply(x)
    gc.collect()
    before = sum(issubclass(type(o), Node) for o in gc.get_objects())
    for _ in range(20):
        y = Running.apply(x)
    gc.collect()
    assert sum(issubclass(type(o), Node) for o in gc.get_objects()) <= before
    assert not mean.requires_grad and mean.is_leaf and grad(mean * x, x)[0].item() == mean.item()
    (g,) = grad(y, x, create_graph=True)
    assert grad(g, x)[0].item() == 0.5  # the mean as this call made it


def test_tensors_written_in_a_forward_keep_their_node():
    w, y = leaf(3.0), None

    def forward(ctx, x):
        w.mul_(2)
        if y is not None:
            y.add_(1)
        return x * w

    Writing = function_of(forward, lambda ctx, g: g)
    x = leaf(2.0)
    assert Writing.apply(x).item() == 12.0
    assert w.requires_grad and w.is_leaf and w.item() == 6.0
    y = w * 1
    Writing.apply(x)
    assert y.grad_fn.name() == "MulBackward0" and y.item() == 7.0
    grad(y, w)

    def fail(ctx, x):
        x.mul_(2)
        raise ValueError("no")

    y = x * 1
    with pytest.raises(ValueError, match="no"):
        function_of(fail, None).apply(y)
    assert y.grad_fn.name() == "MulBackward0" and symgrad.is_grad_enabled()
