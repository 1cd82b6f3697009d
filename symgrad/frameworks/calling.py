"""The call of a function: its parameters, which of them are differentiated, and the inputs that a decorator or a call gives them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor
from symgrad.frameworks.naming import parameters_of


class NotCheckable(Exception):
    """Raised with the reason if there is no derivative to check."""


@dataclass(frozen=True)
class Argument:
    """A differentiated argument: its name, its value (None until it is drawn from its domain), its parameter, and its place in *args or **kwargs."""

    name: str
    value: np.ndarray | None
    parameter: str
    key: Any = None


@dataclass
class BoundCall:
    """A function with its arguments: `inputs` are differentiated, `values` are those of its parameters.

    Calling it with one value per input calls the function.
    """

    function: Callable[..., Any]
    name: str
    signature: inspect.Signature
    inputs: list[Argument]
    values: dict[str, Any]

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the differentiated arguments alone, in order; numbers are passed as such."""
        return lambda *values: self([v[()] if isinstance(v, np.ndarray) else v for v in values], function)

    def __call__(self, values: Sequence[Any], function: Callable[..., Any] | None = None) -> Any:
        parts = {i.parameter for i in self.inputs if i.key is not None}  # copies of *args and **kwargs
        arguments = {n: (dict if isinstance(v, dict) else list)(v) if n in parts else v for n, v in self.values.items()}
        for i, value in zip(self.inputs, values):
            if i.key is None:
                arguments[i.parameter] = value
            else:
                arguments[i.parameter][i.key] = value
        bound = inspect.BoundArguments(self.signature, arguments)
        return (function or self.function)(*bound.args, **bound.kwargs)

    @property
    def names(self) -> list[str]:
        return [i.name for i in self.inputs]

    @property
    def fixed(self) -> dict[str, Any]:
        """The values of the parameters that are not differentiated."""
        return {name: value for name, value in self.values.items() if name not in self.names}


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
    """Whether *args take what is given, and all other parameters have defaults."""
    return any(p.kind is p.VAR_POSITIONAL for p in parameters) and all(
        p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters)


def call_of(function: Callable[..., Any], name: str, inputs: Sequence[Any] | Mapping[str, Any], wrt: Sequence[str] | None = None,
            formula_names: Sequence[str] | None = None, own: bool = False) -> BoundCall:
    """Which arguments to differentiate by: given ones, and those with a float default that the formula names; all such of an `own` function.

    Arguments without a value are drawn, unless the function is an own one. Integers by annotation or default, truth values and everything that is
    no real number keep their value. Raises TypeError for inputs the function does not take, and for a function that does not say what it takes where
    no formula names it; NotCheckable if there is no real argument.
    """
    signature = _own_signature(function, len(inputs)) if own else _signature_of(function, name, inputs, formula_names)
    positional, named = ((), inputs) if isinstance(inputs, Mapping) else (inputs, {})
    try:
        given = (signature.bind if own else signature.bind_partial)(*positional, **named).arguments
    except TypeError as error:
        raise TypeError(f"{name}{signature}: {error}") from None
    chosen: list[Argument] = []
    real, left_out = list[str](), list[str]()
    values: dict[str, Any] = dict(given)
    for p in signature.parameters.values():
        value = given.get(p.name, p.default)
        parts = [(f"{p.name}{i}", i, v) for i, v in enumerate(given.get(p.name, ()))] if p.kind is p.VAR_POSITIONAL else [
            (key, key, v) for key, v in given.get(p.name, {}).items()] if p.kind is p.VAR_KEYWORD else [(p.name, None, value)]
        if value is not p.empty and (own or p.name in (formula_names or ())):
            values[p.name] = value
        integral = p.annotation in (int, "int", bool, "bool") or type(p.default) in (int, bool)
        for label, key, v in parts:
            array = None if v is p.empty else _real_array(v, p.name in given and not integral)
            if v is not p.empty and (array is None or p.name not in values):
                continue
            real.append(label)
            if wrt is None or label in wrt:
                chosen.append(Argument(label, array, p.name, key))
            elif v is p.empty:
                left_out.append(label)
    missing = [n for n in wrt or () if n not in real]
    if missing:
        raise TypeError(f"{name}: {missing[0]} is not a real argument; those are {', '.join(real) or 'none'}")
    if left_out:
        raise TypeError(f"check: wrt leaves out {left_out[0]}, which needs a value then; give it, as in {left_out[0]}=1.0")
    if not any(i.value is None or i.value.size for i in chosen):
        raise NotCheckable("no argument is a real number to differentiate by; give floats, as in x=1.0")
    return BoundCall(function, name, signature, chosen, values)


