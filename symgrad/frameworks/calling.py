"""The call of a function: its parameters, which of them are differentiated, and the inputs that a decorator or a call gives them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from symgrad.frameworks.naming import parameters_of


@dataclass(frozen=True)
class Argument:
    """A differentiated argument: its name, and its value (None until it is drawn from its domain)."""

    name: str
    value: np.ndarray | None


@dataclass
class BoundCall:
    """A function with the names and values of its arguments: `inputs` are differentiated, `fixed` are constant.

    Calling it with one value per input calls the function.
    """

    function: Callable[..., Any]
    name: str
    inputs: list[Argument]
    fixed: dict[str, Any] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    keywords: frozenset[str] = frozenset()

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the differentiated arguments alone, in order; numbers are passed as such."""
        return lambda *values: self([v[()] if isinstance(v, np.ndarray) else v for v in values], function)

    def __call__(self, values: Sequence[Any], function: Callable[..., Any] | None = None) -> Any:
        given = dict(zip([i.name for i in self.inputs], values)) | self.fixed
        places = [name for name in self.order if name not in self.keywords]
        first = next((k for k, name in enumerate(places) if name not in given), len(places))
        named = {name: given[name] for name in (*places[first:], *self.keywords) if name in given}
        return (function or self.function)(*(given[name] for name in places[:first]), **named)

    @property
    def names(self) -> list[str]:
        return [i.name for i in self.inputs]


