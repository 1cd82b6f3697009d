"""Patterns of Hessians and Jacobians: they contain every nonzero, few products recover every entry, and well-known patterns need the fewest."""

import numpy as np
import pytest

import symgrad
from symgrad.autograd import Function
from symgrad.carriers import PROTOCOL
from symgrad.carriers.dependence import dependence
from symgrad.carriers.sets import Dense
from symgrad.engine.traced import core
from symgrad.func import patterns
from symgrad.func.sparsity import plan_hessian, plan_jacobian
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from symgrad.methods.extending import BUILT_IN
from tests.support.exemptions import exempt
from tests.support.points import arrays, examples
from tests.support.sparse import check_hessian, check_jacobian, dense_hessian, mask, points, recorded, rosenbrock

# Known patterns


KNOWN = [
    ("separable", lambda x: (x.sin() * x.exp()).sum(), (30,), "diagonal", 1, 30),
    ("Rosenbrock", rosenbrock, (30,), "tridiagonal", 3, 88),
    ("second differences", lambda x: ((x[2:] - 2 * x[1:-1] + x[:-2]) ** 4).sum(), (40,), "banded", 5, 40 + 2 * 39 + 2 * 38),
    ("blocks of five", lambda x: (x.reshape(8, 5).sum(1) ** 3).sum(), (40,), "block diagonal", 5, 200),
    ("rows of a matrix", lambda x: symgrad.logsumexp(x, 1).sum(), (6, 4), "block diagonal", 4, 96),
    ("an arrow", lambda x: (x[0] * x[1:] ** 2).sum() + x[0] ** 3, (50,), "arrow", 2, 50 + 2 * 49),
    ("an arrow with a band", lambda x: (x[0] * x[1:]).sum() + rosenbrock(x), (50,), "arrow", 4, 50 + 2 * 48 + 2 * 49),
    ("opposite ends", lambda x: (x * x.flip(0)).sum(), (20,), "sparse", 1, 20),
    ("far neighbours", lambda x: (x * x.roll(7, 0)).exp().sum(), (42,), "sparse", 3, 126),
    ("linear", lambda x: 3.0 * x.sum(), (20,), "diagonal", 0, 0),
    ("dense", lambda x: x.sum() ** 3, (20,), "dense", 20, 400),
]


@pytest.mark.parametrize("f, shape, name, colours, nonzeros", [case[1:] for case in KNOWN], ids=[case[0] for case in KNOWN])
def test_known_patterns_have_the_fewest_colours(monkeypatch, f, shape, name, colours, nonzeros):
    plan, _ = check_hessian(monkeypatch, f, points(*shape))
    n = int(np.prod(shape))
    assert (plan.report.pattern, plan.report.products, plan.report.nonzeros, plan.report.shape) == (name, colours, nonzeros, (n, n))


def test_zeros_of_a_constant_matrix_are_zeros(monkeypatch):
    n = 40
    matrix = np.diag(np.ones(n)) - np.diag(np.ones(n - 1), 1)
    for f in (lambda x: ((symgrad.tensor(matrix) @ x) ** 4).sum(), lambda x: ((x @ symgrad.tensor(matrix)) ** 4).sum(),
              lambda x: ((symgrad.tensor(matrix) @ x.reshape(n, 1)) ** 4).sum(), lambda x: ((x.reshape(1, n) @ symgrad.tensor(matrix)) ** 4).sum()):
        plan, _ = check_hessian(monkeypatch, f, points(n))
        assert (plan.report.pattern, plan.colours) == ("tridiagonal", 3)


@pytest.mark.parametrize("f, colours", [(lambda x: x.sin(), 1), (lambda x: x[1:] * x[:-1], 2), (lambda x: x.reshape(8, 5).cumsum(1), 5),
                                        (lambda x: symgrad.softmax(x.reshape(8, 5), 1), 5), (lambda x: x[::2] ** 2, 1),
                                        (lambda x: symgrad.cat([x, x.roll(3, 0)]), 1), (lambda x: (x * 0.5).floor(), 0)])
def test_jacobians(monkeypatch, f, colours):
    plan, _ = check_jacobian(monkeypatch, f, points(40))
    assert not plan.dense and plan.colours == colours


# Every op of the registry


CASES = [pytest.param(op, parameters, id=f"{op.name}-{i}") for op in map(REGISTRY.__getitem__, sorted(BUILT_IN))
         if op.kind != "composite" and op.differentiable and COMPLEX not in op.domain and op.name not in exempt("alone")
         for i, parameters in enumerate(examples(op))]


def test_the_carrier_has_the_names_of_the_protocol():
    assert set(vars(dependence)) == PROTOCOL


