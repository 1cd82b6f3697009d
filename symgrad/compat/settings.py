"""Settings of torch that its programs read and write, and its functions of sizes, which are integers here.

NumPy on one CPU computes every result in the same way each time and in full precision, so that the settings change no result; they are kept, so
that a program finds what it has set.
"""

from __future__ import annotations

import builtins
import math
import warnings
from typing import Any

from symgrad.autograd.anomaly import set_detect_anomaly
from symgrad.engine.refusals import taking_tensors

_settings: dict[str, Any] = {"deterministic": 0, "precision": "highest", "warn_always": False}
MODES = {"default": 0, "warn": 1, "error": 2}


def _check_bool(name: str, mode: Any) -> None:
    if not isinstance(mode, bool):
        raise TypeError(f"{name}: the mode is {mode!r}. Give True or False.")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic algorithms; all are. Raises TypeError unless the mode is a bool."""
    _check_bool("use_deterministic_algorithms", mode)
    _settings["deterministic"] = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms were asked for."""
    return bool(_settings["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether deterministic algorithms were asked for with a warning in place of an error."""
    return bool(_settings["deterministic"] == 1)


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Ask for deterministic algorithms by "default" (0, not), "warn" (1) or "error" (2).

    Raises TypeError and RuntimeError for other modes.
    """
    number = MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if number not in MODES.values() or not isinstance(number, int):
        kind = RuntimeError if isinstance(debug_mode, (str, int)) else TypeError
        raise kind(f"set_deterministic_debug_mode: the mode is {debug_mode!r}. Give one of {MODES}.")
    _settings["deterministic"] = number


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as `set_deterministic_debug_mode` says."""
    return int(_settings["deterministic"])


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 in less precision, "high" or "medium" instead of "highest"; they are always in full precision."""
    if precision in ("highest", "high", "medium"):
        _settings["precision"] = precision
    else:
        warnings.warn(f"set_float32_matmul_precision: {precision!r} has no effect. Give 'highest', 'high' or 'medium'.", UserWarning, stacklevel=2)


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` has set."""
    return str(_settings["precision"])


def set_warn_always(b: bool) -> None:
    """Ask for every warning instead of the first of each; Python's filters decide about that here."""
    _settings["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` has set."""
    return bool(_settings["warn_always"])


def set_flush_denormal(mode: bool) -> bool:
    """Ask for subnormal numbers to be taken as zero. They are kept, so that the answer is False: the mode is not supported."""
    _check_bool("set_flush_denormal", mode)
    return False


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch the mode of `autograd.set_detect_anomaly` on or off."""
    set_detect_anomaly(mode, check_nan)


# Sizes


@taking_tensors
def sym_float(a: Any) -> float:
    """The number as a float."""
    return builtins.float(a)


@taking_tensors
def sym_int(a: Any) -> int:
    """The number as an integer, rounded towards zero."""
    return builtins.int(a)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`, which must be of one type. Raises AssertionError otherwise."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError(f"sym_ite: got {b!r}, {t!r} and {f!r}. Give a bool and two values of one type.")
    return t if b else f


@taking_tensors
def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers, a float if one of them is."""
    return builtins.float(max(a, b)) if builtins.float in (type(a), type(b)) else max(a, b)


@taking_tensors
def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers, a float if one of them is."""
    return builtins.float(min(a, b)) if builtins.float in (type(a), type(b)) else min(a, b)


def sym_not(a: Any) -> bool:
    """Whether the value is false."""
    return not a


@taking_tensors
def sym_sqrt(a: Any) -> float:
    """The square root of a number. Raises ValueError for a negative one."""
    return math.sqrt(a)


@taking_tensors
def sym_sum(*args: Any) -> Any:
    """The sum of several numbers, or of a sequence of them."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)
