"""Utilities with torch's names: data loading, checkpoints, and TensorBoard."""

from symgrad.system.lazy import lazy

__all__ = ["checkpoint", "data", "dlpack", "hooks", "tensorboard"]  # noqa: F822  imported on first access

__getattr__, __dir__ = lazy(__name__, {name: f"symgrad.utils.{name}" for name in __all__})
