"""Reading the files of `symgrad.save`: every field is checked before it is used, and every size before memory is taken for it."""

from __future__ import annotations

import io
import math
import re
import struct
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from symgrad.dtypes.dtype import DTYPES
from symgrad.engine.tensor import Size, Tensor
from symgrad.factories.factory import new_leaf
from symgrad.layouts.devices import device

if TYPE_CHECKING:
    import zipfile

STRUCTURE, VERSION = "structure.json", 1
SUBCLASSES = ("Parameter", "Buffer")
CHUNK = 2**20  # bytes that are read at once
UNCOMPRESSED = 0  # the method of compression
DESCRIPTOR = 24  # the most bytes between two members, which repeat sizes and checksum
HEADER = re.compile(r"\{'descr': '([<>|]\w\d{1,2})', 'fortran_order': False, 'shape': \(((?:\d{1,19},)?|\d{1,19}(?:, \d{1,19}){1,63})\), \} *\n")
PICKLE = (": it is a pickle, as torch.save writes. Reading a pickle can run any code, so symgrad never does; read it with torch and give "
          "{name: tensor.numpy() for ...} to symgrad.save, or write it as safetensors or npz")
DAMAGED = (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError, NotImplementedError, OverflowError,
           RuntimeError, AssertionError, EOFError, struct.error, zlib.error)


class LoadError(RuntimeError, ValueError, EOFError):
    """What `load` raises for every file that `save` did not write, or that has changed since: the classes are those that torch and json raise."""


def read(stream: IO[bytes]) -> Any:
    """The object in a stream, which begins where the stream stands."""
    import json
    import zipfile

    try:
        start = stream.tell()
        end = stream.seek(0, io.SEEK_END)
        stream.seek(start)
    except (io.UnsupportedOperation, OSError) as error:
        raise io.UnsupportedOperation(f"load: {error}. Read the data into an io.BytesIO, and load from that") from None
    head = stream.read(8)
    stream.seek(start)
    if not head:
        raise LoadError("load: the file is empty" if end == start == 0 else "load: nothing follows where the file stands; call seek(0) first")
    if not head.startswith(b"PK"):
        raise LoadError("load: the file was not written by symgrad.save" + PICKLE * head.startswith(b"\x80"))
    try:
        with zipfile.ZipFile(stream) as archive:
            members = _members(archive, stream, start)
            document = json.loads(archive.read(members.pop(STRUCTURE)).decode(), object_pairs_hook=_distinct, parse_constant=_refused)
            check(type(document) is dict and {"format", "version", "object"} <= set(document), "the structure has no format and version")
            if document["format"] != "symgrad" or type(document["version"]) is not int or document["version"] != VERSION:
                raise LoadError(f"load: version {document['version']!r} of {document['format']!r} cannot be read, but version {VERSION}")
            check(len(document) == 3, "the structure has unknown fields")
            arrays = [_array(archive, members[f"{i}.npy"]) for i in range(len(members))]
            return _ArchiveReader(arrays).read(document["object"])
    except LoadError:
        raise
    except (zipfile.BadZipFile, *DAMAGED) as error:
        raise LoadError(f"load: the file is damaged ({type(error).__name__}: {error})") from error


