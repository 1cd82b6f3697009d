"""Ops that are right to the first order, or to the second, and wrong beyond."""

import numpy as np

from tests.power.power_entries import Rules, once, ruled, stopped, wrong

wrong("factor detached", "second", "the gradient is taken for a constant: its derivative is 0", lambda xp, x: xp.sin(x),
      lambda xp, y, x: xp.cos(stopped(x)), form="function", formula="sin(x)")
wrong("one of two factors detached", "second", "(1 + x) exp(x) whose exp is taken for a constant", lambda xp, x: x * xp.exp(x),
      lambda xp, y, x: (1 + x) * xp.exp(stopped(x)), form="function", formula="x*exp(x)", domain=(-5, 5))
wrong("factor detached, opaque", "second", "a detached factor, and no formula is claimed", lambda xp, x: xp.log(2 + xp.sin(x)),
      lambda xp, y, x: xp.cos(x) / (2 + xp.sin(stopped(x))), form="function")
wrong("saved result detached", "second", "the gradient of exp is its result, detached", lambda xp, x: xp.exp(x), lambda xp, y, x: stopped(y),
      form="function", formula="exp(x)", domain=(-5, 5))
wrong("mixed partial missing", "second", "b is detached in the gradient by a", lambda xp, a, b: a * b, lambda xp, y, a, b: stopped(b),
      lambda xp, y, a, b: stopped(a), form="function", formula="a*b")
wrong("not symmetric", "second", "the derivative of the gradient by a knows of b, the other way round not", lambda xp, a, b: a * xp.sin(b),
      lambda xp, y, a, b: xp.sin(b), lambda xp, y, a, b: stopped(a) * xp.cos(b), form="function", formula="a*sin(b)")
wrong("third order detached", "third", "the second derivative is right, and taken for a constant", lambda xp, x: xp.sin(x),
      Rules(lambda xp, x: xp.cos(x), (lambda xp, y, x: -xp.sin(stopped(x)),)).partial, form="function", formula="sin(x)")

# a helper whose own derivative is wrong
cosine_twice_as_steep = Rules(lambda xp, x: xp.cos(x), (lambda xp, y, x: -2 * xp.sin(x),))
cosine_off = Rules(lambda xp, x: xp.cos(x), (lambda xp, y, x: -(1 + 1e-6) * xp.sin(x),))
cosine_wrong_below = Rules(lambda xp, x: xp.cos(x), (lambda xp, y, x: -xp.sin(x) * (1 + 1.0 * (x < -1)),))
sine_of_wrong_slope = Rules(lambda xp, x: xp.sin(x), (lambda xp, y, x: 3 * xp.cos(x),))
cosine_wrong_later = Rules(lambda xp, x: xp.cos(x), (lambda xp, y, x: -sine_of_wrong_slope(xp, x),))
wrong("helper twice as steep", "second", "the helper in the gradient has a wrong derivative", lambda xp, x: xp.sin(x),
      cosine_twice_as_steep.partial, form="function", formula="sin(x)")
wrong("helper off by 1e-6", "second", "the helper in the gradient has a derivative off by 1e-6", lambda xp, x: xp.sin(x), cosine_off.partial,
      form="function", formula="sin(x)")
wrong("helper off by 1e-6, opaque", "second", "the same, and no formula is claimed", lambda xp, x: xp.sin(x), cosine_off.partial, form="function")
wrong("helper wrong below -1", "second", "the helper in the gradient has a wrong derivative where x < -1", lambda xp, x: xp.sin(x),
      cosine_wrong_below.partial, form="function", formula="sin(x)")
wrong("helper wrong at the third order", "third", "the helper's helper has a wrong derivative", lambda xp, x: xp.sin(x), cosine_wrong_later.partial,
      form="function", formula="sin(x)")
wrong("third order off by 1e-6, opaque", "third", "the third derivative is off by 1e-6, and no formula is claimed", lambda xp, x: xp.sin(x),
      Rules(lambda xp, x: xp.cos(x), (lambda xp, y, x: -Rules(lambda xp, x: xp.sin(x), (lambda xp, y, x: xp.cos(x) * (1 + 1e-6),))(xp, x),)).partial,
      form="function", domain=(-6, 6))

# the cotangent
wrong("cotangent detached", "second", "the pullback does not know that it depends on the cotangent", lambda xp, x: xp.sin(x),
      pullback=lambda xp, g, y, x: stopped(g) * xp.cos(x), formula="sin(x)")
wrong("pullback detached", "second", "the whole gradient is detached", lambda xp, x: xp.exp(-x), pullback=lambda xp, g, y,
      x: stopped(-g * xp.exp(-x)),
      formula="exp(-x)", domain=(-5, 5))


wrong("once differentiable", "second", "differentiable once, though three orders are claimed", formula="sinh(x)", domain=(-5, 5), order=3)(once)
wrong("backward in NumPy", "second", "the gradient is computed outside the graph, though three orders are claimed", formula="x**3",
      domain=(-5, 5), order=3)(
    lambda m: ruled(m, lambda x: x * x * x, lambda ctx, g, x: m.tensor(np.asarray(g.detach().numpy() * 3 * x.detach().numpy() ** 2))))


@wrong("hidden intermediate detached", "second", "an intermediate is kept on ctx as an array, which knows no derivative", formula="exp(sin(x))")
def hidden(m):
    class Hidden(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            inner = x.sin().exp()
            ctx.save_for_backward(x)
            ctx.inner = inner.detach().numpy().copy()
            return inner

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * m.tensor(ctx.inner) * x.cos()

    return Hidden
