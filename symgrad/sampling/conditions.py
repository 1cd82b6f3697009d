"""Boundaries between the pieces of a function, from its formula, its recorded graph or its source, and the numbers to test at and near them.

A rule can be wrong only at a constant in a condition, on one side of it, far beyond it, or in a narrow band around it. Random points
rarely hit these cases, so they are listed here.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import sympy
from sympy.core.relational import Relational

from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.sampling.floats import Floats

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")  # ops
STEP_FUNCTIONS = sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod, sympy.Abs, sympy.sign, sympy.Max, sympy.Min
NEAR = 2.0**-10, 2.0**-26, 3e-10, 1e-12, 1e-6  # relative distances, for bands of several widths
ULPS = 1, 2, 16, 1024
BEYOND = 0.1, 0.5, 1.0, 10.0, 1e3  # relative distances
MULTIPLES = 0, 1, -1, 3  # of a period, and the integers of a step function, that are tested
JAX_RULES = "fun", "fwd", "bwd", "jvp", "vmap_rule"  # attributes of functions with rules of their own
FRAMEWORKS = "symgrad", "torch", "jax", "autograd", "numpy", "scipy", "builtins", "math"
MOST_FUNCTIONS, LONGEST_TUPLE = 40, 8  # the number of functions whose sources are read, and the length of a tuple whose numbers are read
COMMON = 0.0, 0.5, 1.0, 2.0
AROUND = 13  # numbers at and around a constant
TOGETHER = 4  # boundaries of each coordinate that are combined
TOUCHING = 1e-9  # of the values beside it, a value that is 0 but for rounding
PARTS, VARIANTS, ZEROS = 40, 24, 8  # the most parts of a formula, variants of a part with steps, and zeros of a variant in one coordinate
QUARTERS = np.arange(-8, 9) * math.pi / 2
GRID = np.unique([s * x for x in (*np.geomspace(1e-8, 1e8, 161), *np.linspace(0, 50, 101)) for s in (1, -1)])


def switching_functions(e: Any) -> list[tuple[sympy.Expr, bool]]:
    """The functions whose sign, or (True) whose integer part, selects the piece of an expression.

    >>> x = sympy.Symbol("x", real=True)
    >>> switching_functions(sympy.Abs(x - 3) + sympy.floor(x / 2)), switching_functions(sympy.Piecewise((x, x > 7), (0, True)))
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


def _without_steps(u: sympy.Expr, numbers: Sequence[float] = ()) -> list[sympy.Expr]:
    """Smooth expressions whose zeros are ends or inner points of the set where an expression with steps is 0.

    For floor(x/100) - 3 these are x = 300, 350 and 400. For a remainder they include a few periods: the first ones, and those at some numbers.
    """
    done: list[sympy.Expr] = []
    pending = [u]
    while pending and len(done) + len(pending) <= VARIANTS:
        e = pending.pop(0)
        f = next((f for f in sympy.preorder_traversal(e) if isinstance(f, STEP_FUNCTIONS)), None)
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
            period = f.args[1] if isinstance(f, sympy.Mod) else sympy.S.One
            turns = a / period
            of = [sympy.floor(turns.xreplace(dict.fromkeys(turns.free_symbols, sympy.Rational(*x.as_integer_ratio()))))
                  for x in (numbers if len(turns.free_symbols) == 1 else ())]
            options = [a - k * period for k in dict.fromkeys([*MULTIPLES, *(int(k) + i for k in of if k.is_Integer for i in (0, 1, -1))])]
        else:
            options = f.args
        pending += [e.xreplace({f: option}) for option in options]
    return done


