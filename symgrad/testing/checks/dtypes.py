"""The check of an op in the narrower floating-point types, and for whole numbers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import mpmath
import numpy as np
from ml_dtypes import finfo

from symgrad.dtypes.dtype import numpy_dtype
from symgrad.frameworks.adapter import Array, Arrays, NotApplicable, is_active
from symgrad.graph.domains import MatrixDomain
from symgrad.sampling.numbers import edge_numbers
from symgrad.testing.attack import Attack, complete_example, plan_of
from symgrad.testing.checks.base import Sides, agree_at, check, complete
from symgrad.testing.checks.consistency import moderate_sides
from symgrad.testing.checks.measuring import compare, read, sizes_of_terms
from symgrad.testing.checks.memory import is_first, results, sides_of
from symgrad.testing.claimed import cast
from symgrad.testing.examples import LARGEST, Draft, Example
from symgrad.testing.failure import Wrong

PLACES = 4  # roundings of an input within which a jump may lie
NARROWEST = 2.0**-8  # the precision of bfloat16
LEAST_ELEMENTS = 4  # of an elementwise op's examples at which derivatives above the first are compared in two types
SUBNORMAL = 0.37, 0.011, 2.0**-7  # numbers below the smallest normal one, relative to it
WHOLE_NUMBERS = (3, -2, 1, 2, -5, 7, 4)


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

    The reference is the formula, or the op in float64 for arrays and for ops without a formula. An op may refuse 16-bit types that it does not claim.
    Ops of elements are also compared at numbers below the normal ones, in float32 at numbers of every size.
    In float32 the tangent and the second and third derivatives are those of the same numbers in float64, up to rounding. Arguments of several types
    (one float32, or whole numbers for elementwise ops, the others float64), and whole numbers alone, have the results of the same numbers in float64,
    to the digits of float32; an op may refuse them.
    """
    reference = vars(attack).setdefault("_double", _Double(attack))
    _check_mixed_types(attack, example, reference)
    whole = np.asarray(attack.subject.value(example.xs)).dtype
    exact = attack.truth if attack.truth is not None and attack.elementwise else None
    if attack.dtype != "float64" and exact is None:
        raise NotApplicable(f"it takes no float64, and there is nothing that its numbers in {attack.dtype} could be compared with")
    for name in attack.claims.dtypes or attack.subject.dtypes:
        if name == "float64" or name.startswith("complex"):
            continue
        if not _check_in(attack, name, example, whole, exact or reference):
            continue
        if attack.elementwise and whole == attack.dtype == "float64" and is_first(attack, example, "low") and not attack.subject.compiles:
            for given in _of_every_size(attack, name):
                try:
                    _check_in(attack, name, given, whole, reference)
                except Wrong:
                    _check_in(attack, name, given, whole, exact or reference)
        if name == "float32" and whole == np.float64 and (example.cotangent.size >= LEAST_ELEMENTS or not attack.elementwise):
            check_narrow(attack, example)


def _check_in(attack: Attack, name: str, example: Example, whole: np.dtype, of: Any) -> bool:
    subject, claimed = attack.subject, attack.claims.dtypes
    dtype = numpy_dtype(name)
    xs = [x.astype(dtype) if x.dtype.kind == "f" else x for x in example.xs]
    g = example.cotangent.astype(dtype)
    wide = [x.astype(np.float64) if x.dtype == dtype else x for x in xs]
    try:
        value = subject.value(xs)
    except (TypeError, NotImplementedError, RuntimeError):
        if claimed is None and dtype.itemsize < np.dtype(attack.dtype).itemsize and dtype.itemsize < 4:
            return False
        raise
    double = g.astype(np.float64)
    found: list[Any] = [("the value", value, of.value(wide), None)]
    if attack.order and whole == attack.dtype:
        found += zip(itertools.repeat("the gradient"), subject.gradient(xs, g), of.gradient(wide, double), itertools.count())
    for what, got, true, i in found:
        if got is not None and true is not None:
            if whole == attack.dtype and got.dtype != dtype:  # an op that returns another type for float64, too, is left alone
                instead = "" if claimed else f"; if the op is made for {attack.dtype} alone, claim dtypes=({attack.dtype!r},)"
                raise Wrong(f"{what} for {name} has the dtype {got.dtype}{instead}", got)
            compare(attack, f"{what} for {name}", got, true, wide, i, None if i is None else double,
                    wrt=() if i is None else (i,), of=of)
    return True


def _of_every_size(attack: Attack, name: str) -> Iterator[Example]:
    """Numbers below the normal ones of a type for each argument, with ordinary ones for the others; of one argument of float32 numbers of every size.

    Ops of several arguments, and of half precision, may lose digits of other numbers where an intermediate result is large or small.
    """
    plan, tiny = plan_of(attack, "low"), float(finfo(numpy_dtype(name)).tiny)
    small = [sign * part * tiny for part in SUBNORMAL for sign in (1.0, -1.0)] if attack.subject.subnormals else []
    for i, domain in enumerate(plan.domains):
        further = edge_numbers(domain, name, 0.0 if small else tiny) if name == "float32" and len(plan.domains) == 1 else ()
        numbers = [*(x for x in small if x in domain), *(x for x in further if abs(x) <= LARGEST[name])]
        columns = [numbers if k == i else np.resize([x for x in plan.table(k)[0] if x] or [0.0], len(numbers)) for k in range(len(plan.domains))]
        if numbers:
            yield complete_example(attack, Draft(tuple(plan.typed(np.array(column, np.float64), k) for k, column in enumerate(columns)), 1, 1))


