"""The names of nodes, and of the nodes before them, as torch shows them."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["NamedAsInTorch"]

PREFIXED = ("AccumulateGrad", "CopySlices", "CopyBackwards", "NotImplemented")  # whose full name in torch has a namespace


@functools.cache
def _titled(cls: type, name: str) -> type:
    return type(name, (cls,), {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__})


class NamedAsInTorch:
    """The part of a node that people see."""

    __slots__ = ()
    op: Any
    args: Any
    parents: tuple[Any, ...]
    sequence_nr: int
    origin: Any
    requires_grad: Any
    output_nr: Any

    def __repr__(self) -> str:
        return f"<{type(self.titled()).__name__} object at {id(self):#x}>"

    def _sequence_nr(self) -> int:
        """The position of the node in the order of recording."""
        return self.sequence_nr

    def name(self) -> str:
        """The node's name in torch's spelling, such as `AddBackward0`."""
        name = type(self.titled()).__name__
        return f"torch::autograd::{name}" if name in PREFIXED else name

    def short_name(self) -> str:
        """The name of the operation in torch's errors, such as `Add`, or `Sum1` for `SumBackward1`."""
        name, found, number = self.name().rpartition("Backward")
        return name + number.removeprefix("0") if found and (number.isdigit() or not number) else name + found + number

    def titled(self) -> Any:
        """The node itself, under the name that torch gives to a call of this kind."""
        cls = type(self)
        names = getattr(cls, "op", None) and self.op.names
        name = names(self) if names and self.args is not None else None
        if name is not None and name != cls.__name__:
            self.__class__ = _titled(cls, name)  # type: ignore[arg-type]
        return self

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes whose outputs this one consumed, with the number of the output; None for a constant."""
        return tuple((None, 0) if p is None or not p.requires_grad else (p.seen, p.output_nr) for p in self.parents)

    @property
    def seen(self) -> Any:
        """The node as users see it: the one that this node is a part of."""
        origin = self.origin
        return self.titled() if origin is self else None if origin is None else origin.seen
