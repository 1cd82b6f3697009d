"""symgrad: numbers, formulas and proofs in one differentiable graph, behind PyTorch's names."""

import importlib as _importlib
import math as _math
import sys as _sys
from typing import Any

if "-m" in (_program := getattr(_sys, "argv", [])[:1]) or "symgrad" in "".join(_program):  # the command line may start: interrupts end it from now on
    from symgrad.reports import process as _process

    _process.begin()

import numpy as _numpy

from symgrad import autograd, random
from symgrad.autograd import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from symgrad.compat import legacy as _legacy
from symgrad.compat import storage as _storage
from symgrad.compat.absent import missing as _missing
from symgrad.compat.legacy import TYPES as _TYPES
from symgrad.compat.legacy import set_default_tensor_type
from symgrad.compat.modules import DEVICES as _DEVICES
from symgrad.compat.modules import types
from symgrad.compat.settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled,
    set_anomaly_enabled,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_warn_always,
    sym_float,
    sym_int,
    sym_ite,
    sym_max,
    sym_min,
    sym_not,
    sym_sqrt,
    sym_sum,
    use_deterministic_algorithms,
)
from symgrad.compat.storage import STORAGES as _STORAGES
from symgrad.compat.storage import TypedStorage, UntypedStorage, is_storage
from symgrad.dtypes.dtype import DTYPES as _DTYPES
from symgrad.dtypes.dtype import DType as dtype
from symgrad.dtypes.dtype import finfo, get_default_dtype, iinfo, set_default_dtype
from symgrad.dtypes.promotion import can_cast, promote_types
from symgrad.engine.tensor import Size, Tensor
from symgrad.engine.traced import FUNCTIONS as _FUNCTIONS
from symgrad.factories import creation as _creation
from symgrad.factories.creation import (
    arange,
    as_tensor,
    asarray,
    empty,
    empty_like,
    empty_permuted,
    empty_strided,
    eye,
    from_numpy,
    frombuffer,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    range,
    scalar_tensor,
    symbols,
    tril_indices,
    triu_indices,
    zeros,
    zeros_like,
)
from symgrad.factories.exchange import from_dlpack, from_file, to_dlpack
from symgrad.factories.windows import bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window
from symgrad.graph import return_types
from symgrad.layouts.devices import FORMATS as _FORMATS
from symgrad.layouts.devices import LAYOUTS as _LAYOUTS
from symgrad.layouts.devices import device, get_default_device, layout, memory_format, set_default_device
from symgrad.methods import counting as _counting
from symgrad.methods.assemble import assemble as _assemble
from symgrad.methods.counting import (
    bincount,
    bucketize,
    count_nonzero,
    frexp,
    histc,
    isin,
    isneginf,
    isposinf,
    isreal,
    nextafter,
    nonzero,
    searchsorted,
    signbit,
    unique,
    unique_consecutive,
)
from symgrad.methods.extending import elementwise, linear, multilinear, primitive
from symgrad.methods.integers import (
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    gcd,
    lcm,
)
from symgrad.methods.predicates import (
    allclose,
    broadcast_shapes,
    broadcast_tensors,
    equal,
    is_complex,
    is_conj,
    is_floating_point,
    is_inference,
    is_nonzero,
    is_same_size,
    is_tensor,
    numel,
    result_type,
    typename,
)
from symgrad.methods.printing import get_printoptions, set_printoptions
from symgrad.methods.surface import METHODS_AS_FUNCTIONS as _METHODS_AS_FUNCTIONS
from symgrad.methods.surface import SURFACE as _SURFACE
from symgrad.methods.surface import method_as_function as _method_as_function
from symgrad.public import METHODS as _METHODS
from symgrad.public import tensor
from symgrad.random import (
    Generator,
    _standard_gamma,
    bernoulli,
    binomial,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    poisson,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)

__version__ = "0.1.0"

# glibc gives the memory of freed arrays back and asks for it again, page by page, until it has seen one large block come and go: arrays of some
# kilobytes cost twice as much until then. Nothing is written to this one.
_numpy.empty(2**25 - 2**14, _numpy.uint8)

inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None

where = _counting.where  # called with a condition alone it gives indices, as no op does

