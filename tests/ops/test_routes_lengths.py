"""Powers of lengths (norms, hypot, moduli) by all routes at points where a length is 0: they are smooth there, though the length has a kink."""

import math

import numpy as np
import pytest

import symgrad
from symgrad.engine.traced import traced
from symgrad.graph.op import REGISTRY
from tests.support.routes import GRADIENTS, HESSIANS, TRACES, array

tensor, func, functional = symgrad.tensor, symgrad.func, symgrad.nn.functional
ZERO = symgrad.zeros(1, 2)
ROWS = tensor([[1.0, 0.5, 0.0], [0.0, 1.0, -1.0]])

# Each length with its square as a polynomial.
LENGTHS = {
    "norm": (lambda x: x.norm(), lambda x: (x * x).sum()),
    "norms of rows": (lambda x: (ROWS * x).norm(dim=1), lambda x: (ROWS * x).square().sum(1)),
    "norms of columns": (lambda x: symgrad.linalg.vector_norm(ROWS * x, dim=0, keepdim=True), lambda x: (ROWS * x).square().sum(0)),
    "matrix_norm": (lambda x: symgrad.linalg.matrix_norm(ROWS * x), lambda x: (ROWS * x).square().sum()),
    "norm of complex numbers": (lambda x: symgrad.complex(x, 2 * x).norm(), lambda x: 5 * (x * x).sum()),
    "abs": (lambda x: x.abs(), lambda x: x * x), "modulus": (lambda x: symgrad.complex(x[:2], x[1:]).abs(), lambda x: x[:2] ** 2 + x[1:] ** 2),
    "hypot": (lambda x: symgrad.hypot(x[:2], x[1:]), lambda x: x[:2] ** 2 + x[1:] ** 2),
    "hypot, broadcast": (lambda x: symgrad.hypot(x[0], x), lambda x: x[0] ** 2 + x**2),
    "cdist": (lambda x: symgrad.cdist(x[None, :2], ZERO), lambda x: x[0] ** 2 + x[1] ** 2),
    "pairwise_distance": (lambda x: functional.pairwise_distance(x[None, :2], ZERO, eps=0.0), lambda x: x[0] ** 2 + x[1] ** 2),
}
POWERS = {
    "2": (lambda n: n**2, 1), "square": (lambda n: n.square(), 1), "product": (lambda n: n * n, 1),
    "4": (lambda n: symgrad.pow(n, 4.0), 2), "3": (lambda n: n**3, 1.5), "4.6": (lambda n: n**4.6, 2.3),
    "2.6": (lambda n: n**2.6, 1.3),
}
POINTS = ([0.0, 0.0, 0.0], [0.0, 0.0, 1.3])
COMPLEX = ("norm of complex numbers", "modulus")  # whose compiled derivatives have tests of their own
COMPILED = {"compiled, then at 0": lambda f, x: compiled_elsewhere(func.hessian(f), x), "compiled jacfwd of grad": lambda f, x: compiled_elsewhere(
    func.jacfwd(func.grad(f)), x)}


def compiled_elsewhere(f, x):
    """The value of a compiled function that was recorded at a point where no length is 0."""
    f = symgrad.compile(f)
    f(tensor([0.3, 0.4, 0.5]))
    return f(x)


def true_hessian(square, power, at):
    """From the polynomial: the power is 0 with two derivatives where that is 0, unless it is the polynomial itself."""
    def f(x):
        s = square(x)
        return ((s**power if power in (1, 2, 3) else symgrad.where(s > 0, symgrad.where(s > 0, s, 1.0) ** power, 0.0)) * weight(x)).sum()

    return functional_hessian(f, at)


def functional_hessian(f, at):
    return symgrad.autograd.functional.hessian(f, tensor(at)).numpy()


def weight(x):
    return 1.5 + x[1]


@pytest.mark.sweep
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("length", LENGTHS)
def test_all_routes_to_powers_of_lengths(length, power):
    (function, square), (raised, half) = LENGTHS[length], POWERS[power]
    f = lambda x: (raised(function(x)) * weight(x)).sum()  # noqa: E731
    for at in POINTS:
        second = true_hessian(square, half, at)
        first = func.grad(lambda x: (square(x) ** half * weight(x)).sum())(tensor(at)).numpy()
        for table, true in ((GRADIENTS, first), (HESSIANS if length in COMPLEX else HESSIANS | COMPILED, second), (TRACES, np.trace(second))):
            for name, route in table.items():
                with np.errstate(all="ignore"):
                    np.testing.assert_allclose(array(route(f, tensor(at))), true, rtol=1e-9, atol=1e-9, err_msg=f"{name} at {at}")


