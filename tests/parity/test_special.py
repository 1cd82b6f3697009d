"""The special functions against torch: values, dtypes, gradients and the names of nodes."""

import numpy as np
import pytest
import torch

import symgrad

UNARY = {"erf": (-3, 3), "erfc": (-3, 3), "ndtr": (-3, 3), "gammaln": (0.1, 9), "digamma": (0.1, 9), "psi": (0.1, 9), "logit": (0.1, 0.9),
         "entr": (0.1, 3),
         "erfcx": (-2, 3), "erfinv": (-0.9, 0.9), "ndtri": (0.1, 0.9), "log_ndtr": (-9, 3),
         "expit": (-3, 3), "exp2": (-3, 3), "expm1": (-3, 3), "log1p": (-0.5, 3), "sinc": (-3, 3), "round": (-3, 3)}


def compared(call, *xs):
    """Compare the value and the gradients of a function of both libraries."""
    found = []
    for library in (torch, symgrad):
        tensors = [library.tensor(x, requires_grad=x.dtype.kind == "f") for x in xs]
        y = call(library, *tensors)
        leaves = [t for t in tensors if t.requires_grad]
        found.append([v.detach().numpy() for v in (y, *(library.autograd.grad(y.sum(), leaves) if leaves else ()))])
    for a, b in zip(*found):
        assert a.dtype == b.dtype and a.shape == b.shape
        digits = 1e-8 if a.dtype == np.float64 else 1e-5  # torch's trigamma has nine digits
        np.testing.assert_allclose(b, a, rtol=digits, atol=digits)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tensor(name, dtype):
    for shape in ((), (3,), (2, 3), (0, 2)):
        compared(lambda library, x: getattr(library.special, name)(x), np.random.default_rng(0).uniform(*UNARY[name], shape).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_with_parameters(dtype):
    x = np.random.default_rng(0).uniform(2, 5, (2, 3)).astype(dtype)
    for n in (0, 1, 2):
        compared(lambda library, x, n=n: library.special.polygamma(n, x), x)
    compared(lambda library, x: library.special.multigammaln(x, 3), x)
    compared(lambda library, x: library.special.logit(x / 5, eps=0.45), x)
    for name in ("xlogy", "xlog1py"):
        compared(lambda library, x, y, name=name: getattr(library.special, name)(x, y), x, x[0])
    with pytest.raises(RuntimeError, match="greater than or equal to 1"):
        symgrad.mvlgamma(symgrad.tensor(x), 0)


def test_the_incomplete_gamma_functions():
    """Where torch has the derivative, by the second argument, and at the ends."""
    x = np.random.default_rng(0).uniform(0.5, 5, (2, 3))
    for name in ("gammainc", "gammaincc"):
        compared(lambda library, x, name=name: getattr(library.special, name)(library.tensor(1.7, dtype=library.float64), x), x)
    for name in ("igamma", "igammac"):
        compared(lambda library, x, name=name: getattr(library.tensor(1.7, dtype=library.float64), name)(x), x)
        ends = np.array([0.0, 0.5, 1.0, 2.0, np.inf, -1.0])
        a, b = np.meshgrid(ends, ends)
        a, b = a[np.isfinite(a) | np.isfinite(b)], b[np.isfinite(a) | np.isfinite(b)]
        np.testing.assert_allclose(getattr(symgrad, name)(symgrad.tensor(a), symgrad.tensor(b)), getattr(torch, name)(*map(torch.tensor, (a, b))))


def test_functions_without_derivative_in_torch():
    x = np.random.default_rng(0).uniform(-9, 9, (2, 3))
    value = symgrad.special.spherical_bessel_j0(symgrad.tensor(x)).numpy()
    np.testing.assert_allclose(value, torch.special.spherical_bessel_j0(torch.tensor(x)).numpy())
    value = symgrad.special.airy_ai(symgrad.tensor(x)).numpy()
    np.testing.assert_allclose(value, torch.special.airy_ai(torch.tensor(x)).numpy(), rtol=1e-4)  # torch's has an error of 1.6e-5 near -4


@pytest.mark.parametrize("name", [*sorted(UNARY.keys() - {"round", "sinc"}), "airy_ai",
                                  "bessel_j0", "i0", "i1e", "modified_bessel_k0", "scaled_modified_bessel_k0",
                                  "spherical_bessel_j0"])
def test_integers_become_floats(name):
    value, true = (getattr(library.special, name)(library.tensor([0, 1])).numpy() for library in (symgrad, torch))
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, true, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(symgrad.polygamma(1, symgrad.tensor([1, 2])).numpy(), torch.polygamma(1, torch.tensor([1, 2])).numpy(), rtol=1e-6)


def test_zero_times_the_logarithm_of_zero_is_zero():
    x, y = (symgrad.tensor([0.0, 0.0, 0.0], requires_grad=True), symgrad.tensor([0.0, 2.0, np.inf], requires_grad=True))
    out = symgrad.xlogy(x, y)
    out.sum().backward()
    assert out.tolist() == [0, 0, 0] and x.grad.tolist() == [-np.inf, np.log(2), np.inf] and y.grad.tolist() == [0, 0, 0]
    assert symgrad.special.entr(symgrad.tensor([-1.0, 0.0, 1.0])).tolist() == [-np.inf, 0, 0]


def test_the_logarithm_of_gamma_has_all_digits_next_to_its_zeros():
    assert symgrad.lgamma(symgrad.tensor(1 + 2.0**-40)).item() == pytest.approx(-5.249745890076018e-13, rel=1e-14)
    assert symgrad.lgamma(symgrad.tensor(1e-310)).item() == pytest.approx(713.801378828154, rel=1e-14)


def test_methods_write_in_place():
    for name in ("erf", "erfc", "erfinv", "lgamma", "digamma", "logit", "xlogy", "igamma", "igammac", "i0"):
        x = symgrad.tensor([0.3, 0.7])
        more = (x.clone(),) if name in ("xlogy", "igamma", "igammac") else ()
        y = getattr(x, name)(*more)
        assert getattr(x, f"{name}_")(*more) is x and x.tolist() == y.tolist()


def test_formulas_in_text_know_the_functions():
    import sympy

    x, y = sympy.symbols("x y", real=True)
    assert symgrad.to_sympy("erf(x)*lgamma(y)") == sympy.erf(x) * sympy.loggamma(y)
    assert symgrad.to_sympy("xlogy(x, y)").subs({x: 0, y: 0}) == 0
