"""Recording: the closures that compute an op's value and create its node.

The closures for one and two arguments are the hot path of the library, so they inline what they can.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

import symgrad.ops  # noqa: F401  fills the registry
from symgrad.carriers import numeric
from symgrad.carriers.recorded import Recorded
from symgrad.engine.data import as_value
from symgrad.engine.inference import recorded
from symgrad.engine.operands import NUMBERS, Deferred, Lifted, explain, kept_narrow, narrowed, operand, value_and_node, with_number
from symgrad.engine.residuals import with_residual
from symgrad.engine.storage.views import MANY, register_view
from symgrad.engine.storage.writes import into
from symgrad.engine.tensor import Tensor, new, wrap
from symgrad.graph.closures import specialized
from symgrad.graph.modes import special, thread
from symgrad.graph.node import BARRED, NAMED, TRACKED, Node, constructor, node_class
from symgrad.graph.op import REGISTRY, Op
from symgrad.types.dtypes import common_dtype, dtype_of, get_default_dtype
from symgrad.types.layouts import row_major, with_torch_layout

__all__ = ["Lifted", "NUMBERS", "convert", "core", "operand"]

float64, ndarray = np.float64, np.ndarray
LAYOUTS = {"operands": with_torch_layout, "first": lambda y, xs: with_torch_layout(y, xs[:1]),
           "last": lambda y, xs: with_torch_layout(y, xs[::-1]), "rows": row_major, "": None}
PLAIN = (float, int)  # NumPy ignores these numbers in the dtype of a real or complex result
make_tensor = functools.partial(new, Tensor)


def convert(x: Tensor, dtype: Any) -> Tensor:
    """The tensor in another dtype (itself, if it has that dtype); a conversion to integers ends the graph."""
    target = dtype_of(dtype)
    if x.dtype is target:
        return x
    if not (target.is_floating_point or target.is_complex):
        return wrap(numeric.astype(x._value, target.numpy))
    return _to_copy(x, target.numpy, x._value.dtype)


def _promoted(op: Op, xs: list[Any]) -> list[Any]:
    """Operands converted to one dtype by torch's promotion rules; Python numbers never widen an array and stay as they are."""
    tensors = [x for x in xs if isinstance(x, Tensor)]
    if not tensors:
        return [wrap(as_value(x)) for x in xs]
    target = functools.reduce(lambda a, b: a if a.dtype == b.dtype else np.empty((1,) * max(a.ndim, b.ndim), common_dtype(a, b)),
                              (t._value for t in tensors)).dtype
    if target.kind in "biu":
        numbers = {type(x) for x in xs if not isinstance(x, Tensor)}
        if complex in numbers:
            target = np.result_type(get_default_dtype().numpy, np.complex64)
        elif not op.integers or float in numbers:
            target = get_default_dtype().numpy
        elif target.kind == "b" and int in numbers:
            target = np.dtype(np.int64)
    elif target.kind == "f" and any(type(x) is complex for x in xs):
        target = np.result_type(target, np.complex64)
    return [convert(x, target) if isinstance(x, Tensor) and x._value.dtype != target else x for x in xs]


def _settle(op: Op, input: Any, other: Any) -> tuple[Any, Node | None, Any, Node | None]:
    """The slow path of two operands: numbers, arrays, subclasses, and dtypes that differ."""
    a, b = _promoted(op, [operand(op, input), operand(op, other)])
    return *value_and_node(a), *value_and_node(b)


