"""The check of an op in the narrower floating-point types, and the check for complex numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

from symgrad.frameworks.adapter import Array, Arrays, NotApplicable, is_active
from symgrad.graph.domains import COMPLEX
from symgrad.methods.extending import BUILT_IN
from symgrad.reference.sources import RATIO, STEPS, extrapolated_derivative
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import CHECKS, Sides, agree, agree_at, as_double, check
from symgrad.testing.checks.consistency import per_element, product, sum_terms
from symgrad.testing.checks.measuring import compare, read, sizes_of_terms
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong

PLACES = 4  # roundings of an input within which a jump may lie
NARROWEST = 2.0**-8  # the precision of bfloat16


class _Double:
    """A reference: the op's results for float64, which has more digits than the narrower types."""

    exact = "the op itself for float64"

    def __init__(self, attack: Attack):
        self.subject = attack.subject
        self._conditions: dict[Any, np.ndarray] = {}

    def value(self, xs: Arrays) -> np.ndarray:
        return _numbers(self.subject.value([x.copy() for x in xs]))

    def gradient(self, xs: Arrays, cotangent: np.ndarray) -> list[np.ndarray | None]:
        return [None if g is None else _numbers(g) for g in self.subject.gradient([x.copy() for x in xs], cotangent)]

    def certain(self, xs: Arrays, at: tuple[int, ...], wrt: int | None, cotangent: np.ndarray | None) -> Any:
        found = self.value(xs) if cotangent is None or wrt is None else self.gradient(xs, cotangent)[wrt]
        return None if found is None else found[at]

    def condition(self, xs: Arrays, at: tuple[int, ...], wrt: int | None, cotangent: np.ndarray | None) -> Any:
        """The condition of one number: the size of the terms that it is computed from."""
        inputs = [*xs, *([] if cotangent is None else [cotangent])]
        key = wrt, *((x.shape, x.tobytes()) for x in inputs)
        if key not in self._conditions:
            self._conditions[key] = sizes_of_terms(self.subject, inputs, len(xs), wrt)
        return mpmath.mpf(float(self._conditions[key][at]))

    def may_jump(self, xs: Arrays, at: tuple[int, ...], value: float, epsilon: float, wrt: int | None = None,
                 cotangent: np.ndarray | None = None) -> bool:
        """Whether an element is one of those for inputs that are changed by their last places, as next to a jump."""
        inputs = [*xs, *([] if cotangent is None else [cotangent])]
        base = float(read(self.subject, inputs, len(xs), wrt)[at])
        low = high = base
        for i, x in enumerate(xs):
            for place in range(x.size) if is_active(x) else ():
                around = [base]
                for sign in (1, -1):
                    changed = [v.copy() for v in inputs]
                    changed[i].reshape(-1)[place] *= 1 + sign * PLACES * epsilon
                    around.append(float(read(self.subject, changed, len(xs), wrt)[at]))
                low, high = low + np.nanmin(around) - base, high + np.nanmax(around) - base
        slack = PLACES * epsilon * max(abs(low), abs(high))
        return bool(low - slack <= value <= high + slack)


def _numbers(x: np.ndarray) -> np.ndarray:
    out = np.empty(np.size(x), object)
    out[:] = [mpmath.mpf(float(v)) if np.isfinite(float(v)) else None for v in np.ravel(x).tolist()]
    return out.reshape(np.shape(x))


@check("dtypes", draws="low", when=lambda attack: "it is random" if attack.claims.random else attack.of_complex)
def check_dtypes(attack: Attack, example: Example) -> None:
    """In each narrower floating-point type, value and gradient keep the type and are accurate to its ULP.

    The reference is the formula, or the op in float64 for arrays and for ops without a formula. An op may refuse 16-bit types that
    it does not claim. Arguments of several types (one float32, or whole numbers for elementwise ops, the others float64) have the
    results of the same numbers in float64, to the digits of float32; an op may refuse them.
    """
    reference = vars(attack).setdefault("_double", _Double(attack))
    _check_mixed_types(attack, example, reference)
    subject, claimed = attack.subject, attack.claims.dtypes
    whole = np.asarray(subject.value(example.xs)).dtype
    if attack.dtype != "float64" and not (attack.truth is not None and attack.elementwise):
        raise NotApplicable(f"it takes no float64, and there is nothing that its numbers in {attack.dtype} could be compared with")
    for name in claimed or subject.dtypes:
        if name == "float64" or name.startswith("complex"):
            continue
        dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
        of = attack.truth if attack.truth is not None and attack.elementwise else reference
        xs = [x.astype(dtype) if x.dtype.kind == "f" else x for x in example.xs]
        g = example.cotangent.astype(dtype)
        wide = [x.astype(np.float64) if x.dtype == dtype else x for x in xs]
        try:
            value = subject.value(xs)
        except (TypeError, NotImplementedError, RuntimeError):
            if claimed is None and dtype.itemsize < np.dtype(attack.dtype).itemsize and dtype.itemsize < 4:
                continue
            raise
        _check_dtype(attack, f"the value for {name}", value, dtype, whole)
        compare(attack, f"the value for {name}", value, of.value(wide), wide, of=of)
        if not attack.order or whole != attack.dtype:
            continue
        double = g.astype(np.float64)
        for i, (got, true) in enumerate(zip(subject.gradient(xs, g), of.gradient(wide, double))):
            if got is not None and true is not None:
                _check_dtype(attack, f"the gradient for {name}", got, dtype, whole)
                compare(attack, f"the gradient for {name}", got, true, wide, i, double, wrt=(i,), of=of)


