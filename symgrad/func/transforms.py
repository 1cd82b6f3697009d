"""Transforms with torch.func's names: pullbacks and pushforwards of one recorded graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import run, task_of
from symgrad.autograd.seeds import one
from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, new_level, raw, unbatch
from symgrad.engine.cotangents import in_dtype
from symgrad.engine.data import as_value
from symgrad.engine.passes import pullback
from symgrad.engine.replay import push
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.calling import transform
from symgrad.func.derivative import gradient_node
from symgrad.func.evaluation import Evaluation, check_argnums, evaluate, function_name, recording, scalar_output, unshared_results
from symgrad.func.recorded_series import unobserved
from symgrad.func.rules import in_vmap_levels, merged_levels
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.modes import UNCHANGED, in_mode, thread
from symgrad.trees import Spec, flatten, transpose

Function = Callable[..., Any]


# One pass


def input_cotangents(ev: Evaluation, seeds: Sequence[tuple[Tensor, Any]], retain: bool = False) -> list[Tensor]:
    """The cotangents of the inputs for cotangents of outputs, values or Tensors: Σ gᵢ · ∂yᵢ/∂x."""
    pairs = [(y._node, g if ev.tracked else g._value) for y, g in seeds if y._node in ev.between]
    if len(pairs) == 1 and ev.plain and unobserved(ev.path):
        out = pullback(numeric, pairs, wanted=ev.wanted)
        return [as_result(ev, x, out.get(node)) for x, node in zip(ev.inputs, ev.nodes)]
    with in_vmap_levels(thread.modes.batches, *[g for _, g in seeds]):  # so that the `vmap` rules of Functions are used
        task = task_of(pairs)
        out = run(pairs, frozenset(ev.nodes), ev.between, retain or ev.tracked, ev.tracked, None, task) if pairs else {}
    return [as_result(ev, x, out.get(node)) for x, node in zip(ev.inputs, ev.nodes)]


def output_tangents(ev: Evaluation, tangents: Sequence[Any]) -> list[Tensor]:
    """The tangents of the outputs for tangents of the inputs, None for zero: Σ ∂y/∂xᵢ · tᵢ."""
    starts = {node: t for node, t in zip(ev.nodes, tangents) if t is not None}
    with UNCHANGED if ev.plain else in_mode(grad=ev.tracked, batches=merged_levels(thread.modes.batches, *tangents)):
        found = push([y if y._node in ev.between else wrap(y._value) for y in ev.outputs], starts, ev.tracked)
    if not ev.tracked:
        return [wrap(np.zeros_like(y._value)) if t is None else t for y, t in zip(ev.outputs, found)]
    return [as_result(ev, y, t) for y, t in zip(ev.outputs, found)]


def as_result(ev: Evaluation, like: Tensor, found: Any) -> Tensor:
    """A derivative as a Tensor, zero if it is None; with a `DerivativeNode` if it may be differentiated again."""
    found = np.zeros_like(like._value) if found is None else in_dtype(found, like._value)
    t = found if isinstance(found, Tensor) else wrap(found)
    return wrap(t._value, DerivativeNode(t._value, t._node, ev.joined_inputs)) if ev.tracked else t


def _leaves_like(given: Any, form: Spec, like: Sequence[Tensor], name: str, of: str, caller: str) -> list[Tensor]:
    """The leaves of `given`. Raises RuntimeError unless they have the tree structure and the shapes of the tensors `like`."""
    leaves, its_form = flatten(given)
    if its_form != form:
        raise RuntimeError(f"{caller}: {name} has the form {its_form!r}, but {of} has the form {form!r}; give one tensor for each")
    out = []
    for leaf, x in zip(leaves, like):
        v = leaf if isinstance(leaf, Tensor) else wrap(as_value(leaf, x.dtype))
        if v.shape != x.shape:
            raise RuntimeError(f"{caller}: {name} has a tensor of shape {list(v.shape)} for one of shape {list(x.shape)} in {of}")
        out.append(v if v._value.dtype == x._value.dtype else v.to(x.dtype))
    return out


# Gradients


def _gradient(ev: Evaluation, y: Tensor) -> list[Tensor]:
    """The gradient of a scalar by the inputs; as a `Derivative` node if the results are tracked and the graph allows it."""
    found = gradient_node(ev, y) if ev.tracked and y._node in ev.between else None
    if found is None:
        return unshared_results(ev, input_cotangents(ev, [(y, wrap(one(y._value)))]))
    return [as_result(ev, x, None) if g is None else g for x, g in zip(ev.inputs, found)]


@transform
def grad_and_value(func: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """The function that computes the gradient of a scalar function and its value: (∂f/∂x, f(x)).

    `argnums` selects the positional arguments to differentiate by; a tuple gives a tuple of gradients. Arguments may be Tensors, arrays, numbers
    and trees of them. With `has_aux` the function returns a pair (value, aux), and the result is (gradient, (value, aux)).

    Raises RuntimeError unless the function returns a real scalar, for integers and for `argnums` out of range.

    >>> import symgrad
    >>> symgrad.func.grad_and_value(lambda x: x.sin())(symgrad.tensor(0.0))
    (tensor(1.), tensor(0.))
    """
    check_argnums(argnums, "grad_and_value")

    def transformed(*args: Any, **kwargs: Any) -> Any:
        ev = evaluate(func, args, kwargs, argnums, "grad", has_aux)
        y = scalar_output(ev, func, "grad")
        found = ev.form.unflatten(_gradient(ev, y))
        value = ev.returned_output()
        return (found, (value, ev.detach(ev.aux))) if has_aux else (found, value)

    return transformed


@transform
def grad(func: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """The function that computes the gradient of a scalar function: ∂f/∂x, to any order by nesting.

    `argnums` selects the positional arguments to differentiate by; a tuple gives a tuple of gradients. With `has_aux` the function returns a pair
    (value, aux), and the result is (gradient, aux).

    Numbers that leave the graph are constants to the derivative, in every transform alike: `float(x)`, `math.exp(x)` and `x.item()` of a tensor that
    depends on an argument warn, once a line, unless `x.detach()` says that a constant is meant. Conditions, sizes and prints are silent.

    Raises RuntimeError unless the function returns a real scalar, for integers and for `argnums` out of range; where an array is made of a tensor
    that depends on an argument; and for a result that is not connected to the arguments after numbers of them have left the graph, with their lines.

    >>> from symgrad.func import grad
    >>> grad(lambda x: x**3)(2.0), grad(grad(lambda x: x**3))(2.0)
    (tensor(12.), tensor(12.))
    """
    check_argnums(argnums, "grad")

    def transformed(*args: Any, **kwargs: Any) -> Any:
        ev = evaluate(func, args, kwargs, argnums, "grad", has_aux)
        found = ev.form.unflatten(_gradient(ev, scalar_output(ev, func, "grad")))
        return (found, ev.detach(ev.aux)) if has_aux else found

    return transformed


# Products with the Jacobian


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and the function that pulls cotangents of the value back to the arguments: v ↦ vᵀ · ∂f/∂x.

    The pullback takes cotangents in the form of the output and gives a tuple, or one result for one primal; it may be called again.
    With `has_aux` the function returns a pair (output, aux), and the result is (output, pullback, aux).

    Raises RuntimeError for arguments that cannot be differentiated and for cotangents of another form or shape.

    >>> import symgrad
    >>> y, pullback = symgrad.func.vjp(lambda x: x.square(), symgrad.tensor([1.0, 2.0]))
    >>> pullback(symgrad.tensor([1.0, 10.0]))
    (tensor([ 2., 40.]),)
    """
    if not primals:
        raise RuntimeError("vjp: give at least one argument of the function")
    ev = evaluate(func, primals, {}, tuple(range(len(primals))), "vjp", has_aux)

    def pullback(*cotangents: Any) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        vs = _leaves_like(given, ev.shape, ev.outputs, "the cotangent", "the output", "vjp")
        now = ev.tracked_if_any(vs)
        return now.form.unflatten(unshared_results(now, input_cotangents(now, list(zip(now.outputs, vs)), True), vs))

    output = ev.returned_output()
    return (output, pullback, ev.detach(ev.aux)) if has_aux else (output, pullback)


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value of a function and its derivative along tangents of the arguments: (f(x), ∂f/∂x · t).

    Raises RuntimeError for tangents of another form or shape, and in strict mode for an output that depends on no argument; TypeError for primals
    that are not a tuple.

    >>> import symgrad
    >>> symgrad.func.jvp(lambda x: x.sin(), (symgrad.tensor(0.0),), (symgrad.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    ev, ts = _tangents(func, primals, tangents, "jvp", has_aux)
    for i, y in enumerate(ev.outputs):
        if strict and y._node not in ev.between:
            raise RuntimeError(f"jvp: in strict mode every output must depend on the primals; output {i} of {function_name(func)} does not")
    output, tangent = ev.returned_output(), ev.shape.unflatten(unshared_results(ev, output_tangents(ev, ts), ts))
    return (output, tangent, ev.detach(ev.aux)) if has_aux else (output, tangent)


def _tangents(func: Function, primals: Any, tangents: Any, caller: str, has_aux: bool = False) -> tuple[Evaluation, list[Tensor]]:
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)) or not given:
            raise TypeError(f"{caller}: {name} must be a tuple with one entry for each argument of the function, not {type(given).__name__}")
    ev = evaluate(func, tuple(primals), {}, tuple(range(len(primals))), caller, has_aux)
    form = ev.form
    ts = _leaves_like(tuple(tangents), form, ev.inputs, "tangents", "primals", caller)
    return ev.tracked_if_any(ts), ts


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of a function, and its derivative as a function of tangents: t ↦ ∂f/∂x · t.

    The function is evaluated once; applying the derivative does not call it again.

    Raises RuntimeError for tangents of another form or shape.

    >>> import symgrad
    >>> y, along = symgrad.func.linearize(lambda x: x.square().sum(), symgrad.tensor([1.0, 2.0]))
    >>> along(symgrad.tensor([1.0, 0.0])), along(symgrad.tensor([0.0, 1.0]))
    (tensor(2.), tensor(4.))
    """
    if not primals:
        raise RuntimeError("linearize: give at least one argument of the function")
    ev = evaluate(func, primals, {}, tuple(range(len(primals))), "linearize")

    def along(*tangents: Any) -> Any:
        ts = _leaves_like(tangents, ev.form, ev.inputs, "the tangents", "the primals", "linearize")
        now = ev.tracked_if_any(ts)
        return now.shape.unflatten(unshared_results(now, output_tangents(now, ts), ts))

    return ev.returned_output(), along


# Jacobians


ONE_BY_ONE = "one by one"  # in place of a chunk size: unbatched passes, for functions whose rules do not support batches


def unit_chunks(like: Tensor, chunk_size: Any, unit: complex = 1) -> Sequence[Any]:
    """The unit vectors of the shape of a tensor as batches of a new level, no larger than `chunk_size`, or ONE_BY_ONE; complex ones times `unit`."""
    n, value = like.numel(), like._value
    if chunk_size == ONE_BY_ONE:
        return [row.reshape(like.shape)[()] for row in np.eye(n, dtype=value.dtype)]
    step = n if chunk_size is None else chunk_size
    if step < 1 and n:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
    level = new_level()
    chunks = [(np.eye(min(step, n - at), n, at, value.dtype).reshape((min(step, n - at), *tuple(value.shape))), at) for at in range(0, n, step or 1)]
    turned = unit != 1 and value.dtype.kind == "c"
    return [Batched(each * value.dtype.type(unit), level) if turned else Batched(each, level, at) for each, at in chunks]


def jacobian_columns(ev: Evaluation, j: int, chunk_size: Any, push: Callable[..., list[Tensor]], unit: complex) -> list[Tensor]:
    """∂y/∂xⱼ of every output, the elements of xⱼ along the first axis: one batched pushforward for each chunk."""
    parts: list[list[Tensor]] = [[] for _ in ev.outputs]
    for units in unit_chunks(ev.inputs[j], chunk_size, unit):
        for part, t in zip(parts, push(ev, [wrap(units) if i == j else None for i in range(len(ev.inputs))])):
            part.append(unbatch_units(ev, t, units))
    return [concatenate_chunks(ev, part, (0, *y.shape), y) for part, y in zip(parts, ev.outputs)]


def jacobian_rows(ev: Evaluation, i: int, chunk_size: Any, unit: complex) -> list[Tensor]:
    """∂yᵢ/∂x by every input, the elements of yᵢ along the first axis: one batched pullback for each chunk."""
    parts: list[list[Tensor]] = [[] for _ in ev.inputs]
    for units in unit_chunks(ev.outputs[i], chunk_size, unit):
        for part, t in zip(parts, input_cotangents(ev, [(ev.outputs[i], wrap(units))], True)):
            part.append(unbatch_units(ev, t, units))
    return [concatenate_chunks(ev, part, (0, *x.shape), x) for part, x in zip(parts, ev.inputs)]


def unbatch_units(ev: Evaluation, t: Tensor, units: Any) -> Tensor:
    """A batched result as an array whose first axis is the batch, with one member per unit vector."""
    if type(units) is not Batched:
        with recording(ev.tracked):
            return traced.unsqueeze(t, 0)
    if not ev.tracked:
        return wrap(unbatch(t._value, 0, units.level, units.count))
    with recording(True):
        return traced.unbatch(t, 0, units.level, units.count)


def concatenate_chunks(ev: Evaluation, parts: list[Tensor], empty: tuple[int, ...], like: Tensor) -> Tensor:
    """The concatenated chunks; zeros of a shape if there are none."""
    if not parts:
        return wrap(np.zeros_like(like._value, shape=empty))
    return parts[0] if len(parts) == 1 else traced.cat(parts, 0)


def reshape_result(ev: Evaluation, t: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A derivative in another shape; if nothing is recorded, not as a view, which would keep the base alive."""
    if t.shape == shape:
        return t
    return traced.reshape(t, shape) if ev.tracked else wrap(numeric.reshape(t._value, shape))


