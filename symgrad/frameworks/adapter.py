"""`Adapter`: the interface to a function of any framework. It takes and returns arrays; only subclasses handle values of the framework."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symgrad.frameworks.calling import parts_of
from symgrad.frameworks.naming import import_path
from symgrad.frameworks.shadow import NoShadow, PerturbedCarrier, Shadow
from symgrad.reference.tensors import is_active as is_active  # for all that call adapters

ONCE = "differentiate twice a function that was marked with @once_differentiable"  # the wording of torch and symgrad
Array = np.ndarray
Arrays = Sequence[np.ndarray]
Index = tuple[int, ...]


class NotApplicable(Exception):
    """The reason why a function does not support an operation, or why a check does not apply to it."""


@dataclass(frozen=True)
class AdapterOptions:
    """Options of the call of a function, and claims about the operations that it supports.

    `parameters` are appended to the arrays. Of several results `output` is checked, or with `joined` all numbers as one vector. `order` is the
    highest order of derivatives, `random` is True for a function whose calls differ, `batched` for one that supports vmap. `gradient`, `hessian`,
    `pullback` and `pushforward` are derivatives given with the function; with `pair` the function itself returns (value, gradient).
    """

    parameters: tuple[Any, ...] = ()
    output: int | None = None
    joined: bool = False
    order: int | None = None
    random: bool = False
    batched: bool | None = None
    gradient: Callable[..., Any] | None = None
    hessian: Callable[..., Any] | None = None
    pullback: Callable[..., Any] | None = None
    pushforward: Callable[..., Any] | None = None
    pair: bool = False

    @property
    def given(self) -> bool:
        """Whether derivatives are given with the function."""
        return self.pair or any(f is not None for f in (self.gradient, self.pullback, self.pushforward))


PLAIN = AdapterOptions()


def import_extra(module: str, function: str) -> Any:
    """A module of another framework. Raises ImportError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f"symgrad: {function} is a function of {name}, which is not installed: pip install 'symgrad[parity]'") from error


def count_text(count: int, what: str) -> str:
    """A number with a noun in the singular or plural.

    >>> count_text(1, "value"), count_text(2, "value")
    ('1 value', '2 values')
    """
    return f"{count} {what}{'s' * (count != 1)}"


