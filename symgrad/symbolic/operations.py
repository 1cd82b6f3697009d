"""Ops from formulas: `op_from_sympy` registers an op with derivatives of every order, given by a SymPy expression."""

from __future__ import annotations

import functools
import inspect
import math
import reprlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy

from symgrad.algebra.identity import Identity, identical
from symgrad.algebra.values import Unknown
from symgrad.graph.domains import NEGATIVE, NONNEGATIVE, NONZERO, POSITIVE, REAL, Domain
from symgrad.graph.op import Op
from symgrad.methods import extending
from symgrad.proofs.prove import Proof, prove
from symgrad.reports.base import REFUTED, BaseReport, Line, Part, weakest
from symgrad.sampling.domain_reader import domains_of
from symgrad.symbolic.exporting import jax_function, torch_function
from symgrad.symbolic.formula import OpFormula, Order, argument_names, recorded_op, with_signature
from symgrad.symbolic.kept import written_out
from symgrad.symbolic.parameters import parse_formula
from symgrad.symbolic.probe import HOPELESS
from symgrad.system.limits import GENERATED, SHORT, TooLarge, within


class DerivativeForm(NamedTuple):
    """The checks of one derivative: its order by each argument, its form, the verdict on their identity, and the largest error."""

    order: Order
    form: Any
    identity: Identity | None
    worst: float
    at: tuple[float, ...]
    points: int


@dataclass(frozen=True, repr=False)
class FormulaReport(BaseReport):
    """The checks of an op from a formula; as text, one line for each derivative."""

    name: str
    lines: tuple[DerivativeForm, ...]

    @property
    def verdict(self) -> str:
        """The weakest of the verdicts: "proved", "verified" or "not checkable"."""
        return weakest(line.identity.verdict for line in self.lines if line.identity is not None)

    @property
    def worst(self) -> float:
        """The largest error in units in the last place, divided by the condition number."""
        return max(line.worst for line in self.lines)

    @property
    def headline(self) -> str:
        """The first line: the op, the verdict, and the largest error."""
        return f"{self.name}: {self.verdict}, errors up to {self.worst:.1f} ULP"

    def parts(self) -> Iterator[Part]:
        """One line for each derivative."""
        for line in self.lines:
            verdict = "not checked" if line.identity is None else line.identity.verdict
            where = ", ".join(f"{x:.6g}" for x in line.at)
            yield Line(f"  {line.order}: {line.form}  {verdict}; {line.worst:.1f} ULP at ({where}), the worst of {line.points} points")


class FormulaOp:
    """The function of an op from a formula, for tensors, arrays and numbers, which broadcast.

    `op` is the op, `expr` and `symbols` are the formula, `domain` is its domain, `report` has the checks, and `code` is the generated NumPy
    source of the value and of the derivatives used so far.
    """

    def __init__(self, formula: OpFormula, function: Callable[..., Any], expr: Any, report: FormulaReport):
        self._formula, self._function, self.expr, self.report = formula, function, expr, report
        self.op: Op = function.op  # type: ignore[attr-defined]
        self.__name__ = self.__qualname__ = formula.name
        self.__doc__ = function.__doc__
        self.__signature__ = function.__signature__  # type: ignore[attr-defined]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<op {self.__name__}({', '.join(map(str, self.symbols))}) = {self.expr}>"

    def __reduce__(self) -> Any:
        return _restore, (self.__name__, self.expr, self.symbols, self.domain, self.op.docs.doc)

    @property
    def symbols(self) -> tuple[Any, ...]:
        """The symbols of the formula, in the order of the arguments."""
        return self._formula.symbols

    @property
    def domain(self) -> tuple[Domain, ...]:
        """The domain of each argument."""
        return self._formula.domains

    @functools.cached_property
    def proof(self) -> Proof:
        """The result of `symgrad.prove` for the rules of the op, up to second derivatives."""
        return prove(self.op, 2)

    @property
    def code(self) -> str:
        """The generated NumPy source of the value and of the derivatives used so far."""
        return "\n\n".join(form.code.source for _, form in sorted(self._formula._forms.items(), key=lambda item: (sum(item[0]), item[0])))

    def derivative(self, *order: int) -> Callable[..., Any]:
        """The function of a derivative, given by its order in each argument; it is called with all arguments of the op.

        Raises ValueError unless the orders are one nonnegative integer for each argument.
        """
        formula = self._formula
        if len(order) != len(self.symbols) or any(not isinstance(n, int) or n < 0 for n in order):
            raise ValueError(f"{self.__name__}: give one order of differentiation for each of {', '.join(map(str, self.symbols))}, not {order}")
        places = formula.form(order).places
        function = recorded_op(formula, order)
        return lambda *xs: function(*[xs[i] for i in places])

    def as_torch_function(self) -> Callable[..., Any]:
        """The same function for torch tensors, with derivatives of every order in torch's autograd.

        Raises ImportError without torch (`pip install 'symgrad[parity]'`).
        """
        return torch_function(self._formula)

    def as_jax(self) -> Callable[..., Any]:
        """The same function for JAX arrays, with derivatives of every order.

        Raises ImportError without jax (`pip install 'symgrad[parity]'`).
        """
        return jax_function(self._formula)


