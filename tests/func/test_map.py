"""`symgrad.map`: results in order by any executor, errors with their point, and what can be sent to other processes."""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

import symgrad
from symgrad.utils import mapping
from tests.support import mapped

POINTS = [symgrad.tensor([1.0 + i, 2.0 - i]) for i in range(5)]


@pytest.fixture(scope="module")
def pool():
    """Processes that share nothing with this one."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        yield executor


class AtOnce(Executor):
    """The least that an executor is: futures that are done, and no number of workers."""

    def __init__(self):
        self.sizes = []

    def submit(self, fn, /, *args, **kwargs):
        self.sizes.append(len(args[2]))
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.mark.parametrize("chunksize", [None, 1, 3, 100])
@pytest.mark.parametrize("make", [lambda: None, AtOnce, lambda: ThreadPoolExecutor(3)])
def test_results_are_in_order(make, chunksize):
    def late_first(x):
        time.sleep(0.02 if x == 0 else 0)
        return -x

    executor = make()
    assert symgrad.map(late_first, iter(range(10)), executor, chunksize=chunksize) == [-x for x in range(10)]
    assert symgrad.map(late_first, [], executor) == []


@pytest.mark.parametrize("count, chunksize, sizes", [(3, None, [1, 1, 1]), (7, 3, [3, 3, 1]), (5, 9, [5])])
def test_chunks(count, chunksize, sizes):
    executor = AtOnce()
    symgrad.map(abs, range(count), executor, chunksize=chunksize)
    assert executor.sizes == sizes
    with pytest.raises(ValueError, match="map: chunksize must be at least 1, but it is 0"):
        symgrad.map(abs, [1], executor, chunksize=0)


def test_long_work_goes_out_in_chunks_by_the_number_of_workers():
    executor = AtOnce()
    executor._max_workers = 2
    symgrad.map(abs, range(320), executor)
    assert executor.sizes == [10] * 32


@pytest.mark.parametrize("chunksize", [1, 4])
@pytest.mark.parametrize("executor", ["none", "threads", "processes"])
def test_an_error_names_its_point(executor, chunksize, pool):
    with ThreadPoolExecutor(1) as threads, pytest.raises(LookupError, match="no 5") as caught:
        symgrad.map(mapped.ill, range(12), {"none": None, "threads": threads, "processes": pool}[executor], chunksize=chunksize)
    assert caught.value.__notes__ == ["symgrad.map: at point 5: 5"]


def test_an_error_cancels_what_has_not_begun():
    begun, end = [], threading.Event()

    def work(i):
        begun.append(i)
        assert not i or end.wait(20)
        raise ArithmeticError

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ArithmeticError):
            symgrad.map(work, range(100), pool, chunksize=1)
        end.set()
    assert len(begun) <= 2


def test_an_interrupt_cancels_what_has_not_begun(tmp_path):
    program = tmp_path / "work.py"
    program.write_text("""
import time
from concurrent.futures import ThreadPoolExecutor
import symgrad

def work(i):
    print(i, flush=True)
    time.sleep(0.1)

with ThreadPoolExecutor(1) as pool:
    symgrad.map(work, range(10_000), pool, chunksize=1)
""")
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            run.stdout.readline()
            run.send_signal(signal.SIGINT)
            out, errors = run.communicate(timeout=60)
        finally:
            run.kill()
    assert "KeyboardInterrupt" in errors and len(out.split()) < 100


def test_an_interrupt_while_calls_are_given_out_comes_when_all_are():
    """The locks of a pool would stay locked, and it would never end."""
    begun, end = [], threading.Event()

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *args):
            if len(begun) == 3:
                signal.raise_signal(signal.SIGINT)
            begun.append(super().submit(*args))
            return begun[-1]

    with Interrupted(1) as pool:
        with pytest.raises(KeyboardInterrupt):
            symgrad.map(lambda i: end.wait(20), range(20), pool, chunksize=1)
        end.set()
    cancelled = [future for future in begun if future.cancelled()]
    assert len(begun) == 20 and len(cancelled) > 10 and signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("fn", [mapped.hessian_at, mapped.compiled, symgrad.func.hessian(mapped.energy), symgrad.func.hessian(mapped.compiled),
                                mapped.gentle, symgrad.sin, mapped.module(), symgrad.compile(mapped.energy),
                                symgrad.func.vmap(symgrad.func.grad(mapped.gentle)), mapped.clipped])
def test_what_is_sent_to_another_process(fn, pool):
    found = symgrad.map(fn, POINTS, pool)
    assert all(symgrad.allclose(a, b, rtol=1e-14) for a, b in zip(found, map(fn, POINTS)))


def test_reports_come_back_from_another_process(pool):
    (report,) = symgrad.map(mapped.checked, [2.0], pool)
    assert report.verdict == "proved" and report.gradient == mapped.checked(2.0).gradient


def test_processes_do_the_work(pool):
    found = symgrad.map(mapped.process, range(4), pool)
    assert [x for x, _ in found] == [0, 1, 2, 3] and os.getpid() not in {number for _, number in found}


def test_progress(monkeypatch):
    told = []
    symgrad.map(abs, range(3), progress=lambda *state: told.append(state))
    assert told == [("points", i, 3) for i in (1, 2, 3)]
    told.clear()
    with ThreadPoolExecutor(2) as threads:
        symgrad.map(lambda x: time.sleep(0.01), range(8), threads, chunksize=2, progress=lambda *state: told.append(state))
    assert told[-1] == ("points", 8, 8) and told == sorted(told)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for long, shown in ((0.0, True), (60.0, False)):
        monkeypatch.setattr(mapping, "LONG", long)
        monkeypatch.setattr(sys, "stderr", terminal := Terminal())
        symgrad.map(abs, range(3))
        assert ("abs" in terminal.getvalue()) is shown


def test_the_example_counts_the_convex_points():
    program = Path(__file__).parents[2] / "examples" / "training" / "many_hessians.py"
    run = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert run.stdout == "convex at 299 of 441 points\n", run.stderr