float64 = double = _DTYPES["float64"]
float32 = float = _DTYPES["float32"]
float16 = half = _DTYPES["float16"]
bfloat16 = _DTYPES["bfloat16"]
complex128 = cdouble = _DTYPES["complex128"]
complex64 = cfloat = _DTYPES["complex64"]
int64 = long = _DTYPES["int64"]
int32 = int = _DTYPES["int32"]
int16 = short = _DTYPES["int16"]
int8, uint8, bool = _DTYPES["int8"], _DTYPES["uint8"], _DTYPES["bool"]
uint16, uint32, uint64 = _DTYPES["uint16"], _DTYPES["uint32"], _DTYPES["uint64"]
strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc = _LAYOUTS.values()
contiguous_format, preserve_format, channels_last, channels_last_3d = _FORMATS.values()
DoubleTensor, FloatTensor, HalfTensor, BFloat16Tensor = (_TYPES[f"{word}Tensor"] for word in ("Double", "Float", "Half", "BFloat16"))
LongTensor, IntTensor, ShortTensor, CharTensor = (_TYPES[f"{word}Tensor"] for word in ("Long", "Int", "Short", "Char"))
ByteTensor, BoolTensor = _TYPES["ByteTensor"], _TYPES["BoolTensor"]
Storage = TypedStorage
DoubleStorage, FloatStorage, HalfStorage, BFloat16Storage = (_STORAGES[f"{word}Storage"] for word in ("Double", "Float", "Half", "BFloat16"))
LongStorage, IntStorage, ShortStorage, CharStorage = (_STORAGES[f"{word}Storage"] for word in ("Long", "Int", "Short", "Char"))
ByteStorage, BoolStorage = _STORAGES["ByteStorage"], _STORAGES["BoolStorage"]
ComplexFloatStorage, ComplexDoubleStorage = _STORAGES["ComplexFloatStorage"], _STORAGES["ComplexDoubleStorage"]

# Imported when they are first asked for: parts of the package, and functions by the module they are in.
_LAZY = ("distributed", "fft", "func", "linalg", "nn", "optim", "sparse", "special", "testing", "utils", "visual")
_LATER = {
    "check": "checks",
    "compile": "compiled.function",
    "Report": "reports.report",
    "Unrecordable": "carriers.duck",
    "accuracy": "scanning",
    "example": "frameworks.examples",
    "explain_nan": "diagnose.nans",
    "from_sympy": "symbolic.conversion",
    "identical": "algebra.identity",
    "kinks": "diagnose.kinks.kinks",
    "load": "utils.serialization",
    "map": "utils.mapping",
    "matrix_expr": "matrixcalc",
    "matrix_gradient": "matrixcalc",
    "matrix_hessian": "matrixcalc",
    "op_from_sympy": "symbolic.operations",
    "prove": "proofs.prove",
    "save": "utils.serialization",
    "to_c": "codegen.sources",
    "to_dot": "codegen.pictures",
    "to_jax": "codegen.sources",
    "to_latex": "codegen.printers",
    "to_python": "codegen.sources",
    "to_scipy": "optim.problems",
    "to_sympy": "symbolic.tracing",
    "to_torch": "codegen.sources",
    "vmap": "func",
}

for _module, _names in {
    "nn.functional": """
        adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
        cosine_similarity max_pool1d max_pool1d_with_indices max_pool2d max_pool3d native_channel_shuffle pairwise_distance pdist pixel_shuffle
        pixel_unshuffle rms_norm selu_ threshold_""",
    "nn.native": """
        adaptive_max_pool1d alpha_dropout alpha_dropout_ batch_norm binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dropout dropout_
        embedding feature_alpha_dropout feature_alpha_dropout_ feature_dropout_ group_norm hinge_embedding_loss instance_norm kl_div layer_norm
        margin_ranking_loss poisson_nll_loss rrelu rrelu_ triplet_margin_loss""",
    "nn.sampling": "affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d",
    "nn.normalization": "native_batch_norm native_group_norm native_layer_norm norm_except_dim",
    "nn.dropout": "feature_dropout native_dropout", "nn.distances": "cdist", "nn.padding": "constant_pad_nd", "nn.convolution": "convolution",
    "nn.products": "embedding_renorm_", "nn.recurrent": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
}.items():
    _LATER |= dict.fromkeys(_names.split(), _module)
_LATER |= dict.fromkeys(("lobpcg", "pca_lowrank", "svd_lowrank"), "linalg")

_assemble(_METHODS, _legacy.METHODS, _storage.METHODS)
globals().update(_DEVICES, **_SURFACE)


__all__ = sorted({name for name in globals() if name[0] != "_" and name != "Any"} | {*_FUNCTIONS, *_METHODS_AS_FUNCTIONS})  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS or name in _METHODS_AS_FUNCTIONS:
        found = globals()[name] = _FUNCTIONS[name] if name in _FUNCTIONS else _method_as_function(name)
        return found
    if name in _LAZY:
        return _importlib.import_module(f"symgrad.{name}")
    if name in _LATER:
        return getattr(_importlib.import_module(f"symgrad.{_LATER[name]}"), name)
    raise _missing(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_LAZY, *_LATER})
