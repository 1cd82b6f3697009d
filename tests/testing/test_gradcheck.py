"""`gradcheck` and `gradgradcheck`: functions that pass and fail, and the messages (recorded from torch 2.13, with one line more)."""

import numpy as np
import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import gradcheck, gradgradcheck
from symgrad.testing.gradcheck.gradcheck import GradcheckError
from tests.support.functions import function_of

X = [[1.0, 2.0], [3.0, 4.0]]
Z = [1 + 2j, 2 - 1j]


def leaf(data, **rest):
    return tensor(data, requires_grad=True, **rest)


@pytest.fixture
def bad(declare):
    """x², whose derivative is declared as 3x."""
    return declare("bad", lambda xp, x: x * x, lambda xp, y, x: 3 * x)


def failure(function, inputs, check=gradcheck, **options):
    """The message of a check that fails; it is False where no exception is wanted."""
    with pytest.raises(GradcheckError) as caught:
        check(function, inputs, **options)
    assert check(function, inputs, raise_exception=False, **options) is False
    return str(caught.value)


WORST = "The largest disagreement is that of output 0[1, 1] with respect to input 0[1, 1]: numerical 8.000000000230045, analytical 12.0"
FORWARD = {"check_forward_ad": True, "check_backward_ad": False}
MESSAGES = {
    "backward": (X, {}, "Jacobian mismatch for output 0 with respect to input 0,"),
    "forward": (X, FORWARD, "Jacobian computed with forward mode mismatch for output 0 with respect to input 0,"),
    "backward, complex": (Z, {}, "While considering the imaginary part of complex outputs only, Jacobian mismatch for output 0"),
    "forward, complex": (Z, FORWARD, "While considering the imaginary part of complex inputs only, Jacobian "),
}


@pytest.mark.parametrize("mode", MESSAGES)
@pytest.mark.parametrize("fast", [False, True])
def test_the_message_of_a_wrong_derivative(bad, mode, fast):
    at, options, expected = MESSAGES[mode]
    message = failure(bad, leaf(at), fast_mode=fast, **options)
    assert message.startswith(expected) and "\nThe largest disagreement is that of output 0[" in message
    if at is X:
        assert message.endswith(WORST) and message == failure(bad, leaf(X), **options)  # fast mode reports whole matrices
        assert "numerical:tensor([[2.0000," in message and "analytical:tensor([[ 3.," in message


def test_the_message_names_input_output_and_entry(bad):
    a, b = leaf(X), leaf([[1.0, 1.0], [1.0, 5.0]])
    message = failure(lambda a, b: (a * b, bad(b).sum()), (a, b))
    assert message.startswith("Jacobian mismatch for output 1 with respect to input 1,")
    assert message.splitlines()[-1].startswith("The largest disagreement is that of output 1 with respect to input 1[1, 1]: numerical 10.0000")
    assert message.splitlines()[-1].endswith("analytical 15.0")


def test_a_derivative_that_is_no_number_disagrees_most(declare):
    lost = declare("lost", lambda xp, x: x * x, lambda xp, y, x: 2 * x + 0 * x / (x - 2))
    with np.errstate(invalid="ignore"):
        message = failure(lost, leaf([1.0, 2.0, 3.0]))
    assert message.splitlines()[-1] == "The largest disagreement is that of output 0[0] with respect to input 0[1]: numerical 0.0, analytical nan"


