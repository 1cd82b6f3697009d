"""Wide numbers m · 2ᵉ with an unbounded exponent, for formulas whose intermediate values overflow or underflow although the result does not.

In floats (1 - 2x²) exp(-x²) is inf · 0 at 1e160. Generated code that is bound to `wide_names` computes it without overflow: a product
adds exponents, and exp(u) is 2ᵏ exp(u - k log 2). The namespace `base` contains the elementary functions of a framework,
and the largest exponent of its floats (`longest`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

LOWEST = -10.0  # the exponent of 0, in units of the largest one
LOG2, REST = 0.693359375, -2.121944400546905827679e-4  # log(2) as a number with few bits, whose integer multiples are exact, and the rest
FAR = 1e15  # the |u| from which exp(u) has no correct digits
LARGEST_IN_MANTISSA = 400.0  # the largest exponent that is kept in m, so that a product of two neither overflows nor is 0
TINY = -60  # a function f(u) = u + O(u²) is u in floats if the exponent is less


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    relation = getattr(operator, name)
    return lambda self, other: relation((self - other).m, 0)


class Wide:
    """The number m · 2ᵉ with 1/2 <= |m| < 1, computed by the functions of a framework."""

    __slots__ = ("m", "e", "base")
    __array_ufunc__ = None  # so that arrays use the operators of this class

    def __init__(self, m: Any, e: Any, base: Mapping[str, Any]):
        self.m, self.e, self.base = m, e, base

    @classmethod
    def of(cls, x: Any, base: Mapping[str, Any], e: Any = 0.0, more: Any = 0.0) -> Wide:
        """The number x · 2ᵉ · 2ᵐᵒʳᵉ; the rounding error of the sum of large exponents is added to that of m."""
        if isinstance(x, (int, float)):
            m, k = math.frexp(x)
            return cls(m, float(k) if m else LOWEST * base["longest"], base)
        m, k = base["frexp"](x)
        part, lost = _two_sum(e, more)
        total, rest = _two_sum(part, k)
        return cls(_scale(m, lost + rest, base, LARGEST_IN_MANTISSA), base["where"](m == 0, LOWEST * base["longest"], total), base)

    def like(self, x: Any) -> Wide:
        """Another number as a wide number of the same framework."""
        return x if isinstance(x, Wide) else Wide.of(x, self.base)

    def narrow(self) -> Any:
        """The nearest float, 0 or infinity."""
        if isinstance(self.m, float):
            return math.ldexp(self.m, int(self.e)) if self.m else 0.0
        return self.scaled_down(0.0)

    def scaled_down(self, e: Any) -> Any:
        """The number divided by 2ᵉ as a float."""
        return _scale(self.m, self.e - e, self.base)

    def __add__(self, other: Any) -> Wide:
        other = self.like(other)
        e = self.base["where"](self.e > other.e, self.e, other.e)
        return Wide.of(self.scaled_down(e) + other.scaled_down(e), self.base, e)

    def __mul__(self, other: Any) -> Wide:
        other = self.like(other)
        return Wide.of(self.m * other.m, self.base, self.e, other.e)

    def __truediv__(self, other: Any) -> Wide:
        other = self.like(other)
        if isinstance(other.m, float):
            return Wide.of(self.m / other.m, self.base, self.e, -other.e)
        return Wide.of(self.m / other.m, self.base, self.e, self.base["where"](other.m == 0, 0 * other.e, -other.e))

    def __neg__(self) -> Wide:
        return Wide(-self.m, self.e, self.base)

    def __abs__(self) -> Wide:
        return Wide(abs(self.m), self.e, self.base)

    def __sub__(self, other: Any) -> Wide:
        return self + -self.like(other)

    def __rsub__(self, other: Any) -> Wide:
        return -self + other

    def __rtruediv__(self, other: Any) -> Wide:
        return self.like(other) / self

    __radd__, __rmul__ = __add__, __mul__
    __lt__, __le__, __gt__, __ge__ = _comparison("lt"), _comparison("le"), _comparison("gt"), _comparison("ge")
    __eq__, __ne__ = _comparison("eq"), _comparison("ne")
    __hash__ = object.__hash__


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """A sum and its rounding error. D. E. Knuth, The Art of Computer Programming, volume 2, section 4.2.2."""
    s = a + b
    back = s - a
    return s, (a - (s - back)) + (b - back)


def _scale(m: Any, e: Any, base: Mapping[str, Any], most: float = 2200.0) -> Any:
    """m · 2ᵉ, with |e| limited to `most`, in two steps, which do not overflow separately."""
    e = base["where"](e > most, most, base["where"](e < -most, -most, e))
    half = base["floor"](e / 2)
    return base["ldexp"](base["ldexp"](m, half), e - half)


def wide_names(base: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of generated code for wide numbers."""
    where, floor, longest = base["where"], base["floor"], base["longest"]

    def of(x: Any) -> Wide:
        return x if isinstance(x, Wide) else Wide.of(x, base)

    def chosen(condition: Any, a: Any, b: Any) -> Wide:
        a, b = of(a), of(b)
        return Wide(where(condition, a.m, b.m), where(condition, a.e, b.e), base)

    def lifted(f: Callable[..., Any]) -> Callable[..., Wide]:
        return lambda *xs: Wide.of(f(*[x.narrow() if isinstance(x, Wide) else x for x in xs]), base)

    def periodic(f: Callable[..., Any]) -> Callable[[Wide], Wide]:
        def call(u: Wide) -> Wide:
            v = u.narrow()
            return Wide.of(f(where((abs(v) > largest) & (abs(u.m) <= 1), largest * sign(u.m), v)), base)  # finite beyond the largest float

        return call

    def beside_zero(f: Callable[[Any], Any]) -> Callable[[Wide], Wide]:
        return lambda u: chosen(u.e < TINY, u, f(u))

    def exp(u: Wide) -> Wide:
        v = u.narrow()
        v = where(v > longest, longest, where(v < -longest, -longest, v))
        k = floor(v / math.log(2.0) + 0.5)
        return Wide.of(base["exp"](where(abs(v) > FAR, 0.0 * v, (v - k * LOG2) - k * REST)), base, k)

    sign, largest = base["sign"], 1e308 if longest > 1e300 else 1e38

    def log(u: Wide) -> Wide:
        low = u.m < 0.70710678118654752
        m, e = where(low, 2 * u.m, u.m), where(low, u.e - 1, u.e)
        e = where(m > 0, e, 0 * e)
        return Wide.of(base["log"](m) + e * REST + e * LOG2, base)

    def beyond_one(name: str, f: Callable[[Any], Any]) -> Callable[[Wide], Wide]:
        return beside_zero(lambda u: chosen(u.e > 0, f(u), lifted(base[name])(u)))

    def root(n: int, f: Callable[[Any], Any]) -> Callable[[Wide], Wide]:
        def call(u: Wide) -> Wide:
            e = floor(where(u.m == 0, 0 * u.e, u.e) / n)
            return Wide.of(f(u.scaled_down(n * e)), base, e)

        return call

    def pow_(u: Any, p: Any) -> Wide:
        if isinstance(u, Wide) and isinstance(p, (int, float)) and abs(p) < 500:
            high = 134217729.0 * p - (134217729.0 * p - p)  # half the digits (T. J. Dekker, A floating-point technique, 1971)
            k = floor(u.e * high)
            return Wide.of(base["pow"](u.m, p) * base["exp"](((u.e * high - k) + u.e * (p - high)) * math.log(2.0)), base, k)
        return exp(p * math.log(u)) if isinstance(u, (int, float)) else lifted(base["pow"])(u, p)

    def atan2(a: Any, b: Any) -> Wide:
        a, b = of(a), of(b)
        e = where(a.e > b.e, a.e, b.e)
        small = (a.e - b.e < TINY) & (b.m > 0)
        return chosen(small, a / b, Wide.of(base["atan2"](a.scaled_down(e), b.scaled_down(e)), base))

    def gamma(u: Wide) -> Wide:  # beyond 100 its condition number exceeds the error of the exponent
        return chosen(u > 100, exp(lifted(base["lgamma"])(u)), lifted(base["gamma"])(u))

    own = {
        "exp": exp, "log": log, "expm1": beyond_one("expm1", lambda u: exp(u) - 1), "log1p": beyond_one("log1p", lambda u: log(1 + u)),
        "sinh": beyond_one("sinh", lambda u: (exp(u) - exp(-u)) / 2), "cosh": lambda u: (exp(u) + exp(-u)) / 2,
        **{name: beside_zero(lifted(base[name])) for name in "tanh asin atan asinh atanh".split()},
        "sin": beside_zero(periodic(base["sin"])), "cos": periodic(base["cos"]), "tan": beside_zero(periodic(base["tan"])), "abs": abs,
        "sign": lambda u: Wide.of(sign(u.m), base), "sqrt": root(2, base["sqrt"]), "cbrt": root(3, base["cbrt"]),
        "hypot": lambda a, b: root(2, base["sqrt"])(a * a + b * b), "pow": pow_, "atan2": atan2, "where": chosen,
        "maximum": lambda a, b: chosen(of(a) >= b, a, b), "minimum": lambda a, b: chosen(of(a) <= b, a, b), "zeros_like": lambda u: 0 * u,
        "guarded": lambda y, *of: y,
        "replaced": lambda y, mask, compute, *xs: chosen(mask, compute(*xs), y), "finfo": lambda u: SimpleNamespace(eps=0.0),
        **{name: base[name] for name in ("logical_and", "logical_or", "logical_not")}}
    made = {"softplus", "sech", "sech_square"}  # of the functions above, without loss
    return {name: lifted(f) for name, f in base.items() if callable(f) and name not in made} | own | ({"gamma": gamma} if "gamma" in base else {})
