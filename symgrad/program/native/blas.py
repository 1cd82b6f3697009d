"""The addresses of BLAS functions, from the capsules of SciPy."""

from __future__ import annotations

import ctypes
import functools

__all__ = ["addresses"]

NAMES = ("dgemm", "dgemv", "sgemm", "sgemv")


@functools.cache
def addresses() -> ctypes.Array:
    """A table of the functions in the order of `NAMES`."""
    from scipy.linalg import cython_blas  # takes a tenth of a second, and only matrix products need it

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    capsules = [cython_blas.__pyx_capi__[x] for x in NAMES]
    return (ctypes.c_void_p * len(NAMES))(*[get(x, name(x)) for x in capsules])