def _binary(op: Op, call: Lifted) -> Lifted:
    with_float = with_number(op, call)
    make, make_broadcast = constructor(node_class(op, broadcasts=False)), node_class(op)
    mask = TRACKED if op.differentiable else NAMED
    keeps = op.integers

    @specialized
    def function(input: Any, other: Any, out: Any = None) -> Tensor:
        alike: bool | None = None  # whether the operands have one shape, None if unknown
        if out is not None:
            return into(out, op.name, function, input, other)
        try:
            if isinstance(input, Tensor) and isinstance(other, Tensor):
                x, z, p, q = input._value, other._value, input._node_slot, other._node_slot
                if x.dtype is not z.dtype or (p is None and not keeps and x.dtype.kind in "biu"):
                    x, p, z, q = _settle(op, input, other)
                    alike = False
            elif type(other) in PLAIN and isinstance(input, Tensor) and (x := input._value).dtype.kind in "fc":
                p, z, q = input._node_slot, other, None
                alike = True
            elif type(input) in PLAIN and isinstance(other, Tensor) and (z := other._value).dtype.kind in "fc":
                x, p, q = input, None, other._node_slot
                alike = True
            else:
                x, p, z, q = _settle(op, input, other)
                if type(x) in NUMBERS and z.dtype.kind == "V" or type(z) in NUMBERS and x.dtype.kind == "V":
                    return with_float(x, p, z, q)
                alike = False
        except Deferred:
            return NotImplemented
        out = make_tensor()
        try:
            out._value = y = call(x, z)
            out._view = None
        except (ValueError, TypeError) as error:
            raise explain(op, error, [x, z]) from None
        if type(y) is float64:
            alike = True
        elif not alike and y.ndim > 1 and type(x) is ndarray and not x.flags.c_contiguous:  # else NumPy's order is torch's
            out._value = y = with_torch_layout(y, (x, z))
        if p is None:
            flags = 0 if q is None else q.flags & mask
        else:
            flags = p.flags & mask if q is None else (p.flags | q.flags) & mask
        if flags and (not special or thread.modes.plain):
            if alike or (alike is None and x.shape == z.shape):
                out._node_slot = make((x, z), (p, q), y, flags)
            else:
                out._node_slot = make_broadcast((x, z), (p, q), y, flags)
        elif special or flags is BARRED:
            out._node_slot = recorded(op, (x, z), (p, q), y)
        else:
            out._node_slot = None
        return out

    return function


def _unary(op: Op, call: Lifted) -> Lifted:
    make = constructor(node_class(op))
    mask = TRACKED if op.differentiable else NAMED
    keeps = op.integers

    @specialized
    def function(input: Any, out: Any = None) -> Tensor:
        p: Node | None
        if out is not None:
            return into(out, op.name, function, input)
        if isinstance(input, Tensor):
            x, p = input._value, input._node_slot
            if p is None and not keeps and x.dtype.kind in "biu":
                x = numeric.astype(x, get_default_dtype().numpy)
        else:
            x, p = value_and_node(_promoted(op, [operand(op, input)])[0])
        out = make_tensor()
        try:
            out._value = y = call(x)
            out._view = None
        except TypeError as error:
            raise explain(op, error, [x]) from None
        if p is not None and (flags := p.flags & mask) and (not special or thread.modes.plain):
            out._node_slot = make((x,), (p,), y, flags)
        elif special or p is not None and p.flags is BARRED:
            out._node_slot = recorded(op, (x,), (p,), y)
        else:
            out._node_slot = None
        return out

    return function


def _by_rows(call: Lifted) -> Lifted:
    def computed(*xs: Any) -> Any:
        y = call(*xs)
        return row_major(y) if type(y) is ndarray and y.ndim > 1 else y

    return computed


def _with_parameters(forward: Lifted) -> Lifted:
    """The rule of a tensor and Python numbers, with a bfloat16 result kept in bfloat16."""
    def rule(xp: Any, x: Any, *rest: Any) -> Any:
        y = forward(xp, x, *rest)
        return y if y.dtype is x.dtype or x.dtype.kind != "V" else kept_narrow(y, x.dtype)

    return rule


FACTORS = ("alpha", "factor", "value", "weight", "total", "reduction")  # parameters that are numbers combined with a tensor


def _finishing(op: Op) -> Lifted:
    """The last step of an op: the Tensor of a value, with its node."""
    make, mask = constructor(node_class(op)), TRACKED if op.differentiable else NAMED

    def finish(args: tuple, parents: tuple, y: Any, flags: int) -> Tensor:
        out = make_tensor()
        out._value, out._node_slot, out._view = y, None, None
        flags &= mask
        if flags and (not special or thread.modes.plain):
            out._node_slot = make(args, parents, y, flags)
        elif special or flags is BARRED:
            out._node_slot = recorded(op, args, parents, y)
        return out

    return finish


