"""Programs as graphs of primitive nodes, whose operands read the memory of other nodes by strides."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

BOOL, FLOAT64, FLOAT32, INT64 = np.dtype(bool), np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64)
C_TYPES = {BOOL: "unsigned char", FLOAT64: "double", FLOAT32: "float", INT64: "int64_t", np.dtype(np.int32): "int32_t"}


class Unsupported(RuntimeError):
    """The reason why a program cannot be written in C."""


class KernelNode:
    """A value that is computed, in row-major memory of its own if it has memory.

    `op` is "input" or "constant" with its number in `params`, "literal" with a Python number, or a primitive operation. Nodes are in the order
    of their numbers.
    """

    __slots__ = ("dtype", "is_bool", "item", "lane", "level", "number", "op", "operands", "params", "place", "shape", "size")

    def __init__(self, number: int, op: str, operands: tuple[Ref, ...], params: tuple, shape: tuple[int, ...], dtype: np.dtype):
        self.number, self.op, self.operands, self.params, self.shape, self.dtype = number, op, operands, params, shape, dtype
        self.size, self.is_bool = math.prod(shape), dtype.char == "?"
        self.lane = ""  # of elementwise operations: how their loops are written
        self.level = 0
        self.item: Any = None  # the part of the text that computes the node
        self.place: Any = None  # its memory


class Ref(NamedTuple):
    """The elements of a node's memory at an offset and strides, both counted in elements."""

    node: KernelNode
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        return self.node.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are adjacent in memory, in row-major order."""
        return self.strides == row_major(self.shape) or dimensions(self.shape, self.strides) in ((), ((self.size, 1),))

    @property
    def is_whole(self) -> bool:
        """Whether these are all elements of the node in their order."""
        node = self.node
        return self.offset == 0 and (self.shape is node.shape or self.size == node.size) and self.is_contiguous

    @property
    def is_uniform(self) -> bool:
        """Whether all elements are one."""
        return not self.shape or (0 in self.strides or 1 in self.shape) and all(s == 0 or n == 1 for n, s in zip(self.shape, self.strides))

    @property
    def merged(self) -> tuple[tuple[int, ...], ...]:
        """The sizes and strides of the dimensions, those merged that one loop can visit."""
        return dimensions(self.shape, self.strides)

    def positions(self) -> np.ndarray:
        """The places of the elements in the memory of the node."""
        out = np.full(self.shape, self.offset, np.int64)
        for axis, (n, s) in enumerate(zip(self.shape, self.strides)):
            out += np.arange(n).reshape((n, *(1,) * (len(self.shape) - axis - 1))) * s
        return out


@functools.lru_cache(1024)
def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array in row-major order, in elements."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= n
    return tuple(reversed(out))


def dimensions(shape: Sequence[int], *strides: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The sizes of dimensions, each with its strides in several arrays; those are merged that one loop can visit."""
    out: list[tuple[int, ...]] = []
    for n, *steps in zip(shape, *strides):
        if n == 1:
            continue
        if out and all(last == n * step for last, step in zip(out[-1][1:], steps)):
            out[-1] = (out[-1][0] * n, *steps)
        else:
            out.append((n, *steps))
    return tuple(out)


def filling(x: Any) -> float | None:
    """The number that all elements of a constant array of floats are; None for others."""
    if not isinstance(x, np.ndarray) or x.dtype not in (FLOAT64, FLOAT32) or x.size < 2:
        return None
    bits = x.view(np.int64 if x.dtype == FLOAT64 else np.int32)
    first = bits[(0,) * x.ndim]
    return float(x[(0,) * x.ndim]) if bits[(-1,) * x.ndim] == first and (bits == first).all() else None


def is_zeros(x: Ref) -> bool:
    """Whether all elements are the literal zero."""
    return x.node.op == "literal" and x.node.params[0] in ("0", "0.0", "False")


