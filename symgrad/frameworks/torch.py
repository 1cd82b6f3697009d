"""Functions of torch: any function of tensors, modules, and `torch.autograd.Function` classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from symgrad.frameworks.adapter import ONCE, AdapterOptions, Array, Arrays, RecordingAdapter, import_extra, is_active, not_applicable
from symgrad.frameworks.shadow_torch import TorchShadow
from symgrad.frameworks.supplied_derivatives import SuppliedDerivatives
from symgrad.system.locks import reentrant_lock

__all__ = ["TorchAdapter", "TorchPair"]

# torch reports a missing rule only in the text of its errors.
NO_FORWARD = ("must implement the jvp function", "forward AD with", "forward-mode AD", "Trying to use forward AD", "override the setup_context")
NO_COMPLEX = ("does not support automatic differentiation for outputs with complex dtype",)
LOCK = reentrant_lock()  # torch's dual level is shared by all threads
NO_BATCH = ("does not have vmap support", "override the setup_context", "vmap: It looks like", "doesn't have storage",
            "Batching rule not implemented")


class TorchAdapter(RecordingAdapter):
    """A function of torch, differentiated by nested `torch.autograd.grad`, forward by dual tensors, mapped by `torch.func.vmap`."""

    framework = "torch"
    dtypes = ("float64", "float32", "float16", "bfloat16")
    layouts = ("strided", "by columns", "overlapping")  # torch has no negative strides, and no read-only memory

    def __init__(self, function: Callable[..., Any], name: str, options: AdapterOptions):
        super().__init__(function, name, options)
        self.torch = self.numpy = import_extra("torch", name)

    def module_dtypes(self) -> tuple[str, ...] | None:
        """The floating-point type of a module's parameters and buffers; None for a function, and if there are none or several."""
        if not isinstance(self.function, self.torch.nn.Module):
            return None
        every = (*self.function.parameters(), *self.function.buffers())
        found = {str(t.dtype).removeprefix("torch.") for t in every if t.is_floating_point()}
        return tuple(found) if len(found) == 1 else None

    def leaf(self, x: Array, differentiated: bool = True) -> Any:
        """A tensor that shares the array's memory, or a copy for negative strides and read-only memory, which torch does not support."""
        x = np.asarray(x)
        if not x.flags.writeable or any(s < 0 for s in x.strides):
            x = x.copy()
        if x.dtype.name == "bfloat16":
            out = self.torch.from_numpy(x.view(np.int16)).view(self.torch.bfloat16)
        else:
            out = self.torch.from_numpy(x)
        return out.requires_grad_() if differentiated and is_active(x) else out

    def call(self, leaves: Sequence[Any]) -> Any:
        try:
            with self.torch.enable_grad():
                found = self.select_output(self.function(*leaves, *self.parameters))
        except RuntimeError as error:
            _raise_missing(error, NO_COMPLEX, "no complex derivative")
            raise
        if isinstance(found, self.torch.Tensor):
            return found
        return self.torch.as_tensor(found, dtype=next((leaf.dtype for leaf in leaves if leaf.is_floating_point()), self.torch.float64))

    def join(self, parts: Sequence[Any]) -> Any:
        """The numbers of floating-point tensors; others cannot be differentiated."""
        tensors = [t for t in map(self.torch.as_tensor, parts) if t.is_floating_point() or t.is_complex()]
        if not tensors:
            raise TypeError(f"{self.name} returned no floating-point tensor")
        return tensors[0] if len(tensors) == 1 else self.torch.cat([t.reshape(-1) for t in tensors])

    def new_shadow(self) -> TorchShadow:
        return TorchShadow(self.name)

    def array(self, value: Any) -> Array:
        if self.shadow is not None and isinstance(value, self.torch.Tensor):
            return self.shadow.read(value)
        if not isinstance(value, self.torch.Tensor):
            return np.asarray(value)
        if value.dtype == self.torch.bfloat16:
            return value.detach().view(self.torch.int16).numpy().view(ml_dtypes.bfloat16)
        return value.numpy(force=True)  # also of a conjugate, a negative view and the zeros of forward mode, which have no memory

    def grad(self, values: Sequence[Any], leaves: Sequence[Any], cotangents: Sequence[Any], again: bool) -> Sequence[Any]:
        """`torch.autograd.grad`. With `again` the cotangents require grad, too: only then a once-differentiable backward raises."""
        kept = [(v, g if g.dtype == v.dtype else g.to(v.dtype)) for v, g in zip(values, cotangents) if v.requires_grad]
        if not kept:
            return [None] * len(leaves)
        if any(is_once_differentiable(v) for v, _ in kept):
            raise RuntimeError(f"trying to {ONCE}")
        seeds = [g.detach().requires_grad_() if again and not g.requires_grad and (g.is_floating_point() or g.is_complex()) else g for _, g in kept]
        try:
            return self.torch.autograd.grad([v for v, _ in kept], list(leaves), seeds, create_graph=again, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            _raise_missing(error, NO_COMPLEX, "no complex derivative")
            raise

    def jvp(self, xs: Arrays, ts: Sequence[Array | None]) -> Any:
        """`torch.autograd.forward_ad`. Raises NotApplicable if a Function has no jvp."""
        forward = self.torch.autograd.forward_ad
        with LOCK, forward.dual_level():
            given = [self.leaf(x, False) if t is None else forward.make_dual(self.leaf(x, False), self.leaf(t, False).to(self.leaf(x, False).dtype))
                     for x, t in zip(xs, ts)]
            try:
                value, tangent = forward.unpack_dual(self.call(given))
            except (RuntimeError, NotImplementedError) as error:
                _raise_missing(error, NO_FORWARD, "no forward mode")
                raise
            return self.torch.zeros_like(value) if tangent is None else tangent

    def vmap(self, leaves: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """`torch.func.vmap`. Raises NotApplicable if a Function has no rule for it."""
        mapped = self.torch.func.vmap(lambda *given: self.call(given), tuple(axes),
                                      randomness="different" if self.options.random else "error")
        try:
            return mapped(*leaves)
        except (RuntimeError, NotImplementedError) as error:
            if self.options.batched:
                raise
            _raise_missing(error, NO_BATCH, "no rule for vmap")
            raise


class TorchPair(SuppliedDerivatives, TorchAdapter):  # type: ignore[misc]  # whose derivatives take all arguments together
    """A function of torch whose derivatives are functions of tensors, too."""


def is_once_differentiable(result: Any) -> bool:
    """Whether the graph contains a backward marked once-differentiable, which `torch.autograd.grad` does not report."""
    stack, seen = [result.grad_fn], set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() in ("torch::autograd::Error", "DelayedError"):
            return True
        stack += [below for below, _ in node.next_functions]
    return False


def _raise_missing(error: Exception, words: Sequence[str], what: str) -> None:
    """Raise NotApplicable for an error about a missing rule."""
    if any(w in str(error) for w in words):
        raise not_applicable(what, error) from error
