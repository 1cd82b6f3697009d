"""Checks of shapes and dtypes: the structure of derivatives, broadcasting, batches, 0-d arrays, and empty arrays."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.frameworks.adapter import Adapter, Array, Arrays, NotApplicable, is_active
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import Sides, agree, agree_at, as_double, check
from symgrad.testing.checks.memory import check_each_alone, check_in_other_shapes, other_example, results, sides_of
from symgrad.testing.claimed import cast
from symgrad.testing.claims import DTYPES
from symgrad.testing.examples import Example, only_tangent
from symgrad.testing.failure import Wrong, counted

LARGE_BATCH = 67  # samples of a large batch
MAX_SUBSETS = 3  # up to so many arguments every subset is batched, of more each single one and all


def names_a_dtype(parameter: Any) -> bool:
    """Whether a further argument of an op is a dtype; then the result need not have the dtype of the input."""
    kind = type(parameter)
    return (kind.__name__.lower().endswith("dtype") or isinstance(parameter, type) and issubclass(parameter, np.generic)
            or kind is str and parameter in DTYPES)


def check_shapes(attack: Attack, example: Example, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise `Wrong` unless the value and tangents have this shape and dtype, and derivatives those of their arguments."""
    for what, order, wrt, found in results(attack, example):
        counted()
        like = [(x.shape, x.dtype) for x in example.xs]
        for name, got, expected in zip(("shape", "dtype"), (found.shape, found.dtype), like[wrt[0]] if wrt else (shape, dtype)):
            if got != expected:
                raise Wrong(f"the {name} of {what} is {got} and should be {expected}", found, order=order, wrt=wrt)


@check("structure", most=8)
def check_structure(attack: Attack, example: Example) -> None:
    """Each argument gets one cotangent, None or of its shape and dtype; a tangent has the shape and dtype of the value.

    The gradient by one argument is the same if only that argument requires grad. Elements of an elementwise op are the same in a row,
    in a column, and in an array of thousands in five axes.

    This holds for derivatives of both orders and for every floating-point dtype of the op: float32 stays float32. The value of an elementwise op
    has the broadcast shape. The dtype of the value is not checked if it is not that of the input in float64 either, or if a
    further argument is a dtype. An exception in float16 or bfloat16 counts only if that dtype is claimed.

    The check applies to every op.
    """
    subject, xs = attack.subject, example.xs
    value = subject.value(xs)
    shape = np.broadcast_shapes(*(x.shape for x in xs)) if attack.elementwise else value.shape
    if example.cotangent.shape != value.shape:
        raise Wrong(f"the shape of the value is {value.shape} and should be {example.cotangent.shape}", value, order=0)
    op = subject.op
    if op is not None and op.vjp is not None and value.dtype.kind in "fcV":  # the engine does not count what a rule returns
        pulled = op.vjp(numeric, np.ones_like(value), value, (*xs, *attack.claims.parameters), (True,) * len(xs))
        if len(pulled) != len(xs):
            raise Wrong(f"the pullback gives {len(pulled)} cotangents for {len(xs)} arguments", order=1)
    if not any(is_active(x) for x in xs):
        return
    widest = max((x.dtype for x in xs if is_active(x)), key=lambda d: d.itemsize)
    stays = value.dtype == widest and not any(map(names_a_dtype, attack.claims.parameters))
    for dtype in dict.fromkeys(("float64", "float32", *(attack.claims.dtypes or subject.dtypes))):
        if dtype != attack.dtype and (dtype == "float64" or attack.claims.dtypes is not None and dtype not in attack.claims.dtypes):
            continue
        if dtype not in ("float64", "float32") and (any(x.dtype.kind == "c" for x in xs) or attack.subject.compiles and len(shape) != 1):
            continue  # every shape is compiled for, so 16-bit types are checked in vectors only
        small = example.mapped(functools.partial(cast, dtype=dtype))
        try:
            found = subject.value(small.xs)
            expected = next(x.dtype for x in small.xs if is_active(x)) if stays else found.dtype
            check_shapes(attack, small._replace(cotangent=small.cotangent.astype(found.dtype)), shape, expected)
        except (Wrong, NotApplicable):
            raise
        except Exception:
            if dtype in (attack.claims.dtypes or ("float64", "float32")):
                raise
    check_each_alone(attack, example)
    check_in_other_shapes(attack, example)


@check("broadcasting", draws="broadcast", most=18,
       when=lambda attack: "it does not act on elements" if not attack.elementwise else (
           "" if len(attack.names) > 1 else "one argument has nothing to be broadcast with"))
