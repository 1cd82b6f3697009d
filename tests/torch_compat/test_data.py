"""Datasets, samplers and loaders: worker processes, and what depends on chance."""

import gc
import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import symgrad
from symgrad.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    workers,
)

pytestmark = pytest.mark.filterwarnings("ignore:DataLoader. num_workers")  # more workers than cores


class Examples(Dataset):
    """The results of a function of the index."""

    def __init__(self, count, example):
        self.count, self.example = count, example

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.example(i)


class Numbers(IterableDataset):
    """Different numbers of examples in each worker."""

    def __iter__(self):
        worker = get_worker_info().id
        return iter(range(10 * worker, 10 * worker + worker + 1))


def slow_first(i):
    time.sleep(0.02 if i < 2 else 0)
    return i, os.getpid()


def children():
    gc.collect()
    return multiprocessing.active_children()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_keep_the_order(workers):
    batches = list(DataLoader(Examples(17, slow_first), 3, num_workers=workers))
    assert [i for numbers, _ in batches for i in numbers.tolist()] == list(range(17)) and len(batches[-1][0]) == 2
    found = {process for _, ids in batches for process in ids.tolist()}
    assert len(found) == workers and os.getpid() not in found and not children()


@pytest.mark.sweep
def test_batches_in_the_order_of_their_arrival():
    arrived = multiprocessing.get_context("fork").Event()

    def example(i):
        assert i or arrived.wait(20)
        return i

    batches = iter(DataLoader(Examples(6, example), num_workers=2, in_order=False))
    first = int(next(batches))
    arrived.set()
    assert first != 0 and sorted([first, *map(int, batches)]) == list(range(6))
    assert sorted(int(i) for i in DataLoader(Numbers(), num_workers=4, in_order=False)) == [0, 10, 11, 20, 21, 22, 30, 31, 32, 33]


def test_prefetch_factor_bounds_the_batches_loaded_ahead():
    asked = multiprocessing.get_context("fork").Value("i", 0)

    def example(i):
        with asked:
            asked.value += 1
        return i

    batches = iter(DataLoader(Examples(100, example), num_workers=2, prefetch_factor=3))
    next(batches)
    end = time.monotonic() + 20
    while asked.value < 7 and time.monotonic() < end:
        time.sleep(0.01)
    assert asked.value == 7 and len(children()) == 2
    batches.close()
    assert not children() and list(batches) == []


@pytest.mark.sweep
def test_workers_have_numbers_seeds_and_a_copy_of_the_data():
    def begin(worker):
        get_worker_info().dataset.begun = worker

    def example(i):
        info = get_worker_info()
        return info.id, info.num_workers, info.dataset.begun, info.seed == symgrad.initial_seed(), random.random(), np.random.rand(), symgrad.rand(1)

    data = Examples(4, example)

    def loaded(seed):
        symgrad.manual_seed(seed)
        return list(DataLoader(data, None, num_workers=2, worker_init_fn=begin))

    first = loaded(3)
    assert [row[:4] for row in first] == [[0, 2, 0, True], [1, 2, 1, True]] * 2 and get_worker_info() is None and not hasattr(data, "begun")
    assert repr(loaded(3)) == repr(first) != repr(loaded(4)) and len({repr(row[4:]) for row in first}) == 4


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_reaches_the_caller_with_its_traceback(workers):
    class Unnamed(ValueError):
        pass

    def example(i):
        if i in (3, 5, 6):
            raise {3: LookupError, 5: KeyError, 6: Unnamed}[i](f"example {i}")
        return i

    batches, found = iter(DataLoader(Examples(9, example), num_workers=workers)), []
    while True:
        try:
            found.append(int(next(batches)))
        except StopIteration:
            break
        except Exception as error:
            found.append(error)
    assert [x for x in found if isinstance(x, int)] == [0, 1, 2, 4, 7, 8]
    assert list(map(type, found[3:7:3])) == [LookupError, RuntimeError if workers else Unnamed] and type(found[5]) is KeyError
    for i in (3, 5, 6) if workers else ():
        lines = str(found[i]).splitlines()
        assert lines[0].startswith("Caught ") and lines[0].endswith(f" in DataLoader worker process {i % 2}.") and f"example {i}" in lines[-1]
        assert lines[1] == "Original Traceback (most recent call last):" and any("raise {3: LookupError" in line for line in lines)


def test_what_cannot_be_sent_is_the_error_of_its_batch():
    with pytest.raises((AttributeError, TypeError, RuntimeError), match="(?s)Caught .* in DataLoader worker process 0.*local object"):
        list(DataLoader(Examples(1, lambda i: lambda: i), None, num_workers=1))


