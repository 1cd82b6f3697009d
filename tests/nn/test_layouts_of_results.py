"""Results lie row by row, or in the format of images, where PyTorch's do, so that `view` works on them; none is the memory of an argument."""

import math

import numpy as np
import pytest

import symgrad
from symgrad.nn import functional as F

SHAPE = 2, 4, 6, 6
BY_ROWS = {
    "layer_norm": lambda x: F.layer_norm(x, (6,), symgrad.ones(6)), "layer_norm of two": lambda x: F.layer_norm(x, (6, 6)),
    "rms_norm": lambda x: F.rms_norm(x, (6,)), "group_norm": lambda x: F.group_norm(x, 2, symgrad.ones(4)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, symgrad.ones(4), training=True),
    "batch_norm with statistics": lambda x: F.batch_norm(x, symgrad.zeros(4), symgrad.ones(4)),
    "batch_norm of signals": lambda x: F.batch_norm(x[0], None, None, training=True), "instance_norm": F.instance_norm,
    "instance_norm with statistics": lambda x: F.instance_norm(x, symgrad.zeros(4), symgrad.ones(4), use_input_stats=False),
    "matmul": lambda x: symgrad.matmul(x, x), "matmul of a matrix": lambda x: symgrad.matmul(x, x[0, 0]),
    "matmul of a vector": lambda x: x @ x[0, 0, 0],
    "vector times matrices": lambda x: symgrad.matmul(x[0, 0, 0], x), "bmm": lambda x: symgrad.bmm(x[0], x[1]),
    "renorm": lambda x: symgrad.renorm(x, 2, 1, 1.0), "renorm, p = 1": lambda x: symgrad.renorm(x, 1, 2, 1.0),
    "quantile": lambda x: symgrad.quantile(x, 0.3, dim=1, keepdim=True), "count_nonzero": lambda x: symgrad.count_nonzero(x, 1),
    "embedding": lambda x: F.embedding(x[0, 0].argsort(1) % 6, x[0, 0], padding_idx=2), "pixel_shuffle": lambda x: F.pixel_shuffle(x, 1),
    "grid_sample": lambda x: F.grid_sample(x, symgrad.zeros(2, 3, 3, 2), align_corners=False), "lu": lambda x: symgrad.linalg.lu(x)[0]}
IN_IMAGES = "rms_norm", "group_norm", "batch_norm", "batch_norm with statistics", "pixel_shuffle"
FRESH = {"pixel_shuffle": lambda x: F.pixel_shuffle(x, 1), "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 1),
         "channel_shuffle": lambda x: F.channel_shuffle(x, 1), "channel_shuffle of all": lambda x: F.channel_shuffle(x, 4),
         "shuffle of pixels": lambda x: F.pixel_shuffle(x[..., :1, :1], 2), "unique": lambda x: symgrad.unique(x[0, 0, 0, 0]),
         "unique_consecutive": lambda x: symgrad.unique_consecutive(x[0, 0, 0, 0]), "view_copy": lambda x: symgrad.view_copy(x, (-1,))}


def inputs():
    """The same elements in several layouts."""
    plain = symgrad.tensor(np.random.default_rng(5).normal(size=SHAPE))
    order = (3, 1, 0, 2)
    yield "contiguous", plain
    yield "transposed", plain.mT.contiguous().mT
    yield "permuted", plain.permute(order).contiguous().permute(tuple(order.index(i) for i in range(4)))
    yield "sliced", symgrad.stack([plain, -plain], -1).flatten(-2)[..., ::2]
    yield "images", plain.contiguous(memory_format=symgrad.channels_last)


@pytest.mark.parametrize("name", BY_ROWS)
def test_results_can_be_viewed(name):
    expected = None
    for layout, x in inputs():
        y = BY_ROWS[name](x)
        expected = y if expected is None else expected
        assert symgrad.allclose(y, expected, rtol=1e-12, atol=1e-12), layout
        if layout == "images" and name in IN_IMAGES:
            assert y.is_contiguous(memory_format=symgrad.channels_last)
        else:
            assert y.view(-1).shape == (math.prod(y.shape),), layout


@pytest.mark.parametrize("name", FRESH)
def test_results_are_new_memory(name):
    for layout, x in inputs():
        y = FRESH[name](x)
        before = x.clone()
        y.zero_()
        assert (x == before).all(), layout
        assert not y._is_view()


def test_view_copy_needs_no_view():
    x = symgrad.arange(6.0).reshape(2, 3)
    assert symgrad.view_copy(x.t(), (6,)).tolist() == symgrad.view_copy(x.t(), 6).tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


def test_normalize_and_glu_keep_the_order_of_their_argument():
    for _, x in inputs():
        if all(s for s in x.stride()):
            assert F.normalize(x).stride() == symgrad.exp(x).stride()
            assert np.argsort(F.glu(x, 1).stride(), kind="stable").tolist() == np.argsort(symgrad.exp(x[:, :2]).stride(), kind="stable").tolist()
