"""The check of an op on arrays at other sizes than the claimed ones: for stacks of arguments, and for longer axes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.frameworks.adapter import Array, Arrays, NotApplicable
from symgrad.sampling.numbers import PREFIX
from symgrad.testing.attack import Attack, complete_example, plan_of
from symgrad.testing.checks.base import ORDINALS, Sides, agree, as_double, check
from symgrad.testing.checks.differences import along, smooth
from symgrad.testing.checks.measuring import compare
from symgrad.testing.checks.memory import check_each_alone
from symgrad.testing.claimed import cast
from symgrad.testing.examples import Draft, Example, Shape
from symgrad.testing.failure import Wrong

SAMPLES = 4  # different arguments in a stack
LONG_SIZES = (17, 33, 65, 130)  # beyond the blocks, vectors and caches of usual code
SIZES = (*range(1, 17), *LONG_SIZES)  # of axes: each short length, which may be a special case, and long ones
MAX_ELEMENTS = 2000  # elements of an argument
MAX_EXACT = 400  # elements whose value is computed with many digits
CLOSE = 1e-3  # relative error of values that are meant to be equal


@check("sizes", most=1,
       when=lambda attack: "it is random" if attack.claims.random else (
           "its elements are checked in other shapes" if attack.elementwise else attack.of_complex))
def check_sizes(attack: Attack, example: Example) -> None:
    """An op that takes stacks of its arguments gives the results of a loop, and an op that takes longer axes is right for long ones.

    A stack counts where the op takes it and its value is that of the loop; then derivatives are, too, for stacks of one axis and of two, small and
    large ones. A value that is not that of the loop is a mistake if other stacks have it, or if the claimed formula has it for this one.
    Longer axes count where value and derivatives are right for two sizes next to the claimed one; then they are for all lengths up to 17 and for
    some up to 130. Each axis is lengthened with all axes of the same length.

    The check applies to deterministic ops on arrays.
    """
    if example.xs and example.cotangent.dtype.kind == "f":
        _check_stacks(attack, example)
        _check_longer_axes(attack, example)


def _leading_axes(attack: Attack, example: Example) -> list[Shape]:
    """The leading axes of stacks. None is as long as an axis of an argument, so that an op that means another axis shows it by the shape."""
    sides = {n for x in (*example.xs, example.cotangent) for n in x.shape}
    short = [n for n in (2, 5, 6, 7, 8, 9, 10, 11) if n not in sides]
    long = [n for n in LONG_SIZES if n not in sides]
    return [(short[0],), long[1:2]] if attack.subject.compiles else [(short[0],), (short[0], short[1]), *((n,) for n in long)]  # type: ignore[list-item]


def _check_stacks(attack: Attack, example: Example) -> None:
    subject, count, shapes = attack.subject, len(example.xs), [x.shape for x in (*example.xs, example.cotangent)]
    apart = [e for e in attack.examples("points") if [x.shape for x in (*e.xs, e.cotangent)] == shapes
             and not all(np.array_equal(np.sort(x, None), np.sort(y, None)) for x, y in zip(e.xs, example.xs))]  # whose mean is not the same, say
    samples = [example, *apart[:SAMPLES - 1]]
    if len(samples) < 2:
        return
    subsets = [tuple(range(count)), *((i,) for i in range(count) if count > 1)][:1 if attack.subject.compiles else None]
    for chosen in subsets:
        taken: list[Shape] = []
        others: list[tuple[Shape, Array, Array]] = []
        each = [[(s if i in chosen else example).xs[i] for i in range(count)] for s in samples]
        try:
            loop = [subject.value(xs) for xs in each]
        except Exception:  # these arguments do not fit each other
            continue
        for lead in _leading_axes(attack, example):
            picks = np.arange(math.prod(lead)) % len(samples)
            try:
                value = subject.value([_stack([xs[i] for xs in each], picks, lead) if i in chosen else example.xs[i] for i in range(count)])
            except Exception:  # the op takes no stacks
                continue
            expected = _stack(loop, picks, lead)
            if value.shape != expected.shape:
                continue
            if _are_close(value, expected):
                taken.append(lead)
                _check_against_loop(attack, samples, each, chosen, picks, lead)
            else:
                others.append((lead, value, expected))
        for lead, value, expected in others:
            if taken or _formula_accepts_stack(attack, each, chosen, lead, expected):
                at = tuple(int(k) for k in np.argwhere(~np.isclose(value, expected, CLOSE, 0.0))[0])
                raise Wrong(f"the value {_axes_text(lead, chosen)} is not that of each alone", value[at], expected[at], index=at, order=0)


def _axes_text(lead: Shape, chosen: Sequence[int]) -> str:
    return f"for a stack {'x'.join(map(str, lead))} of the arguments {list(chosen)}"


def _stack(parts: Sequence[Array], picks: Array, lead: Shape) -> Array:
    return np.stack(parts)[picks].reshape(*lead, *np.shape(parts[0]))


def _are_close(a: Array, b: Array) -> bool:
    size = np.max(np.abs(as_double(b)), initial=0.0, where=np.isfinite(as_double(b)))
    return bool(np.isclose(as_double(a), as_double(b), CLOSE, CLOSE * min(size, 1.0) * 1e-3, equal_nan=True).all())


def _formula_accepts_stack(attack: Attack, each: Sequence[Arrays], chosen: Sequence[int], lead: Shape, expected: Array) -> bool:
    """Whether the claimed formula of matrices is that of each matrix for this stack."""
    if attack.claims.formula is None or attack.truth is None or len(lead) > 1 or lead[0] >= LONG_SIZES[0] or any(x.ndim < 2 for x in each[0]):
        return False
    picks = np.arange(lead[0]) % len(each)
    try:
        found = attack.truth.value([_stack([xs[i] for xs in each], picks, lead) if i in chosen else x for i, x in enumerate(each[0])])
        return found.shape == expected.shape and _are_close(np.array(found.tolist(), np.float64), expected)
    except Exception:  # the formula takes no stacks
        return False


def _check_against_loop(attack: Attack, samples: Sequence[Example], each: Sequence[Arrays], chosen: Sequence[int], picks: Array, lead: Shape) -> None:
    """Raise `Wrong` where a stack has another value, gradient, second derivative or tangent than a loop.

    An op whose derivative raises, or has another shape, is made for single arguments.
    """
    subject, count = attack.subject, len(each[0])

    def sides(arrays: Sequence[Array]) -> list[Sides]:
        parts = [arrays[k * (count + 1):(k + 1) * (count + 1)] for k in range(len(samples))]
        rows, gs = [[(part if i in chosen else parts[0])[i] for i in range(count)] for part in parts], [part[-1] for part in parts]
        stack = [_stack([xs[i] for xs in rows], picks, lead) if i in chosen else rows[0][i] for i in range(count)]
        g, where = _stack(gs, picks, lead), _axes_text(lead, chosen)
        expected = _stack([subject.value(xs) for xs in rows], picks, lead)
        out = [Sides(f"the value {where} is not that of each alone", subject.value(stack), expected, None, 0, identical=True)]
        for order in range(1, min(attack.order, 2) + 1):
            ts: Any = [[s.tangents[0][i] if i in chosen else samples[0].tangents[0][i] for i in range(count)] for s in samples]
            given = [None if t is None else _stack([row[i] for row in ts], picks, lead) if i in chosen else t for i, t in enumerate(ts[0])]
            try:
                found = subject.gradient(stack, g, *[given] * (order - 1))
            except Exception:  # made for single arguments
                return out
            pulled = [subject.gradient(xs, one, *[t] * (order - 1)) for xs, one, t in zip(rows, gs, ts)]
            for i, c in enumerate(found):
                wanted = [np.zeros(xs[i].shape) if p[i] is None else as_double(p[i]) for xs, p in zip(rows, pulled)]
                right, size = (_stack(w, picks, lead) for w in (wanted, [np.full(w.shape, np.max(np.abs(w), initial=0.0)) for w in wanted]))
                if i not in chosen:
                    right, size = (x.sum(tuple(range(len(lead)))) for x in (right, size))
                if c is not None and c.shape != right.shape:
                    return out
                out.append(Sides(f"the {ORDINALS[order]} {where} is not that of each alone", c, right, size, order, (i,)))
        return out

    agree(sides, [x for xs, s in zip(each, samples) for x in (*xs, s.cotangent)])
    if math.prod(lead) < LONG_SIZES[0]:
        stack = [_stack([xs[i] for xs in each], picks, lead) if i in chosen else each[0][i] for i in range(count)]
        try:
            whole = Example(tuple(stack), _stack([s.cotangent for s in samples], picks, lead), samples[0].tangents)
            subject.gradient(whole.xs, whole.cotangent)
        except Exception:
            return
        check_each_alone(attack, whole)


def _check_longer_axes(attack: Attack, example: Example) -> None:
    if attack.dtype != "float64" or smooth(attack):
        return
    shapes = [x.shape for x in example.xs]
    sides = list(dict.fromkeys(n for shape in shapes for n in shape if n > 1))
    used = set(sides) | {1}
    free = [n for n in range(2, 12) if n not in used]
    right = []
    for n in sides[:3]:
        near = [m for m in free if m > n][:2] or free[:2]
        taken = False
        with contextlib.suppress(Exception):  # the op is made for its own sizes
            taken = all(_attacked(attack, shapes, {n: m}) for m in near[:1 if attack.subject.compiles else 2])
        if taken:
            right.append(n)
            for long in LONG_SIZES[-1:] if attack.subject.compiles else SIZES:
                _attacked(attack, shapes, {n: long})
    if len(right) == len(sides) == 2:
        _attacked(attack, shapes, dict(zip(sides, reversed(sides))))


def _attacked(attack: Attack, shapes: Sequence[Shape], sizes: Mapping[int, int]) -> bool:
    """Raise `Wrong` where the value is not that of the formula, or derivatives are not the limits of differences; False where the op refuses."""
    changed = [tuple(sizes.get(n, n) for n in shape) for shape in shapes]
    if any(math.prod(shape) > MAX_ELEMENTS for shape in changed):
        return False
    plan, xs = plan_of(attack, "points"), []
    for i, shape in enumerate(changed):
        numbers = np.unique(plan.table(i)[:, PREFIX:])
        picked = numbers[(np.arange(math.prod(shape)) * 37 + 11 * i) % numbers.size]
        xs.append(cast(plan.typed(picked.reshape(shape), i), attack.dtype))
    try:
        example = complete_example(attack, Draft(tuple(xs), 5, 3))
        value = attack.subject.value(example.xs)
        if value.shape != example.cotangent.shape:
            return False
    except NotApplicable:
        raise
    except Exception:
        return False
    try:
        if attack.truth is not None and attack.claims.formula is not None and max(x.size for x in (*xs, value)) <= MAX_EXACT:
            compare(attack, "the value", value, attack.truth.value(example.xs), example.xs)
        if attack.order:
            along(attack, example, 1)
    except Wrong as wrong:
        wrong.what += f", for arguments of the shapes {', '.join(map(str, changed))}"
        raise
    return True