def selections(x: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Where the rows, and the columns, of a matrix of zeros have their only one; None if not all of them have one."""
    if not isinstance(x, np.ndarray) or x.ndim != 2 or x.dtype.kind != "f" or not x.size:
        return None, None
    return _ones(x), _ones(x.T)


def _ones(x: np.ndarray) -> np.ndarray | None:
    if any(np.count_nonzero(row) != 1 or 1 not in row for row in (x[0], x[-1])) or np.count_nonzero(x) != len(x):
        return None
    at = x.argmax(1)
    return at if (x[np.arange(len(x)), at] == 1).all() else None


class KernelGraph:
    """The nodes of a program; an equal node is created once."""

    def __init__(self) -> None:
        self.nodes: list[KernelNode] = []
        self.constants: list[np.ndarray] = []
        self.selections: dict[KernelNode, Any] = {}  # of constant matrices
        self.numbers: dict[int, int] = {}  # of those that are constants of the program: their numbers there
        self._found: dict[Hashable, Ref] = {}

    def add(self, op: str, operands: tuple[Ref, ...], params: tuple, shape: tuple[int, ...], dtype: np.dtype) -> Ref:
        key = op, operands, params, shape, dtype.char  # a dtype is slow to hash
        found = self._found.get(key)
        if found is None:
            if dtype not in C_TYPES:
                raise Unsupported(f"the dtype {dtype}")
            node = KernelNode(len(self.nodes), op, operands, params, shape, dtype)
            self.nodes.append(node)
            found = self._found[key] = Ref(node, 0, shape, row_major(shape))
        return found

    def literal(self, value: Any, dtype: np.dtype | None = None) -> Ref:
        """A Python number. Without a dtype, the values that it meets determine the dtype."""
        weak = dtype is None
        dtype = np.asarray(value).dtype if dtype is None else dtype
        value = np.asarray(value).astype(dtype).item()
        return self.add("literal", (), (repr(value), weak), (), dtype)

    def constant(self, value: np.ndarray) -> Ref:
        """An array that is known when the text is written."""
        value = np.asarray(value, order="C")
        self.constants.append(value)
        return self.add("constant", (), (len(self.constants) - 1,), value.shape, value.dtype)

    def full(self, value: Any, shape: tuple[int, ...], dtype: np.dtype) -> Ref:
        """An array of equal elements."""
        return broadcast(self.literal(value, dtype), shape)


def is_weak(x: Ref) -> bool:
    """Whether a value is a Python number, which takes the dtype of the other operand."""
    return x.node.op == "literal" and x.node.params[1]


def broadcast(x: Ref, shape: tuple[int, ...]) -> Ref:
    """The elements of a value, repeated along axes of size 1 and new leading axes."""
    if x.shape == shape:
        return x
    lead = len(shape) - len(x.shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(x.shape, shape[lead:])):
        raise Unsupported(f"a broadcast from {x.shape} to {shape}")
    return Ref(x.node, x.offset, shape, (0,) * lead + tuple(s if n == m else 0 for n, m, s in zip(x.shape, shape[lead:], x.strides)))


def permuted(x: Ref, axes: Sequence[int]) -> Ref:
    """The elements of a value with its axes in another order."""
    return Ref(x.node, x.offset, tuple([x.shape[d] for d in axes]), tuple([x.strides[d] for d in axes]))


def view(x: Ref, change: Any) -> Ref | None:
    """The view that a function of arrays gives, in the strides of `x`; None if it copies."""
    base = np.empty(max(1, x.node.size), np.int8)
    strided = np.lib.stride_tricks.as_strided(base[x.offset:], x.shape, x.strides)
    out = change(strided)
    if not out.size:
        return Ref(x.node, 0, out.shape, row_major(out.shape))
    if not np.may_share_memory(out, base):
        return None
    return Ref(x.node, out.__array_interface__["data"][0] - base.__array_interface__["data"][0], out.shape, out.strides)

def literal_array(node: KernelNode) -> np.ndarray:
    """The value of a literal as an array of one element."""
    text = node.params[0]
    return np.array([{"True": True, "False": False}.get(text, text) if node.dtype == bool else float(text) if node.dtype.kind == "f" else int(text)],
                    node.dtype)