# Powers of sums of squares, which have two derivatives at 0 though the rule of a power has none there

SQUARES = {
    "products": lambda a: a[0] * a[0] + 2.3 * a[1] * a[1] + a[2] * a[2] / 3, "views": lambda a: (a[0] * a[0] + a[1] * a[1])[None],
    "sum": lambda a: (a * a).sum(), "powers": lambda a: (a**2).mean() + a[1] ** 4, "each": lambda a: a * a, "inner product": lambda a: a @ a,
    "moduli": lambda a: (a.abs() ** 2).sum() * tensor([0.7, 1.0]),
    "squares of squares": lambda a: (a.square().sum() * a[0].square() + a.square().sum()),
}
ROOTS = {
    "p = 1.2": (lambda u: u**1.2, 1.2), "p = 3/2": (lambda u: u**1.5, 1.5), "p = 1.7": (lambda u: u**1.7, 1.7),
    "p = 2.3, a tensor": (lambda u: u ** tensor(2.3), 2.3), "p = 8/3": (lambda u: symgrad.pow(u, 8 / 3), 8 / 3),
    "square of the root": (lambda u: u.sqrt() ** 2, 1), "root times itself": (lambda u: (lambda n: n * n)(u.sqrt()), 1),
    "cube of the root": (lambda u: u.sqrt() ** 3, 1.5), "fourth power of the root": (lambda u: u.sqrt() ** 4, 2),
    "root, p = 3.3": (lambda u: u.sqrt() ** 3.3, 1.65),
}
NAN_AT_ONCE = [name for name in ROOTS if "root" in name]  # by a tangent that is computed at once: that of the root is NaN where it is 0


@pytest.mark.sweep
@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("squares", SQUARES)
def test_all_routes_to_powers_of_sums_of_squares(squares, root):
    square, (raised, half) = SQUARES[squares], ROOTS[root]
    f = lambda x: (raised(square(x)) * weight(x)).sum()  # noqa: E731
    for at in POINTS:
        second = true_hessian(square, half, at)
        first = func.grad(lambda x: (square(x) ** half * weight(x)).sum())(tensor(at)).numpy()
        for table, true in ((GRADIENTS, first), (HESSIANS | COMPILED, second), (TRACES, np.trace(second))):
            for name, route in table.items():
                with np.errstate(all="ignore"):
                    found = array(route(f, tensor(at)))
                    if name == "forward_ad" and root in NAN_AT_ONCE:
                        found = np.where(np.isnan(found), true, found)
                    np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-9, err_msg=f"{name} at {at}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("square", [
    lambda a: a[0], lambda a: a[0].sqrt() ** 2 + a[1] ** 2, lambda a: (a[0] ** 0.4) ** 2, lambda a: a[0] + a[1] ** 2, lambda a: a[0].abs()])
def test_powers_of_what_is_no_sum_of_squares(square):
    """The second derivative of such a power is infinite at 0, or there is none."""
    with np.errstate(all="ignore"):
        for name, route in HESSIANS.items():
            found = array(route(lambda a: square(a) ** 1.5, symgrad.zeros(2)))
            assert not np.isfinite(found).all(), name


# Where the second derivative is infinite, it is not finite by any route

KINKED = {**LENGTHS, "p = 3": (lambda x: x[:2].norm(3), None), "p = 1.7": (lambda x: symgrad.stack([x[0], 2 * x[1]]).norm(1.7), None),
          "p = 4": (lambda x: x[:2].norm(4), None), "std": (lambda x: symgrad.stack([x[0], x[1], 0 * x[0]]).std(), None),
          "normalized by itself": (lambda x: x[:2].norm(dim=0, keepdim=True) / 3, None)}
del KINKED["abs"]  # which is linear on both sides
OUTER = {
    "itself": lambda n: n, "cos": lambda n: n.cos(), "quotient": lambda n: (n / 2.7) ** 2, "inner product": lambda n: n.reshape(-1) @ n.reshape(-1),
    "exp": lambda n: (n * n.sin()).exp(), "relu": lambda n: n + (n - 0.3).relu(), "beside": lambda n: n.sinh() + n**2,
}


