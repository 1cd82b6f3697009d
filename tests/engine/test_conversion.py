"""SymPy's formulas as functions and back: round trips of every op, every function of the catalogue and random formulas; refused input."""

import math

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from sympy import Rational, oo, pi

import symgrad
from symgrad import autograd, func, tensor
from symgrad.algebra.identity import identical
from symgrad.algebra.values import Unknown
from symgrad.engine.traced import core
from symgrad.formulas import parsing
from symgrad.formulas.expressions import assignments
from symgrad.graph.domains import POSITIVE
from symgrad.graph.op import REGISTRY
from symgrad.symbolic.catalogue import known_names, plan
from symgrad.symbolic.conversion import from_sympy
from symgrad.symbolic.programs import program_of
from symgrad.symbolic.tracing import to_sympy
from tests.ops.test_compositions import POINTS, check, formula, trees
from tests.support.points import examples, of_numbers, points

X, Y, Z = sympy.symbols("x y z")
R, S = sympy.symbols("r s", real=True)
def named(value):
    """The id of a parameter in a test name; functions have no stable repr."""
    return value if isinstance(value, str) else value.__name__ if isinstance(value, type) else ""


CASES = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in REGISTRY.values()
         if op.kind == "elementwise" and of_numbers(op) for parameters in examples(op)]


# Functions to formulas to functions


def derivatives(function, columns, differentiable):
    """The value and the gradient of an elementwise function."""
    xs = [tensor(c, requires_grad=differentiable) for c in columns]
    y = function(*xs)
    if not differentiable or not y.requires_grad:
        return [y.numpy().astype(float), *[np.zeros(len(c)) for c in columns]]
    return [y.detach().numpy(), *[g.numpy() for g in autograd.grad(y.sum(), xs, materialize_grads=True)]]


@pytest.mark.sampled(17)
@pytest.mark.parametrize("op, parameters", CASES)
def test_an_op_is_recovered_from_its_formula(op, parameters):
    call = core(op)
    at = points(op, np.random.default_rng(0), 20, 60)
    expression = to_sympy(lambda *xs: call(*xs, *parameters), at=at[0])
    symbols = [sympy.Symbol(f"xs{i}", real=True) for i in range(op.arity)]
    back = from_sympy(expression, symbols)
    columns = [np.array(c) for c in zip(*at)]
    ours, theirs = derivatives(lambda *xs: call(*xs, *parameters), columns, op.differentiable), derivatives(back, columns, op.differentiable)
    with np.errstate(all="ignore"):
        conditions = [sum(abs(x * g) for x, g in zip(columns, ours[1:])), *[np.zeros(len(at))] * op.arity]
    if op.name == "orthogonal_polynomial":  # the powers in its formula cancel next to the zeros of the derivative, too
        family, degree, order = parameters
        conditions[1] = abs(columns[0] * call(tensor(columns[0]), family, degree, order + 2).numpy())
    for a, b, condition in zip(ours, theirs, conditions):
        size = np.maximum(abs(a), np.where(np.isfinite(condition), condition, 0))
        with np.errstate(all="ignore"):
            near = abs(a - b) <= 8 * np.spacing(np.maximum(size, 2.3e-308))
        agree = near | (a == b) | np.isnan(a) & np.isnan(b)
        assert np.all(agree), f"{expression} differs at {[at[i] for i in np.flatnonzero(~agree)[:3]]}"
    again = to_sympy(back, at=at[0])
    names = {sympy.Symbol(name, real=True): s for name, s in zip(back.__signature__.parameters, symbols)}
    assert again.xreplace(names) == expression or identical(again.xreplace(names), expression)


def test_ops_with_long_formulas_are_recognised():
    def ops(e):
        return [step.name for step in program_of([e], [R, S]).steps if step.name not in ("input", "constant")]

    assert ops(sympy.log(R) / sympy.log(2)) == ["log2"] and ops(S * sympy.log(R) / sympy.log(10)) == ["log10", "mul"]
    assert ops(sympy.log(1 + sympy.exp(R))) == ["softplus"] and ops(1 / (1 + sympy.exp(-R * S))) == ["mul", "sigmoid"]
    assert ops(sympy.sign(R) * sympy.floor(abs(R))) == ["trunc"] and ops(sympy.Max(R, 0)) == ["relu"]
    assert ops(R / sympy.sqrt(R**2 + S**2)) == ["direction"] and ops(1 - R**2 + S) == ["one_minus_square", "add"]
    assert ops(2 ** (R * S)) == ["mul", "exp2"] and ops(1 / sympy.cosh(R) ** 2) == ["sech_square"]