def call(op, parameters):
    return (lambda *xs: core(op)(list(xs), *parameters)) if op.arity is None else lambda *xs: core(op)(*xs, *parameters)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op, parameters", CASES)
def test_every_op_has_the_pattern_of_its_rules(monkeypatch, op, parameters):
    xs = arrays(op, np.random.default_rng(3))
    fixed = [x for x in xs if x.dtype == bool]
    free = [x for x in xs if x.dtype != bool]

    def f(*free):
        given = iter(free)
        return call(op, parameters)(*(symgrad.tensor(x) if x.dtype == bool else next(given) for x in xs))

    assert len(fixed) + len(free) == len(xs)
    y = f(*map(symgrad.tensor, free)).detach()
    weights = symgrad.tensor(points(*y.shape)) / abs(y).clamp(min=1.0)  # so that squares of large values do not overflow
    for local in (False, True):
        check_jacobian(monkeypatch, f, *free, local=local)
        check_hessian(monkeypatch, lambda *free: (weights * f(*free)).sum(), *free, local=local)
        check_hessian(monkeypatch, lambda *free: (weights * f(*free)).sin().sum(), *free, local=local)
    for i in range(len(free) if len(free) > 1 else 0):  # the others constant
        def alone(x, i=i):
            return f(*(x if k == i else symgrad.tensor(c) for k, c in enumerate(free)))

        check_jacobian(monkeypatch, alone, free[i])
        check_hessian(monkeypatch, lambda x, alone=alone: (weights * alone(x)).sin().sum(), free[i])


# Inputs and outputs of programs


def test_several_inputs_of_any_shape(monkeypatch):
    def f(a, b, c):
        return (a[:, :4] * b).sum() + (b**3).sum() + c.sin()

    plan, there = check_hessian(monkeypatch, f, points(2, 6), points(4), np.array(0.3))
    assert plan.shape == (17, 17)
    assert there.sum() == 2 * 8 + 4 + 1
    assert plan.report.pattern == "sparse" or plan.report.pattern == "arrow"


def test_constants_and_independent_inputs(monkeypatch):
    for f in (lambda x, y: symgrad.tensor(2.0) + 0.0 * x[0], lambda x, y: y.sum() + x[0]):
        plan, _ = check_hessian(monkeypatch, f, points(20), points(3))
        assert (plan.dense, plan.colours, plan.report.nonzeros) == (False, 0, 0)
        assert plan.recover(plan.seeds @ np.zeros((23, 23))).shape == (23, 23)
    plan = plan_hessian(None, recorded(lambda x: x, [points(5)])[1])
    assert plan.colours == 0 and plan.recover(np.zeros((0, 5))).toarray().tolist() == np.zeros((5, 5)).tolist()
    plan = plan_jacobian(None, recorded(lambda x: x, [points(5)])[1], shape=(2, 3))
    assert plan.recover(np.zeros((0, 2, 3))).shape == (6, 5)


def test_the_identity_and_the_zero_function(monkeypatch):
    node, nodes, _ = recorded(lambda x: x, [points(20)])
    plan = plan_jacobian(node, nodes)
    assert (plan.report.pattern, plan.colours) == ("diagonal", 1)
    assert (plan.recover(np.ones((1, 20))).toarray() == np.eye(20)).all()
    for xs in ([np.zeros((0, 3))], [np.zeros(0), points(20)]):
        node, nodes, _ = recorded(lambda *xs: sum((x**2).sum() for x in xs), xs)
        plan = plan_hessian(node, nodes)
        n = sum(map(np.size, xs))
        assert plan.recover(plan.seeds @ (2 * np.eye(n))).toarray().tolist() == (2 * np.eye(n)).tolist()


def test_a_single_input_is_dense():
    node, nodes, _ = recorded(lambda x: x**2, [np.array(2.0)])
    plan = plan_hessian(node, nodes)
    assert plan.dense and plan.seeds is None and plan.report.pattern == "dense"
    with pytest.raises(ValueError, match="dense"):
        plan.recover(np.zeros((1, 1)))


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, 2 * x

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g * ctx.saved_tensors[0] + 2 * h


def test_a_custom_function_is_dense(monkeypatch):
    plan, there = check_hessian(monkeypatch, lambda x: (Square.apply(x[:3])[0] * x[5]).sum() + Square.apply(x)[1].sum(), points(20))
    assert plan.dense and there.all()
    plan, there = check_jacobian(monkeypatch, lambda x: Square.apply(x[:3])[0] * x[5], points(20))
    assert (there == np.isin(np.arange(20), [0, 1, 2, 5])).all()


class Product(Function):
    other: symgrad.Tensor

    @staticmethod
    def forward(ctx, x):
        ctx.other = Product.other
        return x * ctx.other

    @staticmethod
    def backward(ctx, g):
        return g * ctx.other


