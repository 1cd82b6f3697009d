"""Anomaly mode: torch's errors and warnings, and the first cause of a gradient that is not finite."""

import importlib.util
import math
import warnings

import pytest

import symgrad
from symgrad import autograd, nn
from symgrad.autograd.anomaly import NonFiniteGradient

pytestmark = [pytest.mark.filterwarnings("ignore:the pullback of"), pytest.mark.filterwarnings(r"ignore:\s*That backward was recorded"),
              pytest.mark.filterwarnings("ignore::RuntimeWarning")]
inf, nan = math.inf, math.nan


def leaf(*values, **words):
    return symgrad.tensor(list(values), requires_grad=True, **words)


def users(caught):
    """The warnings that are no warnings of NumPy."""
    return [w for w in caught if w.category is UserWarning]


def failure(call, **checks):
    """The error of a call in anomaly mode."""
    with pytest.raises(NonFiniteGradient) as caught, autograd.set_detect_anomaly(True, **checks):
        call()
    return caught.value


class Nan(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * nan


class Raises(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise ValueError("my own")


def second(exponent):
    """The gradient of 0 times the second derivative of a power at 0."""
    x = leaf(0.0)
    (g,) = autograd.grad((x**exponent).sum(), x, create_graph=True)
    (h,) = autograd.grad(g.sum(), x, create_graph=True)
    (h * 0).sum().backward()


# What torch 2.13 raises, recorded
RAISED = {
    "0 times the root of 0": (lambda: (leaf(0.0).sqrt() * 0).sum().backward(), "SqrtBackward0", 0),
    "0 / 0": (lambda: [x := leaf(0.0, 1.0), (x / x).sum().backward()], "DivBackward0", 1),
    "0 times the logarithm of 0": (lambda: (leaf(0.0).log() * 0).sum().backward(), "LogBackward0", 0),
    "given": (lambda: [x := leaf(2.0), (x * x).backward(symgrad.tensor([nan]))], "MulBackward0", 0),
    "second order": (lambda: second(1.5), "PowBackward0", 0),
    "one element": (lambda: (leaf(1.0, 0.0).sqrt() * symgrad.tensor([1.0, 0.0])).sum().backward(), "SqrtBackward0", 0),
    "two arguments": (lambda: (leaf(0.0) / leaf(0.0)).sum().backward(), "DivBackward0", 1),
    "the second argument": (lambda: ((1 / leaf(0.0, 1.0)) * 0 + symgrad.ones(2) / leaf(0.0, 0.0) * 0).sum().backward(), "DivBackward0", 1),
    "a Function": (lambda: Nan.apply(leaf(1.0)).sum().backward(), "NanBackward", 0),
}


@pytest.mark.parametrize("name", RAISED)
def test_the_error_matches_torch(name):
    call, node, output = RAISED[name]
    assert str(failure(call)).split("\n")[0] == f"Function '{node}' returned nan values in its {output}th output."


def test_infinities_raise_only_with_check_inf():
    x = leaf(0.0)
    with autograd.set_detect_anomaly(True):
        x.sqrt().sum().backward()
    assert x.grad.item() == inf
    assert str(failure(lambda: leaf(0.0).sqrt().sum().backward(), check_inf=True)).startswith(
        "Function 'SqrtBackward0' returned infinite values in its 0th output.")


def test_check_nan_false_raises_nothing():
    x = leaf(0.0)
    with autograd.set_detect_anomaly(True, check_nan=False):
        (x.sqrt() * 0).sum().backward()
    assert math.isnan(x.grad.item())


def test_leaves_and_nodes_off_the_path_are_not_checked():
    x, z = leaf(1.0), leaf(0.0)
    x.register_hook(lambda g: g * nan)
    with autograd.set_detect_anomaly(True):
        (x * 2).sum().backward()
        y = z.sqrt() * 0
        assert autograd.grad(y.sum(), y)[0].item() == 1
    assert math.isnan(x.grad.item())


def test_an_unselected_branch_raises_nothing():
    x = leaf(0.0, 4.0)
    with autograd.set_detect_anomaly(True):
        symgrad.where(x > 0, x.sqrt(), 3 * x).sum().backward()
    assert x.grad.tolist() == [3, 0.25]


SOURCE = """
import symgrad

def forward(x):
    y = x.sqrt()
    return (y * 0).sum()

def run(x):
    return forward(x)

def derivative(x):
    y = x.abs() ** 1.5
    g, = symgrad.autograd.grad(y.sum(), x, create_graph=True)
    return (g * 0).sum()
"""


@pytest.fixture
def module(tmp_path):
    """A module of the user's, whose lines are known."""
    path = tmp_path / "users.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("users", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_warning_shows_the_traceback_of_the_forward_call(module):
    with autograd.set_detect_anomaly(True):
        y = module.run(leaf(0.0))
        with pytest.raises(NonFiniteGradient), pytest.warns(UserWarning) as caught:
            y.backward()
    (warning,) = users(caught)
    text = str(warning.message)
    assert text.startswith("the pullback of SqrtBackward0 failed. It was recorded here:\n  File ")
    assert text.endswith(f'  File "{module.__file__}", line 9, in run\n    return forward(x)\n'
                         f'  File "{module.__file__}", line 5, in forward\n    y = x.sqrt()\n')
    assert "symgrad/" not in text.replace("tests/", "") and warning.filename == __file__


def test_the_warning_says_if_there_is_no_record(module):
    y = module.run(leaf(0.0))
    with autograd.set_detect_anomaly(True), pytest.raises(NonFiniteGradient) as error, pytest.warns(UserWarning) as caught:
        y.backward()
    assert str(users(caught)[0].message) == ("the pullback of SqrtBackward0 failed. Where it was recorded is not known: detect anomalies "
                                             "in the forward pass, too")
    assert "there is no forward record, for anomaly mode was off" in str(error.value)


def test_any_error_of_a_backward_is_located():
    located = pytest.warns(UserWarning, match="the pullback of RaisesBackward failed")
    with autograd.set_detect_anomaly(True), pytest.raises(ValueError, match="my own"), located:
        Raises.apply(leaf(1.0)).sum().backward()
    y = leaf(1.0) * 1
    with autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="the pullback of MulBackward0 failed"):
        z = y * y
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def lines(error):
    return str(error).split("\n")[1:]


def test_a_backward_cause(module):
    error = failure(lambda: module.run(leaf(4.0, 0.0)).backward())
    assert lines(error) == [
        "Forward: all values that the gradient was computed from are finite.",
        "Backward: SqrtBackward0 made the first gradient that is not finite at element [1]: its derivative by x is 1/(2*sqrt(x)), which is inf at "
        "x = 0.0; times the incoming gradient 0.0 it is nan.",
        f"    {module.__file__}:5: y = x.sqrt()",
        "The first cause is in the backward pass."]
    assert error.cause.kind == "pullback" and error.cause.forward is None and error.cause.place == (1,)


def test_a_forward_cause_is_followed_back_to_the_first_value():
    def call():
        x = leaf(3.0, 800.0)
        y = (x.exp().reshape(2, 1) * symgrad.tensor([1.0, 2.0])).sum(1)
        y.sin().sum().backward()

    error = failure(call)
    assert lines(error)[0] == "Forward: exp(x) at x = 800.0 is the first value that is not finite: inf at element [1]."
    assert "SinBackward0 made the first gradient that is not finite at element [1]: its derivative by x is cos(x), which is nan" in str(error)


def test_the_forward_cause_counts_only_at_the_element_it_is_the_cause_of():
    def call():
        x = leaf(0.0, 2.0)
        y = symgrad.cat([x[:1].sqrt(), x[1:] * inf])
        (y * symgrad.tensor([0.0, 1.0])).sum().backward()

    assert failure(call).cause.forward is None


def test_the_cause_of_a_nan_may_be_an_infinity_elsewhere(module):
    def call():
        x = leaf(0.0)
        y = x * 0
        module.forward(y)
        (y.sqrt() * 1).sum().backward()

    error = failure(call)
    assert str(error).startswith("Function 'MulBackward0' returned nan values in its 0th output.")
    assert "SqrtBackward0 made the first gradient that is not finite" in str(error) and "1/(2*sqrt(x)), which is inf" in str(error)


def test_a_higher_order_names_the_line_of_the_first(module):
    error = failure(lambda: module.derivative(leaf(0.0)).backward())
    assert "its derivative by x is 0.5/x**0.5, which is inf at x = 0.0" in str(error)
    assert [line for line in lines(error) if line.startswith("    ")] == [
        f"    {module.__file__}:13: g, = symgrad.autograd.grad(y.sum(), x, create_graph=True)",
        f"    in the backward of PowBackward0, called at {module.__file__}:12: y = x.abs() ** 1.5"]


def test_the_warnings_of_a_higher_order_go_back_to_the_first(module):
    with autograd.set_detect_anomaly(True):
        y = module.derivative(leaf(0.0))
        with pytest.raises(NonFiniteGradient), pytest.warns(UserWarning) as caught:
            y.backward()
    texts = [str(w.message) for w in users(caught)]
    assert texts[0].endswith("    g, = symgrad.autograd.grad(y.sum(), x, create_graph=True)\n")
    assert texts[1].startswith("\n\nThat backward was recorded by PowBackward0, which was recorded here:\n")
    assert texts[1].endswith("    y = x.abs() ** 1.5\n") and len(texts) == 2


def hooked(register):
    def call():
        x = leaf(1.0)
        y = x * 2
        register(y)
        (y * 3).sum().backward()

    return failure(call)


OTHERS = {
    "given": (RAISED["given"][0], "the gradient that was given for the output of MulBackward0 is nan at element [0]."),
    "leaf": (lambda: leaf(nan, symbol="x").sin().sum().backward(), "Forward: the leaf x of shape [1] is nan at element [0] from the start."),
    "constant": (lambda: (leaf(1.0, 1.0) @ symgrad.tensor([1.0, inf]) * 0).backward(),
                 "Forward: an operand of dot that is a constant is inf at element [1]."),
    "sum": (lambda: [x := leaf(1.0), y := x * 0, (y * 1e308 + y * 1e308).sum().backward()],
            "gradients that are finite have the sum inf at element [0] at the output of MulBackward0."),
    "few elements": (lambda: leaf(inf, 0.0).var().backward(), "at x_0 = inf, x_1 = 0.0 and the incoming gradient g = 1.0."),
    "a function of the user's": (RAISED["a Function"][0],
                                 "NanBackward made the first gradient that is not finite: its gradient 0 is nan at element [0]."),
    "two arguments": (lambda: (leaf(1.0) ** leaf(2000.0) * leaf(inf)).sum().backward(), "Forward: the leaf of shape [1] is inf at element [0]"),
    "no dimensions": (lambda: (symgrad.tensor(0.0, requires_grad=True).sqrt() * 0).backward(),
                      "is inf at x = 0.0; times the incoming gradient 0.0 it is nan."),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_causes(name):
    call, words = OTHERS[name]
    assert words in str(failure(call, check_inf=name == "two arguments"))


def test_hooks_are_named_as_causes():
    error = hooked(lambda y: y.register_hook(lambda g: g * nan))
    assert "a hook replaced the gradient of the output of MulBackward0 by one that is nan" in str(error)
    error = hooked(lambda y: y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * nan, None)))
    assert "a hook on MulBackward0 replaced its gradient 0 by one that is nan" in str(error)


