"""`explain_nan`: the first cause in either pass and at any order, with its numbers, its line and the remedy."""

import io
import json
import math
import warnings

import pytest
from rich.console import Console

import symgrad
from symgrad import func
from symgrad.diagnose.nans import explain_nan
from tests.support.functions import saving

inf, nan, where = math.inf, math.nan, symgrad.where


Opaque = saving(lambda x: symgrad.tensor(1 / x.numpy(force=True)), lambda g, x: -g / x**2, "Opaque")  # whose forward leaves the graph
Logarithm = saving(lambda x: (x - 1).log(), lambda g, x: g / (x - 1), "Logarithm")
Divides = saving(lambda x: x * x, lambda g, x: 2 * g * x * x / x, "Divides")


def ratio(x):
    y = x.sin()
    return y / x


def derived(x):
    (g,) = symgrad.autograd.grad((abs(x) ** 1.5).sum(), x, create_graph=True)
    return (g * 0).sum()


# The function, its input, the order; what is found: the order, the first forward cause (op, element, expression, operands, value), the
# first backward cause (node, element, expression, slope, incoming, value), and a word of the remedies.
CASES = {
    "log of 0": (lambda x: x.log(), 0.0, 1, 0, ("log", (), "log(x)", {"x": 0.0}, -inf), ("LogBackward0", (), "1/x", inf, 1.0, inf), "log_softmax"),
    "x log x": (lambda x: (x * x.log()).sum(), [1.0, 0.0], 1, 0, ("log", (1,), "log(x)", {"x": 0.0}, -inf),
                ("LogBackward0", (1,), "1/x", inf, 0.0, nan), "0 times infinite"),
    "log of a negative number": (lambda x: (x - 2).log(), 1.0, 1, 0, ("log", (), "log(x)", {"x": -1.0}, nan), None, "of a negative number"),
    "0/0": (ratio, 0.0, 1, 0, ("div", (), "a/b", {"a": 0.0, "b": 0.0}, nan), ("DivBackward0", (), "-a/b**2", nan, 1.0, nan), "sinc"),
    "overflow": (lambda x: (1 + x.exp()).log(), 800.0, 1, 0, ("exp", (), "exp(x)", {"x": 800.0}, inf), ("ExpBackward0", (), "exp(x)", inf, 0.0, nan),
                 "softplus"),
    "inf - inf": (lambda x: x.exp() - (2 * x).exp(), 800.0, 1, 0, ("exp", (), "exp(x)", {"x": 800.0}, inf), None, "infinite minus infinite"),
    "a product with a mask": (lambda x: ((x > 0).to(symgrad.float64) * x.log()).sum(), [0.0, 1.0], 1, 0, ("log", (0,), "log(x)", {"x": 0.0}, -inf),
                              ("LogBackward0", (0,), "1/x", inf, 0.0, nan), "choose with where"),
    "an input": (lambda x: x.sin().sum(), [1.0, nan], 1, 0, ("x", (1,), None, {}, nan), None, "an input is not finite"),
    "a constant": (lambda x: x @ symgrad.tensor([1.0, inf]), [1.0, 1.0], 1, 0, ("dot", (1,), None, {}, inf), None, None),
    "a Function, by its forward": (lambda x: Logarithm.apply(x).sum(), [2.0, 1.0], 1, 0, ("log", (1,), "log(x)", {"x": 0.0}, -inf),
                                   ("LogarithmBackward", (1,), None, None, None, inf), "log of 0"),
    "a Function that left the graph": (lambda x: Opaque.apply(x).sum(), [2.0, 0.0], 1, 0, ("OpaqueBackward", (1,), None, {}, inf), None, None),
    "sqrt at 0": (lambda x: x * (x * x).sqrt(), 0.0, 1, 1, None, ("SqrtBackward0", (), "1/(2*sqrt(x))", inf, 0.0, nan), "norm or hypot"),
    "sqrt at 0, infinite": (lambda x: x.sqrt().sum(), [1.0, 0.0], 1, 1, None, ("SqrtBackward0", (1,), "1/(2*sqrt(x))", inf, 1.0, inf), "slope at 0"),
    "inside where": (lambda x: where(x > -1, (x * x).sqrt(), x).sum(), [0.0, 1.0], 1, 1, None,
                     ("SqrtBackward0", (0,), "1/(2*sqrt(x))", inf, 1.0, inf), "choose before it"),
    "the end of a domain": (lambda x: x.acos(), 1.0, 1, 1, None, ("AcosBackward0", (), "-1/sqrt(1 - x**2)", -inf, 1.0, -inf), "atan2"),
    "a Function, by its backward": (lambda x: Divides.apply(x).sum(), [1.0, 0.0], 1, 1, None, ("DividesBackward", (1,), None, None, None, nan),
                                    "the backward of this Function"),
    "a batch": (lambda x: func.vmap(lambda row: (row * row).sum().sqrt() * 0)(x).sum(), [[1.0, 2.0], [0.0, 0.0]], 1, 1, None,
                ("SqrtBackward0", (1,), "1/(2*sqrt(x))", inf, 0.0, nan), "slope at 0"),
    "second order": (lambda x: (abs(x) ** 1.5).sum(), [1.0, 0.0], 2, 2, None, ("PowBackward0", (1,), "0.5/x**0.5", inf, 0.0, nan), "a power"),
    "third order": (lambda x: x**2.5, 0.0, 3, 3, None, ("PowBackward0", (), "0.5/x**0.5", inf, 3.75, inf), "a power"),
    "a double backward in the function": (derived, [0.0, 1.0], 1, 1, None, ("PowBackward0", (0,), "0.5/x**0.5", inf, 0.0, nan), "a power"),
}


