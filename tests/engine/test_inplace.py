"""In-place methods: the values they write, the recorded graph, the version counters, and the errors.

The methods are those of the registry's ops: a new op is tested by being declared. `CALLS` has the arguments of those that take more than tensors.
"""

import operator
import tracemalloc

import numpy as np
import pytest

import symgrad
from symgrad import no_grad, tensor
from symgrad.carriers import numeric
from symgrad.engine.tensor import Tensor
from symgrad.graph.op import REGISTRY
from symgrad.methods.inplace import NUMPY, OTHERS
from tests.support.points import array, domain

RNG = np.random.default_rng(0)
SHAPE = (3, 4)
SMALL, MASK, ROWS = RNG.uniform(0.1, 0.9, SHAPE), RNG.uniform(size=SHAPE) > 0.5, np.array([2, 0])
PLACES = np.array([[0, 1, 2, 0], [2, 2, 1, 1]])

# A float array among the arguments is a tensor that may require grad; it is marked by being a tuple of one.
CALLS = {
    "clamp": (0.4, 0.7), "clip": (None, 0.6), "clamp_min": (0.4,), "clamp_max": (0.6,), "softmax": (0,), "log_softmax": (1,), "cumsum": (0,),
    "cumprod": (1,), "tril": (), "triu": (1,), "masked_fill": (MASK, 7.0), "masked_scatter": (MASK, (SMALL,)), "index_put": ((ROWS,), (SMALL[:2],)),
    "index_add": (0, ROWS, (SMALL[:2],)), "index_copy": (0, ROWS, (SMALL[:2],)), "index_fill": (0, ROWS, 7.0), "scatter": (0, PLACES, (SMALL[:2],)),
    "scatter_add": (0, PLACES, (SMALL[:2],)), "addcmul": ((SMALL,), (SMALL[0],)), "addcdiv": ((SMALL,), (SMALL,)), "lerp": ((SMALL,), 0.25),
    "addmm": ((SMALL[:, :2],), (SMALL[:2],)), "addmv": ((SMALL,), (SMALL[0],)), "addr": ((SMALL[:, 0],), (SMALL[0],)),
    "baddbmm": ((np.stack([SMALL[:, :2]] * 2),), (np.stack([SMALL[:2]] * 2),)),
    "addbmm": ((np.stack([SMALL[:, :2]] * 2),), (np.stack([SMALL[:2]] * 2),)), "nan_to_num": (), "fmod": ((SMALL,),), "sgn": (), "sinc": (),
    "float_power": (2.5,), "conj_physical": (), "copysign": ((SMALL - 0.5,),), "heaviside": ((SMALL,),), "ldexp": ((SMALL,),),
    "xlogy": ((SMALL,),), "mvlgamma": (1,), "polygamma": (2,), "multigammaln": (1,),
    "renorm": (2, 0, 0.7), "scatter_reduce": (0, PLACES, (SMALL[:2],), "prod"),
    "index_reduce": (0, ROWS, (SMALL[:2],), "mean"), "put": (np.array([2, -1]), (SMALL[0, :2],)),
}
INPUTS = {"addmv": SMALL[:, 0], "baddbmm": np.stack([SMALL, SMALL])}  # where they are not of the common shape


def case(name, op=None):
    """What a method is called on, and with what."""
    if name in CALLS:
        return name, INPUTS.get(name, SMALL), CALLS[name]
    xs = [array(domain(op, i), np.random.default_rng(i), SHAPE) for i in range(op.arity)]
    return name, xs[0], tuple((x,) for x in xs[1:])


METHODS = {name: op for op in REGISTRY.values() if op.surface.public and op.surface.method and (op.kind == "elementwise" or op.name in OTHERS)
           for name in (op.name, *op.surface.aliases)}
CASES = [pytest.param(*case(name, op), id=name)
         for name, op in (METHODS | {"float_power": None, "conj_physical": None, "put": None, "polygamma": None}).items()]
