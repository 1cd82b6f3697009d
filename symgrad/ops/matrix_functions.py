"""Norms, powers, products and equations of matrices, made of the factorizations; leading axes are a batch."""

import math

from symgrad.dtypes.dtype import DTYPES
from symgrad.errors import LinAlgError
from symgrad.graph import return_types
from symgrad.graph.op import composite
from symgrad.layouts.indices import broadcast
from symgrad.ops.linalg import matrix_transpose
from symgrad.ops.matrices import adjoint, check_numbers, check_square
from symgrad.ops.rules import axes, axis, in_float32, is_complex, plain_number

# Norms


def _cast(name, x, dtype):
    """The numbers in the dtype, which may not be narrower or of another kind."""
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_type}; convert it with .double()")
    if dtype is None:
        return x
    if dtype.is_complex != x.is_complex():
        kind = "complex" if x.is_complex() else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {dtype.scalar_type}")
    if dtype.itemsize < x.dtype.itemsize:
        raise RuntimeError(f"{name}: the dtype of the input ({x.dtype.scalar_type}) should be convertible without narrowing to the specified dtype "
                           f"({dtype.scalar_type})")
    return x.to(dtype)


@composite("linalg_vector_norm", public=False)
@in_float32
def linalg_vector_norm(xp, x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The norm (Σ|x|^ord)^(1/ord) over `dim`, or over all elements; `ord` is a number, inf or -inf, and 0 counts the elements that are not zero."""
    ord = plain_number("linalg_vector_norm", "ord", 2, ord)
    x = _cast("linalg.vector_norm", x, dtype)
    if (ord < 0 or ord == math.inf) and not math.prod(x.shape[i] for i in axes(dim, x.ndim)):
        raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not have an identity")
    out = xp.norm(x, ord, dim, keepdim)
    return xp.abs(out) if is_complex(out) else out  # the count of ord = 0


@composite("linalg_matrix_norm", public=False, kinks=(([[0.0, 0.0], [0.0, 0.0]],), ([[1.0, 0.0], [0.0, 1.0]], 2), ([[1.0, 1.0], [1.0, 1.0]], "nuc"),
           ([[1.0, 1.0], [1.0, 1.0]], 1)))
def linalg_matrix_norm(xp, A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of matrices by `ord`: "fro" is √Σ|x|², "nuc" the sum of the singular values, 2 and -2 the largest and the smallest of them.

    1 and -1 are the largest and the smallest sum of the absolute values of a column, inf and -inf those of a row.
    """
    if A.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    dim = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    dims = [axis(d, A.ndim) for d in dim]
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {', '.join(map(str, dim))}")
    first, second = dims
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    A = _cast("linalg.matrix_norm", A, dtype)
    ord = ord if isinstance(ord, str) else plain_number("linalg_matrix_norm", "ord", 2, ord)
    if ord == "fro":
        return xp.norm(A, 2, (first, second), keepdim)
    if isinstance(ord, str) and ord != "nuc" or not isinstance(ord, str) and abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    rest = [i for i in range(A.ndim) if i not in (first, second)]
    if ord in ("nuc", 2, -2):
        check_numbers("linalg.matrix_norm", A)
        s = xp.singular_values(A if rest == [*range(first)] and first < second else xp.permute(A, (*rest, first, second)))
        if ord == "nuc" or ord == 2 and not s.shape[-1]:
            out = xp.sum(s, -1)
        else:
            out = (xp.amax if ord > 0 else xp.amin)(s, -1)
    else:
        row, column = (first, second) if abs(ord) == 1 else (second, first)
        out = (xp.amax if ord > 0 else xp.amin)(xp.sum(xp.abs(A), row), column - (row < column))
    return xp.reshape(out, tuple(1 if i in (first, second) else n for i, n in enumerate(A.shape))) if keepdim else out


@composite("linalg_norm", public=False)
def linalg_norm(xp, input, ord=None, dim=None, keepdim=False, *, dtype=None):
    """The norm of vectors, or of matrices where `dim` names two dimensions, or A is a matrix and `ord` is given; without `ord` √Σ|x|²."""
    if dim is not None and not isinstance(dim, (tuple, list)):
        dim = (dim,)
    ord = ord if ord is None or isinstance(ord, str) else plain_number("linalg_norm", "ord", 2, ord)
    if ord is None:
        return linalg_vector_norm(xp, input, 2, dim, keepdim, dtype=dtype)
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and input.ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.ndim}D.")
    if not isinstance(ord, str) and (len(dim) if dim else input.ndim) == 1:
        return linalg_vector_norm(xp, input, ord, dim, keepdim, dtype=dtype)
    return linalg_matrix_norm(xp, input, ord, dim or (-2, -1), keepdim, dtype=dtype)


