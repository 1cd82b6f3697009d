"""Signs, exponents and units of numbers."""

import math

from symgrad.graph.op import composite
from symgrad.ops.arithmetic import DEGREE, _is_integer

BOTH = ("input other",) * 2


@composite("deg2rad", usage="symgrad.deg2rad(x)")
def deg2rad(xp, input):
    """Degrees as radians: input π / 180."""
    return _in_unit("deg2rad", xp, input, DEGREE)


@composite("rad2deg", usage="symgrad.rad2deg(x)")
def rad2deg(xp, input):
    """Radians as degrees: input 180 / π."""
    return _in_unit("rad2deg", xp, input, 1 / DEGREE)


def _in_unit(name, xp, input, factor):
    if input.is_complex():
        raise RuntimeError(f"{name} is not supported for complex tensors.")
    return xp.scaled(input * 1.0 if _is_integer(input) else input, factor)


@composite("copysign", usage="symgrad.copysign(x, -1.0)")
def copysign(xp, input, other):
    """|input| with the sign of `other`, which may be that of -0.0; the derivative at 0 is 0."""
    for x in (input, other):
        if hasattr(x, "dtype") and x.is_complex():
            raise NotImplementedError(f"\"copysign_cpu\" not implemented for '{x.dtype.scalar_type}'")
    size = xp.abs(input * 1.0 if _is_integer(input) else input)
    if not hasattr(other, "dtype"):
        return -size if math.copysign(1.0, other) < 0 else size
    ones = xp.ones_like(other)
    of_zero = xp.where(xp.lt(xp.reciprocal(other), 0), -ones, ones)
    return size * xp.where(xp.logical_or(xp.eq(other, 0), xp.isnan(other)), of_zero, xp.sign(other))


@composite("heaviside", arity=2, usage="symgrad.heaviside(x - 0.5, symgrad.tensor(0.25))")
def heaviside(xp, input, values):
    """0 where the input is negative, 1 where it is positive, and `values` where it is 0, which alone have a derivative."""
    if input.is_complex() or values.is_complex():
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    if str(input.dtype) == "torch.bool":
        return xp.logical_or(input, values)
    return xp.where(xp.eq(input, 0), values, xp.relu(xp.sign(xp.where(xp.isnan(input), 0, input))))


def _define_ignoring_nan(name, other_name):
    def choose(xp, input, other):
        return xp.where(xp.isnan(input), other, xp.where(xp.isnan(other), input, getattr(xp, other_name)(input, other)))

    composite(name, arity=2, usage=f"symgrad.{name}(x, 1 - x)", saved=BOTH,
              doc=f"The {other_name} of two numbers, and the other one where one is NaN; a tie shares the gradient equally.")(choose)


_define_ignoring_nan("fmax", "maximum")
_define_ignoring_nan("fmin", "minimum")


@composite("logaddexp2", arity=2, usage="symgrad.logaddexp2(x, x)", saved=BOTH)
def logaddexp2(xp, input, other):
    """log2(2**input + 2**other), without overflow."""
    if input.is_complex() or other.is_complex():
        raise NotImplementedError(f"\"logaddexp2_cpu\" not implemented for '{(input if input.is_complex() else other).dtype.scalar_type}'")
    larger = xp.gt(input, other)
    high, low = xp.where(larger, input, other), xp.where(larger, other, input)
    infinite = xp.isinf(high)
    distance = xp.where(infinite, xp.zeros_like(high), low - xp.where(infinite, xp.zeros_like(high), high))
    return high + xp.log1p(xp.exp2(distance)) / math.log(2)


@composite("ldexp", arity=2, usage="symgrad.ldexp(x, symgrad.tensor([1, 2, 3]))", saved=("other result", "result"))
def ldexp(xp, input, other):
    """input 2**other, finite also where 2**other is not."""
    if not _is_integer(input) and _is_integer(other):
        other = other.to(input.dtype)
    half = xp.floor(other / 2)
    return input * xp.exp2(half) * xp.exp2(other - half)
