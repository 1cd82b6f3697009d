"""Evaluation of SymPy expressions at exact points, each value with a measured error.

An expression becomes a list of steps, one for each distinct subexpression; a step is a function of numbers with errors. The result of a step without
a value (a pole, a jump within the error) is an exception, which is raised by the steps that use it. A `Piecewise` uses only the selected case.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar

import sympy
from sympy.core.function import AppliedUndef
from sympy.logic.boolalg import Boolean, BooleanAtom

from symgrad.algebra.catalogue import DEFINITIONS, FUNCTIONS, REFUSED, operands, special
from symgrad.algebra.stochastic import Arithmetic, Gaussian, Number, Sample
from symgrad.carriers.digits import Undecided, Undefined

Step = Callable[..., Any]
TERMS = 1000  # the most terms of a sum or product


class Unknown(TypeError):
    """A part of an expression that cannot be evaluated: an undefined function, an unevaluated integral, an object that is not a number."""


class NotEnclosed(TypeError):
    """The error for an integrand with a function that has no enclosure."""


class Unresolved(Undecided):
    """The error for a number of which no certain value was found, also with more digits."""


def exact_float(x: sympy.Float) -> Fraction:
    """The exact value of a SymPy float."""
    sign, mantissa, exponent, _ = x._mpf_
    return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** int(exponent)  # gmpy2's integers, where it is installed


class Evaluator:
    """Expressions that are evaluated together at points.

    Raises Unknown for a subexpression that cannot be evaluated.
    """

    table: ClassVar[Mapping[Any, Step]]  # the step of each SymPy function

    def __init__(self, expressions: Sequence[Any], symbols: Sequence[sympy.Symbol], definitions: Mapping[Any, Any] = MappingProxyType({})):
        self.definitions = definitions  # of symbols that stand for an expression
        self.steps: list[tuple[Step, tuple[int, ...]]] = []
        self.lazy: set[int] = set()
        self.places: dict[Any, int] = {s: ~i for i, s in enumerate(symbols)}
        self.results = [self._place(e) for e in expressions]

    def _place(self, root: Any) -> int:
        stack = [root]
        while stack:
            top = stack[-1]
            if top in self.places:
                stack.pop()
                continue
            step, parts = self._step(top)
            missing = [part for part in parts if part not in self.places]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if isinstance(top, sympy.Piecewise):
                self.lazy.add(len(self.steps))
            self.steps.append((step, tuple(self.places[part] for part in parts)))
            self.places[top] = len(self.steps) - 1
        return self.places[root]

    def _step(self, e: Any) -> tuple[Step, tuple[Any, ...]]:
        """The function that computes a subexpression, and its operands."""
        if e in self.definitions:
            return (lambda a, x: x), (self.definitions[e],)
        constant = _constant(e)
        if constant is not None:
            return constant, ()
        kind = type(e)
        if kind in self.table:
            return self.table[kind], e.args
        if isinstance(e, sympy.Piecewise):
            return _piecewise, tuple(part for pair in e.args for part in pair.args)
        if isinstance(e, AppliedUndef):
            raise Unknown(f"{kind.__name__} is not a function that has a value: {e}")
        if isinstance(e, sympy.Symbol) or not isinstance(e, (sympy.Expr, Boolean)):
            raise Unknown(f"{e} has no value")
        if isinstance(e, (sympy.Sum, sympy.Product)):
            return self._sum_or_product(e)
        if isinstance(e, sympy.Integral):
            return _integral(e)
        if isinstance(e, sympy.Limit):
            raise Unknown(f"no certain value was found of {e}")
        if kind.__name__ in REFUSED:
            raise Unknown(f"{e} has no value: {REFUSED[kind.__name__]}")
        if isinstance(e, sympy.Function):
            simpler = None if kind.__name__ in FUNCTIONS else DEFINITIONS[kind](*e.args) if kind in DEFINITIONS else expand_function(e)
            return (special(e), operands(e)) if simpler is None else ((lambda a, x: x), (simpler,))
        if e.is_number and isinstance(e, sympy.Expr):
            return (lambda a: a.rounded(e.evalf(a.context.dps + 10)._to_mpmath(a.bits + 20))), ()
        raise Unknown(f"{type(e).__name__} has no value: {e}")

    def _sum_or_product(self, e: Any) -> tuple[Step, tuple[Any, ...]]:
        """A sum or a product of finitely many terms, by Karr's convention where the upper bound is below the lower one."""
        *inner, (k, low, high) = e.limits if all(len(limit) == 3 for limit in e.limits) else ((None, sympy.oo, sympy.oo),)
        if low.is_infinite or high.is_infinite:
            raise Unknown(f"no certain value was found of {e}")
        body = e.func(e.function, *inner) if inner else e.function
        others = sorted(body.free_symbols - {k}, key=str)
        term = type(self)([body], [k, *others])
        combined, inverse = self.table[sympy.Add if isinstance(e, sympy.Sum) else sympy.Mul], sympy.Mul if isinstance(e, sympy.Sum) else sympy.Pow

        def step(a: Any, low: Any, high: Any, *xs: Any) -> Any:
            first, last = _whole(low), _whole(high) + 1
            if abs(last - first) > TERMS:
                raise Undefined("too many terms")
            terms = [term.at([a.exact_or_sample(Fraction(i)), *xs], a)[0] for i in range(min(first, last), max(first, last))]
            for x in terms:
                if isinstance(x, ArithmeticError):
                    raise x
            found = combined(a, *terms)
            return found if first <= last else self.table[inverse](a, found, a.exact_or_sample(Fraction(-1)))

        return step, (low, high, *others)

    def check_result(self, x: Any) -> Any:
        """The result of a step."""
        return x

    def at(self, point: Sequence[Any], arithmetic: Any) -> list[Any]:
        """The values at a point, one per expression: a number with its error, or an exception."""
        values: list[Any] = []
        for k, (step, places) in enumerate(self.steps):
            xs = [values[i] if i >= 0 else point[~i] for i in places]
            if k not in self.lazy:
                failed = next((x for x in xs if isinstance(x, ArithmeticError)), None)
                if failed is not None:
                    values.append(failed)
                    continue
            try:
                values.append(self.check_result(step(arithmetic, *xs)))
            except (Undefined, Undecided) as error:
                values.append(error)
            except (ArithmeticError, ValueError, TypeError, MemoryError) as error:
                values.append(Undefined(str(error)))
        return [values[i] if i >= 0 else point[~i] for i in self.results]