@composite("frobenius_norm", usage="symgrad.frobenius_norm(a, (0, 1))", method=False)
def frobenius_norm(xp, input, dim, keepdim=False):
    """√Σ|x|² over one or two dimensions."""
    return xp.norm(input, 2, dim, keepdim)


@composite("nuclear_norm", usage="symgrad.nuclear_norm(a)", method=False)
def nuclear_norm(xp, input, dim=(-2, -1), keepdim=False):
    """The sum of the singular values of matrices."""
    return linalg_matrix_norm(xp, input, "nuc", dim, keepdim)


@composite("linalg_cond", public=False, kinks=(([[1.0, 0.0], [0.0, 1.0]],),))
def linalg_cond(xp, A, p=None):
    """The condition number: the norm of A times the norm of its inverse, or for None, 2 and -2 the quotient of the extreme singular values.

    It is inf for a singular matrix. The derivative is 0 where all singular values are equal.
    """
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    check_numbers("linalg.cond", A)
    if p in (None, 2, -2):
        if not A.numel():
            return xp.sum(xp.abs(A), (-2, -1))
        s = xp.singular_values(A)
        largest, least = xp.amax(s, -1), xp.amin(s, -1)  # equal ones share the derivative
        return largest / least if p != -2 else least / largest
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(f"linalg.cond(ord={p})", A)
    inverse, info = linalg_inv_ex(xp, A)
    out = linalg_matrix_norm(xp, A, p) * linalg_matrix_norm(xp, inverse, p)
    return xp.where(xp.gt(info, 0), math.inf, out) if info.any() else out


# Powers and products


@composite("matrix_power", usage="symgrad.matrix_power(symgrad.tensor([[2.0, 1.0], [1.0, 3.0]]), -2)")
def matrix_power(xp, input, n):
    """The product of n equal square matrices; of the inverses for a negative n."""
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    if input.ndim < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if input.shape[-1] != input.shape[-2]:
        raise RuntimeError(f"linalg.matrix_power: A must be batches of square matrices, but they are {input.shape[-2]} by {input.shape[-1]} matrices")
    if not n:
        return xp.clone(xp.broadcast_to(xp.eye_like(input, input.shape[-1]), input.shape))
    square, n, out = xp.linalg_inv(input) if n < 0 else input, abs(n), None
    while n:
        if n % 2:
            out = square if out is None else xp.matmul(out, square)
        n //= 2
        if n:
            square = xp.matmul(square, square)
    return out


