"""Every op that the catalogue finds for a formula has the derivatives of the formula, wherever its value is a real number."""

import itertools

import numpy as np
import pytest
import sympy

import symgrad
from symgrad.engine.recording import core
from symgrad.graph.op import REGISTRY
from symgrad.symbolic.catalogue import NAMED, _patterns, known_functions

POINTS = {1: (-2.3, -0.62, 0.37, 1.71), 2: (-1.3, -0.41, 0.57, 2.2), 3: (-0.7, 0.35, 1.9)}
STEP, PARTS = 1e-5, 6


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(PARTS))
def test_the_rule_of_an_op_is_that_of_its_formula(part):
    functions, patterns = known_functions(), _patterns()
    names = sorted({*functions.values(), *[entry.op for entries in patterns.values() for entry in entries]})
    assert len(names) > 200
    found = [(name, *wrong) for name in names[part::PARTS] for wrong in wrong_slopes(name)]
    assert not found


def wrong_slopes(name):
    """The points at which a derivative of an op is not the difference quotient, each with the argument and both."""
    op, parameters = NAMED.get(name, (name, ()))
    op = REGISTRY[op]
    if op.kind == "composite" or not op.differentiable:
        return
    for point in itertools.product(POINTS[op.arity], repeat=op.arity):
        point = [x + 0.0137 * i for i, x in enumerate(point)]  # no ties
        leaves = [symgrad.tensor(x, requires_grad=True) for x in point]
        with np.errstate(all="ignore"):
            y = core(op)(*leaves, *parameters)
            if y.dtype.is_complex or not np.isfinite(y.item()):
                continue
            for i, slope in enumerate(symgrad.autograd.grad(y, leaves, allow_unused=True, materialize_grads=True)):
                ends = [core(op)(*[symgrad.tensor(x + h * (k == i)) for k, x in enumerate(point)], *parameters).item() for h in (-STEP, STEP)]
                expected = (ends[1] - ends[0]) / (2 * STEP)
                if np.isfinite(expected) and op.partials[i] is not None and not abs(slope.item() - expected) <= 1e-4 * (1 + abs(expected)):
                    yield point, i, slope.item(), expected


A, B = sympy.symbols("a b", real=True)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("u", [sympy.Max(A, B), sympy.Min(A, B), A + B, A * B, sympy.exp(A) - B, sympy.Abs(A) - 2 * sympy.Abs(B),
                               A * sympy.sin(B)], ids=str)
@pytest.mark.parametrize("other", [5, B, 0, A * A], ids=str)
def test_a_choice_by_the_sign_of_one_of_its_values(u, other):
    """The derivative is that of the chosen value, from the formula and in sources."""
    formula = sympy.Piecewise((other, u > 0), (u, True))
    f, source = symgrad.from_sympy(formula), namespace(symgrad.to_python(formula, derivatives=1, symbols=[A, B], name="f"))["f"]
    for a, b in itertools.product((-1.3, 0.41, 2.2), (-2.1, -0.4, 1.7)):
        chosen = other if u.subs({A: a, B: b}) > 0 else u
        expected = [float(sympy.diff(chosen, s).subs({A: a, B: b}).evalf()) for s in (A, B)]
        np.testing.assert_allclose([t.item() for t in symgrad.func.grad(f, (0, 1))(a, b)], expected, rtol=1e-12)
        np.testing.assert_allclose(np.array(source(a, b)[1], float), expected, rtol=1e-12)


def namespace(source):
    found = {}
    exec(source, found)
    return found
