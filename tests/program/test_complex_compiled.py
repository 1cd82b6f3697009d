"""Compiled derivatives of real functions that are computed through complex numbers, and the dtypes of all compiled results."""

import warnings

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.carriers.lapack import hermitian_parts
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from symgrad.trees import flatten
from tests.support.claims import ALL_CASES, OF_PARTS, attack_on, name_of
from tests.support.complex_functions import CASES as FUNCTIONS

DTYPES = ("float32", "float16", "bfloat16", "complex128", "uint8", "bool")
ONE_OF_EACH = list({op.name: (op, parameters) for op, parameters in ALL_CASES}.values())
ROUTES = {  # of a scalar function of a vector, with a direction
    "gradient": lambda f, t, v: func.grad(f)(t),
    "hessian": lambda f, t, v: func.hessian(f)(t) @ v,
    "hvp": lambda f, t, v: func.hvp(f, t, v),
    "grad of grad": lambda f, t, v: func.grad(lambda s: (func.grad(f)(s) * v).sum())(t),
    "vjp of grad": lambda f, t, v: func.vjp(func.grad(f), t)[1](v)[0],
    "jvp of grad": lambda f, t, v: func.jvp(func.grad(f), (t,), (v,))[1],
    "linearize of grad": lambda f, t, v: func.linearize(func.grad(f), t)[1](v),
    "third": lambda f, t, v: func.grad(lambda s: (func.grad(lambda u: (func.grad(f)(u) * v).sum())(s) * v).sum())(t),
}
SECOND = [name for name in ROUTES if name not in ("gradient", "third")]
T, V = np.array([0.13, -0.37]), np.array([0.61, -1.27])
STEP = 2.0**-8


def forms(tree):
    return [(y.dtype, tuple(y.shape)) for y in flatten(tree)[0] if isinstance(y, Tensor)]


def disagreements(f, routes=tuple(ROUTES)):
    """What compiled routes give other than the same ones uncompiled, and second derivatives other than differences of gradients."""
    out = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t, v = symgrad.tensor(T), symgrad.tensor(V)
        slopes = [func.grad(f)(t + k * STEP * v).numpy() for k in (-2, -1, 1, 2)]
        difference = (slopes[0] - 8 * slopes[1] + 8 * slopes[2] - slopes[3]) / (12 * STEP)
        for name in routes:
            route = ROUTES[name]
            try:
                expected = route(f, t, v)
            except NotImplementedError:
                continue
            compiled = symgrad.compile(lambda t, v, route=route: route(f, t, v), derivatives="value", backend="numpy")
            found = [compiled(t, v), compiled(t, v)][1]
            assert not [row for row in compiled.report.uncompiled if "not ordered" not in row["reason"]], compiled.report
            size = np.abs(expected.numpy()).max(initial=1e-3)
            if found.dtype != expected.dtype or not np.allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9 * size, equal_nan=True):
                out[name] = found, expected
            if name in SECOND and np.isfinite(difference).all() and not np.allclose(found.numpy(), difference, rtol=1e-4, atol=1e-4 * size):
                out[name, "difference"] = found, difference
    return out


