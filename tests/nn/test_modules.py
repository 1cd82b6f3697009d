"""Modules beyond what the tables of modules beside PyTorch's cover."""

import itertools

import pytest

import symgrad
from symgrad import nn


@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_both_norms_over_neighbouring_channels_agree_for_odd_sizes(size):
    x = symgrad.randn(2, 6, 2, 2, requires_grad=True)
    found = [nn.CrossMapLRN2d(size, 0.5, 0.6, 2.0)(x), nn.LocalResponseNorm(size, 0.5, 0.6, 2.0)(x)]
    assert symgrad.allclose(*found) and symgrad.allclose(*(symgrad.autograd.grad(y.sum(), x)[0] for y in found))


def test_states_of_earlier_versions_load():
    state = nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"], state._metadata
    layer = nn.BatchNorm1d(2)
    layer(symgrad.randn(3, 2))
    assert str(layer.load_state_dict(state)) == "<All keys matched successfully>" and layer.num_batches_tracked == 1
    state._metadata = {"": {"version": 2}}
    with pytest.raises(RuntimeError, match='Missing key.*"num_batches_tracked"'):
        layer.load_state_dict(state)
    del state._metadata
    with pytest.raises(RuntimeError, match="InstanceNorm1d .*running_mean and running_var"):
        nn.InstanceNorm1d(2, affine=True).load_state_dict(state)


def test_the_weight_of_an_embedding_is_the_matrix_it_was_made_from():
    rows = symgrad.randn(4, 2)
    frozen, trained = nn.Embedding.from_pretrained(rows), nn.EmbeddingBag.from_pretrained(rows, freeze=False)
    assert not frozen.weight.requires_grad and trained.weight.requires_grad and frozen.weight.data_ptr() == rows.data_ptr()


def test_dropout_keeps_the_mean_and_drops_whole_channels():
    symgrad.manual_seed(0)
    x = symgrad.ones(40, 50, 4)
    y, z = nn.Dropout(0.25)(x), nn.Dropout1d(0.25)(x)
    assert set(y.unique().tolist()) == set(z.unique().tolist()) == {0.0, 4 / 3} and abs(y.mean() - 1) < 0.05 and abs(z.mean() - 1) < 0.1
    assert (z == z[..., :1]).all() and not (y == y[..., :1]).all()
    assert nn.Dropout(0.5, inplace=True)(x) is x and (x == 0).any()


def alignments(labels, steps):
    """All sequences of labels and blanks (0) that become the labels where repetitions are one and blanks vanish."""
    for path in itertools.product(range(3), repeat=steps):
        if [label for label, _ in itertools.groupby(path) if label] == labels:
            yield path


@pytest.mark.parametrize("labels", [[], [1], [1, 2], [2, 2], [1, 2, 1]])
def test_an_alignment_loss_sums_over_all_alignments(labels):
    """The definition itself, with derivatives of two orders by the log-probabilities."""
    logs = symgrad.randn(4, 1, 3, generator=symgrad.Generator().manual_seed(2)).requires_grad_()
    paths = list(alignments(labels, 4))

    def defined(x):
        return -symgrad.stack([sum(x[t, 0, label] for t, label in enumerate(path)) for path in paths]).logsumexp(0)

    def ours(x):
        return nn.functional.ctc_loss(x, symgrad.tensor([labels], dtype=symgrad.int64), (4,), (len(labels),), reduction="sum")

    for order in (lambda f: f, symgrad.func.grad, symgrad.func.hessian):
        assert symgrad.allclose(order(ours)(logs), order(defined)(logs), rtol=1e-9, atol=1e-9)


def test_a_target_without_an_alignment_has_no_derivative():
    logs = symgrad.randn(2, 1, 3, requires_grad=True)
    for zero, value in ((False, float("inf")), (True, 0.0)):
        loss = nn.CTCLoss(zero_infinity=zero, reduction="sum")(logs, symgrad.tensor([[1, 1]]), (2,), (2,))
        assert loss == value and (symgrad.autograd.grad(loss, logs)[0] == 0).all()
    with pytest.raises(RuntimeError, match="targets must be labels from 0 to 2"):
        nn.CTCLoss()(logs, symgrad.tensor([[3]]), (2,), (1,))
    impossible = logs.detach().clone()
    impossible[:, :, 1] = -float("inf")
    assert nn.CTCLoss()(impossible, symgrad.tensor([[1]]), (2,), (1,)) == float("inf")


def test_an_adaptive_softmax_is_a_softmax_over_all_classes():
    layer, x = nn.AdaptiveLogSoftmaxWithLoss(4, 9, [2, 5], div_value=2.0), symgrad.randn(9, 4)
    logs = layer.log_prob(x)
    assert symgrad.allclose(logs.exp().sum(1), symgrad.ones(9)) and symgrad.allclose(layer(x, symgrad.arange(9)).output, logs.diagonal())
    assert (layer.predict(x)[:, None] == symgrad.arange(9)).any(1).all()
    head = layer.head(x).argmax(1)
    assert (layer.predict(x) == symgrad.where(head < 2, head, logs.argmax(1))).all()


def test_batch_normalisation_is_differentiable_by_the_statistics_that_it_is_given():
    def f(mean, var):
        return nn.functional.batch_norm(symgrad.tensor([[1.0, -2.0], [0.5, 3.0]]), mean, var).pow(3).sum()

    statistics = symgrad.tensor([0.25, -1.0], requires_grad=True), symgrad.tensor([0.5, 2.0], requires_grad=True)
    assert symgrad.autograd.gradcheck(f, statistics, check_forward_ad=True) and symgrad.autograd.gradgradcheck(f, statistics)


@pytest.mark.parametrize("layer, rows", [(nn.ConvTranspose1d(2, 5, 3), 5), (nn.Conv1d(2, 5, 3), 5), (nn.Linear(2, 4), 4)])
def test_spectral_norms_are_over_the_outputs(layer, rows):
    assert len(nn.utils.parametrizations.spectral_norm(layer).parametrizations.weight[0]._u) == rows


def test_attributes_of_subclasses_do_not_change_what_modules_of_the_table_compute():
    class Named(nn.ReLU):
        def __init__(self):
            super().__init__()
            self.names = self.called = self.shown = self.function = 1

    assert Named()(symgrad.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert repr(Named()) == "Named()"
