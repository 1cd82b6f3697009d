"""Killing: the checks of `symgrad.testing` on a mutant, with the examples and the truth of the op that it was made of."""

import functools
from typing import Any, NamedTuple

import numpy as np

from symgrad.frameworks.adapter import NotApplicable
from symgrad.testing.attack import Attack, run_at_example
from symgrad.testing.checks import CHECKS
from tests.support.claims import attack_on, further_attacks

__all__ = ["Killers", "Killed", "first_failure"]

FIRST = ("value", "pullback", "pushforward", "adjoint", "structure", "second")  # what finds most, in the order of what it costs
LAST = ("third", "digits", "differences", "dtypes", "layouts", "pickling", "threads", "errors", "proof")
CRASHES = ("diag_embed: dropped sign: indexing._diag_embed: -1 -> 1 (#2)", "diag_embed: constant: indexing._diag_embed: 1 -> -1 (#2)")
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
    out.examples, out.strategy = attack.examples, attack.strategy
    return out
