"""Orthogonal weights beside torch: values and gradients from the same parameters, what is refused, and what assignments give."""

import numpy as np
import pytest
import torch

import symgrad
from tests.parity.module_kit import close, to

pytestmark = pytest.mark.usefixtures("double_precision")


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_weights(shape, kind, trivial):
    numbers, found = np.random.default_rng(0).normal(size=shape), []
    state = None
    for m in (torch, symgrad):
        layer = m.nn.Linear(*shape[::-1], bias=False)
        with m.no_grad():
            layer.weight.copy_(m.nn.init.orthogonal_(m.empty(shape)) if m is torch and trivial else m.tensor(numbers.tolist()))
        inverse = trivial or kind == "householder" or kind is None and shape[0] != shape[1]
        m.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial)
        small = min(shape)
        rows = layer.weight if shape[0] == small else layer.weight.T
        np.testing.assert_allclose((rows @ rows.T).detach().numpy(), np.eye(small), atol=1e-12)
        if not inverse:
            with pytest.raises(NotImplementedError, match="use_trivialization"):
                layer.weight = m.ones(shape)
        state = layer.state_dict() if m is torch else state
        if m is symgrad:
            layer.load_state_dict(to(symgrad, state))
        w = layer.weight
        weights = m.arange(float(w.numel())).reshape(w.shape).cos()
        (g,) = m.autograd.grad((w * weights).sum(), layer.parametrizations.weight.original, create_graph=True)
        found.append((w.detach(), g.detach(), m.autograd.grad((g * g).sum(), layer.parametrizations.weight.original)[0]))
    for theirs, ours in zip(*found):
        close(ours, theirs, f"{shape} {kind}")


def test_an_orthogonal_weight_stays_as_it_was():
    for shape in ((3, 3), (5, 2), (2, 5)):
        layer = symgrad.nn.Linear(*shape[::-1])
        symgrad.nn.init.orthogonal_(layer.weight)
        before = layer.weight.detach().clone()
        symgrad.nn.utils.parametrizations.orthogonal(layer)
        assert symgrad.allclose(layer.weight, before)
        layer.weight = -before
        assert symgrad.allclose(layer.weight, -before)
