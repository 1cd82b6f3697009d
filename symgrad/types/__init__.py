"""Data types, devices, domains, trees and indices; with torch's names for the types of arguments."""

import os
from typing import IO

from symgrad.types.absent import explained
from symgrad.types.devices import device

__all__ = ["Device", "FileLike", "Number"]

Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
Number = int | float | bool


__getattr__ = explained(__name__)
