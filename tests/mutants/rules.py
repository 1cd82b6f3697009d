"""Mutants of rules as they are: whatever a rule gives, scaled, negated, dropped, exchanged, misplaced, unconjugated or detached."""

import functools
import itertools

import numpy as np

from symgrad.carriers import numeric
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.graph.node import node_class
from symgrad.proofs.prove import cases
from tests.mutants.killing import Mutant, mutated

SLIGHTLY = 1 + 1e-6


def mutants_of_rules(op):
    """Every mutant of an op that can be made of its rules without looking into them."""
    for make in (_values, _cotangents, _tangents, _both, _exchanged, _places, _unbroadcast, _conjugates, _detached, _careless):
        for kind, what, wrong in make(op):
            yield Mutant(kind, what, ((op, wrong),))


def arguments(op):
    """The numbers of the tensor arguments that are differentiated by; a variadic op is given two."""
    count = 2 if op.arity is None else op.arity
    return [i for i in range(count) if not (i < len(op.domain) and op.domain[i].name == "BOOLEAN")
            and not (i < len(op.partials) and op.partials[i] is None)]


def constant(op):
    """Whether the derivative is the same everywhere, so that there is nothing in it to detach or to conjugate."""
    return op.kind == "linear" or bool(op.partials) and not any(map(callable, op.partials)) or op.name == "where"


@functools.cache
def zero(op, i):
    """Whether the derivative by an argument is zero everywhere, by declaration or because a linear op ignores it: there is nothing to scale."""
    if op.kind == "linear" and op.arity is not None:
        return not any(np.any(_pulled_back(case)[i]) for case in cases(op, False, []))
    return i < len(op.partials) and not callable(op.partials[i]) and op.partials[i] == 0


def flat_below(op):
    """Whether an op of one number is constant for numbers below -1, as relu is."""
    return op.arity == 1 and not any(np.any(_pulled_back(case, x)[0]) for case in cases(op, False, []) for x in (-1.5, -30.0))


def _pulled_back(case, x=0.0):
    """The cotangents of an op for a cotangent of different numbers, where all arguments are x."""
    xs = tuple(np.full(shape, x) for shape in case.shapes)
    y = case.op.forward(numeric, *xs, *case.parameters)
    assert case.op.vjp is not None
    g = np.sqrt(2.0 + np.arange(np.size(y))).reshape(np.shape(y))
    return tuple(case.op.vjp(numeric, g, y, (*xs, *case.parameters), (True,) * len(xs)))


def vanishes(op):
    """Whether a linear op has the value 0 everywhere."""
    return op.kind == "linear" and all(zero(op, i) for i in arguments(op))


def rank(op, i):
    """The number of dimensions that an argument has in the examples."""
    return len(op.docs.shapes[min(i, len(op.docs.shapes) - 1)]) if op.docs.shapes else 2


# The places where a rule can be changed


def with_value(op, change):
    """The op whose value y is `change(xp, y, x)` in every carrier, x its first argument that is no condition."""
    def forward(xp, *args):
        return change(xp, op.forward(xp, *args), args[0][0] if op.arity is None else args[arguments(op)[0]])

    return mutated(op, forward=forward)


def with_cotangent(op, i, change):
    """The op whose i-th cotangent c is `change(xp, c, g, x)`."""
    def vjp(xp, g, y, args, needs):
        out = list(op.vjp(xp, g, y, args, needs))
        if i < len(out) and needs[i] is not None:
            out[i] = change(xp, out[i], g, args[i])
        return tuple(out)

    return mutated(op, vjp=vjp)


def with_arguments(op, change, vjp=True, jvp=False):
    """The op whose pullback or pushforward reads `change(xp, g or tangent, y, args)` for its value and arguments."""
    def pull(xp, g, y, args, needs):
        return op.vjp(xp, g, *change(xp, g, y, args), needs)

    def push(xp, tangents, y, args):
        return op.jvp(xp, tangents, *change(xp, tangents, y, args))

    return mutated(op, **({"vjp": pull} if vjp else {}), **({"jvp": push} if jvp else {}))


