"""Operators of vector calculus, each by one pass over the recorded function: Laplacians, divergences and curls.

A Laplacian is not computed from a Hessian. Every node of the graph has its value, the D first derivatives along D directions, and the sum over the
directions of the second derivatives: 1 + D + 1 vectors in place of the 1 + 2D of separate second derivatives.

Source: F. Dangel, T. Siebert, M. Zeinhofer and A. Walther, Collapsing Taylor Mode Automatic Differentiation, 2025.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, new_level
from symgrad.carriers.guarding import has_nan
from symgrad.engine.data import as_value
from symgrad.engine.replay import pushforward
from symgrad.engine.saved import read_traced
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.calling import transform
from symgrad.func.collapsed import CollapsedProgram, sums_of_second_derivatives
from symgrad.func.evaluation import Evaluation, check_argnums, evaluate, function_name, unshared_results
from symgrad.func.transforms import as_result
from symgrad.graph.modes import in_mode, thread
from symgrad.program import passes
from symgrad.program.cache import programs, signature_of
from symgrad.trees import flatten

Function = Callable[..., Any]
Dim = int | Sequence[int] | None


# Directions


def _coordinate_axes(x: Tensor, dim: Dim, caller: str) -> tuple[int, ...]:
    """The coordinate axes of an argument; all axes if `dim` is None."""
    ndim = x._value.ndim
    if dim is None:
        return tuple(range(ndim))
    given = (dim,) if isinstance(dim, (int, np.integer)) and not isinstance(dim, bool) else dim
    if not isinstance(given, (tuple, list)) or not all(isinstance(d, (int, np.integer)) and not isinstance(d, bool) for d in given):
        raise TypeError(f"{caller}: dim must be None, an int or a tuple of ints, not {dim!r}")
    for d in given:
        if not -ndim <= d < ndim:
            raise IndexError(f"{caller}: dim={dim!r} is out of range for an argument of shape {list(x.shape)}")
    axes = tuple(sorted(d % ndim for d in given))
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"{caller}: dim={dim!r} names an axis twice")
    return axes


def _unit_directions(ev: Evaluation, axes: Sequence[tuple[int, ...]]) -> tuple[list[Batched], list[int]]:
    """A unit vector for each coordinate of the inputs, of length 1 along the other axes; and the index of each input's first vector."""
    sizes = [math.prod(x._value.shape[a] for a in along) for x, along in zip(ev.inputs, axes)]
    starts, total, level, out = [0], sum(sizes), new_level(), []
    for x, along, size in zip(ev.inputs, axes, sizes):
        value = x._value
        shape = tuple(n if a in along else 1 for a, n in enumerate(value.shape))
        rows = np.eye(total, size, -starts[-1], value.dtype)
        out.append(Batched(rows.reshape((total, *shape)), level, 0 if shape[-1:] == (total,) else None))
        starts.append(starts[-1] + size)
    return out, starts


def _check_directions(ev: Evaluation, directions: Any, weights: Any, caller: str) -> tuple[list[Tensor], Tensor | None]:
    """The user's directions, batched along their leading axis, and the weights."""
    leaves, form = flatten(directions)
    if form != ev.form:
        raise RuntimeError(f"{caller}: directions has the form {form!r}, but the arguments have the form {ev.form!r}; give one tensor for each")
    out, count = [], None
    for leaf, x in zip(leaves, ev.inputs):
        v = leaf if isinstance(leaf, Tensor) else wrap(as_value(leaf, x.dtype))
        shape = tuple(x.shape)
        if v.ndim != len(shape) + 1 or any(m not in (1, n) for m, n in zip(v.shape[1:], shape)) or count not in (None, v.shape[0]):
            raise RuntimeError(f"{caller}: directions has a tensor of shape {list(v.shape)} for an argument of shape {list(shape)}; it must have "
                               f"that shape, or 1 for its sizes, behind one axis more that counts the directions")
        count = v.shape[0]
        out.append(v if v._value.dtype == x._value.dtype else v.to(x.dtype))
    if weights is None:
        return out, None
    w = weights if isinstance(weights, Tensor) else wrap(as_value(weights, ev.inputs[0].dtype))
    if tuple(w.shape) != (count,):
        raise RuntimeError(f"{caller}: weights has shape {list(w.shape)}, but there are {count} directions; give one number for each")
    return out, w


# Laplacians


@transform
def value_and_laplacian(func: Function, argnums: Any = 0, *, dim: Dim = None, directions: Any = None, weights: Any = None,
                        has_aux: bool = False) -> Function:
    """The function that computes the value of a function and its Laplacian: (f(x), Σᵢ ∂²f/∂xᵢ²). The arguments are as in `laplacian`.

    With `has_aux` the function returns a pair (value, aux), and the result is ((value, aux), Laplacian).

    Raises RuntimeError for arguments that cannot be differentiated, and for directions or weights that do not fit.

    >>> import symgrad
    >>> symgrad.func.value_and_laplacian(lambda x: x.square().sum())(symgrad.tensor([1.0, 2.0, 3.0]))
    (tensor(14.), tensor(6.))
    """
    return _laplacian(func, argnums, dim, directions, weights, has_aux, "value_and_laplacian")


