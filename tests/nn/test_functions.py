"""Functions of `nn.functional`: results lie as PyTorch's do, derivatives by every argument are right, and windows of long signals are slices."""

import math

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.layouts.resampling_weights import taps
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


@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("kernel, stride, padding", [(4, 4, 0), (3, 2, 1), (5, 1, 2), (2, 5, 1)])
def test_the_taps_of_windows_are_slices(kernel, stride, padding, border):
    n = 97
    count = (n + 2 * padding - kernel) // stride + 1
    for transposed in (False, True):
        length, found = taps(("mean", n, count, kernel, stride, padding, border, False), transposed)
        assert length == (n if transposed else count) and len(found) == kernel
        assert all(type(tap.elements) is slice and type(tap.results) in (slice, type(None)) for tap in found)
    x = symgrad.tensor(np.arange(n) ** 2.0, requires_grad=True)
    y = symgrad.nn.functional.avg_pool1d(x[None], kernel, stride, padding, count_include_pad=border)
    windows = [range(max(i * stride - padding, 0), min(i * stride - padding + kernel, n)) for i in range(count)]
    sizes = [kernel if border else len(window) for window in windows]
    np.testing.assert_allclose(y[0].detach().numpy(), [sum(j**2 for j in window) / size for window, size in zip(windows, sizes)], rtol=1e-15)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [sum(1 / size for window, size in zip(windows, sizes) if j in window) for j in range(n)], rtol=1e-15)


tensor = symgrad.tensor
X, Y = tensor([[0.31, -0.72, 1.13], [1.24, 0.43, -0.58]]), tensor([[0.17, 0.93, 0.41], [0.66, 0.29, 0.84]])
CLASSES, PER_CLASS, NUMBER, ONE = tensor([2, 0]), tensor([0.61, 1.43, 0.87]), tensor(1.7), tensor([1.7])
IMAGE = symgrad.linspace(-1.03, 1.21, 36).reshape(1, 4, 3, 3)
MEAN, VARIANCE = tensor([0.1, -0.2, 0.3, 0.07]), tensor([1.1, 0.7, 1.9, 0.83])

