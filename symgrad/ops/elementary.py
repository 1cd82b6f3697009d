"""Elementary functions of one or two real variables (DLMF chapter 4), with partial derivatives in accurate forms; the parts of complex numbers.

Over the real numbers the ops of parts are linear: the transpose of reading the parts is joining them.
"""

from symgrad.arguments import check_kind, check_one_dtype
from symgrad.graph.domains import COMPLEX, NONZERO, POSITIVE, REAL, UNIT_OPEN, Domain, Interval
from symgrad.graph.op import composite, elementwise, linear, primitive
from symgrad.layouts.strides import is_plain
from symgrad.ops.reduction import or_infinity
from symgrad.ops.rules import edge_of_length, is_complex, power_at_zero, power_of_length, real_product, squared_size, steep

ABOVE_ONE = Domain("ABOVE_ONE", (Interval(1.0, open_low=True),))
ABOVE_MINUS_ONE = Domain("ABOVE_MINUS_ONE", (Interval(-1.0, open_low=True),))
ZERO = ((0.0,), (-0.0,))

elementwise("exp", None, lambda xp, y, x: y, supports_out=True, doc="e**input. DLMF 4.2.")
elementwise("exp2", None, lambda xp, y, x: xp.exp2_derivative(x, 1), saved=("result",), inverse=lambda xp, y: xp.log2(y), supports_out=True,
            doc="2**input.")
elementwise("exp2_derivative", lambda xp, input, order: xp.exp2_derivative(input, order), lambda xp, y, x, order: xp.exp2_derivative(x, order + 1),
            public=False, examples=((1,),), node_name="Exp2", doc="The derivatives of 2**input, without a rounded log(2) as constant of the graph.")
elementwise("expm1", None, lambda xp, y, x: xp.exp(x), special=ZERO, saved=("result",), inverse=lambda xp, y: xp.log1p(y),
            supports_out=True, doc="e**input - 1, accurate next to 0.")
elementwise("log", None, lambda xp, y, x: 1 / x, kinks=((0.0,),), domain=POSITIVE, supports_out=True, doc="The natural logarithm. DLMF 4.2.")
elementwise("log2", None, lambda xp, y, x: xp.log_derivative(x, 2), domain=POSITIVE, supports_out=True, doc="The logarithm to base 2.")
elementwise("log10", None, lambda xp, y, x: xp.log_derivative(x, 10), domain=POSITIVE, supports_out=True, doc="The logarithm to base 10.")
elementwise("log_derivative", lambda xp, input, base: xp.log_derivative(input, base), lambda xp, y, x, base: -y / x, domain=POSITIVE, public=False,
            examples=((2,), (10,)), doc="1 / (input log(base)), without a rounded log(base) as constant of the graph.")
elementwise("log1p", None, lambda xp, y, x: 1 / (1 + x), domain=ABOVE_MINUS_ONE, special=ZERO, node_name="Log1P",
            supports_out=True, doc="log(1 + input), accurate next to 0.")
elementwise("sqrt", None, lambda xp, y, x: 1 / (2 * y), kinks=((0.0,),), domain=POSITIVE, supports_out=True, doc="The square root.")
elementwise("rsqrt", None, lambda xp, y, x: -y / (2 * x), domain=POSITIVE, doc="1 / sqrt(input).")
elementwise("cbrt", None, lambda xp, y, x: xp.pow(y, -2) / 3, kinks=((0.0,),), domain=NONZERO, saved=("result",),
            inverse=lambda xp, y: y * xp.square(y), doc="The real cube root, NumPy's name. The derivative at 0 is infinite.")

elementwise("sin", None, lambda xp, y, x: xp.cos(x), supports_out=True, doc="The sine. DLMF 4.14.")
elementwise("cos", None, lambda xp, y, x: -xp.sin(x), supports_out=True, doc="The cosine. DLMF 4.14.")
elementwise("tan", None, lambda xp, y, x: 1 + y * y, domain=Domain("TAN", (Interval(-1.57, 1.57),)), supports_out=True, doc="The tangent. DLMF 4.14.")
elementwise("asin", None, lambda xp, y, x: xp.rsqrt(xp.one_minus_square(x)), domain=UNIT_OPEN, special=ZERO, aliases=("arcsin",),
            supports_out=True, doc="The inverse sine. DLMF 4.23.")
