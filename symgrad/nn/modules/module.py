"""`Module`: a function with parameters, buffers and modules inside it, each found by its name; its calls, and their hooks.

Backward hooks stand at two identity nodes in the graph, around the inputs and the outputs, through which the gradients pass.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, ClassVar

from symgrad.autograd.function import Function
from symgrad.autograd.modes import is_grad_enabled
from symgrad.engine.tensor import Tensor
from symgrad.graph.handles import Hook, RemovableHandle, add_hook
from symgrad.nn.modules.attributes import *
from symgrad.nn.modules.state import StateMixin, WrappedHook, _IncompatibleKeys

__all__ = ["BackwardHooks", "Module", "_IncompatibleKeys", "_global_buffer_registration_hooks", "_global_module_registration_hooks",
           "_global_parameter_registration_hooks", "hook_last_node", "register_module_backward_hook", "register_module_buffer_registration_hook",
           "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
           "register_module_full_backward_pre_hook", "register_module_module_registration_hook", "register_module_parameter_registration_hook"]

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


class Module(StateMixin):
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

    _shown: ClassVar[str] = ""  # names of attributes for the repr: ":name" without the name, "?name" if it is true, "name!r" quoted
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
        """The text between the parentheses of the repr: the attributes that `_shown` names. A subclass may define it."""
        out = []
        for word in self._shown.split():
            name = word.strip(":?").removesuffix("!r")
            value = getattr(self, name)
            text = f"{value is not None}" if name == "bias" else f"{value!r}" if word.endswith("!r") else f"{value}"
            if word[0] != "?" or value:
                out.append(text if word[0] == ":" else f"{name}={text}")
        return ", ".join(out)

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