# Every function of the catalogue

T, C = sympy.Symbol("t", real=True), sympy.Symbol("t")
AT = 0.7  # where the formulas below are real and have no kink
FORMULAS = {
    "Abs": abs(T - 1), "And": sympy.Piecewise((T, (T > 0) & (T < 1)), (0, True)), "Equality": sympy.Piecewise((1, sympy.Eq(T, 2)), (T**2, True)),
    "GreaterThan": sympy.Piecewise((T, T >= 1), (T**3, True)), "Heaviside": sympy.Heaviside(T) * T, "ITE": sympy.Piecewise(
        (T, sympy.ITE(T > 0, T < 1, T > 2)), (0, True)), "Implies": sympy.Piecewise((T, sympy.Implies(T > 1, T > 2, evaluate=False)), (0, True)),
    "LessThan": sympy.Piecewise((T, T <= 1), (0, True)), "Max": sympy.Max(T, T**2, 0.1), "Min": sympy.Min(T, T**2, 3), "Mod": sympy.Mod(5 * T, 2),
    "Nand": sympy.Piecewise((T, sympy.Nand(T > 1, T < 2, evaluate=False)), (0, True)),
    "Nor": sympy.Piecewise((T, sympy.Nor(T > 1, T < 0, evaluate=False)), (0, True)), "Not": sympy.Piecewise(
        (T, sympy.Not(T > 1, evaluate=False)), (0, True)), "Or": sympy.Piecewise((T, (T > 2) | (T < 1)), (0, True)),
    "Piecewise": sympy.Piecewise((T, T < 0), (T**2, T < 1), (sympy.sqrt(-T), True)), "Product": sympy.Product(T + X, (X, 1, 3)),
    "StrictGreaterThan": sympy.Piecewise((T, T > 1), (2 * T, True)), "StrictLessThan": sympy.Piecewise((T, T < 1), (0, True)),
    "Sum": sympy.Sum(T**X / (X + 1), (X, 0, 4)), "Unequality": sympy.Piecewise((T, sympy.Ne(T, 1)), (0, True)),
    "Xor": sympy.Piecewise((T, sympy.Xor(T > 1, T < 2, evaluate=False)), (0, True)), "acosh": sympy.acosh(1 + T), "acoth": sympy.acoth(2 + T),
    "acsc": sympy.acsc(1 + T), "asec": sympy.asec(1 + T), "arg": sympy.arg(C) * C, "conjugate": sympy.conjugate(C) * C,
    "im": sympy.im(C) + C, "re": sympy.re(C) * C, "floor": T * sympy.floor(3 * T), "ceiling": T * sympy.ceiling(3 * T),
    "frac": sympy.frac(3 * T), "sign": sympy.sign(T) * T, "atan2": sympy.atan2(T, 2), "hypot": sympy.sqrt(T**2 + 4), "log": sympy.log(T, 3),
    "elliptic_e": sympy.elliptic_e(T) + sympy.elliptic_e(T, T / 2), "elliptic_f": sympy.elliptic_f(T, T / 2),
    "lowergamma": sympy.lowergamma(1 + T, T), "uppergamma": sympy.uppergamma(1 + T, T), "zeta": sympy.zeta(1 + T) + sympy.zeta(2 + T, T),
    **{name: getattr(sympy, name)(2, T) for name in ("besseli", "besselj", "besselk", "bessely")},
}
OURS = {"expm1", "log1p", "hypot", "sech_squared", "sigmoid", "softplus", "logaddexp", "log1mexp", "log_cosh", "larger", "smaller", "step", "whole"}


@pytest.mark.sampled(23)
@pytest.mark.parametrize("name", sorted(set(known_names()) - OURS - {"Cbrt", "Sqrt", "fma"}))
def test_every_function_of_the_catalogue(name):
    expression = FORMULAS.get(name)
    expression = getattr(sympy, name)(T) if expression is None else expression
    function = from_sympy(expression)
    x = tensor(AT, requires_grad=True)
    y = function(*[x] * len(function.symbols))
    (slope,) = autograd.grad(y, x)
    truth = expression.subs(C, T).doit()
    found = sympy.diff(truth, T)
    point = {T: Rational(7, 10)}
    assert y.item() == pytest.approx(float(truth.subs(point)), rel=1e-15)
    undecided = found.has(sympy.Derivative, sympy.Subs, sympy.DiracDelta)
    quotient = mpmath.diff(sympy.lambdify(T, truth, "mpmath"), mpmath.mpf("0.7")) if undecided else None
    assert slope.item() == pytest.approx(float(found.subs(point) if quotient is None else quotient), rel=4e-15)


