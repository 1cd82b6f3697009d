"""The checks of arguments that functions share: their ranks, shapes, dtypes, ranges and options.

Each raises `function: what is wrong, with the value or the shape`, by default a RuntimeError.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from symgrad.errors import UnsupportedDtype

__all__ = ["check_dims", "check_kind", "check_least_rank", "check_one_dtype", "check_option", "check_positive", "check_range", "check_shapes"]

KINDS = {"f": "floating-point", "c": "complex", "i": "a signed integer", "u": "an unsigned integer", "b": "bool"}


def check_dims(name: str, x: Any, *dims: int, word: str = "input", error: type[Exception] = RuntimeError) -> None:
    """Check that a tensor has one of these numbers of dimensions."""
    if len(x.shape) not in dims:
        raise error(f"{name}: {word} must have {' or '.join(map(str, dims))} dimensions, but its shape is {list(x.shape)}")


def check_least_rank(name: str, x: Any, least: int, word: str = "input", kind: type[Exception] = RuntimeError) -> None:
    """Check that a tensor has so many dimensions, or more."""
    if len(x.shape) < least:
        raise kind(f"{name}: {word} must have at least {least} dimension{'s' * (least > 1)}, but its shape is {list(x.shape)}")


@functools.cache
def _dimensions(core: str) -> list[tuple[tuple[str, ...], bool]]:
    """For each operand the names of its last dimensions, and whether others may precede them."""
    operands = [part.strip("()").split(",") for part in core.split("),(")]
    return [(tuple(n for n in names if n not in ("", "...")), names[0] == "...") for names in operands]


def check_shapes(name: str, core: str, *operands: Any) -> None:
    """Check the shapes of operands by a signature such as "(...,n,k),(k)", in which equal names are equal sizes."""
    sizes: dict[str, int] = {}
    for (names, more), x in zip(_dimensions(core), operands):
        shape = tuple(x.shape)
        extra = len(shape) - len(names)
        if extra < 0 or extra and not more or any([sizes.setdefault(word, n) != n for word, n in zip(names, shape[extra:])]):
            given = ", ".join([str(list(x.shape)) for x in operands])
            raise RuntimeError(f"{name}: the operands must have the shapes {core}, with equal sizes for equal letters, but they have {given}")


def check_one_dtype(name: str, *operands: Any) -> None:
    """Check that tensors have one dtype, where they are not promoted."""
    if any([x.dtype is not operands[0].dtype for x in operands[1:]]):
        raise RuntimeError(f"{name}: the operands must have one dtype, but they have {', '.join([str(x.dtype) for x in operands])}. "
                           "Convert them with .to()")


def check_kind(name: str, x: Any, kinds: str, word: str = "input") -> None:
    """Check that a tensor has a dtype of one of some kinds: f (floating-point), c (complex), i (signed), u (unsigned) and b (bool)."""
    dtype = getattr(x.dtype, "numpy", x.dtype)
    if dtype.kind.replace("V", "f") not in kinds:  # V is bfloat16
        expected = " or ".join([KINDS[kind] for kind in kinds])
        raise UnsupportedDtype(f"{name}: {word} must have a dtype that is {expected}, not {x.dtype}. Convert it with .to()")


def check_option(name: str, word: str, value: Any, options: Iterable[Any], kind: type[Exception] = RuntimeError) -> None:
    """Check that an argument is one of some values."""
    if value not in options:
        raise kind(f"{name}: {word} must be one of {', '.join(map(repr, options))}, not {value!r}")


def check_range(name: str, word: str, value: Any, low: Any = None, high: Any = None, kind: type[Exception] = RuntimeError) -> None:
    """Check that a number is from `low` to `high`, as far as they are given; NaN is not."""
    if low is not None and not value >= low or high is not None and not value <= high:
        expected = f"at least {low}" if high is None else f"at most {high}" if low is None else f"from {low} to {high}"
        raise kind(f"{name}: {word} must be {expected}, not {value}")


def check_positive(name: str, word: str, value: Any) -> None:
    """Check that a number is above 0; NaN is not."""
    if not value > 0:
        raise RuntimeError(f"{name}: {word} must be positive, not {value}")
