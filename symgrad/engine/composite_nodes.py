"""Composite functions that are one node in torch: their last node gets torch's name, and the values that torch saves of the call."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from symgrad.engine.tensor import Tensor, wrap
from symgrad.errors import FREED
from symgrad.graph.classes import derived
from symgrad.graph.freed import freed
from symgrad.graph.modes import special, thread
from symgrad.graph.node import GRADIENT, NAMED, RELEASED, Leaf, Node
from symgrad.graph.op import Op


@functools.cache
def _call_class(op: Op, base: type[Node]) -> type[Node] | None:
    """The class of the last node of a composite: that of its op, with the values and nodes of the call's tensors in `call`.

    None for a class whose nodes have more to copy than those of an op.
    """
    if base is Leaf or hasattr(base, "residual"):
        return None
    names = op.argument_names

    def saved(k: int | None, name: str) -> property:
        def get(self: Any) -> Any:
            if self.call is None:
                raise RuntimeError(FREED)
            asked = [needed.split() for (_, node), needed in zip(self.call, op.numerics.saved or ()) if node is not None and node.flags & GRADIENT]
            if not any(name in needed for needed in asked):
                return None
            return wrap(self.value, self) if k is None else wrap(*self.call[k])

        return property(get)

    def release(self: Any) -> None:
        if base.saves:
            self.flags |= RELEASED
            if not self.flags & NAMED:
                self.args, self.value = None, freed
        else:
            base.release(self)
        self.call = None

    words: dict[str, Any] = {"__slots__": ("call",), "__doc__": op.docs.doc, "saves": None, "release": release, "torch_named": lambda self: self}
    for k, name in [*enumerate(names), (None, "result")]:
        words[f"_saved_{'self' if name == 'input' else name}"] = saved(k, name)
    return derived(base, f"{op.surface.node_name}Backward0", **words)


def named_as_one(op: Op, out: Any, given: Sequence[Any]) -> Any:
    """The result of a composite function, whose node has torch's name of the call if it was recorded by the composite."""
    node = out._node_slot
    if node is None or special and not thread.modes.plain:
        return out
    for x in given:
        if not isinstance(x, Tensor) or x._node_slot is node:
            return out
    cls = _call_class(op, type(node))  # type: ignore[arg-type]
    if cls is None:
        return out
    named: Any = object.__new__(cls)
    named.args, named.parents, named.value, named.flags, named.sequence_nr = node.args, node.parents, node.value, node.flags, node.sequence_nr
    if node.kept is not None:
        named.kept = node.kept
    named.call = tuple([(x._value, x._node_slot) for x in given])
    out._node_slot = named
    return out
