"""Code that reproduces a failure: it runs as printed and fails in the same way, and every value is restored to the last bit."""


import ml_dtypes
import numpy as np
import pytest
import sympy

import symgrad
from symgrad.graph.domains import POSITIVE, Domain, Interval
from symgrad.testing import CheckFailure, check_linearity, check_pullback, check_pushforward, check_value
from symgrad.testing.failure import exact_text
from symgrad.testing.snippets import SnippetCode
from tests.support.failing import (
    Cube,
    failure_of,
    loses_an_equal_pair,
    multiply,
    multiply_back,
    multiply_formula,
    product,
    product_back,
    product_forward,
    raises_above,
    sine,
    slope_below,
    tensors,
)

SNIPPETS = {
    "gradient": (check_pullback, (sine, slope_below), {"formula": "sin(x)", "domain": "real"}),
    "pullback": (check_pullback, product, {"formula": "x*y", "pullback": product_back}),
    "pushforward": (check_pushforward, product, {"formula": "x*y", "pullback": product_back, "pushforward": product_forward}),
    "linearity": (check_linearity, product, {"formula": "x*y", "pullback": product_back}),
    "matrices": (check_pullback, multiply, {"formula": multiply_formula, "shapes": ((1, 2), (2, 1)), "pullback": multiply_back}),
    "raises": (check_value, raises_above, {"formula": "sin(x)"}),
    "Function": (check_pullback, Cube, {"formula": "x^3"}),
    "tensors": (check_pullback, tensors, {"formula": sympy.sin(sympy.Symbol("x")), "domain": POSITIVE}),
    "wrong formula of an op": (check_value, symgrad.exp, {"formula": "exp(input) + 1e-6", "domain": {"input": (-3, 3)}}),
    "value": (check_value, loses_an_equal_pair, {"formula": "sin(x)", "profile": "ci", "ulp": 4}),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", SNIPPETS)
def test_the_snippet_runs_as_printed_and_fails_in_the_same_way(name):
    check, op, claims = SNIPPETS[name]
    first = failure_of(check, op, **claims)
    assert "# define" not in first.snippet and first.snippet in textwrap_dedented(str(first))
    with pytest.raises(CheckFailure) as caught:
        exec(compile(first.snippet, "snippet", "exec"), {})
    again = caught.value.failure
    assert (again.check, again.wrong.what, again.wrong.order, again.wrong.wrt) == (first.check, first.wrong.what, first.wrong.order, first.wrong.wrt)
    assert again.inputs.keys() == first.inputs.keys()
    assert all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(again.inputs.values(), first.inputs.values()))
    assert exact_text(again.wrong.returned) == exact_text(first.wrong.returned) and again.wrong.ulp == first.wrong.ulp
    assert again.snippet == first.snippet


def textwrap_dedented(text):
    return "\n".join(line[4:] if line.startswith("    ") else line for line in text.splitlines())


@pytest.mark.sweep
def test_objects_that_cannot_be_imported_are_named():
    found = failure_of(check_pullback, (lambda x: np.sin(x), lambda x: np.cos(x) + 1), formula=lambda xp, x: xp.sin(x))
    assert found.snippet.splitlines()[2:5] == [f"# define {name} here; it cannot be imported" for name in ("op", "formula", "gradient")]
    names = {"op": np.sin, "gradient": lambda x: np.cos(x) + 1, "formula": lambda xp, x: xp.sin(x)}
    with pytest.raises(CheckFailure, match="the gradient is wrong"):
        exec(compile(found.snippet, "snippet", "exec"), names)


@pytest.mark.sweep
def test_cotangent_and_tangents_stand_in_it_only_where_they_are_not_ones():
    assert "cotangent" not in failure_of(check_pullback, (sine, slope_below), formula="sin(x)").snippet
    g, t = np.array([0.5, -0.0]), np.array([3.0, 1.0])
    found = failure_of(check_pushforward, product, formula="x*y", pullback=product_back, pushforward=product_forward, inputs=[g, t], cotangent=g,
                       tangents=[(g, t)] * 3)
    assert "cotangent=np.array([0.5, -0.0])" in found.snippet
    assert "tangents=[(np.array([0.5, -0.0]), np.array([3.0, 1.0]))" in found.snippet


@pytest.mark.parametrize("value", [
    np.array(-0.0), np.array([np.nan, np.inf, -np.inf, 5e-324]), np.array([[0.1, 1 / 3]], np.float32), np.array([0.1, 65504], np.float16),
    np.array([0.1, 3.0], ml_dtypes.bfloat16), np.array([True, False]), np.array([1, -2]), np.array([1, 2], np.int32), np.zeros((0, 3)),
    np.zeros((2, 0), np.float32), np.array([complex(-0.0, np.nan), 1e-300j]), np.array(2 + 0j, np.complex64), np.float32(0.1), 1e-300, -0.0,
    float("inf"), 1 - 2j, True, None, "a'b", (1.0,), [1, (2, slice(None, 3))], {"x": (0, 1)}, ..., np.dtype("float32"), POSITIVE,
    Domain("odd", (Interval(-1.0, 0.0, True), Interval(2.0, 3.0)), (2.5,)), Domain("[0, 1]", (Interval(0.0, 1.0),)), sympy.Symbol("x") / 3,
    sympy.besselj(0, sympy.Symbol("y", positive=True)), sympy.Interval(0, 1), sympy.Matrix([1, sympy.pi])],
    ids=[f"value{i}" for i in range(32)])
def test_a_value_is_written_so_that_it_comes_back_to_the_last_bit(value):
    code = SnippetCode()
    text = code.of(value)
    names = {}
    exec("\n".join([*code.imports, *(f"from {m} import {', '.join(sorted(names))}" for m, names in code.names.items())]), names)
    back = eval(text, names)
    assert code.undefined == []
    if isinstance(value, (np.ndarray, np.generic)):
        assert type(back) is type(value) and back.dtype == value.dtype and back.shape == value.shape and back.tobytes() == value.tobytes()
    elif isinstance(value, Domain):
        from symgrad.sampling.domain_reader import domain_of

        assert [getattr(domain_of(back), f) for f in ("intervals", "excluded", "integer")] == [value.intervals, value.excluded, value.integer]
    elif isinstance(value, (float, complex)):
        assert repr(back) == repr(value)
    elif isinstance(back, str) and isinstance(value, sympy.Expr):
        assert back == str(value) == "x/3"
    else:
        assert back == value
