"""Python's operators, indexing and conversions on Tensors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.carriers.structure import is_basic
from symgrad.dtypes.dtype import NUMBERS, converted
from symgrad.engine.data import as_value
from symgrad.engine.method_table import MethodTable
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.graph.op import REGISTRY
from symgrad.layouts.indices import selecting

METHODS = MethodTable()

UNSUPPORTED = (str, bytes, dict, set, type(None))


def _comparison(name: str) -> Any:
    function = getattr(traced, name)

    def compare(self: Tensor, other: Any) -> Any:
        return NotImplemented if isinstance(other, UNSUPPORTED) else function(self, other)

    return compare


def _reflected(name: str) -> Any:
    function, commutative = getattr(traced, name), name in ("add", "mul")

    def operate(self: Tensor, other: Any) -> Any:
        return NotImplemented if isinstance(other, UNSUPPORTED) else function(self, other) if commutative else function(other, self)

    return operate


for _dunder, _name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
                       "pow": "pow"}.items():
    METHODS[f"__{_dunder}__"] = core(REGISTRY[_name])
    METHODS[f"__r{_dunder}__"] = _reflected(_name)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    METHODS[f"__{_name}__"] = _comparison(_name)


def _all_integers(*xs: Any) -> bool:
    return all(isinstance(x, int) or isinstance(x, Tensor) and x._value.dtype.kind in "biu" for x in xs)


@METHODS.define
def __divmod__(self: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    """The quotient rounded down, and the remainder."""
    return self // other, self % other


METHODS["__neg__"] = core(REGISTRY["neg"])
METHODS["__abs__"] = core(REGISTRY["abs"])


@METHODS.define
def __pos__(self: Tensor) -> Tensor:
    """The tensor itself. Raises RuntimeError for booleans."""
    return FUNCTIONS["positive"](self)


def _bitwise(name: str, ufunc: Any, logical: Any) -> None:
    def operate(self: Tensor, other: Any) -> Any:
        if isinstance(other, UNSUPPORTED):
            return NotImplemented
        if not _all_integers(self, other) and not isinstance(other, (bool, np.ndarray, np.generic)):
            raise TypeError(f"{name}: bitwise operators take integers and booleans, not {self.dtype} and {other!r}")
        if self._value.dtype == bool and (isinstance(other, bool) or as_value(other).dtype == bool):
            return logical(self, other)
        return wrap(ufunc(*converted((self._value, other if type(other) in NUMBERS else as_value(other)))))

    METHODS[f"__{name}__"] = operate
    METHODS[f"__r{name}__"] = operate


_bitwise("and", np.bitwise_and, traced.logical_and)
_bitwise("or", np.bitwise_or, traced.logical_or)
_bitwise("xor", np.bitwise_xor, traced.ne)


@METHODS.define
def __invert__(self: Tensor) -> Tensor:
    """The logical not of booleans, the bits of integers flipped."""
    if not _all_integers(self):
        raise TypeError(f"~ takes integers and booleans, not {self.dtype}; use logical_not")
    return traced.logical_not(self) if self._value.dtype == bool else wrap(np.invert(self._value))


_select, _slice, _unsqueeze, _alias = (core(REGISTRY[f"{name}_item"]) for name in ("select", "slice", "unsqueeze", "alias"))
ALL = slice(None)
BASIC = frozenset(map(type, (0, ALL, None, ...)))


@METHODS.define
def __getitem__(self: Tensor, index: Any) -> Tensor:
    """The elements at an index, as in NumPy and torch: a view, unless the index has arrays or booleans."""
    kind = type(index)
    if kind is int:
        return _select(self, index)
    if kind is slice:
        return _slice(self, index)
    if kind is not tuple or not BASIC.issuperset(map(type, index)):
        index = index_without_tensors(index)
        if not is_basic(index):
            basic, rest = split_index(index, self._value.shape)
            return traced.getitem(self[basic] if basic else self, rest)
    last = _last_part(index if isinstance(index, tuple) else (index,), self._value.shape)
    return (_alias if last is Ellipsis else _unsqueeze if last is None else _slice if isinstance(last, slice) else _select)(self, index)


def _last_part(parts: tuple, shape: tuple[int, ...]) -> Any:
    """The last part of a basic index that is not a slice of everything, after which torch names the node; Ellipsis if there is none."""
    for k in range(len(parts) - 1, -1, -1):
        part = parts[k]
        if part is Ellipsis or isinstance(part, slice) and (part == ALL or _is_full_slice(part, parts, k, shape)):
            continue
        return part
    return Ellipsis


def _is_full_slice(part: slice, parts: tuple, k: int, shape: tuple[int, ...]) -> bool:
    """Whether a slice, part `k` of an index, ends at or after the end of its axis and begins at 0; -n for the beginning is no such slice in torch."""
    if part.start or part.step not in (None, 1):
        return False
    before = parts[:k]
    dim = parts[k:].count(None) - (len(parts) - k) if Ellipsis in before else k - before.count(None)
    return -len(shape) <= dim < len(shape) and part.indices(shape[dim])[1] >= shape[dim]


def split_index(index: Any, shape: tuple[int, ...]) -> tuple[tuple, Any]:
    """The view of a tensor of this shape that an index with arrays selects from, as a basic index, and the remaining index.

    As in torch, integers, slices, None and single booleans (a new axis of length 0 or 1) are applied first. The basic index is empty if it selects
    everything.
    """
    if getattr(index, "ndim", 0):
        return (), index
    basic: list[Any] = []
    rest: list[Any] = []
    for part in index if isinstance(index, tuple) else (index,):
        kind = getattr(getattr(part, "dtype", None), "kind", None)
        if isinstance(part, bool) or kind == "b" and not part.ndim and not isinstance(part, DuckArray):
            basic.append(None)
            rest.append(np.array([part], bool))
        elif kind is None or not part.ndim and kind in "iu":
            basic.append(part)
            rest += [part] if part is Ellipsis else [ALL] if part is None or isinstance(part, slice) else []
        else:
            basic += [ALL] * (part.ndim if kind == "b" else 1)
            rest.append(part)
    if not any(hasattr(part, "dtype") for part in rest):  # the only arrays are integers that differ between the members of a batch
        return (), index
    return () if _last_part(tuple(basic), shape) is Ellipsis else tuple(basic), tuple(rest)


def _is_tuple_in_a_list(index: Any) -> bool:
    """Whether torch reads a list as the tuple of its items, by the old rule of NumPy: it is short, and an item is more than a number."""
    return (isinstance(index, list) and len(index) < 32
            and any(item is None or item is Ellipsis or isinstance(item, (slice, Tensor, np.ndarray, Sequence)) for item in index))


def index_without_tensors(index: Any) -> Any:
    """An index with its Tensors replaced by arrays and its lists by integer or boolean arrays."""
    if _is_tuple_in_a_list(index):
        warnings.warn("a list of indices is read as the tuple of its items, as in PyTorch, where that is deprecated; write x[tuple(index)]",
                      UserWarning, stacklevel=3)
        index = tuple(index)
    if isinstance(index, tuple):
        return tuple([_part_without_tensors(list(part) if isinstance(part, tuple) else part) for part in index])
    return _part_without_tensors(index)


def _part_without_tensors(index: Any) -> Any:
    """One part of an index, without Tensors and lists."""
    if isinstance(index, Tensor):
        value = index._value
        if not value.ndim and value.dtype.kind in "iu" and value.dtype != np.uint8 and not isinstance(value, DuckArray):
            return int(value)
        value = selecting(value)
        return value if value.ndim or value.dtype.kind == "b" or isinstance(value, DuckArray) else int(value)
    if isinstance(index, (list, np.ndarray, range)):
        value = np.asarray(as_value(index))
        return value.astype(int) if not value.size and value.dtype.kind == "f" else value
    if isinstance(index, float):
        raise IndexError(f"an index must be of integers, slices, ..., None, tensors or arrays, not {index!r}")
    return index
