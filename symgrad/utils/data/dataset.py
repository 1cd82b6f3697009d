"""Data sets: map-style ones, indexed by number, and iterable ones."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from symgrad.engine.tensor import Tensor
from symgrad.factories.random_tensors import randperm

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset", "random_split"]

Example = TypeVar("Example", covariant=True)


def _items(dataset: Any, indices: list[int]) -> list[Any]:
    """The examples of a data set at several indices, by its `__getitems__` if it has one."""
    get_items = getattr(dataset, "__getitems__", None)
    return list(get_items(indices)) if callable(get_items) else [dataset[i] for i in indices]


class Dataset(Generic[Example]):
    """Examples by index: a subclass has `__getitem__`, and `__len__` if their number is known."""

    def __getitem__(self, index: Any) -> Example:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Example], Iterable[Example]):
    """Examples in sequence: a subclass has `__iter__`."""

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The slices of tensors along their first axis: example i is (t[i] for each tensor t).

    Raises AssertionError for tensors of different lengths.

    >>> import symgrad
    >>> TensorDataset(symgrad.tensor([1.0, 2.0]), symgrad.tensor([3, 4]))[1]
    (tensor(2.), tensor(4))
    """

    def __init__(self, *tensors: Tensor):
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise AssertionError(f"TensorDataset: the tensors have the lengths {[len(t) for t in tensors]}; they must be equal")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """Data sets side by side: example i is the tuple of their examples i, or the dict of them if the data sets are given by name.

    Raises ValueError without a data set, for both forms at once, and for different lengths.

    >>> StackDataset("ab", [1, 2])[1], StackDataset(letter="ab", number=[1, 2])[0]
    (('b', 2), {'letter': 'a', 'number': 1})
    """

    def __init__(self, *args: Any, **kwargs: Any):
        if args and kwargs:
            raise ValueError("StackDataset: give data sets by position or by name, and not both")
        self.datasets: Any = args or kwargs
        lengths = {len(dataset) for dataset in args or kwargs.values()}
        if len(lengths) != 1:
            raise ValueError(f"StackDataset: the data sets have the lengths {sorted(lengths)}; give at least one, and equal lengths")
        (self._length,) = lengths

    def _example(self, parts: Any) -> Any:
        return dict(zip(self.datasets, parts)) if isinstance(self.datasets, dict) else tuple(parts)

    def _parts(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def __getitem__(self, index: Any) -> Any:
        return self._example([dataset[index] for dataset in self._parts()])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        columns = [_items(dataset, indices) for dataset in self._parts()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(f"StackDataset: a data set gave {len(column)} examples for {len(indices)} indices")
        return [self._example(row) for row in zip(*columns)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Concatenated data sets. Raises AssertionError for an empty list, and for iterable data sets."""

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset: give at least one data set, and none that is iterable; see ChainDataset")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError(f"ConcatDataset: index {index} is out of range for {len(self)} examples")
            index += len(self)
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Any]):
    """Concatenated iterable data sets."""

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._iterable():
            yield from dataset

    def _iterable(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError(f"ChainDataset: a data set is a {type(dataset).__name__}; give iterable ones")
            yield dataset

    def __len__(self) -> int:
        return sum(map(len, self._iterable()))


class Subset(Dataset[Any]):
    """The examples of a data set at some indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices
        if type(self).__getitem__ is not Subset.__getitem__ and type(self).__getitems__ is Subset.__getitems__:
            raise NotImplementedError(f"{type(self).__name__} has its own __getitem__. Define __getitems__, which DataLoader calls, too")

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[[self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return _items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """A data set split at random into subsets of given lengths, or of fractions that add up to 1.

    The remainder of rounded fractions goes to the first subsets, one example each.

    Raises ValueError for lengths that do not add up, and for fractions outside [0, 1].

    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    count = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if not all(0 <= fraction <= 1 for fraction in lengths):
            raise ValueError(f"random_split: the fractions are {list(lengths)}; each must be in [0, 1]")
        sizes = [math.floor(count * fraction) for fraction in lengths]
        for i in range(count - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if not size:
                warnings.warn(f"random_split: part {i} is empty", UserWarning, stacklevel=2)
    else:
        sizes = list(lengths)  # type: ignore[arg-type]
    if sum(sizes) != count:
        raise ValueError(f"random_split: the lengths are {list(lengths)}, and the data set has {count} examples")
    order = randperm(count, generator=generator).tolist()
    return [Subset(dataset, order[end - size:end]) for size, end in zip(sizes, accumulate(sizes))]
