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

from symgrad.algebra.effort import Effort
from symgrad.algebra.evaluating import expand_function
from symgrad.algebra.field_extension import Frac, Generator
from symgrad.algebra.polynomials import Monomial, key, monomial_power, whole
from symgrad.algebra.signs import NotRegular, Signs, conjugate_root, make_real

REGULAR = ("atan", "erf", "Si", "Shi", "fresnels", "fresnelc")  # of a real argument
REGULAR_BEYOND_0 = ("gamma", "loggamma", "polygamma", "LambertW")

RULES: dict[Any, Callable[..., Frac]] = {}  # from the Normal, an expression and its arguments' fractions to a fraction; see `functions`


class NoNormalForm(Exception):
    """An expression with a part that has no normal form."""


class Normal(Signs):
    """The normal forms of several expressions over the same generators; each function has a rule in `RULES`."""

    def __init__(self, effort: Effort, intervals: dict[Any, tuple[Any, Any]], split: bool, facts: Sequence[tuple[Any, int]] = ()):
        super().__init__(effort, intervals, split)
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
        real = bool(e.is_extended_real) or name in REGULAR and all(map(self.is_real, arguments))
        g, sign = self._applied(name, Generator(name, e, real, positive or bool(e.is_extended_positive), arguments=tuple(arguments)), parity)
        return self.term(g, 1, sign)

    def _applied(self, name: str, made: Generator, parity: int = 0) -> tuple[int, int]:
        """A new generator, or that of the same function of the same arguments, or of the opposite one with the `parity` as its sign."""
        for g in self.applied.setdefault(name, []):
            others = self.generators[g].arguments
            if len(others) == len(made.arguments) and all(map(self.same, made.arguments, others)):
                return g, 1
            if parity and self.is_zero(self.sum([made.arguments[0], others[0]])):
                return g, parity
        self.applied[name].append(self.generator(("applied", name, len(self.applied[name])), made))
        return self.applied[name][-1], 1

    def same(self, f: Frac, g: Frac) -> bool:
        """Whether two fractions are literally the same."""
        return self.is_zero(self.difference(f, g))

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
        powers = [(p, sign * n) for k, sign in ((size.numerator, 1), (size.denominator, -1)) for p, n in sympy.factorint(k, limit=10**4).items()]
        terms = [self.product([self.number(int(n)), self._log_of_generator(self.prime(int(p)))]) for p, n in powers if p != 1]
        terms += [self.product([self.number(e), self._log_of_generator(g)]) for g, e in gens]
        terms += [self.term(self._log_of_poly(q), 1, n) for q, n in polys]
        if self.same(rest, self.number(1)):
            [(m, c)] = unit.num.items()
            quarters = (1 if c > 0 else -1) if m else (0 if c > 0 else 2)
            return self.sum([*terms, self.product([self.number(Fraction(quarters, 2)), self.imaginary(), self.term(self.pi)])])
        if self.regular and known != 1:
            raise NotRegular
        rest = self.product([unit, rest])
        g, _ = self._applied("log", Generator("log", sympy.log(self.to_sympy(rest)), known == 1, False, rest, (rest,)))
        return self.sum([*terms, self.term(g)])

    def _log_of_generator(self, g: int) -> Frac:
        made = self.generators[g]
        if made.kind == "exp":
            return made.arguments[0]
        if made.kind == "root":
            return self.term(self._log_of_poly(key(made.base.num)))
        prime = made.kind == "prime"
        return self.term(self.generator(("log", g), Generator("log", sympy.log(made.expression), True, prime, {((g, 1),): 1})))

    def _log_of_poly(self, q: Any) -> int:
        return self.generator(("log", q), Generator("log", sympy.log(self.expression(dict(q))), True, False, dict(q)))

    def to_sympy(self, f: Frac) -> Any:
        """A fraction as a SymPy expression."""
        return self.expression(f.num) / sympy.Mul(*(self.expression(dict(d)) ** n for d, n in f.den.items()))

    def _root(self, f: Frac, positive: bool, q: Any) -> Frac:
        """The power q of f: a power of a generator whose integer powers are powers of f."""
        made = Generator("root", self.to_sympy(f), positive, positive, f, (f,))
        if not f.den and positive:
            return self.term(self.generator(("root", key(f.num)), made), q)
        if self.regular and not positive:
            raise NotRegular
        return self.term(self._applied("root", made)[0], q)

    def rational_power(self, f: Frac, q: Fraction, known: int | None = None) -> Frac:
        """The principal power with a rational exponent."""
        if q.denominator == 1:
            return self.power(f, int(q))
        if not f.num:
            if q < 0:
                raise ZeroDivisionError
            return f
        return self.exp(self.product([self.number(q), self.log(f, known)]))

    def _power(self, e: Any) -> Frac:
        base, exponent = e.args
        known = 1 if base.is_positive else None
        if isinstance(exponent, sympy.Rational):
            return self.rational_power(self.of(base), Fraction(int(exponent.p), int(exponent.q)), known)
        if base is sympy.E:
            return self.exp(self.of(exponent))
        if not self.of(base).num:
            raise NoNormalForm("0 to a power")
        return self.exp(self.product([self.of(exponent), self.log(self.of(base), known)]))

    def exp(self, t: Frac) -> Frac:
        """The exponential: a product over the terms of its argument."""
        return self.product([self._exp_term(m, t.den, c) for m, c in t.num.items()])

    def _exp_term(self, m: Monomial, den: dict[Any, int], c: Any) -> Frac:
        made, count = self.generators[m[-1][0]] if m else None, int(c) if Fraction(c).denominator == 1 else None
        if made and not den and len(m) == 1 == m[0][1]:
            if made.kind == "log" and not isinstance(made.base, Frac) and len(made.base) == 1:
                [base] = made.base
                return self.reduce_exponents({monomial_power(base, whole(Fraction(c))): 1})
            if made.kind == "log":
                is_frac = isinstance(made.base, Frac)
                return self._root(made.base if is_frac else Frac(made.base), made.real or not is_frac, Fraction(c))
            if made.kind == "LambertW" and count is not None:
                return self.power(self.product([made.arguments[0], self.term(m[0][0], -1)]), count)
        if made and not den and len(m) == 2 and m[0] == (self.i, 1) and m[1][1] == 1:
            if m[1][0] == self.pi:
                return self.term(self.turn, Fraction(c))
            if made.kind in ("atan", "asin") and count is not None:
                return self.power(self._exp_of_angle(made), count)
        exponents = dict(m)
        if not den and exponents.pop(self.i, 0) == 1 == exponents.pop(self.pi, 0) and all(self.integral(g, e) for g, e in exponents.items()):
            return self.term(self.generator(("sign", m), Generator("sign", sympy.exp(self.monomial_expression(m)), False)), c)
        argument = Frac({m: 1}, den)
        real, expression = self.real(argument), self.to_sympy(argument)
        made = Generator("exp", sympy.exp(expression), real, real, expression, (argument,))
        return self.term(self.generator(("exp", m, tuple(sorted(den.items()))), made), c)

    def integral(self, g: int, e: Any) -> bool:
        """Whether a generator to a power is an integer."""
        return (g in self.whole_valued or bool(self.generators[g].expression.is_integer)) and isinstance(e, int) and e > 0

    def _exp_of_angle(self, made: Generator) -> Frac:
        """exp(i atan(u)) = sqrt(1 + i u) / sqrt(1 - i u), (1 + i u) / sqrt(1 + u²) for real u; exp(i asin(u)) = i u + sqrt(1 - u²)."""
        u = made.arguments[0]
        square, turned = self.product([u, u]), self.product([self.imaginary(), u])
        if made.kind == "asin":
            return self.sum([turned, self.rational_power(self.difference(self.number(1), square), Fraction(1, 2))])
        above, below = self.sum([self.number(1), turned]), self.difference(self.number(1), turned)
        if self.real(u):
            return self.product([above, self.rational_power(self.sum([self.number(1), square]), Fraction(-1, 2), 1)])
        return self.product([self.rational_power(above, Fraction(1, 2)), self.rational_power(below, Fraction(-1, 2))])

    def conjugate(self, f: Frac) -> Frac:
        """The complex conjugate."""
        return self.product([self._conjugate_poly(f.num), *(self.power(self._conjugate_poly(dict(d)), -n) for d, n in f.den.items())])

    def _conjugate_poly(self, p: Any) -> Frac:
        return self.sum([self.product([self.number(c), *(self._conjugate_generator(g, e) for g, e in m)]) for m, c in p.items()])

    def _conjugate_generator(self, g: int, e: Any) -> Frac:
        made = self.generators[g]
        if made.real:
            return self.term(g, e)
        if made.kind in ("i", "turn", "sign"):
            return self.product([self.number(-1 if made.kind == "i" else 1), self.term(g, e if made.kind == "i" else -e)])
        if made.kind == "exp":
            return self.exp(self.product([self.number(e), self.conjugate(made.arguments[0])]))
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
        factors = [self.number(abs(number))]
        for p, n in [(Frac(dict(q)), n) for q, n in powers.items()] + [(self.term(g), e) for g, e in shared]:
            square = self.product([self.number(self.required_sign(p)), p]) if self.real(p) else self.product([p, self.conjugate(p)])
            factors.append(self.rational_power(square, Fraction(n) if self.real(p) else Fraction(n) / 2, 1))
        return self.product(factors)
