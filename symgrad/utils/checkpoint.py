"""Checkpoints under torch's name: intermediate values of a function are recomputed in the backward pass, not stored."""

from symgrad.func.checkpointing import CheckpointError, checkpoint, checkpoint_sequential

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]
