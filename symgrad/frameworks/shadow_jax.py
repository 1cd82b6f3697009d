"""Shadow execution of functions of JAX: each equation of the jaxpr is evaluated on floats and on shadow values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.carriers import precise
from symgrad.carriers.precise import Digits
from symgrad.frameworks.shadow import NoShadow, Shadow, move_elements
from symgrad.graph.op import REGISTRY

__all__ = ["JaxShadow"]

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
