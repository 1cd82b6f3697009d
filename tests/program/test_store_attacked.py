"""The folder of compiled objects beside other users, killed processes and broken compilers: nothing that others could write is loaded."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import symgrad
from symgrad.program.native import Unsupported, compiler, find_compiler, native, store
from symgrad.program.program import Program
from tests.support.programs import Builder

pytestmark = pytest.mark.skipif(find_compiler() is None or sys.platform == "win32", reason="no C compiler was found")
X = np.arange(3.0)


@pytest.fixture(autouse=True)
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path / "objects"))
    monkeypatch.setattr(store, "_warned", set())
    monkeypatch.setattr(compiler, "_hanging", set())
    return tmp_path / "objects"


def program(number: float = 2.0) -> Program:
    b = Builder()
    return b.program(b.mul(b.input(X), number))


def run(number: float = 2.0) -> list[float]:
    return native(program(number))([X])[0].tolist()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027, 0o077, 0o777])
def test_files_and_folders_are_of_the_user_alone_whatever_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int) -> None:
    place = tmp_path / "new" / "objects"
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(place))
    before = os.umask(umask)
    try:
        assert run() == [0.0, 2.0, 4.0]
    finally:
        os.umask(before)
    assert [mode(p) for p in (place.parent, place)] == [0o700] * 2 and [mode(p) for p in place.iterdir()] == [0o600]


def foreign(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file to another user")
    os.chown(path, 12345, 12345)


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def writable_by_others(path: Path) -> None:
    path.chmod(0o602)


def writable_by_the_group(path: Path) -> None:
    path.chmod(0o620)


PLANTED = [foreign, linked, piped, replaced_by_a_folder, writable_by_others, writable_by_the_group]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("plant", PLANTED)
def test_a_file_that_others_could_have_written_is_not_loaded(objects: Path, plant) -> None:
    run()
    [path] = objects.iterdir()
    plant(path)
    before = path.lstat()
    with pytest.warns(RuntimeWarning, match="temporary folder.*left alone") as caught:
        for _ in range(2):
            assert run() == [0.0, 2.0, 4.0]
    assert len(caught) == 1
    assert path.lstat().st_ino == before.st_ino


def replaced_by_a_file(path: Path) -> None:
    path.rmdir()
    path.write_text("")


@pytest.mark.parametrize("plant", [foreign, linked, lambda path: path.chmod(0o720), lambda path: path.chmod(0o703), replaced_by_a_file])
def test_a_folder_that_others_could_have_written_is_not_used(objects: Path, plant) -> None:
    objects.mkdir(0o700)
    plant(objects)
    with pytest.warns(RuntimeWarning, match="temporary folder.*SYMGRAD_CACHE_DIR") as caught:
        for _ in range(2):
            assert run() == [0.0, 2.0, 4.0]
    assert len(caught) == 1 and mode(store.folder()) == 0o700 and (objects.is_file() or list(objects.iterdir()) == [])


def test_a_folder_within_one_that_others_may_change_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(shared / "mine"))
    with pytest.warns(RuntimeWarning, match="others may replace it"):
        run()
    shared.chmod(0o1777)  # as /tmp, where nobody can replace what is another's
    assert store.folder() == shared / "mine"


def test_links_on_the_way_are_followed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may change a link cannot change which folder is used after it was looked at."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir(0o700)
    link.symlink_to(real)
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(link / "objects"))
    assert run() == [0.0, 2.0, 4.0] and store.folder() == real / "objects" and len(list((real / "objects").iterdir())) == 1


def test_a_lock_that_is_no_file_does_not_hang(objects: Path) -> None:
    run()
    [path] = objects.iterdir()
    path.unlink()
    os.mkfifo(path.with_name(path.name.replace(store.SUFFIX, store.LOCK)), 0o600)
    with pytest.warns(RuntimeWarning, match="no regular file"):
        assert run() == [0.0, 2.0, 4.0]


@pytest.mark.sweep
@pytest.mark.parametrize("change", ["swapped", "overwritten"])
def test_an_object_is_that_of_its_key(objects: Path, change: str) -> None:
    run(2.0)
    [first] = objects.iterdir()
    run(3.0)
    [second] = [path for path in objects.iterdir() if path != first]
    one, other = first.read_bytes(), second.read_bytes()
    for path, data in ((first, other), (second, one if change == "swapped" else other)):
        path.unlink()
        path.write_bytes(data)
        path.chmod(0o600)
    assert [run(2.0), run(3.0)] == [[0.0, 2.0, 4.0], [0.0, 3.0, 6.0]]


PLANTED_TEXT = """
#include <stdlib.h>
__attribute__((constructor)) static void planted(void) { system("touch PLACE"); }
long run(char **frame, char **objects) { return 0; }
"""


@pytest.mark.sweep
def test_the_constructor_of_a_planted_object_does_not_run(objects: Path, tmp_path: Path) -> None:
    run()
    [path] = objects.iterdir()
    command = find_compiler()
    assert command is not None
    path.unlink()
    subprocess.run([*command, *compiler.FLAGS, "-o", str(path), "-"], input=PLANTED_TEXT.replace("PLACE", str(tmp_path / "ran")).encode(), check=True)
    path.chmod(0o600)
    assert run() == [0.0, 2.0, 4.0]
    assert not (tmp_path / "ran").exists()


def test_what_killed_processes_left_counts_and_is_removed(objects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects.mkdir(0o700)
    left = [objects / name for name in ("abc.4711.part", "abc.lock", "def.lock", "ghi.1.part")]
    for path in left:
        path.write_bytes(b"x" * 1000)
    kept = objects / "busy.12.part"
    kept.write_bytes(b"x")
    with (objects / "busy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # its process is alive
        run()
        assert not any(path.exists() for path in left)
        assert kept.exists() and (objects / "busy.lock").exists()


@pytest.mark.sweep
def test_the_limit_counts_all_files(objects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(2.0)
    [first] = objects.iterdir()
    os.utime(first, (1, 1))
    (objects / "busy.12.part").write_bytes(b"x" * 5000)
    with (objects / "busy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setattr(store, "_uncounted", {})
        monkeypatch.setattr(store, "LIMIT", 2 * first.stat().st_size + 4000)
        run(3.0)
    assert not first.exists()


def test_a_relative_folder_is_that_of_the_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", "here")
    assert run() == [0.0, 2.0, 4.0]
    assert len(list((tmp_path / "here").iterdir())) == 1


@pytest.mark.parametrize("name", ["$ORIGIN", "a$LIB", "${PLATFORM}"])
def test_a_folder_whose_name_the_loader_replaces_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path / name))
    with pytest.warns(RuntimeWarning, match="replaces"):
        assert run() == [0.0, 2.0, 4.0]
    assert not (tmp_path / name).exists()


def test_the_folder_is_in_the_cache_of_the_user_and_a_relative_one_is_no_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYMGRAD_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.folder() == tmp_path / "symgrad"
    monkeypatch.setenv("HOME", str(tmp_path))
    for home in ("cache", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert store.folder() == tmp_path / ".cache" / "symgrad"


BROKEN = {
    "fails": "echo no >&2; exit 3", "writes nothing": "exit 0", "writes rubbish": 'while [ "$1" != -o ]; do shift; done; echo rubbish > "$2"',
    "ends by a signal": "kill -9 $$", "hangs with a child": "sleep 1000 | cat",
    "cuts off what it writes": f"""{shutil.which("cc")} "$@"; while [ "$1" != -o ]; do shift; done; truncate -s 5000 "$2\"""",
    "leaves out the function": f"""cat > /dev/null; while [ "$1" != -o ]; do shift; done; echo 'int other;' |
        {shutil.which("cc")} -shared -fPIC -x c -o "$2" -""",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", [*BROKEN, "cc 'a", 'cc "', "cc \\"])  # the last cannot be read as commands
