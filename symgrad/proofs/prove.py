"""`prove`: a proof that the rules of an op are its derivatives: statements by SymPy's differentiation of its forward rule, and to fifty digits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from symgrad.algebra.effort import Effort
from symgrad.algebra.limits import OutOfTime, abort_after
from symgrad.carriers import numeric
from symgrad.carriers.digits import precision_restored
from symgrad.carriers.lapack import hermitian_parts
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY, Op
from symgrad.proofs.case import Case
from symgrad.proofs.complex import complex_cases
from symgrad.proofs.statements import OF_OP, CaseProof
from symgrad.reports.base import NOT_CHECKABLE, not_rigorous
from symgrad.reports.proof import Proof, Statement
from symgrad.reports.streams import progress_bar

__all__ = ["Proof", "Statement", "cases", "prove"]


SHAPES = ((2, 3), (3, 4))  # for arguments of ops without declared shapes; the first one that is valid for an example is used
PAIRS = (3, 2)  # complex numbers as pairs of real ones
PAIR = (2,)  # the shape of several arguments of the same shape, if it is valid


def cases(op: Op, complex: bool | None, notes: list[str]) -> Iterator[Case]:
    """An op with the parameters of each of its examples, on numbers or small arrays, real and complex; omissions are added to `notes`."""
    for parameters in op.docs.examples or ((),):
        shapes = ((),) * (op.arity or 1) if op.kind == "elementwise" else _fitting(op, parameters)
        if not complex and COMPLEX not in op.domain:
            yield Case(op, parameters, shapes)
        if complex is not False:
            yield from complex_cases(op, parameters, shapes, notes)


def _fitting(op: Op, parameters: tuple[Any, ...]) -> tuple[tuple[int, ...], ...]:
    """The first of the default shapes that are valid for the parameters, or the shapes that the op declares."""
    count = 2 if op.arity is None else op.arity
    alike = not op.docs.shapes or len(set(op.docs.shapes)) == 1
    if COMPLEX in op.domain:
        return (PAIRS,) * count
    candidates = [PAIR] * (alike and count > 1 and op.arity is not None) + [shape for shape in SHAPES if not op.docs.shapes]
    for shape in candidates:
        xs = [np.linspace(0.25, 0.75, prod(shape)).reshape(shape) for _ in range(count)]
        try:
            y = op.forward(numeric, *((xs,) if op.arity is None else xs), *parameters)
            assert op.vjp is not None
            op.vjp(numeric, np.ones_like(y), y, (*xs, *parameters), (True,) * count)
        except (ValueError, IndexError, TypeError, RuntimeError, AssertionError):
            continue
        if np.size(y):
            return (shape,) * count
    return op.docs.shapes or (SHAPES[-1],) * count


def _op(given: Any) -> Op:
    if isinstance(given, Op):
        return given
    found = getattr(given, "op", None)
    if isinstance(found, Op):
        return found
    if isinstance(given, str):
        op = REGISTRY.get(given) or next((op for op in REGISTRY.values() if given in op.surface.aliases), None)
        if op is not None:
            return op
        import difflib

        near = difflib.get_close_matches(given, REGISTRY, 3)
        raise ValueError(f"prove: there is no op {given!r}" + (f"; did you mean {', '.join(map(repr, near))}?" if near else ""))
    raise TypeError(f"prove: an op, its name or its public function is expected (symgrad.tanh, 'tanh'), not {type(given).__name__}; "
                    f"for a function of your own use symgrad.check")


def _nothing_to_prove(op: Op) -> str:
    """The reason why an op has no rule to prove, empty if it has one."""
    if op.kind == "composite":
        return "it has no rule of its own: its derivatives are those of the ops that it calls; prove those, or check a call with symgrad.check"
    if op.name in ("batch", "unbatch"):
        return "it enters or leaves a batch of vmap, which has no formula; it is tested with vmap"
    if not op.differentiable:
        return "it has no derivative: its values are whole numbers, truth values or constants"
    return ""


@hermitian_parts()  # of which the rules are the derivatives, element by element
@precision_restored()
def prove(op: Any, order: int = 3, *, complex: bool | None = None, points: int = 20, effort: float = 1.0, seconds: float | None = None,
          progress: Any = None) -> Proof:
    """Prove the rules of an op: its pullback and pushforward, and their derivatives up to an order, equal SymPy's derivatives.

    `op` is a public function (symgrad.tanh), a name, or an `Op`. Its rules are evaluated in the symbolic carrier, for single numbers or small
    arrays of symbols, with a separate symbol for every component of cotangents and tangents, and compared with `sympy.diff` of its forward rule.
    Functions with kinks are proved in each region between the kinks, and rules with conditions also where an equality among them holds. Each
    statement is also compared at `points` points to fifty digits, with the rules evaluated in the precise carrier.

    - "proved": the difference is literally 0 by normal forms, and the numbers agree at all planned points;
    - "verified": the numbers agree; the reason names an equality in a rule's conditions for which the formulas were not compared;
    - "refuted": they differ at a simple point, which is given with both values and the difference;
    - "not checkable": the op has no rule, or no formula; the reason is given.

    A kink is one of the function: where its derivatives from all sides agree, that is the derivative, and the rule is compared with it. Where they do
    not, the rule's value is a convention, which the first line of the report names. A value that jumps has no derivative: the rule is refuted,
    unless it selects there, too, or the op declares the point as special. Where floats saturate, the branch that they take is compared, too.

    The verdict of the op is the weakest of its statements. By default (`complex` None) the statements are proved for real and, if the op takes them,
    for complex numbers; with True only for complex ones, with False only for real ones. Analytic functions are proved on the complex plane with
    conjugated coefficients, as in the pullback; others (abs, angle, the parts) at order 1 by their real and imaginary parts.

    The work for formulas is counted, in products of terms, and `effort` multiplies what is allowed; statements that need more are only verified.
    After `seconds` of processor time the proof is aborted, and not checkable. `progress` is as in `symgrad.check`.

    Raises ValueError for an order other than 1, 2 or 3 and for an unknown name, TypeError for an object that is not an op.

    >>> import symgrad
    >>> proof = prove(symgrad.tanh, 2, complex=False)
    >>> proof.verdict, [s.what for s in proof.statements]
    ('proved', ['vjp by input', 'jvp', 'by input, input'])
    """
    if type(order) is not int or order not in (1, 2, 3):
        raise ValueError(f"prove: order must be 1, 2 or 3, not {order!r}")
    found = _op(op)
    proof = Proof(found.name, found.kind, order)
    start = time.perf_counter()
    proof.reason = _nothing_to_prove(found)
    if not proof.reason:
        proofs: list[CaseProof] = []
        every: list[Case] = []
        pairs = Effort(OF_OP * effort)
        with progress_bar(progress, found.name) as show_progress:
            try:
                with abort_after(seconds):
                    every += cases(found, complex, proof.notes)
                    for k, case in enumerate(every):
                        show_progress(f"proving {case or 'the rules'}", k, len(every))
                        proofs.append(CaseProof(case, min(order, case.highest_order), points, pairs, effort))
                        for statement in proofs[-1].statements():
                            proof.statements.append(statement)
            except OutOfTime:
                begun = [numbers for p in proofs for numbers in p.comparisons]
                planned = sum(numbers.planned for numbers in begun) + points * max(0, len(every) - len(begun))
                reason = f"aborted after {seconds:g} seconds: {sum(n.compared for n in begun)} of {planned} planned points were compared"
                proof.statements.append(Statement(order, "all", "", "", NOT_CHECKABLE, reason=reason))
        proof.conventions = list(dict.fromkeys(what for p in proofs for numbers in p.comparisons for what in numbers.conventions))
        outside = sum(numbers.outside for p in proofs for numbers in p.comparisons)
        if outside:
            proof.notes.append(f"at {outside} further point{'s' * (outside > 1)} the forward rule has no real value: they are outside the domain")
        proof.notes += not_rigorous(sum(n.in_digits for p in proofs for n in p.comparisons), sum(n.compared for p in proofs for n in p.comparisons))
        if not proof.statements:
            proof.reason = "none of its arguments has a derivative" if not complex else (
                proof.notes[0] if proof.notes else "it takes no complex numbers")
    proof.seconds = time.perf_counter() - start
    return proof
