"""The object carriers: each implements the protocol, and evaluates every rule of the registry to the values of the numeric carrier."""

import importlib
import inspect
import math

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from symgrad import autograd, func
from symgrad.carriers import PROTOCOL, numeric, precise, symbolic
from symgrad.carriers.special import FAMILIES
from symgrad.graph.op import REGISTRY, elementwise
from tests.support.exemptions import exempt
from tests.support.points import arrays, domain, examples, numbers, of_numbers

OBJECTS = {"symbolic": symbolic, "precise": precise}
MODULE_NAMES = {  # names of a carrier's module that are not part of the protocol
    "symbolic": {"Expressions", "ExactExpressions", "lift_value", "conjugate", "exact_number", "readable_number", "LARGEST"},
    "precise": {"Digits", "lift_value", "context", "working_precision", "GUARD", "is_precise"},
}
ELEMENTWISE = [(op, parameters) for op in REGISTRY.values() if op.kind == "elementwise" for parameters in examples(op)]
OTHERS = [(op, parameters) for op in REGISTRY.values() if op.kind in ("linear", "multilinear", "primitive") and op.name != "reference"
          and of_numbers(op) for parameters in op.docs.examples]  # a `reference` is any number that a rule may subtract: exact carriers take 0
TAILS = (1e-20, 1e-8, 0.5, 1.0, 20.0, 40.5)
X = sympy.Symbol("x", real=True)


def by_name(cases):
    return {"argvalues": cases, "ids": [f"{op.name}-{i}" for i, (op, _) in enumerate(cases)]}


class Closed:
    """A carrier with the functions of the protocol only."""

    def __init__(self, carrier):
        self.carrier = carrier

    def __getattr__(self, name):
        if name not in PROTOCOL:
            raise AttributeError(f"{name} is not in the protocol")
        return getattr(self.carrier, name)


def exact(x):
    """A SymPy number or boolean as an element of the precise carrier."""
    if isinstance(x, sympy.logic.boolalg.BooleanAtom):
        return bool(x)
    digits = 60
    if x.has(sympy.zeta):  # that of mpmath has an absolute precision
        size = precise.context.make_mpf(sympy.N(x, 15)._as_mpf_val(53))
        digits += min(400, max(0, -precise.context.mag(size)))
    return precise.context.make_mpf(sympy.N(x, digits, maxn=1000)._as_mpf_val(precise.context.prec))


def elements(cells):
    return cells.ravel().tolist()


def close(a, b, tolerance):
    """Whether two numbers agree relative to the second; truth values and zeros must be the same, and NaN agrees with nothing.

    What a float cannot represent is 0.
    """
    if isinstance(b, bool) or b == 0:
        return a == b
    return abs(a - b) <= tolerance * abs(b) or abs(b) < precise.context.ldexp(1, -1075) and a == 0


@pytest.mark.parametrize("name", OBJECTS)
def test_a_carrier_has_exactly_the_names_of_the_protocol(name):
    carrier = OBJECTS[name]
    library = {key for key, value in vars(carrier).items() if inspect.ismodule(value) or key in ("annotations", "Any", "Cells", "fold", "cache")}
    public = {key for key in vars(carrier) if not key.startswith("_")} - library
    assert public - MODULE_NAMES[name] == PROTOCOL


def test_special_functions_have_the_names_of_their_rows():
    for family, names in FAMILIES.items():
        assert [*importlib.import_module(f"symgrad.carriers.special.{family}").ROWS] == names.split()


def test_the_numeric_carrier_has_the_names_of_the_protocol():
    assert all(hasattr(numeric, name) for name in PROTOCOL)


def test_a_carrier_does_not_fall_through_to_its_library():
    for carrier in OBJECTS.values():
        assert not hasattr(carrier, "arcsin") and not hasattr(carrier, "arctan")


@pytest.mark.sampled(10)
@pytest.mark.parametrize("op, parameters", **by_name(ELEMENTWISE))
def test_elementwise_values(op, parameters):
    """At float arguments SymPy's value with fifty digits, that of the precise carrier and the float agree."""
    rng = np.random.default_rng(0)
    points = list(zip(*(numbers(domain(op, i), rng, 6) for i in range(op.arity)))) + list(op.docs.special)
    points += [(x,) * op.arity for x in TAILS if all(x in domain(op, i) for i in range(op.arity))]
    for point in points:
        digits = op.forward(Closed(precise), *map(precise.lift_value, point), *parameters)
        machine = op.forward(numeric, *map(np.float64, point), *parameters)
        true = digits.item()
        if op.name not in exempt("closed"):  # their digits are compared with mpmath's in test_special_gamma_functions.py
            formula = op.forward(Closed(symbolic), *(symbolic.lift_value(x, exact=True) for x in point), *parameters)
            assert formula.shape == digits.shape == ()
            true = exact(formula.item())
        assert close(digits.item(), true, 1e-45), (point, digits, true)
        assert close(precise.lift_value(machine).item(), true, 1e-14), (point, machine, true)


