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
from symgrad.algebra.stable_products import by_exponential, hyperbolic, magnitudes, of_pairs

ONE = sympy.S.One


class Suggestion(NamedTuple):
    """A subexpression `found` that keeps more digits if computed as `better`; `name` is the name of the form."""

    found: Any
    better: Any
    name: str


Rule = Callable[[Any], tuple[Any, str] | None]


def stable_form(expr: Any) -> Any:
    """The expression in stable forms: the same real function, with `expm1`, `log1p`, `hypot` and the functions of `stable_functions`."""
    return _Rewriting().of(sympy.sympify(expr))


def stable_form_to_differentiate(expr: Any) -> Any:
    """Like `stable_form`, for a form that will be differentiated: differences of squares and of angles are not rewritten.

    (a - b) (a + b) keeps its digits where a is close to b, but its derivative (a - b) + (a + b) = 2 a by a loses digits where a is small.
    """
    return _Rewriting([(kind, [rule for rule in rules if rule not in (_squares, ANGLES)]) for kind, rules in RULES]).of(sympy.sympify(expr))


def suggestions(expr: Any) -> list[Suggestion]:
    """The subexpressions that lose digits in floats, with their stable forms."""
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


# Sums: the rules for f - g


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


# The forms of f - 1 and f + 1 without cancellation, for f(u) and for f(u)², with their names.
BESIDE_ONE: dict[tuple[Any, int, Any], tuple[Callable[[Any], Any], str]] = {
    (exp, 1, 1): (expm1, "expm1"), (cos, 1, 1): (lambda u: -2 * sin(u / 2) ** 2, "half-angle"),
    (cosh, 1, 1): (lambda u: 2 * sinh(u / 2) ** 2, "half-angle"), (sigmoid, 1, 1): (lambda u: -sigmoid(-u), "sigmoid"),
    (tanh, 1, 1): (lambda u: -2 * sigmoid(-2 * u), "sigmoid"), (sech_squared, 1, 1): (lambda u: -tanh(u) ** 2, "square of tanh"),
    (tanh, 2, 1): (lambda u: -sech_squared(u), "sech_squared"), (cos, 2, 1): (lambda u: -sin(u) ** 2, "square of sin"),
    (sin, 2, 1): (lambda u: -cos(u) ** 2, "square of cos"), (cosh, 2, 1): (lambda u: sinh(u) ** 2, "square of sinh"),
    (tanh, 1, -1): (lambda u: 2 * sigmoid(2 * u), "sigmoid"), (cos, 1, -1): (lambda u: 2 * cos(u / 2) ** 2, "half-angle"),
    (sinh, 2, -1): (lambda u: cosh(u) ** 2, "square of cosh"),
}


def _beside_one(f: Any, g: Any) -> tuple[Any, str] | None:
    if g not in (1, -1):
        return None
    base, power = (f.base, f.exp) if isinstance(f, Pow) else (f, ONE)
    if (type(base), power, g) in BESIDE_ONE:
        form, name = BESIDE_ONE[type(base), power, g]
        return form(base.args[0]), name
    if g == -1:
        return None
    if isinstance(f, hypot) and 1 in f.args:
        u = f.args[1] if f.args[0] == 1 else f.args[0]
        return u**2 / (f + 1), "difference of roots"
    if not isinstance(f, Pow) or power.is_Integer:
        return None
    if power == sympy.S.Half and isinstance(base, Add) and 1 in base.args:
        return (base - 1) / (f + 1), "difference of roots"
    if isinstance(base, Add) and 1 in base.args:
        return expm1(power * log1p(base - 1)), "expm1"
    return (expm1(power * log(base)), "expm1") if base.is_positive and not power.is_Number else None


def _sigmoids(f: Any, g: Any) -> tuple[Any, str] | None:
    if not isinstance(f, sigmoid) or g not in (sympy.S.Half, sigmoid(-f.args[0])):
        return None
    return tanh(f.args[0] / 2) * (sympy.S.Half if g == sympy.S.Half else ONE), "tanh"


