"""`symgrad.testing`: checks of an op's value and derivatives, strategies, reports, and the pytest plugin."""

from __future__ import annotations

import importlib
from typing import Any

from symgrad.system.lazy import missing
from symgrad.testing.claims import Claims, op

_LATER = {"CHECKS": "checks", "CheckFailure": "failure", "Failure": "failure", "OpReport": "failure", "Result": "failure", "check_op": "checks.base",
          "strategies": "strategies"}
__all__ = ["Claims", "op", *_LATER]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        module = importlib.import_module(f"symgrad.testing.{_LATER[name]}")
        return module if name == _LATER[name] else getattr(module, name)
    if name.startswith("check_"):
        checks = importlib.import_module("symgrad.testing.checks")
        found = {c.function.__name__: c.function for c in checks.CHECKS.values()}
        if name in found:
            return found[name]
    raise missing(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
