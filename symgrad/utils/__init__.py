"""What stands around networks, with torch's names: data in batches, checkpoints, and pictures and numbers for TensorBoard."""

from symgrad.utils import checkpoint, data, tensorboard

__all__ = ["checkpoint", "data", "tensorboard"]
