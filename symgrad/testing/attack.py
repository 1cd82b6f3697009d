"""`Attack`: one op with its claims, its truth and its examples, under one profile and one seed. Every check is a function of an attack."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symgrad.domains import REAL, Domain
from symgrad.testing.claims import Claims, claims_of
from symgrad.testing.drawing import Example, edge_examples, strategy_of
from symgrad.testing.profiles import Profile, profile_named
from symgrad.testing.subjects import Subject, subject_of

__all__ = ["Attack"]


class Attack:
    """An op under attack.

    `subject` is the op behind the face of its framework, `truth` what it should be (None where nothing is known of it but itself), `names`
    and `domains` those of its tensor arguments, `elementwise` whether it acts on each element.

    Raises TypeError for what is no op and for claims that do not exist, ValueError for domains and formulas that do not fit.
    """

    def __init__(self, op: Any, claims: Claims | None = None, profile: str | Profile = "dev", seed: int = 0, **options: Any):
        self.claims = (claims or claims_of(op) or Claims()).but(**options)
        self.profile, self.seed = profile_named(profile), seed
        self.subject: Subject = subject_of(op, self.claims)
        self.claims = self.subject.claims
        self.name = self.claims.name or self.subject.name
        self._drawn: dict[str, list[Example]] = {}

    @cached_property
    def names(self) -> list[str]:
        """The names of the tensor arguments."""
        from symgrad.testing.formulas import names_in

        op = getattr(self.subject, "op", None)
        if op is not None and op.arity is not None:
            return list(op.argument_names)
        if op is None:
            try:
                signature = inspect.signature(self.subject.function)
                kinds = [p.kind for p in signature.parameters.values()]
                named = [p.name for p in signature.parameters.values() if p.default is p.empty]
                if inspect.Parameter.VAR_POSITIONAL not in kinds and named:
                    return named[:len(named) - len(self.claims.parameters)]
            except (TypeError, ValueError):
                pass
            known = names_in(self.claims.formula)
            if known:
                return known
        return [f"x{i}" for i in range(len(self.claims.shapes or (1,)))]

    @cached_property
    def domains(self) -> list[Domain]:
        """The domain of each tensor argument."""
        from symgrad.checking.foreign.domains import domains_of

        op = getattr(self.subject, "op", None)
        if self.claims.domain is None and op is not None:
            given = op.domain or (REAL,)
            return [given[min(i, len(given) - 1)] for i in range(len(self.names))]
        return list(domains_of(self.claims.domain, self.names).values())

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
        from symgrad.checking.foreign.domains import simple_number

        base = [np.array([simple_number(d) or 0.0] * 3) for d in self.domains]
        for x in base:
            x[1] = np.nextafter(x[1], np.inf)
        try:
            whole = self.subject.value(base)
            return whole.shape == (3,) and all(self.subject.value([x[i:i + 1] for x in base]).shape == (1,) for i in range(3))
        except Exception:  # whatever a user's function raises on vectors
            return False

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the tensor arguments of an op that is not elementwise."""
        op = getattr(self.subject, "op", None)
        if self.claims.shapes is not None:
            return self.claims.shapes
        if op is not None and op.shapes:
            return tuple(op.shapes)
        return ((3, 4),) * (2 if op is not None and op.arity is None else len(self.names))

    @cached_property
    def truth(self) -> Any:
        """What the op should be, as `symgrad.testing.truths` has it; None where nothing is known."""
        from symgrad.testing.truths import truth_of

        return truth_of(self)

    @property
    def order(self) -> int:
        """The highest order of derivatives that is looked at."""
        return min(self.profile.order, self.subject.orders)

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
