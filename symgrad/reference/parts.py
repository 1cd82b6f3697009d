"""Real and imaginary parts of expressions, without expansion: products stay factored, and common subexpressions stay common."""

from __future__ import annotations

from typing import Any

import sympy
from sympy.core.relational import Relational

__all__ = ["real_imaginary_parts"]

Pair = tuple[Any, Any]
ZERO, ONE = sympy.S.Zero, sympy.S.One
A, B = sympy.symbols("a b", real=True, cls=sympy.Dummy)


def real_imaginary_parts(e: Any, known: dict[Any, Pair] | None = None) -> Pair:
    """The real and the imaginary part of an expression in real symbols. `known` is a cache of the parts of subexpressions.

    Raises TypeError for a function without a known formula for its parts.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> real_imaginary_parts((x + sympy.I * y) * sympy.exp(sympy.I * x))
    (x*cos(x) - y*sin(x), x*sin(x) + y*cos(x))
    """
    known = {} if known is None else known
    if e not in known:
        known[e] = (e, ZERO) if e.is_extended_real or isinstance(e, sympy.Symbol) else _parts(e, known)
    return known[e]


def _parts(e: Any, known: dict[Any, Pair]) -> Pair:
    if e == sympy.I:
        return ZERO, ONE
    if isinstance(e, sympy.Piecewise):
        branches = [(real_imaginary_parts(branch, known), _real(condition, known)) for branch, condition in e.args]
        return tuple(sympy.Piecewise(*((pair[i], c) for pair, c in branches)) for i in (0, 1))
    pairs = [real_imaginary_parts(x, known) for x in e.args]
    if e.is_Add:
        return sympy.Add(*(a for a, _ in pairs)), sympy.Add(*(b for _, b in pairs))
    if e.is_Mul:
        out: Pair = (ONE, ZERO)
        for pair in pairs:
            out = _product(out, pair)
        return out
    if e.is_Pow:
        return _power(*pairs)
    a, b = pairs[0]
    if isinstance(e, (sympy.re, sympy.im, sympy.Abs, sympy.arg)):
        real = {sympy.re: lambda: a, sympy.im: lambda: b, sympy.Abs: lambda: _modulus(a, b), sympy.arg: lambda: sympy.atan2(b, a)}
        return real[e.func](), ZERO
    if isinstance(e, sympy.conjugate):
        return a, -b
    if isinstance(e, sympy.sign):
        return a / _modulus(a, b), b / _modulus(a, b)
    if isinstance(e, sympy.exp):
        return sympy.exp(a) * sympy.cos(b), sympy.exp(a) * sympy.sin(b)
    if isinstance(e, sympy.log):
        return sympy.log(_modulus(a, b)), sympy.atan2(b, a)
    if len(pairs) == 1:
        general = e.func(A + sympy.I * B)
        for form in (general.as_real_imag(), general.rewrite(sympy.log)):
            if isinstance(form, tuple) and not any(part.has(sympy.I, sympy.re, sympy.im) for part in form):
                return form[0].xreplace({A: a, B: b}), form[1].xreplace({A: a, B: b})
            if isinstance(form, sympy.Expr) and not form.has(e.func):
                return real_imaginary_parts(form.xreplace({A: a, B: b}), known)
    raise TypeError(f"the real part of {e.func} is not known")


def _product(p: Pair, q: Pair) -> Pair:
    (a, b), (c, d) = p, q
    return a * c - b * d, a * d + b * c


def _modulus(a: Any, b: Any) -> Any:
    return sympy.Abs(a) if b == 0 else sympy.sqrt(a**2 + b**2)


def _power(base: Pair, exponent: Pair) -> Pair:
    (a, b), (p, q) = base, exponent
    if p.is_Integer and q == 0:
        out, square, n = (ONE, ZERO), base, abs(int(p))
        while n:
            out, square, n = _product(out, square) if n % 2 else out, _product(square, square) if n > 1 else square, n // 2
        size = out[0] ** 2 + out[1] ** 2
        return out if p >= 0 else (out[0] / size, -out[1] / size)
    angle = sympy.atan2(b, a)
    size, angle = _modulus(a, b) ** p * sympy.exp(-q * angle), p * angle + (0 if q == 0 else q * sympy.log(_modulus(a, b)))
    return size * sympy.cos(angle), size * sympy.sin(angle)


def _real(condition: Any, known: dict[Any, Pair]) -> Any:
    """A condition on complex numbers as a condition on their parts: both parts for an equality, the real parts for an inequality."""
    def split(relation: Any) -> Any:
        (a, b), (c, d) = (real_imaginary_parts(side, known) for side in relation.args)
        if isinstance(relation, sympy.Eq):
            return sympy.And(sympy.Eq(a, c), sympy.Eq(b, d))
        return sympy.Or(sympy.Ne(a, c), sympy.Ne(b, d)) if isinstance(relation, sympy.Ne) else relation.func(a, c)

    return condition.xreplace({relation: split(relation) for relation in condition.atoms(Relational)})
