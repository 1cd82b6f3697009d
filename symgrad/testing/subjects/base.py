"""`Subject`: the interface to an op of any framework. It takes and returns arrays; only a subclass handles the framework's own values."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from symgrad.testing.claims import Claims
from symgrad.testing.failure import NotApplicable
from symgrad.testing.subjects.naming import import_path

__all__ = ["Array", "Arrays", "RecordingSubject", "Subject", "counted", "extra", "is_active", "real_unless_claimed"]

ONCE = "differentiate twice a function that was marked with @once_differentiable"  # the wording of torch and symgrad
Array = np.ndarray
Arrays = Sequence[np.ndarray]


def is_active(x: Any) -> bool:
    """Whether an argument is differentiated by: real and complex floats are, integers and booleans are not (bfloat16 has the kind V)."""
    return x.dtype.kind in "fcV"


def extra(module: str, op: str) -> Any:
    """A module of another framework. Raises ImportError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f"symgrad.testing: {op} is a function of {name}, which is not installed: pip install 'symgrad[parity]'") from error


def counted(count: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "value"), counted(2, "value")
    ('1 value', '2 values')
    """
    return f"{count} {what}{'s' * (count != 1)}"


def real_unless_claimed(claims: Claims) -> Claims:
    """The claims for an op of another framework: derivatives are for real numbers unless complex ones are claimed."""
    return claims.but(complex=False) if claims.complex is None else claims


class Subject:
    """An op under test in its framework; the checks use this interface only.

    `orders` is how often it can be differentiated, `forward` whether it has a pushforward, `memory` whether tensors of the framework are
    views of arrays, so that layouts, aliasing and mutation can be checked; `batches` whether the framework has a vmap;
    `compiles` whether it compiles for every shape, so that few are drawn; `subnormals` whether it keeps numbers below the smallest
    normal one, `pickled` whether functions of it can be pickled, `records` whether values record a graph.
    """

    framework = "numpy"
    op: Any = None  # the Op of symgrad whose rules are called, None for a function
    memory = True
    subnormals = True
    compiles = False
    pickled = True
    batches = False
    records = False
    dtypes: tuple[str, ...] = ("float64", "float32", "float16")
    layouts: tuple[str, ...] = ("strided", "backwards", "by columns", "read-only", "overlapping")

    def __init__(self, function: Any, claims: Claims, name: str):
        self.function, self.claims, self.name = function, claims, name
        self.parameters = claims.parameters
        self.orders = 3 if claims.order is None else claims.order
        self.forward = True

    def chosen(self, found: Any) -> Any:
        """The output that is checked, of a function with several. Raises TypeError if `output` is needed, and for a result that is no array."""
        if self.claims.output is not None:
            if not isinstance(found, (tuple, list)):
                raise TypeError(f"{self.name} returns one value, {type(found).__name__}; output={self.claims.output} chooses among several")
            if not -len(found) <= self.claims.output < len(found):
                raise IndexError(f"{self.name} returns {counted(len(found), 'value')}; output={self.claims.output} is none of them")
            found = found[self.claims.output]
        if isinstance(found, (tuple, list)):
            several = "say which one is meant, as in output=0" + (", or return an array of them" if isinstance(found, list) else "")
            raise TypeError(f"{self.name} returns {counted(len(found), 'value')} in a {type(found).__name__}; {several}")
        if found is None or isinstance(found, (str, bytes, dict, set)):
            raise TypeError(f"{self.name} returned {'None' if found is None else 'a ' + type(found).__name__}; expected an array or a number")
        return found

    def look(self, xs: Arrays) -> None:
        """Determine at one point what the op supports: the order of derivatives, unless it is claimed, and forward mode."""
        ones = [np.ones_like(x) if is_active(x) else None for x in xs]
        while self.claims.order is None and self.orders:
            try:
                self.gradient(xs, np.ones_like(self.value(xs)), *[ones] * (self.orders - 1))
                break
            except Exception as error:  # the checks report what a user's function raises
                if not self.refuses_order(error):
                    break
                self.orders -= 1
        try:
            self.tangent(xs, ones)
        except NotApplicable:
            self.forward = False
        except Exception:
            pass

    def refuses_order(self, error: Exception) -> bool:
        """Whether an error says that the op cannot be differentiated further, rather than that it is wrong."""
        return ONCE in str(error)

    def context(self) -> AbstractContextManager[Any]:
        """A context in which the framework's values keep their precision."""
        return nullcontext()

    # In the framework's own values

    def leaf(self, x: Array, differentiated: bool = True) -> Any:
        """An array as an argument, without a copy if the framework allows that. An inactive argument never requires grad."""
        raise NotImplementedError

    def call(self, leaves: Sequence[Any]) -> Any:
        """The op's result, in the framework's own values, with the further arguments appended."""
        raise NotImplementedError

    def array(self, value: Any) -> Array:
        """The framework's value as an array, without a copy if the framework allows that."""
        raise NotImplementedError

    def grad(self, values: Sequence[Any], leaves: Sequence[Any], cotangents: Sequence[Any], again: bool) -> Sequence[Any]:
        """The pullback of cotangents, None for an argument the values do not depend on; `again` if it is to be differentiated itself."""
        raise NotImplementedError

    def pushed(self, xs: Arrays, ts: Sequence[Array | None]) -> Any:
        """The tangent of the result, in the framework's own values; a tangent None is zero."""
        raise NotApplicable(f"{self.framework} functions have no pushforward here")

    # In arrays

    def value(self, xs: Arrays) -> Array:
        """The value, with its own dtype and shape."""
        return self.array(self.call([self.leaf(x, False) for x in xs]))

    def gradient(self, xs: Arrays, cotangent: Array, *tangents: Sequence[Array | None]) -> list[Array | None]:
        """The pullback of the cotangent; each further set of tangents adds one order: the gradient of Σ tangent * (previous gradient).

        With n sets of tangents these are derivatives of order n + 1. None is the gradient by an argument that the value does not depend on,
        and by an inactive one. `tangents` entries may be None for zero.
        """
        leaves = [self.leaf(x, is_active(x)) for x in xs]
        places = [i for i, x in enumerate(xs) if is_active(x)]
        active = [leaves[i] for i in places]
        values, seeds = [self.call(leaves)], [self.leaf(cotangent, False)]
        for k in range(len(tangents) + 1):
            found = self.grad(values, active, seeds, k < len(tangents))
            if k < len(tangents):
                pairs = [(c, self.leaf(t, False)) for c, i in zip(found, places) for t in [tangents[k][i]] if c is not None and t is not None
                         and self.differentiable(c)]
                values, seeds = [c for c, _ in pairs], [t for _, t in pairs]
                if not pairs:
                    return [None] * len(xs)
        return self.placed(found, places, len(xs))

    def placed(self, found: Sequence[Any], places: Sequence[int], count: int) -> list[Array | None]:
        """Gradients as arrays at their places among all arguments, None at the others."""
        out: list[Array | None] = [None] * count
        for i, c in zip(places, found):
            out[i] = None if c is None else self.array(c)
        return out

    def by_cotangent(self, xs: Arrays, cotangent: Array, ts: Sequence[Array | None]) -> Array | None:
        """The derivative of Σ t vjp(g) by the cotangent g, by a pullback of the pullback; None if it does not depend on g."""
        leaves = [self.leaf(x, is_active(x)) for x in xs]
        places = [i for i, x in enumerate(xs) if is_active(x)]
        g = self.leaf(cotangent, True)
        found = self.grad([self.call(leaves)], [leaves[i] for i in places], [g], True)
        pairs = [(c, self.leaf(t, False)) for c, i in zip(found, places) for t in [ts[i]]
                 if c is not None and t is not None and self.differentiable(c)]
        (out,) = self.grad([c for c, _ in pairs], [g], [t for _, t in pairs], False) if pairs else (None,)
        return None if out is None else self.array(out)

    def through_tangent(self, xs: Arrays, cotangent: Array, ts: Sequence[Array | None]) -> tuple[list[Array | None], list[Array | None]]:
        """The gradients of ⟨g, jvp(t)⟩ by the arguments, and by the tangents, by a pullback of the pushforward."""
        raise NotApplicable(f"pushforwards of {self.framework} functions are not pulled back here")

    def differentiable(self, value: Any) -> bool:
        """Whether a value of the framework requires grad."""
        return True

    def tangent(self, xs: Arrays, ts: Sequence[Array | None]) -> Array:
        """The pushforward of tangents."""
        return self.array(self.pushed(xs, ts))

    def batch(self, xs: Arrays, batched: Sequence[bool]) -> Array:
        """The op mapped over the first axis of some arguments by the framework's own vmap."""
        raise NotApplicable(f"{self.framework} functions are not mapped over batches here")

    def batch_gradient(self, xs: Arrays, cotangent: Array, batched: Sequence[bool]) -> list[Array | None]:
        """The pullback of a batch of cotangents through the op mapped by the framework's own vmap."""
        raise NotApplicable(f"{self.framework} functions are not differentiated over batches here")

    # Other ways to call it

    def import_path(self) -> tuple[str, str] | None:
        """Module and name under which the function can be imported, for reports; None if it cannot."""
        return import_path(self.function)


class RecordingSubject(Subject):
    """A function of a framework whose values record a graph and whose vmap is a function; subclasses define `mapped`."""

    batches = True
    records = True

    def mapped(self, leaves: Sequence[Any], batched: Sequence[bool]) -> Any:
        """The op mapped over the first axis of the batched arguments."""
        raise NotImplementedError

    def differentiable(self, value: Any) -> bool:
        return bool(value.requires_grad)

    def batch(self, xs: Arrays, batched: Sequence[bool]) -> Array:
        return self.array(self.mapped([self.leaf(x, False) for x in xs], batched))

    def batch_gradient(self, xs: Arrays, cotangent: Array, batched: Sequence[bool]) -> list[Array | None]:
        leaves = [self.leaf(x) for x in xs]
        places = [i for i, x in enumerate(xs) if is_active(x)]
        found = self.grad([self.mapped(leaves, batched)], [leaves[i] for i in places], [self.leaf(cotangent, False)], False)
        return self.placed(found, places, len(xs))
