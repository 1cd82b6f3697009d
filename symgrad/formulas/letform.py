"""The let-form of a formula: a list of small equations, one for each intermediate value.

Its length is linear in that of the computation, while the formula may be exponentially longer. All operands are symbols or numbers, so that the
result of a rule depends only on the op, on which operands are equal, and on the numbers. It is computed once, with placeholders, for each such
pattern; substituting the placeholders takes 2% of the time of SymPy's evaluation.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cmp_to_key
from itertools import count
from typing import Any

import numpy as np
import sympy

from symgrad.autograd.engine import _paths
from symgrad.carriers.cells import each
from symgrad.carriers.symbolic import Expressions, readable_number
from symgrad.engine.replay import arguments
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream

LARGEST_PATTERN = 100  # the most subexpressions of a pattern
PLAIN = (int, float, bool, str, type(None))
MINUS = sympy.S.NegativeOne
in_order = cmp_to_key(sympy.Basic.compare)


def _is_short(e: Any) -> bool:
    """Whether an expression needs no separate equation: a symbol, a number, the negative of one, or a condition."""
    return e.is_Atom or not isinstance(e, sympy.Expr) or e.is_Mul and e.args[0] is MINUS and len(e.args) == 2 and e.args[1].is_Atom


def _has_constant_branch(e: Any) -> bool:
    return any(value.is_Number for choice in e.atoms(sympy.Piecewise) for value, _ in choice.args)


# Results of rules on short values


class _Patterns:
    """Results of rules on short expressions, computed once with placeholders for each pattern of arguments."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def call(self, what: Any, rule: Callable[..., Any], cells: Sequence[Any]) -> Any:
        """`rule(*cells)`, where `what` is the key of the rule and its parameters; None among the cells stays None."""
        places: dict[Any, int] = {}
        key = _pattern(what, cells, places)
        if key is None:
            return rule(*cells)
        known = self._known.get(key)
        if known is None:
            placeholders = {s: sympy.Symbol(f"p{i:03}", **({"real": True} if s.is_real else {})) for s, i in places.items()}
            found = rule(*[_with(c, lambda e: e.xreplace(placeholders)) for c in cells])
            known = self._known[key] = _with(found, functools.partial(_maker, {p: places[s] for s, p in placeholders.items()}))
        symbols = list(places)
        return _with(known, lambda make: make(symbols))


def _with(found: Any, function: Callable[[Any], Any]) -> Any:
    """Cells, or a sequence of them, with a function applied to each element."""
    if found is None:
        return None
    if type(found) is not Expressions:
        return tuple([_with(c, function) for c in found])
    return found.fill([function(e) for e in found.ravel().tolist()], found.shape)


def _maker(places: Mapping[Any, int], e: Any) -> Callable[[Sequence[Any]], Any]:
    """The function that rebuilds an expression with other symbols of the same assumptions, given by position.

    The result equals SymPy's evaluation with these symbols, where only the order of terms and factors depends on names.
    """
    if e in places:
        return operator.itemgetter(places[e])
    if not e.args:
        return lambda symbols: e
    parts = [_maker(places, a) for a in e.args]
    kind, commutative, first = type(e), e.is_commutative, int(e.args[0].is_Number)
    if e.is_Mul or e.is_Add:
        def ordered(symbols: Sequence[Any]) -> Any:
            args = [part(symbols) for part in parts]
            args[first:] = sorted(args[first:], key=in_order)
            return kind._from_args(args, commutative)

        return ordered
    if e.is_Pow:
        return lambda symbols: sympy.Pow(*[part(symbols) for part in parts], evaluate=False)
    if not e.is_Function or vars(e).keys() - {"nargs"}:
        return lambda symbols: e.func(*[part(symbols) for part in parts])
    known = vars(e)

    def applied(symbols: Sequence[Any]) -> Any:
        # Faster than evaluate=False, which also creates a new `nargs` set.
        out = sympy.Basic.__new__(kind, *[part(symbols) for part in parts])
        vars(out).update(known)
        return out

    return applied


def _pattern(what: Any, cells: Sequence[Any], places: dict[Any, int]) -> Any:
    """The key of a result, independent of the names of symbols, which are numbered in `places`; None if it is too large."""
    out: list[Any] = [what]
    for c in cells:
        if c is None:
            out.append(None)
            continue
        if type(c) is not Expressions:
            return None
        out.append(c.shape)
        stack = c.ravel().tolist()
        while stack:
            e = stack.pop()
            if e.is_Symbol:
                out.append((places.setdefault(e, len(places)), e.is_real))
            elif e.args:
                out.append((e.func, len(e.args)))
                stack += e.args
            else:
                out.append((type(e), e))
            if len(out) + len(stack) > LARGEST_PATTERN:
                return None
    try:
        hash(found := tuple(out))
    except TypeError:
        return None
    return found


def _parameter(x: Any) -> Any:
    return (type(x), x) if type(x) in PLAIN else (type(x), *map(_parameter, x)) if type(x) in (tuple, list) else x


# Equations


