"""Names of a module that are imported on first access (PEP 562), so that the package starts without them; modules with several names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

ADVISERS: list[Callable[[str], str | None]] = []  # functions that know what to use instead of a name


def missing(package: str, name: str, sentence: str | None = None) -> AttributeError:
    """The error for a name that a module does not have, with what to use instead: the `sentence`, or the advice that there is."""
    inside = package.partition(".")[2]
    words = [name] if not inside else [f"{inside}.{name}", name]
    found = [sentence] if sentence else [text for word in words for advice in ADVISERS if (text := advice(word))]
    return AttributeError(f"module {package!r} has no attribute {name!r}" + (f": {found[0]}" if found else ""))


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module: `homes` maps each of the names to the module that has it, or that is it.

    >>> __getattr__, __dir__ = lazy("symgrad", {"vmap": "symgrad.func"})
    >>> __getattr__("vmap").__name__
    'vmap'
    """
    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise missing(package, name)
        module = importlib.import_module(homes[name])
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return __getattr__, __dir__


def other_names(package: str, homes: Mapping[str, str]) -> None:
    """Make modules known by further names in a package, by which they can be imported: `homes` maps each module to such names.

    >>> import symgrad.optim.adam
    >>> symgrad.optim.adam.Adam is symgrad.optim.Adam
    True
    """
    for home, names in homes.items():
        module = importlib.import_module(home)
        for name in names.split():
            sys.modules[f"{package}.{name}"] = module
            vars(sys.modules[package]).setdefault(name, module)  # a function such as `weight_norm` stays
