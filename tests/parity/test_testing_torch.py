"""torch under attack: Functions and functions, right and wrong, by the same checks and with the same reports as symgrad's own."""

import threading

import ml_dtypes
import numpy as np
import pytest
import sympy
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from symgrad.frameworks.adapter import NotApplicable
from symgrad.frameworks.naming import import_path
from symgrad.testing import CHECKS, CheckFailure, check_op
from symgrad.testing.attack import Attack
from symgrad.testing.ghostwriting import ghostwrite
from tests.support.tables import table
from tests.testing.test_ghostwriting import claims

F = torch.nn.functional
X = sympy.Symbol("x", real=True)


class Cube(Function):
    """Everything right: forward mode and vmap, too."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] ** 2 * g

    @staticmethod
    def jvp(ctx, t):
        return 3 * ctx.saved_tensors[0] ** 2 * t


class Old(Function):
    """As people wrote them: ctx in the forward, no jvp, no vmap."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        dx, dy = g * y * y, 2 * g * x * y
        return dx.sum_to_size(x.shape), dy.sum_to_size(y.shape)


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * torch.cos(ctx.saved_tensors[0])


class Scaled(Function):
    """With a number after the tensor, for which there is no gradient."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


def wrong(forward, backward, jvp=None):
    """A Function of what its methods compute, of one tensor."""
    members = {"forward": staticmethod(forward), "setup_context": staticmethod(lambda ctx, inputs, output: _keep(ctx, inputs)),
               "backward": staticmethod(lambda ctx, g: backward(ctx.saved_tensors[0], g)), "generate_vmap_rule": True}
    if jvp is not None:
        members["jvp"] = staticmethod(lambda ctx, t: jvp(ctx.saved_tensors[0], t))
    return type("Wrong", (Function,), members)


def _keep(ctx, inputs):
    ctx.save_for_backward(*inputs)
    ctx.save_for_forward(*inputs)


class Counter:
    """Not the same twice."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return torch.sin(x) + 1e-3 * self.calls


def in_place(x):
    with torch.no_grad():
        x *= 1.0000001
    return x * 1.0


WHERE_LOW = lambda x: torch.where(x < -1, 1.000001, 1.0)
WRONG = table(globals(), "WRONG")


def verdict(report, check):
    return {r.check: r.verdict for r in report.results}[check]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_op_is_caught_by_the_check_that_is_meant(name):
    op, claims, check = WRONG[name]
    report = check_op(op, **claims, checks=[check], raise_exception=False, shrink=False)
    assert verdict(report, check) == "failed", str(report)


RIGHT = table(globals(), "RIGHT")


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_op_is_not_accused(name):
    op, claims = RIGHT[name]
    report = check_op(op, **claims, raise_exception=False)
    assert report.verdict == "passed", str(report)


def test_every_order_of_a_right_op_is_looked_at():
    report = check_op(Cube, formula="x^3")
    passed = [r.check for r in report.results if r.verdict == "passed"]
    assert {"value", "pullback", "pushforward", "second", "third", "adjoint", "batching", "structure", "layouts"} <= set(passed)


def test_a_cotangent_that_is_detached_is_found_where_there_is_no_jvp():
    detached = wrong(lambda x: x**3, lambda x, g: 3 * x * x * g.detach())
    report = check_op(detached, formula="x^3", order=2, checks=["pullback", "second", "mixed"], raise_exception=False, shrink=False)
    assert [r.verdict for r in report.results] == ["passed", "passed", "failed"], str(report)
    assert check_op(Old, formula="x*y^2", checks=["mixed"]).results[0].verdict == "passed"


class Dense(torch.nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 12).reshape(4, 3).to(dtype))

    def forward(self, x):
        return torch.sigmoid(x @ self.weight)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_module_is_attacked_in_the_type_of_its_own_tensors(dtype):
    module = Dense(getattr(torch, dtype))
    assert Attack(module, shapes=((2, 4),)).dtype == dtype
    report = check_op(module, shapes=((2, 4),), order=2, domain=(-2, 2), raise_exception=False)
    assert report.verdict == "passed", str(report)


