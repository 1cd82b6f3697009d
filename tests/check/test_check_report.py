"""The report of `check`, its progress, and the declaration of user ops."""

import io
import json

import mpmath
import numpy as np
import pytest
import sympy
from rich.console import Console

import symgrad
from symgrad.algebra.simplification import shortest_difference, shortest_form
from symgrad.graph.op import REGISTRY

# What a report looks like

KEYS = {"schema", "function", "verdict", "reason", "order", "inputs", "value", "weighted_shape", "formula", "assignments", "conditions", "names",
    "gradient",
        "gradient_formulas", "hessian", "hessian_formulas", "third", "errors", "points", "counterexample", "notes", "seconds"}


def reports(declare):
    wrong = declare("wrong", lambda xp, x: xp.sin(x), lambda xp, y, x: xp.cos(x) * (1 + 1e-6))
    return [symgrad.check(lambda x, y: x * y, 1.0, 2.0, points=2), symgrad.check(lambda x: wrong(x), 1.0), symgrad.check(lambda x: x.log(), -1.0),
            symgrad.check(lambda x: x.sqrt(), 0.0, order=3, points=2), symgrad.check(lambda x: 1.0, 1.0),
            symgrad.check(lambda x: (x * symgrad.arange(40.0)).sin(), np.ones(40), points=1)]


@pytest.mark.sweep
def test_a_report_is_text_json_markdown_html_and_rich(declare):
    for report in reports(declare):
        data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
        assert set(data) == KEYS and data["schema"] == 1 and data["verdict"] == report.verdict
        assert set(data["points"]) == {"random", "special", "outside", "singular", "kinks", "digits"}
        for e in data["errors"]:
            assert set(e) == {"order", "where", "ulp", "condition", "bound", "within", "value", "truth"}
        if report.verdict == "refuted":
            assert set(data["counterexample"]) == {"point", "where", "rule", "truth", "op", "difference"}
        console = Console(width=100, record=True, file=io.StringIO())
        console.print(report)
        shown = console.export_text()
        for form in (str(report), report._repr_markdown_(), report._repr_html_(), shown):
            assert report.verdict in form and "Traceback" not in form
        assert repr(report) == f"<Report {report.function}: {report.verdict}>"


@pytest.mark.sweep
def test_the_notebook_forms_have_latex_and_escape_user_text():
    def f(x):
        return x.sin() / x

    f.__name__ = "<b>f</b>"
    report = symgrad.check(f, 1.0, points=2)
    assert r"\frac{\sin{\left(x \right)}}{x}" in report._repr_markdown_() and r"\frac{\sin{\left(x \right)}}{x}" in report._repr_html_()
    assert "<b>" not in report._repr_html_() and "<b>" not in report._repr_markdown_()