ELEMENTWISE = {name: op for name, op in METHODS.items() if op.kind == "elementwise"}
INTEGER = {"bitwise_and": operator.iand, "bitwise_or": operator.ior, "bitwise_xor": operator.ixor, "bitwise_left_shift": operator.ilshift,
           "bitwise_right_shift": operator.irshift, "gcd": None, "lcm": None}
KERNELS = {"bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift"}  # torch's words in errors
RESHAPING = {  # the arguments, torch's node, and the shape that a matrix of two rows and three columns gets
    "t_": ((), "TBackward1", (3, 2)), "transpose_": ((0, 1), "TransposeBackward1", (3, 2)), "swapaxes_": ((0, 1), "TransposeBackward1", (3, 2)),
    "swapdims_": ((1, 0), "TransposeBackward1", (3, 2)), "unsqueeze_": ((1,), "UnsqueezeBackward1", (2, 1, 3)),
    "squeeze_": ((), "SqueezeBackward3", (2, 3)), "as_strided_": (((2, 2), (1, 2)), "AsStridedBackward1", (2, 2)),
}
RANDOM = {f"{name}_" for name in ("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal", "random", "uniform")}
ALONE = {"requires_grad_", "detach_", "copy_", "fill_", "zero_", "fill_diagonal_", "resize_", "resize_as_", "set_", "bitwise_not_", "nextafter_",
         "apply_", "map_", "map2_"}
LEAF = "^a leaf Variable that requires grad is being used in an in-place operation."
CAST = "result has the dtype torch.float64, .*torch.int64"


def built(args, requires_grad=False):
    """The arguments of a call, and its tensors that may require grad."""
    leaves = []

    def build(a):
        if isinstance(a, tuple) and len(a) == 1 and isinstance(a[0], np.ndarray) and a[0].dtype == float:
            leaves.append(tensor(a[0], requires_grad=requires_grad))
            return leaves[-1]
        return tuple(map(build, a)) if isinstance(a, tuple) else tensor(a) if isinstance(a, np.ndarray) else a

    return [build(a) for a in args], leaves


def apart(name, x, args):
    """The result out of place, in the dtype of what would be written."""
    function = getattr(x, name, None) or getattr(symgrad, name)
    return function(*args).to(x.dtype)


def same(t, value):
    """Whether a tensor has these elements; NaN equals nothing."""
    return t.shape == value.shape and bool((np.asarray(t.detach().value) == np.asarray(value)).all())


def out_of_place_gradients(name, x, args, w):
    a = tensor(x, requires_grad=True)
    given, leaves = built(args, True)
    out = apart(name, a, given)
    if not out.requires_grad:
        return out, [np.zeros(x.shape)] + [np.zeros(b.shape) for b in leaves]
    found = symgrad.autograd.grad((w * out).sum(), [a, *leaves], allow_unused=True, materialize_grads=True)
    return out.detach(), [g.value for g in found]


def test_every_in_place_method_is_tested():
    have = {name for name in dir(Tensor) if name.endswith("_") and not name.startswith("_") and hasattr(Tensor, name)}
    assert have == {f"{c.id}_" for c in CASES} | set(RESHAPING) | RANDOM | ALONE | {f"{name}_" for name in INTEGER}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", [op.name for op in REGISTRY.values() if op.numerics.supports_out])
def test_an_op_that_takes_an_out_array_needs_no_temporary(name):
    op = REGISTRY[name]
    x, *others = (tensor(array(domain(op, i), np.random.default_rng(i), (100_000,))) for i in range(op.arity))
    expected, method = getattr(symgrad, name)(x, *others), getattr(x, f"{name}_")
    tracemalloc.start()
    method(*others)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < x.numel() and x.tolist() == expected.tolist()


