"""Matrix-free quantities of a Hessian: the diagonal, the trace, extreme eigenvalues, and products with vectors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers.batched import Batched, new_level
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.generators import Generator, default_generator
from symgrad.func.calling import transform
from symgrad.func.collapsed import sums_of_second_derivatives
from symgrad.func.evaluation import Evaluation, check_argnums, evaluate, scalar_output
from symgrad.func.second import gradient_tangents
from symgrad.func.second import hessian_products as compressed
from symgrad.func.sparsity import plan_hessian
from symgrad.func.transforms import as_result, unbatch_units
from symgrad.graph.modes import in_mode

Function = Callable[..., Any]
MAX_BATCH_ELEMENTS = 2**22  # elements of a batch of tangents of the largest node, without chunk_size


class Estimate(NamedTuple):
    """A number or a diagonal, its standard error (0 for an exact value), and the number of products with the Hessian."""

    value: Any
    standard_error: Any
    products: int


class Eigenvalues(NamedTuple):
    """Eigenvalues in ascending order; `vectors` are the eigenvectors in the structure of the arguments along a leading axis, or None."""

    values: Tensor
    vectors: Any


# Common parts


def _batch_size(ev: Evaluation, count: int, chunk_size: int | None) -> int:
    """The number of vectors of one batch."""
    if chunk_size is not None:
        if chunk_size < 1:
            raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
        return chunk_size
    largest = max([x.numel() for x in ev.inputs] + [node.value.size for node in ev.path if hasattr(node.value, "size")])
    return max(1, min(count, MAX_BATCH_ELEMENTS // max(largest, 1)))


def _input_size(ev: Evaluation) -> int:
    return sum(x.numel() for x in ev.inputs)


def _random_source(generator: Any, seed: int | None, caller: str) -> np.random.Generator:
    """The NumPy generator of a call."""
    if generator is not None and seed is not None:
        raise ValueError(f"{caller}: give a generator or a seed, not both")
    if seed is not None:
        return np.random.default_rng(seed)
    generator = default_generator if generator is None else generator
    if isinstance(generator, Generator):
        return generator.numpy
    if isinstance(generator, np.random.Generator):
        return generator
    raise TypeError(f"{caller}: generator must be a Generator, not {type(generator).__name__}")


def _random_signs(source: np.random.Generator, count: int, n: int) -> np.ndarray:
    """Vectors of independent signs, one in each row: Rademacher vectors, whose quadratic forms have the smallest variance."""
    return source.integers(0, 2, (count, n)) * 2.0 - 1.0


def _vectors_and_products(ev: Evaluation, y: Tensor, rows: np.ndarray, chunk_size: int | None) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
    """Vectors and their products with the Hessian, some at a time, both along the first axis and in the shapes of the inputs."""
    step = _batch_size(ev, len(rows), chunk_size)
    for at in range(0, len(rows), step):
        level = new_level()
        vectors = [Batched(part, level) for part in ev.split(rows[at:at + step])]
        products = gradient_tangents(ev, y, [wrap(v) for v in vectors])
        yield [wrap(v.data) for v in vectors], [unbatch_units(ev, h, v) for h, v in zip(products, vectors)]


def _check_method(caller: str, method: str, methods: tuple[str, ...], samples: int) -> None:
    if method not in methods:
        raise ValueError(f"{caller}: method must be one of {', '.join(map(repr, methods))}, not {method!r}")
    if samples < 2:
        raise ValueError(f"{caller}: samples must be at least 2, for the standard error, not {samples}")


# The diagonal


@transform
def hessian_diag(func: Function, argnums: Any = 0, *, method: str = "exact", samples: int = 100, generator: Any = None, seed: int | None = None,
                 chunk_size: int | None = None) -> Function:
    """Transform a scalar function to one that returns the diagonal of its Hessian, ∂²f/∂xᵢ², with the structure and shapes of the arguments.

    A sparse Hessian takes one product per colour of its pattern; of a dense one `chunk_size` rows at a time are computed. method="hutchinson" returns
    an `Estimate` with standard error: the mean of v ⊙ Hv over `samples` vectors v of random signs, drawn from `generator` or by `seed`. The exact
    diagonal is differentiable.

    Raises RuntimeError unless the function returns a real scalar, ValueError for another method or a wrong number of samples.
    C. Bekas, E. Kokiopoulou and Y. Saad, An estimator for the diagonal of a matrix, 2007.

    >>> import symgrad
    >>> symgrad.func.hessian_diag(lambda x: (x**3).sum() + x[0] * x[1])(symgrad.tensor([1.0, 2.0]))
    tensor([ 6., 12.])
    """
    check_argnums(argnums, "hessian_diag")
    _check_method("hessian_diag", method, ("exact", "hutchinson"), samples)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        ev = evaluate(func, args, kwargs, argnums, "hessian_diag")
        y = scalar_output(ev, func, "hessian_diag")
        if method == "exact":
            return ev.form.unflatten(_exact_diag(ev, y, chunk_size)[0])
        rows = _random_signs(_random_source(generator, seed, "hessian_diag"), samples, _input_size(ev))
        with in_mode(grad=ev.tracked):
            found = [[v * h for v, h in zip(vs, hs)] for vs, hs in _vectors_and_products(ev, y, rows, chunk_size)]
            each = [traced.cat(list(parts), 0) if len(found) > 1 else parts[0] for parts in zip(*found)]
            means = [as_result(ev, x, t if ev.tracked else t._value) for x, t in zip(ev.inputs, (traced.mean(t, (0,)) for t in each))]
        errors = [wrap(t._value.std(0, ddof=1) / math.sqrt(samples)) for t in each]
        return Estimate(ev.form.unflatten(means), ev.form.unflatten(errors), samples)

    return transformed


def _exact_diag(ev: Evaluation, y: Tensor, chunk_size: int | None) -> tuple[list[Tensor], int]:
    """The diagonal, and the number of products."""
    n = _input_size(ev)
    if not ev.tracked:
        plan = plan_hessian(y._node, ev.nodes)
        if not plan.dense:
            found = plan.recover(compressed(ev, y, plan.seeds, _batch_size(ev, plan.colours, chunk_size))).diagonal()
            return [wrap(part[0]) for part in ev.split(found[None])], plan.colours
    out = []
    for j, x in enumerate(ev.inputs):
        size, parts = x.numel(), []
        step = _batch_size(ev, size, chunk_size)
        for at in range(0, size, step):
            count = min(step, size - at)
            units = Batched(np.eye(count, size, at, x._value.dtype).reshape((count, *tuple(x._value.shape))), new_level(), at)
            rows = unbatch_units(ev, gradient_tangents(ev, y, [wrap(units) if i == j else None for i in range(len(ev.inputs))])[j], units)
            with in_mode(grad=ev.tracked):
                parts.append(traced.diagonal(traced.reshape(rows, (count, size)), at, 0, 1))
        with in_mode(grad=ev.tracked):
            whole = traced.reshape(traced.cat(parts, 0), tuple(x.shape)) if parts else wrap(np.zeros_like(x._value))
        out.append(as_result(ev, x, whole if ev.tracked else whole._value))
    return out, n


# Trace


@transform
def hessian_trace(func: Function, argnums: Any = 0, *, method: str = "exact", samples: int = 99, generator: Any = None, seed: int | None = None,
                  chunk_size: int | None = None) -> Function:
    """Transform a scalar function to one that returns the trace of its Hessian as an `Estimate` with standard error.

    "exact" uses the diagonal of a sparse Hessian, or else the forward pass of `laplacian`, `chunk_size` directions at a time. The other methods take
    `samples` Hessian-vector products with vectors of random signs, drawn from `generator` or by `seed`. "hutchinson" is the mean of vᵀHv. "hutch++"
    uses a third of the products for a low-rank approximation, a third for its exact trace, and a third for the mean of the remainder; its error
    decreases as 1/samples for decaying eigenvalues, and it is exact if the samples span the space.

    Raises RuntimeError unless the function returns a real scalar, and for a derivative of "hutch++"; ValueError for another method or too few
    samples. M. F. Hutchinson, 1989; R. A. Meyer, C. Musco, C. Musco and D. P. Woodruff, Hutch++, 2021.

    >>> import symgrad
    >>> symgrad.func.hessian_trace(lambda x: (x**3).sum())(symgrad.tensor([1.0, 2.0])).value
    tensor(18.)
    >>> estimate = symgrad.func.hessian_trace(lambda x: x.prod(), method="hutchinson", seed=0)(symgrad.ones(3))
    >>> abs(estimate.value.item()) < 3 * estimate.standard_error.item()
    True
    """
    check_argnums(argnums, "hessian_trace")
    _check_method("hessian_trace", method, ("exact", "hutchinson", "hutch++"), samples)
    if method == "hutch++" and samples < 6:
        raise ValueError(f"hessian_trace: 'hutch++' needs at least 6 samples, 2 for each of its parts, not {samples}")

    def transformed(*args: Any, **kwargs: Any) -> Estimate:
        ev = evaluate(func, args, kwargs, argnums, "hessian_trace")
        y = scalar_output(ev, func, "hessian_trace")
        if method == "exact":
            value, products = _exact_trace(ev, y, chunk_size)
            return Estimate(value, wrap(np.zeros_like(y._value)), products)
        source = _random_source(generator, seed, "hessian_trace")
        if method == "hutchinson":
            forms = _quadratic(ev, y, _random_signs(source, samples, _input_size(ev)), chunk_size)
            with in_mode(grad=ev.tracked):
                mean = traced.mean(forms, (0,))
            return Estimate(as_result(ev, y, mean if ev.tracked else mean._value), wrap(forms._value.std(ddof=1) / math.sqrt(samples)), samples)
        if ev.tracked:
            raise RuntimeError("hessian_trace: an estimate by 'hutch++' cannot be differentiated again; use 'hutchinson' or 'exact'")
        return _hutch_plus_plus(ev, y, samples, source, chunk_size)

    return transformed


def _quadratic(ev: Evaluation, y: Tensor, rows: np.ndarray, chunk_size: int | None) -> Tensor:
    """vᵀHv for each row v."""
    out = []
    for vs, hs in _vectors_and_products(ev, y, rows, chunk_size):
        with in_mode(grad=ev.tracked):
            terms = [traced.sum(traced.reshape(v * h, (v.shape[0], -1)), (1,)) for v, h in zip(vs, hs)]
            out.append(functools.reduce(lambda a, b: a + b, terms))
    with in_mode(grad=ev.tracked):
        return traced.cat(out, 0)


def _exact_trace(ev: Evaluation, y: Tensor, chunk_size: int | None) -> tuple[Tensor, int]:
    n = _input_size(ev)
    if not ev.tracked and any(x.numel() > 1 for x in ev.inputs):
        if not plan_hessian(y._node, ev.nodes).dense:
            found, products = _exact_diag(ev, y, chunk_size)
            return wrap(np.sum([t._value.sum() for t in found], dtype=y._value.dtype)), products
    step, total = _batch_size(ev, n, chunk_size), None
    for at in range(0, n, step):
        rows, level = np.eye(min(step, n - at), n, at), new_level()
        (s,) = sums_of_second_derivatives(ev, [wrap(Batched(part, level)) for part in ev.split(rows)], None, level, len(rows))
        if s is not None:
            with in_mode(grad=ev.tracked):
                total = s if total is None else total + s
    return as_result(ev, y, total), n


def _hutch_plus_plus(ev: Evaluation, y: Tensor, samples: int, source: np.random.Generator, chunk_size: int | None) -> Estimate:
    """tr(QᵀHQ) for a basis Q of the range of H times a third of the samples, and the mean of gᵀ(1 - QQᵀ)H(1 - QQᵀ)g for another."""
    n, third = _input_size(ev), samples // 3
    columns = min(third, n)

    def products(rows: np.ndarray) -> np.ndarray:
        return compressed(ev, y, rows, _batch_size(ev, len(rows), chunk_size))

    basis = np.linalg.qr(products(_random_signs(source, columns, n)).T)[0].T
    value = np.einsum("ij,ij->", basis, products(basis))
    if columns == n:
        return Estimate(wrap(y._value.dtype.type(value)), wrap(y._value.dtype.type(0.0)), 2 * n)
    left = samples - 2 * third
    rest = _random_signs(source, left, n)
    rest -= (rest @ basis.T) @ basis
    forms = np.einsum("ij,ij->i", rest, products(rest))
    return Estimate(wrap(y._value.dtype.type(value + forms.mean())), wrap(y._value.dtype.type(forms.std(ddof=1) / math.sqrt(left))), samples)


# Products, and eigenvalues


@transform
def hessian_operator(func: Function, argnums: Any = 0, *, chunk_size: int | None = None) -> Function:
    """Transform a scalar function to one that returns its Hessian as a `scipy.sparse.linalg.LinearOperator` of Hessian-vector products.

    The function runs once. A product costs a few times a gradient; products with the columns of a matrix are batched, `chunk_size` at a time. Rows
    and columns are the concatenated elements of the arguments at `argnums`. Products are NumPy arrays and not differentiable.

    Raises RuntimeError unless the function returns a real scalar; products raise ValueError for vectors of another length.

    >>> import numpy, symgrad
    >>> operator = symgrad.func.hessian_operator(lambda x: (x**3).sum())(symgrad.tensor([1.0, 2.0]))
    >>> operator @ numpy.array([1.0, 1.0])
    array([ 6., 12.])
    """
    check_argnums(argnums, "hessian_operator")

    def transformed(*args: Any, **kwargs: Any) -> Any:
        from symgrad.func.linear import HessianOperator  # imports SciPy's sparse matrices

        ev = evaluate(func, args, kwargs, argnums, "hessian_operator")
        return HessianOperator(ev, scalar_output(ev, func, "hessian_operator"), chunk_size)

    return transformed


@transform
def extreme_eigenvalues(func: Function, argnums: Any = 0, *, count: int = 1, which: str = "both", vectors: bool = False, seed: int = 0,
                        tolerance: float = 0.0, max_iterations: int | None = None, chunk_size: int | None = None) -> Function:
    """Transform a scalar function to one that returns the largest and smallest eigenvalues of its Hessian, by Lanczos iteration.

    `which` is "largest", "smallest" or "both": `count` of each, in ascending order. With `vectors` the eigenvectors are returned, too, in the
    structure of the arguments with a leading axis. The iteration starts from random numbers of `seed`; a Hessian that is hardly larger than the
    number of eigenvalues is diagonalised as a dense matrix.

    Raises RuntimeError unless the function returns a real scalar and if the iteration does not converge, ValueError for a `count` above the size.

    >>> import symgrad
    >>> symgrad.func.extreme_eigenvalues(lambda x: (x**3).sum())(symgrad.tensor([1.0, 2.0, 3.0])).values
    tensor([ 6., 18.])
    """
    check_argnums(argnums, "extreme_eigenvalues")
    if which not in ("both", "largest", "smallest"):
        raise ValueError(f"extreme_eigenvalues: which must be 'both', 'largest' or 'smallest', not {which!r}")

    def transformed(*args: Any, **kwargs: Any) -> Eigenvalues:
        from scipy.sparse.linalg import ArpackError, eigsh

        operator = hessian_operator(func, argnums, chunk_size=chunk_size)(*args, **kwargs)
        n, wanted = operator.shape[0], 2 * count if which == "both" else count
        if not 1 <= count <= n or wanted > n:
            raise ValueError(f"extreme_eigenvalues: count={count} with which={which!r} requests {wanted} eigenvalues of a Hessian of {n} by {n}")
        start = np.random.default_rng(seed).normal(size=n).astype(operator.dtype)
        if n <= max(2 * wanted + 1, 20) or not (operator @ start).any():
            values, basis = np.linalg.eigh(operator.todense())
            keep = [*range(count if which != "largest" else 0), *range(n - count if which != "smallest" else n, n)]
            values, basis = values[keep], basis[:, keep]
        else:
            try:
                values, basis = eigsh(operator, wanted, which={"both": "BE", "largest": "LA", "smallest": "SA"}[which], v0=start, tol=tolerance,
                                      maxiter=max_iterations)
            except ArpackError as error:
                raise RuntimeError(f"extreme_eigenvalues: {error}; give a larger max_iterations or tolerance, or ask for more eigenvalues: those "
                                   f"that lie close together are found together") from error
            order = np.argsort(values)
            values, basis = values[order], basis[:, order]
        ev = operator.evaluation
        return Eigenvalues(wrap(values), ev.form.unflatten([wrap(part) for part in ev.split(basis.T)]) if vectors else None)

    return transformed
