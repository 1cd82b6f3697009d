"""Hessians and Jacobians of functions, from one recorded graph: dense in one batch, by the cheaper mode, or from the sparsity pattern."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers.batched import levels_of
from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.calling import Transformed
from symgrad.func.evaluation import Evaluation, check_argnums, evaluate, function_name, scalar_output, unshared, unshared_results
from symgrad.func.factors import Plans, factored_hessian
from symgrad.func.second import HessianProgram, gradient_tangents, hessian_products, hooked_or_anomaly, jacobian_products
from symgrad.func.sparsity import ColoringPlan, plan_hessian, plan_jacobian
from symgrad.func.transforms import (
    _tangents,
    concatenate_chunks,
    jacfwd,
    jacobians,
    jacrev,
    reshape_result,
    unbatch_units,
    unit_chunks,
)
from symgrad.trees import transpose


class Jacobian(Transformed):
    """The Jacobian of a function as a function of the same arguments; `report` describes the last call."""

    def __init__(self, func: Callable[..., Any], argnums: Any, has_aux: bool, structure: str | None, chunk_size: int | None):
        check_argnums(argnums, "jacobian")
        super().__init__(Jacobian, func, (argnums, has_aux, structure, chunk_size))
        self.report: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        func, (argnums, has_aux, structure, chunk_size), _ = self._settings
        ev = evaluate(func, args, kwargs, argnums, "jacobian", has_aux)
        found = None if structure is None else self._sparse_matrix(ev, func, structure, chunk_size)
        if found is None:
            forward = sum(x.numel() for x in ev.inputs) < sum(y.numel() for y in ev.outputs)
            found = transpose(ev.shape, ev.form, jacobians(ev, forward, chunk_size, "jacobian"))
        return (found, ev.detach(ev.aux)) if has_aux else found

    def _sparse_matrix(self, ev: Evaluation, func: Callable[..., Any], structure: str, chunk_size: int | None) -> Any:
        """The matrix of all elements of the output by all elements of the inputs; None if it is dense."""
        if len(ev.outputs) != 1:
            raise RuntimeError(f"jacobian: with a structure the function must return a single Tensor; {function_name(func)} returned "
                               f"{len(ev.outputs)}")
        (y,) = ev.outputs
        if ev.tracked or levels_of(y._value):
            raise RuntimeError("jacobian: a sparse matrix of SciPy cannot be differentiated or batched; leave structure out inside other transforms")
        if any([t._value.dtype.kind == "c" for t in (*ev.inputs, y)]):
            return None
        plan = plan_jacobian(y._node, ev.nodes, local=structure == "local")
        self.report = plan.report
        if plan.dense:
            return None
        return plan.recover(jacobian_products(ev, plan.seeds, chunk_size))


def jacobian(func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False, structure: str | None = None,
             chunk_size: int | None = None) -> Jacobian:
    """The function that computes the Jacobian ∂f/∂x, of shape (*y.shape, *x.shape), in forward or reverse mode, whichever takes fewer products.

    With `structure="auto"` the sparsity pattern is derived from the recorded graph, and a sparse Jacobian is returned as a `scipy.sparse.csr_array`
    of all elements of the output by all elements of the arguments, from one product per colour of its columns; a dense one as without `structure`.
    "local" uses the pattern at the values of the arguments. `report` of the result then describes the pattern.

    Raises RuntimeError for arguments that cannot be differentiated, with a structure for several outputs, ValueError for another structure.

    >>> import symgrad
    >>> differences = symgrad.func.jacobian(lambda x: x[1:] - x[:-1] ** 2, structure="auto")
    >>> differences(symgrad.arange(20.0)).shape, differences.report.products
    ((19, 20), 2)
    """
    if structure not in (None, "auto", "local"):
        raise ValueError(f"jacobian: structure must be None, 'auto' or 'local', not {structure!r}")
    return Jacobian(func, argnums, has_aux, structure, chunk_size)


def hessian_blocks(ev: Evaluation, y: Tensor, chunk_size: Any) -> list[list[Tensor]]:
    """∂²y/∂xⱼ∂x for all pairs of inputs, each of shape (*xⱼ.shape, *x.shape)."""
    return [[reshape_result(ev, t, (*x.shape, *z.shape)) for t, z in zip(hessian_rows(ev, y, j, chunk_size), ev.inputs)] for j,
            x in enumerate(ev.inputs)]


def hessian_rows(ev: Evaluation, y: Tensor, j: int, chunk_size: Any) -> list[Tensor]:
    """∂²y/∂xⱼ∂x for every input x, the elements of xⱼ along the first axis."""
    parts: list[list[Tensor]] = [[] for _ in ev.inputs]
    for units in unit_chunks(ev.inputs[j], chunk_size):
        for part, t in zip(parts, gradient_tangents(ev, y, [wrap(units) if i == j else None for i in range(len(ev.inputs))])):
            part.append(unbatch_units(ev, t, units))
    return [concatenate_chunks(ev, part, (0, *x.shape), x) for part, x in zip(parts, ev.inputs)]


class Hessian(Transformed):
    """The Hessian of a function as a function of the same arguments; `report` describes the last call."""

    def __init__(self, func: Callable[..., Any], argnums: Any, has_aux: bool, structure: Any, chunk_size: int | None):
        check_argnums(argnums, "hessian")
        super().__init__(Hessian, func, (argnums, has_aux, structure, chunk_size))
        self._plans = Plans()
        self._found: Any = None

    @property
    def report(self) -> Any:
        """The report on the last call; None if its result was not a single matrix."""
        found = self._found
        if type(found) is int:
            return ColoringPlan((found, found)).report
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        func, (argnums, has_aux, structure, chunk_size), _ = self._settings
        self._found = None
        ev = evaluate(func, args, kwargs, argnums, "hessian", has_aux)
        if structure is not None:
            found = self._sparse_matrix(ev, func, structure, chunk_size)
        else:
            found = self._dense_by_colours(ev) if chunk_size is None and _is_real_scalar(ev) else None
        if found is None:
            if self._found is None and len(ev.outputs) == 1 and not ev.outputs[0].ndim:
                self._found = sum([x.numel() for x in ev.inputs])
            found = _dense_blocks(ev, func, args, kwargs, argnums, has_aux, chunk_size)
        return (found, ev.detach(ev.aux)) if has_aux else found

    def _sparse_matrix(self, ev: Evaluation, func: Callable[..., Any], structure: str, chunk_size: int | None) -> Any:
        """The Hessian as a sparse matrix of all elements by all elements; None if it is dense."""
        y = scalar_output(ev, func, "hessian")
        if ev.tracked or levels_of(y._value):
            raise RuntimeError("hessian: a sparse matrix of SciPy cannot be differentiated or batched; leave structure out inside other transforms")
        if hooked_or_anomaly(ev):  # a hook may change the pattern of a cotangent
            return None
        if structure == "factors":
            found = factored_hessian(ev, y, self._plans)
            self._found = found.report
            return found
        if structure == "local":
            plan = plan_hessian(y._node, ev.nodes, local=True)
        else:
            known = self._plans.of(ev, y)
            plan = known.plan_for(ev, y)
        self._found = plan.report
        if plan.dense:
            return self._dense_by_colours(ev) if chunk_size is None and _is_real_scalar(ev) else None
        if structure == "local" or chunk_size is not None:
            return _recovered(plan, hessian_products(ev, y, plan.seeds, chunk_size))
        return _recovered(plan, known.products(ev, y, plan.colours, lambda: plan.seeds))

    def _dense_by_colours(self, ev: Evaluation) -> Any:
        """The Hessian as a dense array, from one product per colour; None if all rows are to be computed separately."""
        whole, self._found = dense_matrix(ev, ev.outputs[0], self._plans)
        return None if whole is None else _block_tree(ev, whole)


def dense_matrix(ev: Evaluation, y: Tensor, plans: Plans) -> tuple[Any, Any]:
    """The Hessian of all elements by all elements, None if all rows are to be computed separately; and the report on it."""
    count, known = sum([x._value.size for x in ev.inputs]), plans.of(ev, y)
    if count < MIN_PLANNED_INPUTS:
        return known.products(ev, y, count, lambda: np.eye(count)), count
    plan = known.plan_for(ev, y)
    if plan.dense:
        return (known.products(ev, y, count, lambda: np.eye(count)) if HessianProgram.fits(ev, y, count) else None), plan.report
    return plan.recover_dense(known.products(ev, y, plan.colours, lambda: plan.seeds)), plan.report


@dataclasses.dataclass
class SparseProducts:
    """A sparse matrix that is not made yet: its plan, and the products in a program that is being recorded."""

    plan: Any
    products: Tensor

    def recover(self) -> Any:
        """The matrix as a `scipy.sparse.csr_array`."""
        return self.plan.recover(self.products._value)


def _recovered(plan: Any, products: Any) -> Any:
    return plan.recover(products) if isinstance(products, np.ndarray) else SparseProducts(plan, wrap(products))


MIN_PLANNED_INPUTS = 32  # the number of inputs from which the search for a sparsity pattern pays off


def _is_complex_gradient(ev: Evaluation) -> bool:
    """Whether an argument is complex; the function then has a Hessian only if its gradient is holomorphic."""
    return any([x._value.dtype.kind == "c" for x in ev.inputs])


def _is_real_scalar(ev: Evaluation) -> bool:
    """Whether the result is the numeric Hessian of a single real scalar."""
    if ev.tracked or len(ev.outputs) != 1 or ev.shape.kind is not None or hooked_or_anomaly(ev):
        return False
    value = ev.outputs[0]._value
    return value.shape == () and value.dtype == np.float64 and not _is_complex_gradient(ev)


def _block_tree(ev: Evaluation, whole: np.ndarray) -> Any:
    """The matrix of all elements by all elements as a tree of trees of blocks."""
    if len(ev.inputs) == 1:
        (x,) = ev.inputs
        return transpose(ev.form, ev.form, [wrap(unshared(whole).reshape((*x.shape, *x.shape)))])
    ends = np.cumsum([0, *(x.numel() for x in ev.inputs)])
    return transpose(ev.form, ev.form, [wrap(whole[a:b, c:d].copy().reshape((*x.shape, *z.shape))) for a, b, x in zip(ends, ends[1:], ev.inputs)
                                        for c, d, z in zip(ends, ends[1:], ev.inputs)])


def _dense_blocks(ev: Evaluation, func: Callable[..., Any], args: tuple, kwargs: dict, argnums: Any, has_aux: bool, chunk_size: int | None) -> Any:
    y = ev.outputs[0] if len(ev.outputs) == 1 and ev.shape.kind is None else None
    if y is not None and not y._value.ndim and y._value.dtype.kind != "c" and not _is_complex_gradient(ev):
        if y._value.dtype.kind not in "fV":
            scalar_output(ev, func, "hessian")
        return transpose(ev.form, ev.form, unshared_results(ev, [block for row in hessian_blocks(ev, y, chunk_size) for block in row]))
    plain = (lambda *a, **k: func(*a, **k)[0]) if has_aux else func
    return jacfwd(jacrev(plain, argnums), argnums, chunk_size=chunk_size)(*args, **kwargs)


def hessian(func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False, structure: str | None = None,
            chunk_size: int | None = None) -> Hessian:
    """Transform a scalar function to one that computes its Hessian: ∂²f/∂xᵢ∂xⱼ, of shape (*xᵢ.shape, *xⱼ.shape).

    The function runs once, and all rows are batched, `chunk_size` at a time. For trees of arguments the result is a tree of trees; the outputs of a
    function of several are leading axes. `structure="auto"` finds the sparsity pattern from the recorded graph, and returns a sparse Hessian as a
    `scipy.sparse.csr_array` over the concatenated elements, computed with one product per colour; a dense one as without. "local" uses the pattern
    at the values of the arguments. "factors" returns the factored form of the graph, such as X' D X, as a `scipy.sparse.linalg.LinearOperator` with
    `factors` and `todense()`. The `report` of the result describes the structure.

    Raises RuntimeError for arguments that are not differentiable, and with a structure for a non-scalar output; ValueError for another structure.

    >>> import symgrad
    >>> symgrad.func.hessian(lambda x: (x**3).sum())(symgrad.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    if structure not in (None, "auto", "local", "factors"):
        raise ValueError(f"hessian: structure must be None, 'auto', 'local' or 'factors', not {structure!r}")
    return Hessian(func, argnums, has_aux, structure, chunk_size)


def hvp(func: Callable[..., Any], primals: Any, vectors: Any) -> Any:
    """The product of the Hessian of a scalar function with a vector, ∂²f/∂x² · v, with the structure of the primals, at the cost of a few gradients.

    `primals` and `vectors` are tuples with one entry for each argument; a single argument needs no tuple.

    Raises RuntimeError unless the function returns a real scalar, and for vectors of another form or shape. B. A. Pearlmutter, Neural Computation 6
    (1994).

    >>> import symgrad
    >>> symgrad.func.hvp(lambda x: (x**3).sum(), symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 1.0]))
    tensor([ 6., 12.])
    """
    return _hessian_vector_product(func, primals, vectors, "hvp")


def vhp(func: Callable[..., Any], primals: Any, vectors: Any) -> Any:
    """The product of a vector with the Hessian of a scalar function, vᵀ · ∂²f/∂x²: the same as `hvp`, since the Hessian is symmetric.

    Raises RuntimeError unless the function returns a real scalar, and for vectors of another form or shape.

    >>> import symgrad
    >>> symgrad.func.vhp(lambda x: (x**3).sum(), symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 1.0]))
    tensor([ 6., 12.])
    """
    return _hessian_vector_product(func, primals, vectors, "vhp")


def _hessian_vector_product(func: Callable[..., Any], primals: Any, vectors: Any, caller: str) -> Any:
    alone = not isinstance(primals, tuple)
    ev, ts = _tangents(func, (primals,) if alone else primals, (vectors,) if alone else vectors, caller)
    found = ev.form.unflatten(unshared_results(ev, gradient_tangents(ev, scalar_output(ev, func, caller), ts), ts))
    return found[0] if alone else found
