"""`distributed` beside PyTorch's: each name is here or has a reason; samplers divide a data set alike."""

import inspect

import pytest
import torch
import torch.distributed
from torch.utils.data.distributed import DistributedSampler as Reference

import symgrad.distributed
from symgrad.types.absent import TABLES
from symgrad.utils.data import DistributedSampler

DEPRECATED = {"reduce_op"}


def test_every_name_of_distributed_is_here_or_has_a_reason():
    theirs, ours, absent = torch.distributed, symgrad.distributed, TABLES["torch.distributed"]
    names = {name for name in getattr(theirs, "__all__", dir(theirs)) if not name.startswith("_")}
    names = {name for name in names if name not in DEPRECATED and callable(found := getattr(theirs, name)) and not inspect.ismodule(found)
             and getattr(found, "__module__", "torch").startswith("torch")}
    assert {name for name in names if not hasattr(ours, name)} <= set(absent)
    for name, reason in absent.items():
        with pytest.raises(AttributeError, match=f"^module '{ours.__name__}' has no attribute '{name}': ") as caught:
            getattr(ours, name)
        assert reason in str(caught.value)


@pytest.mark.parametrize("count, replicas, drop", [(10, 2, False), (10, 3, False), (10, 3, True), (2, 5, False), (2, 5, True), (9, 3, True),
                                                   (0, 2, False)])
def test_samplers_divide_a_data_set(count, replicas, drop):
    data = [0] * count
    for rank in range(replicas):
        ours, reference = (kind(data, replicas, rank, shuffle=False, drop_last=drop) for kind in (DistributedSampler, Reference))
        assert len(ours) == len(reference) and (not count or list(ours) == list(reference))
    if count > replicas:
        shuffled = [list(DistributedSampler(data, replicas, rank, seed=4, drop_last=True)) for rank in range(replicas)]
        assert len({i for each in shuffled for i in each}) == count // replicas * replicas
    for kind in (DistributedSampler, Reference):
        with pytest.raises(ValueError, match=rf"Invalid rank {replicas}, rank should be in the interval \[0, {replicas - 1}\]"):
            kind(data, replicas, replicas)
