"""Powers that have derivatives where their base is 0, though the base has none there, or the rule of the power has 0 · ∞.

A length, such as a norm, has a kink at 0, and its even powers have none. A power above 1 of a sum of squares has two derivatives where that is 0,
and the second one by its rule is 0 · ∞. Such powers are recorded so that the rules find the derivatives; nothing changes where no base is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.graph.op import Op

LENGTHS: set[type] = set()  # the classes of nodes of lengths and square roots
BASES: set[type] = set()  # these, and the classes of what may be a sum of squares

SUMS = ("add", "sum", "mean")
WEIGHTED = ("mul", "div")
DEEP = 100  # steps of the search for squares


def note_class(cls: Any) -> None:
    """Note a class of nodes whose powers may be smooth."""
    op = cls.op
    if op.square or op.name == "sqrt":
        LENGTHS.add(cls)
    if op.square or op.name == "sqrt" or op.name in (*SUMS, *WEIGHTED, "dot", "power_of_length") or op.exponent is not None or op.view:
        BASES.add(cls)


def smooth_power(op: Op, args: tuple, parents: tuple, make: Callable[..., Any]) -> tuple[str, tuple, tuple] | None:
    """The op, the arguments and the parents with which a power is recorded if its base is 0 or may be; None if that is as it is given.

    By a length the derivative is that of the power, except where the length is 0; there it is a derivative by its square, which is smooth. A power
    of a length below the square has no second derivative there. `make(name, args, parents, value, flags)` makes a node.
    """
    base, y, exponent = parents[0], args[0], op.exponent(args)  # type: ignore[misc]
    if type(exponent) not in (int, float) or y is not base.value or not base.args or not base.parents or not exponent > 1:
        return None
    square, root = base.op.square, base.op.name == "sqrt"
    if exponent < 2 if square or root else exponent % 1 == 0:
        return None
    if isinstance(y, np.generic) and y != 0 or type(y) is np.ndarray and np.count_nonzero(y) == y.size:
        return None
    if square:
        order = None if exponent % 2 == 0 else int(exponent) - 1  # of the derivatives of the slope that are 0
        squared = make(square, (*base.args, order), base.parents, y * y, base.flags)
        return "power_of_length", (y, squared.value, exponent), (make("beyond_zero", (y, y), (base, None), y, base.flags), squared)
    squares = base.parents[0] if root else base
    if not (degree := _degree_of_squares(squares)):
        return None
    x, p = (base.args[0], exponent / 2) if root else (y, exponent)
    if p % 1 == 0:
        return "pow", (x, p), (squares, None)
    order = math.ceil(degree * p) - 1
    if (along := _sum_of_roots(squares, make, {})) is not None:
        squares = make("edge_of_squares", (x, x, order - 1), (squares, along), x, squares.flags)
    return "power_of_squares", (x, p, order), (squares,)


def _is_same(p: Any, q: Any) -> bool:
    """Whether two nodes have one value, but for weights that are not negative: they are one, or the same views of one."""
    p, q = _unweighted(p), _unweighted(q)
    if p is q:
        return p is not None
    if not (p is not None and q is not None and p.parents and q.parents and p.args and q.args):
        return False
    if p.op is not q.op or not p.op.view or p.parents[0] is not q.parents[0]:
        return False
    try:
        return bool(p.args[1:] == q.args[1:])
    except ValueError:  # of arrays
        return False


def _unweighted(node: Any) -> Any:
    """The node without constant factors that are not negative."""
    while node is not None and node.parents and node.args and node.op.name in WEIGHTED:
        first, second = node.parents
        if second is None and _is_not_negative(node.args[1]):
            node = first
        elif first is None and node.op.name == "mul" and _is_not_negative(node.args[0]):
            node = second
        else:
            break
    return node


def _is_not_negative(weight: Any) -> bool:
    return isinstance(weight, (int, float, np.ndarray, np.generic)) and bool(np.all(np.greater_equal(weight, 0)))


def _degree_of_squares(node: Any) -> float:
    """The degree of a sum of even powers of real numbers, with weights that are not negative: the lowest of the exponents. 0 for another value."""
    below, degree = [node], math.inf
    for _ in range(DEEP):
        if not below:
            return degree
        at: Any = below.pop()
        if at is None or not at.parents or not at.args or getattr(at.value, "dtype", np.dtype(float)).kind == "c":
            return 0
        op, parents = at.op, at.parents
        if exponent := _even_exponent(at):
            degree = min(degree, exponent)
            continue
        if op.name not in (*SUMS, *WEIGHTED) and not op.view:
            return 0
        weights = [a for p, a in zip(parents, at.args) if p is None]
        if op.name == "div" and parents[1] is not None or not all([_is_not_negative(a) for a in weights]):
            return 0
        below += [p for p in parents if p is not None]
    return 0


def _even_exponent(node: Any) -> float:
    """The exponent of an even power, or 2 for a product of two equal factors; 0 for another node."""
    op, args = node.op, node.args
    exponent: Any = args[-1] if op.name == "power_of_length" else op.exponent(args) if op.exponent is not None else None
    if op.name in ("mul", "dot") and _is_same(*node.parents):
        exponent = 2
    return exponent if type(exponent) in (int, float) and exponent % 2 == 0 and exponent > 0 else 0


def _sum_of_roots(node: Any, make: Callable[..., Any], known: dict[Any, Any]) -> Any:
    """The node of a sum of even powers with the numbers themselves in place of their powers; None if these are complex, or have other shapes.

    It says how the numbers move where they are 0, and their powers do not. Its value is that of the sum of powers: none other is used than 0.
    """
    if node not in known:
        if _even_exponent(node):
            root = _root(node, make)
            alike = root is not None and np.shape(root.value) == np.shape(node.value) and root.value.dtype == node.value.dtype
            known[node] = root if alike else None
        else:
            parents = tuple([p and _sum_of_roots(p, make, known) for p in node.parents])
            broken = node.op.view == "many" or any([p is not None and q is None for p, q in zip(node.parents, parents)])
            known[node] = None if broken else make(node.op.name, node.args, parents, node.value, node.flags)
    return known[node]


def _root(node: Any, make: Callable[..., Any]) -> Any:
    """The node of which a node is an even power; for one of a length the sum of the coordinates. None if it has another shape than its value says."""
    if node.op.name == "power_of_length":
        node = node.parents[1]
    op, parents, args = node.op, node.parents, node.args
    for p, a in zip(parents, args):
        if p is not None and (np.shape(p.value) != np.shape(a) or a.dtype != node.value.dtype):
            return None
    if op.name == "square_of_hypot":
        return make("add", args[:2], parents, node.value, node.flags)
    if op.name in ("dot", "square_of_norm"):
        dim, keepdim = ((0,), False) if op.name == "dot" else args[1:3]
        return make("sum", (args[0], dim, keepdim), parents[:1], node.value, node.flags)
    return parents[0]
