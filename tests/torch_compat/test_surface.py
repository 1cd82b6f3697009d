"""The surface of Tensor beyond the record of PyTorch: storages, subclasses, NumPy's generators, overwritten indices, threads, formulas."""

import copy
import pickle
import threading

import numpy as np
import pytest

import symgrad
from symgrad import Tensor, autograd

t = symgrad.tensor


class Mass(Tensor):
    """A subclass with attributes."""


def test_a_storage_is_the_memory_of_all_its_views():
    x = symgrad.arange(24.0).reshape(2, 3, 4)
    for view in (x[1:, ::2], x.permute(2, 0, 1), x.detach(), x.data, x[1, 2, 3], x.flatten()[5:], x.view(6, 4).unfold(0, 2, 1)):
        storage = view.untyped_storage()
        assert storage == x.untyped_storage() and hash(storage) == hash(x.untyped_storage()) and storage.nbytes() == 192
        assert view.data_ptr() == x.data_ptr() + 8 * view.storage_offset()
    assert x.clone().untyped_storage() != x.untyped_storage()
    raw = x.untyped_storage()
    assert bytes(raw.tolist()) == x.numpy().tobytes() and raw[8:16].tolist() == list(np.float64(1.0).tobytes()) and raw.element_size() == 1


def test_storages_of_non_contiguous_arrays():
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    x = symgrad.from_numpy(array)
    assert x.untyped_storage().nbytes() == 48 and x.stride() == (1, 2) and x.storage_offset() == 0
    backwards = symgrad.from_numpy(np.arange(4.0)[::-1])
    assert backwards.stride() == (-1,) and backwards.storage_offset() == 3 and backwards.untyped_storage().nbytes() == 32
    wide = symgrad.from_numpy(np.broadcast_to(np.float64(1.0), (3, 2)))
    assert wide.stride() == (0, 0) and wide.untyped_storage().nbytes() == 8
    assert symgrad.tensor(1.0).untyped_storage().nbytes() == 8 and symgrad.zeros(0).untyped_storage().nbytes() == 0


def test_scalars_have_one_address():
    x = t(2.0)
    assert x.data_ptr() == x.data_ptr() == x.detach().data_ptr() == x.untyped_storage().data_ptr() != 0


def test_subclasses():
    x = Mass([1.0, 2.0])
    x.unit = "kg"
    assert type(x) is Mass and repr(x) == "Mass([1., 2.])" and isinstance(x, Tensor)
    for way in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        assert type(way(x)) is Mass and way(x).unit == "kg" and way(x).tolist() == [1.0, 2.0]
    y = t([1.0], requires_grad=True).as_subclass(Mass)
    (y * 3).sum().backward()
    assert type(y) is Mass and y.requires_grad
    assert type(Tensor._make_subclass(Tensor, t([1.0]), True)) is Tensor and Mass._make_subclass(Mass, t([1.0]), True).requires_grad


def test_old_constructors_share_memory_with_a_tensor():
    x = symgrad.ones(3, requires_grad=True)
    y = Tensor(x)
    assert y.data_ptr() == x.data_ptr() and y.requires_grad and symgrad.DoubleTensor(x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="expected a tensor of torch.float32.*got one of torch.float64"):
        symgrad.FloatTensor(x)
    with pytest.raises(TypeError, match="new: got requires_grad"):
        Tensor(requires_grad=True)
    with pytest.raises(TypeError, match="torch.cuda.FloatTensor: there is no CUDA"):
        symgrad.cuda.FloatTensor(2)
    assert not isinstance(x, symgrad.cuda.DoubleTensor)


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


def test_the_default_device_is_thread_local():
    found = []
    with symgrad.device("cuda"):
        thread = threading.Thread(target=lambda: found.append(symgrad.get_default_device()))
        thread.start()
        thread.join()
    assert found == [symgrad.device("cpu")]


def test_a_device_cannot_be_changed():
    with pytest.raises(AttributeError, match="cannot assign to field"):
        symgrad.device("cpu").type = "cuda"


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


def test_named_tuples():
    pair = t([3.0, 1.0, 2.0]).sort()
    values, indices = pair
    assert pair.values is values and pair.indices is indices and pair == (values, indices) and type(pair) is symgrad.return_types.sort
    again = pickle.loads(pickle.dumps(pair))
    assert type(again) is type(pair) and again.values.tolist() == [1.0, 2.0, 3.0]
    assert t([[1.0, 5.0]]).max(1)[1].tolist() == [1] and t([[1.0, 5.0]]).aminmax().max == 5.0


