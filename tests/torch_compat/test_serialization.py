"""Copies, pickles and files: what is preserved, what is refused, and that loading runs no code."""

import copy
import io
import json
import pickle
import zipfile
from collections import Counter, OrderedDict, namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import symgrad
from symgrad import nn
from symgrad.engine.traced import lift
from symgrad.graph.op import REGISTRY

DTYPES = ("float64", "float32", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "bool")


def stored(obj):
    file = io.BytesIO()
    symgrad.save(obj, file)
    file.seek(0)
    return symgrad.load(file)


def pickled(obj):
    return pickle.loads(pickle.dumps(obj))


WAYS = {"save": stored, "pickle": pickled, "deepcopy": copy.deepcopy, "copy": copy.copy}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.mark.sampled(80)
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3,), (2, 3)], ids=str)
def test_every_dtype_and_shape(way, name, shape):
    x = symgrad.arange(6)[:int(np.prod(shape))].reshape(shape).to(getattr(symgrad, name))
    y = way(x)
    assert y is not x and type(y) is symgrad.Tensor and y.dtype is x.dtype and y.shape == x.shape and symgrad.equal(x, y) and not y.requires_grad


def test_a_leaf_stays_a_leaf(way):
    x = symgrad.tensor([1.0, 2.0], requires_grad=True, symbol="x")
    (x * x).sum().backward()
    y = way(x)
    assert y.requires_grad and y.is_leaf and str((y * 2).sum().expr) == str((x * 2).sum().expr)
    if way is copy.deepcopy:
        assert y.grad.tolist() == [2.0, 4.0] and y.grad is not x.grad and y.grad.data_ptr() != x.grad.data_ptr()
    else:
        assert y.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_non_leaves_lose_their_graph_and_refuse_deepcopy():
    y = symgrad.tensor([1.0, 2.0], requires_grad=True) * 2
    for way in (stored, pickled, copy.copy):
        z = way(y)
        assert z.grad_fn is None and z.is_leaf and z.requires_grad and z.tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(y)
    assert copy.deepcopy(y.detach()).tolist() == [2.0, 4.0]


def test_memory_sharing_after_a_round_trip():
    whole = symgrad.arange(6.0).reshape(2, 3)
    row, turned = whole[1], whole.t()
    assert copy.copy(row).data_ptr() == row.data_ptr()
    for way in (stored, copy.deepcopy):
        a, b, c = way([whole, row, turned])
        assert a.data_ptr() != whole.data_ptr() and c.stride() == (1, 3) and c.tolist() == turned.tolist()
        a._array()[1, 0] = 50.0
        assert b.tolist() == [50.0, 4.0, 5.0] and c[0, 1] == 50.0 and whole[1, 0] == 3.0
        assert b.untyped_storage() == a.untyped_storage() and b.storage_offset() == 3
    a, b = pickled([whole, row])
    a._array()[...] = 0
    assert b.tolist() == [3.0, 4.0, 5.0]


