"""Statistics, integrals and scans: values with NaN, derivatives of second order, batches and errors."""

import numpy as np
import pytest

import symgrad
from symgrad import autograd, func

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 5))
WITH_NAN = np.where(np.arange(15).reshape(3, 5) % 4 == 1, np.nan, A)
FUNCTIONS = {
    "nanmean": lambda x: symgrad.nanmean(x, 1), "nansum": lambda x: symgrad.nansum(x**2, 0), "quantile": lambda x: symgrad.quantile(x, 0.3, 1),
    "several quantiles": lambda x: symgrad.quantile(x, symgrad.tensor([0.2, 0.9]), 0, True),
    "nanquantile": lambda x: symgrad.nanquantile(x, 0.3, interpolation="midpoint"), "logcumsumexp": lambda x: symgrad.logcumsumexp(x, 1),
    "trapezoid": lambda x: symgrad.trapezoid(x**2, x), "cumulative": lambda x: symgrad.cumulative_trapezoid(x**2, dx=0.5, dim=0),
    "cov": lambda x: x.cov(aweights=symgrad.tensor([1.0, 2, 3, 4, 5])), "corrcoef": lambda x: x.corrcoef(),
    "dist": lambda x: x.dist(x.flip(0), 3), "renorm": lambda x: x.renorm(2, 0, 0.5),
    "gradient": lambda x: symgrad.cat(symgrad.gradient(x**2, edge_order=2, dim=1))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_both_modes_and_of_second_order_agree_with_differences(name):
    function = FUNCTIONS[name]
    x, t = symgrad.tensor(A), symgrad.tensor(RNG.standard_normal(A.shape))
    y, pushed = func.jvp(function, (x,), (t,))
    weight = symgrad.tensor(RNG.standard_normal(y.shape))
    total = lambda x: (function(x) * weight).sum()  # noqa: E731
    slope = func.grad(total)
    assert float((slope(x) * t).sum()) == pytest.approx(float((pushed * weight).sum()), rel=1e-12)
    step = 1e-6
    assert float((slope(x) * t).sum()) == pytest.approx(float(total(x + step * t) - total(x - step * t)) / (2 * step), rel=1e-6, abs=1e-7)
    second = func.jvp(slope, (x,), (t,))[1]
    differences = (slope(x + step * t) - slope(x - step * t)) / (2 * step)
    assert symgrad.allclose(second, differences, rtol=1e-5, atol=1e-6)


def test_nan_is_left_out_and_has_the_derivative_zero():
    for name, reference in (("nansum", np.nansum), ("nanmean", np.nanmean)):
        x = symgrad.tensor(WITH_NAN, requires_grad=True)
        y = getattr(symgrad, name)(x, 1)
        assert np.allclose(y.detach().numpy(), reference(WITH_NAN, 1))
        (g,) = autograd.grad(y.sum(), x)
        assert np.all((g.numpy() == 0) == np.isnan(WITH_NAN))
    for q in (0.0, 0.3, 1.0):
        assert np.allclose(symgrad.nanquantile(symgrad.tensor(WITH_NAN), q, 1).numpy(), np.nanquantile(WITH_NAN, q, 1))
        assert np.array_equal(symgrad.quantile(symgrad.tensor(WITH_NAN), q, 0).isnan().numpy(), np.isnan(WITH_NAN).any(0))


def test_logcumsumexp_neither_overflows_nor_loses_the_first_terms():
    x = symgrad.tensor([-2000.0, -2000.0, 1000.0, 1000.0])
    assert symgrad.allclose(symgrad.logcumsumexp(x, 0), symgrad.tensor([-2000.0, -2000 + np.log(2), 1000, 1000 + np.log(2)]))


def test_the_covariance_of_one_variable_is_a_number():
    x = symgrad.tensor(A[0])
    assert x[None].cov().shape == x.cov().shape == x[None].corrcoef().shape == ()
    assert x[None].cov().item() == x.cov().item() == pytest.approx(np.cov(A[0]))


def test_the_next_number_moves_with_the_input():
    x, y = symgrad.tensor([1.0, -0.0, np.inf], requires_grad=True), symgrad.tensor([2.0, -1.0, 0.0], requires_grad=True)
    out = x.nextafter(y)
    assert out.tolist() == np.nextafter(x.tolist(), y.tolist()).tolist()
    assert [g.tolist() for g in autograd.grad(out.sum(), (x, y), materialize_grads=True)] == [[1, 1, 1], [0, 0, 0]]
    z = symgrad.tensor(1.0, symbol="z")
    assert str(z.nextafter(y[0].detach()).expr) == "z"


def test_elements_are_put_at_flat_positions_and_in_strided_parts():
    x, source = symgrad.tensor(A, requires_grad=True), symgrad.tensor([7.0, 8.0], requires_grad=True)
    at = symgrad.tensor([1, -1])
    for accumulate in (False, True):
        out = symgrad.put(x, at, source, accumulate)
        expected = A.copy()
        expected.flat[[1, -1]] = source.detach().numpy() + (expected.flat[[1, -1]] if accumulate else 0)
        assert np.array_equal(out.detach().numpy(), expected)
        gx, gs = autograd.grad((out**2).sum(), (x, source))
        assert np.allclose(gs.numpy(), 2 * expected.flat[[1, -1]])
        assert np.allclose(gx.numpy().flat[[1, -1]], 2 * expected.flat[[1, -1]] * accumulate)
    out = x.as_strided_scatter(source, (2,), (6,), 1)
    assert out.flatten()[[1, 7]].tolist() == [7, 8]
    gx, gs = autograd.grad((out**2).sum(), (x, source))
    assert gs.tolist() == [14, 16]
    assert gx.flatten()[[1, 7]].tolist() == [0, 0]
    with pytest.raises(IndexError, match="number of elements"):
        symgrad.put(x, at, source[:1])
    with pytest.raises(IndexError, match="101 .*15"):
        symgrad.put(x, at + 100, source)
    with pytest.raises(RuntimeError, match=r"\[1\].*\[2\]"):
        symgrad.as_strided_scatter(x, source[:1], (2,), (6,), 1)


def test_indices():
    rows = symgrad.tensor([[0, 3], [4, 0]])
    assert symgrad.argwhere(rows).tolist() == [[0, 1], [1, 0]]
    assert rows.nonzero_static(size=3).tolist() == [[0, 1], [1, 0], [-1, -1]]
    assert [part.tolist() for part in symgrad.unravel_index(symgrad.tensor([5, 7]), (3, 4))] == [[1, 1], [1, 3]]
    with pytest.raises(TypeError, match="unravel_index: indices"):
        symgrad.unravel_index(symgrad.tensor([0.5]), (3,))


@pytest.mark.parametrize("text, call", [
    ("quantile: q .* 2", lambda x: symgrad.quantile(x, 2)),
    ("quantile: input", lambda x: symgrad.quantile(x[:0], 0.5)),
    ("quantile: input .*int64", lambda x: symgrad.quantile(x.long(), 0.5)),
    ("cov: input .*3", lambda x: symgrad.cov(x[None])),
    ("renorm: input .*2 dimensions", lambda x: symgrad.renorm(x[0], 2, 0, 1.0)),
    ("gradient: edge_order .*3", lambda x: symgrad.gradient(x, edge_order=3)),
    ("gradient: the size .*1$", lambda x: symgrad.gradient(x[:1])),
])
def test_errors_name_the_argument_and_the_value(text, call):
    with pytest.raises(RuntimeError, match=text):
        call(symgrad.tensor(A))


def test_logsumexp_of_an_infinite_number_beside_others():
    x = symgrad.tensor([[np.inf, -np.inf, 1e308], [1e16, 0.0, 1.0]], dtype=symgrad.float64)
    assert symgrad.logsumexp(x, 0).tolist() == [np.inf, 0.0, 1e308]
