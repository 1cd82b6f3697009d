"""`SummaryWriter`: graphs, numbers, histograms, texts, pictures, sounds and settings for TensorBoard, with torch's names.

Needs the package `tensorboard` (extra `tensorboard`), which is imported when the first writer is made.
"""

from typing import Any

from symgrad.types.absent import missing as _missing
from symgrad.utils.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]


def __getattr__(name: str) -> Any:
    raise _missing(__name__, name)
