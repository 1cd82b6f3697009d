"""Cross-checks of torch, JAX and HIPS autograd: losses of accuracy and wrong double backwards are found, and what is right is verified."""

import doctest
import shlex

import autograd.extend
import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import symgrad
from symgrad.checks.cross import cross_check
from symgrad.cli import main
from symgrad.frameworks.naming import framework_of
from symgrad.reports.base import IMPRECISE, REFUTED, VERIFIED
from tests.check.test_imprecise import check
from tests.support.pages import ROOT, session, sessions

SIGMOID, LOGSIGMOID = "1/(1 + exp(-x))", "-log(1 + exp(-x))"


def hips_sigmoid(x):
    return 1 / (1 + anp.exp(-x))


# Each derivative with the point at which all its digits are known to be lost: for each framework the function and its verdict.
# The formulas, the orders, the domains and the points are those of the derivative. The steps of HIPS autograd are not followed in many digits, so
# that a loss which the formula does not have, that of expm1', is no different from an error.
LOST = {
    "expm1'": ("exp(x) - 1", 1, (-60, 3), -40.0, {
        "torch": (torch.expm1, IMPRECISE), "jax": (jnp.expm1, IMPRECISE), "autograd": (anp.expm1, REFUTED)}),
    "tanh'": ("tanh(x)", 1, (0, 40), 20.0, {"torch": (torch.tanh, IMPRECISE), "jax": (jnp.tanh, IMPRECISE), "autograd": (anp.tanh, VERIFIED)}),
    "sigmoid'": (SIGMOID, 1, (-30, 60), 40.0, {
        "torch": (torch.sigmoid, IMPRECISE), "jax": (jax.nn.sigmoid, IMPRECISE), "autograd": (hips_sigmoid, VERIFIED)}),
    "logsigmoid''": (LOGSIGMOID, 2, (-60, 5), -40.0, {
        "torch": (torch.nn.functional.logsigmoid, VERIFIED), "jax": (jax.nn.log_sigmoid, IMPRECISE),
        "autograd": (lambda x: -anp.logaddexp(0.0, -x), IMPRECISE)}),
    "sinc'''": ("sinc(x)", 3, (1e-6, 3), 1e-5, {
        "torch": (torch.sinc, IMPRECISE), "jax": (jnp.sinc, IMPRECISE), "autograd": (lambda x: anp.sinc(x), IMPRECISE)}),
}
CASES = [(name, framework) for name, (*_, functions) in LOST.items() for framework in functions]


@pytest.mark.parametrize("name, framework", CASES)
def test_known_losses_of_accuracy_are_found_and_what_is_right_is_verified(name, framework):
    formula, order, domain, point, functions = LOST[name]
    function, verdict = functions[framework]
    lost = verdict != VERIFIED
    report = cross_check(function, {} if framework != "autograd" else (), formula=formula, order=order, domain=domain, points=20, framework=framework)
    highest = report.agreements[-1]
    assert highest.order == order and highest.agrees is not lost, str(report)
    assert report.verdict == verdict, str(report)
    there = cross_check(function, [point], formula=formula, order=order, domain=(point, point), points=1, framework=framework)
    worst = there.agreements[-1].worst
    assert there.agreements[-1].agrees is not lost and worst.point == {there.names[0]: point}
    if lost:
        assert abs(worst.value / worst.truth - 1) > 0.9 and worst.ulp > 1e15
        assert "digits are lost" in highest.hint, highest.hint
    else:
        assert abs(worst.value / worst.truth - 1) < 1e-13


@pytest.mark.parametrize("function, formula", [
    (torch.exp, "exp(x)"), (torch.sin, "sin(x)"), (torch.relu, "relu(x)"), (lambda x: 2 * x, "2*x"), (lambda x: torch.clamp(x, -1, 1), "clip(x)"),
    (lambda x: x**3 * torch.cos(x), "x**3*cos(x)"), (jnp.exp, "exp(x)"), (jnp.sin, "sin(x)"), (lambda x: jnp.exp(x) * x, "exp(x)*x"),
    (jax.nn.relu, "relu(x)"), (anp.exp, "exp(x)"), (lambda x: anp.sin(x) * x, "x*sin(x)")],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__)  # without the addresses of functions, which differ in each process
def test_what_is_right_is_verified(function, formula):
    truth = "maximum(minimum(x, 1), -1)" if formula == "clip(x)" else formula
    given = {"framework": "torch"} if formula == "2*x" else {}
    report = symgrad.check(function, formula=truth, points=15, **given)
    assert report.verdict == "verified" and [a.order for a in report.agreements] == [0, 1, 2], str(report)


# Double backwards

