"""Rewriting into numerically stable forms: `stable_form` returns the stable expression, `suggestions` lists the rewritten subexpressions.

Every rule is an identity of real functions. It replaces a form that loses digits in floats (a difference of nearly equal numbers) or overflows
(a quotient of exponentials). Stable forms without an elementary notation are functions of `symgrad.algebra.stable_functions`,
which `elementary` expands again.

Sources: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, chapter 1; W. Kahan, Branch Cuts for Complex
Elementary Functions (1987), for expm1 and log1p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import sympy
from sympy import Add, Mul, Pow, atan, atan2, cos, cosh, exp, log, sech, sin, sinh, tanh

from symgrad.algebra.stable_functions import (
    elementary,
    expm1,
    hypot,
    log1mexp,
    log1p,
    log_cosh,
    logaddexp,
    sech_squared,
    sigmoid,
    softplus,
)
from symgrad.algebra.stable_products import by_exponential, hyperbolic, magnitudes

ONE = sympy.S.One


class Suggestion(NamedTuple):
    """A subexpression `found` that keeps more digits if computed as `better`; `name` is the name of the form."""

    found: Any
    better: Any
    name: str


Rule = Callable[[Any], tuple[Any, str] | None]


def stable_form(expr: Any) -> Any:
    """The expression in stable forms: the same real function, with `expm1`, `log1p`, `hypot` and the functions of `stable_functions`.

    >>> import sympy
    >>> x = sympy.Symbol("x", real=True)
    >>> stable_form(sympy.log(1 + sympy.exp(x)))
    softplus(x)
    >>> stable_form(1 - sympy.tanh(x) ** 2)
    sech_squared(x)
    """
    return _Rewriting().of(sympy.sympify(expr))


def stable_form_to_differentiate(expr: Any) -> Any:
    """Like `stable_form`, for a form that will be differentiated: differences of squares and of angles are not rewritten.

    (a - b) (a + b) keeps its digits where a is close to b, but its derivative (a - b) + (a + b) = 2 a by a loses digits where a is small.

    >>> import sympy
    >>> x, y = sympy.symbols("x y", real=True)
    >>> stable_form_to_differentiate(x**2 - y**2 + sympy.exp(x) - 1)
    x**2 - y**2 + expm1(x)
    """
    return _Rewriting([(kind, [rule for rule in rules if rule not in (_squares, _angles)]) for kind, rules in RULES]).of(sympy.sympify(expr))


def suggestions(expr: Any) -> list[Suggestion]:
    """The subexpressions that lose digits in floats, with their stable forms.

    >>> import sympy
    >>> x = sympy.Symbol("x", real=True)
    >>> for found, better, name in suggestions(x * (sympy.exp(x) - 1)):
    ...     print(found, "->", better, f"({name})")
    exp(x) - 1 -> expm1(x) (expm1)
    """
    rewriting = _Rewriting()
    rewriting.of(sympy.sympify(expr))
    return rewriting.found


class _Rewriting:
    """One pass over an expression from its leaves up with the given rules, which collects the rewritten subexpressions."""

    def __init__(self, rules: Sequence[tuple[Any, Sequence[Rule]]] | None = None) -> None:
        self.rules = RULES if rules is None else rules
        self.known: dict[Any, Any] = {}
        self.found: list[Suggestion] = []

    def of(self, expr: Any) -> Any:
        """The stable form of an expression; each subexpression is visited once."""
        if not expr.args:
            return expr
        if expr not in self.known:
            args = [self.of(arg) for arg in expr.args]
            out = expr if all(a is b for a, b in zip(args, expr.args)) else expr.func(*args)
            self.known[expr] = self.apply_rules(out)
        return self.known[expr]

    def apply_rules(self, expr: Any) -> Any:
        """An expression of rewritten subexpressions, to which the rules are applied until none matches."""
        for _ in range(20):  # a safety limit: every rule simplifies the expression
            for kind, rules in self.rules:
                better = next(filter(None, (rule(expr) for rule in rules)), None) if isinstance(expr, kind) else None
                if better is not None:
                    break
            else:
                return expr
            after, name = better
            step = _difference_of(expr, after)
            found = elementary(step[0])
            if found not in (step[1], *[s.found for s in self.found]):
                self.found.append(Suggestion(found, step[1], name))
            before, expr = expr, after
            if expr.func is not before.func:
                expr = expr.func(*[self.of(arg) for arg in expr.args]) if expr.args else expr
        return expr


def _difference_of(before: Any, after: Any) -> tuple[Any, Any]:
    """The terms (or factors) of a sum (or product) that a rule replaced, and their replacement."""
    for kind in (Add, Mul):
        if isinstance(before, kind):
            old, new = set(kind.make_args(before)), set(kind.make_args(after))
            if old & new:
                return kind(*[a for a in before.args if a not in new]), kind(*[a for a in kind.make_args(after) if a not in old])
    return before, after


# Sums


def _factors(term: Any) -> list[tuple[Any, Any]]:
    """Each factor of a term, with the product of the others."""
    factors = Mul.make_args(term)
    return [(f, Mul(*factors[:i], *factors[i + 1:])) for i, f in enumerate(factors)]


def _square_base(x: Any) -> Any:
    """b where x is b² and b a real expression, else None."""
    if isinstance(x, Pow) and x.exp.is_Integer and x.exp > 0 and x.exp % 2 == 0:
        return x.base ** (x.exp / 2)
    if x.is_Rational and x > 0 and sympy.sqrt(x).is_Rational:
        return sympy.sqrt(x)
    if isinstance(x, Mul):
        bases = [_square_base(f) for f in x.args]
        return None if None in bases else Mul(*bases)
    return None


def _minus_one(f: Any) -> tuple[Any, str] | None:
    """f - 1 in a form without cancellation."""
    if isinstance(f, exp):
        return expm1(f.args[0]), "expm1"
    if isinstance(f, cos):
        return -2 * sin(f.args[0] / 2) ** 2, "half-angle"
    if isinstance(f, cosh):
        return 2 * sinh(f.args[0] / 2) ** 2, "half-angle"
    if isinstance(f, sigmoid):
        return -sigmoid(-f.args[0]), "sigmoid"
    if isinstance(f, tanh):
        return -2 * sigmoid(-2 * f.args[0]), "sigmoid"
    if isinstance(f, sech_squared):
        return -tanh(f.args[0]) ** 2, "square of tanh"
    if isinstance(f, hypot) and 1 in f.args:
        u = f.args[1] if f.args[0] == 1 else f.args[0]
        return u**2 / (f + 1), "difference of roots"
    if not isinstance(f, Pow):
        return None
    base, power = f.args
    if power == 2:
        u = base.args[0] if base.args else None
        for kind, form, name in ((tanh, lambda u: -sech_squared(u), "sech_squared"), (cos, lambda u: -sin(u) ** 2, "square of sin"),
                                 (sin, lambda u: -cos(u) ** 2, "square of cos"), (cosh, lambda u: sinh(u) ** 2, "square of sinh")):
            if isinstance(base, kind):
                return form(u), name
        return None
    if power == sympy.S.Half and isinstance(base, Add) and 1 in base.args:
        return (base - 1) / (f + 1), "difference of roots"
    if power.is_Integer:
        return None
    if isinstance(base, Add) and 1 in base.args:
        return expm1(power * log1p(base - 1)), "expm1"
    return (expm1(power * log(base)), "expm1") if base.is_positive and not power.is_Number else None


def _plus_one(f: Any) -> tuple[Any, str] | None:
    """f + 1 in a form without cancellation."""
    if isinstance(f, tanh):
        return 2 * sigmoid(2 * f.args[0]), "sigmoid"
    if isinstance(f, cos):
        return 2 * cos(f.args[0] / 2) ** 2, "half-angle"
    return (cosh(f.base.args[0]) ** 2, "square of cosh") if isinstance(f, Pow) and f.exp == 2 and isinstance(f.base, sinh) else None


def _beside_one(expr: Any) -> tuple[Any, str] | None:
    """c f - c and c f + c in a sum, for every f with a stable form of f ± 1."""
    terms = set(expr.args)
    for term in expr.args:
        for f, c in _factors(term):
            for partner, form, turn in ((-c, _minus_one, 1), (c, _plus_one, 1)):
                if partner in terms and partner != term and (better := form(f)) is not None:
                    return Add(*(terms - {term, partner}), turn * c * better[0]), better[1]
            if isinstance(f, sigmoid):  # 2 sigmoid(u) - 1, and sigmoid(u) - sigmoid(-u)
                for partner, factor in ((-c / 2, c / 2), (-c * sigmoid(-f.args[0]), c)):
                    if partner in terms and partner != term:
                        return Add(*(terms - {term, partner}), factor * tanh(f.args[0] / 2)), "tanh"
    return None


def _exponentials(expr: Any) -> tuple[Any, str] | None:
    """c exp(u) ± c exp(-u) as hyperbolic functions."""
    if not expr.has(exp):
        return None
    terms = set(expr.args)
    for term in expr.args:
        for f, c in _factors(term):
            if isinstance(f, exp) and not f.args[0].could_extract_minus_sign():
                u = f.args[0]
                for turn, form in ((1, cosh), (-1, sinh)):
                    partner = turn * c * exp(-u)
                    if partner in terms:
                        return Add(*(terms - {term, partner}), 2 * c * form(u)), form.__name__
    return None


def _roots(expr: Any) -> tuple[Any, str] | None:
    """c √p - c √q as c (p - q) / (√p + √q), where p - q is a product."""
    terms = set(expr.args)
    for term in expr.args:
        for f, c in _factors(term):
            p = f.base if isinstance(f, Pow) and f.exp == sympy.S.Half else f.args[0] ** 2 + f.args[1] ** 2 if isinstance(f, hypot) else None
            if p is None:
                continue
            for other in terms - {term}:
                root = -other / c
                if not root.is_nonnegative:
                    continue
                difference = sympy.expand(p - root**2)
                if not isinstance(difference, Add) and difference != 0 and (root.is_Number or root.has(*f.free_symbols)):
                    return Add(*(terms - {term, other}), c * difference / (f + root)), "difference of roots"
    return None


def _squares(expr: Any) -> tuple[Any, str] | None:
    """a² - b² as (a - b) (a + b)."""
    if len(expr.args) != 2:
        return None
    first, second = (expr.args if expr.args[1].could_extract_minus_sign() else expr.args[::-1])
    a, b = _square_base(first), _square_base(-second)
    if a is None or b is None or a.is_Number and b.is_Number:
        return None
    return Mul(a - b, a + b, evaluate=False) if isinstance(a - b, Add) else (a - b) * (a + b), "difference of squares"


def _logarithms(expr: Any) -> tuple[Any, str] | None:
    """c log(a) - c log(b) as c log1p((a - b) / b), where a - b is a product."""
    terms = set(expr.args)
    for term in expr.args:
        for f, c in _factors(term):
            if not isinstance(f, (log, log1p)):
                continue
            for other in terms - {term}:
                g = -other / c
                if not isinstance(g, (log, log1p)):
                    continue
                a, b = (x.args[0] + (1 if isinstance(x, log1p) else 0) for x in (f, g))
                difference = sympy.expand(a - b)
                if a.is_positive and b.is_positive and not isinstance(difference, Add) and difference != 0 and difference.is_positive is not False:
                    return Add(*(terms - {term, other}), c * log1p(difference / b)), "difference of logarithms"
    return None


def _angles(expr: Any) -> tuple[Any, str] | None:
    """c atan(a) - c atan(b) as c atan2(a - b, 1 + a b), the angle between the vectors (1, a) and (1, b)."""
    terms = set(expr.args)
    for term in expr.args:
        for f, c in _factors(term):
            for other in terms - {term} if isinstance(f, atan) else ():
                g = -other / c
                if isinstance(g, atan) and not f.args[0].is_number and not g.args[0].is_number:
                    a, b = f.args[0], g.args[0]
                    return Add(*(terms - {term, other}), c * atan2(a - b, 1 + a * b)), "difference of angles"
    return None


# Powers and logarithms


def _pow(expr: Any) -> tuple[Any, str] | None:
    base, power = expr.args
    if isinstance(base, Add):
        if power.is_Rational and power.q == 2 and len(base.args) == 2:
            sides = [_square_base(arg) for arg in base.args]
            if None not in sides and not all(s.is_Number for s in sides):
                return hypot(*sides) ** (2 * power), "hypot"
        if power.is_Integer and power < 0 and len(base.args) == 2 and 1 in base.args:
            other = base - 1
            if isinstance(other, exp):
                return sigmoid(-other.args[0]) ** -power, "sigmoid"
    if isinstance(base, cosh) and power.is_Integer and power < 0:
        return hyperbolic(expr)
    if isinstance(base, sech) and power.is_Integer and power > 1:
        return sech_squared(base.args[0]) ** (power // 2) * base ** (power % 2), "sech_squared"
    return None


def _log(expr: Any) -> tuple[Any, str] | None:
    (inner,) = expr.args
    if isinstance(inner, sigmoid):
        return -softplus(-inner.args[0]), "softplus"
    if isinstance(inner, cosh):
        return log_cosh(inner.args[0]), "log_cosh"
    if isinstance(inner, Mul) and len(inner.args) == 2 and isinstance(inner.args[1], cosh) and inner.args[0].is_Rational and inner.args[0] > 1:
        return log_cosh(inner.args[1].args[0]) + log(inner.args[0]), "log_cosh"  # as SymPy writes logaddexp(u, -u)
    if isinstance(inner, Mul) and len(inner.args) == 2 and inner.args[0] == -1 and isinstance(inner.args[1], expm1):
        return log1mexp(inner.args[1].args[0]), "log1mexp"
    if isinstance(inner, Pow) and isinstance(inner.base, (sigmoid, hypot)) and inner.exp.is_Rational:
        return inner.exp * log(inner.base), "logarithm of a power"
    if not isinstance(inner, Add):
        return None
    if len(inner.args) == 2 and all(isinstance(term, exp) for term in inner.args):
        return logaddexp(*[term.args[0] for term in inner.args]), "logaddexp"
    if 1 in inner.args:
        rest = inner - 1
        return (softplus(rest.args[0]), "softplus") if isinstance(rest, exp) else (log1p(rest), "log1p")
    return None


def _log1p(expr: Any) -> tuple[Any, str] | None:
    (inner,) = expr.args
    if isinstance(inner, exp):
        return softplus(inner.args[0]), "softplus"
    if isinstance(inner, Mul) and len(inner.args) == 2 and inner.args[0] == -1 and isinstance(inner.args[1], exp):
        return log1mexp(inner.args[1].args[0]), "log1mexp"
    return None


RULES: Sequence[tuple[Any, Sequence[Rule]]] = (
    (Add, (_beside_one, _exponentials, _roots, _logarithms, _angles, _squares)),
    (Mul, (by_exponential, hyperbolic, magnitudes)),
    (Pow, (_pow,)),
    (log, (_log,)),
    (log1p, (_log1p,)),
)
