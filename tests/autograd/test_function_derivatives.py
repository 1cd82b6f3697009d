"""Second and third derivatives through what a Function's forward stores on ctx for its backward.

Bad is x³, and its backward wants x²; so the second and third derivative of x Bad(x) at 2 are 48.
Where the forward stores numbers computed outside of the library there is no right second derivative: it raises and names the attribute.
"""

import gc

import numpy as np
import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import grad
from symgrad.autograd.function import once_differentiable
from symgrad.graph.node import Node
from tests.support.functions import LEFT, cubed, derivatives, function_of, leaf, left
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


class Store:
    """Where a forward may put things."""

    square = 0.0


ARRAY = np.zeros(())


def fill_array(ctx, x):
    ARRAY[...] = x.item() ** 2


def set_data(ctx, x):
    y = x * 1
    y.data = (x * x).data
    return y


def write_data(ctx, x):
    y = x * 1
    y.data.mul_(x.detach())
    return y


def write_detached(ctx, x):
    y = x * 1
    y.detach().mul_(x)
    return y


def write_numpy(ctx, x):
    y = (x * 1).reshape(1)
    y.numpy()[:] **= 2
    return y


def write_and_go_on(ctx, x):
    y = x * 1
    y.detach().mul_(x)
    return y * 1


def write_out(ctx, x):
    y = symgrad.empty(())
    symgrad.mul(x, x, out=y)
    return y


def from_a_leaf(ctx, x):
    with symgrad.enable_grad():
        inner = x.detach().requires_grad_()
        return inner * inner


def grad_inside(ctx, x):
    with symgrad.enable_grad():
        inner = x.detach().requires_grad_()
        (g,) = grad(inner ** 3, inner)
    return g / 3


def backward_inside(ctx, x):
    with symgrad.enable_grad():
        inner = x.detach().requires_grad_()
        (inner ** 3).backward()
    return inner.grad / 3


@symgrad.enable_grad()
def slope(x):
    return grad(x ** 3, x)[0] / 3


REFUSED = table(globals(), "REFUSED")


@pytest.mark.parametrize("how", REFUSED)
def test_a_second_derivative_that_would_be_wrong_is_refused(how):
    make, get = REFUSED[how]
    Bad = function_of(left(make), cubed(get))
    for _ in range(2):  # numbers of the first call are still there in the second
        x = leaf(2.0)
        assert grad(x * Bad.apply(x), x)[0].item() == 32.0
        (g,) = grad(x * Bad.apply(x), x, create_graph=True)
        assert g.item() == 32.0
        with pytest.raises(RuntimeError, match=r"Bad: the second derivative would be wrong: .*(Save|mark|wrote|written)"):
            grad(g, x)
        (g,) = grad(x * Bad.apply(x), x, create_graph=True)
        with pytest.raises(RuntimeError, match="would be wrong"):
            (g * x).backward()


def test_the_error_names_the_attribute_of_ctx():
    for make, name in ((lambda ctx, x: x.item(), "ctx.square"), (lambda ctx, x: [1, {"a": float(x)}], r"ctx.square\[1\]\['a'\]"),
                       (lambda ctx, x: ctx.save_for_backward(tensor(x.item())), r"ctx.saved_tensors\[0\]"),
                       (lambda ctx, x: LEFT.update(number=x.item()), "LEFT")):
        Bad = function_of(left(make), lambda ctx, g: g * LEFT.get("none", 1))
        x = leaf(2.0)
        (g,) = grad(x * Bad.apply(x), x, create_graph=True)
        with pytest.raises(RuntimeError, match=f"left {name}"):
            grad(g, x)


def test_what_is_not_refused():
    """Numbers that were given, that are whole, or that were there before; inputs and outputs, however the forward computed."""
    constant, before = tensor(3.0), []

    class Numpy(autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, weight, options):
            before.append(x * x)
            ctx.before = before[-1]
            y = symgrad.from_numpy(np.array(x.detach().numpy() ** 3)) * factor
            ctx.save_for_backward(x, y, weight)
            ctx.factor, ctx.weight, ctx.options, ctx.shape, ctx.count, ctx.name = factor, weight, options, x.shape, int(x.numel()), "conv2d"
            ctx.mask = x > 0
            return y

        @staticmethod
        def backward(ctx, g):
            x, y, weight = ctx.saved_tensors
            return g * 3 * ctx.before * ctx.factor * ctx.mask, None, None, None

    x = leaf(2.0)
    assert derivatives(x * Numpy.apply(x, 0.5, constant, {"rate": 0.1}), x) == [8.0, 16.0, 24.0, 24.0]

    def branching(ctx, x):
        ctx.cube = x ** 3 if x > 1 and bool(x < 5) else x
        return ctx.cube * x

    Fourth = function_of(branching, lambda ctx, g: g * 4 * ctx.cube)
    assert derivatives(Fourth.apply(x), x) == [16.0, 32.0, 48.0, 48.0]


def test_sorting_and_selection_in_a_forward_are_recorded():
    """The places are whole numbers, though the library looks at values to find them."""
    def forward(ctx, x):
        ctx.square = [x.sort().values, x.topk(2).values, x.median(), x.max(0).values, x.argsort()]
        ctx.square = ctx.square[0] ** 2
        return (x ** 3).sort().values

    Sorted = function_of(forward, lambda ctx, g: 3 * (g * ctx.square))
    x = tensor([1.0, 2.0], requires_grad=True)
    (g,) = grad((x * Sorted.apply(x)).sum(), x, create_graph=True)
    assert grad(g.sum(), x)[0].tolist() == [12.0, 48.0]


def test_a_backward_that_is_marked_once_differentiable():
    class Cube(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.square = x.item() ** 2
            return x ** 3

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not symgrad.is_grad_enabled()
            return g * 3 * ctx.square

    x = leaf(2.0)
    for y in (Cube.apply(x), x * Cube.apply(x)):
        (g,) = grad(y, x, create_graph=True)
        with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"):
            grad(g, x)
    assert Cube.backward.__name__ == "backward"
