"""Ops that are wrong, where a report can import them from, and how their failures are caught."""

import numpy as np
import pytest

import symgrad
from symgrad.testing import CheckFailure, check_value, shrinking
from symgrad.testing.attack import Attack, Check
from symgrad.testing.checks.base import run
from tests.support.functions import saving


def sine(x):
    return np.sin(x)


def slope(x):
    return np.cos(x)


def slope_below(x):
    return np.where(x < -1, 1.000001, 1.0) * np.cos(x)


def product(x, y):
    return x * y


def product_back(g, x, y):
    return g * y + 1e-3 * (x > 2), g * x


def product_forward(ts, x, y):
    return ts[0] * y - ts[1] * x


def multiply(a, b):
    return a @ b


def multiply_back(g, a, b):
    return g @ b.T, (a.T @ g) * (1.001 if abs(a[0, 1]) > 1 else 1.0)


def multiply_formula(xp, a, b):
    return xp.matmul(a, b)


def raises_above(x):
    if np.any(np.asarray(x) > 3):
        raise ValueError("too large:\nthe second line")
    return np.sin(x)


def loses_an_equal_pair(x):
    out = np.sin(x)
    if x.ndim and len(np.unique(x)) < x.size:
        out = out + 1
    return out


Cube = saving(lambda x: x * x * x, lambda g, x: 2 * x * x * g, "Cube")
Cube.__module__ = __name__  # by which reports import it


def tensors(x):
    return symgrad.sin(x) + 1e-6 * x


@pytest.fixture(autouse=True)
def time_enough(monkeypatch):
    """The simplest failure does not depend on the load of the machine, where tests import this."""
    monkeypatch.setattr(shrinking, "SECONDS", 60.0)


def failure_of(check, op, **claims):
    with pytest.raises(CheckFailure) as caught:
        check(op, **claims)
    return caught.value.failure


def body_check(body, draws="points", name="own"):
    return Check(name, body, draws, lambda attack: "", None, check_value)


def failed(body, op=sine, draws="points", **claims):
    claims = {"framework": "numpy", **claims}
    return run(body_check(body, draws), Attack(op, **claims)).failure


def values(failure):
    return [x.tolist() for x in failure.inputs.values()]
