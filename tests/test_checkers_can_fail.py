"""Every checker, on rules made wrong on purpose: each numeric rule of each op, off by a factor of 1 + 1e-6 or in a way that has happened before."""

import dataclasses

import numpy as np
import pytest
from accuracy import check_accuracy, check_special
from checkers import (
    check_adjoint,
    check_aliasing,
    check_broadcast,
    check_dtype,
    check_layouts,
    check_linearity,
    check_mutation,
    check_replay,
    check_second_order,
)
from points import arrays, domain, examples, of_numbers, points
from proofs import check_partials, found, proved_by_formulas
from test_registry import BROADCASTING
from truth import Truth

from symgrad.autograd import engine
from symgrad.carriers import numeric, precise, symbolic
from symgrad.lift import traced
from symgrad.op import REGISTRY, elementwise

FACTOR = 1 + 1e-6
EVERYWHERE = (numeric, precise, symbolic, traced)
OPS = [pytest.param(op, id=op.name) for op in REGISTRY.values() if op.kind != "composite" and of_numbers(op)]
DIFFERENTIABLE = [case for case in OPS if case.values[0].differentiable]
ELEMENTWISE = [case for case in DIFFERENTIABLE if case.values[0].kind == "elementwise"]
SHAPED = [case for case in DIFFERENTIABLE if case.values[0].kind != "elementwise"]


def broken(op, **rules):
    """A copy of an op with other rules, under a name that no carrier knows, so that its own forward rule is what runs."""
    return dataclasses.replace(op, name=f"{op.name} (broken)", **rules)


def first_case(op, seed=0):
    rng = np.random.default_rng(seed)
    return examples(op)[0], arrays(op, rng), rng


def with_forward(op, change, carriers=(numeric,)):
    def forward(xp, *args):
        y = op.forward(xp, *args)
        return change(y, args[0][0] if op.arity is None else args[op.arity - 1]) if xp in carriers else y

    return broken(op, forward=forward)


def with_cotangent(op, i, change, carriers=(numeric,)):
    """The op whose i-th cotangent c is `change(c, g, x)` instead; a cotangent that is zero is changed too."""
    def vjp(xp, g, y, args, needs):
        out = list(op.vjp(xp, g, y, args, needs))
        if xp in carriers and needs[i] is not None:
            out[i] = change(out[i] if out[i] is not None else xp.zeros_like(args[i]), g, args[i])
        return tuple(out)

    return broken(op, vjp=vjp)


def with_tangent(op, change):
    def jvp(xp, tangents, y, args):
        t = op.jvp(xp, tangents, y, args)
        return change(np.zeros(y.shape) if t is None else t) if xp is numeric else t

    return broken(op, jvp=jvp)


def off(c, *_):
    """A number that is off by a factor of 1 + 1e-6, or by 1e-6 where it is zero."""
    return c * FACTOR + 1e-6 * (c == 0)


def scaled(c, *_):
    """A number, of any carrier, that is off by a factor of 1 + 1e-6; a cotangent that is all zero has nothing to scale, and is off by 1e-6."""
    return c * FACTOR if np.any(getattr(c, "_value", c)) else c + 1e-6


def arguments(op):
    """The numbers of the tensor arguments that have derivatives; a variadic op is given two."""
    count = 2 if op.arity is None else op.arity
    return [i for i in range(count) if domain(op, i).name != "BOOLEAN"]


def few_points(op):
    return points(op, np.random.default_rng(0), ordinary=6, limit=6)


def catches(check, *args):
    with pytest.raises(AssertionError) as caught:
        check(*args)
    assert "(broken)" in str(caught.value)


@pytest.mark.parametrize("op", DIFFERENTIABLE)
def test_every_pullback_off_by_a_millionth_is_caught(op):
    parameters, xs, rng = first_case(op)
    for i in arguments(op):
        wrong = with_cotangent(op, i, off)
        catches(check_adjoint, wrong, parameters, xs, rng)
        catches(check_replay, wrong, parameters, xs, rng)
        if op.kind == "elementwise":
            catches(check_accuracy, wrong, parameters, few_points(op), Truth(op, parameters), 1)


@pytest.mark.parametrize("op", DIFFERENTIABLE)
def test_every_pushforward_off_by_a_millionth_is_caught(op):
    parameters, xs, rng = first_case(op)
    wrong = with_tangent(op, off)
    catches(check_adjoint, wrong, parameters, xs, rng)
    catches(check_replay, wrong, parameters, xs, rng)


