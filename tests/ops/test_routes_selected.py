"""Behind an op that selects every derivative by what it has not selected is 0, also where the function that follows has an infinite slope.

The ops are found by their derivatives: one that is zero at a point and at all points near it is a selection, one that is zero at a point is not.
"""

import math

import numpy as np
import pytest
import sympy

import symgrad
from symgrad import func
from symgrad.carriers import numeric, precise
from symgrad.engine.recording import core
from symgrad.graph.domains import REAL
from symgrad.graph.modes import in_mode
from symgrad.graph.op import REGISTRY
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run
from tests.support.points import arrays, differentiable, domain, examples, numbers, of_numbers
from tests.support.routes import GRADIENTS, HESSIANS, TRACES, array, remembered

tensor = symgrad.tensor
OUTER = {
    "sqrt": lambda u: u.sqrt(), "log": lambda u: u.log(), "reciprocal": lambda u: 1 / u, "power": lambda u: u ** (1 / 3),
    "rsqrt": lambda u: u.rsqrt(), "root of abs": lambda u: u.abs() ** 0.37, "entropy": lambda u: u.log() * u.sqrt(),
    "log of root": lambda u: u.sqrt().log(),
    "two roots": lambda u: u.sqrt() + (3 * u) ** 0.4, "quotient": lambda u: u / u, "relu": lambda u: u.relu().sqrt(),
}


def many_digits(f, x, order):
    """Derivatives by the rules in many digits, which `check`, `accuracy` and `gradcheck` compare with the formula."""
    x = x.clone().requires_grad_()
    with in_mode(keep_values=True):
        run = Run([x], f(x), None)
    with precise.working_precision(30):
        parts = [*run.read(RecordingCarrier(precise, precise.lift_value), [x.detach().numpy()], order)]
        return np.reshape([float(box.value.ravel()[i].item()) for index, box, i in parts if len(index) == order], x.shape * order)


GRADIENTS = GRADIENTS | {"compile": lambda f, x: symgrad.compile(func.grad(f))(x),
                         "compiled twice": remembered(lambda f: symgrad.compile(func.grad(f))),
                         "compile of jacfwd": lambda f, x: symgrad.compile(func.jacfwd(f))(x), "many digits": lambda f, x: many_digits(f, x, 1)}
HESSIANS = HESSIANS | {"Hessian in many digits": lambda f, x: many_digits(f, x, 2), "compile": lambda f, x: symgrad.compile(func.hessian(f))(x)}
SHORT = ("backward", "create_graph", "jvp", "jet", "forward_ad", "vmap of grad", "compile", "hessian",
         "grad of autograd.grad", "laplacian", "many digits")
ELEMENTWISE = [op for op in REGISTRY.values() if op.kind == "elementwise" and any(map(callable, op.partials)) and of_numbers(op)]
SELECTING, OTHER = [op for op in ELEMENTWISE if op.selects], [op for op in ELEMENTWISE if not op.selects]
ARRAYS = [op for op in REGISTRY.values() if op.kind in ("primitive", "linear") and op.selects]


def regions(op, parameters, rng, count):
    """Points of moderate numbers in regions where a partial derivative of an elementwise op is 0, with the number of the argument."""
    columns = []
    for d in [domain(op, i) for i in range(op.arity)]:
        drawn = numbers(d, rng, count)
        columns.append([*drawn, *[0.09 * x for x in drawn], math.nan] if d is REAL else drawn)
    points = np.array([p for p in zip(*columns) if all(1e-3 < abs(x) < 1e3 or math.isnan(x) for x in p)]).reshape(-1, op.arity)
    flat = np.ones(points.shape, bool)
    for size in (0.0, 1e-3, 1e-3):
        xs = [*(points * (1 + size * rng.uniform(-1, 1, points.shape))).T]
        y = op.forward(numeric, *xs, *parameters)
        for i, partial in enumerate(op.partials):
            flat[:, i] &= partial is not None and np.equal(partial(numeric, y, *xs, *parameters) if callable(partial) else partial, 0)
    return [(tuple(points[k].tolist()), int(i)) for k, i in np.argwhere(flat)]


def with_regions(ops):
    rng = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        return {op.name for op in ops if any([regions(op, parameters, rng, 12) for parameters in examples(op)])}


