"""`backward`, `autograd.grad`, `autograd.functional` and the modes: what is ours alone. What torch says is in the recorded programs of `autograd`."""

import asyncio
import weakref

import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import functional
from symgrad.system.restoring import collection_paused
from tests.support.tables import table


def leaf(*values):
    return tensor(values[0] if len(values) == 1 else list(values), requires_grad=True)


CONSTANT = table(globals(), "CONSTANT")


@pytest.mark.parametrize("function", CONSTANT.values(), ids=CONSTANT)
def test_piecewise_linear_functions_have_zero_higher_derivatives(function):
    """The second derivative of a piecewise linear function is zero, and so is the third: nothing raises."""
    x = leaf(-1.3, 1.2, 2.4)
    (d,) = autograd.grad(function(x).sum(), x, create_graph=True)
    for _ in range(2):
        assert d.requires_grad
        (d,) = autograd.grad(d.sum(), x, create_graph=True)
        assert d.tolist() == [0.0, 0.0, 0.0]


def test_a_constant_derivative_is_unused_where_that_is_allowed():
    x = leaf(2.0)
    first = autograd.grad(x * leaf(3.0), x, create_graph=True)
    for how, expected in ({}, 0.0), ({"materialize_grads": True, "allow_unused": True}, 0.0), ({"allow_unused": True}, None):
        (found,) = autograd.grad(first, x, retain_graph=True, **how)
        assert (found if found is None else found.item()) == expected


def test_a_node_is_a_function_of_the_gradients_of_its_outputs():
    a, b = leaf(1.0, 2.0), leaf([3.0], [4.0])
    by_a, by_b = (a * b).grad_fn(tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert by_a.tolist() == [15.0, 22.0] and by_b.tolist() == [[5.0], [11.0]]
    assert autograd.grad(by_a.sum(), b)[0].tolist() == [[3.0], [7.0]]
    cube = a**3
    assert cube.grad_fn(tensor([1.0, 1.0]))[0].tolist() == [3.0, 12.0]
    with pytest.raises(RuntimeError, match="the gradient "):
        cube.grad_fn(tensor([1.0]))
    with pytest.raises(TypeError, match="is not a function of gradients"):
        cube.grad_fn.next_functions[0][0](a)


def test_where_torch_shares_memory_or_refuses_a_real_gradient():
    x, z = leaf(1.0, 2.0), tensor([1j, 2.0], requires_grad=True)
    a, b = autograd.grad((x * x).sum(), [x, x])
    assert not a.shares_memory_with(b)
    (z * 2).backward(tensor([1.0, 1.0]))
    assert z.grad.tolist() == [2.0, 2.0] and "to_sparse" not in dir(x) and "_grad" not in dir(x) and "_grad" in dir(z)


# Functional


def test_what_torch_refuses_of_functional_or_does_in_another_way():
    x, v = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    with pytest.raises(RuntimeError, match="strict mode"):
        functional.jacobian(lambda x: 2 * x, x, True, True, strategy="forward-mode")
    with pytest.raises(ValueError, match="jacobian"):
        functional.jacobian(lambda: x, ())
    assert functional.jacobian(lambda x: x[:0], x).shape == (0, 2)
    assert functional.jacobian(lambda x: x.sum(), symgrad.zeros(0), strategy="forward-mode").shape == (0,)
    assert not any(caller(lambda x: x, x, v)[1].shares_memory_with(v) for caller in (functional.jvp, functional.vjp))
    y = leaf(1.0, 2.0)
    assert autograd.grad(functional.jacobian(lambda x: x**3, y, True, strategy="forward-mode").sum(), y)[0].tolist() == [6.0, 12.0]
    second = functional.hessian(lambda x: (x**4).sum(), y, True, outer_jacobian_strategy="forward-mode")
    assert autograd.grad(second.sum(), y)[0].tolist() == [24.0, 48.0]


def test_a_function_is_called_once():
    calls = []

    def counted(x):
        calls.append(1)
        return (x**3).sum()

    x, v = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    for ask in (lambda: functional.jacobian(counted, x), lambda: functional.jacobian(counted, x, strategy="forward-mode"),
                lambda: functional.hessian(counted, x), lambda: functional.hvp(counted, x, v), lambda: functional.jvp(counted, x, v)):
        calls.clear()
        ask()
        assert len(calls) == 1


def test_jvp_by_double_backward_for_a_function_without_jvp():
    cut = type("Cut", (autograd.Function,), {"forward": staticmethod(lambda ctx, x: x**3), "backward": staticmethod(lambda ctx, g: None)})
    cube = type("Cube", (cut,), {"forward": staticmethod(lambda ctx, x: ctx.save_for_backward(x) or x**3),
                                 "backward": staticmethod(lambda ctx, g: 3 * g * ctx.saved_tensors[0] ** 2)})
    x = leaf(1.0, 2.0)
    assert functional.jvp(cut.apply, x, tensor([3.0, 4.0]))[1].tolist() == [0.0, 0.0]
    assert functional.jacobian(lambda x: cube.apply(x.exp()).log(), x, strategy="forward-mode").allclose(3 * symgrad.eye(2))


# Modes


def test_an_error_thrown_into_a_generator_does_not_keep_its_tensors():
    held = []

    @symgrad.no_grad()
    def steps():
        x = tensor(1.0)
        held.append(weakref.ref(x))
        yield x

    running = steps()
    next(running)
    with collection_paused():
        with pytest.raises(ValueError, match="^thrown$"):
            running.throw(ValueError("thrown"))
        del running
        assert held[0]() is None


def test_a_coroutine_runs_in_the_mode_and_others_do_not():
    seen = []

    @symgrad.no_grad()
    async def without():
        for _ in range(2):
            seen.append(symgrad.is_grad_enabled())
            await asyncio.sleep(0)
        return "end"

    async def both():
        async def other():
            for _ in range(2):
                seen.append(symgrad.is_grad_enabled())
                await asyncio.sleep(0)

        return await asyncio.gather(without(), other())

    assert asyncio.run(both()) == ["end", None] and seen == [False, True] * 2


def test_decorated_classes_warn_and_asynchronous_generators_are_refused():
    with pytest.warns(FutureWarning, match="decorating a class is deprecated"):
        decorated = symgrad.no_grad()(dict)
    assert decorated(a=1) == {"a": 1}
    with pytest.raises(TypeError, match="no_grad: an asynchronous generator cannot be decorated"):
        @symgrad.no_grad()
        async def numbers():
            yield 1


def test_set_multithreading_enabled_as_a_decorator():
    autograd.set_multithreading_enabled(False)(lambda: None)()
    assert autograd.is_multithreading_enabled()
