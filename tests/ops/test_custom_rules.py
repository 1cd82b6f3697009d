"""stop_gradient, custom_vjp and custom_jvp: custom rules in both modes, to every order, in batches and in formulas."""

import warnings

import numpy as np
import pytest
import sympy

import symgrad
from symgrad.autograd import forward_ad, functional
from symgrad.func import grad, hessian, hvp, jacfwd, jacrev, jvp, vjp, vmap
from symgrad.func.custom import custom_jvp, custom_vjp, stop_gradient
from symgrad.trees import flatten

T = symgrad.tensor


def numbers(tree):
    return np.concatenate([np.ravel(leaf.detach().numpy()) for leaf in flatten(tree)[0]])


def same(a, b, tolerance=1e-13):
    a, b = numbers(a), numbers(b)
    assert a.shape == b.shape and a.size
    assert np.all(np.abs(a - b) <= tolerance * np.maximum(1, np.abs(b)))


def smooth(x):
    return x.sin().exp() * x


def with_vjp():
    f = custom_vjp(smooth)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * (x.sin().exp() * (1 + x * x.cos())),))
    return f


def with_jvp():
    f = custom_jvp(smooth)

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return f(x), t * x.sin().exp() * (1 + x * x.cos())

    return f


BOTH = pytest.mark.parametrize("make", [with_vjp, with_jvp])
SYMBOL = sympy.Symbol("x")
FORMULA = sympy.exp(sympy.sin(SYMBOL)) * SYMBOL
EXACT = [float(sympy.diff(FORMULA, SYMBOL, k).evalf(30, subs={SYMBOL: sympy.Rational(7, 10)})) for k in range(5)]


# stop_gradient


def test_stop_gradient_has_derivative_zero_in_both_modes_and_every_order():
    def f(x):
        return stop_gradient(x.sin()) * x**2

    assert float(grad(f)(1.5)) == pytest.approx(2 * 1.5 * np.sin(1.5), rel=1e-15)
    assert float(grad(grad(f))(1.5)) == pytest.approx(2 * np.sin(1.5), rel=1e-15)
    assert float(grad(grad(grad(f)))(1.5)) == 0
    assert float(jvp(f, (1.5,), (1.0,))[1]) == pytest.approx(2 * 1.5 * np.sin(1.5), rel=1e-15)
    assert float(grad(lambda x: stop_gradient(x))(1.5)) == 0
    assert float(jvp(stop_gradient, (1.5,), (1.0,))[1]) == 0
    same(hessian(lambda x: (stop_gradient(x) * x * x).sum())(T([1.0, 3.0])), symgrad.diag(T([2.0, 6.0])))
    same(vmap(grad(f))(T([0.5, 1.5])), symgrad.stack([grad(f)(0.5), grad(f)(1.5)]))


def test_stop_gradient_keeps_trees_dtypes_memory_and_non_tensors():
    x = T([1.0, 2.0], requires_grad=True)
    found = stop_gradient({"a": (x, T([1, 2])), "b": [None, 3.5, "word"]})
    a, i = found["a"]
    assert not a.requires_grad and a.shares_memory_with(x) and i.dtype == symgrad.int64
    assert found["b"] == [None, 3.5, "word"]


def test_stop_gradient_keeps_the_formula():
    x = T(2.0, requires_grad=True, symbol="x")
    y = stop_gradient(x**2) * x
    assert str(y.expr) == "x**3"
    y.backward()
    assert float(x.grad) == 4 and str(x.grad.expr) == "x**2"
    assert symgrad.check(lambda x: stop_gradient(x.sin()) * x, 2.0).verdict == "verified"


# Derivatives


@BOTH
def test_derivatives_to_the_fourth_order_by_nested_grad(make):
    f = make()
    found = f
    assert float(f(T(0.7))) == pytest.approx(EXACT[0], rel=1e-15)
    for k in range(1, 5):
        found = grad(found)
        assert float(found(0.7)) == pytest.approx(EXACT[k], rel=1e-13), k


@BOTH
def test_second_derivatives_by_every_route(make):
    f = make()
    x = T([0.3, 0.7])
    def total(x):
        return f(x).sum() * x.prod()

    plain = hessian(lambda x: smooth(x).sum() * x.prod())(x)
    same(hessian(total)(x), plain)
    same(jacrev(jacrev(total))(x), plain)
    same(hvp(total, x, T([1.0, -2.0])), plain @ T([1.0, -2.0]))
    same(functional.hessian(total, x), plain)
    same(functional.hvp(total, x, T([1.0, -2.0]))[1], plain @ T([1.0, -2.0]))
    third = jacrev(hessian(lambda x: smooth(x).sum() * x.prod()))(x)
    same(jacrev(hessian(total))(x), third)
    same(jacrev(jacrev(jacrev(total)))(x), third)