_ops: dict[str, FormulaOp] = {}


def _restore(name: str, expr: Any, symbols: tuple, domains: tuple[Domain, ...], doc: str) -> FormulaOp:
    """The op of a pickle: the registered one if it is equal."""
    registered = _ops.get(name)
    if registered is not None and (registered.expr, registered.symbols, registered.domain) == (expr, symbols, domains):
        return registered
    return op_from_sympy(name, expr, symbols, domain=domains, doc=doc, check=False)


def op_from_sympy(name: str, expr: Any, arguments: Sequence[Any] | None = None, *, domain: Any = None, doc: str = "",
                  check: bool = True) -> FormulaOp:
    """Make an op from a formula: y = expr(x1, ..., xn) for each element, broadcast, with derivatives of every order.

    The code is generated from the form of the formula, and of each of its derivatives, with the smallest measured error: stable
    rewritings (log1p, expm1, sech², hypot, log-sum-exp, ...); Taylor series near removable singularities and where terms cancel; means of a
    derivative for quotients such as (f(x) - f(y)) / (x - y); numbers with larger exponents where intermediate values overflow or underflow.
    Special functions are those of symgrad, also where SymPy writes one as a longer formula, and so are their derivatives. The derivative at a kink
    follows symgrad's conventions: 0 for |x| and sign at 0, shared at the tie of a maximum.

    Args:
        name: an identifier that is not the name of another op.
        expr: a SymPy expression; a Python function of SymPy symbols; or text such as "x/(1 + abs(x))", which is parsed and never executed.
        arguments: the symbols, or their names, in the order of the arguments; by default sorted by name.
        domain: the domain of the arguments: a `symgrad.graph.domains.Domain`, a SymPy interval or a pair (low, high), one for all or a sequence with
            one for each. By default it follows from the assumptions of the symbols.
        doc: one sentence about the op.
        check: whether to test that the code computes the formula; a refuted op is an error.

    Returns a function with `.op`, `.code`, `.report`, `.proof`, `.as_torch_function()` and `.as_jax()`; float32 stays float32, integers become
    the default dtype. Raises ValueError for a name that exists, symbols that are not arguments, and a formula that is not real somewhere
    in its domain, TypeError for a function without NumPy code. Warns (RuntimeWarning) if the code of the value or of a first derivative
    loses all digits or is NaN at a point.

    >>> import sympy, symgrad
    >>> x = sympy.Symbol("x")
    >>> softsign = op_from_sympy("softsign_example", x / (1 + sympy.Abs(x)))
    >>> t = symgrad.tensor([-3.0, 0.0, 1.0], requires_grad=True)
    >>> softsign(t)
    tensor([-0.7500,  0.0000,  0.5000], grad_fn=<SoftsignExampleBackward0>)
    >>> softsign(t).sum().backward()
    >>> t.grad
    tensor([0.0625, 1.0000, 0.2500])
    >>> softsign.report.verdict
    'proved'
    """
    expr, given = read_formula(name, expr, arguments)
    domains = domains_of_symbols(name, given, domain)
    symbols = tuple(sympy.Symbol(s.name, **d.assumptions) for s, d in zip(given, domains))
    expr = expr.xreplace(dict(zip(given, symbols)))
    formula = OpFormula(name, symbols, expr, domains)
    try:
        report = _report(formula, check)
        rules = formula.partials(formula.zero)
        if len(rules) != len(symbols):
            unused = [s for s in symbols if s not in expr.free_symbols]
            raise ValueError(f"{name}: the formula does not depend on {', '.join(map(str, unused))}; leave it out of the arguments")
        names = argument_names(formula.names)
        function = extending.elementwise(
            name, with_signature(lambda xp, *xs: formula.read(formula.zero, xp, dict(enumerate(xs))), names), *rules,
            domain=domains, vjp=formula.pullback(rules), saved=(" ".join(("result", *names)),) * len(names), special=_special(formula),
            doc=doc or f"{expr}, an op from a formula.")
    except Unknown as error:
        raise TypeError(f"{name}: {error}") from None
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"{name}: the formula is too large for floats or too deeply nested: {error}") from None
    out = _ops[name] = FormulaOp(formula, function, expr, report)
    return out


