"""The rules for products: quotients of exponentials and of hyperbolic functions that neither overflow nor cancel."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import Add, Mul, cosh, exp, sech, sign, sinh, tanh

from symgrad.algebra.stable_functions import expm1, sech_squared, sigmoid

__all__ = ["by_exponential", "hyperbolic", "magnitudes"]

ONE = sympy.S.One


def _powers(expr: Any) -> dict[Any, Any]:
    """The factors of a product by base, with their exponents."""
    out: dict[Any, Any] = {}
    for f in Mul.make_args(expr):
        base, power = (f, ONE) if isinstance(f, exp) else f.as_base_exp()
        out[base] = out.get(base, 0) + power
    return out


def _product(powers: dict[Any, Any]) -> Any:
    return Mul(*[base**power for base, power in powers.items()])


def by_exponential(expr: Any) -> tuple[Any, str] | None:
    """exp(-k u) sigmoid(u)ⁿ as sigmoid(-u)ᵏ sigmoid(u)ⁿ⁻ᵏ, and similarly for 1 / expm1(u)ⁿ and 1 / (exp(a) + exp(b))ⁿ."""
    powers = _powers(expr)
    for e in [base for base in powers if isinstance(base, exp) and powers[base].is_Integer]:
        v = e.args[0] * powers[e]
        for base, n in powers.items():
            if not n.is_Integer:
                continue
            if isinstance(base, sigmoid) and n > 0:
                k, (u,) = -v / base.args[0], base.args
                name, turn, turned = "sigmoid", 1, sigmoid(-u) if not u.is_zero else ONE
            elif isinstance(base, expm1) and n < 0:
                k, (u,) = v / base.args[0], base.args
                name, turn, turned = "expm1", -1, 1 / expm1(-u)
            else:
                continue
            if not k.is_Integer or k < 1:
                continue
            k, total = min(k, abs(n)), k
            rest = {b: p for b, p in powers.items() if b not in (e, base)}
            left = exp(v * (1 - k / total)) if total != k else ONE
            return _product(rest) * left * turn**k * turned**k * base ** (n - k * (1 if n > 0 else -1)), name
        for base, n in powers.items():
            if isinstance(base, Add) and n.is_Integer and n < 0 and len(base.args) == 2 and all(isinstance(t, exp) for t in base.args):
                for t, s in (base.args, base.args[::-1]):
                    if v == t.args[0]:
                        rest = {b: p for b, p in powers.items() if b not in (e, base)}
                        return _product(rest) * sigmoid(t.args[0] - s.args[0]) * base ** (n + 1), "sigmoid"
    return None


def hyperbolic(expr: Any) -> tuple[Any, str] | None:
    """sinh(u) / cosh(u) as tanh(u), and the remaining 1 / cosh(u) as sech(u) or sech_squared(u)."""
    powers = _powers(expr)
    for s in [base for base in powers if isinstance(base, sinh) and powers[base].is_Integer and powers[base] < 0]:
        c = cosh(s.args[0])
        if c in powers and powers[c].is_Integer and powers[c] > 0:
            k = min(powers[c], -powers[s])
            rest = {base: p for base, p in powers.items() if base not in (c, s)}
            return _product(rest) * tanh(s.args[0]) ** -k * c ** (powers[c] - k) * s ** (powers[s] + k), "tanh"
    for u in dict.fromkeys(base.args[0] for base in powers if isinstance(base, (cosh, sech, sech_squared))):
        below = {base: p for base, p in powers.items() if isinstance(base, (cosh, sech, sech_squared)) and base.args[0] == u}
        total = sum(p * {cosh: -1, sech: 1, sech_squared: 2}[base.func] for base, p in below.items())
        above = powers.get(sinh(u), sympy.S.Zero)
        if not (total.is_Integer and above.is_Integer):
            continue
        k = min(total, above) if total > 0 and above > 0 else sympy.S.Zero
        if not k and (len(below) == 1 and (total < 0 or next(iter(below.items())) in ((sech(u), 1), (sech_squared(u), total / 2)))):
            continue
        rest = {base: p for base, p in powers.items() if base not in below and base != sinh(u)}
        total -= k
        left = cosh(u) ** -total if total < 0 else sech_squared(u) ** (total // 2) * sech(u) ** (total % 2)
        return _product(rest) * tanh(u) ** k * sinh(u) ** (above - k) * left, "tanh" if k else "sech_squared" if total > 1 else "sech"
    return None


def magnitudes(expr: Any) -> tuple[Any, str] | None:
    """u sign(u) as |u|."""
    powers = _powers(expr)
    for s in [base for base in powers if isinstance(base, sign)]:
        (u,) = s.args
        if powers[s] == 1 and u in powers and powers[u].is_Integer and powers[u] >= 1:
            rest = {base: p for base, p in powers.items() if base not in (s, u)}
            return _product(rest) * sympy.Abs(u) * u ** (powers[u] - 1), "magnitude"
    return None
