"""A Tensor with every method of the registry. Written by `python -m symgrad.stubs`; edit that, not this."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from symgrad.dtypes import DType
from symgrad.graph import Leaf, Node

TensorLike = Tensor | np.ndarray | np.generic | int | float | complex | list[Any] | tuple[Any, ...]
Integers = int | Sequence[int]
Number = int | float | complex
new: Any

class Extreme(NamedTuple):
    values: Tensor
    indices: Tensor

class Size(tuple[int, ...]):
    def numel(self) -> int: ...
    def __repr__(self) -> str: ...

class Tensor:
    _value: Any
    _node: Node | None
    _grad: Any
    _formula: Any
    _retained: Any
    @property
    def data(self) -> Tensor: ...
    @data.setter
    def data(self, other: Any) -> None: ...
    @property
    def value(self) -> Any: ...
    @property
    def shape(self) -> Size: ...
    @property
    def ndim(self) -> builtins.int: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def requires_grad(self) -> builtins.bool: ...
    @requires_grad.setter
    def requires_grad(self, flag: builtins.bool) -> None: ...
    @property
    def is_leaf(self) -> builtins.bool: ...
    @property
    def grad_fn(self) -> Node | None: ...
    @property
    def output_nr(self) -> builtins.int: ...
    @property
    def grad(self) -> Tensor | None: ...
    @grad.setter
    def grad(self, other: Tensor | None) -> None: ...
    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor: ...
    def _make_leaf(self, requires_grad: builtins.bool, symbol: Any = None) -> None: ...
    def _array(self) -> np.ndarray: ...
    def _rebind(self, value: Any) -> None: ...
    def detach(self) -> Tensor: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def numpy(self, *, force: builtins.bool = False) -> np.ndarray: ...
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> np.ndarray: ...
    def size(self, dim: builtins.int | None = None) -> Any: ...
    def dim(self) -> builtins.int: ...
    def numel(self) -> builtins.int: ...
    def nelement(self) -> builtins.int: ...
    def ndimension(self) -> builtins.int: ...
    def is_floating_point(self) -> builtins.bool: ...
    def is_complex(self) -> builtins.bool: ...
    def shares_memory_with(self, other: Tensor) -> builtins.bool: ...
    def __len__(self) -> builtins.int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __bool__(self) -> builtins.bool: ...
    def __float__(self) -> builtins.float: ...
    def __int__(self) -> builtins.int: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> builtins.int: ...
    def __contains__(self, element: Any) -> builtins.bool: ...
    def __hash__(self) -> builtins.int: ...
    def add(self, other: TensorLike, *, alpha: Number = 1) -> Tensor:
        """input + alpha * other."""
    def sub(self, other: TensorLike, *, alpha: Number = 1) -> Tensor:
        """input - alpha * other."""
    def subtract(self, other: TensorLike, *, alpha: Number = 1) -> Tensor:
        """input - alpha * other."""
    def mul(self, other: TensorLike) -> Tensor:
        """input * other."""
    def multiply(self, other: TensorLike) -> Tensor:
        """input * other."""
    def div(self, other: TensorLike) -> Tensor:
        """input / other; integers divide to floats."""
    def divide(self, other: TensorLike) -> Tensor:
        """input / other; integers divide to floats."""
    def true_divide(self, other: TensorLike) -> Tensor:
        """input / other; integers divide to floats."""
    def neg(self) -> Tensor:
        """-input."""
    def negative(self) -> Tensor:
        """-input."""
    def reciprocal(self) -> Tensor:
        """1 / input."""
    def square(self) -> Tensor:
        """input²."""
    def pow(self, exponent: TensorLike) -> Tensor:
        """input ** exponent. By the exponent the derivative is y log(input), and 0 where input is 0."""
    def remainder(self, other: TensorLike) -> Tensor:
        """input - floor(input / other) * other: it has the sign of `other`."""
    def maximum(self, other: TensorLike) -> Tensor:
        """The larger of two values; a tie shares the gradient equally."""
    def minimum(self, other: TensorLike) -> Tensor:
        """The smaller of two values; a tie shares the gradient equally."""
    def clamp(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """The input limited to [min, max]; the derivative is 1 strictly inside and 0 elsewhere."""
    def clip(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """The input limited to [min, max]; the derivative is 1 strictly inside and 0 elsewhere."""
    def eq(self, other: TensorLike) -> Tensor:
        """input == other, as booleans."""
    def ne(self, other: TensorLike) -> Tensor:
        """input != other, as booleans."""
    def lt(self, other: TensorLike) -> Tensor:
        """input < other, as booleans."""
    def le(self, other: TensorLike) -> Tensor:
        """input <= other, as booleans."""
    def gt(self, other: TensorLike) -> Tensor:
        """input > other, as booleans."""
    def ge(self, other: TensorLike) -> Tensor:
        """input >= other, as booleans."""
    def logical_and(self, other: TensorLike) -> Tensor:
        """The logical and of two truth values."""
    def logical_or(self, other: TensorLike) -> Tensor:
        """The logical or of two truth values."""
    def logical_not(self) -> Tensor:
        """Not `input`, elementwise."""
    def isfinite(self) -> Tensor:
        """Whether neither infinite nor NaN, elementwise."""
    def isnan(self) -> Tensor:
        """Whether NaN, elementwise."""
    def isinf(self) -> Tensor:
        """Whether infinite, elementwise."""
    def where(self, input: TensorLike, other: TensorLike) -> Tensor:
        """`input` where `condition` holds, else `other`. What was not taken never reaches the gradient."""
    def exp(self) -> Tensor:
        """e**input. DLMF 4.2."""
    def exp2(self) -> Tensor:
        """2**input."""
    def expm1(self) -> Tensor:
        """e**input - 1, accurate next to 0."""
    def log(self) -> Tensor:
        """The natural logarithm. DLMF 4.2."""
    def log2(self) -> Tensor:
        """The logarithm to base 2."""
    def log10(self) -> Tensor:
        """The logarithm to base 10."""
    def log1p(self) -> Tensor:
        """log(1 + input), accurate next to 0."""
    def sqrt(self) -> Tensor:
        """The square root."""
    def rsqrt(self) -> Tensor:
        """1 / sqrt(input)."""
    def sin(self) -> Tensor:
        """The sine. DLMF 4.14."""
    def cos(self) -> Tensor:
        """The cosine. DLMF 4.14."""
    def tan(self) -> Tensor:
        """The tangent. DLMF 4.14."""
    def asin(self) -> Tensor:
        """The inverse sine. DLMF 4.23."""
    def arcsin(self) -> Tensor:
        """The inverse sine. DLMF 4.23."""
    def acos(self) -> Tensor:
        """The inverse cosine. DLMF 4.23."""
    def arccos(self) -> Tensor:
        """The inverse cosine. DLMF 4.23."""
    def atan(self) -> Tensor:
        """The inverse tangent. DLMF 4.23."""
    def arctan(self) -> Tensor:
        """The inverse tangent. DLMF 4.23."""
    def atan2(self, other: TensorLike) -> Tensor:
        """The angle of the point (other, input)."""
    def arctan2(self, other: TensorLike) -> Tensor:
        """The angle of the point (other, input)."""
    def hypot(self, other: TensorLike) -> Tensor:
        """sqrt(input² + other²), without overflow; the derivative at (0, 0) is 0."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine. DLMF 4.28."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine. DLMF 4.28."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent. DLMF 4.28."""
    def sech(self) -> Tensor:
        """1 / cosh(input), without overflow. DLMF 4.28."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine. DLMF 4.37."""
    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine. DLMF 4.37."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine. DLMF 4.37."""
    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine. DLMF 4.37."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent. DLMF 4.37."""
    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent. DLMF 4.37."""
    def abs(self) -> Tensor:
        """|input|; the derivative at 0 is 0."""
    def absolute(self) -> Tensor:
        """|input|; the derivative at 0 is 0."""
    def sign(self) -> Tensor:
        """-1, 0 or 1, with the derivative 0."""
    def floor(self) -> Tensor:
        """The largest integer not above, with the derivative 0."""
    def ceil(self) -> Tensor:
        """The smallest integer not below, with the derivative 0."""
    def round(self) -> Tensor:
        """The nearest integer, halves to even, with the derivative 0."""
    def trunc(self) -> Tensor:
        """The integer part, with the derivative 0."""
    def fix(self) -> Tensor:
        """The integer part, with the derivative 0."""
    def sinc(self) -> Tensor:
        """sin(π input) / (π input), and 1 at 0; its derivatives of every order keep their digits next to 0."""
    def index_put(self, indices: Any, values: TensorLike, accumulate: builtins.bool = False) -> Tensor:
        """A copy of the input with `values` written (or, with `accumulate`, added) at a tuple of index tensors."""
    @overload
    def index_select(self, dim: builtins.int, index: TensorLike) -> Tensor:
        """The slices of the input along `dim` that a vector of integers names."""
    @overload
    def index_select(self, axis: builtins.int, index: TensorLike) -> Tensor:
        """The slices of the input along `dim` that a vector of integers names."""
    @overload
    def select(self, dim: builtins.int, index: TensorLike) -> Tensor:
        """One slice of the input along `dim`."""
    @overload
    def select(self, axis: builtins.int, index: TensorLike) -> Tensor:
        """One slice of the input along `dim`."""
    def masked_select(self, mask: TensorLike) -> Tensor:
        """The elements where `mask` holds, as a vector."""
    def masked_fill(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """The input with `value` where `mask` holds."""
    def mm(self, other: TensorLike) -> Tensor:
        """The product of two matrices."""
    def mv(self, other: TensorLike) -> Tensor:
        """The product of a matrix and a vector."""
    def dot(self, other: TensorLike) -> Tensor:
        """The inner product of two vectors, without conjugation."""
    def matmul(self, other: TensorLike) -> Tensor:
        """The product of vectors, matrices or stacks of matrices, with leading axes broadcast."""
    def outer(self, vec2: TensorLike) -> Tensor:
        """The outer product of two vectors."""
    def ger(self, vec2: TensorLike) -> Tensor:
        """The outer product of two vectors."""
    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal."""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """A matrix's diagonal as a vector, or a vector as a diagonal matrix."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """The lower triangle of a matrix, the rest zero."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """The upper triangle of a matrix, the rest zero."""
    def relu(self) -> Tensor:
        """max(input, 0); the derivative at 0 is 0."""
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-input))."""
    def expit(self) -> Tensor:
        """1 / (1 + exp(-input))."""
    def logsigmoid(self) -> Tensor:
        """log(sigmoid(input)), without cancellation."""
    def softplus(self, beta: Number = 1.0, threshold: Number = 20.0) -> Tensor:
        """log(1 + exp(beta input)) / beta. It is exact everywhere, so `threshold` has no effect."""
    def logaddexp(self, other: TensorLike) -> Tensor:
        """log(exp(input) + exp(other)), without overflow."""
    @overload
    def softmax(self, dim: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
        """exp(input) / Σ exp(input) along `dim`."""
    @overload
    def softmax(self, axis: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
        """exp(input) / Σ exp(input) along `dim`."""
    @overload
    def log_softmax(self, dim: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
        """log(softmax(input)) along `dim`, without cancellation."""
    @overload
    def log_softmax(self, axis: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
        """log(softmax(input)) along `dim`, without cancellation."""
    @overload
    def sum(self, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
        """The sum over `dim`, or over everything."""
    @overload
    def sum(self, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
        """The sum over `dim`, or over everything."""
    @overload
    def mean(self, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
        """The mean over `dim`, or over everything; of nothing it is NaN."""
    @overload
    def mean(self, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
        """The mean over `dim`, or over everything; of nothing it is NaN."""
    @overload
    def prod(self, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
        """The product over `dim`, or over everything; zeros do no harm to its derivatives."""
    @overload
    def prod(self, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
        """The product over `dim`, or over everything; zeros do no harm to its derivatives."""
    @overload
    def amax(self, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The largest value over `dim`, or over everything; ties share the gradient equally."""
    @overload
    def amax(self, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The largest value over `dim`, or over everything; ties share the gradient equally."""
    @overload
    def amin(self, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The smallest value over `dim`, or over everything; ties share the gradient equally."""
    @overload
    def amin(self, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The smallest value over `dim`, or over everything; ties share the gradient equally."""
    @overload
    def max(self, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
        """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
    @overload
    def max(self, axis: None = None, keepdims: builtins.bool = False) -> Tensor:
        """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme:
        """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
    @overload
    def max(self, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme:
        """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
    @overload
    def max(self, dim: Tensor | np.ndarray | Sequence[builtins.int], keepdim: builtins.bool = False) -> Tensor:
        """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
    @overload
    def max(self, axis: Tensor | np.ndarray | Sequence[builtins.int], keepdims: builtins.bool = False) -> Tensor:
        """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
    @overload
    def min(self, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
        """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
    @overload
    def min(self, axis: None = None, keepdims: builtins.bool = False) -> Tensor:
        """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme:
        """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
    @overload
    def min(self, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme:
        """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
    @overload
    def min(self, dim: Tensor | np.ndarray | Sequence[builtins.int], keepdim: builtins.bool = False) -> Tensor:
        """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
    @overload
    def min(self, axis: Tensor | np.ndarray | Sequence[builtins.int], keepdims: builtins.bool = False) -> Tensor:
        """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
    @overload
    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The index of the first largest element along `dim`, or of the flattened input."""
    @overload
    def argmax(self, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The index of the first largest element along `dim`, or of the flattened input."""
    @overload
    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The index of the first smallest element along `dim`, or of the flattened input."""
    @overload
    def argmin(self, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The index of the first smallest element along `dim`, or of the flattened input."""
    @overload
    def all(self, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether all elements are true."""
    @overload
    def all(self, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """Whether all elements are true."""
    @overload
    def any(self, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether any element is true."""
    @overload
    def any(self, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """Whether any element is true."""
    @overload
    def var(self, dim: Integers | None = None, unbiased: builtins.bool | None = None, *, correction: Number | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The variance, Σ (x - mean)² / (n - correction)."""
    @overload
    def var(self, axis: Integers | None = None, unbiased: builtins.bool | None = None, *, ddof: Number | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The variance, Σ (x - mean)² / (n - correction)."""
    @overload
    def std(self, dim: Integers | None = None, unbiased: builtins.bool | None = None, *, correction: Number | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The standard deviation: the root of `var`; the derivative where it vanishes is 0."""
    @overload
    def std(self, axis: Integers | None = None, unbiased: builtins.bool | None = None, *, ddof: Number | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The standard deviation: the root of `var`; the derivative where it vanishes is 0."""
    @overload
    def norm(self, p: builtins.float | str = 2, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The p-norm (Σ|x|^p)^(1/p) over `dim`, or over everything; p may be a number, inf, -inf or "fro"."""
    @overload
    def norm(self, p: builtins.float | str = 2, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The p-norm (Σ|x|^p)^(1/p) over `dim`, or over everything; p may be a number, inf, -inf or "fro"."""
    @overload
    def logsumexp(self, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """log Σ exp(input) over `dim`, without overflow."""
    @overload
    def logsumexp(self, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """log Σ exp(input) over `dim`, without overflow."""
    @overload
    def cumsum(self, dim: builtins.int, *, dtype: DType | type | None = None) -> Tensor:
        """The running sum along `dim`."""
    @overload
    def cumsum(self, axis: builtins.int, *, dtype: DType | type | None = None) -> Tensor:
        """The running sum along `dim`."""
    def reshape(self, *shape: Integers) -> Tensor:
        """The same elements in another shape; one size may be -1."""
    def view(self, *shape: Integers) -> Tensor:
        """The same elements in another shape, sharing memory; refused where that needs a copy."""
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """The axes from `start_dim` to `end_dim` merged into one."""
    @overload
    def squeeze(self, dim: Integers | None = None) -> Tensor:
        """The axes of size 1 removed: all of them, or those of `dim`."""
    @overload
    def squeeze(self, axis: Integers | None = None) -> Tensor:
        """The axes of size 1 removed: all of them, or those of `dim`."""
    @overload
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """A new axis of size 1 at `dim`."""
    @overload
    def unsqueeze(self, axis: builtins.int) -> Tensor:
        """A new axis of size 1 at `dim`."""
    def permute(self, *dims: Integers) -> Tensor:
        """The axes in another order."""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two axes exchanged."""
    def t(self) -> Tensor:
        """The transpose of a matrix; vectors and scalars as they are."""
    def movedim(self, source: Integers, destination: Integers) -> Tensor:
        """Axes moved to other places, the others in their old order."""
    def expand(self, *size: Integers) -> Tensor:
        """The input stretched along axes of size 1 and along new leading axes, without a copy."""
    def broadcast_to(self, *size: Integers) -> Tensor:
        """The input stretched along axes of size 1 and along new leading axes, without a copy."""
    def sum_to_size(self, *size: Integers) -> Tensor:
        """The sum over the axes along which `size` would be broadcast: the transpose of `expand`."""
    @overload
    def split(self, split_size_or_sections: Integers, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim`: all of one size (the last may be smaller), or of the sizes given."""
    @overload
    def split(self, split_size_or_sections: Integers, axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim`: all of one size (the last may be smaller), or of the sizes given."""
    @overload
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The input cut into at most `chunks` pieces along `dim`."""
    @overload
    def chunk(self, chunks: builtins.int, axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The input cut into at most `chunks` pieces along `dim`."""
    def flip(self, *dims: Integers) -> Tensor:
        """The order reversed along `dims`."""
    def roll(self, shifts: Integers, dims: Integers | None = None) -> Tensor:
        """The elements shifted along `dims` and carried round; without `dims`, over the flattened input."""
    def clone(self, *, memory_format: Any = None) -> Tensor:
        """A copy, differentiably."""
    def backward(self, gradient: Any = None, retain_graph: builtins.bool | None = None, create_graph: builtins.bool = False, inputs: Any = None) -> None: ...
    @property
    def expr(self) -> Any: ...
    @property
    def conditions(self) -> tuple[Any, ...]: ...
    def assignments(self) -> list[tuple[Any, Any]]: ...
    def __add__(self, other: TensorLike, /) -> Tensor: ...
    def __radd__(self, other: TensorLike, /) -> Tensor: ...
    def __sub__(self, other: TensorLike, /) -> Tensor: ...
    def __rsub__(self, other: TensorLike, /) -> Tensor: ...
    def __mul__(self, other: TensorLike, /) -> Tensor: ...
    def __rmul__(self, other: TensorLike, /) -> Tensor: ...
    def __truediv__(self, other: TensorLike, /) -> Tensor: ...
    def __rtruediv__(self, other: TensorLike, /) -> Tensor: ...
    def __mod__(self, other: TensorLike, /) -> Tensor: ...
    def __rmod__(self, other: TensorLike, /) -> Tensor: ...
    def __pow__(self, other: TensorLike, /) -> Tensor: ...
    def __rpow__(self, other: TensorLike, /) -> Tensor: ...
    def __matmul__(self, other: TensorLike, /) -> Tensor: ...
    def __rmatmul__(self, other: TensorLike, /) -> Tensor: ...
    def __eq__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, other: Any, /) -> Tensor: ...
    def __le__(self, other: Any, /) -> Tensor: ...
    def __gt__(self, other: Any, /) -> Tensor: ...
    def __ge__(self, other: Any, /) -> Tensor: ...
    def __floordiv__(self, other: TensorLike, /) -> Tensor: ...
    def __rfloordiv__(self, other: TensorLike, /) -> Tensor: ...
    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]: ...
    def __neg__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __and__(self, other: TensorLike, /) -> Tensor: ...
    def __rand__(self, other: TensorLike, /) -> Tensor: ...
    def __or__(self, other: TensorLike, /) -> Tensor: ...
    def __ror__(self, other: TensorLike, /) -> Tensor: ...
    def __xor__(self, other: TensorLike, /) -> Tensor: ...
    def __rxor__(self, other: TensorLike, /) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, values: Any) -> None: ...
    def to(self, *args: Any, dtype: Any = None, device: Any = None, non_blocking: builtins.bool = False, copy: builtins.bool = False) -> Tensor: ...
    def bool(self) -> Tensor: ...
    def double(self) -> Tensor: ...
    def float(self) -> Tensor: ...
    def half(self) -> Tensor: ...
    def cfloat(self) -> Tensor: ...
    def cdouble(self) -> Tensor: ...
    def long(self) -> Tensor: ...
    def int(self) -> Tensor: ...
    def short(self) -> Tensor: ...
    def bfloat16(self) -> Tensor: ...
    def type_as(self, other: Tensor) -> Tensor: ...
    def contiguous(self) -> Tensor: ...
    def is_contiguous(self) -> builtins.bool: ...
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]: ...
    @property
    def T(self) -> Tensor: ...
    @property
    def mT(self) -> Tensor: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def __format__(self, spec: str) -> str: ...

def wrap(value: Any, node: Node | None = None) -> Tensor: ...

def as_value(data: Any, dtype: Any = None) -> Any: ...
