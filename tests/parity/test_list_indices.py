"""Lists as indices: torch reads a list with an item that is more than a number as the tuple of its items, and warns."""

import numpy as np
import pytest

import symgrad

torch = pytest.importorskip("torch")

AS_TUPLES = [
    lambda s: [[0, 1], [2, 3]], lambda s: [(0, 1), [2, 3]], lambda s: [[0, 1], 2], lambda s: [0, [1, 2]], lambda s: [[0, 1]], lambda s: [[]],
    lambda s: [[[0, 1], [2, 3]]], lambda s: [range(2), range(2)], lambda s: [np.array([0, 1]), np.array([1, 2])],
    lambda s: [slice(0, 2)], lambda s: [slice(0, 2), slice(1, 3)], lambda s: [slice(None), [1, 3]], lambda s: [None, 1], lambda s: [..., 0],
    lambda s: [s.tensor([0, 1])], lambda s: [s.tensor(0), s.tensor(1)], lambda s: [s.tensor(0), 1],
    lambda s: [[True, False, True, False], [True, False, False, False, True, False]],
]
AS_ARRAYS = [lambda s: [0, 1], lambda s: [True, False, True, True], lambda s: [], lambda s: [[0]] * 32, lambda s: ([[0, 1], [2, 3]],),
             lambda s: ([0, 1], [2, 3]), lambda s: range(2), lambda s: np.array([[0, 1], [2, 3]])]


def read_and_written(s, index):
    """The elements at an index, the tensor after an assignment to them, and the gradient of their sum."""
    x = s.arange(24.0, dtype=s.float64).reshape(4, 6)
    leaf = x.clone().requires_grad_()
    read, written = leaf[index(s)], x.clone()
    written[index(s)] = -1.0
    read.sum().backward()
    return [read.tolist(), written.tolist(), leaf.grad.tolist()]


@pytest.mark.parametrize("index", AS_TUPLES)
def test_a_list_with_more_than_numbers_is_a_tuple(index):
    with pytest.warns(UserWarning, match="tuple of its items") as warned:
        found = read_and_written(symgrad, index)
    assert [w.filename for w in warned] == [__file__] * 2
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert found == read_and_written(torch, index)


@pytest.mark.parametrize("index", AS_ARRAYS)
def test_other_indices_are_as_they_are(index):
    assert read_and_written(symgrad, index) == read_and_written(torch, index)
