"""`symgrad.linalg` beside `torch.linalg`: shapes, dtypes, names, and factors with their derivatives. Calls of one line are in `calls/linalg.txt`."""

import inspect
import math

import numpy as np
import pytest
import sympy
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import symgrad
from symgrad.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.filterwarnings("ignore:torch.*is deprecated", "ignore:.*will be removed", "ignore:.*without (specifying the )?.?dim")

UNARY = (
    "svdvals",
    "pinv",
    "matrix_exp",
    "matrix_norm",
    "vector_norm",
    "norm",
    "cond",
    "matrix_rank",
    "eigvals",
    "inv_ex",
    "lu",
    "lu_factor_ex",
    "vander",
)


@settings(max_examples=60)
@given(
    st.sampled_from(UNARY),
    st.lists(st.integers(0, 3), min_size=0, max_size=4),
    st.sampled_from(("float64", "float32", "complex64", "int64", "float16")),
    st.booleans(),
)
def test_shapes_and_dtypes(name, shape, dtype, turned):
    x = np.random.default_rng(1).normal(size=shape).astype(dtype)
    assume(x.size or dtype not in ("int64", "float16"))  # of which torch makes factors, as empty as they are
    if turned and x.ndim > 1:
        x = np.swapaxes(np.swapaxes(x, 0, -1).copy(), 0, -1)
    found = []
    for t in (symgrad, torch):
        try:
            given = np.ascontiguousarray(x) if name == "matrix_exp" else x  # a batch that is not is refused by torch: it takes a view of it
            out = getattr(t.linalg, name)(t.tensor(given if t is torch else x))
        except (RuntimeError, IndexError) as error:
            found.append(type(error).__mro__[-4:])
            continue
        found.append([np.asarray(y.numpy()) for y in (out if isinstance(out, tuple) else (out,))])
    ours, theirs = found
    assert isinstance(ours, list) == isinstance(theirs, list), found
    for a, b in zip(ours, theirs) if isinstance(ours, list) else ():
        assert a.shape == b.shape and a.dtype == b.dtype
        if (name, dtype) == ("matrix_exp", "float16"):
            continue  # those of torch are infinite
        if name == "eigvals":
            a, b = np.sort(np.abs(a)), np.sort(np.abs(b))
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in symgrad.linalg.__all__ if name != "LinAlgError"])
def test_arguments_have_the_names_of_torch(name):
    ours = list(inspect.signature(getattr(symgrad.linalg, name)).parameters)
    text = getattr(torch.linalg, name).__doc__.split("->")[0].strip().splitlines()[0]
    names = [part.split("=")[0].split()[-1].strip("*) ") for part in text.partition("(")[2].replace("bool ", "").split(",") if part.strip(" *)")]
    if name not in ("multi_dot", "matmul", "matrix_exp", "matrix_power"):
        assert set(names) - {"out", "-1"} <= {*ours}, (names, ours)


def test_functions_tell_by_a_number_where_they_have_failed():
    good, bad = np.eye(2), np.ones((2, 2))
    for name, rest in (("inv_ex", ()), ("cholesky_ex", ()), ("solve_ex", (np.ones((3, 2, 1)),)), ("lu_factor_ex", ())):
        ours, theirs = (
            getattr(t.linalg, name)(*map(t.tensor, (np.stack([good, bad * (-1 if name[0] == "c" else 1), good]), *rest))) for t in (symgrad, torch)
        )
        assert ours.info.tolist() == theirs.info.tolist() and str(ours.info.dtype) == str(theirs.info.dtype)
        assert np.allclose(ours[0][0].numpy(), theirs[0][0].numpy())
    assert symgrad.linalg.cond(symgrad.ones(2, 2), 1).item() == math.inf


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_derivatives_of_determinants_of_any_rank(rank):
    """Those of singular matrices are compared with the cofactors: torch divides by the rounding error of the determinant, or gives 0."""
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (4, rank)).astype(float) @ rng.integers(-3, 4, (rank, 4)).astype(float)
    ours, theirs = symgrad.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    gradients = [t.autograd.grad(t.linalg.det(x), x)[0].numpy() for t, x in ((symgrad, ours), (torch, theirs))]
    np.testing.assert_allclose(gradients[0], np.array(sympy.Matrix(a.astype(int)).adjugate().T, float), atol=1e-9)
    if rank == 4:
        np.testing.assert_allclose(*gradients, atol=1e-9)
        hessians = [t.autograd.functional.hessian(t.linalg.det, x.detach()).numpy() for t, x in ((symgrad, ours), (torch, theirs))]
        np.testing.assert_allclose(*hessians, atol=1e-9)
    first = symgrad.func.grad(symgrad.linalg.det)
    for function, arrays in ((first, [a]), (lambda A, T: symgrad.func.jvp(first, (A,), (T,))[1], [a, 1 / 3 + np.eye(4)])):
        compiled, names, values = symgrad.compile(function), {}, [symgrad.tensor(x) for x in arrays]
        compiled(*values)
        exec(symgrad.to_torch(compiled, name="written"), names)  # noqa: S102
        np.testing.assert_allclose(names["written"](*map(torch.from_numpy, arrays)), function(*values).numpy(), atol=1e-9)


