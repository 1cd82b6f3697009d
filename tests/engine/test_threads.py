"""Work in several threads at once: each scenario ends with the numbers of one thread, and the modes of a thread are its own."""

import gc
import multiprocessing
import threading
import warnings
import weakref

import numpy as np
import pytest

import symgrad as torch
from symgrad import func
from symgrad.compiled import recording
from symgrad.engine import hooks
from symgrad.engine.storage import views
from symgrad.program.cache import programs
from tests.support.threads import run_in_threads

X = np.array([0.5, 1.5])
THREADS, ROUNDS = 4, 20


def leaf(value=X):
    return torch.tensor(value, requires_grad=True)


def same(found, expected):
    assert np.allclose(found.detach().numpy(), expected, rtol=1e-14, atol=0), f"{found} instead of {expected}"


def in_a_thread(work):
    """The result of work in a new thread."""
    out = []
    run_in_threads(lambda _: out.append(work()), 1)
    return out[0]


def one_graph_by_many():
    x = leaf()
    y = (x.sin() * x).sum()
    run_in_threads(lambda i: [y.backward(retain_graph=True) for _ in range(ROUNDS)], THREADS)
    same(x.grad, THREADS * ROUNDS * (np.cos(X) * X + np.sin(X)))


def one_graph_freed_once():
    """Without retain_graph one thread gets the gradient; the others get it, too, or torch's error."""
    for _ in range(10 * ROUNDS):
        x, errors = leaf(), []
        y = (x * x).sum()

        def work(i, y=y, errors=errors):
            try:
                y.backward()
            except RuntimeError as error:
                errors.append(str(error))

        run_in_threads(work, THREADS)
        assert len(errors) < THREADS and all("Trying to backward through the graph a second time" in text for text in errors)
        same(x.grad, (THREADS - len(errors)) * 2 * X)


def a_shared_part():
    """Threads differentiate graphs that have a part in common."""
    x = leaf()
    part = x.exp()

    def work(i):
        for _ in range(ROUNDS):
            (g,) = torch.autograd.grad((part * (i + 1)).sum(), x, retain_graph=True)
            same(g, (i + 1) * np.exp(X))

    run_in_threads(work, THREADS)
    assert x.grad is None


