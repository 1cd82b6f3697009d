"""Optimizers: steps that are differentiated, their state, Newton's method, and problems for SciPy's minimizers."""

import pickle

import numpy as np
import pytest
from scipy import optimize

import symgrad
from symgrad import autograd, nn, optim

STEPS = [
    (optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), (optim.Adam, {"amsgrad": True, "eps": 0.1}), (optim.AdamW, {"eps": 0.1}),
    (optim.RMSprop, {"centered": True, "momentum": 0.5, "eps": 0.1}), (optim.Adagrad, {"lr_decay": 0.3, "initial_accumulator_value": 0.1}),
    (optim.Adadelta, {"eps": 0.1, "maximize": True}), (optim.Adamax, {"betas": (0.5, 0.6)}), (optim.NAdam, {"momentum_decay": 0.5}),
    (optim.NAdam, {"decoupled_weight_decay": True, "weight_decay": 0.5}), (optim.RAdam, {"betas": (0.9, 0.99), "eps": 0.1}),
    (optim.RAdam, {"betas": (0.9, 0.6), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.ASGD, {"lambd": 0.5, "t0": 1}), (optim.Rprop, {}),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("attack", [False, pytest.param(True, marks=pytest.mark.sweep)])  # the latter at special and random points
@pytest.mark.parametrize("kind, options", STEPS)
def test_the_loss_after_some_steps_has_its_derivatives_by_the_start_and_the_learning_rate(kind, options, attack):
    def after(start, more, rate, complex_start):
        """The loss after steps whose gradients are derivatives of it, in turn."""
        made = [p.clone() for p in (start, more, complex_start)]
        optimizer = kind([{"params": made[:1]}, {"params": made[1:], "lr": rate / 2}], lr=rate, differentiable=True, **options)
        for i in range(3):
            x, y, z = (p.clone() for p in made)  # the step will write into the parameters
            loss = (x * x * y).sum() + (x.sin() * y).sum() + y.exp() + (z - x[0]).abs() ** 2 + (z * z).imag
            if i == 2:
                return loss
            for p, g in zip(made, autograd.grad(loss, made, create_graph=True)):
                p.grad = g
            optimizer.step()

    inputs = (symgrad.tensor([0.7, -0.4], requires_grad=True), symgrad.tensor(0.37, requires_grad=True), symgrad.tensor(0.05, requires_grad=True),
              symgrad.tensor(0.2 + 0.3j, requires_grad=True))
    assert autograd.gradcheck(after, inputs, atol=1e-6, attack=attack)
    loss = after(*inputs)
    assert loss.requires_grad and all(g.abs().max() > 0 for g in autograd.grad(loss, inputs))


NAMES = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]


@pytest.mark.parametrize("name, dtype", [(name, dtype) for name in NAMES for dtype in (symgrad.float32, symgrad.bfloat16, symgrad.complex64)
                                         if not (name == "Adafactor" and dtype.is_complex)])  # it refuses complex parameters
def test_the_state_of_a_parameter_has_its_dtype_and_a_complex_one_steps_as_two_real_ones(name, dtype):
    """The numbers of the state have a dtype of their own, before and after loading."""
    options = {"momentum": 0.5} if name in ("SGD", "RMSprop") else {}
    x = symgrad.tensor([1.0, -2.0, 3.0], dtype=dtype, requires_grad=True)
    pairs = (symgrad.view_as_real(x.detach()) if dtype.is_complex else x.detach()).clone().requires_grad_()
    made = [getattr(optim, name)([p], lr=0.1, **options) for p in (x, pairs)]
    made.append(getattr(optim, name)([x], **options))
    for i in range(4):
        g = symgrad.tensor([1.0, -2.0 + i, 0.5 - i], dtype=dtype)
        x.grad, pairs.grad = g, symgrad.view_as_real(g) if dtype.is_complex else g
        for optimizer in made[:2]:
            optimizer.step()
    assert symgrad.equal(symgrad.view_as_real(x) if dtype.is_complex else x, pairs)
    saved = made[0].state_dict()
    made[2].load_state_dict(saved)
    for state in (saved["state"][0], made[2].state[x]):
        assert {key: t.dtype for key, t in state.items()} == {
            key: symgrad.float64 if key in ("step", "eta", "mu", "mu_product") else dtype for key in state}


def test_a_loaded_state_brings_its_names_and_options_that_it_lacks_are_off():
    x = symgrad.ones(2, requires_grad=True)
    named, plain = optim.SGD([("w", x)], lr=1.0), optim.SGD([x], lr=1.0, maximize=True, momentum=0.5)
    saved = named.state_dict()
    plain.load_state_dict(saved)
    assert plain.param_groups[0]["param_names"] == ["w"]
    plain = optim.SGD([x], lr=1.0)
    named.load_state_dict(plain.state_dict())
    assert named.param_groups[0]["param_names"] == ["w"]
    named = optim.SGD([("v", x)], lr=1.0, maximize=True, momentum=0.5)
    named.load_state_dict({"state": {}, "param_groups": [{name: saved["param_groups"][0][name] for name in ("lr", "params", "param_names")}]})
    assert (group := named.param_groups[0])["param_names"] == ["w"] and not group["maximize"] and group["momentum"] == 0
    x.grad = symgrad.ones(2)
    named.step()
    assert x.tolist() == [0.0, 0.0]


def test_a_written_parameter_names_the_step_that_wrote_it():
    layer = nn.Linear(2, 1)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    loss = layer(symgrad.ones(1, 2, requires_grad=True)).square().sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="(?s)modified by an inplace operation.*changed by SGD.step at .*test_optim.py:[0-9]+: optimizer.step"):
        loss.backward()


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("dtype, close", [("float64", 1e-12), ("float32", 1e-4)])
def test_a_quadratic_is_minimized_in_one_step(dtype, close):
    """Parameters of any shapes in groups, and weight decay: the solution of the linear system."""
    rng = np.random.default_rng(0)
    root, b, decay = rng.normal(size=(9, 7)), rng.normal(size=7), np.array([0.0] * 6 + [2.0])
    p, q = (symgrad.tensor(rng.normal(size=shape), dtype=getattr(symgrad, dtype), requires_grad=True) for shape in ((2, 3), ()))
    unused = symgrad.ones(2, requires_grad=True)
    matrix, vector = (symgrad.tensor(t, dtype=p.dtype) for t in (root.T @ root, b))

    def closure():
        x = symgrad.cat([p.reshape(6), q.reshape(1)])
        return 0.5 * x @ matrix @ x - vector @ x

    optimizer = optim.Newton([{"params": [p, unused]}, {"params": q, "weight_decay": 2.0}])
    before = closure().item()
    assert optimizer.step(closure).item() == before
    found = [*p.flatten().tolist(), q.item()]
    assert found == pytest.approx(np.linalg.solve(root.T @ root + np.diag(decay), b).tolist(), rel=close, abs=close)
    assert unused.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind, start, steps", [(optim.Newton, [-1.2, 1.0], 22), (optim.NewtonCG, [-1.2, 1.0], 28), (optim.Newton, [0.0] * 20, 40),
                                                (optim.NewtonCG, [0.0] * 10, 56)])
