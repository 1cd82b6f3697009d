"""Checks of an op against itself: pullback against pushforward, and one through the other; linearity, and symmetry of the Hessian."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.frameworks.adapter import Array, Arrays, NotApplicable, is_active
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import Sides, agree_at, as_double, check, differentiable, moderate_mask, reason_without_order
from symgrad.testing.checks.measuring import changes
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong

SCALE = 40  # the power of two that a cotangent is scaled by, up or down
SCALE_OF_EXPONENTS = 1e3  # functions of numbers up to this may vary on the scale of 1, as exponentials do; of larger ones on that of the numbers


def product(a: Array | None, b: Array | None, like: Array) -> Array:
    """The elementwise product of two arrays over the real numbers; None is zero."""
    if a is None or b is None:
        return np.zeros(like.shape)
    return np.real(np.conj(as_double(a)) * as_double(b))


def per_element(attack: Attack, xs: Arrays, shape: tuple[int, ...]) -> bool:
    """Whether an identity holds for each element, not only for the sums."""
    return attack.elementwise and all(x.shape == shape for x in xs)


def sum_terms(terms: Sequence[Array], each: bool) -> tuple[Array, Array]:
    """The sum of products and the sum of their absolute values: for each element, or over all elements."""
    if each:
        return np.sum(terms, axis=0), np.sum(np.abs(terms), axis=0)
    return np.array(sum(float(t.sum()) for t in terms)), np.array(sum(float(np.abs(t).sum()) for t in terms))


def moderate_sides(sides: list[Sides], attack: Attack, each: bool, xs: Arrays, g: Array, *tangents: Sequence[Array | None]) -> list[Sides]:
    """The sides without the places at which the arguments are not of a moderate size.

    Derivatives of an op on arrays are sums of terms of the size of its value times the cotangent and the tangents, which may cancel exactly:
    where one probability of a softmax rounds to 1, its own gradient is lost, and no small change of the arguments shows it.
    """
    terms = 0.0
    if not each:
        terms = _largest([attack.subject.value(xs)]) * _largest([g])
        scale = max(SCALE_OF_EXPONENTS, _largest(xs)) / SCALE_OF_EXPONENTS
    out = []
    for s in sides:
        size = s.size if each else s.size + math.prod([_largest(ts) / scale for ts in tangents[:s.order]], start=terms)
        out.append(s._replace(size=np.where(moderate_mask(xs, s.left.shape, s.order or 1, each), size, np.inf)))
    return out


def settle(attack: Attack, example: Example, sides: Callable[..., list[Sides]], sets: int, terms: dict[int, Any], *others: Array) -> None:
    """As `agree_at`; where sides differ, `terms` gets the sizes of those that the gradients of the cotangent and of others are computed from."""
    try:
        agree_at(example, sides, sets)
    except Wrong as wrong:
        try:
            for i in terms:
                terms[i] = np.sum([changes(attack.subject, [*example.xs, g], len(example.xs), i) for g in (example.cotangent, *others)], axis=0)
        except Exception:  # NoShadow, and whatever numbers with many digits make a user's function raise
            raise wrong from None
        agree_at(example, sides, sets)


def _largest(arrays: Sequence[Array | None]) -> float:
    return max((float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a))) for a in map(as_double, (a for a in arrays if a is not None))),
               default=0.0)


@check("adjoint", when=lambda attack: differentiable(attack) or ("" if attack.subject.forward else "it has no pushforward"))
def check_adjoint(attack: Attack, example: Example) -> None:
    """The pullback is the adjoint of the pushforward: ⟨g, jvp(t)⟩ = ⟨vjp(g), t⟩, for each argument and for all of them.

    The products are real: Re(conj(a) b). They agree to 16 roundings of the sum of the absolute values of their terms: for each element of an
    elementwise op, otherwise for the whole sums; where terms cancel, to the effect of rounding the inputs. An argument whose
    gradient is None counts as zero. Places where a side is not finite, or an argument is beyond 1e±100, are skipped.

    The check does not apply to ops without derivatives or without a pushforward.

    Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, section 3.
    """
    subject, xs, ts = attack.subject, example.xs, example.tangents[0]
    active = [i for i, x in enumerate(xs) if is_active(x) and ts[i] is not None]
    if not active:
        return
    sets = [[i] for i in active] + [active] * (len(active) > 1)
    each = per_element(attack, xs, example.cotangent.shape)

    def sides(at: Arrays, g: Array, moving: Sequence[Array | None]) -> list[Sides]:
        pulled = subject.gradient(at, g)
        out = []
        for chosen in sets:
            pushed = subject.tangent(at, [t if i in chosen else None for i, t in enumerate(moving)])
            if pushed.shape != g.shape:
                raise Wrong(f"the tangent has the shape {pushed.shape}, the value {g.shape}", pushed, g, order=1, wrt=tuple(chosen))
            left, one = sum_terms([product(g, pushed, g)], each)
            right, other = sum_terms([product(pulled[i], moving[i], at[i]) for i in chosen], each)
            _, size = sum_terms([product(terms[i], moving[i], at[i]) for i in chosen], each)
            out.append(Sides("⟨g, jvp(t)⟩ is not ⟨vjp(g), t⟩", left, right, one + other + size, 1, tuple(chosen)))
        return moderate_sides(out, attack, each, at, g, moving)

    terms: dict[int, Any] = dict.fromkeys(active)
    settle(attack, example, sides, 1, terms)


@check("linearity", when=differentiable, most=12)
def check_linearity(attack: Attack, example: Example) -> None:
    """The pullback is linear in the cotangent: vjp(2g − 3h) = 2 vjp(g) − 3 vjp(h), vjp(c g) = c vjp(g) for c = 2^40 or 2^-40, and vjp(0) = 0.

    The first identity is also checked with g and h exchanged: |2g − 3h| may equal 2|g| − 3|h|, but then |2h − 3g| is not 2|h| − 3|g|.
    Sides agree as those of the adjoint do.

    The check does not apply to ops without derivatives.
    """
    subject = attack.subject
    terms: dict[int, Any] = {i: 0.0 for i, x in enumerate(example.xs) if is_active(x)}

    def other(g: Array) -> Array:
        return (g * -0.5 - 1.25).astype(g.dtype)

    def sides(xs: Arrays, g: Array) -> list[Sides]:
        h = other(g)
        pulled, second = subject.gradient(xs, g), subject.gradient(xs, h)
        out = []
        for a, b, of_a, of_b in ((g, h, pulled, second), (h, g, second, pulled)):
            both = subject.gradient(xs, 2 * a - 3 * b)
            for i, (left, one, two) in enumerate(zip(both, of_a, of_b)):
                if left is not None and one is not None and two is not None:
                    out.append(Sides("vjp(2g - 3h) is not 2 vjp(g) - 3 vjp(h)", as_double(left), 2 * as_double(one) - 3 * as_double(two),
                                     2 * np.abs(as_double(one)) + 3 * np.abs(as_double(two)) + 3 * terms[i], 1, (i,)))
        scale = 2.0 ** (SCALE if g.size and g.flat[0].real > 0 else -SCALE) if g.dtype.itemsize >= 4 else 1.0
        normal = 1e-290 if g.dtype.itemsize >= 8 else 1e-20
        for i, (left, one, zero) in enumerate(zip(subject.gradient(xs, (scale * g).astype(g.dtype)), pulled, subject.gradient(xs, np.zeros_like(g)))):
            if left is not None and one is not None and zero is not None:
                size = np.abs(as_double(one))
                out.append(Sides(f"vjp({scale:.3g} g) is not {scale:.3g} vjp(g)", as_double(left) / scale, as_double(one),
                                 np.where((size * scale > normal) & (size > normal), size + terms[i], np.inf), 1, (i,)))
                nothing = np.where(np.isfinite(size), as_double(zero), 0.0)
                out.append(Sides("vjp(0) is not 0", nothing, np.zeros_like(nothing), np.zeros(nothing.shape), 1, (i,), identical=True))
        return moderate_sides(out, attack, attack.elementwise, xs, g)

    settle(attack, example, sides, 0, terms, other(example.cotangent))


@check("symmetry",
       when=lambda attack: reason_without_order(attack, 2) or (
           "of one number there is only one second derivative" if attack.elementwise and len(attack.names) == 1 else ""))
def check_symmetry(attack: Attack, example: Example) -> None:
    """The Hessian H of ⟨g, y⟩ is symmetric, within arguments and across them: ⟨s, H t⟩ = ⟨t, H s⟩; so is the third derivative.

    This holds for the pullback of every gradient: one wrong partial derivative of two is found without a reference.
    Sides agree as those of the adjoint do, at places up to 1e±50 (1e±30 for the third derivative).

    The check does not apply without a second derivative, nor to elementwise ops of one argument, which have only one.
    """
    subject, xs = attack.subject, example.xs
    active = [i for i, x in enumerate(xs) if is_active(x) and all(s[i] is not None for s in example.tangents)]
    if not active:
        raise NotApplicable("no argument is differentiated")
    each = per_element(attack, xs, example.cotangent.shape)

    def sides(at: Arrays, g: Array, *tangents: Sequence[Array | None]) -> list[Sides]:
        t, s, r = ([x if i in active else None for i, x in enumerate(ts)] for ts in tangents)
        out = []
        for order, (one, a), (other, b) in ((2, ((t,), s), ((s,), t)), (3, ((t, s), r), ((r, t), s)))[:attack.order - 1]:
            along, across = subject.gradient(at, g, *one), subject.gradient(at, g, *other)
            left, size = sum_terms([product(along[i], a[i], at[i]) for i in active], each)
            right, more = sum_terms([product(across[i], b[i], at[i]) for i in active], each)
            out.append(Sides("⟨s, H t⟩ is not ⟨t, H s⟩" if order == 2 else "the third derivative is not symmetric", left, right,
                             size + more, order, tuple(active)))
        return moderate_sides(out, attack, each, at, g, *tangents)

    agree_at(example, sides, 3)


def _recorded(attack: Attack) -> str:
    if attack.order < 2:
        return reason_without_order(attack, 2)
    return "" if attack.subject.records else f"{attack.subject.framework} pullbacks are functions of the cotangent by construction"


@check("mixed", when=_recorded, most=12)
def check_mixed(attack: Attack, example: Example) -> None:
    """∂⟨t, vjp(g)⟩/∂g is jvp(t), ∂⟨g, jvp(t)⟩/∂x is the second derivative H t, and ∂⟨g, jvp(t)⟩/∂t is vjp(g).

    A rule that treats its cotangent, its tangent or an argument as a constant has right first derivatives and wrong second ones, at least in
    compositions with other ops.
    Without a pushforward the first identity is checked along the cotangent: ⟨g, ∂⟨t, vjp(g)⟩/∂g⟩ = ⟨vjp(g), t⟩.
    Sides agree as those of the adjoint do, at places up to 1e±50.

    The check does not apply to ops without a second derivative.
    """
    subject = attack.subject
    active = [i for i, x in enumerate(example.xs) if is_active(x) and example.tangents[0][i] is not None]
    if not active:
        raise NotApplicable("no argument is differentiated")
    each = per_element(attack, example.xs, example.cotangent.shape)

    def sides(xs: Arrays, g: Array, ts: Sequence[Array | None]) -> list[Sides]:
        pulled = subject.gradient(xs, g)
        found = subject.cotangent_derivative(xs, g, ts)
        left, size = sum_terms([product(g, found, g)], each)
        right, more = sum_terms([product(pulled[i], ts[i], xs[i]) for i in active], each)
        out = [Sides("the pullback, differentiated by its cotangent, is not the pushforward", left, right, size + more, 2)]
        through: tuple[Any, Any] | None = None
        if subject.forward:
            with contextlib.suppress(NotApplicable):
                through = subject.pullback_of_jvp(xs, g, ts)
        if through is not None:
            (by_argument, by_tangent), second = through, subject.gradient(xs, g, ts)
            for i in active:
                for what, one, other in (("the pushforward, pulled back, is not the second derivative", by_argument[i], second[i]),
                                         ("the pushforward, pulled back by its tangent, is not the pullback", by_tangent[i], pulled[i])):
                    a, b = (np.zeros(xs[i].shape) if c is None else as_double(c) for c in (one, other))
                    size = np.abs(a) + np.abs(b)
                    out.append(Sides(what, a, b, size if each else np.full(a.shape, np.max(size, initial=0.0)), 2, (i,)))
        return moderate_sides(out, attack, each, xs, g, ts)

    agree_at(example, sides, 1)


