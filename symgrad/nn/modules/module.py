"""`Module`: a function with parameters, buffers and modules inside it, each found by its name; its calls, and their hooks."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any, ClassVar

from symgrad.graph.handles import Hook, RemovableHandle, add_hook
from symgrad.nn.modules.attributes import (
    AttributesMixin,
    _global_buffer_registration_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from symgrad.nn.modules.backward_hooks import BackwardHooks, hook_last_node
from symgrad.nn.modules.members import MembersMixin
from symgrad.nn.modules.state import StateMixin, WrappedHook, _IncompatibleKeys

__all__ = ["Module", "_IncompatibleKeys", "_global_buffer_registration_hooks", "_global_module_registration_hooks",
           "_global_parameter_registration_hooks", "register_module_backward_hook", "register_module_buffer_registration_hook",
           "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
           "register_module_full_backward_pre_hook", "register_module_module_registration_hook", "register_module_parameter_registration_hook"]

# Hooks of all modules, by the ids of their handles
_global_forward_pre_hooks = OrderedDict[int, Hook]()
_global_forward_hooks = OrderedDict[int, Hook]()
_global_forward_hooks_with_kwargs = OrderedDict[int, bool]()
_global_forward_hooks_always_called = OrderedDict[int, bool]()
_global_backward_pre_hooks = OrderedDict[int, Hook]()
_global_backward_hooks = OrderedDict[int, Hook]()
_global_is_full_backward_hook: bool | None = None

HOOKS = ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
         "_backward_pre_hooks", "_backward_hooks", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
         "_load_state_dict_post_hooks")


def _initial_attributes() -> dict[str, Any]:
    """The attributes of a new module."""
    return {"training": True, "_parameters": {}, "_buffers": {}, "_non_persistent_buffers_set": set(), "_modules": {},
            "_is_full_backward_hook": None, **{name: OrderedDict() for name in HOOKS}}


class Module(AttributesMixin, MembersMixin, StateMixin):
    """The base of every network: assign parameters and other modules to it in `__init__`, and compute with them in `forward`.

    >>> import symgrad
    >>> from symgrad import nn
    >>> class Line(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = nn.Parameter(symgrad.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.slope * x
    >>> line = Line()
    >>> line(symgrad.tensor(3.0))
    tensor(6., grad_fn=<MulBackward0>)
    >>> [name for name, parameter in line.named_parameters()]
    ['slope']
    """

    _forward_pre_hooks: OrderedDict[int, Hook]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks: OrderedDict[int, Hook]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _backward_pre_hooks: OrderedDict[int, Hook]
    _backward_hooks: OrderedDict[int, Hook]
    _is_full_backward_hook: bool | None

    call_super_init: ClassVar[bool] = False  # whether the classes after this one in the order of inheritance are initialized, too

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            raise TypeError(f"{type(self).__name__}: it takes no arguments, not {[*args, *kwargs]}")
        self.__dict__.update(_initial_attributes())  # not by assignment, which looks for these tables
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(_initial_attributes() | state)  # a module that was saved by an earlier version may lack some

    # Calls

    def forward(self, *input: Any) -> Any:
        """The computation of the module; every subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__}: the method forward is missing")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._backward_hooks or self._backward_pre_hooks or self._forward_hooks or self._forward_pre_hooks or _global_backward_hooks
                or _global_backward_pre_hooks or _global_forward_hooks or _global_forward_pre_hooks):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        result, called = None, set[int]()
        try:
            for key, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
                with_kwargs = key in self._forward_pre_hooks_with_kwargs
                found = hook(self, args, kwargs) if with_kwargs else hook(self, args)
                if found is None:
                    continue
                if not with_kwargs:
                    args = found if isinstance(found, tuple) else (found,)
                elif isinstance(found, tuple) and len(found) == 2:
                    args, kwargs = found
                else:
                    raise RuntimeError(f"{type(self).__name__}: a forward pre-hook must return None or a pair (args, kwargs), not {found!r}")
            full, last = list[Hook](), list[Hook]()
            for is_full, hooks in ((_global_is_full_backward_hook, _global_backward_hooks), (self._is_full_backward_hook, self._backward_hooks)):
                (full if is_full else last).extend(hooks.values())
            before = (*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values())
            backward_hooks = BackwardHooks(self, before, full) if before or full else None
            if backward_hooks is not None:
                args = backward_hooks.enter(args)
            result = self.forward(*args, **kwargs)
            for key, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
                called.add(key)
                found = self._call_forward_hook(key, hook, args, kwargs, result)
                result = result if found is None else found
            if backward_hooks is not None:
                result = backward_hooks.exit(result)
            if last:
                hook_last_node(args, result, [WrappedHook(hook, self) for hook in last])
            return result
        except Exception:
            for key, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
                if key not in called and (key in _global_forward_hooks_always_called or key in self._forward_hooks_always_called):
                    try:
                        found = self._call_forward_hook(key, hook, args, kwargs, result)
                        result = result if found is None else found
                    except Exception as error:
                        warnings.warn(f"{type(self).__name__}: a forward hook raised {error!r} after another error", stacklevel=3)
            raise

    def _call_forward_hook(self, key: int, hook: Hook, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
        if key in self._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def register_forward_pre_hook(self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Call hook(module, args) before each forward; a result that is not None replaces the arguments.

        With `with_kwargs` it is called as hook(module, args, kwargs) and may return a pair of both; with `prepend` it comes first.
        """
        return add_hook(self._forward_pre_hooks, hook, prepend, [(self._forward_pre_hooks_with_kwargs, with_kwargs)])

    def register_forward_hook(self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
        """Call hook(module, args, output) after each forward; a result that is not None replaces the output.

        With `with_kwargs` it is called as hook(module, args, kwargs, output); with `prepend` it comes first; with `always_call` it is
        called, with the output so far or None, even if the forward or a hook raised.
        """
        return add_hook(self._forward_hooks, hook, prepend, [(self._forward_hooks_with_kwargs, with_kwargs),
                                                             (self._forward_hooks_always_called, always_call)])

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_output) before the pullback of each call; a result that is not None replaces grad_output.

        grad_output is a tuple with one gradient, or None, for each output. With `prepend` the hook comes first.
        """
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) after the pullback of each call; a result that is not None replaces grad_input.

        Both are tuples with one gradient, or None, for each positional argument and each output. With `prepend` the hook comes first.

        Raises RuntimeError for a module with hooks of `register_backward_hook`.
        """
        self._set_backward_kind(True)
        return add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) with the gradients of the last node of each call alone; deprecated in favour of the full hook.

        Raises RuntimeError for a module with hooks of `register_full_backward_hook`.
        """
        self._set_backward_kind(False)
        return add_hook(self._backward_hooks, hook)

    def _set_backward_kind(self, is_full: bool) -> None:
        if self._backward_hooks and self._is_full_backward_hook is not is_full:
            raise RuntimeError(f"{type(self).__name__}: use either full backward hooks or others on a module, not both")
        self._is_full_backward_hook = is_full

    # Printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The text between the parentheses of the repr; a subclass may define it."""
        return ""

    def _child_lines(self) -> list[str]:
        return [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]

    def __repr__(self) -> str:
        extra, children = self.extra_repr(), self._child_lines()
        if "\n" not in extra and not children:
            return f"{self._get_name()}({extra})"
        lines = (extra.split("\n") if extra else []) + children
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


# Hooks of all modules


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call hook(module, args) before each forward of any module, and before the hooks of that module."""
    return add_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook: Hook, *, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
    """Call hook(module, args, output) after each forward of any module, and before the hooks of that module.

    >>> import symgrad
    >>> from symgrad import nn
    >>> with register_module_forward_hook(lambda module, args, output: print(module)):
    ...     y = nn.Sequential(nn.Tanh())(symgrad.zeros(1))
    Tanh()
    Sequential(
      (0): Tanh()
    )
    """
    return add_hook(_global_forward_hooks, hook, options=[(_global_forward_hooks_with_kwargs, with_kwargs),
                                                          (_global_forward_hooks_always_called, always_call)])


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call hook(module, grad_output) before the pullback of each call of any module, and before the hooks of that module."""
    return add_hook(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) after the pullback of each call of any module, and before the hooks of that module.

    Raises RuntimeError while hooks of `register_module_backward_hook` are registered.
    """
    return _add_global_backward_hook(hook, True)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """As `Module.register_backward_hook`, for all modules; deprecated in favour of the full hook.

    Raises RuntimeError while hooks of `register_module_full_backward_hook` are registered.
    """
    return _add_global_backward_hook(hook, False)


def _add_global_backward_hook(hook: Hook, is_full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_backward_hooks and _global_is_full_backward_hook is not is_full:
        raise RuntimeError("register_module_backward_hook: use either full backward hooks of all modules or others, not both")
    _global_is_full_backward_hook = is_full
    return add_hook(_global_backward_hooks, hook)
