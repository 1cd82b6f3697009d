"""Programs in terms of NumPy: the words of the protocol become ufuncs, reductions, views and calls of the numeric carrier.

A composite word, such as `sigmoid`, becomes the ufuncs that the numeric carrier calls for it; equal ones are computed once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers import MATRIX_WORDS, PROTOCOL
from symgrad.carriers.special.table import SPECIAL
from symgrad.carriers.structure import is_basic
from symgrad.program.program import LISTS, ArraySpec, Program, has_operand
from symgrad.program.scalars import ALIASES, COMPOSITE, REDUCING, scalar_expression


class LoweredOp(NamedTuple):
    """One operation on registers: what kind of operation, the function's name, its operands, its parameters, and the register of the result."""

    kind: str
    name: str
    ins: tuple[int, ...]
    params: tuple[Any, ...]
    out: int


BOOLEAN = np.dtype(bool)
float64, float32 = np.dtype(np.float64), np.dtype(np.float32)
PYTHON_NUMBERS = (float, int, bool, complex)

UFUNCS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "true_divide", "neg": "negative", "abs": "absolute", "sign": "sign", "exp": "exp",
    "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "sqrt": "sqrt", "square": "square",
    "reciprocal": "reciprocal", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "floor": "floor", "ceil": "ceil", "round": "rint",
    "trunc": "trunc", "atan2": "arctan2", "hypot": "hypot", "logaddexp": "logaddexp", "maximum": "maximum", "minimum": "minimum",
    "remainder": "remainder", "fmod": "fmod", "floor_divide": "floor_divide", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal", "logical_and": "logical_and", "logical_or": "logical_or", "logical_not": "logical_not",
    "isfinite": "isfinite", "isnan": "isnan", "isinf": "isinf",
}
ORDERED = {"sign", "maximum", "minimum", "amax", "amin", "floor_divide", "remainder"}  # words that refuse complex numbers, or check integers
REDUCTIONS = {"sum": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}
VIEWS = {"reshape", "view", "permute", "broadcast_to", "getitem", "diagonal"}
# Words whose results are in memory of their own, when the carrier is called.
FRESH = {*UFUNCS, *SPECIAL, *MATRIX_WORDS,
         "exp2_derivative", "log_derivative", "rsqrt", "sech", "sech_square", "sigmoid", "sigmoid_slope", "logsigmoid", "softplus", "relu",
         "sinc_derivative", "one_minus_square", "direction", "where", "pow", "indicator", "copy", "prod", "amax", "amin", "cumsum", "cumprod",
         "logsumexp", "softmax", "log_softmax", "centred", "norm", "all", "any", "argmax", "argmin", "place", "put", "cat", "stack", "flip", "roll",
         "matmul", "mm", "mv", "dot", "diagonal_place", "trace", "tril", "triu", "zeros_like", "ones_like", "eye_like", "strided_add", "astype",
         "dft"}


