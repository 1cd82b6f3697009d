"""Definitions of SymPy's functions that have no op of their own, and the special functions of the carriers as functions of SymPy.

`lowergamma(a, x)/gamma(a)` overflows by parts, and SymPy has no derivative of it by a that has values. As a `CarrierFunction` it is computed by the
carriers, its derivatives are those of the op's rules, and its formula is that of its row of the table.

>>> a, x = sympy.symbols("a x", positive=True)
>>> carrier_function("gammainc")(a, x).diff(a)
gammainc_derivative(a, x, 1)
>>> written_out(carrier_function("erfcx")(x))
exp(x**2)*erfc(x)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import sympy
from sympy.codegen import cfunctions

from symgrad.algebra import catalogue as algebra_catalogue
from symgrad.algebra import stable_functions as stable
from symgrad.algebra.stable_functions import elementary
from symgrad.algebra.values import Unknown
from symgrad.carriers import symbolic
from symgrad.carriers.cells import each
from symgrad.carriers.special.table import SPECIAL
from symgrad.graph.op import REGISTRY


class CarrierFunction(sympy.Function):
    """A special function of the table by its name `op`, with its parameters as the last arguments."""

    op: ClassVar[str]

    @classmethod
    def digits(cls, context: Any, *xs: Any) -> Any:
        """The value at numbers of an mpmath context, with its precision."""
        row = SPECIAL[cls.op]
        return row.digits(context, *xs[:row.arity], *map(_parameter, xs[row.arity:]))

    @property
    def values(self) -> tuple[Any, ...]:
        """The arguments that are not parameters."""
        return self.args[:SPECIAL[self.op].arity]

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The parameters as Python numbers."""
        return tuple(map(_parameter, self.args[SPECIAL[self.op].arity:]))

    def formula(self) -> Any:
        """The function in those of SymPy."""
        return SPECIAL[self.op].formula(sympy, *self.values, *self.parameters)

    def fdiff(self, argindex: int = 1) -> Any:
        """The derivative by a value, by the rule of the op."""
        y, *xs = [symbolic.ExactExpressions.fill([x], ()) for x in (self, *self.values)]
        return REGISTRY[self.op].partials[argindex - 1](_carrier(), y, *xs, *self.parameters).item()

    def _eval_is_extended_real(self) -> bool | None:
        return True if all(x.is_extended_real for x in self.args) else None


def _parameter(x: Any) -> int | float:
    return int(x) if x == int(x) else float(x)


@functools.cache
def carrier_function(op: str) -> Any:
    """The function of a name in the table."""
    return type(op, (CarrierFunction,), {"op": op})


def is_special(e: Any) -> bool:
    """Whether there is a special function in an expression; the others have series and stable forms."""
    functions = {type(f) for f in e.atoms(sympy.Function)} - {sympy.Heaviside, sympy.DiracDelta}
    return any(".special." in (kind.__module__ or "") for kind in functions)  # a function without a definition has no module


@functools.cache
def is_carrier_function(op: str, parameters: tuple[Any, ...] = ()) -> bool:
    """Whether a name of the table, with parameters, has a formula that is not elementary."""
    return op in SPECIAL and is_special(SPECIAL[op].formula(sympy, *[sympy.Dummy(positive=True) for _ in range(SPECIAL[op].arity)], *parameters))


@functools.cache
def _carrier() -> Any:
    def cells(op: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        arity = SPECIAL[op].arity

        def call(*args: Any) -> Any:
            parameters = args[arity:]
            if not is_carrier_function(op, parameters):
                return plain(*args)
            return each(lambda *xs: carrier_function(op)(*xs, *parameters), arity)(*args[:arity])

        return call

    return SimpleNamespace(**{**vars(symbolic), **{op: cells(op, getattr(symbolic, op)) for op in SPECIAL}})


def written_out(expr: Any) -> Any:
    """An expression in SymPy's functions."""
    return elementary(expr.replace(lambda e: isinstance(e, CarrierFunction), lambda e: e.formula()) if expr.has(CarrierFunction) else expr)


HALF = sympy.S.Half


class Call(NamedTuple):
    """An op of the registry by name, applied to arguments that are calls or SymPy expressions."""

    op: str
    args: tuple[Any, ...]


def _log1mexp(u: Any) -> Any:
    return sympy.Piecewise((stable.log1p(-sympy.exp(u)), u < -1), (sympy.log(-stable.expm1(u)), True))


def _log_cosh(u: Any) -> Any:
    near = stable.log1p(2 * sympy.sinh(u / 2) ** 2)
    size = sympy.Abs(u)
    return sympy.Piecewise((near, size < 1), (size + stable.log1p(sympy.exp(-2 * size)) - sympy.log(2), True))


def _heaviside(u: Any, middle: Any = HALF) -> Any:
    half = (1 + sympy.sign(u)) / 2
    return half if middle == HALF else sympy.Piecewise((half, sympy.Ne(u, 0)), (middle, True))


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
    **{kind: algebra_catalogue.DEFINITIONS[kind] for kind in (
        sympy.sec, sympy.csc, sympy.csch, sympy.coth, sympy.asec, sympy.acsc, sympy.asech, sympy.acsch, sympy.acoth)},
    sympy.cot: lambda u: sympy.cos(u) / sympy.sin(u), sympy.acot: lambda u: sympy.atan(1 / u),
    sympy.sinc: lambda u: Call("sinc", (u / sympy.pi,)), sympy.frac: lambda u: sympy.Mod(u, 1), sympy.Heaviside: _heaviside,
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
