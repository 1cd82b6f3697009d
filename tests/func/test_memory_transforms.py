"""Results of transforms alias nothing: a write into one, or into an argument, changes no other result and no later call."""

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.func import (
    curl,
    derivatives,
    directional_derivatives,
    divergence,
    extreme_eigenvalues,
    grad,
    grad_and_value,
    hessian,
    hessian_diag,
    hessian_factors,
    hessian_operator,
    hessian_trace,
    hvp,
    implicit_argmin,
    implicit_fixed_point,
    implicit_root,
    jacfwd,
    jacobian,
    jacrev,
    jet,
    jvp,
    laplacian,
    linearize,
    value_and_laplacian,
    vhp,
    vjp,
    vmap,
)
from symgrad.trees import flatten
from tests.engine.test_memory import shared

C, M = symgrad.tensor([1.0, -2.0, 0.5]), symgrad.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])

# Many of these have derivatives that do not depend on the argument, which a remembered program may hand out again and again.
SCALARS = {
    "square": lambda x: ((x - C) ** 2).sum(), "product": lambda x: (x * C).sum(), "sum": lambda x: x.sum(), "shifted": lambda x: (x + 1).sum(),
    "form": lambda x: x @ M @ x, "element": lambda x: x.reshape(-1)[0] * x.reshape(-1)[-1], "sine": lambda x: x.sin().sum(),
    "constant": lambda x: (C * C).sum() + 0 * x.sum(), "mean": lambda x: x.mean(), "largest": lambda x: x.max(),
    "nothing": lambda x: x.detach().sum(),
}
VECTORS = {
    "shifted": lambda x: x + 1, "scaled": lambda x: C * x, "difference": lambda x: x - C, "map": lambda x: M @ x, "sine": lambda x: x.sin(),
    "square": lambda x: x * x, "copy": lambda x: x.clone(), "reversed": lambda x: x.flip(0), "view": lambda x: (2 * x).reshape(3),
    "step": lambda x: x.round(),
    "pair": lambda x: (x + 1, x * C),
}
NUMBERS = {"shifted": lambda x: x + 1, "scaled": lambda x: 3 * x, "square": lambda x: x * x, "sine": lambda x: x.sin(), "copy": lambda x: x.clone()}


def solved(x):
    """The solution y of M y = x, by a number of steps."""
    y = symgrad.zeros(3)
    for _ in range(60):
        y = y - 0.2 * (M @ y - x)
    return y


def doubled(of_rows):
    return lambda x: of_rows(symgrad.stack([x, 2 * x]))


def product(operator):
    return lambda x, v: operator(x) @ v


OF_SCALARS = {
    "grad": grad, "grad_and_value": grad_and_value, "hessian": hessian, "structured hessian": lambda f: hessian(f, structure="auto"),
    "grad of grad": lambda f: grad(lambda x: grad(f)(x).sum()), "laplacian": laplacian,
    "value_and_laplacian": value_and_laplacian, "hessian_diag": hessian_diag, "hessian_trace": hessian_trace, "jacrev": jacrev, "jacfwd": jacfwd,
    "jacrev of grad": lambda f: jacrev(grad(f)), "jacfwd of grad": lambda f: jacfwd(grad(f)), "hessian_factors": hessian_factors,
    "hessian_operator": lambda f: product(hessian_operator(f)), "extreme_eigenvalues": extreme_eigenvalues,
    "hvp": lambda f: lambda x, v: hvp(f, x, v), "vhp": lambda f: lambda x, v: vhp(f, x, v), "jvp": lambda f: lambda x, v: jvp(f, (x,), (v,)),
    "vjp": lambda f: lambda x: vjp(f, x)[1](symgrad.tensor(2.0)),
    "vmap of grad": lambda f: doubled(vmap(grad(f))),
    "implicit_argmin": lambda f: implicit_argmin(lambda y, x: y @ M @ y / 2 - x @ y, solved),
}
OF_VECTORS = {
    "jacrev": jacrev, "jacfwd": jacfwd, "jacobian": jacobian, "structured jacobian": lambda f: jacobian(f, structure="auto"),
    "divergence": divergence, "curl": curl, "jvp": lambda f: lambda x, v: jvp(f, (x,), (v,)), "vjp": lambda f: lambda x, v: vjp(f, x)[1](v),
    "linearize": lambda f: lambda x, v: linearize(f, x)[1](v), "jet": lambda f: lambda x, v: jet(f, (x,), ((v, v, v),)),
    "directional_derivatives": lambda f: directional_derivatives(f, 3), "jacrev of jacrev": lambda f: jacrev(jacrev(f)),
    "jacfwd of jacfwd": lambda f: jacfwd(jacfwd(f)), "vmap": lambda f: doubled(vmap(f)),
    "jacrev of jvp": lambda f: lambda x, v: jacrev(lambda x: jvp(f, (x,), (v,))[1])(x),
    "implicit_root": lambda f: implicit_root(lambda y, x: M @ y - x, solved),
    "implicit_fixed_point": lambda f: implicit_fixed_point(lambda y, x: y - 0.2 * (M @ y - x), solved),
}


