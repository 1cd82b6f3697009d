"""A straight-line program of formulas: a long expression is a symbol for a step, which is a short expression of earlier steps.

Rules and references of an op are written on one tape, so that what they share is one step. Derivatives are a reverse sweep with SymPy's partial
derivatives of each step, and each step has one normal form and one value at a point. No expression tree of a derivative is built.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

import sympy
from sympy.core.relational import Relational

from symgrad.algebra.normal import Normal
from symgrad.carriers.sizes import tree_size
from symgrad.reference.elementary import derivative

SHORT, PART = 24, 6  # the most nodes of an expression that stays as it is, and of an argument of a longer one
LEAVES = 50_000  # the most nodes of an expression that is written out


class Tape:
    """The steps of some formulas, by the symbols that stand for them.

    >>> x = sympy.Symbol("x", real=True)
    >>> tape = Tape()
    >>> long = tape.cut(sympy.exp(sum(sympy.cos(k * x) for k in range(1, 9))))
    >>> long.free_symbols & set(tape.steps) == set(tape.steps) != set()
    True
    >>> tape.written_out(tape.gradient(long, [x])[0]).subs(x, 0)
    0
    """

    def __init__(self) -> None:
        self.steps: dict[sympy.Symbol, Any] = {}
        self.symbols: dict[Any, sympy.Symbol] = {}
        self.index: dict[sympy.Symbol, int] = {}
        self.sizes: dict[Any, int] = {}
        self._cut: dict[Any, Any] = {}
        self._partials: dict[Any, Any] = {}
        self._free: dict[Any, frozenset[Any]] = {}
        self._addends: dict[Any, dict[Any, list[Any]]] = {}
        self._written: dict[Any, Any] = {}
        self._inputs: dict[Any, frozenset[Any]] = {}

    def size(self, e: Any) -> int:
        return tree_size(e, self.sizes)

    def free(self, e: Any) -> frozenset[Any]:
        if e not in self._free:
            self._free[e] = frozenset(e.free_symbols)
        return self._free[e]

    def cut(self, e: Any) -> Any:
        """The expression in terms of steps, short unless it is a selection by a condition."""
        if not isinstance(e, sympy.Expr) or not e.args or self.size(e) <= SHORT or has_condition(e):
            return e
        found = self._cut.get(e)
        if found is None:
            args = [self.cut(x) for x in e.args]
            found = e.func(*(self.step(x) if isinstance(x, sympy.Expr) and self.size(x) > PART else x for x in args))
            found = self._cut[e] = self.step(found) if self.size(found) > SHORT else found
        return found

    def step(self, e: Any) -> Any:
        """The symbol that stands for an expression of earlier steps."""
        if not e.args or e.is_number or has_condition(e):
            return e
        if e.is_Mul and e.args[0].is_Rational:  # steps that differ in a factor are one
            c, rest = e.as_coeff_Mul()
            return c * self.step(rest)
        if e not in self.symbols:
            s = sympy.Dummy(f"s{len(self.steps):06}", **{_kind(e): True})
            self.index[s], self.steps[s], self.symbols[e] = len(self.steps), e, s
        return self.symbols[e]

    def needed(self, e: Any) -> list[sympy.Symbol]:
        found: set[sympy.Symbol] = set()
        pending = [e]
        while pending:
            new = {s for s in self.free(pending.pop()) if s in self.steps} - found
            found |= new
            pending += [self.steps[s] for s in new]
        return sorted(found, key=self.index.__getitem__)

    def inputs(self, e: Any) -> frozenset[Any]:
        """The symbols in an expression that are no steps, also those of its steps."""
        out: set[Any] = set()
        for s in self.free(e):
            if s not in self.steps:
                out.add(s)
                continue
            if s not in self._inputs:
                for part in self.needed(self.steps[s]):
                    if part not in self._inputs:
                        self._inputs[part] = self.inputs(self.steps[part])
                self._inputs[s] = self.inputs(self.steps[s])
            out |= self._inputs[s]
        return frozenset(out)

    def written_out(self, e: Any) -> Any:
        sizes: dict[Any, int] = {}
        for s in self.needed(e):
            sizes[s] = self._full_size(self.steps[s], sizes)
        if self._full_size(e, sizes) > LEAVES:
            return None
        for s in self.needed(e):
            if s not in self._written:
                self._written[s] = self._inserted(self.steps[s])
        return self._inserted(e)

    def _inserted(self, e: Any) -> Any:
        at = {s: self._written[s] for s in e.free_symbols if s in self.steps}
        return e.xreplace(at) if at else e

    def _full_size(self, e: Any, sizes: dict[Any, int]) -> int:
        return self.size(e) + sum(sizes[s] * sum(1 for a in sympy.preorder_traversal(e) if a == s) for s in e.free_symbols if s in self.steps)

    def partial(self, e: Any, s: sympy.Symbol) -> Any:
        """The derivative of a short expression by one symbol in it, its steps kept fixed: of its functions by `sympy.diff`."""
        if s not in self.free(e):
            return sympy.S.Zero
        if e == s:
            return sympy.S.One
        if (e, s) not in self._partials:
            if e.is_Add:
                if e not in self._addends:
                    parts = self._addends[e] = {}
                    for x in e.args:
                        for t in self.free(x):
                            parts.setdefault(t, []).append(x)
                found = sympy.Add(*(self.partial(x, s) for x in self._addends[e][s]))
            elif e.is_Mul:
                found = sympy.Add(*(sympy.Mul(*e.args[:k], self.partial(x, s), *e.args[k + 1:]) for k, x in enumerate(e.args) if s in self.free(x)))
            elif e.is_Pow and e.exp.is_Rational:
                found = e.exp * e.base ** (e.exp - 1) * self.partial(e.base, s)
            else:
                found = derivative(e, s)
            self._partials[e, s] = self.cut(found)
        return self._partials[e, s]

    def gradient(self, e: Any, by: Sequence[sympy.Symbol]) -> list[Any]:
        """The derivatives of an expression by several symbols: a reverse sweep over its steps."""
        wanted = frozenset(by)
        terms: dict[sympy.Symbol, list[Any]] = {}
        queue: list[int] = []
        of = {self.index[s]: s for s in self.needed(e)}

        def spread(body: Any, factor: Any) -> None:
            for s in sorted(self.free(body), key=lambda s: s.name):
                if s in wanted if s not in self.steps else self.inputs(s) & wanted:
                    if s not in terms and s in self.steps:
                        heapq.heappush(queue, -self.index[s])
                    slope = self.partial(body, s)
                    terms.setdefault(s, []).append(factor if slope == 1 else self.cut(slope * factor))

        spread(e, sympy.S.One)
        while queue:
            s = of[-heapq.heappop(queue)]
            total = self.cut(sympy.Add(*terms.pop(s)))
            if total != 0:
                spread(self.steps[s], total if self.size(total) <= PART else self.step(total))
        return [self.cut(sympy.Add(*terms.get(s, ()))) for s in by]


def _kind(e: Any) -> str:
    """What is known of the numbers of a short expression: positive, negative, real or complex. SymPy is asked for functions only, which is slow."""
    if e.is_Add or e.is_Mul:
        kinds = [_kind(x) for x in e.args]
        if "complex" in kinds:
            return "complex"
        if "real" in kinds or e.is_Add and len(set(kinds)) > 1:
            return "real"
        return kinds[0] if e.is_Add else "positive" if kinds.count("negative") % 2 == 0 else "negative"
    if e.is_Pow and e.exp.is_Rational:
        kind = _kind(e.base)
        return kind if kind == "positive" or e.exp.is_Integer and e.exp.p % 2 else "complex" if kind == "complex" or not e.exp.is_Integer \
            else "positive" if kind == "negative" else "real"
    if isinstance(e, sympy.exp):
        return "positive" if _kind(e.args[0]) != "complex" else "complex"
    return "positive" if e.is_positive else "negative" if e.is_negative else "real" if e.is_real else "complex"


def has_condition(e: Any) -> bool:
    """Whether an expression selects by a condition, so that its cases are compared one by one."""
    return bool(e.has(sympy.Piecewise, Relational))


class Forms(Normal):
    """The normal forms of the expressions of a tape, one for each step."""

    def __init__(self, tape: Tape, *args: Any):
        self.tape = tape
        super().__init__(*args)

    def of(self, e: Any) -> Any:
        if e not in self.memo and e in self.tape.steps:
            self.memo[e] = super().of(self.tape.steps[e])
        return super().of(e)

    def agree(self, a: Any, b: Any) -> bool:
        """Whether two expressions have the same normal form. The forms of the steps come first, so that no recursion is deep."""
        for s in dict.fromkeys([*self.tape.needed(a), *self.tape.needed(b)]):
            self.of(s)
        terms: Iterable[Any] = [self.of(x) for x in sympy.Add.make_args(a)] + [self.minus(self.of(x)) for x in sympy.Add.make_args(b)]
        return bool(self.is_zero(self.sum(list(terms))))
