"""Singular values, orthogonal factors, pseudo-inverses, exponentials and spectra of matrices; leading axes are a batch.

Vectors have a derivative where their values are different (singular values also from zero); elsewhere it raises RuntimeError. The largest element
of a vector is real and positive, so that a derivative also of complex vectors is that of one function. Q and R are those of LAPACK: the diagonal of R
is real. Sources: M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008); G. H. Golub and
V. Pereyra, The differentiation of pseudo-inverses (1973); R. Mathias, A chain rule for matrix functions (1996), for exponentials of block matrices.
"""

from symgrad.arguments import check_one_dtype, check_option, check_shapes
from symgrad.dtypes.dtype import DTYPES, finfo
from symgrad.graph import return_types
from symgrad.graph.domains import FULL, NONSINGULAR, SEPARATED_SINGULAR, SYMMETRIC
from symgrad.graph.op import composite, primitive
from symgrad.ops.linalg import matrix_transpose
from symgrad.ops.matrices import (
    MATRIX,
    adjoint,
    check_matrix,
    check_square,
    hermitian,
    pull_turn,
    real_part,
    scaled_columns,
    turn_of,
)
from symgrad.ops.rules import constant, every, is_complex

TALL = ((3, 2),)


# Singular values, and the vectors, U above V in one array


def _beside_the_largest(xp, y):
    """1 for singular values, and 0 for those that are zero beside the digits of the largest, whose vectors are arbitrary."""
    largest = y[..., :1]
    return xp.indicator(xp.ne(y + largest, largest), y)


def _pull_singular_values(xp, g, y, a):
    u, v = _above(xp, xp.singular_vectors(a), a)
    return xp.matmul(scaled_columns(xp, u, _beside_the_largest(xp, y) * g), adjoint(xp, v))


def _push_singular_values(xp, t, y, a):
    u, v = _above(xp, xp.singular_vectors(a), a)
    return real_part(xp, xp.sum(xp.conj(u) * xp.matmul(t, v), (-2,))) * _beside_the_largest(xp, y)


primitive("singular_values", lambda xp, input: xp.singular_values(input), vjp=_pull_singular_values, jvp=_push_singular_values, public=False,
          node_name="LinalgSvd", shapes=TALL, domain=SEPARATED_SINGULAR,
          doc="The singular values of a matrix, descending; the derivative of one that is 0 beside the digits of the largest is 0.")


def _above(xp, y, a):
    """The first rows of y, as many as a has, and the rest."""
    return y[..., :a.shape[-2], :], y[..., a.shape[-2]:, :]


def _singular_gaps(xp, a):
    """1 / (s_j - s_i), 1 / (s_j + s_i), and of a matrix that is not square 1 / s_j, from the gaps of the eigenvalues of [[0, A], [Aᴴ, 0]]."""
    s = xp.singular_values(a)
    k = s.shape[-1]
    zero = [] if a.shape[-1] == a.shape[-2] else [xp.zeros_like(s, (*s.shape[:-1], 1))]
    gaps = xp.eigenvalue_gaps(xp.cat([s, -s, *zero], s.ndim - 1), "linalg.svd")
    return gaps[..., :k, :k], gaps[..., k:2 * k, :k], gaps[..., 2 * k:, :k]


def _skew(xp, a):
    return (a - adjoint(xp, a)) / 2


def _pull_singular_vectors(xp, g, y, a):
    u, v = _above(xp, xp.conj(y), a)
    gu, gv = _above(xp, g, a)
    if is_complex(y):
        gu = pull_turn(xp, gu, u, xp.sum(g * y, (-2,), True))
    differences, sums, inverses = _singular_gaps(xp, a)
    x, z = xp.matmul(adjoint(xp, u), gu), xp.matmul(adjoint(xp, v), gv)
    inner = hermitian(xp, differences * (x + z)) + _skew(xp, sums * (x - z))
    left = xp.matmul(u, inner)
    if a.shape[-2] > a.shape[-1]:
        left = left + (gu - xp.matmul(u, x)) * inverses
    out = xp.matmul(left, adjoint(xp, v))
    return out if a.shape[-2] >= a.shape[-1] else out + xp.matmul(u, adjoint(xp, (gv - xp.matmul(v, z)) * inverses))


