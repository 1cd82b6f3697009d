"""The adapter of a function, symgrad's own among them, and the value of a function of any framework with its derivatives, order by order."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from ml_dtypes import finfo

from symgrad.autograd.engine import grad
from symgrad.autograd.modes import enable_grad
from symgrad.carriers import precise
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS
from symgrad.factories.creation import tensor
from symgrad.frameworks.adapter import PLAIN, Adapter, AdapterOptions, Array, Arrays, RecordingAdapter, is_active, not_applicable
from symgrad.frameworks.differentiation_task import NotCheckable, real_parts, silence
from symgrad.frameworks.jax import JaxAdapter, JaxPair
from symgrad.frameworks.naming import framework_of, name_of, named_framework
from symgrad.frameworks.shadow import NoShadow, RecordedShadow, Shadow
from symgrad.frameworks.supplied_derivatives import AutogradAdapter, NumpyAdapter
from symgrad.frameworks.torch import TorchAdapter, TorchPair
from symgrad.func import jvp, vmap
from symgrad.graph.op import REGISTRY, Op
from symgrad.methods.extending import BUILT_IN
from symgrad.reference.sources import contract, differences
from symgrad.sampling.points import as_point, flat

# Parts of the messages of errors about missing vmap rules.
NO_BATCH = ("depends on the data of each", "override the vmap staticmethod")


class SymgradAdapter(RecordingAdapter):
    """A function of symgrad's tensors, differentiated by nested `symgrad.autograd.grad`, forward by `symgrad.func.jvp`."""

    framework = "symgrad"
    dtypes = ("float64", "float32", "float16", "bfloat16")

    def leaf(self, x: Array, differentiated: bool = True) -> Tensor:
        t = wrap(x if isinstance(x, np.ndarray) else np.asarray(x))
        return t.requires_grad_() if differentiated and is_active(x) else t

    def call(self, leaves: Sequence[Any]) -> Any:
        found = super().call(leaves)
        return found if isinstance(found, Tensor) else tensor(found)

    def select_output(self, found: Any) -> Any:
        """The output to check. With `joined`, raises NotCheckable if it was not computed from the arguments."""
        if not self.options.joined:
            return super().select_output(found)
        parts = real_parts(found, self.name)
        return parts[0] if len(parts) == 1 else FUNCTIONS["cat"]([p.reshape(-1) for p in parts])

    def new_shadow(self) -> RecordedShadow:
        return RecordedShadow()

    def array(self, value: Any) -> Array:
        if self.shadow is not None:
            return self.shadow.read(value)
        return np.asarray(value._value if isinstance(value, Tensor) else value)

    def grad(self, values: Sequence[Any], leaves: Sequence[Any], cotangents: Sequence[Any], again: bool) -> Sequence[Any]:
        kept = [(v, g) for v, g in zip(values, cotangents) if v.requires_grad]
        if not kept:
            return [None] * len(leaves)
        again |= self.shadow is not None
        return grad([v for v, _ in kept], list(leaves), [g for _, g in kept], retain_graph=True, create_graph=again, allow_unused=True)

    def jvp(self, xs: Arrays, ts: Sequence[Array | None]) -> Any:
        """`symgrad.func.jvp`. Raises NotApplicable if a Function has no jvp."""
        return self._jvp([self.leaf(x, False) for x in xs], [None if t is None else self.leaf(t, False) for t in ts])

    def _jvp(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> Any:
        places = [i for i, t in enumerate(tangents) if t is not None]
        function = self.restrict_to(lambda *given: self.call(given), leaves, places)
        try:
            return jvp(function, tuple(leaves[i] for i in places), tuple(tangents[i] for i in places))[1]
        except NotImplementedError as error:  # a Function without jvp, a custom_vjp
            raise not_applicable("no forward mode", error) from error

    def pullback_of_jvp(self, xs: Arrays, cotangent: Array, ts: Sequence[Array | None]) -> tuple[list[Array | None], list[Array | None]]:
        """`symgrad.autograd.grad` of `symgrad.func.jvp`."""
        leaves = [self.leaf(x) for x in xs]
        tangents = [None if t is None else self.leaf(t) for t in ts]
        asked = [*(x for x in leaves if x.requires_grad), *(t for t in tangents if t is not None)]
        found = iter(self.grad([self._jvp(leaves, tangents)], asked, [self.leaf(cotangent, False)], False))
        every = [next(found) if t is not None and t.requires_grad else None for t in (*leaves, *tangents)]
        out = self.place(every, range(len(every)), len(every))
        return out[:len(xs)], out[len(xs):]

    def vmap(self, leaves: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """`symgrad.vmap`. Raises NotApplicable if the function depends on concrete values, or a Function has no rule for it."""
        try:
            return vmap(lambda *given: self.call(given), tuple(axes))(*leaves)
        except (RuntimeError, NotImplementedError) as error:
            if self.options.batched or not any(words in str(error) for words in NO_BATCH):
                raise
            raise not_applicable("no rule for vmap", error) from error


class OpAdapter(SymgradAdapter):
    """An op of symgrad, registered or not, whose rules are called."""

    op: Op

    def __init__(self, op: Op, options: AdapterOptions):
        self.op, inner, after = op, core(op), len(options.parameters)
        many = op.arity is None
        super().__init__((lambda *args: inner(list(args[:len(args) - after]), *options.parameters)) if many else inner, op.name, options)
        self.orders = self.orders if op.differentiable else 0
        self.forward = op.differentiable

    def import_path(self) -> tuple[str, str] | None:
        """A built-in op is found in the registry by name, a user's op in the module that declares it."""
        if self.op.name in BUILT_IN:
            return ("symgrad.graph.op", f"REGISTRY[{self.op.name!r}]") if REGISTRY.get(self.op.name) is self.op else None
        places = [(module, name) for module, loaded in list(sys.modules.items()) if module != "__main__" and isinstance(loaded, ModuleType)
                  for name, thing in list(vars(loaded).items())
                  if type(thing).__name__ in ("function", "FormulaOp") and getattr(thing, "op", None) is self.op]
        return min(places, key=lambda place: "test" in place[0], default=None)


ADAPTERS: dict[str, type[Adapter]] = {"torch": TorchAdapter, "jax": JaxAdapter, "autograd": AutogradAdapter, "numpy": NumpyAdapter,
                                      "symgrad": SymgradAdapter}
PAIRS: dict[str, type[Adapter]] = {"torch": TorchPair, "jax": JaxPair}


def adapter_of(function: Callable[..., Any], framework: str | None = None, name: str | None = None, options: AdapterOptions = PLAIN) -> Adapter:
    """The adapter of a function, whose framework is detected if it is not named.

    Derivatives that come with a function (see `AdapterOptions`) get the values of torch or JAX for a function of these, arrays for others.
    Raises ValueError for an unknown framework, ImportError if it is not installed.

    >>> adapter_of(lambda x: x * x).framework
    'symgrad'
    """
    framework = named_framework(framework) if framework else framework_of(function)
    chosen = PAIRS.get(framework or "", NumpyAdapter) if options.given else ADAPTERS[framework or "symgrad"]
    return chosen(function, name or name_of(function), options)


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


class ShadowValues(NamedTuple):
    """The shadow values of a program: the numbers by order, as in `Levels`; the shadow execution; difference quotients of the order below."""

    values: dict[int, np.ndarray]
    shadow: Shadow
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
            with silence(), enable_grad(), self.adapter.context():
                self._own_derivatives(point, min(order, self.highest), out)
                if order > self.highest and self.highest + 1 in self.methods:
                    self._difference(point, out)
        except NotCheckable:
            raise
        except Exception as error:  # whatever a user's function raises
            out.error = len(out.values), error
        return out

    def exact(self, point: Sequence[np.ndarray], order: int, digits: int, differences: bool = False) -> ShadowValues | None:
        """The shadow values of the program; None if it has no shadow execution, or none of this order.

        With `differences`, difference quotients of the order below, of numbers in many digits, are computed with it.
        """
        with precise.working_precision(digits):
            try:
                values, shadow = self._shadow_values(point, order)
                return ShadowValues(values, shadow, self._quotients(point, order) if differences and order else None) if shadow.complete else None
            except Exception:  # NoShadow, or any exception of the user's function at an unusual number
                return None

    def _shadow_values(self, point: Sequence[np.ndarray], order: int) -> tuple[dict[int, np.ndarray], Shadow]:
        out = Levels()
        if order > self.highest:
            raise NoShadow(f"order {order} is by finite differences")
        with silence(), enable_grad(), self.adapter.following() as shadow:
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
