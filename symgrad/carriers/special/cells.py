"""The special functions of the carriers of numbers and expressions that are computed one by one, from the rows of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.carriers.cells import each
from symgrad.carriers.digits import Undecided
from symgrad.carriers.special.table import SPECIAL


def _parameter(value: Any) -> int | float:
    """A parameter as a Python number, whole ones as integers."""
    return int(value) if value == int(value) else float(value)


def of_cells(carrier: str, module: Any, wrap: Callable[..., Any] = lambda function: function) -> dict[str, Callable[..., Any]]:
    """The functions of a carrier of numbers or expressions, which are computed one by one with a library, an mpmath context or SymPy."""

    def cells(function: Callable[..., Any], arity: int) -> Callable[..., Any]:
        return lambda *args: each(wrap(lambda *xs: function(module, *xs, *map(_parameter, args[arity:]))), arity)(*args[:arity])

    return {name: cells(getattr(row, carrier), row.arity) for name, row in SPECIAL.items()}


def of_balls() -> dict[str, Callable[..., Any]]:
    """The functions of balls. One without an enclosure raises Undecided."""

    def cells(name: str, function: Callable[..., Any] | None, arity: int) -> Callable[..., Any]:
        def refuse(*args: Any) -> Any:
            raise Undecided(f"{name} has no enclosure")

        return lambda *args: each(lambda *xs: (function or refuse)(*xs, *map(_parameter, args[arity:])), arity)(*args[:arity])

    return {name: cells(name, row.balls, row.arity) for name, row in SPECIAL.items()}
