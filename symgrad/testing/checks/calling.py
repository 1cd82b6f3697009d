"""Checks of calls: repeated calls, calls from several threads, pickling, and arguments for which the op must raise."""

from __future__ import annotations

import contextlib
import copy
import pickle
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from symgrad.engine.tasks import with_modes_of_caller
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.frameworks.adapter import Adapter, Array, NotApplicable, is_active
from symgrad.frameworks.naming import import_path
from symgrad.methods.extending import BUILT_IN
from symgrad.system.restoring import restored, states_restored
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import check, same_bits
from symgrad.testing.checks.memory import Results, other_example, results
from symgrad.testing.claims import in_a_thread
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong, counted

REPEATS, THREADS, ROUNDS = 12, 4, 4
SWITCH_INTERVAL = 1e-6  # the thread switch interval in seconds

def kept_results(attack: Attack, example: Example) -> Results:
    """Copies of the results at a copy of an example."""
    return [(what, order, wrt, x.copy()) for what, order, wrt, x in results(attack, example.copied())]


def check_same_bits(found: Results, before: Results, when: str) -> None:
    """Raise `Wrong` unless results equal the earlier ones to the bit."""
    if len(found) != len(before):
        raise Wrong(f"there are {len(found)} results {when} and {len(before)} before")
    for (what, order, wrt, a), (*_, b) in zip(found, before):
        same_bits(f"{what} is another {when}", a, b, order=order, wrt=wrt)


def _applies_to_deterministic(attack: Attack) -> str:
    return "it is random" if attack.claims.random else ""


@check("determinism", when=_applies_to_deterministic, most=8)
def check_determinism(attack: Attack, example: Example) -> None:
    """Repeated calls give the same value, derivatives and tangent to the bit, also after calls with other arguments.

    Neither the very first calls nor what surrounds a call makes a difference: no_grad and inference mode to the value; the default dtype,
    NumPy's handling of floating-point errors and filters of warnings to value and derivatives, unless these raise. Two pullbacks of one result
    give the same gradients, also if the op was called with other arguments, or with another shape, between the forward and the backward pass,
    and if the backward pass runs in another thread. The check does not apply to random ops.
    """
    subject, other = attack.subject, other_example(attack, example)
    first = kept_results(attack, example)
    check_same_bits(results(attack, example.copied()), first, "when it is called again")
    for _ in range(REPEATS):
        same_bits("the value is another when it is called again", subject.value(example.copied().xs), first[0][3], order=0)
    elsewhere = None
    with contextlib.suppress(Exception):  # other checks report it
        elsewhere = kept_results(attack, other)
    check_same_bits(results(attack, example.copied()), first, "after a call with other arguments")
    if elsewhere is not None:
        check_same_bits(results(attack, other.copied()), elsewhere, "when it is called again")
    if attack.order and attack.first is not None:
        again = attack.results_of_ones(attack.first[0])
        for k, (a, b) in enumerate(zip(again, attack.first[1])):
            same_bits("the result is another than at the very first call", a, b, order=int(k > 0))
    for what, entered, of_value in surroundings(attack):
        _check_surrounded(attack, example, first, what, entered, of_value)
    if attack.order and first[0][3].dtype.kind in "fcV":
        with contextlib.suppress(NotApplicable):
            _one_graph(subject, example.copied(), other.copied(), first[0][3])


Surroundings = Callable[[], AbstractContextManager[Any]]