@pytest.mark.sweep
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("length", KINKED)
def test_infinite_second_derivatives_are_not_finite_by_any_route(length, outer):
    inner = KINKED[length][0]
    f = lambda x: (OUTER[outer](inner(x)) * (1.5 + x[2])).sum()  # noqa: E731
    routes = HESSIANS if length in COMPLEX else HESSIANS | COMPILED
    with np.errstate(all="ignore"):
        for name, route in routes.items():
            found = array(route(f, symgrad.zeros(3)))
            assert not np.isfinite(found[:2, :2]).any() or length in SEVERAL and not np.isfinite(found[:2, :2]).all(), f"{name}: {found}"
        for name, route in TRACES.items():
            assert not np.isfinite(array(route(f, symgrad.zeros(3)))), name
        for name, route in GRADIENTS.items():
            assert np.isfinite(array(route(f, symgrad.zeros(3)))).all(), name


# Lengths of which each depends on some of the elements
SEVERAL = ("norms of rows", "norms of columns", "modulus", "hypot", "hypot, broadcast", "norm of complex numbers")


@pytest.mark.parametrize("name", ("hessian", "remembered", "hvp", "jacrev of grad", "jacfwd of grad", "grad of autograd.grad", "jet"))
def test_other_rows_keep_their_second_derivatives(name):
    """Only the rows that are 0 have infinite ones."""
    def f(x, lengths=lambda rows: rows.norm(dim=1)):
        return lengths(symgrad.stack([x[:2], x[2:]])).cos().sum()

    x = tensor([0.0, 0.0, 0.7, -1.3])
    with np.errstate(all="ignore"):
        found, true = array(HESSIANS[name](f, x))[2:, 2:], array(func.hessian(lambda x: x.norm().cos())(x[2:]))
    np.testing.assert_allclose(found, true, rtol=1e-9)


def near(f, x):
    """The largest second derivative at two distances from a point."""
    along = symgrad.arange(1.0, x.numel() + 1).cos()
    return [max(np.abs(array(func.hessian(f)(x + side * h * along))).max() for side in (-1, 1)) for h in (1e-3, 1e-5)]


@pytest.mark.sweep
def test_second_derivatives_that_grow_without_bound_are_not_0_at_the_kinks_of_the_registry():
    for name, op in sorted(REGISTRY.items()):
        for call in op.docs.kinks if name not in NOT_LENGTHS else ():
            places = [i for i, a in enumerate(call[:op.arity or 1]) if isinstance(a, (float, list))]
            x = symgrad.cat([tensor(call[i]).reshape(-1) for i in places])

            def f(v, name=name, call=call, places=places):
                args, start = list(call), 0
                for i in places:
                    like = tensor(call[i])
                    args[i], start = v[start:start + like.numel()].reshape(like.shape), start + like.numel()
                out = getattr(traced, name)(*args)
                return (out if isinstance(out, symgrad.Tensor) else out[0]).reshape(-1)[-1]

            if x.isfinite().all():
                with np.errstate(all="ignore"):
                    first, second = near(f, x)
                    if second > 10 * first:
                        assert not np.isfinite(array(func.hessian(f)(x))).all(), f"{name} {call}"


# Functions with a convention by two arguments, and functions of matrices that refuse equal singular values
NOT_LENGTHS = ("atan2", "entr", "pow", "xlogy", "xlog1py", "linalg_cond", "linalg_matrix_norm", "linalg_svdvals")


def test_the_graph_goes_through_the_length():
    """The derivative by the length itself, hooks on it and retained gradients are those of any power."""
    x = tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    n, seen = x.norm(dim=1), []
    n.retain_grad()
    n.register_hook(lambda g: seen.append(g.tolist()))
    (n**2).sum().backward()
    assert seen == [n.grad.tolist()] == [[0.0, 10.0]] and x.grad.tolist() == [[0.0, 0.0], [6.0, 8.0]]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("length", LENGTHS)
