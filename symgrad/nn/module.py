"""`Module`: a function with parameters, buffers and modules inside it, each found by its name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

from symgrad.autograd.engine import clear_gradients
from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.methods.predicates import typename
from symgrad.nn.calling import CallMixin
from symgrad.nn.parameter import Buffer, Parameter
from symgrad.nn.state import StateMixin
from symgrad.types.dtypes import DTYPES

__all__ = ["Module"]


class MemberKind(NamedTuple):
    """One of the kinds of attributes that a module registers in a separate table: parameters, buffers and modules."""

    table: str
    registered: type  # an object of this type is registered in the table when it is assigned to an attribute
    accepted: type  # an object of this type, or None, can be assigned to a name in the table
    many: str
    what: str
    expected: str


class Module(CallMixin, StateMixin):
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

    training: bool
    kinds: ClassVar[tuple[MemberKind, ...]]

    def __init__(self) -> None:
        # Not by assignment, which looks for these tables.
        self.__dict__.update(training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(), _modules={},
                             **{name: OrderedDict() for name in ("_backward_pre_hooks", "_backward_hooks", "_forward_pre_hooks", "_forward_hooks")})

    # Attributes

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            found = own.get(table)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        for kind in Module.kinds:
            table = self.__dict__.get(kind.table)
            if isinstance(value, kind.registered):
                if table is None:
                    raise AttributeError(f"cannot assign {kind.many} before Module.__init__() call")
                self._remove_name(name, kind.table)
                if isinstance(value, Parameter):
                    self.register_parameter(name, value)
                elif isinstance(value, Buffer):
                    self.register_buffer(name, value, value.persistent)
                else:
                    table[name] = value
                return
            if table is not None and name in table:
                if value is not None and not isinstance(value, kind.accepted):
                    raise TypeError(f"cannot assign '{typename(value)}' as {kind.what} '{name}' ({kind.expected} or None expected)")
                table[name] = value
                return
        super().__setattr__(name, value)

    def _remove_name(self, name: str, keep: str) -> None:
        """Remove a name from all tables but one."""
        self.__dict__.pop(name, None)
        for kind in Module.kinds:
            if kind.table != keep:
                self.__dict__[kind.table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for kind in Module.kinds:
            table = self.__dict__.get(kind.table, {})
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def _checked(self, what: str, name: Any, table: dict[str, Any]) -> None:
        """Raise if a name is not valid for a table."""
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if what == "module" else ""))
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name; None reserves the name.

        Raises TypeError for an object that is not a Parameter, KeyError for a name that is taken or contains a dot.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._checked("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)")
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To express "
                             f"'{name}' as a function of another Tensor, compute the value in the forward() method.")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not trained under a name; part of the `state_dict` if `persistent`.

        Raises TypeError for an object that is not a Tensor, KeyError for a name that is taken or contains a dot.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._checked("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module under a name; None reserves the name.

        Raises TypeError for an object that is not a Module, KeyError for a name that is taken or contains a dot.
        """
        if not isinstance(module, (Module, type(None))):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._checked("module", name, self._modules)
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    # Members by name

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name; of the empty name this one. Raises AttributeError if there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set a module under a dotted name; with `strict` only if one exists there.

        Raises ValueError for an empty name and for an object that is not a module, AttributeError if the parent module does not exist.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name. Raises AttributeError if there is none."""
        _, name, found = self._get(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name. Raises AttributeError if there is none."""
        module, name, found = self._get(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def named_modules(self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """This module under the name `prefix`, then every module inside it, with dotted names; each once, if `remove_duplicate`."""
        memo = set() if memo is None else memo
        if self not in memo:
            if remove_duplicate:
                memo.add(self)
            yield prefix, self
            for name, module in self._modules.items():
                if module is not None:
                    yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and every module inside it, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside this one by name, each once."""
        seen = set[Module]()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
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

    # All members at once

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call fn with every module inside this one, and last with this one; returns this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Replace the value of every parameter, its gradient and every buffer by fn of it."""
        for module in self.children():
            module._apply(fn)
        for parameter in self._parameters.values():
            for t in () if parameter is None else (parameter, parameter.grad):
                if t is not None:
                    with no_grad():
                        before = t.data
                        after = fn(before)
                    if after is not before:
                        t.data = after
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Every floating-point parameter and buffer in another dtype (or on the device "cpu"), in place; returns this module.

        It is called like `Tensor.to`. Raises TypeError for an integer dtype, RuntimeError for a device that does not exist.
        """
        target = tensor(0.0).to(*args, **kwargs)
        if not (target.is_floating_point() or target.is_complex()):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={target.dtype}")
        return self._apply(lambda t: t.to(*args, **kwargs) if t.is_floating_point() or t.is_complex() else t)

    def cpu(self) -> Self:
        """This module; its tensors are on the CPU already."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Raises AssertionError, as there is no GPU; a module without tensors is returned."""
        return self._apply(lambda t: t.cuda(device))

    def type(self, dst_type: Any) -> Self:
        """Every parameter and buffer in another dtype, in place; returns this module."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Every floating-point parameter and buffer as float32, in place; returns this module."""
        return self._floating("float32")

    def double(self) -> Self:
        """Every floating-point parameter and buffer as float64, in place; returns this module."""
        return self._floating("float64")

    def half(self) -> Self:
        """Every floating-point parameter and buffer as float16, in place; returns this module."""
        return self._floating("float16")

    def bfloat16(self) -> Self:
        """Every floating-point parameter and buffer as bfloat16, in place; returns this module."""
        return self._floating("bfloat16")

    def _floating(self, name: str) -> Self:
        return self._apply(lambda t: t.to(DTYPES[name]) if t.is_floating_point() else t)

    def train(self, mode: bool = True) -> Self:
        """Set `training` here and in every module inside; returns this module. Raises ValueError for a mode that is not a boolean."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
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


Module.kinds = (
    MemberKind("_parameters", Parameter, Parameter, "parameters", "parameter", "torch.nn.Parameter"),
    MemberKind("_modules", Module, Module, "module", "child module", "torch.nn.Module"),
    MemberKind("_buffers", Buffer, Tensor, "buffer", "buffer", "torch.nn.Buffer, torch.Tensor"),
)
