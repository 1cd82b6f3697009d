"""The search of `gradcheck` beyond torch's comparison: wrong rules that it finds, right functions that pass, and its report."""

import copy
import pickle
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import symgrad
from symgrad import tensor
from symgrad.autograd import gradcheck, gradgradcheck
from symgrad.testing.gradcheck.gradcheck import GradcheckError, GradcheckResult
from tests.support.functions import function_of
from tests.support.lines import lines
from tests.testing.test_gradcheck import Affine, X, function, leaf


def saved(value):
    """A forward that saves its argument."""
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return value(x)

    return forward


def by_numpy(value):
    """The same, computed on arrays, where no formula can be read."""
    return saved(lambda x: tensor(value(x.detach().numpy())))


def ours(derivative):
    return lambda ctx, g: g * derivative(ctx.saved_tensors[0])


def message(f, inputs, check=gradcheck, **options):
    """The message for a function that passes torch's comparison and fails in the search."""
    assert check(f, inputs, attack=False, **options) is True
    with pytest.raises(GradcheckError) as caught:
        check(f, inputs, **options)
    return str(caught.value)


# Wrong functions that pass at the given inputs


def sine(wrong):
    """sin, with a derivative that is multiplied by what `wrong` gives at x."""
    return function(saved(lambda x: x.sin()), ours(lambda x: x.cos() * wrong(x)))


def opaque_sine(wrong):
    return function(by_numpy(np.sin), ours(lambda x: x.cos() * wrong(x)))


BEYOND = {"below -1": lambda x: 1 + 0.1 * (x < -1), "below 0": lambda x: 1 + (x < 0), "above 5": lambda x: 1 - 2 * (x > 5),
          "by a thousandth": lambda x: 1 + 0.001 * (x < 0.4), "for large numbers": lambda x: 1 + 0.01 * (x.abs() > 6)}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", [sine, opaque_sine])
@pytest.mark.parametrize("name, seed", [*((name, 0) for name in BEYOND), ("below -1", 1), ("for large numbers", 2)])
def test_a_derivative_that_is_wrong_elsewhere(make, name, seed):
    said = message(make(BEYOND[name]), leaf([0.5, 1.0]), seed=seed)
    assert said.startswith("Jacobian mismatch away from the given inputs for output 0[") and "with respect to input 0[" in said
    assert "The function passes at the inputs it was given, and is wrong with these:\n  input 0 = tensor([" in said
    assert ("(SymPy's derivatives of the recorded computation, to fifty digits)" in said) == (make is sine)
    assert said.endswith("If it is made for the given inputs alone, give `attack=False`.")


DIGITS = {"a millionth": lambda x: x.cos() * (1 + 1e-6), "1e-8": lambda x: x.cos() * (1 + 1e-8), "zero for little": lambda x: x.cos() * 0 + 1e-7}


@pytest.mark.parametrize("name", DIGITS)
def test_a_derivative_with_wrong_digits(name):
    value = (lambda x: 1e-7 * x.sin() + 1e-7 * x) if name == "zero for little" else (lambda x: x.sin())
    f = function(saved(value), ours(DIGITS[name]))
    assert gradcheck(f, leaf([0.5]), raise_exception=False) is False
    said = message(f, leaf([0.5]))
    assert said.startswith("Jacobian mismatch at the given inputs for output 0[0] with respect to input 0[0],\nanalytical:")
    assert said.endswith("give a\nlarger atol or rtol, or `attack=False`.")


@pytest.mark.sweep
def test_larger_tolerances_of_the_user_are_kept():
    rough = function(saved(lambda x: x.sin()), ours(lambda x: x.cos() * 1.0005))
    message(rough, leaf([0.5]))
    assert gradcheck(rough, leaf([0.5]), rtol=2e-3).report.attacked > 8
    assert message(function(saved(lambda x: x.sin()), ours(lambda x: x.cos() * (1.0005 + 0.1 * (x < -1)))), leaf([0.5]), rtol=2e-3)


@pytest.mark.sweep
def test_a_tangent_that_is_wrong_elsewhere():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    made = function_of(forward, lambda ctx, g: 2 * g * ctx.saved_tensors[0], "Own")
    made.jvp = staticmethod(lambda ctx, t: 2 * t * ctx.saved_for_forward[0] * (1 + (ctx.saved_for_forward[0] < -1)))
    own = made.apply
    assert gradcheck(own, leaf([0.5]))
    said = message(own, leaf([0.5]), check_forward_ad=True)
    assert said.startswith("Jacobian computed with forward mode mismatch away from the given inputs for output 0[0] with respect to input 0[0],")
    assert message(own, leaf([0.5]), check_forward_ad=True, check_backward_ad=False).startswith("Jacobian computed with forward mode")


