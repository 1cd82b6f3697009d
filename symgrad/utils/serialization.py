"""`save` and `load`: tensors and plain structures of them in a zip of NumPy arrays and one JSON text; loading executes nothing.

The archive holds `structure.json`, and the memory of the tensors as `0.npy`, `1.npy`, ...; `numpy.load` opens it too.
"""

from __future__ import annotations

import errno
import functools
import io
import math
import os
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import DType, dtype_of
from symgrad.engine.tensor import Size, Tensor
from symgrad.graph.node import Leaf
from symgrad.layouts.devices import check_cpu, device
from symgrad.methods.layout import owner
from symgrad.system.atomic_write import write_whole
from symgrad.utils.archive import DICTIONARIES, STRUCTURE, SUBCLASSES, VERSION, LoadError, read, stored_dtype

__all__ = ["LoadError", "load", "save"]

LARGE, DAY = 0xFFFFFFFF, 0x21  # in a zip: a size that stands elsewhere, with 64 bits; the first of January 1980

Encoded = tuple[str, Any]


class _Writer:
    """A writer of objects as JSON values, which collects the arrays whose memory they need."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.memory_numbers: dict[int, int] = {}  # of memory, by the id of the array that owns it
        self.tensors: dict[int, int] = {}  # numbers of the tensors, by id
        self.references: list[Any] = []  # references, so that no id is reused
        self.enclosing: list[int] = []  # the containers around the current object

    def write(self, x: Any, where: str) -> Any:
        """The JSON value of an object; `where` is its place, for errors."""
        if x is None or type(x) in (bool, str) or type(x) is int and -2**63 <= x < 2**64:
            return x
        if type(x) is int:
            return {"int": hex(x)}  # Python limits the decimal digits that it reads
        if type(x) is float:
            return x if math.isfinite(x) else {"float": repr(x)}
        if type(x) is complex:
            return {"complex": [repr(x.real), repr(x.imag)]}
        if type(x) in (list, tuple, Size, set, frozenset, *DICTIONARIES.values()):
            return self.container(x, where)
        for kind, write in WRITE_SIMPLE:
            if isinstance(x, kind):
                return dict([write(x)])
        if isinstance(x, Tensor):
            return {"tensor": self.tensor(x, where)}
        if isinstance(x, np.generic) or type(x) in (np.ndarray, np.memmap):
            array = np.asarray(x)
            return {"array" if isinstance(x, np.ndarray) else "number": self.memory(array, _dtype(array, where))}
        raise TypeError(f"save: cannot store {type(x).__name__} at {where}; a file holds tensors, arrays, numbers, strings and bytes in dicts, "
                        f"lists, tuples and sets{_advice(x)}")

    def container(self, x: Any, where: str) -> Any:
        if id(x) in self.enclosing:
            raise ValueError(f"save: {where} contains itself; a file holds trees only")
        self.enclosing.append(id(x))
        if isinstance(x, dict):
            pairs = [[self.write(k, f"{where}, key {k!r}"), self.write(v, f"{where}[{k!r}]")] for k, v in x.items()]
            found = {next(kind for kind, cls in DICTIONARIES.items() if type(x) is cls): pairs}
            metadata = getattr(x, "_metadata", None)  # the metadata of a module's state_dict
            if metadata is not None:
                found["metadata"] = self.write(metadata, f"{where}._metadata")
        else:
            items = [self.write(v, f"{where}[{i}]") for i, v in enumerate(x)]
            found = items if type(x) is list else {type(x).__name__.lower(): items}  # type: ignore[assignment]
        self.enclosing.pop()
        return found

    def tensor(self, t: Tensor, where: str) -> Any:
        if id(t) in self.tensors:
            return self.tensors[id(t)]
        cls = type(t)
        if cls is not Tensor and (cls.__name__ not in SUBCLASSES or not cls.__module__.startswith("symgrad.nn")):
            raise TypeError(f"save: cannot store {cls.__name__} at {where}: of subclasses, only {' and '.join(SUBCLASSES)} can be read again; store "
                            f"x.as_subclass(symgrad.Tensor)")
        self.tensors[id(t)] = len(self.tensors)
        self.references.append(t)
        array = np.asarray(t._value)
        out = self.memory(array, _dtype(array, where))
        if t.requires_grad:
            out["requires_grad"] = True
        if isinstance(t._node, Leaf) and t._node.symbol is not None:
            out["symbol"] = str(t._node.symbol)
        if cls is not Tensor:
            out["class"] = cls.__name__
        return out

    def memory(self, array: np.ndarray, dtype: DType) -> dict[str, Any]:
        """The memory that an array is a view of, with its offset and strides."""
        root = owned = owner(array)
        if not root.flags.c_contiguous:  # of a dense array in another order of the axes the memory is that of one in row-major order
            root = root.transpose(sorted(range(root.ndim), key=lambda i: -root.strides[i]))
        if not root.flags.c_contiguous or root.dtype != array.dtype or not array.size:
            root = owned = array = np.ascontiguousarray(array).reshape(array.shape)
        if id(owned) not in self.memory_numbers:
            self.memory_numbers[id(owned)] = len(self.arrays)
            self.arrays.append(root)
            self.references.append(owned)
        out: dict[str, Any] = {"memory": self.memory_numbers[id(owned)], "dtype": dtype.name, "shape": list(array.shape)}
        if array is not root:
            start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
            out |= {"offset": start // array.itemsize, "strides": [n // array.itemsize for n in array.strides]}
        return out


def _dtype(array: np.ndarray, where: str) -> DType:
    try:
        return dtype_of(array.dtype)
    except TypeError:
        raise TypeError(f"save: cannot store an array of {array.dtype} at {where}; a file holds numbers and booleans") from None


def _advice(x: Any) -> str:
    if hasattr(x, "state_dict"):
        return f"; store its state_dict() and give that to load_state_dict of a new {type(x).__name__}"
    return "; store its parts" if hasattr(x, "__dict__") or isinstance(x, tuple) else ""


WRITE_SIMPLE: tuple[tuple[type, Callable[[Any], Encoded]], ...] = (
    (DType, lambda x: ("dtype", x.name)), (device, lambda x: ("device", str(x))), (bytes, lambda x: ("bytes", x.hex())))


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True,
         _disable_byteorder_record: bool = False) -> None:
    """Write tensors, or dicts, lists, tuples and sets of them and of numbers, strings and bytes, to a path or a file.

    Kept are values, dtypes, `requires_grad`, symbols, and which tensors share memory; graphs and gradients are not. The arguments about pickle are
    accepted and have no effect.

    A path is written completely or not at all: a new file takes the place of the old one, and its mode, when it is on the disk. A symbolic link
    stays, and its file is replaced; other names of the old file (hard links) keep the old content. Devices and FIFOs are written into. Of several
    threads or processes that save to one path at once, the content of one is there in the end. A file object is written from where it
    stands, needs no method but `write`, and may be left incomplete by an error.

    Raises TypeError for an object that such a file cannot hold, with its place, and for a file in text mode; RuntimeError for a folder that does
    not exist; OSError where the system does not let the file be written.

    >>> import io, symgrad
    >>> file = io.BytesIO()
    >>> symgrad.save({"w": symgrad.ones(2), "step": 3}, file)
    >>> _ = file.seek(0)
    >>> symgrad.load(file)
    {'w': tensor([1., 1.]), 'step': 3}
    """
    import json

    writer = _Writer()
    try:
        text = json.dumps({"format": "symgrad", "version": VERSION, "object": writer.write(obj, "the object")}, allow_nan=False)
    except RecursionError:
        raise ValueError("save: the structure is nested too deeply") from None

    members = [(f"{i}.npy", _plain(array)) for i, array in enumerate(writer.arrays)] + [(STRUCTURE, (text.encode(),))]
    if isinstance(f, (str, os.PathLike)):
        write_whole(os.fspath(f), lambda stream: _write_archive(stream, members))
    elif hasattr(f, "write"):
        _check_binary("save", f, "wb")
        _write_archive(f, members)
    else:
        raise AttributeError(f"save: {f!r} is no path and has no method write")


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None) -> Any:
    """Read what `save` wrote to a path or a file, from where it stands. Nothing in the file is executed, whatever its content is.

    Every size is compared with that of the file before memory is taken for it. `weights_only` and `mmap` are accepted and have no effect: no
    file holds more than tensors and plain structures, and all of it is read.

    Raises LoadError, which is a RuntimeError, a ValueError and an EOFError, for every file that `save` did not write or that has changed since,
    torch's included, since torch writes pickles; FileNotFoundError and OSError for a path that cannot be read; TypeError for a file in text mode;
    AssertionError or RuntimeError for a `map_location` that is not the CPU.
    """
    if isinstance(map_location, (str, device)):
        check_cpu(map_location)
    elif map_location is not None and not isinstance(map_location, dict) and not callable(map_location):
        raise TypeError(f"load: map_location is {map_location!r}; give a device, a string, a dict or a function, or leave it out")
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as stream:
            return read(stream)
    if mmap:
        raise ValueError("load: mmap=True needs a path")
    if not (hasattr(f, "seek") and hasattr(f, "read")):
        raise AttributeError(f"load: {f!r} is no path and has no methods seek and read. Read the data into an io.BytesIO")
    _check_binary("load", f, "rb")
    return read(f)


def _plain(array: np.ndarray) -> tuple[Any, ...]:
    """The header and the memory of a contiguous array in NumPy's format."""
    header = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(stored_dtype(array.dtype))
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": array.shape})
    return header.getvalue(), array.reshape(-1).view(np.uint8).data


