"""Formulas of tensors: `expr`, its let-form `assignments()`, and the `conditions` under which it is valid.

A formula is computed on first use by evaluation of the recorded graph in the symbolic carrier, and cached by node. Leaves without a symbol, and
values without a named leaf upstream, are constants. SymPy is imported on first use.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import _paths
from symgrad.carriers.duck import Unrecordable
from symgrad.carriers.recorded import Recorded
from symgrad.engine.method_table import MethodTable
from symgrad.engine.passes import pullback
from symgrad.engine.recorded_branches import Branch
from symgrad.engine.replay import arguments, replay
from symgrad.engine.tensor import Tensor
from symgrad.graph.node import NAMED, Leaf, Node
from symgrad.graph.order import upstream
from symgrad.system.restoring import collection_paused
from symgrad.system.weakkeys import WeakKeys

METHODS = MethodTable()

Seeds = Sequence[tuple[Node, Any]]
_formulas: dict[bool, WeakKeys[Node, Any]] = {False: WeakKeys(), True: WeakKeys()}
_kept_alive: WeakKeys[Node, Sequence[Tensor]] = WeakKeys()


def _sympy() -> Any:
    """SymPy, imported on first use."""
    import sympy

    return sympy


# Evaluation of a graph


class ElementSymbols(str):
    """The symbol of a leaf with given expressions for its elements: user symbols, or a constant such as π."""

    elements: Sequence[Any]
    constant = False

    @classmethod
    def as_(cls, name: str, elements: Sequence[Any], constant: bool = False) -> ElementSymbols:
        """The symbol with a name and the expressions of the elements, in order."""
        out = cls(name)
        out.elements, out.constant = elements, constant
        return out


def names(leaf: Leaf) -> list[str]:
    """The names of a leaf's elements in order: the symbol followed by the indices of the element.

    >>> import symgrad
    >>> names(symgrad.tensor([[1.0, 2.0]], symbol="x")._node)
    ['x_0_0', 'x_0_1']
    """
    if isinstance(leaf.symbol, ElementSymbols):
        return list(map(str, leaf.symbol.elements))
    return ["_".join([leaf.symbol, *map(str, index)]) for index in np.ndindex(leaf.value.shape)]


def _check_names(leaves: Sequence[Leaf]) -> None:
    owners: dict[str, Leaf] = {}
    for leaf in leaves:
        for name in () if isinstance(leaf.symbol, ElementSymbols) and leaf.symbol.constant else names(leaf):
            other = owners.setdefault(name, leaf)
            if other is not leaf and (leaf.reference() is None or leaf.reference() is not other.reference()):
                raise ValueError(f"expr: {name} is a symbol used twice for different leaves; give each tensor a symbol of its own")


class _SymbolicReplay:
    """The evaluation of a graph with leaves as symbols, and everything else as constants, which are rationals if `exact`."""

    def __init__(self, exact: bool, values: Any):
        from symgrad.carriers import symbolic  # imports SymPy

        self.xp, self.exact, self.values = symbolic, exact, values

    def constant(self, value: Any) -> Any:
        return self.xp.lift_value(value, self.exact)

    def leaf(self, leaf: Leaf) -> Any:
        assumptions = {} if leaf.value.dtype.kind == "c" else {"real": True}
        cells = self.xp.ExactExpressions if self.exact else self.xp.Expressions
        known = isinstance(leaf.symbol, ElementSymbols)
        elements = leaf.symbol.elements if known else [_sympy().Symbol(name, **assumptions) for name in names(leaf)]
        return cells.fill(elements, leaf.value.shape)

    def ready(self, roots: Sequence[Node]) -> list[Node]:
        """The named nodes that the roots depend on, oldest first; the values of other nodes are set to constants.

        Raises ValueError for a symbol that is used twice.
        """
        nodes = upstream(roots)
        _check_names([node for node in nodes if isinstance(node, Leaf) and node.flags & NAMED])
        for node in nodes:
            if not node.flags & NAMED:
                self.values.setdefault(node, None)
                continue
            for p, a in zip(node.parents, node.args or (node.value,)):
                if p is not None and not p.flags & NAMED:
                    self.values[p] = self.constant(a)
        return nodes

    def forward(self, roots: Sequence[Node]) -> None:
        """Compute the values of the roots and of the named nodes that they depend on."""
        self.ready(roots)
        replay(self.xp, roots, self.leaf, self.constant, self.values)

    def read(self, node: Node) -> tuple[Any, tuple]:
        """A node's value and arguments, conjugated if they are complex, as in the engine."""
        args = arguments(node, self.values, self.constant) if node.args else ()
        y = self.values[node]
        if node.value.dtype.kind == "c":
            conjugate = self.xp.conjugate
            y, args = conjugate(y), tuple(map(conjugate, args))
        return y, args + (node.args or ())[len(node.parents):]

    def seeds(self, seeds: Seeds) -> list[tuple[Node, Any]]:
        return [(root, self.constant(g)) for root, g in seeds if root.flags & NAMED]