def test_rosenbrock_in_few_steps(kind, start, steps):
    x = symgrad.tensor(start, requires_grad=True)
    optimizer = kind([x])
    for _ in range(steps):
        optimizer.step(lambda: rosenbrock(x))
    assert x.tolist() == pytest.approx([1.0] * len(start), rel=1e-9)
    radius = optimizer.state[x].get("radius")
    for _ in range(10):  # rounding of the loss does not make the radius shrink
        optimizer.step(lambda: rosenbrock(x) + 1.0)
    assert optimizer.state[x].get("radius") == radius


@pytest.mark.parametrize("kind", [optim.Newton, optim.NewtonCG])
def test_a_saddle_is_left(kind):
    x = symgrad.tensor([1e-3, 0.5], requires_grad=True)
    optimizer = kind([x])
    optimizer.step(lambda: x[0] ** 4 - x[0] ** 2 + x[1] ** 2)
    if kind is optim.Newton:  # by the size of the curvature, away from the saddle
        assert x.tolist() == pytest.approx([2e-3, 0.0], abs=1e-8) and optimizer.state[x]["modified"]
    for _ in range(19):
        optimizer.step(lambda: x[0] ** 4 - x[0] ** 2 + x[1] ** 2)
    assert x.tolist() == pytest.approx([0.5**0.5, 0.0], abs=1e-8)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", [optim.Newton, optim.NewtonCG])
def test_the_loss_never_rises_and_a_minimum_stays(kind):
    rng = np.random.default_rng(1)
    inputs, targets = symgrad.tensor(rng.normal(size=(20, 3))), symgrad.tensor(rng.integers(0, 2, 20))
    symgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = kind(net.parameters(), weight_decay=0.01)

    def closure():
        return nn.functional.cross_entropy(net(inputs), targets)

    def total():
        return closure().item() + 0.005 * sum((p * p).sum().item() for p in net.parameters())

    totals = []
    for _ in range(40):
        totals.append(total())
        optimizer.step(closure)
    assert all(b <= a * (1 + 1e-14) for a, b in zip(totals, totals[1:]))
    gradient = autograd.grad(closure(), list(net.parameters()))
    assert max((g + 0.01 * p).abs().max().item() for g, p in zip(gradient, net.parameters())) < 1e-6


