"""Ops of elements that are right and difficult: nobody may accuse them."""

import math

import numpy as np

import symgrad
from tests.power.power_entries import Rules, one_where, right, unregistered


def series_or(x, small, xp, series, otherwise):
    """The series where |x| is small, else the formula, computed at a harmless number where it is small."""
    near = xp.abs(x) < small
    return xp.where(near, series(x), otherwise(xp.where(near, 1 + 0 * x, x)))


# kinks
right("abs", "kink", "the gradient 0 at the kink", lambda xp, x: xp.abs(x), lambda xp, y, x: xp.sign(x), formula="abs(x)", special=((0.0,),))
right("relu", "kink", "the gradient 0 at the kink", lambda xp, x: xp.maximum(x, 0 * x), lambda xp, y, x: one_where(xp, x), form="function",
      formula="where(x > 0, x, 0)", special=((0.0,),))
right("relu with one half", "kink", "the gradient 1/2 at the kink, as agreed", lambda xp, x: xp.maximum(x, 0 * x), lambda xp, y,
      x: (xp.sign(x) + 1) / 2,
      form="function", formula="where(x > 0, x, 0)", special=(((0.0,), (0.5,)),))
right("leaky relu", "kink", "the slope 0.01 on the left", lambda xp, x: xp.where(x > 0, x, 0.01 * x), lambda xp, y, x: 0.01 + 0.99 * one_where(xp, x),
      form="function", formula="where(x > 0, x, 0.01*x)", special=((0.0,),))
right("huber", "kink", "a second derivative that jumps", lambda xp, x: xp.where(xp.abs(x) < 1, x * x / 2, xp.abs(x) - 0.5),
      lambda xp, y, x: xp.where(xp.abs(x) < 1, x, xp.sign(x)), formula="where(abs(x) < 1, x**2/2, abs(x) - 0.5)", special=((1.0,), (-1.0,)))
right("hinge", "kink", "max(0, 1 - x), kink at 1", lambda xp, x: xp.where(x < 1, 1 - x, 0 * x), lambda xp, y, x: -one_where(xp, 1 - x),
      form="function", formula="where(x < 1, 1 - x, 0)", special=((1.0,),))
right("clamp", "kink", "two kinks", lambda xp, x: xp.minimum(xp.maximum(x, -1 + 0 * x), 1 + 0 * x), lambda xp, y, x: 1 - one_where(xp, xp.abs(x) - 1),
      form="function", formula="minimum(maximum(x, -1), 1)", special=((1.0,), (-1.0,)))
right("soft shrinkage", "kink", "two kinks with a flat piece between", lambda xp, x: xp.sign(x) * xp.maximum(xp.abs(x) - 0.5, 0 * x),
      lambda xp, y, x: one_where(xp, xp.abs(x) - 0.5), form="function", formula="where(abs(x) > 0.5, x - 0.5*sign(x), 0)", special=((0.5,), (-0.5,)))
right("maximum", "kink", "ties share the gradient", lambda xp, a, b: xp.maximum(a, b), lambda xp, y, a, b: (1 + xp.sign(a - b)) / 2,
      lambda xp, y, a, b: (1 + xp.sign(b - a)) / 2, formula="maximum(a, b)", special=((0.0, 0.0), (1.0, 1.0)))
right("distance of two", "kink", "|a - b|, 0 at ties", lambda xp, a, b: xp.abs(a - b), lambda xp, y, a, b: xp.sign(a - b),
      lambda xp, y, a, b: -xp.sign(a - b), form="function", formula="abs(a - b)", special=((0.0, 0.0), (1.0, 1.0)))

# discontinuous, and constant
for _name, _forward, _formula in (("floor", lambda xp, x: xp.floor(x), "floor(x)"), ("frac", lambda xp, x: x - xp.floor(x), "x - floor(x)")):
    right(_name, "discontinuous", "jumps at whole numbers", _forward,
          *((lambda xp, y, x: 0 * x,) if _name == "floor" else (lambda xp, y, x: 1 + 0 * x,)),
          form="function", formula=_formula, domain=(-4.75, 4.75), special=tuple((float(k),) for k in range(-4, 5)))
right("sign", "discontinuous", "jumps at 0", lambda xp, x: xp.sign(x), lambda xp, y, x: 0 * x, form="function", formula="sign(x)", special=((0.0,),))
right("heaviside", "discontinuous", "1/2 at 0", lambda xp, x: (xp.sign(x) + 1) / 2, lambda xp, y, x: 0 * x, form="function",
      formula="(sign(x) + 1)/2",
      special=((0.0,),))
right("constant", "constant", "3, whatever comes in", lambda xp, x: 3 + 0 * x, lambda xp, y, x: 0 * x, form="function", formula="3 + 0*x")

