"""Derivatives of functions, in torch's words: each evaluates the function once and differentiates the graph it recorded.

Reverse mode is a pullback and forward mode a pushforward; nothing is differentiated twice that needs it once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symgrad.autograd.engine import grad
from symgrad.autograd.forward_ad import push
from symgrad.autograd.modes import enable_grad, set_grad_enabled
from symgrad.autograd.vectorized import columns, rows
from symgrad.carriers import numeric
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.node import GRADIENT, Link, Node

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]
STRICT = "This is not allowed in strict mode"


# What goes in, and what comes out


def _tupled(given: Any, what: str, asking: str) -> tuple[Tensors, bool]:
    """A tensor or tuple of tensors as a tuple, and whether it was one."""
    was_tuple = isinstance(given, tuple)
    for i, x in enumerate(given if was_tuple else (given,)):
        if not isinstance(x, Tensor):
            which = f"value at index {i}" if was_tuple else f"given {what}"
            raise TypeError(f"The {what} given to {asking} must be either a Tensor or a tuple of Tensors but the {which} has type {type(x)}.")
    if was_tuple and not given:
        raise ValueError(f"The {what} given to {asking} are an empty tuple; give at least one Tensor.")
    return (given if was_tuple else (given,)), was_tuple


def _watched(xs: Tensors, create_graph: bool) -> Tensors:
    """The inputs at places of their own in the graph, so that what a function captured is told apart from what it was given."""
    with enable_grad():
        return tuple(traced.view(x, x.shape) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in xs)


def _evaluated(func: Callable, inputs: Tensors, strict: bool, asking: str) -> tuple[Tensors, bool]:
    """The function's outputs as a tuple, and whether they were one."""
    with enable_grad():
        outputs, was_tuple = _tupled(func(*inputs), "outputs of the user-provided function", asking)
    for i, y in enumerate(outputs):
        if strict and not y.requires_grad:
            raise RuntimeError(f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
                               "differentiable manner from the input when running in strict mode.")
    return outputs, was_tuple


def _scalar(func: Callable, inputs: Tensors, strict: bool, asking: str) -> Tensor:
    """The one element that a function with a Hessian returns."""
    outputs, was_tuple = _evaluated(func, inputs, strict, asking)
    if was_tuple:
        raise RuntimeError(f"The function given to {asking} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {asking} should contain a single element")
    return outputs[0]