def complex_of(op, parameters):
    """The op of complex numbers that depend on two real ones, as a real function; None if it takes none."""
    attack = attack_on(op, parameters, "dev")
    try:
        xs = attack.examples("points")[0].xs
    except Exception:  # no example of the kind exists for this op
        return None
    rng, given = np.random.default_rng(len(op.name)), []
    for x in xs:
        parts = rng.uniform(0.3, 0.9, (4, *x.shape)) * rng.choice([-1, 1], (4, *x.shape))
        moving = np.clip(x, -1.1, 1.1) + 0.07 + 1j * parts[0], parts[1] + 0.3j * parts[2], 1j * parts[3]
        given.append(wrap(x) if x.dtype.kind not in "fc" else tuple(wrap(np.asarray(c.real if op.name in OF_PARTS else c)) for c in moving))

    def values(t):
        found = attack.subject.call([x if isinstance(x, Tensor) else x[0] + t[0] * x[1] + t[1] * x[2] for x in given])
        return [y for y in flatten(found)[0] if isinstance(y, Tensor) and y.requires_grad]

    def real(t):
        total = 0.0
        for y in values(t):
            weights = wrap(np.linspace(0.7, -1.3, y.numel()).reshape(y.shape) * (1 - 0.4j))
            total = total + ((y * weights).real + y.abs() ** 2 / 3 if y.is_complex() else y * weights.real).sum()
        return total

    try:
        with np.errstate(all="ignore"):
            usable = bool(values(symgrad.tensor(T).requires_grad_())) and bool(np.isfinite(func.grad(real)(symgrad.tensor(T)).numpy()).all())
    except Exception:  # the op does not take complex numbers, or has no derivative for them
        return None
    return real if usable else None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_through_complex_numbers(name):
    function, point = FUNCTIONS[name]
    ts = [np.asarray(p) for p in point]

    def f(t):
        return function(*[wrap(p) + t[0] * wrap(np.full(p.shape, 0.1 + 0.2 * i)) + t[1] * wrap(np.full(p.shape, 0.3)) for i, p in enumerate(ts)])

    assert not disagreements(f)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("op", "parameters"), [pytest.param(op, parameters, id=name_of(op, parameters)) for op, parameters in ONE_OF_EACH
                                                if "c" not in op.numerics.refuses])
def test_ops_of_complex_numbers(op, parameters):
    with hermitian_parts():  # by one triangle, a gradient is no derivative of the value
        f = complex_of(op, parameters)
        assert f is None or not disagreements(f, ("grad of grad", "jvp of grad", "third"))


ENDS = (symgrad.abs, symgrad.angle, symgrad.real, symgrad.imag, lambda z: symgrad.stack([z, 0.7 - z * z]).norm(),
        lambda z: symgrad.stack([z, z * 1j, 1 / z]).std(), lambda z: symgrad.stack([z, z * z, z - 1j]).var())


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(30))
def test_compositions(seed):
    rng = np.random.default_rng(seed)
    elementwise = [op for op in REGISTRY.values() if op.kind == "elementwise" and op.arity in (1, 2) and op.surface.public
                   and "c" not in op.numerics.refuses and COMPLEX not in op.domain and not op.selects and op.name not in OF_PARTS]

    def chain(steps, z):
        known = [z]
        for op, places in steps:
            y = core(op)(*[known[k % len(known)] for k in places[:op.arity]])
            known.append(y / (1 + y.abs()) + known[-1] / 3)
        return known[-1]

    while True:
        steps = [(elementwise[rng.integers(len(elementwise))], rng.integers(9, size=2)) for _ in range(rng.integers(2, 6))]
        end, c = ENDS[rng.integers(len(ENDS))], rng.normal(size=(4, 2)).round(3)

        def f(t, steps=steps, end=end, c=c):
            return end(chain(steps, symgrad.complex(c[0, 0] + c[1, 0] * t[0] + t[1] / 3, c[0, 1] + (t[0] * t[1] * c[2, 0]).sin() + c[2, 1] * t[1])))

        try:
            with np.errstate(all="ignore"):
                if np.isfinite(func.hessian(f)(symgrad.tensor(T)).numpy()).all():
                    break
        except Exception:  # an op that does not take complex numbers
            continue
    assert not disagreements(f)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("op", "parameters"), [pytest.param(op, parameters, id=name_of(op, parameters)) for op, parameters in ONE_OF_EACH])
def test_dtypes(op, parameters):
    """A compiled result has the dtype and the shape of the eager one, for arguments of every dtype that the op takes."""
    attack = attack_on(op, parameters, "dev")

    def f(*tensors):
        return attack.subject.call(list(tensors))

    xs = attack.examples("points")[0].xs
    for name in DTYPES:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensors = [wrap(x).to(getattr(symgrad, name)) if x.dtype.kind in "fc" else wrap(x) for x in xs]
            if COMPLEX in op.domain and not tensors[0].is_complex():
                continue
            try:
                expected = f(*tensors)
            except Exception:  # the op does not take this dtype
                continue
            found = symgrad.compile(f, derivatives="value", backend="numpy")(*tensors)
        assert forms(found) == forms(expected), name