def test_third_derivatives_by_recorded_gradients(length):
    """A gradient of a gradient replays the graph, in which a length is real and its arguments may be complex."""
    function, square = LENGTHS[length]
    v = tensor([0.61, -1.27, 0.7])

    def third(f):
        along = lambda f: lambda x: (func.grad(f)(x) * v).sum()  # noqa: E731
        return func.grad(along(along(f)))

    for at in POINTS:
        found, true = (third(lambda x, f=f: (f(x) * weight(x)).sum())(tensor(at)) for f in (lambda x: function(x) ** 2, square))
        np.testing.assert_allclose(found.numpy(), true.numpy(), rtol=1e-9, atol=1e-9, err_msg=f"at {at}")


@pytest.mark.parametrize("p", [2, 4, 3])
def test_third_derivatives_of_norms_of_complex_numbers_some_of_which_are_0(p):
    """The powers of the moduli within a norm are smooth where a modulus is 0, for an even p; for p = 3 with two derivatives."""
    at, axes = tensor([0.0, 1.3, -0.7]), (1, 2) if p == 3 else (0, 1, 2)
    third = lambda f: func.jacfwd(func.hessian(f))(at).numpy()[np.ix_(axes, axes, axes)]  # noqa: E731
    found = third(lambda x: symgrad.linalg.vector_norm(symgrad.complex(x, 2 * x), p))
    true = third(lambda x: 5**0.5 * (x.abs() ** p).sum() ** (1 / p) if p == 3 else 5**0.5 * (x**p).sum() ** (1 / p))
    np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-9)


def test_third_and_fourth_derivatives():
    f = lambda x: x.norm() ** 4  # noqa: E731
    fourth = func.jacfwd(func.jacrev(func.hessian(f)))(symgrad.zeros(2)).numpy()
    assert fourth[0, 0, 0, 0] == fourth[1, 1, 1, 1] == 24 and fourth[0, 0, 1, 1] == fourth[1, 0, 0, 1] == 8 and fourth[0, 0, 0, 1] == 0


RADIAL = {  # functions of a number that are c |x|, or c |x|^2 or c |x|^4: with c and the exponent
    "abs": (lambda x: x.abs(), 1, 1), "norm": (lambda x: symgrad.stack([x, 2 * x]).norm(), 5**0.5, 1),
    "hypot": (lambda x: symgrad.hypot(x, x / 3), 10**0.5 / 3, 1), "product": (lambda x: x * x, 1, 2),
    "inner product": (lambda x: (v := symgrad.stack([x, 3 * x])) @ v, 10, 2), "root": (lambda x: (x * x).sqrt(), 1, 1),
    "fourth powers": (lambda x: x**4 + 2 * x**6, 1, 4),
}
HIGHER = {
    "backward": lambda f, k: nested(func.grad, f, k), "forward": lambda f, k: nested(func.jacfwd, f, k),
    "forward of the Hessian": lambda f, k: nested(func.jacfwd, func.hessian(f), k - 2), "series": lambda f, k: lambda x: func.derivatives(f, k)(x)[k],
    "backward of the Hessian": lambda f, k: nested(func.grad, func.hessian(f), k - 2), "create_graph": lambda f, k: lambda x: recorded(f, k, x),
    "compiled": lambda f, k: symgrad.compile(nested(func.jacfwd, func.hessian(f), k - 2)),
}


def nested(transform, f, count):
    for _ in range(count):
        f = transform(f)
    return f


def recorded(f, k, x):
    x = x.clone().requires_grad_()
    y = f(x)
    for _ in range(k):
        y, = symgrad.autograd.grad(y, x, create_graph=True)
    return y


def check_higher(radial, power, orders):
    """The derivatives of c |x|^p at 0 are 0 below the order p, and do not exist above it unless p is even; |x|^p has a kink for an odd p."""
    function, c, degree = RADIAL[radial]
    f = lambda x: function(x) ** (power / degree)  # noqa: E731
    with np.errstate(all="ignore"):
        for k in orders:
            for name, route in HIGHER.items():
                found = route(f, k)(tensor(0.0)).item()
                if k < power or power % 2 == 0 and degree < 4:
                    true = math.factorial(k) * c ** (power / degree) if k == power else 0.0
                    assert math.isclose(found, true, rel_tol=1e-12, abs_tol=1e-12), f"{name}, order {k}: {found}"
                else:
                    assert not math.isfinite(found) or k == power and found == 0, f"{name}, order {k}: {found}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("radial", RADIAL)