@functools.lru_cache(4096)
def zeros(e: sympy.Expr, x: sympy.Symbol) -> tuple[float, ...]:
    """Real zeros of an expression of one symbol: all zeros of a polynomial of degree at most two, otherwise the sign changes on a grid with the
    extrema next to 0, and zeros at which it only touches 0, as sin(x) - 1 does.

    >>> x = sympy.Symbol("x", real=True)
    >>> zeros(x**2 - 9, x), round(zeros(sympy.exp(x) - 3, x)[0], 12)
    ((-3.0, 3.0), 1.098612288668)
    >>> [[round(float(y), 9) for y in zeros(sympy.sin(x) - 1 + gap, x)][:2] for gap in (0, 1e-9)]
    [[1.570796327, -4.71238898], [1.570751605, 1.570841048]]
    """
    if e.is_polynomial(x) and sympy.degree(e, x) <= 2:
        coefficients = [float(c) for c in sympy.Poly(e, x).all_coeffs() if c.is_real]
        return tuple([float(r.real) + 0.0 for r in np.roots(coefficients) if r.imag == 0] if all(map(math.isfinite, coefficients)) else ())
    f, grid = _in_floats(e, x), np.unique([*GRID, *_quarters(e, x)])
    sizes = np.abs(f(grid))
    with np.errstate(all="ignore"):
        least = np.flatnonzero((sizes[1:-1] <= np.minimum(sizes[:-2], sizes[2:])) & (sizes[1:-1] < np.maximum(sizes[:-2], sizes[2:])))
    turning = _changes(_in_floats(sympy.diff(e, x), x), grid, np.concatenate([least, least + 1]), 4 * ZEROS) if least.size else grid[:0]
    touching = turning[np.abs(f(turning)) <= TOUCHING * np.max(sizes[least + 1], initial=0.0)]
    grid = np.unique([*grid, *turning])
    found = np.sign(f(grid))
    crossed = _changes(f, grid, np.flatnonzero(found[:-1] * found[1:] < 0), ZEROS)
    exact = grid[found == 0] if (found != 0).any() else grid[:0]
    return tuple(dict.fromkeys(map(float, [*crossed, *touching[:ZEROS], *exact[np.argsort(np.abs(exact), kind="stable")][:ZEROS]])))


def _quarters(e: sympy.Expr, x: sympy.Symbol) -> Iterator[float]:
    """The multiples of a quarter of the periods of the sines and cosines in an expression: their zeros and extrema."""
    for f in sorted(e.atoms(sympy.sin, sympy.cos), key=sympy.default_sort_key):
        slope, start = sympy.diff(f.args[0], x), f.args[0].xreplace({x: sympy.S.Zero})
        if slope.is_real and slope.is_number and slope != 0 and start.is_real and start.is_number:
            yield from ((QUARTERS - float(start)) / float(slope)).tolist()


def _in_floats(e: sympy.Expr, x: sympy.Symbol) -> Callable[[np.ndarray], np.ndarray]:
    """An expression of one symbol as a function of floats; 0 where NumPy cannot compute it."""
    try:
        f = sympy.lambdify(x, e, "numpy")
    except NotImplementedError:  # a derivative without a form
        return np.zeros_like

    def call(at: np.ndarray) -> np.ndarray:
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(f(at))
                return np.broadcast_to(found.real.astype(np.float64) * (found.imag == 0), at.shape)
        except (TypeError, ValueError, ArithmeticError, NameError, AttributeError):
            return np.zeros(at.shape)

    return call


def _changes(f: Callable[[np.ndarray], np.ndarray], grid: np.ndarray, places: np.ndarray, most: int) -> np.ndarray:
    """The floats at which the sign of a function changes, after some places of a grid; those nearest to 0."""
    floats, signs = Floats("float64"), lambda at: np.sign(f(at))
    places = places[signs(grid[places]) * signs(grid[places + 1]) < 0]
    places = places[np.argsort(np.abs(grid[places]), kind="stable")][:most]
    return floats.at(floats.changes(signs, grid[places], grid[places + 1]))


def _all_zeros(u: sympy.Expr, x: sympy.Symbol, numbers: Sequence[float] = ()) -> list[float]:
    """Zeros of an expression with steps, and ends of the sets where it is 0; empty if SymPy cannot insert numbers, as for a remainder by 0."""
    try:
        return [y for smooth in _without_steps(u, numbers) if smooth.free_symbols == {x} for y in zeros(smooth, x)]
    except (ArithmeticError, TypeError, ValueError):
        return []


def nearby_numbers(x: float, dtype: Any = "float64") -> list[float]:
    """Numbers of a type at x, next to it, in narrow bands around it, beyond it and far away, on both sides; the nearest bands first.

    >>> nearby_numbers(40.0)[:3], 400.0 in nearby_numbers(40.0) or 440.0 in nearby_numbers(40.0)
    ([40.0, 40.00000000000001, 39.99999999999999], True)
    """
    floats, size = Floats(dtype), abs(x) or 1.0
    signs = (1, -1)
    found = [x, *floats.moved([x, x], signs), *(x + s * w * size for w in NEAR for s in signs)]
    found += [y for n in ULPS[1:] for y in floats.moved([x, x], [n, -n])] + [x + s * w * size for w in BEYOND for s in signs] + [-x]
    return list(dict.fromkeys(map(float, floats.nearest(found))))


