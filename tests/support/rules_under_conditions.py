"""Ops whose rule is wrong only under a condition that the forward does not have, and right ops with conditions.

Every entry is (forward, partials, options of the op). The forwards of the wrong ones are smooth where the rule switches: no convention
excuses it.
"""

from symgrad.graph.domains import POSITIVE


def when(condition, wrong=lambda xp, x: 2 * x):
    """The rule of x²/2, wrong where the condition (xp, y, x) holds."""
    return lambda xp, x: x * x / 2, (lambda xp, y, x: xp.where(condition(xp, y, x), wrong(xp, x), x),), {}


def where(condition):
    """The rules of x*y, the first one wrong where the condition (xp, x, y) holds."""
    return lambda xp, a, b: a * b, (lambda xp, y, a, b: xp.where(condition(xp, a, b), 2 * b + 1, b), lambda xp, y, a, b: a), {}


def both(xp, *conditions):
    return xp.logical_and(*conditions)


def scaled(xp, x, scale=2.0):
    return x * x * scale / 2


WRONG = {
    "a step over 100": when(lambda xp, y, x: xp.eq(xp.floor(x / 100), 3)),
    "0": when(lambda xp, y, x: xp.eq(x, 0), lambda xp, x: x + 1),
    "a decimal": when(lambda xp, y, x: xp.eq(x, 7.25)),
    "all but 3": when(lambda xp, y, x: xp.ne(x, 3)),
    "only 3": when(lambda xp, y, x: xp.logical_not(xp.ne(x, 3))),
    "a negative rounded": when(lambda xp, y, x: xp.eq(xp.round(x), -77)),
    "a large integer": when(lambda xp, y, x: xp.eq(x, 123456)),
    "a negative integer": when(lambda xp, y, x: xp.eq(x, -41)),
    "a rounded up": when(lambda xp, y, x: xp.eq(xp.ceil(x / 10), -12)),
    "a remainder": when(lambda xp, y, x: xp.eq(xp.remainder(x, 7), 3)),
    "a remainder far away": when(lambda xp, y, x: both(xp, xp.eq(xp.remainder(x, 64), 5), xp.gt(x, 1000))),
    "the sign": when(lambda xp, y, x: xp.eq(xp.sign(x - 17), 0)),
    "the sign of 0": when(lambda xp, y, x: xp.eq(xp.sign(x), 0), lambda xp, x: x + 1),
    "an absolute value": when(lambda xp, y, x: xp.eq(xp.abs(x), 3)),
    "a narrow band": when(lambda xp, y, x: xp.lt(xp.abs(x - 7.25), 1e-9)),
    "a band of a few ULP": when(lambda xp, y, x: xp.lt(xp.abs(x - 7.25), 4e-15)),
    "beside a number": when(lambda xp, y, x: both(xp, xp.gt(x, 7.25), xp.lt(x, 7.25 + 1e-9))),
    "beyond 40": when(lambda xp, y, x: xp.gt(x, 40)),
    "beyond 1e5": when(lambda xp, y, x: xp.gt(xp.abs(x), 1e5)),
    "between 300 and 400": when(lambda xp, y, x: both(xp, xp.gt(x, 300), xp.lt(x, 400))),
    "between 300 and 301": when(lambda xp, y, x: both(xp, xp.ge(x, 300), xp.le(x, 300.001))),
    "nested": when(lambda xp, y, x: xp.where(xp.gt(x, 31), xp.lt(x, 33), xp.eq(x, -5))),
    "by its output": when(lambda xp, y, x: xp.gt(y, 5000)),
    "one output": when(lambda xp, y, x: xp.eq(y, 12.5)),
    "a square": when(lambda xp, y, x: xp.eq(x * x, 81)),
    "an affine function": when(lambda xp, y, x: xp.eq(3 * x + 2, 23)),
    "an exponential": when(lambda xp, y, x: xp.gt(xp.exp(x), 1e4)),
    "atan doubled beyond 40": (lambda xp, x: xp.atan(x), (lambda xp, y, x: xp.where(xp.gt(x, 40), 2 / (1 + x * x), 1 / (1 + x * x)),), {}),
    "a logarithm at 2": (lambda xp, x: xp.log(x), (lambda xp, y, x: xp.where(xp.eq(x, 2), 2 / x, 1 / x),), {"domain": POSITIVE}),
    "the diagonal": where(lambda xp, a, b: xp.eq(a, b)),
    "half": where(lambda xp, a, b: xp.eq(a, 2 * b)),
    "a sum of 1": where(lambda xp, a, b: xp.eq(a + b, 1)),
    "a thirds line": where(lambda xp, a, b: xp.eq(3 * a, b)),
    "the opposite": where(lambda xp, a, b: xp.eq(a, -b)),
    "a point in the plane": where(lambda xp, a, b: both(xp, xp.eq(a, 3), xp.eq(b, 5))),
    "a strip": where(lambda xp, a, b: xp.lt(xp.abs(a - b - 4), 1e-9)),
    "a parameter": (scaled, (lambda xp, y, x, scale=2.0: xp.where(xp.eq(x, scale * 4.5), x * 0, x * scale),), {"examples": ((2.0,),)}),
}
UNSOLVED = {"an irrational number": when(lambda xp, y, x: xp.eq(x * x * x + x, 3))}


def piece(xp, condition, a, b):
    return xp.where(condition, a, b)


RIGHT = {
    "relu": (lambda xp, x: xp.relu(x), (lambda xp, y, x: xp.indicator(xp.gt(x, 0), x),), {"special": ((0.0,),)}),
    "clamp": (lambda xp, x: xp.minimum(xp.maximum(x, -1 + 0 * x), 1 + 0 * x),
              (lambda xp, y, x: xp.indicator(xp.lt(xp.abs(x), 1), x),), {"special": ((1.0,), (-1.0,))}),
    "huber": (lambda xp, x: piece(xp, xp.lt(xp.abs(x), 1), x * x / 2, xp.abs(x) - 0.5),
              (lambda xp, y, x: piece(xp, xp.lt(xp.abs(x), 1), x, xp.sign(x)),), {"special": ((1.0,), (-1.0,))}),
    "a step": (lambda xp, x: piece(xp, xp.gt(x, 7.25), x * x, 3 * x), (lambda xp, y, x: piece(xp, xp.gt(x, 7.25), 2 * x, 3 + 0 * x),),
               {"special": ((7.25,),)}),
    "half at the border": (lambda xp, x: xp.abs(x - 3), (lambda xp, y, x: piece(xp, xp.eq(x, 3), 0.5 + 0 * x, xp.sign(x - 3)),),
                           {"special": ((3.0,),)}),
    "floor": (lambda xp, x: x * xp.floor(x), (lambda xp, y, x: xp.floor(x),), {"special": tuple((float(k),) for k in range(-3, 4))}),
    "the same twice": (lambda xp, x: x * x / 2, (lambda xp, y, x: piece(xp, xp.gt(x, 40), x + 0 * x, x),), {}),
    "the same at a number": (lambda xp, x: x * x / 2, (lambda xp, y, x: piece(xp, xp.eq(x, 7.25), xp.abs(x), x),), {}),
    "the same on a line": (lambda xp, a, b: a * b,
                           (lambda xp, y, a, b: piece(xp, xp.eq(a, 2 * b), xp.maximum(b, b - 1), b), lambda xp, y, a, b: a), {}),
    "a safe division": (lambda xp, x: x * x / 2,
                        (lambda xp, y, x: piece(xp, xp.eq(x, 0), x, x * (x / piece(xp, xp.eq(x, 0), xp.ones_like(x), x))),), {}),
}