class Softplus(torch.autograd.Function):
    """Right once; ctx keeps a result of forward, so that the second derivative is silently zero."""

    @staticmethod
    def forward(ctx, x):
        ctx.slope = torch.sigmoid(x)
        return torch.logaddexp(x, torch.zeros_like(x))

    @staticmethod
    def backward(ctx, g):
        return g * ctx.slope


class Cube(torch.autograd.Function):
    """The known one: x*Cube(x) has the second derivative 24 at 2 in torch, where 48 is right."""

    @staticmethod
    def forward(ctx, x):
        ctx.square = x * x
        return ctx.square * x

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.square


class Saved(torch.autograd.Function):
    """Right at every order: what backward needs is computed from saved inputs."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


class Once(torch.autograd.Function):
    """Which refuses to be differentiated twice."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x


@pytest.mark.parametrize("function, formula", [
    (lambda x: Softplus.apply(x), "log(1 + exp(x))"), (Softplus.apply, "log(1 + exp(x))"), (Softplus, "log(1 + exp(x))"),
    (lambda x: x * Cube.apply(x), "x**4")])
def test_a_wrong_double_backward_is_found_where_the_gradient_is_right(function, formula):
    report = cross_check(function, formula=formula, points=20)
    assert report.framework == "torch" and report.verdict == "refuted" and [a.agrees for a in report.agreements] == [True, True, False], str(report)
    assert report.counterexample.order == 2 and report.counterexample.where == "d2f/dx dx"
    hint = report.agreements[2].hint
    assert "though the orders below are right: the backward takes something for a constant, such as a result of forward that is kept on ctx" in hint


def test_the_known_numbers_of_a_wrong_double_backward():
    report = cross_check(lambda x: x * Cube.apply(x), [2.0], formula="x**4", domain=(2, 2), points=1)
    assert (report.counterexample.value, report.counterexample.truth) == (24.0, 48.0)


def test_without_a_formula_the_double_backward_is_compared_with_differences_of_the_gradient():
    for function, verdict in ((lambda x: x * Softplus.apply(x), "refuted"), (lambda x: torch.exp(x) * Saved.apply(x), "verified")):
        report = symgrad.check(function, points=8)
        assert report.verdict == verdict and report.agreements[0].order == 1 and report.agreements[0].agrees, str(report)
        assert "finite differences" in report.against
    report = symgrad.check(lambda x: x * Cube.apply(x), points=8)  # whose forward symgrad can run
    assert report.verdict == "refuted" and report.counterexample.order == 2 and report.against == "its own formula, which symgrad recorded"
    assert cross_check(Saved, formula="x**3", points=10).verdict == "verified"


def test_a_function_that_refuses_an_order_is_not_checkable_there_and_not_wrong():
    report = cross_check(Once, formula="x**2", points=8)
    assert report.verdict == "not checkable" and "its derivative of order 2 raises at every point, RuntimeError" in report.reason
    assert "the value and its derivatives up to order 1 agree" in report.reason
    assert cross_check(Once, formula="x**2", points=8, order=1).verdict == "verified"


def test_rules_of_jax_and_of_hips_autograd_that_are_wrong_are_found():
    @jax.custom_jvp
    def tanh(x):
        return jnp.tanh(x)

    tanh.defjvp(lambda primals, tangents: (tanh(*primals), tangents[0] * jax.lax.stop_gradient(1 / jnp.cosh(primals[0]) ** 2)))

    @jax.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, g: (g * 2.001 * x,))
    report = cross_check(tanh, formula="tanh(x)", points=10, domain=(-5, 5))
    assert report.framework == "jax" and [a.agrees for a in report.agreements] == [True, True, False] and "stop_gradient" in report.agreements[2].hint
    assert cross_check(lambda x: square(x), formula="x**2", points=10, framework="jax").counterexample.order == 1

    cube = autograd.extend.primitive(lambda x: x**3)
    autograd.extend.defvjp(cube, lambda y, x: lambda g: g * 3 * float(getattr(x, "_value", x)) ** 2)
    report = cross_check(lambda x: x * cube(x), formula="x**4", points=10, framework="autograd")
    assert [a.agrees for a in report.agreements] == [True, True, False], str(report)


# What else the frameworks have

def test_frameworks_are_found_and_other_frameworks_left_alone():
    functions = {"torch": [torch.exp, torch.nn.functional.logsigmoid, Softplus.apply, torch.nn.Linear(1, 1), torch.nn.functional.softplus],
                 "jax": [jnp.exp, jax.nn.sigmoid, jax.jit(jnp.sin)], "autograd": [anp.exp, hips_sigmoid], None: [lambda x: x * 2]}
    for framework, known in functions.items():
        assert [framework_of(f) for f in known] == [framework] * len(known)


