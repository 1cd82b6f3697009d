"""The sparsity pattern of a Hessian or a Jacobian, and the matrix-vector products that determine its entries.

A plan is made from a recorded graph by one pass over it in the carrier of index sets, without computing a derivative. It has the seeds, vectors of
zeros and ones, and recovers the entries from the products with them.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched
from symgrad.carriers.dependence import DIRECT, dependence, reduced, with_interactions
from symgrad.carriers.sets import Dense, Dependence, Inputs, broadcast, constant, smooth, union
from symgrad.engine.passes import pullback
from symgrad.engine.tensor import wrap
from symgrad.errors import FREED
from symgrad.func.evaluation import recording
from symgrad.func.patterns import (
    MAX_PAIRS,
    MAX_TINY_INPUTS,
    Colouring,
    Grid,
    SparsityPattern,
    colour_columns,
    colour_symmetric,
    entries,
    grids,
    is_steep,
    local_dependence,
    pattern_name,
)
from symgrad.func.rules import Rule, close_inputs, fresh_input, in_vmap_levels, tensor_at
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Node
from symgrad.graph.op import REGISTRY, Op
from symgrad.program.cache import programs


@dataclass(frozen=True)
class Structure:
    """The sparsity structure of a matrix of derivatives, and the number of products to compute it.

    `pattern` is "diagonal", "block diagonal", "tridiagonal", "banded", "arrow", "sparse" or "dense"; `products` is how many products with the
    matrix are computed, one for each of the `colours`; `bandwidth` is the distance of the farthest entry from the diagonal.
    """

    pattern: str
    colours: int
    products: int
    nonzeros: int
    shape: tuple[int, int]
    bandwidth: int

    def __str__(self) -> str:
        rows, columns = self.shape
        return f"{self.pattern}, {rows} x {columns}: {self.nonzeros} nonzeros from {self.products} product{'s' * (self.products != 1)}"


class ColoringPlan:
    """A plan for the computation of a sparse matrix: the products `matrix @ seed` for each of the `seeds`, from which `recover` makes the matrix.

    `dense` means that sparse products would not be cheaper; such a plan has no seeds and no positions. A matrix of n columns is dense if it needs
    more than n / 2 colours, or if n > 16 and more than a quarter of its entries are nonzero. A plan that holds `for_any_constants` holds for every
    graph with the same signature; others depend on the zeros of a constant matrix.
    """

    for_any_constants = True

    def __init__(self, shape: tuple[int, int], pattern: SparsityPattern | None = None, colouring: Colouring | None = None):
        self.shape = shape
        self._pattern: Any = pattern
        self._colouring: Any = colouring

    @property
    def dense(self) -> bool:
        """Whether the matrix is computed without a sparsity pattern."""
        return self._pattern is None

    @property
    def colours(self) -> int:
        """The number of products."""
        return self.shape[1] if self._colouring is None else self._colouring.count

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes of the cached arrays."""
        return 0 if self._pattern is None else 48 * self._pattern.nonzeros + 8 * (self.colours + 3) * self.shape[1]

    @functools.cached_property
    def seeds(self) -> np.ndarray | None:
        """The vectors to multiply by, as float64 of shape (colours, columns); None for a dense matrix."""
        return None if self._colouring is None else self._colouring.seeds()

    @functools.cached_property
    def _places(self) -> np.ndarray:
        return self._colouring.places(self._pattern)

    @functools.cached_property
    def _layout(self) -> tuple[np.ndarray, np.ndarray]:
        starts = self._pattern.starts
        return self._pattern.columns.astype(starts.dtype, copy=False), starts

    @functools.cached_property
    def _empty(self) -> Any:
        """The sparse matrix with its indices only."""
        from scipy.sparse import csr_array

        out = csr_array((np.zeros(self._pattern.nonzeros), *self._layout), shape=self.shape)
        out.has_canonical_format = True
        return out

    @functools.cached_property
    def report(self) -> Structure:
        """The structure of the matrix."""
        if self._pattern is None or self._colouring is None:
            rows, columns = self.shape
            return Structure("dense", columns, columns, rows * columns, self.shape, max(rows, columns, 1) - 1)
        name = pattern_name(self._pattern, self._colouring.hubs is not None)
        return Structure(name, self.colours, self.colours, self._pattern.nonzeros, self.shape, self._pattern.bandwidth)

    def recover(self, compressed: Any) -> Any:
        """The matrix as a `scipy.sparse.csr_array`, from products of shape (colours, rows), or (colours, *shape) with as many elements.

        Raises ValueError for another number of products.
        """
        flat = np.asarray(compressed).reshape(-1)
        if self.dense or self._colouring is None:
            raise ValueError("recover: the matrix is dense; compute it without a plan")
        if flat.size != self._colouring.count * self.shape[0]:
            raise ValueError(f"recover: expected {self.colours} products of {self.shape[0]} elements each, but got shape {np.shape(compressed)}")
        empty = self._empty
        out = object.__new__(type(empty))  # skips SciPy's check of the indices
        out.__dict__.update(empty.__dict__)
        out.data, out.indices, out.indptr = flat.take(self._places), empty.indices.copy(), empty.indptr.copy()  # SciPy writes to them
        return out

    def recover_dense(self, compressed: Any) -> np.ndarray:
        """The matrix as a dense array, from the same products."""
        found, out = compressed.reshape(-1)[self._places], np.zeros(math.prod(self.shape))
        if type(found) is np.ndarray:
            out[self._flat] = found
            return out.reshape(self.shape)
        return numeric.put(out, found, self._flat).reshape(self.shape)

    @functools.cached_property
    def _flat(self) -> np.ndarray:
        return self._pattern.rows.astype(np.int64) * self.shape[1] + self._pattern.columns

    def __repr__(self) -> str:
        return f"<ColoringPlan: {self.report}>"


