"""`DataLoader`: the examples of a data set, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from symgrad.factories.random_tensors import randint
from symgrad.utils.data.collating import default_collate, default_convert
from symgrad.utils.data.datasets import IterableDataset
from symgrad.utils.data.samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler
from symgrad.utils.data.workers import END, Fetch, WorkerInfo, examples_of, fetch, in_threads

__all__ = ["DataLoader"]


class _Endless(Sampler[None]):
    """An endless sampler without indices, for iterable data sets."""

    def __iter__(self) -> Iterator[None]:
        return repeat(None)


class DataLoader:
    """The examples of a data set in batches: in order, shuffled, or in the order of a sampler.

    `batch_size` None gives single examples; `sampler` gives indices and `batch_sampler` lists of them; `drop_last` omits a last
    batch that is shorter; `collate_fn` makes a batch of a list of examples. `shuffle` uses `generator`, or the
    default generator, which `manual_seed` seeds. `num_workers` threads load ahead, in the same order; `worker_init_fn` is called with
    the number of each worker when it starts.

    Raises ValueError for options that exclude each other.

    >>> import symgrad
    >>> [batch.tolist() for batch in DataLoader([10, 20, 30], batch_size=2)]
    [[10, 20], [30]]
    """

    _fixed = False

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None, batch_sampler: Any = None,
                 num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None, generator: Any = None,
                 *, prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, "
                             "otherwise set prefetch_factor to None.")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if multiprocessing_context is not None and num_workers == 0:
            raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers=0")
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            for option, value in {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}.items():
                if value is not None:
                    raise ValueError(f"DataLoader with IterableDataset: expected unspecified {option} option, but got {option}={value}")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = _Endless() if iterable else RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.sampler, self.batch_sampler, self.drop_last = dataset, batch_size, sampler, batch_sampler, drop_last
        self.num_workers, self.timeout, self.worker_init_fn, self.generator = num_workers, timeout, worker_init_fn, generator
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self.pin_memory, self.pin_memory_device, self.in_order = persistent_workers, pin_memory, pin_memory_device, in_order
        self.multiprocessing_context = multiprocessing_context
        self.collate_fn = collate_fn if collate_fn is not None else default_collate if self._batched else default_convert
        self._fixed = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._fixed and name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _batched(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _indices(self) -> Iterable[Any]:
        return self.batch_sampler if self._batched else self.sampler

    def _fetch(self) -> Fetch:
        if isinstance(self.dataset, IterableDataset):
            return examples_of(self.dataset, self._batched, self.drop_last, self.collate_fn)
        return fetch(self.dataset, self._batched, self.collate_fn)

    def __iter__(self) -> Iterator[Any]:
        indices = iter(self._indices)
        first = int(randint(2**63 - 1, (), generator=self.generator))  # drawn without workers, too, so that their number does not change the order
        if self.num_workers:
            infos = [WorkerInfo(i, self.num_workers, first + i, self.dataset) for i in range(self.num_workers)]
            return in_threads(self._fetch, indices, infos, self.prefetch_factor or 2, self.timeout, self.worker_init_fn)
        return self._in_this_thread(indices)

    def _in_this_thread(self, indices: Iterator[Any]) -> Iterator[Any]:
        load = self._fetch()
        for index in indices:
            batch = load(index)
            if batch is END:
                return
            yield batch

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._indices)  # type: ignore[arg-type]
        count = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
