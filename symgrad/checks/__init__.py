"""`check`: compares the derivatives of a function, computed in three ways, and returns a verdict, with a counterexample if they differ."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.carriers.digits import precision_restored
from symgrad.carriers.lapack import hermitian_parts
from symgrad.checks.checker import Checker
from symgrad.checks.pointwise import aborted
from symgrad.checks.tolerances import DEFAULT, Tolerances
from symgrad.frameworks.calling import examples_of
from symgrad.frameworks.differentiation_task import DifferentiationTask, NotCheckable
from symgrad.frameworks.naming import is_foreign, name_of
from symgrad.reports.base import NOT_CHECKABLE
from symgrad.reports.report import Counterexample, CrossReport, Points, Report
from symgrad.reports.streams import progress_bar

__all__ = ["Counterexample", "CrossReport", "Points", "Report", "check", "check_named", "examples_of"]


def check(function: Any, *inputs: Any, order: int = 2, wrt: Sequence[str] | None = None, points: int | None = None, effort: float = 1.0,
          seconds: float | None = None, seed: int = 0, progress: Any = None, rigorous: bool = False, formula: Any = None, domain: Any = None,
          framework: str | None = None, returns: str | None = None, ulp: float | None = None, atol: float = 0.0, rtol: float = 0.0,
          range: tuple[float, float] | None = None, compile: bool = False) -> Any:
    """Check the derivatives of a function, up to an order, against SymPy and against fifty digits.

    The function is called with named tensors made from the inputs (without any: from `@symgrad.example`, or its defaults), and its derivatives
    up to `order` (1, 2 or 3) are computed in three ways: by the library's pullback in floats; by the same rules in the precise carrier;
    and by `sympy.diff`, of each step of the computation joined by the chain rule and, where it is short, of the whole formula. They are
    compared at the inputs, at special points, and at `points` random ones (20), drawn with `seed`; all of these are compared. `effort` multiplies
    what is counted besides: the points from conditions, the work of the symbolic proof, and the tries to simplify a counterexample. So the report is
    the same on every machine. After `seconds` of the processor, if they are given, the check ends without a verdict ("not checkable").

    Floats, lists of numbers and float arrays are differentiated by, and ints too unless the parameter is annotated `int` or has an int
    for its default; `wrt` limits that to some names. A result that is an array is weighted by 1, 2, 3, ... and summed.

    The report's `verdict` is "proved" (the formulas differ by a literal 0, and numbers agree), "verified" (numbers agree to fifty digits),
    "imprecise" (digits are lost, of what is printed at the inputs or of what was asked for), "refuted" (with a simple counterexample, perhaps in a
    branch that floats alone take) or "not checkable" (with the reason). With both positive ones, what is printed at the inputs is right, or a
    convention that the reason names.
    `progress` is True for a bar on standard error, False for silence, None for a bar on terminals, or a function of (what, done, total).

    With `rigorous` the value and the derivatives at the given point are also computed in ball arithmetic: the report's `enclosures`
    are intervals that are certain to hold the true numbers.

    **Digits.** With `ulp`, `atol`, `rtol` or `range`, the floats of the function and of its derivatives are compared with the true numbers, at points
    of every size, too: that is the report's `comparison`. A float may be off by `ulp` (1000) units in the last place (ULP) of the
    truth, times the condition number of the truth there, and by `atol` + `rtol` times the truth. The verdict is "imprecise" where more digits are
    lost, and "refuted" where rounding does not explain the error. No tolerance excuses a formula that is disproved. `range` leaves out points
    with numbers that are not 0 and whose size is not between its two ends: what is wrong only there is not reported.

    **Functions of other systems.** With a `formula`, and for functions of torch (a `torch.autograd.Function` too), JAX and HIPS autograd, and tuples
    (function, gradient) or (function, gradient, Hessian) of NumPy functions, what the function gives is compared with the truth in ULP,
    order by order, and the report is a `CrossReport`. The `formula` is text (parsed, never run), a SymPy expression
    or a symgrad function; its names are those of the function's arguments, x[0] being an element; a formula that names arrays is meant element by
    element. Without one, the function is its own formula where symgrad can run it; otherwise each order is compared with finite differences
    of the order below. Inputs may be left out; given ones say the shapes and dtypes.

    It is called at special points and at `points` (100) random ones inside `domain`: a mapping from names, or one for
    all, to a pair (low, high), a `Domain`, a SymPy set, a name such as "positive", or text such as "-1..1" or "{-1, 1}". Where it has no end
    points are drawn up to 1e8. `framework` ("torch", "jax", "autograd", "numpy" or "symgrad") is detected where it is not given; a function
    that `returns` "pair" gives (value, gradient). A number is refuted that is farther from the truth than the tolerances allow, that is not finite
    where the truth is, or that raises where the formula has a value. The verdict is "imprecise" where every such number is right as soon as
    nothing is rounded: the function's own program (that of its derivatives, too) is run in many digits, and the operation that loses the digits is
    named. A program that cannot be run so is "imprecise" if it agrees at ordinary points, and the formula's own steps lose as many digits
    wherever it does not.

    With `compile` the function is compiled first (`symgrad.compile`). Of a compiled function the floats of its programs are compared with the
    true numbers.

    Raises ValueError for another order, for tolerances without a meaning and for inputs outside the range, TypeError for inputs the function does
    not take, ImportError for `rigorous` without python-flint, and what the function raises at its inputs. Of a function of another system: TypeError
    and ValueError for a domain without points, a formula that names what is no argument or has another shape; ParseError for text that is
    no formula; ImportError where the system is not installed.

    >>> import symgrad
    >>> report = symgrad.check(lambda x, y: (x * y).sin(), 1.0, 2.0)
    >>> report.verdict, report.formula, round(report.gradient["x"], 6)
    ('proved', sin(x*y), -0.832294)
    >>> haversine = lambda x: 1 - x.cos()
    >>> symgrad.check(haversine, 1.0, ulp=100).verdict, symgrad.check(haversine, 1.0, ulp=100, range=(0.5, 100)).verdict
    ('imprecise', 'proved')
    >>> import numpy as np
    >>> pair = lambda x: np.tanh(x), lambda x: 1 - np.tanh(x) ** 2
    >>> report = symgrad.check(pair, formula="tanh(x)", order=1, domain={"x": (-30, 30)}, points=20)
    >>> report.verdict, report.counterexample.where, report.agreements[1].hint.split(":")[1]
    ('imprecise', 'df/dx', ' all of 16, by sub')
    """
    given = inputs or examples_of(function) or ()
    if compile or "symgrad.compiled.function" in sys.modules:
        from symgrad.compiled import function as compiled  # on first use, as the comparison with other frameworks below

        function = compiled.compile(function) if compile and not isinstance(function, compiled.CompiledFunction) else function
        compile = isinstance(function, compiled.CompiledFunction)
    if compile:
        ulp = 1000 if ulp is None and not (atol or rtol or range) else ulp  # so that the floats are compared
    if formula is None and domain is None and framework in (None, "symgrad") and returns is None and not is_foreign(function):
        return check_named(function, given, order, wrt, points, effort, seconds, seed, progress, rigorous,
                           tolerances=Tolerances(ulp, atol, rtol, range))
    _require_order(order)
    if rigorous:
        raise ValueError("check: rigorous is for functions of symgrad without formula=, domain= and framework=")
    from symgrad.checks.cross import cross_check

    return cross_check(function, given, formula=formula, order=order, domain=domain, framework=framework, returns=returns, wrt=wrt, points=points,
                       ulp=ulp, atol=atol, rtol=rtol, range=range, effort=effort, seconds=seconds, seed=seed, progress=progress)


@precision_restored()
def check_named(function: Callable[..., Any], inputs: Sequence[Any] | Mapping[str, Any], order: int = 2, wrt: Sequence[str] | None = None,
                points: int | None = None, effort: float = 1.0, seconds: float | None = None, seed: int = 0, progress: Any = None,
                rigorous: bool = False, name: str | None = None, tolerances: Tolerances = DEFAULT) -> Report:
    """`check` of a symgrad function with its inputs as a sequence or as a mapping by name; `name` is the name in the report."""
    _require_order(order)
    name = name or name_of(function)
    try:
        problem = DifferentiationTask(function, inputs, wrt, name)
    except NotCheckable as error:
        return Report(name, NOT_CHECKABLE, str(error), order)
    for i in problem.inputs:
        tolerances.refuse(i.name, i.value)
    start = time.perf_counter()
    with hermitian_parts() as read, progress_bar(progress, name) as tell:
        checker = Checker(problem, order, 20 if points is None else points, effort, seed, tell, rigorous, tolerances)
        report = checker.report
        with aborted(report, seconds):
            checker.run()
            if report.ok and tolerances != DEFAULT:
                from symgrad.checks.cross import compare_floats

                report.add(compare_floats(problem, order, tolerances, list(checker.visited.values()), points, effort, seed, tell))
    report.seconds = time.perf_counter() - start
    if read:
        report.notes.append(
            f"a matrix is not Hermitian: of {', '.join(read)} the Hermitian part was read, as the derivative has it, not one triangle")
    return report


def _require_order(order: Any) -> None:
    if type(order) is not int or order not in (1, 2, 3):
        raise ValueError(f"check: order must be 1, 2 or 3, not {order!r}")
