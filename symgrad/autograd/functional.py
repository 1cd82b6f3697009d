"""The interface of torch.autograd.functional: the transforms of `func` with torch's checks and error texts.

The function is evaluated once. `create_graph` makes results differentiable, independent of the inputs' `requires_grad`. `strict` refuses a result
that does not depend on an input, which is zero otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.autograd.seeds import one
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.evaluation import Evaluation, evaluate, recording, unshared_results
from symgrad.func.hessians import hessian_blocks
from symgrad.func.second import gradient_tangents
from symgrad.func.transforms import ONE_BY_ONE, input_cotangents, jacobian_blocks, output_tangents
from symgrad.graph.derivative import sources
from symgrad.graph.modes import in_mode

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]
STRICT = "in strict mode {} must depend on {} {}"
OUTPUT_INDEPENDENT = STRICT.format("the output", "input", "{}")
JACOBIAN_INDEPENDENT = STRICT.format("the gradient", "input", "{}")
TANGENT_INDEPENDENT = STRICT.format("the inputs", "output", "{}")
HESSIAN_INDEPENDENT = STRICT.format("the Hessian", "the gradient by input", "{}")
GRADIENT_CONSTANT = STRICT.format("the gradient", "input", "{}") + ", and it is constant, as that of a linear function"


# Arguments and results


def _tupled(given: Any, what: str, caller: str) -> tuple[Tensors, bool]:
    """A tensor or tuple of tensors as a tuple, and whether it was one."""
    was_tuple = isinstance(given, tuple)
    for i, x in enumerate(given if was_tuple else (given,)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{caller}: {what} must be a Tensor or a tuple of Tensors, but number {i} is {type(x).__name__}")
    if was_tuple and not given:
        raise ValueError(f"{caller}: {what} are an empty tuple; give at least one Tensor")
    return (given if was_tuple else (given,)), was_tuple


def _evaluated(func: Callable, inputs: Any, create_graph: bool, strict: bool, caller: str) -> tuple[Evaluation, bool, bool]:
    """The function at its inputs, and whether these and its outputs were tuples."""
    given, inputs_tuple = _tupled(inputs, "inputs", caller)
    if not all(x.is_floating_point() or x.is_complex() for x in given):
        raise RuntimeError(f"{caller}: inputs must be floating-point or complex")
    outputs_tuple = False

    def checked(*xs: Tensor) -> Tensors:
        nonlocal outputs_tuple
        outputs, outputs_tuple = _tupled(func(*xs), "outputs", caller)
        for i, y in enumerate(outputs):
            if strict and not y.requires_grad:
                raise RuntimeError(f"{caller}: in strict mode output {i} must depend on the inputs")
        return outputs

    with in_mode(grad=create_graph):  # without create_graph the inputs have no graph outside
        ev = evaluate(checked, given, {}, tuple(range(len(given))), caller)
    return dataclasses.replace(ev, tracked=create_graph), inputs_tuple, outputs_tuple


def _scalar(func: Callable, inputs: Any, create_graph: bool, strict: bool, caller: str) -> tuple[Evaluation, Tensor, bool]:
    """A function that has a Hessian at its inputs, its one element, and whether the inputs were a tuple."""
    ev, inputs_tuple, outputs_tuple = _evaluated(func, inputs, create_graph, strict, caller)
    if outputs_tuple:
        raise RuntimeError(f"{caller}: the function must return one Tensor, not a tuple")
    (y,) = ev.outputs
    if y.numel() != 1:
        raise RuntimeError(f"{caller}: the function must return one element, not the shape {list(y.shape)}")
    _real(y, caller)
    return ev, y, inputs_tuple


def _real(y: Tensor, caller: str) -> None:
    if y.is_complex() and y.requires_grad:
        raise RuntimeError(f"{caller}: the function must return real numbers, not {y.dtype}")


def _direction(v: Any, like: Sequence[Tensor], create_graph: bool, caller: str) -> list[Tensor]:
    """The vector `v` for tensors of these shapes; for a single element it may be left out, and is 1."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"{caller}: v may be left out for one Tensor of one element alone")
        return [wrap(one(like[0]._value))]
    given, _ = _tupled(v, "v", caller)
    if [t.shape for t in given] != [x.shape for x in like]:
        raise RuntimeError(f"{caller}: v must have the shapes {[list(x.shape) for x in like]}, not {[list(t.shape) for t in given]}")
    with in_mode(grad=create_graph):
        return [(t if create_graph else t.detach()).to(x.dtype) for t, x in zip(given, like)]