HEADS = {"log1mexp": -0.5, "log_cosh": 1e-9}


@pytest.mark.parametrize("name", sorted(OURS))
def test_stable_functions(name):
    from symgrad.algebra import stable_functions

    function = getattr(stable_functions, name)
    count = 2 if name in ("hypot", "logaddexp", "larger", "smaller") else 1
    for at in (HEADS.get(name, 0.3), HEADS.get(name, 40.0) * 3):
        xs = [at, 0.25][:count]
        values = {R: Rational(*at.as_integer_ratio()), S: Rational(1, 4)}
        truth = sympy.N(stable_functions.elementary(function(R, S) if count == 2 else function(R)).subs(values), 40)
        assert from_sympy(function(*[R, S][:count]), [R, S][:count])(*xs).item() == pytest.approx(float(truth), rel=2e-15)


# Numbers and powers


@pytest.mark.parametrize("expression, at, truth", [
    (sympy.sqrt(X), 2.0, math.sqrt(2.0)), (1 / sympy.sqrt(X), 4.0, 0.5), (sympy.cbrt(X), 27.0, 3.0),
    (X ** Rational(2, 3), 8.0, 4.0), (X**-3, 2.0, 0.125),
    (X ** Rational(5, 2), 4.0, 32.0), (X**0.3, 2.0, 2.0**0.3), (Rational(1, 3) * X, 1.0, 1 / 3), (X / 7, 3.0, 3 / 7), (pi * X, 1.0, math.pi),
    (sympy.E**X, 1.0, math.e), (2**X, 10.0, 1024.0), (Rational(1, 2) ** X, 2.0, 0.25), (X**X, 3.0, 27.0),
    (sympy.GoldenRatio * X, 1.0, (1 + 5**0.5) / 2),
    (X + oo, 1.0, math.inf), (-oo * abs(X), 1.0, -math.inf), (sympy.Float("0.1") * X, 3.0, 0.1 * 3.0), (10**30 * X, 2.0, 2e30),
    (sympy.gamma(Rational(1, 3)) * X, 1.0, 2.6789385347077476), (X**2, -3.0, 9.0), (X**3, -2.0, -8.0), (sympy.real_root(X, 3), -8.0, -2.0),
], ids=str)
def test_powers_and_numbers(expression, at, truth):
    assert from_sympy(expression, [X])(at).item() == pytest.approx(truth, rel=4e-16)
    assert from_sympy(expression, [X])(symgrad.tensor(at, symbol="x")).expr == expression.xreplace({X: sympy.Symbol("x", real=True)})


def test_a_root_of_a_negative_number_is_not_real():
    assert np.isnan(from_sympy(sympy.cbrt(X))(-8.0).item()) and np.isnan(from_sympy(sympy.sqrt(X))(-1.0).item())
    assert from_sympy(sympy.sqrt(X))(-4.0 + 0j).item() == 2j


def test_functions_of_code_generation_and_names_of_ops():
    from sympy.codegen import cfunctions

    every = cfunctions.log2(X) + cfunctions.exp2(X) + cfunctions.Cbrt(X) + cfunctions.Sqrt(2 * X) + cfunctions.fma(X, X, X)
    assert from_sympy(every)(8.0).item() == 337.0
    assert from_sympy(sympy.Function("softplus")(X))(0.0).item() == math.log(2)


@pytest.mark.sweep
def test_a_deeply_nested_formula_is_computed():
    deep = X
    for _ in range(120):
        deep = sympy.sin(deep) + 1
    x = 0.5
    for _ in range(120):
        x = math.sin(x) + 1
    assert from_sympy(deep)(0.5).item() == pytest.approx(x, rel=1e-14)


def test_equal_subexpressions_are_computed_once():
    shared = sympy.exp(sympy.sin(X * Y))
    program = program_of([shared / (1 + shared**2), sympy.cos(X * Y) * shared], [X, Y])
    names = [step.name for step in program.steps]
    assert all(names.count(name) == 1 for name in ("exp", "sin", "cos")) and len(set(program.steps)) == len(names)


