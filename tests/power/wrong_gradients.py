"""Ops of elements with a right value and a wrong first derivative, or with a right one, and wrong ones beyond."""

import numpy as np

import symgrad
from symgrad.func import custom_jvp, custom_vjp
from tests.power.power_entries import Rules, once, one_where, ruled, stopped, unregistered, wrong

# everywhere
wrong("factor forgotten", "gradient", "x instead of 2x", lambda xp, x: x * x, lambda xp, y, x: x, formula="x**2")
wrong("wrong sign", "gradient", "sin instead of -sin", lambda xp, x: xp.cos(x), lambda xp, y, x: xp.sin(x), formula="cos(x)")
wrong("term dropped", "gradient", "exp(x) instead of (1 + x) exp(x)", lambda xp, x: x * xp.exp(x), lambda xp, y, x: xp.exp(x), formula="x*exp(x)")
wrong("partials exchanged", "gradient", "the gradients of the two arguments change places", lambda xp, a, b: a * a * b, lambda xp, y, a, b: a * a,
      lambda xp, y, a, b: 2 * a * b, formula="a**2*b")
wrong("gradient off by 1e-6", "gradient", "times 1 + 1e-6", lambda xp, x: xp.sin(x), lambda xp, y, x: xp.cos(x) * (1 + 1e-6), formula="sin(x)")
wrong("gradient off by 1e-6, opaque", "gradient", "times 1 + 1e-6, and no formula is claimed", lambda xp, x: xp.sin(x) * xp.exp(x / 4),
      lambda xp, y, x: (xp.cos(x) + xp.sin(x) / 4) * xp.exp(x / 4) * (1 + 1e-6), form="function", domain=(-4, 4))
wrong("zero for a small function", "gradient", "0 for 1e-6 sin(x)", lambda xp, x: 1e-6 * xp.sin(x), lambda xp, y, x: 0 * x, formula="0.000001*sin(x)")
wrong("zero for a small function, opaque", "gradient", "0 for 1e-6 sin(x), and no formula is claimed", lambda xp, x: 1e-6 * xp.sin(x),
      lambda xp, y, x: 0 * x, form="function")
wrong("chain factor forgotten", "gradient", "cos(3x) instead of 3 cos(3x)", lambda xp, x: xp.sin(3 * x), lambda xp, y, x: xp.cos(3 * x),
      formula="sin(3*x)")
wrong("factor forgotten, opaque", "gradient", "half of the gradient, and no formula is claimed", lambda xp, x: xp.log(1 + x * x),
      lambda xp, y, x: x / (1 + x * x), form="function")
wrong("one argument of two", "gradient", "None for the second argument", lambda xp, a, b: a * xp.sin(b), lambda xp, y, a, b: xp.sin(b), None,
      form="function", formula="a*sin(b)")
wrong("zero for one of two", "gradient", "0 for the second argument, and no formula is claimed", lambda xp, a, b: a + a * xp.tanh(b),
      lambda xp, y, a, b: 1 + xp.tanh(b), lambda xp, y, a, b: 0 * b, form="function", elementwise=True, shapes=((3,), (3,)))
wrong("straight through", "gradient", "the gradient of floor is 1", lambda xp, x: xp.floor(x), lambda xp, y, x: 1 + 0 * x, form="function",
      formula="floor(x)", domain=(-4.75, 4.75), special=tuple((float(k),) for k in range(-4, 5)))
wrong("base of the logarithm", "gradient", "1/x is the gradient of log, not of log2", lambda xp, x: xp.log2(x), lambda xp, y, x: 1 / x,
      point="positive",
      formula="log2(x)", domain="positive")

# somewhere
wrong("gradient wrong below -1", "gradient", "3x instead of 2x where x < -1", lambda xp, x: x * x, lambda xp, y, x: xp.where(x < -1, 3 * x, 2 * x),
      formula="x**2")
wrong("gradient wrong between -8 and -2", "gradient", "3x instead of 2x where -8 < x < -2", lambda xp, x: x * x,
      lambda xp, y, x: xp.where(xp.logical_and(x < -2, x > -8), 3 * x, 2 * x), form="function", formula="x**2")
wrong("gradient wrong beyond 40", "gradient", "0 where x > 40", lambda xp, x: xp.sqrt(1 + x * x), lambda xp, y, x: xp.where(x > 40, 0 * x, x / y),
      formula="sqrt(1 + x**2)", domain=(-1e6, 1e6))
