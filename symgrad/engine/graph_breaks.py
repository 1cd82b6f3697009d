"""Numbers that leave the graph: where a function reads a tensor as plain numbers, and whether its graph depends on them.

A number that was read by `float()`, `item()`, `numpy()` or `detach()` enters the graph again as a constant. The graph is then not the function: its
formula and its derivatives are those at one value of the constant. Two calls at neighbouring points show it: the constants of their graphs differ.
"""

from __future__ import annotations

import dis
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import numpy as np

from symgrad.carriers.recorded import Recorded
from symgrad.errors import NUMPY, TRACKED_NUMBER
from symgrad.graph.modes import DEFAULT, Recorder, Scope, in_mode, special, thread
from symgrad.graph.node import GRADIENT, TRACKED, TRANSFORMED, Leaf, Node
from symgrad.graph.order import upstream
from symgrad.system.errorstate import quiet
from symgrad.system.frames import LIBRARIES, PACKAGE, line_of, outer_frame, user_frame

CONSTANTS = "constants"  # the mode `rule` of code whose numbers are constants, such as a solver whose solution is differentiated by its equation
_by_sequence = operator.attrgetter("sequence_nr")
FAR = (7.3, -3.1, 0.013, 1300.0)  # factors from a point to others
SPELLING = {"__float__": "float()", "__int__": "int()", "__complex__": "complex()", "__array__": "numpy.asarray()", "__index__": "an index",
            "_data": ".data", "__contains__": "in", "__copy__": "copy.copy()", "__deepcopy__": "copy.deepcopy()", "__reduce_ex__": "pickle",
            "__format__": "a format string", "__repr__": "repr()", "__str__": "str()"}


CONVERSIONS = tuple([os.path.join(PACKAGE, *path.split("/")) for path in (  # whose frames are part of a conversion
    "engine/graph_breaks.py", "methods/values.py", "methods/layout.py", "compat/storage.py")])
REMEDY = ("Compute with tensors: symgrad.stack in place of filling an array, symgrad.where in place of choosing by a number, symgrad.func.foreign "
          "for a function of arrays. Where the number is meant to be a constant, write .detach() before it")
REFUSALS = {NUMPY: "has a graph, since the derivative is differentiated again",
            "__array_ufunc__": "is no array", "no op computes it for": "is no array",
            "vmap: the plain array": "is a batch, with a value for each member"}


class ArrayNeeded(TypeError, RuntimeError):
    """The error for a rule that gives NumPy a tensor that is no array: one with a graph, or one of a batch."""


class explaining_arrays(Scope):
    """The scope of a user's rule: NumPy's error for a tensor that is no array becomes `ArrayNeeded`, with the line of the rule and the remedy.

    Where the rule is recorded, numbers of its tensors are refused: as constants they would lose their derivatives. Not so with `numbers`, for
    rules that are watched otherwise.
    """

    __slots__ = ()

    def __init__(self, numbers: bool = False) -> None:
        super().__init__(rule=not numbers)

    def __enter__(self) -> None:
        """Enter the mode of a recorded rule."""
        if thread.modes.grad:
            super().__enter__()

    def __exit__(self, kind: Any = None, *exception: Any) -> None:
        """Leave the mode, and explain an error."""
        super().__exit__(kind, *exception)
        error, trace = exception or (None, None)
        if not isinstance(error, (TypeError, RuntimeError)) or isinstance(error, ArrayNeeded):
            return
        why = next((why for words, why in REFUSALS.items() if words in str(error)), None)
        if why is not None:
            import traceback

            own = [f for f in traceback.extract_tb(trace) if not f.filename.startswith(LIBRARIES)]
            place = f"{own[-1].filename}, line {own[-1].lineno}: {own[-1].line}" if own else "a rule"
            raise ArrayNeeded(f"{place}\n    this rule calls NumPy with a tensor that {why}. Call symgrad's functions, or declare the NumPy function "
                              f"with symgrad.func.foreign, which takes such tensors") from error


def _source(tensor: Any) -> Node | None:
    node = tensor._node_slot
    return None if node is None else node.source


def _refuse_number(node: Node, frame: Any) -> None:
    """Refuse the number of a tensor with a graph for the lines of a user's rule; the library's own lines read numbers to check them."""
    if node.flags & TRACKED and not frame.f_code.co_filename.startswith(PACKAGE):
        import traceback  # only for a warning or an error

        line = traceback.extract_stack(frame, 1)[0]
        raise ArrayNeeded(f"{line.filename}, line {line.lineno}: {line.line}\n    this rule makes a plain number of a tensor that has a graph, since "
                          f"the derivative is differentiated again: the number would be a constant there. Compute with the tensor, or write "
                          f".detach() before a number that only decides what is done")