def test_derivatives_of_third_order_of_powers_of_lengths(radial):
    for power in (4.3, *(2 + 1 / 3, 4) * (radial != "fourth powers")):
        check_higher(radial, power, [3])


@pytest.mark.sweep
@pytest.mark.parametrize("power", [2.0001, 2 + 1 / 3, 2.9999, 3, math.pi, 4.3, 5, 6])
@pytest.mark.parametrize("radial", RADIAL)
def test_derivatives_of_higher_orders_of_powers_of_lengths(radial, power):
    if power > 4 or radial != "fourth powers":
        check_higher(radial, power, [2, 3, 4, 5][: 3 if radial in ("norm", "hypot") else 4])  # whose graphs grow fivefold with each order


REST = lambda t: symgrad.stack([1.3 + t / 3, t * t - 0.7])  # noqa: E731
NORMS = {  # of vectors of which one element is 0 at 0, and those of the others
    "vector_norm": symgrad.linalg.vector_norm, "norm": lambda v, p: (2 * v).norm(p) / 2,
    "complex numbers": lambda v, p: symgrad.complex(v, v / 3).norm(p) * 0.9**0.5,
    "cdist": lambda v, p: symgrad.cdist(v[None], symgrad.zeros(2, len(v)), p=p)[0, 1],
    "pairwise_distance": lambda v, p: functional.pairwise_distance(v, symgrad.zeros(len(v)), p=p, eps=0.0),
}


def check_beside_zero(norm, p, orders):
    """|t|^p within a p-norm has the derivatives 0 below the order p, at an odd p a kink, and none above."""
    length = NORMS[norm]
    with np.errstate(all="ignore"):
        true = func.derivatives(lambda t: length(REST(t), p), max(orders))(tensor(0.0))
        for k in orders:
            for name, route in HIGHER.items():
                found = route(lambda t: length(symgrad.cat([t[None], REST(t)]), p), k)(tensor(0.0)).item()
                if k <= p or p % 2 == 0:
                    right = math.isclose(found, true[k].item(), rel_tol=1e-9, abs_tol=1e-9)
                    assert right or k == p and not math.isfinite(found), f"{name}, order {k}: {found}"
                else:
                    assert not math.isfinite(found), f"{name}, order {k}: {found}"


@pytest.mark.sweep
@pytest.mark.parametrize("norm", NORMS)
def test_derivatives_of_third_order_of_norms_beside_an_element_that_is_0(norm):
    check_beside_zero(norm, 2.3, [3])


@pytest.mark.sweep
@pytest.mark.parametrize("p", [3, math.pi, 4.6])
@pytest.mark.parametrize("norm", NORMS)
def test_derivatives_of_higher_orders_of_norms_beside_an_element_that_is_0(norm, p):
    check_beside_zero(norm, p, [4])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("p", [2.5, 4.6, 5, 7.3, 8, 9])
@pytest.mark.parametrize("norm", NORMS)
def test_series_of_norms_beside_an_element_that_is_0(norm, p):
    length, order = NORMS[norm], int(p) + 2
    with np.errstate(all="ignore"):
        found, true = (func.derivatives(lambda t, of=of: length(of(t), p), order)(tensor(0.0))
                       for of in (lambda t: symgrad.cat([t[None], REST(t)]), REST))
        for k in range(order + 1):
            assert p % 2 == 0 or (math.isclose(found[k].item(), true[k].item(), rel_tol=1e-8) if k <= p else not math.isfinite(found[k].item())), k


@pytest.mark.sampled(2)
@pytest.mark.parametrize("power", [3, 3.7, 5])
@pytest.mark.parametrize("length", [lambda x: x.norm(), lambda x: symgrad.hypot(x[0], x[1]), lambda x: symgrad.complex(x[0], 2 * x[1]).abs()])
def test_laplacians_of_laplacians_of_powers_of_lengths(length, power):
    """That of r³ is 9 / r."""
    with np.errstate(all="ignore"):
        found = func.laplacian(func.laplacian(lambda x: length(x) ** power))(symgrad.zeros(2)).item()
        assert found == 0 if power > 4 else not math.isfinite(found)


