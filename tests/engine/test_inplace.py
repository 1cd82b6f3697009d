"""In-place methods: the values they write, the recorded graph, the version counters, and the errors.

The methods are those of the registry's ops: a new op is tested by being declared. `CALLS` has the arguments of those that take more than tensors.
"""

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
# What recorded programs call: tests/support/programs/inplace.txt
RECORDED = {f"{name}_" for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm",
                                    "t", "transpose", "swapaxes", "swapdims", "unsqueeze", "squeeze", "as_strided")}
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
    assert have == {f"{c.id}_" for c in CASES} | RECORDED | RANDOM | ALONE


@pytest.mark.sweep
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


@pytest.mark.sampled(36)
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


@pytest.mark.sampled(23)
@pytest.mark.parametrize("name", [name for name, op in ELEMENTWISE.items() if op.differentiable and (op.arity == 2 or not op.numerics.integers)])
def test_floats_are_not_written_into_integers(name):
    if name == "frac":
        return  # which refuses integers itself
    y = tensor([1, 2, 3])
    with pytest.raises(RuntimeError, match=CAST):
        getattr(y, f"{name}_")(*[tensor([0.5, 0.5, 0.5])] * (ELEMENTWISE[name].arity - 1))
    assert same(y, np.array([1, 2, 3])) and y._version == 0


@pytest.mark.parametrize("parts", [lambda t: (t.view((6, 1)), t), lambda t: (t.t(), t), lambda t: (t[0:1], t), lambda t: (t, t.view(6))])
def test_copying_from_overlapping_memory_of_another_shape_names_the_overlap(parts):
    target, source = parts(symgrad.tensor([[1.5, 2.0, 0.5], [-2.0, 0.75, 1.5]]))
    with pytest.raises(RuntimeError, match="memory"):
        target.copy_(source)
    assert source.flatten().tolist() == [1.5, 2.0, 0.5, -2.0, 0.75, 1.5]
