"""Random functions with generic parameters, by every route to the value and the first three derivatives, against fifty digits and more.

`python -m tests.routes --functions 1000 --processes 2` runs more of them, and says how many routes were compared.
"""

from __future__ import annotations

import numpy as np
import pytest

from symgrad.testing.strategies.programs import DrawnOperand

from .__main__ import shown
from .comparing import examined
from .drawing import Function, Step, draw
from .table import ROUTES, Problem, Route, here
from .words import WORDS

OWN = [route for route in ROUTES if route.needs not in ("torch", "jax")]  # tests/parity has the others: JAX's threads do not go with processes
SHORT, SHARE = 12, 0.06  # functions of the short form, and the share of the routes that each takes; together they take all


def function(point, *steps, constants=()):
    """A function with generic weights and a generic tangent; each step is a word, the values it takes, and parameters."""
    point, rng = np.asarray(point, float), np.random.default_rng(5)
    steps = tuple(Step(word, tuple(map(DrawnOperand, operands)), tuple(parameters)) for word, operands, *parameters in steps)
    found = Function(point, tuple(map(np.asarray, constants)), steps, np.ones(()), rng.uniform(0.3, 1.7, point.shape))
    shape = tuple(found.vector(Problem(found).x).shape)
    return Function(point, found.constants, steps, rng.uniform(0.3, 1.7, shape), found.tangent)


HARD = {  # where routes had wrong numbers
    "a rounded exponent less one": function([0.7, 1.9], ("x ** p", (0,), 1 / 3)),
    "a negative exponent": function(0.7, ("x ** p", (0,), -0.46)),
    "complex on the way": function(0.3, ("cos", (0,)), ("sin", (0,)), ("x * c", (2,), 1.9), ("complex", (1, 3)), ("x ** n", (4,), 3), ("abs", (5,))),
    "complex logarithms": function(0.7, ("x * c", (0,), -1.3), ("complex", (1, 0)), ("log", (2,)), ("imag", (3,)), ("exp", (4,))),
    "a root that was not selected": function([-1.3, 0.7], ("relu", (0,)), ("sqrt", (1,))),
    "a power that was not selected": function([-1.3, 0.7], ("clamp_min", (0,), 0.0), ("x ** p", (1,), 0.7)),
    "a square of a norm at 0": function([0.0, 0.0], ("norm ** p", (0,), 2)),
    "a power of a hypotenuse at 0": function([0.0, 0.3], ("hypot ** p", (0, 0), 4)),
    "a product of matrices": function([[0.3, 1.7], [-0.4, 2.1]], ("mm", (0, 0))),
    "a tail": function(-740.3, ("sigmoid", (0,)), ("x * c", (1,), 3.3)),
}

OPEN: dict[str, str] = {}  # routes that are not right yet


def test_random_functions():
    different = [shown(found) for found in (examined(draw(seed), OWN, SHARE) for seed in range(SHORT)) if found.differences]
    assert not different, "\n\n".join(different)


@pytest.mark.sweep
@pytest.mark.parametrize("k", range(16))
def test_random_functions_by_all_routes(k, new_seed):
    found = examined(draw(new_seed + k), OWN)
    assert not found.differences, shown(found)


@pytest.mark.sweep
@pytest.mark.parametrize("name", HARD)
def test_functions_that_were_wrong(name):
    found = examined(HARD[name], [route for route in OWN if OPEN.get(name, "-") not in route.name])
    assert not found.differences, shown(found)
    assert len(found.compared) > 90


@pytest.mark.sweep
def test_a_wrong_number_is_found():
    """A result may be off by roundings, and by nothing else: not by 1e-11, and not at a single element."""
    f = HARD["a rounded exponent less one"]

    def route(what, change):
        exact = next(r for r in ROUTES if r.name == {"gradient": "backward", "third": "grad of grad of grad"}[what])
        return Route("changed", what, lambda p: exact.compute(p).numpy() * change)

    for what in ("gradient", "third"):
        assert not examined(f, [route(what, 1 + 4e-15)]).differences
        for change in (1 + 1e-11, np.array([1, 1 + 1e-10]), 0.0, np.nan):
            (difference,) = examined(f, [route(what, change)]).differences
            assert "not" in difference.told, change


def test_errors_of_our_own_are_differences_and_refusals_are_not():
    f = HARD["a tail"]

    def raising(error):
        def compute(p):
            raise error

        return [Route("raising", "value", compute)]

    assert examined(f, raising(RuntimeError("this has no derivative"))).refused
    for error in (AttributeError("no view"), AssertionError(), IndexError("out of range"), RuntimeError()):
        assert examined(f, raising(error)).differences


@pytest.mark.sweep
def test_nearly_every_word_is_drawn():
    drawn = {word for seed in range(3000) for word in draw(seed).words}
    assert len(drawn) > 0.85 * len(WORDS), sorted(WORDS.keys() - drawn)


def test_every_route_has_a_name_of_its_own():
    assert len({route.name for route in ROUTES}) == len(ROUTES) > 150
    assert sum(map(here, ROUTES)) > 150
