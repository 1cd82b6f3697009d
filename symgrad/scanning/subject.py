"""The subject of a scan: a function of real numbers, its floats at many points at once, and its rules evaluated with many digits."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.algebra.ladder import random_shift
from symgrad.autograd.modes import enable_grad
from symgrad.carriers import precise
from symgrad.dtypes.ulp import ulp_of
from symgrad.engine.graph_breaks import departure, observing
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS, lift
from symgrad.factories.creation import tensor
from symgrad.frameworks.adapter import AdapterOptions
from symgrad.frameworks.differentiation_task import silence
from symgrad.frameworks.levels import Derivatives, adapter_of
from symgrad.frameworks.naming import framework_of, name_of, parameters_of
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.domains import FIXED, REAL, Domain
from symgrad.graph.node import Leaf
from symgrad.graph.op import REGISTRY, Op
from symgrad.graph.order import upstream
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run

Index = tuple[int, ...]


class Unsuitable(TypeError):
    """Raised for a result that is not a real number, or not computed from the arguments by differentiable operations."""


def derivative_indices(arguments: int, order: int) -> list[Index]:
    """The indices of the value and of all partial derivatives up to an order: tuples of argument numbers.

    >>> derivative_indices(2, 2)
    [(), (0,), (1,), (0, 0), (0, 1), (1, 1)]
    """
    return [index for k in range(order + 1) for index in itertools.combinations_with_replacement(range(arguments), k)]


class Recording(Run):
    """One call of the function, at one point or at all points of an array."""

    def partials(self, order: int, last: bool = False) -> dict[Index, Any]:
        """Every derivative up to an order as Tensors; with `last`, those of the highest order are recorded as well."""
        out: dict[Index, Any] = {(): self.result}

        def by_each(index: Index, create_graph: bool) -> dict[Index, Any]:
            return {(*index, i): g for i, g in enumerate(self.gradients(out[index], create_graph)) if i >= max(index, default=0)}

        for index in derivative_indices(len(self.leaves), order - 1):
            out |= by_each(index, last or len(index) < order - 1)
        lower = [] if last else [by_each(index, False) for index in derivative_indices(len(self.leaves),
                                                                                       order - 2)]  # computed as in a call up to a lower order
        return functools.reduce(operator.or_, lower, out)

    def exact(self, digits: int, order: int, shift: Callable[[Any], Any] | None = None) -> dict[Index, list[Any]]:
        """Every derivative up to an order, by the rules evaluated in many digits, at the points, or with `shift` at a tiny distance from them."""
        with precise.working_precision(digits):
            values = [precise.lift_value(leaf.value) for leaf in self.leaves]
            return {index: [0 if box.node is None and t == 0 else t for t in box.value.ravel().tolist()] for index, box, _ in
                    self.read(RecordingCarrier(precise, precise.lift_value), values if shift is None else map(shift, values), order, pointwise=True)}

    def spread(self, order: int) -> np.ndarray:
        """The powers of ten between the largest and the smallest number in the computation at each point; infinite beyond the floats."""
        roots = [t._node for t in self.partials(order).values() if t._node is not None]
        n = np.size(self.result.value)
        high, low = np.zeros(n), np.zeros(n)
        forward = set(upstream([self.root]))
        for node in upstream(roots):
            value = node.value
            if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind != "f" or value.size not in (1, n):
                continue
            flat = np.abs(np.ravel(value).astype(np.float64))
            with np.errstate(all="ignore"):
                size = np.log10(flat)
            vanished = node in forward and not isinstance(node, (Leaf, DerivativeNode)) and not node.selects
            size = np.where(np.isfinite(size), size, -324.0 if vanished else 0.0)
            size[~np.isfinite(flat)] = np.inf
            high, low = np.maximum(high, size), np.minimum(low, np.where(np.isfinite(size), size, 0.0))
        return high - low


class Subject:
    """A function of real numbers: a function of Tensors, one written with NumPy's or torch's names, or an op of the registry by name.

    Raises TypeError for other objects, and for a function without arguments.
    """

    framework = "symgrad"
    subnormals = True  # False if the framework flushes subnormal numbers to zero

    def __init__(self, given: Any, count: int | None = None, parameters: Sequence[Any] | None = None):
        self.special: list[tuple[float, ...]] = []
        self.vectorised: bool | None = None  # whether a call with arrays computes the calls with their elements
        self.constant: float | None = None  # the result in a branch that computes nothing from the arguments
        self.failure: tuple[Exception, Any] | None = None  # the last exception of the function, and the point
        op = REGISTRY.get(given) if isinstance(given, str) else given if isinstance(given, Op) else None
        if isinstance(given, str) and op is None:
            import difflib

            close = difflib.get_close_matches(given, REGISTRY, 1)
            raise TypeError(f"accuracy: there is no op {given!r}" + (f"; did you mean {close[0]!r}?" if close else "; give a function"))
        self.is_op = op is not None
        if op is not None:
            self._use_op(op, parameters)
            return
        if not callable(given):
            raise TypeError(f"accuracy needs a function or the name of an op, not {type(given).__name__}")
        self.function = given
        self.name = name_of(given)
        self.names = _argument_names(given, self.name, count)
        self.domains: list[Domain] = [REAL] * len(self.names)

    def _use_op(self, op: Op, parameters: Sequence[Any] | None) -> None:
        """Use an op with some parameters, those of its first example if it needs any; they begin with the arguments in the domain FIXED."""
        if not op.arity or not (op.kind == "elementwise" or op.elementwise or op.kind == "composite" and op.surface.public and op.arity == 1):
            raise TypeError(f"accuracy: the op {op.name} is not a function of single numbers (it is {op.kind}); wrap it in a function of numbers")
        domains = [op.domain[i] if i < len(op.domain) else REAL for i in range(op.arity)]
        needed = FIXED in domains or any(p.default is p.empty for p in op.parameters)
        given = tuple((op.docs.examples[0] if op.docs.examples and needed else ()) if parameters is None else parameters)
        self.function = _with_parameters(op, domains, given)
        self.name = op.name + (f"{given}" if given else "")
        self.names = [name for name, d in zip(op.argument_names, domains) if d is not FIXED]
        if len(self.names) == 1:
            self.names = ["x"]
        self.domains = [d for d in domains if d is not FIXED]
        self.special = [*op.docs.special, *(k for k in op.docs.kinks if len(k) == len(self.names) and all(isinstance(x, float) for x in k))]

    @property
    def count(self) -> int:
        """The number of arguments."""
        return len(self.names)

    def call(self, columns: Sequence[Any], named: bool = False) -> Recording:
        """One recorded call with arrays or numbers. Exceptions of the function propagate; Unsuitable is raised if nothing was recorded."""
        leaves = [tensor(np.array(c), dtype=np.asarray(c).dtype, requires_grad=True, symbol=name if named else None)
                  for name, c in zip(self.names, columns)]
        with observing() as escapes, enable_grad(), silence():
            result = self.function(*leaves)
        if not isinstance(result, Tensor) or not result.requires_grad:
            raise Unsuitable(f"accuracy: the result of {self.name} is not computed from its arguments with operations that have a derivative (it is "
                             f"of type {type(result).__name__}); compute it with symgrad's or NumPy's functions, or give formula= to compare its "
                             f"values with")
        if result.is_complex():
            raise Unsuitable(f"accuracy: the result of {self.name} is complex; scan its real and its imaginary part")
        return Recording(leaves, result, None, escapes)

    def departure(self, point: Sequence[Any], far: bool = False) -> str | None:
        """The difference between the recorded graph and the function around a point, and with `far` elsewhere; None if there is none.

        Exceptions of the function propagate.
        """
        return departure(self.call(point, named=True), lambda values: self.call(values, named=True), far)

    def call_at(self, point: Sequence[Any], named: bool = False) -> Recording:
        """The call at one point."""
        return self._as_scalar(self.call(point, named))

    def _as_scalar(self, found: Recording) -> Recording:
        if found.result.numel() != 1:
            raise Unsuitable(f"accuracy: {self.name} of numbers gives shape {list(found.result.shape)}; scan a function whose result is one number")
        if found.result.ndim:
            found.result = found.result.reshape(())
        return found

    def detect_vectorised(self, points: np.ndarray) -> None:
        """Determine whether arrays can be passed: the results must equal those of single points up to a few ULP."""
        try:
            together = self.call(list(points)).result
        except Exception:  # calls at single points report the exception
            self.vectorised = False
            return
        self.vectorised = together.shape == points.shape[1:]
        for k in range(0, points.shape[1], max(points.shape[1] // 8, 1)):
            if not self.vectorised:
                return
            try:
                single = float(self.call_at(list(points[:, k])).result.value)
            except Exception:
                self.vectorised = False
                return
            value = float(together.value[k])
            self.vectorised = single == value or single != single and value != value or ulp_of(points.dtype.name).error(value, single) <= 8

    def recordings(self, points: np.ndarray) -> Iterator[tuple[slice, Recording | None]]:
        """Calls at the points: one call with arrays, or a call for each point; None where the function raises."""
        if self.vectorised is None:
            self.detect_vectorised(points)
        if self.vectorised:
            yield slice(0, points.shape[1]), self.call(list(points))
            return
        for k in range(points.shape[1]):
            yield slice(k, k + 1), self._try_call(list(points[:, k]))

    def _try_call(self, point: Sequence[Any]) -> Recording | None:
        """The call at one point; None if it raises. A branch may return a constant, but not numbers computed outside the graph."""
        try:
            found = self.call(point)
        except Unsuitable as error:
            with silence():
                leaf = tensor(point[0], requires_grad=True)
                result = self.function(leaf, *map(tensor, point[1:]))
            try:
                value = float(getattr(result, "value", result))
            except (TypeError, ValueError):
                self.failure = error, point
                raise error from None
            if self.constant is not None and value != self.constant:
                self.failure = error, point
                raise
            self.constant = value
            with enable_grad():
                return Recording([leaf, *(tensor(x, requires_grad=True) for x in point[1:])], 0 * leaf + value, None)
        except Exception as error:
            self.failure = error, point
            return None
        return self._as_scalar(found)

    def floats(self, points: np.ndarray, order: int) -> dict[Index, np.ndarray]:
        """Every derivative up to an order as the library's floats; NaN where the function raises."""
        out = {index: np.full(points.shape[1], np.nan) for index in derivative_indices(self.count, order)}
        for where, recording in self.recordings(points):
            if recording is None:
                continue
            with silence(), enable_grad():
                for index, t in recording.partials(order).items():
                    out[index][where] = np.ravel(t.value)
        return out

    def exact(self, points: np.ndarray, digits: int, order: int, beside: Any = None) -> dict[Index, list[Any]]:
        """Every derivative up to an order, by the rules in many digits; with a generator `beside`, at a tiny random distance from the points."""
        shift = None if beside is None else random_shift(beside)
        out: dict[Index, list[Any]] = {index: [precise.context.nan] * points.shape[1] for index in derivative_indices(self.count, order)}
        for where, recording in self.recordings(points):
            if recording is not None:
                with silence():
                    for index, numbers in recording.exact(digits, order, shift).items():
                        out[index][where] = numbers
        return out

    def spread(self, points: np.ndarray, order: int) -> np.ndarray:
        """The powers of ten between the largest and the smallest number in the computation at each point."""
        out = np.zeros(points.shape[1])
        for where, recording in self.recordings(points):
            if recording is not None:
                with silence(), enable_grad():
                    out[where] = recording.spread(order)
        return out


