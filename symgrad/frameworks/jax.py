"""Functions of JAX in 64 bits, `jax.custom_jvp` and `jax.custom_vjp` functions among them; and their programs evaluated in many digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import precise
from symgrad.carriers.precise import Digits
from symgrad.frameworks.adapter import Adapter, AdapterOptions, Array, Arrays, NotApplicable, import_extra
from symgrad.frameworks.shadow import NoShadow, Shadow, move_elements
from symgrad.frameworks.supplied_derivatives import SuppliedDerivatives
from symgrad.graph.op import REGISTRY

# Primitives that move numbers, or put zeros between them.
MOVES = {"broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "slice", "concatenate", "gather", "dynamic_slice", "rev", "split"}
NAMES = {"logistic": "sigmoid", "max": "maximum", "min": "minimum", "rem": "fmod", "add_any": "add", "is_finite": "isfinite"}
SAME = {"convert_element_type", "stop_gradient", "copy", "reduce_precision", "optimization_barrier"}
COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
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
        if name in COMPARISONS and any(np.asarray(x).dtype.kind in "fV" for x, _ in operands):
            self.decide(floats[0], self.apply(name, *(x for _, x in operands)))
        if all(np.asarray(x).dtype.kind not in "fV" for x in floats):
            return [(x, np.asarray(x)) for x in floats]
        exact = self._computed(name, equation, [x for _, x in operands])
        pairs = [(np.asarray(x), y) for x, y in zip(floats, exact if isinstance(exact, list) else [exact])]
        for pair in pairs:
            self.note(name, [(np.asarray(a), b) for a, b in operands], *pair)
        return pairs

    def _computed(self, name: str, equation: Any, xs: list[Any]) -> Any:
        params, known = equation.params, NAMES.get(name, name)
        if name in RULES:
            return RULES[name](self, equation, *xs)
        if name in ("cumsum", "cumprod") and not params["reverse"]:
            return self.apply(name, xs[0], params["axis"])
        if name == "pad" and all(x == 0 for x in np.ravel(xs[1])):
            return self._moved(equation, [xs[0]], 1)
        if name == "scatter-add":
            if np.max(self._bound(equation, [np.zeros(xs[0].shape), xs[1], np.ones(xs[2].shape)])) <= 1:  # no position is written twice
                return self.apply("add", xs[0], self._moved(equation, [np.zeros(xs[0].shape, int), xs[1], xs[2]]))
        if known not in REGISTRY or name in ("cumsum", "cumprod", "pad"):
            raise NoShadow(f"the primitive {name} of JAX")
        return self.apply(known, *xs)

    def _bound(self, equation: Any, given: Sequence[Any]) -> Any:
        return equation.primitive.bind(*map(self.jax.numpy.asarray, given), **equation.params)

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
        first, second = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
        for i, k in zip((*left, *left_batch), (*right, *right_batch)):
            second[k] = first[i]
        kept = [*left_batch, *(i for i in first if i not in (*left, *left_batch)), *(i for i in second if i >= a.ndim)]
        return precise.lift_value(np.asarray(np.einsum(a.view(np.ndarray), first, b.view(np.ndarray), second, kept)))


RULES: dict[str, Callable[..., Any]] = {
    **{name: lambda shadow, equation, *xs: shadow._moved(equation, [*xs]) for name in MOVES},
    **{name: lambda shadow, equation, x: shadow.read(x) for name in SAME},
    **{name: lambda shadow, equation, x, op=op: shadow.apply(op, x, tuple(equation.params["axes"])) for name, op in REDUCTIONS.items()},
    "integer_pow": lambda shadow, equation, x: shadow.apply("pow", x, equation.params["y"]),
    "select_n": lambda shadow, equation, chosen, a, b: shadow.apply("where", np.asarray(chosen).astype(bool), b, a),
    "clamp": lambda shadow, equation, low, x, high: shadow.apply("minimum", shadow.apply("maximum", x, low), high),
    "dot_general": lambda shadow, equation, a, b: shadow._dot(equation.params["dimension_numbers"], a, b),
}
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
    selective = True
    dtypes = ("float64", "float32", "float16", "bfloat16")
    layouts = ()

    def __init__(self, function: Callable[..., Any], name: str, options: AdapterOptions):
        super().__init__(function, name, options)
        self.jax = import_extra("jax", name)
        self.numpy = self.jax.numpy
        self.compiled = True
        errors = self.jax.errors
        self.missing = {"no forward mode": NO_FORWARD,
                        "no rule for vmap": (errors.ConcretizationTypeError, errors.TracerArrayConversionError, NotImplementedError)}

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
            return self.call_values(*leaves)

    def call_values(self, *leaves: Any) -> Any:
        return self.numpy.asarray(self.select_output(self.function(*leaves, *self.parameters)))

    def new_shadow(self) -> JaxShadow:
        return JaxShadow(self.jax)

    def array(self, value: Any) -> Array:
        return np.array(value) if self.shadow is None else self.shadow.read(value)

    def value_as_differentiated(self, xs: Arrays) -> Array:
        """The value, compiled as its derivatives are."""
        return self.array(self.evaluated(("value",), self.call_values, *xs))

    def evaluated(self, key: Any, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function of arrays compiled, or without compilation if it depends on concrete values."""
        with self.context():
            if self.shadow is not None:
                leaves, tree = self.jax.tree_util.tree_flatten(args)
                form = key, tree, *((np.shape(x), np.asarray(x).dtype) for x in leaves)
                if form not in self.known:
                    self.known[form] = self.jax.make_jaxpr(function, return_shape=True)(*args)
                return self.shadow.run(*self.known[form], *args)
            if self.compiled:
                try:
                    return self.known.setdefault(key, self.jax.jit(function))(*args)
                except NotApplicable:
                    raise
                except Exception:  # only a run without compilation shows whether compilation caused these
                    pass
            found = function(*self.jax.tree_util.tree_map(self._array, args))
            self.compiled = False
            return found

    def pullback(self, function: Callable[..., Any], cotangent: Any) -> Callable[..., Any]:
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

    def pushforward(self, function: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        return self.jax.jvp(function, primals, tuple(t.astype(x.dtype) for t, x in zip(tangents, primals)))[1]

    def vmap(self, function: Callable[..., Any], axes: tuple[int | None, ...]) -> Any:
        return self.jax.vmap(function, axes)


class JaxPair(SuppliedDerivatives, JaxAdapter):  # whose derivatives take all arguments together
    """A function of JAX whose derivatives are functions of its arrays, too."""

    def _given_derivatives(self, function: Callable[..., Any], xs: Arrays, *first: Any) -> Any:
        if self.shadow is None:
            return super()._given_derivatives(function, xs, *first)
        return self.evaluated(("given", function), lambda *args: function(*args, *self.parameters), *first, *xs)
