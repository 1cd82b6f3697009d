"""Taylor mode: derivatives of any order along a path, in one pass over the recorded function.

Nested derivatives of order K cost exponentially in K, because each level differentiates the graphs of all levels below. Here the function is
recorded once and truncated power series are propagated through the graph: the cost is quadratic in K.

Source: J. Bettencourt, M. J. Johnson and D. Duvenaud, Taylor-Mode Automatic Differentiation for Higher-Order Derivatives in JAX, 2019.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.guarding import guarded, has_nan
from symgrad.carriers.series import SeriesCarrier
from symgrad.carriers.taylor import Series, value
from symgrad.engine.data import as_value
from symgrad.engine.operands import NUMBERS
from symgrad.engine.recording import core
from symgrad.engine.saved import read, read_traced
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.engine.unmoved import drops, plus_zeros_by_factors, stilled, unmoved, unmoved_by, without, zeros_of
from symgrad.func.calling import transform
from symgrad.func.evaluation import Evaluation, evaluate, function_name, unshared_results
from symgrad.func.recorded_series import coefficient_node, without_trailing_zeros
from symgrad.graph.common import OutputNode, OutputValues
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import PACKED, Node, all_threads
from symgrad.graph.op import Op
from symgrad.system.errorstate import computed_outside, quietly
from symgrad.trees import LEAF

MODERATE = 100  # the order up to which the factorials take less than half of the range of floats
HIGHEST = 821  # the order up to which all factors between derivatives and coefficients are floats
MAX_UNRELEASED_NODES = 64  # series are not released in graphs of at most this many nodes

# One pass over the graph


@functools.cache
def _core(op: Op) -> Callable[..., Any]:
    """The function that applies an op to Tensors, with the op's own arguments."""
    function = core(op)

    def call(*args: Any) -> Any:
        y = function(*args)
        return _outputs(y._value, y._node) if isinstance(y._value, tuple) else y

    return call


def _outputs(values: Sequence[Any], node: Node | None) -> Any:
    """The values of a node with several outputs, as Tensors."""
    return OutputValues(wrap(value, None if node is None else OutputNode(node, k)) for k, value in enumerate(values))


def _propagate(ev: Evaluation, paths: Sequence[Sequence[Any]], order: int, caller: str, stays: Any = None) -> dict[Node, Any]:
    """The series of every node between the inputs and the outputs, oldest first, from those of the inputs; a tuple for several outputs.

    `stays` are the elements that do not move, for a guarded pass.
    """
    known: dict[Any, Any] = {}
    computed_outside(_propagation(known, ev, paths, order, caller, stays))
    return known


def _propagation(known: dict[Any, Any], ev: Evaluation, paths: Sequence[Sequence[Any]], order: int, caller: str,
                 stays: Any) -> Generator[Callable[[], Any], Any, None]:
    tracked = ev.tracked
    carrier = SeriesCarrier(traced, order, _core, wrap) if tracked else SeriesCarrier(numeric, order)
    reading = read_traced if tracked else read
    known.update((node, carrier.polynomial(path)) for node, path in zip(ev.nodes, paths))

    def series(node: Any, tensors: Sequence[Any], y: Any, args: tuple) -> Any:
        op, count = node.op, len(node.parents)
        if op.kind == "function":
            found = _first_order(carrier, node, tensors, y, args, caller)
        else:
            first = _outputs(node.value, node) if tracked and isinstance(node.value, tuple) else y
            found = carrier.apply(op, tensors, args[count:], first=first)
            if stays is not None:
                again = functools.partial(carrier.apply, op, parameters=args[count:], first=first)
                found = _guarded(carrier, again, tensors, found, node, selects and drops(op, [*map(known.__contains__, node.parents)]), stays)
        carrier.solve()
        return found

    finished, selects = _last_uses(ev), stays is not None and any([node.selects for node in ev.path])
    for node in ev.path:
        if node in known:
            continue
        parents = node.parents
        if type(node) is DerivativeNode:
            known[node] = known.get(parents[0]) or carrier.lift_value(node.value)
            continue
        written = node.sequence_nr < all_threads.written
        read_it = functools.partial(reading, node, [p if p in known else None for p in parents] if written else None)
        y, args = (yield read_it) if node.flags & PACKED else read_it()
        tensors = [known[p] if p in known else a if type(a) in NUMBERS else carrier.lift_value(a) for p, a in zip(parents, args)]
        if written:  # a parent's value may have been written since, but the node saved the former value
            tensors = [carrier.polynomial([a, *x.terms[1:]]) if p in known and type(x) is Series else x for p, a, x in zip(parents, args, tensors)]
        call = functools.partial(series, node, tensors, y, args)
        known[node] = (yield call) if node.outside else call()
        for p in finished.get(node, ()):
            known.pop(p, None)
    carrier.close()


