"""Attributes of a module: parameters, buffers and modules are registered in tables of their own, in which all members are found."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

from symgrad.autograd.engine import clear_gradients
from symgrad.autograd.modes import no_grad
from symgrad.dtypes.dtype import DTYPES, dtype_of
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty_like
from symgrad.graph.handles import Hook, RemovableHandle, add_hook
from symgrad.layouts.devices import check_cpu
from symgrad.methods.layout import parse_to
from symgrad.methods.predicates import typename
from symgrad.nn.parameter import Buffer, Parameter, is_lazy

__all__ = ["AttributesMixin", "_global_buffer_registration_hooks", "_global_module_registration_hooks",
           "_global_parameter_registration_hooks", "register_module_buffer_registration_hook", "register_module_module_registration_hook",
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


def _conversion(name: str, dtype: str) -> Any:
    def convert(self: Any) -> Any:
        return self._apply(lambda t: t.to(DTYPES[dtype]) if t.is_floating_point() else t)

    convert.__name__, convert.__qualname__ = name, f"Module.{name}"
    convert.__doc__ = f"Every floating-point parameter and buffer as {dtype}, in place; returns this module."
    return convert


class AttributesMixin:
    """The part of `Module` for its attributes, and for the members that are found in them."""

    kinds: ClassVar[tuple[MemberKind, ...]]
    training: bool
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

    # By name

    def _get(self, target: str) -> tuple[Any, str, Any]:
        """The module that has a dotted name, the last part of the name, and what it names."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute {name!r}, of {target!r}")
        return module, name, getattr(module, name)

    def get_submodule(self, target: str) -> Any:
        """The module of a dotted name; of the empty name this one. Raises AttributeError if there is none."""
        if not target:
            return self
        _, name, found = self._get(target)
        if not isinstance(found, AttributesMixin):
            raise AttributeError(f"get_submodule: {target!r} is a {type(found).__name__}, not a module")
        return found

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Set a module under a dotted name; with `strict` only if one exists there.

        Raises ValueError for an empty name and for an object that is not a module, AttributeError if the parent module does not exist.
        """
        if not target or not isinstance(module, AttributesMixin):
            raise ValueError(f"set_submodule: there must be a name and a module, not {target!r} and {type(module).__name__}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name. Raises AttributeError if there is none."""
        found = self._get(target)[2]
        if not isinstance(found, Parameter):
            raise AttributeError(f"get_parameter: {target!r} is a {type(found).__name__}, not a parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name. Raises AttributeError if there is none."""
        module, name, found = self._get(target)
        if name not in module._buffers:
            raise AttributeError(f"get_buffer: {target!r} is a {type(found).__name__}, not a buffer")
        return found

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """This module under the name `prefix`, then every module inside it, with dotted names; each once, if `remove_duplicate`."""
        memo = set() if memo is None else memo
        if self not in memo:
            if remove_duplicate:
                memo.add(self)
            yield prefix, self
            for name, module in self._modules.items():
                if module is not None:
                    yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """This module and every module inside it, each once, if `remove_duplicate`."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly inside this one by name, each once."""
        seen = set[Any]()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The modules directly inside this one, each once."""
        return (module for _, module in self.named_children())

    def _members(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen = set[Any]()
        for path, module in self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]:
            for name, member in getattr(module, table).items():
                if member is not None and member not in seen:
                    if remove_duplicate:
                        seen.add(member)
                    yield f"{path}.{name}" if path else name, member

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and, with `recurse`, of those inside it, by dotted name; shared ones once."""
        return self._members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, with `recurse`, of those inside it, as an optimizer takes them."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and, with `recurse`, of those inside it, by dotted name; shared ones once."""
        return self._members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, with `recurse`, of those inside it."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    # All at once

    def apply(self, fn: Callable[[Any], None]) -> Self:
        """Call fn with every module inside this one, and last with this one; returns this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the value of every parameter, its gradient and every buffer by fn of it; with `recurse` those of the modules inside, too."""
        for module in self.children() if recurse else ():
            module._apply(fn)
        for parameter in self._parameters.values():
            for t in () if parameter is None else (parameter, parameter.grad):
                if t is not None:
                    with no_grad():
                        after = fn(t.data if is_lazy(t) else t)
                    if after is not t:
                        t.data = after
        for name, buffer in self._buffers.items():
            if buffer is not None:
                if is_lazy(buffer):
                    buffer.data = fn(buffer.data)
                else:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Every floating-point parameter and buffer in another dtype (or on the device "cpu"), in place; returns this module.

        It is called like `Tensor.to`. Raises TypeError for an integer dtype, RuntimeError for `copy` and a device that does not exist.
        """
        memory_format = kwargs.pop("memory_format", None)
        device, dtype, copy = parse_to(args, **kwargs)
        dtype = None if dtype is None else dtype_of(dtype)
        if copy:
            raise RuntimeError("Module.to: there is no copy; use copy.deepcopy")
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"Module.to: dtype must be floating-point or complex, not {dtype}")
        if device is not None:
            check_cpu(device)  # where the module has no tensor, too

        def converted(t: Tensor) -> Tensor:
            return t.to(device, dtype if t.is_floating_point() or t.is_complex() else None, memory_format=memory_format if t.ndim in (4, 5) else None)

        return self._apply(converted)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """The parameters and buffers with new memory, whose values are undefined, on a device; returns this module."""
        return self._apply(lambda t: empty_like(t, device=device), recurse)

    def cpu(self) -> Self:
        """This module; its tensors are on the CPU already."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Raises AssertionError, as there is no GPU; a module without tensors is returned."""
        return self._apply(lambda t: t.cuda(device))

    def type(self, dst_type: Any) -> Self:
        """Every parameter and buffer in another dtype, in place; returns this module."""
        return self._apply(lambda t: t.type(dst_type))

    float, double, half, bfloat16 = map(_conversion, ("float", "double", "half", "bfloat16"), ("float32", "float64", "float16", "bfloat16"))

    def train(self, mode: bool = True) -> Self:
        """Set `training` here and in every module inside; returns this module. Raises ValueError for a mode that is not a boolean."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode must be a boolean, not {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """The same as `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of every parameter; returns this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradient of every parameter to None, or with `set_to_none=False` to zero, in place and detached."""
        clear_gradients(self.parameters(), set_to_none)


AttributesMixin.kinds = (
    MemberKind("_parameters", Parameter, Parameter, "parameter"),
    MemberKind("_modules", AttributesMixin, AttributesMixin, "module"),
    MemberKind("_buffers", Buffer, Tensor, "buffer"),
)
