"""Reductions along one, several or all axes."""

import math

from symgrad.graph.op import composite, linear, primitive
from symgrad.ops.rules import axes, axis, expand_reduced, inverse_permutation, numbered_node_name, real_product, reduced_count, unsqueeze_reduced
from symgrad.types import return_types


def _reduction_arguments(xp, input, dim=None, keepdim=False):
    return input, axes(dim, input.ndim), bool(keepdim)


def _cast_arguments(xp, input, dim=None, keepdim=False, *, dtype=None):
    return input if dtype is None else input.to(dtype), axes(dim, input.ndim), bool(keepdim)


def _check_floating(input, what):
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"{what}. Got: {input.dtype}; convert it with .to(float64) first")


def _mean_arguments(xp, input, dim=None, keepdim=False, *, dtype=None):
    input = input if dtype is None else input.to(dtype)
    _check_floating(input, "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype")
    return _reduction_arguments(xp, input, dim, keepdim)


def _check_not_empty(input, dim):
    for i in dim:
        if not input.shape[i]:
            raise IndexError(f"Expected reduction dim {i} to have non-zero size, but the shape is {list(input.shape)}: an extreme of no "
                             f"elements is not defined")


def _extremum_arguments(xp, input, dim=None, keepdim=False):
    prepared = _reduction_arguments(xp, input, dim, keepdim)
    _check_not_empty(input, prepared[1])
    return prepared


EXAMPLES = (((0,), False), ((1,), True), ((0, 1), False))

linear("sum", lambda xp, input, dim, keepdim: xp.sum(input, dim, keepdim), lambda xp, g, shape, dim, keepdim:
       expand_reduced(xp, g, shape, dim, keepdim), prepare=_cast_arguments, examples=EXAMPLES, layout="rows", names=numbered_node_name("Sum"),
       usage="symgrad.sum(a, dim=0)", doc="The sum over `dim`, or over all elements.")


def _mean(xp, input, dim, keepdim):
    return xp.sum(input, dim, keepdim) / (reduced_count(input.shape, dim) or math.nan)


linear("mean", _mean, lambda xp, g, shape, dim, keepdim: expand_reduced(xp, g / (reduced_count(shape, dim) or math.nan), shape, dim, keepdim),
       prepare=_mean_arguments, examples=EXAMPLES, layout="rows", names=numbered_node_name("Mean"),
       usage="symgrad.mean(a, dim=1, keepdim=True)", doc="The mean over `dim`, or over all elements; NaN for an empty input.")


def _product_of_others_of_last_axis(xp, x):
    """The product of all the other elements along the last axis, by a tree of pairs: safe for zeros, linear in the length."""
    n = x.shape[-1]
    if n == 1:
        return xp.ones_like(x)
    half = n // 2
    even, odd, rest = x[..., 0:2 * half:2], x[..., 1:2 * half:2], x[..., 2 * half:]
    above = _product_of_others_of_last_axis(xp, xp.cat([even * odd, rest], x.ndim - 1))
    pairs = xp.stack([above[..., :half] * odd, above[..., :half] * even], x.ndim)
    return xp.cat([xp.reshape(pairs, (*x.shape[:-1], 2 * half)), above[..., half:]], x.ndim - 1)


def _product_of_others(xp, x, dim):
    if not math.prod(x.shape) or not dim:
        return xp.ones_like(x)
    order = tuple(i for i in range(x.ndim) if i not in dim) + dim
    front = xp.permute(x, order)
    kept = x.ndim - len(dim)
    flat = xp.reshape(front, (*front.shape[:kept], math.prod(front.shape[kept:])))
    out = xp.reshape(_product_of_others_of_last_axis(xp, flat), front.shape)
    return xp.permute(out, inverse_permutation(order))


