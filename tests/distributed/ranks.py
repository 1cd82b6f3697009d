"""A program for several processes: `mpiexec -n 2 python -m tests.distributed.ranks CHECK...` calls the checks of these names, or all."""

import contextlib
import sys
import time

import ml_dtypes
import numpy as np

import symgrad as torch
from symgrad import distributed as dist
from symgrad import nn
from symgrad.utils.data import DataLoader, DistributedSampler, TensorDataset
from tests.support.tables import table

CHECKS = {}


def check(f):
    CHECKS[f.__name__] = f
    return f


def own(dtype="float64", shape=(2, 3)):
    """A tensor of this rank, and those of all."""
    tensors = [torch.tensor((np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3 + 2 * rank).astype(dtype)) for rank in range(size())]
    return tensors[dist.get_rank()].clone(), tensors


def size():
    return dist.get_world_size()


def raises(kind, message, call):
    try:
        call()
    except kind as error:
        assert message in str(error), error
    else:
        raise AssertionError(f"{call} raised nothing")


@check
def reductions():
    rank = dist.get_rank()
    for dtype in ("float64", "float32", "float16", ml_dtypes.bfloat16, "complex64", "int64", "uint8", "bool"):
        for op, fold in ((dist.ReduceOp.SUM, np.add), (dist.ReduceOp.PRODUCT, np.multiply), (dist.ReduceOp.MAX, np.maximum),
                         (dist.ReduceOp.MIN, np.minimum)):
            if dtype == "complex64" and fold in (np.maximum, np.minimum):
                continue  # complex numbers have no order in MPI
            x, every = own(dtype)
            arrays = [t.numpy() for t in every]
            expected = fold.reduce(arrays).astype(dtype)
            dist.all_reduce(x, op)
            assert x.dtype == every[0].dtype and np.array_equal(x.numpy(), expected), (dtype, op, x, expected)
            x, _ = own(dtype)
            work = dist.reduce(x, size() - 1, op, async_op=True)
            assert work.wait() and work.is_completed()
            assert np.array_equal(x.numpy(), expected if rank == size() - 1 else arrays[rank])
    x, every = own()
    dist.all_reduce(x, dist.ReduceOp.AVG)
    assert np.allclose(x, np.mean([t.numpy() for t in every], 0), rtol=1e-15)
    x, every = own(shape=())
    dist.all_reduce(x)
    assert x.item() == sum(t.item() for t in every)
    parts = [own()[0] * (place + 1) for place in range(size())]
    out = torch.zeros(2, 3)
    dist.reduce_scatter(out, parts)
    expected = sum(t.numpy() for t in own()[1]) * (rank + 1)
    assert np.array_equal(out, expected)
    dist.reduce_scatter_tensor(out.zero_(), torch.cat(parts))
    assert np.array_equal(out, expected)


@check
def moves():
    rank, last = dist.get_rank(), size() - 1
    for dtype in ("float64", ml_dtypes.bfloat16, "int32", "bool"):
        x, every = own(dtype)
        dist.broadcast(x, last)
        assert torch.equal(x, every[last])
        x, _ = own(dtype)
        found = [torch.zeros_like(x) for _ in every]
        dist.all_gather(found, x)
        assert all(map(torch.equal, found, every))
        whole, stacked = torch.zeros(2 * size(), 3, dtype=x.dtype), torch.zeros(size(), 2, 3, dtype=x.dtype)
        dist.all_gather_into_tensor(whole, x)
        dist.all_gather_into_tensor(stacked, x)
        assert torch.equal(whole, torch.cat(every)) and torch.equal(stacked, torch.stack(every))
        found = [torch.zeros_like(x) for _ in every] if rank == last else None
        dist.gather(x, found, dst=last)
        assert found is None or all(map(torch.equal, found, every))
        dist.scatter(x, every[::-1] if rank == 0 else None)
        assert torch.equal(x, every[last - rank])
    ends = dist.new_group([last, 0], sort_ranks=False) if size() > 1 else None
    if ends is not None and rank in (0, last):
        x, every = own()
        dist.broadcast(x, group=ends, group_src=0)
        assert torch.equal(x, every[last])
        objects = [rank]
        dist.broadcast_object_list(objects, group=ends, group_src=1)
        assert objects == [0]
    view = torch.zeros(4, 3).t()[::2]  # not contiguous
    dist.all_reduce(view.add_(rank))
    assert view.unique().tolist() == [sum(range(size()))]


