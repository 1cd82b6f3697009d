"""Index arrays: index tensors converted to NumPy indices, and sorting orders."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from symgrad.arguments import check_kind
from symgrad.dtypes.dtype import finfo
from symgrad.errors import BROADCAST

Places = tuple[Any, ...]
FEW = 64


def _is_batched(x: Any) -> bool:
    """Whether an array is batched by vmap."""
    return hasattr(x, "level")


def index_array(x: Any) -> Any:
    """An index as an array; a batched or recorded index is returned unchanged."""
    if type(value := getattr(x, "value", x)) is np.ndarray or _is_batched(value) or hasattr(value, "recorder"):
        return value
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x)


def integer_index(index: Any, name: str, dtypes: tuple[str, ...] = ("int64", "int32"), kind: type[Exception] = RuntimeError) -> Any:
    """An integer index as an array of int64. Raises an error for other dtypes."""
    array = index_array(index)
    if array.dtype.name not in dtypes and (array.size or hasattr(index, "requires_grad")):
        raise kind(f"{name}: the index must have the dtype {' or '.join(dtypes)}, not {array.dtype.name}. Convert it with .long()")
    return array.astype(np.int64, copy=False)


def selecting(array: Any) -> Any:
    """The array of an index tensor; bytes are a mask, of the elements that are not 0.

    Warns of bytes. Raises IndexError for other dtypes than bool, uint8, int32 and int64.
    """
    name = array.dtype.name
    if name == "uint8":
        warnings.warn("an index of uint8 is a mask, as in PyTorch, where that is deprecated. Convert it with .bool()", UserWarning, stacklevel=4)
        return array != 0
    if name not in ("bool", "int32", "int64"):
        raise IndexError(f"tensors that are indices must have the dtype int64, int32 or bool, not {name}. Convert it with .long()")
    return array


def is_full_index(array: np.ndarray, index: Any) -> bool:
    """Whether a basic index selects the whole array; torch then writes the tensor itself and not a view."""
    parts = index if isinstance(index, tuple) else (index,)
    if not all(p is Ellipsis or isinstance(p, slice) and p.step in (None, 1) for p in parts):
        return False
    dots = parts.count(Ellipsis)
    return dots <= 1 and len(parts) - dots <= array.ndim and array[index].shape == array.shape


def is_mask(index: Any) -> bool:
    """Whether the only array of an index is a boolean one."""
    arrays = [part for part in (index if isinstance(index, tuple) else (index,)) if hasattr(part, "dtype")]
    return len(arrays) == 1 and arrays[0].dtype.kind == "b"


def mask_indices(mask: Any, shape: tuple[int, ...], name: str) -> tuple[tuple[int, ...], Places]:
    """The shape to which a mask and `shape` broadcast, and the indices at which the mask is true.

    Raises RuntimeError for a mask that is not boolean, and for shapes that do not broadcast.
    """
    array = index_array(mask)
    check_kind(name, array, "b", "mask")
    out = broadcast(tuple(array.shape), shape)
    if _is_batched(array):
        raise RuntimeError("vmap: a mask that differs between the members of the batch depends on the data of each and selects different numbers of "
                           "elements; use symgrad.where")
    return out, np.broadcast_to(array, out).nonzero() if out else (np.broadcast_to(array, ()).copy(),)


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which two shapes broadcast. Raises RuntimeError if they do not."""
    for i in range(1, min(len(a), len(b)) + 1):
        if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
            raise RuntimeError(BROADCAST.format(a[-i], b[-i], max(len(a), len(b)) - i))
    return np.broadcast_shapes(a, b)


