"""Functions of symgrad's tensors, and its ops."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from symgrad.autograd import forward_ad
from symgrad.autograd.engine import grad
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS
from symgrad.factories.creation import tensor
from symgrad.frameworks.adapter import AdapterOptions, Array, Arrays, RecordingAdapter, is_active, not_applicable
from symgrad.frameworks.differentiation_task import real_parts
from symgrad.frameworks.shadow import RecordedShadow
from symgrad.func import jvp, vmap
from symgrad.graph.op import REGISTRY, Op
from symgrad.methods.extending import BUILT_IN

# Parts of the messages of errors about missing vmap rules.
NO_BATCH = ("depends on the data of each", "override the vmap staticmethod")


class SymgradAdapter(RecordingAdapter):
    """A function of symgrad's tensors, differentiated by nested `symgrad.autograd.grad`, forward by `symgrad.func.jvp`."""

    framework = "symgrad"
    dtypes = ("float64", "float32", "float16", "bfloat16")
    forward_ad = forward_ad
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
        try:
            return jvp(function, tuple(leaves[i] for i in places), tuple(tangents[i] for i in places))[1]
        except NotImplementedError as error:  # a Function without jvp, a custom_vjp
            raise not_applicable("no forward mode", error) from error

    def vmap(self, leaves: Sequence[Any], axes: Sequence[int | None], levels: int = 1) -> Any:
        """`symgrad.vmap`. Raises NotApplicable if the function depends on concrete values, or a Function has no rule for it."""
        function: Any = lambda *given: self.call(given)
        for _ in range(levels):
            function = vmap(function, tuple(axes))
        try:
            return function(*leaves)
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