# Reading a graph

READ: dict[str, Callable[..., Any]] = dict.fromkeys(
    ("median_of_all", "nanmedian_of_all"), lambda x, index: reduced(x))  # their derivative is divided among equal elements
READ["power_of_length"] = lambda length, square, e: length**e + square**e  # a length of 0 depends on nothing
KNOWN = ("symgrad.graph.op", "symgrad.ops.", "symgrad.func.evaluation")  # the modules of ops whose rules depend on the same elements as their forward


_readers: dict[Op, Callable[..., Any] | None] = {}


def _dependence_function(op: Op) -> Callable[..., Any] | None:
    """The function that computes an op for arguments with dependence sets; None if its rules may depend on more than its forward."""
    module = getattr(op.forward, "__module__", None) or ""
    if op.kind == "function" or not (module == KNOWN[0] or module.startswith(KNOWN[1:])):
        return None
    read = READ.get(op.name) or DIRECT.get(op.name)
    if read is None and op.arity is None:
        def read(*args: Any, count: int) -> Any:
            return op.forward(dependence, args[:count], *args[count:])
    read = read or functools.partial(op.forward, dependence)
    if REGISTRY.get(op.name) is op:
        _readers[op] = read
    return read


def _dependence_by_kind(inputs: Inputs, op: Op, found: Sequence[Dependence | None], shape: tuple[int, ...]) -> Dependence:
    """The dependence of the value of an op of which only the declared kind is known."""
    given = [d for d in found if d is not None]
    if op.kind == "elementwise":
        depends = [d for d, partial in zip(found, op.partials) if d is not None and (callable(partial) or partial not in (None, 0))]
        if any(callable(partial) for partial in op.partials):
            smooth(*given)
        return broadcast(union(*depends), shape) if depends else Dependence(inputs, (), shape)
    if REGISTRY.get(op.name) is not op and inputs.interactions:
        raise Dense  # such as a Function, whose code may use any element
    out = inputs.all_dependent(inputs.inputs_in([b for d in given for b in d.blocks]), shape)
    return out if op.kind == "linear" or not out.blocks else with_interactions(out)