def test_functions_of_several_arguments_and_arrays():
    def torch_loss(w, x, y: int = 2):
        return ((w * x).sum() - y) ** 2

    def jax_loss(w, x):
        return (jnp.sum(w * x) - 2) ** 2

    def hips_loss(w, x):
        return (anp.sum(w * x) - 2) ** 2

    formula = "(w[0]*x[0] + w[1]*x[1] - 2)**2"
    for function in (torch_loss, jax_loss, hips_loss):
        report = cross_check(function, {"w": [0.5, 1.0], "x": [1.0, 2.0]}, formula=formula, points=6, seconds=6)
        assert report.verdict == "verified" and len(report.names) == 4, str(report)
    for function in (torch.sin, jnp.sin):
        report = cross_check(function, [[0.5, 1.0, 2.0]], formula="sin(x)" if function is jnp.sin else lambda x: symgrad.sin(x), points=6, seconds=6)
        assert report.verdict == "verified" and report.agreements[2].worst is not None, str(report)


def test_third_derivatives_and_directions():
    for function in (lambda x, y: torch.exp(x * y), lambda x, y: jnp.exp(x * y), lambda x, y: anp.exp(x * y)):
        report = cross_check(function, formula="exp(x*y)", order=3, points=6, domain=(-2, 2), seconds=8)
        assert report.verdict == "verified" and report.agreements[3].order == 3, str(report)
    weights = np.arange(1.0, 11.0)
    truth = lambda x: (x**4 * symgrad.tensor(weights)).sum()  # noqa: E731
    for function in (lambda x: (x**4 * torch.tensor(weights)).sum(), lambda x: jnp.sum(x**4 * weights), lambda x: anp.sum(x**4 * weights)):
        report = cross_check(function, [np.ones(10)], formula=truth, order=3, points=8, domain=(-2, 2), seconds=2)
        assert report.verdict == "verified" and report.agreements[3].worst.where.endswith("du du"), str(report)


def test_float32_is_judged_in_its_own_ulp():
    for function in (torch.sin, jnp.sin):
        report = cross_check(function, [np.float32(1.0)], formula="sin(x)", points=10, domain=(-3, 3)) if function is jnp.sin else cross_check(
            lambda x: torch.sin(x), [np.float32(1.0)], formula="sin(x)", points=10, domain=(-3, 3))
        assert report.verdict == "verified" and max(a.worst.ulp for a in report.agreements) > 0.01, str(report)
    report = cross_check(lambda x: torch.sin(x.to(torch.bfloat16)), formula="sin(x)", points=10, domain=(0.5, 1))
    assert report.agreements[0].worst.ulp < 2 and report.agreements[0].agrees  # bfloat16 has 8 bits
    assert cross_check(lambda x: torch.sin(x.float()).double(), formula="sin(x)", points=10, domain=(0.5, 1)).verdict == "imprecise"


def test_jax_functions_that_look_at_numbers_run_uncompiled():
    def huber(x):
        return x * x / 2 if abs(x) <= 1 else abs(x) - 0.5

    report = cross_check(huber, formula="where(abs(x) <= 1, x*x/2, abs(x) - 0.5)", framework="jax", points=4, seconds=8)
    assert report.verdict == "verified", str(report)


def test_chance_and_state_in_torch():
    report = cross_check(lambda x: x + torch.rand(()), formula="x")
    assert report.verdict == "not checkable" and "is random" in report.reason
    before = torch.random.get_rng_state()
    layer = torch.nn.Dropout(0.5)
    assert "is random" in cross_check(lambda x: layer(x.expand(50)).sum(), formula="50*x").reason
    assert before.shape == torch.random.get_rng_state().shape


def test_a_pair_of_torch_functions_gets_tensors():
    pair = (lambda x: torch.log1p(torch.exp(x)), lambda x: torch.sigmoid(x))
    report = cross_check(pair, formula="log(1 + exp(x))", order=1, points=10, domain=(-5, 30))
    assert report.verdict == "verified" and report.framework == "torch", str(report)