def is_broadcastable(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a value of a shape can be written to a target, which does not grow."""
    extra = len(shape) - len(target)
    return all(n == 1 for n in shape[:max(extra, 0)]) and all(n in (1, m) for n, m in zip(shape[::-1], target[::-1]))


def first_outside(index: Any, low: int, high: int) -> Any:
    """The first element of an index outside of [low, high); None if there is none."""
    array = index
    if type(array) is np.ndarray:
        if 0 < array.size <= FEW:  # Python compares a few numbers in less time
            numbers = array.ravel().tolist()
            if min(numbers) >= low and max(numbers) < high:
                return None
    else:
        while _is_batched(array):
            array = array.data
    outside = (array < low) | (array >= high)
    return array[outside].flat[0] if outside.any() else None


def check_bounds(index: Any, size: int, dim: int, kind: type[Exception] = RuntimeError, low: int = 0) -> Any:
    """The index itself. Raises an error unless all elements are in [low, size)."""
    wrong = first_outside(index, low, size)
    if wrong is not None:
        raise kind(f"index {wrong} is out of bounds for dimension {dim} with size {size}")
    return index


def check_index_shape(name: str, index: Any, x: Any, dim: int | None, word: str = "input") -> None:
    """Check that an index has the dimensions of a tensor, and is no larger along all but `dim`."""
    if max(index.ndim, 1) != max(x.ndim, 1) or any([n > m for i, (n, m) in enumerate(zip(index.shape, x.shape or (1,))) if i != dim]):
        raise RuntimeError(f"{name}: the index of shape {list(index.shape)} must have the dimensions of {word}, whose shape is {list(x.shape)}, and "
                           f"be no larger" + f" along all but dimension {dim}" * (dim is not None))


def gather_index(index: Any, dim: int, keepdim: bool = True) -> Places:
    """The index arrays of `gather`: the index along `dim`, and the element's own position along all other dimensions.

    Without `keepdim` that dimension, which must be of size 1, is removed.
    """
    ndim = index.ndim
    if not ndim:
        return (index,)
    dim %= ndim
    if ndim == 1:
        return (index if keepdim else index.squeeze(0),)
    shape = index.shape
    if not keepdim:
        index = index.squeeze(dim)
    before, after = _own_positions(tuple(shape), dim, keepdim)
    return (*before, index, *after)


@functools.lru_cache(256)
def _own_positions(shape: tuple[int, ...], dim: int, keepdim: bool) -> tuple[Places, Places]:
    """The positions of every element along the dimensions before `dim` and after it; they are shared by calls and read-only."""
    out = []
    for i, n in enumerate(shape):
        place = np.arange(n).reshape((1,) * i + (n,) + (1,) * (len(shape) - 1 - i))
        out.append(place if keepdim else place.squeeze(dim) if i != dim else place)
        out[-1].flags.writeable = False
    return tuple(out[:dim]), tuple(out[dim + 1:])


def element_index(places: Places) -> Places:
    """The index of one element, as integers if it is equal for all members of a batch."""
    return tuple(place.reshape(()) if _is_batched(place) else place.item() for place in places)


def distinct_index(index: Any, size: int) -> Any:
    """An index without repetitions, so that the derivative by what is written there counts each position once; a batched one as it is.

    Negative numbers count from the end.
    """
    array = index_array(index)
    if _is_batched(array) or array.dtype.kind not in "iu":
        return array
    if type(array) is np.ndarray and array.ndim == 1 and 0 < array.size <= FEW and array.min() >= 0:
        return array if array.size == 1 else np.array(sorted(set(array.tolist())), array.dtype)
    array = np.where((array < 0) & (array >= -size), array + size, array).astype(array.dtype)
    return array if array.ndim != 1 else np.unique(array)


def slice_index(index: Any, dim: int) -> Places:
    """The index of slices along a dimension."""
    return (*(slice(None),) * dim, index)


def unravelled(flat: Any, shape: tuple[int, ...]) -> Places:
    """The index arrays of elements given by their positions in the flattened array."""
    return tuple(map(_as_array, np.unravel_index(flat, shape))) if shape else (np.zeros_like(flat),)


def _as_array(place: Any) -> Any:
    """A position as a 0-d array, which selects a copy of an element, while an integer selects a view."""
    return place if _is_batched(place) else np.asarray(place)


def check_ordered(value: Any) -> Any:
    """The value as an array. Raises TypeError for complex numbers, which have no order."""
    array = value if hasattr(value, "__array_function__") else np.asarray(value)  # batched values, too
    if array.dtype.kind == "c":
        raise TypeError("complex numbers are not ordered; use their real or imaginary parts")
    return array


def order(value: Any, dim: int, descending: bool = False) -> np.ndarray:
    """The indices of a stable sort along a dimension; NaN is the largest."""
    array = check_ordered(value)
    if not array.ndim:
        return np.zeros_like(array, dtype=np.int64)
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    if type(array) is not np.ndarray:  # batched values
        found = np.argsort(np.flip(array, dim) if descending else array, axis=dim, kind="stable")
        return array.shape[dim] - 1 - np.flip(found, dim) if descending else found
    if not descending:
        return array.argsort(dim, kind="stable")
    backwards = slice_index(slice(None, None, -1), dim)
    return array.shape[dim] - 1 - array[backwards].argsort(dim, kind="stable")[backwards]


def middle(array: Any) -> np.ndarray | None:
    """The position, in a stable sort, of the lower median of a vector of floats, as one index; None for NaN and for other arrays."""
    if type(array) is not np.ndarray or array.dtype.kind != "f" or array.size < 2:
        return None
    k = (array.size - 1) // 2
    value = np.partition(array, k)[k]
    same, less = array == value, np.count_nonzero(array < value)
    if less + np.count_nonzero(same) + np.count_nonzero(array > value) < array.size:
        return None
    return np.flatnonzero(same)[k - less:][:1]


def running_extremes(value: Any, dim: int, largest: bool) -> np.ndarray:
    """The index of the running extreme along a dimension: the last of equal elements; NaN is the extreme."""
    array = check_ordered(value)
    if not array.ndim:
        return np.zeros_like(array, dtype=np.int64)
    best = (np.maximum if largest else np.minimum).accumulate(array, axis=dim)
    new = (array == best) | np.isnan(array) if array.dtype.kind in "fc" else array == best
    steps = np.arange(array.shape[dim]).reshape((-1,) + (1,) * (array.ndim - dim - 1))
    return np.maximum.accumulate(np.where(new, steps, 0), axis=dim)


def flat_positions(places: Places, shape: tuple[int, ...]) -> np.ndarray:
    """The positions in the flattened array of the elements at an index, as a vector."""
    if any(map(_is_batched, places)):
        raise RuntimeError("vmap: an index that differs between the members of the batch sends different numbers of elements to one position")
    return np.arange(int(np.prod(shape))).reshape(shape or (1,))[places].reshape(-1)


def members(positions: np.ndarray, size: int, own: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct positions in a vector; for each a row of the elements that are sent to it, in an array of `size` elements and then those that are
    sent, with the first one repeated in shorter rows; and a mask without the repeated ones. `own` adds the array's element at the position itself.
    """
    distinct = np.unique(positions)
    targets, elements = positions, size + np.arange(positions.size)
    if own:
        targets, elements = np.concatenate([distinct, targets]), np.concatenate([distinct, elements])
    by, counts = np.argsort(targets, kind="stable"), np.unique(targets, return_counts=True)[1]
    steps = np.arange(counts.max(initial=0))
    filled = steps < counts[:, None]
    return distinct, elements[by][(np.cumsum(counts) - counts)[:, None] + steps * filled], filled


def most_frequent(value: Any, dim: int) -> np.ndarray:
    """The last position of the most frequent element along a dimension, or of the smallest of several most frequent ones."""
    array = check_ordered(value)
    if not array.ndim:
        return np.zeros_like(array, dtype=np.int64)
    by = np.moveaxis(order(array, dim), dim, 0)
    rows = np.take_along_axis(np.moveaxis(array, dim, 0), by, 0)
    counts = np.ones_like(rows, dtype=np.int64)
    for i in range(1, len(rows)):
        counts[i] = 1 + np.where(rows[i] == rows[i - 1], counts[i - 1], 0)
    return np.take_along_axis(by, np.argmax(counts, 0)[None], 0)[0]


def diagonal(shape: tuple[int, ...], offset: int) -> Places:
    """The index arrays of a diagonal of the last two dimensions of a shape."""
    rows, columns = shape[-2:]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    return ..., np.arange(count) + max(-offset, 0), np.arange(count) + max(offset, 0)


def window_indices(length: int, size: int, step: int) -> np.ndarray:
    """The indices of windows of `size` at distance `step`, as a matrix."""
    return np.arange(0, length - size + 1, step)[:, None] + np.arange(size)


def diagonal_positions(shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Places:
    """The index arrays of a diagonal of two dimensions of a shape, in the layout of `diagonal`."""
    return np.unravel_index(np.arange(int(np.prod(shape))).reshape(shape).diagonal(offset, dim1, dim2), shape)


def repeated_indices(counts: Any) -> np.ndarray:
    """The indices 0, 1, ..., each repeated by its count."""
    return np.repeat(np.arange(len(counts)), counts)


def largest_of_dtype(x: Any) -> float:
    """The largest number of a tensor's dtype."""
    return finfo(x.value.dtype).max
