"""Docstrings of ops, generated from their declarations and from tables of sentences.

`python -m symgrad.stubs` runs the examples and writes the docstrings of the public ops, with outputs and dtypes, to `documentation.txt`;
`import symgrad` only reads that file.
"""

from __future__ import annotations

import os
from inspect import Signature

from symgrad.engine.parameters import PARAMETERS, table
from symgrad.graph.op import Op

__all__ = ["MARK", "STORE", "described", "documentation", "stored"]

STORE = os.path.join(os.path.dirname(__file__), "documentation.txt")
MARK = "\f"  # precedes the name of each op in that file


SHAPES = table("""
clamp, clamp_min, clamp_max, addcmul, addcdiv, lerp, float_power, fmod: the tensors broadcast; the result has the broadcast shape.
isclose, where, masked_fill, heaviside, xlogy, xlog1py, fmax, fmin, logaddexp2, ldexp: the tensors broadcast; the result has the broadcast shape.
sinc, entr, mvlgamma, positive, nan_to_num, real, imag, conj, resolve_conj, angle, sgn: the result has the shape of `input`.
beta, betaln: the arguments broadcast; the result has the broadcast shape.
celu, selu, prelu, threshold, hardshrink, deg2rad, rad2deg: the result has the shape of `input`.
bessel_j0, bessel_j1, bessel_y0, bessel_y1, i0, i1, i0e, i1e, jv, yv, iv, kv, modified_bessel_i0: the result has the shape of `input`.
modified_bessel_i1, modified_bessel_k0, modified_bessel_k1, scaled_modified_bessel_k0: the result has the shape of `input`.
chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w: the result has the shape of `input`.
shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_v: the result has the shape of `input`.
shifted_chebyshev_polynomial_w, hermite_polynomial_h, hermite_polynomial_he, legendre_polynomial_p: the result has the shape of `input`.
laguerre_polynomial_l, spherical_bessel_j0: the result has the shape of `input`.
sici, fresnel: both results have the shape of `input`.
copysign: a tensor `other` broadcasts with `input`; the result has the broadcast shape.
fliplr, flipud, flip, roll, msort, argsort, index_put: the result has the shape of `input`.
cumsum, cumprod, softmax, log_softmax, clone, index_fill, scatter, scatter_add, index_add, index_copy: the result has the shape of `input`.
select_scatter, slice_scatter, diagonal_scatter, masked_scatter, tril, triu: the result has the shape of `input`.
complex, polar: both arguments broadcast; the result has the broadcast shape.
repeat: (s₁, ..., sₙ) becomes (r₁s₁, ..., rₙsₙ).
tile: (s₁, ..., sₙ) becomes (r₁s₁, ..., rₙsₙ), where missing repeats are 1.
repeat_interleave: the size along `dim` becomes the sum of the repeats; without `dim` the result is a vector.
unflatten: the size at `dim` is replaced by `sizes`, whose product it is.
ravel: the result is a vector of all elements.
flatten: the merged dimensions have the product of their sizes; a tensor without dimensions becomes a vector.
atleast_1d, atleast_2d, atleast_3d: tensors with enough dimensions keep their shape.
hstack, vstack, dstack, column_stack, cat: the tensors have one shape except along the joined dimension, whose sizes are added.
stack: n tensors of one shape give that shape with a new dimension of size n.
block_diag: matrices (mᵢ, nᵢ) give (Σmᵢ, Σnᵢ).
tensor_split, hsplit, vsplit, dsplit, split, split_with_sizes, chunk: each piece has the shape of `input` except along the split dimension.
unbind, select: the shape of `input` without the dimension `dim`.
rot90: an odd number of turns exchanges the two sizes of the plane.
meshgrid: vectors of sizes n₁, ..., nₖ give k tensors (n₁, ..., nₖ).
cartesian_prod: vectors of sizes n₁, ..., nₖ give (n₁ ⋯ nₖ, k); one vector is returned unchanged.
combinations: a vector of n elements gives (C(n, r), r).
adjoint: (..., m, n) becomes (..., n, m).
narrow, narrow_copy: the size along `dim` becomes `length`.
diagonal: the two dimensions are replaced by a last one of the diagonal's length.
diag_embed: (..., n) becomes matrices of size n + |offset| in the two new dimensions.
diagflat: n elements give a square matrix of size n + |offset|.
unfold: the size n at `dimension` becomes (n - size) // step + 1, and a last dimension of size `size` is added.
mm: (m, k) and (k, n) give (m, n).
mv: (m, k) and (k,) give (m,).
dot: (n,) and (n,) give a tensor without dimensions.
addmm: `input` broadcasts to (m, n); `mat1` is (m, k), `mat2` is (k, n).
addmv: `input` broadcasts to (m,); `mat` is (m, k), `vec` is (k,).
addr: `input` broadcasts to (m, n); `vec1` is (m,), `vec2` is (n,).
baddbmm: `input` broadcasts to (b, m, n); `batch1` is (b, m, k), `batch2` is (b, k, n).
bmm: (b, m, k) and (b, k, n) give (b, m, n).
matmul: (..., m, k) and (..., k, n) give (..., m, n), where leading dimensions broadcast; a vector has no m or no n.
outer: (m,) and (n,) give (m, n).
einsum: a letter has one size in all operands; the result has the sizes of its letters.
inverse, cholesky, cholesky_inverse: (..., n, n) gives (..., n, n).
det, logdet: (..., n, n) gives (...).
slogdet: (..., n, n) gives two tensors of shape (...).
matrix_exp, matrix_power: (..., n, n) gives (..., n, n).
svd: (..., m, n) gives (..., m, k), (..., k) and (..., n, k), where k is the smaller of m and n, or (..., m, m) and (..., n, n) with `some=False`.
qr: (..., m, n) gives (..., m, k) and (..., k, n), where k is the smaller of m and n, or m with `some=False`.
pinverse: (..., m, n) gives (..., n, m).
lu: (..., m, n) gives (..., m, n) and (..., k), where k is the smaller of m and n.
lu_unpack: (..., m, n) gives (..., m, m), (..., m, k) and (..., k, n), where k is the smaller of m and n.
lu_solve, triangular_solve: (..., n, k) and (..., n, n) give (..., n, k).
chain_matmul: (n0, n1), (n1, n2) and so on give (n0, nk).
vdot: (n,) and (n,) give a tensor without dimensions.
addbmm: `input` broadcasts to (m, n); `batch1` is (b, m, k), `batch2` is (b, k, n).
vander: (n,) gives (n, N).
orgqr: (..., m, n) and (..., k) give (..., m, n).
geqrf: (..., m, n) gives (..., m, n) and (..., k), where k is the smaller of m and n.
ormqr: the result has the shape of `other`.
cholesky_solve: (..., n, k) and (..., n, n) give (..., n, k), where leading dimensions broadcast.
trace: (m, n) gives a tensor without dimensions.
diag: (n,) gives a square matrix of size n + |diagonal|; a matrix gives the vector of its diagonal.
diff: the size along `dim` becomes smaller by `n`.
logcumsumexp, renorm, gradient, scatter_reduce, index_reduce, polygamma: the result has the shape of `input`.
trapezoid: the shape of `y` without `dim`.
cumulative_trapezoid: the size along `dim` becomes smaller by 1.
cov, corrcoef: (m, n) becomes (m, m); a vector gives a tensor without dimensions.
dist: both broadcast; the result has no dimensions.
cross: the tensors broadcast, and have size 3 along `dim`.
tensordot: the dimensions of `a` and then those of `b` that are not summed over.
inner: (..., k) and (..., k) give the leading dimensions of the first and then those of the second.
kron: sizes are multiplied, dimension by dimension from the last.
mse_loss: both broadcast; "mean" and "sum" give a tensor without dimensions, "none" the broadcast shape.
view_as_real: (...) becomes (..., 2).
view_as_complex: (..., 2) becomes (...).
gather: the result has the shape of `index`, which has as many dimensions as `input`.
take: the result has the shape of `index`.
index_select: the size along `dim` becomes the number of indices.
masked_select: `input` and `mask` broadcast; the result is a vector.
take_along_dim: `input` and `indices` broadcast except along `dim`; the result has the broadcast shape of `indices`.
sort: values and indices have the shape of `input`.
cummax, cummin: values and indices have the shape of `input`.
topk: the size along `dim` becomes `k`.
reshape, view: the result has as many elements as `input`.
view_as, reshape_as: the result has the shape of `other`, which has as many elements.
expand_as: `input` broadcasts to the shape of `other`.
squeeze: the dimensions of size 1 are removed; others stay.
unsqueeze: one more dimension, of size 1.
permute, transpose, movedim: the sizes move with their dimensions.
t: (m, n) becomes (n, m).
expand, broadcast_to: `input` broadcasts to `size`.
sum_to_size: `size` broadcasts to the shape of `input`.
kthvalue, mode: the shape of `input` without `dim`, or with size 1 there where `keepdim` is true.
""")

