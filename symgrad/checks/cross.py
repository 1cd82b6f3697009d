"""Cross-checks of functions of any framework, and of pairs of a function and its gradient, with a formula that is text, SymPy's or a function."""

from __future__ import annotations

import copy
import inspect
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from symgrad.carriers import symbolic
from symgrad.carriers.digits import precision_restored
from symgrad.checks.cross_checker import CrossChecker
from symgrad.checks.pointwise import aborted
from symgrad.checks.tolerances import Tolerances
from symgrad.frameworks.adapter import Adapter, AdapterOptions
from symgrad.frameworks.calling import Argument, BoundCall, call_of, declared_parameters, flat_names
from symgrad.frameworks.differentiation_task import DifferentiationTask, NotCheckable, silence
from symgrad.frameworks.levels import Derivatives, adapter_of
from symgrad.frameworks.naming import framework_of, name_of, named_framework, owner_of
from symgrad.graph.domains import REAL
from symgrad.reference.sources import DifferenceSource, ExpressionSource, RecordedSource
from symgrad.reports.base import NOT_CHECKABLE, REFUTED
from symgrad.reports.report import CrossReport
from symgrad.reports.streams import progress_bar
from symgrad.sampling.conditions import constants_of_code
from symgrad.sampling.domain_reader import domain_text, domains_of, simple_number
from symgrad.sampling.points import as_point, random_direction, room_in
from symgrad.symbolic.parameters import parse_formula


def _is_function(formula: Any) -> bool:
    return callable(formula) and not isinstance(formula, (sympy.Basic, sympy.MatrixBase))


def names_of(formula: Any) -> tuple[str, ...] | None:
    """The names in a formula, in order for text and sorted for SymPy; None for a function."""
    if isinstance(formula, str):
        return parse_formula(formula)[1]
    return None if _is_function(formula) else tuple(sorted({str(s) for e in _flat_elements(formula)[0] for s in _number_atoms(e)}))


def _flat_elements(formula: Any) -> tuple[list[sympy.Expr], tuple[int, ...] | None]:
    """A formula's elements, and its shape where it is a Matrix, an Array or a list."""
    if isinstance(formula, str):
        return [parse_formula(formula)[0]], None
    if isinstance(formula, (sympy.MatrixBase, sympy.NDimArray)):
        matrix = isinstance(formula, sympy.MatrixBase)
        elements = [sympy.sympify(e) for e in (formula if matrix else formula.reshape(len(formula)))]
        return elements, (len(elements),) if matrix and 1 in formula.shape else tuple(formula.shape)
    if isinstance(formula, (list, tuple)):
        parts = [_flat_elements(e)[0] for e in formula]
        return [e for part in parts for e in part], (len(formula),) if all(len(p) == 1 for p in parts) else (len(formula), len(parts[0]))
    if isinstance(formula, (int, float)) and not isinstance(formula, bool):
        return [symbolic.exact_number(formula)], None
    if isinstance(formula, sympy.Expr):
        return [formula], None
    raise TypeError(f"check: the formula is {formula!r} of type {type(formula).__name__}; expected text such as 'log(1 + exp(x))', "
                    f"a SymPy expression, or a symgrad function")


def _number_atoms(e: sympy.Expr) -> list[Any]:
    """The atoms of an expression that stand for numbers: symbols, and elements x[i]."""
    elements = e.atoms(sympy.Indexed, sympy.matrices.expressions.matexpr.MatrixElement)
    bases = {s for element in elements for s in element.free_symbols}
    return [*elements, *(s for s in e.free_symbols if s not in bases)]