def _push_singular_vectors(xp, t, y, a):
    u, v = _above(xp, y, a)
    differences, sums, inverses = _singular_gaps(xp, a)
    tv, tu = xp.matmul(t, v), xp.matmul(adjoint(xp, t), u)
    p = xp.matmul(adjoint(xp, u), tv)
    even, odd = differences * hermitian(xp, p), sums * _skew(xp, p)
    du, dv = xp.matmul(u, even + odd), xp.matmul(v, even - odd)
    if a.shape[-2] > a.shape[-1]:
        du = du + (tv - xp.matmul(u, p)) * inverses
    if a.shape[-2] < a.shape[-1]:
        dv = dv + (tu - xp.matmul(v, adjoint(xp, p))) * inverses
    out = xp.cat([du, dv], y.ndim - 2)
    return out - 1j * y * turn_of(xp, du, u) if is_complex(y) else out


primitive("singular_vectors", lambda xp, input: xp.singular_vectors(input), vjp=_pull_singular_vectors, jvp=_push_singular_vectors, public=False,
          node_name="LinalgSvdBackward1", shapes=MATRIX, domain=SEPARATED_SINGULAR, doc="The columns of U above those of V, for A = U S Vᴴ.")


def _diagonal(xp, a):
    return xp.tril(a, 0) - xp.tril(a, -1)


def _pull_qr(xp, g, y, a):
    q, r = _above(xp, xp.conj(y), a)
    r = xp.regular(r, "linalg.qr")
    gq, gr = _above(xp, g, a)
    n, x = xp.matmul(gr, adjoint(xp, r)), xp.matmul(adjoint(xp, q), gq)
    skew = _skew(xp, x)
    inner = xp.triu(n, 1) + xp.tril(2 * skew + adjoint(xp, n), -1) + _diagonal(xp, hermitian(xp, n) + skew)
    left = xp.matmul(q, inner)
    left = left if a.shape[-2] == a.shape[-1] else left + (gq - xp.matmul(q, x))
    return adjoint(xp, xp.solve_triangle(r, adjoint(xp, left), True, False))


def _push_qr(xp, t, y, a):
    q, r = _above(xp, y, a)
    r = xp.regular(r, "linalg.qr")
    c = matrix_transpose(xp, xp.solve_triangle(matrix_transpose(xp, r), matrix_transpose(xp, t), False, False))
    x = xp.matmul(adjoint(xp, q), c)
    below = xp.tril(x, -1)
    turn = below - adjoint(xp, below) + _diagonal(xp, _skew(xp, x))  # so that the triangle keeps a real diagonal
    dq = xp.matmul(q, turn)
    return xp.cat([dq if a.shape[-2] == a.shape[-1] else dq + (c - xp.matmul(q, x)), xp.matmul(x - turn, r)], y.ndim - 2)


primitive("qr_factors", lambda xp, input: xp.qr_factors(input), vjp=_pull_qr, jvp=_push_qr, public=False, node_name="LinalgQr", shapes=MATRIX,
          domain=FULL, doc="The columns of Q above the triangle R, for A = Q R with at least as many rows as columns.")


def _pull_pseudo_inverse(xp, g, y, a, atol, rtol):
    p, a = xp.conj(y), xp.conj(a)
    pt, gt = adjoint(xp, p), adjoint(xp, g)
    first, second = xp.matmul(gt, xp.matmul(p, pt)), xp.matmul(pt, xp.matmul(p, gt))
    return (first - xp.matmul(a, xp.matmul(p, first)) + second - xp.matmul(xp.matmul(second, p), a)) - xp.matmul(xp.matmul(pt, g), pt)


