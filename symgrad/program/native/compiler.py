"""The compiler of the user's machine, and the objects that it makes."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import marshal
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from symgrad.layouts.strides import Geometry
from symgrad.program.native.internals import integer_bits
from symgrad.program.native.mathematics import libraries, vector_functions
from symgrad.program.native.nodes import Unsupported, filling, selections
from symgrad.program.native.store import stored, warn_once
from symgrad.program.program import Operand, Program

CANDIDATES = ("cc", "clang", "gcc")
# NaN, infinities, signed zeros and the order of operations are those of NumPy: products and sums are not fused, and nothing is reassociated.
FLAGS = ("-O2", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-w",
         "-x", "c")
LONG, FLAGS_OF_LONG = 200_000, ("-fno-ivopts",)  # characters of text, and what is left out there: it takes half of the time and gains nothing
SECONDS = 120


def find_compiler() -> list[str] | None:
    """The command of the compiler: that in the environment variable CC, or the first of cc, clang and gcc. None if there is none."""
    if sys.platform == "win32":
        return None
    given = os.environ.get("CC")
    for command in (given, *CANDIDATES):
        try:
            words = shlex.split(command) if command else []
        except ValueError as error:
            warn_once(str(command), f"CC cannot be read as a command ({error}): {command!r}. Programs run by NumPy")
            return None
        if words and (path := shutil.which(words[0])):
            return [path, *words[1:]]
        if words and command is given:
            warn_once(words[0], f"CC names no program that can be run: {given!r}. The first of {', '.join(CANDIDATES)} that is found serves")
    return None


def compiled(key: bytes, write: Callable[[], tuple[str, bytes]]) -> tuple[ctypes.CDLL, bytes]:
    """The object with a key, and its notes: found on disk, or compiled for this machine from the text that `write` returns with the notes."""
    command = find_compiler()
    if command is None:
        raise Unsupported("no C compiler was found; CC may name one")
    whole = repr((key, FLAGS, LONG, FLAGS_OF_LONG, vector_functions(), _identity(command), _cpu()))

    def build(path: Path) -> bytes:
        source, notes = write()
        flags = *FLAGS, *FLAGS_OF_LONG * (len(source) > LONG)
        for machine in (["-march=native"], []):  # some compilers do not know the option
            code, said = _run([*command, *flags, *machine, "-o", str(path), "-", *libraries(source)], source.encode())
            if not code and path.exists():
                if not _is_whole(path):
                    raise _failure(command, "what it has written is cut off")
                return notes
        raise _failure(command, said.decode(errors="replace").strip()[:2000] or f"its exit code is {code}")

    if command[0] in _hanging:
        raise Unsupported(f"the compiler {command[0]} has not ended within {SECONDS} s before")
    path, notes = stored(hashlib.sha256(whole.encode()).hexdigest()[:40], build)
    try:
        library = ctypes.CDLL(str(path))
        library.run  # noqa: B018  its one function
    except (OSError, AttributeError) as error:
        path.unlink(missing_ok=True)
        raise _failure(command, f"what it has written cannot be loaded: {error}") from None
    return library, notes


def _is_whole(path: Path) -> bool:
    """Whether a file, if it is an ELF object of 64 bits, has its last part, the table of sections: to load a truncated one ends the process."""
    with open(path, "rb") as file:
        header, size = file.read(64), os.fstat(file.fileno()).st_size
    if header[:5] != b"\x7fELF\x02":
        return True
    order: Any = "little" if header[5:6] == b"\x01" else "big"
    start, length, count = (int.from_bytes(header[i:j], order) for i, j in ((40, 48), (58, 60), (60, 62)))
    return len(header) == 64 and start + length * count <= size


_hanging: set[str] = set()


def _run(command: list[str], text: bytes) -> tuple[int, bytes]:
    """The exit code of a compiler, and what it printed. No process of it goes on after an error or an interrupt."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        raise _failure(command, str(error)) from None
    try:
        _, said = process.communicate(text, timeout=SECONDS)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stderr):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        if isinstance(error, subprocess.TimeoutExpired):
            _hanging.add(command[0])
            raise _failure(command, f"it has not ended within {SECONDS} s") from None
        raise
    return process.returncode, said


def _failure(command: list[str], reason: str) -> Unsupported:
    """The error for a compiler that does not work, after a warning."""
    message = f"the compiler {command[0]} failed: {reason}"
    warn_once(command[0], f"programs run by NumPy, for {message}")
    return Unsupported(message)


def _identity(command: list[str]) -> tuple:
    """What changes when a compiler is replaced: its file, with size and time. To ask it for its version would start a process."""
    path = os.path.realpath(command[0])
    found = os.stat(path)
    return (path, found.st_size, found.st_mtime_ns, *command[1:])


@functools.cache
def _cpu() -> str:
    """The processor, with the instructions that it has."""
    lines = []
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith(("model name", "flags", "Features", "CPU part")):
                    lines.append(line)
                if not line.strip():
                    break
    except OSError:
        lines.append(platform.processor())
    return "".join((platform.machine(), *lines))


# Keys of programs: what their C text depends on, which is found on disk by it without being written again
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
    """What changes with the files that the text is made of."""
    out = hashlib.sha256(f"{sys.version_info} {np.__version__}".encode())
    folder = Path(__file__).parent
    for path in sorted([*folder.glob("*.py"), *folder.glob("*.c"), folder.parent / "scalars.py"]):  # which has the composite words
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
