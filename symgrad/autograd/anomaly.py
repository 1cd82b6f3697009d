"""Anomaly mode: it reports the operation, and the line that called it, whose pullback made a gradient NaN.

While the mode is on in a thread, every node that it records stores the stack of its call, and every pullback checks each cotangent. The checks are
implemented as hooks on every node.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autograd.causes import CallRecord, Cause, finite, pulled, record_of
from symgrad.carriers.batched import raw
from symgrad.engine.hooks import SYMBOLIC_ZERO, UNDEFINED, Hooks, hooks_of
from symgrad.engine.tensor import Tensor
from symgrad.graph.modes import ImmediateScope, Recorder, in_mode, thread
from symgrad.graph.node import Node
from symgrad.reports.streams import Output
from symgrad.system.frames import PACKAGE, user_frame


class NonFiniteGradient(RuntimeError):
    """A gradient became NaN (or infinite, where that is asked for). `cause` describes the first cause, as a `symgrad.autograd.causes.Cause`."""

    def __init__(self, message: str, cause: Any):
        super().__init__(message)
        self.cause = cause


class Lines(Recorder):
    """An observer that stores on each node the stack of lines that called its operation."""

    def observe(self, node: Node) -> None:
        """Store the caller's stack on a node."""
        frame: Any = user_frame(1)
        stack = []
        while frame is not None:
            if not frame.f_code.co_filename.startswith(PACKAGE):
                stack.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        checks = thread.modes.checks
        inducer = None if checks is None or checks.node is None else (checks.node.name(), record_of(checks.node))
        node.record = CallRecord(tuple(stack) or ((Lines.observe.__code__, 1),), inducer)


LINES = Lines()


def recording_lines() -> in_mode:
    """Store the lines that call operations in this thread, without anomaly mode's checks.

    >>> import symgrad
    >>> with recording_lines():
    ...     y = symgrad.tensor(1.0, requires_grad=True).exp()
    >>> record_of(y.grad_fn) is not None
    True
    """
    observers = thread.modes.observers
    return in_mode(observers=observers if thread.modes.anomaly is not None or LINES in observers else (*observers, LINES))


class Anomaly(Lines):
    """The observer of anomaly mode, with the choice of values that raise."""

    def __init__(self, check_nan: bool, check_inf: bool):
        self.check_nan, self.check_inf = check_nan, check_inf

    def checks(self, seeds: Sequence[tuple[Node, Any]]) -> Checks:
        """The checks of a pullback that starts at these seeds."""
        return Checks(self, seeds)


class Checks:
    """The checks of one pullback, and the causes found so far."""

    def __init__(self, anomaly: Anomaly, seeds: Sequence[tuple[Node, Any]]):
        self.anomaly, self.seeds = anomaly, {node for node, _ in seeds}
        self.causes: dict[Node, Cause] = {}  # for each node the cause of its non-finite cotangent
        self.node: Node | None = None  # the node whose pullback runs

    def hooks_of(self, node: Node) -> Any:
        """The hooks of a node for the pullback: those of a leaf unchanged, those of other nodes inside a check."""
        hooks = hooks_of(node)
        return _Check(self, node, hooks) if node.parents else hooks

    def failed(self) -> None:
        """Warn with the forward stack of the operation whose pullback failed, and with those of the backwards that recorded it."""
        node = self.node
        if node is None:
            return
        record = record_of(node)
        if record is None:
            self._warn(f"the pullback of {node.name()} failed. Where it was recorded is not known: detect anomalies in the forward pass, too")
            return
        self._warn(f"the pullback of {node.name()} failed. It was recorded here:\n{record.traceback}")
        while record is not None and record.inducer is not None:
            name, record = record.inducer
            if record is None:
                self._warn(f"\n\nThat backward was recorded by {name}. Where this was recorded is not known: detect anomalies in the forward "
                           f"pass, too")
            else:
                self._warn(f"\n\nThat backward was recorded by {name}, which was recorded here:\n{record.traceback}")

    def _warn(self, message: str) -> None:
        frame = user_frame(1)
        place = frame.f_code.co_filename, frame.f_lineno
        try:
            warnings.warn_explicit(message, UserWarning, *place)
        except UserWarning:  # a filter makes warnings errors; the error that is being reported has precedence
            Output(sys.stderr).write(warnings.formatwarning(message, UserWarning, *place) + "\n")
        except ValueError:  # standard error is closed
            pass


