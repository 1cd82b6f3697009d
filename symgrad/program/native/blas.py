"""The addresses of BLAS functions: those that NumPy calls itself, or else those that SciPy offers."""

from __future__ import annotations

import ctypes
import functools
import importlib

__all__ = ["addresses", "integer_bits"]

NAMES = ("dgemm", "dgemv", "sgemm", "sgemv")


def addresses() -> ctypes.Array:
    """A table of the functions in the order of `NAMES`."""
    return _of_numpy() or _of_scipy()


def integer_bits() -> int:
    """The number of bits of the integers that the functions take."""
    return 64 if _of_numpy() else 32


@functools.cache
def _of_numpy() -> ctypes.Array | None:
    """The functions of the library that NumPy is linked to, which may be newer and faster than that of SciPy; None where they have other names.

    The suffix of the names in NumPy's own builds says that the integers have 64 bits; other names do not say it.
    """
    try:
        library = ctypes.CDLL(importlib.import_module("numpy._core._multiarray_umath").__file__)
        return (ctypes.c_void_p * len(NAMES))(*[ctypes.cast(getattr(library, f"scipy_{x}_64_"), ctypes.c_void_p).value for x in NAMES])
    except (AttributeError, ImportError, OSError):
        return None


@functools.cache
def _of_scipy() -> ctypes.Array:
    from scipy.linalg import cython_blas  # takes a tenth of a second

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    capsules = [cython_blas.__pyx_capi__[x] for x in NAMES]
    return (ctypes.c_void_p * len(NAMES))(*[get(x, name(x)) for x in capsules])
