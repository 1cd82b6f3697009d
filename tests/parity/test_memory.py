"""Memory as torch shows it: storages, views in another dtype, copies of views, pieces, indices, sizes, and the words of what is refused."""

import itertools

import pytest
import torch

import symgrad

pytestmark = pytest.mark.usefixtures("double_precision")
LIBRARIES = torch, symgrad
DTYPES = ("float64", "float32", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
          "uint64", "bool")


def shown(t, value):
    """What is compared of a result: of a tensor its elements, dtype and strides (of dimensions with more than one element)."""
    if isinstance(value, t.Tensor):
        strides = tuple(s for s, n in zip(value.stride(), value.shape) if n != 1) if value.numel() else ()
        return value.tolist(), str(value.dtype), strides, value.storage_offset(), value._is_view(), value.requires_grad
    if isinstance(value, (list, tuple)) and not isinstance(value, t.Size):
        return [shown(t, v) for v in value]
    return str(value).replace("symgrad.", "torch.") if isinstance(value, (type, t.dtype, t.TypedStorage, t.UntypedStorage)) else value


def seen(t, call, **names):
    """What a call gives, or the error that it raises."""
    try:
        return shown(t, eval(call, {"t": t, **names}))
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return error


def agree(call, **names):
    """Raise unless a call gives the same in both libraries: a result, or an error of one type."""
    theirs, ours = (seen(t, call, **{name: make(t) for name, make in names.items()}) for t in LIBRARIES)
    if isinstance(theirs, Exception) and isinstance(ours, Exception):
        assert isinstance(ours, type(theirs)), f"{call}: torch {theirs!r}; symgrad {ours!r}"
    else:
        assert ours == theirs, f"{call}: torch {theirs!r}; symgrad {ours!r}"


def calls(text):
    return [call.strip() for call in text.strip().split("\n")]


