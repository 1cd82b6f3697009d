"""Compact formulas of values, gradients and Hessians of vectors and matrices."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import sympy

from symgrad.engine.graph_breaks import departure, observing
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.graph.node import NAMED, Leaf
from symgrad.matrixcalc.confirming import confirm, sizes_of
from symgrad.matrixcalc.derivatives import derivative
from symgrad.matrixcalc.evaluation import FLOATS, SYMPY, of_sum
from symgrad.matrixcalc.forms import form_of, weight, with_recorded_lengths
from symgrad.matrixcalc.printing import Latex, MatrixForm, TextPrinter
from symgrad.matrixcalc.reading import TensorGraph
from symgrad.matrixcalc.rewriting import reflect_sigmoids, split_inverses, with_softmax, without_minus
from symgrad.matrixcalc.simplify import expand, factor, simplify
from symgrad.matrixcalc.source import NumPySource, index_latex, index_numpy, index_text
from symgrad.matrixcalc.terms import Dimension, NoCompactForm, Sum, Symbol, with_symbols
from symgrad.reference.run import Run
from symgrad.system.limits import ELEMENTS, SHORT, within

_WORD = r"(?:[^\W\d]\w*|[0-9]{1,9})"
_LENGTH = rf"{_WORD}(?:\*{_WORD})*"
DECLARATION = re.compile(rf"\s*(?:{_LENGTH}(?:\s+{_LENGTH})*\s*)?")


class MatrixExpression:
    """A formula in matrix notation, confirmed against the elementwise reference.

    `str` returns it as text, `latex()` as LaTeX and `numpy()` as source; `evaluate` computes its value and `sympy` its elements.
    `is_compact` is true for matrix notation and false for index notation. `points` is the number of random points at which it agreed with
    the reference to fifty digits.
    """

    def __init__(self, graph: TensorGraph, by: Sequence[Symbol], total: Sum):
        self._graph, self._by = graph, tuple(by)
        self._total = total
        self._sum, self._form = _most_compact(with_symbols(total, graph.symbols))
        self._text = index_text(self._sum) if self._form is None else TextPrinter().show(with_recorded_lengths(self._form))
        self.points = confirm(graph, self._by, self._sum, self._form, self._text)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    @property
    def is_compact(self) -> bool:
        """Whether this is matrix notation, not index notation."""
        return self._form is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays that the value depends on, in the order of their creation."""
        return tuple(self._graph.symbols)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value for the recorded arrays; for a derivative, the shape of the function followed by those of the arrays."""
        return tuple(i.dimension.size for i in self._sum.out)

    def latex(self) -> str:
        """The formula as LaTeX."""
        return index_latex(self._sum) if self._form is None else Latex().show(with_recorded_lengths(self._form))

    def indices(self) -> str:
        """The formula in index notation."""
        return index_text(self._sum)

    def numpy(self) -> str:
        """The formula as NumPy source, an expression of `np` and the names; vectors are arrays with one axis.

        A derivative of a matrix by a matrix in Kronecker form is a matrix, ∂vec(Y)/∂vec(X)ᵀ.
        """
        def size(dimension: Dimension) -> str:
            for symbol in self._graph.symbols.values():
                for axis, d in enumerate(symbol.dimensions):
                    if d.root() is dimension.root():
                        return f"{symbol.name}.shape[{axis}]"
            return " * ".join(map(size, dimension.parts)) or str(dimension.size)

        return index_numpy(self._sum, size) if self._form is None else NumPySource(size).show(self._form)

    def evaluate(self, values: Mapping[str, Any] | None = None, **arrays: Any) -> np.ndarray:
        """The value, in float64, for arrays given by name, of any consistent sizes; the defaults are the arrays of the leaves.

        Raises ValueError for an unknown name or a wrong number of axes.
        """
        given = {**(values or {}), **arrays}
        found = {symbol.name: np.asarray(leaf.value, float) for leaf, symbol in self._graph.leaves.items()}
        for name, value in given.items():
            if name not in found:
                raise ValueError(f"evaluate: there is no {name}; the formula depends on {', '.join(found)}")
            array = np.asarray(value.detach().numpy() if isinstance(value, Tensor) else value, float)
            if array.ndim != found[name].ndim:
                raise ValueError(f"evaluate: {name} has {found[name].ndim} axes, but the array given has shape {list(array.shape)}")
            found[name] = array
        lengths: dict[Dimension, tuple[int, str]] = {}
        for name, symbol in self._graph.symbols.items():
            for axis, (d, n) in enumerate(zip(symbol.dimensions, found[name].shape)):
                before, other = lengths.setdefault(d.root(), (n, f"axis {axis} of {name}"))
                if before != n:
                    raise ValueError(f"evaluate: axis {axis} of {name} has length {n}, but {other}, which must agree with it, has {before}")
        known = {d: n for d, (n, _) in lengths.items()}
        for d, (n, where) in lengths.items():
            factors = [part.length(known) for part in d.parts]
            if factors and prod(factors) != n:
                raise ValueError(f"evaluate: {where} has length {n}, but it stands for pairs, of which there are {' * '.join(map(str, factors))}")
        return of_sum(self._sum, found, FLOATS, sizes_of(self._graph.symbols, found))

    def sympy(self, sizes: Mapping[str, int] | None = None) -> Any:
        """The elements as a SymPy Array (an expression for a scalar) of symbols A_0_0, A_0_1 and so on, for the recorded sizes.

        `sizes` has other sizes by the names of declared dimensions.
        """
        given = dict(sizes or {})
        named = {d.name: d for s in self._graph.symbols.values() for axis in s.dimensions for d in axis.with_parts() if d.name}
        if set(given) - set(named):
            raise ValueError(f"sympy: there is no dimension {', '.join(sorted(set(given) - set(named)))}; those with a name are "
                             f"{', '.join(sorted(named)) or 'none'}")
        known = {named[name]: n for name, n in given.items()}

        def size(dimension: Dimension) -> int:
            return dimension.length(known)

        values = {}
        for name, symbol in self._graph.symbols.items():
            shape = tuple(map(size, symbol.dimensions))
            values[name] = np.empty(shape, object)
            for index in np.ndindex(shape):
                at = sorted(index) if symbol.symmetric else index
                values[name][index] = sympy.Symbol("_".join([name, *map(str, at)]), real=True)
        found = of_sum(self._sum, values, SYMPY, size)
        return sympy.ImmutableDenseNDimArray(found.ravel().tolist(), found.shape) if found.ndim else found.item()

    def gradient(self, wrt: Any) -> MatrixExpression:
        """The derivative by a named array: for a scalar the gradient, which has the shape of the array; else the array's axes come last.

        Raises ValueError for an unknown name, and for a third derivative.
        """
        if len(self._by) == 2:
            raise ValueError("gradient: matrix notation has no derivatives beyond the second; differentiate with symgrad.func instead")
        symbol = _symbol(self._graph, wrt)
        return MatrixExpression(self._graph, (*self._by, symbol), derivative(self._total, symbol))


def _most_compact(total: Sum) -> tuple[Sum, MatrixForm | None]:
    """The shortest of several equal forms of a sum, with its matrix notation if it has one."""
    plain = simplify(total)
    best: tuple[tuple[bool, int, int], Sum, MatrixForm | None] | None = None
    candidates = (plain, split_inverses(plain, ("inverse",)), split_inverses(plain))
    expanded_sum = expand(plain)
    for found in (*candidates, *map(factor, candidates), factor(plain, True), factor(expanded_sum), factor(expanded_sum, True),
                  expand(plain, 3), factor(expand(reflect_sigmoids(plain)))):
        candidate = without_minus(with_softmax(found))
        form: MatrixForm | None
        try:
            form = form_of(candidate)
            text = TextPrinter().show(with_recorded_lengths(form))
        except NoCompactForm:
            form, text = None, "x" * sum(len(t.factors) for t in candidate.terms)
        partly = 1 < len(candidate.terms) < len(plain.terms)  # a common factor of only some of the terms is less readable
        cost = form is None, 0 if form is None else weight(form) + 3 * partly, len(text)
        if best is None or cost < best[0]:
            best = cost, candidate, form
    assert best is not None
    return best[1], best[2]


def _symbol(graph: TensorGraph, wrt: Any) -> Symbol:
    if isinstance(wrt, Tensor):
        node = wrt._node
        name = node.symbol if isinstance(node, Leaf) else None
        if name is None:
            raise ValueError("matrix_gradient: the tensor to differentiate by has no symbol; create it with symbol=\"x\"")
    else:
        name = wrt
    if name not in graph.symbols:
        array = next((n for n in graph.symbols if isinstance(name, str) and re.fullmatch(rf"{re.escape(n)}(_\d+)+", name)), None)
        raise ValueError(f"matrix_gradient: {name} is one element of {array}; matrix notation is of whole arrays, so differentiate by {array}"
                         if array else f"matrix_gradient: there is no {name} in this formula; its arrays are {', '.join(graph.symbols) or 'none'}")
    return graph.symbols[name]


def matrix_expr(t: Tensor, symmetric: Sequence[str] = ()) -> MatrixExpression:
    """The compact formula of a tensor computed from named arrays, or of the gradient of one: y = Aᵀ(A x − b).

    The gradient of a scalar has the shape of its array, and vectors are columns. `symmetric` names arrays that equal their transposes.
    Every formula is compared with the elementwise reference to fifty digits before it is returned. A formula without matrix notation is in index
    notation. Raises ValueError if no named leaf is upstream, and NoCompactForm (a ValueError) for an op, a constant or an index without a
    compact form.

    >>> import symgrad
    >>> from symgrad.matrixcalc import matrix_expr
    >>> A = symgrad.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], symbol="A")
    >>> b = symgrad.tensor([1.0, 0.0, 2.0], symbol="b")
    >>> x = symgrad.tensor([1.0, 2.0], requires_grad=True, symbol="x")
    >>> y = symgrad.sum((A @ x - b) ** 2) / 2
    >>> y.backward()
    >>> matrix_expr(x.grad)
    Aᵀ(A x − b)
    """
    if not isinstance(t, Tensor):
        raise TypeError(f"matrix_expr: expected a Tensor, not {type(t).__name__}; matrix_gradient takes functions")
    node = t._node
    if node is not None and node.flags & NAMED:
        graph = TensorGraph([(node, None)], symmetric)
        return MatrixExpression(graph, (), graph.normal_form)
    parts = getattr(t, "_formula", None)
    seeds = [(root, g) for part, _ in parts or () for root, g in part if root.flags & NAMED]
    if not seeds:
        raise NoCompactForm("matrix_expr: no named leaf is upstream; name the arrays, as in symgrad.tensor(A, requires_grad=True, symbol=\"A\")")
    graph = TensorGraph(seeds, symmetric)
    by = graph.leaves.get(parts[0][1]) if parts else None
    if by is None:
        raise NoCompactForm("matrix_expr: this is the gradient by a value that is not a named leaf; compute it with create_graph=True")
    return MatrixExpression(graph, (by,), derivative(graph.normal_form, by))


def _tensors_of_arguments(arrays: Mapping[str, Any], seed: int) -> tuple[dict[str, Tensor], dict[str, tuple[Dimension, ...]], list[str]]:
    """Tensors for the arguments of a function, which are given as arrays or as names of dimensions; these get small sizes."""
    declarations = {}
    for name, given in arrays.items():
        if isinstance(given, str):
            if len(given) > SHORT or not DECLARATION.fullmatch(given):
                raise ValueError(f"matrix_gradient: {name}={reprlib.repr(given)} is not understood; name the dimensions, as in A=\"m n\", "
                                 f"b=\"m\", c=\"\", W=\"n n symmetric\" or, for an axis of pairs, x=\"m*n\"")
            declarations[name] = given.split()
    symmetric = [name for name, parts in declarations.items() if "symmetric" in parts]
    letters = list(dict.fromkeys(w for parts in declarations.values() for length in parts if length != "symmetric"
                                 for w in length.split("*") if not w.isdecimal()))
    sizes = {w: (n + 1 if seed % 2 else len(letters) - n) + 1 for n, w in enumerate(letters)}
    dimensions = {w: Dimension(n, w) for w, n in sizes.items()}
    rng, tensors, named = np.random.default_rng(seed), {}, {}
    for name, given in arrays.items():
        if name not in declarations:
            tensors[name] = tensor(given.detach().numpy() if isinstance(given, Tensor) else np.asarray(given, float), requires_grad=True, symbol=name)
            continue
        axes = tuple(reduce(Dimension.of_pairs, [dimensions[w] if w in dimensions else Dimension(int(w)) for w in length.split("*")])
                     for length in declarations[name] if length != "symmetric")
        within(prod(d.size for d in axes), ELEMENTS, f"matrix_gradient: {name} has {{}} elements")
        value = rng.uniform(0.2, 0.8, [d.size for d in axes]) * (rng.choice([0.3, 1.0, 3.0]) if seed > 1 else 1.0)
        if value.ndim == 2 and value.shape[0] == value.shape[1]:
            value = value + 2 * np.eye(len(value))
            value = (value + value.T) / 2 if name in symmetric else value
        tensors[name], named[name] = tensor(value, requires_grad=True, symbol=name), axes
    return tensors, named, symmetric


def _record_run(of: Callable[..., Any], tensors: Mapping[str, Tensor]) -> Run:
    with np.errstate(all="ignore"), observing() as escapes:
        y = of(**tensors)
    if not isinstance(y, Tensor) or y._node is None or not y._node.flags & NAMED:
        raise ValueError("matrix_gradient: the function must return a Tensor computed from its arguments")
    return Run(list(tensors.values()), y, None, escapes)


def _graph_of(of: Tensor | Callable[..., Any], arrays: Mapping[str, Any], symmetric: Sequence[str]) -> TensorGraph:
    if isinstance(of, Tensor):
        if arrays:
            raise TypeError(f"matrix_gradient: {', '.join(arrays)} belongs to a function; a tensor has its arrays already")
        node = of._node
        if node is None or not node.flags & NAMED:
            raise ValueError("matrix_gradient: no named leaf is upstream; name the arrays, as in symgrad.tensor(A, requires_grad=True, symbol=\"A\")")
        return TensorGraph([(node, None)], symmetric)
    if not callable(of):
        raise TypeError(f"matrix_gradient: expected a Tensor or a function, not {type(of).__name__}")
    if not arrays:
        raise TypeError("matrix_gradient: give the function's arguments by name, as dimensions (A=\"m n\") or as arrays")
    for seed in range(24):
        tensors, named, more = _tensors_of_arguments(arrays, seed)
        run = _record_run(of, tensors)
        if np.isfinite(run.result.value).all():
            break
    how = departure(run, lambda values: _record_run(of, {name: tensor(v, requires_grad=True, symbol=name) for name, v in zip(tensors, values)}),
                    far=True)
    if how is not None:
        raise ValueError(f"matrix_gradient: the recorded graph is not the function: {how}. Compute with tensors, or give the number as an argument")
    return TensorGraph([(run.root, None)], [*symmetric, *more], named)


def matrix_gradient(of: Tensor | Callable[..., Any], wrt: Any, *, symmetric: Sequence[str] = (), **arrays: Any) -> MatrixExpression:
    """The derivative of a tensor, or of a function, by one of its named arrays, as a compact formula.

    The arguments of a function are given by name: each is an array, or the names of its dimensions. The gradient of a scalar has the shape of the
    array; another derivative has the axes of the value followed by those of the array. Errors are those of `matrix_expr`.

    >>> import symgrad
    >>> from symgrad.matrixcalc import matrix_gradient
    >>> matrix_gradient(lambda A, X, B: symgrad.trace(A @ X @ B), "X", A="n m", X="m k", B="k n")
    AᵀBᵀ
    """
    graph = _graph_of(of, arrays, symmetric)
    symbol = _symbol(graph, wrt)
    return MatrixExpression(graph, (symbol,), derivative(graph.normal_form, symbol))


def matrix_hessian(of: Tensor | Callable[..., Any], wrt: Any, *, symmetric: Sequence[str] = (), **arrays: Any) -> MatrixExpression:
    """The second derivative of a scalar by a named array, or by two of them: a matrix for vectors.

    By a matrix it has four axes, H[i,j,k,l] = ∂²y / ∂X[i,j] ∂X[k,l]. If possible, it is written as the matrix ∂²y / ∂vec(X) ∂vec(X)ᵀ with Kronecker
    products, where vec stacks the columns. Errors are those of `matrix_expr`.

    >>> import symgrad
    >>> from symgrad.matrixcalc import matrix_hessian
    >>> matrix_hessian(lambda T, U, V: symgrad.sum((T - U @ V.T) ** 2), "U", T="n m", U="n k", V="m k")
    2 VᵀV ⊗ I
    """
    graph = _graph_of(of, arrays, symmetric)
    first, second = (wrt if isinstance(wrt, (tuple, list)) and len(wrt) == 2 else (wrt, wrt))
    if graph.normal_form.out:
        raise ValueError(f"matrix_hessian: the value must be a scalar, but it has {len(graph.normal_form.out)} axes")
    one, two = _symbol(graph, first), _symbol(graph, second)
    return MatrixExpression(graph, (one, two), derivative(derivative(graph.normal_form, one), two))
