"""In-place filling with random numbers, recorded as `copy_` of constants, and of diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.arguments import check_kind, check_least_rank, check_positive, check_range
from symgrad.engine.data import as_value
from symgrad.engine.method_table import MethodTable
from symgrad.engine.storage.strided import as_strided
from symgrad.engine.storage.versions import owner
from symgrad.engine.tensor import Tensor, wrap
from symgrad.factories import random_tensors
from symgrad.factories.generators import numpy_generator
from symgrad.factories.random_tensors import random_integers
from symgrad.layouts.strides import address
from symgrad.system.errorstate import quiet

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
