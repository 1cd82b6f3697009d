"""`backward` and `autograd.grad`: every argument of torch's, higher orders, grad modes, and cases that torch gets wrong."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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

    def test_gradient_argument_is_the_cotangent(self):
        x = leaf(1.0, 2.0)
        (x * x).backward(tensor([1.0, -1.0]))
        assert x.grad.tolist() == [2.0, -4.0]

    def test_grad_does_not_alias_the_gradient_argument(self):
        x, g = leaf(1.0, 2.0), tensor([1.0, -1.0])
        x.clone().backward(g)
        x.backward(g)
        assert x.grad.tolist() == [2.0, -2.0] and g.tolist() == [1.0, -1.0]

    def test_of_a_leaf(self):
        x = leaf(2.0)
        x.backward()
        x.backward(tensor(3.0))
        assert x.grad.item() == 4.0

    def test_a_second_backward_without_retain_graph_raises(self):
        x = leaf(1.0, 2.0)
        y = (x * x).sum()
        y.backward()
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time.*Specify retain_graph=True"):
            y.backward()
        assert x.grad.tolist() == [2.0, 4.0]

    def test_retain_graph_allows_a_second_backward(self):
        x = leaf(1.0, 2.0)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad.tolist() == [4.0, 8.0]

    def test_a_second_backward_through_ops_that_save_nothing(self):
        x = leaf(1.0, 2.0)
        y = (x + x).sum()
        y.backward()
        y.backward()
        assert x.grad.tolist() == [4.0, 4.0]

    def test_a_shared_subgraph_is_freed_by_the_first_backward(self):
        x = leaf(2.0)
        y = x.exp()
        (2 * y).backward()
        with pytest.raises(RuntimeError, match="a second time"):
            (3 * y).backward()

    def test_creates_a_graph(self):
        x = leaf(2.0)
        (x**3).backward(create_graph=True)
        first = x.grad
        assert first.requires_grad and first.item() == 12.0
        x.grad = None
        first.backward()
        assert x.grad.item() == 12.0

    def test_creates_a_graph_of_accumulated_gradients(self):
        x = leaf(2.0)
        (x**3).backward(create_graph=True)
        (x**2).backward(create_graph=True)
        total = x.grad
        assert total.item() == 16.0
        assert autograd.grad(total, x)[0].item() == 14.0

    def test_inputs(self):
        x, z = leaf(2.0), leaf(3.0)
        m = x * z
        (m * m).backward(inputs=[x])
        assert x.grad.item() == 36.0 and z.grad is None
        n = x * z
        (5 * n).backward(inputs=n)
        assert n.grad.item() == 5.0 and x.grad.item() == 36.0

    def test_several_tensors(self):
        x = leaf(1.0, 2.0)
        autograd.backward([x * x, (3 * x).sum()], [tensor([1.0, 1.0]), None])
        assert x.grad.tolist() == [5.0, 7.0]
        autograd.backward((x.sum(), x.sum()), (tensor(2.0), tensor(3.0)))
        assert x.grad.tolist() == [10.0, 12.0]

    def test_a_leaf_that_only_the_graph_references(self):
        x = leaf(2.0)
        y = x * x
        del x
        y.backward()

    def test_grad_has_the_dtype_of_the_leaf(self):
        x = tensor([1.0, 2.0], dtype=symgrad.float32, requires_grad=True)
        (x.to(symgrad.float64) * tensor([3.0, 4.0])).sum().backward()
        assert x.grad.dtype is symgrad.float32 and x.grad.tolist() == [3.0, 4.0]
        x.grad = None
        (x * tensor([3.0, 4.0])).backward(tensor([1.0, 1.0]))
        assert x.grad.dtype is symgrad.float32

    def test_grad_of_an_unreached_leaf_is_none(self):
        x, z = leaf(1.0), leaf(1.0)
        (2 * x).backward()
        assert z.grad is None

    def test_grad_mode_is_restored(self):
        x = leaf(1.0)
        with symgrad.no_grad():
            autograd.grad(x, x, create_graph=True)
            assert not symgrad.is_grad_enabled()
        autograd.grad(x * x, x)
        assert symgrad.is_grad_enabled()


class TestGrad:
    def test_returns_and_does_not_accumulate(self):
        x = leaf(1.0, 2.0)
        found = autograd.grad((x * x).sum(), x)
        assert isinstance(found, tuple) and found[0].tolist() == [2.0, 4.0]
        assert x.grad is None and not found[0].requires_grad

    def test_several_outputs_and_inputs(self):
        x, z = leaf(2.0), leaf(3.0)
        gx, gz = autograd.grad([x * z, x + z], [x, z])
        assert (gx.item(), gz.item()) == (4.0, 3.0)

    def test_grad_outputs(self):
        x = leaf(1.0, 2.0)
        (g,) = autograd.grad([x * x, x.sum()], x, grad_outputs=[tensor([1.0, 10.0]), None])
        assert g.tolist() == [3.0, 41.0]
        (g,) = autograd.grad(x * x, x, grad_outputs=tensor([1.0, 10.0]))
        assert g.tolist() == [2.0, 40.0]

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

    def test_only_nodes_between_outputs_and_inputs_are_freed(self):
        x, z = leaf(2.0), leaf(3.0)
        a, b = x.exp(), z.exp()
        y = a + b
        autograd.grad(y, x)
        with pytest.raises(RuntimeError, match="a second time"):
            autograd.grad(a, x)
        assert autograd.grad(b, z)[0].item() == math.exp(3.0)

    def test_create_graph_implies_retain_graph(self):
        x = leaf(2.0)
        y = x.exp()
        autograd.grad(y, x, create_graph=True)
        assert autograd.grad(y, x)[0].item() == math.exp(2.0)

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

    def test_mixed_partials_commute(self):
        x, z = leaf(0.3), leaf(0.7)
        y = (x * z).sin() * z.exp() / x
        orders = [(x, z, z), (z, x, z), (z, z, x)]
        found = []
        for order in orders:
            d = y
            for v in order:
                (d,) = autograd.grad(d, v, create_graph=True)
            found.append(d.item())
        assert found[1:] == pytest.approx(found[:1] * 2, rel=1e-13)

    def test_through_a_gradient_step(self):
        """The derivative of a loss after a step of gradient descent: x' = x - 0.1 * 3 x^2, d(x'^3)/dx = 3 x'^2 (1 - 0.6 x)."""
        x = leaf(2.0)
        (g,) = autograd.grad(x**3, x, create_graph=True)
        after = x - 0.1 * g
        assert autograd.grad(after**3, x)[0].item() == pytest.approx(3 * (2 - 1.2) ** 2 * (1 - 1.2), rel=1e-14)

    def test_nested_derivatives_do_not_confuse_perturbations(self):
        """d/dx [x d/dy (x + y)] at 1 is 1."""
        x = leaf(1.0)
        y = leaf(1.0)
        (inner,) = autograd.grad(x + y, y, create_graph=True)
        assert autograd.grad(x * inner, x)[0].item() == 1.0

    def test_gradients_are_differentiable_by_the_cotangent(self):
        """The derivative of vjp(g) by g is the pushforward."""
        x, g = leaf(1.0, 2.0), leaf(0.0, 0.0)
        (pulled,) = autograd.grad(x.exp(), x, g, create_graph=True)
        (pushed,) = autograd.grad(pulled, g, tensor([1.0, -1.0]))
        assert pushed.tolist() == pytest.approx([math.e, -(math.e**2)], rel=1e-15)


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

    @pytest.mark.parametrize("function", CONSTANT.values(), ids=CONSTANT)
    def test_by_backward(self, function):
        x = leaf(-1.3, 1.2, 2.4)
        function(x).sum().backward(create_graph=True)
        first = x.grad
        x.grad = None
        first.sum().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]

    def test_in_two_variables(self):
        x, z = leaf(2.0), leaf(3.0)
        gx, gz = autograd.grad(2 * x + 5 * z, [x, z], create_graph=True)
        assert [g.item() for g in autograd.grad(gx, [x, z], retain_graph=True)] == [0.0, 0.0]
        gx, gz = autograd.grad(x * z, [x, z], create_graph=True)
        assert autograd.grad(gx, x)[0].item() == 0.0 and autograd.grad(gz, x)[0].item() == 1.0


