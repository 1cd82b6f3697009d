"""Products along axes: of all elements, and running ones, also where a product of some elements is not representable."""

import math

from symgrad.dtypes.exponents import balancing_factors, running_factors
from symgrad.graph.op import primitive
from symgrad.layouts.memory_layout import is_plain
from symgrad.ops.reduction import EXAMPLES
from symgrad.ops.rules import axes, axis, cast, expand_reduced, inverse_permutation, numbered_node_name

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


