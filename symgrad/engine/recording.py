"""Recording: the closures that compute an op's value and create its node.

The closures for one and two arguments are the hot path of the library, so they inline what they can.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

import symgrad.ops  # noqa: F401  fills the registry
from symgrad.carriers import numeric
from symgrad.carriers.recorded import Recorded
from symgrad.dtypes.dtype import dtype_of, get_default_dtype, result_dtype
from symgrad.engine.data import as_value
from symgrad.engine.inference import recorded
from symgrad.engine.kernels import by_transforms, with_kernel, with_residual
from symgrad.engine.operands import (
    NUMBERS,
    Deferred,
    Lifted,
    admitted,
    by_rows,
    constants,
    explain,
    finishing,
    number,
    operand,
    refused,
    rounded_once,
    rounded_rules,
    tensors,
    value_and_node,
    with_number,
    within,
    wrapped,
)
from symgrad.engine.storage.views import MANY, register_view
from symgrad.engine.storage.writes import into
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.classes import specialized
from symgrad.graph.modes import computed, computers, special, thread
from symgrad.graph.node import BARRED, NAMED, TRACKED, Node, constructor, node_class
from symgrad.graph.op import REGISTRY, Op
from symgrad.layouts.strides import in_image_format, row_major, with_torch_layout
from symgrad.system.errorstate import again, quietly, run_quietly

float64, ndarray = np.float64, np.ndarray
LAYOUTS = {"operands": with_torch_layout, "first": lambda y, xs: with_torch_layout(y, xs[:1]),
           "last": lambda y, xs: with_torch_layout(y, xs[::-1]), "rows": row_major, "images": in_image_format, "": None}
PLAIN = (float, int)  # NumPy ignores these numbers in the dtype of a real or complex result


def convert(x: Tensor, dtype: Any) -> Tensor:
    """The tensor in another dtype (itself, if it has that dtype); a conversion to integers ends the graph."""
    target = dtype_of(dtype)
    if x.dtype is target:
        return x
    if not (target.is_floating_point or target.is_complex):
        return wrap(quietly(numeric.astype, x._value, target.numpy))
    return _to_copy(x, target.numpy, x._value.dtype)


def _promoted(op: Op, xs: list[Any]) -> list[Any]:
    """Operands converted to one dtype by torch's promotion rules; Python numbers never widen an array and stay as they are."""
    if not any([isinstance(x, Tensor) for x in xs]):
        xs = [wrap(as_value(x)) for x in xs]
    values = [x._value if isinstance(x, Tensor) else x for x in xs]
    target = result_dtype(values)
    refuses = op.numerics.refuses
    if refuses and (target.kind in refuses or refuses == "B"):
        if (refusal := refused(op, values if refuses == "B" else [np.empty(0, target)])) is not None:
            raise refusal
    if target.kind in "biu" and not op.numerics.integers and op.kind not in ("linear", "multilinear"):
        target = get_default_dtype().numpy
    if target.kind in "iu":
        if op.exponent is not None and type(exponent := op.exponent(tuple(xs))) is int and exponent < 0:  # a number; wrapped, it might be positive
            raise RuntimeError(f"{op.name}: integers have no power {exponent} in {dtype_of(target)}. Convert with .to() first, or call float_power")
        xs = [wrapped(x, target) if type(x) is int else x for x in xs]
    return [convert(x, target) if isinstance(x, Tensor) and x._value.dtype != target else x for x in xs]


def _settle(op: Op, input: Any, other: Any) -> tuple[Any, Node | None, Any, Node | None]:
    """The slow path of two operands: numbers, arrays, subclasses, and dtypes that differ."""
    a, b = _promoted(op, [operand(op, input), operand(op, other)])
    return *value_and_node(a), *value_and_node(b)


def running(op: Op) -> Lifted:
    """What calls the rule of an op: in the error state of the library, or in that of the caller for a rule that is a user's code."""
    return operator.call if op.outside else run_quietly


