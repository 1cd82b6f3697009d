"""Cross-checks of functions of any framework, and of pairs of a function and its gradient, with a formula that is text, SymPy's or a function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from symgrad.carriers import symbolic
from symgrad.carriers.digits import precision_restored
from symgrad.checks.cross_checker import CrossChecker
from symgrad.checks.measuring import Tolerances
from symgrad.frameworks.adapter import Adapter, AdapterOptions
from symgrad.frameworks.calling import call_of, declared_parameters, flat_names
from symgrad.frameworks.differentiation_task import DifferentiationTask, NotCheckable, silence
from symgrad.frameworks.levels import Derivatives, adapter_of
from symgrad.frameworks.naming import framework_of, name_of, named_framework, owner_of
from symgrad.graph.domains import REAL
from symgrad.reference.sources import DifferenceSource, ExpressionSource, RecordedSource
from symgrad.reports.report import CrossReport
from symgrad.reports.streams import progress_bar
from symgrad.sampling.conditions import constants_of_code
from symgrad.sampling.domain_reader import domain_text, domains_of, simple_number
from symgrad.sampling.points import as_point, random_direction, room_in
from symgrad.symbolic.parameters import parse_formula


def names_of(formula: Any) -> tuple[str, ...] | None:
    """The names in a formula, in order for text and sorted for SymPy; None for a function."""
    if isinstance(formula, str):
        return parse_formula(formula)[1]
    if callable(formula) and not isinstance(formula, sympy.Basic):
        return None
    return tuple(sorted({str(s) for e in _flat_elements(formula)[0] for s in _number_atoms(e)}))


def _flat_elements(formula: Any) -> tuple[list[sympy.Expr], tuple[int, ...] | None]:
    """A formula's elements, and its shape where it is a Matrix, an Array or a list."""
    if isinstance(formula, str):
        return [parse_formula(formula)[0]], None
    if isinstance(formula, (sympy.MatrixBase, sympy.NDimArray)):
        shape = tuple(formula.shape)
        if isinstance(formula, sympy.MatrixBase) and 1 in shape:
            shape = (len(list(formula)),)
        return [sympy.sympify(e) for e in (formula if isinstance(formula, sympy.MatrixBase) else formula.reshape(len(formula)))], shape
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
                raise _check_names(str(s), shapes, fixed)
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


def _check_names(name: str, shapes: Mapping[str, Sequence[int]], fixed: Mapping[str, Any]) -> ValueError:
    arguments = ", ".join(name + (f" of shape {list(shape)}" if shape else "") for name, shape in shapes.items())
    also = f" and {', '.join(fixed)}" if fixed else ""
    return ValueError(f"check: the formula names {name}, but the arguments of the function are {arguments or 'none'}{also}; name these in the formula"
                      + (" (elements as x[0], or x as a whole)" if any(shapes.values()) else ""))


FULL_INPUTS = {2: 8, 3: 4}  # inputs up to which derivatives of an order are compared entry by entry
DEFAULT_POINTS, DIFFERENCE_POINTS = 100, 24


@precision_restored()
def cross_check(function: Any, inputs: Sequence[Any] | Mapping[str, Any] = (), *, formula: Any = None, order: int = 2, domain: Any = None,
                framework: str | None = None, returns: str | None = None, wrt: Sequence[str] | None = None, points: int | None = None,
                ulp: float | None = None, atol: float = 0.0, rtol: float = 0.0, range: tuple[float, float] | None = None,
                seconds: float = 20.0, seed: int = 0, progress: Any = None, name: str | None = None) -> CrossReport:
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
    with progress_bar(progress, name) as tell:
        problem = _CrossCheck(function, given, name, inputs, formula, order, domain, framework, returns == "pair", wrt, tolerances)
        return problem.run(points, seconds, seed, tell)