def _with_parameters(op: Op, domains: Sequence[Domain], given: tuple[Any, ...]) -> Callable[..., Any]:
    """An op as a function of the arguments that are not in the domain FIXED."""
    call = core(op) if op.kind == "elementwise" else FUNCTIONS.get(op.name) or lift(op)
    places = [i for i, d in enumerate(domains) if d is FIXED]
    fixed, rest = given[:len(places)], given[len(places):]
    named = {p.name: x for p, x in zip(op.parameters, rest)} if op.kind == "composite" else {}

    def function(*xs: Any) -> Any:
        args = list(xs)
        for i, number in zip(places, fixed):
            args.insert(i, number)
        return call(*args, **named) if named else call(*args, *rest)

    return function


def _argument_names(function: Callable[..., Any], name: str, count: int | None) -> list[str]:
    """The names of the arguments without a default; x or x1, x2, ... if there is no signature or only *args."""
    parameters = parameters_of(function)
    placed = [p for p in parameters or () if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p.name for p in placed if p.default is p.empty]
    needed = [p.name for p in parameters or () if p.default is p.empty and p.kind is p.KEYWORD_ONLY]
    if needed:
        raise TypeError(f"accuracy: {name} requires the keyword {needed[0]}; wrap it in a function of numbers only")
    if required and count in (None, len(required)):
        return required
    if parameters is not None and not required and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        if not placed:
            raise TypeError(f"accuracy: {name} takes no arguments; give a function of one or more real numbers")
        return [placed[0].name]
    count = count or int(getattr(function, "nin", 1))
    return ["x"] if count == 1 else [f"x{i + 1}" for i in range(count)]


