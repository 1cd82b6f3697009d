"""NumPy's protocols on Tensors: ufuncs, which are the ops of the same name, with their folds along an axis, outer products and sums into places; and
functions, which are those of `numpy_protocol`."""

from __future__ import annotations

import functools
import operator
import re
import sys
from typing import Any

import numpy as np

from symgrad.engine.data import as_value, has_graph
from symgrad.engine.method_table import MethodTable
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.methods.numpy_arguments import FUNCTIONS_OF_NUMPY, as_tensor
from symgrad.system.frames import line_of, outer_frame

METHODS = MethodTable()
NUMPY_NAMES = {"arcsin": "asin", "power": "pow", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
               "greater_equal": "ge", "rint": "round", "float_power": "pow", "amax": "amax", "amin": "amin", "max": "amax", "min": "amin",
               "concatenate": "cat", "transpose": "permute", "conjugate": "conj", "fabs": "abs", "degrees": "rad2deg", "radians": "deg2rad",
               "j0": "bessel_j0", "j1": "bessel_j1", "y0": "bessel_y0", "y1": "bessel_y1", "k0": "modified_bessel_k0", "k1": "modified_bessel_k1",
               "k0e": "scaled_modified_bessel_k0", "k1e": "scaled_modified_bessel_k1"}
POLYNOMIALS = {"eval_legendre": "legendre_polynomial_p", "eval_chebyt": "chebyshev_polynomial_t", "eval_chebyu": "chebyshev_polynomial_u",
               "eval_hermite": "hermite_polynomial_h", "eval_hermitenorm": "hermite_polynomial_he", "eval_laguerre": "laguerre_polynomial_l"}


PYTHON_OPERATORS = {"floor_divide": operator.floordiv, "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
                    "invert": operator.invert, "divmod": divmod, "left_shift": operator.lshift, "right_shift": operator.rshift}


def _lift_first(operate: Any) -> Any:
    return lambda first, *rest: operate(as_tensor(first), *rest)


def _both(operate: Any) -> Any:
    """A function whose arguments are both Tensors, also of arrays and of numbers, which do not widen the other."""
    def lifted(*inputs: Any) -> Any:
        dtype = np.result_type(*[as_value(x) for x in inputs]) if operate is not FUNCTIONS["ldexp"] else None
        return operate(*[x if isinstance(x, Tensor) else wrap(np.asarray(as_value(x), dtype)) for x in inputs])

    return lifted


@functools.cache
def _numpy_table() -> dict[str, Any]:
    """What computes a ufunc that is not the op of its name."""
    table = {numpy: FUNCTIONS[torch] for numpy, torch in NUMPY_NAMES.items()}
    table.update({numpy: _lift_first(operate) for numpy, operate in PYTHON_OPERATORS.items()})
    table.update({name: _both(FUNCTIONS[name]) for name in ("heaviside", "copysign", "logaddexp2", "ldexp")})
    products = {"vecdot": traced.linalg_vecdot,
                "matvec": lambda a, x: traced.squeeze(traced.matmul(a, traced.unsqueeze(x, -1)), -1),
                "vecmat": lambda x, a: traced.squeeze(traced.matmul(traced.unsqueeze(traced.conj(x), -2), a), -2)}
    table.update({name: _both(product) for name, product in products.items()})
    table.update({scipy: lambda n, x, p=FUNCTIONS[torch]: p(x, n) for scipy, torch in POLYNOMIALS.items()})
    table["_riemann_zeta"] = lambda x: traced.zeta(x, 1)
    table["modf"] = lambda x: (traced.frac(x), traced.trunc(x))
    return table


def numpy_function(name: str) -> Any:
    """The function of Tensors that computes the ufunc of a name; None if there is none."""
    return _numpy_table().get(name) or FUNCTIONS.get(name)


FOLDS = {
    **{("reduce", ufunc): name for ufunc, name in {"add": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin", "logical_and": "all",
                                                   "logical_or": "any", "logaddexp": "logsumexp"}.items()},
    **{("accumulate", ufunc): name for ufunc, name in {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin",
                                                       "logaddexp": "logcumsumexp"}.items()},
}


