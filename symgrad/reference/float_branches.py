"""The branches that floats take, followed with many digits: where tanh(x) is 1 in floats, a condition tanh(x) >= 1 holds there and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import numeric, precise
from symgrad.reference.recorder import RecordingCarrier

DECISIONS = frozenset("eq ne lt le gt ge isnan isinf isfinite sign floor ceil round trunc".split())
ERRORS = (NotImplementedError, TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RuntimeError)


class FloatBranches(RecordingCarrier):
    """A recording carrier of many digits, whose decisions are those of floats: beside each value it has that which floats of a dtype compute.

    `decided` is true if there was a decision, `departed` if one was another one with many digits.
    """

    def __init__(self, dtype: Any = np.float64) -> None:
        super().__init__(precise, precise.lift_value)
        self.dtype = dtype
        self.floats: dict[int, tuple[Any, Any]] = {}  # by the identity of the value, which is kept, too
        self.decided = self.departed = False

    def computed(self, op: Any, operands: Sequence[Any], parameters: Sequence[Any]) -> Any:
        y = super().computed(op, operands, parameters)
        in_floats = [self.nearest(x) for x in (operands[0] if op.arity is None else operands)]
        plain = [float(p) if isinstance(p, (mpmath.mpf, precise.context.mpf)) else p for p in parameters]
        try:
            found = np.asarray(op.forward(numeric, *((in_floats,) if op.arity is None else in_floats), *plain))
        except ERRORS:
            found = self.nearest(y)
        if op.name in DECISIONS:
            taken = found.ravel().tolist()
            self.decided = True
            self.departed |= any(a != b for a, b in zip(taken, y.ravel().tolist(), strict=True))
            y = precise.Digits.fill([x if isinstance(x, bool) else precise.context.mpf(x) for x in taken], y.shape)
        self.floats[id(y)] = y, found
        return y

    def nearest(self, x: Any) -> Any:
        """The floats beside a value; of an input the nearest ones."""
        if id(x) not in self.floats:
            cells = [c if isinstance(c, (bool, int)) else float(c) for c in x.ravel().tolist()]
            array = np.array(cells).reshape(x.shape)
            self.floats[id(x)] = x, array.astype(self.dtype) if array.dtype.kind == "f" else array
        return self.floats[id(x)][1]
