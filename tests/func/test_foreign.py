"""`foreign`: functions of NumPy arrays as ops, in both modes, to every order, in batches, series and programs."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import symgrad
from symgrad.func import custom_jvp, custom_vjp, foreign, grad, hessian, jacfwd, jacrev, jvp, vmap

T = symgrad.tensor


def bessel(mode):
    """J of real order as SciPy has it, with the rules of one mode or of both."""
    @foreign
    def jv(order, x):
        assert isinstance(x, (np.ndarray, np.floating)), type(x)
        return scipy.special.jv(order, x)

    def slope(order, x):
        return (jv(order - 1, x) - jv(order + 1, x)) / 2

    if mode != "forward":
        jv.defvjp(lambda order, x: (jv(order, x), (order, x)), lambda r, g: (None, g * slope(*r)))
    if mode != "reverse":
        jv.defjvps(None, lambda t, y, order, x: t * slope(order, x))
    return jv


def nth(order, x, n):
    return scipy.special.jvp(order, x, n)


MODES = pytest.mark.parametrize("mode", ["forward", "reverse", "both"])


@MODES
def test_derivatives_of_every_order(mode):
    jv, x = bessel(mode), 1.3
    for derivative in (lambda f: grad(f, 1), lambda f: jacrev(f, 1), *((lambda f: jacfwd(f, 1),) if mode != "reverse" else ())):
        f = jv
        for n in range(1, 5):
            f = derivative(f)
            assert float(f(0, T(x))) == pytest.approx(nth(0, x, n), rel=1e-13), n
    assert float(hessian(lambda x: jv(2, x) ** 2)(T(x))) == pytest.approx(2 * (nth(2, x, 1) ** 2 + nth(2, x, 0) * nth(2, x, 2)), rel=1e-13)
    y = T(x, requires_grad=True)
    jv(1, y).backward()
    assert y.grad.item() == pytest.approx(nth(1, x, 1), rel=1e-14)


@MODES
def test_batches_call_the_function_for_each_member(mode):
    jv, xs = bessel(mode), T([[0.4, 1.3], [2.0, 3.5], [0.1, 7.0]])
    assert np.allclose(vmap(lambda x: jv(1, x))(xs).numpy(), scipy.special.jv(1, xs.numpy()))
    assert np.allclose(vmap(vmap(grad(lambda x: jv(1, x))))(xs).numpy(), nth(1, xs.numpy(), 1), rtol=1e-13)
    assert np.allclose(vmap(vmap(grad(grad(lambda x: jv(1, x))), 0), 1, 1)(xs).numpy(), nth(1, xs.numpy(), 2), rtol=1e-13)
    found, known = (vmap(hessian(lambda x, f=f: f(x).prod()))(xs).numpy() for f in (lambda x: jv(1, x), symgrad.bessel_j1))
    assert np.allclose(found, known, rtol=1e-12)


def test_a_vmap_rule_replaces_the_loop():
    calls = []

    @foreign
    def inverse(a):
        calls.append(a.shape)
        return scipy.linalg.inv(a)

    inverse.defvjp(lambda a: ((y := inverse(a)), y), lambda y, g: (-y.T @ g @ y.T,))
    inverse.defvmap(lambda info, in_dims, a: (np.linalg.inv(a), in_dims[0]))
    batch = T(np.random.default_rng(0).normal(size=(4, 3, 3)) + 3 * np.eye(3))
    assert np.allclose(vmap(inverse)(batch).numpy(), np.linalg.inv(batch.numpy()))
    found = vmap(grad(lambda a: inverse(a).sum()))(batch).numpy()
    assert np.allclose(found, vmap(grad(lambda a: symgrad.linalg.inv(a).sum()))(batch).numpy()) and not calls
    assert np.allclose(hessian(lambda a: inverse(a).sum())(batch[0]).numpy(), hessian(lambda a: symgrad.linalg.inv(a).sum())(batch[0]).numpy())


def test_several_outputs_and_arguments_in_trees():
    @foreign
    def polar(p):
        return {"length": np.hypot(p["x"], p["y"]), "angle": np.arctan2(p["y"], p["x"])}

    def push(primals, tangents):
        (p,), (t,) = primals, tangents
        y = polar(p)
        return y, {"length": (p["x"] * t["x"] + p["y"] * t["y"]) / y["length"],
                   "angle": (p["x"] * t["y"] - p["y"] * t["x"]) / y["length"] ** 2}

    polar.defjvp(push)

    def plain(p):
        return symgrad.hypot(p["x"], p["y"]) * symgrad.atan2(p["y"], p["x"])

    p = {"x": T(0.3), "y": T(0.7)}
    found, known = (hessian(f)(p) for f in (lambda p: polar(p)["length"] * polar(p)["angle"], plain))
    assert all(float(found[a][b]) == pytest.approx(float(known[a][b]), rel=1e-13) for a in "xy" for b in "xy")


@pytest.mark.parametrize("batched", [False, True])
def test_a_rule_that_calls_numpy_on_a_tensor_that_is_no_array(batched):
    @foreign
    def cosine(x):
        return np.cos(x)

    cosine.defvjp(lambda x: (cosine(x), x), lambda x, g: (g * T(-np.sin(np.asarray(x))),))
    assert float(grad(cosine)(T(0.4))) == pytest.approx(-np.sin(0.4))
    why = "is a batch, with a value for each member" if batched else "has a graph, since the derivative is differentiated again"
    with pytest.raises(TypeError, match=why) as error:
        vmap(grad(cosine))(T([0.4, 0.5])) if batched else grad(grad(cosine))(T(0.4))
    assert f"{__file__}, line " in str(error.value) and "np.asarray(x)" in str(error.value) and "symgrad.func.foreign" in str(error.value)


NUMBERS = {
    "float": lambda x: math.cos(float(x)), "item": lambda x: math.cos(x.item()), "tolist": lambda x: math.cos(x.tolist()),
    "a function of numbers": lambda x: math.cos(x), "a number of NumPy": lambda x: float(np.cos(np.float64(x))),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("where", ["pullback", "residuals", "pushforward"])
def test_a_rule_that_makes_a_number_of_a_tensor(name, where):
    slope = NUMBERS[name]

    @custom_vjp if where != "pushforward" else custom_jvp
    def sine(x):
        return T(math.sin(float(x)))  # the function itself has no derivative but by its rule

    if where == "pushforward":
        sine.defjvp(lambda primals, tangents: (sine(*primals), tangents[0] * slope(primals[0])))
    elif where == "pullback":
        sine.defvjp(lambda x: (sine(x), x), lambda x, g: (g * slope(x),))
    else:
        sine.defvjp(lambda x: (sine(x), slope(x)), lambda cosine, g: (g * cosine,))
    x = T(0.4)
    assert float(grad(sine)(x)) == pytest.approx(math.cos(0.4))
    for second in (grad(grad(sine)), hessian(sine), lambda x: jvp(grad(sine), (x,), (T(1.0),))):
        with pytest.raises(TypeError, match="this rule (makes a plain number of|calls NumPy with) a tensor that has a graph") as error:
            second(x)
        assert f"{__file__}, line " in str(error.value)


def test_a_number_of_a_detached_tensor_may_choose_a_branch():
    @custom_vjp
    def size(x):
        return x.abs()

    size.defvjp(lambda x: (size(x), x), lambda x, g: (g * x / x.abs() if float(x.detach()) else 0 * g,))
    assert [float(grad(grad(lambda x: size(x) * x))(T(v))) for v in (2.0, -2.0, 0.0)] == [2.0, -2.0, 0.0]


def test_the_line_of_a_rule_of_a_function():
    class Bessel(symgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return T(scipy.special.j0(x.detach().numpy()))

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return -g * scipy.special.struve(1, x)

    x = T(0.4, requires_grad=True)
    with pytest.raises(TypeError, match="this rule calls NumPy with a tensor that") as error:
        symgrad.autograd.grad(Bessel.apply(x), x, create_graph=True)
    assert "scipy.special.struve(1, x)" in str(error.value)


def test_the_line_of_a_rule_of_a_declared_op():
    op = symgrad.elementwise("cosine_by_scipy", lambda xp, x: xp.cos(x), lambda xp, y, x: -np.spacing(x))
    with pytest.raises(TypeError, match="this rule calls NumPy with a tensor that is no array") as error:
        grad(grad(op))(0.4)
    assert "np.spacing(x)" in str(error.value)


@pytest.mark.sweep
def test_formulas():
    jv = bessel("both")
    x = T(0.4, requires_grad=True, symbol="x")
    with pytest.raises(NotImplementedError, match="jv: a function of NumPy arrays has no formula; declare one with jv.defformula"):
        assert jv(0, x).expr
    twice = foreign(lambda x: np.add(x, x))
    twice.defvjp(lambda x: (twice(x), None), lambda r, g: (2 * g,))
    twice.defformula(lambda x: 2 * x)
    assert str((twice(x) * x).expr) == "2*x**2"
    assert symgrad.check(lambda x: twice(x).sin(), 0.3).verdict in ("proved", "verified")
    twice.defvjp(lambda x: (twice(x), None), lambda r, g: (2.001 * g,))
    assert symgrad.check(lambda x: twice(x).sin(), 0.3).verdict == "refuted"


def test_a_pullback_alone_has_no_forward_mode():
    with pytest.raises(TypeError, match="jv has a pullback only"):
        jvp(lambda x: bessel("reverse")(0, x), (T(1.0),), (T(1.0),))


def test_a_compiled_function_calls_it():
    jv = bessel("both")
    f = symgrad.compile(lambda x: jv(0, x) * x)
    for x in (0.3, 0.7, 1.9):
        assert float(f(T(x))) == pytest.approx(scipy.special.j0(x) * x, rel=1e-15)
