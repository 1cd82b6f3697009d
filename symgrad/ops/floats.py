"""Signs, exponents and units of numbers."""

import math

from symgrad.arguments import check_kind, check_one_dtype
from symgrad.dtypes.dtype import get_default_dtype
from symgrad.dtypes.promotion import common
from symgrad.graph.op import composite, elementwise
from symgrad.ops.arithmetic import DEGREE, _is_integer

BOTH = ("input other",) * 2


@composite("deg2rad", elementwise=True, usage="symgrad.deg2rad(x)")
def deg2rad(xp, input):
    """Degrees as radians: input π / 180."""
    return _in_unit("deg2rad", xp, input, DEGREE)


@composite("rad2deg", elementwise=True, usage="symgrad.rad2deg(x)")
def rad2deg(xp, input):
    """Radians as degrees: input 180 / π."""
    return _in_unit("rad2deg", xp, input, 1 / DEGREE)


def _in_unit(name, xp, input, factor):
    check_kind(name, input, "fiub")
    return xp.scaled(input * 1.0 if _is_integer(input) else input, factor)


@composite("copysign", elementwise=True, kinks=((1.0, 0.0), (0.0, 1.0)), examples=((-1.0,),), usage="symgrad.copysign(x, -1.0)")
def copysign(xp, input, other):
    """|input| with the sign of `other`, which may be that of -0.0; the derivative at 0 is 0."""
    for x in (input, other):
        if hasattr(x, "dtype"):
            check_kind("copysign", x, "fiub")
        elif isinstance(x, complex):
            raise NotImplementedError(f"copysign: other must be a real number, not {x}")
    target = common(input, other)
    target = target if target.is_floating_point else get_default_dtype()
    size = xp.abs(input.to(target))
    if not hasattr(other, "dtype"):
        return -size if math.copysign(1.0, other) < 0 else size
    other = other.to(target)
    ones = xp.ones_like(other)
    of_zero = xp.where(xp.lt(xp.reciprocal(other), 0), -ones, ones)
    return size * xp.where(xp.logical_or(xp.eq(other, 0), xp.isnan(other)), of_zero, xp.sign(other))


@composite("heaviside", elementwise=True, kinks=((0.0, 0.5),), arity=2, usage="symgrad.heaviside(x - 0.5, symgrad.tensor(0.25))")
def heaviside(xp, input, values):
    """0 where the input is negative, 1 where it is positive, and `values` where it is 0, which alone have a derivative."""
    check_kind("heaviside", input, "fiub")
    check_one_dtype("heaviside", input, values)
    if str(input.dtype) == "torch.bool":
        return xp.logical_or(input, values)
    return xp.where(xp.eq(input, 0), values, xp.relu(xp.sign(xp.where(xp.isnan(input), 0, input))))


def _define_ignoring_nan(name, other_name, wins, loses):
    def choose(xp, input, other):
        return xp.where(xp.isnan(input), other, xp.where(xp.isnan(other), input, getattr(xp, other_name)(input, other)))

    def by_first(xp, y, a, b):
        chosen = xp.logical_or(getattr(xp, wins)(a, b), xp.logical_and(xp.isnan(b), xp.logical_not(xp.isnan(a))))
        return xp.indicator(chosen, y) + xp.indicator(xp.eq(a, b), y) / 2

    def by_second(xp, y, a, b):
        return xp.indicator(xp.logical_or(getattr(xp, loses)(a, b), xp.isnan(a)), y) + xp.indicator(xp.eq(a, b), y) / 2

    elementwise(name, choose, by_first, by_second, saved=BOTH, integers=True, kinks=((1.0, 1.0),), special=((0.0, 0.0), (1.0, 1.0)),
                usage=f"symgrad.{name}(x, 1 - x)",
                doc=f"The {other_name} of two numbers, and the other one where one is NaN; a tie shares the gradient equally.")


_define_ignoring_nan("fmax", "maximum", "gt", "lt")
_define_ignoring_nan("fmin", "minimum", "lt", "gt")


def _log_2(xp, like):
    """log(2) with all digits of the carrier, which a Python number does not have, in the shape and dtype of `like`."""
    return xp.exp2_derivative(xp.zeros_like(like), 1)


def _sigmoid2_slope_pushforward(xp, y, a, b):
    log_2 = _log_2(xp, y)
    return log_2 * y * xp.tanh(log_2 / 2 * (b - a))


elementwise("sigmoid2_slope_of_difference", None, lambda xp, y, a, b: _sigmoid2_slope_pushforward(xp, y, a, b),
            lambda xp, y, a, b: _sigmoid2_slope_pushforward(xp, y, b, a), public=False, method=False,
            doc="1 / ((1 + 2**(other - input)) (1 + 2**(input - other))).")
elementwise("sigmoid2_of_difference", None, lambda xp, y, a, b: _log_2(xp, y) * xp.sigmoid2_slope_of_difference(a, b),
            lambda xp, y, a, b: -_log_2(xp, y) * xp.sigmoid2_slope_of_difference(a, b), public=False, method=False,
            doc="1 / (1 + 2**(other - input)), accurate where the difference is large and rounded.")
elementwise("logaddexp2", None, lambda xp, y, a, b: xp.sigmoid2_of_difference(a, b), lambda xp, y, a, b: xp.sigmoid2_of_difference(b, a),
            refuses="c", kinks=((0.0, -math.inf), (-math.inf, -math.inf)), special=((0.0, 0.0),), saved=BOTH,
            doc="log2(2**input + 2**other), without overflow; equal infinite numbers share the gradient equally.")


@composite("ldexp", elementwise=True, arity=2, usage="symgrad.ldexp(x, symgrad.tensor([1, 2, 3]))", saved=("other result", "result"))
def ldexp(xp, input, other):
    """input 2**other, finite also where 2**other is not."""
    if input.is_complex() or other.is_complex():
        target = common(input, other)
        return input.to(target) * xp.pow(2.0, other.to(target))
    if _is_integer(other):
        other = other.to(get_default_dtype() if _is_integer(input) else input.dtype)
    half = xp.floor(other / 2)
    return input * xp.exp2(half) * xp.exp2(other - half)
