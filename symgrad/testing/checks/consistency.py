"""Checks of an op against itself: pullback against pushforward, and one through the other; linearity, and symmetry of the Hessian."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.frameworks.adapter import Array, Arrays, NotApplicable, is_active
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import Sides, agree_at, as_double, check, complete, differentiable, moderate_mask, reason_without_order
from symgrad.testing.checks.measuring import changes
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong

SCALE = 40  # the power of two that a cotangent is scaled by, up or down
HUGE = {8: 700, 4: 80}  # the same for numbers of so many bytes where all are moderate
MODERATE_SIZE = 1e-8, 1e8
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
    for s in map(complete, sides):
        size = s.size if each else s.size + math.prod([_largest(ts) / scale for ts in tangents[:s.order]], start=terms)
        out.append(s._replace(size=np.where(moderate_mask(xs, s.left.shape, s.order or 1, each), size, np.inf)))
    return out


def settle(attack: Attack, example: Example, sides: Callable[..., list[Sides]], sets: int, terms: dict[int, Any], *others: Array,
           tangents: Sequence[Any] = ()) -> None:
    """As `agree_at`; where sides differ, `terms` gets the sizes of those that the gradients of the cotangent and of others are computed from.

    With tangents those are the derivatives of the gradients along them.
    """
    try:
        agree_at(example, sides, sets)
    except Wrong as wrong:
        try:
            for i in terms:
                terms[i] = np.sum([changes(attack.subject, [*example.xs, g], len(example.xs), i, True, tangents)
                                   for g in (example.cotangent, *others)], axis=0)
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

    Moderate cotangents are also scaled by 2^700 (2^80 in float32), where the gradient stays in range. The pushforward of zeros is 0. The first
    identity is also checked with g and h exchanged: |2g − 3h| may equal 2|g| − 3|h|, but then |2h − 3g| is not 2|h| − 3|g|. Sides agree as those
    of the adjoint do.

    The check does not apply to ops without derivatives.
    """
    subject = attack.subject
    terms: dict[int, Any] = {i: 0.0 for i, x in enumerate(example.xs) if is_active(x)}

    def other(g: Array) -> Array:
        return (g * -0.5 - 1.25).astype(g.dtype)

    def sides(xs: Arrays, g: Array) -> list[Sides]:
        h = other(g)
        pulled, second, nothing = (subject.gradient(xs, c) for c in (g, h, np.zeros_like(g)))
        scale = 2.0 ** (SCALE if g.size and g.flat[0].real > 0 else -SCALE) if g.dtype.itemsize >= 4 else 1.0
        normal = 1e-290 if g.dtype.itemsize >= 8 else 1e-20
        both, turned, scaled = (subject.gradient(xs, c.astype(g.dtype)) for c in (2 * g - 3 * h, 2 * h - 3 * g, scale * g))
        bits = HUGE.get(np.real(g).dtype.itemsize)
        large = None if bits is None else subject.gradient(xs, (2.0**bits * g).astype(g.dtype))
        numbers = np.concatenate([np.abs(as_double(x)).ravel() for x in (*xs, g) if is_active(x)] or [np.zeros(0)])
        moderate = bool(np.all((numbers == 0) | (numbers > MODERATE_SIZE[0]) & (numbers < MODERATE_SIZE[1])))
        out = []
        for i, (one, two) in enumerate(zip(pulled, second)):
            if one is None or two is None:
                continue
            one, two = as_double(one), as_double(two)
            size, other_size = np.abs(one), np.abs(two)
            for found, a, b, of_a, of_b in ((both[i], one, two, size, other_size), (turned[i], two, one, other_size, size)):
                out += [] if found is None else [Sides("vjp(2g - 3h) is not 2 vjp(g) - 3 vjp(h)", found, 2 * a - 3 * b,
                                                       2 * of_a + 3 * of_b + 3 * terms[i], 1, (i,))]
            if scaled[i] is not None:
                out.append(Sides(f"vjp({scale:.3g} g) is not {scale:.3g} vjp(g)", as_double(scaled[i]) / scale, one,
                                 np.where((size * scale > normal) & (size > normal), size + terms[i], np.inf), 1, (i,)))
            if nothing[i] is not None:
                found = np.where(np.isfinite(size), as_double(nothing[i]), 0.0)
                out.append(Sides("vjp(0) is not 0", found, np.zeros(size.shape), None, 1, (i,), True))
            if bits is not None and large is not None and large[i] is not None:
                fine = moderate & (size > MODERATE_SIZE[0]) & (size < MODERATE_SIZE[1])
                out.append(Sides(f"vjp({2.0**bits:.3g} g) is not {2.0**bits:.3g} vjp(g)", np.where(fine, as_double(large[i]) / 2.0**bits, one), one,
                                 size + terms[i], 1, (i,), True))
        out = moderate_sides(out, attack, attack.elementwise, xs, g)
        if subject.forward:
            with contextlib.suppress(NotApplicable):
                still, pushed = (subject.tangent(xs, [like(x) if is_active(x) else None for x in xs]) for like in (np.zeros_like, np.ones_like))
                out.append(Sides("jvp(0) is not 0", np.where(np.isfinite(pushed), as_double(still), 0.0), np.zeros(still.shape), None, 1, (), True))
        return out

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
    """Every way to differentiate twice gives the same: ∂⟨t, vjp(g)⟩/∂g is jvp(t), ∂⟨g, jvp(t)⟩/∂t is vjp(g), and all others give H t.

    These are the pullback of the pullback, of the pushforward, and the pushforward of the pullback, with cotangents and tangents that require grad,
    as in compositions with other ops, and that do not. A rule that treats its cotangent, its tangent or an argument as a constant has right first
    derivatives and wrong second ones. Sides agree as those of the adjoint do, at places up to 1e±50.

    The check does not apply to ops without a second derivative.
    """
    subject, ts = attack.subject, example.tangents[0]
    active = [i for i, x in enumerate(example.xs) if is_active(x) and ts[i] is not None]
    if not active:
        raise NotApplicable("no argument is differentiated")
    each = per_element(attack, example.xs, example.cotangent.shape)

    def sides(xs: Arrays, g: Array, ts: Sequence[Array | None]) -> list[Sides]:
        known = {"first": subject.gradient(xs, g), "second": subject.gradient(xs, g, ts)}
        right, more = sum_terms([product(known["first"][i], ts[i], xs[i]) for i in active], each)
        out = []
        for what, found, same in subject.second_routes(xs, g, ts):
            if same == "tangent":
                left, size = sum_terms([product(g, found[0], g)], each)
                out.append(Sides(f"{what} is not the pushforward", left, right, size + more, 2))
                continue
            for i in active:
                a, b = (np.zeros(xs[i].shape) if c is None else as_double(c) for c in (found[i], known[same][i]))
                size = np.abs(a) + np.abs(b) + terms[i]
                out.append(Sides(f"{what} is not the {'pullback' if same == 'first' else 'second derivative'}", a, b,
                                 size if each else np.full(a.shape, np.max(size, initial=0.0)), 2, (i,)))
        return moderate_sides(out, attack, each, xs, g, ts)

    terms: dict[int, Any] = dict.fromkeys(active, 0.0)
    settle(attack, example, sides, 1, terms, tangents=[ts])