def test_a_hook_may_repair_a_gradient():
    x = leaf(0.0, 1.0)
    y = x * 1
    y.register_hook(lambda g: g.nan_to_num())
    with autograd.set_detect_anomaly(True):
        y.sqrt().sum().backward()
    assert math.isfinite(x.grad[0].item())


def test_the_state_of_the_mode_matches_torch():
    state = []

    def note():
        state.append((symgrad.is_anomaly_enabled(), symgrad.is_anomaly_check_nan_enabled()))

    autograd.set_detect_anomaly(True)
    note()
    autograd.set_detect_anomaly(False)
    note()
    with autograd.set_detect_anomaly(True, check_nan=False):
        note()
    note()
    with pytest.warns(UserWarning, match="anomalies are detected from here on") as caught:
        outer = autograd.detect_anomaly(False)
    assert caught[0].filename == __file__
    with outer:
        note()
    note()
    assert state == [(True, True), (False, True), (True, False), (False, True), (True, False), (False, True)]


def test_the_threads_of_the_library_have_the_mode_of_their_caller():
    class Roots(nn.Module):
        def forward(self, x):
            return x.sqrt() * 0

    x = symgrad.zeros(1 << 15, requires_grad=True)
    with autograd.set_detect_anomaly(True), warnings.catch_warnings(action="ignore"):
        y = nn.DataParallel(Roots(), device_ids=2)(x)
        with pytest.raises(NonFiniteGradient) as caught:
            y.sum().backward()
    assert "return x.sqrt() * 0" in str(caught.value)


def test_a_warning_that_a_filter_makes_an_error_does_not_hide_the_error(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with symgrad.autograd.detect_anomaly():
            warnings.simplefilter("error")
            x = symgrad.tensor([1.0, 2.0], requires_grad=True)
            y = x + 1
            z = y**2
            y += 1
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                symgrad.autograd.grad(z.sum(), x)
    assert "the pullback of PowBackward0 failed" in capsys.readouterr().err
