"""Averages of the parameters over the steps of an optimizer: stochastic weight averaging, and exponential moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from symgrad.arguments import check_option
from symgrad.autograd.modes import no_grad
from symgrad.dtypes.dtype import DTYPES
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.nn.modules.module import Module
from symgrad.nn.modules.normalization import _BatchNorm
from symgrad.optim.optimizer import Optimizer
from symgrad.optim.scheduling import Rates, Schedule, for_each_group
from symgrad.system.restoring import restored

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn"]

Average = Callable[[Tensor, Tensor, Any], Tensor]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The function that gives decay average + (1 - decay) current, from an average, the current value and their number.

    Raises ValueError for a decay outside [0, 1].
    """
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"get_ema_avg_fn: decay is {decay}; it must be in [0, 1]")

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """The function that gives average + (current - average) / (n + 1), from the average of n values and the current one."""
    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _of_lists(average: Average, weight: Callable[[Any], float]) -> Callable[..., None]:
    """The function that changes a list of averages in place: by interpolation, or as `average` does where the numbers are integers."""
    @no_grad()
    def update(averages: list[Tensor], currents: list[Tensor], num_averaged: Any) -> None:
        for old, new in zip(averages, currents, strict=True):
            if old.is_floating_point() or old.is_complex():
                old.lerp_(new, weight(num_averaged))
            else:
                old.copy_(average(old, new, num_averaged))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """`get_ema_avg_fn` for lists of tensors; it changes the averages in place."""
    return _of_lists(get_ema_avg_fn(decay), lambda n: 1 - decay)


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """`get_swa_avg_fn` for lists of tensors; it changes the averages in place."""
    return _of_lists(get_swa_avg_fn(), lambda n: 1 / (float(n) + 1))


class AveragedModel(Module):
    """A copy of a module, `module`, whose parameters are averages of those that `update_parameters` has seen; `n_averaged` counts them.

    The average is the mean, unless `avg_fn` computes it from the average, the current value and their number, or `multi_avg_fn` changes a list of
    averages in place. With `use_buffers` the buffers are averaged, too; otherwise they are those of the last module that was seen.

    Raises AssertionError for both functions at once.

    >>> import symgrad
    >>> model = symgrad.nn.Linear(1, 1, bias=False)
    >>> averaged = AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     with symgrad.no_grad():
    ...         model.weight.fill_(value)
    ...     averaged.update_parameters(model)
    Parameter containing:
    tensor([[1.]], requires_grad=True)
    Parameter containing:
    tensor([[2.]], requires_grad=True)
    Parameter containing:
    tensor([[6.]], requires_grad=True)
    >>> averaged(symgrad.ones(1, 1))
    tensor([[3.]], grad_fn=<MmBackward0>)

    Source: Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization, 2018.
    """

    n_averaged: Tensor

    def __init__(self, model: Module, device: Any = None, avg_fn: Average | None = None, multi_avg_fn: Callable[..., None] | None = None,
                 use_buffers: bool = False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("AveragedModel: give avg_fn or multi_avg_fn, and not both")
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", tensor(0, dtype=DTYPES["int64"], device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of a module into the averages."""
        def members(owner: Module) -> Iterable[Tensor]:
            return chain(owner.parameters(), owner.buffers()) if self.use_buffers else owner.parameters()

        averages, currents = ([t.detach() for t in members(owner)] for owner in (self.module, model))
        if self.n_averaged == 0:
            for average, current in zip(averages, currents):
                average.copy_(current)
        elif self.avg_fn is not None:
            for average, current in zip(averages, currents):
                average.copy_(self.avg_fn(average, current, self.n_averaged))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, currents, self.n_averaged)
        if not self.use_buffers:
            for mine, given in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(given.detach())
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running means and variances of the batch normalisations of a module anew, as means over all batches of a loader.

    A batch that is a list or a tuple has the input first.
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    training = model.training

    def restore() -> None:
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(training)

    with restored(restore):
        model.train()
        for module in momenta:
            module.momentum = None
        for batch in loader:
            model(batch[0] if isinstance(batch, (list, tuple)) else batch)


class SWALR(Schedule):
    """The learning rate goes to swa_lr in `anneal_epochs` epochs, along a cosine or a line ("linear"), and stays there.

    Raises ValueError for another strategy, a negative number of epochs, and lists of another length than that of the groups.
    """

    _example = "swa_lr=0.5, anneal_epochs=2, anneal_strategy='linear'", "[1.0, 0.75, 0.5, 0.5]"

    def __init__(self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10, anneal_strategy: str = "cos",
                 last_epoch: int = -1):
        for rate, group in zip(for_each_group("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        check_option("SWALR", "anneal_strategy", anneal_strategy, ("cos", "linear"), ValueError)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs is {anneal_epochs}; it must be an integer that is not negative")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """The part of the way that was gone after the part t of the time."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def _rates(self) -> Rates:
        step = self._step_count - 1 if self.anneal_epochs else max(1, self._step_count - 1)
        before, now = (self.anneal_func(max(0, min(1, n / max(1, self.anneal_epochs)))) for n in (step - 1, step))
        rates = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            start = end if before == 1 else (group["lr"] - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
