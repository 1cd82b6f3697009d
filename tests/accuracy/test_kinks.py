"""The kink report: the list of kinks, and whether the returned gradient is in the subdifferential of the function."""

import io
import json
import math

import numpy as np
import pytest
from rich.console import Console

import symgrad
from symgrad.diagnose.kinks.kink import Kink, KinkReport, Side
from symgrad.diagnose.kinks.kinks import kinks, note
from symgrad.diagnose.kinks.switches import hull_distance
from symgrad.frameworks.differentiation_task import DifferentiationTask
from tests.support.functions import saving
from tests.support.lines import lines

where, amax, stack = symgrad.where, symgrad.amax, symgrad.stack


def identity(x):
    return x.relu() - (-x).relu()


def hinge(w, b):
    X, y = symgrad.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), symgrad.tensor([1.0, 1.0, -1.0])
    return (1 - y * (X @ w + b)).relu().sum()


def network(W, b, V, c):
    X = symgrad.tensor([[1.0, 2.0], [3.0, -1.0]])
    return (((X @ W + b).relu() @ V + c) ** 2).sum()


def branching(x):
    if x > 0:
        return 3 * x
    return 2 * x


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name, verdict, returned, gradients, inputs, function", lines("kinks"))
def test_verdict_and_limiting_gradients_of_a_program(name, verdict, returned, gradients, inputs, function):
    report = kinks(eval(function), inputs=eval(inputs))
    assert report.verdict == verdict, str(report)
    np.testing.assert_array_equal(report.returned, np.array(eval(returned), float))
    found = sorted((g + 0.0).tolist() for g in report.gradients)
    np.testing.assert_allclose(found, sorted(eval(gradients)), rtol=1e-14, atol=1e-14)
    assert report.inside is (verdict == "inside")


@pytest.mark.parametrize("name, reason, inputs, function", lines("undecided_kinks"))
def test_an_undecided_verdict_has_a_reason(name, reason, inputs, function):
    report = kinks(eval(function), inputs=eval(inputs))
    assert report.verdict == "undecided" and reason in report.reason and report.inside is None


@pytest.mark.sweep
def test_a_norm_at_zero_is_inside_and_its_gradients_are_incomplete():
    for function, inputs in ((symgrad.norm, ([0.0, 0.0, 0.0],)), (symgrad.hypot, (0.0, 0.0)), (symgrad.std, ([1.0, 1.0],))):
        report = kinks(function, inputs=inputs)
        assert report.verdict == "inside" and not report.complete and report.differentiable is False
        assert not report.returned.any() and report.kinks[0].convention == "the derivative of least norm: 0"


def only(report):
    (kink,) = report.kinks
    return kink


def test_listed_kinks():
    def loss(x):
        return x.relu().sum()

    report = kinks(loss, inputs=([0.0, 3.0, -1.0],))
    kink = only(report)
    assert (kink.op, kink.node, kink.element, kink.values, kink.distance) == ("relu", "ReluBackward0", (0,), {"input[0]": 0.0}, 0.0)
    assert kink.sides == (Side("input[0]", 1, 0.0, 1.0, 0.0),) and kink.kind == "kink" and kink.between and not kink.rounded
    assert kink.line.endswith("return x.relu().sum()") and __file__ in kink.line
    assert kink.convention == "the derivative of least norm: 0"
    tied = only(kinks(symgrad.maximum, inputs=(2.0, 2.0)))
    assert tied.sides == (Side("input", 1, 0.0, 1.0, 0.5), Side("other", 1, 0.0, 1.0, 0.5)) and tied.convention == "tied elements share equally"
    jump = only(kinks(lambda x: x.floor() * 0 + x, inputs=(2.0,)))
    assert jump.kind == "jump" and jump.sides == (Side("input", 0, 1.0, 2.0, 0.0),) and jump.smoothness == 0
    condition = only(kinks(lambda x: where(x >= 1, x, 2 - x), inputs=(1.0,)))
    assert condition.op == "ge" and condition.kind == "condition" and condition.convention.endswith("True") and condition.smoothness is None
    assert only(kinks(lambda x: x.sqrt(), inputs=(0.0,))).kind == "edge of the domain"
    assert not kinks(lambda x: symgrad.sinc(x) + x.trunc(), inputs=(0.0,)).kinks


