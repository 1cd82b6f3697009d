"""The errors of linear algebra, as `torch.linalg.LinAlgError`, and of dtypes for which an op has no rule; the names of types in errors."""

from __future__ import annotations

from typing import Any

__all__ = ["LinAlgError", "UnsupportedDtype", "kind_name"]


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive definite, or not finite, so that a function of linear algebra has no answer for it.

    `info` is the position, from 1, of the zero on the diagonal of U, or the order of the leading minor that is not positive definite; 0 where
    neither is known.

    >>> import symgrad
    >>> try:
    ...     symgrad.linalg.inv(symgrad.ones(2, 2))
    ... except symgrad.linalg.LinAlgError as error:
    ...     print(error.info)
    2
    """

    def __init__(self, message: str = "", info: int = 0):
        super().__init__(message)
        self.info = info


class UnsupportedDtype(TypeError, NotImplementedError):
    """An op has no rule for the dtype of an operand: a TypeError, as in NumPy, and a NotImplementedError, as in torch."""


def kind_name(x: Any) -> str:
    """The name of the type of an argument, as torch's errors write it.

    >>> import numpy as np
    >>> kind_name(2.0), kind_name(np.ones(2))
    ('float', 'numpy.ndarray')
    """
    return f"{'numpy.' * (type(x).__module__ == 'numpy')}{type(x).__name__}"