def test_once_differentiable_is_found_out_and_a_claimed_second_order_is_a_failure():
    assert Attack(Once, formula="sin(x)").order == 1 and Attack(Cube).order == 3
    report = check_op(Once, formula="sin(x)", domain=(-9, 9), checks=["pullback", "second"])
    assert verdict(report, "pullback") == "passed" and verdict(report, "second") == "not applicable"
    claimed = check_op(Once, formula="sin(x)", domain=(-9, 9), order=2, checks=["second"], raise_exception=False)
    assert verdict(claimed, "second") == "failed" and "marked with @once_differentiable" in claimed.failures[0].wrong.what
    assert Attack(lambda x: x * x + Once.apply(x), framework="torch").order == 1  # also where a part of the gradient can be differentiated


def test_what_a_function_has_no_rule_for_does_not_apply_and_says_why():
    old = Attack(Old)
    assert old.names == ["x", "y"] and not (old.order and old.subject.forward)
    with pytest.raises(NotApplicable, match="no forward mode: .*jvp"):
        old.subject.tangent([np.ones(2)] * 2, [np.ones(2)] * 2)
    with pytest.raises(NotApplicable, match="no rule for vmap: .*must override the setup_context"):
        old.subject.mapped([0, 0]).value([np.ones((2, 3))] * 2)
    with pytest.raises(RuntimeError, match="must override the setup_context"):
        Attack(Old, batched=True).subject.mapped([0, 0]).value([np.ones((2, 3))] * 2)
    with pytest.raises(NotApplicable, match="data-dependent control flow"):
        Attack(lambda x: x if x.sum() > 0 else -x, framework="torch").subject.mapped([0]).value([np.ones((2, 3))])


def test_derivatives_of_every_order_are_those_of_nested_pullbacks():
    subject, x, ones = Attack(Cube).subject, np.array([1.0, 2.0]), [np.ones(2)]
    assert subject.gradient([x], np.array([1.0, 10.0]))[0].tolist() == [3.0, 120.0]
    assert subject.gradient([x], np.ones(2), [np.array([2.0, 3.0])])[0].tolist() == [12.0, 36.0]
    assert subject.gradient([x], np.ones(2), ones, ones)[0].tolist() == [6.0, 6.0]
    assert subject.tangent([x], [np.array([1.0, 10.0])]).tolist() == [3.0, 120.0]
    assert subject.mapped([0]).value([np.array([x, 2 * x])]).tolist() == [[1.0, 8.0], [8.0, 64.0]]
    assert subject.mapped([0]).gradient([np.array([x, 2 * x])], np.ones((2, 2)))[0].tolist() == [[3.0, 12.0], [12.0, 48.0]]


def test_what_does_not_depend_on_an_argument_has_no_gradient():
    subject = Attack(lambda x, y: 2 * x + 0 * y.detach(), framework="torch").subject
    assert [None if g is None else g.tolist() for g in subject.gradient([np.ones(2)] * 2, np.ones(2))] == [[2.0, 2.0], None]
    assert subject.gradient([np.ones(2)] * 2, np.ones(2), [np.ones(2)] * 2) == [None, None]
    index = Attack(lambda x, i: x[i], framework="torch").subject
    assert [None if g is None else g.tolist() for g in index.gradient([np.ones(3), np.array([0, 0])], np.ones(2))] == [[2.0, 0.0, 0.0], None]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_every_dtype_goes_through_and_comes_back(dtype):
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    subject, x = Attack(Cube).subject, np.array([1.0, -0.5, 2.0]).astype(kind)
    assert subject.value([x]).dtype == kind and subject.value([x]).tolist() == [1.0, -0.125, 8.0]
    (g,) = subject.gradient([x], np.ones(3))
    assert g.dtype == kind and g.tolist() == [3.0, 0.75, 12.0]
    assert subject.tangent([x], [np.ones(3).astype(kind)]).dtype == kind


