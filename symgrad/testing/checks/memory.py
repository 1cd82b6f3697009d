"""Checks of memory: layouts of the inputs, writes to them, memory shared with results, and further ways to call an op."""

from __future__ import annotations

import contextlib
import functools
import itertools
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.frameworks.adapter import Array, Arrays, NotApplicable, is_active
from symgrad.graph.domains import MatrixDomain
from symgrad.system.restoring import states_restored
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import ORDINALS, PROBES, Sides, agree_at, as_double, check, moderate_mask, shift_by_ulp
from symgrad.testing.claimed import ORDINARY
from symgrad.testing.claims import STATES, GlobalState
from symgrad.testing.examples import Example, only_tangent
from symgrad.testing.failure import Wrong, counted

MANY_AXES = (67, 1, 2, 1, 60)  # five axes, two of size 1 and two long ones, with more elements than one block of a blocked loop
LONG_SHAPE = (130, 2)  # a long first axis
# Every length up to one that is longer than vectors of processors, and every two and three short axes: one of them may be a special case
FEW_ELEMENTS = [(n,) for n in range(1, 34)] + [shape for axes in (2, 3) for shape in itertools.product((1, 2, 3), repeat=axes)]


def size_of(attack: Attack, *arrays: Array) -> Array:
    """The sum of the magnitudes of arrays: of each element for an elementwise op, else the largest."""
    total = np.sum([np.abs(as_double(a)) for a in arrays], axis=0)
    return np.asarray(total if attack.elementwise else np.max(total, initial=0.0))


def is_first(attack: Attack, example: Example, kind: str) -> bool:
    """Whether an example has the arguments of the first one of a kind."""
    first = attack.examples(kind)[0]
    return all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(example.xs, first.xs))


def sides_of(attack: Attack, found: Results, usual: Results, said: str, shape: tuple[int, ...] | None = None) -> list[Sides]:
    """The results of two calls as sides; the second ones are repeated to a shape where one is given. `said` follows the name of a result."""
    ours, theirs = ({(what, order, wrt): x for what, order, wrt, x in some} for some in (found, usual))
    out = []
    for what, order, wrt in theirs | ours:
        a, b = (some.get((what, order, wrt)) for some in (ours, theirs))
        b = b if b is None or shape is None else np.resize(b, shape)
        out.append(Sides(f"{what} {said}", a, b, None if b is None else size_of(attack, b), order, wrt, True))
    return out


def check_each_alone(attack: Attack, example: Example, most: int = 1) -> None:
    """Raise `Wrong` where derivatives by one argument, up to the order `most`, change if only that argument requires grad."""
    subject = attack.subject
    places = [i for i, x in enumerate(example.xs) if is_active(x)]
    if attack.claims.random or not attack.order or not subject.selective or len(places) < 2 or subject.compiles and example.cotangent.ndim > 2:
        return  # every shape is compiled for

    def sides(xs: Arrays, g: Array, ts: Sequence[Array | None]) -> list[Sides]:
        out = []
        for i, order in itertools.product(places, range(1, min(attack.order, 1 if subject.compiles else most) + 1)):
            if order == 1 or ts[i] is not None:
                among = subject.gradient(xs, g, *[only_tangent(ts, i)] * (order - 1))[i]
                out.append(Sides(f"the {ORDINALS[order]} by this argument alone is not that among others",
                                 subject.gradient(xs, g, *[ts] * (order - 1), by=[i])[i], among,
                                 None if among is None else size_of(attack, among), order, (i,), True))
        return out

    agree_at(example, sides, 1)


