"""The modes of a thread are its own: four threads enter and leave blocks in every order, and each sees what it has entered."""

import contextlib
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as torch
from symgrad import autograd
from symgrad.autograd import forward_ad, graph
from symgrad.graph.modes import special, thread
from symgrad.nn.utils import parametrize
from symgrad.utils import checkpoint

pytestmark = pytest.mark.filterwarnings("ignore")  # anomaly mode warns; the filters are one for all threads


@contextlib.contextmanager
def called(mode):
    """A block that calls what sets a mode, and at its end calls it again."""
    mode(False)
    yield
    mode(True)


@contextlib.contextmanager
def enable_grad_in_no_grad():
    with torch.no_grad(), torch.enable_grad(), autograd.set_multithreading_enabled(False):
        yield


MODES = {
    "no_grad": torch.no_grad, "inference_mode": torch.inference_mode, "set_grad_enabled": lambda: torch.set_grad_enabled(False),
    "set_grad_enabled, called": lambda: called(torch.set_grad_enabled), "enable_grad": enable_grad_in_no_grad,
    "detect_anomaly": autograd.detect_anomaly, "set_detect_anomaly": lambda: autograd.set_detect_anomaly(True, check_nan=False),
    "set_detect_anomaly, called": lambda: called(lambda off: autograd.set_detect_anomaly(not off)),
    "set_multithreading_enabled": lambda: autograd.set_multithreading_enabled(False), "dual_level": forward_ad.dual_level,
    "set_fwd_grad_enabled": lambda: forward_ad._set_fwd_grad_enabled(False),
    "saved_tensors_hooks": lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t), "save_on_cpu": graph.save_on_cpu,
    "disable_saved_tensors_hooks": lambda: graph.disable_saved_tensors_hooks("not here"),
    "allow_mutation_on_saved_tensors": graph.allow_mutation_on_saved_tensors,
    "set_checkpoint_early_stop": lambda: checkpoint.set_checkpoint_early_stop(False),
    "set_checkpoint_debug_enabled": lambda: checkpoint.set_checkpoint_debug_enabled(True), "cached": parametrize.cached}


def seen():
    """What this thread sees of its modes: what it is told, and what operations do."""
    found = [torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled(),
             autograd.is_multithreading_enabled(), forward_ad._is_fwd_grad_enabled(), thread.modes.saving is None, len(thread.modes.observers),
             thread.modes.level is None, thread.modes.plain, parametrize._cache.depth]
    x, ends = torch.zeros(1, requires_grad=True), []

    def block(z):
        z = z.sin()
        ends.append(1)
        return z

    def unsteady(z):
        ends.append(1)
        return z.sin() if len(ends) % 2 else z.expand(2).sin()

    found.append((0 * x.sqrt()).requires_grad)
    if torch.is_grad_enabled():
        try:
            (0 * x.sqrt()).backward()
        except RuntimeError as error:
            found.append(type(error))
        try:
            checkpoint.checkpoint(block, x, use_reentrant=False).backward()
        except (RuntimeError, checkpoint.CheckpointError) as error:
            found.append(type(error))
        found.append(len(ends))
        ends.clear()
        try:
            checkpoint.checkpoint(unsteady, x, use_reentrant=False).backward()
        except (RuntimeError, checkpoint.CheckpointError) as error:
            found.append("Sin(" in str(error))
    try:
        with autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            found.append("hooks are allowed")
    except RuntimeError:
        found.append("hooks are refused")
    return tuple(found)


def inside(name):
    with MODES[name]():
        return seen()


THREADS = 4
ORDERS = st.permutations(sorted([*range(THREADS)] * 2))  # a thread that comes first enters, one that comes again leaves


def enters_and_leaves(order, names):
    """Thread i enters the block names[i] where i comes first in the order, and leaves it where it comes again; after each, what every thread sees."""
    plain, blocks, expected = seen(), {}, {name: inside(name) for name in names}
    with contextlib.ExitStack() as stack:
        pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(THREADS)]
        do = [lambda work, *args, pool=pool: pool.submit(work, *args).result() for pool in pools]
        for number in order:
            if number in blocks:
                do[number](blocks.pop(number).__exit__, None, None, None)
            else:
                blocks[number] = do[number](MODES[names[number]])
                do[number](blocks[number].__enter__)
            for each in range(THREADS):
                assert do[each](seen) == (expected[names[each]] if each in blocks else plain), f"thread {each} of {names} after {number} in {order}"
            assert seen() == plain
    assert not special


@pytest.mark.sweep
@settings(max_examples=10)
@given(order=ORDERS, names=st.lists(st.sampled_from(list(MODES)), min_size=THREADS, max_size=THREADS))
def test_blocks_of_several_modes_in_four_threads(order, names):
    enters_and_leaves(order, names)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", MODES)
def test_a_mode_that_four_threads_enter_and_leave(name):
    assert inside(name) != seen()
    enters_and_leaves((0, 1, 2, 3, 0, 1, 2, 3), [name] * THREADS)  # the first one that enters is the first one that leaves


@pytest.mark.sweep
@pytest.mark.parametrize("name", MODES)
def test_a_mode_that_threads_enter_and_leave_in_every_order(name):
    orders = {order for order in itertools.permutations((0, 0, 1, 1, 2, 2)) if list(dict.fromkeys(order)) == [0, 1, 2]}
    for order in orders:  # all but those with the threads in other places; the fourth thread enters nothing
        enters_and_leaves(order, [name] * THREADS)
    assert len(orders) == 15
