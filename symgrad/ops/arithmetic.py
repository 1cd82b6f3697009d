"""Arithmetic, powers, comparisons and choices, elementwise with broadcasting."""

import math

from symgrad.arguments import check_one_dtype, check_option, check_range
from symgrad.dtypes.exponents import has_predecessor
from symgrad.dtypes.promotion import common
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
