"""Spreads: variances and standard deviations, from the distances of the elements from their mean."""

import math

from symgrad.arguments import check_kind
from symgrad.dtypes.dtype import DTYPES
from symgrad.graph.op import composite, linear, primitive
from symgrad.layouts.memory_layout import is_plain
from symgrad.ops.norms import largest, ratios
from symgrad.ops.reduction import EXAMPLES, mean, mean_arguments, mean_transpose, or_infinity
from symgrad.ops.rules import axes, constant, expand_reduced, is_complex, real_product, reduced_count, unsqueeze_reduced


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
