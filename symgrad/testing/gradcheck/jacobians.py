"""A function as one of a vector of real numbers; its Jacobian at a point as matrices, by central differences, by pullbacks and by pushforwards.

The block of an input with n elements and an output with m is an n by m matrix. Differences and pushforwards give its rows, one for
each vector the input is moved along; pullbacks give its columns, one for each cotangent.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from symgrad.engine.tensor import Size, Tensor, wrap
from symgrad.reference.sources import differences
from symgrad.reports.base import BaseReport, Line, Part, ulp_text
from symgrad.system.errorstate import quiet
from symgrad.system.restoring import changed, restored

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
        self.leaves: list[Tensor] = [x for x in self.inputs if isinstance(x, Tensor) and x.requires_grad]
        self.every = self.evaluate(self.inputs)
        self.places = [i for i, y in enumerate(self.every) if y.requires_grad]
        self.outputs = [self.every[i] for i in self.places]

    def evaluate(self, inputs: Sequence[Any]) -> tuple[Tensor, ...]:
        """The function's outputs as a tuple.

        Raises TypeError for an output that is no Tensor.
        """
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


def _difference(problem: FunctionAtPoint, x: Tensor, step: Array) -> list[Array]:
    """(f(x + step) - f(x - step)) / 2 eps for every output, flat: the input is written in place and restored."""
    array = x.data._value
    before = array.copy()
    moved = np.argwhere(step)
    where = f"on index {tuple(moved[0].tolist())} " if len(moved) == 1 else ""
    ends: list[list[Array]] = []
    with restored(lambda: np.copyto(array, before)):
        for end in before - step, before + step:
            array[...] = end
            ends.append([np.array(y._value) for y in problem.evaluate(problem.inputs)])
    for a, b in zip(*ends):
        for what, one, other in ("shape", Size(a.shape), Size(b.shape)), ("dtype", wrap(a).dtype, wrap(b).dtype):
            if one != other:
                raise AssertionError(f"gradcheck: when an input moves {where}by {problem.eps}, the {what} of an output is {one} and {other}")
    with np.errstate(all="ignore"):
        return [((b - a) / (2 * problem.eps)).reshape(-1) if a.dtype.kind not in "biu" else np.zeros(a.size) for a, b in zip(*ends)]


@quiet
def distances(a: Array, b: Array) -> Array:
    """|a - b|, in the library's error state."""
    return np.abs(a - b)


def numerical_derivatives(problem: FunctionAtPoint, x: Tensor, vectors: Sequence[Array], places: Sequence[int]) -> list[Array]:
    """The derivatives of the outputs at these places along each vector, by central differences: one row per vector.

    Raises AssertionError if the function's outputs change in shape or dtype.
    """
    rows = [_difference(problem, x, problem.eps * vector) for vector in vectors]
    return [np.array([row[i] for row in rows]).reshape(len(rows), problem.every[i].numel()) for i in places]


def pullbacks(problem: FunctionAtPoint, y: Tensor, cotangents: Sequence[Array]) -> list[list[Tensor | None]]:
    """The pullback of each cotangent of one output to every input."""
    return [list(grad(y, problem.leaves, wrap(v.astype(y._value.dtype)), retain_graph=True, allow_unused=True)) for v in cotangents]


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


class PointSkipped(Exception):
    """The reason why a point is skipped."""


class NotSearchable(Exception):
    """The reason why the function cannot be searched."""


