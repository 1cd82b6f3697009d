"""Every op of the registry under attack, by being declared: a new op needs no line here. What is claimed beyond its data is in claims.py."""

import os

import numpy as np
import pytest

import symgrad
from symgrad.algebra.ladder import AGREED
from symgrad.engine.recording import core
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from symgrad.methods.extending import BUILT_IN
from symgrad.reference.exact import Exact, agreement
from symgrad.reference.run import Run
from symgrad.testing import check_op
from symgrad.testing.claims import Profile
from tests.support.claims import ALL_CASES, CASES, FURTHER, attack_on, further_attacks, name_of
from tests.support.exemptions import exempt

PROFILE = Profile("all", 60 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 8, 3, 0.0)
PARAMETERS = [pytest.param(op, parameters, id=name_of(op, parameters)) for op, parameters in ALL_CASES]
FIRST = list({op.name: pytest.param(op, parameters, id=name_of(op, parameters)) for op, parameters in reversed(ALL_CASES)}.values())[::-1]
BRIEF = Profile("brief", 3, 1, 0.0)  # as dev, with fewer random examples and first derivatives alone
PROVABLE = [pytest.param(op, id=op.name) for op in dict.fromkeys(op for op, _ in CASES)
            if op.differentiable and op.name not in exempt("formula")]
ORDINARY = (0.375, 1.625, -0.875, 3.0)
CUT_OFF = 1e-12  # the rule of binary_cross_entropy is that of torch: where x (1 - x) is smaller, it is not the derivative
SECONDS = 600.0  # so that a busy machine changes no verdict


def test_every_op_is_here():
    """Composites are made of other ops and have no rules; those of `vmap` are in test_vmap.py."""
    assert {op.name for op, _ in ALL_CASES} == {op.name for op in map(REGISTRY.__getitem__, BUILT_IN) if op.kind != "composite"
                                                and op.name not in exempt("alone")}
    assert len(ALL_CASES) > 300 and len({case.id for case in PARAMETERS}) == len(ALL_CASES)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("op, parameters", FIRST[::16])
def test_op(op, parameters):
    """A sixteenth of the ops, in short; all of them are attacked at length below."""
    hold_under_attack(op, parameters, BRIEF)


@pytest.mark.sweep
@pytest.mark.parametrize("op, parameters", PARAMETERS)
def test_op_with_all_parameters_to_the_third_order(op, parameters):
    hold_under_attack(op, parameters, PROFILE)


def hold_under_attack(op, parameters, profile):
    """The checks of an op pass, and those that must apply to it have applied."""
    attack = attack_on(op, parameters, profile)
    report = check_op(attack)
    passed = {result.check for result in report.results if result.verdict == "passed"}
    deep = profile is not BRIEF
    numbers = set() if COMPLEX in op.domain else {"value", "pullback", "pushforward", *["second"] * deep}  # of complex ones there is no other truth
    assert passed >= {"layouts", "mutation", "aliasing", "determinism", "threads", "structure"} | numbers & {"value"}
    if op.differentiable:
        assert passed >= ({"adjoint", "linearity", "formulas", *["mixed"] * deep} | numbers) - set(attack.claims.without)
    if COMPLEX in op.domain and op.name not in exempt("complex"):
        assert "complex" in passed


@pytest.mark.sampled(16)
@pytest.mark.parametrize("op, parameters", [pytest.param(op, parameters, id=name_of(op, parameters)) for op, parameters in CASES
                                            if op.kind == "elementwise" and op.differentiable and COMPLEX not in op.domain
                                            and op.name not in exempt("formula") | exempt("proof")])
def test_second_derivatives_to_fifty_digits(op, parameters):
    """Rules that hold a float where a constant of the carrier is due, as log(2), are right to sixteen digits, and here wrong."""
    leaves = [symgrad.tensor([next(x for x in (*ORDINARY[i:], *ORDINARY) if x in op.domain[i])], requires_grad=True) for i in range(op.arity)]
    exact = Exact(Run(leaves, core(op)(*leaves, *parameters).sum(), None), 2, np.ones(op.arity))
    digits, culprit = agreement(exact)
    assert culprit is None and digits >= AGREED


@pytest.mark.sweep
@pytest.mark.parametrize("attack", [pytest.param(a, id=a.name) for name in FURTHER for a in further_attacks(name, REGISTRY[name], PROFILE)])
def test_functions_of_ops(attack):
    assert check_op(attack)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", PROVABLE[::30])
def test_first_derivatives_are_proved(op):
    """Those of all ops are proved with the higher ones."""
    hold_with_proof(op, 1)


@pytest.mark.sweep
@pytest.mark.parametrize("op", PROVABLE)
def test_higher_derivatives_are_proved(op):
    """Up to the third order for ops on numbers, up to the second for ops on arrays."""
    hold_with_proof(op, 3 if op.kind == "elementwise" else 2)


def hold_with_proof(op, order):
    """The rules of an op are proved by formulas, with every tuple of parameters."""
    single, cut_off, proved = op.kind == "elementwise", op.name == "binary_cross_entropy", op.name not in exempt("proof")
    if not proved and not cut_off:
        order = 1  # their higher derivatives are compared with many digits, in test_op_with_all_parameters_to_the_third_order
    proof = symgrad.prove(op, order, complex=False, seconds=SECONDS if proved else 2.0, points=20 if single else 6)
    assert proof.statements
    for s in proof.refuted if cut_off else ():
        assert any(x * (1 - x) <= 2 * CUT_OFF for name, x in s.point.items() if name.startswith("input") and x.is_number), str(proof)
    assert proof.verdict in (("proved",) if proved else ("verified", "refuted") if cut_off else ("proved", "verified")), str(proof)