def _push_pseudo_inverse(xp, t, y, a, atol, rtol):
    back, conjugate = adjoint(xp, t), adjoint(xp, y)
    first, second = xp.matmul(xp.matmul(y, conjugate), back), xp.matmul(back, xp.matmul(conjugate, y))
    return (first - xp.matmul(xp.matmul(first, a), y) + second - xp.matmul(y, xp.matmul(a, second))) - xp.matmul(xp.matmul(y, t), y)


primitive("pseudo_inverse", lambda xp, input, atol, rtol: xp.pseudo_inverse(input, atol, rtol), vjp=_pull_pseudo_inverse, jvp=_push_pseudo_inverse,
          public=False, node_name="LinalgPinv", shapes=MATRIX, examples=((0.0, 1e-9),), domain=NONSINGULAR,
          doc="The pseudo-inverse, without the singular values below atol or rtol times the largest; its derivative is that at constant rank.")


def _block(xp, a, t):
    """[[A, T], [0, A]], of which a function has the derivative along T as its upper right block."""
    axis, zero = a.ndim - 1, xp.zeros_like(a)
    return xp.cat([xp.cat([a, zero + t], axis), xp.cat([zero, a], axis)], axis - 1)  # t may be the number 0 in a program


def _exponential_along(xp, a, t):
    n = a.shape[-1]
    return xp.matrix_exponential(_block(xp, a, t))[..., :n, n:]


primitive("matrix_exponential", lambda xp, input: xp.matrix_exponential(input), public=False, node_name="LinalgMatrixExp", shapes=MATRIX,
          vjp=lambda xp, g, y, a: _exponential_along(xp, matrix_transpose(xp, a), g), jvp=lambda xp, t, y, a: _exponential_along(xp, a, t),
          domain=SYMMETRIC, doc="The exponential of a matrix, Σ Aⁿ / n!.")


# The public functions


def _completed(xp, u):
    """Orthonormal columns with others that make them a basis; the others are constants, since they are not unique."""
    rest = u.shape[-2] - u.shape[-1]
    if not rest:
        return u
    fixed = u.detach()
    basis = xp.hermitian_eigenvectors(xp.eye_like(u, u.shape[-2]) - xp.matmul(fixed, adjoint(xp, fixed)))
    return xp.cat([u, basis[..., u.shape[-1]:].detach()], u.ndim - 1)


def _svd(xp, name, a, full):
    check_matrix(name, a)
    u, v = _above(xp, xp.singular_vectors(a), a)
    return (_completed(xp, u) if full else u), xp.singular_values(a), (_completed(xp, v) if full else v)


def _check_driver(name, driver):
    if driver is not None:
        raise RuntimeError(f"{name}: driver must be None, not {driver!r}; LAPACK has none to choose from")


@composite("linalg_svd", public=False, joined="LinalgSvdBackward0")
def linalg_svd(xp, A, full_matrices=True, *, driver=None):
    """The singular value decomposition U, S, Vᴴ of A = U diag(S) Vᴴ, the singular values descending.

    The columns of U and V beyond the smaller side of A are an arbitrary basis, and constants of the graph. A derivative of singular vectors raises
    RuntimeError where singular values are equal or zero.
    """
    _check_driver("linalg.svd", driver)
    u, s, v = _svd(xp, "linalg.svd", A, full_matrices)
    return return_types.linalg_svd((u, s, adjoint(xp, v)))


@composite("svd", joined="LinalgSvdBackward0", usage="symgrad.svd(a).S")
def svd(xp, input, some=True, compute_uv=True):
    """The singular value decomposition U, S, V of U diag(S) Vᴴ: the first columns of U and V, or all with `some=False`.

    Without `compute_uv` U and V are zero.
    """
    if compute_uv:
        return return_types.svd(_svd(xp, "linalg.svd", input, not some))
    u, v = (xp.zeros_like(input, (*input.shape[:-2], n, n)) for n in input.shape[-2:])
    return return_types.svd((u, linalg_svdvals(xp, input), v))


