"""Simplifications of words as they are recorded, which change no finite value and no sign of a zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from symgrad.program.program import ArraySpec, Operand

SMALL = 4096  # elements of a constant that are compared to find out whether all are equal


def filling(e: Any) -> Any:
    """The number that all elements of a constant are; None for others."""
    if e.name != "constant":
        return None
    if e.params:
        return e.params[0]
    e.params = (_filling(e),)
    return e.params[0]


def _filling(e: Any) -> Any:
    x = e.value
    if type(x) in (int, float):
        return float(x)
    if e.dtype.kind != "f" or e.dtype.itemsize < 4 or not np.size(x):
        return None
    if not np.ndim(x):
        return float(x)
    first = x[(0,) * x.ndim]
    if any(x.strides) and (x.size > SMALL or not (x == first).all() or not first and np.signbit(x).any() != np.signbit(x).all()):
        return None
    return float(first)


def elementwise_operands(recorder: Any, name: str, operands: tuple[Any, ...], spec: ArraySpec) -> tuple[Any, ...]:
    """The operands of an elementwise word without explicit broadcasts that the word does itself, and with numbers for filled constants."""
    if not any([e.name == "broadcast_to" or e.name == "constant" and e.shape for e in operands]) or len(operands) < 2:
        return operands
    out = list(operands)
    for i, e in enumerate(operands):
        others = [o.shape for k, o in enumerate(out) if k != i]
        if e.name == "broadcast_to" and np.broadcast_shapes(*others, e.operands[0].shape) == spec.shape:
            out[i] = e.operands[0]
        elif e.name == "constant" and e.shape and np.broadcast_shapes(*others) == spec.shape and (number := filling(e)) is not None and any(
                o.dtype == e.dtype and type(getattr(o, "value", None)) not in (int, float) for k, o in enumerate(out) if k != i):
            out[i] = recorder.entry(number)
    return tuple(out)


def _passes(e: Any, spec: ArraySpec) -> bool:
    """Whether an entry can stand for a result of these shape and dtype."""
    return e.shape == spec.shape and e.dtype == spec.dtype


def _is_zero(e: Any, sign: int, spec: ArraySpec) -> bool:
    """Whether an entry is the zero of a sign; both are one for integers. -0.0 + 0.0 is 0.0, and -0.0 + -0.0 and -0.0 - 0.0 are -0.0."""
    number = filling(e)
    return number == 0 and (spec.dtype.kind not in "fc" or math.copysign(1, number) == sign and spec.dtype.kind == "f")


def _add(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    for x, y in (operands, operands[::-1]):
        if _is_zero(y, -1, spec) and _passes(x, spec):
            return x
        if y.name == "neg":
            return recorder.add("sub", (x, y.operands[0]), (), spec)
    return None


def _sub(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    a, b = operands
    if _is_zero(b, 1, spec) and _passes(a, spec):
        return a
    if _is_zero(a, -1, spec) and _passes(b, spec) and spec.dtype.kind == "f":
        return recorder.add("neg", (b,), (), spec)
    return recorder.add("add", (a, b.operands[0]), (), spec) if b.name == "neg" else None


def _mul(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    if spec.dtype.kind != "f":
        return None
    for x, y in (operands, operands[::-1]):
        factor = filling(y)
        if factor is None or not _passes(x, spec):
            continue
        return _scaled(recorder, x, factor, spec)
    return None


def _scaled(recorder: Any, x: Any, factor: float, spec: ArraySpec) -> Any:
    """A value times a number, merged with a number by which the value was multiplied before."""
    if x.name == "neg":
        x, factor = x.operands[0], -factor
    elif x.name == "mul" and spec.dtype == np.float64:
        before = next(((o, n) for o, e in (x.operands, x.operands[::-1]) if (n := filling(e)) is not None and _passes(o, spec)), None)
        if before is not None and (abs(factor) == 1 or _round_once(before[1], factor)):
            x, factor = before[0], before[1] * factor
    if factor == 1:
        return x
    if factor == -1:
        return recorder.add_plain("neg", (x,), (), spec)
    return recorder.add_plain("mul", (x, recorder.entry(factor)), (), spec)


def _round_once(a: float, b: float) -> bool:
    """Whether a product with two numbers of moderate size rounds once, since one of them is a power of two."""
    return 0.5 in (abs(math.frexp(a)[0]), abs(math.frexp(b)[0])) and all([1e-100 < abs(x) < 1e100 for x in (a, b)])


def _div(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    a, b = operands
    return a if filling(b) == 1 and _passes(a, spec) else None


def _neg(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    (x,) = operands
    if x.name == "neg":
        return x.operands[0]
    return _scaled(recorder, x, -1.0, spec) if spec.dtype.kind == "f" else None


def _pow(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    a, b = operands
    exponent = filling(b)
    if exponent == 1 and _passes(a, spec):
        return a
    return recorder.add("square", (a,), (), spec) if exponent == 2 and _passes(a, spec) else None


def _same_shape(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    (x,) = operands
    if _passes(x, spec):
        return x
    return recorder.add("reshape", (x.operands[0],), params) if x.name == "reshape" else None


def _broadcast(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    (x,) = operands
    if _passes(x, spec):
        return x
    return recorder.add("broadcast_to", (x.operands[0],), params) if x.name == "broadcast_to" else None


def _permute(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    (x,), (dims,) = operands, params
    if dims == tuple(range(len(dims))):
        return x
    if x.name == "permute":
        return recorder.add("permute", x.operands, (tuple([x.params[0][i] for i in dims]),))
    if x.name == "broadcast_to" and not x.operands[0].shape:
        return recorder.add("broadcast_to", x.operands, (spec.shape,))
    return None


def _identity(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    return operands[0] if _passes(operands[0], spec) else None


def _sum(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    (x,) = operands
    return x if params[:1] == ((),) and _passes(x, spec) else None


def _selected(e: Any, axis: int) -> Any:
    """The places that a constant matrix selects in a product, as a slice or an array: it has a single 1 along the axis, and else zeros."""
    if e.name != "constant" or len(e.shape) != 2 or e.dtype.kind != "f" or not all(e.shape):
        return None
    x = e.value
    if np.count_nonzero(x) != x.shape[1 - axis] or not (x.max(axis=axis) == 1).all():
        return None
    places = x.argmax(axis=axis)
    first = int(places[0])
    return slice(first, first + places.size) if (places == np.arange(first, first + places.size)).all() else places


def _matmul(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    """A product with rows of the identity, as the vectors along which a Hessian is computed, selects; elsewhere it spreads an infinity or NaN."""
    a, b = operands
    if not recorder.selects or a.dtype != b.dtype:
        return None
    for x, index in ((b, _selected(a, 1)), (a, _selected(b, 0))):
        if index is None or len(x.shape) > 2:
            continue
        whole = (slice(None),) * (len(x.shape) - 1) if x is a else ()
        if isinstance(index, slice) and index == slice(0, x.shape[len(whole)]):
            return x
        return recorder.add("getitem", (x,), ((*whole, index) if whole else index,), spec)
    return None


REWRITES: dict[str, Callable[..., Any]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _neg, "pow": _pow, "reshape": _same_shape, "broadcast_to": _broadcast,
    "permute": _permute, "astype": _identity, "copy": _identity, "sum_to_size": _identity, "sum": _sum,
    "matmul": _matmul,
}


# Steps that raise for some values: a function that has computed one raises, or catches the error, also where it does not use the result

# Words of matrices that raise, each with what it needs of the matrix. Words that only derivatives use are not among them.
FAILING = {
    "matrix_inverse": "regular", "solve_system": "regular", "cholesky_factor": "positive",
    "hermitian_eigenvalues": "finite triangle", "hermitian_eigenvectors": "finite triangle", "ldl_factors": "finite triangle",
    "singular_values": "finite", "singular_vectors": "finite", "pseudo_inverse": "finite", "eigenvalues": "finite", "eigenvectors": "finite",
}
DIVIDING = ("remainder", "fmod", "floor_divide")
INDEXED = {"getitem": 1, "put": 2}  # words with an index, with the number of operands before those of the index


def _condition(e: Any) -> Any:
    """What must hold for a step not to raise, which is equal for steps that fail together; None for steps that never raise."""
    needed = FAILING.get(e.name)
    if needed is not None:
        x = e.operands[0]
        while x.name == "permute" and needed == "regular":  # a matrix is singular if its transpose is
            x = x.operands[0]
        return needed, x.number
    if e.name in INDEXED and len(e.operands) > INDEXED[e.name]:
        index = e.params[0]
        return "index", e.operands[0].shape, repr(_unnumbered(index)), *[o.number for o in e.operands[INDEXED[e.name]:]]
    if e.name in DIVIDING and e.dtype.kind in "biu" and not (e.operands[1].name == "constant" and np.all(e.operands[1].value)):
        return "divisor", e.operands[1].number
    return None


def _unnumbered(index: Any) -> Any:
    """An index with the same place for each operand, whose number depends on the word."""
    if type(index) in (tuple, list):
        return [_unnumbered(x) for x in index]
    return Operand(0) if type(index) is Operand else index


def unused_failures(entries: Iterable[Any], used: Iterable[Any]) -> list[Any]:
    """Entries that are not used and may raise where no used one does, one for each condition."""
    conditions = {e: c for e in entries if (c := _condition(e)) is not None}
    if not conditions:
        return []
    known = {conditions[e] for e in used if e in conditions}
    found: dict[Any, Any] = {}
    for e, condition in conditions.items():
        if condition not in known:
            found.setdefault(condition, e)
    return list(found.values())