@check
def messages():
    rank = dist.get_rank()
    x, every = own()
    if rank == 0:
        received = torch.zeros(2, 3)
        sources = {dist.recv(received, tag=3) for _ in range(size() - 1)}
        assert sources == set(range(1, size()))
        dist.send(every[0], 1)
    else:
        dist.send(x, 0, tag=3)
    if rank == 1:
        assert dist.recv(x, src=0) == 0 and torch.equal(x, every[0])
    work, out = dist.isend(every[rank], (rank + 1) % size()), torch.zeros(2, 3)
    dist.irecv(out, (rank - 1) % size()).wait()
    work.wait()
    assert torch.equal(out, every[(rank - 1) % size()])
    dist.barrier()


@check
def exchanges():
    rank, every = dist.get_rank(), range(size())
    given, found = [torch.full((k + 1, 2), 10.0 * rank + k) for k in every], [torch.zeros(rank + 1, 2) for _ in every]
    dist.all_to_all(found, given)
    assert [t.unique().tolist() for t in found] == [[10.0 * k + rank] for k in every]
    out = torch.zeros(2 * size(), dtype=torch.int64)
    assert dist.all_to_all_single(out, torch.arange(2 * size()) + 100 * rank, async_op=True).wait()
    assert out.tolist() == [100 * k + 2 * rank + i for k in every for i in (0, 1)]
    uneven = torch.zeros((rank + 1) * size())
    dist.all_to_all_single(uneven, torch.full((sum(k + 1 for k in every),), float(rank)), [rank + 1] * size(), [k + 1 for k in every])
    assert uneven.tolist() == [float(k) for k in every for _ in range(rank + 1)]
    raises(ValueError, "one tensor for each of", lambda: dist.all_to_all(found[:1], given))
    raises(ValueError, "is not divided among", lambda: dist.all_to_all_single(torch.zeros(2 * size() + 1), torch.zeros(2 * size() + 1)))


@check
def objects():
    rank = dist.get_rank()
    if rank == 1:
        dist.send_object_list(["from", 1], 0)
    elif rank == 0:
        assert dist.recv_object_list(received := [None, None]) == 1 and received == ["from", 1]
    found = [None] * size()
    dist.all_gather_object(found, {"rank": rank})
    assert found == [{"rank": i} for i in range(size())]
    words = [f"word {rank}", rank]
    dist.broadcast_object_list(words, src=1)
    assert words == ["word 1", 1]
    collected = [None] * size() if rank == 0 else None
    dist.gather_object(rank**2, collected)
    assert collected in (None, [i**2 for i in range(size())])
    place = [None]
    dist.scatter_object_list(place, [f"for {i}" for i in range(size())] if rank == 1 else None, src=1)
    assert place == [f"for {rank}"]


@check
def groups():
    rank, last = dist.get_rank(), size() - 1
    group = dist.new_group([last])
    assert dist.get_rank(group) == (0 if rank == last else -1) and dist.get_world_size(group) == (1 if rank == last else -1)
    if rank == last:
        x = torch.ones(2)
        dist.all_reduce(x, group=group)
        dist.broadcast(x, last, group=group)
        assert x.tolist() == [1, 1] and dist.get_global_rank(group, 0) == last and dist.get_group_rank(group, last) == 0
        raises(ValueError, f"Global rank 0 is not part of group ProcessGroup(ranks=[{last}])", lambda: dist.broadcast(x, 0, group=group))
        dist.destroy_process_group(group)
    else:
        raises(ValueError, "not in the group", lambda: dist.all_reduce(torch.ones(2), group=group))
    assert dist.get_process_group_ranks(dist.group.WORLD) == list(range(size())) and dist.get_backend() == "mpi"
    raises(ValueError, "different numbers from 0 to", lambda: dist.new_group([0, 0]))