class FlatInputs:
    """The differentiated inputs as one vector, with two numbers for a complex one, and the weighted sum of the outputs.

    Raises Unattacked if no input can be changed, or if no output depends on one.
    """

    def __init__(self, problem: FunctionAtPoint, rng: np.random.Generator):
        self.problem = problem
        self.leaves = list({id(x): x for x in problem.leaves}.values())
        self.names = [f"input {next(j for j, y in enumerate(problem.leaves) if y is x)}" for x in self.leaves]
        self.arrays = [x.data._value for x in self.leaves]
        self.base = [as_real(np.array(a)) for a in self.arrays]
        self.given = np.concatenate([np.ravel(b) for b in self.base])
        if not sum(y.numel() for y in problem.outputs):
            raise NotSearchable("no output depends on the inputs")
        if any(x.dtype.name not in ("float64", "complex128") for x in self.leaves):
            raise NotSearchable("an input is not of double precision")
        if not self.given.size:
            raise NotSearchable("no input has elements")
        if any(np.shares_memory(a, b) for i, a in enumerate(self.arrays) for b in self.arrays[:i]):
            raise NotSearchable("inputs share memory")
        if not all(a.flags.writeable for a in self.arrays):
            raise NotSearchable("the memory of an input cannot be written")
        self.form = [(y.shape, y.dtype, y.requires_grad) for y in problem.every]
        self.weights = [_weights(y, rng) for y in problem.outputs]

    @property
    def real(self) -> bool:
        return all(x.dtype.name == "float64" for x in self.leaves) and not any(y.is_complex() for y in self.problem.outputs)

    @contextlib.contextmanager
    def at(self, vector: Array) -> Iterator[None]:
        """A context in which the inputs are at a point; they are restored at the end."""
        before = [a.copy() for a in self.arrays]

        def restore() -> None:
            for a, b in zip(self.arrays, before):
                a[...] = b

        with restored(restore):
            for a, part in zip(self.arrays, self.split(vector)):
                a[...] = part
            yield

    def split(self, vector: Array) -> list[Array]:
        """A vector as arrays like the inputs."""
        out, start = [], 0
        for a in self.arrays:
            count = a.size * (2 if a.dtype.kind == "c" else 1)
            part = np.ascontiguousarray(vector[start:start + count])
            out.append((part.view(np.complex128) if a.dtype.kind == "c" else part).reshape(a.shape))
            start += count
        return out

    @property
    def elements(self) -> list[str]:
        return [name + index_text(x, index) + part for name, x in zip(self.names, self.leaves) for index in np.ndindex(tuple(x.shape))
                for part in ((" (real part)", " (imaginary part)") if x.is_complex() else ("",))]

    def shown(self, vector: Array) -> tuple[str, ...]:
        return tuple(f"{name} = {wrap(part)}" for name, part in zip(self.names, self.split(vector)))

    def outputs(self) -> list[Tensor]:
        """The differentiable outputs at the current inputs. Raises LeftOut if there is nothing to differentiate."""
        try:
            every = self.problem.evaluate(self.problem.inputs)
        except Exception as error:  # a function may raise anything outside its domain
            raise PointSkipped(f"it raises {type(error).__name__}") from None
        if [(y.shape, y.dtype, y.requires_grad) for y in every] != self.form:
            raise PointSkipped("its outputs change in shape or dtype")
        found = [every[i] for i in self.problem.places]
        if not all(np.isfinite(y._value).all() for y in found):
            raise PointSkipped("it is not finite")
        return found

    def values(self, vector: Array) -> Array:
        """All outputs at a point, weighted, as one vector of real numbers; NaN where there are none."""
        with self.at(vector):
            try:
                return np.concatenate([np.ravel(as_real(y._value) * as_real(w)) for y, w in zip(self.outputs(), self.weights)])
            except PointSkipped:
                return np.full(sum(as_real(w).size for w in self.weights), np.nan)

    def gradient(self, vector: Array) -> Array:
        """The gradient of the weighted sum at a point. Raises LeftOut where it is not finite."""
        with self.at(vector):
            found = grad(self.outputs(), self.leaves, [wrap(w) for w in self.weights], allow_unused=True)
            rows = [np.zeros_like(a) if g is None else g._value.astype(a.dtype).reshape(a.shape) for g, a in zip(found, self.arrays)]
        out = np.concatenate([np.ravel(as_real(r)) for r in rows])
        if not np.isfinite(out).all():
            raise PointSkipped("its gradient is not finite")
        return out

    def tangent(self, vector: Array, u: Array) -> float:
        """The tangent of the weighted sum at a point along a direction, by a pushforward."""
        parts = {id(x): part for x, part in zip(self.leaves, self.split(u))}
        with self.at(vector):
            found = push_forward(self.problem, {j: parts[id(x)] for j, x in enumerate(self.problem.leaves)})
            return sum(float(np.sum(as_real(t._value.astype(w.dtype)) * as_real(w))) for t, w in zip(found, self.weights) if t is not None)

    def along(self, vector: Array, u: Array) -> tuple[float, float]:
        """The derivative of the weighted sum along a direction, by differences, with a bound of its error."""
        found, bound = differences(lambda t: self.values(vector + t[0] * u), np.zeros(1))
        return float(found.sum()), float(bound.sum())

    def each_output(self, most: int) -> Iterator[str]:
        """Every element of the outputs in turn, by name: while one is yielded, its weight is 1 and all others are 0."""
        weights = self.weights
        with changed(self, "weights", weights):
            for i, y in enumerate(self.problem.outputs):
                for index in np.ndindex(tuple(y.shape)) if y.numel() <= most else ():
                    self.weights = [np.zeros_like(w) for w in weights]
                    self.weights[i][index] = 1
                    yield f"output {self.problem.places[i]}" + index_text(y, index)


