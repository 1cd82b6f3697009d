"""Checks of an op's rules: their results against the same rules evaluated with many digits, and their proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import precise
from symgrad.frameworks.adapter import is_active
from symgrad.proofs.prove import prove
from symgrad.testing.attack import Attack
from symgrad.testing.checks.base import check
from symgrad.testing.checks.measuring import compare
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong
from symgrad.testing.truths_quotients import number

__all__ = ["check_digits", "check_proof"]

DIGITS, MOST = 100, 800
Arrays = Sequence[np.ndarray]
Tangents = Sequence[np.ndarray | None]
Index = tuple[int, ...]


class _Replay:
    """A reference: the op's own rules evaluated with many digits."""

    def __init__(self, op: Any, parameters: tuple[Any, ...], elementwise: bool = False):
        self.op, self.parameters, self.elementwise = op, parameters, elementwise
        self.exact = f"the rule of {op.name}, read with {DIGITS} digits"

    def _cells(self, xs: Arrays) -> list[Any]:
        return [precise.lift_value(x) for x in xs]

    def _forward(self, cells: Sequence[Any]) -> Any:
        return precise.lift_value(self.op.forward(precise, *((tuple(cells),) if self.op.arity is None else cells), *self.parameters))

    def _pull(self, cells: Sequence[Any], g: Any) -> list[Any]:
        found = self.op.vjp(precise, g, self._forward(cells), (*cells, *self.parameters), (True,) * len(cells))
        return [precise.zeros_like(x) if c is None else c if c.shape == x.shape else precise.sum_to_size(c, x.shape) for c, x in zip(found, cells)]

    def _push(self, cells: Sequence[Any], ts: Sequence[Any]) -> Any:
        y = self._forward(cells)
        out = self.op.jvp(precise, ts, y, (*cells, *self.parameters))
        return precise.broadcast_to(precise.zeros_like(y) if out is None else out, y.shape)

    def value(self, xs: Arrays) -> np.ndarray:
        """The value."""
        with precise.working(DIGITS):
            return _numbers(self._forward(self._cells(xs)))

    def gradient(self, xs: Arrays, cotangent: np.ndarray) -> list[np.ndarray | None]:
        """The pullback."""
        with precise.working(DIGITS):
            found = self._pull(self._cells(xs), precise.lift_value(cotangent))
            return [_numbers(c) if is_active(x) else None for c, x in zip(found, xs)]

    def tangent(self, xs: Arrays, ts: Tangents) -> np.ndarray:
        """The pushforward."""
        with precise.working(DIGITS):
            return _numbers(self._push(self._cells(xs), _lifted(ts)))

    def certain(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        """One number with more digits; None if it is not finite."""
        xs, at, cotangent, tangents = self._alone(xs, at, cotangent, tangents)
        with precise.working(MOST):
            return _number(self._entry(wrt, at)(*self._inputs(xs, cotangent, tangents)))

    def condition(self, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Any:
        """Σ |input ∂ number / ∂ input|, by changing each input by 10⁻¹⁰ of itself, so that a variance of 0 changes, too."""
        xs, at, cotangent, tangents = self._alone(xs, at, cotangent, tangents)
        inputs, entry = self._inputs(xs, cotangent, tangents), self._entry(wrt, at)
        with precise.working(MOST):  # cancellation leaves few of them
            base, total = entry(*inputs), precise.context.zero
            for moved in _moved(inputs, 1 + precise.context.mpf(10) ** -10):
                total += abs(entry(*moved) - base)
            return number(total * precise.context.mpf(10) ** 10)

    def may_jump(self, xs: Arrays, at: Index, value: float, epsilon: float) -> bool:
        """A rule with a jump is evaluated as it is."""
        return False

    def _alone(self, xs: Arrays, at: Index, cotangent: np.ndarray | None, tangents: tuple[Tangents, ...]) -> tuple[Any, Index, Any, Any]:
        """The inputs that one element depends on, and its index among them: those at its place for an elementwise op, otherwise all."""
        if not self.elementwise or len({x.shape for x in xs}) > 1:
            return xs, at, cotangent, tangents

        def of(x: np.ndarray | None) -> np.ndarray | None:
            return None if x is None else np.asarray(x[at])

        return [of(x) for x in xs], (), of(cotangent), tuple([of(t) for t in ts] for ts in tangents)

    def _inputs(self, xs: Arrays, cotangent: np.ndarray | None, tangents: Sequence[Tangents]) -> tuple[list[Any], list[Any], list[Any]]:
        return self._cells(xs), [] if cotangent is None else [precise.lift_value(cotangent)], _lifted(tangents[0]) if tangents else []

    def _entry(self, wrt: int | None, at: Index) -> Callable[..., Any]:
        def entry(cells: list[Any], g: list[Any], ts: list[Any]) -> Any:
            found = self._pull(cells, g[0])[wrt] if wrt is not None else self._push(cells, ts) if ts else self._forward(cells)
            return found[at].item()

        return entry


def _lifted(ts: Tangents) -> list[Any]:
    return [None if t is None else precise.lift_value(t) for t in ts]


def _number(x: Any) -> Any:
    """A finite number, None for any other."""
    x = int(x) if isinstance(x, bool) else x
    return number(x) if precise.context.isfinite(x) else None


def _numbers(x: Any) -> np.ndarray:
    out = np.empty(x.size, object)
    out[:] = [_number(v) for v in x.ravel().tolist()]
    return out.reshape(x.shape)


def _moved(inputs: tuple[list[Any], ...], factor: Any) -> Iterator[tuple[list[Any], ...]]:
    """The inputs with one number scaled, for each number in turn."""
    for part, group in enumerate(inputs):
        for i, x in enumerate(group):
            if x is None:
                continue
            for place, v in enumerate(x.ravel().tolist()):
                if v and not isinstance(v, bool):
                    changed = x.copy()
                    changed.reshape((-1,)).view(np.ndarray)[place] = v * factor
                    yield tuple([*g[:i], changed, *g[i + 1:]] if k == part else g for k, g in enumerate(inputs))


def _rules(attack: Attack) -> str:
    """A check for registered ops, whose rules are known."""
    op = attack.subject.op
    if op is None or op.kind == "composite":
        return "its rules are not known; it is no op of the registry"
    return attack.of_complex


@check("digits", when=_rules)
def check_digits(attack: Attack, example: Example) -> None:
    """The value, the pullback and the pushforward agree with the same rules evaluated with a hundred digits.

    >>> import symgrad
    >>> check_digits(symgrad.tanh).verdict
    'passed'
    """
    replay = _Replay(attack.subject.op, attack.claims.parameters, attack.elementwise)
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


def _provable(attack: Attack) -> str:
    """A check for ops with rules, if the profile has time for proofs."""
    if not attack.profile.seconds:
        return f"the profile {attack.profile.name} has no time for proofs"
    return _rules(attack) or ("" if attack.subject.op.differentiable else "it has no derivative")


@check("proof", when=_provable, most=1)
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