# steep
right("tanh(1000x)", "steep", "1 nearly everywhere", lambda xp, x: xp.tanh(1000 * x), lambda xp, y, x: 1000 / xp.cosh(1000 * x) ** 2, form="function",
      formula="tanh(1000*x)", domain=(-0.04, 0.04), dtypes=("float64", "float32"))
right("exp(50x)", "steep", "grows by 50 orders", lambda xp, x: xp.exp(50 * x), lambda xp, y, x: 50 * xp.exp(50 * x), formula="exp(50*x)",
      domain=(-6, 6))
right("x**20", "steep", "flat at 0, steep beyond 1", lambda xp, x: x**20, lambda xp, y, x: 20 * x**19, formula="x**20", domain=(-1000, 1000))
right("sigmoid(100x)", "steep", "a step of width 1/100", lambda xp, x: 1 / (1 + xp.exp(-100 * x)),
      lambda xp, y, x: 100 / (xp.exp(-50 * x) + xp.exp(50 * x)) ** 2, form="function",
      formula="1/(1 + exp(-100*x))", domain=(-0.8, 0.8), dtypes=("float64", "float32"))
right("steep in between, opaque", "steep", "atan(500x), and no formula is claimed", lambda xp, x: xp.atan(500 * x),
      lambda xp, y, x: 500 / (1 + 250000 * x * x), form="function", domain=(-10, 10),
      dtypes=("float64", "float32"))
right("reciprocal", "steep", "a pole at 0", lambda xp, x: 1 / x, lambda xp, y, x: -1 / (x * x), formula="1/x", domain="(0.001, 1000)")

# oscillating
right("sin(100x)", "oscillating", "conditioned by 100 x", lambda xp, x: xp.sin(100 * x), lambda xp, y, x: 100 * xp.cos(100 * x), formula="sin(100*x)",
      domain=(-100, 100))
right("sin(exp(x))", "oscillating", "faster and faster", lambda xp, x: xp.sin(xp.exp(x)), lambda xp, y, x: xp.exp(x) * xp.cos(xp.exp(x)),
      formula="sin(exp(x))", domain=(-5, 5))
right("sin(30x), opaque", "oscillating", "no formula is claimed", lambda xp, x: xp.sin(30 * x), lambda xp, y, x: 30 * xp.cos(30 * x), form="function",
      domain=(-20, 20))

# scales
right("1e-6 sin", "scale", "small, and its gradient, too", lambda xp, x: 1e-6 * xp.sin(x), lambda xp, y, x: 1e-6 * xp.cos(x),
      formula="0.000001*sin(x)")
right("1e-6 sin, opaque", "scale", "small, and no formula is claimed", lambda xp, x: 1e-6 * xp.sin(x), lambda xp, y, x: 1e-6 * xp.cos(x),
      form="function")
right("1e-200 x", "scale", "its square underflows", lambda xp, x: 1e-200 * x, lambda xp, y, x: 1e-200 + 0 * x, formula=lambda xp, x: 1e-200 * x,
      domain=(-1e6, 1e6), elementwise=True, dtypes=("float64",))
right("1e200 x", "scale", "its square overflows", lambda xp, x: 1e200 * x, lambda xp, y, x: 1e200 + 0 * x, formula=lambda xp, x: 1e200 * x,
      domain=(-1e6, 1e6), elementwise=True, dtypes=("float64",))
right("near 1", "condition", "x - 1 loses digits near 1, as it must", lambda xp, x: x - 1, lambda xp, y, x: 1 + 0 * x, formula="x - 1",
      domain=(0.5, 2))
right("log near 1", "condition", "the condition is 1/log x", lambda xp, x: xp.log(x), lambda xp, y, x: 1 / x, formula="log(x)", domain=(0.5, 2),
      point="positive")
right("difference of two", "condition", "a - b of nearly equal numbers", lambda xp, a, b: a - b, lambda xp, y, a, b: 1 + 0 * a,
      lambda xp, y, a, b: -1 + 0 * b, formula="a - b")
right("large offset", "condition", "1e6 + sin x, whose gradient is small beside it", lambda xp, x: 1e6 + xp.sin(x), lambda xp, y, x: xp.cos(x),
      form="function",
      formula="1000000 + sin(x)")
right("large offset, opaque", "condition", "1e6 + sin x, and no formula is claimed", lambda xp, x: 1e6 + xp.sin(x), lambda xp, y, x: xp.cos(x),
      form="function", domain=(-9, 9))

