"""Norms of vectors: (Σ|x|ᵖ)^(1/p) of every p."""

import math

from symgrad.arguments import check_kind
from symgrad.dtypes.exponents import has_predecessor
from symgrad.graph.domains import POSITIVE, REAL
from symgrad.graph.op import composite, primitive
from symgrad.layouts.memory_layout import is_plain
from symgrad.ops.reduction import EXAMPLES, or_infinity, reduction_arguments
from symgrad.ops.rules import (
    axes,
    constant,
    edge_of_length,
    expand_reduced,
    in_float32,
    is_complex,
    real_product,
    squared_size,
    steep,
    unsqueeze_reduced,
)


def _or_one(xp, y):
    """y, and 1 where it is 0."""
    return xp.where(xp.eq(y, 0), xp.ones_like(y), y)


def _p_norm_arguments(xp, input, p, dim=None, keepdim=False):
    return input, p, axes(dim, input.ndim), bool(keepdim)


def _p_norm(xp, x, p, dim, keepdim):
    """The powers are those of ratios to the element that has the largest, so that none overflows; in a formula they are those of the elements."""
    size = xp.abs(x)
    scale = xp.reference(size, size if p > 0 else -size, dim)
    scale = xp.where(xp.eq(scale + scale, scale), xp.ones_like(scale), scale)  # not 0 and not infinite
    total = xp.sum((size / scale) ** p, dim, True)
    total = xp.pow(total, xp.ones_like(total) / p) * scale
    if getattr(scale.dtype, "kind", "") == "V":  # bfloat16, of which powers are float32
        total = xp.astype(total, scale.dtype)
    return total if keepdim else xp.reshape(total, tuple(n for i, n in enumerate(x.shape) if i not in dim))


def _is_smooth(p):
    return p > 0 and p % 2 == 0