def test_no_digits_are_lost():
    assert from_sympy(sympy.log(1 + sympy.exp(X)))([800.0, -800.0, -40.0]).tolist() == [800.0, 0.0, math.exp(-40.0)]
    assert from_sympy(sympy.exp(X) - 1)(1e-20).item() == 1e-20
    assert from_sympy(1 / sympy.cosh(X) ** 2)(20.0).item() == pytest.approx(1.6993417021166355e-17)
    softmax = from_sympy(sympy.exp(X) / (sympy.exp(X) + sympy.exp(Y) + sympy.exp(Z)))
    assert softmax(1000.0, 999.0, 0.0).item() == pytest.approx(1 / (1 + math.exp(-1.0)))
    assert from_sympy(sympy.log(sympy.exp(X) + sympy.exp(Y) + sympy.exp(Z)))(1000.0, 1000.0, -1000.0).item() == pytest.approx(1000 + math.log(2))


def test_kinks_follow_the_conventions():
    def slopes(e, *at):
        xs = [tensor(v, requires_grad=True) for v in at]
        return [g.item() for g in autograd.grad(from_sympy(e, sympy.symbols("x y z")[:len(at)])(*xs), xs, materialize_grads=True)]

    assert slopes(sympy.Max(X, Y), 1.0, 1.0) == [0.5, 0.5] and slopes(sympy.Max(X, 0), 0.0) == [0.0] and slopes(sympy.Min(X, 2), 2.0) == [0.0]
    assert slopes(sympy.Max(X, Y, Z), 1.0, 1.0, 1.0) == [1 / 3] * 3 and slopes(sympy.Max(X, Y, Z, 5), 1.0, 2.0, 3.0) == [0.0] * 3
    assert slopes(sympy.Abs(X), 0.0) == [0.0] and slopes(sympy.Heaviside(X), 0.0) == [0.0]
    assert slopes(sympy.Piecewise((sympy.log(X), X > 0), (0, True)), -1.0) == [0.0]
    assert slopes(sympy.sinc(X), 0.0) == [0.0]


# Random formulas


def converted(tree, x, y, order):
    """The derivatives of a composition converted to SymPy and back."""
    g = from_sympy(formula(tree), [sympy.Symbol("x", real=True), sympy.Symbol("y", real=True)])
    out = {}
    for k in range(order + 1):
        xs = [tensor(v, requires_grad=True) for v in (x, y)]
        d = g(*xs)
        for argument in [0] * (order - k) + [1] * k:
            d = autograd.grad(d, xs[argument], create_graph=True, materialize_grads=True)[0] if d.requires_grad else tensor(0.0)
        out[k] = d.item()
    return out


@pytest.mark.sweep
@settings(max_examples=40)
@given(trees(3), POINTS, POINTS)
def test_random_formulas_have_the_right_derivatives(tree, x, y):
    check(tree, x, y, 1, {"from_sympy": converted})


@pytest.mark.sweep
@settings(max_examples=30)
@given(trees(3))
def test_random_formulas_are_recovered(tree):
    expression = formula(tree)
    symbols = [sympy.Symbol("x", real=True), sympy.Symbol("y", real=True)]
    again = to_sympy(from_sympy(expression, symbols))
    assert again == expression or identical(again, expression).verdict != "refuted"
    difference = sympy.lambdify(symbols, again - expression, "mpmath")
    with mpmath.workdps(60):
        assert all(abs(difference(mpmath.mpf(x), mpmath.mpf(y))) < 1e-40 for x, y in ((0.3, -0.6), (1.25, 2.0)))


@pytest.mark.parametrize("expression", [
    X**2 + 1, pi * X ** Rational(1, 3) / Y, sympy.Max(X, Y, Z), sympy.Piecewise((sympy.sqrt(X), X > 0), (0, True)),
    sympy.sin(X) ** 2 * sympy.exp(-X / 3),
    sympy.log(X) / sympy.log(2), sympy.Mod(X, Y), sympy.Abs(X) + sympy.sign(Y), sympy.atan2(Y, X), (X + Y) ** 7 / 3, sympy.sqrt(2) * X, X**Y + 2**X,
], ids=str)
def test_formulas_are_recovered_unchanged(expression):
    real = {s: sympy.Symbol(s.name, real=True) for s in expression.free_symbols}
    assert to_sympy(from_sympy(expression)) == expression.xreplace(real)