@pytest.mark.sweep
def test_an_op_selects_if_a_derivative_is_zero_on_a_region():
    assert with_regions([*SELECTING, *OTHER[::8]]) == {op.name for op in SELECTING}


@pytest.mark.sweep
def test_no_other_op_has_a_derivative_that_is_zero_on_a_region():
    assert not with_regions(OTHER)


def of_one_number(op, parameters, point, i):
    """The op as a function of argument i, with the other arguments at a point."""
    return lambda z: core(op)(*[z if k == i else tensor(x) for k, x in enumerate(point)], *parameters)


def of_an_array(op, parameters, xs, i):
    """The op as a function of array i, as a vector of all values."""
    return lambda z: core(op)(*[z if k == i else tensor(x) for k, x in enumerate(xs)], *parameters).reshape(-1)


def selections(op, rng):
    """Functions of a number that do not depend on it next to a point, with the point, by each example of an op that selects."""
    for parameters in examples(op):
        if op.kind == "elementwise":
            found = regions(op, parameters, rng, 12)
            for k in rng.permutation(len(found))[:1]:
                point, i = found[k]
                yield of_one_number(op, parameters, point, i), point[i]
            continue
        xs = arrays(op, rng)
        for i in differentiable(xs):
            flat = of_an_array(op, parameters, xs, i)
            zero = [func.jacobian(flat)(tensor(x)).numpy().reshape(-1, x.size) == 0 for x in (xs[i], xs[i] * 1.001)]
            where = np.argwhere(zero[0] & zero[1])
            if len(where):
                row, column = where[rng.integers(len(where))]
                place, x = tensor(np.arange(xs[i].size).reshape(xs[i].shape) == column), tensor(xs[i])
                yield (lambda z, flat=flat, place=place, x=x, row=int(row): flat(symgrad.where(place, z, x))[row]), xs[i].reshape(-1)[column]


def wrong(f, x, names):
    """The routes to a derivative of f(x₀) + x₁² that give something else than (0, 2 x₁) and the second derivatives 0 and 2, with what they give."""
    out = {}
    with np.errstate(all="ignore"):
        for routes, truth in ((GRADIENTS, [0.0, 2 * x[1].item()]), (HESSIANS, [[0.0, 0.0], [0.0, 2.0]]), (TRACES, 2.0)):
            for name, route in routes.items():
                if names is None or name in names:
                    value = array(route(lambda v: f(v[0]) + v[1] * v[1], x))
                    if not np.allclose(value, truth):
                        out[name] = value.tolist()
    return out


def check(op, outer, rng, names):
    for inner, at in selections(op, rng):
        x = tensor([at, rng.uniform(0.3, 2.0)])
        value = inner(x[0]).item()
        if math.isfinite(value) and math.isfinite(at):
            assert not wrong(lambda z, inner=inner, value=value: OUTER[outer](inner(z) - value), x, names), (op.name, outer, x.tolist())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", [*SELECTING, *ARRAYS[::6]], ids=lambda op: op.name)
def test_what_is_not_selected_has_no_derivative(op):
    rng = np.random.default_rng(len(op.name))
    check(op, list(OUTER)[rng.integers(len(OUTER))], rng, SHORT)


@pytest.mark.sweep
@pytest.mark.parametrize("op", [*SELECTING, *ARRAYS], ids=lambda op: op.name)
def test_what_is_not_selected_has_no_derivative_by_any_route(op):
    rng = np.random.default_rng(len(op.name) + 1)
    for outer in rng.permutation(list(OUTER))[:2]:
        check(op, outer, rng, None)


# Functions that are 0 at 0 and have an infinite slope there
INNER = {"sqrt": lambda z: z.sqrt(), "power": lambda z: z ** (1 / 3), "root of abs": lambda z: z.abs() ** 0.37, "acosh": lambda z: (z + 1).acosh(),
         "entropy": lambda z: symgrad.xlogy(z, z), "two roots": lambda z: z.sqrt() - (3 * z) ** 0.4}


def check_before(op, inner, rng, names):
    for outer, at in selections(op, rng):
        if math.isfinite(at):
            x = tensor([0.0, rng.uniform(0.3, 2.0)])
            assert not wrong(lambda z, outer=outer, at=at: outer(INNER[inner](z) + at), x, names), (op.name, inner, x.tolist())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", [*SELECTING, *ARRAYS[::6]], ids=lambda op: op.name)
