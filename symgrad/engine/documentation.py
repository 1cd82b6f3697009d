"""Docstrings of ops, generated from their declarations and from tables of sentences.

`python -m symgrad.stubs` runs the examples and writes the docstrings of the public ops, with outputs and dtypes, to `documentation.txt`;
`import symgrad` only reads that file.
"""

from __future__ import annotations

from inspect import Signature
from pathlib import Path

from symgrad.graph.op import Op

__all__ = ["MARK", "STORE", "described", "documentation", "stored"]

STORE = Path(__file__).with_name("documentation.txt")
MARK = "\f"  # precedes the name of each op in that file


def _table(text: str) -> dict[str, str]:
    """Lines of names and a sentence: "name, name: sentence"."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        names, _, sentence = line.partition(": ")
        for name in names.split(", "):
            if name in found:
                raise ValueError(f"documentation: {name} has two entries in a table; remove one")
            found[name] = sentence
    return found


PARAMETERS = _table("""
input: the tensor that is operated on.
other: the second operand, a tensor or a number.
dim: the dimension; negative ones count from the last.
keepdim: whether reduced dimensions are kept with size 1.
dtype: the dtype to which the input is converted first; None keeps it.
alpha: the number by which the second term is multiplied.
beta: the number by which `input` is multiplied.
index: the positions along `dim`, a tensor of integers.
tensors: the tensors.
value: the number, or tensor without dimensions, that is written.
offset: the diagonal: 0 is the main one, positive ones are above it.
dim1: the first dimension of the matrices that have the diagonal.
dim2: the second dimension of these matrices.
src: the tensor whose elements are written.
source: the tensor whose slices are written.
mask: a boolean tensor.
correction: the divisor is n - correction for n elements; None is 1.
unbiased: True is correction 1, False is correction 0.
min: the lower bound, a number or a tensor, or None.
max: the upper bound, a number or a tensor, or None.
exponent: the exponent, a tensor or a number.
diagonal: the diagonal: 0 is the main one, positive ones are above it, negative ones below.
indices_or_sections: the number of pieces, or the positions at which to split.
descending: whether the largest element comes first.
stable: accepted as in torch; sorting is always stable.
shape: the sizes of the result, as integers or one sequence; one of them may be -1.
mat1: the left matrix of the product.
mat2: the right factor of the product.
mat: the matrix of the product.
vec: the vector of the product.
vec1: the left vector of the outer product.
vec2: the right vector of the outer product.
batch1: the left matrices of the products.
batch2: the right matrices of the products.
tensor1: the first factor, or the dividend.
tensor2: the second factor, or the divisor.
indices: the positions, a tensor of integers.
real: the real parts.
imag: the imaginary parts.
abs: the absolute values.
angle: the angles in radians.
q: the ranks, from 0 to 1: a number, or a vector of them.
interpolation: between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
y: the samples.
x: the points of the samples; None if they are at equal distances.
dx: the distance of the samples; None is 1.
fweights: how often each observation was made, a vector of integers; None is once.
aweights: the weights of the observations, a vector; None is equal ones.
maxnorm: the largest norm that a slice may have.
spacing: the distance of the elements: one number, or for each dimension a number or a vector of coordinates.
edge_order: 1 or 2, the order of the one-sided differences at the ends.
repeat.repeats: the number of repetitions along each dimension; additional numbers add leading dimensions.
repeat_interleave.repeats: the number of repetitions, one for all elements or one for each.
repeat_interleave.dim: the dimension along which slices are repeated; None takes the flattened input.
repeat_interleave.output_size: the size of the result along `dim`, if known.
tile.dims: the number of repetitions along each of the last dimensions.
rot90.k: the number of quarter turns; negative ones turn backwards.
rot90.dims: the plane: two dimensions.
topk.k: the number of elements.
topk.largest: whether to return the largest elements or the smallest.
topk.sorted: accepted as in torch; the elements are always sorted.
kthvalue.k: the rank of the element, counted from 1.
tensordot.a: the first factor.
tensordot.b: the second factor.
tensordot.dims: the number of dimensions to sum over, or two lists of dimensions.
permute.dims: the new order of the dimensions.
flip.dims: the dimensions along which the order is reversed.
roll.shifts: the number of positions to shift by, one for all dimensions or one for each.
roll.dims: the dimensions; None shifts the flattened input.
transpose.dim0: one dimension.
transpose.dim1: the other dimension.
movedim.source: the dimensions to move.
movedim.destination: the new position of each.
masked_scatter.source: the tensor whose elements are written in order.
unfold.dimension: the dimension along which windows are taken.
unfold.size: the size of a window.
unfold.step: the distance between the starts of two windows.
expand.size, broadcast_to.size: the sizes of the result; -1 keeps one.
sum_to_size.size: the sizes of the result.
select.index, select_scatter.index: the index of the slice, an integer; negative ones count from the last.
select_scatter.src, slice_scatter.src: the tensor that replaces the slices.
diagonal_scatter.src: the tensor that replaces the diagonal.
gather.index, scatter.index, scatter_add.index: for each element, its position along `dim`: a tensor of integers.
scatter.value: the number that is written instead of elements of `src`.
take.index: positions in the flattened input, a tensor of integers.
index_add.index, index_copy.index, index_fill.index, index_select.index: positions along `dim`, a vector of integers.
index_add.alpha: the number by which `source` is multiplied.
index_put.indices: a tuple with a tensor of integers or booleans for each of the first dimensions.
index_put.values: the values, broadcast to the positions.
index_put.accumulate: whether values are added to the old elements.
take_along_dim.dim: the dimension along which elements are taken; None takes the flattened input.
gather.sparse_grad: accepted as in torch; gradients are dense.
narrow.start, narrow_copy.start: the first slice.
narrow.length, narrow_copy.length: the number of slices.
slice_scatter.start: the first slice; None is 0.
slice_scatter.end: the slice after the last; None is the end.
slice_scatter.step: the distance between two slices.
split.tensor: the tensor to cut.
split.split_size_or_sections: the size of every piece, or a list of sizes.
split_with_sizes.split_sizes: the sizes of the pieces.
chunk.chunks: the largest number of pieces.
unflatten.sizes: the new sizes; one of them may be -1.
flatten.start_dim: the first dimension to merge.
flatten.end_dim: the last dimension to merge.
stack.dim: the position of the new dimension.
unsqueeze.dim: the position of the new dimension; negative ones count from the end of the result.
squeeze.dim: the dimension, or a tuple of them; None is all dimensions of size 1.
softmax.dim, log_softmax.dim: the dimension along which the exponentials sum to 1; None chooses it by the number of dimensions (deprecated in torch).
cross.dim: the dimension of size 3; None is the first such.
sum.dim, mean.dim, prod.dim, amax.dim, amin.dim, all.dim, any.dim: the dimension, or a tuple of them; None is all of them.
var.dim, std.dim, var_mean.dim, std_mean.dim, norm.dim, logsumexp.dim: the dimension, or a tuple of them; None is all of them.
max.dim, min.dim, aminmax.dim, argmax.dim, argmin.dim, median.dim, nanmedian.dim: the dimension; None takes the flattened input.
max.input, min.input: the tensor that is reduced; a second tensor may follow it.
norm.p: the order of the norm: a number, inf, -inf or "fro".
div.rounding_mode: None, "floor" or "trunc".
isclose.rtol: the relative tolerance.
isclose.atol: the absolute tolerance.
isclose.equal_nan: whether NaN is close to NaN.
where.condition: a boolean tensor.
where.input: the values where the condition is true, a tensor or a number.
where.other: the values where it is false, a tensor or a number.
meshgrid.indexing: "ij" for matrix indexing, "xy" exchanges the first two dimensions of the grid.
combinations.r: the size of the sets.
combinations.with_replacement: whether an element may be repeated.
einsum.equation: the subscripts of the operands, separated by commas, then "->" and the subscripts of the result.
einsum.operands: the factors.
lerp.end: the value at weight 1.
lerp.weight: the weight, a tensor or a number.
addcmul.value, addcdiv.value: the number by which the second term is multiplied.
nan_to_num.nan: the replacement of NaN; None is 0.
nan_to_num.posinf: the replacement of inf; None is the largest number of the dtype.
mvlgamma.p: the dimension, an integer from 1.
polygamma.n: the order of the derivative, an integer from 0.
logit.eps: the distance from 0 and 1 to which the input is clamped; None clamps nothing.
nan_to_num.neginf: the replacement of -inf; None is the smallest number of the dtype.
dist.p, renorm.p: the exponent of the norm.
diff.n: the order of the differences.
chebyshev_polynomial_t.n, chebyshev_polynomial_u.n, chebyshev_polynomial_v.n, chebyshev_polynomial_w.n: the degree, a whole number.
shifted_chebyshev_polynomial_t.n, shifted_chebyshev_polynomial_u.n, shifted_chebyshev_polynomial_v.n: the degree, a whole number.
shifted_chebyshev_polynomial_w.n, hermite_polynomial_h.n, hermite_polynomial_he.n, legendre_polynomial_p.n: the degree, a whole number.
laguerre_polynomial_l.n: the degree, a whole number.
jv.order, yv.order, iv.order, kv.order: the order, a number without gradient.
diff.prepend: a tensor joined before the input along `dim`, or None.
diff.append: a tensor joined after the input along `dim`, or None.
softplus.beta: the number β of log(1 + exp(βx)) / β.
softplus.threshold: accepted as in torch; it has no effect.
threshold.threshold: the number above which the input is kept.
threshold.value: the number that replaces the others.
hardshrink.lambd: the largest absolute value that becomes 0.
celu.alpha: the negative limit of the values, and the scale of the exponential.
prelu.weight: the slope for negative numbers, one, or one for each channel.
round.decimals: the number of decimal digits, negative for those before the point.
heaviside.values: the values where the input is 0.
ldexp.other: the exponents.
mse_loss.target: the tensor to compare the input with.
mse_loss.reduction: "mean", "sum" or "none".
cholesky.upper, cholesky_solve.upper, cholesky_inverse.upper: whether the factor is the upper triangle.
cholesky_solve.B: the right-hand sides, in columns.
cholesky_solve.L, cholesky_inverse.L: the Cholesky factor.
clone.memory_format: the order of the elements in memory, such as `symgrad.contiguous_format`; None keeps that of the input.
""")

SHAPES = _table("""
clamp, clamp_min, clamp_max, addcmul, addcdiv, lerp, float_power, fmod: the tensors broadcast; the result has the broadcast shape.
isclose, where, masked_fill, heaviside, xlogy, xlog1py, fmax, fmin, logaddexp2, ldexp: the tensors broadcast; the result has the broadcast shape.
sinc, entr, mvlgamma, positive, nan_to_num, real, imag, conj, resolve_conj, angle, sgn: the result has the shape of `input`.
celu, selu, prelu, threshold, hardshrink, deg2rad, rad2deg: the result has the shape of `input`.
bessel_j0, bessel_j1, bessel_y0, bessel_y1, i0, i1, i0e, i1e, jv, yv, iv, kv, modified_bessel_i0: the result has the shape of `input`.
modified_bessel_i1, modified_bessel_k0, modified_bessel_k1, scaled_modified_bessel_k0: the result has the shape of `input`.
chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w: the result has the shape of `input`.
shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_v: the result has the shape of `input`.
shifted_chebyshev_polynomial_w, hermite_polynomial_h, hermite_polynomial_he, legendre_polynomial_p: the result has the shape of `input`.
laguerre_polynomial_l: the result has the shape of `input`.
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
cholesky_solve: (..., n, k) and (..., n, n) give (..., n, k), where leading dimensions broadcast.
trace: (m, n) gives a tensor without dimensions.
diag: (n,) gives a square matrix of size n + |diagonal|; a matrix gives the vector of its diagonal.
diff: the size along `dim` becomes smaller by `n`.
logcumsumexp, renorm, gradient: the result has the shape of `input`.
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

