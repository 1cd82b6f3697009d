"""Functions of NumPy, and of `numpy.linalg`, that torch has not, or has with other rules for shapes: for the table of `numpy_protocol`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.dtypes.dtype import get_default_dtype
from symgrad.engine.data import as_value, has_graph, operand_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph import return_types
from symgrad.methods.counting import searchsorted
from symgrad.methods.predicates import result_type
from symgrad.ops.rules import every


def as_tensor(x: Any) -> Any:
    """A tensor of an array, of nested sequences, which may have Tensors, or of a number; a Tensor itself."""
    if isinstance(x, Tensor):
        return x
    return traced.stack([as_tensor(each) for each in x]) if type(x) in (list, tuple) and has_graph(x) else wrap(operand_value(x))


def floats(x: Any) -> Any:
    """The numbers as floats, or complex."""
    x = as_tensor(x)
    return x if x.is_floating_point() or x.is_complex() else x.to(get_default_dtype())


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """The cross product of vectors along an axis; of vectors of two elements its third component."""
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = traced.movedim(as_tensor(a), axisa, -1), traced.movedim(as_tensor(b), axisb, -1)
    sizes = {a.shape[-1], b.shape[-1]}
    if not sizes <= {2, 3}:
        raise ValueError(f"incompatible dimensions for cross product (dimension must be 2 or 3), got {a.shape[-1]} and {b.shape[-1]}")
    if sizes == {2}:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    a, b = (x if x.shape[-1] == 3 else traced.cat([x, traced.zeros_like(x[..., :1])], -1) for x in (a, b))
    shape = np.broadcast_shapes(a.shape, b.shape)
    return traced.movedim(traced.cross(traced.broadcast_to(a, shape), traced.broadcast_to(b, shape), -1), -1, axisc)


# Sampled functions


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral by the trapezoidal rule."""
    return traced.trapezoid(as_tensor(y), dx=dx, dim=axis) if x is None else traced.trapezoid(as_tensor(y), as_tensor(x), dim=axis)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
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


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """The convolution of two vectors."""
    a, v = as_tensor(a), as_tensor(v)
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


def _solve(a: Any, b: Any) -> Any:
    """The solution of a x = b; only `b` with one dimension is a vector."""
    a, b = floats(a), floats(b)
    if b.ndim == 1:
        return traced.squeeze(traced.linalg_solve(a, traced.unsqueeze(b, -1)), -1)
    return traced.linalg_solve(a, traced.reshape(b, (*(1,) * (a.ndim - b.ndim), *b.shape)))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors, or of matrices, by torch's rules for both."""
    x = floats(x)
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


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = floats(a)
    if not hermitian:
        return traced.linalg_svd(a, full_matrices) if compute_uv else traced.linalg_svdvals(a)
    if not compute_uv:
        return traced.sort(traced.abs(traced.linalg_eigvalsh(a)), -1, True).values
    values, vectors = traced.linalg_eigh(a)
    s, order = traced.sort(traced.abs(values), -1, True)
    u = traced.take_along_dim(vectors, traced.unsqueeze(order, -2), -1)
    signs = traced.unsqueeze(traced.take_along_dim(traced.copysign(traced.ones_like(values), values), order, -1), -2)
    return return_types.linalg_svd((u, s, traced.adjoint(u * signs)))


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The least-squares solution, the sums of squared residuals, the rank and the singular values."""
    a, b = floats(a), floats(b)
    columns = traced.unsqueeze(b, -1) if b.ndim == 1 else b
    found = traced.linalg_lstsq(a, columns, rcond=rcond if rcond is None or rcond >= 0 else float(np.finfo(float).eps), driver="gelsd")
    x = traced.squeeze(found.solution, -1) if b.ndim == 1 else found.solution
    full = a.shape[1] < a.shape[0] and bool((every(found.rank) == a.shape[1]).all())
    rank = found.rank if isinstance(found.rank._value, DuckArray) else int(found.rank)
    difference = traced.matmul(a, found.solution) - columns
    residuals = traced.sum(traced.square(traced.abs(difference)), 0) if full else x.new_empty(0)
    return x, residuals, rank, found.singular_values


def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    given = rtol if rcond is None else rcond
    return traced.linalg_pinv(floats(a), hermitian=hermitian, rtol=1e-15 if given is None else given)


def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        return NotImplemented
    found = traced.linalg_qr(floats(a), mode)
    return found.R if mode == "r" else found


def _rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    return np.linalg.matrix_rank(as_value(as_tensor(A).detach()), tol, hermitian, **({} if rtol is None else {"rtol": rtol}))


def _by(name: str) -> Callable[..., Any]:
    """A function whose first argument is a matrix, and the others as torch's."""
    function = getattr(traced, name)
    return lambda a, *rest, **words: function(floats(a), *rest, **words)


def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    return traced.linalg_vector_norm(floats(x), ord, axis, keepdims)


MATRICES: dict[Any, Callable[..., Any]] = {
    np.linalg.solve: _solve, np.linalg.norm: _norm, np.linalg.svd: _svd, np.linalg.lstsq: _lstsq, np.linalg.pinv: _pinv, np.linalg.qr: _qr,
    np.linalg.matrix_rank: _rank, np.linalg.vector_norm: _vector_norm, np.linalg.cross: lambda x1, x2, /, *, axis=-1: cross(x1, x2, axis=axis),
    np.linalg.matrix_norm: lambda x, /, *, keepdims=False, ord="fro": _norm(x, ord, (-2, -1), keepdims),
    np.linalg.svdvals: lambda x, /: traced.linalg_svdvals(floats(x)), np.linalg.matrix_transpose: lambda x, /: as_tensor(x).mT,
    np.linalg.cond: lambda x, p=None: traced.linalg_cond(floats(x), p), np.linalg.matrix_power: _by("matrix_power"),
    np.linalg.multi_dot: lambda arrays, *, out=None: traced.linalg_multi_dot([floats(a) for a in arrays]),
    np.linalg.tensorsolve: lambda a, b, axes=None: traced.linalg_tensorsolve(floats(a), floats(b), axes),
    np.linalg.tensorinv: lambda a, ind=2: traced.linalg_tensorinv(floats(a), ind),
    np.linalg.diagonal: lambda x, /, *, offset=0: traced.diagonal(as_tensor(x), offset, -2, -1),
    np.linalg.trace: lambda x, /, *, offset=0, dtype=None: traced.sum(traced.diagonal(as_tensor(x), offset, -2, -1), -1),
    np.linalg.outer: lambda x1, x2, /: traced.outer(as_tensor(x1), as_tensor(x2)),
    **{getattr(np.linalg, name): _by(f"linalg_{name}") for name in ("inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh", "eig", "eigvals")},
}
