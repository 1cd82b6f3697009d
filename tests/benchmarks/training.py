"""Steps of training in float32: a perceptron and a small convolutional network."""

import functools
import time

import numpy as np

import symgrad
from symgrad.program.native import find_compiler
from tests.benchmarks.compiled import BACKENDS
from tests.benchmarks.table import compare, optional, torch_one_thread

BATCH, RATE = 64, 0.1
SIZES = (784, 128, 10)


def weights():
    """Weights (out, in) and biases of the perceptron."""
    rng = np.random.default_rng(0)
    return [part.astype(np.float32) for n, m in zip(SIZES, SIZES[1:]) for part in (rng.normal(size=(m, n)) / n**0.5, np.zeros(m))]


def batch(shape):
    """Inputs and labels."""
    rng = np.random.default_rng(1)
    return rng.normal(size=shape).astype(np.float32), rng.integers(0, SIZES[-1], shape[0])


def perceptron(m):
    """784-128-10, by a library with torch's names."""
    model = m.nn.Sequential(m.nn.Linear(784, 128), m.nn.ReLU(), m.nn.Linear(128, 10)).float()
    return _loaded(m, model, weights())


def convolutional(m):
    """The network of the digits example."""
    nn = m.nn
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10)).float()
    rng = np.random.default_rng(0)
    return _loaded(m, model, [0.1 * rng.normal(size=tuple(p.shape)).astype(np.float32) for p in model.parameters()])


def _loaded(m, model, values):
    with m.no_grad():
        for p, value in zip(model.parameters(), values):
            p.copy_(m.tensor(value))
    return model


def step_of(m, model, shape):
    """One step of gradient descent, which returns the loss."""
    x, y = map(m.tensor, batch(shape))
    optimizer, entropy = m.optim.SGD(model.parameters(), lr=RATE), m.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        loss = entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def parallel_steps():
    """The gradients of the perceptron for a batch of 4096, by two threads and by one."""
    model = perceptron(symgrad)
    x, y = map(symgrad.tensor, batch((4096, 784)))
    entropy = symgrad.nn.CrossEntropyLoss()

    def step(module):
        model.zero_grad()
        loss = entropy(module(x), y)
        loss.backward()
        return loss, model[0].weight.grad

    return functools.partial(step, symgrad.nn.DataParallel(model, 2)), functools.partial(step, model)


def compiled_step(backend):
    """A step of the perceptron as one compiled function of weights."""
    model = perceptron(symgrad)
    x, y = map(symgrad.tensor, batch((BATCH, 784)))

    def loss(weights):
        return symgrad.nn.functional.cross_entropy(symgrad.func.functional_call(model, weights, (x,)), y)

    @symgrad.compile(backend=backend)
    def descend(weights):
        slopes, value = symgrad.func.grad_and_value(loss)(weights)
        return {name: weights[name] - RATE * slope for name, slope in slopes.items()}, value

    state = {name: p.detach() for name, p in model.named_parameters()}

    def step():
        nonlocal state
        state, value = descend(state)
        return value

    return step


def autograd_step(autograd):
    """A step of the perceptron with HIPS autograd."""
    m, w = autograd.numpy, weights()
    x, y = batch((BATCH, 784))
    rows = np.arange(BATCH)

    def loss(w):
        scores = m.dot(m.maximum(m.dot(x, w[0].T) + w[1], 0), w[2].T) + w[3]
        scores = scores - m.max(scores, 1, keepdims=True)
        return m.mean(m.log(m.sum(m.exp(scores), 1)) - scores[rows, y])

    both = autograd.value_and_grad(loss)

    def step():
        value, slopes = both(w)
        for part, slope in zip(w, slopes):
            part -= np.float32(RATE) * slope
        return value

    return step


def rows(timing):
    """Steps beside torch and HIPS autograd."""
    torch, autograd = torch_one_thread(), optional("autograd")
    work, shape = "training step of 784-128-10, batch 64, float32", (BATCH, 784)
    routes = [(work, lambda: step_of(symgrad, perceptron(symgrad), shape), 1.3)]
    routes += [(f"{work}, compiled, {x}", functools.partial(compiled_step, x), 1.0) for x in BACKENDS if x != "c" or find_compiler()]
    for name, ours, bar in routes:
        yield compare(name, "torch eager", ours(), torch and step_of(torch, perceptron(torch), shape), bar, timing, 1e-4)
        yield compare(name, "HIPS autograd", ours(), autograd and autograd_step(autograd), 0.4, timing, 1e-4)
    yield compare("DataParallel on two threads, forward and backward, batch 4096", "one thread", *parallel_steps(), 1 / 1.5, timing, 1e-4,
                  time.perf_counter)
    images = (BATCH, 1, 8, 8)
    yield compare("training step of the digits network, batch 64, float32", "torch eager", step_of(symgrad, convolutional(symgrad), images),
                  torch and step_of(torch, convolutional(torch), images), 4.0, timing, 1e-4)