@pytest.mark.sweep
def test_progress_is_passed_to_a_function_and_shown_on_standard_error(capsys):
    told = []
    symgrad.check(lambda x: x**2, 1.0, points=3, progress=lambda what, done, total: told.append((what, done, total)))
    assert ("recording the function", 0, 1) in told and ("comparing other points", 2, 3) in told
    assert capsys.readouterr() == ("", "")
    symgrad.check(lambda x: x**2, 1.0, points=3, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    symgrad.check(lambda x: x**2, 1.0, points=3, progress=False)
    assert capsys.readouterr() == ("", "")


def test_a_function_that_prints_does_so_once(capsys):
    def chatty(x):
        print("hello")
        return x**2

    symgrad.check(chatty, 1.0, points=3)
    assert capsys.readouterr().out == "hello\n"


def test_an_interrupt_ends_a_check_and_restores_the_state():
    from symgrad.carriers import precise

    before = precise.context.dps, mpmath.mp.dps
    calls = []

    def interrupted(x):
        calls.append(x)
        if len(calls) > 4:
            raise KeyboardInterrupt
        return x**2

    with pytest.raises(KeyboardInterrupt):
        symgrad.check(interrupted, 1.0, progress=True)
    assert (precise.context.dps, mpmath.mp.dps) == before and symgrad.is_grad_enabled()


# Ops of one's own

@pytest.mark.sweep
def test_an_op_may_be_declared_again_and_the_new_rule_counts(declare):
    wrong = declare("mine", lambda xp, x: x * x, lambda xp, y, x: x)
    assert symgrad.check(lambda x: wrong(x), 1.0).verdict == "refuted"
    right = declare("mine", lambda xp, x: x * x, lambda xp, y, x: 2 * x)
    assert symgrad.check(lambda x: right(x), 1.0).verdict == "proved"


@pytest.mark.parametrize("name", ["sin", "arcsin", "add", "place", "indicator", "zeros_like", "math"])
def test_a_built_in_name_is_not_replaced(name):
    with pytest.raises(ValueError, match="belongs to symgrad|reserved|taken"):
        symgrad.elementwise(name, lambda xp, x: x, 1)
    assert symgrad.check(symgrad.sin, 1.0, points=2).ok


@pytest.mark.parametrize("name", ["", "two words", "1st", 3, "a-b"])
def test_a_name_is_an_identifier(name):
    with pytest.raises(ValueError, match="identifier"):
        symgrad.elementwise(name, lambda xp, x: x, 1)


def test_bad_rules_are_refused_and_not_registered(declare):
    with pytest.raises(TypeError, match="rule 0"):
        declare("mine", 3, 1)
    with pytest.raises(TypeError, match="rule 1"):
        declare("mine", lambda xp, x: x, "1")
    with pytest.raises(ValueError, match="1 argument after xp, and 2 partials"):
        declare("mine", lambda xp, x: x, 1, 1)
    with pytest.raises(ValueError, match="both vjp and jvp"):
        symgrad.primitive("mine", lambda xp, x: x, vjp=lambda xp, g, y, x: g)
    with pytest.raises(ValueError, match="belongs to symgrad"):
        declare("mine", lambda xp, x: x, 1, aliases=("sin",))
    with pytest.raises(ValueError, match="belongs to symgrad"):
        declare("mine", lambda xp, x: x, 1, method=True, aliases=("shape",))
    assert "mine" not in REGISTRY


@pytest.mark.sweep
def test_a_declared_op_is_a_function_and_with_method_a_method(declare):
    swish = declare("swish_of_mine", lambda xp, x: x * xp.sigmoid(x), lambda xp, y, x: xp.sigmoid(x) + x * xp.sigmoid(x) * xp.sigmoid(-x),
        method=True,
                    doc="x times its sigmoid.")
    x = symgrad.tensor([0.0, 1.0])
    np.testing.assert_array_equal(x.swish_of_mine().numpy(), swish(x).numpy())
    assert swish.__doc__.startswith("x times its sigmoid.") and swish.__name__ == "swish_of_mine"
    assert symgrad.check(lambda x: swish(x), 0.4, order=3, points=4).ok


@pytest.mark.sweep
def test_formulas_are_made_short_by_steps_that_their_size_decides(monkeypatch):
    x, y = sympy.symbols("x y", real=True)
    table = {sympy.sinh(x) / sympy.cosh(x): sympy.tanh(x), 2 * x / (x + y) - 2 * x**2 / (x + y) ** 2: 2 * x * y / (x + y) ** 2,
             sympy.exp(-x) / (1 + sympy.exp(-x)) ** 2: 1 / (4 * sympy.cosh(x / 2) ** 2)}
    assert all(shortest_form(long) == short for long, short in table.items())
    sizes = []
    simplify = sympy.simplify
    monkeypatch.setattr(sympy, "simplify", lambda e: sizes.append(sympy.count_ops(e)) or simplify(e))
    long = sympy.log(1 / (1 + sympy.exp(-sympy.tanh(x * y)))).diff(x, x)
    assert sympy.count_ops(shortest_form(long)) < sympy.count_ops(long) and max(sizes, default=0) <= 30


@pytest.mark.sweep
def test_a_difference_of_formulas_has_the_constants_that_were_written(declare):
    x = sympy.Symbol("x", real=True)
    table = {(1.001 * x, x): 0.001 * x, (x * sympy.Rational(1.001), x): 0.001 * x, (x**2 * 0.1, sympy.S.Zero): 0.1 * x**2, (x / 3, x / 4): x / 12,
             (0.1 + x, x): sympy.Float(0.1), (x, x): None, (0.1 * x, x * sympy.Rational(0.1)): None}
    assert all(shortest_difference(*pair) == found for pair, found in table.items())
    third = shortest_difference(0.6666666666666666 * x, 2 * x / 3)
    assert float(third.coeff(x)) == pytest.approx(-2 / 3 * 1e-16)
    square = declare("square_of_mine", lambda xp, x: x * x / 2, lambda xp, y, x: 1.001 * x)
    assert str(symgrad.check(square, 0.5, progress=False)).count("difference = 0.001*x") == 1
    assert "difference = 0.001*g*x" in str(symgrad.prove(square, 1))
