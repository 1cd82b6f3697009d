"""Random programs and loops: entries outside a pattern are exactly 0; colourings: every entry is recovered from one product alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad
from symgrad.carriers import blocks, dependence, sets
from symgrad.func.patterns import SparsityPattern, _colour_in_rounds, _colour_sequentially, colour_columns, colour_symmetric
from tests.support.sparse import check_hessian, check_jacobian, dense_hessian, points

N = 12
ELEMENTS = [
    lambda a: a.sin(), lambda a: a * a, lambda a: a.abs(), lambda a: a.relu(), lambda a: symgrad.clamp(a, 0.2, 0.9), lambda a: a.floor() * a,
    lambda a: a.sign(), lambda a: 2.0 - a, lambda a: (a > 0.5) * a, lambda a: a.detach() * a,
    lambda a: symgrad.where(a > 0.6, a * a, 1 / (2 + a * a))]
SHAPED = [
    lambda a: a.flip(0), lambda a: a.roll(3, 0), lambda a: a[[2, 0, 2, *range(3, N)]], lambda a: a.cumsum(0), lambda a: a.sort().values,
    lambda a: a.gather(0, symgrad.tensor([5] * 4 + [1] * (N - 4))), lambda a: symgrad.cat([a[4:], a[:4] ** 2]),
    lambda a: a.reshape(3, 4).t().reshape(N), lambda a: symgrad.stack([a[0] * a[k] for k in range(N)]), lambda a: a[:, None].expand(N, 2).sum(1),
    lambda a: symgrad.tril(a.reshape(3, 4)).reshape(N), lambda a: symgrad.cat([a[1:], symgrad.zeros(1)]),
    lambda a: a.index_put((symgrad.tensor([1, 3]),), a[:2] * a[2:4])]
GATHERED = [
    lambda a: a.sum().expand(N), lambda a: a.reshape(4, 3).mean(1).repeat(3), lambda a: symgrad.softmax(a.reshape(3, 4), 1).reshape(N),
    lambda a: symgrad.logsumexp(a.reshape(4, 3), 1).repeat_interleave(3), lambda a: a.reshape(3, 4).amax(0).repeat(3),
    lambda a: symgrad.einsum("ij,kj->ik", a.reshape(4, 3), a.reshape(4, 3)).reshape(16)[:N], lambda a: a.reshape(3, 4).norm(dim=1).repeat(4),
    lambda a: (a.reshape(3, 4) @ a.reshape(4, 3)).reshape(9).repeat(2)[:N], lambda a: symgrad.tensor(np.eye(N, k=2) + np.eye(N)) @ a,
    lambda a: symgrad.tensor(points(N, N)) @ a, lambda a: a.var() * a, lambda a: a.reshape(3, 4).cumprod(1).reshape(N)]
JOINED = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (2 + b * b), lambda a, b: symgrad.maximum(a, b),
    lambda a, b: symgrad.where(a > b, a, b * b), lambda a, b: symgrad.atan2(a, 2 + b.abs()), lambda a, b: symgrad.dot(a, b) + b,
    lambda a, b: symgrad.outer(a[:3], b[:4]).reshape(N), lambda a, b: (2 + a.abs()) ** b.sin()]
STEPS = st.lists(st.one_of(st.tuples(st.sampled_from(ELEMENTS + SHAPED * 2 + GATHERED), st.integers(0, 3)),
                           st.tuples(st.sampled_from(JOINED), st.integers(0, 3), st.integers(0, 3))), min_size=1, max_size=7)


def program(steps, inputs):
    """The last of a few vectors, each computed from some of those before."""
    found = list(inputs)
    for rule, *places in steps:
        found.append(rule(*(found[-1 - min(k, len(found) - 1)] for k in places)))
    return found[-1]


@given(STEPS, st.sampled_from([(N,), (3, 4)]), st.booleans(), st.integers(0, 5))
def test_patterns_of_random_programs_contain_every_nonzero(steps, shape, two, seed):
    xs = [points(*shape, seed=seed), *([points(N, seed=seed + 10) - 0.7] if two else [])]

    def f(*xs):
        return program(steps, [x.reshape(N) for x in xs])

    with pytest.MonkeyPatch.context() as m:
        for local in (False, True):
            check_jacobian(m, lambda *xs: f(*xs) + 0.0 * xs[0].reshape(N)[0], *xs, local=local)
            check_hessian(m, lambda *xs: (f(*xs) * symgrad.tensor(points(N))).sum() + 0.0 * xs[0].sum(), *xs, local=local)


def test_the_pattern_of_one_step_is_minimal(monkeypatch):
    for rule in [lambda a: symgrad.stack([a[k] * a[k + 1] for k in range(N - 1)]), lambda a: symgrad.cat([a[4:], a[:4] ** 2]),
                 lambda a: a[1:] * a[:-1], lambda a: symgrad.dot(a[1:], a[:-1]), lambda a: symgrad.einsum("i,i->", a, a.flip(0)),
                 lambda a: a.index_put((symgrad.tensor([1]),), a[:1] ** 2)]:
        _, there = check_hessian(monkeypatch, lambda x, rule=rule: rule(x).sum(), points(N))
        assert (there == (dense_hessian(lambda x, rule=rule: rule(x).sum(), [points(N)]) != 0)).all()


# Growing sets


def relaxed(x, steps):
    """Steps on a ring: each element interacts with its neighbours and with a distant element."""
    for _ in range(steps):
        x = x + 0.1 * (x.roll(1, 0) - 2 * x + x.roll(-1, 0)) - 0.05 * x**3
    return (x * x.roll(11, 0)).sum()


def bounded(x, steps):
    """The same without periodic boundaries."""
    for _ in range(steps):
        x = symgrad.cat([x[:1], x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]) - 0.05 * x[1:-1] ** 3, x[-1:]])
    return (x**2).sum()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("room", [{}, {"BITS": 0}, {"LIMIT": 200}, {"LIMIT": 2000, "BITS": 0}, {"MANY": 2}], ids=str)
@pytest.mark.parametrize("f", [relaxed, bounded])
def test_loops_with_small_limits_of_the_carrier(monkeypatch, f, room):
    for name, value in room.items():
        for module in (blocks, sets, dependence):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    for steps in (1, 2, 5):
        _, there = check_hessian(monkeypatch, lambda x, steps=steps: f(x, steps), points(40))
        if "LIMIT" not in room:
            assert (there == (dense_hessian(lambda x, steps=steps: f(x, steps), [points(40)]) != 0)).all()


def test_a_loop_over_elements(monkeypatch):
    def f(x):
        return sum(100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2 for i in range(29))

    plan, _ = check_hessian(monkeypatch, f, points(30))
    assert (plan.report.pattern, plan.colours, plan.report.nonzeros) == ("tridiagonal", 3, 88)


PATTERNS = st.integers(1, 14).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40)))


def pattern_of(matrix):
    return SparsityPattern(*np.asarray(matrix).nonzero(), np.shape(matrix))


@given(PATTERNS)
def test_columns_of_one_colour_share_no_row(drawn):
    n, entries = drawn
    matrix = np.zeros((n, n), bool)
    for i, j in entries:
        matrix[i, j] = True
    for colours in (colour_columns(pattern_of(matrix)).colours, _colour_in_rounds(pattern_of(matrix)), _colour_sequentially(pattern_of(matrix))):
        for row in matrix:
            here = colours[row]
            assert len(set(here.tolist())) == len(here)


@given(PATTERNS, st.booleans())
def test_every_entry_of_a_symmetric_matrix_is_read_where_it_stands_alone(drawn, diagonal):
    n, entries = drawn
    rng = np.random.default_rng(0)
    matrix = np.zeros((n, n))
    for i, j in entries:
        matrix[i, j] = matrix[j, i] = rng.normal()
    if diagonal:
        matrix += np.diag(rng.uniform(1, 2, n))
    pattern = pattern_of(matrix)
    colouring = colour_symmetric(pattern)
    assert colouring.count <= n
    seeds = colouring.seeds()
    assert (seeds.sum(0) == 1).all() or colouring.count == 0
    found = (seeds @ matrix).reshape(-1)[colouring.places(pattern)]
    assert (found == matrix[pattern.rows, pattern.columns]).all()


def test_large_patterns_are_coloured_in_rounds():
    rng = np.random.default_rng(1)
    n, count = 30_000, 60_000
    i, j = rng.integers(0, n, (2, count))
    key = np.unique(np.concatenate([i * n + j, j * n + i, np.arange(n) * (n + 1)]))
    pattern = SparsityPattern(key // n, key % n, (n, n))
    assert pattern.nonzeros > 1 << 16
    colouring = colour_symmetric(pattern)
    used = pattern.rows * colouring.count + colouring.colours[pattern.columns]
    assert colouring.hubs is not None or len(np.unique(used)) == pattern.nonzeros
    assert pattern.most - 1 <= colouring.count <= 3 * pattern.most