@pytest.mark.sampled(47)
@pytest.mark.parametrize("op, parameters", **by_name(OTHERS))
def test_other_values(op, parameters):
    """Structural ops and reductions, on arrays; numbers are substituted for symbols in the results."""
    given = arrays(op, np.random.default_rng(1))
    machine = np.asarray(call(op, numeric, given, parameters))
    digits = call(op, Closed(precise), [precise.lift_value(x) for x in given], parameters)
    assert digits.shape == machine.shape
    for a, b in zip(elements(precise.lift_value(machine)), elements(digits)):
        assert abs(a - b) <= 1e-14 * max(1, abs(b))
    if op.name in exempt("formula"):
        return
    names, values = [], {}
    for i, x in enumerate(given):
        names.append(symbolic.ExactExpressions.fill([sympy.Symbol(f"{'xyzuvw'[i]}{k}", real=True) for k in range(x.size)], x.shape))
        if x.dtype == bool:
            names[-1] = symbolic.lift_value(x, exact=True)
        else:
            values.update(zip(elements(names[-1]), elements(symbolic.lift_value(x, exact=True))))
    formula = call(op, Closed(symbolic), names, parameters)
    assert formula.shape == machine.shape
    for a, b in zip(elements(formula), elements(digits)):
        assert close(exact(a.xreplace(values)), b, 1e-45)


def call(op, xp, given, parameters):
    return op.forward(xp, *((given,) if op.arity is None else given), *parameters)


def test_the_comparison_of_carriers_can_fail():
    def wrong(xp, x):
        return xp.sin(x) * (1 + 1e-12 * (xp.lift_value is not symbolic.lift_value))

    op = elementwise("slightly_wrong_sine", wrong, lambda xp, y, x: xp.cos(x))
    del REGISTRY[op.name]
    true = exact(op.forward(symbolic, symbolic.lift_value(1.0, exact=True)).item())
    assert not close(op.forward(precise, precise.lift_value(1.0)).item(), true, 1e-45)
    with pytest.raises(AttributeError, match="lift_value is not in the protocol"):
        op.forward(Closed(symbolic), symbolic.lift_value(1.0))


def test_argmax_has_no_formula():
    for name in ("argmax", "argmin"):
        with pytest.raises(TypeError, match=f"{name}: .* no expression"):
            getattr(symbolic, name)(symbolic.lift_value(np.ones(2)), None, False)


@pytest.mark.parametrize("carrier", OBJECTS.values(), ids=OBJECTS)
class TestCells:
    def test_every_operation_returns_cells(self, carrier):
        x = carrier.lift_value(np.arange(6.0).reshape(2, 3))
        kind, zero = type(x), carrier.lift_value(3.0)
        operations = (x[0, 0], x[0], x + 1, 1 - x, -zero, zero * zero, zero**2, 1 / zero, x.sum())
        reductions = (carrier.sum(x), carrier.prod(x, (0, 1)), carrier.amax(x), carrier.trace(x[:, :2]), carrier.dot(x[0], x[0]),
                      carrier.einsum("ij->", [x]), carrier.sum_to_size(x, ()))
        others = (carrier.exp(zero), carrier.where(carrier.gt(zero, 0), zero, 0), carrier.stack([zero, zero], 0), carrier.zeros_like(zero),
                  carrier.ones_like(x, ()), carrier.broadcast_to(zero, (2, 2)), carrier.copy(zero), carrier.tril(x), carrier.roll(x, 1, None))
        for out in operations + reductions + others:
            assert type(out) is kind

    def test_numbers_become_elements(self, carrier):
        x = carrier.lift_value(np.ones((2, 2)))
        element = type(x[0, 0].item())
        x[0, 0] = 0
        for out in (x, carrier.zeros_like(x), carrier.eye_like(x, 3), carrier.put(x, 0, 0, False), carrier.tril(x), carrier.sum(x[:0]),
                    carrier.prod(x[:0])):
            for e in elements(out):
                assert isinstance(e, sympy.Number if carrier is symbolic else element)

    def test_results_do_not_share_memory_with_arguments(self, carrier):
        x = carrier.lift_value(np.arange(3.0))
        total = x + 0
        total += x
        out = carrier.put(x, 7, 0, False)
        assert elements(x) == [0, 1, 2] and elements(total) == [0, 2, 4] and elements(out) == [7, 1, 2]

    def test_an_index_may_name_an_element_twice(self, carrier):
        g = carrier.lift_value(np.array([1.0, 2.0, 4.0]))
        assert elements(carrier.place(g, [0, 2, 0], (3,))) == [5, 0, 2]

    @pytest.mark.parametrize("a, b", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 1)),
                                      ((4, 1, 2, 3), (5, 3, 2))])
    def test_matmul_has_the_shapes_of_numpy(self, carrier, a, b):
        a, b = (np.arange(1.0, 1 + np.prod(shape)).reshape(shape) for shape in (a, b))
        out = carrier.matmul(carrier.lift_value(a), carrier.lift_value(b))
        assert np.array_equal(out.astype(float), np.matmul(a, b)) and out.shape == np.matmul(a, b).shape

    @pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,jk->", "ij,kj->jik", "ij,jk,kl->il", "ij,j,k->ki", "ii->i", "ii->", "iji->j", "ij->ji",
                                          ",i->i"])
    def test_einsum_agrees_with_numpy(self, carrier, equation):
        terms = equation.split("->")[0].split(",")
        given = [np.arange(1.0, 1 + 2 ** len(term)).reshape((2,) * len(term)) for term in terms]
        out = carrier.einsum(equation, [carrier.lift_value(x) for x in given])
        assert np.array_equal(out.astype(float), np.einsum(equation, *given))


