"""The functions of C programs that move, reduce and multiply elements: the texts of `routines.c`."""

from __future__ import annotations

import re

from symgrad.program.native.internals import integer_bits
from symgrad.program.native.mathematics import texts

TYPES = {"d": "double", "f": "float", "b": "unsigned char", "l": "int64_t", "i": "int32_t"}
ROUTINES = texts("routines.c")


def routine_text(name: str, letter: str) -> str:
    """A routine for the type of a letter."""
    text = ROUTINES[name][1].replace("#", letter)
    text = text.replace("blas_int", f"int{integer_bits()}_t")
    text = text.replace("BLAS_GEMM", "0" if letter == "d" else "2").replace("BLAS_GEMV", "1" if letter == "d" else "3")
    return re.sub(r'\bT\b(?!")', TYPES[letter], text)
