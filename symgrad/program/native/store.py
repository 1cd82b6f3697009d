"""Compiled objects on disk: in a folder of the user alone, written atomically, each with its notes, the key that it was built for, and a check sum.

An object is code that runs when it is loaded. So what another user could have written is never read: a folder or a file that is not owned by this
user, that others may write, or that is a link or no regular file, is left alone, with a warning, and a temporary folder takes its place.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import hashlib
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from symgrad.system.restoring import restored

LIMIT = 2**29  # bytes of files in a folder
PART = 16  # a process counts the bytes of a folder again when it has written this part of the limit
SUFFIX, LOCK, UNFINISHED = ".symgrad.so", ".lock", ".part"
SIZE = 8  # bytes of the size of the notes
DIGEST = hashlib.sha256().digest_size
OTHERS = stat.S_IWGRP | stat.S_IWOTH
OPEN = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # of no link, and without waiting for the other end of a pipe


class Untrusted(OSError):
    """The reason why a file or a folder is left alone."""


def folder() -> Path:
    """The folder of compiled objects: SYMGRAD_CACHE_DIR, or `symgrad` in XDG_CACHE_HOME or ~/.cache; a temporary one if that cannot be used."""
    chosen = chosen_folder()
    if chosen is None:
        return _temporary()
    try:
        return _private(chosen)
    except OSError as error:
        warn_once(str(chosen), f"compiled programs are kept in a temporary folder, and not in {chosen}: {error.strerror or error}. Another folder "
                                "may be named by the environment variable SYMGRAD_CACHE_DIR")
        return _temporary()


def chosen_folder() -> Path | None:
    """The folder that the environment names, as an absolute path."""
    if given := os.environ.get("SYMGRAD_CACHE_DIR"):
        return Path(given).expanduser().absolute()
    with contextlib.suppress(RuntimeError):  # a user without a home
        base = os.environ.get("XDG_CACHE_HOME", "")
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "symgrad"  # a relative one is no valid setting
    return None


def _private(path: Path) -> Path:
    """The folder, made if it is missing, by a path without links. Raises OSError unless this user alone can change what that names.

    A link on the given path may lead somewhere else at any time, if it is another user's; the path that is returned is the one that was looked at.
    """
    if "$" in str(path) + os.path.realpath(path):
        raise Untrusted(errno.EINVAL, "the loader of the system replaces $ in a path")
    missing = [p for p in (path, *path.parents) if not os.path.lexists(p)]
    for p in reversed(missing):
        with contextlib.suppress(FileExistsError):
            p.mkdir(0o700)
            p.chmod(0o700)  # whatever the umask
    if path.is_symlink():
        raise Untrusted(errno.ENOTDIR, "it is a link")
    path = Path(os.path.realpath(path))
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise Untrusted(errno.ENOTDIR, "it is no folder")
    if reason := _shared(found):
        raise Untrusted(errno.EPERM, reason)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise Untrusted(errno.EACCES, "it cannot be read and written")
    for parent in path.parents:
        state = parent.lstat()
        if state.st_uid not in (0, os.geteuid()) or state.st_mode & OTHERS and not state.st_mode & stat.S_ISVTX or not stat.S_ISDIR(state.st_mode):
            raise Untrusted(errno.EPERM, f"others may replace it, for {parent} {_shared(state) or 'belongs to another user'}".replace(" it ", " "))
    return path


def _shared(found: os.stat_result) -> str:
    """Why a file or a folder is not this user's alone; empty if it is."""
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    return "others may write to it" if found.st_mode & OTHERS else ""