X = {"x": lambda t: t.arange(24.0).reshape(2, 3, 4)}
LAYOUTS = {
    "contiguous": X["x"],
    "permuted": lambda t: X["x"](t).permute(2, 0, 1),
    "sliced": lambda t: t.arange(96.0).reshape(4, 3, 8)[::2, :, ::2],
    "expanded": lambda t: t.arange(8.0).reshape(2, 1, 4).expand(2, 3, 4),
    "offset": lambda t: t.arange(25.0)[1:].view(2, 3, 4),
    "dense, of no usual order": lambda t: X["x"](t).permute(2, 0, 1).clone(),
    "no dimensions": lambda t: t.tensor(3.0),
    "no elements": lambda t: t.zeros(2, 0, 4),
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_in_another_dtype(dtype):
    for other, (name, make) in itertools.product(DTYPES, LAYOUTS.items()):
        if name != "dense, of no usual order":  # where torch's copy of integers has another order
            agree(f"x.to(t.{dtype}).view(t.{other})", x=make)


def test_a_view_in_another_dtype_shares_memory_and_its_versions_and_is_outside_of_the_graph():
    for t in LIBRARIES:
        x = t.zeros(2, dtype=t.float64)
        x.view(t.int64).fill_(1)
        assert x.tolist() == [5e-324, 5e-324] and x._version == 1
        y = t.ones(2, requires_grad=True) * 1
        z = y * y
        view = y.view(dtype=t.complex128)
        assert not view.requires_grad and view.is_leaf and not view._is_view() and view.data_ptr() == y.data_ptr()
        view.zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
    assert symgrad.vmap(lambda row: row.view(symgrad.int32))(symgrad.ones(3, 2)).shape == (3, 4)


STORAGES = """
x[:, 1:].storage().tolist()
x[1].storage().size(), x[1].untyped_storage().nbytes(), len(x.storage()), x.storage().element_size(), x.storage().nbytes()
x[1].storage().data_ptr() == x.data_ptr(), x[1].untyped_storage().data_ptr() == x.data_ptr()
x.storage().dtype, x.storage().device.type, x.storage().type(), x.storage().pickle_storage_type(), x.storage_type().__name__
x.storage()[3], x.storage()[-1], list(x.storage())[:2], x.untyped_storage()[7], x.untyped_storage()[6:8].tolist()
x.storage()[24]
x.storage()[1:2]
x.untyped_storage()[500]
x.storage().float().tolist(), x.storage().int().dtype, x.storage().clone().data_ptr() == x.data_ptr()
x.storage().fill_(2.0).tolist(), x._version
x.storage().copy_(t.DoubleStorage(list(range(24)))).tolist()
x.untyped_storage().fill_(0).nbytes(), x.untyped_storage().clone().tolist()
x.untyped_storage() == x[1].untyped_storage(), hash(x.untyped_storage()) == hash(x[1].untyped_storage())
repr(t.IntStorage([1, 2])), repr(t.UntypedStorage([1, 2]))
t.Storage([1.0, 2.0]).tolist(), t.FloatStorage(3).size(), t.TypedStorage([1, 2], dtype=t.int32).tolist(), t.UntypedStorage(3).nbytes()
isinstance(x.storage(), t.DoubleStorage), isinstance(x.storage(), t.FloatStorage), t.is_storage(x.storage()), t.is_storage(x)
t.TypedStorage(wrap_storage=t.UntypedStorage(list(b"12345678")), dtype=t.int16).tolist()
t.TypedStorage(wrap_storage=t.UntypedStorage(5), dtype=t.int16).size()
t.tensor(x.storage()), x.storage().is_shared(), x.storage().is_pinned(), x.storage().is_cuda, x.storage().cpu().tolist()
t.empty(0).set_(x.storage()), t.empty(0).set_(x.untyped_storage()), t.empty(0).set_(x.storage(), 2, (2, 3), (6, 2)), t.empty(0).set_(x[1])
t.empty(0, dtype=t.int32).set_(x.storage())
x.permute(2, 0, 1).clone().as_strided((3, 2), (1, 5), 2)
x.as_strided((2,), (-1,))
x.as_strided((2, 2), (1,))
x.as_strided((-2,), (1,))
x.as_strided((2,), (1,), -1)
"""


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("call", calls(STORAGES))
def test_storages(call):
    agree(call, **X)


def test_storages_write_into_tensors_and_cannot_grow():
    x = symgrad.zeros(3)
    x.storage()[1] = 5.0
    x.untyped_storage()[7] = 64
    assert x.tolist() == [2.0, 5.0, 0.0] and x._version == 0
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.storage().resize_(4)
    with pytest.raises(RuntimeError, match="The size of the source, 2, is not that of the storage, 3"):
        x.storage().copy_(symgrad.DoubleStorage(2))


COPIES = """
t.alias_copy(x)
t.detach_copy(x)
t.diagonal_copy(x, 1, 0, 2)
t.expand_copy(x, (2, *x.shape))
t.permute_copy(x, (2, 0, 1))
t.select_copy(x, 1, 0)
t.slice_copy(x, 1, 1, 3, 2)
t.split_copy(x, 2, 1)
t.split_with_sizes_copy(x, [1, x.shape[1] - 1], 1)
t.squeeze_copy(x[:1], 0)
t.t_copy(x[0])
t.transpose_copy(x, 0, 2)
t.unbind_copy(x, 1)
t.unfold_copy(x, 1, 2, 1)
t.unsqueeze_copy(x, 1)
t.view_copy(x, x.shape)
t.view_copy(x, t.int64)
t.view_as_real_copy(t.complex(x, x))
t.as_strided_copy(x, (2, 2), (1, 2))
t.narrow_copy(x, 1, 0, 2)
t.as_strided_scatter(x, t.ones(2, 2), (2, 2), (1, 2))
t.as_strided_scatter(x.contiguous(), t.ones(3, 3), (3, 3), (3, 4))
x.contiguous().as_strided((3, 1, 3), (3, 1, 4), 2).mul_(2), x.clone().as_strided((2, 3), (5, 2)).zero_()
t.unsafe_chunk(x, 2, 1)
t.unsafe_split(x, 2, 1)
t.unsafe_split_with_sizes(x, [1, x.shape[1] - 1], 1)
t.alias_copy(x, out=t.empty(0))
t.diagonal_copy(x, out=t.empty(0))
t.select_copy(x, 1, 0, out=t.empty(0))
t.slice_copy(x, 1, 1, 3, out=t.empty(0))
t.permute_copy(x, (2, 0, 1), out=t.empty(0))
t.view_copy(x, x.shape, out=t.empty(0))
t.narrow_copy(x, 1, 0, 2, out=t.empty(0))
t.as_strided_copy(x, (2, 2), (1, 2), out=t.empty(0))
t.unsqueeze_copy(x, 0, out=t.empty(0))
t.expand_copy(x, (2, *x.shape), out=t.empty(0))
t.slice_scatter(x, x[:, 1:], 1, 1, out=t.empty(0))
t.as_strided_scatter(x, t.ones(2, 2), (2, 2), (1, 2), out=t.empty(0))
t.view_as_real_copy(t.complex(x, x), out=t.empty(0))
"""


@pytest.mark.parametrize("layout", ("contiguous", "permuted", "expanded"))
def test_copies_and_pieces_of_views(layout):
    for call in calls(COPIES):
        agree(call, x=LAYOUTS[layout])


@pytest.mark.parametrize("split", ("unsafe_chunk(3)", "unsafe_split(1)", "unsafe_split_with_sizes((1, 1, 1))"))
def test_unsafe_pieces_are_written_alone(split):
    for t in LIBRARIES:
        x = t.arange(6.0).requires_grad_()
        y = (x * 1).reshape(3, 2)
        square = y * y
        first, second, _ = eval(f"y.{split}", {"y": y})
        first.mul_(second)
        first.sum().backward(retain_graph=True)
        assert x.grad.tolist() == [2, 3, 0, 1, 0, 0] and y._version == 0 and "Mul" in type(first.grad_fn).__name__
        assert y[0].tolist() == [0, 3]
        x.grad = None
        square.sum().backward()  # nobody sees that y was written
        assert x.grad.tolist() == [0, 6, 4, 6, 8, 10]


INDICES = """
x[t.tensor([True])]
x[t.tensor([True, False]), t.tensor([True])]
x[..., t.tensor([True])]
x[:, None, t.ones(3, 5, dtype=t.bool)]
x[t.ones(2, 3, 4, 1, dtype=t.bool)]
x[:, :0][:, t.tensor([1, 2])]
x[t.tensor([7])]
x[t.tensor([[-7]])]
x[7]
x[0, -4]
x[0, 0, 0, 0]
x[0, 0, 0, 0:1]
x[0, ..., 0, 0, 0]
x[0:2:0]
x[0, 0, 0][0]
x[0, 0, 0][0:1]
x[0, 0, 0][0, 0]
x[0, 0, 0][None], x[0, 0, 0][...], x[0, 0, 0][True]
x[t.tensor(1, dtype=t.int16)]
x[t.tensor(1, dtype=t.int8), :, t.tensor(-1, dtype=t.int32)]
x[t.tensor([1], dtype=t.int16)]
x[t.tensor(1.0)]
x[1.0]
x[([0, 1], [1, 0]),]
x[(0, 1), (1, 0)]
x[range(2), (0, 1)]
x.__setitem__(t.tensor([1]), t.tensor(3))
x.__setitem__((slice(None), [1]), t.ones(2, 1, 4, dtype=t.int32))
x.__setitem__(x > 0, t.ones(5, dtype=t.int32))
x.__setitem__(x > 100, t.ones(5))
x.__setitem__(x > 0, t.tensor([3])), x
x.__setitem__([1], 3), x
x.__setitem__(slice(1), t.tensor(3)), x
[i.tolist() for i in t.unravel_index(t.tensor([5]), (2, 3))], t.unravel_index(t.tensor([2]), 3)[0].tolist()
t.unravel_index(t.tensor([1.0]), (2, 3))
t.unravel_index(t.tensor([1]), (2, -3))
t.unravel_index(t.tensor([1]), (2, 3.0))
t.unravel_index(t.tensor([1]), 2.0)
t.nonzero(x, out=t.empty(0, dtype=t.long)).tolist(), t.nonzero(x, as_tuple=False).tolist()
t.nonzero(x, as_tuple=True, out=t.empty(0, dtype=t.long))
"""


@pytest.mark.parametrize("call", calls(INDICES))
def test_indices(call):
    agree(call, **X)


SHAPES = """
x.flip()
t.flip(x, ()), x.flip([0, 2]), x.flip(0, 1)
x.flip(0, 1, 1)
t.movedim(x, (0, 0), (0, 1))
t.movedim(x, (0, 1), (1, 1))
t.movedim(x, (0, -3), (1, 2))
t.tensor_split(x, t.tensor([1.0]))
t.tensor_split(x, t.tensor([[1]]))
t.broadcast_shapes((2, 3), 3, (1, 1)), t.broadcast_shapes(), t.broadcast_shapes(4)
t.broadcast_shapes((2, 3), (3, 2))
t.broadcast_shapes((2, 3), -1)
t.broadcast_shapes((2, -3), (3, 2))
t.broadcast_shapes(2, 3)
x[0, 0].expand(1, 1, 4).stride(), x.expand(1, 1, 2, 3, 4).stride(), x.expand(3, 1, 2, 3, 4).stride(), x.sum().expand(1, 1).stride()
t.view_as_complex(x[..., :2]), t.view_as_complex(x.view(12, 2)), t.view_as_complex(t.zeros(0, 2)).shape
t.view_as_complex(x.view(4, 6)[:, ::3])
t.view_as_complex(t.zeros(9)[1:].view(4, 2))
t.view_as_complex(x.view(8, 3)[:, :2])
t.view_as_complex(x)
t.view_as_complex(t.zeros(()))
t.view_as_complex(x.view(12, 2).long())
x.resize_(2, 3, 2, 2, memory_format=t.channels_last).is_contiguous(memory_format=t.channels_last), x.stride(), x.flatten()[:3]
x.resize_(1, 2, 3, 2, 2, memory_format=t.channels_last_3d).stride()
x.resize_(2, 3, memory_format=t.channels_last)
x.resize_as_(t.zeros(2, 3, 2, 2).contiguous(memory_format=t.channels_last), memory_format=t.preserve_format).stride()
x.resize_as_(t.zeros(2, 3, 2, 2).contiguous(memory_format=t.channels_last)).stride()
x.resize_as_(t.zeros(2, 3, 2, 2), memory_format=t.channels_last).stride()
x.resize_(2, 4, 2**29, 2**29)
x.resize_(0, 4, 2**61)
x.resize_(2, -1)
t.zeros(2, dtype=float).dtype, t.zeros(2, dtype=int).dtype, t.zeros(2, dtype=bool).dtype
"""


@pytest.mark.parametrize("call", calls(SHAPES))
def test_shapes(call):
    agree(call, **X)


PROMOTION = """
t.add(1, 1, alpha=True)
t.add(True, True), t.add(True, True, alpha=True), t.add(x > 1, True, alpha=True)
t.add(x.int(), 1, alpha=True)
t.sub(x.int(), 1, alpha=True)
t.add(x.int(), 1, alpha=1.5)
t.add(x, 1, alpha=1j)
t.addcdiv(x.int(), x.int(), x.int())
t.addcdiv(x, x.int(), x.int() + 1)
t.clamp(x.int(), t.tensor(1.5, dtype=t.float64), t.ones(4, dtype=t.float32))
t.clamp(x.int(), t.ones(4, dtype=t.float32), t.tensor(2.5, dtype=t.float64))
t.clamp(x.int(), t.ones(4, dtype=t.float64), t.ones(4, dtype=t.float32)).dtype
t.clamp(x.int(), 1.5, 2.5).dtype, t.clamp(x.int(), max=1.5).dtype
"""


@pytest.mark.parametrize("call", calls(PROMOTION))
def test_promotion(call):
    agree(call, **X)


def test_parts_of_complex_numbers_are_assigned():
    for t in LIBRARIES:
        x = t.tensor([1 + 2j, 3 + 4j])
        base = x
        x.real, x.imag = t.tensor([5, 6], dtype=t.int32), t.tensor(7.5)
        assert x is base and x.tolist() == [5 + 7.5j, 6 + 7.5j]
        y = t.ones(2)
        y.real = t.tensor([2.0, 3.0])
        assert y.tolist() == [2, 3]
        with pytest.raises(RuntimeError, match="imag"):
            y.imag = y
        source = t.ones(2, requires_grad=True)
        z = t.zeros(2, dtype=t.complex128) * 1
        z.real = source * 2
        (z * (1 + 1j)).abs().sum().backward()
        assert source.grad.allclose(t.full((2,), 2 * 2**0.5))
    with pytest.raises(TypeError, match="only a Tensor can be assigned"):
        x.real = 3


FORMATS = """
t.empty_like(x, memory_format=t.channels_last).is_contiguous(memory_format=t.channels_last)
t.zeros_like(x, memory_format=t.channels_last, dtype=t.float32), t.ones_like(x), t.full_like(x, 2.0, memory_format=t.contiguous_format)
t.zeros_like(x, memory_format=t.channels_last_3d)
t.empty(2, 3, 4, memory_format=t.channels_last)
t.empty(2, 3, 4, 5, memory_format=t.channels_last).stride()
x.contiguous(memory_format=t.preserve_format)
x.contiguous(memory_format=t.channels_last), x.clone(memory_format=t.channels_last)
t.cat([x, x], 1), t.cat([x, x.contiguous()]), t.cat([x, x + 1], 3)
t.tensor(x), x.dim_order(), x.is_contiguous(), x.is_contiguous(memory_format=t.channels_last)
"""


@pytest.mark.filterwarnings("ignore:To copy construct", "ignore:tensor. the data is a Tensor")
@pytest.mark.parametrize("layout", ("contiguous", "channels last", "expanded"))
def test_memory_formats(layout):
    makes = {"contiguous": lambda t: t.arange(120.0).reshape(2, 3, 4, 5), "expanded": lambda t: t.arange(20.0).reshape(1, 1, 4, 5).expand(2, 3, 4, 5)}
    makes["channels last"] = lambda t: makes["contiguous"](t).contiguous(memory_format=t.channels_last)
    for call in calls(FORMATS):
        agree(call, x=makes[layout])


def test_views_in_modes():
    for t in LIBRARIES:
        with t.inference_mode():
            x = t.zeros(4)
        for view in (x.view(2, 2), x.as_strided((2,), (1,)), x[1:]):
            assert view.is_inference() and not view._is_view() and view._base is None
        y = t.ones(4, requires_grad=True) * 1
        with t.inference_mode():
            view = y.view(2, 2)
        assert view._base is y and not view.is_inference()
        with pytest.raises(RuntimeError, match="Output 0 of Select.* is a view of a view which was created in inference mode and is being modified"):
            view[0] = 5.0
        with t.no_grad():
            assert not t.unsafe_split(t.ones(2, requires_grad=True), 1)[0].requires_grad


def test_a_write_to_an_index_outside_of_the_graph_touches_only_its_elements():
    for t in LIBRARIES:
        x, y = t.zeros(5), t.ones(5, requires_grad=True)
        square = (y * 2) * x
        for mode in (t.enable_grad, t.no_grad, t.inference_mode):
            with mode():
                x[t.tensor([0, 2])] = t.tensor([1.0, 2.0])
                x[x > 1] += 1
                x[[4]] = 7.0
        assert x.tolist() == [1, 0, 3, 0, 7] and x._version == 9
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            square.sum().backward()
        with t.inference_mode():
            z = t.zeros(3)
        with pytest.raises(RuntimeError, match="(?i)inference ?tensor"):
            z[[0]] = 1.0
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
            y[[0]] = 1.0
        z = t.zeros(3)
        z[[0, 1]] = y[:2]
        z.sum().backward()
        assert y.grad.tolist() == [1, 1, 0, 0, 0]
