"""Discrete Fourier transforms, with torch's names: differentiable to every order, in complex and real numbers.

All of them are made of three linear ops: from complex to complex numbers, from real ones, and to real ones (`symgrad/ops/convolution.py`).

`n` and `s` are the sizes to which the input is cut, or filled up with zeros, before the transform (in `irfft` and `hfft` those of the result);
`norm` is the factor: "backward" has 1/n in the inverse transform, "forward" in the other one, and "ortho" has 1/√n in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.arguments import check_kind, check_least_rank, check_option, check_positive, check_range
from symgrad.dtypes.dtype import get_default_dtype
from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.storage.writes import into
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import tensor
from symgrad.ops.rules import axis

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2",
           "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]

Integers = int | Sequence[int] | None


def _integers(name: str, word: str, given: Any) -> tuple[int, ...]:
    out = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    for n in out:
        if not hasattr(n, "__index__"):
            raise TypeError(f"{name}: {word} must be integers, not {n!r}")
    return tuple(n.__index__() for n in out)


def _floats(x: Any) -> Any:
    """Integers as floats of the default dtype. Raises RuntimeError for floats of two bytes."""
    if x._value.dtype.char in "dDfF":
        return x
    dtype = x.dtype if x.is_floating_point() or x.is_complex() else get_default_dtype()
    if dtype.itemsize < 4:
        raise RuntimeError(f"fft: a tensor of {dtype} has too few digits. Convert it with .to(float32)")
    return x if x.dtype is dtype else x.to(dtype)


def _resized(x: Any, dim: int, n: int) -> Any:
    """The first n slices along `dim`, filled up with zeros."""
    size = x.shape[dim]
    if n <= size:
        return x if n == size else traced.narrow(x, dim, 0, n)
    return traced.cat([x, traced.zeros_like(x, (*x.shape[:dim], n - size, *x.shape[dim + 1:]))], dim)


def _divisor(norm: str | None, inverse: bool, sizes: Sequence[int]) -> float:
    check_option("fft", "norm", norm, (None, "backward", "ortho", "forward"))
    count = math.prod(sizes)
    return math.sqrt(count) if norm == "ortho" else count if (norm == "forward") != inverse else 1


def _prepared(x: Any, sizes: list[int], dims: tuple[int, ...], halved: bool = False) -> Any:
    """Floats of the sizes along the dimensions; the last is that of a half of a spectrum if it is halved."""
    for n in sizes:
        check_positive("fft", "a size", n)
    x = _floats(x)
    shape = x._value.shape
    for n, dim in zip((*sizes[:-1], sizes[-1] // 2 + 1) if halved else sizes, dims):
        if n != shape[dim]:
            x = _resized(x, dim, n)
    return x


def _transform(x: Any, sizes: list[int], dims: tuple[int, ...], norm: str | None, inverse: bool) -> Any:
    """From complex to complex numbers."""
    x, divisor = _prepared(x, sizes, dims), _divisor(norm, inverse, sizes)
    if x._value.dtype.kind == "c":
        return traced.fourier(x, dims, inverse, divisor) if dims else traced.clone(x)
    return traced.fourier_of_real(x, dims, inverse, divisor, False) if dims else x.to(x.dtype.to_complex())


def _from_real(x: Any, sizes: list[int], dims: tuple[int, ...], norm: str | None, inverse: bool) -> Any:
    """From real numbers to the first half of their spectrum along the last of the dimensions."""
    return traced.fourier_of_real(_prepared(x, sizes, dims), dims, inverse, _divisor(norm, inverse, sizes), True)


def _to_real(x: Any, sizes: list[int], dims: tuple[int, ...], norm: str | None, inverse: bool) -> Any:
    """From the first half of a spectrum along the last of the dimensions to real numbers."""
    x = _prepared(x, sizes, dims, True)
    x = x if x._value.dtype.kind == "c" else traced.astype(x, x.dtype.to_complex())
    return traced.fourier_to_real(x, dims, inverse, _divisor(norm, inverse, sizes), sizes[-1])


def _dimension(dim: int, x: Any) -> int:
    check_least_rank("fft", x, 1, kind=IndexError)
    return axis(dim, x._value.ndim)


def _one_dimension(name: str, x: Any, n: Any, dim: Any, halved: bool) -> tuple[list[int], tuple[int, ...]]:
    """The size and the dimension of a transform along one."""
    if type(dim) is not int:
        (dim,) = _integers(name, "dim", dim)
    dim = _dimension(dim, x)
    if n is not None:
        return list(_integers(name, "n", n)), (dim,)
    size = x._value.shape[dim]
    return [2 * (size - 1) if halved else size], (dim,)


def _several_dimensions(name: str, x: Any, s: Any, dim: Any, halved: bool) -> tuple[list[int], tuple[int, ...]]:
    """The sizes and the dimensions of a transform along several: those of `s` are the last ones, without `s` they are all."""
    given = None if s is None else _integers(name, "s", s)
    if dim is None:
        dims = tuple(range(x._value.ndim))
    else:
        dims = tuple([_dimension(d, x) for d in (dim if type(dim) is tuple and {*map(type, dim)} == {int} else _integers(name, "dim", dim))])
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"{name}: the dimensions {dim} are not distinct")
    if given is not None:
        check_range(name, "the number of sizes", len(given), None if dim is None else len(dims), len(dims))
        dims = dims[len(dims) - len(given):]
    shape = x._value.shape
    sizes = [shape[d] for d in dims] if given is None else [shape[d] if n == -1 else n for n, d in zip(given, dims)]
    if halved and dims and (given is None or given[-1] == -1):
        sizes[-1] = 2 * (sizes[-1] - 1)
    return sizes, dims


def _define(name: str, doc: str) -> Callable[..., Tensor]:
    """A transform by its name: i for inverse, r and h for real numbers, 2 and n for several dimensions."""
    kind = name.rstrip("2n")
    transform = _to_real if kind in ("irfft", "hfft") else _from_real if kind in ("rfft", "ihfft") else _transform
    inverse, internal = kind[0] == "i", f"fft_{name}"

    def compute(input: Any, sizes: Any, dim: Any, norm: Any, dimensions: Callable[..., Any]) -> Any:
        expect_tensors(name, input=input)
        if transform is _from_real:
            check_kind(name, input, "fiub")
        sizes, dims = dimensions(name, input, sizes, dim, transform is _to_real)
        if transform is not _transform:
            check_positive(name, "the number of dimensions", len(dims))
        return transform(input, sizes, dims, norm, inverse)

    def along_one(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
        args = input, n, dim, norm, _one_dimension
        return compute(*args) if out is None else into(out, internal, compute, *args)

    def along_two(input: Tensor, s: Integers = None, dim: Integers = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
        args = input, s, dim, norm, _several_dimensions
        return compute(*args) if out is None else into(out, internal, compute, *args)

    def along_several(input: Tensor, s: Integers = None, dim: Integers = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
        return along_two(input, s, dim, norm, out=out)

    function = along_one if name == kind else along_two if name[-1] == "2" else along_several
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


fft = _define("fft", """The transform Σ exp(-2πi jk/n) x_j along one dimension.

