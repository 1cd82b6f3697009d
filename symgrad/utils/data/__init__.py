"""Data in batches, with torch's names: data sets, samplers, which set the order, and the loader, which makes batches."""

from symgrad.utils.data.collating import default_collate, default_convert
from symgrad.utils.data.datasets import ChainDataset, ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split
from symgrad.utils.data.loader import DataLoader
from symgrad.utils.data.samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from symgrad.utils.data.workers import WorkerInfo, get_worker_info

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler",
           "SequentialSampler", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "WorkerInfo", "default_collate",
           "default_convert", "get_worker_info", "random_split"]