# stable forms
sigmoid = Rules(lambda xp, d: 1 / (1 + xp.exp(-d)), (lambda xp, y, d: sigmoid(xp, d) * sigmoid(xp, -d),))
right("log1pexp", "stable", "max(x, 0) + log1p(exp(-|x|))", lambda xp, x: xp.maximum(x, 0 * x) + xp.log1p(xp.exp(-xp.abs(x))),
      lambda xp, y, x: sigmoid(xp, x), form="function", formula="softplus(x)")
right("log1mexp", "stable", "log(-expm1(x)) near 0, log1p(-exp(x)) below -log 2", lambda xp, x: xp.where(
    x > -0.6931471805599453, xp.log(-xp.expm1(x)), xp.log1p(-xp.exp(x))), lambda xp, y, x: 1 / xp.expm1(-x) * -1, formula="log(-expm1(x))",
    domain="[-30, -0.000001]", point="negative")
right("expm1(x)/x", "stable", "a series near 0", lambda xp, x: xp.where(x == 0, 1 + 0 * x, xp.expm1(x) / xp.where(x == 0, 1 + 0 * x, x)),
      lambda xp, y, x: series_or(x, 0.01, xp, lambda x: 0.5 + x * (1 / 3 + x * (1 / 8 + x * (1 / 30 + x * (1 / 144 + x * (1 / 840 + x / 5760))))),
                                 lambda x: (x * xp.exp(x) - xp.expm1(x)) / (x * x)),
      formula="where(x == 0, 1, expm1(x)/x)", domain=(-20, 20), order=1, dtypes=("float64",))
right("versine over x**2", "stable", "2 sin(x/2)**2/x**2", lambda xp, x: 2 * (xp.sin(x / 2) / x) * (xp.sin(x / 2) / x),
      lambda xp, y, x: (xp.sin(x) - 4 * xp.sin(x / 2) ** 2 / x) / (x * x), formula="2*sin(x/2)**2/x**2", domain="[1, 3]", point="above 1")
right("log cosh", "stable", "|x| + log1p(exp(-2|x|)) - log 2", lambda xp, x: xp.abs(x) + xp.log1p(xp.exp(-2 * xp.abs(x))) - math.log(2),
      lambda xp, y, x: xp.tanh(x), formula="log(cosh(x))", domain=(1, 300), point="above 1")
right("log sinh over x", "stable", "log(sinh(x)/x) away from 0", lambda xp, x: x + xp.log(-xp.expm1(-2 * x)) - xp.log(2 * x),
      lambda xp, y, x: 1 / xp.tanh(x) - 1 / x, formula="log(sinh(x)/x)", domain=(1, 300), point="above 1")
right("hypot", "stable", "without overflow, direction 0 at the origin", lambda xp, a, b: xp.hypot(a, b),
      lambda xp, y, a, b: a / xp.where(y == 0, 1 + 0 * y, y), lambda xp, y, a, b: b / xp.where(y == 0, 1 + 0 * y, y), form="function",
      formula="hypot(a, b)", special=((0.0, 0.0),), domain=(-1e6, 1e6), order=1)
right("logaddexp", "stable", "of large numbers", lambda xp, a, b: xp.logaddexp(a, b), lambda xp, y, a, b: sigmoid(xp, a - b),
      lambda xp, y, a, b: sigmoid(xp, b - a), form="function", formula="logaddexp(a, b)", domain=(-700, 700), order=2)
right("gaussian", "stable", "underflows far out", lambda xp, x: xp.exp(-x * x), lambda xp, y, x: -2 * x * xp.exp(-x * x), formula="exp(-x**2)",
      domain=(-25, 25))

# ends of domains
right("entropy", "end", "-x log x on [0, 1], with 0 at 0", lambda xp, x: xp.where(x == 0, 0 * x, -x * xp.log(xp.where(x == 0, 1 + 0 * x, x))),
      lambda xp, y, x: -xp.log(x) - 1, formula="where(x == 0, 0, -x*log(x))", domain=(0, 1), point="unit",
      special=((0.0,),))
right("xlogy", "end", "x log y, 0 at x = 0", lambda xp, a, b: xp.where(a == 0, 0 * a, a * xp.log(b)), lambda xp, y, a, b: xp.log(b),
      lambda xp, y, a, b: a / b, formula="a*log(b)", domain={"a": "[0, 1000]", "b": "[0.001, 1000]"}, point="positive")
right("asin near its ends", "end", "the gradient grows without bound", lambda xp, x: xp.asin(x), lambda xp, y, x: 1 / xp.sqrt((1 - x) * (1 + x)),
      formula="asin(x)", domain=(-1, 1), point="unit", special=((1.0,), (-1.0,)))
right("sqrt at 0", "end", "the gradient at 0 is infinite", lambda xp, x: xp.sqrt(x), lambda xp, y, x: 0.5 / xp.sqrt(x), formula="sqrt(x)",
      domain="nonnegative", point="positive", special=((0.0,),))
