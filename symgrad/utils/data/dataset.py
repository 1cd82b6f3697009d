"""Data sets, and samplers: the indices of a data set in some order, alone, in batches, or divided among processes, drawn when iteration begins."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, cycle, islice
from typing import Any, Generic, TypeVar

from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import as_tensor
from symgrad.factories.generators import Generator
from symgrad.factories.random_tensors import multinomial, randint, randperm

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "Dataset", "DistributedSampler", "IterableDataset", "RandomSampler", "Sampler",
           "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "random_split"]

Example = TypeVar("Example", covariant=True)


def _items(dataset: Any, indices: list[int]) -> list[Any]:
    """The examples of a data set at several indices, by its `__getitems__` if it has one."""
    get_items = getattr(dataset, "__getitems__", None)
    return list(get_items(indices)) if callable(get_items) else [dataset[i] for i in indices]


class Dataset(Generic[Example]):
    """Examples by index: a subclass has `__getitem__`, and `__len__` if their number is known."""

    def __getitem__(self, index: Any) -> Example:
        raise NotImplementedError("Dataset: define __getitem__ in the subclass")

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


Index = TypeVar("Index", covariant=True)


def _positive(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{name} must be a positive integer, not {value!r}")


class Sampler(Generic[Index]):
    """Indices in some order: a subclass has `__iter__`, and `__len__` if their number is known."""

    def __iter__(self) -> Iterator[Index]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """All indices in order.

    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order: all of them, or `num_samples`, drawn with `replacement` or in rounds without.

    The order comes from `generator`, or from the default generator, which `manual_seed` seeds.

    Raises TypeError and ValueError for a number of samples that is not positive and a `replacement` that is not a boolean.
    """

    def __init__(self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None):
        self.data_source, self.replacement, self._num_samples, self.generator = data_source, replacement, num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement must be a bool, not {replacement!r}")
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """The number of indices drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        # A separate generator, so that other draws do not change the order.
        generator = Generator().manual_seed(int(randint(2**63 - 1, ()))) if self.generator is None else self.generator
        yield from islice(self._drawn(len(self.data_source), generator), self.num_samples)

    def _drawn(self, count: int, generator: Any) -> Iterator[int]:
        while True:
            yield from (randint(count, (32,), generator=generator) if self.replacement else randperm(count, generator=generator)).tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices in random order, each once."""

    def __init__(self, indices: Sequence[int], generator: Any = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities proportional to `weights`.

    Raises ValueError for a number of samples that is not positive, a `replacement` that is not a boolean, and weights that are not a vector.
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None):
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement must be a bool, not {replacement!r}")
        self.weights: Tensor = as_tensor(weights, dtype=float)
        if self.weights.ndim != 1:
            raise ValueError(f"weights must have one dimension; their shape is {tuple(self.weights.shape)}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of `batch_size`, the last of them shorter, or dropped with `drop_last`.

    Raises ValueError for a size that is not a positive integer and a `drop_last` that is not a boolean.

    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool):
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last must be a bool, not {drop_last!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index of a data set, beginning with index `rank`, in an order that `seed` and the epoch give all processes.

    All processes get the same number of indices: some are given twice at the end, or left out with `drop_last`. `num_replicas` and `rank` are those
    of the group of all processes. `set_epoch` before each pass changes the order.

    Raises ValueError for a rank that is not there, and without numbers and a group.

    >>> [list(DistributedSampler(range(5), num_replicas=2, rank=rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0,
                 drop_last: bool = False):
        from symgrad.distributed import get_rank, get_world_size  # only for those who use it: it ends jobs of MPI

        self.num_replicas = get_world_size() if num_replicas is None else num_replicas
        self.rank = get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"rank must be from 0 to {self.num_replicas - 1}, not {self.rank}")
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, shuffle, seed, drop_last, 0
        self.num_samples = len(dataset) // self.num_replicas if drop_last else math.ceil(len(dataset) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = randperm(count, generator=Generator().manual_seed(self.seed + self.epoch)).tolist() if self.shuffle else range(count)
        return islice(cycle(order), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the pass, which gives another order."""
        self.epoch = epoch
