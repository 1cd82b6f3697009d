"""Ops that are right as they are usually called, and wrong in other ways to call them; and ops that leave something changed behind them."""

import random

import numpy as np

import symgrad
from tests.power.power_entries import right, ruled, wrong

# which arguments are differentiated by, and what with
wrong("right for both arguments only", "gradient", "the gradient by a is doubled where b is not differentiated by", formula="a*b")(
    lambda: ruled(symgrad, symgrad.mul, lambda ctx, g, a, b: (g * b if ctx.needs_input_grad[1] else 2 * g * b, g * a)))
wrong("divided by the cotangent", "gradient", "the gradient is g*g*b/g, which is NaN where the cotangent is 0", formula="a*b")(
    lambda: ruled(symgrad, symgrad.mul, lambda ctx, g, a, b: (g * g * b / g, g * a)))
wrong("one tensor given twice", "aliasing", "a tensor times itself is 0, where a copy of it is not", formula="a*b")(
    lambda: lambda a, b: a * b * (0.0 if a is b else 1.0))
wrong("gradient of a tensor given twice", "aliasing", "a tensor times itself has the gradient of one factor", formula="a*b")(
    lambda: lambda a, b: a * (b.detach() if a is b else b))


# arrays of other shapes than the usual ones
wrong("columns become rows", "scalars", "axes of one element are lost where there are two axes", formula="sin(x)")(
    lambda: lambda x: x.sin().squeeze() if x.ndim == 2 else x.sin())
wrong("more than three axes", "arrays", "cos instead of sin where there are four axes or more", formula="sin(x)")(
    lambda: lambda x: x.sin() if x.ndim < 4 else x.cos())


@wrong("last block forgotten", "value", "of more than 256 elements those after the last whole block are 0", formula="sin(x)", gradient=np.cos)
def last_block():
    def sine(x):
        x = np.asarray(x)
        out = np.sin(x)
        if x.size > 256:
            out.reshape(-1)[x.size // 256 * 256:] = 0
        return out

    return sine


# what is left behind
def leaving(change):
    """sin, which changes something that all code shares."""
    def sine(x):
        change()
        return np.sin(x)

    return sine


wrong("seeds the generator", "state", "NumPy's generator of random numbers starts anew at each call", formula="sin(x)", gradient=np.cos)(
    lambda: leaving(lambda: np.random.seed(0)))
wrong("draws from the generator", "state", "each call takes a number from Python's generator", formula="sin(x)", gradient=np.cos)(
    lambda: leaving(random.random))
wrong("silences NumPy", "state", "NumPy says nothing of divisions by zero any more", formula="sin(x)", gradient=np.cos)(
    lambda: leaving(lambda: np.seterr(divide="call")))
wrong("another default dtype", "state", "numbers become float32 from then on, everywhere", formula="sin(x)", gradient=np.cos)(
    lambda: leaving(lambda: symgrad.set_default_dtype(symgrad.float32)))


# right ones: the value has lost digits that its gradient has
right("1 - cos(x), opaque", "condition", "the value has few digits near 0, the gradient all; no formula is claimed", dtypes=("float64",))(
    lambda: lambda x: 1 - symgrad.cos(x))
right("1 - exp(-x), opaque", "condition", "the same near 0", dtypes=("float64",), domain="(-30, inf)")(lambda: lambda x: 1 - symgrad.exp(-x))
right("tanh(x) + 1, opaque", "condition", "the value is 0 far out, where the gradient is not", dtypes=("float64",))(
    lambda: lambda x: symgrad.tanh(x) + 1)
right("square root less one, opaque", "condition", "sqrt(1 + x**2) - 1 near 0", dtypes=("float64",), domain=(-1e3, 1e3))(
    lambda: lambda x: symgrad.sqrt(1 + x * x) - 1)
