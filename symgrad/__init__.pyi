"""The public face, with every function of the registry. Written by `python -m symgrad.stubs`; edit that, not this."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from symgrad import autograd as autograd
from symgrad import expressions as expressions
from symgrad.autograd.modes import enable_grad as enable_grad
from symgrad.autograd.modes import inference_mode as inference_mode
from symgrad.autograd.modes import is_grad_enabled as is_grad_enabled
from symgrad.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from symgrad.autograd.modes import no_grad as no_grad
from symgrad.autograd.modes import set_grad_enabled as set_grad_enabled
from symgrad.checking import check as check
from symgrad.checking import example as example
from symgrad.checking.report import Report as Report
from symgrad.creation import arange as arange
from symgrad.creation import as_tensor as as_tensor
from symgrad.creation import empty as empty
from symgrad.creation import eye as eye
from symgrad.creation import from_numpy as from_numpy
from symgrad.creation import full as full
from symgrad.creation import full_like as full_like
from symgrad.creation import initial_seed as initial_seed
from symgrad.creation import linspace as linspace
from symgrad.creation import manual_seed as manual_seed
from symgrad.creation import normal as normal
from symgrad.creation import ones as ones
from symgrad.creation import rand as rand
from symgrad.creation import randint as randint
from symgrad.creation import randn as randn
from symgrad.creation import randperm as randperm
from symgrad.creation import symbols as symbols
from symgrad.creation import tensor as tensor
from symgrad.creation import zeros as zeros
from symgrad.dtypes import DType
from symgrad.dtypes import DType as dtype
from symgrad.dtypes import get_default_dtype as get_default_dtype
from symgrad.dtypes import set_default_dtype as set_default_dtype
from symgrad.extending import elementwise as elementwise
from symgrad.extending import linear as linear
from symgrad.extending import multilinear as multilinear
from symgrad.extending import primitive as primitive
from symgrad.printing import get_printoptions as get_printoptions
from symgrad.printing import set_printoptions as set_printoptions
from symgrad.tensor import Extreme, Integers, Number, TensorLike
from symgrad.tensor import Size as Size
from symgrad.tensor import Tensor as Tensor

__version__: str
def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor: ...
def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor: ...
def rand_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor: ...
def randn_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor: ...
def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor: ...
def add(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """input + alpha * other."""
def sub(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """input - alpha * other."""
def subtract(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """input - alpha * other."""
def mul(input: TensorLike, other: TensorLike) -> Tensor:
    """input * other."""
def multiply(input: TensorLike, other: TensorLike) -> Tensor:
    """input * other."""
def div(input: TensorLike, other: TensorLike) -> Tensor:
    """input / other; integers divide to floats."""
def divide(input: TensorLike, other: TensorLike) -> Tensor:
    """input / other; integers divide to floats."""
def true_divide(input: TensorLike, other: TensorLike) -> Tensor:
    """input / other; integers divide to floats."""
def neg(input: TensorLike) -> Tensor:
    """-input."""
def negative(input: TensorLike) -> Tensor:
    """-input."""
def reciprocal(input: TensorLike) -> Tensor:
    """1 / input."""
def square(input: TensorLike) -> Tensor:
    """input²."""
def pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """input ** exponent. By the exponent the derivative is y log(input), and 0 where input is 0."""
def remainder(input: TensorLike, other: TensorLike) -> Tensor:
    """input - floor(input / other) * other: it has the sign of `other`."""
def maximum(input: TensorLike, other: TensorLike) -> Tensor:
    """The larger of two values; a tie shares the gradient equally."""
def minimum(input: TensorLike, other: TensorLike) -> Tensor:
    """The smaller of two values; a tie shares the gradient equally."""
def clamp(input: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """The input limited to [min, max]; the derivative is 1 strictly inside and 0 elsewhere."""
def clip(input: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """The input limited to [min, max]; the derivative is 1 strictly inside and 0 elsewhere."""
def eq(input: TensorLike, other: TensorLike) -> Tensor:
    """input == other, as booleans."""
def ne(input: TensorLike, other: TensorLike) -> Tensor:
    """input != other, as booleans."""
def lt(input: TensorLike, other: TensorLike) -> Tensor:
    """input < other, as booleans."""
def le(input: TensorLike, other: TensorLike) -> Tensor:
    """input <= other, as booleans."""
def gt(input: TensorLike, other: TensorLike) -> Tensor:
    """input > other, as booleans."""
def ge(input: TensorLike, other: TensorLike) -> Tensor:
    """input >= other, as booleans."""
def logical_and(input: TensorLike, other: TensorLike) -> Tensor:
    """The logical and of two truth values."""
def logical_or(input: TensorLike, other: TensorLike) -> Tensor:
    """The logical or of two truth values."""
def logical_not(input: TensorLike) -> Tensor:
    """Not `input`, elementwise."""
def isfinite(input: TensorLike) -> Tensor:
    """Whether neither infinite nor NaN, elementwise."""
def isnan(input: TensorLike) -> Tensor:
    """Whether NaN, elementwise."""
def isinf(input: TensorLike) -> Tensor:
    """Whether infinite, elementwise."""
def where(condition: TensorLike, input: TensorLike, other: TensorLike) -> Tensor:
    """`input` where `condition` holds, else `other`. What was not taken never reaches the gradient."""
def exp(input: TensorLike) -> Tensor:
    """e**input. DLMF 4.2."""
def exp2(input: TensorLike) -> Tensor:
    """2**input."""
def expm1(input: TensorLike) -> Tensor:
    """e**input - 1, accurate next to 0."""
def log(input: TensorLike) -> Tensor:
    """The natural logarithm. DLMF 4.2."""
def log2(input: TensorLike) -> Tensor:
    """The logarithm to base 2."""
def log10(input: TensorLike) -> Tensor:
    """The logarithm to base 10."""
def log1p(input: TensorLike) -> Tensor:
    """log(1 + input), accurate next to 0."""
def sqrt(input: TensorLike) -> Tensor:
    """The square root."""
def rsqrt(input: TensorLike) -> Tensor:
    """1 / sqrt(input)."""
def sin(input: TensorLike) -> Tensor:
    """The sine. DLMF 4.14."""
def cos(input: TensorLike) -> Tensor:
    """The cosine. DLMF 4.14."""
def tan(input: TensorLike) -> Tensor:
    """The tangent. DLMF 4.14."""
def asin(input: TensorLike) -> Tensor:
    """The inverse sine. DLMF 4.23."""
def arcsin(input: TensorLike) -> Tensor:
    """The inverse sine. DLMF 4.23."""
def acos(input: TensorLike) -> Tensor:
    """The inverse cosine. DLMF 4.23."""
def arccos(input: TensorLike) -> Tensor:
    """The inverse cosine. DLMF 4.23."""
def atan(input: TensorLike) -> Tensor:
    """The inverse tangent. DLMF 4.23."""
def arctan(input: TensorLike) -> Tensor:
    """The inverse tangent. DLMF 4.23."""
def atan2(input: TensorLike, other: TensorLike) -> Tensor:
    """The angle of the point (other, input)."""
def arctan2(input: TensorLike, other: TensorLike) -> Tensor:
    """The angle of the point (other, input)."""
def hypot(input: TensorLike, other: TensorLike) -> Tensor:
    """sqrt(input² + other²), without overflow; the derivative at (0, 0) is 0."""
def sinh(input: TensorLike) -> Tensor:
    """The hyperbolic sine. DLMF 4.28."""
def cosh(input: TensorLike) -> Tensor:
    """The hyperbolic cosine. DLMF 4.28."""
def tanh(input: TensorLike) -> Tensor:
    """The hyperbolic tangent. DLMF 4.28."""
def sech(input: TensorLike) -> Tensor:
    """1 / cosh(input), without overflow. DLMF 4.28."""
def asinh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic sine. DLMF 4.37."""
def arcsinh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic sine. DLMF 4.37."""
def acosh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic cosine. DLMF 4.37."""
def arccosh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic cosine. DLMF 4.37."""
def atanh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic tangent. DLMF 4.37."""
def arctanh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic tangent. DLMF 4.37."""
def abs(input: TensorLike) -> Tensor:
    """|input|; the derivative at 0 is 0."""
def absolute(input: TensorLike) -> Tensor:
    """|input|; the derivative at 0 is 0."""
def sign(input: TensorLike) -> Tensor:
    """-1, 0 or 1, with the derivative 0."""
def floor(input: TensorLike) -> Tensor:
    """The largest integer not above, with the derivative 0."""
def ceil(input: TensorLike) -> Tensor:
    """The smallest integer not below, with the derivative 0."""
def round(input: TensorLike) -> Tensor:
    """The nearest integer, halves to even, with the derivative 0."""
def trunc(input: TensorLike) -> Tensor:
    """The integer part, with the derivative 0."""
def fix(input: TensorLike) -> Tensor:
    """The integer part, with the derivative 0."""
def sinc(input: TensorLike) -> Tensor:
    """sin(π input) / (π input), and 1 at 0; its derivatives of every order keep their digits next to 0."""
def index_put(input: TensorLike, indices: Any, values: TensorLike, accumulate: builtins.bool = False) -> Tensor:
    """A copy of the input with `values` written (or, with `accumulate`, added) at a tuple of index tensors."""
@overload
def index_select(input: TensorLike, dim: builtins.int, index: TensorLike) -> Tensor:
    """The slices of the input along `dim` that a vector of integers names."""
@overload
def index_select(input: TensorLike, axis: builtins.int, index: TensorLike) -> Tensor:
    """The slices of the input along `dim` that a vector of integers names."""
@overload
def select(input: TensorLike, dim: builtins.int, index: TensorLike) -> Tensor:
    """One slice of the input along `dim`."""
@overload
def select(input: TensorLike, axis: builtins.int, index: TensorLike) -> Tensor:
    """One slice of the input along `dim`."""
def masked_select(input: TensorLike, mask: TensorLike) -> Tensor:
    """The elements where `mask` holds, as a vector."""
def masked_fill(input: TensorLike, mask: TensorLike, value: TensorLike) -> Tensor:
    """The input with `value` where `mask` holds."""
def mm(input: TensorLike, other: TensorLike) -> Tensor:
    """The product of two matrices."""
def mv(input: TensorLike, other: TensorLike) -> Tensor:
    """The product of a matrix and a vector."""
def dot(input: TensorLike, other: TensorLike) -> Tensor:
    """The inner product of two vectors, without conjugation."""
def matmul(input: TensorLike, other: TensorLike) -> Tensor:
    """The product of vectors, matrices or stacks of matrices, with leading axes broadcast."""
def outer(input: TensorLike, vec2: TensorLike) -> Tensor:
    """The outer product of two vectors."""
def ger(input: TensorLike, vec2: TensorLike) -> Tensor:
    """The outer product of two vectors."""
def einsum(equation: str, *operands: TensorLike | Sequence[TensorLike]) -> Tensor:
    """Sums of products over the letters of an equation."""
def trace(input: TensorLike) -> Tensor:
    """The sum of a matrix's diagonal."""
