"""Selective checkpoints: values of chosen ops are kept, and used in the recomputation."""

import functools
import gc
import weakref

import pytest

import symgrad
from symgrad.utils.checkpoint import CheckpointPolicy, SelectiveCheckpointContext, checkpoint, create_selective_checkpoint_contexts


def selective(f, policy, **options):
    return lambda *xs: checkpoint(f, *xs, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, policy, **options))


def leaf():
    return symgrad.tensor([[0.3, 0.7], [0.2, 0.9]], requires_grad=True)


def gradient(f):
    x = leaf()
    f(x).sum().backward()
    return x.grad.flatten().tolist()


def block(x):
    return ((x @ x).sin().exp() @ x.cos()).sum(0, keepdim=True).softmax(1) * x[0]


def save_products(context, op, *args):
    return CheckpointPolicy.MUST_SAVE if op is symgrad.mm else CheckpointPolicy.PREFER_RECOMPUTE


@pytest.mark.parametrize("policy", [[symgrad.mm], [symgrad.sin, symgrad.exp, symgrad.softmax], [], save_products, lambda context, op, *args: True,
                                    lambda context, op, *args: CheckpointPolicy.MUST_CPU_OFFLOAD])
def test_gradients_are_those_of_the_plain_call(policy):
    expected = gradient(block)
    assert gradient(selective(block, policy)) == expected
    assert gradient(selective(lambda x: selective(block, policy)(x.sin()), policy)) == pytest.approx(gradient(lambda x: block(x.sin())))


def test_saved_values_are_not_computed_again():
    calls = []
    twice = symgrad.linear("twice_counted", lambda xp, x: calls.append(1) or 2 * x, lambda xp, g, shape: 2 * g)
    for policy, expected in ([twice], 1), ([symgrad.sin], 2), (lambda context, op, *args: getattr(op, "name", "") == "twice_counted", 1):
        calls.clear()
        assert gradient(selective(lambda x: twice(x.sin()).cos() * 3, policy)) == pytest.approx(gradient(lambda x: (x.sin() * 2).cos() * 3))
        assert len(calls) == expected


def test_what_a_policy_is_given():
    seen = []

    def policy(context, op, *args):
        assert isinstance(context, SelectiveCheckpointContext) and not context.is_recompute and context.op_output.shape == (2, 2)
        seen.append((op, [a.tolist() if isinstance(a, symgrad.Tensor) else a for a in args]))
        return False

    x = leaf()
    selective(lambda x: (x @ x).sin() * 2, policy)(x).sum().backward()
    assert [op for op, _ in seen] == [symgrad.mm, symgrad.sin, symgrad.mul] and seen[0][1] == [x.tolist(), x.tolist()] and seen[2][1][1] == 2


def test_values_are_held_until_they_are_used():
    held = []

    def f(x):
        y = x @ x
        held.append(weakref.ref(y._value))
        return y.sin().exp()

    y = selective(f, [symgrad.mm])(leaf())
    assert held[0]() is not None
    y.sum().backward(retain_graph=True)
    assert held[0]() is None
    y = selective(f, [symgrad.mm])(leaf())
    gc.disable()
    del y
    gc.enable()
    assert held[-1]() is None


def test_a_second_backward_is_refused():
    y = selective(lambda x: x.sin().cos().exp(), [symgrad.sin])(leaf()).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="earlier backward"):
        y.backward()


def test_a_value_that_was_written_is_refused():
    def f(x):
        return x.sin().mul_(2).cos().exp()

    with pytest.raises(RuntimeError, match="sin: .*written in place"):
        gradient(selective(f, [symgrad.sin]))
    gradient(selective(f, [symgrad.sin], allow_cache_entry_mutation=True))


def test_a_recomputation_with_other_ops_is_refused():
    given = iter([lambda x: x.sin().exp(), lambda x: x.cos().exp()])
    with pytest.raises(RuntimeError, match="cos: .* number 1"):
        gradient(selective(lambda x: next(given)(x), [symgrad.sin]))


@pytest.mark.parametrize("given", [2, symgrad.nn.functional.linear, len])
def test_what_is_no_op_is_refused(given):
    with pytest.raises(ValueError, match="is not the function of one op"):
        create_selective_checkpoint_contexts([given])
    with pytest.raises(TypeError, match="2 is neither"):
        create_selective_checkpoint_contexts(2)
