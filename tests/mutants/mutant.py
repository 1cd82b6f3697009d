"""`Mutant`: one op, or several of one helper, with one rule made wrong, as data; no mutant is ever registered."""

from typing import NamedTuple

from symgrad.graph.op import Op
from tests.support.claims import CASES

__all__ = ["Mutant", "differentiable_ops", "mutated"]


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
