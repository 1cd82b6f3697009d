"""What the command line says to the plugin, read and checked; every mistake is a usage error that names the remedy."""

from __future__ import annotations

import importlib
import keyword
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from symgrad.extending import BUILT_IN
from symgrad.op import Op
from symgrad.testing.claims import claims_of
from symgrad.testing.profiles import PROFILES, Profile

__all__ = ["Options", "Target", "options_of", "targets_of"]

DTYPES = ("float64", "float32", "float16", "bfloat16", "complex128", "complex64")


class Options(NamedTuple):
    """How ops are attacked."""

    profile: Profile
    checks: tuple[str, ...]
    seed: int
    dtypes: tuple[str, ...] | None
    ulp: float | None
    accuracy: bool
    report: Path | None


class Target(NamedTuple):
    """An op of a module that was named on the command line."""

    module: str
    name: str
    op: Any
    file: Path | None


def options_of(config: pytest.Config) -> Options:
    """The options of a run. Raises UsageError for a profile, check, dtype, number or file that cannot be used."""
    get = config.getoption
    return Options(_profile(config), _checks(get("symgrad_checks")), _whole(get("symgrad_seed"), "--symgrad-seed", "0", 0),
                   _dtypes(get("symgrad_dtypes")), _ulp(get("symgrad_ulp")), get("symgrad_accuracy"), _file(config, get("symgrad_report")))


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _profile(config: pytest.Config) -> Profile:
    given = config.getoption("symgrad_profile")
    name, where = (given, "--symgrad-profile") if given is not None else (config.getini("symgrad_profile"), "the ini option symgrad_profile")
    if name not in PROFILES:
        raise pytest.UsageError(f"{where} is {name!r}; expected one of {', '.join(PROFILES)}")
    orders = config.getoption("symgrad_orders")
    if orders is not None and orders not in ("0", "1", "2", "3"):
        raise pytest.UsageError(f"--symgrad-orders is {orders!r}; expected the highest order of derivatives to look at: 0, 1, 2 or 3")
    return PROFILES[name] if orders is None else PROFILES[name]._replace(order=int(orders))


def _checks(text: str | None) -> tuple[str, ...]:
    from symgrad.testing.checks import CHECKS

    if text is None:
        return tuple(CHECKS)
    wanted = _listed(text)
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown or not wanted:
        said = f"there is no check {unknown[0]!r}" if unknown else "no check is named"
        raise pytest.UsageError(f"--symgrad-checks: {said}; those are {', '.join(CHECKS)}")
    return tuple(name for name in CHECKS if name in wanted)


def _whole(text: str | None, option: str, example: str, default: int) -> int:
    try:
        return default if text is None else int(text)
    except ValueError:
        raise pytest.UsageError(f"{option} is {text!r}; expected a whole number, such as {example}") from None


def _dtypes(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    wanted = _listed(text)
    unknown = [name for name in wanted if name not in DTYPES]
    if unknown or not wanted:
        raise pytest.UsageError(f"--symgrad-dtypes is {text!r}; expected names among {', '.join(DTYPES)}, with commas between them")
    return tuple(wanted)


def _ulp(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise pytest.UsageError(f"--symgrad-ulp is {text!r}; expected a positive number of units in the last place, such as 1000")
    return number


def _file(config: pytest.Config, text: str | None) -> Path | None:
    if text is None:
        return None
    path = config.invocation_params.dir / text
    if path.is_dir() or not path.parent.is_dir():
        raise pytest.UsageError(f"--symgrad-report: {text} cannot be written; name a file in a folder that exists")
    return path


def targets_of(config: pytest.Config) -> list[Target]:
    """The ops that `--symgrad-ops` names. Raises UsageError for modules and names that are not there, and for modules without ops."""
    given = [part for text in config.getoption("symgrad_ops") for part in _listed(text)]
    for folder in (config.rootpath, config.invocation_params.dir):
        if given and str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    found: dict[tuple[str, str], Target] = {}
    for text in given:
        found.update(((t.module, t.name), t) for t in _targets(text))
    return list(found.values())


def _targets(text: str) -> list[Target]:
    name, _, attribute = text.partition(":")
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in [*name.split("."), *([attribute] if ":" in text else [])]):
        raise pytest.UsageError(f"--symgrad-ops: {text!r} is not the name of a module; write MODULE or MODULE:NAME as Python imports it, "
                                f"such as mypackage.ops:swish")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from None
        raise pytest.UsageError(f"--symgrad-ops: there is no module {error.name!r}; run pytest in the folder it is in, set the ini "
                                f"option pythonpath, or install it") from None
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from None
    file = Path(module.__file__) if module.__file__ else None
    if not attribute:
        ops = [Target(name, key, op, file) for key, op in ops_in(module)]
        if not ops:
            raise pytest.UsageError(f"--symgrad-ops: {name} has no ops; write @symgrad.testing.op(formula=...) above a function of it, or name "
                                    f"one: --symgrad-ops {name}:FUNCTION")
        return ops
    if not hasattr(module, attribute):
        known = ", ".join(key for key, _ in ops_in(module)) or "none"
        raise pytest.UsageError(f"--symgrad-ops: {name} has no {attribute!r}; the ops in it are: {known}")
    op = getattr(module, attribute)
    if not callable(op) and not isinstance(op, (Op, tuple)):
        raise pytest.UsageError(f"--symgrad-ops: {text} is of type {type(op).__name__}; name a function, or a class with apply")
    return [Target(name, attribute, op, file)]


def _broken(name: str, error: BaseException) -> pytest.UsageError:
    return pytest.UsageError(f"--symgrad-ops: importing {name} raised {type(error).__name__}: {error}; see it whole with python -c 'import {name}'")


def ops_in(module: Any) -> Iterator[tuple[str, Any]]:
    """The ops of a module with their names: what is marked, and what was declared with symgrad's constructors; not what it imports."""
    seen: set[int] = set()
    for name, thing in list(vars(module).items()):
        if id(thing) in seen:
            continue
        own = getattr(thing, "op", None) if callable(thing) else thing
        if claims_of(thing) is None and not (isinstance(own, Op) and own.name not in BUILT_IN):
            continue
        home = getattr(thing, "__module__", None)
        if claims_of(thing) is not None and home is not None and not f"{home}.".startswith(f"{module.__name__}."):
            continue
        seen.add(id(thing))
        yield name, thing
