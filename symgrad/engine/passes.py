"""The pullback, without recursion and for any carrier `xp`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Container, Generator, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.guarding import INF, INFINITE, NAN, not_finite
from symgrad.engine.cotangents import (
    MARK,
    MARKED,
    Cotangents,
    Heap,
    Read,
    any_recorded,
    conjugated,
    fitted,
    guarded_vjp,
    mark,
    receivers,
    release_node,
    send,
    shape_of,
)
from symgrad.engine.generated_pullbacks import FLOAT32, FLOAT64, float64, ndarray, sum_of_tensors, write_rules
from symgrad.engine.hooks import SYMBOLIC_ZERO, UNDEFINED
from symgrad.engine.instrumented import pull_instrumented
from symgrad.engine.operands import is_complex
from symgrad.engine.saved import traced_args, unpacking, verify
from symgrad.engine.tasks import pull_parts
from symgrad.engine.tensor import Tensor
from symgrad.engine.unmoved import Passed
from symgrad.errors import FREED
from symgrad.graph.freed import freed
from symgrad.graph.modes import special
from symgrad.graph.node import (
    GRADIENT,
    HELD,
    HOOKED,
    IN_FORWARD,
    NAMED,
    PACKED,
    PARTED,
    RELEASED,
    SELECTED,
    SMALL,
    TANGENT,
    TRANSFORMED,
    Node,
    all_threads,
)
from symgrad.graph.order import upstream
from symgrad.system.errorstate import again, computed_outside, run_long

ONE = float64(1.0)  # the cotangent of most outputs
MINOR = SELECTED | TRANSFORMED  # the flags that make no difference to a node on one path
UNUSUAL = NAMED | TANGENT | IN_FORWARD | RELEASED | MARKED | PACKED  # nodes with these flags need more than the clean loop's fast path
vdot = np.vdot
_selects = operator.attrgetter("selects")


def pullback(xp: Any, seeds: Iterable[tuple[Node, Any]], read: Read | None = None, wanted: set[Node] | None = None,
             keep: frozenset[Node] = frozenset(), ends: Container[Node] = (), release: bool = False,
             hooks: Callable[[Node], Any] | None = None, instrumented: bool = False,
             deliver: Callable[[Node, list[Any]], None] | None = None, guarded: int = False,
             pending: Cotangents | None = None, passed: Passed | None = None) -> Cotangents:
    """Pull cotangents back from the seeds to the leaves; returns those of leaves, of `ends` and of `keep`, None for a derivative of zero.

    `read(node)` returns a node's value and arguments in the carrier, by default its numbers. Only nodes in `wanted` get cotangents, and `ends` are
    treated as leaves. `release` frees the saved values. If an op selects, such as `where`, 0 · ∞ is 0 at elements that do not reach
    the seeds, so that those that were not selected give no NaN. `hooks(node)` returns the hooks of a HOOKED node, with `instrumented` of any node.
    `deliver(leaf, [g])` is called with the cotangent of a hooked leaf as soon as it is complete, and leaves in the list what it made of it. `guarded`
    says that such an op was passed already, `pending` are cotangents of leaves that were found already, and `passed` what was passed.
    """
    held = Passed() if passed is None else passed
    if pending is None or passed is None:
        seeds = [*seeds]
        held.seeds, held.wanted, held.ends = seeds, wanted, ends
    if pending is None:
        pending = {}
        for node, g in seeds if xp is numeric else ():
            if node.flags & SELECTED and g is not ONE and not_finite(xp, g):
                guarded = INFINITE
    heap: Heap = [MARK] if instrumented or keep and any([_continues(node, wanted) for node in keep]) else []
    zeros: list[Node] = []  # nodes reached with derivative zero
    for node, g in seeds:
        if pending or not node.parents:
            send(pending, heap, node, g)
        else:  # the only seed, as a rule
            pending[node] = g
            heappush(heap, (-node.sequence_nr, node))
    parted = xp is numeric and read is None
    try:
        while True:
            selecting: list[int] = []
            computed_outside(_pull(xp, pending, heap, zeros, read, wanted, ends, release, hooks is not None, guarded, parted, held, selecting))
            (guarded,) = selecting
            if not heap or heap[0][1] is mark:
                break
            found = pull_parts(functools.partial(_pull_part, release, held), pending, heap, zeros, wanted, keep, guarded)
            parted, guarded = found is not None, max(guarded, found or 0)
        if heap:
            with unpacking():
                pull_instrumented(xp, pending, heap, read, wanted, keep, ends, release, guarded, hooks, deliver, held)
    finally:
        if held and passed is None:
            held.release()
    for node in upstream(zeros, differentiable=True) if zeros else ():
        if not node.parents or node in keep:
            pending.setdefault(node, None)
    return pending


def _pull(xp: Any, pending: Cotangents, heap: Heap, zeros: list[Node], read: Read | None, wanted: set[Node] | None,
          ends: Container[Node], release: bool, hooked: bool, guarded: int, parted: bool, held: Passed,
          selecting: list[int]) -> Generator[Callable[[], Any], Any, None]:
    """The clean loop: `pending` holds the cotangents of reached nodes, the heap those of them that have parents, newest first.

    It stops at a hooked node (if `hooked`), at packed tensors, at an undefined gradient, and at an output of a part of a batch (if `parted`),
    and leaves the rest in the heap. It yields the calls of rules that are a user's code, to be made by `computed_outside`,
    and adds to `selecting` whether it passed a selecting op: INFINITE if there was an infinite cotangent, too.
    """
    owned: set[Node] = set()  # nodes whose cotangent is a sum made here, which may be added to in place
    written, unusual, stop = all_threads.written, UNUSUAL | HOOKED * hooked | PARTED * parted, MARKED | PACKED | HOOKED * hooked | PARTED * parted
    guarded = guarded or wanted is not None and any(map(_selects, wanted))
    inherited = 0
    for seed in pending if wanted is None else ():
        inherited |= seed.flags
    guarded = guarded or bool(inherited & SELECTED)
    numbers, tensors = xp is numeric and read is None, read is traced_args and not guarded and not special
    fast = (numbers or tensors) and wanted is None and not written
    plain = GRADIENT | inherited & TRANSFORMED if fast else -1  # the flags of nodes that need none of the tests below
    parents: Sequence[Node | None]
    node = None
    while True:
        if node is None:  # else it is the newest pending node, a parent of the last one: it bypasses the heap
            if not heap:
                selecting.append(guarded)
                return
            node = heappop(heap)[1]
            g = pending.pop(node, None)
        flags, parents = node.flags, node.parents
        if flags != plain:
            if flags & unusual or wanted is not None and (ends or not wanted.issuperset(parents)):
                if flags & stop:
                    if flags & stop != PARTED:
                        heappush(heap, MARK)
                    if node is not mark:
                        send(pending, heap, node, g)
                    selecting.append(guarded)
                    return
                parents = receivers(node, wanted)
                if not any(parents) or node in ends or flags & RELEASED and not any_recorded(node, parents):
                    pending[node], node = g, None
                    continue
                if flags & RELEASED and (read is None or tensors):
                    raise RuntimeError(FREED)
            if written and node.reads_saved and node.sequence_nr < written and not flags & RELEASED:
                verify(node, receivers(node, None))
        if (numbers or tensors) and (type(g) is float64 or (dtype := (g._value if type(g) is Tensor else g).dtype) is FLOAT64 or dtype is FLOAT32
                                     or not is_complex(g)):
            y = node.value
            single, rule, saves = (node.by_numbers if numbers else node.by_tensors) or write_rules(type(node), numbers)
            try:
                found = rule(node, g) if single else rule(node, g, parents) if single is False else (
                    yield functools.partial(rule, node, g, parents))
            except TypeError:
                _expect_values(node)
                raise
            if guarded and saves is not False and (  # a rule without saved values has finite factors
                    seen := _not_finite(node, g, (found,) if single else found, guarded)):
                guarded = INFINITE
                if seen is NAN:
                    call = functools.partial(guarded_vjp, xp, node, g, y, node.args, parents, held.unreached)
                    single, found = False, (yield call) if node.outside else call()
        else:
            single, saves = False, node.saves
            y, args = (node.value, node.args) if read is None else read(node)
            if is_complex(g):
                y, args = conjugated(xp, node, y, args)
            guarded = guarded or node.selects  # the graphs of other carriers have no flag of it
            call = (functools.partial(guarded_vjp, xp, node, g, y, args, parents, held.unreached) if guarded else
                    functools.partial(node.vjp, xp, g, y, args, parents))
            found = (yield call) if node.outside else call()
        if release:
            if saves and not flags & NAMED:
                if guarded and saves is HELD:
                    held.append(node)
                else:  # as `release_node` does
                    node.flags, node.args, node.value = flags | RELEASED, None, freed
            elif guarded and saves is None:
                held.append(node)
            elif saves is not False or type(y) is not float64 and y.nbytes > SMALL:
                release_node(node)
        if single:
            (p,) = parents
            if found is None or p in pending or not p.parents:  # type: ignore[union-attr]
                found = (found,)
            elif heap and heap[0][0] < -p.sequence_nr:  # type: ignore[union-attr]
                pending[p], node = found, None  # type: ignore[index]
                heappush(heap, (-p.sequence_nr, p))  # type: ignore[union-attr, misc]
                continue
            else:
                node, g = p, found
                continue
        broadcasts, following = node.broadcasts, None
        for p, c in zip(parents, found):
            if p is None:
                continue
            if c is None:
                if p is not following:
                    _undefined(pending, heap, zeros, node, p, hooked)
                continue
            if broadcasts and type(c) is not float64 and (c.shape if type(c) is ndarray else shape_of(c, y)) != p.value.shape:
                c = fitted(xp, c, y, p.value)
                if guarded:
                    held.note_fit(node, p, y)
            if p is following:
                ahead = sum_of_tensors(ahead, c) if tensors else ahead + c  # noqa: F821  bound together with `following`
            elif p in pending:
                if p in owned and read is None:
                    pending[p] += c
                else:
                    pending[p] = sum_of_tensors(pending[p], c) if tensors else pending[p] + c
                    owned.add(p)
            elif following is None and p.parents:
                following, ahead = p, c
            else:
                pending[p] = c
                if p.parents:
                    heappush(heap, (-p.sequence_nr, p))
                elif p.flags & stop:
                    heappush(heap, MARK)
        node = following
        if following is not None:
            if heap and heap[0][0] < -following.sequence_nr:
                pending[following], node = ahead, None
                heappush(heap, (-following.sequence_nr, following))
            else:
                g = ahead


def _pull_part(release: bool, held: Passed, pending: Cotangents, heap: Heap, zeros: list[Node], wanted: set[Node] | None, ends: Container[Node],
               guarded: int) -> int:
    computed_outside(_pull(numeric, pending, heap, zeros, None, wanted, ends, release, False, guarded, False, held, selecting := list[int]()))
    return selecting[0]


def is_short(seeds: Sequence[tuple[Node, Any]]) -> bool:
    """Whether the parents of several seeds are leaves."""
    return not any([p is not None and p.parents for node, _ in seeds for p in node.parents]) and len(dict(seeds)) == len(seeds)


def along_paths(seeds: Sequence[tuple[Node, Any]], release: bool) -> Cotangents:
    """As `pullback` of numbers without hooks and a user's code, for one seed or for those that `is_short` allows."""
    try:
        return run_long(_along_paths, seeds, release)
    except RuntimeError as error:
        return again(error, _along_paths, seeds, release)