def _binary(op: Op, call: Lifted) -> Lifted:
    with_float = with_number(op, call)
    make, make_broadcast = constructor(node_class(op, broadcasts=False)), constructor(node_class(op))
    mask = TRACKED if op.differentiable else NAMED
    keeps, refuses = op.numerics.integers, op.numerics.refuses.lower()
    plain, run = "df" if "c" in refuses else "dfDF", running(op)

    @specialized
    def function(input: Any, other: Any, *, out: Any = None) -> Tensor:
        alike: bool | None = None  # whether the operands have one shape, None if unknown
        if out is not None:
            return into(out, op.name, function, *constants(op, input, other))
        try:
            if isinstance(input, Tensor) and isinstance(other, Tensor):
                x, z, p, q = input._value, other._value, input._node_slot, other._node_slot
                if x.dtype is not z.dtype or (p is None and not keeps and x.dtype.kind in "biu") or (refuses and x.dtype.kind in refuses):
                    x, p, z, q = _settle(op, input, other)
                    alike = False
            elif type(other) in PLAIN and isinstance(input, Tensor) and (x := input._value).dtype.char in plain:
                p, z, q = input._node_slot, other, None
                alike = True
            elif type(input) in PLAIN and isinstance(other, Tensor) and (z := other._value).dtype.char in plain:
                x, p, q = input, None, other._node_slot
                alike = True
            else:
                x, p, z, q = _settle(op, input, other)
                if type(x) in NUMBERS and z.dtype.char in "eE" or type(z) in NUMBERS and x.dtype.char in "eE":
                    return with_float(x, p, z, q)
                alike = False
        except Deferred:
            return NotImplemented
        out = next(tensors)
        out._view = None
        try:
            out._value = y = run(call, x, z)
        except (ValueError, TypeError) as error:
            raise explain(op, error, [x, z]) from None
        except RuntimeError as error:
            out._value = y = again(error, call, x, z)
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
            if computers:
                out._value = y = computed(op, functools.partial(_known, y), numeric, x, z)
            out._node_slot = recorded(op, (x, z), (p, q), y)
        else:
            out._node_slot = None
        return out

    return function


def _known(y: Any, xp: Any, *args: Any) -> Any:
    return y


def _unary(op: Op, call: Lifted) -> Lifted:
    make = constructor(node_class(op))
    mask = TRACKED if op.differentiable else NAMED
    keeps, refuses = op.numerics.integers, "" if op.name == "neg" else op.numerics.refuses  # NumPy refuses to negate booleans, which `explain` words
    run = running(op)

    @specialized
    def function(input: Any, *, out: Any = None) -> Tensor:
        p: Node | None
        if out is not None:
            return into(out, op.name, function, *constants(op, input))
        if isinstance(input, Tensor):
            x, p = input._value, input._node_slot
            if p is None and not keeps and x.dtype.kind in "biu":
                x = quietly(numeric.astype, x, get_default_dtype().numpy)
            elif refuses and x.dtype.kind in refuses:
                x = admitted(op, x)
        else:
            x, p = value_and_node(_promoted(op, [operand(op, input)])[0])
        out = next(tensors)
        out._view = None
        try:
            out._value = y = run(call, x)
        except TypeError as error:
            raise explain(op, error, [x]) from None
        except RuntimeError as error:
            out._value = y = again(error, call, x)
        if p is not None and (flags := p.flags & mask) and (not special or thread.modes.plain):
            out._node_slot = make((x,), (p,), y, flags)
        elif special or p is not None and p.flags is BARRED:
            if computers:
                out._value = y = computed(op, functools.partial(_known, y), numeric, x)
            out._node_slot = recorded(op, (x,), (p,), y)
        else:
            out._node_slot = None
        return out

    return function


BOUNDS = frozenset(("min", "max", "other"))  # parameters that are numbers of the kind of the tensor, which they promote


def _general(op: Op) -> Lifted:
    """The function of any op, called with the arguments of the rule: tensors (or one sequence of them), then parameters."""
    plain, arity, arrange, registered = op.forward, op.arity, LAYOUTS[op.numerics.layout], op
    forward, op = rounded_rules(op)
    finish, first = finishing(op), int(op.name == "where" or op.name.startswith("power_of_"))  # a condition and a length keep their dtype
    bounded = op.kind == "elementwise" and any(p.name in BOUNDS for p in op.parameters)
    promotes = op.kind == "elementwise" and (bounded or not op.numerics.integers)
    numbers = op.kind == "elementwise" and not bounded and bool(op.parameters)
    refuses = op.numerics.refuses if op.parameters else ""
    quiet_run = running(op)

    @specialized
    def function(*args: Any) -> Tensor:
        given, rest = (args[0], args[1:]) if arity is None else (args[:arity], args[arity:])
        if numbers and any([isinstance(z, Tensor) for z in rest]):
            rest = tuple([number(op, parameter.name, z) for parameter, z in zip(op.parameters, rest)])
        if promotes:
            given = given if isinstance(given[0], Tensor) else settle(given)
            if isinstance(given[0], Tensor) and given[0]._value.dtype.kind in "biu":
                given = _promoted(op, [*given, *(z for z in rest if bounded and z is not None)])[:len(given)]
        values, parents, flags, dtype = gathered(given) or gathered(settle(given), True)  # type: ignore[misc]
        if refuses and values[0].dtype.kind in refuses:
            raise refused(op, [values[0]])  # type: ignore[misc]
        call, run = plain, quiet_run
        if dtype is None or dtype.char not in "df":
            call, rest = forward, within(op, rest, values)
        if computers:
            call, run = functools.partial(computed, op, call), operator.call
        try:
            y = run(call, numeric, *values, *rest) if arity is not None else run(call, numeric, values, *rest)
        except (ValueError, TypeError, IndexError) as error:
            raise explain(op, error, list(values)) from None
        except RuntimeError as error:
            y = again(error, call, numeric, *values, *rest) if arity is not None else again(error, call, numeric, values, *rest)
        if arrange is not None and type(y) is ndarray and y.ndim > 1:
            y = arrange(y, values)
        return finish(values + rest, parents, y, flags)

    @specialized
    def gathered(given: Sequence[Any], settled: bool = False) -> tuple[tuple, tuple, int, Any] | None:
        """The values, the nodes and the flags of operands, and their dtype if it is one; None for some that must be converted first."""
        values: list[Any] = []
        parents, flags, dtype = [], 0, None
        for x in given:
            if isinstance(x, Tensor):
                v, p = x._value, x._node_slot
                if not settled and v.dtype is not dtype and len(values) >= first:
                    if dtype is not None:
                        return None
                    dtype = v.dtype
                if p is not None:
                    flags |= p.flags
                values.append(v)
                parents.append(p)
            elif settled or type(x) in PLAIN and len(values) >= first:
                values.append(x)
                parents.append(None)
            else:
                return None
        if not settled and (dtype is None or dtype.kind not in "fc" and not all([isinstance(x, Tensor) for x in given])):
            return None
        return tuple(values), tuple(parents), flags, dtype

    def settle(given: Sequence[Any]) -> list[Any]:
        operands = [operand(op, x) for x in given]
        if len(operands) == 1:
            return [x if isinstance(x, Tensor) else wrap(as_value(x)) for x in operands]
        return operands[:first] + _promoted(op, operands[first:])

    return _one(registered, function, op) if arity == 1 else function


