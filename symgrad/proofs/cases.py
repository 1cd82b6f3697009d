"""The cases of an op that are proved: its parameters, and the shapes of its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.graph.op import Op
from symgrad.proofs.case import Case
from symgrad.proofs.complex import complex_cases
from symgrad.types.domains import COMPLEX

__all__ = ["cases"]

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
