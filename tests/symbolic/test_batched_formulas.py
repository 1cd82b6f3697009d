"""Formulas of derivatives that transforms compute as batches: their values are those of the derivatives, or they are refused by name."""

import numpy as np
import pytest
import sympy

import symgrad
from symgrad import func
from symgrad.engine.tensor import Tensor, wrap
from symgrad.trees import flatten
from tests.support.claims import ALL_CASES, attack_on
from tests.support.lines import lines

A, B = np.array([[1.3, 0.37], [0.71, -1.9]]), np.array([[0.9, -1.7], [1.1, 0.4]])
FUNCTIONS = {name: eval(function) for name, function in lines("batched_functions")}
TRANSFORMS = {
    "jacfwd": lambda f, x: func.jacfwd(f)(x), "jacrev": lambda f, x: func.jacrev(f)(x),
    "hessian": lambda f, x: func.hessian(lambda x: (f(x) * (f(x) + 0.7)).sum())(x),
    "vmap": lambda f, x: func.vmap(lambda s: f(x * s))(symgrad.tensor([1.1, 0.9])),
    "vmap of grad": lambda f, x: func.vmap(func.grad(lambda s: (f(x * s) ** 2).sum()))(symgrad.tensor([1.1, 0.9])),
    "vmap of jacrev": lambda f, x: func.vmap(func.jacrev(lambda s: f(x * s)))(symgrad.tensor([1.1, 0.9])),
    "jacfwd of jacrev": lambda f, x: func.jacfwd(func.jacrev(lambda x: f(x).sum()))(x),
}


def evaluated(expr, symbols):
    """The elements of a formula at the values of its symbols."""
    cells = np.array(expr.tolist() if isinstance(expr, sympy.Array) else expr, dtype=object)
    return np.array(sympy.lambdify(list(symbols), cells.ravel().tolist(), "numpy")(*symbols.values()), dtype=complex).reshape(cells.shape)


def compare(results, leaves):
    """Hold the formulas of results to their values; `leaves` are the named tensors."""
    symbols = {}
    for x in leaves:
        symbols.update(zip(np.ravel(np.array(x.expr.tolist() if x.ndim else x.expr, dtype=object)), x.detach().numpy().ravel().tolist()))
    for y in results:
        if y.expr is None:  # no input is upstream, as of a derivative of steps
            assert not y.detach().numpy().any()
            continue
        value = y.detach().numpy()
        with np.errstate(all="ignore"):
            found = evaluated(y.expr, symbols)
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-9 * np.abs(value).max(initial=1))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_formulas_of_transforms(transform, name):
    x = symgrad.tensor(A, requires_grad=True, symbol="x")
    compare([TRANSFORMS[transform](FUNCTIONS[name], x)], [x])


OPS = {op.name: (op, parameters) for op, parameters in ALL_CASES if op.kind in ("linear", "multilinear") and op.arity != 1}
"""Of several tensors, of which some are batches and some are not."""


@pytest.mark.sweep
@pytest.mark.parametrize("name", OPS)
def test_formulas_of_ops(name):
    op, parameters = OPS[name]
    attack = attack_on(op, parameters, "dev")
    xs = [np.clip(x, -2, 2) + 0.013 * np.arange(x.size).reshape(x.shape) if x.dtype.kind == "f" else x for x in attack.examples("points")[0].xs]
    places = tuple(i for i, x in enumerate(xs) if x.dtype.kind == "f")
    if not places or sum(xs[i].size for i in places) > 24:  # of many elements the formulas take long
        pytest.skip("no real arguments, or many of them")
    tensors = [symgrad.tensor(x, requires_grad=True, symbol=f"x{i}") if i in places else wrap(x) for i, x in enumerate(xs)]

    def first(*tensors):
        return next(y for y in flatten(attack.subject.call(list(tensors)))[0] if isinstance(y, Tensor) and y.requires_grad)

    for transform in (func.jacfwd, func.jacrev):
        found = flatten(transform(first, places)(*tensors))[0]
        try:
            [y.expr for y in found]
        except TypeError as error:  # such as of the position of the largest element
            assert "no formula" in str(error) or "has no expression" in str(error)
            continue
        compare(found, [tensors[i] for i in places])