def test_what_is_not_selected_may_have_an_infinite_derivative(op):
    rng = np.random.default_rng(len(op.name) + 2)
    check_before(op, list(INNER)[rng.integers(len(INNER))], rng, SHORT)


@pytest.mark.sweep
@pytest.mark.parametrize("op", [*SELECTING, *ARRAYS], ids=lambda op: op.name)
def test_what_is_not_selected_may_have_an_infinite_derivative_by_any_route(op):
    rng = np.random.default_rng(len(op.name) + 3)
    check_before(op, list(INNER)[rng.integers(len(INNER))], rng, None)


X = sympy.Symbol("x", real=True)
FORMULAS = [sympy.Min(sympy.Max(X / 3, 0), 1), abs(X) + X]


@pytest.mark.sweep
@pytest.mark.parametrize("k", range(len(FORMULAS)))
def test_ops_from_formulas_select_by_their_derivatives(k):
    f = symgrad.op_from_sympy(f"selects_by_formula_{k}", FORMULAS[k], check=False)
    assert f.op.selects
    assert not wrong(lambda z: f(z).sqrt(), tensor([-1.3, 0.7]), SHORT)


SHRUNK = {
    "zero": (lambda z: z * 0, 0.7), "square": (lambda z: z * z, 0.0), "power": (lambda z: z**2, 0.0), "difference": (lambda z: z - z, 1 / 3),
    "cosine": (lambda z: 1 - z.cos(), 0.0), "hardswish": (lambda z: symgrad.nn.functional.hardswish(z) + 0.375, -1.5),
}


@pytest.mark.parametrize("name", SHRUNK)
def test_a_derivative_that_is_zero_at_a_point_is_no_selection(name):
    """It is not finite by any route, beside a selection, too."""
    inner, at = SHRUNK[name]
    with np.errstate(all="ignore"):
        for route in ("backward", "create_graph", "jvp", "jacfwd", "jet", "forward_ad"):
            found = array(GRADIENTS[route](lambda v: inner(v[0]).sqrt() + symgrad.relu(v[1]), tensor([at, 0.6])))
            assert not np.isfinite(found[0]), route


F = symgrad.nn.functional
# Functions that stop to depend on their argument at a point, the point, and the side on which they depend on it
ENDS = {
    "relu": (symgrad.relu, 0.0, 1), "clamp to the left": (lambda u: u.clamp(-0.7, 1.3), 1.3, -1),
    "clamp to the right": (lambda u: u.clamp(-0.7), -0.7, 1),
    "clamp by a tensor": (lambda u: u.clamp(tensor(-0.7), tensor(1.3)), 1.3, -1), "relu6": (F.relu6, 6.0, -1), "hardtanh": (F.hardtanh, -1.0, 1),
    "hardshrink": (lambda u: F.hardshrink(u, 0.3), 0.3, 1), "softshrink": (lambda u: F.softshrink(u, 0.3), 0.3, 1),
    "threshold": (lambda u: F.threshold(u, 0.2, 0.2), 0.2, 1), "hardsigmoid": (F.hardsigmoid, -3.0, 1), "hardswish": (F.hardswish, -3.0, 1),
    "prelu": (lambda u: F.prelu(u.reshape(1), symgrad.zeros(1)).sum(), 0.0, 1), "leaky_relu": (lambda u: F.leaky_relu(u, 0.0), 0.0, 1),
    "maximum": (lambda u: symgrad.maximum(u, tensor(0.4)), 0.4, 1), "fmin": (lambda u: symgrad.fmin(u, tensor(0.4)), 0.4, -1),
    "maximum of two signs": (lambda u: symgrad.maximum(u, -u), 0.0, 1), "amax": (lambda u: symgrad.stack([u, 0 * u + 0.4]).amax(), 0.4, 1),
    **{f"norm to the power {p}": (lambda u, p=p: symgrad.stack([u, -2 * u]).norm() ** p, 0.0, 1) for p in (2, 3, 3.4, 4, 6, 7)},
    "square of the length": (lambda u: symgrad.stack([u, -2 * u]).square().sum() ** 1.7, 0.0, 1),
}
STEEP = {name: INNER[name] for name in ("sqrt", "power", "root of abs", "acosh")}


