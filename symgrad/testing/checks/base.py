"""The decorator `check`, the table of all checks, `check_op`, which runs them, and the comparison of two computations up to rounding."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from ml_dtypes import finfo

from symgrad.algebra.limits import OutOfTime, abort_after, poll
from symgrad.carriers.lapack import hermitian_parts
from symgrad.frameworks.adapter import Array, Arrays, NotApplicable
from symgrad.reports.streams import progress_bar
from symgrad.testing.attack import Attack, Body, Check, When, run_at_example, user_example
from symgrad.testing.checks.measuring import report_lost_digits
from symgrad.testing.examples import Example
from symgrad.testing.failure import CheckFailure, Failure, OpReport, Result, Wrong, counted, new_count
from symgrad.testing.shrinking import simplest_failure

ROUNDINGS = 16  # the allowed difference in units of the sum of the absolute values of the terms
SPREADS = 16  # the allowed difference in units of its variation when the inputs change by a few ULP
PROBES = 64
SHIFTS = (4.0, 256.0, 2.0**20, 64.0)  # by how many ULP the numbers change, in each quarter of the probes
LARGEST_SHIFT = 2.0**-12  # the largest of these that is near, relative to the numbers, unless it is less than four ULP
TINY = 2.0**-1074
MODERATE = (1e100, 1e50, 1e30)  # limits for float64; those of another dtype are scaled by the logarithm of its largest number
LOGARITHM = math.log(np.finfo(np.float64).max)


class Sides(NamedTuple):
    """Two arrays that should be equal up to rounding (None is zeros), with the magnitude of their terms: that of the right side if it is None.

    With `identical`, elements that are not finite must be equal on both sides; otherwise they are skipped.
    """

    what: str
    left: Any
    right: Any
    size: Any = None
    order: int | None = None
    wrt: tuple[int, ...] = ()
    identical: bool = False


def as_double(x: Any) -> Array:
    """The numbers as float64 or complex128."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def complete(s: Sides) -> Sides:
    """The sides without None."""
    if s.left is None and s.right is None:
        return s._replace(left=np.zeros(()), right=np.zeros(()), size=np.array(np.inf))
    left, right = (np.zeros(np.shape(b)) if a is None else np.asarray(a) for a, b in ((s.left, s.right), (s.right, s.left)))
    return s._replace(left=left, right=right, size=np.abs(as_double(right)) if s.size is None else s.size)


def epsilon(arrays: Arrays) -> float:
    """The largest machine epsilon among the floating-point dtypes of some arrays."""
    return max((float(finfo(x.dtype).eps) for x in arrays if x.dtype.kind in "fcV"), default=2.0**-52)


