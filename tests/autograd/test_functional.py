"""`autograd.functional`: values and structure recorded from torch, what is refused, and higher derivatives."""

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


def matrix(t):
    return t.tensor([[1.0, 2.0], [0.5, -1.0]])


def pair(t):
    return point(t), matrix(t)


# What torch 2.13 prints, with float64 as its default dtype. Each case takes torch (or what stands for it) and its `autograd.functional`.
VALUES = {
    "jacobian of both": (lambda t, f: f.jacobian(lambda x, a: (a @ x, x.sum()), pair(t)),
                         "((tensor([[ 1.0000,  2.0000],\n        [ 0.5000, -1.0000]]), tensor([[[1., 2.],\n         [0., 0.]],\n\n"
                         "        [[0., 0.],\n         [1., 2.]]])), (tensor([1., 1.]), tensor([[0., 0.],\n        [0., 0.]])))"),
    "jacobian of one input in a tuple": (lambda t, f: f.jacobian(lambda x: x**2, (point(t),)), "(tensor([[2., 0.],\n        [0., 4.]]),)"),
    "jacobian of a complex output": (lambda t, f: f.jacobian(lambda x: x * (1 + 2j), point(t), vectorize=True),
                                     "tensor([[1., 0.],\n        [0., 1.]])"),
    "jacobian of a matrix laid out by columns": (
        lambda t, f: f.jacobian(lambda x: (matrix(t) * x).t(), point(t)).sum(0), "tensor([[ 1.0000,  2.0000],\n        [ 0.5000, -1.0000]])"),
    "jacobian of two dtypes": (lambda t, f: f.jacobian(lambda x, y: x * y, (point(t), direction(t).float())),
                               "(tensor([[3., 0.],\n        [0., 4.]]), tensor([[1., 0.],\n        [0., 2.]], dtype=torch.float32))"),
    "jacobian of two dtypes in forward mode": (
        lambda t, f: tuple(f.jacobian(lambda x, y: x * y, (point(t), direction(t).float()), vectorize=True, strategy="forward-mode")),
        "(tensor([[3., 0.],\n        [0., 4.]]), tensor([[1., 0.],\n        [0., 2.]]))"),
    "jacobian of integers": (lambda t, f: f.jacobian(lambda x: x.argmax(), point(t)), "tensor([0., 0.])"),
    "jacobian to differentiate of no leaf": (lambda t, f: f.jacobian(lambda x: x**2, point(t), create_graph=True),
                                             "tensor([[2., 0.],\n        [0., 4.]], grad_fn=<ViewBackward0>)"),
    "hessian of one element": (lambda t, f: f.hessian(lambda x: (x**3).sum(0, keepdim=True), point(t)), "tensor([[ 6.,  0.],\n        [ 0., 12.]])"),
    "hessian of inputs": (lambda t, f: f.hessian(lambda x, y: (x**2 * y).sum(), (point(t), t.tensor(3.0))),
                          "((tensor([[6., 0.],\n        [0., 6.]]), tensor([2., 4.])), (tensor([2., 4.]), tensor(0.)))"),
    "vjp with v": (lambda t, f: f.vjp(lambda x, a: a @ x, pair(t), direction(t)),
                   "(tensor([ 5.0000, -1.5000]), (tensor([5., 2.]), tensor([[3., 6.],\n        [4., 8.]])))"),
    "vjp of outputs": (lambda t, f: f.vjp(lambda x: (x**2, x.sum()), point(t), (direction(t), t.tensor(1.0))),
                       "((tensor([1., 4.]), tensor(3.)), tensor([ 7., 17.]))"),
    "vjp of integers": (lambda t, f: f.vjp(lambda x: x.argmax(), point(t)), "(tensor(1), tensor([0., 0.]))"),
    "jvp without v": (lambda t, f: f.jvp(lambda x: (x, x**2), t.tensor([3.0])), "((tensor([3.]), tensor([9.])), (tensor([1.]), tensor([6.])))"),
    "jvp of complex": (lambda t, f: f.jvp(lambda x: x * x * (1 + 2j), point(t) * (1 + 1j), direction(t) * (1 - 1j)),
                       "(tensor([ -4.+2.j, -16.+8.j]), tensor([12.+24.j, 32.+64.j]))"),
    "hvp of inputs": (lambda t, f: f.hvp(lambda x, y: (x**2 * y).sum(), (point(t), t.tensor(3.0)), (direction(t), t.tensor(1.0))),
                      "(tensor(15.), (tensor([20., 28.]), tensor(22.)))"),
    "vhp of a linear function": (lambda t, f: f.vhp(lambda x: x.sum(), point(t), direction(t)), "(tensor(3.), tensor([0., 0.]))"),
    "strict": (lambda t, f: f.hvp(lambda x: (x**3).sum(), point(t), direction(t), True, True)[1].detach(), "tensor([18., 48.])"),
    "strict vjp of outputs one of which depends": (
        lambda t, f: f.vjp(lambda x: (x**2, leaf(t) * 2), point(t), (direction(t), direction(t)), strict=True),
        "((tensor([1., 4.]), tensor([2., 4.])), tensor([ 6., 16.]))"),
}

