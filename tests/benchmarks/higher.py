"""Derivatives of high order of exp(sin x tanh x²), elementwise: nested gradients, and all orders at once by Taylor coefficients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import symgrad
from tests.benchmarks.table import Row, Timing, compare, torch_one_thread

ORDERS, SHAPES = range(1, 7), ((), (1000,))


def function(m: Any, x: Any) -> Any:
    """exp(sin x tanh x²) with a library that has torch's names."""
    return m.exp(m.sin(x) * m.tanh(x**2))


def nested(m: Any, x: Any, order: int) -> Any:
    """The derivative of an order, each the gradient of the sum of the one before; nothing is recorded for one more."""
    y = function(m, x)
    for k in range(1, order + 1):
        (y,) = m.autograd.grad(y.sum(), x, create_graph=k < order)
    return y


def composed(grad: Callable[..., Any], m: Any, order: int) -> Callable[[Any], Any]:
    """The same as a function, by a library's transform of functions."""
    def above(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return grad(lambda x: f(x).sum())

    f: Callable[[Any], Any] = functools.partial(function, m)
    for _ in range(order):
        f = above(f)
    return f


def point(m: Any, shape: tuple[int, ...]) -> Any:
    """Where: 0.7, or a thousand places on both sides of 0."""
    places = np.random.default_rng(0).uniform(-2, 2, shape).tolist() if shape else 0.7
    return m.tensor(places, dtype=m.float64, requires_grad=True)


def nested_row(torch: Any, order: int, shape: tuple[int, ...], timing: Timing) -> Row:
    """One order at one shape."""
    ours = functools.partial(composed(symgrad.func.grad, symgrad, order), point(symgrad, shape).detach())
    theirs = torch and functools.partial(nested, torch, point(torch, shape), order)
    return compare(f"nested grad, order {order}, shape {shape}", "torch autograd.grad", ours, theirs, 0.5, timing)


def rows(timing: Timing) -> Iterator[Row]:
    """Nested gradients of orders 1 to 6 at both shapes."""
    torch = torch_one_thread()
    for shape in SHAPES:
        for order in ORDERS:
            yield nested_row(torch, order, shape, timing)
