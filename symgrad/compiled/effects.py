"""The effects of a function that is recorded: they are seen in what it captures and in its arguments, and put back before it runs as ever."""

from __future__ import annotations

import contextlib
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from typing import Any

from symgrad.carriers.duck import DuckArray, Unrecordable
from symgrad.carriers.recorded import Recorded
from symgrad.compiled.captures import Captures, Unwatched
from symgrad.compiled.contents import MISSING, cells_of
from symgrad.compiled.kinds import kind_of
from symgrad.engine.tensor import Tensor
from symgrad.types.trees import Spec as Form
from symgrad.types.trees import flatten

__all__ = ["HasEffects", "effects_undone", "reaches_recorded"]

MOST_IN_RESULT = 10_000  # objects that are searched for recorded values


class HasEffects(Unrecordable):
    """A function changes what it captures, or its arguments, or prints."""


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
        stack += [part.value for part in (cells_of(x) if isinstance(x, types.FunctionType) else kind.parts(x))]
    return False


class _Held:
    """Stands for a stream of text, and holds what this thread writes to it back, but for warnings: the call that follows writes it."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.text = stream, False
        self.thread: int | None = threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() != self.thread or sys._getframe(1).f_globals.get("__name__") == "warnings":
            return self.stream.write(text)
        self.text = True
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def effects_undone(captures: Captures, tree: Any, given: Sequence[Any], present: Sequence[Tensor],
                   small: Sequence[tuple[dict, dict]]) -> Iterator[None]:
    """Put back what a function changes while it is recorded, so that the call that follows finds everything as it was.

    `small` are attributes of arguments, with copies.

    Raises HasEffects if something was changed, Unwatched if that cannot be put back, or if random numbers were drawn.
    """
    before, form = flatten(tree)
    gradients = [(t, getattr(t, "_grad", None)) for t in present]
    printed = _Held(sys.stdout), _Held(sys.stderr)
    try:
        with contextlib.redirect_stdout(printed[0]), contextlib.redirect_stderr(printed[1]):
            yield
    finally:
        for stream in printed:
            stream.thread = None  # whoever keeps the stream writes through it from now on
        found = _effect(captures, tree, before, form, given, gradients)
        for now, saved in small:
            if len(now) != len(saved) or any(now.get(name, MISSING) is not x for name, x in saved.items()):
                found = "an argument"
                now.clear()
                now.update(saved)
        drawn = captures.drawn()
        if found is not None or drawn is not None:
            captures.undo()
            for t, gradient in gradients:
                if getattr(t, "_grad", None) is not gradient:
                    t._grad = gradient
        if drawn is not None:
            raise Unwatched(f"random numbers are drawn from {drawn}{captures.place_of(drawn)}, and a program would repeat them in every run. Draw "
                            f"them outside and pass them as an argument, or draw them by symgrad.rand")
        if found is not None and (left := captures.changed()) is not None:
            raise Unwatched(f"{left} is changed{captures.place_of(left)} while the function is recorded, and cannot be put back. Return the new "
                            f"value in place of writing it")
    if found is not None:
        raise HasEffects(f"the function changes {found}")
    if any([stream.text for stream in printed]):
        raise HasEffects("the function prints")


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
