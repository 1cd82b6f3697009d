"""The shapes and further arguments that ops take, and maps of values into an op's domain."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.graph.domains import BOOLEAN, COMPLEX, REAL, Domain, Interval
from symgrad.graph.op import REGISTRY, Op
from symgrad.testing.strategies.arrays import require_hypothesis
from symgrad.testing.strategies.indexing import axes, indices, permutations

Shape = tuple[int, ...]
MAX_ELEMENTS = 12  # elements of a value
SIMPLEST_OPS = ("sin", "mul", "add", "sum", "mm", "exp", "square")  # the shape that programs shrink to


class IntervalMap(NamedTuple):
    """A smooth function that maps every number into an interval: its text, and the function."""

    text: str
    function: Callable[[Any], Any]
    low: float
    high: float


GUARDS = {
    "": IntervalMap("{0}", lambda x: x, -math.inf, math.inf),
    "small": IntervalMap("{0}/(1 + {0}*{0})", lambda x: x / (1 + x * x), -0.5, 0.5),
    "positive": IntervalMap("1 + {0}*{0}", lambda x: 1 + x * x, 1.0, math.inf),
    "above one": IntervalMap("2 + {0}*{0}", lambda x: 2 + x * x, 2.0, math.inf),
    "negative": IntervalMap("-1 - {0}*{0}", lambda x: -1 - x * x, -math.inf, -1.0),
    "between": IntervalMap("0.5 + {0}/(4 + 4*{0}*{0})", lambda x: 0.5 + x / (4 + 4 * x * x), 0.375, 0.625),
}


def guard_for(domain: Domain) -> str | None:
    """The first guard that maps all numbers into a domain, None if there is none.

    >>> from symgrad.graph.domains import NONZERO, POSITIVE, REAL, UNIT_OPEN
    >>> [guard_for(d) for d in (REAL, POSITIVE, NONZERO, UNIT_OPEN)]
    ['', 'positive', 'positive', 'small']
    """
    def inside(g: IntervalMap, i: Interval) -> bool:
        return i.low <= g.low and g.high <= i.high and not (i.open_low and math.isfinite(i.low) and g.low == i.low) \
            and not (i.open_high and math.isfinite(i.high) and g.high == i.high)

    if domain.integer:
        return None
    return next((name for name, g in GUARDS.items() if any(inside(g, i) for i in domain.intervals)
                 and not any(g.low <= x <= g.high for x in domain.excluded)), None)


def op_named(op: Any) -> Op:
    """An op by its name, by itself, or by its public function.

    Raises ValueError for a name that is not registered, TypeError for a value that is no op, or a composite one.
    """
    found = REGISTRY.get(op) if isinstance(op, str) else op if isinstance(op, Op) else getattr(op, "op", None)
    if isinstance(op, str) and found is None:
        raise ValueError(f"programs: no op is called {op!r}")
    if not isinstance(found, Op) or REGISTRY.get(found.name) is not found:
        raise TypeError(f"programs: {op!r} is no op of the registry")
    if found.kind == "composite" or not found.differentiable:
        raise TypeError(f"programs: {found.name} {'is made of other ops' if found.kind == 'composite' else 'has no derivative'}; name others")
    return found


def default_ops() -> list[Op]:
    """The public ops of the registry that can be part of a program: elementwise ones with a nonzero derivative, reductions, linear and matrix ops."""
    found = [op for op in REGISTRY.values() if op.surface.public and op.differentiable and _usable(op)]
    return sorted(found, key=lambda op: (SIMPLEST_OPS.index(op.name) if op.name in SIMPLEST_OPS else len(SIMPLEST_OPS), op.name))


def _usable(op: Op) -> bool:
    if op.kind != "elementwise":
        return op.name in FITS
    domains = op.domain or (REAL,)
    return (any(callable(p) or p for p in op.partials) and BOOLEAN not in domains and COMPLEX not in domains
            and all(guard_for(d) is not None for d in domains))


# Tests for shapes, and strategies for further arguments.


class Fit(NamedTuple):
    """A condition on the shapes of an op's operands, and the strategy for its further arguments."""

    fits: Callable[..., bool]
    parameters: Callable[..., Any] = lambda *shapes: ((),)  # a strategy, or a list of all of them


def _axis_tuples(shape: Shape) -> Any:
    return axes(len(shape), negative=False).map(lambda a: a if isinstance(a, tuple) else (a,))


def _reduction_parameters(shape: Shape) -> Any:
    st = require_hypothesis().strategies
    return st.tuples(_axis_tuples(shape), st.booleans())


def _variance_parameters(shape: Shape) -> Any:
    """Axes with two elements or more, the correction 1, and `keepdim`."""
    st = require_hypothesis().strategies
    wide = _axis_tuples(shape).map(lambda row: row if math.prod(shape[a] for a in row) > 1 else tuple(range(len(shape))))
    return st.tuples(wide, st.just(1), st.booleans())


def _one_axis(*shapes: Shape) -> Any:
    return axes(len(shapes[0]), several=False, negative=False).map(lambda a: (a,))