def _jacobian_layout(ev: Evaluation, block: Tensor, y: Tensor, x: Tensor, last: bool) -> Tensor:
    """A block of a Jacobian in the shape (*y.shape, *x.shape), from one whose first axis counts the elements of y, or of x."""
    if last:
        block = traced.movedim(block, 0, -1) if ev.tracked or type(block._value) is Batched else wrap(np.moveaxis(block._value, 0, -1).copy())
    return reshape_result(ev, block, (*y.shape, *x.shape))


def jacobian_blocks(ev: Evaluation, forward: bool, chunk_size: Any, push: Callable[..., list[Tensor]] = output_tangents,
                    unit: complex = 1) -> list[list[Tensor]]:
    """The derivatives of every output along `unit` times each real element of every input, or, in reverse, the pullbacks of `unit` times each element
    of every output; each of shape (*y.shape, *x.shape)."""
    if forward:
        by_input = [jacobian_columns(ev, j, chunk_size, push, unit) for j in range(len(ev.inputs))]
        return [[_jacobian_layout(ev, by_input[j][i], y, x, True) for j, x in enumerate(ev.inputs)] for i, y in enumerate(ev.outputs)]
    return [[_jacobian_layout(ev, block, y, x, False) for block, x in zip(jacobian_rows(ev, i, chunk_size, unit), ev.inputs)] for i,
            y in enumerate(ev.outputs)]


