"""Normalizations, norms at zeros, dropout, convolutions, views and shared memory beside torch. Calls of one line are in the texts of `calls`."""

import math
import warnings

import numpy as np
import pytest
import torch

import symgrad
from symgrad.carriers import convolving
from tests.parity.test_beside import Section, differences, sections

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


@pytest.mark.parametrize("large", [convolving.LARGE, 400], ids=["in portions", "in parts"])
def test_beside_torch(large, monkeypatch):
    """In portions one image after the other is multiplied, as of large images, and in parts of its places, as of very large ones."""
    monkeypatch.setattr(convolving, "CACHED", 256)
    monkeypatch.setattr(convolving, "LARGE", large)
    (section,) = sections("convolutions")
    assert differences(section) == []


def test_few_bits_and_complex_numbers():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 5)), rng.normal(size=(4, 3, 2))
    for dtype, tolerance in (("float16", 2e-3), ("bfloat16", 2e-2), ("complex128", 1e-12)):
        found = []
        for m in (symgrad, torch):
            a, b = (m.tensor(v.tolist(), dtype=getattr(m, dtype), requires_grad=True) for v in (x, w))
            y = m.conv1d(a, b, stride=2)
            (y * y.detach().conj()).abs().sum().backward()
            found.append([np.array(v.detach().to(m.complex128).tolist()) for v in (y, a.grad, b.grad)])
        for ours, theirs in zip(*found):
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=10 * tolerance)


def test_memory_is_shared_through_dlpack_and_files(tmp_path):
    x = np.zeros(3)
    symgrad.from_dlpack(x)[1] = 2.0
    assert x.tolist() == [0.0, 2.0, 0.0]
    y = symgrad.zeros(3)
    np.from_dlpack(y)[0] = 5.0
    torch.from_dlpack(y)[1] = 6.0
    symgrad.from_dlpack(torch.from_dlpack(y))[2] = 7.0
    symgrad.from_dlpack(symgrad.to_dlpack(y))
    assert y.tolist() == [5.0, 6.0, 7.0] and y.__dlpack_device__() == (1, 0)
    assert symgrad.from_dlpack(x, copy=True).fill_(1.0).sum() == 3 and x.sum() == 2
    path = str(tmp_path / "numbers")
    symgrad.from_file(path, shared=True, size=3, dtype=symgrad.float32).copy_(symgrad.tensor([1.0, 2.0, 3.0]))
    assert torch.from_file(path, size=3, dtype=torch.float32).tolist() == [1.0, 2.0, 3.0]
    private = symgrad.from_file(path, size=2, dtype=symgrad.float32)
    private.zero_()
    assert symgrad.from_file(path, size=3, dtype=symgrad.float32).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="has not the size for 9 elements"):
        symgrad.from_file(path, size=9)


def test_anomaly_mode_is_switched():
    symgrad.set_anomaly_enabled(True)
    try:
        x = symgrad.tensor(0.0, requires_grad=True)
        with pytest.raises(RuntimeError, match="returned nan values"), warnings.catch_warnings(action="ignore"):
            (0 * x.sqrt()).backward()
    finally:
        symgrad.set_anomaly_enabled(False)
    assert not symgrad.set_flush_denormal(True) and math.ulp(0.0) * symgrad.ones(()) > 0


DTYPES = ("float64", "float32", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
          "uint64", "bool")


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_in_another_dtype(dtype):
    given = next(sections("memory")).given + "no_dimensions, no_elements = torch.tensor(3.0), torch.zeros(2, 0, 4)\n"
    calls = [f"x.to(torch.{dtype}).view(torch.{other})" for other in DTYPES]
    for x in ("contiguous", "permuted", "sliced", "expanded", "offset", "no_dimensions", "no_elements"):
        assert differences(Section("", f"{given}x = {x}", calls, 0.0, frozenset({"memory"}))) == []


def test_storages_write_into_tensors_and_cannot_grow():
    x = symgrad.zeros(3)
    x.storage()[1] = 5.0
    x.untyped_storage()[7] = 64
    assert x.tolist() == [2.0, 5.0, 0.0] and x._version == 0
    with pytest.raises(RuntimeError, match="resize_: the storage has the size 3"):
        x.storage().resize_(4)
    with pytest.raises(RuntimeError, match="copy_: the source has the size 2, the storage 3"):
        x.storage().copy_(symgrad.DoubleStorage(2))
