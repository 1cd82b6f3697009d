"""Every op of the registry, by being declared: proofs, identities, shapes, memory, special points. A new op needs no line here."""

import numpy as np
import pytest
from accuracy import check_special
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
from hypothesis import given
from hypothesis import strategies as st
from points import arrays, examples, of_numbers
from proofs import POINTS, SECONDS, check_partials
from truth import Truth

import symgrad
from symgrad import autograd
from symgrad.extending import BUILT_IN
from symgrad.lift import core
from symgrad.op import REGISTRY

CASES = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in REGISTRY.values()
         if op.kind != "composite" and of_numbers(op) for parameters in examples(op)]  # the latter: tests/test_complex.py
DIFFERENTIABLE = [case for case in CASES if case.values[0].differentiable]
ELEMENTWISE = [case for case in DIFFERENTIABLE if case.values[0].kind == "elementwise"]
SHAPED = [case for case in DIFFERENTIABLE if case.values[0].kind != "elementwise"]
BROADCASTING = [case for case in ELEMENTWISE if case.values[0].arity > 1] + [
    pytest.param(REGISTRY["where"], (), id="where"), pytest.param(REGISTRY["mse_loss"], ("none",), id="mse_loss none"),
    pytest.param(REGISTRY["mse_loss"], ("mean",), id="mse_loss mean")]
SEEDS = st.integers(0, 2**32 - 1)

ONLY_VERIFIED = {"binary_cross_entropy"}  # whose logarithms are cut off where they would be infinite, for which there is no normal form


def test_every_case_is_here():
    assert {case.values[0].name for case in CASES} == {
        op.name for op in map(REGISTRY.__getitem__, BUILT_IN) if op.kind != "composite" and of_numbers(op)}
    assert len(ELEMENTWISE) > 50 and len(SHAPED) > 50


@pytest.mark.parametrize("op, parameters", ELEMENTWISE)
def test_partials_are_proved(op, parameters):
    word, points = check_partials(op, parameters, 3)
    assert word == "proved" and points >= POINTS


@pytest.mark.parametrize("op, parameters", [case for case in SHAPED if case.values[0].name not in ("batch", "unbatch")])
def test_rules_on_arrays_are_proved(op, parameters):
    hopeless = op.name in ONLY_VERIFIED
    word, points = check_partials(op, parameters, 2, points=6, seconds=2.0 if hopeless else SECONDS)
    assert word == ("verified" if hopeless else "proved") and points >= 6


@pytest.mark.parametrize("op, parameters", SHAPED)
def test_gradient_and_hessian_are_sympys(op, parameters):
    rng = np.random.default_rng(0)
    check_second_order(op, parameters, arrays(op, rng), rng)


@pytest.mark.parametrize("op, parameters", CASES)
@given(seed=SEEDS)
def test_the_numbers_are_those_of_sixty_digits(op, parameters, seed):
    rng = np.random.default_rng(seed)
    check_replay(op, parameters, arrays(op, rng), rng)


@pytest.mark.parametrize("op, parameters", DIFFERENTIABLE)
@given(seed=SEEDS)
def test_pullback_is_the_adjoint_of_pushforward(op, parameters, seed):
    rng = np.random.default_rng(seed)
    xs = arrays(op, rng)
    check_adjoint(op, parameters, xs, rng)
    check_linearity(op, parameters, xs, rng)


@pytest.mark.parametrize("op, parameters", CASES)
def test_memory(op, parameters):
    xs = arrays(op, np.random.default_rng(0))
    check_mutation(op, parameters, xs)
    check_layouts(op, parameters, xs)
    check_aliasing(op, parameters, xs)
    check_dtype(op, parameters, xs)


PAIRS = [((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 1, 3), (4, 1)), ((1,), (1, 1)), ((0, 3), (1,)), ((5,), ())]


@pytest.mark.parametrize("shapes", PAIRS, ids=str)
@pytest.mark.parametrize("op, parameters", BROADCASTING)
def test_broadcasting(op, parameters, shapes):
    rng = np.random.default_rng(0)
    for order in ((shapes, shapes[::-1]) if op.arity == 2 else (shapes + shapes[:1], shapes[::-1] + shapes[:1], shapes[:1] + shapes)):
        if parameters != ("mean",) or 0 not in np.broadcast_shapes(*shapes):
            check_broadcast(op, parameters, arrays(op, rng, order))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)], ids=str)
@pytest.mark.parametrize("op, parameters", ELEMENTWISE)
def test_shapes_of_all_kinds(op, parameters, shape):
    xs = [symgrad.tensor(x, requires_grad=True) for x in arrays(op, np.random.default_rng(0), [shape] * op.arity)]
    y = core(op)(*xs, *parameters)
    assert y.shape == shape and y.dtype is symgrad.float64
    for first in autograd.grad(y.sum(), xs, create_graph=True):
        assert first.shape == shape and first.dtype is symgrad.float64
        for second in autograd.grad(first.sum(), xs, materialize_grads=True, retain_graph=True):
            assert second.shape == shape and second.dtype is symgrad.float64


@pytest.mark.parametrize("op, parameters", [case for case in ELEMENTWISE if case.values[0].special])
def test_special_points(op, parameters):
    check_special(op, parameters, Truth(op, parameters))