def _guarded(carrier: SeriesCarrier, compute: Callable[[Sequence[Any]], Any], tensors: Sequence[Any], y: Any, node: Node, selects: bool,
             stays: Mapping[Node, Any]) -> Any:
    """The series `y` of a node in a guarded pass, without the products of elements that stay."""
    carrier.solve()
    if type(y) is not Series:
        return y
    xp, moving = carrier.base, [i for i, x in enumerate(tensors) if type(x) is Series]

    def terms(given: Sequence[Any]) -> list[Any]:
        moved, rest = [*tensors], iter(given)
        for i in moving:
            moved[i] = carrier.polynomial([tensors[i].terms[0], *itertools.islice(rest, len(tensors[i].terms) - 1)])
        out = compute(moved)
        carrier.solve()
        return [*map(value, out.terms[1:])]

    found: Sequence[Any] = [*map(value, y.terms[1:])]
    checked = found
    if selects:
        checked = guarded(xp, terms, [value(t) for i in moving for t in tensors[i].terms[1:]], found)
    if node.op.kind == "elementwise" and any([has_nan(xp, t) for t in found]):
        masks = {i: unmoved_by(node, i, stays) for i in moving}
        if any([m is not None for m in masks.values()]):
            others = terms([stilled(xp, value(t), masks[i]) for i in moving for t in tensors[i].terms[1:]])
            args, still = [x.terms[0] if type(x) is Series else x for x in tensors], [i for i, m in masks.items() if m is not None]
            others = [plus_zeros_by_factors(xp, node, still, other, args, stays) for other in others]
            checked = [xp.where(xp.isnan(t), other, t) for t, other in zip(checked, others)]
    if (mask := stays.get(node)) is not None:
        checked = [without(xp, t, mask) for t in checked]
    return y if checked is found else carrier.polynomial([y.terms[0], *checked])


def _last_uses(ev: Evaluation) -> dict[Node, list[Node]]:
    """For each node of a long graph, the nodes whose series have their last use there."""
    last: dict[Node, Node] = {}
    if len(ev.path) > MAX_UNRELEASED_NODES:
        for node in ev.path:
            for p in node.parents:
                if p is not None:
                    last[p] = node
        for y in ev.outputs:
            if y._node is not None:
                last.pop(y._node, None)
    out: dict[Node, list[Node]] = {}
    for p, node in last.items():
        out.setdefault(node, []).append(p)
    return out


def _first_order(carrier: SeriesCarrier, node: Any, series: Sequence[Any], y: Any, args: tuple, caller: str) -> Any:
    """The series of a custom Function up to order 1, by its own pushforward.

    Raises NotImplementedError for a higher order, and for a Function without a pushforward.
    """
    name, order = node.op.name, carrier.order
    if order > 1:
        raise NotImplementedError(f"{caller}: the custom Function {name} defines its first derivative, but not its Taylor coefficients of "
                                  f"order {order}; use order 1, or write {name} with symgrad's operations")
    tangents = [x.terms[1] if order and type(x) is Series and len(x.terms) > 1 else None for x in series]
    tangents = [np.float64(t) if type(t) is float else t for t in tangents]
    try:
        found = node.op.jvp(carrier.base, tangents, y, args) if order else None
    except NotImplementedError as error:
        raise NotImplementedError(f"{caller}: the custom Function {name} has no jvp; give it a static method jvp(ctx, *tangents), or write it with "
                                  f"symgrad's operations") from error
    if not node.many:
        return carrier.polynomial([y] if found is None else [y, found])
    values = _outputs(node.value, node) if carrier.base is traced else y
    return tuple(carrier.polynomial([v] if t is None else [v, t]) for v, t in zip(values, found or (None,) * len(values)))