class Lowered:
    """Operations on registers. The first registers are the inputs; those of `constants` have a value; each of the others is made by one operation.

    With `scalars`, the operations on 0-d float64 values are of the kind `scalar`, to be computed with Python's floats.
    """

    def __init__(self, program: Program, scalars: bool):
        self.specs: list[ArraySpec] = list(program.inputs)
        self.constants: dict[int, Any] = {}
        self.ops: list[LoweredOp] = []
        self.scalars = scalars
        self._known: dict[Any, int] = {}
        self._negated: dict[int, int] = {}
        self._placed: dict[int, LoweredOp] = {}  # by results that one step alone reads
        self._readers = Counter(i for step in program.steps for i in step.ins) + Counter(program.outputs)
        self.first_register = len(program.inputs)
        self.by_slot = [*range(len(program.inputs)), *(self.constant(x) for x in program.constants)]
        absorbs = _absorbing(program)
        for slot, step in enumerate(program.steps, program.first_step):
            self.step, self.sign_is_absorbed = step, absorbs[slot]
            self.by_slot.append(self._lowered([self.by_slot[i] for i in step.ins]))
            if step.name == "place" and self._readers[slot] == 1 and self.ops[-1].kind == "place":
                elements = np.broadcast_to(0, step.shape)[step.params[0]].shape
                given = self.specs[self.ops[-1].ins[0]].shape
                if given == elements or not given:
                    self._placed[self.by_slot[-1]] = self.ops[-1]
        self.outputs = [self.by_slot[i] for i in program.outputs]
        self._drop_unused()

    def constant(self, value: Any) -> int:
        key = (type(value), repr(value)) if type(value) in PYTHON_NUMBERS else None
        if key is not None and key in self._known:
            return self._known[key]
        register = self._register(np.shape(value), np.asarray(value).dtype)
        self.constants[register] = value
        if key is not None:
            self._known[key] = register
        return register

    def _register(self, shape: tuple[int, ...], dtype: np.dtype) -> int:
        self.specs.append(ArraySpec(shape, dtype))
        return len(self.specs) - 1

    def emit(self, kind: str, name: str, ins: Sequence[int], params: tuple[Any, ...] = (), spec: ArraySpec | None = None) -> int:
        """An operation whose result has the shape and the dtype of the step, unless told otherwise."""
        register = self._register(*(spec or (self.step.shape, self.step.dtype)))
        self.ops.append(LoweredOp(kind, name, tuple(ins), params, register))
        return register

    def ufunc(self, name: str, *ins: int, dtype: np.dtype | None = None) -> int:
        """The result of a ufunc; equal ones are computed once."""
        key = name, ins
        if key not in self._known:
            shapes = {self.specs[i].shape for i in ins} - {()}
            shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
            self._known[key] = self.emit("ufunc", name, ins, (), ArraySpec(shape, dtype or self.step.dtype))
        return self._known[key]

    def reduced(self, word: str, x: int, dim: Any) -> int:
        """The result of a reduction that keeps its axes; equal ones are computed once."""
        name = REDUCTIONS[word]
        key = "reduce " + name, x, dim
        if key not in self._known:
            shape, dtype = self.specs[x]
            axes = range(len(shape)) if dim is None else [i % len(shape) for i in (dim if type(dim) is tuple else (dim,))]
            kept = ArraySpec(tuple([1 if i in axes else n for i, n in enumerate(shape)]), dtype)
            self._known[key] = self.emit("reduce", name, (x,), (dim, True), kept)
        return self._known[key]

    # What the composite words are made of

    def word(self, name: str, *xs: int) -> int:
        """An elementwise word in the dtype of the step."""
        if name == "where":
            return self.emit("where", "where", xs, (), ArraySpec(np.broadcast_shapes(*[self.specs[i].shape for i in xs]), self.step.dtype))
        return self.ufunc(UFUNCS[name], *xs, dtype=BOOLEAN if name in ("eq", "isfinite") else None)

    def exp_below_zero(self, x: int, decay: int) -> int:
        """exp(min(x, 0)), where exp(-|x|) is `decay`: a selection from it takes more time."""
        return self.word("exp", self.word("minimum", x, self.constant(0)))

    def cast(self, x: int) -> int:
        """A truth value as a number."""
        return self.emit("copyto", "copyto", (x,), (), ArraySpec(self.specs[x].shape, self.step.dtype))

    def shape_of(self, x: int) -> tuple[int, ...]:
        return self.specs[x].shape

    def in_own_shape(self, x: int) -> int:
        """A value in the shape of the step."""
        return x if self.specs[x].shape == self.step.shape else self.emit("view", "reshape", (x,), (self.step.shape,))

    def can_reduce(self, x: int, dim: Any = None) -> bool:
        """Whether a value is an array that is not empty, and axes of it are given as integers."""
        return bool(self.specs[x].shape) and 0 not in self.specs[x].shape and _is_axes(dim)

    def weak(self, register: int) -> bool:
        """Whether a register is a Python number, which does not determine the dtype of a result."""
        return type(self.constants.get(register)) in PYTHON_NUMBERS

    def _lowered(self, xs: list[int]) -> int:
        step, specs = self.step, self.specs
        name = step.name
        kinds = {specs[i].dtype.kind for i in xs} | {step.dtype.kind}
        if any(map(has_operand, step.params)) or kinds - set("biufc"):
            return self.call(xs)
        if not step.shape:
            return self._zero_dimensional(xs)
        if name in LISTS:
            return self._joined(xs)
        if not xs or not specs[xs[0]].shape and name not in OF_NUMBERS:
            return self.call(xs)
        if name in ORDERED and kinds - set("f" if name in ("floor_divide", "remainder") else "bf"):
            return self.call(xs)
        if name in UFUNCS:
            return self._ufunc_of_word(xs)
        real = step.dtype.kind == "f" and step.dtype.itemsize >= 4 and all(specs[i].dtype == step.dtype or self.weak(i) for i in xs)
        if name in ("where", "indicator") and specs[xs[0]].dtype == BOOLEAN:
            return self._selected(xs)
        if name == "pow" and real:
            return self._power(*xs)
        if name == "sech_square" and real:
            return self.ufunc("square", self.ufunc("reciprocal", self.ufunc("cosh", *xs)))
        if name in COMPOSITE and real and (name != "softplus" or step.params in ((), (1,))):
            fits = name not in REDUCING or self.can_reduce(xs[0], *step.params[:1])
            return COMPOSITE[name](self, *xs, *step.params) if fits else self.call(xs)
        if name == "copy" or name == "conj" and step.dtype.kind in "fiub":
            return xs[0]
        if name == "astype" and specs[xs[0]].dtype == step.dtype:
            return xs[0]
        if name == "astype" and kinds <= set("biuf") and step.dtype.kind == "f":
            return self.emit("copyto", "copyto", xs)
        if name in VIEWS and self._is_view(xs):
            return xs[0] if name != "getitem" and specs[xs[0]].shape == step.shape and name not in ("permute", "diagonal") else \
                self.emit("view", name, xs, step.params)
        if real or step.dtype.kind == "c" and name in ("sum", "matmul"):
            return self._reduced(xs)
        return self.call(xs)

    def call(self, xs: Sequence[int]) -> int:
        """The step as a call of the numeric carrier."""
        if self.step.name not in PROTOCOL:
            raise ValueError(f"a program has no word {self.step.name!r}")
        return self.emit("call", self.step.name, xs, self.step.params)

    def _zero_dimensional(self, xs: list[int]) -> int:
        step, specs = self.step, self.specs
        x = specs[xs[0]] if xs else None
        if step.name in ALIASES and x == ArraySpec((), step.dtype) and step.dtype.kind in "fb":
            return xs[0]
        if step.name == "getitem" and x is not None and x.shape and (index := _integers(step.params[0])) is not None:
            return self.emit("item", "item", xs, index)
        if self.scalars and (text := scalar_expression(step, [specs[i] for i in xs], [self.constants.get(i) for i in xs])) is not None:
            return self.emit("scalar", step.name, xs, (text,))
        if x is not None and x.shape and step.dtype in (float64, float32) and all(specs[i].dtype == step.dtype for i in xs):
            return self._reduced(xs)
        return self.call(xs)

    def _selected(self, xs: list[int]) -> int:
        dtype, specs = self.step.dtype, self.specs
        if self.step.name == "where" and dtype.kind in "fbi" and all(specs[i].dtype == dtype or self.weak(i) for i in xs[1:]):
            return self.emit("where", "where", xs)
        if self.step.name == "indicator" and dtype.kind == "f" and dtype.itemsize >= 4 and specs[xs[0]].shape:
            return self.emit("copyto", "copyto", xs[:1])
        return self.call(xs)

    def _power(self, x: int, power: int) -> int:
        """A power; NumPy has short cuts for arrays to some numbers."""
        exponent = self.constants.get(power)
        if type(exponent) not in (int, float):
            return self.ufunc("power", x, power) if self.specs[power].shape else self.call((x, power))
        match exponent:
            case 1:
                return x
            case 2:
                return self.ufunc("square", x)
            case 3:  # at most one unit in the last place from the power, and thirty times as fast
                return self.ufunc("multiply", self.ufunc("square", x), x)
            case 4:
                return self.ufunc("square", self.ufunc("square", x))
            case -1:
                return self.ufunc("reciprocal", x)
            case 0.5:
                return self.ufunc("sqrt", x)
        return self.ufunc("power", x, power)

    def _ufunc_of_word(self, xs: list[int]) -> int:
        name, (a, *rest) = UFUNCS[self.step.name], xs
        negated = self._negated
        if self.step.dtype.kind == "f" and rest:
            b = rest[0]
            if name == "add" and a in self._placed and b not in self._placed:
                a, b = b, a
            if name in ("add", "subtract") and b in self._placed and self.specs[a] == self.specs[b]:
                placed = self._placed[b]  # adding to some elements needs no array of zeros
                return self.emit("update", name, (a, placed.ins[0]), placed.params)
            if name in ("add", "subtract") and b in negated:
                return self.ufunc("subtract" if name == "add" else "add", a, negated[b])
            if name == "add" and a in negated:
                return self.ufunc("subtract", b, negated[a])
            if name in ("multiply", "true_divide") and a in negated and b in negated:
                return self.ufunc(name, negated[a], negated[b])
            if name in ("multiply", "true_divide") and self.sign_is_absorbed and (a in negated or b in negated):
                return self.negative(self.ufunc(name, negated.get(a, a), negated.get(b, b)))
        elif name == "negative" and self.step.dtype.kind == "f":
            return negated[a] if a in negated else self.negative(a)
        return self.ufunc(name, *xs)

    def negative(self, x: int) -> int:
        out = self.ufunc("negative", x)
        self._negated[out] = x
        return out

    def _is_view(self, xs: list[int]) -> bool:
        return len(xs) == 1 and (self.step.name != "getitem" or type(self.step.params[0]) is not bool and is_basic(self.step.params[0]))

    def _joined(self, xs: list[int]) -> int:
        step, specs = self.step, self.specs
        if step.name == "einsum" or not all(specs[i].dtype == step.dtype and not self.weak(i) for i in xs):
            return self.call(xs)
        return self.emit(step.name, step.name, xs, tuple(step.params) or (0,))

    def _reduced(self, xs: list[int]) -> int:
        """Reductions, products of matrices, and writes at a basic index."""
        step, specs = self.step, self.specs
        name, x = step.name, specs[xs[0]]
        if name in REDUCTIONS and x.dtype == step.dtype:
            dim, keepdim = [(None, False), (*step.params, False), step.params][len(step.params)]
            if not _is_axes(dim):
                return self.call(xs)
            return self.emit("reduce", REDUCTIONS[name], xs, (dim, bool(keepdim)))
        if name == "sum_to_size" and x.dtype == step.dtype:
            extra = len(x.shape) - len(step.shape)
            axes = (*range(extra), *(i + extra for i, n in enumerate(step.shape) if n == 1 and x.shape[i + extra] != 1))
            return self.emit("reduce", "add", xs, (axes if len(axes) != 1 else axes[0], False)) if axes else self.call(xs)
        if name in ("mm", "mv", "dot", "matmul") and all(specs[i].dtype == step.dtype and specs[i].shape for i in xs):
            matrices = max(len(specs[i].shape) for i in xs) <= 2 and step.dtype.kind == "f" and all(math.prod(specs[i].shape) != 1 for i in xs)
            return self.emit("product", "dot" if matrices else "matmul", xs)  # as in `structure.mm`, with a third of the overhead
        if step.shape and name == "place" and _is_plain(step.params[0]):
            return self.emit("place", "place", xs, step.params[:1])
        if step.shape and name == "put" and _is_plain(step.params[0]) and not any(step.params[1:]):
            return self.emit("put", "put", xs, step.params[:1])
        return self.call(xs)

    def _drop_unused(self) -> None:
        used, kept = set(self.outputs), []
        for op in reversed(self.ops):
            if op.out in used:
                used.update(op.ins)
                kept.append(op)
        self.ops = kept[::-1]

    def uses(self) -> tuple[list[frozenset[int]], list[int]]:
        """The registers whose memory each register may see, and the number of the last operation that sees the memory of each."""
        roots = [frozenset[int]()] * len(self.specs)
        last = [-1] * len(self.specs)
        for number, (kind, name, ins, _, out) in enumerate(self.ops):
            for i in ins:
                for root in roots[i]:
                    last[root] = number
            roots[out], last[out] = frozenset((out,)), number
            if kind == "view" or kind == "call" and name not in FRESH:
                roots[out] = frozenset().union(*(roots[i] for i in ins), () if kind == "view" else (out,))
        for register in self.outputs:
            for root in roots[register]:
                last[root] = len(self.ops)
        return roots, last