def test_a_custom_function_with_a_captured_input(monkeypatch):
    def f(x):
        Product.other = x[5:8]
        return Product.apply(x[:3]).sum()

    truth = dense_hessian(f, [points(20)])
    assert truth[0, 5] == 1.0  # though no edge of the graph leads from the product to its other factor
    check_hessian(monkeypatch, f, points(20))


def test_declared_ops_have_the_pattern_of_their_rules(monkeypatch, declare):
    straight = declare("straight_through", lambda xp, x: xp.round(x), 1)
    bent = declare("bent", lambda xp, x, y: xp.round(x) + 0 * y, lambda xp, y, a, b: b * a, None)
    total = symgrad.methods.extending.primitive("own_total", lambda xp, x: xp.sum(x * 0), vjp=lambda xp, g, y, x: g * x * xp.sum(x),
                                        jvp=lambda xp, t, y, x: xp.sum(t * x) * xp.sum(x))
    twice = symgrad.methods.extending.linear("own_roll", lambda xp, x: x, lambda xp, g, shape: xp.roll(g, 1, None))
    for f in (lambda x: (straight(x) ** 2).sum(), lambda x: (straight(x) * x[0]).sum(), lambda x: bent(x, x.flip(0)).sum(),
              lambda x: total(x[:4]) + (x**2).sum(), lambda x: (twice(x[:5]) * x[5:10]).sum()):
        for local in (False, True):
            check_hessian(monkeypatch, f, points(20), local=local)
    plan, _ = check_hessian(monkeypatch, lambda x: (straight(x) ** 2).sum(), points(20))
    assert plan.report.pattern == "diagonal" and plan.report.nonzeros == 20


def test_graphs_that_hold_derivatives(monkeypatch):
    def force(x):
        with symgrad.enable_grad():
            (g,) = symgrad.autograd.grad(rosenbrock(x), x, create_graph=True)
        return g

    plan, _ = check_jacobian(monkeypatch, force, points(30))
    assert plan.report.pattern == "tridiagonal"
    plan, _ = check_hessian(monkeypatch, lambda x: (force(x) ** 2).sum(), points(30))
    assert (plan.report.pattern, plan.colours) == ("banded", 5)


def test_the_local_pattern(monkeypatch):
    x = points(20) - 1.0
    x[3] = 0.0

    def f(x):
        return (symgrad.where(x > 0, x**2 * x.roll(1, 0), x) + x.roll(5, 0).relu() ** 2).sum()

    whole, there = check_hessian(monkeypatch, f, x)
    node, nodes, _ = recorded(f, [x])
    here = mask(monkeypatch, plan_hessian, node, nodes, local=True)
    check_hessian(monkeypatch, f, x, local=True)
    assert there.sum() == 60 and here.sum() < 40 and not (here & ~there).any()
    off = np.zeros(20)
    off[4:7] = 2.0
    plan, _ = check_jacobian(monkeypatch, lambda x: (symgrad.tensor(off) * x).exp(), x, local=True)
    assert plan.report.nonzeros == 3


def test_memory_is_linear_in_the_nonzeros():
    n = 20_000
    node, nodes, _ = recorded(rosenbrock, [points(n)])
    plan = plan_hessian(node, nodes)
    assert (plan.colours, plan.report.nonzeros) == (3, 3 * n - 2)
    node, nodes, _ = recorded(lambda x: (x[0] * x**2).sum(), [points(n)])
    plan = plan_hessian(node, nodes)
    assert (plan.colours, plan.report.pattern, plan.report.nonzeros) == (2, "arrow", 3 * n - 2)
    node, nodes, _ = recorded(lambda x: (x.mean() - x).exp().sum(), [points(n)])
    assert plan_hessian(node, nodes).dense
    node, nodes, _ = recorded(lambda x: (x.cumsum(0) ** 2).sum() + (x * x.sum()).sum(), [points(n)])
    assert plan_hessian(node, nodes).dense
    node, nodes, _ = recorded(lambda x: symgrad.cat([x, x.sum()[None]]), [points(n)])
    assert plan_jacobian(node, nodes).dense


def test_too_many_pairs_are_dense():
    with pytest.raises(Dense):
        patterns.entries(frozenset({(0, 0, ((50, 1, 0), (50, 0, 1)))}), (), 50, 50)


