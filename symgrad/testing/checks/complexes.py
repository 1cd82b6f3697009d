"""The check for complex numbers: against the formula in many digits, against finite differences, against real numbers, and in complex64."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.carriers import precise
from symgrad.formulas.parsing import parse
from symgrad.formulas.programs import NamedNumber, apply_step, functions
from symgrad.frameworks.adapter import Array, Arrays, NotApplicable, is_active
from symgrad.frameworks.calling import flat_names
from symgrad.graph.domains import COMPLEX
from symgrad.methods.extending import BUILT_IN
from symgrad.reference.recorder import Box
from symgrad.reference.sources import RATIO, STEPS, extrapolated_derivative
from symgrad.system.restoring import workdps
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import CHECKS, ORDINALS, ROUNDINGS, Sides, agree, agree_at, as_double, check
from symgrad.testing.checks.consistency import per_element, product, sum_terms
from symgrad.testing.checks.dtypes import check_narrow
from symgrad.testing.examples import Example, only_tangent
from symgrad.testing.failure import Wrong, counted
from symgrad.testing.references import PRECISE, precise_reference

LONGEST_STEP = 2.0**-5  # step of finite differences, relative to the number
COMPLEX_FACTOR = 2.0**16  # the factor by which functions of complex numbers may be less accurate than those of real ones
MAX_DIFFERENCE_ERROR = 1e-5  # relative error up to which finite differences are used
DIFFERENCE_ERROR = 1e-8  # relative error that finite differences are assumed to have
EQUAL_DIFFERENCES = 1e-6  # relative difference up to which two finite differences are equal


def takes_complex(attack: Attack) -> str:
    """A check for ops of complex numbers: those that are claimed to be, or have them as their domain, and symgrad's own."""
    if attack.claims.complex is False and COMPLEX in attack.domains:
        return ""
    tried = getattr(attack.subject.op, "name", None) in BUILT_IN
    return "" if attack.claims.complex or attack.claims.complex is None and tried else "it is not claimed for complex numbers"


@check("complex", draws="complex", when=takes_complex, most=7)
def check_complex(attack: Attack, example: Example) -> None:
    """Derivatives for complex numbers follow torch's convention: the pullback is the adjoint over the reals, Re⟨g, jvp(t)⟩ = Re⟨vjp(g), t⟩.

    - Value, pullback, pushforward and second derivative are those of a formula, if one is claimed, evaluated with many digits. Its derivatives are
      difference quotients of steps of 1e-20.
    - The pullback is the adjoint of the pushforward (so g conj(f′) for a holomorphic f), and its derivative is symmetric over the reals.
    - Pullback, pushforward and second derivative agree with finite differences along t and along i t, within a bound of their error.
    - The op is holomorphic where differences along i t are i times those along t; there vjp(i g) = i vjp(g) and jvp(i t) = i jvp(t).
    - A holomorphic op with real values on the real axis fulfils f(conj z) = conj f(z).
    - On the real axis value and gradient equal those for real numbers.
    - In complex64 value, derivatives and tangent are those of the same numbers in complex128, up to rounding.

    It applies where `complex=True` is claimed or the domain is COMPLEX, since most derivatives are written for real numbers. symgrad's own ops
    are tried without a claim.

    Source: K. Kreutz-Delgado, The Complex Gradient Operator and the CR-Calculus, 2009, sections 3 and 4.
    """
    value = complex_value(attack, example)
    if COMPLEX not in attack.domains:  # an op for complex numbers need not take real ones
        real_axis(attack, example)
    if attack.claims.formula is not None:
        by_formula(attack, example)
    dtypes = attack.claims.dtypes
    if any(x.dtype == np.complex128 for x in example.xs) and (dtypes is None or "complex64" in dtypes):
        check_narrow(attack, example._replace(cotangent=as_cotangent(value, example.cotangent)))
    if not attack.order or value.dtype.kind not in "fc":
        return
    example = example._replace(cotangent=as_cotangent(value, example.cotangent))
    holomorphic = by_differences(attack, example)
    if attack.subject.forward:
        CHECKS["adjoint"].body(attack, example)
    if attack.order > 1:
        CHECKS["symmetry"].body(attack, example)
    if holomorphic:
        cauchy_riemann(attack, example)
        conjugate_symmetry(attack, example)


def as_cotangent(value: Array, g: Array) -> Array:
    """A cotangent for a value: its real part for a real one."""
    return g if value.dtype.kind == "c" else np.real(g).copy()


DIGITS, STEP = 120, 20  # of a formula of complex numbers, and the exponent of the step of its difference quotients
VANISHING = 1e-20  # a difference quotient of this size may be its own error
JUMP = 1e12  # what a derivative is relative to the value only on a branch cut


