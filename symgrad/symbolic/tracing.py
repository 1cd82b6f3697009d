"""Conversion of functions to formulas: a function is called with named tensors, and its recorded graph is converted. `to_sympy` is public."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from symgrad.autograd.modes import enable_grad
from symgrad.carriers.symbolic import lift_value
from symgrad.engine.data import as_value
from symgrad.engine.graph_breaks import FAR, Escapes, observing
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import tensor
from symgrad.formulas import parsing
from symgrad.formulas.expressions import formula, names
from symgrad.frameworks.calling import examples_of
from symgrad.frameworks.differentiation_task import silence
from symgrad.frameworks.naming import name_of
from symgrad.graph.domains import REAL
from symgrad.sampling.domain_reader import domains_of
from symgrad.symbolic.parameters import Parameter, formulas_of, identifiers
from symgrad.trees import Spec, flatten

GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass
class Trace:
    """One call of a function with named tensors: the leaves by argument name, the results, and their tree structure."""

    leaves: dict[str, Tensor]
    results: list[Any]
    form: Spec
    conditions: tuple[Any, ...]
    escapes: Escapes

    @property
    def parameters(self) -> list[Parameter]:
        """The leaves as parameters of formulas."""
        out = []
        for name, leaf in zip(identifiers(list(self.leaves)), self.leaves.values()):
            symbols = iter([sympy.Symbol(s, real=True) for s in names(leaf._node)])  # type: ignore[arg-type]
            out.append(Parameter(name, name, {index: next(symbols) for index in np.ndindex(leaf.shape)}, tuple(leaf.shape)))
        return out


def cells_of(result: Any) -> Any:
    """The formulas of one result, in the symbolic carrier.

    Raises TypeError for a result that is not numeric, RecursionError for a formula nested too deeply.
    """
    if isinstance(result, Tensor):
        try:
            cells = formula(result)
        except RecursionError:
            raise RecursionError("to_sympy: this formula is nested too deeply for SymPy; assignments() of the result gives it as small "
                                 "equations") from None
        return lift_value(as_value(result)) if cells is None else cells
    if isinstance(result, (bool, int, float, complex, np.ndarray, np.generic)):
        return lift_value(result)
    raise TypeError(f"to_sympy: the function returned {type(result).__name__}, which has no formula; return tensors, numbers or trees of them")


# Arguments


def _irregular(shape: tuple[int, ...], low: float, high: float, start: int, mirrored: bool) -> np.ndarray:
    """Distinct numbers between two bounds, so that a matrix of them is regular; in the opposite order if `mirrored`."""
    u = 0.25 + 0.5 * np.modf((start + 1 + np.arange(math.prod(shape))) * GOLDEN)[0].reshape(shape)
    u = 1 - u if mirrored else u
    if math.isinf(low):
        return u if math.isinf(high) else high - u
    return low + u * (1 if math.isinf(high) else high - low)


def _shape(given: Any) -> Any:
    """A shape as a tuple, or a mapping of shapes as a mapping of tuples."""
    if isinstance(given, Mapping):
        return {key: _shape(value) for key, value in given.items()}
    shape = (given,) if isinstance(given, int) and not isinstance(given, bool) else given
    if not isinstance(shape, (tuple, list)) or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape):
        raise TypeError(f"a shape is a number or a tuple of numbers such as (2, 3), not {given!r}")
    return tuple(shape)


class _Arguments:
    """The arguments of a call, some of which are named tensors."""

    def __init__(self, function: Callable[..., Any], shapes: Sequence[Any], at: Any, domain: Any):
        self.name = name_of(function)
        try:
            self.signature = inspect.signature(function)
        except ValueError:
            kind = inspect.Parameter.POSITIONAL_ONLY
            self.signature = inspect.Signature([inspect.Parameter(f"x{i + 1}", kind) for i in range(max(len(shapes), 1))])
        named = domain if isinstance(domain, Mapping) else {}
        self.at = self._by_name("at", at) if at is not None else {} if shapes else dict(examples_of(function) or {})
        self.shapes = self._by_name("shapes", [_shape(s) for s in shapes])
        unknown = sorted((set(named) | set(self.at)) - set(self.signature.parameters))
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in self.signature.parameters.values()):
            raise TypeError(f"{self.name}{self.signature} has no argument {unknown[0]}")
        self.domain = domains_of(domain, list(dict.fromkeys([*self.signature.parameters, *named])))

    def _by_name(self, what: str, given: Any) -> dict[str, Any]:
        if isinstance(given, Mapping):
            return dict(given)
        try:
            return dict(self.signature.bind_partial(*given).arguments)
        except TypeError:
            raise TypeError(f"{self.name}{self.signature} does not take {len(given)} {what}") from None

    def tensors(self, nudge: float, requires_grad: bool, mirrored: bool) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The arguments by name, and the named tensors among them; `nudge` multiplies their values."""
        arguments: dict[str, Any] = {}
        leaves: dict[str, Tensor] = {}

        def leaf(name: str, value: Any) -> Tensor:
            label = identifiers([*leaves, name])[-1]
            leaves[label] = tensor(value * nudge, requires_grad=requires_grad, symbol=label)
            return leaves[label]

        def generated(name: str, shape: Any) -> Any:
            if isinstance(shape, dict):
                return {key: generated(f"{name}_{key}", part) for key, part in shape.items()}
            widest = max(self.domain.get(name, REAL).intervals, key=lambda i: i.high - i.low)
            return leaf(name, _irregular(shape, widest.low, widest.high, sum(x.numel() for x in leaves.values()), mirrored))

        def converted(name: str, value: Any) -> Any:
            if isinstance(value, Mapping):
                return {key: converted(f"{name}_{key}", part) for key, part in value.items()}
            if isinstance(value, (bool, str, type(None))) or callable(value):
                return value
            array = np.asarray(as_value(value))
            return leaf(name, array.astype(np.float64) if array.dtype.kind in "iu" else array) if array.dtype.kind in "iufcV" else value

        for name, parameter in self.signature.parameters.items():
            default = parameter.default
            if parameter.kind is parameter.VAR_POSITIONAL:
                arguments[name] = tuple([generated(f"{name}{i}", s) for i, s in enumerate(self.shapes.get(name, ()))]
                                        or [converted(f"{name}{i}", v) for i, v in enumerate(self.at.get(name, ()))])
            elif parameter.kind is parameter.VAR_KEYWORD:
                arguments[name] = {key: converted(key, value) for key, value in self.at.items() if key not in self.signature.parameters}
            elif name in self.at:
                arguments[name] = converted(name, self.at[name])
                given = self.shapes.get(name)
                if given is not None and isinstance(arguments[name], Tensor) and tuple(arguments[name].shape) != given:
                    raise ValueError(f"{self.name}: the value of {name} in `at` has the shape {list(arguments[name].shape)}, not {list(given)}")
            elif name in self.shapes:
                arguments[name] = generated(name, self.shapes[name])
            elif default is parameter.empty:
                arguments[name] = generated(name, ())
            elif isinstance(default, float) and not self.shapes:
                arguments[name] = converted(name, default)
        return arguments, leaves


