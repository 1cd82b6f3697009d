"""The check for complex numbers: adjoints, finite differences along both axes, Cauchy-Riemann, conjugate symmetry, and the real axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symgrad.frameworks.adapter import Array, Arrays, NotApplicable, is_active
from symgrad.graph.domains import COMPLEX
from symgrad.methods.extending import BUILT_IN
from symgrad.reference.sources import RATIO, STEPS, extrapolated_derivative
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import CHECKS, check
from symgrad.testing.checks.comparing import Sides, agree, agree_at, as_double
from symgrad.testing.checks.consistency import per_element, product, sum_terms
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong

__all__ = ["check_complex"]

LONGEST_STEP = 2.0**-5  # step of finite differences, relative to the number
COMPLEX_FACTOR = 2.0**16  # the factor by which functions of complex numbers may be less accurate than those of real ones
MAX_DIFFERENCE_ERROR = 1e-5  # relative error up to which finite differences are used
DIFFERENCE_ERROR = 1e-8  # relative error that finite differences are assumed to have
EQUAL_DIFFERENCES = 1e-6  # relative difference up to which two finite differences are equal


def takes_complex(attack: Attack) -> str:
    tried = getattr(attack.subject.op, "name", None) in BUILT_IN
    return "" if attack.claims.complex or attack.claims.complex is None and tried else "it is not claimed for complex numbers"


@check("complex", draws="complex", when=takes_complex, most=7)
def check_complex(attack: Attack, example: Example) -> None:
    """Derivatives for complex numbers follow torch's convention: the pullback is the adjoint over the reals, Re⟨g, jvp(t)⟩ = Re⟨vjp(g), t⟩.

    - The pullback is the adjoint of the pushforward (so g conj(f′) for a holomorphic f), and its derivative is symmetric over the reals.
    - Pullback, pushforward and second derivative agree with finite differences along t and along i t, within a bound of their error.
    - The op is holomorphic where differences along i t are i times those along t; there vjp(i g) = i vjp(g) and jvp(i t) = i jvp(t).
    - A holomorphic op with real values on the real axis fulfils f(conj z) = conj f(z).
    - On the real axis value and gradient equal those for real numbers.

    It applies where `complex=True` is claimed, since most derivatives are written for real numbers. symgrad's own ops are tried without a
    claim. Raises CheckFailure for a property that does not hold.

    >>> import symgrad
    >>> check_complex(symgrad.exp).verdict
    'passed'

    Source: K. Kreutz-Delgado, The Complex Gradient Operator and the CR-Calculus, 2009, sections 3 and 4.
    """
    value = complex_value(attack, example)
    if COMPLEX not in attack.domains:  # an op for complex numbers need not take real ones
        real_axis(attack, example)
    if not attack.order or value.dtype.kind not in "fc":
        return
    example = example._replace(cotangent=example.cotangent if value.dtype.kind == "c" else np.real(example.cotangent).copy())
    holomorphic = by_differences(attack, example)
    if attack.subject.forward:
        CHECKS["adjoint"].body(attack, example)
    if attack.order > 1:
        second_by_differences(attack, example)
        CHECKS["symmetry"].body(attack, example)
    if holomorphic:
        cauchy_riemann(attack, example)
        conjugate_symmetry(attack, example)


def complex_value(attack: Attack, example: Example) -> Array:
    """The value for complex numbers. Raises NotApplicable if the op refuses them and complex=True is not claimed."""
    try:
        return attack.subject.value(example.xs)
    except NotApplicable:
        raise
    except Exception as error:
        if attack.claims.complex:
            raise
        raise NotApplicable(f"it takes no complex numbers: {str(error).splitlines()[0][:120] if str(error) else type(error).__name__}") from error


def along(function: Callable[[Sequence[Array]], Array | None], xs: Sequence[Array], ts: Sequence[Array | None]) -> tuple[Array, Array]:
    """The derivative of a function along tangents by finite differences, and a bound of its error; see `extrapolated`."""
    h = LONGEST_STEP * RATIO ** -np.arange(STEPS)
    steps = np.concatenate([[0.0], h, -h])
    values = np.array([as_double(function([x if t is None else x + s * t for x, t in zip(xs, ts)])) for s in steps])
    return extrapolated_derivative(values, steps.reshape(-1, *[1] * (values.ndim - 1)), 1.0)


def by_differences(attack: Attack, example: Example) -> bool:
    """Raise `Wrong` where pullback or pushforward disagree with finite differences; return whether the op is holomorphic at every place.

    Differences are taken by each argument along t and along i t.
    """
    subject, xs, g, count = attack.subject, example.xs, example.cotangent, len(example.xs)
    each = per_element(attack, xs, g.shape)
    pulled = subject.gradient(xs, g)
    holomorphic = True
    for i, x in enumerate(xs):
        t = example.tangents[0][i]
        if t is None or not is_active(x) or x.dtype.kind != "c":
            continue
        t = t * np.maximum(np.abs(x), 0.1)  # so that a step is small relative to the number
        found, bounds = [], []
        for tangent in (t, 1j * t):
            ts = [tangent if k == i else None for k in range(count)]
            true, bound = along(subject.value, xs, ts)
            found.append(true)
            bounds.append(bound)
            _compare("the pullback is not what finite differences say", sum_terms([product(pulled[i], tangent, x)], each),
                     sum_terms([product(g, true, g)], each)[0], sum_terms([np.abs(g) * bound], each)[0], (i,))
            if subject.forward:
                pushed = subject.tangent(xs, ts)
                _compare("the pushforward is not what finite differences say", (pushed, np.abs(pushed)), true, bound, (i,))
        (one, other), size = found, np.abs(found[0])
        fine = np.isfinite(bounds[0] + bounds[1]) & (bounds[0] + bounds[1] <= EQUAL_DIFFERENCES * size)
        holomorphic &= bool(np.any(fine)) and bool(np.all(np.abs(other - 1j * one)[fine] <= 4 * EQUAL_DIFFERENCES * size[fine]))
    return holomorphic


def second_by_differences(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where the second derivative disagrees with finite differences of the pullback, by each argument along t and along i t."""
    subject, xs, g, count = attack.subject, example.xs, example.cotangent, len(example.xs)
    each = per_element(attack, xs, g.shape)
    for i, x in enumerate(xs):
        s, t = (tangents[i] for tangents in example.tangents[:2])
        if s is None or t is None or x.dtype.kind != "c" or subject.gradient(xs, g)[i] is None:
            continue
        found = subject.gradient(xs, g, [s if k == i else None for k in range(count)])[i]
        for tangent in (t * np.maximum(np.abs(x), 0.1), 1j * t * np.maximum(np.abs(x), 0.1)):
            true, bound = along(lambda at, i=i: subject.gradient(at, g)[i], xs, [tangent if k == i else None for k in range(count)])  # type: ignore[misc]
            if true.shape == x.shape:
                _compare("the second derivative is not what finite differences say", sum_terms([product(found, tangent, x)], each),
                         sum_terms([product(s, true, x)], each)[0], sum_terms([np.abs(s) * bound], each)[0], (i,), 2)


