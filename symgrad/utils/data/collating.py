"""Collation: a list of examples as one batch of tensors."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import DTYPES
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS
from symgrad.factories.creation import as_tensor, tensor

__all__ = ["default_collate", "default_convert"]

REFUSED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _like(example: Any, given: Any) -> Any:
    """A mapping or sequence like an example, with what a mutable one has besides its items; a dict or list if its type does not take the items."""
    try:
        if not isinstance(example, (MutableMapping, MutableSequence)):
            return type(example)(given)
        filled = copy(example)
        for key, value in given.items() if isinstance(given, dict) else enumerate(given):
            filled[key] = value
        return filled
    except TypeError:
        return given


def default_collate(batch: Sequence[Any]) -> Any:
    """Examples of one structure as a batch: tensors, arrays and numbers stacked along a new first axis, in nested mappings and sequences.

    Python floats become float64, as in NumPy; strings stay in a list.

    Raises TypeError for values that cannot be stacked, RuntimeError for sequences and tensors of different sizes.

    >>> default_collate([{"x": 1.5, "y": [1, 2]}, {"x": 2.5, "y": [3, 4]}])
    {'x': tensor([1.5000, 2.5000]), 'y': [tensor([1, 3]), tensor([2, 4])]}
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return FUNCTIONS["stack"](list(batch), 0)
    if isinstance(first, np.ndarray):
        if first.dtype.kind not in "biufc":
            raise TypeError(REFUSED.format(first.dtype))
        return FUNCTIONS["stack"]([as_tensor(x) for x in batch], 0)
    if isinstance(first, np.generic) and not isinstance(first, (str, bytes)):
        return as_tensor(np.array(batch))
    if isinstance(first, float):
        return tensor(list(batch), dtype=DTYPES["float64"])
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([example[key] for example in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(example) != len(first) for example in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(part) for part in zip(*batch)]
        return parts if isinstance(first, tuple) else _like(first, parts)
    raise TypeError(REFUSED.format(type(first)))


def default_convert(data: Any) -> Any:
    """An example with its arrays as tensors, in nested mappings and sequences; other values are unchanged.

    >>> import numpy as np
    >>> default_convert({"x": np.ones(2), "name": "ones"})
    {'x': tensor([1., 1.]), 'name': 'ones'}
    """
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind in "biufc":
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [default_convert(value) for value in data])
    return data