def test_custom_jvp_in_forward_mode():
    f = with_jvp()
    y, t = jvp(f, (0.7,), (2.0,))
    assert (float(y), float(t)) == pytest.approx((EXACT[0], 2 * EXACT[1]), rel=1e-14)
    assert float(jacfwd(jacfwd(jacfwd(f)))(0.7)) == pytest.approx(EXACT[3], rel=1e-13)
    assert float(jacfwd(jacrev(f))(0.7)) == pytest.approx(EXACT[2], rel=1e-13)
    assert float(jacrev(jacfwd(f))(0.7)) == pytest.approx(EXACT[2], rel=1e-13)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(T(0.7), T(1.0))
        assert float(forward_ad.unpack_dual(f(dual)).tangent) == pytest.approx(EXACT[1], rel=1e-14)


def test_custom_vjp_has_no_forward_mode_but_that_of_its_recorded_pullback():
    f = with_vjp()
    with pytest.raises(TypeError, match=r"^can't apply forward-mode differentiation \(jvp\) to a custom_vjp function\."):
        jvp(f, (0.7,), (1.0,))
    with pytest.raises(TypeError, match="has a pullback only"):
        jacfwd(f)(0.7)
    _, t = jvp(grad(lambda x: f(x) ** 2), (0.7,), (1.0,))
    assert float(t) == pytest.approx(2 * EXACT[1] ** 2 + 2 * EXACT[0] * EXACT[2], rel=1e-13)
    assert float(jacfwd(jacrev(f))(0.7)) == pytest.approx(EXACT[2], rel=1e-13)
    y, t = functional.jvp(f, T(0.7), T(1.0))  # which is two pullbacks, as in torch
    assert float(t) == pytest.approx(EXACT[1], rel=1e-14)


def test_the_custom_rule_is_used_instead_of_the_derivative():
    straight = custom_vjp(lambda x: x.round())
    straight.defvjp(lambda x: (x.round(), None), lambda _, g: (g,))
    assert float(grad(lambda x: straight(x) ** 2)(1.7)) == 4  # 2 * round(x) * 1
    assert float(grad(grad(lambda x: straight(x) ** 2))(1.7)) == 2
    clipped = custom_vjp(lambda x: x)
    clipped.defvjp(lambda x: (x, None), lambda _, g: (g.clamp(-1, 1),))
    x = T([0.2, 3.0], requires_grad=True)
    (clipped(x) ** 2).sum().backward()
    assert x.grad.tolist() == [0.4, 1.0]


# Trees, and arguments that are no tensors


def tree_function(p, power, scale=2.0):
    y = (p["w"] @ p["x"]).tanh() * scale
    return {"sum": y.sum() ** power, "parts": (y * p["x"][0], power)}


def tree_with_vjp():
    f = custom_vjp(tree_function, nondiff_argnums=(1,))

    def fwd(p, power, scale):
        return tree_function(p, power, scale), (p, scale)

    def bwd(power, residuals, g):
        p, scale = residuals
        _, pull = vjp(lambda p: (tree_function(p, power, scale)["sum"], tree_function(p, power, scale)["parts"][0]), p)
        return pull((g["sum"], g["parts"][0]))[0], None

    f.defvjp(fwd, bwd)
    return f


def tree_with_jvp():
    f = custom_jvp(tree_function, nondiff_argnums=(1,))

    @f.defjvp
    def rule(power, primals, tangents):
        (p, scale), (dp, dscale) = primals, tangents
        assert float(dscale) == 0
        y, (total, part) = jvp(lambda p: (tree_function(p, power, scale)["sum"], tree_function(p, power, scale)["parts"][0]), (p,), (dp,))
        return {"sum": y[0], "parts": (y[1], power)}, {"sum": total, "parts": (part, None)}

    return f


def parameters():
    rng = np.random.default_rng(0)
    return {"w": T(rng.normal(size=(2, 3))), "x": T(rng.normal(size=3))}


def loss(f):
    def of(p):
        found = f(p, 2)
        assert found["parts"][1] == 2
        return found["sum"] * found["parts"][0].prod()

    return of


