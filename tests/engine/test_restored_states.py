"""What is set for a block is restored whatever interrupts: an interrupt at every line of the library that runs leaves it as it was."""

import contextlib
import gc
import random
import re
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import flint
import mpmath
import numpy as np
import pytest

import symgrad as torch
from symgrad import func, nn, visual
from symgrad.algebra.limits import limited
from symgrad.carriers import ball, digits, lapack
from symgrad.carriers.special import zeta
from symgrad.frameworks import differentiation_task
from symgrad.frameworks.files import load_file
from symgrad.nn.utils import parametrize
from symgrad.optim import swa_utils
from symgrad.optim.optimizer import swap_in_optimizer_params_and_state
from symgrad.system.frames import PACKAGE
from symgrad.system.restoring import changed, collection_paused, finished, restored, workdps, workprec
from symgrad.testing import claims
from symgrad.utils import mapping
from symgrad.visual import tracing
from tests.support.interrupts import MPMATH, Interrupted

model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.Sequential(nn.BatchNorm1d(2), nn.Flatten()), nn.DataParallel(nn.Flatten(), 2))
model[2][0].eval()
model.register_forward_hook(lambda module, args, output: None, always_call=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.25, momentum=0.5)
other = [nn.Parameter(torch.ones_like(p)) for p in model.parameters()]
for p in model.parameters():
    p.grad = torch.ones_like(p)
optimizer.step()
optimizer.register_step_post_hook(lambda *args: None)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
owner = SimpleNamespace(flag=3)


def state():
    """What the blocks of this module set."""
    modules = [(m.training, tuple(m._forward_hooks), tuple(m._forward_pre_hooks), tuple(m._forward_hooks_always_called), m.__dict__.get("momentum"),
                tuple(map(id, m._parameters.values())), str(m.__dict__.get("device_ids"))) for m in model.modules()]
    groups = [(sorted(map(str, group)), tuple(map(id, group["params"]))) for group in optimizer.param_groups]
    return (modules, groups, id(optimizer.state), optimizer._stepping, scheduler._is_initial, owner.flag, mpmath.mp.prec, mpmath.mp.dps,
            digits.context.prec, flint.ctx.prec, lapack._thread.parts, signal.getsignal(signal.SIGPROF), signal.getitimer(signal.ITIMER_PROF),
            signal.getsignal(signal.SIGINT), gc.isenabled(), parametrize._cache.depth, len(parametrize._cache.tensors), torch.get_default_dtype(),
            torch.is_grad_enabled(), np.geterr(), random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().numpy().tolist(),
            sys.getprofile(), list(sys.path))


def batches():
    return [torch.ones(3, 2)]


def recorder():
    return SimpleNamespace(scopes=["scope"], add_source=lambda *args: None)


def drawn():
    with differentiation_task.generators_restored():
        differentiation_task.seed_generators()
        torch.rand(2)


BLOCKS = {
    "restored": lambda: restored(lambda: setattr(owner, "flag", 3), lambda: setattr(owner, "flag", 4)), "changed": lambda: changed(owner, "flag", 4),
    "workdps": lambda: workdps(mpmath.mp, 77), "workprec": lambda: workprec(mpmath.mp, 77), "working precision": lambda: digits.working_precision(77),
    "precision restored": digits.precision_restored, "precision of balls": lambda: ball.precision(77), "Hermitian parts": lapack.hermitian_parts,
    "no collection": collection_paused, "evaluation": lambda: tracing._evaluating(model), "scopes": lambda: tracing._scoped(model, recorder()),
    "cached": parametrize.cached, "limited": lambda: limited(100), "interrupts held": mapping._interrupts_held, "fork_rng": torch.random.fork_rng,
    "flag of a schedule": lambda: scheduler._flag("_is_initial"), "silence": claims.silence, "generators": differentiation_task.generators_restored,
    "swapped": lambda: swap_in_optimizer_params_and_state(optimizer, dict(enumerate(other)), optimizer.state_dict())}
CALLS = {
    "zeta": lambda: zeta.by_sum.__wrapped__(mpmath.mp, mpmath.mpf(3), mpmath.mpf(2), 2, 60), "generators drawn": drawn,
    "functional_call": lambda: func.functional_call(nn.Flatten(), {}, torch.ones(2, 2)),
    "update_bn": lambda: swa_utils.update_bn(batches(), model[2]),
    "hooked step": optimizer.step}




def calls(block, fails=False):
    """Enter a block and leave it, by an error if it fails."""
    def run():
        with contextlib.suppress(ZeroDivisionError), block():
            if fails:
                raise ZeroDivisionError  # a new one, since its traceback keeps what it went through

    return run


PROGRAMS = {name: calls(block) for name, block in BLOCKS.items()} | CALLS
PROGRAMS |= {f"{name}, left by an error": calls(block, True) for name, block in BLOCKS.items()}


@pytest.mark.sampled(11)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.sweep), 11])
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interrupt_at_any_line_restores_what_a_block_has_set(name, step):
    program = PROGRAMS[name]
    program()
    before, n = state(), 1
    while (run := Interrupted(program, n)).at is not None:
        gc.collect(0)  # an interrupt between the block and the exit leaves a generator to its finalizer
        assert state() == before, f"after an interrupt at {run.at}"
        n += step
    assert n > 3


@pytest.mark.parametrize("step", [pytest.param(13, marks=pytest.mark.sweep), 67])
def test_an_interrupt_of_a_picture_leaves_its_module(step):
    def program():
        visual.graph(model, torch.ones(3, 2))

    program()
    before, n = state()[0], 1
    while (run := Interrupted(program, n)).at is not None:
        assert state()[0] == before, f"after an interrupt at {run.at}"
        n += step


def test_a_file_leaves_the_path_as_it_was(tmp_path):
    path = tmp_path / "checked.py"
    path.write_text("x = 1\n")
    before, n = list(sys.path), 1
    while (run := Interrupted(lambda: load_file(path), n)).at is not None:
        assert sys.path == before, f"after an interrupt at {run.at}"
        n += 1


def test_what_must_be_finished_is_finished():
    done = []

    def work():
        done.append(1)
        if len(done) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finished(work)
    assert len(done) == 2


def test_mpmath_does_not_set_precisions():
    """Its context managers leave the precision changed where their last line is interrupted."""
    found = [str(path) for path in Path(PACKAGE).rglob("*.py") if re.search(r"\.(workprec|workdps)\(", path.read_text())]
    assert found == []


def test_an_interrupt_inside_mpmath_leaves_its_precision():
    """Its functions raise the precision, and lower it in a last line."""
    def program():
        with digits.precision_restored(), mpmath.extraprec(20):
            mpmath.mp.hypot(mpmath.mpf("0.3"), 1.5)

    program()
    before, n = state(), 1
    while (run := Interrupted(program, n, folders=(PACKAGE, MPMATH))).at is not None:
        assert state() == before, f"after an interrupt at {run.at}"
        n += 1