def _integral(e: Any) -> tuple[Step, tuple[Any, ...]]:
    """A definite integral by quadrature with a bounded error."""
    try:
        from symgrad.algebra.quadrature import integral_step  # which needs python-flint

        return integral_step(e)
    except (ImportError, NotEnclosed) as error:
        needed = "without python-flint " if isinstance(error, ImportError) else ""
        raise Unknown(f"{needed}no certain value was found of {e}") from None


def _whole(x: Any) -> int:
    """A bound of a sum."""
    if isinstance(x, (Gaussian, Sample)) or x != int(x):
        raise Undefined("the bound of a sum is not an integer")
    return int(x)


def _constant(e: Any) -> Step | None:
    """The step of a constant, None for any other expression."""
    if isinstance(e, (sympy.Rational, sympy.Float)) or e is sympy.I:
        value: Any = Gaussian(Fraction(0), Fraction(1)) if e is sympy.I else exact_float(e) if e.is_Float else Fraction(int(e.p), int(e.q))
        return lambda a: a.exact_or_sample(value)
    if isinstance(e, BooleanAtom):
        return lambda a: e is sympy.true
    if isinstance(e, sympy.NumberSymbol):
        name = {sympy.pi: "pi", sympy.E: "e", sympy.EulerGamma: "euler", sympy.Catalan: "catalan", sympy.GoldenRatio: "phi"}.get(e)
        if name is not None:
            return lambda a: a.rounded(+getattr(a.context, name))
    return (lambda a: _undefined(str(e))) if e in (sympy.oo, -sympy.oo, sympy.zoo, sympy.nan) else None


def _undefined(text: str) -> Any:
    raise Undefined(text)


@functools.lru_cache(1024)
def expand_function(e: Any) -> Any:
    """A function of SymPy's code generation (expm1, log1p, hypot) or of this package in elementary functions, None for other functions."""
    for method in ("_eval_expand_func", "_eval_rewrite_as_tractable"):
        if hasattr(e, method):
            try:
                out = getattr(e, method)() if method == "_eval_expand_func" else getattr(e, method)(*e.args)
            except (TypeError, ValueError):  # for a function with a wrong number of arguments
                continue
            if isinstance(out, sympy.Expr) and out != e and not out.has(type(e)):
                return out
    return None


def _elementary(name: str, at_zero: int | None) -> Step:
    """A function of mpmath with its value at 0."""
    def step(a: Arithmetic, x: Number) -> Number:
        return Fraction(at_zero) if x == 0 and at_zero is not None else a.function(getattr(a.context, name), [x])
    return step


def _abs(a: Arithmetic, x: Number) -> Number:
    if isinstance(x, Fraction):
        return abs(x)
    if isinstance(x, Gaussian):
        return a.root(x.real**2 + x.imag**2)
    return Sample(abs(x.value), abs(x.changed))


def _sign(a: Arithmetic, x: Number) -> Number:
    if isinstance(x, Gaussian) or isinstance(x, Sample) and isinstance(x.value, a.context.mpc):
        return a.product([x, a.inverse(_abs(a, x))])
    return Fraction(a.sign(x))


def _extreme(larger: bool) -> Step:
    def step(a: Arithmetic, *xs: Number) -> Number:
        reals = [a.real(x) for x in xs]
        if all(isinstance(x, Fraction) for x in reals):
            return (max if larger else min)(reals)
        samples = [a.sample(x) for x in reals]
        largest = Sample(*map(max if larger else min, zip(*samples)))
        return next((x for x, s in zip(reals, samples) if s == largest), largest)
    return step


