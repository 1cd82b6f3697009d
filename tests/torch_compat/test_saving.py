"""A path is saved whole or not at all: symbolic links, devices, modes, interrupts, kills, and several that save at once."""

import io
import os
import socket
import stat
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import symgrad
from tests.support.interrupts import Interrupted
from tests.support.threads import run_in_threads

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links, modes and locks of POSIX")
OLD, NEW = symgrad.zeros(3), {"w": symgrad.ones(2, 3), "step": 3}


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "x.pt"
    symgrad.save(OLD, found)
    return found


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def described(path):
    return repr(symgrad.load(path))


def test_a_link_stays_and_its_file_is_replaced(path, tmp_path):
    (tmp_path / "inner").mkdir()
    link, second, hard = tmp_path / "link", tmp_path / "inner" / "second", tmp_path / "hard"
    link.symlink_to("inner/second")
    second.symlink_to("../x.pt")
    os.link(path, hard)
    symgrad.save(NEW, link)
    assert link.is_symlink() and second.is_symlink() and not path.is_symlink()
    assert described(path) == repr(NEW) and described(hard) == repr(OLD) and names(tmp_path / "inner") == ["second"]
    path.unlink()
    symgrad.save(NEW, str(link))
    assert described(path) == repr(NEW)
    link.unlink()
    link.symlink_to("nowhere/x.pt")
    with pytest.raises(RuntimeError, match="Parent directory .*/nowhere does not exist"):
        symgrad.save(NEW, link)
    second.unlink()
    second.symlink_to("second")
    with pytest.raises(OSError, match="symbolic links"):
        symgrad.save(NEW, second)


