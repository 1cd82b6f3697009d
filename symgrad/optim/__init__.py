"""Optimizers, with torch's names, options and results: they change parameters in place, by their gradients."""

from symgrad.optim.adam import Adam, AdamW
from symgrad.optim.optimizer import Optimizer
from symgrad.optim.sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD"]