def _heaviside(a: Arithmetic, x: Number, at_zero: Number = Fraction(1, 2)) -> Number:
    sign = a.sign(x)
    return at_zero if sign == 0 else Fraction(1 if sign > 0 else 0)


def _dirac(a: Arithmetic, x: Number, order: Number = Fraction(0)) -> Number:
    return Fraction(0) if a.sign(x) else _undefined("an impulse")


def _floor(a: Arithmetic, x: Number) -> Number:
    real = a.real(x)
    if isinstance(real, Fraction):
        return Fraction(real.numerator // real.denominator)
    if a.magnitude(real.value) > a.bits:
        raise Undecided("floor")
    below = int(a.context.floor(real.value))
    if any(a.magnitude(real.value - edge) <= a.error(real) + 1 for edge in (below, below + 1)):
        raise Undecided("floor")
    return Fraction(below)


def _negative(a: Arithmetic, x: Number) -> Number:
    return a.product([Fraction(-1), x])


def _complex(a: Arithmetic, x: Number, y: Number) -> Number:
    """x + i y."""
    return a.sum([x, a.product([Gaussian(Fraction(0), Fraction(1)), y])])


def _arg(a: Arithmetic, x: Number) -> Number:
    return a.parts(a.log(x))[1] if x != 0 else _undefined("arg of 0")


def _piecewise(a: Arithmetic, *parts: Any) -> Any:
    for value, condition in zip(parts[::2], parts[1::2]):
        if isinstance(condition, ArithmeticError):
            raise condition
        if condition:
            if isinstance(value, ArithmeticError):
                raise value
            return value
    raise Undefined("no case holds")


def _order_relation(holds: Callable[[int], bool]) -> Step:
    def step(a: Arithmetic, x: Number, y: Number) -> bool:
        x, y = a.real(x), a.real(y)
        return holds(a.sign(a.sum([x, _negative(a, y)])))
    return step


def _equal(a: Arithmetic, x: Any, y: Any) -> bool:
    if isinstance(x, bool) or isinstance(y, bool):
        return x is y
    if isinstance(x, Sample) or isinstance(y, Sample):
        if a.apart(x, y):
            return False
        raise Undecided("equal")
    return bool(x == y)


STEPS: dict[Any, Step] = {
    sympy.Add: lambda a, *xs: a.sum(xs), sympy.Mul: lambda a, *xs: a.product(xs), sympy.Pow: lambda a, x, y: a.power(x, y),
    sympy.exp: lambda a, x: a.exp(x), sympy.log: lambda a, x: a.log(x), sympy.Abs: _abs, sympy.sign: _sign, sympy.Max: _extreme(True),
    sympy.Min: _extreme(False), sympy.Heaviside: _heaviside, sympy.DiracDelta: _dirac, sympy.floor: _floor,
    sympy.ceiling: lambda a, x: _negative(a, _floor(a, _negative(a, x))),
    sympy.re: lambda a, x: a.parts(x)[0], sympy.im: lambda a, x: a.parts(x)[1], sympy.arg: _arg,
    sympy.conjugate: lambda a, x: _complex(a, a.parts(x)[0], _negative(a, a.parts(x)[1])),
    sympy.atan2: lambda a, y, x: _arg(a, _complex(a, a.real(x), a.real(y))),
    **{getattr(sympy, name): _elementary(name, 0) for name in "sin tan sinh tanh asin atan asinh atanh erf".split()},
    **{getattr(sympy, name): _elementary(name, 1) for name in "cos cosh erfc".split()},
    **{getattr(sympy, name): _elementary(name, None) for name in "acos acosh".split()},
    sympy.Lt: _order_relation(lambda s: s < 0), sympy.Le: _order_relation(lambda s: s <= 0), sympy.Gt: _order_relation(lambda s: s > 0),
    sympy.Ge: _order_relation(lambda s: s >= 0), sympy.Eq: _equal, sympy.Ne: lambda a, x, y: not _equal(a, x, y),
    sympy.And: lambda a, *xs: all(xs), sympy.Or: lambda a, *xs: any(xs), sympy.Not: lambda a, x: not x, sympy.Xor: lambda a, *xs: sum(xs) % 2 == 1,
    sympy.ITE: lambda a, c, x, y: x if c else y,
}
STEPS[sympy.exp(sympy.Symbol("x")).func] = STEPS[sympy.exp]
Evaluator.table = STEPS


def undefined_functions(e: Any) -> Mapping[Any, Any]:
    """The applied undefined functions of an expression, with their unevaluated derivatives, and impulses, each replaced by a symbol."""
    found = [f for f in e.atoms(AppliedUndef, sympy.Derivative, sympy.DiracDelta)
             if (isinstance(f, (AppliedUndef, sympy.DiracDelta)) or f.has(AppliedUndef))
             and f.free_symbols <= e.free_symbols]  # one of the index of a sum is no number
    return {f: sympy.Dummy(str(f), real=True) for f in found}
