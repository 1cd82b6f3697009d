"""`symgrad.distributed` and `DistributedDataParallel`, in one process and in several."""

import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import symgrad as torch
from symgrad import distributed as dist
from symgrad import nn
from symgrad.distributed import groups
from symgrad.utils.data import DistributedSampler

ROOT = Path(__file__).parents[2]


def launched(count, *arguments):
    """The exit code, output and errors of a program that `mpiexec` starts."""
    launcher = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if launcher is None:
        pytest.skip("mpi4py is installed, but there is no mpiexec")
    run = subprocess.run([launcher, "-n", str(count), sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120,
                         env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"})
    return run.returncode, run.stdout, run.stderr


@pytest.mark.sweep
@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.sweep)])
def test_several_processes(count):
    from tests.distributed.ranks import CHECKS

    code, out, errors = launched(count, "-m", "tests.distributed.ranks")
    assert code == 0, errors
    assert out.split() == list(CHECKS)


@pytest.mark.sweep
@pytest.mark.parametrize("program, message", [("failing", "LookupError: an error of rank 1"),
                                              ("left_out", "RuntimeError: DistributedDataParallel: the parameters b.weight, b.bias have no")])
def test_a_rank_that_fails_ends_the_job(program, message):
    code, _, errors = launched(2, "-m", "tests.distributed.ranks", program)
    assert code != 0 and "Rank 1 of 2 has failed, and ends the job:\nTraceback" in errors and message in errors


WAITS = ["reduction",
         *(pytest.param(what, marks=pytest.mark.sweep) for what in ("barrier", "objects", "group", "message", "any", "list", "gradients"))]


@pytest.mark.sweep
@pytest.mark.parametrize("what", WAITS)
def test_a_rank_that_leaves_ends_the_job_of_those_that_wait_for_it(what):
    code, _, errors = launched(2, "-m", "tests.distributed.ranks", f"leaving:{what}")
    assert code != 0 and "Rank 0 of 2 has failed" in errors and "RuntimeError: rank 1 has ended, and this process waits for it" in errors


@pytest.mark.sweep
def test_a_rank_that_has_done_its_part_may_leave():
    code, out, errors = launched(3, "-m", "tests.distributed.ranks", "early")
    assert code == 0 and out == "the sum has come\n", errors


@pytest.mark.sweep
@pytest.mark.parametrize("place, message", [("", "A process outside of its group has failed, and ends the job:\nTraceback"),
                                            ("dist.init_process_group(); dist.destroy_process_group()", "A process outside of its group has failed"),
                                            ("os._exit(1)", "Timeout (0:00:01)!")])
def test_a_rank_that_fails_before_or_after_the_group_ends_the_job(place, message):
    program = f"""
import os
from symgrad import distributed as dist
if "1" in (os.environ.get("PMI_RANK"), os.environ.get("OMPI_COMM_WORLD_RANK")):
    {place or "pass"}
    raise LookupError("an error of rank 1")
dist.init_process_group(timeout={1 if "exit" in place else None})
dist.barrier()
"""
    if "destroy" in place:
        program = program.replace("dist.barrier()\n", "dist.destroy_process_group()\n")
    code, _, errors = launched(2, "-c", program)
    assert code != 0 and message in errors and ("exit" in place or "LookupError: an error of rank 1" in errors)


@pytest.mark.sweep
def test_an_interrupt_has_one_traceback():
    program = "import signal; from symgrad import distributed as dist; dist.init_process_group(); dist.barrier(); signal.raise_signal(signal.SIGINT)"
    code, _, errors = launched(2, "-c", program)
    assert code != 0 and errors.count("Traceback") <= 1


@pytest.mark.sweep
def test_the_example_trains_in_two_processes_as_in_one():
    program = str(ROOT / "examples" / "training" / "train_ddp.py")
    alone = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert alone.returncode == 0, alone.stderr
    code, out, errors = launched(2, program)
    assert code == 0, errors
    assert out.splitlines()[-1] == alone.stdout.splitlines()[-1]  # the loss after training


@pytest.fixture
def group():
    dist.init_process_group()
    yield
    dist.destroy_process_group()


