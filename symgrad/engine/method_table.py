"""Tables of members of Tensor; each module fills one, and `symgrad.methods.assemble` attaches them to the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["MethodTable"]

F = TypeVar("F", bound=Callable[..., Any])


class MethodTable(dict[str, Any]):
    """Methods and properties of Tensor by name. A duplicate name raises NameError.

    >>> table = MethodTable()
    >>> @table.define
    ... def twice(self):
    ...     return 2 * self
    >>> list(table)
    ['twice']
    """

    def __setitem__(self, name: str, member: Any) -> None:
        if name in self:
            raise NameError(f"Tensor.{name} is defined twice; remove one of the definitions")
        super().__setitem__(name, member)

    def define(self, function: F) -> F:
        """Enter a function under its own name; a decorator."""
        self[function.__name__] = function
        return function
