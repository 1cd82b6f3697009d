"""Why a gradient is not finite: the first value of the forward pass that was not, or the local derivative that made it so.

What an explanation needs is taken down when the cause is met, since the values may be gone later; formulas are made only for the text.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched
from symgrad.graph.link import Link
from symgrad.graph.node import Leaf, Node
from symgrad.graph.op import Op

__all__ = ["Cause", "Forward", "Local", "Record", "finite", "first_forward", "pulled", "record_of", "whole"]

VALUES = (np.ndarray, np.generic)
FEW = 6  # elements of which a formula is still read
Place = tuple[int, ...]


class Record(NamedTuple):
    """Who called an operation: the stack, innermost first, and for one that a backward ran, the name and record of the node it was at."""

    stack: tuple[tuple[CodeType, int], ...]
    inducer: tuple[str, Record | None] | None

    @property
    def line(self) -> str:
        """The file, the line number and the text of the user's line."""
        code, number = self.stack[0]
        text = linecache.getline(code.co_filename, number).strip()
        return f"{code.co_filename}:{number}" + (f": {text}" if text else "")

    @property
    def traceback(self) -> str:
        """The stack as Python prints it."""
        lines = []
        for code, number in reversed(self.stack):
            text = linecache.getline(code.co_filename, number).strip()
            lines.append(f'  File "{code.co_filename}", line {number}, in {code.co_name}\n' + (f"    {text}\n" if text else ""))
        return "".join(lines)


def record_of(node: Node) -> Record | None:
    """Who called the operation of a node; None where that was not noted."""
    return getattr(node, "record", None)


def _lines(record: Record | None) -> str:
    """Where an operation was called, and for one of a backward, where that came from; on lines of their own."""
    out = ""
    name = ""
    while True:
        prefix = f"in the backward of {name}, called at " if name else ""
        out += f"\n    {prefix}{'an unknown line: there is no forward record, for anomaly mode was off' if record is None else record.line}"
        if record is None or record.inducer is None:
            return out
        name, record = record.inducer


def finite(value: Any) -> bool:
    """Whether all numbers are finite; what holds no floating-point numbers is."""
    value = whole(value)
    return not isinstance(value, VALUES) or value.dtype.kind in "biu" or bool(np.isfinite(value).all())


def _first(bad: Any) -> Place:
    """Where the first True is."""
    return tuple(int(i) for i in np.argwhere(bad)[0])


def _number(x: Any) -> str:
    return repr(x.item() if isinstance(x, VALUES) else x)


def _at(place: Place) -> str:
    return f" at element {list(place)}" if place else ""


@dataclass
class Local:
    """An op at one element, or all of one with few elements: the arguments with names for their elements (None for constants), the result,
    and the parameters."""

    op: Op
    names: tuple[tuple[str, ...] | None, ...]
    given: tuple[Any, ...]
    result: Any
    parameters: tuple[Any, ...]

    def formula(self) -> str:
        """What the op computes, as text; its name where it has no formula."""
        from symgrad.carriers import symbolic

        try:
            return str(self.op.forward(symbolic, *self._cells(), *self.parameters).item())
        except Exception:  # an op that is only for numbers has none
            return self.op.name

    def derivative(self, i: int, place: Place, g: Any) -> str | None:
        """The partial derivative by an argument (for an op of many elements, an element of its gradient), as text."""
        from symgrad.carriers import symbolic

        try:
            cells = self._cells()
            y = self.op.forward(symbolic, *cells, *self.parameters)
            if self.op.kind == "elementwise":
                partial = self.op.partials[i]
                return str(partial(symbolic, y, *cells, *self.parameters).item() if callable(partial) else partial)
            found = self.op.vjp(symbolic, _named("g", g), y, (*cells, *self.parameters), self.names)  # type: ignore[misc]
            return str(found[i][place] if place else found[i].item())
        except Exception:  # as above
            return None

    def slope(self, i: int) -> Any:
        """The partial derivative at the element as a number."""
        partial = self.op.partials[i]
        with np.errstate(all="ignore"):
            return partial(numeric, self.result, *self.given, *self.parameters) if callable(partial) else partial

    @property
    def point(self) -> str:
        """The elements by name."""
        return ", ".join(f"{name} = {_number(v)}" for names, value in zip(self.names, self.given) if names is not None
                         for name, v in zip(names, np.ravel(value)))

    def _cells(self) -> list[Any]:
        """The arguments as expressions."""
        from symgrad.carriers import symbolic

        return [symbolic.lift_value(value) if names is None else _named(names, value) for names, value in zip(self.names, self.given)]


