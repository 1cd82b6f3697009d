"""Files that are written whole or not at all: a temporary file in the same folder takes the place of the old one when it is complete."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from typing import IO, Any

fcntl: Any = None  # on Windows, where an open file can be neither removed nor replaced
with contextlib.suppress(ImportError):
    import fcntl


def write_whole(path: str, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file with `write`, which is called with a stream.

    A regular file is replaced when the new one is complete and on the disk, and keeps its mode; a new file has the mode that the umask gives. A
    symbolic link is followed: its file is replaced, and the link stays. Devices and FIFOs are written into. What processes that were killed have
    left of this file is removed.

    Raises IsADirectoryError for a folder, RuntimeError for a missing folder, and OSError for sockets and where the system refuses.
    """
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    if not os.path.basename(path) or old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, "save: this is a folder; give the path of a file", path)
    if old is not None and stat.S_ISSOCK(old.st_mode):
        raise OSError(errno.ENXIO, "save: this is a socket; give the path of a file, or the file object of a connection", path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(path, "wb") as stream:
            write(stream)
        return
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder if os.path.islink(path) else os.path.dirname(path)} does not exist.")
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    prefix = f".symgrad-{hashlib.sha256(os.fsencode(os.path.basename(target))).hexdigest()[:16]}-"
    _remove_abandoned(folder, prefix)
    _replace(target, os.path.join(folder, prefix), old, write)
    _synchronize(folder)


def _replace(target: str, prefix: str, old: os.stat_result | None, write: Callable[[IO[bytes]], None]) -> None:
    stream: Any = None
    temporary, mode = "", 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o700
    try:
        while not os.path.exists(temporary):  # again if another process took the file for abandoned before it was locked
            if stream is not None:
                stream.close()
            temporary = prefix + secrets.token_hex(8)
            stream = open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode))
            _lock(stream)
        write(stream)
        stream.flush()
        if old is not None and hasattr(os, "fchown"):
            with contextlib.suppress(PermissionError):
                os.fchown(stream.fileno(), old.st_uid, old.st_gid)
            os.fchmod(stream.fileno(), stat.S_IMODE(old.st_mode))
        os.fsync(stream.fileno())
        if fcntl is None:
            stream.close()
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        if stream is not None:
            stream.close()


def _lock(stream: IO[bytes]) -> None:
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks: there nobody takes a file for abandoned
            fcntl.flock(stream, fcntl.LOCK_EX)


def _remove_abandoned(folder: str, prefix: str) -> None:
    """Remove the files with a prefix that no process is writing."""
    with os.scandir(folder) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(prefix) and entry.is_file(follow_symlinks=False)]
    for path in found:
        with contextlib.suppress(OSError):  # another process writes or has removed it
            if fcntl is None:
                os.unlink(path)
                continue
            with open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)


def _synchronize(folder: str) -> None:
    """Put the names in a folder on the disk."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system whose folders need none
            raise
    finally:
        os.close(handle)