elementwise("acos", None, lambda xp, y, x: -xp.rsqrt(xp.one_minus_square(x)), domain=UNIT_OPEN, special=ZERO, aliases=("arccos",),
            supports_out=True, doc="The inverse cosine. DLMF 4.23.")


def _secant_of_atan(xp, x):
    """√(1 + x²), of a real number without overflow; the difference keeps the sign of an imaginary zero, which tells the side of a cut."""
    return xp.sqrt(x * x - -1.0) if is_complex(x) else xp.hypot(xp.ones_like(x), x)


elementwise("atan", None, lambda xp, y, x: xp.square(1 / _secant_of_atan(xp, x)), special=ZERO, aliases=("arctan",),
            supports_out=True, doc="The inverse tangent. DLMF 4.23.")


def _over_length(xp, x, a, b):
    """x / hypot(a, b), and NaN at the kink (0, 0), next to which it is infinite."""
    return x / xp.hypot(a, b)


def _slope_of_turn(xp, a, b):
    """2a (3b² - a²) / (a² + b²)³, by the slopes of the angle."""
    across, along = xp.angle_slope(b, a), xp.angle_slope(a, b)
    return 2 * across * (3 * xp.square(along) - xp.square(across))


elementwise("atan2", None, lambda xp, y, a, b: xp.angle_slope(a, b), lambda xp, y, a, b: -xp.angle_slope(b, a),
            kinks=((0.0, 0.0),), domain=(REAL, POSITIVE), aliases=("arctan2",), supports_out=True, doc="The angle of the point (other, input).")
elementwise("angle_slope", None, lambda xp, y, a, b: -2 * y * xp.angle_slope(b, a), lambda xp, y, a, b: xp.angle_turn(a, b), public=False,
            method=False, domain=(REAL, POSITIVE), doc="other / (input² + other²), the derivative of the angle by the input, and 0 at (0, 0).")
elementwise("angle_turn", None, lambda xp, y, a, b: _slope_of_turn(xp, a, b), lambda xp, y, a, b: -_slope_of_turn(xp, b, a), public=False,
            method=False, domain=(REAL, POSITIVE), doc="(input² - other²) / (input² + other²)², a second derivative of the angle, and 0 at (0, 0).")
elementwise("hypot", None, lambda xp, y, a, b: xp.direction(a, b), lambda xp, y, a, b: xp.direction(b, a), square="square_of_hypot",
            kinks=((0.0, 0.0),), doc="sqrt(input² + other²), without overflow; the derivative at (0, 0) is 0.")
elementwise("direction", None, lambda xp, y, a, b: xp.direction(b, a) * _over_length(xp, xp.direction(b, a), a, b),
            lambda xp, y, a, b: -y * _over_length(xp, xp.direction(b, a), a, b), public=False,
            doc="input / hypot(input, other), and 0 at (0, 0): the derivatives of norms and angles are products of it, without cancellation.")

elementwise("sinh", None, lambda xp, y, x: xp.cosh(x), special=ZERO, supports_out=True, doc="The hyperbolic sine. DLMF 4.28.")
elementwise("cosh", None, lambda xp, y, x: xp.sinh(x), supports_out=True, doc="The hyperbolic cosine. DLMF 4.28.")
elementwise("tanh", None, lambda xp, y, x: xp.sech_square(x), special=(*ZERO, (20.0,), (-20.0,)), saved=("result",),
            inverse=lambda xp, y: xp.atanh(y), supports_out=True, doc="The hyperbolic tangent. DLMF 4.28.")
elementwise("sech", None, lambda xp, y, x: -y * xp.tanh(x), doc="1 / cosh(input), without overflow. DLMF 4.28.")
elementwise("sech_square", None, lambda xp, y, x: -2 * y * xp.tanh(x), public=False, special=((20.0,), (-20.0,)), doc="1 / cosh(input)².")
elementwise("asinh", None, lambda xp, y, x: 1 / _secant_of_atan(xp, x), special=ZERO, aliases=("arcsinh",),
            supports_out=True, doc="The inverse hyperbolic sine. DLMF 4.37.")
