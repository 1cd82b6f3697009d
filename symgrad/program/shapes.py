"""The shapes and dtypes of the results of words, without their elements."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.special.table import SPECIAL
from symgrad.program.program import ArraySpec, Step, call


def result_dtype(ufunc: Any, kinds: Sequence[Any]) -> np.dtype:
    """The dtype of a ufunc's result, for dtypes and types of Python numbers."""
    with np.errstate(all="ignore"):
        return ufunc(*[kind(1) if isinstance(kind, type) else np.ones((1,), kind) for kind in kinds]).dtype


def _axes(dim: Any, ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim)) if dim is None else tuple(a % ndim for a in dim) if isinstance(dim, (tuple, list)) else (dim % ndim,) if ndim else ()


def _reduced(shape: tuple[int, ...], dim: Any = None, keepdim: bool = False) -> tuple[int, ...]:
    axes = _axes(dim, len(shape))
    return tuple([1 if i in axes else n for i, n in enumerate(shape) if keepdim or i not in axes])


def _matmul(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    inner = a[-1], b[-2 if len(b) > 1 else 0]
    if inner[0] != inner[1]:
        raise ValueError(f"matmul: shapes {a} and {b} do not match")
    front = np.broadcast_shapes(a[:-2], b[:-2])
    return (*front, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def _einsum(equation: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    left, _, right = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for term, shape in zip(left.split(","), shapes):
        for letter, n in zip(term, shape):
            sizes[letter] = max(n, sizes.get(letter, 1)) if sizes.get(letter, 1) == 1 else sizes[letter]
    return tuple(sizes[letter] for letter in right)


def _joined(shapes: Sequence[tuple[int, ...]], dim: int) -> tuple[int, ...]:
    first = shapes[0]
    return (*first[:dim], sum(s[dim] for s in shapes), *first[dim + 1:])


# The shape of a result, from the shapes of the operands and the parameters
SHAPES: dict[str, Callable[..., tuple[int, ...]]] = {
    **dict.fromkeys(("sum", "prod", "amax", "amin", "all", "any", "logsumexp", "norm"), _reduced),
    **dict.fromkeys(("softmax", "log_softmax", "centred", "cumsum", "cumprod", "flip", "roll", "tril", "triu", "astype", "copy", "sech",
                     "sech_square", "sigmoid", "logsigmoid", "softplus", "rsqrt", "one_minus_square", "exp2_derivative", "log_derivative",
                     "sinc_derivative", "dft"), lambda x, *params: x),
    **{name: lambda *args, count=row.arity: np.broadcast_shapes(*args[:count]) for name, row in SPECIAL.items()},
    "reshape": lambda x, shape: tuple(shape), "view": lambda x, shape: tuple(shape), "broadcast_to": lambda x, shape: np.broadcast_shapes(x, shape),
    "sum_to_size": lambda x, shape: tuple(shape), "permute": lambda x, dims: tuple([x[i] for i in dims]), "matmul": _matmul, "mm": _matmul,
    **dict.fromkeys(("matrix_inverse", "cholesky_factor", "hermitian_eigenvectors", "matrix_exponential", "eigenvectors",
                     "cofactors", "log_det_slope", "hermitian_matrix"), lambda x: x),
    **dict.fromkeys(("determinant", "log_abs_det", "sign_of_det"), lambda x: x[:-2]),
    **dict.fromkeys(("hermitian_eigenvalues", "eigenvalues"), lambda x: x[:-1]), "singular_values": lambda x: (*x[:-2], min(x[-2:])),
    "singular_vectors": lambda x: (*x[:-2], sum(x[-2:]), min(x[-2:])), "qr_factors": lambda x: (*x[:-2], sum(x[-2:]), x[-1]),
    "pseudo_inverse": lambda x, *params: (*x[:-2], x[-1], x[-2]),
    **dict.fromkeys(("solve_system", "solve_triangle"), lambda a, b, *params: (*np.broadcast_shapes(a[:-2], b[:-2]), *b[-2:])),
    "cofactors_along": np.broadcast_shapes, "eigenvalue_gaps": lambda x, name: (*x, x[-1]), "regular": lambda x, name: x,
    "place": lambda x, *params: tuple(params[-1]), "put": lambda x, *rest: x,
}
SAME_DTYPE = frozenset(("reshape", "view", "broadcast_to", "permute", "place", "put", "flip", "roll", "tril", "triu", "copy", "amax", "amin",
                        "getitem", "diagonal", "diagonal_place", "sum_to_size", "regular"))


def spec_of(name: str, operands: Sequence[Any], params: tuple) -> ArraySpec:
    """The shape and the dtype of the result of a word."""
    shapes = [e.shape for e in operands]
    if name in ("cat", "stack"):
        dtype = np.result_type(*[e.dtype for e in operands])
        return ArraySpec(_joined(shapes, params[0]) if name == "cat" else (*shapes[0][:params[0]], len(shapes), *shapes[0][params[0]:]), dtype)
    if name == "einsum":
        return ArraySpec(_einsum(params[0], *shapes), np.result_type(*[e.dtype for e in operands]))
    if name in SHAPES:
        shape = SHAPES[name](*shapes, *params)
        if name == "broadcast_to" and shape != tuple(params[0]):
            raise ValueError(f"broadcast_to: an array of shape {shapes[0]} does not broadcast to {params[0]}")
        return ArraySpec(shape, _dtype(name, operands, params))
    y = _computed(name, [_stand_in(e) for e in operands], params)
    return ArraySpec(y.shape, y.dtype)


def _dtype(name: str, operands: Sequence[Any], params: tuple) -> np.dtype:
    first = operands[0].dtype
    if name in SAME_DTYPE and (name != "sum_to_size" or first.kind in "fc"):
        return first
    if name == "astype":
        return np.dtype(params[0])
    if name in ("eigenvalues", "eigenvectors"):
        return np.result_type(first, np.complex64)
    if name in ("log_abs_det", "hermitian_eigenvalues", "singular_values"):
        return np.zeros(0, first).real.dtype
    if name in ("matmul", "mm", "solve_system", "solve_triangle"):
        return np.result_type(*[e.dtype for e in operands])
    kinds = {e.kind for e in operands if isinstance(e.kind, np.dtype)}  # without Python's numbers, which do not determine the dtype of a result
    if len(kinds) == 1 and (kind := kinds.pop()).kind == "f" and kind.itemsize >= 4 and name not in ("all", "any"):
        return kind
    return _computed(name, [_one(e) for e in operands], params).dtype  # that of complex numbers is complex or real


def _one(e: Any) -> Any:
    """An operand of one element in place of many."""
    return np.ones((1,) * len(e.shape), e.dtype) if isinstance(e.kind, np.dtype) else e.value


def _stand_in(e: Any) -> Any:
    return e.value if e.name == "constant" else _zeros(e.shape, e.dtype)


@functools.lru_cache(1024)
def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """An array of a shape and dtype that takes the memory of one element."""
    return np.broadcast_to(np.zeros((), dtype), shape) if shape else dtype.type(0)


def _computed(name: str, operands: Sequence[Any], params: tuple) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(call(Step(name, tuple(range(len(operands))), params, (), np.dtype(float)), operands))


