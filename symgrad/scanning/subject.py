"""The subject of a scan: a function of real numbers, and its floats at many points at once."""

from __future__ import annotations

import difflib
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.modes import enable_grad
from symgrad.dtypes.ulp import ulp_of
from symgrad.engine.graph_breaks import graph_mismatch, observing
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS, lift
from symgrad.factories.creation import tensor
from symgrad.frameworks.adapter import AdapterOptions
from symgrad.frameworks.differentiation_task import silence
from symgrad.frameworks.levels import Derivatives, adapter_of
from symgrad.frameworks.naming import framework_of, is_foreign, name_of, parameters_of
from symgrad.graph.domains import FIXED, REAL, Domain
from symgrad.graph.op import REGISTRY, Op
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
        for index in derivative_indices(len(self.leaves), order - 1):
            found = self.gradients(out[index], last or len(index) < order - 1)
            out |= {(*index, i): g for i, g in enumerate(found) if i >= max(index, default=0)}
        return out


class Subject:
    """A function of real numbers: a function of Tensors, one written with NumPy's or torch's names, or an op of the registry by name.

    A function of another framework or of plain floats, and a tuple of a function, its gradient and its Hessian, are called point by point; `order` is
    the highest order that they give. Raises TypeError for other objects, and for a function without arguments.
    """

    def __init__(self, given: Any, count: int | None = None, parameters: Sequence[Any] | None = None, framework: str | None = None):
        self.given = given  # whose constants are points, too
        self.special: list[tuple[float, ...]] = []
        self.constant: float | None = None  # the result in a branch that computes nothing from the arguments
        self.failure: tuple[BaseException, Any] | None = None  # the last exception of the function, and the point
        op = REGISTRY.get(given) if isinstance(given, str) else given if isinstance(given, Op) else None
        if isinstance(given, str) and op is None:
            close = difflib.get_close_matches(given, REGISTRY, 1)
            raise TypeError(f"accuracy: there is no op {given!r}" + (f"; did you mean {close[0]!r}?" if close else "; give a function"))
        self.is_op = op is not None
        self.function, partials, hessian = (*given, None, None)[:3] if isinstance(given, tuple) else (given, None, None)
        if op is not None:
            self._use_op(op, parameters)
        elif not callable(self.function):
            raise TypeError(f"accuracy needs a function or the name of an op, not {type(given).__name__}")
        else:
            self.name = name_of(self.function)
            self.names = _argument_names(self.function, self.name, count)
            self.domains: list[Domain] = [REAL] * len(self.names)
        if framework is None and (op is not None or not is_foreign(given)):
            self.adapter = adapter_of(self._scalar, "symgrad", self.name, AdapterOptions(joined=True))
        else:
            options = AdapterOptions(joined=True, gradient=_with_scalars(partials), hessian=_with_scalars(hessian))
            self.adapter = adapter_of(_with_scalars(self.function), framework or framework_of(self.function) or "numpy", self.name, options)
        self.framework, self.subnormals, self.order = self.adapter.framework, self.adapter.subnormals, self.adapter.orders
        self.own = self.framework == "symgrad"
        self.vectorised = None if self.own else False  # whether a call with arrays computes the calls with their elements

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

    def _scalar(self, *leaves: Any, strict: bool = False) -> Tensor:
        """The result at one point as a number of the graph. Unless `strict`, a branch may return a constant."""
        result = self.function(*leaves)
        if isinstance(result, Tensor) and result.requires_grad:
            if result.numel() != 1:
                raise Unsuitable(f"accuracy: {self.name} of numbers gives shape {list(result.shape)}; scan a function whose result is one number")
            return result.reshape(()) if result.ndim else result
        try:
            value = float(getattr(result, "value", result))
        except (TypeError, ValueError):
            raise self._unsuitable(result) from None
        if strict or self.constant is not None and value != self.constant:
            raise self._unsuitable(result)
        self.constant = value
        return 0 * leaves[0] + value

    def _unsuitable(self, result: Any) -> Unsuitable:
        return Unsuitable(f"accuracy: the result of {self.name} is not computed from its arguments with operations that have a derivative (it is of "
                          f"type {type(result).__name__}); compute it with symgrad's or NumPy's functions, or give formula= to compare its values "
                          f"with")

    def call(self, columns: Sequence[Any], named: bool = False, function: Callable[..., Any] | None = None) -> Recording:
        """One recorded call with arrays or numbers. Exceptions of the function propagate; Unsuitable is raised if nothing was recorded."""
        leaves = [tensor(np.array(c), dtype=np.asarray(c).dtype, requires_grad=True, symbol=name if named else None)
                  for name, c in zip(self.names, columns)]
        with observing() as escapes, enable_grad(), silence():
            result = (function or self.function)(*leaves)
        if not isinstance(result, Tensor) or not result.requires_grad:
            raise self._unsuitable(result)
        if result.is_complex():
            raise Unsuitable(f"accuracy: the result of {self.name} is complex; scan its real and its imaginary part")
        return Recording(leaves, result, None, escapes)

    def call_at(self, point: Sequence[Any], named: bool = False) -> Recording:
        """The call at one point."""
        return self.call(point, named, functools.partial(self._scalar, strict=True))

    def run(self, point: Sequence[Any]) -> Run:
        """The call at one point. Raises ValueError where the function raises, or gives no number."""
        try:
            return self.call(point, function=self._scalar)
        except Exception as error:
            raise ValueError(f"{self.name} has no value") from error

    def graph_mismatch(self, point: Sequence[Any], far: bool = False) -> str | None:
        """The difference between the recorded graph and the function around a point, and with `far` elsewhere; None if there is none.

        Exceptions of the function propagate.
        """
        return graph_mismatch(self.call(point, named=True), lambda values: self.call(values, named=True), far)

    def derivatives(self, order: int) -> Derivatives:
        """The derivatives up to an order at single points, by an adapter."""
        return Derivatives(self.adapter, order, order, np.ones(self.count))

    def _takes_arrays(self, points: np.ndarray) -> bool:
        """Whether arrays can be passed: the results must equal those of single points up to a few ULP."""
        try:
            together = self.call(list(points)).result
            if together.shape != points.shape[1:]:
                return False
            pairs = [(float(together.value[k]), float(self.call_at(list(points[:, k])).result.value))
                     for k in range(0, points.shape[1], max(points.shape[1] // 8, 1))]
        except Exception:  # calls at single points report the exception
            return False
        ulp = ulp_of(points.dtype.name)
        return all(a == b or a != a and b != b or ulp.error(a, b) <= 8 for a, b in pairs)

    def floats(self, points: np.ndarray, order: int) -> dict[Index, np.ndarray]:
        """Every derivative up to an order as floats; NaN where the function raises."""
        out = {index: np.full(points.shape[1], np.nan) for index in derivative_indices(self.count, order)}
        if self.vectorised is None:
            self.vectorised = self._takes_arrays(points)
        if self.vectorised:
            recording = self.call(list(points))
            with silence(), enable_grad():
                for k in range(order + 1):  # each order as in a call up to it
                    out.update({index: np.ravel(t.value).astype(np.float64) for index, t in recording.partials(k).items() if len(index) == k})
            return out
        derivatives = self.derivatives(order)
        for k in range(points.shape[1]):
            point = [np.array(x) for x in points[:, k]]
            levels = derivatives.at(point, order)
            if levels.error is not None:
                self.failure = levels.error[1], point
                if isinstance(self.failure[0], Unsuitable):
                    raise self.failure[0]
            for index in out:
                if len(index) in levels.values:
                    out[index][k] = levels.values[len(index)][index]
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


def _with_scalars(function: Any) -> Any:
    """The function called with NumPy scalars in place of 0-d arrays."""
    return function and (lambda *xs: function(*(x[()] if isinstance(x, np.ndarray) else x for x in xs)))