def agree(a, b):
    return a == b or isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)


@pytest.mark.parametrize("name", CASES)
def test_first_causes_and_remedies(name):
    function, given, order, found, forward, backward, remedy = CASES[name]
    report = explain_nan(function, inputs=(given,), order=order)
    assert report.verdict == "not finite" and report.order == found
    if forward is None:
        assert report.forward is None and report.first is report.backward
    else:
        cause = report.forward
        assert (cause.op, cause.element, cause.expression, cause.operands) == forward[:4] and agree(cause.value, forward[4])
        assert report.first is cause and "forward pass" in report.reason
        assert cause.line is None if cause.kind == "leaf" else cause.line.startswith(f"{__file__}:")
    if backward is not None:
        cause = report.backward
        assert (cause.op, cause.element, cause.expression) == backward[:3]
        assert all(map(agree, (cause.slope, cause.incoming, cause.value), backward[3:])), cause
        assert cause.line.startswith(f"{__file__}:")
    if remedy is not None:
        assert any(remedy in text for text in report.remedies), report.remedies


FINE = {
    "smooth": (lambda x: x.exp().sum(), [0.0, 1.0]),
    "not chosen by where": (lambda x: where(x > 0, x.log(), 0 * x).sum(), [0.0, 1.0]),
    "the remedy of sqrt": (lambda x: where(x > 0, where(x > 0, x, 1.0).sqrt(), 0.0).sum(), [0.0, 1.0]),
    "the remedy of overflow": (lambda x: x.logsumexp(0) + symgrad.softplus(x).sum(), [800.0, -800.0]),
    "the remedy of a norm": (lambda x: symgrad.norm(x) ** 2, [0.0, 0.0]),  # the norm itself has infinite curvature at 0
    "the remedy of 0/0": (lambda x: symgrad.sinc(x).sum(), [0.0, 1.0]),
}


@pytest.mark.parametrize("name", FINE)
def test_finite_results(name):
    function, given = FINE[name]
    report = explain_nan(function, inputs=(given,), order=2)
    assert report.verdict == "finite" and report.order is None and report.first is None and not report.remedies
    assert any("were not chosen" in text for text in report.notes) == (name == "not chosen by where")


def test_the_users_lines():
    def value(x):
        y = x - 1
        z = y.log()
        return (z * z).sum()

    report = explain_nan(value, inputs=([2.0, 1.0],))
    assert report.forward.line.endswith("z = y.log()") and report.backward.line.endswith("return (z * z).sum()")
    assert report.steps == [("log", -inf), ("mul", inf), ("sum", inf)]
    assert "from there: log -inf → mul inf → sum inf" in str(report)


