"""Modules whose parameters get their shapes from the first input."""

from __future__ import annotations

from typing import Any, ClassVar

from symgrad.nn.parameter import is_lazy

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

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters shapes and values that fit the arguments of the first call; a subclass defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of this module has no shape."""
        this: Any = self
        return any(map(is_lazy, (*this._parameters.values(), *this._buffers.values())))

    def _infer_parameters(self, module: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> None:
        """Initialize the parameters of a module from the arguments of its first call."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
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
