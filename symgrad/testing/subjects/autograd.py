"""Subjects of HIPS autograd: functions of its NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.testing.claims import Claims
from symgrad.testing.failure import NotApplicable
from symgrad.testing.subjects.base import Array, Arrays, Subject, extra, is_active, real_unless_claimed

__all__ = ["AutogradSubject"]


class AutogradSubject(Subject):
    """A function of HIPS autograd, differentiated by nested `autograd.make_vjp`, forward by `autograd.make_jvp`."""

    framework = "autograd"

    def __init__(self, function: Callable[..., Any], claims: Claims, name: str):
        super().__init__(function, real_unless_claimed(claims), name)
        self.autograd = extra("autograd", name)
        self.tuple = extra("autograd.builtins", name).tuple

    def leaf(self, x: Array, differentiated: bool = True) -> Array:
        """The array itself."""
        return np.asarray(x)

    def call(self, leaves: Sequence[Any]) -> Any:
        """The result of the function."""
        return self.chosen(self.function(*leaves, *self.parameters))

    def array(self, value: Any) -> Array:
        """The result as an array."""
        return np.asarray(value)

    def grad(self, values: Sequence[Any], leaves: Sequence[Any], cotangents: Sequence[Any], again: bool) -> Sequence[Any]:
        """Raises NotApplicable: autograd differentiates functions."""
        raise NotApplicable("autograd differentiates functions, not values")

    def _of_some(self, xs: Arrays, places: Sequence[int]) -> Callable[[Any], Any]:
        def function(some: Any) -> Any:
            given = list(xs)
            for k, i in enumerate(places):
                given[i] = some[k]
            return self.call(given)

        return function

    def gradient(self, xs: Arrays, cotangent: Array, *tangents: Sequence[Array | None]) -> list[Array | None]:
        """The pullback of the cotangent by `make_vjp`, and the pullback of each further set of tangents through the previous one."""
        places = [i for i, x in enumerate(xs) if is_active(x)]
        level = self._pulled(self._of_some(xs, places), cotangent)
        for ts in tangents:
            level = self._pulled(level, self.tuple(tuple(np.zeros_like(xs[i]) if ts[i] is None else ts[i] for i in places)))
        return self.placed(level(self.tuple(tuple(xs[i] for i in places))), places, len(xs))

    def _pulled(self, function: Callable[[Any], Any], cotangent: Any) -> Callable[[Any], Any]:
        """The pullback of a cotangent as a function of the arguments."""
        return lambda some: self.autograd.make_vjp(function)(some)[0](cotangent)

    def pushed(self, xs: Arrays, ts: Sequence[Array | None]) -> Any:
        """`autograd.make_jvp`. Raises NotApplicable if a primitive has no forward rule."""
        places = [i for i, t in enumerate(ts) if t is not None]
        point, direction = (self.tuple(tuple(arrays[i] for i in places)) for arrays in (xs, ts))
        try:
            return self.autograd.make_jvp(self._of_some(xs, places))(point)(direction)[1]
        except NotImplementedError as error:
            raise NotApplicable(f"no forward mode: {error}") from error
