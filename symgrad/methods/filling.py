"""In-place filling with random numbers, recorded as `copy_` of constants, of diagonals, and by a Python function of each element; and other methods
that torch has for its own memory and modules.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.arguments import check_kind, check_least_rank, check_option, check_positive, check_range
from symgrad.engine.data import as_value
from symgrad.engine.method_table import MethodTable
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.storage.versions import owner
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.factories import random_tensors
from symgrad.factories.generators import numpy_generator
from symgrad.factories.random_tensors import random_integers
from symgrad.layouts.strides import address, order_of_strides, row_major
from symgrad.methods.inplace import in_place
from symgrad.methods.reshaping import as_strided
from symgrad.ops.rules import axes, sizes
from symgrad.system.errorstate import quiet, quietly

METHODS = MethodTable()

LARGEST_EXACT = {"float64": 2**53, "float32": 2**24, "float16": 2**11, "bfloat16": 2**8, "bool": 1}  # up to which all integers are exact


def _fill(self: Tensor, drawn: Any) -> Tensor:
    return self.copy_(wrap(np.asarray(drawn).astype(self._value.dtype)))


@METHODS.define
@quiet
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fill the tensor with numbers from a normal distribution; returns it.

    Raises RuntimeError for a negative standard deviation and for a leaf that requires grad.

    >>> import symgrad
    >>> symgrad.empty(2).normal_(3.0, 0.0)
    tensor([3., 3.])
    """
    check_kind("normal_", self, "fc")
    check_range("normal_", "std", std, 0)
    source = numpy_generator(generator)
    drawn = source.standard_normal(self._value.shape)
    if self.is_complex():
        drawn = (drawn + 1j * source.standard_normal(self._value.shape)) * np.sqrt(0.5)
    return _fill(self, mean + std * drawn)


@METHODS.define
@quiet
def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **words: float) -> Tensor:
    """Fill the tensor with uniform random numbers from [from, to); returns it.

    Raises RuntimeError where `to` is below `from`, and for a leaf that requires grad.
    """
    from_ = words.pop("from", from_)
    check_kind("uniform_", self, "fc")
    check_range("uniform_", "from", from_, high=to)
    drawn = (from_ + (to - from_) * numpy_generator(generator).random(self._value.shape)).astype(self._value.dtype)
    return _fill(self, np.where(drawn < to, drawn, from_) if to > from_ else drawn)  # rounding may give `to` itself


@METHODS.define
@quiet
def random_(self: Tensor, from_: int | None = None, to: int | None = None, *, generator: Any = None, **words: int) -> Tensor:
    """Fill the tensor with random integers from [from, to): `random_(to)` starts at 0, `random_()` uses the range of the dtype.

    Raises RuntimeError for an empty range, one beyond the dtype, and a leaf that requires grad.
    """
    from_ = words.pop("from", from_)
    kind = self.dtype
    check_kind("random_", self, "fiub")
    if to is None and from_ is None:
        to = (LARGEST_EXACT[kind.name] if kind.name in LARGEST_EXACT else int(np.iinfo(kind.numpy).max) - (kind.name == "int64")) + 1
    low, high = (0, from_) if to is None else (from_ or 0, to)
    return _fill(self, random_integers(int(low), int(high), self._value.shape, kind.numpy, generator))  # type: ignore[arg-type]


