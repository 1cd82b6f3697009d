"""What stands around networks, with torch's names: data in batches, and pictures and numbers for TensorBoard."""

from symgrad.utils import data, tensorboard

__all__ = ["data", "tensorboard"]
