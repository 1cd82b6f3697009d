"""Keys of programs: what their C text depends on, which is found on disk by it without being written again."""

from __future__ import annotations

import functools
import hashlib
import marshal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from symgrad.layouts.strides import Geometry
from symgrad.program.native.blas import integer_bits
from symgrad.program.native.nodes import Unsupported, filling, selections
from symgrad.program.program import Operand, Program

__all__ = ["program_key"]

PLAIN = frozenset((int, float, bool, str, type(None), type(Ellipsis)))


def program_key(program: Program) -> bytes:
    """A key that is equal for programs with the same text."""
    constants = [_constant(x) for x in program.constants]
    steps = [(s.name, s.ins, _plain(s.params) if s.params else (), s.shape, s.dtype.str) for s in program.steps]
    parts = _writer(), integer_bits(), [(x.shape, x.dtype.str) for x in program.inputs], constants, steps, program.outputs
    return marshal.dumps(parts, 2)  # the last version that writes equal values equally


def _constant(x: Any) -> Any:
    """What the text depends on: not the elements of an array, unless they are equal or select rows."""
    return (x.shape, x.dtype.str, repr(filling(x)), _plain(selections(x))) if isinstance(x, (np.ndarray, np.generic)) else _plain(x)


@functools.cache
def _writer() -> bytes:
    """What changes with the modules that write the text."""
    out = hashlib.sha256(f"{sys.version_info} {np.__version__}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        out.update(path.read_bytes())
    return out.digest()


def _plain(x: Any) -> Any:
    """A parameter as tuples of what `marshal` writes."""
    kind = type(x)
    if kind in PLAIN:
        return x
    if isinstance(x, (tuple, list)):
        return ("list" if kind is list else "tuple", *map(_plain, x))
    if kind is slice:
        return "slice", _plain(x.start), _plain(x.stop), _plain(x.step)
    if kind is Operand:
        return "operand", x.number
    if isinstance(x, (np.ndarray, np.generic)):
        return "array", x.shape, x.dtype.str, x.tobytes()
    if isinstance(x, (np.dtype, type)):
        return "dtype", np.dtype(x).str
    if kind is Geometry:
        return "geometry", x.size, _plain(x.positions)
    raise Unsupported(f"a parameter of the type {kind.__name__}")
