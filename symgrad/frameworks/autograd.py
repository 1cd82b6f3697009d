"""Functions of HIPS autograd, written with its NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.frameworks.adapter import Adapter, AdapterOptions, Array, Arrays, import_extra, is_active, not_applicable

__all__ = ["AutogradAdapter"]


class AutogradAdapter(Adapter):
    """A function of HIPS autograd, differentiated by nested `autograd.make_vjp`, forward by `autograd.make_jvp`."""

    framework = "autograd"

    def __init__(self, function: Callable[..., Any], name: str, options: AdapterOptions):
        super().__init__(function, name, options)
        self.autograd = import_extra("autograd", name)
        self.numpy = import_extra("autograd.numpy", name)
        self.tuple = import_extra("autograd.builtins", name).tuple

    def _restricted(self, xs: Arrays, places: Sequence[int]) -> Callable[[Any], Any]:
        function = self.restrict_to(lambda *given: self.call(given), xs, places)
        return lambda some: function(*(some[k] for k in range(len(places))))

    def gradient(self, xs: Arrays, cotangent: Array, *tangents: Sequence[Array | None]) -> list[Array | None]:
        """The pullback of the cotangent by `make_vjp`, and the pullback of each further set of tangents through the previous one."""
        places = [i for i, x in enumerate(xs) if is_active(x)]
        level = self._pullback(self._restricted(xs, places), cotangent)
        for ts in tangents:
            level = self._pullback(level, self.tuple(tuple(np.zeros_like(xs[i]) if ts[i] is None else ts[i] for i in places)))
        return self.place(level(self.tuple(tuple(xs[i] for i in places))), places, len(xs))

    def _pullback(self, function: Callable[[Any], Any], cotangent: Any) -> Callable[[Any], Any]:
        return lambda some: self.autograd.make_vjp(function)(some)[0](cotangent)

    def jvp(self, xs: Arrays, ts: Sequence[Array | None]) -> Any:
        """`autograd.make_jvp`. Raises NotApplicable if a primitive has no forward rule."""
        places = [i for i, t in enumerate(ts) if t is not None]
        point, direction = (self.tuple(tuple(arrays[i] for i in places)) for arrays in (xs, ts))
        try:
            return self.autograd.make_jvp(self._restricted(xs, places))(point)(direction)[1]
        except NotImplementedError as error:
            raise not_applicable("no forward mode", error) from error
