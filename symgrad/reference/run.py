"""One recorded run of a function, from which reference values are computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.engine.graph_breaks import Escapes
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.graph.node import Leaf
from symgrad.reference.recorder import Part, RecordingCarrier


class Run:
    """One recorded run: its leaves, its (weighted) result, the values read from its graph as plain numbers, and the library's derivatives of it."""

    def __init__(self, leaves: list[Tensor], result: Tensor, shape: tuple[int, ...] | None, escapes: Escapes | None = None):
        self.leaves, self.result, self.shape = leaves, result, shape
        self.escapes = escapes or Escapes()

    @property
    def root(self) -> Any:
        return self.result._node

    @property
    def nodes(self) -> list[Leaf]:
        return [leaf._node for leaf in self.leaves]  # type: ignore[misc]

    def gradients(self, result: Any, create_graph: bool = False) -> list[Tensor]:
        """The gradient of a number, or of the sum of an array, by each leaf; zeros for a leaf that it does not depend on."""
        if not result.requires_grad:
            return [tensor(np.zeros_like(leaf.value)) for leaf in self.leaves]
        return list(grad(result, self.leaves, np.ones_like(result.value), retain_graph=True, create_graph=create_graph,
                         materialize_grads=True))

    def read(self, recorder: RecordingCarrier, values: Iterable[Any], order: int, pointwise: bool = False) -> Iterator[Part]:
        """The value and all derivatives up to an order by the library's rules in a carrier, at values of the leaves; see `partials`."""
        y, leaves = recorder.replayed(self.root, self.nodes, list(values))
        return recorder.partials(y, leaves, order, pointwise)

    def gradient(self) -> np.ndarray:
        return flat(self.gradients(self.result))

    def along(self, direction: np.ndarray, order: int) -> np.ndarray:
        """The flattened derivative of an order, contracted with the direction in all axes but one: for order 2, H u."""
        result = self.result
        for _ in range(order - 1):
            total: Any = 0
            at = 0
            for g in self.gradients(result, create_graph=True):
                part = direction[at:at + g.numel()].reshape(g.shape).astype(g.value.dtype)
                total, at = total + (g * tensor(part)).sum(), at + g.numel()
            result = total
        return flat(self.gradients(result))

    def derivatives(self, order: int) -> np.ndarray:
        """All derivatives of an order as an array with one axis per order, by one pullback per entry of the order below."""
        level: list[Any] = [self.result]
        for _ in range(order - 1):
            level = [g.reshape(-1)[i] for result in level for g in self.gradients(result, create_graph=True) for i in range(g.numel())]
        n = sum(leaf.numel() for leaf in self.leaves)
        return np.array([flat(self.gradients(result)) for result in level]).reshape((n,) * order)


def flat(tensors: Sequence[Tensor]) -> np.ndarray:
    """Several tensors as one vector of floats."""
    return np.concatenate([np.ravel(t.value).astype(np.float64) for t in tensors]) if tensors else np.zeros(0)