def check_one_for_several(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where one tensor, passed as several arguments, gives another value or derivative than equal tensors."""
    subject, x = attack.subject, example.xs[0]
    same = [i for i, other in enumerate(example.xs) if other.shape == x.shape and other.dtype == x.dtype
            and all(v in attack.domain_of(i) for v in np.ravel(x.real).tolist())]
    if attack.claims.random or len(same) < 2 or 0 not in same:
        return

    def given_once(x: Any, *others: Any) -> Any:
        rest = iter(others)
        return subject.function(*[x if i in same else next(rest) for i in range(len(example.xs))], *rest)

    one = subject.calling(given_once)

    def sides(xs: Arrays, g: Array, *ts: Sequence[Array | None]) -> list[Sides]:
        x, equal = xs[0], [xs[0] if i in same else other for i, other in enumerate(xs)]
        others = [other for i, other in enumerate(xs) if i not in same]
        usual = subject.value([other.copy() for other in equal])
        out = [Sides("the value for one tensor given twice is not that for two equal ones", one.value([x, *others]), usual, size_of(attack, usual), 0,
                     (), True)]
        for order in range(1, attack.order + 1 if is_active(x) else 1):
            found: Any = one.gradient([x, *others], g, *([t[0], *[None] * len(others)] for t in ts[:order - 1]))[0]
            apart = subject.gradient(equal, g, *([t[0] if i in same else None for i in range(len(equal))] for t in ts[:order - 1]))
            parts = [np.zeros(x.shape), *(c for i, c in enumerate(apart) if i in same and c is not None)]
            total = np.sum(parts, axis=0)
            moderate = moderate_mask(xs, x.shape, order, attack.elementwise)  # elsewhere the parts may overflow, and cancel
            out.append(Sides(f"the {ORDINALS[order]} by one tensor given twice is not the sum of those by two equal ones",
                             np.where(moderate, 0.0 if found is None else found, total), total, size_of(attack, *parts), order, (0,), True))
        return out

    if subject.value([x if i in same else other for i, other in enumerate(example.xs)]).shape == example.cotangent.shape:
        agree_at(example, sides, len(example.tangents))


def check_in_other_shapes(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where an elementwise op gives other numbers, or another shape, if the same elements are reshaped."""
    subject = attack.subject
    if attack.claims.random or not attack.elementwise or not example.cotangent.size or any(x.shape != example.cotangent.shape for x in example.xs):
        return
    if subject.compiles and example.cotangent.ndim != 1:
        return
    shapes = [MANY_AXES] if subject.compiles else [(example.cotangent.size, 1), LONG_SHAPE, MANY_AXES]
    if example.cotangent.shape == (ORDINARY,) and not subject.compiles and is_first(attack, example, "points"):
        shapes += FEW_ELEMENTS
    usual = results(attack, example.mapped(np.ravel))

    def sides(shape: tuple[int, ...], xs: Arrays, g: Array, ts: Sequence[Array | None]) -> list[Sides]:
        row = Example(tuple(xs), g, (tuple(ts),)).mapped(np.ravel)
        most = 2 if shape in FEW_ELEMENTS else 1
        once = usual if g is example.cotangent else results(attack, row, most)
        found = results(attack, row.mapped(lambda x: np.resize(x, shape)), most)
        if (value := found[0][-1]).shape != shape:
            raise Wrong(f"the shape of the value is {value.shape} and should be {shape}, for the same elements in that shape", value, order=0)
        return sides_of(attack, found, [r for r in once if r[1] <= most], f"for the shape {shape} is not that of the same elements in a row", shape)

    for shape in shapes:
        agree_at(example, functools.partial(sides, shape), 1, usual=True)


def _global_states(attack: Attack) -> Iterator[GlobalState]:
    yield from STATES
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


def _read_only(x: Array) -> Array:
    locked = x.copy()
    locked.flags.writeable = False
    return locked


def _unaligned(x: Array) -> Array:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    memory[1:] = np.frombuffer(x.tobytes(), np.uint8)
    return memory[1:].view(x.dtype).reshape(x.shape)


def _overlapping(x: Array) -> Array:
    first = x[:1].copy() if x.ndim and x.size else x.copy()
    return np.lib.stride_tricks.as_strided(first, x.shape, (0, *first.strides[1:])) if x.ndim and x.size else first


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "strided": lambda x: np.repeat(x[..., None], 2, -1)[..., 0], "backwards": lambda x: np.flip(np.flip(x).copy()),
    "by columns": lambda x: np.array(x, order="F"), "read-only": _read_only, "unaligned": _unaligned,
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder("S")) if x.dtype.kind in "fc" else x.copy(),
    "overlapping": _overlapping}


def is_view(attack: Attack) -> bool:
    """Whether the value may be a view of an argument."""
    return attack.claims.view or bool(getattr(attack.subject.op, "view", False))


Results = list[tuple[str, int, tuple[int, ...], Array]]


