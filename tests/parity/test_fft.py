"""The Fourier transforms against torch: values, dtypes, gradients and errors."""

import itertools

import numpy as np
import pytest
import torch

import symgrad

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


def outcome(library, name, x, given):
    """The value and the gradient of a transform, or the error."""
    t = library.tensor(x, requires_grad=True)
    try:
        y = getattr(library.fft, name)(t, **given)
    except (RuntimeError, IndexError) as error:
        return (type(error),)
    weight = (np.arange(y.numel()) + (1j if y.is_complex() else 0)).astype(np.result_type(x.real, 1j) if y.is_complex() else x.real.dtype)
    (g,) = library.autograd.grad(y, t, library.tensor(weight.reshape(tuple(y.shape))))
    return [np.asarray(v.detach().resolve_conj().numpy()) for v in (y, g)]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32, np.complex64])
@pytest.mark.parametrize("name", [name + more for name in ONE for more in ("", "2", "n")])
def test_transforms_are_those_of_torch(name, dtype):
    rng, digits = np.random.default_rng(0), 1e-12 if dtype in (np.float64, np.complex128) else 1e-4
    sizes = {"n": (None, 3, 7, 0)} if name in ONE else {"s": (None, (3, 4), (2, -1))}
    dims = (-1, 0, 3) if name in ONE else ((0, 1), (-1, -2), (0, 0), (0,))
    for shape in ((2, 3), (4, 5)):
        x = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)
        for (word, values), dim, norm in itertools.product(sizes.items(), dims, (None, "ortho", "forward", "x")):
            for size in values:
                given = {word: size, "dim": dim, "norm": norm}
                theirs, ours = outcome(torch, name, x, given), outcome(symgrad, name, x, given)
                if isinstance(theirs, tuple):
                    assert isinstance(ours, tuple), given
                    assert issubclass(ours[0], theirs[0]), given
                    continue
                for a, b in zip(theirs, ours):
                    assert a.dtype == b.dtype, given
                    assert np.allclose(a, b, rtol=digits, atol=digits), given
