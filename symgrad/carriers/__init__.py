"""Carriers: the namespaces `xp` with which a rule can be computed. All of them have exactly the names in `PROTOCOL`.

`numeric` computes with NumPy values, `traced` with Tensors (so that the rule's result can be differentiated again),
`symbolic` with SymPy expressions and `precise` with many-digit floats. A carrier never falls through to a library's namespace:
a name that is not in the protocol is an error in the rule.
"""

from symgrad.carriers.special import SPECIAL_FUNCTIONS

CONVOLUTIONS = ("convolve", "convolve_input", "convolve_weight")
MATRIX_WORDS = ("matrix_inverse", "solve_system", "solve_triangle", "cholesky_factor", "determinant", "log_abs_det", "sign_of_det",
                "hermitian_eigenvalues", "hermitian_eigenvectors", "eigenvalue_gaps", "singular_values", "singular_vectors", "pseudo_inverse",
                "qr_factors", "matrix_exponential", "eigenvalues", "eigenvectors", "ldl_factors", "regular", "row_exchanges", "hermitian_matrix",
                "order_of_rows", "triangular_factors", "cofactors", "cofactors_along", "log_det_slope")
# The modules of the numeric carrier that are imported when one of these functions is first computed
LATER = {"special.table": SPECIAL_FUNCTIONS, "matrices": MATRIX_WORDS, "convolving": CONVOLUTIONS, "resampling": ("resample",)}

ELEMENTWISE = (
    "add", "sub", "mul", "div", "neg", "indicator",
    "abs", "sign", "exp", "exp2", "exp2_derivative", "expm1", "log", "log2", "log10", "log_derivative", "log1p", "sqrt", "rsqrt",
    "square", "reciprocal",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sech", "sech_square", "asinh", "acosh", "atanh",
    "sigmoid", "sigmoid_slope", "logsigmoid", "softplus", "relu", "sinc_derivative", "one_minus_square", "floor", "ceil", "round", "trunc",
    "pow", "atan2", "hypot", "direction", "logaddexp", "maximum", "minimum", "where", "remainder", "fmod", "floor_divide",
    "conj",
    "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "isfinite", "isnan", "isinf",
    *SPECIAL_FUNCTIONS,
)

STRUCTURE = (
    "copy", "sum", "prod", "amax", "amin", "cumsum", "cumprod", "logsumexp", "softmax", "log_softmax", "reference", "centred", "norm", "all", "any",
    "argmax", "argmin",
    "reshape", "view", "permute", "broadcast_to", "sum_to_size", "getitem", "place", "put", "cat", "stack", "flip", "roll",
    "matmul", "mm", "mv", "dot", "einsum", "diag", "diagonal_place", "trace", "tril", "triu", "astype",
    "diagonal", "unfold", "view_as_real", "view_as_complex", "dft", "zeros_like", "ones_like", "eye_like", "strided", "strided_put", "strided_add",
    "batch", "unbatch",
    *CONVOLUTIONS, "resample", *MATRIX_WORDS,
)

PROTOCOL = frozenset(ELEMENTWISE + STRUCTURE)
