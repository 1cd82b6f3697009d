"""Hessians in factored form, from the affine part of a function and the second derivatives of the rest; and plans, kept by signature of the graph.

The recorded graph is cut where its affine part ends. With z = Jx + c the values there and g the rest of the function, f(x) = g(z), the Hessian is
exactly JᵀSJ with S = ∂²g/∂z². S is sparse if the rest is a sum of functions of few values. So a generalised linear model has XᵀDX, a matrix
factorisation A ⊗ I or I ⊗ A, and a separable function plus one of few linear combinations a diagonal plus a matrix of low rank.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.calling import transform
from symgrad.func.collapsed import is_linear
from symgrad.func.evaluation import Evaluation, InputNode, evaluate, scalar_output
from symgrad.func.second import HessianProgram, hessian_products, jacobian_products
from symgrad.func.sparsity import plan_hessian, plan_jacobian
from symgrad.func.transforms import jacobian_blocks
from symgrad.graph.modes import thread
from symgrad.graph.node import Node
from symgrad.program import passes
from symgrad.program.cache import programs, signature_of

if TYPE_CHECKING:
    from symgrad.func.linear import SymmetricOperator  # imports SciPy's sparse matrices

class SignaturePlan:
    """The entry of one signature: the plan once it was needed, the number of uses, and the recorded program from some use on."""

    def __init__(self, recordable: bool = True) -> None:
        self.recordable = recordable
        self.key: Any = None  # of the entry in the library's cache; None if it is not there
        self.plan: Any = None
        self._uses: dict[int, int] = {}  # by the number of vectors, for a matrix is computed row by row or by its plan
        self._programs: dict[int, Any] = {}  # False for a graph that cannot be recorded

    def plan_for(self, ev: Evaluation, y: Tensor) -> Any:
        """The plan for the Hessian."""
        if self.plan is None or not self.plan.for_any_constants:
            self.plan = plan_hessian(y._node, ev.nodes)
        return self.plan

    def products(self, ev: Evaluation, y: Tensor, count: int, seeds: Callable[[], Any]) -> Any:
        """The products with `count` vectors that are fixed for this signature: from some use on by a recorded program, if that is small."""
        if self.plan is not None and not self.plan.for_any_constants:
            return hessian_products(ev, y, seeds(), None)
        program = self._programs.get(count)
        if program is None and self.recordable:
            self._uses[count] = uses = self._uses.get(count, 0) + 1
            if uses >= passes.RECORDING_USE:
                fits = HessianProgram.fits(ev, y, count)
                program = self._programs[count] = fits and passes.made(lambda: HessianProgram(ev, y, seeds())) or False
                if program and self.key is not None:
                    programs.put(self.key, self, sum([each.nbytes for each in self._programs.values() if each]))
        return program.products(ev) if program else hessian_products(ev, y, seeds(), None)


class Plans:
    """The entries of one function's graphs in the library's cache: neither the sparsity pattern nor the steps depend on the numbers in a graph."""

    def __init__(self) -> None:
        self._newest: tuple[Any, SignaturePlan] | None = None  # the entry that most calls use

    def of(self, ev: Evaluation, y: Tensor) -> SignaturePlan:
        """The entry for the signature of a graph."""
        if thread.modes.program is not None:  # its values are recorded, and this pass is a part of a larger program
            return SignaturePlan(recordable=False)
        form, newest = signature_of(ev.nodes, ev.path, y._node), self._newest
        if form is None:
            return SignaturePlan()
        if newest is not None and newest[0] == form:  # without the hash of a long key
            return newest[1]
        key = SignaturePlan, form
        entry = programs.get(key)
        if entry is None:
            entry = programs.put(key, SignaturePlan())
            entry.key = key
        self._newest = form, entry
        return entry


MAX_DENSE_CUT = 64  # the most values at the cut for which S may be dense
MAX_ENTRIES = 2**24  # the most entries of an explicit matrix; a larger one stays a product
TRANSPOSING = {"permute", "t", "transpose"}  # the ops that may transpose a matrix
# Ops whose elements are copies of elements of their argument, like views: the cut moves upstream of them.
PICKING = {"clone", "flip", "roll", "select_item", "slice_item", "to_copy", "index", "index_select", "gather", "take", "diag_embed", "tril",
           "triu", "repeat"}


@transform
def hessian_factors(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The function that computes the Hessian of a scalar function as factors derived from its graph, a `scipy.sparse.linalg.LinearOperator`.

    Rows and columns are all elements of the arguments at `argnums`, one after the other. The result has products with vectors and matrices at the
    cost of the factors, `todense()`, `factors` (a dict of arrays and sparse matrices) and a `report` with the `form` of the factors:

    - "X' D X": `X`, and the vector `D` of a diagonal, as in generalised linear models;
    - "I kron A", "A kron I": `A` alone, and the number of its copies, as in matrix factorisation; "blocks" if the blocks differ;
    - "diagonal plus low rank": `diagonal`, `W` and `K`, with H = diag(diagonal) + W K Wᵀ;
    - "sparse": `S`, the Hessian itself;
    - "J' S J": `J`, the linear part of the function, and `S`, the curvature of the rest;
    - "zero"; and "products" if there is no such form: Hessian-vector products without factors.

    Raises RuntimeError for a function that does not return a real scalar.

    >>> import symgrad
    >>> from symgrad.func.factors import hessian_factors
    >>> X = symgrad.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> h = hessian_factors(lambda w: (X @ w).exp().sum())(symgrad.zeros(2))
    >>> h.report.form, h.factors["D"]
    ("X' D X", array([1., 1., 1.]))
    >>> h.todense()
    array([[35., 44.],
           [44., 56.]])
    """
    plans = Plans()

    def transformed(*args: Any, **kwargs: Any) -> Any:
        ev = evaluate(func, args, kwargs, argnums, "hessian_factors")
        return factored_hessian(ev, scalar_output(ev, func, "hessian_factors"), plans)

    return transformed


