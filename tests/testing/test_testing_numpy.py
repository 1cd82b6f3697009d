"""NumPy functions under test: with a gradient, a pullback, a pushforward, or none; and the detected properties of a function."""

import functools
import math
import re
import subprocess
import sys

import numpy as np
import pytest
import sympy

import symgrad
import symgrad.testing as testing
from symgrad.frameworks.adapter import NotApplicable
from symgrad.frameworks.naming import argument_names, import_path, name_of
from symgrad.testing.attack import Attack

X = sympy.Symbol("x", real=True)


named_lambda = lambda x: x * x  # noqa: E731  # people write them


def ricker(x):
    return x * np.exp(-x)


def slope(x):
    return (1 - x) * np.exp(-x)


def product(x, y):
    return x * y * y


def partials(x, y):
    return y * y, 2 * x * y


def scaled(x, factor):
    return factor * np.sin(x)


def scaled_slope(x, factor):
    return factor * np.cos(x)


def multiply(a, b):
    return a @ b


def multiply_back(g, a, b):
    return g @ b.T, a.T @ g


def multiply_forward(ts, a, b):
    return ts[0] @ b + a @ ts[1]


def multiply_formula(xp, a, b):
    return xp.matmul(a, b)


def attack(op, **claims):
    return testing.check_op(op, raise_exception=False, **claims)


def verdicts(report):
    return {r.check: r.verdict for r in report.results}


# What is right is not accused

@pytest.mark.sweep
@pytest.mark.parametrize("op, claims", [
    ((ricker, slope), {"formula": "x*exp(-x)", "domain": (-20, 20)}),
    (ricker, {"formula": "x*exp(-x)", "domain": (-20, 20), "pullback": lambda g, x: g * slope(x), "pushforward": lambda ts, x: ts[0] * slope(x)}),
    ((product, partials), {"formula": "x*y^2"}),
    ((scaled, scaled_slope), {"formula": "3*sin(x)", "parameters": (3.0,), "domain": (-10, 10)}),
    ((np.exp, np.exp), {"formula": sympy.exp(X)}),
    (np.tanh, {"formula": "tanh(x)"}),
    (multiply, {"formula": multiply_formula, "shapes": ((2, 3), (3, 2)), "pullback": multiply_back, "pushforward": multiply_forward}),
], ids=["gradient", "pullback", "two arguments", "parameter", "ufunc", "value alone", "matrices"])
def test_a_right_function_passes_every_check_that_applies(op, claims):
    report = attack(op, **claims)
    assert report.verdict == "passed", str(report)
    assert verdicts(report)["value"] == "passed"


# What is wrong is found


@pytest.mark.sweep
@pytest.mark.parametrize("function", [symgrad.sin, lambda x: symgrad.sin(x), np.sin], ids=["an op", "symgrad", "numpy"])
def test_the_gradient_in_a_tuple_is_checked_for_functions_of_symgrad_too(function):
    claims = {"formula": "sin(x)", "domain": (-9, 9), "checks": ["value", "pullback", "differences", "dtypes"], "shrink": False}
    assert attack((function, np.cos), **claims).verdict == "passed"
    assert verdicts(attack((function, lambda x: np.cos(2 * x)), **claims))["pullback"] == "failed"


# What a subject does

def test_partial_derivatives_are_multiplied_by_the_cotangent_and_summed_over_what_was_broadcast():
    subject = Attack((product, partials)).subject
    x, y, g = np.array([[1.0], [2.0]]), np.array([3.0, 5.0, 7.0]), np.arange(6.0).reshape(2, 3)
    dx, dy = subject.gradient([x, y], g)
    assert dx.shape == x.shape and dy.shape == y.shape
    assert np.array_equal(dx, (g * y * y).sum(1, keepdims=True)) and np.array_equal(dy, (g * 2 * x * y).sum(0))


def test_a_constant_derivative_has_the_shape_of_its_argument():
    assert Attack((lambda x: 3 * x, lambda x: 3.0)).subject.gradient([np.ones(4)], np.full(4, 2.0))[0].tolist() == [6.0] * 4


def test_a_complex_derivative_is_conjugated():
    (found,) = Attack((np.square, lambda z: 2 * z)).subject.gradient([np.array([1 + 2j])], np.array([1.0 + 0j]))
    assert found.tolist() == [2 - 4j]


def test_float32_stays_float32():
    (found,) = Attack((ricker, slope)).subject.gradient([np.ones(2, np.float32)], np.ones(2))
    assert found.dtype == np.float32


