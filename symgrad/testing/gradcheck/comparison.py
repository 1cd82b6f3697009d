"""Numerical derivatives compared with analytical ones, for `gradcheck`.

All functions are treated as real. A complex input has the derivative ∂y/∂Re x + i ∂y/∂Im x, and a complex output is two
outputs, its imaginary and its real part.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.autograd.function import Function
from symgrad.carriers.batched import Batched, new_level
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.generators import REFUSED
from symgrad.graph.modes import in_mode, thread
from symgrad.testing.gradcheck.jacobians import (
    Array,
    FunctionAtPoint,
    GradcheckError,
    distances,
    numerical_derivatives,
    pullbacks,
    push_forward,
    random_vector,
    unit_vectors,
)

IMAGINARY, REAL = "imaginary", "real"


@dataclass
class DerivativeCheck(FunctionAtPoint):
    """A function at a point, and the tolerances of its derivatives."""

    atol: float
    rtol: float
    nondet_tol: float
    dtypes: bool
    fast: bool

    def run(self, backward: bool, forward: bool, undefined: bool, batched: bool = False, batched_forward: bool = False) -> None:
        """Check pullbacks, pushforwards or both; `undefined` gradients, too, and batches of cotangents and of tangents.

        Raises GradcheckError for the first derivative that is wrong.
        """
        if not self.outputs:
            _check_nothing(self)
        if backward:
            _check_backward(self)
        if forward:
            _check_forward(self)
            if undefined:
                _check_undefined_tangents(self)
            if batched_forward:
                check_batched_tangents(self)
        if backward:
            if batched:
                check_batched_cotangents(self)
            _check_zero_cotangents(self)
            if undefined:
                _check_undefined_cotangents(self)

    @functools.cached_property
    def vectors(self) -> list[list[list[Array]]]:
        return [self.directions(j, self.fast) for j in range(len(self.leaves))]

    @functools.cached_property
    def differences(self) -> list[list[list[Array]]]:
        """For each input, direction and output, the derivatives by central differences."""
        return [[numerical_derivatives(self, x, vectors, self.places) for vectors in directions] for x, directions in zip(self.leaves, self.vectors)]


def _columns(check: DerivativeCheck, y: Tensor, cotangents: Sequence[Array]) -> list[Array]:
    """The blocks of the Jacobian of one output by pullbacks, which must be deterministic."""
    blocks = []
    for found in pullbacks(check, y, cotangents), pullbacks(check, y, cotangents):
        for gradients in found:
            for x, g in zip(check.leaves, gradients):
                if g is not None and g.shape != x.shape:
                    raise GradcheckError("gradcheck: the gradient has another shape than its input")
                if g is not None and g.dtype != x.dtype and check.dtypes:
                    raise GradcheckError("gradcheck: the gradient has another dtype than its input")
        blocks.append([_matrix([gradients[j] for gradients in found], x).T for j, x in enumerate(check.leaves)])
    for one, other in zip(*blocks):
        if one.size and distances(one, other).max() > check.nondet_tol:
            raise GradcheckError("gradcheck: Backward is not reentrant: run twice, it gives values that differ by more than nondet_tol = "
                                 f"{check.nondet_tol}. If the function is meant to be random, give a larger one")
    return blocks[0]


def _rows(check: DerivativeCheck, j: int, vectors: Sequence[Array]) -> list[Array]:
    """The blocks of the Jacobian by one input by pushforwards."""
    found = [push_forward(check, {j: vector}) for vector in vectors]
    for tangents in found:
        for y, t in zip(check.outputs, tangents):
            if check.dtypes and t is not None and t.is_complex() != y.is_complex():
                raise GradcheckError("gradcheck: the tangent has another dtype than its output")
    return [_matrix([tangents[i] for tangents in found], y) for i, y in enumerate(check.outputs)]


def _matrix(rows: Sequence[Tensor | None], like: Tensor) -> Array:
    """Tensors of one shape as the rows of a matrix; None becomes zeros."""
    out = np.zeros((len(rows), like.numel()), like._value.dtype)
    for k, row in enumerate(rows):
        if row is not None:
            out[k] = row._value.reshape(-1)
    return out


# Numerical and analytical derivatives


def _complex_derivative(columns: Sequence[Array], part: str) -> Array:
    """The derivative of one part of an output by a complex input, ∂/∂Re x + i ∂/∂Im x, or by a real one."""
    parts = [c if c.dtype.kind != "c" else c.imag if part == IMAGINARY else c.real for c in columns]
    return parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]


def _parts_in_order(tensors: Sequence[Tensor]) -> Iterator[tuple[str, list[int]]]:
    """The parts of outputs in torch's order: first the imaginary parts and real outputs, then the real parts of complex outputs."""
    yield IMAGINARY, list(range(len(tensors)))
    yield REAL, [i for i, t in enumerate(tensors) if t.is_complex()]


