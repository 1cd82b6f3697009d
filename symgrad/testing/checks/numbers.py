"""Checks of an op's results against the reference: the value, and derivatives of the first, second and third order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from symgrad.frameworks.adapter import is_active
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import check, lacking
from symgrad.testing.checks.measuring import compare
from symgrad.testing.examples import Example, only

__all__ = ["check_pullback", "check_pushforward", "check_second", "check_third", "check_value"]

FEW = 16  # examples at which third derivatives are checked; those with edges come first
ORDINALS = ("value", "gradient", "second derivative", "third derivative")


def known(attack: Attack) -> str:
    """A check for ops with a reference."""
    return "" if attack.truth is not None else "nothing is claimed of it that it could be compared with; give a formula"


def _of_order(order: int) -> object:
    def applies(attack: Attack) -> str:
        return lacking(attack, order) or known(attack)

    return applies


def _pushed(attack: Attack) -> str:
    return known(attack) if attack.subject.forward and attack.order else "it has no pushforward"


@check("value", when=known)
def check_value(attack: Attack, example: Example) -> None:
    """The value is that of the formula.

    >>> import symgrad
    >>> check_value(symgrad.tanh).verdict
    'passed'
    """
    compare(attack, "the value", attack.subject.value(example.xs), attack.truth.value(example.xs), example.xs)


def _compare_gradient(attack: Attack, example: Example, *tangents: Sequence[np.ndarray | None], wrt: tuple[int, ...] = ()) -> None:
    """Compare every gradient of Σ tangent * (... Σ tangent * gradient of <cotangent, value>) with the reference."""
    xs, g = example.xs, example.cotangent
    for i, (got, true) in enumerate(zip(attack.subject.gradient(xs, g, *tangents), attack.truth.gradient(xs, g, *tangents))):
        if true is not None:
            compare(attack, f"the {ORDINALS[len(tangents) + 1]}", got, true, xs, i, g, *tangents, wrt=(*wrt, i))


@check("pullback", when=_of_order(1))  # type: ignore[arg-type]
def check_pullback(attack: Attack, example: Example) -> None:
    """The pullback of a cotangent is that of the formula.

    >>> import symgrad
    >>> check_pullback(symgrad.tanh).verdict
    'passed'
    """
    _compare_gradient(attack, example)


@check("pushforward", when=_pushed)
def check_pushforward(attack: Attack, example: Example) -> None:
    """The pushforward of tangents is that of the formula.

    >>> import symgrad
    >>> check_pushforward(symgrad.tanh).verdict
    'passed'
    """
    xs, ts = example.xs, example.tangents[0]
    compare(attack, "the tangent", attack.subject.tangent(xs, ts), attack.truth.tangent(xs, ts), xs, None, None, ts)


@check("second", when=_of_order(2))  # type: ignore[arg-type]
def check_second(attack: Attack, example: Example) -> None:
    """The gradient of the gradient, along a tangent of each argument, is that of the formula.

    >>> import symgrad
    >>> check_second(symgrad.tanh).verdict
    'passed'
    """
    if not attack.elementwise:
        _compare_gradient(attack, example, example.tangents[0])
    for a, x in enumerate(example.xs):
        if attack.elementwise and is_active(x):
            _compare_gradient(attack, example, only(example.tangents[0], a), wrt=(a,))


@check("third", when=_of_order(3), most=FEW)  # type: ignore[arg-type]
def check_third(attack: Attack, example: Example) -> None:
    """The third derivatives, along tangents of every two arguments, are those of the formula.

    >>> import symgrad
    >>> check_third(symgrad.tanh).verdict
    'passed'
    """
    if not attack.elementwise:
        return _compare_gradient(attack, example, *example.tangents[:2])
    if attack.subject.compiles and example.cotangent.ndim != 1:
        return None  # every shape is compiled for, so only vectors are checked
    active = [i for i, x in enumerate(example.xs) if is_active(x)]
    for a, b in itertools.combinations_with_replacement(active, 2):
        _compare_gradient(attack, example, only(example.tangents[0], a), only(example.tangents[1], b), wrt=(a, b))
    return None
