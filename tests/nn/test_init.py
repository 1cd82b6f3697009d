"""Initial values: distributions by their bounds, moments and quantiles, and structure."""

import math

import numpy as np
import pytest
import scipy.stats

import symgrad
from symgrad import nn


@pytest.mark.parametrize("fill, low, high, deviation", [
    (lambda t: nn.init.uniform_(t, -2.0, 3.0), -2.0, 3.0, 5 / 12**0.5), (lambda t: nn.init.normal_(t, 1.0, 0.5), -9.0, 9.0, 0.5),
    (lambda t: nn.init.xavier_uniform_(t, 2.0), -2 * 0.1, 2 * 0.1, 2 * (2 / 600) ** 0.5), (nn.init.xavier_normal_, -9.0, 9.0, (2 / 600) ** 0.5),
    (nn.init.kaiming_uniform_, -(6 / 400) ** 0.5, (6 / 400) ** 0.5, (2 / 400) ** 0.5),
    (lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="tanh"), -9.0, 9.0, 5 / 3 / 200**0.5),
    (lambda t: nn.init.kaiming_uniform_(t, a=5**0.5), -1 / 20, 1 / 20, 1 / 20 / 3**0.5)])
def test_initial_weights_lie_in_their_bounds(fill, low, high, deviation):
    symgrad.manual_seed(0)
    weight = nn.Parameter(symgrad.zeros(200, 400))
    assert fill(weight) is weight and weight.requires_grad and weight.is_leaf
    assert low <= weight.min().item() and weight.max().item() < high
    assert weight.std().item() == pytest.approx(deviation, rel=0.01)
    if high < 9:
        assert weight.max().item() == pytest.approx(high, rel=1e-3)


def test_a_seed_repeats_the_initial_weights():
    def drawn():
        symgrad.manual_seed(3)
        return nn.Linear(4, 3).weight.tolist()

    assert drawn() == drawn()
    first, second = (nn.init.normal_(symgrad.zeros(5), generator=symgrad.Generator().manual_seed(1)) for _ in range(2))
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize("a, b", [(-2.0, 2.0), (-0.1, 3.0), (0.5, 0.6), (3.0, 9.0), (-40.0, -38.0), (50.0, math.inf), (-math.inf, -9.0),
                                  (-math.inf, math.inf)])
@pytest.mark.parametrize("mean, std", [(0.0, 1.0), (-3.0, 0.25)])
def test_truncated_normal_numbers_have_their_distribution(a, b, mean, std):
    symgrad.manual_seed(1)
    x = nn.init.trunc_normal_(nn.Parameter(symgrad.empty(40, 50)), mean, std, mean + std * a, mean + std * b).detach().numpy().ravel()
    assert mean + std * a <= x.min() and x.max() <= mean + std * b
    log_of_mass = scipy.stats.norm.logcdf(-a if a > 0 else b)
    z = np.sort((x - mean) / std)
    tail = np.exp(scipy.stats.norm.logcdf(-z if a > 0 else z) - log_of_mass)  # the probability beyond z in the direction of the tail
    other = np.exp(scipy.stats.norm.logcdf(-b if a > 0 else a) - log_of_mass)
    u = (tail - other) / (1 - other)
    assert scipy.stats.kstest(u, "uniform").pvalue > 1e-3


def test_truncated_normal_numbers_repeat_with_a_generator_and_keep_to_bounds_in_every_dtype():
    def drawn(seed, dtype=symgrad.float64):
        return nn.init.trunc_normal_(symgrad.empty(3, 200, dtype=dtype), a=0.1, b=0.3, generator=symgrad.Generator().manual_seed(seed))

    assert drawn(1).tolist() == drawn(1).tolist() != drawn(2).tolist()
    for dtype in (symgrad.float32, symgrad.float16, symgrad.bfloat16):
        x, (low, high) = drawn(1, dtype), symgrad.tensor([0.1, 0.3], dtype=dtype)
        assert x.dtype == dtype and bool((x >= low).all()) and bool((x <= high).all())


def test_truncated_normal_numbers_in_an_interval_of_one_number_are_that_number():
    for mean in (-3.1, 0.1, 0.7, 0.9, 50.3):
        assert nn.init.trunc_normal_(symgrad.empty(3), mean, 0.3, 0.7, 0.7).tolist() == [0.7] * 3


@pytest.mark.parametrize("arguments", [(0.0, 1.0, 2.0, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, math.nan)])
def test_truncated_normal_numbers_need_an_interval_and_a_deviation(arguments):
    x = symgrad.ones(2)
    with pytest.raises(ValueError, match="^trunc_normal_: "):
        nn.init.trunc_normal_(x, *arguments)
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5), (3, 2, 4), (12, 2, 2)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
def test_orthogonal_rows_or_columns(shape, dtype):
    x = nn.init.orthogonal_(nn.Parameter(symgrad.empty(shape, dtype=getattr(symgrad, dtype))), gain=3.0)
    m = x.detach().numpy().astype("c16").reshape(shape[0], -1)
    m = m if m.shape[0] <= m.shape[1] else m.T
    assert x.dtype == getattr(symgrad, dtype) and x.requires_grad
    assert np.abs(m @ m.conj().T / 9 - np.eye(len(m))).max() < {"float32": 1e-6, "float16": 1e-2}.get(dtype, 1e-14)


def test_orthogonal_matrices_are_uniform():
    symgrad.manual_seed(0)
    corners = [nn.init.orthogonal_(symgrad.empty(2, 2))[0, 0].item() for _ in range(400)]
    assert scipy.stats.kstest(np.arccos(corners) / np.pi, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("rows, columns, sparsity", [(10, 4, 0.25), (7, 3, 0.5), (5, 2, 0.0), (5, 2, 1.0)])
def test_sparse_columns(rows, columns, sparsity):
    first, second = (nn.init.sparse_(symgrad.empty(rows, columns), sparsity, std=2.0, generator=symgrad.Generator().manual_seed(4)) for _ in range(2))
    assert ((first == 0).sum(0) == math.ceil(sparsity * rows)).all() and first.tolist() == second.tolist()


def test_which_elements_of_a_sparse_column_are_zero_is_uniform():
    symgrad.manual_seed(0)
    zeros = (nn.init.sparse_(symgrad.empty(6, 3000), 0.5) == 0).double().mean(1)
    assert zeros.tolist() == pytest.approx([0.5] * 6, abs=0.05)
