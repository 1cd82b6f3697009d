"""The special functions in an expression, alone or in the longer formulas by which SymPy writes them, as `Kept` functions.

>>> a, x = sympy.symbols("a x", positive=True)
>>> keep(1 - sympy.uppergamma(a, 2 * x) / sympy.gamma(a))
1 - gammaincc(a, 2*x)
>>> keep(sympy.exp(-x))
exp(-x)
"""

from __future__ import annotations

from typing import Any

import sympy

from symgrad.algebra.stable import stable_form_to_differentiate
from symgrad.carriers.special.table import SPECIAL
from symgrad.symbolic.catalogue import NAMED, known_formula, plan, special_formulas
from symgrad.symbolic.kept import Call, Kept, Unknown, is_kept, is_special, kept_function

__all__ = ["keep"]

COMBINED = {"add": sympy.Add, "mul": sympy.Mul}


def keep(expr: Any, elementary: bool = False) -> Any:
    """The expression with `Kept` functions; without one it is unchanged. With `elementary`, those with elementary formulas are among them."""
    if not elementary and not is_special(expr):
        return expr
    found = _Keeping(elementary).of(stable_form_to_differentiate(expr))
    return found if found.has(Kept) else expr


class _Keeping:
    """One pass over an expression from its root down."""

    def __init__(self, elementary: bool):
        self.elementary = elementary

    def accepted(self, name: str) -> bool:
        """Whether an op with a longer formula is kept."""
        return NAMED.get(name, (name,))[0] in SPECIAL if self.elementary else name in special_formulas()

    def of(self, e: Any) -> Any:
        """An expression of kept functions."""
        if not e.args or not self.elementary and not is_special(e):
            return e
        found = self.of_call(known_formula(e, self.accepted) or _planned(e))
        return e.func(*map(self.of, e.args)) if found is None else found

    def of_call(self, call: Any) -> Any:
        """The expression of a call of kept functions, None for another one, and for one with a parameter that no float equals."""
        if not isinstance(call, Call):
            return None
        if call.op in COMBINED:
            parts = [self.of_call(x) if isinstance(x, Call) else self.of(x) for x in call.args]
            return None if None in parts else COMBINED[call.op](*parts)
        op, parameters = NAMED.get(call.op, (call.op, ()))
        if op not in SPECIAL:
            return None
        values, given = call.args[:SPECIAL[op].arity], sympy.Tuple(*call.args[SPECIAL[op].arity:], *parameters)
        exact = all(x.is_Rational and x == sympy.Rational(float(x)) for x in given)
        return kept_function(op)(*map(self.of, values), *given) if exact and (self.elementary or is_kept(op, tuple(given))) else None


def _planned(e: Any) -> Any:
    try:
        return plan(e) if isinstance(e, sympy.Function) else None
    except Unknown:
        return None
