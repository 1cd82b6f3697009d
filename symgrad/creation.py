"""Making tensors: from data, by value, and by chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.devices import on_cpu
from symgrad.dtypes import dtype_of, get_default_dtype, numpy_dtype
from symgrad.tensor import Tensor, as_value, wrap

__all__ = ["arange", "as_tensor", "empty", "empty_like", "eye", "from_numpy", "full", "full_like", "initial_seed", "linspace", "manual_seed",
           "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randn", "randn_like", "randperm", "symbols", "tensor", "zeros",
           "zeros_like"]

_random: dict[str, Any] = {"generator": np.random.default_rng(), "seed": 0}


def _finished(value: Any, requires_grad: bool = False, symbol: Any = None) -> Tensor:
    out = wrap(value)
    if requires_grad and value.dtype.kind not in "fcV":
        raise RuntimeError(f"Only Tensors of floating point and complex dtype can require gradients; this one is {dtype_of(value.dtype)}: give "
                           f"dtype=float64 or floating-point data")
    if symbol is not None and not (isinstance(symbol, str) and symbol.isidentifier()):
        raise ValueError(f"symbol must be a name such as 'x', not {symbol!r}")
    if requires_grad or symbol is not None:
        out._make_leaf(requires_grad, symbol)
    return out


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
           symbol: str | None = None) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested sequences, an array or another tensor.

    `symbol` names it: what is computed from it then has a formula, `expr`. Python floats become the default dtype.

    Raises TypeError or ValueError for data that is not a rectangular array of numbers, RuntimeError for integers that
    should require gradients.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True, symbol="x")
    >>> (x.sin() * x).expr
    x*sin(x)
    """
    on_cpu(device)
    value = as_value(data, dtype)
    return _finished(value.copy() if isinstance(value, np.ndarray) else value, requires_grad, symbol)


def symbols(names: str, values: Any = None, *, requires_grad: bool = True) -> tuple[Tensor, ...]:
    """One named leaf per name in a string such as "x y" or "x, y", with the values given.

    >>> import symgrad
    >>> x, y = symgrad.symbols("x y", [1.0, 2.0])
    >>> (x * y).expr
    x*y
    """
    found = names.replace(",", " ").split()
    if len(set(found)) != len(found):
        raise ValueError(f"symbols: a name is given twice in {names!r}")
    values = [None] * len(found) if values is None else list(values) if isinstance(values, (list, tuple)) else [values]
    if len(values) != len(found):
        raise ValueError(f"symbols: {len(found)} names and {len(values)} values; give one value per name")
    if any(value is None for value in values):
        raise ValueError("symbols: every name needs a value, for a tensor is a number first")
    return tuple(tensor(_as_float(v), requires_grad=requires_grad, symbol=name) for name, v in zip(found, values))


def _as_float(data: Any) -> Any:
    value = as_value(data)
    return value.astype(get_default_dtype().numpy) if value.dtype.kind in "biu" else value


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor: itself if it is one, sharing memory with an array, copied from sequences."""
    on_cpu(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)  # type: ignore[attr-defined]
    return wrap(as_value(data, dtype))


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares memory with a NumPy array.

    Raises TypeError for anything else, and for dtypes that tensors do not have.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtype_of(ndarray.dtype)
    return wrap(ndarray)


def _shape(size: tuple) -> tuple[int, ...]:
    if len(size) == 1 and not isinstance(size[0], (int, np.integer)):
        size = tuple(size[0])
    for n in size:
        if int(n) < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    return tuple(int(n) for n in size)


def _of(value: Any) -> Any:
    return value if value.ndim else value[()]


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, symbol: str | None = None) -> Tensor:
    """A tensor of zeros."""
    on_cpu(device)
    return _finished(_of(np.zeros(_shape(size), numpy_dtype(dtype))), requires_grad, symbol)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, symbol: str | None = None) -> Tensor:
    """A tensor of ones."""
    on_cpu(device)
    return _finished(_of(np.ones(_shape(size), numpy_dtype(dtype))), requires_grad, symbol)


def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor whose elements are not set."""
    on_cpu(device)
    return _finished(_of(np.empty(_shape(size), numpy_dtype(dtype))), requires_grad)


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, symbol: str | None = None) -> Tensor:
    """A tensor whose elements are all `fill_value`."""
    on_cpu(device)
    fill = as_value(fill_value)
    return _finished(_of(np.full(_shape((size,)), fill, fill.dtype if dtype is None else numpy_dtype(dtype))), requires_grad, symbol)


