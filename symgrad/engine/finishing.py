"""The last step of an op: the Tensor of a value, with its node."""

from __future__ import annotations

from typing import Any

from symgrad.engine.inference import recorded
from symgrad.engine.operands import Lifted
from symgrad.engine.tensor import Tensor
from symgrad.graph.closures import blanks
from symgrad.graph.modes import special, thread
from symgrad.graph.node import BARRED, NAMED, TRACKED, constructor, node_class
from symgrad.graph.op import Op

tensors = blanks(Tensor)


def finishing(op: Op) -> Lifted:
    """The last step of an op: the Tensor of a value, with its node."""
    make, mask = constructor(node_class(op)), TRACKED if op.differentiable else NAMED

    def finish(args: tuple, parents: tuple, y: Any, flags: int) -> Tensor:
        out = next(tensors)
        out._value, out._node_slot, out._view = y, None, None
        flags &= mask
        if flags and (not special or thread.modes.plain):
            out._node_slot = make(args, parents, y, flags)
        elif special or flags is BARRED:
            out._node_slot = recorded(op, args, parents, y)
        return out

    return finish
