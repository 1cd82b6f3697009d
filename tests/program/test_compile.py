"""`symgrad.compile`: the same numbers as the function, for every way to ask for them; what a program depends on; and what is not compiled."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import symgrad
from symgrad import nn
from symgrad.func import functional_call, grad, hessian, hvp, jacobian, jet, jvp, vmap
from symgrad.program import backends
from symgrad.program.native import find_compiler
from tests.support.threads import run_in_threads

X, Y = symgrad.tensor([0.3, -0.7, 1.9]), symgrad.tensor([1.1, 0.4, -0.2])


def energy(x, y):
    return ((x * y).sin() + y.exp() * 2 - x / (1 + y * y)).tanh().sum()


def same(found, expected):
    found, expected = (x if isinstance(x, (tuple, list)) else (x,) for x in (found, expected))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        if isinstance(b, (tuple, list)):
            same(a, b)
        else:
            assert a.shape == b.shape and a.dtype is b.dtype
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("backend", ["interpreter", "numpy"])
def test_all_derivatives(backend):
    f = symgrad.compile(energy, backend=backend, argnums=(0, 1))
    for _ in range(2):
        for x, y in ((X, Y), (Y, X)):
            same(f(x, y), energy(x, y))
            same(f.gradient(x, y), grad(energy, (0, 1))(x, y))
            value, gradient = f.value_and_gradient(x, y)
            same(value, energy(x, y))
            same(gradient, grad(energy, (0, 1))(x, y))
            same(f.hessian(x, y), hessian(energy, (0, 1))(x, y))
            same(f.hvp((x, y), (y, x)), hvp(energy, (x, y), (y, x)))
            same(f.jvp((x, y), (y, x)), jvp(energy, (x, y), (y, x)))
            same(f.jacobian(x, y), jacobian(energy, (0, 1))(x, y))
    assert not f.report.uncompiled and {row["runs"] for row in f.report.programs} == {4}


def test_it_is_a_decorator():
    @symgrad.compile(backend="interpreter", derivatives=("value", "gradient"))
    def f(x):
        """The cube."""
        return (x**3).sum()

    assert f.__name__ == "f" and f.__doc__ == "The cube."
    same(f.gradient(X), 3 * X * X)
    with pytest.raises(RuntimeError, match="compiled for gradient, value; name 'hessian'"):
        f.hessian(X)


def test_another_shape_and_dtype_have_their_own_program():
    f = symgrad.compile(lambda x: x.exp().sum(), backend="interpreter")
    for x in (X, symgrad.ones(2, 2), symgrad.tensor(0.5), X.float(), symgrad.ones(0)):
        same(f(x), x.exp().sum())
        same(f.gradient(x), x.exp())
    assert len(f.report.programs) == 10


def test_trees_and_names_of_arguments():
    f = symgrad.compile(lambda p, q, n=1: {"out": [p[0] * q["a"] * n, n]}, backend="interpreter")
    for args, words in ((((X, Y), {"a": Y}), {}), (((X,), {"a": 2.0}), {"n": 3}), ((), {"p": [X], "q": {"a": Y}})):
        for _ in range(2):
            found, expected = f(*args, **words)["out"], (lambda p, q, n=1: [p[0] * q["a"] * n, n])(*args, **words)
            same(found[0], expected[0])
            assert found[1] == expected[1]


def test_branches_have_a_program_each_up_to_a_limit():
    f = symgrad.compile(lambda x: x.sum() if x.sum() > 0 else x.prod(), backend="interpreter")
    for x in (X, -X, X, -X):
        same(f(x), x.sum() if x.sum() > 0 else x.prod())
        same(f.gradient(x), grad(lambda x: x.sum() if x.sum() > 0 else x.prod())(x))
    assert [row["runs"] for row in f.report.programs if row["of"] == "value"] == [2, 2]
    g = symgrad.compile(lambda x: x * float(x.sum()), backend="interpreter", max_programs=3)
    for k in range(6):
        same(g(X + k), (X + k) * float((X + k).sum()))
    assert len(g.report.programs) == 3 and "max_programs" in g.report.uncompiled[0]["reason"]


def test_captured_values_are_read_again():
    weight, scale, flags, array = symgrad.tensor([1.0, 2.0, 3.0]), 2.0, {"square": False}, np.array([1.0, 2.0, 3.0])

    def f(x):
        y = x * weight * scale + symgrad.tensor(array)
        return (y * y if flags["square"] else y).sum()

    compiled = symgrad.compile(f, backend="interpreter")
    same(compiled(X), f(X))
    weight.mul_(3.0)
    same(compiled(X), f(X))
    weight = symgrad.tensor([5.0, 1.0, 1.0])
    same(compiled(X), f(X))
    assert len(compiled.report.programs) == 1
    scale = 7.0
    same(compiled(X), f(X))
    flags["square"] = True
    same(compiled(X), f(X))
    array[0] = 100.0
    same(compiled(X), f(X))
    assert [row["recorded again"] for row in compiled.report.programs] == ["", *(f"the captured value {name} has changed" for name in (
        "scale", "flags['square']", "array"))]


def test_captured_parameters_get_gradients():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    compiled, x = symgrad.compile(model, backend="interpreter"), symgrad.randn(5, 3)
    for _ in range(3):
        found = []
        for f in (compiled, model):
            (f(x) ** 2).sum().backward()
            found.append([p.grad.clone() for p in model.parameters()])
            model.zero_grad()
        same(*found)
        with symgrad.no_grad():
            for p, g in zip(model.parameters(), found[0]):
                p -= 0.1 * g
    assert [row["runs"] for row in compiled.report.programs] == [3, 3]


def test_other_transforms_of_a_compiled_function():
    f = symgrad.compile(energy, backend="interpreter")
    for _ in range(2):
        same(grad(f)(X, Y), grad(energy)(X, Y))
        same(grad(lambda x: grad(f)(x, Y).sum())(X), grad(lambda x: grad(energy)(x, Y).sum())(X))
        same(hessian(f)(X, Y), hessian(energy)(X, Y))
        same(jvp(f, (X, Y), (Y, X)), jvp(energy, (X, Y), (Y, X)))
        same(vmap(f)(symgrad.stack([X, Y]), symgrad.stack([Y, Y])), vmap(energy)(symgrad.stack([X, Y]), symgrad.stack([Y, Y])))
        same(jet(f, (X, Y), ((Y,), (X,)))[1], jet(energy, (X, Y), ((Y,), (X,)))[1])
        x = X.clone().requires_grad_()
        (first,) = symgrad.autograd.grad(f(x, Y), x, create_graph=True)
        (second,) = symgrad.autograd.grad(first.sum(), x)
        same(second, hessian(energy)(X, Y).sum(0))
        same(f.gradient(x, Y).detach(), first.detach())
        assert f.gradient(x, Y).requires_grad


def test_compiled_transforms():
    def loss(p, x):
        return (functional_call(model, p, (x,)) ** 2).sum()

    model, x = nn.Linear(3, 2), symgrad.randn(4, 3)
    params = {name: p.detach() for name, p in model.named_parameters()}
    for make in (lambda: grad(loss), lambda: vmap(loss, (None, 0)), lambda: lambda p, x: jvp(lambda z: loss(p, z), (x,), (x,))):
        expected, compiled = make()(params, x), symgrad.compile(make(), backend="interpreter")
        for _ in range(2):
            found = compiled(params, x)
            same([*found.values()] if isinstance(found, dict) else found, [*expected.values()] if isinstance(expected, dict) else expected)
        assert [row["runs"] for row in compiled.report.programs] == [2]


def test_writes_into_tensors_of_the_function():
    def f(x):
        out = symgrad.zeros(3)
        for i in range(3):
            out[i] = x[i] ** 2
        out += x
        y = out * 1.0
        y.mul_(2.0).sub_(1.0)
        y[1:] = x[1:] * 3.0
        y[0] = y[1] * 2.0
        try:
            y[0] = symgrad.ones(2)
        except RuntimeError:
            pass
        return (y * x).sum()

    compiled = symgrad.compile(f, backend="interpreter")
    for x in (X, Y):
        same(compiled(x), f(x))
        same(compiled.gradient(x), grad(f)(x))
        same(compiled.hessian(x), hessian(f)(x))
    assert not compiled.report.uncompiled


def test_errors_are_those_of_the_function():
    compiled = symgrad.compile(lambda x, y: (x @ y).sum())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="matmul|mat1"):
            compiled(symgrad.ones(2, 3), symgrad.ones(2, 3))
    with pytest.raises(ValueError, match="derivatives=\\['slope'\\]"):
        symgrad.compile(energy, derivatives=("slope",))
    with pytest.raises(ValueError, match="backend='fortran'"):
        symgrad.compile(energy, backend="fortran")
    with pytest.raises(TypeError, match="expected a function"):
        symgrad.compile(3.0)


def test_zero_times_infinity_behind_a_choice_is_that_of_the_function():
    def f(x):
        return symgrad.where(x > 0, x.sqrt(), 0.0).sum()

    compiled, x = symgrad.compile(f, backend="interpreter"), symgrad.tensor([4.0, 0.0, 1.0])
    for _ in range(2):
        same(compiled.gradient(x), grad(f)(x))
    same(compiled.gradient(x + 1), grad(f)(x + 1))
    assert [row["runs"] for row in compiled.report.programs] == [1]


def test_results_belong_to_the_caller():
    f = symgrad.compile(lambda x: (x, x * 1.0, x.exp(), symgrad.ones(3)), backend="interpreter")
    expected = [t.clone() for t in f(X)]
    x = X.clone()
    for t in f(x):
        t.fill_(77.0)
    same(f(x), expected)


def test_a_function_that_dies_leaves_nothing():
    def references():
        big = symgrad.zeros(1000)
        f = symgrad.compile(lambda x: (x + big.sum()).sum(), backend="interpreter")
        f(X)
        return weakref.ref(f.function), weakref.ref(big)

    gone, gone_value = references()
    gc.collect()
    assert gone() is None and gone_value() is None


@pytest.mark.sweep
def test_threads():
    f, found = symgrad.compile(energy, backend="numpy"), []
    lock = threading.Lock()

    def work(i):
        x = X * (i + 1)
        for _ in range(20):
            y, g = f(x, Y), f.gradient(x, Y)
            with lock:
                found.append((i, y, g))

    run_in_threads(work)
    for i, y, g in found:
        same((y, g), (energy(X * (i + 1), Y), grad(energy)(X * (i + 1), Y)))


def test_programs_are_recorded_from_shapes_alone():
    f = symgrad.compile(lambda x, y: (x * y).sum() ** 2, shapes=((3,), ()), argnums=(0, 1), backend="interpreter")
    assert {row["of"] for row in f.report.programs} == {"value", "gradient", "value_and_gradient", "hessian", "hvp", "jvp", "jacobian"}
    y = symgrad.tensor(2.0)
    same(f.hessian(X, y), hessian(lambda x, y: (x * y).sum() ** 2, (0, 1))(X, y))
    same(f.hvp((X, y), (X, y)), hvp(lambda x, y: (x * y).sum() ** 2, (X, y), (X, y)))
    assert {row["runs"] for row in f.report.programs} == {0, 1} and len(f.report.programs) == 7
    large = symgrad.compile(lambda x: x.exp().sum(), shapes=(10**9,), derivatives=("value",), backend="interpreter")
    assert len(large.report.programs) == 1
    reading = symgrad.compile(lambda x: x.sum() if x.sum() > 0 else x.prod(), shapes=(3,), backend="interpreter")
    same(reading(-X), -X.sum() if -X.sum() > 0 else (-X).prod())
    with pytest.raises(TypeError, match="is no shape"):
        symgrad.compile(energy, shapes=("large",))


@pytest.mark.parametrize("structure", [None, "auto"])
def test_structured_hessians(structure):
    def rosenbrock(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    f, x = symgrad.compile(rosenbrock, structure=structure), symgrad.linspace(-1.0, 1.0, 50)
    for k in range(3):
        found, expected = (h.toarray() if structure else h.numpy() for h in (f.hessian(x + k), hessian(rosenbrock, structure=structure)(x + k)))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    (row,) = f.report.programs
    assert row["runs"] == 3 and row["values read"] == 0 and row["steps"] < 40


@pytest.mark.sweep
def test_a_compiled_function_is_checked_by_its_programs():
    report = symgrad.check(lambda x, y: (x * y).sin() + x.tanh(), 0.3, 0.7, compile=True, points=4)
    assert report.verdict == "proved"
    wrong = symgrad.compile(lambda x: x.sin())
    wrong._recorders["value"].record = lambda *args: wrong_program(lambda x: x.cos(), *args)
    report = symgrad.check(wrong, 0.3, points=4, compile=True)
    assert not report and report.verdict in ("refuted", "imprecise")


def wrong_program(function, *args):
    """The program of another function."""
    return symgrad.compile(function)._recorders["value"].record(*args)


@symgrad.compile
def decorated(x):
    return x.exp()


def plain_cube(x):
    return (x**3).sum()


def test_pickles():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    cube = pickle.loads(pickle.dumps(symgrad.compile(plain_cube)))
    same(cube.gradient(X), 3 * X * X)
    weight = symgrad.tensor([1.0, 2.0, 3.0])
    f = symgrad.compile(lambda x, n: (x * weight).exp().sum() * n if x.sum() > 0 else {"x": x}, backend="numpy")
    expected = f(X, 3), f(-X, 3), f.gradient(X, 3)
    restored = pickle.loads(pickle.dumps(f))
    del f
    same((restored(X, 3), restored(-X, 3)["x"], restored.gradient(X, 3)), (expected[0], expected[1]["x"], expected[2]))
    with pytest.raises(RuntimeError, match="could not be pickled, and no program was recorded"):
        restored(symgrad.ones(4), 3)


@pytest.mark.sweep
def test_targets_of_a_loss_are_inputs():
    logits, labels = symgrad.randn(5, 4), symgrad.tensor([0, 3, 1, 1, 2])
    for options in ({}, {"reduction": "sum"}, {"weight": symgrad.tensor([1.0, 2.0, 3.0, 4.0])}, {"label_smoothing": 0.1}):
        def loss(x, t, options=options):
            return nn.functional.cross_entropy(x, t, **options)

        f = symgrad.compile(loss, backend="numpy")
        for t in (labels, labels.flip(0), symgrad.tensor([1, 1, 1, -100, 0])):
            same(f(logits, t), loss(logits, t))
            same(f.gradient(logits, t), grad(loss)(logits, t))
            same(f.hessian(logits, t), hessian(loss)(logits, t))
        with pytest.raises(IndexError, match="nll_loss: .*4"):
            f(logits, symgrad.tensor([0, 1, 2, 3, 4]))
        assert [row["runs"] for row in f.report.programs] == [3, 3, 3] and not f.report.uncompiled, f.report


def test_a_recording_is_void_if_its_error_is_caught():
    def f(x):
        try:
            return x + symgrad.rand(3)
        except RuntimeError:
            return x

    compiled = symgrad.compile(f)
    assert not symgrad.equal(compiled(X), X) and "random numbers" in compiled.report.uncompiled[0]["reason"]


def test_transforms_and_compiled_functions_are_captured_by_their_functions():
    weight = symgrad.tensor([1.0, 2.0, 3.0])
    inner, of = symgrad.compile(lambda x: (x**3 * weight).sum(), backend="interpreter"), hessian(lambda x: (x**3 * weight).sum())
    f = symgrad.compile(lambda x: inner(x) + of(x).sum(), backend="interpreter")
    for k in range(4):
        x = X + k
        same(f(x), inner(x) + of(x).sum())
        weight.mul_(2.0)
    (row,) = f.report.programs
    assert row["runs"] == 4 and not f.report.uncompiled


@pytest.mark.skipif(not find_compiler(), reason="no C compiler")
def test_auto_goes_on_in_c_when_that_pays(monkeypatch):
    f = symgrad.compile(energy)
    same(f(X, Y), energy(X, Y))
    monkeypatch.setattr(backends, "COMPILING", (0, 0))
    for _ in range(3):
        same(f(X, Y), energy(X, Y))
    (row,) = f.report.programs
    assert row["backend"] == "c" and row["runs"] == 4
