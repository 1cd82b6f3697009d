"""`device`, `layout` and `memory_format` with PyTorch's names; the only supported device is the CPU."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import Any

from symgrad.errors import NO_CUDA
from symgrad.system.limits import DEVICE_LENGTH

TYPES = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy", "vulkan", "mps", "meta",
         "hpu", "mtia", "privateuseone")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class device:
    """A device of tensors: a type such as "cpu" or "cuda", and an optional index.

    Any device can be named, compared and printed; tensors can be created on the CPU only. As a context manager it sets the default device.

    Raises RuntimeError for an invalid device string, TypeError for arguments other than a string, a device or an index.

    >>> device("cuda:1")
    device(type='cuda', index=1)
    >>> device("cpu") == device("cpu:0")
    False
    """

    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None):
        if isinstance(type, int) and not isinstance(type, bool):
            raise RuntimeError(f"device: the index {type} needs an accelerator, and there is none. Write 'cpu'.")
        if not isinstance(type, (device, str)) or not isinstance(index, int | None) or isinstance(index, bool):
            raise TypeError(f"device: got {type!r} and {index!r}. Give a device, a string, or a string and an index.")
        kind, number = _parse(type) if isinstance(type, str) else (type.type, type.index)
        if index is not None:
            if number is not None or index < 0:
                raise RuntimeError(f"device: the index {index} of {type}. Give one index, from 0 on.")
            number = index
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", number)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"

    def __enter__(self) -> device:
        _defaults.stack = [*_defaults.stack, self]
        return self

    def __exit__(self, *exception: Any) -> None:
        _defaults.stack = _defaults.stack[:-1]


def _parse(text: str) -> tuple[str, int | None]:
    """The type and the index of a device string."""
    found = None if len(text) > DEVICE_LENGTH else re.fullmatch(r"([a-z_]+)(?::(0|[1-9][0-9]*))?", text)
    if found is None or found[1] not in TYPES:
        raise RuntimeError(f"device: {text[:DEVICE_LENGTH]!r} is no device. Write one of {', '.join(TYPES)}, or one with an index, as cuda:0.")
    return found[1], None if found[2] is None else int(found[2])


CPU = device("cpu")


class _Defaults(threading.local):
    """The default device of a thread, and a stack of the devices of the `with` blocks it is in."""

    base: device = CPU
    stack: list[device] = []


_defaults = _Defaults()


def get_default_device() -> device:
    """The device on which new tensors are created.

    >>> get_default_device()
    device(type='cpu')
    """
    return _defaults.stack[-1] if _defaults.stack else _defaults.base


def set_default_device(device: Any) -> None:
    """Set the default device of this thread; None is the CPU. Creating a tensor on an unavailable device raises."""
    _defaults.base = CPU if device is None else _device(device)


_device = device


def check_cpu(where: Any = None) -> None:
    """Check that a device is the CPU; None is the default device.

    Raises AssertionError, as torch does, for CUDA; RuntimeError for other devices.

    >>> check_cpu("cuda")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    AssertionError: Torch not compiled with CUDA enabled: symgrad computes with NumPy on the CPU; use device="cpu" instead of "cuda", or ask ...
    """
    if where is None and not _defaults.stack and _defaults.base is CPU:
        return
    where = get_default_device() if where is None else _device(where)
    if where.type != "cpu":
        raise unavailable_error(where)


def unavailable_error(where: device) -> Exception:
    """The error for an unavailable device, with the remedy."""
    ask = f", or ask torch.{where.type}.is_available() first" if where.type in ("cuda", "mps", "xpu") else ""
    advice = f"symgrad computes with NumPy on the CPU; use device=\"cpu\" instead of \"{where}\"{ask}"
    if where.type in ("cuda", "xpu"):
        return AssertionError(f"{NO_CUDA.format(where.type.upper())}: {advice}")
    return RuntimeError(f"device: there are no {where.type} devices: {advice}")


class _NamedConstant:
    """A named constant with torch's repr."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return _named, (self.name,)


class layout(_NamedConstant):
    """The layout of tensors in memory; `strided` is the only one."""


class memory_format(_NamedConstant):
    """The order of the elements of a new tensor: `contiguous_format`, `preserve_format`, and two for images."""


def _named(name: str) -> _NamedConstant:
    return (LAYOUTS | FORMATS)[name]


LAYOUTS = {name: layout(name) for name in ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")}
FORMATS = {name: memory_format(name) for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")}
