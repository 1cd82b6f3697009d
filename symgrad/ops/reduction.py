"""Reductions along one, several or all axes."""

import math

from symgrad.arguments import check_kind
from symgrad.dtypes.dtype import DTYPES
from symgrad.graph import return_types
from symgrad.graph.op import composite, linear, primitive
from symgrad.ops.rules import (
    axes,
    axis,
    cast,
    divided_by_count,
    equal_or_nan,
    expand_reduced,
    numbered_node_name,
    reduced_count,
    running,
    unsqueeze_reduced,
)


def reduction_arguments(xp, input, dim=None, keepdim=False):
    return input, axes(dim, input.ndim), bool(keepdim)


def _sum_arguments(xp, input, dim=None, keepdim=False, *, dtype=None):
    given = axes(dim, input.ndim), bool(keepdim)
    return (input, *given) if dtype is None else cast(xp, "sum", input, dtype, *given)


def mean_arguments(xp, input, dim=None, keepdim=False, *, dtype=None):
    input = input if dtype is None else input.to(dtype)
    check_kind("mean", input, "fc")
    return reduction_arguments(xp, input, dim, keepdim)


def _check_not_empty(input, dim):
    for i in dim:
        if not input.shape[i]:
            raise IndexError(f"an extreme of no elements is not defined: dim {i} of shape {list(input.shape)} has size 0")


def _extremum_arguments(xp, input, dim=None, keepdim=False):
    prepared = reduction_arguments(xp, input, dim, keepdim)
    if dim is None and not math.prod(input.shape):
        raise RuntimeError(f"an extreme of no elements is not defined: the shape is {list(input.shape)}. Give a `dim` whose size is not 0")
    _check_not_empty(input, prepared[1])
    return prepared


EXAMPLES = (((0,), False), ((1,), True), ((0, 1), False))

linear("sum", lambda xp, input, dim, keepdim: xp.sum(input, dim, keepdim), lambda xp, g, shape, dim, keepdim:
       expand_reduced(xp, g, shape, dim, keepdim), prepare=_sum_arguments, examples=EXAMPLES, layout="rows", names=numbered_node_name("Sum"),
       usage="symgrad.sum(a, dim=0)", doc="The sum over `dim`, or over all elements.")


def sum_over_count(xp, input, dim, keepdim, count):
    """The sum divided by a number, neither of which is rounded to float16 or bfloat16 by itself."""
    dtype = getattr(input, "dtype", None)
    if getattr(dtype, "char", "") in ("e", "E"):
        return xp.astype(xp.sum(xp.astype(input, DTYPES["float32"].numpy), dim, keepdim) / count, dtype)
    return xp.sum(input, dim, keepdim) / count


def mean(xp, input, dim, keepdim):
    return sum_over_count(xp, input, dim, keepdim, reduced_count(input.shape, dim) or math.nan)


def mean_transpose(xp, g, shape, dim, keepdim):
    return expand_reduced(xp, divided_by_count(xp, g, reduced_count(shape, dim) or 1), shape, dim, keepdim)


linear("mean", mean, mean_transpose,
       prepare=mean_arguments, examples=EXAMPLES, layout="rows", names=numbered_node_name("Mean"),
       usage="symgrad.mean(a, dim=1, keepdim=True)", doc="The mean over `dim`, or over all elements; NaN for an empty input.")


def _extremes(xp, y, x, dim, keepdim):
    """1 for the elements that are extreme, else 0, and how many they are, which share the derivative equally; those of NaN are the NaN."""
    at = equal_or_nan(xp, x, unsqueeze_reduced(xp, y, x.shape, dim, keepdim))
    return at, xp.sum(at, dim, keepdim)


def _extremum_vjp(xp, g, y, x, dim, keepdim):
    at, count = _extremes(xp, y, x, dim, keepdim)
    return unsqueeze_reduced(xp, g / count, x.shape, dim, keepdim) * at


