"""The adapter of a function, loaded where it is needed, and the value of a function of any framework with its derivatives, order by order."""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from ml_dtypes import finfo

from symgrad.algebra.limits import calling
from symgrad.autograd.modes import enable_grad
from symgrad.carriers import precise
from symgrad.frameworks.adapter import PLAIN, Adapter, AdapterOptions
from symgrad.frameworks.differentiation_task import NotCheckable, silence
from symgrad.frameworks.naming import framework_of, name_of, named_framework
from symgrad.frameworks.shadow import NoShadow, Shadow
from symgrad.reference.sources import contract, differences
from symgrad.sampling.points import as_point, flat

ADAPTERS = {"torch": ("torch", "TorchAdapter", "TorchPair"), "jax": ("jax", "JaxAdapter", "JaxPair"),  # module, class, class with given derivatives
            "autograd": ("supplied_derivatives", "AutogradAdapter", "NumpyAdapter"), "symgrad": ("own", "SymgradAdapter", "NumpyAdapter"),
            "numpy": ("supplied_derivatives", "NumpyAdapter", "NumpyAdapter")}


def adapter_of(function: Callable[..., Any], framework: str | None = None, name: str | None = None, options: AdapterOptions = PLAIN) -> Adapter:
    """The adapter of a function, whose framework is detected if it is not named.

    Derivatives that come with a function (see `AdapterOptions`) get the values of torch or JAX for a function of these, arrays for others.
    Raises ValueError for an unknown framework, ImportError if it is not installed.

    >>> adapter_of(lambda x: x * x).framework
    'symgrad'
    """
    framework = named_framework(framework) if framework else framework_of(function)
    module, *classes = ADAPTERS[framework or "symgrad"]
    home = importlib.import_module(f"symgrad.frameworks.{module if not options.given or classes[1] != 'NumpyAdapter' else 'supplied_derivatives'}")
    return getattr(home, classes[options.given])(function, name or name_of(function), options)


@dataclass
class Levels:
    """The value and the derivatives of a function at a point: for each order an array with an axis of inputs per derivative.

    `bounds` holds the error bounds of the orders computed by finite differences; `error` is the order that failed and the exception; `dtype` is
    that of the result, or of the inputs if that is coarser.
    """

    values: dict[int, np.ndarray] = field(default_factory=dict)
    bounds: dict[int, np.ndarray] = field(default_factory=dict)
    error: tuple[int, BaseException] | None = None
    dtype: Any = np.dtype(np.float64)
    shape: tuple[int, ...] = ()


class ShadowDerivatives(NamedTuple):
    """The shadow values of a program: the numbers by order, as in `Levels`; the shadow execution; difference quotients of the order below.

    `perturbed(part, seed)` gives those of a run in which each operation changes its result by a random part of it.
    """

    values: dict[int, np.ndarray]
    shadow: Shadow
    perturbed: Callable[[float, int], ShadowDerivatives | None]
    differences: np.ndarray | None = None


