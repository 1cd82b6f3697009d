"""Helpers shared by several rule tables. Like rules, they use only `xp` and plain Python."""

from __future__ import annotations

import math


def axis(dim, ndim):
    """One axis as a number from 0 to ndim - 1, with torch's error."""
    span = ndim or 1
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"dim must be an integer, not {type(dim).__name__} ({dim!r})")
    dim = dim.__index__()
    if not -span <= dim < span:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {dim})")
    return dim % span


class Every(tuple):
    """All axes of a tensor, for a call without axes."""

    __slots__ = ()


EVERY = tuple(Every(range(ndim)) for ndim in range(9))


def axes(dim, ndim):
    """Several axes, or None for all of them, as a tuple of distinct numbers."""
    if dim is None or isinstance(dim, (tuple, list)) and not dim:
        return EVERY[ndim] if ndim < len(EVERY) else Every(range(ndim))
    out = tuple(axis(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    if len(set(out)) != len(out):
        raise RuntimeError(f"dim {out[-1]} appears multiple times in the list of dims")
    return out if ndim else ()


def spread(xp, y, shape, dim, keepdim):
    """A reduced value broadcast to the shape before the reduction."""
    return xp.broadcast_to(unsqueezed(xp, y, shape, dim, keepdim), shape) if shape else y


def unsqueezed(xp, y, shape, dim, keepdim):
    """A reduced value with the reduced axes as axes of size 1."""
    return y if keepdim or len(dim) == len(shape) else xp.reshape(y, tuple(1 if i in dim else n for i, n in enumerate(shape)))


def count(shape, dim):
    """The number of elements of each reduced value."""
    return math.prod(shape[i] for i in dim)


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


def numbered(name):
    """The node name of a reduction, which torch numbers 1 with axes and 0 over all elements."""
    return lambda node: f"{name}Backward{int(not isinstance(node.args[1], Every))}"


def is_complex(x):
    """Whether an array or a Tensor is complex; False for formulas and high-precision numbers."""
    return getattr(x.dtype, "kind", "") == "c" or getattr(x.dtype, "is_complex", False)


def real_product(xp, a, b):
    """Re(conj(a) b), the product over the real numbers."""
    if not (is_complex(a) or getattr(a, "complex", False)):
        return a * b
    parts = xp.view_as_real(a) * xp.view_as_real(b)
    return xp.getitem(parts, (..., 0)) + xp.getitem(parts, (..., 1))
