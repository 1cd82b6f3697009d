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
    "inv": [lambda a: np.linalg.inv(spd(a))], "det": [lambda a: np.linalg.det(spd(a))], "slogdet": [lambda a: np.linalg.slogdet(-spd(a))[1]],
    "cholesky": [lambda a: np.linalg.cholesky(spd(a)), lambda a: np.linalg.cholesky(spd(a), upper=True)],
    "eigh": [lambda a: np.linalg.eigh(spd(a)).eigenvalues, lambda a: np.linalg.eigh(spd(a), "U")[1] ** 2],
    "eigvalsh": [lambda a: np.linalg.eigvalsh(spd(a))],
    "solve": [lambda a: np.linalg.solve(spd(a), a), lambda a: np.linalg.solve(spd(a), A[:, 0]), lambda a: np.linalg.solve(np.stack([spd(a)] * 2), a)],
    "trapezoid": [lambda a: np.trapezoid(a), lambda a: np.trapezoid(a, dx=0.5, axis=0), lambda a: np.trapezoid(a, V), lambda a: np.trapezoid(B, a)],
    "interp": [lambda a: np.interp(a, [-1.0, 0.5, 2.0], [3.0, 1.0, 4.0]), lambda a: np.interp([-2.0, 0.25, 1.5, 9.0], np.sort(a[0]), a[1]),
               lambda a: np.interp(a, [0.0, 1.5], [3.0, 1.0], left=-1, right=7.5), lambda a: np.interp(a, [0.5, 2.0, 1.0], V, period=2.5),
               lambda a: np.interp(0.75, V[::2], a[0, ::2]), lambda a: np.interp(a, [0.5], [2.0])],
    "cross": [lambda a: np.cross(a, B), lambda a: np.cross(a, V), lambda a: np.cross(a.T, B, axisa=0, axisc=0), lambda a: np.cross(V, a, axis=-1)],
    "pad": [lambda a: np.pad(a, 1), lambda a: np.pad(a, ((1, 0), (2, 3)), constant_values=((5, 6), (7, 8))), lambda a: np.pad(a, (1, 2), "edge"),
            lambda a: np.pad(a, 2, mode="wrap"), lambda a: np.pad(a, ((1, 1), (2, 0)), mode="reflect"), lambda a: np.pad(a, 3, mode="symmetric"),
            lambda a: np.pad(a, 0)],
    "convolve": [lambda a: np.convolve(a[0], V), lambda a: np.convolve(a[0], [1, 2], "same"), lambda a: np.convolve([2, 1], a[0], mode="valid"),
                 lambda a: np.convolve(a[0], np.arange(4.0), "same"), lambda a: np.convolve(a.T[0], np.arange(5.0), "same")],
    **{name: [lambda a, name=name: getattr(np.fft, name)(a), lambda a, name=name: getattr(np.fft, name)(a, n=4, axis=0, norm="ortho")]
       for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{name: [lambda a, name=name: getattr(np.fft, name)(a), lambda a, name=name: getattr(np.fft, name)(a, s=(3, 4), axes=(0, 1), norm="forward")]
       for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")},
    **{name: [lambda a, name=name: getattr(np.fft, name)(a), lambda a, name=name: getattr(np.fft, name)(a, axes=1)]
       for name in ("fftshift", "ifftshift")},
}
FOLDS = [
    lambda a: np.add.reduce(a), lambda a: np.add.reduce(a, axis=None), lambda a: np.add.reduce(a, axis=(0, 1), keepdims=True),
    lambda a: np.multiply.reduce(a, axis=1), lambda a: np.maximum.reduce(a), lambda a: np.minimum.reduce(a, axis=1, keepdims=True),
    lambda a: np.logical_and.reduce(a > -3), lambda a: np.logical_or.reduce(a > 2, axis=None), lambda a: np.logaddexp.reduce(a, axis=1),
    lambda a: np.add.accumulate(a), lambda a: np.multiply.accumulate(a, axis=1), lambda a: np.maximum.accumulate(a, axis=1),
    lambda a: np.minimum.accumulate(a), lambda a: np.logaddexp.accumulate(a, 1), lambda a: np.multiply.outer(a, V),
    lambda a: np.subtract.outer(V, a), lambda a: np.hypot.outer(a, a),
]


def spd(a):
    return a @ a.T + np.eye(2)


def test_every_function_of_the_protocol_is_tested():
    assert {function.__name__ for function in FUNCTIONS_OF_NUMPY} == set(CALLS)


@pytest.mark.parametrize("call", [pytest.param(call, id=f"{name} {i}") for name, calls in (*CALLS.items(), ("fold", FOLDS))
                                  for i, call in enumerate(calls)])
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
    assert isinstance(np.linalg.pinv(x), np.ndarray) and np.median(x) == 1.0
    x.requires_grad_()
    for name, call in {"numpy.linalg.pinv": np.linalg.pinv, "numpy.median": np.median, "numpy.pad": lambda x: np.pad(x, 1, "mean"),
                       "numpy.linalg.norm": lambda x: np.linalg.norm(x, "nuc"), "spacing": np.spacing, "reduceat": lambda x: np.add.reduceat(x, [0]),
                       "reduce": lambda x: np.add.reduce(x, initial=1.0)}.items():
        with pytest.raises(TypeError, match=name):
            call(x)
    with pytest.raises(TypeError, match="numpy.sum: on Tensors"):
        np.sum(x, where=np.array([True, False]))
