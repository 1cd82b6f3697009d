"""Data in batches, with torch's names: data sets, samplers, which set the order, and the loader, which makes batches.

Of torch's names the data pipes are absent: torch itself no longer develops them, and an iterable data set does what they do.
"""

from symgrad.utils.data.collating import default_collate, default_convert
from symgrad.utils.data.dataloader import DataLoader
from symgrad.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from symgrad.utils.data.distributed import DistributedSampler
from symgrad.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from symgrad.utils.data.workers import WorkerInfo, get_worker_info

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset", "RandomSampler",
           "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "WorkerInfo",
           "default_collate", "default_convert", "get_worker_info", "random_split"]
