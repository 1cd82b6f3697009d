"""Each function of `nn.functional` has right derivatives by every tensor of floats that it takes, also by one without dimensions, or refuses it."""

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.nn import functional as F

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
