"""Schedules of learning rates, with torch's names, options and results. `step` is called after the steps of the optimizer, once in each epoch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from typing import Any

from symgrad.optim.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from symgrad.optim.optimizer import Optimizer, required
from symgrad.optim.scheduling import ChainedScheduler, LRScheduler, Rates, ReduceLROnPlateau, Schedule, SequentialLR, without_functions

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler",
           "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]

_LRScheduler = LRScheduler  # its former name
Functions = Callable[[int], float] | list[Callable[[int], float]]


class _OfFunctions(Schedule):
    """A schedule with a function of the epoch for each group, whose state has the attributes of those that are objects."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Functions, last_epoch: int = -1):
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"{type(self).__name__}: there are {len(self.lr_lambdas)} functions; give one, or one for each of the {groups} groups")
        if wrong := [function for function in self.lr_lambdas if not callable(function)]:
            raise TypeError(f"{type(self).__name__}: {wrong[0]!r} is no function")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "lr_lambdas": without_functions(self.lr_lambdas)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if attributes is not None:
                vars(function).update(attributes)


class LambdaLR(_OfFunctions):
    """The initial learning rate times a function of the epoch; one function for all groups, or a list of them.

    Raises ValueError for another number of functions.
    """

    _example = "lambda epoch: 0.5**epoch", "[1.0, 0.5, 0.25, 0.125]"

    def _rates(self) -> Rates:
        return [base * function(self.last_epoch) for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_OfFunctions):
    """The learning rate is multiplied by a function of the epoch in each step; one function for all groups, or a list of them.

    Raises ValueError for another number of functions, and TypeError for what is no function.
    """

    _example = "lambda epoch: 0.5", "[1.0, 0.5, 0.25, 0.125]"

    def _rates(self) -> Rates:
        if self._is_initial:
            return self._unchanged()
        return [group["lr"] * function(self.last_epoch) for function, group in zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)]


class StepLR(Schedule):
    """The learning rate is multiplied by gamma every `step_size` epochs."""

    _example = "step_size=2, gamma=0.5", "[1.0, 1.0, 0.5, 0.5]"
    _options = {"step_size": required, "gamma": 0.1}

    def _rates(self) -> Rates:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._unchanged()
        return self._times(self.gamma)

    def _get_closed_form_lr(self) -> Rates:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(Schedule):
    """The learning rate is multiplied by gamma in each of the epochs `milestones`."""

    _example = "milestones=[1, 3], gamma=0.5", "[1.0, 0.5, 0.5, 0.25]"
    _options = {"milestones": required, "gamma": 0.1}

    def _prepare(self, options: dict[str, Any]) -> None:
        options["milestones"] = Counter(options["milestones"])

    def _rates(self) -> Rates:
        if self.last_epoch not in self.milestones:
            return self._unchanged()
        return self._times(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> Rates:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(Schedule):
    """The learning rate is multiplied by `factor` until the epoch `total_iters`.

    Raises ValueError for a factor outside [0, 1].
    """

    _example = "factor=0.5, total_iters=2", "[0.5, 0.5, 1.0, 1.0]"
    _options = {"factor": 1.0 / 3, "total_iters": 5}

    def _prepare(self, options: dict[str, Any]) -> None:
        if not 0 <= options["factor"] <= 1:
            raise ValueError(f"ConstantLR: factor is {options['factor']}; it must be in [0, 1]")

    def _rates(self) -> Rates:
        if self.last_epoch == 0:
            return self._times(self.factor)
        return self._unchanged() if self.last_epoch != self.total_iters else self._times(1.0 / self.factor)

    def _get_closed_form_lr(self) -> Rates:
        return [base * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(Schedule):
    """The learning rate is multiplied by a factor that goes from `start_factor` to `end_factor` along a line, in `total_iters` epochs.

    Raises ValueError for a start_factor outside (0, 1], or an end_factor outside [0, 1].
    """

    _example = "start_factor=0.5, total_iters=2", "[0.5, 0.75, 1.0, 1.0]"
    _options = {"start_factor": 1.0 / 3, "end_factor": 1.0, "total_iters": 5}

    def _prepare(self, options: dict[str, Any]) -> None:
        if not (0 < options["start_factor"] <= 1 and 0 <= options["end_factor"] <= 1):
            raise ValueError(f"LinearLR: the factors are {options['start_factor']} and {options['end_factor']}; they must be in (0, 1] and [0, 1]")

    def _rates(self) -> Rates:
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        difference = self.end_factor - self.start_factor
        return self._times(1.0 + difference / (self.total_iters * self.start_factor + (self.last_epoch - 1) * difference))

    def _get_closed_form_lr(self) -> Rates:
        passed = min(self.total_iters, self.last_epoch)
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * passed / self.total_iters) for base in self.base_lrs]


class ExponentialLR(Schedule):
    """The learning rate is multiplied by gamma in every epoch."""

    _example = "gamma=0.5", "[1.0, 0.5, 0.25, 0.125]"
    _options = {"gamma": required}

    def _rates(self) -> Rates:
        return self._unchanged() if self._is_initial else self._times(self.gamma)

    def _get_closed_form_lr(self) -> Rates:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(Schedule):
    """The initial learning rate times (1 - n / total_iters)^power in epoch n, and 0 from the epoch `total_iters` on."""

    _example = "total_iters=4", "[1.0, 0.75, 0.5, 0.25]"
    _options = {"total_iters": 5, "power": 1.0}

    def _rates(self) -> Rates:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        now, before = (1.0 - n / self.total_iters for n in (self.last_epoch, self.last_epoch - 1))
        return self._times((now / before) ** self.power)

    def _get_closed_form_lr(self) -> Rates:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(Schedule):
    """eta_min + ½ (lr - eta_min)(1 + cos(π n / T_max)) in epoch n, with the initial learning rate lr.

    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2016.
    """

    _example = "T_max=2, eta_min=0.5", "[1.0, 0.75, 0.5, 0.75]"
    _options = {"T_max": required, "eta_min": 0.0}

    def _rates(self) -> Rates:
        n, half, least = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._unchanged()
        if self._step_count == 1 and n > 0:
            return self._get_closed_form_lr()
        if (n - 1 - half) % (2 * half) == 0:  # the learning rate was the least one, and its ratio to that cannot be used
            return [group["lr"] + (base - least) * (1 - math.cos(math.pi / half)) / 2
                    for base, group in zip(self.base_lrs, self.optimizer.param_groups, strict=True)]
        ratio = (1 + math.cos(math.pi * n / half)) / (1 + math.cos(math.pi * (n - 1) / half))
        return [ratio * (group["lr"] - least) + least for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> Rates:
        return [self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2 for base in self.base_lrs]