class Adapter:
    """A function in its framework; checks use this interface only.

    `orders` is how often it can be differentiated, `forward` whether it has a pushforward, `memory` whether tensors of the framework are
    views of arrays, so that layouts, aliasing and mutation can be checked; `batches` whether the framework has a vmap;
    `compiles` whether it compiles for every shape, so that few are drawn; `subnormals` whether it keeps numbers below the smallest
    normal one, `pickled` whether functions of it can be pickled, `records` whether values record a graph. `methods` names how the derivatives of
    each order are computed.
    """

    framework = "numpy"
    no_order: tuple[str, ...] = (ONCE,)  # words of errors that say that a function cannot be differentiated further, rather than that it is wrong
    op: Any = None  # the Op of symgrad whose rules are called, None for a function
    shadow: Any = None  # the shadow execution of the calls, whose values `array` then returns
    memory = True
    subnormals = True
    compiles = False
    compiled = False  # whether calls are compiled now
    pickled = True
    batches = False
    records = False
    dtypes: tuple[str, ...] = ("float64", "float32", "float16")
    layouts: tuple[str, ...] = ("strided", "backwards", "by columns", "read-only", "unaligned", "byte-swapped", "overlapping")
    selective = False  # whether `gradient` can be taken by some of the active arguments, where the others are constants
    missing: dict[str, tuple[Any, ...]] = {}  # what a function can lack, with words of the errors that say so, or their types
    numpy: Any = np  # the framework's functions with the names of NumPy

    def __init__(self, function: Any, name: str, options: AdapterOptions):
        self.function, self.name, self.options = function, name, options
        self.parameters = options.parameters
        self.orders = 3 if options.order is None else options.order
        self.forward = True
        self.known: dict[Any, Any] = {}  # mapped and compiled functions

    @property
    def methods(self) -> dict[int, str]:
        """The methods by which the value and the derivatives of each order are computed."""
        grad = f"{self.framework}{'.autograd' * self.records}.grad"
        return {0: "the function", 1: grad, 2: f"{grad} of it", 3: f"{grad} of that"}

    def calling(self, function: Callable[..., Any]) -> Adapter:
        """The adapter of another function, with the same options."""
        out = copy.copy(self)
        out.function, out.known = function, {}
        return out

    def select_output(self, found: Any) -> Any:
        """The output to check. Raises TypeError if there are several and `output` is missing, and for a result that is not an array."""
        if self.options.joined:
            return self.join(list(parts_of(found)))
        output = self.options.output
        if output is not None:
            if not isinstance(found, (tuple, list)):
                raise TypeError(f"{self.name} returns one value, {type(found).__name__}; output={output} chooses among several")
            if not -len(found) <= output < len(found):
                raise IndexError(f"{self.name} returns {count_text(len(found), 'value')}; output={output} is none of them")
            found = found[output]
        if isinstance(found, (tuple, list)):
            several = "say which one is meant, as in output=0" + (", or return an array of them" if isinstance(found, list) else "")
            raise TypeError(f"{self.name} returns {count_text(len(found), 'value')} in a {type(found).__name__}; {several}")
        if found is None or isinstance(found, (str, bytes, dict, set)):
            raise TypeError(f"{self.name} returned {'None' if found is None else 'a ' + type(found).__name__}; expected an array or a number")
        return found

    def join(self, parts: Sequence[Any]) -> Any:
        """All results as one array of the framework."""
        if not parts:
            raise TypeError(f"{self.name} returned nothing")
        if len(parts) == 1:
            return parts[0]
        return self.numpy.concatenate([self.numpy.reshape(self.numpy.asarray(p), (-1,)) for p in parts])

    @contextmanager
    def reporting(self, what: str) -> Iterator[None]:
        """Raise NotApplicable for an error in the block that says that the function lacks something, such as a rule for vmap."""
        try:
            yield
        except Exception as error:
            said = any(w in str(error) if isinstance(w, str) else isinstance(error, w) for w in self.missing[what])
            if not said or isinstance(error, NotApplicable):
                raise
            raise NotApplicable(f"{what}: {str(error).splitlines()[0][:160]}") from error

    def probe(self, xs: Arrays) -> None:
        """Determine by calls at one point which orders of derivatives (unless `order` is given) and whether forward mode are supported."""
        ones = [np.ones_like(x) if is_active(x) else None for x in xs]
        while self.options.order is None and self.orders:
            try:
                self.gradient(xs, np.ones_like(self.value(xs)), *[ones] * (self.orders - 1))
                break
            except Exception as error:  # the checks report what a user's function raises
                if not any(words in str(error) for words in self.no_order):
                    break
                self.orders -= 1
        try:
            self.tangent(xs, ones)
        except NotApplicable:
            self.forward = False
        except Exception:
            pass

    def new_shadow(self) -> Shadow:
        """A new shadow execution of calls. Raises NoShadow if the framework has none."""
        raise NoShadow(f"functions of {self.framework} are not followed")

    @contextmanager
    def following(self, part: float = 0.0, seed: int = 0) -> Iterator[Shadow]:
        """A context in which `array` gives numbers in many digits; with a part, each operation changes its result by a random one up to it."""
        try:
            with self.context():
                self.shadow = self.new_shadow()
                if part:
                    self.shadow.recorder = PerturbedCarrier(part, seed)
                with self.shadow.active():
                    yield self.shadow
        finally:
            self.shadow = None

    def context(self) -> AbstractContextManager[Any]:
        """A context in which values of the framework have 64 bits."""
        return nullcontext()

    # Methods on values of the framework

    def leaf(self, x: Array, differentiated: bool = True) -> Any:
        """An array as an argument, without a copy if the framework allows it. An inactive argument never requires grad."""
        return np.asarray(x)

    def call(self, leaves: Sequence[Any]) -> Any:
        """The function's result as a value of the framework; `parameters` are appended to the arguments."""
        return self.select_output(self.function(*leaves, *self.parameters))

    def array(self, value: Any) -> Array:
        """A value of the framework as an array, without a copy if the framework allows it."""
        return np.asarray(value)

    def grad(self, values: Sequence[Any], leaves: Sequence[Any], cotangents: Sequence[Any], again: bool) -> Sequence[Any]:
        """The pullback of cotangents, None for an argument the values do not depend on; `again` if it is to be differentiated itself."""
        raise NotApplicable(f"{self.framework} differentiates functions, not values")

    def jvp(self, xs: Arrays, ts: Sequence[Array | None]) -> Any:
        """The tangent of the result as a value of the framework; a tangent None is zero."""
        places = [i for i, t in enumerate(ts) if t is not None]

        def pushed(arrays: Any, directions: Any) -> Any:
            with self.reporting("no forward mode"):
                return self.pushforward(self.restrict_to(self.call_values, arrays, places), tuple(arrays[i] for i in places), tuple(directions))

        return self.evaluated(("tangent", *places), pushed, list(xs), [ts[i] for i in places])

    # Functions of values, of which derivatives are taken unless values record a graph

    def pullback(self, function: Callable[..., Any], cotangent: Any) -> Callable[..., Any]:
        """The pullback of a cotangent, or of one for each of several results, as a function of the arguments."""
        raise NotImplementedError

    def pushforward(self, function: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        """The tangent of the result."""
        raise NotImplementedError

    def call_values(self, *leaves: Any) -> Any:
        """The function as one of several values."""
        return self.call(leaves)

    def evaluated(self, key: Any, function: Callable[..., Any], *args: Any) -> Any:
        """A function of arrays at arrays; its key says which it is, for a framework that compiles."""
        return function(*args)

    # Methods on arrays

    def value(self, xs: Arrays) -> Array:
        """The value, in the function's dtype and shape."""
        return self.array(self.call([self.leaf(x, False) for x in xs]))

    def value_as_differentiated(self, xs: Arrays) -> Array:
        """The value, computed in the same way as the derivatives."""
        return self.value(xs)

    def gradient(self, xs: Arrays, cotangent: Array, *tangents: Sequence[Array | None], by: Sequence[int] | None = None) -> list[Array | None]:
        """The pullback of the cotangent; each further set of tangents adds one order: the gradient of Σ tangent * (previous gradient).

        With n sets of tangents these are derivatives of order n + 1. None is the gradient by an argument that the value does not depend on,
        and by an inactive one. `tangents` entries may be None for zero. A `selective` adapter differentiates `by` some arguments alone.
        """
        places = [i for i, x in enumerate(xs) if is_active(x)] if by is None else by
        sets = [tuple(np.zeros_like(xs[i]) if ts[i] is None else ts[i] for i in places) for ts in tangents]

        def pulled(arrays: Any, g: Any, sets: Any) -> Any:
            level = self.pullback(self.restrict_to(self.call_values, arrays, places), g)
            for ts in sets:
                level = self.pullback(level, ts)
            return level(*(arrays[i] for i in places))

        return self.place(self.evaluated(("gradient", *places), pulled, list(xs), cotangent, sets), places, len(xs))

    def derivatives(self, xs: Arrays, cotangent_of: Callable[[Array], Array], orders: Sequence[Sequence[Index]],
                    directions: Sequence[Sequence[Array]]) -> Iterator[Any]:
        """The value, then for each order its gradients. Order k + 1 has one gradient for each tuple of k indices of `directions` in `orders[k]`.

        The pullback is that of the cotangent `cotangent_of(value)`.
        """
        value = self.value_as_differentiated(xs)
        yield value
        cotangent = cotangent_of(value)
        for sets in orders:
            yield [self.gradient(xs, cotangent, *(directions[i] for i in index)) for index in sets]

    def place(self, found: Sequence[Any], places: Sequence[int], count: int) -> list[Array | None]:
        """The gradients of the arguments at `places` as arrays, and None for all other arguments."""
        out: list[Array | None] = [None] * count
        for i, c in zip(places, found):
            out[i] = None if c is None else self.array(c)
        return out

    def restrict_to(self, function: Callable[..., Any], xs: Sequence[Any], places: Sequence[int]) -> Callable[..., Any]:
        """The function of the arguments at `places` only."""
        def restricted(*some: Any) -> Any:
            given = list(xs)
            for i, x in zip(places, some):
                given[i] = x
            return function(*given)

        return restricted

    def second_routes(self, xs: Arrays, cotangent: Array, ts: Sequence[Array | None]) -> Iterator[tuple[str, list[Array | None], str]]:
        """The ways to differentiate twice: what is done, what that gives for each argument, and of which result it is another computation.

        That is "first", the pullback of the cotangent; "second", its pullback along the tangents; or "tangent", the pushforward of the tangents,
        which is the only element of the list.
        """
        raise NotApplicable(f"{self.framework} has one way to differentiate twice here")

    def tangent(self, xs: Arrays, ts: Sequence[Array | None]) -> Array:
        """The pushforward of tangents."""
        return self.array(self.jvp(xs, ts))

    def vmap(self, function: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
        """The framework's vmap of a function of its values; an axis None is not mapped."""
        raise NotApplicable(f"{self.framework} functions are not mapped over batches here")

    def mapped(self, axes: Sequence[int | None], levels: int = 1) -> Adapter:
        """The function mapped over an axis of each argument (None: not mapped) by the framework's vmap, inside further ones with more levels.

        Its calls raise NotApplicable if the function depends on concrete values, or has no rule for it.
        """
        key = (*axes, levels)
        if key not in self.known:
            function: Any = lambda *given: self.call(given)
            for _ in range(levels):
                function = self.vmap(function, tuple(axes))

            def reported(*leaves: Any) -> Any:
                with nullcontext() if self.options.batched else self.reporting("no rule for vmap"):
                    return function(*leaves)

            out = self.known[key] = self.calling(reported)
            out.parameters, out.options = (), replace(self.options, output=None, joined=False)
        return self.known[key]

    def import_path(self) -> tuple[str, str] | None:
        """The module and the name for importing the function, for reports; None if it cannot be imported."""
        return import_path(self.function)
