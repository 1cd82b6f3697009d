"""The subject of a check: a function, the arguments by which it is differentiated, a run of it at a point, and the states of generators."""

from __future__ import annotations

import contextlib
import io
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.algebra.limits import calling
from symgrad.autograd.modes import enable_grad
from symgrad.engine.graph_breaks import graph_mismatch, observing
from symgrad.engine.tensor import Tensor, wrap
from symgrad.errors import FREED
from symgrad.factories.creation import tensor
from symgrad.factories.generators import fork_rng, manual_seed
from symgrad.frameworks.calling import BoundCall, call_of, flat_names, parts_of
from symgrad.frameworks.calling import NotCheckable as NotCheckable
from symgrad.frameworks.naming import name_of
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf
from symgrad.graph.order import upstream
from symgrad.reference.run import Run
from symgrad.system.restoring import states_restored

Point = Sequence[np.ndarray]


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Suppress the output and the warnings of a repeated run of the user's function."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


class DifferentiationTask:
    """A function with its arguments, of which the real ones are the inputs to differentiate by.

    Floats, lists of numbers, float arrays and tensors are inputs. A given int is a real number too, unless the parameter is annotated
    `int` or has an int for its default. Everything else is a constant. `wrt` limits the inputs to some names.

    Raises TypeError for inputs the function does not take, NotCheckable where none of them is real.
    """

    def __init__(self, function: Callable[..., Any] | BoundCall, given: Sequence[Any] | Mapping[str, Any] = (), wrt: Sequence[str] | None = None,
                 name: str | None = None):
        self.bound = function if isinstance(function, BoundCall) else call_of(function, name or name_of(function), given, wrt, own=True)
        self.function, self.name = self.bound.function, self.bound.name
        self.inputs: Any = self.bound.inputs  # whose values are known

    @property
    def point(self) -> list[np.ndarray]:
        return [i.value for i in self.inputs]

    @property
    def names(self) -> list[str]:
        """The names of all input elements in formulas, in order."""
        return flat_names(self.bound.names, [i.value.shape for i in self.inputs])

    def call(self, *inputs: Any) -> Any:
        return self.bound(inputs)

    def run(self, point: Point, named: bool = False) -> Run:
        """Call the function at a point. Its exceptions propagate; NotCheckable is raised if its result has no derivative."""
        leaves = [tensor(value.copy(), dtype=value.dtype, requires_grad=True, symbol=i.name if named else None)
                  for i, value in zip(self.inputs, point)]
        with calling(), observing() as escapes, enable_grad():
            return Run(leaves, *scalar_of(self.call(*leaves), self.name), escapes)

    def graph_mismatch(self, run: Run) -> str | None:
        """The difference between the graph of a named run and the function around its point; None if there is none."""
        with silence():
            return graph_mismatch(run, lambda point: self.run(point, named=True))


def real_parts(result: Any, name: str) -> list[Tensor]:
    """The tensors in a result that were computed from the inputs. Raises NotCheckable if there is none, or a complex one."""
    parts = [t for t in parts_of(result) if isinstance(t, Tensor) and t.requires_grad]
    if not parts:
        kind = type(result).__name__
        raise NotCheckable(f"the result of {name} does not depend on the inputs through operations that have a derivative (it is of type {kind}); "
                           f"compute it with symgrad's functions, and without item(), float() or numpy()")
    if any(t.is_complex() for t in parts):
        raise NotCheckable(f"the result of {name} is complex; check its real and imaginary part")
    return parts


def scalar_of(result: Any, name: str) -> tuple[Tensor, tuple[int, ...] | None]:
    """A result as one number, and its shape if it had one: an array is weighted by 1, 2, 3, ... and summed."""
    parts = real_parts(result, name)
    if len(parts) == 1 and parts[0].numel() == 1:
        return parts[0].reshape(()) if parts[0].ndim else parts[0], None
    total: Any = 0
    count = 0
    for t in parts:
        weights = np.arange(count + 1, count + t.numel() + 1, dtype=t.value.dtype).reshape(t.shape)
        total = total + (t * tensor(weights)).sum()
        count += t.numel()
    return total, (tuple(parts[0].shape) if len(parts) == 1 else (count,))


def run_of(loss: Tensor, inputs: Any, caller: str, only_leaves: bool = False) -> Run:
    """A recorded result as a run, with `inputs` or all its leaves.

    Raises TypeError for a tensor without a graph and for inputs that are no tensors, or no leaves where `only_leaves` will do; RuntimeError for
    a graph that was freed.
    """
    if loss._node is None or not loss.requires_grad:
        raise TypeError(f"{caller}: the tensor was not computed from a leaf that requires grad, so that there is no graph to look at; give the "
                        f"function and its inputs")
    nodes = upstream([loss._node])
    if any(node.args is None for node in nodes if not isinstance(node, (Leaf, DerivativeNode))):
        raise RuntimeError(f"{caller}: {FREED} Or give the function and its inputs.")
    found = [wrap(n.value, n) if n.reference() is None else n.variable for n in nodes if isinstance(n, Leaf) and n.requires_grad]
    leaves: Any = [t for t in found if t is not None]
    if inputs is not None:
        leaves = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not leaves or any(not isinstance(t, Tensor) or only_leaves and not isinstance(t._node, Leaf) for t in leaves):
        raise TypeError(f"{caller}: inputs must be leaves that require grad, from which the tensor was computed")
    return Run(leaves, *scalar_of(loss, "the loss"))


@contextlib.contextmanager
def generators_restored() -> Iterator[None]:
    """Restore the states of all generators at the end: of Python, NumPy, symgrad and, where it is loaded, torch."""
    torch = sys.modules.get("torch")
    of_torch = [] if torch is None else [(torch.random.get_rng_state, torch.random.set_rng_state)]
    with states_restored((random.getstate, random.setstate), (np.random.get_state, np.random.set_state), *of_torch), fork_rng():
        yield


def seed_generators(seed: int = 0) -> None:
    """Give every generator a seed."""
    random.seed(seed)
    np.random.seed(seed)
    manual_seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