def formula(tensor: Tensor, exact: bool = False) -> Any:
    """A tensor's formula as Cells of SymPy expressions, None without a named leaf upstream; with `exact`, constants are rational numbers."""
    node = tensor._node
    if node is not None and node.flags & NAMED:
        return _node_formula(node, exact)
    derivative = getattr(tensor, "_formula", None)
    if not derivative:
        return None
    if not isinstance(derivative, _Derivative):
        derivative = tensor._formula = _Derivative(derivative)
    if exact not in derivative.formulas:
        derivative.formulas[exact] = _derivative_formula(derivative, exact)
    return derivative.formulas[exact]


class _Derivative(list):
    """The definition of a gradient as pairs of seeds and a node, with a cache of its formulas."""

    def __init__(self, parts: Sequence[tuple[Seeds, Node]]):
        super().__init__(parts)
        self.formulas: dict[bool, Any] = {}

    @property
    def roots(self) -> list[Node]:
        return [root for seeds, _ in self for root, _ in seeds if root.flags & NAMED]


def _node_formula(node: Node, exact: bool = False) -> Any:
    values = _formulas[exact]
    if node not in values:
        _SymbolicReplay(exact, values).forward([node])
    return values[node]


def _derivative_formula(derivative: _Derivative, exact: bool) -> Any:
    reading = _SymbolicReplay(exact, _formulas[exact])
    reading.forward(derivative.roots)
    total = 0
    for seeds, node in derivative:
        named, keep = reading.seeds(seeds), frozenset((node,))
        g = pullback(reading.xp, named, reading.read, _paths(named, keep), keep).get(node)
        total = total + (reading.constant(np.zeros(node.value.shape)) if g is None else g)
    return total


def expr(self: Tensor) -> Any:
    """The formula of this tensor: a SymPy expression, an Array of expressions, or None without a named leaf upstream.

    The gradient of a named leaf and derivatives with `create_graph` have a formula, too. Raises ValueError for a symbol
    that is used for two different leaves, RecursionError for a formula nested too deeply for SymPy.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True, symbol="x")
    >>> y = 0.5 * x.sin() * x
    >>> y.expr
    0.5*x*sin(x)
    >>> y.backward()
    >>> x.grad.expr
    0.5*x*cos(x) + 0.5*sin(x)
    """
    if type(self._value) is Recorded:
        raise Unrecordable("the formula of a tensor")
    try:
        cells = formula(self)
    except RecursionError:
        raise RecursionError("expr: this formula is nested too deeply for SymPy; assignments() gives it as small equations") from None
    if cells is None or not cells.ndim:
        return None if cells is None else cells.item()
    return _sympy().ImmutableDenseNDimArray(cells.ravel().tolist(), cells.shape)


