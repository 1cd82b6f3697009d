"""True and false identities, of `corpus/identities.txt` and `identities_elementary.txt`, and examples of matrix calculus, of `matrix_identities.txt`.

The first two files define symbols and functions above; then each line under a truth value and a field is `a == b`, or
`a == b given {symbol: assumption}`. The third has functions, the dimensions of their arguments, and derivatives.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import sympy

import symgrad
from symgrad.matrixcalc import det, inv, logdet, solve
from symgrad.nn.functional import binary_cross_entropy_with_logits


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


class Identity(NamedTuple):
    """The derivative of a function with respect to one or two of its arguments is `text`; `arrays` gives the dimensions of the arguments."""

    name: str
    function: Callable[..., symgrad.Tensor]
    arrays: dict[str, str]
    wrt: Any
    text: str
    order: int


def likelihood(A, y):
    """The negative logarithm of a Gaussian likelihood as it is computed, by a Cholesky factor."""
    factor = symgrad.linalg.cholesky(A)
    solution = symgrad.linalg.solve_triangular(factor, y.unsqueeze(-1), upper=False)
    return (solution**2).sum() / 2 + symgrad.diagonal(factor).log().sum()


NAMES = {**{name: getattr(symgrad, name) for name in dir(symgrad)}, "total": symgrad.sum, "det": det, "inv": inv, "logdet": logdet, "solve": solve,
         "linalg": symgrad.linalg, "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits, "likelihood": likelihood}


def identity(line):
    """The identity of a line: its name, dimensions, function, the arguments differentiated with respect to, and the derivative."""
    name, dimensions, function, by, text = line.split(" | ")
    arrays = dict(part.partition(":")[::2] for part in dimensions.split(", "))
    wrt = tuple(by.split())
    return Identity(name, eval(f"lambda {', '.join(arrays)}: {function}", NAMES), {key: value.strip() for key, value in arrays.items()},
                    wrt[0] if len(set(wrt)) == 1 else wrt, text, len(wrt))


SECTIONS = {name: [identity(line) for line in lines.splitlines()] for name, lines in re.findall(
    r"^\[(\w+)\].*\n((?:.+\n)*)", (Path(__file__).parent / "corpus" / "matrix_identities.txt").read_text(), re.MULTILINE)}
IDENTITIES = [each for section in SECTIONS.values() for each in section]