RETURNS = _table("""
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

RAISES = _table("""
view, view_as: RuntimeError where the strides do not allow a view, or the number of elements differs.
reshape, reshape_as, unflatten: RuntimeError where the number of elements differs.
expand, expand_as, broadcast_to: RuntimeError where `input` does not broadcast to that shape.
sum_to_size: RuntimeError where that shape does not broadcast to that of `input`.
mm, mv, dot, matmul, bmm, addmm, addmv, addr, baddbmm, tensordot, inner, outer: RuntimeError where the sizes do not fit.
einsum: RuntimeError for an equation that does not fit the operands.
cat, hstack, vstack, dstack, column_stack, stack: RuntimeError where the shapes do not fit, or there is no tensor.
gather, take, index_select, scatter, scatter_add, take_along_dim: IndexError or RuntimeError for a position out of range.
index_add, index_copy, index_fill, index_put: IndexError or RuntimeError for a position out of range.
select, select_scatter, narrow, narrow_copy: IndexError or RuntimeError for a position out of range.
topk, kthvalue: RuntimeError for a `k` out of range.
floor_divide, remainder, fmod: RuntimeError where integers are divided by 0.
cross: RuntimeError where there is no dimension of size 3.
inverse, det, slogdet, logdet, cholesky, cholesky_solve, cholesky_inverse: RuntimeError for a matrix that is not square.
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


DTYPES = _table("""
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
    declared = "integers stay integers." if op.integers else "integers are converted to the default dtype."
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
    lines = [op.doc, ""]
    if signature.parameters:
        lines += ["Parameters:", *(f"    {name}: {(example and described(op, name)) or _declared(op, name)}" for name in signature.parameters)]
        if "dim" in signature.parameters or "keepdim" in signature.parameters:
            lines.append("`axis`, `keepdims` and `ddof` are accepted for `dim`, `keepdim` and `correction`.")
    sections = {"Shapes": _shapes(op, signature), "Dtypes": _dtypes(op, dtypes), "Returns": _returns(op), "Raises": _raises(op, signature)}
    lines += ["", *(f"{title}: {text}" for title, text in sections.items() if text)]
    domains = [f"{name} in {domain!r}" for name, domain in zip(op.argument_names, op.domain) if domain.name != "REAL"]
    lines.append(f"Kind: {op.kind}." + (f" Domain: {', '.join(domains)}." if domains else ""))
    return "\n".join([*lines, "", example] if example else lines)


def stored() -> dict[str, str]:
    """The docstrings of the public ops by name, from `documentation.txt`."""
    text = STORE.read_text(encoding="utf-8") if STORE.exists() else ""
    return dict(part.rstrip("\n").split("\n", 1) for part in text.split(MARK)[1:])
