"""SymPy objects as data: `tensor(x**2 + 1, {x: 3.0})`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor
from symgrad.factories import creation
from symgrad.factories.factory import finished
from symgrad.formulas.expressions import Reads, hold
from symgrad.symbolic.conversion import FormulaFunction, number_of
from symgrad.symbolic.parameters import Parameter, elements_of, formulas_of, owner_of, parameters_of, sanitised

__all__ = ["tensor_of"]


def tensor_of(data: Any, values: Any = None, dtype: Any = None, requires_grad: bool = False, symbol: str | None = None) -> Tensor:
    """A tensor of SymPy formulas at the values of their symbols: `tensor` for data with SymPy objects.

    The keys of `values` are symbols, matrices and indexed bases, or their names. Tensors among the values become part of the graph; numbers and
    arrays become leaves with the symbols as formulas, which `leaves` of the result lists by name.

    Raises ValueError for symbols without a value, TypeError for values that are no mapping, and for functions that no op computes.

    >>> import symgrad, sympy
    >>> x = sympy.Symbol("x")
    >>> t = tensor_of(x**2 + 1, {x: 3.0})
    >>> t.backward()
    >>> t.item(), t.expr, t.leaves["x"].grad
    (10.0, x**2 + 1, tensor(6.))
    """
    expressions, shape = formulas_of(data, "tensor")
    if values is not None and not isinstance(values, Mapping):
        raise TypeError(f"tensor(): the values of symbols are a mapping such as {{x: 3.0}}, not {type(values).__name__}")
    given = {str(key): value for key, value in (values or {}).items()}
    wanted = sorted({owner_of(x) for e in expressions for x in elements_of(e)}, key=str)
    missing = [str(s) for s in wanted if str(s) not in given]
    if missing:
        raise ValueError(f"tensor: {', '.join(missing)} {'has' if len(missing) == 1 else 'have'} no value; give one, as in "
                         f"tensor({_shortened(data)}, {{{missing[0]}: 1.0}})")
    if not wanted:
        numbers = np.array([number_of(e) for e in expressions]).reshape(shape)
        return finished(creation.read(numbers if shape else numbers[()].item(), dtype), requires_grad, symbol)
    if symbol is not None:
        raise ValueError(f"tensor: a formula has its own symbols, {', '.join(map(str, wanted))}; symbol={symbol!r} names data")
    parameters = parameters_of(expressions, wanted)
    operands = [_leaf(p, given[str(p.given)], dtype) for p in parameters]
    out = FormulaFunction(data, wanted)(*operands)
    hold(out, operands)
    return out


def _shortened(data: Any) -> str:
    text = str(data)
    return text if len(text) < 40 else "..."


def _leaf(parameter: Parameter, value: Any, dtype: Any) -> Tensor:
    """The value of a parameter as a tensor: itself, or a leaf with the parameter's symbols as its formula."""
    if isinstance(value, Tensor):
        return value
    if creation.has_formula(value):
        return tensor_of(value, None, dtype)
    array = np.asarray(as_value(value))
    if array.dtype.kind in "biu":
        array = creation._as_float(array)
    base = parameter.given
    if parameter.shape:
        elements = [base[index] for index in np.ndindex(array.shape)]
    elif array.ndim:
        elements = [sympy.Symbol("_".join([base.name, *map(str, index)]), **base.assumptions0) for index in np.ndindex(array.shape)]
    else:
        elements = [base]
    out = creation.tensor(array if array.ndim else array[()], dtype=dtype, requires_grad=True)
    out._make_leaf(True, Reads.as_(sanitised([str(base)])[0], elements))
    return out
