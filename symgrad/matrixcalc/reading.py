"""Conversion of a recorded graph to the normal form."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from symgrad.engine.replay import arguments, call_rule
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.matrixcalc.carrier import carrier
from symgrad.matrixcalc.labelled import Condition, Labelled, lift
from symgrad.matrixcalc.rewriting import without_factors
from symgrad.matrixcalc.terms import ONE, AxisLength, Dimension, Factor, Index, NoCompactForm, Sum, Symbol, Term, times


class TensorGraph:
    """The graph of a tensor: its leaves as symbols, and its value as a sum."""

    def __init__(self, roots: list[tuple[Node, Any]], symmetric: Collection[str] = (), names: dict[str, tuple[Dimension, ...]] | None = None):
        self.roots, self.names = roots, names or {}
        self.symbols: dict[str, Symbol] = {}
        self.leaves: dict[Leaf, Symbol] = {}
        self._symmetric = set(symmetric)
        self.nodes = upstream([node for node, _ in roots])
        values = self._values()
        total = None
        for node, g in roots:
            y = values[node]
            if g is not None:
                y = carrier.sum(y * lift(g))
            total = y if total is None else total + y
        assert total is not None
        unknown = self._symmetric - set(self.symbols)
        if unknown:
            raise ValueError(f"matrix_expr: {', '.join(sorted(unknown))} is declared symmetric, but the leaves are {', '.join(self.symbols)}")
        if any(i is None for i in total.axes):
            total = carrier.reshape(total, tuple(n for n in total.shape if n != 1))
        self.normal_form: Sum = without_factors(total.total)

    def _values(self) -> dict[Node, Any]:
        values: dict[Node, Any] = {}
        for node in self.nodes:
            if isinstance(node, Leaf):
                values[node] = self._leaf(node) if node.symbol is not None else _UnnamedLeaf(node)
            elif type(node) is DerivativeNode:
                values[node] = lift(node.value) if node.parents[0] is None else values[node.parents[0]]
            else:
                values[node] = self._value_of(node, values)
        return values

    def _value_of(self, node: Node, values: dict[Node, Any]) -> Any:
        name = node.op.name
        args = arguments(node, values, lambda value: value)
        if name in ("cat", "stack"):
            scalars = [self.leaves[p].name for p in node.parents if isinstance(p, Leaf) and p in self.leaves and not p.value.ndim]
            raise NoCompactForm(f"matrix_expr: {name} has no compact form" + (
                f": its elements are named one by one ({', '.join(scalars)}); make one tensor with one symbol" if scalars else
                "; use .expr, which has a formula for every element"))
        if name == "softmax" or name == "expm1":
            inner = node.parents[0]
            if type(inner) is not Leaf and inner is not None and getattr(inner, "op", None) is not None and inner.op.name == "log_softmax":
                below = inner.parents[0]
                x = values[below] if below is not None else lift(inner.args[0])  # type: ignore[index]
                found = carrier.softmax(x, inner.args[1])  # type: ignore[index]
                return found if name == "softmax" else found - 1
        lifted = tuple(self._lift_leaf(a) if isinstance(a, _UnnamedLeaf) else a for a in args[:len(node.parents)])
        rules: dict[str, Any] = {"mean": self._mean, "mse_loss": self._mse, "var": self._var, "std": lambda *given: carrier.sqrt(self._var(*given)),
                                 "centred": lambda x, dim: x - self._mean(x, dim, True)}
        if name == "where" and len(lifted) == 3 and _is_nan(lifted[1]):  # a formula holds where it is defined
            return lift(lifted[2])
        if name == "reference":
            return lift(0)
        if name == "eq" and _are_places(*lifted):
            return False
        if name == "cholesky_factor":
            _check_symmetric(node.parents[0])
        try:
            if name in rules:
                return rules[name](*[lift(a) for a in lifted], *(node.args or ())[len(node.parents):])
            conditions = (Condition, bool)
            return call_rule(carrier, node, tuple(a if isinstance(a, conditions) else lift(a) for a in lifted), node.args or ())
        except NoCompactForm as error:
            named = name in str(error) or "linalg." in str(error)
            raise NoCompactForm(str(error) if named else str(error).replace("matrix_expr: ", f"matrix_expr: {name}: ", 1)) from None
        except (TypeError, AttributeError, ValueError) as error:
            raise NoCompactForm(f"matrix_expr: {name} has no compact form ({error}); use .expr, which has a formula for every element") from None

    def _lift_leaf(self, leaf: _UnnamedLeaf) -> Any:
        try:
            return lift(leaf.node.value)
        except NoCompactForm:
            raise NoCompactForm(f"matrix_expr: a leaf of shape {list(leaf.node.value.shape)} has no name; create it with symbol=\"A\"") from None

    def _leaf(self, leaf: Leaf) -> Labelled:
        name, shape = leaf.symbol, leaf.value.shape
        if leaf.value.dtype.kind not in "fiu":
            raise NoCompactForm(f"matrix_expr: {name} has dtype {leaf.value.dtype}; a compact form is of real numbers")
        if 1 in shape or 0 in shape:
            raise NoCompactForm(f"matrix_expr: {name} has shape {list(shape)}, where a vector and a matrix of one column are the same; give it at "
                                f"least two elements along every axis, or leave the axis out")
        if name in self.symbols:
            raise ValueError(f"matrix_expr: {name} is a symbol used twice for different leaves; give each tensor a symbol of its own")
        dimensions = self.names.get(name) or tuple(Dimension(n) for n in shape)
        symmetric = name in self._symmetric
        if symmetric:
            if len(shape) != 2 or shape[0] != shape[1]:
                raise ValueError(f"matrix_expr: {name} is declared symmetric, but its shape is {list(shape)}")
            dimensions[0].join(dimensions[1])
        self.symbols[name] = self.leaves[leaf] = Symbol(name, dimensions, symmetric)
        symbol = Symbol(name, dimensions)  # symmetry is applied after all derivatives, since the elements vary independently
        indices = tuple(Index(d) for d in dimensions)
        return Labelled(indices, Sum(indices, (Term(ONE, (Factor(symbol, indices),)),)))

    def _mean(self, x: Labelled, dim: tuple[int, ...], keepdim: bool) -> Labelled:
        """The sum over some axes divided by their symbolic lengths."""
        total = carrier.sum(x, dim, keepdim)
        for d in dim:
            index = x.axes[d]
            if index is not None:
                size = Sum((), (Term(ONE, (Factor(AxisLength(index.dimension), (), -ONE),)),))
                total = Labelled(total.axes, times(total.total.out, [(total.total, total.total.out), (size, ())]))
        return total

    def _var(self, x: Labelled, dim: tuple[int, ...], correction: Any, keepdim: bool) -> Labelled:
        """Σ (x - mean)² divided by the number of elements minus the correction."""
        total = carrier.sum(carrier.square(x - self._mean(x, dim, True)), dim, keepdim)
        count = lift(1)
        for d in dim:
            index = x.axes[d]
            if index is not None:
                count = count * Labelled((), Sum((), (Term(ONE, (Factor(AxisLength(index.dimension)),)),)))
        return total / (count - correction)

    def _mse(self, x: Labelled, target: Labelled, reduction: str) -> Labelled:
        each = carrier.square(x - target)
        dims = tuple(range(each.ndim))
        return each if reduction == "none" else carrier.sum(each, dims) if reduction == "sum" else self._mean(each, dims, False)


def _check_symmetric(node: Any) -> None:
    """Refuse a matrix of which linalg.cholesky reads one triangle alone, for which there is no notation."""
    a = None if node is None else node.value
    if a is not None and np.any(np.abs(a - a.swapaxes(-1, -2)) > 64 * len(a) * np.finfo(a.dtype).eps * np.max(np.abs(a), initial=0)):
        raise NoCompactForm("matrix_expr: linalg.cholesky reads the lower triangle of a matrix that is not symmetric, for which there is no "
                            "notation; give a symmetric matrix, or factorize (A + A.mT) / 2")


def _are_places(a: Any, b: Any) -> bool:
    """Whether an array of the places of elements is compared with a reference to one of them, of which a formula has none."""
    return isinstance(a, np.ndarray) and a.ndim > 0 and bool((a > 0).all()) and isinstance(b, Labelled) and not b.total.terms


def _is_nan(value: Any) -> bool:
    """Whether a value is a constant without a number."""
    return isinstance(value, (float, np.floating, np.ndarray)) and np.size(value) > 0 and bool(np.isnan(value).all())


class _UnnamedLeaf:
    """A leaf without a symbol."""

    def __init__(self, node: Leaf):
        self.node = node
