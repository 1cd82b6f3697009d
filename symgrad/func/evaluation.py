"""Evaluating a function for a transform: its inputs get fresh nodes, and its outputs are recorded from them."""

from __future__ import annotations

import dataclasses
import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, levels_of
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.recorded import Recorded
from symgrad.engine.data import as_value, copied
from symgrad.engine.graph_breaks import check_connected, refusal_behind
from symgrad.engine.saved import hold_unpacked
from symgrad.engine.storage.versions import owner
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.derivative import joined_inputs
from symgrad.graph.modes import DEFAULT, in_mode, thread
from symgrad.graph.node import GRADIENT, NAMED, TRACKED, TRANSFORMED, Node, all_threads, next_sequence
from symgrad.graph.op import Op
from symgrad.trees import LEAVES, Spec, flatten, names

LEAVES.update((Tensor, np.ndarray, np.float64, Batched, Recorded))


INSIDE = GRADIENT | TRANSFORMED
RERUN = "rerun"


class InputNode(Node):
    """The node of an argument of a transform, by which the transform differentiates; its parent is the argument's former node.

    It is open while the function runs: results of a nested transform must then be differentiable by it. `open` becomes a dict of the lines by which
    numbers leave the graph, if some do; it is RERUN for a call that is repeated and no transform.
    """

    __slots__ = ("open",)
    open: Any
    op = Op.of("input", "linear", lambda xp, x: x, lambda xp, g, y, args, needs: (g,), lambda xp, tangents, y, args: tangents[0], 1, ("input",), (),
            node_name="ViewBackward0", public=False, saves=False)
    vjp = staticmethod(op.vjp)  # type: ignore[arg-type]
    broadcasts = saves = selects = False

    def __init__(self, value: Any, source: Node | None):
        self.args, self.value, self.sequence_nr, self.open = (value,), value, next_sequence(), True
        self.parents, self.flags = ((), INSIDE) if source is None else ((source,), INSIDE | source.flags & TRACKED)

    def release(self) -> None:
        """Do nothing: the node saves no arguments."""


InputNode.__name__ = InputNode.__qualname__ = "ViewBackward0"


@dataclasses.dataclass(slots=True)
class Evaluation:
    """A function evaluated at a point.

    `inputs` are the differentiated tensors and `form` is their tree structure in the arguments. `output` is the returned value, `outputs` are the
    tensors in it and `shape` is their tree structure. `between` are the nodes from the inputs to the outputs, and `path` those without the inputs,
    oldest first. A pullback is limited to the nodes `wanted`: those between, or None if it reaches no others. `tracked` says that the results must
    be differentiable outside the transform.
    """

    inputs: list[Tensor]
    nodes: Sequence[Node]
    form: Spec
    output: Any
    outputs: list[Tensor]
    shape: Spec
    aux: Any
    between: set[Node]
    path: Sequence[Node]
    wanted: set[Node] | None
    tracked: bool
    _joined_inputs: Sequence[Node] = ()

    @property
    def joined_inputs(self) -> Sequence[Node]:
        """The inputs as parents of `DerivativeNode`s."""
        if not self._joined_inputs:
            self._joined_inputs = joined_inputs(self.nodes)
        return self._joined_inputs

    @property
    def calls_code(self) -> bool:
        """Whether a rule on the path may call user code."""
        return any(map(_calls_code, self.path))

    @property
    def plain(self) -> bool:
        """Whether the rules on the path compute with arrays only, so that no modes are needed."""
        return not self.tracked and not self.calls_code

    @property
    def xp(self) -> Any:
        """The carrier of derivatives: traced if the results are differentiable outside, else numeric."""
        return traced if self.tracked else numeric

    def tracked_if_any(self, others: Iterable[Tensor]) -> Evaluation:
        """The evaluation, tracked if one of the tensors is tracked."""
        return self if self.tracked or not thread.modes.grad or all(t._node is None for t in others) else dataclasses.replace(self, tracked=True)

    def with_outputs(self, outputs: list[Tensor]) -> Evaluation:
        """The evaluation with other outputs that were computed from its inputs."""
        between, path, wanted, _ = between_nodes([y._node for y in outputs], self.nodes)
        return dataclasses.replace(self, outputs=outputs, between=between, path=path, wanted=wanted)

    def split(self, x: Any) -> list[Any]:
        """Vectors over all elements of the inputs, along the last axis, as arrays of the shapes and dtypes of the inputs."""
        parts = np.split(x, np.cumsum([t.numel() for t in self.inputs])[:-1], -1)
        return [part.reshape((*x.shape[:-1], *t.shape)).astype(t._value.dtype, copy=False) for part, t in zip(parts, self.inputs)]

    def detach(self, tree: Any) -> Any:
        """The tensors as results of the transform: detached from its graph unless tracked, in memory without other references."""
        leaves, form = flatten(tree)
        return form.unflatten([_as_result(t, self.tracked) if isinstance(t, Tensor) else t for t in leaves])

    def returned_output(self) -> Any:
        """The outputs as results of the transform; an input that is returned unchanged is copied."""
        found = [wrap(copied(t._value)) if t._node is None and not isinstance(t._value, DuckArray) else _as_result(t,
                                                                                                                 self.tracked) for t in self.outputs]
        return self.shape.unflatten(found)


