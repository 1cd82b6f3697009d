"""Functions of JAX in 64 bits, `jax.custom_jvp` and `jax.custom_vjp` functions among them; and their programs evaluated in many digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import precise
from symgrad.carriers.precise import Digits
from symgrad.frameworks.adapter import Adapter, AdapterOptions, Array, Arrays, NotApplicable, import_extra, is_active, not_applicable
from symgrad.frameworks.shadow import NoShadow, Shadow, move_elements
from symgrad.frameworks.supplied_derivatives import SuppliedDerivatives
from symgrad.graph.op import REGISTRY

# Primitives that move numbers, or put zeros between them.
MOVES = {"broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "slice", "concatenate", "gather", "dynamic_slice", "rev", "split"}
NAMES = {"logistic": "sigmoid", "max": "maximum", "min": "minimum", "rem": "fmod", "add_any": "add", "is_finite": "isfinite"}
SAME = {"convert_element_type", "stop_gradient", "copy", "reduce_precision", "optimization_barrier"}
REDUCTIONS = {"reduce_sum": "sum", "reduce_max": "amax", "reduce_min": "amin", "reduce_prod": "prod"}


class JaxShadow(Shadow):
    """The shadow execution of a function: `run` returns the shadow values of its traced program's results in their tree."""

    def __init__(self, jax: Any):
        super().__init__()
        self.jax = jax

    def read(self, value: Any) -> Any:
        return value if isinstance(value, Digits) else precise.lift_value(np.asarray(value))

    def run(self, program: Any, shape: Any, *args: Any) -> Any:
        """The shadow values of a traced function of arrays. Raises NoShadow for an unknown primitive."""
        tree = self.jax.tree_util
        given = [(np.asarray(x), self.read(x)) for x in tree.tree_leaves(args)]
        out = self._evaluated(program.jaxpr, program.consts, given)
        return tree.tree_unflatten(tree.tree_structure(shape), [exact for _, exact in out])

    def _evaluated(self, program: Any, constants: Sequence[Any], given: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """The results of a jaxpr, each as floats and as shadow values."""
        known = dict(zip(program.invars, given)) | {v: (c, self._lifted(c)) for v, c in zip(program.constvars, constants)}

        def value(v: Any) -> tuple[Any, Any]:
            return (v.val, self._lifted(v.val)) if hasattr(v, "val") else known[v]

        for equation in program.eqns:
            known.update(zip(equation.outvars, self._equation(equation, [value(v) for v in equation.invars])))
        return [value(v) for v in program.outvars]

    def _lifted(self, x: Any) -> Any:
        x = np.asarray(x)
        return precise.lift_value(x) if x.dtype.kind in "fV" else x

    def _equation(self, equation: Any, operands: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        name, params = equation.primitive.name, equation.params
        inner = next((params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in params), None)
        if name == "cond":
            inner = params["branches"][int(operands[0][0])]
            operands = operands[1:]
        if inner is not None and name not in ("while", "scan"):
            program = getattr(inner, "jaxpr", inner)
            return self._evaluated(program, getattr(inner, "consts", ()), operands)
        floats = self._bound(equation, [x for x, _ in operands])
        floats = list(floats) if equation.primitive.multiple_results else [floats]
        if all(np.asarray(x).dtype.kind not in "fV" for x in floats):
            return [(x, np.asarray(x)) for x in floats]
        exact = self._computed(name, equation, [x for _, x in operands])
        pairs = [(np.asarray(x), y) for x, y in zip(floats, exact if isinstance(exact, list) else [exact])]
        for pair in pairs:
            self.note(name, [(np.asarray(a), b) for a, b in operands], *pair)
        return pairs

    def _computed(self, name: str, equation: Any, xs: list[Any]) -> Any:
        params = equation.params
        if name in SAME:
            return self.read(xs[0])
        if name in MOVES:
            return self._moved(equation, xs)
        if name in REDUCTIONS:
            return self.apply(REDUCTIONS[name], xs[0], tuple(params["axes"]))
        if name in ("cumsum", "cumprod") and not params["reverse"]:
            return self.apply(name, xs[0], params["axis"])
        if name == "integer_pow":
            return self.apply("pow", xs[0], params["y"])
        if name == "select_n":
            return self.apply("where", np.asarray(xs[0]).astype(bool), xs[2], xs[1])
        if name == "clamp":
            return self.apply("minimum", self.apply("maximum", xs[1], xs[0]), xs[2])
        if name == "dot_general":
            return self._dot(params["dimension_numbers"], *xs)
        if name == "pad":
            return self._moved(equation, [xs[0]], 1) if all(x == 0 for x in np.ravel(xs[1])) else self._unknown(name)
        if name == "scatter-add":
            if np.max(self._bound(equation, [np.zeros(xs[0].shape), xs[1], np.ones(xs[2].shape)])) <= 1:  # no position is written twice
                return self.apply("add", xs[0], self._moved(equation, [np.zeros(xs[0].shape, int), xs[1], xs[2]]))
        if NAMES.get(name, name) in REGISTRY:
            return self.apply(NAMES.get(name, name), *xs)
        return self._unknown(name)

    def _bound(self, equation: Any, given: Sequence[Any]) -> Any:
        """The primitive of an equation on other arrays."""
        return equation.primitive.bind(*map(self.jax.numpy.asarray, given), **equation.params)

    def _unknown(self, name: str) -> Any:
        raise NoShadow(f"the primitive {name} of JAX")

    def _moved(self, equation: Any, xs: list[Any], after: int = 0) -> Any:
        real = [k for k, x in enumerate(xs) if isinstance(x, Digits)]

        def places(*arrays: Any) -> Any:
            given = list(xs)
            for k, array in zip(real, arrays):
                given[k] = array
            return self._bound(equation, [*given, *[np.zeros((), int)] * after])

        return move_elements(places, [xs[k] for k in real])

    def _dot(self, dimensions: Any, a: Any, b: Any) -> Any:
        """A product of arrays contracted over pairs of axes, with pairs of batch axes."""
        (left, right), (left_batch, right_batch) = dimensions
        letters = iter("abcdefghijklmnopqrstuvwxyz")
        first = [next(letters) for _ in range(a.ndim)]
        second = [""] * b.ndim
        for i, k in zip((*left, *left_batch), (*right, *right_batch)):
            second[k] = first[i]
        second = [s or next(letters) for s in second]
        kept = [first[i] for i in left_batch] + [s for i, s in enumerate(first) if i not in (*left, *left_batch)] + [
            s for i, s in enumerate(second) if i not in (*right, *right_batch)]
        axes = f"{''.join(first)},{''.join(second)}->{''.join(kept)}"
        return precise.lift_value(np.asarray(np.einsum(axes, a.view(np.ndarray), b.view(np.ndarray))))


NO_FORWARD = ("can't apply forward-mode", "do not support JVP")


class JaxAdapter(Adapter):
    """A function of JAX, differentiated by nested `jax.vjp`, forward by `jax.jvp`, mapped by `jax.vmap`.

    Derivatives are compiled if possible: op by op, XLA would compile each step for every shape.
    """

    framework = "jax"
    no_order = NO_FORWARD  # of a callback into Python, or of a custom_vjp below a jvp
    memory = False  # arrays of JAX cannot be written to
    subnormals = False  # XLA flushes them to zero
    compiles = True
    pickled = False  # the object under the name of a wrapped function is the wrapper
    batches = True
    dtypes = ("float64", "float32", "float16", "bfloat16")
    layouts = ()

    def __init__(self, function: Callable[..., Any], name: str, options: AdapterOptions):
        super().__init__(function, name, options)
        self.jax = import_extra("jax", name)
        self.numpy = self.jax.numpy
        self._compiled: dict[Any, Any] = {}
        self._programs: dict[Any, Any] = {}
        self._reached: dict[Any, int] = {}
        self.compiled, self._probed = True, False

    def context(self) -> Any:
        switch = self.jax.enable_x64 if hasattr(self.jax, "enable_x64") else import_extra("jax.experimental", self.name).enable_x64
        return switch(True)

    def leaf(self, x: Array, differentiated: bool = True) -> Any:
        with self.context():
            return self._array(x)

    def _array(self, x: Array) -> Any:
        """A copy; `jax.numpy.array` would compile for every shape."""
        return self.jax.device_put(np.array(x))

    def call(self, leaves: Sequence[Any]) -> Any:
        with self.context():
            return self._call_as_array(*leaves)

    def _call_as_array(self, *leaves: Any) -> Any:
        return self.numpy.asarray(self.select_output(self.function(*leaves, *self.parameters)))

    def new_shadow(self) -> JaxShadow:
        return JaxShadow(self.jax)

    def array(self, value: Any) -> Array:
        return np.array(value) if self.shadow is None else self.shadow.read(value)

    def value_as_differentiated(self, xs: Arrays) -> Array:
        """The value, compiled as its derivatives are."""
        return self.array(self._run(("value",), self._call_as_array, *xs))

    def gradient(self, xs: Arrays, cotangent: Array, *tangents: Sequence[Array | None]) -> list[Array | None]:
        """The pullback of the cotangent by `jax.vjp`, and the pullback of each further set of tangents through the previous one.

        The first two orders are compiled together, and results compiled for a higher order are used for lower ones.
        """
        places = [i for i, x in enumerate(xs) if is_active(x)]
        sets = [tuple(np.zeros_like(xs[i]) if ts[i] is None else ts[i] for i in places) for ts in tangents]
        given = (*((x.shape, x.dtype) for x in xs), cotangent.dtype)
        order, usual = len(sets), int(self._probed and self.orders > 1 and self.compiled)
        if self.shadow is None:
            sets += [tuple(np.ones_like(xs[i]) for i in places)] * (self._reached.get(given, usual) - order)

        def pulled(arrays: Any, g: Any, sets: Any) -> Any:
            active = [arrays[i] for i in places]
            levels = [self._pullback(self.restrict_to(self._call_as_array, arrays, places), g)]
            for ts in sets:
                levels.append(self._pullback(levels[-1], ts))
            return [level(*active) for level in levels]

        try:
            found = self._run(("gradient", *places), pulled, list(xs), cotangent, sets)
        except Exception:
            if len(sets) == order:
                raise
            sets = sets[:order]  # the error of a higher order does not concern this one
            found = self._run(("gradient", *places), pulled, list(xs), cotangent, sets)
        self._reached[given] = len(sets) if self.compiled else 0
        return self.place(found[order], places, len(xs))

    def alone(self, xs: Arrays, cotangent: Array, place: int, tangent: Array | None = None) -> Array | None:
        """The gradient by one argument where the others are constants; with a tangent, that of its product with the tangent."""
        def pulled(arrays: Any, g: Any, further: Any) -> Any:
            level = self._pullback(self.restrict_to(self._call_as_array, arrays, [place]), g)
            return (self._pullback(level, further) if further else level)(arrays[place])[0]

        return self.array(self._run(("alone", place), pulled, list(xs), cotangent, () if tangent is None else (tangent,)))

    def probe(self, xs: Arrays) -> None:
        super().probe(xs)
        self._probed = True

    def _run(self, key: Any, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function of arrays compiled, or without compilation if it depends on concrete values."""
        with self.context():
            if self.shadow is not None:
                leaves, tree = self.jax.tree_util.tree_flatten(args)
                form = key, tree, *((np.shape(x), np.asarray(x).dtype) for x in leaves)
                if form not in self._programs:
                    self._programs[form] = self.jax.make_jaxpr(function, return_shape=True)(*args)
                return self.shadow.run(*self._programs[form], *args)
            if self.compiled:
                if key not in self._compiled:
                    self._compiled[key] = self.jax.jit(function)
                try:
                    return self._compiled[key](*args)
                except NotApplicable:
                    raise
                except Exception:  # only a run without compilation shows whether compilation caused these
                    pass
            found = function(*self.jax.tree_util.tree_map(self._array, args))
            self.compiled = False
            return found

    def _pullback(self, function: Callable[..., Any], cotangent: Any) -> Callable[..., Any]:
        """The pullback of a cotangent as a function of the arguments, conjugated as in other frameworks."""
        tree = self.jax.tree_util

        def conjugate_like(value: Any, g: Any) -> Any:
            return self.numpy.conj(self.numpy.asarray(g).astype(value.dtype))

        def pulled(*active: Any) -> Any:
            value, pull = self.jax.vjp(function, *active)
            if self.numpy.issubdtype(getattr(value, "dtype", float), self.numpy.inexact) is False:
                raise NotApplicable(f"the value is of {value.dtype}, which has no derivative")
            return tree.tree_map(self.numpy.conj, pull(tree.tree_map(conjugate_like, value, cotangent)))

        return pulled

    def jvp(self, xs: Arrays, ts: Sequence[Array | None]) -> Any:
        """`jax.jvp`. Raises NotApplicable for a `custom_vjp` function, which has no pushforward."""
        places = [i for i, t in enumerate(ts) if t is not None]

        def pushforward(arrays: Any, directions: Any) -> Any:
            primals = tuple(arrays[i] for i in places)
            tangents = tuple(t.astype(x.dtype) for t, x in zip(directions, primals))
            try:
                return self.jax.jvp(self.restrict_to(self._call_as_array, arrays, places), primals, tangents)[1]
            except (TypeError, ValueError) as error:
                if any(words in str(error) for words in NO_FORWARD):
                    raise not_applicable("no forward mode", error) from error
                raise

        return self._run(("tangent", *places), pushforward, list(xs), [ts[i] for i in places])

    def batch(self, xs: Arrays, axes: Sequence[int | None]) -> Array:
        """`jax.vmap`. Raises NotApplicable if the function depends on concrete values or calls back into Python."""
        return self.array(self._run(("batch", *axes), self._vmap(axes), *xs))

    def batch_gradient(self, xs: Arrays, cotangent: Array, axes: Sequence[int | None]) -> list[Array | None]:
        places = [i for i, x in enumerate(xs) if is_active(x)]

        def pulled(arrays: Any, g: Any) -> Any:
            return self._pullback(self.restrict_to(self._vmap(axes), arrays, places), g)(*(arrays[i] for i in places))

        return self.place(self._run(("batch gradient", *axes), pulled, list(xs), cotangent), places, len(xs))

    def _vmap(self, axes: Sequence[int | None]) -> Callable[..., Any]:
        def mapped(*leaves: Any) -> Any:
            try:
                return self.jax.vmap(self._call_as_array, tuple(axes))(*leaves)
            except (self.jax.errors.ConcretizationTypeError, self.jax.errors.TracerArrayConversionError, NotImplementedError) as error:
                if self.options.batched:
                    raise
                raise not_applicable("no rule for vmap", error) from error

        return mapped


class JaxPair(SuppliedDerivatives, JaxAdapter):  # type: ignore[misc]  # whose derivatives take all arguments together
    """A function of JAX whose derivatives are functions of its arrays, too."""

    def _given_derivatives(self, function: Callable[..., Any], xs: Arrays, *first: Any) -> Any:
        if self.shadow is None:
            return super()._given_derivatives(function, xs, *first)
        return self._run(("given", function), lambda *args: function(*args, *self.parameters), *first, *xs)