@pytest.mark.parametrize("make", [tree_with_vjp, tree_with_jvp])
def test_trees_of_arguments_and_outputs(make):
    p, f = parameters(), make()
    same(grad(loss(f))(p), grad(loss(tree_function))(p))
    same(hessian(loss(f))(p), hessian(loss(tree_function))(p))
    same(jacrev(jacrev(loss(f)))(p), hessian(loss(tree_function))(p))
    tangents = {"w": symgrad.ones(2, 3), "x": symgrad.ones(3)}
    same(hvp(loss(f), (p,), (tangents,)), hvp(loss(tree_function), (p,), (tangents,)))
    x = {name: t.clone().requires_grad_() for name, t in p.items()}
    f(p=x, power=2)["parts"][0].sum().backward()  # only one of the outputs is used
    y = {name: t.clone().requires_grad_() for name, t in p.items()}
    tree_function(y, 2)["parts"][0].sum().backward()
    same([t.grad for t in x.values()], [t.grad for t in y.values()])


@pytest.mark.parametrize("make", [tree_with_vjp, tree_with_jvp])
def test_batches(make):
    p, f = parameters(), make()
    xs = T(np.random.default_rng(1).normal(size=(4, 3)))

    def member(f):
        return lambda x: loss(f)({**p, "x": x})

    for transform in (lambda g: vmap(grad(g)), lambda g: vmap(hessian(g)), lambda g: grad(lambda xs: vmap(g)(xs).sum()),
                      lambda g: hessian(lambda xs: vmap(g)(xs).sum())):
        same(transform(member(f))(xs), transform(member(tree_function))(xs))

    def shared(f):
        return lambda w: vmap(lambda x: loss(f)({"w": w, "x": x}))(xs).sum()

    singly = [grad(lambda w, x=x: loss(tree_function)({"w": w, "x": x}))(p["w"]) for x in xs]
    same(grad(shared(f))(p["w"]), sum(singly[1:], singly[0]))
    same(hessian(shared(f))(p["w"]), hessian(shared(tree_function))(p["w"]))
    same(jacrev(grad(shared(f)))(p["w"]), hessian(shared(tree_function))(p["w"]))


def test_rules_for_each_argument():
    f = custom_jvp(lambda x, y, n: x.sin() * y + n)
    f.defjvps(lambda t, out, x, y, n: t * x.cos() * y, None, None)
    assert float(grad(f)(T(0.3), T(2.0), 5)) == pytest.approx(2 * np.cos(0.3), rel=1e-15)
    assert float(grad(f, 1)(T(0.3), T(2.0), 5)) == 0  # as stated
    assert float(grad(grad(f))(T(0.3), T(2.0), 5)) == pytest.approx(-2 * np.sin(0.3), rel=1e-15)
    none = custom_jvp(lambda x: x.sign())
    none.defjvps(None)
    assert float(grad(none)(2.0)) == 0
    with pytest.raises(TypeError, match="Can't use ``defjvps`` with ``nondiff_argnums``."):
        custom_jvp(smooth, nondiff_argnums=(0,)).defjvps(None)


def test_function_arguments_and_integers():
    @custom_vjp
    def applied(f, x, index):
        return f(x)[index]

    applied = custom_vjp(applied.fun, nondiff_argnums=(0,))
    applied.defvjp(lambda f, x, index: (f(x)[index], (x, index)), lambda f, r, g: (vjp(lambda x: f(x)[r[1]], r[0])[1](g)[0], None))
    x = T([1.0, 2.0, 3.0])
    assert grad(lambda x: applied(symgrad.exp, x, T([2, 0])).sum())(x).tolist() == [np.exp(1.0), 0, np.exp(3.0)]


def test_a_repeated_forward_draws_the_same_random_numbers():
    f = custom_vjp(lambda x: x)

    def fwd(x):
        noise = symgrad.rand(3)
        return noise * x**3, (noise, x)

    f.defvjp(fwd, lambda r, g: (g * r[0] * 3 * r[1] ** 2,))
    x = T([1.0, 2.0, 3.0], requires_grad=True)
    symgrad.manual_seed(0)
    y = f(x)
    noise = y.detach() / x.detach() ** 3
    (first,) = symgrad.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = symgrad.autograd.grad(first.sum(), x)
    same(second, 6 * noise * x.detach())
    drawn = symgrad.rand(1)
    symgrad.manual_seed(0)
    symgrad.rand(3)
    assert symgrad.rand(1).item() == drawn.item()  # and the generator went on as if nothing had run again


# Formulas and checks


