"""The members of a module by their names, and operations on all of them: parameters, buffers and modules inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

from symgrad.autograd.engine import clear_gradients
from symgrad.autograd.modes import no_grad
from symgrad.dtypes.dtype import DTYPES, dtype_of
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty_like
from symgrad.layouts.devices import check_cpu
from symgrad.methods.layout import parse_to
from symgrad.nn.parameter import Parameter, is_lazy

__all__ = ["MembersMixin"]


def _conversion(name: str, dtype: str) -> Any:
    def convert(self: Any) -> Any:
        return self._apply(lambda t: t.to(DTYPES[dtype]) if t.is_floating_point() else t)

    convert.__name__, convert.__qualname__ = name, f"Module.{name}"
    convert.__doc__ = f"Every floating-point parameter and buffer as {dtype}, in place; returns this module."
    return convert


class MembersMixin:
    """The part of `Module` for its members."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]

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
        if not isinstance(found, MembersMixin):
            raise AttributeError(f"get_submodule: {target!r} is a {type(found).__name__}, not a module")
        return found

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Set a module under a dotted name; with `strict` only if one exists there.

        Raises ValueError for an empty name and for an object that is not a module, AttributeError if the parent module does not exist.
        """
        if not target or not isinstance(module, MembersMixin):
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
