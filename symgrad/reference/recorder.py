"""Evaluation of the library's rules in an exact carrier with recording, so that the result can be differentiated again.

`RecordingCarrier(precise)` corresponds to the traced carrier, with many-digit floats in place of NumPy values: the pullback computes the gradient
to fifty digits and is recorded, and its own pullback gives the Hessian. `RecordingCarrier(symbolic)` gives formulas in the same way. Constants
are lifted before any arithmetic, so that no intermediate result is rounded to a float.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.spectra import is_number
from symgrad.dtypes.dtype import DTYPES, DType, dtype_of
from symgrad.engine.passes import pullback
from symgrad.engine.slopes import slope_op
from symgrad.engine.unmoved import Passed
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.derived import RECORDERS
from symgrad.graph.domains import COMPLEX as COMPLEX_PARTS
from symgrad.graph.node import GRADIENT, Leaf, Node, make_node
from symgrad.graph.op import REGISTRY, Op
from symgrad.graph.order import upstream
from symgrad.system.restoring import restored

Seeds = Sequence[tuple["Box", Any]]
COMPLEX = DTYPES["complex128"]
TINY, HUGE = 5e-324, 1.7e308
Part = tuple[tuple[int, ...], "Box", int]


class Box:
    """A value of the carrier and its node in the graph; rules use it like a tensor.

    Elements of a carrier have no machine dtype; `complex` is true for complex numbers.
    """

    def __init__(self, recorder: RecordingCarrier, value: Any, node: Node | None = None, complex: bool = False):
        self.recorder, self.value, self.node, self.complex = recorder, value, node, complex

    @property
    def dtype(self) -> DType | None:
        return None if self.recorder.complex else DTYPES["complex128" if self.complex else "float64"]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    def is_floating_point(self) -> bool:
        return not self.complex

    def is_complex(self) -> bool:
        return self.complex or self.recorder.complex

    def element_size(self) -> int:
        return 16 if self.complex else 8

    def floats(self) -> np.ndarray:
        """The nearest floats of numbers of many digits, of which none is 0 or infinite whose number is not.

        Raises TypeError for expressions and balls.
        """
        return np.reshape(np.array([_float(x) for x in self.value.ravel().tolist()]), self.shape)

    def item(self) -> Any:
        return self.value.item()

    def to(self, dtype: Any) -> Box:
        return self

    def double(self) -> Box:
        return self

    def __getitem__(self, index: Any) -> Box:
        return self.recorder.getitem(self, index)

    def __neg__(self) -> Box:
        return self.recorder.neg(self)

    def __bool__(self) -> bool:
        return bool(self.value.item())

    __hash__ = object.__hash__


class Number(float):
    """A Python number among a rule's arguments: a float with the arithmetic of the carrier."""

    recorder: RecordingCarrier

    def floats(self) -> float:
        return float(self)


def _arithmetic(symbol: str, name: str) -> None:
    def forward(self: Any, other: Any) -> Box:
        return getattr(self.recorder, name)(self, other)

    def reflected(self: Any, other: Any) -> Box:
        return getattr(self.recorder, name)(other, self)

    for cls in (Box, Number):
        setattr(cls, f"__{symbol}__", forward)
        setattr(cls, f"__r{symbol}__", reflected)


for _symbol, _name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "mod": "remainder", "matmul": "matmul"}.items():
    _arithmetic(_symbol, _name)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Box, f"__{_name}__", lambda self, other, _name=_name: getattr(self.recorder, _name)(self, other))


