"""Datasets, samplers and loaders: results recorded from PyTorch for the same programs, and workers."""

import threading
import time
import traceback

import pytest

import symgrad
from symgrad.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, get_worker_info
from tests.support import programs_data
from tests.support.sides import compare, programs, recorded

RECORDED = recorded(programs_data)


@pytest.mark.parametrize("name", programs(programs_data))
def test_loaders_yield_what_torch_yields(name):
    compare(programs(programs_data)[name], symgrad, RECORDED[name])


class Slow(Dataset):
    """Examples of which the first takes the longest."""

    def __init__(self, count):
        self.count, self.threads = count, set()

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        self.threads.add(threading.get_ident())
        time.sleep(0.02 if i < 2 else 0)
        return i


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_keep_the_order(workers):
    data = Slow(17)
    assert [batch.tolist() for batch in DataLoader(data, 3, num_workers=workers)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14],
                                                                                     [15, 16]]
    assert len(data.threads) == workers and threading.get_ident() not in data.threads


def test_prefetch_factor_bounds_the_batches_loaded_ahead():
    asked = []

    class Noting(Dataset):
        def __getitem__(self, i):
            asked.append(i)
            return i

    batches = iter(DataLoader(Noting(), sampler=range(100), num_workers=2, prefetch_factor=3))
    next(batches)
    time.sleep(0.05)
    assert max(asked) <= 6
    before = threading.active_count()
    batches.close()
    assert threading.active_count() < before


def test_get_worker_info():
    begun, seen = [], []

    class Asking(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            info = get_worker_info()
            seen.append((info.id, info.num_workers, info.dataset is self))
            return i

    loader = DataLoader(Asking(), num_workers=2, worker_init_fn=begun.append)
    assert len(list(loader)) == 4 and sorted(begun) == [0, 1]
    assert set(seen) == {(0, 2, True), (1, 2, True)} and get_worker_info() is None


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_reaches_the_caller_with_its_traceback(workers):
    class Broken(Slow):
        def __getitem__(self, i):
            if i == 3:
                raise LookupError("example 3")
            return i

    found = []
    with pytest.raises(LookupError, match="example 3") as caught:
        for batch in DataLoader(Broken(6), 2, num_workers=workers):
            found.append(batch.tolist())
    assert found == [[0, 1]]
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == 'raise LookupError("example 3")'


def test_an_exception_of_worker_init_fn_reaches_the_caller():
    def start(worker):
        raise OSError(f"worker {worker} is ill")

    with pytest.raises(OSError, match="worker 0 is ill"):
        list(DataLoader([1, 2], num_workers=1, worker_init_fn=start))


def test_a_timeout_raises():
    class Stuck(Slow):
        def __getitem__(self, i):
            time.sleep(0.3)
            return i

    with pytest.raises(RuntimeError, match="^DataLoader timed out after 0.05 seconds$"):
        list(DataLoader(Stuck(2), num_workers=1, timeout=0.05))


def test_iterable_datasets_of_different_lengths():
    class Uneven(IterableDataset):
        def __iter__(self):
            worker = get_worker_info().id
            return iter(range(10 * worker, 10 * worker + worker + 1))

    assert list(DataLoader(Uneven(), batch_size=None, num_workers=3)) == [0, 10, 20, 11, 21, 22]


def test_the_order_depends_on_the_seed_alone():
    def order(between, **options):
        symgrad.manual_seed(11)
        out = []
        for batch in DataLoader(range(20), 4, **options):
            out += batch.tolist()
            between()
        return out

    for options in ({"shuffle": True}, {"sampler": RandomSampler(range(20), replacement=True, num_samples=100)}):
        assert order(lambda: None, **options) == order(lambda: symgrad.rand(3), **options) != list(range(20))