@pytest.mark.parametrize("kind", [optim.Newton, optim.NewtonCG])
def test_both_go_on_from_a_saved_state(kind):
    x, z = (symgrad.tensor([-1.2, 1.0], requires_grad=True) for _ in range(2))
    one, two = kind([x]), kind([z])
    for _ in range(4):
        one.step(lambda: rosenbrock(x))
    with symgrad.no_grad():
        z.copy_(x)
    two.load_state_dict(pickle.loads(pickle.dumps(one.state_dict())))
    for _ in range(3):
        one.step(lambda: rosenbrock(x))
        two.step(lambda: rosenbrock(z))
    assert x.tolist() == z.tolist() and one.state_dict() == two.state_dict()
    assert pickle.loads(pickle.dumps(one)).state_dict() == one.state_dict()


def test_groups_have_their_own_learning_rates():
    a, b = (symgrad.tensor(1.0, requires_grad=True) for _ in range(2))
    optim.Newton([{"params": a}, {"params": b, "lr": 0.25}]).step(lambda: a * a + b * b)
    assert (a.item(), b.item()) == pytest.approx((0.0, 0.75), abs=1e-15)


@pytest.mark.parametrize("kind", [optim.Newton, optim.NewtonCG])
def test_what_is_refused(kind):
    x = symgrad.tensor([1.0, 2.0], requires_grad=True)
    optimizer = kind([x])

    def freed():
        loss = (x * x).sum()
        loss.backward()
        return loss

    for closure, error, text in (
            (None, TypeError, "needs a closure that computes the loss"),
            (lambda: 3.0, RuntimeError, "must return the loss, a scalar Tensor, not float"),
            (lambda: x * x, RuntimeError, r"real scalar, but its loss has shape \[2\].*reduce it with .sum"),
            (lambda: (x * float("nan")).sum(), RuntimeError, "the loss is nan; the parameters are unchanged"),
            (lambda: symgrad.tensor(1.0), RuntimeError, "does not depend on the parameters"),
            (lambda: (x - 1).abs().sqrt().sum(), RuntimeError, "has . elements that are not finite"),
            (freed, RuntimeError, "Leave backward.. out of the closure")):
        with pytest.raises(error, match=text):
            optimizer.step(closure)
        assert x.tolist() == [1.0, 2.0] and not optimizer.state
    negative = [{name: -1} for name in (["max_backtracks"] if kind is optim.Newton else ["max_trials", "max_cg"])] + [{"weight_decay": -1.0}]
    complex_one = symgrad.tensor(1j, requires_grad=True)
    for make, text in ((lambda: kind([x * (1 + 1j)]), "no leaf"), (lambda: kind([complex_one]), "complex; optimize its view_as_real"),
                       (lambda: optimizer.add_param_group({"params": complex_one}), "complex"),
                       *((lambda options=options: kind([x], **options), f"{[*options][0]} is -1") for options in negative)):
        with pytest.raises(ValueError, match=text):
            make()
    assert len(optimizer.param_groups) == 1


def test_a_closure_may_call_backward():
    x = symgrad.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.Newton([x])

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward(retain_graph=True)
        return loss

    optimizer.step(closure)
    assert x.tolist() == pytest.approx([0.0, 0.0], abs=1e-15) and x.grad.tolist() == [2 * v for v in x.tolist()]


