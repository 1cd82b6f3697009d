"""Arithmetic, powers, comparisons and choices, elementwise with broadcasting; signs, exponents and units of numbers."""

import math

from symgrad.arguments import check_kind, check_one_dtype, check_option, check_range
from symgrad.dtypes.dtype import common, get_default_dtype
from symgrad.dtypes.exponents import has_predecessor
from symgrad.graph.domains import BOOLEAN, NONZERO, POSITIVE, REAL, Domain, Interval
from symgrad.graph.op import composite, elementwise, linear, primitive
from symgrad.ops.rules import is_complex, steep


def _add_arguments(xp, input, other, *, alpha=1):
    return input, other if alpha == 1 and alpha is not True else _scaled(xp, "add", input, other, alpha)


def _sub_arguments(xp, input, other, *, alpha=1):
    return input, other if alpha == 1 and alpha is not True else _scaled(xp, "sub", input, other, alpha)


def _scaled(xp, name, input, other, alpha):
    """alpha * other, in the common dtype of both operands, which the number may not widen."""
    target = common(input, other) if hasattr(input, "dtype") or hasattr(other, "dtype") else None
    boolean = isinstance(input, bool) and isinstance(other, bool) if target is None else target.name == "bool"
    if isinstance(alpha, bool) and not boolean or target is not None and (
            isinstance(alpha, complex) and not target.is_complex or isinstance(alpha, float) and not (target.is_floating_point or target.is_complex)):
        raise RuntimeError(f"{name}: alpha={alpha} is not of the kind of the result, whose dtype is {target}")
    if target is None:
        return other and alpha if isinstance(alpha, bool) else other * alpha
    if name == "sub" and any(x.dtype.name == "bool" if hasattr(x, "dtype") else isinstance(x, bool) for x in (input, other)):
        return other  # which is refused
    if target.name == "bool":
        return other if alpha else xp.logical_and(other, False)
    return xp.scaled(other.to(target), alpha) if hasattr(other, "dtype") else other * alpha


DEGREE = math.pi / 180
UNITS = {DEGREE: "Deg2RadBackward0", 1 / DEGREE: "Rad2DegBackward0"}
linear("scaled", lambda xp, input, factor: input * factor, lambda xp, g, shape, factor: g * factor, public=False, examples=((2.5,),),
       node_name="MulBackward1", names=lambda node: UNITS.get(node.args[1]), doc="input * factor, for a Python number.")


def _is_python_number(x):
    """Whether an argument is a Python number, and not a NumPy scalar."""
    return type(x) in (int, float, complex, bool)


elementwise("add", None, 1, 1, integers=True, prepare=_add_arguments, usage="symgrad.add(x, x, alpha=2)", supports_out=True,
            doc="input + alpha * other.")
elementwise("sub", None, 1, -1, integers=True, refuses="B", names=lambda node: "RsubBackward1" if _is_python_number(node.args[0]) else None,
            prepare=_sub_arguments, aliases=("subtract",), usage="symgrad.sub(x, 1.0)", supports_out=True, doc="input - alpha * other.")
elementwise("mul", None, lambda xp, y, a, b: b, lambda xp, y, a, b: a, integers=True, aliases=("multiply",),
            exponent=lambda args: 2 if args[0] is args[1] else None, supports_out=True, doc="input * other.")


def _is_integer(x):
    return not (x.is_floating_point() or x.is_complex()) if hasattr(x, "dtype") else isinstance(x, int)


def _div_arguments(xp, input, other, *, rounding_mode=None):
    """The arguments of a division, or its result if that is rounded."""
    if rounding_mode is None:
        return input, other
    check_option("div", "rounding_mode", rounding_mode, ("trunc", "floor"))
    if not hasattr(input, "dtype") and hasattr(other, "dtype"):
        target = common(input, other)
        input, other = other.new_tensor(input, dtype=target), other.to(target)
    if not _is_integer(input) or not _is_integer(other):
        return xp.rounded_quotient(input, other, rounding_mode)
    down = xp.floor_divide(input, other)
    if rounding_mode == "floor":
        return down
    return down + xp.logical_and(xp.ne(down * other, input), xp.ne(xp.lt(input, 0), xp.lt(other, 0)))


