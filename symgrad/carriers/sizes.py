"""Estimates of the size of what SymPy would write out, and the errors for what is larger than the limits.

SymPy computes a power, a factorial or a harmonic number of numbers at once, with all of its digits, whatever their count. These estimates are
made of the operands, before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import sympy
from sympy.ntheory.factor_ import perfect_power

from symgrad.system.limits import ARGUMENT, BITS, DEGREE, within

FEW = 64  # an exponent up to which only the base itself is examined, and not the numbers inside it
TRIAL = 2**15  # the primes up to which SymPy divides the base of a root
LARGEST = 1e300  # a number of bits, in place of larger ones
POWER = "a power in the formula has {} bits"


def bits(e: Any) -> int:
    """The bits of a rational number, or of the rational factor of a product."""
    number = e.args[0] if e.is_Mul else e
    return max(int(number.p).bit_length(), int(number.q).bit_length()) if number.is_Rational else 0


def check_number(e: Any) -> Any:
    """The expression. Raises TooLarge if it is a number of too many digits, or has such a factor."""
    within(bits(e), BITS, "the formula has a number of {} bits")
    return e


def growing(function: Callable[[Any], Any], even: bool = False) -> Callable[[Any], Any]:
    """A function that grows as e**x, and with `even` as e**|x|.

    Raises TooLarge for a number x so large that SymPy would compute too many digits of the integer part, as for floor(exp(10**9)).
    """
    def call(x: Any) -> Any:
        if isinstance(x, sympy.Expr) and x.is_number and (even or x.is_extended_positive):
            within(_as_float(sympy.Abs(x) / math.log(2)), BITS, "an exponential in the formula has {} bits")
        return function(x)

    return call


def _as_float(x: Any) -> float:
    """A float near a number; LARGEST for larger ones, 0 for what is not a number."""
    found = sympy.N(x, 5)
    return float(found) if found.is_Float and found < LARGEST else LARGEST if found.is_Float else 0.0


def power(base: Any, exponent: Any) -> Any:
    """base ** exponent. Raises TooLarge for a power of numbers that has too many digits.

    >>> power(sympy.Integer(2), sympy.Rational(1, 2))
    sqrt(2)
    >>> power(sympy.Integer(2), sympy.Integer(10)**9)
    Traceback (most recent call last):
        ...
    symgrad.system.limits.TooLarge: a power in the formula has 2,000,000,000 bits, more than 14,000
    """
    if isinstance(exponent, sympy.Rational) and isinstance(base, sympy.Basic):
        size = abs(exponent.p) // exponent.q
        numbers = base.atoms(sympy.Rational) if size > FEW and not base.free_symbols else {base}
        most = max(map(bits, numbers), default=0)
        within(size * most if most > 1 else 0, BITS, POWER)
        if size > FEW and base.is_number and not base.is_Rational:
            within(size * abs(math.log2(_as_float(sympy.Abs(base)) or 1.0)), BITS, POWER)
        if exponent.q > 2 and (number := base.args[0] if base.is_Mul else base).is_Rational:
            for n in {abs(number.p), number.q} - {0, 1}:
                within(_radical_bits(int(n), int(exponent.p), int(exponent.q)), BITS, POWER)
    return base**exponent


def remainder(a: Any, b: Any) -> Any:
    """The remainder of a / b. Raises TooLarge for an exponent of a large numerator or denominator, of whose size SymPy makes polynomials."""
    exponents = [e.exp for x in (a, b) if isinstance(x, sympy.Basic) for e in x.atoms(sympy.Pow) if e.exp.is_Rational]
    within(max((max(abs(x.p), x.q) for x in exponents), default=0), DEGREE, "an exponent in a remainder is a fraction of {}")
    return sympy.Mod(a, b)


def _radical_bits(n: int, p: int, q: int) -> float:
    """The bits of the integer under the root in which SymPy writes n**(p/q), where it collects the primes to a common exponent."""
    found = perfect_power(n)
    factors = {int(found[0]): int(found[1])} if found else sympy.Integer(n).factors(limit=TRIAL)
    rests = {k: e * abs(p) % q for k, e in factors.items()}
    collected = {k: e for k, e in rests.items() if e and math.gcd(e, q) == 1}
    common = math.gcd(*collected.values())
    return sum(e // common * math.log2(k) for k, e in collected.items()) if common else 0.0


def of_moderate_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A special function of expressions that raises TooLarge for large numbers, as whose factorials and sums SymPy may write it."""
    def call(*xs: Any) -> Any:
        numbers = [x for x in xs if isinstance(x, sympy.Rational)]
        if all(x.q <= ARGUMENT for x in numbers):  # of other fractions, such as most floats, SymPy writes nothing out
            for x in numbers:
                within(abs(x.p) // x.q, ARGUMENT, "an argument of a special function is {}")
        return function(*xs)

    return call


def tree_size(e: Any, sizes: dict[Any, int]) -> int:
    """The number of nodes of an expression as a tree, in time linear in the number of its distinct nodes; `sizes` has those that are known.

    >>> x = sympy.Symbol("x")
    >>> tree_size((x + 1)**2 + sympy.sin(x + 1), {})
    10
    """
    stack = [e]
    while stack:
        top = stack[-1]
        missing = [] if top in sizes else [part for part in top.args if part not in sizes]
        stack.extend(missing)
        if not missing:
            sizes[top] = 1 + sum([sizes[part] for part in top.args])
            stack.pop()
    return sizes[e]


def expanded_terms(e: Any) -> float:
    """An upper bound of the terms of an expression after SymPy's `expand`, which multiplies all products and powers of sums, also inside functions.

    The terms of a product are at most the product of those of its factors, and at most the monomials of its degree in its parts.

    >>> x, y = sympy.symbols("x y")
    >>> expanded_terms((x + y)**500), expanded_terms((x + 1)**2 * (x + 2)**3), expanded_terms(sympy.sin((x + 1)**4))
    (501.0, 6.0, 5.0)
    """
    terms: dict[Any, float] = {}
    degrees: dict[Any, float] = {}
    parts: dict[Any, frozenset[Any]] = {}
    most = 1.0
    for part in sympy.postorder_traversal(e):
        if part in terms:
            continue
        n = part.exp if part.is_Pow else None
        if part.is_Add or part.is_Mul or n is not None and n.is_Integer and n.is_positive and part.base.is_Add:
            inner = part.args if n is None else (part.base,)
            parts[part] = frozenset().union(*[parts[a] for a in inner])
            if part.is_Add:
                degrees[part], count = max(degrees[a] for a in inner), sum(terms[a] for a in inner)
            elif n is None:
                degrees[part], count = sum(degrees[a] for a in inner), math.prod(terms[a] for a in inner)
            else:
                degrees[part], count = degrees[inner[0]] * int(n), _choose(int(n), terms[inner[0]] - 1)
            terms[part] = min(count, _choose(degrees[part], len(parts[part])))
        else:
            terms[part], degrees[part] = 1.0, 0.0 if part.is_number else 1.0
            parts[part] = frozenset() if part.is_number else frozenset((part,))
        most = max(most, terms[part])
    return most


def _choose(n: float, k: float) -> float:
    """The binomial coefficient of n + k over k, infinite where it is not a float."""
    size = math.lgamma(n + k + 1) - math.lgamma(n + 1) - math.lgamma(k + 1)
    return float(round(math.exp(size))) if size < 700 else math.inf