@METHODS.define
def __array_ufunc__(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's ufuncs on Tensors are the ops of the same name, and their folds along an axis reductions and scans; others raise TypeError.

    With a Tensor as `out` the result is written there, in place; an array cannot be `out` of a result with a graph.
    """
    target = kwargs.pop("out", None)
    given = [as_tensor(x) if type(x) in (list, tuple) else x for x in inputs]
    if target is not None:  # what a pullback reads of an operand must outlive the write
        written = [t for t in target if isinstance(t, Tensor)]
        given = [x.clone() if isinstance(x, Tensor) and any(x.shares_memory_with(t) for t in written) else x for x in given]
    found = _computed(ufunc, method, given, kwargs)
    if found is NotImplemented:
        if any(_defers(x) for x in inputs):
            return NotImplemented
        words = ", ".join(f"{key}=" for key in kwargs)
        call = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise TypeError(f"numpy.{call}: no op computes it for Tensors{words and ' with '}{words}; detach() and numpy() give the array, as a "
                        f"constant, and symgrad.func.foreign makes an op of it\n    {line_of(outer_frame(0))}")
    return found if target is None else _written(target, found, ufunc.__name__)


def _computed(ufunc: Any, method: str, inputs: list[Any], kwargs: dict[str, Any]) -> Any:
    function = numpy_function(ufunc.__name__)
    if method == "__call__" and function is not None and not kwargs:
        return function(*inputs)
    if (method, ufunc.__name__) in FOLDS and kwargs.keys() <= {"axis", "dtype", "keepdims"}:
        return _folded(FUNCTIONS[FOLDS[method, ufunc.__name__]], *inputs, **kwargs)
    if method == "outer" and function is not None and not kwargs:
        a, b = map(as_tensor, inputs)
        return function(traced.reshape(a, (*a.shape, *(1,) * b.ndim)), b)
    if method == "at" and ufunc.__name__ in ("add", "subtract") and isinstance(inputs[0], Tensor):
        a, index, b = inputs
        index = index if isinstance(index, tuple) else (index,)
        b = as_tensor(b).to(a.dtype)
        a.index_put_(tuple(traced_index(i) for i in index), b if ufunc.__name__ == "add" else -b, accumulate=True)
        return None
    return NotImplemented


def traced_index(index: Any) -> Any:
    """An index of `index_put_`: arrays and lists as tensors."""
    return index if isinstance(index, Tensor) else wrap(np.asarray(index))


def _defers(x: Any) -> bool:
    """Whether an operand belongs to another library with ufuncs of its own."""
    return hasattr(x, "__array_ufunc__") and not isinstance(x, (Tensor, np.ndarray, np.generic))


def _written(targets: tuple, found: Any, name: str) -> Any:
    """The results written to the `out` of a call."""
    results = found if isinstance(found, tuple) else (found,)
    for target, result in zip(targets, results):
        if isinstance(target, Tensor):
            target.copy_(result)
        elif target is not None and has_graph(result):
            raise TypeError(f"numpy.{name}: the result has a graph and cannot be written to an array, by out= or in place; write a = a + x in place "
                            f"of a += x, or let the array be a Tensor\n    {line_of(outer_frame(0))}")
        elif target is not None:
            target[...] = result.numpy()
    return targets if isinstance(found, tuple) else found if targets[0] is None else targets[0]


def _folded(function: Any, x: Tensor, axis: Any = 0, dtype: Any = None, **keepdims: bool) -> Any:
    out = function(x if dtype is None else x.to(dtype), tuple(range(x.ndim)) if axis is None else axis, **keepdims)
    return getattr(out, "values", out) if isinstance(out, tuple) else out


# Other functions

def _as_array(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.numpy()
    return type(x)(map(_as_array, x)) if type(x) in (list, tuple) else x


@METHODS.define
def __array_function__(self: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's functions on Tensors; a function without an op gets plain arrays.

    Raises TypeError for a function without an op where a Tensor is no plain array, since it requires grad.
    """
    import symgrad.methods.numpy_protocol  # noqa: F401  fills the table, which few programs use

    known = FUNCTIONS_OF_NUMPY.get(function)
    if known is not None and kwargs.get("out") is None:
        try:
            found = known(*args, **kwargs)
        except TypeError as error:
            if not re.search("unexpected keyword|required positional|positional argument", str(error)):
                raise
            what = re.sub(r"^[\w.<>]*\(\)", "the function", str(error))
            raise TypeError(f"{function.__module__}.{function.__name__}: no op computes it for these arguments of Tensors: {what}") from None
        if found is not NotImplemented:
            return found
    try:
        arrays, words = [*map(_as_array, args)], {key: _as_array(value) for key, value in kwargs.items()}
    except RuntimeError as error:
        if "requires grad" not in str(error):
            raise
        raise TypeError(f"{function.__module__}.{function.__name__}: no op computes it for these arguments of Tensors. {error}") from None
    return function(*arrays, **words)


@METHODS.define
def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> Any:
    """The module of the functions of tensors, for programs that are written for any library of arrays."""
    return sys.modules["symgrad"]


METHODS["__array_priority__"] = 1000  # as in torch
