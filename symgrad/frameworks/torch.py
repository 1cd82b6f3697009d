"""Functions of torch: any function of tensors, modules, and `torch.autograd.Function` classes; and their runs repeated in many digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from symgrad.carriers import precise
from symgrad.carriers.cells import each
from symgrad.carriers.digits import context
from symgrad.carriers.precise import Digits
from symgrad.frameworks.adapter import ONCE, AdapterOptions, Array, Arrays, import_extra, is_active
from symgrad.frameworks.own import RecordingAdapter
from symgrad.frameworks.shadow import NoShadow, Shadow, move_elements
from symgrad.frameworks.supplied_derivatives import SuppliedDerivatives
from symgrad.graph.op import REGISTRY
from symgrad.system.locks import reentrant_lock

# Kernels that move numbers, or put zeros between them.
MOVES = {"cat", "stack", "flip", "roll", "gather", "index", "index_select", "clone", "repeat", "take", "select_backward", "slice_backward", "tril",
         "triu", "unsafe_view", "reshape_copy", "contiguous", "diagonal_backward", "constant_pad_nd", "masked_select", "diag_embed", "unfold",
         "scatter"}
FILLS = {"zero": 0.0, "zeros_like": 0.0, "new_zeros": 0.0, "ones_like": 1.0, "new_ones": 1.0, "fill": None, "full_like": None, "new_full": None}
COPIES = {"to_copy", "copy", "lift_fresh_copy", "detach_copy", "lift_fresh"}
ESCAPES = {"_local_scalar_dense", "equal", "is_nonzero"}
COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
ARITHMETIC = {"add", "sub", "rsub", "mul", "div", "pow"}
NAMES = {"absolute": "abs", "true_divide": "div", "subtract": "sub", "multiply": "mul",
         "sgn": "sign", "arctan2": "atan2", "special_expm1": "expm1", "special_log1p": "log1p", "special_xlogy": "xlogy"}


SPECIAL = {"erf": each(context.erf), "erfc": each(context.erfc), "lgamma": each(context.loggamma), "digamma": each(context.digamma)}


class TorchShadow(Shadow):
    """The shadow execution of a run. Shadow values are stored by memory, so that views and writes into them are tracked."""

    def __init__(self, name: str):
        super().__init__()
        self.torch, shadow = import_extra("torch", name), self
        self.decompositions = import_extra("torch._decomp", name).decomposition_table
        self.tree = import_extra("torch.utils._pytree", name)
        self.memories: dict[int, tuple[Any, np.ndarray]] = {}
        self.inside = False  # True within a kernel that is decomposed into others

        class Mode(import_extra("torch.utils._python_dispatch", name).TorchDispatchMode):  # type: ignore[misc]
            _should_skip_dynamo = classmethod(lambda cls: False)  # its import takes seconds

            def __torch_dispatch__(self, kernel: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return shadow.called(kernel, args, kwargs or {})

        self.mode = Mode

    @contextmanager
    def active(self) -> Iterator[None]:
        with self.mode():
            yield

    # Shadow values of tensors

    def read(self, value: Any) -> Any:
        memory = self.memories.get(value.untyped_storage()._cdata)
        if memory is None:
            return precise.lift_value(self._floats(value))
        return self._place(memory[1], value).copy().view(Digits)

    def _place(self, memory: np.ndarray, value: Any) -> np.ndarray:
        strides = [s * memory.itemsize for s in value.stride()]
        return np.lib.stride_tricks.as_strided(memory[value.storage_offset():], tuple(value.shape), strides)

    def _write(self, value: Any, numbers: Any) -> None:
        storage = value.untyped_storage()
        if storage._cdata not in self.memories:
            whole = value.detach().as_strided((storage.nbytes() // value.element_size(),), (1,), 0)
            self.memories[storage._cdata] = storage, precise.lift_value(self._floats(whole)).view(np.ndarray)
        self._place(self.memories[storage._cdata][1], value)[...] = np.broadcast_to(numbers, tuple(value.shape)).view(np.ndarray)

    def _floats(self, value: Any) -> np.ndarray:
        value = value.detach().resolve_conj()
        return (value.float() if value.dtype == self.torch.bfloat16 else value).numpy().copy()

    def _is_real(self, x: Any) -> bool:
        return isinstance(x, self.torch.Tensor) and x.is_floating_point()

    # Kernels

    def called(self, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a kernel on floats, and on their shadow values."""
        name = kernel._overloadpacket.__name__
        given = [x for x in self.tree.tree_leaves((args, kwargs)) if self._is_real(x)]
        known = [x.untyped_storage()._cdata in self.memories for x in given]
        if name in ESCAPES and any(known):
            self.complete = False
        if kernel.is_view or not given:
            return kernel(*args, **kwargs)
        if name in COMPARISONS:
            found = kernel(*args, **kwargs)
            self.decide(found.numpy(force=True), self._computed(name, kernel, args, kwargs))
            return found
        name = name.removesuffix("_").removeprefix("_")
        numbers = (int, float) if name in ARITHMETIC else float
        before = [(self._floats(x), self.read(x)) if isinstance(x, self.torch.Tensor) else (np.asarray(float(x)), precise.lift_value(x))
                  for x in args if self._is_real(x) or isinstance(x, numbers)]
        exact = self._computed(name, kernel, args, kwargs)
        out = kernel(*args, **kwargs)
        results = [x for x in self.tree.tree_leaves(out) if isinstance(x, self.torch.Tensor)]
        for x, y in zip(results, exact if isinstance(exact, list) else [exact]):
            if self._is_real(x) and y is not None:
                self._write(x, y)
                if not self.inside:
                    reflected = name == "rsub"
                    self.note("sub" if reflected else name, before[::-1] if reflected else before, self._floats(x), y)
        return out

    def _computed(self, name: str, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The shadow values of the results of a kernel. Raises NoShadow for an unknown kernel."""
        if name in MOVES:
            return self._moved(kernel, args, kwargs)
        if name in COPIES:
            return self.read(args[1] if name == "copy" else args[0])
        if "empty" in name:
            return None
        if name in FILLS:
            value = self._exact(args[-1]) if FILLS[name] is None else FILLS[name]
            return precise.lift_value(np.zeros(())) + value
        name = NAMES.get(name, name)
        if name in ("add", "sub", "rsub") and kwargs.get("alpha", 1) != 1:
            args, kwargs = (args[0], self.apply("mul", self._exact(args[1]), kwargs["alpha"])), {}
        if name == "div" and kwargs.get("rounding_mode"):
            name, kwargs = {"floor": "floor_divide", "trunc": "trunc"}[kwargs["rounding_mode"]], {}
            if name == "trunc":
                args = (self.apply("div", *map(self._exact, args[:2])),)
        operands = self.tree.tree_map(self._exact, tuple(args))
        if name in ARITHMETIC:
            operands = tuple(map(_as_fraction, operands))
        options = {k: self._exact(v) for k, v in kwargs.items() if k not in ("dtype", "memory_format", "layout", "device", "pin_memory", "alpha")}
        if name in ("softmax", "log_softmax"):
            operands = operands[:2]
        if name in SPECIAL:
            return SPECIAL[name](*operands)
        if name in REGISTRY:
            try:
                return self.apply(name, *operands, **options)
            except (TypeError, ValueError, AttributeError):
                pass
        decomposed = self.decompositions.get(kernel)
        if decomposed is None:
            raise NoShadow(f"the kernel {name} of torch")
        outer, self.inside = self.inside, True
        try:
            with self.mode():
                found = decomposed(*args, **kwargs)
            return [self.read(x) if self._is_real(x) else None for x in self.tree.tree_leaves(found) if isinstance(x, self.torch.Tensor)]
        finally:
            self.inside = outer

    def _exact(self, x: Any) -> Any:
        return self.read(x) if self._is_real(x) else x.numpy() if isinstance(x, self.torch.Tensor) else x

    def _moved(self, kernel: Any, args: Any, kwargs: Any) -> Any:
        leaves, shape = self.tree.tree_flatten((args, dict(kwargs)))
        given = {k: self.read(x) if self._is_real(x) else precise.lift_value(np.asarray(x)) for k, x in enumerate(leaves)
                 if self._is_real(x) or isinstance(x, float)}

        def places(*arrays: np.ndarray) -> np.ndarray:
            for k, array in zip(given, arrays):
                leaves[k] = int(array) if isinstance(leaves[k], float) else self.torch.from_numpy(array)
            args, kwargs = self.tree.tree_unflatten(leaves, shape)
            return np.asarray(kernel(*args, **kwargs))

        return move_elements(places, list(given.values()))


def _as_fraction(x: Any) -> Any:
    """A float such as 1/3, by which a kernel divides in a mean, as the exact fraction."""
    if not isinstance(x, float) or not np.isfinite(x):
        return x
    fraction = Fraction(x).limit_denominator(1000)
    return precise.lift_value(fraction.numerator) / fraction.denominator if float(fraction) == x else x


LOCK = reentrant_lock()  # torch's dual level is shared by all threads


class TorchAdapter(RecordingAdapter):
    """A function of torch, differentiated by nested `torch.autograd.grad`, forward by dual tensors, mapped by `torch.func.vmap`."""

    framework = "torch"
    seeded = True
    dtypes = ("float64", "float32", "float16", "bfloat16")
    missing = {  # which torch reports only in the text of its errors
        "no forward mode": ("must implement the jvp function", "forward AD with", "forward-mode AD", "Trying to use forward AD",
                            "override the setup_context"),
        "no complex derivative": ("does not support automatic differentiation for outputs with complex dtype",),
        "no rule for vmap": ("does not have vmap support", "override the setup_context", "vmap: It looks like", "doesn't have storage",
                             "Batching rule not implemented")}
    layouts = ("strided", "by columns", "unaligned", "overlapping")  # torch has no negative strides, no read-only memory, and one order of bytes

    def __init__(self, function: Callable[..., Any], name: str, options: AdapterOptions):
        super().__init__(function, name, options)
        self.torch = self.numpy = import_extra("torch", name)
        self.forward_ad = self.torch.autograd.forward_ad

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
        with self.reporting("no complex derivative"), self.torch.enable_grad():
            found = self.select_output(self.function(*leaves, *self.parameters))
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
        """`torch.autograd.grad`. With `again` the cotangents require grad if they are `seeded`: only then a once-differentiable backward raises."""
        kept = [(v, g if g.dtype == v.dtype else g.to(v.dtype)) for v, g in zip(values, cotangents) if v.requires_grad]
        if not kept:
            return [None] * len(leaves)
        if any(is_once_differentiable(v) for v, _ in kept):
            raise RuntimeError(f"trying to {ONCE}")
        seeded = again and self.seeded
        seeds = [g.detach().requires_grad_() if seeded and not g.requires_grad and (g.is_floating_point() or g.is_complex()) else g for _, g in kept]
        with self.reporting("no complex derivative"):
            return self.torch.autograd.grad([v for v, _ in kept], list(leaves), seeds, create_graph=again, retain_graph=True, allow_unused=True)

    def jvp(self, xs: Arrays, ts: Sequence[Array | None]) -> Any:
        """`torch.autograd.forward_ad`. Raises NotApplicable if a Function has no jvp."""
        forward = self.torch.autograd.forward_ad
        with LOCK, forward.dual_level():
            given = [self.leaf(x, False) if t is None else forward.make_dual(self.leaf(x, False), self.leaf(t, False).to(self.leaf(x, False).dtype))
                     for x, t in zip(xs, ts)]
            with self.reporting("no forward mode"):
                value, tangent = forward.unpack_dual(self.call(given))
            return self.torch.zeros_like(value) if tangent is None else tangent

    def _pushed_pullback(self, xs: Arrays, cotangent: Array, ts: Sequence[Array | None], places: Sequence[int]) -> list[Any]:
        with LOCK, self.reporting("no forward mode"):
            return super()._pushed_pullback(xs, cotangent, ts, places)

    def vmap(self, function: Callable[..., Any], axes: tuple[int | None, ...]) -> Any:
        return self.torch.func.vmap(function, axes, randomness="different" if self.options.random else "error")


class TorchPair(SuppliedDerivatives, TorchAdapter):  # whose derivatives take all arguments together
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