def _direction(v: Any, like: Tensors, like_is_tuple: bool, create_graph: bool, asking: str, otherwise: str) -> list[Tensor | None]:
    """The vector `v` for tensors of these shapes; None stands for the 1 of a single element."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {otherwise} a single Tensor with a single element.")
        return [None]
    given, _ = _tupled(v, "v", asking)
    if len(given) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(given)}." if like_is_tuple
                           else "The given v should contain a single Tensor.")
    for i, (t, x) in enumerate(zip(given, like)):
        if t.shape != x.shape:
            raise RuntimeError(f"{f'Entry {i} in ' if like_is_tuple else ''}v has invalid size: should be {x.shape} but got {t.shape}.")
    return [t if create_graph else t.detach() for t in given]


def _returned(results: Sequence[Any], was_tuple: bool, create_graph: bool) -> Any:
    """Tensors as the caller gave or asked for them: one alone, or a tuple; outside the graph unless one was asked for."""
    kept = tuple(y if create_graph else y.detach() for y in results)
    return kept if was_tuple else kept[0]


def _nested(rows: Sequence[Sequence[Tensor]], outputs_tuple: bool, inputs_tuple: bool, create_graph: bool) -> Any:
    out = tuple(_returned(row, inputs_tuple, create_graph) for row in rows)
    return out if outputs_tuple else out[0]


# Derivatives of one recorded graph


def _zeros(x: Tensor) -> Tensor:
    return wrap(numeric.zeros_like(x._value))


def _basis(x: Tensor, place: int) -> Tensor:
    """The unit vector of the shape of `x` with its 1 at a flat place."""
    value = numeric.zeros_like(x._value, (x.numel(),))
    value[place] = 1
    return wrap(value.reshape(x.shape))


def _pulled(outputs: Sequence[Tensor], inputs: Tensors, vs: Sequence[Tensor | None], create_graph: bool) -> list[Tensor | None]:
    """Σ vᵢ · ∂yᵢ/∂x for each input, None for one that no output depends on; the graph is kept."""
    pairs = [(y, v) for y, v in zip(outputs, vs) if y.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    return list(grad([y for y, _ in pairs], inputs, [v for _, v in pairs], retain_graph=True, create_graph=create_graph, allow_unused=True))


def _pushed(outputs: Sequence[Tensor], inputs: Tensors, ts: Sequence[Tensor | None], create_graph: bool) -> list[Tensor | None]:
    """Σ ∂y/∂xᵢ · tᵢ for each output, None for one that depends on no input."""
    nodes = [x._node for x in inputs if x._node is not None]
    filled = [wrap(numeric.ones_like(x._value)) if t is None else t for x, t in zip(inputs, ts)]
    with set_grad_enabled(create_graph):
        try:
            found = push(outputs, dict(zip(nodes, filled)), create_graph)
        except NotImplementedError:
            return _pulled_twice(outputs, inputs, filled, create_graph)
    if not create_graph:
        return found
    return [None if t is None else wrap(t._value, Link(t._value, t._node, nodes)) for t in found]


def _pulled_twice(outputs: Sequence[Tensor], inputs: Tensors, ts: Sequence[Tensor], create_graph: bool) -> list[Tensor | None]:
    """The same where a Function can only be pulled back: the pullback is linear in its cotangents, and its transpose is the pushforward."""
    vs = [_zeros(y).requires_grad_() if y.requires_grad else None for y in outputs]
    pulled = [(g, t) for g, t in zip(_pulled(outputs, inputs, vs, True), ts) if g is not None]
    wanted = [v for v in vs if v is not None]
    found = iter(grad([g for g, _ in pulled], wanted, [t for _, t in pulled], create_graph=create_graph,
                      allow_unused=True))
    return [None if v is None else next(found) for v in vs]


def _sources(outputs: Sequence[Tensor | None]) -> set[Node]:
    """What tensors were computed from. A constant derivative is linked to its inputs so that it can be differentiated, but comes from none."""
    seen: set[Node] = set()
    stack = [y._node for y in outputs if y is not None]
    while stack:
        node = stack.pop()
        if node is None or node in seen or not node.flags & GRADIENT:
            continue
        seen.add(node)
        stack.extend(node.parents[:1] if type(node) is Link else node.parents)
    return seen


def _constant(y: Tensor) -> bool:
    """Whether nothing that requires a gradient went into a tensor."""
    return all(node.parents for node in _sources([y]))


def _filled(found: Sequence[Tensor | None], like: Sequence[Tensor], strict: bool, create_graph: bool, independent: str,
            constant: str = "jacobian") -> list[Tensor]:
    """Zeros for what is missing; in strict mode an error for that, and for what is constant where it should be differentiated again."""
    for i, t in enumerate(found):
        if strict and t is None:
            raise RuntimeError(independent.format(i))
        if strict and create_graph and t is not None and _constant(t):
            raise RuntimeError(f"The {constant} of the user-provided function is independent of input {i}. {STRICT} when create_graph=True.")
    return [_zeros(x) if t is None else t for t, x in zip(found, like)]


OUTPUT_INDEPENDENT = f"The output of the user-provided function is independent of input {{}}. {STRICT}."
JACOBIAN_INDEPENDENT = f"The jacobian of the user-provided function is independent of input {{}}. {STRICT}."
TANGENT_INDEPENDENT = ("The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double backward trick "
                       f"to compute forward mode gradients. {STRICT}.")
HESSIAN_INDEPENDENT = (f"The hessian of the user-provided function is independent of entry {{}} in the grad_jacobian. {STRICT} as it prevents from "
                       "using the double backward trick to replace forward mode AD.")


GRADIENT_CONSTANT = ("While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is independent of "
                     f"the input. {STRICT}. You should ensure that your function is twice differentiable and that the jacobian depends on the inputs "
                     "(this would be violated by a linear function for example).")


def _gradient(y: Tensor, inputs: Tensors, strict: bool, independent: str) -> Tensors:
    """The gradient of a scalar, to be differentiated again; in strict mode it must depend on the inputs."""
    gradient = _pulled([y], inputs, [None], True)
    for i, g in enumerate(gradient):
        if strict and (g is None or _constant(g)):
            raise RuntimeError((independent if g is None else GRADIENT_CONSTANT).format(i))
    return tuple(_zeros(x) if g is None else g for g, x in zip(gradient, inputs))


# The public functions


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs of a function and the product of a vector with its Jacobian: vᵀ · ∂y/∂x, in the shape of the inputs.

    `v` has the shape of the outputs; it may be left out for a single element. With `create_graph` both results can be
    differentiated again. `strict` refuses an input that no output depends on, where otherwise the result is zero.

    Raises TypeError for inputs or outputs that are no tensors, RuntimeError for a `v` of another shape and in strict mode.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.vjp(lambda x: x**2, symgrad.tensor([1.0, 2.0]), symgrad.tensor([3.0, 4.0]))
    (tensor([1., 4.]), tensor([ 6., 16.]))
    """
    given, inputs_tuple = _tupled(inputs, "inputs", "vjp")
    xs = _watched(given, create_graph)
    ys, outputs_tuple = _evaluated(func, xs, strict, "vjp")
    vs = _direction(v, ys, outputs_tuple, create_graph, "vjp", "the user-provided function returns")
    pulled = _filled(_pulled(ys, xs, vs, create_graph), xs, strict, create_graph, OUTPUT_INDEPENDENT)
    return _returned(ys, outputs_tuple, create_graph), _returned(pulled, inputs_tuple, create_graph)


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs of a function and the product of its Jacobian with a vector: ∂y/∂x · v, in the shape of the outputs.

    `v` has the shape of the inputs; it may be left out for a single element. It is pushed forward through the graph: one pass,
    whatever the number of inputs and outputs. `create_graph` and `strict` are as in `vjp`.

    Raises TypeError for inputs or outputs that are no tensors, RuntimeError for a `v` of another shape and in strict mode.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.jvp(lambda x: x**2, symgrad.tensor([1.0, 2.0]), symgrad.tensor([3.0, 4.0]))
    (tensor([1., 4.]), tensor([ 6., 16.]))
    """
    given, inputs_tuple = _tupled(inputs, "inputs", "jvp")
    xs = _watched(given, create_graph)
    ts = _direction(v, xs, inputs_tuple, create_graph, "jvp", "the input to the user-provided function is")
    ys, outputs_tuple = _evaluated(func, xs, strict, "jvp")
    if strict:
        reached = _sources(ys)
        for i, x in enumerate(xs):
            if x._node not in reached:
                raise RuntimeError(OUTPUT_INDEPENDENT.format(i))
    pushed = _filled(_pushed(ys, xs, ts, create_graph), ys, strict, create_graph, TANGENT_INDEPENDENT)
    return _returned(ys, outputs_tuple, create_graph), _returned(pushed, outputs_tuple, create_graph)


def jacobian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:
    """The Jacobian of a function: ∂y/∂x, of shape `(*y.shape, *x.shape)`, in tuples where the outputs or the inputs are tuples.

    `strategy` "reverse-mode" takes one pullback per element of the outputs, "forward-mode" one pushforward per element of the
    inputs; they give the same in the dtype of the input and of the output. With `vectorize` all of these are one batched pass for each output, or
    input; it allows complex outputs in reverse mode, and no `strict`. `create_graph` and `strict` are as in `vjp`.

    Raises TypeError for inputs or outputs that are no tensors, RuntimeError in strict mode, also together with `vectorize`, and for complex
    outputs, AssertionError for another strategy.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.jacobian(lambda x: (x**2, x.sum()), symgrad.tensor([1.0, 2.0]))
    (tensor([[2., 0.],
            [0., 4.]]), tensor([1., 1.]))
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
                             '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".')
    if strict and vectorize:
        raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set "
                           "`strict=False` or `vectorize=False`.")
    given, inputs_tuple = _tupled(inputs, "inputs", "jacobian")
    xs = _watched(given, create_graph)
    ys, outputs_tuple = _evaluated(func, xs, strict, "jacobian")
    for i, y in enumerate(ys):
        reached = _sources([y]) if strict else set()
        for j, x in enumerate(xs):
            if strict and x._node not in reached:
                raise RuntimeError(f"Output {i} of the user-provided function is independent of input {j}. {STRICT}.")
        if y.is_complex() and y.requires_grad and strategy == "reverse-mode" and not vectorize:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {y.dtype}")
    if vectorize:
        blocks = rows(ys, xs, create_graph) if strategy == "reverse-mode" else columns(ys, xs, create_graph, _pushed)
    else:
        blocks = (_by_rows if strategy == "reverse-mode" else _by_columns)(ys, xs, strict, create_graph)
    return _nested(blocks, outputs_tuple, inputs_tuple, create_graph)


