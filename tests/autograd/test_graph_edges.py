"""Nodes as torch shows them: edges as inputs, what a node tells of its gradients, nodes as functions, and leaves with other memory."""

import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd.graph import get_gradient_edge


def leaf(*values):
    return tensor(values[0] if len(values) == 1 else list(values), requires_grad=True)


def test_an_edge_that_is_not_reached_has_no_zeros():
    x, y = leaf(1.0, 2.0), leaf(3.0)
    reached, other = get_gradient_edge(x), get_gradient_edge(y)
    found = autograd.grad(x.exp().sum(), iter([reached, y]), materialize_grads=True)
    assert found[0].tolist() == x.exp().tolist() and found[1].tolist() == 0.0
    for inputs in ((x, other), other):
        with pytest.raises(RuntimeError, match="^grad: materialize_grads .*GradientEdge"):
            autograd.grad(x.exp().sum(), inputs, materialize_grads=True)


def test_a_constant_derivative_is_unused_where_that_is_allowed():
    x = leaf(2.0)
    first = autograd.grad(x * leaf(3.0), x, create_graph=True)
    for how, expected in ({}, 0.0), ({"materialize_grads": True, "allow_unused": True}, 0.0), ({"allow_unused": True}, None):
        (found,) = autograd.grad(first, x, retain_graph=True, **how)
        assert (found if found is None else found.item()) == expected


def test_what_was_computed_before_set_belongs_to_the_former_leaf():
    x, log = leaf(1.0, 2.0), []
    x.register_hook(lambda g: log.append(g.tolist()))
    edge, out = get_gradient_edge(x), (x * 3).sum()
    with symgrad.no_grad():
        x.set_(tensor([5.0, 7.0]))
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        autograd.grad(out, x, retain_graph=True)
    assert autograd.grad(out, edge, retain_graph=True)[0].tolist() == [3.0, 3.0]
    log.clear()
    (x * x).sum().backward()
    assert x.is_leaf and x.grad.tolist() == [10.0, 14.0] and log == [[10.0, 14.0]]
    out.backward()
    assert x.grad.tolist() == [13.0, 17.0] and log[1:] == [[3.0, 3.0]]


@pytest.mark.parametrize("make, shapes", [
    (lambda x: x * 2, [(2,)]), (lambda x: x.sum(), [()]), (lambda x: Pair.apply(x)[1], [(2,), ()]), (lambda x: x.float(), [(2,)])])
def test_metadata_of_the_gradients_of_a_node(make, shapes):
    node = make(leaf(1.0, 2.0)).grad_fn
    assert [each.shape for each in node._input_metadata] == shapes
    assert {each.dtype for each in node._input_metadata} <= {symgrad.float64, symgrad.float32} and node._input_metadata[0].device.type == "cpu"


class Pair(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x.sum()

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h


def test_a_node_is_a_function_of_the_gradients_of_its_outputs():
    a, b = leaf(1.0, 2.0), leaf([3.0], [4.0])
    by_a, by_b = (a * b).grad_fn(tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert by_a.tolist() == [15.0, 22.0] and by_b.tolist() == [[5.0], [11.0]]
    (second,) = autograd.grad(by_a.sum(), b)
    assert second.tolist() == [[3.0], [7.0]]
    cube = a**3
    assert cube.grad_fn(tensor([1.0, 1.0]))[0].tolist() == [3.0, 12.0]
    assert a.exp().grad_fn(tensor([1.0, 1.0])).tolist() == a.exp().tolist()
    assert (2 * a).grad_fn(tensor([1.0, 1.0]))[1] is None
    for given in ((), (a, a)):
        with pytest.raises(TypeError, match="one gradient is needed"):
            cube.grad_fn(*given)
    for given, error in ((1.0, TypeError), (tensor([1.0]), RuntimeError)):
        with pytest.raises(error, match="the gradient "):
            cube.grad_fn(given)
    with pytest.raises(TypeError, match="is not a function of gradients"):
        cube.grad_fn.next_functions[0][0](a)


def test_saved_tensors_are_the_users_own_while_they_live():
    a = leaf(1.0, 2.0)
    b = a * a
    c = a * b
    assert c.grad_fn._saved_self is a and c.grad_fn._saved_other is b
    e = a.exp()
    assert e.grad_fn._saved_result is not e and e.grad_fn._saved_result.tolist() == e.tolist()
    values = b.tolist()
    del b
    assert c.grad_fn._saved_other.tolist() == values


def test_attributes_that_cannot_be_deleted_or_set():
    x = leaf(1.0, 2.0)
    x.grad = tensor([1.0, 1.0])
    del x.grad
    assert x.grad is None
    for name in ("data", "requires_grad", "_grad_fn", "_backward_hooks"):
        with pytest.raises(RuntimeError):
            delattr(x, name)
    with pytest.raises(TypeError, match="Tensor, not NoneType"):
        x.data = None
    with pytest.raises(RuntimeError, match="floating-point or complex"):
        x.data = tensor([1, 2])
    with pytest.raises(RuntimeError, match="another tensor"):
        x.grad = x
    with pytest.warns(UserWarning, match="volatile"):
        assert not x.volatile
    assert x.data.tolist() == [1.0, 2.0] and x.requires_grad


def test_the_dictionary_of_tensor_hooks():
    x, y = leaf(1.0), tensor(1.0)
    assert x._backward_hooks is None and y._backward_hooks is None
    handle = x.register_hook(lambda g: 2 * g)
    assert list(x._backward_hooks) == [handle.id]
    x._backward_hooks[-1] = lambda g: 3 * g
    y._backward_hooks = {0: lambda g: pytest.fail("a constant has no gradient")}
    (x * y).backward()
    assert x.grad == 6.0 and len(y._backward_hooks) == 1
    x._backward_hooks = None
    (x * y).backward()
    assert x.grad == 7.0


def test_dir_names_what_is_there():
    x = symgrad.ones(2, 2)
    names = dir(x)
    assert {"shape", "mul_", "grad"} <= set(names) and "to_sparse" not in names and "_grad" not in names
    x.grad = symgrad.ones(2, 2)
    assert "_grad" in dir(x)


def test_gradients_of_another_kind_of_number():
    x, z = leaf(1.0, 2.0), symgrad.tensor([1j, 2.0], requires_grad=True)
    words = r"^grad_output\[0\] .*complex128.*float64"
    with pytest.raises(RuntimeError, match=words):
        (x * 2).backward(tensor([1j, 1.0]))
    (z * 2).backward(tensor([1.0, 1.0]))
    assert x.grad is None and z.grad.tolist() == [2.0, 2.0]
