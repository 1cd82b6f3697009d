"""User-defined derivatives: `stop_gradient`, `custom_vjp` and `custom_jvp`, with JAX's semantics."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of
from symgrad.engine.data import as_value
from symgrad.engine.graph_breaks import explaining_arrays
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor, wrap
from symgrad.factories.generators import generator_state, restored_generator
from symgrad.func.calling import own_name
from symgrad.func.evaluation import function_name
from symgrad.func.rules import (
    Rule,
    Some,
    Tensors,
    attach_node,
    check_unwritten,
    in_vmap_levels,
    is_tracked,
    nodes_before,
    repeat_for_members,
    rule_op,
    tensor_at,
    transpose_linear,
)
from symgrad.graph.common import STOP
from symgrad.graph.freed import Released
from symgrad.graph.modes import thread
from symgrad.graph.node import GRADIENT, IN_FORWARD, next_sequence
from symgrad.trees import Spec, _branches, flatten, names, tree_map

_stop = core(STOP.but(differentiable=False, integers=True))


def stop_gradient(x: Any) -> Any:
    """The same values with the derivative zero, in both modes and to every order: y = x, ∂y/∂x = 0.

    `x` is a Tensor or a tree of tensors, of any dtypes; other leaves are returned unchanged. The result requires no gradient and shares
    memory; with a named leaf upstream it keeps its formula.

    >>> import symgrad
    >>> from symgrad.func import grad, stop_gradient
    >>> grad(lambda x: stop_gradient(x.exp()) * x)(symgrad.tensor(0.0))
    tensor(1.)
    """
    return tree_map(lambda leaf: _stop(leaf) if isinstance(leaf, Tensor) else leaf, x)


class NoForwardMode(TypeError, NotImplementedError):
    """The error for a forward-mode derivative of a function that has a pullback only."""


NO_RULES = {"custom_vjp": "No VJP defined for custom_vjp function {} using defvjp.",
            "custom_jvp": "No JVP defined for custom_jvp function {} using defjvp.",
            "foreign": "No derivative defined for foreign function {} using defvjp or defjvp."}


class _Custom:
    """A function with user-defined derivatives. The rules get the arguments at `nondiff_argnums` unchanged, before the others."""

    kind = ""
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any]
    rule: Callable[..., Any] | None = None  # the pushforward
    formula: Callable[..., Any] | None = None

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()):
        functools.update_wrapper(self, fun)
        self.fun, self.name, self.nondiff_argnums = fun, function_name(fun), tuple(nondiff_argnums)
        self.op = rule_op(self.name)
        self.signature: inspect.Signature | None = None
        with contextlib.suppress(ValueError, TypeError):
            self.signature = inspect.signature(fun)
        kinds = [p.kind for p in self.signature.parameters.values()] if self.signature else []
        self.plain = len(kinds) if {*kinds} <= {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD} else -1

    def __reduce_ex__(self, protocol: Any) -> Any:
        return own_name(self) or super().__reduce_ex__(protocol)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._require_rules()
        args = self._positional(args, kwargs)
        fixed = {n % len(args): args[n] for n in self.nondiff_argnums}
        leaves, form = flatten(tuple(a for i, a in enumerate(args) if i not in fixed))
        places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x._value.dtype.kind in "fcV"]
        if any(is_tracked(x) for x in flatten(tuple(fixed.values()))[0] if isinstance(x, Tensor)):
            raise TypeError(f"{self.name}: an argument at nondiff_argnums={self.nondiff_argnums} is a differentiated tensor; "
                            f"nondiff_argnums are for arguments without a graph: leave it out of nondiff_argnums, or detach it")
        if not any(is_tracked(leaves[i]) for i in places):
            return self.fun(*args)
        return _Call(self, fixed, leaves, form, places).record([repeat_for_members(leaves[i]) for i in places])

    def _positional(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """All arguments by position, with defaults."""
        if self.signature is None or not kwargs and len(args) == self.plain:
            return args
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(f"{self.name}: the keyword arguments {', '.join(bound.kwargs)} cannot be resolved to positions, which the "
                            f"rules of a {self.kind} function need")
        return bound.args

    def _require_rules(self) -> None:
        if self.fwd is None and self.rule is None:
            raise AttributeError(NO_RULES[self.kind].format(self.name))

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Define the pullback: `fwd(*args) -> (output, residuals)` and `bwd(*nondiff, residuals, g) -> cotangents`."""
        self.fwd, self.bwd = fwd, bwd

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Define the pushforward `jvp(*nondiff, primals, tangents) -> (output, tangent)`; returns it."""
        self.rule = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Define a rule `(tangent, output, *primals) -> tangent` for each argument, None for zero; the tangents are added.

        Raises TypeError with `nondiff_argnums`.
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def rule(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
            output = self(*primals)
            terms = [one(t, output, *primals) for one, t in zip(jvps, tangents) if one is not None]
            return output, functools.reduce(lambda a, b: tree_map(lambda x, y: x + y, a, b), terms) if terms else None

        self.rule = rule

    def _first_call(self, call: _Call, tensors: Tensors) -> Any:
        if self.fwd is None or not call.is_differentiated:
            return call.call_function(self.fun, tensors)
        output, call.residuals = self._forward(call, tensors)
        call.since = next_sequence()
        return output

    def _forward(self, call: _Call, tensors: Tensors) -> tuple[Any, Any]:
        with explaining_arrays():
            found = call.call_function(self.fwd, tensors)  # type: ignore[arg-type]
        return _check_pair(found, self.fwd, "the output and the residuals")

    def _pullback(self, call: _Call, tensors: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        if self.fwd is None:
            return transpose_linear(lambda ts: self._pushforward(call, tensors, ts), [None if n is None else x for n, x in zip(needs, tensors)],
                                    cotangents)
        again = call.residuals is UNKNOWN or thread.modes.grad and any(t._node is not None for t in tensors)
        residuals = self._forward(call, tensors)[1] if again else call.residuals
        if not again:
            check_unwritten(flatten(residuals)[0], call.since)
        with in_vmap_levels(thread.modes.batches, *cotangents), explaining_arrays():
            found = self.bwd(*call.fixed.values(), residuals, call.cotangent_tree(cotangents))
        count, name = len(call.form.parts), function_name(self.bwd)
        if not isinstance(found, (tuple, list)) or len(found) != count:
            given = f"one of {len(found)}" if isinstance(found, (tuple, list)) else type(found).__name__
            raise TypeError(f"{name}: the rule must return a tuple with a cotangent for each of the {count} differentiable arguments, but it "
                            f"returned {given}")
        leaves = _leaves_with_form(tuple(found), call.form, f"{name}: what the rule returns")
        return _check_results([leaves[i] for i in call.places], call.values, call.argument_names, f"{name}: the cotangent")

    def _pushforward(self, call: _Call, tensors: Tensors, tangents: Some) -> Some:
        if self.rule is None:
            if not call.pullback_recorded:
                raise NoForwardMode(f"can't apply forward-mode differentiation (jvp) to a {self.kind} function.\n{self.name} has a "
                                    f"pullback only: differentiate it in reverse mode, or define its pushforward with defjvp")
            return transpose_linear(lambda gs: self._pullback(call, tensors, gs, tangents), [_zeros(y) for y in call.shapes], tangents)
        moving = [_zeros(x) if t is None else t for t, x in zip(tangents, tensors)]
        with restored_generator(call.state), in_vmap_levels(thread.modes.batches, *moving), explaining_arrays():
            found = self.rule(*call.fixed.values(), call.insert_tensors(tensors), call.insert_tensors(moving, _zeros))
        name = function_name(self.rule)
        leaves = _leaves_with_form(_check_pair(found, self.rule, "the output and its tangent")[1], call.output_form, f"{name}: the tangent")
        return _check_results([leaves[i] for i in call.output_places], call.shapes, call.output_names, f"{name}: the tangent")


class _Call(Rule):
    """One call of a custom function: the positions of its tensor arguments, its other arguments, and the residuals of the forward."""

    def __init__(self, owner: Any, fixed: dict[int, Any], leaves: list[Any], form: Spec, places: list[int]):
        self.owner, self.fixed, self.form, self.places = owner, fixed, form, places
        self.leaves = [None if i in places else x for i, x in enumerate(leaves)]
        self.residuals: Any = UNKNOWN
        self.since, self.records_content = 0, owner.formula is not None

    def insert_tensors(self, tensors: Some, constant: Callable[[Any], Any] = lambda x: x) -> tuple:
        """The differentiable arguments with the given tensors as tensor leaves, and `constant` applied to all other leaves."""
        leaves = [constant(x) for x in self.leaves]
        for i, t in zip(self.places, tensors):
            leaves[i] = t
        return self.form.unflatten(leaves)

    def call_function(self, function: Callable[..., Any], tensors: Tensors) -> Any:
        """The value of a function of all arguments, with the random numbers of the first call."""
        given = iter(self.insert_tensors(tensors))
        total = len(self.form.parts) + len(self.fixed)
        with restored_generator(self.state):
            return function(*(self.fixed[i] if i in self.fixed else next(given) for i in range(total)))

    def record(self, tensors: Tensors) -> Any:
        """The output of the call at its node."""
        self.state, before, since = None, generator_state(), next_sequence()
        self.is_differentiated = any(t._node is not None and t._node.flags & (GRADIENT | IN_FORWARD) for t in tensors)
        output = self.owner._first_call(self, [wrap(t._value) for t in tensors])
        self.state = None if generator_state() == before else before
        leaves, self.output_form = flatten(output)
        leaves = [wrap(as_value(x)) if isinstance(x, (np.ndarray, np.inexact)) else x for x in leaves]
        self.output_places = [i for i, y in enumerate(leaves) if isinstance(y, Tensor) and y._value.dtype.kind in "fcV"]
        outputs = [leaves[i] for i in self.output_places]
        self.shapes = [Released(y._value) for y in outputs]
        self.captured = tuple(nodes_before(outputs, since))
        parents = [*tensors, *map(tensor_at, self.captured)]
        self.values = tuple(t._value for t in parents)
        for i, y in zip(self.output_places, attach_node(self.owner.op, self, parents, outputs) if outputs else ()):
            leaves[i] = y
        self.output_leaves = [None if i in self.output_places else y for i, y in enumerate(leaves)]
        return self.output_form.unflatten(leaves)

    def evaluate(self, tensors: Tensors) -> Tensors:
        leaves = flatten(self.call_function(self.owner.fun, tensors[:len(self.places)]))[0]
        return [y if isinstance(y, Tensor) else wrap(as_value(y)) for y in (leaves[i] for i in self.output_places)]

    def cotangent_tree(self, moving: Some) -> Any:
        """The cotangents in the tree structure of the output, with zeros for undefined ones."""
        leaves = [_zeros(x) for x in self.output_leaves]
        for i, c, y in zip(self.output_places, moving, self.shapes):
            leaves[i] = _zeros(y) if c is None else c
        return self.output_form.unflatten(leaves)

    def argument_names(self) -> list[str]:
        """The names of the tensor arguments for error texts."""
        signature = self.owner.signature
        known = [p for i, p in enumerate(signature.parameters) if i not in self.fixed] if signature else []
        parts = self.form.unflatten(range(self.form.count))
        found = [word for i, part in enumerate(parts) for word in names(part, known[i] if i < len(known) else f"argument {i}")]
        return [found[i] for i in self.places]

    def output_names(self) -> list[str]:
        """The names of the output tensors for error texts."""
        found = names(self.output_form.unflatten(range(self.output_form.count)), "the output")
        return [found[i] for i in self.output_places]

    def refuse_captured(self, moving: Sequence[Any]) -> None:
        if any(c is not None for c in moving[len(self.places):]):
            raise RuntimeError(f"{self.owner.name}: this {self.owner.kind} function is differentiated with respect to a captured "
                               f"tensor, but its rules cover its arguments only; pass that tensor as an argument, or capture stop_gradient of it")

    def pullback(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        self.refuse_captured(needs)
        return [*self.owner._pullback(self, tensors[:len(self.places)], cotangents, needs), *(None for _ in self.captured)]

    def pushforward(self, tensors: Tensors, outputs: Tensors, tangents: Some) -> Some:
        self.refuse_captured(tangents)
        return self.owner._pushforward(self, tensors[:len(self.places)], tangents[:len(self.places)])


UNKNOWN = object()


def _zeros(x: Any) -> Any:
    """The zero tangent of a leaf, given as a value or a shape and dtype; None for leaves that are not numbers."""
    if isinstance(x, Released):
        return wrap(np.zeros(tuple(x.shape), x.dtype)[()])
    if isinstance(x, Tensor):
        return wrap(np.zeros_like(x._value if x._value.dtype.kind in "fcV" else x._value * 1.0))
    return wrap(np.zeros(np.shape(x))[()]) if isinstance(x, (float, int, complex, np.ndarray, np.generic)) else None


def _leaves_with_form(tree: Any, form: Spec, what: str) -> list[Any]:
    """The leaves of a tree of the given structure, in which None may replace a branch."""
    if tree is None:
        return [None] * form.count
    if form.kind is None:
        return [tree]
    kind, keys, parts = _branches(tree) or (None, (), [])
    if kind is dict and kind is form.kind and set(keys) == set(form.keys):
        keys, parts = form.keys, [tree[key] for key in form.keys]
    if kind is not form.kind or keys != form.keys:
        raise TypeError(f"{what} must have the form {form!r}, with None for zero, but it is {tree!r}")
    return [leaf for part, below in zip(parts, form.parts) for leaf in _leaves_with_form(part, below, what)]


def _check_results(found: Sequence[Any], like: Sequence[Any], words: Callable[[], Sequence[str]], what: str) -> list[Tensor | None]:
    """The results of a rule as tensors, checked against the shapes and dtypes of `like`."""
    out: list[Tensor | None] = []
    for i, (c, x) in enumerate(zip(found, like)):
        if c is None:
            out.append(None)
            continue
        t = c if isinstance(c, Tensor) else wrap(as_value(c))
        if tuple(t.shape) != tuple(x.shape):
            raise TypeError(f"{what} for {words()[i]} has shape {list(t.shape)}, but {words()[i]} has shape {list(x.shape)}")
        if t._value.dtype != x.dtype:
            if t._value.dtype.kind == "c" and x.dtype.kind != "c":
                raise TypeError(f"{what} for {words()[i]} is complex, but {words()[i]} is real; return its real part")
            t = t.to(dtype_of(x.dtype))
        out.append(t)
    return out


def _check_pair(found: Any, rule: Any, of: str) -> tuple[Any, Any]:
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise TypeError(f"{function_name(rule)}: the rule must return a pair, {of}, but it returned {type(found).__name__}")
    return found[0], found[1]


class custom_vjp(_Custom):
    """A decorator for a function with a user-defined pullback, with JAX's interface.

    `f.defvjp(fwd, bwd)` defines it: `fwd(*args)` returns f's output and residuals, any tree, and `bwd(residuals, g)` gets the cotangent of the
    output, in its form, and returns a tuple with the cotangent of each argument, vᵀ·∂f/∂x, in the form of that argument; None is zero.
    Arguments at `nondiff_argnums` come first in `bwd(*nondiff, residuals, g)` and have no cotangent. Arguments and outputs are trees of tensors
    and other things. To differentiate again, `fwd` is called on the tensors of the graph, and `bwd` is recorded: it must compute with Tensors.
    For complex tensors cotangents are conjugate, as everywhere in symgrad. The formula of the function is that of `f` itself.

    Raises AttributeError if no rule is defined; TypeError for rules that return another form or shape, for keyword-only arguments and in forward
    mode without `f.defjvp(rule)`, the pushforward as of `custom_jvp` (forward mode over the recorded pullback works); RuntimeError for a derivative
    by a captured tensor.

    >>> import symgrad
    >>> from symgrad.func import custom_vjp, grad
    >>> @custom_vjp
    ... def log1pexp(x):
    ...     return symgrad.log(1 + symgrad.exp(x))
    >>> log1pexp.defvjp(lambda x: (log1pexp(x), x), lambda x, g: (g * (1 - 1 / (1 + symgrad.exp(x))),))
    >>> grad(log1pexp)(100.0), grad(grad(log1pexp))(0.0)
    (tensor(1.), tensor(0.2500))
    """

    kind = "custom_vjp"


class custom_jvp(_Custom):
    """A decorator for a function with a user-defined pushforward, which serves both modes, with JAX's interface.

    `f.defjvp(rule)` defines it: `rule(primals, tangents)` gets the arguments and their tangents as tuples and returns f's output and its
    tangent, ∂f/∂x · t, which must be linear in the tangents; a pullback is its transpose. `f.defjvps(*rules)` defines one rule
    `(tangent, output, *primals)` for each argument, None if the derivative is zero. Arguments at `nondiff_argnums` come first in
    `rule(*nondiff, primals, tangents)`. Arguments and outputs are trees of tensors and other things. The rule is differentiated for higher orders.
    The formula of the function is that of `f` itself.

    Raises AttributeError if no rule is defined; TypeError for a rule that returns another form or shape, and for keyword-only arguments;
    RuntimeError for a derivative by a captured tensor.

    >>> import symgrad
    >>> from symgrad.func import custom_jvp, grad, jvp
    >>> @custom_jvp
    ... def sinc(x):
    ...     return symgrad.where(x == 0, 1.0, symgrad.sin(x) / x)
    >>> sinc.defjvps(lambda t, y, x: t * symgrad.where(x == 0, 0.0, (symgrad.cos(x) - y) / x))
    >>> grad(sinc)(0.0), jvp(sinc, (1.0,), (1.0,))
    (tensor(0.), (tensor(0.8415), tensor(-0.3012)))
    """

    kind = "custom_jvp"