def test_the_distance():
    def loss(x):
        return (x.relu() + x.clamp(0.5, 1.0) + x.floor()).sum()

    assert not kinks(loss, inputs=([0.01, 0.49, 1.02],)).kinks
    report = kinks(loss, inputs=([0.01, 0.49, 1.03],), distance=0.05)
    assert [(k.op, k.element, round(k.distance, 10)) for k in report.kinks] == [
        ("relu", (0,), 0.01), ("clamp_number", (1,), 0.01), ("clamp_number", (2,), 0.03), ("floor", (0,), 0.01), ("floor", (2,), 0.03)]
    assert report.verdict == "inside" and report.kinks[3].sides[0].left == -1 and "at no kink" in report.reason
    assert "Kinks and ties within 0.05" in str(report)


def test_the_order_of_smoothness(declare):
    for k in (1, 2, 3):
        op = declare(f"bend{k}", lambda xp, x, k=k: xp.where(xp.gt(x, 0), x**k, 0 * x),
                     lambda xp, y, x, k=k: xp.where(xp.gt(x, 0), k * x**(k - 1), 0 * x))
        kink = only(kinks(op, inputs=(0.0,)))
        assert kink.smoothness == k and kink.sides[0].left == 0 and kink.sides[0].right == math.factorial(k)
    assert kink.kind == "third derivative jumps"
    assert [k.kind for k in kinks(lambda x: abs(x) ** 1.5, inputs=(0.0,)).kinks] == ["kink", "edge of the domain"]


def test_a_wrong_convention_is_flagged(declare):
    op = declare("wrong_abs", lambda xp, x: xp.abs(x), lambda xp, y, x: xp.where(xp.eq(x, 0), 2 + 0 * x, xp.sign(x)))
    report = kinks(op, inputs=(0.0,))
    kink = only(report)
    assert report.verdict == "outside" and report.interval == (-1, 1) and report.returned == 2
    assert not kink.between and kink.sides[0].between is False and kink.convention == "what the op's own rule gives" and "outside" in str(report)


def test_a_rule_that_is_wrong_beside_the_kink_leaves_the_verdict_undecided(declare):
    op = declare("wrong_relu", lambda xp, x: xp.relu(x), lambda xp, y, x: xp.where(xp.gt(x, 0), 3 + 0 * x, 0 * x))
    report = kinks(op, inputs=(0.0,))
    assert report.verdict == "undecided" and "the rules give a slope of" in report.reason and "a rule is wrong there" in report.reason


def test_a_wrong_backward_of_a_function():
    Halved = saving(lambda x: x.abs(), lambda g, x: g * where(x == 0, -5.0 + 0 * x, x.sign()), "Halved")

    report = kinks(lambda x: Halved.apply(x), inputs=(0.0,))
    assert report.verdict == "outside" and report.interval == (-1, 1)


@pytest.mark.sweep
def test_a_recorded_graph():
    x = symgrad.tensor([0.0, 1.0], requires_grad=True)
    report = kinks(identity(x).sum())
    assert report.verdict == "outside" and report.names == ["x_0", "x_1"] and report.returned.tolist() == [0, 1]
    assert report.kinks[0].line is None and report.gradients[0].tolist() == [1, 1]
    with symgrad.autograd.set_detect_anomaly(True):
        loss = x.relu().sum()
    assert kinks(loss).kinks[0].line.endswith("loss = x.relu().sum()")
    y = symgrad.tensor(0.0, requires_grad=True, symbol="y")
    assert kinks((x * y).abs().sum(), inputs=[y]).names == ["y"]
    picked = kinks(symgrad.sort(symgrad.stack([y, 2 * y])).values[0] + identity(y))
    assert picked.verdict == "undecided" and "give kinks the function" in picked.reason
    masked = kinks(where(x > 0, x, -x).sum())
    assert any("conditions of where are fixed" in text for text in masked.notes)
    loss.backward()
    assert kinks(x.exp().relu().sum()).verdict == "inside"