elementwise("acosh", None, lambda xp, y, x: 1 / (xp.sqrt(x - 1) * xp.sqrt(x - -1.0)), domain=ABOVE_ONE, aliases=("arccosh",),
            supports_out=True, doc="The inverse hyperbolic cosine. DLMF 4.37.")
elementwise("atanh", None, lambda xp, y, x: 1 / xp.one_minus_square(x), domain=UNIT_OPEN, special=ZERO, aliases=("arctanh",),
            supports_out=True, doc="The inverse hyperbolic tangent. DLMF 4.37.")
elementwise("one_minus_square", None, lambda xp, y, x: -2 * x, public=False, special=((1.0,), (-1.0,)), doc="1 - input², accurate next to ±1.")


def _direction_of(xp, y, x):
    """sign(x); of a complex number x / |x|, and 0 at 0."""
    if not is_complex(x):
        return xp.sign(x)
    length = xp.abs(x)  # recomputed, because the result is not saved
    if is_plain(x):
        return x / or_infinity(xp, length)
    zero = xp.eq(length, 0)
    return xp.where(zero, steep(xp, x, zero), x / or_infinity(xp, length))  # the derivative of a reciprocal overflows for small numbers


def _abs_jvp(xp, tangents, y, args):
    """The part of the tangent along x: Re(conj(x / |x|) t)."""
    (t,), (x,) = tangents, args
    if not is_complex(x):
        return t * xp.sign(x)
    return real_product(xp, _direction_of(xp, y, x), t)


elementwise("beyond_zero", lambda xp, input, value: xp.where(xp.gt(value, 0), input, value), lambda xp, y, x, value: xp.indicator(xp.gt(value, 0), y),
            0, domain=POSITIVE, public=False, refuses="c", node_name="Alias",
            doc="A length with its value, of which the elements 0 are constants.")
elementwise("power_of_length", power_of_length, lambda xp, y, n, s, e: e * n ** (e - 1), lambda xp, y, n, s, e: power_at_zero(xp, n, s, e),
            examples=((2,), (4,)), public=False, refuses="c", node_name="Pow",
            doc="input^exponent for a length, a smooth function of its square where that is 0.")
def _square_of_abs_slope(xp, y, x, order):
    if not is_complex(x) or (edge := edge_of_length(xp, y, x, order)) is None:
        return 2 * x
    return 2 * (x + edge * (1 + 1j))


def _square_of_hypot_slope(xp, y, a, b, order):
    edge = edge_of_length(xp, y, a + b, order)
    return 2 * a if edge is None else 2 * (a + edge)


elementwise("square_of_abs", lambda xp, input, order: squared_size(xp, input), _square_of_abs_slope, examples=((None,),), public=False,
            node_name="Pow", jvp=lambda xp, t, y, args: real_product(xp, _square_of_abs_slope(xp, y, *args), t[0]),
            doc="|input|² of what is raised to a power, with the order of its edge.")
elementwise("square_of_hypot", lambda xp, input, other, order: input * input + other * other, _square_of_hypot_slope,
            lambda xp, y, a, b, order: _square_of_hypot_slope(xp, y, b, a, order), examples=((None,),), public=False, node_name="Pow",
            doc="input² + other² of what is raised to a power, with the order of its edge.")
elementwise("abs", None, _direction_of, kinks=((0.0,),), jvp=_abs_jvp, integers=True, square="square_of_abs", special=ZERO, aliases=("absolute",),
            supports_out=True, doc="|input|; the derivative at 0 is 0.")
elementwise("sign", None, 0, kinks=((0.0,),), integers=True, refuses="c", special=ZERO, doc="-1, 0 or 1; the derivative is 0.")
elementwise("floor", None, 0, kinks=((1.0,),), integers=True, refuses="bc", supports_out=True,
            doc="The largest integer not above the input; the derivative is 0.")
elementwise("ceil", None, 0, kinks=((1.0,),), integers=True, refuses="bc", supports_out=True,
            doc="The smallest integer not below the input; the derivative is 0.")


