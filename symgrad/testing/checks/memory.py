"""Checks of memory: layouts of the inputs, writes to them, memory shared with results, and further ways to call an op."""

from __future__ import annotations

import contextlib
import functools
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.autograd.modes import is_grad_enabled, set_grad_enabled
from symgrad.dtypes.dtype import get_default_dtype, set_default_dtype
from symgrad.frameworks.adapter import Adapter, Array, Arrays, NotApplicable, is_active
from symgrad.graph.domains import MatrixDomain
from symgrad.system.restoring import states_restored
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import PROBES, Sides, agree_at, as_double, check, shift_by_ulp
from symgrad.testing.examples import Example, only_tangent
from symgrad.testing.failure import Wrong

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


@contextlib.contextmanager
def check_global_state(attack: Attack) -> Iterator[None]:
    """Raise `Wrong` if a call has changed global state; the state is restored."""
    things = list(_global_states(attack))
    changed: list[str] = []
    with states_restored(*((thing.read, thing.put_back) for thing in things)):
        for thing in things:
            thing.before()
        before = [pickle.dumps(thing.read()) for thing in things]
        try:
            yield
        finally:
            changed = [thing.what for thing, old in zip(things, before) if pickle.dumps(thing.read()) != old]
    if changed:
        raise Wrong(f"{' and '.join(changed)} {'is' if len(changed) == 1 else 'are'} not what was there before the call")


SHARES_COTANGENTS = ("torch", "autograd")  # frameworks that pass one cotangent to several arguments


def in_layout(x: Array, layout: str) -> Array:
    """The numbers of an array in another memory layout; in the overlapping one all rows are the first.

    >>> in_layout(np.arange(3.0), "backwards").strides
    (-8,)
    """
    if layout == "strided":
        return np.repeat(x[..., None], 2, -1)[..., 0]
    if layout == "backwards":
        return np.flip(np.flip(x).copy())
    if layout == "by columns":
        return np.array(x, order="F")
    if layout == "read-only":
        locked = x.copy()
        locked.flags.writeable = False
        return locked
    if not x.ndim or not x.size:
        return x.copy()
    return np.lib.stride_tricks.as_strided(x[:1].copy(), x.shape, (0, *x[:1].copy().strides[1:]))


def is_view(attack: Attack) -> bool:
    """Whether the value may be a view of an argument."""
    return attack.claims.view or bool(getattr(attack.subject.op, "view", False))


def results(attack: Attack, example: Example) -> list[tuple[str, int, tuple[int, ...], Array]]:
    """Value, derivatives up to the second and tangent of an example: a description, the order, the arguments, and the array."""
    subject, xs = attack.subject, example.xs
    out: list[tuple[str, int, tuple[int, ...], Array]] = [("the value", 0, (), subject.value(xs))]
    for order in range(1, min(attack.order, 2) + 1):
        found = subject.gradient(xs, example.cotangent, *example.tangents[:order - 1])
        out += [("the gradient" if order == 1 else "the second derivative", order, (i,), c) for i, c in enumerate(found) if c is not None]
    if attack.order and subject.forward:
        with contextlib.suppress(NotApplicable):
            out.append(("the tangent", 1, (), subject.tangent(xs, example.tangents[0])))
    return out


def select_elements(attack: Attack, example: Example, chosen: Array, shape: tuple[int, ...]) -> Example | None:
    """The example with some of its elements, reshaped, for an elementwise op; None for another op, and where no element is left."""
    if not attack.elementwise or not chosen.any() or any(x.shape != chosen.shape for _, x in example.arrays()):
        return None
    return example.mapped(lambda x: x[chosen].reshape(shape))


