"""Torch's predicate functions on tensors: equality, closeness, type tests, and the common dtype."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import NUMBERS, DType, dtype_of, result_dtype
from symgrad.engine.method_table import MethodTable
from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.tensor import Size, Tensor
from symgrad.engine.traced import traced

METHODS = MethodTable()


def is_tensor(obj: Any) -> bool:
    """Whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape and the same elements; NaN equals nothing.

    Raises TypeError for other objects than tensors.

    >>> import symgrad
    >>> symgrad.equal(symgrad.tensor([1, 2]), symgrad.tensor([1, 2]))
    True
    """
    expect_tensors("equal", input=input, other=other)
    a, b = input, other
    if a._value.dtype != b._value.dtype:
        result_dtype((a._value, b._value))  # raises for dtypes that are not promoted
    return a.shape == b.shape and bool(np.all(a._value == b._value))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether |input - other| <= atol + rtol |other| everywhere; shapes broadcast, dtypes must be equal.

    >>> import symgrad
    >>> symgrad.allclose(symgrad.tensor([1.0]), symgrad.tensor([1.0 + 1e-9]))
    True
    """
    return bool(traced.isclose(input, other, rtol, atol, equal_nan)._value.all())


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    expect_tensors("is_floating_point", input=input)
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    expect_tensors("is_complex", input=input)
    return input.is_complex()


def is_conj(input: Tensor) -> bool:
    """Whether conjugation is deferred; always False here."""
    expect_tensors("is_conj", input=input)
    return False


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    expect_tensors("is_inference", input=input)
    return bool(input.is_inference())


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero.

    Raises RuntimeError for a tensor of another number of elements.
    """
    expect_tensors("is_nonzero", input=input)
    return bool(input)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    expect_tensors("is_same_size", input=input, other=other)
    return input.shape == other.shape


def numel(input: Tensor) -> int:
    """The number of elements."""
    expect_tensors("numel", input=input)
    return input.numel()


def typename(obj: Any) -> str:
    """The name of a tensor's type, such as 'torch.FloatTensor', and of anything else that of its class."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    cls = obj if hasattr(obj, "__qualname__") else type(obj)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The common dtype of two tensors or numbers; numbers and 0-d tensors never widen a tensor of their category.

    >>> import symgrad
    >>> symgrad.result_type(symgrad.tensor([1], dtype=symgrad.uint8), 300)
    torch.uint8
    """
    for x in (tensor1, tensor2):
        if not isinstance(x, Tensor) and type(x) not in NUMBERS:
            raise TypeError(f"result_type: arguments must be Tensors or numbers, not {type(x).__name__}")
    return dtype_of(result_dtype(x._value if isinstance(x, Tensor) else x for x in (tensor1, tensor2)))


@taking_tensors
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape to which shapes broadcast.

    Raises RuntimeError for shapes that do not, ValueError for a negative size.
    """
    given = [(int(n),) if isinstance(n, int) else tuple(map(int, n)) for n in shapes]
    common = [1] * max(map(len, given), default=0)
    for k, shape in enumerate(given):
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] in (1, common[i]):
                continue
            if common[i] != 1:
                raise RuntimeError(f"broadcast_shapes: the shape {shape} at index {k} does not broadcast with {common}")
            if shape[i] < 0:
                raise ValueError(f"broadcast_shapes: the shape {shape} at index {k} has a negative size")
            common[i] = shape[i]
    return Size(common)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to the one shape they broadcast to.

    Raises RuntimeError for shapes that do not broadcast, TypeError for other objects.
    """
    given: Any = tensors
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        (given,) = given
    for i, t in enumerate(given):
        if not isinstance(t, Tensor):
            raise TypeError(f"broadcast_tensors: element {i} must be a Tensor, not {type(t).__name__}")
    shape = functools.reduce(broadcast_shapes, (t.shape for t in given), Size())
    return tuple(traced.expand(t, shape) for t in given)


METHODS["equal"] = equal
METHODS["allclose"] = allclose
METHODS["is_nonzero"] = is_nonzero
