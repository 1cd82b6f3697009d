"""`jacobian`: the Jacobian of a function, by the cheaper of the two modes, or from its sparsity pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched, levels_of, new_level, unbatch
from symgrad.engine.tensor import wrap
from symgrad.func.evaluation import Evaluation, check_argnums, evaluate, function_name
from symgrad.func.sparsity import plan_jacobian
from symgrad.func.transformed import Transformed
from symgrad.func.transforms import jacobians, output_tangents
from symgrad.trees import transpose

__all__ = ["jacobian"]


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
        return plan.recover(_products(ev, plan.seeds, chunk_size))


def _products(ev: Evaluation, seeds: Any, chunk_size: int | None) -> Any:
    """The products of the Jacobian with vectors over all elements of all inputs, which are the rows of `seeds`."""
    ends, out, step = np.cumsum([0, *(x.numel() for x in ev.inputs)]), [], chunk_size or max(len(seeds), 1)
    for at in range(0, len(seeds), step):
        rows, level = seeds[at:at + step], new_level()
        tangents = [wrap(Batched(rows[:, a:b].reshape((len(rows), *x.shape)).astype(x._value.dtype, copy=False), level))
                    for a, b, x in zip(ends, ends[1:], ev.inputs)]
        (found,) = output_tangents(ev, tangents)
        out.append(unbatch(found._value, 0, level, len(rows)).reshape(len(rows), -1))
    return np.concatenate(out) if out else np.zeros((0, ev.outputs[0].numel()), ev.outputs[0]._value.dtype)


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
