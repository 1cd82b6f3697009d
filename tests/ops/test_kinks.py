"""What every op returns at its kinks and ties: the decided gradients, the same by every route, and no NaN."""

import math
from pathlib import Path

import numpy as np
import pytest

import symgrad
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from symgrad.scanning.catalogue import kink_table, kinks_of

# By op and arguments: the gradient of the last element of the value. A NaN is decided, too: the variance of one number does not exist.
DECIDED = dict(line.split(": ") for line in (Path(__file__).parents[1] / "support" / "data" / "kinks.txt").read_text().splitlines())
ENTRIES = {f"{name} {', '.join(map(repr, e.at))}": e for name in sorted(REGISTRY) for e in kinks_of(REGISTRY[name])}


LENGTHS = ("hypot", "norm")


def text(x):
    return f"[{', '.join(map(text, x))}]" if isinstance(x, list) else repr(round(x, 15) + 0.0)


def test_the_gradients_at_kinks_are_the_decided_ones():
    assert {key: ", ".join(text(g.tolist()) for g in e.gradient) for key, e in ENTRIES.items()} == DECIDED


@pytest.mark.sampled(37)
@pytest.mark.parametrize("key", ENTRIES)
def test_forward_mode_and_second_derivatives_give_the_same(key):
    e = ENTRIES[key]
    count = REGISTRY[e.op].arity or 1
    places = [i for i, a in enumerate(e.at[:count]) if isinstance(a, (float, list))]

    def last(*xs):
        args = list(e.at)
        for i, x in zip(places, xs):
            args[i] = x
        out = getattr(traced, e.op)(*args)
        return (out if isinstance(out, Tensor) else next(y for y in out if y.is_floating_point())).reshape(-1)[-1]

    def gradient(*xs):
        return symgrad.cat([g.reshape(-1) for g in symgrad.func.grad(last, tuple(range(len(xs))))(*xs)])

    xs = [symgrad.tensor(e.at[i]) for i in places]
    for i, (g, x) in enumerate(zip(e.gradient, xs)):
        assert np.allclose(symgrad.func.jacfwd(last, i)(*xs).numpy(), g, rtol=0, atol=1e-15 if e.op.startswith("linalg_") else 0, equal_nan=True)
        if e.second is None:
            with pytest.raises(RuntimeError, match="equal, or one is zero"):
                symgrad.func.jacfwd(gradient, i)(*xs)
            continue
        columns = symgrad.func.jacfwd(gradient, i)(*xs).numpy().reshape(len(e.second), -1)
        start = sum(y.numel() for y in xs[:i])
        second = e.second[:, start:start + x.numel()]
        assert np.array_equal(*[np.where(np.isnan(a) | np.isnan(second) | np.isnan(columns), np.nan, a) for a in (columns, second)], equal_nan=True)
        assert np.array_equal(np.isfinite(columns), np.isfinite(second))


def test_nothing_is_poisoned_but_what_does_not_exist():
    def is_poisoned(e):
        if e.second is None or any(np.isnan(g).any() for g in e.gradient):
            return e.second is not None
        return all(np.isfinite(g).all() for g in e.gradient) and np.isnan(e.second).any()

    poisoned = {e.op for e in ENTRIES.values() if is_poisoned(e)}
    assert poisoned == {"std", "var", *LENGTHS}  # of which the second derivatives are infinite at 0


@pytest.mark.sweep
def test_the_table_lists_every_declared_kink():
    lines = kink_table().splitlines()
    inside = sum(len(op.docs.kinks) for name, op in REGISTRY.items()
                 if not op.surface.public and not name.startswith("linalg_"))  # of ops that no user calls
    assert len(lines) - 2 + inside == len(ENTRIES) == sum(len(op.docs.kinks) for op in REGISTRY.values()) > 80
    assert len(kink_table(["relu"]).splitlines()) == 3
    with pytest.raises(ValueError, match="nope: there is no such op"):
        kink_table(["nope"])


@pytest.mark.parametrize("function", [symgrad.max, symgrad.min, symgrad.median, symgrad.amax, symgrad.amin, lambda x: symgrad.max(x, 0).values])
@pytest.mark.parametrize("count", [3, 5000])
def test_elements_that_are_nan_share_the_gradient_of_an_extreme_that_is_nan(function, count):
    x = symgrad.tensor([1.0] + [math.nan, 2.0, math.nan] * (count // 3), requires_grad=True)
    function(x).backward()
    share = 1 / int(x.isnan().sum())
    assert x.grad.tolist() == [share if nan else 0.0 for nan in x.isnan().tolist()]