@pytest.mark.sweep
def test_members_of_a_batch_do_not_interact(monkeypatch):
    from symgrad.func import vmap

    def pair(u, v):
        return (u * v).sum() + symgrad.cat([u, v[:1]]).prod() + symgrad.stack([u[0], v[1]]).norm()

    for f, most in [(lambda x: vmap(lambda u: (u.sum() ** 3).sin())(x.reshape(8, 3)).sum(), 72),
                    (lambda x: vmap(pair, in_dims=(1, 0))(x[:12].reshape(2, 6), x[12:].reshape(6, 2)).exp().sum(), 16 * 6),
                    (lambda x: vmap(vmap(lambda u, v: u * v**2, in_dims=(0, None)), in_dims=(None, 0))(x[:4], x[4:8]).sum(), 2 * 16 + 4),
                    (lambda x: vmap(lambda u: symgrad.softmax(u, 0) @ u, out_dims=0)(x.reshape(6, 4)).sum(), 96),
                    (lambda x: (vmap(lambda u: u[1:] - u[:-1], in_dims=1, out_dims=1)(x.reshape(4, 6)) ** 4).sum(), 24 + 2 * 18)]:
        _, there = check_hessian(monkeypatch, f, points(24))
        assert there.sum() <= most
        check_hessian(monkeypatch, f, points(24), local=True)


def test_a_pattern_that_depends_on_a_constant_is_not_cached():
    matrices = [np.eye(40), np.eye(40, k=3), np.zeros((40, 40)), np.ones((40, 40))]
    current = matrices[0]

    def f(x):
        return ((symgrad.tensor(current) @ x) ** 3).sum() + (x**2).sum()

    hessian = symgrad.func.hessian(f, structure="auto")
    for current in matrices * 2:  # noqa: B007  read by f
        found = hessian(points(40))
        found = found.numpy() if isinstance(found, symgrad.Tensor) else found.toarray()
        np.testing.assert_allclose(found, dense_hessian(f, [points(40)]), rtol=1e-12, atol=0)


@pytest.mark.sweep
def test_patterns_through_nodes_of_transforms(monkeypatch):
    from symgrad.func import grad, jvp
    from symgrad.func.checkpointing import checkpoint
    from symgrad.func.custom import custom_jvp

    def steps(x):
        return (x[1:] - x[:-1] ** 2) ** 2

    plan, _ = check_hessian(monkeypatch, lambda x: checkpoint(steps, x).sum() + (x**2).sum(), points(30))
    assert plan.report.pattern == "tridiagonal"
    plan, _ = check_hessian(monkeypatch, lambda x: checkpoint(lambda a: ((a * x) ** 2).roll(1, 0), x * 2).sum(), points(30))
    assert plan.report.pattern == "diagonal"
    plan, _ = check_hessian(monkeypatch, lambda x: grad(lambda z: steps(z).sum())(x).sum(), points(30))
    assert plan.report.pattern == "tridiagonal"
    plan, _ = check_hessian(monkeypatch, lambda x: sum((g**2).sum() for g in grad(lambda a, b: (a**3 * b).sum(), (0, 1))(x[:15], x[15:])), points(30))
    assert (plan.colours, plan.report.nonzeros) == (2, 60)
    plan, _ = check_hessian(monkeypatch, lambda x: jvp(steps, (x,), (symgrad.ones(30),))[1].sum(), points(30))
    assert plan.report.pattern == "tridiagonal"

    @custom_jvp
    def rounded(x):
        return x.round()

    rounded.defjvp(lambda primals, tangents: (rounded(primals[0]), tangents[0] * primals[0]))
    plan, _ = check_jacobian(monkeypatch, lambda x: rounded(x), points(6))
    assert plan.dense


def test_patterns_through_complex_intermediates(monkeypatch):
    def f(x):
        z = symgrad.complex(x[:10], x[10:])
        return (z * z.conj()).real.sum() + (z.angle() ** 2).sum() + symgrad.view_as_real(z * z)[:3].prod() + z.exp().imag.sum() + z.abs().sum()

    _, there = check_hessian(monkeypatch, f, points(20))
    pairs = np.kron(np.ones((2, 2)), np.eye(10)) > 0
    pairs |= np.kron(np.ones((2, 2)), np.pad(np.ones((3, 3)), (0, 7))) > 0
    assert (there == pairs).all()


@pytest.mark.parametrize("f", [
    lambda x: (x**1.5).norm(), lambda x: (x.square() ** 0.3).sum(), lambda x: (x**0.4).square().square().sum(), lambda x: (x**0.4).square().sum()])
def test_a_local_pattern_keeps_zeros_by_infinite_derivatives(f):
    """Before and behind what has one; the second derivatives are infinite."""
    with np.errstate(all="ignore"):
        found = symgrad.func.hessian(lambda x: f(x[:1]) + x[1] ** 2, structure="local")(symgrad.zeros(2))
    assert not np.isfinite(found.toarray() if hasattr(found, "toarray") else found.numpy()).all()
