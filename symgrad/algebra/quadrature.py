"""Enclosures of definite integrals by Arb, whose quadrature bounds its error. This module needs python-flint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from math import prod
from typing import Any

import mpmath
import sympy
from flint import acb, arb

from symgrad.algebra.evaluating import NotEnclosed, Unresolved
from symgrad.algebra.functions import DEFINED
from symgrad.algebra.simplification import EXPANDED, FAILURES, expanded_terms
from symgrad.algebra.stochastic import Arithmetic, Number, Sample
from symgrad.carriers.ball import precision
from symgrad.carriers.digits import Undefined

EVALUATIONS, DEPTH = 10_000, 1000  # the most evaluations of an integrand, and bisections of its range
PRECISION = 220  # bits, which suffice for the digits that must agree
NONE = acb("nan")  # the enclosure of a function that is not analytic on a ball

# Entire functions, and functions whose poles make their balls infinite.
ANALYTIC = {getattr(sympy, name): name for name in "exp sin cos tan sinh cosh tanh cot sec csc coth sech csch sinc erf erfc erfi gamma".split()} | {
    sympy.Si: "si", sympy.Shi: "shi"}
SPLIT = {sympy.Abs: "real_abs", sympy.sign: "real_sgn", sympy.floor: "real_floor", sympy.ceiling: "real_ceil", sympy.Heaviside: "real_heaviside",
         sympy.Max: "real_max", sympy.Min: "real_min", sympy.log: "log"}  # on both sides of a line
CONSTANTS = {sympy.pi: acb.pi, sympy.E: lambda: acb(1).exp(), sympy.I: lambda: acb(0, 1)}
BRANCHED = {sympy.asin: lambda z: 1 - z * z, sympy.acos: lambda z: 1 - z * z, sympy.atanh: lambda z: 1 - z * z, sympy.atan: lambda z: 1 + z * z,
            sympy.asinh: lambda z: 1 + z * z, sympy.loggamma: lambda z: z}  # analytic where this is not real and at most 0
TANGENTS = (sympy.cot, sympy.tan, sympy.sec, sympy.csc)
BOUNDED = {sympy.sin: 1, sympy.cos: 1, sympy.tanh: 1, sympy.erf: 1, sympy.atan: 1.6}  # between poles of their arguments


def integral_step(e: Any) -> tuple[Callable[..., Number], tuple[Any, ...]]:
    """The function that computes a definite integral from its operands: its ends, and the other symbols of its integrand.

    Raises NotEnclosed where that is not possible.
    """
    if len(e.limits) != 1 or len(e.limits[0]) != 3:
        raise NotEnclosed(str(e))
    f, x, low, high = _between_numbers(e.function, *e.limits[0])
    others = sorted(f.free_symbols - {x}, key=str)
    integrand, known = enclosure(f, [x, *others]), dict[Any, Any]()

    def step(a: Arithmetic, *operands: Number) -> Number:
        with precision(PRECISION):
            found = known.get(operands)
            if found is None:
                start, stop, *values = [_ball(a, v) for v in operands]
                found = known[operands] = acb.integral(lambda t, analytic: integrand([t, *values], bool(analytic)), start, stop,
                                                       eval_limit=EVALUATIONS, depth_limit=DEPTH)
            if not found.is_finite():
                raise Unresolved("an integral of which no certain value was found")
            return _sample(a, found)

    return step, (low, high, *others)


def _between_numbers(f: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any, Any, Any]:
    """The same integral without tangents, whose poles may be none of it, and between numbers: of a fraction by x = low + t / (1 - t)."""
    if f.has(*TANGENTS):
        turned = reduce(lambda e, kind: e.replace(kind, DEFINED[kind]), TANGENTS, f)
        f = sympy.together(turned) if max(expanded_terms(turned)) <= EXPANDED else f
    if not (low.is_infinite or high.is_infinite):
        return f, x, low, high
    if not f.is_rational_function(x) or max(expanded_terms(f)) > EXPANDED:
        raise NotEnclosed(str(f))
    if low.is_infinite and high.is_infinite:
        f, low, high = f + f.xreplace({x: -x}), sympy.S.Zero, sympy.oo
    start, sign = (high, -1) if low.is_infinite else (low, 1)
    t = sympy.Dummy(real=True)
    try:
        return sympy.cancel(f.xreplace({x: start + sign * t / (1 - t)}) / (1 - t) ** 2), t, sympy.S.Zero, sympy.S.One
    except FAILURES:
        raise NotEnclosed(str(f)) from None


def value(c: Any, function: Callable[..., Any], *xs: Any) -> Any:
    """The value of a function of balls at numbers of an mpmath context, to its precision. Raises NoConvergence if too few bits are certain."""
    for bits in (c.prec + 40, 2 * c.prec + 200):
        with precision(bits):
            found = function(*(acb(*map(_exact, (c.re(x), c.im(x)))) for x in map(c.convert, xs)))
        if found.is_finite() and found.rel_accuracy_bits() >= c.prec:
            real, imag = (c.ldexp(c.mpf(int(m)), int(e)) for m, e in (found.real.mid().man_exp(), found.imag.mid().man_exp()))
            return c.mpc(real, imag) if any(c.im(x) for x in xs) else real
    raise mpmath.libmp.NoConvergence("too few certain bits")


def _exact(x: Any, radius: Any = 0) -> Any:
    """A number of mpmath as a ball."""
    sign, mantissa, exponent, _ = x._mpf_
    return arb(mid=(-int(mantissa) if sign else int(mantissa), int(exponent)), rad=radius)


def enclosure(e: Any, symbols: Sequence[Any]) -> Callable[[Sequence[Any], bool], Any]:
    """The function of balls for the symbols, and of whether it is to be `analytic`, to a ball with the values of an expression.

    It is not finite if it is to be analytic and may not be. Raises NotEnclosed for an expression that has a part without an enclosure.
    """
    kind = type(e)
    if e.is_Rational:
        p, q = int(e.p), int(e.q)
        return lambda at, analytic: acb(arb(p) / q)
    if e in symbols:
        place = symbols.index(e)
        return lambda at, analytic: at[place]
    if e in CONSTANTS:
        return lambda at, analytic: CONSTANTS[e]()
    parts = [enclosure(x, symbols) for x in e.args]
    if e.is_Add:
        return lambda at, analytic: sum((f(at, analytic) for f in parts), acb(0))
    if e.is_Mul:
        return lambda at, analytic: prod((f(at, analytic) for f in parts), start=acb(1))
    if e.is_Pow and e.exp.is_Integer and e.base is not sympy.E:
        n = int(e.exp)
        return lambda at, analytic: parts[0](at, analytic) ** n
    if kind is sympy.log and len(parts) > 1:
        raise NotEnclosed(str(e))
    found = _power if e.is_Pow else _of_function(kind, e.args[0].is_rational_function(*symbols) and not e.has(sympy.I)) if parts else None
    if found is None:
        raise NotEnclosed(str(e))
    return lambda at, analytic: found(analytic, *(f(at, analytic) for f in parts))


def between(e: Any, x: Any) -> Callable[[Fraction, Fraction], Any]:
    """The function of two numbers to a real ball with the values of an expression of a symbol between them; NaN if they may not be real."""
    values = enclosure(e, [] if x is None else [x])

    def call(low: Fraction, high: Fraction) -> Any:
        with precision(PRECISION):
            ends = [arb(end.numerator) / end.denominator for end in (low, high)]
            found = values([acb(ends[0].union(ends[1]))], False)
            return found.real if found.imag.is_zero() else arb.nan()

    return call


def _power(analytic: bool, base: Any, power: Any) -> Any:
    if not analytic and base.contains(0) and power.real > 0:
        return acb(arb(0, 1), arb(0, 1)) * (base.abs_upper() ** power.real).upper()
    return base.sqrt(analytic) if power == 0.5 else base.pow(power, analytic)


def _of_function(kind: Any, is_real: bool) -> Callable[..., Any] | None:
    """A function of `analytic` and balls, None for one without an enclosure; `is_real` if a real symbol has a real argument or a pole."""
    if kind in SPLIT:
        return lambda analytic, *xs: reduce(lambda x, y: getattr(x, SPLIT[kind])(y, analytic), xs[1:], xs[0]) if len(xs) > 1 else \
            getattr(xs[0], SPLIT[kind])(analytic)
    name = "lgamma" if kind is sympy.loggamma else ANALYTIC.get(kind, kind.__name__)
    if kind not in ANALYTIC and kind not in BRANCHED:
        return None

    def call(analytic: bool, x: Any) -> Any:
        if kind in BOUNDED and is_real and not analytic and not x.is_finite():
            return acb(arb(0, BOUNDED[kind]))
        cut = BRANCHED[kind](x) if analytic and kind in BRANCHED else None
        return NONE if cut is not None and cut.imag.contains(0) and not cut.real > 0 else getattr(x, name)()

    return call


def _ball(a: Arithmetic, x: Number) -> Any:
    """A number with its error as a ball."""
    parts: Any = a.parts(x)
    real, imag = parts
    if isinstance(real, Sample):
        if imag != 0:
            raise Undefined("an integral between complex numbers")
        return acb(_exact(real.value, (1, max(a.error(real) + 1, -10 * PRECISION))))
    return acb(*(arb(part.numerator) / part.denominator for part in parts))


def _sample(a: Arithmetic, found: Any) -> Number:
    """A ball as a number with its error."""
    parts = [[a.context.ldexp(a.context.mpf(int(m)), int(e)) for m, e in (x.mid().man_exp(), x.rad().man_exp())] for x in (found.real, found.imag)]
    values = [part[0] for part in parts]
    ends = [part[0] + 2 * part[1] for part in parts]
    return a.rounded(values[0], ends[0]) if not any(parts[1]) else a.rounded(a.context.mpc(*values), a.context.mpc(*ends))
