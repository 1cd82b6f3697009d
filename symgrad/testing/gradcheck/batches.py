"""Batches of cotangents and of tangents compared with loops: the checks of `gradcheck` for rules inside vmap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.autograd.forward_ad import dual_level
from symgrad.carriers.batched import Batched, new_level
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.modes import in_mode, thread
from symgrad.testing.gradcheck.error import GradcheckError
from symgrad.testing.gradcheck.jacobians import Array, Forward, FunctionAtPoint

__all__ = ["check_batched_cotangents", "check_batched_tangents"]

FAILED = ("\ngradcheck or gradgradcheck failed while testing batched gradient computation.\nA batch of {what} gave something else than one after the "
          "other. Look at the custom Functions in what is checked: inside vmap their {rule} gets tensors that stand for all members of a batch. Or "
          "leave {option}=False.")
COTANGENTS = FAILED.format(what="cotangents", rule="backward", option="check_batched_grad")
TANGENTS = FAILED.format(what="tangents", rule="jvp", option="check_batched_forward_grad")


def _two(x: Tensor, key: int) -> Array:
    """Two random tensors of the shape of another."""
    generator = np.random.default_rng([2, key])
    drawn = generator.standard_normal((2, *x.shape))
    return (drawn + 1j * generator.standard_normal(drawn.shape) if x.is_complex() else drawn).astype(x._value.dtype)


def _stacked(rows: Sequence[Sequence[Tensor | None]], like: Sequence[Tensor]) -> list[Array]:
    return [np.stack([np.zeros_like(x._value) if row[j] is None else row[j]._value for row in rows]) for j, x in enumerate(like)]  # type: ignore


def _compare(got: Sequence[Tensor | None], expected: Sequence[Array], output: int | None, message: str) -> None:
    for j, (t, e) in enumerate(zip(got, expected)):
        found = np.zeros_like(e) if t is None else t._value
        if found.shape != e.shape or not np.allclose(found, e, 1e-5, 1e-8):
            raise GradcheckError(f"For output {j if output is None else output} and input {j}:\n\n{message}\n\nGot:\n{wrap(found)}\n\nExpected:\n"
                                 f"{wrap(e)}")


def check_batched_cotangents(check: FunctionAtPoint) -> None:
    """Compare two cotangents of each output as a batch and in a loop.

    Raises GradcheckError where they differ, or where a rule does not support batches.
    """
    for i, y in enumerate(check.outputs):
        both = _two(y, i)
        rows = [grad(y, check.leaves, wrap(g), retain_graph=True, allow_unused=True) for g in both]
        try:
            found = grad(y, check.leaves, wrap(both), retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{COTANGENTS}") from error
        _compare(found, _stacked(rows, check.leaves), i, COTANGENTS)


def check_batched_tangents(check: FunctionAtPoint) -> None:
    """Compare two tangents of each input as a batch and in a loop.

    Raises GradcheckError where they differ, or where a rule does not support batches.
    """
    with dual_level():
        forward = Forward(check)
        for j, x in enumerate(check.leaves):
            both, level = _two(x, j), new_level()
            rows = [forward.push({j: t}) for t in both]
            try:
                with in_mode(batches=(*thread.modes.batches, (level, 2, "error"))):
                    found = [None if t is None else traced.unbatch(t, 0, level, 2) for t in forward.push({j: Batched(both, level)})]
            except RuntimeError as error:
                raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{TANGENTS}") from error
            _compare(found, _stacked(rows, forward.outputs), None, TANGENTS)