def expressions_of(formula: Any, shapes: Mapping[str, tuple[int, ...]], fixed: Mapping[str, Any]) -> tuple[list[sympy.Expr], tuple[int, ...]]:
    """The elements of a formula over the element symbols of its arguments, with its shape.

    `shapes` are those of the arguments; those in `fixed` are numbers. A formula that names an array as a whole is applied to each of its
    elements, with broadcasting. Raises ValueError for a name that is no argument, and for arrays that do not fit.
    """
    flat, shape = _flat_elements(formula)
    known = {"_".join([name, *map(str, index)]): (name, index) for name, size in shapes.items() for index in np.ndindex(*size)}
    elements = {label: sympy.Symbol(label, real=True) for label in known}
    arrays: dict[str, Any] = {}
    replaced: dict[Any, Any] = {}
    for e in flat:
        for s in _number_atoms(e):
            label = re.sub(r"_+$", "", re.sub(r"[\[\](), ]+", "_", str(s)))
            if label in elements:
                replaced[s] = elements[label]
            elif label in fixed:
                replaced[s] = symbolic.exact_number(float(fixed[label]))
            elif str(s) in shapes:
                arrays[str(s)] = s
            else:
                known_text = ", ".join(name + (f" of shape {list(shape)}" if shape else "") for name, shape in shapes.items()) or "none"
                raise ValueError(f"check: the formula names {s}, but the arguments of the function are {known_text}"
                                 + f" and {', '.join(fixed)}" * bool(fixed) + "; name these in the formula"
                                 + " (elements as x[0], or x as a whole)" * any(shapes.values()))
    flat = [e.xreplace({f: sympy.Rational(f) for f in e.atoms(sympy.Float)}) for e in flat]
    if not arrays:
        return [e.xreplace(replaced) for e in flat], shape or ()
    if len(flat) > 1:
        raise ValueError(f"check: the formula has {len(flat)} elements and names the array {min(arrays)} as a whole; name its elements, "
                         f"as in {min(arrays)}[0]")
    try:
        common = np.broadcast_shapes(*(shapes[name] for name in arrays))
    except ValueError:
        raise ValueError("check: the formula joins arrays of the shapes " + ", ".join(f"{name} {list(shapes[name])}" for name in arrays)
                         + ", which do not broadcast") from None
    labels = {name: np.array(["_".join([name, *map(str, i)]) for i in np.ndindex(*shapes[name])], object) for name in arrays}
    places = {name: np.broadcast_to(labels[name].reshape(shapes[name]), common) for name in arrays}
    out = [flat[0].xreplace(replaced | {s: elements[str(places[name][index])] for name, s in arrays.items()}) for index in np.ndindex(*common)]
    return out, common


FULL_INPUTS = {2: 8, 3: 4}  # inputs up to which derivatives of an order are compared entry by entry
DEFAULT_POINTS, DIFFERENCE_POINTS = 100, 24
SIZES: tuple[tuple[int, ...], ...] = ((1,), (2,), (3,), (7,), (2, 3))  # shapes of arrays for which a formula of each element is compared, too,
ARRAY_POINTS = 3  # at so many random points


@precision_restored()
def cross_check(function: Any, inputs: Sequence[Any] | Mapping[str, Any] = (), *, formula: Any = None, order: int = 2, domain: Any = None,
                framework: str | None = None, returns: str | None = None, wrt: Sequence[str] | None = None, points: int | None = None,
                ulp: float | None = None, atol: float = 0.0, rtol: float = 0.0, range: tuple[float, float] | None = None,
                effort: float = 1.0, seconds: float | None = None, seed: int = 0, progress: Any = None, name: str | None = None) -> CrossReport:
    """Compare a function of any framework, and its derivatives up to an order, with a formula; see `symgrad.check`; `name` is its name in the report.

    Raises TypeError and ValueError for invalid inputs, domains, formulas and names; ParseError for text that is not a formula;
    ImportError where a framework is not installed.

    >>> report = cross_check((lambda x: x**3, lambda x: 3 * x**2), formula="x**3", order=1, points=5)
    >>> report.verdict
    'verified'
    """
    if returns not in (None, "value", "pair"):
        raise ValueError(f"check: returns is {returns!r}; expected 'value', or 'pair' for a function that returns (value, gradient)")
    tolerances = Tolerances(ulp, atol, rtol, range)
    function, given = (function[0], list(function[1:])) if isinstance(function, tuple) and function else (function, [])
    if not callable(function) or not all(map(callable, given)) or len(given) > 2:
        raise TypeError("check needs a function, or a tuple (function, gradient) or (function, gradient, Hessian) of functions")
    name = name or name_of(function)
    if owner_of(function) is function:
        function = function.apply
    start, report = time.perf_counter(), CrossReport(name, "", NOT_CHECKABLE, "", order)
    with aborted(report, seconds), progress_bar(progress, name) as tell:
        problem = _CrossCheck(function, given, name, inputs, formula, order, domain, framework, returns == "pair", wrt, tolerances)
        problem.run(report, points, effort, seed, tell)
    report.seconds = time.perf_counter() - start
    return report


