"""NumPy's functions on Tensors: NumPy's values, arguments and defaults, recorded in the graph."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import symgrad
from symgrad.methods.numpy_arranging import NOT_DIFFERENTIABLE
from symgrad.methods.numpy_protocol import FUNCTIONS_OF_NUMPY

A = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
B = np.array([[0.5, 1.0, -1.5], [2.0, 2.5, 0.75]])
V = np.array([0.5, -1.0, 2.0])
DATA = Path(__file__).parents[1] / "support" / "data" / "numpy_calls.txt"
CALLS = {name: lines.split("\n") for name, lines in re.findall(r"^\[(\w+)\]\n(.*?)\n(?:\n|\Z)", DATA.read_text(), re.MULTILINE | re.DOTALL)}


def spd(a):
    return a @ a.T + np.eye(2)


def gaps(a):
    return np.where(A == 0.5, np.nan, a)


def written(function, a, *args, **words):
    a = np.copy(a)
    function(a, *args, **words)
    return a


def test_every_function_of_the_protocol_is_tested():
    names = {function.__name__ for function in FUNCTIONS_OF_NUMPY} - {function.__name__ for function in NOT_DIFFERENTIABLE}
    assert names == set(CALLS) - {"fold"} and sum(map(len, CALLS.values())) > 350


def test_functions_without_a_derivative_get_the_values():
    x = symgrad.tensor(A, requires_grad=True)
    assert np.allclose(x, A) and np.array_equal(x, A) and np.count_nonzero(x > 0) == 4 and np.result_type(x, 1.0) == np.float64
    assert [list(p) for p in np.nonzero(x > 1)] == [[0, 1], [0, 0]] and np.searchsorted(np.sort(V), x[0, 0]) == 2
    with pytest.warns(UserWarning, match=r"numpy\.histogram\(\) is a constant"):  # its edges depend on x
        assert np.histogram(x, bins=2)[0].tolist() == np.histogram(A, bins=2)[0].tolist()
    assert np.histogram(x, bins=[0.0, 1.0, 2.0])[0].tolist() == np.histogram(A, bins=[0.0, 1.0, 2.0])[0].tolist()


def test_ufuncs_of_two_tensors_take_numbers_and_arrays():
    x = symgrad.tensor(A, requires_grad=True)
    for call in (lambda a: np.heaviside(a, 2.0), lambda a: np.copysign(a, V), lambda a: np.logaddexp2(1, a), lambda a: np.ldexp(a, 2), np.cbrt,
                 lambda a: np.vecdot(a, B), lambda a: np.matvec(a, V), lambda a: np.vecmat(A[:, 0], a), lambda a: np.modf(a)[0],
                 np.degrees, np.radians, np.fabs, np.conj, lambda a: np.heaviside(V, a)):
        np.testing.assert_allclose(call(x).detach().numpy(), call(A), rtol=1e-15)
        assert call(x).requires_grad


@pytest.mark.parametrize("text", [text for calls in CALLS.values() for text in calls])
def test_values_match_numpy(text):
    expected = eval(text, globals() | {"a": A})
    for x in (symgrad.tensor(A), symgrad.tensor(A, requires_grad=True)):
        found = eval(text, globals() | {"a": x})
        if isinstance(expected, (tuple, int)) and not isinstance(expected, np.generic):
            assert found == expected
            continue
        assert isinstance(found, symgrad.Tensor) and tuple(found.shape) == np.shape(expected)
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", "sum prod mean var std cumsum cumprod nansum nanprod nanmean nanvar nanstd nancumsum nancumprod trace cov".split())
def test_the_dtype_that_numpy_is_asked_for_is_that_of_the_result(name):
    function, x = getattr(np, name), symgrad.tensor(A, requires_grad=True)
    for found in (function(x, dtype=np.float32), function(x, dtype="float32")):
        assert found.dtype is symgrad.float32
        np.testing.assert_array_almost_equal_nulp(found.detach().numpy(), np.asarray(function(A, dtype=np.float32)), 16)


@pytest.mark.parametrize("function", [np.dot, np.outer, np.vdot, np.linalg.solve])
def test_none_is_no_array(function):
    with pytest.raises(TypeError):
        function(symgrad.tensor(A), None)


def test_arrays_beside_tensors_are_given_dimensions():
    assert [type(x) for x in np.atleast_2d(symgrad.tensor(A), np.ones(2), 0.5)] == [symgrad.Tensor] * 3


FUNCTIONS = {
    "solve": lambda x: (np.linalg.solve(np.eye(2) * 3 + x.reshape(2, 2), x[:2]) ** 2).sum(),
    "slogdet": lambda x: np.linalg.slogdet(spd(x.reshape(2, 2)))[1],
    "norm": lambda x: np.linalg.norm(x.reshape(2, 2), 1) + np.linalg.norm(x.reshape(2, 2), -np.inf),
    "interp": lambda x: (np.interp(x, np.array([-1.0, 0.1, 2.0]), x[1:]) ** 2).sum() + np.interp(1.0, x[1:] * x[1:] + np.arange(3), x[:3]),
    "cross": lambda x: (np.cross(x[:3], x[1:] * x[1:]) ** 2).sum(), "pad": lambda x: (np.pad(x * x, 2, mode="reflect") * np.arange(8.0)).sum(),
    "convolve": lambda x: (np.convolve(x, x[:2], "same") ** 2).sum(), "trapezoid": lambda x: np.trapezoid(x * x, np.exp(x)),
    "fft": lambda x: (np.abs(np.fft.fft(x * x)) ** 2).sum(), "fold": lambda x: np.multiply.reduce(np.logaddexp.accumulate(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_derivatives(name):
    """Beside differences of the same function of arrays, and of the gradient."""
    at, f = np.array([0.3, -0.6, 1.1, 0.7]), FUNCTIONS[name]
    steps = 1e-6 * np.eye(4)
    gradient = symgrad.func.grad(f)(symgrad.tensor(at)).numpy()
    np.testing.assert_allclose(gradient, [(f(at + h) - f(at - h)) / 2e-6 for h in steps], rtol=1e-7, atol=1e-8)
    slope = symgrad.func.grad(f)
    rows = [((slope(symgrad.tensor(at + h)) - slope(symgrad.tensor(at - h))) / 2e-6).numpy() for h in steps]
    np.testing.assert_allclose(symgrad.func.hessian(f)(symgrad.tensor(at)).numpy(), rows, rtol=1e-7, atol=1e-7)


def test_functions_without_an_op_get_arrays_or_raise():
    x = symgrad.tensor([[2.0, 0.0], [0.0, 4.0]])
    assert isinstance(np.poly(x), np.ndarray) and np.quantile(x, 0.5, method="weibull") == 1.0
    x.requires_grad_()
    for name, call in {"numpy.poly": np.poly, "numpy.quantile": lambda x: np.quantile(x, 0.5, method="weibull"),
                       "numpy.pad": lambda x: np.pad(x, 1, lambda *args: None), "numpy.linalg.qr": lambda x: np.linalg.qr(x, "raw"),
                       "spacing": np.spacing, "reduceat": lambda x: np.add.reduceat(x, [0]),
                       "reduce": lambda x: np.add.reduce(x, initial=1.0)}.items():
        with pytest.raises(TypeError, match=name):
            call(x)
    with pytest.raises(TypeError, match="numpy.var: no op computes it for these arguments of Tensors: .*'where'"):
        np.var(x, where=np.array([True, False]))


def test_initial_where_dtype_and_order_are_those_of_numpy():
    x = symgrad.tensor(A, requires_grad=True)
    for call in (lambda a: np.sum(a, initial=2.0), lambda a: np.sum(a, axis=0, where=A > 0), lambda a: np.mean(a, 1, where=A > -1, keepdims=True),
                 lambda a: np.prod(a, initial=3.0, where=A != 0), lambda a: np.max(a, axis=0, initial=0.5), lambda a: np.min(a, initial=0.0),
                 lambda a: np.max(a, 0, where=A < 1, initial=-9.0), lambda a: np.reshape(a, (3, 2), order="F"), lambda a: np.ravel(a, order="F"),
                 lambda a: np.reshape(a, -1, order="F")):
        np.testing.assert_allclose(call(x).detach().numpy(), call(A), rtol=1e-15)
        assert call(x).requires_grad
    assert np.all(x > 0, where=A > 0).item() is True and [p.tolist() for p in np.where(x > 0)] == [p.tolist() for p in np.where(A > 0)]
    assert all(call(x, dtype=np.float32).dtype is symgrad.float32 for call in (np.var, np.std, np.cumsum, np.sum))
    with pytest.raises(ValueError, match="does not have an identity"):
        np.max(x, where=A > 0)
    with pytest.raises(ValueError, match="order must be one of"):
        np.reshape(x, -1, order="K")
    with pytest.raises(TypeError, match=r"numpy.concatenate: no op computes it .*'dtype'"):
        np.concatenate([x, x], dtype=np.float32)


def test_sequences_of_tensors_keep_their_graph_in_functions_of_numpy_and_are_refused_by_operators():
    x = symgrad.tensor([1.0, 2.0], requires_grad=True)
    for y, g in ((np.concatenate([x, [x[0], x[1] ** 2]]), [2.0, 5.0]), (np.multiply(x, [x[1], 3.0]), [2.0, 4.0]),
                 (np.stack([x, (x[0], x[0])]), [3.0, 1.0]), (np.where(x > 0, [x[1], x[1]], 0.0), [0.0, 2.0])):
        assert symgrad.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == g
    for call in (lambda: x * [x[0], 1.0], lambda: [x[0], 1.0] + x, lambda: symgrad.stack([x, [x[0], x[1]]]),
                 lambda: symgrad.zeros(2).copy_([x[0], x[1]]), lambda: symgrad.matmul(x, [x[0], x[1]]),
                 lambda: symgrad.zeros(2).__setitem__(0, [x[0]])):
        with pytest.raises(TypeError, match="a sequence with tensors that have a graph.* symgrad.stack"):
            call()
    assert (x * [2.0, symgrad.tensor(3.0)]).tolist() == [2.0, 6.0]


def test_the_pair_of_values_and_indices_is_no_operand():
    x = symgrad.ones(2, 3)
    for call in (lambda: x - x.max(axis=1, keepdims=True), lambda: symgrad.mul(x, x.min(0)), lambda: np.subtract(x, x.max(1, keepdims=True))):
        with pytest.raises(TypeError, match=r"\(values, indices\) that (max|min) returns; take one item of it, as in .values, or call amax or amin"):
            call()
    with pytest.raises(TypeError, match=r"\(values, indices\) that sort returns; take one item of it, as in .values$"):
        x + x.sort(0)


def test_results_written_to_tensors_and_arrays():
    x = symgrad.tensor([0.5, -1.0, 2.0], requires_grad=True)
    y = np.empty_like(x)
    assert np.sin(x, out=y) is y
    np.multiply(y, x, out=y)
    np.add.at(y, [0, 0, 1], x)
    np.subtract.at(y, np.array([2]), x[:1])
    expected = np.sin([0.5, -1.0, 2.0]) * [0.5, -1.0, 2.0] + [0.5 - 1.0, 2.0, -0.5]
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-15)
    (g,) = symgrad.autograd.grad(y.sum(), x)
    at = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(g.numpy(), np.cos(at) * at + np.sin(at) + [1.0 - 1.0, 1.0, 1.0], rtol=1e-15)
    total = np.zeros(3)
    total += x.detach()
    assert total.tolist() == [0.5, -1.0, 2.0]
    with pytest.raises(TypeError, match=r"numpy.add: the result has a graph and cannot be written to an array"):
        total += x
    assert total.tolist() == [0.5, -1.0, 2.0]


def test_the_protocol_of_arrays():
    x = symgrad.ones(2)
    assert x.__array_namespace__() is symgrad and x.__array_namespace__(api_version="2024.12").sum(x).item() == 2
    assert symgrad.Tensor.__array_priority__ == 1000 and np.from_dlpack(x).tolist() == [1.0, 1.0]
    with pytest.raises(BufferError, match="require"):
        np.from_dlpack(x.requires_grad_())


@pytest.mark.sweep
def test_ufuncs_of_scipy():
    x = symgrad.tensor([0.3, 0.7], requires_grad=True)
    at = x.detach().numpy()
    for name in ("erf", "gammaln", "expit", "ndtr", "j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e", "digamma"):
        f = getattr(scipy.special, name)
        np.testing.assert_allclose(f(x).detach().numpy(), f(at), rtol=1e-14)
        assert f(x).requires_grad
    for name in ("eval_legendre", "eval_chebyt", "eval_chebyu", "eval_hermite", "eval_hermitenorm", "eval_laguerre"):
        f = getattr(scipy.special, name)
        np.testing.assert_allclose(f(3, x).detach().numpy(), f(3, at), rtol=1e-14)
        assert f(3, x).requires_grad
    np.testing.assert_allclose(scipy.special.zeta(x + 2).detach().numpy(), scipy.special.zeta(at + 2), rtol=1e-14)
    with pytest.raises(TypeError, match="hyp2f1: no op computes it for Tensors"):
        scipy.special.hyp2f1(1.0, 2.0, 3.0, x)
