"""Formulas of tensors: their values are those of the tensors, their derivatives agree with SymPy's, and they are computed on demand only."""

import gc
import math
import subprocess
import sys
import weakref

import numpy as np
import pytest
import sympy

import symgrad
from symgrad import autograd
from symgrad.formulas.expressions import formula, names
from tests.support.lines import lines

x, y, z = sympy.symbols("x y z", real=True)
POINT = {"x": 0.7, "y": 1.3}


def leaves(**values):
    return tuple(symgrad.tensor(v, requires_grad=True, symbol=name) for name, v in values.items())


def numbers(*tensors):
    """The exact values of the symbols of named leaves."""
    return {sympy.Symbol(name, real=True): sympy.Rational(float(v))
            for t in tensors for name, v in zip(names(t._node), np.asarray(t.value).ravel())}


def evaluated(expr, values):
    """An expression, or an Array of them, as an array of floats."""
    flat = sympy.flatten(expr.tolist()) if isinstance(expr, sympy.NDimArray) else [expr]
    return np.array([float(e.subs(values).evalf(30, maxn=400)) for e in flat])


def substituted(lines, count):
    """The last `count` equations of a let-form with all intermediate values substituted."""
    known = {}
    for symbol, expr in lines:
        known[symbol] = expr.xreplace(known)
    return [known[symbol] for symbol, _ in lines[len(lines) - count:]]


def proved_equal(a, b, values):
    """Whether two expressions differ by a literal 0 and are equal at a point, since SymPy may simplify to a wrong 0."""
    return sympy.simplify((a - b).rewrite(sympy.exp)) == 0 and np.allclose(evaluated(a, values), evaluated(b, values), rtol=1e-14, atol=0)


# The formula of a value


def test_a_scalar_has_an_expression():
    a, b = leaves(x=3.0, y=2.0)
    assert a.expr == x and (a * b).expr == x * y and (symgrad.exp(-a) * a**2 + 1).expr == x**2 * sympy.exp(-x) + 1


