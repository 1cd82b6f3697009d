"""Confirmation: a compact form is returned only if its numbers agree with the elementwise reference to fifty digits.

The reference value is computed by a replay of the recorded graph with many digits. The reference of a derivative is a difference quotient of such
values with 250 digits along random directions, which uses no differentiation rule and has more than fifty correct digits. A graph of large arrays
cannot be replayed at other sizes; its normal form is compared with the recorded numbers and then is the reference at small sizes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import precise
from symgrad.carriers.lapack import hermitian_parts
from symgrad.engine.replay import replay
from symgrad.errors import LinAlgError
from symgrad.matrixcalc.evaluation import FLOATS, PRECISE, of_form, of_sum
from symgrad.matrixcalc.printing import MatrixForm
from symgrad.matrixcalc.reading import TensorGraph
from symgrad.matrixcalc.terms import Dimension, Sum, Symbol

DIGITS, WORKING, STEP, POINTS, SMALL = 50, 250, 60, 2, 40
Values = Mapping[str, Any]


class Disagreement(AssertionError):
    """The error for a compact form that disagrees with the elementwise reference: a bug of symgrad."""


def sizes_of(symbols: Mapping[str, Symbol], values: Values) -> Callable[[Dimension], int]:
    """The length of every dimension, from the recorded arrays."""
    known = {d.root(): n for name, symbol in symbols.items() for d, n in zip(symbol.dimensions, values[name].shape)}
    return lambda d: d.length(known)


@hermitian_parts()  # a random matrix is not symmetric, and the notation has no triangles
def confirm(graph: TensorGraph, by: Sequence[Symbol], compact: Sum, form: MatrixForm | None, text: str) -> int:
    """Compare a compact form and its notation with the reference and return the number of points. Raises Disagreement, ValueError."""
    with precise.working_precision(WORKING):
        points, generator = 0, random.Random(len(text))
        reference = _reference(graph)
        for values, sizes in _points(graph, generator):
            try:
                derivatives = _differences(reference, values, sizes, by, generator)
            except LinAlgError:  # the point is not in the domain, as a matrix that is not positive definite
                continue
            for direction, expected in derivatives:
                found = of_sum(compact, values, PRECISE, sizes)
                if form is not None:
                    _check_equal(_in_notation_shape(found), of_form(form, values, PRECISE, sizes), text)
                _check_equal(np.asarray(_contract(found, direction)), expected, text)
            points += 1
            if points == POINTS:
                return points
        raise ValueError(f"matrix_expr: no point was found at which {text} could be compared with the reference value: the value is not finite near "
                         f"the given arrays; give arrays inside the function's domain")


def _in_notation_shape(array: Any) -> Any:
    """An array in the shape of matrix notation: a column for a vector, and ∂vec(Y)/∂vec(X)ᵀ for a derivative of a matrix by a matrix."""
    if array.ndim == 4:
        i, j, k, l = array.shape
        return array.transpose(1, 0, 3, 2).reshape(i * j, k * l)
    return array.reshape(-1, 1) if array.ndim == 1 else array.reshape(1, 1) if not array.ndim else array


def _check_equal(found: Any, expected: Any, text: str) -> None:
    """Raise Disagreement unless two arrays agree to `DIGITS` digits, relative to the largest element."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.ndim == expected.ndim:
        found, expected = np.broadcast_arrays(found, expected)
    if found.shape != expected.shape:
        raise Disagreement(f"matrix_expr: {text} has shape {found.shape} where the reference value has {expected.shape}; please report this")
    size = max([abs(x) for x in expected.ravel().tolist()] + [precise.context.mpf(10) ** -20])
    for x, y in zip(found.ravel().tolist(), expected.ravel().tolist()):
        if not abs(x - y) <= size * precise.context.mpf(10) ** -DIGITS:
            one, other = (precise.context.nstr(number, 15) for number in (x, y))
            raise Disagreement(f"matrix_expr: {text} is {one} where the reference value is {other}; please report this")


def _is_small(graph: TensorGraph) -> bool:
    return all(node.value.ndim == 0 or np.prod(node.value.shape) <= SMALL for node in graph.nodes)


def _reference(graph: TensorGraph) -> Callable[[Values, Any], Any]:
    if not _is_small(graph):
        _check_recorded(graph)
        return lambda values, sizes: of_sum(graph.normal_form, values, PRECISE, sizes)

    def run(values: Values, sizes: Any) -> Any:
        nodes = replay(precise, [node for node, _ in graph.roots], lambda leaf: precise.lift_value(
            values[leaf.symbol] if leaf.symbol is not None else leaf.value), precise.lift_value)
        total: Any = 0
        for node, g in graph.roots:
            total = total + (nodes[node] if g is None else (nodes[node] * precise.lift_value(g)).sum())
        return np.asarray(total).reshape([n for n in total.shape if n != 1])

    return run


