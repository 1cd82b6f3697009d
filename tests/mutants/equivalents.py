"""Mutants that are no mutants: those of which it is proved that they compute the same function with the same derivatives."""

import functools
import re

import numpy as np
import sympy

import symgrad
from symgrad.carriers import symbolic
from symgrad.proofs.prove import cases
from symgrad.reference.elementary import derivative
from symgrad.reference.recorder import RecordingCarrier
from symgrad.testing.checks.memory import results
from symgrad.testing.claims import Profile
from symgrad.testing.silence import silence
from tests.support.claims import attack_on

from .killing import turned

__all__ = ["equivalent"]

SECONDS = 60.0
IN_NUMBERS_ONLY = ("somewhere", "unbroadcast", "shape", "layout", "dtype", "memory")  # of which a formula says nothing


def equivalent(mutant):
    """Why a mutant is the op itself in other words; "" where that is not proved, so that it counts as a survivor."""
    reasons = {_equivalent(mutant, op, wrong) for op, wrong in mutant.wrong}
    return "" if "" in reasons else "; ".join(sorted(reasons))


def _equivalent(mutant, op, wrong):
    kind, detached = mutant.kind, re.match(r"(?:argument (\d+) in the pullback|the whole (pullback|pushforward))$", mutant.what)
    if kind == "detached":
        flat = detached is not None and all(_flat(case, detached[1], detached[2] == "pushforward") for case in cases(op, False, []))
        return "what is detached has the derivative 0" if flat else ""
    if kind == "conjugate":
        if not any(_is_complex(op, parameters) for parameters in op.docs.examples or ((),)):
            return "no cotangent of it is complex"
        chosen = op.selects and all(_flat(case, None, False) for case in cases(op, False, []))
        return "its derivatives depend on which elements are equal, and their conjugates are equal, too" if chosen else ""
    if kind in IN_NUMBERS_ONLY or not _same_numbers(op, wrong):
        return ""
    if wrong.forward is not op.forward and not all(_same_value(a, b) for a, b in zip(cases(op, None, []), cases(wrong, None, []))):
        return ""
    if all(_same_rules(a, b) for a, b in zip(cases(op, False, []), cases(wrong, False, []))):
        return "the rules are the same formulas"
    proof = symgrad.prove(wrong, 2, seconds=SECONDS)
    return "proved to be the derivative" if proof.verdict == "proved" else ""


def _same_numbers(op, wrong):
    """Whether value, gradient and tangent are the same numbers at all examples: formulas say nothing of ties and kinks."""
    for k in range(len(op.docs.examples or ((),))):
        attack = _attack(op, k)
        other = turned(attack, wrong)
        for example in (*attack.examples("points"), *attack.examples("special")):
            try:
                with silence():
                    first, second = (results(each, example.copied()) for each in (attack, other))
            except Exception:  # whatever a wrong rule raises
                return False
            if len(first) != len(second) or not all(_close(x, y) for (*_, x), (*_, y) in zip(first, second)):
                return False
    return True


@functools.cache
def _attack(op, k):
    """The attack on an op with its k-th parameters, of first derivatives only."""
    return attack_on(op, (op.docs.examples or ((),))[k], Profile("first derivatives", 12, 1, 0.0))


def _close(x, y):
    """Whether arrays are equal up to rounding."""
    size = np.max(np.abs(x), initial=0.0, where=np.isfinite(x))
    return x.shape == y.shape and np.allclose(x, y, rtol=1e-9, atol=1e-12 * size, equal_nan=True)


def _same_rules(case, wrong):
    """Whether pullback and pushforward of two ops are read as literally the same formulas."""
    try:
        first, second = ({key: list(map(str, found)) for key, found in each.claims(_recorder(each), each.supply, 1)} for each in (case, wrong))
    except Exception:  # whatever a wrong rule raises
        return False
    return first == second


def _recorder(case):
    return RecordingCarrier(symbolic, lambda x: symbolic.lift_value(x, exact=True), case.complex)


def _same_value(case, wrong):
    """Whether two forward rules have one formula."""
    a, b = case.forward(), wrong.forward()
    return len(a) == len(b) and all(x == y or symgrad.identical(x, y, seconds=SECONDS).verdict == "proved" for x, y in zip(a, b))


def _flat(case, argument, pushed):
    """Whether the pullback, or the pushforward, does not depend on the arguments, or on one of them, but for jumps."""
    variables = case.variables if argument is None else case.symbols.get(case.names[int(argument)], np.array([])).ravel().tolist()
    for key, found in case.claims(_recorder(case), case.supply, 1):
        if key.what.startswith("jvp" if pushed else "vjp"):
            for e in found:
                for s in variables:
                    slope = derivative(sympy.sympify(e), s).replace(sympy.DiracDelta, lambda *args: sympy.S.Zero)
                    if sympy.simplify(slope) != 0:
                        return False
    return True


def _is_complex(op, parameters):
    """Whether an op takes complex numbers to complex numbers."""
    attack = attack_on(op, parameters, "dev")
    xs = [x + 0.5j if x.dtype.kind == "f" else x for x in attack.examples("points")[0].xs]
    try:
        return attack.subject.value(xs).dtype.kind == "c"
    except (TypeError, RuntimeError, ValueError):
        return False