def test_arguments_that_are_no_floats_have_no_gradient():
    subject = Attack(lambda x, n: x * n, pullback=lambda g, x, n: g * n).subject
    assert [None if c is None else c.tolist() for c in subject.gradient([np.ones(2), np.array([2, 3])], np.ones(2))] == [[2.0, 3.0], None]
    with pytest.raises(TypeError, match="has 3 parts for 2 arguments; expected one array for each"):
        Attack(product, pullback=lambda g, x, y: (g, g, g)).subject.gradient([np.ones(2), np.ones(2)], np.ones(2))


def test_derivatives_that_are_not_given_are_not_checked():
    found = Attack(np.tanh)
    assert found.order == 0 and not found.subject.forward
    with pytest.raises(NotApplicable, match="no gradient comes with it"):
        found.subject.gradient([np.ones(1)], np.ones(1))
    with pytest.raises(NotApplicable, match="no pushforward comes with it"):
        found.subject.tangent([np.ones(1)], [np.ones(1)])
    given = Attack((ricker, slope))
    assert given.order == 1
    with pytest.raises(NotApplicable, match="the first derivative"):
        given.subject.gradient([np.ones(1)], np.ones(1), [np.ones(1)])


def test_one_of_several_values_is_chosen():
    pair = lambda x: (np.sin(x), np.cos(x))
    assert Attack(pair, output=1, framework="numpy").subject.value([np.zeros(2)]).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="returns 2 values in a tuple; say which one is meant, as in output=0"):
        Attack(pair, framework="numpy").subject.value([np.zeros(2)])
    with pytest.raises(TypeError, match="returned a str; expected an array"):
        Attack(lambda x: "text", framework="numpy").subject.value([np.zeros(2)])


@pytest.mark.sweep
def test_numbers_of_python_have_the_type_of_the_arguments():
    squares, slope = (lambda x: float(np.sum(x * x))), lambda x: 2 * x
    for formula in (None, "x[0]^2 + x[1]^2 + x[2]^2"):
        report = attack((squares, slope), formula=formula, shapes=((3,),))
        assert report.verdict == "passed", str(report)
    subject = Attack((squares, slope), shapes=((3,),)).subject
    assert subject.value([np.ones(3, np.float32)]).dtype == np.float32 and subject.value([np.ones(3)]) == 3.0


@pytest.mark.sweep
@pytest.mark.parametrize("gradient, words", [
    (lambda x, y: y * y, "has 1 part for 2 arguments; expected one array for each"),
    (lambda x, y: None, "returned None; expected an array for each argument"),
], ids=["one of two", "None"])
def test_an_error_raised_in_many_checks_is_reported_once(gradient, words):
    report = attack((product, gradient), formula="x*y^2")
    assert {"pullback", "differences", "structure", "threads"} <= {f.check for f in report.failures}
    with pytest.raises(testing.CheckFailure) as caught:
        testing.check_op((product, gradient), formula="x*y^2")
    for text in (str(report), str(caught.value)):
        assert text.count("to see it again:") == 1 and words in text and "the same was raised in differences, dtypes" in text


def numbers_only(x):
    return math.sin(x)


def broken(x):
    raise OSError("no kernel here")


