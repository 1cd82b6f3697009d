"""The effects of a function that is recorded: they are seen in what it captures and in its arguments, and put back before it runs as ever."""

from __future__ import annotations

import contextlib
import dis
import functools
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from typing import Any

from symgrad.carriers.duck import DuckArray, Unrecordable
from symgrad.carriers.recorded import Recorded
from symgrad.compiled.captures import Captures, Unwatched
from symgrad.compiled.code import reads
from symgrad.compiled.contents import MISSING, cells_of
from symgrad.compiled.kinds import is_library, kind_of, state_of
from symgrad.compiled.outside import looking
from symgrad.engine.storage.versions import version
from symgrad.engine.tensor import Tensor
from symgrad.factories.generators import default_generator
from symgrad.graph.modes import UNCHANGED
from symgrad.system.restoring import collection_paused, restored
from symgrad.trees import Spec as Form
from symgrad.trees import flatten

DRAWS = "Unrecordable: random numbers, which would be the same in every run"
WRITES = "a write into an argument or a captured tensor"
SEED = "the seed of random numbers"
LASTING = (DRAWS, WRITES)  # effects for which a function is not recorded even if it has had them once
MOST_IN_RESULT = 10_000  # objects that are searched for recorded values


class HasEffects(Unrecordable):
    """A function changes what it captures, or its arguments, or prints."""


class OwnError(Exception):
    """A function that is recorded raises an error of its own, as it does without a recording."""

    def __init__(self, error: Exception):
        super().__init__(error)
        frames: Any = error.__traceback__
        self.error = error.with_traceback(frames.tb_next.tb_next)  # without those of the recording


class MayHaveEffects(Exception):  # noqa: N818  no error
    """A function has signs of effects and has not run without any, or raised an error: it runs as ever, and the effects are observed."""

    def __init__(self, captures: Captures):
        super().__init__(captures)
        self.captures = captures


def reaches_recorded(x: Any) -> bool:
    """Whether a result may refer to recorded values."""
    seen, stack = set[int](), [x]
    while stack:
        x = stack.pop()
        if id(x) in seen or isinstance(x, Tensor) and type(x._value) is not Recorded:
            continue
        seen.add(id(x))
        kind = kind_of(x)
        if isinstance(x, (Tensor, DuckArray)) or kind is None or len(seen) > MOST_IN_RESULT:
            return True
        if isinstance(x, types.FunctionType):
            stack += [part.value for part in cells_of(x)] + [x.__defaults__, x.__kwdefaults__, x.__dict__]
        else:
            stack += [part.value for part in kind.parts(x)]
    return False


class _Held:
    """Stands for a stream of text, and holds what this thread writes to it back, but for warnings: the call that follows writes it.

    With `passes`, it only notes that this thread writes.
    """

    def __init__(self, stream: Any, passes: bool = False) -> None:
        self.stream, self.text, self.passes = stream, False, passes
        self.thread: int | None = threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() != self.thread or sys._getframe(1).f_globals.get("__name__") == "warnings":
            return self.stream.write(text)
        self.text = True
        return self.stream.write(text) if self.passes else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def _prints(passes: bool) -> Iterator[list[_Held]]:
    """What stands for standard output and standard error in a `with` block; none for one that is missing, to which nothing is printed."""
    held = [None if stream is None else _Held(stream, passes) for stream in (sys.stdout, sys.stderr)]
    there = [stream for stream in held if stream is not None]
    try:
        with contextlib.redirect_stdout(held[0]), contextlib.redirect_stderr(held[1]):
            yield there
    finally:
        for stream in there:
            stream.thread = None  # whoever keeps the stream writes through it from now on


@contextlib.contextmanager
def effects_undone(captures: Captures, tree: Any, given: Sequence[Any], present: Sequence[Tensor],
                   small: Sequence[tuple[dict, dict]]) -> Iterator[list[str]]:
    """Put back what a function changes while it is recorded, so that the call that follows finds everything as it was.

    `small` are attributes of arguments, with copies. The list has the effects after the `with` block.

    Raises HasEffects if something was changed, Unwatched if that cannot be put back, or if random numbers were drawn.
    """
    before, form = flatten(tree)
    gradients = [(t, getattr(t, "_grad", None)) for t in present]
    printed: list[_Held] = []
    bits, effects = default_generator._bits, list[str]()
    try:
        with _prints(False) as printed:
            yield effects
    finally:
        found = _effect(captures, tree, before, form, given, gradients)
        for now, saved in small:
            if len(now) != len(saved) or any(now.get(name, MISSING) is not x for name, x in saved.items()):
                found = "an argument"
                now.clear()
                now.update(saved)
        if default_generator._bits is not bits:
            found = SEED
        drawn = captures.drawn()
        if found is not None or drawn is not None:
            captures.undo()
            for t, gradient in gradients:
                if getattr(t, "_grad", None) is not gradient:
                    t._grad = gradient
        if found is not None:
            effects.append(f"the function changes {found}")
        elif any([stream.text for stream in printed]):
            effects.append("the function prints")
        if drawn is not None:
            raise Unwatched(f"random numbers are drawn from {drawn}{captures.place_of(drawn)}, and a program would repeat them in every run. Draw "
                            f"them outside and pass them as an argument, or draw them by symgrad.rand")
        if found is not None and (left := captures.changed()) is not None:
            raise Unwatched(f"{left} is changed{captures.place_of(left)} while the function is recorded, and cannot be put back. Return the new "
                            f"value in place of writing it")
    if effects:
        raise HasEffects(effects[0])