def _named(names: Any, value: Any) -> Any:
    """An array of symbols, one for each element of a value."""
    import sympy

    from symgrad.carriers.symbolic import Expressions

    names = _elements(names, value) if isinstance(names, str) else names
    real = {} if np.asarray(value).dtype.kind == "c" else {"real": True}
    return Expressions.fill([sympy.Symbol(name, **real) for name in names], np.shape(value))


def _elements(name: str, value: Any) -> tuple[str, ...]:
    return tuple("_".join([name, *map(str, index)]) for index in np.ndindex(np.shape(value)))


@dataclass
class Forward:
    """The first value of the forward pass that is not finite: of an op ("op"), of a leaf or of a constant operand."""

    kind: str
    name: str
    record: Record | None
    value: Any
    place: Place
    local: Local | None = None

    def __str__(self) -> str:
        which = f"{_number(self.value)}{_at(self.place)}"
        if self.kind == "leaf":
            return f"the leaf{self.name} is {which} from the start."
        if self.kind == "constant":
            return f"an operand of {self.name} that is a constant is {which}.{_lines(self.record)}"
        what = f"the result of {self.name}" if self.local is None else f"{self.local.formula()} at {self.local.point}"
        return f"{what} is the first value that is not finite: {which}.{_lines(self.record)}"


@dataclass
class Cause:
    """Why a cotangent is not finite: a pullback made it so, a hook did, it was given so, or finite ones have an infinite sum."""

    kind: str
    node: Node
    record: Record | None
    output: int
    value: Any
    place: Place
    incoming: Any = None
    local: Local | None = None
    forward: Forward | None = None

    def explanation(self) -> list[str]:
        """What is to be said of the forward pass, of the backward pass, and which came first."""
        backward = f"Backward: {self._backward()}"
        if self.kind != "pullback":
            return [backward]
        return [f"Forward: {self.forward or 'all values that the gradient was computed from are finite.'}", backward,
                f"The first cause is in the {'backward' if self.forward is None else 'forward'} pass."]

    def _backward(self) -> str:
        name, i, at = self.node.name(), self.output, _at(self.place)
        which, lines = f"{_number(self.value)}{at}", _lines(self.record)
        if self.kind == "given":
            return f"the gradient that was given for the output of {name} is {which}.{lines}"
        if self.kind == "hook":
            return f"a hook replaced the gradient of the output of {name} by one that is {which}.{lines}"
        if self.kind == "posthook":
            return f"a hook on {name} replaced its gradient {i} by one that is {which}.{lines}"
        if self.kind == "sum":
            return f"gradients that are finite have the sum {which} at the output of {name}.{lines}"
        made, local = f"{name} made the first gradient that is not finite", self.local
        formula = None if local is None else local.derivative(i, self.place, self.incoming)
        if local is None or formula is None and local.op.kind != "elementwise":
            return f"{made}: its gradient {i} is {which}.{lines}"
        if local.op.kind != "elementwise":
            g = ", ".join(f"{n} = {_number(v)}" for n, v in zip(_elements("g", self.incoming), np.ravel(self.incoming)))
            return f"{made}: its gradient {i} is {formula}{at}, which is {_number(self.value)} at {local.point} and the incoming gradient {g}.{lines}"
        by = (local.names[i] or ("",))[0]
        return (f"{made}{at}: its derivative by {by} is " + (f"{formula}, which is " if formula is not None else "") +
                f"{_number(local.slope(i))} at {local.point}; times the incoming gradient {_number(self.incoming)} it is "
                f"{_number(self.value)}.{lines}")


def whole(x: Any) -> Any:
    """A value with the members of its batches along leading axes."""
    while type(x) is Batched:
        x = x.data
    return x


def _operands(node: Node) -> Any:
    """The values of a node's tensor arguments, if it still has all of them."""
    if node.args is None or not isinstance(getattr(type(node), "op", None), Op):
        return None
    given = tuple(map(whole, node.args[:len(node.parents)]))
    return given if all(isinstance(a, (*VALUES, float, int, complex)) for a in given) else None