def _exponentials(f: Any, g: Any) -> tuple[Any, str] | None:
    """exp(u) ± exp(-u) as hyperbolic functions."""
    if not isinstance(f, exp) or f.args[0].could_extract_minus_sign():
        return None
    forms = {exp(-f.args[0]): (2 * sinh(f.args[0]), "sinh"), -exp(-f.args[0]): (2 * cosh(f.args[0]), "cosh")}
    return forms.get(g)


def _roots(f: Any, root: Any) -> tuple[Any, str] | None:
    """√p - √q as (p - q) / (√p + √q), where p - q is a product."""
    p = f.base if isinstance(f, Pow) and f.exp == sympy.S.Half else f.args[0] ** 2 + f.args[1] ** 2 if isinstance(f, hypot) else None
    if p is None or not root.is_nonnegative:
        return None
    difference = sympy.expand(p - root**2)
    if not isinstance(difference, Add) and difference != 0 and (root.is_Number or root.has(*f.free_symbols)):
        return difference / (f + root), "difference of roots"
    return None


def _logarithms(f: Any, g: Any) -> tuple[Any, str] | None:
    """log(a) - log(b) as log1p((a - b) / b), where a - b is a product."""
    if not isinstance(f, (log, log1p)) or not isinstance(g, (log, log1p)):
        return None
    a, b = (x.args[0] + (1 if isinstance(x, log1p) else 0) for x in (f, g))
    difference = sympy.expand(a - b)
    if a.is_positive and b.is_positive and not isinstance(difference, Add) and difference != 0 and difference.is_positive is not False:
        return log1p(difference / b), "difference of logarithms"
    return None


def _angles(f: Any, g: Any) -> tuple[Any, str] | None:
    """atan(a) - atan(b) as atan2(a - b, 1 + a b), the angle between the vectors (1, a) and (1, b)."""
    if not isinstance(f, atan) or not isinstance(g, atan) or f.args[0].is_number or g.args[0].is_number:
        return None
    a, b = f.args[0], g.args[0]
    return atan2(a - b, 1 + a * b), "difference of angles"


def _squares(expr: Any) -> tuple[Any, str] | None:
    """a² - b² as (a - b) (a + b)."""
    if len(expr.args) != 2:
        return None
    first, second = (expr.args if expr.args[1].could_extract_minus_sign() else expr.args[::-1])
    a, b = _square_base(first), _square_base(-second)
    if a is None or b is None or a.is_Number and b.is_Number:
        return None
    return Mul(a - b, a + b, evaluate=False) if isinstance(a - b, Add) else (a - b) * (a + b), "difference of squares"


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
    return hyperbolic(expr) if isinstance(base, (cosh, sech)) and power.is_Integer else None


def _log(expr: Any) -> tuple[Any, str] | None:
    (inner,) = expr.args
    c, rest = inner.as_coeff_Mul()
    if isinstance(inner, sigmoid):
        return -softplus(-inner.args[0]), "softplus"
    if isinstance(rest, cosh) and c >= 1:
        return log_cosh(rest.args[0]) + log(c), "log_cosh"  # SymPy writes logaddexp(u, -u) as log(2 cosh(u))
    if isinstance(rest, expm1) and c == -1:
        return log1mexp(rest.args[0]), "log1mexp"
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
    c, rest = expr.args[0].as_coeff_Mul()
    if not isinstance(rest, exp) or c not in (1, -1):
        return None
    return (softplus(rest.args[0]), "softplus") if c == 1 else (log1mexp(rest.args[0]), "log1mexp")


ANGLES = of_pairs(_angles, atan)
RULES: Sequence[tuple[Any, Sequence[Rule]]] = (
    (Add, (of_pairs(_beside_one, Pow, hypot, *(kind for kind, _, _ in BESIDE_ONE), partners=lambda f: (ONE, -ONE)),
           of_pairs(_sigmoids, sigmoid, partners=lambda f: (sympy.S.Half, sigmoid(-f.args[0]))),
           of_pairs(_exponentials, exp, partners=lambda f: (exp(-f.args[0]), -exp(-f.args[0]))),
           of_pairs(_roots, Pow, hypot), of_pairs(_logarithms, log, log1p), ANGLES, _squares)),
    (Mul, (by_exponential, hyperbolic, magnitudes)),
    (Pow, (_pow,)),
    (log, (_log,)),
    (log1p, (_log1p,)),
)
