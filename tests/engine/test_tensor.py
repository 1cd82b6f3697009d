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


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "%", "**"])
@pytest.mark.parametrize("other", ["array", "number", "list"])
def test_reflected_operators_have_gradients(name, other):
    function, given = OPERATORS[name], OPERANDS[other]([1.5, 3.0])
    x = tensor([2.5, 0.7], requires_grad=True)
    y = tensor(np.broadcast_to(given, (2,)).tolist())
    assert autograd.grad(function(given, x).sum(), x)[0].tolist() == autograd.grad(function(y, x).sum(), x)[0].tolist()


def test_matmul_is_reflected():
    a = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    found = np.ones((1, 2)) @ a
    assert isinstance(found, symgrad.Tensor) and found.tolist() == [[4.0, 6.0]] and found.requires_grad


def test_augmented_operators_write_in_place():
    """x += y changes the memory that x has, whoever else looks at it, and keeps its place in the graph."""
    x = tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z, shared = y, y.detach()
    y += 1
    y *= 3.0
    assert z is y and z.tolist() == shared.tolist() == [6.0, 9.0] and y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


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
    def test_tensor_copies(self):
        a = np.array([1.0, 2.0])
        x = tensor(a)
        a[0] = 9.0
        assert x.tolist() == [1.0, 2.0]

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

    @pytest.mark.parametrize("view", [lambda x: x[1], lambda x: x[:, 1:], lambda x: x.T, lambda x: x.reshape(6), lambda x: x.view(3, 2),
                                      lambda x: x.unsqueeze(0), lambda x: x.expand(4, 2, 3), lambda x: x.transpose(0, 1), lambda x: x.split(1)[1]])
    def test_views_share(self, view):
        x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        assert view(x).shares_memory_with(x)

    @pytest.mark.parametrize("made", [lambda x: x[[0, 1]], lambda x: x[x > 0], lambda x: x + 0, lambda x: x.clone(), lambda x: x.flip(0),
                                      lambda x: x.roll(1), lambda x: symgrad.cat([x]), lambda x: symgrad.stack([x]), lambda x: x.T.reshape(6),
                                      lambda x: x.sum(()), lambda x: x.clamp(-9.0, 9.0), lambda x: x.tril(5), lambda x: symgrad.einsum("ij->ij", x)])
    def test_ops_that_copy_do_not_share(self, made):
        x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        assert not made(x).shares_memory_with(x)

    def test_writing_an_element(self):
        x = tensor([[1.0, 2.0], [3.0, 4.0]])
        row = x[0]
        x[0, 1] = 7.0
        x[1] = tensor([8.0, 9.0])
        x[x > 8] = 0.0
        assert x.tolist() == [[1.0, 7.0], [8.0, 0.0]] and row.tolist() == [1.0, 7.0]

    def test_a_write_after_recording_does_not_reach_the_graph_by_a_copy(self):
        x = tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        kept = y.detach().clone()
        kept[0] = 100.0
        assert y.tolist() == [3.0, 6.0]


class TestLeaves:
    def test_requires_grad(self):
        x = tensor([1.0])
        assert not x.requires_grad and x.requires_grad_() is x and x.requires_grad and x.is_leaf
        x.requires_grad = False
        assert not x.requires_grad and not (2 * x).requires_grad
        assert symgrad.zeros(2, requires_grad=True).requires_grad and symgrad.eye(2, requires_grad=True).is_leaf

    def test_data_can_be_replaced(self):
        x = tensor([1.0, 2.0], requires_grad=True)
        x.data = x.data - 0.5
        (x * x).sum().backward()
        assert x.tolist() == [0.5, 1.5] and x.grad.tolist() == [1.0, 3.0]

    def test_grad_of_a_computed_tensor_warns(self):
        y = tensor(1.0, requires_grad=True) * 2
        with pytest.warns(UserWarning, match="not a leaf Tensor"):
            assert y.grad is None


class TestDtypes:
    @pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "complex64", "complex128"])
    def test_gradients_keep_the_dtype(self, name):
        dtype = getattr(symgrad, name)
        x = tensor([0.5, 2.0], dtype=dtype, requires_grad=True)
        y = (x * x * 2 + x).sum()
        assert y.dtype is dtype
        (g,) = autograd.grad(y, x, tensor(1.0, dtype=dtype))
        assert g.dtype is dtype and [complex(v).real for v in g.tolist()] == [3.0, 9.0]

    def test_python_numbers_do_not_promote_the_dtype(self):
        x = tensor([1.0, 2.0], dtype=symgrad.float32, requires_grad=True)
        y = ((2 * x + 1.5) ** 2 / 3 - 1).exp().log().clamp(0.0, 99.0)
        assert y.dtype is symgrad.float32 and autograd.grad(y.sum(), x)[0].dtype is symgrad.float32

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


class TestRandom:
    def test_manual_seed_repeats_the_numbers(self):
        def draw():
            return [symgrad.rand(2, 3).tolist(), symgrad.randn(2).tolist(), symgrad.randint(0, 9, (4,)).tolist(), symgrad.randperm(5).tolist(),
                    symgrad.normal(0.0, 2.0, (2,)).tolist(), symgrad.randn_like(symgrad.zeros(2)).tolist()]

        symgrad.manual_seed(3)
        first = draw()
        symgrad.manual_seed(3)
        assert draw() == first
        assert draw() != first and symgrad.initial_seed() == 3

    def test_distributions_of_random_numbers(self):
        symgrad.manual_seed(0)
        u, n = symgrad.rand(10_000), symgrad.randn(10_000)
        assert 0 <= u.min().item() and u.max().item() < 1 and abs(u.mean().item() - 0.5) < 0.02
        assert abs(n.mean().item()) < 0.05 and abs(n.std().item() - 1) < 0.05
        assert sorted(symgrad.randperm(6).tolist()) == list(range(6)) and symgrad.randint(3, (5,)).max().item() <= 2


