"""The surface of Tensor beyond the record of PyTorch: storages, subclasses, NumPy's generators, overwritten indices, threads, formulas."""

import copy
import pickle

import numpy as np
import pytest

import symgrad
from symgrad import Tensor, autograd

t = symgrad.tensor


class Mass(Tensor):
    """A subclass with attributes."""


def test_storages_are_compared_by_their_memory():
    x = symgrad.arange(24.0).reshape(2, 3, 4)
    for view in (x[1:, ::2], x.data, x[1, 2, 3]):
        assert view.untyped_storage() == x.untyped_storage() and hash(view.untyped_storage()) == hash(x.untyped_storage())
    assert x.clone().untyped_storage() != x.untyped_storage()
    backwards = symgrad.from_numpy(np.arange(4.0)[::-1])
    assert backwards.stride() == (-1,) and backwards.storage_offset() == 3 and backwards.untyped_storage().nbytes() == 32
    wide = symgrad.from_numpy(np.broadcast_to(np.float64(1.0), (3, 2)))
    assert wide.stride() == (0, 0) and wide.untyped_storage().nbytes() == 8


def test_subclasses_are_copied():
    x = Mass([1.0, 2.0])
    x.unit = "kg"
    for way in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        assert type(way(x)) is Mass and way(x).unit == "kg" and way(x).tolist() == [1.0, 2.0]


def test_numpy_generators_are_accepted():
    a, b = (symgrad.rand(3, generator=np.random.default_rng(5)) for _ in range(2))
    assert symgrad.equal(a, b)
    with pytest.raises(TypeError, match="generator must be a Generator, not int"):
        symgrad.randn(2, generator=3)
    g = symgrad.Generator().manual_seed(4)
    before = g.clone_state()
    symgrad.randint(0, 9, (7,), generator=g)
    assert not symgrad.equal(g.get_state(), before.get_state())
    with pytest.raises(RuntimeError, match="set_state: "):
        g.set_state(symgrad.zeros(3, dtype=symgrad.uint8))
    with pytest.raises(TypeError, match="set_state: .*uint8"):
        g.set_state(symgrad.zeros(80))


@pytest.mark.parametrize("function", ["gather", "scatter_add", "index_add", "index_select", "take", "masked_fill", "masked_select"])
def test_writing_an_index_after_recording_changes_no_gradient(function):
    def run(spoil):
        x, index = t([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), t([[0, 1], [1, 1]])
        mask, vector = t([[True, False], [True, True]]), t([1, 1])
        y = {"gather": lambda: x.gather(1, index), "scatter_add": lambda: (x * x).scatter_add(0, index, x),
             "index_add": lambda: x.index_add(0, vector, x * x), "index_select": lambda: x.index_select(0, vector), "take": lambda: x.take(index),
             "masked_fill": lambda: x.masked_fill(mask, 7.0),
             "masked_select": lambda: x.masked_select(mask)}[function]()
        if spoil:
            for other in (index, mask, vector):
                other._array()[...] = 0
        (g,) = autograd.grad((y * y).sum(), x)
        return g.tolist()

    assert run(True) == run(False)


def test_formulas_of_sort_use_the_recorded_order():
    x = symgrad.tensor([3.0, 1.0, 2.0], symbol="x")
    names = [str(e) for e in x.sort().values.expr]
    assert names == [str(x.expr[i]) for i in (1, 2, 0)] and [str(e) for e in x.topk(1).values.expr] == [str(x.expr[0])]
