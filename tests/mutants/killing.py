"""Mutants: ops with one rule made wrong, as data; how the checks of `symgrad.testing` kill them; and those of which it is proved that they are none.

A mutant is attacked with the examples and the truth of the op that it was made of. No mutant is ever registered.
"""

import functools
import re
from typing import Any, NamedTuple

import numpy as np
import sympy

import symgrad
from symgrad.carriers import symbolic
from symgrad.frameworks.adapter import NotApplicable
from symgrad.graph.op import Op
from symgrad.proofs.prove import cases
from symgrad.reference.elementary import derivative
from symgrad.reference.recorder import RecordingCarrier
from symgrad.testing.attack import Attack, run_at_example
from symgrad.testing.checks import CHECKS
from symgrad.testing.checks.memory import results
from symgrad.testing.claims import Profile, silence
from tests.support.claims import CASES, attack_on, further_attacks


class Mutant(NamedTuple):
    """A change: `kind` says what sort of change it is, `what` which one, `wrong` the ops it makes, each with the op that it was made of.

    A mutant of a function that several rules call makes several ops; the change is found out if one of them is.
    """

    kind: str
    what: str
    wrong: tuple[tuple[Op, Op], ...]

    def __str__(self):
        return f"{self.wrong[0][0].name}: {self.kind}: {self.what}"


def mutated(op, **rules):
    """A copy of an op with other rules, under a name that no carrier knows, so that its own forward rule is what runs."""
    return op.but(name=f"{op.name} (mutant)", **rules)


def differentiable_ops():
    """Every op of the registry that has rules of derivatives, but for those between real and complex numbers and those of `vmap`.

    Composites have no rules, and the two of `vmap` are no functions by themselves.
    """
    return list(dict.fromkeys(op for op, _ in CASES if op.differentiable))


FIRST = ("value", "pullback", "pushforward", "adjoint", "structure", "second")  # what finds most, in the order of what it costs
LAST = ("third", "digits", "differences", "dtypes", "layouts", "pickling", "threads", "errors", "proof")
CRASHES = ("diag_embed: dropped sign: selection._diag_embed: -1 -> 1 (#2)", "diag_embed: constant: selection._diag_embed: 1 -> -1 (#2)")
"""Mutants that end the process: the indices they give to NumPy's `add.at` are outside its array."""

ASKED_FIRST = {"layout": "layouts", "dtype": "structure", "memory": "mutation", "conjugate": "complex", "unbroadcast": "broadcasting",
               "detached": "mixed", "nonlinear": "linearity"}


class Remembered:
    """A truth that computes nothing twice: the mutants of an op are many, and what is true of it is the same for all."""

    def __init__(self, truth):
        self.truth, self.known = truth, {}

    def __getattr__(self, name):
        found = getattr(self.truth, name)
        return functools.partial(self.of, name, found) if name in ("value", "gradient", "tangent", "moves") else found

    def of(self, name, function, *given):
        """What a function of the truth gives, which is computed once."""
        key = name, spelled(given)
        if key not in self.known:
            self.known[key] = function(*given)
        return self.known[key]


def spelled(x):
    """Arrays and tuples of them by what is in them."""
    if isinstance(x, np.ndarray):
        return x.shape, x.dtype.str, x.tobytes()
    return tuple(map(spelled, x)) if isinstance(x, (tuple, list)) else x


class Killed(NamedTuple):
    """By which check a mutant was found out, with which parameters, and what it said."""

    check: str
    parameters: tuple[Any, ...]
    why: str


def first_failure(attack, checks):
    """The first check that an attack fails, and what it says; nothing is shrunk and no report is made."""
    for check in checks:
        if attack.claims.without.get(check.name) or check.when(attack):
            continue
        try:
            for example in attack.examples(check.draws)[:check.most]:
                wrong = run_at_example(check, attack, example)
                if wrong is not None:
                    return check.name, wrong.what
        except NotApplicable:
            continue
    return None


class Killers:
    """The attacks on the ops themselves, whose examples and truths their mutants are attacked with.

    `profile` is that of the attacks. A check that the op itself does not pass says nothing of its mutants: with `honest` every op is
    attacked first, and such checks are left out and counted in `accused`.
    """

    def __init__(self, profile="dev", honest=False):
        self.profile, self.honest = profile, honest
        self.attacks = {}
        self.trusted = {}
        self.accused = []

    def attack(self, op, k):
        """The attack on an op with its k-th parameters, and the checks that it passes."""
        key = op.name, k
        if key not in self.attacks:
            parameters = (op.docs.examples or ((),))[k]
            self.attacks[key] = attack = attack_on(op, parameters, self.profile)
            if attack.truth is not None:
                attack.__dict__["truth"] = Remembered(attack.truth)
            attack.claims = attack.claims.but(complex=takes_complex(attack))
            self.trusted[key] = checks = in_order()
            while self.honest and (found := first_failure(attack, checks)) is not None:
                self.accused.append((op.name, parameters, *found))
                self.trusted[key] = checks = [c for c in checks if c.name != found[0]]
        return self.attacks[key], self.trusted[key]

    def kill(self, mutant):
        """How a mutant is found out; None where it survives everything."""
        if str(mutant) in CRASHES:
            return Killed("sizes", (), "the process ends with a segmentation fault")
        for op, wrong in mutant.wrong:
            for k, parameters in enumerate(op.docs.examples or ((),)):
                attack, checks = self.attack(op, k)
                first = "pushforward" if "tangent" in mutant.what else ASKED_FIRST.get(mutant.kind)
                found = first_failure(turned(attack, wrong), sorted(checks, key=lambda c: c.name != first))
                if found is not None:
                    return Killed(found[0], parameters, found[1])
            for attack in further_attacks(op.name, wrong, self.profile):
                found = first_failure(attack, in_order())
                if found is not None:
                    return Killed(found[0], (), found[1])
        return None


def takes_complex(attack):
    """Whether the check for complex numbers has something to say of an op."""
    check = CHECKS["complex"]
    try:
        return not check.when(attack) and run_at_example(check, attack, attack.examples(check.draws)[0]) is None
    except NotApplicable:
        return False


def in_order():
    """All checks, the cheap ones that find most first."""
    middle = [name for name in CHECKS if name not in (*FIRST, *LAST)]
    return [CHECKS[name] for name in (*FIRST, *middle, *LAST) if name in CHECKS]


def turned(attack, wrong):
    """The attack on a mutant: its own subject, with the examples and the truth of the op itself."""
    out = Attack(wrong, attack.claims, attack.profile, attack.seed)
    for name in ("names", "domains", "elementwise", "shapes", "truth"):
        out.__dict__[name] = getattr(attack, name)
    out.claims = out.subject.claims = attack.claims  # of its own it would claim less, for it is not in the registry
    out.examples = attack.examples
    return out


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