def trace(function: Callable[..., Any], shapes: Sequence[Any] = (), at: Any = None, domain: Any = None, nudge: float = 1.0,
          requires_grad: bool = False, mirrored: bool = False) -> Trace:
    """Call a function with named tensors and record the results.

    All values are multiplied by `nudge`; values that are not given are in another order if `mirrored`.

    Raises TypeError for unknown arguments, and the exceptions of the function.
    """
    if not callable(function):
        raise TypeError(f"expected a function, a Tensor or a SymPy expression, not {type(function).__name__}")
    given = _Arguments(function, shapes, at, domain)
    arguments, leaves = given.tensors(nudge, requires_grad, mirrored)
    bound = inspect.BoundArguments(given.signature, arguments)
    with observing() as escapes, enable_grad(), np.errstate(all="ignore"):
        results, form = flatten(function(*bound.args, **bound.kwargs))
    conditions = traced.cat([traced.reshape(x, (-1,)) for x in leaves.values()], 0).conditions if leaves else ()
    return Trace(leaves, results, form, conditions, escapes)


def with_conditions(conditions: Sequence[Any], e: Any) -> Any:
    """A formula with its conditions as a Piecewise."""
    return sympy.Piecewise((e, sympy.And(*conditions))) if conditions and isinstance(e, sympy.Expr) else e


