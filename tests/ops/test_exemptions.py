"""No line of the table of exemptions is needless: what is exempt from a property does not have it."""

import dataclasses
import re

import numpy as np
import pytest
import sympy

import symgrad
from symgrad.carriers import symbolic
from symgrad.codegen.languages import C, NumPy
from symgrad.graph.op import REGISTRY
from symgrad.testing import check_op
from symgrad.testing.attack import Attack
from symgrad.testing.checks import CHECKS
from tests.engine.test_memory import public_calls, shared
from tests.support.claims import claims_of_case
from tests.support.exemptions import EXEMPTIONS, exempt
from tests.support.points import arrays, examples
from tests.support.special_sources import CASES, written

PAIRS = [(property, name) for row in EXEMPTIONS for property in row.properties.split() for name in row.ops.split()]


def found(op, parameters, checks, **changed):
    """The verdicts of checks without an exemption from them."""
    claims = claims_of_case(op, parameters)
    changed["without"] = {check: reason for check, reason in claims.without.items() if check not in checks}
    report = check_op(Attack(op, dataclasses.replace(claims, **changed), "dev"), checks=checks, raise_exception=False)
    return {result.verdict for result in report.results}


def has_formula(op):
    given = [symbolic.lift_value(x) for x in arrays(op, np.random.default_rng(0))]
    try:
        op.forward(symbolic, *((given,) if op.arity is None else given), *examples(op)[0])
    except TypeError as error:
        return not re.search("no (expression|formula)", str(error))
    return True


def has(property, op):
    """Whether an op has a property after all."""
    if property == "formula":
        return has_formula(op)
    if property == "closed":
        return not op.forward(symbolic, *sympy.symbols("a x", positive=True), *examples(op)[0]).has(sympy.meijerg)
    if property == "source":
        return all(written(language, name, parameters) is not None for name, parameters in CASES if name == op.name for language in (NumPy, C))
    if property == "alone":
        return found(op, examples(op)[0], ["pullback", "pushforward"]) == {"passed"}
    if property == "memory":
        return not any(shared(call, args) for call, args in public_calls(op, "transposed", "float"))
    if property == "dtypes":
        return all(found(op, parameters, ["dtypes", "structure"], dtypes=None) <= {"passed", "not applicable"} for parameters in examples(op))
    if property == "proof":
        return symgrad.prove(op, 2, complex=False, points=20).verdict == "proved"
    return all(found(op, parameters, [property]) == {"passed"} for parameters in examples(op))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("property, name", [pytest.param(*pair, marks=[pytest.mark.sweep] * (pair[0] == "proof")) for pair in PAIRS])
def test_what_is_exempt_does_not_have_the_property(property, name):
    assert not has(property, REGISTRY[name])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("property, name", [("formula", "determinant"), ("alone", "mm"), ("memory", "mm"), ("dtypes", "exp"), ("complex", "exp"),
                                            ("pullback", "exp"), ("proof", "exp"), ("closed", "gammainc"), ("source", "gammainc")])
def test_a_needless_exemption_would_be_found(property, name):
    assert name in REGISTRY and name not in exempt(property) and has(property, REGISTRY[name])


def test_each_line_names_ops_and_properties_once_and_has_a_reason():
    assert len(PAIRS) == len(set(PAIRS)) and len(EXEMPTIONS) <= 13
    assert {name for _, name in PAIRS} <= set(REGISTRY)
    assert {property for property, _ in PAIRS} <= {*CHECKS, "formula", "closed", "source", "alone", "memory"}
    assert all(len(row.reason.split()) > 5 for row in EXEMPTIONS)
