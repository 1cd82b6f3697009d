"""What stands around networks, with torch's names: data in batches."""

from symgrad.utils import data

__all__ = ["data"]
