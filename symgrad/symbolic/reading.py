"""Expressions function by function: evaluated in any carrier, and with the special functions in them kept.

SymPy writes some special functions as longer formulas, which become a `CarrierFunction` again.

>>> a, x = sympy.symbols("a x", positive=True)
>>> fold_special(1 - sympy.uppergamma(a, 2 * x) / sympy.gamma(a))
1 - gammaincc(a, 2*x)
>>> fold_special(sympy.exp(-x))
exp(-x)
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

import sympy

from symgrad.algebra.stable import stable_form_to_differentiate
from symgrad.algebra.stable_functions import DEFINITIONS
from symgrad.algebra.stable_products import Mean, Ratio
from symgrad.algebra.values import Unknown, value
from symgrad.carriers.special.table import SPECIAL
from symgrad.graph.op import REGISTRY
from symgrad.symbolic.carrier_function import Call, CarrierFunction, carrier_function, is_carrier_function, is_special
from symgrad.symbolic.catalogue import NAMED, known_formula, plan, special_formulas
from symgrad.symbolic.programs import OpProgram, program_of

COMBINED = {"add": sympy.Add, "mul": sympy.Mul}


def fold_special(expr: Any, elementary: bool = False) -> Any:
    """The expression with each `CarrierFunction` that is in it; unchanged without one. With `elementary`, those with elementary formulas, too."""
    if not elementary and not is_special(expr):
        return expr
    found = _Folding(elementary).of(stable_form_to_differentiate(expr))
    return found if found.has(CarrierFunction) else expr


class _Folding:
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
        call = known_formula(e, self.accepted)
        with contextlib.suppress(Unknown):
            call = call or (plan(e) if isinstance(e, sympy.Function) else None)
        found = self.of_call(call)
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
        return carrier_function(op)(*map(self.of, values), *given) if exact and (self.elementary or is_carrier_function(op, tuple(given))) else None


def evaluate_expression(expr: Any, symbols: Sequence[Any], xp: Any, xs: Sequence[Any]) -> Any:
    """The value of an expression at values of a carrier; numbers among several arguments become arrays, so that only constants are numbers.

    >>> import sympy, numpy as np
    >>>     >>> x = sympy.Symbol("x")
    >>> evaluate_expression(x**2 + sympy.exp(x), [x], numeric, [np.array([0.0, 1.0])])
    array([1.        , 3.71828183])
    """
    like = next((x for x in xs if hasattr(x, "shape")), xs[0])

    def array(x: Any) -> Any:
        return x if hasattr(x, "shape") else xp.zeros_like(like) + x

    inputs = [x if hasattr(x, "shape") else xp.ones_like(like) * x for x in xs]  # a product keeps -0.0
    program, results = _program(expr, tuple(symbols)), list[Any]()
    for step in program.steps:
        args = [results[i] for i in step.inputs]
        op, parameters = NAMED.get(step.name, (step.name, ()))
        if step.name == "input":
            results.append(inputs[step.value.parameter])
        elif step.name == "constant":
            results.append(int(step.value) if step.value.is_Integer and abs(step.value) < 2**53 else float(value(step.value)([])))
        elif op in SPECIAL:
            results.append(getattr(xp, op)(*map(array, args[:SPECIAL[op].arity]), *args[SPECIAL[op].arity:], *parameters))
        elif op in ("maximum", "minimum"):  # of any number of values
            results.append(functools.reduce(getattr(xp, op), args))
        else:
            results.append(REGISTRY[op].forward(xp, *(map(array, args) if op == "where" else args), *parameters))
    return array(results[program.outputs[0]])


@functools.lru_cache(256)
def _program(expr: Any, symbols: tuple[Any, ...]) -> OpProgram:
    whole = expr.replace(lambda e: isinstance(e, (Ratio, Mean)), lambda e: DEFINITIONS[e.func](*e.args)) if isinstance(expr, sympy.Expr) else expr
    return program_of([whole], symbols, stable=False)
