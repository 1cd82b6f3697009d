"""`autograd.Function`: errors and forward mode of our own, and formulas, which `check` proves or refutes by name."""

import numpy as np
import pytest
import sympy

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import grad
from symgrad.autograd.function import once_differentiable
from tests.support.functions import Two, function_of, leaf


def quartic():
    """x³ by a forward that leaves x² for its backward."""
    return function_of(lambda ctx, x: setattr(ctx, "square", x * x) or x ** 3, lambda ctx, g: g * 3 * ctx.square)


def test_errors_whose_text_differs_from_pytorch():
    x, z = leaf(1.0, 2.0), tensor([1.0 + 1.0j], requires_grad=True)
    with pytest.raises(RuntimeError, match="BadBackward: gradient 1 .*complex128"):
        grad(function_of(lambda ctx, x: x * 1, lambda ctx, g: g * 1j).apply(x).sum(), x)
    Real = function_of(lambda ctx, z: z * 1, lambda ctx, g: g.abs())
    assert grad(Real.apply(z), z, symgrad.ones(1, dtype=z.dtype))[0].dtype is z.dtype

    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="mark_dirty"):
        function_of(forward, lambda ctx, g: g).apply(x)


def test_forward_mode_by_the_recorded_forward():
    """Without a `jvp` the tangents go through the recorded forward, also to be differentiated again."""
    fw = autograd.forward_ad
    Quartic = quartic()
    x = leaf(2.0)
    with fw.dual_level():
        dual = fw.make_dual(x, tensor(1.0))
        slope = fw.unpack_dual(Quartic.apply(dual) * dual).tangent
        parts = [fw.unpack_dual(t).tangent for t in Two.apply(dual, dual)]
    assert slope.item() == 32.0 and grad(slope, x)[0].item() == 48.0
    assert [t.item() for t in parts] == [4.0, 2.0]


class SineByNumPy(autograd.Function):
    @staticmethod
    def forward(x):
        return symgrad.from_numpy(np.sin(x.numpy()))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0].cos()

    @staticmethod
    def vmap(info, in_dims, x):
        return SineByNumPy.apply(x), in_dims[0]


def test_a_forward_may_take_the_array_of_a_tensor_that_requires_grad():
    """Grad mode is off in forward, where nothing can be lost; in grad mode it is refused, as in torch."""
    x = symgrad.tensor([0.3, 0.7, 1.1], requires_grad=True)
    with symgrad.no_grad():
        assert np.shares_memory(x.numpy(), x.detach().numpy()) and np.asarray(x).tolist() == [0.3, 0.7, 1.1]
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    SineByNumPy.apply(x).sum().backward()
    assert np.allclose(x.grad.numpy(), np.cos([0.3, 0.7, 1.1]))
    x = x.detach()
    f = symgrad.func
    for jacobian in (f.jacrev(SineByNumPy.apply), f.jacfwd(SineByNumPy.apply), lambda x: f.vmap(f.grad(SineByNumPy.apply))(x).diag()):
        assert np.allclose(jacobian(x).numpy(), np.diag(np.cos(x.numpy())))
    for chunk_size in (None, 1, 2):
        second = f.hessian(lambda x: SineByNumPy.apply(x).sum(), chunk_size=chunk_size)(x)
        assert np.allclose(second.numpy(), -np.diag(np.sin(x.numpy())))


class Cube(autograd.Function):
    """x³, with what is left on ctx."""

    @staticmethod
    def forward(ctx, x):
        ctx.square = x * x
        return ctx.square * x

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.square


class Declared(autograd.Function):
    """x³ by numbers, with its formula declared."""

    @staticmethod
    def forward(ctx, x, power=3):
        ctx.save_for_backward(x)
        return symgrad.from_numpy(np.asarray(x.detach().numpy() ** power))

    @staticmethod
    def backward(ctx, g, *rest):
        return g * 3 * ctx.saved_tensors[0] ** 2, *(None for _ in ctx.needs_input_grad[1:])

    @staticmethod
    def symbolic(xp, x, power=3):
        return x ** power


def symbol(name):
    return sympy.Symbol(name, real=True)


@pytest.mark.parametrize("F", [Cube, Declared])
def test_formulas_pass_through(F):
    x, s = tensor(2.0, requires_grad=True, symbol="x"), symbol("x")
    y = F.apply(x.sin())
    assert y.expr == sympy.sin(s) ** 3
    y.backward()
    assert x.grad.expr == 3 * sympy.sin(s) ** 2 * sympy.cos(s)
    (g,) = grad(x * F.apply(x), x, create_graph=True)
    assert sympy.expand(g.expr - 4 * s ** 3) == 0 and sympy.expand(grad(g, x)[0].expr - 12 * s ** 2) == 0
    v = tensor([1.0, 2.0], requires_grad=True, symbol="v")
    assert F.apply(v).expr.tolist() == [symbol("v_0") ** 3, symbol("v_1") ** 3]
    assert F.apply(x).assignments()[-1][1] == s ** 3