def test_a_worker_has_no_workers_of_its_own():
    nested = Examples(1, lambda i: list(DataLoader([1, 2], num_workers=1)))
    with pytest.raises(AssertionError, match="daemonic processes are not allowed to have children"):
        list(DataLoader(nested, None, num_workers=1, timeout=20))


def test_an_exception_of_worker_init_fn_reaches_the_caller():
    def start(worker):
        raise OSError(f"worker {worker} is ill")

    with pytest.raises(OSError, match="(?s)^Caught OSError in DataLoader worker process 0.*worker 0 is ill"):
        list(DataLoader([1, 2], num_workers=1, worker_init_fn=start))


@pytest.mark.sweep
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("end, how", [(lambda: os.kill(os.getpid(), signal.SIGKILL), "it was killed by SIGKILL; if the memory ran out, take fewer"),
                                      (lambda: sys.exit(3), "it ended with exit code 3$")], ids=["killed", "exit"])
def test_a_worker_that_ends_is_an_error(end, how, in_order):
    loader = DataLoader(Examples(8, lambda i: end() if i == 4 else i), num_workers=2, in_order=in_order, persistent_workers=True)
    for _ in range(2):  # the next pass has new workers
        with pytest.raises(RuntimeError, match=rf"^DataLoader worker \(pid\(s\) \d+\) exited unexpectedly: {how}"):
            list(loader)
        assert not children()


@pytest.mark.sweep
def test_a_timeout_raises():
    late = multiprocessing.get_context("fork").Event()
    batches = iter(DataLoader(Examples(2, lambda i: i and late.wait(20) and i), None, num_workers=1, timeout=1.0))
    assert next(batches) == 0
    with pytest.raises(RuntimeError, match="timed out after 1.0 seconds"):
        next(batches)
    late.set()
    assert next(batches) == 1


@pytest.mark.sweep
def test_persistent_workers_go_on():
    loader = DataLoader(Examples(7, slow_first), 2, num_workers=2, persistent_workers=True, shuffle=True)
    passes = [list(loader) for _ in range(3)]
    assert len({tuple(i for numbers, _ in batches for i in numbers.tolist()) for batches in passes}) > 1
    assert len({process for batches in passes for _, ids in batches for process in ids.tolist()}) == 2 == len(children())
    left = iter(loader)
    next(left)
    assert sorted(i for numbers, _ in loader for i in numbers.tolist()) == list(range(7))  # what the pass before left is dropped
    with pytest.raises(RuntimeError, match="a newer iterator"):
        next(left)
    streams = DataLoader(Numbers(), None, num_workers=3, persistent_workers=True)
    assert [list(streams) for _ in range(2)] == [[0, 10, 20, 11, 21, 22]] * 2
    del loader, left, streams
    assert not children()


@pytest.mark.sweep
def test_large_batches_and_many_tasks_do_not_block():
    indices = [list(range(1000 * i, 1000 * i + 40_000)) for i in range(12)]
    loader = DataLoader(Examples(0, None), batch_sampler=indices, num_workers=2, prefetch_factor=6)
    loader.dataset.example = float
    assert [len(batch) for batch in loader] == [40_000] * 12


@pytest.mark.sweep
def test_workers_end_with_an_interrupt_and_with_the_caller(tmp_path):
    program = tmp_path / "load.py"
    program.write_text("""
import os, sys, time
from symgrad.utils.data import DataLoader

class Slow:
    def __len__(self):
        return 100
    def __getitem__(self, i):
        time.sleep(60 * (i > 3))
        return os.getpid()

if __name__ == "__main__":
    batches = iter(DataLoader(Slow(), num_workers=2))
    print(*(int(next(batches)) for _ in range(4)), flush=True)
    next(batches)
""")

    for number in (signal.SIGINT, signal.SIGKILL):
        with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as caller:
            try:
                workers = {int(word) for word in caller.stdout.readline().split()}
                caller.send_signal(number)
                found = caller.communicate(timeout=20)[1]  # the workers hold the other end, too
            finally:
                caller.kill()
        assert len(workers) == 2
        assert ("KeyboardInterrupt" in found) is (number == signal.SIGINT)


@pytest.mark.sweep
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_start_methods(method):
    batches = list(DataLoader(Examples(5, slow_first), 2, num_workers=1, multiprocessing_context=method))
    assert [numbers.tolist() for numbers, _ in batches] == [[0, 1], [2, 3], [4]]


@pytest.mark.sweep
def test_iterable_datasets_of_different_lengths():
    assert list(DataLoader(Numbers(), batch_size=None, num_workers=3)) == [0, 10, 20, 11, 21, 22]


def test_an_iterable_dataset_longer_than_it_says():
    class Wrong(IterableDataset):
        def __iter__(self):
            return iter(range(3))

        def __len__(self):
            return 2

    loader = DataLoader(Wrong())
    assert len([batch for batch in loader]) == 3  # its length was not asked for, as `list` does
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="the length of the data set is 2, and 3 examples"):
        list(loader)
    loader = DataLoader(Wrong(), num_workers=2)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="and [3-6] examples.*get_worker_info"):
        list(loader)