def test_elements_of_arrays_have_indices():
    v, m = leaves(v=[1.0, 2.0], m=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert str(v.expr) == "[v_0, v_1]" and m.expr.shape == (2, 3) and str(m.expr[1, 2]) == "m_1_2"
    assert str((v @ m).expr) == "[m_0_0*v_0 + m_1_0*v_1, m_0_1*v_0 + m_1_1*v_1, m_0_2*v_0 + m_1_2*v_1]"
    assert isinstance(m.T.expr, sympy.ImmutableDenseNDimArray) and m.T.expr.shape == (3, 2)
    assert m[:0].expr.shape == (0, 3)


def test_without_a_symbol_the_expression_is_none():
    a = symgrad.tensor(2.0, requires_grad=True)
    b = a * 3
    b.backward()
    for t in (a, b, a.grad, symgrad.ones(2)):
        assert t.expr is None and t.assignments() == [] and t.conditions == ()


def test_unnamed_leaves_are_constants():
    (a,), w = leaves(x=3.0), symgrad.tensor(2.5, requires_grad=True)
    out = a * w.exp() + w * 2
    assert out.expr.free_symbols == {x} and math.isclose(out.expr.subs(x, 3), out.item())
    out.backward()
    assert out.expr.free_symbols == {x}, "the unnamed part of the graph was freed, the formula was not"
    assert w.grad.expr is None and math.isclose(a.grad.expr, math.exp(2.5))


def test_constants_keep_their_decimal_form():
    (a,) = leaves(x=3.0)
    assert str(0.1 * a) != str((0.1 * a).expr) == "0.1*x"
    assert ((a * 2.0) ** 3.0).expr == 8 * x**3 and (a / 2).expr == x / 2 and str((a + np.float32(0.5)).expr) == "x + 0.5"
    assert a.exp2().expr == 2**x and symgrad.log2(a).expr == sympy.log(x) / sympy.log(2)


def test_exact_constants():
    (a,) = leaves(x=3.0)
    assert formula(0.1 * a, exact=True).item() == sympy.Rational(0.1) * x
    out = a.clamp(max=0.3).square()
    out.backward()
    assert formula(out, exact=True).item() == sympy.Min(x, sympy.Rational(0.3)) ** 2 and formula(a.grad, exact=True).item().has(sympy.Rational(0.3))


def test_a_formula_is_cached_on_its_node():
    (a,) = leaves(x=3.0)
    out = a.sin() + 1
    assert out.expr is out.expr and formula(out) is formula(out)
    out.backward()
    assert formula(a.grad) is formula(a.grad)
    from symgrad.formulas.expressions import _formulas

    before = len(_formulas[False])
    del out
    a.grad = None
    assert len(_formulas[False]) == before - 2


def test_no_grad_records_no_formula():
    (a,) = leaves(x=3.0)
    with symgrad.no_grad():
        assert (a * 2).expr is None


def test_a_symbol_used_twice_for_different_leaves():
    a, b, c = symgrad.tensor(1.0, symbol="x"), symgrad.tensor(2.0, symbol="x"), symgrad.tensor([1.0, 2.0], symbol="v")
    assert a.expr == b.expr == x, "each by itself is fine"
    out = a * b
    for ask in (lambda: out.expr, out.assignments):
        with pytest.raises(ValueError, match="x is a symbol used twice for different leaves"):
            ask()
    with pytest.raises(ValueError, match="v_1 is a symbol used twice"):
        (c * symgrad.tensor(1.0, symbol="v_1")).expr
    before = a * 2
    assert (a.requires_grad_() + before).expr == 3 * x, "one tensor, two leaves in time"


def test_symbols_of_complex_leaves_are_not_real():
    w = symgrad.tensor(1 + 2j, symbol="w")
    assert w.expr == sympy.Symbol("w") and not w.expr.is_real and (w * 2j).expr == 2 * sympy.I * w.expr


def test_the_formula_of_where_is_piecewise():
    (a,) = leaves(x=-3.0)
    out = symgrad.where(a > 0, a, -2 * a)
    out.backward()
    assert (a > 0).expr == (x > 0) and out.expr == sympy.Piecewise((x, x > 0), (-2 * x, True)) and out.conditions == ()
    assert a.grad.expr.subs(x, -3) == -2 == a.grad.item() and a.grad.expr.subs(x, 3) == 1
    both = symgrad.where((a > 0) & ~(a >= 2) | (a == 5) ^ (a < -9), 1.0, a).expr
    assert [both.subs(x, v) for v in (-10, -5, 1, 2, 5)] == [1, -5, 1, 2, 1]


# The formula of a gradient

FUNCTIONS = {name: eval(f"lambda a, b: {text}") for name, text in lines("formulas")}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_the_derivatives_of_the_formula(name):
    a, b = leaves(**POINT)
    out = FUNCTIONS[name](a, b)
    out.backward()
    values = numbers(a, b)
    assert np.allclose(evaluated(out.expr, values), out.item(), rtol=1e-14, atol=0)
    for leaf, symbol in ((a, x), (b, y)):
        assert np.allclose(evaluated(leaf.grad.expr, values), leaf.grad.item(), rtol=1e-13, atol=0)
        assert proved_equal(formula(leaf.grad, True).item(), sympy.diff(formula(out, True).item(), symbol), values)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["sine of product", "quotient", "tanh", "sigmoid", "exponentials"])
def test_second_derivatives_are_the_derivatives_of_the_formula(name):
    a, b = leaves(**POINT)
    out = FUNCTIONS[name](a, b)
    (first,) = autograd.grad(out, a, create_graph=True)
    (recorded,) = autograd.grad(first, b, create_graph=True)
    (pulled,) = autograd.grad(first, b)
    true, values = sympy.diff(formula(out, True).item(), x, y), numbers(a, b)
    assert recorded.item() == pulled.item()
    for second in (recorded, pulled):
        assert np.allclose(evaluated(second.expr, values), second.item(), rtol=1e-12, atol=0)
        assert proved_equal(formula(second, True).item(), true, values)


def test_the_comparison_with_sympy_can_fail():
    a, b = leaves(**POINT)
    out = a.sin() * b
    out.backward()
    assert not proved_equal(a.grad.expr * (1 + sympy.Rational(1, 10**6)), sympy.diff(out.expr, x), numbers(a, b))


def test_accumulated_gradients_add_their_formulas():
    a, b = leaves(**POINT)
    (a * b).backward()
    (a * a).backward()
    assert a.grad.expr == 2 * x + y and b.grad.expr == x
    (a**3).backward(symgrad.tensor(2.0))
    assert a.grad.expr == 6 * x**2 + 2 * x + y and a.grad.assignments()[-1][1].free_symbols