def test_formulas_of_several_outputs_branches_and_parameters():
    x, y = symgrad.symbols("x y", [2.0, 3.0])
    a, b = symbol("x"), symbol("y")
    p, q = Two.apply(x, y)
    assert (p.expr, (p * q).expr) == (a * b, a * b * (a + b))
    assert sympy.expand(grad(p * q, x, retain_graph=True)[0].expr - (2 * a * b + b ** 2)) == 0
    assert (p * q).assignments()[-1][1] == symbol("v1") * symbol("v2") and len(grad(p * q, x)[0].assignments()) > 1
    assert Declared.apply(x, 3).expr == a ** 3
    Relu = function_of(lambda ctx, x: setattr(ctx, "mask", x > 0) or symgrad.where(ctx.mask, x, 0 * x),
                       lambda ctx, g: symgrad.where(ctx.mask, g, 0 * g))
    assert Relu.apply(x).expr == sympy.Piecewise((a, a > 0), (0, True))


def test_a_function_without_a_formula_says_so():
    x = tensor(2.0, requires_grad=True, symbol="x")
    Numbers = type("Numbers", (autograd.Function,), {"forward": Declared.forward, "backward": Declared.backward})
    with pytest.raises(RuntimeError, match=r"Numbers: this Function has no formula: .* symbolic\(xp, ...\)"):
        _ = Numbers.apply(x).expr
    report = symgrad.check(lambda x: Numbers.apply(x), 2.0, points=3)
    assert report.verdict == "not checkable" and "symbolic" in report.reason


@pytest.mark.sweep
@pytest.mark.parametrize("F", [Cube, Declared])
def test_a_right_function_is_proved(F):
    assert symgrad.check(lambda x: F.apply(x), 2.0, points=3).verdict == "proved"
    report = symgrad.check(lambda x, y: (F.apply(x * y).sin() + x) * F.apply(y), 1.5, 0.5, points=3)
    assert report.ok, report


@pytest.mark.sweep
def test_a_backward_that_writes_in_place_is_verified():
    def backward(ctx, g):
        g = g.clone()
        g[ctx.x < 0] = 0
        return g

    Relu = function_of(lambda ctx, x: setattr(ctx, "x", x) or x.clamp(min=0), backward)
    assert symgrad.check(lambda x: (Relu.apply(x) * x).sum(), [2.0, -1.0], points=3).ok


@pytest.mark.sweep
@pytest.mark.parametrize("inside", [False, True])
def test_a_wrong_function_is_refuted_by_name(inside):
    def backward(ctx, g):
        return g * 3 * ctx.square * (1 + 1e-9)

    Wrong = type("Wrong", (Cube,), {"backward": staticmethod(backward)})
    function = (lambda x, y: (Wrong.apply(x * y).sin() + x) * y) if inside else lambda x: Wrong.apply(x)
    report = symgrad.check(function, *(2.0, 1.5)[:1 + inside], points=3)
    assert report.verdict == "refuted" and report.counterexample.op == "Wrong" and report.counterexample.where.startswith("df/d")
    assert "Wrong is wrong" in report.reason


@pytest.mark.sweep
def test_a_function_that_is_wrong_only_at_the_second_order():
    Cut = function_of(lambda ctx, x: ctx.save_for_backward(x) or x ** 3, lambda ctx, g: g * 3 * ctx.saved_tensors[0].detach() ** 2, "Cut")
    assert symgrad.check(lambda x: Cut.apply(x) * x, 2.0, order=1, points=3).ok
    report = symgrad.check(lambda x: Cut.apply(x) * x, 2.0, points=3)
    assert report.verdict == "refuted" and report.counterexample.op == "Cut" and report.counterexample.where.startswith("d2f")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("symbolic", "where"), [(lambda xp, x: x ** 3 + 1, ""), (lambda xp, x: x ** 2, "f"), (lambda xp, x: x ** 3 * 1.001, "f")])
@pytest.mark.parametrize("inside", [False, True])
def test_a_declared_formula_that_is_another_one_is_refuted(symbolic, where, inside):
    Lies = type("Lies", (Declared,), {"symbolic": staticmethod(symbolic)})
    report = symgrad.check((lambda x: Lies.apply(x) * x) if inside else lambda x: Lies.apply(x), 2.0, points=3)
    assert report.verdict == "refuted" and report.counterexample.op == "Lies" and "Lies declares a formula with another value" in report.reason


def test_not_checkable_functions_have_a_reason():
    Once = type("Once", (Cube,), {"backward": staticmethod(once_differentiable(Cube.backward))})
    assert symgrad.check(lambda x: Once.apply(x), 2.0, order=1, points=3).ok
    report = symgrad.check(lambda x: Once.apply(x), 2.0, points=3)
    assert report.verdict == "not checkable" and "once_differentiable" in report.reason
    report = symgrad.check(lambda x, y: Two.apply(x, y)[0], 2.0, 3.0, points=3)
    assert report.verdict in ("not checkable", "proved", "verified")
