"""Checks of an op's rules: their results against the same rules evaluated with many digits, and their proof."""

from __future__ import annotations

import mpmath

from symgrad.proofs.prove import prove
from symgrad.reference.tensors import RuleReference
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import check
from symgrad.testing.checks.measuring import compare
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong

__all__ = ["check_digits", "check_proof"]


def _rules(attack: Attack) -> str:
    """A check for registered ops, whose rules are known."""
    op = attack.subject.op
    if op is None or op.kind == "composite":
        return "its rules are not known; it is no op of the registry"
    return attack.of_complex


@check("digits", when=_rules)
def check_digits(attack: Attack, example: Example) -> None:
    """The value, the pullback and the pushforward agree with the same rules evaluated with a hundred digits.

    >>> import symgrad
    >>> check_digits(symgrad.tanh).verdict
    'passed'
    """
    replay = RuleReference(attack.subject.op, attack.claims.parameters, attack.elementwise)
    xs, g, ts = example.xs, example.cotangent, example.tangents[0]
    try:
        value = replay.value(xs)
        pulled, pushed = (replay.gradient(xs, g), replay.tangent(xs, ts)) if attack.order else ([], None)
    except (ArithmeticError, ValueError, mpmath.libmp.NoConvergence):  # raised for single elements that cannot be computed with many digits
        return
    compare(attack, "the value", attack.subject.value(xs), value, xs, of=replay)
    if attack.order:
        for i, (got, true) in enumerate(zip(attack.subject.gradient(xs, g), pulled)):
            if true is not None:
                compare(attack, "the gradient", got, true, xs, i, g, wrt=(i,), of=replay)
        assert pushed is not None
        compare(attack, "the tangent", attack.subject.tangent(xs, ts), pushed, xs, None, None, ts, of=replay)


def _provable(attack: Attack) -> str:
    """A check for ops with rules, if the profile has time for proofs."""
    if not attack.profile.seconds:
        return f"the profile {attack.profile.name} has no time for proofs"
    return _rules(attack) or ("" if attack.subject.op.differentiable else "it has no derivative")


@check("proof", when=_provable, most=1)
def check_proof(attack: Attack, example: Example) -> None:
    """`symgrad.prove` does not refute the rules: their formulas equal SymPy's derivatives wherever they were compared.

    >>> import symgrad
    >>> check_proof(symgrad.tanh, profile="ci").verdict
    'passed'
    """
    op = attack.subject.op
    proof = vars(attack).setdefault("_proof", None) or prove(op, min(2, attack.order), complex=False, seconds=attack.profile.seconds)
    vars(attack)["_proof"] = proof
    for s in proof.statements:
        if s.verdict == "refuted":
            point = ", ".join(f"{name} = {value}" for name, value in (s.point or {}).items())
            difference = "" if s.difference is None else f"; what it gives is too large by {s.difference}"
            raise Wrong(f"the rule {s.what} is refuted{f' at {point}' if point else ''}{difference}", s.claim, s.truth, order=s.order,
                        exact="the derivative by SymPy")