def with_tangent(op, change):
    """The op whose tangent t is `change(xp, t)`."""
    def jvp(xp, tangents, y, args):
        t = op.jvp(xp, tangents, y, args)
        return t if t is None else change(xp, t)

    return mutated(op, jvp=jvp)


def with_tangents(op, change):
    """The op whose pushforward reads `change(tangents)`."""
    def jvp(xp, tangents, y, args):
        given = change(list(tangents))
        return None if all(t is None for t in given) else op.jvp(xp, given, y, args)

    return mutated(op, jvp=jvp)


# What is changed there



def _values(op):
    if vanishes(op):
        yield "added", "1e-6 x to the value, which is 0", with_value(op, lambda xp, y, x: y + 1e-6 * x)
        return
    yield "scaled", "the value by 1 + 1e-6", with_value(op, lambda xp, y, x: y * SLIGHTLY)
    yield "scaled", "the value by 2", with_value(op, lambda xp, y, x: y * 2)
    yield "sign", "of the value", with_value(op, lambda xp, y, x: -y)
    if op.kind == "elementwise" and all(-2.0 in d for d in op.domain):
        yield "somewhere", "the value by 1 + 1e-6 at x < -1", with_value(
            op, lambda xp, y, x: y * (1 + 1e-6 * np.less(x, -1)) if xp is numeric else y)
        yield "somewhere", "the value's sign at x < -1", with_value(op, lambda xp, y, x: y * np.where(np.less(x, -1), -1, 1) if xp is numeric else y)


def _cotangents(op):
    for i in arguments(op):
        if zero(op, i):
            yield "added", f"1e-6 g to cotangent {i}, which is 0", with_cotangent(op, i, lambda xp, c, g, x: 1e-6 * g)
            continue
        yield "scaled", f"cotangent {i} by 1 + 1e-6", with_cotangent(op, i, lambda xp, c, g, x: c * SLIGHTLY)
        yield "scaled", f"cotangent {i} by 2", with_cotangent(op, i, lambda xp, c, g, x: c * 2)
        yield "sign", f"of cotangent {i}", with_cotangent(op, i, lambda xp, c, g, x: -c)
        yield "dropped", f"cotangent {i}", with_cotangent(op, i, lambda xp, c, g, x: None)
        if op.kind == "elementwise" and -2.0 in op.domain[i] and not flat_below(op):
            yield "somewhere", f"cotangent {i} by 1 + 1e-6 at x < -1", with_cotangent(
                op, i, lambda xp, c, g, x: c * (1 + 1e-6 * np.less(x, -1)) if xp is numeric else c)


def _tangents(op):
    every = [i for i in arguments(op) if not zero(op, i)]
    if not every:
        yield "added", "1e-6 t to the tangent, which is 0", mutated(op, jvp=lambda xp, tangents, y, args: 1e-6 * tangents[0])
        return
    yield "scaled", "the tangent by 1 + 1e-6", with_tangent(op, lambda xp, t: t * SLIGHTLY)
    yield "scaled", "the tangent by 2", with_tangent(op, lambda xp, t: t * 2)
    yield "sign", "of the tangent", with_tangent(op, lambda xp, t: -t)
    for i in every:
        yield "dropped", f"tangent {i}", with_tangents(op, lambda ts, i=i: [None if k == i else t for k, t in enumerate(ts)])


def _both(op):
    """Pullback and pushforward wrong in the same way, so that they are still each other's adjoint."""
    for i in arguments(op):
        if zero(op, i):
            continue
        for what, factor in (("by 1 + 1e-6", SLIGHTLY), ("by -1", -1)):
            wrong = with_cotangent(op, i, lambda xp, c, g, x, factor=factor: c * factor)
            pushed = with_tangents(op, lambda ts, i=i, factor=factor: [t * factor if k == i and t is not None else t for k, t in enumerate(ts)])
            yield "both scaled", f"derivative {i} {what}, in pullback and pushforward", mutated(op, vjp=wrong.vjp, jvp=pushed.jvp)


