"""Every function that text may name is read alone, nested, multiplied and in a longer formula: each text is accepted or refused, and none hangs."""

import random

import pytest

from symgrad.cli import main
from symgrad.formulas.programs import arity, fixed_places, functions
from symgrad.symbolic.operations import op_from_sympy

SHAPES = ("exp(-{0})", "({0})**2 + 1/(1+x**2)", "x/({0})", "sqrt(1+({0})**2)")
LARGE = [  # special functions whose values at large and small arguments need few digits, or would need a sum of too many terms
    "gammaincc(x, x)*(x + 0.3)", "10000**gammainc(cbrt(2)**y, pi*0.3)", "airy_ai(i1e(x))"]


def formulas(seed):
    """Formulas in random order, four for each function."""
    known, rng = functions(), random.Random(seed)
    names = sorted({function.op.name if function.op.name in known else name for name, function in known.items()})

    def call(name, *given):
        if name == "where":
            return f"where({given[0]} < {given[-1]}, {given[0]}, 1)"
        fixed = fixed_places(known[name].op)
        return f"{name}({', '.join(rng.choice('1235') if fixed[i] else given[i % len(given)] for i in range(arity(known[name])))})"

    out = []
    for name in names:
        other, third = rng.choice(names), rng.choice(names)
        out += [call(name, "x", "y", "z"), call(name, call(other, "x", "y"), "y"), f"{call(name, 'x')}*{call(third, 'x', '0.3')}",
                rng.choice(SHAPES).format(call(name, "2*x+1", "0.5*y"))]
    rng.shuffle(out)
    return out


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")  # of code that loses its value somewhere
def test_a_formula_is_accepted_or_refused(new_seed, capsys):
    outcomes = []
    for text in [*formulas(new_seed)[:8], *LARGE]:
        outcomes.append(main(["derive", "--quiet", text]) != 2)
        try:
            op_from_sympy("timed_op", text)
            outcomes.append(True)
        except (ValueError, TypeError):
            outcomes.append(False)
    assert False in outcomes and sum(outcomes) > len(outcomes) / 2
