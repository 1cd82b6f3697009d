"""The interface through which the value and the derivatives of a function of any framework are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.frameworks.calling import Call
from symgrad.frameworks.problem import NotCheckable, silence

__all__ = ["Adapter", "Levels", "coarser", "missing", "no_complex", "parts_of"]

INSTALL = "pip install 'symgrad[parity]'"


@dataclass
class Levels:
    """What a function gives at a point: for each order an array, over the inputs once per derivative (see `Adapter.full`).

    `bounds` has the error bounds of the orders that were found by finite differences; `error` is the order that could not be had and
    what was raised; `dtype` that of the result, or of the inputs where that is coarser.
    """

    values: dict[int, np.ndarray] = field(default_factory=dict)
    bounds: dict[int, np.ndarray] = field(default_factory=dict)
    error: tuple[int, BaseException] | None = None
    dtype: Any = np.dtype(np.float64)
    shape: tuple[int, ...] = ()
    flat: bool = False


class Adapter:
    """A function whose value and derivatives can be computed. An array for a result is weighted by 1, 2, 3, ... and summed.

    Derivatives of the orders up to `full` are taken entry by entry; those above with all but one argument the `direction`.
    `methods` names for each order how it is computed.
    """

    name = "numpy"
    subnormals = True

    def __init__(self, call: Call, order: int, full: int, direction: np.ndarray):
        self.call, self.order, self.full, self.direction = call, order, full, direction
        self.methods: dict[int, str] = {0: "the function"}

    def levels(self, point: Sequence[np.ndarray], order: int) -> Levels:
        """Value and derivatives up to an order at a point; an exception is part of the result."""
        out = Levels()
        try:
            with silence():
                for k, value in enumerate(self._orders(point, order, out)):
                    out.values[k] = np.asarray(value, dtype=np.float64)
        except NotCheckable:
            raise
        except Exception as error:  # whatever a user's function raises
            out.error = len(out.values), error
        return out

    def _orders(self, point: Sequence[np.ndarray], order: int, out: Levels) -> Iterator[Any]:
        raise NotImplementedError

    def _step(self, order: int) -> bool:
        """Whether derivatives of this order are the entries of those below differentiated, one by one."""
        return order <= self.full


def coarser(dtype: Any, point: Sequence[np.ndarray]) -> Any:
    """The floating-point type with the fewest digits of a result and its inputs."""
    from ml_dtypes import finfo

    kinds = [np.dtype(dtype), *(v.dtype for v in point)]
    return max((k for k in kinds if k.kind in "fV"), key=lambda k: float(finfo(k).eps), default=np.dtype(np.float64))


def parts_of(result: Any) -> Iterator[Any]:
    """The numbers and arrays in a result, through tuples, lists and mappings."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        for part in result:
            yield from parts_of(part)
    elif result is not None:
        yield result


def no_complex(is_complex: bool) -> bool:
    """False for a real result. Raises NotCheckable for a complex one."""
    if is_complex:
        raise NotCheckable("the result is complex; check its real and imaginary part")
    return False


def missing(name: str) -> Any:
    """A module of an extra. Raises ImportError that says how to install it."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        root = name.partition(".")[0]
        raise ImportError(f"check: {root} is not installed, and this function is checked with it: {INSTALL}") from error