def _exchanged(op):
    """Two arguments, two cotangents or two tangents taken for each other."""
    for i, j in itertools.combinations(arguments(op), 2):
        def turned(found, i=i, j=j):
            out = list(found)
            out[i], out[j] = out[j], out[i]
            return tuple(out)

        def vjp(xp, g, y, args, needs, turned=turned):
            return turned(op.vjp(xp, g, y, args, (True,) * len(needs)))

        yield "exchanged", f"cotangents {i} and {j}", mutated(op, vjp=vjp)
        yield "exchanged", f"tangents {i} and {j}", with_tangents(op, turned)
        if not constant(op):
            read = lambda xp, g, y, args, turned=turned: (y, turned(args))
            yield "exchanged", f"arguments {i} and {j}, in the pullback", with_arguments(op, read)
            yield "exchanged", f"arguments {i} and {j}, in the pushforward", with_arguments(op, read, vjp=False, jvp=True)


def _places(op):
    """Cotangents of the right numbers at wrong places, or of another shape."""
    if op.kind == "elementwise":
        return
    def flipped(xp, c, g, x):
        return xp.flip(c, tuple(range(len(c.shape)))) if c.shape else c

    for i in arguments(op):
        if rank(op, i):
            yield "misplaced", f"cotangent {i} backwards", with_cotangent(op, i, flipped)
            yield "shape", f"cotangent {i} summed to one number", with_cotangent(
                op, i, lambda xp, c, g, x: xp.sum(c, tuple(range(len(c.shape))), False))
        if rank(op, i) > 1:
            yield "misplaced", f"cotangent {i} transposed", with_cotangent(
                op, i, lambda xp, c, g, x: xp.permute(c, tuple(reversed(range(len(c.shape))))))
        if not node_class(op).broadcasts:  # else the engine sums a cotangent down to its argument, be that stretched or not
            yield "shape", f"cotangent {i} with one more axis", with_cotangent(op, i, lambda xp, c, g, x: xp.reshape(c, (1, *c.shape)))


def _unbroadcast(op):
    """A cotangent of a stretched argument of which one slice is taken, or the mean, where the sum belongs."""
    if op.kind != "elementwise" and op.name != "where" or len(arguments(op)) < 2:
        return

    def slices(xp, c, g, x):
        if c is None or tuple(c.shape) == tuple(x.shape):
            return c
        lead = len(c.shape) - len(x.shape)
        return xp.getitem(c, (*(0,) * lead, *(slice(0, 1) if n == 1 else slice(None) for n in x.shape)))

    def mean(xp, c, g, x):
        if c is None or tuple(c.shape) == tuple(x.shape):
            return c
        return xp.sum_to_size(c, tuple(x.shape)) / (int(np.prod(c.shape)) / max(1, int(np.prod(x.shape))) or 1)

    def wide(xp, c, g, x):
        return c if c is None or tuple(c.shape) == tuple(x.shape) else xp.reshape(c, (1, *c.shape))

    for i in arguments(op):
        if not zero(op, i):
            yield "unbroadcast", f"cotangent {i}: the first slice for the sum", with_cotangent(op, i, slices)
            yield "unbroadcast", f"cotangent {i}: the mean for the sum", with_cotangent(op, i, mean)


def _conjugates(op):
    """A pullback that reads complex arguments without conjugation."""
    if constant(op):
        return

    def plain(xp, g, y, args):
        if not _is_complex(g):
            return y, args
        return _conjugate(xp, y), tuple(_conjugate(xp, a) for a in args)

    yield "conjugate", "the pullback reads arguments that are not conjugated", with_arguments(op, plain)


