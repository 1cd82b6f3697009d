"""The factorizations, norms, powers and products of `symgrad.linalg` beside `torch.linalg`: values, first and second gradients, dtypes and errors."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import symgrad

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:torch.*is deprecated", "ignore:.*will be removed", "ignore:.*without (specifying the )?.?dim")

RNG = np.random.default_rng(0)
REAL = {"a": (2, 3, 3), "t": (2, 4, 3), "w": (2, 3, 4), "v": (4,), "m": (3, 3)}
ARRAYS = {name: RNG.normal(size=shape) for name, shape in REAL.items()}
ARRAYS |= {name.upper(): x + 1j * RNG.normal(size=x.shape) for name, x in ARRAYS.items()}
RANK_ONE = RNG.normal(size=(3, 1)), RNG.normal(size=(1, 3))


def by_phase(v):
    """What does not depend on the signs or phases of columns."""
    return v.abs()


def largest_part(t, a):
    u, s, vh = t.linalg.svd(a, full_matrices=False)
    return u[..., :1] @ vh[..., :1, :] * s[..., :1, None]


def reflections(t, a):
    """Columns and factors of reflections."""
    return a, 2 / (1 + (a.abs().tril(-1) ** 2).sum(-2))


def derivatives(t, f, x):
    """The value, and the first and second gradients of sums with uneven weights."""
    x = t.tensor(x, requires_grad=True)
    y = f(t, x)
    (first,) = t.autograd.grad((y.abs() ** 2 * t.cos(t.arange(y.numel(), dtype=t.float64)).reshape(y.shape)).sum(), x, create_graph=True)
    (second,) = t.autograd.grad((first.abs() ** 2 * t.sin(t.arange(x.numel(), dtype=t.float64)).reshape(x.shape)).sum(), x)
    return [np.asarray(v.detach().resolve_conj().numpy()) for v in (y, first, second)]


# By name: the function, and the arrays to which it is applied one at a time (capitals are complex)
CALLS = {
    "svdvals": (lambda t, a: t.linalg.svdvals(a), "atwATW"),
    "svd_u": (lambda t, a: by_phase(t.linalg.svd(a, full_matrices=False)[0]), "atwATW"),
    "svd_v": (lambda t, a: by_phase(t.linalg.svd(a, full_matrices=False)[2]), "atwATW"),
    "svd_full": (lambda t, a: t.linalg.svd(a).S, "atwATW"),
    "svd_full_u": (lambda t, a: by_phase(t.linalg.svd(a).U[..., :3]), "tT"),
    "svd_part": (largest_part, "atwATW"),
    "svd": (lambda t, a: by_phase(t.svd(a).V), "atT"),
    "svd_no_uv": (lambda t, a: t.svd(a, compute_uv=False)[1], "t"),
    "qr_q": (lambda t, a: t.linalg.qr(a).Q, "atwATW"),
    "qr_r": (lambda t, a: t.linalg.qr(a)[1], "atwATW"),
    "qr": (lambda t, a: t.qr(a).R, "t"),
    "pinv": (lambda t, a: t.linalg.pinv(a), "atwATW"),
    "pinverse": (lambda t, a: t.pinverse(a), "t"),
    "pinv_of_rank_one": (lambda t, a: t.linalg.pinv(a[..., :1] @ a[..., :1, :], rtol=1e-9), "atA"),
    "pinv_hermitian": (lambda t, a: t.linalg.pinv(a + a.mH, hermitian=True), "aA"),
    "lstsq": (lambda t, a: t.linalg.lstsq(a, a[..., :2] ** 2).solution, "atwATW"),
    "residuals": (lambda t, a: t.linalg.lstsq(a, a[..., :2] ** 2, driver="gels")[1], "t"),
    "matrix_exp": (lambda t, a: t.linalg.matrix_exp(a), "aAm"),
    "matrix_power_3": (lambda t, a: t.linalg.matrix_power(a, 3), "aA"),
    "matrix_power_-2": (lambda t, a: t.matrix_power(a, -2), "aA"),
    "matrix_power_7": (lambda t, a: a.matrix_power(7), "m"),
    "multi_dot": (lambda t, a: t.linalg.multi_dot([a[0], a[0, :, :1], a[0, :1], a[0, 0]]), "aA"),
    "chain_matmul": (lambda t, a: t.chain_matmul(a, a[:, :2], a[:2]), "mM"),
    **{f"matrix_norm_{o}": (lambda t, a, o=o: t.linalg.matrix_norm(a, o), "atwTW") for o in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)},
    "matrix_norm_dims": (lambda t, a: t.linalg.matrix_norm(a, 1, (2, 0), True), "tT"),
    "nuc_dims": (lambda t, a: t.linalg.norm(a, "nuc", (1, 0), True), "t"),
    **{f"vector_norm_{o}": (lambda t, a, o=o: t.linalg.vector_norm(a, o, (0, 2)), "tT") for o in (1, 2, 3, -1, 0.5, math.inf, -math.inf)},
    "norm": (lambda t, a: t.linalg.norm(a), "tTv"),
    "norm_rows": (lambda t, a: t.linalg.norm(a, 3, 1, True), "t"),
    "norm_2": (lambda t, a: t.linalg.norm(a, 2), "mv"),
    **{f"cond_{p}": (lambda t, a, p=p: t.linalg.cond(a, p), "aA") for p in (None, 2, -2, "fro", "nuc", 1, -1, math.inf, -math.inf)},
    "cond_tall": (lambda t, a: t.linalg.cond(a), "tW"),
    "frobenius_norm": (lambda t, a: t.frobenius_norm(a, (0, 1)), "mM"),
    "nuclear_norm": (lambda t, a: t.nuclear_norm(a), "mM"),
    "tensorinv": (lambda t, a: t.linalg.tensorinv(a.reshape(3, 3, 1), 1), "mM"),
    "tensorsolve": (lambda t, a: t.linalg.tensorsolve(a.reshape(3, 3, 1), a[0]), "mM"),
    "vander": (lambda t, a: t.linalg.vander(a, N=3), "vmV"),
    "tensorsolve_dims": (lambda t, a: t.linalg.tensorsolve(a.reshape(3, 1, 3), a[0], (2,)), "m"),
    "vander_numpy": (lambda t, a: t.vander(a), "vV"),
    "vander_increasing": (lambda t, a: t.vander(a, 3, True), "v"),
    "vecdot": (lambda t, a: t.linalg.vecdot(a, a[:1], dim=-2), "aA"),
    "vdot": (lambda t, a: t.vdot(a, a**2), "vV"),
    "addbmm": (lambda t, a: t.addbmm(a[0], a, a, beta=2, alpha=3), "aA"),
    "cross": (lambda t, a: t.linalg.cross(a, a[:, :1] ** 2), "aA"),
    "diagonal": (lambda t, a: t.linalg.diagonal(a, offset=1), "atT"),
    "householder": (lambda t, a: t.linalg.householder_product(*reflections(t, a)), "at"),
    "orgqr": (lambda t, a: t.orgqr(a, a[..., 0, :2]), "tT"),
    "ormqr": (lambda t, a: t.ormqr(a, a[0], a**2), "m"),
    "ormqr_right": (lambda t, a: t.ormqr(a, a[0], a**2, left=False, transpose=True), "m"),
    "lu_l": (lambda t, a: t.linalg.lu(a).L, "atwATW"),
    "lu_u": (lambda t, a: t.linalg.lu(a)[2], "atwATW"),
    "lu_factor": (lambda t, a: t.linalg.lu_factor(a).LU, "atwATW"),
    "lu_factor_ex": (lambda t, a: t.linalg.lu_factor_ex(a)[0], "a"),
    "lu": (lambda t, a: t.lu(a)[0], "tT"),
    "lu_unpack": (lambda t, a: t.lu_unpack(*t.linalg.lu_factor(a))[1], "tw"),
    **{
        f"lu_solve_{left}_{adjoint}": (
            lambda t, a, left=left, adjoint=adjoint: t.linalg.lu_solve(*t.linalg.lu_factor(a), a**2, left=left, adjoint=adjoint),
            "aA",
        )
        for left in (True, False)
        for adjoint in (True, False)
    },
    "torch_lu_solve": (lambda t, a: t.lu_solve(a[..., :2] ** 2, *t.linalg.lu_factor(a)), "aA"),
    "eigvals": (lambda t, a: t.linalg.eigvals(a).abs().sort().values, "aAM"),
    "eig": (lambda t, a: t.linalg.eig(a)[1].abs().sum(-1), "aAM"),
    "inv_ex": (lambda t, a: t.linalg.inv_ex(a).inverse, "aA"),
    "cholesky_ex": (lambda t, a: t.linalg.cholesky_ex(a @ a.mH).L, "aA"),
    "solve_ex": (lambda t, a: t.linalg.solve_ex(a, a[..., :2] ** 2).result, "aA"),
    "triangular_solve": (lambda t, a: t.triangular_solve(a[..., :2] ** 2, a, transpose=True)[0], "aA"),
}


# What has no gradient in torch, in other words
THEIRS = {
    **{
        f"cond_{p}": lambda t, a, p=p: t.linalg.matrix_norm(a, p) * t.linalg.matrix_norm(t.linalg.inv(a), p)
        for p in ("fro", "nuc", 1, -1, math.inf, -math.inf)
    },
    "vander_numpy": lambda t, a: a[:, None] ** t.arange(len(a)).flip(0),
    "vander_increasing": lambda t, a: a[:, None] ** t.arange(3),
    "residuals": lambda t, a: ((a @ t.linalg.lstsq(a, a[..., :2] ** 2).solution - a[..., :2] ** 2) ** 2).sum(-2),
}


@pytest.mark.parametrize("name, kind", [(name, kind) for name, (_, kinds) in CALLS.items() for kind in kinds])
def test_values_and_gradients(name, kind):
    f = CALLS[name][0]
    assert np.allclose(f(symgrad, symgrad.tensor(ARRAYS[kind])).numpy(), f(torch, torch.tensor(ARRAYS[kind])).resolve_conj().numpy())
    for ours, theirs in zip(derivatives(symgrad, f, ARRAYS[kind]), derivatives(torch, THEIRS.get(name, f), ARRAYS[kind])):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max(initial=0))


# Without derivatives in torch
PLAIN = {
    "matrix_rank": lambda t, a: t.linalg.matrix_rank(a),
    "rank_by_size": lambda t, a: t.linalg.matrix_rank(a, 1.0),
    "rank_atol": lambda t, a: t.linalg.matrix_rank(a, atol=2.0),
    "rank_rtol": lambda t, a: t.linalg.matrix_rank(a, rtol=t.tensor(0.3, dtype=a.real.dtype)),
    "qr_mode_r": lambda t, a: t.linalg.qr(a, "r")[1],
    "qr_no_q": lambda t, a: t.linalg.qr(a, "r")[0],
    "lstsq_rank": lambda t, a: t.linalg.lstsq(a, a).rank,
    "lstsq_values": lambda t, a: t.linalg.lstsq(a, a, driver="gelsd").singular_values,
    "lstsq_gels": lambda t, a: t.linalg.lstsq(a, a, driver="gels")[2],
    "pivots": lambda t, a: t.linalg.lu_factor(a).pivots,
    "info": lambda t, a: t.linalg.lu_factor_ex(a).info,
    "lu_p": lambda t, a: t.linalg.lu(a)[0],
    "matrix_power_0": lambda t, a: t.linalg.matrix_power(a @ a.mH, 0),
    "complete_q": lambda t, a: (lambda q: q @ q.mH)(t.linalg.qr(a, "complete")[0]),
    "complete_r": lambda t, a: t.linalg.qr(a, mode="complete").R,
    "full_v": lambda t, a: (lambda v: v @ v.mH)(t.linalg.svd(a)[2]),
    "svd_of_nothing": lambda t, a: t.svd(a, compute_uv=False).U,
    "vector_norm_0": lambda t, a: t.linalg.vector_norm(a, 0, 0),
    "norm_dtype": lambda t, a: t.linalg.norm(a.to(t.complex64 if a.is_complex() else t.float32), dtype=t.complex128 if a.is_complex() else t.float64),
    "norm_of_nothing": lambda t, a: t.linalg.matrix_norm(a[:0, :, :0], 2),
    "lu_infos": lambda t, a: t.lu(a, get_infos=True)[2],
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("kind", "atwATW")
def test_values(name, kind):
    ours, theirs = (np.asarray(PLAIN[name](t, t.tensor(ARRAYS[kind])).numpy()) for t in (symgrad, torch))
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


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


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.linalg.matrix_norm(t.ones(2)),
        lambda t: t.linalg.matrix_norm(t.ones(2, 2), "x"),
        lambda t: t.linalg.matrix_norm(t.ones(2, 2), 3),
        lambda t: t.linalg.matrix_norm(t.ones(2, 2), 1, (0, 0)),
        lambda t: t.linalg.norm(t.ones(2, 2, 2), 2),
        lambda t: t.linalg.norm(t.ones(2, dtype=t.int64)),
        lambda t: t.linalg.vector_norm(t.ones(0), math.inf),
        lambda t: t.linalg.vector_norm(t.ones(2), dtype=t.complex64),
        lambda t: t.linalg.cond(t.ones(2, 3), 1),
        lambda t: t.linalg.cond(t.ones(2, 2), "z"),
        lambda t: t.linalg.cond(t.ones(2)),
        lambda t: t.linalg.matrix_power(t.ones(2, 3), 2),
        lambda t: t.linalg.matrix_power(t.ones(2, 2), -1),
        lambda t: t.linalg.matrix_power(t.ones(2, 2), 1.5),
        lambda t: t.linalg.multi_dot([t.ones(2, 3)]),
        lambda t: t.linalg.multi_dot([t.ones(2, 3), t.ones(2, 3)]),
        lambda t: t.linalg.multi_dot([t.ones(2, 3), t.ones(3, 2, 2), t.ones(2, 2)]),
        lambda t: t.linalg.tensorinv(t.ones(2, 3), 0),
        lambda t: t.linalg.tensorinv(t.ones(2, 3), 1),
        lambda t: t.linalg.tensorsolve(t.ones(2, 3), t.ones(2)),
        lambda t: t.linalg.svd(t.ones(2)),
        lambda t: t.linalg.svd(t.ones(2, 2), driver="gesvd"),
        lambda t: t.linalg.qr(t.ones(2, 2), "x"),
        lambda t: t.linalg.qr(t.ones(2)),
        lambda t: t.linalg.householder_product(t.ones(3, 2), t.ones(3)),
        lambda t: t.linalg.householder_product(t.ones(2, 3), t.ones(2)),
        lambda t: t.linalg.lstsq(t.ones(2, 2), t.ones(3, 1)),
        lambda t: t.linalg.lstsq(t.ones(2, 2), t.ones(2, 1), driver="x"),
        lambda t: t.linalg.eig(t.ones(2, 3)),
        lambda t: t.linalg.matrix_exp(t.ones(2, 3)),
        lambda t: t.linalg.inv_ex(t.ones(2, 2), check_errors=True),
        lambda t: t.linalg.cholesky_ex(-t.ones(2, 2), check_errors=True),
        lambda t: t.linalg.solve_ex(t.ones(2, 2), t.ones(2), check_errors=True),
        lambda t: t.linalg.lu_factor(t.ones(2, 2), pivot=False),
        lambda t: t.linalg.lu_factor_ex(t.zeros(2, 2), check_errors=True),
        lambda t: t.linalg.vander(t.ones(2), N=1),
        lambda t: t.vander(t.ones(2, 2)),
        lambda t: t.vdot(t.ones(2, 2), t.ones(3)),
        lambda t: t.linalg.vecdot(t.ones(2), t.ones(3)),
        lambda t: t.linalg.cross(t.ones(2), t.ones(2)),
        lambda t: t.linalg.matrix_rank(t.ones(2)),
        lambda t: t.chain_matmul(t.ones(2, 3), t.ones(2)),
        lambda t: t.triangular_solve(t.ones(2), t.ones(2, 2)),
    ],
)
def test_errors(call):
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises((RuntimeError, TypeError, IndexError)) as ours:
        call(symgrad)
    kind = torch.linalg.LinAlgError if type(ours.value) is symgrad.linalg.LinAlgError else type(ours.value)
    assert isinstance(theirs.value, kind), (ours.value, theirs.value)
    assert str(ours.value)


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
