"""Samplers divide a data set as those of PyTorch do."""

import pytest
from torch.utils.data.distributed import DistributedSampler as Reference

from symgrad.utils.data import DistributedSampler


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