RNG = np.random.default_rng(0)


def numbers(shape, complex):
    return RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if complex else 0)


def mirror(a, hermitian):
    back = np.swapaxes(a, -1, -2)
    return np.conj(back) if hermitian else back


def symmetric(n, complex, hermitian, kind):
    a = numbers((2, n, n), complex)
    a = a + mirror(a, hermitian)
    if kind == "blocks":  # of two rows, since the diagonal is zero
        a[..., range(n), range(n)] = 0
    return a + 4 * n * np.eye(n) if kind == "definite" else a


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("kind", ["any", "definite", "blocks"])
def test_symmetric_factors_are_those_of_torch(kind, complex, hermitian):
    for n in (0, 2, 3, 6):
        a, b = symmetric(n, complex, hermitian, kind), numbers((3, 2, n, 2), complex)
        theirs = torch.linalg.ldl_factor_ex(torch.tensor(a), hermitian=hermitian)
        ours = symgrad.linalg.ldl_factor_ex(symgrad.tensor(a), hermitian=hermitian)
        assert ours.pivots.tolist() == theirs.pivots.tolist() and ours.info.tolist() == theirs.info.tolist()
        assert (str(ours.pivots.dtype), str(ours.info.dtype)) == ("torch.int32", "torch.int32")
        np.testing.assert_allclose(ours.LD.numpy(), np.tril(theirs.LD.resolve_conj().numpy()), atol=1e-12)
        x = symgrad.linalg.ldl_solve(ours.LD, ours.pivots, symgrad.tensor(b), hermitian=hermitian)
        np.testing.assert_allclose(a @ x.numpy(), b, atol=1e-9)


@pytest.mark.parametrize("complex, hermitian", [(False, False), (True, False), (True, True)])
def test_equations_by_symmetric_factors_have_the_derivatives_of_solutions(complex, hermitian):
    a, b = symmetric(4, complex, hermitian, "any"), symgrad.tensor(numbers((2, 4, 2), complex), requires_grad=True)
    a[0, range(4), range(4)] = 0
    a = symgrad.tensor(a, requires_grad=True)

    def by_factors(a, b):
        return symgrad.linalg.ldl_solve(*symgrad.linalg.ldl_factor(a, hermitian=hermitian), b, hermitian=hermitian)

    def part(a):  # one triangle is read, and the derivative is that along such perturbations
        return (a + (a.mH if hermitian else a.mT)) / 2

    def directly(a, b):
        return symgrad.linalg.solve(part(a), b)

    found = []
    for f in (by_factors, directly):
        first = symgrad.autograd.grad((f(a, b).abs() ** 2).sum(), (a, b), create_graph=True)
        found.append([*first, *symgrad.autograd.grad(sum((g.abs() ** 2).sum() for g in first), (a, b))])
    for ours, true in zip(*found):
        np.testing.assert_allclose(ours.detach().numpy(), true.detach().numpy(), rtol=1e-8, atol=1e-8 * true.detach().abs().max().item())
    assert gradcheck(lambda a: symgrad.linalg.ldl_factor(part(a), hermitian=hermitian).LD, (a,))


def test_symmetric_factors_in_batches_and_where_there_are_none():
    a = symgrad.tensor(symmetric(3, False, False, "any"))
    factors = symgrad.func.vmap(lambda a: symgrad.linalg.ldl_solve(*symgrad.linalg.ldl_factor(a), symgrad.ones(3, 1)))(a)
    assert symgrad.allclose(factors, symgrad.linalg.solve(a, symgrad.ones(2, 3, 1)))
    zero = symgrad.stack([symgrad.eye(2), symgrad.zeros(2, 2)])
    assert symgrad.linalg.ldl_factor_ex(zero).info.tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="linalg.ldl_factor: element 1 .*matrix 1.*ldl_factor_ex"):
        symgrad.linalg.ldl_factor(zero)
    with pytest.raises(RuntimeError, match="linalg.ldl_factor_ex: .*matrix 1.*no derivative; detach"):
        symgrad.linalg.ldl_factor_ex(zero.requires_grad_())
    with pytest.raises(RuntimeError, match="pivots must be from 1 to 2"):
        symgrad.linalg.ldl_solve(symgrad.eye(2), symgrad.tensor([1, 5]), symgrad.ones(2, 1))