def _compare(what: str, found: tuple[Array, Array], true: Array, bound: Array, wrt: tuple[int, ...], order: int = 1) -> None:
    """Raise `Wrong` where a derivative is outside the error bound of the finite differences, at places where the bound is small."""
    value, size = found
    size = np.maximum(size, np.abs(true))
    with np.errstate(invalid="ignore"):
        far = np.isfinite(bound) & (bound <= MAX_DIFFERENCE_ERROR * size) & ~(np.abs(value - true) <= 8 * bound + DIFFERENCE_ERROR * size)
    if far.any():
        at = tuple(int(k) for k in np.argwhere(far)[0])
        raise Wrong(what, value[at], true[at], index=at, order=order, wrt=wrt)


def cauchy_riemann(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where the derivatives of a holomorphic op are not linear over the complex numbers."""
    subject = attack.subject

    def sides(xs: Arrays, g: Array, ts: Sequence[Array | None]) -> list[Sides]:
        out = []
        for i, (a, b) in enumerate(zip(subject.gradient(xs, 1j * g), subject.gradient(xs, g))):
            if a is not None and b is not None and b.dtype.kind == "c":
                out.append(Sides("the op is holomorphic, but vjp(i g) is not i vjp(g)", as_double(a), 1j * as_double(b), np.abs(as_double(b)), 1,
                                 (i,)))
        if subject.forward:
            pushed = as_double(subject.tangent(xs, ts))
            turned = subject.tangent(xs, [None if t is None else 1j * t for t in ts])
            out.append(Sides("the op is holomorphic, but jvp(i t) is not i jvp(t)", as_double(turned), 1j * pushed, np.abs(pushed), 1))
        return out

    agree_at(example, sides, 1)


def conjugate_symmetry(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where a holomorphic op that is real on the real axis violates f(conj z) = conj f(z)."""
    subject = attack.subject
    real = None if COMPLEX in attack.domains else real_value(attack, example)
    if real is None or real.dtype.kind != "f" or not np.isfinite(real).all():
        return

    def sides(arrays: Sequence[Array]) -> list[Sides]:
        value = np.conj(as_double(subject.value(arrays)))
        return [Sides("f(conj z) is not conj f(z)", as_double(subject.value([np.conj(x) for x in arrays])), value, COMPLEX_FACTOR * np.abs(value), 0)]

    agree(sides, example.xs)


def real_value(attack: Attack, example: Example) -> Array | None:
    """The value for the real parts of the arguments, None where the op refuses them."""
    try:
        return attack.subject.value([np.real(x).copy() for x in example.xs])
    except Exception:  # an op for complex numbers only
        return None


def real_axis(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where value or gradient for complex numbers on the real axis are not those for real numbers."""
    subject = attack.subject
    if any(np.any(np.imag(x)) for x in example.xs if x.dtype.kind == "c"):
        return
    usual = real_value(attack, example)
    if usual is None or usual.dtype.kind != "f":
        return

    def sides(xs: Arrays, g: Array) -> list[Sides]:
        real, g = [np.real(x).copy() for x in xs], np.real(g).copy()
        inside = [x.astype(np.complex128) if is_active(x) else x for x in real]
        value = subject.value(real)
        out = [Sides("the value on the real axis is not that for real numbers", as_double(subject.value(inside)), value + 0j,
                     COMPLEX_FACTOR * np.abs(value), 0)]
        if attack.order:
            given = g.astype(np.complex128) if subject.value(inside).dtype.kind == "c" else g
            for i, (a, b) in enumerate(zip(subject.gradient(inside, given), subject.gradient(real, g))):
                if a is not None and b is not None:
                    what = "the gradient on the real axis is not that for real numbers"
                    out.append(Sides(what, np.real(as_double(a)), as_double(b), COMPLEX_FACTOR * np.abs(b), 1, (i,)))
        return out

    agree_at(example, sides)
