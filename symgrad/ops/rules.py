"""Helpers shared by several rule tables. Like rules, they use only `xp` and plain Python.

In the tables `_<op>_arguments` checks and normalizes the arguments of an op (its `prepare`), `_<op>_transpose` is the transpose of a linear op, and
`_<op>_vjp` and `_<op>_jvp` are the rules of a primitive one. `_define_...` declares several ops of one structure.
"""

from __future__ import annotations

import functools
import math

from symgrad.dtypes.dtype import DTYPES, common, get_default_dtype
from symgrad.errors import OUT_OF_RANGE
from symgrad.layouts.strides import is_plain


def axis(dim, ndim):
    """An axis as a number from 0 to ndim - 1. Raises TypeError for what is no integer, IndexError for one out of range."""
    if type(dim) is int and -ndim <= dim < ndim:
        return dim % ndim
    span = ndim or 1
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"dim must be an integer, not {type(dim).__name__} ({dim!r})")
    dim = dim.__index__()
    if not -span <= dim < span:
        raise IndexError(OUT_OF_RANGE.format(-span, span - 1, dim))
    return dim % span


class AllAxes(tuple):
    """All axes of a tensor, for a call without axes."""

    __slots__ = ()


_ALL_AXES = tuple(AllAxes(range(ndim)) for ndim in range(9))


def axes(dim, ndim):
    """Several axes, or None for all of them, as a tuple of distinct numbers."""
    if dim is None or isinstance(dim, (tuple, list)) and not dim:
        return _ALL_AXES[ndim] if ndim < len(_ALL_AXES) else AllAxes(range(ndim))
    if type(dim) is int and -ndim <= dim < ndim:
        return (dim % ndim,)
    out = tuple([axis(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))])
    if len(out) == 1:
        return out if ndim else ()
    if len(set(out)) != len(out):
        raise RuntimeError(f"the dimensions {tuple(dim)} are not distinct")
    return out if ndim else ()


def equal_or_nan(xp, x, y):
    """1 where x is y, or both are NaN, else 0."""
    return xp.indicator(xp.logical_or(xp.eq(x, y), xp.logical_and(xp.ne(x, x), xp.ne(y, y))), x)


def expand_reduced(xp, y, shape, dim, keepdim):
    """A reduced value broadcast to the shape before the reduction."""
    return xp.broadcast_to(unsqueeze_reduced(xp, y, shape, dim, keepdim), shape) if shape else y


def unsqueeze_reduced(xp, y, shape, dim, keepdim):
    """A reduced value with the reduced axes as axes of size 1."""
    return y if keepdim or len(dim) == len(shape) else xp.reshape(y, tuple([1 if i in dim else n for i, n in enumerate(shape)]))


@functools.lru_cache(1024)
def inverse_permutation(order):
    """The order of dimensions that undoes a permutation of them."""
    return tuple(order.index(i) for i in range(len(order)))


def divided_by_count(xp, x, count):
    """x / count; a count that float16 or bfloat16 rounds, or does not hold, is not converted to it."""
    if count <= 256 or getattr(getattr(x, "dtype", None), "char", "") not in ("e", "E"):
        return x / count
    return xp.astype(xp.astype(x, DTYPES["float32"].numpy) / count, x.dtype)


def reduced_count(shape, dim):
    """The number of elements of which each reduced value is made."""
    return math.prod([shape[i] for i in dim])


