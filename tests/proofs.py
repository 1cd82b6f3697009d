"""Proofs of partial derivatives: the rule and its own derivatives, read with SymPy, against `sympy.diff` of the forward rule."""

from typing import NamedTuple

import mpmath
import numpy as np
import sympy
from mpmath import mpf
from points import domain, numbers
from truth import DIGITS, Truth, cell, orders

from symgrad import autograd
from symgrad.carriers import precise, symbolic
from symgrad.creation import tensor
from symgrad.passes import replay
from symgrad.recording import core

POINTS = 24  # every statement is checked at so many points too: SymPy can simplify what is not zero to a silent 0


class Verdict(NamedTuple):
    """`word` is "proved" or "verified"; `points` says at how many points 45 digits agreed."""

    word: str
    points: int


class Region(NamedTuple):
    """A part of the domain in which a function with kinks is smooth: the arguments in new symbols, the old partials in terms of them, a point."""

    arguments: tuple
    partials: tuple
    at: dict

    @property
    def sample(self):
        """The arguments at the point."""
        return tuple(float(sympy.sympify(x).subs(self.at)) for x in self.arguments)


def whole(op, truth, rng):
    """The domain as one region."""
    partials = tuple(lambda f, x=x: sympy.diff(f, x) for x in truth.symbols)
    sample = [numbers(domain(op, i), rng, 1)[0].as_integer_ratio() for i in range(op.arity)]
    return Region(tuple(truth.symbols), partials, {s: sympy.Rational(*ratio) for s, ratio in zip(truth.symbols, sample)})


def regions(op):
    """The domain cut at the special points of an op of one argument, or at 0 and along the diagonal of one of two."""
    p, q = sympy.symbols("p q", positive=True)
    at = {p: sympy.Rational(7, 10), q: sympy.Integer(2)}
    if op.arity == 1:
        cuts = sorted({sympy.Rational(*point[0].as_integer_ratio()) for point in op.special}) or [sympy.S.Zero]
        out = [Region((cuts[0] - p,), (lambda f: -sympy.diff(f, p),), at), Region((cuts[-1] + p,), (lambda f: sympy.diff(f, p),), at)]
        for a, b in zip(cuts, cuts[1:]):
            between = (a + b * q) / (1 + q)
            out.append(Region((between,), (lambda f, x=between: sympy.diff(f, q) / sympy.diff(x, q),), at))
        return out
    out = []
    for b in (q, -q):
        for s in (1, -1):
            by_first = (lambda f, s=s: s * sympy.diff(f, p))
            by_second = (lambda f, b=b, s=s: sympy.diff(f, q) / sympy.diff(b, q) - s * sympy.diff(f, p))
            out.append(Region((b + s * p, b), (by_first, by_second), at))
    return out


def derivatives(op, parameters, xs, order):
    """Every derivative up to an order, as the library gives them to a user: `grad` of `grad` of ..., by multi-index."""
    y = core(op)(*xs, *parameters)
    found = {(0,) * op.arity: y}
    level = dict(found)
    for _ in range(order):
        above = {}
        for k, d in level.items():
            for i, g in enumerate(autograd.grad(d.sum(), xs, create_graph=True, materialize_grads=True) if d.requires_grad else ()):
                above.setdefault((*k[:i], k[i] + 1, *k[i + 1:]), g)
        found.update(above)
        level = above
    return found


def read(carrier, root, leaves):
    """A recorded derivative, computed again in another carrier from the values of its leaves there."""
    constant = carrier.lift_value if carrier is precise else lambda value: symbolic.lift_value(value, exact=True)
    return constant(root._value) if root._node is None else replay(carrier, [root._node], leaves.__getitem__, constant)[root._node]


def rule(op, carrier, i, y, xs, parameters):
    """One partial of the rule table at cells of a carrier."""
    partial = op.partials[i]
    return partial(carrier, y, *xs, *parameters) if callable(partial) else carrier.lift_value(partial or 0)


def decided(f):
    """An expression in which Max and Min are the argument they are in this region, where SymPy can tell."""
    def choose(*args, larger):
        first, second = args
        difference = sympy.factor(first - second)
        if difference.is_nonnegative or difference.is_nonpositive:
            return first if bool(difference.is_nonnegative) == larger else second
        return (sympy.Max if larger else sympy.Min)(*args)

    return f.replace(sympy.Max, lambda *args: choose(*args, larger=True)).replace(sympy.Min, lambda *args: choose(*args, larger=False))