def _as_result(t: Tensor, tracked: bool) -> Tensor:
    """A tensor as a result of the transform."""
    value = t._value
    own = isinstance(value, DuckArray) or type(value) is np.ndarray and value.flags.writeable
    if own or type(t._node) is not InputNode and isinstance(value, np.generic):
        return t if tracked or t._node is None else wrap(value)
    if tracked:
        with recording(True):
            return traced.clone(t)
    return wrap(copied(value))


def unshared(x: Any) -> Any:
    """A value in memory without other references: the value itself, or a copy if there are other references.

    The caller holds one reference to it, as a variable, an attribute or an item. A batched value is returned unchanged, since it is never written.
    """
    if type(x) is np.ndarray:
        base = x.base
        alone = sys.getrefcount(x) <= 3 and (base is None or type(base) is np.ndarray and sys.getrefcount(base) <= 3 and _is_separate(x))
        return x if alone else x.copy()
    return copied(x) if isinstance(x, np.generic) and sys.getrefcount(x) > 3 else x


def unshared_results(ev: Evaluation, tensors: Sequence[Tensor], given: Iterable[Tensor] = ()) -> list[Tensor]:
    """Results of a transform in memory that they do not share with an argument, a constant or another result.

    References cannot be counted for results with a graph, since the graph refers to their memory as well. These are compared with the memory of
    the function and of the tensors `given` to the transform.
    """
    if not ev.tracked:
        return [t if (value := unshared(t._value)) is t._value else wrap(value) for t in tensors]
    values = [x._value for x in (*ev.inputs, *given)]
    for node in ev.path:
        values.append(node.value)
        values += node.args or ()
    held = {*map(id, values), *[id(owner(a)) for a in values if type(a) is np.ndarray]}
    out = []
    for t in tensors:
        key = _memory_key(t._value)
        if key is not None and (key in held or type(t._value) is np.ndarray and not _is_separate(t._value)):
            with recording(True):
                t = traced.clone(t)
            key = _memory_key(t._value)
        held.add(key)
        out.append(t)
    return out


def _is_separate(x: np.ndarray) -> bool:
    """Whether an array is writeable and none of its elements share memory."""
    return x.flags.writeable and 0 not in x.strides


def _memory_key(x: Any) -> Any:
    """A key that identifies the memory of a value; None for batched values, which are never written."""
    if type(x) is np.ndarray:
        return id(owner(x))
    return id(x) if isinstance(x, np.generic) else None


def recording(enabled: bool, alone: bool = False) -> in_mode:
    """Switch recording on or off; with `alone` the default recorder is used in place of the thread's."""
    return in_mode(grad=enabled, recorder=DEFAULT) if alone else in_mode(grad=enabled)


def function_name(func: Callable[..., Any]) -> str:
    """The name of the function for error texts."""
    return getattr(func, "__name__", None) or type(func).__name__


def check_argnums(argnums: Any, caller: str) -> None:
    """Raise TypeError if arguments of the function were passed as `argnums`, as in grad(f, x)."""
    if isinstance(argnums, (Tensor, np.ndarray, float)) or isinstance(argnums, (list, tuple)) and any(isinstance(n, (Tensor, np.ndarray, float))
                                                                                                        for n in argnums):
        raise TypeError(f"{caller}: argnums is of type {type(argnums).__name__}; expected an int or a tuple of ints, the places of the arguments to "
                        f"differentiate by. The result is a function: call it with the arguments, as in {caller}(func)(x)")