def test_all_ops_that_take_an_out_array_are_declared():
    found = {op.name for op in REGISTRY.values() if op.kind == "elementwise" and op.differentiable and op.surface.public and not op.parameters
             and isinstance(NUMPY.get(op.name) or getattr(numeric, op.name, None), np.ufunc)}
    assert found == {op.name for op in REGISTRY.values() if op.numerics.supports_out}


@pytest.mark.parametrize("name, x, args", CASES)
class TestWritten:
    def test_the_result_is_written_into_the_tensor(self, name, x, args):
        given, _ = built(args)
        y, expected = tensor(x), apart(name, tensor(x), given).value
        memory = y.data_ptr()
        assert getattr(y, f"{name}_")(*given) is y
        assert same(y, expected) and y.data_ptr() == memory and y._version == 1 and y.grad_fn is None
        assert all(t._version == 0 for t in given if isinstance(t, Tensor))

    def test_the_gradient_is_that_of_the_result(self, name, x, args):
        w = tensor(np.random.default_rng(1).normal(size=x.shape))
        expected, gradients = out_of_place_gradients(name, x, args, w)
        a, (given, leaves) = tensor(x, requires_grad=True), built(args, True)
        y = a.clone()
        getattr(y, f"{name}_")(*given)
        assert y.requires_grad and not y.is_leaf and y._version == 1 and same(y, expected.value)
        (w * y).sum().backward()
        assert same(a, x) and all(same(t.grad, g) for t, g in zip([a, *leaves], gradients))

    def test_the_gradient_through_a_view_reaches_its_base(self, name, x, args):
        w = tensor(np.random.default_rng(1).normal(size=tuple(n + 1 for n in x.shape)))
        inner = (slice(1, None),) * x.ndim
        _, gradients = out_of_place_gradients(name, x, args, w[inner])
        whole = np.full(w.shape, 0.5)
        whole[inner] = x
        a, (given, leaves) = tensor(whole, requires_grad=True), built(args, True)
        base = a.clone()
        view = base[inner]
        getattr(view, f"{name}_")(*given)
        assert view._base is base and base._version == view._version == 1 and base.grad_fn.name() == "torch::autograd::CopySlices"
        assert same(base[inner], view.detach().value)
        (w * base).sum().backward()
        expected = w.value.copy()
        expected[inner] = gradients[0]
        assert same(a.grad, expected) and all(same(t.grad, g) for t, g in zip(leaves, gradients[1:]))

    def test_a_leaf_that_requires_grad_is_refused_unless_nothing_is_recorded(self, name, x, args):
        given, _ = built(args)
        y = tensor(x, requires_grad=True)
        with pytest.raises(RuntimeError, match=LEAF):
            getattr(y, f"{name}_")(*given)
        assert same(y, x) and y._version == 0
        with pytest.raises(RuntimeError, match="^a view of a leaf Variable that requires grad is being used in an in-place operation."):
            getattr(y[:], f"{name}_")(*given)
        assert same(y, x) and y._version == 0
        with no_grad():
            expected = apart(name, tensor(x), given).value
            getattr(y, f"{name}_")(*given)
        assert same(y, expected) and y._version == 1 and y.is_leaf and y.requires_grad


@pytest.mark.parametrize("name", [name for name, op in ELEMENTWISE.items() if op.arity == 2])
def test_a_result_that_does_not_fit_is_not_written(name):
    x, other = (array(domain(ELEMENTWISE[name], i), np.random.default_rng(i), SHAPE) for i in range(2))
    y = tensor(x)
    for wrong in (np.stack([other, other]), other[None]):
        with pytest.raises(RuntimeError, match=rf"^{name}_: .*\[[12], 3, 4\].*\[3, 4\]"):
            getattr(y, f"{name}_")(tensor(wrong))
        assert same(y, x) and y._version == 0