>>> import symgrad
>>> fft(symgrad.tensor([1.0, 2.0, 0.0, 0.0]))
tensor([ 3.+0.j,  1.-2.j, -1.+0.j,  1.+2.j])
""")
fft2 = _define("fft2", "The transform along two dimensions, by default the last ones.")
fftn = _define("fftn", "The transform along several dimensions, by default all.")
ifft = _define("ifft", """The inverse of `fft`: (1/n) Σ exp(2πi jk/n) x_j along one dimension.

>>> import symgrad
>>> ifft(fft(symgrad.tensor([1.0, 2.0, 0.0, 0.0]))).real
tensor([1., 2., 0., 0.])
""")
ifft2 = _define("ifft2", "The inverse of `fft2`.")
ifftn = _define("ifftn", "The inverse of `fftn`.")
rfft = _define("rfft", """The transform of real numbers along one dimension: the first n // 2 + 1 terms, of which the others are conjugates.

>>> import symgrad
>>> rfft(symgrad.tensor([1.0, 2.0, 0.0, 0.0]))
tensor([ 3.+0.j,  1.-2.j, -1.+0.j])
""")
rfft2 = _define("rfft2", "The transform of real numbers along two dimensions; the last one is halved.")
rfftn = _define("rfftn", "The transform of real numbers along several dimensions, by default all; the last one is halved.")
irfft = _define("irfft", """The inverse of `rfft`: n real numbers, by default an even number of them.

>>> import symgrad
>>> irfft(rfft(symgrad.tensor([1.0, 2.0, 4.0])), n=3).round(decimals=6)
tensor([1., 2., 4.])
""")
irfft2 = _define("irfft2", "The inverse of `rfft2`.")
irfftn = _define("irfftn", "The inverse of `rfftn`.")
hfft = _define("hfft", "The transform of the first half of a sequence whose other half is its conjugate: n real numbers.")
hfft2 = _define("hfft2", "The transform of numbers that are conjugates of their mirror images, given by their half, along two dimensions.")
hfftn = _define("hfftn", "The transform of numbers that are conjugates of their mirror images, given by their half, along several dimensions.")
ihfft = _define("ihfft", "The inverse of `hfft`.")
ihfft2 = _define("ihfft2", "The inverse of `hfft2`.")
ihfftn = _define("ihfftn", "The inverse of `hfftn`.")


def _frequencies(name: str, n: int, d: float, numbers: Callable[..., Any], out: Any, dtype: Any, options: dict[str, Any]) -> Tensor:
    dtype = get_default_dtype() if dtype is None else dtype
    check_kind(name, np.empty(0, dtype.numpy), "fc", "the result")
    (n,) = _integers(name, "n", n)
    check_range(name, "n", n, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = numbers(n) * (1 / np.float64(n * d))
    found = tensor(values, dtype=dtype, **options)
    return found if out is None else into(out, f"fft_{name}", lambda: found)


def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, **options: Any) -> Tensor:
    """The frequencies of the terms of `fft` for n samples at distance d: 0, 1, ..., -1, over n d.

    >>> fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _frequencies("fftfreq", n, d, lambda n: (np.arange(n) + n // 2) % max(n, 1) - n // 2, out, dtype, options)


def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, **options: Any) -> Tensor:
    """The frequencies of the terms of `rfft` for n samples at distance d.

    >>> rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies("rfftfreq", n, d, lambda n: np.arange(n // 2 + 1), out, dtype, options)


def _shifted(input: Any, dim: Integers, up: bool) -> Tensor:
    check_least_rank("fftshift", input, 1)
    dims = tuple(axis(d, input.ndim) for d in (range(input.ndim) if dim is None else _integers("fftshift", "dim", dim)))
    return traced.roll(input, tuple((input.shape[d] + (not up)) // 2 for d in dims), dims)


@taking_tensors
def fftshift(input: Tensor, dim: Integers = None) -> Tensor:
    """The terms of a transform in the order of their frequencies, with 0 in the middle.

    >>> fftshift(fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted(input, dim, True)


@taking_tensors
def ifftshift(input: Tensor, dim: Integers = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(input, dim, False)
