"""Parametrizations: a parameter or buffer of a module that is a function of others, computed whenever it is read."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.nn.modules.container import ModuleDict, ModuleList
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter
from symgrad.system.restoring import restored

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
           "transfer_parametrizations_and_params", "type_before_parametrizations"]


class _Cache(threading.local):
    """The tensors that were computed within `cached`, by module and name."""

    depth = 0

    def __init__(self) -> None:
        self.tensors: dict[tuple[int, str], Tensor] = {}


_cache = _Cache()


def cached() -> AbstractContextManager[None]:
    """Compute each parametrized tensor once within the block, and keep it: for modules that read one several times.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
    >>> with cached():
    ...     layer.weight is layer.weight
    True
    """
    before = _cache.depth

    def restore() -> None:
        _cache.depth = before
        if not before:
            _cache.tensors.clear()

    return restored(restore, partial(setattr, _cache, "depth", before + 1))


def _register(module: Any, name: str, tensor: Tensor) -> None:
    (module.register_parameter if isinstance(tensor, Parameter) else module.register_buffer)(name, tensor)


def _check(what: str, found: Any, wanted: Tensor | None = None, *kinds: str) -> None:
    """Raise ValueError unless something is a tensor, of the dtype and the shape of another one."""
    if not isinstance(found, Tensor):
        raise ValueError(f"{what} must be a tensor, not {type(found).__name__}")
    for kind in kinds:
        old, new = getattr(wanted, kind), getattr(found, kind)
        if old != new:
            raise ValueError(f"{what} must keep the {kind}, {old}, but it has {new}")


def _inverted(module: Any, value: Any) -> Any:
    """What the right inverse of a parametrization gives, or the value itself if there is none."""
    try:
        return module.right_inverse(value) if hasattr(module, "right_inverse") else value
    except NotImplementedError:
        return value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, each applied to the result of the one before, and the tensors that the first is applied to.

    Those are `original`, or `original0`, `original1`, ... where the last `right_inverse` gave several.

    Raises ValueError without parametrizations and, unless `unsafe`, where they change the dtype or the shape of the tensor.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        if not len(modules):
            raise ValueError("ParametrizationList: there are no modules; give at least one")
        super().__init__(modules)
        self.unsafe = unsafe
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                new = _inverted(module, new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(f"right_inverse: it must return a tensor, or a sequence of them, not {type(new).__name__}")
        self.is_tensor = isinstance(new, Tensor)
        parts: list[Tensor] = [new] if isinstance(new, Tensor) else list(new)
        self.ntensors = len(parts)
        for part in parts:
            _check("right_inverse: each result", part, original, *("dtype",) * self.is_tensor)
        if not unsafe:
            _check("parametrization: the result", self._composed(parts), original, "dtype", "shape")
        if self.is_tensor:
            original.data = new  # an optimizer that has the parameter keeps it
            parts = [original]
        elif isinstance(original, Parameter):
            parts = [Parameter(part, original.requires_grad) for part in parts]
        else:
            parts = [part.requires_grad_(original.requires_grad) for part in parts]
        for name, part in zip(self._original_names(), parts):
            _register(self, name, part)

    def _original_names(self) -> list[str]:
        """The names of the originals."""
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    def _originals(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._original_names()]

    def _composed(self, originals: Sequence[Tensor]) -> Any:
        first, *others = self
        value = first(*originals)
        for module in others:
            value = module(value)
        return value

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the parametrized tensor is `value`, as far as the parametrizations' `right_inverse` do so.

        Raises RuntimeError if one has none, ValueError where their results do not fit the originals.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"{type(module).__name__}: without right_inverse the parametrized tensor cannot be set")
                value = module.right_inverse(value)
        values = [value] if self.is_tensor else list(value) if isinstance(value, Sequence) else []
        if len(values) != self.ntensors:
            raise ValueError(f"right_inverse: it must return {self.ntensors} tensors, not {type(value).__name__} of {len(values)}")
        for original, tensor in zip(self._originals(), values):
            _check("right_inverse: each result", tensor, original, "dtype")
        for original, tensor in zip(self._originals(), values):
            original.data = tensor

    def forward(self) -> Any:
        """The parametrized tensor."""
        return self._composed(self._originals())


def _deepcopied(self: Any, memo: dict[int, Any]) -> Any:
    replica = self.__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return replica


def _refuse_to_pickle(self: Any) -> Any:
    raise RuntimeError(f"{type(self).__name__}: a parametrized module cannot be pickled. Save its state_dict()")


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        if not _cache.depth:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _cache.tensors:
            _cache.tensors[key] = self.parametrizations[name]()
        return _cache.tensors[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Make a parameter or buffer of a module a function of its former value, which is optimized instead; returns the module.

    It is computed whenever it is read, `parametrization(original)`; several are composed. Where a parametrization has a `right_inverse`, the
    original is first set to that of the tensor, and assignment to the tensor sets the original; `right_inverse` may return several tensors.

    Raises ValueError for a name without a tensor and, unless `unsafe`, for a parametrization that changes the dtype or the shape.

    >>> import symgrad
    >>> from symgrad import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> symgrad.equal(layer.weight, layer.weight.T), [name for name, parameter in layer.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            value = getattr(module, tensor_name)
            _check("parametrization: the result", new := parametrization(value), value, "dtype", "shape")
            _check("right_inverse: the result", _inverted(parametrization, new), value, "dtype", "shape")
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            cls = type(module)
            own = {"__getstate__": _refuse_to_pickle} | ({} if hasattr(cls, "__deepcopy__") else {"__deepcopy__": _deepcopied})
            module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), own)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(f"register_parametrization: {type(module).__name__} has no parameter or buffer {tensor_name!r}")
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a module, or any of them, has a parametrization."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Remove the parametrizations of a tensor; returns the module.

    The tensor keeps its present value, or becomes the original with `leave_parametrized=False`.

    Raises ValueError for a tensor without parametrizations, and for one of several originals with `leave_parametrized=False`.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: {type(module).__name__} has no parametrization of {tensor_name!r}")
    parametrizations = module.parametrizations[tensor_name]
    if not parametrizations.is_tensor and not leave_parametrized:
        raise ValueError(f"remove_parametrizations: {tensor_name!r} has several originals; it needs leave_parametrized=True")
    if parametrizations.is_tensor:
        tensor = parametrizations.original
        if leave_parametrized:
            tensor.data = getattr(module, tensor_name)
    else:
        value = getattr(module, tensor_name)
        tensor = Parameter(value) if value.requires_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, tensor)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class of a module without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Give a module the parametrizations of another one, or of one of its tensors, with their originals; returns the module.

    A parameter that the module does not have is created.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        for key in source._original_names():
            setattr(to_module.parametrizations[name], key, getattr(source, key))
    return to_module
