"""Ops whose value is wrong, somewhere or everywhere. Their gradients are those of the function that is claimed, unless they say otherwise."""

import numpy as np

import symgrad
from symgrad.autograd import Function
from tests.power.power_entries import wrong

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
@wrong("first eight only", "value", "what comes after the eighth element is 0", formula="sin(x)", batched=False)
def first_eight():
    class FirstEight(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y = np.sin(x.detach().numpy())
            if y.size > 8:
                y.reshape(-1)[8:] = 0
            return symgrad.tensor(y)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.cos()

    return FirstEight


@wrong("integer buffer", "value", "results are written into an array of integers", formula="0.75*x", batched=False)
def integer_buffer():
    class Truncated(Function):
        @staticmethod
        def forward(ctx, x):
            out = np.zeros(x.shape, dtype=np.int64)
            np.multiply(x.detach().numpy(), 0.75, out=out, casting="unsafe")
            return symgrad.tensor(out.astype(x.detach().numpy().dtype))

        @staticmethod
        def backward(ctx, g):
            return 0.75 * g

    return Truncated


@wrong("empty becomes one", "empty", "an empty array has a value of one element, 0", formula="sin(x)")
def empty_becomes_one():
    def sine(x):
        return symgrad.sin(x) if x.numel() else symgrad.zeros(1, dtype=x.dtype)

    return sine


@wrong("empty raises", "empty", "looks at the first element, which an empty array does not have", formula="x*exp(-x)")
def empty_raises():
    def ricker(x):
        symgrad.ravel(x)[0]
        return x * symgrad.exp(-x)

    return ricker


@wrong("largest of empty", "empty", "the largest element is taken of an empty array", formula="where(x > 0, x, 0)", special=((0.0,),))
def empty_largest():
    def relu(x):
        return symgrad.relu(x) if symgrad.amax(x.detach()).item() > 0 else x * 0

    return relu


@wrong("single number becomes a vector", "scalars", "a number of shape () has a value of shape (1,)", formula="cos(x)")
def scalar_becomes_vector():
    def cosine_of(x):
        return symgrad.cos(x.reshape(1) if x.ndim == 0 else x)

    return cosine_of


@wrong("single number raises", "scalars", "a number of shape () cannot be indexed", formula="sin(x)")
def scalar_raises():
    def sine(x):
        return symgrad.cat([symgrad.sin(x[:1]), symgrad.sin(x[1:])])

    return sine


@wrong("gradient of a single number", "scalars", "the gradient of a number of shape () has shape (1,)", formula="x**2",
       pullback=lambda g, x: ((2 * g * x).reshape(-1) if np.ndim(x) == 0 else 2 * g * x,))
def scalar_gradient():
    return lambda x: np.multiply(x, x)