def test_more_workers_than_cores_are_a_warning():
    with pytest.warns(UserWarning, match="DataLoader: num_workers is 1000"):
        loader: DataLoader[list[int]] = DataLoader(range(3), num_workers=1000)
    assert DataLoader[int] and loader.num_workers == 1000


@pytest.mark.parametrize("sampler", [RandomSampler(range(6)), RandomSampler(range(6), True), SubsetRandomSampler(range(6)),
                                     WeightedRandomSampler(range(1, 7), 6)])
def test_a_sampler_draws_when_its_first_index_is_taken(sampler):
    passes, found = [iter(sampler), iter(sampler)], []
    for one in passes:
        symgrad.manual_seed(3)
        found.append([next(one)])
    for one, indices in zip(passes, found):
        indices += one
    assert found[0] == found[1]


class Attributes(dict):
    def __init__(self, unit, **items):
        super().__init__(items)
        self.unit = unit


def test_mutable_structures_keep_what_they_have_besides_their_items():
    batch = default_collate([Attributes("m", x=1), Attributes("m", x=2)])
    assert type(batch) is Attributes and batch.unit == "m" and batch["x"].tolist() == [1, 2]
    counts = default_collate([defaultdict(int, a=1), defaultdict(int, a=3)])
    assert type(counts) is defaultdict and counts["a"].tolist() == [1, 3] and counts["b"] == 0
    given = Attributes("m", x=np.ones(1), y=[np.zeros(1)])
    found = default_convert(given)
    assert found.unit == "m" and type(found["x"]) is symgrad.Tensor and type(given["x"]) is type(given["y"][0]) is np.ndarray


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


def test_batched_access_is_passed_on():
    """`__getitems__` of a data set is called once for each batch, through subsets and stacks, too."""
    asked = []

    class Batched(Examples):
        def __getitems__(self, indices):
            asked.append(indices)
            return [self[i] for i in indices]

    data = Batched(4, lambda i: -i)
    assert [batch.tolist() for batch in DataLoader(Subset(data, [3, 1, 0]), 2)] == [[-3, -1], [0]] and asked == [[3, 1], [0]]
    stack = StackDataset(Subset(data, [2, 3]), "ab")
    assert [(x.tolist(), y) for x, y in DataLoader(stack, 2)] == [([-2, -3], ("a", "b"))] and asked[2:] == [[2, 3]]
    assert ConcatDataset([stack, stack])[3] == (-3, "b")


def test_an_interrupt_between_workers_leaves_none():
    context = multiprocessing.get_context("fork")
    starts = itertools.count()

    class Second(type(context)):
        def Process(self, *args, **kwargs):
            if next(starts) == 1:
                raise KeyboardInterrupt
            return context.Process(*args, **kwargs)

    with pytest.raises(KeyboardInterrupt):
        iter(DataLoader(range(3), num_workers=2, multiprocessing_context=Second()))
    assert not children()


@pytest.mark.sweep
def test_an_interrupt_at_any_line_while_workers_start_leaves_none():
    from tests.support.interrupts import Interrupted  # after the platforms without the packages that it needs

    loader, folder = DataLoader(range(3), num_workers=2), str(Path(workers.__file__))
    for n in itertools.count(1):
        batches = []
        run = Interrupted(lambda batches=batches: batches.append(iter(loader)), n, folders=(folder,))
        del batches
        assert not children(), run.at
        if run.at is None:
            break
    assert n > 20


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_pass_that_an_example_ended_is_followed_by_a_whole_one(error):
    asked = []

    class Once(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            asked.append(i)
            if len(asked) == 3:
                raise error
            return i

    loader = DataLoader(Once(), batch_size=2)
    batches = iter(loader)
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(error):
        next(batches)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_empty_set_has_no_batches(workers):
    assert list(DataLoader([], batch_size=2, num_workers=workers)) == [] and len(DataLoader([])) == 0


@pytest.mark.parametrize("line", ["close", "join"])
def test_an_interrupt_while_an_abandoned_iterator_is_finalized_leaves_no_process(monkeypatch, line):
    monkeypatch.setattr(sys, "unraisablehook", lambda error: None)  # the finalizer cannot raise it
    gc.collect()
    before, calls = sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [], []
    batches = iter(DataLoader(range(6), num_workers=2))
    next(batches)
    owner = workers._Worker if line == "close" else multiprocessing.process.BaseProcess
    work = getattr(owner, line)

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return work(*args)

    monkeypatch.setattr(owner, line, interrupted)
    del batches
    assert calls and not children()
    assert before == (sorted(os.listdir("/proc/self/fd")) if before else [])
