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
        _require(len(params) == len(given["params"]), "there are fewer parameters than in the groups of the state")
        new_groups.append({**given, "params": params})
        for p, key in zip(params, given["params"]):
            state[p] = dict(saved.get(key, {}))
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


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(f"swap_in_optimizer_params_and_state: {text}")


def _checked(optimizer: Optimizer, given: Any) -> tuple[dict[Any, Any], list[dict[str, Any]]]:
    """The state and the groups of a saved state, if they fit an optimizer."""
    _require(bool(optimizer.state), "the optimizer has no state yet; make one step first")
    state: Any
    groups: Any
    state, groups = (given.get("state"), given.get("param_groups")) if isinstance(given, dict) else (None, None)
    _require(isinstance(state, dict) and isinstance(groups, list), f"the state is {type(given).__name__} and not that of state_dict()")
    shapes = [[len(group["params"]) for group in each if isinstance(group, dict) and isinstance(group["params"], list)]
              for each in (groups, optimizer.param_groups)]
    _require(shapes[0] == shapes[1], f"the groups of the state have {shapes[0]} parameters, and those of the optimizer {shapes[1]}")
    for i, (group, mine) in enumerate(zip(groups, optimizer.param_groups)):
        _require(set(group) == set(mine), f"group {i} has the options {sorted(group)}, and that of the optimizer {sorted(mine)}")
    numbers = {key for group in groups for key in group["params"] if isinstance(key, int)}
    _require(len(numbers) == sum(shapes[0]) and numbers.issuperset(state) and all(isinstance(value, dict) for value in state.values()),
             "its parameters are not numbered as by state_dict()")
    return state, groups
