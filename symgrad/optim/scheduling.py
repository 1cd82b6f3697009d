"""`LRScheduler`, the base of every schedule of learning rates, and schedules that are made of others or follow a measured quantity."""

from __future__ import annotations

import types
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from symgrad.arguments import check_option
from symgrad.engine.tensor import Tensor
from symgrad.optim.declared import options_given, signature_of
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.system.restoring import restored

Rates = list[Any]

_EPOCH = "step: epoch is deprecated, and takes the closed form of the schedule where there is one. Call step() once in each epoch"


def _options(optimizer: Optimizer, name: str) -> list[Any]:
    """The option of each group; tensors are copied."""
    return [value.clone() if isinstance(value := group[name], Tensor) else value for group in optimizer.param_groups]


def set_option(group: Group, name: str, value: Any) -> None:
    """Set an option of a group; the number in a tensor is overwritten."""
    if isinstance(group[name], Tensor):
        group[name].fill_(float(value))
    else:
        group[name] = value


def for_each_group(name: str, optimizer: Optimizer, given: Any) -> list[Any]:
    """An option for each group: those of a list, or one for all.

    Raises ValueError for a list of another length.
    """
    groups = optimizer.param_groups
    if not isinstance(given, (list, tuple)):
        given = [given] * len(groups)
    elif len(given) != len(groups):
        raise ValueError(f"{name} has {len(given)} values; give one, or one for each of the {len(groups)} groups of the optimizer")
    return [value.clone() if isinstance(value, Tensor) else value for value in given]


