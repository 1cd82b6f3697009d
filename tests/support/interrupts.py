"""Interrupts at a chosen line of the library, and what must be whole after one."""

import contextlib
import dis
import gc
import os
import sys
import threading
from pathlib import Path

import mpmath
import numpy as np
from flint import ctx as arb

import symgrad as torch
from symgrad.carriers.digits import context
from symgrad.graph.modes import DEFAULT, special, thread
from symgrad.system.frames import PACKAGE

MPMATH = str(Path(mpmath.__file__).parent)
PRECISIONS = mpmath.mp.prec, context.prec, arb.prec


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


def leaf():
    return torch.tensor([0.5, 1.5], requires_grad=True)


class Interrupted:
    """Runs a program and raises an error when it comes to its n-th line inside the library, or inside one of some folders.

    `at` is that line, None past the end; `lines` is how many ran; `raised` says whether the error came out.
    """

    def __init__(self, program, n=0, error=KeyboardInterrupt, folders=(PACKAGE,)):
        self.folders = folders
        self.n, self.lines, self.at, self.error, self.process = n, 0, None, error, os.getpid()
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            for _ in _alone(program):
                pass
        except (error, Exception) as caught:  # the library may report a MemoryError by another error, as torch does
            if self.at is None or error is KeyboardInterrupt and not isinstance(caught, error):
                raise
            self.raised = True
        else:
            self.raised = False
        finally:
            sys.settrace(before)

    def _call(self, frame, event, argument):
        return self._line if frame.f_code.co_filename.startswith(self.folders) and self._interrupts else None

    @property
    def _interrupts(self):  # once, and not in a process that was forked
        return self.at is None and os.getpid() == self.process

    def _line(self, frame, event, argument):
        if event == "line" and self._interrupts:
            self.lines += 1
            if self.lines == self.n and _before_exit(frame):
                self.n += 1
            if self.lines == self.n:
                self.at = f"{frame.f_code.co_filename.removeprefix(PACKAGE)}:{frame.f_lineno} {frame.f_code.co_name}"
                raise self.error
        return self._line


def _before_exit(frame):
    """Whether a `with` statement is about to call `__exit__(None, None, None)`: there the interpreter itself raises nothing."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at:at + 6:2] == bytes([dis.opmap["LOAD_CONST"]] * 3)


def _alone(program):
    """Run a program in a generator, with which its state of handled exceptions ends.

    An error that a trace function raises at the end of an `except` block leaves the exception of that block as the handled one of its frame stack,
    for the rest of the thread, and all that its traceback refers to stays alive.
    """
    program()
    yield


def differences(module, parameters):
    """What is wrong with the modes of this thread, and with what is computed under them."""
    modes = thread.modes
    found = [name for name, value in (("grad", True), ("inference", False), ("recorder", DEFAULT), ("observers", ()), ("level", None),
                                      ("keep_values", False), ("batches", ())) if getattr(modes, name) != value]
    found += ["the collection of garbage is off"] * (not gc.isenabled())
    found += ["anomaly"] * torch.is_anomaly_enabled() + ["special"] * bool(special)
    found += ["precision"] * ((mpmath.mp.prec, context.prec, arb.prec) != PRECISIONS)
    found += ["module"] * any(p is not q for p, q in zip(module.parameters(), parameters))
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