def _round_arguments(xp, input, *, decimals=0):
    """The argument of a rounding to integers, or the input rounded to decimal digits."""
    if not decimals:
        return (input,)
    check_kind("round", input, "fc")
    power = 10.0 ** abs(decimals)
    return xp.round(input * power) / power if decimals > 0 else xp.round(input / power) * power


elementwise("round", None, 0, kinks=((0.5,),), integers=True, refuses="bc", prepare=_round_arguments, usage="symgrad.round(x, decimals=1)",
            doc="The nearest integer, or multiple of 10**-decimals, halves to even; the derivative is 0.")
elementwise("trunc", None, 0, kinks=((1.0,),), integers=True, refuses="bc", aliases=("fix",), supports_out=True,
            doc="The integer part; the derivative is 0.")

elementwise("sinc_derivative", lambda xp, input, order: xp.sinc_derivative(input, order), lambda xp, y, x, order: xp.sinc_derivative(x, order + 1),
            public=False, special=((0.0,), (1e-5,)), examples=((0,),), node_name="Sinc", doc="The derivative of sinc of any order.")


@composite("sinc", elementwise=True, usage="symgrad.sinc(x)")
def sinc(xp, input):
    """sin(π input) / (π input), and 1 at 0; its derivatives of every order are accurate next to 0."""
    return xp.sinc_derivative(input, 0)


def _check_complex(xp, input):
    check_kind("view_as_real", input, "c")
    return (input,)


def _check_place(offset, shape, strides):
    """Refuse pairs that are not where complex numbers can be in memory."""
    if offset % 2 or strides[-1] != 1 or any(s % 2 and n != 1 for n, s in zip(shape[:-1], strides)):
        raise RuntimeError(f"view_as_complex: the pairs at offset {offset} with strides {strides} do not lie in memory as complex numbers do. Call "
                           ".contiguous() first")


def _in_order(pairs):
    """Pairs in the order of their memory; a value without memory, or with NumPy's, as it is."""
    return pairs.contiguous() if hasattr(pairs, "contiguous") else pairs


def _check_pairs(xp, input):
    check_kind("view_as_complex", input, "f")
    if not input.ndim or input.shape[-1] != 2:
        raise RuntimeError(f"view_as_complex: the last dimension must have size 2, but the shape is {list(input.shape)}")
    if hasattr(input, "storage_offset") and type(input._value).__module__ == "numpy":
        _check_place(input.storage_offset(), input.shape, input.stride())
    if input.element_size() < 4:
        raise RuntimeError(f"view_as_complex: there is no complex dtype with parts of {input.dtype}. Convert with .to(float32) first")
    return (input,)


linear("view_as_real", lambda xp, input: xp.view_as_real(input), lambda xp, g, shape: xp.view_as_complex(_in_order(g)), prepare=_check_complex,
       view=True, method=False, domain=COMPLEX, usage="symgrad.view_as_real(symgrad.complex(x, x))",
       doc="The real and the imaginary parts of complex numbers as a new last dimension of size 2: a view.")
linear("view_as_complex", lambda xp, input: xp.view_as_complex(input), lambda xp, g, shape: xp.view_as_real(g), prepare=_check_pairs, view=True,
       method=False, domain=COMPLEX, usage="symgrad.view_as_complex(symgrad.ones(3, 2))",
       doc="The complex numbers whose real and imaginary parts are the last dimension: a view.")
linear("conjugate", lambda xp, input: xp.conj(input), lambda xp, g, shape: xp.conj(g), public=False, node_name="Conj", domain=COMPLEX,
       doc="The complex conjugates.")


@composite("conj", view=True, usage="symgrad.conj(x)", aliases=("conj_physical",))
def conj(xp, input):
    """The complex conjugates; real numbers are unchanged."""
    return xp.conjugate(input) if input.is_complex() else input


@composite("resolve_conj", view=True, usage="symgrad.resolve_conj(x)", aliases=("resolve_neg",))
def resolve_conj(xp, input):
    """The input itself, since conjugation is never deferred."""
    return input


def _part(xp, input, index):
    return xp.select(xp.view_as_real(input), -1, index)