def _returned(results: Sequence[Any], was_tuple: bool) -> Any:
    """Tensors as the caller gave or asked for them: one alone, or a tuple."""
    return tuple(results) if was_tuple else results[0]


def _value(ev: Evaluation, outputs_tuple: bool) -> Any:
    return _returned(ev.returned_output(), outputs_tuple)


# Strict mode


def _constant(y: Tensor) -> bool:
    """Whether nothing that requires a gradient went into a tensor."""
    return all(node.parents for node in sources([y._node]))


def _depends(outputs: Sequence[Tensor | None], ev: Evaluation) -> list[bool]:
    """Whether some output depends on each input."""
    found = sources([y._node for y in outputs if y is not None])
    return [node in found for node in ev.nodes]


def _refuse_constant(found: Sequence[Tensor], what: str = "jacobian") -> None:
    """Raise for a derivative that is to be differentiated again and is constant."""
    for i, t in enumerate(found):
        if _constant(t):
            raise RuntimeError(STRICT.format(f"the {what}", "input", i) + " with create_graph=True")


def _refuse(reached: Sequence[bool], message: str) -> None:
    """Raise for the first that is not reached."""
    for i, there in enumerate(reached):
        if not there:
            raise RuntimeError(message.format(i))


def _refuse_independent(ev: Evaluation) -> None:
    """Raise for an output that does not depend on every input."""
    for i, y in enumerate(ev.outputs):
        _refuse(_depends([y], ev), STRICT.format(f"output {i}", "input", "{}"))


def _gradient(ev: Evaluation, y: Tensor, independent: str) -> Evaluation:
    """The evaluation of the gradient of a scalar. Raises if it does not depend on the inputs."""
    reached = _depends([y], ev)
    gradient = input_cotangents(dataclasses.replace(ev, tracked=True), [(y, wrap(one(y._value)))])
    for i, g in enumerate(gradient):
        if not reached[i] or _constant(g):
            raise RuntimeError((GRADIENT_CONSTANT if reached[i] else independent).format(i))
    return ev.with_outputs(gradient)


# The public functions


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs of a function and the product of a vector with its Jacobian: vᵀ · ∂y/∂x, in the shape of the inputs.

    `v` has the shape of the outputs; it may be left out for a single element. With `create_graph` both results can be
    differentiated again. `strict` refuses an input that no output depends on, where otherwise the result is zero.

    Raises TypeError for inputs or outputs that are not tensors, RuntimeError for a `v` of another shape and in strict mode.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.vjp(lambda x: x**2, symgrad.tensor([1.0, 2.0]), symgrad.tensor([3.0, 4.0]))
    (tensor([1., 4.]), tensor([ 6., 16.]))
    """
    ev, inputs_tuple, outputs_tuple = _evaluated(func, inputs, create_graph, strict, "vjp")
    if v is None and len(ev.outputs) == 1:
        _real(ev.outputs[0], "vjp")
    vs = _direction(v, ev.outputs, create_graph, "vjp")
    if strict:
        _refuse(_depends(ev.outputs, ev), OUTPUT_INDEPENDENT)
    product = unshared_results(ev, input_cotangents(ev, list(zip(ev.outputs, vs)), True), vs)
    if strict and create_graph:
        _refuse_constant(product)
    return _value(ev, outputs_tuple), _returned(product, inputs_tuple)


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs of a function and the product of its Jacobian with a vector: ∂y/∂x · v, in the shape of the outputs.

    `v` has the shape of the inputs; it may be left out for a single element. It is pushed forward through the graph: one pass,
    whatever the number of inputs and outputs. `create_graph` and `strict` are as in `vjp`.

    Raises TypeError for inputs or outputs that are not tensors, RuntimeError for a `v` of another shape and in strict mode.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.jvp(lambda x: x**2, symgrad.tensor([1.0, 2.0]), symgrad.tensor([3.0, 4.0]))
    (tensor([1., 4.]), tensor([ 6., 16.]))
    """
    ev, inputs_tuple, outputs_tuple = _evaluated(func, inputs, create_graph, strict, "jvp")
    ts = _direction(v, ev.inputs, create_graph, "jvp")
    if strict:
        _refuse(_depends(ev.outputs, ev), OUTPUT_INDEPENDENT)
        _refuse([any(_depends([y], ev)) for y in ev.outputs], TANGENT_INDEPENDENT)
    product = unshared_results(ev, _pushed(ev, ts), ts)
    if strict and create_graph:
        _refuse_constant(product)
    return _value(ev, outputs_tuple), _returned(product, outputs_tuple)


