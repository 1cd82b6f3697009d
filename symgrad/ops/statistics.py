"""Statistics, numerical integrals and scans, as composites of other ops."""

import math
import warnings

from symgrad.arguments import check_dims, check_kind, check_least_rank, check_one_dtype, check_option, check_range
from symgrad.graph.op import composite, primitive
from symgrad.layouts.indices import gather_index
from symgrad.ops.arithmetic import _is_integer, common
from symgrad.ops.norms import unit_vectors
from symgrad.ops.reduction import EXAMPLES, recurrence
from symgrad.ops.rules import axes, axis, expand_reduced, in_float32, is_complex

# Elements that are NaN


def _without_nan(xp, x, t):
    return xp.where(xp.isnan(x), xp.zeros_like(t), t)


primitive("sum_without_nan", lambda xp, input, dim, keepdim: xp.sum(_without_nan(xp, input, input), dim, keepdim), public=False, selects=True,
          vjp=lambda xp, g, y, x, dim, keepdim: _without_nan(xp, x, expand_reduced(xp, g, x.shape, dim, keepdim)),
          jvp=lambda xp, t, y, x, dim, keepdim: xp.sum(_without_nan(xp, x, t), dim, keepdim), saved=("input",), examples=EXAMPLES, layout="rows",
          node_name="Nansum", doc="The sum of the elements that are not NaN.")


@composite("nansum", usage="symgrad.nansum(a, dim=1)")
def nansum(xp, input, dim=None, keepdim=False, *, dtype=None):
    """The sum of the elements that are not NaN."""
    input = input if dtype is None else input.to(dtype)
    check_kind("nansum", input, "fiub")
    if not input.is_floating_point():
        return xp.sum(input, dim, keepdim)
    return xp.sum_without_nan(input, axes(dim, input.ndim), bool(keepdim))


@composite("nanmean", usage="symgrad.nanmean(a, dim=1)")
def nanmean(xp, input, dim=None, keepdim=False, *, dtype=None):
    """The mean of the elements that are not NaN; NaN if there are none."""
    check_kind("nanmean", input, "fc")
    return _mean_without_nan(xp, input if dtype is None else input.to(dtype), dim, keepdim)


@in_float32
def _mean_without_nan(xp, input, dim, keepdim):
    total = xp.nansum(input, dim, keepdim)
    return total / xp.sum(xp.logical_not(xp.isnan(input)), dim, keepdim).to(total.dtype)


def _quantile(name, xp, input, q, dim, keepdim, interpolation, missing):
    """Order statistics at the ranks q (n - 1), interpolated; a row with NaN has the quantile NaN, unless they are `missing`."""
    if not (input.is_floating_point() and input.element_size() >= 4 and input.numel()):
        raise RuntimeError(f"{name}: input must be numbers of float32 or float64, not {list(input.shape)} of {input.dtype}")
    if isinstance(q, (tuple, list)):
        raise TypeError(f"{name}: q must be a number or a tensor, not {type(q).__name__}")
    q = q if hasattr(q, "dtype") else input.new_tensor(q)
    check_dims(name, q, 0, 1, word="q")
    check_one_dtype(name, input, q)
    check_option(name, "interpolation", interpolation, ("linear", "lower", "higher", "midpoint", "nearest"))
    for p in q.reshape(-1).tolist():
        check_range(name, "q", p, 0, 1)
    at = None if dim is None else axis(dim, input.ndim)
    shape = (1,) * input.ndim if dim is None else tuple(1 if i == at else n for i, n in enumerate(input.shape))
    rows = xp.reshape(input, (-1,)) if dim is None or not input.ndim else xp.reshape(xp.movedim(input, at, -1), (-1, input.shape[at]))
    values = xp.sort(rows, -1)[0]
    numbers = xp.numbers(rows)
    n, whole = rows.shape[-1], numbers == numbers
    count = whole.sum(-1, keepdims=True)
    last = (count - 1) * (count > 0) if missing else (n - 1) + 0 * count
    ranks = xp.reshape(q, (-1,)) * _tensor(input, last)
    place = xp.numbers(ranks)
    if not missing:
        place = place * whole.all(-1, keepdims=True) + (n - 1) * ~whole.all(-1, keepdims=True)  # NaN comes last
    below = place.astype(int)
    above = below + (place > below)
    if interpolation == "nearest":
        below = above = place.round().astype(int)
    lower, upper = (xp.getitem(values, gather_index(places, values.ndim - 1)) for places in (below, above))
    if interpolation in ("linear", "midpoint"):
        weight = ranks - _tensor(input, below) if interpolation == "linear" else xp.ones_like(lower) / 2
        weight = xp.where(_tensor(input, place == below), xp.zeros_like(lower), weight) if interpolation == "midpoint" else weight
        out = xp.lerp(lower, upper, weight)
    else:
        out = upper if interpolation == "higher" else lower
    out = xp.movedim(out, -1, 0)
    out = xp.reshape(out, (out.shape[0], *(shape if keepdim else () if dim is None else (n for i, n in enumerate(input.shape) if i != at))))
    return out if q.ndim else xp.select(out, 0, 0)


