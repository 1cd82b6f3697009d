"""Random programs of all ops: their derivatives by every route and to fifty digits; and the strategy that draws them."""

import functools
import pickle
import random

import numpy as np
import pytest
import sympy
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import symgrad
from symgrad import func
from symgrad.algebra.ladder import AGREED, DIGITS
from symgrad.graph.op import REGISTRY
from symgrad.reference.exact import OracleComparison, agreement
from symgrad.reference.run import Run
from symgrad.sampling.points import random_direction
from symgrad.testing.strategies import DrawnProgram, programs
from symgrad.testing.strategies.programs import DrawnOperand, DrawnStep
from symgrad.testing.strategies.programs_fitting import FITS, GUARDS, default_ops, fits, guard_for

MOVING = ("repeat", "unflatten", "rot90", "diagonal", "diag_embed", "unfold", "roll", "squeeze", "unsqueeze", "broadcast_to", "clone")
FLOATS = 1e-9  # of the largest derivative: every digit is compared with many digits, and this only that floats do the same


def weights(y):
    return symgrad.tensor(np.arange(1.0, y.numel() + 1).reshape(y.shape))


def recorded(program):
    """One run of a program at its point, weighted and summed."""
    leaves = program.arguments()
    y = program(*leaves)
    return Run(leaves, (y * weights(y)).sum(), None)


def flat(tensors):
    return np.concatenate([np.ravel(t.detach().numpy()) for t in tensors])


def check(program):
    """Gradient by backward, by pushforward and to fifty digits; Hessian to fifty digits, and symmetric; a batch and one after the other."""
    run = recorded(program)
    n = sum(x.numel() for x in run.leaves)
    exact = OracleComparison(run, 2, random_direction(n, np.random.default_rng(0)))
    digits, culprit = agreement(exact)
    assert culprit is None and digits >= AGREED and not exact.kink, f"{program}\n{culprit}"
    true = {(e.order, e.index): float(e.reference) for e in exact.entries() if not e.directional}
    along = [float(e.reference) for e in exact.entries() if e.directional]

    gradient = np.array([true[1, (i,)] for i in range(n)])
    scale = np.max(np.abs(gradient), initial=np.max(np.abs(along), initial=abs(true[0, ()])))
    close = functools.partial(np.testing.assert_allclose, rtol=0, atol=FLOATS * scale, err_msg=str(program))
    run.result.backward(retain_graph=True)
    close(flat([symgrad.zeros_like(x) if x.grad is None else x.grad for x in run.leaves]), gradient)
    u = random_direction(n, np.random.default_rng(1))
    tangents = [symgrad.tensor(part.reshape(x.shape)) for part, x in zip(np.split(u, np.cumsum([x.numel() for x in run.leaves])[:-1]), run.leaves)]
    y, pushed = func.jvp(program, tuple(x.detach() for x in run.leaves), tuple(tangents))
    close((pushed * weights(y)).sum().item(), gradient @ u, atol=FLOATS * scale * n * 3)

    hessian = np.array([[true[2, (i, j)] for j in range(n)] for i in range(n)]) if exact.full == 2 else None
    if hessian is not None:
        size = np.max(np.abs(hessian), initial=scale)
        np.testing.assert_allclose(run.derivatives(2), hessian, rtol=0, atol=FLOATS * size, err_msg=str(program))
        rules = dict(zip([(e.order, e.index) for e in exact.entries()], exact.rules(DIGITS)))
        assert all(abs(rules[2, (i, j)] - rules[2, (j, i)]) <= size * 1e-40 for i in range(n) for j in range(i)), program
    else:
        close(run.along(exact.direction, 2), along, atol=FLOATS * np.max(np.abs(along), initial=scale))
    check_batch(program)


def check_batch(program):
    """vmap of a program and of its gradient, beside a loop, at the point and at others."""
    batches = [np.stack([x, 1.25 * x, x - 0.375]) for x in program.point.values()]

    def total(*xs):
        y = program(*xs)
        return (y * weights(y)).sum()

    for f in (program, func.grad(total, tuple(range(len(batches))))):
        together = f_all(func.vmap(f)(*map(symgrad.tensor, batches)))
        apart = [f_all(f(*(symgrad.tensor(b[k]) for b in batches))) for k in range(3)]
        for found, rows in zip(together, zip(*apart)):
            expected = np.stack(rows)
            size = np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12 * size, err_msg=str(program))