elementwise("div", None, lambda xp, y, a, b: 1 / b, lambda xp, y, a, b: -y / b, saved=("other", "input other"),
            names=lambda node: "MulBackward0" if _is_python_number(node.args[0]) else None, domain=(REAL, NONZERO),
            aliases=("divide", "true_divide"), prepare=_div_arguments, usage="symgrad.div(x, 0.5, rounding_mode='floor')",
            supports_out=True, doc="input / other, rounded to an integer if `rounding_mode` is 'floor' or 'trunc' (towards zero); integers divide to "
                                "floats unless it is.")
elementwise("neg", None, -1, integers=True, refuses="b", aliases=("negative",), supports_out=True, doc="-input.")
elementwise("reciprocal", None, lambda xp, y, x: -y * y, domain=NONZERO, supports_out=True, doc="1 / input.")
elementwise("square", None, lambda xp, y, x: 2 * x, integers=True, refuses="b", node_name="Pow", supports_out=True,
            exponent=lambda args: 2, doc="input².")


def _power_by_base(xp, y, a, b):
    """b a^(b - 1), computed as b a^b / a if b - 1 is not exact, because log(a) would amplify its rounding error."""
    if isinstance(b, (int, float)) and has_predecessor(b):
        return xp.zeros_like(a) if b == 0 else b * a ** (b - 1)
    one, zero = xp.ones_like(y), xp.eq(a, 0)
    if isinstance(b, (int, float)):
        return b * xp.where(zero, xp.pow(xp.where(zero, a, one), b - 1), y / xp.where(zero, one, a))
    flat = xp.logical_and(zero, xp.eq(b, 0))
    exact = xp.logical_or(xp.eq((b - 1) + 1, b), zero)
    return b * (xp.pow(a, xp.where(exact, xp.where(flat, one, b - 1), b)) / xp.where(exact, one, a))


def _power_by_exponent(xp, y, a, b):
    real = xp.getitem(xp.view_as_real(b), (..., 0)) if hasattr(b, "dtype") and is_complex(b) else b
    flat = xp.logical_and(xp.eq(a, 0), xp.ge(real, 0))
    return xp.where(flat, xp.zeros_like(y), y * xp.log(xp.where(flat, xp.ones_like(y), a)))


elementwise("pow", lambda xp, input, exponent: xp.pow(input, exponent), _power_by_base, _power_by_exponent,
                  kinks=((0.0, 0), (0.0, 1), (0.0, 2), (0.0, 0.0), (0.0, 2.0)), domain=(POSITIVE, REAL), integers=True,
                  refuses="b", saved=("input exponent", "input exponent result"), exponent=lambda args: args[1],
                  names=lambda node: f"PowBackward{2 if _is_python_number(node.args[0]) else 0 if _is_python_number(node.args[1]) else 1}",
                  usage="symgrad.pow(x, 3)", doc="input ** exponent. By the exponent the derivative is y log(input), and 0 where input is 0.")


def _power_at_zero(xp, y, x, b, order):
    """The derivative of the power of a sum of squares. At 0 it is 0, and so are its derivatives, as far as those of the power exist."""
    zero = xp.eq(x, 0)
    return xp.where(zero, steep(xp, x, zero, order - 1), _power_by_base(xp, y, x, b))


elementwise("power_of_squares", lambda xp, input, exponent, order: xp.pow(input, exponent), _power_at_zero,
            domain=Domain("SQUARES", (Interval(0.0, 1e80),)), examples=((3.5, 6),), public=False, refuses="bc", node_name="Pow",
            doc="input ** exponent for a sum of squares and an exponent above 1: `order` derivatives are 0 where it is 0.")
elementwise("remainder", None, 1, lambda xp, y, a, b: -xp.round((a - y) / b), kinks=((2.0, 1.0),), saved=("", "input other"),
            names=lambda node: f"RemainderBackward{int(not _is_python_number(node.args[1]))}",
                        domain=(REAL, NONZERO), integers=True, refuses="bc", doc="input - floor(input / other) * other: it has the sign of `other`.")

elementwise("maximum", None, lambda xp, y, a, b: xp.indicator(xp.gt(a, b), y) + xp.indicator(xp.eq(a, b), y) / 2,
                      lambda xp, y, a, b: xp.indicator(xp.lt(a, b), y) + xp.indicator(xp.eq(a, b), y) / 2,
                      kinks=((1.0, 1.0),), special=((0.0, 0.0), (1.0, 1.0)), integers=True,
                      doc="The larger of two values; a tie shares the gradient equally.")
