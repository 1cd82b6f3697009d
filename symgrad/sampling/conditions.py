"""Where the pieces of a function meet, by its formula, its recorded graph or its source, and the numbers to try around such a place.

A rule can be wrong at one number that a condition names, on one side of it, only far beyond it, or in a narrow band around it. Random points
do not find these; the functions here list the numbers that do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any

import numpy as np
import sympy
from sympy.core.relational import Relational

from symgrad.graph.link import Link
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.sampling.floats import Floats

__all__ = ["COMPARISONS", "around", "asked", "constants_of_code", "constants_of_graph", "constants_of", "places", "switching", "zeros"]

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")  # ops
STEPPED = sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod, sympy.Abs, sympy.sign, sympy.Max, sympy.Min
NEAR = 2.0**-10, 2.0**-26, 3e-10, 1e-12, 1e-6  # relative distances inside bands of several widths
ULPS = 1, 2, 16, 1024
BEYOND = 0.1, 0.5, 1.0, 10.0, 1e3  # relative distances
TURNS = 0, 1, -1, 3  # the multiples of a period, and the integers, that are tried
PARTS, VARIANTS, ZEROS = 40, 24, 8  # of a formula, of a part with steps, and of a variant in one coordinate
GRID = np.unique([s * x for x in (*np.geomspace(1e-8, 1e8, 161), *np.linspace(0, 50, 101)) for s in (1, -1)])


def switching(e: Any) -> list[tuple[sympy.Expr, bool]]:
    """The functions that decide which piece of an expression applies: by their sign, or (True) by the integers that they pass.

    >>> x = sympy.Symbol("x", real=True)
    >>> switching(sympy.Abs(x - 3) + sympy.floor(x / 2)), switching(sympy.Piecewise((x, x > 7), (0, True)))
    ([(x - 3, False), (x/2, True)], [(x - 7, False)])
    """
    found: dict[tuple[sympy.Expr, bool], None] = {}
    for f in sympy.preorder_traversal(e):
        if isinstance(f, (sympy.Abs, sympy.sign, sympy.Heaviside)):
            found[f.args[0], False] = None
        elif isinstance(f, (sympy.Max, sympy.Min)):
            found |= {(a - b, False): None for a, b in itertools.combinations(f.args, 2)}
        elif isinstance(f, (sympy.floor, sympy.ceiling, sympy.frac)):
            found[f.args[0], True] = None
        elif isinstance(f, sympy.Mod):
            found[f.args[0] / f.args[1], True] = None
        elif isinstance(f, Relational):
            found[f.lhs - f.rhs, False] = None
    return list(found)


def _singular(e: Any) -> Iterator[sympy.Expr]:
    """What is 0 where an expression has a pole or an end: denominators, and the arguments of logarithms and roots."""
    for f in sympy.preorder_traversal(e):
        if isinstance(f, sympy.log) or f.is_Pow and not (f.exp.is_Integer and f.exp.is_positive):
            yield f.args[0]


def _without_steps(u: sympy.Expr) -> list[sympy.Expr]:
    """Smooth expressions whose zeros are ends or inner points of the set where a stepped one is 0: of floor(x/100) - 3, x = 300, 350 and 400."""
    done: list[sympy.Expr] = []
    left = [u]
    while left and len(done) + len(left) <= VARIANTS:
        e = left.pop(0)
        f = next((f for f in sympy.preorder_traversal(e) if isinstance(f, STEPPED)), None)
        if f is None:
            done.append(e)
            continue
        a, half = f.args[0], sympy.Rational(1, 2)
        if isinstance(f, sympy.floor):
            options: Sequence[Any] = (a, a - 1, a - half)
        elif isinstance(f, sympy.ceiling):
            options = (a, a + 1, a + half)
        elif isinstance(f, sympy.Abs):
            options = (a, -a)
        elif isinstance(f, (sympy.frac, sympy.Mod)):
            options = [a - k * (f.args[1] if isinstance(f, sympy.Mod) else 1) for k in TURNS]
        else:
            options = f.args
        left += [e.xreplace({f: option}) for option in options]
    return done


def zeros(e: sympy.Expr, x: sympy.Symbol) -> list[float]:
    """Real zeros of an expression of one symbol: of a polynomial of a degree up to two all, of another those where it changes its sign on a grid.

    >>> x = sympy.Symbol("x", real=True)
    >>> zeros(x**2 - 9, x), round(zeros(sympy.exp(x) - 3, x)[0], 12)
    ([-3.0, 3.0], 1.098612288668)
    """
    if e.is_polynomial(x) and sympy.degree(e, x) <= 2:
        coefficients = [float(c) for c in sympy.Poly(e, x).all_coeffs() if c.is_real]
        return [float(r.real) + 0.0 for r in np.roots(coefficients) if r.imag == 0] if all(map(math.isfinite, coefficients)) else []
    floats, f = Floats("float64"), sympy.lambdify(x, e, "numpy")

    def signs(at: np.ndarray) -> np.ndarray:
        try:
            with np.errstate(all="ignore"):
                return np.sign(np.broadcast_to(np.asarray(f(at), dtype=np.float64), at.shape))
        except (TypeError, ValueError, ArithmeticError, NameError, AttributeError):  # what NumPy cannot compute has no zeros here
            return np.zeros(at.shape)

    found = signs(GRID)
    changes = np.flatnonzero(found[:-1] * found[1:] < 0)
    changes = changes[np.argsort(np.abs(GRID[changes]), kind="stable")][:ZEROS]
    low, high = floats.rank(GRID[changes]), floats.rank(GRID[changes + 1])
    while (high - low > 1).any():
        middle = low + (high - low) // 2
        same = signs(floats.at(middle)) == found[changes]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return [*map(float, floats.at(high)), *map(float, GRID[found == 0][:ZEROS] if (found != 0).any() else ())]


def around(x: float, dtype: Any = "float64") -> list[float]:
    """Numbers of a type at a place, next to it, in narrow bands around it, beyond it and far away, on both sides; the nearest bands first.

    >>> around(40.0)[:3], 400.0 in around(40.0) or 440.0 in around(40.0)
    ([40.0, 40.00000000000001, 39.99999999999999], True)
    """
    floats, size = Floats(dtype), abs(x) or 1.0
    signs = (1, -1)
    found = [x, *floats.moved([x, x], signs), *(x + s * w * size for w in NEAR for s in signs)]
    found += [y for n in ULPS[1:] for y in floats.moved([x, x], [n, -n])] + [x + s * w * size for w in BEYOND for s in signs] + [-x]
    return list(dict.fromkeys(map(float, floats.nearest(found))))


def places(expressions: Sequence[Any], symbols: Sequence[Any], base: Iterable[Any], poles: bool = True) -> list[tuple[int, float]]:
    """Where the conditions and kinks of formulas lie, and their poles and ends, as pairs (coordinate, number), and a number between any two of them.

    Each place is sought in one coordinate with the others as in the base. The symbols may be given by name.

    >>> x = sympy.Symbol("x", real=True)
    >>> places([sympy.Piecewise((2 * x, sympy.Eq(sympy.floor(x / 100), 3)), (x, True))], ["x"], [5.0])[:3]
    [(0, 300.0), (0, 400.0), (0, 350.0)]
    """
    parts: dict[sympy.Expr, None] = {}
    for e in expressions:
        found = switching(e)
        parts |= {u: None for u, lattice in found if not lattice} | dict.fromkeys(_singular(e) if poles else ())
        parts |= {u - k: None for u, lattice in found if lattice for k in TURNS}
    symbols = [sympy.Symbol(s, real=True) if isinstance(s, str) else s for s in symbols]
    values = {s: sympy.Rational(*float(x).as_integer_ratio()) for s, x in zip(symbols, base)}
    out: dict[tuple[int, float], None] = {}
    for part in itertools.islice(parts, PARTS):
        for k, s in enumerate(symbols):
            if s in part.free_symbols:
                fixed = part.xreplace({o: v for o, v in values.items() if o != s})
                out |= {(k, x): None for smooth in _without_steps(fixed) if smooth.free_symbols == {s} for x in zeros(smooth, s)}
    for k in range(len(symbols)):  # inside narrow pieces
        out |= {(k, low / 2 + high / 2): None for low, high in itertools.pairwise(sorted(x for i, x in out if i == k))}
    return list(out)


def asked(expressions: Sequence[Any], symbols: Sequence[Any], base: Iterable[Any], each: int | None = None,
          limit: int = 400) -> list[tuple[int, float]]:
    """The numbers that the conditions, kinks, poles and ends of formulas ask for: all `places`, then up to `each` of the numbers `around` them."""
    lists = [[(k, y) for y in around(x)[:each]] for k, x in places(expressions, symbols, base)]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*lists))
    return list(itertools.islice((pair for pair in turns if pair is not None), limit))


def constants_of(e: Any) -> list[float]:
    """The numbers that stand in an expression, exponents and coefficients included, with their opposites; each may be a place where it changes.

    >>> constants_of(sympy.Symbol("x") ** 2 + sympy.Rational(29, 4))
    [2.0, -2.0, 7.25, -7.25]
    """
    found = sorted({abs(float(x)) for x in e.atoms(sympy.Rational, sympy.Float) if x.is_finite})
    return [s * x for x in found if x for s in (1.0, -1.0)]


def constants_of_graph(root: Node) -> list[float]:
    """The constants that the comparisons of a recorded graph compare with."""
    found = [np.asarray(a) for node in upstream([root]) if not isinstance(node, (Leaf, Link)) and node.op.name in COMPARISONS
             for a, parent in itertools.zip_longest(node.args or (), node.parents) if parent is None]
    return list(dict.fromkeys(float(x) for a in found if a.dtype.kind in "fiu" for x in np.unique(a)))


def constants_of_code(function: Callable[..., Any]) -> list[float]:
    """The numbers that the source of a Python function names: in it and in the functions inside it, in its closure, and among its globals."""
    codes = [c for c in (getattr(function, "__code__", None),) if c is not None]
    spread = getattr(function, "__globals__", {})
    found: list[Any] = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell != type(cell)()]
    while codes:
        code = codes.pop()
        found += [spread.get(name) for name in code.co_names]
        for constant in code.co_consts:
            found += constant if isinstance(constant, (tuple, frozenset)) else [constant]
            codes += [constant] if isinstance(constant, CodeType) else []
    return list(dict.fromkeys(float(x) for x in found if isinstance(x, (int, float)) and not isinstance(x, bool) and abs(x) < math.inf))
