"""NumPy's functions on Tensors: NumPy's values, arguments and defaults, recorded in the graph."""

import numpy as np
import pytest

import symgrad
from symgrad.methods.numpy_protocol import FUNCTIONS_OF_NUMPY

A = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
B = np.array([[0.5, 1.0, -1.5], [2.0, 2.5, 0.75]])
V = np.array([0.5, -1.0, 2.0])
CALLS = {
    "sum": [lambda a: np.sum(a), lambda a: np.sum(a, axis=0), lambda a: np.sum(a, (0, 1), keepdims=True)],
    "mean": [lambda a: np.mean(a), lambda a: np.mean(a, axis=1, keepdims=True)],
    "prod": [lambda a: np.prod(a), lambda a: np.prod(a, axis=0)],
    "max": [lambda a: np.max(a), lambda a: np.max(a, axis=1)], "amax": [lambda a: np.amax(a, 0)],
    "min": [lambda a: np.min(a), lambda a: np.min(a, axis=1, keepdims=True)], "amin": [lambda a: np.amin(a, 0)],
    "all": [lambda a: np.all(a > -3)], "any": [lambda a: np.any(a > 2, axis=0)],
    "argmax": [lambda a: np.argmax(a), lambda a: np.argmax(a, axis=1)], "argmin": [lambda a: np.argmin(a, axis=0)],
    "var": [lambda a: np.var(a), lambda a: np.var(a, axis=0, ddof=1)], "std": [lambda a: np.std(a), lambda a: np.std(a, 1, keepdims=True)],
    "cumsum": [lambda a: np.cumsum(a), lambda a: np.cumsum(a, axis=1)], "cumprod": [lambda a: np.cumprod(a), lambda a: np.cumprod(a, 0)],
    "where": [lambda a: np.where(a > 0, a, 0.0), lambda a: np.where(A > 0, 1.0, a)],
    "dot": [lambda a: np.dot(a, B.T), lambda a: np.dot(a, V), lambda a: np.dot(2.0, a), lambda a: np.dot(a, np.ones((2, 3, 4)))],
    "inner": [lambda a: np.inner(a, B)], "vdot": [lambda a: np.vdot(a, B)], "outer": [lambda a: np.outer(a, V)], "kron": [lambda a: np.kron(a, B)],
    "einsum": [lambda a: np.einsum("ij,kj->ik", a, B)], "tensordot": [lambda a: np.tensordot(a, B), lambda a: np.tensordot(a, B, ([1], [1]))],
    "trace": [lambda a: np.trace(a)], "transpose": [lambda a: np.transpose(a), lambda a: np.transpose(a[None], (2, 0, 1))],
    "reshape": [lambda a: np.reshape(a, (3, 2)), lambda a: np.reshape(a, -1)], "ravel": [lambda a: np.ravel(a)],
    "squeeze": [lambda a: np.squeeze(a[None]), lambda a: np.squeeze(a[:, None, :1], axis=1)],
    "expand_dims": [lambda a: np.expand_dims(a, 1), lambda a: np.expand_dims(a, (0, -1))],
    "swapaxes": [lambda a: np.swapaxes(a, 0, 1)], "moveaxis": [lambda a: np.moveaxis(a[None], 0, 2)],
    "broadcast_to": [lambda a: np.broadcast_to(a, (2, 2, 3))],
    "concatenate": [lambda a: np.concatenate([a, B]), lambda a: np.concatenate((B, a), axis=1)],
    "stack": [lambda a: np.stack([a, B], axis=1)], "vstack": [lambda a: np.vstack([a, V])], "hstack": [lambda a: np.hstack([a, B])],
    "dstack": [lambda a: np.dstack([a, B])], "column_stack": [lambda a: np.column_stack([a, A[:, 0]])],
    "roll": [lambda a: np.roll(a, 1), lambda a: np.roll(a, 1, axis=1)], "flip": [lambda a: np.flip(a), lambda a: np.flip(a, 0)],
    "sort": [lambda a: np.sort(a), lambda a: np.sort(a, axis=0), lambda a: np.sort(a, axis=None)], "argsort": [lambda a: np.argsort(a, axis=0)],
    "diff": [lambda a: np.diff(a), lambda a: np.diff(a, axis=0)],
    "clip": [lambda a: np.clip(a, -1, 1), lambda a: np.clip(a, None, 1), lambda a: np.clip(a, min=0.0)],
    "norm": [lambda a: np.linalg.norm(a), lambda a: np.linalg.norm(a, axis=1), lambda a: np.linalg.norm(a, 1, axis=0, keepdims=True)],
    "diag": [lambda a: np.diag(a), lambda a: np.diag(a[0], 1)], "diagonal": [lambda a: np.diagonal(a, 1)],
    "tril": [lambda a: np.tril(a)], "triu": [lambda a: np.triu(a, 1)], "tile": [lambda a: np.tile(a, (2, 1))], "sinc": [lambda a: np.sinc(a)],
    "round": [lambda a: np.round(a), lambda a: np.round(a * 1.234, 2)], "real": [lambda a: np.real(a)], "imag": [lambda a: np.imag(a * 1j)],
    "angle": [lambda a: np.angle(a)], "nan_to_num": [lambda a: np.nan_to_num(a)], "shape": [lambda a: np.shape(a)], "ndim": [lambda a: np.ndim(a)],
    "size": [lambda a: np.size(a), lambda a: np.size(a, 1)], "zeros_like": [lambda a: np.zeros_like(a)], "ones_like": [lambda a: np.ones_like(a)],
    "full_like": [lambda a: np.full_like(a, 2.0)], "empty_like": [lambda a: np.empty_like(a) * 0], "iscomplexobj": [lambda a: np.iscomplexobj(a)],
}


def test_every_function_of_the_protocol_is_tested():
    assert {function.__name__ for function in FUNCTIONS_OF_NUMPY} == set(CALLS)


@pytest.mark.parametrize("call", [pytest.param(call, id=f"{name} {i}") for name, calls in CALLS.items() for i, call in enumerate(calls)])
def test_values_match_numpy(call):
    expected = call(A)
    leaf = symgrad.tensor(A, requires_grad=True)
    for x in (symgrad.tensor(A), leaf):
        found = call(x)
        if isinstance(expected, (tuple, int)) and not isinstance(expected, np.generic):
            assert found == expected
            continue
        assert isinstance(found, symgrad.Tensor) and tuple(found.shape) == np.shape(expected)
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-14, atol=1e-15)


def test_gradients_pass():
    x = symgrad.tensor(A, requires_grad=True)
    (np.sum(np.where(x > 0, np.max(x, axis=0), np.var(x))) + np.linalg.norm(np.concatenate([x, x]))).backward()
    assert x.grad.shape == (2, 3) and np.isfinite(x.grad.numpy()).all()


def test_other_functions_get_arrays_or_raise():
    x = symgrad.tensor([[2.0, 0.0], [0.0, 4.0]])
    assert isinstance(np.linalg.inv(x), np.ndarray) and np.median(x) == 1.0
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.linalg.inv(x.requires_grad_())
    with pytest.raises(TypeError, match="numpy.sum: on Tensors"):
        np.sum(x, where=np.array([True, False]))
