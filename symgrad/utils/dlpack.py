"""Tensors from DLPack capsules and to them, with torch's names."""

from symgrad.factories.exchange import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
