"""`accuracy`: prepares a scan from the user's arguments: the function, the source of reference values, the domains and the dtype."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from symgrad.algebra.limits import OutOfTime, abort_after
from symgrad.dtypes.dtype import DType
from symgrad.formulas.expressions import expr
from symgrad.formulas.expressions import formula as formula_of
from symgrad.graph.domains import Domain
from symgrad.graph.order import upstream
from symgrad.reference.sources import ExpressionSource, RecordedSource, Source
from symgrad.reports.streams import progress_bar
from symgrad.sampling.domain_reader import domains_of
from symgrad.sampling.floats import Floats, ordinary_floats
from symgrad.scanning.blame import Blame, better_forms
from symgrad.scanning.report import AccuracyReport, Loss, Worst
from symgrad.scanning.scanner import Scanner
from symgrad.scanning.subject import Index, Subject
from symgrad.symbolic.parameters import parse_formula

MAX_EXPLAINED = 24  # of the largest errors, for which the operation that loses the digits is looked for
MAX_NODES = 500  # of a graph whose formula is reported
MAX_LOSSES = 8  # in a report


def accuracy(fn: Any, domain: Any = None, *, order: int = 2, points: int | None = None, effort: float = 1.0, seed: int = 0, dtype: Any = None,
             formula: Any = None, progress: Any = None, seconds: float | None = None) -> AccuracyReport:
    """Scan the value and the derivatives of a function of one or more real numbers over the floats of its domain.

    Every error is measured in units in the last place (ULP) of the true value, which is computed with as many digits as it takes: of the function's
    own operations, differentiated by SymPy, or of `formula`, a SymPy expression, its text, or a symgrad function. The points are floats, so that
    nothing is rounded before the function is called. They are drawn uniformly in their representation, region by
    region: subnormal, tiny, small, ordinary, large and huge numbers of both signs, both zeros, and what lies next to ends of the domain, special
    points, poles and zeros; and again around the worst of them. Of several arguments one at a time runs through its regions, the others being
    of ordinary size; then all lie anywhere, and close to each other.

    The report says how many points were used, the worst error of each order (up to `order`, 0 to 3) in each region, with its point and the
    condition there, where in the computation the digits are lost, and which form keeps them, where one is known and measured to be better. An error
    that the rounding of the steps does not explain is no loss of digits: the number is wrong, and the verdict "refuted".

    `fn` is a function written with symgrad's, torch's or NumPy's names, or the name of an op; with a formula also one of torch, JAX, HIPS autograd
    or plain floats, or a tuple (function, gradient, Hessian). `domain` is a pair (low, high), a list of pairs, a
    SymPy set, a `symgrad.graph.domains.Domain`, or a mapping from arguments to these; the op's own, or all real numbers, without it. `points` are as
    many as are drawn in a region: 64 by default, fewer where reference values need so many digits that this is too much work; the report says so, and
    `effort` is the factor of that work. `dtype` is that of the arguments (float64),
    `progress` True for a bar on standard error, False for silence, None for a bar on terminals, or a function of (what, done, total).

    Raises TypeError for what is no function of real numbers or no float dtype, ValueError for a domain without floats, and for a function that is
    random or runs nowhere; TimeoutError if the scan takes longer than `seconds` of processor time.

    >>> import symgrad
    >>> report = symgrad.scanning.accuracy(lambda x: 1 - x.tanh() ** 2, (0.0, 30.0), order=0, points=16)
    >>> report.of_order(0).verdict, [str(b.better) for b in report.better]
    ('digits are lost', ['sech_squared(x)'])
    """
    if type(order) is not int or order not in (0, 1, 2, 3):
        raise ValueError(f"accuracy: order must be 0, 1, 2 or 3, not {order!r}")
    if points is not None and (type(points) is not int or points < 1):
        raise ValueError(f"accuracy: points must be a positive whole number, not {points!r}")
    kind = _numpy_type(dtype)
    count = len(domain) if isinstance(domain, dict) else None
    subject = Subject(fn, count)
    floats = Floats(kind, subject.subnormals)
    domains = list(domains_of(domain, subject.names, subject.domains).values())
    source, words = _reference_source(subject, formula)
    notes = []
    if not subject.own:
        notes += [f"derivatives were scanned up to order {subject.order}: the function gives no more of them"] * (subject.order < order)
        notes += [] if subject.subnormals else [f"no subnormal numbers were drawn: {subject.framework} takes them for zero"]
        order = min(order, subject.order)
    elif formula is not None and not _can_be_recorded(subject, domains, floats):
        subject, order = Subject(fn, subject.count, framework="numpy"), 0
        notes.append("only values were scanned: the function is not computed with symgrad's operations")
    start = time.perf_counter()
    try:
        with progress_bar(progress, subject.name) as tell, abort_after(seconds):
            scanner = Scanner(subject, source, domains, floats, order, points, effort, seed, tell)
            report = scanner.run()
            report.notes += notes
            if subject.own:
                _add_explanations(scanner, domains)
    except OutOfTime:
        raise TimeoutError(f"accuracy: the scan of {subject.name} was aborted after {seconds:g} seconds; give fewer points, or more time") from None
    report.seconds = time.perf_counter() - start
    report.truth = f"{words} with {scanner.truth.digits} digits"
    return report


def _add_explanations(scanner: Scanner, domains: Sequence[Domain]) -> None:
    report, subject, floats = scanner.report, scanner.subject, scanner.floats
    lost = sorted((x for x in scanner.found if x[0].lost), key=lambda x: (x[0].verdict == "ill-conditioned", x[0].order))
    points = dict.fromkeys(w.point for w in (*(x[0] for x in lost), *report.worst))
    exact = _add_formula(report, subject, [np.array(point, floats.dtype) for point in points])
    if not lost:
        return
    scanner.progress("looking for the operation that loses the digits", 0, 1)
    report.losses = _find_losses(Blame(subject, floats), lost, scanner)
    if exact is not None:
        scanner.progress("measuring better forms", 0, 1)
        report.better = better_forms(subject, floats, exact, domains, scanner.merged, scanner.order)


def _add_formula(report: AccuracyReport, subject: Subject, points: Sequence[np.ndarray]) -> Any:
    """Add the formula to the report, and return it with exact constants; None if there is no formula or a long one."""
    for point in points:
        with contextlib.suppress(Exception):  # a user's function can raise anything
            result = subject.call_at(list(point), named=True).result
            break
    else:
        return None
    try:
        how = subject.graph_mismatch(list(point), far=True)
        if how is not None:
            report.notes.append(f"there is no single formula: {how}")
            return None
        if len(upstream([result._node])) > MAX_NODES:
            return None
        report.formula = expr(result)
        exact = formula_of(result, exact=True).item()
    except (TypeError, ValueError, AttributeError, NotImplementedError, RecursionError):
        return None
    if result.conditions:
        report.notes.append(f"the formula is that of the branch where {', '.join(map(str, result.conditions))}")
        return None
    long = {r: sympy.Float(float(r)) for r in exact.atoms(sympy.Rational) if r.q > 10_000}
    return exact.xreplace(long)


def _find_losses(blame: Blame, lost: Sequence[tuple[Worst, Index, Any]], scanner: Scanner) -> list[Loss]:
    """The operations in which the worst numbers lose digits, one entry per operation."""
    found: dict[Any, Loss] = {}
    if len(lost) > MAX_EXPLAINED:
        scanner.report.notes.append(f"the operation that loses the digits was looked for at {MAX_EXPLAINED} of {len(lost)} largest errors")
    for worst, index, truth in lost[:MAX_EXPLAINED]:
        loss = blame.find(worst, index, truth)
        if loss is None:
            continue
        key = loss.op, loss.formula, loss.line, loss.backward_of, *loss.reason.split()[:2]
        known = found.get(key, loss)
        found[key] = replace(known, orders=tuple(sorted({*known.orders, *loss.orders})),
                             regions=tuple(dict.fromkeys((*known.regions, *loss.regions))))
    return list(found.values())[:MAX_LOSSES]


def _can_be_recorded(subject: Subject, domains: Sequence[Domain], floats: Floats) -> bool:
    """Whether the function can be recorded at some point of its domain."""
    rng = np.random.default_rng(0)
    for point in zip(*(ordinary_floats(d, floats, 4, rng) for d in domains)):
        with contextlib.suppress(Exception):  # a function that does not accept Tensors can raise anything
            subject.call(point)
            return True
    return False


def _numpy_type(dtype: Any) -> np.dtype:
    """The NumPy dtype of a dtype of symgrad or NumPy or of a name; float64 for None. Raises TypeError unless it is a real float type."""
    try:
        found = np.dtype(np.float64 if dtype is None else dtype.numpy if isinstance(dtype, DType) else dtype)
    except TypeError:
        raise TypeError(f"accuracy: {dtype!r} is not a dtype; give float16, float32 or float64") from None
    if found not in (np.float16, np.float32, np.float64):
        raise TypeError(f"accuracy: the dtype must be float16, float32 or float64, not {found}")
    return found


def _reference_source(subject: Subject, formula: Any) -> tuple[Source, str]:
    """The source of reference values, and its description for the report."""
    point = [np.zeros(())] * subject.count
    if formula is None and not subject.own:
        raise TypeError(f"accuracy: {subject.name} is not computed with symgrad; give formula= to compare it with, a SymPy expression or its text")
    if formula is None:
        return RecordedSource(subject.run, point), "its own operations, differentiated by SymPy,"
    if callable(formula) and not hasattr(formula, "free_symbols"):
        other = Subject(formula, subject.count)
        return RecordedSource(other.run, point), f"the function {other.name}"
    if not isinstance(formula, str) and not hasattr(formula, "free_symbols"):
        raise TypeError(f"accuracy: a formula is a SymPy expression, its text or a function, not {type(formula).__name__}")
    expression = parse_formula(formula)[0] if isinstance(formula, str) else formula
    names = sorted(s.name for s in expression.free_symbols)
    unknown = [name for name in names if name not in subject.names]
    if unknown and (isinstance(formula, str) or len(names) > 1 or subject.count > 1):
        raise TypeError(f"accuracy: the formula has the variable {unknown[0]}, which is not an argument; those are {', '.join(subject.names)}")
    renamed = {s: sympy.Symbol(subject.names[0] if unknown else s.name, real=True) for s in expression.free_symbols}
    source = ExpressionSource([expression.xreplace(renamed)], subject.names)
    return source, f"the formula {formula}" + ", differentiated by SymPy," * (not isinstance(formula, str))
