"""Functions of frameworks whose values record a graph; of these, functions of symgrad's tensors, and its ops."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from symgrad.autograd import forward_ad
from symgrad.autograd.engine import grad
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS
from symgrad.factories.creation import tensor
from symgrad.frameworks.adapter import Adapter, AdapterOptions, Array, Arrays, Index, NotApplicable, is_active
from symgrad.frameworks.differentiation_task import real_parts
from symgrad.frameworks.shadow import RecordedShadow
from symgrad.func import jvp, vmap
from symgrad.graph.op import REGISTRY, Op
from symgrad.methods.extending import BUILT_IN
from symgrad.system.restoring import changed


class RecordingAdapter(Adapter):
    """A function of a framework whose values record a graph. Subclasses define `grad` and `vmap`."""

    batches = True
    records = True
    selective = True
    seeded = False  # whether cotangents and tangents of pullbacks that are differentiated again require grad
    forward_ad: Any = None  # the framework's module of dual tensors

    def gradient(self, xs: Arrays, cotangent: Array, *tangents: Sequence[Array | None], by: Sequence[int] | None = None) -> list[Array | None]:
        places = [i for i, x in enumerate(xs) if is_active(x)] if by is None else by
        leaves = [self.leaf(x, i in places) for i, x in enumerate(xs)]
        active = [leaves[i] for i in places]
        values, seeds = [self.call(leaves)], [self.leaf(cotangent, self.seeded and bool(tangents))]
        for k in range(len(tangents) + 1):
            found = self.grad(values, active, seeds, k < len(tangents))
            if k < len(tangents):
                values, seeds = self._contract(found, [tangents[k][i] for i in places])
                if not values:
                    return [None] * len(xs)
        return self.place(found, places, len(xs))

    def _contract(self, found: Sequence[Any], tangents: Sequence[Array | None]) -> tuple[list[Any], list[Any]]:
        pairs = [(c, self.leaf(t, self.seeded)) for c, t in zip(found, tangents) if c is not None and t is not None and c.requires_grad]
        return [c for c, _ in pairs], [t for _, t in pairs]

    def derivatives(self, xs: Arrays, cotangent_of: Callable[[Array], Array], orders: Sequence[Sequence[Index]],
                    directions: Sequence[Sequence[Array]]) -> Iterator[Any]:
        """As in the base class, in one graph, so that the function is called once."""
        leaves = [self.leaf(x) for x in xs]
        result = self.call(leaves)
        value = self.array(result)
        yield value
        known: dict[Index, Sequence[Any]] = {}

        def pulled(index: Index) -> Sequence[Any]:
            if index not in known:
                values, seeds = self._contract(pulled(index[:-1]), directions[index[-1]]) if index else (
                    [result], [self.leaf(cotangent_of(value), False)])
                known[index] = self.grad(values, leaves, seeds, len(index) + 1 < len(orders)) if values else [None] * len(xs)
            return known[index]

        for sets in orders:
            yield [self.place(pulled(index), range(len(xs)), len(xs)) for index in sets]

    def second_routes(self, xs: Arrays, cotangent: Array, ts: Sequence[Array | None]) -> Iterator[tuple[str, list[Array | None], str]]:
        """As in the base class: through cotangents and tangents that require grad and that do not, and by dual tensors."""
        places = [i for i, x in enumerate(xs) if is_active(x)]

        def placed(found: Sequence[Any]) -> list[Array | None]:
            return self.place(found, places, len(xs))

        for seeded in (False, True):
            leaves, g = [self.leaf(x, is_active(x)) for x in xs], self.leaf(cotangent, seeded)
            active, said = [leaves[i] for i in places], "requires grad" if seeded else "requires no grad"
            with changed(self, "seeded", seeded):
                pulled = self.grad([self.call(leaves)], active, [g], True)
                yield f"the pullback of a cotangent that {said}", placed(pulled), "first"
                values, seeds = self._contract(pulled, [ts[i] for i in places])
                found = self.grad(values, [*active, *[g] * seeded], seeds, False) if values else [None] * (len(active) + seeded)
            yield f"the pullback of a cotangent that {said}, differentiated by the argument,", placed(found[:len(active)]), "second"
            if seeded:
                yield "the pullback, differentiated by its cotangent,", self.place(found[-1:], [0], 1), "tangent"
            if self.forward:
                with contextlib.suppress(NotApplicable):
                    yield from self._pushed_and_pulled(xs, cotangent, ts, seeded)
        if self.forward and self.forward_ad is not None:
            with contextlib.suppress(NotApplicable):
                yield "the pullback of dual tensors", placed(self._pushed_pullback(xs, cotangent, ts, places)), "second"

    def _pushed_and_pulled(self, xs: Arrays, cotangent: Array, ts: Sequence[Array | None],
                           seeded: bool) -> Iterator[tuple[str, list[Array | None], str]]:
        """The derivatives of ⟨g, jvp(t)⟩ by the arguments, and by the tangents if they require grad."""
        leaves, tangents = [self.leaf(x) for x in xs], [None if t is None else self.leaf(t, seeded) for t in ts]
        asked = [t for t in (*leaves, *tangents) if t is not None and t.requires_grad]
        found = iter(self.grad([self._jvp(leaves, tangents)], asked, [self.leaf(cotangent, False)], False))
        every = [next(found) if t is not None and t.requires_grad else None for t in (*leaves, *tangents)]
        out = self.place(every, range(len(every)), len(every))
        yield f"the pushforward of a tangent that requires {'' if seeded else 'no '}grad, pulled back,", out[:len(xs)], "second"
        if seeded:
            yield "the pushforward, pulled back by its tangent,", out[len(xs):], "first"

    def _jvp(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> Any:
        raise NotApplicable(f"pushforwards of {self.framework} functions are not pulled back here")

    def _pushed_pullback(self, xs: Arrays, cotangent: Array, ts: Sequence[Array | None], places: Sequence[int]) -> list[Any]:
        """The tangents of the pullback, where the arguments are dual tensors."""
        with self.forward_ad.dual_level():
            leaves = [self.leaf(x, is_active(x)) for x in xs]
            duals = [x if t is None else self.forward_ad.make_dual(x, self.leaf(t, False)) for x, t in zip(leaves, ts)]
            found = self.grad([self.call(duals)], [duals[i] for i in places], [self.leaf(cotangent, False)], True)
            return [None if c is None else self.forward_ad.unpack_dual(c).tangent for c in found]


class SymgradAdapter(RecordingAdapter):
    """A function of symgrad's tensors, differentiated by nested `symgrad.autograd.grad`, forward by `symgrad.func.jvp`."""

    framework = "symgrad"
    dtypes = ("float64", "float32", "float16", "bfloat16")
    forward_ad = forward_ad
    missing = {"no forward mode": (NotImplementedError,),  # a Function without jvp, a custom_vjp
               "no rule for vmap": ("depends on the data of each", "override the vmap staticmethod")}
    layouts = tuple(layout for layout in RecordingAdapter.layouts if layout != "byte-swapped")  # tensors have the processor's order of bytes

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
        with self.reporting("no forward mode"):
            return jvp(function, tuple(leaves[i] for i in places), tuple(tangents[i] for i in places))[1]

    def vmap(self, function: Any, axes: tuple[int | None, ...]) -> Any:
        return vmap(function, axes)


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