@METHODS.define
def bernoulli(self: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """1 with the probabilities that this tensor holds, or with probability `p`, else 0.

    Raises RuntimeError for a probability outside [0, 1].
    """
    return random_tensors.bernoulli(self, p, generator=generator)


@METHODS.define
def multinomial(self: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Random indices with the weights that this vector holds, or with those of each row; as `symgrad.multinomial`."""
    return random_tensors.multinomial(self, num_samples, replacement, generator=generator)


@METHODS.define
@quiet
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Fill the tensor with 1 with probability `p`, a number or a tensor, and else with 0; returns it.

    Raises RuntimeError for a probability outside [0, 1], and for a leaf that requires grad.
    """
    chance = as_value(p)
    if not np.all((chance >= 0) & (chance <= 1)):
        raise RuntimeError(f"bernoulli_: p must be from 0 to 1, not {p}")
    return _fill(self, numpy_generator(generator).random(self._value.shape) < chance)


@METHODS.define
@quiet
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fill the tensor with numbers from the exponential distribution of density λ exp(-λ x); returns it.

    Raises RuntimeError unless λ is positive, and for a leaf that requires grad.
    """
    check_kind("exponential_", self, "fc")
    check_positive("exponential_", "lambd", lambd)
    return _fill(self, numpy_generator(generator).exponential(1 / lambd, self._value.shape))


@METHODS.define
@quiet
def geometric_(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Fill the tensor with the numbers of trials up to the first success of probability `p`; returns it.

    Raises RuntimeError for a probability outside (0, 1), and for a leaf that requires grad.
    """
    check_positive("geometric_", "p", p)
    check_positive("geometric_", "1 - p", 1 - p)
    return _fill(self, numpy_generator(generator).geometric(p, self._value.shape))


@METHODS.define
@quiet
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    """Fill the tensor with numbers whose logarithms have a normal distribution; returns it.

    Raises RuntimeError unless the standard deviation is positive, and for a leaf that requires grad.
    """
    check_kind("log_normal_", self, "fc")
    check_positive("log_normal_", "std", std)
    return _fill(self, numpy_generator(generator).lognormal(mean, std, self._value.shape))


@METHODS.define
@quiet
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fill the tensor with numbers from a Cauchy distribution; returns it.

    Raises RuntimeError unless the scale is positive, and for a leaf that requires grad.
    """
    check_kind("cauchy_", self, "fc")
    check_positive("cauchy_", "sigma", sigma)
    return _fill(self, median + sigma * numpy_generator(generator).standard_cauchy(self._value.shape))


@METHODS.define
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write one number on the main diagonal; with `wrap` the diagonal of a tall matrix starts again one row below its end.

    Raises RuntimeError for fewer than two dimensions, for three or more of different sizes, and for a leaf that requires grad.

    >>> import symgrad
    >>> symgrad.zeros(2, 3).fill_diagonal_(5)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    shape = self.shape
    check_least_rank("fill_diagonal_", self, 2)
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError(f"fill_diagonal_: three or more dimensions must have one size, but the shape is {list(shape)}")
    x = self._array()
    step, start = sum(x.strides) // x.itemsize, (address(x) - address(owner(x))) // x.itemsize
    as_strided(self, (min(shape),), (step,), start).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        count, below = -(-x.size // (shape[1] + 1)) - min(shape), x.strides[0] // x.itemsize * (shape[1] + 1)
        as_strided(self, (count,), (step,), start + below).fill_(fill_value)
    return self


def _mapped(name: str, self: Tensor, function: Callable[..., Any], *others: Tensor) -> Tensor:
    """Write the results of a function of one number from each tensor, broadcast."""
    if any(x.requires_grad for x in (self, *others)):
        raise RuntimeError(f"{name}: a tensor requires grad, but a function of Python has no derivative. Call it on x.detach()")
    for x in others:
        if x.dtype is not self.dtype:
            raise TypeError(f"{name}: the tensors must have the dtype {self.dtype}, not {x.dtype}")
    arrays = np.broadcast_arrays(self._value, *(x._value for x in others))
    if arrays[0].shape != tuple(self.shape):
        raise RuntimeError(f"{name}: the shape {list(arrays[0].shape)} of the arguments does not fit into the shape {list(self.shape)}")
    found = [function(*numbers) for numbers in zip(*(x.ravel().tolist() for x in arrays))]
    return self.copy_(quietly(np.array(found).reshape(self.shape).astype, self._value.dtype))


@METHODS.define
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by the result of a function of one number; returns the tensor.

    Raises RuntimeError for a tensor that requires grad: the function has no derivative.

    >>> import symgrad
    >>> symgrad.tensor([1.0, 2.0]).apply_(lambda x: x + 1)
    tensor([2., 3.])
    """
    return _mapped("apply_", self, callable)


@METHODS.define
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by the result of a function of it and of that of another tensor; as `apply_`."""
    return _mapped("map_", self, callable, tensor)


@METHODS.define
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by the result of a function of it and of those of two other tensors; as `apply_`."""
    return _mapped("map2_", self, callable, x, y)


@METHODS.define
def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the one with the largest stride to the one with the smallest, as they lie in memory.

    With `ambiguity_check` raises RuntimeError where dimensions of size one leave the order open.
    """
    steps = self.stride()
    order = order_of_strides(self.shape, [steps])
    if ambiguity_check and (len(set(steps)) < len(steps) or any(n == 1 for n in self.shape)):
        raise RuntimeError(f"dim_order: the strides {steps} of the shape {list(self.shape)} leave the order open")
    return tuple(order)


def _resized(self: Tensor, size: tuple[int, ...]) -> Tensor:
    if int(np.prod(size, dtype=np.int64)) != self.numel():
        raise RuntimeError(f"resize: the shape {list(size)} does not have the {self.numel()} elements of the tensor. Call resize_")
    return traced.reshape(self, size)


@METHODS.define
def resize(self: Tensor, *sizes_: int) -> Tensor:
    """The tensor in another shape, as `reshape`; deprecated, with a warning.

    Raises RuntimeError for another number of elements.
    """
    warnings.warn("Tensor.resize: use reshape; `resize_` writes in place", UserWarning, stacklevel=2)
    return _resized(self, sizes(sizes_))


@METHODS.define
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The tensor in the shape of another, as `view_as`; deprecated, with a warning.

    Raises RuntimeError for another number of elements.
    """
    warnings.warn("Tensor.resize_as: use view_as; `resize_as_` writes in place", UserWarning, stacklevel=2)
    return _resized(self, tuple(tensor.shape))


@METHODS.define
@taking_tensors
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or of the bits of the elements over `dim`, or over all elements, as unsigned integers: of floats those of float64.

    Raises RuntimeError for another mode, NotImplementedError for complex numbers, IndexError for dimensions without elements.

    >>> import symgrad
    >>> symgrad.hash_tensor(symgrad.tensor([1, 4, 8])).item()
    13
    """
    check_option("hash_tensor", "mode", mode, (0,))
    check_kind("hash_tensor", input, "fiub")
    along = axes(tuple(dim) if isinstance(dim, (tuple, list)) else dim, input.ndim)
    if not input._value.size and (dim in ((), []) or not all(input.shape[i] for i in along)):
        raise (RuntimeError if dim in ((), []) else IndexError)(f"hash_tensor: dim {dim} of a shape {list(input.shape)} has no elements")
    whole = input._value.dtype.kind in "biu"
    bits = np.asarray(input._value).astype(np.int64 if whole else np.float64).view(np.uint64)
    return wrap(row_major(np.asarray(np.bitwise_xor.reduce(bits, axis=tuple(along), keepdims=bool(keepdim)))))  # type: ignore[call-overload]


@METHODS.define
@taking_tensors
def slice_inverse(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """The tensor of which the input is a slice, given another tensor of its shape and strides: a view of the input's memory."""
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


@METHODS.define
def polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order n of digamma, ψ⁽ⁿ⁾; as `symgrad.polygamma(n, self)`."""
    return FUNCTIONS["polygamma"](n, self)


@METHODS.define
def __dlpack__(self: Tensor, **options: Any) -> Any:
    """The memory as a capsule of DLPack, for other libraries. Raises BufferError for a tensor that requires grad."""
    if self.requires_grad:
        raise BufferError("__dlpack__: the tensor requires grad. Export x.detach()")
    return np.asarray(self._shared_array()).__dlpack__(**{word: given for word, given in options.items() if given is not None})


@METHODS.define
def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    """The kind and number of the device in DLPack: the CPU."""
    return 1, 0


METHODS["polygamma_"] = in_place("polygamma_", polygamma)