def _absorbing(program: Program) -> list[bool]:
    """Whether every use of a slot can have the other sign of it without another operation: -x + y is y - x."""
    out = [True] * (program.first_step + len(program.steps))
    for slot in program.outputs:
        out[slot] = False
    for slot in range(len(out) - 1, program.first_step - 1, -1):
        step = program.steps[slot - program.first_step]
        if not (step.name in ("add", "sub", "neg") or step.name in ("mul", "div") and out[slot]):
            for i in step.ins:
                out[i] = False
    return out


def _integers(index: Any) -> tuple[int, ...] | None:
    """An index of one element as integers."""
    index = index if type(index) is tuple else (index,)
    return index if all(type(i) is int for i in index) else None


def _is_axes(dim: Any) -> bool:
    return dim is None or type(dim) is int or type(dim) is tuple and all(type(i) is int for i in dim)


def _is_plain(index: Any) -> bool:
    """Whether an index consists of integers and slices of integers."""
    parts = index if type(index) is tuple else (index,)
    return all(type(part) is int or part is None or part is Ellipsis or type(part) is slice for part in parts)


# Words that are lowered for a 0-d first operand too
OF_NUMBERS = {*UFUNCS, *COMPOSITE, "where", "indicator", "pow", "sech_square", "place", "broadcast_to"}