@pytest.mark.parametrize("power", [lambda n: n**2, lambda n: n * n, lambda n: n**4, lambda n: n**3])
def test_a_power_of_a_root_has_no_derivative_where_it_has_no_value(power):
    """Compiled, where any argument may be 0, and beside one that is 0."""
    f = func.grad(lambda x: power(x.sqrt()).sum())
    compiled = symgrad.compile(f)
    with np.errstate(all="ignore"):
        for x in (tensor([1.0, 2.3]), tensor([-0.7, 1.9]), tensor([-0.7, 0.0])):
            found = np.isnan(f(x).numpy())
            assert found.tolist() == np.isnan(compiled(x).numpy()).tolist() and found[x.numpy() < 0].all()


SEVERAL_VARIABLES = {
    "norm": lambda x: x.norm(), "row": lambda x: symgrad.stack([2 * x, x + 1.3]).norm(dim=1, keepdim=True),
    "hypot": lambda x: symgrad.hypot(x[0], x[1] / 3), "modulus": lambda x: symgrad.complex(x[0], 2 * x[1]).abs(),
    "complex numbers": lambda x: symgrad.complex(x, 2 * x).norm(), "distance": lambda x: symgrad.cdist(x[None], ZERO),
}
SUMS = {  # of squares
    "products": lambda x: x[0] * x[0] + 2.3 * x[1] * x[1], "weighted": lambda x: (x * x * tensor([0.7, 1.9])).sum(),
    "powers": lambda x: (x**2).mean() + x[1].square() / 3, "inner product": lambda x: x @ x,
    "each": lambda x: (symgrad.stack([x, 2 * x]) ** 2).sum(1), "row": lambda x: (symgrad.stack([2 * x, x + 1.3]) ** 2).mean(1, keepdim=True),
    "view": lambda x: (x * x).reshape(2, 1).sum(0)[None].expand(2, 1), "square of a norm": lambda x: x.norm() ** 2,
    "square of hypot": lambda x: symgrad.hypot(x[0], 2 * x[1]).square() * 0.3, "squares of moduli": lambda x: (x.abs() ** 2).sum(),
}


@pytest.mark.sweep
@pytest.mark.parametrize("power", [2 + 1 / 3, 2.9999])
@pytest.mark.parametrize("length", SEVERAL_VARIABLES)
def test_mixed_third_derivatives_above_the_power_are_not_finite(length, power):
    check_mixed(lambda x: SEVERAL_VARIABLES[length](x) ** power)


@pytest.mark.parametrize("square", [lambda z: z.norm() ** 2, lambda z: (z.abs() ** 2).sum(), lambda z: (z.norm(dim=0) ** 2).mean()])
def test_derivatives_of_powers_of_squares_of_complex_lengths_are_real(square):
    f = lambda x: square(symgrad.complex(x, 2 * x)) ** 1.3  # noqa: E731
    for transform in (lambda f: func.jacfwd(func.jacfwd(f)), func.hessian, lambda f: func.jacrev(func.jacrev(f))):
        found = transform(f)(symgrad.zeros(2))
        assert found.dtype is symgrad.float64 and not found.any()


@pytest.mark.sweep
@pytest.mark.parametrize("power", [1 + 1 / 6, 1.49995, "root"])
@pytest.mark.parametrize("squares", SUMS)
def test_mixed_third_derivatives_above_the_power_of_sums_of_squares_are_not_finite(squares, power):
    check_mixed(lambda x: SUMS[squares](x).sqrt() ** 2.71 if power == "root" else SUMS[squares](x) ** power)


def check_mixed(power):
    """Along one axis the other slope of a length is 0, and the second derivative along the other axis is infinite."""
    f, x = (lambda x: power(x).reshape(-1)[0]), symgrad.zeros(2)
    with np.errstate(all="ignore"):
        assert not func.hessian(f)(x).any() and not func.jacfwd(func.jacfwd(f))(x).any()
        for third in (func.jacfwd(func.jacfwd(func.jacfwd(f))), func.jacfwd(func.hessian(f)), func.hessian(func.grad(f)),
                      symgrad.compile(func.jacfwd(func.hessian(f))), func.jacrev(func.jacfwd(func.jacrev(f)))):
            found = third(x).numpy().reshape(2, 2, 2)
            assert not np.isfinite([found[0, 0, 1], found[1, 1, 0], found[0, 0, 0], found[1, 1, 1]]).any()
