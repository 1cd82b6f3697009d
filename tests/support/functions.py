"""Functions for the tests of `autograd.Function`, derivatives of any order, and places where a forward can leave something."""

from collections import namedtuple

from symgrad import autograd, tensor
from symgrad.autograd import grad


def leaf(*numbers):
    return tensor(list(numbers) if len(numbers) > 1 else numbers[0], requires_grad=True)


def function_of(forward, backward, name="Bad"):
    """A Function of one tensor."""
    return type(name, (autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


class Two(autograd.Function):
    """x y and x + y."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        return a * y + b, a * x + b


def derivatives(y, x, order=3):
    """The value and the derivatives of a number, each by the one before."""
    out = [y.item()]
    for k in range(order):
        (y,) = grad(y, x, create_graph=k + 1 < order)
        out.append(y.item())
    return out


class Box:
    """Anything with attributes."""

    def __init__(self, content):
        self.content = content


class Slots:
    """Anything without a dictionary."""

    __slots__ = ("content",)

    def __init__(self, content):
        self.content = content


Named = namedtuple("Named", "content")
LEFT = {}


def left(make):
    """A forward that leaves what `make` gives on ctx, or leaves things by itself if that is None."""
    def forward(ctx, x):
        found = make(ctx, x)
        if found is not None:
            ctx.square = found
        return x * x * x

    return forward


def cubed(get):
    return lambda ctx, g: g * 3 * get(ctx)


def saving(forward, backward, name):
    """A Function that saves its arguments, from `forward(*xs)` and `backward(g, *xs)`."""
    def kept(ctx, *xs):
        ctx.save_for_backward(*xs)
        return forward(*xs)

    return function_of(kept, lambda ctx, g: backward(g, *ctx.saved_tensors), name)
