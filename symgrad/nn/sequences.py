"""Sequences of different lengths in one tensor: padded, or packed step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from symgrad.arguments import check_option
from symgrad.dtypes.dtype import DTYPES
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.creation import as_tensor, full
from symgrad.nn.padding import constant_pad_nd

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence",
           "unpad_sequence"]


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation of the indices, and None for None.

    >>> import symgrad
    >>> invert_permutation(symgrad.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else traced.argsort(permutation).to(permutation.dtype)


class _Parts(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


def _conversion(name: str, dtype: str) -> Any:
    def convert(self: PackedSequence) -> PackedSequence:
        return self.to(DTYPES[dtype])

    convert.__name__, convert.__qualname__, convert.__doc__ = name, f"PackedSequence.{name}", f"The data as {dtype}."
    return convert


class PackedSequence(_Parts):
    """Sequences of different lengths, longest first: the data has the first elements of all, then the second elements of those that have one, etc.

    `batch_sizes` counts the sequences at each step. `sorted_indices` are the places of the sequences before they were sorted by length.
    Made by `pack_sequence` and `pack_padded_sequence`.
    """

    def __new__(cls, data: Any, batch_sizes: Any = None, sorted_indices: Tensor | None = None, unsorted_indices: Tensor | None = None) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError(f"PackedSequence: give the data and batch_sizes, or a pair of both, not {type(data).__name__}")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The sequences with the data in another dtype, as `Tensor.to`; the indices stay as they are."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """As `to`: the sequences are on the CPU already."""
        return self.to(*args, **kwargs) if args or kwargs else self

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Raises what `Tensor.cuda` raises: the only device is the CPU."""
        return type(self)(self.data.cuda(*args, **kwargs), *self[1:])

    def pin_memory(self) -> Self:
        """As `Tensor.pin_memory`."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def is_pinned(self) -> bool:
        """As `Tensor.is_pinned`."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """False: the only device is the CPU."""
        return self.data.is_cuda

    double, half, long = _conversion("double", "float64"), _conversion("half", "float16"), _conversion("long", "int64")
    short, char, byte = _conversion("short", "int16"), _conversion("char", "int8"), _conversion("byte", "uint8")
    float, int = _conversion("float", "float32"), _conversion("int", "int32")

def _steps(sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The step and the sequence of each row of packed data."""
    return np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(n) for n in sizes])


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """The `PackedSequence` of padded sequences (L, N, ...), or (N, L, ...) if batch_first, with their lengths; differentiable.

    Unless `enforce_sorted` they may have any order. Raises RuntimeError for lengths that do not fit.

    >>> import symgrad
    >>> pack_padded_sequence(symgrad.tensor([[1, 3], [2, 0]]), [2, 1])
    PackedSequence(data=tensor([1, 3, 2]), batch_sizes=tensor([2, 1]), sorted_indices=None, unsorted_indices=None)
    """
    lengths = as_tensor(lengths, dtype=DTYPES["int64"])
    order, dim = None, 0 if batch_first else 1
    if not input.numel() or tuple(lengths.shape) != (input.shape[dim],):
        raise RuntimeError(f"pack_padded_sequence: lengths must be a vector with one number for each sequence, but they are {lengths.tolist()} for "
                           f"an input of shape {list(input.shape)}")
    if not enforce_sorted:
        lengths, order = traced.sort(lengths, descending=True)
        input = traced.index_select(input, dim, order)
    given = lengths.tolist()
    if given[-1] <= 0 or given[0] > input.shape[1 - dim] or any(a < b for a, b in zip(given, given[1:])):
        raise RuntimeError(f"pack_padded_sequence: lengths must lie between 1 and {input.shape[1 - dim]} and not increase, but they are {given}. "
                           f"Pass enforce_sorted=False for another order")
    sizes = [sum(n > step for n in given) for step in range(given[0])]
    step, at = _steps(sizes)
    where = at * input.shape[1] + step if batch_first else step * input.shape[1] + at
    rows = traced.reshape(input, (input.shape[0] * input.shape[1], *input.shape[2:]))
    return PackedSequence(traced.index_select(rows, 0, wrap(where)), as_tensor(sizes), order)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The padded sequences (L, N, ...), or (N, L, ...) if batch_first, of a `PackedSequence`, and their lengths; the inverse of packing them.

    L is the `total_length` or the longest. Raises ValueError for a total length that is less.

    >>> import symgrad
    >>> pad_packed_sequence(pack_sequence([symgrad.tensor([1, 2]), symgrad.tensor([3])]))
    (tensor([[1, 3],
            [2, 0]]), tensor([2, 1]))
    """
    sizes = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(f"pad_packed_sequence: total_length={total_length} is less than the longest sequence, {len(sizes)}")
    steps, data = len(sizes) if total_length is None else total_length, sequence.data
    step, at = _steps(sizes)
    where = at * steps + step if batch_first else step * sizes[0] + at
    shape = (sizes[0], steps) if batch_first else (steps, sizes[0])
    rows = full((sizes[0] * steps, *data.shape[1:]), padding_value, dtype=data.dtype)
    padded = traced.reshape(traced.index_copy(rows, 0, wrap(where), data), (*shape, *data.shape[1:]))
    lengths = as_tensor([sum(i < n for n in sizes) for i in range(sizes[0])])
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return traced.index_select(padded, 0 if batch_first else 1, order), traced.index_select(lengths, 0, order)


def pad_sequence(sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    """Tensors (Lᵢ, ...) side by side: (L, N, ...), or (N, L, ...) if batch_first, L the longest, with padding after them, or before ("left").

    Raises RuntimeError for no sequence, for trailing sizes that differ and for another side.

    >>> import symgrad
    >>> pad_sequence([symgrad.tensor([1, 2]), symgrad.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    given: tuple[Any, ...] = tuple(sequences) if isinstance(sequences, Iterable) else ()
    if not given:
        raise RuntimeError(f"pad_sequence: there must be at least one sequence, in an iterable, not {type(sequences).__name__} {sequences!r}")
    check_option("pad_sequence", "padding_side", padding_side, ("left", "right"), RuntimeError)
    for i, each in enumerate(given):
        if not each.ndim or each.shape[1:] != given[0].shape[1:]:
            raise RuntimeError(f"pad_sequence: all dimensions after the first must be equal, but sequence {i} has shape {list(each.shape)} and the "
                               f"first {list(given[0].shape)}")
    longest = max(len(each) for each in given)
    padded = []
    for each in given:
        missing = longest - len(each)
        ends = (missing, 0) if padding_side == "left" else (0, missing)
        padded.append(constant_pad_nd(each, (*(0,) * (2 * each.ndim - 2), *ends), padding_value) if missing else each)
    return traced.stack(padded, 0 if batch_first else 1)


@taking_tensors
def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The list of the sequences of given lengths in a padded tensor, the inverse of `pad_sequence`."""
    rows = padded_sequences if batch_first else traced.transpose(padded_sequences, 0, 1)
    return [traced.narrow(row, 0, 0, min(n, row.shape[0])) for row, n in zip(traced.unbind(rows), lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """The `PackedSequence` of tensors (Lᵢ, ...), which have decreasing lengths, or any lengths unless `enforce_sorted`."""
    return pack_padded_sequence(pad_sequence(sequences), [len(each) for each in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list of the sequences of a `PackedSequence`, the inverse of `pack_sequence`."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)
