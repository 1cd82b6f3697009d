"""What can be asked of the tensors of a program, as data that two libraries can be compared by."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

from .asked import dtype_name, flat
from .steps import World


@dataclass
class Seen:
    """What can be asked of one tensor, as comparable data."""

    facts: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, list[float]] = field(default_factory=dict)


def look(world: World, closely: bool) -> dict[str, Seen]:
    """Everything about the tensors of a world; `closely` includes what makes torch bring a view's history up to date."""
    names: dict[int, list[str]] = {}
    for name, t in world.tensors.items():
        names.setdefault(id(t), []).append(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: _look(name, t, world.offsets[name], names, closely) for name, t in world.tensors.items()}


def _look(name: str, t: Any, first: int, names: dict[int, list[str]], closely: bool) -> Seen:
    shape, base, view, inference = tuple(t.shape), t._base, t._is_view(), t.is_inference()
    floats, empty = t.is_floating_point() or t.is_complex(), 0 in shape
    facts = {
        "shape": shape, "requires_grad": t.requires_grad, "_is_view()": view, "dtype": dtype_name(t), "is_inference()": inference and floats,
        "_version": _asked(lambda: t._version - first) if floats and not inference else None,
        "stride()": None if empty else [s if n > 1 else None for n, s in zip(shape, t.stride())],
        "storage_offset()": None if empty else t.storage_offset(),
        "_base": None if base is None else names.get(id(base), []), "is": names[id(t)], "retains_grad": t.retains_grad,
    }
    numbers = {"values": flat(t)}
    if closely:
        facts["is_leaf"] = _asked(lambda: t.is_leaf)
        facts["grad_fn"] = _asked(lambda: None if t.grad_fn is None else type(t.grad_fn).__name__)
        facts["output_nr"] = _asked(lambda: t.output_nr)
    if closely or not view:
        g = _asked(lambda: t.grad)
        facts["grad"] = g
        if g is not None and not isinstance(g, str):
            facts["grad"], numbers["grad"] = tuple(g.shape), flat(g)
    return Seen(facts, numbers)


def _asked(question: Any) -> Any:
    try:
        return question()
    except RuntimeError as e:
        return "raises INTERNAL ASSERT" if "INTERNAL ASSERT" in str(e) else "raises"
