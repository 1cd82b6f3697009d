"""Checks of shapes: the mistakes that each of them finds, right ops that pass, and ops to which it does not apply."""

import numpy as np
import pytest

import symgrad
from symgrad.carriers.numeric import sum_to_size
from symgrad.graph.op import REGISTRY
from symgrad.testing import CheckFailure, check_batching, check_broadcasting, check_empty, check_scalars, check_structure
from symgrad.testing.checks.shapes import names_a_dtype
from tests.support.functions import saving

QUICK = {"shrink": False}


def square(x):
    return x * x


SQUARE = {"pullback": lambda g, x: 2 * x * g, **QUICK}


@pytest.mark.parametrize("claims, words", [
    ({"pullback": lambda g, x: (2 * x * g).astype(np.float32)}, "dtype of the gradient is float32"),
    ({"pullback": lambda g, x: (2 * x * g, g)}, "2 parts for 1 argument;"),
    ({"pushforward": lambda ts, x: (2 * x * ts[0]).sum()}, "the shape of the tangent"),
    ({"pushforward": lambda ts, x: (2 * x * ts[0]).astype(np.float64)}, "the dtype of the tangent")],
    ids=["dtype", "number", "shape of the tangent", "dtype of the tangent"])
def test_derivatives_of_another_structure(claims, words):
    with pytest.raises(CheckFailure, match=words):
        check_structure(square, elementwise="pullback" in claims or None, **(SQUARE | claims))


@pytest.mark.sweep
def test_the_right_structure():
    assert check_structure(lambda x, y: square(x), pullback=lambda g, x, y: (2 * x * g, None)).verdict == "passed"
    assert check_structure(lambda a, b, c: symgrad.einsum("ij,jk,k->i", a, b, c), shapes=((2, 3), (3, 2), (2,))).verdict == "passed"


def test_an_op_of_ours_with_too_many_cotangents():
    made = symgrad.primitive("with_one_too_many", lambda xp, x: x * x, vjp=lambda xp, g, y, x: 2 * x * g, jvp=lambda xp, t, y, x: 2 * x * t)
    try:
        assert check_structure(made, elementwise=True).verdict == "passed"
        object.__setattr__(made.op, "vjp", lambda xp, g, y, args, needs: (2 * args[0] * g, g))
        with pytest.raises(CheckFailure, match="2 cotangents for 1 arguments"):
            check_structure(made, elementwise=True, **QUICK)
    finally:
        symgrad.methods.extending._unregister("with_one_too_many")


def test_dtypes_that_an_op_does_not_take():
    def picky(x):
        if x.dtype == np.float16:
            raise TypeError("no halves")
        return x * x

    assert check_structure(picky, **SQUARE).verdict == "passed"
    with pytest.raises(CheckFailure, match="no halves"):
        check_structure(picky, dtypes=("float64", "float16"), **SQUARE)
    assert names_a_dtype(np.dtype("f4")) and names_a_dtype(np.float32) and names_a_dtype("float64") and names_a_dtype(symgrad.float32)
    assert not names_a_dtype("mean") and not names_a_dtype(1.0) and not names_a_dtype(None)


def down(c, x):
    """The sum over broadcast axes."""
    return sum_to_size(c, x.shape)


@pytest.mark.parametrize("function, pullback", [
    (lambda x, y: x * y, lambda g, x, y: (down(g * y, x), down(g * x, y) if y.ndim == g.ndim else (g * x).sum())),
    (lambda x, y: x * y + (x.ndim != y.ndim), lambda g, x, y: (down(g * y, x), down(g * x, y))),
    (lambda x, y: (x * y).ravel() if x.shape != y.shape else x * y, lambda g, x, y: (down(g * y, x), down(g * x, y)))],
    ids=["the first dimensions alone", "the value", "the value's shape"])
def test_wrong_broadcasting(function, pullback):
    with pytest.raises(CheckFailure):
        check_broadcasting(function, pullback=pullback, elementwise=True, **QUICK)


