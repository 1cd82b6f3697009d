"""The public interface of nodes: torch's names and `next_functions`."""

from __future__ import annotations

from typing import Any, NamedTuple

from symgrad.dtypes.dtype import dtype_of
from symgrad.graph.classes import become, renamed
from symgrad.layouts.devices import device

PREFIXED = ("AccumulateGrad", "CopySlices", "CopyBackwards", "NotImplemented")  # whose full name in torch has a namespace

LEFT_OUT = {"where": 0, "masked_fill_number": 1, "index_fill_number": 1, "scatter_number": 1}  # the place of a mask, or of a number
OF_NUMBERS = ("pow", "sub", "remainder", "xlogy", "floor_divide")  # beside a number; `sub` if that is the first
PYTHON_NUMBERS = (int, float, complex, bool)


class Metadata(NamedTuple):
    """What is known of a gradient before it is computed."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


class NamedAsInTorch:
    """The public interface of a node."""

    __slots__ = ()
    op: Any
    args: Any
    parents: tuple[Any, ...]
    sequence_nr: int
    origin: Any
    value: Any
    requires_grad: Any
    output_nr: Any

    def __repr__(self) -> str:
        return f"<{type(self.torch_named()).__name__} object at {id(self):#x}>"

    def _sequence_nr(self) -> int:
        """The position of the node in the order of recording."""
        return self.sequence_nr

    def name(self) -> str:
        """The node's name in torch's spelling, such as `AddBackward0`."""
        name = type(self.torch_named()).__name__
        return f"torch::autograd::{name}" if name in PREFIXED else name

    def short_name(self) -> str:
        """The name of the operation in torch's errors, such as `Add`, or `Sum1` for `SumBackward1`."""
        name, found, number = self.name().rpartition("Backward")
        return name + number.removeprefix("0") if found and (number.isdigit() or not number) else name + found + number

    def torch_named(self) -> Any:
        """The node itself, after its class was replaced by one with torch's name where the name depends on the arguments."""
        cls: Any = type(self)
        names = getattr(cls, "op", None) and self.op.surface.names
        name = names(self) if names and self.args is not None else None
        if name is not None and name != cls.__name__:
            become(self, renamed(cls, name))
        return self

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes of the operands, each with its output number; None for a constant."""
        parents = self.parents
        edges = self.edges()
        return tuple((None, 0) if p is None or not p.requires_grad else (p.public_node, p.output_nr)
                     for p in (parents if edges is None else [parents[i] for i in edges]))

    def edges(self) -> list[int] | None:
        """The places of the arguments that torch's node has edges for, None for all: a mask has none, nor a number that has an overload."""
        parents, name = self.parents, getattr(getattr(self, "op", None), "name", "")
        if name in LEFT_OUT:
            return [i for i in range(len(parents)) if i != LEFT_OUT[name]]
        if name not in OF_NUMBERS or None not in parents:
            return None
        args = self.args
        numbers = [p is None and (args is None or type(args[i]) in PYTHON_NUMBERS) for i, p in enumerate(parents)]
        return None if name == "sub" and not numbers[0] else [i for i, is_number in enumerate(numbers) if not is_number]

    @property
    def _input_metadata(self) -> tuple[Metadata, ...]:
        """The shape, dtype and device of each gradient that the node gets: those of its outputs."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return tuple(Metadata(tuple(v.shape), dtype_of(v.dtype), device("cpu")) for v in values if v is not None)

    @property
    def public_node(self) -> Any:
        """The node that `grad_fn` returns: that of the whole call, if this node is one of its outputs."""
        origin = self.origin
        return self.torch_named() if origin is self else None if origin is None else origin.public_node
