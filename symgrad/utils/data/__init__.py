"""Data in batches, with torch's names: data sets, samplers, which set the order, and the loader, which makes batches.

Of torch's names the data pipes are absent: torch itself no longer develops them, and an iterable data set does what they do.
"""

from typing import TYPE_CHECKING

from symgrad.system.lazy import lazy, other_names
from symgrad.utils.data import dataloader, dataset
from symgrad.utils.data.dataloader import *
from symgrad.utils.data.dataset import *
from symgrad.utils.data.workers import WorkerInfo as WorkerInfo

other_names(__name__, {"symgrad.utils.data.dataset": "distributed sampler"})

if not TYPE_CHECKING:  # a list that is computed hides all names from mypy
    __all__ = sorted(["WorkerInfo", *dataloader.__all__, *dataset.__all__])
    __getattr__, __dir__ = lazy(__name__, {})  # an absent name says what to use instead
