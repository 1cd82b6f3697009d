"""Modules beyond what the tables of modules beside PyTorch's cover."""

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
    with pytest.raises(RuntimeError, match='Unexpected running stats buffer.*"running_mean" and "running_var" for InstanceNorm1d'):
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
