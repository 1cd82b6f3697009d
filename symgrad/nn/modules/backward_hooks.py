"""Backward hooks of a module: two identity nodes in the graph, around its inputs and its outputs, through which the gradients pass."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from symgrad.autograd.function import Function
from symgrad.autograd.modes import is_grad_enabled
from symgrad.engine.tensor import Tensor
from symgrad.graph.handles import Hook

__all__ = ["BackwardHooks", "hook_last_node"]

Gradients = tuple[Tensor | None, ...]


class BackwardHookFunction(Function):
    """The identity of some tensors: one node for all."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Any:
        """The tensors."""
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The cotangents."""
        return gradients


def _through_identity(hook: Hook, values: tuple) -> tuple[tuple, list[int] | None]:
    """The values with their tensors passed through a node with a hook, and the positions of those tensors; None if no gradient can pass."""
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not is_grad_enabled() or not any(values[i].requires_grad for i in positions):
        return values, None
    out = list(values)
    for i, tensor in zip(positions, BackwardHookFunction.apply(*(values[i] for i in positions))):
        out[i] = tensor
    next(out[i].grad_fn for i in positions if values[i].requires_grad).register_hook(hook)
    return tuple(out) if type(values) is tuple else type(values)(*out), positions


def _at_positions(gradients: Sequence[Tensor | None], positions: list[int], count: int) -> Gradients:
    """Gradients at their positions among all values, None at the others."""
    out: list[Tensor | None] = [None] * count
    for i, g in zip(positions, gradients):
        out[i] = g
    return tuple(out)


def _replaced(old: Any, found: Any, what: str) -> Any:
    """The gradients that a hook returned, or the given ones for None."""
    if found is None:
        return old
    if len(found) != len(old):
        raise RuntimeError(f"{what}, got {len(found)}, but expected {len(old)}")
    return found


class BackwardHooks:
    """The backward hooks of one call of a module."""

    def __init__(self, module: Any, pre_hooks: Sequence[Hook], hooks: Sequence[Hook]):
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.grad_output: Any = None
        self.count = 0  # of arguments
        self.positions: list[int] | None = None  # of the tensors among the arguments, if a gradient can pass

    def enter(self, args: tuple) -> tuple:
        """The arguments of the module; the hooks are called when their gradients are known."""
        def hook(gradients: Gradients, _: Gradients) -> Gradients | None:  # its name is part of torch's messages
            return self._call_hooks(gradients)

        self.count = len(args)
        out, self.positions = _through_identity(hook, args)
        return out

    def _call_hooks(self, gradients: Gradients) -> Gradients | None:
        if self.grad_output is None or self.positions is None:  # the gradient reached the inputs past the outputs, as in a second backward
            return None
        grad_input: Any = _at_positions(gradients, self.positions, self.count)
        for hook in self.hooks:
            found = hook(self.module, grad_input, self.grad_output)
            grad_input = _replaced(grad_input, found, "Backward hook returned an invalid number of grad_input")
        self.grad_output = None
        return tuple(grad_input[i] for i in self.positions)

    def exit(self, result: Any) -> Any:
        """The result of the module; the pre-hooks are called when its gradient is known."""
        is_tuple = isinstance(result, tuple)
        if not is_tuple and not isinstance(result, Tensor):
            warnings.warn(f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received {type(result)}",
                          UserWarning, stacklevel=4)
            return result
        values = result if is_tuple else (result,)
        positions: list[int] = []

        def hook(_: Gradients, gradients: Gradients) -> Gradients:
            found: Any = _at_positions(gradients, positions, len(values))
            for each in self.pre_hooks:
                found = _replaced(found, each(self.module, found), "Backward pre hook returned an invalid number of grad_output")
            self.grad_output = found
            if self.positions is None:
                self._call_hooks_without_inputs(found)
            return tuple(found[i] for i in positions)

        out, at = _through_identity(hook, values)
        positions += at or []
        return out if is_tuple else out[0]

    def _call_hooks_without_inputs(self, grad_output: Gradients) -> None:
        warnings.warn("Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
                      "gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
                      "register_full_backward_hook for more details.", UserWarning, stacklevel=2)
        for hook in self.hooks:
            found = hook(self.module, (None,) * self.count, grad_output)
            if found is not None and not (isinstance(found, tuple) and all(g is None for g in found)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return None or None for all gradients.")
        self.grad_output = None


# Hooks on the last node alone, whose use torch deprecates


def hook_last_node(args: tuple, result: Any, hooks: Sequence[Hook]) -> None:
    """Call hook(grad_input, grad_output) at the node of the first tensor in a result; warn where those are not the gradients of the whole module."""
    first: Any = result
    while not isinstance(first, Tensor):
        first = next(v for v in first.values() if isinstance(v, Tensor)) if isinstance(first, dict) else first[0]
    node: Any = first.grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(hook)
        _warn(args, result, node)


def _warn(args: Any, result: Any, node: Any) -> None:
    def tensors(values: Any) -> tuple | None:
        values = (values,) if isinstance(values, Tensor) else values
        return values if isinstance(values, tuple) and all(isinstance(value, Tensor) for value in values) else None

    inputs, outputs = tensors(args), tensors(result)
    if outputs is None:
        what, lost = "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors", "of the grad_output"
    elif inputs is None:
        what, lost = "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors", "of the grad_input"
    elif len({t.grad_fn for t in outputs if t.grad_fn is not None}) > 1:
        what, lost = "a non-full backward hook when outputs are generated by different autograd Nodes", "grad_output"
    elif {t.grad_fn for t in inputs if t.grad_fn is not None} != {parent for parent, _ in node.next_functions}:
        what, lost = "a non-full backward hook when the forward contains multiple autograd Nodes", "grad_input"
    else:
        return
    warnings.warn(f"Using {what} is deprecated and will be removed in future versions. This hook will be missing some {lost}. Please use "
                  "register_full_backward_hook to get the documented behavior.", FutureWarning, stacklevel=5)
