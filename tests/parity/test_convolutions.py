"""Convolutions beside torch in portions and in parts, of few bits, and what their nodes save. Calls of one line are in `calls/convolutions.txt`."""

import numpy as np
import pytest
import torch

import symgrad
from symgrad.carriers import convolving

from .beside import differences, sections

pytestmark = pytest.mark.usefixtures("double_precision")


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