class ForeignSubject(Subject):
    """A function of another framework or of plain floats, or a tuple of a function, its gradient and its Hessian, called point by point.

    `order` is the highest order that it gives; derivatives by finite differences are not scanned.
    """

    def __init__(self, given: Any, order: int, count: int | None = None, framework: str | None = None):
        function, partials, hessian = (*given, None, None)[:3] if isinstance(given, tuple) else (given, None, None)
        super().__init__(function, count)
        self.vectorised = False
        adapter = adapter_of(_with_scalars(function), framework or framework_of(function) or "numpy", self.name,
                             AdapterOptions(joined=True, gradient=_with_scalars(partials), hessian=_with_scalars(hessian)))
        self.framework, self.subnormals, self.order = adapter.framework, adapter.subnormals, min(order, adapter.orders)
        self.derivatives = Derivatives(adapter, self.order, order, np.ones(self.count))

    def floats(self, points: np.ndarray, order: int) -> dict[Index, np.ndarray]:
        """Every derivative up to an order as the framework's floats; NaN where it raises."""
        out = {index: np.full(points.shape[1], np.nan) for index in derivative_indices(self.count, order)}
        for k in range(points.shape[1]):
            point = [np.array(x) for x in points[:, k]]
            levels = self.derivatives.at(point, order)
            if levels.error is not None:
                error = levels.error[1]
                self.failure = (error if isinstance(error, Exception) else RuntimeError(str(error))), point
            for index in out:
                if len(index) in levels.values:
                    out[index][k] = levels.values[len(index)][index]
        return out


def _with_scalars(function: Any) -> Any:
    """The function called with NumPy scalars in place of 0-d arrays."""
    return function and (lambda *xs: function(*(x[()] if isinstance(x, np.ndarray) else x for x in xs)))
