"""The compiler of the user's machine, and the objects that it makes."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from symgrad.program.native.mathematics import libraries, vector_functions
from symgrad.program.native.nodes import Unsupported
from symgrad.program.native.store import stored

__all__ = ["compiled", "find_compiler"]

CANDIDATES = ("cc", "clang", "gcc")
# NaN, infinities, signed zeros and the order of operations are those of NumPy: products and sums are not fused, and nothing is reassociated.
FLAGS = ("-O2", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-w",
         "-x", "c")
SECONDS = 300


def find_compiler() -> list[str] | None:
    """The command of the compiler: that in the environment variable CC, or the first of cc, clang and gcc. None if there is none."""
    if sys.platform == "win32":
        return None
    for command in (os.environ.get("CC"), *CANDIDATES):
        words = shlex.split(command) if command else []
        if words and (path := shutil.which(words[0])):
            return [path, *words[1:]]
    return None


def compiled(key: bytes, write: Callable[[], tuple[str, bytes]]) -> tuple[ctypes.CDLL, bytes]:
    """The object with a key, and its notes: found on disk, or compiled for this machine from the text that `write` returns with the notes."""
    command = find_compiler()
    if command is None:
        raise Unsupported("no C compiler was found; CC may name one")
    whole = repr((key, FLAGS, vector_functions(), _identity(command), _cpu()))

    def build(path: Path) -> bytes:
        source, notes = write()
        for machine in (["-march=native"], []):  # some compilers do not know the option
            try:
                done = subprocess.run([*command, *FLAGS, *machine, "-o", str(path), "-", *libraries(source)], input=source.encode(),
                                      capture_output=True, timeout=SECONDS)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise Unsupported(f"the compiler {command[0]} failed: {error}") from None
            if not done.returncode:
                return notes
        raise Unsupported(f"the compiler {command[0]} failed: {done.stderr.decode(errors='replace').strip()[:2000]}")

    path, notes = stored(hashlib.sha256(whole.encode()).hexdigest()[:40], build)
    try:
        return ctypes.CDLL(str(path)), notes
    except OSError as error:
        raise Unsupported(f"the compiled object cannot be used: {error}") from None


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