def _general(op: Op) -> Lifted:
    """The function of any op, called with the arguments of the rule: tensors (or one sequence of them), then parameters."""
    forward, arity, arrange = op.forward, op.arity, LAYOUTS[op.layout]
    if op.parameters and op.kind == "elementwise" or any(p.name in FACTORS for p in op.parameters):
        forward, op = _with_parameters(op.forward), narrowed(op)
    finish = _finishing(op)

    def function(*args: Any) -> Tensor:
        given, rest = (args[0], args[1:]) if arity is None else (args[:arity], args[arity:])
        if not alike(given):
            given = settle(given)
        values = tuple([x._value if isinstance(x, Tensor) else x for x in given])
        parents = tuple([x._node_slot if isinstance(x, Tensor) else None for x in given])
        try:
            y = forward(numeric, *values, *rest) if arity is not None else forward(numeric, values, *rest)
        except (ValueError, TypeError, IndexError) as error:
            raise explain(op, error, list(values)) from None
        if arrange is not None and type(y) is ndarray and y.ndim > 1:
            y = arrange(y, values)
        flags = 0
        for p in parents:
            if p is not None:
                flags |= p.flags
        return finish(values + rest, parents, y, flags)

    def alike(given: Sequence[Any]) -> bool:
        """Whether all are Tensors of one dtype, so that no conversion is needed."""
        first = given[0]
        if not isinstance(first, Tensor):
            return False
        if arity == 1:
            return True
        dtype = first._value.dtype
        return all([isinstance(x, Tensor) and x._value.dtype is dtype for x in given])

    def settle(given: Sequence[Any]) -> list[Any]:
        operands = [operand(op, x) for x in given]
        if len(operands) == 1:
            return [x if isinstance(x, Tensor) else wrap(as_value(x)) for x in operands]
        first = op.name == "where"  # its condition keeps its own dtype
        return operands[:first] + _promoted(op, operands[first:])

    return function


def _one(op: Op) -> Lifted:
    """As `_general`, for an op of one tensor."""
    general, forward, arrange, finish = _general(op), op.forward, LAYOUTS[op.layout], _finishing(op)

    def function(input: Any, *rest: Any) -> Tensor:
        if not isinstance(input, Tensor):
            return general(input, *rest)
        x, p = input._value, input._node_slot
        try:
            y = forward(numeric, x, *rest)
        except (ValueError, TypeError, IndexError) as error:
            raise explain(op, error, [x]) from None
        if arrange is not None and type(y) is ndarray and y.ndim > 1:
            y = arrange(y, (x,))
        return finish((x, *rest), (p,), y, 0 if p is None else p.flags)

    return function


def _product(op: Op) -> Lifted:
    """As `_general`, for a product of two tensors."""
    general, forward, finish = _general(op), op.forward, _finishing(op)

    def function(input: Any, other: Any) -> Tensor:
        if not isinstance(input, Tensor) or not isinstance(other, Tensor):
            return general(input, other)
        x, z, p, q = input._value, other._value, input._node_slot, other._node_slot
        if x.dtype is not z.dtype:
            return general(input, other)
        try:
            y = forward(numeric, x, z)
        except ValueError as error:
            raise explain(op, error, [x, z]) from None
        return finish((x, z), (p, q), y, (0 if p is None else p.flags) | (0 if q is None else q.flags))

    return function


def _view(op: Op) -> Lifted:
    """The function of an op whose value is a view of its one argument."""
    make, mask = constructor(node_class(op)), TRACKED if op.differentiable else NAMED
    forward, made = op.forward, MANY if op.view == MANY else ""

    @specialized
    def function(input: Any, *rest: Any) -> Tensor:
        if not isinstance(input, Tensor):
            input = wrap(as_value(operand(op, input)))
        x = input._value
        if type(x) is not np.ndarray:
            x = input._array()
        p = input._node_slot
        try:
            y = forward(numeric, x, *rest)
        except (ValueError, TypeError, IndexError) as error:
            raise explain(op, error, [x]) from None
        out = make_tensor()
        out._value, out._node_slot, out._view = y, None, None
        flags = 0 if p is None else p.flags & mask
        if flags and (not special or thread.modes.plain):
            out._node_slot = make((x, *rest), (p,), y, flags)
        elif special or flags is BARRED:
            out._node_slot = recorded(op, (x, *rest), (p,), y)
        if type(y) is Recorded:
            y.recorder.share_memory(input, out)
        base = y.base
        return register_view(out, input, made) if base is not None and (base is x or base is x.base) else out

    return function


def core(op: Op) -> Lifted:
    """The function of an op, called with the arguments of the rule: the hot path."""
    if op.kind == "elementwise" and not op.parameters and op.arity in (1, 2) and op.layout != "last":
        call = getattr(numeric, op.name, None) or functools.partial(op.forward, numeric)
        if op.layout == "rows":
            call = _by_rows(call)
        if op.name in numeric.WITH_RESIDUAL:
            return with_residual(op, _unary(op, call), *numeric.WITH_RESIDUAL[op.name])
        return _unary(op, call) if op.arity == 1 else _binary(op, call)
    if op.view:
        return _view(op)
    if op.kind == "multilinear" and op.arity == 2 and not op.parameters:
        return _product(op)
    return _one(op) if op.arity == 1 and op.kind == "linear" and not any(p.name in FACTORS for p in op.parameters) else _general(op)


_to_copy = _general(REGISTRY["to_copy"])
