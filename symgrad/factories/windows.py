"""Windows for spectra, with torch's names: functions that fall to both sides, as vectors of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of, get_default_dtype
from symgrad.engine.tensor import Tensor
from symgrad.factories.factory import check_placement, expect_integer, new_leaf
from symgrad.system.errorstate import quietly


def _window(name: str, window_length: int, periodic: bool, shape: Callable[[np.ndarray], np.ndarray], dtype: Any, layout: Any, device: Any,
            pin_memory: bool, requires_grad: bool) -> Tensor:
    """The values of a function of the place from 0 to 1 in the window; a periodic one leaves out the last."""
    target = get_default_dtype() if dtype is None else dtype_of(dtype)
    expect_integer(name, "window_length", window_length)
    if not target.is_floating_point:
        raise RuntimeError(f"{name}: dtype must be floating-point, not {target}")
    check_placement(device, layout, pin_memory)
    window_length = int(window_length)
    count = window_length + bool(periodic)
    value = np.ones(window_length) if window_length < 2 else quietly(shape, np.arange(count) / (count - 1))[:window_length]
    return new_leaf(quietly(value.astype, target.numpy), requires_grad)


def _real(name: str, word: str, given: Any) -> float:
    """A parameter of a window, which may be a tensor without dimensions that does not require grad. Raises TypeError for any other."""
    if isinstance(given, Tensor) and (given.ndim or given.requires_grad or given.is_complex()) or not hasattr(given, "__float__"):
        raise TypeError(f"{name}: {word} must be a real number that does not require grad, not {given!r}")
    return float(given)


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
                    requires_grad: bool = False) -> Tensor:
    """The triangle 1 - |2 t - 1| for t from 0 to 1. A periodic window leaves out its last value, which is the first of the next.

    Raises RuntimeError for a negative length and for dtypes without floating point.

    >>> import symgrad
    >>> symgrad.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett_window", window_length, periodic, lambda t: 1 - abs(2 * t - 1), dtype, layout, device, pin_memory, requires_grad)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
                    requires_grad: bool = False) -> Tensor:
    """Blackman's window 0.42 - 0.5 cos(2π t) + 0.08 cos(4π t) for t from 0 to 1; see `bartlett_window`."""
    return _window("blackman_window", window_length, periodic, lambda t: 0.08 * np.cos(4 * np.pi * t) - 0.5 * np.cos(2 * np.pi * t) + 0.42, dtype,
                   layout, device, pin_memory, requires_grad)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None, layout: Any = None,
                   device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Hamming's window alpha - beta cos(2π t) for t from 0 to 1; see `bartlett_window`."""
    alpha, beta = _real("hamming_window", "alpha", alpha), _real("hamming_window", "beta", beta)
    return _window("hamming_window", window_length, periodic, lambda t: alpha - beta * np.cos(2 * np.pi * t), dtype, layout, device, pin_memory,
                   requires_grad)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
                requires_grad: bool = False) -> Tensor:
    """Hann's window sin²(π t) for t from 0 to 1; see `bartlett_window`."""
    return _window("hann_window", window_length, periodic, lambda t: np.sin(np.pi * np.minimum(t, 1 - t)) ** 2, dtype, layout, device, pin_memory,
                   requires_grad)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Kaiser's window I₀(beta √(1 - (2 t - 1)²)) / I₀(beta) for t from 0 to 1; see `bartlett_window`."""
    beta = _real("kaiser_window", "beta", beta)
    return _window("kaiser_window", window_length, periodic, lambda t: np.i0(beta * np.sqrt(4 * t * (1 - t))) / np.i0(beta), dtype, layout, device,
                   pin_memory, requires_grad)