def test_modes_are_kept_and_new_files_have_that_of_the_umask(path, tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the mask belongs to the whole process"))
        symgrad.save(NEW, tmp_path / "new")
        for mode in (0o600, 0o640, 0o664, 0o4755):
            path.chmod(mode)
            symgrad.save(NEW, path)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_file_that_may_not_be_written_is_not_replaced(path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda at, mode: False)  # root may write everything
    with pytest.raises(PermissionError, match="Permission denied.*x.pt"):
        symgrad.save(NEW, path)
    assert described(path) == repr(OLD)


def test_devices_and_fifos_are_written_into(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    found = []
    reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
    reader.start()
    symgrad.save(NEW, fifo)
    reader.join()
    assert repr(symgrad.load(io.BytesIO(found[0]))) == repr(NEW) and stat.S_ISFIFO(fifo.stat().st_mode)
    symgrad.save(NEW, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    (tmp_path / "link").symlink_to("/dev/null")
    symgrad.save(NEW, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and names(tmp_path) == ["fifo", "link"]
    with pytest.raises(io.UnsupportedOperation, match="io.BytesIO"):
        ends = os.pipe()
        os.close(ends[1])
        with open(ends[0], "rb") as pipe:
            symgrad.load(pipe)


def test_folders_and_sockets_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for folder in ("folder", tmp_path, "x.pt/", ""):
        with pytest.raises(IsADirectoryError, match="give the path of a file"):
            symgrad.save(NEW, folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(OSError, match="this is a socket"):
            symgrad.save(NEW, "socket")
    with pytest.raises(ValueError, match="null"):
        symgrad.save(NEW, "a\0b")
    assert names(tmp_path) == ["folder", "socket"]


class Part(io.RawIOBase):
    """A stream that can neither seek nor flush at will, and takes at most seven bytes at once."""

    def __init__(self):
        self.content = b""

    def writable(self):
        return True

    def write(self, data):
        self.content += bytes(data[:7])
        return min(7, len(data))


def test_file_objects_need_no_method_but_write(tmp_path):
    class Writer:
        content = b""

        def write(self, data):
            self.content += bytes(data)

    expected = io.BytesIO()
    symgrad.save(NEW, expected)
    for file in (Part(), Writer()):
        symgrad.save(NEW, file)
        assert file.content == expected.getvalue()
    file = io.BytesIO()
    file.write(b"before")
    symgrad.save(NEW, file)
    with pytest.raises(symgrad.utils.serialization.LoadError, match=r"seek\(0\)"):
        symgrad.load(file)
    file.seek(6)
    assert repr(symgrad.load(file)) == repr(NEW)
    with open(tmp_path / "text", "w") as text:
        for file in (io.StringIO(), text):
            with pytest.raises(TypeError, match="text mode; open it with mode 'wb'"):
                symgrad.save(NEW, file)
    with open(tmp_path / "text") as text, pytest.raises(TypeError, match="text mode; open it with mode 'rb'"):
        symgrad.load(text)
    full = Part()
    full.write = lambda data: 0
    with pytest.raises(OSError, match="takes no more bytes"):
        symgrad.save(NEW, full)


@pytest.mark.sweep
def test_an_interrupt_at_any_line_leaves_a_whole_file_and_nothing_else(path, tmp_path):
    symgrad.save(NEW, tmp_path / "first")  # with all imports
    (tmp_path / "first").unlink()
    n, contents = 1, set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # an interrupt of the line that closes a file leaves that to the garbage collector
        while (run := Interrupted(lambda: symgrad.save(NEW, path), n)).at is not None:
            contents.add(described(path))
            assert names(tmp_path) == ["x.pt"] and run.raised, run.at
            symgrad.save(OLD, path)
            n += 3
    assert n > 100 and contents == {repr(OLD), repr(NEW)}


def test_errors_of_the_system_leave_the_old_file(path, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace", "fchmod"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, full)
            with pytest.raises(OSError, match="No space left"):
                symgrad.save(NEW, path)
        assert described(path) == repr(OLD) and names(tmp_path) == ["x.pt"]


def test_one_of_several_that_save_at_once_wins_whole(path, tmp_path):
    values = [symgrad.full((50, 50), float(i)) for i in range(4)]

    def saves(i):
        for _ in range(15):
            symgrad.save(values[i], path)
            assert len(np.unique(symgrad.load(path).numpy())) == 1

    run_in_threads(saves, len(values))
    assert names(tmp_path) == ["x.pt"]


KILLED = """
import os, signal, sys
import symgrad

folder = sys.argv[1]
path = os.path.join(folder, "x.pt")
values = [symgrad.full((size,), float(i)) for i, size in enumerate((300_000, 5, 100_000))]
contents, left = [], 0
for value in values:
    symgrad.save(value, path)
    contents.append(open(path, "rb").read())
for trial, name in enumerate(("fsync", "fchown", "fchmod", "replace")):
    child = os.fork()
    if not child:
        setattr(os, name, lambda *args: os.kill(os.getpid(), signal.SIGKILL))
        while True:
            for value in values:
                symgrad.save(value, path)
    os.waitpid(child, 0)
    contents.index(open(path, "rb").read())
    symgrad.load(path)
    left += len(os.listdir(folder)) - 1
    if trial % 2 == 0:
        symgrad.save(values[trial % 2], path)
        assert os.listdir(folder) == ["x.pt"], os.listdir(folder)
symgrad.save(values[0], path)
assert os.listdir(folder) == ["x.pt"], os.listdir(folder)
print(left)
"""


@pytest.mark.sweep
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    """A process saves again and again until it is killed, at each step of the system."""
    run = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, timeout=200)
    assert not run.returncode, run.stderr
    assert int(run.stdout) >= 4


def test_only_abandoned_files_of_the_same_target_are_removed(path, tmp_path, monkeypatch):
    others = ["y.pt", ".symgrad-0123456789abcdef-00", ".symgrad-note", "x.pt.tmp"]
    for name in others:
        (tmp_path / name).touch()
    during = []
    replace = os.replace

    def nested(source, target):
        """While a file is written, another one is saved to the same target."""
        monkeypatch.setattr(os, "replace", replace)
        during.append(os.path.exists(source))
        symgrad.save(OLD, path)
        during.append(os.path.exists(source))
        replace(source, target)

    monkeypatch.setattr(os, "replace", nested)
    symgrad.save(NEW, path)
    assert during == [True, True] and described(path) == repr(NEW) and names(tmp_path) == sorted([*others, "x.pt"])
