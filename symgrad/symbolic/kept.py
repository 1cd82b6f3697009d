"""The special functions of the carriers as functions of SymPy.

`lowergamma(a, x)/gamma(a)` overflows by parts, and SymPy has no derivative of it by a that has values. As a `Kept` function it is computed by the
carriers, its derivatives are those of the op's rules, and its formula is that of its row of the table.

>>> a, x = sympy.symbols("a x", positive=True)
>>> kept_function("gammainc")(a, x).diff(a)
gammainc_derivative(a, x, 1)
>>> written_out(kept_function("erfcx")(x))
exp(x**2)*erfc(x)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import sympy

from symgrad.algebra.stable_functions import elementary
from symgrad.carriers import symbolic
from symgrad.carriers.cells import each
from symgrad.carriers.special.table import SPECIAL
from symgrad.graph.op import REGISTRY

__all__ = ["Kept", "is_kept", "is_special", "kept_function", "written_out"]


class Kept(sympy.Function):
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
def kept_function(op: str) -> Any:
    """The function of a name in the table."""
    return type(op, (Kept,), {"op": op})


def is_special(e: Any) -> bool:
    """Whether there is a special function in an expression; the others have series and stable forms."""
    functions = {type(f) for f in e.atoms(sympy.Function)} - {sympy.Heaviside, sympy.DiracDelta}
    return any(".special." in (kind.__module__ or "") for kind in functions)  # a function without a definition has no module


@functools.cache
def is_kept(op: str, parameters: tuple[Any, ...] = ()) -> bool:
    """Whether a name of the table, with parameters, has a formula that is not elementary."""
    return op in SPECIAL and is_special(SPECIAL[op].formula(sympy, *[sympy.Dummy(positive=True) for _ in range(SPECIAL[op].arity)], *parameters))


@functools.cache
def _carrier() -> Any:
    """The symbolic carrier with `Kept` functions."""
    def cells(op: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        arity = SPECIAL[op].arity

        def call(*args: Any) -> Any:
            parameters = args[arity:]
            return each(lambda *xs: kept_function(op)(*xs, *parameters), arity)(*args[:arity]) if is_kept(op, parameters) else plain(*args)

        return call

    return SimpleNamespace(**{**vars(symbolic), **{op: cells(op, getattr(symbolic, op)) for op in SPECIAL}})


def written_out(expr: Any) -> Any:
    """An expression in SymPy's functions."""
    return elementary(expr.replace(lambda e: isinstance(e, Kept), lambda e: e.formula()) if expr.has(Kept) else expr)