def _check_mixed_types(attack: Attack, example: Example, of: _Double) -> None:
    """Raise `Wrong` where arguments of several types have other results than the same numbers in float64."""
    subject, active = attack.subject, [i for i, x in enumerate(example.xs) if x.dtype == np.float64]
    if len(active) < 2 or attack.dtype != "float64" or attack.claims.dtypes is not None and "float32" not in attack.claims.dtypes:
        return
    for i in active:
        for dtype in ("float32", "int64")[:1 + attack.elementwise]:
            narrow = _of_many_digits(attack, example.xs[i], i).astype(dtype)
            if dtype == "int64":
                narrow = np.resize([n for n in (3, -2, 1, 2, -5, 7, 4) if n in attack.domain_of(i)] or [1], narrow.shape)
            xs = [narrow if k == i else x for k, x in enumerate(example.xs)]
            wide = [x.astype(np.float64) if k == i else x for k, x in enumerate(xs)]
            what = f"with argument {i} of {dtype} and the others of float64"
            try:
                value = np.asarray(subject.value(xs))
                usual = np.asarray(subject.value(wide))
            except Exception:  # the op refuses it
                continue
            if usual.dtype != np.float64 or value.shape != usual.shape:
                continue
            if attack.elementwise and value.dtype != np.float64:
                raise Wrong(f"the value {what} has the dtype {value.dtype} and should have float64", value)
            compare(attack, f"the value {what}", value.astype(np.float32), of.value(wide), wide, of=of)
            if not attack.order:
                continue
            g = example.cotangent
            try:
                found = subject.gradient(xs, g.astype(value.dtype))
            except Exception:  # the op refuses it
                continue
            for k, (got, true) in enumerate(zip(found, of.gradient(wide, g))):
                if true is not None and is_active(xs[k]):
                    got = np.zeros(xs[k].shape) if got is None else got
                    compare(attack, f"the gradient {what}", np.asarray(got).astype(np.float32), true, wide, k, g, wrt=(k,), of=of)


def _of_many_digits(attack: Attack, x: np.ndarray, i: int) -> np.ndarray:
    """Numbers next to those of the narrowest type, which have few digits."""
    domain = attack.domain_of(i)
    moved = (x * (1 - NARROWEST / 3)).astype(np.float32)
    return np.where(np.reshape([float(v) in domain for v in moved.ravel().tolist()], x.shape), moved, x)


def _check_dtype(attack: Attack, what: str, got: np.ndarray, dtype: np.dtype, whole: np.dtype) -> None:
    """Raise `Wrong` unless the op keeps the type; an op that returns another type for float64, too, is left alone."""
    if whole == attack.dtype and np.asarray(got).dtype != dtype:
        instead = "" if attack.claims.dtypes else f"; if the op is made for {attack.dtype} alone, claim dtypes=({attack.dtype!r},)"
        raise Wrong(f"{what} has the dtype {np.asarray(got).dtype}{instead}", got)


LONGEST_STEP = 2.0**-5  # step of finite differences, relative to the number
COMPLEX_FACTOR = 2.0**16  # the factor by which functions of complex numbers may be less accurate than those of real ones
MAX_DIFFERENCE_ERROR = 1e-5  # relative error up to which finite differences are used
DIFFERENCE_ERROR = 1e-8  # relative error that finite differences are assumed to have
EQUAL_DIFFERENCES = 1e-6  # relative difference up to which two finite differences are equal


def takes_complex(attack: Attack) -> str:
    """A check for ops of complex numbers: those that are claimed to be, and symgrad's own."""
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

    It applies where `complex=True` is claimed, since most derivatives are written for real numbers. symgrad's own ops are tried without a claim.

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
    """The derivative of a function along tangents by finite differences, and a bound of its error."""
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