def test_an_operation_of_a_backward_pass_has_the_line_of_its_forward():
    def loss(x):
        y = abs(x)
        return (y**1.5).sum()

    report = explain_nan(loss, inputs=([0.0],), order=2)
    assert report.backward.line.endswith("return (y**1.5).sum()") and report.backward.within[0].startswith("that of PowBackward0, called at")
    assert "a derivative of order 2 is not finite; the first cause is in the backward pass of order 2" in report.reason
    report = explain_nan(derived, inputs=([0.0],))
    assert "symgrad.autograd.grad" in report.backward.line and "abs(x) ** 1.5" in report.backward.within[0]


def test_the_op_that_turns_an_infinity_into_nan_is_named():
    report = explain_nan(lambda x: (x * x.log()).sum(), inputs=([1.0, 0.0],))
    assert report.reason.endswith("log is infinite, of which mul makes NaN")


def test_a_recorded_graph():
    x = symgrad.tensor([0.0, 4.0], requires_grad=True)
    report = explain_nan((x.sqrt() * 0).sum())
    assert report.function == "loss" and report.backward.op == "SqrtBackward0" and report.backward.line is None
    assert "not recorded" in str(report) and x.grad is None
    with symgrad.autograd.set_detect_anomaly(True):
        loss = (x.sqrt() * 0).sum()
    assert explain_nan(loss).backward.line.endswith("loss = (x.sqrt() * 0).sum()")
    assert explain_nan(loss, inputs=[x], order=2).order == 1
    assert not symgrad.is_anomaly_enabled()
    y = symgrad.tensor(1.0, requires_grad=True)
    y_hooked = y * 2
    y_hooked.register_hook(lambda g: g * nan)
    assert explain_nan(y_hooked * 3).backward.kind == "hook"


def test_anomaly_mode_and_explain_nan_find_the_same_cause():
    def loss(x):
        return (x.sqrt() * 0).sum()

    x = symgrad.tensor([4.0, 0.0], requires_grad=True)
    with warnings.catch_warnings(), symgrad.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError) as caught:
        warnings.simplefilter("ignore")
        loss(x).backward()
    report = explain_nan(loss, inputs=(x,))
    cause = caught.value.cause
    assert cause.node.name() == report.backward.op and cause.place == report.backward.element
    assert cause.record.line == report.backward.line and cause.local.point == "x = 0.0" and report.backward.operands == {"x": 0.0}


def test_anomaly_mode_finds_a_cause_inside_a_function():
    x = symgrad.tensor([2.0, 1.0], requires_grad=True, symbol="x")
    with warnings.catch_warnings(), symgrad.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError) as caught:
        warnings.simplefilter("ignore")
        y = Logarithm.apply(x)
        (y - y).sin().sum().backward()
    assert "Forward: log(x) at x = 0.0 is the first value that is not finite: -inf at element [1]." in str(caught.value)


def test_invalid_arguments_raise():
    x = symgrad.tensor([1.0], requires_grad=True)
    loss = x.exp().sin().sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="explain_nan: Trying to backward"):
        explain_nan(loss)
    with pytest.raises(TypeError, match="was not computed from a leaf"):
        explain_nan(symgrad.tensor(1.0))
    with pytest.raises(TypeError, match="not int"):
        explain_nan(3)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        explain_nan(x.exp().sum(), order=0)
    with pytest.raises(TypeError, match="inputs must be leaves"):
        explain_nan(x.exp().sum(), inputs=[2.0])


def test_report_formats():
    report = explain_nan(ratio, inputs=0.0)
    for shown in (str(report), report._repr_markdown_(), report._repr_html_()):
        assert "not finite" in shown and "div" in shown and "sinc" in shown
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["forward"]["value"] == "nan" and plain["forward"]["expression"] == "a/b" and plain["order"] == 0
    assert json.loads(json.dumps(explain_nan(lambda x: x.exp(), inputs=0.0).to_dict()))["forward"] is None
    console = Console(width=250, file=io.StringIO())
    console.print(report)
    assert "First causes" in console.file.getvalue() and repr(report) == "<NanReport ratio: not finite>"


def test_anomaly_mode_finds_a_cause_inside_a_batch():
    x = symgrad.tensor([[1.0, 2.0], [0.0, 0.0]])
    with warnings.catch_warnings(), symgrad.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError) as caught:
        warnings.simplefilter("ignore")
        func.vmap(func.grad(lambda row: (row * row).sum().sqrt() * 0))(x)
    assert "SqrtBackward0 made the first gradient that is not finite at element [1]: its derivative by x is 1/(2*sqrt(x))" in str(caught.value)