def _along_paths(seeds: Sequence[tuple[Node, Any]], release: bool) -> Cotangents:
    ends: Cotangents = {}
    for node, g in seeds if len(seeds) == 1 else sorted(seeds, key=_newest):
        if node.flags & SELECTED and any([p is not None and p.parents for p in node.parents]):  # otherwise the seed is all that is passed
            held = Passed()
            held.seeds = [(node, g)]
            try:
                along_one_path(node, g, release, ends, held)
            finally:
                held.release()
        else:
            along_one_path(node, g, release, ends, None)
    return ends


def _newest(seed: tuple[Node, Any]) -> int:
    return -seed[0].sequence_nr


def along_one_path(node: Node, g: Any, release: bool, ends: Cotangents, held: Passed | None) -> None:
    """Add to the cotangents of leaves those of one seed, in less time than `pullback` as long as there is one path.

    That is, every node passes its cotangent to leaves and to at most one other node, and needs none of the tests of the clean loop.
    """
    written, guarded = all_threads.written, node.flags & SELECTED and (INFINITE if g is not ONE and not_finite(numeric, g) else 1)
    while parents := node.parents:
        flags, cls = node.flags, type(node)
        if flags & ~MINOR != GRADIENT or cls.none_is_undefined or type(g) is not float64 and g.dtype is not FLOAT64 and is_complex(g):
            break
        single, rule, saves = cls.by_numbers or write_rules(cls, True)
        if saves is not False and node.sequence_nr < written:
            break
        inner = {p for p in parents if p is not None and p.parents} if not single else ()
        if len(inner) > 1:
            break
        try:
            cotangents = rule(node, g) if single else rule(node, g, parents)
        except TypeError:
            _expect_values(node)
            raise
        if single:
            (following,), ahead = parents, cotangents
            if ahead is None:
                break
            if guarded and saves is not False and _not_finite(node, g, (ahead,), guarded):
                guarded = INFINITE
                break
        else:
            if inner and any([c is None for p, c in zip(parents, cotangents) if p in inner]):
                break
            if guarded and saves is not False and _not_finite(node, g, cotangents, guarded):
                guarded = INFINITE
                break
            following = ahead = None
            for p, c in zip(parents, cotangents):
                if p is not None:
                    if c is not None and cls.broadcasts and c.shape != p.value.shape:
                        c = fitted(numeric, c, node.value, p.value)
                        if held is not None:
                            held.note_fit(node, p, node.value)
                    if p in inner:
                        following, ahead = p, c if ahead is None else ahead + c
                    else:
                        ends[p] = c if (other := ends.get(p)) is None else other if c is None else other + c
        if release:
            if saves:
                if held is not None and saves is HELD:
                    held.append(node)
                else:  # as `release_node` does
                    node.flags, node.args, node.value = flags | RELEASED, None, freed
            elif held is not None and saves is None:
                held.append(node)
            elif saves is None or type(y := node.value) is not float64 and y.nbytes > SMALL:
                release_node(node)
        if following is None:
            return
        node, g = following, ahead
    if parents:
        zeros = [p for p, c in ends.items() if c is None]
        for p in zeros:
            del ends[p]
        pullback(numeric, [(node, g)], release=release, guarded=guarded, pending=ends, passed=held)
        for p in zeros:
            ends.setdefault(p, None)
    else:
        ends[node] = g if (other := ends.get(node)) is None else other + g


