"""Readers: an op's formula as a function of many-digit numbers, from a rule, from text, from SymPy, or from a Python function.

A reader takes floats, many-digit numbers close to them, and a number of digits; it returns the value at the many-digit
numbers. The floats are for functions of tensors, whose branches depend on them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.carriers import precise
from symgrad.carriers.digits import Undefined
from symgrad.checks.cross_reading import expressions_of
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.formulas.parsing import _functions, applied, parse
from symgrad.graph.modes import in_mode
from symgrad.reference.heads import evaluator
from symgrad.reference.quotients import Reader
from symgrad.reference.recorder import Box, Recorder
from symgrad.testing.claimed import ClaimedOp
from symgrad.testing.formulas import is_function

__all__ = ["reader_of"]

CONSTANTS = {"pi": lambda: +precise.context.pi, "e": lambda: +precise.context.e}


def reader_of(attack: ClaimedOp) -> tuple[Reader, str] | None:
    """The reader of an op and its description: the claimed formula, else the op's own forward rule; None if there is neither."""
    formula, op = attack.claims.formula, attack.subject.op
    if formula is None:
        if op is None:
            return None
        return _rule(op, attack.claims.parameters), f"the forward rule of {op.name}"
    if isinstance(formula, str):
        return _text(formula, attack.names), f"the formula {formula}"
    if not is_function(formula):
        return _sympy(formula, attack), f"the formula {formula}"
    name = getattr(formula, "__name__", "")
    said = "the formula" if name in ("", "<lambda>") else f"the function {name}"
    names = list(inspect.signature(formula).parameters)
    count = len(inspect.signature(formula).parameters) - (names[:1] == ["xp"])
    parameters = attack.claims.parameters if count > len(attack.names) or count == 0 else ()
    return (_carried if names[:1] == ["xp"] else _recorded)(formula, parameters), said


def _rule(op: Any, parameters: tuple[Any, ...]) -> Reader:
    """A forward rule in the precise carrier."""
    def read(floats: Sequence[np.ndarray], cells: Sequence[Any], digits: int) -> Any:
        with precise.working(digits):
            return precise.lift_value(op.forward(precise, *((tuple(cells),) if op.arity is None else cells), *parameters))

    return read


def _text(text: str, names: Sequence[str]) -> Reader:
    """A formula from text, step by step in the precise carrier; pi and e have all their digits."""
    formula, recorder = parse(text), Recorder(precise, precise.lift_value)
    of_elements = "[" in text  # the formula is one of elements and returns one number
    functions = {name: function.op.name for name, function in _functions().items()}  # type: ignore[attr-defined]

    missing = [name for name in formula.names if name not in names and re.sub(r"(_\d+)+$", "", name) not in names]
    if missing:
        raise ValueError(f"symgrad.testing: the formula {text} names {missing[0]}, but the arguments of the op are {', '.join(names)}")

    def read(floats: Sequence[np.ndarray], cells: Sequence[Any], digits: int) -> Any:
        with precise.working(digits):
            known = _named(names, cells)

            def number(x: Any) -> Box:
                constant = next((value for name, value in CONSTANTS.items() if x == _FLOATS[name]), None)
                return Box(recorder, precise.lift_value(x if constant is None else constant()))

            boxes = {name: Box(recorder, cell) for name, cell in known.items()}
            value = formula.evaluated(number, boxes, lambda step, operands: applied(
                step, operands, lambda name: getattr(recorder, functions[name]))).value
            return precise.lift_value(value) if of_elements else _spread(value, cells)

    return read


_FLOATS = {"pi": float(np.pi), "e": float(np.e)}


def _named(names: Sequence[str], cells: Sequence[Any]) -> dict[str, Any]:
    """Arguments by name, and their elements: x_0_1 is x[0, 1]."""
    out = dict(zip(names, cells))
    for name, cell in zip(names, cells):
        out |= {"_".join([name, *map(str, at)]): cell[at] for at in np.ndindex(*cell.shape) if at}
    return out


def _spread(value: Any, cells: Sequence[Any]) -> Any:
    """The value in the shape of the arguments, which a constant formula does not have."""
    cell = precise.lift_value(value)
    shape = np.broadcast_shapes(*(c.shape for c in cells))
    return precise.broadcast_to(cell, shape) if cell.shape == () and shape else cell


def _sympy(formula: Any, attack: ClaimedOp) -> Reader:
    """SymPy's expressions, each compiled once for mpmath with exact floats; NaN where an expression has no real value."""
    if isinstance(formula, sympy.Lambda):
        formula = formula.expr.xreplace({s: sympy.Symbol(name, real=True) for s, name in zip(formula.signature, attack.names)})
    made: dict[Any, Any] = {}

    def compiled(shapes: tuple[tuple[int, ...], ...]) -> Any:
        if shapes not in made:
            expressions, shape = expressions_of(formula, dict(zip(attack.names, shapes)), {})
            labels = ["_".join([name, *map(str, at)]) for name, size in zip(attack.names, shapes) for at in np.ndindex(*size)]
            made[shapes] = [evaluator([sympy.Symbol(s, real=True) for s in labels], e) for e in expressions], shape
        return made[shapes]

    def at(function: Any, xs: Sequence[Any]) -> Any:
        try:
            return precise.context.make_mpf(function(*(mpmath.mp.make_mpf(x._mpf_) if hasattr(x, "_mpf_") else x for x in xs))._mpf_)
        except Undefined:
            return precise.context.nan

    def read(floats: Sequence[np.ndarray], cells: Sequence[Any], digits: int) -> Any:
        with precise.working(digits):
            if attack.elementwise:
                (function,), _ = compiled(((),) * len(cells))
                return np.frompyfunc(lambda *xs: at(function, xs), len(cells), 1)(*cells)
            functions, shape = compiled(tuple(c.shape for c in cells))
            flat = [x for c in cells for x in c.ravel().tolist()]
            return precise.Digits.fill([at(function, flat) for function in functions], shape)

    return read


def _carried(formula: Any, parameters: tuple[Any, ...]) -> Reader:
    """A function `(xp, *arrays)`, whose xp has every op of the registry."""
    def read(floats: Sequence[np.ndarray], cells: Sequence[Any], digits: int) -> Any:
        with precise.working(digits):
            recorder = Recorder(precise, precise.lift_value)
            found = formula(recorder, *(Box(recorder, c) for c in cells), *parameters)
            return precise.lift_value(found.value if isinstance(found, Box) else found)

    return read


def _recorded(formula: Any, parameters: tuple[Any, ...]) -> Reader:
    """A function of symgrad's tensors: recorded with the floats, and replayed with many digits."""
    def read(floats: Sequence[np.ndarray], cells: Sequence[Any], digits: int) -> Any:
        with in_mode(keep_values=True):
            leaves = [tensor(x, requires_grad=x.dtype.kind == "f") for x in floats]
            out = formula(*leaves, *parameters)
        with precise.working(digits):
            if not isinstance(out, Tensor) or not out.requires_grad:
                return precise.lift_value(out.value if isinstance(out, Tensor) else out)
            recorder = Recorder(precise, precise.lift_value)
            active: Any = [(x._node, c) for x, c in zip(leaves, cells) if x.requires_grad]
            root: Any = out._node
            box, _ = recorder.replayed(root, [leaf for leaf, _ in active], [c for _, c in active])
            return box.value

    return read


