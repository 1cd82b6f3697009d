"""A small network that several processes train together, each with its part of every batch.

    mpiexec -n 2 python examples/training/train_ddp.py

needs the extra `mpi`; python examples/training/train_ddp.py alone does the same steps in one process, and ends with the same loss.
"""

import symgrad as torch
from symgrad import distributed as dist
from symgrad import nn
from symgrad.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS, BATCH = 30, 64


def examples():
    """Points of the plane, and a function of them that is to be learned."""
    generator = torch.Generator().manual_seed(1)
    points = 2 * torch.rand(512, 2, generator=generator, dtype=torch.float64) - 1
    return TensorDataset(points, torch.sin(3 * points[:, :1]) * points[:, 1:])


def main():
    """Train, and print the loss of every tenth epoch from rank 0."""
    dist.init_process_group()
    size = dist.get_world_size()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1)).double())
    rule = torch.optim.Adam(model.parameters(), lr=0.01)
    data = examples()
    sampler = DistributedSampler(data)  # indices 0, 2, 4, ... of each shuffled order for rank 0 of 2, the others for rank 1
    loader = DataLoader(data, BATCH // size, sampler=sampler)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        total = torch.zeros(1, dtype=torch.float64)
        for points, values in loader:
            rule.zero_grad()
            loss = nn.functional.mse_loss(model(points), values)
            loss.backward()  # the gradients of all processes are averaged meanwhile
            rule.step()
            total += loss.detach() * len(points)
        dist.all_reduce(total)
        if dist.get_rank() == 0 and (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1}: mean squared error {total.item() / len(data):.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
