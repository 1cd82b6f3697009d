"""`Optimizer`: parameter groups with options, a state for each parameter, and the step of a subclass.

A step's rule is written once, with in-place arithmetic that NumPy arrays and Tensors share. It runs with arrays, without a graph; with
`differentiable` it runs with Tensors, so that the step itself can be differentiated.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import chain
from types import FrameType
from typing import Any

import numpy as np

from symgrad.autograd.engine import clear_gradients
from symgrad.autograd.modes import enable_grad
from symgrad.carriers import numeric
from symgrad.dtypes.dtype import dtype_of
from symgrad.engine.graph_breaks import constant_made
from symgrad.engine.storage.versions import stamp
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.handles import RemovableHandle, add_hook
from symgrad.system.errorstate import quietly
from symgrad.system.frames import user_frame
from symgrad.system.restoring import changed, restored

__all__ = ["Group", "Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required",
           "swap_in_optimizer_params_and_state"]

Group = dict[str, Any]
NOTHING: dict[str, Any] = {}  # the state of a parameter that has none
_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()  # those of all optimizers
_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


class _RequiredParameter:
    """The default of an option that each parameter group must have."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) before each step of any optimizer; it may return new args and kwargs."""
    return add_hook(_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) after each step of any optimizer."""
    return add_hook(_step_post_hooks, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` with the hooks around the outermost call; as in torch, the optimizer is also among their arguments."""
    @functools.wraps(step)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        self: Optimizer = args[0]
        if self._opt_called is False:
            self._opt_called = True
        if self._stepping or not (self._step_pre_hooks or self._step_post_hooks or _step_pre_hooks or _step_post_hooks):
            return step(*args, **kwargs)
        with changed(self, "_stepping", True):
            for hook in (*_step_pre_hooks.values(), *self._step_pre_hooks.values()):
                found = hook(self, args, kwargs)
                if found is not None:
                    if not (isinstance(found, tuple) and len(found) == 2):
                        raise RuntimeError(f"step: a hook returned {found!r}; return None, or a pair of new args and kwargs")
                    args, kwargs = found
            out = step(*args, **kwargs)
            for hook in (*self._step_post_hooks.values(), *_step_post_hooks.values()):
                hook(self, args, kwargs)
            return out

    return hooked