def test_memory_in_the_order_of_columns_is_shared_after_a_round_trip():
    whole = symgrad.from_numpy(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    a, b = stored([whole, whole[1]])
    assert a.stride() == (1, 2) and a.tolist() == whole.tolist()
    a.fill_(7.0)
    assert b.tolist() == [7.0, 7.0, 7.0]


def test_a_pickle_of_an_expanded_tensor_has_its_elements_once():
    for x in (symgrad.arange(3.0, requires_grad=True).detach()[:, None].expand(3, 10**9), symgrad.ones((), dtype=symgrad.bfloat16).expand(10**9),
              symgrad.zeros(2, 1, 3).expand(2, 4, 3).permute(2, 1, 0), symgrad.zeros(1).expand(5)):
        text = pickle.dumps(x)
        y = pickle.loads(text)
        assert len(text) < 1000 and y.shape == x.shape and y.dtype is x.dtype
        assert [a == 0 for a in y.stride()] == [a == 0 for a in x.stride()]
        assert y[..., :2].flatten()[:5].tolist() == x[..., :2].flatten()[:5].tolist()
    x = pickled(symgrad.arange(3.0).requires_grad_()[:, None].expand(3, 2).detach().requires_grad_())
    assert x.requires_grad and x.is_leaf and x.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_attributes_of_parameters_and_buffers_are_pickled():
    p, b = nn.Parameter(symgrad.ones(2)), nn.Buffer(symgrad.ones(2), persistent=False)
    p.note = 3
    assert pickled(p).note == 3 and not pickled(b).persistent and not copy.deepcopy(b).persistent and not hasattr(copy.deepcopy(p), "note")


def test_graphs_are_not_copied():
    node = (symgrad.ones(2, requires_grad=True) * 2).grad_fn
    with pytest.raises(TypeError, match="cannot pickle 'MulBackward0' object"):
        copy.deepcopy(node)
    with pytest.raises((pickle.PicklingError, AttributeError), match="MulBackward0"):
        pickled(node)


def test_parameters_modules_and_their_state(tmp_path):
    p = nn.Parameter(symgrad.ones(2), requires_grad=False)
    for way in (stored, pickled, copy.deepcopy, copy.copy):
        assert type(way(p)) is nn.Parameter and not way(p).requires_grad and way(nn.Parameter(symgrad.ones(1))).requires_grad
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    path = tmp_path / "net.pt"
    symgrad.save(net.state_dict(), path)
    state = symgrad.load(path, weights_only=True)
    assert type(state) is OrderedDict and list(state) == list(net.state_dict())
    other = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    other.load_state_dict(state)
    x = symgrad.ones(1, 2)
    assert symgrad.equal(net(x), other(x)) and symgrad.equal(copy.deepcopy(net)(x), net(x))
    with pytest.raises(TypeError, match=r"cannot store Sequential at the object.*state_dict\(\)"):
        symgrad.save(net, path)
    assert list(symgrad.load(path)) == list(state)


def test_containers_are_restored():
    x = {"a": [1, 2.5, "text", None, True, (1, (2,))], 3: {"inner": {1, 2}, "frozen": frozenset([4])}, (1, 2): OrderedDict(b=1, a=2),
         "counts": Counter("abb"), None: b"\x00\xff", "numbers": [float("inf"), -0.0, 1e-320, 10**30, 1 - 2j, complex(float("nan"), 0.0)],
         "size": symgrad.Size([2, 3]), "dtype": symgrad.float32,
         "device": symgrad.device("cuda:1"), "empty": [[], (), {}, set()], "ümläut": "\ud7ff\n\x00"}
    y = stored(x)
    assert repr(y) == repr(x) and type(y["size"]) is symgrad.Size and y["dtype"] is symgrad.float32
    assert type(y[(1, 2)]) is OrderedDict and type(y["counts"]) is Counter
    assert stored([2**64, -10**5000]) == [2**64, -10**5000]
    buffer = stored(nn.Buffer(symgrad.ones(2)))
    assert type(buffer) is nn.Buffer and buffer.persistent and buffer.tolist() == [1.0, 1.0]
    z = stored({"array": np.arange(3, dtype=np.int16), "scalar": np.float32(1.5)})
    assert z["array"].dtype == np.int16 and z["array"].tolist() == [0, 1, 2] and type(z["scalar"]) is np.float32


trees = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(alphabet=st.characters(codec="utf-8"))
                     | st.binary() | st.complex_numbers(allow_nan=False),
                     lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner)
                     | st.tuples(inner, inner))


@pytest.mark.sweep
@given(trees)
def test_any_structure(tree):
    assert repr(stored(tree)) == repr(tree)


@pytest.mark.sweep
@given(hnp.arrays(st.sampled_from([np.float64, np.int64, np.complex128, np.bool_, np.float32]), hnp.array_shapes(min_dims=0, min_side=0, max_dims=3)))
def test_any_array(array):
    x = symgrad.from_numpy(array)
    for way in (stored, pickled, copy.deepcopy):
        assert way(x)._value.tobytes() == array.tobytes() and way(x).shape == array.shape


def test_files_are_written_atomically(tmp_path):
    path = tmp_path / "x.pt"
    symgrad.save(symgrad.ones(2), str(path))
    before = path.read_bytes()
    for bad in (object(), [symgrad.ones(1), lambda: 0], {"a": {"b": object()}}):
        with pytest.raises(TypeError, match="cannot store"):
            symgrad.save(bad, path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["x.pt"]
    with path.open("rb") as file:
        assert symgrad.load(file, map_location="cpu").tolist() == [1.0, 1.0]
    with np.load(path) as plain:
        assert plain["0"].tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="Parent directory .*nowhere does not exist"):
        symgrad.save(1, tmp_path / "nowhere" / "x.pt")


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize("obj, words", [
    (object(), "cannot store object at the object"), ({"a": [1, len]}, r"builtin_function_or_method at the object\['a'\]\[1\]"),
    (Point(1, 2), "Point at the object.*store its parts"), (np.array(["a"]), "array of <U1"), (np.array([None]), "array of object"),
    (np.ma.array([1, 2], mask=[0, 1]), "MaskedArray at the object.*store its parts"), (np.arange(2, dtype=">f8"), "array of >f8"),
    (type("Mass", (symgrad.Tensor,), {})([1.0]), "Mass at the object.*only Parameter and Buffer"), (nn.ReLU(), "store its state_dict"),
])
def test_the_error_for_an_unsupported_object_names_its_place(obj, words):
    file = io.BytesIO()
    with pytest.raises(TypeError, match=words):
        symgrad.save(obj, file)
    assert not file.getvalue()


