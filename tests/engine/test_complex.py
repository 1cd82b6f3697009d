"""The ops on parts of complex numbers: adjoints over the real numbers, every memory layout, and the exact carriers."""

import cmath

import numpy as np
import pytest
import sympy

import symgrad
from symgrad import autograd, func
from symgrad.carriers import numeric, precise, symbolic
from symgrad.engine.recording import core
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from tests.support.claims import OF_SPECTRA

OPS = {op.name: op for op in REGISTRY.values() if COMPLEX in op.domain and op.name not in OF_SPECTRA}
REAL_INPUT = {"complex": 2, "polar_parts": 2, "view_as_complex": 1, "fourier_of_real": 1}


def numbers(name, rng):
    """Arguments of an op: parts that are real, or complex numbers."""
    shape = (3, 2)
    if name in REAL_INPUT:
        return [rng.standard_normal(shape) for _ in range(REAL_INPUT[name])]
    return [rng.standard_normal(shape) + 1j * rng.standard_normal(shape)]


def random_like(rng, x):
    """An array of the shape and kind of another."""
    return rng.standard_normal(np.shape(x)) + (1j * rng.standard_normal(np.shape(x)) if np.iscomplexobj(x) else 0)


def product(a, b):
    """The inner product over the real numbers."""
    return float(np.sum(np.real(np.conj(a) * b)))


def test_every_op_on_parts_is_tested():
    assert set(OPS) == {"view_as_real", "view_as_complex", "conjugate", "complex", "polar_parts", "angle_of_complex", "dft", "fourier",
                        "fourier_of_real", "fourier_to_real"}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("layout", ["plain", "strided", "columns"])
def test_pullback_is_the_adjoint_of_pushforward(name, layout):
    op, rng = OPS[name], np.random.default_rng(0)
    xs = numbers(name, rng)
    if layout == "strided":
        xs = [np.repeat(x, 2, 0)[::2] for x in xs]
    if layout == "columns":
        xs = [np.asfortranarray(x) for x in xs]
    rest = (op.docs.examples or ((),))[-1]
    y = op.forward(numeric, *xs, *rest)
    ts, g = [random_like(rng, x) for x in xs], random_like(rng, y)
    pulled = op.vjp(numeric, g, y, (*xs, *rest), (True,) * len(xs))
    pushed = op.jvp(numeric, ts, y, (*xs, *rest))
    assert pushed.shape == y.shape and np.iscomplexobj(pushed) == np.iscomplexobj(y)
    for c, x in zip(pulled, xs):
        assert c.shape == x.shape and np.iscomplexobj(c) == np.iscomplexobj(x)
    assert product(g, pushed) == pytest.approx(sum(product(c, t) for c, t in zip(pulled, ts)), rel=1e-13, abs=1e-14)
    step = 1e-6
    moved = op.forward(numeric, *(x + step * t for x, t in zip(xs, ts)), *rest) - op.forward(numeric, *(x - step * t for x, t in zip(xs, ts)), *rest)
    assert np.allclose(moved / (2 * step), pushed, rtol=0, atol=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", OPS)
def test_exact_carriers_agree_with_the_numeric_one(name):
    op, xs = OPS[name], numbers(name, np.random.default_rng(1))
    rest = (op.docs.examples or ((),))[-1]
    value = np.asarray(op.forward(numeric, *xs, *rest))
    digits = np.asarray(op.forward(precise, *map(precise.lift_value, xs), *rest))
    formula = np.asarray(op.forward(symbolic, *(symbolic.lift_value(x, exact=True) for x in xs), *rest))
    assert digits.shape == formula.shape == value.shape
    for a, b, c in zip(value.ravel(), digits.ravel(), formula.ravel()):
        assert abs(a - complex(b)) <= 1e-15 * abs(a) and abs(a - complex(sympy.N(c, 30))) <= 1e-15 * abs(a)


def test_views_of_parts_are_written_through():
    z = symgrad.tensor([1 + 2j, 3 - 1j])
    z.real.add_(10.0)
    z.imag[0] = 0.5
    assert z.tolist() == [11 + 0.5j, 13 - 1j]
    pairs = symgrad.view_as_real(z)
    pairs.zero_()
    assert z.tolist() == [0j, 0j] and symgrad.view_as_complex(pairs).data_ptr() == z.data_ptr()


def test_formulas_of_real_and_imaginary_parts():
    x = symgrad.tensor(2.0, symbol="x")
    z = symgrad.complex(x, 2 * x)
    assert sympy.simplify(z.abs().square().expr - 5 * sympy.Symbol("x", real=True) ** 2) == 0
    assert z.imag.expr == 2 * sympy.Symbol("x", real=True)


def test_second_derivatives_of_abs_in_both_modes():
    def length(t):
        return symgrad.abs(symgrad.complex(symgrad.cos(t), 2 * symgrad.sin(t)))

    s = sympy.Symbol("s")
    formula, forward, reverse, at = sympy.sqrt(sympy.cos(s) ** 2 + 4 * sympy.sin(s) ** 2), length, length, symgrad.tensor(0.4)
    for _ in range(3):
        formula = sympy.diff(formula, s)
        forward, reverse = _along(forward), symgrad.func.grad(reverse)
        expected = float(formula.subs(s, sympy.Float(0.4, 30)))
        assert forward(at).item() == pytest.approx(expected, rel=1e-13) and reverse(at).item() == pytest.approx(expected, rel=1e-13)


def _along(f):
    return lambda t: symgrad.func.jvp(f, (t,), (symgrad.ones_like(t),))[1]


def test_variance_and_std_of_complex_tensors_are_real():
    z = symgrad.tensor([1 + 1j, -0.5 + 0.3j], requires_grad=True)
    variance = symgrad.var(z)
    assert not variance.is_complex() and variance.item() == pytest.approx(1.37) and symgrad.std(z).item() == pytest.approx(1.37**0.5)
    (gradient,) = autograd.grad(variance, z)
    assert symgrad.allclose(gradient, symgrad.tensor([1.5 + 0.7j, -1.5 - 0.7j]))
    tangent = symgrad.tensor([1j, 1.0 + 0j])
    for f in (symgrad.var, symgrad.std, symgrad.norm):
        along = symgrad.func.jvp(f, (z.detach(),), (tangent,))[1]
        step = 1e-6
        moved = f(z.detach() + step * tangent) - f(z.detach() - step * tangent)
        assert not along.is_complex() and along.item() == pytest.approx(moved.item() / (2 * step), abs=1e-9)


def test_complex_of_half_precision_parts_is_complex64():
    """Parts of 16 bits become numbers of 32, and their gradients come back in the type of the parts."""
    a = symgrad.tensor([1.0, 2.0], dtype=symgrad.float16, requires_grad=True)
    z = symgrad.complex(a, 2 * a)
    z.imag.sum().backward()
    assert z.dtype == symgrad.complex64 and a.grad.dtype == symgrad.float16 and a.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match=r"view_as_complex.*float32"):
        symgrad.view_as_complex(symgrad.ones(3, 2, dtype=symgrad.bfloat16))