FOUR = "x = [1.0, 1.0, 1.0, 1.0] (float64 (4,))"
REFUSED = {
    "raises": (broken, {"formula": "sin(x)"}, f"broken gives no value: called with {FOUR} it raised OSError (in test_testing_"),
    "None": (lambda x: None, {"framework": "numpy"}, "returned None; expected an array or a number"),
    "a tuple of one": (lambda x: (np.sin(x),), {}, "returns 1 value in a tuple; say which one is meant, as in output=0"),
    "a list": (lambda x: [math.sin(v) for v in np.ravel(x)], {"formula": "sin(x)", "framework": "numpy"}, "as in output=0, or return an array of"),
    "another output": (lambda x: (np.sin(x),), {"output": 3}, "returns 1 value; output=3 is none of them"),
    "one output": (np.sin, {"output": 0}, "returns one value, ndarray; output=0 chooses among several"),
    "objects": (lambda x: np.array([None]), {}, "returned an array of object; expected a number"),
    "arguments": (lambda x, y: np.add(x, y), {"shapes": ((2,),)}, "missing 1 required positional argument: 'y'"),
    "parameters": (scaled, {"parameters": (2.0, 3.0), "formula": "2*sin(x)"}, f"called with {FOUR} and 2.0, 3.0 it raised"),
    "numbers": (numbers_only, {"formula": "sin(x)", "framework": "numpy"}, "takes single numbers alone: called with x = "),
    "float32": (lambda x: np.sin(x) if x.dtype == np.float32 else int("x"), {"name": "x"}, "it is made for that, claim dtypes=('float32',)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_without_a_value_is_refused_with_its_error_and_the_remedy(name):
    op, claims, words = REFUSED[name]
    for call in (testing.check_op, testing.check_value, testing.check_linearity):
        with pytest.raises(ValueError, match=re.escape(words)):
            call(op, **claims)


def test_a_function_that_refuses_a_part_of_its_domain_is_not_refused():
    def negative(x):
        if np.any(x > 0):
            raise ValueError("not there")
        return np.sin(x)

    assert attack(negative, formula="sin(x)", domain=(-3, 3), checks=["value"]).verdict == "failed"
    assert attack(numbers_only, formula="sin(x)", domain=(-9, 9), shapes=((),), framework="numpy", checks=["value"]).verdict == "passed"


def test_errors_of_invalid_claims_name_the_op_and_the_expected_form():
    for claims, words in (({"domain": "postive"}, "ricker: the domain of x is 'postive' (did you mean 'positive'?); expected a pair"),
                          ({"domain": {"y": "real"}}, "ricker: domain names y, but the arguments are x")):
        with pytest.raises(TypeError, match=re.escape(words)):
            testing.check_op(ricker, **claims)


def narrow(x):
    if x.dtype != np.float32:
        raise TypeError("expected float32")
    return np.exp(-x * x)


@pytest.mark.sweep
def test_an_op_made_for_float32_is_attacked_in_float32():
    slope, claims = lambda x: -2 * x * np.exp(-x * x), {"formula": "exp(-x^2)", "dtypes": ("float32",)}
    report = attack((narrow, slope), **claims)
    assert report.verdict == "passed", str(report)
    assert {"value", "pullback", "dtypes", "linearity", "structure", "layouts"} <= {k for k, v in verdicts(report).items() if v == "passed"}
    found = Attack((narrow, slope), **claims)
    assert found.dtype == "float32" and {a.dtype.name for e in found.examples("points") for a in (*e.xs, e.cotangent, *e.tangents[0])} == {"float32"}
    wrong = attack((narrow, lambda x: slope(x) * np.where(x < -1, np.float32(1.001), np.float32(1))), **claims, checks=["pullback"])
    (failure,) = wrong.failures
    assert failure.inputs["x"].dtype == np.float32 and "inputs=[np.array(-2.0, dtype=np.float32)]" in failure.snippet


def test_an_argument_of_truth_values_has_a_domain_by_name():
    masked = lambda x, mask: np.where(mask, x, 2 * x)
    back = lambda g, x, mask: (np.where(mask, g, 2 * g), None)
    report = attack(masked, domain={"mask": "boolean"}, pullback=back, checks=["differences", "structure"])
    assert report.verdict == "passed", str(report)
    assert {e.xs[1].dtype.kind for e in Attack(masked, domain={"mask": "boolean"}, framework="numpy").examples("points")} == {"b"}


@pytest.mark.parametrize("function, claims, names", [
    (lambda x, n, flip=False: x, {"parameters": (3, True)}, ["x"]),
    (lambda x, n, flip=False: x, {"parameters": (3,)}, ["x"]),
    (lambda x, factor=2.0: x, {"parameters": (3.0,)}, ["x"]),
    (lambda x, factor=2.0: x, {"parameters": (3.0,), "formula": "3*sin(x)"}, ["x"]),
    (lambda x, y, n=2: x, {"parameters": (3,), "formula": "x*y"}, ["x", "y"]),
    (lambda x, y, n=2: x, {"parameters": (3,), "shapes": ((2,), (2,))}, ["x", "y"]),
    (lambda x, y, n=2: x, {"parameters": (3,)}, ["x"]),
], ids=["with a default", "without", "a default alone", "its formula", "two in the formula", "two shapes", "nobody says"])
def test_parameters_come_after_the_arrays(function, claims, names):
    assert Attack(function, framework="numpy", **claims).names == names


# What an attack finds out

@pytest.mark.parametrize("op, claims, framework, names, elementwise", [
    (np.exp, {}, "numpy", ["x"], True),
    (np.hypot, {}, "numpy", ["x1", "x2"], True),
    ((np.hypot, partials), {"formula": "sqrt(a^2 + b^2)"}, "numpy", None, None),
    (functools.partial(np.multiply, 2.0), {}, "numpy", ["x2"], True),
    (functools.partial(scaled, factor=2.0), {}, "numpy", ["x"], True),
    (lambda x: x * x, {}, "symgrad", ["x"], True),
    (lambda x: x * x, {"pullback": lambda g, x: 2 * g * x}, "numpy", ["x"], True),
    (lambda t: t * t, {"formula": "x^2"}, "symgrad", ["x"], True),
    (symgrad.exp, {}, "symgrad", ["input"], True),
    (lambda x: x - np.mean(x), {}, "numpy", ["x"], False),
    (lambda x, a=2.0, n=3: a * np.sin(x), {"formula": "a*sin(x)"}, "numpy", ["x", "a"], True),
    (lambda x, **options: np.sin(x), {}, "numpy", ["x"], True),
    (lambda *xs: np.add(*xs), {"formula": "a + b"}, "numpy", ["a", "b"], True),
    (lambda *xs: np.add(*xs), {}, "numpy", ["x0", "x1"], True),
    (np.linalg.inv, {}, "numpy", ["a"], False),
], ids=["exp", "hypot", "a pair", "partial", "partial by name", "a lambda", "with a pullback", "other names", "symgrad", "not elementwise",
        "defaults", "options", "anything", "nothing", "inv"])
def test_framework_names_and_kind_are_found(op, claims, framework, names, elementwise):
    if names is None:
        with pytest.raises(ValueError, match="the formula names a, b, but the arguments of hypot are x1, x2; name these in the formula"):
            _ = Attack(op, **claims).names
        return
    found = Attack(op, **claims)
    assert (found.subject.framework, found.names, found.elementwise) == (framework, names, elementwise)


def test_shapes_are_those_that_the_function_takes():
    assert Attack(np.linalg.inv).shapes == ((3, 3),)
    assert Attack(lambda x: np.cross(x, x + 1) if x.shape == (4,) else math.sin(x), framework="numpy").shapes == ((),)
    assert Attack(lambda x: np.add.reduce(x), framework="numpy").shapes == ((3, 4),)


def test_the_import_path_of_a_function():
    assert import_path(ricker) == (__name__, "ricker") and import_path(np.exp) == ("numpy", "exp") and import_path(symgrad.exp) == ("symgrad", "exp")
    assert import_path(named_lambda) == (__name__, "named_lambda") and name_of(named_lambda) == "named_lambda"
    assert import_path(lambda x: x) is None and import_path(functools.partial(ricker)) is None

    def local(x):
        return x

    assert import_path(local) is None
    assert name_of(ricker) == "ricker" == name_of(functools.partial(ricker)) and (name_of(local), name_of(np.exp)) == ("local", "exp")
    scaled = functools.partial(ricker)
    assert name_of(scaled) == "scaled"


def test_a_class_is_called_by_its_own_name_and_its_arguments_by_those_of_forward():
    class Square(symgrad.autograd.Function):
        @staticmethod
        def forward(ctx, base, exponent=2):
            return base * base

    class Separate(symgrad.autograd.Function):
        @staticmethod
        def forward(left, right):
            return left * right

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    assert name_of(Square) == name_of(Square.apply) == "Square"
    assert argument_names(Square.apply, None, 0) == ["base"] and argument_names(Separate.apply, None, 0) == ["left", "right"]


def test_objects_that_cannot_be_called_are_refused():
    with pytest.raises(TypeError, match="checks ops, functions and classes with apply, not float"):
        Attack(1.0)
    with pytest.raises(TypeError, match="'gradent' is not something an op can claim"):
        Attack(np.exp, gradent=np.exp)


QUIET = """
import sys
import symgrad.testing
import numpy as np
early = [m for m in ("torch", "jax", "autograd", "sympy", "hypothesis", "pytest") if m in sys.modules]
report = symgrad.testing.check_op((np.sin, np.cos), formula="sin(x)", domain=(-9, 9), checks=["value", "pullback"])
print(early, report.verdict, [m for m in ("torch", "jax", "autograd") if m in sys.modules])
"""


@pytest.mark.sweep
def test_no_other_framework_is_imported_for_numpy():
    out = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, check=True).stdout
    assert out == "[] passed []\n"


def test_a_framework_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "jax", None)
    for framework in ("torch", "jax"):
        with pytest.raises(ImportError, match=rf"ricker is a function of {framework}, which is not installed: pip install 'symgrad\[parity\]'"):
            Attack(ricker, framework=framework)