def _like(make: Callable[..., Any], doc: str, name: str) -> Callable[..., Tensor]:
    def like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        on_cpu(device)
        x = as_value(input)
        return _finished(_of(make(x.shape, x.dtype if dtype is None else numpy_dtype(dtype))), requires_grad)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = doc
    return like


zeros_like = _like(np.zeros, "Zeros of the shape and dtype of another tensor.", "zeros_like")
ones_like = _like(np.ones, "Ones of the shape and dtype of another tensor.", "ones_like")
empty_like = _like(np.empty, "A tensor of the shape and dtype of another, its elements not set.", "empty_like")
rand_like = _like(lambda shape, dtype: np.asarray(generator().random(shape)).astype(dtype), "Uniform numbers from [0, 1) of the shape and dtype of "
                  "another tensor.", "rand_like")
randn_like = _like(lambda shape, dtype: np.asarray(generator().standard_normal(shape)).astype(dtype), "Normal numbers of the shape and dtype of "
                   "another tensor.", "randn_like")


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of the shape and dtype of another whose elements are all `fill_value`."""
    x = as_value(input)
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The numbers from `start` up to, but not with, `end`."""
    on_cpu(device)
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: start {start}, end {end}, step {step}")
    out = np.arange(start, end, step)
    if dtype is None:
        dtype = get_default_dtype() if out.dtype.kind == "f" else out.dtype
    return _finished(out.astype(numpy_dtype(dtype)), requires_grad)


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`steps` numbers, evenly spaced from `start` to `end`, both included."""
    on_cpu(device)
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, not {steps}")
    return _finished(np.linspace(float(start), float(end), steps).astype(numpy_dtype(dtype)), requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The n by m matrix with ones on its diagonal."""
    on_cpu(device)
    return _finished(np.eye(*_shape((n, n if m is None else m)), dtype=numpy_dtype(dtype)), requires_grad)


def generator() -> np.random.Generator:
    """The NumPy generator that random tensors are drawn from."""
    return _random["generator"]


_default = generator


def manual_seed(seed: int) -> np.random.Generator:
    """Start the generator of random tensors anew, so that a run can be repeated."""
    _random["seed"] = int(seed)
    _random["generator"] = np.random.default_rng(int(seed) & (2**64 - 1))
    return generator()


def initial_seed() -> int:
    """The seed that was last set."""
    return int(_random["seed"])


def _drawn(value: Any, dtype: Any, requires_grad: bool) -> Tensor:
    return _finished(_of(np.asarray(value).astype(numpy_dtype(dtype))), requires_grad)


def rand(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Uniform numbers from [0, 1)."""
    on_cpu(device)
    return _drawn((generator or _default()).random(_shape(size)), dtype, requires_grad)


def randn(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers from the standard normal distribution."""
    on_cpu(device)
    return _drawn((generator or _default()).standard_normal(_shape(size)), dtype, requires_grad)


def randint(low: int, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:
    """Integers from `low` up to, but not with, `high`; randint(high, size) starts at 0."""
    on_cpu(device)
    if size is None:
        low, high, size = 0, low, high
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return _drawn((generator or _default()).integers(low, high, _shape((size,))), np.int64 if dtype is None else dtype, requires_grad)


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers from normal distributions of the means and standard deviations given."""
    mu, sigma = as_value(mean), as_value(std)
    if np.any(sigma < 0):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    shape = np.broadcast_shapes(mu.shape, sigma.shape) if size is None else _shape((size,))
    return _drawn(mu + sigma * (generator or _default()).standard_normal(shape), dtype, requires_grad)


def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """The integers from 0 to n - 1 in random order."""
    on_cpu(device)
    return _drawn((generator or _default()).permutation(n), np.int64 if dtype is None else dtype, False)
