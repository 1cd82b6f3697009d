"""Checkpoints under torch's name: what a function computes is computed again in backward, and not kept meanwhile."""

from symgrad.func.checkpointing import CheckpointError, checkpoint, checkpoint_sequential

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]
