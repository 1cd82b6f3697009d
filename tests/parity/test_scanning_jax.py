"""Functions of JAX scanned: XLA takes subnormal numbers for zero, which is no fault of theirs."""

import jax.numpy as jnp
import pytest

from symgrad.scanning import accuracy

TINY = 2.2250738585072014e-308


def scan(function, formula, order=1):
    return accuracy(function, (-5.0, 5.0), formula=formula, points=12, order=order, seconds=4, progress=False)


@pytest.mark.parametrize("formula, function", [("x*exp(-x)", lambda x: x * jnp.exp(-x)), ("x/1024", lambda x: jnp.multiply(x, 2.0**-10)),
                                               ("sin(x)", jnp.sin)],
                         ids=["product", "quotient", "sin"])
def test_flushing_subnormal_numbers_is_not_faulted(function, formula):
    report = scan(function, formula, order=2)
    assert {w.verdict for w in report.worst} <= {"accurate", "ill-conditioned"}, str(report)  # the derivative of the product is 0 at 1
    assert not any("subnormal" in s.region for s in report.samples) and any("tiny" in s.region for s in report.samples)
    assert "no subnormal numbers were drawn: jax takes them for zero" in report.notes


def test_what_is_taken_for_zero_beyond_that_is_faulted():
    report = scan(lambda x: jnp.where(jnp.abs(x) < 1e-300, 0.0, x), "x")
    assert report.of_order(0).verdict == "digits are lost" and TINY <= abs(report.of_order(0).point[0]) < 1e-300
