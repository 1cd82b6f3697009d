"""Normal forms: SymPy expressions as fractions of polynomials in few generators, so that many identities become a literal 0.

Trigonometric and hyperbolic functions are exponentials, and exponentials of sums are products; powers are exponentials of logarithms, and
logarithms of positive products are sums; roots are generators with their relation. Rewritings that need positive arguments are applied
only where the argument is known to be positive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import sympy

from symgrad.algebra.evaluating import expand_function
from symgrad.algebra.factors import conjugate_root, make_real
from symgrad.algebra.polynomials import Monomial, Poly, key, monomial_power, whole
from symgrad.algebra.signs import NotRegular, Signs
from symgrad.algebra.tower import Frac, Generator

REGULAR = ("atan", "erf", "Si", "Shi", "fresnels", "fresnelc")  # of a real argument
REGULAR_BEYOND_0 = ("gamma", "loggamma", "polygamma", "LambertW")

RULES: dict[Any, Callable[..., Frac]] = {}


class NoNormalForm(Exception):
    """An expression with a part that has no normal form."""


def rule(*kinds: Any) -> Callable[[Callable[..., Frac]], Callable[..., Frac]]:
    """Register a rule for the SymPy functions `kinds`: it maps the Normal, the expression and the fractions of its arguments to a fraction."""
    def declare(function: Callable[..., Frac]) -> Callable[..., Frac]:
        for kind in kinds:
            RULES[kind] = function
        return function
    return declare


class Normal(Signs):
    """The normal forms of several expressions over the same generators; each function has a registered `rule`.

    >>> x = sympy.Symbol("x", positive=True)
    >>> forms = Normal(float("inf"), {}, split=False)
    >>> forms.is_zero(forms.of(sympy.sqrt(x**2 + 2 * x + 1) - x - 1))
    True
    """

    def __init__(self, deadline: float, intervals: dict[Any, tuple[Any, Any]], split: bool, facts: Sequence[tuple[Any, int]] = ()):
        super().__init__(deadline, intervals, split)
        self.memo: dict[Any, Frac] = {}
        self.whole_valued: set[int] = set()
        self.applied: dict[str, list[int]] = {}
        for expression, sign in facts:
            number, shared, powers = self.pieces(self.of(expression))
            if number and len(powers) + len(shared) == 1 and 1 in (*powers.values(), *(e for _, e in shared)):
                q = next(iter(powers), None) or key({shared: 1})
                self.signs[q] = sign if number > 0 else -sign

    def of(self, e: Any) -> Frac:
        """The normal form of an expression.

        Raises NoNormalForm, Split if a sign must be known, and ZeroDivisionError if there is no value.
        """
        found = self.memo.get(e)
        if found is None:
            found = self.memo[e] = self._normal_form(e)
        return found

    def _normal_form(self, e: Any) -> Frac:
        if isinstance(e, sympy.Rational):
            return self.number(whole(Fraction(int(e.p), int(e.q))))
        if isinstance(e, sympy.Symbol):
            real = bool(e.is_extended_real)
            return self.term(self.generator(("symbol", e), Generator("symbol", e, real, bool(e.is_extended_positive))))
        if isinstance(e, sympy.Add):
            return self.sum([self.of(x) for x in e.args])
        if isinstance(e, sympy.Mul):
            return self.product([self.of(x) for x in e.args])
        if isinstance(e, sympy.Pow):
            return self._power(e)
        made = RULES.get(type(e)) or RULES.get(e)
        if made is not None:
            return made(self, e, *(self.of(x) if isinstance(x, sympy.Expr) and not isinstance(e, sympy.Piecewise) else x for x in e.args))
        if e in (sympy.nan, sympy.zoo, sympy.oo, -sympy.oo) or isinstance(e, sympy.AccumBounds):
            raise ZeroDivisionError
        if isinstance(e, sympy.NumberSymbol):
            return self.term(self.generator(("symbol", e), Generator("symbol", e, True, True)))
        if isinstance(e, sympy.Function) and e.args:
            simpler = expand_function(e)
            return self.of(simpler) if simpler is not None else self.opaque(type(e).__name__, e, [self.of(x) for x in e.args])
        raise NoNormalForm(str(e))

    def pieces(self, f: Frac) -> tuple[Any, Monomial, dict[Any, int]]:
        """A fraction as number * monomial * powers of irreducible polynomials, which are real if possible."""
        return make_real(self, *super().pieces(f))

    def opaque(self, name: str, e: Any, arguments: Sequence[Frac], parity: int = 0, positive: bool = False) -> Frac:
        """A generator for a function value `e` without known relations, except that it may be odd (`parity` -1) or even (1)."""
        if self.regular and not (name in REGULAR and all(map(self.is_real, arguments)) or name in REGULAR_BEYOND_0 and self.sign(arguments[-1]) == 1):
            raise NotRegular
        for g in self.applied.get(name, ()):
            others = self.generators[g].arguments
            if len(others) == len(arguments):
                if all(self.same(x, y) for x, y in zip(arguments, others)):
                    return self.term(g)
                if parity and self.is_zero(self.sum([arguments[0], others[0]])):
                    return self.term(g, 1, parity)
        real = bool(e.is_extended_real) or name in REGULAR and all(map(self.is_real, arguments))
        made = Generator(name, e, real, positive or bool(e.is_extended_positive), arguments=tuple(arguments))
        g = self.generator((name, len(self.applied.get(name, ()))), made)
        self.applied.setdefault(name, []).append(g)
        return self.term(g)

    def same(self, f: Frac, g: Frac) -> bool:
        """Whether two fractions are literally the same."""
        return self.is_zero(self.sum([f, self.minus(g)]))

    def prime(self, p: int) -> int:
        """A prime number as a generator, so that it can have roots."""
        return self.generator(("prime", p), Generator("prime", sympy.Integer(p), True, True, p))

    def imaginary(self, c: Any = 1) -> Frac:
        """c i."""
        return self.term(self.i, 1, c)

    def _decompose(self, f: Frac) -> tuple[Fraction, list[tuple[Any, Any]], list[tuple[Any, int]], Frac, Frac]:
        """A fraction as a product: size, positive generators, positive polynomials, unit (a sign or a power of i), and rest."""
        number, shared, powers = self.pieces(f)
        gens: list[tuple[Any, Any]] = []
        polys: list[tuple[Any, int]] = []
        unit = self.number(1 if number > 0 else -1)
        rest = self.number(1)
        for g, e in shared:
            sign = self.generator_sign(g)
            if sign == 1:
                gens.append((g, e))
            elif g == self.i:
                unit = self.product([unit, self.term(g, e)])
            elif self.split and self.generators[g].real and sign is None:
                raise self.split_error({((g, 1),): 1})
            else:
                rest = self.product([rest, self.term(g, e)])
        for q, n in powers.items():
            sign = self.poly_sign(q)
            p = dict(q)
            if sign is None and self.split and self.real(Frac(p)):
                raise self.split_error(p)
            if sign is None:
                rest = self.product([rest, self.power(Frac(p), n)])
                continue
            if sign < 0:
                p = {m: -c for m, c in p.items()}
                unit = self.product([unit, self.number((-1) ** n)])
            if self.regular and key(p) in self.weak:
                raise NotRegular
            other = conjugate_root(self, key(p))
            inside = self._decompose(other[0]) if other is not None else None
            if other is None or inside is None or not self.same(self.product(inside[3:]), self.number(1)):
                polys.append((key(p), n))
                continue
            number *= inside[0] ** n
            gens += [(g, e * n) for g, e in inside[1]]
            polys += [(r, k * n) for r, k in inside[2]] + [(other[1], -n)]
        return abs(Fraction(number)), gens, polys, unit, rest

    def log(self, f: Frac, known: int | None = None) -> Frac:
        """The principal logarithm."""
        if not f.num:
            raise ZeroDivisionError
        size, gens, polys, unit, rest = self._decompose(f)
        terms = [self.term(self._log_of_prime(p), 1, n) for p, n in _factors(size)]
        for g, e in gens:
            terms.append(self.product([self.number(e), self._log_of_generator(g)]))
        for q, n in polys:
            terms.append(self.term(self._log_of_poly(q), 1, n))
        quarter = self._quarter(unit)
        if self.same(rest, self.number(1)):
            terms.append(self.product([self.number(Fraction(quarter, 2)), self.imaginary(), self.term(self.pi)]))
        else:
            terms.append(self._opaque_log(self.product([unit, rest]), known))
        return self.sum(terms)

    def _quarter(self, unit: Frac) -> int:
        """The exponent k of a unit iᵏ; its logarithm is i k π/2."""
        [(m, c)] = unit.num.items()
        return (1 if c > 0 else -1) if m else (0 if c > 0 else 2)

    def _log_of_prime(self, p: int) -> int:
        return self.generator(("log prime", p), Generator("log", sympy.log(p), True, True, {((self.prime(p), 1),): 1}))

    def _log_of_generator(self, g: int) -> Frac:
        made = self.generators[g]
        if made.kind == "exp":
            return made.arguments[0]
        if made.kind == "prime":
            return self.term(self._log_of_prime(made.base))
        if made.kind == "root":
            return self.term(self._log_of_poly(key(made.base.num)))
        return self.term(self.generator(("log", g), Generator("log", sympy.log(made.expression), True, False, {((g, 1),): 1})))

    def _log_of_poly(self, q: Any) -> int:
        return self.generator(("log", q), Generator("log", sympy.log(self.expression(dict(q))), True, False, dict(q)))

    def _opaque_log(self, f: Frac, known: int | None) -> Frac:
        if self.regular and known != 1:
            raise NotRegular
        for g in self.applied.get("log", ()):
            if self.same(f, self.generators[g].arguments[0]):
                return self.term(g)
        made = Generator("log", sympy.log(self.to_sympy(f)), known == 1, False, f, (f,))
        g = self.generator(("opaque log", len(self.applied.get("log", ()))), made)
        self.applied.setdefault("log", []).append(g)
        return self.term(g)

    def to_sympy(self, f: Frac) -> Any:
        """A fraction as a SymPy expression."""
        return self.expression(f.num) / sympy.Mul(*(self.expression(dict(d)) ** n for d, n in f.den.items()))

    def _root(self, f: Frac, positive: bool) -> int:
        """The generator for the roots of f: its integer powers are powers of f."""
        if not f.den and positive:
            name: Any = ("root", key(f.num))
            return self.generator(name, Generator("root", self.to_sympy(f), True, True, f))
        if self.regular and not positive:
            raise NotRegular
        for g in self.applied.get("root", ()):
            if self.same(f, self.generators[g].base):
                return g
        g = self.generator(("opaque root", len(self.applied.get("root", ()))), Generator("root", self.to_sympy(f), positive, positive, f))
        self.applied.setdefault("root", []).append(g)
        return g

    def rational_power(self, f: Frac, q: Fraction, known: int | None = None) -> Frac:
        """The principal power with a rational exponent."""
        if q.denominator == 1:
            return self.power(f, int(q))
        if not f.num:
            if q < 0:
                raise ZeroDivisionError
            return f
        size, gens, polys, unit, rest = self._decompose(f)
        factors = [self.term(self.prime(p), n * q) for p, n in _factors(size)]
        factors += [self.term(g, whole(Fraction(e * q))) for g, e in gens]
        factors += [self.term(self._root(Frac(dict(p)), True), n * q) for p, n in polys]
        if self.same(rest, self.number(1)):
            factors.append(self.term(self.turn, Fraction(self._quarter(unit), 2) * q))
        else:
            factors.append(self.term(self._root(self.product([unit, rest]), known == 1), q))
        return self.product(factors)

    def _power(self, e: Any) -> Frac:
        base, exponent = e.args
        if isinstance(exponent, sympy.Rational):
            known = 1 if base.is_positive else None
            return self.rational_power(self.of(base), Fraction(int(exponent.p), int(exponent.q)), known)
        if base is sympy.E:
            return self.exp(self.of(exponent))
        if not self.of(base).num:
            raise NoNormalForm("0 to a power")
        return self.exp(self.product([self.of(exponent), self.log(self.of(base), 1 if base.is_positive else None)]))

    def exp(self, t: Frac) -> Frac:
        """The exponential: a product over the terms of its argument."""
        factors = []
        den = tuple(sorted(t.den.items()))
        for m, c in t.num.items():
            if not den:
                factors.append(self._exp_term(m, c))
                continue
            argument = Frac({m: 1}, t.den)
            real, expression = self.real(argument), self.to_sympy(argument)
            made = Generator("exp", sympy.exp(expression), real, real, expression, (argument,))
            factors.append(self.term(self.generator(("exp", m, den), made), c))
        return self.product(factors)

    def _exp_term(self, m: Monomial, c: Any) -> Frac:
        gens = [(self.generators[g], e) for g, e in m]
        if len(m) == 1 and m[0][1] == 1:
            only = gens[0][0]
            if only.kind == "log":
                return self._power_of_base(only, Fraction(c))
            if only.kind == "LambertW" and Fraction(c).denominator == 1:
                return self.power(self.product([only.arguments[0], self.term(m[0][0], -1)]), int(c))
        if len(m) == 2 and m[0] == (self.i, 1) and m[1][1] == 1:
            made = gens[1][0]
            if m[1][0] == self.pi:
                return self.term(self.turn, Fraction(c))
            if made.kind in ("atan", "asin") and Fraction(c).denominator == 1:
                return self.power(self._exp_of_angle(made), int(c))
        exponents = dict(m)
        if exponents.pop(self.i, 0) == 1 == exponents.pop(self.pi, 0) and all(self.integral(g, e) for g, e in exponents.items()):
            return self.term(self.generator(("sign", m), Generator("sign", sympy.exp(self.monomial_expression(m)), False)), c)
        argument, expression = Frac({m: 1}), self.monomial_expression(m)
        real = self.real(argument)
        return self.term(self.generator(("exp", m, ()), Generator("exp", sympy.exp(expression), real, real, expression, (argument,))), c)

    def integral(self, g: int, e: Any) -> bool:
        """Whether a generator to a power is an integer."""
        return (g in self.whole_valued or bool(self.generators[g].expression.is_integer)) and isinstance(e, int) and e > 0

    def _power_of_base(self, made: Generator, q: Fraction) -> Frac:
        """exp(q log(u))."""
        if isinstance(made.base, Frac):
            return self.term(self._root(made.base, made.real), q)
        if len(made.base) == 1:
            [(m, _)] = made.base.items()
            return self.reduce_exponents({monomial_power(m, whole(q)): 1})
        return self.term(self._root(Frac(made.base), True), q)

    def _exp_of_angle(self, made: Generator) -> Frac:
        """exp(i atan(u)) = sqrt(1 + i u) / sqrt(1 - i u), (1 + i u) / sqrt(1 + u²) for real u; exp(i asin(u)) = i u + sqrt(1 - u²)."""
        u = made.arguments[0]
        square, turned = self.product([u, u]), self.product([self.imaginary(), u])
        if made.kind == "asin":
            return self.sum([turned, self.rational_power(self.sum([self.number(1), self.minus(square)]), Fraction(1, 2))])
        above, below = self.sum([self.number(1), turned]), self.sum([self.number(1), self.minus(turned)])
        if self.real(u):
            return self.product([above, self.rational_power(self.sum([self.number(1), square]), Fraction(-1, 2), 1)])
        return self.product([self.rational_power(above, Fraction(1, 2)), self.rational_power(below, Fraction(-1, 2))])

    def conjugate(self, f: Frac) -> Frac:
        """The complex conjugate."""
        parts = [self._conjugate_poly(f.num)] + [self.power(self._conjugate_poly(dict(d)), -n) for d, n in f.den.items()]
        return self.product(parts)

    def _conjugate_poly(self, p: Any) -> Frac:
        return self.sum([self.product([self.number(c), *(self._conjugate_generator(g, e) for g, e in m)]) for m, c in p.items()])

    def _conjugate_generator(self, g: int, e: Any) -> Frac:
        made = self.generators[g]
        if made.real:
            return self.term(g, e)
        if made.kind in ("i", "turn", "sign"):
            return self.product([self.number(-1 if made.kind == "i" else 1), self.term(g, e if made.kind == "i" else -e)])
        if made.kind == "exp":
            other = self.exp(self.product([self.number(e), self.conjugate(made.arguments[0])]))
            return other
        if made.kind == "symbol" and isinstance(e, int):
            mirrored = sympy.conjugate(made.expression)
            if mirrored == -made.expression:
                return self.term(g, e, (-1) ** e)
            kind = Generator("conjugate", mirrored, False, arguments=(self.term(g),))
            return self.term(self.generator(("conjugate", g), kind), e)
        if made.kind == "conjugate" and isinstance(e, int):
            return self.power(made.arguments[0], e)
        raise NoNormalForm(f"conjugate of {made.expression}")

    def is_real(self, f: Frac) -> bool:
        """Whether a fraction equals its conjugate."""
        try:
            return self.real(f) or self.same(f, self.conjugate(f))
        except NoNormalForm:
            return False

    def modulus(self, f: Frac) -> Frac:
        """The absolute value of a fraction that is not real: the product of those of its factors, each the root of |u|² = u ū."""
        if not f.num:
            return f
        number, shared, powers = self.pieces(f)
        pieces: list[tuple[Poly, Any]] = [(dict(q), n) for q, n in powers.items()]
        pieces += [({((g, 1),): 1}, e) for g, e in shared]
        factors = [self.number(abs(Fraction(number)))]
        for p, n in pieces:
            if self.real(Frac(p)):
                factors.append(self.rational_power(self.product([self.number(self.required_sign(Frac(p))), Frac(p)]), Fraction(n), 1))
            else:
                factors.append(self.rational_power(self.product([Frac(p), self.conjugate(Frac(p))]), Fraction(n) / 2, 1))
        return self.product(factors)


def _factors(size: Fraction) -> list[tuple[int, int]]:
    """A positive rational number as powers of primes; large numbers are factored only partly."""
    above, below = (sympy.factorint(k, limit=10**4) for k in (size.numerator, size.denominator))
    return [(int(p), int(n)) for p, n in above.items() if p != 1] + [(int(p), -int(n)) for p, n in below.items() if p != 1]
