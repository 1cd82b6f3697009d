"""The table of NumPy's functions on Tensors, and their arguments and defaults, which are read from the signatures of NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of, get_default_dtype
from symgrad.engine.data import has_graph, operand_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced

FUNCTIONS_OF_NUMPY: dict[Any, Callable[..., Any]] = {}
ARRAYS = frozenset("A a arr array ary b m v val x x1 x2 y z".split())  # the names of NumPy's parameters that are arrays
UNUSED = frozenset("copy device kind order overwrite_input stable subok".split())  # and of those that change no value
NO_VALUE = {"keepdims": False, "where": True}  # what stands for NumPy's sign of an argument that is not given, if it is not None


def as_tensor(x: Any) -> Any:
    """A tensor of an array, of nested sequences, which may have Tensors, or of a number; a Tensor itself."""
    if isinstance(x, Tensor):
        return x
    return traced.stack([as_tensor(each) for each in x]) if type(x) in (list, tuple) and has_graph(x) else wrap(operand_value(x))


def floats(x: Any) -> Any:
    """The numbers as floats, or complex."""
    x = as_tensor(x)
    return x if x.is_floating_point() or x.is_complex() else x.to(get_default_dtype())


def of_numpy(*functions: Any, names: str = "", convert: Callable[[Any], Any] = as_tensor) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter what computes functions of NumPy; it is called with NumPy's arguments of its own `names`, and Tensors in place of arrays.

    What has arrays is computed in NumPy's `dtype`. Raises TypeError, when called, for a value of another argument than its default.
    """
    def enter(compute: Callable[..., Any]) -> Callable[..., Any]:
        own = dict.fromkeys(names.split()) or dict(inspect.signature(compute).parameters)
        for function in functions:
            FUNCTIONS_OF_NUMPY[function] = _adapted(function, compute, own, convert)
        return compute

    return enter


def _adapted(function: Any, compute: Callable[..., Any], own: dict[str, Any], convert: Callable[[Any], Any]) -> Callable[..., Any]:
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # a function of C, in versions of NumPy that do not tell its arguments
        parameters = own  # type: ignore[assignment]
    places = [name for name, p in parameters.items() if p is None or p.kind is not p.KEYWORD_ONLY]
    defaults = {name: NO_VALUE.get(name) if p.default is np._NoValue else p.default
                for name, p in {**own, **parameters}.items() if p is not None and p.default is not p.empty}

    slots = [(name in ARRAYS and 1 + (defaults.get(name, own) is None), name, places.index(name) if name in places else len(places),
              defaults.get(name, own)) for name in own]  # 2 is an array that may be None
    casts = "dtype" in parameters and "dtype" not in own and any(array for array, *_ in slots)
    first = next((i for i, name in enumerate(places) if name not in own), len(places))  # so many leading arguments are those of `compute`

    def call(*args: Any, **kwargs: Any) -> Any:
        count, dtype = len(args), None
        if not kwargs and count <= first:
            values = [(array, args[i] if i < count else default) for array, _, i, default in slots]
        else:
            given = dict(zip(places, args), **kwargs)
            dtype = given.pop("dtype", None) if casts else None
            for name in given.keys() - own.keys():
                if (name not in UNUSED or name not in parameters) and given[name] is not defaults.get(name, own):
                    raise TypeError(f"it got an unexpected keyword argument {name!r}")
            values = [(array, given.get(name, default)) for array, name, _, default in slots]
        if count > len(places) or any([x is own for _, x in values]):
            raise TypeError(f"it takes the required positional arguments {', '.join(own)}, but {count} were given")
        found = convert if dtype is None else lambda x: convert(x).to(dtype_of(dtype))
        return compute(*[found(x) if array == 1 or array and x is not None else x for array, x in values])

    return call
