"""Words as they are recorded: the shapes and dtypes of their results, without their elements, and simplifications.

Simplifications change no finite value and no sign of a zero.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.special.table import SPECIAL
from symgrad.program.program import ArraySpec, Operand, Step, call


def result_dtype(ufunc: Any, kinds: Sequence[Any]) -> np.dtype:
    """The dtype of a ufunc's result, for dtypes and types of Python numbers."""
    with np.errstate(all="ignore"):
        return ufunc(*[kind(1) if isinstance(kind, type) else np.ones((1,), kind) for kind in kinds]).dtype


def _axes(dim: Any, ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim)) if dim is None else tuple(a % ndim for a in dim) if isinstance(dim, (tuple, list)) else (dim % ndim,) if ndim else ()


def _reduced(shape: tuple[int, ...], dim: Any = None, keepdim: bool = False) -> tuple[int, ...]:
    axes = _axes(dim, len(shape))
    return tuple([1 if i in axes else n for i, n in enumerate(shape) if keepdim or i not in axes])


def _product(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
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
    "sum_to_size": lambda x, shape: tuple(shape), "permute": lambda x, dims: tuple([x[i] for i in dims]), "matmul": _product, "mm": _product,
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
    y = _computed(name, [e.value if e.name == "constant" else _zeros(e.shape, e.dtype) for e in operands], params)
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


@functools.lru_cache(1024)
def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """An array of a shape and dtype that takes the memory of one element."""
    return np.broadcast_to(np.zeros((), dtype), shape) if shape else dtype.type(0)


def _computed(name: str, operands: Sequence[Any], params: tuple) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(call(Step(name, tuple(range(len(operands))), params, (), np.dtype(float)), operands))


SMALL = 4096  # elements of a constant that are compared to find out whether all are equal


def filling(e: Any) -> Any:
    """The number that all elements of a constant are; None for others."""
    if e.name != "constant":
        return None
    if e.params:
        return e.params[0]
    e.params = (_filling(e),)
    return e.params[0]


def _filling(e: Any) -> Any:
    x = e.value
    if type(x) in (int, float):
        return float(x)
    if e.dtype.kind != "f" or e.dtype.itemsize < 4 or not np.size(x):
        return None
    if not np.ndim(x):
        return float(x)
    first = x[(0,) * x.ndim]
    if any(x.strides) and (x.size > SMALL or not (x == first).all() or not first and np.signbit(x).any() != np.signbit(x).all()):
        return None
    return float(first)


def elementwise_operands(recorder: Any, name: str, operands: tuple[Any, ...], spec: ArraySpec) -> tuple[Any, ...]:
    """The operands of an elementwise word without explicit broadcasts that the word does itself, and with numbers for filled constants."""
    if not any([e.name == "broadcast_to" or e.name == "constant" and e.shape for e in operands]) or len(operands) < 2:
        return operands
    out = list(operands)
    for i, e in enumerate(operands):
        others = [o.shape for k, o in enumerate(out) if k != i]
        if e.name == "broadcast_to" and np.broadcast_shapes(*others, e.operands[0].shape) == spec.shape:
            out[i] = e.operands[0]
        elif e.name == "constant" and e.shape and np.broadcast_shapes(*others) == spec.shape and (number := filling(e)) is not None and any(
                o.dtype == e.dtype and type(getattr(o, "value", None)) not in (int, float) for k, o in enumerate(out) if k != i):
            out[i] = recorder.entry(number)
    return tuple(out)


def _passes(e: Any, spec: ArraySpec) -> bool:
    """Whether an entry can stand for a result of these shape and dtype."""
    return e.shape == spec.shape and e.dtype == spec.dtype


def _is_zero(e: Any, sign: int, spec: ArraySpec) -> bool:
    """Whether an entry is the zero of a sign; both are one for integers. -0.0 + 0.0 is 0.0, and -0.0 + -0.0 and -0.0 - 0.0 are -0.0."""
    number = filling(e)
    return number == 0 and (spec.dtype.kind not in "fc" or math.copysign(1, number) == sign and spec.dtype.kind == "f")


def _add(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    for x, y in (operands, operands[::-1]):
        if _is_zero(y, -1, spec) and _passes(x, spec):
            return x
        if y.name == "neg":
            return recorder.add("sub", (x, y.operands[0]), (), spec)
    return None


def _sub(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    a, b = operands
    if _is_zero(b, 1, spec) and _passes(a, spec):
        return a
    if _is_zero(a, -1, spec) and _passes(b, spec) and spec.dtype.kind == "f":
        return recorder.add("neg", (b,), (), spec)
    return recorder.add("add", (a, b.operands[0]), (), spec) if b.name == "neg" else None


def _mul(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    if spec.dtype.kind != "f":
        return None
    for x, y in (operands, operands[::-1]):
        factor = filling(y)
        if factor is None or not _passes(x, spec):
            continue
        return _scaled(recorder, x, factor, spec)
    return None


def _scaled(recorder: Any, x: Any, factor: float, spec: ArraySpec) -> Any:
    """A value times a number, merged with a number by which the value was multiplied before."""
    if x.name == "neg":
        x, factor = x.operands[0], -factor
    elif x.name == "mul" and spec.dtype == np.float64:
        before = next(((o, n) for o, e in (x.operands, x.operands[::-1]) if (n := filling(e)) is not None and _passes(o, spec)), None)
        if before is not None and (abs(factor) == 1 or _round_once(before[1], factor)):
            x, factor = before[0], before[1] * factor
    if factor == 1:
        return x
    if factor == -1:
        return recorder.add_plain("neg", (x,), (), spec)
    return recorder.add_plain("mul", (x, recorder.entry(factor)), (), spec)


def _round_once(a: float, b: float) -> bool:
    """Whether a product with two numbers of moderate size rounds once, since one of them is a power of two."""
    return 0.5 in (abs(math.frexp(a)[0]), abs(math.frexp(b)[0])) and all([1e-100 < abs(x) < 1e100 for x in (a, b)])


def _div(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    a, b = operands
    return a if filling(b) == 1 and _passes(a, spec) else None


def _neg(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    (x,) = operands
    if x.name == "neg":
        return x.operands[0]
    return _scaled(recorder, x, -1.0, spec) if spec.dtype.kind == "f" else None


def _pow(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    a, b = operands
    exponent = filling(b)
    if exponent == 1 and _passes(a, spec):
        return a
    return recorder.add("square", (a,), (), spec) if exponent == 2 and _passes(a, spec) else None


def _same_shape(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    (x,) = operands
    if _passes(x, spec):
        return x
    return recorder.add("reshape", (x.operands[0],), params) if x.name == "reshape" else None


def _broadcast(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    (x,) = operands
    if _passes(x, spec):
        return x
    return recorder.add("broadcast_to", (x.operands[0],), params) if x.name == "broadcast_to" else None


def _permute(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    (x,), (dims,) = operands, params
    if dims == tuple(range(len(dims))):
        return x
    if x.name == "permute":
        return recorder.add("permute", x.operands, (tuple([x.params[0][i] for i in dims]),))
    if x.name == "broadcast_to" and not x.operands[0].shape:
        return recorder.add("broadcast_to", x.operands, (spec.shape,))
    return None


def _identity(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    return operands[0] if _passes(operands[0], spec) else None


def _sum(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    (x,) = operands
    return x if params[:1] == ((),) and _passes(x, spec) else None


def _selected(e: Any, axis: int) -> Any:
    """The places that a constant matrix selects in a product, as a slice or an array: it has a single 1 along the axis, and else zeros."""
    if e.name != "constant" or len(e.shape) != 2 or e.dtype.kind != "f" or not all(e.shape):
        return None
    x = e.value
    if np.count_nonzero(x) != x.shape[1 - axis] or not (x.max(axis=axis) == 1).all():
        return None
    places = x.argmax(axis=axis)
    first = int(places[0])
    return slice(first, first + places.size) if (places == np.arange(first, first + places.size)).all() else places


def _matmul(recorder: Any, operands: Any, params: tuple, spec: ArraySpec) -> Any:
    """A product with rows of the identity, as the vectors along which a Hessian is computed, selects; elsewhere it spreads an infinity or NaN."""
    a, b = operands
    if not recorder.selects or a.dtype != b.dtype:
        return None
    for x, index in ((b, _selected(a, 1)), (a, _selected(b, 0))):
        if index is None or len(x.shape) > 2:
            continue
        whole = (slice(None),) * (len(x.shape) - 1) if x is a else ()
        if isinstance(index, slice) and index == slice(0, x.shape[len(whole)]):
            return x
        return recorder.add("getitem", (x,), ((*whole, index) if whole else index,), spec)
    return None


REWRITES: dict[str, Callable[..., Any]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _neg, "pow": _pow, "reshape": _same_shape, "broadcast_to": _broadcast,
    "permute": _permute, "astype": _identity, "copy": _identity, "sum_to_size": _identity, "sum": _sum,
    "matmul": _matmul,
}


# Steps that raise for some values: a function that has computed one raises, or catches the error, also where it does not use the result

# Words of matrices that raise, each with what it needs of the matrix. Words that only derivatives use are not among them.
FAILING = {
    "matrix_inverse": "regular", "solve_system": "regular", "cholesky_factor": "positive",
    "hermitian_eigenvalues": "finite triangle", "hermitian_eigenvectors": "finite triangle", "ldl_factors": "finite triangle",
    "singular_values": "finite", "singular_vectors": "finite", "pseudo_inverse": "finite", "eigenvalues": "finite", "eigenvectors": "finite",
}
DIVIDING = ("remainder", "fmod", "floor_divide")
INDEXED = {"getitem": 1, "put": 2}  # words with an index, with the number of operands before those of the index


def _condition(e: Any) -> Any:
    """What must hold for a step not to raise, which is equal for steps that fail together; None for steps that never raise."""
    needed = FAILING.get(e.name)
    if needed is not None:
        x = e.operands[0]
        while x.name == "permute" and needed == "regular":  # a matrix is singular if its transpose is
            x = x.operands[0]
        return needed, x.number
    if e.name in INDEXED and len(e.operands) > INDEXED[e.name]:
        index = e.params[0]
        return "index", e.operands[0].shape, repr(_unnumbered(index)), *[o.number for o in e.operands[INDEXED[e.name]:]]
    if e.name in DIVIDING and e.dtype.kind in "biu" and not (e.operands[1].name == "constant" and np.all(e.operands[1].value)):
        return "divisor", e.operands[1].number
    return None


def _unnumbered(index: Any) -> Any:
    """An index with the same place for each operand, whose number depends on the word."""
    if type(index) in (tuple, list):
        return [_unnumbered(x) for x in index]
    return Operand(0) if type(index) is Operand else index


def unused_failures(entries: Iterable[Any], used: Iterable[Any]) -> list[Any]:
    """Entries that are not used and may raise where no used one does, one for each condition."""
    conditions = {e: c for e in entries if (c := _condition(e)) is not None}
    if not conditions:
        return []
    known = {conditions[e] for e in used if e in conditions}
    found: dict[Any, Any] = {}
    for e, condition in conditions.items():
        if condition not in known:
            found.setdefault(condition, e)
    return list(found.values())
