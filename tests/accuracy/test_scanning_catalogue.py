"""The scan of the catalogue: which ops it covers, and that their values and derivatives up to the third order keep their digits."""

import numpy as np
import pytest

import symgrad
from symgrad.engine.traced import FUNCTIONS
from symgrad.graph.op import REGISTRY
from symgrad.reference.accuracy import BOUNDS
from symgrad.scanning.catalogue import is_listed, scan, scanned_calls
from symgrad.scanning.subject import Subject

CALLS = [(op, parameters) for op in REGISTRY.values() if is_listed(op) for parameters in scanned_calls(op)]
SHARE = SHARE_OF_ALL = 0.999
IDENTITIES = {"conj", "real", "resolve_conj", "tile"}
"""Of real numbers, and without a number of repetitions, these return their argument itself."""


def test_every_op_that_works_element_by_element_is_scanned():
    x, y = np.array([[0.25, 0.5, 0.75], [0.125, 0.375, 0.625]]), np.array([[0.5, 0.25, 0.5], [0.75, 0.125, 0.25]])
    covered = {op.name for op, _ in CALLS}
    found = set()
    for op in REGISTRY.values():
        if not op.surface.public or not op.differentiable or op.kind != "composite" or op.arity is None:
            continue
        values = [x, y, x + y][:op.arity]
        try:
            whole = FUNCTIONS[op.name](*map(symgrad.tensor, values)).numpy()
            if whole.shape != x.shape or whole.dtype != x.dtype:
                continue
            single = [FUNCTIONS[op.name](*(symgrad.tensor(v[i]) for v in values)).item() for i in np.ndindex(x.shape)]
        except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, NotImplementedError, UserWarning):
            continue  # it needs other arguments than numbers
        if np.array_equal(np.ravel(whole), single):
            found.add(op.name)
    assert len(found) > 20 and found - covered == IDENTITIES


@pytest.mark.parametrize("name, expected", [("jv", (0.5, 2)), ("polygamma", (1,)), ("chebyshev_polynomial_t", (3,)), ("gelu", ("tanh",))])
def test_parameters_of_the_examples_are_used(name, expected):
    op = REGISTRY[name]
    for parameters in expected:
        subject = Subject(op, parameters=(parameters,))
        arguments = (parameters, 0.7) if name in ("jv", "polygamma") else (0.7, parameters)
        call = FUNCTIONS.get(name) or (lambda x, how: symgrad.nn.functional.gelu(x, approximate=how))
        expected_value = call(*(symgrad.tensor(a) if a == 0.7 else a for a in arguments)).item()
        assert subject.names == ["x"] and subject.call_at([np.array(0.7)]).result.item() == expected_value


def shares(calls, points):
    """The numbers within their bounds, and all that were compared, of evenly drawn points of some ops."""
    within = compared = 0
    for op, parameters in calls:
        for sample in scan(op, parameters, 60.0, points, 0).samples:
            for index, errors in sample.errors.items():
                drawn = errors[:sample.drawn]
                known = drawn[~np.isnan(drawn)]
                within, compared = within + np.count_nonzero(known <= BOUNDS[len(index)]), compared + known.size
    return within, compared


@pytest.mark.sweep
def test_the_digits_of_some_ops():
    names = {"gelu", "bessel_j0", "legendre_polynomial_p", "logaddexp2", "polygamma"}
    calls = {op.name: (op, parameters) for op, parameters in CALLS if op.name in names}
    within, compared = shares(calls.values(), 1)
    assert within >= SHARE * compared > 500


@pytest.mark.sweep
def test_the_digits_of_all_ops():
    within, compared = shares(CALLS, 1)
    assert within >= SHARE_OF_ALL * compared > 10_000
