"""A Tensor with every method of the registry. Written by `python -m symgrad.stubs`; edit that, not this."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from symgrad.types.devices import device as Device
from symgrad.types.dtypes import DType
from symgrad.graph.node import Leaf, Node
from symgrad.types.handles import Hook, RemovableHandle
from symgrad.types.storage import UntypedStorage

TensorLike = Tensor | np.ndarray | np.generic | int | float | complex | list[Any] | tuple[Any, ...]
Integers = int | Sequence[int]
Number = int | float | complex
new: Any
NOT_A_LEAF: str

class Extreme(NamedTuple):
    values: Tensor
    indices: Tensor

class Size(tuple[int, ...]):
    def numel(self) -> int: ...
    def __repr__(self) -> str: ...

class Tensor:
    _value: Any
    _node_slot: Node | None
    _view: Any
    _grad: Any
    _formula: Any
    _retained: Any
    _former_leaf: Any
    @property
    def _node(self) -> Node | None: ...
    @_node.setter
    def _node(self, node: Node | None) -> None: ...
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
    def _set_requires_grad(self, requires_grad: builtins.bool) -> None: ...
    def _make_leaf(self, requires_grad: builtins.bool, symbol: Any = None) -> None: ...
    def _array(self) -> np.ndarray: ...
    def _rebind(self, value: Any) -> None: ...
    def detach(self) -> Tensor: ...
    def _escape(self, shared: builtins.bool = False) -> None: ...
    def is_floating_point(self) -> builtins.bool: ...
    def is_complex(self) -> builtins.bool: ...
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
    def div(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """input / other, rounded to an integer if `rounding_mode` is 'floor' or 'trunc' (towards zero); integers divide to floats unless it is."""
    def divide(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """input / other, rounded to an integer if `rounding_mode` is 'floor' or 'trunc' (towards zero); integers divide to floats unless it is."""
    def true_divide(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """input / other, rounded to an integer if `rounding_mode` is 'floor' or 'trunc' (towards zero); integers divide to floats unless it is."""
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
    def not_equal(self, other: TensorLike) -> Tensor:
        """input != other, as booleans."""
    def lt(self, other: TensorLike) -> Tensor:
        """input < other, as booleans."""
    def less(self, other: TensorLike) -> Tensor:
        """input < other, as booleans."""
    def le(self, other: TensorLike) -> Tensor:
        """input <= other, as booleans."""
    def less_equal(self, other: TensorLike) -> Tensor:
        """input <= other, as booleans."""
    def gt(self, other: TensorLike) -> Tensor:
        """input > other, as booleans."""
    def greater(self, other: TensorLike) -> Tensor:
        """input > other, as booleans."""
    def ge(self, other: TensorLike) -> Tensor:
        """input >= other, as booleans."""
    def greater_equal(self, other: TensorLike) -> Tensor:
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
    def isclose(self, other: TensorLike, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False) -> Tensor:
        """Whether |input - other| <= atol + rtol |other|, elementwise; equal infinities are close, and NaN is close to NaN if `equal_nan`."""
    def prelu(self, weight: TensorLike) -> Tensor:
        """The input where it is positive, else the input times a weight: one, or one for each channel, the second dimension of the input."""
    def hardshrink(self, lambd: Number = 0.5) -> Tensor:
        """The input, and 0 where its absolute value is at most `lambd`."""
    def repeat(self, *repeats: Integers | Tensor) -> Tensor:
        """The input repeated along each dimension, and along new leading ones."""
    def tile(self, *dims: Integers) -> Tensor:
        """The input repeated along its last dimensions, and along new leading ones."""
    @overload
    def repeat_interleave(self, repeats: Integers | Tensor | None = None, dim: Integers | None = None, *, output_size: builtins.int | None = None) -> Tensor:
        """Each slice along `dim`, by default each element, repeated consecutively; with `repeats` alone, the indices of these slices."""
    @overload
    def repeat_interleave(self, repeats: Integers | Tensor | None = None, axis: Integers | None = None, *, output_size: builtins.int | None = None) -> Tensor:
        """Each slice along `dim`, by default each element, repeated consecutively; with `repeats` alone, the indices of these slices."""
    @overload
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """One dimension split into several with the same product of sizes; one size may be -1."""
    @overload
    def unflatten(self, axis: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """One dimension split into several with the same product of sizes; one size may be -1."""
    def ravel(self) -> Tensor:
        """The elements as a vector, a view if possible."""
    @overload
    def tensor_split(self, indices_or_sections: Integers | Tensor, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim` as views: a number of nearly equal ones, or those between indices."""
    @overload
    def tensor_split(self, indices_or_sections: Integers | Tensor, axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim` as views: a number of nearly equal ones, or those between indices."""
    def hsplit(self, indices_or_sections: Integers | Tensor) -> tuple[Tensor, ...]:
        """The pieces of a tensor along dimension 1: so many equal ones, or those between indices; views."""
    def vsplit(self, indices_or_sections: Integers | Tensor) -> tuple[Tensor, ...]:
        """The pieces of a tensor along dimension 0: so many equal ones, or those between indices; views."""
    def dsplit(self, indices_or_sections: Integers | Tensor) -> tuple[Tensor, ...]:
        """The pieces of a tensor along dimension 2: so many equal ones, or those between indices; views."""
    def rot90(self, k: builtins.int = 1, dims: Integers = ...) -> Tensor:
        """The input rotated by `k` quarter turns in the plane of two dimensions, from the first towards the second."""
    def fliplr(self) -> Tensor:
        """The order of the columns reversed."""
    def flipud(self) -> Tensor:
        """The order of the rows reversed."""
    def adjoint(self) -> Tensor:
        """The last two dimensions exchanged, conjugated."""
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
    def cbrt(self) -> Tensor:
        """The real cube root, NumPy's name. The derivative at 0 is infinite."""
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
        """-1, 0 or 1; the derivative is 0."""
    def floor(self) -> Tensor:
        """The largest integer not above the input; the derivative is 0."""
    def ceil(self) -> Tensor:
        """The smallest integer not below the input; the derivative is 0."""
    def round(self, *, decimals: builtins.int = 0) -> Tensor:
        """The nearest integer, or multiple of 10**-decimals, halves to even; the derivative is 0."""
    def trunc(self) -> Tensor:
        """The integer part; the derivative is 0."""
    def fix(self) -> Tensor:
        """The integer part; the derivative is 0."""
    def sinc(self) -> Tensor:
        """sin(π input) / (π input), and 1 at 0; its derivatives of every order are accurate next to 0."""
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
    def inverse(self) -> Tensor:
        """The inverse of a square matrix. Raises RuntimeError for a singular one."""
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """The lower triangular factor L of a positive definite matrix L Lᴴ, or Lᴴ with `upper`. Raises RuntimeError for another matrix."""
    def cholesky_solve(self, L: TensorLike, upper: builtins.bool = False) -> Tensor:
        """The solution X of A X = B for the Cholesky factor L of A = L Lᴴ, or of A = Lᴴ L with `upper`."""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """The inverse of A for its Cholesky factor L, A = L Lᴴ, or A = Lᴴ L with `upper`."""
    def lu(self, pivot: builtins.bool = True, get_infos: builtins.bool = False) -> Any:
        """L below U in one array, the row exchanges from 1, and with `get_infos` the position of the first zero on the diagonal of U, or 0."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """The solution X of A X = b from the factors of A."""
    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> Any:
        """The singular value decomposition U, S, V of U diag(S) Vᴴ: the first columns of U and V, or all with `some=False`."""
    def qr(self, some: builtins.bool = True) -> Any:
        """Q with orthonormal columns and the triangle R of Q R; all columns of Q with `some=False`."""
    def pinverse(self, rcond: builtins.float = 1e-15) -> Tensor:
        """The pseudo-inverse, without the singular values below `rcond` times the largest."""
    def matrix_exp(self) -> Tensor:
        """The exponential of a square matrix, Σ Aⁿ / n!."""
    def deg2rad(self) -> Tensor:
        """Degrees as radians: input π / 180."""
    def rad2deg(self) -> Tensor:
        """Radians as degrees: input 180 / π."""
    def copysign(self, other: TensorLike) -> Tensor:
        """|input| with the sign of `other`, which may be that of -0.0; the derivative at 0 is 0."""
    def heaviside(self, values: TensorLike) -> Tensor:
        """0 where the input is negative, 1 where it is positive, and `values` where it is 0, which alone have a derivative."""
    def fmax(self, other: TensorLike) -> Tensor:
        """The maximum of two numbers, and the other one where one is NaN; a tie shares the gradient equally."""
    def fmin(self, other: TensorLike) -> Tensor:
        """The minimum of two numbers, and the other one where one is NaN; a tie shares the gradient equally."""
    def logaddexp2(self, other: TensorLike) -> Tensor:
        """log2(2**input + 2**other), without overflow; equal infinite numbers share the gradient equally."""
    def ldexp(self, other: TensorLike) -> Tensor:
        """input 2**other, finite also where 2**other is not."""
    def index_put(self, indices: Any, values: TensorLike, accumulate: builtins.bool = False) -> Tensor:
        """A copy of the input with `values` written (or, with `accumulate`, added) at a tuple of index tensors."""
    @overload
    def select(self, dim: builtins.int, index: TensorLike) -> Tensor:
        """One slice of the input along `dim`: a view."""
    @overload
    def select(self, axis: builtins.int, index: TensorLike) -> Tensor:
        """One slice of the input along `dim`: a view."""
    @overload
    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """The `length` slices of the input along `dim` from `start` on: a view."""
    @overload
    def narrow(self, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """The `length` slices of the input along `dim` from `start` on: a view."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """The diagonal of two dimensions as a new last dimension: a view."""
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
        """Zeros with the last dimension of the input on a diagonal of two new ones: the transpose of `diagonal`."""
    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """The matrix with all elements of the input on a diagonal."""
    def unfold(self, dimension: builtins.int, size: Integers, step: builtins.int) -> Tensor:
        """The windows of `size` slices along `dimension`, `step` apart, as a new last dimension: a view."""
    def det(self) -> Tensor:
        """The determinant of a square matrix."""
    def slogdet(self) -> Tensor:
        """The sign of the determinant and the logarithm of its absolute value, which neither overflow nor underflow."""
    def logdet(self) -> Tensor:
        """The logarithm of the determinant: NaN for a negative one, -inf for a singular matrix."""
    def matrix_power(self, n: builtins.int) -> Tensor:
        """The product of n equal square matrices; of the inverses for a negative n."""
    def vdot(self, other: TensorLike) -> Tensor:
        """Σ conj(input) other of two vectors."""
    def addbmm(self, batch1: TensorLike, batch2: TensorLike, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * Σ batch1 @ batch2, the sum of a batch of matrix products."""
    def triangular_solve(self, A: TensorLike, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool = False) -> Any:
        """The solution X of A X = b, or of Aᵀ X = b with `transpose`, for a triangular A, and A itself."""
    def addcmul(self, tensor1: TensorLike, tensor2: TensorLike, *, value: TensorLike = 1) -> Tensor:
        """input + value * tensor1 * tensor2."""
    def addcdiv(self, tensor1: TensorLike, tensor2: TensorLike, *, value: TensorLike = 1) -> Tensor:
        """input + value * tensor1 / tensor2."""
    def lerp(self, end: TensorLike, weight: TensorLike) -> Tensor:
        """input + weight (end - input): the input where the weight is 0, `end` where it is 1."""
    def float_power(self, exponent: TensorLike) -> Tensor:
        """input ** exponent, computed in double precision for every dtype."""
    def fmod(self, other: TensorLike) -> Tensor:
        """input - trunc(input / other) * other: it has the sign of the input."""
    def frac(self) -> Tensor:
        """input - trunc(input): the fractional part."""
    def floor_divide(self, other: TensorLike) -> Tensor:
        """The quotient rounded down; its derivative is 0. Integers raise RuntimeError if `other` is 0."""
    def rsub(self, other: TensorLike, *, alpha: Number = 1) -> Tensor:
        """other - alpha * input."""
    def positive(self) -> Tensor:
        """The input itself."""
    def logical_xor(self, other: TensorLike) -> Tensor:
        """Whether exactly one of two values is true (nonzero)."""
    def clamp_min(self, min: TensorLike | None) -> Tensor:
        """The larger of the input and `min`; the derivative where `min` is larger is 0."""
    def clamp_max(self, max: TensorLike | None) -> Tensor:
        """The smaller of the input and `max`; the derivative where `max` is smaller is 0."""
    def nan_to_num(self, nan: builtins.float | None = None, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> Tensor:
        """The input with numbers in place of NaN (0), inf and -inf (the largest numbers of either sign); the derivative there is 0."""
    @overload
    def diff(self, n: builtins.int = 1, dim: builtins.int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None) -> Tensor:
        """The `n`-th differences along `dim`, of the input joined with `prepend` and `append`."""
    @overload
    def diff(self, n: builtins.int = 1, axis: builtins.int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None) -> Tensor:
        """The `n`-th differences along `dim`, of the input joined with `prepend` and `append`."""
    def addmm(self, mat1: TensorLike, mat2: TensorLike, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * (mat1 @ mat2), the input broadcast."""
    def addmv(self, mat: TensorLike, vec: TensorLike, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * (mat @ vec), the input broadcast."""
    def addr(self, vec1: TensorLike, vec2: TensorLike, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * outer(vec1, vec2), the input broadcast."""
    def baddbmm(self, batch1: TensorLike, batch2: TensorLike, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * (batch1 @ batch2), a batch of matrix products, the input broadcast."""
    def bmm(self, mat2: TensorLike) -> Tensor:
        """A batch of matrix products."""
    @overload
    def cross(self, other: TensorLike, dim: Integers | None = None) -> Tensor:
        """The cross product along a dimension of size 3."""
    @overload
    def cross(self, other: TensorLike, axis: Integers | None = None) -> Tensor:
        """The cross product along a dimension of size 3."""
    def tensordot(self, b: TensorLike, dims: Integers = 2) -> Tensor:
        """The product of two tensors summed over pairs of dimensions: the last `dims` of `a` and the first of `b`, or two lists of dimensions."""
    def inner(self, other: TensorLike) -> Tensor:
        """The sums of products over the last dimensions of both."""
    def kron(self, other: TensorLike) -> Tensor:
        """The Kronecker product: each element of the input times `other`."""
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
        """log(exp(input) + exp(other)), without overflow; equal infinite numbers share the gradient equally."""
    @overload
    def softmax(self, dim: builtins.int | None = None, dtype: DType | builtins.type | None = None) -> Tensor:
        """exp(input) / Σ exp(input) along `dim`."""
    @overload
    def softmax(self, axis: builtins.int | None = None, dtype: DType | builtins.type | None = None) -> Tensor:
        """exp(input) / Σ exp(input) along `dim`."""
    @overload
    def log_softmax(self, dim: builtins.int | None = None, dtype: DType | builtins.type | None = None) -> Tensor:
        """log(softmax(input)) along `dim`, without cancellation."""
    @overload
    def log_softmax(self, axis: builtins.int | None = None, dtype: DType | builtins.type | None = None) -> Tensor:
        """log(softmax(input)) along `dim`, without cancellation."""
    @overload
    def sum(self, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The sum over `dim`, or over all elements."""
    @overload
    def sum(self, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The sum over `dim`, or over all elements."""
    @overload
    def mean(self, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The mean over `dim`, or over all elements; NaN for an empty input."""
    @overload
    def mean(self, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The mean over `dim`, or over all elements; NaN for an empty input."""
    @overload
    def amax(self, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The largest value over `dim`, or over all elements; ties share the gradient equally."""
    @overload
    def amax(self, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The largest value over `dim`, or over all elements; ties share the gradient equally."""
    @overload
    def amin(self, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The smallest value over `dim`, or over all elements; ties share the gradient equally."""
    @overload
    def amin(self, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The smallest value over `dim`, or over all elements; ties share the gradient equally."""
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
    def aminmax(self, *, dim: Integers | None = None, keepdim: builtins.bool = False) -> tuple[Tensor, Tensor]:
        """The pair (min, max) over all elements, or along `dim`."""
    @overload
    def aminmax(self, *, axis: Integers | None = None, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]:
        """The pair (min, max) over all elements, or along `dim`."""
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
    def logsumexp(self, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """log Σ exp(input) over `dim`, without overflow."""
    @overload
    def logsumexp(self, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """log Σ exp(input) over `dim`, without overflow."""
    @overload
    def cumsum(self, dim: builtins.int, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The running sum along `dim`."""
    @overload
    def cumsum(self, axis: builtins.int, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The running sum along `dim`."""
    @overload
    def norm(self, p: builtins.float | str = 2, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The p-norm (Σ|x|^p)^(1/p) over `dim`, or over all elements; p may be a number, inf, -inf, "fro", or "nuc" for matrices."""
    @overload
    def norm(self, p: builtins.float | str = 2, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The p-norm (Σ|x|^p)^(1/p) over `dim`, or over all elements; p may be a number, inf, -inf, "fro", or "nuc" for matrices."""
    def conj(self) -> Tensor:
        """The complex conjugates; real numbers are unchanged."""
    def conj_physical(self) -> Tensor:
        """The complex conjugates; real numbers are unchanged."""
    def resolve_conj(self) -> Tensor:
        """The input itself, since conjugation is never deferred."""
    def resolve_neg(self) -> Tensor:
        """The input itself, since conjugation is never deferred."""
    def angle(self) -> Tensor:
        """The angles of complex numbers; of real numbers 0, or π if negative. The derivative at 0 is 0."""
    def sgn(self) -> Tensor:
        """The sign; of complex numbers, the number of absolute value 1 with the same angle, and 0 at 0, as its derivative there."""
    @overload
    def scatter(self, dim: builtins.int, index: TensorLike, src: TensorLike | None = None, *, value: TensorLike | None = None, reduce: str | None = None) -> Tensor:
        """A copy of the input with elements of `src`, or a number, at the positions of an index along `dim`."""
    @overload
    def scatter(self, axis: builtins.int, index: TensorLike, src: TensorLike | None = None, *, value: TensorLike | None = None, reduce: str | None = None) -> Tensor:
        """A copy of the input with elements of `src`, or a number, at the positions of an index along `dim`."""
    @overload
    def scatter_add(self, dim: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
        """A copy of the input with the elements of `src` added at the positions of an index along `dim`."""
    @overload
    def scatter_add(self, axis: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
        """A copy of the input with the elements of `src` added at the positions of an index along `dim`."""
    @overload
    def index_add(self, dim: builtins.int, index: TensorLike, source: Integers, *, alpha: Number = 1) -> Tensor:
        """A copy of the input with alpha times the slices of `source` added to those along `dim` that a vector of integers names."""
    @overload
    def index_add(self, axis: builtins.int, index: TensorLike, source: Integers, *, alpha: Number = 1) -> Tensor:
        """A copy of the input with alpha times the slices of `source` added to those along `dim` that a vector of integers names."""
    @overload
    def index_copy(self, dim: builtins.int, index: TensorLike, source: Integers) -> Tensor:
        """A copy of the input with the slices of `source` in place of those along `dim` that a vector of integers names."""
    @overload
    def index_copy(self, axis: builtins.int, index: TensorLike, source: Integers) -> Tensor:
        """A copy of the input with the slices of `source` in place of those along `dim` that a vector of integers names."""
    @overload
    def index_fill(self, dim: builtins.int, index: TensorLike, value: TensorLike) -> Tensor:
        """A copy of the input with a number, or a tensor without dimensions, in the slices along `dim` at a vector of integers."""
    @overload
    def index_fill(self, axis: builtins.int, index: TensorLike, value: TensorLike) -> Tensor:
        """A copy of the input with a number, or a tensor without dimensions, in the slices along `dim` at a vector of integers."""
    @overload
    def scatter_reduce(self, dim: builtins.int, index: TensorLike, src: TensorLike, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
        """A copy of the input with the sum, product, mean, largest or smallest of the elements that an index along `dim` sends to one place."""
    @overload
    def scatter_reduce(self, axis: builtins.int, index: TensorLike, src: TensorLike, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
        """A copy of the input with the sum, product, mean, largest or smallest of the elements that an index along `dim` sends to one place."""
    @overload
    def index_reduce(self, dim: builtins.int, index: TensorLike, source: Integers, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
        """A copy of the input with the product, mean, largest or smallest of the slices that a vector of integers sends to one place along `dim`."""
    @overload
    def index_reduce(self, axis: builtins.int, index: TensorLike, source: Integers, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
        """A copy of the input with the product, mean, largest or smallest of the slices that a vector of integers sends to one place along `dim`."""
    @overload
    def select_scatter(self, src: TensorLike, dim: builtins.int, index: TensorLike) -> Tensor:
        """A copy of the input with `src` as one slice along `dim`."""
    @overload
    def select_scatter(self, src: TensorLike, axis: builtins.int, index: TensorLike) -> Tensor:
        """A copy of the input with `src` as one slice along `dim`."""
    @overload
    def slice_scatter(self, src: TensorLike, dim: builtins.int = 0, start: builtins.int | None = None, end: TensorLike | None = None, step: builtins.int = 1) -> Tensor:
        """A copy of the input with `src` in place of the slices from `start` to `end` along `dim`."""
    @overload
    def slice_scatter(self, src: TensorLike, axis: builtins.int = 0, start: builtins.int | None = None, end: TensorLike | None = None, step: builtins.int = 1) -> Tensor:
        """A copy of the input with `src` in place of the slices from `start` to `end` along `dim`."""
    def diagonal_scatter(self, src: TensorLike, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """A copy of the input with `src` on a diagonal."""
    def masked_fill(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """A copy of the input with a number, or a tensor without dimensions, where `mask` is true; shapes broadcast."""
    def masked_scatter(self, mask: TensorLike, source: Integers) -> Tensor:
        """A copy of the input with the elements of `source`, in order, where `mask` is true."""
    @overload
    def prod(self, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The product over `dim`, or over all elements; its derivatives are right also at zeros. Of up to 4,096 elements it has all its digits where a product of some of them overflows."""
    @overload
    def prod(self, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The product over `dim`, or over all elements; its derivatives are right also at zeros. Of up to 4,096 elements it has all its digits where a product of some of them overflows."""
    @overload
    def cumprod(self, dim: builtins.int, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The running product along `dim`; its derivatives are right also at zeros. Of up to 4,096 elements it has all its digits where a product of some of them overflows."""
    @overload
    def cumprod(self, axis: builtins.int, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The running product along `dim`; its derivatives are right also at zeros. Of up to 4,096 elements it has all its digits where a product of some of them overflows."""
    def geqrf(self) -> Any:
        """The triangle R of a matrix Q R, the reflections of Q below it, from whose columns an element 1 is left out, and their factors tau."""
    def orgqr(self, tau: Tensor) -> Tensor:
        """The first columns of the product of reflections, as `linalg.householder_product`."""
    def ormqr(self, tau: Tensor, other: TensorLike, left: builtins.bool = True, transpose: builtins.bool = False) -> Tensor:
        """The product of reflections Q with a matrix: Q other, or other Q with `left=False`; Qᴴ in place of Q with `transpose`."""
    @overload
    def gather(self, dim: builtins.int, index: TensorLike, *, sparse_grad: builtins.bool = False) -> Tensor:
        """The elements that an index names along `dim`; the other positions are those of the index."""
    @overload
    def gather(self, axis: builtins.int, index: TensorLike, *, sparse_grad: builtins.bool = False) -> Tensor:
        """The elements that an index names along `dim`; the other positions are those of the index."""
    def take(self, index: TensorLike) -> Tensor:
        """The elements at positions in the flattened input, in the shape of the index."""
    @overload
    def index_select(self, dim: builtins.int, index: TensorLike) -> Tensor:
        """The slices of the input along `dim` that a vector of integers names."""
    @overload
    def index_select(self, axis: builtins.int, index: TensorLike) -> Tensor:
        """The slices of the input along `dim` that a vector of integers names."""
    def masked_select(self, mask: TensorLike) -> Tensor:
        """The elements where `mask` holds, as a vector; shapes broadcast."""
    @overload
    def take_along_dim(self, indices: Any, dim: Integers | None = None) -> Tensor:
        """The elements at indices along `dim`, with the other dimensions broadcast; without `dim`, those of the flattened input."""
    @overload
    def take_along_dim(self, indices: Any, axis: Integers | None = None) -> Tensor:
        """The elements at indices along `dim`, with the other dimensions broadcast; without `dim`, those of the flattened input."""
    @overload
    def sort(self, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool | None = None) -> Extreme:
        """The pair (values, indices) of the input sorted along `dim`; equal elements stay in order, and NaN is the largest."""
    @overload
    def sort(self, axis: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool | None = None) -> Extreme:
        """The pair (values, indices) of the input sorted along `dim`; equal elements stay in order, and NaN is the largest."""
    def msort(self) -> Tensor:
        """The input sorted along its first dimension."""
    @overload
    def argsort(self, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False) -> Tensor:
        """The indices that sort the input along `dim`; equal elements stay in order."""
    @overload
    def argsort(self, axis: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False) -> Tensor:
        """The indices that sort the input along `dim`; equal elements stay in order."""
    @overload
    def topk(self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True) -> Extreme:
        """The pair (values, indices) of the `k` largest (or smallest) elements along `dim`, the most extreme first."""
    @overload
    def topk(self, k: builtins.int, axis: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True) -> Extreme:
        """The pair (values, indices) of the `k` largest (or smallest) elements along `dim`, the most extreme first."""
    @overload
    def kthvalue(self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Extreme:
        """The pair (values, indices) of the `k`-th smallest element along `dim`, counted from 1."""
    @overload
    def kthvalue(self, k: builtins.int, axis: builtins.int = -1, keepdims: builtins.bool = False) -> Extreme:
        """The pair (values, indices) of the `k`-th smallest element along `dim`, counted from 1."""
    @overload
    def median(self, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The lower median of all elements; with `dim`, the pair (values, indices). The median is NaN if an element is."""
    @overload
    def median(self, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The lower median of all elements; with `dim`, the pair (values, indices). The median is NaN if an element is."""
    @overload
    def nanmedian(self, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The lower median of the elements that are not NaN; with `dim`, the pair (values, indices)."""
    @overload
    def nanmedian(self, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The lower median of the elements that are not NaN; with `dim`, the pair (values, indices)."""
    @overload
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Extreme:
        """The pair (values, indices) of the most frequent element along `dim`: the smallest of several, at its last position."""
    @overload
    def mode(self, axis: builtins.int = -1, keepdims: builtins.bool = False) -> Extreme:
        """The pair (values, indices) of the most frequent element along `dim`: the smallest of several, at its last position."""
    @overload
    def cummax(self, dim: builtins.int) -> Extreme:
        """The pair (values, indices) of the largest element so far along `dim`, at its last position."""
    @overload
    def cummax(self, axis: builtins.int) -> Extreme:
        """The pair (values, indices) of the largest element so far along `dim`, at its last position."""
    @overload
    def cummin(self, dim: builtins.int) -> Extreme:
        """The pair (values, indices) of the smallest element so far along `dim`, at its last position."""
    @overload
    def cummin(self, axis: builtins.int) -> Extreme:
        """The pair (values, indices) of the smallest element so far along `dim`, at its last position."""
    def reshape(self, *shape: Integers) -> Tensor:
        """The same elements in another shape; one size may be -1."""
    def view(self, *size: Integers) -> Tensor:
        """The same elements in another shape, sharing memory; raises if that needs a copy."""
    def view_as(self, other: TensorLike) -> Tensor:
        """The same elements in the shape of another tensor, sharing memory."""
    def reshape_as(self, other: TensorLike) -> Tensor:
        """The same elements in the shape of another tensor."""
    def expand_as(self, other: TensorLike) -> Tensor:
        """The input expanded to the shape of another tensor."""
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """The axes from `start_dim` to `end_dim` merged into one."""
    @overload
    def squeeze(self, dim: Integers | None = None) -> Tensor:
        """The axes of size 1 removed: all of them, or those in `dim`."""
    @overload
    def squeeze(self, axis: Integers | None = None) -> Tensor:
        """The axes of size 1 removed: all of them, or those in `dim`."""
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
    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two axes exchanged."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two axes exchanged."""
    def t(self) -> Tensor:
        """The transpose of a matrix; vectors and scalars as they are."""
    def movedim(self, source: Integers, destination: Integers) -> Tensor:
        """Axes moved to other positions; the others keep their order."""
    def moveaxis(self, source: Integers, destination: Integers) -> Tensor:
        """Axes moved to other positions; the others keep their order."""
    def expand(self, *size: Integers) -> Tensor:
        """The input expanded along axes of size 1 and along new leading axes, without a copy."""
    def broadcast_to(self, *size: Integers) -> Tensor:
        """The input expanded along axes of size 1 and along new leading axes, without a copy."""
    def sum_to_size(self, *size: Integers) -> Tensor:
        """The sum over the axes along which `size` would be broadcast: the transpose of `expand`."""
    @overload
    def split_with_sizes(self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim` with given sizes, as views that cannot be written in place."""
    @overload
    def split_with_sizes(self, split_sizes: Sequence[builtins.int], axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim` with given sizes, as views that cannot be written in place."""
    @overload
    def split(self, split_size_or_sections: Integers, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim`, all of one size (the last may be smaller) or of given sizes, as views that cannot be written in place."""
    @overload
    def split(self, split_size_or_sections: Integers, axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim`, all of one size (the last may be smaller) or of given sizes, as views that cannot be written in place."""
    @overload
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The input cut into at most `chunks` pieces along `dim`."""
    @overload
    def chunk(self, chunks: builtins.int, axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The input cut into at most `chunks` pieces along `dim`."""
    @overload
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The slices of a tensor along `dim`, as views that cannot be written in place."""
    @overload
    def unbind(self, axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The slices of a tensor along `dim`, as views that cannot be written in place."""
    def flip(self, *dims: Integers) -> Tensor:
        """The order reversed along `dims`."""
    def roll(self, shifts: Integers, dims: Integers | None = None) -> Tensor:
        """The elements shifted cyclically along `dims`, or over the flattened input."""
    def clone(self, *, memory_format: Any = None) -> Tensor:
        """A differentiable copy, in the memory order of the input, or in that of `memory_format`."""
    def erf(self) -> Tensor:
        """The error function. DLMF 7.2.1."""
    def erfc(self) -> Tensor:
        """1 - erf(input), accurate for large arguments. DLMF 7.2.2."""
    def erfinv(self) -> Tensor:
        """The inverse of erf, on (-1, 1). The derivative is computed from the input, so that it is accurate next to the ends. DLMF 7.17.1."""
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """log(input / (1 - input)), of the input clamped to [eps, 1 - eps] if `eps` is given."""
    def xlogy(self, other: TensorLike) -> Tensor:
        """input log(other), and 0 where the input is 0, unless other is NaN; the derivatives at (0, 0) are 0."""
    def lgamma(self) -> Tensor:
        """log|Γ(input)|. For negative arguments SciPy's value loses digits next to the zeros of the function. DLMF 5.2."""
    def gammaln(self) -> Tensor:
        """log|Γ(input)|. For negative arguments SciPy's value loses digits next to the zeros of the function. DLMF 5.2."""
    def digamma(self) -> Tensor:
        """The derivative of log Γ(input). SciPy's value loses digits next to negative zeros. DLMF 5.2.2."""
    def psi(self) -> Tensor:
        """The derivative of log Γ(input). SciPy's value loses digits next to negative zeros. DLMF 5.2.2."""
    def mvlgamma(self, p: builtins.float | str) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension p, for arguments above (p - 1)/2. DLMF 35.3.4."""
    def multigammaln(self, p: builtins.float | str) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension p, for arguments above (p - 1)/2. DLMF 35.3.4."""
    def i0(self) -> Tensor:
        """The Bessel function I₀, accurate in every derivative. DLMF 10.25.2."""
    def gammainc(self, other: TensorLike) -> Tensor:
        """The regularized lower incomplete gamma function P(input, other), the integral of tᵃ⁻¹ exp(-t) / Γ(a) from 0 to other for a = input, with derivatives by both. Up to 10,000 the value and the first derivatives are within 4 ULP; SciPy's value, with errors up to 30,000 ULP in the tails, is used for larger numbers only. DLMF 8.2.4."""
    def igamma(self, other: TensorLike) -> Tensor:
        """The regularized lower incomplete gamma function P(input, other), the integral of tᵃ⁻¹ exp(-t) / Γ(a) from 0 to other for a = input, with derivatives by both. Up to 10,000 the value and the first derivatives are within 4 ULP; SciPy's value, with errors up to 30,000 ULP in the tails, is used for larger numbers only. DLMF 8.2.4."""
    def gammaincc(self, other: TensorLike) -> Tensor:
        """The regularized upper incomplete gamma function Q(input, other) = 1 - P(input, other), accurate in its tail, with derivatives by both; the errors are those of gammainc. DLMF 8.2.4."""
    def igammac(self, other: TensorLike) -> Tensor:
        """The regularized upper incomplete gamma function Q(input, other) = 1 - P(input, other), accurate in its tail, with derivatives by both; the errors are those of gammainc. DLMF 8.2.4."""
    @overload
    def var(self, dim: Integers | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: Number | None = None) -> Tensor:
        """The variance, Σ (x - mean)² / (n - correction)."""
    @overload
    def var(self, axis: Integers | None = None, unbiased: builtins.bool | None = None, keepdims: builtins.bool = False, *, ddof: Number | None = None) -> Tensor:
        """The variance, Σ (x - mean)² / (n - correction)."""
    @overload
    def std(self, dim: Integers | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: Number | None = None) -> Tensor:
        """The standard deviation, the square root of `var`; the derivative at 0 is 0."""
    @overload
    def std(self, axis: Integers | None = None, unbiased: builtins.bool | None = None, keepdims: builtins.bool = False, *, ddof: Number | None = None) -> Tensor:
        """The standard deviation, the square root of `var`; the derivative at 0 is 0."""
    @overload
    def var_mean(self, dim: Integers | None = None, unbiased: builtins.bool | None = None, *, correction: Number | None = None, keepdim: builtins.bool = False) -> tuple[Tensor, Tensor]:
        """The pair of `var` and `mean`."""
    @overload
    def var_mean(self, axis: Integers | None = None, unbiased: builtins.bool | None = None, *, ddof: Number | None = None, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]:
        """The pair of `var` and `mean`."""
    @overload
    def std_mean(self, dim: Integers | None = None, unbiased: builtins.bool | None = None, *, correction: Number | None = None, keepdim: builtins.bool = False) -> tuple[Tensor, Tensor]:
        """The pair of `std` and `mean`."""
    @overload
    def std_mean(self, axis: Integers | None = None, unbiased: builtins.bool | None = None, *, ddof: Number | None = None, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]:
        """The pair of `std` and `mean`."""
    @overload
    def nansum(self, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The sum of the elements that are not NaN."""
    @overload
    def nansum(self, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The sum of the elements that are not NaN."""
    @overload
    def nanmean(self, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The mean of the elements that are not NaN; NaN if there are none."""
    @overload
    def nanmean(self, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | builtins.type | None = None) -> Tensor:
        """The mean of the elements that are not NaN; NaN if there are none."""
    @overload
    def quantile(self, q: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, interpolation: str = 'linear') -> Tensor:
        """The q-quantiles along `dim`, or of all elements; NaN where an element is. Several q give a new first dimension."""
    @overload
    def quantile(self, q: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, interpolation: str = 'linear') -> Tensor:
        """The q-quantiles along `dim`, or of all elements; NaN where an element is. Several q give a new first dimension."""
    @overload
    def nanquantile(self, q: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, interpolation: str = 'linear') -> Tensor:
        """The q-quantiles of the elements that are not NaN."""
    @overload
    def nanquantile(self, q: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, interpolation: str = 'linear') -> Tensor:
        """The q-quantiles of the elements that are not NaN."""
    @overload
    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        """The logarithm of the running sum of exp(input) along `dim`, without overflow, by doubling."""
    @overload
    def logcumsumexp(self, axis: builtins.int) -> Tensor:
        """The logarithm of the running sum of exp(input) along `dim`, without overflow, by doubling."""
    @overload
    def cov(self, *, correction: Number = 1, fweights: TensorLike | None = None, aweights: TensorLike | None = None) -> Tensor:
        """The covariances of the rows, which are variables; columns are observations, with frequencies and weights."""
    @overload
    def cov(self, *, ddof: Number = 1, fweights: TensorLike | None = None, aweights: TensorLike | None = None) -> Tensor:
        """The covariances of the rows, which are variables; columns are observations, with frequencies and weights."""
    def corrcoef(self) -> Tensor:
        """Pearson's correlations of the rows, which are variables."""
    def dist(self, other: TensorLike, p: builtins.float | str = 2) -> Tensor:
        """The p-norm of the difference."""
    @overload
    def renorm(self, p: builtins.float | str, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """The slices along `dim` whose p-norm is above `maxnorm`, scaled to that norm (less a part in ten millions, as in torch)."""
    @overload
    def renorm(self, p: builtins.float | str, axis: builtins.int, maxnorm: builtins.float) -> Tensor:
        """The slices along `dim` whose p-norm is above `maxnorm`, scaled to that norm (less a part in ten millions, as in torch)."""
    @overload
    def narrow_copy(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """A copy of the `length` slices along `dim` from `start` on."""
    @overload
    def narrow_copy(self, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """A copy of the `length` slices along `dim` from `start` on."""
    def register_hook(self, hook: Hook) -> RemovableHandle: ...
    def register_post_accumulate_grad_hook(self, hook: Hook) -> RemovableHandle: ...
    def retain_grad(self) -> None: ...
    @property
    def retains_grad(self) -> builtins.bool: ...
    @property
    def _base(self) -> Tensor | None: ...
    def _is_view(self) -> Any: ...
    def _is_leaf_unrefreshed(self) -> builtins.bool: ...
    def detach_(self) -> Tensor: ...
    def as_strided(self, size: Any, stride: Any, storage_offset: builtins.int | None = None) -> Tensor: ...
    def is_inference(self) -> builtins.bool: ...
    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor: ...
    @property
    def _version(self) -> builtins.int: ...
    def backward(self, gradient: Any = None, retain_graph: builtins.bool | None = None, create_graph: builtins.bool = False, inputs: Any = None) -> None: ...
    @property
    def expr(self) -> Any: ...
    def assignments(self) -> list[tuple[Any, Any]]: ...
    @property
    def conditions(self) -> tuple[Any, ...]: ...
    @property
    def leaves(self) -> dict[str, Tensor]: ...
    def __add__(self, other: TensorLike, /) -> Tensor: ...
    def __radd__(self, other: TensorLike, /) -> Tensor: ...
    def __sub__(self, other: TensorLike, /) -> Tensor: ...
    def __rsub__(self, other: TensorLike, /) -> Tensor: ...
    def __mul__(self, other: TensorLike, /) -> Tensor: ...
    def __rmul__(self, other: TensorLike, /) -> Tensor: ...
    def __truediv__(self, other: TensorLike, /) -> Tensor: ...
    def __rtruediv__(self, other: TensorLike, /) -> Tensor: ...
    def __floordiv__(self, other: TensorLike, /) -> Tensor: ...
    def __rfloordiv__(self, other: TensorLike, /) -> Tensor: ...
    def __mod__(self, other: TensorLike, /) -> Tensor: ...
    def __rmod__(self, other: TensorLike, /) -> Tensor: ...
    def __pow__(self, other: TensorLike, /) -> Tensor: ...
    def __rpow__(self, other: TensorLike, /) -> Tensor: ...
    def __eq__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, other: Any, /) -> Tensor: ...
    def __le__(self, other: Any, /) -> Tensor: ...
    def __gt__(self, other: Any, /) -> Tensor: ...
    def __ge__(self, other: Any, /) -> Tensor: ...
    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]: ...
    def __neg__(self, out: Any = None) -> Tensor: ...
    def __abs__(self, out: Any = None) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __and__(self, other: TensorLike, /) -> Tensor: ...
    def __rand__(self, other: TensorLike, /) -> Tensor: ...
    def __or__(self, other: TensorLike, /) -> Tensor: ...
    def __ror__(self, other: TensorLike, /) -> Tensor: ...
    def __xor__(self, other: TensorLike, /) -> Tensor: ...
    def __rxor__(self, other: TensorLike, /) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any: ...
    def to(self, *args: Any, dtype: Any = None, device: Any = None, tensor: Any = None, non_blocking: builtins.bool = False, copy: builtins.bool = False, memory_format: Any = None) -> Tensor: ...
    def double(self, memory_format: Any = None) -> Tensor: ...
    def float(self, memory_format: Any = None) -> Tensor: ...
    def half(self, memory_format: Any = None) -> Tensor: ...
    def cfloat(self, memory_format: Any = None) -> Tensor: ...
    def cdouble(self, memory_format: Any = None) -> Tensor: ...
    def long(self, memory_format: Any = None) -> Tensor: ...
    def int(self, memory_format: Any = None) -> Tensor: ...
    def short(self, memory_format: Any = None) -> Tensor: ...
    def bfloat16(self, memory_format: Any = None) -> Tensor: ...
    def bool(self, memory_format: Any = None) -> Tensor: ...
    def char(self, memory_format: Any = None) -> Tensor: ...
    def byte(self, memory_format: Any = None) -> Tensor: ...
    def type_as(self, other: Tensor) -> Tensor: ...
    def cpu(self, memory_format: Any = None) -> Tensor: ...
    def cuda(self, device: Any = None, non_blocking: builtins.bool = False, memory_format: Any = None) -> Tensor: ...
    def contiguous(self, memory_format: Any = ...) -> Tensor: ...
    def is_contiguous(self, memory_format: Any = ...) -> builtins.bool: ...
    def stride(self, dim: builtins.int | None = None) -> Any: ...
    def size(self, dim: builtins.int | None = None) -> Any: ...
    def untyped_storage(self) -> UntypedStorage: ...
    def data_ptr(self) -> builtins.int: ...
    def storage_offset(self) -> builtins.int: ...
    def element_size(self) -> builtins.int: ...
    def is_signed(self) -> builtins.bool: ...
    def is_same_size(self, other: Tensor) -> builtins.bool: ...
    def is_set_to(self, tensor: Tensor) -> builtins.bool: ...
    @property
    def device(self) -> Tensor: ...
    @property
    def layout(self) -> Tensor: ...
    @property
    def is_cpu(self) -> Tensor: ...
    @property
    def is_cuda(self) -> Tensor: ...
    @property
    def is_sparse(self) -> Tensor: ...
    @property
    def is_sparse_csr(self) -> Tensor: ...
    @property
    def is_quantized(self) -> Tensor: ...
    @property
    def is_mkldnn(self) -> Tensor: ...
    @property
    def is_meta(self) -> Tensor: ...
    @property
    def is_nested(self) -> Tensor: ...
    @property
    def is_mps(self) -> Tensor: ...
    @property
    def is_xpu(self) -> Tensor: ...
    @property
    def is_vulkan(self) -> Tensor: ...
    @property
    def is_ipu(self) -> Tensor: ...
    @property
    def itemsize(self) -> Tensor: ...
    @property
    def nbytes(self) -> Tensor: ...
    def get_device(self) -> builtins.int: ...
    def is_pinned(self, device: Any = None) -> builtins.bool: ...
    def pin_memory(self, device: Any = None) -> Tensor: ...
    @property
    def T(self) -> Tensor: ...
    @property
    def real(self) -> Tensor: ...
    @property
    def imag(self) -> Tensor: ...
    def is_conj(self) -> builtins.bool: ...
    def is_neg(self) -> builtins.bool: ...
    @property
    def mT(self) -> Tensor: ...
    @property
    def mH(self) -> Tensor: ...
    @property
    def H(self) -> Tensor: ...
    def t_(self) -> Tensor:
        """The transpose of a matrix; vectors and scalars as they are."""
    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two axes exchanged."""
    def swapaxes_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two axes exchanged."""
    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two axes exchanged."""
    @overload
    def squeeze_(self, dim: Integers | None = None) -> Tensor:
        """The axes of size 1 removed: all of them, or those in `dim`."""
    @overload
    def squeeze_(self, axis: Integers | None = None) -> Tensor:
        """The axes of size 1 removed: all of them, or those in `dim`."""
    @overload
    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """A new axis of size 1 at `dim`."""
    @overload
    def unsqueeze_(self, axis: builtins.int) -> Tensor:
        """A new axis of size 1 at `dim`."""
    def as_strided_(self, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = None) -> Tensor: ...
    def resize_(self, *size: Any, memory_format: Any = None) -> Tensor: ...
    def resize_as_(self, the_template: Tensor, *, memory_format: Any = None) -> Tensor: ...
    def set_(self, source: Any = None, storage_offset: builtins.int = 0, size: Sequence[builtins.int] | None = None, stride: Sequence[builtins.int] | None = None) -> Tensor: ...
    def add_(self, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor: ...
    def sub_(self, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor: ...
    def subtract_(self, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor: ...
    def mul_(self, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor: ...
    def multiply_(self, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor: ...
    def div_(self, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor: ...
    def divide_(self, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor: ...
    def true_divide_(self, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor: ...
    def neg_(self) -> Tensor: ...
    def negative_(self) -> Tensor: ...
    def reciprocal_(self) -> Tensor: ...
    def square_(self) -> Tensor: ...
    def pow_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def remainder_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def maximum_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def minimum_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def clamp_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def clip_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def eq_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def ne_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def not_equal_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def lt_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def less_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def le_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def less_equal_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def gt_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def greater_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def ge_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def greater_equal_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def logical_and_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def logical_or_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def logical_not_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def isfinite_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def isnan_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def isinf_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def exp_(self) -> Tensor: ...
    def exp2_(self) -> Tensor: ...
    def expm1_(self) -> Tensor: ...
    def log_(self) -> Tensor: ...
    def log2_(self) -> Tensor: ...
    def log10_(self) -> Tensor: ...
    def log1p_(self) -> Tensor: ...
    def sqrt_(self) -> Tensor: ...
    def rsqrt_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def cbrt_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def sin_(self) -> Tensor: ...
    def cos_(self) -> Tensor: ...
    def tan_(self) -> Tensor: ...
    def asin_(self) -> Tensor: ...
    def arcsin_(self) -> Tensor: ...
    def acos_(self) -> Tensor: ...
    def arccos_(self) -> Tensor: ...
    def atan_(self) -> Tensor: ...
    def arctan_(self) -> Tensor: ...
    def atan2_(self, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor: ...
    def arctan2_(self, other: Any, alpha: Any = None, rounding_mode: Any = None) -> Tensor: ...
    def hypot_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def sinh_(self) -> Tensor: ...
    def cosh_(self) -> Tensor: ...
    def tanh_(self) -> Tensor: ...
    def sech_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def asinh_(self) -> Tensor: ...
    def arcsinh_(self) -> Tensor: ...
    def acosh_(self) -> Tensor: ...
    def arccosh_(self) -> Tensor: ...
    def atanh_(self) -> Tensor: ...
    def arctanh_(self) -> Tensor: ...
    def abs_(self) -> Tensor: ...
    def absolute_(self) -> Tensor: ...
    def sign_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def floor_(self) -> Tensor: ...
    def ceil_(self) -> Tensor: ...
    def round_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def trunc_(self) -> Tensor: ...
    def fix_(self) -> Tensor: ...
    def sinc_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def tril_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def triu_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def deg2rad_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def rad2deg_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def copysign_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def heaviside_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def fmax_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def fmin_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def logaddexp2_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def ldexp_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def index_put_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def addbmm_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def addcmul_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def addcdiv_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def lerp_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def fmod_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def frac_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def floor_divide_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def rsub_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def logical_xor_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def clamp_min_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def clamp_max_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def nan_to_num_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def addmm_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def addmv_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def addr_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def baddbmm_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def relu_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def sigmoid_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def expit_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def logsigmoid_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def softplus_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def logaddexp_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def softmax_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def log_softmax_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def cumsum_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def sgn_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def scatter_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def scatter_add_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def index_add_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def index_copy_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def index_fill_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def scatter_reduce_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def index_reduce_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def masked_fill_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def masked_scatter_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def cumprod_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def erf_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def erfc_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def erfinv_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def logit_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def xlogy_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def lgamma_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def gammaln_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def digamma_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def psi_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def mvlgamma_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def multigammaln_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def i0_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def gammainc_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def igamma_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def gammaincc_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def igammac_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def renorm_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def copy_(self, src: Any, non_blocking: builtins.bool = False) -> Tensor: ...
    def fill_(self, value: Any) -> Tensor: ...
    def zero_(self) -> Tensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def float_power_(self, exponent: Any) -> Tensor: ...
    def conj_physical_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def __iadd__(self, other: TensorLike, /) -> Tensor: ...
    def __isub__(self, other: TensorLike, /) -> Tensor: ...
    def __imul__(self, other: TensorLike, /) -> Tensor: ...
    def __itruediv__(self, other: TensorLike, /) -> Tensor: ...
    def __ipow__(self, other: TensorLike, /) -> Tensor: ...
    def __ifloordiv__(self, other: TensorLike, /) -> Tensor: ...
    def __imod__(self, other: TensorLike, /) -> Tensor: ...
    def bincount(self, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor: ...
    def count_nonzero(self, dim: Any = None) -> Tensor: ...
    def frexp(self, *, out: Tensor | None = None) -> Any: ...
    def histc(self, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0, *, out: Tensor | None = None) -> Tensor: ...
    def isneginf(self, *, out: Tensor | None = None) -> Tensor: ...
    def isposinf(self, *, out: Tensor | None = None) -> Tensor: ...
    def isreal(self) -> Tensor: ...
    def nextafter(self, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    def nonzero(self, *, out: Tensor | None = None, as_tuple: builtins.bool = False) -> Any: ...
    def signbit(self, *, out: Tensor | None = None) -> Tensor: ...
    def unique(self, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int | None = None) -> Any: ...
    def unique_consecutive(self, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int | None = None) -> Any: ...
    def nextafter_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def where(self, condition: Tensor, other: Any) -> Tensor: ...
    def bitwise_and(self, other: Any, *, out: Tensor | None = None) -> Tensor: ...
    def bitwise_and_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def bitwise_or(self, other: Any, *, out: Tensor | None = None) -> Tensor: ...
    def bitwise_or_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def bitwise_xor(self, other: Any, *, out: Tensor | None = None) -> Tensor: ...
    def bitwise_xor_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def bitwise_left_shift(self, other: Any, *, out: Tensor | None = None) -> Tensor: ...
    def bitwise_left_shift_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def bitwise_right_shift(self, other: Any, *, out: Tensor | None = None) -> Tensor: ...
    def bitwise_right_shift_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def bitwise_not(self, *, out: Tensor | None = None) -> Tensor: ...
    def bitwise_not_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def gcd(self, other: Any, *, out: Tensor | None = None) -> Tensor: ...
    def gcd_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def lcm(self, other: Any, *, out: Tensor | None = None) -> Tensor: ...
    def lcm_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __iand__(self, other: TensorLike, /) -> Tensor: ...
    def __ior__(self, other: TensorLike, /) -> Tensor: ...
    def __ixor__(self, other: TensorLike, /) -> Tensor: ...
    def __ilshift__(self, other: Any) -> Any: ...
    def __irshift__(self, other: Any) -> Any: ...
    def normal_(self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Any = None) -> Tensor: ...
    def uniform_(self, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Any = None, **words: builtins.float) -> Tensor: ...
    def random_(self, from_: builtins.int | None = None, to: builtins.int | None = None, *, generator: Any = None, **words: builtins.int) -> Tensor: ...
    def bernoulli(self, p: Any = None, *, generator: Any = None) -> Tensor: ...
    def multinomial(self, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Any = None) -> Tensor: ...
    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Tensor: ...
    def exponential_(self, lambd: builtins.float = 1.0, *, generator: Any = None) -> Tensor: ...
    def geometric_(self, p: builtins.float, *, generator: Any = None) -> Tensor: ...
    def log_normal_(self, mean: builtins.float = 1.0, std: builtins.float = 2.0, *, generator: Any = None) -> Tensor: ...
    def cauchy_(self, median: builtins.float = 0.0, sigma: builtins.float = 1.0, *, generator: Any = None) -> Tensor: ...
    def fill_diagonal_(self, fill_value: Any, wrap: builtins.bool = False) -> Tensor: ...
    def equal(self, other: Tensor) -> builtins.bool: ...
    def allclose(self, other: Tensor, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False) -> builtins.bool: ...
    def is_nonzero(self) -> builtins.bool: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def __format__(self, spec: str) -> str: ...
    def __copy__(self) -> Any: ...
    def __deepcopy__(self, memo: dict[builtins.int, Any]) -> Any: ...
    def __reduce_ex__(self, protocol: Any) -> Any: ...
    def __new__(self, *args: Any, device: Any = None, **words: Any) -> Tensor: ...
    def as_subclass(self, cls: builtins.type) -> Any: ...
    def type(self, dtype: Any = None, non_blocking: builtins.bool = False) -> Any: ...
    def new(self, *args: Any, device: Any = None) -> Tensor: ...
    def new_tensor(self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False) -> Tensor: ...
    def new_zeros(self, *size: Any, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False, **rest: Any) -> Tensor: ...
    def new_ones(self, *size: Any, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False, **rest: Any) -> Tensor: ...
    def new_empty(self, *size: Any, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False, **rest: Any) -> Tensor: ...
    def new_full(self, *size: Any, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False, **rest: Any) -> Tensor: ...
    def new_empty_strided(self, *size: Any, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False, **rest: Any) -> Tensor: ...
    @property
    def data(self) -> Tensor: ...
    @data.setter
    def data(self, other: Any) -> None: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def numpy(self, *, force: builtins.bool = False) -> np.ndarray: ...
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> np.ndarray: ...
    def dim(self) -> builtins.int: ...
    def numel(self) -> builtins.int: ...
    def nelement(self) -> builtins.int: ...
    def ndimension(self) -> builtins.int: ...
    def shares_memory_with(self, other: Tensor) -> builtins.bool: ...
    def __len__(self) -> builtins.int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __bool__(self) -> builtins.bool: ...
    def _single_element(self) -> Any: ...
    def __float__(self) -> builtins.float: ...
    def __int__(self) -> builtins.int: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> builtins.int: ...
    def __contains__(self, element: Any) -> builtins.bool: ...
    def argwhere(self) -> Tensor: ...
    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = -1) -> Tensor: ...
    def as_strided_scatter(self, src: Tensor, size: Any, stride: Any, storage_offset: builtins.int | None = None) -> Tensor: ...
    def put(self, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Tensor: ...
    @overload
    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The input cut into at most `chunks` pieces along `dim`."""
    @overload
    def unsafe_chunk(self, chunks: builtins.int, axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The input cut into at most `chunks` pieces along `dim`."""
    @overload
    def unsafe_split(self, split_size_or_sections: Integers, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim`, all of one size (the last may be smaller) or of given sizes, as views that cannot be written in place."""
    @overload
    def unsafe_split(self, split_size_or_sections: Integers, axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim`, all of one size (the last may be smaller) or of given sizes, as views that cannot be written in place."""
    @overload
    def unsafe_split_with_sizes(self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim` with given sizes, as views that cannot be written in place."""
    @overload
    def unsafe_split_with_sizes(self, split_sizes: Sequence[builtins.int], axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The pieces of a tensor along `dim` with given sizes, as views that cannot be written in place."""
    def put_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def histogram(self, bins: builtins.int | Tensor = 100, *, range: Sequence[builtins.float] | None = None, weight: Tensor | None = None, density: builtins.bool = False) -> Any: ...
    def apply_(self, callable: Callable[[Any], Any]) -> Tensor: ...
    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor: ...
    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor: ...
    def dim_order(self, *, ambiguity_check: Any = False) -> tuple[builtins.int, ...]: ...
    def resize(self, *sizes_: builtins.int) -> Tensor: ...
    def resize_as(self, tensor: Tensor) -> Tensor: ...
    def module_load(self, other: Tensor, assign: builtins.bool = False) -> Tensor: ...
    def is_shared(self) -> builtins.bool: ...
    def is_distributed(self) -> builtins.bool: ...
    def hash_tensor(self, dim: Any = ..., *, keepdim: builtins.bool = False, mode: builtins.int = 0) -> Tensor: ...
    def slice_inverse(self, src: Tensor, dim: builtins.int = 0, start: builtins.int | None = None, end: builtins.int | None = None, step: builtins.int = 1) -> Tensor: ...
    def polygamma(self, n: builtins.int) -> Tensor: ...
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]: ...
    def const_data_ptr(self) -> builtins.int: ...
    def polygamma_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def stft(self, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: Tensor | None = None, center: builtins.bool = True, pad_mode: str = 'reflect', normalized: builtins.bool = False, onesided: builtins.bool | None = None, return_complex: builtins.bool | None = None, align_to_window: builtins.bool | None = None) -> Tensor: ...
    def istft(self, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: Tensor | None = None, center: builtins.bool = True, normalized: builtins.bool = False, onesided: builtins.bool | None = None, length: builtins.int | None = None, return_complex: builtins.bool = False) -> Tensor: ...
    @property
    def matrix_expr(self) -> Any: ...
    def __matmul__(self, other: TensorLike, /) -> Tensor: ...
    def __rmatmul__(self, other: TensorLike, /) -> Tensor: ...

def wrap(value: Any, node: Node | None = None) -> Tensor: ...
