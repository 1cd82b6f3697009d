"""Second, third and fourth derivatives of random compositions, by every route, against SymPy's own formulas in fifty digits.

The bound is what SymPy's formula itself would lose in floats: a running error analysis of it, where each step rounds once. A route may lose so many
times as much.
"""

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad
from symgrad import autograd, func

ROUNDINGS = 32
EPSILON = np.finfo(np.float64).eps
DIGITS = 50
X, Y = sympy.symbols("x y", real=True)

# Each with its formula, on all real numbers, so that every composition is smooth everywhere.
UNARY = {
    "sin": sympy.sin, "cos": sympy.cos, "tanh": sympy.tanh, "atan": sympy.atan, "asinh": sympy.asinh,
    "exp(sin)": lambda u: sympy.exp(sympy.sin(u)), "sigmoid": lambda u: 1 / (1 + sympy.exp(-u)), "softplus": lambda u: sympy.log(1 + sympy.exp(u)),
    "gauss": lambda u: sympy.exp(-u**2), "square": lambda u: u**2, "cube": lambda u: u**3, "lorentz": lambda u: 1 / (1 + u**2),
    "root": lambda u: sympy.sqrt(1 + u**2), "sech": sympy.sech, "log1p": lambda u: sympy.log(1 + u**2),
}
NUMERIC = {
    "exp(sin)": lambda u: u.sin().exp(), "gauss": lambda u: (-u * u).exp(), "cube": lambda u: u**3, "lorentz": lambda u: 1 / (1 + u * u),
    "root": lambda u: symgrad.hypot(symgrad.ones_like(u), u), "softplus": symgrad.softplus, "log1p": lambda u: symgrad.log1p(u * u),
}
BINARY = {"add": (lambda a, b: a + b), "sub": (lambda a, b: a - b), "mul": (lambda a, b: a * b), "ratio": (lambda a, b: a / (2 + b**2))}


def trees(depth):
    """Compositions as nested tuples: a variable, a function of one, or an operation of two."""
    leaves = st.sampled_from(["x", "y"])
    if not depth:
        return leaves
    below = trees(depth - 1)
    return st.one_of(leaves, st.tuples(st.sampled_from(sorted(UNARY)), below), st.tuples(st.sampled_from(sorted(BINARY)), below, below))


def formula(tree):
    """A composition in SymPy."""
    if isinstance(tree, str):
        return X if tree == "x" else Y
    name, *below = tree
    return (UNARY.get(name) or BINARY[name])(*map(formula, below))


def value(tree, x, y):
    """A composition with tensors."""
    if isinstance(tree, str):
        return x if tree == "x" else y
    name, *below = tree
    rule = NUMERIC.get(name) or BINARY.get(name) or getattr(symgrad, name)
    return rule(*(value(part, x, y) for part in below))


def analysed(e, at):
    """The value of a formula in fifty digits, and what it loses in floats, in units of the rounding."""
    if e.is_Number or e.is_NumberSymbol:
        return mpmath.mpf(sympy.N(e, DIGITS)), mpmath.mpf(0)
    if e.is_Symbol:
        return mpmath.mpf(at[e]), mpmath.mpf(0)
    parts = [analysed(a, at) for a in e.args]
    values = [v for v, _ in parts]
    if e.is_Add:
        out = mpmath.fsum(values)
        return out, mpmath.fsum(loss for _, loss in parts) + mpmath.fsum(map(abs, values))
    if e.is_Mul:
        out = mpmath.fprod(values)
        return out, abs(out) + mpmath.fsum(loss * abs(mpmath.fprod(values[:i] + values[i + 1:])) for i, (_, loss) in enumerate(parts))
    if e.is_Pow:
        base, exponent = values
        out = base**exponent
        return out, abs(out) + parts[0][1] * abs(exponent * base ** (exponent - 1)) + parts[1][1] * abs(out * mpmath.log(abs(base) or 1))
    u = sympy.Dummy()
    out = mpmath.mpf(sympy.N(e.func(*[sympy.Float(v, DIGITS) for v in values]), DIGITS))
    slope = mpmath.mpf(sympy.N(sympy.diff(e.func(u), u).subs(u, sympy.Float(values[0], DIGITS)), DIGITS))
    return out, abs(out) + parts[0][1] * abs(slope)


