"""An optimizer with other parameters and another state, for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Optimizer
from symgrad.system.restoring import restored

__all__ = ["swap_in_optimizer_params_and_state"]

_NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(optimizer: Optimizer, swapin_parameters: dict[str, Tensor],
                                       swapin_optim_state: dict[str, Any]) -> Iterator[None]:
    """Inside the `with` block an optimizer has other parameters, in the order of its own, and a state as `state_dict` gives it.

    Tensors of that state are changed in place by steps. Afterwards the optimizer is as it was.

    Raises RuntimeError for an optimizer without a state, and for what does not fit its groups.

    >>> import symgrad
    >>> x, y = (symgrad.tensor(1.0, requires_grad=True) for _ in range(2))
    >>> optimizer = symgrad.optim.SGD([x], lr=0.5, momentum=0.9)
    >>> x.grad = y.grad = symgrad.tensor(1.0)
    >>> optimizer.step()
    >>> with swap_in_optimizer_params_and_state(optimizer, {"y": y}, symgrad.optim.SGD([y], lr=0.25).state_dict()):
    ...     optimizer.step()
    >>> x, y
    (tensor(0.5000, requires_grad=True), tensor(0.7500, requires_grad=True))
    """
    saved, groups = _checked(optimizer, swapin_optim_state)
    replacements = iter(swapin_parameters.values())
    state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
    new_groups = []
    for given in groups:
        params = [p for _, p in zip(given["params"], replacements)]
        if len(params) < len(given["params"]):
            raise RuntimeError(f"{_NAME} requires the explicit parameter state to match optimizer.param_groups ordering.")
        new_groups.append({**given, "params": params})
        for p, key in zip(params, given["params"]):
            state[p] = dict(saved.get(key, {}))
    known = {key for given in groups for key in given["params"]}
    if extra := [key for key in saved if key not in known]:
        raise RuntimeError(f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from param_groups[*]['params']; "
                           f"got extra keys {extra!r}.")
    kept_state, kept_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]

    def restore() -> None:
        for group, kept in zip(optimizer.param_groups, kept_groups):
            group.clear()
            group.update(kept)
        optimizer.state = kept_state

    with restored(restore):
        for group, new in zip(optimizer.param_groups, new_groups):
            group.update(new)
        optimizer.state = state
        yield


def _checked(optimizer: Optimizer, given: Any) -> tuple[dict[Any, Any], list[dict[str, Any]]]:
    """The state and the groups of a saved state, if they fit an optimizer."""
    def require(condition: bool, text: str) -> None:
        if not condition:
            raise RuntimeError(text)

    require(bool(optimizer.state), f"{_NAME} requires initialized optimizer state.")
    require(isinstance(given, dict), f"{_NAME} requires a DCP-style optimizer state_dict.")
    state, groups = given.get("state"), given.get("param_groups")
    require(isinstance(state, dict), f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param state "
                                     f"dicts, got {type(state).__name__}.")
    require(not any(isinstance(key, Tensor) for key in state), f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids.")
    require(all(isinstance(value, dict) for key, value in state.items() if isinstance(key, int)),
            f"{_NAME} requires per-parameter optimizer state entries to be dictionaries.")
    require(isinstance(groups, list), f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, "
                                      f"got {type(groups).__name__}.")
    require(len(groups) == len(optimizer.param_groups), "swapin_optim_state has a different number of parameter groups than the live optimizer.")
    for i, (mine, group) in enumerate(zip(optimizer.param_groups, groups)):
        require(isinstance(group, dict), f"{_NAME} requires each optimizer param group to be a dictionary.")
        numbers = group.get("params")
        require(isinstance(numbers, list) and all(isinstance(n, int) for n in numbers),
                f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed parameter ids.")
        require(len(numbers) == len(mine["params"]),
                f"swapin_optim_state param group {i} has a different number of params than the live optimizer param group.")
        more, fewer = [key for key in group if key not in mine], [key for key in mine if key not in group]
        require(not more and not fewer, f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer "
                                        f"group keys for group {i}. Keys only in swap-in: {more}. Keys only in live: {fewer}.")
    return state, groups