@pytest.mark.parametrize("name", [name for name, op in ELEMENTWISE.items() if op.differentiable and (op.arity == 2 or not op.numerics.integers)])
def test_floats_are_not_written_into_integers(name):
    if name == "frac":
        return  # which refuses integers itself
    y = tensor([1, 2, 3])
    with pytest.raises(RuntimeError, match=CAST):
        getattr(y, f"{name}_")(*[tensor([0.5, 0.5, 0.5])] * (ELEMENTWISE[name].arity - 1))
    assert same(y, np.array([1, 2, 3])) and y._version == 0


@pytest.mark.parametrize("name, args", [("float_power", (2,)), ("float_power", (2j,))])
def test_float_power_refuses_a_narrower_dtype(name, args):
    y = symgrad.ones(2, dtype=symgrad.float32)
    wide = "complex128" if args == (2j,) else "float64"
    with pytest.raises(RuntimeError, match=f"float_power_: .*{wide}"):
        y.float_power_(*args)
    assert y._version == 0


@pytest.mark.parametrize("name", INTEGER)
def test_integers_in_place(name):
    x, other = np.array([6, 5, 12]), np.array([2, 3, 2])
    expected = getattr(symgrad, name)(tensor(x), tensor(other)).value
    y = tensor(x)
    assert getattr(y, f"{name}_")(tensor(other)) is y and same(y, expected) and y._version == 1
    with pytest.raises(NotImplementedError, match=f"^{name}: .*float64"):
        tensor([1.0]).__getattribute__(f"{name}_")(tensor([1.0]))
    if INTEGER[name] is not None:
        z = w = tensor(x)
        z = INTEGER[name](z, tensor(other))
        assert z is w and same(z, expected) and z._version == 1


def test_bitwise_not_in_place():
    y = tensor([True, False])
    assert y.bitwise_not_() is y and y.tolist() == [False, True] and y._version == 1


def test_augmented_floor_division():
    y = w = tensor([7, -7])
    y //= 2
    assert y is w and y.tolist() == [3, -4] and y._version == 1
    with pytest.raises(RuntimeError, match="the result has the dtype"):
        y //= 2.0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        y //= 0
    assert y.tolist() == [3, -4] and y._version == 1


@pytest.mark.parametrize("name, node", [(n, f"{n.capitalize()}Backward") for n in ("eq", "ne", "lt", "le", "gt", "ge")])
def test_a_comparison_in_place_has_a_zero_derivative(name, node):
    x = tensor([1.0, 2.0], requires_grad=True)
    for other, number in ((1.0, 0), (tensor([1.0, 3.0]), 1)):
        y = x * 3
        getattr(y, f"{name}_")(other)
        assert y.grad_fn.name() == f"{node}{number}" and y.dtype is symgrad.float64
        assert symgrad.autograd.grad(y.sum(), x)[0].tolist() == [0.0, 0.0]


def test_tensors_as_keyword_arguments_are_operands():
    x = tensor([1.0, 2.0, 3.0], requires_grad=True)
    y, value = x * 1, tensor(5.0, requires_grad=True)
    y.masked_fill_(mask=tensor([True, False, True]), value=value)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0] and value.grad.item() == 2.0
    with pytest.raises(RuntimeError, match=LEAF):
        x.masked_fill_(mask=tensor([True, False, True]), value=value)


def test_the_overwritten_value_is_saved_for_a_keyword_operand():
    y, weight = tensor([1.0, 2.0]), tensor([0.5, 0.5], requires_grad=True)
    y.lerp_(end=tensor([3.0, 8.0]), weight=weight)
    y.sum().backward()
    assert y.tolist() == [2.0, 5.0] and weight.grad.tolist() == [2.0, 6.0]


