"""Ends, digits and methods of the special functions. Calls of one line are in `calls/special.txt`."""

import numpy as np
import pytest

import symgrad


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
