"""`prove`: whether the rules of an op are its derivatives, by SymPy's differentiation of its forward rule, and by fifty digits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from symgrad.algebra.limits import clock
from symgrad.carriers import numeric
from symgrad.graph.op import REGISTRY, Op
from symgrad.proofs.case import Case
from symgrad.proofs.complex import complex_cases
from symgrad.proofs.statements import statements
from symgrad.reports.progress import progress_bar
from symgrad.reports.proof import Proof, Statement
from symgrad.types.domains import COMPLEX

__all__ = ["Proof", "Statement", "cases", "prove"]

SHAPES = ((2, 3), (3, 4))  # of arguments for which an op names none: the first that its examples go with
PAIRS = (3, 2)  # complex numbers as pairs of real ones
PAIR = (2,)  # the shape of the arguments of an op that takes several of one shape, if any shape will do


def cases(op: Op, complex: bool | None, notes: list[str]) -> Iterator[Case]:
    """An op with each of the parameters that its examples have, on numbers or on small arrays, real and complex; `notes` says what is left out."""
    for parameters in op.examples or ((),):
        shapes = ((),) * (op.arity or 1) if op.kind == "elementwise" else _fitting(op, parameters)
        if not complex and COMPLEX not in op.domain:
            yield Case(op, parameters, shapes)
        if complex is not False:
            yield from complex_cases(op, parameters, shapes, notes)


def _fitting(op: Op, parameters: tuple[Any, ...]) -> tuple[tuple[int, ...], ...]:
    """The smallest shapes with which the parameters make sense, or those that an op names."""
    count = 2 if op.arity is None else op.arity
    alike = not op.shapes or len(set(op.shapes)) == 1
    if COMPLEX in op.domain:
        return (PAIRS,) * count
    tried = [PAIR] * (alike and count > 1 and op.arity is not None) + [shape for shape in SHAPES if not op.shapes]
    for shape in tried:
        xs = [np.linspace(0.25, 0.75, prod(shape)).reshape(shape) for _ in range(count)]
        try:
            y = op.forward(numeric, *((xs,) if op.arity is None else xs), *parameters)
            assert op.vjp is not None
            op.vjp(numeric, np.ones_like(y), y, (*xs, *parameters), (True,) * count)
        except (ValueError, IndexError, TypeError, RuntimeError, AssertionError):
            continue
        if np.size(y):
            return (shape,) * count
    return op.shapes or (SHAPES[-1],) * count


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

    `op` is a public function (symgrad.tanh), a name, or an `Op`. Its rules are read in the symbolic carrier, for single numbers or for small
    arrays of symbols, with every cotangent and tangent a symbol of its own, and compared with `sympy.diff` of its forward rule. Functions
    with kinks are proved in each region between them, and rules with conditions also where an equality among these holds. Each statement is
    also compared at `points` points to fifty digits, with the rules read in the precise carrier.

    - "proved": the difference is literally 0 by `symgrad.identical`, and the numbers agree;
    - "verified": the numbers agree at so many points; the reason names an equality among the conditions of a rule where it was not compared;
    - "refuted": they do not; with a simple point, both values and the difference;
    - "not checkable": the op has no rule, or no formula, and why.

    The verdict of the op is the weakest of its statements. `complex` None proves them for complex numbers too where the op takes them, True
    for these alone, False for real ones alone. Analytic functions are proved on the plane with coefficients conjugated, as the pullback
    reads them; others (abs, angle, the parts) at order 1 by their real and imaginary parts. When `seconds` of the processor are over, what is
    left is verified only. `progress` is as in `symgrad.check`.

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
    start, end = time.monotonic(), clock() + seconds
    proof.reason = _nothing_to_prove(found)
    if not proof.reason:
        with progress_bar(progress, found.name) as tell:
            every = list(cases(found, complex, proof.notes))
            for k, case in enumerate(every):
                tell(f"proving {case or 'the rules'}", k, len(every))
                left = (end - clock()) / (len(every) - k)
                proof.statements += statements(case, min(order, case.most), max(left, 0.0), points)
        if not proof.statements:
            proof.reason = "none of its arguments has a derivative" if not complex else (
                proof.notes[0] if proof.notes else "it takes no complex numbers")
    proof.seconds = time.monotonic() - start
    return proof