def boundaries(expressions: Sequence[Any], symbols: Sequence[Any], base: Iterable[Any], poles: bool = True) -> list[tuple[int, float]]:
    """The boundaries of conditions, the kinks, the poles and the ends of formulas, as pairs (coordinate, number), and numbers between them.

    Each boundary is computed in one coordinate, with the others as in the base. The symbols may be given by name.

    >>> x = sympy.Symbol("x", real=True)
    >>> boundaries([sympy.Piecewise((2 * x, sympy.Eq(sympy.floor(x / 100), 3)), (x, True))], ["x"], [5.0])[:3]
    [(0, 300.0), (0, 400.0), (0, 350.0)]
    """
    signs: dict[sympy.Expr, None] = {}
    steps: dict[sympy.Expr, None] = {}
    for e in expressions:
        for u, lattice in switching_functions(e):
            (steps if lattice else signs)[u] = None
        signs |= {f.args[0]: None for f in sympy.preorder_traversal(e) if poles and (  # denominators, and the arguments of logarithms and roots
            isinstance(f, sympy.log) or f.is_Pow and not (f.exp.is_Integer and f.exp.is_positive))}
    order = functools.partial(sorted, key=lambda u: (u.has(*STEP_FUNCTIONS), sympy.default_sort_key(u)))  # SymPy orders conditions at random
    parts = [*order(signs), *(u - k for u in order(steps) for k in MULTIPLES)]
    parts = [part for part in parts if not part.has(sympy.I)]  # complex numbers have no order
    symbols = [sympy.Symbol(s, real=True) if isinstance(s, str) else s for s in symbols]
    values = {s: sympy.Rational(*float(x).as_integer_ratio()) for s, x in zip(symbols, base)}
    out: dict[tuple[int, float], None] = {}
    parts_of: dict[int, list[sympy.Expr]] = {}
    for part, (k, s) in itertools.product(parts[:PARTS], enumerate(symbols)):
        if s in part.free_symbols:
            fixed = part.xreplace({o: v for o, v in values.items() if o != s})
            parts_of[k] = [*parts_of.get(k, ()), fixed]
            out |= {(k, x): None for x in _all_zeros(fixed, s)}
    for k, fixed_parts in parts_of.items():
        known = [x for i, x in out if i == k][:len(MULTIPLES)]
        out |= {(k, x): None for fixed in fixed_parts[:PARTS * (len(fixed_parts) > 1)] if fixed.has(sympy.Mod, sympy.frac)
                for x in _all_zeros(fixed, symbols[k], known)}
    for k in range(len(symbols)):  # inside narrow pieces
        out |= {(k, low / 2 + high / 2): None for low, high in itertools.pairwise(sorted(x for i, x in out if i == k))}
    return list(out)


def boundary_numbers(expressions: Sequence[Any], symbols: Sequence[Any], base: Iterable[Any], each: int | None = None,
          limit: int = 400) -> list[tuple[int, float]]:
    """All `boundaries` of formulas as pairs (coordinate, number), then up to `each` of the `nearby_numbers` of each boundary."""
    lists = [[(k, y) for y in nearby_numbers(x)[:each]] for k, x in boundaries(expressions, symbols, base)]
    return list(itertools.islice((pair for row in itertools.zip_longest(*lists) for pair in row if pair is not None), limit))


def boundary_points(expressions: Sequence[Any], symbols: Sequence[Any], bases: Sequence[Sequence[float]], each: int | None = None,
            limit: int = 200) -> list[tuple[float, ...]]:
    """Points at and near the boundaries of conditions: each number with the other coordinates as in a base, and boundaries of several coordinates.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> boundary_points([sympy.Piecewise((x, sympy.Eq(x, 2 * y)), (y, True))], [x, y], [(1.5, 2.0)], each=1)
    [(4.0, 2.0), (4.0, 0.75), (1.5, 0.75)]
    """
    expressions = [e for e in expressions if e.has(Relational, sympy.Heaviside, *STEP_FUNCTIONS)]
    if not expressions:
        return []
    lists, together = [], []
    for base in bases:
        found = boundary_numbers(expressions, symbols, base, each, limit)
        lists.append([(*base[:k], x, *base[k + 1:]) for k, x in found])
        at = [[x for i, x in found if i == k][:TOGETHER] or [base[k]] for k in range(len(symbols))]
        together += list(itertools.islice(itertools.product(*at), TOGETHER**2)) if len(symbols) > 1 else []
    interleaved = (v for row in itertools.zip_longest(*lists, together) for v in row if v is not None)
    return list(itertools.islice(dict.fromkeys(interleaved), limit))


