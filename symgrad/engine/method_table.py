"""Tables of members of Tensor; each module fills one, and `symgrad.methods.assemble` attaches them to the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Later:
    """A member of a class that is made when it is first asked for, and then stands in its own place.

    >>> class Owner:
    ...     double = Later(lambda: lambda self, x: 2 * x)
    >>> Owner().double(3), type(vars(Owner)["double"]).__name__
    (6, 'function')
    """

    __slots__ = ("made", "make")

    def __init__(self, make: Callable[[], Any]):
        self.make = make
        self.made: list[Any] = []  # the first is the member, whatever other threads have made at once

    def __get__(self, instance: Any, owner: type) -> Any:
        self.made.append(self.make())
        member = self.made[0]
        for cls in owner.__mro__:
            for name, found in list(vars(cls).items()):
                if found is self:
                    setattr(cls, name, member)
        return member.__get__(instance, owner)


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
