"""What tests over all ops do not ask of some: one line for each property and reason. tests/ops/test_exemptions.py holds that no line is needless.

A property is a check of `symgrad.testing`, or
- "formula": the value has a symbolic form, of which the rules are proved;
- "proof": all derivatives up to the third order are proved, and not only verified or right away from a cut;
- "closed": the formula is one of functions of which SymPy has values at every point: not of Meijer's G;
- "source": all derivatives can be written as a source, in every language;
- "dtypes": there are rules for every type of floats;
- "alone": the op can be called outside of `vmap`;
- "memory": a result of the public function shares no memory with an argument, unless it is a view.
"""

from typing import NamedTuple

from tests.support.lines import lines


class Exemption(NamedTuple):
    """The properties, the ops that do not have them, and why, as it was measured."""

    properties: str
    ops: str
    reason: str


EXEMPTIONS = tuple(Exemption(*row) for row in lines("exemptions"))


def exempt(property):
    """The ops that a property is not asked of."""
    return frozenset(name for row in EXEMPTIONS if property in row.properties.split() for name in row.ops.split())


def reasons(name):
    """The properties that an op is not asked for, with the reasons."""
    return {property: row.reason for row in EXEMPTIONS if name in row.ops.split() for property in row.properties.split()}