def jacobians(ev: Evaluation, forward: bool, chunk_size: int | None, caller: str) -> list[Tensor]:
    """The Jacobian of every output by every input, in this order, of numbers that are real or complex.

    Raises RuntimeError for a complex output that is not a holomorphic function of a complex input.
    """
    blocks = jacobian_blocks(ev, forward, chunk_size)
    if any([t._value.dtype.kind == "c" for t in (*ev.inputs, *ev.outputs)]):
        turned = jacobian_blocks(ev, forward, chunk_size, unit=1j)
        with recording(ev.tracked):
            blocks = [[_complex_block(first, second, y, x, forward, caller) for first, second, x in zip(row, other, ev.inputs)]
                      for row, other, y in zip(blocks, turned, ev.outputs)]
    return unshared_results(ev, [block for row in blocks for block in row])


def _complex_block(first: Tensor, second: Tensor, y: Tensor, x: Tensor, forward: bool, caller: str) -> Tensor:
    """A block of a Jacobian from the derivatives along 1 and along i of a complex input, or the pullbacks of 1 and i at a complex output."""
    from_complex, to_complex = x._value.dtype.kind == "c", y._value.dtype.kind == "c"
    if from_complex and to_complex:
        if not np.allclose(raw(second._value), 1j * raw(first._value), rtol=1e-3 if first._value.dtype.itemsize == 8 else 1e-8, equal_nan=True):
            raise RuntimeError(f"{caller}: a complex output is not a holomorphic function of a complex argument, and has no complex Jacobian; "
                               f"differentiate by the real and the imaginary part, see view_as_real, or use jvp and vjp")
        return first if forward else first.conj()
    return first + 1j * second if (from_complex if forward else to_complex) else first