wrong("gradient wrong beyond 1e6, opaque", "gradient", "0 where x > 1e6, and no formula is claimed", lambda xp, x: xp.atan(x) + x,
      lambda xp, y, x: xp.where(x > 1e6, 0 * x, 1 + 1 / (1 + x * x)), form="function", domain=(-1e9, 1e9))
wrong("right at whole numbers", "gradient", "sin(pi x)/1000 too much", lambda xp, x: x * x,
      lambda xp, y, x: 2 * x + xp.sin(3.141592653589793 * x) / 1000, formula="x**2")
wrong("gradient wrong at ties", "gradient", "0 where the arguments are equal", lambda xp, a, b: a * b + a,
      lambda xp, y, a, b: xp.where(a == b, 0 * b, b + 1), lambda xp, y, a, b: a, formula="a*b + a")
wrong("gradient wrong at 0", "gradient", "0 instead of 1 at x = 0", lambda xp, x: xp.sin(x), lambda xp, y, x: xp.where(x == 0, 0 * x, xp.cos(x)),
      form="function", formula="sin(x)")
wrong("gradient clipped", "gradient", "clipped to -1...1", lambda xp, x: x * x, lambda xp, y, x: xp.minimum(xp.maximum(2 * x, -1 + 0 * x), 1 + 0 * x),
      formula="x**2")
wrong("gradient off for tiny", "gradient", "0 where |x| < 1e-5", lambda xp, x: xp.sinh(x),
      lambda xp, y, x: xp.where(xp.abs(x) < 1e-5, 0 * x, xp.cosh(x)), formula="sinh(x)", domain=(-3, 3))
wrong("NaN in between", "gradient", "NaN where 2 < x < 3", lambda xp, x: x * x,
      lambda xp, y, x: xp.where(xp.logical_and(x > 2, x < 3), xp.log(-1 - x * x), 2 * x), formula="x**2")

# at kinks
wrong("relu is NaN at 0", "kink", "the gradient at the declared kink is NaN", lambda xp, x: xp.where(x > 0, x, 0 * x),
      lambda xp, y, x: xp.where(x == 0, 0 * x / xp.abs(x), one_where(xp, x)), form="function", formula="where(x > 0, x, 0)", special=((0.0,),))
wrong("abs is 5 at 0", "kink", "the gradient at the declared kink is 5, outside [-1, 1]", lambda xp, x: xp.abs(x),
      lambda xp, y, x: xp.where(x == 0, 5 + 0 * x, xp.sign(x)), form="function", formula="abs(x)", special=((0.0,),))
wrong("maximum gives both", "kink", "at ties both arguments have the gradient 1", lambda xp, a, b: xp.maximum(a, b), lambda xp, y, a,
      b: 1 - one_where(xp, b - a),
      lambda xp, y, a, b: 1 - one_where(xp, a - b), form="function", formula="maximum(a, b)", special=((0.0, 0.0), (1.0, 1.0)))
wrong("agreed otherwise", "kink", "1 at 0, where 0 is agreed on", lambda xp, x: xp.where(x > 0, x, 0 * x), lambda xp, y, x: 1 - one_where(xp, -x),
      form="function",
      formula="where(x > 0, x, 0)", special=(((0.0,), (0.0,)),))
wrong("smooth but 0", "kink", "0 at |x| = 1, where huber is smooth", lambda xp, x: xp.where(xp.abs(x) < 1, x * x / 2, xp.abs(x) - 0.5),
      lambda xp, y, x: xp.where(xp.abs(x) < 1, x, xp.where(xp.abs(x) > 1, xp.sign(x), 0 * x)), formula="where(abs(x) < 1, x**2/2, abs(x) - 0.5)",
      special=((1.0,), (-1.0,)))
wrong("clamp is 2 at the end", "kink", "2 at the bounds, outside [0, 1]", lambda xp, x: xp.minimum(xp.maximum(x, -1 + 0 * x), 1 + 0 * x),
      lambda xp, y, x: 1 - one_where(xp, xp.abs(x) - 1) + xp.where(xp.abs(x) == 1, xp.ones_like(x), 0 * x),
      form="function", formula="minimum(maximum(x, -1), 1)",
      special=((1.0,), (-1.0,)))