def test_one_process(group):
    x = torch.tensor([1.0, 2.0])
    found, other = [torch.zeros(2)], torch.zeros(1, 2)
    assert dist.get_rank() == 0 and dist.get_world_size() == 1 and dist.is_initialized()
    assert dist.all_reduce(x, async_op=True).wait() and dist.reduce(x, 0) is dist.broadcast(x, 0) is dist.barrier() is None
    dist.all_gather(found, x)
    dist.all_gather_into_tensor(other, x)
    assert found[0].tolist() == other[0].tolist() == x.tolist() == [1.0, 2.0]
    dist.scatter(x, [torch.ones(2)])
    dist.gather(x, found)
    dist.reduce_scatter(x, [x * 3])
    assert found[0].tolist() == [1, 1] and x.tolist() == [3, 3]
    objects = [None]
    dist.all_gather_object(objects, "a")
    assert objects == ["a"]
    dist.scatter_object_list(objects, ["b"])
    dist.gather_object("c", collected := [None])
    assert objects == ["b"] and collected == ["c"] and dist.get_rank(dist.new_group([0])) == 0
    with pytest.raises(ValueError, match="there is a default process group"):
        dist.init_process_group()
    with pytest.raises(ValueError, match="not different numbers from 0 to 0"):
        dist.new_group([1])


def test_a_module_in_one_process(group):
    module = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.BatchNorm1d(2))
    model, x = nn.parallel.DistributedDataParallel(module), torch.rand(4, 3)
    (module(x) ** 2).mean().backward()
    expected = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    for _ in range(2):
        model.zero_grad()
        (model(x) ** 2).mean().backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(module.parameters(), expected))
    assert next(iter(model.state_dict())) == "module.0.weight"
    with pytest.raises(RuntimeError, match="the parameters 2.weight, 2.bias have no gradient in this backward"):
        module[:2](x).sum().backward()
    model.zero_grad()
    (model(x) ** 2).mean().backward()  # works on after the error
    assert all(torch.equal(p.grad, g) for p, g in zip(module.parameters(), expected))


def test_a_backward_that_fails_is_forgotten(group):
    class Ill(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ArithmeticError("ill")

    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)))
    hidden = model.module[0](torch.ones(1, 2))
    with pytest.raises(ArithmeticError):
        model.module[1](Ill.apply(hidden)).sum().backward()
    model.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    assert model.module[1].bias.grad.tolist() == [1.0] and model.module[0].bias.grad is not None


class NoLibrary(types.ModuleType):
    """mpi4py where there is no MPI."""

    def __getattr__(self, name):
        raise RuntimeError("cannot load MPI library")


@pytest.mark.parametrize("found", [None, NoLibrary("mpi4py")], ids=["not installed", "without a library"])
def test_errors_without_a_group(monkeypatch, found):
    assert dist.is_available() and not dist.is_initialized()
    for call in (dist.get_rank, dist.barrier, dist.destroy_process_group, lambda: nn.parallel.DistributedDataParallel(nn.Linear(1, 1)),
                 lambda: DistributedSampler([1])):
        with pytest.raises(ValueError, match="there is no default process group; call init_process_group first$"):
            call()
    with pytest.raises(ValueError, match="Unknown backend 'gloo'. The backend is 'mpi': start the processes by mpiexec"):
        dist.init_process_group("gloo")
    monkeypatch.setitem(sys.modules, "mpi4py", found)
    for options in ({"backend": "mpi"}, {"world_size": 2}):
        with pytest.raises(ImportError, match=r"pip install 'symgrad\[mpi\]'"):
            dist.init_process_group(**options)
    for name in groups.LAUNCHED[:1] + ("WORLD_SIZE",):
        with monkeypatch.context() as patch, pytest.raises(ImportError, match="need mpi4py"):
            patch.setenv(name, "2")
            dist.init_process_group()
    with pytest.raises(ValueError, match="rank is 1, but MPI says 0"):
        dist.init_process_group(rank=1)
    assert not dist.is_initialized()
    dist.init_process_group()  # one process needs no MPI
    assert dist.get_world_size() == 1
    dist.destroy_process_group()


def test_modules_that_are_refused(group):
    with pytest.raises(RuntimeError, match="no parameter of the module requires a gradient"):
        nn.parallel.DistributedDataParallel(nn.Tanh())
    with pytest.raises(RuntimeError, match="the module has parameters without a shape"):
        nn.parallel.DistributedDataParallel(nn.LazyLinear(2))


@pytest.mark.sweep
def test_what_computes_in_one_process_leaves_exceptions_alone():
    program = "import sys; import symgrad as s; s.nn.DataParallel; s.utils.data.DistributedSampler; print(sys.excepthook is sys.__excepthook__)"
    for more, expected in (("", "True\n"), ("; s.nn.parallel.DistributedDataParallel; print(sys.excepthook is sys.__excepthook__)", "True\nFalse\n")):
        run = subprocess.run([sys.executable, "-c", program + more], capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PMI_SIZE": "2"})
        assert run.stdout == expected, run.stderr