# Conversions of a tensor that is differentiated: refused, or a warning for the line. Nothing is said without grad mode, which states that constants
# are meant, and while `Escapes` observes, since its reports name the lines.


def number_read(tensor: Any, what: str, always: bool | None) -> None:
    """A number of a tensor with a node, or one that a program computes, is read by `what`, such as "float()".

    Warn if the tensor depends on an argument of a running transform; with `always`, too, if it is differentiated by plain autograd, as torch does;
    with None never. The library's own lines read numbers to check them.

    Raises RuntimeError where the number is assigned to an element of an array within a transform.
    """
    frame, node = _caller(), _source(tensor)
    if node is not None and thread.modes.rule is True:
        _refuse_number(node, frame)
    if special:
        tensor._escape()
    if always is not None and not frame.f_code.co_filename.startswith(PACKAGE):
        _tell_program(tensor)
        if node is not None and node.flags & GRADIENT:
            _number_left(node, what, always, frame)


def array_read(tensor: Any) -> None:
    """The elements of a tensor that is no array are read as one by a line of the user's."""
    if not _caller().f_code.co_filename.startswith(PACKAGE):
        _tell_program(tensor)


def _tell_program(tensor: Any) -> None:
    """Let the program that is being recorded know that its values leave the graph: its derivatives are not those of the function."""
    value = tensor._value
    if type(value) is Recorded and value.dtype.kind in "fcV" and not _is_silent():
        value.recorder.left.append(value.entry)


def constant_made(tensor: Any, what: str, always: bool = False) -> bool:
    """A function of the library makes a constant of a tensor: as `number_read`, whoever calls it; returns whether there was a warning."""
    _tell_program(tensor)
    node = _source(tensor)
    return node is not None and bool(node.flags & GRADIENT) and _number_left(node, what, always, None)


def _caller() -> Any:
    """The frame that called a conversion."""
    frame: Any = sys._getframe(2)
    while frame.f_code.co_filename in CONVERSIONS:
        frame = frame.f_back
    return frame


def _is_silent() -> bool:
    modes = thread.modes
    if not modes.grad or modes.rule is CONSTANTS or modes.recorder is not DEFAULT:
        return True
    return any([isinstance(observer, Escapes) for observer in modes.observers])


STORES, OPERATES = dis.opmap["STORE_SUBSCR"], dis.opmap["BINARY_OP"]
REMAINDER = 6  # the argument of BINARY_OP for %


