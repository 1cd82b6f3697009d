"""Modules and ops by the names on the command line; modules are imported, no text is evaluated."""

from __future__ import annotations

import importlib
import inspect
import keyword
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from symgrad.graph.op import Op
from symgrad.methods.extending import BUILT_IN
from symgrad.testing.claims import claims_of

__all__ = ["TargetError", "find_op", "import_module_named", "modules_in", "ops_in", "split_target"]


class TargetError(ValueError):
    """Raised for a module or an object in it that cannot be used; the message has the remedy."""


def split_target(text: str) -> tuple[str, str | None]:
    """The module and the name of MODULE:NAME; the name is None where there is no colon.

    Raises NotThere for text that is no Python name.

    >>> split_target("package.ops:swish"), split_target("ops")
    (('package.ops', 'swish'), ('ops', None))
    """
    module, colon, name = text.partition(":")
    if module.endswith(".py"):
        dotted = ".".join(part for part in module.removesuffix(".py").split("/") if part.isidentifier())
        raise TargetError(f"{text!r} is a file; name its module as Python imports it, such as {dotted or 'mypackage.ops'}{colon}{name}")
    parts = [*module.split("."), *([name] if colon else [])]
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise TargetError(f"{text!r} is not the name of a module; write MODULE or MODULE:NAME as Python imports it, such as mypackage.ops:swish")
    return module, name if colon else None


def import_module_named(name: str, folders: Iterable[Path]) -> ModuleType:
    """Import a module, which may be in one of some folders. Raises NotThere if it is missing or its import fails."""
    for folder in map(str, folders):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _import_error_text(name, error) from error
        raise TargetError(f"there is no module {error.name!r}; go to the folder it is in, or install it") from None
    except (Exception, SystemExit) as error:
        raise _import_error_text(name, error) from error


def _import_error_text(name: str, error: BaseException) -> TargetError:
    return TargetError(f"importing {name} raised {type(error).__name__}: {error}; python -c 'import {name}' shows where")


def find_op(module: ModuleType, name: str) -> Any:
    """An op in a module: a function, a class, a pair of a function and its gradient. Raises NotThere for anything else."""
    if not hasattr(module, name):
        known = ", ".join(key for key, _ in ops_in(module)) or ", ".join(_functions(module)) or "none"
        raise TargetError(f"{module.__name__} has no {name!r}; in it there are: {known}")
    obj = getattr(module, name)
    if inspect.isclass(obj) and not callable(getattr(obj, "apply", None)):
        raise TargetError(f"{module.__name__}:{name} is a class without apply; name a function, or an instance that can be called")
    if not callable(obj) and not isinstance(obj, Op) and not (isinstance(obj, tuple) and obj and all(map(callable, obj))):
        raise TargetError(f"{module.__name__}:{name} is of type {type(obj).__name__}; name a function, or a class with apply")
    return obj


def _functions(module: ModuleType) -> list[str]:
    return [name for name, obj in vars(module).items()
            if callable(obj) and not name.startswith("_") and getattr(obj, "__module__", None) == module.__name__]


def modules_in(module: ModuleType) -> list[str]:
    """The names of the modules inside a package; [] for any other module."""
    return [f"{module.__name__}.{found.name}" for found in pkgutil.iter_modules(getattr(module, "__path__", ()))]


def ops_in(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The ops of a module with their names: marked objects, and ops declared with symgrad's constructors; imported ones are left out."""
    seen: set[int] = set()
    for name, obj in list(vars(module).items()):
        marked = claims_of(obj) is not None
        own = obj if isinstance(obj, Op) else getattr(obj, "op", None) if callable(obj) else None
        if id(obj) in seen or not marked and not (isinstance(own, Op) and own.name not in BUILT_IN):
            continue
        home = getattr(obj, "__module__", None) if marked else None
        if home is not None and not f"{home}.".startswith(f"{module.__name__}."):
            continue
        seen.add(id(obj))
        yield name, obj
