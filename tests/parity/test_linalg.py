"""`symgrad.linalg` beside `torch.linalg`: values, first and second gradients, real and complex."""

import numpy as np
import pytest

import symgrad

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(2, 3, 3))
COMPLEX = REAL + 1j * RNG.normal(size=(2, 3, 3))
B = RNG.normal(size=(3, 2))
CALLS = {
    "inv": (lambda t, a: t.linalg.inv(a), "ac"), "inverse": (lambda t, a: t.inverse(a), "ac"), "det": (lambda t, a: t.linalg.det(a), "ac"),
    "logabsdet": (lambda t, a: t.linalg.slogdet(a).logabsdet, "ac"), "sign": (lambda t, a: t.slogdet(a)[0].real, "c"),
    "solve": (lambda t, a, b: t.linalg.solve(a, b), "ac"), "logdet": (lambda t, a: t.logdet(a), "s"),
    "upper": (lambda t, a, b: t.linalg.solve_triangular(a, b, upper=True), "ac"),
    "unit": (lambda t, a, b: t.linalg.solve_triangular(a, b, upper=False, unitriangular=True), "ac"),
    "right": (lambda t, a, b: t.linalg.solve_triangular(a, b.mT, upper=False, left=False), "ac"),
    "cholesky": (lambda t, a: t.linalg.cholesky(a), "sh"), "cholesky_upper": (lambda t, a: t.cholesky(a, upper=True), "sh"),
    "cholesky_solve": (lambda t, a, b: t.cholesky_solve(b, a.tril()), "ac"), "cholesky_inverse": (lambda t, a: t.cholesky_inverse(a.tril()), "a"),
    "eigvalsh": (lambda t, a: t.linalg.eigvalsh(a), "sh"), "eigh": (lambda t, a: t.linalg.eigh(a)[1].abs()[..., :1], "s"),
}
MATRICES = {"a": REAL, "c": COMPLEX, "s": REAL @ REAL.mT + np.eye(3) if hasattr(REAL, "mT") else REAL @ np.swapaxes(REAL, -1, -2) + np.eye(3),
            "h": COMPLEX @ np.conj(np.swapaxes(COMPLEX, -1, -2)) + np.eye(3)}


def derivatives(t, f, arrays):
    xs = [t.tensor(a, requires_grad=True) for a in arrays]
    y = f(t, *xs)
    first = t.autograd.grad((y.abs() ** 2 * t.arange(1, y.numel() + 1).reshape(y.shape)).sum(), xs, create_graph=True)
    second = t.autograd.grad(sum((x.abs() ** 2).sum() for x in first), xs)
    return [np.asarray(v.detach().numpy()) for v in (y, *first, *second)]


@pytest.mark.parametrize("name, kind", [(name, kind) for name, (_, kinds) in CALLS.items() for kind in kinds])
def test_values_and_gradients(name, kind):
    f = CALLS[name][0]
    if name == "eigh":  # a matrix that is symmetric by construction: elsewhere the gradients differ by their antisymmetric parts
        plain = f
        f = lambda t, a: plain(t, (a + a.mT) / 2)  # noqa: E731
    arrays = [MATRICES[kind], *[B.astype(MATRICES[kind].dtype)] * (f.__code__.co_argcount - 2)]
    for ours, theirs in zip(derivatives(symgrad, f, arrays), derivatives(torch, f, arrays)):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())


@pytest.mark.parametrize("call", [lambda t: t.linalg.inv(t.ones(2, 2)), lambda t: t.linalg.solve(t.ones(2, 2), t.ones(2)),
                                  lambda t: t.linalg.cholesky(-t.eye(2)), lambda t: t.linalg.det(t.ones(2, 3)), lambda t: t.linalg.inv(t.ones(3)),
                                  lambda t: t.linalg.solve(t.eye(2), t.ones(3, 1)), lambda t: t.linalg.eigh(t.ones(2, 3))])
def test_errors(call):
    with pytest.raises(RuntimeError) as theirs:
        call(torch)
    with pytest.raises(RuntimeError) as ours:
        call(symgrad)
    assert isinstance(ours.value, symgrad.linalg.LinAlgError) == isinstance(theirs.value, torch.linalg.LinAlgError)


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_derivatives_of_determinants_of_any_rank(rank):
    """Second derivatives of singular matrices are not compared: torch divides by the rounding error of the determinant."""
    a = RNG.integers(-3, 4, (4, rank)).astype(float) @ RNG.integers(-3, 4, (rank, 4)).astype(float)
    ours, theirs = symgrad.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    gradients = [t.autograd.grad(t.linalg.det(x), x)[0].numpy() for t, x in ((symgrad, ours), (torch, theirs))]
    np.testing.assert_allclose(*gradients, atol=1e-9)
    if rank == 4:
        hessians = [t.autograd.functional.hessian(t.linalg.det, x.detach()).numpy() for t, x in ((symgrad, ours), (torch, theirs))]
        np.testing.assert_allclose(*hessians, atol=1e-9)
    first = symgrad.func.grad(symgrad.linalg.det)
    for function, given in ((first, [a]), (lambda A, T: symgrad.func.jvp(first, (A,), (T,))[1], [a, REAL[0, :1, :1] + np.eye(4)])):
        compiled, names, values = symgrad.compile(function), {}, [symgrad.tensor(x) for x in given]
        compiled(*values)
        exec(symgrad.to_torch(compiled, name="written"), names)  # noqa: S102
        np.testing.assert_allclose(names["written"](*map(torch.from_numpy, given)), function(*values).numpy(), atol=1e-9)