def results(attack: Attack, example: Example, most: int = 2) -> Results:
    """Value, derivatives up to the order `most` and tangent of an example: a description, the order, the arguments, and the array."""
    subject, xs = attack.subject, example.xs
    out: Results = [("the value", 0, (), subject.value(xs))]
    for order in range(1, min(attack.order, most) + 1):
        found = subject.gradient(xs, example.cotangent, *example.tangents[:order - 1])
        out += [(f"the {ORDINALS[order]}", order, (i,), c) for i, c in enumerate(found) if c is not None]
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

    The layouts are every second element, backwards, by columns, read-only, memory that starts between two numbers, numbers with their bytes in
    the other order, and overlapping (one row repeated with stride 0), as far as the framework supports them. An op may refuse the other order of
    bytes, as tensors do, and one whose value is a view any layout with a RuntimeError.

    The check does not apply where arrays of the framework have one layout.
    """
    subject, view = attack.subject, is_view(attack)
    size = example.cotangent.size // 2 * 2
    example = select_elements(attack, example, np.arange(example.cotangent.size).reshape(example.cotangent.shape) < size, (2, -1)) or example

    def sides(xs: Arrays, g: Array, *tangents: Sequence[Array | None]) -> list[Sides]:
        out = []
        contiguous = Example(tuple(xs), g, tuple(map(tuple, tangents))).copied()
        usual = results(attack, contiguous.copied())
        for layout in subject.layouts:
            if layout == "overlapping" and any(isinstance(d, MatrixDomain) for d in attack.domains):
                continue  # a matrix with equal rows is not in the domain
            inside = contiguous.mapped(LAYOUTS[layout])
            before = [x.tobytes() for _, x in inside.arrays()]
            plain = usual if layout != "overlapping" else results(attack, inside.copied())
            try:
                found = results(attack, inside)
            except Exception as error:
                if layout != "byte-swapped" and not (view and isinstance(error, RuntimeError)):
                    raise
                continue
            for (name, x), old in zip(inside.arrays(), before):
                if x.tobytes() != old:
                    raise Wrong(f"{name} ({layout}) was changed", x, np.frombuffer(old, x.dtype).reshape(x.shape))
            out += sides_of(attack, found, plain, f"for {layout} arrays is not that for contiguous ones")
        return out

    agree_at(example, sides, len(example.tangents), usual=True)


@check("mutation", when=_has_memory, most=8)
def check_mutation(attack: Attack, example: Example) -> None:
    """Value and derivatives of every order leave arguments, cotangents, tangents and earlier results unchanged.

    They leave global state unchanged, too: default dtypes, grad mode, NumPy's handling of errors, and, unless the op is claimed to be random, the
    generators of NumPy and Python. All bytes are compared. The check does not apply where arrays of the framework cannot be written to.
    """
    own = example.copied()
    before = [(name, x, x.copy()) for name, x in own.arrays()]
    counted(len(before))
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
    separately, since the op may return an argument that needs no change. One tensor passed as several arguments gives the results of equal ones,
    to the third derivative. The check needs arrays that can be written to.
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
    subject = attack.subject
    held = [(f"argument {i}", x) for i, x in enumerate(own.xs)]
    leaves = [subject.leaf(x, bool(attack.order) and is_active(x)) for x in own.xs]
    result = subject.call(leaves)
    value = subject.array(result)
    counted()

    def apart(what: str, x: Array, **where: Any) -> None:
        for name, other in held:
            if np.shares_memory(x, other):
                raise Wrong(f"{what} shares memory with {name}{'; claim view=True where it should' * (x is value)}", x, **where)

    if not is_view(attack):
        apart("the value", value, order=0)
    if not attack.order or value.dtype.kind not in "fcV":
        return
    seed, places = own.cotangent.astype(value.dtype), [i for i, x in enumerate(own.xs) if is_active(x)]
    held.append(("the value", value))
    shares = subject.framework in SHARES_COTANGENTS
    if not shares:
        held.append(("the cotangent", seed))
    try:  # from this result where the framework records, else from a new call
        found = subject.grad([result], [leaves[i] for i in places], [subject.leaf(seed, False)], False)
        pulled = [None if c is None else subject.array(c) for c in found]
    except NotApplicable:
        every = subject.gradient(own.xs, seed)
        pulled = [every[i] for i in places]
    for i, c in zip(places, pulled):
        if c is not None:
            apart("the gradient", c, order=1, wrt=(i,))
            held += [] if shares else [(f"the gradient by argument {i}", c)]
