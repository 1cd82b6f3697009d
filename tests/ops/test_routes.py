"""All routes to one derivative agree: at smooth points, at kinks and ties, beside singular unselected branches, and for Functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad
from symgrad.testing.strategies import programs
from tests.support.routes import HESSIANS, disagreements

tensor, where = symgrad.tensor, symgrad.where
MATRIX = tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
INFINITE = tensor([[0.0, 1.0, 2.0], [1.0, float("inf"), 0.0], [0.0, 2.0, 1.0]])
ENDS = tensor([True, False, True])


class Cube(symgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * t


PROGRAMS = {
    "smooth": (lambda z: (z.sin() * z.flip(0).exp()).sum().tanh(), [0.3, 1.0, 2.0]),
    "two arguments": (lambda z: symgrad.atan2(z, z + 1).sum() ** 2, [0.3, 1.0, 2.0]),
    "logarithm": (lambda z: symgrad.logsumexp(z * z, 0), [0.3, 1.0, 2.0]),
    "product with zeros": (lambda z: z.prod() * z.sum(), [0.0, 0.0, 2.0]),
    "powers at zero": (lambda z: (z**2.0).sum() * (z**3).sum(), [0.0, 0.0, 2.0]),
    "linear": (lambda z: (z * 3).sum(), [0.0, 1.0, 2.0]),
    "constant": (lambda z: (z * 0).sum() + 1, [0.0, 1.0, 2.0]),
    "softplus": (lambda z: symgrad.nn.functional.softplus(z * z).sum(), [0.0, 1.0, 2.0]),
    "abs": (lambda z: (z.abs() * z.exp()).sum(), [0.0, 1.0, -2.0]),
    "abs squared": (lambda z: (z.abs() ** 2).sum(), [0.0, 1.0, -2.0]),
    "sign": (lambda z: (z.sign() * z**2).sum(), [0.0, 1.0, -2.0]),
    "floor": (lambda z: (z.floor() * z**2).sum(), [0.0, 1.0, -2.0]),
    "relu": (lambda z: (symgrad.relu(z) * z.cos()).sum() ** 2, [0.0, 1.0, -2.0]),
    "maximum at ties": (lambda z: symgrad.maximum(z * z, z).square().sum(), [0.0, 1.0, -2.0]),
    "minimum at ties": (lambda z: (symgrad.minimum(z**3, z) * z).sum(), [0.0, 1.0, -2.0]),
    "clamp at its ends": (lambda z: (z.clamp(0.0, 1.0) * z.exp()).sum(), [0.0, 1.0, -2.0]),
    "max at ties": (lambda z: (z * z).max() * z.sum(), [1.0, 1.0, -1.0]),
    "sort at ties": (lambda z: (z.sort()[0] * tensor([1.0, 2.0, 3.0]) * z).sum(), [1.0, 1.0, 0.0]),
    "norm at zero": (lambda z: z.norm() ** 3, [0.0, 0.0, 0.0]),
    "hypot at zero": (lambda z: symgrad.hypot(z, 2 * z).square().sum(), [0.0, 1.0, 2.0]),
    "where, a power": (lambda z: where(z > 0, z**1.5, 0 * z).sum(), [0.0, 1.0, 2.0]),
    "where, a root": (lambda z: where(z > 0, z.sqrt(), z * z).sum(), [0.0, 1.0, 4.0]),
    "where, a product": (lambda z: where(z > 0, z * z.sqrt(), z * z).sum(), [0.0, 1.0, 4.0]),
    "where, a logarithm": (lambda z: where(z > 0, z * z.log(), 0 * z).sum(), [0.0, 1.0, 4.0]),
    "where, a quotient": (lambda z: where(z != 0, z.sin() / z, 1.0 + 0 * z).sum(), [0.0, 1.0, 4.0]),
    "where in where": (lambda z: where(z > 0, where(z > 0, z**1.5, z).exp(), z).sum() ** 2, [0.0, 1.0, 2.0]),
    "where, used again": (lambda z: (where(z > 0, z**1.5 * z.sin(), z) * z).sum(), [0.0, 1.0, 2.0]),
    "where, of sums": (lambda z: where(z.sum() > 100, z.sqrt().sum(), z.square().sum()), [0.0, 1.0, 2.0]),
    "where, of a product of matrices": (lambda z: where(tensor([True, False]), MATRIX @ (z * z), 0.0).exp().sum(), [0.0, 1.0, 2.0]),
    "where, of an infinite matrix": (lambda z: where(ENDS, INFINITE @ (z * z), z).sum(), [0.0, 1.0, 2.0]),
    "where, of an infinite row": (lambda z: where(tensor(False), INFINITE[1] @ z, z.sum()) ** 2, [0.0, 0.0, 2.0]),
    "where, of rows of powers": (lambda z: where(ENDS, symgrad.stack([z * z, z**1.5, z]) @ z**2.5, z).sum(), [0.0, 1.0, 2.0]),
    "where, of a quotient in a matrix": (lambda z: where(ENDS, symgrad.stack([z, 1 / z, z]) @ z, z).sum(), [0.0, 1.0, 2.0]),
    "where, of an inner product": (lambda z: where(ENDS, z @ z**2.5, z).sum(), [0.0, 1.0, 2.0]),
    "masked": (lambda z: (z.sqrt().masked_fill(z <= 0, 0.0) * z).sum(), [0.0, 1.0, 2.0]),
    "relu of a root": (lambda z: symgrad.relu(z.sqrt() - 1).square().sum(), [0.0, 1.0, 4.0]),
    "relu of a power": (lambda z: (symgrad.relu(z**1.5 - 1) * z.exp()).sum(), [0.0, 1.0, 4.0]),
    "maximum with a root": (lambda z: symgrad.maximum(z.sqrt(), z + 0.5).square().sum(), [0.0, 1.0, 0.01]),
    "clamp of a root": (lambda z: (z.sqrt().clamp(0.5, 1.5) * z.exp()).sum(), [0.0, 1.0, 9.0]),
    "complex on the way": (lambda z: (symgrad.complex(z, z * z).exp() * (1 - 2j)).abs().sum(), [0.3, 1.0, -1.0]),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_routes_agree(name):
    f, x = PROGRAMS[name]
    assert not disagreements(f, tensor(x))


SINGULAR = {  # with an infinite tangent that a product multiplies by 0
    "product with a matrix": lambda z: where(tensor([True, False]), MATRIX @ z.sqrt(), 0.0).sum(),
    "product that is scaled": lambda z: where(tensor([True, False]), MATRIX @ z.sqrt(), 0.0).sum() * z[0],
    "product with a vector": lambda z: where(z.sum() > 0, MATRIX[0] @ z.sqrt(), z.sum()),
    "infinite second derivative": lambda z: where(tensor([True, False]), MATRIX @ (z**1.5), 0.0).exp().sum(),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", SINGULAR)
def test_a_zero_of_a_matrix_times_an_infinite_tangent(name):
    assert not disagreements(SINGULAR[name], tensor([1.0, 4.0, 0.0]))


@pytest.mark.parametrize("hooked", [False, True])
def test_a_zero_cotangent_times_an_infinite_element_of_a_matrix(hooked):
    """The zero is that of the row which was not selected, and not the zero at the same place of the cotangent."""
    x = tensor([1.0, 2.0, 3.0], requires_grad=True)
    z = x * 1
    if hooked:
        z.register_hook(lambda g: None)
    y = where(ENDS, INFINITE @ z, z)
    found = [symgrad.autograd.grad(each, x, retain_graph=True)[0].tolist() for each in y]
    assert found == [[0.0, 1.0, 2.0], [0.0, 1.0, 0.0], [0.0, 2.0, 1.0]]


class TwoPowers(symgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x, x**1.5

    @staticmethod
    def backward(ctx, a, b):
        (x,) = ctx.saved_tensors
        return 2 * a + 1.5 * b * x**0.5


@pytest.mark.parametrize("hooked", [False, True])
def test_a_function_of_two_outputs_beside_a_selection(hooked):
    x = tensor([0.0, 4.0], requires_grad=True)
    a, b = TwoPowers.apply(x * 1)
    if hooked:
        a.register_hook(lambda g: None)
    (g,) = symgrad.autograd.grad(where(x > 0, a * b, x).sum(), x)
    assert g.tolist() == [1.0, 40.0]


def test_a_nan_moved_by_a_linear_op_is_kept():
    x = tensor([0.0, 1.0], requires_grad=True)
    (g,) = symgrad.autograd.grad(symgrad.relu(x.flip(0) + 1), x, tensor([0.0, float("nan")]))
    assert g.isnan().tolist() == [True, False]


def test_a_hook_receives_the_guarded_cotangent():
    """An argument that is broadcast has the same gradient with a hook and without."""
    x, seen = tensor(0.0, requires_grad=True), []
    for hooked in (False, True):
        y = x * 1
        z = y * tensor([1.0, float("inf")])
        if hooked:
            z.grad_fn.register_hook(lambda given, _: seen.append(given[0].item()))
        (g,) = symgrad.autograd.grad(where(tensor([True, False]), z, 1.0).sum(), x)
        assert g.item() == 1.0
    assert seen == [1.0]


def test_nan_of_a_selected_branch_is_kept():
    """Only what is not chosen is dropped: a singular derivative that counts is NaN or infinite by every route, as in a graph without a choice."""
    x = tensor([0.0, 1.0], requires_grad=True)
    (g,) = symgrad.autograd.grad((x.sqrt() * x.sqrt()).sum(), x)
    assert g.isnan().tolist() == [True, False]
    assert symgrad.func.grad(lambda z: where(z >= 0, z.sqrt(), z).sum())(x.detach()).tolist() == [float("inf"), 0.5]


@pytest.mark.sweep
@pytest.mark.parametrize("f", [lambda z: (Cube.apply(z) * z).sum(), lambda z: where(z > 1, Cube.apply(z), z).sum() ** 2])
def test_custom_functions(f):
    found = disagreements(f, tensor([0.5, 1.0, 2.0]))
    assert not {key: value for key, value in found.items() if key != "first" and "NotImplementedError" not in str(value)}


HOLOMORPHIC = {
    "square": (lambda z: z**2, lambda z: 2 * z, lambda z: 2 + 0 * z),
    "exp": (lambda z: (1j * z).exp(), lambda z: 1j * np.exp(1j * z), lambda z: -np.exp(1j * z)),
    "quotient": (lambda z: (2 + 1j) / z, lambda z: -(2 + 1j) / z**2, lambda z: (4 + 2j) / z**3),
}


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_complex_jacobians_are_those_of_holomorphic_functions(name):
    f, first, second = HOLOMORPHIC[name]
    z = np.array([1 + 2j, -0.5 + 1j])
    func = symgrad.func
    for jacobian in (func.jacrev, func.jacfwd, func.jacobian):
        assert np.allclose(jacobian(f)(tensor(z)).numpy(), np.diag(first(z)))
        for other in (func.jacrev, func.jacfwd, func.jacobian):
            assert np.allclose(jacobian(lambda w, other=other: other(f)(w).sum(0))(tensor(z)).numpy(), np.diag(second(z)))
        assert np.allclose(func.vmap(jacobian(f))(tensor(z)).numpy(), first(z))
    for k, v in enumerate(np.eye(2)):
        assert np.allclose(func.jvp(f, (tensor(z),), (tensor(v + 0j),))[1].numpy(), np.diag(first(z))[k])
        assert np.allclose(func.vjp(f, tensor(z))[1](tensor(v + 0j))[0].numpy().conj(), np.diag(first(z))[k])
    assert np.allclose(func.hessian(lambda w: f(w).sum())(tensor(z)).numpy(), np.diag(second(z)))


def test_complex_jacobians_of_other_functions():
    """A real output has the gradient that `grad` gives, a real argument the derivative of both parts, and what is not holomorphic no Jacobian."""
    func, z = symgrad.func, tensor([1 + 2j, -0.5 + 1j])
    for f in (lambda w: w.abs().square().sum(), lambda w: (w**3).real.sum(), lambda w: (w * w.conj()).real.sum()):
        for jacobian in (func.jacrev, func.jacfwd, func.jacobian):
            assert np.allclose(jacobian(f)(z).numpy(), func.grad(f)(z).numpy())
    x = tensor([1.0, 2.0])
    for jacobian in (func.jacrev, func.jacfwd, func.jacobian):
        assert np.allclose(jacobian(lambda t: t * t * (1 + 2j))(x).numpy(), np.diag([2 + 4j, 4 + 8j]))
        for f in (lambda w: w.conj(), lambda w: w * w.abs()):
            with pytest.raises(RuntimeError, match="not a holomorphic function of a complex argument"):
                jacobian(f)(z)
    with pytest.raises(RuntimeError, match="not a holomorphic function"):
        func.hessian(lambda w: (w**3).real.sum())(z)


class Product(symgrad.autograd.Function):
    """A product that NumPy computes, which knows nothing of batches: its rule for these is called wherever there is one."""

    calls = 0
    generate_vmap_rule = False

    @staticmethod
    def forward(x, y):
        return symgrad.tensor(x.detach().numpy() * y.detach().numpy())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return Product.apply(g, y), Product.apply(x, g)

    @staticmethod
    def jvp(ctx, t, u):
        x, y = ctx.saved_tensors
        return Product.apply(t, y) + Product.apply(x, u)

    @staticmethod
    def vmap(info, in_dims, x, y):
        Product.calls += 1
        x, y = (t if d is not None else t.expand(info.batch_size, *t.shape) for t, d in zip((x, y), in_dims))
        return Product.apply(x, y), 0


@pytest.mark.parametrize("name", ["jacrev", "jacfwd", "jacobian"])
def test_the_vmap_of_a_function_is_honoured_by_jacobians(name):
    f, x, func = lambda z: Product.apply(z, z.sin()), np.array([0.5, 1.0, 2.0]), symgrad.func
    before = Product.calls
    assert np.allclose(getattr(func, name)(f)(tensor(x)).numpy(), np.diag(np.sin(x) + x * np.cos(x)))
    assert Product.calls > before
    if name != "jacobian":
        before = Product.calls
        assert np.allclose(getattr(func, name)(f, chunk_size=2)(tensor(x)).numpy(), np.diag(np.sin(x) + x * np.cos(x))) and Product.calls > before
    assert np.allclose(getattr(func, name)(getattr(func, name)(lambda z: f(z).sum()))(tensor(x)).numpy(), np.diag(2 * np.cos(x) - x * np.sin(x)))
    found = func.vmap(getattr(func, name)(f))(tensor(np.stack([x, 2 * x])))
    assert np.allclose(found[1].numpy(), np.diag(np.sin(2 * x) + 2 * x * np.cos(2 * x)))


# Random programs


UNARY = {"abs": symgrad.abs, "relu": symgrad.relu, "square": symgrad.square, "sin": symgrad.sin, "tanh": symgrad.tanh, "flip": lambda a: a.flip(0),
         "power": lambda a: a.abs() ** 2.5, "clamp": lambda a: a.clamp(-1.0, 1.0), "masked root": lambda a: where(a > 0, a**1.5, 0 * a),
         "masked logarithm": lambda a: where(a > 0, a * a.log(), a), "sorted": lambda a: a.sort()[0], "cumulated": lambda a: a.cumsum(0),
         "half": lambda a: where(a > 0, a, 0.5 * a), "softplus": symgrad.nn.functional.softplus, "relu of a root": lambda a: symgrad.relu(
             (a * a + 1).sqrt() - 1), "first": lambda a: a[:1], "sum": lambda a: a.sum(), "max": lambda a: a.max()}
BINARY = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "maximum": symgrad.maximum, "minimum": symgrad.minimum,
          "masked quotient": lambda a, b: where(b != 0, a / where(b != 0, b, 1.0), a), "quotient": lambda a, b: where(b != 0, a / b, a),
          "hypot": lambda a, b: symgrad.hypot(a, b + 2), "where": lambda a, b: where(a > b, a * b, b)}


def random_program(seed):
    """A program with kinks, at a point with zeros and ties, and its text."""
    rng = np.random.default_rng(seed)
    lines = []
    for k in range(int(rng.integers(2, 6))):
        table = UNARY if rng.random() < 0.5 else BINARY
        lines.append((list(table)[rng.integers(len(table))], *rng.integers(0, k + 1, 2).tolist()))

    def f(x):
        values = [x]
        for name, i, j in lines:
            values.append(UNARY[name](values[i]) if name in UNARY else BINARY[name](values[i], values[j]))
        return (values[-1] * values[-1]).sum() + (values[-1] * x).sum()

    return f, tensor(rng.choice([0.0, 0.0, 1.0, -1.0, 0.5, 2.0], 3)), f"{lines}"


def check(seed):
    f, x, text = random_program(seed)
    found = disagreements(f, x, tolerance=1e-8)
    if found and not np.isfinite(found["first"]).all() and not np.isfinite(HESSIANS["grad of autograd.grad"](f, x)).all():
        return  # a singular derivative that counts
    assert not found, f"{text} at {x.tolist()}"


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(16))
def test_random_programs_at_kinks(seed):
    check(seed)


@pytest.mark.sweep
@settings(max_examples=max(4, settings.default.max_examples // 10), deadline=None)
@given(st.integers(100, 10**9))
def test_more_random_programs_at_kinks(seed):
    check(seed)


@settings(max_examples=max(4, settings.default.max_examples // 10), deadline=None)
@given(programs(st.integers(1, 4), inputs=[(3,)]))
def test_random_programs_of_all_ops(program):
    def f(x):
        y = program(x)
        return (y * tensor(np.arange(1.0, y.numel() + 1).reshape(y.shape))).sum()

    (x,) = program.arguments()
    found = disagreements(f, x.detach(), tolerance=1e-7)
    assert not found, str(program)


F = symgrad.nn.functional
SELECTIONS = {
    "relu": symgrad.relu, "relu6": F.relu6, "clamp": lambda x: symgrad.clamp(x, min=0.0), "hardtanh": lambda x: F.hardtanh(x, 0.0, 3.0),
    "threshold": lambda x: F.threshold(x, 0.0, 0.0),
}


@pytest.mark.parametrize("outer", [lambda x: x.sqrt(), lambda x: x.log(), lambda x: 1 / x, lambda x: x**0.3, lambda x: (x / 3).rsqrt()])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_constant_piece_reaches_up_to_the_least_number(selection, outer):
    """Beside 0 a float may be smaller than the least normal one; the selection has no derivative there, either."""
    for dtype in (symgrad.float64, symgrad.float32, symgrad.float16, symgrad.bfloat16):
        limits = symgrad.finfo(dtype)
        least = limits.tiny * limits.eps
        x = tensor([-least, -3 * least, least - limits.tiny, -limits.tiny, -limits.tiny - least, -1 / 3], dtype=dtype, requires_grad=True)
        with np.errstate(all="ignore"):
            y = outer(SELECTIONS[selection](x))
            (first,) = symgrad.autograd.grad(y.sum(), x, create_graph=True)
            second = symgrad.autograd.grad(first.sum(), x)[0] if first.requires_grad else symgrad.zeros_like(x)
        assert first.tolist() == second.tolist() == [0.0] * 6, dtype
