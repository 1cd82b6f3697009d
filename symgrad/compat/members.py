"""Private and older names of torch for tensors and nodes: `_version`, `_saved_self`, and what is known of every tensor on a CPU."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from symgrad.autograd.saving import saved_tensor
from symgrad.carriers.duck import Unrecordable
from symgrad.carriers.recorded import Recorded
from symgrad.engine.cotangents import conjugated, fitted, receivers
from symgrad.engine.inference import is_inference
from symgrad.engine.method_table import MethodTable
from symgrad.engine.operands import is_complex
from symgrad.engine.refusals import expect_tensors
from symgrad.engine.saved import VALUES, _needed, _saved_tensor, read_traced
from symgrad.engine.storage.versions import version
from symgrad.engine.storage.writes import InferenceError
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.errors import FREED
from symgrad.graph.common import CommonNode
from symgrad.graph.node import PACKED, RELEASED, Leaf, Node
from symgrad.layouts.devices import device as Device
from symgrad.layouts.devices import unavailable_error
from symgrad.methods.layout import data_ptr

METHODS = MethodTable(const_data_ptr=data_ptr)


def _version(self: Tensor) -> int:
    """The version counter: the number of writes in place to the memory."""
    if is_inference(self):
        raise InferenceError("_version: an inference tensor has none")
    if type(self._value) is Recorded:
        raise Unrecordable("the version of a tensor")
    return version(self._value)


METHODS["_version"] = property(_version)


def _volatile(self: Tensor) -> bool:
    """False: the name of old programs for a tensor without a graph."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
    return False


METHODS["volatile"] = property(_volatile)


@METHODS.define
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `load_state_dict` puts in the place of this tensor: the tensor with the elements of another, or with `assign` the other itself."""
    return other.detach() if assign else self.copy_(other).detach()


@METHODS.define
def is_shared(self: Tensor) -> bool:
    """Whether the memory is shared with other processes; it is not."""
    return False


@METHODS.define
def is_distributed(input: Tensor) -> bool:
    """Whether the tensor is spread over several processes; it is not. Raises TypeError for what is no tensor."""
    expect_tensors("is_distributed", input=input)
    return False


# Devices


@METHODS.define
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """The tensor on a GPU, which symgrad cannot use.

    Raises AssertionError, as torch without CUDA does.
    """
    raise unavailable_error(Device("cuda" if device is None or isinstance(device, int) else device))


@METHODS.define
def get_device(self: Tensor) -> int:
    """The index of the GPU the tensor is on: -1, for it is on the CPU."""
    return -1


@METHODS.define
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the tensor is in pinned memory; it is not."""
    return False


@METHODS.define
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor in pinned memory, which needs an accelerator.

    Raises RuntimeError.
    """
    raise RuntimeError("Cannot access accelerator device when none is available.")


for _name in ("cuda", "sparse", "sparse_csr", "quantized", "mkldnn", "meta", "nested", "mps", "xpu", "vulkan", "ipu"):
    METHODS[f"is_{_name}"] = property(lambda self: False, doc=f"Whether the tensor is of the kind {_name}; it is not.")


# Saved values


def _position(node: Node, name: str) -> int | None:
    """The position of the saved value with this name in torch; None if there is none."""
    names = node.op.argument_names
    if name == "result":
        return -1
    name = "input" if name == "self" and "input" in names else name
    return names.index(name) if name in names and node.op.arity is not None else None


def _saved_as(self: Node, name: str) -> Any:
    """torch's `_saved_self`, `_saved_other`, `_saved_result` and the parameters of an op."""
    op = getattr(type(self), "op", None)
    if not name.startswith("_saved_") or op is None:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    asked = name.removeprefix("_saved_")
    names = op.argument_names if op.arity is not None else ()
    place = names.index("input") if asked == "self" and "input" in names else names.index(asked) if asked in names else None
    if self.args is None or self.flags & RELEASED:
        raise RuntimeError(FREED)
    sources = tuple(p if p is not None and p.requires_grad else None for p in self.parents)
    needed = [n for n, _ in _needed(self, sources)]
    if asked == "result" and "result" in needed:
        return wrap(self.value, self)
    if place is not None:
        value = self.args[place]
        if names[place] not in needed:
            return None
        number = isinstance(value, (bool, int, float, complex)) and asked in ("self", "other") and op.name != "pow"  # torch shows these as tensors
        return wrap(np.asarray(value)[()]) if number else _saved_tensor(value, self.parents[place]) if isinstance(value, VALUES) else value
    parameters = {p.name: value for p, value in zip(op.parameters, self.args[len(self.parents):])}
    if asked not in parameters and (asked != "indices" or "index" not in parameters):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}: its op {op.name} saves "
                             f"{', '.join(f'_saved_{n}' for n in [*names, *parameters])}")
    if asked == "indices":
        parts = parameters["index"] if isinstance(parameters["index"], tuple) else (parameters["index"],)
        return tuple(wrap(np.asarray(part)) if isinstance(part, (list, np.ndarray)) else None for part in parts)
    value = parameters[asked]
    if asked in ("index", "mask") and op.numerics.saved is not None:
        if not any(p is not None and asked in given.split() for p, given in zip(sources, op.numerics.saved)):
            return None
        arrays = [np.asarray(part) for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, (list, np.ndarray))]
        return wrap(arrays[0]) if len(arrays) == 1 else tuple(map(wrap, arrays))
    return value


