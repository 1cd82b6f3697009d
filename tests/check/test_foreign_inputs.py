"""The inputs of cross-checks: detection of frameworks, arguments, domains and their points, formulas, and errors for invalid input."""

import functools
import math
import sys
import types

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad
from symgrad.checks.cross import cross_check
from symgrad.frameworks.calling import call_of
from symgrad.frameworks.naming import framework_of, is_foreign
from symgrad.graph.domains import POSITIVE, REAL, Domain, Interval
from symgrad.reference.sources import ExpressionSource, differences
from symgrad.sampling.conditions import boundary_numbers
from symgrad.sampling.domain_reader import domain_of, domain_text, domains_of, parse_domains, simple_number
from symgrad.sampling.points import draw_points, edge_points
from symgrad.symbolic.parameters import parse_formula
from tests.support.lines import lines


def sine(x):
    return np.sin(x)


SINE = sine, np.cos


# Frameworks

def module(name, **contents):
    out = types.ModuleType(name)
    vars(out).update(contents)
    return out


def in_module(source, **known):
    """The function f of a source whose globals are these."""
    namespace = {"__name__": "users_file", **known}
    exec(source, namespace)
    return namespace["f"]


def test_the_framework_is_found_from_the_objects_of_names_in_the_code():
    torch, jax = module("torch"), module("jax.numpy")
    assert framework_of(in_module("def f(x): return torch.exp(x)", torch=torch)) == "torch"
    assert framework_of(in_module("def f(x): return g(x)\ndef g(x): return t.exp(x)", t=torch)) == "torch"
    assert framework_of(in_module("f = lambda x: [jnp.exp(y) for y in x]", jnp=jax)) == "jax"
    assert framework_of(in_module("def f(x):\n    import jax\n    return jax.grad(x)")) == "jax"
    assert framework_of(in_module("def f(x): return np.exp(x)", np=module("autograd.numpy"))) == "autograd"
    assert framework_of(in_module("def f(x): return torch.exp(x)", torch=symgrad)) == "symgrad"  # import symgrad as torch
    assert framework_of(in_module("def f(x): return x.numpy() + x.jax", numpy=None)) is None  # attributes are no names
    assert framework_of(in_module("def f(x): return x", torch=torch)) is None  # not used in it
    assert framework_of(np.tanh) == "numpy" and framework_of(math.sin) is None


def test_the_framework_is_found_through_classes_closures_wrappers_and_partial():
    torch = module("torch")

    def made(inner):
        return lambda x: inner(x)

    base = type("Function", (), {"apply": classmethod(lambda cls, *xs: xs), "__module__": "torch.autograd.function"})
    mine = type("Mine", (base,), {"__module__": "users_file", "forward": staticmethod(lambda ctx, x: x)})
    inner = in_module("def f(x): return torch.exp(x)", torch=torch)
    wrapped = functools.wraps(inner)(lambda *args: None)

    class Model:
        def __call__(self, x):
            return inner(x)

    for function in (made(inner), mine.apply, mine, wrapped, functools.partial(inner, 1.0), Model(), Model().__call__):
        assert framework_of(function) == "torch", function
    assert is_foreign(inner) and is_foreign(SINE) and not is_foreign(np.sin) and not is_foreign(symgrad.sin)


def test_functions_of_scipy_are_those_of_numpy():
    from scipy.optimize import rosen, rosen_der

    assert framework_of(rosen) == framework_of(rosen_der) == framework_of(lambda x: rosen(x)) == "numpy"


@pytest.mark.sweep
def test_an_explicit_framework_wins():
    function = in_module("def f(x): return x * x if x is not None else torch", torch=module("torch"))
    assert framework_of(function) == "torch"
    report = cross_check(function, formula="x**2", framework="symgrad", points=3)
    assert report.verdict == "verified" and report.framework == "symgrad"
    assert symgrad.check(function, formula="x**2", framework="numpy", order=1, points=3).framework == "numpy"
    with pytest.raises(ValueError, match="framework is 'tensorflow'; expected one of 'torch', 'jax', 'autograd', 'numpy', 'symgrad'"):
        cross_check(function, formula="x**2", framework="tensorflow")


@pytest.mark.parametrize("name", ["torch", "jax", "autograd"])
def test_a_framework_that_is_not_installed_is_named_with_its_extra(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"{name}, which is not installed: pip install 'symgrad\[parity\]'"):
        cross_check(lambda x: x, formula="x", framework=name)