class TestFillDiagonal:
    def test_numbers(self):
        y = symgrad.zeros(5, 2)
        assert y.fill_diagonal_(3) is y and y._version == 1 and np.array_equal(y.value, np.eye(5, 2) * 3)
        assert symgrad.zeros(7, 3).fill_diagonal_(1.0, wrap=True).value.nonzero()[0].tolist() == [0, 1, 2, 4, 5, 6]
        assert symgrad.zeros(3, 3, 3).fill_diagonal_(1.0).value[1].tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
        assert symgrad.zeros(4, 6)[1:3, 2:].t().fill_diagonal_(1.0).tolist() == np.eye(4, 2).tolist()

    def test_the_gradient_of_the_filled_elements_is_zero(self):
        x = symgrad.zeros(2, 3, requires_grad=True)
        y = (x * 2).fill_diagonal_(5.0)
        assert y.grad_fn.name() == "torch::autograd::CopySlices"
        y.sum().backward()
        assert x.grad.tolist() == [[0.0, 2.0, 2.0], [2.0, 0.0, 2.0]]

    @pytest.mark.parametrize("shape, message", [((3,), "fill_diagonal_: .*2 dimensions"),
                                                ((3, 2, 3), "fill_diagonal_: .*one size")])
    def test_refused(self, shape, message):
        with pytest.raises(RuntimeError, match=f"^{message}"):
            symgrad.zeros(shape).fill_diagonal_(1.0)
        with pytest.raises(RuntimeError, match="^a view of a leaf Variable that requires grad is being used in an in-place operation."):
            symgrad.zeros(2, 2, requires_grad=True).fill_diagonal_(1.0)


@pytest.mark.parametrize("name", RESHAPING)
class TestReshaped:
    def numbers(self):
        return tensor(np.arange(6.0).reshape(2, 3))

    def test_the_tensor_gets_the_shape_and_strides_of_the_view(self, name):
        args, _, shape = RESHAPING[name]
        y = self.numbers()
        memory, expected = y.data_ptr(), getattr(y, name[:-1])(*args)
        assert getattr(y, name)(*args) is y and y.shape == shape and y.stride() == expected.stride()
        assert same(y, expected.value) and y.data_ptr() == memory and y._version == 1 and y._base is None

    def test_the_gradient_is_that_of_the_view(self, name):
        args, node, shape = RESHAPING[name]
        w = tensor(np.random.default_rng(0).normal(size=shape))
        x = self.numbers().requires_grad_()
        (expected,) = symgrad.autograd.grad((w * getattr(x, name[:-1])(*args)).sum(), x)
        y = x * 1
        before = y.grad_fn
        getattr(y, name)(*args)
        assert y.grad_fn.name() == node and y.grad_fn.next_functions == ((before, 0),) and y._version == 1
        (w * y).sum().backward()
        assert same(x.grad, expected.value)

    def test_a_reshaped_view_keeps_its_base(self, name):
        args, node, shape = RESHAPING[name]
        x = self.numbers().requires_grad_()
        base = x * 1
        view, sibling, before = base[:], base[0], base.grad_fn
        getattr(view, name)(*args)
        assert view._base is base and base.grad_fn is before and view.grad_fn.name() == node and base._version == view._version == 1
        assert sibling.grad_fn.name() == "AsStridedBackward0"
        view.mul_(3.0)
        assert base.grad_fn.name() == "torch::autograd::CopySlices" and view.shape == shape
        base.sum().backward()
        ones = self.numbers() * 0 + 1
        getattr(ones, name[:-1])(*args).mul_(3.0)
        assert same(x.grad, ones.value)

    def test_views_of_a_reshaped_base_keep_their_geometry(self, name):
        args, node, _ = RESHAPING[name]
        x = self.numbers().requires_grad_()
        base = x * 1
        view = base[0]
        getattr(base, name)(*args)
        assert view._base is base and view.tolist() == [0.0, 1.0, 2.0] and base.grad_fn.name() == node
        base.mul_(2.0)
        view.sum().backward()
        ones = self.numbers() * 0 + 1
        getattr(ones, name[:-1])(*args).mul_(2.0)
        reached = ones.value * [[1.0], [0.0]]
        if name == "as_strided_":
            reached[0, 2:] = 2.0
        assert same(x.grad, reached)

    def test_refused_and_allowed(self, name):
        args, _, shape = RESHAPING[name]
        x = self.numbers().requires_grad_()
        with pytest.raises(RuntimeError, match=LEAF):
            getattr(x, name)(*args)
        with pytest.raises(RuntimeError, match="^a view of a leaf Variable that requires grad is being used in an in-place operation."):
            getattr(x[:], name)(*args)
        with pytest.raises(RuntimeError, match="output 0 of Split, is one of several"):
            getattr((x * 1).split(2)[0], name)(*args)
        assert x.shape == (2, 3) and x._version == 0
        with no_grad():
            getattr(x, name)(*args)
        assert x.shape == shape and x._version == 1 and x.is_leaf and x.requires_grad
        (x * x).sum().backward()
        assert same(x.grad, 2 * x.detach().value)

    def test_a_shape_changed_under_no_grad_carries_no_gradient(self, name):
        args, _, shape = RESHAPING[name]
        x = self.numbers().requires_grad_()
        y = x * 1
        with no_grad():
            getattr(y, name)(*args)
        assert y.grad_fn.name() == "MulBackward0"
        if shape == (2, 3):
            y.sum().backward()
            return
        with pytest.raises(RuntimeError, match=r"^MulBackward0: a gradient of shape \[.*\] does not fit the shape \[2, 3\]"):
            y.sum().backward()


