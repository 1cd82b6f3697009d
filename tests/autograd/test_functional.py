"""`autograd.functional`: strict mode, what is refused, and higher derivatives. Calls are in the recorded programs of functional."""

import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import functional


def point(t):
    return t.tensor([1.0, 2.0])


def direction(t):
    return t.tensor([3.0, 4.0])


def leaf(t):
    return t.tensor([1.0, 2.0], requires_grad=True)


FUNCTIONS = {  # of x and of a tensor that requires grad
    "detached": lambda x, w: x.detach() * 2,
    "captured": lambda x, w: w * 1,
    "linear": lambda x, w: 2 * x,
    "square": lambda x, w: x**2,
}


def strict(name, caller, create_graph):
    """A call in strict mode."""
    def call(t, f):
        w, function = leaf(t), FUNCTIONS[name]
        if caller in ("jacobian", "vjp", "jvp"):
            rest = () if caller == "jacobian" else (direction(t),)
            return getattr(f, caller)(lambda x: function(x, w), point(t), *rest, create_graph=create_graph, strict=True)
        rest = () if caller == "hessian" else (direction(t),)
        return getattr(f, caller)(lambda x: function(x, w).sum(), point(t), *rest, create_graph=create_graph, strict=True)

    return call


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("caller", functional.__all__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_strict_mode(name, caller, create_graph):
    """It refuses outputs that do not depend on the input, and where it is differentiated derivatives that do not."""
    second = create_graph or caller in ("hessian", "vhp", "hvp")
    if name in ("detached", "captured") or name == "linear" and second:
        with pytest.raises(RuntimeError, match="strict mode"):
            strict(name, caller, create_graph)(symgrad, functional)
    else:
        assert strict(name, caller, create_graph)(symgrad, functional) is not None


def test_what_torch_refuses_in_other_ways():
    with pytest.raises(RuntimeError, match="strict mode"):
        functional.jacobian(lambda x: 2 * x, point(symgrad), True, True, strategy="forward-mode")
    with pytest.raises(ValueError, match="jacobian"):
        functional.jacobian(lambda: point(symgrad), ())


def test_results_require_grad_only_with_create_graph():
    x, v = leaf(symgrad), direction(symgrad)
    for caller in ("vjp", "jvp"):
        for create_graph in (False, True):
            y, product = getattr(functional, caller)(lambda x: x**2, x, v, create_graph)
            assert y.requires_grad is product.requires_grad is create_graph
    for caller in ("vhp", "hvp"):
        for create_graph in (False, True):
            y, product = getattr(functional, caller)(lambda x: (x**3).sum(), x, v, create_graph)
            assert y.requires_grad is product.requires_grad is create_graph
    assert x.grad is None


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_results_can_be_differentiated_again(strategy):
    x, v = leaf(symgrad), tensor([3.0, 4.0], requires_grad=True)

    def cubes(x):
        return x**3

    def total(x):
        return (x**4).sum()

    gradients = {
        "jacobian": autograd.grad(functional.jacobian(cubes, x, True, strategy=strategy).sum(), x),
        "hessian": autograd.grad(functional.hessian(total, x, True, outer_jacobian_strategy=strategy).sum(), x),
        "vjp": autograd.grad(functional.vjp(cubes, x, v, True)[1].sum(), (x, v)),
        "jvp": autograd.grad(functional.jvp(cubes, x, v, True)[1].sum(), (x, v)),
        "vhp": autograd.grad(functional.vhp(total, x, v, True)[1].sum(), (x, v)),
        "hvp": autograd.grad(functional.hvp(total, x, v, True)[1].sum(), (x, v)),
    }
    assert {name: [g.tolist() for g in found] for name, found in gradients.items()} == {
        "jacobian": [[6.0, 12.0]], "hessian": [[24.0, 48.0]],
        "vjp": [[18.0, 48.0], [3.0, 12.0]], "jvp": [[18.0, 48.0], [3.0, 12.0]],
        "vhp": [[72.0, 192.0], [12.0, 48.0]], "hvp": [[72.0, 192.0], [12.0, 48.0]]}


def test_a_captured_input_is_a_constant_of_the_function():
    x = leaf(symgrad)
    assert functional.jacobian(lambda y: x * y, x).tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert functional.jvp(lambda y: x * y, x, direction(symgrad))[1].tolist() == [3.0, 8.0]
    through = functional.jacobian(lambda y: x * y, x, create_graph=True).sum()
    assert autograd.grad(through, x)[0].tolist() == [1.0, 1.0]


def test_a_function_is_called_once():
    calls = []

    def counted(x):
        calls.append(1)
        return (x**3).sum()

    x, v = point(symgrad), direction(symgrad)
    for ask in (lambda: functional.jacobian(counted, x), lambda: functional.jacobian(counted, x, strategy="forward-mode"),
                lambda: functional.hessian(counted, x), lambda: functional.hvp(counted, x, v), lambda: functional.jvp(counted, x, v)):
        calls.clear()
        ask()
        assert len(calls) == 1


def test_no_elements_and_no_inputs():
    assert functional.jacobian(lambda x: x[:0], point(symgrad)).shape == (0, 2)
    assert functional.jacobian(lambda x: x.sum(), symgrad.zeros(0), strategy="forward-mode").shape == (0,)


def test_results_do_not_alias_the_arguments():
    x, v = point(symgrad), direction(symgrad)
    _, pushed = functional.jvp(lambda x: x, x, v)
    _, pulled = functional.vjp(lambda x: x, x, v)
    assert pushed.tolist() == pulled.tolist() == [3.0, 4.0]
    assert not pushed.shares_memory_with(v) and not pulled.shares_memory_with(v)


class Cube(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * grad * x**2


class Cut(Cube):
    @staticmethod
    def backward(ctx, grad):
        return None


def test_jvp_by_double_backward_for_a_function_without_jvp():
    x, v = leaf(symgrad), direction(symgrad)
    assert functional.jvp(lambda x: (Cube.apply(x), x * 2), x, v)[1][0].tolist() == [9.0, 48.0]
    assert functional.jvp(lambda x: (x.detach() * 2, Cube.apply(x)), x, v)[1][0].tolist() == [0.0, 0.0]
    assert functional.jvp(Cut.apply, x, v)[1].tolist() == [0.0, 0.0]
    assert functional.jacobian(lambda x: Cube.apply(x.exp()).log(), x, strategy="forward-mode").allclose(3 * symgrad.eye(2))
    assert functional.hvp(lambda x: Cube.apply(x).sum(), x, v)[1].tolist() == [18.0, 48.0]
    again = functional.jvp(Cube.apply, x, v, create_graph=True)[1]
    assert autograd.grad(again.sum(), x)[0].tolist() == [18.0, 48.0]