# Parameters of formulas


def test_arguments_are_by_order_and_by_name():
    f = from_sympy(X - 2 * Y, [Y, X])
    assert f(1.0, 10.0).item() == 8.0 and f(x=10.0, y=1.0).item() == 8.0 and list(f.__signature__.parameters) == ["y", "x"]
    assert f.symbols == (Y, X) and f.expr == X - 2 * Y and "x - 2*y" in f.__doc__ and repr(f) == "<formula x - 2*y of y, x>"
    assert list(from_sympy(Z + X + Y).__signature__.parameters) == ["x", "y", "z"]
    strange = from_sympy(sympy.Symbol("x'") + sympy.Symbol("lambda") * sympy.Symbol("x_"))
    assert list(strange.__signature__.parameters) == ["lambda_", "x_", "x__"] and strange(2.0, 3.0, 5.0).item() == 13.0


def test_shapes_broadcast():
    f = from_sympy(X * Y)
    assert f(np.ones((3, 1)), [1.0, 2.0]).tolist() == [[1.0, 2.0]] * 3 and f(2, 3).item() == 6.0
    assert from_sympy(sympy.Integer(5), [X])(np.zeros(3)).tolist() == [5.0] * 3 and from_sympy(X, [X, Y])(1.0, [0.0, 0.0]).tolist() == [1.0, 1.0]
    jacobian = from_sympy(sympy.Matrix([[X, Y], [1, X * Y]]))
    assert jacobian(2.0, 3.0).tolist() == [[2.0, 3.0], [1.0, 6.0]] and jacobian(np.ones(5), 3.0).shape == (5, 2, 2)
    assert from_sympy(sympy.Array([X, 2 * X]))(tensor([1.0, 2.0])).tolist() == [[1.0, 2.0], [2.0, 4.0]]
    assert from_sympy([X, Y])(1.0, 2.0).tolist() == [1.0, 2.0] and from_sympy(sympy.Integer(5))().item() == 5.0
    assert func.hessian(f)(tensor(1.0), tensor(2.0)).item() == 0.0 and func.vmap(f)(tensor([1.0, 2.0]), tensor([3.0, 4.0])).tolist() == [3.0, 8.0]


def test_dtypes_stay():
    f = from_sympy(pi * X / 3)
    assert f(tensor(1.0, dtype=symgrad.float32)).dtype is symgrad.float32
    assert f(tensor(1.0, dtype=symgrad.float32, symbol="x")).dtype is symgrad.float32
    assert f(3).dtype is symgrad.float64 and f(1j).dtype is symgrad.complex128


@pytest.mark.sweep
def test_arrays_of_symbols_matrices_and_indexed_bases():
    w = [sympy.Symbol(f"w_{i}", real=True) for i in range(3)]
    f = from_sympy(sum(s**2 for s in w), [w])
    assert f([1.0, 2.0, 3.0]).item() == 14.0 and func.grad(f)(tensor([1.0, 2.0, 3.0])).tolist() == [2.0, 4.0, 6.0]
    assert list(f.__signature__.parameters) == ["w"] and f(np.ones((4, 3))).shape == (4,)
    A, b = sympy.MatrixSymbol("A", 2, 2), sympy.IndexedBase("b")
    g = from_sympy(A[0, 1] * b[2] + X)
    assert list(g.__signature__.parameters) == ["A", "b", "x"] and g([[1, 2], [3, 4]], [0, 0, 5.0], 1.0).item() == 11.0
    assert from_sympy(A * A)([[1, 2], [3, 4]]).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    assert from_sympy(sympy.IndexedBase("c", shape=(2,))[1] * X, [sympy.IndexedBase("c", shape=(2,)), X])([1.0, 2.0], 3.0).item() == 6.0
    assert from_sympy(sympy.Trace(A))([[1, 2], [3, 4]]).item() == 5.0 and from_sympy(sympy.Determinant(A))([[1, 2], [3, 4]]).item() == -2.0
    assert from_sympy(A.inv())([[1.0, 2.0], [3.0, 4.0]]).numpy() == pytest.approx(np.array([[-2.0, 1.0], [1.5, -0.5]]), rel=1e-15)
    assert from_sympy(sympy.Lambda((X, Y), X - Y))(3.0, 1.0).item() == 2.0
    i = sympy.Symbol("i", integer=True)
    assert from_sympy(sympy.Sum(b[i] ** 2, (i, 0, 2)).doit())([1.0, 2.0, 3.0]).item() == 14.0


