"""`backward` and `autograd.grad`: every argument of torch's, higher orders, grad modes, and cases that torch gets wrong."""

import math

import pytest

import symgrad
from symgrad import autograd, tensor


def leaf(*values):
    return tensor(values[0] if len(values) == 1 else list(values), requires_grad=True)


def every_derivative(function, x, order):
    """The value and derivatives up to an order, for a function of one number."""
    y, found = function(x), []
    for _ in range(order):
        found.append(y.item())
        (y,) = autograd.grad(y, x, create_graph=True)
    return [*found, y.item()]


class TestBackward:
    def test_accumulates(self):
        x = leaf(1.0, 2.0)
        (x * x).sum().backward()
        (3 * x).sum().backward()
        assert x.grad.tolist() == [5.0, 7.0]

    def test_adds_to_a_gradient_that_was_set(self):
        x = leaf(1.0, 2.0)
        x.grad = tensor([10.0, 20.0])
        x.sum().backward()
        assert x.grad.tolist() == [11.0, 21.0]
        x.grad = None
        assert x.grad is None

    def test_of_a_leaf(self):
        x = leaf(2.0)
        x.backward()
        x.backward(tensor(3.0))
        assert x.grad.item() == 4.0

    def test_several_tensors(self):
        x = leaf(1.0, 2.0)
        autograd.backward([x * x, (3 * x).sum()], [tensor([1.0, 1.0]), None])
        assert x.grad.tolist() == [5.0, 7.0]
        autograd.backward((x.sum(), x.sum()), (tensor(2.0), tensor(3.0)))
        assert x.grad.tolist() == [10.0, 12.0]


class TestGrad:
    def test_returns_and_does_not_accumulate(self):
        x = leaf(1.0, 2.0)
        found = autograd.grad((x * x).sum(), x)
        assert isinstance(found, tuple) and found[0].tolist() == [2.0, 4.0]
        assert x.grad is None and not found[0].requires_grad

    def test_an_output_twice_and_an_input_twice(self):
        x = leaf(2.0)
        y = x * x
        a, b = autograd.grad([y, y], [x, x])
        assert a.item() == b.item() == 8.0
        v = leaf(1.0, 2.0)
        a, b = autograd.grad((v * v).sum(), [v, v])
        assert not a.shares_memory_with(b)

    def test_of_an_intermediate(self):
        x = leaf(2.0)
        y = x * x
        z = y * y
        gx, gy = autograd.grad(z, [x, y])
        assert (gx.item(), gy.item()) == (32.0, 8.0)
        assert autograd.grad(y, y)[0].item() == 1.0 and autograd.grad(x, x)[0].item() == 1.0

    def test_unused(self):
        x, z = leaf(2.0), leaf(1.0, 1.0)
        with pytest.raises(RuntimeError, match="not have been used in the graph.*allow_unused=True"):
            autograd.grad(x * x, [x, z])
        assert autograd.grad(x * x, [x, z], allow_unused=True)[1] is None
        assert autograd.grad(x * x, [x, z], materialize_grads=True)[1].tolist() == [0.0, 0.0]
        with pytest.raises(ValueError, match="allow_unused"):
            autograd.grad(x * x, [x, z], allow_unused=False, materialize_grads=True)

    def test_create_graph_without_retain_graph_frees_the_graph(self):
        x = leaf(2.0)
        y = x.exp()
        autograd.grad(y, x, create_graph=True, retain_graph=False)
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward()


class TestHigherOrders:
    @pytest.mark.parametrize("function, expected", [
        (symgrad.sin, [math.sin(0.3 + n * math.pi / 2) for n in range(9)]),
        (lambda x: x**5, [0.3**5, 5 * 0.3**4, 20 * 0.3**3, 60 * 0.3**2, 120 * 0.3, 120.0, 0.0, 0.0, 0.0]),
        (lambda x: 1 / x, [(-1) ** n * math.factorial(n) / 0.3 ** (n + 1) for n in range(9)]),
        (lambda x: x.exp(), [math.exp(0.3)] * 9),
        (lambda x: (2 * x).log(), [math.log(0.6)] + [(-1) ** (n - 1) * math.factorial(n - 1) / 0.3**n for n in range(1, 9)]),
    ], ids=["sin", "x^5", "1/x", "exp", "log"])
    def test_derivatives_up_to_order_eight(self, function, expected):
        assert every_derivative(function, leaf(0.3), 8) == pytest.approx(expected, rel=1e-13, abs=1e-15)


