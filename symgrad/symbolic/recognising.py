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
from symgrad.symbolic.definitions import Call, Unknown
from symgrad.symbolic.kept import Kept, is_kept, is_special, kept_function

__all__ = ["keep"]

COMBINED = {"add": sympy.Add, "mul": sympy.Mul}


def keep(expr: Any) -> Any:
    """The expression with `Kept` functions; without a special function it is unchanged."""
    if not is_special(expr):
        return expr
    found = _keep(stable_form_to_differentiate(expr))
    return found if found.has(Kept) else expr


def _keep(e: Any) -> Any:
    if not e.args or not is_special(e):
        return e
    found = _of_call(known_formula(e, special_formulas().__contains__) or _planned(e))
    return e.func(*map(_keep, e.args)) if found is None else found


def _planned(e: Any) -> Any:
    try:
        return plan(e) if isinstance(e, sympy.Function) else None
    except Unknown:
        return None


def _of_call(call: Any) -> Any:
    """The expression of a call of `Kept` functions, None for another one, and for one with a parameter that no float equals."""
    if not isinstance(call, Call):
        return None
    if call.op in COMBINED:
        parts = [_of_call(x) if isinstance(x, Call) else _keep(x) for x in call.args]
        return None if None in parts else COMBINED[call.op](*parts)
    op, parameters = NAMED.get(call.op, (call.op, ()))
    if op not in SPECIAL:
        return None
    values, given = call.args[:SPECIAL[op].arity], sympy.Tuple(*call.args[SPECIAL[op].arity:], *parameters)
    exact = all(x.is_Rational and x == sympy.Rational(float(x)) for x in given)
    return kept_function(op)(*map(_keep, values), *given) if exact and is_kept(op, tuple(given)) else None