def _factors(shape: Shape) -> Any:
    size = math.prod(shape)
    return [((size,),), *(((n, size // n),) for n in range(1, size + 1) if size % n == 0)]


def _basic(shape: Shape) -> Any:
    return indices(shape, advanced=False).map(lambda index: (index if np.empty(shape)[index].size else 0,))


def _is_not_empty(shape: Shape) -> bool:
    return len(shape) > 0 and math.prod(shape) > 0


def _is_square(shape: Shape) -> bool:
    return len(shape) == 2


def _fits_twice(shape: Shape) -> bool:
    return 2 * math.prod(shape) <= MAX_ELEMENTS


WEIGHTS = ((1, 1), (0.5, 2.0))
FITS: dict[str, Fit] = {
    **dict.fromkeys(("sum", "mean", "prod", "amax", "amin", "logsumexp"), Fit(_is_not_empty, _reduction_parameters)),
    **dict.fromkeys(("var", "std"), Fit(lambda a: len(a) > 0 and math.prod(a) > 1, _variance_parameters)),
    **dict.fromkeys(("cumsum", "cumprod"), Fit(_is_not_empty, _one_axis)),
    **dict.fromkeys(("softmax", "log_softmax"), Fit(_is_not_empty, lambda a: _one_axis(a).map(lambda row: (row,)))),
    "flip": Fit(_is_not_empty, lambda a: _axis_tuples(a).map(lambda row: (row,))), "reshape": Fit(_is_not_empty, _factors),
    "getitem": Fit(_is_not_empty, _basic),
    **dict.fromkeys(("permute", "transpose", "movedim"), Fit(lambda a: len(a) > 1, lambda a: permutations(len(a)).map(lambda order: (order,)))),
    **dict.fromkeys(("expand", "broadcast_to"), Fit(_fits_twice, lambda a: [((2, *a),)])),
    "repeat": Fit(lambda a: _is_not_empty(a) and _fits_twice(a), lambda a: [((2, *[1] * (len(a) - 1)),)]),
    "unsqueeze": Fit(lambda a: len(a) < 3, lambda a: [((1, *a),), ((*a, 1),)]),
    "unflatten": Fit(lambda a: len(a) == 1 and _is_not_empty(a), _factors),
    "squeeze": Fit(lambda a: 1 in a, lambda a: [(tuple(n for n in a if n != 1), None)]), "clone": Fit(lambda a: True, lambda a: [("K",)]),
    "roll": Fit(_is_not_empty, lambda a: [(1, None), *(((1,), (k,)) for k in range(len(a)))]),
    "rot90": Fit(_is_square, lambda a: [(k, (0, 1)) for k in (1, 2, 3)]), "unfold": Fit(lambda a: len(a) > 0 and a[0] > 1, lambda a: [(0, 2, 1)]),
    "diagonal": Fit(_is_square, lambda a: [(0, 0, 1)]), "diag_embed": Fit(lambda a: len(a) == 1 and a[0] ** 2 <= MAX_ELEMENTS, lambda a: [(0, 0, 1)]),
    "stack": Fit(lambda a, b: a == b and _fits_twice(a) and len(a) > 0, _one_axis),
    "cat": Fit(lambda a, b: a == b and _fits_twice(a) and len(a) > 0, _one_axis),
    "t": Fit(_is_square, lambda a: [((1, 0),)]), "trace": Fit(_is_square),
    "diag": Fit(lambda a: len(a) in (1, 2) and a[0] * a[-1] <= MAX_ELEMENTS, lambda a: [(0,)]),
    **dict.fromkeys(("tril", "triu"), Fit(_is_square, lambda a: [(0,), (1,), (-1,)])),
    "dot": Fit(lambda a, b: len(a) == 1 and a == b), "mv": Fit(lambda a, b: len(a) == 2 and b == a[1:]),
    "mm": Fit(lambda a, b: len(a) == len(b) == 2 and a[1] == b[0] and a[0] * b[1] <= MAX_ELEMENTS),
    "addmm": Fit(lambda c, a, b: len(a) == len(b) == 2 and a[1] == b[0] and c == (a[0], b[1]), lambda *_: WEIGHTS),
    "addmv": Fit(lambda c, a, b: len(a) == 2 and b == a[1:] and c == a[:1], lambda *_: WEIGHTS),
    "addr": Fit(lambda c, a, b: len(a) == len(b) == 1 and c == (*a, *b), lambda *_: WEIGHTS),
    "cross": Fit(lambda a, b: a == b and a[-1:] == (3,), lambda a, *_: [(len(a) - 1,)]),
    "mse_loss": Fit(lambda a, b: a == b, lambda *_: [("mean",), ("sum",)]),
}


def fits(op: Op, shapes: Sequence[Shape]) -> bool:
    """Whether an op takes operands of these shapes.

    An op without an entry here fits where its own `shapes` equal the operands'; an elementwise op where they broadcast.
    """
    return _fits(op, tuple(shapes))


@functools.lru_cache(10000)
def _fits(op: Op, shapes: tuple[Shape, ...]) -> bool:
    if op.name in FITS:
        return FITS[op.name].fits(*shapes)
    if op.kind != "elementwise":
        return shapes == tuple(op.docs.shapes or ((3, 4),) * (op.arity or 2))
    try:
        return math.prod(np.broadcast_shapes(*shapes)) <= MAX_ELEMENTS
    except ValueError:
        return False


def parameters(op: Op, shapes: Sequence[Shape]) -> Any:
    """The strategy for an op's further arguments for operands of these shapes; the op's own `examples` if it has no entry here."""
    found = FITS[op.name].parameters(*shapes) if op.name in FITS else op.docs.examples or ((),)
    st = require_hypothesis().strategies
    return found if isinstance(found, st.SearchStrategy) else st.sampled_from(tuple(found))