def test_a_tangent_that_is_wrong_for_two_inputs_at_once():
    class Wrong(Affine):
        @staticmethod
        def jvp(ctx, s, t):
            return 2 * s + 3 * t + (s * t != 0)

    said = message(Wrong.apply, (leaf([1.0]), leaf([2.0])), check_forward_ad=True, check_undefined_grad=False)
    assert said.startswith("Jacobian computed with forward mode mismatch at the given inputs") and "atol" not in said


@pytest.mark.sweep
def test_a_second_derivative_that_is_wrong_elsewhere(declare):
    declare("slope", lambda xp, x: 3 * x * x, lambda xp, y, x: 6 * x * (1 + xp.indicator(x < -1, x)))
    cube = declare("cubed", lambda xp, x: x * x * x, lambda xp, y, x: xp.slope(x) if hasattr(xp, "slope") else 3 * x * x)
    x = leaf([0.5, 1.5])
    assert gradcheck(cube, x).report.attacked > 8
    said = message(cube, x, gradgradcheck)
    assert said.startswith("Jacobian mismatch away from the given inputs for output 0[") and "input 1 = tensor" in said


@pytest.mark.sweep
def test_a_derivative_of_complex_numbers_that_is_wrong_elsewhere():
    def conjugated(ctx, g):
        z = ctx.saved_tensors[0]
        return g * (2 * z).conj() * (1 + 1 * (z.real < 0))

    said = message(function(saved(lambda z: z * z), conjugated), leaf([1 + 2j, 2 - 1j]))
    assert said.startswith("Jacobian mismatch away from the given inputs for output 0[") and "part)," in said and "j" in said


# Right functions, each difficult in its way


def dropped(x):
    symgrad.manual_seed(3)
    return symgrad.bernoulli(symgrad.full_like(x, 0.5)) * x * x


def solved(x):
    """The cube root by Newton's method, with its derivative by the implicit function theorem."""
    def forward(ctx, x):
        y = x.detach()
        for _ in range(12):
            y = y - (y**3 - x) / (3 * y**2 + 1e-300)
        ctx.save_for_backward(y)
        return y

    return function(forward, lambda ctx, g: g / (3 * ctx.saved_tensors[0] ** 2))(x)


def only_below(x):
    assert x.max().item() < 4.5, "made for small numbers"
    return x.exp()


def in_place(x):
    y = x.clone()
    y.mul_(x).add_(1)
    y[0] = y[0] * 2
    y[1].sin_()
    return y


MASK = tensor(X) > 2.5
TABLE = tensor([10.0, 20.0, 30.0, 40.0])
LINEAR = symgrad.nn.Linear(2, 3)
RIGHT = {name: eval(text) for name, text in lines("right_gradients")}


@pytest.mark.sweep
@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_are_not_accused(name, capsys):
    f, x = RIGHT[name], leaf(X)
    first = gradcheck(f, x, check_forward_ad=name not in ("an iteration", "a rounded constant", "arrays"))
    assert first == True and first.report.failure is None  # noqa: E712
    assert x.tolist() == X and x._version == 0 and x.grad is None
    assert gradgradcheck(f, x)
    assert first.report.attacked >= 3 and not first.report.reason


@pytest.mark.sampled(3)
@pytest.mark.parametrize("more", [0, 1, 9, 40])
@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("wrong", [lambda x: 2, lambda x: 1 + x.detach() ** 2])
def test_a_function_that_counts_its_calls_is_not_accused(more, check, wrong):
    """It is another one after so many calls more than torch's comparison needs, first with a right and then with a wrong derivative."""
    calls = []

    def f(x):
        calls.append(x)
        return x * x * (1 if len(calls) <= change else wrong(x))

    change = 10**6
    check(f, leaf(X), attack=False)
    change = len(calls) + more
    calls.clear()
    assert check(f, leaf(X)).report.failure is None