def _order(sizes):
    """For a product of matrices with these sizes the fewest multiplications, and where the first of them divides it, by ranges."""
    n, best = len(sizes) - 1, {(i, i): (0, i) for i in range(len(sizes) - 1)}
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            best[i, j] = min((best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
    return best


@composite("linalg_multi_dot", arity=None, public=False)
def linalg_multi_dot(xp, tensors):
    """The product of matrices in the order with the fewest multiplications; the first and the last may be vectors."""
    count = len(tensors)
    if count < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {count}")
    for i, x in enumerate(tensors):
        end = "the first tensor" if i == 0 else "the last tensor" if i == count - 1 else ""
        if x.ndim != 2 and not (end and x.ndim == 1):
            raise RuntimeError(f"multi_dot(): {f'{end} must be 1D or 2D' if end else f'tensor {i} must be 2D'} but got {x.ndim}D")
        if x.dtype != tensors[0].dtype:
            raise RuntimeError(f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {tensors[0].dtype} and tensor {i} {x.dtype}")
    for i, (x, y) in enumerate(zip(tensors, tensors[1:])):
        if x.shape[-1] != y.shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(x.shape)} and {list(y.shape)} cannot be multiplied")
    best = _order([1 if tensors[0].ndim == 1 else tensors[0].shape[0], *[x.shape[0] for x in tensors[1:]],
                   1 if tensors[-1].ndim == 1 else tensors[-1].shape[1]])

    def product(i, j):
        at = best[i, j][1]
        return tensors[i] if i == j else xp.matmul(product(i, at), product(at + 1, j))

    return product(0, count - 1)


@composite("chain_matmul", arity=None, usage="symgrad.chain_matmul(a, a.T, a)", method=False)
def chain_matmul(xp, *matrices):
    """The product of matrices in the order with the fewest multiplications."""
    given = list(matrices[0]) if len(matrices) == 1 and isinstance(matrices[0], (tuple, list)) else list(matrices)
    if not given:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for x in given:
        if x.ndim != 2:
            raise RuntimeError(f"chain_matmul: Tensor dimension is {x.ndim}, expected 2 instead.")
    return given[0] if len(given) == 1 else linalg_multi_dot(xp, given)


def _check_same_dtype(name, x, y):
    if x.dtype != y.dtype:
        raise RuntimeError(f"{name}: Expected x and y to have the same dtype, but found x of type {x.dtype.scalar_type} and y of type "
                           f"{y.dtype.scalar_type} instead")


@composite("linalg_vecdot", arity=2, public=False)
def linalg_vecdot(xp, x, y, *, dim=-1):
    """Σ conj(x) y along a dimension, the others broadcast."""
    _check_same_dtype("linalg.vecdot", x, y)
    rank = max(x.ndim, y.ndim)
    first, second = ((*(1,) * (rank - t.ndim), *t.shape) for t in (x, y))
    if x.shape and y.shape and first[axis(dim, rank)] != second[axis(dim, rank)]:
        raise RuntimeError(f"linalg.vecdot: inconsistent tensor size, expected the same number of elements along dim {dim}, but got shapes "
                           f"{list(x.shape)} and {list(y.shape)}")
    return xp.sum(xp.conj(x) * y if x.is_complex() else x * y, dim)


@composite("vdot", arity=2, usage="symgrad.vdot(x, x)", saved=("other", "input"))
def vdot(xp, input, other):
    """Σ conj(input) other of two vectors."""
    if input.ndim != 1 or other.ndim != 1:
        raise RuntimeError(f"vdot: 1D tensors expected, but got {input.ndim}D and {other.ndim}D tensors")
    _check_same_dtype("vdot", input, other)
    return xp.dot(xp.conj(input) if input.is_complex() else input, other)


@composite("addbmm", arity=3, usage="symgrad.addbmm(symgrad.zeros(2, 2), a[None], a.t()[None])")
@in_float32
def addbmm(xp, input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * Σ batch1 @ batch2, the sum of a batch of matrix products."""
    if not (input.is_floating_point() or input.is_complex()):
        input, beta, alpha = input.to(DTYPES["int64"]), int(beta), int(alpha)
    total = xp.sum(xp.bmm(batch1, batch2), 0)
    if broadcast(tuple(input.shape), tuple(total.shape)) != tuple(total.shape):
        raise RuntimeError(f"the input of shape {list(input.shape)} does not expand to the sum of products, of shape {list(total.shape)}")
    return ((total if alpha == 1 else alpha * total) + (input if beta == 1 else beta * input)).to(batch1.dtype)


@composite("linalg_cross", arity=2, public=False)
def linalg_cross(xp, input, other, *, dim=-1):
    """The cross product along a dimension of size 3, the others broadcast."""
    return xp.cross(input, other, dim)


@composite("linalg_diagonal", view=True, public=False)
def linalg_diagonal(xp, A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonals of matrices, a view with the diagonal as its last dimension."""
    return xp.diagonal(A, offset, dim1, dim2)


def _powers(xp, x, n):
    first = xp.ones_like(x, (*x.shape, 1)).to(x.dtype)
    return xp.cat([first, xp.cumprod(xp.broadcast_to(x.unsqueeze(-1), (*x.shape, n - 1)), -1)], x.ndim) if n > 1 else first[..., :n]


@composite("linalg_vander", public=False)
def linalg_vander(xp, x, *, N=None):
    """The powers 0 to N - 1 of numbers, along a new last dimension."""
    if x.dtype.name in ("bool", "float16", "bfloat16"):
        raise RuntimeError(f"linalg.vander supports floating point, complex, and integer tensors, but got {x.dtype.scalar_type}")
    n = N if N is not None else x.shape[-1] if x.ndim else 1
    if n <= 1:
        raise RuntimeError("linalg.vander: N must be greater than 1.")
    x = x if x.is_floating_point() or x.is_complex() else x.to(DTYPES["int64"])
    return _powers(xp, x if x.ndim else xp.reshape(x, (1,)), n)


@composite("vander", usage="symgrad.vander(x, 3)", method=False)
def vander(xp, x, N=None, increasing=False):
    """The powers of the elements of a vector as columns, descending from N - 1, or from 0 with `increasing`."""
    if x.ndim != 1:
        raise RuntimeError("vander: x must be a one-dimensional tensor.")
    n = len(x) if N is None else N
    if n < 0:
        raise RuntimeError("vander: N must be non-negative.")
    out = _powers(xp, x.to(DTYPES["int64"]) if str(x.dtype) == "torch.bool" else x, n)
    return out if increasing else xp.flip(out, (1,))


# Equations


def _check_square_shape(shape, at, where):
    if math.prod(shape[at:]) != math.prod(shape[:at]):
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[{where}:]) == prod(self.shape[:{where}]), but got "
                           f"{math.prod(shape[at:])} != {math.prod(shape[:at])}")


@composite("linalg_tensorinv", public=False)
def linalg_tensorinv(xp, A, ind=2):
    """The inverse of A as a matrix from its dimensions after `ind` to those before."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = tuple(A.shape)
    _check_square_shape(shape, ind, "ind")
    n = math.prod(shape[:ind])
    return xp.reshape(xp.linalg_inv(xp.reshape(A, (n, n))), shape[ind:] + shape[:ind])


@composite("linalg_tensorsolve", arity=2, public=False)
def linalg_tensorsolve(xp, A, B, dims=None):
    """The solution X of tensordot(A, X, X.ndim) = B; the dimensions `dims` of A are moved to the end first."""
    if dims is not None:
        A = xp.movedim(A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    shape = tuple(A.shape)
    _check_square_shape(shape, B.ndim, "other.ndim")
    n = math.prod(shape[:B.ndim])
    return xp.reshape(xp.linalg_solve(xp.reshape(A, (n, n)), xp.reshape(B, (n,))), shape[B.ndim:])


@composite("triangular_solve", arity=2, usage="symgrad.triangular_solve(symgrad.ones(2, 1), symgrad.tensor([[2.0, 1.0], [0.0, 3.0]])).solution")
def triangular_solve(xp, b, A, upper=True, transpose=False, unitriangular=False):
    """The solution X of A X = b, or of Aᵀ X = b with `transpose`, for a triangular A, and A itself."""
    if b.ndim < 2:
        raise RuntimeError(f"torch.triangular_solve: Expected b to have at least 2 dimensions, but it has {b.ndim} dimensions instead")
    matrix, upper = matrix_transpose(xp, A) if transpose else A, bool(upper) != bool(transpose)
    x = xp.linalg_solve_triangular(matrix, b, upper=upper, unitriangular=unitriangular)
    return return_types.triangular_solve((x, xp.clone(xp.expand(A, (*x.shape[:-2], *A.shape[-2:])))))


# Functions that tell by a number whether they have failed


def _with_info(xp, name, function, arrays, check_errors):
    """The result and, for each matrix, 0, or where it is refused the number of its first bad row, from 1, and NaN as its result."""
    front = tuple(arrays[0].shape[:-2])
    try:
        return function(*arrays), _whole(xp, arrays[0], front, 0)
    except LinAlgError as error:
        found = error.info
        if not found or check_errors:
            raise LinAlgError(str(error).replace(f"linalg.{name.removesuffix('_ex')}:", f"linalg.{name}:", 1), found) from None
    if front:
        parts = [_with_info(xp, name, function, [x[i] for x in arrays], False) for i in range(front[0])]
        return xp.stack([x for x, _ in parts], 0), xp.stack([info for _, info in parts], 0)
    return xp.zeros_like(arrays[-1]) + math.nan, _whole(xp, arrays[0], (), found)


def _whole(xp, like, shape, number):
    return (xp.abs(xp.zeros_like(like, shape)) + number).to(DTYPES["int32"])


@composite("linalg_inv_ex", public=False)
def linalg_inv_ex(xp, A, *, check_errors=False):
    """The inverse and, for each matrix, 0, or the number of a zero on the diagonal of its triangular factor; the inverse is NaN then."""
    check_square("linalg.inv_ex", A)
    return return_types.linalg_inv_ex(_with_info(xp, "inv_ex", xp.matrix_inverse, [A], check_errors))


@composite("linalg_cholesky_ex", public=False)
def linalg_cholesky_ex(xp, A, *, upper=False, check_errors=False):
    """The Cholesky factor and, for each matrix, 0, or the order of the first leading minor that is not positive definite; the factor is NaN then."""
    check_square("linalg.cholesky_ex", A)
    factor, info = _with_info(xp, "cholesky_ex", xp.cholesky_factor, [adjoint(xp, A) if upper else A], check_errors)
    return return_types.linalg_cholesky_ex((adjoint(xp, factor) if upper else factor, info))


@composite("linalg_solve_ex", arity=2, public=False)
def linalg_solve_ex(xp, A, B, *, left=True, check_errors=False):
    """The solution X of A X = B and, for each matrix, 0, or the number of a zero on the diagonal of its triangular factor; X is NaN then."""
    check_square("linalg.solve_ex", A)
    vector = B.ndim == 1 or tuple(B.shape) == tuple(A.shape[:-1])
    b = B.unsqueeze(-1) if vector else B
    batch = broadcast(tuple(A.shape[:-2]), tuple(b.shape[:-2]))
    out, info = _with_info(xp, "solve_ex", lambda a, b: xp.linalg_solve(a, b, left=left), [A, xp.broadcast_to(b, (*batch, *b.shape[-2:]))],
                           check_errors)
    return return_types.linalg_solve_ex((out.squeeze(-1) if vector else out, info))