def checked_trace(given: Any, shapes: Sequence[Any], at: Any, domain: Any, requires_grad: bool, read: Callable[[Trace], Any],
                  trusted: bool = False) -> tuple[Trace, Any]:
    """A trace and the result of `read` for it, confirmed by a second trace at another point, which is close to the first if `at` is given.

    Raises ValueError if the results differ: the function is random, keeps a state, or computes with plain numbers.
    """
    if isinstance(given, bytes):
        raise TypeError("to_sympy: a formula in text is a str, not bytes")
    function = parsing.parse(given) if isinstance(given, str) else given  # text is never executed as Python
    first = trace(function, shapes, at, domain, requires_grad=requires_grad)
    out = read(first)
    if trusted:
        return first, out
    far = first.escapes.lines and at is None and not domain
    for mirrored, nudge in ((True, 1.0), (False, 1 + 2.0**-10), *((False, factor) for factor in (FAR if far else ())))[at is not None:]:
        try:
            with silence():
                second = trace(function, shapes, at, domain, nudge, requires_grad, mirrored)
                again = read(second)
        except Exception:
            if nudge in FAR:  # outside the domain of the function
                continue
            raise
        if first.conditions == second.conditions and out != again:
            why = f"numbers leave it by {first.escapes}" if first.escapes.lines else (
                "it draws random numbers, keeps a state, or depends on the numbers themselves, as with sort and masks")
            raise ValueError(f"{getattr(function, '__name__', 'the function')} has no one formula: at two points it gave different ones. The reason: "
                             f"{why}; if the formula depends on the point by masks or integers, give the point by at=")
        if first.conditions == second.conditions and not far:
            break
    return first, out


def to_sympy(fn: Any, *shapes: Any, at: Any = None, domain: Any = None) -> Any:
    """The formula of a function in SymPy: an expression for a number, an Array for an array, and a tree of them for a tree.

    The function is called with named tensors of these shapes: `()` or nothing for a number, whose symbol has the argument's name; `(2, 3)`
    or `4` for arrays, whose elements are named x_0_0, x_0_1 and so on; a dict of shapes for a dict. `at` gives the values for the call
    (by name or in order; their shapes are then known), `domain` bounds for them by name: pairs of numbers, SymPy sets or domains. Arguments
    with a default other than a float keep it. If the function branches, as in `if x > 0`, the formula is a Piecewise with the conditions
    that held. For a Tensor the result is its formula; text is parsed by `symgrad.formulas.parsing` and never evaluated.

    Raises ValueError for a function without a single formula (it is random, keeps a state or computes with `float(x)`), TypeError for unknown
    arguments, ParseError for invalid text, and the exceptions of the function.

    >>> import symgrad
    >>> to_sympy(lambda x, y: symgrad.exp(-x * x) / y)
    exp(-x**2)/y
    >>> to_sympy(lambda w: (w * w).sum(), 2)
    w_0**2 + w_1**2
    >>> to_sympy(lambda x: x**2 if x > 1 else -x, at=[3.0])
    Piecewise((x**2, x > 1))
    >>> to_sympy("sigmoid(x)")
    1/(1 + exp(-x))
    """
    def expressions(results: Sequence[Any]) -> list[tuple[list[Any], tuple[int, ...]]]:
        return [(cells.ravel().tolist(), cells.shape) for cells in map(cells_of, results)]

    if isinstance(fn, (sympy.Basic, sympy.MatrixBase)):
        formulas_of(fn, "to_sympy")
        return fn
    if isinstance(fn, Tensor):
        read, conditions, form = expressions([fn]), fn.conditions, flatten(0)[1]
    else:
        found, read = checked_trace(fn, shapes, at, domain, False, lambda found: expressions(found.results))
        conditions, form = found.conditions, found.form
    out = []
    for elements, shape in read:
        valid = [with_conditions(conditions, e) for e in elements]
        out.append(sympy.ImmutableDenseNDimArray(valid, shape) if shape else valid[0])
    return form.unflatten(out)
