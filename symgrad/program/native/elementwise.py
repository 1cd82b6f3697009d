"""The elementwise words as primitive operations of the C back end."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.program.native.mathematics import BINARY_CALLS, CALLS
from symgrad.program.native.nodes import BOOL, FLOAT64, KernelGraph, Ref, Unsupported, broadcast, is_weak, literal_array, permuted
from symgrad.program.scalars import COMPOSITE, decay

ARITHMETIC = ("add", "sub", "mul", "div", "maximum", "minimum")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
ROUNDING = ("floor", "ceil", "trunc")
PREDICATES = ("isfinite", "isnan", "isinf")
ON_BOOLS = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and"}


class Elementwise:
    """Adds the primitive operations of elementwise words to a graph."""

    def __init__(self, graph: KernelGraph):
        self.graph = graph
        self.dtype = FLOAT64  # of the word that is written

    def value(self, x: Any) -> Ref:
        """A value, or the literal of a Python number."""
        if type(x) is Ref:
            return x
        if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
            return self.graph.literal(x)
        if isinstance(x, (np.ndarray, np.generic)):
            return self.graph.constant(np.asarray(x))
        raise Unsupported(f"a value of the type {type(x).__name__}")

    def astype(self, x: Any, dtype: Any, source: Any = None) -> Ref:
        if type(x) is Ref and x.node.dtype is dtype and x.node.op != "literal":  # as most are; the comparison of dtypes takes its time
            return x
        x, dtype = self.value(x), np.dtype(dtype)
        if x.node.op == "literal":
            number = self.number(x)
            if dtype.kind == "i" and (number != number or abs(number) >= 2.0**31):
                raise Unsupported("an integer from a number out of range")
            return broadcast(self.graph.literal(number, dtype), x.shape)
        if x.dtype == dtype:
            return x
        return self.truth(x) if dtype == BOOL else self.primitive("cast", (x,), dtype)

    def number(self, x: Ref) -> Any:
        return literal_array(x.node).item()

    def primitive(self, op: str, operands: tuple[Ref, ...], dtype: np.dtype) -> Ref:
        """An elementwise operation on values that have their final dtypes."""
        shapes = {x.shape for x in operands if x.shape}
        shape = () if not shapes else shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        size = math.prod(shape)
        if size == 1:
            parts = tuple([Ref(x.node, x.offset, (), ()) for x in operands]) if shapes else operands
        else:
            parts = tuple([x if x.shape == shape and 0 not in x.strides else Ref(x.node, x.offset, (), ()) if x.is_uniform else broadcast(x, shape)
                           for x in operands])
            order = _memory_order(parts)
            if order is not None:
                out = self.primitive(op, tuple([permuted(x, order) if x.shape else x for x in parts]), dtype)
                return permuted(out, sorted(range(len(order)), key=order.__getitem__))
        lane = _lane(parts, dtype)
        if size != 1 and lane == "g":
            parts = tuple([x if not x.shape or x.is_contiguous else self.materialized(x) for x in parts])
        out = self.graph.add(op, parts, (), shape, dtype)
        out.node.lane = "s" if size == 1 else lane
        return out

    def materialized(self, x: Ref) -> Ref:
        """The elements in memory of their own."""
        return self.graph.add("copy", (x,), (), x.shape, x.dtype)

    def to(self, op: str, *operands: Any) -> Ref:
        """A primitive operation whose operands and result have the dtype of the word."""
        return self.primitive(op, tuple([self.astype(x, self.dtype) for x in operands]), self.dtype)

    def compare(self, op: str, a: Any, b: Any) -> Ref:
        a, b = self.value(a), self.value(b)
        common = np.result_type(*[self.number(x) if is_weak(x) else x.dtype for x in (a, b)])
        return self.primitive(op, (self.astype(a, common), self.astype(b, common)), BOOL)

    def truth(self, x: Any) -> Ref:
        """Whether elements differ from zero."""
        x = self.value(x)
        return x if x.node.is_bool else self.compare("ne", x, 0)

    # The words

    def arithmetic(self, op: str, a: Any, b: Any) -> Ref:
        if self.dtype.char == "?":
            if op not in ON_BOOLS:
                raise Unsupported(f"{op} of truth values")
            return self.primitive(ON_BOOLS[op], (self.truth(a), self.truth(b)), BOOL)
        return self.to(op, a, b)

    def abs(self, x: Any) -> Ref:
        if x.node.op in ("neg", "abs") and x.is_whole and x.dtype == self.dtype:
            x = x.node.operands[0] if x.node.operands[0].shape == x.shape else x
        return self.to("abs", x)

    def call(self, op: str, *operands: Any) -> Ref:
        if self.dtype.kind != "f":
            raise Unsupported(f"{op} in the dtype {self.dtype}")
        return self.to(op, *operands)

    def rounding(self, op: str, x: Any) -> Ref:
        return x if self.dtype.kind != "f" else self.to(op, x)

    def predicate(self, op: str, x: Any) -> Ref:
        x = self.value(x)
        return self.primitive(op, (x,), BOOL) if x.dtype.kind == "f" else self.graph.full(op == "isfinite", x.shape, BOOL)

    def logical(self, op: str, *operands: Any) -> Ref:
        return self.primitive(op.removeprefix("logical_"), tuple(map(self.truth, operands)), BOOL)

    def where(self, condition: Any, a: Any, b: Any) -> Ref:
        return self.primitive("where", (self.truth(condition), self.astype(a, self.dtype), self.astype(b, self.dtype)), self.dtype)

    def indicator(self, condition: Any, like: Any) -> Ref:
        return self.astype(condition, like.dtype)

    def conj(self, x: Any) -> Ref:
        return x

    def square(self, x: Any) -> Ref:
        if x.node.op == "div" and x.is_whole and self._is_literal(x.node.operands[0], 1.0):
            inner = x.node.operands[1]
            if inner.node.op == "cosh" and inner.is_whole:
                return self.call("sech_square", inner.node.operands[0])
        return self.to("mul", x, x)

    def reciprocal(self, x: Any) -> Ref:
        return self.to("div", 1, x)

    def _is_literal(self, x: Ref, value: float) -> bool:
        return x.node.op == "literal" and self.number(x) == value

    def pow(self, a: Any, b: Any) -> Ref:
        b = self.value(b)
        if self.dtype.kind != "f":
            if b.node.op == "literal" and self.number(b) == 2:
                return self.to("mul", a, a)
            raise Unsupported("an integer power")
        if b.node.op == "literal":
            n, a = self.number(b), self.astype(a, self.dtype)
            if n in (1, 2, 3, 4):
                squared = self.to("mul", a, a) if n > 1 else a
                return self.to("mul", squared, a if n == 3 else squared) if n > 2 else squared
            if n == 0:
                return self.graph.full(1, a.shape, self.dtype)
            if n == -1:
                return self.reciprocal(a)
            if n == 0.5 and a.ndim:  # as NumPy computes it for arrays
                return self.to("sqrt", a)
        return self.call("pow", a, b)

    def exp2_derivative(self, x: Any, order: int) -> Ref:
        large = self.astype(self.compare("gt", x, 2 * order), self.dtype)
        factor = self.to("mul", self.to("add", 1, self.to("mul", 2**order - 1, large)), math.log(2.0) ** order)
        return self.to("mul", self.to("exp2", self.to("sub", x, self.to("mul", order, large))), factor)

    def logaddexp(self, a: Any, b: Any) -> Ref:
        a, b = self.astype(a, self.dtype), self.astype(b, self.dtype)
        larger, gap = self.to("maximum", a, b), self.to("sub", a, b)
        apart = self.to("add", larger, self.call("log1p", decay(self, gap)))
        return self.where(self.compare("eq", a, b), self.to("add", a, math.log(2.0)), apart)

    def sinc_derivative(self, x: Any, order: int = 0) -> Ref:
        reduced = self.call("fmod", x, 2.0)
        n = self.to("rint", self.to("mul", 2, reduced))
        r = self.to("mul", math.pi, self.to("sub", reduced, self.to("div", n, 2)))
        s, c = self.call("sin", r), self.call("cos", r)
        quadrant = self.to("sub", n, self.to("mul", 4, self.to("floor", self.to("div", n, 4))))
        odd = self.compare("eq", self.to("sub", quadrant, self.to("mul", 2, self.to("floor", self.to("div", quadrant, 2)))), 1)
        upper, middle = self.compare("ge", quadrant, 2), self.logical("logical_and", self.compare("ge", quadrant, 1), self.compare("le", quadrant, 2))
        sine, cosine = self.where(odd, c, s), self.where(odd, s, c)
        sine, cosine = self.where(upper, self.to("neg", sine), sine), self.where(middle, self.to("neg", cosine), cosine)
        waves = sine, cosine, self.to("neg", sine), self.to("neg", cosine)
        u = self.to("mul", math.pi, x)
        large = self.compare("gt", self.abs(u), order + 1)
        large_u, small_u = self.where(large, u, 1.0), self.where(large, 0.0, u)
        upward, downward = self.to("div", sine, large_u), self.value(0.0)
        for k in range(1, order + 1):
            upward = self.to("div", self.to("sub", waves[k % 4], self.to("mul", k, upward)), large_u)
        for k in range(2 * order + 40, order, -1):
            downward = self.to("div", self.to("sub", waves[k % 4], self.to("mul", small_u, downward)), k)
        out = self.to("mul", self.where(large, upward, downward), math.pi**order)
        if order == 1 and self.dtype == FLOAT64:  # the carrier's sign at zeros
            return self.where(self.compare("eq", x, 0), self.to("neg", x), out)
        return out


def _memory_order(operands: tuple[Ref, ...]) -> list[int] | None:
    """The order of axes in which all operands that do not repeat are in row-major order; None if it is the present one, or there is none."""
    found = None
    for x in operands:
        if x.shape and 0 not in x.strides:
            order = sorted(range(x.ndim), key=lambda i: -x.strides[i])
            if found is not None and order != found or x.is_contiguous or min(x.strides) < 0 or not permuted(x, order).is_contiguous:
                return None
            found = order
    return found


def _lane(operands: tuple[Ref, ...], dtype: np.dtype) -> str:
    """How a loop is written: "d" or "f" for vectors of float64 or float32, "g" for one element after the other."""
    found = dtype.char
    for x in operands:
        char = x.node.dtype.char
        if char != found and char != "?":
            if found != "?":
                return "g"
            found = char
    if found == "?":  # truth values alone
        return next((x.node.lane for x in operands if x.node.lane in ("d", "f")), "d")
    return found if found in ("d", "f") else "g"


def words(elementwise: Elementwise) -> dict[str, Callable[..., Ref]]:
    """The function of each elementwise word."""
    out: dict[str, Callable[..., Ref]] = {}
    for names, function in ((ARITHMETIC, elementwise.arithmetic), (COMPARISONS, elementwise.compare), (PREDICATES, elementwise.predicate),
                            (CALLS + BINARY_CALLS, elementwise.call), (ROUNDING, elementwise.rounding), (("neg", "sign", "sqrt"), elementwise.to),
                            (("logical_and", "logical_or", "logical_not"), elementwise.logical)):
        for name in names:
            out[name] = lambda *args, function=function, name=name: function(name, *args)
    composite = {name: functools.partial(function, elementwise) for name, function in COMPOSITE.items()}
    return out | composite | {"round": lambda x: elementwise.rounding("rint", x)}
