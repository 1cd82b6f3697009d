"""`DistributedSampler`: the indices of a data set, divided among processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

from symgrad.factories.generators import Generator
from symgrad.factories.random_tensors import randperm
from symgrad.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


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
            raise ValueError(f"Invalid rank {self.rank}, rank should be in the interval [0, {self.num_replicas - 1}]")
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