def _define_extremum(name, what, named=None, node_name=None):
    primitive(named or name, lambda xp, input, dim, keepdim: getattr(xp, name)(input, dim, keepdim), prepare=_extremum_arguments, examples=EXAMPLES,
              kinks=(([2.0, 2.0],),), shapes=((2, 3),), layout="rows", selects=True, public=named is None, node_name=node_name,
              vjp=_extremum_vjp, jvp=lambda xp, t, y, x, dim, keepdim: xp.sum(t * (e := _extremes(xp, y, x, dim, keepdim))[0], dim, keepdim) / e[1],
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
            raise RuntimeError(f"{name}: an extreme of no elements is not defined: the shape is {list(input.shape)}. Give a `dim` of another size")
        return whole(input)
    if not isinstance(dim, int):
        if keepdim is not False:
            raise TypeError(f"{name}: of two tensors there is no keepdim, but it is {keepdim!r}")
        return between(input, dim)
    if input.ndim and not input.shape[axis(dim, input.ndim)]:
        raise IndexError(f"{name}: an extreme of no elements is not defined: dim {dim} of shape {list(input.shape)} has size 0")
    return getattr(return_types, name)((along(input, dim, keepdim), position(input, dim, keepdim)))


def _along(arg):
    """argmax or argmin, of booleans, too."""
    return lambda input, *rest: arg(input.to(DTYPES["uint8"]) if str(input.dtype) == "torch.bool" else input, *rest)


@composite("max", kinks=(([2.0, 2.0, 1.0],), ([2.0, 2.0, 1.0], 0)), usage="symgrad.max(a, dim=1).values")
def max(xp, input, dim=None, keepdim=False):
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
    return _extremum("max", input, dim, keepdim, xp.max_of_all, xp.max_along, _along(xp.argmax), xp.maximum)


@composite("min", kinks=(([1.0, 1.0, 2.0],), ([1.0, 1.0, 2.0], 0)), usage="symgrad.min(a)")
def min(xp, input, dim=None, keepdim=False):
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
    return _extremum("min", input, dim, keepdim, xp.min_of_all, xp.min_along, _along(xp.argmin), xp.minimum)


@composite("aminmax", joined="AminmaxBackward0", kinks=(([1.0, 1.0],),), usage="symgrad.aminmax(a, dim=1)")
def aminmax(xp, input, *, dim=None, keepdim=False):
    """The pair (min, max) over all elements, or along `dim`."""
    return return_types.aminmax((xp.min_of_both(input, dim, keepdim), xp.max_of_both(input, dim, keepdim)))


def _arg_arguments(xp, input, dim=None, keepdim=False):
    check_kind("argmax or argmin", input, "fciu")
    dims = axes(dim, input.ndim)
    _check_not_empty(input, dims)
    return input, None if dim is None else axis(dim, input.ndim), bool(keepdim)


primitive("argmax", lambda xp, input, dim, keepdim: xp.argmax(input, dim, keepdim), prepare=_arg_arguments, examples=((0, False), (1, True)),
          layout="rows", usage="symgrad.argmax(a, dim=1)", doc="The index of the first largest element along `dim`, or of the flattened input.")
primitive("argmin", lambda xp, input, dim, keepdim: xp.argmin(input, dim, keepdim), prepare=_arg_arguments, examples=((0, False), (1, True)),
          layout="rows", usage="symgrad.argmin(a)", doc="The index of the first smallest element along `dim`, or of the flattened input.")
def _truth_arguments(name):
    """The arguments of `all` and `any`, which have booleans as results, and uint8 for uint8."""
    def arguments(xp, input, dim=None, keepdim=False):
        if str(input.dtype) == "torch.uint8":
            return getattr(xp, name)(input.to(bool), axes(dim, input.ndim), bool(keepdim)).to(input.dtype)
        return reduction_arguments(xp, input, dim, keepdim)

    return arguments


primitive("all", lambda xp, input, dim, keepdim: xp.all(input, dim, keepdim), prepare=_truth_arguments("all"), examples=EXAMPLES, layout="rows",
          usage="symgrad.all(a > 0)", doc="Whether all elements are true.")
primitive("any", lambda xp, input, dim, keepdim: xp.any(input, dim, keepdim), prepare=_truth_arguments("any"), examples=EXAMPLES, layout="rows",
          usage="symgrad.any(a > 4)", doc="Whether any element is true.")


def or_infinity(xp, y):
    """y, and infinity where it is 0: the divisor by which a quotient and its derivatives are 0 there, as the minimum-norm subgradient of a norm."""
    return xp.where(xp.eq(y, 0), math.inf, y)


def _logsumexp_arguments(xp, input, dim=None, keepdim=False):
    return reduction_arguments(xp, input if input.is_floating_point() or input.is_complex() else input / 1, dim, keepdim)


def _logsumexp_vjp(xp, g, y, x, dim, keepdim):
    return expand_reduced(xp, g, x.shape, dim, keepdim) * xp.softmax(x, dim)


primitive("logsumexp", lambda xp, input, dim, keepdim: xp.logsumexp(input, dim, keepdim),
          kinks=(([-math.inf, -math.inf], 0), ([math.inf, 0.0], 0), ([-math.inf, 0.0], 0)), vjp=_logsumexp_vjp,
          jvp=lambda xp, t, y, x, dim, keepdim: xp.sum(t * xp.softmax(x, dim), dim, keepdim),
          prepare=_logsumexp_arguments, examples=EXAMPLES, layout="rows", usage="symgrad.logsumexp(a, dim=1)",
          doc="log Σ exp(input) over `dim`, without overflow.")


def _cumsum_transpose(xp, g, shape, dim):
    return xp.flip(xp.cumsum(xp.flip(g, (dim,)), dim), (dim,)) if shape else g


linear("cumsum", lambda xp, input, dim: xp.cumsum(input, dim), _cumsum_transpose, prepare=running("cumsum"), examples=((0,), (1,)), layout="rows",
       usage="symgrad.cumsum(a, dim=1)", doc="The running sum along `dim`.")
