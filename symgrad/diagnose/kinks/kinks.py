"""`kinks`: the ops of a computation that are at a kink or a tie, and whether the returned gradient is a generalized gradient there."""

from __future__ import annotations

from typing import Any

from symgrad.diagnose.kinks.kink import KinkReport
from symgrad.diagnose.kinks.report import report_of_function, report_of_run, report_of_tensor
from symgrad.diagnose.kinks.switches import switches
from symgrad.engine.tensor import Tensor
from symgrad.frameworks.examples import as_inputs
from symgrad.graph.order import upstream

__all__ = ["kinks", "note"]


def kinks(loss: Any, *, distance: float = 1e-12, inputs: Any = None, seconds: float = 5.0, seed: int = 0) -> KinkReport:
    """List every op that was evaluated at a kink or a tie, and say whether the gradient is in the Clarke subdifferential.

    The Clarke subdifferential of f at x is the convex hull of the limits of ∇f(xₖ), xₖ → x; where f is differentiable nearby it is the gradient
    alone. Automatic differentiation applies a convention to each op at a kink, so that the gradient of f may be outside this set:
    relu(x) - relu(-x) is x, but its derivative at 0 is computed as 0.

    `loss` is the result of a recorded computation (its graph must not have been freed by a backward), with `inputs` the leaves to
    differentiate by, all of them by default; or a function, with its `inputs` as a sequence or by name (a single number or tensor
    needs no sequence). The report of a function also has lines, conditions of `where`, branches and the selections of a sort, which are fixed
    in a recorded graph. Ops are listed whose switch (the argument of abs, the difference of tied elements, ...) is within `distance` of zero
    in floats; only those at zero affect the verdict. A result that is an array is weighted by 1, 2, 3, ... and summed.

    Raises TypeError for something that is neither, or inputs the function does not take, RuntimeError for a graph that was freed.

    >>> import symgrad
    >>> x = symgrad.tensor(0.0, requires_grad=True)
    >>> report = symgrad.kinks(x.relu() - (-x).relu())
    >>> report.verdict, report.returned, report.gradients
    ('outside', array([0.]), [array([1.])])
    >>> symgrad.kinks(lambda x: abs(x), inputs=0.0).interval
    (-1.0, 1.0)

    F. H. Clarke, Optimization and Nonsmooth Analysis (1983), 10.1137/1.9781611971309; S. M. Kakade and J. D. Lee, Provably correct automatic
    subdifferentiation for qualified programs (2018).
    """
    if not distance >= 0:
        raise ValueError(f"kinks: distance must be a number of at least 0, not {distance!r}")
    if isinstance(loss, Tensor):
        return report_of_tensor(loss, inputs, distance, seconds, seed)
    if not callable(loss):
        raise TypeError(f"kinks needs a tensor that was computed from others, or a function and its inputs, not {type(loss).__name__}")
    return report_of_function(loss, as_inputs(inputs), distance, seconds, seed)


def note(run: Any, distance: float = 0.0) -> str | None:
    """One line for a check's notes: that the point of a run is at a kink, and whether the returned gradient is a subgradient. None if it is not."""
    if not any(True for node in upstream([run.root]) for _ in switches(node, distance)):
        return None
    found = report_of_run("f", run, distance, 1.0, 0)
    if not found.kinks:
        return None
    ops = list(dict.fromkeys(k.op for k in found.kinks))
    where = f"the given point is at a kink of {', '.join(ops[:4])}{', ...' if len(ops) > 4 else ''}"
    return f"{where}: {found.reason}"
