"""The check of symbolic formulas: where an op's value has one, so do its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.factories.creation import tensor
from symgrad.frameworks.adapter import NotApplicable, is_active
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import check
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong

__all__ = ["check_formulas"]

PLACES = 2  # elements of the arguments of an elementwise op
DEEP = 3  # the orders of which formulas are read, for an elementwise op and
FLAT = 2  # for one of arrays, whose formulas grow with the number of elements


@check("formulas", most=1, when=lambda attack: "" if attack.subject.op is not None else "its rules are not known; it is no op of symgrad")
def check_formulas(attack: Attack, example: Example) -> None:
    """Where the value has a formula, so have the pullback and its pullback: a rule works with numbers and with expressions.

    A rule that uses a boolean as a number gives numeric gradients, but no expressions. The check
    applies to ops that are declared by rules. Raises CheckFailure where a formula is missing.

    >>> import symgrad
    >>> from symgrad.testing import check_formulas
    >>> check_formulas(symgrad.tanh).verdict
    'passed'
    """
    subject, g = attack.subject, example.cotangent
    xs = list(example.xs)
    if attack.elementwise:
        xs, g = [x.ravel()[:PLACES] for x in xs], g.ravel()[:PLACES]
    leaves = [tensor(x, symbol=name, requires_grad=is_active(x)) for name, x in zip(attack.inputs(xs), xs)]
    value = subject.call(leaves)
    try:
        known = value.expr is not None
    except (TypeError, ValueError, NotImplementedError, AttributeError, RuntimeError) as error:
        raise NotApplicable(f"its value has no formula: {str(error)[:160]}") from error
    if not known:
        raise NotApplicable("its value has no formula")
    places = [i for i, x in enumerate(xs) if is_active(x)]
    found: Sequence[Any] = [value]
    last = min(attack.order, DEEP if attack.elementwise else FLAT)
    for order in range(1, last + 1):
        cotangents = [tensor(g if order == 1 else np.ones(v.shape)) for v in found]
        gradients = subject.grad(found, [leaves[i] for i in places], cotangents, order < last)
        for i, c in zip(places, gradients):
            _read(c, order, i)
        found = [c for c in gradients if c is not None]


def _read(gradient: Any, order: int, place: int) -> None:
    """Raise `Wrong` where the formula of a derivative cannot be read."""
    if gradient is not None:
        try:
            gradient.expr  # noqa: B018
        except Exception as error:  # SymPy may raise anything for what a rule passes to it
            raise Wrong(f"the derivative has no formula, though the value has one ({type(error).__name__}: {error})", order=order,
                        wrt=(place,)) from error