def _check_backward(check: DerivativeCheck) -> None:
    """vᵀ J u by a pullback and by differences, for all unit vectors or, in fast mode, for one u and one v at random."""
    for part, places in _parts_in_order(check.outputs):
        for i in places:
            y = check.outputs[i]
            unit = 1j if y.is_complex() and part == IMAGINARY else 1
            vs = [random_vector(y, np.random.default_rng([1, i])).real] if check.fast else [e.real for e in unit_vectors(y)]
            analytical = _columns(check, y, [unit * v for v in vs])
            message = (f"While considering the {part} part of complex outputs only, " if y.is_complex() else "") + "Jacobian mismatch"
            for j in range(len(check.leaves)):
                n, a = _complex_derivative([columns[i] for columns in check.differences[j]], part), analytical[j]
                if not check.fast:
                    _compare(check, n, a, message, i, j)
                    continue
                v, us = vs[0].reshape(-1), [np.abs(d[0]).reshape(-1) for d in check.vectors[j]]
                scale = v.sum() * sum(u.sum() for u in us)
                n, a = (n @ v)[0], us[0] @ a[:, 0].real + (1j * (us[1] @ a[:, 0].imag) if len(us) == 2 else 0)
                if not np.isclose(a, n, check.rtol, check.atol * scale):
                    _check_entries(check, _check_backward, message, i, j)


def _check_forward(check: DerivativeCheck) -> None:
    """J u by a pushforward and by differences, for all unit vectors or, in fast mode, for one u at random."""
    differences = check.differences
    for part, places in _parts_in_order(check.leaves):
        sides = {j: len(check.vectors[j]) - 1 if part == IMAGINARY else 0 for j in places}
        analytical = {j: _rows(check, j, check.vectors[j][side]) for j, side in sides.items()}
        for i in range(len(check.outputs)):
            for j, side in sides.items():
                n, a, x = differences[j][side][i], analytical[j][i], check.leaves[j]
                message = (f"While considering the {part} part of complex inputs only, " if x.is_complex() else "")
                message += "Jacobian computed with forward mode mismatch"
                if not check.fast:
                    _compare(check, n, a, message, i, j)
                elif not np.allclose(a, n, check.rtol, check.atol * np.abs(check.vectors[j][side][0]).sum()):
                    _check_entries(check, _check_forward, message, i, j)


def _check_undefined_tangents(check: DerivativeCheck) -> None:
    """Check that an undefined tangent has the effect of zeros."""
    given = {j: check.directions(j, True)[0][0] for j, x in enumerate(check.leaves)}
    for j in given:
        others = {k: t for k, t in given.items() if k != j}
        for i, (one, other) in enumerate(zip(push_forward(check, others), push_forward(check, others, without=j))):
            if one is not None and other is not None and not np.allclose(one._value, other._value):
                raise GradcheckError(f"gradcheck: the tangent of output {i} is {other} where input {j} has none, and {one} where it has zeros")


def _compare(check: DerivativeCheck, n: Array, a: Array, message: str, i: int, j: int) -> None:
    if not np.allclose(a, n, check.rtol, check.atol):
        raise GradcheckError(f"{message} for output {i} with respect to input {j},\nnumerical:{wrap(n)}\nanalytical:{wrap(a)}\n\n"
                             + _worst(check, n, a, i, j))


def _check_entries(check: DerivativeCheck, compare: Callable[[DerivativeCheck], None], message: str, i: int, j: int) -> None:
    """Raise the error for a projection that differs: that of an entry, if one does."""
    compare(replace(check, fast=False))
    raise GradcheckError(f"{message} for output {i} with respect to input {j} along a random direction, though each entry agrees. "
                         "Give larger tolerances, or fast_mode=False")


def _worst(check: DerivativeCheck, n: Array, a: Array, i: int, j: int) -> str:
    """The line that names the entry with the largest disagreement."""
    difference = distances(n, a)
    at = int(np.argmax(np.where(np.isnan(difference), np.inf, difference)))
    row, column = divmod(at, n.shape[1])

    def place(t: Tensor, flat: int) -> str:
        return str([int(k) for k in np.unravel_index(flat, t.shape)]) if t.ndim else ""

    output, leaf = f"output {i}{place(check.outputs[i], column)}", f"input {j}{place(check.leaves[j], row)}"
    return (f"The largest disagreement is that of {output} with respect to {leaf}: numerical {n[row, column].item()!r}, "
            f"analytical {a[row, column].item()!r}")


# Further requirements of a backward