def test_invalid_arguments_raise():
    x = symgrad.tensor([0.0, 1.0], requires_grad=True)
    loss = (x.relu() * x.exp()).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="kinks: Trying to backward through the graph a second time"):
        kinks(loss)
    with pytest.raises(TypeError, match="was not computed from a leaf"):
        kinks(symgrad.tensor(1.0))
    with pytest.raises(TypeError, match="kinks needs a tensor .* not float"):
        kinks(1.0)
    with pytest.raises(TypeError, match="inputs must be leaves"):
        kinks(x.relu().sum(), inputs=[3.0])
    with pytest.raises(ValueError, match="distance must be a number of at least 0, not -1"):
        kinks(abs, distance=-1, inputs=0.0)
    assert kinks(lambda x: 1.0, inputs=0.0).verdict == "undecided"


@pytest.mark.sweep
def test_a_large_graph_is_listed_only():
    report = kinks(lambda x: x.relu().sum(), inputs=(np.zeros(200_000),))
    assert report.verdict == "undecided" and "elements" in report.reason and len(report.kinks) == 200
    assert any("no more than 200 kinks are listed" in text for text in report.notes)


@pytest.mark.sweep
def test_more_kinks_than_the_search_visits():
    report = kinks(lambda x: abs(x).sum() + 3 * identity(x.sum()), inputs=(np.zeros(14),))
    assert report.verdict == "undecided" and "more than 12 different kinks" in report.reason
    assert kinks(lambda x: abs(x).sum(), inputs=(np.zeros(14),)).verdict == "inside"


def test_single_precision():
    report = kinks(lambda x: amax(x * 0.1), inputs=(symgrad.tensor([1.0, 1.0, 1.0], dtype=symgrad.float32),))
    assert report.verdict == "inside" and len(report.gradients) == 3


def test_report_formats():
    report = kinks(lambda x: identity(x), inputs=(0.0,))
    for shown in (str(report), report._repr_markdown_(), report._repr_html_()):
        assert "outside" in shown and "relu" in shown and "differentiable there" in shown
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["kinks"][0]["sides"][0] == {"element": "input", "order": 1, "left": 0.0, "right": 1.0, "returned": 0.0}
    assert report.to_dict()["gradients"] == [[1.0]] and repr(report) == "<KinkReport <lambda>: outside>"
    console = Console(width=200, file=io.StringIO())
    console.print(report)
    assert "outside" in console.file.getvalue()
    assert isinstance(report.kinks[0], Kink) and isinstance(report, KinkReport)


def test_the_note_for_a_check():
    def noted(function, *inputs):
        problem = DifferentiationTask(function, inputs)
        return note(problem.run(problem.point, named=True))

    assert noted(identity, 0.0).startswith("the given point is at a kink of relu: the returned gradient 0 is not in the Clarke")
    assert noted(abs, 0.0).startswith("the given point is at a kink of abs: the returned gradient 0 is in the convex hull")
    assert noted(identity, 1.0) is None and noted(lambda x: x.sin(), 0.0) is None


def test_the_distance_to_a_hull():
    square = [np.array(p, float) for p in ((0, 0), (1, 0), (0, 1), (1, 1))]
    assert hull_distance(square, np.array([0.25, 0.75])) < 1e-9
    assert hull_distance(square, np.array([1.5, 0.5])) == pytest.approx(0.5)
    assert hull_distance(square[:1], np.array([0.0, -2.0])) == 2


def test_a_function_that_is_right_where_its_forward_has_kinks():
    Straight = saving(lambda x: identity(x), lambda g, x: g, "Straight")

    assert kinks(lambda x: Straight.apply(x), inputs=(0.0,)).verdict == "inside"


def test_batched_and_complex_computations_are_undecided():
    batched = kinks(lambda x: symgrad.func.vmap(lambda row: row.relu().sum())(x).sum(), inputs=([[0.0, 1.0]],))
    assert batched.verdict == "undecided" and "vmap" in batched.reason
    assert kinks(lambda x: symgrad.complex(x, x).abs(), inputs=(0.0,)).verdict == "undecided"


def test_a_leaf_made_in_the_call():
    report = kinks(lambda x: abs(symgrad.tensor(0.0, requires_grad=True)) * x, inputs=(1.0,))
    assert report.verdict != "undecided" and report.kinks[0].op == "abs"


def test_a_leaf_that_nothing_else_refers_to():
    report = kinks(symgrad.tensor(0.0, requires_grad=True).abs())
    assert report.kinks[0].op == "abs" and report.interval == kinks(lambda x: x.abs(), inputs=0.0).interval
