"""Norms, powers, products and equations of matrices, made of the factorizations; leading axes are a batch."""

import math

from symgrad.arguments import check_dims, check_kind, check_least_rank, check_one_dtype, check_option, check_range, check_shapes
from symgrad.dtypes.dtype import DTYPES
from symgrad.errors import LinAlgError
from symgrad.graph import return_types
from symgrad.graph.op import composite
from symgrad.layouts.indices import broadcast
from symgrad.ops.linalg import matrix_transpose
from symgrad.ops.matrices import adjoint, check_equation, check_matrix, check_numbers, check_square
from symgrad.ops.rules import axes, axis, check_expandable, check_not_empty, in_float32, is_complex, plain_number

ORDERS = (1, -1, 2, -2, math.inf, -math.inf)  # of norms of matrices

# Norms


def _cast(name, x, dtype):
    """The numbers in the dtype, which may not be narrower or of another kind."""
    check_kind(name, x, "fc")
    if dtype is None:
        return x
    if dtype.is_complex != x.is_complex() or dtype.itemsize < x.dtype.itemsize:
        raise RuntimeError(f"{name}: dtype {dtype} must be of the kind of the input's dtype {x.dtype}, and no narrower")
    return x.to(dtype)


@composite("linalg_vector_norm", public=False)
@in_float32
def linalg_vector_norm(xp, x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The norm (Σ|x|^ord)^(1/ord) over `dim`, or over all elements; `ord` is a number, inf or -inf, and 0 counts the elements that are not zero."""
    ord = plain_number("linalg.vector_norm", "ord", ord)
    x = _cast("linalg.vector_norm", x, dtype)
    if (ord < 0 or ord == math.inf) and not math.prod(x.shape[i] for i in axes(dim, x.ndim)):
        raise RuntimeError(f"linalg.vector_norm: the {ord} norm of no elements is not defined, and the shape is {list(x.shape)}")
    out = xp.norm(x, ord, dim, keepdim)
    return xp.abs(out) if is_complex(out) else out  # the count of ord = 0


@composite("linalg_matrix_norm", public=False, kinks=(([[0.0, 0.0], [0.0, 0.0]],), ([[1.0, 0.0], [0.0, 1.0]], 2), ([[1.0, 1.0], [1.0, 1.0]], "nuc"),
           ([[1.0, 1.0], [1.0, 1.0]], 1)))
def linalg_matrix_norm(xp, A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of matrices by `ord`: "fro" is √Σ|x|², "nuc" the sum of the singular values, 2 and -2 the largest and the smallest of them.

    1 and -1 are the largest and the smallest sum of the absolute values of a column, inf and -inf those of a row.
    """
    check_least_rank("linalg.matrix_norm", A, 2)
    dim = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    dims = [axis(d, A.ndim) for d in dim]
    if len(dims) != 2 or dims[0] == dims[1]:
        raise RuntimeError(f"linalg.matrix_norm: dim must be two different dimensions, not {dim}")
    first, second = dims
    A = _cast("linalg.matrix_norm", A, dtype)
    ord = ord if isinstance(ord, str) else plain_number("linalg.matrix_norm", "ord", ord)
    if ord == "fro":
        return xp.norm(A, 2, (first, second), keepdim)
    check_option("linalg.matrix_norm", "ord", ord, ("fro", "nuc", *ORDERS))
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
    ord = ord if ord is None or isinstance(ord, str) else plain_number("linalg.norm", "ord", ord)
    if ord is None:
        return linalg_vector_norm(xp, input, 2, dim, keepdim, dtype=dtype)
    if (input.ndim if dim is None else len(dim)) not in (1, 2):
        raise RuntimeError(f"linalg.norm: the norm with ord={ord} is that of one or two dimensions, not {input.ndim if dim is None else list(dim)}")
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
    check_matrix("linalg.cond", A)
    if p in (None, 2, -2):
        if not A.numel():
            return xp.sum(xp.abs(A), (-2, -1))
        s = xp.singular_values(A)
        largest, least = xp.amax(s, -1), xp.amin(s, -1)  # equal ones share the derivative
        return largest / least if p != -2 else least / largest
    check_option("linalg.cond", "p", p, ("fro", "nuc", *ORDERS))
    check_square(f"linalg.cond(ord={p})", A)
    inverse, info = linalg_inv_ex(xp, A)
    out = linalg_matrix_norm(xp, A, p) * linalg_matrix_norm(xp, inverse, p)
    return xp.where(xp.gt(info, 0), math.inf, out) if info.any() else out


# Powers and products


@composite("matrix_power", usage="symgrad.matrix_power(symgrad.tensor([[2.0, 1.0], [1.0, 3.0]]), -2)")
def matrix_power(xp, input, n):
    """The product of n equal square matrices; of the inverses for a negative n."""
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"matrix_power: n must be an integer, not {n!r}")
    check_shapes("matrix_power", "(...,n,n)", input)
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
    check_range("linalg.multi_dot", "the number of tensors", count, 2)
    sizes = [f"(n{i},n{i + 1})" for i in range(count)]
    ends = {0: "(n1)", count - 1: f"(n{count - 1})"}
    check_shapes("linalg.multi_dot", ",".join(ends[i] if i in ends and x.ndim == 1 else sizes[i] for i, x in enumerate(tensors)), *tensors)
    check_one_dtype("linalg.multi_dot", *tensors)
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
    for x in check_not_empty("chain_matmul", given):
        check_dims("chain_matmul", x, 2)
    return given[0] if len(given) == 1 else linalg_multi_dot(xp, given)


