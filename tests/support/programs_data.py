"""Programs with data sets, samplers and loaders, for `sides`."""

from collections import OrderedDict, namedtuple
from types import SimpleNamespace

import numpy as np

Pair = namedtuple("Pair", "x y")


def _sets(torch):
    data = torch.utils.data

    class Five(data.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, i):
            return i

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    class Counted(Stream):
        def __len__(self):
            return 5

    class Unmeasured(data.Dataset):
        def __getitem__(self, i):
            return i

    class Broken(Five):
        def __getitem__(self, i):
            if i == 2:
                raise ValueError("a broken example")
            return i

    class Shared(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            return iter(range(7)) if info is None else iter(range(info.id, 7, info.num_workers))

    tensors = data.TensorDataset(torch.arange(6).reshape(3, 2), torch.arange(3))
    return SimpleNamespace(five=Five(), stream=Stream(), counted=Counted(), unmeasured=Unmeasured(), broken=Broken(), tensors=tensors,
                           shared=Shared())


def datasets(torch, log):
    data, sets = torch.utils.data, _sets(torch)
    log(lambda: data.Dataset()[0], lambda: len(data.Dataset()), lambda: list(sets.stream + sets.stream), lambda: (sets.five + sets.tensors)[5])
    log(lambda: (sets.tensors[1], len(sets.tensors), sets.tensors[:2]), lambda: data.TensorDataset(torch.ones(2), torch.ones(3)))
    both = data.ConcatDataset([sets.five, sets.tensors])
    log(lambda: (both[4], both[5], both[-1], len(both), both.cumulative_sizes), lambda: both[-9], lambda: both[8], lambda: data.ConcatDataset([]),
        lambda: data.ConcatDataset([sets.stream]))
    part = data.Subset(sets.five, [3, 1])
    log(lambda: (part[0], part[1], len(part), part.indices, part[[0, 1]], list(part)), lambda: part[5], lambda: part.__getitems__([1, 0]),
        lambda: data.Subset(part, [1])[0])


def stacking(torch, log):
    data, sets = torch.utils.data, _sets(torch)
    tuples, named = data.StackDataset(sets.five, "abcde"), data.StackDataset(i=sets.five, letter="abcde")
    log(lambda: (tuples[1], named[4], len(tuples), len(named), tuples.__getitems__([0, 2]), named.__getitems__([1])), lambda: tuples[5],
        lambda: list(data.DataLoader(named, 3)), lambda: data.StackDataset(), lambda: data.StackDataset(sets.five, i=sets.five),
        lambda: data.StackDataset(sets.five, sets.tensors), lambda: len(data.ChainDataset([sets.counted, sets.counted])),
        lambda: len(data.ChainDataset([sets.five])), lambda: type("Own", (data.Subset,), {"__getitem__": lambda self, i: i})(sets.five, [1]))


def splitting(torch, log):
    split, five = torch.utils.data.random_split, _sets(torch).five
    for lengths in ([3, 2], [0.5, 0.3, 0.2], [0.9, 0.1], [3, 3], [1.5, -0.5], [0.05, 0.95], [0.5, 0.2], [5], [0, 5]):
        log(lambda: [len(part) for part in split(five, lengths)])
    log(lambda: sorted(i for part in split(five, [2, 3]) for i in part))
    again = [[list(part) for part in split(five, [2, 3], torch.Generator().manual_seed(7))] for _ in range(2)]
    log(lambda: again[0] == again[1])


def samplers(torch, log):
    data, five = torch.utils.data, _sets(torch).five
    log(lambda: (list(data.SequentialSampler(five)), len(data.SequentialSampler(five))), lambda: sorted(data.RandomSampler(five)),
        lambda: len(list(data.RandomSampler(five, True, 40))), lambda: sorted(list(data.RandomSampler(five, num_samples=12))[:10]),
        lambda: len(data.RandomSampler(five, num_samples=3)), lambda: data.RandomSampler(five, replacement=3),
        lambda: data.RandomSampler(five, num_samples=0), lambda: data.RandomSampler([]), lambda: data.RandomSampler(five, num_samples="a"),
        lambda: (sorted(data.SubsetRandomSampler([4, 2, 7])), len(data.SubsetRandomSampler([1, 2]))),
        lambda: len(list(data.WeightedRandomSampler([1.0, 2.0], 5))), lambda: list(data.WeightedRandomSampler([0.0, 2.0], 3)),
        lambda: data.WeightedRandomSampler([1.0], 0), lambda: data.WeightedRandomSampler([1.0], 1, replacement=3),
        lambda: data.WeightedRandomSampler([[1.0, 2.0]], 5))
    batches = data.BatchSampler
    log(lambda: (list(batches(range(5), 2, False)), list(batches(range(5), 2, True))), lambda: (len(batches(range(5), 2, False)),
        len(batches(range(5), 2, True))), *(lambda size=size: batches(range(5), size, False) for size in (0, -1, True, 2.5)),
        lambda: batches(range(5), 2, 3))


def loading(torch, log):
    load, sets = torch.utils.data.DataLoader, _sets(torch)
    for options in ({}, {"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}, {"batch_size": 9},
                    {"batch_size": 2, "sampler": [4, 3, 0]}, {"batch_sampler": [[1, 2], [0]]}, {"batch_size": 2, "collate_fn": list},
                    {"batch_size": None, "collate_fn": str}):
        for workers in (0, 2):
            log(lambda: list(load(sets.five, num_workers=workers, **options)), lambda: len(load(sets.five, num_workers=workers, **options)))
    for options in ({"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}):
        log(lambda: list(load(sets.stream, **options)), lambda: len(load(sets.stream, **options)), lambda: list(load(sets.counted, **options)),
            lambda: len(load(sets.counted, **options)))
    for workers in (1, 2):
        log(lambda: list(load(sets.stream, 2, num_workers=workers)), lambda: list(load(sets.shared, 2, num_workers=workers)),
            lambda: list(load(sets.shared, 2, drop_last=True, num_workers=workers)), lambda: list(load(sets.shared, None, num_workers=workers)))
    log(lambda: list(load(sets.tensors, 2)), lambda: list(load([10, 20, 30], 2)), lambda: list(load({0: 1, 1: 2}, 2)), lambda: list(load([])),
        lambda: list(load(torch.utils.data.Subset(sets.tensors, [2, 0]), 2)), lambda: next(iter(load(sets.unmeasured))),
        lambda: next(iter(load([(1, "a", {"z": 2.0})]))), lambda: list(load(sets.broken, 2)))


def shuffling(torch, log):
    load, five = torch.utils.data.DataLoader, _sets(torch).five

    def order(**options):
        return [i for batch in load(five, 2, shuffle=True, **options) for i in batch.tolist()]

    log(lambda: sorted(order()), lambda: order(generator=torch.Generator().manual_seed(3)) == order(generator=torch.Generator().manual_seed(3)))
    torch.manual_seed(5)
    first = [order(), order()]
    torch.manual_seed(5)
    log(lambda: [order(), order()] == first)
    torch.manual_seed(5)
    log(lambda: order(num_workers=2) == first[0])


def options(torch, log):
    load, sets = torch.utils.data.DataLoader, _sets(torch)
    log(*(lambda given=given: load(sets.stream, **given) for given in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]})))
    log(*(lambda given=given: load(sets.five, **given) for given in (
        {"sampler": [1], "shuffle": True}, {"batch_size": 2, "batch_sampler": [[1]]}, {"shuffle": True, "batch_sampler": [[1]]},
        {"drop_last": True, "batch_sampler": [[1]]}, {"sampler": [1], "batch_sampler": [[1]]}, {"batch_size": None, "drop_last": True},
        {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True}, {"multiprocessing_context": "fork"},
        {"num_workers": 1, "multiprocessing_context": 3}, {"num_workers": 1, "prefetch_factor": -1},
        {"batch_size": 0}, {"batch_size": -1})))
    log(lambda: load([], shuffle=True), lambda: len(load(sets.unmeasured)), lambda: load(sets.unmeasured, shuffle=True))
    loader = load(sets.five, 2)
    for name in ("batch_size", "sampler", "dataset", "batch_sampler", "drop_last", "persistent_workers", "other"):
        log(lambda: setattr(loader, name, 3))
    log(lambda: (loader.batch_size, loader.drop_last, type(loader.sampler).__name__, type(loader.batch_sampler).__name__, loader.num_workers,
                 loader.collate_fn.__name__, loader.generator, loader.pin_memory, loader.timeout, loader.prefetch_factor, loader.persistent_workers,
                 loader.worker_init_fn, loader.multiprocessing_context), lambda: torch.utils.data.get_worker_info())
    single = load(sets.five, None)
    log(lambda: (type(single.sampler).__name__, single.batch_sampler, single.collate_fn.__name__),
        lambda: load(sets.five, num_workers=1).prefetch_factor)


def collating(torch, log):
    collate, convert = torch.utils.data.default_collate, torch.utils.data.default_convert
    for batch in ([1, 2], [1.0, 2.0], [True, False], ["a", "b"], [b"a"], [{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}], [Pair(1, 2.0), Pair(3, 4.0)],
                  [(1, "a"), (2, "b")], [[1, 2], [3, 4]], [torch.ones(2), torch.zeros(2)], [np.ones(2), np.zeros(2)], [np.float64(1), np.float64(2)],
                  [np.int32(1)], [np.array(1.0), np.array(2.0)], [None], [object], [[1], [1, 2]], [{1}, {2}], [np.array(["a"])], [],
                  [2**40, 1], [range(2), range(2)], [1 + 1j], [np.ones(1, np.float32)], [{"a": {"b": torch.ones(())}}]):
        log(lambda: collate(batch))
    log(lambda: (type(found := collate([OrderedDict(a=1)])).__name__, dict(found)))  # its own text depends on the version of Python
    log(lambda: convert({"a": np.ones(1), "b": [np.float64(1.0), "s", Pair(np.ones(1), 2)], "c": (np.zeros(1), np.array(["x"]))}))