@pytest.mark.parametrize("op", OPS)
def test_every_value_off_by_a_millionth_is_caught(op):
    parameters, xs, rng = first_case(op)

    def change(y, x):
        kind = np.asarray(y).dtype.kind
        return ~np.asarray(y) if kind == "b" else y + 1 if kind == "i" else off(y)

    wrong = with_forward(op, change)
    catches(check_replay, wrong, parameters, xs, rng)
    if op.kind == "elementwise" and op.differentiable:
        catches(check_accuracy, wrong, parameters, few_points(op), Truth(op, parameters), 0)


def with_partial(op, i, scale=FACTOR):
    """The elementwise op, declared anew with one partial off, for every carrier."""
    partial = op.partials[i]
    wrong = (lambda xp, y, *xs: scale * partial(xp, y, *xs)) if callable(partial) else scale * partial or 1e-6
    partials = (*op.partials[:i], wrong, *op.partials[i + 1:])
    try:
        made = elementwise("to be broken", op.forward, *partials, domain=op.domain)
    finally:
        REGISTRY.pop("to be broken", None)
    return broken(op, partials=partials, vjp=made.vjp, jvp=made.jvp)


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_every_partial_off_by_a_millionth_is_caught_by_the_proof(op):
    parameters = examples(op)[0]
    for i in range(op.arity):
        wrong = with_partial(op, i)
        catches(check_partials, wrong, parameters, 1)
        assert not proved_by_formulas(wrong, parameters, 1)


@pytest.mark.parametrize("name", ["exp", "tanh", "mul", "div", "atan2", "sinc_derivative", "pow", "logaddexp"])
@pytest.mark.parametrize("order", [2, 3])
def test_higher_derivatives_off_by_a_millionth_are_caught(name, order):
    op = REGISTRY[name]
    parameters = examples(op)[0]
    wrong = with_partial(op, 0)
    refuted = any(s.verdict == "refuted" for s in found(wrong, parameters, order) if s.order == order)
    assert refuted == ((name, order) != ("mul", 3))  # all third derivatives of a product are zero
    if refuted:
        few = few_points(op)[:6]
        catches(check_accuracy, wrong, parameters, few, Truth(op, parameters), order)


@pytest.mark.parametrize("op", SHAPED)
def test_every_gradient_off_by_a_millionth_is_caught_by_sympy(op):
    parameters, xs, rng = first_case(op)
    for i in arguments(op):
        catches(check_second_order, with_cotangent(op, i, scaled, EVERYWHERE), parameters, xs, rng)


def test_a_wrong_second_derivative_of_a_right_gradient_is_caught_by_sympy():
    op = REGISTRY["logsumexp"]
    parameters, xs, rng = first_case(op)

    def vjp(xp, g, y, args, needs):
        (c,) = op.vjp(xp, g, y, args, needs)
        return (xp.mul(c, 1.0) if xp is numeric else c.detach() + 0 * c,)  # the numbers are right; their dependence on x is lost

    catches(check_second_order, broken(op, vjp=vjp), parameters, xs, rng)


@pytest.mark.parametrize("op", [case for case in ELEMENTWISE if case.values[0].arity == 1 and case.values[0].domain[0].name == "REAL"])
def test_a_rule_wrong_only_below_minus_one_is_caught(op):
    parameters = examples(op)[0]
    wrong = with_cotangent(op, 0, lambda c, g, x: c + 1e-6 * (c + (c == 0)) * (x < -1))
    catches(check_accuracy, wrong, parameters, few_points(op), Truth(op, parameters), 1)


@pytest.mark.parametrize("op", DIFFERENTIABLE)
def test_a_pullback_that_is_not_linear_is_caught(op):
    parameters, xs, rng = first_case(op)
    for i in arguments(op):
        catches(check_linearity, with_cotangent(op, i, lambda c, g, x: c + 1e-6 * np.abs(c) + 1e-6 * (c == 0)), parameters, xs, rng)


@pytest.mark.parametrize("op, parameters", BROADCASTING)
def test_a_forgotten_unbroadcast_is_caught(op, parameters):
    def first_slice(c, g, x):
        return np.asarray(c)[(0,) * (np.ndim(c) - x.ndim)][tuple(slice(0, n) for n in x.shape)].copy() if np.shape(c) != x.shape else c

    for i in arguments(op):
        shapes = [(2, 3)] * op.arity
        shapes[i] = (1,)
        xs = arrays(op, np.random.default_rng(0), shapes)
        check_broadcast(op, parameters, xs)
        if op.name == "mse_loss" and parameters == ("mean",):
            continue  # its cotangent is a scalar, which has no slices
        wrong = with_cotangent(op, i, lambda c, g, x: first_slice(np.broadcast_to(c, g.shape), g, x) + 1e-6)
        catches(check_broadcast, wrong, parameters, xs)


