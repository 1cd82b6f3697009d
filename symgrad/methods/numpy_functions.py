"""Functions of NumPy, and of `numpy.linalg`, that torch has not, or has with other rules for shapes: for the table of `numpy_arguments`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.engine.data import as_value
from symgrad.engine.tensor import wrap
from symgrad.engine.traced import traced
from symgrad.graph import return_types
from symgrad.methods.counting import searchsorted
from symgrad.methods.numpy_arguments import FUNCTIONS_OF_NUMPY, as_tensor, floats, of_numpy
from symgrad.methods.predicates import result_type
from symgrad.ops.rules import every


@of_numpy(np.cross)
def cross(a: Any, b: Any, axisa: int, axisb: int, axisc: int, axis: int | None) -> Any:
    """The cross product of vectors along an axis; of vectors of two elements its third component."""
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = traced.movedim(a, axisa, -1), traced.movedim(b, axisb, -1)
    sizes = {a.shape[-1], b.shape[-1]}
    if not sizes <= {2, 3}:
        raise ValueError(f"incompatible dimensions for cross product (dimension must be 2 or 3), got {a.shape[-1]} and {b.shape[-1]}")
    if sizes == {2}:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    a, b = (x if x.shape[-1] == 3 else traced.cat([x, traced.zeros_like(x[..., :1])], -1) for x in (a, b))
    shape = np.broadcast_shapes(a.shape, b.shape)
    return traced.movedim(traced.cross(traced.broadcast_to(a, shape), traced.broadcast_to(b, shape), -1), -1, axisc)


# Sampled functions


@of_numpy(np.trapezoid)
def trapezoid(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """The integral by the trapezoidal rule."""
    return traced.trapezoid(y, dx=dx, dim=axis) if x is None else traced.trapezoid(y, x, dim=axis)


@of_numpy(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any) -> Any:
    """The piecewise linear function through points, differentiable by all of `x`, `xp` and `fp`; at a point the derivative is that from the right."""
    x, xp, fp = map(floats, (x, xp, fp))
    if xp.ndim != 1 or fp.ndim != 1:
        raise ValueError("Data points must be 1-D sequences")
    if xp.shape != fp.shape:
        raise ValueError("fp and xp are not of the same length.")
    if not xp.numel():
        raise ValueError("array of sample points is empty")
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        x, xp, left, right = x % abs(period), xp % abs(period), None, None
        order = traced.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp, fp = traced.cat([xp[-1:] - abs(period), xp, xp[:1] + abs(period)], 0), traced.cat([fp[-1:], fp, fp[:1]], 0)
    last = xp.numel() - 1
    places = searchsorted(xp.detach(), x.detach(), right=True) - 1
    inside, low = (places >= 0) & (places < last), traced.clamp(places, 0, last)
    high = traced.clamp(low + 1, 0, last)
    width = traced.where(inside, xp[high] - xp[low], 1.0)
    out = traced.where(inside, fp[low] + (fp[high] - fp[low]) / width * (x - xp[low]), fp[low])
    for outside, value in ((x < xp[0], left), (x > xp[last], right), (x != x, np.nan)):
        out = out if value is None else traced.where(outside, value, out)
    return out


@of_numpy(np.convolve)
def convolve(a: Any, v: Any, mode: str) -> Any:
    """The convolution of two vectors."""
    for x in (a, v):
        if x.ndim > 1:
            raise ValueError("object too deep for desired array")
        if not x.numel():
            raise ValueError("a cannot be empty" if x is a else "v cannot be empty")
    dtype = result_type(a, v)
    a, v = sorted((traced.reshape(a, (-1,)).to(dtype), traced.reshape(v, (-1,)).to(dtype)), key=len, reverse=True)
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'full', 'same', or 'valid' (got {mode!r})")
    m = len(v)
    before, after = {"full": (m - 1, m - 1), "same": (m // 2, (m - 1) // 2), "valid": (0, 0)}[mode]
    return traced.matmul(traced.unfold(pad(a, (before, after)), 0, m, 1), traced.flip(v, (0,)))


def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = floats(f)
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    steps = [as_tensor(h) for h in (varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes))]
    for d, h in zip(axes, steps):
        if x.shape[d] < edge_order + 1:
            raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required.")
        if h.ndim and h.numel() != x.shape[d]:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    found = traced.gradient(x, spacing=steps, dim=tuple(axes), edge_order=edge_order)
    return found[0] if len(found) == 1 else found


@of_numpy(np.polyval)
def _polyval(p: Any, x: Any) -> Any:
    y = traced.zeros_like(x)
    for coefficient in traced.unbind(as_tensor(p)):
        y = y * x + coefficient
    return y


@of_numpy(np.correlate)
def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    if len(v) > len(a) and mode != "full":
        return NotImplemented
    return convolve(a, traced.conj(traced.flip(v, (0,))), mode)


@of_numpy(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any, to_begin: Any) -> Any:
    x = traced.reshape(ary, (-1,))
    ends = [None if part is None else traced.reshape(as_tensor(part), (-1,)).to(x.dtype) for part in (to_begin, to_end)]
    parts = [part for part in (ends[0], x[1:] - x[:-1], ends[1]) if part is not None]
    return traced.cat(parts, 0) if len(parts) > 1 else parts[0]


@of_numpy(np.unwrap)
def _unwrap(p: Any, discont: Any, axis: int, period: float) -> Any:
    """The numbers plus multiples of the period, such that no difference is above half of it; the multiples are constants."""
    x = floats(p)
    value = np.asarray(x.detach().numpy())
    return x + wrap(np.unwrap(value, discont, axis, period=period) - value)


OWN = ("edge", "wrap", "reflect", "symmetric")
LINEAR = {"linear_ramp": "end_values", "mean": "stat_length", "reflect": "reflect_type", "symmetric": "reflect_type"}
CHOSEN = {"maximum": traced.amax, "minimum": traced.amin, "median": lambda x, dim, keepdim: traced.quantile(x, 0.5, dim, keepdim)}
WORDS = {"constant": ("constant_values",), "edge": (), "wrap": (), "empty": (), **{mode: (word,) for mode, word in LINEAR.items()},
         **dict.fromkeys(CHOSEN, ("stat_length",))}


def pad(array: Any, pad_width: Any, mode: str = "constant", **words: Any) -> Any:
    """The array with a border: of constants, of its own elements, of ramps to given ends, or of statistics of the elements next to it."""
    out = as_tensor(array)
    if mode not in WORDS:
        return NotImplemented
    unknown = set(words) - set(WORDS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    widths = _pairs(pad_width, out.ndim)
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")
    constants, lengths = _pairs(words.get("constant_values", words.get("end_values", 0)), out.ndim), _pairs(words.get("stat_length"), out.ndim)
    for axis, pair in enumerate(widths):
        if not any(pair):
            continue
        n = out.shape[axis]
        if mode in ("constant", "empty"):
            ends = [wrap(np.full((*out.shape[:axis], m, *out.shape[axis + 1:]), value, out._value.dtype)) for m, value in zip(pair, constants[axis])]
            out = traced.cat([ends[0], out, ends[1]], axis)
        elif mode in OWN and words.get("reflect_type", "even") == "even":
            out = traced.index_select(out, axis, wrap(np.pad(np.arange(n), pair, mode=mode)))  # type: ignore[call-overload]
        elif mode in CHOSEN:
            out = _with_statistics(out, axis, pair, lengths[axis], CHOSEN[mode])
        else:
            out = _with_linear_border(out, axis, pair, mode, words, constants[axis], lengths[axis])
    return traced.clone(out) if out is array else out


def _with_statistics(x: Any, axis: int, pair: Any, lengths: Any, choose: Any) -> Any:
    """Both ends repeated: statistics of as many elements as the lengths say, or of all."""
    n, ends = x.shape[axis], []
    for first, (width, length) in zip((True, False), zip(pair, lengths)):
        count = n if length is None else min(int(length), n)
        value = choose(traced.narrow(x, axis, 0 if first else n - count, count), axis, True)
        ends.append(traced.broadcast_to(value, (*x.shape[:axis], int(width), *x.shape[axis + 1:])))
    return traced.cat([ends[0], x, ends[1]], axis)


def _with_linear_border(x: Any, axis: int, pair: Any, mode: str, words: Any, ends: Any, lengths: Any) -> Any:
    """A border that is linear in the elements, but for the ends of ramps: the matrix is what NumPy makes of the unit vectors."""
    n, word = x.shape[axis], LINEAR[mode]
    given: dict[str, Any] = {word: words[word]} if word == "reflect_type" else {}
    if mode == "mean" and word in words:
        given = {word: (tuple(lengths), (n, n))}
    matrix = np.pad(np.eye(n), (tuple(pair), (0, 0)), mode=mode, **given)  # type: ignore[call-overload]
    out = traced.movedim(traced.matmul(traced.movedim(x, axis, -1), wrap(matrix.T.astype(x._value.dtype))), -1, axis)
    if mode != "linear_ramp":
        return out
    ramp = np.pad(np.zeros(n), tuple(pair), mode, end_values=tuple(ends))  # type: ignore[call-overload]
    return out + traced.reshape(wrap(ramp.astype(x._value.dtype)), (-1, *(1,) * (x.ndim - 1 - axis)))


def _pairs(given: Any, ndim: int) -> list[Sequence[Any]]:
    """A number, a pair or pairs as one pair for each axis; a mapping has those of some axes."""
    if isinstance(given, dict):
        each: list[Any] = [given.get(d, given.get(d - ndim, 0)) for d in range(ndim)]
        return [np.broadcast_to(pair, 2).tolist() for pair in each]
    return np.broadcast_to(np.array(given, object if given is None else None), (ndim, 2)).tolist()


FUNCTIONS_OF_NUMPY.update({np.pad: pad, np.gradient: _gradient})  # of any number of arguments


# Linear algebra

of_matrices = functools.partial(of_numpy, convert=floats)
# Of a function of `numpy.linalg` the op that computes it, and the names of NumPy's arguments with which it is called
OPS = {
    "cond": "linalg_cond x p", "matrix_power": "matrix_power a n", "svdvals": "linalg_svdvals x", "tensorsolve": "linalg_tensorsolve a b axes",
    "tensorinv": "linalg_tensorinv a ind", "vector_norm": "linalg_vector_norm x ord axis keepdims", "cholesky": "cholesky a upper",
    "eigh": "linalg_eigh a UPLO", "eigvalsh": "linalg_eigvalsh a UPLO",
    **{name: f"linalg_{name} a" for name in ("inv", "det", "slogdet", "eig", "eigvals")},
}
for _name, _call in OPS.items():
    _op, _, _names = _call.partition(" ")
    of_matrices(getattr(np.linalg, _name), names=_names)(getattr(traced, _op))


@of_matrices(np.linalg.solve)
def _solve(a: Any, b: Any) -> Any:
    """The solution of a x = b; only `b` with one dimension is a vector."""
    if b.ndim == 1:
        return traced.squeeze(traced.linalg_solve(a, traced.unsqueeze(b, -1)), -1)
    return traced.linalg_solve(a, traced.reshape(b, (*(1,) * (a.ndim - b.ndim), *b.shape)))


@of_matrices(np.linalg.norm)
def _norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """The norm of vectors, or of matrices, by torch's rules for both."""
    if axis is None and ord is not None and x.ndim not in (1, 2):
        raise ValueError("Improper number of dimensions to norm.")
    several = axis is None and ord is not None and x.ndim > 1 or isinstance(axis, (tuple, list)) and len(axis) > 1
    if not several or ord is None:
        if isinstance(ord, str):
            raise ValueError(f"Invalid norm order '{ord}' for vectors")
        return traced.norm(x, 2 if ord is None else ord, axis, keepdims)
    if ord not in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    return traced.linalg_matrix_norm(x, ord, (-2, -1) if axis is None else tuple(axis), keepdims)


