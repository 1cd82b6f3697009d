"""What the parameters of ops mean, as sentences for their docstrings."""

from __future__ import annotations

__all__ = ["PARAMETERS", "table"]


def table(text: str) -> dict[str, str]:
    """Lines of names and a sentence: "name, name: sentence"."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        names, _, sentence = line.partition(": ")
        for name in names.split(", "):
            if name in found:
                raise ValueError(f"documentation: {name} has two entries in a table; remove one")
            found[name] = sentence
    return found


PARAMETERS = table("""
input: the tensor that is operated on.
phi: the angle in radians, a tensor or a number.
m: the parameter, the square of the modulus, a tensor or a number.
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
view.size: the sizes of the result, as integers or one sequence; one of them may be -1.
sum_to_size.size: the sizes of the result.
select.index, select_scatter.index: the index of the slice, an integer; negative ones count from the last.
select_scatter.src, slice_scatter.src: the tensor that replaces the slices.
diagonal_scatter.src: the tensor that replaces the diagonal.
gather.index, scatter.index, scatter_add.index, scatter_reduce.index: for each element, its position along `dim`: a tensor of integers.
scatter.value: the number that is written instead of elements of `src`.
take.index: positions in the flattened input, a tensor of integers.
index_add.index, index_copy.index, index_fill.index, index_reduce.index, index_select.index: positions along `dim`, a vector of integers.
scatter_reduce.src, index_reduce.source: the tensor whose elements are reduced.
scatter.reduce: "add" or "multiply", to combine elements of `src` with those of the input; None replaces them.
scatter_reduce.reduce: "sum", "prod", "mean", "amax" or "amin".
index_reduce.reduce: "prod", "mean", "amax" or "amin".
scatter_reduce.include_self, index_reduce.include_self: whether the element of the input is one of those that are reduced.
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
norm.p: the order of the norm: a number, inf, -inf, "fro" or "nuc".
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
matrix_power.n: the number of factors; a negative one takes the inverse.
svd.some: whether U and V have only as many columns as the smaller side.
svd.compute_uv: whether U and V are computed; they are zero otherwise.
qr.some: whether Q has only as many columns as the smaller side.
pinverse.rcond: singular values below this part of the largest one count as zero.
chain_matmul.matrices: the factors.
frobenius_norm.dim: one or two dimensions.
nuclear_norm.dim: the two dimensions of the matrices.
vander.x: a vector.
vander.N: the number of powers; None is that of the elements.
vander.increasing: whether the powers ascend from 0.
geqrf.input: the matrix.
orgqr.input, ormqr.input: the vectors of the reflections, in columns below the diagonal.
orgqr.tau, ormqr.tau: the factors of the reflections.
ormqr.other: the matrix that is multiplied.
ormqr.left, ormqr.transpose: the side of Q in the product, and whether it is Qᴴ.
triangular_solve.b, lu_solve.b: the right-hand sides, in columns.
triangular_solve.A: the triangular matrix.
triangular_solve.upper: whether the upper triangle is read.
triangular_solve.transpose: whether the equation has Aᵀ.
triangular_solve.unitriangular: whether the diagonal counts as ones.
lu.A: the matrix.
lu.pivot: accepted as in torch; rows are always exchanged.
lu.get_infos: whether to return the position of the first zero on the diagonal of U, too.
lu_unpack.LU_data, lu_solve.LU_data: L below U in one array.
lu_unpack.LU_pivots, lu_solve.LU_pivots: the row with which each row was exchanged, from 1.
lu_unpack.unpack_data, lu_unpack.unpack_pivots: whether to return L and U, and P.
clone.memory_format: the order of the elements in memory, such as `symgrad.contiguous_format`; None keeps that of the input.
""")