def test_a_leaf_has_the_memory_of_its_array_where_torch_can():
    subject, x = Attack(Cube).subject, np.arange(6.0)
    subject.leaf(x, False)[0] = 9.0
    assert x[0] == 9.0
    strided = subject.leaf(x[::2], False)
    assert strided.stride() == (2,) and subject.array(strided).ctypes.data == x.ctypes.data
    still = x.copy()
    still.flags.writeable = False
    assert subject.leaf(still).tolist() == x.tolist() and subject.leaf(x[::-1]).tolist() == x[::-1].tolist()


def test_the_gradient_of_complex_numbers_is_the_one_torch_has():
    (g,) = Attack(torch.square).subject.gradient([np.array([1 + 2j])], np.array([1.0 + 0j]))
    assert g.tolist() == [2 - 4j]
    with pytest.raises(NotApplicable, match="no complex derivative"):
        Attack(F.silu).subject.gradient([np.array([1 + 2j])], np.array([1.0 + 0j]))


def test_dual_numbers_are_made_by_one_thread_at_a_time():
    subject, errors = Attack(Cube).subject, []

    def push():
        try:
            for _ in range(50):
                subject.tangent([np.ones(2)], [np.ones(2)])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=push) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []


def test_a_function_is_imported_from_where_people_know_it():
    found = [import_path(f) for f in (F.gelu, torch.special.erfcx, torch.exp, torch.linalg.inv, F.silu, Cube.apply)]
    assert found == [("torch.nn.functional", "gelu"), ("torch.special", "erfcx"), ("torch", "exp"), ("torch.linalg", "inv"),
                     ("torch.nn.functional", "silu"), (__name__, "Cube")]
    assert Attack(torch.logaddexp).names == ["x0", "x1"] and Attack(torch.nn.Tanhshrink()).names == ["input"]


class Slightly(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.cos(x) * WHERE_LOW(x)


def test_a_report_has_all_its_parts_and_its_code_runs():
    with pytest.raises(CheckFailure) as caught:
        CHECKS["pullback"].function(Slightly, formula="sin(x)", domain=(-50, 50))
    failure = caught.value.failure
    text = str(failure)
    assert text.startswith("Slightly: pullback: the gradient is wrong")
    for part in ("x          float64 ()  -2.0", "cotangent  float64 ()  1.0", "Derivative of order 1, by x", "returned  -0.4161472", "ULP",
                 "true      -0.416146836547142386", "exact is the formula sin(x)", "to see it again:", "drawn with seed=0",
                 "pytest tests/parity/test_testing_torch.py::test_a_report_has_all_its_parts_and_its_code_runs"):
        assert part in text, part
    assert f"from {__name__} import Slightly" in failure.snippet
    with pytest.raises(CheckFailure) as again:
        exec(compile(failure.snippet, "snippet", "exec"), {})
    assert again.value.failure.wrong.ulp == failure.wrong.ulp and again.value.failure.snippet == failure.snippet


def test_the_gradient_in_a_tuple_is_checked():
    claims = {"formula": "sin(x)", "domain": (-9, 9), "raise_exception": False, "shrink": False}
    report = check_op((lambda x: torch.sin(x), lambda x: torch.cos(x)), **claims)
    assert report.verdict == "passed" and verdict(report, "pullback") == "passed", str(report)
    report = check_op((lambda x: torch.sin(x), lambda x: torch.cos(2 * x)), **claims, checks=["pullback"])
    assert report.verdict == "failed"


def test_shapes_of_a_compiled_function_of_torch():
    found = claims(ghostwrite("torch.nn.functional:linear"))
    assert found["shapes"] == "((2, 3), (4, 3))" and found["framework"] == "'torch'"