elementwise("minimum", None, lambda xp, y, a, b: xp.indicator(xp.lt(a, b), y) + xp.indicator(xp.eq(a, b), y) / 2,
                      lambda xp, y, a, b: xp.indicator(xp.gt(a, b), y) + xp.indicator(xp.eq(a, b), y) / 2,
                      kinks=((1.0, 1.0),), special=((0.0, 0.0), (1.0, 1.0)), integers=True,
                      doc="The smaller of two values; a tie shares the gradient equally.")


def _clamp(xp, input, min=None, max=None):
    out = input if min is None else xp.maximum(input, min)
    return out if max is None else xp.minimum(out, max)


def _strictly_between(xp, y, x, min=None, max=None):
    if min is None or max is None:
        return xp.indicator(xp.lt(x, max) if min is None else xp.gt(x, min), y)
    return xp.indicator(xp.logical_and(xp.gt(x, min), xp.lt(x, max)), y)


elementwise("clamp_number", _clamp, _strictly_between, node_name="ClampBackward1", public=False, integers=True,
            examples=((-1.0, 1.0), (None, 0.5), (0.25, None)), special=((-1.0,), (1.0,), (0.5,), (0.25,)), doc="The input limited by numbers.")


@composite("clamp", elementwise=True, kinks=((1.0, -1, 1),), examples=((-1.0, 1.0), (0.25, None)), usage="symgrad.clamp(x, 0.3, 0.6)",
           aliases=("clip",))
def clamp(xp, input, min=None, max=None):
    """The input limited to [min, max]; the derivative is 1 strictly inside and 0 elsewhere."""
    if min is None and max is None:
        raise RuntimeError("clamp: min or max must be given")
    if isinstance(min, (int, float, type(None))) and isinstance(max, (int, float, type(None))):
        return xp.clamp_number(input, min, max)
    if min is not None and max is not None and hasattr(input, "to"):
        input = input.to(common(input, min, max))  # the bounds are compared in the dtype of all three
    return _clamp(xp, input, min, max)


LONG = {"ne": ("not_equal",), "lt": ("less",), "le": ("less_equal",), "gt": ("greater",), "ge": ("greater_equal",)}
for _name, _sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    elementwise(_name, None, None, None, refuses="" if _name in ("eq", "ne") else "c", aliases=LONG.get(_name, ()),
                doc=f"input {_sign} other, as booleans.")
for _name in ("logical_and", "logical_or"):
    elementwise(_name, None, None, None, doc=f"The {_name.replace('_', ' ')} of two truth values.")
for _name, _what in {"logical_not": "Not `input`", "isfinite": "Whether neither infinite nor NaN", "isnan": "Whether NaN",
                     "isinf": "Whether infinite"}.items():
    elementwise(_name, None, None, doc=f"{_what}, elementwise.")


@composite("isclose", arity=2, usage="symgrad.isclose(x, x + 1e-9)")
def isclose(xp, input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |input - other| <= atol + rtol |other|, elementwise; equal infinities are close, and NaN is close to NaN if `equal_nan`."""
    if not hasattr(other, "dtype"):
        raise TypeError(f"isclose: other must be a tensor, not {other!r}")
    check_one_dtype("isclose", input, other)
    check_range("isclose", "rtol", rtol, 0)
    check_range("isclose", "atol", atol, 0)
    close = xp.eq(input, other)
    if equal_nan and (input.is_floating_point() or input.is_complex()):
        close = xp.logical_or(close, xp.logical_and(xp.isnan(input), xp.isnan(other)))
    if rtol == 0 and atol == 0:
        return close
    if str(input.dtype) == "torch.bool":
        return close if rtol + atol < 1 and atol < 1 else isclose(xp, input.to("uint8"), other.to("uint8"), rtol, atol)
    error = xp.abs(input - other)
    return xp.logical_or(close, xp.logical_and(xp.isfinite(error), xp.le(error, atol + xp.abs(rtol * other))))


primitive("where", lambda xp, condition, input, other: xp.where(condition, input, other), arity=3, method=False,
          vjp=(lambda xp, g, y, condition, a, b: None, lambda xp, g, y, condition, a, b: xp.where(condition, g, xp.zeros_like(g)),
               lambda xp, g, y, condition, a, b: xp.where(condition, xp.zeros_like(g), g)),
          domain=(BOOLEAN, REAL, REAL), integers=True, selects=True, layout="operands", saved=("", "condition", "condition"),
          jvp=lambda xp, _, ta, tb, y, condition, a, b: xp.where(condition, ta, tb),
                  usage="symgrad.where(x > 0, x, 0.0)",
                  doc="`input` where `condition` holds, else `other`. The derivative of elements that were not selected is 0, never NaN.")


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
