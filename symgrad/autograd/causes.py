"""The cause of a gradient that is not finite: the first such value of the forward pass, or the first local derivative that produced one.

The numbers for an explanation are copied when the cause is found, since the values may be released later. Formulas are derived only for the text.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import raw
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.op import Op

VALUES = (np.ndarray, np.generic)
FEW = 6  # the most elements for which a formula is derived
Index = tuple[int, ...]


class CallRecord(NamedTuple):
    """The call of an operation: its stack, innermost first, and within a backward the name and record of the node whose pullback ran."""

    stack: tuple[tuple[CodeType, int], ...]
    inducer: tuple[str, CallRecord | None] | None

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


def record_of(node: Node) -> CallRecord | None:
    """The record of a node; None if the node was recorded without one."""
    return getattr(node, "record", None)


def _lines(record: CallRecord | None) -> str:
    """The line that called an operation, and within a backward also the lines of the nodes that it was computed for, one per line."""
    out = ""
    name = ""
    while True:
        prefix = f"in the backward of {name}, called at " if name else ""
        out += f"\n    {prefix}{'an unknown line: there is no forward record, for anomaly mode was off' if record is None else record.line}"
        if record is None or record.inducer is None:
            return out
        name, record = record.inducer


def finite(value: Any) -> bool:
    """Whether all numbers are finite; True for a value without floating-point numbers."""
    value = raw(value)
    return not isinstance(value, VALUES) or value.dtype.kind in "biu" or bool(np.isfinite(value).all())


def _first(bad: Any) -> Index:
    """The index of the first True."""
    return tuple(int(i) for i in np.argwhere(bad)[0])


def _number(x: Any) -> str:
    return repr(x.item() if isinstance(x, VALUES) else x)


def _at(index: Index) -> str:
    return f" at element {list(index)}" if index else ""


@dataclass
class Local:
    """An op restricted to one element, or all of an op with few elements.

    It has the arguments with names for their elements (None for constants), the result and the parameters.
    """

    op: Op
    names: tuple[tuple[str, ...] | None, ...]
    given: tuple[Any, ...]
    result: Any
    parameters: tuple[Any, ...]

    def formula(self) -> str:
        """The formula of the op as text; the name of the op if it has none."""
        from symgrad.carriers import symbolic  # imports SymPy

        try:
            return str(self.op.forward(symbolic, *self._cells(), *self.parameters).item())
        except Exception:  # an op that computes only with numbers has no formula
            return self.op.name

    def derivative(self, i: int, index: Index, g: Any) -> str | None:
        """The partial derivative by argument i as text; for an op with several elements, one element of the gradient."""
        from symgrad.carriers import symbolic  # imports SymPy

        try:
            cells = self._cells()
            y = self.op.forward(symbolic, *cells, *self.parameters)
            if self.op.kind == "elementwise":
                partial = self.op.partials[i]
                return str(partial(symbolic, y, *cells, *self.parameters).item() if callable(partial) else partial)
            found = self.op.vjp(symbolic, _named("g", g), y, (*cells, *self.parameters), self.names)  # type: ignore[misc]
            return str(found[i][index] if index else found[i].item())
        except Exception:  # as above
            return None

    def slope(self, i: int) -> Any:
        """The partial derivative at the element as a number."""
        partial = self.op.partials[i]
        with np.errstate(all="ignore"):
            return partial(numeric, self.result, *self.given, *self.parameters) if callable(partial) else partial

    @property
    def point(self) -> str:
        """The values of the elements with their names, as text."""
        return ", ".join(f"{name} = {_number(v)}" for names, value in zip(self.names, self.given) if names is not None
                         for name, v in zip(names, np.ravel(value)))

    def _cells(self) -> list[Any]:
        """The arguments as expressions."""
        from symgrad.carriers import symbolic  # imports SymPy

        return [symbolic.lift_value(value) if names is None else _named(names, value) for names, value in zip(self.names, self.given)]


def _named(names: Any, value: Any) -> Any:
    """An array of symbols, one for each element of a value."""
    import sympy

    from symgrad.carriers.symbolic import Expressions  # imports SymPy

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
    record: CallRecord | None
    value: Any
    place: Index
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
    """The cause of a cotangent that is not finite: a pullback, a hook, a seed, or an overflow of a sum."""

    kind: str
    node: Node
    record: CallRecord | None
    output: int
    value: Any
    place: Index
    incoming: Any = None
    local: Local | None = None
    forward: Forward | None = None

    def explanation(self) -> list[str]:
        """The lines of the explanation: the cause in the forward pass, the cause in the backward pass, and which came first."""
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


def _operands(node: Node) -> Any:
    """The values of a node's tensor arguments; None if some were released."""
    if node.args is None or not isinstance(getattr(type(node), "op", None), Op):
        return None
    given = tuple(map(raw, node.args[:len(node.parents)]))
    return given if all(isinstance(a, (*VALUES, float, int, complex)) for a in given) else None