@contextlib.contextmanager
def effects_observed(captures: Captures, tree: Any) -> Iterator[list[str]]:
    """Observe the effects of a function that runs as ever; the list has them after the `with` block.

    Raises Unwatched, before they happen, for calls of clocks and the like.
    """
    effects: list[str] = []
    before, form = flatten(tree)
    tensors = [*captures.present(), *[x for x in before if isinstance(x, Tensor)]]
    gradients = [(t, getattr(t, "_grad", None)) for t in tensors]
    versions = [(t, version(t._value)) for t in tensors]
    of_gradients = [(g, version(g._value)) for _, g in gradients if g is not None]
    numbers: Any = state_of(default_generator)
    state, bits = numbers.read(), default_generator._bits
    seeing: Any = looking(Unwatched, None) if captures.looks else contextlib.nullcontext([])
    with _prints(True) as written, collection_paused(), seeing as told:  # callbacks of the garbage collection read clocks
        yield effects
    if default_generator._bits is not bits:
        effects.append(f"the function changes {SEED}")
    elif numbers.read() != state:
        effects.append(DRAWS)
    if (found := _effect(captures, tree, before, form, (), gradients)) is not None:
        effects.append(f"the function changes {found}")
    if any([version(t._value) != before for t, before in versions]):
        effects.append(WRITES)
    if any([version(g._value) != before for g, before in of_gradients]):
        effects.append("the function changes a gradient")
    if any([stream.text for stream in written]):
        effects.append("the function prints")
    effects += told


def is_own(error: Exception) -> bool:
    """Whether an error was raised by a statement of the user's code, and does not refer to recorded values."""
    trace: Any = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    raised = dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS" and not is_library(trace.tb_frame.f_globals.get("__name__") or "")
    return raised and not isinstance(error, Unrecordable) and not reaches_recorded([error, error.__cause__, error.__context__])


def _effect(captures: Captures, tree: Any, before: Sequence[Any], form: Form, given: Sequence[Any], gradients: Any) -> str | None:
    """The name of something that a recorded function has changed."""
    if (name := captures.changed()) is not None:
        return name
    if any([now is not t for now, (t, _) in zip(captures.present(), gradients)]):
        return "a captured tensor"
    if any([getattr(t, "_grad", None) is not gradient for t, gradient in gradients]):
        return "the gradient of a captured tensor"
    if any([isinstance(x, Tensor) and getattr(x, "_grad", None) is not None for x in given]):
        return "the gradient of an argument"
    after, form_after = flatten(tree)
    return "an argument" if form_after != form or any([x is not y for x, y in zip(before, after)]) else None


# Exceptions that a function catches: a library may raise them for recorded values alone, and the function would take another branch
Raised = list[tuple[str, str, int]]  # the type of an exception, the function that it reached, and the line


@functools.lru_cache(4096)
def _has_handler(code: types.CodeType, module: str) -> bool:
    return not is_library(module) and reads(code).handles


@contextlib.contextmanager
def watching_exceptions() -> Iterator[Raised]:
    """The exceptions of libraries that reach a user's function with a handler, in a `with` block; none under a debugger."""
    found: Raised = []

    def local(frame: types.FrameType, event: str, argument: Any) -> Any:
        if event == "exception":
            kind, _, trace = argument
            while trace.tb_next is not None:
                trace = trace.tb_next
            if is_library(trace.tb_frame.f_globals.get("__name__") or "") and kind is not StopIteration:
                found.append((kind.__name__, frame.f_code.co_qualname, frame.f_lineno))
        return local

    def called(frame: types.FrameType, event: str, argument: Any) -> Any:
        if not _has_handler(frame.f_code, frame.f_globals.get("__name__") or ""):
            return None
        frame.f_trace_lines = False
        return local

    with restored(functools.partial(sys.settrace, None), functools.partial(sys.settrace, called)) if sys.gettrace() is None else UNCHANGED:
        yield found