def _is_complex(x):
    return getattr(getattr(x, "dtype", None), "kind", "") == "c" or bool(getattr(getattr(x, "dtype", None), "is_complex", False))


def _conjugate(xp, x):
    return xp.conj(x) if _is_complex(x) else x


def _detached(op):
    """Rules that are right in value, and of which one factor has lost what it depends on."""
    def still(x):
        return x.detach() if isinstance(x, Tensor) else x

    if all(zero(op, i) for i in arguments(op)):
        return
    if not constant(op):
        for i in arguments(op):
            if not zero(op, i):
                yield "detached", f"argument {i} in the pullback", with_arguments(
                    op, lambda xp, g, y, args, i=i: (still(y), tuple(still(a) if k == i else a for k, a in enumerate(args))) if xp is traced
                    else (y, args))
                yield "detached", f"cotangent {i} depends on x more than it should", with_cotangent(
                    op, i, lambda xp, c, g, x: c + (x - x.detach()) if xp is traced and c is not None and _fits(x, c) else c)
        yield "detached", "the whole pullback", with_arguments(op, lambda xp, g, y, args: (still(y), tuple(map(still, args))))

    def loose(xp, g, y, args, needs):
        return op.vjp(xp, still(g), y, args, needs)

    yield "detached", "the cotangent in the pullback", mutated(op, vjp=loose)
    yield "detached", "the tangents in the pushforward", with_tangents(op, lambda ts: [still(t) for t in ts])
    if not constant(op):
        yield "detached", "the whole pushforward", with_arguments(op, lambda xp, t, y, args: (still(y), tuple(map(still, args))), vjp=False, jvp=True)


def _fits(x, c):
    """Whether an array broadcasts to the shape of a cotangent."""
    lead = len(c.shape) - len(x.shape)
    return lead >= 0 and all(n in (1, m) for n, m in zip(x.shape, c.shape[lead:]))


def _careless(op):
    """Rules that are right as long as nobody looks at memory, dtypes, or the size of a cotangent; derivatives get their dtypes from the engine."""
    places = [i for i in arguments(op) if not zero(op, i)]

    def grown(xp, c, g, x):
        return c if c is None else c + 1e-6 * xp.abs(c)

    for i in places[-1:]:
        yield "nonlinear", f"cotangent {i} plus a millionth of its size", with_cotangent(op, i, grown)
    for i in [i for i in places if rank(op, i)][-1:]:
        yield "layout", f"cotangent {i} off where the argument is not contiguous", with_cotangent(
            op, i, lambda xp, c, g, x: c * SLIGHTLY if c is not None and _is_scattered(x) else c)
    if not vanishes(op):
        yield "layout", "the value off where the argument is not contiguous", with_value(
            op, lambda xp, y, x: y * SLIGHTLY if _is_scattered(x) else y)
    yield "dtype", "the value in double precision", with_value(op, lambda xp, y, x: _doubled(xp, y))

    def doubling(xp, y, x):
        if isinstance(x, np.ndarray) and x.flags.writeable and not op.view:
            y = np.array(y)
            x *= np.asarray(2, x.dtype)
        return y

    def vjp(xp, g, y, args, needs):
        if not isinstance(g, np.ndarray) or not g.flags.writeable:
            return op.vjp(xp, g, y, args, needs)
        out = op.vjp(xp, g.copy(), y, args, needs)
        g *= 2
        return out

    if not op.view and not any(d.name == "BOOLEAN" for d in op.domain):
        yield "memory", "the argument is doubled in place", with_value(op, doubling)
    if arguments(op):
        yield "memory", "the cotangent is doubled in place", mutated(op, vjp=vjp)


def _is_scattered(x):
    return isinstance(x, np.ndarray) and x.ndim > 0 and not x.flags.c_contiguous


def _doubled(xp, x):
    return x.astype(np.float64) if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "f" else x
