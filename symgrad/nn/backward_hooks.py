"""Backward hooks of a module: two identity nodes in the graph, around its inputs and its outputs, through which the gradients pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.autograd.function import Function
from symgrad.autograd.modes import is_grad_enabled
from symgrad.engine.tensor import Tensor

__all__ = ["BackwardHooks"]

Hook = Callable[..., Any]
Gradients = tuple[Tensor | None, ...]


class BackwardHookFunction(Function):
    """The identity of some tensors, whose pullback is a function of all their cotangents."""

    @staticmethod
    def forward(ctx: Any, pullback: Callable[[Gradients], Gradients], *tensors: Tensor) -> Any:
        """The tensors."""
        ctx.pullback = pullback
        ctx.set_materialize_grads(False)
        return tensors if len(tensors) > 1 else tensors[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        """The cotangents after `pullback`."""
        return None, *ctx.pullback(gradients)


def _through_identity(pullback: Callable[[Gradients], Gradients], values: tuple) -> tuple[tuple, list[int] | None]:
    """The values with their tensors passed through the identity, and the positions of those tensors; None if no gradient can pass."""
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not is_grad_enabled() or not any(values[i].requires_grad for i in positions):
        return values, None
    found = BackwardHookFunction.apply(pullback, *(values[i] for i in positions))
    out = list(values)
    for i, tensor in zip(positions, found if isinstance(found, tuple) else (found,)):
        out[i] = tensor
    return tuple(out), positions


def _at_positions(gradients: Sequence[Tensor | None], positions: list[int], count: int) -> Gradients:
    """Gradients at their positions among all values, None at the others."""
    out: list[Tensor | None] = [None] * count
    for i, g in zip(positions, gradients):
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


class BackwardHooks:
    """The backward hooks of one call of a module."""

    def __init__(self, module: Any, pre_hooks: Sequence[Hook], hooks: Sequence[Hook]):
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.grad_output: Gradients | None = None
        self.count = 0  # of arguments
        self.positions: list[int] | None = None  # of the tensors among the arguments, if a gradient can pass

    def enter(self, args: tuple) -> tuple:
        """The arguments of the module; the hooks are called when their gradients are known."""
        self.count = len(args)
        out, self.positions = _through_identity(self._call_hooks, args)
        return out

    def _call_hooks(self, gradients: Gradients) -> Gradients:
        if self.grad_output is None or self.positions is None:
            return gradients
        grad_input = _at_positions(gradients, self.positions, self.count)
        for hook in self.hooks:
            found = hook(self.module, grad_input, self.grad_output)
            grad_input = _replaced(grad_input, found, "Backward hook returned an invalid number of grad_input")
        self.grad_output = None
        return tuple(grad_input[i] for i in self.positions)

    def exit(self, result: Any) -> Any:
        """The result of the module; the pre-hooks are called when its gradient is known."""
        is_tensor = isinstance(result, Tensor)
        if not is_tensor and not isinstance(result, tuple):
            warnings.warn(f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received {type(result)}",
                          UserWarning, stacklevel=4)
            return result
        values = (result,) if is_tensor else result
        positions: list[int] = []

        def call_pre_hooks(gradients: Gradients) -> Gradients:
            found = _at_positions(gradients, positions, len(values))
            for hook in self.pre_hooks:
                found = _replaced(found, hook(self.module, found), "Backward pre hook returned an invalid number of grad_output")
            self.grad_output = found
            if self.positions is None:
                self._call_hooks_without_inputs(found)
            return tuple(found[i] for i in positions)

        out, at = _through_identity(call_pre_hooks, values)
        positions += at or []
        return out[0] if is_tensor else out

    def _call_hooks_without_inputs(self, grad_output: Gradients) -> None:
        if self.hooks:
            warnings.warn("Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
                          "gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
                          "register_full_backward_hook for more details.", UserWarning, stacklevel=2)
        for hook in self.hooks:
            found = hook(self.module, (None,) * self.count, grad_output)
            if found is not None and not (isinstance(found, tuple) and all(g is None for g in found)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return None or None for all gradients.")
        self.grad_output = None
