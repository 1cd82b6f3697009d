"""The check of one pass through another: the pullback of the pullback by its cotangent, and the pullback of the pushforward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.frameworks.adapter import Adapter, Array, Arrays, NotApplicable, is_active
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import check, lacking
from symgrad.testing.checks.comparing import Sides, agree_at, wide
from symgrad.testing.checks.consistency import joined, per_element, product, within
from symgrad.testing.examples import Example

__all__ = ["check_mixed"]


def _recorded(attack: Attack) -> str:
    if attack.order < 2:
        return lacking(attack, 2)
    return "" if attack.subject.records else f"{attack.subject.framework} pullbacks are functions of the cotangent by construction"


@check("mixed", when=_recorded, most=12)
def check_mixed(attack: Attack, example: Example) -> None:
    """∂⟨t, vjp(g)⟩/∂g is jvp(t), ∂⟨g, jvp(t)⟩/∂x is the second derivative H t, and ∂⟨g, jvp(t)⟩/∂t is vjp(g).

    A rule that treats its cotangent, its tangent or an argument as a constant has right first derivatives and wrong second ones, at least in
    compositions with other ops.
    Without a pushforward the first identity is checked along the cotangent: ⟨g, ∂⟨t, vjp(g)⟩/∂g⟩ = ⟨vjp(g), t⟩.
    Sides agree to 16 roundings of the sum of absolute values, or to the effect of rounding the inputs; places beyond 1e±50 are skipped.

    The check does not apply to ops without a second derivative. Raises CheckFailure where two sides differ.

    >>> import symgrad
    >>> from symgrad.testing import check_mixed
    >>> check_mixed(symgrad.tanh).verdict
    'passed'
    """
    subject = attack.subject
    active = [i for i, x in enumerate(example.xs) if is_active(x) and example.tangents[0][i] is not None]
    if not active:
        raise NotApplicable("no argument is differentiated")
    each = per_element(attack, example.xs, example.cotangent.shape)

    def sides(xs: Arrays, g: Array, ts: Sequence[Array | None]) -> list[Sides]:
        pulled = subject.gradient(xs, g)
        found = subject.by_cotangent(xs, g, ts)
        left, size = joined([product(g, found, g)], each)
        right, more = joined([product(pulled[i], ts[i], xs[i]) for i in active], each)
        out = [Sides("the pullback, differentiated by its cotangent, is not the pushforward", left, right, size + more, 2)]
        through = _through(subject, xs, g, ts)
        if through is not None:
            (by_argument, by_tangent), second = through, subject.gradient(xs, g, ts)
            for i in active:
                for what, one, other in (("the pushforward, pulled back, is not the second derivative", by_argument[i], second[i]),
                                         ("the pushforward, pulled back by its tangent, is not the pullback", by_tangent[i], pulled[i])):
                    a, b = (np.zeros(xs[i].shape) if c is None else wide(c) for c in (one, other))
                    size = np.abs(a) + np.abs(b)
                    out.append(Sides(what, a, b, size if each else np.full(a.shape, np.max(size, initial=0.0)), 2, (i,)))
        return within(out, attack, each, xs, g, ts)

    agree_at(example, sides, 1)


def _through(subject: Adapter, xs: Arrays, g: Array, ts: Sequence[Array | None]) -> Any:
    """The pullback of the pushforward; None if it is not available."""
    if not subject.forward:
        return None
    try:
        return subject.through_tangent(xs, g, ts)
    except NotApplicable:
        return None
