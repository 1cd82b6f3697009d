"""`accuracy`: how many digits of a function and its derivatives are right, over all the floats of its domain."""

from symgrad.scanning.report import AccuracyReport, Better, Loss, Sample, Worst
from symgrad.scanning.scan import accuracy

__all__ = ["AccuracyReport", "Better", "Loss", "Sample", "Worst", "accuracy"]
