"""Implicit differentiation: derivatives of a solution from the equation that it solves, independent of the solver.

For F(x, θ) = 0 the implicit function theorem gives ∂x/∂θ = -(∂F/∂x)⁻¹ ∂F/∂θ. A pullback is one linear solve with the transposed Jacobian, a
pushforward one with the Jacobian. Both are roots of linear equations, so they are differentiated in the same way, to any order, with the same
factored matrix.

Blondel et al., Efficient and Modular Implicit Differentiation, NeurIPS 2022.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched, batch, new_level, unbatch
from symgrad.engine.data import as_value
from symgrad.engine.graph_breaks import CONSTANTS
from symgrad.engine.replay import push
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.calling import own_name
from symgrad.func.checkpointing import replace_known_nodes
from symgrad.func.evaluation import function_name, recording
from symgrad.func.rules import (
    NoRuleFormula,
    Rule,
    Some,
    Tensors,
    attach_node,
    check_unwritten,
    close_inputs,
    fresh_input,
    in_vmap_levels,
    nodes_before,
    pull_back,
    rule_op,
    tensor_at,
    transpose_linear,
)
from symgrad.func.transforms import grad as gradient
from symgrad.graph.modes import DEFAULT, in_mode, thread
from symgrad.graph.node import TRACKED, next_sequence
from symgrad.trees import flatten, tree_map

Residual = Callable[[Tensors, Tensors], Sequence[Tensor]]  # of the unknowns and the parameters
OP = rule_op("ImplicitRoot", reads_result=True)
NO_FORMULA = ("implicit differentiation: a solution found by a solver has no formula and no Taylor series, only derivatives; nest grad, jvp or "
              "hessian for higher ones")


class _Root(Rule):
    """A solution of F(x, θ) = 0: the residual, and the linear system whose matrix is its Jacobian in x, or with `transposed` the transpose."""

    def __init__(self, residual: Residual, solution: Tensors, system: Any, transposed: bool = False):
        self.residual, self.solution, self.transposed = residual, solution, transposed
        self.system = _System(self, system) if callable(system) or isinstance(system, str) else system

    def attach(self, tensors: Tensors, accept: Callable[[Sequence[Tensor]], None] = lambda found: None) -> Tensors:
        """The solution at its node, if `accept` does not raise for its residual; tensors captured by the residual are arguments of the node."""
        self.since = since = next_sequence()
        with recording(thread.modes.grad):
            found = self.residual(self.solution, [wrap(t._value) for t in tensors])
        accept(found)
        self.captured = tuple(nodes_before(found, since))
        given = [*tensors, *map(tensor_at, self.captured)]
        self.values = tuple(t._value for t in given)
        return attach_node(OP, self, given, self.solution)

    def record_residual(self, xs: Tensors, tensors: Tensors) -> tuple[Sequence[Tensor], list[Tensor]]:
        """The residual, recorded from fresh input nodes of the unknowns and of all other tensors; and these inputs."""
        gates = [fresh_input(t) for t in (*xs, *tensors)]
        since, explicit = next_sequence(), len(gates) - len(self.captured)
        with recording(True):
            found = self.residual(gates[:len(xs)], gates[len(xs):explicit])
        replace_known_nodes(found, [*self.captured, *(g._node for g in gates)], [*gates[explicit:], *gates], since)  # type: ignore[list-item]
        return found, gates

    def evaluate(self, tensors: Tensors) -> Tensors:
        raise NoRuleFormula(NO_FORMULA)

    def check_outputs(self, outputs: Tensors) -> None:
        """Raise an error if there are no Tensor outputs, or if the solution was written in place."""
        if not outputs:
            raise NoRuleFormula(NO_FORMULA)
        check_unwritten([wrap(y._value) for y in outputs], self.since)

    def pullback(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        self.check_outputs(outputs)
        gs = [wrap(np.zeros_like(x._value)) if g is None else g for g, x in zip(cotangents, outputs)]
        us = self.linear(True, outputs, tensors, gs)
        found, gates = self.record_residual(outputs, tensors)
        out = pull_back(found, [g if need is not None else None for g, need in zip(gates[len(outputs):], needs)], us, True)
        close_inputs(gates)
        return out

    def pushforward(self, tensors: Tensors, outputs: Tensors, tangents: Some) -> Some:
        self.check_outputs(outputs)
        found, gates = self.record_residual(outputs, tensors)
        moved = _push_forward(found, gates[len(outputs):], tangents)
        close_inputs(gates)
        return self.linear(False, outputs, tensors, [wrap(np.zeros_like(x._value)) if b is None else b for b, x in zip(moved, outputs)])

    def linear(self, transpose: bool, xs: Tensors, tensors: Tensors, right: Tensors) -> Tensors:
        """The solution u of J u + right = 0, with the Jacobian J of the residual in the unknowns, or its transpose; differentiably."""
        flipped = transpose != self.transposed
        values = [wrap(v) for v in self.system.solve([-b._value for b in right], flipped)]
        if not thread.modes.grad:
            return values
        count = len(xs)

        def residual(us: Tensors, given: Tensors) -> Sequence[Tensor]:
            found, gates = self.record_residual(given[:count], given[count:-count])
            with recording(True):
                moved = pull_back(found, gates[:count], us, True) if transpose else _push_forward(found, gates[:count], us)
                close_inputs(gates)
                return [b if c is None else c + b for c, b in zip(moved, given[-count:])]

        return _Root(residual, values, self.system, flipped).attach([*xs, *tensors, *right])


def _push_forward(found: Sequence[Tensor], gates: Tensors, tangents: Some) -> Some:
    """The tangents of the outputs of a recording from those of its inputs."""
    try:
        return push(found, {g._node: t for g, t in zip(gates, tangents) if t is not None and g._node is not None}, thread.modes.grad)
    except NotImplementedError:  # the recording has a function without a pushforward
        kept = [g if t is not None else None for g, t in zip(gates, tangents)]
        return transpose_linear(lambda us: pull_back(found, kept, us, True), found, tangents)


class _System:
    """The Jacobian of a residual by its unknowns at the solution, as a linear system that is computed on first use."""

    def __init__(self, root: _Root, method: Any):
        self.root, self.method = root, method

    @functools.cached_property
    def recording(self) -> tuple[Sequence[Tensor], list[Tensor]]:
        root = self.root
        with recording(True, True):
            return root.record_residual(root.solution, [wrap(v) for v in root.values])

    def solve(self, right: Sequence[Any], transpose: bool) -> list[Any]:
        """The solution for right-hand sides, one for each unknown and each member of a batch."""
        levels: dict[int, int] = {}
        for value in right:
            while type(value) is Batched:
                levels[value.level] = value.count
                value = value.data
        for level, count in levels.items():
            right = [unbatch(v, 0, level, count) for v in right]
        lead = tuple(reversed(levels.values()))
        rows = np.concatenate([np.reshape(v, (*lead, -1)) for v in right], -1).astype(np.float64)
        found = self.solve_rows(rows.reshape(math.prod(lead), rows.shape[-1]), transpose).reshape(rows.shape)
        parts = np.split(found, np.cumsum([x.numel() for x in self.root.solution])[:-1], -1)
        out: list[Any] = [part.reshape((*lead, *x.shape)).astype(x._value.dtype)[()] for part, x in zip(parts, self.root.solution)]
        for level in reversed(levels):
            out = [batch(v, 0, level) for v in out]
        return out

    def solve_rows(self, rows: np.ndarray, transpose: bool) -> np.ndarray:
        if not rows.shape[-1]:
            return rows
        if self.method == "dense":
            from scipy.linalg import lu_solve

            return lu_solve(self.factors, rows.T, trans=int(transpose)).T
        return np.stack([self.solve_iteratively(row, transpose) for row in rows]) if len(rows) else rows

    @functools.cached_property
    def factors(self) -> Any:
        """The Jacobian's LU factors.

        Raises RuntimeError if it is singular to working precision.
        """
        from scipy.linalg import lapack

        found, gates = self.recording
        count, n = len(self.root.solution), sum(x.numel() for x in self.root.solution)
        level, at, units = new_level(), 0, []
        for x in self.root.solution:
            units.append(wrap(Batched(np.eye(n, x.numel(), -at).reshape((n, *x.shape)), level)))
            at += x.numel()
        with recording(False, True):
            rows = pull_back(found, gates[:count], units, True)
        jacobian = np.concatenate([np.zeros((n, x.numel())) if r is None else np.reshape(unbatch(r._value, 0, level, n), (n, -1))
                                   for r, x in zip(rows, self.root.solution)], 1)
        if not np.isfinite(jacobian).all():
            raise RuntimeError("implicit differentiation: the Jacobian of the residual in the unknowns is not finite at the solution, so that the "
                               "solution has no derivative there")
        lu, pivots, _ = lapack.dgetrf(jacobian)
        rcond = lapack.dgecon(lu, np.abs(jacobian).sum(0).max(initial=0.0))[0] if n else 1.0
        if not rcond > np.finfo(np.float64).eps:
            raise RuntimeError(f"implicit differentiation: the Jacobian of the residual in the unknowns is singular at the solution (reciprocal "
                               f"condition {rcond:.0e}), so that the solution has no derivative there; a solution that is not isolated needs "
                               f"another equation")
        return lu, pivots

    def solve_iteratively(self, row: np.ndarray, transpose: bool) -> np.ndarray:
        """One iterative solve, by products with the Jacobian."""
        from scipy.sparse.linalg import LinearOperator, cg, gmres

        found, gates = self.recording
        unknowns = self.root.solution
        ends = np.cumsum([x.numel() for x in unknowns])[:-1]

        def product(v: np.ndarray) -> np.ndarray:
            split = np.split(np.asarray(v, np.float64).ravel(), ends)
            parts = [wrap(part.reshape(x.shape).astype(x._value.dtype)) for part, x in zip(split, unknowns)]
            with recording(False, True):
                moved = (functools.partial(pull_back, retain=True) if transpose else _push_forward)(found, gates[:len(unknowns)], parts)
            return np.concatenate([np.zeros(x.numel()) if c is None else np.ravel(c._value) for c, x in zip(moved, unknowns)])

        if callable(self.method):
            return np.asarray(self.method(product, row), np.float64).reshape(row.shape)
        operator = LinearOperator((row.size, row.size), matvec=product, dtype=np.float64)
        solve = cg if self.method == "cg" else gmres
        with np.errstate(all="ignore"):  # a breakdown is detected by the residual
            out, _ = solve(operator, row, rtol=1e-13, atol=0.0)
        residual = np.linalg.norm(product(out) - row) / max(np.linalg.norm(row), np.finfo(float).tiny)
        if not residual <= 1e-8:
            raise RuntimeError(f"implicit differentiation: {self.method} did not solve the linear system (relative residual {residual:.0e}); cg "
                               f"needs a symmetric positive definite Jacobian; use solve='gmres' or 'dense', or your own solver")
        return out


# The public functions


class _Solution:
    """The solution of an equation as a function of its parameters."""

    def __init__(self, caller: str, residual: Callable[..., Any], solver: Callable[..., Any], solve: Any, tolerance: float | None):
        if not callable(residual) or not callable(solver):
            raise TypeError(f"{caller}: the {'solver' if callable(residual) else 'first argument'} must be a function")
        if not (callable(solve) or solve in ("dense", "cg", "gmres")):
            raise ValueError(f"{caller}: solve must be 'dense', 'cg', 'gmres' or a function of (matvec, b), not {solve!r}")
        functools.update_wrapper(self, solver, updated=())
        self.caller, self.residual, self.solver, self.solve, self.tolerance = caller, residual, solver, solve, tolerance

    def __reduce_ex__(self, protocol: Any) -> Any:
        return own_name(self) or super().__reduce_ex__(protocol)

    def __call__(self, *params: Any, **options: Any) -> Any:
        leaves, form = flatten(params)
        if thread.modes.batches and any(isinstance(x, Tensor) and type(x._value) is Batched for x in leaves):
            return self._each(leaves, form, options)
        with in_vmap_levels(()):  # unbatched: all members share the solution
            return self._solved(leaves, form, options)

    def _solved(self, leaves: list[Any], form: Any, options: dict[str, Any]) -> Any:
        places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x._value.dtype.kind in "fcV"]
        if any(leaves[i]._value.dtype.kind == "c" for i in places):
            raise TypeError(f"{self.caller}: a parameter is complex; give its real and imaginary parts")
        plain = [wrap(x._value) if isinstance(x, Tensor) else x for x in leaves]
        with in_mode(grad=True, recorder=DEFAULT, rule=CONSTANTS):  # the solution is differentiated by its equation
            found = self.solver(*form.unflatten(plain), **options)
        solution, shape = self._solution(found)

        def residual(xs: Tensors, tensors: Tensors) -> Sequence[Tensor]:
            given = list(plain)
            for i, t in zip(places, tensors):
                given[i] = t
            return self._flat(self.residual(shape.unflatten(xs), *form.unflatten(given)), shape, solution)

        root = _Root(residual, solution, self.solve)
        return shape.unflatten(root.attach([leaves[i] for i in places], self._accept))

    def _solution(self, found: Any) -> tuple[list[Tensor], Any]:
        """The result of the solver as tensors without a graph."""
        leaves, shape = flatten(found)
        out = []
        for x in leaves:
            if isinstance(x, Tensor) and x._node is not None and x._node.flags & TRACKED:
                raise RuntimeError(f"{self.caller}: the solver {function_name(self.solver)} returned a tensor that is tracked in a graph; the "
                                   f"solution is differentiated by its equation, not through the solver: return x.detach()")
            if not isinstance(x, (Tensor, np.ndarray, np.generic, float, int)):
                hint = ", whose x is the solution" if hasattr(x, "x") else ""
                raise TypeError(f"{self.caller}: the solver {function_name(self.solver)} must return tensors, arrays or numbers, not "
                                f"{type(x).__name__}{hint}")
            value = as_value(float(x) if type(x) is int else x)
            if value.dtype.kind not in "f":
                raise TypeError(f"{self.caller}: the solver {function_name(self.solver)} must return real floating-point values, not {value.dtype}")
            out.append(wrap(value))
        return out, shape

    def _flat(self, found: Any, shape: Any, solution: Tensors) -> list[Tensor]:
        leaves, its = flatten(found)
        leaves = [f if isinstance(f, Tensor) else wrap(as_value(f)) for f in leaves]
        shapes, wanted = [list(f.shape) for f in leaves], [list(x.shape) for x in solution]
        if shapes != wanted:
            raise RuntimeError(f"{self.caller}: the residual must have the shapes of the solution, for as many equations as unknowns: it has "
                               f"{shapes}, and the solution {wanted}")
        return leaves

    def _accept(self, found: Sequence[Tensor]) -> None:
        size = max((float(np.max(np.abs(f._value), initial=0.0)) for f in found), default=0.0)
        if self.tolerance is not None and not size <= self.tolerance:
            raise RuntimeError(f"{self.caller}: the residual is not zero at the result of the solver {function_name(self.solver)}: its largest "
                               f"element is {size:.3g}, above tolerance={self.tolerance:g}; solve more exactly, or raise the tolerance (None: no "
                               "check)")

    def _each(self, leaves: list[Any], form: Any, options: dict[str, Any]) -> Any:
        """The solutions for the members of a batch, one after the other."""
        *before, (level, count, _) = thread.modes.batches
        with in_mode(batches=tuple(before)):
            spread = [traced.unbatch(x, 0, level, count) if isinstance(x, Tensor) and type(x._value) is Batched else x for x in leaves]
            found = [self(*form.unflatten([s[i] if s is not x else x for s, x in zip(spread, leaves)]), **options) for i in range(count)]
        return tree_map(lambda *xs: traced.batch(traced.stack(xs), 0, level), *found)


def implicit_root(residual: Callable[..., Any], solver: Callable[..., Any], *, solve: Any = "dense", tolerance: float | None = 1e-4,
                  ) -> Callable[..., Any]:
    """The solution x(θ) of F(x, θ) = 0 as a function of θ, differentiated by the implicit function theorem: ∂x/∂θ = -(∂F/∂x)⁻¹ ∂F/∂θ.

    `residual(x, *params)` is F, of the shapes of x. `solver(*params, **options)` finds x by any method, such as NumPy's or SciPy's: it is called with
    detached tensors, is not differentiated, and returns a tensor, an array, a number or a tree of them. The result
    is called like the solver: `x = solution(*params, **options)`. Derivatives of x by the parameters, and by tensors captured by the residual,
    are exact at x to every order and in both modes. `solve` selects the solver of linear systems with ∂F/∂x: "dense" factors the
    matrix once; "cg" (symmetric positive definite) and "gmres" only multiply with it; or a function `solve(matvec, b)` of arrays. `tolerance`
    bounds the largest element of F at x; None means no check.

    Raises RuntimeError if F is not zero at x or has another shape than x, if its Jacobian is singular when a derivative is computed, if the
    solver returned a tracked tensor, or if a linear solver failed; TypeError for complex values. Blondel et al., NeurIPS 2022.

    >>> import symgrad
    >>> from symgrad.func import grad, implicit_root
    >>> root = implicit_root(lambda x, a: x**2 - a, lambda a: float(a) ** 0.5)
    >>> root(symgrad.tensor(4.0)), grad(root)(4.0), grad(grad(root))(4.0)
    (tensor(2.), tensor(0.2500), tensor(-0.0312))
    """
    return _Solution("implicit_root", residual, solver, solve, tolerance)


def implicit_argmin(objective: Callable[..., Any], solver: Callable[..., Any], *, solve: Any = "dense", tolerance: float | None = 1e-4,
                    ) -> Callable[..., Any]:
    """The minimiser x(θ) of f(x, θ) as a function of θ: the root of ∂f/∂x, with the derivative -(∂²f/∂x²)⁻¹ ∂²f/∂x∂θ.

    `objective(x, *params)` is f, a scalar; a maximiser or a saddle is differentiated as well. The rest is as in `implicit_root`, and
    `tolerance` bounds the largest element of the gradient at x.

    Raises what `implicit_root` raises.

    >>> import symgrad
    >>> from symgrad.func import grad, implicit_argmin
    >>> argmin = implicit_argmin(lambda x, a: (x - a.sin())**2, lambda a: a.sin())
    >>> grad(argmin)(0.0)
    tensor(1.)
    """
    if not callable(objective):
        raise TypeError("implicit_argmin: the first argument must be a function")
    return _Solution("implicit_argmin", gradient(objective), solver, solve, tolerance)


def implicit_fixed_point(step: Callable[..., Any], solver: Callable[..., Any], *, solve: Any = "dense", tolerance: float | None = 1e-4,
                         ) -> Callable[..., Any]:
    """The fixed point x(θ) = T(x, θ) as a function of θ, with the derivative (1 - ∂T/∂x)⁻¹ ∂T/∂θ.

    `step(x, *params)` is T, of the form of x. The rest is as in `implicit_root`, and `tolerance` bounds the largest element of T(x, θ) - x.

    Raises what `implicit_root` raises.

    >>> import symgrad
    >>> from symgrad.func import grad, implicit_fixed_point
    >>> def iterate(a):
    ...     x = a
    ...     for _ in range(60):
    ...         x = (x + a / x) / 2
    ...     return x
    >>> grad(implicit_fixed_point(lambda x, a: (x + a / x) / 2, iterate))(4.0)
    tensor(0.2500)
    """
    if not callable(step):
        raise TypeError("implicit_fixed_point: the first argument must be a function")
    return _Solution("implicit_fixed_point", functools.partial(_change, step), solver, solve, tolerance)


def _change(step: Callable[..., Any], x: Any, *params: Any) -> Any:
    """T(x, θ) - x."""
    return tree_map(lambda new, old: new - old, step(x, *params), x)
