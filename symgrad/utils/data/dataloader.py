"""`DataLoader`: the examples of a data set, in batches; collation makes one batch of a list of examples."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from itertools import repeat
from typing import Any, Generic, TypeVar

import numpy as np

from symgrad.dtypes.dtype import DTYPES
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS
from symgrad.factories.creation import as_tensor, tensor
from symgrad.factories.random_tensors import randint
from symgrad.system.locks import cores
from symgrad.utils.data.dataset import BatchSampler, IterableDataset, RandomSampler, Sampler, SequentialSampler
from symgrad.utils.data.workers import GRACE, End, Fetch, Setup, Workers, get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

REFUSED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _like(example: Any, given: Any) -> Any:
    """A mapping or sequence like an example, with what a mutable one has besides its items; a dict or list if its type does not take the items."""
    try:
        if not isinstance(example, (MutableMapping, MutableSequence)):
            return type(example)(given)
        filled = copy(example)
        for key, value in given.items() if isinstance(given, dict) else enumerate(given):
            filled[key] = value
        return filled
    except TypeError:
        return given


def default_collate(batch: Sequence[Any]) -> Any:
    """Examples of one structure as a batch: tensors, arrays and numbers stacked along a new first axis, in nested mappings and sequences.

    Python floats become float64, as in NumPy; strings stay in a list.

    Raises TypeError for values that cannot be stacked, RuntimeError for sequences and tensors of different sizes.

    >>> default_collate([{"x": 1.5, "y": [1, 2]}, {"x": 2.5, "y": [3, 4]}])
    {'x': tensor([1.5000, 2.5000]), 'y': [tensor([1, 3]), tensor([2, 4])]}
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return FUNCTIONS["stack"](list(batch), 0)
    if isinstance(first, np.ndarray):
        if first.dtype.kind not in "biufc":
            raise TypeError(REFUSED.format(first.dtype))
        return FUNCTIONS["stack"]([as_tensor(x) for x in batch], 0)
    if isinstance(first, np.generic) and not isinstance(first, (str, bytes)):
        return as_tensor(np.array(batch))
    if isinstance(first, float):
        return tensor(list(batch), dtype=DTYPES["float64"])
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([example[key] for example in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(example) != len(first) for example in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(part) for part in zip(*batch)]
        return parts if isinstance(first, tuple) else _like(first, parts)
    raise TypeError(REFUSED.format(type(first)))


def default_convert(data: Any) -> Any:
    """An example with its arrays as tensors, in nested mappings and sequences; other values are unchanged.

    >>> import numpy as np
    >>> default_convert({"x": np.ones(2), "name": "ones"})
    {'x': tensor([1., 1.]), 'name': 'ones'}
    """
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind in "biufc":
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [default_convert(value) for value in data])
    return data


Example = TypeVar("Example", covariant=True)


class _Endless(Sampler[None]):
    """An endless sampler without indices, for iterable data sets."""

    def __iter__(self) -> Iterator[None]:
        return repeat(None)


