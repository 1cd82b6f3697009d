"""What `gradcheck` calls: undefined gradients, dual tensors, rules for tangents."""

import pytest

import symgrad
from symgrad import autograd
from symgrad.autograd import gradcheck
from symgrad.testing.gradcheck.gradcheck import GradcheckError


def leaf(data):
    return symgrad.tensor(data, requires_grad=True)


@pytest.mark.parametrize("fast", [True, False])
def test_all_gradients_undefined(fast):
    def strict(x):
        y = x.clone()
        y.register_hook(lambda g: g * 1)
        return y

    with pytest.raises(GradcheckError) as caught:
        gradcheck(strict, leaf([1.0]), fast_mode=fast)
    assert str(caught.value).startswith("Expected backward function to handle undefined output grads. Without a gradient for any output it raised "
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