def other_example(attack: Attack, example: Example) -> Example:
    """A different example of the same shapes: one of those drawn, or the same with every number changed a little."""
    for other in attack.examples("points"):
        if [x.shape for x in other.xs] == [x.shape for x in example.xs] and any(a.tobytes() != b.tobytes() for a, b in zip(other.xs, example.xs)):
            return other
    return example._replace(xs=tuple(shift_by_ulp(x, 2 * PROBES // 3) for x in example.xs))


def _has_memory(attack: Attack) -> str:
    return "" if attack.subject.memory else f"arrays of {attack.subject.framework} cannot be written to"


@check("layouts", most=6, when=lambda attack: "" if attack.subject.layouts else f"arrays of {attack.subject.framework} have one layout")
def check_layouts(attack: Attack, example: Example) -> None:
    """Results do not depend on the memory layout of arguments, cotangents and tangents, and nothing is written to them.

    The layouts are every second element, backwards, by columns, read-only, and overlapping (one row repeated with stride 0), as far as the
    framework supports them. An op whose value is a view may refuse a layout with a RuntimeError.

    The check does not apply where arrays of the framework have one layout.
    """
    subject, view = attack.subject, is_view(attack)
    size = example.cotangent.size // 2 * 2
    example = select_elements(attack, example, np.arange(example.cotangent.size).reshape(example.cotangent.shape) < size, (2, -1)) or example

    def sides(xs: Arrays, g: Array, *tangents: Sequence[Array | None]) -> list[Sides]:
        out = []
        contiguous = Example(tuple(xs), g, tuple(map(tuple, tangents))).copied()
        usual = results(attack, contiguous.copied())
        matrices = any(isinstance(d, MatrixDomain) for d in attack.domains)
        for layout in subject.layouts:
            if layout == "overlapping" and matrices:
                continue  # a matrix with equal rows is not in the domain
            inside = contiguous.mapped(functools.partial(in_layout, layout=layout))
            before = [x.tobytes() for _, x in inside.arrays()]
            plain = usual if layout != "overlapping" else results(attack, inside.copied())
            try:
                found = results(attack, inside)
            except RuntimeError:
                if not view:
                    raise
                continue
            for (name, x), old in zip(inside.arrays(), before):
                if x.tobytes() != old:
                    raise Wrong(f"{name} ({layout}) was changed", x, np.frombuffer(old, x.dtype).reshape(x.shape))
            for (what, order, wrt, a), (*_, b) in zip(found, plain):
                said = f"{what} for {layout} arrays is not that for contiguous ones"
                out.append(Sides(said, a, b, size_of(attack, b), order, wrt, identical=True))
        return out

    agree_at(example, sides, len(example.tangents))


@check("mutation", when=_has_memory, most=8)
def check_mutation(attack: Attack, example: Example) -> None:
    """Value and derivatives of every order leave arguments, cotangents, tangents and earlier results unchanged.

    They leave global state unchanged, too: default dtypes, grad mode, NumPy's handling of errors, and, unless the op is claimed to be random, the
    generators of NumPy and Python. All bytes are compared. The check does not apply where arrays of the framework cannot be written to.
    """
    own = example.copied()
    before = [(name, x, x.copy()) for name, x in own.arrays()]
    with check_global_state(attack):
        found = results(attack, own)
    for name, x, old in before:
        if x.tobytes() != old.tobytes():
            raise Wrong(f"{name} was changed", x, old)
    kept = [(what, order, wrt, x, x.copy()) for what, order, wrt, x in found]
    results(attack, other_example(attack, example.copied()))
    for what, order, wrt, x, old in kept:
        if x.tobytes() != old.tobytes():
            raise Wrong(f"{what} that was returned was changed by a later call", x, old, order=order, wrt=wrt)


@check("aliasing", when=_has_memory, most=16)
def check_aliasing(attack: Attack, example: Example) -> None:
    """The value shares no memory with an argument, unless it is claimed to be a view; gradients share none with any tensor of the user.

    Those are the arguments, the value, the cotangent, and the other gradients; torch and autograd pass one cotangent to several arguments
    themselves, so the last two are left out there. The positive, the negative and the zero elements of an elementwise op are also checked
    separately, since the op may return an argument that needs no change. One tensor passed as several arguments gives the results of equal ones.
    The check needs arrays that can be written to.
    """
    _check_shared_memory(attack, example.copied())
    check_one_for_several(attack, example.copied())
    for sign in (1, -1, 0) if attack.elementwise else ():  # an op may return an argument that needs no change
        if len({x.shape for x in example.xs}) > 1:
            break
        part = select_elements(attack, example, np.logical_and.reduce([np.sign(as_double(x).real) == sign for x in example.xs]), (-1,))
        if part is not None and part.cotangent.size < example.cotangent.size:
            _check_shared_memory(attack, part.copied())


def _check_shared_memory(attack: Attack, own: Example) -> None:
    """Raise `Wrong` where value or gradients share memory with a tensor of the user."""
    subject = attack.subject
    arguments = [(f"argument {i}", x) for i, x in enumerate(own.xs)]
    leaves = [subject.leaf(x, bool(attack.order) and is_active(x)) for x in own.xs]
    result = subject.call(leaves)
    value = subject.array(result)
    if not is_view(attack):
        for name, x in arguments:
            if np.shares_memory(value, x):
                raise Wrong(f"the value shares memory with {name}; claim view=True where it should", value, order=0)
    if not attack.order or value.dtype.kind not in "fcV":
        return
    held = [*arguments, ("the value", value)]
    seed = own.cotangent.astype(value.dtype)
    if subject.framework not in SHARES_COTANGENTS:
        held.append(("the cotangent", seed))
    for i, c in _gradients(subject, own, result, leaves, seed):
        for name, x in held:
            if np.shares_memory(c, x):
                raise Wrong(f"the gradient shares memory with {name}", c, order=1, wrt=(i,))
        if subject.framework not in SHARES_COTANGENTS:
            held.append((f"the gradient by argument {i}", c))


def _gradients(subject: Adapter, example: Example, result: object, leaves: Sequence[object], seed: Array) -> list[tuple[int, Array]]:
    """The gradients by number of the argument, from the given result where the framework records, else from a new call."""
    places = [i for i, x in enumerate(example.xs) if is_active(x)]
    try:
        found = subject.grad([result], [leaves[i] for i in places], [subject.leaf(seed, False)], False)
    except NotApplicable:
        pulled = subject.gradient(example.xs, seed)
        return [(i, c) for i, c in enumerate(pulled) if c is not None]
    return [(i, subject.array(c)) for i, c in zip(places, found) if c is not None]
