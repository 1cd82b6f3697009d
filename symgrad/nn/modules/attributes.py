"""Attributes of a module: parameters, buffers and modules are registered in tables of their own when they are assigned."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, ClassVar, NamedTuple

from symgrad.engine.tensor import Tensor
from symgrad.graph.handles import Hook, RemovableHandle, add_hook
from symgrad.methods.predicates import typename
from symgrad.nn.parameter import Buffer, Parameter

__all__ = ["AttributesMixin", "register_module_buffer_registration_hook", "register_module_module_registration_hook",
           "register_module_parameter_registration_hook"]

_global_parameter_registration_hooks = OrderedDict[int, Hook]()
_global_buffer_registration_hooks = OrderedDict[int, Hook]()
_global_module_registration_hooks = OrderedDict[int, Hook]()


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call hook(module, name, param) when any module registers a parameter; what it returns, if not None, is registered instead.

    >>> from symgrad import nn
    >>> with register_module_parameter_registration_hook(lambda module, name, param: print(name)):
    ...     layer = nn.Linear(2, 3)
    weight
    bias
    """
    return add_hook(_global_parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call hook(module, name, buffer) when any module registers a buffer; what it returns, if not None, is registered instead."""
    return add_hook(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call hook(module, name, submodule) when any module registers another; what it returns, if not None, is registered instead."""
    return add_hook(_global_module_registration_hooks, hook)


def _after_hooks(hooks: OrderedDict[int, Hook], module: AttributesMixin, name: str, member: Any) -> Any:
    """A member after the hooks on its registration."""
    for hook in hooks.values():
        found = hook(module, name, member)
        member = member if found is None else found
    return member


class MemberKind(NamedTuple):
    """One of the kinds of attributes that a module registers in a separate table: parameters, buffers and modules."""

    table: str
    registered: Any  # an object of this class is registered in the table when it is assigned to an attribute
    accepted: Any  # an object of this class, or None, can be assigned to a name in the table
    what: str


class AttributesMixin:
    """The part of `Module` for its attributes."""

    kinds: ClassVar[tuple[MemberKind, ...]]
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            found = own.get(table)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        for kind in AttributesMixin.kinds:
            table = self.__dict__.get(kind.table)
            if isinstance(value, kind.registered):
                if table is None:
                    raise AttributeError(f"{type(self).__name__}: call super().__init__() before a {kind.what} is assigned, {name!r}")
                if kind.what != "buffer":  # which may replace no other attribute
                    self._remove_name(name, kind.table)
            elif table is None or name not in table:
                continue
            elif value is not None and not isinstance(value, kind.accepted):
                raise TypeError(f"{type(self).__name__}: {name!r} is a {kind.what}; it cannot be a {typename(value)}")
            if kind.what == "parameter":
                self.register_parameter(name, value)
            elif kind.what == "buffer":
                persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
                self.register_buffer(name, value, **({} if persistent else {"persistent": False}))  # a subclass may have no such argument
            else:
                table[name] = _after_hooks(_global_module_registration_hooks, self, name, value)
            return
        super().__setattr__(name, value)

    def _remove_name(self, name: str, keep: str) -> None:
        """Remove a name from all tables but one."""
        self.__dict__.pop(name, None)
        for kind in AttributesMixin.kinds:
            if kind.table != keep:
                self.__dict__[kind.table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for kind in AttributesMixin.kinds:
            table = self.__dict__.get(kind.table, {})
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def _check_member(self, what: str, name: Any, value: Any, table: str, kind: type) -> None:
        """Raise if a name is not valid for a table, or a value."""
        if table not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: call super().__init__() before a {what} is assigned, {name!r}")
        if not isinstance(name, str) or value is not None and not isinstance(value, kind):
            wanted = kind.__name__.replace("AttributesMixin", "Module")
            raise TypeError(f"{what}: there must be a name and a {wanted} or None, not {name!r} and a {typename(value)}")
        if not name or "." in name or hasattr(self, name) and name not in self.__dict__[table]:
            raise KeyError(f"{what}: the name {name!r} is empty, contains a dot, or is that of another attribute")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name; None reserves the name.

        Raises TypeError for an object that is not a Parameter, KeyError for a name that is taken or contains a dot.
        """
        self._check_member("parameter", name, param, "_parameters", Parameter)
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"parameter: {name!r} must be a leaf. Compute functions of other tensors in the method forward")
        self._parameters[name] = None if param is None else _after_hooks(_global_parameter_registration_hooks, self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not trained under a name; part of the `state_dict` if `persistent`.

        Raises TypeError for an object that is not a Tensor, KeyError for a name that is taken or contains a dot.
        """
        self._check_member("buffer", name, tensor, "_buffers", Tensor)
        self._buffers[name] = _after_hooks(_global_buffer_registration_hooks, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a module under a name; None reserves the name.

        Raises TypeError for an object that is not a Module, KeyError for a name that is taken or contains a dot.
        """
        self._check_member("module", name, module, "_modules", AttributesMixin)
        self._modules[name] = _after_hooks(_global_module_registration_hooks, self, name, module)

    register_module = add_module


AttributesMixin.kinds = (
    MemberKind("_parameters", Parameter, Parameter, "parameter"),
    MemberKind("_modules", AttributesMixin, AttributesMixin, "module"),
    MemberKind("_buffers", Buffer, Tensor, "buffer"),
)
