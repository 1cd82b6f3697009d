"""`identical`: the test whether two expressions are the same function."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import sympy
from sympy.logic.boolalg import Boolean

from symgrad.algebra.comparison import Comparison, Identity
from symgrad.algebra.limits import OutOfTime, abort_after
from symgrad.reports.base import NOT_CHECKABLE, PROVED, REFUTED, VERIFIED, weakest

__all__ = ["NOT_CHECKABLE", "PROVED", "REFUTED", "VERIFIED", "Identity", "identical"]


def identical(a: Any, b: Any = 0, assumptions: Mapping[Any, Any] | None = None, *, points: int = 40, seed: int = 0,
              effort: float = 1.0, seconds: float | None = None) -> Identity:
    """Whether two expressions are the same function wherever both are defined, on the ranges of their symbols.

    First both are evaluated at exact points in the ranges, including special points and points of every size, with measured errors. A
    difference counts if it exceeds the effect of rounding and cancellation, even if it is 1e-60. Then the difference is reduced to a normal
    form: a fraction of polynomials in symbols, roots, logarithms and exponentials, separately on both sides of kinks.

    - "proved": the normal form is literally 0, and the numbers agree;
    - "verified": at least 50 digits agree at the planned points, on both sides of every condition and jump; a side of a kink (of an absolute value
      or a maximum) that no point is on is named;
    - "refuted": the expressions differ at a point, which is given in a simple form with both values;
    - "not checkable": no points could be compared, or none on one side of a condition; the reason is given.

    Functions are those of SymPy: complex-valued with principal branches, so that log(x) is log(-x) + iπ for negative x. A point where only one
    expression has a value (a pole, 0/0) is not a counterexample: x²/x and x are identical; such a point is noted. Finite sums and products are
    computed term by term, and symbols in their limits are integers; integrals, infinite sums and limits have values where these are certain.
    A float is exactly its binary value, so that 0.1 is not 1/10.

    Args:
        a, b: SymPy expressions, numbers, conditions, or arrays or matrices of them of one shape (b may be one number for all elements).
        assumptions: a range for each symbol, in addition to the symbol's own assumptions: a `Domain`, a SymPy set, or words such as "positive" or
            "integer". A symbol without assumptions is real; `Symbol("z", complex=True)` ranges over the plane, and both sides of
            branch cuts are included.
        points: how many points are compared, besides those at the boundaries of conditions.
        seed: of the random points.
        effort: a factor of the allowed work, which is counted, so that the result is the same on every machine: the term pairs of the algebra and
            the points that are tried in place of points without a value.
        seconds: a limit of the processor time, by default none. If it is over, the verdict is "not checkable".

    Raises TypeError for strings, which are never evaluated, and ValueError where the shapes differ.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> print(identical(sympy.sin(2 * x), 2 * sympy.sin(x) * sympy.cos(x)).verdict)
    proved
    >>> print(identical(sympy.sqrt(x**2), x))
    refuted: they differ at a point
    at x = -1: 1 and -1
    difference = -x + Abs(x)
    >>> identical(sympy.log(x * y), sympy.log(x) + sympy.log(y), {x: "positive", y: "positive"}).verdict
    'proved'
    """
    start = time.perf_counter()
    pairs = _pairs(a, b)
    found: list[Identity] = []
    comparison: Comparison | None = None
    try:
        with abort_after(seconds):
            for index, one, other in pairs:
                comparison = Comparison(one, other, assumptions, points, seed, effort)
                result = comparison.answer()
                found.append(replace(result, index=index if len(pairs) > 1 else None))
                if result.verdict == REFUTED:
                    break
    except OutOfTime:
        if seconds is None:
            raise
        done, planned = (comparison.compared, comparison.wanted) if comparison is not None else (0, points)
        found.append(Identity(NOT_CHECKABLE, f"aborted after {seconds:g} seconds: {done} of {planned} planned points were compared", done, planned))
    weak = weakest([PROVED, *(f.verdict for f in found)])
    worst = next((identity for identity in found if identity.verdict == weak), Identity(PROVED, "there is no element"))
    if found and worst:
        least = min(found, key=lambda f: f.points)
        worst = replace(worst, points=least.points, planned=least.planned, digits=min(f.digits for f in found))
    return replace(worst, seconds=time.perf_counter() - start, notes=tuple(dict.fromkeys(note for f in found for note in f.notes)))


def _expression(x: Any) -> Any:
    if isinstance(x, (str, bytes)):
        raise TypeError(f"a SymPy expression is expected, got the string {x!r}: strings are not evaluated; "
                        "read it with symgrad.formulas.parsing, or build it from SymPy symbols")
    if isinstance(x, float):
        return sympy.Rational(*x.as_integer_ratio()) if x - x == 0 else sympy.nan
    if isinstance(x, complex):
        return _expression(x.real) + sympy.I * _expression(x.imag)
    try:
        found = sympy.sympify(x, strict=True)
    except sympy.SympifyError:
        found = None
    if not isinstance(found, (sympy.Expr, Boolean)):
        raise TypeError(f"a SymPy expression or a number is expected, got {type(x).__name__}: {x!r}")
    return found


def _elements(x: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of an array or a matrix, and its elements in order; () for one expression."""
    if isinstance(x, (sympy.MatrixBase, sympy.NDimArray)):
        return tuple(int(n) for n in x.shape), [_expression(e) for e in (x.flat() if isinstance(x, sympy.MatrixBase) else sympy.flatten(x.tolist()))]
    if hasattr(x, "ravel") and hasattr(x, "shape"):  # NumPy's arrays, of numbers or expressions
        return tuple(x.shape), [_expression(e.item() if hasattr(e, "item") else e) for e in x.ravel()]
    if isinstance(x, sympy.MatrixExpr):
        return _elements(x.as_explicit())
    return (), [_expression(x)]


def _pairs(a: Any, b: Any) -> list[tuple[tuple[int, ...], Any, Any]]:
    (shape, ones), (other_shape, others) = _elements(a), _elements(b)
    if shape == () != other_shape and ones == [sympy.S.Zero]:
        shape, ones = other_shape, ones * len(others)
    if other_shape == () != shape:
        others, other_shape = others * len(ones), shape
    if shape != other_shape:
        raise ValueError(f"the shapes differ: {shape} and {other_shape}; elementwise comparison needs the same shape")
    return list(zip(product(*map(range, shape)), ones, others))