def _propagate_dependence(inputs: Inputs, root: Node, sets: dict[Node, Any], local: Callable[..., Any] | None = None, asked: bool = True) -> Any:
    """The dependence sets of the root; pairs of inputs that interact are added to `inputs`. The result is None for a linear root unless `asked`."""
    for node in _nodes_between(root, sets):
        parents = node.parents
        if len(parents) == 1:
            first = sets.get(parents[0])  # type: ignore[arg-type]
            if first is None:
                continue
            found: Any = (first,)
        else:
            found = [sets.get(p) for p in parents]  # type: ignore[arg-type]
            if not any(found):
                continue
        if type(node) is DerivativeNode:
            if found[0] is not None:
                sets[node] = found[0]
            continue
        op, args = node.op, node.args
        if args is None:
            raise RuntimeError(FREED)
        if node is root and not asked and op.kind == "linear":
            return None
        if node.output_index is not None and type(found[0]) is tuple:
            found = (found[0][node.output_index],)
            if found[0] is not None:
                sets[node] = found[0]
            continue
        read = _readers.get(op) or _dependence_function(op)
        count = len(parents)
        if op.name == "abs" and found[0] is not None and np.iscomplexobj(args[0]):  # linear of real numbers only
            smooth(found[0])
        if local is not None and op.kind == "elementwise":
            out = local(node, found, read)
        elif read is None or not op.differentiable or type(node.value) is Batched and any(map(_is_batched_index, args[count:])):
            out = _dependence_of_call(inputs, args[-1], found) if read is None and args else None
            if type(out) is tuple:
                sets[node] = out
                continue
            if out is None and op.differentiable:
                out = _dependence_by_kind(inputs, op, found, tuple(getattr(node.value, "shape", None) or ()))
        elif op.arity is None:
            out = read(*[a if d is None else d for d, a in zip(found, args)], *args[count:], count=count)
        elif count == 1:
            out = read(first, *args[1:])
        else:
            out = read(*[a if d is None else d for d, a in zip(found, args)], *args[count:])
        if type(out) is Dependence and out.blocks:
            sets[node] = out if out.shape == node.value.shape or node.value.shape is None else broadcast(out, node.value.shape)
    return sets.get(root)


def _dependence_of_call(inputs: Inputs, rule: Any, found: Sequence[Dependence | None]) -> Any:
    """The dependence sets of the value or values of a call with a rule that is differentiated as its recorded content; None for other calls."""
    if not (isinstance(rule, Rule) and rule.records_content):
        return None
    starts = [fresh_input(wrap(value)) for value in rule.values]
    with recording(True, True), in_vmap_levels(rule.vmap_levels):
        outputs = rule.evaluate(starts)
    close_inputs(starts)
    ends = [*starts, *map(tensor_at, rule.captured)]
    sets: dict[Any, Dependence] = {t._node: d for t, d in zip(ends, [*found, *found[len(found) - len(rule.captured):]]) if d is not None}
    out = tuple([None if y._node is None else _propagate_dependence(inputs, y._node, dict(sets)) for y in outputs])
    return out if len(out) > 1 else out[0] or constant(next(iter(sets.values())))


def _nodes_between(root: Node, sets: Mapping[Node, Any]) -> list[Node]:
    """The nodes between those in `sets` and the root, oldest first."""
    stack, seen, out = [root], set(sets), []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if node.parents:
                out.append(node)
                for p in node.parents:
                    if p is not None and p not in seen:
                        stack.append(p)
    return sorted(out, key=operator.attrgetter("sequence_nr"))


def _is_batched_index(index: Any) -> bool:
    return type(index) is Batched or isinstance(index, tuple) and any(type(part) is Batched for part in index)


# From the interacting pairs to a plan


def _plan(found: frozenset[Grid], keys: Sequence[np.ndarray], shape: tuple[int, int], symmetric: bool) -> ColoringPlan:
    rows, columns = shape
    try:
        at, column_at, width = entries(found, keys, rows, columns)
    except Dense:
        return ColoringPlan(shape)
    if columns > MAX_TINY_INPUTS and 4 * len(at) > rows * columns:
        return ColoringPlan(shape)
    pattern = SparsityPattern(at, column_at, shape)
    colouring = (colour_symmetric if symmetric else colour_columns)(pattern, width)
    return ColoringPlan(shape) if 2 * colouring.count > columns else ColoringPlan(shape, pattern, colouring)


