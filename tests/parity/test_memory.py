"""Memory as torch shows it: storages, views in another dtype and in modes, pieces, and writes. Calls of one line are in `calls/memory.txt`."""


import pytest
import torch

import symgrad

from .beside import Section, differences, sections

pytestmark = pytest.mark.usefixtures("double_precision")
LIBRARIES = torch, symgrad
DTYPES = ("float64", "float32", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
          "uint64", "bool")


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_in_another_dtype(dtype):
    given = next(sections("memory")).given + "no_dimensions, no_elements = torch.tensor(3.0), torch.zeros(2, 0, 4)\n"
    calls = [f"x.to(torch.{dtype}).view(torch.{other})" for other in DTYPES]
    for x in ("contiguous", "permuted", "sliced", "expanded", "offset", "no_dimensions", "no_elements"):
        assert differences(Section("", f"{given}x = {x}", calls, 0.0, frozenset({"memory"}))) == []


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


def test_storages_write_into_tensors_and_cannot_grow():
    x = symgrad.zeros(3)
    x.storage()[1] = 5.0
    x.untyped_storage()[7] = 64
    assert x.tolist() == [2.0, 5.0, 0.0] and x._version == 0
    with pytest.raises(RuntimeError, match="resize_: the storage has the size 3"):
        x.storage().resize_(4)
    with pytest.raises(RuntimeError, match="copy_: the source has the size 2, the storage 3"):
        x.storage().copy_(symgrad.DoubleStorage(2))


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
        with pytest.raises(RuntimeError, match="(?i)inference"):
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