def test_numbers_are_printed_in_decimal_form():
    shown = {2.0: "2*x", 0.1: "0.1*x", -0.0: "0", 7: "7*x", np.float32(0.5): "0.5*x", 1e300: "1.0e+300*x"}
    assert {v: str(symbolic.lift_value(v).item() * X) for v in shown} == shown
    assert symbolic.lift_value(1 + 2j).item() == 1 + 2 * sympy.I
    assert symbolic.lift_value(np.array([True, False])).tolist() == [sympy.true, sympy.false]
    assert symbolic.lift_value(np.inf).item() == sympy.oo and symbolic.lift_value(np.nan).item() is sympy.nan


def test_exact_numbers():
    for value in (0.1, 1e300, 5e-324, -1 / 3):
        assert symbolic.lift_value(value, exact=True).item() == sympy.Rational(*value.as_integer_ratio())
        assert precise.lift_value(value).item() == precise.context.mpf(value.as_integer_ratio()[0]) / value.as_integer_ratio()[1]
    half = symbolic.lift_value(0.5, exact=True)
    assert (half * 0.1).item() == sympy.Rational(0.1) / 2, "a number that meets exact cells becomes exact"
    assert symbolic.maximum(half, 0.75).item() == sympy.Rational(3, 4)


@pytest.mark.parametrize("x, nearest", [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (-2.5, -2), (2.4, 2), (-2.6, -3), (7.0, 7)])
def test_halves_round_to_even(x, nearest):
    assert symbolic.round(symbolic.lift_value(x, exact=True)).item() == nearest == precise.round(precise.lift_value(x)).item()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", range(6))
def test_derivatives_of_sinc(order):
    """Near 0, where the closed form cancels, against the power series, otherwise against SymPy."""
    u = sympy.Symbol("u")
    series = sum((-1) ** k * (sympy.pi * u) ** (2 * k) / sympy.factorial(2 * k + 1) for k in range(12)).diff(u, order)
    closed = sympy.diff(sympy.sin(sympy.pi * u) / (sympy.pi * u), u, order)
    for x in (0.0, 1e-30, 1e-8, 1e-5, 0.3, 1.25, 2.5, 30.7, 1e10 + 0.25):
        true = (series if x < 1e-4 else closed).subs(u, sympy.Rational(x))
        assert close(precise.sinc_derivative(precise.lift_value(x), order).item(), exact(true), 1e-45)
        assert close(exact(symbolic.sinc_derivative(symbolic.lift_value(x, exact=True), order).item()), exact(true), 1e-40)
    assert precise.sinc_derivative(precise.lift_value(3.0), 0).item() == 0


def test_cancellation_raises_the_working_precision():
    half = -math.log(2.0)  # so that exp(half) + exp(half) is 1 up to rounding
    true = exact(symbolic.logaddexp(symbolic.lift_value(half, exact=True), half).item())
    assert abs(true) < 1e-16
    assert close(precise.logaddexp(precise.lift_value(half), half).item(), true, 1e-50)
    assert close(precise.logsumexp(precise.lift_value(np.full(2, half))).item(), true, 1e-50)


def test_real_arguments_outside_a_domain_give_nan():
    minus, zero = precise.lift_value(-2.0), precise.lift_value(0.0)
    for name in ("log", "log1p", "log2", "log10", "sqrt", "rsqrt", "asin", "acos", "acosh", "atanh"):
        assert precise.isnan(getattr(precise, name)(minus)).item()
    assert precise.isnan(precise.pow(minus, 0.5)).item() and precise.isnan(zero / zero).item()
    assert (1 / zero).item() == precise.context.inf == -(-1 / zero).item() == precise.pow(zero, -1).item() == precise.rsqrt(zero).item()