wrong("NaN where both branches meet", "kink", "one where only: the gradient of sqrt reaches the other branch as 0*inf",
      lambda xp, x: xp.where(x > 0, xp.sqrt(xp.abs(x)) * x, 0 * x), lambda xp, y, x: 1.5 * xp.sqrt(xp.maximum(x, 0 * x)) + 0 / xp.sqrt(xp.maximum(x,
      0 * x)),
      form="function", formula="where(x > 0, x**1.5, 0)", domain=(-3, 3))

# the cotangent
COTANGENT = {"cotangent ignored": ("1 for every cotangent", lambda xp, g, y, x: xp.cos(x)),
             "cotangent without its sign": ("|g| instead of g", lambda xp, g, y, x: xp.abs(g) * xp.cos(x)),
             "cotangent added": ("g + cos(x) instead of g cos(x)", lambda xp, g, y, x: g + xp.cos(x)),
             "cotangent averaged": ("the mean of the cotangent instead of each", lambda xp, g, y, x: xp.mean(g) * xp.cos(x)),
             "cotangent clipped": ("cotangents are clipped to -2...2", lambda xp, g, y, x: xp.clip(g, -2.0, 2.0) * xp.cos(x)),
             "cotangent shifted": ("cotangents come from the neighbouring element", lambda xp, g, y, x: xp.roll(g, 1) * xp.cos(x)),
             "cotangent divided": ("divided by how many elements there are", lambda xp, g, y, x: g * xp.cos(x) / max(sum(g.shape), 1))}

for _name, (_says, _rule) in COTANGENT.items():
    wrong(_name, "gradient", _says, lambda xp, x: xp.sin(x), pullback=_rule, formula="sin(x)")


# the two modes
wrong("pushforward wrong", "modes", "the pushforward has a factor of 2 that the pullback has not", formula="sin(x)", elementwise=True)(
    lambda: unregistered(symgrad.primitive, lambda xp, x: xp.sin(x), vjp=lambda xp, g, y, x: g * xp.cos(x),
                         jvp=lambda xp, t, y, x: 2 * t * xp.cos(x)))
wrong("pullback wrong", "modes", "the pullback is off by 1e-6, the pushforward right", formula="tanh(x)", elementwise=True)(
    lambda: unregistered(symgrad.primitive, lambda xp, x: xp.tanh(x), vjp=lambda xp, g, y, x: g * xp.sech_square(x) * (1 + 1e-6),
                         jvp=lambda xp, t, y, x: t * xp.sech_square(x)))
wrong("pushforward not linear", "modes", "the pushforward takes |t|", formula="exp(x)", domain=(-5, 5), elementwise=True)(
    lambda: unregistered(symgrad.primitive, lambda xp, x: xp.exp(x), vjp=lambda xp, g, y, x: g * y, jvp=lambda xp, t, y, x: xp.abs(t) * y))
wrong("pushforward of one", "modes", "the pushforward forgets the second tangent", formula="a*b")(
    lambda: unregistered(symgrad.elementwise, lambda xp, a, b: a * b, lambda xp, y, a, b: b, lambda xp, y, a, b: a,
                         jvp=lambda xp, tangents, y, args: None if tangents[0] is None else tangents[0] * args[1]))


@wrong("custom_vjp wrong", "modes", "the stated pullback is that of cos")
def custom_pullback():
    f = custom_vjp(lambda x: x.sin())
    f.defvjp(lambda x: (f(x), x), lambda x, g: (-g * x.sin(),))
    return f


@wrong("custom_jvp wrong", "modes", "the stated pushforward is wrong where x < -1")
def custom_pushforward():
    f = custom_jvp(lambda x: x.sin())
    f.defjvp(lambda xs, ts: (f(*xs), ts[0] * symgrad.where(xs[0] < -1, 2.0, 1.0) * xs[0].cos()))
    return f


@wrong("stale saved tensor", "state", "the gradient is taken at the first input the op ever saw", formula="sin(x)")
def stale(m):
    first = {}

    def forward(x):
        first.setdefault(x.shape, x.detach().clone())
        return x.sin()

    return ruled(m, forward, lambda ctx, g, x: g * first[x.shape].cos())


wrong("NumPy gradient wrong", "gradient", "a NumPy function whose gradient misses the inner derivative", formula="exp(-x**2)", domain=(-4, 4))(
    lambda: ((lambda x: np.exp(-x * x)), (lambda x: (np.exp(-x * x) * -2,))))


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
