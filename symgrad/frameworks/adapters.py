"""Adapters that compute the value and the derivatives of a function by torch, JAX, HIPS autograd and symgrad."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.frameworks.adapter import Adapter, Levels, coarser, missing, no_complex, parts_of
from symgrad.frameworks.calling import Call
from symgrad.frameworks.given import GivenAdapter
from symgrad.frameworks.problem import Problem

__all__ = ["JaxAdapter", "adapter_for"]


class TorchAdapter(Adapter):
    """PyTorch, by `torch.autograd.grad` with create_graph, nested."""

    name = "torch"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.torch = missing("torch")
        self.methods |= {1: "torch.autograd.grad", 2: "torch.autograd.grad of it", 3: "torch.autograd.grad of that"}

    def _orders(self, point: Sequence[np.ndarray], order: int, out: Levels) -> Iterator[Any]:
        torch = self.torch
        with torch.enable_grad():
            leaves = [torch.tensor(np.array(v), requires_grad=True) for v in point]
            results = [r if isinstance(r, torch.Tensor) else torch.tensor(r) for r in parts_of(self.call(leaves))]
            results = [r for r in results if r.is_floating_point() or no_complex(r.is_complex())]
            if not results:
                raise TypeError(f"{self.call.name} returned no floating-point tensor")
            dtype = str(results[0].dtype).removeprefix("torch.")
            out.dtype = coarser(_named_dtype(dtype), point)
            out.shape = tuple(results[0].shape) if len(results) == 1 else (sum(r.numel() for r in results),)
            total = self._weighted(results)
            yield total.detach().to(torch.float64)
            level = [total]
            n = len(self.direction)
            for k in range(1, order + 1):
                gradients = [self._gradient(r, leaves, k < order) for r in level]
                every = torch.cat(gradients)
                yield every.detach().to(torch.float64).numpy().reshape((n,) * (k if self._step(k) else 1))
                if self._step(k + 1):
                    level = [g[i] for g in gradients for i in range(n)]
                else:
                    level = [(every * torch.tensor(_powers(self.direction, every.numel()), dtype=every.dtype)).sum()]

    def _weighted(self, results: Sequence[Any]) -> Any:
        torch = self.torch
        if len(results) == 1 and results[0].numel() == 1:
            return results[0].reshape(())
        flat = torch.cat([r.reshape(-1) for r in results])
        return (flat * torch.arange(1, flat.numel() + 1, dtype=flat.dtype)).sum()

    def _gradient(self, result: Any, leaves: Sequence[Any], more: bool) -> Any:
        torch = self.torch
        size = sum(leaf.numel() for leaf in leaves)
        if not result.requires_grad:
            return torch.zeros(size, dtype=leaves[0].dtype)
        # A seed that requires grad makes a function without a second derivative raise.
        seed = torch.ones_like(result, requires_grad=more)
        found = torch.autograd.grad(result, leaves, seed, create_graph=more, retain_graph=True, allow_unused=True)
        if None in found and is_once_differentiable(result):
            raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
        return torch.cat([(torch.zeros_like(leaf) if g is None else g).reshape(-1).to(leaves[0].dtype) for g, leaf in zip(found, leaves)])


def _powers(u: np.ndarray, size: int) -> np.ndarray:
    """u, or the products of its elements with each other, as many as there are numbers to contract."""
    out = u
    while out.size < size:
        out = np.multiply.outer(out, u).ravel()
    return out


def is_once_differentiable(result: Any) -> bool:
    """Whether a backward in the graph cannot be differentiated, which `torch.autograd.grad` does not report."""
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


def _named_dtype(name: str) -> Any:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else np.dtype(name)


class _Transformed(Adapter):
    """A framework whose derivatives are functions of functions: what is differentiated takes one vector."""

    numpy: Any

    def _functions(self) -> list[Callable[..., Any]]:
        """The weighted value and its derivatives as functions of one vector and the shapes in it."""
        raise NotImplementedError

    def _nested(self, grad: Callable[..., Any], jacobian: Callable[..., Any]) -> list[Callable[..., Any]]:
        """The weighted value, and each derivative as that of the one below: entry by entry, or contracted with the direction."""
        functions: list[Callable[..., Any]] = [self._weighted]
        for k in range(1, self.order + 1):
            below = functions[-1]
            if k == 1 or self._step(k):
                functions.append((grad if k == 1 else jacobian)(below))
            else:
                functions.append(grad(lambda v, below=below: self._contracted(below(v), self.direction)))
        return functions

    def _contracted(self, g: Any, u: np.ndarray) -> Any:
        """A derivative contracted with the direction until it is a number."""
        raise NotImplementedError

    def _split(self, vector: Any) -> list[Any]:
        out, at = [], 0
        for shape, dtype in self.layout:
            size = int(np.prod(shape))
            part = vector[at] if shape == () else vector[at:at + size].reshape(shape)
            out.append(part if dtype is None else part.astype(dtype))
            at += size
        return out

    layout: list[tuple[tuple[int, ...], Any]] = []

    def _weighted(self, vector: Any) -> Any:
        results = [r for r in parts_of(self.call(self._split(vector)))]
        arrays = [self.numpy.asarray(r) if isinstance(r, (int, float)) else r for r in results]
        if not arrays:
            raise TypeError(f"{self.call.name} returned nothing")
        sizes = [int(np.prod(np.shape(a))) for a in arrays]
        self.dtype = np.dtype(getattr(arrays[0], "dtype", np.float64))
        no_complex(self.dtype.kind == "c")
        self.shape = tuple(np.shape(arrays[0])) if len(arrays) == 1 else (sum(sizes),)
        if sizes == [1]:
            return arrays[0].reshape(()) if self.shape else arrays[0]
        flat = self.numpy.concatenate([self.numpy.reshape(a, (-1,)) for a in arrays])
        return self.numpy.sum(flat * np.arange(1, sum(sizes) + 1).astype(self.dtype))

    def _orders(self, point: Sequence[np.ndarray], order: int, out: Levels) -> Iterator[Any]:
        common = np.result_type(*(v.dtype for v in point))
        self.layout = [(v.shape, None if v.dtype == common else v.dtype) for v in point]
        vector = np.concatenate([np.ravel(v) for v in point]).astype(common)
        for k in range(order + 1):
            value = self._evaluated(k, vector)
            out.dtype, out.shape = coarser(self.dtype, point), self.shape
            yield value

    def _evaluated(self, k: int, vector: np.ndarray) -> np.ndarray:
        return np.asarray(self._functions()[k](vector), dtype=np.float64)


class JaxAdapter(_Transformed):
    """JAX in 64 bits, by `jax.grad`, nested; compiled where the function can be; the final comparison runs it uncompiled (`plainly`)."""

    name = "jax"
    subnormals = False  # XLA takes them for zero

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.jax = missing("jax")
        self.numpy = missing("jax.numpy")
        self.methods |= {1: "jax.grad", 2: "jax.grad of it", 3: "jax.grad of that"}
        self.plain: list[Any] = []
        self.compiled: list[Any] = []
        self.plainly = False

    def levels(self, point: Sequence[np.ndarray], order: int) -> Levels:
        """Value and derivatives at a point."""
        switch = self.jax.enable_x64 if hasattr(self.jax, "enable_x64") else missing("jax.experimental").enable_x64
        with switch(True):
            return super().levels(point, order)

    def _functions(self) -> list[Callable[..., Any]]:
        if not self.plain:
            self.plain = self._nested(self.jax.grad, self.jax.jacrev)
            self.compiled = [self.jax.jit(f) for f in self.plain]
        return self.plain if self.plainly else self.compiled

    def _contracted(self, g: Any, u: np.ndarray) -> Any:
        while getattr(g, "ndim", 0):
            g = self.numpy.sum(g * u.astype(g.dtype), axis=-1)
        return g

    def _evaluated(self, k: int, vector: np.ndarray) -> np.ndarray:
        functions = self._functions()
        try:
            return np.asarray(functions[k](vector), dtype=np.float64)
        except Exception:
            if self.plainly:
                raise
            self.plainly = True  # it branches on values, which works uncompiled only
            return np.asarray(self._functions()[k](vector), dtype=np.float64)


class AutogradAdapter(_Transformed):
    """HIPS autograd, by `autograd.grad`, nested."""

    name = "autograd"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.autograd = missing("autograd")
        self.numpy = missing("autograd.numpy")
        self.methods |= {1: "autograd.grad", 2: "autograd.grad of it", 3: "autograd.grad of that"}
        self.known: list[Any] = []

    def _functions(self) -> list[Callable[..., Any]]:
        if not self.known:
            self.known = self._nested(self.autograd.grad, self.autograd.jacobian)
        return self.known

    def _contracted(self, g: Any, u: np.ndarray) -> Any:
        while np.ndim(getattr(g, "_value", g)):
            g = self.numpy.dot(g, u)
        return g


class SymgradAdapter(Adapter):
    """A symgrad function, by `symgrad.autograd.grad`, nested."""

    name = "symgrad"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.methods |= {1: "symgrad.autograd.grad", 2: "symgrad.autograd.grad of it", 3: "symgrad.autograd.grad of that"}

    def _orders(self, point: Sequence[np.ndarray], order: int, out: Levels) -> Iterator[Any]:
        run = self._problem(point).run([np.asarray(v) for v in point])
        out.dtype, out.shape = coarser(run.result.value.dtype, point), run.shape or ()
        yield run.result.value
        for k in range(1, order + 1):
            yield run.gradient() if k == 1 else run.derivatives(k) if self._step(k) else run.along(self.direction, k)

    def _problem(self, point: Sequence[np.ndarray]) -> Problem:
        def function(**values: Any) -> Any:
            return self.call([values[name] for name in self.call.names])

        kind = inspect.Parameter.KEYWORD_ONLY
        function.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in self.call.names])  # type: ignore[attr-defined]
        return Problem(function, dict(zip(self.call.names, point)), self.call.names)


ADAPTERS = {"torch": TorchAdapter, "jax": JaxAdapter, "autograd": AutogradAdapter, "symgrad": SymgradAdapter}


def adapter_for(framework: str, call: Call, order: int, full: int, direction: np.ndarray, given: Sequence[Callable[..., Any]] = (),
                returned: bool = False, room: Callable[[np.ndarray], np.ndarray] | None = None) -> Adapter:
    """The adapter of a framework; for functions with a gradient of their own, the one that calls it."""
    if given or returned or framework == "numpy":
        return GivenAdapter(call, order, full, direction, given, returned, framework, room)
    return ADAPTERS[framework](call, order, full, direction)
