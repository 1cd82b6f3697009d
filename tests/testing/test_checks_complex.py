"""The check of complex numbers: the mistakes that it finds, right ops that pass, and ops to which it does not apply."""

import numpy as np
import pytest

import symgrad
from symgrad.graph.op import REGISTRY
from symgrad.testing import CheckFailure, check_complex
from tests.support.functions import saving
from tests.support.lines import lines

QUICK = {"elementwise": True, "framework": "numpy", "shrink": False, "complex": True}
conj = np.conj


def real_like(x, y):
    """A gradient for an argument: its real part where that is real."""
    return y if np.iscomplexobj(x) else np.real(y)


RIGHT = {name: tuple(map(eval, rules)) for name, *rules in lines("complex_rules")}


@pytest.mark.parametrize("name", RIGHT)
def test_right_complex_functions(name):
    function, pullback, pushforward = RIGHT[name]
    assert check_complex(function, pullback=pullback, pushforward=pushforward, **QUICK).verdict == "passed"


WRONG = {name: (of, eval(changes)) for name, of, changes in lines("wrong_complex_rules")}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("forward", [True, False], ids=["with a pushforward", "without"])
def test_wrong_complex_functions(name, forward):
    of, changes = WRONG[name]
    function, pullback, pushforward = RIGHT[of]
    claims = {"pullback": pullback, "pushforward": pushforward, **changes}
    function = claims.pop("function", function)
    if not forward:
        if set(changes) == {"pushforward"}:
            return
        del claims["pushforward"]
    with pytest.raises(CheckFailure):
        check_complex(function, **claims, **QUICK)


def test_derivatives_that_conjugate_symmetry_alone_gives_away():
    with pytest.raises(CheckFailure, match="f\\(conj z\\) is not conj f"):
        check_complex(lambda x: x * x + 1e-3 * (np.imag(x) < 0), pullback=lambda g, x: g * conj(2 * x), **QUICK)


def test_a_second_derivative_without_a_conjugate():
    Field = saving(lambda z: z * z, lambda g, z: Factor.apply(z.conj() if z.is_complex() else z, g), "Field")
    Factor = saving(lambda w, g: 2 * w * g, lambda h, w, g: (2 * g * h, 2 * w.conj() * h if w.is_complex() else 2 * w * h), "Factor")

    with pytest.raises(CheckFailure, match="the second derivative is not what finite differences say"):
        check_complex(Field, elementwise=True, shrink=False, complex=True)


def test_when_it_does_not_apply():
    assert "it takes no complex numbers" in check_complex(REGISTRY["floor"]).reason
    with pytest.raises(CheckFailure, match="floor"):
        check_complex(np.floor, **QUICK)
    assert check_complex(symgrad.exp, complex=False).reason == "it is not claimed for complex numbers"
    assert check_complex(np.sin, **QUICK).verdict == "passed"  # the value on the real axis is all there is to see
