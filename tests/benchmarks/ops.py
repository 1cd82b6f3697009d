"""Every op by itself, value and gradient: with ten elements beside torch, with 100,000 beside NumPy by hand, and products of matrices."""

import functools
import statistics
import warnings

import numpy as np

import symgrad
from tests.benchmarks.by_hand import BY_HAND
from tests.benchmarks.calls import bound, calls, step
from tests.benchmarks.measure import ratio
from tests.benchmarks.table import Row, compare, spell, torch_one_thread

__all__ = ["above", "every", "rows"]

SMALL, LARGE, PRODUCTS = 0.7, 1.5, 1.3  # bars
FEW, MANY, SIDE = (10, 3), 100_000, 500
BLOCK = 0.003  # seconds of one side in a round: there are many ops
AGAIN = 3  # times the rounds for what is above its bar


def _small(torch, call):
    """The call in both libraries; None if torch has no such function, or no derivative of it."""
    for n in FEW:  # some usages of the documentation go with its sizes
        try:
            ours, theirs = step(symgrad, call, n), step(torch, call, n)
            if ours is None or theirs is None:
                return None
            ours(), theirs()
            return ours, theirs
        except (RuntimeError, ValueError, IndexError, StopIteration):
            continue
    return None


def _large(call):
    """The call with many elements, and the same by hand; both give the same numbers, to six digits of the largest."""
    hand = BY_HAND[repr(call)]
    function, leaves = bound(symgrad, call, MANY)
    ours, xs = step(symgrad, call, MANY), [leaf.detach().numpy() for leaf in leaves]
    assert ours is not None
    xs = [xs[0] > 0, *xs] if repr(call).startswith("where") else xs
    value = function().detach().numpy()
    ones = np.ones(value.shape)[()]

    def theirs():
        return hand(*xs, ones)

    for a, b in zip([value, *[g.numpy() for g in ours()]], theirs()):
        assert not np.isfinite(b).all() or np.allclose(a, b, rtol=1e-6, atol=1e-12 + 1e-6 * float(np.abs(b).max(initial=0.0))), call
    return ours, theirs


def _measured(pair, timing, bar):
    """Our time by theirs and both; measured again, for longer, if it is above the bar, since other work on a machine makes outliers."""
    block = min(timing.block, BLOCK)
    found = ratio(*pair, timing.rounds, block)
    return min(found, ratio(*pair, AGAIN * timing.rounds, block)) if found[0] > bar and timing.block else found


@functools.cache
def every(timing):
    """A pair of a call and its row for each op with few elements, and for each with many."""
    torch = torch_one_thread()
    few, many, timing = [], [], timing._replace(rounds=max(1, timing.rounds // 4))
    before = torch and torch.get_default_dtype()
    if torch:
        torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for call in calls():
                pair = _small(torch, call) if torch else None
                if pair is not None:
                    quotient, a, b = _measured(pair, timing, SMALL)
                    few.append((repr(call), Row(f"{call!r}, 10 elements", "torch eager", f"{quotient:.2f}", f"{SMALL:.2f}", spell(a), spell(b))))
                if repr(call) in BY_HAND:
                    quotient, a, b = _measured(_large(call), timing, LARGE)
                    many.append((repr(call), Row(f"{call!r}, 100,000 elements", "NumPy by hand", f"{quotient:.2f}", f"{LARGE:.2f}", spell(a),
                                                 spell(b))))
    finally:
        if torch:
            torch.set_default_dtype(before)
    return few, many


def _summary(work, found, beside, bar):
    """The geometric mean of the figures, and how many are within the bar."""
    figures = [float(row.figure) for _, row in found]
    mean = f"{statistics.geometric_mean(max(f, 0.01) for f in figures):.2f}" if figures else "not installed"
    yield Row(f"{work}, geometric mean", beside, mean, f"{bar:.2f}")
    within = f"{sum(f <= bar for f in figures)} of {len(figures)}" if figures else "not installed"
    yield Row(f"{work}, calls within {bar:.2f}", beside, within, "all")


def _product(m, name):
    """A product of two matrices, forward and backward."""
    a, b = (m.tensor(np.random.default_rng(seed).standard_normal((SIDE, SIDE)), requires_grad=True) for seed in (0, 1))
    ones = m.ones((SIDE, SIDE), dtype=m.float64)
    function = {"matmul": m.matmul, "einsum": functools.partial(m.einsum, "ij,jk->ik"),
                "einsum, transposed": functools.partial(m.einsum, "ij,kj->ki")}[name]

    def once():
        a.grad = b.grad = None
        function(a, b).backward(ones)
        return a.grad, b.grad

    return once


def rows(timing):
    """The summary of both tables, and the products."""
    torch, (few, many) = torch_one_thread(), every(timing)
    yield from _summary("ops, 10 elements", few, "torch eager", SMALL)
    yield from _summary("ops, 100,000 elements", many, "NumPy by hand", LARGE)
    for name in ("matmul", "einsum", "einsum, transposed"):
        yield compare(f"{name}, {SIDE} x {SIDE}", "torch eager", _product(symgrad, name), torch and _product(torch, name), PRODUCTS, timing, 1e-9)


def above(timing):
    """The calls above the bars with their figures, the slowest first, as text."""
    few, many = every(timing)
    listed = []
    for size, beside, bar, found in (("10", "torch", SMALL, few), ("100,000", "NumPy by hand", LARGE, many)):
        slow = sorted(((float(row.figure), name) for name, row in found if float(row.figure) > bar), reverse=True)
        names = ", ".join(f"`{name}` {figure:.2f}" for figure, name in slow)
        listed.append(f"Above {bar:.2f} of {beside} with {size} elements: {names or 'none'}.")
    return "\n\n".join(listed)