def sizes(shape):
    """Sizes given as one sequence or as several integers."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    if type(shape) is tuple and {*map(type, shape)} <= {int}:
        return shape
    for n in shape:
        if not hasattr(n, "__index__"):
            raise TypeError(f"sizes must be integers, not {type(n).__name__} ({n!r})")
    return tuple(n.__index__() for n in shape)


def numbered_node_name(name):
    """The function that names the node of a reduction: torch appends 1 with axes and 0 over all elements."""
    return lambda node: f"{name}Backward{int(not isinstance(node.args[1], AllAxes))}"


def cast(xp, name, input, dtype, *args):
    """The input in another dtype; for integers the result, which has that dtype where the sum or product of integers else has int64."""
    input = input.to(dtype)
    return (input, *args) if input.is_floating_point() or input.is_complex() else getattr(xp, name)(input, *args).to(dtype)


def running(name):
    """The arguments of a running sum or product."""
    def arguments(xp, input, dim, *, dtype=None):
        dim = axis(dim, input.ndim)
        return (input, dim) if dtype is None else cast(xp, name, input, dtype, dim)

    return arguments


def in_float32(function):
    """A function of several steps that is computed in float32 for float16 and bfloat16, and rounded once."""
    @functools.wraps(function)
    def compute(*args, **kwargs):
        given = (*args, *kwargs.values())
        narrow = next((x.dtype for x in given if hasattr(x, "shape") and x.dtype.name in ("float16", "bfloat16")), None)
        if narrow is None:
            return function(*args, **kwargs)

        def widened(x):
            return x.to(DTYPES["float32"]) if hasattr(x, "shape") and x.dtype is narrow else x

        y = function(*map(widened, args), **{name: widened(x) for name, x in kwargs.items()})
        return y.to(narrow) if y.dtype.name == "float32" else y

    return compute


def as_floats(x):
    """Integers and booleans in the default dtype; other tensors, and Python numbers, as they are."""
    return x if not hasattr(x, "dtype") or x.is_floating_point() or x.is_complex() else x.to(get_default_dtype())


def constant(name, word, given):
    """A parameter by which nothing is differentiated: of a tensor its number. Raises TypeError for a tensor that requires grad."""
    if getattr(given, "requires_grad", False):
        raise TypeError(f"{name}: {word} requires grad, but there is no derivative with respect to it. Pass {word}.detach() or {word}.item()")
    return given.item() if hasattr(given, "shape") else given


def plain_number(name, word, given):
    """A real number that may be given as a tensor without dimensions. Raises TypeError for another, and for one that requires grad."""
    number = given.item() if hasattr(given, "item") and not given.shape and not getattr(given, "requires_grad", False) else given
    if not isinstance(number, (int, float)):
        raise TypeError(f"{name}: {word} must be a real number, not {type(given).__name__}")
    return int(number) if isinstance(number, bool) else number


def in_one_dtype(*xs):
    """Tensors and Python numbers as tensors of their common dtype, floats for integers."""
    first, *rest = [getattr(x, "dtype", None) for x in xs]
    if first is not None and rest.count(first) == len(rest) and (first.is_floating_point or first.is_complex):  # as in most calls
        return xs
    target = common(*xs)
    target = target if target.is_floating_point or target.is_complex else get_default_dtype()
    tensor = next(x for x in xs if hasattr(x, "dtype"))
    return tuple([x.to(target) if hasattr(x, "dtype") else tensor.new_tensor(x, dtype=target) for x in xs])


def check_not_empty(name, tensors):
    """The tensors of a sequence that has some. Raises TypeError for what is no sequence, a tensor among them."""
    if not isinstance(tensors, (tuple, list)) or not tensors:
        raise (RuntimeError if isinstance(tensors, (tuple, list)) else TypeError)(f"{name}: the tensors must be a list of one or more")
    return tensors


def check_expandable(name, input, shape):
    """Check that a tensor expands to a shape."""
    lead = len(shape) - input.ndim
    if lead < 0 or any([n not in (1, m) for n, m in zip(input.shape, shape[lead:])]):
        raise RuntimeError(f"{name}: the input of shape {list(input.shape)} does not expand to the shape {list(shape)}")


def whole_factors(name, input, *factors):
    """The factors of an added product: whole numbers for integers, as in torch."""
    for factor in factors:
        if isinstance(factor, (list, tuple)):
            raise TypeError(f"{name}: a factor must be a number, not {factor!r}")
    whole = hasattr(input, "is_floating_point") and not (input.is_floating_point() or input.is_complex())
    if not whole:
        return factors
    for factor in factors:
        if factor != factor or isinstance(factor, complex):
            raise RuntimeError(f"{name}: the factors of integers are whole numbers, not {factor}")
    modulus = 2 ** (8 * input.element_size())
    least = 0 if input.dtype.name.startswith("uint") else -modulus // 2
    return [(int(factor) - least) % modulus + least for factor in factors]


def is_complex(x):
    """Whether an array or a Tensor is complex; False for formulas and high-precision numbers."""
    return getattr(x.dtype, "kind", "") == "c" or getattr(x.dtype, "is_complex", False)


def real_product(xp, a, b):
    """Re(conj(a) b), the product over the real numbers."""
    if not (is_complex(a) or getattr(a, "complex", False)):
        return a * b
    parts = xp.view_as_real(a) * xp.view_as_real(b)
    return xp.getitem(parts, (..., 0)) + xp.getitem(parts, (..., 1))


def every(x):
    """The numbers of a tensor that decide whether an argument is refused, those of all members of a vmap among them."""
    value = x.value
    while hasattr(value, "level"):
        value = value.data
    return value if hasattr(value, "tobytes") else x


def squared_size(xp, x):
    """|x|², the square of a real number."""
    return real_product(xp, x, x)


def steep(xp, x, zero, order=0):
    """A function of x that is 0 where `zero` says that x is 0, with `order` derivatives that are 0 and an infinite one.

    In the place of a convention it makes the derivatives of that infinite or NaN, as those of x / |x| are next to 0.
    """
    base = xp.where(zero, x, xp.ones_like(x))
    return base ** (order + 0.5) if order else xp.sqrt(base)


def edge_of_length(xp, length, x, order, dim=None):
    """The derivative, by the sum of the coordinates, of a function that is 0 where the length of x is 0, with `order` + 1 derivatives that are 0 and
    infinite ones along all directions; None if it has no part in a derivative. A sum of squares alone is flat along all but one of them."""
    if order is None or is_plain(x):
        return None
    along = xp.getitem(xp.view_as_real(x), (..., 0)) + xp.getitem(xp.view_as_real(x), (..., 1)) if is_complex(x) else x
    along = along if dim is None else xp.sum(along, dim, True)
    zero = xp.eq(length, 0)
    return xp.where(zero, steep(xp, along, zero, order), xp.zeros_like(along))


def power_of_length(xp, input, square, exponent):
    """The power of a length, as one of its square where the length is 0 and a constant."""
    return xp.where(xp.eq(input, 0), square ** (exponent / 2), input**exponent)


def power_at_zero(xp, length, square, exponent):
    """The derivative of a power of a length with respect to its square where that is 0."""
    zero = xp.eq(length, 0)
    slope = xp.indicator(xp.gt(square, 0), length)  # which is 0 where the length is, but not beside it: the square is no constant there
    if exponent % 2 == 0:
        slope = xp.ones_like(length) if exponent == 2 else (int(exponent) // 2) * square ** (int(exponent) // 2 - 1) + slope
    else:
        slope = slope + steep(xp, square, zero, int(exponent) - 1)
    return xp.where(zero, slope, xp.zeros_like(slope))
