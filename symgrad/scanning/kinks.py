"""The table of kinks and ties, generated from the declarations of the ops: what an op returns where a derivative does not exist, or is a limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.diagnose.kinks.switches import CONVENTIONS
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY, Op
from symgrad.graph.order import upstream
from symgrad.reports.numbers import number

__all__ = ["KinkEntry", "kink_table", "kinks_of"]


@dataclass
class KinkEntry:
    """A call of an op at a kink: the last element of its value, the gradient of that element, and the gradients of the gradient's elements.

    `gradient` has an array for each tensor argument, and `second` a row for each element of the gradient, and a column for each element of the
    tensor arguments; None where the second derivative is refused. `convention` is how the derivative was decided, by the ops that were recorded.
    """

    op: str
    at: tuple[Any, ...]
    value: float
    gradient: tuple[np.ndarray, ...]
    second: np.ndarray | None
    convention: str


def kinks_of(op: Op) -> list[KinkEntry]:
    """The calls that an op declares as `kinks`, with what is returned there.

    >>> (entry,) = kinks_of(REGISTRY["relu"])
    >>> entry.at, entry.gradient, entry.convention
    ((0.0,), (array(0.),), 'the derivative of least norm: 0')
    """
    return [_entry(op, call) for call in op.docs.kinks]


def _entry(op: Op, call: tuple[Any, ...]) -> KinkEntry:
    tensors = op.arity or 1
    args = [_leaf(a) if i < tensors and isinstance(a, (float, list)) else a for i, a in enumerate(call)]
    leaves = [a for a in args if isinstance(a, Tensor)]
    with np.errstate(all="ignore"):
        result = getattr(traced, op.name)(*args)
        y = (result if isinstance(result, Tensor) else next(r for r in result if r.requires_grad)).reshape(-1)[-1]
        convention = _convention(op, y)
        gradient = _gradient(y, leaves)
        try:
            second = np.array([_flat(_gradient(e, leaves)) for g in gradient for e in g.reshape(-1)])
        except RuntimeError:  # vectors of equal values
            second = None
    return KinkEntry(op.name, call, y.item(), tuple(np.array(g.detach().numpy()) for g in gradient), second, convention)


def _leaf(x: Any) -> Tensor:
    return wrap(np.array(x)).requires_grad_()


def _gradient(y: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    if not y.requires_grad:
        return tuple(wrap(np.zeros(x.shape)) for x in leaves)
    return grad(y, leaves, create_graph=True, allow_unused=True, materialize_grads=True)


def _flat(gradient: tuple[Tensor, ...]) -> np.ndarray:
    return np.concatenate([g.detach().numpy().reshape(-1) for g in gradient])


def _convention(op: Op, y: Tensor) -> str:
    """The convention of the op, or of the first op that its value was computed with and that has one."""
    path = upstream([] if y._node is None else [y._node])
    names = [getattr(getattr(node, "op", None), "name", "") for node in reversed(path)]
    return next((CONVENTIONS[name] for name in (*names, op.name) if name in CONVENTIONS), "the limit, or the op's own formula")


def kink_table(names: Sequence[str] = ()) -> str:
    """The declared kinks of all ops, or of some by name, as a table in Markdown. Raises ValueError for an unknown name."""
    unknown = [name for name in names if name not in REGISTRY]
    if unknown:
        raise ValueError(f"ops: {', '.join(unknown)}: there is no such op; `symgrad ops` lists all")
    lines = ["| op | at | value | gradient | second derivatives | by |", "|---|---|---|---|---|---|"]
    for name in sorted(names or (n for n, op in REGISTRY.items() if op.surface.public or n.startswith("linalg_"))):
        for e in kinks_of(REGISTRY[name]):
            at = ", ".join(map(_text, e.at))
            second = "refused" if e.second is None else _text(e.second.tolist()) if e.second.any() else "0"
            lines.append(f"| `{name.replace('linalg_', 'linalg.')}` | {at} | {_number(e.value)} | "
                         f"{', '.join(_text(g.tolist()) for g in e.gradient)} | {second} | {e.convention} |")
    return "\n".join(lines)


def _text(x: Any) -> str:
    return f"[{', '.join(map(_text, x))}]" if isinstance(x, list) else _number(x) if isinstance(x, float) else repr(x)


def _number(x: float) -> str:
    return str(x) if not math.isfinite(x) else number(x + 0.0)