@pytest.mark.sweep
def test_skipped_points_are_counted():
    report = gradcheck(RIGHT["made for some numbers"], leaf(X)).report
    assert report.left_out["it raises AssertionError"] >= 3 and report.attacked > 5
    assert gradcheck(lambda x: x.abs(), leaf(X)).report.left_out["it has a kink"] >= 2
    assert gradcheck(lambda x: x.log(), leaf(X)).report.left_out["it is not finite"] >= 3
    assert gradcheck(RIGHT["a mask"], leaf(X)).report.left_out["its outputs change in shape or dtype"] >= 3
    assert gradcheck(function(by_numpy(np.abs), ours(symgrad.sign)), leaf(X)).report.left_out["it has a kink, or differences do not come together"]


def test_the_reason_why_no_point_was_searched():
    x = leaf(X)
    noise = iter(range(1, 10**6))
    shaky = function(lambda ctx, x: 2 * x, lambda ctx, g: g * (2 + next(noise) * 1e-9))
    assert "two answers: it is random or keeps a state" in gradcheck(shaky, x, nondet_tol=1e-3).report.reason
    assert gradcheck(lambda x: x.detach() * 0, x).report.reason == "no output depends on the inputs"
    wide = tensor(np.repeat(np.array(X), 2, 1), requires_grad=True)
    halves = wide.detach()[:, ::2].requires_grad_(), wide.detach()[:, 1::2].requires_grad_()
    assert gradcheck(lambda a, b: a * b, halves).report.attacked > 5
    shared = np.array([1.0, 2.0, 3.0])
    parts = symgrad.from_numpy(shared[:2]).requires_grad_(), symgrad.from_numpy(shared[1:]).requires_grad_()
    assert gradcheck(lambda a, b: a[0].sin(), parts).report.reason == "inputs share memory"
    with pytest.warns(UserWarning, match="double precision"):
        found = gradcheck(lambda x: x * 2, leaf([1.0], dtype=symgrad.float32), eps=1e-2, atol=1e-2, rtol=1e-2)
    assert found.report.reason == "an input is not of double precision"


@pytest.mark.sweep
def test_inputs_of_every_kind():
    x = leaf(X)
    assert gradcheck(lambda x, n, w: x * n * w, (x, 2, tensor([1, 2]))).report.attacked > 8
    assert gradcheck(lambda a, b: a * b, (x, x)).report.attacked > 8
    assert gradcheck(lambda a: a * a, (x * 1,)).report.attacked > 8
    weights = tuple(LINEAR.parameters())
    before = [w.tolist() for w in weights]
    found = gradcheck(lambda *_: LINEAR(tensor(X)).sin(), weights)
    assert found.report.exact > 3 and [w.tolist() for w in weights] == before
    assert gradcheck(lambda z: z * z.conj() * z, leaf([1 + 2j, 2 - 1j])).report.attacked > 8
    assert gradcheck(lambda x, z: (x * z, x.exp(), z.real), (leaf([0.5, 1.0]), leaf([1 + 2j, 2 - 1j]))).report.attacked > 3
    assert gradcheck(lambda x: x.sin(), leaf(0.5)).report.attacked > 8


def test_hooks_are_called_and_the_state_is_unchanged():
    x = leaf(X)
    x.register_hook(lambda g: None if g is None else g * 1)
    assert gradcheck(lambda x: x.sin() * x, x).report.attacked > 3 and x.grad is None


# What is said, and what is put back


@pytest.mark.sweep
def test_the_result_is_true_and_its_report_lists_the_comparisons():
    found = gradcheck(lambda x: (x * x).log(), leaf([[1.0, 0.0], [3.0, 4.0]])[:, :1])
    assert found == True and found and isinstance(found, GradcheckResult) and repr(found) == "True" and found is not False  # noqa: E712
    lines = str(found).splitlines()
    assert lines[0] == "gradcheck: passed" and lines[1] == "central differences at the given inputs, within atol and rtol"
    assert lines[2].startswith(f"attacked at {found.report.attacked} of {found.report.planned} planned points, order 1, against ")
    assert lines[2].endswith("; seed 0")
    exact = gradcheck(symgrad.tanh, leaf([0.5, 1.0]))
    assert "SymPy's derivatives of the recorded computation, to fifty digits" in str(exact) and exact.report.exact == exact.report.attacked
    assert 0 < exact.report.ulp < 8 and "largest error of a float" in str(exact) and ", by input 0[" in str(exact)
    second = str(gradgradcheck(symgrad.tanh, leaf([0.5, 1.0])))
    assert second.startswith("gradgradcheck: passed") and ", order 2, " in second
    assert gradcheck(symgrad.tanh, leaf([0.5]), attack=False) is True
    for other in (pickle.loads(pickle.dumps(exact)), copy.deepcopy(exact)):
        assert other == True and other.report.attacked == exact.report.attacked  # noqa: E712
    assert "<GradientAttack: passed at" in repr(exact.report) and exact.report.seconds > 0


