"""Helpers for further ways to call an op: one differentiated argument, one tensor as several arguments, many axes; and side effects of a call."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from symgrad.autograd.modes import is_grad_enabled, set_grad_enabled
from symgrad.dtypes.dtype import get_default_dtype, set_default_dtype
from symgrad.frameworks.adapter import Array, Arrays, is_active
from symgrad.system.restoring import restored
from symgrad.testing.attack import Attack
from symgrad.testing.checks.comparing import Sides, agree_at, as_double
from symgrad.testing.examples import Example, only_tangent
from symgrad.testing.failure import Wrong

__all__ = ["check_each_alone", "check_global_state", "check_in_other_shapes", "check_one_for_several", "size_of"]

MANY_AXES = (67, 1, 2, 1, 60)  # five axes, two of size 1 and two long ones, with more elements than one block of a blocked loop

LONG_SHAPE = (130, 2)  # a long first axis


def size_of(attack: Attack, *arrays: Array) -> Array:
    """The sum of the magnitudes of arrays: of each element for an elementwise op, else the largest."""
    total = np.sum([np.abs(as_double(a)) for a in arrays], axis=0)
    return np.asarray(total if attack.elementwise else np.max(total, initial=0.0))


def check_each_alone(attack: Attack, example: Example, most: int = 1) -> None:
    """Raise `Wrong` where derivatives by one argument, up to the order `most`, change if only that argument requires grad."""
    subject = attack.subject
    places = [i for i, x in enumerate(example.xs) if is_active(x)]
    if attack.claims.random or not attack.order or subject.alone is None or len(places) < 2 or subject.compiles and example.cotangent.ndim > 2:
        return  # every shape is compiled for

    def sides(xs: Arrays, g: Array, ts: Sequence[Array | None]) -> list[Sides]:
        out = []
        for i in places:
            for order in range(1, min(attack.order, 1 if subject.compiles else most) + 1):
                if order == 1 or ts[i] is not None:
                    among = subject.gradient(xs, g, *[only_tangent(ts, i)] * (order - 1))[i]
                    one, others = (np.zeros(xs[i].shape) if c is None else c for c in (subject.alone(xs, g, i, ts[i] if order > 1 else None), among))
                    out.append(Sides(f"the {'second ' * (order > 1)}{'gradient' if order == 1 else 'derivative'} by this argument alone is not that "
                                     f"among others", one, others, size_of(attack, others), order, (i,), True))
        return out

    agree_at(example, sides, 1)


def check_one_for_several(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where one tensor, passed as several arguments, gives another value or gradient than equal tensors."""
    subject, x = attack.subject, example.xs[0]
    same = [i for i, other in enumerate(example.xs) if other.shape == x.shape and other.dtype == x.dtype
            and all(v in attack.domain_of(i) for v in np.ravel(x.real).tolist())]
    if attack.claims.random or len(same) < 2 or 0 not in same:
        return

    def sides(xs: Arrays, g: Array) -> list[Sides]:
        x = xs[0]
        equal = [x.copy() if i in same else other for i, other in enumerate(xs)]
        active = bool(attack.order) and is_active(x)
        one = subject.leaf(x, active)
        value = subject.call([one if i in same else subject.leaf(other, False) for i, other in enumerate(equal)])
        plain = subject.value(equal)
        out = [Sides("the value for one tensor given twice is not that for two equal ones", subject.array(value), plain, size_of(attack, plain), 0,
                     identical=True)]
        if active and subject.records:
            (found,) = subject.grad([value], [one], [subject.leaf(g, False)], False)
            parts = [c for i, c in enumerate(subject.gradient(equal, g)) if i in same and c is not None]
            if parts and found is not None:
                out.append(Sides("the gradient by one tensor given twice is not the sum of those by two equal ones", subject.array(found),
                                 np.asarray(np.sum(parts, axis=0)), size_of(attack, *parts), 1, (0,), True))
        return out

    if subject.value([x if i in same else other for i, other in enumerate(example.xs)]).shape == example.cotangent.shape:
        agree_at(example, sides)


def check_in_other_shapes(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where an elementwise op gives other numbers, or another shape, if the same elements are reshaped."""
    subject = attack.subject
    if attack.claims.random or not attack.elementwise or not example.cotangent.size or any(x.shape != example.cotangent.shape for x in example.xs):
        return
    if subject.compiles and example.cotangent.ndim != 1:
        return
    shapes = [MANY_AXES] if subject.compiles else [(example.cotangent.size, 1), LONG_SHAPE, MANY_AXES]

    def sides(xs: Arrays, g: Array) -> list[Sides]:
        flat = [x.reshape(-1) for x in (*xs, g)]
        value = subject.value(flat[:-1])
        pulled = subject.gradient(flat[:-1], flat[-1]) if attack.order else []
        out = []
        for shape in shapes:
            *xs, g = (np.resize(x, shape) for x in flat)
            what = f"for the shape {shape} is not that of the same elements in a row"
            expected, found = np.resize(value, shape), subject.value(xs)
            if found.shape != shape:
                raise Wrong(f"the shape of the value is {found.shape} and should be {shape}, for the same elements in that shape", found, order=0)
            out.append(Sides(f"the value {what}", found, expected, np.abs(as_double(expected)), 0, (), True))
            for i, (c, row) in enumerate(zip(subject.gradient(xs, g) if attack.order else [], pulled)):
                if c is not None and row is not None:
                    expected = np.resize(row, shape)
                    out.append(Sides(f"the gradient {what}", c, expected, np.abs(as_double(expected)), 1, (i,), True))
        return out

    agree_at(example, sides)


class GlobalState(NamedTuple):
    """Global state: a description, how to read it, how to restore it, and a change made before the call."""

    what: str
    read: Callable[[], Any]
    put_back: Callable[[Any], Any]
    before: Callable[[], Any] = lambda: None


def _global_states(attack: Attack) -> Iterator[GlobalState]:
    yield GlobalState("NumPy's handling of errors", np.geterr, lambda state: np.seterr(**state))
    yield GlobalState("symgrad's default dtype", get_default_dtype, set_default_dtype)
    yield GlobalState("whether symgrad records", is_grad_enabled, set_grad_enabled)
    torch = sys.modules.get("torch")
    if torch is not None and attack.subject.framework == "torch":
        yield GlobalState("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype)
        yield GlobalState("whether torch records", torch.is_grad_enabled, torch.set_grad_enabled)
    if not attack.claims.random:
        yield GlobalState("NumPy's generator of random numbers", np.random.get_state, np.random.set_state, np.random.random)
        yield GlobalState("Python's generator of random numbers", random.getstate, random.setstate, random.random)  # the call may seed


@contextmanager
def check_global_state(attack: Attack) -> Iterator[None]:
    """Raise `Wrong` if a call has changed global state; the state is restored."""
    things = list(_global_states(attack))
    kept = [thing.read() for thing in things]
    for thing in things:
        thing.before()
    before = [pickle.dumps(thing.read()) for thing in things]
    changed: list[str] = []

    def restore() -> None:
        for thing, old in zip(things, kept):
            thing.put_back(old)

    with restored(restore):
        try:
            yield
        finally:
            changed = [thing.what for thing, old in zip(things, before) if pickle.dumps(thing.read()) != old]
    if changed:
        raise Wrong(f"{' and '.join(changed)} {'is' if len(changed) == 1 else 'are'} not what was there before the call")
