"""After an interrupt at a random line, and after errors of hooks, what a program works on is as before or as after, and works on."""

import functools
import os
import random
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from symgrad import nn
from symgrad.autograd.graph import saved_tensors_hooks
from tests.support.interrupt_cases import CASES, either, values
from tests.support.interrupts import Interrupted, differences, leaf, locked

SLOW = {"checks", "derived"}
FEW = {"checks": 8, "derived": 20, "batches of processes": 3}  # one out of so many, since it is slow
layer = nn.Linear(2, 1)


def in_this_thread(work):
    return work()


def in_another_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def attack(name, folder, count, error, call=in_this_thread):
    """Interrupt a case at `count` random lines; return how often it was, and what was wrong, by line."""
    draw, wrong, parameters = random.Random(zlib.crc32(f"{name} {error.__name__} {call.__name__}".encode())), {}, list(layer.parameters())
    for _ in range(2):  # the second one finds warm caches
        case = CASES[name](folder)
        lines = Interrupted(next(case)).lines
        next(case, None)
    count = max(1, count // FEW.get(name, 1))
    for _ in range(count):
        case = CASES[name](folder)
        run = call(functools.partial(Interrupted, next(case), draw.randint(1, lines), error))
        try:
            next(case, None)
        except Exception as failure:
            wrong.setdefault(str(run.at), f"{type(failure).__name__}: {failure}")
        if found := differences(layer, parameters):
            wrong.setdefault(str(run.at), found)
        if run.at is not None and not run.raised and error is KeyboardInterrupt:
            wrong.setdefault(str(run.at), "the interrupt was swallowed")
    return count, wrong | dict.fromkeys(locked())


KINDS = [(KeyboardInterrupt, in_this_thread), (MemoryError, in_this_thread), (MemoryError, in_another_thread)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path))
    # An interrupt between `open` and `with` leaves a file to its finalizer, which warns; pytest would keep what such errors refer to alive.
    monkeypatch.setattr(sys, "unraisablehook", lambda error: None)
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", [name for name in CASES if name not in SLOW])
def test_an_interrupt_at_a_random_line_leaves_old_or_new(name, folder):
    for error, call in KINDS:
        assert attack(name, folder, 4, error, call)[1] == {}


@pytest.mark.sweep
@pytest.mark.parametrize("error, call", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_many_interrupts_at_random_lines_leave_old_or_new(name, error, call, folder):
    count, wrong = attack(name, folder, 50, error, call)
    print(f"{name}: {count} interrupts")
    assert wrong == {}


@pytest.mark.sweep
def test_an_interrupt_at_any_line_of_the_store_leaves_no_lock(folder):
    """Otherwise the next call of this process would wait for itself."""
    for error in (KeyboardInterrupt, MemoryError):
        line, run = 0, None
        while run is None or run.at is not None:
            case = CASES["objects on disk"](folder)
            run, line = Interrupted(next(case), line + 1, error), line + 1
            next(case, None)
        assert line > 100


PLACES = {
    "a tensor's": lambda x, y, hook: y.register_hook(hook), "a leaf's": lambda x, y, hook: x.register_hook(hook),
    "after accumulation": lambda x, y, hook: x.register_post_accumulate_grad_hook(hook), "a node's": lambda x, y, hook: y.grad_fn.register_hook(hook),
    "before a node": lambda x, y, hook: y.grad_fn.register_prehook(hook)}


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, StopIteration])
@pytest.mark.parametrize("place", PLACES)
def test_an_error_of_a_hook_leaves_old_or_new(place, error):
    """The hooks are called by each of three backward passes; that of the second one raises."""
    calls = []

    def hook(*_):
        calls.append(1)
        if len(calls) == 2:
            raise error

    x, w = leaf(), leaf()
    y = x * w
    handle = PLACES[place](x, y, hook)
    loss = (y * y).sum() + w.sum()
    loss.backward(retain_graph=True)
    first = values((x.grad, w.grad))
    with pytest.raises(error):
        loss.backward(retain_graph=True)
    for p, g in zip((x, w), first):
        either(p.grad, g, 2 * g)
        p.grad = None
    loss.backward(retain_graph=True)
    assert len(calls) == 3 and all(np.array_equal(p.grad, g) for p, g in zip((x, w), first))
    handle.remove()
    loss.backward()
    assert len(calls) == 3 and differences(layer, list(layer.parameters())) == locked() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, StopIteration])
@pytest.mark.parametrize("nth", range(1, 5))
def test_an_error_of_a_saved_tensor_hook_leaves_none_behind(nth, error):
    """Of two hooks, `pack` and `unpack`, which are called four times by a product, the `nth` call raises."""
    calls = []

    def call(t):
        calls.append(1)
        if len(calls) == nth:
            raise error
        return t

    x, w = leaf(), leaf()
    with pytest.raises(error), saved_tensors_hooks(call, call):
        (x * w).sum().backward()
    assert x.grad is None and w.grad is None and len(calls) == nth
    assert differences(layer, list(layer.parameters())) == locked() == []


if __name__ == "__main__":  # as many interrupts of each case as the argument says
    total = 0
    for each in sys.argv[2:] or CASES:
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as made:
                os.environ["SYMGRAD_CACHE_DIR"] = made
                done, bad = attack(each, Path(made), int(sys.argv[1]), *kind)
            total += done
            print(each, kind[0].__name__, kind[1].__name__, done, "interrupts", len(bad), "wrong", *bad.items(), sep="\n    " if bad else ", ")
    print(total, "interrupts")
