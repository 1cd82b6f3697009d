"""Dtypes with torch's names, the default dtype, and torch's rules of promotion."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ALIASES", "DTYPES", "DType", "dtype_of", "get_default_dtype", "numpy_dtype", "promoted", "set_default_dtype"]


class DType:
    """A data type; its repr is torch's, so that the same script prints the same."""

    __slots__ = ("name", "numpy", "is_floating_point", "is_complex", "is_signed", "itemsize")

    def __init__(self, name: str, numpy: Any):
        self.name, self.numpy = name, np.dtype(numpy)
        self.is_complex = self.numpy.kind == "c"
        self.is_floating_point = self.numpy.kind == "f" or name == "bfloat16"
        self.is_signed = self.numpy.kind not in "ub"
        self.itemsize = self.numpy.itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return _dtype_named, (self.name,)

    @property
    def words(self) -> str:
        """The name that torch's older words are made of: `Float` for `FloatTensor`."""
        return WORDS[self.name]

    def to_complex(self) -> DType:
        """The complex dtype whose parts have this one's precision, or the next there is."""
        if self.is_complex:
            return self
        if not self.is_floating_point:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.words}")
        return DTYPES["complex128" if self.name == "float64" else "complex64"]

    def to_real(self) -> DType:
        """The dtype of the parts of a complex number."""
        return {"complex64": DTYPES["float32"], "complex128": DTYPES["float64"]}.get(self.name, self)


def _dtype_named(name: str) -> DType:
    return DTYPES[name]


def _bfloat16() -> Any:
    from ml_dtypes import bfloat16

    return bfloat16


DTYPES = {name: DType(name, name) for name in ("float64", "float32", "float16", "complex64", "complex128", "int64", "int32", "int16", "int8",
                                               "uint8", "bool")}
DTYPES["bfloat16"] = DType("bfloat16", _bfloat16())
ALIASES = {"double": "float64", "float": "float32", "half": "float16", "cfloat": "complex64", "cdouble": "complex128", "long": "int64",
           "int": "int32", "short": "int16"}
WORDS = {"float64": "Double", "float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
         "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}
_FROM_NUMPY = {d.numpy: d for d in DTYPES.values()}
_FROM_PYTHON = {float: None, int: DTYPES["int64"], bool: DTYPES["bool"], complex: DTYPES["complex128"]}
_default = DTYPES["float64"]


def get_default_dtype() -> DType:
    """The dtype of new floating-point tensors: float64 unless changed.

    >>> get_default_dtype()
    torch.float64
    """
    return _default


def set_default_dtype(d: DType) -> None:
    """Make `d` the dtype of new floating-point tensors.

    Raises TypeError for anything but a floating-point dtype.
    """
    global _default
    d = dtype_of(d)
    if not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, not {d}")
    _default = d


def dtype_of(value: Any) -> DType:
    """The DType that a DType, NumPy dtype or Python type names."""
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _FROM_PYTHON:
        return _FROM_PYTHON[value] or _default
    try:
        return _FROM_NUMPY[np.dtype(value)]
    except (KeyError, TypeError):
        names = ", ".join(DTYPES)
        raise TypeError(f"{value!r} is not a dtype symgrad computes with; use one of {names}") from None


def numpy_dtype(value: Any) -> np.dtype:
    """The NumPy dtype of what `dtype_of` takes; None stands for the default."""
    return (_default if value is None else dtype_of(value)).numpy


_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}


def _category(dtype: np.dtype) -> int:
    return _CATEGORY[dtype.kind]


def promoted(x: Any, z: Any) -> np.dtype:
    """The dtype in which two arrays meet: the higher category wins; inside one, an array wins over a zero-dimensional value."""
    a, b = x.dtype, z.dtype
    if a == b:
        return a
    high, low = (x, z) if _category(a) >= _category(b) else (z, x)
    if _category(a) != _category(b):
        if high.dtype.kind == "c" and low.dtype.kind == "f":
            return np.result_type(a, b) if low.ndim or not high.ndim else np.result_type(low.dtype, np.complex64)
        return high.dtype
    if bool(x.ndim) != bool(z.ndim):
        return a if x.ndim else b
    if {a.name, b.name} == {"bfloat16", "float16"}:
        return np.dtype(np.float32)
    return np.promote_types(a, b)
