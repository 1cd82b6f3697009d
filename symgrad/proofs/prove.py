"""`prove`: whether the rules of an op are its derivatives, by SymPy's differentiation of its forward rule, and by fifty digits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symgrad.graph.op import REGISTRY, Op
from symgrad.reports.progress import progress_bar
from symgrad.reports.report import plain, text
from symgrad.reports.shown import Shown
from symgrad.reports.verdicts import NOT_CHECKABLE, PROVED, REFUTED, VERIFIED, Verdict

__all__ = ["Proof", "Statement", "prove"]

STRENGTH = (REFUTED, NOT_CHECKABLE, VERIFIED, PROVED)  # the weakest first
SCHEMA = 1
SHOWN = 8  # coordinates of a point that are shown


@dataclass
class Statement:
    """One statement about an op: that a rule gives the derivative of an order, in a region.

    `what` says which rule and by which argument, `case` with which shapes and parameters, `points` at how many points fifty digits agreed. A
    refuted one has a `point` with what the rule gives there (`claim`) and the `truth`; the first three of a region have a simple one, and the
    simplified `difference` of the two formulas where that is short. `reason` says why one is not proved.
    """

    order: int
    what: str
    case: str
    region: str
    verdict: str
    points: int = 0
    difference: Any = None
    point: Mapping[str, Any] | None = None
    claim: Any = None
    truth: Any = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The statement as plain data that JSON can hold."""
        return {"order": self.order, "what": self.what, "case": self.case, "region": self.region, "verdict": self.verdict, "points": self.points,
                "difference": text(self.difference), "point": None if self.point is None else {str(k): str(v) for k, v in self.point.items()},
                "claim": text(self.claim), "truth": text(self.truth), "reason": self.reason}


@dataclass
class Proof(Verdict, Shown):
    """The answer of `symgrad.prove`: the verdict of an op, which is the weakest of its statements; print it, or show it in a notebook."""

    op: str
    kind: str
    order: int
    statements: list[Statement] = field(default_factory=list)
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """One of "proved", "verified", "refuted" and "not checkable"."""
        return min((s.verdict for s in self.statements), key=STRENGTH.index, default=NOT_CHECKABLE)

    def __repr__(self) -> str:
        return f"<Proof {self.op}: {self.verdict}>"

    @property
    def refuted(self) -> list[Statement]:
        """The statements that are wrong."""
        return [s for s in self.statements if s.verdict == REFUTED]

    def to_dict(self) -> dict[str, Any]:
        """The proof as plain data that JSON can hold."""
        return {"schema": SCHEMA, "op": self.op, "kind": self.kind, "order": self.order, "verdict": self.verdict, "reason": self.reason,
                "statements": [s.to_dict() for s in self.statements], "notes": list(self.notes), "seconds": plain(round(self.seconds, 3))}

    def outline(self) -> Iterator[Any]:
        """What the proof says, part by part."""
        from symgrad.reports.rendering import Formula, Line, Table

        yield Line(f"{self.op}: {self.verdict}")
        if self.reason:
            yield Line(self.reason + ".")
        for s in self.refuted[:3]:
            values = [f"{name} = {_number(value)}" for name, value in (s.point or {}).items()]
            at = ", ".join([*values[:SHOWN], *(["..."] if len(values) > SHOWN else [])])
            yield Line(f"{s.what} (order {s.order}){' of ' + s.case if s.case else ''}: {s.reason}")
            if s.claim is not None:
                yield Line(f"at {at}: the rule gives {_number(s.claim)}, sympy.diff gives {_number(s.truth)}")
            if s.difference is not None:
                yield Formula("difference", s.difference)
        if self.statements:
            yield Table("Statements", ("order", "rule", "of", "region", "verdict", "points", ""), [
                (str(s.order), s.what, s.case, s.region, s.verdict, str(s.points), s.reason if s.verdict not in (PROVED, REFUTED) else "")
                for s in self.statements])
        for note in self.notes:
            yield Line(f"note: {note}")


def _number(x: Any) -> str:
    import mpmath
    import sympy

    if isinstance(x, sympy.Basic):
        return f"{float(x):.15g}" if isinstance(x, sympy.Float) or isinstance(x, sympy.Rational) and x.q > 1000 else str(x)
    return str(mpmath.nstr(x.real if isinstance(x, mpmath.mpc) and not x.imag else x, 15))