@transform
def laplacian(func: Function, argnums: Any = 0, *, dim: Dim = None, directions: Any = None, weights: Any = None, has_aux: bool = False) -> Function:
    """The function that computes the Laplacian of a function: Δf = Σᵢ ∂²f/∂xᵢ², of the shape of f(x), by one forward pass.

    The sum is over all elements of the arguments at `argnums`. `dim` gives the coordinate axes of a function that treats points along the other axes
    independently: `laplacian(f, dim=-1)` takes points of shape (points, coordinates), and gives the Laplacian at each. With `dim=()` each argument
    is a coordinate. `directions` replaces the coordinates, Σ_d w_d · vᵈᵀ ∂²f/∂x² vᵈ: tensors in the form of the
    arguments with one leading axis for the directions, and `weights` of that length. The result can be differentiated again. With `has_aux` the
    function returns a pair (value, aux), and the result is (Laplacian, aux).

    Raises RuntimeError for arguments that cannot be differentiated and for directions or weights that do not fit, IndexError for a `dim` out of
    range. F. Dangel et al., Collapsing Taylor Mode Automatic Differentiation, 2025.

    >>> import symgrad
    >>> symgrad.func.laplacian(lambda x: (x**3).sum())(symgrad.tensor([1.0, 2.0]))
    tensor(18.)
    >>> symgrad.func.laplacian(lambda x: (x**3).sum(-1), dim=-1)(symgrad.tensor([[1.0, 2.0], [0.0, 1.0]]))
    tensor([18.,  6.])
    """
    return _laplacian(func, argnums, dim, directions, weights, has_aux, "laplacian")


def _laplacian(func: Function, argnums: Any, dim: Dim, directions: Any, weights: Any, has_aux: bool, caller: str) -> Function:
    check_argnums(argnums, caller)
    if directions is not None and dim is not None:
        raise ValueError(f"{caller}: give dim or directions, not both")
    if weights is not None and directions is None:
        raise ValueError(f"{caller}: weights need directions; give both")

    def transformed(*args: Any, **kwargs: Any) -> Any:
        ev = evaluate(func, args, kwargs, argnums, caller, has_aux)
        if directions is None:
            found = _sums_along_axes(ev, dim, caller)
        else:
            given, w = _check_directions(ev, directions, weights, caller)
            ev = ev.tracked_if_any([*given, *([] if w is None else [w])])
            level, count = new_level(), given[0].shape[0]
            with in_mode(grad=ev.tracked):
                tangents, w = [traced.batch(v, 0, level) for v in given], None if w is None else traced.batch(w, 0, level)
            found = sums_of_second_derivatives(ev, tangents, w, level, count)
        results = [as_result(ev, y, s) for y, s in zip(ev.outputs, found)]
        del found
        result = ev.shape.unflatten(unshared_results(ev, results))
        if caller == "laplacian":
            return (result, ev.detach(ev.aux)) if has_aux else result
        value = ev.returned_output()
        return ((value, ev.detach(ev.aux)) if has_aux else value, result)

    return transformed


def _sums_along_axes(ev: Evaluation, dim: Dim, caller: str) -> list[Any]:
    """The Laplacian of each output: from some use of a signature on by a program."""
    form = None if ev.tracked or thread.modes.program is not None else signature_of(ev.nodes, ev.path, ev.outputs[0]._node)
    places = [ev.path.index(y._node) if y._node in ev.between else -1 for y in ev.outputs[1:]]
    key = CollapsedProgram, repr(dim), form, *[x._value.dtype for x in ev.inputs], *places
    found = None if form is None else programs.get(key)
    if type(found) is CollapsedProgram and not _have_nan(sums := found.run(ev.path)):
        return sums
    units = _unit_directions(ev, [_coordinate_axes(x, dim, caller) for x in ev.inputs])[0]
    level, count = units[0].level, units[0].count
    if found == passes.RECORDING_USE - 1 and passes.fits(ev.path, count):
        program = passes.made(lambda: CollapsedProgram(ev, units))
        programs.put(key, program or False, program.nbytes if program else 0)
        if program and not _have_nan(sums := program.run(ev.path)):
            return sums
    elif form is not None and type(found) is not CollapsedProgram:
        programs.put(key, False if found is False else (found or 0) + 1)
    return sums_of_second_derivatives(ev, [wrap(t) for t in units], None, level, count)


def _have_nan(sums: Sequence[Any]) -> bool:
    """Whether a sum is NaN, for which a guarded pass may find a number."""
    return any([s is not None and has_nan(numeric, s) for s in sums])


# Traces and antisymmetric parts of a Jacobian


