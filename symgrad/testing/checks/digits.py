"""Checks of an op's rules: in many digits, by a proof, as formulas, and compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.compiled.function import CompiledFunction, compile
from symgrad.engine.tensor import Tensor, wrap
from symgrad.factories.creation import tensor
from symgrad.frameworks.adapter import Array, Arrays, NotApplicable, is_active
from symgrad.func.transforms import grad
from symgrad.proofs.prove import prove
from symgrad.reference.tensors import RuleReference
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import check
from symgrad.testing.checks.comparing import Sides, agree_at
from symgrad.testing.checks.measuring import compare
from symgrad.testing.checks.memory import size_of
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong
from symgrad.trees import flatten

__all__ = ["check_compiled", "check_digits", "check_formulas", "check_proof", "compiled_derivatives"]


def _applies_to_rules(attack: Attack) -> str:
    """A check for registered ops, whose rules are known."""
    op = attack.subject.op
    if op is None or op.kind == "composite":
        return "its rules are not known; it is no op of the registry"
    return attack.of_complex


@check("digits", when=_applies_to_rules)
def check_digits(attack: Attack, example: Example) -> None:
    """The value, the pullback and the pushforward agree with the same rules evaluated with a hundred digits.

    >>> import symgrad
    >>> check_digits(symgrad.tanh).verdict
    'passed'
    """
    replay = RuleReference(attack.subject.op, attack.claims.parameters, attack.elementwise)
    xs, g, ts = example.xs, example.cotangent, example.tangents[0]
    try:
        value = replay.value(xs)
        pulled, pushed = (replay.gradient(xs, g), replay.tangent(xs, ts)) if attack.order else ([], None)
    except (ArithmeticError, ValueError, mpmath.libmp.NoConvergence):  # raised for single elements that cannot be computed with many digits
        return
    compare(attack, "the value", attack.subject.value(xs), value, xs, of=replay)
    if attack.order:
        for i, (got, true) in enumerate(zip(attack.subject.gradient(xs, g), pulled)):
            if true is not None:
                compare(attack, "the gradient", got, true, xs, i, g, wrt=(i,), of=replay)
        assert pushed is not None
        compare(attack, "the tangent", attack.subject.tangent(xs, ts), pushed, xs, None, None, ts, of=replay)


def _applies_to_provable(attack: Attack) -> str:
    """A check for ops with rules, if the profile has time for proofs."""
    if not attack.profile.seconds:
        return f"the profile {attack.profile.name} has no time for proofs"
    return _applies_to_rules(attack) or ("" if attack.subject.op.differentiable else "it has no derivative")


@check("proof", when=_applies_to_provable, most=1)
def check_proof(attack: Attack, example: Example) -> None:
    """`symgrad.prove` does not refute the rules: their formulas equal SymPy's derivatives wherever they were compared.

    >>> import symgrad
    >>> check_proof(symgrad.tanh, profile="ci").verdict
    'passed'
    """
    op = attack.subject.op
    proof = vars(attack).setdefault("_proof", None) or prove(op, min(2, attack.order), complex=False, seconds=attack.profile.seconds)
    vars(attack)["_proof"] = proof
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

    A rule that uses a boolean as a number gives numeric gradients, but no expressions. The check
    applies to ops that are declared by rules. Raises CheckFailure where a formula is missing.

    >>> import symgrad
    >>> check_formulas(symgrad.tanh).verdict
    'passed'
    """
    subject, g = attack.subject, example.cotangent
    xs = list(example.xs)
    if attack.elementwise:
        xs, g = [x.ravel()[:MAX_PLACES] for x in xs], g.ravel()[:MAX_PLACES]
    leaves = [tensor(x, symbol=name, requires_grad=is_active(x)) for name, x in zip(attack.inputs(xs), xs)]
    value = subject.call(leaves)
    try:
        known = value.expr is not None
    except (TypeError, ValueError, NotImplementedError, AttributeError, RuntimeError) as error:
        raise NotApplicable(f"its value has no formula: {str(error)[:160]}") from error
    if not known:
        raise NotApplicable("its value has no formula")
    places = [i for i, x in enumerate(xs) if is_active(x)]
    found: Sequence[Any] = [value]
    last = min(attack.order, ELEMENTWISE_ORDERS if attack.elementwise else ARRAY_ORDERS)
    for order in range(1, last + 1):
        cotangents = [tensor(g if order == 1 else np.ones(v.shape)) for v in found]
        gradients = subject.grad(found, [leaves[i] for i in places], cotangents, order < last)
        for i, c in zip(places, gradients):
            _check_formula(c, order, i)
        found = [c for c in gradients if c is not None]


def _check_formula(gradient: Any, order: int, place: int) -> None:
    """Raise `Wrong` where the formula of a derivative cannot be read."""
    if gradient is not None:
        try:
            gradient.expr  # noqa: B018
        except Exception as error:  # SymPy may raise anything for what a rule passes to it
            raise Wrong(f"the derivative has no formula, though the value has one ({type(error).__name__}: {error})", order=order,
                        wrt=(place,)) from error


KINDS = ("points", "broadcast", "scalars", "empty")


def compiled_derivatives(attack: Attack, example: Example, backend: str = "numpy", order: int = 2) -> list[tuple[str, int, Any, CompiledFunction]]:
    """The op at an example, its gradient and its second derivative: each with its name, its order, as a function of the arguments, and compiled."""
    places = tuple(i for i, x in enumerate(example.xs) if is_active(x))
    weights = wrap(example.cotangent)

    def value(*tensors: Tensor) -> Any:
        return attack.subject.call(list(tensors))

    def weighted(*tensors: Tensor) -> Any:
        return (value(*tensors) * weights).sum()

    def of_gradient(*tensors: Tensor) -> Any:
        return sum([c.sum() for c in grad(weighted, places)(*tensors)], wrap(np.zeros((), example.cotangent.dtype)))

    functions = [("value", value), ("gradient", grad(weighted, places)), ("second derivative", grad(of_gradient, places))]
    real = places and all(x.dtype.kind != "c" for x in (*example.xs, example.cotangent))
    return [(name, k, function, compile(function, derivatives="value", backend=backend))
            for k, (name, function) in enumerate(functions[:1 + min(attack.order, order) if real else 1])]


@check("compiled", most=2, when=lambda attack: "it is no function of symgrad" if attack.subject.framework != "symgrad" else
       "it is random" if attack.claims.random else "")
def check_compiled(attack: Attack, example: Example) -> None:
    """The op and its first two derivatives give the same when they are compiled, at other arguments of the shapes, too.

    The check does not apply to random ops, and to other frameworks. Raises CheckFailure where a compiled result differs.

    >>> import symgrad
    >>> check_compiled(symgrad.exp).verdict
    'passed'
    """
    others = [e for kind in KINDS for e in attack.examples(kind)[:1]]
    for at in (example, *others):
        for name, order, function, compiled in compiled_derivatives(attack, at):
            compiled(*map(wrap, at.xs))  # so that the next call runs what this one has recorded

            def sides(xs: Arrays, name: str = name, order: int = order, function: Any = function, compiled: Any = compiled) -> list[Sides]:
                pairs = zip(_arrays(compiled(*map(wrap, xs))), _arrays(function(*map(wrap, xs))))
                return [Sides(f"the compiled {name} is not that of the op", a, b, size_of(attack, b), order, (), True) for a, b in pairs]

            agree_at(at, lambda xs, *rest, sides=sides: sides(xs))


def _arrays(tree: Any) -> Sequence[Array]:
    return [np.asarray(y._value if isinstance(y, Tensor) else y) for y in flatten(tree)[0]]