def factored_hessian(ev: Evaluation, y: Tensor, plans: Plans | None = None) -> SymmetricOperator:
    """The Hessian of a scalar output by the inputs of an evaluation, in factors if possible.

    `plans` caches the analysis of the rest of the graph by its signature.
    """
    from symgrad.func.linear import FactoredHessian, HessianOperator  # imports SciPy's sparse matrices

    ev = dataclasses.replace(ev, tracked=False)
    n = sum(x.numel() for x in ev.inputs)
    cut = _affine_cut(ev, y)
    if not cut:
        return FactoredHessian(n, y._value.dtype, [], np.zeros((0, 0)))
    found = _curvature(ev, y, cut, plans or Plans())
    if found is None:
        return HessianOperator(ev, y)
    kept, curvature = found
    maps = [_linear_part(ev, node) for node in kept]
    if len(kept) == 1 and type(curvature) is np.ndarray and curvature.ndim == 2 and type(maps[0]).__name__ == "Selection" and len(curvature) == n:
        return HessianOperator(ev, y)  # dense in the arguments
    return FactoredHessian(n, y._value.dtype, maps, curvature)


# Where the affine part ends


def _affine_cut(ev: Evaluation, y: Tensor) -> list[Node]:
    """The nodes that are affine in the inputs and have a consumer that is not, oldest first; none if the output is affine.

    They are real: second derivatives by the elements of a complex value are not one matrix.
    """
    if y._node not in ev.between:
        return []
    affine, between = set(ev.nodes), ev.between
    edge: set[Node] = set()
    for node in ev.path:
        live = [p for p in node.parents if p in between]
        inside = [p for p in live if p in affine]
        if len(inside) == len(live) and node.op.kind != "function" and node.value.dtype.kind != "c" and is_linear(node, live):
            affine.add(node)
        else:
            edge.update(inside)
    if y._node in affine:
        return []
    while True:
        moved = {_affine_source(node, between) for node in edge}
        if moved == edge:
            return sorted(edge, key=lambda node: node.sequence_nr)
        edge = moved