def f_all(found):
    return [t.detach().numpy() for t in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("examples", [5, pytest.param(settings.default.max_examples, marks=pytest.mark.sweep)])
def test_random_programs(examples):
    settings(max_examples=examples)(given(programs(st.integers(1, 5)))(check))()


@pytest.mark.sweep
@given(programs(6, ops=["mul", "sin", "add", "div", "exp", "tanh", "sub", "log", "hypot"], inputs=[(2,), ()]))
def test_deep_programs_of_few_ops(program):
    check(program)


@pytest.mark.sweep
@settings(max_examples=max(8, settings.default.max_examples // 3))
@given(programs(3, ops=["mm", "mv", "dot", "t", "addmm", "softmax", "trace", "tril", "sum", "prod", "getitem", "cat", "logsumexp", "var", "tanh"],
                inputs=[(2, 3), (3, 2), (2,)]))
def test_programs_of_matrices(program):
    check(program)


@pytest.mark.parametrize("factors", [(1 + 1e-12, 1.0), (1.0, 1 + 1e-12)], ids=["gradient", "second derivative"])
def test_a_rule_that_is_a_little_wrong_is_noticed(declare, factors):
    """By one part in 1e12, in the first or in the second derivative alone."""
    first, second = factors
    declare("slope_of", lambda xp, x: xp.cos(x), lambda xp, y, x: -xp.sin(x) * second)
    declare("wave", lambda xp, x: xp.sin(x), lambda xp, y, x: (xp.slope_of(x) if hasattr(xp, "slope_of") else xp.cos(x)) * first)
    with pytest.raises(AssertionError, match="wave"):
        settings(phases=[Phase.generate], database=None)(given(programs(3, ops=["mul", "wave", "add"]))(check))()


# The strategy


def simplest(strategy, condition=lambda program: True):
    how = settings(max_examples=1000, database=None, phases=[Phase.generate, Phase.shrink])
    return find(strategy, condition, settings=how, random=random.Random(0))


def ops_in(program):
    return {step.op for step in program.steps}


@pytest.mark.sweep
@given(programs())
def test_programs_stay_in_their_domains_and_say_what_they_do(program):
    leaves = program.arguments()
    y = program(*leaves)
    assert np.isfinite(y.detach().numpy()).all() and y.requires_grad and np.abs(y.detach().numpy()).max(initial=0) <= 30
    assert program.shapes == tuple(tuple(x.shape) for x in leaves) and 1 <= len(program.steps) <= 4
    values = [x.detach().numpy() for x in leaves]
    every = np.concatenate([x.ravel() for x in values])
    assert len(set(every)) == every.size and (every * 8 == np.round(every * 8)).all() and every.all()
    lines = repr(program).splitlines()
    assert lines[0] == f"def program({', '.join(program.point)}):" and len(lines) == len(program.steps) + 2 + len(program.point)
    used = {o.value for step in program.steps for o in step.operands}
    assert used >= set(range(len(leaves), len(leaves) + len(program.steps) - 1)), "every line but the last is used"
    again = pickle.loads(pickle.dumps(program))
    assert repr(again) == repr(program) and np.array_equal(again(*leaves).detach().numpy(), y.detach().numpy())


@pytest.mark.sweep
@given(programs(3, inputs=[(), ()], ops=["sin", "mul", "add", "log", "div"]))
def test_programs_are_formulas(program):
    x, y = (float(v) for v in program.point.values())
    found = sympy.sympify(program.expr).subs({s: v for s in program.expr.free_symbols for v in [{"x": x, "y": y}[s.name]]})
    assert float(found) == pytest.approx(program(x, y).item(), rel=1e-12)


@pytest.mark.sweep
def test_programs_shrink_to_one_simple_op():
    found = simplest(programs())
    assert repr(found) == "def program(x):\n    a = sin(x)\n    return a\n# x = [0.125, -0.125]"
    found = simplest(programs(), lambda program: "tanh" in ops_in(program))
    assert len(found.steps) == 1 and len(found.point) == 1
    found = simplest(programs(ops=["mul", "sin"], inputs=[(), ()]), lambda program: {"mul", "sin"} <= ops_in(program))
    assert len(found.steps) == 2


@pytest.mark.sweep
def test_every_op_is_reached_and_so_are_deep_programs():
    seen, depths = set(), set()

    @settings(max_examples=150, phases=[Phase.generate], database=None, derandomize=True)
    @given(programs(st.integers(3, 6), inputs=st.sampled_from([[(2, 2), (2,)], [(2, 3), (3,)], [(3, 2), (2, 3), (2, 2)]])))
    def collect(program):
        seen.update(ops_in(program))
        depths.add(len(program.steps))

    collect()
    assert len(seen) > 0.5 * len(default_ops()) and max(depths) >= 5


def test_a_program_by_hand():
    program = DrawnProgram({"x": np.array([1.0, 2.0]), "y": np.array(3.0)},
                           (DrawnStep("mul", (DrawnOperand(0), DrawnOperand(1))), DrawnStep("sum", (DrawnOperand(2, "small"),), ((0,), False)),
                            DrawnStep("stack", (DrawnOperand(3), DrawnOperand(3)), (0,))))
    assert list(program.lines()) == ["a = mul(x, y)", "b = sum(a/(1 + a*a), (0,), False)", "c = stack([b, b], 0)"]
    assert program(np.array([1.0, 2.0]), 3.0).tolist() == [3 / 10 + 6 / 37] * 2
    with pytest.raises(TypeError, match=r"program takes 2 inputs \(x, y\), not 1"):
        program(1.0)
    check(program)
    steps = DrawnStep("sin", (DrawnOperand(1),)), DrawnStep("exp", (DrawnOperand(2),))
    unread = DrawnProgram({"x": np.array(1.0), "y": np.array(2.0)}, steps).needed()
    assert list(unread.point) == ["x"] and list(unread.lines()) == ["a = sin(x)", "b = exp(a)"] and unread(2.0).item() == np.exp(np.sin(2.0))


def test_ops_and_inputs_that_cannot_be():
    for ops, kind, message in ((["nothing"], ValueError, "no op is called 'nothing'"), ([len], TypeError, "is no op"),
                               (["matmul"], TypeError, "matmul is made of other ops"), (["argmax"], TypeError, "argmax has no derivative")):
        with pytest.raises(kind, match=message):
            programs(ops=ops)
    with pytest.raises(ValueError, match=r"none of the ops fits inputs of the shapes .2,."):
        simplest(programs(ops=["mm"], inputs=[(2,)]))
    assert simplest(programs(ops=[symgrad.tanh, REGISTRY["mul"], "sum"], inputs=[(2,)])).steps


@pytest.mark.sweep
def test_guards_do_what_they_say_and_domains_have_one():
    x = np.concatenate([np.linspace(-40, 40, 8001), [1e-300, -1e-300, 1e150, -1e150]])
    for guard in GUARDS.values():
        found = guard.function(x)
        assert (found >= guard.low).all() and (found <= guard.high).all() and np.isfinite(found).all()
    for op in default_ops():
        if op.kind == "elementwise":
            for domain in op.domain:
                guard = GUARDS[guard_for(domain)]
                assert all(v in domain for v in guard.function(x) if v not in domain.excluded or guard.low <= v <= guard.high), op.name


def test_every_table_entry_is_an_op_and_fits_something():
    shapes = [(), (2,), (3,), (2, 2), (2, 3), (3, 2), (1, 2)]
    for name in FITS:
        op = REGISTRY[name]
        count = op.arity or 2
        grid = np.array(np.meshgrid(*[range(len(shapes))] * count)).reshape(count, -1).T
        assert any(fits(op, [shapes[i] for i in row]) for row in grid), name


@pytest.mark.sweep
def test_every_op_that_moves_elements_about_works_where_it_is_said_to_fit():
    """Squared, with each of the arguments that may be drawn for it: value, derivatives to fifty digits, and batches."""
    for name in MOVING:
        assert REGISTRY[name] in default_ops()
        for shape in [s for s in ((3,), (2, 3), (1, 2)) if fits(REGISTRY[name], [s])]:
            for further in FITS[name].parameters(shape):
                point = {"x": np.arange(1.0, 1 + np.prod(shape)).reshape(shape) / 8}
                check(DrawnProgram(point, (DrawnStep(name, (DrawnOperand(0),), further), DrawnStep("square", (DrawnOperand(1),)))))