def test_numpy_serves_where_the_compiler_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objects: Path, how: str) -> None:
    script = tmp_path / "cc"
    script.write_text(f"#!/bin/sh\n{BROKEN.get(how)}\n")
    script.chmod(0o700)
    monkeypatch.setenv("CC", str(script) if how in BROKEN else how)
    monkeypatch.setattr(compiler, "SECONDS", 0.5)
    with pytest.warns(RuntimeWarning, match="un by NumPy") as caught:
        for k in (2.0, 3.0):
            f = symgrad.compile(lambda x, k=k: x * k, backend="c")
            assert f(symgrad.tensor(X)).tolist() == (X * k).tolist()
    assert len(caught) == 1 and not (objects.exists() and list(objects.iterdir()))


@pytest.mark.sweep
@pytest.mark.parametrize("command", ["no-such-compiler", "/usr", "no-such-compiler; echo"])
def test_another_compiler_is_used_where_cc_names_none(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("CC", command)
    with pytest.warns(RuntimeWarning, match="CC names no program that can be run") as caught:
        assert [run(k) for k in (2.0, 3.0)] == [(X * k).tolist() for k in (2.0, 3.0)]
    assert len(caught) == 1


def test_no_compiler_is_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(Unsupported, match="compiler"):
        run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert symgrad.compile(lambda x: x * 5.0, backend="c")(symgrad.tensor(X)).tolist() == (X * 5).tolist()