def _one(op: Op, general: Lifted, op_of_node: Op) -> Lifted:
    """As `general`, for one tensor, of floats that need no conversion unless the op is linear."""
    forward, arrange, anything = by_transforms(op), LAYOUTS[op.numerics.layout], op.kind == "linear" and op is op_of_node
    quick = "dfDF" if op.kind == "primitive" else "df"
    make, mask, run = constructor(node_class(op_of_node)), TRACKED if op.differentiable else NAMED, running(op)

    @specialized
    def function(input: Any, *rest: Any) -> Tensor:
        if not isinstance(input, Tensor):
            return general(input, *rest)
        x, p = input._value, input._node_slot
        if not anything:
            if x.dtype.char not in quick:
                return general(input, *rest)
            for z in rest:
                if isinstance(z, Tensor):
                    return general(input, *rest)
        try:
            y = run(forward, numeric, x, *rest) if not computers else computed(op, forward, numeric, x, *rest)
        except (ValueError, TypeError, IndexError) as error:
            raise explain(op, error, [x]) from None
        except RuntimeError as error:
            y = again(error, forward, numeric, x, *rest)
        if arrange is not None and type(y) is ndarray and y.ndim > 1:
            y = arrange(y, (x,))
        out = next(tensors)
        out._value, out._node_slot, out._view = y, None, None
        flags = 0 if p is None else p.flags & mask
        if flags and (not special or thread.modes.plain):
            out._node_slot = make((x, *rest), (p,), y, flags)
        elif special or flags is BARRED:
            out._node_slot = recorded(op_of_node, (x, *rest), (p,), y)
        return out

    return function


def _product(op: Op) -> Lifted:
    """As `_general`, for a product of two tensors."""
    general, forward, finish, run, rows = _general(op), op.forward, finishing(op), running(op), op.numerics.layout == "rows"

    def function(input: Any, other: Any) -> Tensor:
        if not isinstance(input, Tensor) or not isinstance(other, Tensor):
            return general(input, other)
        x, z, p, q = input._value, other._value, input._node_slot, other._node_slot
        if x.dtype is not z.dtype:
            return general(input, other)
        try:
            y = run(forward, numeric, x, z) if not computers else computed(op, forward, numeric, x, z)
        except ValueError as error:
            raise explain(op, error, [x, z]) from None
        except RuntimeError as error:
            y = again(error, forward, numeric, x, z)
        if rows and type(y) is ndarray and not y.flags.c_contiguous:
            y = row_major(y)
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
        out = next(tensors)
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
    return with_kernel(op, _plain(op))


def _plain(op: Op) -> Lifted:
    if op.kind == "elementwise" and not op.parameters and op.arity in (1, 2) and op.numerics.layout != "last":
        call = getattr(numeric, op.name, None) or functools.partial(op.forward, numeric)
        if isinstance(call, (types.FunctionType, functools.partial)) and op.name not in numeric.ONE_STEP:  # not an operator or a ufunc
            call = rounded_once(call)
        if op.numerics.layout == "rows":
            call = by_rows(call)
        if op.name in numeric.WITH_RESIDUAL:
            return with_residual(op, _unary(op, call), *numeric.WITH_RESIDUAL[op.name])
        return _unary(op, call) if op.arity == 1 else _binary(op, call)
    if op.view:
        return _view(op)
    if op.kind == "multilinear" and op.arity == 2 and not op.parameters:
        return _product(op)
    return _general(op)


_to_copy = _general(REGISTRY["to_copy"])
