"""Hessians: every registered op, replayed programs, trees and chunks, structure, and the problems that are timed by their closed forms."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse

import symgrad
from symgrad import func
from symgrad.autograd import functional
from symgrad.carriers import numeric
from symgrad.engine.recording import core
from symgrad.func import hessian, hvp, vhp
from symgrad.graph.op import REGISTRY
from symgrad.methods.extending import BUILT_IN
from tests.benchmarks import fields, higher, products
from tests.benchmarks.hessians import DENSE, Problem, factorization, hand_hessian, make
from tests.benchmarks.table import agree
from tests.support.points import arrays, examples, of_numbers

CASES = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in map(REGISTRY.__getitem__, sorted(BUILT_IN))
         if op.kind != "composite" and op.differentiable and of_numbers(op) for parameters in examples(op)]
rng = np.random.default_rng(0)


def close(found, expected, scale=1e-11):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=scale * max(1.0, np.max(np.abs(expected), initial=0.0)))


def numbers(h):
    return h.toarray() if scipy.sparse.issparse(h) else h.numpy()


def scalar_of(op, parameters, i, now):
    """A scalar function of argument `i` of an op, whose other arguments and weights are those of now."""
    call = core(op)

    def f(x):
        xs = [x if k == i else a for k, a in enumerate(now["rest"])]
        y = (call(xs, *parameters) if op.arity is None else call(*xs, *parameters)) * now["scale"]
        return (y * now["weights"][:y.numel()].reshape(y.shape)).sum() + (y * y).sum() / 2

    return f


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op, parameters", CASES)
def test_hessians_of_every_op_in_three_calls(op, parameters):
    """The first call runs the pass, the second its program, the third the program on other numbers; each is compared with double backward."""
    for i, first in enumerate(arrays(op, np.random.default_rng(1))):
        if first.dtype.kind != "f":
            continue
        now = {}
        f = scalar_of(op, parameters, i, now)
        dense, sparse = func.hessian(f), func.hessian(f, structure="auto")
        for seed in range(3):
            given = arrays(op, np.random.default_rng(seed))
            now["rest"], now["weights"] = [symgrad.tensor(a) for a in given], symgrad.tensor(np.random.default_rng(seed).normal(size=200))
            x = symgrad.tensor(given[i])
            y = core(op)(now["rest"], *parameters) if op.arity is None else core(op)(*now["rest"], *parameters)
            now["scale"] = 1.0 / max(1.0, abs(y).max().item() / 1e100) if y.numel() else 1.0  # so that squares of large values do not overflow
            expected = functional.hessian(f, x).numpy()
            close(dense(x).numpy(), expected)
            close(numbers(sparse(x)).reshape(expected.shape), expected)


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def test_captured_values_may_change_between_calls():
    state = {"a": symgrad.rand(40), "n": 3.0, "m": 2}
    h = func.hessian(lambda x: (state["a"] * x**state["n"]).sum() + state["m"] * (x[1:] * x[:-1]).sum())
    x = symgrad.rand(40) + 1
    for a, n, m in ((1, 3.0, 2), (2, 3.0, 2), (3, 3.0, 2), (3, 2.0, 2), (3, 0, 2), (3, 1, 2), (3, 2, 2), (3, 2, 5), (1, 3.0, 2)):
        state.update(a=a * symgrad.ones(40), n=n, m=m)
        expected = np.diag(a * n * (n - 1) * x.numpy() ** (n - 2)) + m * (np.eye(40, k=1) + np.eye(40, k=-1))
        close(h(x).numpy(), expected)


def test_control_flow_shapes_and_more_signatures_than_the_cache_holds():
    def f(x, k):
        return (x ** (k + 2)).sum() if k % 2 else (x * x.sum()).sum() ** (k + 1)

    h = func.hessian(f)
    for _ in range(3):
        for k in range(12):
            x = symgrad.rand(3 + k % 3) + 0.5
            close(h(x, k).numpy(), functional.hessian(functools.partial(f, k=k), x).numpy())


class Pair(NamedTuple):
    w: object
    b: object


@dataclasses.dataclass
class Box:
    u: object
    rest: list


def loss(p, q, *, scale):
    return scale * (p["w"] @ q.u).tanh().sum() * (1 + q.rest[0] ** 2) + p["b"].square().sum() * q.rest[1].b.sum() + (q.rest[1].w ** 3).sum()


def test_trees_of_arguments():
    r = np.random.default_rng(3)
    p = {"w": symgrad.tensor(r.normal(size=(2, 3))), "b": r.normal(size=2)}
    q = Box(symgrad.tensor(r.normal(size=3)), [0.5, Pair(r.normal(size=(2,)), symgrad.tensor(r.normal(size=2)))])
    p["b"] = symgrad.tensor(p["b"])
    found = func.hessian(loss, argnums=(0, 1))(p, q, scale=2.0)
    flat = [p["w"], p["b"], q.u, symgrad.tensor(0.5), symgrad.tensor(q.rest[1].w), q.rest[1].b]

    def plain(w, b, u, s, cube, c):
        return loss({"w": w, "b": b}, Box(u, [s, Pair(cube, c)]), scale=2.0)

    expected = functional.hessian(plain, tuple(flat))
    rows = [found[0]["w"], found[0]["b"], found[1].u, found[1].rest[0], found[1].rest[1].w, found[1].rest[1].b]
    for row, its in zip(rows, expected):
        blocks = [row[0]["w"], row[0]["b"], row[1].u, row[1].rest[0], row[1].rest[1].w, row[1].rest[1].b]
        for block, should in zip(blocks, its):
            close(block.numpy(), should.numpy())
    assert isinstance(found[1], Box) and isinstance(found[1].rest[1], Pair) and list(found[0]) == ["w", "b"]


@pytest.mark.parametrize("chunk_size", [1, 3, 7, 40, 100])
def test_results_do_not_depend_on_the_chunk_size(chunk_size):
    x = symgrad.tensor(np.random.default_rng(0).normal(size=40))
    whole = func.hessian(rosenbrock)(x).numpy()
    np.testing.assert_array_equal(func.hessian(rosenbrock, chunk_size=chunk_size)(x).numpy(), whole)
    np.testing.assert_array_equal(func.hessian(rosenbrock, structure="auto", chunk_size=chunk_size)(x).toarray(), whole)


def test_has_aux_and_several_outputs():
    x = symgrad.tensor([1.0, 2.0])
    h, aux = func.hessian(lambda x: (x.prod() ** 2, x * 2), has_aux=True)(x)
    close(h.numpy(), [[8.0, 8.0], [8.0, 2.0]])
    assert aux.tolist() == [2.0, 4.0] and not aux.requires_grad
    h = func.hessian(lambda x: x**3)(x)
    close(h.numpy(), [[[6.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 12.0]]])
    both = func.hessian(lambda x: {"a": x.prod(), "b": x**2})(x)
    close(both["a"].numpy(), [[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("name, n, f, products", [
    ("diagonal", 50, lambda x: (x**4).sum(), 1), ("tridiagonal", 50, rosenbrock, 3),
    ("block diagonal", 60, lambda x: x.reshape(20, 3).prod(1).sum(), 3),
    ("banded", 60, lambda x: (x[2:] * x[1:-1] * x[:-2]).sum(), 5),
    ("dense", 40, lambda x: x.prod(), 40)])
def test_structure_is_found_and_reported(name, n, f, products):
    x = symgrad.tensor(np.random.default_rng(5).uniform(0.5, 1.5, n))
    h = func.hessian(f, structure="auto")
    for _ in range(3):
        found = h(x)
        assert (h.report.pattern, h.report.products, h.report.colours) == (name, products, products)
        assert scipy.sparse.issparse(found) == (name != "dense")
        close(numbers(found), func.jacfwd(func.jacrev(f))(x).numpy())


def test_products_with_vectors():
    x, v = symgrad.tensor(np.random.default_rng(0).normal(size=6)), symgrad.tensor(np.random.default_rng(1).normal(size=6))
    expected = func.hessian(rosenbrock)(x).numpy() @ v.numpy()
    close(func.hvp(rosenbrock, x, v).numpy(), expected)
    close(func.vhp(rosenbrock, x, v).numpy(), expected)
    (found,) = func.hvp(rosenbrock, (x,), (v,))
    close(found.numpy(), expected)
    a, b = func.hvp(lambda a, b: (a * b.sum() ** 2).sum(), (x, v), (v, x))
    h = functional.hessian(lambda a, b: (a * b.sum() ** 2).sum(), (x, v))
    close(a.numpy(), h[0][0].numpy() @ v.numpy() + h[0][1].numpy() @ x.numpy())
    close(b.numpy(), h[1][0].numpy() @ v.numpy() + h[1][1].numpy() @ x.numpy())
    close(func.vmap(lambda v: func.hvp(rosenbrock, x, v))(symgrad.eye(6)).numpy(), func.hessian(rosenbrock)(x).numpy())


def test_hooks_run_on_every_call():
    def f(x):
        y = x**2
        y.register_hook(lambda g: g * 10)
        return (y * y).sum()

    x = symgrad.tensor([1.0, 2.0])
    leaf = x.clone().requires_grad_()
    (g,) = symgrad.autograd.grad(f(leaf), leaf, create_graph=True)
    expected = [symgrad.autograd.grad(g[i], leaf, retain_graph=True)[0].tolist() for i in range(2)]
    for structure in (None, "auto"):
        h = func.hessian(f, structure=structure)
        for _ in range(3):
            assert h(x).tolist() == expected


def test_writes_before_the_first_read_are_differentiated():
    def f(x):
        out = symgrad.zeros(4)
        out[1:3] = x * x[0]
        out[0] = x.prod()
        y = out * 2
        y.mul_(x[1])
        y += 1
        return (y**2).sum() + (out[1:] ** 3).sum()

    for seed in range(4):
        x = symgrad.tensor(np.random.default_rng(seed).normal(size=2))
        expected = functional.hessian(f, x).numpy()
        h, sparse = func.hessian(f), func.hessian(f, structure="auto")
        for _ in range(3):
            close(h(x).numpy(), expected)
            close(numbers(sparse(x)), expected)
        close(func.jacfwd(func.jacfwd(f))(x).numpy(), expected)


def test_each_dtype_has_its_own_program():
    x = np.random.default_rng(7).uniform(0.5, 1.5, 40)
    h = func.hessian(lambda x: ((x[1:] - x[:-1] ** 2) ** 2 * 0.1).sum(), structure="auto")
    truth = h(symgrad.tensor(x)).toarray()
    h = func.hessian(h.__wrapped__, structure="auto")
    for _ in range(3):
        h(symgrad.tensor(x.astype(np.float32)))
    np.testing.assert_array_equal(h(symgrad.tensor(x)).toarray(), truth)


@pytest.mark.parametrize("f", [
    rosenbrock, lambda x: (-(-(x * 3.0) * 2.0).sin() * 0.25 / 1.0).sum(), lambda x: (x[::2] * x[1::2] * -4.0 - (-x[::2]) ** 3).exp().sum() * 3.0,
    lambda x: (x**1 * x**3).sum(), lambda x: ((x * 0.1).exp() * 0.7).sum(),
    lambda x: (x.reshape(4, 10)[1:, 2:5].exp() * 7).sum() - (x.reshape(4, 10)[2] ** 4).sum(),
    lambda x: x[3] * x[5] ** 2 * x[7] ** 3, lambda x: (x[None, 3:9, ...] ** 4).mean() + (x[[1, 1, 2]] ** 3).sum()])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_replay_is_bitwise_equal_to_the_backward_pass(f, dtype):
    random = np.random.default_rng(9)
    for structure in (None, "auto"):
        h = func.hessian(f, structure=structure)
        for _ in range(4):
            x = symgrad.tensor(random.uniform(0.5, 1.5, 40).astype(dtype))
            found, expected = numbers(h(x)), numbers(func.hessian(f, structure=structure)(x))
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_the_report_is_that_of_the_last_call():
    h = func.hessian(lambda x: (x[1:] * x[:-1]).square().sum())
    assert h.report is None
    h(symgrad.ones(64))
    assert h.report.pattern == "tridiagonal" and h.report.shape == (64, 64)
    h(symgrad.ones(4))
    assert h.report.pattern == "dense" and h.report.shape == (4, 4) and h.report.products == 4
    h(symgrad.ones(65))
    assert h.report.shape == (65, 65)
    h(symgrad.ones(5, dtype=symgrad.float32))
    assert h.report.shape == (5, 5)
    several = func.hessian(lambda x: x.square())
    several(symgrad.ones(3))
    assert several.report is None


@pytest.mark.parametrize("structure", [None, "auto", "local", "factors"])
@pytest.mark.parametrize("n", [4, 64])
def test_a_hessian_has_the_dtype_of_its_function(structure, n):
    h = func.hessian(lambda x: (x[1:] * x[:-1]).square().sum(), structure=structure)
    two = func.hessian(lambda x, y: (x[1:] * x[:-1] * y).sum() + (y**3).sum(), (0, 1))
    for _ in range(3):
        found = h(symgrad.ones(n, dtype=symgrad.float32))
        assert str(found.dtype).removeprefix("torch.") == "float32"
        x, y = symgrad.ones(n, dtype=symgrad.float32), symgrad.ones(n - 1, dtype=symgrad.float32)
        assert {t.dtype for row in two(x, y) for t in row} == {symgrad.float32}
    for kind in (None, "auto", "local"):
        assert str(func.jacobian(lambda x: x[1:] * x[:-1], structure=kind)(symgrad.ones(n, dtype=symgrad.float32)).dtype).endswith("float32")


def test_hvp_does_not_compute_the_gradient_in_the_weights(monkeypatch):
    images, weights, v = (symgrad.tensor(np.random.default_rng(k).normal(size=size)) for k, size in enumerate([(5, 4), (4, 3), (4, 3)]))
    products = []
    monkeypatch.setattr(numeric, "mm", lambda a, b: products.append(1) or a @ b)
    func.hvp(lambda w: (images @ w).tanh().sum(), weights, v)
    assert len(products) == 3  # forward, its tangent, and the tangent of the gradient


def test_hvp_whose_value_is_batched_and_whose_tangent_is_not():
    rng = np.random.default_rng(0)
    a, w, v, shifts = (symgrad.tensor(rng.normal(size=size)) for size in [(3, 3), (3, 3), (3, 3), (4, 3, 3)])

    def product(shift):
        return func.hvp(lambda w: ((a @ w).sum(0) ** 2).sum() + ((a @ w + shift) ** 2).sum(), w, v)[1]

    one_by_one = np.stack([product(shift).numpy() for shift in shifts])
    np.testing.assert_allclose(symgrad.vmap(product)(shifts), one_by_one, rtol=1e-12)


def test_an_index_is_part_of_the_signature():
    places = [symgrad.tensor([0, 1]), symgrad.tensor([2, 0]), symgrad.tensor([1, 1])]
    for structure in (None, "auto"):
        h = func.hessian(lambda x, i: (x[i] ** 3).sum(), structure=structure)
        for i in places * 3:
            x = symgrad.tensor([1.0, 2.0, 3.0])
            count = np.bincount(i.numpy(), minlength=3)
            close(numbers(h(x, i)), np.diag(6 * x.numpy() * count))


def test_factors():
    features, weights = np.random.default_rng(1).normal(size=(30, 4)), np.random.default_rng(2).normal(size=4)
    h = func.hessian(lambda w: (symgrad.tensor(features) @ w).exp().sum(), structure="factors")
    found = h(symgrad.tensor(weights))
    assert h.report.form == "X' D X"
    np.testing.assert_allclose(found.todense(), features.T @ (np.exp(features @ weights)[:, None] * features), rtol=1e-12)


RNG = np.random.default_rng(2)
SMALL = [make(name) for name in ("rosenbrock-3", "rosenbrock-10", "logistic-40x7", "quadratic-12", "helmholtz-6", "mlp")]
SMALL.append(Problem("factorization", factorization, RNG.normal(size=(6, 3)), (RNG.normal(size=(4, 3)), RNG.normal(size=(6, 4)))))
small = pytest.mark.parametrize("problem", SMALL, ids=lambda problem: problem.name)


@pytest.mark.parametrize("name", DENSE)
def test_a_hessian_is_the_closed_form(name):
    problem = make(name)
    f, x = problem.of(symgrad, symgrad.tensor)
    found = hessian(f)(x)
    assert found.shape == (*x.shape, *x.shape)
    agree(found, hand_hessian(problem)(), 1e-11)


@small
def test_a_structure_changes_no_number(problem):
    f, x = problem.of(symgrad, symgrad.tensor)
    n = x.numel()
    for structure in ("auto", "local"):
        found = hessian(f, structure=structure)(x)
        agree(found if isinstance(found, symgrad.Tensor) else found.todense(), hand_hessian(problem)().reshape(n, n), 1e-11)


@small
def test_a_problem_is_the_same_function_in_numpy(problem):
    f, x = problem.of(symgrad, symgrad.tensor)
    agree(f(x), problem.function(np, problem.point, *problem.constants), 1e-13)


def test_the_physics_informed_loss_has_one_value_by_both_routes():
    by_grad = fields.poisson_by_grad(symgrad, symgrad.tensor)()
    agree(by_grad, fields.poisson_by_jvp(symgrad, symgrad.func.jvp, symgrad.tensor)(), 1e-11)


def test_the_laplacian_is_the_trace_of_the_hessian():
    w = [symgrad.tensor(a) for a in fields.weights()]
    one = hessian(lambda z: fields.network(symgrad, z, w)[0])
    agree(higher.our_laplacian()(), np.array([np.trace(np.asarray(one(symgrad.tensor(z)))) for z in fields.points()]), 1e-11)


@pytest.mark.parametrize("shape", higher.BARS)
def test_the_last_derivative_of_a_jet_is_the_nested_gradient(shape):
    agree(higher.our_jet(shape)(), higher.nested(symgrad, higher.point(symgrad, shape), higher.ORDER), 1e-11)


def test_a_product_with_the_weights_is_the_double_backward_and_is_symmetric():
    c = products.Classifier(symgrad, symgrad.tensor)
    found = hvp(c.loss, c.plain, c.direction)
    agree(found, c.double_backward(), 1e-11)
    agree(vhp(c.loss, c.plain, c.direction), found, 1e-11)
    other = tuple(symgrad.tensor(np.random.default_rng(1).normal(size=v.shape)) for v in c.direction)
    one, two = (sum(float((a * b).sum()) for a, b in zip(u, hvp(c.loss, c.plain, v))) for u, v in ((other, c.direction), (c.direction, other)))
    np.testing.assert_allclose(one, two, rtol=1e-9)