def check(tree, x, y, order, routes):
    expression = formula(tree)
    at = {X: x, Y: y}
    with mpmath.workdps(DIGITS):
        expected = {}
        for k in range(order + 1):
            expected[k] = analysed(sympy.diff(expression, X, order - k, Y, k), at)
        below = [analysed(sympy.diff(expression, X, j - i, Y, i), at) for j in range(order) for i in range(j + 1)]
        scale = mpmath.fsum(loss + abs(v) for v, loss in below)  # what the derivatives that lead there lose
        for name, route in routes.items():
            for k, found in route(tree, x, y, order).items():
                truth, loss = expected[k]
                error = abs(mpmath.mpf(found) - truth)
                bound = ROUNDINGS * EPSILON * (loss + abs(truth) + scale)
                assert error <= bound, (f"{name}: {tree}, {k} times by y: {found}, not {mpmath.nstr(truth, 20)}: "
                                        f"{mpmath.nstr(error / bound, 3)} times the bound")


def nested(tree, x, y, order):
    """func.grad of func.grad of ..., by x so often and then by y."""
    out = {}
    for k in range(order + 1):
        f = lambda x, y: value(tree, x, y)  # noqa: E731
        for argument in [0] * (order - k) + [1] * k:
            f = func.grad(f, argument)
        out[k] = f(symgrad.tensor(x), symgrad.tensor(y)).item()
    return out


def eager(tree, x, y, order):
    """autograd.grad with create_graph."""
    out = {}
    for k in range(order + 1):
        xs = [symgrad.tensor(v, requires_grad=True) for v in (x, y)]
        g = value(tree, *xs)
        for argument in [0] * (order - k) + [1] * k:
            (g,) = autograd.grad(g, xs[argument], create_graph=True, materialize_grads=True)
        out[k] = g.item()
    return out


def mixed(tree, x, y, order):
    """Forward over reverse over forward ..., of a vector."""
    def f(v):
        return value(tree, v[0], v[1])

    g = f
    for i in range(order):
        g = (func.jacrev, func.jacfwd)[i % 2](g)
    found = g(symgrad.tensor([x, y])).numpy()
    return {k: found[(0,) * (order - k) + (1,) * k] for k in range(order + 1)}


def hessians(tree, x, y, order):
    """The Hessian, differentiated again by Hessians and pushforwards."""
    def f(v):
        return value(tree, v[0], v[1])

    if order == 2:
        h = func.hessian(f)
        h(symgrad.tensor([y, x])), h(symgrad.tensor([x, x]))
        found = h(symgrad.tensor([x, y])).numpy()
    elif order == 3:
        found = func.jacfwd(func.hessian(f))(symgrad.tensor([x, y])).numpy()
    else:
        found = func.hessian(func.hessian(f))(symgrad.tensor([x, y])).numpy()
    return {k: found[(0,) * (order - k) + (1,) * k] for k in range(order + 1)}


ROUTES = {"nested": nested, "eager": eager, "mixed": mixed, "hessians": hessians}
POINTS = st.floats(-3, 3).map(lambda v: round(v, 3))


@pytest.mark.sweep
@pytest.mark.sampled(1)
@pytest.mark.parametrize("order, depth, examples", [(2, 3, 30), (3, 3, 18), (4, 2, 14)])
def test_random_compositions(order, depth, examples):
    @settings(max_examples=examples if settings.default.max_examples < 1000 else settings.default.max_examples)
    @given(trees(depth), POINTS, POINTS)
    def run(tree, x, y):
        check(tree, x, y, order, ROUTES)

    run()


@pytest.mark.sweep
def test_a_derivative_off_by_a_rounding_too_many_is_noticed():
    tree = ("sin", ("mul", "x", ("exp(sin)", "y")))
    check(tree, 0.3, 0.7, 2, ROUTES)
    with pytest.raises(AssertionError, match="off"):
        check(tree, 0.3, 0.7, 2, {"off": lambda *given: {k: v * (1 + 1e-12) for k, v in nested(*given).items()}})
