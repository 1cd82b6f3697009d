"""`symgrad.map`, and what transforms make of functions: results in order by any executor, what can be sent to processes, names and pickles."""

import functools
import io
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

import symgrad
from symgrad import func, nn
from symgrad.func.calling import Transformed
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


def test_long_work_goes_out_in_chunks_by_the_number_of_workers():
    executor = AtOnce()
    executor._max_workers = 2
    symgrad.map(abs, range(320), executor)
    assert executor.sizes == [10] * 32


@pytest.mark.sweep
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


@pytest.mark.sweep
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


@pytest.mark.sweep
@pytest.mark.parametrize("fn", [mapped.hessian_at, mapped.compiled, symgrad.func.hessian(mapped.energy), symgrad.func.hessian(mapped.compiled),
                                mapped.gentle, symgrad.sin, mapped.module(), symgrad.compile(mapped.energy),
                                symgrad.func.vmap(symgrad.func.grad(mapped.gentle)), mapped.clipped])
def test_what_is_sent_to_another_process(fn, pool):
    found = symgrad.map(fn, POINTS, pool)
    assert all(symgrad.allclose(a, b, rtol=1e-14) for a, b in zip(found, map(fn, POINTS)))


@pytest.mark.sweep
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


@pytest.mark.sweep
def test_the_example_counts_the_convex_points():
    program = Path(__file__).parents[2] / "examples" / "training" / "many_hessians.py"
    run = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert run.stdout == "convex at 299 of 441 points\n", run.stderr


X = symgrad.tensor([1.0, 2.0])
SETTINGS = {
    "derivatives": ((3,), {}), "directional_derivatives": ((2,), {}), "vmap": ((), {"in_dims": (0,), "chunk_size": 1}), "divergence": ((0,), {}),
    "hessian_trace": ((), {"method": "hutchinson", "seed": 1}), "hessian": ((), {"structure": "auto"}), "jacobian": ((0,), {}),
    "laplacian": ((), {"directions": symgrad.eye(2), "weights": symgrad.ones(2)}), "grad_and_value": ((), {"argnums": (0,)}),
}
FUNCTIONS = {"derivatives": symgrad.sin, "divergence": mapped.turned, "curl": mapped.turned, "vmap": func.grad(mapped.gentle),
             "jacobian": mapped.turned, "jacrev": mapped.turned, "jacfwd": mapped.turned, "checkpoint": func.vmap(mapped.gentle)}
ARGUMENTS = {"directional_derivatives": (X, X)}
OTHERS = {"CheckpointError", "checkpoint_sequential", "custom_jvp", "custom_vjp", "foreign", "functional_call", "hvp", "implicit_argmin",
          "implicit_fixed_point", "implicit_root", "jet", "jvp", "linearize", "stack_module_state", "stop_gradient", "vhp", "vjp"}
TRANSFORMS = sorted({*func.__all__} - OTHERS)
IMPLICIT = [func.implicit_root(mapped.residual, mapped.root), func.implicit_fixed_point(mapped.halfway, mapped.root),
            func.implicit_argmin(mapped.misfit, mapped.same)]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transformed_function_is_pickled_as_the_call_that_made_it(name):
    settings, words = SETTINGS.get(name, ((), {}))
    made = getattr(func, name)(FUNCTIONS.get(name, mapped.energy), *settings, **words)
    again, arguments = pickle.loads(pickle.dumps(made)), ARGUMENTS.get(name, (X,))
    assert isinstance(made, Transformed) and again is not made
    found, expected = again(*arguments), made(*arguments)
    if hasattr(found, "todense"):
        found, expected = found.todense(), expected.todense()
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("make", [symgrad.sin, mapped.compiled, mapped.clipped, *IMPLICIT], ids=lambda f: type(f).__name__)
def test_a_gradient_of_what_is_pickled_by_itself(make):
    slope = func.grad(make)
    x = X if make is mapped.compiled else symgrad.tensor(2.0)
    assert symgrad.equal(pickle.loads(pickle.dumps(slope))(x), slope(x))


@pytest.mark.parametrize("name", ["slope", "curvature", "clipped", "compiled"])
def test_a_decorated_function_is_pickled_by_its_name(name):
    assert pickle.loads(pickle.dumps(getattr(mapped, name))) is getattr(mapped, name)


def test_a_lambda_is_refused_as_by_pickle():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(func.grad(lambda x: x))


def test_a_transformed_function_has_the_name_of_the_function_and_binds_as_one():
    class Spring:
        stiffness = 3.0

        @functools.partial(func.grad, argnums=1)
        def force(self, x):
            """The force at x."""
            return self.stiffness * x * x / 2

    assert Spring().force(2.0).item() == 6.0 and Spring.force.__doc__ == "The force at x."
    assert mapped.slope.__name__ == "slope" and mapped.slope.__doc__ == "The slope of x⁴."
    assert repr(mapped.slope) == "<grad of slope>" and repr(func.grad(nn.Tanh())) == "<grad of Tanh>"


MODULES = [symgrad, symgrad.linalg, symgrad.special, symgrad.fft, symgrad.func, nn.functional, nn.init]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_public_functions_are_pickled_by_name(module):
    functions = [(name, x) for name in dir(module) if not name.startswith("_") and isinstance(x := getattr(module, name), types.FunctionType)]
    assert len(functions) > 15 and [name for name, x in functions if pickle.loads(pickle.dumps(x)) is not x] == []