@pytest.mark.parametrize("op", [case for case in OPS if not case.values[0].view])
def test_a_value_in_the_memory_of_its_input_is_caught(op):
    parameters, xs, _ = first_case(op)
    check_aliasing(op, parameters, xs)
    catches(check_aliasing, with_forward(op, lambda y, x: np.lib.stride_tricks.as_strided(x, np.shape(y), (0,) * np.ndim(y))), parameters, xs)


def test_a_gradient_in_the_memory_of_its_cotangent_is_caught(monkeypatch):
    monkeypatch.setattr(engine, "_own", lambda g, spare: g)
    with pytest.raises(AssertionError, match="gradient 0 shares memory with the cotangent"):
        check_aliasing(REGISTRY["clone"], ("K",), [np.ones(3)])


@pytest.mark.parametrize("op", OPS)
def test_a_changed_input_is_caught(op):
    parameters, xs, _ = first_case(op)

    def increment(y, x):
        x += np.asarray(1, x.dtype)
        return y

    catches(check_mutation, with_forward(op, increment), parameters, [x.copy() for x in xs])


@pytest.mark.parametrize("op", DIFFERENTIABLE)
def test_a_changed_cotangent_is_caught(op):
    parameters, xs, _ = first_case(op)

    def vjp(xp, g, y, args, needs):
        g = np.asarray(g)
        out = op.vjp(xp, g.copy(), y, args, needs)
        g += 1
        return out

    if np.ndim(op.forward(numeric, *((xs,) if op.arity is None else xs), *parameters)):
        catches(check_mutation, broken(op, vjp=vjp), parameters, xs)


@pytest.mark.parametrize("name", ["exp", "sum", "matmul", "permute", "cumsum", "softmax", "add"])
def test_a_rule_that_depends_on_the_memory_layout_is_caught(name):
    op = REGISTRY["mm" if name == "matmul" else name]
    parameters, xs, _ = first_case(op)
    catches(check_layouts, with_forward(op, lambda y, x: y if x.flags.c_contiguous else y * FACTOR), parameters, xs)
    catches(check_layouts, with_cotangent(op, 0, lambda c, g, x: c if x.flags.c_contiguous else c * FACTOR), parameters, xs)


@pytest.mark.parametrize("name", ["exp", "sum", "mm", "div", "softmax"])
def test_a_rule_that_widens_its_dtype_is_caught(name):
    op = REGISTRY[name]
    parameters, xs, _ = first_case(op)
    catches(check_dtype, with_forward(op, lambda y, x: y.astype(np.float64)), parameters, xs)
    catches(check_dtype, with_cotangent(op, 0, lambda c, g, x: np.asarray(c, np.float64)), parameters, xs)
    catches(check_dtype, with_tangent(op, lambda t: np.asarray(t, np.float64)), parameters, xs)


@pytest.mark.parametrize("name, partial", [
    ("abs", lambda xp, y, x: xp.indicator(xp.ge(x, 0), y) - xp.indicator(xp.lt(x, 0), y)),
    ("relu", lambda xp, y, x: xp.indicator(xp.ge(x, 0), y)),
    ("clamp_number", lambda xp, y, x, min, max: xp.indicator(xp.ge(x, min), y) * xp.indicator(xp.le(x, max), y)),
    ("sinc_derivative", lambda xp, y, x, order: xp.sinc_derivative(x, order + 1) / xp.indicator(xp.ne(x, 0), y)),
])
def test_another_convention_at_a_kink_is_caught(name, partial):
    op = REGISTRY[name]
    parameters = examples(op)[0]
    wrong = broken(op, vjp=lambda xp, g, y, args, needs: (g * partial(xp, y, *args),))
    with np.errstate(all="ignore"):
        catches(check_special, wrong, parameters, Truth(op, parameters))


def test_a_tie_that_goes_to_one_side_is_caught():
    op = REGISTRY["maximum"]

    def vjp(xp, g, y, args, needs):
        first = xp.indicator(xp.ge(*args), y)
        return g * first, g * (1 - first)

    with pytest.raises(AssertionError, match="by convention it is 0.5"):
        check_special(dataclasses.replace(op, vjp=vjp), (), Truth(op, ()))
