"""Formulas and values are parsed with a whitelist: other text is an error with its position, and nothing is evaluated as Python."""

import ast
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad
from symgrad.formulas.parsing import ParseError, parse, parse_values
from symgrad.system.limits import LENGTH
from tests.support.lines import lines

NUMBERS = {
    "1+2*3": 7.0, "(1+2)*3": 9.0, "-2**2": -4.0, "2**-1": 0.5, "2**3**2": 512.0, "2^3": 8.0, "6/3/2": 1.0, "1-2-3": -4.0, "--3": 3.0, "+-3": -3.0,
    "1e3": 1000.0, ".5": 0.5, "5.": 5.0, "pi": math.pi, "e": math.e, "cos(0)": 1.0, "hypot(3, 4)": 5.0, "where(1 < 2, 3, 4)": 3.0,
    "where(1 != 1, 3, 4)": 4.0, "sqrt(2)**2": math.sqrt(2) ** 2, " 1 +\n\t2 ": 3.0,
}

REFUSED = [ast.literal_eval(text) for (text,) in lines("refused_formulas")]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_constant_formula_has_the_value_that_arithmetic_gives(text):
    assert parse(text)() == NUMBERS[text]


def test_a_formula_of_tensors_is_recorded():
    x, y = symgrad.symbols("x y", [1.0, 2.0])
    out = parse("exp(sin(x))*y - x**2/y")(x=x, y=y)
    assert str(out.expr) == "-x**2/y + y*exp(sin(x))"
    assert out.item() == (x.sin().exp() * y - x**2 / y).item()


def test_arrays_broadcast_in_a_formula():
    x = symgrad.tensor([1.0, -2.0])
    np.testing.assert_array_equal(parse("where(x > 0, x, 3*x)")(x=x).numpy(), [1.0, -6.0])


def test_names_are_in_order_of_appearance_and_once_each():
    assert parse("b*a + b + where(c > a, 1, d)").names == ("b", "a", "c", "d")


@pytest.mark.sampled(35)
@pytest.mark.parametrize("text", REFUSED)
def test_names_outside_the_whitelist_are_refused_with_their_position(text):
    with pytest.raises(ParseError) as caught:
        parse(text)(**dict.fromkeys(("x", "y", "z"), symgrad.tensor(0.5)))
    lines = str(caught.value).splitlines()
    assert len(lines) == 3 and lines[2].strip() == "^" and len(lines[2]) <= len(lines[1]) + 1


def test_the_caret_marks_the_error():
    with pytest.raises(ParseError) as caught:
        parse("exp(x) + foo(y)")
    assert str(caught.value).splitlines()[1:] == ["  exp(x) + foo(y)", "           ^"]


def test_a_misspelled_function_is_recognised():
    for wrong, right in {"ln(x)": "log", "sine(x)": "sin", "arctann(x)": "arctan"}.items():
        with pytest.raises(ParseError, match=f"did you mean {right}"):
            parse(wrong)


@pytest.mark.parametrize("text", ["(" * 5000 + "x", "-" * 9000 + "x", "x" + "+x" * 4000, "exp(" * 3000 + "x", "x" + "**x" * 3000, "2**" * 3000 + "2",
    "x" * (LENGTH + 1),
                                  "1" * 9000, "9" * 400 + "**" + "9" * 400, "*".join(["x**900"] * 900), "(2*x)**1000*" * 800 + "x"])
def test_adversarial_text_is_rejected_or_read(text):
    try:
        formula = parse(text)
    except ParseError as error:
        assert len(str(error)) < 1000
    else:
        formula(x=symgrad.tensor(0.5, requires_grad=True))


@pytest.mark.sweep
@given(st.text(alphabet="xyep sin()+-*/^.,0123456789<>=![]_'\"\\\n", max_size=40))
def test_any_text_is_a_formula_or_a_parse_error(text):
    try:
        formula = parse(text)
        formula(**dict.fromkeys(formula.names, 0.5))
    except ParseError:
        pass


@given(st.recursive(st.sampled_from(["x", "y", "2", "0.5", "pi"]), lambda inner: st.one_of(
    st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"), inner.map(lambda t: f"sin({t})"),
        inner.map(lambda t: f"-{t}")),
    max_leaves=12))
def test_a_formula_has_the_value_that_python_gives(text):
    names = {"x": 0.75, "y": -1.25}
    expected = eval(text, {"sin": math.sin, "pi": math.pi, **names})  # the test's own text, made above
    formula = parse(text)
    assert formula(**{name: names[name] for name in formula.names}) == pytest.approx(expected, rel=1e-13, abs=1e-13)


def test_values_are_numbers_and_nested_lists():
    assert parse_values("x=1,y=[1, 2],z=pi/2, w=[[1,2],[3,-4e0]] ,v=2*sqrt(4)") == {
        "x": 1.0, "y": [1.0, 2.0], "z": math.pi / 2, "w": [[1.0, 2.0], [3.0, -4.0]], "v": 4.0}
    assert parse_values("") == {} and parse_values("x=[1,]") == {"x": [1.0]}


@pytest.mark.parametrize("text", ["x", "x=", "=1", "x=1 y=2", "x=1,", "x=1,x=2", "x=y", "x=[1", "x=[1 2]", "x=1]", "x=(1,2)", "x={1}", "x='a'",
    "x=__import__('os')",
                                  "__x=1", "lambda=1", "1=1", "x==1", "x=1<2", "x=None", "x=1;y=2", "x=[" * 100, "x=[]", "x=[[],[]]",
                                  "x=[[1],[1,2]]", "x=[1,[2]]"])
def test_other_values_are_refused(text):
    with pytest.raises(ParseError):
        parse_values(text)


@pytest.mark.parametrize("text, names", [("A[0][1]*2", ("A_0_1",)), ("A[0, 1] + x[2]", ("A_0_1", "x_2")), ("x[ 3 ]**2", ("x_3",)),
                                         ("B[1][0,2]", ("B_1_0_2",))])
def test_elements_are_variables(text, names):
    assert parse(text).names == names


@pytest.mark.parametrize("text", ["A[", "A[]", "A[x]", "A[-1]", "A[0.5]", "A[0][", "2[0]", "A[0,]", "A[,1]", "A[1 2]", "A[1,,2]"])
def test_other_brackets_are_refused(text):
    with pytest.raises(ParseError):
        parse(text)