def formula_of(attack: Attack) -> Callable[..., Array]:
    """A function `(xs, *directions)`: the value of the claimed formula at complex numbers, or its derivative along directions."""
    formula = attack.claims.formula
    if isinstance(formula, sympy.Basic):
        expression = formula.expr if isinstance(formula, sympy.Lambda) else formula
        own = {str(s): s for s in expression.free_symbols}
        compiled = sympy.lambdify([own.get(name, sympy.Symbol(name)) for name in attack.names], expression, "mpmath")

        def read(floats: Arrays, cells: Sequence[Any], digits: int) -> Any:
            with workdps(mpmath.mp, digits):
                return np.frompyfunc(lambda *given: compiled(*(mpmath.mpmathify(x) for x in given)), len(cells), 1)(*cells)
    elif isinstance(formula, str):  # SymPy's expressions of it are of real symbols
        parsed, known = parse(formula), functions()

        def number(x: Any) -> Box:
            return Box(PRECISE, PRECISE.lift(+getattr(precise.context, x.name) if isinstance(x, NamedNumber) else x))

        def read(floats: Arrays, cells: Sequence[Any], digits: int) -> Any:
            elements = zip(flat_names(attack.names, [c.shape for c in cells]), (c[at] for c in cells for at in np.ndindex(*c.shape)))
            boxes = {name: Box(PRECISE, cell) for name, cell in (*elements, *zip(attack.names, cells))}
            with precise.working_precision(digits):
                return PRECISE.lift(parsed.evaluate_with(number, boxes, lambda step, xs: apply_step(step, xs, PRECISE, known)).value)
    else:
        read = precise_reference(attack)[0]  # type: ignore[index, assignment]

    def derivative(xs: Arrays, *directions: Sequence[Array | None]) -> Array:
        with precise.working_precision(DIGITS):
            step, total = precise.context.mpf(10) ** -STEP, 0
            for signs in itertools.product((1, -1), repeat=len(directions)):
                cells = [precise.lift_value(x) for x in xs]
                for sign, ts in zip(signs, directions):
                    cells = [c if t is None else c + precise.lift_value(t) * (sign * step) for c, t in zip(cells, ts)]
                total = total + read(xs, cells, DIGITS) * int(np.prod(signs))
            found = np.asarray(total / (2 * step) ** len(directions) if directions else total, object)
            return np.array([complex(x) for x in found.ravel().tolist()], np.complex128).reshape(found.shape)

    return derivative


