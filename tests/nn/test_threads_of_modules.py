"""Modules, loaders, checkpoints and optimizers in several threads at once."""

import numpy as np
import pytest

import symgrad as torch
from symgrad import func, nn
from symgrad.utils.checkpoint import checkpoint
from symgrad.utils.data import DataLoader, TensorDataset, get_worker_info
from tests.support.threads import run_in_threads

X = np.array([0.5, 1.5])
THREADS, ROUNDS = 4, 20


def same(found, expected):
    assert np.allclose(found.detach().numpy(), expected, rtol=1e-14, atol=0), f"{found} instead of {expected}"


def checkpoints():
    def work(i):
        x = torch.tensor(X, requires_grad=True)
        for reentrant in (False, True) * (ROUNDS // 4):
            checkpoint(lambda z: z.sin() * (i + 1), x, use_reentrant=reentrant).sum().backward()
        same(x.grad, ROUNDS // 4 * 2 * (i + 1) * np.cos(X))

    run_in_threads(work, THREADS)


def data_parallel():
    layer = nn.Linear(2, 1)
    parallel, batch = nn.DataParallel(layer), torch.tensor(np.arange(16.0).reshape(8, 2))
    expected = layer(batch).detach().numpy()
    run_in_threads(lambda i: [same(parallel(batch), expected) for _ in range(3)], THREADS)
    parallel(batch).sum().backward()
    same(layer.weight.grad, batch.numpy().sum(0)[None])


def functional_calls():
    """A module has the weights of the call, in a thread other than the main one, too, and its own afterwards; one thread at a time may call it so."""
    layer = nn.Linear(2, 1, bias=False)
    own = layer.weight.detach().numpy().copy()

    def work(i):
        for _ in range(ROUNDS):
            same(func.functional_call(layer, {"weight": torch.full((1, 2), float(i))}, (torch.tensor(X),)), [i * 2.0])

    run_in_threads(work, 1)
    assert np.array_equal(layer.weight.detach().numpy(), own)


def loaders():
    """Threads read one loader, whose workers are threads in turn, each with its number."""
    class Numbers(TensorDataset):
        def __getitem__(self, index):
            return super().__getitem__(index)[0] * 1 + 0 * get_worker_info().id

    loader = DataLoader(Numbers(torch.arange(6)), batch_size=2, num_workers=2)
    run_in_threads(lambda i: [same(torch.cat(list(loader)), np.arange(6)) for _ in range(2)], THREADS)
    assert get_worker_info() is None


def optimisers():
    """Hogwild: the steps of all threads reach the shared parameters, and none is torn."""
    weight = nn.Parameter(torch.zeros(2))

    def work(i):
        rule = torch.optim.SGD([weight], lr=0.01)
        for _ in range(ROUNDS):
            (g,) = torch.autograd.grad(((weight - 1) ** 2).sum(), weight)
            weight.grad = g
            rule.step()

    run_in_threads(work, THREADS)
    value = weight.detach().numpy()
    assert value[0] == value[1] and 0 < value[0] < 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scenario", [checkpoints, data_parallel, functional_calls, loaders, optimisers], ids=lambda f: f.__name__)
def test_threads(scenario):
    scenario()
    assert torch.is_grad_enabled() and get_worker_info() is None