class RecordingCarrier:
    """A carrier that computes in the carrier `base` and records the ops. `lift` converts numbers and arrays to values of `base`.

    With `complex`, all values are complex numbers, and a pullback does not conjugate the arguments of rules.
    """

    def __init__(self, base: Any, lift: Callable[[Any], Any], complex: bool = False):
        self.base, self.lift, self.complex = base, lift, complex

    def __getattr__(self, name: str) -> Any:
        op = REGISTRY.get(name)
        if op is None:
            raise AttributeError(f"a rule of this op calls xp.{name}, which is not an op; symgrad.carriers lists the functions of xp")
        function = functools.partial(op.forward, self) if op.kind == "composite" else self._op(op)
        setattr(self, name, function)
        return function

    def _op(self, op: Op) -> Callable[..., Box]:
        signature = inspect.signature(op.surface.prepare or op.forward)
        count = op.arity or 1
        plain = op.surface.prepare is None and not op.parameters

        def call(*args: Any, **kwargs: Any) -> Box:
            if not plain or kwargs:
                bound = signature.bind(self, *args, **kwargs)
                if op.surface.prepare is not None:
                    args = op.surface.prepare(*bound.args, **bound.kwargs)
                    if isinstance(args, Box):  # another op computed the result
                        return args
                else:
                    bound.apply_defaults()
                    args = bound.args[1:]
            return self.apply(op, args[0] if op.arity is None else args[:count], args[1:] if op.arity is None else args[count:])

        return call

    def apply(self, op: Op, tensors: Sequence[Any], parameters: Sequence[Any]) -> Box:
        """The value of an op of boxes and numbers, recorded if one of the boxes has a node."""
        kinds = [False if self.complex else _is_complex(t) for t in tensors]
        if any(kinds) and op.kind in ("elementwise", "multilinear"):  # cotangents of real operands are real
            tensors = [self.astype(t, COMPLEX) if isinstance(t, Box) and t.node is not None else t for t in tensors]
        values = [self.cells(t) for t in tensors]
        plain = [self.cells(p).item() if isinstance(p, (Box, Number)) else p for p in parameters]
        y = self.computed(op, (values,) if op.arity is None else values, plain)
        complex = (any(kinds) or COMPLEX_PARTS in op.domain or op.name == "to_copy") and self._gives_complex(op, tensors, parameters)
        parents = tuple(t.node if isinstance(t, Box) else None for t in tensors)
        if not op.differentiable or all(p is None for p in parents):
            return Box(self, y, complex=complex)
        args = (*(t if isinstance(t, Number) else Box(self, v, complex=_is_complex(t)) for t, v in zip(tensors, values)), *parameters)
        return Box(self, y, make_node(op, args, parents, Box(self, y, complex=complex), GRADIENT), complex)

    def computed(self, op: Op, operands: Sequence[Any], parameters: Sequence[Any]) -> Any:
        return self.lift(op.forward(self.base, *operands, *parameters))

    def _gives_complex(self, op: Op, tensors: Sequence[Any], parameters: Sequence[Any]) -> bool:
        """Whether the result of an op is complex, by a call in the numeric carrier."""
        if self.complex:
            return False
        given = [np.full(np.shape(self.cells(t)), 0.5 + 0.5j if _is_complex(t) else 0.5) for t in tensors]
        try:
            with np.errstate(all="ignore"):
                return np.iscomplexobj(op.forward(numeric, *((given,) if op.arity is None else given), *parameters))
        except (TypeError, ValueError, IndexError, RuntimeError):  # an argument consists of indices, or the matrix of equal numbers is singular
            return any(map(_is_complex, tensors))

    def cells(self, x: Any) -> Any:
        """The value of a box, or a number or array as a value of the base carrier."""
        return x.value if isinstance(x, Box) else self.lift(float(x) if isinstance(x, Number) else x)

    def box(self, x: Any) -> Any:
        """An argument of a recorded op as a Box or Number."""
        if isinstance(x, (Box, Number)):
            return x
        if type(x) in (int, float):  # a NumPy scalar is the value of a tensor
            out = Number(x)
            out.recorder = self
            return out
        return Box(self, self.lift(x), complex=_is_complex(x) and not self.complex)

    # Functions without a derivative

    def zeros_like(self, x: Any, shape: Any = None) -> Box:
        return Box(self, self.base.zeros_like(self.cells(x), shape))

    def ones_like(self, x: Any, shape: Any = None) -> Box:
        return Box(self, self.base.ones_like(self.cells(x), shape))

    def eye_like(self, x: Any, n: int) -> Box:
        return Box(self, self.base.eye_like(self.cells(x), n))

    def indicator(self, condition: Any, like: Any) -> Box:
        return Box(self, self.lift(self.base.indicator(self.cells(condition), self.cells(like))))

    def astype(self, x: Any, dtype: Any, source: Any = None) -> Any:
        """The unchanged value, except for conversions between real and complex numbers: elements have no machine dtype."""
        if not isinstance(x, Box) or dtype is None or self.complex or dtype_of(dtype).is_complex == x.complex:
            return x
        return self.to_copy(x, dtype_of(dtype).numpy, x.dtype.numpy)  # type: ignore[union-attr]

    def copy(self, x: Any, order: Any = "K") -> Box:
        return self.clone(x)

    # Recording and differentiation of a computation

    def replayed(self, root: Node, leaves: Sequence[Leaf], values: Sequence[Any], known: dict[Node, Box] | None = None) -> tuple[Box, list[Box]]:
        """A recorded computation evaluated in this carrier at other values of its leaves: the result and the leaves. `known` caches boxes by node."""
        boxes = {} if known is None else known
        for leaf, value in zip(leaves, values):
            box = boxes[leaf] = Box(self, self.lift(value))
            box.node = Leaf(box, box.value, True)
        for node in upstream([root]):
            if node in boxes:
                continue
            if isinstance(node, Leaf) or type(node) is DerivativeNode and node.parents[0] is None:
                boxes[node] = self.box(node.value)
            elif type(node) is DerivativeNode:
                boxes[node] = boxes[node.parents[0]]  # type: ignore[index]
            else:
                args, count = node.args or (), len(node.parents)
                tensors = [self.box(a) if p is None else boxes[p] for a, p in zip(args, node.parents)]
                boxes[node] = self.apply(node.op, tensors, [self._parameter(a) for a in args[count:]])
        return boxes[root], [boxes[leaf] for leaf in leaves]

    def _parameter(self, x: Any) -> Any:
        return self.box(x) if type(x) is float else x

    def gradients(self, seeds: Seeds, leaves: Sequence[Box]) -> list[Box]:
        """The recorded pullback of the seeds (boxes with their cotangents) to the leaves; zeros for leaves that the boxes do not depend on."""
        rooted = [(y.node, Box(self, self.lift(g))) for y, g in seeds if y.node is not None]
        found = pullback(self, rooted, self._read, passed=_InFloats()) if rooted else {}
        out = []
        for leaf in leaves:
            g = found.get(leaf.node)  # type: ignore[arg-type]
            out.append(self.zeros_like(leaf) if g is None else g)
        return out

    def partials(self, y: Box, leaves: Sequence[Box], order: int, pointwise: bool = False) -> Iterator[Part]:
        """A value and all its derivatives up to an order, in order: the indices of the inputs, a box, and the place of the number in the box.

        The inputs are the elements of the leaves. With `pointwise`, the inputs are the leaves, and their elements are points at which the function is
        evaluated together; derivatives that differ only in the order of their indices are given once.
        """
        level: dict[tuple[int, ...], tuple[Box, int]] = {(): (y, 0)}
        for k in range(order + 1):
            yield from ((index, box, place) for index, (box, place) in level.items())
            above: dict[tuple[int, ...], tuple[Box, int]] = {}
            for index, (box, place) in level.items() if k < order else ():
                seed = np.ones(box.shape) if pointwise else (np.arange(box.value.size) == place).astype(float).reshape(box.shape)
                found = self.gradients([(box, seed)], leaves)
                parts = [(g, i) for g in found for i in range(1 if pointwise else g.value.size)]
                first = index[-1] if index and pointwise else 0
                above |= {(*index, i): part for i, part in enumerate(parts) if i >= first}
            level = above

    def _read(self, node: Node) -> tuple[Any, tuple]:
        args, count = node.args or (), len(node.parents)
        y, *tensors = (t if isinstance(t, Number) else Box(self, t.value, p, t.complex)
                       for t, p in zip((node.value, *args), (node, *node.parents)))
        if _is_complex(y):  # the pullback takes the conjugates, as in the engine
            y, *tensors = (self.conj(t) if isinstance(t, Box) else t for t in (y, *tensors))
        return y, (*tensors, *args[count:])


