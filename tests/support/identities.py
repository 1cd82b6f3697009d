"""A corpus of true and false identities: `corpus/identities.txt` and, of elementary functions, `corpus/identities_elementary.txt`.

Above, the files define symbols and functions; then each line under a truth value and a field is `a == b`, or `a == b given {symbol: assumption}`.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import sympy


class Case(NamedTuple):
    """One claim: that two expressions are the same function."""

    field: str
    a: Any
    b: Any
    assumptions: Any = None


def gd(u):
    """Gudermann's function."""
    return 2 * sympy.atan(sympy.tanh(u / 2))


def raw(make, *args):
    """An expression as it is written, which SymPy would simplify at once."""
    return make(*args, evaluate=False)


def read(name):
    """The true and the false cases of a file."""
    definitions, *parts = re.split(r"\n\n\[(true|false): (.*)\]\n", (Path(__file__).parent / "corpus" / f"{name}.txt").read_text())
    names = {**vars(sympy), "gd": gd, "raw": raw}
    exec(definitions, names)
    cases = {"true": [], "false": []}
    for truth, field, lines in zip(parts[::3], parts[1::3], parts[2::3]):
        for line in lines.splitlines():
            claim, _, assumptions = line.partition(" given ")
            a, b = claim.split(" == ")
            cases[truth].append(Case(field, *(eval(text, names) for text in (a, b, *filter(None, [assumptions])))))
    return cases["true"], cases["false"]


GENERAL, ELEMENTARY = read("identities"), read("identities_elementary")
TRUE, FALSE = GENERAL[0] + ELEMENTARY[0], GENERAL[1] + ELEMENTARY[1]
