"""Handwritten digits, classified by a small convolutional network, with a progress bar and TensorBoard.

The data are the 1797 images of 8 x 8 pixels that scikit-learn bundles (E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI
Machine Learning Repository, 1998). A fifth of them is held out, drawn by a fixed seed, and never seen in training.

Known from elsewhere: nearest neighbours classify about 99 % of a held-out part of this set rightly. The network is asserted to reach 97 %.

    pip install 'symgrad[examples]'
    python examples/training/digits.py --log runs/digits
    tensorboard --logdir runs
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for products of this size several threads gain nothing, and lose much on a busy machine

import numpy as np
from rich.progress import track
from sklearn.datasets import load_digits

import symgrad
from symgrad import nn
from symgrad.utils.data import DataLoader, TensorDataset, random_split

EPOCHS, BATCH = 12, 64


def digits():
    """The training set and the held-out fifth: images (1, 8, 8) with values from 0 to 1, and labels."""
    images, labels = load_digits(return_X_y=True)
    data = TensorDataset(symgrad.tensor(images.reshape(-1, 1, 8, 8) / 16, dtype=symgrad.float32), symgrad.tensor(labels))
    return random_split(data, [0.8, 0.2], symgrad.Generator().manual_seed(0))


def network():
    """Two convolutions, a pooling and two linear layers, 10 scores."""
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))


def accuracy(model, data):
    """The part of a data set that a model classifies rightly."""
    model.eval()
    with symgrad.no_grad():
        right = sum(int((model(x).argmax(1) == y).sum()) for x, y in DataLoader(data, 256))
    model.train()
    return right / len(data)


def train(model, training, held_out, writer=None):
    """Train a model with Adam and a rate that falls to zero; what is measured after each epoch goes to a writer, if there is one."""
    batches = DataLoader(training, BATCH, shuffle=True, generator=symgrad.Generator().manual_seed(1))
    optimizer = symgrad.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = symgrad.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * len(batches))
    for epoch in track(range(EPOCHS), "training"):
        losses = []
        for x, y in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        if writer is not None:
            writer.add_scalar("loss/training", np.mean(losses), epoch)
            writer.add_scalar("accuracy/held out", accuracy(model, held_out), epoch)


def main(arguments=None):
    """Train the network, and print and assert the accuracy on the held-out fifth."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--log", help="a folder for TensorBoard: the graph, the loss and the accuracy of each epoch")
    given = parser.parse_args(arguments)
    symgrad.manual_seed(0)
    training, held_out = digits()
    model, start = network().float(), time.perf_counter()
    if given.log is None:
        train(model, training, held_out)
    else:
        from symgrad.utils.tensorboard import SummaryWriter

        with SummaryWriter(given.log) as writer:
            writer.add_graph(model, training[0][0][None])
            train(model, training, held_out, writer)
    found = accuracy(model, held_out)
    print(f"{found:.1%} of {len(held_out)} held-out digits are right, after {time.perf_counter() - start:.0f} s of training")
    assert found >= 0.97


if __name__ == "__main__":
    main()