def shift_by_ulp(x: Array, k: int, size: Any = 0.0, near: bool = False) -> Array:
    """The array with each number changed by a few ULP: larger in absolute value for an even k, smaller for an odd one.

    In the last quarter of the probes these are the ULP of `size`, if that is larger: a small number that is added to a large one must change by
    as much as the sum loses. Equal numbers change alike, so that ties stay ties. All change to the same side, so that two calls on one side of a
    kink do not jump.

    >>> a, b, c = shift_by_ulp(np.array([1.0, 1.0, 2.0]), 0)
    >>> bool(a == b > 1.0 and c > 2.0)
    True
    """
    if x.dtype.kind not in "fcV":
        return x
    numbers = np.ascontiguousarray(as_double(x)).reshape(-1)
    parts = numbers.view(np.float64)
    quarter = 4 * k // PROBES
    mixed = (parts.view(np.uint64) ^ np.uint64(k * 0x9E3779B97F4A7C15 % 2**64)) * np.uint64(0xBF58476D1CE4E5B9)
    farthest = min(SHIFTS[quarter], max(SHIFTS[0], LARGEST_SHIFT / float(finfo(x.dtype).eps))) if near else SHIFTS[quarter]
    places = 1.0 + (farthest - 1.0) * (mixed >> np.uint64(32)).astype(np.float64) * 2.0**-32  # at least one ULP, so that every number changes
    length = np.abs(parts)
    if quarter == 3:
        length = np.maximum(length, np.repeat(np.broadcast_to(size, x.shape).ravel(), parts.size // max(numbers.size, 1)))
    out = parts + np.copysign(length, parts) * (places * (float(finfo(x.dtype).eps) * (-1.0 if k % 2 else 1.0)))
    return np.where(np.isfinite(parts), out, parts).view(numbers.dtype).reshape(x.shape).astype(x.dtype)


def magnitudes(arrays: Sequence[Array]) -> Any:
    """The largest absolute value at each place of some arrays, or in all of them if their shapes differ; at least 1."""
    each = [np.where(np.isfinite(a), a, 0.0) for a in (np.abs(as_double(x)) for x in arrays if x.dtype.kind in "fcV")]
    if len({a.shape for a in each}) > 1:
        each = [np.max(a, initial=0.0) for a in each]
    return np.maximum(1.0, np.max(each, axis=0, initial=0.0)) if each else 1.0


def moderate_mask(xs: Arrays, shape: tuple[int, ...], order: int, each: bool) -> Array:
    """A mask of the places where derivatives of an order neither overflow nor lose digits to underflow, by the magnitudes of all arguments.

    With `each` an element of the result depends only on the same element of the arguments, otherwise on all elements.
    """
    out = np.ones(shape, dtype=bool)
    for x in xs:
        if x.dtype.kind in "fcV":
            size = np.abs(as_double(x))
            limit = MODERATE[order - 1] ** (math.log(float(finfo(x.dtype).max)) / LOGARITHM)
            fine = (size == 0) | (size > 1 / limit) & (size < limit)
            out &= fine if each and fine.shape == shape else bool(fine.all())
    return out


def agree(sides: Callable[[Sequence[Array]], list[Sides]], arrays: Sequence[Array], exact: str = "", usual: bool = False,
          near: bool = False) -> None:
    """Raise `Wrong` if two sides differ by more than 16 roundings of their terms, and by more than the rounding errors at nearby inputs.

    `sides(arrays)` computes them. After cancellation, differences are larger than 16 roundings; both sides are then computed again with every
    number in `arrays` changed by a few ULP: rounding errors vary by their own size, the difference of a wrong result is constant. With `usual`
    the right side is that of a usual call, and only its rounding errors count: what a call of another kind gives may vary by any amount. With
    `near` numbers of narrow types change by little.
    """
    found = list(map(complete, sides(arrays)))
    unit = epsilon(arrays)
    suspects: list[tuple[int, Array]] = []
    for n, (what, left, right, size, order, wrt, identical) in enumerate(found):
        if left.shape != right.shape:
            raise Wrong(f"{what}: the shape is {left.shape} and should be {right.shape}", left, right, order=order, wrt=wrt, exact=exact)
        finite = np.isfinite(left) & np.isfinite(right)
        counted(np.sum(finite & np.isfinite(size)))
        far = finite & ~(np.abs(as_double(left) - as_double(right)) <= ROUNDINGS * (unit * size + TINY)) & np.isfinite(size)
        if identical and not finite.all():
            odd = ~finite & ~((left == right) | (left != left) & (right != right))
            if odd.any():
                raise _wrong(found[n], odd, exact)
        if far.any():
            suspects.append((n, far))
    if suspects:
        suspects = _not_rounding(sides, arrays, found, suspects, usual, near)
    if suspects:
        n, far = suspects[0]
        raise _wrong(found[n], far, exact)


def agree_at(example: Example, sides: Callable[..., list[Sides]], sets: int = 0, usual: bool = False, exact: str = "",
             near: bool = False) -> None:
    """As `agree`, for `sides(xs, g, *tangents)` of an example: its arguments, its cotangent, and its first sets of tangents."""
    count = len(example.xs)
    given = [(k, i, t) for k, ts in enumerate(example.tangents[:sets]) for i, t in enumerate(ts) if t is not None]

    def of_arrays(arrays: Sequence[Array]) -> list[Sides]:
        tangents: list[list[Array | None]] = [[None] * count for _ in range(sets)]
        for (k, i, _), t in zip(given, arrays[count + 1:]):
            tangents[k][i] = t
        return sides(arrays[:count], arrays[count], *tangents)

    agree(of_arrays, [*example.xs, example.cotangent, *(t for _, _, t in given)], exact, usual, near)


def _not_rounding(sides: Callable[[Sequence[Array]], list[Sides]], arrays: Sequence[Array], found: list[Sides],
                  suspects: list[tuple[int, Array]], usual: bool, near: bool) -> list[tuple[int, Array]]:
    """The differences that are larger than their own variation, or that of one of the sides, when the numbers change by a few ULP."""
    size = magnitudes(arrays)
    seen: dict[tuple[int, str, int], list[Array]] = {}
    for k in range(PROBES):
        try:
            again = list(map(complete, sides([shift_by_ulp(x, k, size, near) for x in arrays])))
        except Exception:  # the op raises outside its domain
            continue
        for n, far in suspects:
            left, right = as_double(again[n].left), as_double(again[n].right)
            if left.shape == far.shape == right.shape:
                if not usual:
                    seen.setdefault((n, "difference", k % 2), []).append(left - right)
                if 2 * k < PROBES:  # farther away they vary by more than rounding
                    if not usual:
                        seen.setdefault((n, "left", k % 2), []).append(left)
                    seen.setdefault((n, "right", k % 2), []).append(right)
        if k % 16 == 15:
            suspects = [(n, far & ~(np.abs(as_double(found[n].left) - as_double(found[n].right)) <= SPREADS * _largest_distance(n, far, seen)))
                        for n, far in suspects]
            suspects = [(n, far) for n, far in suspects if far.any()]
            if not suspects:
                break
    return suspects


def _largest_distance(n: int, far: Array, seen: dict[tuple[int, str, int], list[Array]]) -> Array:
    out = np.zeros(far.shape)
    for (number, _, _), rows in seen.items():
        if number == n:
            for part in (np.real, np.imag) if rows[0].dtype.kind == "c" else (np.asarray,):
                each = np.array([part(row) for row in rows])
                out = np.fmax(out, np.fmax.reduce(each) - np.fmin.reduce(each))
    return out


def _wrong(sides: Sides, far: Array, exact: str) -> Wrong:
    at = tuple(int(i) for i in np.argwhere(far)[0]) if far.ndim else ()
    return Wrong(sides.what, np.asarray(sides.left)[at], np.asarray(sides.right)[at], index=at, order=sides.order, wrt=sides.wrt, exact=exact)


def same_bits(what: str, a: Any, b: Any, **where: Any) -> None:
    """Raise `Wrong` unless two arrays are equal to the bit, NaN included; None equals None."""
    counted(1 if a is None else np.size(a))
    if a is None and b is None:
        return
    if a is None or b is None:
        raise Wrong(f"{what}: one is None, the other is not", a, b, **where)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        raise Wrong(f"{what}: shape and dtype are {a.shape}, {a.dtype} and {b.shape}, {b.dtype}", a, b, **where)
    if a.tobytes() != b.tobytes():
        differ = (a != b) & ~((a != a) & (b != b)) | (np.signbit(a) != np.signbit(b) if a.dtype.kind == "f" else False)
        if not differ.any():
            return
        at = tuple(int(i) for i in np.argwhere(differ)[0])
        raise Wrong(what, a[at], b[at], index=at, **where)


CHECKS: dict[str, Check] = {}
ORDINALS = ("value", "gradient", "second derivative", "third derivative")


def differentiable(attack: Attack) -> str:
    """A check for ops with derivatives."""
    return reason_without_order(attack, 1)


def reason_without_order(attack: Attack, order: int) -> str:
    """The reason why derivatives of an order are not checked; "" if they are."""
    if attack.order >= order:
        return ""
    if attack.profile.order < order:
        return f"derivatives of order {order} are not asked for"
    return f"it has no {('', 'second ', 'third ')[order - 1] * bool(attack.order)}derivative"


def check(name: str, draws: str = "points", when: When = lambda attack: "", most: int | None = None) -> Callable[[Body], Callable[..., Result]]:
    """Make a public check of a body and enter it in the table. The body raises `Wrong` for a wrong result.

    The check is a function `(op, formula=..., domain=..., profile=..., seed=..., inputs=..., ...)` that returns a `Result`, and raises `CheckFailure`
    with the simplest input found.
    """
    def make(body: Body) -> Callable[..., Result]:
        @functools.wraps(body)
        def function(op: Any, *, inputs: Sequence[Any] | None = None, cotangent: Any = None, tangents: Any = None, **options: Any) -> Result:
            attack = op if isinstance(op, Attack) else Attack(op, **options)
            result = run(CHECKS[name], attack, user_example(attack, inputs, cotangent, tangents))
            if result.failure is not None:
                raise CheckFailure(result.failure)
            return result

        del function.__wrapped__  # whose signature is not the one people call
        function.check_name = name  # type: ignore[attr-defined]
        CHECKS[name] = Check(name, body, draws, when, most, function)
        return function

    return make


@hermitian_parts()  # of which the rules are the derivatives, element by element
def run(check: Check, attack: Attack, examples: Sequence[Example] | None = None) -> Result:
    """Run one check at every example up to the first with a wrong result; then simplify the example.

    Results that only lost digits do not end the check, and are what is reported where none is wrong. At drawn examples they count as wrong
    unless most ordinary points keep their digits.
    """
    start = time.perf_counter()
    if examples is None:
        _ = attack.dtype  # raises if the op has no value at any point
    reason = attack.claims.without.get(check.name) or check.when(attack)
    if reason:
        return Result(check.name, "not applicable", reason)
    seen = 0
    failure: Failure | None = None
    examples_lost: list[tuple[Example, Wrong]] = []
    lost: list[Wrong] = []
    attack.compared.clear()
    count = new_count()
    chosen: Sequence[Example] = ()
    try:
        chosen = attack.examples(check.draws)[:check.most] if examples is None else examples
        for example in chosen:
            poll()
            wrong = run_at_example(check, attack, example)
            seen += 1
            if wrong is not None and not wrong.imprecise:
                failure = simplest_failure(check, attack, example, wrong, fixed=examples is not None)
                break
            if wrong is not None:
                examples_lost.append((example, wrong))
                lost += attack.lost
        if failure is None and examples_lost:
            compared = list(attack.compared)
            failure = simplest_failure(check, attack, *max(examples_lost, key=lambda found: found[1].ulp or 0.0), fixed=examples is not None)
            if failure.wrong.imprecise:
                report_lost_digits(attack, failure.wrong, compared, lost, fixed=examples is not None)
    except NotApplicable as error:
        return Result(check.name, "not applicable", str(error), seen, time.perf_counter() - start)
    except OutOfTime:
        return Result(check.name, "not checkable", f"aborted: {seen} of {len(chosen)} planned examples were compared", seen,
                      time.perf_counter() - start, None, count[0])
    seconds, verdict = time.perf_counter() - start, "passed"
    if failure is None and not count[0]:
        return Result(check.name, "not applicable", f"nothing could be compared at {seen} examples", seen, seconds)
    if failure is not None and not (failure.wrong.imprecise and attack.claims.imprecise):
        verdict = failure.verdict
    said = "" if failure is None else failure.wrong.what
    return Result(check.name, verdict, said, seen, seconds, None if verdict == "passed" else failure, count[0])


ACCURACY = "accuracy"  # the name of the scan, which pytest runs beside the checks


def check_op(op: Any, *, checks: Iterable[str] | None = None, raise_exception: bool = True, progress: Any = None, seconds: float | None = None,
             **options: Any) -> OpReport:
    """Run every check that applies to an op, and report what is wrong.

    The options are the claims of `symgrad.testing.Claims` (formula, domain, special, ...), `profile` ("dev", "ci" or "thorough") and
    `seed`; `checks` are the names of those to run, all of them where it is None. After `seconds` of processor time the check that runs and those
    that are left are "not checkable", and so is the op unless a check has failed; nothing else depends on time.

    Raises CheckFailure, whose message holds every failure, unless `raise_exception` is False; TypeError and ValueError for claims that do
    not fit the op; ValueError for a check that does not exist.
    """
    attack = op if isinstance(op, Attack) else Attack(op, **options)
    wanted = list(CHECKS) if checks is None else list(checks)
    check_names(wanted, "check_op")
    check_names(attack.claims.without, "without", ACCURACY)
    report = OpReport(attack.name, attack.profile.name, attack.seed)
    with progress_bar(progress, attack.name) as tell:
        with contextlib.suppress(OutOfTime), abort_after(seconds):
            for k, name in enumerate(wanted):
                tell(name, k, len(wanted))
                poll()
                report.results.append(run(CHECKS[name], attack))
    report.results += [Result(name, "not checkable", f"aborted after {seconds} seconds: not begun") for name in wanted[len(report.results):]]
    report.exact = getattr(attack.truth, "exact", "")
    if raise_exception and report.failures:
        raise CheckFailure(*report.failures)
    return report


def check_names(names: Iterable[str], said: str, *more: str) -> None:
    """Raise ValueError for a name that is not that of a check or of the accuracy scan."""
    unknown = [name for name in names if name not in (*CHECKS, *more)]
    if unknown:
        raise ValueError(f"{said}: there is no check {unknown[0]!r}; those are {', '.join([*CHECKS, *more])}")
