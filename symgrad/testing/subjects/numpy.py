"""Subjects of NumPy: functions of arrays, with or without derivatives of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.testing.claims import Claims
from symgrad.testing.failure import NotApplicable
from symgrad.testing.subjects.base import Array, Arrays, Subject, counted, is_active, real_unless_claimed

__all__ = ["NumpySubject"]


class NumpySubject(Subject):
    """A function of NumPy.

    Its derivatives are `claims.pullback(g, *arrays)`, an array per argument (a single one may be bare, None is zero), or `claims.gradient(*arrays)`,
    the partial derivatives of an elementwise or number-valued function; and `claims.pushforward(ts, *arrays)`. The parameters
    come after the arrays. Without derivatives the order is 0.

    >>> subject = NumpySubject(np.sin, Claims(gradient=np.cos), "sin")
    >>> subject.value([np.zeros(1)]), subject.gradient([np.zeros(1)], np.full(1, 2.0)), subject.orders
    (array([0.]), [array([2.])], 1)
    """

    framework = "numpy"
    dtypes = ("float64", "float32", "float16")

    def __init__(self, function: Callable[..., Any], claims: Claims, name: str):
        brings = claims.pullback is not None or claims.gradient is not None
        super().__init__(function, real_unless_claimed(claims), name)
        self.orders = min(self.orders, 1) if brings else 0
        self.forward = claims.pushforward is not None

    def leaf(self, x: Array, differentiated: bool = True) -> Array:
        """The array itself."""
        return np.asarray(x)

    def call(self, leaves: Sequence[Any]) -> Any:
        """The result of the function."""
        found = self.chosen(self.function(*leaves, *self.parameters))
        return self._typed(found, leaves) if type(found) in (float, int) else found

    def _typed(self, number: Any, arrays: Arrays) -> Array:
        """A Python number as an array, with the dtype of the arrays."""
        floats = [x.dtype for x in arrays if is_active(x)]
        return np.asarray(number, np.result_type(*floats) if type(number) is float and floats else None)

    def array(self, value: Any) -> Array:
        """The result as an array."""
        out = np.asarray(value)
        if out.dtype.kind not in "fciubV":
            what = f"an array of {out.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
            raise TypeError(f"{self.name} returned {what}; expected a number or an array of numbers")
        return out

    def grad(self, values: Sequence[Any], leaves: Sequence[Any], cotangents: Sequence[Any], again: bool) -> Sequence[Any]:
        """Raises NotApplicable: NumPy does not record operations."""
        raise NotApplicable("an array of NumPy does not know what it was computed from")

    def gradient(self, xs: Arrays, cotangent: Array, *tangents: Sequence[Array | None]) -> list[Array | None]:
        """The claimed pullback, or the claimed partial derivatives times the cotangent, summed over the broadcast axes of an argument."""
        if tangents or not self.orders:
            raise NotApplicable("no gradient comes with it" if not self.orders else "what comes with it is the first derivative")
        if self.claims.pullback is not None:
            return self._one_each(self.claims.pullback(cotangent, *xs, *self.parameters), xs)
        assert self.claims.gradient is not None
        partials = self._one_each(self.claims.gradient(*xs, *self.parameters), xs)
        return [None if p is None else self._summed(cotangent * (np.conj(p) if p.dtype.kind == "c" else p), x) for p, x in zip(partials, xs)]

    def _one_each(self, found: Any, xs: Arrays) -> list[Array | None]:
        """An array per argument, None for inactive ones."""
        active = [i for i, x in enumerate(xs) if is_active(x)]
        if found is None:
            raise TypeError(f"the gradient of {self.name} returned None; expected {'an array' if len(xs) == 1 else 'an array for each argument'}")
        if not isinstance(found, (tuple, list)) or len(xs) == 1 and np.shape(found) == xs[0].shape != (1,):
            found = (found,)
        if len(found) not in (len(xs), len(active)):
            parts, arguments = counted(len(found), "part"), counted(len(xs), "argument")
            raise TypeError(f"the gradient of {self.name} has {parts} for {arguments}; expected one array for each")
        places = range(len(xs)) if len(found) == len(xs) else active
        out: list[Array | None] = [None] * len(xs)
        for i, c in zip(places, found):
            c = self._typed(c, [xs[i]]) if type(c) is float else c
            out[i] = None if c is None or i not in active else self.array(c)
        return out

    def _summed(self, c: Array, x: Array) -> Array:
        """The sum over broadcast axes, in the dtype of the argument."""
        c = np.asarray(c)
        if c.shape != x.shape:
            if np.broadcast_shapes(c.shape, x.shape) == x.shape:  # a constant derivative
                c = np.broadcast_to(c, x.shape)
            c = c.sum(axis=tuple(range(c.ndim - x.ndim)))
            c = c.sum(axis=tuple(k for k, size in enumerate(x.shape) if size == 1 != c.shape[k]), keepdims=True)
        return c if c.dtype == x.dtype else c.astype(x.dtype)

    def pushed(self, xs: Arrays, ts: Sequence[Array | None]) -> Any:
        """The claimed pushforward; a tangent that is None becomes zeros."""
        if self.claims.pushforward is None:
            raise NotApplicable("no pushforward comes with it")
        given = [np.zeros_like(x) if t is None and is_active(x) else t for x, t in zip(xs, ts)]
        return self.claims.pushforward(given, *xs, *self.parameters)