def diag(input: TensorLike, diagonal: builtins.int = 0) -> Tensor:
    """A matrix's diagonal as a vector, or a vector as a diagonal matrix."""
def tril(input: TensorLike, diagonal: builtins.int = 0) -> Tensor:
    """The lower triangle of a matrix, the rest zero."""
def triu(input: TensorLike, diagonal: builtins.int = 0) -> Tensor:
    """The upper triangle of a matrix, the rest zero."""
def relu(input: TensorLike) -> Tensor:
    """max(input, 0); the derivative at 0 is 0."""
def sigmoid(input: TensorLike) -> Tensor:
    """1 / (1 + exp(-input))."""
def expit(input: TensorLike) -> Tensor:
    """1 / (1 + exp(-input))."""
def logsigmoid(input: TensorLike) -> Tensor:
    """log(sigmoid(input)), without cancellation."""
def softplus(input: TensorLike, beta: Number = 1.0, threshold: Number = 20.0) -> Tensor:
    """log(1 + exp(beta input)) / beta. It is exact everywhere, so `threshold` has no effect."""
def logaddexp(input: TensorLike, other: TensorLike) -> Tensor:
    """log(exp(input) + exp(other)), without overflow."""
@overload
def softmax(input: TensorLike, dim: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
    """exp(input) / Σ exp(input) along `dim`."""
@overload
def softmax(input: TensorLike, axis: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
    """exp(input) / Σ exp(input) along `dim`."""
@overload
def log_softmax(input: TensorLike, dim: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
    """log(softmax(input)) along `dim`, without cancellation."""
@overload
def log_softmax(input: TensorLike, axis: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
    """log(softmax(input)) along `dim`, without cancellation."""
def mse_loss(input: TensorLike, target: TensorLike, reduction: str = 'mean') -> Tensor:
    """The mean (or sum, or each) of (input - target)²."""
@overload
def sum(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The sum over `dim`, or over everything."""
@overload
def sum(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The sum over `dim`, or over everything."""
@overload
def mean(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The mean over `dim`, or over everything; of nothing it is NaN."""
@overload
def mean(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The mean over `dim`, or over everything; of nothing it is NaN."""
@overload
def prod(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The product over `dim`, or over everything; zeros do no harm to its derivatives."""
@overload
def prod(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The product over `dim`, or over everything; zeros do no harm to its derivatives."""
@overload
def amax(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The largest value over `dim`, or over everything; ties share the gradient equally."""
@overload
def amax(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest value over `dim`, or over everything; ties share the gradient equally."""
@overload
def amin(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The smallest value over `dim`, or over everything; ties share the gradient equally."""
@overload
def amin(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest value over `dim`, or over everything; ties share the gradient equally."""
@overload
def max(input: TensorLike, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def max(input: TensorLike, axis: None = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def max(input: TensorLike, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def max(input: TensorLike, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def max(input: TensorLike, dim: Tensor | np.ndarray | Sequence[builtins.int], keepdim: builtins.bool = False) -> Tensor:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def max(input: TensorLike, axis: Tensor | np.ndarray | Sequence[builtins.int], keepdims: builtins.bool = False) -> Tensor:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def min(input: TensorLike, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def min(input: TensorLike, axis: None = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def min(input: TensorLike, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def min(input: TensorLike, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def min(input: TensorLike, dim: Tensor | np.ndarray | Sequence[builtins.int], keepdim: builtins.bool = False) -> Tensor:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def min(input: TensorLike, axis: Tensor | np.ndarray | Sequence[builtins.int], keepdims: builtins.bool = False) -> Tensor:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def argmax(input: TensorLike, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The index of the first largest element along `dim`, or of the flattened input."""
@overload
def argmax(input: TensorLike, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first largest element along `dim`, or of the flattened input."""
@overload
def argmin(input: TensorLike, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The index of the first smallest element along `dim`, or of the flattened input."""
@overload
def argmin(input: TensorLike, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first smallest element along `dim`, or of the flattened input."""
@overload
def all(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """Whether all elements are true."""
@overload
def all(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all elements are true."""
@overload
def any(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """Whether any element is true."""
@overload
def any(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether any element is true."""
@overload
def var(input: TensorLike, dim: Integers | None = None, unbiased: builtins.bool | None = None, *, correction: Number | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The variance, Σ (x - mean)² / (n - correction)."""
@overload
def var(input: TensorLike, axis: Integers | None = None, unbiased: builtins.bool | None = None, *, ddof: Number | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The variance, Σ (x - mean)² / (n - correction)."""
@overload
def std(input: TensorLike, dim: Integers | None = None, unbiased: builtins.bool | None = None, *, correction: Number | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The standard deviation: the root of `var`; the derivative where it vanishes is 0."""
@overload
def std(input: TensorLike, axis: Integers | None = None, unbiased: builtins.bool | None = None, *, ddof: Number | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The standard deviation: the root of `var`; the derivative where it vanishes is 0."""
@overload
def norm(input: TensorLike, p: builtins.float | str = 2, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The p-norm (Σ|x|^p)^(1/p) over `dim`, or over everything; p may be a number, inf, -inf or "fro"."""
@overload
def norm(input: TensorLike, p: builtins.float | str = 2, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The p-norm (Σ|x|^p)^(1/p) over `dim`, or over everything; p may be a number, inf, -inf or "fro"."""
@overload
def logsumexp(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """log Σ exp(input) over `dim`, without overflow."""
@overload
def logsumexp(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """log Σ exp(input) over `dim`, without overflow."""
@overload
def cumsum(input: TensorLike, dim: builtins.int, *, dtype: DType | type | None = None) -> Tensor:
    """The running sum along `dim`."""
@overload
def cumsum(input: TensorLike, axis: builtins.int, *, dtype: DType | type | None = None) -> Tensor:
    """The running sum along `dim`."""
def reshape(input: TensorLike, *shape: Integers) -> Tensor:
    """The same elements in another shape; one size may be -1."""
def view(input: TensorLike, *shape: Integers) -> Tensor:
    """The same elements in another shape, sharing memory; refused where that needs a copy."""
def flatten(input: TensorLike, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
    """The axes from `start_dim` to `end_dim` merged into one."""
@overload
def squeeze(input: TensorLike, dim: Integers | None = None) -> Tensor:
    """The axes of size 1 removed: all of them, or those of `dim`."""
@overload
def squeeze(input: TensorLike, axis: Integers | None = None) -> Tensor:
    """The axes of size 1 removed: all of them, or those of `dim`."""
@overload
def unsqueeze(input: TensorLike, dim: builtins.int) -> Tensor:
    """A new axis of size 1 at `dim`."""
@overload
def unsqueeze(input: TensorLike, axis: builtins.int) -> Tensor:
    """A new axis of size 1 at `dim`."""
def permute(input: TensorLike, *dims: Integers) -> Tensor:
    """The axes in another order."""
def transpose(input: TensorLike, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """Two axes exchanged."""
def t(input: TensorLike) -> Tensor:
    """The transpose of a matrix; vectors and scalars as they are."""
def movedim(input: TensorLike, source: Integers, destination: Integers) -> Tensor:
    """Axes moved to other places, the others in their old order."""
def expand(input: TensorLike, *size: Integers) -> Tensor:
    """The input stretched along axes of size 1 and along new leading axes, without a copy."""
def broadcast_to(input: TensorLike, *size: Integers) -> Tensor:
    """The input stretched along axes of size 1 and along new leading axes, without a copy."""
def sum_to_size(input: TensorLike, *size: Integers) -> Tensor:
    """The sum over the axes along which `size` would be broadcast: the transpose of `expand`."""
@overload
def cat(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
@overload
def cat(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
@overload
def concat(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
@overload
def concat(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
@overload
def concatenate(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
@overload
def concatenate(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
@overload
def stack(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
@overload
def stack(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
@overload
def split(tensor: TensorLike, split_size_or_sections: Integers, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim`: all of one size (the last may be smaller), or of the sizes given."""
@overload
def split(tensor: TensorLike, split_size_or_sections: Integers, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim`: all of one size (the last may be smaller), or of the sizes given."""
@overload
def chunk(input: TensorLike, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The input cut into at most `chunks` pieces along `dim`."""
@overload
def chunk(input: TensorLike, chunks: builtins.int, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The input cut into at most `chunks` pieces along `dim`."""
def flip(input: TensorLike, *dims: Integers) -> Tensor:
    """The order reversed along `dims`."""
def roll(input: TensorLike, shifts: Integers, dims: Integers | None = None) -> Tensor:
    """The elements shifted along `dims` and carried round; without `dims`, over the flattened input."""
def clone(input: TensorLike, *, memory_format: Any = None) -> Tensor:
    """A copy, differentiably."""
float64: DType
float32: DType
float16: DType
complex64: DType
complex128: DType
int64: DType
int32: DType
int16: DType
int8: DType
uint8: DType
bool: DType
bfloat16: DType
double: DType
float: DType
half: DType
cfloat: DType
cdouble: DType
long: DType
int: DType
short: DType
