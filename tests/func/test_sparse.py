"""`symgrad.sparse`: products with sparse matrices and linear operators, and sparse solves, against dense ones."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import symgrad
from symgrad.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from symgrad.sparse import Matrix, matmul, spsolve

T = symgrad.tensor
FORMATS = pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "csr_matrix"])


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def places(kind="csr", rows=4, columns=5):
    dense = numbers(rows, columns, seed=1) * (numbers(rows, columns, seed=2) > 0) + 3 * np.eye(rows, columns)
    return scipy.sparse.csr_matrix(dense) if kind == "csr_matrix" else scipy.sparse.csr_array(dense).asformat(kind)


def same(a, b):
    a, b = (x.detach().numpy() if isinstance(x, symgrad.Tensor) else np.asarray(x) for x in (a, b))
    assert a.shape == b.shape and np.allclose(a, b, rtol=1e-12, atol=1e-12)


@FORMATS
@pytest.mark.parametrize("shape", [(5,), (5, 2)])
def test_products_with_a_sparse_matrix(kind, shape):
    A = places(kind)
    x, y = T(numbers(*shape)), T(numbers(*shape[1:], 4))
    for f, g, at in ((lambda x: A @ x, lambda x: T(A.toarray()) @ x, x), (lambda y: y @ A, lambda y: y @ T(A.toarray()), y)):
        assert isinstance(f(at), symgrad.Tensor)
        same(f(at), g(at))
        for transform in (jacrev, jacfwd, lambda f: hessian(lambda x: (f(x) ** 3).sum()), lambda f: jacrev(hessian(lambda x: (f(x) ** 3).sum()))):
            same(transform(f)(at), transform(g)(at))
    leaf = x.clone().requires_grad_()
    (A @ leaf).sin().sum().backward()
    same(leaf.grad, A.T @ np.cos(A @ x.numpy()))


def test_batches():
    A, xs = places(), T(numbers(7, 5))
    for transform in (lambda f: vmap(f), lambda f: vmap(grad(lambda x: (f(x) ** 2).sum())), lambda f: vmap(hessian(lambda x: (f(x) ** 3).sum()))):
        same(transform(lambda x: A @ x)(xs), transform(lambda x: T(A.toarray()) @ x)(xs))
    matrices = T(numbers(3, 5, 2))
    same(vmap(lambda x: A @ x)(matrices), A.toarray() @ matrices.numpy())
    values = T(numbers(3, A.nnz))
    same(vmap(lambda v, x: Matrix(A, v) @ x)(values, xs[:3]), [scipy.sparse.csr_array((v, A.indices, A.indptr), A.shape) @ x
                                                               for v, x in zip(values.numpy(), xs.numpy())])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_matrix_is_differentiable_by_its_values(kind, transposed):
    A = places(kind)
    rows, columns = A.tocoo().coords
    x = T(numbers(4 if transposed else 5))

    def product(v, x):
        return Matrix(A, v).T @ x if transposed else Matrix(A, v) @ x

    def dense(v, x):
        matrix = symgrad.zeros(4, 5).index_put((T(rows), T(columns)), v)
        return (matrix.T if transposed else matrix) @ x

    v = T(A.data)
    same(product(v, x), dense(v, x))
    for n in (0, 1):
        for transform in (jacrev, jacfwd):
            same(transform(product, n)(v, x), transform(dense, n)(v, x))
    for a in (0, 1):
        for b in (0, 1):
            same(jacfwd(grad(lambda v, x: (product(v, x) ** 3).sum(), a), b)(v, x), jacfwd(grad(lambda v, x: (dense(v, x) ** 3).sum(), a), b)(v, x))


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_solutions(kind, shape):
    A = places(kind, 4, 4)
    rows, columns = A.tocoo().coords
    v, b = T(A.data), T(numbers(*shape))

    def solve(v, b):
        return spsolve(Matrix(A, v), b)

    def dense(v, b):
        return symgrad.linalg.solve(symgrad.zeros(4, 4).index_put((T(rows), T(columns)), v), b)

    same(spsolve(A, b), scipy.sparse.linalg.spsolve(A, b.numpy()))
    same(spsolve(Matrix(A).T, b), np.linalg.solve(A.toarray().T, b.numpy()))
    for n in (0, 1):
        for transform in (jacrev, jacfwd, lambda f, n: hessian(lambda *args: (f(*args) ** 2).sum(), n)):
            same(transform(solve, n)(v, b), transform(dense, n)(v, b))
    same(jacfwd(jacfwd(jacrev(lambda v: solve(v, b).sum())))(v), jacfwd(jacfwd(jacrev(lambda v: dense(v, b).sum())))(v))
    bs, vs = T(numbers(3, *shape)), T(A.data + 0.1 * numbers(3, A.nnz))
    same(vmap(solve, (None, 0))(v, bs), vmap(dense, (None, 0))(v, bs))
    same(vmap(grad(lambda v, b: (solve(v, b) ** 2).sum()))(vs, bs), vmap(grad(lambda v, b: (dense(v, b) ** 2).sum()))(vs, bs))


def test_one_factorization_serves_all_derivatives_at_the_same_values(monkeypatch):
    counts, splu = [], scipy.sparse.linalg.splu
    monkeypatch.setattr(scipy.sparse.linalg, "splu", lambda a: counts.append(1) or splu(a))
    A, b = places("csc", 4, 4), T(numbers(4))
    matrix = Matrix(A, T(A.data, requires_grad=True))
    y = (spsolve(matrix, b) ** 2).sum()
    (g,) = symgrad.autograd.grad(y, matrix.values, create_graph=True)
    symgrad.autograd.grad(g.sum(), matrix.values)
    assert len(counts) == 1
    matrix.values.data[0] += 1.0
    same(spsolve(matrix, b), scipy.sparse.linalg.spsolve(matrix.tocsr().tocsc(), b.numpy()))
    assert len(counts) == 2


def test_complex_matrices_and_vectors():
    A = (places("csc", 4, 4) + 1j * scipy.sparse.csc_array(numbers(4, 4, seed=3) * (places("csc", 4, 4).toarray() != 0))).tocsc()
    for b in (T(numbers(4) + 1j * numbers(4, seed=5)), T(numbers(4))):
        for f, g in ((lambda x: A @ x, lambda x: T(A.toarray()) @ (x if x.is_complex() else x + 0j)),
                     (lambda x: spsolve(A, x), lambda x: symgrad.linalg.solve(T(A.toarray()), x if x.is_complex() else x + 0j))):
            found, known = b.clone().requires_grad_(), b.clone().requires_grad_()
            for h, x in ((f, found), (g, known)):
                y = h(x)
                (y.real ** 3 + y.imag * y.real).sum().backward()
            same(found.grad, known.grad)


def test_linear_operators():
    A = places()
    operator = scipy.sparse.linalg.aslinearoperator(A)
    x, y = T(numbers(5)), T(numbers(4))
    same(jacrev(lambda x: matmul(operator, x))(x), A.toarray())
    same(jacfwd(lambda y: y @ operator)(y), A.toarray().T)
    same(hessian(lambda x: (matmul(operator, x) ** 2).sum())(x), 2 * (A.T @ A).toarray())
    same(vmap(lambda x: matmul(operator, x))(T(numbers(3, 5))), numbers(3, 5) @ A.T.toarray())
    for call in (lambda x: operator @ x, vmap(lambda x: operator @ x)):
        with pytest.raises(TypeError, match=r"write symgrad.sparse.matmul\(A, x\)"):
            call(T(numbers(2, 5), requires_grad=True))
    one_way = scipy.sparse.linalg.LinearOperator((4, 5), matvec=lambda x: A @ x)
    assert jvp(lambda x: matmul(one_way, x), (x,), (x,))[1].shape == (4,)
    with pytest.raises(NotImplementedError):
        grad(lambda x: matmul(one_way, x).sum())(x)


def test_formulas_and_sparsity():
    A = scipy.sparse.csr_array([[2.0, 0.0], [1.0, 4.0]])
    x = T([0.5, 2.0], requires_grad=True, symbol="x")
    assert str((A @ x).expr) == "[2*x_0, x_0 + 4*x_1]"
    D = scipy.sparse.diags_array([np.ones(99), -np.ones(99)], offsets=[0, 1], shape=(99, 100)).tocsr()
    H = hessian(lambda u: ((D @ u) ** 4).sum(), structure="auto")(T(numbers(100)))
    assert H.nnz == 298
    same(H.toarray(), hessian(lambda u: ((D @ u) ** 4).sum())(T(numbers(100))))


@pytest.mark.sweep
def test_products_and_solutions_are_proved():
    A = scipy.sparse.csr_array([[2.0, 0.0], [1.0, 4.0]])
    assert symgrad.check(lambda x: ((A @ x) ** 2).sum(), T([0.5, 2.0])).verdict == "proved"
    assert symgrad.check(lambda s: spsolve(Matrix(A, s * T(A.data)), T([1.0, 1.0])).sum(), 0.7, points=2).verdict == "proved"