primitive("prod", lambda xp, input, dim, keepdim: xp.prod(input, dim, keepdim), prepare=_cast_arguments, examples=EXAMPLES, layout="rows",
          names=numbered_node_name("Prod"),
          vjp=lambda xp, g, y, x, dim, keepdim: expand_reduced(xp, g, x.shape, dim, keepdim) * _product_of_others(xp, x, dim),
          jvp=lambda xp, t, y, x, dim, keepdim: xp.sum(t * _product_of_others(xp, x, dim), dim, keepdim),
          usage="symgrad.prod(a, dim=1)", doc="The product over `dim`, or over all elements; its derivatives are right also at zeros.")


def _tie_shares(xp, y, x, dim, keepdim):
    """Each extreme element's share of the derivative: equal among ties."""
    at = xp.indicator(xp.eq(x, unsqueeze_reduced(xp, y, x.shape, dim, keepdim)), x)
    return at / xp.sum(at, dim, True)


def _define_extremum(name, what, named=None, node_name=None):
    primitive(named or name, lambda xp, input, dim, keepdim: getattr(xp, name)(input, dim, keepdim), prepare=_extremum_arguments, examples=EXAMPLES,
              shapes=((2, 3),), layout="rows", selects=True, public=named is None, node_name=node_name,
              vjp=lambda xp, g, y, x, dim, keepdim: expand_reduced(xp, g, x.shape, dim, keepdim) * _tie_shares(xp, y, x, dim, keepdim),
              jvp=lambda xp, t, y, x, dim, keepdim: xp.sum(t * _tie_shares(xp, y, x, dim, keepdim), dim, keepdim),
              usage=f"symgrad.{name}(a, dim=1)", doc=f"The {what} value over `dim`, or over all elements; ties share the gradient equally.")


_define_extremum("amax", "largest")
_define_extremum("amin", "smallest")
for _name, _what in {"max": "largest", "min": "smallest"}.items():  # torch names these nodes after the function
    _define_extremum(f"a{_name}", _what, f"{_name}_of_all", f"{_name.capitalize()}Backward1")
    _define_extremum(f"a{_name}", _what, f"{_name}_along", _name.capitalize())
    _define_extremum(f"a{_name}", _what, f"{_name}_of_both", "Aminmax")


def _extremum(name, input, dim, keepdim, whole, along, position, between):
    if dim is None:
        if not input.numel():
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
                               f"argument.")
        return whole(input)
    if not isinstance(dim, int):
        return between(input, dim)
    if input.ndim and not input.shape[axis(dim, input.ndim)]:
        raise IndexError(f"{name}(): Expected reduction dim {axis(dim, input.ndim)} to have non-zero size.")
    return getattr(return_types, name)((along(input, dim, keepdim), position(input, dim, keepdim)))


@composite("max", usage="symgrad.max(a, dim=1).values")
def max(xp, input, dim=None, keepdim=False):
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
    return _extremum("max", input, dim, keepdim, xp.max_of_all, xp.max_along, xp.argmax, xp.maximum)


@composite("min", usage="symgrad.min(a)")
def min(xp, input, dim=None, keepdim=False):
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
    return _extremum("min", input, dim, keepdim, xp.min_of_all, xp.min_along, xp.argmin, xp.minimum)


@composite("aminmax", usage="symgrad.aminmax(a, dim=1)")
def aminmax(xp, input, *, dim=None, keepdim=False):
    """The pair (min, max) over all elements, or along `dim`."""
    return return_types.aminmax((xp.min_of_both(input, dim, keepdim), xp.max_of_both(input, dim, keepdim)))


def _arg_arguments(xp, input, dim=None, keepdim=False):
    dims = axes(dim, input.ndim)
    _check_not_empty(input, dims)
    return input, None if dim is None else axis(dim, input.ndim), bool(keepdim)


primitive("argmax", lambda xp, input, dim, keepdim: xp.argmax(input, dim, keepdim), prepare=_arg_arguments, examples=((0, False), (1, True)),
          layout="rows", usage="symgrad.argmax(a, dim=1)", doc="The index of the first largest element along `dim`, or of the flattened input.")
primitive("argmin", lambda xp, input, dim, keepdim: xp.argmin(input, dim, keepdim), prepare=_arg_arguments, examples=((0, False), (1, True)),
          layout="rows", usage="symgrad.argmin(a)", doc="The index of the first smallest element along `dim`, or of the flattened input.")