# Arguments and results


def _coefficient(given: Any, primal: Tensor, words: Callable[[int, int], str], i: int, k: int, caller: str) -> Tensor:
    """A coefficient as a Tensor of the primal's shape and dtype."""
    if isinstance(given, Tensor) and given._value.dtype is primal._value.dtype and given._value.shape == primal._value.shape:
        return given
    name, primal_name = words(i, k), words(i, -1)
    if not isinstance(given, Tensor):
        try:
            given = wrap(as_value(given, None if isinstance(given, (np.ndarray, np.generic)) else primal._value.dtype))
        except (TypeError, ValueError):
            raise TypeError(f"{caller}: {name} must be a Tensor, an array or a number, not {type(given).__name__}") from None
    if tuple(given.shape) != tuple(primal.shape):
        raise ValueError(f"{caller}: {name} has shape {list(given.shape)}, but {primal_name} has shape {list(primal.shape)}; every coefficient of an "
                         f"argument has the argument's shape")
    if given._value.dtype.kind == "c" and primal._value.dtype.kind != "c":
        raise TypeError(f"{caller}: {name} is complex and {primal_name} is real; make {primal_name} complex, too")
    return given if given._value.dtype == primal._value.dtype else given.to(primal.dtype)


def _check_single_tensor(x: Any, name: str, caller: str) -> None:
    """Raise for an argument that is a tree."""
    if not isinstance(x, (Tensor, np.ndarray, np.generic, float, int, complex, DuckArray)):
        raise TypeError(f"{caller}: {name} must be a Tensor, an array or a number, not {type(x).__name__}; make the parts of a tree arguments of "
                        f"their own")


def _factors(order: int, caller: str) -> list[float]:
    """The derivatives of orders 1 to `order` over the coefficients: k! / sᵏ for the parameter t = s τ of the path.

    Above `MODERATE` orders the coefficients for s = 1 may underflow, and the factorials overflow. A power of two changes no digit.
    """
    if order > HIGHEST:
        raise ValueError(f"{caller}: order {order} is above {HIGHEST}, where derivatives and Taylor coefficients differ by factors that no float is; "
                         f"use jet with factorial_scaled=False")
    bits = round(math.log2(order / math.e)) - 1 if order > MODERATE else 0  # which loses as little above as below
    return [math.factorial(k) / 2 ** (bits * k) for k in range(1, order + 1)]


def _propagated_coefficients(func: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], order: int, scaled: bool,
                             words: Callable[[int, int], str], caller: str) -> tuple[Evaluation, list[list[Tensor]]]:
    """The function evaluated at the primals, and the coefficients 1 to `order` of each of its outputs.

    `scaled` says whether the given and the returned coefficients are derivatives, that is, multiplied by the factorial of their order.
    """
    ev = evaluate(func, tuple(primals), {}, tuple(range(len(primals))), caller)
    given = [[_coefficient(c, x, words, i, k, caller) for k, c in enumerate(row)] for i, (row, x) in enumerate(zip(series, ev.inputs))]
    ev = ev.tracked_if_any([c for row in given for c in row])
    factors = _factors(order, caller) if scaled else [1.0] * order
    if ev.tracked:
        found = coefficient_node(ev, ev.outputs[0], given, factors) if len(ev.outputs) == 1 else None
        if found is not None:
            return ev, [unshared_results(ev, found, [c for row in given for c in row])]
        paths = [[x, *_divided(row, factors)] for x, row in zip(ev.inputs, given)]
    else:
        paths = [[x._value, *quietly(_divided, without_trailing_zeros([c._value for c in row]), factors)] for x, row in zip(ev.inputs, given)]
    known = _propagate(ev, paths, order, caller)
    ends = [known[y._node].terms[1:] if y._node in known else () for y in ev.outputs]
    xp = ev.xp
    if any([has_nan(xp, value(t)) for terms in ends for t in terms]):
        known = _propagate(ev, paths, order, caller, quietly(unmoved, ev.path, {node: zeros_of(path[1:]) for node, path in zip(ev.nodes, paths)}))
        ends = [known[y._node].terms[1:] if y._node in known else () for y in ev.outputs]
    rows = [quietly(_result_coefficients, ev, y, terms, factors) for y, terms in zip(ev.outputs, ends)]
    del known, paths, ends
    return ev, [unshared_results(ev, row, [c for row in given for c in row]) for row in rows]