def _check_nothing(check: DerivativeCheck) -> None:
    """Check that the differences are zero if no output requires grad."""
    places = [i for i, y in enumerate(check.every) if y.is_floating_point() or y.is_complex()]
    for j, x in enumerate(check.leaves):
        for vectors in check.directions(j, check.fast):
            for found in numerical_derivatives(check, x, vectors, places):
                if (np.abs(found) > (check.nondet_tol if check.fast else 0)).any():
                    raise GradcheckError("gradcheck: the differences of the function are not 0, and no output depends on an input")


def _check_zero_cotangents(check: DerivativeCheck) -> None:
    """Check that a zero cotangent gives zeros in the shape and dtype of the input."""
    zeros = [wrap(np.zeros_like(y._value)) for y in check.outputs]
    found = grad(check.outputs, check.leaves, zeros, retain_graph=True, allow_unused=True) if zeros else ()
    for x, g in ((x, g) for x, g in zip(check.leaves, found) if g is not None):
        if not (g._value == 0).all():
            raise GradcheckError("gradcheck: backward with a cotangent of zeros does not give zeros")
        if g.dtype != x.dtype:
            raise GradcheckError("gradcheck: the gradient has another dtype than its input")
        if g.shape != x.shape:
            raise GradcheckError("gradcheck: the gradient has another shape than its input")


class _Undefined(Function):
    """The identity, with an undefined gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> None:
        return None


def _check_undefined_cotangents(check: DerivativeCheck) -> None:
    """Check that undefined cotangents, of all outputs or of one, have the effect of zeros."""
    count = len(check.outputs)
    for missing in (None, *(range(count) if count > 1 else ())):
        outputs = [y for y in check.evaluate(check.inputs) if y.requires_grad]
        outputs = [_Undefined.apply(y) if missing in (None, i) else y for i, y in enumerate(outputs)]
        without = "Without a gradient for any output" if missing is None else f"Without a gradient for output {missing}"
        try:
            found = grad(outputs, check.leaves, [wrap(np.zeros_like(y._value)) for y in outputs], allow_unused=True)
        except Exception as error:
            raise GradcheckError("gradcheck: backward fails where an output has no gradient. "
                                 f"{without} it raised {type(error).__name__}: {error}") from error
        if any(g is not None and not (g._value == 0).all() for g in found):
            raise GradcheckError("gradcheck: where no output has a gradient, those of the inputs must be None or 0. "
                                 f"{without} they were not.")


def _random_batch(x: Tensor, key: int) -> Array:
    """Two random tensors of the shape of another."""
    real, imaginary = np.random.default_rng([2, key]).standard_normal((2, 2, *x.shape))
    return (real + 1j * imaginary if x.is_complex() else real).astype(x._value.dtype)


def _check_batch(rows: Sequence[Sequence[Tensor | None]], batch: Callable[[], Sequence[Tensor | None]], like: Sequence[Tensor], said: str) -> None:
    """Raise GradcheckError where a batch of cotangents or tangents gives something else than one after the other, or is not supported."""
    said = f"gradcheck: a batch of {said} inside vmap, where custom Functions get tensors that stand for all members of the batch, "
    try:
        found = batch()
    except RuntimeError as error:
        raise GradcheckError(f"{said}raised {error}") from error
    for j, (t, x) in enumerate(zip(found, like)):
        expected = np.stack([np.zeros_like(x._value) if row[j] is None else row[j]._value for row in rows])  # type: ignore[union-attr]
        got = np.zeros_like(expected) if t is None else t._value
        if got.shape != expected.shape or not np.allclose(got, expected, 1e-5, 1e-8):
            raise GradcheckError(f"{said}gives {wrap(got)} at place {j}, and one after the other {wrap(expected)}")


def check_batched_cotangents(check: FunctionAtPoint) -> None:
    """Compare two cotangents of each output as a batch and in a loop. Raises GradcheckError."""
    for i, y in enumerate(check.outputs):
        both = _random_batch(y, i)
        pull = functools.partial(grad, y, check.leaves, retain_graph=True, allow_unused=True)
        _check_batch([pull(wrap(g)) for g in both], functools.partial(pull, wrap(both), is_grads_batched=True), check.leaves,
                     f"cotangents of output {i}")


def check_batched_tangents(check: FunctionAtPoint) -> None:
    """Compare two tangents of each input as a batch and in a loop. Raises GradcheckError."""
    for j, x in enumerate(check.leaves):
        both, level = _random_batch(x, j), new_level()

        def batch(j: int = j, both: Array = both, level: int = level) -> list[Tensor | None]:
            with in_mode(batches=(*thread.modes.batches, (level, 2, REFUSED))):
                return [None if t is None else traced.unbatch(t, 0, level, 2) for t in push_forward(check, {j: Batched(both, level)})]

        _check_batch([push_forward(check, {j: t}) for t in both], batch, check.outputs, f"tangents of input {j}")
