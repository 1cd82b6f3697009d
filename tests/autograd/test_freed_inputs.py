"""Gradients with respect to results whose own graph was freed: the graph above them is still there."""

import pytest

import symgrad


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("above", [lambda t: t.unbind(0)[0], lambda t: t * symgrad.ones(3, 2), lambda t: t @ symgrad.ones(2), lambda t: t + 1])
def test_a_freed_result_receives_its_gradient(above, hooked):
    x = symgrad.tensor([1.0, 2.0], requires_grad=True)
    if hooked:
        x.register_hook(lambda g: None)
    leaf = x.detach().clone().requires_grad_()
    (expected,) = symgrad.autograd.grad(above(leaf).sum(), leaf)
    y = x.exp()
    y.sum().backward()
    z = above(y).sum()
    assert symgrad.autograd.grad(z, y, retain_graph=True)[0].tolist() == expected.tolist()
    assert symgrad.autograd.grad(z, symgrad.autograd.graph.get_gradient_edge(y), retain_graph=True)[0].tolist() == expected.tolist()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()