@of_matrices(np.linalg.svd)
def _svd(a: Any, full_matrices: bool, compute_uv: bool, hermitian: bool) -> Any:
    if not hermitian:
        return traced.linalg_svd(a, full_matrices) if compute_uv else traced.linalg_svdvals(a)
    if not compute_uv:
        return traced.sort(traced.abs(traced.linalg_eigvalsh(a)), -1, True).values
    values, vectors = traced.linalg_eigh(a)
    s, order = traced.sort(traced.abs(values), -1, True)
    u = traced.take_along_dim(vectors, traced.unsqueeze(order, -2), -1)
    signs = traced.unsqueeze(traced.take_along_dim(traced.copysign(traced.ones_like(values), values), order, -1), -2)
    return return_types.linalg_svd((u, s, traced.adjoint(u * signs)))


@of_matrices(np.linalg.lstsq)
def _lstsq(a: Any, b: Any, rcond: Any) -> Any:
    """The least-squares solution, the sums of squared residuals, the rank and the singular values."""
    columns = traced.unsqueeze(b, -1) if b.ndim == 1 else b
    found = traced.linalg_lstsq(a, columns, rcond=rcond if rcond is None or rcond >= 0 else float(np.finfo(float).eps), driver="gelsd")
    x = traced.squeeze(found.solution, -1) if b.ndim == 1 else found.solution
    full = a.shape[1] < a.shape[0] and bool((every(found.rank) == a.shape[1]).all())
    rank = found.rank if isinstance(found.rank._value, DuckArray) else int(found.rank)
    difference = traced.matmul(a, found.solution) - columns
    residuals = traced.sum(traced.square(traced.abs(difference)), 0) if full else x.new_empty(0)
    return x, residuals, rank, found.singular_values