def _power_of_size(xp, x, p):
    """|x|ᵖ, and 0 where x is 0; a polynomial for an even p."""
    if _is_smooth(p):
        if not is_complex(x):
            return xp.square(x) if p == 2 else x**p
        return squared_size(xp, x) if p == 2 else squared_size(xp, x) ** (int(p) // 2)
    size = xp.abs(x)
    zero = xp.eq(size, 0)
    return xp.where(zero, xp.zeros_like(size), xp.where(zero, xp.ones_like(size), size) ** p)


def largest(xp, order, dim):
    """Whether an element is the largest along `dim`, or the first of several; false in a formula, since it has no reference."""
    return _largest_and_exists(xp, order, dim)[0]


def _largest_and_exists(xp, order, dim):
    """`largest`, and whether there is a largest element along `dim`, as there is not in a formula."""
    place, count = 0, 1
    for d in dim:
        place = place + count * xp.cumsum(xp.ones_like(order), d)
        count *= order.shape[d] + 1
    first = xp.reference(place, order, dim)
    return xp.eq(place, first), xp.ne(first, 0)


def ratios(xp, y, x, p, dim, keepdim):
    """x / y, and 0 where y is 0, for the norm y.

    What is differentiated further has the largest element as a constant 1 among ratios to it, so that no terms of its derivative cancel. A formula
    has no largest element.
    """
    quotient = x / or_infinity(xp, unsqueeze_reduced(xp, y, x.shape, dim, keepdim))
    if is_plain(x):
        return quotient
    order = xp.abs(x) if p > 0 else -xp.abs(x)
    longest = xp.reference(order, order, dim)
    usable = xp.ne(longest + longest, longest)  # neither 0 nor infinite
    first, exists = _largest_and_exists(xp, order, dim)
    zero, top = xp.logical_and(exists, xp.eq(longest, 0)), xp.logical_and(usable, first)
    chosen = xp.sum(xp.where(xp.logical_or(top, zero), x, xp.zeros_like(x)), dim, True)
    scale = xp.where(usable, chosen, xp.ones_like(longest))
    ratio = xp.where(top, xp.ones_like(x), x / scale)
    total = xp.sum(_power_of_size(xp, ratio, p), dim, True)
    total = xp.where(usable, total, xp.ones_like(total))
    sign = scale / xp.abs(scale) if is_complex(x) else xp.sign(scale)
    unit = xp.where(usable, ratio * sign / (xp.sqrt(total) if p == 2 else xp.pow(total, xp.ones_like(total) / p)), quotient)
    return xp.where(zero, steep(xp, chosen, zero), unit)


def _norm_vjp(xp, g, y, x, dim, keepdim):
    return expand_reduced(xp, g, x.shape, dim, keepdim) * ratios(xp, y, x, 2, dim, keepdim)


def _norm_jvp(xp, t, y, x, dim, keepdim):
    return xp.sum(real_product(xp, ratios(xp, y, x, 2, dim, keepdim), t), dim, keepdim)


primitive("vector_norm", lambda xp, input, dim, keepdim: xp.norm(input, dim, keepdim), vjp=_norm_vjp, jvp=_norm_jvp, public=False,
          prepare=reduction_arguments, examples=EXAMPLES, layout="rows", node_name="LinalgVectorNorm", square="square_of_norm",
          doc="√Σ|x|²; the derivative at 0 is 0.")


def _square_of_norm_vjp(xp, g, y, x, dim, keepdim, order):
    total, each = unsqueeze_reduced(xp, y, x.shape, dim, keepdim), expand_reduced(xp, 2 * g, x.shape, dim, keepdim)
    edge = edge_of_length(xp, total, x, order, dim)
    return each * x if edge is None else each * (x + edge * (1 + 1j) if is_complex(x) else x + edge)


def _square_of_norm_jvp(xp, t, y, x, dim, keepdim, order):
    edge = edge_of_length(xp, unsqueeze_reduced(xp, y, x.shape, dim, keepdim), x, order, dim)
    x = x if edge is None else x + edge * (1 + 1j) if is_complex(x) else x + edge
    return 2 * xp.sum(real_product(xp, x, t), dim, keepdim)


primitive("square_of_norm", lambda xp, input, dim, keepdim, order: xp.sum(squared_size(xp, input), dim, keepdim), public=False,
          vjp=_square_of_norm_vjp, jvp=_square_of_norm_jvp, examples=(((0,), False, None), ((0, 1), True, None)), shapes=((2, 2),), layout="rows",
          node_name="LinalgVectorNorm", doc="Σ|x|² of what is raised to a power; `order` is that of the edge of the power, if it has one.")


def _edge_of_squares_vjp(xp, g, y, x, along, order):
    edge = edge_of_length(xp, y, along, order)
    return g, None if edge is None else g * edge


def _edge_of_squares_jvp(xp, t, moved, y, x, along, order):
    edge = edge_of_length(xp, y, along, order)
    return t if edge is None else t + edge * moved


primitive("edge_of_squares", lambda xp, input, along, order: xp.copy(input), arity=2, vjp=_edge_of_squares_vjp, jvp=_edge_of_squares_jvp,
          public=False, domain=(POSITIVE, REAL), saved=("along result", "along result"), examples=((1,), (2,)), shapes=((2, 2), (2, 2)),
          layout="operands", node_name="Alias",
          doc="A sum of squares that is raised to a power, and the sum of what is squared, by which the power has an edge of this order at 0.")


def _p_norm_slope(xp, y, x, p, dim, keepdim):
    """sign(r) |r|ᵖ⁻¹ for r = x / y, and 0 where x or y is 0: a product of numbers of moderate size."""
    ratio = ratios(xp, y, x, p, dim, keepdim)
    if _is_smooth(p):
        return ratio if p == 2 else ratio * _power_of_size(xp, ratio, p - 2) if is_complex(x) else ratio ** (p - 1)
    unit = ratio / _or_one(xp, xp.abs(ratio)) if is_complex(x) else xp.sign(ratio)
    slope = unit * (_power_of_size(xp, ratio, p - 1) if has_predecessor(p) else _power_of_size(xp, ratio, p) / _or_one(xp, xp.abs(ratio)))
    if is_plain(x):
        return slope
    size = xp.abs(ratio)
    exists = xp.ne(xp.reference(xp.ones_like(size), size, dim), 0)  # not in a formula
    zero = xp.logical_and(exists, xp.eq(size, 0))
    order = max(0, math.ceil(p) - 2) if p % 1 else int(p) - 1  # for an odd p the slope has a kink before
    return xp.where(zero, steep(xp, ratio, zero, order), slope)


primitive("p_norm", _p_norm, public=False, prepare=_p_norm_arguments, examples=((3.0, (0,), False), (4.0, (0, 1), True)), shapes=((2, 2),),
          layout="rows", node_name="LinalgVectorNorm",
          vjp=lambda xp, g, y, x, p, dim, keepdim: expand_reduced(xp, g, x.shape, dim, keepdim) * _p_norm_slope(xp, y, x, p, dim, keepdim),
          jvp=lambda xp, t, y, x, p, dim, keepdim: xp.sum(real_product(xp, _p_norm_slope(xp, y, x, p, dim, keepdim), t), dim, keepdim),
          doc="(Σ|x|ᵖ)^(1/p), without overflow; the derivative by an element 0 is 0.")


def _across(xp, t, r, dim):
    """t - r Σ r t, the part of t across the unit vector r: without the multiple of r that makes the element of the largest r zero, which would
    cancel."""
    size = xp.abs(r)
    if is_plain(t) and is_plain(r):
        longest, there = xp.reference(r, size, dim), xp.reference(t, size, dim)
    else:
        top = largest(xp, size, dim)
        longest, there = (xp.sum(xp.where(top, x, xp.zeros_like(x)), dim, True) for x in (r, t))
    t = t - there / _or_one(xp, longest) * r
    return t - r * xp.sum(r * t, dim, True)


def _normalized_slope(xp, t, y, x, dim, eps):
    """The derivative along t, a symmetric map."""
    length = xp.norm(x, dim, True) if is_plain(x) else xp.sum(y * x, dim, True)  # the second is below `eps` where the first is
    if eps == 0:
        return _across(xp, t, y, dim) / length
    above = xp.gt(length, eps)
    return xp.where(above, _across(xp, t, y, dim) / xp.where(above, length, xp.ones_like(length)), t / eps)


def _normalized(xp, input, dim, eps):
    if is_complex(input):  # in a formula their rules would be those of real numbers
        check_kind("normalized", input, "f")
    return input / xp.maximum(xp.norm(input, dim=dim, keepdim=True), eps)


primitive("normalized", _normalized, public=False, layout="first", node_name="Div", examples=(((0,), 0.0), ((0, 1), 0.0)), shapes=((2, 2),),
          prepare=lambda xp, input, dim, eps: (input, axes(dim, input.ndim), eps if type(eps) is float else float(constant("normalize", "eps", eps))),
          vjp=lambda xp, g, y, x, dim, eps: _normalized_slope(xp, g, y, x, dim, eps),
          jvp=lambda xp, t, y, x, dim, eps: _normalized_slope(xp, t, y, x, dim, eps),
          doc="The input divided by its Euclidean norms along `dim`, or by `eps` where they are smaller.")


def unit_vectors(xp, input, dim, eps):
    """`normalized`, of complex numbers, too."""
    return input / xp.clamp_min(xp.norm(input, 2, dim, True), eps) if is_complex(input) else xp.normalized(input, dim, eps)


@composite("norm", kinks=(([0.0, 0.0],), ([0.0, 0.0], 1), ([0.0, 0.0], 3), ([2.0, -2.0], math.inf)), usage="symgrad.norm(a, 1, dim=0)")
def norm(xp, input, p=2, dim=None, keepdim=False, *, dtype=None):
    """The p-norm (Σ|x|^p)^(1/p) over `dim`, or over all elements; p may be a number, inf, -inf, "fro", or "nuc" for matrices."""
    check_kind("norm", input, "fc")
    if dtype is not None:
        return xp.linalg_vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)
    if p in (2, "fro", None):
        return xp.vector_norm(input, dim, keepdim)
    if p == "nuc":
        return xp.nuclear_norm(input, axes(dim, input.ndim), keepdim)
    if not isinstance(p, (int, float)):
        raise ValueError(f"norm: p must be a number, inf, -inf, 'fro' or 'nuc', not {p!r}")
    return _norm_of_power(xp, input, p, dim, keepdim)


@in_float32
def _norm_of_power(xp, input, p, dim, keepdim):
    size = xp.abs(input)
    if p == math.inf or p == -math.inf:
        return (xp.amax if p > 0 else xp.amin)(size, dim, keepdim)
    if p == 0:
        return xp.sum(xp.where(xp.eq(size, 0), size, xp.ones_like(size)), dim, keepdim)
    if p == 1:
        return xp.sum(size, dim, keepdim)
    if p > 0:
        return xp.p_norm(input, p, dim, keepdim)
    if not size.numel() and not math.prod(size.shape[i] for i in axes(dim, size.ndim)):
        raise RuntimeError(f"norm: the {p} norm of no elements is not defined, and the shape is {list(size.shape)}")
    zero = xp.logical_and(xp.any(xp.eq(size, 0), dim, True), xp.logical_not(xp.any(xp.isnan(size), dim, True)))
    total = xp.p_norm(xp.where(zero, xp.ones_like(size), input), p, dim, keepdim)
    return xp.where(xp.any(zero, dim, keepdim), xp.zeros_like(total), total)  # one zero makes the norm 0, with derivative 0
