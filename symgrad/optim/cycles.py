"""Schedules in which the learning rate goes up and down: cycles, one cycle, and warm restarts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from symgrad.arguments import check_option
from symgrad.optim.optimizer import Group, Optimizer
from symgrad.optim.scheduling import Rates, Schedule, check_optimizer, for_each_group, set_option, without_functions


class _WithMomentum(Schedule):
    """A schedule in which the momentum of the optimizer, or its β₁, goes down where the learning rate goes up."""

    def _begin(self, base: Any, largest: Any, first: bool) -> tuple[list[Any], list[Any]]:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(f"{type(self).__name__}: the optimizer has no momentum or betas. Give cycle_momentum=False")
        self.use_beta1 = "betas" in defaults
        bases, most = for_each_group("base_momentum", self.optimizer, base), for_each_group("max_momentum", self.optimizer, largest)
        if first:
            for group, low, high in zip(self.optimizer.param_groups, bases, most):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return bases, most

    def _set_momentum(self, group: Group, momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """The learning rate goes from base_lr to max_lr in `step_size_up` steps and back in `step_size_down`, again and again.

    The height of a cycle is multiplied by 1 with mode="triangular", by 1/2 for each cycle with "triangular2", by gammaⁿ in step n with "exp_range";
    or by scale_fn(cycle), or scale_fn(n) with scale_mode="iterations". With `cycle_momentum` the momentum, or β₁, goes the other way between
    base_momentum and max_momentum.

    Raises ValueError for another mode without `scale_fn`, for lists of another length than that of the groups, and where there is no momentum;
    TypeError for what is no optimizer.

    Source: Smith, Cyclical Learning Rates for Training Neural Networks, 2015.
    """

    _example = "base_lr=0.25, max_lr=1.25, step_size_up=4", "[0.25, 0.5, 0.75, 1.0]"

    def __init__(self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float], step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None,
                 scale_mode: str = "cycle", cycle_momentum: bool = True, base_momentum: float | list[float] = 0.8,
                 max_momentum: float | list[float] = 0.9, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups):
                set_option(group, "lr", rate)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: mode is {mode!r}; give 'triangular', 'triangular2', 'exp_range', or a scale_fn")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._begin(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The factor of the height of cycle x, or in step x."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": lambda: 1.0, "triangular2": lambda: 1 / 2.0 ** (x - 1), "exp_range": lambda: self.gamma**x}[self.mode]()

    def _rates(self) -> Rates:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        scale = self._scale_fn_custom
        return {**super().state_dict(), "_scale_fn_custom": None if scale is None else without_functions([scale])[0]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])


class OneCycleLR(_WithMomentum):
    """The learning rate goes from max_lr / div_factor to max_lr in the first part of all steps, and then down by a further `final_div_factor`.

    The first part is `pct_start` of total_steps, or of epochs times steps_per_epoch; with `three_phase` the second is of the same length and ends at
    the initial learning rate. The way is that of a cosine, or a line with anneal_strategy="linear". With `cycle_momentum` the momentum, or β₁, goes
    the other way between max_momentum and base_momentum.

    Raises ValueError for options out of their range, for lists of another length than that of the groups, where there is no momentum, and in the step
    after the last one; TypeError for what is no optimizer.

    Source: Smith and Topin, Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates, 2017.
    """

    _example = "max_lr=1.0, total_steps=10, div_factor=4.0, anneal_strategy='linear'", "[0.25, 0.625, 1.0, 0.8571464285714285]"

    def __init__(self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None, epochs: int | None = None,
                 steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True,
                 base_momentum: float | list[float] = 0.85, max_momentum: float | list[float] = 0.95, div_factor: float = 25.0,
                 final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is not None:
            counts = {"total_steps": total_steps}
        elif epochs is not None and steps_per_epoch is not None:
            counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        else:
            raise ValueError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
        for name, value in counts.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"OneCycleLR: {name} is {value}; it must be a positive integer")
        self.total_steps = math.prod(counts.values())
        first, last = float(pct_start * self.total_steps) - 1, self.total_steps - 1
        up, down = ("initial_lr", "max_lr", "max_momentum", "base_momentum"), ("max_lr", "min_lr", "base_momentum", "max_momentum")
        if three_phase:
            phases: list[Any] = [(first, *up), (float(2 * pct_start * self.total_steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                                 (last, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            phases = [(first, *up), (last, *down)]
        self._schedule_phases = [dict(zip(("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum"), phase)) for phase in phases]
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"OneCycleLR: pct_start is {pct_start}; it must be a float in [0, 1]")
        check_option("OneCycleLR", "anneal_strategy", anneal_strategy, ("cos", "linear"), ValueError)
        self._anneal_func_type = anneal_strategy
        largest = for_each_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, largest):
                group["initial_lr"], group["max_lr"] = rate / div_factor, rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def _rates(self) -> Rates:
        n = self.last_epoch
        if n > self.total_steps:
            raise ValueError(f"OneCycleLR: this is step {n}, and there are {self.total_steps}; give more total_steps")
        i = next((i for i, phase in enumerate(self._schedule_phases) if n <= phase["end_step"]), len(self._schedule_phases) - 1)
        phase, start = self._schedule_phases[i], self._schedule_phases[i - 1]["end_step"] if i else 0.0
        part = (n - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                self._set_momentum(group, self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], part))
        return rates


class CosineAnnealingWarmRestarts(Schedule):
    """eta_min + ½ (lr - eta_min)(1 + cos(π n / T)) in epoch n of a period of T epochs; each is T_mult times as long as the last, the first T_0.

    `step` may be called within an epoch with its fraction: step(epoch + i / steps).

    Raises ValueError for options that are no positive integers, an eta_min that is no number, and a negative epoch.

    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2016.
    """

    _example = "T_0=2", "[1.0, 0.5, 1.0, 0.5]"

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        for name, value in {"T_0": T_0, "T_mult": T_mult}.items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"CosineAnnealingWarmRestarts: {name} is {value}; it must be a positive integer")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"CosineAnnealingWarmRestarts: eta_min is {eta_min!r}; it must be a number")
        self.T_cur: float = last_epoch
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> Rates:
        return [self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Count an epoch, or go to a point of time in epochs, and set the learning rates."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        elif epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: epoch is {epoch}; it must not be negative")
        elif epoch < self.T_0:
            self.T_cur, self.T_i = epoch, self.T_0
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            passed = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**passed - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**passed
        self.last_epoch = math.floor(epoch)
        with self._flag("_get_lr_called_within_step"):
            self._set(self.get_lr())