def test_a_shape_that_is_restored_under_no_grad_carries_a_gradient():
    x = tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    y = x * 1
    with no_grad():
        y.t_()
        y.t_()
    (y * y).sum().backward()
    assert same(x.grad, 2 * x.detach().value)


def test_the_node_of_squeeze_depends_on_its_arguments():
    x = symgrad.ones(1, 2, 1, requires_grad=True)
    for args, node, shape in (((), "SqueezeBackward3", (2,)), ((0,), "SqueezeBackward4", (2, 1)), (((0, 2),), "SqueezeBackward5", (2,))):
        y = (x * 1).squeeze_(*args)
        assert y.grad_fn.name() == node and y.shape == shape


class TestMemory:
    def test_resize_keeps_the_memory_where_it_is_enough(self):
        y = symgrad.arange(6.0)
        view, memory = y[2:], y.data_ptr()
        assert y.resize_(2, 2) is y and y.tolist() == [[0.0, 1.0], [2.0, 3.0]] and y._version == 1 and y.data_ptr() == memory
        assert y.resize_((2, 2)) is y and y._version == 1
        y.mul_(2.0)
        assert view.tolist() == [4.0, 6.0, 4.0, 5.0] and view._version == 2
        assert y.resize_as_(symgrad.ones(6)).tolist() == [0.0, 2.0, 4.0, 6.0, 4.0, 5.0]

    def test_resize_takes_more_memory(self):
        y = symgrad.arange(3.0).resize_(2, 3)
        assert y.shape == (2, 3) and y.reshape(-1)[:3].tolist() == [0.0, 1.0, 2.0] and y._version == 1
        y.add_(1.0)
        assert y._version == 2

    def test_resize_keeps_the_storage_offset(self):
        assert symgrad.arange(12.0)[4:].resize_(2).tolist() == [4.0, 5.0]
        assert symgrad.arange(6.0).reshape(2, 3).t().resize_(6).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]

    def test_resize_is_refused(self):
        x = symgrad.ones(2, requires_grad=True)
        for t in (x, x * 1):
            with pytest.raises(RuntimeError, match="^resize_: the tensor requires grad"), no_grad():
                t.resize_(3)
        with pytest.raises(RuntimeError, match=r"resize_: the sizes \[-1\]"):
            symgrad.ones(2).resize_(-1)
        with pytest.raises(TypeError, match="^resize_: size"):
            symgrad.ones(2).resize_()
        assert x.shape == (2,) and x._version == 0

    def test_set_shares_the_memory_of_another_tensor(self):
        x, y = symgrad.zeros(2), symgrad.arange(4.0)
        assert x.set_(y) is x and x.data_ptr() == y.data_ptr() and x._version == 1 and y._version == 0
        y.add_(1.0)
        assert x.tolist() == [1.0, 2.0, 3.0, 4.0] and x._version == 1
        assert x.set_(y, 1, (2, 2), (1, 1)).tolist() == [[2.0, 3.0], [3.0, 4.0]]
        assert x.set_(y.untyped_storage(), 2, (2,)).tolist() == [3.0, 4.0]
        assert x.set_().shape == (0,) and x.dtype is symgrad.float64

    def test_set_of_a_leaf_and_in_a_graph(self):
        x = symgrad.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError, match=LEAF):
            x.set_(symgrad.zeros(3))
        with no_grad():
            x.set_(symgrad.zeros(3))
        assert x.is_leaf and x.requires_grad and x.shape == (3,)
        for y in ((x * 1).set_(symgrad.zeros(2)), symgrad.zeros(1).set_(x)):
            assert y.grad_fn.name() == "torch::autograd::NotImplemented"
            with pytest.raises(RuntimeError, match="^set_: it has no derivative"):
                y.sum().backward()

    def test_set_is_refused(self):
        x = symgrad.ones(2)
        with pytest.raises(RuntimeError, match="set_: .* torch.float64, the source of torch.float32"):
            x.set_(symgrad.ones(2, dtype=symgrad.float32))
        with pytest.raises(TypeError, match="^set_: source .*list"):
            x.set_([1.0])
        with pytest.raises(RuntimeError, match="the storage has 24"):
            x.set_(symgrad.ones(3), 0, (2, 2), (2, 1))
        assert x.tolist() == [1.0, 1.0] and x._version == 0