def compare_floats(problem: DifferentiationTask, order: int, tolerances: Tolerances, visited: Sequence[np.ndarray], points: int | None,
                   seconds: float, seed: int, progress: Any) -> CrossReport:
    """Compare the floats of a symgrad function with its own formula, at the `visited` points, too."""
    domains = [tolerances.domain(REAL)] * len(problem.names)
    adapter = adapter_of(problem.call, "symgrad", problem.name, AdapterOptions(joined=True))
    report = CrossReport(problem.name, "symgrad", "not checkable", "", order, "its own formula", names=problem.names,
                         domains={i.name: domain_text(domains[0]) for i in problem.inputs})
    checker = CrossChecker(_derivatives(adapter, order, len(domains), lambda v: room_in(domains, v)), RecordedSource(silence()(problem.run)), report,
                           {i.name: i.value for i in problem.inputs}, domains, tolerances, points or DEFAULT_POINTS, seconds, seed, progress)
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
        self.call = call_of(function, name, inputs, wrt, named)
        wide = domains_of(domain, self.call.names)
        domains = {n: tolerances.domain(d) for n, d in wide.items()}
        self.base = []
        for i in self.call.inputs:
            value = i.value if i.value is not None else np.full(_implied_shape(i.name, named, self.call.names), simple_number(domains[i.name]))
            tolerances.refuse(i.name, np.asarray(value))
            outside = [x for x in np.ravel(value) if float(x) not in domains[i.name]]
            if outside:
                raise ValueError(f"check: the input {i.name} = {outside[0]:g} lies outside its domain {domain_text(domains[i.name])}")
            self.base.append(value)
        self.shapes = {i.name: v.shape for i, v in zip(self.call.inputs, self.base)}
        self.names = flat_names(self.call.names, [v.shape for v in self.base])
        self.domains, self.wide = ([d[i.name] for i, v in zip(self.call.inputs, self.base) for _ in range(v.size)] for d in (domains, wide))
        self.written = {n: domain_text(d) for n, d in domains.items()}
        self.options = AdapterOptions(joined=True, gradient=given[0] if given else None, hessian=given[1] if given[1:] else None, pair=returned)
        self.framework = named_framework(framework) if framework is not None else self._detect_framework(function)

    def _detect_framework(self, function: Callable[..., Any]) -> str:
        found = framework_of(function)
        if self.options.given:
            return found if found in ("torch", "jax") else "numpy"
        if found is not None:
            return found
        return "numpy" if self._derivatives("symgrad", 1).at(self.base, 1).error is not None else "symgrad"

    def _derivatives(self, framework: str, order: int) -> Derivatives:
        partials, hessian = (f and self.call.of(f) for f in (self.options.gradient, self.options.hessian))
        adapter = adapter_of(self.call.of(self.call.function), framework, self.name, replace(self.options, gradient=partials, hessian=hessian))
        return _derivatives(adapter, order, len(self.names), self._room)

    def _room(self, vector: np.ndarray) -> np.ndarray:
        """The distances by which the coordinates can move inside their domains and the range; from 0 also to numbers below the range."""
        return np.where(vector == 0, room_in(self.wide, vector), room_in(self.domains, vector))

    def run(self, points: int | None, seconds: float, seed: int, progress: Any) -> CrossReport:
        """The report."""
        derivatives = self._derivatives(self.framework, self.order)
        report = CrossReport(self.name, self.framework, "not checkable", "", self.order, domains=self.written, names=self.names)
        progress("reading the formula", 0, 1)
        truth, shape = self._reference_source(report, derivatives)
        checker = CrossChecker(derivatives, truth, report, dict(zip(self.call.names, self.base)), self.domains, self.tolerances,
                               points or (DIFFERENCE_POINTS if isinstance(truth, DifferenceSource) else DEFAULT_POINTS), seconds, seed, progress)
        checker.named = constants_of_code((self.call.function, self.options.gradient, self.options.hessian))
        if shape is not None:
            levels = derivatives.at(self.base, 0)
            if levels.error is None and tuple(levels.shape) != tuple(shape) and not (_is_single(levels.shape) and _is_single(shape)):
                raise ValueError(f"check: {self.name} returns an array of shape {list(levels.shape)}, but the formula has the shape {list(shape)}; "
                                 f"{self._advice(levels.shape)}")
        return checker.run()

    def _advice(self, shape: Sequence[int]) -> str:
        arrays = [n for n, s in self.shapes.items() if s]
        if not shape and arrays:
            return f"write the number that {self.name} returns with elements, as in {arrays[0]}[0] + {arrays[0]}[1], or give a symgrad function"
        return "both must be single numbers, or arrays of one shape"

    def _reference_source(self, report: CrossReport, derivatives: Derivatives) -> tuple[Any, tuple[int, ...] | None]:
        """The source of reference values, and the shape of the formula if known."""
        if self.formula is None:
            try:
                problem = self._record(lambda values: self._own_formula([values[n] for n in self.call.names]))
                report.against = "its own formula, which symgrad recorded"
                return RecordedSource(silence()(problem.run)), None
            except Exception:  # a function of another framework can raise anything for tensors of symgrad
                report.against = "finite differences of the function itself, order by order"
                report.notes.append("there is no formula: each order was compared with finite differences of the order below")
                return DifferenceSource(self._level(derivatives), self._room), None
        if callable(self.formula) and not isinstance(self.formula, (sympy.Basic, sympy.MatrixBase)):
            report.against = f"the function {name_of(self.formula)}"
            problem, shape = self._formula_of_function(self.formula)
            return RecordedSource(silence()(problem.run)), shape
        fixed = {n: v for n, v in self.call.fixed.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
        expressions, shape = expressions_of(self.formula, self.shapes, fixed)
        for e in expressions:
            if e.has(sympy.zoo, sympy.nan, sympy.oo, sympy.I) or e.atoms(sympy.core.function.AppliedUndef):
                raise ValueError(f"check: the formula {e} is no real number for real arguments, or has a function without a meaning")
        report.against = "the formula"
        report.formula = expressions[0] if len(expressions) == 1 else None
        return ExpressionSource(expressions, self.names), shape

    def _own_formula(self, tensors: Sequence[Any]) -> Any:
        result = self.call(tensors)
        return result[0] if self.options.pair else result

    def _level(self, derivatives: Derivatives) -> Callable[[np.ndarray, int], np.ndarray]:
        def level(vector: np.ndarray, order: int) -> np.ndarray:
            levels = derivatives.at(as_point(self.base, vector), order)
            if levels.error is not None or not np.all(np.isfinite(levels.values[order])):
                raise ArithmeticError("no value there")
            return np.asarray(levels.values[order])

        return level

    def _formula_of_function(self, formula: Callable[..., Any]) -> tuple[Any, tuple[int, ...]]:
        """A symgrad function as the formula; its arguments correspond to those of the checked function by name, or else by position."""
        parameters = [p for p in declared_parameters(formula) or [] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        known = [*self.call.names, *self.call.fixed]
        required = [p.name for p in parameters if p.default is p.empty]
        if parameters and all(n in known for n in required):
            order = [p.name for p in parameters if p.name in known]
        elif not parameters or len(required) == len(self.call.names):
            order = self.call.names
        else:
            raise ValueError(f"check: the formula takes {', '.join(required)}, but the arguments of {self.name} are {', '.join(known)}")
        by_name = all(n in known for n in required) and all(p.kind is not p.POSITIONAL_ONLY for p in parameters) and bool(parameters)
        try:
            problem = self._record(lambda values: formula(**{n: values[n] for n in order}) if by_name else formula(*(values[n] for n in order)))
            run = problem.run(problem.point)
        except Exception as error:
            raise ValueError(f"check: the formula {name_of(formula)} does not run on symgrad's tensors: {type(error).__name__}: {error}; "
                             f"give a symgrad function, a SymPy expression or text") from error
        return problem, run.shape or ()

    def _record(self, function: Callable[[Mapping[str, Any]], Any]) -> Any:
        """A function of symgrad's tensors by name as a problem over the inputs, run once."""
        def recorded(**values: Any) -> Any:
            return function(self.call.fixed | values)

        kind = inspect.Parameter.KEYWORD_ONLY
        recorded.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in self.call.names])  # type: ignore[attr-defined]
        problem = DifferentiationTask(recorded, dict(zip(self.call.names, self.base)), self.call.names)
        with silence():
            how = problem.departure(problem.run(problem.point, named=True))
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