CALLS = {
    **{f"bce with logits, {name}": (lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p), X, Y, w, p)
       for name, w, p in (("numbers", NUMBER, NUMBER), ("one", ONE, ONE), ("rows", PER_CLASS, PER_CLASS), ("mixed", X * X, NUMBER))},
    "bce": (lambda x, t, w: F.binary_cross_entropy(x, t, w), Y, Y.flip(0), PER_CLASS),
    "bce, a number": (F.binary_cross_entropy, Y, Y.flip(1), NUMBER),
    **{f"cross entropy, {r}, {s}": (lambda x, w, r=r, s=s: F.cross_entropy(x, CLASSES, w, reduction=r, label_smoothing=s), X, PER_CLASS)
       for r in ("mean", "sum", "none") for s in (0.0, 0.2)},
    "cross entropy, ignored": (lambda x, w: F.cross_entropy(x, CLASSES, w, ignore_index=2, label_smoothing=0.3), X, PER_CLASS),
    "cross entropy, probabilities": (lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.1), X, Y, PER_CLASS),
    **{f"nll, {r}": (lambda x, w, r=r: F.nll_loss(x, CLASSES, w, reduction=r), X, PER_CLASS) for r in ("mean", "sum", "none")},
    "nll of a vector": (lambda x, w: F.nll_loss(x, tensor(1), w), X[0], PER_CLASS),
    "nll of images": (lambda x, w: F.nll_loss(x, tensor([[[1, 3, 0], [2, 2, 1], [0, 1, 3]]]), w, ignore_index=3), IMAGE, VARIANCE),
    "multi margin": (lambda x, w: F.multi_margin_loss(x, CLASSES, weight=w, margin=2.3), X, PER_CLASS),
    "multilabel soft margin": (lambda x, t, w: F.multilabel_soft_margin_loss(x, t, w), X, Y, PER_CLASS),
    "multilabel soft margin, a number": (lambda x, t, w: F.multilabel_soft_margin_loss(x, t, w), X, Y, NUMBER),
    "gaussian": (F.gaussian_nll_loss, X, Y, Y.flip(0)), "poisson": (F.poisson_nll_loss, X, Y),
    "kl": (lambda x, t: F.kl_div(x, t, reduction="batchmean"), X, Y), "huber": (F.huber_loss, X, Y),
    "smooth l1": (F.smooth_l1_loss, X, Y), "l1": (F.l1_loss, X, Y), "mse": (F.mse_loss, X, Y), "cosine": (F.cosine_similarity, X, Y),
    "distance": (F.pairwise_distance, X, Y), "triplet": (lambda x, y, z: F.triplet_margin_loss(x, y, z, margin=2.7), X, Y, X * Y),
    "cosine embedding": (lambda x, y: F.cosine_embedding_loss(x, y, tensor([1, -1]), margin=-0.9), X, Y),
    "margin ranking": (lambda x, y: F.margin_ranking_loss(x, y, tensor([[1.0], [-1.0]]), margin=2.1), X, Y),
    "linear": (F.linear, X, Y, tensor([0.4, 0.9])), "bilinear": (F.bilinear, X, Y, IMAGE[0, :2], ONE.expand(2)),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (3,), w, b), X, PER_CLASS, Y[0]), "rms norm": (lambda x, w: F.rms_norm(x, (3,), w), X, PER_CLASS),
    "group norm": (lambda x, w, b: F.group_norm(x, 2, w, b), IMAGE, MEAN, VARIANCE),
    "instance norm": (lambda x, w, b: F.instance_norm(x, weight=w, bias=b), IMAGE, MEAN, VARIANCE),
    "batch norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), IMAGE, MEAN, VARIANCE),
    "prelu": (F.prelu, X, NUMBER), "prelu, channels": (F.prelu, X, PER_CLASS), "attention": (F.scaled_dot_product_attention, X, Y, X * Y, Y[:, :2]),
    "attention, one mask": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), X, Y, X * Y, NUMBER),
    "convolution": (F.conv2d, IMAGE, IMAGE[:, :, :2, :2] * 0.7, tensor([0.3])), "embedding": (lambda w: F.embedding(CLASSES, w), IMAGE[0, 0]),
    "bag": (lambda w, p: F.embedding_bag(tensor([[2, 0], [1, 1]]), w, per_sample_weights=p, mode="sum"), IMAGE[0, 0], Y[:, :2]),
    "sampling": (lambda x, g: F.grid_sample(x, g, align_corners=False), IMAGE, (Y - 0.5)[None, :, :2, None].repeat(1, 1, 1, 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_by_every_argument(name):
    call, *xs = CALLS[name]
    outer = tensor(np.random.default_rng(3).uniform(0.5, 1.5, call(*xs).shape))
    f = lambda *xs: (call(*xs) * outer).sum()  # noqa: E731
    found = {
        "grad": func.grad(f, tuple(range(len(xs))))(*xs), "jacfwd": func.jacfwd(f, tuple(range(len(xs))))(*xs),
        "compile": symgrad.compile(func.grad(f, tuple(range(len(xs)))))(*xs), "one at a time": [func.grad(f, i)(*xs) for i in range(len(xs))],
        "vmap": [g[1] for g in func.vmap(func.grad(f, tuple(range(len(xs)))))(*[symgrad.stack([x, x]) for x in xs])],
        "create_graph": symgrad.autograd.grad(f(*(leaves := [x.clone().requires_grad_() for x in xs])), leaves, create_graph=True),
    }
    for i, x in enumerate(xs):
        direction = tensor(np.random.default_rng(i).uniform(-1, 1, x.shape))
        step = 1e-5 * direction
        true = (f(*xs[:i], x + step, *xs[i + 1:]) - f(*xs[:i], x - step, *xs[i + 1:])).item() / 2e-5
        for route, gradients in found.items():
            assert (gradients[i] * direction).sum().item() == pytest.approx(true, rel=2e-8, abs=2e-9), f"{route}, argument {i}"