def test_a_cross_check_needs_no_hypothesis(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    assert cross_check(SINE, formula="sin(x)", order=1, points=5).verdict == "verified"


# Arguments

def test_which_arguments_are_differentiated():
    def f(x, y=2.0, n: int = 3, k=4, mode="sum", *, scale=1.0):
        return x

    def call(inputs=(), wrt=None, names=None):
        found = call_of(f, "f", inputs, wrt, names)
        return found.names, found.fixed

    assert call() == (["x"], {}) and call(names=["x"]) == (["x"], {})
    assert call(names=["x", "y"]) == (["x", "y"], {}) and call(names=["x", "n", "scale"]) == (["x", "scale"], {"n": 3})
    assert call([1, 2.5, 3]) == (["x", "y"], {"n": 3}) and call({"x": [1, 2], "mode": "mean"}) == (["x"], {"mode": "mean"})
    assert call({"x": 1.0, "y": 2.0}, wrt=["y"]) == (["y"], {"x": 1.0})
    found = call_of(f, "f", {"x": 1.0, "scale": 3.0}, None, None)
    assert found([10.0, 30.0]) == 10.0 and found.names == ["x", "scale"]
    assert call_of(lambda a, b=10.0, c=100.0: (a, b, c), "f", {"a": 1.0, "c": 2.0}, None, None)([3.0, 4.0]) == (3.0, 10.0, 4.0)
    assert call_of(max, "max", (), None, ["a", "b"])([1, 2]) == 2  # which does not say what it takes


@pytest.mark.parametrize("what, error, message, call", lines("bad_inputs"))
def test_errors_for_bad_input_say_what_is_expected(what, error, message, call):
    with pytest.raises((ValueError, TypeError), match=message) as raised:
        eval(call)
    assert raised.type.__name__ == error


def test_a_domain_where_the_formula_has_no_value_is_an_error():
    report = cross_check((np.log, lambda x: 1 / x), formula="log(x)", domain="negative", points=5, order=1)
    assert report.verdict == "not checkable" and "no finite value at any of" in report.reason and "x in (-inf, 0)" in report.reason


# Domains

@pytest.mark.parametrize("spec, text", [
    ((0, 1), "[0, 1]"), ([-1.5, 2], "[-1.5, 2]"), ("positive", "(0, inf)"), ("Nonzero", "(-inf, inf) without 0"), ("-1..1", "[-1, 1]"),
    ("(0, 1]", "(0, 1]"), ("[0, inf)", "[0, inf)"), ("0..2*pi", "[0, 6.28319]"), ("-inf..0", "(-inf, 0]"), ("{-1, 1}", "{-1} or {1}"),
    ("unit", "[0, 1]"), (POSITIVE, "(0, inf)"), ((0, math.inf), "[0, inf)"), (sympy.Interval.open(0, 1), "(0, 1)"), (sympy.S.Reals, "(-inf, inf)"),
    (sympy.Union(sympy.Interval(-2, -1), sympy.Interval(1, 2)), "[-2, -1] or [1, 2]"), (sympy.FiniteSet(-1, 1), "{-1} or {1}"),
    (sympy.S.Reals - sympy.FiniteSet(0), "(-inf, inf) without 0"), ("integer", "(-inf, inf), whole numbers"),
    (sympy.S.Naturals, "[1, inf), whole numbers")])
def test_domains_are_read_in_every_form(spec, text):
    found = domain_text(domain_of(spec))
    assert found == text or text == "(-inf, inf) without 0" and found == "(-inf, 0) or (0, inf)"  # SymPy writes it so


@pytest.mark.parametrize("spec", ["positiv", "1", "0..x", "__import__('os')", "0,1", 3.0, (1, 2, 3), None, ("a", "b"),
                                  sympy.ConditionSet(sympy.Symbol("x"), sympy.Symbol("x") > 0)])
def test_invalid_domains_are_errors(spec):
    with pytest.raises(TypeError, match="expected a pair|can be drawn from"):
        domain_of(spec, "x")


@pytest.mark.parametrize("spec", [(1, 0), "(0, 0)", sympy.S.EmptySet, "{}", Domain("none", (Interval(0.2, 0.8),), integer=True),
                                  Domain("none", (Interval(1.0, 1.0),), excluded=(1.0,))])
def test_a_domain_without_points_is_an_error(spec):
    with pytest.raises(ValueError, match="excludes every point; give one with points in it"):
        domain_of(spec, "x")


def test_domains_of_several_arguments():
    found = domains_of({"x": "positive"}, ["x", "y"])
    assert found["x"] is POSITIVE and found["y"] is REAL
    assert domains_of((0, 1), ["x", "y"])["y"] == domain_of((0, 1)) and domains_of(None, ["x"])["x"] is REAL
    assert parse_domains("x=(0, 1],y=positive, z={-1,1}") == {"x": "(0, 1]", "y": "positive", "z": "{-1,1}"}
    for text in ("x", "=1..2", "x=", "x=1..2,x=positive", "1x=real"):
        with pytest.raises(ValueError, match="is not a domain|is given twice"):
            parse_domains(text)


@pytest.mark.sweep
@settings(max_examples=40, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6), st.booleans(), st.booleans(), st.integers(0, 9))
def test_points_of_any_interval_lie_in_it(low, width, open_low, open_high, seed):
    domain = Domain("any", (Interval(low, low + width, open_low, open_high),))
    if simple_number(domain) is None:
        return
    points = draw_points([domain], 13, seed) + edge_points([domain], np.array([simple_number(domain)]), [], 50, True)
    assert points and all(p[0] in domain for p in points)


