"""Tensors: torch's values and dtypes, Python's protocols, memory sharing, NumPy, and composite functions."""

import copy
import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad
from symgrad import autograd, tensor


def test_max_is_a_named_pair():
    values, indices = pair = tensor([[1, 5], [7, 2]]).max(1)
    assert values is pair.values is pair[0] and indices is pair.indices and (values.tolist(), indices.tolist()) == ([5, 7], [1, 0])


def test_axis_and_keepdims_are_accepted_for_dim_and_keepdim():
    a = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert a.sum(axis=0, keepdims=True).tolist() == [[4.0, 6.0]]
    assert symgrad.softmax(a, axis=1).tolist() == symgrad.softmax(a, dim=1).tolist()
    assert a.std(axis=0, ddof=0).tolist() == a.std(dim=0, correction=0).tolist()


OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
             "**": operator.pow, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
OPERANDS = {"tensor": lambda v: tensor(v), "array": lambda v: np.array(v), "number": lambda v: v[0], "NumPy number": lambda v: np.float64(v[0]),
            "list": lambda v: v, "number tensor": lambda v: tensor(v[0])}


@pytest.mark.sampled(26)
@pytest.mark.parametrize("other", OPERANDS)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_and_their_reflections(name, other):
    """Both ways round, with whatever stands on the other side, the numbers are NumPy's; and they are Tensors."""
    function, left, right = OPERATORS[name], [2.5, 3.0, 0.5], [1.5, 3.0, 2.0]
    given = OPERANDS[other](right)
    plain_right = given if isinstance(given, float) else np.asarray(right if other not in ("number tensor",) else right[0])
    for found, expected in ((function(tensor(left), given), function(np.array(left), plain_right)),
                            (function(given, tensor(left)), function(plain_right, np.array(left)))):
        assert isinstance(found, symgrad.Tensor) and found.tolist() == np.asarray(expected).tolist()


def test_matmul_is_reflected():
    a = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    found = np.ones((1, 2)) @ a
    assert isinstance(found, symgrad.Tensor) and found.tolist() == [[4.0, 6.0]] and found.requires_grad


def test_python_protocols():
    assert (int(tensor(3.7)), float(tensor(3)), complex(tensor(2.0)), bool(tensor(0.0)), [1, 2, 3][tensor(2)]) == (3, 3.0, 2 + 0j, False, 3)
    assert list(range(3))[tensor(1):] == [1, 2] and abs(tensor(-2)).item() == 2 and round(float(tensor(2.5))) == 2
    assert divmod(tensor([7.0, -7.0]), 2)[0].tolist() == [3.0, -4.0] and divmod(tensor([7.0, -7.0]), 2)[1].tolist() == [1.0, 1.0]
    assert 2 in tensor([1, 2]) and 5 not in tensor([1, 2])
    assert [x.item() for x in tensor([1, 2])] == [1, 2] and len(tensor([[1], [2]])) == 2
    a, b = tensor([1.0, 2.0])
    assert a.shape == () and b.item() == 2.0


def test_tensors_are_hashed_by_identity():
    a, b = tensor(1.0), tensor(1.0)
    assert {a: "a", b: "b"}[a] == "a" and hash(a) != hash(b)


def test_copies():
    x = tensor([1.0, 2.0])
    for other in (copy.deepcopy(x), copy.copy(x), x.clone(), tensor(x.tolist())):
        assert other.tolist() == x.tolist() and other is not x


class TestMemory:

    def test_from_numpy_and_as_tensor_share(self):
        a = np.array([1.0, 2.0])
        x, z = symgrad.from_numpy(a), symgrad.as_tensor(a)
        a[0] = 9.0
        assert x.tolist() == z.tolist() == [9.0, 2.0] and symgrad.as_tensor(x) is x
        assert x.numpy() is a or np.shares_memory(x.numpy(), a)

    def test_detach_data_and_numpy_share(self):
        for x in (tensor([1.0, 2.0]), tensor(3.0)):
            assert x.detach().shares_memory_with(x) and x.data.shares_memory_with(x) and np.shares_memory(x.numpy(), x.numpy())
            x.detach().numpy()[...] = 7.0
            assert np.all(x.numpy() == 7.0)


class TestDtypes:

    def test_the_default_dtype(self):
        try:
            symgrad.set_default_dtype(symgrad.float32)
            assert tensor(1.5).dtype is symgrad.zeros(2).dtype is (tensor([1]) / 2).dtype is symgrad.float32
            assert symgrad.get_default_dtype() is symgrad.float32 and tensor(1j).dtype is symgrad.complex64
        finally:
            symgrad.set_default_dtype(symgrad.float64)
        assert tensor(1.5).dtype is symgrad.float64


class TestNumPy:
    def test_ufuncs_are_ops(self):
        x = tensor([0.5, 1.0], requires_grad=True)
        for ufunc, function in ((np.sin, symgrad.sin), (np.exp, symgrad.exp), (np.arctan, symgrad.atan), (np.negative, symgrad.neg)):
            y = ufunc(x)
            assert isinstance(y, symgrad.Tensor) and y.tolist() == function(x).tolist() and y.requires_grad
        assert (np.array([5, 3]) & tensor([3, 1])).tolist() == [1, 1] and np.invert(tensor([True])).tolist() == [False]
        assert np.maximum(np.array([0.7, 0.7]), x).tolist() == [0.7, 1.0] and np.add(x, 1).requires_grad

    def test_conversion_to_arrays(self):
        x = tensor([[1, 2], [3, 4]])
        assert np.asarray(x).tolist() == x.tolist() and np.array(x, dtype=float).dtype == np.float64
        assert np.linalg.det(tensor([[2.0, 0.0], [0.0, 3.0]])) == pytest.approx(6.0)


@pytest.mark.sweep
@given(st.lists(st.integers(1, 3), min_size=0, max_size=4), st.data())
def test_indexing_matches_numpy(shape, data):
    """Any basic index, and integer arrays among it: the values, and the gradient that goes back to where they came from.

    Numbers are taken before arrays, as torch does; NumPy takes a number beside arrays for one of them.
    """
    x = np.arange(1.0, 1 + math.prod(shape)).reshape(shape)
    parts = []
    for n in shape[:data.draw(st.integers(0, len(shape)))]:
        slices = st.builds(slice, st.integers(-n, n), st.integers(-n, n), st.sampled_from([1, 2, None]))
        lists = st.lists(st.integers(-n, n - 1), min_size=2, max_size=2)
        parts.append(data.draw(st.one_of(st.integers(-n, n - 1), slices, st.just(None), lists)))
    index = tuple(parts[:sum(p is not None for p in parts)]) if None not in parts else tuple(parts)
    basic = tuple(slice(None) if isinstance(part, list) else part for part in index)
    arrays = tuple(part if isinstance(part, list) else slice(None) for part in index if not isinstance(part, int))
    try:
        expected = x[basic][arrays]
    except IndexError:
        return
    leaf = tensor(x, requires_grad=True)
    found = leaf[index]
    assert found.tolist() == expected.tolist()
    (g,) = autograd.grad(found, leaf, tensor(np.ones(expected.shape)))
    counts = np.bincount(expected.reshape(-1).astype(int) - 1, minlength=x.size)  # the elements of x are 1, 2, 3, ...
    assert g.tolist() == counts.reshape(x.shape).tolist()