def check(condition: bool, words: str) -> None:
    """Raise LoadError unless what holds for every file holds for this one."""
    if not condition:
        raise LoadError(f"load: the file is damaged: {words}")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    check(len(found) == len(pairs) > 0, "a field is given twice, or none is given")
    return found


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _members(archive: zipfile.ZipFile, stream: IO[bytes], start: int) -> dict[str, zipfile.ZipInfo]:
    """The members by their names; their bytes follow each other, so that no size is more than the file has."""
    members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    found = {member.orig_filename: member for member in members}
    if STRUCTURE not in found:
        raise LoadError("load: the file was not written by symgrad.save" + PICKLE * any(name.endswith(".pkl") for name in found))
    check(len(found) == len(members), "two members have one name")
    check(set(found) == {STRUCTURE, *(f"{i}.npy" for i in range(len(members) - 1))}, f"its members are not {STRUCTURE}, 0.npy, 1.npy, ...")
    check(members[0].header_offset == start, "it does not begin with its first member")
    ends = [member.header_offset for member in members[1:]] + [archive.start_dir]
    for member, end in zip(members, ends):
        check(not member.flag_bits & 1, f"{member.filename} is encrypted")
        check(member.compress_type == UNCOMPRESSED and member.compress_size == member.file_size, f"{member.filename} is compressed")
        stream.seek(member.header_offset)
        name, extra = struct.unpack("<26xHH", stream.read(30))
        after = member.header_offset + 30 + name + extra + member.file_size
        check(after <= end <= after + DESCRIPTOR, f"{member.filename} has not the size that is declared")
    return found


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """An array in NumPy's format, of one of our dtypes."""
    with archive.open(member) as stream:
        magic = stream.read(10)
        length = int.from_bytes(magic[8:], "little")
        header = HEADER.fullmatch(stream.read(length).decode("latin-1")) if magic[:8] == b"\x93NUMPY\x01\x00" else None
        if header is None:
            raise LoadError(f"load: the file is damaged: {member.filename} has no header of an array of numbers")
        dtype = np.dtype(header[1])
        native = dtype.newbyteorder("=")
        check(native in STORED, f"{member.filename} has dtype {dtype}")
        shape = tuple(int(n) for n in header[2].replace(",", " ").split())
        check(math.prod(shape) * dtype.itemsize == member.file_size - 10 - length, f"{member.filename} has not the size of its shape {list(shape)}")
        out = np.empty(shape, dtype)
        memory, position = out.reshape(-1).view(np.uint8), 0
        while position < memory.size:
            chunk = stream.read(min(CHUNK, memory.size - position))
            check(bool(chunk), f"{member.filename} is truncated")
            memory[position:position + len(chunk)] = np.frombuffer(chunk, np.uint8)
            position += len(chunk)
    return out if dtype == native else out.astype(native)


def stored_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of an array in a file: NumPy's format has no name for bfloat16."""
    return np.dtype(np.uint16) if dtype.kind == "V" else dtype


STORED = {stored_dtype(dtype.numpy) for dtype in DTYPES.values()}


def _text(x: Any) -> str:
    check(type(x) is str, "a text is missing")
    return x


def _not_finite(x: Any) -> float:
    check(x in ("inf", "-inf", "nan"), "a number is not finite and has no name")
    return float(x)


def _complex(x: Any) -> complex:
    check(type(x) is list and len(x) == 2, "a complex number has not two parts")
    return complex(float(_text(x[0])), float(_text(x[1])))


SIMPLE: dict[str, Callable[[Any], Any]] = {
    "float": _not_finite, "int": lambda x: int(_text(x), 16), "complex": _complex, "dtype": lambda x: DTYPES[_text(x)],
    "device": lambda x: device(_text(x)), "bytes": lambda x: bytes.fromhex(_text(x))}
CONTAINERS: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "size": Size, "set": set, "frozenset": frozenset}
DICTIONARIES: dict[str, type[dict[Any, Any]]] = {"dict": dict, "ordered": OrderedDict, "counter": Counter}
TENSOR = {"memory", "dtype", "shape", "offset", "strides", "requires_grad", "symbol", "class"}


