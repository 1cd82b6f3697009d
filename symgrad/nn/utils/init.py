"""Modules whose parameters are to be set later."""

from __future__ import annotations

import inspect
from typing import Any

from symgrad.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters are still to be set. Here they have their first values: there is no device without memory.

    Raises RuntimeError for a class that is no module, or takes no device.
    """
    if not issubclass(module_cls, Module) or "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(f"skip_init: {module_cls.__name__} must be a module that takes a device")
    return module_cls(*args, **kwargs)
