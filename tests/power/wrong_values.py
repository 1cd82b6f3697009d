"""Ops whose value is wrong, somewhere or everywhere. Their gradients are those of the function that is claimed, unless they say otherwise."""

import numpy as np

from tests.power.power_entries import ruled, wrong

LARGEST_SUBNORMAL = 2.225073858507201e-308


def cosine(xp, y, x):
    return xp.cos(x)


def minus_sine(xp, y, x):
    return -xp.sin(x)


# everywhere
wrong("constant off", "value", "adds 1.0001 where the formula adds 1", lambda xp, x: x * x + 1.0001, lambda xp, y, x: 2 * x, formula="x**2 + 1")
wrong("value off by 1e-6", "value", "times 1 + 1e-6", lambda xp, x: xp.sin(x) * (1 + 1e-6), cosine, formula="sin(x)")
wrong("value off by 1e-9", "value", "times 1 + 1e-9", lambda xp, x: xp.exp(-x * x) * (1 + 1e-9), lambda xp, y, x: -2 * x * xp.exp(-x * x),
      form="function", formula="exp(-x**2)", domain=(-5, 5))
wrong("branches exchanged", "value", "the slope 0.01 stands on the wrong side", lambda xp, x: xp.where(x > 0, 0.01 * x, x),
      lambda xp, y, x: xp.where(x > 0, 0.01 * xp.ones_like(x), xp.ones_like(x)), formula="where(x > 0, x, 0.01*x)", special=((0.0,),))
wrong("rounded to six places", "value", "the value is rounded to six decimal places", lambda xp, x: xp.round(xp.sin(x) * 1e6) / 1e6, cosine,
      formula="sin(x)")
wrong("short pi", "value", "pi has nine digits, so that large arguments turn out of phase", lambda xp, x: xp.sin(3.14159265 * x),
      lambda xp, y, x: 3.14159265 * xp.cos(3.14159265 * x), formula="sin(pi*x)", domain=(-100, 100))

# somewhere
wrong("value wrong below -1", "value", "x**2 + 0.1 where x < -1", lambda xp, x: xp.where(x < -1, x * x + 0.1, x * x), lambda xp, y, x: 2 * x,
      formula="x**2")
wrong("value wrong beyond 40", "value", "constant where x > 40, and its gradient, too", lambda xp,
      x: xp.minimum(xp.log1p(xp.exp(-x)) + x, 40 + 0 * x),
      lambda xp, y, x: xp.where(x > 40, 0 * x, 1 / (1 + xp.exp(-x))), formula="softplus(x)", domain=(0, 600))
wrong("value wrong at 0", "value", "0 instead of 1 at x = 0", lambda xp, x: xp.where(x == 0, 0 * x, xp.cos(x)), minus_sine, formula="cos(x)")
wrong("value wrong at -0.0", "value", "0 instead of 1 where x is minus zero", lambda xp, x: xp.where((1 / x < 0) & (x == 0), 0 * x, xp.cos(x)),
      minus_sine, form="function", formula="cos(x)")
wrong("subnormals flushed", "value", "subnormal arguments count as 0", lambda xp, x: xp.where(xp.abs(x) <= LARGEST_SUBNORMAL, 0 * x, xp.sinh(x)),
      lambda xp, y, x: xp.cosh(x), formula="sinh(x)", domain=(-5, 5))
wrong("equal arguments", "value", "0 where the arguments are equal", lambda xp, a, b: xp.where(a == b, 0 * a, a * b), lambda xp, y, a, b: b,
      lambda xp, y, a, b: a, formula="a*b")
wrong("short series near 0", "value", "x - x**3/6 where |x| < 0.1", lambda xp, x: xp.where(xp.abs(x) < 0.1, x - x * x * x / 6, xp.sin(x)), cosine,
      formula="sin(x)")
wrong("asymptotic too early", "value", "|x| - log 2 already where |x| > 5", lambda xp, x: xp.where(
    xp.abs(x) > 5, xp.abs(x) - 0.6931471805599453, xp.log(xp.cosh(xp.minimum(xp.maximum(x, -6 + 0 * x), 6 + 0 * x)))),
      lambda xp, y, x: xp.tanh(x), formula="log(cosh(x))", domain=(-20, 20))
wrong("wrong end of the domain", "value", "x log x is NaN at 0", lambda xp, x: x * xp.log(x), lambda xp, y, x: xp.log(x) + 1, point="positive",
      formula="where(x == 0, 0, x*log(x))", domain=(0, 10))

# far out, and digits
wrong("tanh of exponentials", "tail", "NaN where exp(x) overflows", lambda xp, x: (xp.exp(x) - xp.exp(-x)) / (xp.exp(x) + xp.exp(-x)),
      lambda xp, y, x: 4 / (xp.exp(x) + xp.exp(-x)) ** 2, formula="tanh(x)")