right("atan2", "end", "away from the origin", lambda xp, a, b: xp.atan2(a, b), lambda xp, y, a, b: b / (a * a + b * b),
      lambda xp, y, a, b: -a / (a * a + b * b), formula="atan2(a, b)", domain=(0.1, 100), point="positive")
right("power of positives", "end", "a**b with both differentiated", lambda xp, a, b: a**b, lambda xp, y, a, b: b * a ** (b - 1),
      lambda xp, y, a, b: a**b * xp.log(a), formula="a**b", domain={"a": "[0.01, 10]", "b": "-5..5"}, point="positive")
right("x**x", "end", "x (log x + 1) in the gradient", lambda xp, x: xp.exp(x * xp.log(x)), lambda xp, y, x: xp.exp(x * xp.log(x)) * (xp.log(x) + 1),
      formula="x**x", domain="[0.001, 20]", point="positive")
right("acosh", "end", "the gradient is infinite at 1", lambda xp, x: xp.acosh(x), lambda xp, y, x: 1 / xp.sqrt((x - 1) * (x + 1)), formula="acosh(x)",
      domain="(1, 1000)", point="above 1")
right("logit", "end", "infinite at both ends", lambda xp, x: xp.log(x) - xp.log1p(-x), lambda xp, y, x: 1 / (x * (1 - x)), formula="log(x/(1 - x))",
      domain="[0.000001, 0.999999]", point="unit")

# written with where
right("double where", "where", "sqrt on one side, harmless on the other", lambda xp, x: xp.where(
    x > 0, xp.sqrt(xp.where(x > 0, x, 1 + 0 * x)) * x, 0 * x), lambda xp, y, x: xp.where(x > 0, 1.5 * xp.sqrt(xp.where(x > 0, x, 1 + 0 * x)), 0 * x),
    form="function", formula="where(x > 0, x**1.5, 0)", domain=(-3, 3), special=((0.0,),))
right("three pieces", "where", "a quadratic spline, its second derivative jumps", lambda xp,
      x: xp.where(x < 0, 0 * x, xp.where(x < 1, x * x, 2 * x - 1)),
      lambda xp, y, x: xp.where(x < 0, 0 * x, xp.where(x < 1, 2 * x, 2 + 0 * x)), formula="where(x < 0, 0, where(x < 1, x**2, 2*x - 1))",
      special=((0.0,), (1.0,)), domain=(-1000, 1000))
right("smooth step", "where", "3x**2 - 2x**3 between 0 and 1", lambda xp, x: xp.where(x < 0, 0 * x, xp.where(x > 1, 1 + 0 * x, x * x * (3 - 2 * x))),
      lambda xp, y, x: xp.where(x < 0, 0 * x, xp.where(x > 1, 0 * x, 6 * x * (1 - x))), form="function",
      formula="where(x < 0, 0, where(x > 1, 1, x**2*(3 - 2*x)))", special=((0.0,), (1.0,)), domain=(-3, 3))

# rules of other forms
sine_and_back = Rules(lambda xp, x: xp.cos(x), (lambda xp, y, x: -xp.sin(x),))
right("helper of one's own", "orders", "the gradient is itself a function with a stated gradient", lambda xp, x: xp.sin(x), sine_and_back.partial,
      form="function", formula="sin(x)")


@right("pullback and pushforward", "modes", "both written out", formula="tanh(x)", elementwise=True)
def both_written():
    return unregistered(symgrad.primitive, lambda xp, x: xp.tanh(x), vjp=lambda xp, g, y, x: g * xp.sech_square(x), jvp=lambda xp, t, y,
          x: t * xp.sech_square(x))


@right("constant partials", "modes", "partials that are numbers", formula="2*a - 3*b")
def constant_partials():
    return unregistered(symgrad.elementwise, lambda xp, a, b: 2 * a - 3 * b, 2, -3)


@right("condition as an argument", "arguments", "the first argument is a truth value", formula=lambda xp, c, a: xp.where(c, a, 2 * a),
       domain={"c": symgrad.graph.domains.BOOLEAN, "a": "real"})
def condition():
    return unregistered(symgrad.elementwise, lambda xp, c, a: xp.where(c, a, 2 * a), None, lambda xp, y, c,
          a: xp.where(c, xp.ones_like(a), 2 * xp.ones_like(a)))


@right("NumPy, by hand", "arguments", "a NumPy function with its gradient", formula="exp(-x**2)", domain=(-4, 4))
def numpy_by_hand():
    return (lambda x: np.exp(-x * x)), (lambda x: (-2 * x * np.exp(-x * x),))