@check
def errors():
    x = torch.ones(2)
    raises(ValueError, "there is a default process group", dist.init_process_group)
    raises(ValueError, "tensor_list must hold one tensor for each of", lambda: dist.all_gather([x], x))
    raises(ValueError, "world_size times input", lambda: dist.all_gather_into_tensor(x, x))
    raises(TypeError, "tensor is a list", lambda: dist.all_reduce([1.0]))
    raises(TypeError, "op must be one of", lambda: dist.all_reduce(x, "sum"))
    raises(ValueError, "give the rank in the group or among all processes", lambda: dist.broadcast(x))
    raises(ValueError, "give the rank in the group or among all processes, and not both", lambda: dist.broadcast(x, 0, group_src=0))
    raises(ValueError, "is not part of group", lambda: dist.send(x, group_dst=size()))
    raises(ValueError, "missing" if dist.get_rank() == 0 else "given", lambda: dist.scatter(x, None if dist.get_rank() == 0 else [x]))


def net(kind=nn.Identity):
    torch.manual_seed(dist.get_rank())  # other parameters in every process
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), kind(), nn.Linear(7, 3), nn.Linear(3, 1)).double()


def batch():
    torch.manual_seed(9)
    x = torch.rand(6 * size(), 5, dtype=torch.float64)
    return x, x[dist.get_rank()::size()]


def loss(y):
    return (y**2).mean() + y.sin().mean()


def same(model, plain, tol=1e-12):
    for p, q in zip(model.parameters(), plain.parameters()):
        assert (p.grad is None) == (q.grad is None)
        assert p.grad is None or np.allclose(p.grad, q.grad, rtol=tol, atol=tol), (p.grad, q.grad)


def copied(model):
    plain = net()
    plain.load_state_dict(model.state_dict())
    return plain


@check
def gradients_of_all_processes():
    whole, part = batch()
    for options in ({}, {"bucket_cap_mb": 1e-4}, {"bucket_cap_mb": 0}, {"find_unused_parameters": True}):
        module = net()
        model = nn.parallel.DistributedDataParallel(module, **options)
        found = [None] * size()
        dist.all_gather_object(found, [p.detach().numpy().tobytes() for p in module.parameters()])
        assert all(each == found[0] for each in found)  # those of rank 0
        plain = copied(module)
        for _ in range(2):  # gradients add up
            loss(model(part)).backward()
            loss(plain(whole)).backward()
            same(module, plain)
        module.zero_grad()
        plain.zero_grad()
        with model.no_sync():
            loss(model(part[:2])).backward()
        alone = module[0].weight.grad.clone()
        loss(model(part[2:])).backward()
        for each in range(size()):
            loss(plain(whole[each::size()][:2])).backward()
            loss(plain(whole[each::size()][2:])).backward()
        for p in plain.parameters():
            p.grad /= size()
        same(module, plain)
        assert not np.allclose(alone, module[0].weight.grad)


@check
def training():
    """Processes that train together take the steps of one process with the whole batch."""
    whole, part = batch()
    module = net()
    model, plain = nn.parallel.DistributedDataParallel(module), copied(module)
    rules = [torch.optim.Adam(each.parameters(), lr=0.01) for each in (model, plain)]
    for _ in range(20):
        for each, rule, x in zip((model, plain), rules, (part, whole)):
            rule.zero_grad()
            loss(each(x)).backward()
            rule.step()
    assert all(np.allclose(p.detach(), q.detach(), rtol=1e-12, atol=1e-12) for p, q in zip(module.parameters(), plain.parameters()))