def _affine_source(node: Node, between: set[Node]) -> Node:
    """The upstream node of which this one is an elementwise affine function; the node itself if it mixes elements."""
    live = [p for p in node.parents if p in between]
    if type(node) is InputNode or len(live) != 1:
        return node
    op, (p,) = node.op, live
    if op.kind == "elementwise" and node.value.size == p.value.size or op.kind == "linear" and (op.view or op.name in PICKING):
        return p
    return node


# The second derivatives of the rest


def _curvature(ev: Evaluation, y: Tensor, cut: Sequence[Node], plans: Plans) -> tuple[list[Node], Any] | None:
    """The nonzero second derivatives of the rest of the function by the values at the cut: a diagonal, a sparse matrix or a small dense one.

    None if it is none of these.
    """
    sizes = [node.value.size for node in cut]
    total, n = sum(sizes), sum(x.numel() for x in ev.inputs)
    rest = dataclasses.replace(ev, inputs=[wrap(node.value, node) for node in cut], nodes=cut).with_outputs([y])
    known = plans.of(rest, y)
    plan = known.plan_for(rest, y)
    if plan.report.pattern == "diagonal" and plan.colours == 1:
        curvature = known.products(rest, y, plan.colours, lambda: plan.seeds).reshape(-1)
    elif not plan.dense:
        curvature = plan.recover(known.products(rest, y, plan.colours, lambda: plan.seeds))
        curvature.eliminate_zeros()
    elif total <= MAX_DENSE_CUT or 2 * total <= n and total * total <= MAX_ENTRIES:
        curvature = known.products(rest, y, total, lambda: np.eye(total))
    else:
        return None
    ends = np.cumsum([0, *sizes])
    rows = curvature if type(curvature) is np.ndarray else np.diff(curvature.indptr)
    active = [bool(rows[a:b].any()) for a, b in zip(ends, ends[1:])]  # the curvature of a linear term is zero
    if not all(active):
        keep = np.concatenate([np.arange(a, b) for a, b, used in zip(ends, ends[1:], active) if used] or [np.arange(0)])
        curvature = curvature[keep] if curvature.ndim == 1 else curvature[keep][:, keep]
    return [node for node, used in zip(cut, active) if used], curvature


# The affine part


def _linear_part(ev: Evaluation, node: Node) -> Any:
    """∂z/∂x of a node at the cut, as a linear map of all elements of the inputs."""
    from symgrad.func.linear import Kronecker, LinearGraph, MatrixMap, Selection  # imports SciPy's sparse matrices

    starts, at = {}, 0
    for x, place in zip(ev.inputs, ev.nodes):
        starts[place] = at
        at += x.numel()
    if node in starts:
        return Selection(starts[node], node.value.size, at)
    found = _product(node, starts)
    if found is not None:
        place, factor, by_columns, to_columns = found
        return Kronecker(factor, by_columns, to_columns, starts[place], place.value.shape, at)
    alone = ev.with_outputs([wrap(node.value, node)])
    plan = plan_jacobian(node, ev.nodes)
    if plan.seeds is not None:
        return MatrixMap(plan.recover(jacobian_products(alone, plan.seeds)))
    if node.value.size * at > MAX_ENTRIES:
        return LinearGraph(alone)
    (blocks,) = jacobian_blocks(alone, at <= node.value.size, None)
    return MatrixMap(np.concatenate([b._value.reshape(node.value.size, -1) for b in blocks], 1))


def _product(node: Node, starts: dict[Node, int]) -> tuple[Node, np.ndarray, bool, bool] | None:
    """For a node that is the product of an input and a constant matrix, A x, x B, A xᵀ or xᵀ B: the input, and the map of its columns or rows."""
    if node.op.name not in ("mm", "mv", "vm", "dot"):
        return None
    first, second = node.parents
    a, b = node.args  # type: ignore[misc]
    for on_left, p, other, matrix in ((False, first, second, b), (True, second, first, a)):
        if p is None or other is not None or type(matrix) is not np.ndarray:
            continue
        turned = p not in starts and p.op.name in TRANSPOSING and (p.args or ())[1:] == ((1, 0),) and p.parents[0] in starts
        if p in starts or turned:
            return p.parents[0] if turned else p, matrix if on_left else matrix.T, on_left != turned, on_left  # type: ignore[return-value]
    return None
