"""Modules of borders: constant numbers, or elements of the input, in one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from symgrad.arguments import check_dims
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
        """The input with the border. Raises RuntimeError, ValueError or NotImplementedError for one that does not fit."""
        if self.mode == "circular":
            check_dims(type(self).__name__, input, self.rank + 1, self.rank + 2, error=ValueError)
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """The widths."""
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    def __init__(self, padding: int | Sequence[int], value: float):
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """The widths and the number."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: int | Sequence[int]):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The widths."""
        return f"{self.padding}"


def _define(kind: str, mode: str, text: str, bases: Sequence[tuple[type, ...]]) -> list[Any]:
    doc = f"""The input with a border of {text}, in the last dimensions.

    `padding` has the widths before and after, for the last dimension first; one number stands for all, and a negative one cuts off.
    """
    return [type(f"{kind}Pad{rank}d", given, {"rank": rank, "mode": mode, "__module__": __name__, "__doc__": doc})
            for rank, given in zip((1, 2, 3), bases)]


ConstantPad1d, ConstantPad2d, ConstantPad3d = _constant = _define("Constant", "constant", "one number", [(_ConstantPadNd,)] * 3)
ZeroPad1d, ZeroPad2d, ZeroPad3d = _define("Zero", "constant", "zeros", [(_ZeroPad, base) for base in _constant])
CircularPad1d, CircularPad2d, CircularPad3d = _define("Circular", "circular", "elements from the other end", [(_Pad,)] * 3)
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _define("Reflection", "reflect", "the elements mirrored at the ends", [(_Pad,)] * 3)
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _define("Replication", "replicate", "the first and the last element", [(_Pad,)] * 3)
