"""Names of a module that are imported on first access (PEP 562), so that the package starts without them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module: `homes` maps each of the names to the module that has it, or that is it.

    >>> __getattr__, __dir__ = lazy("symgrad", {"vmap": "symgrad.func"})
    >>> __getattr__("vmap").__name__
    'vmap'
    """
    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(homes[name])
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return __getattr__, __dir__