def test_the_special_points_hold_ends_zeros_tails_subnormals_and_ties():
    (numbers,) = np.array(edge_points([REAL], np.array([1.0]), [], 60, True)).T
    assert {0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-300, 1e-8, 20.0, -1000.0, 1e8} <= set(numbers) and any(np.signbit(x) and x == 0 for x in numbers)
    assert not any(0 < abs(x) < 2.2e-308 for x in np.ravel(edge_points([REAL], np.array([1.0]), [], 60, False)))
    numbers = set(np.ravel(edge_points([domain_of((2, 3))], np.array([2.5]), [], 60, True)))
    assert {2.0, 3.0, float(np.nextafter(2, 3)), 2 * (1 + 2.0**-10)} <= numbers
    numbers = set(np.ravel(edge_points([domain_of("(0, 1e300]")], np.array([1.0]), [], 60, True)))
    assert {1e300, 1e200, 1e150, 5e-324} <= numbers and 0.0 not in numbers
    pairs = {tuple(p) for p in edge_points([REAL, POSITIVE], np.array([1.0, 1.0]), [], 80, True)}
    assert {(0.0, 1.0), (20.0, 20.0), (1.0, 20.0), (-20.0, 1.0)} <= pairs


def test_the_places_of_kinks_and_poles_are_found_in_the_formula():
    x, y = (sympy.Symbol(s, real=True) for s in "xy")
    base = np.array([1.0, 5.0])
    places = {(k, v) for k, v in boundary_numbers([sympy.Abs(x - 3) + 1 / (y + 7) + sympy.Max(x, y**2 - 24)], ["x", "y"], base)}
    assert {(0, 3.0), (1, -7.0), (0, float(np.nextafter(3, 4))), (1, 5.0), (0, 1.0)} <= places
    assert boundary_numbers([sympy.sin(x)], ["x"], base) == []
    assert {0.0, math.pi, -math.pi} <= {v for _, v in boundary_numbers([sympy.Abs(sympy.sin(x))], ["x"], base)}
    calls = []
    report = cross_check((lambda x: calls.append(float(x)) or abs(x - 3.3), lambda x: np.sign(x - 3.3)), formula="abs(x - 3.3)", order=1, points=1)
    assert report.verdict == "verified" and 3.3 in calls and report.points.kinks >= 1


# Formulas and the truth


def truth(text, point, order=2):
    e, names = parse_formula(text)
    found = ExpressionSource([e], names).reference_values([np.float64(x) for x in point], order, order, np.ones(len(point)))
    return {t.index: t.value for t in found.entries}, found


def test_reference_values_have_their_digits_where_fifty_do_not_suffice():
    found, _ = truth("log(1 + exp(-x))", [800.0])
    with mpmath.workdps(40):
        small = mpmath.exp(-800)
        assert all(abs(value / expected - 1) < mpmath.mpf("1e-28") for value, expected in zip(found.values(), (small, -small, small)))
    found, _ = truth("sinc(x)", [1e-5], 3)
    u = mpmath.mpf(1e-5)
    with mpmath.workdps(30):
        expected = mpmath.pi**4 * u / 5 * (1 - 5 * (mpmath.pi * u) ** 2 / 42)
        assert abs(found[0, 0, 0] / expected - 1) < 1e-15
    assert truth("log(1 + exp(-x))*exp(x) + 5", [800.0])[0][()] == pytest.approx(6.0, abs=1e-15)  # what is lost comes back large
    assert truth("(x + 1)**2 - x**2 - 2*x - 1", [0.3])[0] == {(): 0, (0,): 0, (0, 0): 0}


# Finite differences

@settings(max_examples=30, deadline=None)
@given(st.floats(-3, 3), st.sampled_from([(np.exp, np.exp), SINE, (np.tanh, lambda x: 1 / np.cosh(x) ** 2), (lambda x: x**3, lambda x: 3 * x * x)]))
def test_the_error_of_a_difference_is_within_a_few_times_its_bound(x, pair):
    (found,), (bound,) = differences(lambda v: pair[0](v[0]), np.array([x]))
    assert abs(found - pair[1](x)) <= 20 * bound and bound < 1e-7


@pytest.mark.sweep
def test_differences_of_equal_values_are_undecided():
    found, bound = differences(lambda v: 2 * np.sin(v[0] / 2) ** 2, np.array([1e-300]), np.array([1e-300]))
    assert found == 0 and bound > 1e-300
    report = symgrad.check(lambda x: 2 * np.sin(x / 2) ** 2, formula="1-cos(x)", order=1, domain="positive")
    assert report.verdict == "verified", report
