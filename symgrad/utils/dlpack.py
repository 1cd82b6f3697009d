"""Tensors from DLPack capsules and to them, with torch's names."""

from symgrad.factories.exchange import from_dlpack, to_dlpack
from symgrad.types.absent import explained

__all__ = ["from_dlpack", "to_dlpack"]


__getattr__, __path__ = explained(__name__), list[str]()
