"""The time of accepted formulas: as a program, `python -m tests.symbolic.formula_times SEED COUNT TEXT...`, it reads generated formulas and others.

Each text is read in a process of its own, which is forked after the imports, so that no cache is warm; printed are the seconds of the
processor, the longest first, as JSON. Since other programs slow a processor down, its seconds are counted by a fixed computation beside each text.
"""

import contextlib
import io
import json
import os
import random
import resource
import sys
import time
import warnings

import sympy

import symgrad.checks  # noqa: F401  is imported by the command line on first use
from symgrad.cli import main
from symgrad.formulas.programs import arity, fixed_places, functions
from symgrad.symbolic.operations import op_from_sympy

LIMIT = 2.0  # seconds of the processor that an accepted text may take
PACE = 0.05  # seconds that `pace` takes on a processor for which LIMIT is meant
KILLED = 20  # seconds after which a process is ended
SHAPES = ("exp(-{0})", "({0})**2 + 1/(1+x**2)", "x/({0})", "sqrt(1+({0})**2)")
READERS = ("derive", "op_from_sympy")


def formulas(seed: int) -> list[str]:
    """Formulas in random order, in which every function that text may name has its turn: alone, nested, multiplied and in a longer formula."""
    known, rng = functions(), random.Random(seed)
    names = sorted({function.op.name if function.op.name in known else name for name, function in known.items()})

    def call(name: str, *given: str) -> str:
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


def read(reader: str, text: str) -> str:
    """What became of a text: "accepted" or "refused"."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if reader == "derive":
            return "refused" if main(["derive", "--quiet", text]) == 2 else "accepted"
        try:
            op_from_sympy("timed_op", text)
        except (ValueError, TypeError):
            return "refused"
    return "accepted"


def pace() -> float:
    """The seconds of the processor that a fixed computation takes now."""
    start = time.process_time()
    x, y = sympy.Dummy(), sympy.Dummy()  # of which no cache knows anything
    sympy.diff(sympy.expand((sympy.sin(x) + sympy.exp(x * y) + y / 3)**5), x)
    return time.process_time() - start


def timed(reader: str, text: str) -> tuple[float, str]:
    """The seconds of a processor of the usual pace that a text takes in a new process, and what became of it."""
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (KILLED, KILLED + 1))
        before = pace()
        start = time.process_time()
        try:
            outcome = read(reader, text)
        except BaseException as error:
            outcome = type(error).__name__
        seconds = time.process_time() - start
        os.write(sink, json.dumps((seconds * PACE / ((before + pace()) / 2), outcome)).encode())
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as stream:
        found = stream.read()
    os.waitpid(child, 0)
    return tuple(json.loads(found)) if found else (float(KILLED), "killed")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    pace()  # with imports and caches of the first call
    texts = [*formulas(int(sys.argv[1]))[:int(sys.argv[2])], *sys.argv[3:]]
    rows = [(*timed(reader, text), reader, text) for text in texts for reader in READERS]
    print(json.dumps(sorted(rows, reverse=True)))
