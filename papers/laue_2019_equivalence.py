"""Laue 2019: automatic and symbolic differentiation do the same operations, if formulas share their parts.

A function is run on counting numbers, forward with dual numbers and in reverse with a tape, and each operation on a derivative is counted. The
formula of the same function, as the small equations that symgrad recorded, is differentiated by `sympy.diff`, equation by equation.
"""

import math
from types import SimpleNamespace

import sympy

import symgrad


def logistic(m, x, n=8):
    """The n-th iterate of 4 x (1 - x)."""
    for _ in range(n - 1):
        x = (4 * x) * (1 - x)
    return x


def nested(m, x, n=6):
    """sin(x exp(sin(x exp(...))))."""
    y = x
    for _ in range(n):
        y = m.sin(x * m.exp(y))
    return y


def entropy(m, x, n=3):
    """a log(a), again and again, where a = x + exp(y): each part is used twice."""
    y = x
    for _ in range(n):
        a = x + m.exp(y)
        y = a * m.log(a)
    return y


FUNCTIONS = {"the 8th iterate of 4 x (1 - x)": logistic, "sin(x exp(...)), six deep": nested, "a log(a), a = x + exp(...), three deep": entropy}
POINT = 0.3
# A function, its derivative, and the operations of that which are not yet done by the multiplication: a cotangent over v is one in all.
LOCAL = {"exp": (math.exp, math.exp, 1), "sin": (math.sin, math.cos, 1), "log": (math.log, lambda v: 1 / v, 0)}


class Number:
    """A number whose derivatives are carried forward and remembered for the way back; `count` are the operations on derivatives."""

    count = SimpleNamespace(forward=0, reverse=0)

    def __init__(self, value, tangent=0.0, parts=()):
        self.value, self.tangent, self.parts, self.cotangent = value, tangent, parts, None

    @classmethod
    def made(cls, value, parts):
        """What was computed from parts: pairs of a number and the partial derivative by it, with the operations that the partial took."""
        terms = [partial * number.tangent for number, partial, _ in parts]
        cls.count.forward += sum(cost + (partial != 1.0) for _, partial, cost in parts) + len(terms) - 1
        return cls(value, sum(terms), parts)

    def __add__(self, other):
        return Number.made(self.value + other.value, [(self, 1.0, 0), (other, 1.0, 0)])

    def __rsub__(self, other):
        return Number.made(other - self.value, [(self, -1.0, 0)])

    def __mul__(self, other):
        return Number.made(self.value * other.value, [(self, other.value, 0), (other, self.value, 0)])

    def __rmul__(self, other):
        return Number.made(other * self.value, [(self, float(other), 0)])


def counted(name):
    """A function of one number."""
    function, slope, cost = LOCAL[name]
    return lambda x: Number.made(function(x.value), [(x, slope(x.value), cost)])


NUMBERS = SimpleNamespace(**{name: counted(name) for name in LOCAL})


def pulled_back(y):
    """The reverse sweep: every cotangent is complete before it goes on."""
    order, seen, stack = [], set(), [(y, False)]
    while stack:
        number, done = stack.pop()
        if done:
            order.append(number)
        elif id(number) not in seen:
            seen.add(id(number))
            stack += [(number, True), *((part, False) for part, _, _ in number.parts)]
    y.cotangent = 1.0
    for number in reversed(order):
        for part, partial, cost in number.parts:
            Number.count.reverse += cost + (partial != 1.0) + (part.cotangent is not None)
            part.cotangent = (part.cotangent or 0.0) + partial * number.cotangent


def symbolic(lines, x):
    """The derivative as equations between named parts, forward and in reverse, and how many operations they have."""
    tangents, cotangents, forward, reverse = {x: sympy.Symbol("dx")}, {}, 0, 0
    for v, e in lines:
        formula = sum(sympy.diff(e, p) * tangents[p] for p in e.free_symbols)
        tangents[v] = sympy.Symbol(f"d{v}")
        forward += sympy.count_ops(formula)
    for v, e in lines:
        for p in e.free_symbols:
            cotangents.setdefault(p, []).append(sympy.diff(e, p) * sympy.Symbol(f"b{v}"))
    for terms in cotangents.values():
        reverse += sum(sympy.count_ops(term) for term in terms) + len(terms) - 1
    return int(forward), int(reverse)


def main():
    """Print the table of counts and assert that the two columns of each mode are equal."""
    print("| function | forward: automatic | symbolic, shared | reverse: automatic | symbolic, shared | symbolic, written out |")
    for name, function in FUNCTIONS.items():
        Number.count = SimpleNamespace(forward=0, reverse=0)
        x = Number(POINT, 1.0)
        y = function(NUMBERS, x)
        pulled_back(y)
        at = symgrad.tensor(POINT, requires_grad=True, symbol="x")
        out = function(symgrad, at)
        counts = symbolic(out.assignments(), sympy.Symbol("x", real=True))
        written_out = int(sympy.count_ops(sympy.diff(out.expr, sympy.Symbol("x", real=True))))
        out.backward()
        assert (Number.count.forward, Number.count.reverse) == counts
        assert math.isclose(x.cotangent, at.grad.item(), rel_tol=1e-12) and math.isclose(y.tangent, at.grad.item(), rel_tol=1e-12)
        print(f"| {name} | {Number.count.forward} | {counts[0]} | {Number.count.reverse} | {counts[1]} | {written_out} |")


if __name__ == "__main__":
    main()