@composite("real", view=True, usage="symgrad.real(x)", method=False)
def real(xp, input):
    """The real parts, a view; a real input itself."""
    return _part(xp, input, 0) if input.is_complex() else input


@composite("imag", view=True, usage="symgrad.imag(symgrad.complex(x, x))", method=False)
def imag(xp, input):
    """The imaginary parts: a view."""
    check_kind("imag", input, "c")
    return _part(xp, input, 1)


def _complex_of(xp, first, second):
    return xp.view_as_complex(xp.stack([first, second], first.ndim))


def _real_and_imaginary(xp, g):
    pairs = xp.view_as_real(g)
    return xp.getitem(pairs, (..., 0)), xp.getitem(pairs, (..., 1))


def _complex_arguments(xp, real, imag):
    check_one_dtype("complex", real, imag)
    if not real.is_floating_point() or real.dtype.name == "bfloat16":
        raise RuntimeError(f"complex: the parts must be float16, float32 or float64, not {real.dtype}")
    if real.element_size() < 4:  # complex numbers have parts of 32 bits or more
        real, imag = real.float(), imag.float()
    if real.shape != imag.shape:
        shape = xp.add(real, imag).shape
        return xp.broadcast_to(real, tuple(shape)), xp.broadcast_to(imag, tuple(shape))
    return real, imag


for _name, _node in {"complex": "Complex", "polar_parts": "Polar"}.items():
    linear(_name, lambda xp, real, imag: _complex_of(xp, real, imag), lambda xp, g, shape: _real_and_imaginary(xp, g)[0],
           lambda xp, g, shape: _real_and_imaginary(xp, g)[1],
           prepare=_complex_arguments, method=False, public=_name == "complex", node_name=_node, layout="operands", domain=COMPLEX,
           usage="symgrad.complex(x, x)",
           doc="The complex numbers with these real and imaginary parts.")


@composite("polar", arity=2, usage="symgrad.polar(x, x)", method=False)
def polar(xp, abs, angle):
    """The complex numbers with these absolute values and angles."""
    abs, angle = _complex_arguments(xp, abs, angle)
    return xp.polar_parts(abs * xp.cos(angle), abs * xp.sin(angle))


def _angle_vjp(xp, g, y, x):
    a, b = _real_and_imaginary(xp, x)
    return _complex_of(xp, g * -xp.angle_slope(a, b), g * xp.angle_slope(b, a))


def _angle_jvp(xp, t, y, x):
    (a, b), (u, v) = _real_and_imaginary(xp, x), _real_and_imaginary(xp, t)
    return v * xp.angle_slope(b, a) - u * xp.angle_slope(a, b)


primitive("angle_of_complex", lambda xp, input: xp.atan2(*reversed(_real_and_imaginary(xp, input))), vjp=_angle_vjp, jvp=_angle_jvp, public=False,
          node_name="Angle", layout="rows", domain=COMPLEX, doc="The angles of complex numbers.")
elementwise("angle_of_real", lambda xp, input: xp.where(xp.lt(input, 0), xp.acos(-xp.ones_like(input)),
                                                              xp.where(xp.isnan(input), input, xp.zeros_like(input))), 0, public=False,
            domain=NONZERO, node_name="Angle", doc="The angles of real numbers: 0, or π if negative.")


@composite("angle", elementwise=True, domain=NONZERO, kinks=((0.0,),), usage="symgrad.angle(x)")
def angle(xp, input):
    """The angles of complex numbers; of real numbers 0, or π if negative. The derivative at 0 is 0."""
    return xp.angle_of_complex(input) if input.is_complex() else xp.angle_of_real(input)


@composite("sgn", elementwise=True, kinks=((0.0,),), usage="symgrad.sgn(x)")
def sgn(xp, input):
    """The sign; of complex numbers, the number of absolute value 1 with the same angle, and 0 at 0, as its derivative there."""
    if not input.is_complex():
        return xp.sign(input)
    size = xp.abs(input)
    zero = xp.eq(size, 0)
    return xp.where(zero, xp.zeros_like(input), input / xp.where(zero, xp.ones_like(size), size))
