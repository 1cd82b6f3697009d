"""NumPy's functions on Tensors: NumPy's values, arguments and defaults, recorded in the graph."""

import numpy as np
import pytest
import scipy.special

import symgrad
from symgrad.methods.numpy_arranging import NOT_DIFFERENTIABLE
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
    "diff": [lambda a: np.diff(a), lambda a: np.diff(a, axis=0), lambda a: np.diff(a, 2, prepend=0.5, append=A[:, :1])],
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
            lambda a: np.pad(a, 0), lambda a: np.pad(a, (1, 2), "mean"), lambda a: np.pad(a, 2, "mean", stat_length=((1, 2), (2, 3))),
            lambda a: np.pad(a, ((0, 1), (2, 1)), "maximum"), lambda a: np.pad(a, 1, "minimum", stat_length=2), lambda a: np.pad(a, 2, "median"),
            lambda a: np.pad(a, (2, 3), "linear_ramp", end_values=((5, -4), (1, 0))), lambda a: np.pad(a, 1, "linear_ramp"),
            lambda a: np.pad(a, 3, "reflect", reflect_type="odd"), lambda a: np.pad(a, ((1, 4), (0, 2)), "symmetric", reflect_type="odd"),
            lambda a: np.pad(a, 1, "empty")[1:-1, 1:-1]],
    "convolve": [lambda a: np.convolve(a[0], V), lambda a: np.convolve(a[0], [1, 2], "same"), lambda a: np.convolve([2, 1], a[0], mode="valid"),
                 lambda a: np.convolve(a[0], np.arange(4.0), "same"), lambda a: np.convolve(a.T[0], np.arange(5.0), "same")],
    "svd": [lambda a: np.linalg.svd(a)[1], lambda a: np.linalg.svd(a, full_matrices=False)[1], lambda a: np.linalg.svd(a, compute_uv=False),
            lambda a: np.linalg.svd(spd(a), hermitian=True)[1],
            lambda a: np.linalg.svd(spd(a) - 9 * np.eye(len(a)), compute_uv=False, hermitian=True)],
    "svdvals": [lambda a: np.linalg.svdvals(a)], "cond": [lambda a: np.linalg.cond(a), lambda a: np.linalg.cond(spd(a), 1)],
    "lstsq": [lambda a: np.linalg.lstsq(a.T, V)[0], lambda a: np.linalg.lstsq(a.T, V)[1], lambda a: np.linalg.lstsq(a.T, B.T, rcond=-1)[0],
              lambda a: np.linalg.lstsq(a.T, B.T)[3]],
    "pinv": [lambda a: np.linalg.pinv(a), lambda a: np.linalg.pinv(spd(a), hermitian=True)],
    "qr": [lambda a: np.linalg.qr(a)[1] ** 2, lambda a: np.linalg.qr(a, mode="r") ** 2],
    "matrix_rank": [lambda a: int(np.linalg.matrix_rank(a))], "matrix_power": [lambda a: np.linalg.matrix_power(spd(a), 3)],
    "multi_dot": [lambda a: np.linalg.multi_dot([a, B.T, a])], "matrix_transpose": [lambda a: np.linalg.matrix_transpose(a)],
    "vector_norm": [lambda a: np.linalg.vector_norm(a), lambda a: np.linalg.vector_norm(a, axis=1, keepdims=True, ord=3)],
    "matrix_norm": [lambda a: np.linalg.matrix_norm(a), lambda a: np.linalg.matrix_norm(a, ord=2), lambda a: np.linalg.matrix_norm(a, ord="nuc")],
    "tensorsolve": [lambda a: np.linalg.tensorsolve(np.eye(6).reshape(2, 3, 2, 3) + a[:, :, None, None] * 0.1, B)],
    "tensorinv": [lambda a: np.linalg.tensorinv(np.eye(6).reshape(2, 3, 6) + a[:, :, None] * 0.1)],
    "eig": [lambda a: np.linalg.eig(spd(a))[0]], "eigvals": [lambda a: np.linalg.eigvals(spd(a))],
    "nansum": [lambda a: np.nansum(gaps(a)), lambda a: np.nansum(gaps(a), axis=1, keepdims=True)], "nanprod": [lambda a: np.nanprod(gaps(a), 0)],
    "nanmax": [lambda a: np.nanmax(gaps(a), axis=1)], "nanmin": [lambda a: np.nanmin(gaps(a))], "nanmean": [lambda a: np.nanmean(gaps(a), axis=1)],
    "nanvar": [lambda a: np.nanvar(gaps(a), axis=1), lambda a: np.nanvar(gaps(a), ddof=1)],
    "nanstd": [lambda a: np.nanstd(gaps(a), axis=1, keepdims=True)],
    "nancumsum": [lambda a: np.nancumsum(gaps(a)), lambda a: np.nancumsum(gaps(a), 1)], "nancumprod": [lambda a: np.nancumprod(gaps(a), 0)],
    "quantile": [lambda a: np.quantile(a, 0.3), lambda a: np.quantile(a, [0.1, 0.9], axis=1), lambda a: np.quantile(a, 0.5, (0, 1), keepdims=True),
                 lambda a: np.quantile(a, 0.4, 0, method="higher"), lambda a: np.quantile(np.stack([a, B]), [[0.1, 0.5]], axis=(0, 2))],
    "percentile": [lambda a: np.percentile(a, 30), lambda a: np.percentile(a, [10, 90], axis=0)],
    "nanquantile": [lambda a: np.nanquantile(gaps(a), 0.3, axis=1)], "nanpercentile": [lambda a: np.nanpercentile(gaps(a), 30)],
    "median": [lambda a: np.median(a), lambda a: np.median(a, axis=1), lambda a: np.median(a, (0, 1), keepdims=True)],
    "nanmedian": [lambda a: np.nanmedian(gaps(a), axis=1), lambda a: np.nanmedian(gaps(a))],
    "ptp": [lambda a: np.ptp(a), lambda a: np.ptp(a, axis=1)],
    "average": [lambda a: np.average(a), lambda a: np.average(a, axis=0, weights=[1.0, 3.0]), lambda a: np.average(a, 1, B**2, keepdims=True),
                lambda a: np.average(a, axis=1, weights=V**2, returned=True)[1]],
    "cov": [lambda a: np.cov(a), lambda a: np.cov(a, B, rowvar=False), lambda a: np.cov(a, bias=True, aweights=V**2), lambda a: np.cov(a[0])],
    "corrcoef": [lambda a: np.corrcoef(a), lambda a: np.corrcoef(a, V)],
    "gradient": [lambda a: np.gradient(a, axis=1), lambda a: np.gradient(a)[0], lambda a: np.gradient(a, V**2 + [0, 1, 9], axis=1, edge_order=2),
                 lambda a: np.gradient(a, 0.5, 2.0)[1]],
    "cumulative_sum": [lambda a: np.cumulative_sum(a, axis=1), lambda a: np.cumulative_sum(a[0], include_initial=True)],
    "cumulative_prod": [lambda a: np.cumulative_prod(a, axis=0, include_initial=True)],
    "polyval": [lambda a: np.polyval([2.0, -1.0, 3.0], a), lambda a: np.polyval(a[0], 1.5)],
    "vander": [lambda a: np.vander(a[0]), lambda a: np.vander(a[0], 2, True)],
    "correlate": [lambda a: np.correlate(a[0], V[:2]), lambda a: np.correlate(V, a[0], "full"), lambda a: np.correlate(a[0], V, mode="same")],
    "ediff1d": [lambda a: np.ediff1d(a), lambda a: np.ediff1d(a, to_begin=[5.0, 6.0], to_end=a[0])],
    "unwrap": [lambda a: np.unwrap(a * 4), lambda a: np.unwrap(a, axis=0, period=1.5)], "i0": [lambda a: np.i0(a)],
    "isrealobj": [lambda a: np.isrealobj(a)],
    "take": [lambda a: np.take(a, [[0, 5], [2, -1]]), lambda a: np.take(a, 1, axis=0), lambda a: np.take(a, [4, -5], 1, mode="wrap")],
    "take_along_axis": [lambda a: np.take_along_axis(a, np.argsort(A, axis=1), 1), lambda a: np.take_along_axis(a, np.array([[0, -1, 1]]), 0)],
    "repeat": [lambda a: np.repeat(a, 2), lambda a: np.repeat(a, [1, 3], axis=0), lambda a: np.repeat(a, 2, -1)],
    "delete": [lambda a: np.delete(a, 1), lambda a: np.delete(a, [0, 2], axis=1), lambda a: np.delete(a, slice(0, 2), 1)],
    "compress": [lambda a: np.compress([False, True], a, axis=0), lambda a: np.compress([True, False, True], a)],
    "extract": [lambda a: np.extract(A > 0, a)], "append": [lambda a: np.append(a, V), lambda a: np.append(a, B, axis=0)],
    "insert": [lambda a: np.insert(a, 2, 7.0), lambda a: np.insert(a, 1, V, axis=0), lambda a: np.insert(a, [0, 2], [[1.0], [2.0]], axis=1),
               lambda a: np.insert(a, [1, 3], a[0, :2]), lambda a: np.insert(a, slice(0, 2), 9.0, axis=1),
               lambda a: np.insert(a, 1, [[1.0, 2.0], [3.0, 4.0]], axis=1)],
    **{f"atleast_{n}d": [lambda a, n=n: getattr(np, f"atleast_{n}d")(a), lambda a, n=n: getattr(np, f"atleast_{n}d")(a[0], a[0, 0])[1]]
       for n in (1, 2, 3)},
    "split": [lambda a: np.split(a, 3, axis=1)[1], lambda a: np.split(a, [1, 1, 2], axis=1)[2], lambda a: np.split(a, [2, 5], axis=1)[2]],
    "array_split": [lambda a: np.array_split(a, 2, axis=1)[0]], "vsplit": [lambda a: np.vsplit(a, 2)[1]],
    "hsplit": [lambda a: np.hsplit(a, [1])[1], lambda a: np.hsplit(a[0], 3)[2]], "dsplit": [lambda a: np.dsplit(a[None], 3)[1]],
    "meshgrid": [lambda a: np.meshgrid(a[0], V[:2])[0], lambda a: np.meshgrid(V, a[0], a[1], indexing="ij")[1],
                 lambda a: np.meshgrid(a[0], V, sparse=True)[0], lambda a: np.meshgrid(a[0])[0]],
    "broadcast_arrays": [lambda a: np.broadcast_arrays(a[:, :1], V)[0]],
    "block": [lambda a: np.block([[a, B], [B, a]]), lambda a: np.block([a[0], 2.0]), lambda a: np.block([[a[0]], [V]])],
    "select": [lambda a: np.select([A > 1, A > 0], [a, a**2], default=-1.0)],
    "piecewise": [lambda a: np.piecewise(a, [A > 1, A < 0], [np.sin, np.square, 5.0]), lambda a: np.piecewise(a, [A > 1], [lambda x: x * 2])],
    "choose": [lambda a: np.choose([1, 0, 1], a), lambda a: np.choose([3, -1, 1], [a[0], V], mode="clip")],
    "partition": [lambda a: np.sort(np.partition(a, 1)[:, :2])], "unique": [lambda a: np.unique(a), lambda a: np.unique(a, axis=0),
                                                                         lambda a: np.unique(np.append(a, a), return_counts=True)[0]],
    "linspace": [lambda a: np.linspace(a[0], V, 4), lambda a: np.linspace(0.0, a[0, 0], 5, endpoint=False),
                 lambda a: np.linspace(a[0], 2.0, 3, axis=1),
                 lambda a: np.linspace(a[0, 0], 2.0, 5, retstep=True)[1]],
    "apply_along_axis": [lambda a: np.apply_along_axis(lambda r: r * r.sum(), 1, a), lambda a: np.apply_along_axis(lambda r: r[0] - r[1], 0, a),
                         lambda a: np.apply_along_axis(lambda r: np.outer(r, r), 1, np.stack([a, B]))],
    "fill_diagonal": [lambda a: written(np.fill_diagonal, a, 5.0)],
    "put_along_axis": [lambda a: written(np.put_along_axis, a, np.array([[2], [0]]), 9.0, 1)],
    "copyto": [lambda a: written(np.copyto, a, V), lambda a: written(np.copyto, a, 1.0, where=A > 0)],
    "rot90": [lambda a: np.rot90(a), lambda a: np.rot90(a[None], 2, (0, 2))], "fliplr": [lambda a: np.fliplr(a)], "flipud": [lambda a: np.flipud(a)],
    "copy": [lambda a: np.copy(a)], "rollaxis": [lambda a: np.rollaxis(a[None], 2), lambda a: np.rollaxis(a[None], 0, 2)],
    "diagflat": [lambda a: np.diagflat(a, 1)],
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


def gaps(a):
    return np.where(A == 0.5, np.nan, a)


def written(function, a, *args, **words):
    a = np.copy(a)
    function(a, *args, **words)
    return a


def test_every_function_of_the_protocol_is_tested():
    assert {function.__name__ for function in FUNCTIONS_OF_NUMPY} - {function.__name__ for function in NOT_DIFFERENTIABLE} == set(CALLS)


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