def _pushed(ev: Evaluation, ts: Sequence[Tensor | None]) -> list[Tensor]:
    """The tangents of the outputs; where a Function can only be pulled back, by the transpose of its pullback, which is linear in its cotangents."""
    try:
        return output_tangents(ev, ts)
    except NotImplementedError:
        pass
    vs = [wrap(np.zeros_like(y._value)).requires_grad_() for y in ev.outputs]
    tracked = dataclasses.replace(ev, tracked=True)
    pairs = [(g, t) for g, t in zip(input_cotangents(tracked, list(zip(ev.outputs, vs)), True), ts) if t is not None]
    with in_mode(grad=ev.tracked):
        return list(grad([g for g, _ in pairs], vs, [t for _, t in pairs], create_graph=ev.tracked, materialize_grads=True))


def jacobian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:
    """The Jacobian of a function: ∂y/∂x, of shape `(*y.shape, *x.shape)`, in tuples where the outputs or the inputs are tuples.

    `strategy` "reverse-mode" takes one pullback per element of the outputs, "forward-mode" one pushforward per element of the
    inputs; they give the same in the dtype of the input and of the output. With `vectorize` all of these are one batched pass for each output, or
    input; it allows complex outputs in reverse mode, and no `strict`. `create_graph` and `strict` are as in `vjp`.

    Raises TypeError for inputs or outputs that are not tensors, RuntimeError in strict mode, also together with `vectorize`, and for complex
    outputs, AssertionError for another strategy.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.jacobian(lambda x: (x**2, x.sum()), symgrad.tensor([1.0, 2.0]))
    (tensor([[2., 0.],
            [0., 4.]]), tensor([1., 1.]))
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f"jacobian: strategy must be 'forward-mode' or 'reverse-mode', not {strategy!r}")
    _refuse_strict_batches(strict, vectorize)
    ev, inputs_tuple, outputs_tuple = _evaluated(func, inputs, create_graph, strict, "jacobian")
    if strict:
        _refuse_independent(ev)
    return _nested(ev, _blocks(ev, strategy == "forward-mode", vectorize, strict), inputs_tuple, outputs_tuple)


def _refuse_strict_batches(strict: bool, vectorize: bool) -> None:
    if strict and vectorize:
        raise RuntimeError("jacobian: strict=True and vectorize=True are not supported together; set one of them to False")


def _blocks(ev: Evaluation, forward: bool, vectorize: bool, strict: bool) -> list[list[Tensor]]:
    """The Jacobian of every output by every input."""
    if not forward and not vectorize:
        for y in ev.outputs:
            _real(y, "jacobian")
    with recording(ev.tracked):
        found = jacobian_blocks(ev, forward, None if vectorize else ONE_BY_ONE, _pushed)
    if strict and ev.tracked:
        for row in found:
            _refuse_constant(row)
    return found


def _nested(ev: Evaluation, blocks: Sequence[Sequence[Tensor]], inputs_tuple: bool, outputs_tuple: bool) -> Any:
    """Blocks in tuples where the outputs or the inputs are tuples."""
    with recording(ev.tracked):
        found = iter([traced.reshape(t, t.shape) for t in unshared_results(ev, [block for row in blocks for block in row])])
    return _returned([_returned([next(found) for _ in row], inputs_tuple) for row in blocks], outputs_tuple)


def hessian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """The Hessian of a scalar function: ∂²y/∂xᵢ∂xⱼ, of shape `(*xᵢ.shape, *xⱼ.shape)`, in a tuple of tuples for a tuple of inputs.

    The gradient is a pullback; its Jacobian is taken in reverse or in forward mode, as `outer_jacobian_strategy` says.
    `create_graph` and `strict` are as in `vjp`; in strict mode the gradient must depend on the inputs, too.

    Raises TypeError for inputs or outputs that are not tensors, RuntimeError for an output of several elements and in strict
    mode, also together with `vectorize`, AssertionError for another strategy.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.hessian(lambda x: (x**3).sum(), symgrad.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f"hessian: outer_jacobian_strategy must be 'forward-mode' or 'reverse-mode', not {outer_jacobian_strategy!r}")
    _refuse_strict_batches(strict, vectorize)
    ev, y, inputs_tuple = _scalar(func, inputs, create_graph, strict, "hessian")
    if strict:
        first = _gradient(ev, y, GRADIENT_CONSTANT)
        _refuse_independent(first)
        blocks = _blocks(first, outer_jacobian_strategy == "forward-mode", vectorize, True)
    else:
        with recording(ev.tracked):
            blocks = hessian_blocks(ev, y, None if vectorize else ONE_BY_ONE)
    return _nested(ev, blocks, inputs_tuple, inputs_tuple)


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The output of a scalar function and the product of a vector with its Hessian, vᵀ · ∂²y/∂x², by two pullbacks.

    `v` has the shape of the inputs; it may be left out for a single element. `create_graph` and `strict` are as in `hessian`.

    Raises TypeError for inputs or outputs that are not tensors, RuntimeError for an output of several elements, for a `v` of
    another shape and in strict mode.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.vhp(lambda x: (x**3).sum(), symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _with_hessian(func, inputs, v, create_graph, strict, "vhp")


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The output of a scalar function and the product of its Hessian with a vector, ∂²y/∂x² · v, by a pullback and a pushforward.

    `v` has the shape of the inputs; it may be left out for a single element. `create_graph` and `strict` are as in `hessian`.

    Raises TypeError for inputs or outputs that are not tensors, RuntimeError for an output of several elements, for a `v` of
    another shape and in strict mode.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.hvp(lambda x: (x**3).sum(), symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _with_hessian(func, inputs, v, create_graph, strict, "hvp")


def _with_hessian(func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool, caller: str) -> tuple[Any, Any]:
    """The product of a Hessian, which is symmetric, with a vector."""
    ev, y, inputs_tuple = _scalar(func, inputs, create_graph, strict, caller)
    vs = _direction(v, ev.inputs, create_graph, caller)
    if not strict:
        product = gradient_tangents(ev, y, vs)
    elif caller == "vhp":
        first = _gradient(ev, y, OUTPUT_INDEPENDENT)
        _refuse(_depends(first.outputs, ev), JACOBIAN_INDEPENDENT)
        product = input_cotangents(first, list(zip(first.outputs, vs)), True)
    else:
        first = _gradient(ev, y, OUTPUT_INDEPENDENT)
        _refuse([any(_depends([g], ev)) for g in first.outputs], HESSIAN_INDEPENDENT)
        product = _pushed(first, vs)
    if strict and create_graph:
        _refuse_constant(product, "hessian")
    return _value(ev, False), _returned(unshared_results(ev, product, vs), inputs_tuple)