def test_angle_and_sign_of_complex_numbers_at_zero_and_far_from_it():
    """At 0 the derivatives are 0 in both modes; elsewhere they neither overflow nor underflow."""
    for f in (symgrad.angle, lambda z: symgrad.view_as_real(symgrad.sgn(z)).sum(-1)):
        z = symgrad.tensor([0j, 3 + 4j], requires_grad=True)
        (g,) = symgrad.autograd.grad(f(z).sum(), z, create_graph=True)
        assert g[0].item() == 0 and g[1].item() != 0
        (second,) = symgrad.autograd.grad(g.abs().square().sum(), z)
        assert second[0].item() == 0 and second.isfinite().all()
        _, t = symgrad.func.jvp(f, (z.detach(),), (symgrad.tensor([1 + 1j, 1 + 1j]),))
        assert t[0].item() == 0 and t.isfinite().all()
    for size in (1e-200, 1e200):
        z = symgrad.tensor(complex(3 * size, 4 * size), requires_grad=True)
        (g,) = symgrad.autograd.grad(symgrad.angle(z), z)
        assert abs(g.item() * size - (-0.16 + 0.12j)) < 1e-15


@pytest.mark.parametrize("base", [-2.0, -0.5, 3.0])
def test_complex_powers_of_real_numbers_on_the_cut_of_the_logarithm(base):
    """d bᶻ / dz = bᶻ log b, in which log b of a negative b is above the cut, also in the conjugated map and in second derivatives."""
    z, number = symgrad.tensor(0.3 + 0.7j, requires_grad=True), 0.3 + 0.7j
    b = symgrad.tensor(base, requires_grad=True)
    value, log = complex(base) ** number, cmath.log(complex(base))
    for power in (b**z, base**z):
        for part, factor in ((power.real, 1), (power.imag, 1j)):
            (first,) = symgrad.autograd.grad(part, z, retain_graph=True, create_graph=True)
            assert first.item() == pytest.approx((value * log * factor.conjugate()).conjugate(), rel=1e-13)
            (second,) = symgrad.autograd.grad(first.real, z, retain_graph=True)
            assert second.item() == pytest.approx((value * log * log * factor.conjugate()).conjugate(), rel=1e-13)
    (by_base,) = symgrad.autograd.grad((b**z).real, b)
    assert by_base.item() == pytest.approx((number * value / base).real, rel=1e-13)


Z = symgrad.tensor([1j, 0.3 + 2j, -0.7 + 0j])


def test_the_gradient_is_complex():
    f = lambda z: core(REGISTRY["square_of_abs"])(z, None).sum()  # noqa: E731
    z = Z.clone().requires_grad_()
    f(z).backward()
    for found in (z.grad, func.grad(f)(Z), symgrad.autograd.grad(f(z), z, create_graph=True)[0].detach(), func.vmap(func.grad(f))(Z[None])[0]):
        np.testing.assert_allclose(found.numpy(), 2 * Z.numpy(), rtol=1e-15)