class Optimizer:
    """The base of every optimizer: it takes parameters, or groups of them with their own options, and the default options.

    A subclass has a rule `_update(xp, p, g, state, group)` that changes p in place, or its own `step`.

    Raises TypeError unless the parameters are an iterable of Tensors, ValueError if there are none, for non-leaves, and for duplicates.
    """

    defaults: Group
    param_groups: list[Group]
    _numbers: dict[str, Any] = {"step": 0}  # entries of the state that are numbers, with a dtype of their own; others have that of their parameter
    state: defaultdict[Tensor, dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = _with_hooks(cls.step)

    def __init__(self, params: Any, defaults: Group):
        if isinstance(params, Tensor):
            raise TypeError(f"{type(self).__name__}: params is one Tensor; give a list of them, or of dicts")
        self.defaults = defaults
        self._reset_hooks()
        self.state, self.param_groups = defaultdict(dict), []
        given = list(params)
        if not given:
            raise ValueError(f"{type(self).__name__}: params is empty; give at least one Tensor")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def _reset_hooks(self) -> None:
        self._step_pre_hooks, self._step_post_hooks, self._saving_hooks, self._saved_hooks, self._loading_hooks, self._loaded_hooks = (
            OrderedDict[int, Callable[..., Any]]() for _ in range(6))
        self._stepping = False
        self._opt_called: bool | None = None  # whether a step was made since there is a scheduler

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_stepping" not in self.__dict__:
            self._reset_hooks()
        off = {name: option.default for name, option in inspect.signature(type(self)).parameters.items() if not option.default}
        for group in self.param_groups:  # those of an older version lack options that it did not have
            group.update({name: off[name] for name in self.defaults if name in off and name not in group})

    def __repr__(self) -> str:
        groups = ["".join([f"\nParameter Group {i}\n", *(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")])
                  for i, group in enumerate(self.param_groups)]
        return f"{type(self).__name__} (" + "".join(groups) + ")"

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with their own options; other options have their defaults.

        Raises TypeError and ValueError like the constructor.
        """
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(f"{name}: a group is a {type(param_group).__name__}; give a dict with 'params'")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(f"{name}: the parameters are a set, which has no order; give a list")
        members = [params] if isinstance(params, Tensor) else list(params)
        param_group["params"] = members
        named = [isinstance(member, tuple) for member in members]
        if any(named):
            if not all(named):
                raise ValueError(f"{name}: some parameters have no name; give names to all or to none")
            param_group["param_names"] = [name for name, _ in members]
            param_group["params"] = members = [p for _, p in members]
        for p in members:
            self._check_parameter(p)
        for option, default in self.defaults.items():
            if default is required and option not in param_group:
                raise ValueError(f"{name}: a group has no {option}, which has no default; give it")
            param_group.setdefault(option, default)
        if len(set(members)) != len(members):
            warnings.warn(f"{name}: a group has the same parameter twice, and steps it twice. Give it once", UserWarning, stacklevel=3)
        if not set(chain.from_iterable(group["params"] for group in self.param_groups)).isdisjoint(members):
            raise ValueError(f"{name}: a parameter is in two groups; give it to one")
        if self.param_groups and ("param_names" in self.param_groups[0]) != ("param_names" in param_group):
            raise ValueError(f"{name}: some groups have names of their parameters; give names to all groups or to none")
        self.param_groups.append(param_group)

    def _check_parameter(self, p: Any) -> None:
        if not isinstance(p, Tensor):
            raise TypeError(f"{type(self).__name__}: a parameter is a {type(p).__name__}; give Tensors, or dicts of groups")
        if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
            raise ValueError(f"{type(self).__name__}: a parameter of shape {list(p.shape)} is no leaf; give the tensor that it was computed from")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradient of every parameter to None, or with `set_to_none=False` to zero, in place and detached."""
        clear_gradients(chain.from_iterable(group["params"] for group in self.param_groups), set_to_none)

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        """Change a parameter by its gradient, in place; the entries of `state` are changed in place or replaced."""
        raise NotImplementedError

    @_with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient, in place; a closure computes the loss and the gradients first, and its loss is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            with_gradient = [p for p in group["params"] if p.grad is not None]
            if group.get("differentiable"):
                with enable_grad():
                    for p in with_gradient:
                        self._update_graph(p, group)
            else:
                numbers = {name: self._constant(name, value) for name, value in group.items() if name != "params"}
                frame = user_frame(0)
                quietly(self._update_all, with_gradient, numbers, frame)
        return loss

    def _constant(self, name: str, value: Any) -> Any:
        """An option as a number, with a warning where a transform of `symgrad.func` differentiates by it."""
        if not isinstance(value, Tensor):
            return tuple([self._constant(name, x) for x in value]) if type(value) in (tuple, list) else value
        constant_made(value, f"the option {name} of {type(self).__name__} without differentiable=True")
        return value.item()

    def _update_graph(self, p: Tensor, group: Group) -> None:
        """Step one parameter with Tensors, so that the step is recorded; complex numbers are pairs of real ones."""
        def pairs(t: Tensor) -> Tensor:
            return traced.view_as_real(t) if t.is_complex() else t

        # The graph of earlier steps holds their state: this step gets a copy.
        state = {name: pairs(t.clone()) if isinstance(t, Tensor) else t for name, t in self.state[p].items()}
        self._update(traced, pairs(p), pairs(p.grad), state, group)  # type: ignore[arg-type]
        self.state[p] = {name: traced.view_as_complex(t) if p.is_complex() and isinstance(t, Tensor) and t.ndim else t for name, t in state.items()}

    def _update_all(self, params: Sequence[Tensor], numbers: Group, frame: FrameType) -> None:
        for p in params:
            self._update_arrays(p, numbers, frame)

    def _update_arrays(self, p: Tensor, group: Group, frame: FrameType) -> None:
        """Step one parameter with arrays; complex numbers are pairs of real ones. `frame` is that of the user's code."""
        old_state, array = self.state.get(p, NOTHING), p._array()
        split = _real_pairs if array.dtype.kind == "c" else np.asarray
        state = {name: split(t._array()) if isinstance(t, Tensor) else t for name, t in old_state.items()}
        self._update(numeric, split(array), split(p.grad._value), state, group)  # type: ignore[union-attr]
        for name, value in state.items():
            old = old_state.get(name)
            if not isinstance(old, Tensor):
                if value is not old:
                    value = np.asarray(value)
                    if name not in self._numbers and dtype_of(value.dtype).is_floating_point:
                        value = value.astype(split(array).dtype, copy=False)
                    self.state[p][name] = wrap(value.view(array.dtype)[..., 0] if split is _real_pairs and value.ndim else value)
            elif value is not old._value:
                split(old._value)[...] = value
        stamp(array, f"{type(self).__name__}.step", frame)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) before each step; it may return new args and kwargs."""
        return add_hook(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) after each step."""
        return add_hook(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer) before the state is saved; before the other hooks with `prepend`."""
        return add_hook(self._saving_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer, state_dict) when the state was saved; it may return another one."""
        return add_hook(self._saved_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer, state_dict) before a state is loaded; it may return another one."""
        return add_hook(self._loading_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer) when a state was loaded."""
        return add_hook(self._loaded_hooks, hook, prepend)

    def state_dict(self) -> dict[str, Any]:
        """The state, by the number of each parameter, and the options of the groups; the tensors are not copied."""
        for hook in tuple(self._saving_hooks.values()):
            hook(self)
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
        groups = [{**{key: value for key, value in group.items() if key != "params"}, "params": [numbers[id(p)] for p in group["params"]]}
                  for group in self.param_groups]
        saved = {"state": {numbers[id(p)] if isinstance(p, Tensor) else p: value for p, value in self.state.items()}, "param_groups": groups}
        for hook in tuple(self._saved_hooks.values()):
            changed = hook(self, saved)
            saved = saved if changed is None else changed
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a copy of a state returned by `state_dict`.

        Names of parameters in it take the place of those of the optimizer. Options that it lacks, as one of an older version does, are off.

        Raises ValueError if the groups have other numbers of parameters.
        """
        state_dict = dict(state_dict)
        for hook in tuple(self._loading_hooks.values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError(f"load_state_dict: the state has {len(saved)} parameter groups, and the optimizer {len(groups)}")
        for mine, given in zip(groups, saved):
            if len(mine["params"]) != len(given["params"]):
                raise ValueError(f"load_state_dict: a group of the state has {len(given['params'])} parameters, and that here {len(mine['params'])}")
        parameters = dict(zip(chain.from_iterable(given["params"] for given in saved), chain.from_iterable(mine["params"] for mine in groups)))
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in parameters:
                p = parameters[key]
                state[p] = {name: _restored(v, None if name in self._numbers else p) for name, v in value.items()}
            else:
                state[key] = deepcopy(value)
        for mine, given in zip(groups, saved):
            given["params"] = mine["params"]
            if "param_names" in mine:
                given.setdefault("param_names", mine["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in tuple(self._loaded_hooks.values()):
            hook(self)


def _restored(value: Any, p: Tensor | None) -> Any:
    """A copy of a saved value, with tensors in the dtype of a parameter."""
    if isinstance(value, list):
        return [_restored(v, p) for v in value]
    if not isinstance(value, Tensor):
        return deepcopy(value)
    value = value.detach().clone()
    return value if p is None or not p.is_floating_point() else value.to(p.dtype)


def _real_pairs(x: Any) -> Any:
    """Complex numbers as pairs of real ones along a new last axis, in the same memory."""
    return x[..., None].view(x.real.dtype) if x.dtype.kind == "c" else x


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
