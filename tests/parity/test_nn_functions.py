"""Distances, borders, normalisations, embeddings, attention and dropout beside torch: value, dtype, two gradients, warnings, and what is refused."""

import math
import warnings

import numpy as np
import pytest
import torch

import symgrad

pytestmark = pytest.mark.usefixtures("double_precision")

DATA = np.random.default_rng(0).normal(size=(2, 6, 4, 4))
CASES = [
    "F.pad(x, (1, 2))", "F.pad(x, (1, 2, 0, 3), value=2.5)", "F.pad(x, (-1, 2, 1, -1))", "F.pad(x, (1, 2, 2, 1), 'reflect')",
    "F.pad(x, (1, 2, 2, 1), 'replicate')", "F.pad(x, (1, 2, 2, 1), 'circular')", "F.pad(x, (-1, 2, 2, -1), 'circular')",
    "F.pad(x, (-1, 2, 2, -1), 'reflect')", "F.pad(x, (-1, 2, 2, -1), 'replicate')", "F.pad(x, (9, 2), 'reflect')",
    "F.pad(x[0], (1, 1), 'reflect')", "F.pad(x[0, 0, 0], (1, 1), 'reflect')", "F.pad(x, (1, ), 'constant')", "F.pad(x, (1, ), 'reflect')",
    "F.pad(x, (1, 1), 'foo')", "F.pad(x, (1, 1, 1, 1), 'reflect', value=3.)", "F.pad(x, (9, 9, 1, 1), 'circular')",
    "F.pad(x, (9, 9, 1, 1), 'reflect')", "F.pad(x, [1]*10)", "F.pad(x, (1, 1, 1, 1, 1, 1), 'reflect')",
    "F.pad(x[None], (1, 1, 1, 1, 1, 1), 'reflect')", "m.constant_pad_nd(x, (1, 2), 3.)", "m.constant_pad_nd(x, ())",
    "F.pixel_shuffle(x[:, :4], 2)", "F.pixel_unshuffle(x, 2)", "F.pixel_shuffle(x, 2)", "F.pixel_unshuffle(x, 3)",
    "F.pixel_shuffle(x[0, 0], 2)", "F.pixel_shuffle(x, 0)", "F.channel_shuffle(x, 3)", "F.channel_shuffle(x, 4)", "F.channel_shuffle(x, 0)",
    "F.channel_shuffle(x[0, 0], 3)", "m.native_channel_shuffle(x, 2)", "F.unfold(x, 2)",
    "F.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2))", "F.unfold(x[0], 3, padding=1)", "F.unfold(x, 7)",
    "F.unfold(x, (1, 2, 3))", "F.unfold(x, 0)", "F.unfold(x, 2, padding=-1)", "F.fold(x.reshape(2, 24, 4)[..., :4], (3, 3), 2)",
    "F.fold(x.reshape(2, 12, 8)[..., :4], (4, 4), (2, 2), stride=2)",
    "F.fold(x.reshape(2, 8, 12)[..., :9], (4, 4), (2, 2), padding=1, stride=2)", "F.fold(x.reshape(2, 24, 4), (4, 4), 2)",
    "F.fold(x, (4, 4), 2)", "F.fold(x[:, :, :3, 0].reshape(1, 12, 3).repeat(1, 1, 4), (4, 5), (2, 2), 8)", "F.pad(x[:, :0], (1, 1, 1, 1), 'reflect')",
    "F.pad(x[:, :, 0, :0], (1, 1), 'replicate')", "F.pad(x[:0, :, 0], (1, 1), 'replicate')",
    "m.norm(m.tensor([math.nan, 0., 1.], dtype=m.float64), -0.5)", "F.fold(x.reshape(2, 32, 3), (4, 4), 3)",
    "F.layer_norm(x, (4, ))", "F.layer_norm(x, (4, 4), x[0, 0], x[0, 1])",
    "F.layer_norm(x, (3, ))", "F.layer_norm(x, (4, ), x[0])", "F.layer_norm(x, ())", "m.layer_norm(x, (4, ))", "F.rms_norm(x, (4, ))",
    "F.rms_norm(x, (4, 4), x[1, 1], 1e-3)", "F.rms_norm(x, (3, ))", "F.group_norm(x, 3)", "F.group_norm(x, 2, x[0, :, 0, 0], x[0, :, 1, 0])",
    "F.group_norm(x, 4)", "F.group_norm(x, 2, x[0, 0, 0])", "F.group_norm(x[0, 0, 0], 2)", "F.batch_norm(x, None, None, training=True)",
    "F.batch_norm(x, x[0, :, 0, 0].detach(), x[0, :, 0, 0].detach()**2, x[0, :, 1, 0], x[1, :, 0, 0])", "F.batch_norm(x, None, None)",
    "F.batch_norm(x[:1, :, 0, 0], None, None, training=True)", "F.batch_norm(x, x[0, 0, 0], x[0, 0, 0])", "F.instance_norm(x)",
    "F.instance_norm(x, weight=x[0, :, 0, 0], bias=x[0, :, 1, 0])", "F.instance_norm(x, use_input_stats=False)",
    "F.instance_norm(x[..., :1, :1])", "F.local_response_norm(x, 3)", "F.local_response_norm(x, 2, 0.5, 0.6, 0.7)",
    "F.local_response_norm(x[0, 0], 2)", "m.native_layer_norm(x, (4, ), None, None, 1e-5)",
    "m.native_group_norm(x, None, None, 2, 6, 16, 3, 1e-5)", "m.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)",
    "m.norm_except_dim(x, 2, 0)", "m.norm_except_dim(x, 2, 3)", "m.norm_except_dim(x, 2, 1)", "m.norm_except_dim(x, 3, -1)",
    "m.cdist(x[0], x[1])", "m.cdist(x[0], x[1], 1.0)", "m.cdist(x[0], x[1], 3.5)", "m.cdist(x[0], x[1], float('inf'))",
    "m.cdist(x[0], x[1], 0.0)", "m.cdist(x[0], x[1], 0.5)", "m.cdist(x, x[:1])", "m.cdist(x[0], x[0])", "m.cdist(x[0], x[0], 1.)",
    "m.cdist(x[0], x[0], 0.5)", "m.cdist(x[0], x[0], 1.5)", "m.cdist(x[0], x[0], float('inf'))", "m.cdist(x[0], x[0, 0, 0])",
    "m.cdist(x[0], x[..., :3])", "m.cdist(x, x, -1.)", "m.cdist(x, x, 2., 'foo')", "m.cdist(x.long(), x.long())",
    "m.cdist(x[..., :0], x[..., :0])", "m.cdist(x[:0], x[:1])", "m.pdist(x[0, 0])", "m.pdist(x[0, 0], 1.)", "m.pdist(x[0, 0], 0.)",
    "m.pdist(x[0, 0], float('inf'))", "m.pdist(x[0, 0], 3.)", "m.pdist(x[0, 0], 0.5)", "m.pdist(x[0])", "m.pdist(x[0, 0], -1.)",
    "m.pdist(x[0, 0].long())", "F.pdist(x[0, 0, :1])", "F.pdist(x[0, 0, :, :0])", "m.cosine_similarity(x[0], x[1])",
    "m.cosine_similarity(x[0], x[1], dim=-1)", "m.cosine_similarity(x[0].long(), x[1].long())",
    "m.pairwise_distance(x[0], x[1], 1.0, keepdim=True)", "F.bilinear(x[0, 0], x[0, 1], x[1])",
    "F.bilinear(x[0, 0], x[0, 1], x[1], x[0, :, 0, 0])", "F.bilinear(x[0, 0], x[0, 1, 0], x[1])", "F.bilinear(x[0, 0], x[0, 1, :, :3], x[1])",
    "F.bilinear(x[0, 0], x[0, 1, :2], x[1])", "m.bilinear(x[0], x[1], x[1], x[0, :2, 0, 0])", "F.embedding(k, x[0, 0])",
    "F.embedding(k, x[0, 0], padding_idx=1)", "F.embedding(k+3, x[0, 0])", "F.embedding(x[0, 0], x[0, 0])",
    "F.embedding(k, x[0, 0], padding_idx=7)", "F.embedding(k, x[0, 0], padding_idx=-3)", "F.embedding(k, x[0])", "m.embedding(x[0, 0], k)",
    "m.embedding_renorm_(x[0, 0].detach().clone(), k, 0.5, 2.0)", "F.embedding(k, x[0, 0].detach().clone(), max_norm=0.7)",
    "F.scaled_dot_product_attention(x, x, x)", "F.scaled_dot_product_attention(x, x.flip(0), x*2, is_causal=True)",
    "F.scaled_dot_product_attention(x, x, x, x[0, 0])", "F.scaled_dot_product_attention(x, x, x, x[0, 0]>0.3)",
    "F.scaled_dot_product_attention(x, x, x, x[0, 0]>9)", "F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True, scale=0.3)",
    "F.scaled_dot_product_attention(x, x, x, x[0, 0], is_causal=True)", "F.scaled_dot_product_attention(x, x.float(), x)",
    "F.scaled_dot_product_attention(x, x, x, x[0, 0].float())", "F.scaled_dot_product_attention(*[x.half() * 0] * 3, x[0, 0].detach().float())",
    "F.scaled_dot_product_attention(x[0, 0, 0], x, x)", "m.kl_div(x, x.exp())", "m.kl_div(x, x, 2, log_target=True)",
    "m.binary_cross_entropy_with_logits(x, x.sigmoid(), None, None, 0)", "m.cosine_embedding_loss(x[0, 0], x[0, 1], m.tensor([1, -1, 1, -1]))",
    "m.hinge_embedding_loss(x[0, 0], x[0, 1].sign())", "m.margin_ranking_loss(x[0], x[1], x[1].sign())",
    "m.poisson_nll_loss(x, x.abs(), True, True, 1e-8, 1)", "m.triplet_margin_loss(x[0], x[1], x[1]+1)", "m.celu(x, 0.5)", "m.selu(x)",
    "m.threshold(x, 0.1, 20.)", "m.rrelu(x)", "m.celu_(x.clone())", "m.threshold_(x.clone(), 0.2, 1.)", "m.selu_(x.clone())",
    "m.rrelu_(x.clone())", "F.dropout(x, 0.3, False)", "F.dropout(x, 1.0)", "F.dropout(x, 1.5)", "F.dropout(x, 0.0)",
    "F.alpha_dropout(x, 1.0, True)", "F.dropout1d(x)", "F.dropout1d(x[0, 0], 1.0)", "F.dropout2d(x, 1.0)", "F.dropout3d(x, 1.0)",
    "F.dropout2d(x[0], 1.)", "m.dropout(x, 1.0, True)", "m.native_dropout(x, 1.0, True)", "m.feature_dropout(x, 1.0, True)",
    "m.feature_alpha_dropout(x, 1.0, True)", "m.feature_dropout(x[0, 0, 0], 0.5, True)",
    "F.linear_cross_entropy(x[0, 0], x[0, :3].reshape(12, 4), k[0])", "m.norm(x, 0.5, 1)",
    "m.norm(x, 'nuc', (2, 3))", "m.norm(x.to(m.complex128) * (1 + 2j), 3, 1)",
    "m.norm(x, 2, dtype=m.float32)",
    "F.embedding_bag(k, x[0, 0])", "F.embedding_bag(k, x[0, 0], mode='sum', per_sample_weights=x[1, :2, 0])",
    "F.embedding_bag(k, x[0, 0], mode='max')",
    "F.embedding_bag(k[0], x[0, 0], m.tensor([0, 1, 1, 3]))", "F.embedding_bag(k[0], x[0, 0], m.tensor([0, 3, 4]), include_last_offset=True)",
    "F.embedding_bag(k[0], x[0, 0], m.tensor([0, 1, 1]), mode='max')", "F.embedding_bag(k, x[0, 0], padding_idx=1)",
    "F.embedding_bag(k, x[0, 0], k[0])",
    "F.embedding_bag(k[0], x[0, 0])", "F.embedding_bag(k, x[0, 0], mode='no')", "F.embedding_bag(k[None], x[0, 0])",
    "F.embedding_bag(k[0], x[0, 0], m.tensor([1, 2]))", "F.embedding_bag(k, x[0, 0], per_sample_weights=x[1, :2, 0])",
    "F.embedding_bag(k + 3, x[0, 0])",
    "F.embedding_bag(k, x[0, 0].detach().clone(), max_norm=0.7, mode='sum')",
]
# Second gradients that torch does not have: the same function in other words
SAME = {
    "m.cdist(x[0], x[1], 2.0)": "(x[0].unsqueeze(-2) - x[1].unsqueeze(-3)).square().sum(-1).sqrt()",
    "m.cdist(x[0], x[1], 3.5)": "((x[0].unsqueeze(-2) - x[1].unsqueeze(-3)).abs() ** 3.5).sum(-1) ** (1 / 3.5)",
    "m.pdist(x[0, 0], 0.5)": "((x[0, 0][[0, 0, 0, 1, 1, 2]] - x[0, 0][[1, 2, 3, 2, 3, 3]]).abs() ** 0.5).sum(-1) ** 2",
    "F.scaled_dot_product_attention(x, x.flip(0), x * 2)": "(x @ x.flip(0).mT / 2).softmax(-1) @ (x * 2)",
    "F.scaled_dot_product_attention(x, x, x, m.eye(4) < 0.5)": "((x @ x.mT / 2).masked_fill(m.eye(4) > 0.5, -math.inf)).softmax(-1) @ x",
}