def compare_floats(problem: DifferentiationTask, order: int, tolerances: Tolerances, visited: Sequence[np.ndarray], points: int | None,
                   effort: float, seed: int, progress: Any) -> CrossReport:
    """Compare the floats of a symgrad function with its own formula, at the `visited` points, too."""
    domains = [tolerances.domain(REAL)] * len(problem.names)
    adapter = adapter_of(problem.call, "symgrad", problem.name, AdapterOptions(joined=True))
    report = CrossReport(problem.name, "symgrad", "not checkable", "", order, "its own formula", names=problem.names,
                         domains={i.name: domain_text(domains[0]) for i in problem.inputs})
    truth = RecordedSource(silence()(problem.run), problem.point)
    checker = CrossChecker(_derivatives(adapter, order, len(domains), lambda v: room_in(domains, v)), truth, report,
                           {i.name: i.value for i in problem.inputs}, domains, tolerances, points or DEFAULT_POINTS, effort, seed, progress)
    checker.named, checker.visited = constants_of_code(problem.function), visited
    return checker.run()


def _derivatives(adapter: Adapter, order: int, count: int, room: Callable[[np.ndarray], np.ndarray]) -> Derivatives:
    full = max((k for k in (2, 3) if count <= FULL_INPUTS[k]), default=1)
    return Derivatives(adapter, order, full, random_direction(count, np.random.default_rng(0)), room)