def _argument_positions(argnums: Any, count: int, caller: str) -> tuple[tuple[int, ...], bool]:
    """The positions of the differentiated arguments, and whether `argnums` is a single int."""
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,), True
    alone = isinstance(argnums, (int, np.integer)) and not isinstance(argnums, bool)
    if not alone and not (isinstance(argnums, (tuple, list)) and argnums and all(isinstance(n, (int, np.integer)) for n in argnums)):
        raise RuntimeError(f"{caller}: argnums must be an int or a tuple of ints, not {argnums!r}")
    given = (argnums,) if alone else tuple(argnums)
    for n in given:
        if not -count <= n < count:
            raise RuntimeError(f"{caller}: argnums={argnums!r} is out of range: the function was called with {count} positional argument"
                               f"{'s' * (count != 1)}")
    places = tuple(n % count for n in given)
    if len(set(places)) != len(places):
        raise RuntimeError(f"{caller}: argnums={argnums!r} names an argument twice")
    return places, alone


def _parameter_name(func: Callable[..., Any], place: int) -> str:
    """The name of a positional argument."""
    try:
        found = [p.name for p in inspect.signature(func).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        found = []
    return found[place] if place < len(found) else f"argument {place}"


def as_tensors(leaves: Iterable[Any], words: Callable[[], Sequence[str]], caller: str) -> list[Tensor]:
    """Leaves of arguments as tensors that can be differentiated.

    Raises TypeError for leaves that are not numbers, and RuntimeError for integers and booleans.
    """
    out = []
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, Tensor):
            if not isinstance(leaf, (float, int, complex, np.ndarray, np.generic, DuckArray)):
                raise TypeError(f"{caller}: {words()[i]} is {type(leaf).__name__}; it is differentiated, so it must be a Tensor, an array or a "
                                f"number, or a tree of them; choose other argnums")
            leaf = wrap(as_value(float(leaf) if type(leaf) is int else leaf))
        if leaf._value.dtype.kind in "biu":
            raise RuntimeError(f"{caller}: {words()[i]} has dtype {leaf.dtype}, which cannot be differentiated; convert it with .to(float64), or "
                               f"choose other argnums")
        out.append(leaf)
    return out


def _read_only_view(value: Any) -> Any:
    """A read-only view of the value, so that the function cannot write to its argument."""
    if isinstance(value, np.ndarray):
        value = value[...]
        value.setflags(write=False)
    return value


def _repeat_for_level(t: Tensor, level: int, count: int) -> Tensor:
    """An unbatched tensor repeated for each member of a batch, so that it has a derivative for each member."""
    return traced.batch(traced.expand(t, (count, *t.shape)), 0, level)


def evaluate(func: Callable[..., Any], args: tuple, kwargs: dict[str, Any], argnums: Any, caller: str, has_aux: bool = False) -> Evaluation:
    """Call a function with fresh nodes for the arguments at `argnums`.

    Raises TypeError and RuntimeError for arguments that cannot be differentiated, for `argnums` out of range, for a function that writes to its
    arguments, and for an output that is not a tensor.
    """
    places, alone = _argument_positions(argnums, len(args), caller)
    chosen = args[places[0]] if alone else tuple(args[n] for n in places)
    leaves, form = flatten(chosen)

    def words() -> list[str]:
        if alone:
            return names(chosen, _parameter_name(func, places[0]))
        return [word for n in places for word in names(args[n], _parameter_name(func, n))]

    given = as_tensors(leaves, words, caller)
    modes = thread.modes
    for level, count, _ in modes.batches:
        given = [t if level in levels_of(t._value) else _repeat_for_level(t, level, count) for t in given]
    outside = modes.grad
    nodes = [InputNode(_read_only_view(t._value), t._node if outside else None) for t in given]
    inputs = [wrap(node.value, node) for node in nodes]
    tree = form.unflatten(inputs)
    call = list(args)
    for n, argument in zip(places, (tree,) if alone else tree):
        call[n] = argument
    try:
        if outside and modes.saving is None:  # without the scope below, which costs as much as three operations
            output = func(*call, **kwargs)
            if thread.modes is not modes:
                thread.modes = thread.modes.changed({"grad": True})
        else:
            with in_mode(grad=True, keep_values=modes.keep_values or modes.saving is not None):  # pushforwards read values that hooks pack
                output = func(*call, **kwargs)
    except BaseException as error:
        thread.modes = modes
        if isinstance(error, (ValueError, RuntimeError)) and "read-only" in str(error):
            raise _mutation_error(func, words(), caller) from error
        if (refusal := refusal_behind(error, nodes)) is not None:
            raise refusal from None
        raise
    finally:
        left: Any = ()
        for node in nodes:
            if node.open is not True:
                left = *left, (node, node.open)
            node.open = False
    for t, node in zip(inputs, nodes):
        if t._node_slot is not node:
            raise _mutation_error(func, [words()[nodes.index(node)]], caller)
    aux = None
    if has_aux:
        if not isinstance(output, tuple) or len(output) != 2:
            raise RuntimeError(f"{caller}: with has_aux=True the function must return a tuple (output, aux); {function_name(func)} returned "
                               f"{type(output).__name__}")
        output, aux = output
    outputs, shape = flatten(output)
    for i, y in enumerate(outputs):
        if not isinstance(y, Tensor):
            if not isinstance(y, (float, int, np.ndarray, np.generic)):
                raise RuntimeError(f"{caller}: {function_name(func)} must return Tensors; {names(output, 'output')[i]} is {type(y).__name__}")
            outputs[i] = wrap(as_value(y))
    between, path, wanted, foreign = between_nodes([y._node for y in outputs], nodes)
    if left:
        check_connected(left, [y._node for y in outputs if y._value.dtype.kind in "fcV"], nodes, path, caller)
    if all_threads.packed and (outside and foreign or caller not in ("grad", "vjp")):  # a pullback alone unpacks each tensor when it is needed
        hold_unpacked(path)
    return Evaluation(inputs, nodes, form, output, outputs, shape, aux, between, path, wanted, outside and foreign)


