"""The parts of complex numbers. Over the real numbers these ops are linear: the transpose of reading the parts is joining them."""

from symgrad.arguments import check_kind, check_one_dtype
from symgrad.graph.domains import COMPLEX, NONZERO
from symgrad.graph.op import composite, elementwise, linear, primitive


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