def _special(formula: OpFormula) -> tuple[tuple[float, ...], ...]:
    """The special points of the op."""
    return tuple((float(c),) for c in formula.centres if float(c) in formula.domains[0])


def _report(formula: OpFormula, check: bool) -> FormulaReport:
    """The checks of the value and the first derivatives: whether the code computes the formula, and its errors."""
    _real(formula)
    lines = []
    for k in [formula.zero, *(formula.next(formula.zero, i) for i in range(len(formula.symbols)))]:
        form, found = formula.form(k), None
        if check:
            found = identical(written_out(form.stable), _by_sympy(formula, k), dict(zip(formula.symbols, formula.domains)), seconds=0.3, points=12)
            if found.verdict == REFUTED:
                raise ValueError(f"{formula.name}: the form {form.stable} of {form.exact} is wrong: {found}")
        lines.append(DerivativeForm(k, form.stable, found, *form.measure))
        if form.measure.worst >= HOPELESS:
            at = ", ".join(f"{s} = {x:g}" for s, x in zip(form.symbols, form.measure.at))
            loss = "loses its value" if math.isinf(form.measure.worst) else f"is wrong by {form.measure.worst:.1g} ULP"
            what = f"derivative {k}" if sum(k) else "formula"
            warnings.warn(f"{formula.name}: the code of the {what} {loss} at {at}; write it in another form, or exclude such points by domain=",
                          RuntimeWarning, stacklevel=3)
    return FormulaReport(formula.name, tuple(lines))


def _by_sympy(formula: OpFormula, k: Order) -> Any:
    """The expression, or its first derivative by SymPy; if SymPy has no formula, that by symgrad's conventions."""
    i = next((i for i, n in enumerate(k) if n), None)
    expr = written_out(formula.expr)
    found = expr if i is None else sympy.diff(expr, formula.symbols[i])
    return written_out(formula.exact(k)) if found.has(sympy.Derivative, sympy.Subs, sympy.DiracDelta) else found


def _real(formula: OpFormula) -> None:
    """Raise ValueError if the formula has no real value at a point of its domain."""
    form = formula.form(formula.zero)
    for point, value in zip(form.points, form.references):
        if value != value:
            where = ", ".join(f"{s} = {x:g}" for s, x in zip(form.symbols, point))
            raise ValueError(f"{formula.name}: {written_out(formula.expr)} has no real value at {where}, in the domain "
                             f"{', '.join(map(repr, formula.domains))}; give the domain of the arguments, as in domain=POSITIVE "
                             f"(symgrad.graph.domains) or domain=(0, 1), or by assumptions of the symbols")