def numeric_gradient(function, x, step=1e-6):
    """Central differences, for functions made of ops that are each checked to sixty digits."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        out[i] = (function(tensor(up)).sum().item() - function(tensor(down)).sum().item()) / (2 * step)
    return out


def added(x):
    out = x.copy()
    out[0, 1] += x[1, 0] + x[1, 1]
    return out


COMPOSITES = {
    "matmul vector": (lambda x: x @ x[0], lambda x: x @ x[0]),
    "matmul batch": (lambda x: x.reshape(1, 3, 4) @ x.T, lambda x: x[None] @ x.T),
    "matmul vector matrix": (lambda x: x[:, 0] @ x, lambda x: x[:, 0] @ x),
    "outer": (lambda x: symgrad.outer(x[0], x[1]), lambda x: np.outer(x[0], x[1])),
    "norm 1": (lambda x: x.norm(1, 0), lambda x: np.abs(x).sum(0)),
    "norm 3": (lambda x: x.norm(3, 1), lambda x: (np.abs(x) ** 3).sum(1) ** (1 / 3)),
    "norm inf": (lambda x: x.norm(math.inf, 1), lambda x: np.abs(x).max(1)),
    "norm -inf": (lambda x: x.norm(-math.inf, 1), lambda x: np.abs(x).min(1)),
    "max": (lambda x: x.max(0).values, lambda x: x.max(0)),
    "min": (lambda x: x.min(), lambda x: x.min()),
    "max of two": (lambda x: x.max(-x), lambda x: np.maximum(x, -x)),
    "clamp": (lambda x: x.clamp(x.mean(), tensor(2.0)), lambda x: np.clip(x, x.mean(), 2)),
    "sinc": (symgrad.sinc, np.sinc),
    "select": (lambda x: x.select(1, 2) ** 2, lambda x: x[:, 2] ** 2),
    "unbind": (lambda x: x.unbind(1)[1], lambda x: x[:, 1]),
    "index_select": (lambda x: x.index_select(1, tensor([0, 0, 3])), lambda x: x[:, [0, 0, 3]]),
    "masked_select": (lambda x: x.masked_select(x.detach() > 0), lambda x: x[x > 0]),
    "masked_fill": (lambda x: x.masked_fill(x.detach() > 0, 2.0), lambda x: np.where(x > 0, 2.0, x)),
    "index_put": (lambda x: x.index_put((tensor([0, 0]), tensor([1, 1])), x[1, :2], True), added),
    "flatten": (lambda x: x.flatten() ** 2, lambda x: x.ravel() ** 2),
    "split": (lambda x: x.split([1, 2])[1] * x[0], lambda x: x[1:] * x[0]),
    "chunk": (lambda x: x.chunk(2, 1)[1], lambda x: x[:, 2:]),
    "view": (lambda x: x.view(2, 6)[1] ** 3, lambda x: x.reshape(2, 6)[1] ** 3),
    "std": (lambda x: x.std(), lambda x: x.std(ddof=1)),
    "mse_loss": (lambda x: symgrad.mse_loss(x, x.T.reshape(3, 4)), lambda x: np.mean((x - x.T.reshape(3, 4)) ** 2)),
    "cat": (lambda x: symgrad.cat([x, x[:1] * 2]), lambda x: np.concatenate([x, x[:1] * 2])),
    "t": (lambda x: x.t() * x.t(), lambda x: (x * x).T),
    "floor division": (lambda x: x // 0.7, lambda x: x // 0.7),
    "einsum diagonal": (lambda x: symgrad.einsum("ii->i", x[:, :3]), lambda x: np.diag(x[:, :3])),
    "einsum ellipsis": (lambda x: symgrad.einsum("...i,i->...", x, x[0]), lambda x: x @ x[0]),
    "einsum trace": (lambda x: symgrad.einsum("ii", x[:, :3] * x[:, :3]), lambda x: np.trace(x[:, :3] ** 2)),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_functions(name):
    function, reference = COMPOSITES[name]
    x = np.random.default_rng(0).normal(0.3, 1.5, (3, 4))
    leaf = tensor(x, requires_grad=True)
    y = function(leaf)
    np.testing.assert_allclose(y.detach().numpy(), reference(x), rtol=1e-14, atol=1e-14)
    weights = tensor(np.cos(np.arange(y.numel())).reshape(y.shape))
    (g,) = autograd.grad(y, leaf, weights, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), numeric_gradient(lambda v: function(v) * weights, x), rtol=1e-7, atol=1e-7)
    direction = tensor(np.sin(np.arange(12.0)).reshape(3, 4))
    (second,) = autograd.grad((g * direction).sum(), leaf)

    def slope(v):
        v = v.requires_grad_()
        return autograd.grad(function(v), v, weights, create_graph=True)[0].detach() * direction

    np.testing.assert_allclose(second.numpy(), numeric_gradient(slope, x), rtol=1e-6, atol=1e-6)


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


def test_gradients_of_indexing_keep_the_dtype():
    x = tensor([1.0, 2.0, 3.0], dtype=symgrad.float32, requires_grad=True)
    (g,) = autograd.grad(x[[0, 0, 2]].sum() + x[1:].sum(), x)
    assert g.dtype is symgrad.float32 and g.tolist() == [2.0, 1.0, 2.0]