class _CrossCheck:
    """The arguments of a cross-check, parsed: the call, its domains, the formula, and the adapter."""

    def __init__(self, function: Callable[..., Any], given: list[Callable[..., Any]], name: str, inputs: Any, formula: Any, order: int, domain: Any,
                 framework: str | None, returned: bool, wrt: Sequence[str] | None, tolerances: Tolerances):
        self.tolerances = tolerances
        self.formula = formula.expr if isinstance(formula, sympy.Lambda) else formula
        self.order, self.name = order, name
        named: Sequence[str] | None = None if formula is None else names_of(self.formula)
        if formula is not None and named is None:
            named = [p.name for p in declared_parameters(self.formula) or []]
        try:
            self.call = call_of(function, name, inputs, wrt, named)
        except NotCheckable as error:
            raise TypeError(f"check: {error}") from None
        wide = domains_of(domain, self.call.names)
        domains = {n: tolerances.domain(d) for n, d in wide.items()}
        self.domain_of, self.wide_of, self.sizes, base = domains, wide, SIZES, []
        for i in self.call.inputs:
            value = i.value if i.value is not None else np.full(_implied_shape(i.name, named, self.call.names), simple_number(domains[i.name]))
            tolerances.refuse(i.name, np.asarray(value))
            outside = [x for x in np.ravel(value) if float(x) not in domains[i.name]]
            if outside:
                raise ValueError(f"check: the input {i.name} = {outside[0]:g} lies outside its domain {domain_text(domains[i.name])}")
            base.append(np.asarray(value))
        self._set_base(base)
        self.written = {n: domain_text(d) for n, d in domains.items()}
        self.options = AdapterOptions(joined=True, gradient=given[0] if given else None, hessian=given[1] if given[1:] else None, pair=returned)
        self.framework = named_framework(framework) if framework is not None else self._detect_framework(function)

    def _set_base(self, base: list[np.ndarray]) -> None:
        self.base, names = base, self.call.names
        self.shapes = {n: v.shape for n, v in zip(names, base)}
        self.names = flat_names(names, [v.shape for v in base])
        self.domains, self.wide = ([d[n] for n, v in zip(names, base) for _ in range(v.size)] for d in (self.domain_of, self.wide_of))

    def _detect_framework(self, function: Callable[..., Any]) -> str:
        found = framework_of(function)
        if self.options.given:
            return found if found in ("torch", "jax") else "numpy"
        return found or ("numpy" if self._derivatives("symgrad", 1).at(self.base, 1).error is not None else "symgrad")

    def _derivatives(self, framework: str, order: int) -> Derivatives:
        partials, hessian = (f and self.call.of(f) for f in (self.options.gradient, self.options.hessian))
        adapter = adapter_of(self.call.of(self.call.function), framework, self.name, replace(self.options, gradient=partials, hessian=hessian))
        return _derivatives(adapter, order, len(self.names), self._room)

    def _room(self, vector: np.ndarray) -> np.ndarray:
        """The distances by which the coordinates can move inside their domains and the range; from 0 also to numbers below the range."""
        return np.where(vector == 0, room_in(self.wide, vector), room_in(self.domains, vector))

    def run(self, report: CrossReport, points: int | None, effort: float, seed: int, progress: Any) -> None:
        """Fill in the report."""
        derivatives = self._derivatives(self.framework, self.order)
        report.framework, report.domains, report.names = self.framework, self.written, self.names
        progress("reading the formula", 0, 1)
        truth, shape = self._reference_source(report, derivatives)
        checker = CrossChecker(derivatives, truth, report, dict(zip(self.call.names, self.base)), self.domains, self.tolerances,
                               points or (DIFFERENCE_POINTS if isinstance(truth, DifferenceSource) else DEFAULT_POINTS), effort, seed, progress)
        if not self.sizes:
            checker.most_special = 1
        checker.named = constants_of_code((self.call.function, self.options.gradient, self.options.hessian))
        if shape is not None:
            levels = derivatives.at(self.base, 0)
            if levels.error is None and tuple(levels.shape) != tuple(shape) and not (_is_single(levels.shape) and _is_single(shape)):
                first = next((n for n, s in self.shapes.items() if s), None)
                advice = "both must be single numbers, or arrays of one shape" if levels.shape or first is None else (
                    f"write the number that {self.name} returns with elements, as in {first}[0] + {first}[1], or give a symgrad function")
                raise ValueError(f"check: {self.name} returns an array of shape {list(levels.shape)}, but the formula has the shape {list(shape)}; "
                                 + advice)
        checker.run()
        if report.ok and self.sizes and self._is_elementwise():
            for size in self.sizes:
                if size not in self.shapes.values() and not self._compare_arrays(report, size, effort, seed, progress):
                    break
            if report.ok and report.sizes:
                report.reason += f"; arrays of the shapes {', '.join(str(list(size)) for size in report.sizes)} agree, too"

    def _is_elementwise(self) -> bool:
        """Whether the formula is meant for each element, so that arrays of any shape fit: it names arguments as wholes, all of one shape."""
        shapes = set(self.shapes.values())
        if self.formula is None or len(shapes) != 1 or self.options.hessian:
            return False
        if _is_function(self.formula):
            return shapes == {()}
        elements, shape = _flat_elements(self.formula)
        return len(elements) == 1 and shape is None and {str(s) for s in _number_atoms(elements[0])} <= {*self.shapes, *self.call.fixed}

    def _compare_arrays(self, report: CrossReport, size: tuple[int, ...], effort: float, seed: int, progress: Any) -> bool:
        """Compare arrays of a shape at a few points; returns whether further shapes are to be compared: not where one differs, or does not run."""
        progress("comparing arrays", len(report.sizes), len(SIZES))
        found = CrossReport(self.name, self.framework, NOT_CHECKABLE, "", self.order)
        try:
            other = copy.copy(self)
            other._set_base([np.resize(v, size) for v in self.base])
            other.sizes = ()
            other.run(found, ARRAY_POINTS, effort, seed, progress)
        except (TypeError, ValueError, NotCheckable):  # a function of single numbers, or one that is not meant for each element
            return False
        if found.verdict == NOT_CHECKABLE:
            return False
        report.sizes.append(size)
        if found.verdict == REFUTED:
            report.verdict, report.counterexample, report.names = REFUTED, found.counterexample, found.names
            report.reason = f"for arrays of shape {list(size)}, {found.reason}"
            report.agreements = found.agreements
        return found.verdict != REFUTED

    def _reference_source(self, report: CrossReport, derivatives: Derivatives) -> tuple[Any, tuple[int, ...] | None]:
        """The source of reference values, and the shape of the formula if known."""
        def function(*args: Any, **named: Any) -> Any:
            found = self.call.function(*args, **named)
            return found[0] if self.options.pair else found

        def level(vector: np.ndarray, order: int) -> np.ndarray:
            levels = derivatives.at(as_point(self.base, vector), order)
            if levels.error is not None or not np.all(np.isfinite(levels.values[order])):
                raise ArithmeticError("no value there")
            return np.asarray(levels.values[order])

        if self.formula is None:
            try:
                problem = self._record(function, self.call.signature, {n: n for n in (*self.call.names, *self.call.fixed)})
                report.against = "its own formula, which symgrad recorded"
                return RecordedSource(silence()(problem.run), problem.point), None
            except Exception:  # a function of another framework can raise anything for tensors of symgrad
                report.against = "finite differences of the function itself, order by order"
                report.notes.append("there is no formula: each order was compared with finite differences of the order below")
                return DifferenceSource(level, self._room), None
        if _is_function(self.formula):
            report.against = f"the function {name_of(self.formula)}"
            problem, shape = self._formula_of_function(self.formula)
            return RecordedSource(silence()(problem.run), problem.point), shape
        fixed = {n: v for n, v in self.call.fixed.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
        expressions, shape = expressions_of(self.formula, self.shapes, fixed)
        for e in expressions:
            if e.has(sympy.zoo, sympy.nan, sympy.oo, sympy.I) or e.atoms(sympy.core.function.AppliedUndef):
                raise ValueError(f"check: the formula {e} is no real number for real arguments, or has a function without a meaning")
        report.against = "the formula"
        report.formula = expressions[0] if len(expressions) == 1 else None
        return ExpressionSource(expressions, self.names), shape

    def _formula_of_function(self, formula: Callable[..., Any]) -> tuple[Any, tuple[int, ...]]:
        """A symgrad function as the formula; its arguments correspond to those of the checked function by name, or else by position."""
        parameters = [p for p in declared_parameters(formula) or [] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        known = [*self.call.names, *self.call.fixed]
        required = [p.name for p in parameters if p.default is p.empty]
        if parameters and all(n in known for n in required):
            goes_to = {p.name: p.name for p in parameters if p.name in known}
        elif not parameters or len(required) == len(self.call.names):
            goes_to = dict(zip(self.call.names, required or self.call.names))
        else:
            raise ValueError(f"check: the formula takes {', '.join(required)}, but the arguments of {self.name} are {', '.join(known)}")
        kind = inspect.Parameter.POSITIONAL_ONLY
        signature = inspect.Signature(parameters or [inspect.Parameter(n, kind) for n in self.call.names])
        try:
            problem = self._record(formula, signature, goes_to)
            run = problem.run(problem.point)
        except Exception as error:
            raise ValueError(f"check: the formula {name_of(formula)} does not run on symgrad's tensors: {type(error).__name__}: {error}; "
                             f"give a symgrad function, a SymPy expression or text") from error
        return problem, run.shape or ()

    def _record(self, function: Callable[..., Any], signature: inspect.Signature, goes_to: Mapping[str, str]) -> Any:
        """A function of symgrad's tensors as a problem over the inputs, run once; arguments go to parameters."""
        inputs = [Argument(n, v, goes_to.get(n, "")) for n, v in zip(self.call.names, self.base)]
        fixed = {goes_to[n]: v for n, v in self.call.fixed.items() if n in goes_to}
        problem = DifferentiationTask(BoundCall(function, self.name, signature, inputs, fixed))
        with silence():
            how = problem.graph_mismatch(problem.run(problem.point, named=True))
        if how is not None:
            raise NotCheckable(f"its recorded graph is not the function: {how}")
        return problem


def _implied_shape(name: str, named: Sequence[str] | None, arguments: Sequence[str]) -> tuple[int, ...]:
    """The shape of an argument implied by a formula: () for a number, and for an array up to its last element x[i]."""
    places = [match[0] for n in named or () if n not in arguments for match in [re.findall(rf"^{re.escape(name)}[_\[(](.*?)[\])]?$", n)] if match]
    indices = [tuple(int(k) for k in re.findall(r"\d+", place)) for place in places]
    return tuple(1 + max(column) for column in zip(*indices))


def _is_single(shape: Sequence[int]) -> bool:
    return int(np.prod(tuple(shape))) == 1