class TestSelections:
    @pytest.mark.parametrize("function, at, expected", [
        (lambda x: symgrad.where(x > 0, x.log(), x), 0.0, [0.0, 1.0, 0.0]),
        (lambda x: symgrad.where(x > 0, x.sqrt(), 0 * x), -1.0, [0.0, 0.0, 0.0]),
        (lambda x: symgrad.where(x > 0, x.sqrt(), 0 * x), 0.0, [0.0, 0.0, 0.0]),
        (lambda x: symgrad.where(x != 0, x.sin() / x, 1 - x**2 / 6), 0.0, [1.0, 0.0, -1 / 3]),
        (lambda x: symgrad.where(x < 1, x, (1000 * x).exp()), 0.5, [0.5, 1.0, 0.0]),
        (lambda x: symgrad.where(x < 1, x, (1000 * x).exp()), 0.99, [0.99, 1.0, 0.0]),
        (lambda x: symgrad.where(x > 0, (1 / x).exp(), x**2), 0.0, [0.0, 0.0, 2.0]),
        (lambda x: symgrad.where(x > 0, x * (x.log() + 1).sqrt().log(), x.sin()), 0.0, [0.0, 1.0, 0.0]),
        (lambda x: x.log().clamp(-100.0, 0.0), 0.0, [-100.0, 0.0, 0.0]),
        (lambda x: symgrad.maximum(x.log(), tensor(-5.0)), 0.0, [-5.0, 0.0, 0.0]),
        (lambda x: x.log().relu(), 0.0, [0.0, 0.0, 0.0]),
    ], ids=["log", "sqrt below", "sqrt", "sinc", "exp", "exp near", "exp of 1/x", "chain", "clamp", "maximum", "relu"])
    def test_an_unselected_branch_contributes_no_nan(self, function, at, expected):
        assert every_derivative(function, leaf(at), 2) == pytest.approx(expected, abs=1e-15)
        y = function(v := leaf(at, 0.25, at))
        (gradient,) = autograd.grad(y.sum(), v)
        assert gradient.tolist()[::2] == [pytest.approx(expected[1], abs=1e-15)] * 2

    def test_nan_of_a_selected_branch_is_kept(self):
        x = leaf(-1.0)
        (g,) = autograd.grad(symgrad.where(x < 0, x.sqrt(), x), x)
        assert math.isnan(g.item())

    @pytest.mark.parametrize("values, gradient, hessian", [
        ([2.0, 3.0, 5.0], [15.0, 10.0, 6.0], [[0, 5, 3], [5, 0, 2], [3, 2, 0]]),
        ([0.0, 3.0, 5.0], [15.0, 0.0, 0.0], [[0, 5, 3], [5, 0, 0], [3, 0, 0]]),
        ([0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [[0, 5, 0], [5, 0, 0], [0, 0, 0]]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
    ], ids=str)
    def test_prod_with_zeros(self, values, gradient, hessian):
        x = leaf(*values)
        (g,) = autograd.grad(x.prod(), x, create_graph=True)
        assert g.tolist() == gradient
        assert [autograd.grad(g[i], x, retain_graph=True)[0].tolist() for i in range(3)] == hessian

    def test_gradients_of_norms_at_zero(self):
        for length in (symgrad.norm, lambda x: x.std(), lambda x: symgrad.hypot(x[0], x[1])):
            x = leaf(0.0, 0.0)
            (g,) = autograd.grad(length(x), x, create_graph=True)
            assert g.tolist() == [0.0, 0.0]
            assert not autograd.grad(g.sum(), x)[0].isfinite().any()  # next to 0 it is as large as 1 / length

    def test_ties_share_the_gradient_equally(self):
        x = leaf(1.0, 3.0, 3.0, 3.0)
        assert autograd.grad(x.amax(), x)[0].tolist() == [0.0, 1 / 3, 1 / 3, 1 / 3]
        assert autograd.grad(x.max(), x)[0].tolist() == [0.0, 1 / 3, 1 / 3, 1 / 3]
        a, b = leaf(1.0, 2.0), leaf(1.0, 3.0)
        ga, gb = autograd.grad(symgrad.maximum(a, b).sum(), [a, b])
        assert ga.tolist() == [0.5, 0.0] and gb.tolist() == [0.5, 1.0]

    @pytest.mark.parametrize("function", [symgrad.abs, symgrad.relu, symgrad.sign, lambda x: x.clamp(0.0, 1.0), lambda x: x.clamp(-1.0, 0.0)])
    def test_kinks_have_derivative_zero(self, function):
        assert every_derivative(function, leaf(0.0), 2)[1:] == [0.0, 0.0]

    def test_power_at_zero(self):
        assert every_derivative(lambda x: x**2, leaf(0.0), 3) == [0.0, 0.0, 2.0, 0.0]
        assert every_derivative(lambda x: x**0, leaf(0.0), 2) == [1.0, 0.0, 0.0]
        base, exponent = leaf(0.0, 0.0, 0.0), leaf(0.0, 1.0, 2.0)
        ga, gb = autograd.grad((base**exponent).sum(), [base, exponent])
        assert ga.tolist() == [0.0, 1.0, 0.0] and gb.tolist() == [0.0, 0.0, 0.0]

    @pytest.mark.parametrize("n", [0.0, 1.0, 2.0, -1.0, 0.1])
    def test_power_by_base_and_exponent(self, n):
        """d/db d/da a^b = a^(b-1) (1 + b log a), at whole exponents too."""
        a, b = leaf(2.0), leaf(n)
        (by_base,) = autograd.grad(a**b, a, create_graph=True)
        assert by_base.item() == pytest.approx(n * 2.0 ** (n - 1), rel=1e-15)
        assert autograd.grad(by_base, b)[0].item() == pytest.approx(2.0 ** (n - 1) * (1 + n * math.log(2.0)), rel=1e-14)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=4), st.integers(0, 2**16))
def test_hessians_are_symmetric_and_match_a_product(values, seed):
    """H v by `grad` of a gradient is the sum of v's shares of the rows of H."""
    x, v = leaf(*values) if len(values) > 1 else leaf([values[0]]), np.random.default_rng(seed).normal(size=len(values))
    y = (x.sin().sum() * x.exp()).sum() + (x * x.flip(0)).tanh().sum()
    (g,) = autograd.grad(y, x, create_graph=True)
    hessian = np.array([autograd.grad(g[i], x, retain_graph=True)[0].tolist() for i in range(len(values))])
    (product,) = autograd.grad(g, x, tensor(v))
    scale = np.abs(hessian) @ np.abs(v) + np.max(np.abs(hessian))
    assert np.all(np.abs(hessian - hessian.T) <= 1e-13 * np.max(np.abs(hessian)))
    assert np.all(np.abs(hessian @ v - product.numpy()) <= 1e-13 * scale)


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
