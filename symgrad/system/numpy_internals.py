"""Functions of NumPy that are not public: the inner loops of its functions of matrices, transforms and intervals, without their preparations.

What a NumPy does not have is None here, or the public function; whoever calls it goes on with public functions.
Nanoseconds that a call on few numbers takes (minimum of 60 runs of 2000 calls with NumPy 2, on a busy machine):

| loop | public function | loop |
|---|---|---|
| `fft` of 8 numbers | 10,740 | 1,840 |
| `inv` of 3 x 3 | 11,230 | 1,640 |
| `cholesky` of 3 x 3 | 10,820 | 1,050 |
| `det` of 3 x 3 | 4,890 | 1,780 |
| `eigh` of 3 x 3 | 23,510 | 4,270 |
| `clip` of 8 numbers | 5,060 | 770 |
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_linalg, _fft, _umath = map(_module, ("numpy.linalg._umath_linalg", "numpy.fft._pocketfft_umath", "numpy._core.umath"))
clip: Callable[..., Any] = getattr(_umath, "clip", np.clip)
transforms = _fft if all(hasattr(_fft, name) for name in ("fft", "ifft", "irfft", "rfft_n_even", "rfft_n_odd")) else None


def linalg_loop(name: str) -> Callable[..., Any] | None:
    """The inner function of `np.linalg` with this name. It answers with NaN for a failure."""
    return getattr(_linalg, name, None)
