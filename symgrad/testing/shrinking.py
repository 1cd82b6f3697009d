"""The simplification of a failing example, and its report."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from symgrad.frameworks.adapter import NotApplicable, is_active
from symgrad.graph.domains import Domain, MatrixDomain
from symgrad.sampling.numbers import fit
from symgrad.sampling.points import FROM_ONE, simpler_numbers
from symgrad.testing.attack import Attack, Check, run_at_example
from symgrad.testing.examples import Example
from symgrad.testing.failure import Failure, Wrong
from symgrad.testing.references import difference
from symgrad.testing.snippets import pytest_command, snippet

EXAMPLES = 400  # examples that are tried
LAST_SHARE = 0.2  # the part of these for the cotangent and the tangents
MAX_SINGLE_ELEMENTS = 12  # elements of an array that are simplified one by one
MAX_SINGLE_REMOVALS = 64  # elements along an axis that are left out one by one
DIGITS = 17


def simplest_failure(check: Check, attack: Attack, example: Example, wrong: Wrong, fixed: bool = False) -> Failure:
    """The report of a failure at the simplest example found; with `fixed`, at the example given."""
    search = ShrinkSearch(check, attack, example, wrong)
    note = ""
    if not search.again(example):
        note = "it did not fail again at the same input: the op is random or has a state; this is what was seen first"
    elif not fixed and attack.shrink:
        search.run()
        if search.best is not example and not search.again(search.best):
            search.best, search.why = example, wrong
            note = "it did not fail again at a simpler input: the op has a state; this is what was seen first"
    best, why = search.best, search.why
    formula = None
    with contextlib.suppress(Exception):  # SymPy may raise anything
        formula = difference(attack, why) if attack.shrink else None
    return Failure(attack.name, check.name, why, attack.inputs(best.xs), attack.claims.parameters, _directions(attack, best, why), formula,
                   snippet(check, attack, best), f"examples drawn with seed={attack.seed}, which draws the same ones again",
                   pytest_command(), note)


def _directions(attack: Attack, example: Example, wrong: Wrong) -> dict[str, Any]:
    """The cotangent and the tangents that the failure depends on, or that are not ones."""
    out: dict[str, Any] = {}
    if wrong.order or not np.all(example.cotangent == 1):
        out["cotangent"] = example.cotangent
    names = list(attack.inputs(example.xs))
    for k, tangents in enumerate(example.tangents):
        plain = all(t is None or bool(np.all(t == 1)) for t in tangents)
        if k < (wrong.order or 0) - 1 or not plain:
            label = "tangent" if k == 0 else f"tangent {k + 1}"
            out |= {f"{label} of {name}": t for name, t in zip(names, tangents) if t is not None}
    return out


class ShrinkSearch:
    """A search for the simplest example. `best` is the simplest one so far and `why` its failure."""

    def __init__(self, check: Check, attack: Attack, example: Example, wrong: Wrong):
        self.check, self.attack, self.best, self.why = check, attack, example, wrong
        self.kind = _kind(wrong)
        self.last = int(LAST_SHARE * EXAMPLES)  # examples that are left for the cotangent and the tangents
        self.left = EXAMPLES - self.last
        self.known: dict[tuple, Wrong | None] = {}

    def again(self, example: Example) -> Wrong | None:
        """The failure at an example, if it is of the same kind."""
        try:
            found = run_at_example(self.check, self.attack, example)
        except NotApplicable:
            return None
        same = found is not None and _kind(found) == self.kind and found.imprecise <= self.why.imprecise  # lost digits may turn out to be wrong
        return found if same else None

    def fails(self, example: Example) -> bool:
        """Whether an example fails like the first one; then it becomes the best."""
        key = tuple((a.shape, a.dtype.name, a.tobytes()) for _, a in example.arrays())
        if key not in self.known:
            if not self.left:
                return False
            self.left -= 1
            self.known[key] = self.again(example)
        found = self.known[key]
        if found is None:
            return False
        self.best, self.why = example, found
        return True

    def first(self, examples: Iterable[Example]) -> bool:
        """Whether one of the examples fails; the first that does becomes the best."""
        return any(self.fails(e) for e in examples)

    def run(self) -> None:
        """Make the example smaller, then its numbers simpler."""
        while self.attack.elementwise and self.first(_parts(self.best)):
            pass
        before = None
        while before is not self.best:
            before = self.best
            self.simpler()
        self.left += self.last
        self.plainer()

    def simpler(self) -> None:
        """Replace the arguments by simpler numbers of their domains."""
        for k in range(len(self.best.xs)):
            x, domain = self.best.xs[k], self.attack.domain_of(k)
            if x.size > 1 and self.first(self._with(k, np.full_like(x, c)) for c in _candidates(x.flat[0], domain)):
                continue
            for at in list(np.ndindex(x.shape))[:MAX_SINGLE_ELEMENTS]:
                self.first(self._with(k, _replace_element(self.best.xs[k], at, c)) for c in _candidates(x[at], domain))

    def _with(self, k: int, x: np.ndarray) -> Example:
        domain = self.attack.domain_of(k)
        return self.best._replace(xs=(*self.best.xs[:k], fit(domain, x) if isinstance(domain, MatrixDomain) else x, *self.best.xs[k + 1:]))

    def plainer(self) -> None:
        """Replace the cotangent and the tangents by ones, or by simpler numbers."""
        e = self.best
        ones = tuple(tuple(np.ones_like(x) if is_active(x) else None for x in e.xs) for _ in e.tangents)
        if self.fails(e._replace(cotangent=np.ones_like(e.cotangent), tangents=ones)):
            return
        self.first([e._replace(tangents=ones)])
        self.first([self.best._replace(cotangent=np.asarray(c(self.best.cotangent))) for c in (np.ones_like, np.sign, np.round)])
        for k in range(len(e.tangents)):
            self.first(self.best._replace(tangents=(*self.best.tangents[:k], change, *self.best.tangents[k + 1:]))
                       for change in (ones[k], tuple(None if t is None else np.asarray(np.sign(t)) for t in self.best.tangents[k])))


def _kind(wrong: Wrong) -> tuple[Any, ...]:
    """The properties of a failure that must stay the same while the example gets simpler."""
    return type(wrong.__cause__), wrong.order


def _parts(example: Example) -> Iterator[Example]:
    arrays = [a for _, a in example.arrays()]
    rank = max(a.ndim for a in arrays)
    for axis in range(rank, 0, -1):  # counted from the last, as in broadcasting
        sizes = {a.shape[-axis] for a in arrays if a.ndim >= axis}
        size = max(sizes)
        if axis == rank and 0 not in sizes:
            for i in range(min(size, 2)):
                yield example.mapped(lambda a, i=i: np.asarray(a[min(i, a.shape[0] - 1)].copy()) if a.ndim == rank else a)  # type: ignore[misc]
        halves = [slice(0, size // 2), slice(size // 2, size)] if size > 3 else []
        for kept in [*halves, *([k for k in range(size) if k != gone] for gone in range(min(size, MAX_SINGLE_REMOVALS)) if size > 1)]:
            def cut(a: np.ndarray, axis: int = axis, size: int = size, kept: Any = kept) -> np.ndarray:
                whole = (slice(None),) * (a.ndim - axis)
                return a[(*whole, kept)].copy() if a.ndim >= axis and a.shape[-axis] == size else a

            yield example.mapped(cut)


def _candidates(x: Any, domain: Domain) -> Iterator[Any]:
    kind = x.dtype.kind
    value = complex(x) if kind == "c" else float(x)
    for c in simpler_numbers(value, FROM_ONE, DIGITS):
        if c.real in domain and (kind in "fVc" or float(c).is_integer()):
            with np.errstate(all="ignore"):
                exact = x.dtype.type(c)
            if kind == "c" or float(exact) == c or kind in "fV" and math.isfinite(float(exact)) and float(exact) in domain:
                yield exact


def _replace_element(x: np.ndarray, at: tuple[int, ...], value: Any) -> np.ndarray:
    out = x.copy()
    out[at] = value
    return out