def _saved_attribute(node: Node, name: str) -> Any:
    """The node attributes `_saved_*`, and `_raw_saved_*`, on which hooks are registered."""
    if not name.startswith("_raw_saved_"):
        position = _position(node, name.removeprefix("_saved_")) if node.flags & (PACKED | RELEASED) == PACKED else None
        kept = getattr(node.args, "kept", {})
        if position is None or position not in kept:
            return _saved_as(node, name)
        return wrap(kept[position].unpack(), node if position < 0 else node.parents[position])
    position = _position(node, name.removeprefix("_raw_saved_")) if getattr(type(node), "op", None) is not None else None
    if position is None:
        raise AttributeError(f"{type(node).__name__!r} object has no attribute {name!r}")
    return saved_tensor(node, position)


# A node as a function: the gradients of its operands from those of its outputs


def _call(self: Node, *gradients: Tensor) -> Any:
    """The gradients of the node's operands: a tensor for one operand, else a tuple with None for those that need none.

    Raises TypeError for another number of gradients, and for a leaf, whose gradient `backward` accumulates.
    """
    if isinstance(self, CommonNode):
        if len(gradients) != len(self.outputs):
            raise TypeError(f"{self.name()}: {len(self.outputs)} gradients are needed, not {len(gradients)}")
        found = self.added([(node, _pulled(node, g)) for node, g in [(self.output_node(k), g) for k, g in enumerate(gradients) if g is not None]])
        return found[0] if len(found) == 1 else tuple(found)
    if isinstance(self, Leaf) or self.op.kind == "function":
        raise TypeError(f"{self.name()} is not a function of gradients; call backward or autograd.grad")
    if len(gradients) != 1:
        raise TypeError(f"{self.name()}: one gradient is needed, not {len(gradients)}")
    out = _pulled(self, gradients[0])
    return out[0] if len(out) == 1 else out


def _pulled(self: Node, g: Tensor) -> tuple[Any, ...]:
    """The gradients of the operands of a node with one output."""
    parents = receivers(self, None)
    shape = tuple(self.value.shape) if self.value is not None else None
    if not isinstance(g, Tensor):
        raise TypeError(f"{self.name()}: the gradient must be a Tensor, not {type(g).__name__}")
    y, args = read_traced(self)
    if tuple(g.shape) != shape:
        raise RuntimeError(f"{self.name()}: the gradient has the shape {list(g.shape)}, and the output {list(y.shape)}")
    if is_complex(g):
        y, args = conjugated(traced, self, y, args)
    found = self.vjp(traced, g, y, args, parents)
    return tuple(c if c is None or p is None or c.shape == p.value.shape else fitted(traced, c, self.value, p.value) for c, p in zip(found, parents))


NODE_METHODS = MethodTable(saved_as=_saved_attribute, __call__=_call)
