"""Utilities with torch's names: data loading, checkpoints, and TensorBoard."""

from symgrad.system.lazy import lazy, other_names

__all__ = ["checkpoint", "data", "dlpack", "hooks", "tensorboard"]  # noqa: F822  imported on first access

other_names(__name__, {"symgrad.factories.exchange": "dlpack"})
__getattr__, __dir__ = lazy(__name__, {name: f"symgrad.utils.{name}" for name in __all__})