class Derivatives:
    """The derivatives of a function up to an order, by an adapter. An array for a result is weighted by 1, 2, 3, ... and summed.

    Those of the orders up to `full` are taken entry by entry; those above with all but one argument the `direction`. If the function's own end
    below `order` (2 at most), the next one is by finite differences with error bounds, which move by no more than `room`.
    `methods` names for each order how it is computed.
    """

    def __init__(self, adapter: Adapter, order: int, full: int, direction: np.ndarray, room: Callable[[np.ndarray], np.ndarray] | None = None):
        self.adapter, self.full, self.direction, self.room = adapter, full, direction, room
        self.highest = min(order, adapter.orders)
        self.methods = {k: v for k, v in adapter.methods.items() if k <= order}
        if self.highest < order and self.highest < 2:
            self.methods[self.highest + 1] = f"finite differences of the {('function', 'gradient')[self.highest]}"

    def at(self, point: Sequence[np.ndarray], order: int) -> Levels:
        """The value and derivatives up to an order at a point; an exception is stored in the result."""
        out = Levels()
        try:
            with calling(), silence(), enable_grad(), self.adapter.context():
                self._own_derivatives(point, min(order, self.highest), out)
                if order > self.highest and self.highest + 1 in self.methods:
                    self._difference(point, out)
        except NotCheckable:
            raise
        except Exception as error:  # whatever a user's function raises
            out.error = len(out.values), error
        return out

    def exact(self, point: Sequence[np.ndarray], order: int, digits: int, differences: bool = False, part: float = 0.0,
              seed: int = 0) -> ShadowDerivatives | None:
        """The shadow values of the program; None if it has no shadow execution, or none of this order.

        With `differences`, difference quotients of the order below, of numbers in many digits, are computed with it. With a `part`, each operation
        changes its result by a random part of it.
        """
        with precise.working_precision(digits):
            try:
                values, shadow = self._shadow_values(point, order, part, seed)
                quotients = self._quotients(point, order) if differences and order else None
                again = functools.partial(self.exact, point, order, digits, False)
                return ShadowDerivatives(values, shadow, again, quotients) if shadow.complete else None
            except Exception:  # NoShadow, or any exception of the user's function at an unusual number
                return None

    def _shadow_values(self, point: Sequence[np.ndarray], order: int, part: float = 0.0, seed: int = 0) -> tuple[dict[int, np.ndarray], Shadow]:
        out = Levels()
        if order > self.highest:
            raise NoShadow(f"order {order} is by finite differences")
        with silence(), enable_grad(), self.adapter.following(part, seed) as shadow:
            self._own_derivatives(point, order, out)
        return out.values, shadow

    def _quotients(self, point: Sequence[np.ndarray], order: int) -> np.ndarray:
        """The derivatives of an order by central differences of the order below, extrapolated once, over the steps h and 2h."""
        vector = flat(point)
        bits = min(int(-np.log2(float(finfo(v.dtype).eps))) for v in point) * 2 // 5

        def slope(i: int, h: float) -> Any:
            ends = [self._shadow_values(as_point(point, vector + k * h * (np.arange(vector.size) == i)), order - 1)[0][order - 1] for k in (1, -1)]
            return (ends[0] - ends[1]) / (2 * h)

        steps = [2.0 ** (np.frexp(x)[1] - bits) for x in vector]
        found = np.array([(4 * slope(i, h) - slope(i, 2 * h)) / 3 for i, h in enumerate(steps)], object)
        return np.moveaxis(found, 0, -1) if order <= self.full else contract(found, self.direction, order == self.full + 1)

    def _own_derivatives(self, point: Sequence[np.ndarray], order: int, out: Levels) -> None:
        kind = np.float64 if self.adapter.shadow is None else object
        n = self.direction.size
        units = np.eye(n)
        orders = [[*itertools.product(range(n), repeat=k)] if k < self.full else [(*(n,) * k,)] for k in range(order)]
        directions = [as_point(point, v) for v in (*units, self.direction)]
        found = self.adapter.derivatives([np.array(v) for v in point], self._weights, orders, directions)
        value = next(found)
        if value.dtype.kind == "c":
            raise NotCheckable("the result is complex; check its real and imaginary part")
        out.shape = value.shape if value.size != 1 else ()
        kinds = [value.dtype, *(v.dtype for v in point)]
        out.dtype = max((k for k in kinds if k.kind in "fV"), key=lambda k: float(finfo(k).eps), default=np.dtype(np.float64))
        out.values[0] = np.sum(value.astype(kind) * self._weights(value).astype(np.float64))
        for k in range(1, order + 1):
            rows = [np.concatenate([np.zeros(v.size) if g is None else np.ravel(g).astype(kind) for g, v in zip(row, point)])
                    for row in next(found)]
            out.values[k] = np.reshape(rows, (n,) * (k if k <= self.full else 1))

    def _weights(self, value: np.ndarray) -> np.ndarray:
        return np.arange(1, value.size + 1).reshape(value.shape).astype(value.dtype if value.dtype.kind in "fV" else np.float64)

    def _difference(self, point: Sequence[np.ndarray], out: Levels) -> None:
        k = self.highest

        def function(vector: np.ndarray) -> np.ndarray:
            levels = Levels()
            self._own_derivatives(as_point(point, vector), k, levels)
            return levels.values[k]

        vector = flat(point)
        found, bound = differences(function, vector, None if self.room is None else self.room(vector))
        if k + 1 > self.full:
            found, bound = found.T @ self.direction, bound.T @ np.abs(self.direction)
        out.values[k + 1], out.bounds[k + 1] = found, bound