OF_NUMBERS = {"derivatives": lambda f: derivatives(f, 3), **{name: OF_SCALARS[name] for name in ("grad", "grad_and_value", "hessian", "hvp", "vjp")},
              **{name: OF_VECTORS[name] for name in ("jacrev", "jacfwd", "jvp", "linearize", "jet", "vmap")}}
POINT, NUMBER = symgrad.tensor([0.3, 0.7, -1.2]), symgrad.tensor(0.3)
TABLES = {"scalars": (OF_SCALARS, SCALARS, POINT), "vectors": (OF_VECTORS, VECTORS, POINT), "numbers": (OF_NUMBERS, NUMBERS, NUMBER)}


@pytest.mark.parametrize("transform, of", [(name, of) for of, (table, _, _) in TABLES.items() for name in table])
def test_transforms_share_no_memory(transform, of):
    table, functions, x = TABLES[of]
    wrong, called = [], 0
    for name, f in functions.items():
        call = table[transform](f)
        for args in ((x.clone(),), (x.clone(), 1 + x)):
            found = shared(call, args)
            called += found is not None
            if found:
                wrong.append(f"{name}: {found}")
    assert not wrong, "\n".join(wrong)
    assert called


def test_a_linear_map_shares_no_memory_between_its_calls():
    for f in (*VECTORS.values(), lambda x: x + 1):
        x = symgrad.tensor([0.3, 0.7, -1.2])
        for call in (linearize(f, x)[1], vjp(f, x)[1]):
            assert not shared(call, (C + 1,))


REPEATED = {
    "grad": lambda f: func.grad(f), "grad_and_value": lambda f: func.grad_and_value(f), "hessian": lambda f: func.hessian(f),
    "jacrev": lambda f: func.jacrev(f), "jacfwd": lambda f: func.jacfwd(f), "nested grad": lambda f: func.grad(lambda x: func.grad(f)(x).sum()),
    "three nested": lambda f: func.grad(lambda x: func.grad(lambda x: func.grad(f)(x).sum())(x).sum()),
    "hvp": lambda f: lambda x: func.hvp(f, x, x), "laplacian": lambda f: func.laplacian(f), "jet": lambda f: lambda x: func.jet(f, (x,), ((x, x),)),
    "compiled": lambda f: symgrad.compile(f, backend="numpy"), "compiled hessian": lambda f: symgrad.compile(f, backend="numpy").hessian,
    "compiled jacobian": lambda f: symgrad.compile(f, backend="numpy").jacobian,
}


@pytest.mark.parametrize("kind", ["quadratic", "cubic", "linear"])
@pytest.mark.parametrize("name", REPEATED)
def test_results_of_repeated_calls_may_be_written(name, kind):
    """Also constant ones, and those of programs: the next call gives the same."""
    matrix = symgrad.tensor([[2.0, 1.0], [1.0, 3.0]])
    f = {"quadratic": lambda x: x @ matrix @ x, "cubic": lambda x: (x**3).sum() + x.prod().tanh(), "linear": lambda x: (matrix @ x).sum()}[kind]
    transform, x = REPEATED[name](f), symgrad.tensor([0.5, -1.5])
    first = None
    for _ in range(7):
        found = [t for t in flatten(transform(x))[0] if isinstance(t, symgrad.Tensor)]
        first = first or [t.clone() for t in found]
        for a, b in zip(found, first):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-14)
            a.detach().fill_(77.0)
    assert matrix.tolist() == [[2.0, 1.0], [1.0, 3.0]] and x.tolist() == [0.5, -1.5]