def test_gradients_by_an_intermediate_value():
    a, b = leaves(**POINT)
    between = a * b
    out = between.sin()
    (g,) = autograd.grad(out, between, retain_graph=True)
    assert g.expr == sympy.cos(x * y)
    (g,) = autograd.grad([out, between], a, [symgrad.tensor(3.0), symgrad.tensor(0.5)])
    assert sympy.expand(g.expr) == 3 * y * sympy.cos(x * y) + 0.5 * y


def test_derivatives_that_vanish():
    a, b = leaves(**POINT)
    (first,) = autograd.grad(2 * a, a, create_graph=True)
    (second,) = autograd.grad(first, a)
    assert first.expr == 2 and second.expr == 0
    out = a.floor() * b
    out.backward()
    assert out.expr == sympy.floor(x) * y and a.grad.expr == 0 and a.grad.item() == 0 and b.grad.expr == sympy.floor(x)


def test_a_derivative_has_the_conditions_of_its_rule():
    """The indicator is a number at the point, but the formula must contain its condition."""
    (a,) = leaves(x=2.0)
    (first,) = autograd.grad(a.relu() * a, a, create_graph=True)
    assert first.item() == 4 and first.expr.subs(x, -2) == 0 and first.expr.subs(x, 2) == 4


# The let-form


def test_the_let_form_has_an_equation_for_each_op():
    a, b = leaves(**POINT)
    v1, v2, v3 = sympy.symbols("v1:4", real=True)
    assert ((a * b).sin() + a * b).assignments() == [(v1, x * y), (v2, sympy.sin(v1)), (v3, v1 + v2)]


def test_reordering_elements_adds_no_equations():
    (m,) = leaves(m=[[1.0, 2.0], [3.0, 4.0]])
    e = m.exp()
    lines = e.T.reshape(4)[1].unsqueeze(0).assignments()
    assert [str(expr) for _, expr in lines] == ["exp(m_1_0)"], "what is not used is not there"


@pytest.mark.parametrize("of", [lambda m: m, lambda m: m.T, lambda m: m.exp().T, lambda m: m[0, 1], lambda m: symgrad.stack([m[0, 0].exp(), m[0, 0]]),
                                lambda m: -m, lambda m: m[:0], lambda m: m > 2, lambda m: 0 * m])
def test_the_last_equations_are_the_elements(of):
    (m,) = leaves(m=[[1.0, 2.0], [3.0, 4.0]])
    t = of(m)
    lines = t.assignments()
    assert len({symbol for symbol, _ in lines}) == len(lines)
    assert substituted(lines, t.numel()) == formula(t).ravel().tolist()


