"""Losses and their modules, beside torch's in the same process: values, gradients of two orders, and what is refused."""

import warnings

import pytest

import symgrad

torch = pytest.importorskip("torch")

X = [[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]]
Y = [[0.25, 0.75, 0.5], [1.5, 0.125, 2.25]]
SIGNS = [[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]]
LOSSES = [
    "smooth_l1_loss(x, y, {})", "smooth_l1_loss(x, y, beta=0.5, {})", "smooth_l1_loss(x, y, beta=0.0, {})", "huber_loss(x, y, {})",
    "huber_loss(x, y, delta=0.7, {})", "huber_loss(x, y, weight=y, {})", "l1_loss(x, y, {})", "mse_loss(x, y, {})", "kl_div(x, y, {})",
    "kl_div(x, y, log_target=True, {})", "kl_div(x, zero, {})", "poisson_nll_loss(x, y, {})", "poisson_nll_loss(x, y, full=True, {})",
    "poisson_nll_loss(x.abs(), y, log_input=False, full=True, {})", "gaussian_nll_loss(x, y, y, {})",
    "gaussian_nll_loss(x, y, y[:, :1], full=True, {})", "gaussian_nll_loss(x, y, y[:, 0], {})", "gaussian_nll_loss(x, y, 0.5, {})",
    "gaussian_nll_loss(x, y, zero, {})", "hinge_embedding_loss(x, s, {})", "hinge_embedding_loss(x, s, margin=0.3, {})",
    "margin_ranking_loss(x, y, s, {})", "margin_ranking_loss(x, y, s, margin=0.2, {})", "soft_margin_loss(x, s, {})",
    "multi_margin_loss(x, k, {})", "multi_margin_loss(x, k, p=2, margin=0.5, weight=y[0], {})", "multi_margin_loss(x[0], k[0], {})",
    "multilabel_margin_loss(x, m, {})", "multilabel_margin_loss(x[0], m[0], {})", "multilabel_soft_margin_loss(x, b, {})",
    "multilabel_soft_margin_loss(x, b, weight=y[0], {})", "triplet_margin_loss(x, y, s, {})",
    "triplet_margin_loss(x, y, s, p=1.0, swap=True, margin=0.5, {})", "triplet_margin_with_distance_loss(x, y, s, {})",
    "cosine_embedding_loss(x, y, s[:, 0], {})", "cosine_embedding_loss(x, y, s[:, 0], margin=0.1, {})",
    "cosine_embedding_loss(x[0], y[0], s[0, 0], {})", "binary_cross_entropy_with_logits(x, b, pos_weight=y[0], {})", "nll_loss(x, k, {})",
    "cross_entropy(x, k, label_smoothing=0.1, {})", "cross_entropy(x, y, weight=y[0], {})",
]
REFUSED = [
    "smooth_l1_loss(x, y, beta=-1.0)", "smooth_l1_loss(x, y, reduction='no')", "huber_loss(x, y, delta=0.0)", "gaussian_nll_loss(x, y, -y)",
    "gaussian_nll_loss(x, y, y[:, :2])", "gaussian_nll_loss(x, y, y, reduction='no')", "margin_ranking_loss(x, y, s[0])",
    "multi_margin_loss(x, k, p=3)", "multi_margin_loss(x, k + 2)", "multi_margin_loss(x, k[:1])", "multilabel_margin_loss(x, m[:1])",
    "multilabel_margin_loss(x, m + 3)", "triplet_margin_loss(x, y, s[0])", "triplet_margin_loss(x, y, s, margin=0.0)",
    "cosine_embedding_loss(x, y, s)", "kl_div(x, y, reduction='no')",
]
CASES = [(text, reduction) for text in LOSSES for reduction in ("mean", "sum", "none", *["batchmean"] * ("kl_div" in text))]
MODULES = {
    "SmoothL1Loss(beta=0.5)": "x, y", "HuberLoss(delta=0.5)": "x, y", "KLDivLoss(reduction='batchmean')": "x, y", "PoissonNLLLoss(full=True)": "x, y",
    "GaussianNLLLoss(full=True)": "x, y, y", "HingeEmbeddingLoss(0.5)": "x, s", "MarginRankingLoss(0.2)": "x, y, s", "SoftMarginLoss()": "x, s",
    "MultiMarginLoss(p=2)": "x, k", "MultiLabelMarginLoss()": "x, m", "MultiLabelSoftMarginLoss()": "x, b", "TripletMarginLoss(swap=True)": "x, y, s",
    "TripletMarginWithDistanceLoss(margin=0.5)": "x, y, s", "CosineEmbeddingLoss(0.1)": "x, y, s[:, 0]", "SmoothL1Loss(reduction='sum')": "x, y",
    "SmoothL1Loss(size_average=False)": "x, y", "KLDivLoss(reduce=False)": "x, y",
}


def evaluated(m, text):
    x = m.tensor(X, dtype=m.float64, requires_grad=True)
    names = {"x": x, "y": m.tensor(Y, dtype=m.float64), "s": m.tensor(SIGNS, dtype=m.float64), "k": m.tensor([2, 0]),
             "m": m.tensor([[2, 0, -1], [1, -1, 0]]), "b": m.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]], dtype=m.float64),
             "zero": m.zeros(2, 3, dtype=m.float64), **vars(m.nn.functional), "nn": m.nn}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x, eval(text, names)


def close(a, b):
    torch.testing.assert_close(torch.tensor(a.tolist(), dtype=torch.float64), b.detach(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("text, reduction", CASES)
def test_losses(text, reduction):
    (x, y), (u, v) = (evaluated(m, text.format(f"reduction='{reduction}'")) for m in (symgrad, torch))
    assert y.shape == tuple(v.shape)
    close(y, v)
    (g,), (h,) = symgrad.autograd.grad(y.sum(), x, create_graph=True), torch.autograd.grad(v.sum(), u, create_graph=True)
    close(g, h)
    if g.requires_grad:
        (ours,) = symgrad.autograd.grad((g * g).sum(), x, materialize_grads=True)
        try:
            (theirs,) = torch.autograd.grad((h * h).sum(), u, materialize_grads=True) if h.requires_grad else (torch.zeros_like(u),)
        except RuntimeError as error:
            assert "not implemented" in str(error)  # torch has no such derivative
        else:
            close(ours, theirs)


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    errors = []
    for m in (symgrad, torch):
        with pytest.raises((RuntimeError, ValueError)) as caught:
            evaluated(m, text)
        errors.append(caught.type)
    assert errors[0] is errors[1]


@pytest.mark.parametrize("text", MODULES)
def test_modules(text):
    values = [evaluated(m, f"nn.{text}({MODULES[text]})")[1] for m in (symgrad, torch)]
    close(*values)
    modules = [evaluated(m, f"nn.{text}")[1] for m in (symgrad, torch)]
    assert repr(modules[0]) == repr(modules[1]) and modules[0].reduction == modules[1].reduction
    assert list(modules[0].state_dict()) == list(modules[1].state_dict())


def test_margins_of_an_empty_batch():
    x = symgrad.zeros(0, 3, requires_grad=True)
    for function, target in ((symgrad.nn.functional.multi_margin_loss, symgrad.zeros(0, dtype=symgrad.int64)),
                             (symgrad.nn.functional.multilabel_margin_loss, symgrad.zeros(0, 3, dtype=symgrad.int64))):
        assert function(x, target, reduction="none").shape == (0,)
        total = function(x, target, reduction="sum")
        assert total.item() == 0 and symgrad.autograd.grad(total, x)[0].shape == (0, 3)
