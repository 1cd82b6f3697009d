"""`symgrad.sparse` against dense matrices; random programs keep to their patterns, whose colourings recover every entry."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given
from hypothesis import strategies as st

import symgrad
from symgrad.carriers import blocks, dependence, sets
from symgrad.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from symgrad.func.patterns import SparsityPattern, _colour_in_rounds, _colour_sequentially, colour_columns, colour_symmetric
from symgrad.sparse import Matrix, matmul, spsolve
from tests.support.sparse import check_hessian, check_jacobian, dense_hessian, points

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


@pytest.mark.sampled(3)
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


@pytest.mark.sampled(1)
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


N = 12
ELEMENTS = [
    lambda a: a.sin(), lambda a: a * a, lambda a: a.abs(), lambda a: a.relu(), lambda a: symgrad.clamp(a, 0.2, 0.9), lambda a: a.floor() * a,
    lambda a: a.sign(), lambda a: 2.0 - a, lambda a: (a > 0.5) * a, lambda a: a.detach() * a,
    lambda a: symgrad.where(a > 0.6, a * a, 1 / (2 + a * a))]
SHAPED = [
    lambda a: a.flip(0), lambda a: a.roll(3, 0), lambda a: a[[2, 0, 2, *range(3, N)]], lambda a: a.cumsum(0), lambda a: a.sort().values,
    lambda a: a.gather(0, symgrad.tensor([5] * 4 + [1] * (N - 4))), lambda a: symgrad.cat([a[4:], a[:4] ** 2]),
    lambda a: a.reshape(3, 4).t().reshape(N), lambda a: symgrad.stack([a[0] * a[k] for k in range(N)]), lambda a: a[:, None].expand(N, 2).sum(1),
    lambda a: symgrad.tril(a.reshape(3, 4)).reshape(N), lambda a: symgrad.cat([a[1:], symgrad.zeros(1)]),
    lambda a: a.index_put((symgrad.tensor([1, 3]),), a[:2] * a[2:4])]
GATHERED = [
    lambda a: a.sum().expand(N), lambda a: a.reshape(4, 3).mean(1).repeat(3), lambda a: symgrad.softmax(a.reshape(3, 4), 1).reshape(N),
    lambda a: symgrad.logsumexp(a.reshape(4, 3), 1).repeat_interleave(3), lambda a: a.reshape(3, 4).amax(0).repeat(3),
    lambda a: symgrad.einsum("ij,kj->ik", a.reshape(4, 3), a.reshape(4, 3)).reshape(16)[:N], lambda a: a.reshape(3, 4).norm(dim=1).repeat(4),
    lambda a: (a.reshape(3, 4) @ a.reshape(4, 3)).reshape(9).repeat(2)[:N], lambda a: symgrad.tensor(np.eye(N, k=2) + np.eye(N)) @ a,
    lambda a: symgrad.tensor(points(N, N)) @ a, lambda a: a.var() * a, lambda a: a.reshape(3, 4).cumprod(1).reshape(N)]
JOINED = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (2 + b * b), lambda a, b: symgrad.maximum(a, b),
    lambda a, b: symgrad.where(a > b, a, b * b), lambda a, b: symgrad.atan2(a, 2 + b.abs()), lambda a, b: symgrad.dot(a, b) + b,
    lambda a, b: symgrad.outer(a[:3], b[:4]).reshape(N), lambda a, b: (2 + a.abs()) ** b.sin()]
STEPS = st.lists(st.one_of(st.tuples(st.sampled_from(ELEMENTS + SHAPED * 2 + GATHERED), st.integers(0, 3)),
                           st.tuples(st.sampled_from(JOINED), st.integers(0, 3), st.integers(0, 3))), min_size=1, max_size=7)


def program(steps, inputs):
    """The last of a few vectors, each computed from some of those before."""
    found = list(inputs)
    for rule, *places in steps:
        found.append(rule(*(found[-1 - min(k, len(found) - 1)] for k in places)))
    return found[-1]


@pytest.mark.sweep
@given(STEPS, st.sampled_from([(N,), (3, 4)]), st.booleans(), st.integers(0, 5))
def test_patterns_of_random_programs_contain_every_nonzero(steps, shape, two, seed):
    xs = [points(*shape, seed=seed), *([points(N, seed=seed + 10) - 0.7] if two else [])]

    def f(*xs):
        return program(steps, [x.reshape(N) for x in xs])

    with pytest.MonkeyPatch.context() as m:
        for local in (False, True):
            check_jacobian(m, lambda *xs: f(*xs) + 0.0 * xs[0].reshape(N)[0], *xs, local=local)
            check_hessian(m, lambda *xs: (f(*xs) * symgrad.tensor(points(N))).sum() + 0.0 * xs[0].sum(), *xs, local=local)


def test_the_pattern_of_one_step_is_minimal(monkeypatch):
    for rule in [lambda a: symgrad.stack([a[k] * a[k + 1] for k in range(N - 1)]), lambda a: symgrad.cat([a[4:], a[:4] ** 2]),
                 lambda a: a[1:] * a[:-1], lambda a: symgrad.dot(a[1:], a[:-1]), lambda a: symgrad.einsum("i,i->", a, a.flip(0)),
                 lambda a: a.index_put((symgrad.tensor([1]),), a[:1] ** 2)]:
        _, there = check_hessian(monkeypatch, lambda x, rule=rule: rule(x).sum(), points(N))
        assert (there == (dense_hessian(lambda x, rule=rule: rule(x).sum(), [points(N)]) != 0)).all()


# Growing sets


def relaxed(x, steps):
    """Steps on a ring: each element interacts with its neighbours and with a distant element."""
    for _ in range(steps):
        x = x + 0.1 * (x.roll(1, 0) - 2 * x + x.roll(-1, 0)) - 0.05 * x**3
    return (x * x.roll(11, 0)).sum()


def bounded(x, steps):
    """The same without periodic boundaries."""
    for _ in range(steps):
        x = symgrad.cat([x[:1], x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]) - 0.05 * x[1:-1] ** 3, x[-1:]])
    return (x**2).sum()


@pytest.mark.sweep
@pytest.mark.parametrize("room", [{}, {"BITS": 0}, {"LIMIT": 200}, {"LIMIT": 2000, "BITS": 0}, {"MANY": 2}], ids=str)
@pytest.mark.parametrize("f", [relaxed, bounded])
def test_loops_with_small_limits_of_the_carrier(monkeypatch, f, room):
    for name, value in room.items():
        for module in (blocks, sets, dependence):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    for steps in (1, 2, 5):
        _, there = check_hessian(monkeypatch, lambda x, steps=steps: f(x, steps), points(40))
        if "LIMIT" not in room:
            assert (there == (dense_hessian(lambda x, steps=steps: f(x, steps), [points(40)]) != 0)).all()


@pytest.mark.sweep
def test_a_loop_over_elements(monkeypatch):
    def f(x):
        return sum(100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2 for i in range(29))

    plan, _ = check_hessian(monkeypatch, f, points(30))
    assert (plan.report.pattern, plan.colours, plan.report.nonzeros) == ("tridiagonal", 3, 88)


PATTERNS = st.integers(1, 14).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40)))


def pattern_of(matrix):
    return SparsityPattern(*np.asarray(matrix).nonzero(), np.shape(matrix))


@given(PATTERNS)
def test_columns_of_one_colour_share_no_row(drawn):
    n, entries = drawn
    matrix = np.zeros((n, n), bool)
    for i, j in entries:
        matrix[i, j] = True
    for colours in (colour_columns(pattern_of(matrix)).colours, _colour_in_rounds(pattern_of(matrix)), _colour_sequentially(pattern_of(matrix))):
        for row in matrix:
            here = colours[row]
            assert len(set(here.tolist())) == len(here)


@given(PATTERNS, st.booleans())
def test_every_entry_of_a_symmetric_matrix_is_read_where_it_stands_alone(drawn, diagonal):
    n, entries = drawn
    rng = np.random.default_rng(0)
    matrix = np.zeros((n, n))
    for i, j in entries:
        matrix[i, j] = matrix[j, i] = rng.normal()
    if diagonal:
        matrix += np.diag(rng.uniform(1, 2, n))
    pattern = pattern_of(matrix)
    colouring = colour_symmetric(pattern)
    assert colouring.count <= n
    seeds = colouring.seeds()
    assert (seeds.sum(0) == 1).all() or colouring.count == 0
    found = (seeds @ matrix).reshape(-1)[colouring.places(pattern)]
    assert (found == matrix[pattern.rows, pattern.columns]).all()


@pytest.mark.sweep
def test_large_patterns_are_coloured_in_rounds():
    rng = np.random.default_rng(1)
    n, count = 30_000, 60_000
    i, j = rng.integers(0, n, (2, count))
    key = np.unique(np.concatenate([i * n + j, j * n + i, np.arange(n) * (n + 1)]))
    pattern = SparsityPattern(key // n, key % n, (n, n))
    assert pattern.nonzeros > 1 << 16
    colouring = colour_symmetric(pattern)
    used = pattern.rows * colouring.count + colouring.colours[pattern.columns]
    assert colouring.hubs is not None or len(np.unique(used)) == pattern.nonzeros
    assert pattern.most - 1 <= colouring.count <= 3 * pattern.most