def test_digits_can_be_set():
    with precise.working_precision(100):
        third = (precise.lift_value(1.0) / 3).item()
        assert abs(third * 3 - 1) < precise.context.mpf("1e-99") and precise.context.dps == 100
    assert precise.context.dps == 60


def test_a_guarded_where_simplifies_to_one_piecewise():
    x = symbolic.Expressions.fill([X], ())
    zero = symbolic.eq(x, 0)
    safe = symbolic.where(zero, 0, 1 / symbolic.where(zero, 1, x)).item()
    assert safe == sympy.Piecewise((0, sympy.Eq(X, 0)), (1 / X, True))
    assert symbolic.where(symbolic.lift_value(np.array([True, False])), x, -x).tolist() == [X, -X]
    assert symbolic.where(x, 1, 2).item() == sympy.Piecewise((1, sympy.Ne(X, 0)), (2, True))
    assert symbolic.indicator(symbolic.gt(x, 0), x).item() == sympy.Piecewise((1, X > 0), (0, True))


def test_comparisons_by_operators_are_those_of_the_protocol():
    """Rules may use either; `==` of two formulas compares the numbers."""
    x = symbolic.Expressions.fill([X], ())
    for found, name in ((x == 0, "eq"), (x != 0, "ne"), (x < 0, "lt"), (x <= 0, "le"), (x > 0, "gt"), (x >= 0, "ge")):
        assert found.item() == getattr(symbolic, name)(x, 0).item() and found.item().free_symbols == {X}
    inside = symbolic.where((x > -1) & ~(x >= 1), x, 0).item()
    assert inside == sympy.Piecewise((X, (X > -1) & (X < 1)), (0, True))


REAL_CUTS = {"asin": (2.3, -1.7), "acos": (2.3, -1.7), "acosh": (0.3, -0.4, -2.6), "atanh": (2.3, -1.7), "log": (-2.1,), "log1p": (-3.1,),
             "log2": (-2.1,), "log10": (-0.3,), "sqrt": (-2.1,), "rsqrt": (-0.7,)}


def slope(f, z):
    """The derivative in forward mode."""
    return func.jvp(f, (z,), (symgrad.ones_like(z),))[1]


IMAGINARY_CUTS = {"asinh": (2.3, -1.7), "atan": (2.3, -1.7)}


@pytest.mark.parametrize("side", [0.0, -0.0])
@pytest.mark.parametrize("name", [*REAL_CUTS, *IMAGINARY_CUTS])
def test_derivatives_on_a_cut_are_those_of_the_side_of_the_value(name, side):
    f, turned = getattr(symgrad, name), name in IMAGINARY_CUTS

    def at(x):
        return complex(side, x) if turned else complex(x, side)

    for x in (IMAGINARY_CUTS if turned else REAL_CUTS)[name]:
        z = symgrad.tensor(at(x))
        above, below = (f(symgrad.tensor(at(x + h))).item() for h in (1e-5, -1e-5))
        true = (above - below) / (2e-5j if turned else 2e-5)
        leaf = z.clone().requires_grad_()
        (back,) = autograd.grad(f(leaf).real, leaf)
        np.testing.assert_allclose([slope(f, z).item(), back.conj().item()], [true] * 2, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("z", [0j, 1e-9 + 1e-9j, -3e-7j, 1e-6 - 1e-6j, 0.3 + 0.2j, -1.7 + 0.4j, 5.5 - 1j, 0.5 + 1e-8j, 1.3j])
def test_complex_derivatives_of_sinc(z):
    f, at, wanted = symgrad.sinc, symgrad.tensor(z), []
    for order in range(4):
        with mpmath.workdps(50):
            wanted.append(complex(mpmath.diff(mpmath.sincpi, mpmath.mpmathify(z), order)))
        found = f(at).item()
        assert abs(found - wanted[-1]) <= 2e-14 * max(abs(wanted[-1]), abs(z), 1e-12)
        f = lambda w, f=f: slope(f, w)  # noqa: E731
    leaf = at.clone().requires_grad_()
    assert abs(autograd.grad(symgrad.sinc(leaf).real, leaf)[0].conj().item() - wanted[1]) <= 2e-14 * max(abs(wanted[1]), 1e-12)


@pytest.mark.parametrize("parameters", [*REGISTRY["interpolated"].docs.examples, ((5, 7), False, None, "bilinear", True),
                                        ((3, 2), True, None, "bilinear", False)])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_whole_numbers_are_resampled_with_weights_that_are_not(parameters, dtype):
    x = (np.arange(12).reshape(2, 2, 3) % 5).astype(dtype)
    found = REGISTRY["interpolated"].forward(numeric, x, *parameters)
    assert np.array_equal(found, REGISTRY["interpolated"].forward(numeric, x.astype(np.float64), *parameters))