class Cube(autograd.Function):
    """x³, without a pushforward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


@pytest.mark.parametrize("kind", [optim.Newton, optim.NewtonCG])
def test_functions_hooks_and_no_grad_change_nothing(kind):
    """The steps with a Function and a hook on the way are those without, also called where nothing is recorded; a linear loss has a finite step."""
    x, z = (symgrad.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    one, two = kind([x]), kind([z])

    def with_function():
        y = Cube.apply(x)
        y.register_hook(lambda g: g)
        return (y * y).sum() + (x * x).sum()

    for _ in range(4):
        with symgrad.no_grad():
            one.step(with_function)
        two.step(lambda: (z**6 + z * z).sum())
        assert x.tolist() == pytest.approx(z.tolist(), rel=1e-12)
    two.step(lambda: 3 * z.sum())
    assert z.abs().max() < 10


@pytest.mark.parametrize("kind", [optim.Newton, optim.NewtonCG])
def test_where_no_step_lowers_the_loss_the_parameters_stay(kind):
    x, calls = symgrad.tensor(1.0, requires_grad=True), []

    def closure():
        calls.append(1)
        return x * x if len(calls) == 1 else x * x + 1e9

    optimizer = kind([x])
    optimizer.step(closure)
    assert x.item() == 1.0 and optimizer.state[x]["func_evals"] == len(calls) > 10


@pytest.mark.parametrize("kind", [optim.Newton, optim.NewtonCG])
def test_where_the_closure_raises_at_a_trial_step_the_parameters_stay(kind):
    x, calls = symgrad.tensor(1.0, requires_grad=True), []

    def closure():
        calls.append(x.item())
        return x * x if len(calls) == 1 else symgrad.stack([x, x])

    with pytest.raises(ValueError, match="one element"):
        kind([x]).step(closure)
    assert x.item() == 1.0 != calls[1]


@pytest.mark.parametrize("method", ["trust-exact", "trust-ncg", "Newton-CG", "trust-constr", "L-BFGS-B"])
def test_scipy_minimizes_a_function_of_a_tree_and_calls_it_once_for_each_point(method):
    seen = []

    def fn(tree):
        first, (second, third) = tree["a"], tree["b"]
        x = symgrad.cat([first.reshape(4), second.reshape(1), third])
        assert first.shape == (2, 2) and second.shape == () and third.dtype is symgrad.float32
        seen.append(tuple(x.detach().tolist()))
        return rosenbrock(x)

    start = {"a": symgrad.full((2, 2), 0.5), "b": [0.25, symgrad.tensor([0.5], dtype=symgrad.float32)]}
    problem = symgrad.to_scipy(fn, start)
    assert problem.x0.tolist() == [0.5] * 4 + [0.25, 0.5]
    second = {"hess": problem.hess} if method in ("trust-exact", "Newton-CG") else {} if method == "L-BFGS-B" else {"hessp": problem.hessp}
    result = optimize.minimize(problem.fun, problem.x0, jac=problem.jac, method=method, **second)
    assert result.fun < 1e-6 and result.x.tolist() == pytest.approx([1.0] * 6, rel=1e-2)
    found = problem.unravel(result.x)
    assert found["a"].shape == (2, 2) and found["b"][1].dtype is symgrad.float32
    assert all(a != b for a, b in zip(seen, seen[1:]))


def test_a_problem_has_exact_derivatives_that_are_the_callers_own():
    calls = []

    def fn(tree):
        calls.append(1)
        return (tree[0] ** 3).sum() * tree[1]

    problem = symgrad.to_scipy(fn, (symgrad.tensor([1.0, 2.0]), 2.0))
    x = problem.x0.copy()
    hessian = [[12.0, 0.0, 3.0], [0.0, 24.0, 12.0], [3.0, 12.0, 0.0]]
    assert problem.fun(x) == 18.0 and problem.jac(x).tolist() == [6.0, 24.0, 9.0] and problem.hess(x).tolist() == hessian
    assert problem.hessp(x, [1.0, 1.0, 2.0]).tolist() == (np.array(hessian) @ [1.0, 1.0, 2.0]).tolist()
    problem.jac(x)[:] = problem.hess(x)[:] = 7.0
    assert problem.jac(x).tolist() == [6.0, 24.0, 9.0] and problem.hess(x).tolist() == hessian and len(calls) == 1
    x[0] = 3.0
    assert problem.fun(x) == 70.0 and len(calls) == 2
    for make, error, text in ((lambda: symgrad.to_scipy(fn, symgrad.tensor(1j)), RuntimeError, "x0 is complex; SciPy minimizes by real numbers"),
                              (lambda: symgrad.to_scipy(fn, {"n": symgrad.tensor(1)}), RuntimeError, r"x0\['n'\] has dtype"),
                              (lambda: symgrad.to_scipy(fn, ["a"]), TypeError, r"x0\[0\] is str"),
                              (lambda: symgrad.to_scipy(fn, []), RuntimeError, "no tensors"),
                              (lambda: symgrad.to_scipy(lambda t: t * 2, symgrad.ones(2)).fun([1.0, 2.0]), RuntimeError, "must return a scalar"),
                              (lambda: problem.fun([1.0]), ValueError, "the vector has shape .1,., but x0 has 3 elements")):
        with pytest.raises(error, match=text):
            make()