def test_names_do_not_collide_with_leaves():
    a, b = leaves(v1=1.0, v3=2.0)
    lines = ((a * b).sin() + 1).assignments()
    assert [str(symbol) for symbol, _ in lines] == ["v2", "v4", "v5"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_let_form_is_the_formula(name):
    a, b = leaves(**POINT)
    out = FUNCTIONS[name](a, b)
    out.backward()
    values = numbers(a, b)
    for t in (out, a.grad, b.grad):
        (written_out,) = substituted(t.assignments(), 1)
        assert proved_equal(written_out, t.expr, values)


def test_the_let_form_is_linear_in_the_number_of_ops():
    """Forty squarings of a sum: the flat formula has 2^40 leaves."""
    (a,) = leaves(x=0.5)
    out = a
    for _ in range(40):
        out = out * (out - 1)
    out.backward()
    assert len(out.assignments()) == 80
    lines = a.grad.assignments()
    assert len(lines) < 300 and max(len(expr.args) for _, expr in lines) <= 4


@pytest.mark.sweep
def test_the_error_for_a_deep_formula_names_the_remedy():
    (a,) = leaves(x=0.5)
    out = a
    for _ in range(1500):
        out = out.sin()
    with pytest.raises(RecursionError, match="assignments"):
        out.expr
    assert len(out.assignments()) == 1500


@pytest.mark.sweep
def test_gradients_of_a_long_chain_have_a_let_form():
    """Each step uses the leaf, so that the cotangent of the leaf has one term for each step."""
    (a,) = leaves(x=0.5)
    out = a
    for _ in range(1000):
        out = out * a + 1
    out.backward()
    lines = a.grad.assignments()
    assert len(lines) < 5_000 and max(len(expr.args) for _, expr in lines) <= 4
    known = {x: 0.5}
    for symbol, expr in lines:
        known[symbol] = float(expr.xreplace(known))
    assert math.isclose(known[lines[-1][0]], a.grad.item(), rel_tol=1e-12)


# Branches


def test_a_branch_is_a_condition():
    a, b = leaves(x=3.0, y=2.0)
    before = a * b
    after = a**2 if a > 1 else -a
    assert before.conditions == () and after.expr == x**2 and after.conditions == (x > 1,)
    assert (b * 2).conditions == () and (after + b).conditions == (x > 1,)
    not_taken = a**2 if a * b < 1 else -a
    assert not_taken.conditions == (x > 1, x * y >= 1) and (b * 2).conditions == (x * y >= 1,)
    after.backward()
    assert a.grad.conditions == (x > 1,)


def test_every_comparison_in_a_branch_is_a_condition():
    (a,) = leaves(x=3.0)
    assert a
    while 2 < a < 5 and not a == 4:
        break
    assert (a * 1).conditions == (sympy.Ne(x, 0), x > 2, x < 5, sympy.Ne(x, 4))


def test_conditions_on_arrays_and_their_gradients():
    (v,) = leaves(v=[1.0, 2.0])
    v0, v1 = sympy.symbols("v_0 v_1", real=True)
    if (v > 0).all():
        out = v.log().sum()
    assert out.conditions == (sympy.And(v0 > 0, v1 > 0),)
    out.backward()
    assert v.grad.conditions == out.conditions
    if (v < 0).any() or v[:1] == 1:
        out = v.sum()
    assert [c.simplify() for c in out.conditions[1:]] == [sympy.And(v0 >= 0, v1 >= 0), sympy.Eq(v0, 1)]


def test_a_comparison_that_always_holds_adds_no_condition():
    (a,) = leaves(x=3.0)
    if a * a >= 0 and a.isfinite():
        assert (a + 1).conditions == ()


def test_a_loop_keeps_its_last_condition():
    """The same condition on changed values replaces the former one; its formula is stored once."""
    (a,) = leaves(x=8.0)
    while a.square() > 5:
        old = a * 1
        with symgrad.no_grad():
            a.data = a.data / 2
    assert old.conditions == (x**2 > 5,) and (a * 1).conditions == (x**2 <= 5,)
    assert len(a._node.conditions) == 2


def test_different_comparisons_are_different_conditions():
    (a,) = leaves(x=3.0)
    w = symgrad.tensor([-1.0, -2.0])
    for i in range(2):
        assert a * w[i] < 0
    assert a * symgrad.tensor(-1.0) < a * -2 + 10 and a[None][[0]] > 1 and a * float("inf") > 0
    assert len(a._node.conditions) == 5 and (a + 0).conditions[:2] == (-x < 0, -2 * x < 0)


def test_a_branch_keeps_no_arrays():
    (v,) = leaves(v=np.ones(1000))
    between = v.exp()
    assert (between > 0).all()
    values = weakref.ref(between.value)
    del between
    assert values() is None and len(v._node.conditions) == 1


def test_a_branch_on_unnamed_tensors_adds_no_condition():
    a = symgrad.tensor(3.0, requires_grad=True)
    assert a > 0 and a
    assert a._node.conditions == []


# Memory and import time


QUESTIONS = {"nothing": lambda a, out: None, "expr": lambda a, out: (out.expr, a.grad.expr), "conditions": lambda a, out: out.conditions,
             "assignments": lambda a, out: (out.assignments(), a.grad.assignments())}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_graphs_with_formulas_are_freed_by_reference_counts(ask):
    gc.collect()
    gc.disable()
    try:
        (a,) = leaves(x=0.5)
        out = a.sin() * a if a > 0 else a
        out.backward()
        ask(a, out)
        nodes = [weakref.ref(node) for node in (a._node, out._node, a._node.conditions[0].root)]
        del a, out
        assert [node() for node in nodes] == [None] * 3
    finally:
        gc.enable()


@pytest.mark.sweep
def test_a_long_named_graph_is_freed_without_recursion():
    (a,) = leaves(x=0.5)
    out = a
    for _ in range(100_000):
        out = out + 1
    if out > 0:
        last = weakref.ref(out._node)
    del out
    assert last() is None


def test_sympy_is_loaded_on_first_use_of_a_formula():
    code = ("import sys, symgrad; x = symgrad.tensor(1.0, requires_grad=True, symbol='x'); y = x * 2 if x > 0 else x; y.backward(); "
            "assert not {'sympy', 'mpmath'} & set(sys.modules); y.expr; assert 'sympy' in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
