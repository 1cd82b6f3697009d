"""The check of complex numbers: the mistakes that it finds, right ops that pass, and ops to which it does not apply."""

import numpy as np
import pytest

import symgrad
from symgrad.graph.op import REGISTRY
from symgrad.testing import CheckFailure, check_complex
from tests.support.functions import saving

QUICK = {"elementwise": True, "framework": "numpy", "shrink": False, "complex": True}
conj = np.conj


def real_like(x, y):
    """A gradient for an argument: its real part where that is real."""
    return y if np.iscomplexobj(x) else np.real(y)


RIGHT = {
    "square": (np.square, lambda g, x: g * conj(2 * x), lambda ts, x: 2 * x * ts[0]),
    "exp": (np.exp, lambda g, x: g * conj(np.exp(x)), lambda ts, x: np.exp(x) * ts[0]),
    "a complex factor": (lambda x: 1j * x, lambda g, x: real_like(x, -1j * g), lambda ts, x: 1j * ts[0]),
    "conj": (np.conj, lambda g, x: conj(g), lambda ts, x: conj(ts[0])),
    "square of the size": (lambda x: (x * conj(x)).real, lambda g, x: 2 * x * g, lambda ts, x: 2 * (conj(x) * ts[0]).real),
    "abs": (np.abs, lambda g, x: g * x / np.where(x == 0, 1, np.abs(x)), lambda ts, x: (conj(x) * ts[0]).real / np.where(x == 0, 1, np.abs(x))),
    "real": (lambda x: np.real(x).copy(), lambda g, x: g + 0 * x, lambda ts, x: np.real(ts[0]).copy()),
    "imag": (lambda x: np.imag(x).copy(), lambda g, x: real_like(x, 1j * g), lambda ts, x: np.imag(ts[0]).copy()),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_complex_functions(name):
    function, pullback, pushforward = RIGHT[name]
    assert check_complex(function, pullback=pullback, pushforward=pushforward, **QUICK).verdict == "passed"


WRONG = {
    "the conjugate forgotten": ("square", {"pullback": lambda g, x: g * 2 * x}),
    "the cotangent conjugated": ("square", {"pullback": lambda g, x: conj(g) * conj(2 * x)}),
    "the pushforward conjugated": ("square", {"pushforward": lambda ts, x: conj(2 * x) * ts[0]}),
    "both by one part in a million": ("exp", {"pullback": lambda g, x: 1.000001 * g * conj(np.exp(x)),
                                              "pushforward": lambda ts, x: 1.000001 * np.exp(x) * ts[0]}),
    "the imaginary part of the gradient": ("exp", {"pullback": lambda g, x: real_like(x, np.real(g * conj(np.exp(x))) + 0j)}),
    "the conjugate of conj": ("conj", {"pullback": lambda g, x: g}),
    "half of the size": ("square of the size", {"pullback": lambda g, x: x * g}),
    "the sign of imag": ("imag", {"pullback": lambda g, x: real_like(x, -1j * g)}),
    "the imaginary part dropped": ("square", {"function": lambda x: (x * x).real + 0j if np.iscomplexobj(x) else x * x}),
    "another value off the real axis": ("square", {"function": lambda x: x * x + 1e-6j * np.imag(x)}),
    "another value on the real axis": ("square", {"function": lambda x: x * x + (1e-6 if np.iscomplexobj(x) else 0)}),
    "both conjugates forgotten": ("exp", {"pullback": lambda g, x: g * np.exp(x), "pushforward": lambda ts, x: conj(np.exp(x)) * ts[0]}),
}


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
