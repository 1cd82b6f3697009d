"""Sums over the paths of a sequence of states through a sequence of steps, in logarithms."""

from symgrad.graph.op import primitive


def _first(xp, x, count, value):
    """x, with a value in the place of all states but the first ones."""
    if count >= x.shape[-1]:
        return x
    rest = xp.getitem(x, (..., slice(count, None)))
    return xp.cat((xp.getitem(x, (..., slice(0, count))), xp.zeros_like(rest) + value), len(x.shape) - 1)


def _from_before(xp, x, count, value):
    """x of the state `count` places before, and a value where there is none."""
    width = max(x.shape[-1] - count, 0)
    return xp.cat((xp.zeros_like(xp.getitem(x, (..., slice(width, None)))) + value, xp.getitem(x, (..., slice(0, width)))), len(x.shape) - 1)


def _from_after(xp, x, count):
    """x of the state `count` places after, and 0 where there is none: the transpose of `_from_before`."""
    start = min(count, x.shape[-1])
    return xp.cat((xp.getitem(x, (..., slice(start, None))), xp.zeros_like(xp.getitem(x, (..., slice(0, start))))), len(x.shape) - 1)


def _arriving(xp, y, skips, zero):
    """The logarithms with which a state is reached from itself, from the state before, and from the one before that."""
    return y, _from_before(xp, y, 1, zero), _from_before(xp, y, 2, zero) + skips


def _shares(xp, y, skips, zero):
    """The shares of the three in their sums, at all steps but the first."""
    before = xp.getitem(y, slice(0, y.shape[0] - 1))
    return xp.softmax(xp.stack(_arriving(xp, before, skips, zero), 0), (0,))


def _log_path_sums(xp, input, skips, zero):
    rows = []
    for t in range(input.shape[0]):
        each = xp.getitem(input, t)
        if rows:
            stay, step, skip = _arriving(xp, rows[-1], skips, zero)
            each = each + xp.logaddexp(xp.logaddexp(stay, step), skip)
        rows.append(_first(xp, each, 2 * t + 2, zero))
    return xp.stack(rows, 0)


def _log_path_sums_vjp(xp, g, y, input, skips, zero):
    shares, rows, by_skips = _shares(xp, y, skips, zero), [], xp.zeros_like(skips)
    for t in reversed(range(y.shape[0])):
        each = xp.getitem(g, t)
        if rows:
            stay, step, skip = (xp.getitem(shares, (i, t)) * rows[-1] for i in range(3))
            each = each + stay + _from_after(xp, step, 1) + _from_after(xp, skip, 2)
            by_skips = by_skips + skip
        rows.append(_first(xp, each, 2 * t + 2, 0))
    return xp.stack(rows[::-1], 0), by_skips


def _log_path_sums_jvp(xp, t, by_skips, y, input, skips, zero):
    shares, rows = _shares(xp, y, skips, zero), []
    for step in range(y.shape[0]):
        each = xp.getitem(t, step)
        if rows:
            tangents = rows[-1], _from_before(xp, rows[-1], 1, 0), _from_before(xp, rows[-1], 2, 0) + by_skips
            for i, tangent in enumerate(tangents):
                each = each + xp.getitem(shares, (i, step - 1)) * tangent
        rows.append(_first(xp, each, 2 * step + 2, 0))
    return xp.stack(rows, 0)


primitive("log_path_sums", _log_path_sums, vjp=_log_path_sums_vjp, jvp=_log_path_sums_jvp, arity=2, public=False, layout="rows",
          shapes=((2, 1, 3), (1, 3)), examples=((-1e3,),), saved=("result skips",) * 2,
          doc="For logarithms of weights (T, N, S) and factors `skips` (N, S): the logarithm of the sum, over the paths to each state at each step, "
              "of the product of the weights along the path. A path begins at one of the first two states, and at each step stays, goes to the next "
              "state, or with a factor of `skips` to the one after it. Where no path arrives the result is `zero`, which stands for log(0).")