def test_torch_says_zero_for_what_does_not_depend():
    report = cross_check(lambda x, y: 3 * x + 0 * y, formula="3*x", framework="torch", points=8)
    assert report.verdict == "verified" and report.agreements[2].worst.value == 0


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["log_softmax", "layer_norm", "norm", "logsumexp"])
def test_functions_of_torch_are_not_refuted_for_their_digits(name):
    mean = "(x[0] + x[1] + x[2])/3"
    variance = " + ".join(f"(x[{i}] - {mean})**2" for i in range(3))
    function, formula = {
        "logsumexp": (lambda x: torch.logsumexp(x, 0), "log(exp(x[0]) + exp(x[1]) + exp(x[2]))"),
        "log_softmax": (lambda x: torch.log_softmax(x, 0)[0], "x[0] - log(exp(x[0]) + exp(x[1]) + exp(x[2]))"),
        "norm": (lambda x: torch.linalg.norm(x), "sqrt(x[0]**2 + x[1]**2)"),
        "layer_norm": (lambda x: torch.nn.functional.layer_norm(x, (3,), eps=0.0)[0], f"(x[0] - {mean})/sqrt(({variance})/3)"),
    }[name]
    assert check(function, formula, framework="torch").verdict in ("verified", "imprecise")


@pytest.fixture
def inverse():
    """log(exp(x)) with a custom backward."""
    def with_backward(backward):
        class Inverse(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return torch.log(torch.exp(x))

            @staticmethod
            def backward(ctx, g):
                return g * backward(ctx.saved_tensors[0])

        return lambda x: Inverse.apply(x)

    return with_backward


def test_programs_of_torch(inverse):
    for function in (lambda x: torch.log(torch.exp(x)), inverse(lambda x: torch.exp(x) / torch.exp(x))):
        report = check(function, "x", framework="torch", points=30)
        assert report.verdict == "imprecise" and report.counterexample.operation == "exp(1000)", str(report)


def test_writes_and_views_of_torch_are_followed():
    def function(x):
        y = x.clone()
        y[:1] += 1
        y.sub_(torch.tensor([1.0, 0.0]))
        return y.sum() * 2

    report = check(function, "2*x[0] + 2*x[1]", framework="torch", points=30)
    assert report.verdict == "imprecise" and report.counterexample.operation.startswith("sub("), str(report)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("factor", [lambda x: 1.000001, lambda x: (x < 30) * 1.0])
def test_a_wrong_backward_of_torch_is_refuted(inverse, factor):
    report = check(inverse(lambda x: factor(x) * torch.ones_like(x)), "x", framework="torch", points=30)
    assert report.verdict == "refuted" and report.counterexample.order == 1 and 0 <= report.counterexample.point["x"] <= 100


@pytest.mark.sweep
def test_second_derivatives_without_a_formula():
    report = symgrad.check(lambda x: torch.tanh(x).atanh(), torch.tensor(2.0, dtype=torch.float64), progress=False, points=6)
    assert report.verdict == "imprecise" and report.counterexample.operation.startswith("add("), str(report)
    assert symgrad.check(lambda x: 1 - torch.cos(x), torch.tensor(0.5), progress=False, points=2).verdict == "verified"


FOLDER = ROOT / "examples" / "foreign"
SESSIONS = [*sessions("torch"), *(("examples/foreign/README.md", *step) for step in session((FOLDER / "README.md").read_text(encoding="utf-8")))]


@pytest.mark.parametrize("page, command, shown", SESSIONS)
def test_the_page_shows_what_is_printed(page, command, shown, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "symgrad" and main(arguments) == 1
    printed = capsys.readouterr().out
    assert doctest.OutputChecker().check_output(shown.partition("```")[0], printed, doctest.ELLIPSIS), printed


def test_the_repaired_function_is_verified(tmp_path, capsys):
    source = (FOLDER / "mymodel.py").read_text(encoding="utf-8")
    repaired = source.replace("ctx.slope = -torch.sigmoid(-margin)", "ctx.save_for_backward(margin)").replace(
        "return grad * ctx.slope", "(margin,) = ctx.saved_tensors\n        return -grad * Sigmoid.apply(-margin)")
    stable = '''

class Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.sigmoid(x) * torch.sigmoid(-x)
'''
    path = tmp_path / "mymodel.py"
    path.write_text(repaired + stable, encoding="utf-8")
    assert main(["check", f"{path}:loss", "--formula", "log(1+exp(-y*x))", "--points", "20"]) == 0, capsys.readouterr().out
    assert "loss (torch): verified" in capsys.readouterr().out
    path.write_text(repaired.replace("Sigmoid.apply", "torch.sigmoid"), encoding="utf-8")  # which torch differentiates with a loss of digits
    assert main(["check", f"{path}:loss", "--formula", "log(1+exp(-y*x))", "--points", "20", "--domain", "x=-3..3,y={-1,1}"]) == 0
    capsys.readouterr()
    assert main(["check", f"{path}:loss", "--formula", "log(1+exp(-y*x))", "--points", "20"]) == 0
    assert "loss (torch): imprecise" in capsys.readouterr().out
    assert main(["check", f"{path}:loss", "--formula", "log(1+exp(-y*x))", "--points", "20", "--strict"]) == 3
    assert "digits are lost" in capsys.readouterr().out