CONSTANT = {
    "2 x": lambda x: 2 * x, "x + 3": lambda x: x + 3, "3 - x": lambda x: 3 - x, "x / 4": lambda x: x / 4, "-x": lambda x: -x,
    "x ** 0": lambda x: x**0, "x ** 1": lambda x: x**1, "sum": lambda x: x.sum(), "mean": lambda x: x.mean(), "cumsum": lambda x: x.cumsum(0),
    "index": lambda x: x[1], "slice": lambda x: x[1:], "reshape": lambda x: x.reshape(3, 1), "flip": lambda x: x.flip(0),
    "clone": lambda x: x.clone(),
    "maximum": lambda x: symgrad.maximum(x, tensor([0.0, 5.0, 1.0])), "minimum": lambda x: symgrad.minimum(x, 2 * x),
    "clamp": lambda x: x.clamp(0.0, 1.5),
    "clamp by tensors": lambda x: x.clamp(tensor(0.0), tensor([1.0, 1.5, 9.0])), "relu": lambda x: x.relu(), "abs": lambda x: x.abs(),
    "sign": lambda x: x.sign(), "floor": lambda x: x.floor(), "round": lambda x: x.round(), "remainder": lambda x: x % 1.7,
    "where": lambda x: symgrad.where(x > 0, x, tensor(0.0)), "amax": lambda x: x.amax(), "max": lambda x: x.max(),
    "min over dim": lambda x: x.min(0).values,
    "matmul": lambda x: tensor([[1.0, 2.0, 3.0]]) @ x, "stack": lambda x: symgrad.stack([x, 2 * x]), "to": lambda x: x.to(symgrad.float32),
    "masked_fill": lambda x: x.masked_fill(x > 1, 0.0),
    "index_put": lambda x: x.index_put((tensor([0]),), tensor([4.0])),
    "floor division": lambda x: x // 2, "einsum": lambda x: symgrad.einsum("i,i->", x, tensor([1.0, 2.0, 3.0])),
}


class TestConstantDerivatives:
    @pytest.mark.parametrize("function", CONSTANT.values(), ids=CONSTANT)
    def test_piecewise_linear_functions_have_zero_higher_derivatives(self, function):
        """The second derivative of a piecewise linear function is zero, and so is the third: nothing raises."""
        x = leaf(-1.3, 1.2, 2.4)
        (d,) = autograd.grad(function(x).sum(), x, create_graph=True)
        for _ in range(2):
            assert d.requires_grad
            (d,) = autograd.grad(d.sum(), x, create_graph=True)
            assert d.tolist() == [0.0, 0.0, 0.0]


class TestSelections:

    def test_nan_of_a_selected_branch_is_kept(self):
        x = leaf(-1.0)
        (g,) = autograd.grad(symgrad.where(x < 0, x.sqrt(), x), x)
        assert math.isnan(g.item())


def test_an_input_that_is_not_reached_gets_no_gradient_and_a_result_keeps_its_own():
    x, unused = symgrad.tensor(1.0, requires_grad=True), symgrad.tensor(1.0, requires_grad=True)
    y = x * 2
    z = y * 3
    z.backward(inputs=[y, unused], retain_graph=True)
    assert (y.grad.item(), y.retains_grad, unused.grad, x.grad) == (3.0, True, None, None)
    z.backward()
    assert (y.grad.item(), x.grad.item()) == (6.0, 6.0)
    first = x * 0.0
    first.backward(inputs=[x, unused], create_graph=False)
    assert x.grad.item() == 6.0 and unused.grad is None
