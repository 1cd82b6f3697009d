"""Compiled objects on disk, calls by several threads, and machines without a compiler."""

from __future__ import annotations

import concurrent.futures
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from symgrad.cli import main
from symgrad.program.native import Unsupported, compiler, find_compiler, internals, mathematics, native, runner, store
from symgrad.program.native.compiler import program_key
from symgrad.program.program import ArraySpec, Program, Step, interpreter
from tests.support.programs import Builder, chain

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler was found")
FLOAT = np.dtype(float)


@pytest.fixture(autouse=True)
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path / "objects"))
    return tmp_path / "objects"


def small(number: float = 2.0) -> Program:
    b = Builder()
    return b.program(b.mul(b.input(np.arange(3.0)), number))


def objects_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.so"))


@needs_compiler
def test_an_object_is_found_again(objects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    native(small())
    assert len(objects_in(objects)) == 1
    assert objects.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(compiler, "_run", None)  # the compiler is not called again
    assert native(small())([np.arange(3.0)])[0].tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(TypeError):
        native(small(3.0))


@pytest.mark.sweep
@needs_compiler
def test_no_text_is_written_for_an_object_on_disk(objects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def weighted(weights: np.ndarray) -> Program:
        b = Builder()
        x = b.input(np.arange(6.0).reshape(3, 2))
        picked = b.getitem(x, (np.array([2, 0]),))  # whose positions are no constant of the program
        return b.program(b.mul(b.mm(x, b.constant(weights)), 0.5), b.add(b.constant(np.float64(weights[0, 0])), b.sum(picked)), b.constant(weights.T))

    x, weights = np.arange(6.0).reshape(3, 2), np.arange(2.0, 6.0).reshape(2, 2)
    text = native(weighted(weights)).source
    with monkeypatch.context() as patch:
        patch.setattr(runner, "lower", None)
        for w in (weights, -3 * weights):  # the elements of constant arrays are no part of the text
            product, total, copied = native(weighted(w))([x])
            np.testing.assert_array_equal(product, x @ w * 0.5)
            assert total == w[0, 0] + x[[2, 0]].sum()
            np.testing.assert_array_equal(copied, w.T)
    assert len(objects_in(objects)) == 1
    assert native(weighted(weights)).source == text


def test_programs_with_different_texts_have_different_keys() -> None:
    x, number = np.arange(6.0).reshape(2, 3), np.float64(2.0)
    keys = set()
    builders = [lambda b, p, q: b.mul(p, q), lambda b, p, q: b.mul(q, p), lambda b, p, q: b.mul(p, 2.0), lambda b, p, q: b.mul(p, 2),
                lambda b, p, q: b.mul(p, np.float32(2)), lambda b, p, q: b.mul(p, -0.0), lambda b, p, q: b.mul(p, 0.0), lambda b, p, q: b.sum(p, 0),
                lambda b, p, q: b.sum(p, (0,)), lambda b, p, q: b.sum(p, (0,), True), lambda b, p, q: b.astype(p, np.float32),
                lambda b, p, q: b.astype(p, np.int64), lambda b, p, q: b.getitem(p, (0, slice(0, 2))), lambda b, p, q: b.getitem(p, (0, slice(0, 3))),
                lambda b, p, q: b.getitem(p, (0, np.array([0, 1]))), lambda b, p, q: b.getitem(p, (0, np.array([0, 2]))), lambda b, p, q: p,
                lambda b, p, q: b.mul(p, np.ones(3)), lambda b, p, q: b.mul(p, np.ones((1, 3)))]
    for build in builders:
        b = Builder()
        keys.add(program_key(b.program(build(b, b.input(x), b.input(number)))))
    keys.add(program_key(Program([ArraySpec((2, 3), np.dtype(">f8")), ArraySpec((), FLOAT)], [], [], [0])))
    assert len(keys) == len(builders) + 1


@pytest.mark.sweep
@needs_compiler
def test_objects_belong_to_the_functions_of_vectors_of_the_platform(objects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = chain((500,), 1)
    native(program)
    monkeypatch.setattr(mathematics, "has_vector_function", lambda *_: False)
    native(program)
    assert len(objects_in(objects)) == (2 if mathematics._libmvec() else 1)


@pytest.mark.sweep
@needs_compiler
def test_the_objects_that_were_not_used_for_long_are_removed(objects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i, number in enumerate((2.0, 3.0, 4.0)):
        native(small(number))
        for path in objects_in(objects):
            if path.stat().st_mtime > 1e6:
                os.utime(path, (i, i))
    sizes = [path.stat().st_size for path in objects_in(objects)]
    native(small(2.0))  # used again
    monkeypatch.setattr(store, "LIMIT", sum(sizes) - 1)
    native(small(5.0))
    left = {path.stat().st_mtime for path in objects_in(objects)}
    assert len(left) == 2 and min(left) > 1e6


@pytest.mark.sweep
@needs_compiler
def test_objects_are_counted_when_a_part_of_the_limit_is_written(objects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    monkeypatch.setattr(store, "_trim", counted.append)
    native(small(2.0))
    (size,) = [path.stat().st_size for path in objects_in(objects)]
    monkeypatch.setattr(store, "LIMIT", int(store.PART * size * 2.5))
    for number in range(3, 10):
        native(small(float(number)))
    assert len(objects_in(objects)) == 8 and counted == [store.folder()] * 3


@needs_compiler
def test_an_object_is_unloaded_with_its_program() -> None:
    def loaded() -> bool:
        return str(store.folder()) in Path("/proc/self/maps").read_text()

    if not Path("/proc/self/maps").exists():
        pytest.skip("the system does not list what is loaded")
    run = native(small())
    assert loaded()
    del run
    gc.collect()
    assert not loaded()


@pytest.mark.sweep
@needs_compiler
@pytest.mark.parametrize("damage", ("truncated", "changed", "empty"))
def test_a_damaged_object_is_compiled_again(objects: Path, damage: str) -> None:
    native(small())
    [path] = objects_in(objects)
    data = path.read_bytes()
    path.unlink()  # the loaded object keeps its memory
    path.write_bytes({"truncated": data[:len(data) // 2], "changed": data[:-100] + b"x" * 50 + data[-50:], "empty": b""}[damage])
    assert native(small())([np.arange(3.0)])[0].tolist() == [0.0, 2.0, 4.0]
    assert path.read_bytes()[-store.DIGEST:] != b"" and len(path.read_bytes()) == len(data)


RACE = """
import sys, numpy as np
from symgrad.program.native import compiler, native
from tests.program.test_native_objects import small
calls, run = [], compiler._run
compiler._run = lambda *args: (calls.append(1), run(*args))[1]
sys.stdin.readline()
assert native(small())([np.arange(3.0)])[0].tolist() == [0.0, 2.0, 4.0]
print(len(calls))
"""


@needs_compiler
@pytest.mark.sweep
def test_processes_do_not_compile_the_same_twice(objects: Path) -> None:
    root = Path(__file__).parents[2]
    environment = dict(os.environ, PYTHONPATH=f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    processes = [subprocess.Popen([sys.executable, "-c", RACE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=root)
                 for _ in range(2)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    counts = [int(process.communicate(timeout=120)[0]) for process in processes]
    assert sum(counts) == 1
    assert [path.suffix for path in objects.iterdir()] == [".so"]


@needs_compiler
def test_the_command_line_shows_and_clears_the_objects(objects: Path, capsys: pytest.CaptureFixture) -> None:
    native(small())
    (objects / "note.txt").write_text("of the user")
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert str(objects) in shown and "1 compiled program" in shown
    assert main(["cache", "--clear"]) == 0
    assert "1 compiled program" in capsys.readouterr().out
    assert [path.name for path in objects.iterdir()] == ["note.txt"]
    assert main(["cache"]) == 0
    assert "0 compiled programs" in capsys.readouterr().out


def test_the_compiler_of_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"{sys.executable} -x 'a b'")
    assert find_compiler() == [sys.executable, "-x", "a b"]


@pytest.mark.sweep
@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_by_the_functions_of_scipy(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y, v = [rng.normal(size=shape).astype(dtype) for shape in ((40, 60), (60, 50), (60,))]
    b = Builder()
    p, q, r = map(b.input, (x, y, v))
    program = b.program(b.mm(p, q), b.mm(b.permute(q, (1, 0)), b.permute(p, (1, 0))), b.matmul(p, r))
    own = native(program)
    monkeypatch.setattr(internals, "_of_numpy", lambda: None)
    run = native(program)
    assert internals.integer_bits() == 32 and "int32_t *" in run.source
    small = 30 * float(np.finfo(dtype).eps)
    for found, other, expected in zip(run([x, y, v]), own([x, y, v]), (x @ y, y.T @ x.T, x @ v)):
        np.testing.assert_allclose(found, expected, rtol=small, atol=small)
        np.testing.assert_allclose(other, expected, rtol=small, atol=small)


@pytest.mark.sweep
@needs_compiler
def test_threads_have_work_memory_of_their_own() -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.random(5000) for _ in range(8)]
    program, _ = chain((5000,), 8)
    run, ones = native(program), np.ones(5000)
    expected = [run([x, inputs[0], ones]) for x in inputs]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: run([inputs[i % 8], inputs[0], ones]), range(200)))
    for i, row in enumerate(got):
        for a, b in zip(row, expected[i % 8]):
            np.testing.assert_array_equal(a, b)


@pytest.mark.sweep
@needs_compiler
def test_outputs_have_memory_of_their_own() -> None:
    inputs = [np.arange(6.0).reshape(2, 3), np.float64(2.5)]
    b = Builder()
    x, number = map(b.input, inputs)
    y, ones = b.exp(x), b.constant(np.ones(3))
    outputs = [x, y, y, b.permute(y, (1, 0)), b.getitem(x, 0), b.reshape(y, (6,)), ones, ones, b.broadcast_to(ones, (2, 3)), b.zeros_like(x)]
    scalars = [number, number, b.constant(np.float64(1.5)), b.constant(2), b.getitem(x, (1, 2)), b.sum(y), b.sum(y)]
    program = b.program(*outputs, *scalars)
    run = native(program)
    first, expected = run(inputs), interpreter(program)(inputs)
    for a, c in zip(first, expected, strict=True):
        assert type(a) is type(c) and a.dtype == c.dtype
        np.testing.assert_allclose(a, c, 1e-15)
    kept = [z.copy() for z in first]
    for i, z in enumerate(first[:len(outputs)]):
        z += 1
        for j, other in enumerate(first[:len(outputs)]):
            assert i == j or not np.shares_memory(z, other)
    for a, c in zip(run(inputs), kept, strict=True):
        np.testing.assert_array_equal(a, c)


class Subclass(np.ndarray):
    """An array of another type."""


@needs_compiler
def test_inputs_may_be_strided_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(24.0).reshape(4, 6)
    b = Builder()
    p, q = b.input(x[:, ::2].T), b.input(np.float64(2.0))
    program = b.program(b.mul(p, q), b.sin(q))
    swapped = np.ascontiguousarray(x[:, ::2].T).astype(">f8")
    for known in (True, False):  # whether C reads the objects
        monkeypatch.setattr(runner, "READS_OBJECTS", known and runner.READS_OBJECTS)
        for inputs in ([x[:, ::2].T, np.float64(3.0)], [np.asfortranarray(x[:, ::2].T), 3.0], [x[:, ::2].T, np.array(3.0)],
                       [np.ascontiguousarray(x[:, ::2].T), 3], [np.ascontiguousarray(x[:, ::2].T).view(Subclass), 3.0]):
            for a, c in zip(native(program)(inputs), interpreter(program)([np.asarray(inputs[0]), np.float64(3.0)]), strict=True):
                np.testing.assert_array_equal(a, c)
        with pytest.raises(TypeError, match="input 0"):
            native(program)([swapped, 3.0])


@needs_compiler
def test_inputs_of_another_shape_or_dtype_are_refused() -> None:
    run = native(small())
    for wrong in (np.arange(4.0), np.arange(3), np.arange(3.0).astype(np.float32), np.ones((3, 1)), np.float64(1.0)):
        with pytest.raises(TypeError, match="input 0"):
            run([wrong])
    for count in (0, 2):
        with pytest.raises(TypeError, match=f"{count} inputs"):
            run([np.arange(3.0)] * count)


@needs_compiler
def test_c_reads_the_objects_of_this_interpreter() -> None:
    assert runner.READS_OBJECTS == (sys.implementation.name == "cpython")


@pytest.mark.parametrize("step, spec", (
    (Step("conj", (0,), (), (3,), np.dtype(complex)), ArraySpec((3,), np.dtype(complex))),
    (Step("no_such_word", (0,), (), (3,), FLOAT), ArraySpec((3,), FLOAT)),
    (Step("neg", (0,), (), (3,), np.dtype(np.float16)), ArraySpec((3,), np.dtype(np.float16))),
))
def test_what_cannot_be_written_is_named(step: Step, spec: ArraySpec) -> None:
    with pytest.raises(Unsupported):
        native(Program([spec], [], [step], [1]))


@needs_compiler
def test_the_text_has_no_names_of_the_program() -> None:
    b = Builder()
    run = native(b.program(b.mul(b.input(np.arange(3.0)), 0.1234567)))
    assert (0.1234567).hex() in run.source  # numbers are hexadecimal
    assert run.nbytes > 0