class DataLoader(Generic[Example]):
    """The examples of a data set in batches: in order, shuffled, or in the order of a sampler.

    `batch_size` None gives single examples; `sampler` gives indices and `batch_sampler` lists of them; `drop_last` omits a last
    batch that is shorter; `collate_fn` makes a batch of a list of examples. `shuffle` uses `generator`, or the
    default generator, which `manual_seed` seeds.

    `num_workers` processes load up to `prefetch_factor` batches each ahead, in the same order, or in that of their arrival if `in_order`
    is false. `worker_init_fn` is called with the number of each worker when it starts; `persistent_workers` go on with the next pass.
    `multiprocessing_context` is a start method: with "spawn" the data set and the functions are pickled. A worker has a copy of the data set
    and its own seed. An iterable data set asks `get_worker_info()` for its part. `pin_memory` has no effect on the CPU.

    Raises ValueError for options that exclude each other. Iteration raises the exceptions of workers with their tracebacks, and RuntimeError for a
    worker that was killed and for a batch that takes longer than `timeout` seconds.

    >>> import symgrad
    >>> [batch.tolist() for batch in DataLoader([10, 20, 30], batch_size=2)]
    [[10, 20], [30]]
    """

    _fixed = False
    _kept: Workers | None = None  # persistent ones
    _reported: int | None = None  # the length of an iterable data set, where it was asked for

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None, batch_sampler: Any = None,
                 num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None, generator: Any = None,
                 *, prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True):
        iterable, batched = isinstance(dataset, IterableDataset), batch_size != 1 or shuffle or sampler is not None or drop_last
        for wrong, text in (
                (num_workers < 0, f"num_workers is {num_workers}; it must not be negative"),
                (timeout < 0, f"timeout is {timeout}; it must not be negative"),
                (prefetch_factor is not None and prefetch_factor < 0, f"prefetch_factor is {prefetch_factor}; it must not be negative"),
                (num_workers == 0 and prefetch_factor is not None, "prefetch_factor needs num_workers > 0"),
                (num_workers == 0 and persistent_workers, "persistent_workers needs num_workers > 0"),
                (iterable and (shuffle or sampler is not None or batch_sampler is not None),
                 "an iterable data set has its own order; leave shuffle, sampler and batch_sampler out"),
                (sampler is not None and shuffle, "give sampler or shuffle, and not both"),
                (batch_sampler is not None and batched, "batch_sampler excludes batch_size, shuffle, sampler and drop_last"),
                (batch_sampler is None and batch_size is None and drop_last, "batch_size=None excludes drop_last")):
            if wrong:
                raise ValueError(f"DataLoader: {text}")
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            sampler = _Endless() if iterable else RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.sampler, self.batch_sampler, self.drop_last = dataset, batch_size, sampler, batch_sampler, drop_last
        self.num_workers, self.timeout, self.worker_init_fn, self.generator = num_workers, timeout, worker_init_fn, generator
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self.pin_memory, self.pin_memory_device, self.in_order = persistent_workers, pin_memory, pin_memory_device, in_order
        self.multiprocessing_context = multiprocessing_context
        self.collate_fn = collate_fn if collate_fn is not None else default_collate if self._auto_collation else default_convert
        self._fixed = True
        if num_workers > (most := cores()):
            warnings.warn(f"DataLoader: num_workers is {num_workers}, and there are {most} cores. Take fewer", UserWarning, stacklevel=2)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._fixed and name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
            raise ValueError(f"DataLoader: {name} cannot be set any more. Make another loader")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The start method of the workers, None for that of Python."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError("DataLoader: multiprocessing_context needs num_workers > 0")
            if isinstance(context, str):
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(f"DataLoader: multiprocessing_context is {context!r}; give a start method or a context")
        self._context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Batches:
        return Batches(self)

    def _workers(self, setup: Setup, seed: int) -> Workers:
        """Worker processes, those of the last pass if they are persistent."""
        if self._kept is not None and not self._kept.closed:
            return self._kept
        workers = Workers(setup, self.num_workers, 2 if self.prefetch_factor is None else self.prefetch_factor, self.timeout, self.in_order,
                          self._context, self.worker_init_fn, seed)
        self._kept = workers if self.persistent_workers else None
        return workers

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        count = self._reported = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class Batches:
    """An iterator over the batches of a loader. It goes on after an example that raises; an interrupt ends its workers, and so does `close`."""

    def __init__(self, loader: DataLoader):
        self._loader, self._yielded, indices = loader, 0, iter(loader._index_sampler)
        seed = int(randint(2**63 - 1, (), generator=loader.generator))  # drawn without workers, too, so that their number does not change the order
        setup = Setup(loader.dataset, isinstance(loader.dataset, IterableDataset), loader._auto_collation, loader.drop_last, loader.collate_fn)
        self._workers = loader._workers(setup, seed) if loader.num_workers else None
        self._next = self._in_this_process(setup.fetch(), indices) if self._workers is None else self._workers.start(indices).next

    @staticmethod
    def _in_this_process(load: Fetch, indices: Iterator[Any]) -> Callable[[], Any]:
        return lambda: load(next(indices))

    def __iter__(self) -> Batches:
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __next__(self) -> Any:
        try:
            batch = self._next()
        except Exception:
            raise
        except BaseException:
            self.close(0)
            raise
        if batch is End:
            if not self._loader.persistent_workers:
                self.close()
            raise StopIteration
        self._yielded += 1
        if self._loader._reported is not None and self._yielded > self._loader._reported:
            warnings.warn(f"DataLoader: the length of the data set is {self._loader._reported}, and {self._yielded} examples came. Workers of an "
                          "iterable data set choose their parts by get_worker_info()", UserWarning, stacklevel=2)
        return batch

    def close(self, grace: float = GRACE) -> None:
        """End the workers."""
        if self._workers is not None:
            self._workers.close(grace)
            self._next = lambda: End