def check_broadcasting(attack: Attack, example: Example) -> None:
    """Arguments of different shapes give the value of the expanded arguments, and its gradient summed over the broadcast axes.

    The same holds for the second derivative and the tangent, and for derivatives by one argument if no other requires grad. Shapes
    are () and others with sides of 1, of 0, and without leading axes.
    Arguments of two and of three elements must be refused. An argument that the value does not depend on need not count for the shape.

    The check applies to elementwise ops of several arguments.
    """
    subject, xs = attack.subject, example.xs
    shape = np.broadcast_shapes(*(x.shape for x in xs))
    value = subject.value(xs)
    if value.shape != shape and value.shape in _shapes_without_some(attack, xs, value):
        return
    kept = [i for i, t in enumerate(example.tangents[0]) if t is not None]

    def sides(at: Arrays, g: Array, given: Sequence[Array | None]) -> list[Sides]:
        whole = [np.broadcast_to(x, shape).copy() for x in at]
        out = [Sides("the value is not that of the expanded arguments", subject.value(at), subject.value(whole), None, 0, identical=True)]
        stretched = [None if t is None else np.broadcast_to(t, shape).copy() for t in given]
        pairs: list[tuple[list, list]] = [([], [])] * (attack.order > 0)
        pairs += [([only_tangent(given, k)], [only_tangent(stretched, k)]) for k in kept] * (attack.order > 1)
        for tangents, expanded in pairs:  # second order with the tangent of one argument at a time, so that terms cannot cancel
            for i, (a, b) in enumerate(zip(subject.gradient(at, g, *tangents), subject.gradient(whole, g, *expanded))):
                b = np.zeros(shape) if b is None else as_double(b)
                out.append(Sides("the derivative is not that of the expanded arguments, summed", a, numeric.sum_to_size(b, at[i].shape),
                                 numeric.sum_to_size(np.abs(b), at[i].shape), 1 + len(tangents), (i,)))
        if attack.order and subject.forward and kept:
            with contextlib.suppress(NotApplicable):
                out.append(Sides("the tangent is not that of the expanded arguments", subject.tangent(at, given), subject.tangent(whole, stretched),
                                 None, 1))
        return out

    agree_at(example, sides, 1)
    check_each_alone(attack, example, 2)
    if len(xs) == 2 and all(x.size for x in xs):
        refused = [np.resize(xs[0], 2), np.resize(xs[1], 3)]
        try:
            found = subject.value(refused)
        except NotApplicable:
            raise
        except Exception:
            return
        if found.shape not in _shapes_without_some(attack, refused, found):
            raise Wrong(f"arguments of two and of three elements are not refused; the value has the shape {found.shape}", found, order=0)


def _shapes_without_some(attack: Attack, xs: Arrays, value: Array) -> list[tuple[int, ...]]:
    if not attack.order:
        return []
    try:
        found = attack.subject.gradient(xs, np.ones_like(value))
    except Exception:  # the pullback may raise where the value does not
        return []
    used = [x.shape for x, c in zip(xs, found) if c is not None and (np.any(c) or not c.size)]
    return [np.broadcast_shapes(*used)] if len(used) < len(xs) else []


def _applies_with_vmap(attack: Attack) -> str:
    if attack.claims.batched is False:
        return "it is not claimed to work on batches"
    if attack.claims.random:
        return "it is random"
    return "" if attack.subject.batches else f"{attack.subject.framework} maps nothing over batches"


