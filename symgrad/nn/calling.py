"""Calls of a module: forward hooks, forward pre-hooks, and backward hooks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from symgrad.nn.backward_hooks import BackwardHooks
from symgrad.types.handles import RemovableHandle

__all__ = ["CallMixin"]


class HookEntry(NamedTuple):
    """A forward hook with its options."""

    hook: Callable[..., Any]
    with_kwargs: bool
    always_call: bool = False

    def __call__(self, module: CallMixin, args: tuple, kwargs: dict[str, Any], *result: Any) -> Any:
        return self.hook(module, args, kwargs, *result) if self.with_kwargs else self.hook(module, args, *result)


class CallMixin:
    """The part of `Module` for calls and hooks."""

    _forward_pre_hooks: OrderedDict[int, HookEntry]
    _forward_hooks: OrderedDict[int, HookEntry]
    _backward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _backward_hooks: OrderedDict[int, Callable[..., Any]]

    def forward(self, *input: Any) -> Any:
        """The computation of the module; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._backward_hooks or self._backward_pre_hooks or self._forward_hooks or self._forward_pre_hooks):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        for entry in tuple(self._forward_pre_hooks.values()):
            replacement = entry(self, args, kwargs)
            if replacement is None:
                continue
            if not entry.with_kwargs:
                args = replacement if isinstance(replacement, tuple) else (replacement,)
            elif isinstance(replacement, tuple) and len(replacement) == 2:
                args, kwargs = replacement
            else:
                raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {replacement}.")
        backward_hooks = None
        if self._backward_hooks or self._backward_pre_hooks:
            backward_hooks = BackwardHooks(self, tuple(self._backward_pre_hooks.values()), tuple(self._backward_hooks.values()))
            args = backward_hooks.enter(args)
        pending = dict(self._forward_hooks)
        result = None
        try:
            result = self.forward(*args, **kwargs)
            for key, entry in tuple(pending.items()):
                del pending[key]
                replacement = entry(self, args, kwargs, result)
                result = result if replacement is None else replacement
            return result if backward_hooks is None else backward_hooks.exit(result)
        except Exception:
            for entry in pending.values():
                if entry.always_call:
                    entry(self, args, kwargs, result)
            raise

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Call hook(module, args) before each forward; a result that is not None replaces the arguments.

        With `with_kwargs` it is called as hook(module, args, kwargs) and may return a pair of both; with `prepend` it comes first.
        """
        return RemovableHandle(self._forward_pre_hooks, HookEntry(hook, with_kwargs), prepend)  # type: ignore[arg-type]

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Call hook(module, args, output) after each forward; a result that is not None replaces the output.

        With `with_kwargs` it is called as hook(module, args, kwargs, output); with `prepend` it comes first; with `always_call` it is
        called, without an output, even if the forward raised.
        """
        return RemovableHandle(self._forward_hooks, HookEntry(hook, with_kwargs, always_call), prepend)  # type: ignore[arg-type]

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_output) before the pullback of each call; a result that is not None replaces grad_output.

        grad_output is a tuple with one gradient, or None, for each output. With `prepend` the hook comes first.
        """
        return RemovableHandle(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) after the pullback of each call; a result that is not None replaces grad_input.

        Both are tuples with one gradient, or None, for each positional argument and each output. With `prepend` the hook comes first.
        """
        return RemovableHandle(self._backward_hooks, hook, prepend)