def check_end(end, inner, routes):
    function, at, side = ENDS[end]
    with np.errstate(all="ignore"):
        for table in (GRADIENTS, HESSIANS):
            for name in routes or table:
                if name in table:
                    found = array(table[name](lambda v: function(at + side * STEEP[inner](v[0])) + symgrad.relu(v[1]), tensor([0.0, 0.6])))
                    assert not np.isfinite(found.flat[0]), f"{name}: {found}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_region_is_no_selection(end):
    """The derivative there is a convention, and not finite where the argument has an infinite slope."""
    check_end(end, "sqrt", SHORT)


@pytest.mark.sweep
@pytest.mark.parametrize("inner", STEEP)
@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_region_is_no_selection_by_any_route(end, inner):
    check_end(end, inner, None)


def check_bend(end, power, routes):
    """No second derivative of |f(u) - f(end)| to a power between 1 and 2 is finite there, as that of the power is infinite."""
    function, at, side = ENDS[end]
    value = function(tensor(at)).item()
    with np.errstate(all="ignore"):
        for name in routes:
            found = array(HESSIANS[name](lambda v: (function(at + side * v[0]) - value).abs() ** power + v[1] ** 3, tensor([0.0, 0.6])))
            assert not np.isfinite(found.flat[0]), f"{name}: {found}"


LINEAR_ENDS = [name for name in ENDS if not name.startswith(("norm", "square"))]  # these are smooth there


@pytest.mark.sampled(4)
@pytest.mark.parametrize("end", LINEAR_ENDS)
def test_the_end_of_a_region_is_recorded(end):
    """A slope of 0 there is not that of a region in a graph that is differentiated again."""
    check_bend(end, 1.3, [name for name in HESSIANS if name in SHORT])


@pytest.mark.sweep
@pytest.mark.parametrize("end", LINEAR_ENDS)
def test_the_end_of_a_region_is_recorded_by_any_route(end):
    for power in (1.1, 4 / 3, 1.5, 1.9):
        check_bend(end, power, HESSIANS)


THIRD = {"backward thrice": lambda f: func.grad(func.grad(func.grad(f))), "forward thrice": lambda f: func.jacfwd(func.jacfwd(func.jacfwd(f))),
         "forward of the Hessian": lambda f: func.jacfwd(func.hessian(f)), "backward of the Hessian": lambda f: func.grad(func.hessian(f)),
         "series": lambda f: lambda x: func.derivatives(f, 3)(x)[3], "compiled": lambda f: symgrad.compile(func.grad(func.hessian(f)))}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("end", LINEAR_ENDS)
def test_the_end_of_a_region_is_recorded_for_third_derivatives(end):
    function, at, side = ENDS[end]
    value = function(tensor(at)).item()
    sign = math.copysign(1, function(tensor(at + 1e-3 * side)).item() - value)
    with np.errstate(all="ignore"):
        for name, third in THIRD.items():
            found = third(lambda u: (sign * (function(at + side * u) - value)) ** 2.3)(tensor(0.0))
            assert not np.isfinite(found.item()), f"{name}: {found}"


VARYING = {"hardswish": F.hardswish, "prelu": lambda x: F.prelu(x, tensor([0.3])),
           "a power of lengths": lambda x: symgrad.hypot(x, 2 * x) ** 4, "a power of a length": lambda x: symgrad.norm(x) ** 5}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("x0", [0.4, 0.0])
