"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.system.restoring import restored

__all__ = ["functional_call", "stack_module_state"]

Exchange = list[tuple[dict[str, Any], str, Any]]


def _tensor_slots(module: Any) -> dict[str, tuple[dict[str, Any], str]]:
    """For the full name of each parameter and buffer of a module its table and key; tied ones appear under each of their names."""
    out = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            for name in table:
                out[f"{prefix}.{name}" if prefix else name] = table, name
    return out


def _merge_dicts(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, Mapping):
        return dict(dicts)
    if not isinstance(dicts, Sequence) or not all(isinstance(d, Mapping) for d in dicts):
        raise ValueError(f"functional_call: the tensors must be a dict, or several, not {type(dicts).__name__}")
    out: dict[str, Any] = {}
    for d in dicts:
        for key in d:
            if key in out:
                raise ValueError(f"functional_call: {key!r} is in several dicts")
        out.update(d)
    return out


def _replacements(module: Any, given: dict[str, Any], tie_weights: bool, strict: bool) -> tuple[Exchange, Exchange]:
    """The replacements in a module: each table and key with the module's own tensor, and with the tensor that replaces it."""
    places = _tensor_slots(module)
    unknown = [name for name in given if name not in places]
    missing = [name for name, (table, key) in places.items() if name not in given and table[key] is not None] if strict else []
    if strict and (unknown or missing):
        problems = [f"{len(found)} {word} key(s) {', '.join(map(repr, found))}" for word, found in (("unexpected", unknown), ("missing", missing))
                if found]
        raise RuntimeError(f"functional_call: {' and '.join(problems)} for a {type(module).__name__}; the names are those of named_parameters() and "
                           f"named_buffers()")
    if unknown:
        raise KeyError(f"functional_call: {type(module).__name__} has no parameter or buffer {unknown[0]!r}; it has {', '.join(places)}")
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"functional_call: {name!r} must be a Tensor, not {type(value).__name__}")
    chosen = dict(given)
    if tie_weights:
        own = {id(places[name][0][places[name][1]]): value for name, value in given.items()}
        for name, (table, key) in places.items():
            if table[key] is not None and id(table[key]) in own:
                chosen.setdefault(name, own[id(table[key])])
    return [(*places[name], places[name][0][places[name][1]]) for name in chosen], [(*places[name], value) for name, value in chosen.items()]


def _set_tensors(places: Exchange) -> None:
    for table, name, tensor in places:
        table[name] = tensor


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Call a module with other tensors in place of its parameters and buffers: module(*args; θ), differentiable by θ.

    `parameter_and_buffer_dicts` maps the names of `named_parameters` and `named_buffers` to tensors; others are unchanged. A sequence of
    such dicts may be given. With `tie_weights`, tied parameters stay tied. `strict` requires exactly the names of the module.

    Raises KeyError for an unknown name, RuntimeError for wrong names in strict mode, TypeError for values that are not tensors, and ValueError for
    a name in several dicts.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = nn.Linear(2, 1, dtype=symgrad.float64)
    >>> weights = {"weight": symgrad.tensor([[1.0, 2.0]]), "bias": symgrad.zeros(1)}
    >>> x = symgrad.tensor([3.0, 4.0])
    >>> symgrad.func.functional_call(layer, weights, (x,))
    tensor([11.])
    >>> symgrad.func.grad(lambda w: symgrad.func.functional_call(layer, w, (x,)).sum())(weights)["weight"]
    tensor([[3., 4.]])
    """
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    own, others = _replacements(module, _merge_dicts(parameter_and_buffer_dicts), tie_weights, strict)
    with restored(partial(_set_tensors, own), partial(_set_tensors, others)):
        return module(*given, **(kwargs or {}))


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one architecture, stacked along a new first dimension: for `vmap` over an ensemble.

    Raises RuntimeError for an empty sequence, for modules of different classes, and for a mixture of training and evaluation mode.

    >>> from symgrad import nn
    >>> from symgrad.func import stack_module_state
    >>> parameters, buffers = stack_module_state([nn.Linear(2, 3), nn.Linear(2, 3)])
    >>> parameters["weight"].shape, buffers
    (torch.Size([2, 3, 2]), {})
    """
    if len({(type(m), m.training) for m in models}) != 1:
        raise RuntimeError(f"stack_module_state: the {len(models)} modules must be of one class and in one mode, and there must be one at least")
    stacked = []
    for kind in ("named_parameters", "named_buffers"):
        rows = [dict(getattr(m, kind)()) for m in models]
        out = {}
        for name, first in rows[0].items():
            joined = traced.stack([row[name].detach() for row in rows], 0)
            out[name] = joined.requires_grad_() if first.requires_grad else joined
        stacked.append(out)
    return stacked[0], stacked[1]
