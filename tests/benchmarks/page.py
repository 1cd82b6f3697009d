"""`examples/guide/benchmarks.md`: the tables, and the machine they were measured on."""

import os
import platform
import re
import textwrap
from importlib import metadata
from pathlib import Path

import numpy as np

from tests.benchmarks.table import table

PAGE = Path(__file__).parents[2] / "examples" / "guide" / "benchmarks.md"
PACKAGES = ("numpy", "torch", "autograd", "jax", "casadi")
SECTIONS = {"ops": "Op by op", "training": "Training"}  # that can be measured alone, with the machine of each
TEMPLATE = """# Benchmarks

You want to know what a call costs, beside PyTorch, HIPS autograd and NumPy by hand.

A figure is the median of our time divided by the other's, taken in turns in one run: below 1 we are faster. "At most" is the bar that the project
set itself. Everything but training is float64, on one thread. After `pip install -e '.[parity]'`, `python -m tests.benchmarks` measures and prints
the tables, and with `--page` it writes this page.

Machine: {machine}

## First derivatives

120 ops are 20 rounds of `x * y`, `+ y`, `sin`, negation, `exp`, `tanh`, forward and backward.

{first}

A recorded op makes a Tensor, a node and two tuples, and a pullback visits the node again: at 10 elements that is most of the time, at 100,000
nearly nothing. In place, counting a write and naming its line cost half a microsecond. A view gets an object with its metadata, and its arguments
are read in Python. A write through a view gives the base a new node, with the position of the view computed from addresses.

## Op by op

A value and its gradient by `backward`, for one call of each op that torch has, with ten elements beside torch; and for elementwise ops and
reductions with 100,000 elements beside functions written by hand with NumPy and SciPy (`tests/benchmarks/by_hand.txt`). Those compute textbook
formulas, without care for digits in the tails, for ties, or for NaN. `python -m tests.benchmarks --only ops --every` prints the row of each call,
and `--section ops` writes this section alone.

{ops}

## Second derivatives

"torch, its fastest route" is the fastest of the ways that torch has to the same numbers without compilation: for Hessians `torch.func.hessian`,
`jacrev(jacrev)` and `torch.autograd.functional.hessian(vectorize=True)`. The closed forms are written by hand for each problem; a row with
`structure="auto"` says what was found and how many products it took. The problems are in `tests/benchmarks/hessians.py`.

{second}

About half of our time for Rosenbrock's Hessian is one evaluation of the function, recorded, beside a closed form of a few array operations. On a
machine without AVX-512 that row varied from run to run between 11.8 and 13.6, and the product with the Hessian between 1.77 and 2.21 gradients;
by hand in NumPy, with formulas that keep their digits, the Laplacian of this network took 0.14 to 0.16 of torch's time, and the first gradient at
1,000 elements 0.38.

## Compiled functions

By `symgrad.compile`, with generated NumPy source and with C; set-up is the first call, by the clock, and counts nowhere else. The other sides are
torch without compilation, and compilers: `jax.jit` and `torch.compile`, and for Hessians CasADi, which computes and returns their nonzeros only.

JAX is set up as it comes. It hands most work to threads of its own, whose CPU time counts, and does some of it in the thread that calls; the CPU
time of one small problem varies tenfold between the two. With `jax_cpu_enable_async_dispatch` off, where it is always the second, the means of the
Hessians were 0.45 to 0.52 (numpy; without the constant ones 1.01 to 1.16) and 0.24 (c; 0.51), and the nested gradients of orders 1 to 6 took 1.3,
2.2, 3.3, 4.5, 3.8 and 1.7 (numpy) and 0.25 to 0.70 (c) of JAX's time.

{compiled}

## Training

A step is the forward pass, `backward` and a step of gradient descent, in float32. The compiled step is one function from weights to weights, with its
gradient inside. The time of `DataParallel` is that of the clock, since two threads share the work.
`python -m tests.benchmarks --section training` writes this section alone.

{training}

## Formulas and checks

Seconds are medians, those of `check_op` of CPU time, that of the registry by the clock. The corpus of `identical` is that of
`tests/support/corpus/identities.txt`. Generated code stands beside what a person writes with NumPy for the same formula.

{symbolic}

## What can go wrong

The figures of another machine are others. What matters most is the length of NumPy's SIMD registers (a loop over many elements is as fast as
NumPy makes it), how fast Python runs (that is all of the time at few elements), and what else the machine does: times are taken in turns, so that
ratios suffer less than seconds. This prints what NumPy found:

```python
>>> import numpy as np
>>> np.show_config(mode="dicts")["SIMD Extensions"]
{{'baseline': [...

```

Figures of `python -m tests.benchmarks --quick` are meaningless: it runs everything once. A row "not installed" needs one of the packages of
`.[parity]`.
"""


def machine():
    """The CPU, its load, NumPy's SIMD level, and the versions."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    versions = [f"{name} {_version(name)}" for name in PACKAGES if _version(name)]
    return (f"{_cpu()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}; "
            f"SIMD of NumPy up to {[*simd['baseline'], *simd['found']][-1]}; Python {platform.python_version()}, {', '.join(versions)}.")


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _cpu():
    known = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in known.read_text().splitlines() if line.startswith("model name")] if known.is_file() else []
    return names[0] if names else platform.processor() or platform.machine()


def _measured(found, above, on):
    """The table of a section with the machine that it was measured on, and what is above the bars."""
    filled = [textwrap.fill(each, 150, break_long_words=False, break_on_hyphens=False) for each in above.split("\n\n") if each]
    return "\n\n".join([f"Machine of this section: {on}", table(found), *filled])


def section(name, found, above, on):
    """The page as it is, with one section written again, and the machine that this was measured on."""
    part = re.compile(f"^## {SECTIONS[name]}\n.*?(?=^## )", re.DOTALL | re.MULTILINE)
    filled = part.findall(TEMPLATE)[0].replace(f"{{{name}}}", _measured(found, above, on))
    return part.sub(lambda _: filled, PAGE.read_text(encoding="utf-8"))


def text(tables, above, on, ops_on="", training_on=""):
    """The page with these tables, measured on a machine, or the tables of single ops and of training on other ones."""
    first, ops, second, compiled, training, symbolic = tables
    return TEMPLATE.format(machine=on, first=table(first), ops=_measured(ops, above, ops_on or on), second=table(second), compiled=table(compiled),
                           training=_measured(training, "", training_on or on), symbolic=table(symbolic))