def test_random_generators_are_where_torchs_comparison_leaves_them():
    def noisy(x):
        random.random(), np.random.rand(), symgrad.rand(3)
        return x * x

    def after(**options):
        random.seed(0), np.random.seed(0), symgrad.manual_seed(0)
        gradcheck(noisy, leaf(X), **options)
        return random.random(), np.random.rand(), symgrad.rand(1).item()

    assert after() == after(attack=False)


def test_output_at_other_points_is_suppressed(capsys):
    gradcheck(RIGHT["prints"], leaf([1.0]), attack=False)
    expected = capsys.readouterr().out
    gradcheck(RIGHT["prints"], leaf([1.0]))
    assert capsys.readouterr().out == expected


def test_a_function_that_breaks_off_leaves_the_inputs_as_they_were():
    calls = iter(range(10**6))

    def interrupted(x):
        if next(calls) > 12:
            raise KeyboardInterrupt
        return x * x

    x = leaf([1.0, 2.0])
    with pytest.raises(KeyboardInterrupt):
        gradcheck(interrupted, x)
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.sweep
def test_equal_seeds_have_equal_points():
    seen = []
    f = lambda x: (seen.append(x.tolist()), x * x)[1]
    gradcheck(f, leaf([1.0]), seed=1)
    first, seen[:] = list(seen), []
    gradcheck(f, leaf([1.0]), seed=1)
    count = min(len(seen), len(first))
    assert count > 12 and seen[:count] == first[:count]
    seen[:] = []
    gradcheck(f, leaf([1.0]), seed=2)
    assert seen[:count] != first[:count]


@pytest.mark.parametrize("function, inputs", [
    (symgrad.tanh, leaf([0.5, 1.0])), (lambda x: (x @ x).sum(), leaf([[1.0, 2.0], [3.0, 0.1]])), (lambda x: (x / 3).log() * x.sin(), leaf([0.7])),
    (lambda x: tensor(np.sin(x.detach().numpy())) + x, leaf([1 / 3])), (lambda x: (x.exp() * symgrad.arange(40.0)).sum(), leaf([0.1]))])
def test_the_report_is_the_same_under_any_clock_and_in_a_thread(function, inputs, monkeypatch):
    def report():
        try:
            return str(gradcheck(function, inputs))
        except GradcheckError as error:
            return str(error)

    found = report()
    real = time.process_time
    for factor in (20.0, 0.05):
        for name in ("process_time", "perf_counter", "monotonic"):
            monkeypatch.setattr(time, name, lambda factor=factor: factor * real())
        assert report() == found
    other = []
    thread = threading.Thread(target=lambda: other.append(report()))
    thread.start()
    thread.join()
    assert other == [found]


def test_a_long_computation_has_fewer_points_and_the_report_says_of_how_many():
    weights = symgrad.ones(300, 300)
    found = gradcheck(lambda x: ((weights * x) @ weights).sum(), leaf([0.5])).report
    assert (found.attacked, found.planned) == (3, 3) and "attacked at 3 of 3 planned points" in str(found)
    assert gradcheck(symgrad.tanh, leaf([0.5, 1.0])).report.planned == 25


@pytest.mark.sweep
def test_hypothesis_is_not_needed():
    program = ("import sys; sys.modules['hypothesis'] = None; import symgrad; "
               "r = symgrad.autograd.gradcheck(symgrad.tanh, symgrad.tensor([0.5], requires_grad=True)); print(r.report.attacked > 3)")
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "True\n"


@pytest.mark.sweep
@pytest.mark.parametrize("value", [lambda x: x.sin(), lambda x: tensor(np.sin(x.detach().numpy()))])
def test_a_convention_at_a_single_point_is_counted_and_not_accused(value):
    own = function(saved(value), ours(lambda x: symgrad.where(x == 0, 0.5, x.cos())))
    report = gradcheck(own, leaf([0.5])).report
    assert report.failure is None and report.left_out["a derivative differs, and does not beside the point"] == 1