@of_matrices(np.linalg.pinv)
def _pinv(a: Any, rcond: Any, hermitian: bool, rtol: Any) -> Any:
    given = rtol if rcond is None else rcond
    return traced.linalg_pinv(a, hermitian=hermitian, rtol=1e-15 if given is None else given)


@of_matrices(np.linalg.qr)
def _qr(a: Any, mode: str) -> Any:
    if mode not in ("reduced", "complete", "r"):
        return NotImplemented
    found = traced.linalg_qr(a, mode)
    return found.R if mode == "r" else found


@of_numpy(np.linalg.matrix_rank)
def _rank(A: Any, tol: Any, hermitian: bool, rtol: Any) -> Any:
    return np.linalg.matrix_rank(as_value(A.detach()), tol, hermitian, **({} if rtol is None else {"rtol": rtol}))


of_matrices(np.linalg.matrix_norm)(lambda x, keepdims, ord: _norm(x, ord, (-2, -1), keepdims))
of_numpy(np.linalg.multi_dot)(lambda arrays: traced.linalg_multi_dot([floats(a) for a in arrays]))
of_numpy(np.linalg.cross)(lambda x1, x2, axis: cross(x1, x2, -1, -1, -1, axis))
of_numpy(np.linalg.matrix_transpose)(lambda x: x.mT)
of_numpy(np.linalg.diagonal)(lambda x, offset: traced.diagonal(x, offset, -2, -1))
of_numpy(np.linalg.trace)(lambda x, offset: traced.sum(traced.diagonal(x, offset, -2, -1), -1))
of_numpy(np.linalg.outer, names="x1 x2")(traced.outer)
