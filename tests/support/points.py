"""Points and arrays inside the domain of an op: ordinary ones, the tails, next to poles, and the special ones. Nothing is filtered away."""

import itertools
import math

import numpy as np

from symgrad.graph.domains import COMPLEX, REAL, MatrixDomain
from symgrad.sampling.numbers import fit
from tests.support.exemptions import exempt

# No two of them have a whole ratio, and none is a whole number or half of one: there steps and kinks are.
SIZES = (1e-300, 1e-100, 1e-20, 1e-8, 1.3e-5, 0.12, 1.1, 20.3, 40.7, 300.1, 700.3, 100001.3, 1e100, 1e300)
WHOLE = 2.0**52  # beyond it every float is a whole number
STEPPED = {"frac", "fmod_number"}  # which have a step at every whole number, or half of one
NEAR = tuple(2.0**-k for k in (4, 10, 26, 52))
DEFAULT_SHAPE = (3, 4)


def of_numbers(op):
    """Whether an op takes real numbers to numbers: complex ones are in test_complex.py, those in and out of a batch in test_vmap.py."""
    return COMPLEX not in op.domain and op.name not in exempt("alone")


def domain(op, i):
    """The domain of one tensor argument."""
    return op.domain[i] if i < len(op.domain) else op.domain[0] if op.arity is None and op.domain else REAL


def inside(interval, u):
    """The point of an interval that a number u of a standard normal variable stands for."""
    low, high = interval.low, interval.high
    if math.isinf(low) and math.isinf(high):
        return 3.0 * u
    if math.isinf(high):
        return low + math.exp(u)
    if math.isinf(low):
        return high - math.exp(u)
    return low + (high - low) * (0.02 + 0.96 * (0.5 + math.atan(2.0 * u) / math.pi))


def edges(interval, sizes):
    """The tails of an interval, and the points next to its finite ends."""
    low, high = interval.low, interval.high
    if math.isinf(low) and math.isinf(high):
        return [sign * size for size in sizes for sign in (1.0, -1.0)]
    if math.isinf(high):
        return [low + size for size in (*NEAR, *sizes) if low + size > low]
    if math.isinf(low):
        return [high - size for size in (*NEAR, *sizes) if high - size < high]
    near = [low + step * (high - low) for step in NEAR] + [high - step * (high - low) for step in NEAR]
    return near + [sign * size for size in sizes for sign in (1.0, -1.0) if low < sign * size < high]


def numbers(d, rng, count):
    """`count` ordinary points of a domain: an excluded point is moved, not dropped."""
    if d.integer:
        low, high = (int(max(-9, min(i.low for i in d.intervals))), int(min(9, max(i.high for i in d.intervals))))
        return [float(n) for n in rng.integers(low, high + 1, count)]
    out = []
    for k in range(count):
        x = inside(d.intervals[k % len(d.intervals)], rng.standard_normal())
        out.append(x + 0.5 if x in d.excluded else x)
    return out


def tails(d, sizes=SIZES):
    """Every tail and every point next to a pole of a domain."""
    out = [x for interval in d.intervals for x in edges(interval, sizes)]
    out += [sign * step for x in d.excluded for step in NEAR for sign in (1.0, -1.0)] if any(d.excluded) else []
    return out


def points(op, rng, ordinary=20, limit=70):
    """Points for an elementwise op, as tuples with one number per argument.

    Of an op with several arguments the tails are combined with each other, never with themselves; `limit` of the combinations are drawn.
    """
    sizes = [s for s in SIZES if s < WHOLE] if op.partials == (0,) or op.name in STEPPED else SIZES
    domains = [domain(op, i) for i in range(op.arity)]
    out = list(zip(*(numbers(d, rng, ordinary) for d in domains)))
    extreme = list(itertools.product(*(tails(d, [s * (1 - i / 16) for s in sizes]) for i, d in enumerate(domains))))
    if len(extreme) > limit:
        extreme = [extreme[k] for k in rng.choice(len(extreme), limit, replace=False)]
    return out + extreme


def array(d, rng, shape):
    """An array of ordinary points; an array of conditions is boolean."""
    values = np.array(numbers(d, rng, math.prod(shape))).reshape(shape)
    return values.astype(bool) if d.name == "BOOLEAN" else values


def shapes(op):
    """The shapes of the arrays that an op's examples go with; a variadic op is given three arrays, or as many as it names."""
    if op.docs.shapes:
        return op.docs.shapes
    return (DEFAULT_SHAPE,) * (2 if op.arity is None else op.arity)


def arrays(op, rng, of=None):
    """Arrays for one call of an op, of the op's own shapes or of those given."""
    out = [array(domain(op, i), rng, shape) for i, shape in enumerate(of or shapes(op))]
    return [fit(d, x) if isinstance(d := domain(op, i), MatrixDomain) else x for i, x in enumerate(out)]


def examples(op):
    """The parameter tuples of an op; one empty tuple for an op without parameters."""
    return op.docs.examples or ((),)


def differentiable(xs):
    """The numbers of the arguments that have derivatives: those that are not conditions."""
    return [i for i, x in enumerate(xs) if x.dtype.kind == "f"]


def random_like(rng, x):
    """An array of the shape of another, far from zero."""
    return rng.uniform(0.5, 2.0, np.shape(x)) * rng.choice([-1.0, 1.0], np.shape(x))
