"""Compiled objects on disk, in a private folder: written atomically, each with its notes, their size, and a check sum at its end."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["clear", "contents", "folder", "stored"]

LIMIT = 2**29  # bytes of objects in a folder
PART = 16  # a process counts the bytes of a folder again when it has written this part of the limit
SUFFIX = ".symgrad.so"
SIZE = 8  # bytes of the size of the notes
DIGEST = hashlib.sha256().digest_size


def folder() -> Path:
    """The folder of compiled objects: SYMGRAD_CACHE_DIR, or `symgrad` in XDG_CACHE_HOME or ~/.cache; a temporary one if that cannot be used."""
    chosen = chosen_folder()
    return chosen if chosen is not None and _is_private(chosen) else _temporary()


def chosen_folder() -> Path | None:
    """The folder that the environment names."""
    if given := os.environ.get("SYMGRAD_CACHE_DIR"):
        return Path(given)
    with contextlib.suppress(RuntimeError):  # a user without a home
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "symgrad"
    return None


def _is_private(path: Path) -> bool:
    """Whether a folder, made if it is missing, can be written by this user and by nobody else."""
    try:
        if not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
        found = path.stat()
    except OSError:
        return False
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and os.access(path, os.R_OK | os.W_OK | os.X_OK)


@functools.cache
def _temporary() -> Path:
    path = tempfile.mkdtemp(prefix="symgrad-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


def stored(key: str, build: Callable[[Path], bytes]) -> tuple[Path, bytes]:
    """The object with a key, and its notes.

    A missing or damaged one is built, by one process at a time: `build` writes it to a path, and returns the notes.
    """
    path = folder() / (key + SUFFIX)
    notes = _notes(path)
    if notes is not None:
        os.utime(path)  # the time of its last use
        return path, notes
    with _locked(path.with_suffix(".lock")):
        notes = _notes(path)
        if notes is None:
            part = path.with_suffix(f".{os.getpid()}.part")
            try:
                notes = build(part)
                with part.open("r+b") as file:
                    data = file.read()
                    tail = notes + len(notes).to_bytes(SIZE, "little")
                    file.write(tail + hashlib.sha256(data + tail).digest())
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
            _uncounted[path.parent] = _uncounted.get(path.parent, LIMIT) + path.stat().st_size
            if _uncounted[path.parent] > LIMIT // PART:
                _trim(path.parent)
                _uncounted[path.parent] = 0
    return path, notes


_uncounted: dict[Path, int] = {}
"""The bytes that this process has written to a folder since it counted all: to look at thousands of objects takes as long as to compile one."""


def _trim(path: Path) -> None:
    """Remove the objects of a folder that were used least recently, beyond the limit."""
    total = 0
    for x in sorted(path.glob("*" + SUFFIX), key=lambda x: x.stat().st_mtime_ns, reverse=True):
        total += x.stat().st_size
        if total > LIMIT:
            x.unlink(missing_ok=True)


def _notes(path: Path) -> bytes | None:
    """The notes of an object; None if it is not there as it was written, since to load a truncated one would end the process."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    end = len(data) - DIGEST
    if end < SIZE or hashlib.sha256(memoryview(data)[:end]).digest() != data[end:]:
        return None
    size = int.from_bytes(data[end - SIZE:end], "little")
    return data[end - SIZE - size:end - SIZE]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    import fcntl  # is missing on Windows, where this back end is not used

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def contents(path: Path) -> list[Path]:
    """The files of the store in a folder."""
    return sorted(x for x in path.glob("*") if x.name.endswith((SUFFIX, ".lock", ".part"))) if path.is_dir() else []


def clear(path: Path) -> list[Path]:
    """Remove the files of the store from a folder, and return their paths."""
    out = contents(path)
    for x in out:
        x.unlink(missing_ok=True)
    return out
