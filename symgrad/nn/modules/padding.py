"""Modules of borders: constant numbers, or elements of the input, in one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from symgrad.engine.tensor import Tensor
from symgrad.nn import functional as F
from symgrad.nn.modules.module import Module
from symgrad.nn.modules.utils import _ntuple

__all__ = ["CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d",
           "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d"]


class _Pad(Module):
    """A border in `rank` dimensions, with the widths before and after each, the last dimension first; one number stands for all."""

    rank: ClassVar[int]
    mode: ClassVar[str]
    value: float | None = None

    def __init__(self, padding: int | Sequence[int]):
        super().__init__()
        self.padding = _ntuple(2 * self.rank)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """The input with the border. Raises RuntimeError or NotImplementedError for one that does not fit."""
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """The widths."""
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    mode = "constant"

    def __init__(self, padding: int | Sequence[int], value: float):
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """The widths and the number."""
        return f"padding={self.padding}, value={self.value}"


class _CircularPadNd(_Pad):
    mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in (self.rank + 1, self.rank + 2):
            raise ValueError(f"expected {self.rank + 1}D or {self.rank + 2}D input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """The input with the border. Raises ValueError for another number of dimensions, RuntimeError for a border longer than the input."""
        self._check_input_dim(input)
        return super().forward(input)


class _ReflectionPadNd(_Pad):
    mode = "reflect"


class _ReplicationPadNd(_Pad):
    mode = "replicate"


class _ZeroPad(Module):
    """The part of a border of zeros."""

    def __init__(self, padding: int | Sequence[int]):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The widths."""
        this: Any = self
        return f"{this.padding}"


TEXTS = {"Circular": "elements from the other end", "Constant": "one number", "Reflection": "the elements mirrored at the first and the last",
         "Replication": "the first and the last element repeated", "Zero": "zeros"}


def _define(kind: str, rank: int, *bases: type) -> Any:
    doc = f"""The input with a border of {TEXTS[kind]}, in the last {("dimension", "two dimensions", "three dimensions")[rank - 1]}.

    `padding` has the widths before and after, for the last dimension first; one number stands for all, and a negative one cuts off.
    """
    return type(f"{kind}Pad{rank}d", bases, {"rank": rank, "__module__": __name__, "__doc__": doc})


ConstantPad1d, ConstantPad2d, ConstantPad3d = (_define("Constant", rank, _ConstantPadNd) for rank in (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = (_define("Zero", base.rank, _ZeroPad, base) for base in (ConstantPad1d, ConstantPad2d, ConstantPad3d))
CircularPad1d, CircularPad2d, CircularPad3d = (_define("Circular", rank, _CircularPadNd) for rank in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_define("Reflection", rank, _ReflectionPadNd) for rank in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_define("Replication", rank, _ReplicationPadNd) for rank in (1, 2, 3))
