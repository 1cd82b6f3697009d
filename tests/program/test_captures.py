"""What a program depends on besides its arguments: globals that methods read, attributes of classes, arrays; and what constants become."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import symgrad

RATE = 2.0


class Scaled:
    """A callable whose method reads a global name, and an attribute of its class."""

    gain = 1.0

    def __call__(self, x):
        return self.inner(x) * self.gain

    def inner(self, x):
        return x * RATE


@pytest.mark.parametrize("function", [Scaled(), Scaled().inner, lambda x: Scaled()(x), functools.partial(Scaled())],
                         ids=["a callable", "a method", "a class", "a partial"])
def test_globals_and_class_attributes_read_by_methods_are_captured(function, monkeypatch):
    f, x = symgrad.compile(function), symgrad.tensor([1.0])
    assert [f(x).item() for _ in range(2)] == [2.0, 2.0]
    monkeypatch.setitem(globals(), "RATE", 3.0)
    assert f(x).item() == 3.0 and not f.report.uncompiled
    monkeypatch.setattr(Scaled, "gain", 2.0)
    assert f(x).item() == (3.0 if "inner" in repr(function) else 6.0)


@pytest.mark.parametrize("size", [10, 100_000])
def test_captured_arrays_are_compared_by_their_bits(size):
    a = np.zeros(size)
    f, x = symgrad.compile(lambda x: x / a), symgrad.tensor(1.0)
    assert [f(x)[0].item() for _ in range(2)] == [math.inf] * 2
    a[0] = -0.0
    assert f(x)[0].item() == -math.inf
    a[:] = math.nan
    assert f(x).isnan().all() and f(x).isnan().all() and len(f.report.programs) == 3


def test_products_with_rows_of_the_identity_select():
    eye, x = np.eye(4), symgrad.tensor(np.arange(12.0).reshape(4, 3))
    for matrix in (eye, eye[1:3], eye[[2, 0, 0]], eye[::-1]):
        m = symgrad.tensor(matrix)
        for other in (lambda x, m=m: m @ x, lambda x, m=m: x.T @ m.T):
            plain = other(x)
            f = symgrad.compile(lambda x, matrix=matrix, other=other: other(x, symgrad.tensor(matrix)))
            assert all(np.array_equal(f(x).numpy(), plain.numpy()) for _ in range(2)) and "matmul" not in str(f.program())
