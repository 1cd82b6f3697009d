"""The digits network, trained by several processes, each with its part of every batch.

    pip install 'symgrad[examples,mpi]'
    mpiexec -n 2 python examples/training/digits_ddp.py

The steps are those of one process, up to rounding: `DistributedDataParallel` averages the gradients during `backward`.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each process has one core

from digits import BATCH, EPOCHS, accuracy, digits, network

import symgrad
from symgrad import distributed as dist
from symgrad import nn
from symgrad.utils.data import DataLoader, DistributedSampler


def main():
    """Train in all processes; print and assert the accuracy on the held-out fifth from rank 0."""
    dist.init_process_group()
    symgrad.manual_seed(0)
    training, held_out = digits()
    model = nn.parallel.DistributedDataParallel(network().float())
    sampler = DistributedSampler(training)
    batches = DataLoader(training, BATCH // dist.get_world_size(), sampler=sampler)
    optimizer = symgrad.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = symgrad.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * len(batches))
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            scheduler.step()
    if dist.get_rank() == 0:
        found = accuracy(model.module, held_out)
        print(f"{found:.1%} of {len(held_out)} held-out digits are right, with {dist.get_world_size()} processes")
        assert found >= 0.97
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
