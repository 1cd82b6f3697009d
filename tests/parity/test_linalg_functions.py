"""Shapes, dtypes and names of arguments of `symgrad.linalg` beside `torch.linalg`. Calls of one line are in `calls/linalg.txt`."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import symgrad

torch = pytest.importorskip("torch")
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
    """Second derivatives of singular matrices are not compared: torch divides by the rounding error of the determinant."""
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (4, rank)).astype(float) @ rng.integers(-3, 4, (rank, 4)).astype(float)
    ours, theirs = symgrad.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    gradients = [t.autograd.grad(t.linalg.det(x), x)[0].numpy() for t, x in ((symgrad, ours), (torch, theirs))]
    np.testing.assert_allclose(*gradients, atol=1e-9)
    if rank == 4:
        hessians = [t.autograd.functional.hessian(t.linalg.det, x.detach()).numpy() for t, x in ((symgrad, ours), (torch, theirs))]
        np.testing.assert_allclose(*hessians, atol=1e-9)
    first = symgrad.func.grad(symgrad.linalg.det)
    for function, arrays in ((first, [a]), (lambda A, T: symgrad.func.jvp(first, (A,), (T,))[1], [a, 1 / 3 + np.eye(4)])):
        compiled, names, values = symgrad.compile(function), {}, [symgrad.tensor(x) for x in arrays]
        compiled(*values)
        exec(symgrad.to_torch(compiled, name="written"), names)  # noqa: S102
        np.testing.assert_allclose(names["written"](*map(torch.from_numpy, arrays)), function(*values).numpy(), atol=1e-9)