@functools.cache
def _temporary() -> Path:
    path = tempfile.mkdtemp(prefix="symgrad-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


_warned: set[str] = set()


def warn_once(place: str, message: str) -> None:
    """Warn of what is wrong with a folder or a compiler, once in a process."""
    if place not in _warned:
        _warned.add(place)
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def _opened(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a regular file that is this user's alone. Raises OSError for another."""
    try:
        number = os.open(path, flags | OPEN, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Untrusted(errno.ELOOP, "it is a link") from None
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise Untrusted(error.errno, "it is no regular file") from None
        raise
    try:
        found = os.fstat(number)
        if reason := "it is no regular file" if not stat.S_ISREG(found.st_mode) else _shared(found):
            raise Untrusted(errno.EPERM, reason)
    except BaseException:
        os.close(number)
        raise
    return number


def stored(key: str, build: Callable[[Path], bytes]) -> tuple[Path, bytes]:
    """The object with a key, and its notes.

    A missing or damaged one is built, by one process at a time: `build` writes it to a path, and returns the notes.
    """
    place = folder()
    try:
        return _stored_in(place, key, build)
    except Untrusted as error:
        warn_once(str(place), f"a compiled program is kept in a temporary folder, for a file in {place} is left alone: {error.strerror}. "
                               "`symgrad cache --clear` removes the files that compiled programs are kept in")
        return _stored_in(_temporary(), key, build)


def _stored_in(place: Path, key: str, build: Callable[[Path], bytes]) -> tuple[Path, bytes]:
    path = place / (key + SUFFIX)
    notes = _notes(path, key)
    if notes is not None:
        os.utime(path)  # the time of its last use
        return path, notes
    with _locked(place / (key + LOCK)):
        notes = _notes(path, key)
        if notes is None:
            part = place / f"{key}.{os.getpid()}{UNFINISHED}"
            try:
                notes = build(part)
                os.chmod(part, 0o600)  # the compiler makes it by the umask of the process
                number = _opened(part, os.O_RDWR)
                with open(number, "r+b") as file:
                    data = file.read()
                    tail = notes + len(notes).to_bytes(SIZE, "little")
                    file.write(tail + _sum(data, tail, key))
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
            _uncounted[place] = _uncounted.get(place, LIMIT) + path.stat().st_size
            if _uncounted[place] > LIMIT // PART:
                _trim(place)
                _uncounted[place] = 0
    return path, notes


_uncounted: dict[Path, int] = {}
"""The bytes that this process has written to a folder since it counted all: to look at thousands of objects takes as long as to compile one."""


def _trim(place: Path) -> None:
    """Remove what killed processes have left in a folder, and the objects that were used least recently, beyond the limit."""
    for path in place.glob(f"*{UNFINISHED}"):
        with contextlib.suppress(OSError), _locked(place / (path.name.split(".")[0] + LOCK), wait=False):  # nobody builds it
            path.unlink(missing_ok=True)
    for path in place.glob(f"*{LOCK}"):
        with contextlib.suppress(OSError), _locked(path, wait=False):
            pass  # which removes it
    total, found = 0, []
    for path in contents(place):
        with contextlib.suppress(OSError):  # another process has removed it
            state = path.lstat()
            found.append((state.st_mtime_ns, state.st_size, path))
    for _, size, path in sorted(found, reverse=True):
        total += size
        if total > LIMIT and path.name.endswith(SUFFIX):
            path.unlink(missing_ok=True)


def _sum(data: bytes | memoryview, tail: bytes, key: str) -> bytes:
    out = hashlib.sha256(data)
    out.update(tail)
    out.update(key.encode())
    return out.digest()


def _notes(path: Path, key: str) -> bytes | None:
    """The notes of an object. None if it is not there as it was written for this key: to load a truncated one, or another, would end the process."""
    try:
        number = _opened(path)
    except FileNotFoundError:
        return None
    with open(number, "rb") as file:
        data = file.read()
    end = len(data) - DIGEST
    if end < SIZE:
        return None
    size = int.from_bytes(data[end - SIZE:end], "little")
    start = end - SIZE - size
    if start < 0 or _sum(memoryview(data)[:start], data[start:end], key) != data[end:]:
        return None
    return data[start:end - SIZE]


@contextlib.contextmanager
def _locked(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file, which is removed at the end. Raises BlockingIOError if another process has it and `wait` is false."""
    import fcntl  # is missing on Windows, where this back end is not used

    while True:
        file = open(_opened(path, os.O_RDWR | os.O_CREAT), "rb")
        with restored(file.close):  # an interrupt that left it open would leave it locked, and this process would wait for itself
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_at(file.fileno(), path):
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return


def _is_at(number: int, path: Path) -> bool:
    """Whether an open file is still the one with a path, and was not removed while this process waited for it."""
    try:
        return os.path.samestat(os.fstat(number), path.lstat())
    except FileNotFoundError:
        return False


def contents(place: Path) -> list[Path]:
    """The files of the store in a folder."""
    return sorted(x for x in place.glob("*") if x.name.endswith((SUFFIX, LOCK, UNFINISHED))) if place.is_dir() else []


def sizes(place: Path) -> dict[Path, int]:
    """The files of the store in a folder with their bytes, but for those that another process removes meanwhile."""
    out = {}
    for path in contents(place):
        with contextlib.suppress(FileNotFoundError):
            out[path] = path.lstat().st_size
    return out


def clear(place: Path) -> list[Path]:
    """Remove the files of the store from a folder, and return their paths."""
    out = contents(place)
    for x in out:
        x.unlink(missing_ok=True)
    return out
