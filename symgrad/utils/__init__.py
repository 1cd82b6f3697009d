"""Utilities with torch's names: data loading, checkpoints, and TensorBoard."""

from symgrad.utils import checkpoint, data, tensorboard

__all__ = ["checkpoint", "data", "tensorboard"]
