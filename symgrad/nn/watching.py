"""Backward hooks of a module: two identity nodes in the graph, around its inputs and its outputs, through which the gradients pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.autograd.function import Function
from symgrad.autograd.modes import is_grad_enabled
from symgrad.engine.tensor import Tensor

__all__ = ["Watch"]

Hook = Callable[..., Any]
Gradients = tuple[Tensor | None, ...]


class BackwardHookFunction(Function):
    """The identity of some tensors, whose pullback is a function of all their cotangents."""

    @staticmethod
    def forward(ctx: Any, passed: Callable[[Gradients], Gradients], *tensors: Tensor) -> Any:
        """The tensors."""
        ctx.passed = passed
        ctx.set_materialize_grads(False)
        return tensors if len(tensors) > 1 else tensors[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        """The cotangents after `passed`."""
        return None, *ctx.passed(gradients)


def _through(passed: Callable[[Gradients], Gradients], values: tuple) -> tuple[tuple, list[int] | None]:
    """The values with their tensors passed through the identity, and the positions of those tensors; None if no gradient can pass."""
    at = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not is_grad_enabled() or not any(values[i].requires_grad for i in at):
        return values, None
    found = BackwardHookFunction.apply(passed, *(values[i] for i in at))
    out = list(values)
    for i, tensor in zip(at, found if isinstance(found, tuple) else (found,)):
        out[i] = tensor
    return tuple(out), at


def _spread(gradients: Sequence[Tensor | None], at: list[int], count: int) -> Gradients:
    """Gradients at their positions among all values, None at the others."""
    out: list[Tensor | None] = [None] * count
    for i, g in zip(at, gradients):
        out[i] = g
    return tuple(out)


def _replaced(old: Gradients, found: Any, what: str) -> Gradients:
    """The gradients that a hook returned, or the given ones for None."""
    if found is None:
        return old
    new = found if isinstance(found, (tuple, list)) else (found,)
    if len(new) != len(old):
        raise RuntimeError(f"{what}, got {len(new)}, but expected {len(old)}")
    return tuple(new)


class Watch:
    """The backward hooks of one call of a module."""

    def __init__(self, module: Any, before: Sequence[Hook], after: Sequence[Hook]):
        self.module, self.before, self.after = module, before, after
        self.arrived: Gradients | None = None
        self.inputs: list[int] | None = None
        self.count = 0

    def enter(self, args: tuple) -> tuple:
        """The arguments of the module; the hooks are called when their gradients are known."""
        self.count = len(args)
        out, self.inputs = _through(self._leave, args)
        return out

    def _leave(self, gradients: Gradients) -> Gradients:
        if self.arrived is None or self.inputs is None:
            return gradients
        given = _spread(gradients, self.inputs, self.count)
        for hook in self.after:
            given = _replaced(given, hook(self.module, given, self.arrived), "Backward hook returned an invalid number of grad_input")
        self.arrived = None
        return tuple(given[i] for i in self.inputs)

    def exit(self, result: Any) -> Any:
        """The result of the module; the pre-hooks are called when its gradient is known."""
        single = isinstance(result, Tensor)
        if not single and not isinstance(result, tuple):
            warnings.warn(f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received {type(result)}",
                          UserWarning, stacklevel=4)
            return result
        values = (result,) if single else result
        places: list[int] = []

        def arrive(gradients: Gradients) -> Gradients:
            self.arrived = _spread(gradients, places, len(values))
            for hook in self.before:
                self.arrived = _replaced(self.arrived, hook(self.module, self.arrived), "Backward pre hook returned an invalid number of grad_output")
            passed = self.arrived
            if self.inputs is None:
                self._report_without_inputs(self.arrived)
            return tuple(passed[i] for i in places)

        out, at = _through(arrive, values)
        places += at or []
        return out[0] if single else out

    def _report_without_inputs(self, arrived: Gradients) -> None:
        if self.after:
            warnings.warn("Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
                          "gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
                          "register_full_backward_hook for more details.", UserWarning, stacklevel=2)
        for hook in self.after:
            found = hook(self.module, (None,) * self.count, arrived)
            if found is not None and not (isinstance(found, tuple) and all(g is None for g in found)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return None or None for all gradients.")
        self.arrived = None