class _ArchiveReader:
    """A reader of objects from JSON values."""

    def __init__(self, arrays: list[np.ndarray]):
        self.arrays, self.tensors = arrays, list[Tensor]()

    def read(self, x: Any) -> Any:
        if isinstance(x, list):
            return [self.read(v) for v in x]
        if not isinstance(x, dict):
            return x
        (kind, content), *rest = x.items()
        check(not rest or set(x) == {"ordered", "metadata"}, f"an object has the fields {list(x)}")
        if kind in DICTIONARIES:
            return self.dictionary(x, kind, content)
        if kind in CONTAINERS:
            check(type(content) is list, f"a {kind} has no elements")
            found = CONTAINERS[kind]([self.read(v) for v in content])
            check(len(found) == len(content), f"a {kind} has an element twice")
            check(kind != "size" or all(type(n) is int for n in found), "a size is not an integer")
            return found
        if kind == "tensor":
            return self.tensor(content)
        if kind in ("array", "number"):
            check(type(content) is dict and set(content) <= {"memory", "dtype", "shape", "offset", "strides"}, "an array has unknown fields")
            array = self.array(content)
            check(kind == "array" or not array.ndim, "a number has dimensions")
            return array if kind == "array" else array[()]
        check(kind in SIMPLE, f"it has objects of the kind {kind!r}")
        return SIMPLE[kind](content)

    def dictionary(self, x: dict[str, Any], kind: str, content: Any) -> dict[Any, Any]:
        check(type(content) is list and all(type(pair) is list and len(pair) == 2 for pair in content), "a dict has no pairs")
        pairs = [(self.read(k), self.read(v)) for k, v in content]
        found: Any = DICTIONARIES[kind](dict(pairs))
        check(len(found) == len(pairs), "a dict has a key twice")
        if "metadata" in x:
            found._metadata = self.read(x["metadata"])
        return found

    def array(self, x: dict[str, Any]) -> np.ndarray:
        number, dtype, shape = x["memory"], DTYPES[_text(x["dtype"])].numpy, x["shape"]
        check(type(number) is int and 0 <= number < len(self.arrays), f"there is no memory {number!r}")
        check(_integers(shape) and all(n >= 0 for n in shape), f"{shape!r} is no shape")
        root, size = self.arrays[number], math.prod(shape)
        check(root.dtype in (dtype, stored_dtype(dtype)), f"memory {number} has dtype {root.dtype}, not {dtype}")
        if root.dtype != dtype:
            root = self.arrays[number] = root.view(dtype)
        if "strides" not in x:
            check("offset" not in x and size == root.size, f"memory {number} has {root.size} elements, not the shape {shape!r}")
            return root if root.shape == tuple(shape) else root.reshape(shape)
        offset, strides = x.get("offset"), x["strides"]
        check(_integers(strides) and len(strides) == len(shape) and _integers([offset]) and size * dtype.itemsize < 2**63,
              "strides without a meaning")
        reached = [(n - 1) * stride for n, stride in zip(shape, strides)]
        low, high = offset + sum(n for n in reached if n < 0), offset + sum(n for n in reached if n > 0)
        check(size > 0 and 0 <= low and high < root.size, f"an array reaches beyond memory {number}")
        return np.ndarray(tuple(shape), dtype, root, offset * dtype.itemsize, tuple(n * dtype.itemsize for n in strides))

    def tensor(self, x: Any) -> Tensor:
        if type(x) is int:
            check(0 <= x < len(self.tensors), f"there is no tensor {x}")
            return self.tensors[x]
        check(type(x) is dict and set(x) <= TENSOR, "a tensor has unknown fields")
        array, requires_grad = self.array(x), x.get("requires_grad", False)
        check(type(requires_grad) is bool, "requires_grad is not a bool")
        out = new_leaf(array if array.ndim or "strides" in x else array[()], requires_grad, _text(x["symbol"]) if "symbol" in x else None)
        if "class" in x:
            from symgrad import nn  # only files with modules need it

            check(x["class"] in SUBCLASSES, f"a tensor has the class {x['class']!r}")
            out = nn.Parameter(out, requires_grad) if x["class"] == "Parameter" else nn.Buffer(out)
        self.tensors.append(out)
        return out


def _integers(values: Any) -> bool:
    return type(values) is list and len(values) <= 64 and all(type(n) is int for n in values)
