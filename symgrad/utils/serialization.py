"""`save` and `load`: tensors and plain structures of them in a zip of NumPy arrays and one JSON text; loading executes nothing.

The archive holds `structure.json`, and the memory of the tensors as `0.npy`, `1.npy`, ...; `numpy.load` opens it too.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from symgrad.engine.tensor import Size, Tensor, wrap
from symgrad.graph.node import Leaf
from symgrad.methods.copying import rebuilt
from symgrad.methods.layout import owner
from symgrad.types.devices import check_cpu, device
from symgrad.types.dtypes import DTYPES, DType, dtype_of

__all__ = ["load", "save"]

STRUCTURE, VERSION = "structure.json", 1
SUBCLASSES = ("Parameter", "Buffer")
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
        if x is None or type(x) in (bool, str, int):
            return x
        if type(x) is float:
            return x if math.isfinite(x) else {"float": repr(x)}
        if type(x) is complex:
            return {"complex": [repr(x.real), repr(x.imag)]}
        if type(x) in (list, tuple, Size, set, frozenset, dict, OrderedDict):
            return self.container(x, where)
        for kind, write in WRITE_SIMPLE:
            if isinstance(x, kind):
                return dict([write(x)])
        if isinstance(x, Tensor):
            return {"tensor": self.tensor(x, where)}
        if isinstance(x, (np.ndarray, np.generic)):
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
            found = {"dict" if type(x) is dict else "ordered": pairs}
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
        root = owner(array)
        if not root.flags.c_contiguous or root.dtype != array.dtype or not array.size:
            root = array = np.ascontiguousarray(array).reshape(array.shape)
        if id(root) not in self.memory_numbers:
            self.memory_numbers[id(root)] = len(self.arrays)
            self.arrays.append(root)
            self.references.append(root)
        out: dict[str, Any] = {"memory": self.memory_numbers[id(root)], "dtype": dtype.name, "shape": list(array.shape)}
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
READ_SIMPLE: dict[str, Callable[[Any], Any]] = {
    "float": float, "dtype": DTYPES.__getitem__, "device": device, "bytes": bytes.fromhex,
    "complex": lambda parts: complex(float(parts[0]), float(parts[1]))}
CONTAINERS: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "size": Size, "set": set, "frozenset": frozenset}


class _Reader:
    """A reader of objects from JSON values."""

    def __init__(self, arrays: list[np.ndarray]):
        self.arrays, self.tensors = arrays, list[Tensor]()

    def read(self, x: Any) -> Any:
        if isinstance(x, list):
            return [self.read(v) for v in x]
        if not isinstance(x, dict):
            return x
        (kind, content), *rest = x.items()
        if kind in ("dict", "ordered"):
            pairs = [(self.read(k), self.read(v)) for k, v in content]
            out: Any = dict(pairs) if kind == "dict" else OrderedDict(pairs)
            if rest and kind == "ordered":
                out._metadata = self.read(x["metadata"])
            return out
        if kind in CONTAINERS:
            return CONTAINERS[kind]([self.read(v) for v in content])
        if kind == "tensor":
            return self.tensor(content)
        if kind in ("array", "number"):
            array = self.array(content)
            return array if kind == "array" else array[()]
        return READ_SIMPLE[kind](content)

    def array(self, x: dict[str, Any]) -> np.ndarray:
        root, dtype, shape = self.arrays[x["memory"]], DTYPES[x["dtype"]].numpy, tuple(x["shape"])
        if root.dtype != dtype:
            root = self.arrays[x["memory"]] = root.view(dtype)
        if "strides" not in x:
            return root if root.shape == shape else root.reshape(shape)
        return np.ndarray(shape, dtype, root, x["offset"] * dtype.itemsize, tuple(n * dtype.itemsize for n in x["strides"]))

    def tensor(self, x: Any) -> Tensor:
        if isinstance(x, int):
            return self.tensors[x]
        cls: Any = Tensor
        if "class" in x:
            from symgrad import nn  # only files with modules need it

            cls = {name: getattr(nn, name) for name in SUBCLASSES}[x["class"]]
        array = self.array(x)
        value = array if array.ndim or "strides" in x else array[()]
        out = rebuilt(cls, value, x.get("requires_grad", False), x.get("symbol"))
        if cls is not Tensor:
            out = cls(wrap(array), x.get("requires_grad", False))
        self.tensors.append(out)
        return out


@contextlib.contextmanager
def _opened(f: Any) -> Iterator[IO[bytes]]:
    """The file to write: a given stream, or a new file that replaces the old one when it is complete."""
    import tempfile

    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write"):
            raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
        yield f
        return
    path = os.path.abspath(os.fspath(f))
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(f))} does not exist.")
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True,
         _disable_byteorder_record: bool = False) -> None:
    """Write tensors, or dicts, lists, tuples and sets of them and of numbers, strings and bytes, to a path or a file.

    Kept are values, dtypes, `requires_grad`, symbols, and which tensors share memory; graphs and gradients are not. A path is written
    completely or not at all. The arguments about pickle are accepted and have no effect.

    Raises TypeError for an object that such a file cannot hold, with its place; RuntimeError for a folder that does not exist.

    >>> import io, symgrad
    >>> file = io.BytesIO()
    >>> symgrad.save({"w": symgrad.ones(2), "step": 3}, file)
    >>> _ = file.seek(0)
    >>> symgrad.load(file)
    {'w': tensor([1., 1.]), 'step': 3}
    """
    import json
    import zipfile

    writer = _Writer()
    try:
        text = json.dumps({"format": "symgrad", "version": VERSION, "object": writer.write(obj, "the object")}, allow_nan=False)
    except RecursionError:
        raise ValueError("save: the structure is nested too deeply") from None
    with _opened(f) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for i, array in enumerate(writer.arrays):
            plain = array.view(np.uint16) if array.dtype.kind == "V" else array  # NumPy's format has no name for bfloat16
            with archive.open(zipfile.ZipInfo(f"{i}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, plain, allow_pickle=False)
        archive.writestr(zipfile.ZipInfo(STRUCTURE), text)


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None) -> Any:
    """Read what `save` wrote to a path or a file. Nothing in the file is executed, whatever its content and `weights_only` are.

    Raises RuntimeError for a file of another format, torch's included, since torch writes pickles; AssertionError or RuntimeError
    for a `map_location` that is not the CPU.
    """
    if isinstance(map_location, (str, device)):
        check_cpu(map_location)
    if not isinstance(f, (str, os.PathLike)) and not (hasattr(f, "seek") and hasattr(f, "read")):
        raise AttributeError(f"'{type(f).__name__}' object has no attribute 'seek'. You can only torch.load from a file that is seekable. Please "
                             f"pre-load the data into a buffer like io.BytesIO and try to load from it instead.")
    with open(f, "rb") if isinstance(f, (str, os.PathLike)) else contextlib.nullcontext(f) as stream:
        return _read(stream)


def _read(stream: IO[bytes]) -> Any:
    import json
    import zipfile

    start = stream.tell()
    head = stream.read(8)
    stream.seek(start)
    if not head:
        raise EOFError("load: the file is empty")
    if head.startswith(b"\x80") or not head.startswith(b"PK"):
        raise RuntimeError("load: the file was not written by symgrad.save" + (PICKLE if head.startswith(b"\x80") else ""))
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
            if STRUCTURE not in names:
                pickled = any(name.endswith(".pkl") for name in names)
                raise RuntimeError("load: the file was not written by symgrad.save" + PICKLE * pickled)
            document = json.loads(archive.read(STRUCTURE))
            if document.get("format") != "symgrad" or document.get("version") != VERSION:
                raise RuntimeError(f"load: this file has version {document.get('version')!r} of the format {document.get('format')!r}; this symgrad "
                                   f"reads version {VERSION}")
            count = sum(name.endswith(".npy") for name in names)
            arrays = [np.lib.format.read_array(io.BytesIO(archive.read(f"{i}.npy")), allow_pickle=False) for i in range(count)]
            return _Reader(arrays).read(document["object"])
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise RuntimeError(f"load: the file is damaged ({type(error).__name__}: {error})") from error


PICKLE = (": it is a pickle, as torch.save writes. Reading a pickle can run any code, so symgrad never does; read it with torch and give "
          "{name: tensor.numpy() for ...} to symgrad.save, or write it as safetensors or npz")