def by_formula(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where the value or a derivative is not that of the claimed formula at complex numbers, which it may not take."""
    subject, count = attack.subject, len(example.xs)
    try:
        true = formula_of(attack)
        true(example.xs)
    except Exception:  # a formula of real numbers
        return
    each = per_element(attack, example.xs, example.cotangent.shape)
    exact = "the formula, evaluated with 120 digits"

    def size(x: Array, order: int) -> Array:
        return np.asarray((np.abs(x) + VANISHING) * attack.ulp("complex128", order) / ROUNDINGS)

    def sides(xs: Arrays, g: Array, *ts: Sequence[Array | None]) -> list[Sides]:
        value = true(xs)
        most = np.max(np.abs(value), initial=1.0, where=np.isfinite(value)) * JUMP
        found = as_double(subject.value(xs))
        g = as_cotangent(found, g)
        out = [Sides("the value is not that of the formula", found + 0j, value, size(value, 0), 0, identical=False)]
        for i, order in itertools.product(range(count), range(1, attack.order + 1)):
            if ts[0][i] is None or xs[i].dtype.kind != "c":
                continue
            sets = [only_tangent(t, i) for t in ts[1:order]]
            pulled = subject.gradient(xs, g, *sets)[i]
            for unit in (1.0, 1j):
                t: Any = np.full(xs[i].shape, unit) if each else ts[0][i] * unit  # type: ignore[operator]
                slope = true(xs, *sets, only_tangent([t] * count, i))
                slope = np.where(np.abs(slope) < most, slope, np.nan)
                (left, _), (right, terms) = (sum_terms([product(a, b, b)], each) for a, b in ((pulled, t), (g, slope)))
                terms = terms if not each else np.abs(g) * np.abs(slope)
                out.append(Sides(f"the {ORDINALS[order]} is not that of the formula", left, right, size(terms, order), order, (i,)))
                if order == 1 and subject.forward:
                    with contextlib.suppress(NotApplicable):
                        pushed = as_double(subject.tangent(xs, only_tangent([t] * count, i))) + 0j
                        out.append(Sides("the tangent is not that of the formula", pushed, slope, size(slope, 1), 1, (i,)))
        return out

    agree_at(example, sides, len(example.tangents), exact=exact)


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


def by_differences(attack: Attack, example: Example) -> bool:
    """Raise `Wrong` where the pullback, its derivative or the pushforward disagree with finite differences by each argument along t and along i t.

    Return whether the op is holomorphic at every place.
    """
    subject, xs, g, holomorphic = attack.subject, example.xs, example.cotangent, True
    pulled, each = subject.gradient(xs, g), per_element(attack, xs, g.shape)
    steps = np.concatenate([[0.0], h := LONGEST_STEP * RATIO ** -np.arange(STEPS), -h])
    for i, x in enumerate(xs):
        s = example.tangents[0][i]
        if s is None or x.dtype.kind != "c":
            continue
        levels: list[Any] = [("the pullback", subject.value, pulled[i], g)]
        if attack.order > 1 and pulled[i] is not None:
            levels.append(("the second derivative", lambda at, i=i: subject.gradient(at, g)[i],
                           subject.gradient(xs, g, only_tangent(example.tangents[0], i))[i], s))
        for order, (what, function, derivative, seed) in enumerate(levels, 1):
            slopes = []
            for unit in (1.0, 1j):
                t: Any = example.tangents[order - 1][i]
                tangent = unit * t * np.maximum(np.abs(x), 0.1)  # so that a step is small relative to the number
                ts = only_tangent([tangent] * len(xs), i)
                values = np.array([as_double(function([x if t is None else x + k * t for x, t in zip(xs, ts)])) for k in steps])
                true, bound = extrapolated_derivative(values, steps.reshape(-1, *[1] * (values.ndim - 1)), 1.0)
                slopes.append((true, bound))
                if true.shape == seed.shape:
                    _compare(f"{what} is not what finite differences say", sum_terms([product(derivative, tangent, x)], each),
                             sum_terms([product(seed, true, seed)], each)[0], sum_terms([np.abs(seed) * bound], each)[0], (i,), order)
                if order == 1 and subject.forward:
                    pushed = subject.tangent(xs, ts)
                    _compare("the pushforward is not what finite differences say", (pushed, np.abs(pushed)), true, bound, (i,), 1)
            if order == 1:
                (one, first), (other, second) = slopes
                size = np.abs(one)
                fine = np.isfinite(first + second) & (first + second <= EQUAL_DIFFERENCES * size)
                holomorphic &= bool(np.any(fine)) and bool(np.all(np.abs(other - 1j * one)[fine] <= 4 * EQUAL_DIFFERENCES * size[fine]))
    return holomorphic


def _compare(what: str, found: tuple[Array, Array], true: Array, bound: Array, wrt: tuple[int, ...], order: int) -> None:
    value, size = found
    size = np.maximum(size, np.abs(true))
    sure = np.isfinite(bound) & (bound <= MAX_DIFFERENCE_ERROR * size)
    counted(np.sum(sure))
    for at in map(tuple, np.argwhere(sure & ~(np.abs(value - true) <= 8 * bound + DIFFERENCE_ERROR * size))):
        raise Wrong(what, value[at], true[at], index=tuple(map(int, at)), order=order, wrt=wrt)


def cauchy_riemann(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where the derivatives of a holomorphic op are not linear over the complex numbers."""
    subject = attack.subject

    def sides(xs: Arrays, g: Array, ts: Sequence[Array | None]) -> list[Sides]:
        out = []
        for i, (a, b) in enumerate(zip(subject.gradient(xs, 1j * g), subject.gradient(xs, g))):
            if a is not None and b is not None and b.dtype.kind == "c":
                out.append(Sides("the op is holomorphic, but vjp(i g) is not i vjp(g)", a, 1j * as_double(b), None, 1, (i,)))
        if subject.forward:
            turned = subject.tangent(xs, [None if t is None else 1j * t for t in ts])
            out.append(Sides("the op is holomorphic, but jvp(i t) is not i jvp(t)", turned, 1j * as_double(subject.tangent(xs, ts)), None, 1))
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
    """The value for the real parts of the arguments, None where the op refuses them: it is for complex numbers only."""
    with contextlib.suppress(Exception):
        return attack.subject.value([np.real(x).copy() for x in example.xs])
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
        value, found = subject.value(real), subject.value(inside)
        out = [Sides("the value on the real axis is not that for real numbers", found, value + 0j, COMPLEX_FACTOR * np.abs(value), 0)]
        if attack.order:
            for i, (a, b) in enumerate(zip(subject.gradient(inside, g.astype(found.dtype)), subject.gradient(real, g))):
                if a is not None and b is not None:
                    size = COMPLEX_FACTOR * np.abs(b)
                    out.append(Sides("the gradient on the real axis is not that for real numbers", np.real(a), b, size, 1, (i,)))
        return out

    agree_at(example, sides)