def by_exponentials(difference):
    """A rational function of exponentials, brought to one fraction."""
    return sympy.cancel(sympy.expand(difference.rewrite(sympy.exp), power_exp=True))


def is_zero(difference, at):
    """Whether SymPy shows an expression to be identically zero; one look at a point saves the work where it is not."""
    number = difference.subs(at).evalf(30)
    if number.is_number and not abs(number) < 1e-15:
        return False
    attempts = [lambda d: d, sympy.cancel, by_exponentials, sympy.simplify]
    if not difference.has(sympy.exp):  # of hyperbolic functions alone `simplify` is the quicker
        attempts = [lambda d: d, sympy.cancel, sympy.simplify, by_exponentials]
    return any(attempt(difference) == 0 for attempt in attempts)


def claims(op, parameters, order, region, direct):
    """What the library says the derivatives of one order are, as SymPy expressions in a region's symbols, by multi-index.

    `direct` reads the rule table itself; otherwise the derivative is taken as users take it, at the region's sample, and its graph is read.
    """
    cells = [cell(x) for x in region.arguments]
    if direct:
        y = op.forward(symbolic, *cells, *parameters)
        return {k: rule(op, symbolic, k.index(1), y, cells, parameters).item() for k in orders(op.arity, 1)}
    xs = [tensor(x, requires_grad=True) for x in region.sample]
    found = derivatives(op, parameters, xs, order)
    cells = {x._node: c for x, c in zip(xs, cells)}
    return {k: read(symbolic, found[k], cells).item() if k in found else sympy.S.Zero for k in orders(op.arity, order)}


def proved(op, parameters, order, region, direct):
    """Whether every derivative of one order is proved in a region."""
    for k, claim in claims(op, parameters, order, region, direct).items():
        f = decided(op.forward(symbolic, *(cell(x) for x in region.arguments), *parameters).item())
        for partial, n in zip(region.partials, k):
            for _ in range(n):
                f = partial(f)
        if not is_zero(claim - f, region.at):
            return False
    return True


def agreement(claim, true):
    """How many digits of two numbers agree, and the two."""
    with mpmath.workdps(80):
        claim, true = mpf(claim), mpf(true)
        return (float("inf") if claim == true else float(-mpmath.log10(abs(claim - true) / (abs(true) or 1)))), claim, true


def check_points(op, parameters, order, truth, rng):
    """The derivatives of one order agree with the truth to 45 digits at ordinary points; gives their number."""
    points = list(zip(*(numbers(domain(op, i), rng, POINTS) for i in range(op.arity))))
    for x in points:
        cells = [precise.lift_value(v) for v in x]
        if order > 1:
            leaves = [tensor(v, requires_grad=True) for v in x]
            found = derivatives(op, parameters, leaves, order)
            by_leaf = {leaf._node: c for leaf, c in zip(leaves, cells)}
        for k in orders(op.arity, order):
            if order == 1:
                y = op.forward(precise, *cells, *parameters)
                claim = rule(op, precise, k.index(1), y, cells, parameters).item()
            else:
                claim = read(precise, found[k], by_leaf).item() if k in found else 0
            digits, claim, true = agreement(claim, truth(k, x))
            assert digits >= DIGITS, (f"{op.name}{parameters}: the rule gives the derivative {k} at {x} as {claim}, but it is {true}: "
                                      f"{max(digits, 0):.1f} digits agree")
    return len(points)


def check_partials(op, parameters=(), order=1, seed=0):
    """Every derivative of one order: proved where SymPy can, and in any case equal to the truth to 45 digits at 24 points.

    Raises AssertionError with the op, the point and both values where a rule is wrong.
    """
    rng = np.random.default_rng(seed)
    truth = Truth(op, parameters)
    count = check_points(op, parameters, order, truth, rng)
    if any(truth.formula(k).has(sympy.Derivative, sympy.Subs) for k in orders(op.arity, order)):
        return Verdict("verified", count)
    pieces = truth.forward.has(sympy.Max, sympy.Min, sympy.Abs, sympy.sign)
    if not pieces and proved(op, parameters, order, whole(op, truth, rng), direct=order == 1):
        return Verdict("proved", count)
    return Verdict("proved" if all(proved(op, parameters, order, r, direct=False) for r in regions(op)) else "verified", count)
