"""`SummaryWriter`: graphs, numbers, histograms, texts, pictures, sounds and settings for TensorBoard, with torch's names.

Needs the package `tensorboard` (extra `tensorboard`), which is imported when the first writer is made.
"""

from symgrad.utils.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]
