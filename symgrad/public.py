"""Public functions that choose an implementation by their argument, and import SymPy or SciPy's sparse matrices only for them."""

from __future__ import annotations

from typing import Any

from symgrad.engine.method_table import MethodTable
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import by_ranks, traced
from symgrad.factories import creation
from symgrad.methods.operators import UNSUPPORTED
from symgrad.methods.values import PropertyOfNamed

__all__ = ["METHODS", "tensor"]

METHODS = MethodTable()


def tensor(data: Any, values: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
           symbol: str | None = None) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested sequences, an array, another tensor, or formulas of SymPy.

    `symbol` is its name: results computed from it then have a formula, `expr`. Python floats get the default dtype. A SymPy expression,
    Array, Matrix or array of expressions is evaluated at the `values` of its symbols, a mapping to Tensors, which are then upstream in the graph,
    or to numbers and arrays, which become named leaves that require grad; `leaves` of the result has them by name.

    Raises TypeError or ValueError for data that is not a rectangular array of numbers or formulas, and for symbols without a value; RuntimeError for
    integers that should require gradients.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True, symbol="x")
    >>> (x.sin() * x).expr
    x*sin(x)
    """
    try:
        out = creation.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory, symbol=symbol,
                              stacklevel=3)
    except TypeError:
        if not creation.has_formula(data):
            raise
        from symgrad.symbolic.conversion import tensor_of  # brings SymPy

        return tensor_of(data, values, dtype, requires_grad, symbol)
    if values is not None:
        raise TypeError("tensor(): values of symbols are given, but the data has no formula; pass the dtype by keyword, dtype=...")
    return out


def matrix_expr(self: Tensor) -> Any:
    """The compact formula of a tensor computed from named arrays, or of the gradient of one, such as Aᵀ(A x − b).

    It is in the notation of vectors and matrices, or with indices where that cannot say it, and was compared with the elementwise truth. See
    `symgrad.matrixcalc`.
    """
    from symgrad.matrixcalc import matrix_expr as formula  # brings SymPy

    return formula(self)


METHODS["matrix_expr"] = PropertyOfNamed(matrix_expr)


def _product(a: Any, b: Any) -> Any:
    """The product, which is one of `symgrad.sparse` with a sparse matrix or a linear operator."""
    if any([not isinstance(x, Tensor) and (hasattr(x, "tocsr") or hasattr(x, "matvec")) for x in (a, b)]):
        from symgrad.sparse import matmul  # brings SciPy's sparse matrices

        return matmul(a, b)
    return traced.matmul(a, b)


METHODS["__matmul__"] = by_ranks(_product)
METHODS["__rmatmul__"] = lambda self, other: NotImplemented if isinstance(other, UNSUPPORTED) else _product(other, self)