def _own_signature(function: Any, count: int) -> inspect.Signature:
    """The signature of a function; where it has none, parameters x1, x2, ..."""
    if not callable(function):
        raise TypeError(f"check needs a function, not {type(function).__name__}")
    try:
        if not isinstance(function, np.ufunc):  # whose options exclude each other
            return inspect.signature(function)
    except ValueError:
        pass
    return inspect.Signature([inspect.Parameter(f"x{i + 1}", inspect.Parameter.POSITIONAL_ONLY) for i in range(count)])


def _signature_of(function: Any, name: str, inputs: Sequence[Any] | Mapping[str, Any], formula_names: Sequence[str] | None) -> inspect.Signature:
    """The declared parameters; for a function that declares none, and a wrapper with other names, the names of the formula or the inputs."""
    parameters = declared_parameters(function)
    if parameters is not None and formula_names and not set(formula_names) & {p.name for p in parameters}:
        try:
            own = list(inspect.signature(function, follow_wrapped=False).parameters.values())
        except (TypeError, ValueError):
            parameters = None
        else:
            parameters = None if _accepts_any_arguments(own) else parameters
    if parameters is None:
        known = formula_names or (list(inputs) if isinstance(inputs, Mapping) else [f"x{i + 1}" for i in range(len(inputs))])
        if not known:
            raise TypeError(f"check: {name} does not say which arguments it takes; give inputs, or a formula that names them")
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in known]
    return inspect.Signature([p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)])


def _real_array(value: Any, integers: bool) -> np.ndarray | None:
    """A real argument as a new array of floats; None for a constant. With `integers`, a number or list of integers is real, too."""
    if isinstance(value, (np.ndarray, np.generic, Tensor)):
        array = np.asarray(as_value(value))
    elif isinstance(value, (bool, str, bytes)):
        return None
    else:
        try:
            foreign = value.detach().numpy() if hasattr(value, "detach") and hasattr(value, "numpy") else value
            array = np.asarray(as_value(foreign) if isinstance(value, (int, float, complex, list, tuple)) else foreign)
        except (TypeError, ValueError):
            return None
        if array.dtype.kind in "iu" and integers and isinstance(value, (int, list)):
            array = array.astype(np.float64)
    if array.dtype.kind == "c":
        raise NotCheckable("an input is complex, and only derivatives by real numbers are checked; split it into its parts")
    return array.copy() if array.dtype.kind == "f" or array.dtype.name == "bfloat16" else None


def parts_of(result: Any) -> Iterator[Any]:
    """The numbers and arrays in a result, through tuples, lists and mappings."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        for part in result:
            yield from parts_of(part)
    elif result is not None:
        yield result


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
        signature, values = inspect.signature(function), dict[str, Any]()
        try:
            bound = signature.bind(*inputs, **named)
        except TypeError as error:
            raise TypeError(f"example: {getattr(function, '__name__', function)}{signature}: {error}") from None
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            if kind in (kind.VAR_POSITIONAL, kind.POSITIONAL_ONLY):
                raise TypeError(f"example: the inputs of a function with *{name} or positional-only parameters have no names to keep; pass them to "
                                f"check")
            values.update(value if kind is kind.VAR_KEYWORD else {name: value})
        function.symgrad_example = values  # type: ignore[attr-defined]
        return function

    return mark


def examples_of(function: Any) -> dict[str, Any] | None:
    """The inputs a function carries by `@symgrad.example`, or the first of a tuple of functions; None if it carries none."""
    return getattr(function[0] if isinstance(function, tuple) and function else function, "symgrad_example", None)


def as_inputs(inputs: Any) -> Sequence[Any] | Mapping[str, Any]:
    """The inputs of a function as a sequence or by name; a single number, array or list of numbers is one input."""
    if inputs is None:
        return ()
    return inputs if isinstance(inputs, (tuple, Mapping)) or isinstance(inputs, list) and any(not isinstance(x, (int, float)) for x in inputs) \
        else (inputs,)