class TestQuotients:
    def test_numbers(self):
        x = tensor([5.0, -5.0, 1.0])
        assert x.div(2, rounding_mode="trunc").tolist() == [2.0, -2.0, 0.0] and x.div(2, rounding_mode="floor").tolist() == [2.0, -3.0, 0.0]
        assert (tensor(1.0) // 0.1).item() == 9.0  # ten tenths are more than one
        assert symgrad.div(tensor([7, -7, 6]), tensor([2, 2, -4]), rounding_mode="trunc").tolist() == [3, -3, -1]
        assert symgrad.divide(tensor([7, -7]), 2, rounding_mode="floor").tolist() == [3, -4]
        infinite = (tensor([float("inf"), 5.0, -5.0, 0.0]) // tensor([2.0, float("inf"), 0.0, 0.0])).tolist()
        assert str(infinite) == "[nan, 0.0, -inf, nan]"

    def test_in_place(self):
        y = tensor([5.0, -5.0])
        assert y.div_(2, rounding_mode="floor") is y and y.tolist() == [2.0, -3.0]
        z = tensor([5, -5])
        assert z.div_(2, rounding_mode="trunc").tolist() == [2, -2]
        with pytest.raises(RuntimeError, match=CAST):
            z.div_(2)

    @pytest.mark.parametrize("rounding_mode", ["trunc", "floor"])
    def test_the_derivative_is_zero(self, rounding_mode):
        x = tensor([5.0, -5.0], requires_grad=True)
        y = x.div(2.0, rounding_mode=rounding_mode)
        assert y.grad_fn.name() == "DivBackward2"
        y.sum().backward()
        assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("parts", [lambda t: (t.view((6, 1)), t), lambda t: (t.t(), t), lambda t: (t[0:1], t), lambda t: (t, t.view(6))])
def test_copying_from_overlapping_memory_of_another_shape_names_the_overlap(parts):
    target, source = parts(symgrad.tensor([[1.5, 2.0, 0.5], [-2.0, 0.75, 1.5]]))
    with pytest.raises(RuntimeError, match="memory"):
        target.copy_(source)
    assert source.flatten().tolist() == [1.5, 2.0, 0.5, -2.0, 0.75, 1.5]