def outcome(m, text):
    x = m.tensor(DATA.tolist(), dtype=m.float64, requires_grad=True)
    k = m.tensor([[0, 3, 1, 3], [1, 1, 2, 0]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            y = eval(text, {"m": m, "F": m.nn.functional, "x": x, "k": k, "math": math})
        except Exception as error:
            return (type(error),)
    ys = y if isinstance(y, tuple) else (y,)
    told = [w.category for w in caught]
    out = [told, [str(each.dtype) for each in ys], [tuple(each.shape) for each in ys], *(each.detach() for each in ys)]
    if ys[0].requires_grad:
        (g,) = m.autograd.grad((ys[0] * ys[0].detach().cos()).sum() + (ys[0] ** 2).sum(), x, create_graph=True)
        out.append(g.detach())
        if g.requires_grad:
            try:
                (h,) = m.autograd.grad((g * g).sum(), x, materialize_grads=True)
            except RuntimeError as error:
                assert "not implemented" in str(error)  # torch has no such derivative
            else:
                out.append(h)
    return out


def agree(ours, theirs):
    assert ours[:3] == theirs[:3]
    for a, b in zip(ours[3:], theirs[3:]):
        np.testing.assert_allclose(np.array(a.tolist()), np.array(b.tolist()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("text", CASES)
def test_beside_torch(text):
    try:
        theirs = outcome(torch, text)
    except RuntimeError as error:
        assert "not implemented" in str(error)  # not even a first derivative
        return
    ours = outcome(symgrad, text)
    if isinstance(theirs, tuple):
        assert ours[0] is theirs[0]
        return
    agree(ours, theirs)


@pytest.mark.parametrize("text", SAME)
def test_second_gradients_that_torch_has_not(text):
    ours, theirs = outcome(symgrad, text), outcome(torch, SAME[text])
    assert len(ours) == len(theirs) == 6
    agree(ours, theirs)


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


def test_frequencies_scale_the_gradient_of_an_embedding():
    found = []
    for m in (symgrad, torch):
        weight = m.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=m.float64, requires_grad=True)
        y = m.nn.functional.embedding(m.tensor([0, 1, 1]), weight, scale_grad_by_freq=True)
        found.append(m.autograd.grad((y * y).sum(), weight)[0].tolist())
    assert found[0] == found[1] == [[2.0, 4.0], [6.0, 8.0]]


@pytest.mark.parametrize("call", [
    "F.batch_norm(x, s, v, w, w, True)", "F.batch_norm(x, s, v, w, w)", "F.layer_norm(x, (6,), w, w)", "F.group_norm(x, 2, w, w)",
    "F.instance_norm(x[..., None].expand(4, 6, 2) * m.tensor([1, 2]), None, None, w, w)", "F.rms_norm(x, (6,), w)", "m.layer_norm(x, (6,))",
])
@pytest.mark.parametrize("kind", ["half", "bfloat16"])
def test_normalisations_of_two_bytes_take_parameters_of_four(call, kind):
    found = []
    for m in (symgrad, torch):
        x, w = m.tensor(DATA[0].reshape(-1)[:24].tolist()).reshape(4, 6), m.tensor(DATA[1, 0, 0].tolist() + [0.5, -0.25], dtype=m.float32)
        x = getattr(x, kind)().requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = eval(call, {"m": m, "F": m.nn.functional, "x": x, "w": w, "s": w.detach().clone(), "v": (w * w).detach()})
        found += [y.dtype, y, m.autograd.grad(y.float().sum(), x)[0].dtype]
    assert str(found[0]) == str(found[3]) == str(found[2]) == str(found[5])
    unit = torch.finfo(found[3]).eps
    np.testing.assert_allclose(found[1].tolist(), found[4].tolist(), rtol=2 * unit, atol=2 * unit)


def test_running_statistics_move_as_in_torch():
    found = []
    for m in (symgrad, torch):
        x = m.tensor(DATA.tolist(), dtype=m.float64)
        for norm in (m.nn.functional.batch_norm, m.nn.functional.instance_norm):
            mean, var = m.zeros(6, dtype=m.float64), m.ones(6, dtype=m.float64)
            norm(x, mean, var, None, None, True, 0.3)
            found.append([mean.tolist(), var.tolist()])
    np.testing.assert_allclose(found[:2], found[2:], rtol=1e-12)


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