RETURNS = table("""
sort, topk, kthvalue, mode, cummax, cummin: a named pair (values, indices); the values are differentiable, the indices are int64.
max, min, median, nanmedian: a tensor; with `dim` a named pair (values, indices), where the indices are int64.
aminmax: a named pair (min, max) of tensors.
var_mean, std_mean: a pair of tensors.
tensor_split, hsplit, vsplit, dsplit: a tuple of views of `input`.
split, split_with_sizes, chunk, unbind: a tuple of views of `input`, none of which may be written in place.
meshgrid, gradient: a tuple of tensors.
atleast_1d, atleast_2d, atleast_3d: a tensor for one tensor, a tuple for several.
ravel, reshape, reshape_as, flatten: a view of `input` where the strides allow it, else a copy.
select, narrow, view_as, expand_as, adjoint: a view of `input`, which shares its memory.
real: a view of a complex `input`; a real one itself.
imag: a view of `input`.
conj, resolve_conj: a tensor; a real `input` itself.
positive: the input itself.
isclose: a new boolean tensor, which has no gradient.
argsort: a new tensor of int64, which has no gradient.
""")

RAISES = table("""
view, view_as: RuntimeError where the strides do not allow a view, or the number of elements differs.
reshape, reshape_as, unflatten: RuntimeError where the number of elements differs.
expand, expand_as, broadcast_to: RuntimeError where `input` does not broadcast to that shape.
sum_to_size: RuntimeError where that shape does not broadcast to that of `input`.
mm, mv, dot, matmul, bmm, addmm, addmv, addr, baddbmm, tensordot, inner, outer: RuntimeError where the sizes do not fit.
einsum: RuntimeError for an equation that does not fit the operands.
cat, hstack, vstack, dstack, column_stack, stack: RuntimeError where the shapes do not fit, or there is no tensor.
gather, take, index_select, scatter, scatter_add, scatter_reduce, take_along_dim: IndexError or RuntimeError for a position out of range.
index_add, index_copy, index_fill, index_put, index_reduce: IndexError or RuntimeError for a position out of range.
select, select_scatter, narrow, narrow_copy: IndexError or RuntimeError for a position out of range.
topk, kthvalue: RuntimeError for a `k` out of range.
floor_divide, remainder, fmod: RuntimeError where integers are divided by 0.
cross: RuntimeError where there is no dimension of size 3.
inverse, det, slogdet, logdet, cholesky, cholesky_solve, cholesky_inverse: RuntimeError for a matrix that is not square.
matrix_power, matrix_exp: RuntimeError for a matrix that is not square.
svd, qr, pinverse, nuclear_norm, lu, lu_unpack, triangular_solve, geqrf, orgqr, ormqr: RuntimeError for tensors that are no matrices.
chain_matmul, vdot, addbmm, vander, lu_solve: RuntimeError for shapes that do not fit.
trace, diag, t, cov, corrcoef: RuntimeError for a tensor with too many dimensions.
chunk, split, split_with_sizes, tensor_split, hsplit, vsplit, dsplit: RuntimeError for sizes or numbers of pieces that do not fit.
imag: RuntimeError for a real `input`.
view_as_real: RuntimeError for a real `input`.
view_as_complex: RuntimeError where the last dimension has not size 2.
mse_loss: ValueError for another `reduction`.
unfold: RuntimeError for a window that does not fit.
quantile, nanquantile: RuntimeError for ranks outside of [0, 1], for another interpolation, and where there are no elements.
trapezoid, cumulative_trapezoid, renorm, gradient: RuntimeError for arguments that do not fit the input.
argmax, argmin, max, min, amax, amin, aminmax, median, nanmedian, mode: RuntimeError or IndexError where there is no element to choose from.
""")