def test_where_as_a_method_takes_the_condition_second():
    x = t([1.0, -2.0])
    assert x.where(x > 0, t([10.0, 20.0])).tolist() == [1.0, 20.0] and x.where(x > 0, 0.5).tolist() == [1.0, 0.5]


def test_formulas_of_sort_use_the_recorded_order():
    x = symgrad.tensor([3.0, 1.0, 2.0], symbol="x")
    names = [str(e) for e in x.sort().values.expr]
    assert names == [str(x.expr[i]) for i in (1, 2, 0)] and [str(e) for e in x.topk(1).values.expr] == [str(x.expr[0])]


def most_frequent(row):
    return min(np.unique(row), key=lambda v: (-(row == v).sum(), v))


@pytest.mark.parametrize("k", range(1, 6))
def test_selections_agree_with_numpy(k):
    rng = np.random.default_rng(k)
    a = rng.integers(-3, 4, (4, 5, 3)).astype(float)
    x = t(a)
    for dim in range(3):
        assert np.array_equal(x.sort(dim).values, np.sort(a, dim))
        assert np.array_equal(x.argsort(dim, descending=True), np.argsort(-a, dim, kind="stable"))
        assert np.array_equal(x.median(dim).values, np.sort(a, dim).take((a.shape[dim] - 1) // 2, dim))
        assert np.array_equal(x.cummax(dim).values, np.maximum.accumulate(a, dim)) and np.array_equal(x.cumprod(dim), np.cumprod(a, dim))
        assert np.array_equal(x.take_along_dim(x.argsort(dim), dim), np.sort(a, dim))
        assert np.array_equal(x.mode(dim).values, np.apply_along_axis(most_frequent, dim, a))
        for pair in (x.mode(dim), x.median(dim), x.kthvalue(2, dim)):
            assert np.array_equal(np.take_along_axis(a, np.expand_dims(pair.indices, dim), dim).squeeze(dim), pair.values)
    assert np.array_equal(symgrad.unique(x), np.unique(a)) and np.array_equal(x.nonzero(), np.argwhere(a))
    assert np.array_equal(symgrad.rot90(x, k, (0, 2)), np.rot90(a, k, (0, 2))) and np.array_equal(symgrad.kron(x[0], x[1]), np.kron(a[0], a[1]))
    assert np.array_equal(x.diagonal(k - 3, 2, 0), a.diagonal(k - 3, 2, 0)) and np.array_equal(x.tile(2, 1), np.tile(a, (2, 1)))
    assert np.array_equal(symgrad.tensordot(x, x, ([0, 1], [0, 1])), np.tensordot(a, a, ([0, 1], [0, 1])))
    assert np.array_equal(symgrad.cross(x, x.flip(0), dim=2), np.cross(a, a[::-1], axis=2))
    assert np.array_equal(symgrad.diff(x, 2, 1), np.diff(a, 2, 1))


def test_gradients_of_cumprod_with_zeros():
    for values in ([2.0, 0.0, 3.0, 4.0], [0.0, 0.0, 1.0], [5.0], [0.0]):
        x = t(values, requires_grad=True)
        w = symgrad.arange(1.0, len(values) + 1)
        (first,) = autograd.grad((x.cumprod(0) * w).sum(), x, create_graph=True)
        n = len(values)
        exact = [sum(w[j].item() * np.prod([v for k, v in enumerate(values[:j + 1]) if k != i]) for j in range(i, n)) for i in range(n)]
        assert first.tolist() == exact
        (second,) = autograd.grad(first.sum(), x, materialize_grads=True)
        assert second.shape == x.shape


def test_bfloat16_sums_accumulate_in_float32():
    x = symgrad.full((4000,), 1.0, dtype=symgrad.bfloat16)
    assert x.sum() == 4000 and x.sum().dtype is symgrad.bfloat16 and x.mean() == 1


def test_float64_scalars_keep_their_digits_with_default_dtype_float32():
    symgrad.set_default_dtype(symgrad.float32)
    try:
        for x in (t(0.1, dtype=symgrad.float64), symgrad.full((), 0.1, dtype=symgrad.float64), t([[0.1]], dtype=symgrad.float64),
                  symgrad.full_like(symgrad.zeros(1, dtype=symgrad.float64), 0.1), symgrad.ones(1, dtype=symgrad.float64).new_tensor(0.1)):
            assert x.item() == 0.1 and x.dtype is symgrad.float64
        assert t(0.1).dtype is symgrad.float32 and t(0.1j).dtype is symgrad.complex64
    finally:
        symgrad.set_default_dtype(symgrad.float64)