primitive("all", lambda xp, input, dim, keepdim: xp.all(input, dim, keepdim), prepare=_reduction_arguments, examples=EXAMPLES, layout="rows",
          usage="symgrad.all(a > 0)", doc="Whether all elements are true.")
primitive("any", lambda xp, input, dim, keepdim: xp.any(input, dim, keepdim), prepare=_reduction_arguments, examples=EXAMPLES, layout="rows",
          usage="symgrad.any(a > 4)", doc="Whether any element is true.")


def _variance_arguments(xp, input, dim=None, unbiased=None, *, correction=None, keepdim=False):
    _check_floating(input, "std and var only support floating point and complex dtypes")
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return input, axes(dim, input.ndim), correction, bool(keepdim)


linear("centred", lambda xp, input, dim: xp.centred(input, dim), lambda xp, g, shape, dim: xp.centred(g, dim), public=False,
       examples=(((0,),), ((0, 1),)), doc="The difference of every element and the mean along `dim`.")


def _degrees_of_freedom(x, dim, correction):
    n = reduced_count(x.shape, dim) - correction
    return n if n > 0 else math.nan


def _var(xp, input, dim, correction, keepdim):
    centred = xp.centred(input, dim)
    return xp.sum(real_product(xp, centred, centred), dim, keepdim) / _degrees_of_freedom(input, dim, correction)


def _var_vjp(xp, g, y, x, dim, correction, keepdim):
    return expand_reduced(xp, 2 * g / _degrees_of_freedom(x, dim, correction), x.shape, dim, keepdim) * xp.centred(x, dim)


def _var_jvp(xp, t, y, x, dim, correction, keepdim):
    return 2 * xp.sum(real_product(xp, xp.centred(x, dim), t), dim, keepdim) / _degrees_of_freedom(x, dim, correction)


def _reciprocal_or_zero(xp, y):
    """1 / y, and 0 where y is 0: the minimum-norm subgradient of a norm at its kink."""
    zero = xp.eq(y, 0)
    return xp.where(zero, xp.zeros_like(y), 1 / xp.where(zero, xp.ones_like(y), y))


VARIANCE_EXAMPLES = (((0,), 1, False), ((1,), 0, True), ((0, 1), 1, False))

primitive("var", _var, vjp=_var_vjp, jvp=_var_jvp, prepare=_variance_arguments, examples=VARIANCE_EXAMPLES, layout="rows",
          usage="symgrad.var(a, dim=1, correction=0)", doc="The variance, Σ (x - mean)² / (n - correction).")
def _std(xp, input, dim, correction, keepdim):
    length = xp.norm(xp.centred(input, dim), dim, keepdim)
    return length / xp.sqrt(_degrees_of_freedom(input, dim, correction) * xp.ones_like(length))


primitive("std", _std, prepare=_variance_arguments, examples=VARIANCE_EXAMPLES, layout="rows",
          vjp=lambda xp, g, y, *args: _var_vjp(xp, g * _reciprocal_or_zero(xp, y) / 2, y, *args),
          jvp=lambda xp, t, y, *args: _var_jvp(xp, t, y, *args) * _reciprocal_or_zero(xp, y) / 2,
          usage="symgrad.std(a, dim=0)", doc="The standard deviation, the square root of `var`; the derivative at 0 is 0.")


def _define_with_mean(name, vjp, jvp, forward, node_name):
    """The pair of a spread and the mean, whose nodes are both named after the pair."""
    primitive(f"{name}_of_both", forward, vjp=vjp, jvp=jvp, prepare=_variance_arguments, examples=VARIANCE_EXAMPLES[:1], layout="rows", public=False,
              node_name=node_name, doc=f"The `{name}` that `{name}_mean` gives.")
    linear(f"mean_with_{name}", _mean,
           lambda xp, g, shape, dim, keepdim: expand_reduced(xp, g / (reduced_count(shape, dim) or math.nan), shape, dim, keepdim),
           prepare=_mean_arguments, examples=EXAMPLES[:1], layout="rows", public=False, node_name=node_name,
           doc=f"The mean that `{name}_mean` gives.")

    def both(xp, input, dim=None, unbiased=None, *, correction=None, keepdim=False):
        _check_floating(input, f"{name}_mean only support floating point and complex dtypes")
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        first = getattr(xp, f"{name}_of_both")(input, dim, unbiased, correction=correction, keepdim=keepdim)
        return first, getattr(xp, f"mean_with_{name}")(input, dim, keepdim)

    both.__doc__ = f"The pair of `{name}` and `mean`."
    composite(f"{name}_mean", usage=f"symgrad.{name}_mean(a, dim=1)")(both)