def higher_derivatives():
    x = leaf()

    def work(i):
        for _ in range(ROUNDS):
            (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
            (h,) = torch.autograd.grad(g.sum(), x)
            same(h, 6 * X)

    run_in_threads(work, THREADS)


def modes_end_with_their_thread():
    in_a_thread(lambda: torch.set_grad_enabled(False))
    assert torch.is_grad_enabled() and in_a_thread(torch.is_grad_enabled)


def multithreading_mode():
    with torch.autograd.set_multithreading_enabled(False):
        x = leaf()
        run_in_threads(lambda i: (x * x).sum().backward(), THREADS)
        same(x.grad, THREADS * 2 * X)


def hooks_beside_backward():
    """Hooks come and go while another thread passes the same nodes back."""
    x = leaf()
    y = x * 2
    z = y.sum()

    def work(i):
        for _ in range(ROUNDS):
            if i % 2:
                handle = y.register_hook(lambda g: g * 1)
                handle.remove()
            else:
                z.backward(retain_graph=True)

    run_in_threads(work, THREADS)
    same(x.grad, THREADS // 2 * ROUNDS * 2 * np.ones(2))


def hooks_run_in_the_calling_thread():
    x = leaf()
    y, found = x * 2, []
    y.register_hook(lambda g: found.append((threading.get_ident(), torch.is_grad_enabled())))
    idents = []

    def work(i):
        idents.append(threading.get_ident())
        y.sum().backward(retain_graph=True)

    run_in_threads(work, THREADS)
    assert sorted(ident for ident, _ in found) == sorted(idents) and not any(grad for _, grad in found)


def hooks_registered_by_many():
    x = leaf()
    y, calls = x * 2, []
    handles = [[] for _ in range(THREADS)]
    run_in_threads(lambda i: [handles[i].append(y.register_hook(lambda g: calls.append(i))) for _ in range(ROUNDS)], THREADS)
    y.sum().backward(retain_graph=True)
    assert sorted(calls) == sorted(list(range(THREADS)) * ROUNDS)
    run_in_threads(lambda i: [handle.remove() for handle in handles[i]], THREADS)
    calls.clear()
    y.sum().backward()
    assert not calls


def transforms():
    f = func.vmap(func.jacrev(func.grad(lambda z: (z**3).sum())))
    run_in_threads(lambda i: [same(f(torch.tensor([(i + 1) * X]))[0], np.diag(6 * (i + 1) * X)) for _ in range(ROUNDS)], THREADS)


def hessians_from_a_cold_cache():
    programs.clear()
    f = func.hessian(lambda z: (z**4).sum())
    run_in_threads(lambda i: [same(f(torch.tensor((i + 1) * X)), np.diag(12 * ((i + 1) * X) ** 2)) for _ in range(ROUNDS)], THREADS)


def compiled_by_many():
    """All threads call a function that nobody has called before, and some its derivatives; the captured tensor keeps its value."""
    captured = leaf(np.array([2.0, 3.0]))
    f = torch.compile(lambda z: (captured * z.sin()).sum(), backend="numpy")

    def work(i):
        z = torch.tensor((i + 1) * X)
        for _ in range(ROUNDS):
            same(f(z), ([2, 3] * np.sin((i + 1) * X)).sum())
            same(f.gradient(z), [2, 3] * np.cos((i + 1) * X))

    run_in_threads(work, THREADS)
    same(captured * 1, [2.0, 3.0])


def compiled_with_one_captured_tensor():
    """Threads record functions of one captured tensor at once, and run others."""
    captured = leaf(np.array([2.0, 3.0]))
    shared = torch.compile(lambda z: (captured + z).sum(), backend="numpy")

    def work(i):
        for _ in range(ROUNDS):
            same(torch.compile(lambda z: (captured * z).sum() * (i + 1), backend="numpy")(torch.tensor(X)), 5.5 * (i + 1))
            same(shared(torch.tensor(X)), 7.0)

    run_in_threads(work, THREADS)
    same(captured * 1, [2.0, 3.0])


def compiled_objects():
    """Threads compile one program with the compiler, if there is one, at once."""
    a = torch.tensor(X)
    run_in_threads(lambda i: same(torch.compile(lambda z: (z.sin() * z.exp()).sum())(a), (np.sin(X) * np.exp(X)).sum()), THREADS)


def generators():
    """Each thread draws from its own generator; the common one gives every number once."""
    expected = [torch.rand(50, generator=torch.Generator().manual_seed(i)).numpy() for i in range(THREADS)]
    run_in_threads(lambda i: same(torch.rand(50, generator=torch.Generator().manual_seed(i)), expected[i]), THREADS)
    torch.manual_seed(7)
    whole = torch.rand(THREADS * ROUNDS).numpy()
    torch.manual_seed(7)
    drawn = []
    run_in_threads(lambda i: [drawn.append(torch.rand(1).item()) for _ in range(ROUNDS)], THREADS)
    assert np.array_equal(sorted(drawn), sorted(whole))


def writes_under_many_reads():
    """Each thread writes into its own view of one memory; versions count every write."""
    x = torch.zeros(THREADS, 2)
    before = x._version
    run_in_threads(lambda i: [x[i].add_(1) for _ in range(ROUNDS)], THREADS)
    same(x, ROUNDS * np.ones((THREADS, 2)))
    assert x._version > before


def deep_graphs_freed_elsewhere():
    """A graph of 20,000 nodes dies in a thread with a small stack, and where nobody holds it but another thread."""
    x = leaf()
    y = x
    for _ in range(20_000):
        y = y + 1
    graphs = [y]
    node = weakref.ref(y.grad_fn)
    del y
    before = threading.stack_size(256 * 1024)
    try:
        in_a_thread(graphs.clear)
    finally:
        threading.stack_size(before)
    gc.collect()
    assert node() is None


def _child(queue):
    x = leaf()
    y = x * 1
    y.register_hook(lambda g: g)
    y.view(-1).mul_(2)
    y.sum().backward()
    f = torch.compile(lambda z: (x * z.exp()).sum(), backend="numpy")
    queue.put((x.grad.tolist(), float(f(torch.tensor(X))), torch.is_grad_enabled()))


def a_fork_while_locks_are_held():
    """A child forked while another thread holds every lock, in a mode, and in the middle of an accumulation, is whole."""
    held, end = threading.Event(), threading.Event()

    def hold():
        with torch.no_grad(), hooks._attaching, hooks._accumulating, views._lock, recording.swapping:
            hooks._adding = True
            held.set()
            end.wait()
            hooks._adding = False

    worker = threading.Thread(target=hold)
    worker.start()
    held.wait()
    try:
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=_child, args=(queue,))
        with warnings.catch_warnings(action="ignore"):  # of Python 3.12: a process with threads is forked
            child.start()
        child.join(20)
        if child.exitcode is None:
            child.kill()
            child.join()
            raise AssertionError("the child waits for a lock that a thread of its parent held")
        assert child.exitcode == 0 and queue.get() == ([2.0, 2.0], pytest.approx((X * np.exp(X)).sum(), rel=1e-14), True)
    finally:
        end.set()
        worker.join()
    x = leaf()
    (x * 2).sum().backward()
    same(x.grad, [2.0, 2.0])


SCENARIOS = [one_graph_by_many, one_graph_freed_once, a_shared_part, higher_derivatives, modes_end_with_their_thread, multithreading_mode,
             hooks_beside_backward, hooks_run_in_the_calling_thread, hooks_registered_by_many, transforms, hessians_from_a_cold_cache,
             compiled_by_many, compiled_with_one_captured_tensor, compiled_objects, generators, writes_under_many_reads,
             deep_graphs_freed_elsewhere, a_fork_while_locks_are_held]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda f: f.__name__)
def test_threads(scenario):
    scenario()
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
