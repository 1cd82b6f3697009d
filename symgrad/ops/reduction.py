"""Reductions along one, several or all axes; products, also running ones, where a product of some elements is not representable, too."""

import math

from symgrad.arguments import check_kind
from symgrad.dtypes.dtype import DTYPES
from symgrad.dtypes.exponents import balancing_factors, running_factors
from symgrad.graph import return_types
from symgrad.graph.op import composite, linear, primitive
from symgrad.layouts.strides import is_plain
from symgrad.ops.rules import (
    axes,
    axis,
    cast,
    divided_by_count,
    equal_or_nan,
    expand_reduced,
    inverse_permutation,
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
def _max(xp, input, dim=None, keepdim=False):
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
    return _extremum("max", input, dim, keepdim, xp.max_of_all, xp.max_along, _along(xp.argmax), xp.maximum)


@composite("min", kinks=(([1.0, 1.0, 2.0],), ([1.0, 1.0, 2.0], 0)), usage="symgrad.min(a)")
def _min(xp, input, dim=None, keepdim=False):
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


FEW = 64  # numbers for which a loop takes less time than arrays


def _product_arguments(xp, input, dim=None, keepdim=False, *, dtype=None):
    """The arguments; where a product of some elements overflows or loses digits, those of elements of equal size that have the same product."""
    dims = axes(dim, input.ndim)
    if dtype is not None:
        return cast(xp, "prod", input, dtype, dims, bool(keepdim))
    for factor in balancing_factors(input.value, dims):
        input = input * input.new_tensor(factor)
    return input, dims, bool(keepdim)


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


def _by_running_products(x):
    """The same for an array of numbers, as the product of those before times the product of those after."""
    out = x.copy()
    out[..., :1] = 1
    out[..., 1:] = x[..., :-1].cumprod(-1)
    out[..., :-1] *= x[..., :0:-1].cumprod(-1)[..., ::-1]
    return out


def _product_of_others(xp, x, dim):
    if not math.prod(x.shape) or not dim:
        return xp.ones_like(x)
    order = tuple(i for i in range(x.ndim) if i not in dim) + dim
    front = xp.permute(x, order)
    kept = x.ndim - len(dim)
    flat = xp.reshape(front, (*front.shape[:kept], math.prod(front.shape[kept:])))
    few = is_plain(x) and flat.shape[-1] <= 32  # sooner by running products, whose rounding errors are as many as there are factors
    out = xp.reshape(_by_running_products(flat) if few else _product_of_others_of_last_axis(xp, flat), front.shape)
    return xp.permute(out, inverse_permutation(order))


primitive("prod", lambda xp, input, dim, keepdim: xp.prod(input, dim, keepdim),
          kinks=(([0.0, 2.0],), ([0.0, 0.0],)), prepare=_product_arguments, examples=EXAMPLES, layout="rows",
          names=numbered_node_name("Prod"),
          vjp=lambda xp, g, y, x, dim, keepdim: expand_reduced(xp, g, x.shape, dim, keepdim) * _product_of_others(xp, x, dim),
          jvp=lambda xp, t, y, x, dim, keepdim: xp.sum(t * _product_of_others(xp, x, dim), dim, keepdim),
          usage="symgrad.prod(a, dim=1)",
          doc="The product over `dim`, or over all elements; its derivatives are right also at zeros. Of up to 4,096 "
              "elements it has all its digits where a product of some of them overflows.")


def _shift(xp, x, dim, step, reverse):
    """The elements shifted along `dim` by a number of steps, up or down, and filled with zeros."""
    n = x.shape[dim]
    before = (slice(None),) * dim
    if is_plain(x):
        out = x.copy()
        out.fill(0)
        if step < n:
            behind, ahead = (*before, slice(step, None)), (*before, slice(0, n - step))
            out[ahead if reverse else behind] = x[behind if reverse else ahead]
        return out
    gap = xp.zeros_like(x, tuple(min(step, n) if i == dim else m for i, m in enumerate(x.shape)))
    kept = x[(*before, slice(step, None) if reverse else slice(0, max(n - step, 0)))]
    return xp.cat([kept, gap] if reverse else [gap, kept], dim)


def _recurrence_of_numbers(a, b, dim, reverse):
    """As `recurrence`, for a few floats, which Python adds and multiplies in less time."""
    out = b.swapaxes(dim, -1).copy()
    rows = out.reshape(-1, out.shape[-1])
    factors, sums = a.swapaxes(dim, -1).reshape(rows.shape).tolist(), rows.tolist()
    for factor, s in zip(factors, sums):
        order = range(len(s) - 2, -1, -1) if reverse else range(1, len(s))
        back = 1 if reverse else -1
        for i in order:
            s[i] += factor[i] * s[i + back]
    rows[...] = sums
    return out.swapaxes(dim, -1)


LONG = 4096  # elements from which doubling makes more passes over memory than steps in blocks


def recurrence(xp, a, b, dim, reverse):
    """The solution of s[i] = b[i] + a[i] s[i - 1] (or s[i + 1]) by doubling, without division, so that zeros are allowed."""
    if is_plain(a) and is_plain(b) and a.shape == b.shape and 0 < b.size <= FEW and a.dtype.char == b.dtype.char == "d":
        return _recurrence_of_numbers(a, b, dim, reverse)
    if a.ndim == 1 and a.shape[0] >= LONG and is_plain(a) and is_plain(b):
        return _by_blocks(xp, a, b, reverse)
    step = 1
    while step < a.shape[dim]:
        b = b + a * _shift(xp, b, dim, step, reverse)
        a = a * _shift(xp, a, dim, step, reverse)
        step *= 2
    return b


def _by_blocks(xp, a, b, reverse):
    """The same of long vectors: step by step in all of some blocks at once, and then from block to block."""
    if reverse:
        return xp.flip(_by_blocks(xp, xp.flip(a, (0,)), xp.flip(b, (0,)), False), (0,))
    n = a.shape[0]
    length = math.isqrt(n)
    blocks = -(-n // length)
    gap = xp.zeros_like(a, (blocks * length - n,))
    a, b = (xp.copy(xp.permute(xp.reshape(xp.cat([x, gap], 0), (blocks, length)), (1, 0)), "C") for x in (a, b))
    products, sums = [a[0]], [b[0]]
    for i in range(1, length):
        products.append(a[i] * products[-1])
        sums.append(b[i] + a[i] * sums[-1])
    products, sums = xp.stack(products, 0), xp.stack(sums, 0)
    before = recurrence(xp, products[-1], sums[-1], 0, False)
    sums = xp.cat([sums[:, 0:1], sums[:, 1:] + products[:, 1:] * before[:-1]], 1)
    return xp.reshape(xp.copy(xp.permute(sums, (1, 0)), "C"), (blocks * length,))[:n]


def _exclusive_product(xp, y, dim):
    """The running product exclusive of the element itself."""
    first = (slice(None),) * dim + (slice(0, 1),)
    if is_plain(y):
        out, before = y.copy(), (slice(None),) * dim
        out[first] = 1
        out[(*before, slice(1, None))] = y[(*before, slice(0, -1))]
        return out
    return xp.cat([xp.ones_like(y[first]), y[(slice(None),) * dim + (slice(0, -1),)]], dim)


def _cumprod_vjp(xp, g, y, x, dim):
    return _exclusive_product(xp, y, dim) * recurrence(xp, _shift(xp, x, dim, 1, True), g, dim, True) if x.shape else g


def _cumprod_jvp(xp, t, y, x, dim):
    return recurrence(xp, x, _exclusive_product(xp, y, dim) * t, dim, False) if x.shape else t


def _running_product_arguments(xp, input, dim, *, dtype=None):
    """The arguments, or the running product of elements of size 1, times powers of two, where a product of some elements is not representable."""
    dim = axis(dim, input.ndim)
    if dtype is not None:
        return cast(xp, "cumprod", input, dtype, dim)
    before, after = running_factors(input.value, dim)
    if not before:
        return input, dim
    for factor in before:
        input = input * input.new_tensor(factor)
    out = xp.cumprod(input, dim)
    for factor in after:
        out = out * input.new_tensor(factor)
    return out


primitive("cumprod", lambda xp, input, dim: xp.cumprod(input, dim),
          kinks=(([0.0, 2.0, 3.0], 0),), vjp=_cumprod_vjp, jvp=_cumprod_jvp, examples=((0,), (1,)), layout="rows", prepare=_running_product_arguments,
          usage="symgrad.cumprod(a, dim=1)",
          doc="The running product along `dim`; its derivatives are right also at zeros. Of up to 4,096 "
              "elements it has all its digits where a product of some of them overflows.")
