"""The kernels of ops for many numbers give what the rules of the ops give, to some roundings, also where they have to leave the call to the rule."""

import numpy as np
import pytest

import symgrad
from symgrad.carriers import numeric
from symgrad.carriers.kernels import KERNELS
from symgrad.engine import kernels
from symgrad.engine.traced import traced
from symgrad.ops.reduction import recurrence

N = 5000
BESIDE, POWERS = (symgrad.tensor(np.random.default_rng(0).uniform(low, 3, N)) for low in (-3, 0.1))
CALLS = {  # the public calls in which an op with a kernel is reached
    "exp2": symgrad.exp2, "atan": symgrad.atan, "asinh": symgrad.asinh, "pow": lambda x: symgrad.pow(x, BESIDE),
    "pow by the exponent": lambda x: symgrad.pow(POWERS, x),
    "pow by a number": lambda x: symgrad.pow(x, 2) + symgrad.pow(x, 3.5) + symgrad.pow(x, -1),
    "clamp_number": lambda x: symgrad.clamp(x, -1.0, 0.0),
    "clamp from 0": lambda x: symgrad.nn.functional.relu6(x), "with_numbers": symgrad.nan_to_num, "ignoring NaN": lambda x: symgrad.nansum(x),
    "tanhshrink_of_real": symgrad.nn.functional.tanhshrink, "maximum": lambda x: symgrad.maximum(x, x.detach().flip(0)),
    "minimum": lambda x: symgrad.minimum(BESIDE, x), "var": symgrad.var, "std": symgrad.std, "logsumexp": lambda x: symgrad.logsumexp(x, 0),
    "softmax": lambda x: symgrad.softmax(x, 0), "log_softmax": lambda x: symgrad.log_softmax(x, 0),
    "log_softmax of rows": lambda x: symgrad.log_softmax(x.reshape(500, 10), 1),
    "standardized": lambda x: symgrad.sin(symgrad.nn.functional.layer_norm(x.reshape(200, 25), (25,), POWERS[:25], BESIDE[:25])),
    "standardized in groups": lambda x: symgrad.sin(symgrad.nn.functional.group_norm(x.reshape(5, 10, 100), 5, POWERS[:10], BESIDE[:10])),
    "standardized over a batch": lambda x: symgrad.sin(symgrad.nn.functional.batch_norm(x.reshape(10, 5, 100), None, None, POWERS[:5], None, True)),
    "log_path_sums": lambda x: traced.log_path_sums(symgrad.sigmoid(x).reshape(4, 250, 5), POWERS[:1250].reshape(250, 5), -1e30),
    "amax": lambda x: symgrad.amax(x, 0), "amin": lambda x: symgrad.amin(x, 0),
    "max_of_all": symgrad.max, "min_of_all": symgrad.min, "median_of_all": symgrad.median, "nanmedian_of_all": symgrad.nanmedian,
}
RNG = np.random.default_rng(1)
PLAIN = RNG.uniform(-3, 3, N)
POSITIVE = RNG.uniform(0.1, 3, N)
INPUTS = {
    "plain": PLAIN, "positive": POSITIVE, "with NaN": np.where(np.arange(N) == 7, np.nan, PLAIN),
    "with infinities": np.where(np.arange(N) % 1000 == 7, np.inf, np.where(np.arange(N) % 1000 == 8, -np.inf, PLAIN)),
    "huge": PLAIN * 5e307, "tiny": POSITIVE * 1e-308, "wide": PLAIN * 300, "equal": np.full(N, 0.1), "zeros": np.zeros(N),
    "ties": np.round(PLAIN), "far from 0": 1e9 + PLAIN, "far apart": np.where(np.arange(N) == 7, 1e3, PLAIN),
}


def test_every_kernel_is_reached():
    assert KERNELS.keys() <= CALLS.keys()


@pytest.mark.sampled(116)
@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("name", CALLS)
def test_kernels_agree_with_rules(name, given, monkeypatch):
    found = []
    cotangent = None
    for many in (4096, 10**9):
        monkeypatch.setattr(kernels, "MANY", many)
        monkeypatch.setattr(kernels, "FEW", many)
        x = symgrad.tensor(INPUTS[given], requires_grad=True)
        with np.errstate(all="ignore"):
            y = CALLS[name](x)
            cotangent = np.random.default_rng(2).uniform(0.5, 2, y.shape) if cotangent is None else cotangent
            y.backward(symgrad.tensor(cotangent))
        found.append((y.detach().numpy(), x.grad.numpy()))
    for with_kernel, by_rule in zip(*found):
        np.testing.assert_array_equal(np.isnan(with_kernel), np.isnan(by_rule))
        ordinary = ~np.isnan(by_rule)
        a, b = with_kernel[ordinary], by_rule[ordinary]
        np.testing.assert_array_equal(np.isinf(a), np.isinf(b))
        np.testing.assert_allclose(a, b, rtol=4e-15, atol=_terms(name, b) * 1e-13)