DTYPES = table("""
clamp, clamp_min, clamp_max: the dtypes of `input` and the bounds are promoted to one, floats for a float bound; complex numbers raise TypeError.
fmod: the dtypes are promoted to one; complex numbers raise TypeError.
where, index_put: the dtypes of what is combined are promoted to one.
isclose: both tensors have one dtype; the result is bool.
take_along_dim: the result has the dtype of `input`; `indices` are integers.
imag, view_as_real: complex64 gives float32, complex128 gives float64.
view_as_complex: float32 gives complex64, float64 gives complex128; others raise RuntimeError.
complex, polar: both arguments have one dtype; float32 gives complex64, float64 gives complex128; others raise RuntimeError.
""")


def described(op: Op, name: str) -> str | None:
    """The sentence for a parameter, None if there is none; an entry for the op takes precedence."""
    return PARAMETERS.get(f"{op.name}.{name}") or PARAMETERS.get(name)


def _shapes(op: Op, signature: Signature) -> str:
    if op.name in SHAPES:
        return SHAPES[op.name]
    names = op.argument_names
    if op.kind == "elementwise":
        return f"the result has the shape of `{names[0]}`." if len(names) == 1 else f"{_listed(names)} broadcast; the result has the broadcast shape."
    if "keepdim" in signature.parameters:
        scalar = signature.parameters["dim"].default is None
        return ("the shape of `input` without the reduced dimensions, or with size 1 there where `keepdim` is true"
                + ("; without `dim` no dimensions are left." if scalar else "."))
    return ""