def _by_rows(ys: Tensors, xs: Tensors, strict: bool, create_graph: bool) -> list[list[Tensor]]:
    """The blocks of a Jacobian, one pullback for each element of each output."""
    blocks = []
    for y in ys:
        rows = [_filled(_pulled([y], xs, [_basis(y, k)], create_graph), xs, strict, create_graph, OUTPUT_INDEPENDENT)
                for k in range(y.numel())]
        blocks.append([_stacked([row[j] for row in rows], 0, (*y.shape, *x.shape), x, create_graph) for j, x in enumerate(xs)])
    return blocks


def _by_columns(ys: Tensors, xs: Tensors, strict: bool, create_graph: bool) -> list[list[Tensor]]:
    """The blocks of a Jacobian, one pushforward for each element of each input."""
    blocks: list[list[Tensor]] = [[] for _ in ys]
    for x in xs:
        columns = [_filled(_pushed(ys, (x,), [_basis(x, k)], create_graph), ys, strict, create_graph, TANGENT_INDEPENDENT)
                   for k in range(x.numel())]
        for i, y in enumerate(ys):
            blocks[i].append(_stacked([column[i] for column in columns], -1, (*y.shape, *x.shape), y, create_graph))
    return blocks


def _stacked(slices: list[Tensor], dim: int, shape: tuple[int, ...], like: Tensor, create_graph: bool) -> Tensor:
    with set_grad_enabled(create_graph):
        return traced.reshape(traced.stack(slices, dim), shape) if slices else wrap(numeric.zeros_like(like._value, shape))