def test_shapes_that_must_be_refused():
    def lenient(x, y):
        n = min(x.size, y.size)
        return x * y if 1 in (x.size, y.size) or x.ndim != 1 or y.ndim != 1 or x.shape == y.shape else x[:n] * y[:n]

    with pytest.raises(CheckFailure, match="are not refused"):
        check_broadcasting(lenient, pullback=lambda g, x, y: (down(g * y, x), down(g * x, y)), elementwise=True, **QUICK)


def test_right_broadcasting_and_when_it_does_not_apply():
    assert check_broadcasting(lambda x, y: symgrad.sin(x), elementwise=True).verdict == "passed"
    assert check_broadcasting(lambda x, y: (x - y) * (x + y) - x * x + y * y, elementwise=True).verdict == "passed"
    assert check_broadcasting(symgrad.sin).reason == "one argument has nothing to be broadcast with"
    assert check_broadcasting(REGISTRY["mm"]).reason == "it does not act on elements"


def mapped(forward, backward, vmap):
    """A Function that saves its arguments, with a rule for batches."""
    made = saving(forward, backward, "Mapped")
    made.vmap = staticmethod(vmap)
    return made


@pytest.mark.sweep
def test_wrong_rules_for_batches():
    mean_of_all = mapped(lambda x: x - x.mean(), lambda g, x: g - g.mean(), lambda info, in_dims, x: (x - x.mean(), in_dims[0]))
    with pytest.raises(CheckFailure, match="the value with the arguments .* is not that of a loop"):
        check_batching(mean_of_all, shapes=((3,),), **QUICK)
    right_for_the_value_alone = mapped(lambda x, y: x * y, lambda g, x, y: (g * y, g * x), lambda info, in_dims, x, y: (
        (x * y).detach() + 0 * x if None in in_dims else x * y, 0))
    with pytest.raises(CheckFailure, match="the pullback with the arguments .* is not that of a loop"):
        check_batching(right_for_the_value_alone, shapes=((3,), (3,)), **QUICK)


def test_when_batches_do_not_apply():
    assert "maps nothing" in check_batching(square, pullback=lambda g, x: 2 * x * g).reason
    assert check_batching(symgrad.sin, batched=False).reason == "it is not claimed to work on batches"
    assert check_batching(symgrad.sin, random=True).reason == "it is random"

    def looking(x):
        return x * x if x.sum() > 0 else -x

    assert "depends on the data" in check_batching(looking, elementwise=True).reason
    with pytest.raises(CheckFailure, match="depends on the data"):
        check_batching(looking, elementwise=True, batched=True, **QUICK)


def test_single_numbers():
    claims = {**SQUARE, "elementwise": True}
    for wrong in (lambda x: x * x + (x.ndim == 0), lambda x: (x * x).astype(np.float32 if x.ndim == 0 else x.dtype)):
        with pytest.raises(CheckFailure):
            check_scalars(wrong, **claims)
    with pytest.raises(CheckFailure, match="the gradient for shape"):
        check_scalars(square, **(claims | {"pullback": lambda g, x: 2 * x * g if x.ndim else np.asarray(2.000001 * x * g)}))
    assert check_scalars(REGISTRY["mm"]).reason == "it does not act on elements"


def test_empty_arrays():
    claims = {**SQUARE, "elementwise": True}
    with pytest.raises(CheckFailure, match="the dtype of the value"):
        check_empty(lambda x: x * x if x.size else np.zeros(x.shape, bool), **claims)
    with pytest.raises(CheckFailure, match="is not 0"):
        check_empty(lambda x, y: x * y, pullback=lambda g, x, y: (down(g * y, x) if x.size else np.zeros_like(x), down(g * x, y) + (g.size == 0)),
                    elementwise=True, **QUICK)
    assert check_empty(REGISTRY["mm"]).reason == "it does not act on elements"