@composite("linalg_vecdot", arity=2, public=False)
def linalg_vecdot(xp, x, y, *, dim=-1):
    """Σ conj(x) y along a dimension, the others broadcast."""
    check_one_dtype("linalg.vecdot", x, y)
    rank = max(x.ndim, y.ndim)
    first, second = ((*(1,) * (rank - t.ndim), *t.shape) for t in (x, y))
    if x.shape and y.shape and first[axis(dim, rank)] != second[axis(dim, rank)]:
        raise RuntimeError(f"linalg.vecdot: the shapes {list(x.shape)} and {list(y.shape)} must have one size along dim {dim}")
    return xp.sum(xp.conj(x) * y if x.is_complex() else x * y, dim)


@composite("vdot", arity=2, usage="symgrad.vdot(x, x)", saved=("other", "input"))
def vdot(xp, input, other):
    """Σ conj(input) other of two vectors."""
    check_shapes("vdot", "(n),(n)", input, other)
    check_one_dtype("vdot", input, other)
    return xp.dot(xp.conj(input) if input.is_complex() else input, other)


@composite("addbmm", arity=3, usage="symgrad.addbmm(symgrad.zeros(2, 2), a[None], a.t()[None])")
@in_float32
def addbmm(xp, input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * Σ batch1 @ batch2, the sum of a batch of matrix products."""
    if not (input.is_floating_point() or input.is_complex()):
        input, beta, alpha = input.to(DTYPES["int64"]), int(beta), int(alpha)
    total = xp.sum(xp.bmm(batch1, batch2), 0)
    check_expandable("addbmm", input, tuple(total.shape))
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
        raise RuntimeError(f"linalg.vander: not implemented for {x.dtype}. Convert the numbers with .to()")
    n = N if N is not None else x.shape[-1] if x.ndim else 1
    check_range("linalg.vander", "N", n, 2)
    x = x if x.is_floating_point() or x.is_complex() else x.to(DTYPES["int64"])
    return _powers(xp, x if x.ndim else xp.reshape(x, (1,)), n)


@composite("vander", usage="symgrad.vander(x, 3)", method=False)
def vander(xp, x, N=None, increasing=False):
    """The powers of the elements of a vector as columns, descending from N - 1, or from 0 with `increasing`."""
    check_dims("vander", x, 1, word="x")
    n = len(x) if N is None else N
    check_range("vander", "N", n, 0)
    out = _powers(xp, x.to(DTYPES["int64"]) if str(x.dtype) == "torch.bool" else x, n)
    return out if increasing else xp.flip(out, (1,))


# Equations


def _check_square_shape(name, shape, at):
    if math.prod(shape[at:]) != math.prod(shape[:at]):
        raise RuntimeError(f"{name}: the sizes {list(shape[:at])} and {list(shape[at:])} of A must have one product")


@composite("linalg_tensorinv", public=False)
def linalg_tensorinv(xp, A, ind=2):
    """The inverse of A as a matrix from its dimensions after `ind` to those before."""
    check_range("linalg.tensorinv", "ind", ind, 1)
    shape = tuple(A.shape)
    _check_square_shape("linalg.tensorinv", shape, ind)
    n = math.prod(shape[:ind])
    return xp.reshape(xp.linalg_inv(xp.reshape(A, (n, n))), shape[ind:] + shape[:ind])


@composite("linalg_tensorsolve", arity=2, public=False)
def linalg_tensorsolve(xp, A, B, dims=None):
    """The solution X of tensordot(A, X, X.ndim) = B; the dimensions `dims` of A are moved to the end first."""
    if dims is not None:
        A = xp.movedim(A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    shape = tuple(A.shape)
    _check_square_shape("linalg.tensorsolve", shape, B.ndim)
    n = math.prod(shape[:B.ndim])
    return xp.reshape(xp.linalg_solve(xp.reshape(A, (n, n)), xp.reshape(B, (n,))), shape[B.ndim:])


@composite("triangular_solve", arity=2, usage="symgrad.triangular_solve(symgrad.ones(2, 1), symgrad.tensor([[2.0, 1.0], [0.0, 3.0]])).solution")
def triangular_solve(xp, b, A, upper=True, transpose=False, unitriangular=False):
    """The solution X of A X = b, or of Aᵀ X = b with `transpose`, for a triangular A, and A itself."""
    check_equation("triangular_solve", A, b)
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
