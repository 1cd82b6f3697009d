"""Ops that map complex numbers to real ones and have parameters: the gradient is complex, by every pass."""

import numpy as np

import symgrad
from symgrad import func
from symgrad.engine.recording import core
from symgrad.graph.op import REGISTRY

Z = symgrad.tensor([1j, 0.3 + 2j, -0.7 + 0j])


def test_the_gradient_is_complex():
    f = lambda z: core(REGISTRY["square_of_abs"])(z, None).sum()  # noqa: E731
    z = Z.clone().requires_grad_()
    f(z).backward()
    for found in (z.grad, func.grad(f)(Z), symgrad.autograd.grad(f(z), z, create_graph=True)[0].detach(), func.vmap(func.grad(f))(Z[None])[0]):
        np.testing.assert_allclose(found.numpy(), 2 * Z.numpy(), rtol=1e-15)
