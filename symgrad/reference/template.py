"""Templates: the symbolic form of a forward rule as equations of one elementary function each.

The real and imaginary parts of complex ones are taken without expansion: products stay factored, and common subexpressions stay common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy
from sympy.core.relational import Relational

from symgrad.carriers import symbolic
from symgrad.carriers.lapack import reads_hermitian_parts
from symgrad.graph.node import Node
from symgrad.reference.elementary import elementary, placeholder

Pair = tuple[Any, Any]
ZERO, ONE = sympy.S.Zero, sympy.S.One
A, B = sympy.symbols("a b", real=True, cls=sympy.Dummy)


def real_imaginary_parts(e: Any, known: dict[Any, Pair] | None = None) -> Pair:
    """The real and the imaginary part of an expression in real symbols. `known` is a cache of the parts of subexpressions.

    Raises TypeError for a function without a known formula for its parts.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> real_imaginary_parts((x + sympy.I * y) * sympy.exp(sympy.I * x))
    (x*cos(x) - y*sin(x), x*sin(x) + y*cos(x))
    """
    known = {} if known is None else known
    if e not in known:
        known[e] = (e, ZERO) if isinstance(e, sympy.Symbol) or not (e.is_Add or e.is_Mul) and e.is_extended_real else _parts(e, known)
    return known[e]


def _parts(e: Any, known: dict[Any, Pair]) -> Pair:
    if e == sympy.I:
        return ZERO, ONE
    if isinstance(e, sympy.Piecewise):
        branches = [(real_imaginary_parts(branch, known), _real(condition, known)) for branch, condition in e.args]
        return tuple(sympy.Piecewise(*((pair[i], c) for pair, c in branches)) for i in (0, 1))
    pairs = [real_imaginary_parts(x, known) for x in e.args]
    if e.is_Add:
        return sympy.Add(*(a for a, _ in pairs)), sympy.Add(*(b for _, b in pairs))
    if e.is_Mul:
        out: Pair = (ONE, ZERO)
        for pair in pairs:
            out = _product(out, pair)
        return out
    if e.is_Pow:
        return _power(*pairs)
    a, b = pairs[0]
    if isinstance(e, (sympy.re, sympy.im, sympy.Abs, sympy.arg)):
        real = {sympy.re: lambda: a, sympy.im: lambda: b, sympy.Abs: lambda: _modulus(a, b), sympy.arg: lambda: sympy.atan2(b, a)}
        return real[e.func](), ZERO
    if isinstance(e, sympy.conjugate):
        return a, -b
    if isinstance(e, sympy.sign):
        return a / _modulus(a, b), b / _modulus(a, b)
    if isinstance(e, sympy.exp):
        return sympy.exp(a) * sympy.cos(b), sympy.exp(a) * sympy.sin(b)
    if isinstance(e, sympy.log):
        return sympy.log(_modulus(a, b)), sympy.atan2(b, a)
    if len(pairs) == 1:
        general = e.func(A + sympy.I * B)
        for form in (general.as_real_imag(), general.rewrite(sympy.log)):
            if isinstance(form, tuple) and not any(part.has(sympy.I, sympy.re, sympy.im) for part in form):
                return form[0].xreplace({A: a, B: b}), form[1].xreplace({A: a, B: b})
            if isinstance(form, sympy.Expr) and not form.has(e.func):
                return real_imaginary_parts(form.xreplace({A: a, B: b}), known)
    raise TypeError(f"the real part of {e.func} is not known")


def _product(p: Pair, q: Pair) -> Pair:
    (a, b), (c, d) = p, q
    return a * c - b * d, a * d + b * c


def _modulus(a: Any, b: Any) -> Any:
    return sympy.Abs(a) if b == 0 else sympy.sqrt(a**2 + b**2)


def _power(base: Pair, exponent: Pair) -> Pair:
    (a, b), (p, q) = base, exponent
    if p.is_Integer and q == 0:
        out, square, n = (ONE, ZERO), base, abs(int(p))
        while n:
            out, square, n = _product(out, square) if n % 2 else out, _product(square, square) if n > 1 else square, n // 2
        size = out[0] ** 2 + out[1] ** 2
        return out if p >= 0 else (out[0] / size, -out[1] / size)
    angle = sympy.atan2(b, a)
    size, angle = _modulus(a, b) ** p * sympy.exp(-q * angle), p * angle + (0 if q == 0 else q * sympy.log(_modulus(a, b)))
    return size * sympy.cos(angle), size * sympy.sin(angle)


def _real(condition: Any, known: dict[Any, Pair]) -> Any:
    """A condition on complex numbers as a condition on their parts: both parts for an equality, the real parts for an inequality."""
    def split(relation: Any) -> Any:
        (a, b), (c, d) = (real_imaginary_parts(side, known) for side in relation.args)
        if isinstance(relation, sympy.Eq):
            return sympy.And(sympy.Eq(a, c), sympy.Eq(b, d))
        return sympy.Or(sympy.Ne(a, c), sympy.Ne(b, d)) if isinstance(relation, sympy.Ne) else relation.func(a, c)

    return condition.xreplace({relation: split(relation) for relation in condition.atoms(Relational)})


PAIRS = {kind: elementary(kind(placeholder(0), placeholder(1))) for kind in (sympy.Mul, sympy.Max, sympy.Min)}


class NoFormula(Exception):
    """The error for an op without a symbolic form, whose rule cannot be checked by SymPy."""


class Choice(NamedTuple):
    """The conditions of a Piecewise, with a Dummy for each comparison of two places.

    The inputs of its equation are the branches in order, and then the two sides of each comparison.
    """

    conditions: tuple[Any, ...]
    relations: tuple[tuple[Any, type], ...]


class Equation(NamedTuple):
    """One equation: `operation` is an ElementaryFunction, a Choice, a number, or None for a sum; `inputs` are the places of its operands."""

    operation: Any
    inputs: tuple[int, ...]


class Template(NamedTuple):
    """An op as equations: places 0 to count - 1 are the elements of its arguments, each step adds a place; `outputs` are those of its result.

    For complex arrays the real parts come first, then the imaginary parts.
    """

    count: int  # type: ignore[assignment]
    steps: tuple[Equation, ...]
    outputs: tuple[int, ...]


_templates: dict[Any, Template] = {}


def _is_input(value: Any, parent: Node | None) -> bool:
    """Whether an argument is an input of the template: float arrays are; Python numbers, 0-d constants, integers and booleans are part of it."""
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "biu" and (parent is not None or value.ndim > 0)


def template(node: Node) -> tuple[Template, list[int]]:
    """The equations of a node's op for the shapes of its arguments, and the indices of the arguments that are inputs of the equations.

    Raises NoFormula for an op whose forward rule has no symbolic form.
    """
    args, count = node.args or (), len(node.parents)
    inputs = [i for i in range(count) if _is_input(args[i], node.parents[i])]
    read = tuple((a.shape, np.iscomplexobj(a)) if i in inputs else _key(a) for i, a in enumerate(args[:count]))
    key = node.op, reads_hermitian_parts(), read, _key(args[count:])
    if key not in _templates:
        _templates[key] = _read(node, inputs, count)
    return _templates[key], inputs


def _key(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return tuple(map(_key, x))
    if isinstance(x, slice):
        return slice, _key(x.start), _key(x.stop), _key(x.step)
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype.str, x.shape, x.tobytes()
    return getattr(x, "content", None) or (type(x), x)


def _exact(value: Any) -> Any:
    return symbolic.lift_value(value, exact=True)


def _parameter(x: Any) -> Any:
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
            pairs = [real_imaginary_parts(e, known) for e in elements]
            elements = [a for a, _ in pairs] + ([b for _, b in pairs] if np.iscomplexobj(node.value) else [])
        return equations_of(elements, places)
    except (AttributeError, TypeError, NotImplementedError, ValueError) as error:
        raise NoFormula(f"the op {op.name} has no symbolic form: {error}") from error


def _relations(choice: sympy.Piecewise) -> list[Relational]:
    return sorted(set().union(*(c.atoms(Relational) for _, c in choice.args)), key=str)


def equations_of(outputs: Sequence[sympy.Expr], places: Mapping[sympy.Symbol, int]) -> Template:
    """Expressions as a template with one step for each distinct subexpression. The traversal is iterative.

    >>> x = sympy.Symbol("x", real=True)
    >>> [step.operation and str(step.operation.expr) for step in equations_of([sympy.sin(x) ** 2 + sympy.sin(x)], {x: 0}).steps]
    ['sin(p0)', 'p0**2', None]
    """
    known: dict[Any, int] = dict(places)
    steps: list[Equation] = []

    def add(operation: Any, inputs: Sequence[int] = ()) -> int:
        steps.append(Equation(operation, tuple(inputs)))
        return len(places) + len(steps) - 1

    def operands(e: Any) -> list[Any]:
        if isinstance(e, sympy.Piecewise):
            return [branch for branch, _ in e.args] + [side for relation in _relations(e) for side in relation.args]
        return [x for x in e.args if e.func in PAIRS or e.is_Add or not x.is_number]

    def build(e: Any) -> int:
        if e.is_number:
            return add(e)
        inputs = [known[x] for x in operands(e)]
        if e.is_Add:
            return add(None, inputs)
        if isinstance(e, sympy.Piecewise):
            dummies = {relation: sympy.Dummy() for relation in _relations(e)}
            return add(Choice(tuple(c.xreplace(dummies) for _, c in e.args), tuple((d, r.func) for r, d in dummies.items())), inputs)
        if e.func in PAIRS:
            place = inputs[0]
            for other in inputs[1:]:
                place = add(PAIRS[e.func], (place, other))
            return place
        names = {x: placeholder(i) for i, x in enumerate(dict.fromkeys(operands(e)))}
        return add(elementary(e.func(*[names.get(x, x) for x in e.args]), len(names)), [known[x] for x in names])

    stack = list(outputs)
    while stack:
        e = stack[-1]
        if not isinstance(e, sympy.Expr) or e.is_Symbol and e not in known:
            raise TypeError(f"{e} is not an expression of the arguments")
        missing = [] if e in known or e.is_number else [x for x in operands(e) if x not in known]
        stack.extend(missing)
        if not missing:
            if e not in known:
                known[e] = build(e)
            stack.pop()
    return Template(len(places), tuple(steps), tuple(known[e] for e in outputs))