@composite("linalg_svdvals", public=False, kinks=(([[0.0, 0.0], [0.0, 0.0]],),))
def linalg_svdvals(xp, A, *, driver=None):
    """The singular values, descending. The derivative of a zero singular value, where it has a kink, is 0.

    Zero is what adds nothing to the largest in floats. The second derivative raises RuntimeError where two are equal, or one is zero.
    """
    _check_driver("linalg.svdvals", driver)
    check_matrix("linalg.svdvals", A)
    return xp.singular_values(A)


def _qr(xp, a):
    """Q with the smaller side of A as its number of columns, and R."""
    m, n = a.shape[-2:]
    factors = xp.qr_factors(a if m >= n else a[..., :m])
    q, r = _above(xp, factors, a)
    if m < n:  # from a Q of its own, since no output of a call depends on another one
        r = xp.cat([r, xp.matmul(adjoint(xp, _above(xp, factors, a)[0]), a[..., m:])], a.ndim - 1)
    return q, r


@composite("linalg_qr", public=False, joined="LinalgQrBackward0")
def linalg_qr(xp, A, mode="reduced"):
    """Q with orthonormal columns and the triangle R of A = Q R; all columns of Q with the mode "complete", no Q with "r".

    The columns of Q beyond those of A are an arbitrary basis, and constants of the graph. A derivative raises RuntimeError where the first columns
    of A, as many as R has rows, are linearly dependent.
    """
    check_option("linalg.qr", "mode", mode, ("reduced", "complete", "r"))
    check_matrix("linalg.qr", A)
    q, r = _qr(xp, A)
    if mode == "r":
        q = xp.zeros_like(A, (0,))
    if mode == "complete" and A.shape[-2] > A.shape[-1]:
        r = xp.cat([r, xp.zeros_like(A, (*A.shape[:-2], A.shape[-2] - A.shape[-1], A.shape[-1]))], A.ndim - 2)
        q = _completed(xp, q)
    return return_types.linalg_qr((q, r))


@composite("qr", joined="LinalgQrBackward0", usage="symgrad.qr(a).R")
def qr(xp, input, some=True):
    """Q with orthonormal columns and the triangle R of Q R; all columns of Q with `some=False`."""
    return return_types.qr(linalg_qr(xp, input, "reduced" if some else "complete"))


def tolerances(a, atol, rtol):
    """The absolute and the relative tolerance, with torch's defaults."""
    if rtol is None:
        given = atol is not None and (hasattr(atol, "shape") or atol > 0)
        rtol = 0.0 if given else finfo(a.dtype).eps * max(a.shape[-2:])
    return 0.0 if atol is None else atol, rtol


