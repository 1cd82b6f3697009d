"""Errors in units in the last place (ULP): the numbers of the library against the truth, in the tails and next to poles too."""

from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mpf
from points import domain
from truth import LARGEST, TINY, orders

from symgrad import autograd
from symgrad.creation import tensor
from symgrad.recording import core

BARS = (8, 8, 64, 512)  # ULP for the value and the first three derivatives


class Accuracy(NamedTuple):
    """The largest error in ULP, how many numbers were measured, and how many of them by the condition of their point."""

    ulps: float
    count: int
    conditioned: int


def ulps(error, scale):
    """An error in ULP of a number of that size."""
    return float(abs(error) / mpf(float(np.spacing(max(float(abs(scale)), TINY)))))


def layouts(points):
    """The points as arguments of calls: in arrays of eight of one size, and some of them as numbers of no dimensions."""
    points = sorted(points, key=lambda x: max(map(abs, x)))
    for start in range(0, len(points), 8):
        rows = points[start:start + 8]
        yield rows, [np.array(column) for column in zip(*rows)]
    for x in points[::6]:
        yield [x], [np.float64(v) for v in x]


def computed(op, parameters, values, order):
    """Every derivative up to an order as users get it, by multi-index: with numbers in the last pass, and as a graph."""
    xs = [tensor(v, requires_grad=True) for v in values]
    y = core(op)(*xs, *parameters)
    zero = (0,) * op.arity
    found, level = {zero: [y._value]}, {zero: y}
    for _ in range(order):
        above = {}
        for k, d in level.items():
            numeric = autograd.grad(d.sum(), xs, retain_graph=True, materialize_grads=True)
            traced = autograd.grad(d.sum(), xs, create_graph=True, materialize_grads=True)
            for i, (a, b) in enumerate(zip(numeric, traced)):
                above_k = (*k[:i], k[i] + 1, *k[i + 1:])
                above.setdefault(above_k, b)
                found.setdefault(above_k, []).extend([a._value, b._value])
        level = above
    return found


def crosses_zero(truth, k, x):
    """Whether the derivative k vanishes or changes sign within an eighth of the point: no formula can keep its relative accuracy there."""
    signs = {mpmath.sign(truth(k, (v,))) for v in (0.875 * x[0], x[0], 1.125 * x[0]) if v in domain(truth.op, 0)}
    return len(signs) > 1


def error_in_ulps(got, true, truth, k, x, bar):
    """The error of one number, and whether it was measured by the condition of the point.

    Beyond the range of normal floats nothing but the direction is asked for; nor is more asked of a function of several variables whose
    higher derivative is a product of powers of them that leave the range by themselves. Where the derivative of a function of one variable passes
    through zero, or a function of several variables takes their difference, the inputs' own rounding is larger than one ULP of the result:
    there, and only if the plain error is too large, it is measured in ULP of Σ |x_i times the next derivative by x_i|.
    """
    if abs(true) > LARGEST:
        return (0.0 if not abs(got) < 1e300 else np.inf), False
    in_range = all(1 / LARGEST < abs(mpf(v)) ** sum(k) < LARGEST for v in x if v)
    if 0 < abs(true) < TINY:
        return (0.0 if abs(got) <= 4 * TINY or not in_range else np.inf), False
    if not np.isfinite(got):
        return (0.0 if len(x) > 1 and not in_range and got == np.copysign(np.inf, float(true)) else np.inf), False
    with mpmath.workdps(60):
        error = mpf(float(got)) - true
        plain = (0.0 if abs(got) < TINY else np.inf) if true == 0 else ulps(error, true)
        if plain <= bar or (len(x) == 1 and not crosses_zero(truth, k, x)):
            return plain, False
        condition = sum(abs(mpf(v) * truth((*k[:i], k[i] + 1, *k[i + 1:]), x)) for i, v in enumerate(x))
        return (ulps(error, max(abs(true), condition)) if condition < LARGEST else plain), True


def check_accuracy(op, parameters, points, truth, order=3):
    """Value and derivatives up to an order within 8, 8, 64 and 512 ULP of the truth at every point.

    Raises AssertionError with the op, the point, both values and the error; gives an `Accuracy` by order.
    """
    worst = {n: [0.0, 0, 0] for n in range(order + 1)}
    true = {(k, x): truth(k, x) for n in range(order + 1) for k in orders(op.arity, n) for x in points}
    for rows, values in layouts(points):
        with np.errstate(all="ignore"):
            found = computed(op, parameters, values, order)
        for k, arrays in found.items():
            n = sum(k)
            for array in arrays:
                for x, got in zip(rows, np.atleast_1d(array).tolist()):
                    error, conditioned = error_in_ulps(got, true[k, x], truth, k, x, BARS[n])
                    assert error <= BARS[n], (f"{op.name}{parameters}: the derivative {k} at {x} is {got!r}, but the truth is "
                                              f"{mpmath.nstr(true[k, x], 20)}: {error:.3g} ULP, at most {BARS[n]} are allowed")
                    worst[n] = [max(worst[n][0], error), worst[n][1] + 1, worst[n][2] + conditioned]
    return {n: Accuracy(*w) for n, w in worst.items()}


SHARED = {"maximum": (0.5, 0.5), "minimum": (0.5, 0.5), "hypot": (0.0, 0.0), "direction": (0.0, 0.0)}
"""The gradient by convention where a function of two arguments has a kink: ties share, and the norm takes the least subgradient, 0."""


def conventional(op, truth, x):
    """The gradient at a special point: the true one where there is one, else the subgradient of least norm."""
    if len(x) > 1:
        smooth = op.name not in SHARED
        return [float(truth(k, x)) for k in ((1, 0), (0, 1))] if smooth else list(SHARED[op.name])
    if truth.decided((1,)):
        return [float(truth((1,), x))]
    below, above = sorted(float(truth((1,), (x[0] + h,))) for h in (-1e-9, 1e-9))
    return [min(max(below, 0.0), above)]


def check_special(op, parameters, truth):
    """At the special points value, gradient and second derivatives are finite, and the gradient is the conventional one."""
    for x in op.special:
        found = computed(op, parameters, [np.float64(v) for v in x], 2)
        for k, numbers in found.items():
            assert np.all(np.isfinite(numbers)), f"{op.name}{parameters}: the derivative {k} at the special point {x} is {numbers}"
        expected = conventional(op, truth, x)
        for i, e in enumerate(expected):
            k = tuple(int(j == i) for j in range(op.arity))
            for got in found[k]:
                assert abs(got - e) <= 8 * np.spacing(abs(e)), f"{op.name}{parameters}: the derivative {k} at {x} is {got}, by convention it is {e}"