def constants_of_graph(root: Node) -> list[float]:
    """The constant operands of the comparisons in a recorded graph."""
    found = [np.asarray(a) for node in upstream([root]) if not isinstance(node, (Leaf, DerivativeNode)) and node.op.name in COMPARISONS
             for a, parent in itertools.zip_longest(node.args or (), node.parents) if parent is None]
    return list(dict.fromkeys(float(x) for a in found if a.dtype.kind in "fiu" for x in np.unique(a)))


def combined_numbers(numbers: Sequence[float]) -> list[float]:
    """Numbers, the `COMMON` ones last, then their roots, and sums, differences, products and quotients of two of them.

    >>> combined_numbers([100.0, 3.0])
    [100.0, 3.0, 10.0, 1.7320508075688772, 103.0, 97.0, -97.0, 300.0, 33.333333333333336, 0.03]
    """
    known = sorted(dict.fromkeys(numbers), key=lambda x: abs(x) in COMMON)
    pairs = [p for p in itertools.combinations([x for x in known if x][:TOGETHER], 2)]
    found = [*known, *(math.sqrt(x) for x in known if x > 0), *(x for a, b in pairs for x in (a + b, a - b, b - a, a * b, a / b, b / a))]
    return list(dict.fromkeys(x for x in found if math.isfinite(x) and (x in known or abs(x) not in COMMON)))


def numbers_around(numbers: Sequence[float], most: int) -> list[float]:
    """Numbers at and around so many constants of a source; of their combinations fewer are around."""
    return [y for k, c in enumerate(combined_numbers(numbers)[:most]) for y in nearby_numbers(c)[:AROUND if k < len(numbers) else 3]]


def constants_of_code(function: Any) -> list[float]:
    """The numbers in the source of a function, of the functions that it calls, and in the closures and globals that it reads.

    Functions, classes and rules of ops are followed, except those of the frameworks. The numbers of the given function come first, then those
    of one function after the other.
    """
    found: list[float] = []
    pending, visited = [function], dict[int, Any]()
    while pending and len(visited) < MOST_FUNCTIONS:
        x = pending.pop(0)
        if isinstance(x, (int, float)) and not isinstance(x, bool):
            found.append(float(x))
        elif isinstance(x, (tuple, frozenset)) and len(x) <= LONGEST_TUPLE:  # longer ones are data
            pending += x
        elif callable(x) and id(x) not in visited:
            visited[id(x)] = x
            pending += _references_of(x)
    return list(dict.fromkeys(x for x in found if abs(x) < math.inf))


def _references_of(f: Any) -> list[Any]:
    """The constants, closure variables, defaults and globals that a function refers to; the functions of a class; the function in a wrapper."""
    if type(f).__module__.partition(".")[0] == "jax":
        return [v for k, v in vars(f).items() if k in JAX_RULES]
    f = inspect.unwrap(f) if hasattr(f, "__wrapped__") else f
    if isinstance(f, functools.partial):
        return [f.func, *f.args, *f.keywords.values()]
    op = getattr(f, "op", f)
    if hasattr(op, "partials") and hasattr(op, "vjp"):
        rules = [op.forward, *op.partials, op.vjp, op.jvp]
        return [rule for rule in rules if (getattr(rule, "__module__", FRAMEWORKS[0]) or "").partition(".")[0] not in FRAMEWORKS]
    if isinstance(f, MethodType):
        return [f.__func__, f.__self__ if isinstance(f.__self__, type) else type(f.__self__)]
    if (getattr(f, "__module__", None) or "").partition(".")[0] in FRAMEWORKS:
        return []
    if isinstance(f, type):
        return [getattr(v, "__func__", v) for v in vars(f).values() if isinstance(v, (staticmethod, classmethod, FunctionType))]
    if not isinstance(f, FunctionType):
        return [] if isinstance(f, BuiltinFunctionType) else [type(f)]
    codes, numbers, names = [f.__code__], list[Any](), list[str]()
    while codes:
        code = codes.pop()
        names += code.co_names
        numbers += code.co_consts
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    cells = [cell.cell_contents for cell in f.__closure__ or () if cell != type(cell)()]
    return [*numbers, *cells, *(f.__defaults__ or ()), *(f.__globals__[name] for name in names if name in f.__globals__)]
