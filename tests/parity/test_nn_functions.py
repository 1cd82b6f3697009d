"""Normalizations, embeddings, norms at zeros and dropout beside torch. Calls of one line are in `calls/nn_functions.txt`."""

import math

import numpy as np
import pytest
import torch

import symgrad

pytestmark = pytest.mark.usefixtures("double_precision")


def test_zero_distances_have_gradient_zero():
    """Where the distance has infinite curvature, what follows from the second derivative is not finite; torch gives 0."""
    for p in (0.5, 1.0, 1.5, 2.0, 3.0, math.inf):
        x = symgrad.ones(3, 2, requires_grad=True)
        (g,) = symgrad.autograd.grad(symgrad.cdist(x, x, p).sum(), x, create_graph=True)
        (h,) = symgrad.autograd.grad((g * g).sum(), x, materialize_grads=True)
        assert (g == 0).all() and ((h == 0).all() if p in (1, math.inf) else not h.isfinite().any()), p


def test_norms_have_gradients_where_elements_are_zero():
    """Those of powers between 0 and 1, or 1 and 2, have infinite curvature along such an element."""
    for p in (0, 0.5, 1.5, 3, 4):
        x = symgrad.tensor([2.0, 0.0], requires_grad=True)
        (g,) = symgrad.autograd.grad(symgrad.norm(x, p), x, create_graph=True)
        (h,) = symgrad.autograd.grad((g * g).sum(), x, materialize_grads=True)
        np.testing.assert_allclose(g.tolist(), [float(p > 0), 0], atol=1e-15)
        if p in (0.5, 1.5):
            assert not h.isfinite().any()
        else:
            np.testing.assert_allclose(h.tolist(), [0, 0], atol=1e-15)


def test_the_norm_of_zeros_has_gradient_zero():
    found = []
    for m in (symgrad, torch):
        x = m.zeros(2, 3, dtype=m.float64, requires_grad=True)
        (g,) = m.autograd.grad(m.norm(x, 3), x, create_graph=True)
        (h,) = m.autograd.grad((g * g).sum(), x)
        found.append((g.tolist(), h))
    assert found[0][0] == found[1][0] and (found[1][1] == 0).all() and not found[0][1].isfinite().any()


@pytest.mark.parametrize("name, mean, var", [("dropout", 1.0, 3 / 7), ("alpha_dropout", None, None), ("feature_dropout", 1.0, 3 / 7),
                                             ("feature_alpha_dropout", None, None)])
def test_dropout_keeps_moments_and_the_seed_repeats_it(name, mean, var):
    """Of 20000 elements the mean is within 5 of its standard deviations, and whole channels are dropped together."""
    function = getattr(symgrad, name)
    x = symgrad.ones(20000, 2, 3) if name.startswith("feature") else symgrad.ones(20000)
    symgrad.manual_seed(3)
    y = function(x, 0.3, True)
    symgrad.manual_seed(3)
    assert (function(x, 0.3, True) == y).all() and not (function(x, 0.3, True) == y).all()
    if name.startswith("feature"):
        assert (y == y[:, :, :1]).all() and not (y[:, 0] == y[:, 1]).all()
        y = y[:, 0, 0]
    values = y.unique()
    assert len(values) == 2
    kept = float((y == values[1]).double().mean())
    assert abs(kept - 0.7) < 5 * math.sqrt(0.21 / 20000)
    if mean is not None:
        np.testing.assert_allclose(values.tolist(), [0, 1 / 0.7])
        assert abs(float(y.mean()) - mean) < 5 * math.sqrt(var / 20000)
    else:
        torch.manual_seed(0)
        theirs = getattr(torch, name)(torch.ones(200, 2, 3) if name.startswith("feature") else torch.ones(200), 0.3, True)
        np.testing.assert_allclose(values.tolist(), theirs.unique().tolist(), rtol=1e-12)


def test_gumbel_softmax_samples_the_categories():
    """Of 20000 hard samples each category is within 5 standard deviations of its probability; the gradient is that of the soft ones."""
    logits = symgrad.tensor([0.0, 1.0, -1.0], requires_grad=True)
    symgrad.manual_seed(1)
    hard = symgrad.nn.functional.gumbel_softmax(logits.expand(20000, 3), tau=0.7, hard=True)
    assert ((hard.abs() < 1e-12) | ((hard - 1).abs() < 1e-12)).all()
    p = symgrad.softmax(logits.detach(), 0)
    assert ((hard.detach().mean(0) - p).abs() < 5 * (p * (1 - p) / 20000).sqrt()).all()
    weights = symgrad.tensor([1.0, 2.0, 4.0])
    (g,) = symgrad.autograd.grad((hard * weights).sum(), logits)
    symgrad.manual_seed(1)
    soft = symgrad.nn.functional.gumbel_softmax(logits.expand(20000, 3), tau=0.7)
    (h,) = symgrad.autograd.grad((soft * weights).sum(), logits)
    assert symgrad.allclose(g, h) and (g != 0).all()


def test_margins_of_an_empty_batch():
    x = symgrad.zeros(0, 3, requires_grad=True)
    for function, target in ((symgrad.nn.functional.multi_margin_loss, symgrad.zeros(0, dtype=symgrad.int64)),
                             (symgrad.nn.functional.multilabel_margin_loss, symgrad.zeros(0, 3, dtype=symgrad.int64))):
        assert function(x, target, reduction="none").shape == (0,)
        total = function(x, target, reduction="sum")
        assert total.item() == 0 and symgrad.autograd.grad(total, x)[0].shape == (0, 3)