_define_with_mean("var", _var_vjp, _var_jvp, _var, "VarMean")
_define_with_mean("std", lambda xp, g, y, *args: _var_vjp(xp, g * _reciprocal_or_zero(xp, y) / 2, y, *args),
                  lambda xp, t, y, *args: _var_jvp(xp, t, y, *args) * _reciprocal_or_zero(xp, y) / 2, _std, "StdMean")


def _norm_vjp(xp, g, y, x, dim, keepdim):
    return expand_reduced(xp, g, x.shape, dim, keepdim) * (x * unsqueeze_reduced(xp, _reciprocal_or_zero(xp, y), x.shape, dim, keepdim))


def _norm_jvp(xp, t, y, x, dim, keepdim):
    return xp.sum(real_product(xp, x, t), dim, keepdim) * _reciprocal_or_zero(xp, y)


primitive("vector_norm", lambda xp, input, dim, keepdim: xp.norm(input, dim, keepdim), vjp=_norm_vjp, jvp=_norm_jvp, public=False,
          prepare=_reduction_arguments, examples=EXAMPLES, layout="rows", node_name="LinalgVectorNorm", doc="√Σ|x|²; the derivative at 0 is 0.")


@composite("norm", usage="symgrad.norm(a, 1, dim=0)")
def norm(xp, input, p=2, dim=None, keepdim=False):
    """The p-norm (Σ|x|^p)^(1/p) over `dim`, or over all elements; p may be a number, inf, -inf or "fro"."""
    if p in (2, "fro", None):
        return xp.vector_norm(input, dim, keepdim)
    if not isinstance(p, (int, float)):
        raise ValueError(f"norm: p must be a number, inf, -inf or 'fro', not {p!r}")
    size = xp.abs(input)
    if p == math.inf or p == -math.inf:
        return (xp.amax if p > 0 else xp.amin)(size, dim, keepdim)
    if p == 0:
        return xp.sum(xp.ne(input, 0).to(input.dtype), dim, keepdim)
    total = xp.sum(size if p == 1 else size**p, dim, keepdim)
    return total if p == 1 else total ** (1 / p)


def _logsumexp_vjp(xp, g, y, x, dim, keepdim):
    return expand_reduced(xp, g, x.shape, dim, keepdim) * xp.softmax(x, dim)


def _logsumexp_jvp(xp, t, y, x, dim, keepdim):
    return xp.sum(t * xp.softmax(x, dim), dim, keepdim)


primitive("logsumexp", lambda xp, input, dim, keepdim: xp.logsumexp(input, dim, keepdim), vjp=_logsumexp_vjp, jvp=_logsumexp_jvp,
          prepare=_reduction_arguments, examples=EXAMPLES, layout="rows", usage="symgrad.logsumexp(a, dim=1)",
          doc="log Σ exp(input) over `dim`, without overflow.")


def _cumsum_arguments(xp, input, dim, *, dtype=None):
    return input if dtype is None else input.to(dtype), axis(dim, input.ndim)


def _cumsum_transpose(xp, g, shape, dim):
    return xp.flip(xp.cumsum(xp.flip(g, (dim,)), dim), (dim,)) if shape else g


linear("cumsum", lambda xp, input, dim: xp.cumsum(input, dim), _cumsum_transpose, prepare=_cumsum_arguments, examples=((0,), (1,)), layout="rows",
       usage="symgrad.cumsum(a, dim=1)", doc="The running sum along `dim`.")