@pytest.mark.parametrize("name", VARYING)
def test_slopes_that_vary_are_recorded_and_differentiated_again(name, x0):
    f, x = lambda x: VARYING[name](x.sin()).exp().sum(), tensor([x0, -0.7])
    weights = tensor([0.7, 1.1])
    tensor_of_third = func.jacfwd(func.jacfwd(func.jacfwd(f)))(x)

    def slope(z):
        return func.grad(f)(z) @ weights

    third = [symgrad.stack([func.hvp(slope, x, unit) for unit in symgrad.eye(2, dtype=x.dtype)]), symgrad.autograd.functional.hessian(slope, x),
             func.hessian(slope)(x), weights @ func.hessian(func.grad(f))(x).movedim(0, 1), func.jacfwd(func.hessian(f))(x) @ weights,
             func.jacrev(func.jacrev(func.grad(f)))(x) @ weights, symgrad.compile(func.hessian(slope))(x)]
    for found in third:
        np.testing.assert_allclose(array(found), array(tensor_of_third @ weights), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", VARYING)
def test_recorded_slopes_of_the_fifth_order(name):
    """They are those of the series, as a function of one number, and their number is that of the orders, not of the ways to them."""
    f, x0 = lambda x: (VARYING[name](x.reshape(1)).sum() * x).sin(), tensor(0.4, requires_grad=True)
    y = f(x0)
    for _ in range(5):
        (y,) = symgrad.autograd.grad(y, x0, create_graph=True)
    np.testing.assert_allclose(y.item(), array(func.derivatives(f, 5)(tensor(0.4))[5]), rtol=1e-11)


@pytest.mark.parametrize("op", [op for op in SELECTING if op.arity == 2], ids=lambda op: op.name)
def test_recorded_slopes_have_the_shape_of_the_result(op):
    """Also those that do not read every argument, so that they have derivatives by the others."""
    xs = [tensor(np.full(shape, 0.7), requires_grad=True) for shape in ((3, 1), (2,))]
    first = symgrad.autograd.grad(core(op)(*xs, *examples(op)[0]).square().sum(), xs, create_graph=True, allow_unused=True, materialize_grads=True)
    second = symgrad.autograd.grad(sum(g.square().sum() for g in first), xs, create_graph=True, allow_unused=True, materialize_grads=True)
    assert [g.shape for g in second] == [(3, 1), (2,)]


@pytest.mark.parametrize("name", ["hardswish", "prelu"])
def test_a_write_to_what_a_recorded_slope_has_saved_is_noticed(name):
    x = tensor([0.4, -0.7], requires_grad=True)
    inner = x.sin()
    (g,) = symgrad.autograd.grad(VARYING[name](inner).square().sum(), x, create_graph=True)
    with symgrad.no_grad():
        inner.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        g.sum().backward()


class Unknown(symgrad.autograd.Function):
    """The identity, of which nothing is known that would tell which elements reach the outputs."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g


@pytest.mark.parametrize("op", [op for op in [REGISTRY["mul"], *SELECTING] if op.arity > 1 and op.name != "power_of_length"], ids=lambda op: op.name)
def test_what_a_broadcast_argument_selects(op):
    """It is the same as if the argument had been expanded before. A length and its square have one shape."""
    rng = np.random.default_rng(len(op.name))
    x = tensor(rng.uniform(-1.0, 1.0, (2, 3)), requires_grad=True)
    for shape in ((), (3,), (2, 1), (1, 1)):
        for i in range(op.arity):
            given = [rng.uniform(0.2, 0.9, shape) for _ in range(op.arity)]
            for order in (1, 2):
                found = []
                for others in (given, [np.broadcast_to(c, (2, 3)) for c in given]):
                    with np.errstate(all="ignore"):
                        y = core(op)(*[x.relu().sqrt() if k == i else tensor(c.copy()) for k, c in enumerate(others)], *examples(op)[0])
                        found.append(symgrad.autograd.grad(Unknown.apply(y).sum(), x, create_graph=order == 2, retain_graph=True)[0].tolist())
                np.testing.assert_allclose(*found, rtol=1e-14)


@pytest.mark.parametrize("op", [op for op in SELECTING if op.arity == 2 and not all(map(callable, op.partials))], ids=lambda op: op.name)
def test_a_derivative_that_is_a_number_selects_nothing(op):
    """It is not asked for elements that are not selected."""
    for f in (lambda x: symgrad.cbrt(core(op)(x, 2.0)) ** 2, lambda x: core(op)(symgrad.cbrt(x), 2.0)):
        for route in HESSIANS.values():
            with np.errstate(all="ignore"):
                assert not np.isfinite(array(route(f, tensor(0.0)))).all()


@pytest.mark.parametrize("number", [-1.5e-323, -2e-310 / 3, -1e-308, -2.3e-308])
@pytest.mark.parametrize("outer", ["sqrt", "log", "power", "root of abs", "two roots"])
def test_below_the_normal_numbers_the_selection_is_that_of_the_number(outer, number):
    """A step from a subnormal number that is as large as a normal one would pass 0. The float next to 0 has the kink beside it."""
    for inner in (lambda x: x.relu(), lambda x: x.clamp(min=0.0), lambda x: symgrad.maximum(x, tensor(0.0))):
        for name in ("backward", "jvp", "jet", "vmap of grad"):
            with np.errstate(all="ignore"):
                found = array(GRADIENTS[name](lambda x, inner=inner: OUTER[outer](inner(x)), tensor(number)))
            assert found == 0.0, name
