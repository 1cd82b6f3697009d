"""Definitions of SymPy's functions that have no op of their own, by other functions or by an op with parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import sympy
from sympy.codegen import cfunctions

from symgrad.algebra import stable_functions as stable

__all__ = ["Call", "DEFINITIONS", "HALF", "Unknown"]

HALF = sympy.S.Half


class Call(NamedTuple):
    """An op of the registry by name, applied to arguments that are calls or SymPy expressions."""

    op: str
    args: tuple[Any, ...]


class Unknown(TypeError):
    """The error for a SymPy function without an op."""


def _log1mexp(u: Any) -> Any:
    return sympy.Piecewise((stable.log1p(-sympy.exp(u)), u < -1), (sympy.log(-stable.expm1(u)), True))


def _log_cosh(u: Any) -> Any:
    near = stable.log1p(2 * sympy.sinh(u / 2) ** 2)
    size = sympy.Abs(u)
    return sympy.Piecewise((near, size < 1), (size + stable.log1p(sympy.exp(-2 * size)) - sympy.log(2), True))


def _heaviside(u: Any, middle: Any = HALF) -> Any:
    half = (1 + sympy.sign(u)) / 2
    return half if middle == HALF else sympy.Piecewise((half, sympy.Ne(u, 0)), (middle, True))


def _reciprocal(function: Any) -> Callable[[Any], Any]:
    return lambda u: 1 / function(u)


def _of_inverse(function: Any) -> Callable[[Any], Any]:
    return lambda u: function(1 / u)


def _of_order(op: str) -> Callable[[Any, Any], Any]:
    """A Bessel function by its op, whose parameter is the order."""
    def call(order: Any, u: Any) -> Any:
        if not order.is_Number:
            raise Unknown(f"{op} needs a number as order, got {order}; there is no derivative by the order")
        return Call(op, (u, order))

    return call


def _incomplete_gamma(regularized: str) -> Callable[[Any, Any], Any]:
    """An incomplete gamma function as the regularized one times Γ."""
    return lambda a, x: Call("mul", (Call("gamma", (a,)), Call(regularized, (a, x))))


# Functions without an op, defined by other functions, or with an op that has parameters.
DEFINITIONS: dict[Any, Callable[..., Any]] = {
    sympy.sec: _reciprocal(sympy.cos), sympy.csc: _reciprocal(sympy.sin), sympy.cot: lambda u: sympy.cos(u) / sympy.sin(u),
    sympy.csch: _reciprocal(sympy.sinh), sympy.coth: _reciprocal(sympy.tanh),
    sympy.asec: _of_inverse(sympy.acos), sympy.acsc: _of_inverse(sympy.asin), sympy.acot: _of_inverse(sympy.atan),
    sympy.asech: _of_inverse(sympy.acosh), sympy.acsch: _of_inverse(sympy.asinh), sympy.acoth: _of_inverse(sympy.atanh),
    sympy.sinc: lambda u: Call("sinc", (u / sympy.pi,)),
    sympy.frac: lambda u: sympy.Mod(u, 1), sympy.Heaviside: _heaviside,
    cfunctions.Sqrt: sympy.sqrt, cfunctions.Cbrt: sympy.cbrt, cfunctions.fma: lambda a, b, c: a * b + c,
    sympy.Xor: lambda a, *rest: functools.reduce(lambda p, q: sympy.Or(sympy.And(p, sympy.Not(q)), sympy.And(sympy.Not(p), q)), rest, a),
    sympy.Nand: lambda *args: sympy.Not(sympy.And(*args)), sympy.Nor: lambda *args: sympy.Not(sympy.Or(*args)),
    sympy.Implies: lambda a, b: sympy.Or(sympy.Not(a), b),
    sympy.elliptic_e: lambda *args: Call("ellipeinc" if len(args) == 2 else "ellipe", args),
    sympy.zeta: lambda order: Call("zeta", (order, sympy.S.One)),
    sympy.lowergamma: _incomplete_gamma("gammainc"), sympy.uppergamma: _incomplete_gamma("gammaincc"),
    sympy.besselj: _of_order("bessel_j"), sympy.bessely: _of_order("bessel_y"),
    sympy.besseli: _of_order("bessel_i"), sympy.besselk: _of_order("bessel_k"),
    stable.log1mexp: _log1mexp, stable.log_cosh: _log_cosh, stable.larger: sympy.Max, stable.smaller: sympy.Min,
    stable.step: _heaviside, stable.whole: sympy.floor,
}