def _divided(coefficients: Sequence[Any], factors: Sequence[float]) -> list[Any]:
    return [c if f == 1 else c / f for c, f in zip(coefficients, factors)]


def _result_coefficients(ev: Evaluation, y: Tensor, terms: Sequence[Any], factors: Sequence[float]) -> list[Tensor]:
    """The coefficients of an output as results of the transform."""
    row = []
    for k, f in enumerate(factors):
        t = terms[k] if k < len(terms) else numeric.zeros_like(y._value)
        t = t * f if f != 1 else t
        if y._value.dtype.kind == "V" and not isinstance(t, Tensor):
            t = numeric.astype(t, y._value.dtype)  # NumPy's products of bfloat16 and Python numbers are float32
        if ev.tracked:
            t = t if isinstance(t, Tensor) else wrap(t)
            row.append(wrap(t._value, DerivativeNode(t._value, t._node, ev.joined_inputs)))  # so that a constant derivative can be differentiated
        else:
            row.append(wrap(np.float64(t) if type(t) is float else t))
    return row


# The public functions


def _check_order(order: Any, caller: str) -> int:
    if isinstance(order, bool) or not hasattr(order, "__index__"):
        raise TypeError(f"{caller}: order must be an integer, not {type(order).__name__} ({order!r})")
    if order.__index__() < 0:
        raise ValueError(f"{caller}: order must be at least 0, but got {order}; 0 gives the value alone")
    return order.__index__()


def jet(func: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], factorial_scaled: bool = True) -> tuple[Any, Any]:
    """The value of a function and its derivatives along a path, to any order: Taylor mode.

    For arguments xᵢ(t) with the value `primals[i]` and the derivatives `series[i]` = [xᵢ', xᵢ'', ...] at t = 0, the result is
    f(x(0)) and the list of as many derivatives of f(x(t)) at 0. With `factorial_scaled=False` both `series` and the result have Taylor coefficients
    in place of derivatives: the k-th is the k-th derivative over k!. A function may return a tree of Tensors; then the second result
    has a list at each leaf. The cost grows with the square of the order, that of nested derivatives exponentially. The results can be
    differentiated if the arguments or the coefficients can.

    Each coefficient of a product is a sum of products of coefficients. Where they cancel, digits are lost, by the growth of the terms over that of
    the result: for sin(x) exp(x), whose n-th derivative is of size 2^(n/2), the terms add up to 2^n, and the relative error grows
    as 2^(n/2): it is about 2e-10 at order 48 and 2e-2 at order 100. Nested derivatives add up the same terms.

    Raises TypeError and ValueError for primals and series that do not fit together, RuntimeError for integers, NotImplementedError for a custom
    Function beyond order 1.

    >>> from symgrad.func.taylor import jet
    >>> jet(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],))
    (tensor(8.), [tensor(12.), tensor(12.), tensor(6.)])

    Source: the meaning is that of jax.experimental.jet.
    """
    for name, given in (("primals", primals), ("series", series)):
        if not isinstance(given, (tuple, list)):
            raise TypeError(f"jet: {name} must be a tuple with one entry for each argument of the function, not {type(given).__name__}")
    if len(primals) != len(series):
        raise ValueError(f"jet: there are {len(primals)} primals and {len(series)} series; give one list of coefficients for each argument")
    for i, (x, row) in enumerate(zip(primals, series)):
        if not isinstance(row, (tuple, list)):
            raise TypeError(f"jet: series[{i}] must be a list of coefficients [x', x'', ...], not {type(row).__name__}")
        if len(row) != len(series[0]):
            raise ValueError(f"jet: series[{i}] has {len(row)} coefficients and series[0] has {len(series[0])}; fill the shorter one up with zeros")
        _check_single_tensor(x, f"primals[{i}]", "jet")
    if not primals:
        raise ValueError("jet: give at least one primal")
    ev, rows = _propagated_coefficients(func, primals, series, len(series[0]), factorial_scaled,
                                        lambda i, k: f"primals[{i}]" if k < 0 else f"series[{i}][{k}]", "jet")
    return ev.returned_output(), ev.shape.unflatten(rows)