@pytest.mark.sweep
def test_a_named_tensor_gets_a_formula_with_exact_numbers():
    x = tensor(2.0, requires_grad=True, symbol="x")
    y = from_sympy(pi * X ** Rational(1, 3) + sympy.sqrt(2))(x)
    r = sympy.Symbol("x", real=True)
    assert y.expr == pi * r ** Rational(1, 3) + sympy.sqrt(2)
    y.backward()
    assert x.grad.expr == pi / (3 * r ** Rational(2, 3)) and x.grad.item() == pytest.approx(math.pi / 3 * 2 ** (-2 / 3), rel=1e-15)
    assert from_sympy(pi * X)(tensor(2.0)).expr is None and assignments(from_sympy(pi * X)(x))[-1][1] == pi * r
    assert symgrad.check(from_sympy(X * sympy.sin(pi * X) / 3), 0.3).verdict == "proved"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("given, symbols, error, words", [
    ("x + 1", None, TypeError, "text is not evaluated"), (b"x", None, TypeError, "text is not evaluated"),
    (None, None, TypeError, "not NoneType"),
    (sympy.mathieus(1, 2, X), None, Unknown, "no op computes mathieus, in mathieus.1, 2, x.; known are Abs, And"),
    (sympy.Function("g")(X), None, Unknown, "no op computes g"), (sympy.Integral(X**X, X), None, Unknown, "cannot evaluate"),
    (sympy.Sum(X**Z, (Z, 0, oo)), None, Unknown, "limits that are integers"), (sympy.Sum(X**Z, (Z, 0, 10**6)), None, Unknown, "1000001 terms"),
    (sympy.zoo * X, None, Unknown, "zoo has no numeric value"), (sympy.AccumBounds(0, 1) * X, None, Unknown, "no numeric value"),
    (sympy.Poly(X**2 + 1), None, TypeError, "not Poly"), (sympy.Interval(0, 1), None, TypeError, "not Interval"),
    (X + Y, [X], ValueError, "no parameter gives y; the symbols are x"), (X + sympy.Symbol("x", real=True), None, ValueError, "two symbols x"),
    (sympy.Symbol("x", real=True), [X], ValueError, "other assumptions"), (X, [X, X], ValueError, "given twice"), (X, ["x"], TypeError, "neither"),
    (sympy.IndexedBase("b")[sympy.Symbol("i", integer=True)], None, ValueError, "not a number from 0 on"),
    (sympy.MatrixSymbol("A", Z, Z)[0, 0], None, ValueError, "numbers for its shape"),
], ids=str)
def test_formulas_that_are_refused(given, symbols, error, words):
    with pytest.raises(error, match=words):
        from_sympy(given, symbols)