SHAPES = ((2, 3, 3), (4, 3), (2, 3, 5), (1, 1), (0, 3), (3, 0), (2, 0, 0))


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_reflections_are_those_of_torch(shape, complex):
    a = numbers(shape, complex)
    ours, theirs = symgrad.geqrf(symgrad.tensor(a)), torch.geqrf(torch.tensor(a))
    for x, y in zip(ours, theirs):
        assert tuple(x.shape) == tuple(y.shape)
        np.testing.assert_allclose(x.numpy(), y.resolve_conj().numpy(), atol=1e-12)


@pytest.mark.parametrize("complex", [False, True])
def test_reflections_have_derivatives_of_every_order(complex):
    a = symgrad.tensor(numbers((2, 3, 2), complex), requires_grad=True)
    assert gradcheck(lambda a: a.geqrf().a, (a,)) and gradgradcheck(lambda a: a.geqrf().tau, (a,))
    packed, tau = symgrad.geqrf(a)
    again = symgrad.linalg.householder_product(packed, tau) @ packed[..., :2, :].triu()
    weight = symgrad.tensor(numbers((2, 3, 2), complex))
    (found,) = symgrad.autograd.grad((again * weight.conj()).real.sum(), a)
    assert symgrad.allclose(again, a) and symgrad.allclose(found, weight)
    with pytest.raises(RuntimeError, match="geqrf: a column is zero below the diagonal"):
        symgrad.eye(3, requires_grad=True).geqrf()
    assert np.array_equal(symgrad.geqrf(symgrad.eye(3)).tau.numpy(), np.zeros(3))


def reduced_eigenvalues(x, y, largest):
    """Those of L⁻¹ X L⁻ᴴ for Y = L Lᴴ, by torch."""
    lower = torch.linalg.cholesky(y)
    values = torch.linalg.eigvalsh(torch.linalg.solve(lower, torch.linalg.solve(lower, x).mH))
    return (values.flip(-1) if largest else values)[..., :2]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("complex", [False, True])
def test_some_eigenvalues_are_those_of_torch(complex, largest):
    a, b = symmetric(9, complex, True, "any"), symmetric(9, complex, True, "definite")
    x, y = symgrad.tensor(a, requires_grad=True), symgrad.tensor(b, requires_grad=True)
    values, vectors = symgrad.lobpcg(x, 2, y, largest=largest)
    assert symgrad.allclose(x @ vectors, y @ vectors * values.unsqueeze(-2))
    assert symgrad.allclose(vectors.mH @ (y @ vectors), symgrad.eye(2, dtype=vectors.dtype))
    s, t = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    if not complex:  # torch computes them of real matrices alone
        theirs = torch.lobpcg(s.detach(), 2, t.detach(), largest=largest, niter=-1, tol=1e-10)[0]
        np.testing.assert_allclose(values.detach().numpy(), theirs.numpy(), rtol=1e-6)
    theirs = reduced_eigenvalues(s, t, largest)
    np.testing.assert_allclose(values.detach().numpy(), theirs.detach().numpy(), rtol=1e-9)
    ours, true = (u.autograd.grad((v**2).sum(), of) for u, v, of in ((symgrad, values, (x, y)), (torch, theirs, (s, t))))
    for g, h in zip(ours, true):
        np.testing.assert_allclose(g.numpy(), (h + h.mH).resolve_conj().numpy() / 2, atol=1e-9)


def test_some_eigenvalues_of_the_right_number():
    for k in (0, 4, -1):
        with pytest.raises(ValueError, match=f"lobpcg: k must be .*, not {k}"):
            symgrad.lobpcg(symgrad.eye(3), k)
    assert symgrad.lobpcg(symgrad.eye(3), X=symgrad.ones(3, 2))[1].shape == (3, 2)
    with pytest.raises(NotImplementedError, match="tracker"):
        symgrad.lobpcg(symgrad.eye(3), tracker=print)
    a = symgrad.eye(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="eigenvalues with the numbers 0 and 1 are equal"):
        symgrad.lobpcg(a)[1].sum().backward()
    symgrad.lobpcg(a, 3)[0].sum().backward()
    assert symgrad.allclose(a.grad, symgrad.eye(3))


