"""The elementwise functions of matrix calculus: their notation, values and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ElementwiseFunction:
    """A function of one number, with its notation.

    `derivative` is a sum of products (coefficient, factors). A factor is (base, power); its base is the name of a function, "" for the argument
    itself, or (sign, name, power) for 1 + sign name(x)^power.
    """

    name: str
    text: str
    latex: str
    numpy: str
    sympy: Callable[[Any, Any], Any]
    derivative: tuple[tuple[Any, tuple[tuple[Any, Any], ...]], ...]


def _named(name: str) -> Callable[[Any, Any], Any]:
    return lambda sp, x: getattr(sp, name)(x)


HALF = (-1, 2)
_ROWS = (
    ("exp", "exp", r"\exp", "np.exp({})", _named("exp"), ((1, (("exp", 1),)),)),
    ("log", "log", r"\log", "np.log({})", _named("log"), ((1, (("", -1),)),)),
    ("sin", "sin", r"\sin", "np.sin({})", _named("sin"), ((1, (("cos", 1),)),)),
    ("cos", "cos", r"\cos", "np.cos({})", _named("cos"), ((-1, (("sin", 1),)),)),
    ("tan", "tan", r"\tan", "np.tan({})", _named("tan"), ((1, (("cos", -2),)),)),
    ("sinh", "sinh", r"\sinh", "np.sinh({})", _named("sinh"), ((1, (("cosh", 1),)),)),
    ("cosh", "cosh", r"\cosh", "np.cosh({})", _named("cosh"), ((1, (("sinh", 1),)),)),
    ("tanh", "tanh", r"\tanh", "np.tanh({})", _named("tanh"), ((1, (((-1, "tanh", 2), 1),)),)),
    ("asin", "asin", r"\arcsin", "np.arcsin({})", _named("asin"), ((1, (((-1, "", 2), HALF),)),)),
    ("acos", "acos", r"\arccos", "np.arccos({})", _named("acos"), ((-1, (((-1, "", 2), HALF),)),)),
    ("atan", "atan", r"\arctan", "np.arctan({})", _named("atan"), ((1, (((1, "", 2), -1),)),)),
    ("asinh", "asinh", r"\operatorname{arsinh}", "np.arcsinh({})", _named("asinh"), ((1, (((1, "", 2), HALF),)),)),
    ("atanh", "atanh", r"\operatorname{artanh}", "np.arctanh({})", _named("atanh"), ((1, (((-1, "", 2), -1),)),)),
    ("sigmoid", "σ", r"\sigma", "1 / (1 + np.exp(-({})))", lambda sp, x: 1 / (1 + sp.exp(-x)), ((1, (("sigmoid", 1), ((-1, "sigmoid", 1), 1))),)),
    ("softplus", "softplus", r"\operatorname{softplus}", "np.logaddexp(0, {})", lambda sp, x: sp.log(1 + sp.exp(x)), ((1, (("sigmoid", 1),)),)),
    ("abs", "abs", r"\operatorname{abs}", "np.abs({})", lambda sp, x: abs(x), ((1, (("sign", 1),)),)),
    ("sign", "sign", r"\operatorname{sign}", "np.sign({})", _named("sign"), ()),
    ("relu", "relu", r"\operatorname{relu}", "np.maximum({}, 0)", lambda sp, x: (x + abs(x)) / 2, ((1, (("step", 1),)),)),
    ("step", "step", r"\operatorname{step}", "np.heaviside({}, 0)", lambda sp, x: (1 + sp.sign(x)) / 2, ()),
)

FUNCTIONS = {row[0]: ElementwiseFunction(*row) for row in _ROWS}