def assignments(self: Tensor) -> list[tuple[Any, Any]]:
    """The formula as a list of small equations (symbol, expression), in order; the last ones are the tensor's elements.

    Intermediate values other than symbols and numbers are named v1, v2, ..., so that the length is linear in that of the computation, while
    `expr` may be exponentially longer. Gradients have this form, too. The list is empty without a named leaf upstream. Raises
    ValueError for a symbol that is used for two different leaves.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, symbol="x")
    >>> y = x.sin() + 1
    >>> (y * y).assignments()
    [(v1, sin(x)), (v2, v1 + 1), (v3, v2**2)]
    """
    return equations(self)


def equations(self: Tensor, apart: Container[Node] = (), calls: bool = False) -> list[tuple[Any, Any]]:
    """The assignments of a tensor; for `apart` and `calls` see `LetForm`."""
    node = self._node
    named = node is not None and node.flags & NAMED
    derivative = _Derivative(() if named else getattr(self, "_formula", ()))
    roots: list[Any] = [node] if named else derivative.roots
    if not roots:
        return []
    from symgrad.formulas.letform import LetForm  # imports SymPy

    form = LetForm({name for leaf in _named_leaves(roots) for name in names(leaf)}, apart, calls)
    reading = _SymbolicReplay(False, form)
    with collection_paused():
        form.forward(reading, roots)
        if named:
            return form.equations(form[node])
        parts = [form.pullback(reading, reading.seeds(seeds), target) for seeds, target in derivative]
        return form.equations(form.with_names(sum(parts[1:], parts[0]), derivative[0][1]))


def _roots(self: Tensor) -> list[Any]:
    """The named nodes from which a tensor, or a gradient, is computed."""
    node = self._node
    return [node] if node is not None and node.flags & NAMED else _Derivative(getattr(self, "_formula", ())).roots


def _named_leaves(roots: Sequence[Node]) -> list[Leaf]:
    return [node for node in upstream(roots) if isinstance(node, Leaf) and node.flags & NAMED]


def keep_alive(self: Tensor, leaves: Sequence[Tensor]) -> None:
    """Keep leaves alive as long as this tensor's node."""
    if self._node is not None:
        _kept_alive[self._node] = tuple(leaves)


def leaves(self: Tensor) -> dict[str, Tensor]:
    """The live named leaves that this tensor was computed from, by name.

    >>> import symgrad
    >>> x, y = symgrad.symbols("x y", [1.0, 2.0])
    >>> (x * y).leaves
    {'x': tensor(1., requires_grad=True), 'y': tensor(2., requires_grad=True)}
    """
    found = [(leaf.symbol, leaf.reference()) for leaf in _named_leaves(_roots(self)) if not getattr(leaf.symbol, "constant", False)]
    return {str(name): leaf for name, leaf in found if leaf is not None}


# Branches


def conditions(self: Tensor) -> tuple[Any, ...]:
    """The conditions under which the formula is valid: those of branches on values of its named leaves before this tensor was computed.

    A condition is recorded whenever Python evaluates the truth value of a named tensor, as in `if`, `while`, `and` and `assert`. `where` adds no
    condition, since its formula is a Piecewise.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, symbol="x")
    >>> y = x**2 if x > 1 else -x
    >>> y.expr, y.conditions
    (x**2, (x > 1,))
    """
    roots = _roots(self)
    if not roots:
        return ()
    computed_at = max(root.sequence_nr for root in roots)
    branches = {b.sequence_nr: b for leaf in _named_leaves(roots) for b in leaf.conditions if b.sequence_nr < computed_at}
    latest: list[Branch] = []
    for _, branch in sorted(branches.items()):
        latest = [b for b in latest if b.outline != branch.outline] + [branch]
    return tuple(dict.fromkeys(c for c in map(_condition, latest) if c != True))  # noqa: E712  SymPy's true is not Python's


def _condition(branch: Branch) -> Any:
    sympy = _sympy()
    condition = _node_formula(branch.root).ravel()[0].item()
    if isinstance(condition, sympy.Expr):
        condition = sympy.Ne(condition, 0)
    return condition if branch.truth else sympy.Not(condition)


METHODS["expr"] = property(expr)
METHODS["assignments"] = assignments
METHODS["conditions"] = property(conditions)
METHODS["leaves"] = property(leaves)
