"""The reference as a formula, and its difference from an op's rule, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from symgrad.algebra.limits import OutOfTime, limited
from symgrad.carriers import symbolic
from symgrad.checks.cross_reading import parsed
from symgrad.proofs.proof import size_of
from symgrad.reference.heads import derivative
from symgrad.reference.recorder import Box, Recorder
from symgrad.testing.claimed import ClaimedOp
from symgrad.testing.failure import Wrong
from symgrad.testing.formulas import is_function

__all__ = ["difference", "expression"]

SECONDS, SIZE = 1.0, 300


def _symbols(attack: ClaimedOp) -> list[sympy.Symbol]:
    return [sympy.Symbol(name, **d.assumptions) for name, d in zip(attack.names, attack.domains)]


def _cell(x: Any) -> Any:
    return symbolic.ExactExpressions.fill([x], ())


def expression(attack: ClaimedOp, wrt: Sequence[int] = ()) -> Any:
    """The formula of an elementwise op, differentiated by the arguments `wrt`; None if there is no formula.

    >>> from symgrad.testing.attack import Attack
    >>> import symgrad
    >>> expression(Attack(symgrad.sin), (0, 0))
    -sin(input)
    """
    formula, op = attack.claims.formula, attack.subject.op
    if not attack.elementwise or formula is None and op is None:
        return None
    symbols = _symbols(attack)
    named = dict(zip(attack.names, symbols))
    if formula is None:
        found = op.forward(symbolic, *map(_cell, symbols), *attack.claims.parameters).item()
    elif isinstance(formula, str):
        found = parsed(formula)[0]
        found = found.xreplace({s: named[str(s)] for s in found.free_symbols if str(s) in named})
    elif isinstance(formula, sympy.Lambda):
        found = formula(*symbols)
    elif is_function(formula):
        recorder = Recorder(symbolic, lambda x: symbolic.lift_value(x, True))
        out = formula(recorder, *(Box(recorder, _cell(s)) for s in symbols))
        found = out.item() if isinstance(out, Box) else sympy.sympify(out)
    else:
        found = formula.xreplace({s: named[str(s)] for s in formula.free_symbols if str(s) in named})
    for i in wrt:
        found = derivative(found, symbols[i])
    return found


def difference(attack: ClaimedOp, wrong: Wrong) -> Any:
    """Rule minus reference as a formula; None if one of them has no formula, if they agree, and if the difference is long.

    Order 0 compares the forward rule with a claimed formula; the others start from the partial derivatives of the op.

    >>> from symgrad.testing.attack import Attack
    >>> from symgrad.graph.op import REGISTRY
    >>> difference(Attack(REGISTRY["sin"], formula="sin(input)*2"), Wrong("", order=1, wrt=(0,)))
    -cos(input)
    """
    op = attack.subject.op
    if op is None or wrong.order is None or not attack.elementwise or op.kind != "elementwise":
        return None
    wrt = wrong.wrt[:wrong.order]
    if len(wrt) != wrong.order:
        return None
    symbols = _symbols(attack)
    cells = [_cell(s) for s in symbols]
    rule = op.forward(symbolic, *cells, *attack.claims.parameters)
    if wrt:
        rule = op.vjp(symbolic, _cell(sympy.S.One), rule, (*cells, *attack.claims.parameters), (True,) * len(cells))[wrt[0]]
        if rule is None:
            return None
    claim = rule.item()
    for i in wrt[1:]:
        claim = derivative(claim, symbols[i])
    true = expression(attack, wrt)
    if true is None or size_of(claim - true) > SIZE:
        return None
    found = sympy.expand(claim - true)
    try:
        with limited(SECONDS):
            found = sympy.simplify(found)
    except OutOfTime:  # the difference is shown without simplification
        pass
    return None if found == 0 else found