def _under(place: Place, value: Any) -> Place:
    """The element of an operand that was broadcast to one of a larger shape."""
    shape = np.shape(value)
    return tuple(0 if n == 1 else i for i, n in zip(place[len(place) - len(shape):], shape))


def _local(node: Any, place: Place | None) -> Local | None:
    """The numbers of an op: at one element, or all of them if they are few."""
    given, result = _operands(node), whole(node.value)
    if given is None or not isinstance(result, VALUES) or node.op.arity is None:
        return None
    if place is not None:
        values, result = tuple(np.asarray(a)[_under(place, a)] if isinstance(a, VALUES) else a for a in given), np.asarray(result)[place]
    elif sum(np.size(a) for a in given) > FEW:
        return None
    else:
        values = given
    variable = [p is not None or not finite(np.asarray(a)) for p, a in zip(node.parents, values)]
    letters = iter("x" if sum(variable) == 1 else "abcdefgh")
    names = tuple(_elements(next(letters), a) if named else None for named, a in zip(variable, values))
    return Local(node.op, names, values, result, (node.args or ())[len(given):])


def pulled(node: Any, i: int, value: Any, bad: Any, incoming: Any) -> Cause | None:
    """The cause of a cotangent that a pullback made not finite; None where it was handed one that was not."""
    value, bad, incoming = whole(value), whole(bad), whole(incoming)
    place = _first(bad)
    alike = getattr(node, "op", None) is not None and node.op.kind == "elementwise" and np.shape(value) == np.shape(incoming)
    if not finite(np.asarray(incoming[place] if alike else incoming)):
        return None
    local = _local(node, place if alike else None)
    read = (*(local.given if local is not None else _operands(node) or ()), local.result if local is not None else whole(node.value))
    forward = None if all(finite(np.asarray(a)) for a in read if isinstance(a, (*VALUES, float))) else first_forward(node, place if alike else None)
    return Cause("pullback", node, record_of(node), i, value[place], place, incoming[place] if alike else incoming, local, forward)


def first_forward(node: Any, place: Place | None, trail: list[tuple[Node, Place | None]] | None = None) -> Forward | None:
    """Follow a value that is not finite to where it came from: the first one that was computed from finite values.

    The way there, from the last node to the first, is put into `trail`.
    """
    while True:
        inner = getattr(node, "inner", None)  # what a Function's forward recorded
        if inner is not None and len(inner) == 1 and inner[0] is not None:
            node = inner[0]
        value: Any = whole(node.value)
        if trail is not None:
            trail.append((node, place))
        if isinstance(value, VALUES) and not finite(value) and (place is None or np.isfinite(np.asarray(value)[place])):
            place = _first(~np.isfinite(value))
        record, given = record_of(node), _operands(node)
        if isinstance(node, Leaf):
            name = f" {node.symbol}" * (node.symbol is not None) + f" of shape {list(value.shape)}" * bool(value.shape)
            return Forward("leaf", name, None, value[place], place or ())
        if isinstance(node, Link):
            given = (value,)
        if given is None:
            return _opaque(node, record, value, place)
        elementwise = node.op.kind == "elementwise" and place is not None
        spots = [_under(place or (), a) if elementwise else () if finite(np.asarray(a)) else _first(~np.isfinite(a)) for a in given]
        wrong = [k for k, (a, spot) in enumerate(zip(given, spots)) if not finite(np.asarray(a)[spot] if spot else np.asarray(a))]
        if not wrong:
            return Forward("op", node.op.name, record, value[place], place or (), _local(node, place if elementwise else None))
        k = wrong[0]
        p = node.parents[k]
        if p is None:
            return Forward("constant", node.op.name, record, np.asarray(given[k])[spots[k]], spots[k])
        node, place = p, spots[k]


def _opaque(node: Any, record: Record | None, value: Any, place: Place | None) -> Forward | None:
    """A Function whose forward was not recorded, if its arguments are finite: it is the first cause itself."""
    args = getattr(node, "args", None)
    if not hasattr(node, "function") or args is None or not isinstance(value, VALUES) or not all(finite(a) for a in args):
        return None
    return Forward("op", node.name(), record, np.asarray(value)[place or ()], place or ())