class LetForm(dict):
    """The values of nodes, in which every expression is a separate equation with a short name.

    Those of the nodes `apart` have equations of their own, marked by `UnevaluatedExpr`, even if they equal those of others. With `calls` an op
    whose formula would be that of a `where` with a constant is a function by the op's name, since its derivative is another one at the border.
    """

    def __init__(self, used: set[str], apart: Container[Node] = (), calls: bool = False):
        super().__init__()
        self.apart, self.calls = apart, calls
        self.lines: dict[Any, Any] = {}
        self.fresh: Iterator[str] = (name for name in (f"v{i}" for i in count(1)) if name not in used)
        self.patterns = _Patterns()

    def __setitem__(self, node: Node, cells: Any) -> None:
        if node in self.apart:
            cells = cells.fill([e if _is_short(e) else sympy.UnevaluatedExpr(e) for e in cells.ravel().tolist()], cells.shape)
        super().__setitem__(node, self.with_names(cells, node))

    def with_names(self, cells: Any, node: Node) -> Any:
        """The cells with the symbol of an equation in place of each element that is not short (see `_is_short`)."""
        if hasattr(cells, "parts") or isinstance(cells, tuple):  # the outputs of a custom Function
            return type(cells)(None if part is None else self.with_names(part, node) for part in getattr(cells, "parts", cells))
        real = node.value.dtype.kind != "c"
        elements = cells.ravel().tolist()
        short = [e if _is_short(e) else self.line(e, real) for e in elements]
        return cells if all(map(operator.is_, short, elements)) else cells.fill(short, cells.shape)

    def line(self, expression: Any, real: bool) -> Any:
        known = self.lines.get(expression)
        if known is None:
            known = self.lines[expression] = self.symbol(real)
        return known

    def symbol(self, real: bool) -> Any:
        assumptions = {"real": True} if real else {}
        return sympy.Symbol(next(self.fresh), **assumptions)

    def forward_of(self, xp: Any, node: Node, tensors: Sequence[Any], args: tuple) -> Any:
        """The node's forward rule for named cells."""
        op, rest = node.op, args[len(tensors):]
        found = self.patterns.call((op, tuple(map(_parameter, rest))),
                                   lambda *xs: op.forward(xp, *((xs,) if op.arity is None else xs), *rest), tensors)
        if self.calls and op.kind == "elementwise" and any(map(_has_constant_branch, found.ravel().tolist())):
            named = sympy.Function(op.name, real=True)
            return each(lambda *xs: named(*xs, *map(readable_number, rest)), len(tensors))(*tensors)
        return found

    def pullback_of(self, xp: Any, node: Node, g: Any, y: Any, args: tuple, needs: Sequence[Any]) -> Sequence[Any]:
        """The node's pullback for a named cotangent."""
        n = len(node.parents)
        rest, needed = args[n:], tuple([need is not None for need in needs])
        return self.patterns.call((node.op, needed, tuple(map(_parameter, rest))),
                                  lambda g, y, *xs: tuple(node.vjp(xp, g, y, (*xs, *rest), needs)), (g, y, *args[:n]))

    def forward(self, reading: Any, roots: Sequence[Node]) -> None:
        """Add the equations of the roots, and of the named nodes that they depend on."""
        for node in reading.ready(roots):
            if node in self:
                continue
            if isinstance(node, Leaf):
                self[node] = reading.leaf(node)
            elif type(node) is DerivativeNode:
                self[node] = reading.constant(node.value) if node.parents[0] is None else self[node.parents[0]]
            else:
                self[node] = self.forward_of(reading.xp, node, arguments(node, self, reading.constant), node.args or ())

    def pullback(self, reading: Any, seeds: Sequence[tuple[Node, Any]], target: Node) -> Any:
        """The cotangent of the target node; every cotangent on the path becomes a named equation."""
        pending: dict[Node, Any] = {}

        def add(node: Node, g: Any) -> None:
            g = g if g.shape == node.value.shape else reading.xp.sum_to_size(g, node.value.shape)
            pending[node] = self.with_names(self.patterns.call("sum", operator.add, (pending[node], g)), node) if node in pending else g

        wanted = _paths(seeds, frozenset((target,)))
        for root, g in seeds:
            add(root, g)
        for node in reversed(upstream(list(pending), differentiable=True)):
            if node not in pending or node not in wanted:
                continue
            g = self.with_names(pending.pop(node), node)
            if node is target:
                return g
            needs = tuple(p if p in wanted else None for p in node.parents)
            y, args = reading.read(node)
            for p, c in zip(needs, self.pullback_of(reading.xp, node, g, y, args, needs)):
                if p is not None and c is not None:
                    add(p, c)
        return reading.constant(np.zeros(target.value.shape))

    def equations(self, cells: Any) -> list[tuple[Any, Any]]:
        """The equations that the cells depend on, followed by those of the cells themselves."""
        elements = cells.ravel().tolist()
        needed = set().union(*(e.free_symbols for e in elements))
        out = []
        for expression, symbol in reversed(self.lines.items()):
            if symbol in needed:
                needed.update(expression.free_symbols)
                out.append((symbol, expression))
        out.reverse()
        if [symbol for symbol, _ in out[len(out) - len(elements):]] != elements:
            out += [(self.symbol(real=True), e) for e in elements]
        return out