def test_recursive_and_deep_structures_are_refused():
    x = [1]
    x.append(x)
    with pytest.raises(ValueError, match=r"the object\[1\] contains itself"):
        symgrad.save(x, io.BytesIO())
    deep = []
    for _ in range(100000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        symgrad.save(deep, io.BytesIO())
    while deep:  # taken apart step by step, for freeing it at once recurses
        deep = deep[0]


class Harmful:
    """Sets a flag when it is unpickled."""

    ran = False

    def __reduce__(self):
        return setattr, (Harmful, "ran", True)


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return file.getvalue()


def npy(array, **words):
    file = io.BytesIO()
    np.save(file, array, **words)
    return file.getvalue()


def structure(obj, **more):
    return json.dumps({"format": "symgrad", "version": 1, "object": obj, **more})


def holding(array, reference, allow_pickle=False):
    """A file with one array, and one object that refers to it."""
    return zipped(structure_json=structure(reference), **{"0_npy": npy(array, allow_pickle=allow_pickle)})


DOUBLES = {"memory": 0, "dtype": "float64", "shape": [2]}


@pytest.mark.parametrize("content, words", [
    (pickle.dumps({"a": Harmful()}), "it is a pickle, as torch.save writes"), (zipped(archive__data_pkl=pickle.dumps(Harmful())), "it is a pickle"),
    (b"abc", "not written by symgrad.save"), (zipped(other_txt="1"), "not written by symgrad.save"), (b"PK\x03\x04 nothing", "damaged"),
    (holding(np.array([Harmful()]), {"array": DOUBLES}, allow_pickle=True), "damaged.*no header of an array of numbers"),
    (zipped(structure_json="{"), "damaged"),
    (zipped(structure_json=structure(1, version=99)), "version 99"),
    (holding(np.ones(2), {"tensor": {**DOUBLES, "dtype": "object"}}), "damaged"),
])
@pytest.mark.parametrize("trusting", [True, False])
def test_foreign_and_damaged_files_execute_no_code(content, words, trusting):
    with pytest.raises(RuntimeError, match=words):
        symgrad.load(io.BytesIO(content), weights_only=trusting)
    assert not Harmful.ran


def test_truncated_files_are_damaged():
    file = io.BytesIO()
    symgrad.save({"x": symgrad.ones(100)}, file)
    for size in (10, 300, len(file.getvalue()) - 5):
        with pytest.raises(RuntimeError, match="damaged"):
            symgrad.load(io.BytesIO(file.getvalue()[:size]))


def test_the_other_arguments():
    with pytest.raises(EOFError):
        symgrad.load(io.BytesIO())
    with pytest.raises(FileNotFoundError):
        symgrad.load("/nowhere/at/all")
    with pytest.raises(AttributeError, match="load: 3"):
        symgrad.load(3)
    with pytest.raises(AttributeError, match="save: 3"):
        symgrad.save(1, 3)
    file = io.BytesIO()
    symgrad.save(1, file)
    file.seek(0)
    with pytest.raises(AssertionError, match="CUDA"):
        symgrad.load(file, map_location="cuda:0")
    with pytest.raises(TypeError, match="map_location is 3"):
        symgrad.load(file, map_location=3)
    with pytest.raises(ValueError, match="mmap"):
        symgrad.load(file, mmap=True)


def test_generators_dtypes_and_devices_are_copied():
    g = symgrad.Generator().manual_seed(7)
    for way in (pickled, copy.deepcopy):
        h = way(g)
        assert symgrad.equal(symgrad.rand(3, generator=h), symgrad.rand(3, generator=symgrad.Generator().manual_seed(7)))
        assert way(symgrad.float32) is symgrad.float32 and way(symgrad.device("cuda:1")) == symgrad.device("cuda", 1)
        assert way(symgrad.strided) is symgrad.strided and way(symgrad.preserve_format) is symgrad.preserve_format
        assert type(way(symgrad.Size([1, 2]))) is symgrad.Size


@pytest.mark.parametrize("name", ["sech_square", "getitem"])
def test_pickling_a_private_function_raises(name):
    with pytest.raises((pickle.PicklingError, AttributeError), match=name):  # which of them depends on the version of Python
        pickle.dumps(lift(REGISTRY[name]))
