"""What declarations of modules share: modules that call a function, parameters whose shapes the first input gives, sizes and options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, ClassVar

from symgrad.engine.tensor import Tensor
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import UninitializedParameter, is_lazy


class OfFunction(Module):
    """A module that calls a function with its inputs and with parameters of the same names."""

    _function: ClassVar[Callable[..., Any]]
    _names: ClassVar[tuple[str, ...]]  # of the parameters of the constructor
    _called: ClassVar[tuple[str, ...]]  # of those that the function gets, too
    _inputs: ClassVar[tuple[str, ...]]  # of those that forward takes

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()
        try:
            bound = inspect.signature(type(self)).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}; it is called as {type(self).__name__}{inspect.signature(type(self))}") from None
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Any:
        """The value of the function."""
        if len(inputs) != len(self._inputs) or named:
            given = [*self._inputs[:len(inputs)], *named]
            if len(inputs) > len(self._inputs) or sorted(given) != sorted(self._inputs):
                raise TypeError(f"{type(self).__name__}: forward takes {', '.join(self._inputs)}, but it got {len(inputs)} inputs"
                                f"{''.join([f' and {name}' for name in named])}")
        for name in self._called:
            named[name] = getattr(self, name)
        return type(self)._function(*inputs, **named)


def module_of(name: str, function: Callable[..., Any], parameters: str | None = None, *, module: str, base: type[OfFunction] = OfFunction,
              doc: str | None = None, shown: str | None = None, **own: Any) -> Any:
    """The class of a module from a function: its parameters are those that have a default, or some by their names."""
    known = inspect.signature(function).parameters
    words = [word for word, p in known.items() if p.default is not p.empty and word != "training"] if parameters is None else parameters.split()
    called = tuple(word for word in words if word not in ("size_average", "reduce")) + ("training",) * ("training" in known)
    signature = inspect.Signature([known[word].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for word in words])
    text = function.__doc__ if doc is None else doc
    inputs = {word: p for word, p in known.items() if p.default is p.empty and word not in (*words, *called)}
    members = {"__doc__": f"{(text or name).partition(chr(10))[0]}\n\n    The parameters are those of `nn.functional.{function.__name__}`.\n    ",
               "__module__": module, "__signature__": signature, "_function": staticmethod(function), "_names": tuple(words), "_called": called,
               "_inputs": tuple(inputs)}
    if shown is not None or not base._shown:
        members["_shown"] = " ".join("?inplace" if word == "inplace" else word for word in words) if shown is None else shown
    if base.forward is OfFunction.forward:  # a copy with the names of the inputs; other bases have a forward with names of its own
        forward = FunctionType(base.forward.__code__, base.forward.__globals__, "forward", base.forward.__defaults__, base.forward.__closure__)
        taken = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *inputs.values()])
        forward.__doc__, forward.__signature__ = base.forward.__doc__, taken  # type: ignore[attr-defined]
        forward.__qualname__, forward.__module__ = f"{name}.forward", module
        members["forward"] = forward
    return type(name, (base,), members | own)


def shown_options(module: Any, *sizes: Any, **defaults: Any) -> str:
    """The text of sizes, and of the options that are not the default."""
    given = (f"{name}={getattr(module, name)}" for name, default in defaults.items() if getattr(module, name) != default)
    return ", ".join([*map(str, sizes), *given])


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


def _ntuple(n: int) -> Callable[[Any], tuple]:
    """The function that repeats a number `n` times; a sequence becomes a tuple."""
    return lambda x: tuple(x) if isinstance(x, Iterable) else (x,) * n


_single, _pair, _triple, _quadruple = map(_ntuple, (1, 2, 3, 4))


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> tuple:
    """Each element `n` times, from the last to the first."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix from the names of a `state_dict` and of its metadata, in place: names with it move to the end, in their order.

    >>> from symgrad import nn
    >>> state = nn.DataParallel(nn.Linear(2, 3)).state_dict()
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> list(state)
    ['weight', 'bias']
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix):]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in [key for key in metadata if key and (key == prefix.replace(".", "") or key.startswith(prefix))]:
        metadata[key[len(prefix):]] = metadata.pop(key)