def _write_archive(stream: Any, members: list[tuple[str, tuple[Any, ...]]]) -> None:
    """Write a zip of members that are not compressed, each in parts, front to back; its sizes have 64 bits.

    The writer of `zipfile` loses what a stream does not take at once, and completes the zip also after an error.
    """
    directory, position = [], 0
    for name, parts in members:
        size, checksum = sum(map(len, parts)), functools.reduce(lambda crc, part: zlib.crc32(part, crc), parts, 0)
        same = struct.pack("<HHHHHLLLHH", 45, 0, 0, 0, DAY, checksum, LARGE, LARGE, len(name), 20), name.encode()
        head = b"PK\x03\x04" + b"".join(same) + struct.pack("<HHQQ", 1, 16, size, size)
        directory.append(b"PK\x01\x02" + struct.pack("<H", 45) + same[0][:-2] + struct.pack("<HHHHLL", 28, 0, 0, 0, 0o600 << 16, LARGE) + same[1]
                         + struct.pack("<HHQQQ", 1, 24, size, size, position))
        for part in (head, *parts):
            _write_all(stream, part)
            position += len(part)
    listed, count = b"".join(directory), len(directory)
    _write_all(stream, listed
               + struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(listed), position)
               + struct.pack("<4sLQL", b"PK\x06\x07", 0, position + len(listed), 1)
               + struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, LARGE, LARGE, 0))


def _write_all(stream: Any, data: Any) -> None:
    """Write bytes to a stream that may take less than it is given."""
    while len(data):
        written = stream.write(data)
        if not isinstance(written, int) or written >= len(data):
            return
        if written <= 0:
            raise OSError(errno.EIO, "save: the file takes no more bytes")
        data = memoryview(data)[written:]


def _check_binary(name: str, f: Any, mode: str) -> None:
    if isinstance(f, io.TextIOBase) or isinstance(getattr(f, "mode", None), str) and hasattr(f, "encoding"):
        raise TypeError(f"{name}: the file is in text mode; open it with mode {mode!r}")
