"""torch's former names of the Jacobians that `gradcheck` compares."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.engine.tensor import Tensor, wrap
from symgrad.testing.gradcheck.jacobians import FunctionAtPoint, numerical_derivatives, pullbacks, unit_vectors

__all__ = ["get_analytical_jacobian", "get_numerical_jacobian"]


def _former(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with torch's warning, and without another `grad_out` than 1."""
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, grad_out: float = 1.0, **kwargs: Any) -> Any:
        warnings.warn(f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed in a "
                      "future version of PyTorch. symgrad.func.jacrev computes Jacobians.", FutureWarning, stacklevel=2)
        if grad_out != 1.0:
            raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")
        return function(*args, **kwargs)

    return call


@_former
def get_numerical_jacobian(fn: Callable[[tuple], Any], inputs: Sequence[Any], target: Any = None, eps: float = 1e-3) -> tuple[Tensor, ...]:
    """The Jacobians of the first output of `fn(inputs)` by central differences, (elements of the input, elements of the output), for every input that
    requires grad, or for those in `target`.

    Warns that it is deprecated, as in torch. Raises ValueError for a `grad_out` other than 1.
    """
    problem = FunctionAtPoint(lambda *given: fn(given), tuple(inputs), eps)
    targets = problem.leaves if target is None else [target] if isinstance(target, Tensor) else list(target)

    def derivative(x: Tensor, unit: complex) -> np.ndarray:
        return numerical_derivatives(problem, x, [unit * e for e in unit_vectors(x)], problem.places[:1])[0]

    return tuple([wrap(derivative(x, 1) + 1j * derivative(x, 1j) if x.is_complex() else derivative(x, 1)) for x in targets])  # ∂y/∂Re x + i ∂y/∂Im x


@_former
def get_analytical_jacobian(inputs: Sequence[Any], output: Tensor, nondet_tol: float = 0.0) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The Jacobians of an output by pullbacks, (elements of the input, elements of the output), for every input that requires grad.

    They come with three truth values: whether two pullbacks agree within `nondet_tol`, and whether the gradients have the shapes and the dtypes of
    the inputs. Warns that it is deprecated, as in torch. Raises ValueError for a `grad_out` other than 1 and for a complex output.
    """
    if output.is_complex():
        raise ValueError("Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return complex outputs.")
    problem = FunctionAtPoint(lambda *_: output, tuple(inputs), 0.0)
    leaves = problem.leaves
    passes = [pullbacks(problem, output, list(unit_vectors(output))) for _ in range(2)]
    found = [(g, x) for row in passes[0] for g, x in zip(row, leaves) if g is not None]
    first, second = ([np.array([np.zeros(x.numel()) if (g := row[j]) is None else g._value.reshape(-1) for row in rows]).T
                      for j, x in enumerate(leaves)] for rows in passes)
    reentrant = all(not a.size or np.abs(a - b).max() <= nondet_tol for a, b in zip(first, second))
    return tuple(map(wrap, first)), reentrant, all(g.shape == x.shape for g, x in found), all(g.dtype == x.dtype for g, x in found)