def _check_recorded(graph: TensorGraph) -> None:
    """Compare the normal form with the recorded numbers. Raises Disagreement."""
    values = {symbol.name: np.asarray(leaf.value, float) for leaf, symbol in graph.leaves.items()}
    sizes = sizes_of(graph.symbols, values)
    expected: Any = 0.0
    for node, g in graph.roots:
        expected = expected + (np.asarray(node.value, float) if g is None else np.sum(node.value * g))
    found = of_sum(graph.normal_form, values, FLOATS, sizes)
    expected = np.asarray(expected).reshape(found.shape)
    if not np.allclose(found, expected, rtol=1e-4 if any(leaf.value.dtype.itemsize < 8 for leaf in graph.leaves) else 1e-7,
                       atol=1e-7 * np.max(np.abs(expected), initial=1e-30), equal_nan=True):
        raise Disagreement("matrix_expr: the normal form of the graph does not have the recorded value; please report this")


def _points(graph: TensorGraph, generator: random.Random) -> Iterator[tuple[Values, Any]]:
    """Arrays of random numbers: near those of the leaves if these are small, otherwise with small sizes in the same order."""
    mp = precise.context
    small = _is_small(graph)
    dimensions = {found for s in graph.symbols.values() for d in s.dimensions for found in d.with_parts() if not found.parts}
    sizes_of_lengths = {n: n if small else min(k + 2, n) for k, n in enumerate(sorted({d.size for d in dimensions}))}
    known = {d: sizes_of_lengths[d.size] for d in dimensions}

    def sizes(dimension: Dimension) -> int:
        return dimension.length(known)

    for attempt in range(20):
        values = {}
        for leaf, symbol in graph.leaves.items():
            shape = tuple(d.length(known) for d in symbol.dimensions)
            out = np.empty(shape, object)
            scale = mp.mpf(2) ** -(attempt // 2)
            for index in np.ndindex(shape):
                drawn = mp.mpf(generator.getrandbits(200)) / 2**200
                near = mp.mpf(float(leaf.value[index]))
                out[index] = near + scale * (drawn - mp.mpf("0.5")) * (1 + abs(near)) / 8 if small or attempt % 2 == 0 else \
                    drawn + (2 if len(shape) == 2 and index[0] == index[1] else 0)
            if symbol.symmetric:
                out = (out + out.T) / 2
            values[symbol.name] = out
        if _finite(graph.normal_form, values, sizes):
            yield values, sizes


def _finite(total: Sum, values: Values, sizes: Any) -> bool:
    try:
        found = of_sum(total, values, PRECISE, sizes)
    except (ZeroDivisionError, ValueError, LinAlgError):
        return False
    return all(isinstance(x, precise.context.mpf) and precise.context.isfinite(x) for x in found.ravel().tolist())


def _differences(reference: Callable[[Values, Any], Any], values: Values, sizes: Any, by: Sequence[Symbol],
                 generator: random.Random) -> list[tuple[list[Any], Any]]:
    """Random directions, one for each derivative, with the derivative along them."""
    mp = precise.context
    if not by:
        return [([], reference(values, sizes))]
    h = mp.mpf(10) ** -STEP
    directions = []
    for symbol in by:
        out = np.empty(values[symbol.name].shape, object)
        for index in np.ndindex(out.shape):
            out[index] = mp.mpf(generator.getrandbits(200)) / 2**200 - mp.mpf("0.5")
        directions.append(out)

    def moved(signs: Sequence[int]) -> Any:
        new = dict(values)
        for sign, symbol, direction in zip(signs, by, directions):
            new[symbol.name] = new[symbol.name] + sign * h * direction
        return reference(new, sizes)

    if len(by) == 1:
        return [(directions, (moved([1]) - moved([-1])) / (2 * h))]
    return [(directions, (moved([1, 1]) - moved([1, -1]) - moved([-1, 1]) + moved([-1, -1])) / (4 * h * h))]


def _contract(array: Any, directions: Sequence[Any]) -> Any:
    """An array of derivatives, contracted with one direction for each derivative."""
    for direction in reversed(directions):
        array = np.tensordot(array, direction, direction.ndim)
    return array
