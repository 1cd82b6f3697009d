"""Modules whose parameters get their shapes from the first input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from symgrad.nn.parameter import UninitializedParameter, is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """The part of a module whose parameters or buffers have no shape yet; it stands before the class of the module among the bases.

    The first call calls `initialize_parameters` with its arguments, where a subclass gives each its shape with `materialize`. The module then
    becomes one of the class `cls_to_become`, if that is set. A state with shapes can be loaded before.

    Raises RuntimeError if a parameter has no shape after `initialize_parameters`.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = nn.LazyLinear(3)
    >>> layer.weight
    <UninitializedParameter>
    >>> layer(symgrad.ones(5, 2)).shape, layer
    (torch.Size([5, 3]), Linear(in_features=2, out_features=3, bias=True))
    """

    cls_to_become: ClassVar[type | None] = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        this: Any = self
        self._load_hook = this.register_load_state_dict_pre_hook(_take_shapes)
        self._initialize_hook = this.register_forward_pre_hook(_initialize, with_kwargs=True)

    def _without_shapes(self, names: Iterable[str], device: Any, dtype: Any) -> None:
        """Set parameters without a shape."""
        for name in names:
            setattr(self, name, UninitializedParameter(device=device, dtype=dtype))

    def _shapes(self, *args: Any, **kwargs: Any) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters and buffers for the arguments of the first call."""
        raise NotImplementedError(f"initialize_parameters: {type(self).__name__} must define it")

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters shapes and values that fit the arguments of the first call; a subclass defines it."""
        this: Any = self
        if self.has_uninitialized_params():
            for name, shape in self._shapes(*args, **kwargs).items():
                if getattr(this, name) is not None:
                    getattr(this, name).materialize(shape)
            this.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters again, if their shapes are known."""
        if "_initialize_hook" in self.__dict__ and not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of this module has no shape."""
        this: Any = self
        return any(map(is_lazy, (*this._parameters.values(), *this._buffers.values())))

    def _infer_parameters(self, module: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> None:
        """Initialize the parameters of a module from the arguments of its first call."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"{type(self).__name__}: initialize_parameters must give every parameter a shape")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


def _initialize(module: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    module._infer_parameters(module, args, kwargs)


def _take_shapes(module: Any, state_dict: Any, prefix: str, *_: Any) -> None:
    """Give what has no shape yet that of the tensor to be loaded."""
    for name, tensor in (*module._parameters.items(), *module._buffers.items()):
        given = state_dict.get(prefix + name)
        if is_lazy(tensor) and given is not None and not is_lazy(given):
            tensor.materialize(given.shape)
