"""Convolutions beside torch: value, dtype, two gradients, warnings, and what is refused."""

import numpy as np
import pytest
import torch

import symgrad
from symgrad.carriers import convolving
from tests.parity.test_nn_functions import agree, outcome

pytestmark = pytest.mark.usefixtures("double_precision")

# x is (2, 6, 4, 4)
CASES = [
    "F.conv2d(x, x[:, :, :3, 1:])", "F.conv2d(x, x[:, :, :2, :3], x[0, :2, 0, 0], (2, 1), (1, 2))", "F.conv2d(x[0], x[:, :, :2, :2], dilation=2)",
    "F.conv2d(x, x[:, :3, :2, :2], groups=2)", "F.conv2d(x, x.transpose(0, 1)[:, :1, :3, :1], x[0, :, 0, 0], stride=(1, 3), groups=6)",
    "F.conv2d(x, x[:, :, :3, :3], padding='same')", "F.conv2d(x, x[:, :, :3, :2], padding='valid')",
    "F.conv2d(x[0], x[:, :, :3, :1], padding='same')",
    "F.conv1d(x[0], x[:, 0, :, :2].repeat(1, 1, 1)[:, :4], padding=1)", "F.conv1d(x[0, 0], x[0, :, :, :3], x[0, :, 0, 0], 2, 3, 2)",
    "F.conv3d(x[None], x[:, :2, None, :2, :2], padding=(0, 1, 0))", "F.conv3d(x[:, None], x[:, None, :2, :2, :3], x[0, 0, 0, :2], stride=(2, 1, 1))",
    "F.conv_transpose2d(x, x[0, :, None, :3, :2].expand(6, 2, 3, 2), x[0, 0, 0, :2])",
    "F.conv_transpose2d(x, x[0, :, None, :3, :2], stride=2, padding=1, output_padding=(1, 0))",
    "F.conv_transpose2d(x[0], x[0, :, None, :3, :2], dilation=(2, 3), output_padding=(1, 2), groups=3)",
    "F.conv_transpose1d(x[0], x[0, 0, :, :3, None], x[0, 0, 0, :3], 2)", "F.conv_transpose3d(x[None], x[:, 0, None, :2, :2, None])",
    "m.conv_tbc(x[0], x[0, :2], x[0, 0, 0], 1)", "m.conv_tbc(x[0], x[0, :2, :3], x[0, 0, 0])", "m.conv_tbc(x, x[0], x[0, 0, 0])",
    "m.conv_tbc(x[0], x[0, :2], x[0, 0, 0, :2])", "m.convolution(x, x[:, :, :2, :2], None, [1], [0], [1], False, [0], 1)",
    "m.convolution(x, x.transpose(0, 1)[..., :2], None, [2, 1], [0, 1], [1, 1], True, [1, 0], 1)", "m.conv2d(x[:0], x[:, :, :2, :2])",
    "F.conv2d(x[..., :0], x)", "F.conv2d(x[..., :0], x[..., :2], padding=3)", "F.conv2d(x, x[:0])",
    "F.conv2d(x, x[..., :0])", "F.conv1d(x[0], x[0, ..., :0])", "F.conv3d(x, x[None, :, :, :0])",
    "F.conv2d(x, x[:, :3])", "F.conv2d(x[:, :3], x)", "F.conv2d(x, x[:, :3, :2, :2], groups=3)", "F.conv2d(x[0, 0], x)", "F.conv2d(x[None], x)",
    "F.conv1d(x, x[0])", "F.conv3d(x[0], x[None])", "F.conv2d(x, x[0])", "F.conv2d(x[..., :2, :2], x[..., :3, :3])", "F.conv2d(x, x, padding=-1)",
    "F.conv2d(x, x, stride=0)", "F.conv2d(x, x, dilation=0)", "F.conv2d(x, x, groups=0)", "F.conv2d(x, x, stride=(1, 1, 1))",
    "F.conv2d(x, x, padding=(1, 1, 1))", "F.conv2d(x, x, x[0, :3, 0, 0])", "F.conv2d(x, x, x[0])", "F.conv2d(x, x.float())",
    "F.conv2d(x, x, x[0, :2, 0, 0].float())", "F.conv2d(x > 0, x > 0)", "F.conv2d(x.long(), x.long() * 3)",
    "F.conv2d(x, x, padding='same', stride=2)", "F.conv2d(x, x, padding='no')", "F.conv2d(x, x, stride=1.0)", "F.conv2d([1.0], x)",
    "F.conv_transpose2d(x, x)", "F.conv_transpose2d(x, x.transpose(0, 1), output_padding=1)",
    "F.conv_transpose2d(x, x.transpose(0, 1), output_padding=-1)", "F.conv_transpose2d(x, x.transpose(0, 1), x[0, 0, 0])",
    "F.conv_transpose2d(x, x.transpose(0, 1), groups=4)", "F.conv_transpose2d(x[0, 0], x)",
]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("text", CASES)
@pytest.mark.parametrize("cached, large", [(convolving.CACHED, convolving.LARGE), (256, convolving.LARGE), (256, 400)],
                         ids=["at once", "in portions", "in parts"])
def test_beside_torch(text, cached, large, monkeypatch):
    """In portions one image after the other is multiplied, as of large images, and in parts of its places, as of very large ones."""
    monkeypatch.setattr(convolving, "CACHED", cached)
    monkeypatch.setattr(convolving, "LARGE", large)
    ours, theirs = outcome(symgrad, text), outcome(torch, text)
    if isinstance(theirs, tuple):
        assert ours[0] is theirs[0]
        return
    agree([[], *ours[1:]], [[], *theirs[1:]])


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


def test_one_node_with_the_values_that_torch_saves():
    for m in (symgrad, torch):
        x, w = m.ones(1, 2, 5, 5, requires_grad=True), m.ones(2, 1, 3, 3, requires_grad=True)
        node = m.conv2d(x, w, m.ones(2), (2, 1), 1, groups=2).grad_fn
        assert node.name() == "ConvolutionBackward0" and node.next_functions[0][0].variable is x and node.next_functions[1][0].variable is w
        assert (node._saved_input == x).all() and (node._saved_weight == w).all() and node._saved_groups == 2
        assert tuple(node._saved_stride) == (2, 1) and tuple(node._saved_padding) == (1, 1) and tuple(node._saved_dilation) == (1, 1)
        assert node._saved_transposed is False and tuple(node._saved_output_padding) == (0, 0)