def _cached_plan(found: frozenset[Grid], shape: tuple[int, int], symmetric: bool) -> ColoringPlan:
    """The cached plan for entries in grids with constant steps, which are small keys."""
    key = ColoringPlan, found, shape, symmetric
    sets = programs.get(key)
    if sets is None:
        sets = _plan(found, (), shape, symmetric)
        programs.put(key, sets, sets.nbytes)
    return sets


def _finish_plan(inputs: Inputs, shape: tuple[int, int], symmetric: bool) -> ColoringPlan:
    keys, n = inputs.keys(), shape[1]
    found = grids(inputs, symmetric)
    if not keys and inputs.for_any_constants:
        return _cached_plan(found, shape, symmetric)
    if symmetric:
        keys = keys + [key % n * n + key // n for key in keys]
    plan = _plan(found, keys, shape, symmetric)
    plan.for_any_constants = inputs.for_any_constants
    return plan


def _numbered_inputs(nodes: Sequence[Node], interactions: bool, capacity: int = 0) -> tuple[Inputs, dict[Node, Dependence]]:
    """The inputs with consecutive numbers for all their elements."""
    count = sum([math.prod(node.value.shape) for node in nodes])
    inputs, sets, start = Inputs(count, interactions, capacity), {}, 0
    for node in nodes:
        sets[node] = inputs.leaf(start, tuple(node.value.shape))
        start += sets[node].size
    return inputs, sets


def plan_hessian(root: Node | None, nodes: Sequence[Node], local: bool = False) -> ColoringPlan:
    """The plan for the Hessian of the single element of `root` by the concatenated elements of `nodes`.

    The pattern is global: it holds for all values at which the function computes the same ops, for either choice of `where` or `maximum`. With
    `local` it holds only at the values of the graph: factors that are exactly 0 and branches not taken remove entries.
    `root` is None for a constant function.
    """
    inputs, sets = _numbered_inputs(nodes, True)
    shape = inputs.count, inputs.count
    try:
        if root is not None:
            locally = local_dependence(_dependence_by_kind, _is_steep(root, nodes), _weights(root, nodes)) if local else None
            _propagate_dependence(inputs, root, sets, locally, False)
        return _finish_plan(inputs, shape, True)
    except Dense:
        return ColoringPlan(shape)


def _is_steep(root: Node, nodes: Sequence[Node]) -> bool:
    return any(map(is_steep, _nodes_between(root, dict.fromkeys(nodes))))


def _weights(root: Node, nodes: Sequence[Node]) -> dict[Node, Any]:
    """The derivative of the root by the value of every node."""
    between = frozenset(_nodes_between(root, dict.fromkeys(nodes))) | {*nodes}
    found = pullback(numeric, [(root, np.ones(root.value.shape))], keep=between)
    return {node: 0.0 if g is None else g for node, g in found.items()}


def plan_jacobian(root: Node | None, nodes: Sequence[Node], local: bool = False, shape: tuple[int, ...] = ()) -> ColoringPlan:
    """The plan for the Jacobian of all elements of `root` by the concatenated elements of `nodes`, from products with vectors.

    `local` is as in `plan_hessian`. `root` is None for a constant function; then `shape` is the shape of its value.
    """
    shape = tuple(root.value.shape) if root is not None else shape
    rows = math.prod(shape)
    inputs, sets = _numbered_inputs(nodes, False, rows)
    locally = local_dependence(_dependence_by_kind, _is_steep(root, nodes)) if local and root is not None else None
    out = None if root is None else _propagate_dependence(inputs, root, sets, locally)
    whole = rows, inputs.count
    if out is not None and out.blocks:
        if any([math.prod(b.shape) > MAX_PAIRS for b in out.blocks]):
            return ColoringPlan(whole)
        inputs.interactions = True
        inputs.cross(Dependence(inputs, (inputs.numbers[:rows].reshape(shape),), shape), out)
    try:
        return _finish_plan(inputs, whole, False)
    except Dense:
        return ColoringPlan(whole)