@check("batching", when=_applies_with_vmap, most=8)
def check_batching(attack: Attack, example: Example) -> None:
    """The framework's vmap of the op gives the value and pullback of a loop, for every choice of batched arguments.

    A batch consists of the arguments, those of another example, and the arguments again; a large one of these many times. Every subset of up to
    three arguments is batched; of more arguments each single one and all: along the first axis, the second, the last, and along different axes; as
    a batch of one; and all arguments in a vmap inside another. The pullback of an argument that is not batched is summed over the batch.

    The check does not apply where the framework has no vmap or the op no rule for it (unless `batched=True` is claimed), nor to random ops.
    """
    subject, count = attack.subject, len(example.xs)
    other = other_example(attack, example)
    if not _accepts_arguments(subject, other, example):
        other = example
    subsets = [s for k in range(1, count + 1) for s in itertools.combinations(range(count), k) if count <= MAX_SUBSETS or k in (1, count)]

    def sides(arrays: Sequence[Array]) -> list[Sides]:
        xs, g, others, h = arrays[:count], arrays[count], arrays[count + 1:-1], arrays[-1]
        cotangents = [g, h, g]
        out = []
        for chosen in subsets:
            second = [others[i] if i in chosen else x for i, x in enumerate(xs)]
            samples = [xs, second, xs] if _accepts_arguments(subject, example._replace(xs=tuple(second)), example) else [xs] * 3
            loop = [subject.value(s) for s in samples]
            active = bool(attack.order) and loop[0].dtype.kind in "fcV"
            looped = [subject.gradient(s, g) for s, g in zip(samples, cotangents)] if active else []
            for picks, axes, levels in _batches(attack, xs, chosen):
                def stacked(parts: Any, axis: int, picks: Any = picks, levels: int = levels) -> Array:
                    rows = [np.stack([parts[k] for k in row], axis) for row in np.reshape(picks, (-1, len(picks) // levels))]
                    return rows[0] if levels == 1 else np.stack(rows, axis)

                batch = [x if axis is None else stacked([s[i] for s in samples], axis) for i, (x, axis) in enumerate(zip(xs, axes))]
                what = f"with the arguments {list(chosen)} batched"
                if set(axes) - {0, None} or len(picks) != len(samples):
                    what += f" along the axes {', '.join(str(a) for a in axes if a is not None)}, {len(picks)} at once,"
                what += " in a vmap inside another," * (levels > 1)
                value = subject.mapped(axes, levels).value_as_differentiated(batch)
                out.append(Sides(f"the value {what} is not that of a loop", value, stacked(loop, 0), None, 0, identical=True))
                if not active:
                    continue
                try:
                    found = subject.mapped(axes, levels).gradient(batch, stacked(cotangents, 0))
                except NotApplicable:
                    continue
                for i, (c, axis) in enumerate(zip(found, axes)):
                    parts = [np.zeros(xs[i].shape) if pulled[i] is None else as_double(pulled[i]) for pulled in looped]
                    if c is None and not any(np.any(p) for p in parts):
                        continue
                    right, size = (sum(p[k] for k in picks) if axis is None else stacked(p, axis) for p in (parts, [np.abs(p) for p in parts]))
                    out.append(Sides(f"the pullback {what} is not that of a loop", c, np.asarray(right), np.asarray(size), 1, (i,)))
        return out

    agree(sides, [*example.xs, example.cotangent, *other.xs, other.cotangent])


def _batches(attack: Attack, xs: Arrays, chosen: Sequence[int]) -> list[tuple[Sequence[int], list[int | None], int]]:
    """Batches: the samples they consist of, the axis of each argument, and the number of nested vmaps.

    The axes are the first, the last with many samples, the second, and different ones; a batch of one sample is among them.
    """
    def axes(axis_of: Callable[[int], int]) -> list[int | None]:
        return [axis_of(i) if i in chosen else None for i in range(len(xs))]

    few = attack.subject.compiles
    out: list[tuple[Sequence[int], list[int | None], int]] = [((0, 1, 2), axes(lambda i: 0), 1), ((1,), axes(lambda i: 0), 1)]
    if not few:
        out.append((tuple(k % 3 for k in range(LARGE_BATCH)), axes(lambda i: -1), 1))
    if any(x.ndim for x in xs):
        picks = (1, 0) * (LARGE_BATCH // 2 if few else 1)
        out.append((picks, axes(lambda i: (chosen.index(i) + 1) % (xs[i].ndim + 1)), 1))
        if any(x.ndim > 1 for x in xs) and not few:
            out.append(((0, 1), axes(lambda i: min(1, xs[i].ndim)), 1))
    if len(chosen) == len(xs):
        out += [((0, 1, 2, 1, 2, 0), [axis] * len(xs), 2) for axis in ((0,) if few else (0, -1))]
    return out


def _accepts_arguments(subject: Adapter, other: Example, example: Example) -> bool:
    try:
        return [x.shape for x in other.xs] == [x.shape for x in example.xs] and subject.value(other.xs).shape == example.cotangent.shape
    except Exception:  # for instance a matrix that does not fit the other arguments
        return False


def _applies_to_elementwise(attack: Attack) -> str:
    return "" if attack.elementwise else "it does not act on elements"


@check("scalars", draws="scalars", when=_applies_to_elementwise, most=12)
def check_scalars(attack: Attack, example: Example) -> None:
    """Arrays of shape () give the numbers of arrays of shape (1,), with shape () and the same dtype: value, both derivatives, tangent.

    The check applies to elementwise ops.
    """
    check_shapes(attack, example, (), attack.subject.value([x.reshape(1) for x in example.xs]).dtype)

    def sides(at: Arrays, cotangent: Array, ts: Sequence[Array | None]) -> list[Sides]:
        whole = Example(tuple(at), cotangent, (tuple(ts),))
        found, row = (results(attack, whole.mapped(lambda x, shape=shape: x.reshape(shape))) for shape in ((), (1,)))  # type: ignore[misc]
        return sides_of(attack, found, row, "for shape () is not that for shape (1,)", ())

    agree_at(example, sides, 1)


@check("empty", draws="empty", when=_applies_to_elementwise)
def check_empty(attack: Attack, example: Example) -> None:
    """For empty arrays the value has the broadcast shape and the usual dtype, and derivatives have the shapes of their arguments.

    The gradient of an argument with one element is 0. The check applies to elementwise ops.
    """
    usual = attack.subject.value(attack.examples("scalars")[0].xs).dtype
    check_shapes(attack, example, np.broadcast_shapes(*(x.shape for x in example.xs)), usual)
    for _, order, wrt, c in results(attack, example):
        if wrt and np.any(as_double(c) != 0):
            raise Wrong("the derivative by an argument that was stretched to no elements is not 0", c, np.zeros_like(c), order=order, wrt=wrt)
