"""Carriers of truncated Taylor series over another carrier: each of their functions follows from the pushforward of its op.

There are two: `SeriesCarrier` has series of any order, and `DualCarrier` those of order one, a value with its tangent, in half the time. The
functions of the protocol are defined here for both; each carrier defines how the pushforward of an op acts on coefficients (`apply`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from symgrad.carriers import PROTOCOL
from symgrad.graph.op import REGISTRY, Op

__all__ = ["TaylorCarrier", "with_defaults"]

# Functions whose name differs from that of the op with their pushforward.
OPS = {"copy": "clone", "conj": "conjugate", "matmul": "batched_matmul", "norm": "vector_norm", "astype": "to_copy", "fmod": "fmod_tensor"}


class TaylorCarrier:
    """The functions of the protocol on values of one `kind`, whose coefficients are values of the carrier `base`."""

    kind: ClassVar[type]

    def __init__(self, base: Any):
        self.base = base

    def apply(self, op: Op, tensors: Any, parameters: Any, call: Callable[..., Any] | None = None) -> Any:
        """The series of an op's value; `call` computes the op in the base carrier, if not by its forward rule."""
        raise NotImplementedError

    def primal(self, x: Any) -> Any:
        """The first coefficient of a series, or of each in a list; other values unchanged."""
        raise NotImplementedError

    def constant(self, value: Any) -> Any:
        """A constant as a series."""
        return value

    def __getattr__(self, name: str) -> Any:
        op = REGISTRY.get(OPS.get(name, name))
        if name not in PROTOCOL and (op is None or not hasattr(self.base, name)):
            raise AttributeError(f"{type(self).__name__} has no {name!r}: the protocol of the carriers has no such name")
        function = self._function(name, op, getattr(self.base, name))
        setattr(self, name, function)
        return function

    def _function(self, name: str, op: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the protocol, by its op."""
        apply, kind = self.apply, self.kind
        primal = self.primal
        if name in ("zeros_like", "ones_like", "eye_like"):
            return lambda x, *rest: self.constant(plain(primal(x), *rest))
        if op is None or op.jvp is None and op.kind != "composite":
            return lambda *args: plain(*map(primal, args))
        if name == "einsum":
            return lambda equation, xs: apply(op, xs, (equation,), lambda tensors, equation: plain(equation, tensors))
        if op.kind == "composite":
            return lambda *args: op.forward(self, *args) if any([type(a) is kind for a in args]) else plain(*args)
        if op.arity is None:
            return lambda xs, *rest: apply(op, xs, rest, plain)
        arity = op.arity
        return lambda *args: apply(op, args[:arity], args[arity:], plain) if any([type(a) is kind for a in args]) else plain(*args)


def with_defaults(op: Op, parameters: tuple) -> tuple:
    """All parameters of an op with their defaults, from those of a call."""
    return (*parameters, *(p.default for p in op.parameters[len(parameters):] if p.default is not p.empty))
