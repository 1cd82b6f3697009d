"""Modules that call a function with the parameters that they were made with: each is one line of a table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar

from symgrad.engine.tensor import Tensor
from symgrad.nn.modules.module import Module

__all__ = ["OfFunction", "module_of", "shown_options"]


class OfFunction(Module):
    """A module that calls a function with its inputs and with parameters of the same names."""

    _function: ClassVar[Callable[..., Any]]
    _names: ClassVar[tuple[str, ...]]  # of the parameters of the constructor
    _called: ClassVar[tuple[str, ...]]  # of those that the function gets, too
    _inputs: ClassVar[tuple[str, ...]]  # of those that forward takes
    _shown: ClassVar[str] = "{name}={value}"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()
        try:
            bound = inspect.signature(type(self)).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}; it is called as {type(self).__name__}{inspect.signature(type(self))}") from None
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Any:
        """The value of the function."""
        if len(inputs) != len(self._inputs) or named:
            given = [*self._inputs[:len(inputs)], *named]
            if len(inputs) > len(self._inputs) or sorted(given) != sorted(self._inputs):
                raise TypeError(f"{type(self).__name__}: forward takes {', '.join(self._inputs)}, but it got {len(inputs)} inputs"
                                f"{''.join([f' and {name}' for name in named])}")
        for name in self._called:
            named[name] = getattr(self, name)
        return type(self)._function(*inputs, **named)

    def extra_repr(self) -> str:
        """The parameters; `inplace` where it is set."""
        own = self.__dict__
        return ", ".join(self._shown.format(name=name, value=own[name]) for name in self._names if self._shown and (name != "inplace" or own[name]))


def module_of(name: str, function: Callable[..., Any], parameters: str | None = None, *, module: str, base: type[OfFunction] = OfFunction,
              doc: str | None = None, shown: str = "{name}={value}", **own: Any) -> Any:
    """The class of a module from a function: its parameters are those that have a default, or some by their names."""
    known = inspect.signature(function).parameters
    words = [word for word, p in known.items() if p.default is not p.empty and word != "training"] if parameters is None else parameters.split()
    called = tuple(word for word in words if word not in ("size_average", "reduce")) + ("training",) * ("training" in known)
    signature = inspect.Signature([known[word].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for word in words])
    text = function.__doc__ if doc is None else doc
    inputs = {word: p for word, p in known.items() if p.default is p.empty and word not in (*words, *called)}
    members = {"__doc__": f"{(text or name).partition(chr(10))[0]}\n\n    The parameters are those of `nn.functional.{function.__name__}`.\n    ",
               "__module__": module, "__signature__": signature, "_function": staticmethod(function), "_names": tuple(words), "_called": called,
               "_inputs": tuple(inputs), "_shown": shown}
    if base.forward is OfFunction.forward:  # a copy with the names of the inputs; other bases have a forward with names of its own
        forward = FunctionType(base.forward.__code__, base.forward.__globals__, "forward", base.forward.__defaults__, base.forward.__closure__)
        taken = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *inputs.values()])
        forward.__doc__, forward.__signature__ = base.forward.__doc__, taken  # type: ignore[attr-defined]
        forward.__qualname__, forward.__module__ = f"{name}.forward", module
        members["forward"] = forward
    return type(name, (base,), members | own)


def shown_options(module: Any, *sizes: Any, **defaults: Any) -> str:
    """The text of sizes, and of the options that are not the default."""
    given = (f"{name}={getattr(module, name)}" for name, default in defaults.items() if getattr(module, name) != default)
    return ", ".join([*map(str, sizes), *given])
