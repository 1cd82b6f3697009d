"""Second derivatives of a scalar function: one recorded graph, a batch of tangents pushed through it, and one pullback of dual cotangents."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers.batched import levels_of
from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.evaluation import Evaluation, evaluate, no_arguments, own, owned, scalar
from symgrad.func.factors import factored
from symgrad.func.plans import Plans
from symgrad.func.second import HessianProgram, hooked_or_anomaly, products, second
from symgrad.func.sparsity import Plan, plan_hessian
from symgrad.func.transforms import _tangents, jacfwd, jacrev, joined, shaped, spread, unit_chunks
from symgrad.types.trees import transpose

__all__ = ["hessian", "hvp", "vhp"]


def hessian_blocks(ev: Evaluation, y: Tensor, chunk_size: Any) -> list[list[Tensor]]:
    """∂²y/∂xⱼ∂x for all pairs of inputs, each of shape (*xⱼ.shape, *x.shape)."""
    return [[shaped(ev, t, (*x.shape, *z.shape)) for t, z in zip(hessian_rows(ev, y, j, chunk_size), ev.inputs)] for j, x in enumerate(ev.inputs)]


def hessian_rows(ev: Evaluation, y: Tensor, j: int, chunk_size: Any) -> list[Tensor]:
    """∂²y/∂xⱼ∂x for every input x, the elements of xⱼ along the first axis."""
    parts: list[list[Tensor]] = [[] for _ in ev.inputs]
    for units in unit_chunks(ev.inputs[j], chunk_size):
        for part, t in zip(parts, second(ev, y, [wrap(units) if i == j else None for i in range(len(ev.inputs))])):
            part.append(spread(ev, t, units))
    return [joined(ev, part, (0, *x.shape), x) for part, x in zip(parts, ev.inputs)]


class Hessian:
    """The Hessian of a function as a function of the same arguments; `report` describes the last call."""

    def __init__(self, func: Callable[..., Any], argnums: Any, has_aux: bool, structure: Any, chunk_size: int | None):
        no_arguments(argnums, "hessian")
        functools.update_wrapper(self, func)
        self._settings = func, argnums, has_aux, structure, chunk_size
        self._plans = Plans()
        self._found: Any = None

    @property
    def report(self) -> Any:
        """The report on the last call; None if its result was not a single matrix."""
        found = self._found
        if type(found) is int:
            return Plan((found, found)).report
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        func, argnums, has_aux, structure, chunk_size = self._settings
        self._found = None
        ev = evaluate(func, args, kwargs, argnums, "hessian", has_aux)
        if structure is not None:
            found = self._sparse(ev, func, structure, chunk_size)
        else:
            found = self._whole(ev) if chunk_size is None and _plain(ev) else None
        if found is None:
            if self._found is None and len(ev.outputs) == 1 and not ev.outputs[0].ndim:
                self._found = sum([x.numel() for x in ev.inputs])
            found = _dense(ev, func, args, kwargs, argnums, has_aux, chunk_size)
        return (found, ev.free(ev.aux)) if has_aux else found

    def _sparse(self, ev: Evaluation, func: Callable[..., Any], structure: str, chunk_size: int | None) -> Any:
        """The Hessian as a sparse matrix of all elements by all elements; None if it is dense."""
        y = scalar(ev, func, "hessian")
        if ev.tracked or levels_of(y._value):
            raise RuntimeError("hessian: a sparse matrix of SciPy cannot be differentiated or batched; leave structure out inside other transforms")
        if hooked_or_anomaly(ev):  # a hook may change the pattern of a cotangent
            return None
        if structure == "factors":
            found = factored(ev, y, self._plans)
            self._found = found.report
            return found
        if structure == "local":
            plan = plan_hessian(y._node, ev.nodes, local=True)
        else:
            known = self._plans.of(ev, y)
            plan = known.planned(ev, y)
        self._found = plan.report
        if plan.dense:
            return self._whole(ev) if chunk_size is None and _plain(ev) else None
        if structure == "local" or chunk_size is not None:
            return plan.recover(products(ev, y, plan.seeds, chunk_size))
        return plan.recover(known.products(ev, y, lambda: plan.seeds))

    def _whole(self, ev: Evaluation) -> Any:
        """The Hessian as a dense array, from one product per colour; None if all rows are to be computed separately."""
        (y,) = ev.outputs
        count, known = sum([x._value.size for x in ev.inputs]), self._plans.of(ev, y)
        if count < PLANNED:
            self._found = count
            return _blocks(ev, known.products(ev, y, lambda: np.eye(count)))
        plan = known.planned(ev, y)
        self._found = plan.report
        if plan.dense:
            return _blocks(ev, known.products(ev, y, lambda: np.eye(count))) if HessianProgram.fits(ev, y, count) else None
        return _blocks(ev, plan.filled(known.products(ev, y, lambda: plan.seeds)))


PLANNED = 32  # the number of inputs from which the search for a sparsity pattern pays off


def _from_complex(ev: Evaluation) -> bool:
    """Whether a function has complex arguments, so that it has a Hessian only if its gradient is holomorphic."""
    return any([x._value.dtype.kind == "c" for x in ev.inputs])


def _plain(ev: Evaluation) -> bool:
    """Whether the result is the numeric Hessian of a single real scalar."""
    if ev.tracked or len(ev.outputs) != 1 or ev.shape.kind is not None or hooked_or_anomaly(ev):
        return False
    value = ev.outputs[0]._value
    return value.shape == () and value.dtype == np.float64 and not _from_complex(ev)


def _blocks(ev: Evaluation, whole: np.ndarray) -> Any:
    """The matrix of all elements by all elements as a tree of trees of blocks."""
    if len(ev.inputs) == 1:
        (x,) = ev.inputs
        return transpose(ev.form, ev.form, [wrap(own(whole).reshape((*x.shape, *x.shape)))])
    ends = np.cumsum([0, *(x.numel() for x in ev.inputs)])
    return transpose(ev.form, ev.form, [wrap(whole[a:b, c:d].copy().reshape((*x.shape, *z.shape))) for a, b, x in zip(ends, ends[1:], ev.inputs)
                                        for c, d, z in zip(ends, ends[1:], ev.inputs)])


def _dense(ev: Evaluation, func: Callable[..., Any], args: tuple, kwargs: dict, argnums: Any, has_aux: bool, chunk_size: int | None) -> Any:
    y = ev.outputs[0] if len(ev.outputs) == 1 and ev.shape.kind is None else None
    if y is not None and not y._value.ndim and y._value.dtype.kind != "c" and not _from_complex(ev):
        if y._value.dtype.kind not in "fV":
            scalar(ev, func, "hessian")
        return transpose(ev.form, ev.form, owned(ev, [block for row in hessian_blocks(ev, y, chunk_size) for block in row]))
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
    return _product(func, primals, vectors, "hvp")


def vhp(func: Callable[..., Any], primals: Any, vectors: Any) -> Any:
    """The product of a vector with the Hessian of a scalar function, vᵀ · ∂²f/∂x²: the same as `hvp`, since the Hessian is symmetric.

    Raises RuntimeError unless the function returns a real scalar, and for vectors of another form or shape.

    >>> import symgrad
    >>> symgrad.func.vhp(lambda x: (x**3).sum(), symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 1.0]))
    tensor([ 6., 12.])
    """
    return _product(func, primals, vectors, "vhp")


def _product(func: Callable[..., Any], primals: Any, vectors: Any, asking: str) -> Any:
    alone = not isinstance(primals, tuple)
    ev, ts = _tangents(func, (primals,) if alone else primals, (vectors,) if alone else vectors, asking)
    found = ev.form.unflatten(owned(ev, second(ev, scalar(ev, func, asking), ts), ts))
    return found[0] if alone else found