def _terms(name, values):
    """The size of the terms of a cotangent, if they cancel."""
    return np.abs(values[np.isfinite(values)]).max(initial=0.0) if "softmax" in name or "standardized" in name else 0.0


def test_rows_of_float32():
    """The kernel of log_softmax has the digits of float32, also where one probability is almost 1, and zeros for probabilities of 0."""
    x = np.random.default_rng(3).normal(size=(2, 3, 4)) * [[[1], [5], [15]]]
    x[1, 2, 0] = -np.inf
    g = np.eye(4)[[[0, 1, 2], [3, 2, 1]]]
    found = []
    for dtype in (np.float32, np.float64):
        t = symgrad.tensor(x.astype(np.float32).astype(dtype), requires_grad=True)
        y = symgrad.log_softmax(t, -1)
        y.backward(symgrad.tensor(g.astype(dtype)))
        assert type(y.grad_fn).__mro__[1].__name__ == "LogSoftmaxBackward0"
        found.append((y.detach().numpy(), t.grad.numpy()))
    for narrow, wide in zip(*found):
        assert narrow.dtype == np.float32
        np.testing.assert_allclose(narrow, wide, rtol=4e-7)


@pytest.mark.parametrize("name", CALLS)
def test_second_derivatives_and_second_pullbacks(name):
    """The rules take over in passes that are recorded; a kept graph gives the same gradient again, and a released one refuses."""
    x = symgrad.tensor(POSITIVE, requires_grad=True)
    y = CALLS[name](x).sum()
    (first,) = symgrad.autograd.grad(y, x, retain_graph=True)
    (recorded,) = symgrad.autograd.grad(y, x, create_graph=True)
    np.testing.assert_allclose(first.numpy(), recorded.detach().numpy(), rtol=4e-15, atol=1e-16 + _terms(name, first.numpy()) * 1e-13)
    (again,) = symgrad.autograd.grad(y, x)
    np.testing.assert_array_equal(first.numpy(), again.numpy())
    if name != "with_numbers" and name != "ignoring NaN":
        with pytest.raises(RuntimeError, match="second time|freed"):
            symgrad.autograd.grad(y, x)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [4096, 4097, 5000])
def test_recurrences_of_long_vectors(n, reverse):
    """Blocks of a vector give what one step after the other gives, also at zeros."""
    rng = np.random.default_rng(n)
    a, b = rng.uniform(-1, 1, n), rng.uniform(-3, 3, n)
    a[[0, 17, n - 3, n - 1]] = 0
    expected, last = np.empty(n), 0.0
    for i in reversed(range(n)) if reverse else range(n):
        expected[i] = last = b[i] + a[i] * last
    np.testing.assert_allclose(recurrence(numeric, a, b, 0, reverse), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("index", [(np.arange(200) % 7,), (np.arange(200) % 7 - 7,), (np.arange(200) % 7 - 3, np.arange(200) % 3),
                                   (np.arange(20)[:, None] % 7, np.arange(6) % 3), (np.arange(40) % 7, np.arange(40) % 3, np.arange(40) % 5 - 5)])
def test_many_gradients_at_repeated_positions(index):
    x = symgrad.zeros(7, 3, 5, dtype=symgrad.float64, requires_grad=True)
    y = x[tuple(symgrad.tensor(i) for i in index)]
    g = np.random.default_rng(5).normal(size=y.shape)
    y.backward(symgrad.tensor(g))
    expected = np.zeros(x.shape)
    for place in np.ndindex(*np.broadcast_shapes(*[i.shape for i in index])):
        expected[tuple(np.broadcast_to(i, y.shape[:len(place)])[place] for i in index)] += g[place]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=0, atol=1e-13)


def test_exponentials_far_from_the_largest_have_all_digits():
    """Among thousands the far ones are corrected alone."""
    x = np.random.default_rng(6).normal(size=(80, 80)) * 8
    x[:, 0] = 1 / 3 + 40
    x[:, 1:5] -= 30
    narrow, wide = (symgrad.softmax(symgrad.tensor(x.astype(np.float32).astype(dtype)), 1).numpy() for dtype in (np.float32, np.float64))
    np.testing.assert_allclose(narrow, wide, rtol=1e-6, atol=1e-38)