class Branches(nn.Module):
    """A module of which rank r uses branch r alone, and no process the last."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 2).double()
        self.branches = nn.ModuleList(nn.Linear(2, 1) for _ in range(size() + 1)).double()

    def forward(self, x):
        return {"out": [self.branches[dist.get_rank()](self.first(x))]} if dist.get_rank() else {"out": [x.sum(1).requires_grad_()]}


@check
def unused_parameters():
    module = Branches()
    model = nn.parallel.DistributedDataParallel(module, find_unused_parameters=True)
    for _ in range(2):
        loss(model(batch()[1])["out"][0]).backward()
    used = [branch.weight.grad is not None for branch in module.branches]
    assert used == [False, *[True] * (size() - 1), False] and module.first.weight.grad is not None
    found = [None] * size()
    dist.all_gather_object(found, [None if p.grad is None else p.grad.tolist() for p in module.parameters()])
    assert all(each == found[0] for each in found)


@check
def buffers():
    for kind, same_everywhere in ((lambda: nn.BatchNorm1d(7), True), (nn.Identity, False)):
        module = net(kind)
        model = nn.parallel.DistributedDataParallel(module, broadcast_buffers=same_everywhere)
        for x in (batch()[1], batch()[1] * 0):
            model(x)
            dist.barrier()
    module = net(lambda: nn.BatchNorm1d(7))
    model = nn.parallel.DistributedDataParallel(module)
    module[2].running_mean.fill_(dist.get_rank() + 5.0)
    model.eval()
    model(batch()[1])
    assert module[2].running_mean.unique().tolist() == [5.0]


@check
def half_precision_and_mixed_dtypes():
    module = nn.Sequential(nn.Linear(5, 4).double(), nn.Linear(4, 2).to(torch.bfloat16), nn.Linear(2, 1).double())
    model = nn.parallel.DistributedDataParallel(module)
    x = model.module[0](torch.ones(3, 5, dtype=torch.float64))
    module[2](module[1](x.to(torch.bfloat16)).double()).sum().backward()
    found = [None] * size()
    dist.all_gather_object(found, [p.grad.tolist() for p in module.parameters()])
    assert all(each == found[0] for each in found) and module[1].weight.grad.dtype == torch.bfloat16


@check
def different_parameters():
    raises(RuntimeError, "the parameters differ between processes: ('weight', (1, 2), ",
           lambda: nn.parallel.DistributedDataParallel(nn.Linear(2 + dist.get_rank(), 1)))


@check
def samples():
    data = TensorDataset(torch.arange(10 * size() - 1))
    sampler = DistributedSampler(data, seed=3)
    orders = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        loader = DataLoader(data, 4, sampler=sampler, num_workers=epoch)
        orders.append([i for (numbers,) in loader for i in numbers.tolist()])
    found = [None] * size()
    dist.all_gather_object(found, orders)
    for epoch in range(2):
        every = [i for order in found for i in order[epoch]]
        assert sorted(set(every)) == list(range(10 * size() - 1)) and len(every) == 10 * size()
    assert orders[0] != orders[1]


def other(one, another):
    """One thing on the last rank, and another on the others."""
    return one if dist.get_rank() == size() - 1 else another


DISAGREEMENTS = table(globals(), "DISAGREEMENTS")
UNPICKLED = table(globals(), "UNPICKLED")


class Stubborn:
    """An object whose pickling raises."""

    def __reduce__(self):
        raise LookupError("not this one")


@check
def disagreements():
    """Each is an error in every process, and none of them hangs or has written anything."""
    for name, call in DISAGREEMENTS.items():
        raises(RuntimeError, "make different calls", call)
        x = torch.ones(2)
        dist.all_reduce(x)
        assert x.tolist() == [size()] * 2, name
    for name, call in UNPICKLED.items():
        for x in (Stubborn(), lambda: 1):
            raises(RuntimeError, f"rank {size() - 1}: {name}", lambda call=call, x=x: call(other(x, 1)))


@check
def messages_of_another_dtype_or_shape():
    for sent, wanted in ((torch.ones(4, dtype=torch.float32), torch.zeros(2)), (torch.ones(2, 3), torch.zeros(3, 2)), (torch.ones(5), torch.zeros(4)),
                         (torch.ones(3), torch.zeros(4)), (torch.ones(2), torch.zeros(2, dtype=torch.int64))):
        for source in (size() - 1, None):
            if dist.get_rank() == size() - 1:
                dist.send(sent, 0)
            elif dist.get_rank() == 0:
                raises(RuntimeError, f"rank {size() - 1} has sent {sent.numpy().dtype.name} {list(sent.shape)}",
                       lambda source=source, wanted=wanted: dist.recv(wanted, source))
                assert not wanted.any()
        dist.barrier()
    given = [torch.ones(2 + other(1, 0)) for _ in range(size())]
    found = [torch.zeros(2 + (dist.get_rank() == k == size() - 1)) for k in range(size())]
    if size() == 2:
        (raises if dist.get_rank() == 0 else lambda *rest: rest[-1]())(RuntimeError, "has sent", lambda: dist.all_to_all(found, given))
        dist.barrier()


@check
def absent():
    """A call that some process does not make ends after the timeout of the group, with the call and the rank."""
    group = dist.new_group(timeout=0.4)
    if dist.get_rank() != size() - 1:
        raises(RuntimeError, "rank", lambda: dist.all_reduce(torch.ones(2), group=group))
        if dist.get_rank() == 0:
            raises(RuntimeError, f"rank {size() - 1} has not answered within 0.4 s", lambda: dist.recv(torch.ones(2), size() - 1, group=group))
    if size() == 2 and dist.get_rank() == 0:
        raises(RuntimeError, "all_reduce (SUM) of float32 [2]: rank 1 has not made this call within 0.4 s",
               lambda: dist.all_reduce(torch.ones(2, dtype=torch.float32), group=dist.new_group([0, 1], timeout=0.4)))
    elif size() == 2:
        dist.new_group([0, 1], timeout=0.4)
        time.sleep(1.0)
    dist.barrier()


def failing():
    """Rank 1 fails while the others wait for it."""
    if dist.get_rank() == 1:
        raise LookupError("an error of rank 1")
    dist.barrier()


def left_out():
    """On rank 1 a parameter has no gradient."""
    model = nn.parallel.DistributedDataParallel(nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.Linear(1, 1)}))
    x = model.module["a"](torch.ones(1))
    (x if dist.get_rank() == 1 else model.module["b"](x)).sum().backward()
    dist.barrier()


WAITS = table(globals(), "WAITS")


def leaving(what):
    """Rank 1 leaves by sys.exit while rank 0 waits for it."""
    dist.all_reduce(torch.ones(2))
    if dist.get_rank() == 1:
        sys.exit(3)
    WAITS[what]()


def early():
    """Rank 1 sends its part of a sum and ends, long before the last rank sends its own; the sum comes nevertheless."""
    x = torch.ones(2)
    if dist.get_rank() == 2:
        time.sleep(1.5)
    dist.reduce(x, 0)
    if dist.get_rank() == 0:
        assert x.tolist() == [3.0, 3.0]
        print("the sum has come", flush=True)
    sys.exit()


if __name__ == "__main__":
    dist.init_process_group()
    for name, *rest in [each.split(":") for each in sys.argv[1:] or CHECKS]:
        globals()[name](*rest)
        if dist.get_rank() == 0:
            print(name, flush=True)
    with contextlib.suppress(BrokenPipeError):
        dist.barrier()
    dist.destroy_process_group()
