"""`prove`: correct rules are proved, wrong ones refuted, and others have a reason."""

import json
import re

import pytest
import sympy

import symgrad
from symgrad.graph import op as constructors
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from symgrad.proofs import statements as proving
from symgrad.proofs.numbers import NumericComparison, NumericResult
from symgrad.proofs.prove import Proof, prove
from symgrad.reference.recorder import Box
from tests.support.exemptions import exempt
from tests.support.lines import lines


def made(constructor, name, *rules, **rest):
    """An op outside of the registry."""
    try:
        return getattr(constructors, constructor)(name, *rules, **rest)
    finally:
        REGISTRY.pop(name, None)


def constant(x):
    """The value of a recorded number without its node, as of `detach`."""
    return Box(x.recorder, x.value) if isinstance(x, Box) else x


def transposed(xp, a):
    return xp.permute(a, (1, 0))


class Agreeing(NumericComparison):
    """A comparison of numbers that finds no difference."""

    def compare(self, *args):
        self.found = {key: NumericResult(20) for key in self.references}
        return self.found


# Wrong rules: the op, the order at which it is wrong first, and a statement that is refuted

WRONG = {what: (eval(f"lambda: {op}"), int(order), statement) for what, order, statement, op in lines("wrong_rules")}


@pytest.fixture
def third_slope(declare):
    """cos(x), whose second derivative is wrong."""
    return declare("third_slope", lambda xp, x: xp.cos(x), lambda xp, y, x: constant(-xp.sin(x)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_rule_is_refuted(what, third_slope):
    make, order, statement = WRONG[what]
    op = make()
    assert op.name not in REGISTRY
    proof = prove(op, 3 if order == 3 else 2, complex=False)
    assert proof.verdict == "refuted" and not proof
    assert min(s.order for s in proof.refuted) == order
    if order > 1:
        assert all(s.verdict == "proved" for s in proof.statements if s.order < order and s.what.startswith("vjp"))
    (first, *_) = [s for s in proof.refuted if s.what == statement]
    assert first.difference is not None and first.difference != 0 and first.point
    assert first.claim is not None and abs(first.claim - first.truth) > 0
    assert "refuted" in str(proof) and "sympy.diff gives" in str(proof)


@pytest.mark.sweep
def test_a_refuting_point_is_simple_and_the_difference_is_in_the_arguments():
    op = WRONG["below minus one"][0]()
    (vjp,) = [s for s in prove(op, 1, complex=False).statements if s.what == "vjp by x"]
    x, g = sympy.Symbol("x", real=True), sympy.Symbol("g", real=True)
    assert vjp.point == {"x": -2, "g": vjp.point["g"]}
    assert vjp.difference == sympy.Piecewise((g * sympy.exp(x) / 2, x < -1), (0, True))
    kink = [s for s in prove(WRONG["beyond a kink"][0](), 1, complex=False).statements if s.what == "vjp by x"]
    assert [(s.region, s.verdict) for s in kink] == [("x < 0", "proved"), ("x > 0", "refuted")]
    assert kink[1].difference.free_symbols == {x, g} and 0 < kink[1].point["x"] <= 1


def test_the_registry_is_unchanged():
    before = dict(REGISTRY)
    for make, _, _ in WRONG.values():
        make()
    assert before == REGISTRY


# Correct rules


@pytest.mark.sweep
def test_declared_ops_are_proved(declare):
    swish = declare("swish_of", lambda xp, x: x * xp.sigmoid(x), lambda xp, y, x: xp.sigmoid(x) + x * xp.sigmoid_slope(xp.sigmoid(x), x))
    proof = prove(swish)
    assert proof.verdict == "proved" and proof.kind == "elementwise" and all(s.points >= 20 for s in proof.statements)
    assert {s.order for s in proof.statements} == {1, 2, 3}
    square = symgrad.primitive("sum_of_squares_of", lambda xp, x: xp.sum(x * x), vjp=lambda xp, g, y, x: 2 * g * x,
                               jvp=lambda xp, t, y, x: xp.sum(2 * t * x))
    assert prove(square, 3, complex=False).verdict == "proved"


@pytest.mark.parametrize("given, name", [("arctan", "atan"), ("mul", "mul"), (symgrad.mul, "mul"), (REGISTRY["mul"], "mul"),
                                         (symgrad.Tensor.mul, "mul")])
def test_an_op_is_given_by_name_function_or_op(given, name):
    proof = prove(given, 1, complex=False)
    assert (proof.op, proof.verdict, proof.order) == (name, "proved", 1)


@pytest.mark.sweep
def test_functions_with_kinks_are_proved_between_them():
    def of(name):
        return [(s.region, s.verdict) for s in prove(name, 1, complex=False).statements if s.what.startswith("vjp by input")]

    assert of("relu") == [("input < 0", "proved"), ("input > 0", "proved")]
    assert [region for region, _ in of("clamp_below")] == ["input < 0.25", "input > 0.25"]
    assert ("-1 < input < 0.25", "proved") in of("clamp_number")
    assert of("maximum") == [("input largest", "proved"), ("other largest", "proved")]
    assert ("input > 0, other < 0", "proved") in of("fmod_tensor")
    assert len(of("amax")) == 8 + 9 + 6 and {verdict for _, verdict in of("amax")} == {"proved"}


def test_another_convention_at_a_kink_is_not_refuted():
    op = made("elementwise", "ramp", lambda xp, x: xp.relu(x), lambda xp, y, x: xp.indicator(xp.ge(x, 0), y))
    assert prove(op, 2, complex=False).verdict == "proved"


def test_inner_kinks_are_not_refuted():
    op = made("elementwise", "distance", lambda xp, x: xp.abs(x - 2), lambda xp, y, x: xp.sign(x - 2))  # which says nothing of a kink at 2
    assert prove(op, 2, complex=False).ok


# Rules that are neither proved nor refuted


def test_ops_without_a_rule_have_a_reason():
    for given, words in (("argmax", "whole numbers"), ("eq", "truth values"), ("reference", "constants"), (symgrad.sinc, "no rule of its own"),
                         ("batch", "vmap")):
        proof = prove(given)
        assert proof.verdict == "not checkable" and words in proof.reason and not proof.statements and words in str(proof)
    assert "complex" in prove("floor", complex=True).reason
    assert prove("hypot", complex=True).reason == "it takes no complex numbers"


def test_an_op_without_a_formula_is_not_checkable():
    op = made("primitive", "largest_place", lambda xp, x: xp.argmax(x) * xp.sum(x), vjp=lambda xp, g, y, x: g * xp.ones_like(x),
              jvp=lambda xp, t, y, x: xp.sum(t), shapes=((2,),))
    proof = prove(op, 1)
    assert proof.verdict == "not checkable" and "formula" in proof.statements[0].reason


def test_numbers_alone_verify_with_the_number_of_points(monkeypatch):
    monkeypatch.setattr(proving, "claims_of", lambda *args: ({}, "the rules have no formula: on purpose"))
    proof = prove("exp", 1, complex=False, points=11)
    assert proof.verdict == "verified" and all(s.points == 11 and "on purpose" in s.reason for s in proof.statements)


def test_a_wrong_symbolic_zero_is_no_proof(monkeypatch):
    monkeypatch.setattr(proving.Comparison, "_have_the_same_form", lambda *args: True)
    assert prove(WRONG["the sign"][0](), 1, complex=False).verdict == "refuted"
    monkeypatch.setattr(proving.CaseProof, "_numbers", lambda *args: (None, "no numbers, on purpose"))
    assert prove(WRONG["the sign"][0](), 1, complex=False).verdict == "not checkable"


@pytest.mark.sweep
@pytest.mark.parametrize("what", WRONG)
def test_formulas_alone_refuse_a_wrong_rule_too(what, monkeypatch, third_slope):
    make, order, _ = WRONG[what]
    monkeypatch.setattr(proving, "NumericComparison", Agreeing)
    assert prove(make(), 3 if order == 3 else 2, complex=False).verdict == "refuted"


def test_without_effort_only_trivial_statements_are_proved():
    assert prove("direction", 2, complex=False, effort=0.0, points=2).ok
    assert prove("mul", 2, complex=False, effort=0.0).verdict == "proved"  # whose formulas are the same as they stand
    assert "verified" in {s.verdict for s in prove("sinc_derivative", 1, complex=False, effort=0.0).statements}


@pytest.mark.sweep
def test_second_derivatives_of_normalized_rows_are_proved_with_the_default_effort():
    assert prove("normalized", 2, complex=False, points=6).verdict == "proved"


def test_an_aborted_proof_is_not_checkable_and_names_the_points():
    proof = prove("softmax", 3, seconds=0.2)
    assert proof.verdict == "not checkable" and re.search("aborted after 0.2 seconds: [0-9]+ of [0-9]+ planned points were compared", str(proof))


def test_invalid_input_is_refused():
    with pytest.raises(ValueError, match="order must be 1, 2 or 3, not 4"):
        prove("exp", 4)
    with pytest.raises(ValueError, match="order must be"):
        prove("exp", True)
    with pytest.raises(ValueError, match="no op 'tanhh'; did you mean 'tanh'"):
        prove("tanhh")
    with pytest.raises(TypeError, match="not function; .*symgrad.check"):
        prove(lambda x: x)


# Complex numbers


@pytest.mark.sweep
def test_analytic_rules_are_proved_on_the_plane():
    for name in ("exp", "log", "asin", "mul", "matmul_of", "cumsum"):
        proof = prove("batched_matmul" if name == "matmul_of" else name, 2, complex=True, points=6)
        assert proof.verdict == "proved" and all(s.case.startswith("complex") for s in proof.statements)
        assert {s.region for s in proof.statements} == {"the complex plane"}


@pytest.mark.sweep
def test_every_rule_on_single_complex_numbers_is_proved_or_the_op_takes_none():
    """Of real numbers every op is proved in test_registry."""
    proofs = [prove(op, 2, complex=True, points=6) for op in REGISTRY.values() if op.kind == "elementwise" and op.differentiable]
    assert {p.verdict for p in proofs if p.op != "sinc_derivative"} == {"proved", "not checkable"}
    assert [p.verdict for p in proofs if p.op == "sinc_derivative"] == ["verified"]  # its formula is another one at 0
    proved = {p.op for p in proofs if p.verdict == "proved"}
    assert proved >= {"add", "mul", "div", "exp", "log", "sqrt", "sin", "tan", "asin", "acos", "atanh", "tanh", "reciprocal", "abs"}
    assert all(p.reason for p in proofs if p.verdict == "not checkable")
    assert not {op for op in proved if "c" in REGISTRY[op].numerics.refuses}


@pytest.mark.sweep
def test_parts_and_absolute_values_are_proved_by_real_and_imaginary_parts():
    for name in [op.name for op in REGISTRY.values() if COMPLEX in op.domain and op.name not in exempt("formula")] + ["abs"]:
        proof = prove(name, 2, complex=True, points=6)
        assert proof.verdict == "proved" and {s.order for s in proof.statements} == {1}
    assert any("dtype" in note for note in prove("abs", 1).notes)


@pytest.mark.sweep
def test_a_rule_that_is_wrong_off_the_real_line_alone_is_refuted():
    op = made("elementwise", "conjugated", lambda xp, x: xp.exp(x), lambda xp, y, x: xp.conj(y) + xp.zeros_like(x))
    proof = prove(op, 1)
    assert {s.verdict for s in proof.statements if not s.case} == {"proved"} and proof.verdict == "refuted"
    (vjp, *_) = [s for s in proof.refuted if s.what.startswith("vjp")]
    assert vjp.point["x"] in (sympy.I, 1 + sympy.I) and "complex" in str(proof)


@pytest.mark.sweep
def test_a_gradient_of_parts_that_is_not_conjugated_is_refuted():
    right = REGISTRY["angle_of_complex"]
    op = made("primitive", "angle_conjugated", right.forward, vjp=lambda xp, g, y, x: xp.conj(right.vjp(xp, g, y, (x,), (True,))[0]),
              jvp=lambda xp, t, y, x: right.jvp(xp, [t], y, (x,)), domain=COMPLEX)
    assert prove(op).verdict == "refuted"


# Reports


def test_a_proof_is_shown_in_every_format():
    proof = prove("tanh", 2, complex=False)
    assert isinstance(proof, Proof) and proof.ok and bool(proof) and repr(proof) == "<Proof tanh: proved>"
    lines = str(proof).splitlines()
    assert lines[0] == "tanh: proved" and any(line.split() == ["2", "by", "input,", "input", "everywhere", "proved", "20"] for line in lines)
    assert "by input, input" in proof._repr_html_() and "<table>" in proof._repr_html_() and "| 2 |" in proof._repr_markdown_()
    data = json.loads(json.dumps(proof.to_dict(), allow_nan=False))
    assert data["verdict"] == "proved" and len(data["statements"]) == 3 and data["statements"][0]["points"] == 20
    refuted = prove(WRONG["the sign"][0](), 1, complex=False)
    data = json.loads(json.dumps(refuted.to_dict(), allow_nan=False))
    assert data["statements"][0]["verdict"] == "refuted" and data["statements"][0]["point"]["x"]
    assert "difference" in str(refuted) and "sin" in refuted._repr_html_()


@pytest.mark.sweep
def test_progress_is_reported():
    told = []
    prove("clamp_number", 1, complex=False, progress=lambda what, done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("name", ["tanh", "mul", "exp", "softmax", "det"])
def test_a_proof_by_enclosures_has_no_note_on_rigor(name, monkeypatch):
    proof = prove(name if name != "det" else "determinant", 1, complex=False)
    assert proof.verdict == "proved" and "not rigorous" not in str(proof)
    monkeypatch.setattr("symgrad.proofs.balls.enclosed", lambda: None)  # as without python-flint
    found = prove(name if name != "det" else "determinant", 1, complex=False)
    assert found.verdict == "proved" and "note: not rigorous at" in str(found)


@pytest.mark.parametrize("name", ["tanh", "sin", "multiply", "square", "sinh"])
def test_complex_numbers_are_compared_by_enclosures(name):
    proof = prove(name if name != "multiply" else "mul", 2, complex=True)
    assert proof.verdict == "proved" and "not rigorous" not in str(proof)