REFUSED = [
    (lambda t, f: f.jacobian(lambda x, y: x * y, [point(t), point(t)]), TypeError),
    (lambda t, f: f.vjp(lambda x, y: x, (point(t), 1)), TypeError),
    (lambda t, f: f.jvp(lambda x: [x * x], point(t), point(t)), TypeError),
    (lambda t, f: f.hvp(lambda x: x.sum(), point(t), 1.0), TypeError),
    (lambda t, f: f.jvp(lambda x: x, point(t), (point(t), point(t))), RuntimeError),
    (lambda t, f: f.jvp(lambda x, a: a @ x, pair(t), point(t)), RuntimeError),
    (lambda t, f: f.vjp(lambda x: x, point(t), t.ones(3)), RuntimeError),
    (lambda t, f: f.hvp(lambda x, a: (a @ x).sum(), pair(t), (point(t), point(t))), RuntimeError),
    (lambda t, f: f.vjp(lambda x: x, point(t)), RuntimeError), (lambda t, f: f.jvp(lambda x: x, point(t)), RuntimeError),
    (lambda t, f: f.vhp(lambda x: x.sum(), point(t)), RuntimeError), (lambda t, f: f.hessian(lambda x: (x.sum(),), point(t)), RuntimeError),
    (lambda t, f: f.hvp(lambda x: (x.sum(),), point(t), point(t)), RuntimeError), (lambda t, f: f.hessian(lambda x: x, point(t)), RuntimeError),
    (lambda t, f: f.vhp(lambda x: x, point(t), point(t)), RuntimeError),
    (lambda t, f: f.jacobian(lambda x: x, point(t), strategy="sideways"), AssertionError),
    (lambda t, f: f.hessian(lambda x: x.sum(), point(t), outer_jacobian_strategy="sideways"), AssertionError),
    (lambda t, f: f.jacobian(lambda x: x * (1 + 2j), point(t)), RuntimeError), (lambda t, f: f.jacobian(lambda x: x, t.tensor([1, 2])), RuntimeError),
    (lambda t, f: f.jacobian(lambda x: (x**3).sum(), point(t), strict=True, vectorize=True), RuntimeError),
    (lambda t, f: f.hessian(lambda x: (x**3).sum(), point(t), strict=True, vectorize=True), RuntimeError),
    (lambda t, f: f.jacobian(lambda x: (x**2, leaf(t) * 2), point(t), strict=True), RuntimeError),
    (lambda t, f: f.jvp(lambda x: (x**2, leaf(t) * 2), point(t), direction(t), strict=True), RuntimeError),
    (lambda t, f: f.hvp(lambda x, y: (x**2).sum(), (point(t), point(t)), (point(t), point(t)), strict=True), RuntimeError),
    (lambda t, f: f.vhp(lambda x, y: (x**2).sum() + (y * leaf(t)).sum(), (point(t), point(t)), (point(t), point(t)), strict=True), RuntimeError),
    (lambda t, f: f.vhp(lambda x, y: (x**2).sum() + y.sum(), (point(t), point(t)), (point(t), point(t)), strict=True), RuntimeError),
    (lambda t, f: f.jacobian(lambda x, y: x**2, (point(t), point(t)), strict=True, strategy="forward-mode"), RuntimeError),
    (lambda t, f: f.jacobian(lambda x: 2 * x, point(t), True, True, strategy="forward-mode"), RuntimeError),
    (lambda t, f: f.jacobian(lambda: point(t), ()), ValueError),
]

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


@pytest.mark.parametrize("name", VALUES)
def test_values_and_structure_match_torch(name):
    call, expected = VALUES[name]
    assert repr(call(symgrad, functional)) == expected


@pytest.mark.parametrize("call, error", REFUSED)
def test_what_is_refused(call, error):
    with pytest.raises(error):
        call(symgrad, functional)


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
