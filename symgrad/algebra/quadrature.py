"""Enclosures of definite integrals by Arb, whose quadrature bounds its error. This module needs python-flint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import sympy
from flint import acb, arb, ctx

from symgrad.algebra.stochastic import Arithmetic, Gaussian, Number, Sample
from symgrad.carriers.digits import Undefined
from symgrad.system.restoring import workprec

EVALUATIONS, DEPTH = 10_000, 1000  # the most evaluations of an integrand, and bisections of its range
PRECISION = 220  # bits, which suffice for the digits that must agree
NONE = acb("nan")  # the enclosure of a function that is not analytic on a ball

# Entire functions, and functions whose poles make their balls infinite.
ANALYTIC = {getattr(sympy, name): name for name in "exp sin cos tan sinh cosh tanh cot sec csc coth sech csch sinc erf erfc erfi gamma".split()} | {
    sympy.Si: "si", sympy.Shi: "shi"}
SPLIT = {sympy.Abs: "real_abs", sympy.sign: "real_sgn", sympy.floor: "real_floor", sympy.ceiling: "real_ceil"}  # on both sides of a line
BRANCHED = {sympy.asin: lambda z: 1 - z * z, sympy.acos: lambda z: 1 - z * z, sympy.atanh: lambda z: 1 - z * z, sympy.atan: lambda z: 1 + z * z,
            sympy.asinh: lambda z: 1 + z * z, sympy.loggamma: lambda z: z}  # analytic where this is not real and at most 0


class NotEnclosed(TypeError):
    """The error for an integrand with a function that has no enclosure here."""


def integral_step(e: Any) -> tuple[Callable[..., Number], tuple[Any, ...]]:
    """The function that computes a definite integral from its operands: its ends, and the other symbols of its integrand.

    Raises NotEnclosed where that is not possible.
    """
    if len(e.limits) != 1 or len(e.limits[0]) != 3 or any(end.is_infinite for end in e.limits[0][1:]):
        raise NotEnclosed(str(e))
    x, low, high = e.limits[0]
    others = sorted(e.function.free_symbols - {x}, key=str)
    check_enclosed(e.function, {x, *others})

    def step(a: Arithmetic, *operands: Number) -> Number:
        with workprec(ctx, PRECISION):
            start, stop, *values = [_ball(a, v) for v in operands]
            known = dict(zip(others, values))
            found = acb.integral(lambda t, analytic: enclosure(e.function, known | {x: t}, bool(analytic)), start, stop,
                                 eval_limit=EVALUATIONS, depth_limit=DEPTH)
            if not found.is_finite():
                raise Undefined("no enclosure of the integral")
            return _sample(a, found)

    return step, (low, high, *others)


def check_enclosed(e: Any, symbols: set[Any]) -> None:
    """Raise NotEnclosed for an expression that has a part without an enclosure."""
    for f in sympy.preorder_traversal(e):
        known = type(f) in ANALYTIC or type(f) in SPLIT or type(f) in BRANCHED or isinstance(f, (sympy.log, sympy.Max, sympy.Min, sympy.Heaviside))
        number = f.is_Rational or f in (sympy.pi, sympy.E, sympy.I)
        if not (known or number or f in symbols or f.is_Add or f.is_Mul or f.is_Pow) or isinstance(f, sympy.log) and len(f.args) > 1:
            raise NotEnclosed(str(f))


def enclosure(e: Any, known: Mapping[Any, Any], analytic: bool) -> Any:
    """A ball with the values of an expression at the balls of its symbols; not finite if it is to be `analytic` and may not be."""
    def of(part: Any) -> Any:
        return enclosure(part, known, analytic)

    if e.is_Rational:
        return acb(arb(int(e.p)) / int(e.q))
    if e.is_Symbol:
        return known[e]
    if e in (sympy.pi, sympy.E, sympy.I):
        return acb.pi() if e is sympy.pi else acb(1).exp() if e is sympy.E else acb(0, 1)
    if e.is_Add:
        return sum(map(of, e.args), acb(0))
    if e.is_Mul:
        return prod(map(of, e.args), start=acb(1))
    if e.is_Pow:
        base, exponent = e.args
        if base is sympy.E:
            return of(exponent).exp()
        if exponent.is_Integer:
            return of(base) ** int(exponent)
        return of(base).sqrt(analytic) if exponent == sympy.Rational(1, 2) else of(base).pow(of(exponent), analytic)
    xs = [of(x) for x in e.args]
    kind = type(e)
    if kind in ANALYTIC:
        return getattr(xs[0], ANALYTIC[kind])()
    if kind in SPLIT:
        return getattr(xs[0], SPLIT[kind])(analytic)
    if kind in BRANCHED:
        cut = BRANCHED[kind](xs[0])
        name = "lgamma" if kind is sympy.loggamma else kind.__name__
        return NONE if analytic and cut.imag.contains(0) and not cut.real > 0 else getattr(xs[0], name)()
    if isinstance(e, sympy.log):
        return xs[0].log(analytic)
    if isinstance(e, sympy.Heaviside):
        return xs[0].real_heaviside(analytic)
    out = xs[0]
    for x in xs[1:]:
        out = out.real_max(x, analytic) if isinstance(e, sympy.Max) else out.real_min(x, analytic)
    return out


def _ball(a: Arithmetic, x: Number) -> Any:
    """A number with its error as a ball."""
    if isinstance(x, Fraction):
        return acb(arb(x.numerator) / x.denominator)
    if isinstance(x, Gaussian):
        return acb(*(arb(part.numerator) / part.denominator for part in x))
    real, imag = a.parts(x)
    if imag != 0:
        raise Undefined("an integral between complex numbers")
    real = a.sample(real)
    sign, mantissa, exponent, _ = real.value._mpf_
    error = max(a.error(real) + 1, -10 * PRECISION)
    return acb(arb(mid=(-int(mantissa) if sign else int(mantissa), int(exponent)), rad=(1, error)))


def _sample(a: Arithmetic, found: Any) -> Number:
    """A ball as a number with its error."""
    def ends(x: Any) -> Sequence[Any]:
        numbers = [a.context.ldexp(a.context.mpf(int(mantissa)), int(exponent)) for mantissa, exponent in (x.mid().man_exp(), x.rad().man_exp())]
        return numbers[0], numbers[0] + 2 * numbers[1]

    (real, changed), (imag, turned) = ends(found.real), ends(found.imag)
    if found.imag.is_exact() and imag == 0:
        return a.rounded(real, changed)
    return a.rounded(a.context.mpc(real, imag), a.context.mpc(changed, turned)) if imag or turned else Sample(real, changed)