SMOOTH = {
    "one input": (lambda x: symgrad.tanh(x) * x, (X,)),
    "a scalar": (lambda x: x.sin() * x, (0.5,)),
    "two inputs, two outputs": (lambda x, y: (x @ y, (x * y).sum(0)), (X, [[0.5, 1.0], [-1.0, 2.0]])),
    "complex": (lambda z: z * z * tensor([1 + 2j]), (Z,)),
    "a complex scalar": (lambda z: (z * z).exp(), (0.5 + 0.25j,)),
    "real and complex": (lambda x, z: (x * z, x.exp(), z * tensor([2 - 1j])), ([0.5, 1.0], Z)),
    "an output twice": (lambda x: (x, x * 2), (X,)),
    "an unused input": (lambda x, y: x * x, (X, [1.0])),
    "a transposed output": (lambda x: (x * x).t(), (X,)),
    "no elements": (lambda x: x[:0] * 2, ([1.0],)),
    "a slice of the input": (lambda x: x[0], (X,)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", SMOOTH)
def test_right_derivatives_pass(name, fast_mode):
    function, data = SMOOTH[name]
    inputs = tuple(leaf(each) for each in data)
    assert gradcheck(function, inputs, fast_mode=fast_mode, check_forward_ad=True, check_grad_dtypes=True)
    assert gradgradcheck(function, inputs, fast_mode=fast_mode, check_fwd_over_rev=True, check_grad_dtypes=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_wrong_second_derivative_fails_only_the_second_check(declare, fast_mode):
    """The derivative of x³ is a helper, whose own derivative is wrong."""
    declare("helper", lambda xp, x: 3 * x * x, lambda xp, y, x: 5 * x)
    cube = declare("cube_of", lambda xp, x: x * x * x, lambda xp, y, x: xp.helper(x) if hasattr(xp, "helper") else 3 * x * x)
    x = leaf([0.5, 1.5])
    assert gradcheck(cube, x, fast_mode=fast_mode)
    message = failure(cube, x, gradgradcheck, fast_mode=fast_mode)
    assert message.startswith("Jacobian mismatch for output 0 with respect to input 0,")
    assert failure(cube, x, gradgradcheck, check_rev_over_rev=False, check_fwd_over_rev=True, check_undefined_grad=False).startswith(
        "Jacobian computed with forward mode mismatch")


def test_a_small_error_hides_below_the_tolerance_and_shows_above_it(declare):
    nearly = declare("nearly", lambda xp, x: x * x, lambda xp, y, x: 2.001 * x)
    assert gradcheck(nearly, leaf([1.0]), attack=False)
    assert failure(nearly, leaf([1.0]), rtol=1e-4)


def function(forward, backward):
    """A Function of these two, which both take `ctx`."""
    return function_of(forward, backward, "Own").apply


def test_a_backward_that_is_random():
    noise = iter(range(1, 1000))
    shaky = function(lambda ctx, x: 2 * x, lambda ctx, g: g * (2 + next(noise) * 1e-9))
    message = failure(shaky, leaf([1.0]))
    assert "not reentrant" in message and "nondet_tol = 0.0" in message
    assert gradcheck(shaky, leaf([1.0]), nondet_tol=1e-6)


def test_a_backward_that_ignores_its_cotangent_or_has_another_shape():
    assert failure(function(lambda ctx, x: x.sum(), lambda ctx, g: symgrad.ones(2, 2)), leaf(X)) == (
        "gradcheck: backward with a cotangent of zeros does not give zeros")
    with pytest.raises(RuntimeError, match=r"gradient 1 must have the shape \[2, 2\], not \[3\]"):
        gradcheck(function(lambda ctx, x: x * 2, lambda ctx, g: symgrad.ones(3)), leaf(X))


@pytest.fixture
def doubled(declare):
    """An op that doubles, from its pullback and its pushforward."""
    return lambda vjp, jvp: symgrad.primitive("doubled", lambda xp, x: x * 2, vjp=lambda xp, g, y, x: vjp(xp, g), jvp=lambda xp, t, y, x: jvp(xp, t))


@pytest.mark.sweep
def test_rules_that_give_another_shape_or_dtype(doubled):
    x = leaf([1.0, 2.0])
    assert gradcheck(doubled(lambda xp, g: 2 * g, lambda xp, t: 2 * t), x, check_forward_ad=True, check_grad_dtypes=True)
    assert failure(doubled(lambda xp, g: 2 * xp.sum(g), lambda xp, t: 2 * t), x) == "gradcheck: the gradient has another shape than its input"
    single = doubled(lambda xp, g: xp.astype(2 * g, np.float32), lambda xp, t: 2 * t + 0j)
    assert failure(single, x, check_grad_dtypes=True) == "gradcheck: the gradient has another dtype than its input"
    assert failure(single, x, check_grad_dtypes=True, check_forward_ad=True, check_backward_ad=False) == (
        "gradcheck: the tangent has another dtype than its output")
    assert gradcheck(single, x, check_forward_ad=True, check_backward_ad=False)


class Affine(autograd.Function):
    """2 a + 3 b, of which no rule is given zeros."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        return 2 * a + 3 * b

    @staticmethod
    def backward(ctx, g):
        return (None, None) if g is None else (2 * g, 3 * g)


def test_a_tangent_that_is_missing():
    class Weighted(Affine):
        careful = True

        @classmethod
        def jvp(cls, ctx, s, t):
            if s is None or t is None:
                return (3 * t if s is None else 2 * s) + (0 if cls.careful else 1)
            return 2 * s + 3 * t

    class Careless(Weighted):
        careful = False

    inputs = leaf([1.0]), leaf([2.0])
    assert gradcheck(Weighted.apply, inputs, check_forward_ad=True)
    assert gradcheck(Careless.apply, inputs, check_forward_ad=True, check_undefined_grad=False, attack=False)
    message = failure(Careless.apply, inputs, check_forward_ad=True)
    assert "the tangent of output 0 is tensor([4.]) where input 0 has none, and tensor([3.])" in message


def twice_and_thrice(ctx, x):
    ctx.set_materialize_grads(False)
    return x * 2, x * 3


@pytest.mark.sweep
def test_a_gradient_that_is_missing():
    def proud(ctx, g, h):
        return g * 2 + h * 3

    def modest(ctx, g, h):
        return sum((c * k for c, k in ((g, 2), (h, 3)) if c is not None), symgrad.zeros(2))

    def wrong(ctx, g, h):
        return symgrad.ones(2) if g is not None and h is None and (g == 0).all() else modest(ctx, g, h)

    x = leaf([1.0, 2.0])
    assert gradcheck(function(twice_and_thrice, modest), x)
    with pytest.raises(TypeError):
        gradcheck(function(twice_and_thrice, proud), x)
    said = failure(function(twice_and_thrice, wrong), x)
    assert said == (
        "gradcheck: where no output has a gradient, those of the inputs must be None or 0. Without a gradient for output 1 they were "
        "not.")
    assert gradcheck(function(twice_and_thrice, wrong), x, check_undefined_grad=False)


def test_a_backward_that_breaks_without_a_gradient():
    def brittle(ctx, g, h):
        if g is not None and h is None and (g == 0).all():
            raise ArithmeticError("no h")
        return sum((c * k for c, k in ((g, 2), (h, 3)) if c is not None), symgrad.zeros(2))

    message = failure(function(twice_and_thrice, brittle), leaf([1.0, 2.0]))
    assert message == "gradcheck: backward fails where an output has no gradient. Without a gradient for output 1 it raised ArithmeticError: no h"


def save(ctx, x):
    ctx.save_for_backward(x)
    ctx.save_for_forward(x)
    return x * x


@pytest.mark.sweep
def test_functions_with_a_backward_that_is_wrong_ignores_its_input_or_reads_an_intermediate():
    assert failure(function(save, lambda ctx, g: 3 * g * ctx.saved_tensors[0]), leaf(X)).endswith(WORST)
    assert gradcheck(function(save, lambda ctx, g: 2 * g * ctx.saved_tensors[0]), leaf(X))
    forgetful = function(save, lambda ctx, g: 2 * g * ctx.saved_tensors[0].detach())
    assert gradcheck(forgetful, leaf(X))
    assert failure(forgetful, leaf(X), gradgradcheck).startswith("Jacobian mismatch for output 0 with respect to input 0,")

    def stash(ctx, x):
        ctx.square = x * x
        return ctx.square * x

    assert gradgradcheck(function(stash, lambda ctx, g: 3 * g * ctx.square), leaf(X))


@pytest.mark.sweep
def test_a_function_with_a_rule_for_tangents():
    class Square(autograd.Function):
        factor = 2
        forward = staticmethod(save)

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

        @classmethod
        def jvp(cls, ctx, t):
            return cls.factor * t * ctx.saved_for_forward[0]

    class Wrong(Square):
        factor = 3

    assert gradcheck(Square.apply, leaf(X), check_forward_ad=True) and gradgradcheck(Square.apply, leaf(X), check_fwd_over_rev=True)
    assert gradcheck(Wrong.apply, leaf(X))
    message = failure(Wrong.apply, leaf(X), check_forward_ad=True)
    assert message.startswith("Jacobian computed with forward mode mismatch") and message.endswith(WORST)


def test_without_a_differentiable_output_the_differences_must_be_zero():
    x = leaf(X)
    assert gradcheck(lambda x: x.detach() * 0, x) and gradcheck(lambda x: x.detach() * 0, x, fast_mode=True)
    for fast_mode in (False, True):
        assert failure(lambda x: x.detach() * 2, x, fast_mode=fast_mode) == (
            "gradcheck: the differences of the function are not 0, and no output depends on an input")


@pytest.mark.sweep
def test_integer_outputs_and_captured_and_constant_inputs():
    x, w = leaf(X), tensor(X)
    assert gradcheck(lambda x: (x * x, x.argmax(), x > 0), x, check_forward_ad=True)
    assert gradcheck(lambda y, n: y * w * n, (x, 2)) and gradcheck(lambda y, v: x * v, (x, w))


def test_the_point_is_put_back():
    x = leaf(X)

    def breaks(y):
        if y[0, 0].item() != 1.0:
            raise ArithmeticError("moved")
        return y * 2

    with pytest.raises(ArithmeticError, match="moved"):
        gradcheck(breaks, x)
    assert x.tolist() == X and x._version == 0
    assert gradcheck(lambda y: y.exp(), x) and x.tolist() == X and x._version == 0 and x.grad is None


def test_the_step():
    x = leaf([1.0])
    assert failure(lambda x: x**3, x, eps=0.5, rtol=1e-3).splitlines()[-1].endswith("numerical 3.25, analytical 3.0")
    assert gradcheck(lambda x: x**3, x, eps=0.5, rtol=0.1)


def test_bad_arguments():
    x = leaf(X)
    with pytest.raises(ValueError, match="gradcheck"):
        gradcheck(lambda x: x, tensor(X))
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(lambda x: x, leaf([1.0]).expand(3))
    with pytest.raises(TypeError, match="output 1 is NoneType"):
        gradcheck(lambda x: (x, None), x)
    reverse = {"check_rev_over_rev": False, "check_fwd_over_rev": True}
    for check, options in ((gradcheck, {"check_backward_ad": False}), (gradcheck, {"check_batched_forward_grad": True}),
                           (gradcheck, {"check_batched_grad": True, "check_forward_ad": True, "check_backward_ad": False}),
                           (gradgradcheck, {"check_rev_over_rev": False}), (gradgradcheck, reverse),
                           (gradgradcheck, {**reverse, "check_undefined_grad": False, "check_batched_grad": True})):
        with pytest.raises(AssertionError, match="check_"):
            check(lambda x: x, x, **options)


def test_outputs_that_change_with_the_point():
    with pytest.raises(AssertionError, match=r"index \(0, 0\).*Size\(\[3\]\).*Size\(\[4\]\)"):
        gradcheck(lambda x: x[x > 1 - 1e-9], leaf(X))
    with pytest.raises(AssertionError, match="float64 and torch.float32"):
        gradcheck(lambda x: x if x[0, 0] <= 1 else x.float(), leaf(X), fast_mode=True)


def test_single_precision_is_warned_of():
    with pytest.warns(UserWarning, match="input 0 is torch.float32") as caught:
        gradcheck(lambda x: x * x, leaf([1.0], dtype=symgrad.float32), raise_exception=False)
    assert caught[0].filename == __file__


@pytest.mark.sweep
def test_given_cotangents():
    x, g = leaf(X), leaf([[0.5, 1.0], [1.5, 2.0]])
    assert gradgradcheck(symgrad.exp, x, g) and gradgradcheck(symgrad.exp, x, (g,))
    assert gradgradcheck(lambda x: x.exp() * 2, x, gen_non_contig_grad_outputs=True)
    assert gradgradcheck(lambda z: z * z * z, leaf(Z), gen_non_contig_grad_outputs=True)


# What it calls: undefined gradients, dual tensors, rules for tangents


@pytest.mark.parametrize("fast", [True, False])
def test_all_gradients_undefined(fast):
    def strict(x):
        y = x.clone()
        y.register_hook(lambda g: g * 1)
        return y

    with pytest.raises(GradcheckError) as caught:
        gradcheck(strict, leaf([1.0]), fast_mode=fast)
    assert str(caught.value).startswith("gradcheck: backward fails where an output has no gradient. Without a gradient for any output it raised "
                                        "TypeError")


@pytest.mark.parametrize("fast", [True, False])
def test_forward_mode_calls_the_function_with_dual_tensors(fast):
    forward_ad = symgrad.autograd.forward_ad
    seen = []

    def other_tangent(x, y):
        seen.append((x.requires_grad, forward_ad._current_level))
        if forward_ad._current_level >= 0:
            primal, tangent = forward_ad.unpack_dual(y)
            y = forward_ad.make_dual(primal, tangent * 1.1)
        return x + y

    inputs = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    with pytest.raises(GradcheckError) as caught:
        gradcheck(other_tangent, inputs, check_forward_ad=True, fast_mode=fast)
    assert str(caught.value).startswith("Jacobian computed with forward mode mismatch for output 0 with respect to input 1")
    assert (False, 0) in seen


@pytest.mark.parametrize(("needs", "options", "calls"), [
    ((True, True), {}, 2), ((True, True), {"check_undefined_grad": True}, 6),
    ((True, True), {"check_undefined_grad": True, "check_batched_forward_grad": True}, 12),
    ((True, False), {"check_undefined_grad": True, "check_batched_forward_grad": True}, 5)])
def test_how_often_a_rule_for_tangents_is_called(needs, options, calls):
    class Counted(autograd.Function):
        count = 0

        @staticmethod
        def forward(ctx, x, y):
            return x.clone(), y.clone()

        @staticmethod
        def jvp(ctx, s, t):
            Counted.count += 1
            return s, t

    inputs = [symgrad.tensor([0.5], requires_grad=need) for need in needs]
    options = {"check_undefined_grad": False, **options}
    assert gradcheck(Counted.apply, inputs, check_forward_ad=True, check_backward_ad=False, attack=False, **options)
    assert Counted.count == calls


def test_the_module_is_called_as_its_function(monkeypatch):
    monkeypatch.setattr(autograd, "gradcheck", gradcheck)  # the import of the module replaces it
    from symgrad.autograd.gradcheck import GradcheckError as error

    assert error is GradcheckError and autograd.gradcheck(symgrad.tanh, leaf([0.5]), attack=False)
