"""A function as one of a vector of real numbers; its Jacobian at a point as matrices, by central differences, by pullbacks and by pushforwards.

The block of an input with n elements and an output with m is an n by m matrix. Differences and pushforwards give its rows, one for
each vector the input is moved along; pullbacks give its columns, one for each cotangent.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from symgrad.engine.tensor import Size, Tensor, wrap
from symgrad.system.restoring import restored

Array = Any


@dataclass
class FunctionAtPoint:
    """A function at a point: `leaves` are the inputs to differentiate by, `outputs` the differentiable outputs.

    `every` are all outputs, and `places` the positions of the differentiable ones among them.
    """

    func: Callable[..., Any]
    inputs: tuple[Any, ...]
    eps: float
    differentiates: bool = field(default=False, kw_only=True)  # whether the function asks for gradients by its inputs itself

    def __post_init__(self) -> None:
        self.calls = 0
        self.leaves: list[Tensor] = [x for x in self.inputs if isinstance(x, Tensor) and x.requires_grad]
        self.every = self.evaluate(self.inputs)
        self.places = [i for i, y in enumerate(self.every) if y.requires_grad]
        self.outputs = [self.every[i] for i in self.places]

    def evaluate(self, inputs: Sequence[Any]) -> tuple[Tensor, ...]:
        """The function's outputs as a tuple.

        Raises TypeError for an output that is no Tensor.
        """
        self.calls += 1
        out = self.func(*inputs)
        outputs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        for i, y in enumerate(outputs):
            if not isinstance(y, Tensor):
                raise TypeError(f"gradcheck: func must return a Tensor or a tuple of Tensors; output {i} is {type(y).__name__}")
        return outputs

    def directions(self, j: int, fast: bool) -> list[list[Array]]:
        """The vectors to move an input along, for its real and for its imaginary part: unit vectors, or one at random."""
        x = self.leaves[j]
        units = [1, 1j] if x.is_complex() else [1]
        if not fast:
            return [[unit * e for e in unit_vectors(x)] for unit in units]
        generator = np.random.default_rng([0, j])
        return [[unit * random_vector(x, generator)] for unit in units]

    def numerical(self, x: Tensor, vectors: Sequence[Array], places: Sequence[int]) -> list[Array]:
        """The derivatives (f(x + eps v) - f(x - eps v)) / 2 eps of the outputs at these places: one row per vector v.

        The input is written in place and restored. Raises AssertionError if the function's outputs change in shape or dtype.
        """
        rows = []
        for step in (self.eps * vector for vector in vectors):
            array = x.data._value
            before, moved = array.copy(), np.argwhere(step)
            where = f"on index {tuple(moved[0].tolist())} " if len(moved) == 1 else ""
            ends: list[list[Array]] = []
            with restored(functools.partial(np.copyto, array, before)):
                for end in before - step, before + step:
                    array[...] = end
                    ends.append([np.array(y._value) for y in self.evaluate(self.inputs)])
            for a, b in zip(*ends):
                for what, one, other in ("shape", Size(a.shape), Size(b.shape)), ("dtype", wrap(a).dtype, wrap(b).dtype):
                    if one != other:
                        raise AssertionError(f"gradcheck: when an input moves {where}by {self.eps}, the {what} of an output is {one} and {other}")
            with np.errstate(all="ignore"):
                rows.append([((b - a) / (2 * self.eps)).reshape(-1) if a.dtype.kind not in "biu" else np.zeros(a.size) for a, b in zip(*ends)])
        return [np.array([row[i] for row in rows]).reshape(len(rows), self.every[i].numel()) for i in places]


def unit_vectors(x: Tensor) -> Iterator[Array]:
    """The unit vectors of the shape of a tensor."""
    for k in range(x.numel()):
        e = np.zeros(x.numel(), x._value.dtype)
        e[k] = 1
        yield e.reshape(x.shape)


def random_vector(x: Tensor, generator: np.random.Generator) -> Array:
    """A vector of length one in the shape of a tensor, real and not negative, so that errors of one sign do not cancel."""
    u = generator.random(x.shape)
    return np.asarray(u / (np.linalg.norm(u) or 1)).astype(x._value.dtype)


def push_forward(problem: FunctionAtPoint, tangents: Mapping[int, Array], without: int | None = None) -> list[Tensor | None]:
    """The tangents of the outputs, by a call of the function with dual tensors; None for an output without a tangent.

    `tangents` has those of the inputs by their number, others are zero; the input `without` has none. The dual tensors require no grad, unless
    the function differentiates.
    """
    with dual_level():
        primals = [x if problem.differentiates else x.detach() for x in problem.leaves]
        duals = iter([x if j == without else make_dual(x, wrap(tangents.get(j, np.zeros_like(x._value)))) for j, x in enumerate(primals)])
        every = problem.evaluate([next(duals) if isinstance(x, Tensor) and x.requires_grad else x for x in problem.inputs])
        return [unpack_dual(every[i]).tangent for i in problem.places]


def as_real(x: Any) -> Array:
    """A complex array as a real one with one more axis."""
    x = np.asarray(x)
    return np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x


def random_weights(y: Tensor, rng: np.random.Generator) -> Array:
    """Small whole numbers in the shape of an output."""
    found = rng.integers(1, 8, y.shape).astype(np.float64)
    return np.asarray(found + 1j * rng.integers(1, 8, y.shape) if y.is_complex() else found).astype(y._value.dtype)


class GradcheckError(RuntimeError):
    """A wrong derivative found by `gradcheck` or `gradgradcheck`; the message has both values."""