def _jacobian(func: Function, argnums: Any, has_aux: bool, chunk_size: int | None, caller: str) -> Function:
    check_argnums(argnums, caller)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        ev = evaluate(func, args, kwargs, argnums, caller, has_aux)
        found = transpose(ev.shape, ev.form, jacobians(ev, caller == "jacfwd", chunk_size, caller))
        return (found, ev.detach(ev.aux)) if has_aux else found

    return transformed


@transform
def jacrev(func: Function, argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """The function that computes the Jacobian ∂f/∂x, of shape (*y.shape, *x.shape), by one batched pullback for each output.

    Outputs and arguments may be trees; the result has the form of the output, with that of the arguments at each leaf. `chunk_size` bounds how many
    rows are computed at a time, and so the memory. For complex arguments it is the complex derivative of a holomorphic function, and what `grad`
    gives, ∂y/∂Re x + i ∂y/∂Im x, for a real output.

    Raises RuntimeError for arguments that cannot be differentiated, and for a complex output that is not holomorphic in a complex argument.

    >>> import symgrad
    >>> symgrad.func.jacrev(lambda x: x.square())(symgrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian(func, argnums, has_aux, chunk_size, "jacrev")


@transform
def jacfwd(func: Function, argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error", chunk_size: int | None = None) -> Function:
    """The function that computes the Jacobian ∂f/∂x, of shape (*y.shape, *x.shape), by one batched pushforward for each argument.

    Outputs and arguments may be trees; the result has the form of the output, with that of the arguments at each leaf. `chunk_size` bounds how many
    columns are computed at a time, and so the memory. The function runs once, so that `randomness` makes no difference. For complex arguments it is
    the complex derivative of a holomorphic function, and what `grad` gives, ∂y/∂Re x + i ∂y/∂Im x, for a real output.

    Raises RuntimeError for arguments that cannot be differentiated, and for a complex output that is not holomorphic in a complex argument.

    >>> import symgrad
    >>> symgrad.func.jacfwd(lambda x: x.square())(symgrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian(func, argnums, has_aux, chunk_size, "jacfwd")