def _tensor(like, numbers):
    return like.new_tensor(numbers, dtype=None if numbers.dtype.kind == "b" else like.dtype)


@composite("quantile", kinks=(([1.0, 1.0, 2.0], 0.25),), usage="symgrad.quantile(a, 0.5, dim=1)")
def quantile(xp, input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-quantiles along `dim`, or of all elements; NaN where an element is. Several q give a new first dimension."""
    return _quantile("quantile", xp, input, q, dim, keepdim, interpolation, False)


@composite("nanquantile", kinks=(([1.0, 1.0, 2.0], 0.25),), usage="symgrad.nanquantile(a, 0.5, dim=1)")
def nanquantile(xp, input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-quantiles of the elements that are not NaN."""
    return _quantile("nanquantile", xp, input, q, dim, keepdim, interpolation, True)


# Running sums and integrals


def _by_doubling(xp, x, dim, combine):
    """The running combination of the elements along `dim`, a new array."""
    if not x.ndim or x.shape[dim] < 2:
        return xp.copy(x)
    step, before = 1, (slice(None),) * dim
    while step < x.shape[dim]:
        first, rest, back = (x[(*before, part)] for part in (slice(0, step), slice(step, None), slice(0, -step)))
        x = xp.cat([first, combine(rest, back)], dim)
        step *= 2
    return x


def _faded(xp, low, high, lower):
    """exp(low - high), and 1 where low is not the lower one, as for equal infinite numbers; the rounding error of a large difference is a factor."""
    apart = xp.logical_and(lower, xp.logical_not(xp.logical_and(xp.eq(low, high), xp.isinf(low))))
    low, high = (xp.where(apart, x, xp.zeros_like(x)) for x in (low, high))
    gap = low - high
    back = low - gap
    error = (low - (gap + back)) + (back - high)
    return xp.exp(gap) * (1 + xp.where(xp.gt(gap, -800), error, xp.zeros_like(gap)))


def _running_weights(xp, x, dim):
    """For y = logcumsumexp(x): exp(x - peak) for the running peaks, what they are multiplied with for the next peak, and the running sum of exp(x),
    divided by exp(peak).

    The result y of large numbers is rounded by so much that exp(x - y) would have no digits. A number is compared with the peak before it: the
    derivatives of its distance from itself would cancel beside those by the others. Of equal numbers the first is the peak everywhere: the result
    does not depend on the peaks, as long as all of them are of one choice.
    """
    before = (slice(None),) * dim
    size = xp.getitem(xp.view_as_real(x), (..., 0)) if is_complex(x) else x
    peak = _by_doubling(xp, size, dim, lambda later, earlier: xp.where(xp.lt(earlier, later), later, earlier))
    last, new = peak[(*before, slice(0, -1))], size[(*before, slice(1, None))]
    one, larger = xp.ones_like(peak[(*before, slice(0, 1))]), xp.lt(last, new)
    fading = xp.cat([one, _faded(xp, last, new, larger)], dim)
    each = xp.exp(x - peak) if is_complex(x) else xp.cat([one, _faded(xp, new, last, xp.logical_not(larger))], dim)
    return each, fading, recurrence(xp, fading, each, dim, False)


def _logcumsumexp_vjp(xp, g, y, x, dim):
    if not x.shape:
        return g
    each, fading, total = _running_weights(xp, x, dim)
    before = (slice(None),) * dim
    following = xp.cat([fading[(*before, slice(1, None))], fading[(*before, slice(0, 1))]], dim)
    return each * recurrence(xp, following, g / total, dim, True)


def _logcumsumexp_jvp(xp, t, y, x, dim):
    if not x.shape:
        return t
    each, fading, total = _running_weights(xp, x, dim)
    return recurrence(xp, fading, each * t, dim, False) / total


def _running_arguments(xp, input, dim):
    return input if input.is_floating_point() or input.is_complex() else input / 1, axis(dim, input.ndim)


primitive("logcumsumexp", lambda xp, input, dim: _by_doubling(xp, input, dim, xp.logaddexp), vjp=_logcumsumexp_vjp, jvp=_logcumsumexp_jvp,
          kinks=(([-math.inf, 0.0], 0), ([-math.inf, -math.inf], 0)), prepare=_running_arguments, examples=((0,), (1,)), layout="rows",
          saved=("input result",), usage="symgrad.logcumsumexp(a, dim=1)",
          doc="The logarithm of the running sum of exp(input) along `dim`, without overflow, by doubling.")


def _trapezoids(name, xp, y, x, dx, dim):
    """The areas below a piecewise linear curve, one for each interval."""
    dim = axis(dim, y.ndim)
    if x is not None and dx is not None:
        raise TypeError(f"{name}: only one of x and dx may be given")
    for z in (y, x):
        if z is not None:
            check_kind(name, z, "fciu", "x or y")
    if _is_integer(y):  # before integers of few bits wrap around
        y = y / 1 if x is None or _is_integer(x) else y.to(x.dtype)
    if x is not None and _is_integer(x):
        x = x.to(y.dtype)
    n = y.shape[dim]
    sides = xp.narrow(y, dim, 1, max(n - 1, 0)) + xp.narrow(y, dim, 0, max(n - 1, 0)) if n else y
    if x is None:
        half = (1 if dx is None else dx) / 2
        return sides * half if hasattr(half, "dtype") else xp.scaled(sides, half), dim
    check_least_rank(name, x, 1, "x")
    widths = xp.diff(x, dim=0 if x.ndim == 1 else dim)
    if x.ndim == 1:
        check_range(name, "the number of x", x.shape[0], n, n)
        widths = xp.reshape(widths, (-1, *(1,) * (y.ndim - 1 - dim)))
    return sides * widths / 2, dim


@composite("trapezoid", usage="symgrad.trapezoid(x)", method=False, aliases=("trapz",))
def trapezoid(xp, y, x=None, *, dx=None, dim=-1):
    """The integral along `dim` by the trapezoidal rule, of samples at the points `x` or at distances `dx` (1)."""
    areas, dim = _trapezoids("trapezoid", xp, y, x, dx, dim)
    return xp.sum(areas, dim)


@composite("cumulative_trapezoid", usage="symgrad.cumulative_trapezoid(x)", method=False)
def cumulative_trapezoid(xp, y, x=None, *, dx=None, dim=-1):
    """The running integral along `dim` by the trapezoidal rule, one element shorter than the samples."""
    areas, dim = _trapezoids("cumulative_trapezoid", xp, y, x, dx, dim)
    return xp.cumsum(areas, dim)


# Covariance


@composite("cov", usage="symgrad.cov(a)")
@in_float32
def cov(xp, input, *, correction=1, fweights=None, aweights=None):
    """The covariances of the rows, which are variables; columns are observations, with frequencies and weights."""
    check_dims("cov", input, 0, 1, 2)
    check_kind("cov", input, "fciu")
    rows = xp.reshape(input, (1, -1)) if input.ndim < 2 else input
    if aweights is not None:
        check_kind("cov", aweights, "fc", "aweights")
        rows = rows.to(common(rows, aweights))
    elif _is_integer(rows):
        rows = rows / 1
    number = xp.abs(rows).dtype  # of weights, also where the rows are complex
    n, weights = rows.shape[1], None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            check_dims("cov", given, 0, 1, word=name)
            check_range("cov", f"the number of {name}", given.numel(), n, n)
            check_kind("cov", given, "iub" if name == "fweights" else "fc", name)
            if any(w < 0 for w in given.reshape(-1).tolist()):
                raise RuntimeError(f"cov: {name} must not be negative")
            weights = given.to(number) if weights is None else weights * given
    if weights is None:
        centred, norm = xp.centred(rows, (1,)), n - correction
        right = centred
        if norm <= 0:
            warnings.warn(f"cov: {n} observations have no degrees of freedom with the correction {correction}", UserWarning, stacklevel=2)
    else:
        total = xp.sum(weights)
        centred = rows
        for _ in range(2):  # the second time for the rounding error of a large mean
            centred = centred - xp.unsqueeze(xp.sum(centred * weights, 1) / total, 1)
        norm = total - correction if aweights is None else total - correction * xp.sum(weights * aweights) / total
        right = centred * weights
    out = xp.matmul(centred, xp.transpose(xp.conj(right), 0, 1))
    if hasattr(norm, "dtype"):
        norm = xp.clamp(xp.real(norm), min=0)
    else:
        norm = max(norm, 0)
    out = out / norm
    return xp.squeeze(out)


@composite("corrcoef", usage="symgrad.corrcoef(a)")
@in_float32
def corrcoef(xp, input):
    """Pearson's correlations of the rows, which are variables."""
    check_dims("corrcoef", input, 0, 1, 2)
    c = xp.cov(input)
    if not c.ndim:
        return c / c
    rows = unit_vectors(xp, xp.centred(input if input.is_floating_point() or input.is_complex() else input / 1, (1,)), (1,), 0.0)
    out = xp.matmul(rows, xp.transpose(xp.conj(rows), 0, 1))
    return out if out.is_complex() else xp.clamp(out, -1, 1)


# Lengths


@composite("dist", kinks=(([1.0, 2.0], [1.0, 2.0]),), arity=2, usage="symgrad.dist(x, 2 * x)", saved=("input other result",) * 2)
def dist(xp, input, other, p=2):
    """The p-norm of the difference."""
    return xp.norm(input - other, p)


@composite("renorm", kinks=(([[0.0, 0.0]], 2, 0, 1),), usage="symgrad.renorm(a, 2, 0, 1.0)", saved=("input",))
def renorm(xp, input, p, dim, maxnorm):
    """The slices along `dim` whose p-norm is above `maxnorm`, scaled to that norm (less a part in ten millions, as in torch)."""
    if not p > 0:
        raise RuntimeError(f"renorm: p must be positive, not {p}")
    check_least_rank("renorm", input, 2)
    check_range("renorm", "maxnorm", maxnorm, 0)
    dim = axis(dim, input.ndim)
    others = tuple(i for i in range(input.ndim) if i != dim)
    size = xp.norm(input, p, others, True)
    large = xp.gt(size, maxnorm)
    if p == 2:
        size = xp.where(large, size, xp.ones_like(size))
        return xp.copy(xp.where(large, unit_vectors(xp, input, others, maxnorm) * (maxnorm / (1 + 1e-7 / size)), input), "C")
    return xp.copy(input * xp.where(large, maxnorm / (xp.where(large, size, xp.ones_like(size)) + 1e-7), xp.ones_like(size)), "C")


@composite("narrow_copy", usage="symgrad.narrow_copy(a, 1, 0, 2)")
def narrow_copy(xp, input, dim, start, length):
    """A contiguous copy of the `length` slices along `dim` from `start` on."""
    return xp.copy(xp.narrow(input, dim, start, length), "C")


# Differences


def _slope(xp, x, dim, h, edge_order):
    """The derivative along `dim` by central differences, one-sided at the ends; h is a number, or a vector of coordinates."""
    n = x.shape[dim]

    def part(start, length):
        return xp.narrow(x, dim, start, length)

    if hasattr(h, "ndim") and h.ndim:
        widths = xp.reshape(xp.diff(h), (-1, *(1,) * (x.ndim - 1 - dim)))
        before, after = xp.narrow(widths, 0, 0, n - 2), xp.narrow(widths, 0, 1, n - 2)
        first, second, last, fore = (xp.narrow(widths, 0, k, 1) for k in (0, min(1, n - 2), n - 2, max(n - 3, 0)))
    else:
        before = after = first = second = last = fore = h
    inner = (part(2, n - 2) - part(1, n - 2)) / after * (before / (before + after)) + (part(1, n - 2) - part(0, n - 2)) / before * (
        after / (before + after))
    start, end = (part(1, 1) - part(0, 1)) / first, (part(n - 1, 1) - part(n - 2, 1)) / last
    if edge_order == 2:
        start = start + (start - (part(2, 1) - part(1, 1)) / second) * (first / (first + second))
        end = end + (end - (part(n - 2, 1) - part(n - 3, 1)) / fore) * (last / (last + fore))
    return xp.cat([start, inner, end], dim)


@composite("gradient", usage="symgrad.gradient(x)", method=False)
def gradient(xp, input, *, spacing=1, dim=None, edge_order=1):
    """The derivatives along dimensions by central differences, one tensor for each; `spacing` is a number, numbers, or coordinates."""
    dims = axes(dim, input.ndim)
    check_option("gradient", "edge_order", edge_order, (1, 2))
    spacing = 1 if spacing is None else spacing
    check_kind("gradient", input, "fcib")
    steps = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if len(steps) != len(dims) or any([getattr(step, "ndim", 0) > 1 for step in steps]):
        raise RuntimeError(f"gradient: spacing must be a number, or {len(dims)} numbers or vectors, not {spacing!r}")
    for d in dims:
        check_range("gradient", f"the size of dimension {d}", input.shape[d], edge_order + 1)
    return tuple(_slope(xp, input, d, h, edge_order) for d, h in zip(dims, steps))
