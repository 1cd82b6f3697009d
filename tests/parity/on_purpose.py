"""Where an answer differs from torch's on purpose: one row for each reason, with the answer that is intended instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from .compare import Different, compare
from .database import RANDOM, UNSET, Call, pair
from .intended import (
    Functions,
    as_a_constant,
    at_a_pole,
    at_zero,
    both_routes,
    by_differences,
    by_scipy,
    consistent,
    finite,
    goes_into_out,
    has_no_elements,
    in_common_dtype,
    in_double,
    in_wide,
    is_converted,
    is_of_nothing,
    is_refused,
    is_refused_empty,
    is_refused_or_wider,
    is_right_into_out,
    keeps_its_shape,
    least_subgradient,
    limited,
    of_contiguous,
    overflows,
    picks,
    picks_of_integers,
    takes_no_out,
    ties_share,
    up_to_turns,
    well_enough,
    with_double_weights,
    without_threshold,
)
from .readings import (
    as_read,
    as_read_without_threshold,
    by_python,
    does_not_require_grad,
    in_another_order,
    in_double_structure,
    in_double_without_threshold,
    in_int64,
    inside_of_domain,
    named_by_its_class,
    one_at_zero,
    promoted_as_a_sum,
    sign_of_nan,
    solves,
    solves_nothing,
    unshuffled,
    with_a_column,
    with_no_sizes,
    without_a_factor,
    without_truth,
)


class Row(NamedTuple):
    """A difference: the names of functions and what differs (regular expressions of the whole text), why, and a check of the intended answer."""

    names: str
    what: str
    reason: str
    intended: Callable[[Call, Functions], None]
    drawn: bool = False  # of drawn calls only, which have several mistakes at once


LIMITED = "torch computes it with fewer digits than the dtype has"
LAX = "laxer than torch: "
WRONG = "torch's derivative is wrong, by its own values"
TABLE = [
    Row(r"special\.bessel_[jy][01]", r"value: .*", LIMITED, by_scipy),
    Row(r"nn\.functional\.hardsigmoid|logcumsumexp", r"(gradient|forward): .*", LIMITED, limited),
    Row(r"cholesky_inverse", r"forward: .*", LIMITED, by_differences),
    Row(r"native_(batch|layer|group)_norm", r"forward: .*", WRONG, by_differences),
    Row(r"nn\.functional\.linear_cross_entropy", r"(forward|second gradient): .*", WRONG, by_differences),
    Row(r"cov", r"(value|forward|gradient|second gradient|value structure): .*", LIMITED + ": the weights stay in float32", with_double_weights),
    Row(r"orgqr|linalg\.householder_product", r"(gradient|second gradient): .*", LIMITED, both_routes),
    Row(r"native_layer_norm", r"second gradient: .*", WRONG, consistent, True),
    Row(r"nn\.functional\.softplus", r"(value|gradient|second gradient|forward): .*", "softplus is exact everywhere, so the threshold has no effect",
        without_threshold),
    Row(r"as_strided_scatter", r"gradient: .*", WRONG, by_differences),
    Row(r"scatter_reduce", r"forward: .*", WRONG, by_differences),
    Row(r"topk|kthvalue|mode|sort", r"value: number 1: .*", "torch does not say which of equal elements it picks", picks),
    Row(r"logcumsumexp", r"value: .*", "the imaginary part of a logarithm is determined up to whole turns", up_to_turns),
    Row(r"logcumsumexp", r"forward: .*nan.*", WRONG, by_differences),
    Row(r"(special\.)?logsumexp|logcumsumexp", r"second gradient: .*", LIMITED + ": of one element the second derivative is 0", finite),
    Row(r"(linalg\.)?norm", r"gradient: .*", "kinks have the minimum-norm subgradient: the gradient of a norm at 0 is 0", at_zero),
    Row(r"linalg\.(vector_)?norm", r"second gradient: .*nan.*", "derivatives at a kink are those of the minimum-norm subgradient, and not NaN",
        finite),
    Row(f"({'|'.join(map(re.escape, RANDOM - {'lobpcg'}))})_?", r"accepted: .*(derivative for|automatic differentiation|not implemented for).*",
        "torch has no kernel for this dtype, or no derivative; of drawn numbers only the shape is determined", in_double_structure, True),
    Row(r"nn\.functional\.softplus", r"accepted: .*not implemented for.*", "torch has no kernel for this dtype", in_double_without_threshold, True),
    Row(r"linalg\.eig", r"value: .*", "the order of eigenvalues is not determined", in_another_order, True),
    Row(r"linalg\.cholesky_ex", r"value: .*ours is nan.*", "a matrix that is not positive definite has no factor", without_a_factor, True),
    Row(r"linalg\.lstsq", r"accepted: .*must match the size of tensor.*", "a batch of 0 broadcasts as any other", solves_nothing, True),
    Row(r"nn\.functional\.scaled_dot_product_attention", r"second gradient: .*", LIMITED, in_wide, True),
    Row(r"nn\.functional\.soft_margin_loss", r"(value|gradient): .*torch has (inf|nan).*", LIMITED + ": its exponential overflows", in_wide, True),
    Row(r".*loss", r"accepted: .*could not infer output dtype.*", "numbers are not cut to integers", in_double, True),
    Row(r".*", r"accepted: .*Autograd not support dtype.*", "a result of integers is a constant", as_a_constant, True),
    Row(r"sign", r"accepted: .*must be Tensor.*", "the sign of NaN is NaN, as in NumPy", sign_of_nan, True),
    Row(r"std|var|std_mean|var_mean", r"(value structure|accepted): .*", "True is no dimension", without_truth, True),
    Row(r"sym_\w+", r"(accepted|error): .*", LAX + "values of other types are taken, too", by_python, True),
    Row(r"kthvalue|mode", r"accepted: .*not implemented for .*Bool.*", "booleans are ordered, too", picks_of_integers, True),
    Row(r"(nn\.functional\.)?avg_pool[123]d", r"accepted: .*not implemented for .*(Byte|Char|Short|Int)\b.*", "every dtype of integers has a mean",
        in_int64, True),
    Row(r"(lstm|gru)(_cell)?", r"accepted: .*can't be cast to the desired output type.*", "torch writes the gates of integers in place", in_double,
        True),
    Row(r"lstm|gru|rnn_(tanh|relu)", r"refused: .*Expected hidden.*", "torch broadcasts states to other numbers of sequences than the input has",
        is_refused, True),
    Row(r"affine_grid_generator", r"refused: .*floating point type.*", "points are not cut to integers", is_refused, True),
    Row(r"(nn\.functional\.)?conv\w*", r"refused: .*Input type .* and bias type .*", "torch checks the bias in some convolutions only", is_refused,
        True),
    Row(r"grid_sampler(_[23]d)?", r"refused: .*expected (interpolation|padding)_mode.*", "torch reads memory that is not its own in other modes",
        is_refused, True),
    Row(r"lobpcg", r"(accepted|error): .*", LAX + "values of other types are taken, too", solves, True),
    Row(r"special\.airy_ai", r"accepted: torch raises TypeError.*must be Tensor.*", LIMITED, by_scipy, True),
    Row(r"nn\.functional\.softplus", r"accepted: torch raises TypeError.*", "a number or a list is taken for a tensor",
        as_read_without_threshold, True),
    Row(r".*", r"(accepted|error): torch raises TypeError\(.*(must be (Tensor|tuple of Tensors), not \w+|invalid combination of arguments - got|"
        r"expected Tensor as element).*", "a number or a list is taken for a tensor", as_read),
    Row(r".*", r"(accepted|error): torch raises AttributeError.*object has no attribute.*", "a number or a list is taken for a tensor", as_read,
        True),
    Row(r".*", r"accepted: torch raises RuntimeError.*(support automatic differentiation|is not differentiable with respect to|derivative for).*",
        "every op has a derivative by all arguments and for all dtypes", by_differences, True),
    Row(r".*", r"accepted: torch raises (NotImplementedError|RuntimeError).*(not implemented for|not support(ed)?|only supports?).*",
        "torch has no kernel for this dtype", in_double),
    Row(r".*", r"accepted: torch raises RuntimeError.*(expected scalar type|the same dtype|Found dtype).*", "operands are promoted",
        in_common_dtype, True),
    Row(r"fft\..*|stft|istft", r"accepted: torch raises RuntimeError.*(MKL FFT error|possibly 0 batch size).*", "a transform of nothing is nothing",
        has_no_elements, True),
    Row(r".*", r"accepted: torch raises TypeError.*(must be|to only contain|expected) .*",
        LAX + "functions outside of the registry take what Python takes", as_read, True),
    Row(r".*", r"accepted: torch raises TypeError.*missing 1 required positional.*",
        LAX + "sizes can be given one by one, also none", with_no_sizes, True),
    Row(r"typename", r"value structure: .*", "a class has the name of its own module", named_by_its_class, True),
    Row(r"special\.airy_ai", r"value: .*", LIMITED, by_scipy, True),
    Row(r"complex|polar|view_as_complex\w*", r"(value structure|refused): .*", "NumPy has no complex numbers of 32 bits", is_refused_or_wider, True),
    Row(r"special\..*polynomial.*", r"value: .*torch has nan.*", "torch takes the difference of two infinite numbers", overflows, True),
    Row(r"(nan)?median", r"value: .*", "torch sorts expanded memory in place", of_contiguous, True),
    Row(r"sub|subtract|add", r"refused: .*too many positional.*", "a deprecated order of arguments", is_refused, True),
    Row(r"cummin|cummax", r"refused: .*complex numbers are not ordered.*", "complex numbers are not ordered, also where there is only one",
        is_refused, True),
    Row(r"nuclear_norm|linalg\.(matrix_)?norm", r"gradient: .*", "kinks have the minimum-norm subgradient", least_subgradient, True),
    Row(r"take_along_dim|view_as_complex|kron|native_(group|layer)_norm|as_strided", r"accepted: .*(stride|contiguous).*",
        "the layout of an operand has no effect", of_contiguous, True),
    Row(r"nn\.functional\.scaled_dot_product_attention", r"refused: .*(probabilit).*", "probabilities are numbers from 0 to 1", is_refused, True),
    Row(r"nn\.functional\.multilabel_soft_margin_loss", r"(refused|error): .*more dimensions than the input.*",
        "torch takes the mean over a dimension that is not that of the classes", is_refused, True),
    Row(r"(nn\.functional\.)?hardtanh_?", r"refused: .*cannot be greater.*", "torch checks this argument in nn.functional only", is_refused, True),
    Row(r"embedding", r"refused: .*Padding_idx.*", "torch checks this argument in nn.functional only", is_refused, True),
    Row(r"fft\.rfftfreq|take_along_dim", r"refused: .*", "sizes are not negative, and indices are in bounds", is_refused, True),
    Row(r"as_strided_scatter", r"refused: .*out of bounds for storage.*", "torch writes beyond the memory", is_refused, True),
    Row(r"binomial", r"refused: .*counts are at least 0.*", "torch draws numbers for negative counts", is_refused, True),
    Row(r".*loss.*|kl_div|binary_cross_entropy_with_logits", r"refused: .*(not a valid value for reduction|must be the same as input size|"
        r"should have same dimension).*", "torch checks this argument in nn.functional only", is_refused, True),
    Row(r"(native_)?\w+_norm", r"refused: .*should contain.*", "torch does not check it", is_refused, True),
    Row(r"\w*view\w*_copy", r"refused: .*view size.*", "a copy of a view is refused where the view is", is_refused, True),
    Row(r"result_type", r"value structure: .*", "dtypes promote in the order of torch's own sums", promoted_as_a_sum, True),
    Row(r"addmv", r"value structure: .*", "torch does not broadcast without elements", with_a_column, True),
    Row(r"(nn\.functional\.)?(native_)?(feature_)?(alpha_)?dropout([123]d)?_?", r"value structure: .*", "numbers are not cut to integers",
        in_double_structure, True),
    Row(r"(nn\.functional\.)?(addcmul|softsign|hinge_embedding_loss|(instance|batch|rms)_norm|trapz|(cumulative_)?trapezoid|margin_ranking_loss|threshold_?|"
        r"binary_cross_entropy_with_logits)|einsum|linalg\.solve_triangular",
        r"value( structure)?: .*", "numbers are not cut to integers and do not wrap around, and mixed dtypes promote", in_double, True),
    Row(r"(nn\.functional\.)?threshold_?", r"accepted: .*cannot be converted to type.*", "numbers do not wrap around to the dtype", in_double, True),
    Row(r".*", r"accepted: .*INTERNAL ASSERT FAILED.*", "torch fails at an assertion of its own", by_differences, True),
    Row(r"native_\w+_norm", r"value: .*", "torch reads a weight's memory without its strides", of_contiguous, True),
    Row(r"pixel_unshuffle|nn\.functional\.pixel_unshuffle", r"value structure: .*", "the shape of nothing is that of the formula", unshuffled,
        True),
    Row(r"(special\.)?logsumexp|logcumsumexp|index_reduce|scatter_reduce|(linalg\.)?matrix_exp", r"(value|gradient|second gradient): .*", LIMITED,
        in_wide, True),
    Row(r"cholesky_inverse", r"gradient: .*", "a matrix of no condition has no digits", well_enough, True),
    Row(r"(nn\.functional\.)?(native_)?(feature_)?(alpha_)?dropout([123]d)?_?", r"accepted: .*", "numbers are not cut to integers",
        in_double_structure, True),
    Row(r"cov|index_\w+|where|range|linalg\.vecdot|(nn\.functional\.)?(bilinear|cosine_similarity|(instance|batch|group|rms)_norm|linear|"
        r"native_\w+_norm|embedding_bag|binary_cross_entropy_with_logits|gumbel_softmax|\w*dropout\w*)",
        r"accepted: .*", LAX + "dtypes that differ are promoted", in_double, True),
    Row(r"threshold_|nn\.functional\.threshold_", r"refused: .*can't be cast.*", "a number that the dtype cannot hold is refused", is_refused, True),
    Row(r"(\w+\.)*(clamp\w*|clip_?|maximum|minimum|fmax|fmin|max|min)", r"(gradient|second gradient): .*",
        "ties share the gradient equally", ties_share, True),
    Row(r"float_power|pow", r"value: .*", "0 to the power 0 is 1", one_at_zero, True),
    Row(r"special\.(log_ndtr|polygamma|bessel_\w+)|polygamma", r"second gradient: .*", LIMITED, consistent, True),
    Row(r"special\.(log_ndtr|polygamma|bessel_\w+)|polygamma", r"value: .*", LIMITED, in_wide, True),
    Row(r"max|min|maximum|minimum", r"value structure: .*", "a number does not widen a tensor", as_read, True),
    Row(r"lu_solve|embedding_renorm_|nn\.functional\.(gaussian_nll|soft_margin|multilabel_soft_margin)_loss",
        r"accepted: .*", LAX + "dtypes that differ are promoted", in_double, True),
    Row(r"cartesian_prod|feature_\w+|broadcast_shapes", r"accepted: .*", LAX + "the function has an answer for this call, too", as_read, True),
    Row(r".*", r"accepted: .*iteration over a 0-d.*", LAX + "sizes may be given in more ways", as_read, True),
    Row(r".*", r"accepted: .*mixed dtype.*", LAX + "dtypes may be mixed", in_double, True),
    Row(r".*", r"accepted: .*takes 1 positional argument but 2 were given.*", "the second argument of a ufunc is out, as in NumPy", goes_into_out,
        True),
    Row(r"rand|roll|squeeze_copy|histc|lu_unpack|masked_fill|lobpcg|native_batch_norm", r"refused: .*",
        "the argument has one form, no tensor", is_refused, True),
    Row(r"asarray", r"requires_grad: .*", "a new tensor does not require grad", does_not_require_grad, True),
    Row(r"special\.gammainc\w*|igammac?", r"gradient: .*ours is nan.*", "an order of 0 or less is outside of the domain", inside_of_domain, True),
    Row(r"(nan)?mean|var(_mean)?|std(_mean)?|nn\.functional\.\w+_loss", r"second gradient: .*ours is nan.*", "the mean of nothing has no derivative",
        is_of_nothing, True),
    Row(r".*", r"(gradient|second gradient): .*torch has \(?[-+]?inf.*ours is \(?nan.*", "a complex pole has no direction", at_a_pole, True),
    Row(r".*", r"(gradient|second gradient): .*torch has \(?nan.*", "derivatives are numbers, at kinks, too", finite, True),
    Row(r"gather|complex|aminmax|multinomial", r"accepted: .*", "every function converts its result to the dtype of out, if that has the same kind",
        is_converted),
    Row(r"group_norm|narrow_copy|polar|arange|nn\.functional\.linear_cross_entropy", r"error: .*",
        "torch's type of exception follows from the order of its checks", is_refused),
    Row(r"nn\.functional\.(gelu|softshrink|linear)|native_batch_norm|histogram|hash_tensor|nonzero|nonzero_static",
        r"refused: ours raises TypeError.*'out'.*", "torch does not document out for it", takes_no_out),
    Row(r"addbmm", r"refused: .*cannot grow.*", "torch gives a tensor that is written in place another shape", keeps_its_shape),
    Row(r"fft\.ihfft[2n]", r"value structure: .*", "torch does not resize out", is_right_into_out),
    Row(r"nn\.functional\.local_response_norm", r"refused: .*Input dtype must be.*", "a mean of integers is refused, as by mean()", is_refused),
    Row(r"linalg\.pinv", r"error: .*", "torch's type of exception follows from the order of its checks", is_refused),
    Row(r"special\..*polynomial.*", r"refused: .*a whole number, or a tensor.*", "a degree is whole; torch cuts the fraction off", is_refused),
    Row(r".*", r"error: torch raises .*", "torch's type of exception follows from the order of its checks", is_refused, True),
    Row(r".*", r"refused: .*", "a call without elements is checked as any other", is_refused_empty, True),
]


def intended(name: str, difference: Different, call: Call, functions: Functions, drawn: bool = False) -> Row:
    """The row of the table for a difference, after a check of the intended answer. Raises the difference if there is none."""
    for row in TABLE:
        if row.drawn <= drawn and re.fullmatch(row.names, name) and re.fullmatch(row.what, str(difference), re.DOTALL):
            try:
                row.intended(call, functions)
            except AssertionError as wrong:
                raise difference from wrong
            return row
    raise difference


def draws(name: str, call: Call) -> Any:
    """Whether this call draws numbers: an attention that drops weights, or a pool without samples."""
    return call.kwargs.get("dropout_p") or name.startswith("nn.functional.fractional") and len(call.args) < 6 or (
        name == "nn.functional.multi_head_attention_forward" and any(call.args[10:11]) and call.kwargs.get("training", True))


def compared(name: str, call: Call, functions: Functions | None = None, drawn: bool = False, **options: Any) -> Any:
    """The comparison of one call; the intended answer stands in the table where it differs."""
    functions = functions or pair(name)
    try:
        return compare(call, functions, value=name.removesuffix("_") not in RANDOM | UNSET and not draws(name, call), **options)
    except Different as difference:
        difference.add_note(f"of {name}{call}")
        return intended(name, difference, call, functions, drawn)