@contextlib.contextmanager
def _warnings_as_errors() -> Iterator[None]:
    with np.errstate(all="warn"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextlib.contextmanager
def _default_dtype(library: Any, name: str) -> Iterator[None]:
    with states_restored((library.get_default_dtype, library.set_default_dtype)):
        library.set_default_dtype(getattr(library, name))
        yield


def surroundings(attack: Attack) -> Iterator[tuple[str, Surroundings, bool]]:
    """What a call may be surrounded by: a description, the context, and whether it is one of the value alone."""
    library = sys.modules.get(attack.subject.framework)
    if attack.subject.framework in ("symgrad", "torch"):
        yield "inside no_grad", library.no_grad, True  # type: ignore[union-attr]
        yield "in inference mode", library.inference_mode, True  # type: ignore[union-attr]
        for name in ("float32", "float64"):
            yield f"where the default dtype is {name}", partial(_default_dtype, library, name), False
    if attack.subject.memory:
        for how in ("warn", "raise"):
            yield f"where NumPy's handling of errors is {how!r}", partial(np.errstate, all=how), False
        yield "where warnings are errors", _warnings_as_errors, False


def _check_surrounded(attack: Attack, example: Example, first: Results, what: str, entered: Surroundings, of_value: bool) -> None:
    """Raise `Wrong` where the results in a context are others; an error that the context asks for is none of the op."""
    function = attack.subject.function

    def surrounded(*given: Any) -> Any:
        with entered():
            return function(*given)

    try:
        if of_value:  # the adapter of torch records otherwise
            same_bits(f"the value is another {what}", attack.subject.calling(surrounded).value(example.copied().xs), first[0][3], order=0)
        else:
            with entered():
                found = results(attack, example.copied())
            check_same_bits(found, first, what)
    except (FloatingPointError, Warning):
        pass


def _one_graph(subject: Adapter, example: Example, other: Example, known: Array) -> None:
    places = [i for i, x in enumerate(example.xs) if is_active(x)]
    leaves = [subject.leaf(x, is_active(x)) for x in example.xs]
    value = subject.call(leaves)
    same_bits("the value is another when it is called again", subject.array(value), known, order=0)
    seed = subject.leaf(example.cotangent, False)

    def pulled() -> list[Array | None]:
        found = subject.grad([value], [leaves[i] for i in places], [seed], True)
        return [None if c is None else subject.array(c).copy() for c in found]

    def call_with_twice_as_many() -> None:
        for double in (lambda x: np.concatenate([x, x], -1) if x.ndim else np.stack([x, x]), lambda x: np.stack([x, x])):
            with contextlib.suppress(Exception):  # the op takes the claimed shapes only
                subject.call([subject.leaf(double(x), is_active(x)) for x in example.xs])

    first = pulled()
    for when, between, pull in (
            ("one result is pulled back twice", None, pulled),
            ("the op was called with other arguments before the pullback",
             lambda: subject.call([subject.leaf(x, is_active(x)) for x in other.xs]), pulled),
            ("the op was called with another shape before the pullback", call_with_twice_as_many, pulled),
            ("the pullback runs in another thread than the call", lambda: None, lambda: in_a_thread(pulled))):
        if between is not None:
            value = subject.call(leaves)
            between()
        for i, a, b in zip(places, pull(), first):
            same_bits(f"the gradient is another when {when}", a, b, order=1, wrt=(i,))


@check("threads", when=_applies_to_deterministic, most=1)
def check_threads(attack: Attack, example: Example) -> None:
    """Called from four threads at once with different arguments, the op gives the results of single-threaded calls, to the bit.

    Value, derivatives and tangent are compared, with the shortest thread switch interval. The check does not apply to random ops.
    """
    drawn = attack.examples("points")
    examples = [example, other_example(attack, example), *drawn[-2:]]
    alone = [kept_results(attack, e) for e in examples]
    start = threading.Barrier(THREADS)

    def work(k: int) -> None:
        start.wait()
        with np.errstate(all="ignore"):
            for n in range(ROUNDS * len(examples)):
                at = (n + k) % len(examples)
                check_same_bits(results(attack, examples[at].copied()), alone[at], "while other threads call it")

    interval = partial(sys.setswitchinterval, sys.getswitchinterval())
    with restored(interval, partial(sys.setswitchinterval, SWITCH_INTERVAL)), ThreadPoolExecutor(THREADS) as pool:
        # The context of the caller decides what a function of a Hermitian matrix reads
        for done in [pool.submit(with_modes_of_caller(partial(work, k))) for k in range(THREADS)]:
            done.result()
    counted(len(examples))


def public_function(attack: Attack) -> Any:
    """The public function of an op."""
    op = attack.subject.op
    if op is None:
        return attack.subject.function
    found: Any = FUNCTIONS.get(op.name) if op.name in BUILT_IN else getattr(traced, op.name, None)
    if found is None or found.op is not op:
        raise NotApplicable("it has no public function")
    return found


@check("pickling", most=1)
def check_pickling(attack: Attack, example: Example) -> None:
    """The op's result can be pickled, and so can the op if it can be imported by module and name; unpickled they are the same.

    The check does not apply to lambdas and nested functions, which cannot be imported by name.
    """
    subject = attack.subject
    value = subject.call([subject.leaf(x, False) for x in example.copied().xs])
    try:
        again = pickle.loads(pickle.dumps(value))
    except Exception as error:
        raise Wrong(f"its result is not pickled: {type(error).__name__}: {error}", subject.array(value)) from error
    same_bits("its result comes back different from pickling", subject.array(again), subject.array(value))
    function = public_function(attack)
    try:
        revived = pickle.loads(pickle.dumps(function))
    except Exception as error:
        if import_path(function) is None or not subject.pickled:
            raise NotApplicable(f"it is not found by module and name: {error}") from error
        raise Wrong(f"it is not pickled: {type(error).__name__}: {error}") from error
    if revived is not function:
        second = copy.copy(attack)
        second.subject = subject.calling(revived)
        if not attack.claims.random:
            check_same_bits(results(second, example.copied()), results(attack, example.copied()), "after pickling")


@check("errors", most=1, when=lambda attack: "" if attack.claims.errors else "no errors are declared")
def check_errors(attack: Attack, example: Example) -> None:
    """Arguments declared as errors raise the declared exception, with a message that matches the pattern.

    Errors are declared as pairs `(arguments, exception)` or `(arguments, exception, pattern)`; arrays among the arguments become those of the
    framework. The check does not apply where none are declared.

    >>> import symgrad
    >>> check_errors(symgrad.mm, errors=[(([1.0], [[2.0]]), RuntimeError, "shapes")]).verdict
    'passed'
    """
    subject = attack.subject
    try:
        function = public_function(attack)
    except NotApplicable:
        function = subject.function
    counted(len(attack.claims.errors))
    for arguments, expected, *pattern in attack.claims.errors:
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        call = f"({', '.join(map(repr, given))})"
        try:
            found = function(*(subject.leaf(x, False) if isinstance(x, np.ndarray) else x for x in given))
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            if not isinstance(error, expected):
                raise Wrong(f"{call} raises {said} and should raise {_exception_name(expected)}") from error
            if pattern and not re.search(pattern[0], str(error)):
                raise Wrong(f"{call} raises {said}, in which {pattern[0]!r} is not found") from error
        else:
            raise Wrong(f"{call} is not refused and should raise {_exception_name(expected)}", found)


def _exception_name(expected: Any) -> str:
    return " or ".join(e.__name__ for e in (expected if isinstance(expected, Sequence) else (expected,)))
