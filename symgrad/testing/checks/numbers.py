"""Checks of an op's results against the reference, at special points, against the rules in many digits, by a proof, as formulas, and compiled."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers.duck import Unrecordable
from symgrad.compiled.function import CompiledFunction, compile
from symgrad.diagnose.kinks.switches import hull_distance
from symgrad.dtypes.ulp import ulp_of
from symgrad.engine.tensor import Tensor, wrap
from symgrad.factories.creation import tensor
from symgrad.frameworks.adapter import Array, Arrays, NotApplicable, is_active
from symgrad.func.transforms import grad
from symgrad.proofs.prove import prove
from symgrad.reference.tensors import RuleReference
from symgrad.testing.attack import Attack, When
from symgrad.testing.checks.base import ORDINALS, Sides, agree_at, check, reason_without_order
from symgrad.testing.checks.measuring import compare
from symgrad.testing.checks.memory import size_of
from symgrad.testing.claimed import special_points
from symgrad.testing.examples import Example, only_tangent
from symgrad.testing.failure import Wrong, counted
from symgrad.trees import flatten


def _applies_to_rules(attack: Attack) -> str:
    op = attack.subject.op
    if op is None or op.kind == "composite":
        return "its rules are not known; it is no op of the registry"
    return attack.of_complex


@check("digits", when=_applies_to_rules)
def check_digits(attack: Attack, example: Example) -> None:
    """The value, the pullback and the pushforward agree with the same rules evaluated with a hundred digits."""
    replay = RuleReference(attack.subject.op, attack.claims.parameters, attack.elementwise)
    xs, g, ts = example.xs, example.cotangent, example.tangents[0]
    try:
        value = replay.value(xs)
        pulled, pushed = (replay.gradient(xs, g), replay.tangent(xs, ts)) if attack.order else ([], None)
    except (ArithmeticError, ValueError, mpmath.libmp.NoConvergence):  # raised for single elements that cannot be computed with many digits
        return
    compare(attack, "the value", attack.subject.value(xs), value, xs, of=replay)
    for i, (got, true) in enumerate(zip(attack.subject.gradient(xs, g), pulled) if attack.order else ()):
        if true is not None:
            compare(attack, "the gradient", got, true, xs, i, g, wrt=(i,), of=replay)
    if pushed is not None:
        compare(attack, "the tangent", attack.subject.tangent(xs, ts), pushed, xs, None, None, ts, of=replay)


@check("proof", most=1, when=lambda attack: (
    f"the profile {attack.profile.name} has no proofs" if not attack.profile.effort else
    _applies_to_rules(attack) or ("" if attack.subject.op.differentiable else "it has no derivative")))
def check_proof(attack: Attack, example: Example) -> None:
    """`symgrad.prove` does not refute the rules: their formulas equal SymPy's derivatives wherever they were compared.

    >>> import symgrad
    >>> check_proof(symgrad.tanh, profile="ci").verdict
    'passed'
    """
    op = attack.subject.op
    proof = vars(attack).setdefault("_proof", None) or prove(op, min(2, attack.order), complex=False, effort=attack.profile.effort)
    vars(attack)["_proof"] = proof
    counted(len(proof.statements))
    for s in proof.statements:
        if s.verdict == "refuted":
            point = ", ".join(f"{name} = {value}" for name, value in (s.point or {}).items())
            difference = "" if s.difference is None else f"; what it gives is too large by {s.difference}"
            raise Wrong(f"the rule {s.what} is refuted{f' at {point}' if point else ''}{difference}", s.claim, s.truth, order=s.order,
                        exact="the derivative by SymPy")


MAX_PLACES = 2  # elements of the arguments of an elementwise op
ELEMENTWISE_ORDERS = 3  # the highest order whose formulas are read, for an elementwise op
ARRAY_ORDERS = 2  # the same for an op on arrays, whose formulas grow with the number of elements


@check("formulas", most=1, when=lambda attack: "" if attack.subject.op is not None else "its rules are not known; it is no op of symgrad")
def check_formulas(attack: Attack, example: Example) -> None:
    """Where the value has a formula, so have the pullback and its pullback: a rule works with numbers and with expressions.

    A rule that uses a boolean as a number gives numeric gradients, but no expressions. The check applies to ops that are declared by rules.
    """
    subject, g = attack.subject, example.cotangent
    xs = list(example.xs)
    if attack.elementwise:
        xs, g = [x.ravel()[:MAX_PLACES] for x in xs], g.ravel()[:MAX_PLACES]
    leaves = [tensor(x, symbol=name, requires_grad=is_active(x)) for name, x in zip(attack.inputs(xs), xs)]
    value = subject.call(leaves)
    try:
        if value.expr is None:
            raise NotApplicable("its value has no formula")
    except (TypeError, ValueError, NotImplementedError, AttributeError, RuntimeError) as error:
        raise NotApplicable(f"its value has no formula: {str(error)[:160]}") from error
    places = [i for i, x in enumerate(xs) if is_active(x)]
    found: Sequence[Any] = [value]
    last = min(attack.order, ELEMENTWISE_ORDERS if attack.elementwise else ARRAY_ORDERS)
    for order in range(1, last + 1):
        cotangents = [tensor(g if order == 1 else np.ones(v.shape)) for v in found]
        gradients = subject.grad(found, [leaves[i] for i in places], cotangents, order < last)
        found = [c for c in gradients if c is not None]
        for i, c in zip(places, gradients):
            try:
                counted(c is not None)
                _ = c if c is None else c.expr
            except Exception as error:  # SymPy may raise anything for what a rule passes to it
                raise Wrong(f"the derivative has no formula, though the value has one ({type(error).__name__}: {error})", order=order,
                            wrt=(i,)) from error


KINDS = ("points", "broadcast", "scalars", "empty")


def compiled_derivatives(attack: Attack, example: Example, backend: str = "numpy", order: int = 2) -> list[tuple[str, int, Any, CompiledFunction]]:
    """The op at an example, its gradient and its second derivative: each with its name, its order, as a function of the arguments, and compiled."""
    places = tuple(i for i, x in enumerate(example.xs) if is_active(x))
    weights, subject = wrap(example.cotangent), attack.subject  # a program watches what a function refers to, and an attack remembers much

    def value(*tensors: Tensor) -> Any:
        return subject.call(list(tensors))

    def weighted(*tensors: Tensor) -> Any:
        return (value(*tensors) * weights).sum()

    def of_gradient(*tensors: Tensor) -> Any:
        return sum([c.sum() for c in grad(weighted, places)(*tensors)], wrap(np.zeros((), example.cotangent.dtype)))

    functions = [("value", value), ("gradient", grad(weighted, places)), ("second derivative", grad(of_gradient, places))]
    real = places and all(x.dtype.kind != "c" for x in (*example.xs, example.cotangent))
    return [(name, k, function, compile(function, derivatives="value", backend=backend))
            for k, (name, function) in enumerate(functions[:1 + min(attack.order, order) if real else 1])]


@check("compiled", most=1, when=lambda attack: "it is no function of symgrad" if attack.subject.framework != "symgrad" else
       "it is random" if attack.claims.random else "")
def check_compiled(attack: Attack, example: Example) -> None:
    """The op and its first two derivatives give the same when they are compiled, at other arguments of the shapes, too.

    The check does not apply to random ops, to ops that cannot be compiled, and to other frameworks.
    """
    others = [e for kind in KINDS[1:] if attack.elementwise for e in attack.examples(kind)[:1]]
    reasons, made = [], 0
    for at in (example, *others):
        for name, order, function, compiled in compiled_derivatives(attack, at):
            try:
                compiled(*map(wrap, at.xs))  # so that the next call runs what this one has recorded
            except Unrecordable as error:
                reasons.append(str(error))
            if not compiled.report.programs:  # it runs as the function itself does
                reasons += [row["reason"] for row in compiled.report.uncompiled]
                continue
            made += 1

            def sides(xs: Arrays, name: str = name, order: int = order, function: Any = function, compiled: Any = compiled) -> list[Sides]:
                pairs = zip(_arrays(compiled(*map(wrap, xs))), _arrays(function(*map(wrap, xs))))
                return [Sides(f"the compiled {name} is not that of the op", a, b, size_of(attack, b), order, (), True) for a, b in pairs]

            agree_at(at, lambda xs, *rest, sides=sides: sides(xs))
    if not made:
        raise NotApplicable(f"it is not compiled: {reasons[0] if reasons else 'its calls may have effects'}")


def _arrays(tree: Any) -> Sequence[Array]:
    return [np.asarray(y._value if isinstance(y, Tensor) else y) for y in flatten(tree)[0]]


MAX_THIRD_EXAMPLES = 16  # examples at which third derivatives are checked; those with edges come first


def applies_with_reference(attack: Attack) -> str:
    """A check for ops with a reference."""
    if attack.claims.formula is not None and attack.of_complex:
        return f"{attack.of_complex}; the check `complex` compares it with the formula"
    return "" if attack.truth is not None else "nothing is claimed of it that it could be compared with; give a formula"


def _applies_up_to_order(order: int) -> When:
    return lambda attack: reason_without_order(attack, order) or applies_with_reference(attack)


@check("value", when=applies_with_reference)
def check_value(attack: Attack, example: Example) -> None:
    """The value is that of the formula.

    >>> import symgrad
    >>> check_value(symgrad.tanh).verdict
    'passed'
    """
    compare(attack, "the value", attack.subject.value(example.xs), attack.truth.value(example.xs), example.xs)


def _compare_gradient(attack: Attack, example: Example, *tangents: Sequence[np.ndarray | None], wrt: tuple[int, ...] = ()) -> None:
    xs, g = example.xs, example.cotangent
    for i, (got, true) in enumerate(zip(attack.subject.gradient(xs, g, *tangents), attack.truth.gradient(xs, g, *tangents))):
        if true is not None:
            compare(attack, f"the {ORDINALS[len(tangents) + 1]}", got, true, xs, i, g, *tangents, wrt=(*wrt, i))


@check("pullback", when=_applies_up_to_order(1))
def check_pullback(attack: Attack, example: Example) -> None:
    """The pullback of a cotangent is that of the formula."""
    _compare_gradient(attack, example)


@check("pushforward",
       when=lambda attack: applies_with_reference(attack) if attack.subject.forward and attack.order else "it has no pushforward")
def check_pushforward(attack: Attack, example: Example) -> None:
    """The pushforward of tangents is that of the formula."""
    xs, ts = example.xs, example.tangents[0]
    compare(attack, "the tangent", attack.subject.tangent(xs, ts), attack.truth.tangent(xs, ts), xs, None, None, ts)


def _compare_along(attack: Attack, example: Example, count: int) -> None:
    """Compare the gradients along so many tangents: those of every choice of arguments, for an elementwise op."""
    sets = example.tangents[:count]
    if not attack.elementwise:
        _compare_gradient(attack, example, *sets)
    elif count < 2 or not attack.subject.compiles or example.cotangent.ndim == 1:  # every shape is compiled for, so only vectors are checked
        for chosen in itertools.combinations_with_replacement([i for i, x in enumerate(example.xs) if is_active(x)], count):
            _compare_gradient(attack, example, *map(only_tangent, sets, chosen), wrt=chosen)


@check("second", when=_applies_up_to_order(2))
def check_second(attack: Attack, example: Example) -> None:
    """The gradient of the gradient, along a tangent of each argument, is that of the formula."""
    _compare_along(attack, example, 1)


@check("third", when=_applies_up_to_order(3), most=MAX_THIRD_EXAMPLES)
def check_third(attack: Attack, example: Example) -> None:
    """The third derivatives, along tangents of every two arguments, are those of the formula."""
    _compare_along(attack, example, 2)


KINK_DISTANCE = 1e-9  # distance of the points next to a kink at which derivatives are taken
STEEP = 1e4


@check("special", draws="special", when=lambda attack: "" if special_points(attack) else "it has no special points")
def check_special(attack: Attack, example: Example) -> None:
    """At every special point value and derivatives up to the second are finite, and the gradient is a valid (sub)gradient.

    It is the gradient claimed with the point; otherwise the reference, if there is one; otherwise it lies between the derivatives on both sides,
    or in the convex hull of the gradients nearby for several arguments. At an end of the domain derivatives may be infinite. Where the gradient
    is finite, so is the pushforward; that they are adjoint is another check.
    """
    xs, subject = example.xs, attack.subject
    ones = np.ones(example.cotangent.shape)

    def finite(what: str, got: Any, order: int, wrt: tuple[int, ...] = ()) -> None:
        counted(np.size(got))
        if got is not None and not np.all(np.isfinite(np.asarray(got).astype(np.float64))):
            raise Wrong(f"{what} is not finite at a special point", got, order=order, wrt=wrt)

    finite("the value", subject.value(xs), 0)
    if not attack.order:
        return
    gradient = subject.gradient(xs, ones)
    agreed = {tuple(map(float, point)): g for point, g in special_points(attack) if g is not None}
    points = [tuple(map(float, p)) for p in zip(*(np.broadcast_to(x, ones.shape).ravel().tolist() for x in xs))]
    ends = np.array([any(x + s * KINK_DISTANCE not in d for x, d in zip(p, attack.domains) for s in (1, -1) if x in d) for p in points], bool)
    true = attack.truth.gradient(xs, ones) if attack.truth is not None else [None] * len(xs)
    for place, point in enumerate(points):
        at = tuple(map(int, np.unravel_index(place, ones.shape))) if ones.shape else ()
        got = [0.0 if g is None else float(g[at]) for g in gradient]
        if point in agreed:
            for i, (a, b) in enumerate(zip(got, np.ravel(agreed[point]).astype(np.float64).tolist())):
                if not (a == b or ulp_of("float64").error(a, b) <= 8):
                    raise Wrong("the gradient is not the one that is agreed on", a, b, index=at, order=1, wrt=(i,),
                                exact="the gradient claimed with the point")
        elif attack.elementwise and not ends[place] and any(t is not None and t[at] is None for t in true):
            _check_in_hull(attack, xs, point, got, at)
    for i, (g, t) in enumerate(zip(gradient, true)):
        if t is not None:
            known = np.array([None if p in agreed else v for p, v in zip(points, t.ravel().tolist())], object).reshape(t.shape)
            compare(attack, "the gradient", g, known, xs, i, ones, wrt=(i,))
    active = [i for i, x in enumerate(xs) if is_active(x)]
    units = {a: only_tangent([np.ones(x.shape) for x in xs], a) for a in active}
    for a in active if subject.forward else ():
        if gradient[a] is None or np.all(np.isfinite(np.asarray(gradient[a]).astype(np.float64))):
            with contextlib.suppress(NotApplicable):
                finite("the tangent", subject.tangent(xs, units[a]), 1, (a,))
    if attack.order > 1:
        kinked = np.array([point in agreed for point in points])  # where the gradient is a convention, which may have an infinite derivative
        for a in active:
            for i, second in enumerate(subject.gradient(xs, ones, units[a])):
                inner = None if second is None else np.where((ends | kinked).reshape(ones.shape), 0.0, np.asarray(second, np.float64))
                finite("the second derivative", inner, 2, (a, i))


def _check_in_hull(attack: Attack, xs: Any, point: tuple[float, ...], got: list[float], at: tuple[int, ...]) -> None:
    active = [i for i, x in enumerate(xs) if is_active(x)]
    around = []
    for signs in itertools.product((1, -1, 2, -2), repeat=len(active)):
        moved = list(point)
        for i, s in zip(active, signs):
            moved[i] += s * KINK_DISTANCE * max(abs(point[i]), 1.0)
        near = attack.truth.gradient([np.asarray(m, x.dtype) for m, x in zip(moved, xs)], np.ones(()))
        row = [near[i].item() for i in active]
        if any(d is not None and abs(d) > STEEP for d in row):
            return  # a pole
        if all(d is not None for d in row):
            around.append(np.array([float(d) for d in row]))
    if not around:
        return
    hull, own = np.array(around), np.array([got[i] for i in active])
    if not np.isfinite(own).all() or hull_distance(around, own) > 1e-6 * max(1.0, float(np.max(np.abs(hull)))):
        raise Wrong(f"the gradient is no mean of those around the point, which go from {hull.min(0).tolist()} to {hull.max(0).tolist()}", own,
                    index=at, order=1, wrt=tuple(active), exact=attack.truth.exact)
