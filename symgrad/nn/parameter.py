"""`Parameter` and `Buffer`, which a module registers when they are assigned to it; and those whose shape is not known yet."""

from __future__ import annotations

from typing import Any, ClassVar

from symgrad.engine.graph_breaks import constant_made
from symgrad.engine.tensor import Tensor, new, wrap
from symgrad.factories.creation import empty
from symgrad.graph.node import Leaf
from symgrad.methods.printing import text

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "factory_kwargs"]


def _shared(cls: type, data: Any, requires_grad: bool) -> Any:
    """A tensor of a class that shares the memory, and the symbol, of another."""
    if data is None:
        data = empty(0)
    if not isinstance(requires_grad, bool):
        raise TypeError(f"{cls.__name__}: requires_grad must be a boolean, not {type(requires_grad).__name__}")
    out = new(cls)
    out._value, out._node, out._view = data.detach()._shared_array(), None, None
    if requires_grad and not (out.is_floating_point() or out.is_complex()):
        raise RuntimeError(f"{cls.__name__}: a tensor of {out.dtype} cannot require a gradient. Pass requires_grad=False")
    symbol = data._node.symbol if isinstance(data._node, Leaf) else None
    if requires_grad or symbol is not None:
        out._make_leaf(requires_grad, symbol)
    return out


def _rebuilt(cls: type, *given: Any) -> Any:
    return cls(*given)


class Parameter(Tensor):
    """A trainable tensor: assigned to a module, it is among its `parameters()`.

    It shares memory with `data` and requires grad by default. Results computed from it are plain Tensors.

    Raises RuntimeError for integers with `requires_grad`.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Parameter(symgrad.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if isinstance(data, Tensor):
            constant_made(data, f"{cls.__name__}()")
        return _shared(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (type(self), self.data, self.requires_grad), vars(self) or None

    def __repr__(self) -> str:
        return "Parameter containing:\n" + text(self, "tensor")

    __str__ = __repr__


class Buffer(Tensor):
    """A tensor of a module that is not trained: assigned to a module, it is among its `buffers()`.

    `persistent`: whether it is part of the module's `state_dict`.
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        self = _shared(cls, data, data is not None and data.requires_grad)
        self.persistent = persistent
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (type(self), self.data), self.__dict__

    def __repr__(self) -> str:
        return text(self, "tensor")

    __str__ = __repr__


# Without a shape

_slot: Any = Tensor.__dict__["_value"]  # behind the property of the same name below


def _refused(self: Any) -> Any:
    raise ValueError(f"uninitialized parameter: a {type(self).__name__} has no values before the first call of its module, or `materialize`")


def _without_shape(self: Any) -> Any:
    raise RuntimeError(f"uninitialized parameter: a {type(self).__name__} has no shape before the first call of its module, or `materialize`")


class UninitializedTensorMixin:
    """A tensor whose shape is not known: it has a dtype and a flag `requires_grad`; every use of its values raises ValueError."""

    cls_to_become: ClassVar[type]
    __reduce_ex__: Any
    _value: Any = property(_refused)
    shape: Any = property(_without_shape)

    @property
    def data(self) -> Tensor:
        """An empty tensor of the dtype."""
        return wrap(_slot.__get__(self))

    @data.setter
    def data(self, other: Tensor) -> None:
        _slot.__set__(self, other._array())

    @property
    def dtype(self) -> Any:
        """The dtype of the values to come."""
        return self.data.dtype

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Make this object a parameter or buffer of a shape, with values that are undefined.

        >>> from symgrad import nn
        >>> parameter = nn.UninitializedParameter()
        >>> parameter.materialize((2, 3))
        >>> type(parameter).__name__, parameter.shape
        ('Parameter', torch.Size([2, 3]))
        """
        values = empty(shape, device=device, dtype=self.dtype if dtype is None else dtype)
        self.__class__ = self.cls_to_become
        self.data = values  # of the new class

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            rebuild, arguments = self.__reduce_ex__(2)
            memo[id(self)] = rebuild(*arguments)
        return memo[id(self)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A `Parameter` whose shape is not known yet; `materialize` gives it one."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        self: Any = Parameter(empty(0, device=device, dtype=dtype), requires_grad)
        self.__class__ = cls
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (type(self), self.requires_grad, None, self.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A `Buffer` whose shape is not known yet; `materialize` gives it one."""

    cls_to_become = Buffer

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> UninitializedBuffer:
        self: Any = Buffer(empty(0, device=device, dtype=dtype, requires_grad=requires_grad), persistent=persistent)
        self.__class__ = cls
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (type(self), self.requires_grad, None, self.dtype, self.persistent)


def is_lazy(param: Any) -> bool:
    """Whether an object is a parameter or buffer without a shape.

    >>> from symgrad import nn
    >>> is_lazy(nn.LazyLinear(3).weight), is_lazy(nn.Linear(2, 3).weight)
    (True, False)
    """
    return isinstance(param, UninitializedTensorMixin)


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments for functions such as `empty` among those of a module: device, dtype and memory_format, or a dictionary `factory_kwargs` of them.

    Raises TypeError for any other argument, and for one that is given twice.

    >>> factory_kwargs({"dtype": None, "factory_kwargs": {"device": "cpu"}})
    {'device': 'cpu', 'dtype': None}
    """
    simple = {"device", "dtype", "memory_format"}
    given = dict(kwargs or {})
    out = dict(given.pop("factory_kwargs", {}))
    if given.keys() - simple:
        raise TypeError(f"unexpected kwargs {given.keys() - simple}")
    for name in given:
        if name in out:
            raise TypeError(f"{name} is given twice, by itself and in factory_kwargs")
    return out | given