@transform
def directional_derivatives(func: Callable[..., Any], order: int) -> Callable[..., Any]:
    """The function (x, v) ↦ (f(x), Df(x)[v], D²f(x)[v, v], ...) up to an order: the derivatives of f(x + t v) by t at 0.

    For a function of several arguments, x and v are tuples with one point and one direction per argument. Each result has the form of the function's
    output. All of them are computed in one pass in Taylor mode.

    Raises ValueError for a negative order and for a direction of another shape than its point, TypeError for another number of them, RuntimeError for
    integers.

    >>> import symgrad
    >>> from symgrad.func.taylor import directional_derivatives
    >>> x, v = symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 0.0])
    >>> directional_derivatives(lambda x: x[0] ** 2 * x[1], 3)(x, v)
    (tensor(2.), tensor(4.), tensor(4.), tensor(0.))
    """
    caller = "directional_derivatives"
    order = _check_order(order, caller)

    def transformed(x: Any, v: Any) -> tuple[Any, ...]:
        several = isinstance(x, (tuple, list))
        if isinstance(v, (tuple, list)) != several or several and len(x) != len(v):
            raise TypeError(f"{caller}: x and v must both be one tensor, or tuples of as many; give a direction v for each point x")
        points, along = (x, v) if several else ((x,), (v,))

        def words(i: int, k: int) -> str:
            return ("x" if k < 0 else "v") + (f"[{i}]" if several else "")

        for i, each in enumerate(points):
            _check_single_tensor(each, words(i, -1), caller)
        ev, rows = _propagated_coefficients(func, points, [[each][:order] for each in along], order, True, words, caller)
        return (ev.returned_output(), *(ev.shape.unflatten([row[k] for row in rows]) for k in range(order)))

    return transformed


@transform
def derivatives(func: Callable[..., Any], order: int) -> Callable[..., Any]:
    """The function x ↦ (f(x), f'(x), f''(x), ...) up to an order, for a function of one number.

    For an elementwise function of a tensor the derivatives at all elements are computed at once.

    Raises ValueError for a negative order and for a function whose value has another shape than its argument, RuntimeError for integers.

    >>> import symgrad
    >>> from symgrad.func.taylor import derivatives
    >>> derivatives(symgrad.sin, 3)(symgrad.tensor(0.0))
    (tensor(0.), tensor(1.), tensor(-0.), tensor(-1.))
    """
    caller = "derivatives"
    order = _check_order(order, caller)

    def transformed(x: Any) -> tuple[Tensor, ...]:
        _check_single_tensor(x, "x", caller)
        ones = wrap(np.ones_like(as_value(x)))
        ev, rows = _propagated_coefficients(func, (x,), [[ones][:order]], order, True, lambda i, k: "x", caller)
        if ev.shape != LEAF or ev.outputs[0].shape != ev.inputs[0].shape:
            found = list(ev.outputs[0].shape) if ev.shape == LEAF else ev.shape
            raise ValueError(f"{caller}: {function_name(func)} must return a Tensor of the shape of x, {list(ev.inputs[0].shape)}, but it returned "
                             f"{found}; use jet or directional_derivatives for other functions")
        return (ev.returned_output(), *rows[0])

    return transformed