def _instruction(frame: Any) -> tuple[int, int]:
    """The instruction that a frame is at, and its argument."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return (code[at], code[at + 1]) if 0 <= at < len(code) - 1 else (-1, 0)


def _number_left(node: Node, what: str, always: bool, frame: Any) -> bool:
    """Warn for a number that leaves the graph at a line, or refuse it; `frame` is the one whose instruction converts it, if that is known."""
    if _is_silent():
        return False
    gate = _open_gate(node)
    if gate is None and not always:
        return False
    operation = (-1, 0) if frame is None else _instruction(frame)
    if operation == (OPERATES, REMAINDER):  # "%f" % x: of the operators of Python and NumPy, only that of a text converts
        return False
    outer = outer_frame(1)
    if gate is not None:
        if operation[0] == STORES:
            raise _refused(gate, f"{line_of(outer)}\n    an element of an array cannot be a tensor that depends on an argument of the transform: its "
                                 f"derivative would be lost. {REMEDY}")
        _note(gate, f"{what} at {line_of(outer)}")
    text = f"{TRACKED_NUMBER}: the result of {what} is a constant to every derivative. {REMEDY}"
    words = outer.f_globals
    registry = words.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, UserWarning, outer.f_code.co_filename, outer.f_lineno, words.get("__name__"), registry)
    return True


def refuse_array(tensor: Any, what: str) -> None:
    """Refuse to make an array, or another object with a copy of the elements, of a tensor that depends on an argument of a running transform."""
    node = _source(tensor)
    if node is not None and node.flags & TRANSFORMED and not _caller().f_code.co_filename.startswith(PACKAGE) and not _is_silent():
        gate = _open_gate(node)
        if gate is not None:
            raise _refused(gate, f"{line_of(outer_frame(1))}\n    can't call {what} on a tensor that depends on an argument of the transform: its "
                                 f"derivative would be lost. {REMEDY}")


def array_refusal(what: str) -> RuntimeError:
    """The error for an array of a tensor that requires grad."""
    return RuntimeError(f"{NUMPY}.\n    {line_of(outer_frame(1))}\n    {what} would lose the derivative. {REMEDY}")


def _refused(gate: Any, message: str) -> RuntimeError:
    """The error of a message. NumPy may replace it by a ValueError, which the transform replaces again."""
    error = RuntimeError(message)
    _note(gate, error)
    return error


def _note(gate: Any, what: Any) -> None:
    gate.open = (gate.open if type(gate.open) is dict else {}) | {what: None}


def refusal_behind(error: BaseException, gates: Iterable[Any]) -> BaseException | None:
    """What NumPy replaced by an error of its own: a refusal of an element of an array."""
    if type(error) not in (ValueError, TypeError):
        return None
    noted = [key for gate in gates if type(gate.open) is dict for key in gate.open if isinstance(key, RuntimeError)]
    return noted[-1] if noted else None


def _open_gate(node: Node) -> Any:
    """An input of a running transform on which a node depends, if there is one: along the oldest parents first, which lead to it in few steps."""
    if not node.flags & TRANSFORMED:
        return None
    stack, seen = [node], {node}
    while stack:
        n = stack.pop()
        state = getattr(n, "open", None)
        if state is True or type(state) is dict:
            return n
        new = [p for p in n.parents if p is not None and p.flags & TRANSFORMED and p not in seen]
        new.sort(key=_by_sequence, reverse=True)
        seen.update(new)
        stack += new
    return None


def check_connected(left: Sequence[tuple[Node, dict[Any, None]]], roots: Sequence[Node | None], inputs: Sequence[Node], path: Sequence[Node],
                    caller: str) -> None:
    """Raise RuntimeError for an output without a graph to the inputs, or an input without one to an output, after numbers have left the graph.

    `left` are the inputs that numbers have left, with the lines; `path` are the nodes between the inputs and the outputs.
    """
    connected = {*inputs, *path}
    used = {*roots, *[p for node in path for p in node.parents]}
    lines = [line for gate, found in left if gate not in used for line in found]
    if not connected.issuperset(roots):
        lines = [line for _, found in left for line in found]
    if lines:
        raise RuntimeError(f"{caller}: the result is not connected to the arguments, and numbers of them have left the graph, so that the derivative "
                           f"would be 0:\n    " + "\n    ".join(map(str, lines)) + f"\n{REMEDY}")


class Escapes(Recorder):
    """An observer that notes each line at which a tensor with a graph is read as plain numbers, and the truth value of each `if`."""

    def __init__(self) -> None:
        self.lines: dict[str, None] = {}
        self.truths: list[bool] = []

    def escape(self, tensor: Any, shared: bool = False) -> None:
        """Note the conversion and its line."""
        node = _source(tensor)
        if thread.modes.recorder is DEFAULT and node is not None and node.flags & TRACKED:
            outside = user_frame(1)
            inside: Any = sys._getframe(1)
            while inside.f_back is not outside and inside.f_back is not None:
                inside = inside.f_back
            name = inside.f_code.co_name
            self.lines[f"{SPELLING.get(name, name + '()')} at {outside.f_code.co_filename}:{outside.f_lineno}"] = None

    def detach(self, tensor: Any) -> None:
        """Note a tensor that is detached."""
        self.escape(tensor)

    def branch(self, node: Node, truth: bool) -> None:
        """Keep the truth value."""
        self.truths.append(truth)

    def __str__(self) -> str:
        """The conversions and their lines."""
        return ", ".join(self.lines) or "a computation without grad mode, or by grad without create_graph"


@contextmanager
def observing() -> Iterator[Escapes]:
    """A context in which the graph keeps all values, and what leaves it is noted."""
    found = Escapes()
    with in_mode(keep_values=True, observers=(*thread.modes.observers, found)):
        yield found


def departure(here: Any, call: Callable[[list[np.ndarray]], Any], far: bool = False) -> str | None:
    """How the graph of a call differs from the function around its point, by further calls beside it; None where it is the function.

    A call has the node of its result as `root`, those of its inputs as `nodes`, and its `escapes`.

    A constant of the graph that changes when the inputs move a little is a number that left the graph. With `far`, where numbers left it, the
    graphs of far points are compared, too: a whole number changes only there. Where an `if` goes another way, nothing is said.
    """
    def found(places: Iterable[list[np.ndarray]]) -> Iterator[str | None]:
        for point in places:
            try:
                other = call(point)
            except Exception:  # whatever a user's function raises outside its domain
                continue
            if other.escapes.truths == here.escapes.truths:
                yield difference(here, other)

    values = [leaf.value for leaf in here.nodes]
    beside = list(found([_beside(v, sign) for v in values] for sign in (1, -1)))
    how = beside[0] if beside and None not in beside else None
    if how is None and far and here.escapes.lines:
        how = next(filter(None, found([(factor * v).astype(v.dtype) for v in values] for factor in FAR)), None)
    return how and f"{how}, because numbers leave the graph by {here.escapes}"


@quiet
def _beside(value: np.ndarray, sign: int) -> np.ndarray:
    """A point near another: half of the digits are the same."""
    step = float(np.finfo(value.dtype).eps) ** 0.5 if value.dtype.kind == "f" else 2.0**-4
    shares = 0.5 + np.modf((1 + np.arange(value.size)) * 0.6180339887498949)[0].reshape(value.shape) / 2
    return (value + sign * step * shares * np.where(value == 0, 1.0, value)).astype(value.dtype)


OF_LENGTHS = ("beyond_zero", "square_of_abs", "square_of_norm", "square_of_hypot")  # beside a power of a length that is 0


def difference(first: Any, second: Any) -> str | None:
    """What differs in the graphs of two calls but for the values of the inputs; None if nothing does."""
    one, other = upstream([first.root]), upstream([second.root])
    places: list[dict[Any, Any]] = [{None: None} | {leaf: i for i, leaf in enumerate(call.nodes)} for call in (first, second)]
    count = len(first.nodes)
    one, other = ([n for n in nodes if n not in known and _name(n) not in OF_LENGTHS] for nodes, known in zip((one, other), places))
    for k, (a, b) in enumerate(zip(one, other)):
        power, powered = _power(a), _power(b)
        if power is not None and powered is not None:  # recorded otherwise where the length is 0
            if power[1] != powered[1] or places[0].get(power[0]) != places[1].get(powered[0]):
                return "a power of a length is another one at another point"
            places[0][a] = places[1][b] = count + k
            continue
        if _name(a) != _name(b):
            return f"the operation {_name(a)} is {_name(b)} at another point"
        if [places[0].get(p) for p in a.parents] != [places[1].get(p) for p in b.parents]:
            return f"the operation {_name(a)} has other operands at another point"
        if isinstance(a, Leaf):
            if not _same(a.value, b.value):
                return "a tensor that requires grad has another value at another point"
        elif not all(map(_same, _constants(a), _constants(b))):
            return f"a constant of the operation {_name(a)} changes with the inputs"
        places[0][a] = places[1][b] = count + k
    if len(one) != len(other):
        return f"there are {len(one)} operations at one point and {len(other)} at another"
    return None


def _power(node: Node) -> tuple[Node, Any] | None:
    """The length of which a node is a power, and the exponent; None for another node."""
    if isinstance(node, Leaf):
        return None
    length: Any = node.parents[0] if node.parents else None
    if node.op.name == "power_of_length":
        return length.parents[0], node.args[2]  # type: ignore[index]
    if node.op.exponent is None or length is None or isinstance(length, Leaf) or not length.op.square or {*node.parents} - {length, None}:
        return None
    return length, node.op.exponent(node.args)  # type: ignore[arg-type]


def _constants(node: Node) -> list[Any]:
    """What an operation was called with that has no node; the level of a vmap, which is a number of each call, left out."""
    args, count = node.args or (), len(node.parents)
    operands = [x for p, x in zip(node.parents, args) if p is None]
    return operands + [x for p, x in zip_longest(node.op.parameters, args[count:]) if p is None or p.name != "level"]


def _name(node: Node) -> str:
    return "of a leaf" if isinstance(node, Leaf) else "pow" if node.op.name == "power_of_squares" else node.op.name


def _same(a: Any, b: Any) -> bool:
    """Whether two constants are the same: of truth values, which choose a branch, and of objects that are not numbers, the kind alone."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and (a.dtype == bool or a.tobytes() == b.tobytes())
    return a == b or a != a and b != b if isinstance(a, (int, float, complex, str, slice)) else True