class _Check:
    """Hooks of one node that check each cotangent and call the node's own hooks, if any."""

    __slots__ = ("checks", "node", "hooks")

    def __init__(self, checks: Checks, node: Node, hooks: Hooks | None):
        self.checks, self.node, self.hooks = checks, node, hooks

    def at_outputs(self, g: Any) -> Any:
        """The cotangent of the node's value, after the tensor hooks."""
        self.checks.node = self.node
        return self._checked(g, g if self.hooks is None else self.hooks.at_outputs(g))

    def incoming(self, g: Any) -> Any:
        """The cotangent of the node's value, after the prehooks."""
        return g if self.hooks is None else self._checked(g, self.hooks.incoming(g))

    def _checked(self, g: Any, found: Any) -> Any:
        """What the hooks made of a cotangent; the cause is noted if it is not finite."""
        checks, node, value = self.checks, self.node, _value(found)
        if node not in checks.causes and not finite(value):
            kind = "hook" if found is not g and finite(_value(g)) else "given" if node in checks.seeds else "sum"
            checks.causes[node] = _cause(kind, node, 0, value)
        return found

    def outgoing(self, cotangents: Sequence[Any], g: Any) -> Sequence[Any]:
        """The cotangents of the arguments, after the hooks."""
        checks, node = self.checks, self.node
        found = cotangents if self.hooks is None else self.hooks.outgoing(cotangents, g)
        given = _value(g)
        for i, (p, c) in enumerate(zip(node.parents, found)):
            value = _value(c)
            if p is None or finite(value):
                continue
            hooked = found is not cotangents and finite(_value(cotangents[i]))
            cause = (_cause("posthook", node, i, value) if hooked else pulled(node, i, value, given)) or checks.causes.get(node)
            if cause is not None:
                checks.causes.setdefault(p, cause)
            nan = np.isnan(value).any()
            if nan and checks.anomaly.check_nan or checks.anomaly.check_inf:
                words = "nan" if nan else "infinite"
                message = f"Function '{node.name()}' returned {words} values in its {i}th output."
                raise NonFiniteGradient("\n".join([message, *(() if cause is None else cause.explanation())]), cause)
        return found


def _cause(kind: str, node: Node, i: int, value: Any) -> Cause:
    index = tuple(int(k) for k in np.argwhere(~np.isfinite(value))[0])
    return Cause(kind, node, record_of(node), i, value[index], index)


def _value(c: Any) -> Any:
    """The numbers of a cotangent, for all members of a batch; 0 for a cotangent that is not a NumPy value."""
    if hasattr(c, "parts") or c is UNDEFINED or c is SYMBOLIC_ZERO:  # the parts of a bundle are checked separately
        return 0.0
    return raw(c._value if isinstance(c, Tensor) else c)


def _fields(mode: bool, check_nan: bool, check_inf: bool) -> dict[str, Any]:
    """The modes of a thread in which anomaly mode is on or off."""
    return {"anomaly": Anomaly(bool(check_nan), bool(check_inf)) if mode else None, "check_nan": bool(check_nan)}


class set_detect_anomaly(ImmediateScope, in_mode):
    """Switch anomaly mode on or off, in this thread: at once, and as a context manager until its end.

    While it is on, a backward that makes a NaN raises: with `check_nan` the error names the operation whose pullback returned it, and
    a warning shows the line of the forward that called the operation. The error also names the first value that was not finite, in the forward
    or in the backward pass, with the local formula, the values and the line. Infinite gradients raise only with `check_inf`, since they
    may be right (the derivative of a square root at 0), but they are named as the cause of a NaN.
    Nodes that were recorded while the mode was off are checked as well, but have no line to report. Threads that the library starts for a part of
    a computation have the mode of their caller; in PyTorch the mode is one for all threads.

    >>> import symgrad, warnings
    >>> x = symgrad.tensor(0.0, requires_grad=True)
    >>> with symgrad.autograd.set_detect_anomaly(True), warnings.catch_warnings(action="ignore"):
    ...     try:
    ...         (0 * x.sqrt()).backward()
    ...     except RuntimeError as error:
    ...         print(str(error).split(".")[0])
    Function 'SqrtBackward0' returned nan values in its 0th output
    """

    __slots__ = ()

    def __init__(self, mode: bool, check_nan: bool = True, *, check_inf: bool = False):
        super().__init__(**_fields(mode, check_nan, check_inf))


class detect_anomaly(in_mode):
    """Anomaly mode as a context manager; see `set_detect_anomaly`.

    >>> import symgrad, warnings
    >>> with warnings.catch_warnings(action="ignore"), symgrad.autograd.detect_anomaly():
    ...     symgrad.is_anomaly_enabled()
    True
    """

    __slots__ = ()

    def __init__(self, check_nan: bool = True, *, check_inf: bool = False):
        super().__init__(**_fields(True, check_nan, check_inf))
        with contextlib.suppress(ValueError):  # standard error is closed
            warnings.warn("anomalies are detected from here on, which makes every operation slower; switch it off when the fault is found",
                          UserWarning, stacklevel=2)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread."""
    return thread.modes.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether a NaN raises in anomaly mode."""
    return thread.modes.check_nan