def _check_mixed_types(attack: Attack, example: Example, of: _Double) -> None:
    """Raise `Wrong` where arguments of several types, or of whole numbers, have other results than the same numbers in float64."""
    subject, active = attack.subject, [i for i, x in enumerate(example.xs) if x.dtype == np.float64]
    if not active or attack.dtype != "float64" or attack.claims.dtypes is not None and "float32" not in attack.claims.dtypes:
        return
    single = [((i,), dtype) for i in active for dtype in ("float32", "int64")[:1 + attack.elementwise]] if len(active) > 1 else []
    whole = not any(isinstance(d, MatrixDomain) for d in attack.domains)
    for narrowed, dtype in [*single, *([(tuple(active), "int64")] if whole else [])]:
        xs = list(example.xs)
        for i in narrowed:
            some = [n for n in WHOLE_NUMBERS if n in attack.domain_of(i)] or [1]
            moved = (xs[i] * (1 - NARROWEST / 3)).astype(np.float32)  # next to the numbers of the narrowest type, which have few digits
            inside = np.reshape([float(v) in attack.domain_of(i) for v in moved.ravel().tolist()], moved.shape)
            xs[i] = np.resize(some, xs[i].shape) if dtype == "int64" else np.where(inside, moved, xs[i]).astype(dtype)
        wide = [x.astype(np.float64) if k in narrowed else x for k, x in enumerate(xs)]
        every = len(narrowed) == len(active)
        what = f"for arguments of {dtype}" if every else f"with argument {narrowed[0]} of {dtype} and the others of float64"
        try:
            value = np.asarray(subject.value(xs))
            usual = np.asarray(subject.value(wide))
        except Exception:  # the op refuses it
            continue
        if usual.dtype != np.float64 or value.shape != usual.shape:
            continue
        if attack.elementwise and value.dtype != np.float64 and not every:
            raise Wrong(f"the value {what} has the dtype {value.dtype} and should have float64", value)
        true: Any = of.value(wide)
        if value.dtype.kind == "i":  # a power of whole numbers is one, and that with a negative exponent is none
            negative = np.any([np.broadcast_to(x < 0, value.shape) for x in wide], axis=0) if attack.elementwise else False
            true = np.where(negative & (usual != np.round(usual)), np.array(None), true)
        compare(attack, f"the value {what}", value.astype(np.float32), true, wide, of=of)
        if not attack.order or every:
            continue
        g = example.cotangent
        try:
            found = subject.gradient(xs, g.astype(value.dtype))
        except Exception:  # the op refuses it
            continue
        for k, (got, slope) in enumerate(zip(found, of.gradient(wide, g))):
            if slope is not None and is_active(xs[k]):
                got = np.zeros(xs[k].shape) if got is None else got
                compare(attack, f"the gradient {what}", np.asarray(got).astype(np.float32), slope, wide, k, g, wrt=(k,), of=of)


AROUND = 0.5, 0.125  # points whose derivatives count as near, relative to the point


def check_narrow(attack: Attack, example: Example) -> None:
    """Raise `Wrong` where results in float32 or complex64 are not those of the same numbers in the wide type, up to the roundings of the narrow one.

    These are the value, the derivatives to the third order, and the tangent. Where few digits are left of a derivative, as beside a step of a steep
    function, its size near the point counts.
    """
    tiny = float(np.finfo(np.float32).tiny) / float(np.finfo(np.float32).eps)

    def sides(xs: Arrays, g: Array, *ts: Sequence[Array | None], around: Sequence[float] = ()) -> list[Sides]:
        given = Example(tuple(xs), g, tuple(map(tuple, ts)))
        near = [results(attack, given._replace(xs=tuple(cast(x, "float64") * part for x in xs)), 3) for part in around]
        narrow, wide = (results(attack, given.mapped(functools.partial(cast, dtype=dtype)), 3) for dtype in ("float32", "float64"))
        name = "complex64" if any(x.dtype.kind == "c" for x in xs) else "float32"
        out = []
        for s in map(complete, sides_of(attack, narrow, wide, f"for {name} is not that of the same numbers in twice as many digits")):
            sizes = [s.size, *(np.abs(x) for found in near for _, order, wrt, x in found if (order, wrt) == (s.order, s.wrt))]
            out.append(s._replace(size=np.asarray(np.fmax.reduce(sizes)) + tiny, identical=False))
        return moderate_sides(out, attack, attack.elementwise, xs, g, *ts)

    try:
        agree_at(example.mapped(functools.partial(cast, dtype="float32")), sides, len(example.tangents), near=True)
    except Wrong:
        if not attack.elementwise:
            raise
        further = functools.partial(sides, around=AROUND)
        agree_at(example.mapped(functools.partial(cast, dtype="float32")), further, len(example.tangents), near=True)
