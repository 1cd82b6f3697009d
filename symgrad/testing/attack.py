"""`Attack`: one op with its claims, its truth and its examples, under one profile and one seed. Every check is a function of an attack."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symgrad.checking.foreign.domains import SIMPLE, simple_number
from symgrad.domains import COMPLEX, REAL, Domain
from symgrad.testing.claims import Claims, claims_of
from symgrad.testing.drawing import ORDINARY, Example, edge_examples, strategy_of
from symgrad.testing.profiles import Profile, profile_named
from symgrad.testing.subjects import Subject, subject_of
from symgrad.testing.subjects.naming import argument_names

__all__ = ["Attack"]


class Attack:
    """An op under attack.

    `subject` is the op behind the face of its framework, `truth` what it should be (None where nothing is known of it but itself), `names`
    and `domains` those of its tensor arguments, `elementwise` whether it acts on each element, `shrink` whether a failure is made as
    simple as it can be, which takes up to five seconds.

    Raises TypeError for what is no op and for claims that do not exist, ValueError for domains and formulas that do not fit.
    """

    def __init__(self, op: Any, claims: Claims | None = None, profile: str | Profile = "dev", seed: int = 0, shrink: bool = True, **options: Any):
        self.claims = (claims or claims_of(op) or Claims()).but(**options)
        self.profile, self.seed = profile_named(profile), seed
        self.subject: Subject = subject_of(op, self.claims)
        self.claims = self.subject.claims
        self.name = self.claims.name or self.subject.name
        self._drawn: dict[str, list[Example]] = {}
        self._looked = False
        self.shrink = shrink

    @cached_property
    def names(self) -> list[str]:
        """The names of the tensor arguments."""
        from symgrad.testing.formulas import names_in

        op = getattr(self.subject, "op", None)
        if op is not None and op.arity is not None:
            own, said = list(op.argument_names), names_in(self.claims.formula) or []
            return said if len(own) == len(said) == 1 else own
        if op is not None:
            return [f"x{i}" for i in range(len(self.shapes))]
        claims = self.claims
        known = argument_names(self.subject.function, names_in(claims.formula), len(claims.parameters), len(claims.shapes or ()) or None)
        if known:
            return known
        count = len(self.claims.shapes or ()) or next((n for n in range(1, 5) if self._takes([()] * n) or self._takes([(3,)] * n)), 1)
        return [f"x{i}" for i in range(count)]

    def _takes(self, shapes: Sequence[tuple[int, ...]], values: Sequence[float] = ()) -> bool:
        """Whether the op takes arguments of these shapes."""
        from symgrad.testing.checks.base import silence

        try:
            with silence():
                self._value([x + x * np.eye(*s) if len(s) == 2 else np.full(s, x) for s, x in zip(shapes, values or [0.5] * len(shapes))])
            return True
        except Exception:  # whatever a user's function raises
            return False

    def _value(self, xs: Sequence[np.ndarray]) -> np.ndarray:
        """The value, of an op that may take no doubles."""
        try:
            return self.subject.value(xs)
        except Exception:  # whatever a user's function raises
            return self.subject.value([x.astype(np.float32) if x.dtype == np.float64 else x for x in xs])

    @cached_property
    def dtype(self) -> str:
        """The floating-point type it is attacked in: float64, unless narrower ones alone are claimed. Raises ValueError where it gives no value."""
        from symgrad.testing.probing import dtype_taken

        return "float64" if hasattr(self.subject, "op") else dtype_taken(self)

    @cached_property
    def domains(self) -> list[Domain]:
        """The domain of each tensor argument."""
        from symgrad.checking.foreign.domains import domains_of

        op = getattr(self.subject, "op", None)
        if self.claims.domain is None and op is not None:
            given = op.domain or (REAL,)
            return [given[min(i, len(given) - 1)] for i in range(len(self.names))]
        names = self.names  # whose own errors are others
        try:
            return list(domains_of(self.claims.domain, names).values())
        except (TypeError, ValueError) as error:
            raise type(error)(f"symgrad.testing: {self.name}: {str(error).removeprefix('check: ')}") from error

    @cached_property
    def elementwise(self) -> bool:
        """Whether the op acts on each element: as claimed, as its kind or its formula says, or as it behaves."""
        from symgrad.testing.formulas import is_scalar

        op = getattr(self.subject, "op", None)
        if self.claims.elementwise is not None:
            return self.claims.elementwise
        if op is not None:
            return bool(op.kind == "elementwise")
        if self.claims.shapes is not None:
            return False
        if self.claims.formula is not None:
            return is_scalar(self.claims.formula, self.names)
        return self._acts_on_elements()

    def _acts_on_elements(self) -> bool:
        """Whether the op, given vectors, has a vector whose elements are those of the elements' own values."""
        from symgrad.testing.checks.base import silence

        base = [np.roll(_three(d), k) for k, d in enumerate(self.domains)]
        try:
            with silence():
                whole = self._value(base)
                parts = [self._value([x[i:i + 1] for x in base]) for i in range(3)]
        except Exception:  # whatever a user's function raises on vectors
            return False
        return whole.shape == (3,) and all(p.shape == (1,) for p in parts) and (
            self.claims.random or bool(np.allclose(whole, np.concatenate(parts), rtol=1e-3, atol=1e-6, equal_nan=True)))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the tensor arguments of an op that is not elementwise."""
        op = getattr(self.subject, "op", None)
        if self.claims.shapes is not None:
            return self.claims.shapes
        if op is not None and op.shapes:
            return tuple(op.shapes)
        count = 2 if op is not None and op.arity is None else len(self.names)
        if op is None:  # of numbers, of vectors, of square matrices
            values = [simple_number(d) or 0.0 for d in self.domains]
            return next(((s,) * count for s in ((3, 4), (3, 3), (4,), ()) if self._takes((s,) * count, values)), ((3, 4),) * count)
        return ((3, 4),) * count

    @cached_property
    def truth(self) -> Any:
        """What the op should be, as `symgrad.testing.truths` has it; None where nothing is known."""
        from symgrad.testing.truths import truth_of

        return truth_of(self)

    @cached_property
    def of_complex(self) -> str:
        """Why what is true of real numbers says nothing of it: it takes complex numbers, or makes some of real ones; "" where it does not."""
        if COMPLEX in self.domains:
            return "it takes complex numbers"
        return "its values are complex" if any(e.cotangent.dtype.kind == "c" for e in self.examples("points")[:1]) else ""

    @property
    def order(self) -> int:
        """The highest order of derivatives that is looked at."""
        if not self._looked:
            self._looked = True
            if getattr(self.subject, "op", None) is None and self.subject.orders:
                self._look()
        return min(self.profile.order, self.subject.orders)

    def _look(self) -> None:
        """Let the subject find out what only a call can tell."""
        from symgrad.testing.checks.base import silence

        values = [simple_number(d) or 0.0 for d in self.domains]
        try:
            with silence():
                shapes = [(ORDINARY if self.subject.compiles else 3,)] * len(values) if self.elementwise else self.shapes
                self.subject.look([np.full(shape, x, self.dtype) for shape, x in zip(shapes, values)])
        except Exception:  # whatever a user's function raises; the checks will say it
            pass

    def ulp(self, dtype: Any, order: int) -> float:
        """The largest error that is allowed, in units in the last place times the condition of the point."""
        from symgrad.testing.tolerances import allowed

        return allowed(self.claims.ulp, dtype, order)

    def strategy(self, kind: str) -> Any:
        """What hypothesis draws examples of a kind from."""
        return strategy_of(self, kind)

    def examples(self, kind: str) -> list[Example]:
        """The examples of a kind: special ones, which are always there, and as many random ones as the profile says."""
        if kind not in self._drawn:
            from symgrad.testing.drawing import drawn

            self._drawn[kind] = [*edge_examples(self, kind), *drawn(self, kind)]
        return self._drawn[kind]

    def inputs(self, xs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """The arguments by name."""
        names = self.names if len(self.names) == len(xs) else [f"x{i}" for i in range(len(xs))]
        return dict(zip(names, xs))


def _three(domain: Domain) -> np.ndarray:
    """Three numbers of a domain, different ones where it has them, on both sides of 0."""
    found = list(dict.fromkeys(x for x in (1.0, -2.0, *SIMPLE) if x in domain))[:3] or [simple_number(domain) or 0.0]
    return np.array((found * 3)[:3])