wrong("softplus overflows", "tail", "log(1 + exp(x)) is infinite beyond 710, where the truth is x", lambda xp, x: xp.log(1 + xp.exp(x)),
      lambda xp, y, x: 1 / (1 + xp.exp(-x)), formula="softplus(x)")
wrong("hypot overflows", "tail", "sqrt(a**2 + b**2) overflows, and underflows", lambda xp, a, b: xp.sqrt(a * a + b * b), lambda xp, y, a, b: a / y,
      lambda xp, y, a, b: b / y, formula="hypot(a, b)", special=((0.0, 0.0),))
wrong("log of sigmoid", "tail", "log(1/(1 + exp(-x))) is -inf where the truth is x", lambda xp, x: xp.log(1 / (1 + xp.exp(-x))),
      lambda xp, y, x: 1 / (1 + xp.exp(x)), formula="-softplus(-x)")
wrong("square overflows", "tail", "x/sqrt(1 + x**2) is 0 where x**2 overflows", lambda xp, x: x / xp.sqrt(1 + x * x),
      lambda xp, y, x: (1 + x * x) ** -1.5, formula="x/sqrt(1 + x**2)")
wrong("power divided by its base", "tail", "the gradient b a**b/a is infinite where a**b overflows, and it does not", lambda xp, a, b: a ** b,
      lambda xp, y, a, b: b * y / a, lambda xp, y, a, b: y * xp.log(a), formula="a**b", domain={"a": "positive", "b": "real"}, point="positive")
wrong("sigmoid slope in the tail", "tail", "the gradient exp(-x)/(1 + exp(-x))**2 is NaN for x < -710", lambda xp, x: 1 / (1 + xp.exp(-x)),
      lambda xp, y, x: xp.exp(-x) / ((1 + xp.exp(-x)) * (1 + xp.exp(-x))), formula="1/(1 + exp(-x))")
wrong("slope by cancellation", "digits", "the gradient 1 - y**2 of tanh has no digits left beyond 18", lambda xp, x: xp.tanh(x),
      lambda xp, y, x: 1 - y * y, formula="tanh(x)", domain=(-30, 30))
wrong("expm1 by cancellation", "digits", "exp(x) - 1 loses its digits near 0", lambda xp, x: xp.exp(x) - 1, lambda xp, y, x: xp.exp(x),
      formula="expm1(x)", domain=(-1, 1))
wrong("versine by cancellation", "digits", "(1 - cos x)/x**2 loses its digits near 0", lambda xp, x: (1 - xp.cos(x)) / (x * x),
      lambda xp, y, x: (x * xp.sin(x) - 2 * (1 - xp.cos(x))) / (x * x * x), point="positive", formula="2*sin(x/2)**2/x**2", domain="(0, 3]")
wrong("integer exponent", "value", "3 // 2 is 1: the power 1.5 became 1", lambda xp, x: x ** (3 // 2), lambda xp, y, x: 1.5 * xp.sqrt(x),
      point="positive",
      formula="x**1.5", domain="positive")


# of shapes
def truncated(m, x):
    y = m.sin(x)
    y.reshape(-1)[8:] = 0
    return y


wrong("first eight only", "value", "what comes after the eighth element is 0", formula="sin(x)", batched=False)(
    lambda m: ruled(m, lambda x: truncated(m, x), lambda ctx, g, x: g * x.cos()))
wrong("integer buffer", "value", "results are written into an array of integers", formula="0.75*x", batched=False)(
    lambda m: ruled(m, lambda x: (0.75 * x).long().to(x.dtype), lambda ctx, g, x: 0.75 * g))
wrong("empty becomes one", "empty", "an empty array has a value of one element, 0", formula="sin(x)")(
    lambda m: lambda x: m.sin(x) if x.numel() else m.zeros(1, dtype=x.dtype))
wrong("empty raises", "empty", "looks at the first element, which an empty array does not have", formula="x*exp(-x)")(
    lambda m: lambda x: (m.ravel(x)[0], x * m.exp(-x))[1])
wrong("largest of empty", "empty", "the largest element is taken of an empty array", formula="where(x > 0, x, 0)", special=((0.0,),))(
    lambda m: lambda x: m.relu(x) if m.amax(x.detach()).item() > 0 else x * 0)
wrong("single number becomes a vector", "scalars", "a number of shape () has a value of shape (1,)", formula="cos(x)")(
    lambda m: lambda x: m.cos(x.reshape(1) if x.ndim == 0 else x))
wrong("single number raises", "scalars", "a number of shape () cannot be indexed", formula="sin(x)")(
    lambda m: lambda x: m.cat([m.sin(x[:1]), m.sin(x[1:])]))
wrong("gradient of a single number", "scalars", "the gradient of a number of shape () has shape (1,)", formula="x**2",
      pullback=lambda g, x: ((2 * g * x).reshape(-1) if np.ndim(x) == 0 else 2 * g * x,))(lambda: lambda x: np.multiply(x, x))