def _op(given: Any) -> Op:
    """The op that a name, a public function or an Op stands for."""
    if isinstance(given, Op):
        return given
    found = getattr(given, "op", None)
    if isinstance(found, Op):
        return found
    if isinstance(given, str):
        op = REGISTRY.get(given) or next((op for op in REGISTRY.values() if given in op.aliases), None)
        if op is not None:
            return op
        import difflib

        near = difflib.get_close_matches(given, REGISTRY, 3)
        raise ValueError(f"prove: there is no op {given!r}" + (f"; did you mean {', '.join(map(repr, near))}?" if near else ""))
    raise TypeError(f"prove: an op, its name or its public function is expected (symgrad.tanh, 'tanh'), not {type(given).__name__}; "
                    f"for a function of your own use symgrad.check")


def _nothing_to_prove(op: Op) -> str:
    """Why an op has no rule to prove, empty where it has one."""
    if op.kind == "composite":
        return "it has no rule of its own: its derivatives are those of the ops that it calls; prove those, or check a call with symgrad.check"
    if op.name in ("batch", "unbatch"):
        return "it goes in and out of a batch of vmap, which no formula has; its tests are those of vmap"
    if not op.differentiable:
        return "it has no derivative: its values are whole numbers, truth values or constants"
    return ""


def prove(op: Any, order: int = 3, *, complex: bool | None = None, seconds: float = 60.0, points: int = 20, progress: Any = None) -> Proof:
    """Prove the rules of an op: that its pullback and pushforward, and the derivatives of these up to an order, are what SymPy says they are.

    `op` is a public function (symgrad.tanh), a name, or an `Op`. Its rules are read with SymPy's expressions, for single numbers or for small
    arrays of symbols, with every cotangent and tangent a symbol of its own, and compared with `sympy.diff` of its forward rule. Functions
    with kinks are proved region by region between them. Each statement is also compared at `points` points to fifty digits, with the
    rules read in the precise carrier.

    - "proved": the difference is literally 0 by `symgrad.identical`, and the numbers agree;
    - "verified": the numbers agree at so many points;
    - "refuted": they do not; with a simple point, both values and the difference;
    - "not checkable": the op has no rule, or no formula, and why.

    The verdict of the op is the weakest of its statements. `complex` None proves them for complex numbers too where the op takes them, True
    for these alone, False for real ones alone. Analytic functions are proved on the plane with coefficients conjugated, as the pullback
    reads them; others (abs, angle, the parts) at order 1 by their real and imaginary parts. When `seconds` are over, what is left is
    verified only. `progress` is as in `symgrad.check`.

    Raises ValueError for an order other than 1, 2 or 3 and for an unknown name, TypeError for anything that is no op.

    >>> import symgrad
    >>> proof = prove(symgrad.tanh, 2, complex=False)
    >>> proof.verdict, [s.what for s in proof.statements]
    ('proved', ['vjp by input', 'jvp', 'by input, input'])
    """
    if type(order) is not int or order not in (1, 2, 3):
        raise ValueError(f"prove: order must be 1, 2 or 3, not {order!r}")
    found = _op(op)
    proof = Proof(found.name, found.kind, order)
    start = time.monotonic()
    proof.reason = _nothing_to_prove(found)
    if not proof.reason:
        from symgrad.proofs.cases import cases

        with progress_bar(progress, found.name) as tell:
            _prove(proof, list(cases(found, complex, proof.notes)), order, start + seconds, points, tell)
        if not proof.statements:
            proof.reason = "none of its arguments has a derivative" if not complex else (
                proof.notes[0] if proof.notes else "it takes no complex numbers")
    proof.seconds = time.monotonic() - start
    return proof


def _prove(proof: Proof, cases: Sequence[Any], order: int, end: float, points: int, tell: Callable[[str, int, int], None]) -> None:
    from symgrad.proofs.statements import statements

    for k, case in enumerate(cases):
        tell(f"proving {case or 'the rules'}", k, len(cases))
        left = (end - time.monotonic()) / (len(cases) - k)
        proof.statements += statements(case, min(order, case.most), max(left, 0.0), points)