def _expect_values(node: Node) -> None:
    """Raise RuntimeError if another thread released the values of a node while its rule was about to read them."""
    if node.flags & RELEASED:
        raise RuntimeError(FREED) from None


def _not_finite(node: Node, g: Any, cotangents: Sequence[Any], guarded: int) -> int:
    """NAN if a cotangent other than `g` itself has an element that is NaN, which is guarded, else INFINITE if one may be infinite, else 0.

    Before there was an infinite one, those of an elementwise op that selects are finite: its factors are.
    """
    if guarded != INFINITE and (node.finite and node.value == node.value or node.op.selects and node.op.kind == "elementwise"):
        return 0
    seen = 0
    for c in cotangents:
        if c is None or c is g or c.shape is None:
            continue
        if type(c) is float64 or type(c) is ndarray and ((dtype := c.dtype) is FLOAT64 or dtype is FLOAT32):
            if type(c) is ndarray:
                flat = c if c.ndim == 1 or c.flags.c_contiguous else c.ravel("K")  # without a copy of a transposed array
                c = vdot(flat, flat)
            if not c < INF or c == -INF:
                if c != c:  # true for NaN
                    return NAN
                seen = INFINITE
        elif found := not_finite(numeric, c):
            if found is NAN:
                return NAN
            seen = INFINITE
    return seen


def _continues(node: Node, wanted: Container[Node | None] | None) -> bool:
    """Whether a node in `keep` passes its cotangent on to parents."""
    return bool(node.parents) if wanted is None else any([p in wanted for p in node.parents])


def _undefined(pending: Cotangents, heap: Heap, zeros: list[Node], node: Node, p: Node, hooked: bool) -> None:
    """Handle a cotangent of None for parent `p`: a symbolic zero or an undefined gradient."""
    if node.none_is_undefined or hooked and (p.parents or p.flags & HOOKED):
        send(pending, heap, p, UNDEFINED if node.none_is_undefined else SYMBOLIC_ZERO)
        heappush(heap, MARK)
    else:
        zeros.append(p)
