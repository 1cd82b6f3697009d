"""An interrupt at any line leaves every mode as it was: KeyboardInterrupt is raised at the n-th line that runs inside the library, for many n."""

import contextlib
import gc
import sys
import threading
import warnings

import numpy as np
import pytest

import symgrad as torch
from symgrad import func, nn
from symgrad.autograd import forward_ad
from symgrad.autograd.graph import allow_mutation_on_saved_tensors, save_on_cpu, saved_tensors_hooks
from symgrad.engine.storage.versions import PACKAGE
from symgrad.graph.modes import DEFAULT, special, thread
from symgrad.graph.node import all_threads
from symgrad.utils.checkpoint import checkpoint


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.square = x * x
        y = ctx.square.clone()
        y.mul_(x)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.square

    @staticmethod
    def jvp(ctx, t):
        return t * 3 * ctx.square


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2


def leaf():
    return torch.tensor([0.5, 1.5], requires_grad=True)


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


class Interrupted:
    """Runs a program and raises KeyboardInterrupt when it comes to its n-th line inside the library; `at` is that line, None past the end."""

    def __init__(self, program, n):
        self.left, self.at = n, None
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            program()
        except KeyboardInterrupt:
            assert self.at is not None
            self.raised = True
        else:
            self.raised = False
        finally:
            sys.settrace(before)

    def _call(self, frame, event, argument):
        return self._line if frame.f_code.co_filename.startswith(PACKAGE) and self.at is None else None

    def _line(self, frame, event, argument):
        if event == "line" and self.at is None:
            self.left -= 1
            if not self.left:
                self.at = f"{frame.f_code.co_filename[len(PACKAGE):]}:{frame.f_lineno} {frame.f_code.co_name}"
                raise KeyboardInterrupt
        return self._line


def differences(parameters):
    """What is wrong with the modes of this thread, and with what is computed under them."""
    modes = thread.modes
    found = [name for name, value in (("grad", True), ("inference", False), ("recorder", DEFAULT), ("observers", ()), ("level", None),
                                      ("keep_values", False), ("batches", ())) if getattr(modes, name) != value]
    found += ["anomaly"] * (all_threads.anomaly is not None or torch.is_anomaly_enabled()) + ["special"] * bool(special)
    found += ["module"] * any(p is not q for p, q in zip(layer.parameters(), parameters))
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with torch.no_grad():
        found += ["no_grad records"] * (x * x).requires_grad
    if found:
        return found
    for _ in range(2):
        (x * x).sum().backward()
    found += ["sum of gradients"] * (not np.array_equal(x.grad.numpy(), [8.0, 12.0]))
    y = Cube.apply(x) * x
    found += ["nothing is recorded"] * (not y.requires_grad)
    with contextlib.suppress(RuntimeError):
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        if np.array_equal(g.detach().numpy(), [32.0, 108.0]) and np.array_equal(h.numpy(), [48.0, 108.0]):
            return found
    return [*found, "gradient"]


def locked():
    """What another thread waits for in vain."""
    def works():
        x = leaf()
        y = x * 1
        y.register_hook(lambda g: g)
        y.view(-1).sum().backward()

    worker = threading.Thread(target=works, daemon=True)
    worker.start()
    worker.join(5)
    return ["a lock is held"] * worker.is_alive()


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
        found = differences(parameters) + ["the interrupt was swallowed"] * (not run.raised)
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
    assert not differences(list(layer.parameters()))


if __name__ == "__main__":  # every line of every program
    for each in PROGRAMS:
        bad, count = sweep(each, step=int(sys.argv[1]) if sys.argv[1:] else 1)
        print(each.__name__, count - 1, "lines", len(bad), "wrong", *bad, sep="\n    ")
