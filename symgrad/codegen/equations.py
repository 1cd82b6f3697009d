"""The equations that printers write: a function, a Tensor or a formula, with its gradient and Hessian on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import sympy

from symgrad.algebra.stable import stable_form_to_differentiate
from symgrad.codegen.choices import with_choices
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.formulas.expressions import equations as equations_of_tensor
from symgrad.graph.op import REGISTRY
from symgrad.graph.order import reached
from symgrad.reference.run import Run
from symgrad.symbolic.carrier_function import Call
from symgrad.symbolic.catalogue import plan
from symgrad.symbolic.conversion import FormulaFunction
from symgrad.symbolic.parameters import Parameter, formulas_of, parameters_of
from symgrad.symbolic.tracing import Trace, cells_of, checked_trace, with_conditions
from symgrad.trees import LEAF, Spec

WHERE = REGISTRY["where"]
SHORT = 400  # the number of operations up to which equations are merged, so that a stable form can be found


@dataclass
class EquationResult:
    """Formulas in an array shape: the value, a gradient by one parameter, a Hessian by two."""

    elements: list[Any]
    shape: tuple[int, ...]


@dataclass
class Equations:
    """Equations (symbol, formula) in order, and the results in terms of them: by order of the derivative, in the form they are returned in.

    They hold under the `conditions`.
    """

    parameters: list[Parameter]
    equations: list[tuple[Any, Any]]
    results: list[EquationResult]
    form: Spec
    name: str
    conditions: tuple[Any, ...] = ()

    def valid(self, results: Sequence[EquationResult]) -> list[EquationResult]:
        """The results as formulas with their conditions."""
        return [EquationResult([with_conditions(self.conditions, e) for e in result.elements], result.shape) for result in results]

    @property
    def flat(self) -> list[EquationResult] | None:
        """The results written out, if that is short; else None."""
        if len(self.equations) > SHORT:
            return None
        sizes: dict[Any, float] = {}

        def size(e: Any) -> float:
            below = sum(sizes.get(s, 0) for s in e.free_symbols)
            return float(e.count_ops() + below) if isinstance(e, sympy.Expr) else below + 1

        for symbol, e in self.equations:
            sizes[symbol] = size(e)
        if sum(size(e) for result in self.results for e in result.elements) > SHORT:
            return None
        expansions: dict[Any, Any] = {}
        for symbol, e in self.equations:
            expansions[symbol] = e.xreplace(expansions)
        return [EquationResult([e.xreplace(expansions) for e in result.elements], result.shape) for result in self.results]


def equations_of(given: Any, shapes: Sequence[Any] = (), symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0,
                 stable: bool = False, trusted: bool = False, calls: bool = False) -> Equations:
    """The equations of a function (called with named tensors, as `to_sympy` does), a formula of SymPy, or text that is one.

    With `stable` the derivatives are those of the function's stable form. A `trusted` function is known to have one formula. For `calls` see
    `LetForm`.

    Raises ValueError for derivatives other than 0, 1 and 2, and for derivatives of a value that is no single number.
    """
    if type(derivatives) is not int or derivatives not in (0, 1, 2):
        raise ValueError(f"derivatives is 0, 1 (the gradient) or 2 (the gradient and the Hessian), not {derivatives!r}")
    if isinstance(given, (sympy.Basic, sympy.MatrixBase)):
        given = FormulaFunction(given, symbols)
    elif symbols is not None:
        raise TypeError("symbols= gives the order of the symbols of a SymPy formula; a function has arguments")
    if isinstance(given, Tensor):
        if derivatives:
            raise TypeError("a Tensor is one value; give the function that computed it for its derivatives")
        cells = cells_of(given)
        elements, conditions = cells.ravel().tolist(), given.conditions
        return Equations(parameters_of([*elements, *conditions]), [], [EquationResult(elements, cells.shape)], LEAF, "f", conditions)
    name = getattr(given, "__name__", "f")
    if isinstance(given, FormulaFunction) and not derivatives:
        elements, shape = formulas_of(given.expr, "from_sympy")
        return Equations(given.parameters, [], [EquationResult(elements, shape)], LEAF, name)
    if derivatives and stable and not isinstance(given, FormulaFunction):
        plain = equations_of(given, shapes, None, at, domain, calls=True)
        flat = plain.flat
        if flat is not None and plain.form is LEAF and not flat[0].shape:
            found = _of_formula(flat[0].elements[0], plain.parameters, derivatives)
            return replace(found, name=name, conditions=plain.conditions)
        trusted = True
    if isinstance(given, FormulaFunction) and not shapes:
        shapes = [p.least for p in given.parameters]
    run, (equations, results) = checked_trace(given, shapes, at, domain, derivatives > 0, lambda t: _equations(t, derivatives, calls), trusted)
    if derivatives:
        equations = with_choices(equations, results[0].elements, [cell.name for p in run.parameters for cell in p.cells.values()])
    form, count = run.form, len(run.leaves)
    if derivatives and isinstance(given, FormulaFunction):
        results = [results[0], *[_defined(result, given.expr, dict(equations)) for result in results[1:]]]
    if derivatives:
        first = Spec(tuple, tuple(range(count)), (LEAF,) * count)
        second = Spec(tuple, first.keys, (first,) * count)
        parts = (form, first, second)[:derivatives + 1]
        form = Spec(tuple, tuple(range(len(parts))), parts)
    return Equations(run.parameters, equations, results, form, name, run.conditions)


def _defined(result: EquationResult, formula: Any, equations: dict[Any, Any]) -> EquationResult:
    """A derivative of a formula, whose constant elements are NaN where a choice in the formula has no value."""
    defined = sympy.And(*[sympy.Or(*[condition for _, condition in e.args]) for e in sympy.sympify(formula).atoms(sympy.Piecewise)])
    if defined == sympy.true:
        return result
    elements = [e if sympy.sympify(equations.get(e, e)).free_symbols else sympy.Piecewise((e, defined)) for e in result.elements]
    return EquationResult(elements, result.shape)


def _of_formula(e: Any, parameters: list[Parameter], derivatives: int) -> Equations:
    """The equations of a formula and its derivatives.

    Those of a choice are chosen from those of its branches: 0 times the derivative of a branch that is not chosen and overflows would be NaN.
    """
    choice = isinstance(e, sympy.Piecewise) and plan(stable_form_to_differentiate(e))
    if not isinstance(choice, Call) or choice.op != "where":  # no choice, or the formula of an op, such as sinc
        return equations_of(FormulaFunction(e, parameters), derivatives=derivatives, trusted=True)
    branches = [_of_formula(branch, parameters, derivatives) for branch, _ in e.args]
    used = {symbol.name for parameter in parameters for symbol in parameter.cells.values()}
    fresh = (name for name in (f"v{i}" for i in count(1)) if name not in used)
    equations, chosen = [], []
    for branch in branches:
        names = {symbol: sympy.Symbol(next(fresh), **symbol.assumptions0) for symbol, _ in branch.equations}
        equations += [(names[symbol], formula.xreplace(names)) for symbol, formula in branch.equations]
        chosen.append([[sympy.sympify(element).xreplace(names) for element in result.elements] for result in branch.results])
    results = [EquationResult([sympy.Piecewise(*zip(elements, (condition for _, condition in e.args))) for elements in zip(*parts)], result.shape)
               for result, *parts in zip(branches[0].results, *chosen)]
    return replace(branches[0], equations=equations, results=results)


def _differentiated(found: Trace, derivatives: int) -> list[Any]:
    """The results of a call, and the gradient and the Hessian of its one number."""
    if not derivatives:
        return found.results
    value = found.results[0] if len(found.results) == 1 else None
    if not isinstance(value, Tensor) or value.shape != () or value.is_complex():
        raise ValueError("derivatives are taken of one real number; return a sum, or leave derivatives=0")
    run = Run(list(found.leaves.values()), value, None)
    gradient = run.gradients(value, create_graph=True)
    out = [value, *gradient]
    if derivatives == 2:
        for g in gradient:
            rows = [run.gradients(element, create_graph=True) for element in traced.unbind(traced.reshape(g, (-1,)), 0)]
            for k, leaf in enumerate(run.leaves):
                shape = (*g.shape, *leaf.shape)
                out.append(traced.reshape(traced.stack([row[k] for row in rows], 0), shape) if rows else wrap(np.zeros(shape)))
    return out


def _of_rules(results: Sequence[Any], count: int) -> set[Any]:
    """The nodes of slopes in derivatives by `count` leaves, and of choices whose condition is one of an op's rule.

    Where the condition is one of what is differentiated, the choice is that of a `where`.
    """
    nodes = [getattr(r, "_node", None) for r in results]
    before, out = reached(nodes[:1]), set()
    for part in (nodes[1:count + 1], nodes[count + 1:]):
        new = reached(part, stop=before)
        ops = [(node, node.op) for node in new if hasattr(node, "op")]
        out |= {node for node, op in ops if op.slope or op is WHERE and node.parents[0] not in before}
        before |= new
    return out


def _equations(found: Trace, derivatives: int, calls: bool) -> tuple[list[tuple[Any, Any]], list[EquationResult]]:
    """The equations of all results together, so that they share common subexpressions."""
    results = _differentiated(found, derivatives)
    tensors = [r if isinstance(r, Tensor) else None for r in results]
    named = [t for t in tensors if t is not None and t.numel() and t.leaves]
    elements = [traced.reshape(t, (-1,)) for t in named]
    equations = equations_of_tensor(traced.cat(elements, 0), _of_rules(results, len(found.leaves)) if derivatives else (), calls) if named else []
    last = iter([symbol for symbol, _ in equations[len(equations) - sum(t.numel() for t in named):]])
    out = []
    for result, t in zip(results, tensors):
        if any(t is n for n in named):
            out.append(EquationResult([next(last) for _ in range(t.numel())], tuple(t.shape)))  # type: ignore[union-attr]
        else:
            cells = cells_of(result)
            out.append(EquationResult(cells.ravel().tolist(), cells.shape))
    return equations, out
