"""Ops as small equations: the symbolic form of a forward rule, cut into elementary functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy
from sympy.core.relational import Relational

from symgrad.carriers import symbolic
from symgrad.graph.node import Node
from symgrad.reference.elementary import elementary, placeholder
from symgrad.reference.parts import parts

__all__ = ["Choice", "NoFormula", "Equation", "Template", "template"]

PAIRS = {kind: elementary(kind(placeholder(0), placeholder(1))) for kind in (sympy.Mul, sympy.Max, sympy.Min)}


class NoFormula(Exception):
    """An op that has no symbolic form, so that there is nothing to check its rule against."""


class Choice(NamedTuple):
    """The conditions of a Piecewise, in Dummies that stand for comparisons of two places each.

    The inputs of its step are the branches in order, and then the two sides of each comparison.
    """

    conditions: tuple[Any, ...]
    relations: tuple[tuple[Any, type], ...]


class Equation(NamedTuple):
    """One equation: `what` is an ElementaryFunction, a Choice, a number, or None for a sum; `inputs` are the places it reads."""

    what: Any
    inputs: tuple[int, ...]


class Template(NamedTuple):
    """An op as equations: places 0 to count - 1 are the elements of its arguments, each step makes the next; `outputs` are its result.

    Of complex numbers the real parts come first, and then the imaginary ones.
    """

    count: int  # type: ignore[assignment]
    steps: tuple[Equation, ...]
    outputs: tuple[int, ...]


_templates: dict[Any, Template] = {}


def _is_input(value: Any, parent: Node | None) -> bool:
    """Float arrays are inputs of a template; Python numbers, single constants, integers and truth values are part of it."""
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "biu" and (parent is not None or value.ndim > 0)


def template(node: Node) -> tuple[Template, list[int]]:
    """The equations of a node's op at the shapes it was called with, and which of its arguments are inputs of them.

    Raises NoFormula for an op whose forward rule the symbolic carrier cannot read.
    """
    args, count = node.args or (), len(node.parents)
    inputs = [i for i in range(count) if _is_input(args[i], node.parents[i])]
    key = node.op, tuple((a.shape, np.iscomplexobj(a)) if i in inputs else _key(a) for i, a in enumerate(args[:count])), _key(args[count:])
    if key not in _templates:
        _templates[key] = _read(node, inputs, count)
    return _templates[key], inputs


def _key(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return tuple(map(_key, x))
    if isinstance(x, slice):
        return slice, _key(x.start), _key(x.stop), _key(x.step)
    return (x.dtype.str, x.shape, x.tobytes()) if isinstance(x, (np.ndarray, np.generic)) else (type(x), x)


def _exact(value: Any) -> Any:
    return symbolic.lift_value(value, exact=True)


def _parameter(x: Any) -> Any:
    """A parameter without the rounding that a float would bring into an exact formula."""
    if isinstance(x, (tuple, list)):
        return type(x)(map(_parameter, x)) if type(x) in (tuple, list) else x
    return sympy.Rational(*x.as_integer_ratio()) if isinstance(x, float) and np.isfinite(x) else x


def _read(node: Node, inputs: Sequence[int], count: int) -> Template:
    op, args = node.op, node.args or ()
    tensors: list[Any] = []
    places: dict[sympy.Symbol, int] = {}
    for i, a in enumerate(args[:count]):
        if i in inputs:
            real, imag = ([sympy.Symbol(f"{part}{i}_{k}", real=True) for k in range(a.size)] for part in "ab")
            numbers = [x + sympy.I * y for x, y in zip(real, imag)] if np.iscomplexobj(a) else real
            for s in (*real, *imag) if np.iscomplexobj(a) else real:
                places[s] = len(places)
            tensors.append(symbolic.ExactExpressions.fill(numbers, a.shape))
        else:
            tensors.append(_exact(a))
    try:
        out = op.forward(symbolic, *((tensors,) if op.arity is None else tensors), *map(_parameter, args[count:]))
        elements = _exact(out).ravel().tolist()
        if any(map(np.iscomplexobj, (node.value, *args[:count]))):
            known: dict[Any, Any] = {}
            pairs = [parts(e, known) for e in elements]
            elements = [a for a, _ in pairs] + ([b for _, b in pairs] if np.iscomplexobj(node.value) else [])
        return cut(elements, places)
    except (AttributeError, TypeError, NotImplementedError, ValueError) as error:
        raise NoFormula(f"the op {op.name} has no symbolic form: {error}") from error


def _relations(choice: sympy.Piecewise) -> list[Relational]:
    return sorted(set().union(*(c.atoms(Relational) for _, c in choice.args)), key=str)


def cut(outputs: Sequence[sympy.Expr], places: Mapping[sympy.Symbol, int]) -> Template:
    """Expressions as a template: every subexpression is one step, once; without recursion.

    >>> x = sympy.Symbol("x", real=True)
    >>> [step.what and str(step.what.expr) for step in cut([sympy.sin(x) ** 2 + sympy.sin(x)], {x: 0}).steps]
    ['sin(p0)', 'p0**2', None]
    """
    known: dict[Any, int] = dict(places)
    steps: list[Equation] = []

    def add(what: Any, inputs: Sequence[int] = ()) -> int:
        steps.append(Equation(what, tuple(inputs)))
        return len(places) + len(steps) - 1

    def parts(e: Any) -> list[Any]:
        if isinstance(e, sympy.Piecewise):
            return [branch for branch, _ in e.args] + [side for relation in _relations(e) for side in relation.args]
        return [x for x in e.args if e.func in PAIRS or e.is_Add or not x.is_number]

    def build(e: Any) -> int:
        if e.is_number:
            return add(e)
        inputs = [known[x] for x in parts(e)]
        if e.is_Add:
            return add(None, inputs)
        if isinstance(e, sympy.Piecewise):
            truths = {relation: sympy.Dummy() for relation in _relations(e)}
            return add(Choice(tuple(c.xreplace(truths) for _, c in e.args), tuple((d, r.func) for r, d in truths.items())), inputs)
        if e.func in PAIRS:
            place = inputs[0]
            for other in inputs[1:]:
                place = add(PAIRS[e.func], (place, other))
            return place
        names = {x: placeholder(i) for i, x in enumerate(dict.fromkeys(parts(e)))}
        return add(elementary(e.func(*[names.get(x, x) for x in e.args]), len(names)), [known[x] for x in names])

    stack = list(outputs)
    while stack:
        e = stack[-1]
        if not isinstance(e, sympy.Expr) or e.is_Symbol and e not in known:
            raise TypeError(f"{e} is not a formula of its arguments")
        missing = [] if e in known or e.is_number else [x for x in parts(e) if x not in known]
        stack.extend(missing)
        if not missing:
            if e not in known:
                known[e] = build(e)
            stack.pop()
    return Template(len(places), tuple(steps), tuple(known[e] for e in outputs))