def _derivatives_along_units(ev: Evaluation, units: Sequence[Batched]) -> list[Tensor]:
    """The derivatives of every output along the unit vectors, which are the first axis. The caller sets the grad mode."""
    starts: dict[Any, Any] = {}
    for x, node, unit in zip(ev.inputs, ev.nodes, units):
        t: Any = unit if unit.shape == x._value.shape else np.broadcast_to(unit, tuple(x._value.shape))
        starts[node] = wrap(t) if ev.tracked else t
    found = pushforward(ev.xp, (), starts, read_traced if ev.tracked else None, ev.path)
    out = []
    for y in ev.outputs:
        t = found.get(y._node)  # type: ignore[arg-type]
        if t is None:
            t = np.zeros_like(y._value)
        out.append(traced.unbatch(t if isinstance(t, Tensor) else wrap(t), 0, units[0].level, units[0].count))
    return out


def _check_vector_field(ev: Evaluation, func: Function, caller: str) -> None:
    """Raise RuntimeError if the outputs do not have the shapes of the inputs, as those of a vector field do."""
    shapes, wanted = [list(y.shape) for y in ev.outputs], [list(x.shape) for x in ev.inputs]
    if shapes != wanted:
        raise RuntimeError(f"{caller}: {function_name(func)} must return a vector for a point, tensors of the shapes {wanted} of its argument, not "
                           f"{shapes}")


@transform
def divergence(func: Function, argnums: Any = 0, *, dim: Dim = None) -> Function:
    """The function that computes the divergence of a vector field, Σᵢ ∂fᵢ/∂xᵢ: the trace of its Jacobian, by one batched pushforward.

    The function returns as many tensors as it is differentiated by, of the same shapes. `dim` gives the coordinate axes of a field that treats
    points along the other axes independently; the result has the shape of the other axes.

    Raises RuntimeError for a function that returns other shapes, IndexError for a `dim` out of range.

    >>> import symgrad
    >>> symgrad.func.divergence(lambda x: x**2)(symgrad.tensor([1.0, 2.0, 3.0]))
    tensor(12.)
    """
    def transformed(*args: Any, **kwargs: Any) -> Any:
        ev = evaluate(func, args, kwargs, argnums, "divergence")
        _check_vector_field(ev, func, "divergence")
        axes = [_coordinate_axes(x, dim, "divergence") for x in ev.inputs]
        units, starts = _unit_directions(ev, axes)
        with in_mode(grad=ev.tracked):
            out = None
            for t, along, a, b in zip(_derivatives_along_units(ev, units), axes, starts, starts[1:]):
                t = traced.narrow(t, 0, a, b - a)
                t = traced.movedim(t, tuple(d + 1 for d in along), tuple(range(-len(along), 0))) if along else traced.unsqueeze(t, -1)
                t = traced.reshape(t, (*t.shape[:t.ndim - max(len(along), 1)], b - a))
                term = traced.sum(traced.diagonal(t, 0, 0, -1), -1)
                out = term if out is None else out + term
        return unshared_results(ev, [as_result(ev, out, out if ev.tracked else out._value)])[0]  # type: ignore[arg-type, union-attr]

    return transformed


@transform
def curl(func: Function, argnums: Any = 0, *, dim: int = -1) -> Function:
    """The function that computes the curl of a vector field, by one batched pushforward.

    In three dimensions (∂f₂/∂x₁ - ∂f₁/∂x₂, ∂f₀/∂x₂ - ∂f₂/∂x₀, ∂f₁/∂x₀ - ∂f₀/∂x₁), in two the number ∂f₁/∂x₀ - ∂f₀/∂x₁. Coordinates lie along `dim`;
    the field treats points along other axes independently.

    Raises RuntimeError for a function of other dimensions, or that returns another shape, IndexError for a `dim` out of range.

    >>> import symgrad
    >>> symgrad.func.curl(lambda x: symgrad.stack([-x[1], x[0]]))(symgrad.tensor([1.0, 2.0]))
    tensor(2.)
    """
    def transformed(*args: Any, **kwargs: Any) -> Any:
        ev = evaluate(func, args, kwargs, argnums, "curl")
        _check_vector_field(ev, func, "curl")
        if len(ev.inputs) != 1:
            raise RuntimeError(f"curl: the coordinates must lie along an axis of one tensor, not in {len(ev.inputs)} tensors; stack them")
        ((axis,),) = axes = [_coordinate_axes(ev.inputs[0], dim, "curl")]
        n = ev.inputs[0].shape[axis]
        if n not in (2, 3):
            raise RuntimeError(f"curl: a field has a curl in 2 or 3 dimensions, but the argument has {n} coordinates along dim={dim}")
        with in_mode(grad=ev.tracked):
            (t,) = _derivatives_along_units(ev, _unit_directions(ev, axes)[0])

            def turn(i: int, j: int) -> Tensor:
                """∂fⱼ/∂xᵢ - ∂fᵢ/∂xⱼ."""
                return traced.select(traced.select(t, 0, i), axis, j) - traced.select(traced.select(t, 0, j), axis, i)

            out = turn(0, 1) if n == 2 else traced.stack([turn(1, 2), turn(2, 0), turn(0, 1)], axis)
        return unshared_results(ev, [as_result(ev, out, out if ev.tracked else out._value)])[0]

    return transformed
