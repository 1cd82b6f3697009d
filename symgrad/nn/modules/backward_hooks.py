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


def _replaced(old: Any, found: Any) -> Any:
    """The gradients that a hook returned, or the given ones for None."""
    if found is not None and len(found) != len(old):
        raise RuntimeError(f"backward hook: it returned {len(found)} gradients in place of {len(old)}")
    return old if found is None else found


class BackwardHooks:
    """The backward hooks of one call of a module."""

    def __init__(self, module: Any, pre_hooks: Sequence[Hook], hooks: Sequence[Hook]):
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.grad_output: Any = None
        self.count = 0  # of arguments
        self.positions: list[int] | None = None  # of the tensors among the arguments, if a gradient can pass

    def enter(self, args: tuple) -> tuple:
        """The arguments of the module; the hooks are called when their gradients are known."""
        def hook(gradients: Gradients, _: Gradients) -> Gradients | None:
            return self._call_hooks(gradients)

        self.count = len(args)
        out, self.positions = _through_identity(hook, args)
        return out

    def _call_hooks(self, gradients: Gradients) -> Gradients | None:
        if self.grad_output is None or self.positions is None:  # the gradient reached the inputs past the outputs, as in a second backward
            return None
        grad_input: Any = _at_positions(gradients, self.positions, self.count)
        for hook in self.hooks:
            grad_input = _replaced(grad_input, hook(self.module, grad_input, self.grad_output))
        self.grad_output = None
        return tuple(grad_input[i] for i in self.positions)

    def exit(self, result: Any) -> Any:
        """The result of the module; the pre-hooks are called when its gradient is known."""
        is_tuple = isinstance(result, tuple)
        if not is_tuple and not isinstance(result, Tensor):
            warnings.warn(f"backward hooks are not called: the output of the module is a {type(result).__name__}, not a tensor or a tuple of them",
                          UserWarning, stacklevel=4)
            return result
        values = result if is_tuple else (result,)
        positions: list[int] = []

        def hook(_: Gradients, gradients: Gradients) -> Gradients:
            found: Any = _at_positions(gradients, positions, len(values))
            for each in self.pre_hooks:
                found = _replaced(found, each(self.module, found))
            self.grad_output = found
            if self.positions is None:
                self._call_hooks_without_inputs(found)
            return tuple(found[i] for i in positions)

        out, at = _through_identity(hook, values)
        positions += at or []
        return out if is_tuple else out[0]

    def _call_hooks_without_inputs(self, grad_output: Gradients) -> None:
        warnings.warn("a full backward hook is called with the gradients of the outputs alone, since no input requires one", stacklevel=2)
        for hook in self.hooks:
            found = hook(self.module, (None,) * self.count, grad_output)
            if found is not None and not (isinstance(found, tuple) and all(g is None for g in found)):
                raise RuntimeError("backward hook: it must return None where no input requires a gradient")
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
    """Warn unless the gradients of one node are those of the inputs and the outputs."""
    def nodes(values: Any) -> set[Any] | None:
        values = (values,) if isinstance(values, Tensor) else values
        if not isinstance(values, tuple) or not all(isinstance(value, Tensor) for value in values):
            return None
        return {t.grad_fn for t in values if t.grad_fn is not None}

    inputs, outputs = nodes(args), nodes(result)
    if inputs is None or outputs is None or len(outputs) > 1 or inputs != {parent for parent, _ in node.next_functions}:
        warnings.warn("a backward hook gets the gradients of the last node, which are not all of the module. Use register_full_backward_hook",
                      FutureWarning, stacklevel=5)
