"""Norms of vectors, (Σ|x|ᵖ)^(1/p) of every p; variances and standard deviations, from the distances of the elements from their mean."""

import math

from symgrad.arguments import check_kind
from symgrad.dtypes.dtype import DTYPES
from symgrad.dtypes.exponents import has_predecessor
from symgrad.graph.domains import POSITIVE, REAL
from symgrad.graph.op import composite, linear, primitive
from symgrad.layouts.strides import is_plain
from symgrad.ops.reduction import EXAMPLES, mean, mean_arguments, mean_transpose, or_infinity, reduction_arguments
from symgrad.ops.rules import (
    axes,
    constant,
    edge_of_length,
    expand_reduced,
    in_float32,
    is_complex,
    real_product,
    reduced_count,
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


def _variance_arguments(xp, input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    check_kind("std and var", input, "fc")
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    elif hasattr(correction, "shape"):
        correction = constant("var", "correction", correction)
    return input, axes(dim, input.ndim), correction, bool(keepdim)


def _centred(xp, x, dim):
    """The distances from the mean, whose count float16 and bfloat16 do not hold."""
    if reduced_count(x.shape, dim) > 256 and getattr(getattr(x, "dtype", None), "char", "") in ("e", "E"):
        return xp.astype(xp.centred(xp.astype(x, DTYPES["float32"].numpy), dim), x.dtype)
    return xp.centred(x, dim)


linear("centred", _centred, lambda xp, g, shape, dim: _centred(xp, g, dim), public=False,
       examples=(((0,),), ((0, 1),)), doc="The difference of every element and the mean along `dim`.")


def _degrees_of_freedom(x, dim, correction):
    n = reduced_count(x.shape, dim)
    return n - correction if n and n > correction else math.nan


def _divisor(x, dim, correction):
    """The degrees of freedom by which a gradient is divided; that of nothing is divided by 1, so that its own derivative is 0."""
    return _degrees_of_freedom(x, dim, correction) if reduced_count(x.shape, dim) else 1


def _var(xp, input, dim, correction, keepdim):
    centred = xp.centred(input, dim)
    return xp.sum(real_product(xp, centred, centred), dim, keepdim) / _degrees_of_freedom(input, dim, correction)


def _var_vjp(xp, g, y, x, dim, correction, keepdim):
    return expand_reduced(xp, 2 * g / _divisor(x, dim, correction), x.shape, dim, keepdim) * xp.centred(x, dim)


def _var_jvp(xp, t, y, x, dim, correction, keepdim):
    return 2 * xp.sum(real_product(xp, xp.centred(x, dim), t), dim, keepdim) / _degrees_of_freedom(x, dim, correction)


def _std_slope(xp, y, x, dim, correction, keepdim):
    """(x - mean) / ‖x - mean‖ / √degrees of freedom, and 0 where all elements are equal.

    What is differentiated further is computed from the distances of the others from their own mean, and from that of the element farthest from it,
    beside which the others would vanish: the sum of their squares is that of the distances from the mean.
    """
    n, freedom = reduced_count(x.shape, dim), _degrees_of_freedom(x, dim, correction)
    centred = xp.centred(x, dim)
    if is_plain(x) or is_complex(x) or n < 2:
        return centred / unsqueeze_reduced(xp, or_infinity(xp, y), x.shape, dim, keepdim) / freedom
    size = xp.abs(centred)
    farthest, zero = largest(xp, size, dim), xp.zeros_like(x)
    count = n - xp.sum(xp.indicator(farthest, x), dim, True)
    root = xp.sqrt((n - 1) * xp.ones_like(count) / n)  # with the digits of the carrier
    for _ in range(2):  # the second time for the rounding error of the mean
        x = x - xp.sum(xp.where(farthest, zero, x), dim, True) / count
    root_of_freedom = xp.sqrt(freedom * xp.ones_like(count))
    y = unsqueeze_reduced(xp, y, x.shape, dim, keepdim) * root_of_freedom
    slope = ratios(xp, y, xp.where(farthest, root * x, x), 2, dim, True)
    slope = xp.where(farthest, root * slope, slope)
    exists = xp.ne(xp.reference(xp.ones_like(x), size, dim), 0)  # not in a formula, where the mean is that of all elements, and the sum is 0
    mean = xp.where(exists, xp.sum(slope, dim, True) / count, xp.zeros_like(count))
    return xp.where(farthest, slope, slope - mean) / root_of_freedom


def _std_vjp(xp, g, y, x, dim, correction, keepdim):
    return expand_reduced(xp, g, x.shape, dim, keepdim) * _std_slope(xp, y, x, dim, correction, keepdim)


def _std_jvp(xp, t, y, x, dim, correction, keepdim):
    return xp.sum(real_product(xp, _std_slope(xp, y, x, dim, correction, keepdim), t), dim, keepdim)


VARIANCE_EXAMPLES = (((0,), 1, False), ((1,), 0, True), ((0, 1), 1, False))

primitive("var", _var, saved=("input",),
          kinks=(([1.0],), ([1.0, 1.0],)), vjp=_var_vjp, jvp=_var_jvp, prepare=_variance_arguments, examples=VARIANCE_EXAMPLES, layout="rows",
          usage="symgrad.var(a, dim=1, correction=0)", doc="The variance, Σ (x - mean)² / (n - correction).")
def _std(xp, input, dim, correction, keepdim):
    length = xp.norm(xp.centred(input, dim), dim, keepdim)
    return length / xp.sqrt(_degrees_of_freedom(input, dim, correction) * xp.ones_like(length))


primitive("std", _std, kinks=(([1.0],), ([1.0, 1.0],)), prepare=_variance_arguments, examples=VARIANCE_EXAMPLES, layout="rows",
          vjp=_std_vjp, jvp=_std_jvp,
          usage="symgrad.std(a, dim=0)", doc="The standard deviation, the square root of `var`; the derivative at 0 is 0.")


def _define_with_mean(name, vjp, jvp, forward, node_name, saved):
    """The pair of a spread and the mean, whose nodes are both named after the pair."""
    primitive(f"{name}_of_both", forward, vjp=vjp, jvp=jvp, prepare=_variance_arguments, examples=VARIANCE_EXAMPLES[:1], layout="rows", public=False,
              saved=saved, node_name=node_name, doc=f"The `{name}` that `{name}_mean` gives.")
    linear(f"mean_with_{name}", mean, mean_transpose,
           prepare=mean_arguments, examples=EXAMPLES[:1], layout="rows", public=False, node_name=node_name,
           doc=f"The mean that `{name}_mean` gives.")

    def both(xp, input, dim=None, unbiased=None, *, correction=None, keepdim=False):
        check_kind(f"{name}_mean", input, "fc")
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        first = getattr(xp, f"{name}_of_both")(input, dim, unbiased, correction=correction, keepdim=keepdim)
        return first, getattr(xp, f"mean_with_{name}")(input, dim, keepdim)

    both.__doc__ = f"The pair of `{name}` and `mean`."
    composite(f"{name}_mean", joined=f"{node_name}Backward0", usage=f"symgrad.{name}_mean(a, dim=1)")(both)


_define_with_mean("var", _var_vjp, _var_jvp, _var, "VarMean", ("input",))
_define_with_mean("std", _std_vjp, _std_jvp, _std, "StdMean", ("input result",))


def _in_units_of_deviation(xp, x, dim, eps):
    """(x - mean) / √(var + eps), and 1 / √(var + eps)."""
    distances = xp.centred(x, dim)
    scale = xp.rsqrt(xp.sum(xp.square(distances), dim, True) / (reduced_count(x.shape, dim) or math.nan) + eps)
    return distances * scale, scale


def _standardized(xp, input, weight, bias, dim, eps):
    out, _ = _in_units_of_deviation(xp, input, dim, eps)
    out = out if type(weight) is float else out * weight
    return out if type(bias) is float else out + bias


def _slope_along(xp, t, h, scale, dim):
    """The derivative of the h of `_in_units_of_deviation` along t, a symmetric map."""
    t = xp.centred(t, dim)
    return scale * (t - h * (xp.sum(h * t, dim, True) / (reduced_count(t.shape, dim) or math.nan)))


def _standardized_vjp(xp, g, y, x, weight, bias, dim, eps):
    h, scale = _in_units_of_deviation(xp, x, dim, eps)
    return (_slope_along(xp, g if type(weight) is float else g * weight, h, scale, dim), None if type(weight) is float else g * h,
            None if type(bias) is float else g)


def _standardized_jvp(xp, t, by_weight, by_bias, y, x, weight, bias, dim, eps):
    h, scale = _in_units_of_deviation(xp, x, dim, eps)
    out = _slope_along(xp, t, h, scale, dim)
    out = out if type(weight) is float else out * weight + h * by_weight
    return out if type(bias) is float else out + by_bias


primitive("standardized", _standardized, vjp=_standardized_vjp, jvp=_standardized_jvp, arity=3, public=False, layout="images", refuses="c",
          saved=("input weight", "input", ""), shapes=((2, 3), (3,), (3,)), examples=(((1,), 1e4), ((0,), 1e4)),
          # the terms of the gradient of two numbers cancel where eps is small beside their variance
          doc="(input - mean) / √(var + eps) weight + bias, with the mean and the variance over `dim`; the weight and the bias are broadcast to the "
              "input. They are the numbers 1.0 and 0.0 where there are none.")
