"""Utilities with torch's names: data loading, checkpoints, and TensorBoard."""

import importlib
from typing import Any

from symgrad.types.absent import missing

__all__ = ["checkpoint", "data", "dlpack", "hooks", "tensorboard"]


def __getattr__(name: str) -> Any:  # `import symgrad` needs the serialization alone
    if name in __all__:
        return importlib.import_module(f"symgrad.utils.{name}")
    raise missing(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
