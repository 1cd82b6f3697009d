"""The Fourier transforms: values of NumPy's, derivatives in both modes, every carrier, and torch's errors."""

import numpy as np
import pytest

import symgrad
from symgrad import autograd, fft, func
from symgrad.carriers import numeric
from symgrad.carriers.transforms import TRANSFORMS
from symgrad.ops import convolution

RNG = np.random.default_rng(0)
REAL, COMPLEX = RNG.standard_normal((3, 4)), RNG.standard_normal((3, 4)) + 1j * RNG.standard_normal((3, 4))
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")


def input_of(name):
    return REAL if name.startswith(("rfft", "ihfft")) else COMPLEX


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ONE + SEVERAL)
def test_values_are_those_of_numpy(name, norm):
    x = input_of(name)
    sizes = [{}, {"n": 3}, {"n": 7}] if name in ONE else [{}, {"s": (2, 5)}]
    for given in sizes:
        for dims in [{"dim": 0}, {"dim": -1}] if name in ONE else [{"dim": (1, 0)}, {"dim": (0, 1)}]:
            axes = {"axis" if name in ONE else "axes": dims["dim"]}
            got = getattr(fft, name)(symgrad.tensor(x), **given, **dims, norm=norm).numpy()
            assert np.allclose(got, getattr(np.fft, name)(x, **given, **axes, norm=norm), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", [*ONE, *SEVERAL, "hfft2", "hfftn", "ihfft2", "ihfftn"])
def test_derivatives_of_both_modes_are_those_of_the_linear_map(name):
    function, x = getattr(fft, name), symgrad.tensor(input_of(name), requires_grad=True)
    t = symgrad.tensor(RNG.standard_normal((3, 4)) + (0 if input_of(name) is REAL else 1j * RNG.standard_normal((3, 4))))
    y, pushed = func.jvp(function, (x,), (t,))
    assert symgrad.allclose(pushed, function(t))
    g = symgrad.tensor(RNG.standard_normal(y.shape) + (1j * RNG.standard_normal(y.shape) if y.is_complex() else 0))
    (pulled,) = autograd.grad(function(x), x, g)
    assert pulled.dtype == x.dtype
    product = lambda a, b: np.sum((a.detach().numpy().conj() * b.detach().numpy()).real)  # noqa: E731
    assert product(g, pushed) == pytest.approx(product(pulled, t), rel=1e-12)


def test_formulas_and_batches():
    x = symgrad.tensor([1.0, 2.0, -0.5, 3.0], requires_grad=True, symbol="x")
    assert str(fft.rfft(x)[1].real.expr) == "x_0 - x_2"
    rows = symgrad.tensor(RNG.standard_normal((5, 4)))
    assert symgrad.allclose(func.vmap(fft.fft)(rows), fft.fft(rows))
    assert symgrad.allclose(symgrad.compile(lambda x: (fft.fft(x).abs() ** 2).sum())(rows), 4 * (rows**2).sum())


@pytest.mark.parametrize("kind, text, call", [
    (RuntimeError, "a size .* 0", lambda x: fft.fft(x, 0)), (RuntimeError, "norm .*'x'", lambda x: fft.fft(x, norm="x")),
    (IndexError, "Dimension out of range", lambda x: fft.fft(x, dim=3)), (IndexError, r"\[\]", lambda x: fft.fft(x[0, 0])),
    (RuntimeError, "rfft: .*complex128", lambda x: fft.rfft(x + 1j)), (RuntimeError, "fftn: .*distinct", lambda x: fft.fftn(x, dim=(0, -2))),
    (RuntimeError, "fftn: .* 2, not 3", lambda x: fft.fftn(x, s=(2, 2, 2))),
    (RuntimeError, "fftn: .* not 2", lambda x: fft.fftn(x, s=(2, 2), dim=(0,))),
    (RuntimeError, "rfftn: .* 0", lambda x: fft.rfftn(x, dim=())), (RuntimeError, "float16", lambda x: fft.fft(x.half())),
    (TypeError, "fft: n must be", lambda x: fft.fft(x, 2.0)), (TypeError, "fft: input .*list", lambda x: fft.fft([1.0])),
])
def test_errors_name_the_argument_and_the_value(kind, text, call):
    with pytest.raises(kind, match=text):
        call(symgrad.ones(2, 3))


def test_frequencies_and_their_order():
    for n in range(8):
        assert np.array_equal(fft.rfftfreq(n, 0.5).numpy()[:n], np.arange(n // 2 + 1)[:n] / (n * 0.5) if n else [])
        assert np.allclose(fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5) if n else [])
    x = symgrad.tensor(RNG.standard_normal((3, 4, 5)))
    for dim in (None, 0, (0, 2)):
        assert np.array_equal(fft.fftshift(x, dim).numpy(), np.fft.fftshift(x.numpy(), dim))
        assert symgrad.equal(fft.ifftshift(fft.fftshift(x, dim), dim), x)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (8,), (3, 4), (4, 5), (2, 3, 6)])
def test_transforms_of_arrays_agree_with_the_rules(shape, inverse, half):
    """The table of transforms for arrays of double precision, against the rules of the ops, in values and transposes."""
    rng, dims = np.random.default_rng(0), tuple(range(len(shape)))[::-1]
    n, real = shape[dims[-1]], rng.standard_normal(shape)
    value, _, transpose, _ = TRANSFORMS["fourier_of_real"]
    spectrum = value(real, dims, inverse, 3.0, half)
    assert_near(spectrum, convolution._of_real(numeric, real, dims, inverse, 3.0, half))
    g = rng.standard_normal(spectrum.shape) + 1j * rng.standard_normal(spectrum.shape)
    given = g.copy()
    assert_near(transpose(g, shape, dims, inverse, 3.0, half), convolution._of_real_transpose(numeric, g, shape, dims, inverse, 3.0, half))
    if half:
        value, _, transpose, _ = TRANSFORMS["fourier_to_real"]
        assert_near(value(g, dims, inverse, 3.0, n), convolution._to_real(numeric, g, dims, inverse, 3.0, n))
        assert_near(transpose(real, g.shape, dims, inverse, 3.0, n), convolution._to_real_transpose(numeric, real, g.shape, dims, inverse, 3.0, n))
    np.testing.assert_array_equal(g, given)  # nothing was written to an argument


def assert_near(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=0, atol=2e-15 * np.abs(b).max())