@pytest.mark.sweep
@BOTH
def test_the_formula_is_that_of_the_primal_function(make):
    x = T(0.7, requires_grad=True, symbol="x")
    y = make()(x)
    assert y.expr == sympy.exp(sympy.sin(sympy.Symbol("x", real=True))) * sympy.Symbol("x", real=True)
    y.backward()
    assert sympy.simplify(x.grad.expr - sympy.diff(y.expr, sympy.Symbol("x", real=True))) == 0
    assert symgrad.check(make(), 0.7).verdict == "proved"


@pytest.mark.sweep
def test_a_wrong_rule_is_refuted():
    f = custom_vjp(smooth)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * (x.sin().exp() * (1.0001 + x * x.cos())),))
    assert symgrad.check(f, 0.7).verdict == "refuted"
    h = custom_jvp(smooth)
    h.defjvp(lambda p, t: (h(*p), t[0] * p[0]))
    assert symgrad.check(h, 0.7).verdict == "refuted"


# What is refused


def test_no_rule():
    with pytest.raises(AttributeError, match="No VJP defined for custom_vjp function smooth using defvjp."):
        custom_vjp(smooth)(T(1.0))
    with pytest.raises(AttributeError, match="No JVP defined for custom_jvp function smooth using defjvp."):
        custom_jvp(smooth)(T(1.0))


@pytest.mark.parametrize(("bwd", "words"), [
    (lambda r, g: g, "a tuple with a cotangent for each of the 2 differentiable arguments, but it returned Tensor"),
    (lambda r, g: (g,), "but it returned one of 1"),
    (lambda r, g: (g, g.sum()), r"the cotangent for p\['b'\] has shape \[\], but p\['b'\] has shape \[2\]"),
    (lambda r, g: (g, [g]), "must have the form"),
    (lambda r, g: (g + 1j, None), "the cotangent for x is complex, but x is real"),
])
def test_a_pullback_with_the_wrong_structure(bwd, words):
    f = custom_vjp(lambda x, p: x * p["b"])
    f.defvjp(lambda x, p: (x * p["b"], None), bwd)
    if "p['b']" in words or "p\\['b'" in words:
        f.bwd = lambda r, g: (bwd(r, g)[0], {"b": bwd(r, g)[1]})
    with pytest.raises(TypeError, match=words):
        grad(lambda x: f(x, {"b": x}).sum())(T([1.0, 2.0]))


def test_a_pushforward_with_the_wrong_structure():
    f = custom_jvp(lambda x: x * 2)
    f.defjvp(lambda p, t: (p[0] * 2, t[0].sum()))
    with pytest.raises(TypeError, match=r"the tangent for the output has shape \[\], but the output has shape \[2\]"):
        jvp(f, (T([1.0, 2.0]),), (T([1.0, 2.0]),))
    f.defjvp(lambda p, t: t[0])
    with pytest.raises(TypeError, match="must return a pair, the output and its tangent"):
        grad(lambda x: f(x).sum())(T([1.0, 2.0, 3.0]))
    g = custom_vjp(lambda x: x)
    g.defvjp(lambda x: x, lambda r, g: (g,))
    with pytest.raises(TypeError, match="must return a pair, the output and the residuals"):
        grad(g)(1.0)


@pytest.mark.parametrize("make", [custom_vjp, custom_jvp])
def test_a_captured_tensor(make):
    w = T(2.0, requires_grad=True)
    f = make(lambda x: x * w)
    if make is custom_vjp:
        f.defvjp(lambda x: (x * w, None), lambda _, g: (g * w,))
    else:
        f.defjvp(lambda p, t: (p[0] * w, t[0] * w))
    x = T(3.0, requires_grad=True)
    assert symgrad.autograd.grad(f(x), x)[0].item() == 2
    with pytest.raises(RuntimeError, match="differentiated with respect to a captured tensor"):
        f(x).backward()


def test_nondiff_arguments_must_not_be_differentiated():
    f = tree_with_jvp()
    with pytest.raises(TypeError, match="an argument at nondiff_argnums"):
        grad(lambda n: f(parameters(), n)["sum"])(2.0)


def test_keyword_only_arguments():
    @custom_vjp
    def f(x, *, n):
        return x * n

    f.defvjp(lambda x: (x, None), lambda r, g: (g,))
    with pytest.raises(TypeError, match="keyword arguments n cannot be resolved to positions"):
        f(T(1.0), n=2)


def test_without_a_graph_the_function_is_called_directly():
    f = with_vjp()
    calls = []
    f.fwd = lambda x: calls.append(1)
    assert float(f(T(0.7))) == pytest.approx(EXACT[0])
    with symgrad.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(T(0.7, requires_grad=True)).grad_fn is None
    assert not calls