RECORDERS[RecordingCarrier] = lambda recorder, op, i, y, args: recorder.apply(slope_op(op, i), args[:op.arity], args[op.arity:])


class _InFloats(Passed):
    """What a pullback has passed; the nodes have the nearest floats in place of boxes while it is asked which elements do not reach the outputs."""

    values: dict[Node, tuple[Any, Any]] | None = None

    def unreached(self, node: Node, i: int | None = None) -> Any:
        """The mask of such elements; None if there are none, or if the values are no numbers."""
        if self.values is None:
            self.values = self._read()
        if not self.values:
            return None
        boxes = {n: (n.value, n.args) for n in self.values}
        with restored(functools.partial(_set, boxes), functools.partial(_set, self.values)):
            return super().unreached(node, i)

    def _read(self) -> dict[Node, tuple[Any, Any]]:
        """The floats of all nodes, nothing if some have none. Those of the seeds take their places."""
        try:
            self.seeds = [(node, _floats(g)) for node, g in self.seeds]
            return {n: (_floats(n.value), n.args and tuple(map(_floats, n.args))) for n in upstream([node for node, _ in self.seeds])}
        except TypeError:
            return {}


def _set(values: dict[Node, tuple[Any, Any]]) -> None:
    for node, (value, args) in values.items():
        node.value, node.args = value, args


def _floats(x: Any) -> Any:
    return x.floats() if isinstance(x, (Box, Number)) else x


def _float(x: Any) -> bool | float | complex:
    if isinstance(x, bool):
        return x
    if not is_number(x):
        raise TypeError(f"{x} is no number of many digits")
    if x.imag:
        return complex(_float(x.real), _float(x.imag))
    y = float(x.real)
    if y == 0 != x or math.isinf(y) and mpmath.isfinite(x):
        return (TINY if y == 0 else HUGE) * (1 if x.real > 0 else -1)
    return y


def _is_complex(x: Any) -> bool:
    return x.complex if isinstance(x, Box) else np.iscomplexobj(x)
