"""An interrupt at any line leaves every mode as it was: KeyboardInterrupt is raised at the n-th line that runs inside the library, for many n."""

import gc
import sys
import threading
import warnings

import pytest

import symgrad as torch
from symgrad import func, nn
from symgrad.autograd import forward_ad
from symgrad.autograd.graph import allow_mutation_on_saved_tensors, save_on_cpu, saved_tensors_hooks
from symgrad.graph.modes import thread
from symgrad.utils.checkpoint import checkpoint
from tests.support.interrupts import Cube, Interrupted, differences, leaf, locked


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2


def first_order():
    x = leaf()
    y = (x * x).sin().sum()
    x.register_hook(lambda g: g * 1)
    y.backward()


def second_order():
    x = leaf()
    (g,) = torch.autograd.grad((x.exp() * x).sum(), x, create_graph=True)
    torch.autograd.grad(g.sum(), x)


def functions():
    x = leaf()
    (g,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    g.sum().backward()
    Doubled.apply(x * 1).sum().backward()


def writes():
    x = leaf()
    y = x * 1
    y.view(-1)[:1].mul_(3)
    y += x
    y.sum().backward()


def grad_modes():
    x = leaf()
    with torch.no_grad():
        x * 2
        with torch.enable_grad():
            x * 2
    with torch.set_grad_enabled(False):
        x * 2
    torch.no_grad()(lambda: x * 2)()
    switch = torch.no_grad()
    with switch, switch:
        x * 2


def inference():
    x = leaf()
    with torch.inference_mode():
        y = x * 2
        y.add_(1)
    y.clone()


def anomaly():
    x = leaf()
    with torch.autograd.set_detect_anomaly(True):
        (x * x).sum().backward()
    with warnings.catch_warnings(action="ignore"), torch.autograd.detect_anomaly():
        (x * x).sum().backward()


def saved_tensors():
    x = leaf()
    with saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), torch.from_numpy), save_on_cpu():
        y = (x * x).sum()
    y.backward()
    with allow_mutation_on_saved_tensors():
        z = x.clone()
        w = (z * z).sum()
        z.zero_()
        w.backward()


def forward_mode():
    x = leaf()
    with forward_ad.dual_level():
        y = Cube.apply(forward_ad.make_dual(x, torch.ones(2)))
        forward_ad.unpack_dual(y.exp())
    func.jvp(torch.sin, (x.detach(),), (torch.ones(2),))


def transforms():
    x = leaf().detach()
    func.hessian(lambda z: (z * z * z).sum())(x)
    func.vmap(func.grad(lambda z: z.sin() * z))(x)
    func.jacrev(Cube.apply)(x)


def functional():
    x = leaf().detach()
    torch.autograd.functional.hessian(lambda z: (z * z * z).sum(), x)
    torch.autograd.functional.jvp(lambda z: z * z, x, torch.ones(2))


layer = nn.Linear(2, 1)


def modules():
    weights = {name: torch.ones_like(p) for name, p in layer.named_parameters()}
    func.functional_call(layer, weights, (torch.ones(2),))
    nn.init.zeros_(nn.Linear(2, 1).weight)


def checkpoints():
    x = leaf()
    checkpoint(lambda z: z.sin().exp(), x, use_reentrant=False).sum().backward()
    checkpoint(lambda z: z.sin().exp(), x, use_reentrant=True).sum().backward()


PROGRAMS = [first_order, second_order, functions, writes, grad_modes, inference, anomaly, saved_tensors, forward_mode, transforms, functional,
            modules, checkpoints]


def sweep(program, start=1, step=1):
    """The lines at which an interrupt of the program leaves something wrong, with what that is; every `step`-th line is tried from `start` on."""
    program()
    gc.collect()
    wrong, n, parameters = [], start, list(layer.parameters())
    plain = thread.modes
    while True:
        run = Interrupted(program, n)
        if run.at is None:
            return wrong + locked(), n
        found = differences(layer, parameters) + ["the interrupt was swallowed"] * (not run.raised)
        if found:
            wrong.append((run.at, *found))
            gc.collect()
            thread.modes = plain
        n += step


@pytest.mark.sampled(1)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_an_interrupt_at_any_line_leaves_the_modes_as_they_were(program):
    wrong, _ = sweep(program, start=5, step=41)
    assert not wrong


def test_a_thread_that_ends_inside_a_mode_leaves_nothing_behind():
    def ends_inside():
        torch.set_grad_enabled(False)
        torch.no_grad().__enter__()
        forward_ad.enter_dual_level()
        saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()

    worker = threading.Thread(target=ends_inside)
    worker.start()
    worker.join()
    assert not differences(layer, list(layer.parameters()))


if __name__ == "__main__":  # every line of every program
    for each in PROGRAMS:
        bad, count = sweep(each, step=int(sys.argv[1]) if sys.argv[1:] else 1)
        print(each.__name__, count - 1, "lines", len(bad), "wrong", *bad, sep="\n    ")