def _dtypes(op: Op, measured: str) -> str:
    """The dtypes: from the table, else as measured, else as an elementwise op declares them."""
    if op.name in DTYPES:
        return DTYPES[op.name]
    if op.kind != "elementwise":
        return measured
    declared = "integers stay integers." if op.numerics.integers else "integers are converted to the default dtype."
    return (measured or declared) + " Arguments of different dtypes are promoted to one." * (len(op.argument_names) > 1)


def _returns(op: Op) -> str:
    if op.name in RETURNS:
        return RETURNS[op.name]
    if op.view == "many":
        return "a tuple of views, none of which may be written."
    if op.view:
        return f"a view of `{op.argument_names[0]}`, which shares its memory."
    return "a new tensor" + (", differentiable to every order." if op.differentiable else ", which has no gradient.")


def _raises(op: Op, signature: Signature) -> str:
    found = [RAISES[op.name]] if op.name in RAISES else []
    if op.kind == "elementwise" and len(op.argument_names) > 1:
        found.append("RuntimeError for shapes that do not broadcast.")
    if "dim" in signature.parameters:
        found.append("IndexError for a `dim` out of range.")
    if op.arity is not None:
        found.append("TypeError for arguments of another kind.")
    return " ".join(found)


def _declared(op: Op, name: str) -> str:
    """The sentence for a parameter of an op that has no entries in the tables."""
    return "a tensor or a number." if name in op.argument_names else "a parameter of the rule, which is not differentiated."


def _listed(names: tuple[str, ...]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def documentation(op: Op, signature: Signature, dtypes: str = "", example: str = "") -> str:
    """The docstring of an op: value, parameters, shapes, dtypes, result, errors, kind, and an example with its output.

    `dtypes` and `example` are measured by running the op; without `dtypes` the declaration of an elementwise op is used.
    """
    lines = [op.docs.doc, ""]
    if signature.parameters:
        lines += ["Parameters:", *(f"    {name}: {(example and described(op, name)) or _declared(op, name)}" for name in signature.parameters)]
        if "dim" in signature.parameters or "keepdim" in signature.parameters:
            lines.append("`axis`, `keepdims` and `ddof` are accepted for `dim`, `keepdim` and `correction`.")
    sections = {"Shapes": _shapes(op, signature), "Dtypes": _dtypes(op, dtypes), "Returns": _returns(op), "Raises": _raises(op, signature)}
    lines += ["", *(f"{title}: {text}" for title, text in sections.items() if text)]
    domains = [f"{name} in {domain!r}" for name, domain in zip(op.argument_names, op.domain) if domain.name not in ("REAL", "FIXED")]
    lines.append(f"Kind: {op.kind}." + (f" Domain: {', '.join(domains)}." if domains else ""))
    return "\n".join([*lines, "", example] if example else lines)


def stored() -> dict[str, str]:
    """The docstrings of the public ops by name, from `documentation.txt`."""
    if not os.path.exists(STORE):
        return {}
    with open(STORE, encoding="utf-8") as file:
        return dict(part.rstrip("\n").split("\n", 1) for part in file.read().split(MARK)[1:])