def flat_names(names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> list[str]:
    """The names of all elements in order.

    >>> flat_names(["a", "x"], [(), (2,)])
    ['a', 'x_0', 'x_1']
    """
    return ["_".join([name, *map(str, index)]) for name, shape in zip(names, shapes) for index in np.ndindex(*shape)]


def declared_parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters that a function declares, None if it declares none."""
    found = parameters_of(function)
    return None if found is None or _accepts_any_arguments(found) else found


def _accepts_any_arguments(parameters: Sequence[inspect.Parameter]) -> bool:
    """Whether the parameters do not determine the positional arguments: *args, and parameters with defaults."""
    return any(p.kind is p.VAR_POSITIONAL for p in parameters) and all(
        p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters)


def call_of(function: Callable[..., Any], name: str, inputs: Sequence[Any] | Mapping[str, Any], wrt: Sequence[str] | None,
            formula_names: Sequence[str] | None) -> BoundCall:
    """Which arguments to differentiate by: those given, or those without a default, and those with a float default that the formula names.

    Integers by annotation or default, truth values and everything that is no real number keep their value. Raises TypeError for inputs the
    function does not take, and for a function that does not say what it takes where no formula names it.
    """
    parameters = declared_parameters(function)
    if parameters is not None and formula_names and not set(formula_names) & {p.name for p in parameters} and _has_var_positional(function):
        parameters = None  # a wrapper; its names are not those of the arguments
    if parameters is None:
        known = formula_names or (list(inputs) if isinstance(inputs, Mapping) else [f"x{i + 1}" for i in range(len(inputs))])
        if not known:
            raise TypeError(f"check: {name} does not say which arguments it takes; give inputs, or a formula that names them")
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in known]
    by_name = {p.name: p for p in parameters}
    open_names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if isinstance(inputs, Mapping):
        given = dict(inputs)
        unknown = [n for n in given if n not in open_names]
        if unknown:
            raise TypeError(f"check: {name} has no argument {unknown[0]!r}; it takes {', '.join(open_names) or 'none'}")
    else:
        if len(inputs) > len(open_names):
            raise TypeError(f"check: {len(inputs)} inputs were given, but {name} takes {', '.join(open_names) or 'none'}")
        given = dict(zip(open_names, inputs))
    strange = [n for n in wrt or () if n not in open_names]
    if strange:
        raise TypeError(f"check: {strange[0]} in wrt is no argument of {name}; those are {', '.join(open_names) or 'none'}")
    chosen: list[Argument] = []
    fixed: dict[str, Any] = {}
    for n in open_names:
        p = by_name[n]
        has_default = p.default is not p.empty
        value = given.get(n, p.default if has_default else None)
        integral = p.annotation in (int, "int", bool, "bool") or type(p.default) in (int, bool)
        array = None if value is None or integral and not isinstance(value, float) else _real_array(value, n in given)
        if wrt is not None and n not in wrt or (value is not None and array is None) or (
                n not in given and has_default and (array is None or formula_names is None or n not in formula_names)):
            if n in given or has_default and n in (formula_names or ()):
                fixed[n] = value
            if n in given or has_default:
                continue
            if wrt is not None and n not in wrt:
                raise TypeError(f"check: wrt leaves out {n}, which needs a value then; give it, as in {n}=1.0")
        chosen.append(Argument(n, array))
    missing = [n for n in wrt or () if n not in {c.name for c in chosen}]
    if missing:
        raise TypeError(f"check: {missing[0]} in wrt is not a real argument of {name}; those are {', '.join(c.name for c in chosen) or 'none'}")
    if not chosen:
        raise TypeError(f"check: {name} has no real argument to differentiate by; its arguments are {', '.join(open_names) or 'none'}, "
                        f"of which ints, truth values and text keep their values; give floats")
    keywords = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    return BoundCall(function, name, chosen, fixed, open_names, keywords)


def _has_var_positional(function: Callable[..., Any]) -> bool:
    try:
        return _accepts_any_arguments(list(inspect.signature(function, follow_wrapped=False).parameters.values()))
    except (TypeError, ValueError):
        return True


def _real_array(value: Any, given: bool) -> np.ndarray | None:
    """A real argument as an array of floats; None for what is no real number."""
    if isinstance(value, (bool, str, bytes)):
        return None
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        value = value.detach().numpy()
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return None
    if array.dtype.kind in "iu":
        if isinstance(value, (np.ndarray, np.generic)):
            raise TypeError(f"check: an input is an array of {array.dtype}, which has no derivative; give floats, as in x.astype(float)")
        return array.astype(np.float64) if given else None
    if array.dtype.kind == "c":
        raise TypeError("check: an input is complex, and only derivatives by real numbers are checked; split it into its parts")
    return array.copy() if array.dtype.kind == "f" else None


F = TypeVar("F", bound=Callable[..., Any])


def example(*inputs: Any, **named: Any) -> Callable[[F], F]:
    """Declare, as a decorator, the inputs with which `check` and the command line check a function.

    Raises TypeError for inputs that the function does not take.

    >>> import symgrad
    >>> @symgrad.example(x=1.0, y=[1.0, 2.0])
    ... def energy(x, y):
    ...     return (x * y).sum()
    >>> symgrad.check(energy).verdict
    'proved'
    """
    def mark(function: F) -> F:
        try:
            bound = inspect.signature(function).bind(*inputs, **named)
        except TypeError as error:
            raise TypeError(f"example: {getattr(function, '__name__', function)}{inspect.signature(function)}: {error}") from None
        function.symgrad_example = {**_by_name(bound)}  # type: ignore[attr-defined]
        return function

    return mark


def _by_name(bound: Any) -> dict[str, Any]:
    """Bound arguments by name; those of *args cannot be named, so they are refused."""
    out: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind in (kind.VAR_POSITIONAL, kind.POSITIONAL_ONLY):
            raise TypeError(f"example: the inputs of a function with *{name} or positional-only parameters have no names to keep; pass them to check")
        out.update(value if kind is kind.VAR_KEYWORD else {name: value})
    return out


def examples_of(function: Any) -> dict[str, Any] | None:
    """The inputs a function carries by `@symgrad.example`, or the first of a tuple of functions; None if it carries none."""
    return getattr(function[0] if isinstance(function, tuple) and function else function, "symgrad_example", None)


def as_inputs(inputs: Any) -> Sequence[Any] | Mapping[str, Any]:
    """The inputs of a function as a sequence or by name; a single number, array or list of numbers is one input."""
    if inputs is None:
        return ()
    return inputs if isinstance(inputs, (tuple, Mapping)) or isinstance(inputs, list) and any(not isinstance(x, (int, float)) for x in inputs) \
        else (inputs,)