def read_formula(name: str, formula: Any, arguments: Sequence[Any] | None) -> tuple[Any, tuple[Any, ...]]:
    """A formula as a SymPy expression without floats, and its symbols in the order of the arguments.

    Raises TypeError for an object that is not a formula of real numbers, ValueError if symbols and arguments do not match.
    """
    if not extending.is_name(name):
        raise ValueError(f"an op is named by an identifier such as 'softsign', not by {reprlib.repr(name)}")
    if isinstance(formula, str):
        formula, names = parse_formula(formula, decimals=True)
        _check_size(formula, len(names))
        arguments = names if arguments is None else arguments
    elif callable(formula) and not isinstance(formula, sympy.Basic):
        formula, arguments = _formula_of_function(formula, arguments)
    if not isinstance(formula, (sympy.Expr, int, float)) or isinstance(formula, bool):
        raise TypeError(f"{name}: a formula is a SymPy expression, a function of symbols or text, not {type(formula).__name__}")
    formula = sympy.sympify(formula)
    if isinstance(formula, sympy.MatrixExpr) or formula.has(sympy.I) or not formula.is_commutative:
        raise TypeError(f"{name}: a formula is an expression of real numbers, not {formula}; for matrices declare the op with symgrad.primitive")
    free = sorted(formula.free_symbols, key=lambda s: s.name)
    symbols = tuple(free) if arguments is None else tuple(_symbols(name, arguments, free))
    if not symbols:
        raise ValueError(f"{name}: {formula} has no argument; a formula depends on at least one symbol")
    missing = [s for s in free if s not in symbols]
    if missing:
        raise ValueError(f"{name}: {', '.join(map(str, missing))} in the formula is not among the arguments "
                         f"({', '.join(map(str, symbols))}); list every symbol, or put numbers in their place with subs")
    if len({s.name for s in symbols}) < len(symbols):
        raise ValueError(f"{name}: two arguments have one name: {', '.join(map(str, symbols))}")
    # A decimal is exact: 0.1 is 1/10, whose nearest float is in the code.
    return formula.replace(lambda e: e.is_Float, lambda e: sympy.Rational(repr(float(e)))), symbols


def _check_size(formula: Any, count: int) -> None:
    """Raise TooLarge for a formula from text that is too long for the generation and measurement of its code.

    A function counts as fifteen operations and a quotient or root as four, because of their series; there are none for several variables.
    """
    quotients = formula.count(lambda e: e.is_Pow and not (e.exp.is_Integer and e.exp > 0))
    weight = sympy.count_ops(formula) + (14 if count == 1 else 3) * formula.count(sympy.Function) + 3 * quotients
    try:
        within(weight * (1 + count) / 2, GENERATED, "the operations and variables of the formula count as {}")
    except TooLarge as error:
        raise TooLarge(f"{error}; a formula of this size is given as a SymPy expression, not as text") from None


def _formula_of_function(function: Callable[..., Any], arguments: Sequence[Any] | None) -> tuple[Any, tuple[Any, ...]]:
    """The formula that a Python function of symbols returns."""
    if arguments is None:
        arguments = tuple(p.name for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD)
    symbols = tuple(s if isinstance(s, sympy.Symbol) else sympy.Symbol(s, real=True) for s in arguments)
    return function(*symbols), symbols


def _symbols(name: str, arguments: Sequence[Any], free: Sequence[Any]) -> list[Any]:
    if isinstance(arguments, (str, sympy.Symbol)):
        arguments = (arguments,)
    by_name = {s.name: s for s in free}
    out = []
    for a in arguments:
        if not isinstance(a, (str, sympy.Symbol)):
            raise TypeError(f"{name}: an argument is a symbol or its name, not {a!r}")
        if len(str(a)) > SHORT:
            raise ValueError(f"{name}: the name of an argument is longer than {SHORT} characters: {reprlib.repr(str(a))}")
        out.append(by_name.get(a, sympy.Symbol(a, real=True)) if isinstance(a, str) else a)
    return out


def domains_of_symbols(name: str, symbols: Sequence[Any], domain: Any) -> tuple[Domain, ...]:
    """One domain for each symbol: the given one, or that of its assumptions. Raises TypeError and ValueError for invalid domains."""
    several = isinstance(domain, (tuple, list)) and any(isinstance(x, (Domain, sympy.Set, tuple, list, str)) for x in domain)
    if several and (len(symbols) > 1 or len(domain) == 1):  # for one argument, a list of pairs is a union
        if len(domain) != len(symbols):
            raise ValueError(f"{name}: {len(domain)} domains are given for {len(symbols)} arguments")
        domain = {s.name: d for s, d in zip(symbols, domain)}
    try:
        return tuple(domains_of(domain, [s.name for s in symbols], [_domain_by_assumptions(s) for s in symbols]).values())
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _domain_by_assumptions(symbol: Any) -> Domain:
    for word, domain in (("positive", POSITIVE), ("negative", NEGATIVE), ("nonnegative", NONNEGATIVE), ("nonzero", NONZERO)):
        if getattr(symbol, f"is_{word}"):
            return domain
    return REAL