def test_calls_that_are_refused():
    f = from_sympy(X + Y)
    for args, error, words in [((1.0,), TypeError, "missing a required argument: 'y'"), ((1.0, 2.0, 3.0), TypeError, "too many"),
                               (([1.0, 2.0], [1.0, 2.0, 3.0]), ValueError, r"do not broadcast: x \[2\], y \[3\]"),
                               (("a", 1.0), TypeError, "not a supported dtype")]:
        with pytest.raises(error, match=words):
            f(*args)
    with pytest.raises(ValueError, match=r"the value of xs has the shape \[3\], which does not end in its shape \(2,\)"):
        from_sympy(X + Y, [[X, Y]])([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"has no element \[2\]"):
        from_sympy(sympy.IndexedBase("b")[2])([1.0, 2.0])


# Functions to formulas


def real(text):
    return sympy.sympify(text, locals={name: sympy.Symbol(name, real=True) for name in "x y w_0 w_1 p_w_0 p_w_1 p_b a".split()})


def test_numbers_arrays_and_trees():
    assert to_sympy(lambda x, y: np.exp(-x * x) / y) == real("exp(-x**2)/y")
    assert to_sympy(lambda w: w * 2, 2) == sympy.Array([2 * real("w_0"), 2 * real("w_1")])
    tree = to_sympy(lambda w, x: {"a": w @ w, "b": (x, 2.5, None)}, (2,), ())
    assert tree == {"a": real("w_0**2 + w_1**2"), "b": (real("x"), sympy.Float(2.5), None)}
    assert to_sympy(lambda p: p["w"].sum() * p["b"], {"w": 2, "b": ()}) == real("p_b*(p_w_0 + p_w_1)")
    assert to_sympy(lambda x, n=3, a=0.5: a * x**n) == real("a*x**3") and to_sympy(lambda *xs: xs[0] - xs[1], (), ()).free_symbols
    assert to_sympy(symgrad.hypot).free_symbols == {sympy.Symbol("input", real=True), sympy.Symbol("other", real=True)}
    assert to_sympy(lambda x: np.array([1.0, 2.0])) == sympy.Array([1, 2]) and to_sympy(tensor(3.0, symbol="x") ** 2) == real("x**2")
    assert to_sympy(lambda w: w.det() if hasattr(w, "det") else w[0, 0] * w[1, 1], (2, 2)) is not None


def test_points_lie_in_the_range():
    def branch(x):
        return x**2 if x > 1 else -x

    assert to_sympy(branch, at=[3.0]) == real("Piecewise((x**2, x > 1))") and to_sympy(branch, at={"x": 0.5}) == real("Piecewise((-x, x <= 1))")
    assert to_sympy(branch, domain={"x": (2, 5)}) == to_sympy(branch, domain={"x": sympy.Interval(2, oo)}) == to_sympy(branch, at=[3.0])
    assert to_sympy(lambda x: x if x > 0 else -x, domain={"x": POSITIVE}).args[0][0] == real("x")
    assert to_sympy(lambda x: 1.0 if x > 0 else 0.0) == real("Piecewise((1, x > 0))")
    assert to_sympy(tensor(3.0, symbol="x").relu()) == real("Max(x, 0)")
    assert to_sympy(lambda x, y: 1 / (x * y) if x > y else x, domain={"x": (1, 2), "y": (5, 6)}).args[0][0] == real("x")
    f = from_sympy(to_sympy(branch, at=[3.0]))
    assert f(3.0).item() == 9.0 and np.isnan(f(0.0).item())


def test_functions_of_other_kinds():
    cube = lambda w: (w**3).sum()  # noqa: E731
    assert to_sympy(func.grad(lambda x: x**3)) == 3 * real("x") ** 2
    assert to_sympy(func.hessian(cube), 2) == sympy.Array([[6 * real("w_0"), 0], [0, 6 * real("w_1")]])
    assert to_sympy(func.vmap(func.grad(lambda w: w**3)), 2) == sympy.Array([3 * real("w_0") ** 2, 3 * real("w_1") ** 2])
    assert to_sympy(np.hypot, (), ()).free_symbols == {sympy.Symbol("x1", real=True), sympy.Symbol("x2", real=True)}
    assert str(to_sympy(symgrad.nn.Linear(2, 1), 2)).count("args0_") == 2
    assert to_sympy(lambda w: w.sort().values, at=[[2.0, 1.0]]) == sympy.Array([real("w_1"), real("w_0")])


def test_text_is_parsed_and_never_evaluated():
    assert to_sympy("exp(sin(x))*y") == real("exp(sin(x))*y") and to_sympy(parsing.parse("x**2")) == real("x**2")
    with pytest.raises(parsing.ParseError, match="there is no function '__import__'"):
        to_sympy("__import__('os').system('true')")


@pytest.mark.parametrize("function, words", [
    (lambda x: float(x) * x, "no one formula"), (lambda x: x * symgrad.rand(()), "draws random numbers"),
    (lambda x, state=[]: x * (state.append(1) or len(state)), "keeps a state"), (lambda x, y: symgrad.stack([x, y]).sort().values, "sort and masks"),  # noqa: B006
    (lambda x, y: symgrad.stack([x, y])[symgrad.stack([x, y]) > 0.5], "masks")], ids=["float", "random", "state", "sort", "mask"])
def test_functions_without_one_formula_are_refused(function, words):
    with pytest.raises(ValueError, match=words):
        to_sympy(function)


@pytest.mark.parametrize("call, error, words", [
    (lambda: to_sympy(lambda x: "a"), TypeError, "returned str"), (lambda: to_sympy(3), TypeError, "expected a function"),
    (lambda: to_sympy(lambda x: x, 1, 2), TypeError, "does not take 2 shapes"),
    (lambda: to_sympy(lambda x: x, -1), TypeError, "a shape is a number or"),
    (lambda: to_sympy(lambda x: x, at={"z": 1.0}), TypeError, "has no argument z"),
    (lambda: to_sympy(lambda x: x, 2, at=[1.0]), ValueError, "has the shape"),
    (lambda: to_sympy(lambda x: x, domain={"x": (3, 2)}), ValueError, "excludes every point"),
    (lambda: to_sympy(lambda x: x, domain={"x": "R"}), TypeError, "the domain of x is 'R'; expected a pair"),
    (lambda: to_sympy(lambda x: x.argmax(), 3), TypeError, "depends on the numbers"),
    (lambda: to_sympy(lambda x: 1 / (x - x).item()), ZeroDivisionError, "division"),
    (lambda: to_sympy(b"x"), TypeError, "not bytes")], ids=named)
def test_functions_that_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.sweep
def test_the_error_for_a_deep_graph_names_assignments():
    def deep(x):
        for _ in range(3000):
            x = (x + 1).sin()
        return x

    with pytest.raises(RecursionError, match="assignments"):
        to_sympy(deep)


# Formulas as data


def test_tensors_of_formulas():
    t = tensor(X**2 + 1, {X: 3.0})
    assert t.item() == 10.0 and t.expr == X**2 + 1
    t.backward()
    assert t.leaves["x"].grad.item() == 6.0 and t.leaves["x"].grad.expr == 2 * X
    x = tensor([1.0, 2.0], requires_grad=True, symbol="q")
    (2 * tensor(X**2, {"x": x})).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0] and x.grad.expr == sympy.Array([4 * sympy.Symbol("q_0", real=True), 4 * sympy.Symbol("q_1", real=True)])
    t = tensor(X**2, {X: [1.0, 2.0]})
    assert t.tolist() == [1.0, 4.0] and str(t.expr) == "[x_0**2, x_1**2]"
    t = tensor(np.array([[X, 1], [X * Y, pi]]), {X: 2, Y: 3})
    assert t.tolist() == [[2.0, 1.0], [6.0, math.pi]] and t.expr == sympy.Array([[X, 1], [X * Y, pi]]) and set(t.leaves) == {"x", "y"}
    A, b = sympy.MatrixSymbol("A", 1, 2), sympy.IndexedBase("b")
    t = tensor(A[0, 1] * b[2], {A: [[1.0, 2.0]], b: [3.0, 4.0, 5.0]})
    assert t.item() == 10.0 and t.expr == A[0, 1] * b[2] and t.leaves["A"].shape == (1, 2)
    assert tensor(sympy.Matrix([X, Y]), {X: pi, Y: 1, Z: 5}).dtype is symgrad.float64