@pytest.mark.parametrize("shape", [(2, 7, 5), (4, 6)])
@pytest.mark.parametrize("complex", [False, True])
def test_the_largest_singular_values(shape, complex):
    a, mean = numbers(shape, complex) * 0.2 ** np.arange(shape[-1]), numbers(shape[-1:], complex) / 10
    for middle in (None, mean):
        found = []
        for t in (symgrad, torch):
            t.manual_seed(0)
            x, m = t.tensor(a, requires_grad=True), None if middle is None else t.tensor(middle)
            u, s, v = t.svd_lowrank(x, 2, 20, m)
            found.append([(u * s.unsqueeze(-2)) @ v.mH, s, t.autograd.grad((s**2).sum(), x)[0]])
        for ours, theirs in zip(*found):
            np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().resolve_conj().numpy(), atol=1e-8)
    u, s, v = symgrad.svd_lowrank(symgrad.tensor(a), 9)  # all there are
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a, compute_uv=False), rtol=1e-10)


def test_parts_of_a_decomposition_are_random_by_seed_and_refuse_what_is_not_unique():
    a = symgrad.tensor(numbers((6, 5), False))
    u, s, v = symgrad.pca_lowrank(a, 5)
    np.testing.assert_allclose(s.numpy() ** 2 / 5, np.linalg.eigvalsh(np.cov(a.numpy().T))[::-1], rtol=1e-9)
    assert symgrad.allclose((u * s) @ v.T, a - a.mean(0))
    found = []
    for seed in (1, 1, 2):
        symgrad.manual_seed(seed)
        found.append(symgrad.svd_lowrank(a, 2, 0)[1].tolist())
    assert found[0] == found[1] != found[2]
    assert gradcheck(lambda a: (symgrad.manual_seed(3), symgrad.svd_lowrank(a, 2, 1)[1])[1], (a.requires_grad_(),))
    with pytest.raises(RuntimeError, match="rank of the matrix is less than q = 2.*smaller q"):
        symgrad.svd_lowrank(symgrad.ones(3, 3, requires_grad=True), 2)
    for call, text in ((lambda: symgrad.pca_lowrank(a, 6), "q must be from 0 to 5, not 6"),
                       (lambda: symgrad.svd_lowrank(a, -1), "q .* -1"), (lambda: symgrad.pca_lowrank(a, 1, niter=-1), "niter .* -1")):
        with pytest.raises(ValueError, match=text):
            call()


GOOD, SINGULAR, INDEFINITE = [[2.0, 1.0], [1.0, 3.0]], [[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [2.0, 1.0]]


def test_nothing_is_written_where_a_matrix_is_refused():
    for call in (lambda out: symgrad.linalg.inv(symgrad.tensor([GOOD, SINGULAR]), out=out),
                 lambda out: symgrad.linalg.cholesky(symgrad.tensor([GOOD, INDEFINITE]), out=out),
                 lambda out: symgrad.linalg.solve(symgrad.tensor([GOOD, SINGULAR]), symgrad.ones(2, 2, 2), out=out)):
        out = symgrad.full((2, 2, 2), 7.0)
        with pytest.raises(symgrad.linalg.LinAlgError):
            call(out)
        assert (out == 7).all()
    x = symgrad.ones(2, 2)
    with pytest.raises(RuntimeError):
        x.addbmm_(symgrad.ones(3, 2, 4), symgrad.ones(3, 5, 2))
    assert (x == 1).all() and x.addbmm_(symgrad.ones(3, 2, 4), symgrad.ones(3, 4, 2), beta=2, alpha=0.5).tolist() == [[8.0, 8.0], [8.0, 8.0]]


def test_factors_in_a_vmap():
    a = symgrad.tensor(numbers((3, 4, 4), False))
    for f in (lambda a: symgrad.linalg.lu(a).P, lambda a: symgrad.linalg.lu_factor(a).LU, lambda a: symgrad.lu(a)[1], lambda a: symgrad.geqrf(a).tau):
        assert symgrad.allclose(symgrad.func.vmap(f)(a), f(a))
    with pytest.raises(RuntimeError, match="in matrix 1"):
        symgrad.func.vmap(lambda a: symgrad.linalg.lu_factor(a).LU)(symgrad.tensor([GOOD, SINGULAR]))
