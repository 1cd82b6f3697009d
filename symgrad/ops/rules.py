"""Helpers shared by several rule tables. Like rules, they use only `xp` and plain Python.

In the tables `_<op>_arguments` checks and normalizes the arguments of an op (its `prepare`), `_<op>_transpose` is the transpose of a linear op, and
`_<op>_vjp` and `_<op>_jvp` are the rules of a primitive one. `_define_...` declares several ops of one structure.
"""

from __future__ import annotations

import functools
import math


def axis(dim, ndim):
    """An axis as a number from 0 to ndim - 1. Raises torch's errors."""
    span = ndim or 1
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"dim must be an integer, not {type(dim).__name__} ({dim!r})")
    dim = dim.__index__()
    if not -span <= dim < span:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {dim})")
    return dim % span


class AllAxes(tuple):
    """All axes of a tensor, for a call without axes."""

    __slots__ = ()


_ALL_AXES = tuple(AllAxes(range(ndim)) for ndim in range(9))


def axes(dim, ndim):
    """Several axes, or None for all of them, as a tuple of distinct numbers."""
    if dim is None or isinstance(dim, (tuple, list)) and not dim:
        return _ALL_AXES[ndim] if ndim < len(_ALL_AXES) else AllAxes(range(ndim))
    out = tuple(axis(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    if len(set(out)) != len(out):
        raise RuntimeError(f"dim {out[-1]} appears multiple times in the list of dims")
    return out if ndim else ()


def expand_reduced(xp, y, shape, dim, keepdim):
    """A reduced value broadcast to the shape before the reduction."""
    return xp.broadcast_to(unsqueeze_reduced(xp, y, shape, dim, keepdim), shape) if shape else y


def unsqueeze_reduced(xp, y, shape, dim, keepdim):
    """A reduced value with the reduced axes as axes of size 1."""
    return y if keepdim or len(dim) == len(shape) else xp.reshape(y, tuple(1 if i in dim else n for i, n in enumerate(shape)))


@functools.lru_cache(1024)
def inverse_permutation(order):
    """The order of dimensions that undoes a permutation of them."""
    return tuple(order.index(i) for i in range(len(order)))


def reduced_count(shape, dim):
    """The number of elements of which each reduced value is made."""
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


def numbered_node_name(name):
    """The function that names the node of a reduction: torch appends 1 with axes and 0 over all elements."""
    return lambda node: f"{name}Backward{int(not isinstance(node.args[1], AllAxes))}"


def is_complex(x):
    """Whether an array or a Tensor is complex; False for formulas and high-precision numbers."""
    return getattr(x.dtype, "kind", "") == "c" or getattr(x.dtype, "is_complex", False)


def real_product(xp, a, b):
    """Re(conj(a) b), the product over the real numbers."""
    if not (is_complex(a) or getattr(a, "complex", False)):
        return a * b
    parts = xp.view_as_real(a) * xp.view_as_real(b)
    return xp.getitem(parts, (..., 0)) + xp.getitem(parts, (..., 1))