def check_optimizer(optimizer: Any) -> None:
    """Raise TypeError for what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"a schedule needs an Optimizer, and not {optimizer!r}")


class LRScheduler:
    """The base of schedules: `step` counts an epoch and sets the learning rate of each group to what `get_lr` computes.

    A subclass has `get_lr`, and may have `_get_closed_form_lr`, which is called by `step(epoch)`. A schedule that goes on after the epoch
    `last_epoch` needs the option `initial_lr` in every group.

    Raises TypeError for what is no optimizer, and KeyError without `initial_lr`.
    """

    optimizer: Optimizer
    base_lrs: Rates
    last_epoch: int
    _last_lr: Rates
    _step_count: int
    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"].clone() if isinstance(group["lr"], Tensor) else group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"{type(self).__name__}: last_epoch={last_epoch} needs 'initial_lr' in group {i}. Load the optimizer's state first")
        self.base_lrs = _options(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        if optimizer._opt_called is None:
            optimizer._opt_called = False
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with self._flag("_is_initial"):
            self.step()

    def _flag(self, name: str) -> AbstractContextManager[None]:
        return restored(partial(setattr, self, name, False), partial(setattr, self, name, True))

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the attributes that `state_dict` returned."""
        vars(self).update(state_dict)

    def get_last_lr(self) -> Rates:
        """The learning rate of each group that was set last."""
        return self._last_lr

    def get_lr(self) -> Rates:
        """The learning rate of each group in this epoch, from those in the last one."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Count an epoch, or go to one, and set the learning rates."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(f"{type(self).__name__}: the first learning rate is skipped. Call optimizer.step() first", UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(_EPOCH, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._flag("_get_lr_called_within_step"):
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = getattr(self, "_get_closed_form_lr", None) if epoch is not None else None
            self._set(closed() if closed is not None else self.get_lr())

    def _set(self, rates: Rates) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", rate)
        self._last_lr = _options(self.optimizer, "lr")


EXAMPLE = """
    >>> import symgrad
    >>> optimizer = symgrad.optim.SGD([symgrad.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = symgrad.optim.{}.{}(optimizer, {})
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    {}
    """


class Schedule(LRScheduler):
    """A schedule of this library: it warns where `get_lr` is called by hand, and has `_rates` in its place.

    Its attributes are those in `_options`, with their defaults, unless it has a constructor of its own; the constructor also takes `last_epoch`.
    `_example` has options of a call for the documentation, and the first four learning rates.
    """

    _options: dict[str, Any] = {}
    _example: tuple[str, str]
    _signature = signature_of("optimizer", {"last_epoch": -1})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_options" in vars(cls):
            cls._signature = cls.__signature__ = signature_of("optimizer", {**cls._options, "last_epoch": -1})  # type: ignore[attr-defined]
        elif "__init__" in vars(cls):
            cls._signature = Schedule._signature
            cls.__signature__ = None  # type: ignore[attr-defined]  # of the constructor, for `inspect`
        if "_example" in vars(cls):
            module = cls.__module__.rpartition(".")[2].replace("cycles", "lr_scheduler")
            cls.__doc__ = f"{cls.__doc__}{EXAMPLE.format(module, cls.__name__, *cls._example)}"

    def __init__(self, optimizer: Optimizer, *args: Any, **kwargs: Any):
        options = options_given(self, optimizer, args, kwargs)
        last_epoch = options.pop("last_epoch")
        del options["optimizer"]
        self._prepare(options)
        vars(self).update(options)
        super().__init__(optimizer, last_epoch)

    def _prepare(self, options: dict[str, Any]) -> None:
        """Check the options, and complete them."""

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...  # the options

    def get_lr(self) -> Rates:
        if not self._get_lr_called_within_step:
            warnings.warn(f"{type(self).__name__}.get_lr computes the next learning rate. Call get_last_lr() for the last", UserWarning, stacklevel=2)
        return self._rates()

    def _rates(self) -> Rates:
        raise NotImplementedError

    def _unchanged(self) -> Rates:
        return _options(self.optimizer, "lr")

    def _times(self, factor: float) -> Rates:
        return [group["lr"] * factor for group in self.optimizer.param_groups]


def without_functions(functions: Iterable[Any]) -> list[Any]:
    """What is saved of functions: the attributes of objects that can be called, and None for plain functions."""
    return [None if isinstance(f, types.FunctionType) else vars(f).copy() for f in functions]


def _check_members(name: str, schedulers: Sequence[Any], optimizer: Any) -> None:
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name}: schedule {i} is {scheduler!r}, which has no optimizer")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(f"{name}: schedule {i} is a ReduceLROnPlateau, whose step needs a quantity. Call it beside this schedule")
        if optimizer is not scheduler.optimizer:
            raise ValueError(f"{name}: schedule {i} has another optimizer than this one. Give schedules of one optimizer")


class _OfSchedulers(LRScheduler):
    """A schedule made of others, whose states are saved with it."""

    _schedulers: Any

    def state_dict(self) -> dict[str, Any]:
        state = {name: value for name, value in super().state_dict().items() if name != "_schedulers"}
        return {**state, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)


class SequentialLR(_OfSchedulers):
    """One schedule after the other: the i-th ends, and the next begins at its epoch 0, in epoch milestones[i].

    Raises ValueError and TypeError for schedulers without, or with another, optimizer, for `ReduceLROnPlateau`, and for another number of milestones.

    >>> import symgrad
    >>> from symgrad.optim import lr_scheduler
    >>> optimizer = symgrad.optim.SGD([symgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> first, then = lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2), lr_scheduler.ExponentialLR(optimizer, gamma=0.25)
    >>> scheduler = lr_scheduler.SequentialLR(optimizer, [first, then], milestones=[2])
    >>> for _ in range(4):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [0.5]
    [0.5]
    [1.0]
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1):
        name = type(self).__name__
        if len(schedulers) != len(milestones) + 1:
            raise ValueError(f"{name}: there are {len(schedulers)} schedules and {len(milestones)} milestones; give one milestone less")
        _check_members(name, schedulers, optimizer)
        self._schedulers, self._milestones, self.last_epoch, self.optimizer = schedulers, milestones, last_epoch + 1, optimizer
        for group in optimizer.param_groups:
            set_option(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take the first step of every member back."""
        scheduler = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for member in scheduler._schedulers:
                self.recursive_undo(member)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Count an epoch with the schedule that it belongs to."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_OfSchedulers):
    """Schedules that change the learning rates one after the other in every step, so that their factors multiply.

    Raises ValueError and TypeError for schedulers without, or with another, optimizer, and for `ReduceLROnPlateau`.

    >>> import symgrad
    >>> from symgrad.optim import lr_scheduler
    >>> optimizer = symgrad.optim.SGD([symgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> halved, in_steps = lr_scheduler.ExponentialLR(optimizer, gamma=0.5), lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.25)
    >>> scheduler = lr_scheduler.ChainedScheduler([halved, in_steps])
    >>> for _ in range(3):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [1.0]
    [0.5]
    [0.0625]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name}: there is no schedule; give at least one")
        optimizer = optimizer or schedulers[0].optimizer
        _check_members(name, schedulers, optimizer)
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = _options(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Count an epoch with every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _options(self.optimizer, "lr")


class ReduceLROnPlateau(LRScheduler):
    """Learning rates are multiplied by `factor` when a quantity has not become better for more than `patience` epochs.

    `step` gets the quantity. It is better if it is less than best (1 - threshold), or than best - threshold with threshold_mode="abs"; greater
    than best (1 + threshold) or best + threshold with mode="max". For `cooldown` epochs after a reduction nothing is counted. A
    learning rate does not fall below `min_lr`, and is not changed by less than `eps`.

    Raises ValueError for a factor of 1 or more, for unknown modes and for another number of `min_lr`; TypeError for what is no optimizer.

    >>> import symgrad
    >>> optimizer = symgrad.optim.SGD([symgrad.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = symgrad.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (2.0, 1.0, 1.0, 1.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
                 threshold_mode: str = "rel", cooldown: int = 0, min_lr: list[float] | float = 0, eps: float = 1e-8):
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor is {factor}; it must be less than 1")
        check_optimizer(optimizer)
        self.factor, self.optimizer = factor, optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = for_each_group("min_lr", optimizer, min_lr)
        self.patience, self.cooldown, self.eps, self.last_epoch = patience, cooldown, eps, 0
        self._last_lr = _options(optimizer, "lr")
        self._choose(mode, threshold, threshold_mode)
        self._reset()

    def _choose(self, mode: str, threshold: float, threshold_mode: str) -> None:
        check_option("ReduceLROnPlateau", "mode", mode, ("min", "max"), ValueError)
        check_option("ReduceLROnPlateau", "threshold_mode", threshold_mode, ("rel", "abs"), ValueError)
        self.mode_worse = float("inf") if mode == "min" else -float("inf")
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode

    def _reset(self) -> None:
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    @property
    def in_cooldown(self) -> bool:
        """Whether nothing is counted, because the learning rates were reduced a short time ago."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        limit = best * (1.0 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return value < limit if self.mode == "min" else value > limit

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Count an epoch in which the quantity has the value `metrics`."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(_EPOCH, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = _options(self.optimizer, "lr")

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(f"ReduceLROnPlateau: there are {len(groups)} groups and {len(self.min_lrs)} of min_lrs. Set min_lrs anew")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_option(group, "lr", new)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._choose(self.mode, self.threshold, self.threshold_mode)