def test_numbers_of_sympy():
    assert tensor(Rational(1, 3)).item() == 1 / 3 and tensor(pi, dtype=symgrad.float32).dtype is symgrad.float32
    assert tensor(sympy.Integer(3)).dtype is symgrad.int64 and tensor(sympy.true).dtype is symgrad.bool and tensor(sympy.I).item() == 1j
    assert tensor([sympy.E, 1, 2.5]).tolist() == [math.e, 1.0, 2.5] and tensor(sympy.Matrix([[1, 2], [3, 4]])).tolist() == [[1, 2], [3, 4]]
    x = tensor(sympy.sqrt(2), requires_grad=True, symbol="x")
    assert x.expr == sympy.Symbol("x", real=True) and x.requires_grad


@pytest.mark.parametrize("call, error, words", [
    (lambda: tensor(X + Y, {X: 1.0}), ValueError, "tensor: y has no value"),
    (lambda: tensor(X), ValueError, r"as in tensor\(x, \{x: 1.0\}\)"),
    (lambda: tensor(X, 3.0), TypeError, "are a mapping"), (lambda: tensor(3.0, {X: 1.0}), TypeError, "the data has no formula"),
    (lambda: tensor(X, {X: 1.0}, symbol="y"), ValueError, "has its own symbols, x"),
    (lambda: tensor(sympy.mathieus(1, 2, X), {X: 1.0}), Unknown, "mathieus"),
    (lambda: tensor([X, [1.0]], {X: 1.0}), ValueError, "rectangular"), (lambda: tensor({X: 1.0}), TypeError, "could not read"),
    (lambda: tensor(object()), TypeError, "could not read")], ids=named)
def test_formulas_as_data_that_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_plan_is_a_call_of_an_op():
    assert plan(sympy.sin(X)) == ("sin", (X,)) and plan(X - Y) == ("sub", (X, Y)) and plan(sympy.Not(X > Y)) == ("le", (X, Y))
