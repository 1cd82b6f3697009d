"""Real functions that compute with complex numbers: values, formulas and differences agree, and `check` gives verdicts on them."""

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from symgrad import autograd
from tests.support.complex_functions import CASES
from tests.support.functions import saving

FACTORS = (1.0, 0.8, 1.3)  # of the point of a case


def _evaluated(e, values):
    """A formula at numbers, in 40 digits."""
    with mpmath.workdps(40):
        number = mpmath.mpmathify(sympy.lambdify(list(values), e, "mpmath")(*values.values()))
        assert abs(number.imag) <= 1e-20
        return float(number.real)


def _by_equations(lines, values):
    """The last elements of a list of equations, computed one after the other in complex numbers."""
    known = dict(values)
    with mpmath.workdps(40):
        for symbol, expression in lines:
            inside = sorted(expression.free_symbols, key=str)
            known[symbol] = sympy.lambdify(inside, expression, "mpmath")(*(known[s] for s in inside))
    return known


def _differences(f, xs, order):
    """The gradient or, for order 2, the Hessian, by central differences of values or of numeric gradients."""
    flat = np.concatenate([np.ravel(x) for x in xs])

    def split(vector):
        ends = np.cumsum([np.size(x) for x in xs])[:-1]
        return [symgrad.tensor(part.reshape(np.shape(x)), dtype=symgrad.float64, requires_grad=True) for part, x in zip(np.split(vector, ends), xs)]

    def below(vector):
        leaves = split(vector)
        y = f(*leaves)
        if order == 1:
            return y.item()
        return np.concatenate([np.ravel(g.numpy()) for g in autograd.grad(y, leaves)])

    step = 1e-5
    return np.array([(below(flat + step * u) - below(flat - step * u)) / (2 * step) for u in np.eye(flat.size)])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("factor", FACTORS)
def test_numbers_and_formulas_and_differences_agree(name, factor):
    f, xs = CASES[name]
    xs = [np.float64(factor) * x for x in xs]
    leaves = [symgrad.tensor(x, requires_grad=True, symbol=s) for x, s in zip(xs, "xyz")]
    symbols = [sympy.Symbol(n, real=True) for leaf, s in zip(leaves, "xyz")
               for n in ([s] if not leaf.ndim else [f"{s}_{i}" for i in range(leaf.numel())])]
    values = dict(zip(symbols, (mpmath.mpf(float(v)) for v in np.concatenate([np.ravel(x) for x in xs]))))
    y = f(*leaves)
    assert _evaluated(y.expr, values) == pytest.approx(y.item(), rel=1e-6 if name == "float32" else 1e-12)
    gradient = autograd.grad(y, leaves, create_graph=True)
    rough = {"rel": 1e-5, "abs": 1e-6} if name == "float32" else {"rel": 1e-11, "abs": 1e-12}
    if name != "float32":
        numbers = np.concatenate([np.ravel(g.detach().numpy()) for g in gradient])
        assert numbers == pytest.approx(_differences(f, xs, 1), rel=1e-6, abs=1e-8)
    rows = []
    for g in gradient:
        formulas = np.ravel(np.array(g.expr.tolist() if g.ndim else g.expr, dtype=object))
        known = _by_equations(g.assignments(), values)
        ends = [known[symbol] for symbol, _ in g.assignments()[-g.numel():]]
        for i, (formula, end) in enumerate(zip(formulas, ends, strict=True)):
            part = g.reshape(-1)[i]
            assert _evaluated(formula, values) == pytest.approx(part.item(), **rough)
            assert complex(end) == pytest.approx(part.item(), **rough)
            second = autograd.grad(part, leaves, retain_graph=True, materialize_grads=True)
            rows.append(np.concatenate([np.ravel(h.numpy()) for h in second]))
            for h in second:
                again = np.ravel(np.array(h.expr.tolist() if h.ndim else h.expr, dtype=object))
                assert [_evaluated(e, values) for e in again] == pytest.approx(np.ravel(h.numpy()).tolist(), **rough)
    if name != "float32":
        assert np.array(rows) == pytest.approx(_differences(f, xs, 2), rel=1e-6, abs=1e-7)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CASES)
def test_check_decides(name):
    f, xs = CASES[name]
    report = symgrad.check(f, *xs, order=2, points=6)
    assert report.verdict in ("proved", "verified"), report.reason


# exp(i x) with the derivative exp(i x), which lacks the factor i; z³ whose backward lacks the conjugate; |z| whose backward omits the imaginary part.
WrongTurn = saving(lambda x: symgrad.exp(1j * x), lambda g, x: (g * symgrad.exp(1j * x).conj()).real, "WrongTurn")
WithoutConjugate = saving(lambda z: z**3, lambda g, z: g * 3 * z**2, "WithoutConjugate")
RealPartOnly = saving(lambda z: z.abs(), lambda g, z: g * z.real / z.abs() + 0j, "RealPartOnly")
RightCube = saving(lambda z: z**3, lambda g, z: g * (3 * z**2).conj(), "RightCube")
WRONG = {
    "turn": lambda x: WrongTurn.apply(x).real,
    "conjugate": lambda x: WithoutConjugate.apply(x + 0.5j).imag,
    "real part": lambda x: RealPartOnly.apply(symgrad.exp((0.2 + 1j) * x)),
    "twice": lambda x: (WithoutConjugate.apply(x + 0.5j) * x).abs(),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_through_complex_numbers_is_refuted(name):
    report = symgrad.check(WRONG[name], 0.7, order=1, points=6)
    assert report.verdict == "refuted", report.reason


@pytest.mark.sweep
def test_a_right_function_through_complex_numbers_is_not_refuted():
    report = symgrad.check(lambda x: RightCube.apply(x + 0.5j).imag, 0.7, order=2, points=6)
    assert report.verdict in ("proved", "verified"), report.reason


def test_gradients_of_real_leaves_have_real_formulas():
    x = symgrad.tensor(0.7, requires_grad=True, symbol="x")
    symgrad.exp(1j * x).real.backward()
    assert x.grad.expr == -sympy.sin(sympy.Symbol("x", real=True))
