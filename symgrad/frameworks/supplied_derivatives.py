"""Functions with given derivatives, functions without derivatives, and functions of HIPS autograd, written with its NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.factories.creation import tensor
from symgrad.frameworks.adapter import Adapter, AdapterOptions, Array, Arrays, NotApplicable, count_text, import_extra, is_active
from symgrad.frameworks.differentiation_task import NotCheckable
from symgrad.frameworks.shadow import RecordedShadow


class SuppliedDerivatives(Adapter):
    """A function with derivatives of its own, in the values of its framework.

    They are `pullback(g, *arrays)`, an array per argument (a single one may be bare, None is zero), or `gradient(*arrays)`,
    the partial derivatives of an elementwise or number-valued function, and `hessian(*arrays)` of a number-valued one; and
    `pushforward(ts, *arrays)`. The parameters come after the arrays. Without derivatives the order is 0.
    """

    batches = False
    records = False
    selective = False

    def __init__(self, function: Callable[..., Any], name: str, options: AdapterOptions):
        super().__init__((lambda *xs: self._value_and_gradient(function(*xs))[0]) if options.pair else function, name, options)
        self.partials = (lambda *xs: self._value_and_gradient(function(*xs))[1]) if options.pair else options.gradient
        brings = self.partials is not None or options.pullback is not None
        self.orders = min(self.orders, 2 if options.hessian else 1) if brings else 0
        self.forward = options.pushforward is not None

    @property
    def methods(self) -> dict[int, str]:
        return {0: "the function", **{k + 1: f"the {what} that comes with it" for k, what in enumerate(("gradient", "Hessian")[:self.orders])}}

    def _value_and_gradient(self, found: Any) -> Any:
        if not isinstance(found, (tuple, list)) or len(found) < 2:
            raise TypeError(f"{self.name} returned {type(found).__name__}; with returns='pair', expected (value, gradient)")
        return found

    def _given_derivatives(self, function: Callable[..., Any], xs: Arrays, *first: Any) -> Any:
        with self.context():
            return function(*first, *(self.leaf(x, False) for x in xs), *self.parameters)

    def gradient(self, xs: Arrays, cotangent: Array, *tangents: Sequence[Array | None], by: Any = None) -> list[Array | None]:
        """The given pullback, or the given partial derivatives times the cotangent, summed over broadcast axes."""
        if len(tangents) >= max(self.orders, 1) or not self.orders:
            raise NotApplicable("no gradient comes with it" if not self.orders else "what comes with it is the first derivative")
        if tangents:
            return self._hessian_product(xs, cotangent, tangents[0])
        if self.options.pullback is not None:
            return self._per_argument(self._given_derivatives(self.options.pullback, xs, self.leaf(cotangent, False)), xs)
        assert self.partials is not None
        partials = self._per_argument(self._given_derivatives(self.partials, xs), xs)
        if self.options.joined and cotangent.size > 1 and any(x.shape != cotangent.shape for x in xs):
            raise NotCheckable(f"{self.name} returns an array of shape {list(cotangent.shape)} and its gradient goes with each element, but an "
                               f"argument has another shape; give arrays of one shape, or a function that returns a number")
        return [None if p is None else _sum_broadcast(cotangent * (np.conj(p) if p.dtype.kind == "c" else p), x) for p, x in zip(partials, xs)]

    def _hessian_product(self, xs: Arrays, cotangent: Array, tangents: Sequence[Array | None]) -> list[Array | None]:
        direction = np.concatenate([np.ravel(np.zeros_like(x) if t is None else t) for t, x in zip(tangents, xs)])
        hessian, n = self.array(self._given_derivatives(self.options.hessian, xs)), direction.size  # type: ignore[arg-type]
        if hessian.size != n * n:
            raise NotCheckable(f"the Hessian of {self.name} has the shape {list(hessian.shape)}, but {n} x {n} is expected")
        return self._split(cotangent.sum() * (direction @ hessian.reshape(n, n)), xs)

    def _split(self, vector: Array, xs: Arrays) -> list[Array | None]:
        ends = np.cumsum([x.size for x in xs])
        return [vector[end - x.size:end].reshape(x.shape) for end, x in zip(ends, xs)]

    def _per_argument(self, found: Any, xs: Arrays) -> list[Array | None]:
        """An array per argument; None for inactive arguments."""
        active = [i for i, x in enumerate(xs) if is_active(x)]
        if found is None:
            raise TypeError(f"the gradient of {self.name} returned None; expected {'an array' if len(xs) == 1 else 'an array for each argument'}")
        one = not isinstance(found, (tuple, list)) or len(xs) == 1 and np.shape(found) == xs[0].shape != (1,)
        if self.options.joined and (one or len(found) != len(xs)) and self.array(found).size == sum(x.size for x in xs):
            return self._split(self.array(found).ravel(), xs)
        found = (found,) if one else found
        if len(found) not in (len(xs), len(active)):
            parts, arguments = count_text(len(found), "part"), count_text(len(xs), "argument")
            raise (NotCheckable if self.options.joined else TypeError)(
                f"the gradient of {self.name} has {parts} for {arguments}; expected one array for each"
                + "; limit the arguments by wrt" * self.options.joined)
        places = range(len(xs)) if len(found) == len(xs) else active
        out: list[Array | None] = [None] * len(xs)
        for i, c in zip(places, found):
            c = as_array_like(c, [xs[i]]) if type(c) is float else c
            out[i] = None if c is None or i not in active else self.array(c)
            if self.options.joined and c is not None and out[i].size != xs[i].size:  # type: ignore[union-attr]
                raise NotCheckable(f"the gradient of {self.name} by argument {i + 1} has {count_text(np.size(out[i]), 'element')}, "  # type: ignore[arg-type]
                                   f"but {xs[i].size} are expected")
        return out

    def jvp(self, xs: Arrays, ts: Sequence[Array | None]) -> Any:
        """The given pushforward; a tangent None is zero."""
        if self.options.pushforward is None:
            raise NotApplicable("no pushforward comes with it")
        given = [np.zeros_like(x) if t is None and is_active(x) else t for x, t in zip(xs, ts)]
        return self._given_derivatives(self.options.pushforward, xs, [t if t is None else self.leaf(t, False) for t in given])


class NumpyAdapter(SuppliedDerivatives):
    """A function of NumPy.

    >>> adapter = NumpyAdapter(np.sin, "sin", AdapterOptions(gradient=np.cos))
    >>> adapter.value([np.zeros(1)]), adapter.gradient([np.zeros(1)], np.full(1, 2.0)), adapter.orders
    (array([0.]), [array([2.])], 1)
    """

    def new_shadow(self) -> RecordedShadow:
        return RecordedShadow()

    def leaf(self, x: Array, differentiated: bool = True) -> Any:
        return super().leaf(x, differentiated) if self.shadow is None else tensor(x, dtype=x.dtype, requires_grad=is_active(x))

    def call(self, leaves: Sequence[Any]) -> Any:
        found = super().call(leaves)
        return as_array_like(found, leaves) if type(found) in (float, int) else found

    def join(self, parts: Sequence[Any]) -> Any:
        return super().join(parts) if len(parts) < 2 or len({np.shape(p) for p in parts}) > 1 else np.asarray(parts)

    def array(self, value: Any) -> Array:
        if self.shadow is not None:
            return self.shadow.read(value)
        out = np.asarray(value.detach() if hasattr(value, "detach") else value)
        if out.dtype.kind not in "fciubV":
            what = f"an array of {out.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
            raise TypeError(f"{self.name} returned {what}; expected a number or an array of numbers")
        return out


def as_array_like(number: Any, arrays: Arrays) -> Array:
    """A Python number as an array, with the dtype of the arrays."""
    floats = [x.dtype for x in arrays if is_active(x)]
    return np.asarray(number, np.result_type(*floats) if type(number) is float and floats else None)


def _sum_broadcast(c: Array, x: Array) -> Array:
    """The sum over broadcast axes, in the dtype of the argument."""
    c = np.asarray(c)
    if c.shape != x.shape and c.size == x.size == 1:
        c = c.reshape(x.shape)
    if c.shape != x.shape:
        if np.broadcast_shapes(c.shape, x.shape) == x.shape:  # a constant derivative
            c = np.broadcast_to(c, x.shape)
        c = numeric.sum_to_size(c, x.shape)
    return c if c.dtype in (x.dtype, object) else c.astype(x.dtype)  # objects are numbers in many digits


class AutogradAdapter(Adapter):
    """A function of HIPS autograd, differentiated by nested `autograd.make_vjp`, forward by `autograd.make_jvp`."""

    framework = "autograd"
    selective = True
    missing = {"no forward mode": (NotImplementedError,)}

    def __init__(self, function: Callable[..., Any], name: str, options: AdapterOptions):
        super().__init__(function, name, options)
        self.autograd = import_extra("autograd", name)
        self.numpy = import_extra("autograd.numpy", name)
        self.tuple = import_extra("autograd.builtins", name).tuple

    def pullback(self, function: Callable[..., Any], cotangent: Any) -> Callable[..., Any]:
        given = self.tuple(cotangent) if isinstance(cotangent, tuple) else cotangent
        return lambda *xs: self.autograd.make_vjp(self._of_tuple(function, len(xs)))(self.tuple(xs))[0](given)

    def pushforward(self, function: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        return self.autograd.make_jvp(self._of_tuple(function, len(primals)))(self.tuple(primals))(self.tuple(tangents))[1]

    def _of_tuple(self, function: Callable[..., Any], count: int) -> Callable[[Any], Any]:
        return lambda some: function(*(some[k] for k in range(count)))