def _broadcast_index(index: Index, value: Any) -> Index:
    """The index of the operand's element that was broadcast to an index of a larger shape."""
    shape = np.shape(value)
    return tuple(0 if n == 1 else i for i, n in zip(index[len(index) - len(shape):], shape))


def _local(node: Any, index: Index | None) -> Local | None:
    """The op of a node at one element, or at all elements if there are few."""
    given, result = _operands(node), raw(node.value)
    if given is None or not isinstance(result, VALUES) or node.op.arity is None:
        return None
    if index is not None:
        values, result = tuple(np.asarray(a)[_broadcast_index(index, a)] if isinstance(a, VALUES) else a for a in given), np.asarray(result)[index]
    elif sum(np.size(a) for a in given) > FEW:
        return None
    else:
        values = given
    variable = [p is not None or not finite(np.asarray(a)) for p, a in zip(node.parents, values)]
    letters = iter("x" if sum(variable) == 1 else "abcdefgh")
    names = tuple(_elements(next(letters), a) if named else None for named, a in zip(variable, values))
    return Local(node.op, names, values, result, (node.args or ())[len(given):])


def pulled(node: Any, i: int, value: Any, incoming: Any) -> Cause | None:
    """The cause of a non-finite cotangent that a pullback returned; None if the incoming cotangent was not finite."""
    value, incoming = raw(value), raw(incoming)
    index = _first(~np.isfinite(value))
    alike = getattr(node, "op", None) is not None and node.op.kind == "elementwise" and np.shape(value) == np.shape(incoming)
    if not finite(np.asarray(incoming[index] if alike else incoming)):
        return None
    local = _local(node, index if alike else None)
    read = (*(local.given if local is not None else _operands(node) or ()), local.result if local is not None else raw(node.value))
    forward = None if all(finite(np.asarray(a)) for a in read if isinstance(a, (*VALUES, float))) else first_forward(node, index if alike else None)
    return Cause("pullback", node, record_of(node), i, value[index], index, incoming[index] if alike else incoming, local, forward)


def first_forward(node: Any, index: Index | None, trail: list[tuple[Node, Index | None]] | None = None) -> Forward | None:
    """Search upstream of a non-finite value for the first one that was computed from finite values.

    The nodes of the path, from the last to the first, are appended to `trail`.
    """
    while True:
        inner = getattr(node, "inner", None)  # the recorded forward of a Function
        if inner is not None and len(inner) == 1 and inner[0] is not None:
            node = inner[0]
        value: Any = raw(node.value)
        if trail is not None:
            trail.append((node, index))
        if isinstance(value, VALUES) and not finite(value) and (index is None or np.isfinite(np.asarray(value)[index])):
            index = _first(~np.isfinite(value))
        record, given = record_of(node), _operands(node)
        if isinstance(node, Leaf):
            name = f" {node.symbol}" * (node.symbol is not None) + f" of shape {list(value.shape)}" * bool(value.shape)
            return Forward("leaf", name, None, value[index], index or ())
        if isinstance(node, DerivativeNode):
            given = (value,)
        if given is None:
            return _opaque(node, record, value, index)
        elementwise = node.op.kind == "elementwise" and index is not None
        indices = [_broadcast_index(index or (), a) if elementwise else () if finite(np.asarray(a)) else _first(~np.isfinite(a)) for a in given]
        wrong = [k for k, (a, at) in enumerate(zip(given, indices)) if not finite(np.asarray(a)[at] if at else np.asarray(a))]
        if not wrong:
            return Forward("op", node.op.name, record, value[index], index or (), _local(node, index if elementwise else None))
        k = wrong[0]
        p = node.parents[k]
        if p is None:
            return Forward("constant", node.op.name, record, np.asarray(given[k])[indices[k]], indices[k])
        node, index = p, indices[k]


def _opaque(node: Any, record: CallRecord | None, value: Any, index: Index | None) -> Forward | None:
    """The result of a Function whose forward was not recorded, as first cause if its arguments are finite."""
    args = getattr(node, "args", None)
    if not hasattr(node, "function") or args is None or not isinstance(value, VALUES) or not all(finite(a) for a in args):
        return None
    return Forward("op", node.name(), record, np.asarray(value)[index or ()], index or ())