def index_text(x: Tensor, index: Sequence[int]) -> str:
    """The index of an element in brackets; "" for a 0-d tensor."""
    return str([int(k) for k in index]) if x.ndim else ""


def as_real(x: Any) -> Array:
    """A complex array as a real one with one more axis."""
    x = np.asarray(x)
    return np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x


def _weights(y: Tensor, rng: np.random.Generator) -> Array:
    """Small whole numbers in the shape of an output."""
    found = rng.integers(1, 8, y.shape).astype(np.float64)
    return np.asarray(found + 1j * rng.integers(1, 8, y.shape) if y.is_complex() else found).astype(y._value.dtype)


class GradcheckError(RuntimeError):
    """A wrong derivative found by `gradcheck` or `gradgradcheck`; the message has both values."""


EXACT = "SymPy's derivatives of the recorded computation, to fifty digits"
NUMERICAL = "finite differences with a bound of their error"


@dataclass(frozen=True)
class GradientMismatch:
    """A wrong derivative: `where` it is, the function's gradient, the reference, and the inputs as text.

    `given` says whether it was found at the given inputs, `exact` whether the reference has fifty digits, `forward` whether it is a tangent,
    `small` whether the default tolerances allow the difference.
    """

    where: str
    analytical: float
    true: float
    point: tuple[str, ...]
    given: bool
    exact: bool
    forward: bool = False
    small: bool = False

    def __str__(self) -> str:
        kind = "Jacobian computed with forward mode mismatch" if self.forward else "Jacobian mismatch"
        lines = [f"{kind} {'at' if self.given else 'away from'} the given inputs for {self.where},", f"analytical:{self.analytical!r}",
                 f"true:{self.true!r} ({EXACT if self.exact else NUMERICAL})", ""]
        if self.given and self.small:
            lines += ["The difference is within the tolerances, where finite differences see nothing. If it is meant to be allowed, give a",
                      "larger atol or rtol, or `attack=False`."]
        elif not self.given:
            lines += ["The function passes at the inputs it was given, and is wrong with these:", *(f"  {text}" for text in self.point),
                      "If it is made for the given inputs alone, give `attack=False`."]
        return "\n".join(lines)


@dataclass(repr=False)
class GradientAttack(BaseReport):
    """The result of the search besides the finite differences at the given inputs.

    `attacked` counts the points where derivatives were compared (the given one among them), `exact` those where the reference has
    fifty digits. `left_out` counts other points by reason; `reason` says why no point was checked. `ulp` is
    the largest error of a float of the gradient in units in the last place, `where` names the float, and `condition` is the condition of
    the point. `failure` is the wrong derivative, None if there is none.
    """

    order: int
    attacked: int = 0
    exact: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    reason: str = ""
    ulp: float | None = None
    where: str = ""
    condition: float = 1.0
    failure: GradientMismatch | None = None
    seed: int = 0
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """ "failed" where a derivative is wrong, else "passed"."""
        return "failed" if self.failure else "passed"

    @property
    def truth(self) -> str:
        parts = [f"{EXACT} ({self.exact} points)"] * (self.exact > 0) + [f"{NUMERICAL} ({self.attacked - self.exact})"] * (self.attacked > self.exact)
        return ", ".join(parts)

    @property
    def headline(self) -> str:
        """The first line: what ran, and its verdict."""
        return f"{'gradcheck' if self.order == 1 else 'gradgradcheck'}: {self.verdict}"

    def outline(self) -> Iterator[Part]:
        """The parts of the report, in order."""
        yield Line("central differences at the given inputs, within atol and rtol")
        if self.reason:
            yield Line(f"not attacked at other inputs: {self.reason}")
        if self.attacked:
            yield Line(f"attacked at {self.attacked} points, order {self.order}, against {self.truth}; seed {self.seed}")
        if self.left_out:
            yield Line("left out: " + ", ".join(f"{count} where {why}" for why, count in sorted(self.left_out.items())))
        if self.ulp is not None:
            of = f", by {self.where}" + (f", at a point of condition {self.condition:.3g}" if self.condition > 2 else "") if self.ulp else ""
            yield Line(f"largest error of a float {ulp_text(self.ulp)} ULP{of}")
        if self.failure is not None:
            yield Line(str(self.failure))

    def __repr__(self) -> str:
        return f"<GradientAttack: {self.verdict} at {self.attacked} points>"