def hessian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """The Hessian of a scalar function: ∂²y/∂xᵢ∂xⱼ, of shape `(*xᵢ.shape, *xⱼ.shape)`, in a tuple of tuples for a tuple of inputs.

    The gradient is a pullback; its Jacobian is taken in reverse or in forward mode, as `outer_jacobian_strategy` says.
    `create_graph` and `strict` are as in `vjp`; in strict mode the gradient must depend on the inputs, too.

    Raises TypeError for inputs or outputs that are no tensors, RuntimeError for an output of several elements and in strict
    mode, AssertionError for another strategy.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.hessian(lambda x: (x**3).sum(), symgrad.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _, inputs_tuple = _tupled(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def gradient(*xs: Tensor) -> Tensors | Tensor:
        return _returned(_gradient(_scalar(func, xs, strict, "hessian"), xs, strict, GRADIENT_CONSTANT), inputs_tuple, True)

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The output of a scalar function and the product of a vector with its Hessian, vᵀ · ∂²y/∂x², by two pullbacks.

    `v` has the shape of the inputs; it may be left out for a single element. `create_graph` and `strict` are as in `hessian`.

    Raises TypeError for inputs or outputs that are no tensors, RuntimeError for an output of several elements, for a `v` of
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

    Raises TypeError for inputs or outputs that are no tensors, RuntimeError for an output of several elements, for a `v` of
    another shape and in strict mode.

    >>> import symgrad
    >>> from symgrad.autograd import functional
    >>> functional.hvp(lambda x: (x**3).sum(), symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _with_hessian(func, inputs, v, create_graph, strict, "hvp")


def _with_hessian(func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool, asking: str) -> tuple[Any, Any]:
    given, inputs_tuple = _tupled(inputs, "inputs", asking)
    xs = _watched(given, create_graph)
    vs = _direction(v, xs, inputs_tuple, create_graph, asking, "the input to the user-provided function is")
    y = _scalar(func, xs, strict, asking)
    gradient = _gradient(y, xs, strict, OUTPUT_INDEPENDENT)
    if asking == "vhp":
        reached = _sources(gradient) if strict else set()
        found = [None if strict and x._node not in reached else t for x, t in zip(xs, _pulled(gradient, xs, vs, create_graph))]
        product = _filled(found, xs, strict, create_graph, JACOBIAN_INDEPENDENT, "hessian")
    else:
        product = _filled(_pushed(gradient, xs, vs, create_graph), xs, strict, create_graph, HESSIAN_INDEPENDENT, "hessian")
    return _returned([y], False, create_graph), _returned(product, inputs_tuple, create_graph)
