"""Programs keep the sign of every zero: what is simplified is the same number in every bit."""

import itertools
import math

import numpy as np
import pytest

import symgrad
import symgrad.nn.functional as F
from symgrad import func
from symgrad.carriers.special.table import SPECIAL
from symgrad.engine.recording import core
from symgrad.graph.op import REGISTRY
from symgrad.program.backends import NumpySource
from symgrad.program.native import Unsupported, find_compiler, native
from symgrad.program.native.compiler import program_key
from symgrad.program.native.lowering import lower
from symgrad.program.program import interpreter
from tests.program.test_compiled_sums import BACKENDS
from tests.support.points import examples, of_numbers

tensor = symgrad.tensor
ZEROS = {"0": 0, "0.0": 0.0, "-0.0": -0.0, "a tensor": tensor(0.0), "a negative tensor": tensor(-0.0), "an array": symgrad.full((16,), -0.0),
        "product of zeros": lambda x: 0.0 * x}
FORMS = {
    "x + z": lambda x, y, z: x + z, "z + x": lambda x, y, z: z + x, "x - z": lambda x, y, z: x - z, "z - x": lambda x, y, z: z - x,
    "-(x - y)": lambda x, y, z: -(x - y) + z, "(x - y) * -1 - z": lambda x, y, z: (x - y) * -1.0 - z, "-x + y": lambda x, y, z: -x + y - z,
    "x + -y": lambda x, y, z: x + -y + z, "-x - y": lambda x, y, z: (-x - y) * (z + 1.0), "-(-x)": lambda x, y, z: (-x).neg() - z,
    "-x * y": lambda x, y, z: -x * y + z, "-x / 3 - y": lambda x, y, z: -x / 3 - y + z, "(-x) * (-y)": lambda x, y, z: (-x) * (-y) - z,
    "x * -1 * -1": lambda x, y, z: x * -1.0 * -1.0 + z, "0 - x - y": lambda x, y, z: z - x - y,
}
VALUES = (0.0, -0.0, 1.0, -1.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_and_signs_of_zeros(backend):
    x, y = (tensor(list(column)) for column in zip(*itertools.product(VALUES, VALUES)))

    def f(x, y):
        return symgrad.stack([form(x, y, zero(x) if callable(zero) else zero) for form in FORMS.values() for zero in ZEROS.values()])

    for true, found in zip(f(x, y).numpy(), symgrad.compile(f, backend=backend)(x, y).numpy()):
        assert true.tobytes() == found.tobytes()


def test_gradients_keep_the_sign_of_zeros():
    f = lambda x: (symgrad.exp(-1 / (x + 0.0)) + 1 / (2.0 - (x - x))).sum()  # noqa: E731
    with np.errstate(all="ignore"):
        for x in (tensor([0.0]), tensor([-0.0])):
            for transform in (lambda f: f, func.grad):
                np.testing.assert_array_equal(symgrad.compile(transform(f))(x).numpy(), transform(f)(x).numpy())


# Every elementwise op, and what adds or compares elements

MANY = tensor(list(itertools.product(VALUES, VALUES)) * 3).reshape(3, 4, 4, 2)
X, Y = MANY[..., 0].reshape(-1), MANY[..., 1].reshape(-1)
SECOND = all(np.signbit(f(np.full(n, 0.0), -0.0)).all() and not np.signbit(f(np.full(n, -0.0), 0.0)).any()
             for f in (np.maximum, np.minimum) for n in (1, 9))
EITHER = {"maximum", "minimum", "amax", "amin"}  # of zeros of both signs NumPy takes the second here, and on other machines perhaps another
SIGNED_BY_NUMBERS = {"pow"}  # the derivative by the base for an exponent 0, which eager code reads as a number if it is 0-d
ELEMENTWISE = [(op, parameters) for op in REGISTRY.values() if op.kind == "elementwise" and op.arity in (1, 2) and of_numbers(op) for parameters in
               examples(op)]


def with_slopes(op, parameters):
    """The value of an op, and the derivatives of its sum."""
    def f(*xs):
        out = [core(op)(*xs[:op.arity], *parameters)]
        if op.differentiable and out[0].dtype.is_floating_point:
            out += func.grad(lambda *xs: core(op)(*xs, *parameters).sum(), argnums=tuple(range(op.arity)))(*xs[:op.arity])
        return tuple(out)

    return f


ELEMENTS = {f"{op.name}{parameters}": with_slopes(op, parameters) for op, parameters in ELEMENTWISE if op.name not in SPECIAL}
SPECIAL_ELEMENTS = {f"{op.name}{parameters}": with_slopes(op, parameters) for op, parameters in ELEMENTWISE if op.name in SPECIAL}
REDUCTIONS = {f"{name} along {dim}": lambda x, name=name, dim=dim: getattr(x, name)(dim=dim)
              for name in ("sum", "mean", "prod", "amax", "amin", "cumsum", "cumprod", "norm", "logsumexp", "softmax", "var") for dim in (0, 1, 2)}
SLOPES = {f"slope of {name}": lambda x, name=name: func.grad(lambda x: getattr(x, name)(dim=0).sum())(x)
          for name in ("sum", "mean", "prod", "cumsum", "logsumexp", "softmax")}
OTHERS = {
    "sum": lambda x: x.sum(),
    "sum of 0-d": lambda x: x.sum(0).sum(0).sum(0), "mean": lambda x: x.mean(), "stack": lambda x: symgrad.stack([x]).sum(0),
    "sum of parts": lambda x: x[:, :1].sum(1), "transposed sum": lambda x: x.transpose(0, 2).sum((0, 1)), "trace": lambda x: x[0].trace(),
    "einsum": lambda x: symgrad.einsum("ijk,ijk->ijk", x, x * x), "diagonals": lambda x: symgrad.einsum("ijk->kji", x),
    "einsum of three": lambda x: symgrad.einsum("i,j,k->ijk", x[:, 0, 0], x[0, :, 0], x[0, 0]),
    "inner": lambda x: symgrad.einsum("ijk,ijl->ij", x, x),
    "slope of einsum": lambda x: func.grad(lambda x: symgrad.einsum("ijk,ijk->ijk", x, x * x).sum())(x),
    "whole": lambda x: 1 / x.long(), "whole parts": lambda x: 1 / (x * 0.4).int().double(), "rounded": lambda x: (x * 0.4).round(),
    "matmul": lambda x: x @ x.transpose(1, 2), "mv": lambda x: x[0] @ x[0, 0], "dot": lambda x: x[0, 0].dot(x[0, 0]),
    "outer": lambda x: x[0, 0].outer(x[0, 0]),
    "with the identity": lambda x: x @ symgrad.eye(x.shape[2]), "rows": lambda x: symgrad.eye(x.shape[1])[:1] @ x,
    "clamp": lambda x: x.clamp(min=0.0), "clamp to -0": lambda x: x.clamp(-0.0, 1.0), "clamp to tensors": lambda x: x.clamp(-x, x.abs()),
    "hardtanh": lambda x: F.hardtanh(x, -0.0, 1.0), "fmax": lambda x: symgrad.fmax(x, -x), "maximum": lambda x: 1 / symgrad.maximum(x, -x),
    "elu": lambda x: F.elu(x), "elu of a slope": lambda x: F.elu(x, 0.7), "selu": lambda x: F.selu(x), "celu": lambda x: F.celu(x, 1.3),
    "isub": lambda x: x.clone().sub_(x.abs()),
    "put": lambda x: written(x.clone(), (slice(None), 0), -x[:, 0]), "where": lambda x: symgrad.where(x > 0, x, -x),
    "slope of a slice of zeros": lambda x: func.grad(lambda x: (x[:, :1] * -0.0).sum() + (x * x).sum())(x),
    "expand": lambda x: func.grad(lambda z: (z.expand(3, *x.shape) * x).sum())(x),
    "broadcast": lambda x: func.grad(lambda z: (z * x).sum())(x[:1, :1]),
}


def written(x, index, value):
    x[index] = value
    return x


def recorded(f, *xs):
    compiled = symgrad.compile(f, backend="interpreter")
    for _ in range(2):
        compiled(*xs)
    return compiled.program()


def in_c(program):
    try:
        lower(program)
        program_key(program)
    except Unsupported:
        return False
    return True


def assert_same_zeros(true, found, what):
    """Hold the zeros, their signs, the signs of all other numbers and the places of NaN to those of others."""
    true, found = true.numpy(), np.asarray(found)
    assert true.shape == found.shape, what
    numbers = ~np.isnan(true)
    for test in (np.isnan, np.isinf, lambda x: x == 0, lambda x: np.signbit(x) & numbers):
        assert (test(true) == test(found)).all(), (what, true, found)


def check(functions, *points):
    """Run functions on all back ends, those in C as one program, at several arguments of the same shape."""
    with np.errstate(all="ignore"):
        programs = {name: recorded(f, *points[0]) for name, f in functions.items()}
        kept = {name: f for name, f in functions.items() if SECOND or not EITHER & {step.name for step in programs[name].steps}}
        assert len(kept) > len(functions) // 2
        compiled = [name for name in kept if bool(find_compiler()) and in_c(programs[name])]
        whole = native(recorded(lambda *xs: [kept[name](*xs) for name in compiled], *points[0])) if compiled else None
        for xs in points:
            values = [x.numpy() if x.ndim else np.float64(x.item()) for x in xs]
            true = {name: (lambda y: y if type(y) is tuple else (y,))(f(*xs)) for name, f in kept.items()}
            for name in kept:
                for back_end, run in (("numpy", NumpySource), ("interpreter", interpreter)):
                    for i, (y, z) in enumerate(zip(true[name], run(programs[name])(values), strict=True)):
                        assert_same_zeros(y, z, (back_end, name, i, xs))
            if whole is not None:
                names = [(name, i, y) for name in compiled for i, y in enumerate(true[name])]
                for (name, i, y), z in zip(names, whole(values), strict=True):
                    assert_same_zeros(y, z, ("c", name, i, xs))
    return len(compiled)


@pytest.mark.sweep
def test_elements_of_arrays():
    assert check(ELEMENTS, (X, Y)) > 100 or not find_compiler()


@pytest.mark.sweep
def test_elements_of_long_arrays_and_special_functions():
    check(ELEMENTS, (X.tile(100), Y.tile(100)))
    check(SPECIAL_ELEMENTS, (X, Y))


@pytest.mark.sweep
def test_single_numbers():
    check({name: f for name, f in ELEMENTS.items() if name[:-2] not in SIGNED_BY_NUMBERS}, *[(x, y) for x, y in zip(X[:16], Y[:16])])


SHAPES = [(1, 3, 3), *[pytest.param(shape, marks=pytest.mark.sweep) for shape in ((1, 1, 1), (3, 3, 3), (2, 1, 40), (40, 1, 1), (20, 20, 20))]]


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_and_choices(shape):
    rng = np.random.default_rng(math.prod(shape))
    points = [np.full(shape, -0.0), np.full(shape, 0.0), rng.choice([0.0, -0.0], shape), rng.choice(VALUES, shape)]
    orders = ("amax", "amin")  # of more elements NumPy compares in another order
    functions = REDUCTIONS | SLOPES | OTHERS
    check({name: f for name, f in functions.items() if max(shape) < 4 or not name.startswith(orders)}, *[(tensor(x),) for x in points])