@composite("linalg_pinv", public=False)
def linalg_pinv(xp, A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """The pseudo-inverse, without the singular values below the tolerances; its derivative is that at constant rank.

    With `hermitian` only the lower triangle of A is read, and the derivative is that along Hermitian perturbations of A.
    """
    check_matrix("linalg.pinv", A)
    if hermitian:
        check_square("linalg.pinv", A)
        A = xp.hermitian_matrix(A)
    for name, x in ("atol", atol), ("rtol", rcond if rtol is None else rtol):
        if getattr(x, "requires_grad", False):
            raise RuntimeError(f"linalg.pinv: {name} requires grad, but there is no derivative with respect to it. Detach it")
    if not all(A.shape):
        return xp.clone(adjoint(xp, A))
    both = tolerances(A, atol, rcond if rtol is None else rtol)
    if not any(hasattr(x, "shape") and x.numel() > 1 for x in both):
        return xp.pseudo_inverse(A, *map(float, both))
    if A.ndim == 2:
        raise RuntimeError(f"linalg.pinv: a matrix has one tolerance, not {both}")
    each = zip(*[x.expand(A.shape[:-2]) if hasattr(x, "shape") else [x] * A.shape[0] for x in both])
    return xp.stack([linalg_pinv(xp, A[i], atol=atol, rtol=rtol) for i, (atol, rtol) in enumerate(each)], 0)


@composite("pinverse", usage="symgrad.pinverse(a)")
def pinverse(xp, input, rcond=1e-15):
    """The pseudo-inverse, without the singular values below `rcond` times the largest."""
    return linalg_pinv(xp, input, rcond)


@composite("linalg_lstsq", arity=2, public=False)
def linalg_lstsq(xp, A, B, rcond=None, *, driver=None):
    """The solution X of least length that makes the length of A X - B least, the squared residuals, the rank, and the singular values.

    As in torch the residuals are given for matrices of full rank with more rows than columns unless the `driver` is "gelsy", the default, the rank
    unless it is "gels", and the singular values with "gelsd" and "gelss". Singular values below `rcond` times the largest count as zero.
    """
    check_matrix("linalg.lstsq", A)
    check_option("linalg.lstsq", "driver", driver, (None, "gels", "gelsy", "gelsd", "gelss"))
    check_one_dtype("linalg.lstsq", A, B)
    vector = A.ndim - 1 == B.ndim and tuple(A.shape[:-1]) == tuple(B.shape)
    b = B.unsqueeze(-1) if vector else B
    (m, n), driver = A.shape[-2:], driver or "gelsy"
    check_shapes("linalg.lstsq", "(...,m,n),(...,m,k)", A, b)
    rcond = finfo(A.dtype).eps * max(m, n) if rcond is None else float(constant("linalg.lstsq", "rcond", rcond))
    inverse = xp.pseudo_inverse(A, 0.0, 0.0 if driver == "gels" else rcond)
    x = xp.matmul(inverse, b)
    x = x + xp.matmul(inverse, b - xp.matmul(A, x))  # of the length of the residual, with the digits of the inverse
    empty = xp.zeros_like(real_part(xp, A), (0,))
    s = xp.singular_values(A.detach())
    rank = _rank(xp, s, 0.0, rcond)
    full = driver == "gels" or driver != "gelsy" and bool((every(rank) == n).all())  # of a vmap, too, as of a batch
    residuals = xp.sum(xp.abs(xp.matmul(A, x) - b) ** 2, (-2,)) if m > n and full else empty
    return return_types.linalg_lstsq((x.squeeze(-1) if vector else x, residuals, empty.to(DTYPES["int64"]) if driver == "gels" else rank,
                                      s if driver in ("gelsd", "gelss") else empty))


@composite("linalg_matrix_rank", public=False)
def linalg_matrix_rank(xp, A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """The number of singular values above the tolerances: atol, and rtol times the largest."""
    check_matrix("linalg.matrix_rank", A)
    a = A.detach()
    s = xp.abs(xp.linalg_eigvalsh(a)) if hermitian else xp.singular_values(a)
    return _rank(xp, s, *tolerances(A, tol if atol is None else atol, rtol))


def _rank(xp, s, atol, rtol):
    """The number of singular values above the tolerances."""
    if not s.numel():
        return xp.sum(xp.gt(s, 0), -1)
    return xp.sum(xp.gt(s, xp.maximum(xp.amax(s, -1, True) * _of_matrices(rtol), _of_matrices(atol) * xp.ones_like(s))), -1)


def _of_matrices(tolerance):
    return tolerance.unsqueeze(-1) if hasattr(tolerance, "shape") else tolerance


@composite("matrix_exp", usage="symgrad.matrix_exp(symgrad.tensor([[0.0, 1.0], [-1.0, 0.0]]))")
def matrix_exp(xp, input):
    """The exponential of a square matrix, Σ Aⁿ / n!."""
    check_square("linalg.matrix_exp", input, narrow=True)
    return xp.matrix_exponential(input)
