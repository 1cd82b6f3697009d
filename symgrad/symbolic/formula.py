"""A formula with its derivatives, each of which is an op; its evaluation depends on the type of its arguments.

| arguments                | computed by                                                             |
|--------------------------|-------------------------------------------------------------------------|
| NumPy arrays and numbers | generated code, in the form with the smallest error                     |
| Tensors                  | the op of the derivative, so that the next order is its derivative      |
| dual values, series      | the pushforward of that op                                              |
| SymPy expressions        | substitution of the arguments for the symbols                           |
| many-digit numbers       | the exact expression, with as many digits as needed                     |
| anything else            | the stable form, function by function                                   |
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from symgrad.algebra.series import Laurent, NotAnalytic, expansion
from symgrad.algebra.stable_functions import log1p, partial, with_kinks
from symgrad.algebra.stable_products import FORMULAS, VANISHING, VARIABLE, Mean, with_means
from symgrad.algebra.values import Unknown, value
from symgrad.carriers import numeric, precise, symbolic
from symgrad.carriers.batched import Batched
from symgrad.carriers.dual import Dual
from symgrad.carriers.duck import Unrecordable
from symgrad.carriers.recorded import Recorded
from symgrad.carriers.series import Series
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor
from symgrad.graph.derived import elementwise_jvp, elementwise_vjp
from symgrad.graph.domains import REAL, Domain, Interval
from symgrad.graph.op import Op
from symgrad.reference.recorder import Box
from symgrad.symbolic.carrier_function import CarrierFunction, written_out
from symgrad.symbolic.forms import Form, best_form, centres, series_of_derivative
from symgrad.symbolic.generating import Code, generate, plain_names
from symgrad.symbolic.reading import evaluate_expression, fold_special

Order = tuple[int, ...]
ABOVE_MINUS_ONE = Domain("ABOVE_MINUS_ONE", (Interval(-1.0, open_low=True),))
SERIES = 56  # the number of coefficients of a series


class OpFormula:
    """An expression of real symbols with its derivatives, indexed by the order in every argument."""

    def __init__(self, name: str, symbols: Sequence[Any], expr: Any, domains: Sequence[Domain]):
        self.name, self.symbols, self.domains = name, tuple(symbols), tuple(domains)
        self.names = plain_names(symbols)
        self.zero: Order = (0,) * len(symbols)
        self.expr = fold_special(with_kinks(expr))
        self._exact: dict[Order, Any] = {self.zero: self.expr}
        mean = with_means(self.expr) if len(symbols) > 1 else self.expr
        self._means: dict[Order, Any] = {self.zero: mean} if mean.has(Mean) else {}
        self._forms: dict[Order, Form] = {}
        self._ops: dict[Order, Op] = {}
        self._series: dict[Any, Laurent | None] = {}

    def next(self, k: Order, i: int) -> Order:
        """The multi-index with one derivative more by argument i."""
        return (*k[:i], k[i] + 1, *k[i + 1:])

    def exact(self, k: Order) -> Any:
        """The derivative as a SymPy expression, with kinks by convention."""
        return self._derivative(self._exact, k)

    def _derivative(self, known: dict[Order, Any], k: Order) -> Any:
        if k not in known:
            i = next(i for i, n in enumerate(k) if n)
            known[k] = partial(self._derivative(known, (*k[:i], k[i] - 1, *k[i + 1:])), self.symbols[i])
        return known[k]

    def series(self, centre: Any) -> Laurent | None:
        """The Laurent series of the expression at a point, None if it has none."""
        if centre not in self._series:
            try:
                self._series[centre] = expansion(self.expr, self.symbols[0], centre, SERIES)
            except (NotAnalytic, Unknown):
                self._series[centre] = None
        return self._series[centre]

    @functools.cached_property
    def centres(self) -> list[Any]:
        """The points at which the expression has a series, and near which digits may be lost."""
        if len(self.symbols) > 1:
            return []
        return [c for c in centres(self.expr, self.symbols[0], self.domains[0]) if self.series(c) is not None]

    def form(self, k: Order) -> Form:
        """The form in which a derivative is computed, found on first use."""
        if k not in self._forms:
            i = next((i for i, n in enumerate(k) if n), None)
            near = self.expr if i is None else partial(self.form((*k[:i], k[i] - 1, *k[i + 1:])).stable, self.symbols[i])
            order = sum(k)

            def expand(centre: Any) -> Laurent | None:
                series = self.series(centre)
                return None if series is None else series_of_derivative(series, order)

            nearby = [(c, series) for c in self.centres if (series := expand(c)) is not None]
            self._forms[k] = best_form("_".join((self.name, *map(str, k if order else ()))), self.exact(k), near, self.symbols, self.domains,
                                       self.names, ratio_code, nearby, expand if len(self.symbols) == 1 else None, order < 2,
                                       self._derivative(self._means, k) if self._means else None, self.expr.has(CarrierFunction))
        return self._forms[k]

    def partials(self, k: Order) -> tuple[Any, ...]:
        """The partial derivatives of the op of a derivative, as rules or as integers."""
        places = self.form(k).places

        def rule(following: Order) -> Callable[..., Any]:
            return lambda xp, y, *xs: self.read(following, xp, dict(zip(places, xs)))

        return tuple([int(e) if (e := self.exact(self.next(k, i))).is_Integer else rule(self.next(k, i)) for i in places])

    @functools.cached_property
    def gradient(self) -> Code | None:
        """Code of all first derivatives from the value and the arguments, with shared subexpressions; None if a series or mean is used.

        A subexpression that equals the value is replaced by it.
        """
        value, firsts = self.form(self.zero), [self.form(self.next(self.zero, i)) for i in range(len(self.symbols))]
        if any(form.patches or form.stable.has(Mean) for form in (value, *firsts)):
            return None
        outcome = sympy.Dummy("y", real=True)
        outputs = [form.stable if form.stable.is_Atom else form.stable.xreplace({value.stable: outcome}) for form in firsts]
        if len(outputs) == 1 and outcome not in outputs[0].free_symbols:
            return None  # the code of the derivative itself
        result = next(name for name in ("result", *(f"result{i}" for i in range(1, 100))) if name not in self.names)
        return generate(f"{self.name}_gradient", [outcome, *self.symbols], outputs, names=[result, *self.names], ratio_code=ratio_code,
                        guards=[form.guard for form in firsts])

    def pullback(self, partials: tuple[Any, ...]) -> Callable[..., Any]:
        """The pullback rule; for arrays, if all cotangents are needed, by the code of all derivatives."""
        each = elementwise_vjp(partials, False)

        def vjp(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence[Any]) -> tuple:
            if xp is not numeric or None in needs or (code := self.gradient) is None:
                return each(xp, g, y, args, needs)
            found = code.function(y, *args)
            return tuple([g * partial for partial in found]) if len(needs) > 1 else (g * found,)

        return vjp

    def read(self, k: Order, xp: Any, given: Mapping[int, Any]) -> Any:
        """A derivative at arguments of any type, given by their indices."""
        form = self._forms.get(k) or self.form(k)
        if form.exact.is_Symbol and sum(k):
            return given[form.places[0]]
        xs = tuple([given[i] for i in form.places])
        if xp is numeric:
            return form.code.function(*xs)
        found = (next((EVALUATIONS[cls] for cls in type(x).__mro__ if cls in EVALUATIONS), OTHERS) for x in xs)
        return max(found, key=lambda reading: reading[0])[1](self, k, xp, xs)

    def op(self, k: Order) -> Op:
        """The op of a derivative."""
        if k not in self._ops:
            form, partials = self.form(k), self.partials(k)
            names = tuple(argument_names([self.names[i] for i in form.places]))
            node_name = "".join(part.capitalize() for part in self.name.split("_")) + "Backward0"
            self._ops[k] = Op.of(self.name, "elementwise", with_signature(lambda xp, *xs: self.read(k, xp, dict(zip(form.places, xs))), names),
                              elementwise_vjp(partials, False), elementwise_jvp(partials), len(names), names, (), node_name=node_name,
                              partials=partials, domain=tuple(self.domains[i] for i in form.places), saved=(" ".join(names),) * len(names),
                              method=False, public=False, doc=f"The derivative {k} of {self.name}.")
        return self._ops[k]

    def limit(self, k: Order, point: Any) -> Any:
        """The limit of a derivative at a point where its formula is 0/0, None if it does not exist."""
        limits = self.form(k).limits
        if point not in limits:
            found = sympy.limit(written_out(self.exact(k)), self.symbols[0], point) if point in self.centres else sympy.nan
            limits[point] = found if found.is_finite and found.is_real else None
        return limits[point]


def argument_names(names: Sequence[str]) -> Sequence[str]:
    """The argument names of an op: a single one is `input`, as in all ops."""
    return ["input"] if len(names) == 1 else names


def with_signature(rule: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """A rule with a signature of named arguments."""
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    rule.__signature__ = inspect.Signature([inspect.Parameter(n, positional) for n in ("xp", *names)])  # type: ignore[attr-defined]
    return rule


# Ratios are formulas of one inner argument; the code of other formulas calls their code.


@functools.cache
def _ratio(which: int) -> OpFormula:
    return OpFormula(f"ratio_{which}", [VARIABLE], FORMULAS[which], [ABOVE_MINUS_ONE if VANISHING[which // 2] is log1p else REAL])


def ratio_code(which: int, order: int) -> Code:
    """The code of a derivative of one of the quotients.

    >>> ratio_code(0, 2)(np.array([0.0]))
    array([-0.33333333])
    """
    return _ratio(which).form((order,)).code


# Evaluation by the type of the arguments


def _recorded(formula: OpFormula, k: Order, xp: Any, xs: tuple) -> Any:
    raise Unrecordable(f"the formula of {formula.name}, whose code chooses a form by the numbers")


def _expressions(formula: OpFormula, k: Order, xp: Any, xs: tuple) -> Any:
    form = formula.form(k)

    def one(*es: Any) -> Any:
        point = es[0] if len(es) == 1 else None
        if point is not None and point.is_number and (limit := formula.limit(k, point)) is not None:
            return limit
        return form.shown.xreplace(dict(zip(form.symbols, es)))

    return np.frompyfunc(one, len(xs), 1)(*xs)


def _digits(formula: OpFormula, k: Order, xp: Any, xs: tuple) -> Any:
    form = formula.form(k)

    def one(*values: Any) -> Any:
        found = form.reference(values, precise.context.dps)
        if found != found and len(values) == 1 and (limit := formula.limit(k, sympy.Rational(str(values[0])))) is not None:
            found = value(limit)([])
        return precise.context.mpf(found)

    return np.frompyfunc(one, len(xs), 1)(*xs)


@functools.cache
def recorded_op(formula: OpFormula, k: Order) -> Callable[..., Any]:
    """The function that records the op of a derivative."""
    return core(formula.op(k))


# For arguments of several types the last type in this order is used: a dual value may contain Tensors.
EVALUATIONS: dict[type, tuple[int, Callable[..., Any]]] = {kind: (rank, reading) for rank, (kinds, reading) in enumerate((
    ((int, float, np.generic, np.ndarray, Batched), lambda formula, k, xp, xs: formula.form(k).code.function(*xs)),
    ((precise.Digits,), _digits), ((symbolic.Expressions,), _expressions),
    ((Tensor,), lambda formula, k, xp, xs: recorded_op(formula, k)(*xs)),
    ((Recorded,), _recorded), ((Dual, Series, Box), lambda formula, k, xp, xs: xp.apply(formula.op(k), xs, ())))) for kind in kinds}
OTHERS = len(EVALUATIONS), lambda formula, k, xp, xs: evaluate_expression(formula.form(k).stable, formula.form(k).symbols, xp, xs)
