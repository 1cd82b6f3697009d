"""`symgrad.prove` on every elementwise op of the registry with a partial wrong by a millionth: numbers refute it, and formulas do not prove it."""

from unittest import mock

import pytest

import symgrad
from symgrad.graph.op import REGISTRY, elementwise
from symgrad.proofs import statements as proving_statements
from symgrad.proofs.numbers import NumericResult
from symgrad.proofs.prove import cases
from tests.mutants.mutant import differentiable_ops, mutated
from tests.support.points import examples

FACTOR = 1 + 1e-6
POINTS = 20
ELEMENTWISE = [pytest.param(op, id=op.name) for op in differentiable_ops() if op.kind == "elementwise"]


def with_partial(op, i):
    """An elementwise op declared again with one wrong partial derivative."""
    partial = op.partials[i]
    wrong = (lambda xp, y, *xs: FACTOR * partial(xp, y, *xs)) if callable(partial) else FACTOR * partial or 1e-6
    partials = (*op.partials[:i], wrong, *op.partials[i + 1:])
    try:
        made = elementwise("to be broken", op.forward, *partials, domain=op.domain)
    finally:
        REGISTRY.pop("to be broken", None)
    return mutated(op, partials=partials, vjp=made.vjp, jvp=made.jvp, examples=examples(op)[:1])


def proved_by_formulas(op):
    """Whether the rules would be proved without numeric comparison."""
    def agreeing(case, region, truths, *rest):
        return {key: NumericResult(POINTS) for key in truths}, ""

    with mock.patch.object(proving_statements, "_numbers", agreeing):
        return all(s.verdict == "proved" for case in cases(op, False, []) for s in proving_statements.statements(case, 1, 600.0, POINTS))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", ELEMENTWISE)
def test_every_partial_off_by_a_millionth_is_refuted(op):
    for i in range(op.arity if op.name != "power_of_length" else 1):  # that by its square is 0 but where the length is 0
        wrong = with_partial(op, i)
        proof = symgrad.prove(wrong, 1, complex=False, seconds=600.0)
        assert proof.verdict == "refuted" and "(mutant)" in proof.op
        assert not proved_by_formulas(wrong)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["exp", "tanh", "mul", "div", "atan2", "sinc_derivative", "pow", "logaddexp"])
@pytest.mark.parametrize("order", [2, 3])
def test_higher_derivatives_off_by_a_millionth_are_refuted(name, order):
    proof = symgrad.prove(with_partial(REGISTRY[name], 0), order, complex=False, seconds=600.0)
    refuted = any(s.verdict == "refuted" for s in proof.statements if s.order == order)
    assert refuted == ((name, order) != ("mul", 3))  # all third derivatives of a product are zero