def _mutation_error(func: Callable[..., Any], words: Sequence[str], caller: str) -> RuntimeError:
    return RuntimeError(f"{caller}: {function_name(func)} writes in place to its argument {' or '.join(words)}; a transform needs a function that "
                        f"leaves its arguments as they are: clone() the argument first, or use the form of the operation that returns a new tensor")


_by_sequence, _calls_code = map(operator.attrgetter, ("sequence_nr", "calls_code"))


def between_nodes(roots: Sequence[Node | None], inputs: Sequence[Node]) -> tuple[set[Node], list[Node], set[Node] | None, bool]:
    """The nodes from the inputs to the roots; the same without the inputs in order; the nodes to which a pullback is limited (None if it reaches no
    others); and whether the roots depend on a node that is differentiable outside the transform."""
    seen, found, only_inputs = set(inputs), list[Node](), True
    for root in roots:
        if root is not None and root.flags & GRADIENT and root not in seen:
            seen.add(root)
            found.append(root)
    for node in found:  # the loop extends the list
        inside = False
        for p in node.parents:
            if p in seen:
                inside = True
            elif p is not None and p.flags & GRADIENT:
                inside = True
                seen.add(p)
                found.append(p)
        if not inside:
            only_inputs = False
    found.sort(key=_by_sequence)
    foreign = any([node.parents or node.flags & NAMED for node in inputs])
    if only_inputs:  # every node found depends on the inputs alone
        return seen, found, seen if foreign else None, foreign
    wanted, path = set[Node](inputs), []
    for node in found:
        parents = node.parents
        if not parents:
            foreign = foreign or type(node) is not InputNode or node.open or thread.modes.replays_calls
        elif not wanted.isdisjoint(parents):
            wanted.add(node)
            path.append(node)
    return wanted, path, wanted, foreign


def scalar_output(ev: Evaluation, func: Callable[..., Any], caller: str) -> Tensor:
    """The output of a function that must return a real scalar.

    Raises RuntimeError for any other output.
    """
    if len(ev.outputs) != 1 or ev.shape.kind is not None:
        raise RuntimeError(f"{caller}: {function_name(func)} must return a single scalar Tensor, not {type(ev.output).__name__}; use jacrev or "
                           f"jacfwd for several outputs, or has_aux=True to return something beside it")
    (y,) = ev.outputs
    if y._value.ndim:
        raise RuntimeError(f"{caller}: {function_name(func)} must return a scalar, but its output has shape {list(y.shape)}; reduce it with .sum(), "
                           f"or use jacrev, jacfwd or vmap for a function of several outputs")
    if y._value.dtype.kind not in "fV":
        raise RuntimeError(f"{caller}: {function_name(func)} must return a real floating-point scalar, but its output has dtype {y.dtype}")
    return y
