"""The public face, with every function of the registry. Written by `python -m tests.stubs`; edit that, not this."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from symgrad import autograd as autograd
from symgrad import distributed as distributed
from symgrad import fft as fft
from symgrad import func as func
from symgrad import linalg as linalg
from symgrad import nn as nn
from symgrad import optim as optim
from symgrad import random as random
from symgrad import sparse as sparse
from symgrad import special as special
from symgrad import testing as testing
from symgrad import utils as utils
from symgrad import visual as visual
from symgrad.algebra.identity import identical as identical
from symgrad.autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from symgrad.autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from symgrad.autograd.modes import enable_grad as enable_grad
from symgrad.autograd.modes import inference_mode as inference_mode
from symgrad.autograd.modes import is_grad_enabled as is_grad_enabled
from symgrad.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from symgrad.autograd.modes import no_grad as no_grad
from symgrad.autograd.modes import set_grad_enabled as set_grad_enabled
from symgrad.carriers.duck import Unrecordable as Unrecordable
from symgrad.checks import check as check
from symgrad.codegen.printers import to_dot as to_dot
from symgrad.codegen.printers import to_latex as to_latex
from symgrad.codegen.sources import to_c as to_c
from symgrad.codegen.sources import to_jax as to_jax
from symgrad.codegen.sources import to_python as to_python
from symgrad.codegen.sources import to_torch as to_torch
from symgrad.compat.legacy import set_default_tensor_type as set_default_tensor_type
from symgrad.compat.members import get_device as get_device
from symgrad.compat.members import is_distributed as is_distributed
from symgrad.compat.settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from symgrad.compat.settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from symgrad.compat.settings import get_float32_matmul_precision as get_float32_matmul_precision
from symgrad.compat.settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from symgrad.compat.settings import is_warn_always_enabled as is_warn_always_enabled
from symgrad.compat.settings import set_anomaly_enabled as set_anomaly_enabled
from symgrad.compat.settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from symgrad.compat.settings import set_float32_matmul_precision as set_float32_matmul_precision
from symgrad.compat.settings import set_flush_denormal as set_flush_denormal
from symgrad.compat.settings import set_warn_always as set_warn_always
from symgrad.compat.settings import sym_float as sym_float
from symgrad.compat.settings import sym_int as sym_int
from symgrad.compat.settings import sym_ite as sym_ite
from symgrad.compat.settings import sym_max as sym_max
from symgrad.compat.settings import sym_min as sym_min
from symgrad.compat.settings import sym_not as sym_not
from symgrad.compat.settings import sym_sqrt as sym_sqrt
from symgrad.compat.settings import sym_sum as sym_sum
from symgrad.compat.settings import use_deterministic_algorithms as use_deterministic_algorithms
from symgrad.compat.storage import TypedStorage as Storage
from symgrad.compat.storage import TypedStorage as TypedStorage
from symgrad.compat.storage import UntypedStorage as UntypedStorage
from symgrad.compat.storage import is_storage as is_storage
from symgrad.compiled.function import compile as compile
from symgrad.diagnose.kinks.kinks import kinks as kinks
from symgrad.diagnose.nans import explain_nan as explain_nan
from symgrad.dtypes.dtype import DType
from symgrad.dtypes.dtype import DType as dtype
from symgrad.dtypes.dtype import can_cast as can_cast
from symgrad.dtypes.dtype import finfo as finfo
from symgrad.dtypes.dtype import get_default_dtype as get_default_dtype
from symgrad.dtypes.dtype import iinfo as iinfo
from symgrad.dtypes.dtype import promote_types as promote_types
from symgrad.dtypes.dtype import set_default_dtype as set_default_dtype
from symgrad.engine.storage.copyslices import detach_ as detach_
from symgrad.engine.tensor import Extreme, Integers, Number, TensorLike
from symgrad.engine.tensor import Size as Size
from symgrad.engine.tensor import Tensor as Tensor
from symgrad.factories.creation import as_tensor as as_tensor
from symgrad.factories.creation import asarray as asarray
from symgrad.factories.creation import from_numpy as from_numpy
from symgrad.factories.creation import frombuffer as frombuffer
from symgrad.factories.creation import symbols as symbols
from symgrad.factories.exchange import from_dlpack as from_dlpack
from symgrad.factories.exchange import from_file as from_file
from symgrad.factories.exchange import to_dlpack as to_dlpack
from symgrad.factories.generators import Generator as Generator
from symgrad.factories.generators import get_rng_state as get_rng_state
from symgrad.factories.generators import initial_seed as initial_seed
from symgrad.factories.generators import manual_seed as manual_seed
from symgrad.factories.generators import seed as seed
from symgrad.factories.generators import set_rng_state as set_rng_state
from symgrad.factories.random_tensors import bernoulli as bernoulli
from symgrad.factories.random_tensors import binomial as binomial
from symgrad.factories.random_tensors import multinomial as multinomial
from symgrad.factories.random_tensors import normal as normal
from symgrad.factories.random_tensors import poisson as poisson
from symgrad.factories.windows import bartlett_window as bartlett_window
from symgrad.factories.windows import blackman_window as blackman_window
from symgrad.factories.windows import hamming_window as hamming_window
from symgrad.factories.windows import hann_window as hann_window
from symgrad.factories.windows import kaiser_window as kaiser_window
from symgrad.frameworks.calling import example as example
from symgrad.func import vmap as vmap
from symgrad.layouts.devices import device as device
from symgrad.layouts.devices import get_default_device as get_default_device
from symgrad.layouts.devices import layout as layout
from symgrad.layouts.devices import memory_format as memory_format
from symgrad.layouts.devices import set_default_device as set_default_device
from symgrad.linalg import lobpcg as lobpcg
from symgrad.linalg import pca_lowrank as pca_lowrank
from symgrad.linalg import svd_lowrank as svd_lowrank
from symgrad.matrixcalc import matrix_expr as matrix_expr
from symgrad.matrixcalc import matrix_gradient as matrix_gradient
from symgrad.matrixcalc import matrix_hessian as matrix_hessian
from symgrad.methods.counting import bincount as bincount
from symgrad.methods.counting import bitwise_not as bitwise_not
from symgrad.methods.counting import bucketize as bucketize
from symgrad.methods.counting import count_nonzero as count_nonzero
from symgrad.methods.counting import frexp as frexp
from symgrad.methods.counting import histc as histc
from symgrad.methods.counting import isin as isin
from symgrad.methods.counting import isneginf as isneginf
from symgrad.methods.counting import isposinf as isposinf
from symgrad.methods.counting import isreal as isreal
from symgrad.methods.counting import nextafter as nextafter
from symgrad.methods.counting import nonzero as nonzero
from symgrad.methods.counting import searchsorted as searchsorted
from symgrad.methods.counting import signbit as signbit
from symgrad.methods.counting import unique as unique
from symgrad.methods.counting import unique_consecutive as unique_consecutive
from symgrad.methods.counting import where as where
from symgrad.methods.extending import elementwise as elementwise
from symgrad.methods.extending import linear as linear
from symgrad.methods.extending import multilinear as multilinear
from symgrad.methods.extending import primitive as primitive
from symgrad.methods.filling import hash_tensor as hash_tensor
from symgrad.methods.filling import slice_inverse as slice_inverse
from symgrad.methods.histograms import histogram as histogram
from symgrad.methods.histograms import histogramdd as histogramdd
from symgrad.methods.histograms import segment_reduce as segment_reduce
from symgrad.methods.inplace import fill_ as fill_
from symgrad.methods.inplace import zero_ as zero_
from symgrad.methods.layout import is_neg as is_neg
from symgrad.methods.layout import is_signed as is_signed
from symgrad.methods.predicates import allclose as allclose
from symgrad.methods.predicates import broadcast_shapes as broadcast_shapes
from symgrad.methods.predicates import broadcast_tensors as broadcast_tensors
from symgrad.methods.predicates import equal as equal
from symgrad.methods.predicates import is_complex as is_complex
from symgrad.methods.predicates import is_conj as is_conj
from symgrad.methods.predicates import is_floating_point as is_floating_point
from symgrad.methods.predicates import is_inference as is_inference
from symgrad.methods.predicates import is_nonzero as is_nonzero
from symgrad.methods.predicates import is_same_size as is_same_size
from symgrad.methods.predicates import is_tensor as is_tensor
from symgrad.methods.predicates import numel as numel
from symgrad.methods.predicates import result_type as result_type
from symgrad.methods.predicates import typename as typename
from symgrad.methods.printing import get_printoptions as get_printoptions
from symgrad.methods.printing import set_printoptions as set_printoptions
from symgrad.methods.reshaping import as_strided as as_strided
from symgrad.methods.reshaping import as_strided_ as as_strided_
from symgrad.methods.reshaping import resize_as_ as resize_as_
from symgrad.methods.spectrograms import istft as istft
from symgrad.methods.spectrograms import stft as stft
from symgrad.methods.surface import alias_copy as alias_copy
from symgrad.methods.surface import argwhere as argwhere
from symgrad.methods.surface import as_strided_scatter as as_strided_scatter
from symgrad.methods.surface import detach as detach
from symgrad.methods.surface import fill as fill
from symgrad.methods.surface import nonzero_static as nonzero_static
from symgrad.methods.surface import put as put
from symgrad.methods.surface import slice_copy as slice_copy
from symgrad.methods.surface import unravel_index as unravel_index
from symgrad.nn.activations import feature_dropout as feature_dropout
from symgrad.nn.activations import native_dropout as native_dropout
from symgrad.nn.convolution import convolution as convolution
from symgrad.nn.functional import adaptive_avg_pool1d as adaptive_avg_pool1d
from symgrad.nn.functional import avg_pool1d as avg_pool1d
from symgrad.nn.functional import bilinear as bilinear
from symgrad.nn.functional import celu_ as celu_
from symgrad.nn.functional import channel_shuffle as channel_shuffle
from symgrad.nn.functional import conv1d as conv1d
from symgrad.nn.functional import conv2d as conv2d
from symgrad.nn.functional import conv3d as conv3d
from symgrad.nn.functional import conv_tbc as conv_tbc
from symgrad.nn.functional import conv_transpose1d as conv_transpose1d
from symgrad.nn.functional import conv_transpose2d as conv_transpose2d
from symgrad.nn.functional import conv_transpose3d as conv_transpose3d
from symgrad.nn.functional import cosine_similarity as cosine_similarity
from symgrad.nn.functional import max_pool1d as max_pool1d
from symgrad.nn.functional import max_pool1d_with_indices as max_pool1d_with_indices
from symgrad.nn.functional import max_pool2d as max_pool2d
from symgrad.nn.functional import max_pool3d as max_pool3d
from symgrad.nn.functional import native_channel_shuffle as native_channel_shuffle
from symgrad.nn.functional import pairwise_distance as pairwise_distance
from symgrad.nn.functional import pdist as pdist
from symgrad.nn.functional import pixel_shuffle as pixel_shuffle
from symgrad.nn.functional import pixel_unshuffle as pixel_unshuffle
from symgrad.nn.functional import rms_norm as rms_norm
from symgrad.nn.functional import selu_ as selu_
from symgrad.nn.functional import threshold_ as threshold_
from symgrad.nn.native import adaptive_max_pool1d as adaptive_max_pool1d
from symgrad.nn.native import alpha_dropout as alpha_dropout
from symgrad.nn.native import alpha_dropout_ as alpha_dropout_
from symgrad.nn.native import batch_norm as batch_norm
from symgrad.nn.native import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from symgrad.nn.native import cosine_embedding_loss as cosine_embedding_loss
from symgrad.nn.native import ctc_loss as ctc_loss
from symgrad.nn.native import dropout as dropout
from symgrad.nn.native import dropout_ as dropout_
from symgrad.nn.native import embedding as embedding
from symgrad.nn.native import feature_alpha_dropout as feature_alpha_dropout
from symgrad.nn.native import feature_alpha_dropout_ as feature_alpha_dropout_
from symgrad.nn.native import feature_dropout_ as feature_dropout_
from symgrad.nn.native import group_norm as group_norm
from symgrad.nn.native import hinge_embedding_loss as hinge_embedding_loss
from symgrad.nn.native import instance_norm as instance_norm
from symgrad.nn.native import kl_div as kl_div
from symgrad.nn.native import layer_norm as layer_norm
from symgrad.nn.native import margin_ranking_loss as margin_ranking_loss
from symgrad.nn.native import poisson_nll_loss as poisson_nll_loss
from symgrad.nn.native import rrelu as rrelu
from symgrad.nn.native import rrelu_ as rrelu_
from symgrad.nn.native import triplet_margin_loss as triplet_margin_loss
from symgrad.nn.normalization import native_batch_norm as native_batch_norm
from symgrad.nn.normalization import native_group_norm as native_group_norm
from symgrad.nn.normalization import native_layer_norm as native_layer_norm
from symgrad.nn.normalization import norm_except_dim as norm_except_dim
from symgrad.nn.padding import constant_pad_nd as constant_pad_nd
from symgrad.nn.products import cdist as cdist
from symgrad.nn.products import embedding_renorm_ as embedding_renorm_
from symgrad.nn.recurrent import gru as gru
from symgrad.nn.recurrent import gru_cell as gru_cell
from symgrad.nn.recurrent import lstm as lstm
from symgrad.nn.recurrent import lstm_cell as lstm_cell
from symgrad.nn.recurrent import rnn_relu as rnn_relu
from symgrad.nn.recurrent import rnn_relu_cell as rnn_relu_cell
from symgrad.nn.recurrent import rnn_tanh as rnn_tanh
from symgrad.nn.recurrent import rnn_tanh_cell as rnn_tanh_cell
from symgrad.nn.sampling import affine_grid_generator as affine_grid_generator
from symgrad.nn.sampling import grid_sampler as grid_sampler
from symgrad.nn.sampling import grid_sampler_2d as grid_sampler_2d
from symgrad.nn.sampling import grid_sampler_3d as grid_sampler_3d
from symgrad.optim.models import to_scipy as to_scipy
from symgrad.proofs.prove import prove as prove
from symgrad.public import tensor as tensor
from symgrad.reports.report import Report as Report
from symgrad.scanning import accuracy as accuracy
from symgrad.symbolic.conversion import from_sympy as from_sympy
from symgrad.symbolic.operations import op_from_sympy as op_from_sympy
from symgrad.symbolic.tracing import to_sympy as to_sympy
from symgrad.utils.mapping import map as map
from symgrad.utils.serialization import load as load
from symgrad.utils.serialization import save as save

__version__: str
def abs(input: TensorLike) -> Tensor:
    """|input|; the derivative at 0 is 0."""
def abs_(self: Tensor) -> Tensor: ...
def absolute(input: TensorLike) -> Tensor:
    """|input|; the derivative at 0 is 0."""
accelerator: Any
def acos(input: TensorLike) -> Tensor:
    """The inverse cosine. DLMF 4.23."""
def acos_(self: Tensor) -> Tensor: ...
def acosh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic cosine. DLMF 4.37."""
def acosh_(self: Tensor) -> Tensor: ...
def add(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """input + alpha * other."""
def addbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta * input + alpha * Σ batch1 @ batch2, the sum of a batch of matrix products."""
def addcdiv(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *, value: TensorLike = 1) -> Tensor:
    """input + value * tensor1 / tensor2."""
def addcmul(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *, value: TensorLike = 1) -> Tensor:
    """input + value * tensor1 * tensor2."""
def addmm(input: TensorLike, mat1: TensorLike, mat2: TensorLike, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), the input broadcast."""
def addmv(input: TensorLike, mat: TensorLike, vec: TensorLike, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec), the input broadcast."""
def addmv_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def addr(input: TensorLike, vec1: TensorLike, vec2: TensorLike, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2), the input broadcast."""
def adjoint(input: TensorLike) -> Tensor:
    """The last two dimensions exchanged, conjugated."""
def airy_ai(input: TensorLike) -> Tensor:
    """Airy's function Ai. Below -20 the value is SciPy's, which is 24,000 ULP off at -1,000. DLMF 9.2.2."""
def airy_ai_prime(input: TensorLike) -> Tensor:
    """The derivative Ai′ of Airy's function. Below -20 the value is SciPy's, which is 31,000 ULP off at -1,000. DLMF 9.2.1."""
@overload
def all(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """Whether all elements are true."""
@overload
def all(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all elements are true."""
@overload
def amax(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The largest value over `dim`, or over all elements; ties share the gradient equally."""
@overload
def amax(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest value over `dim`, or over all elements; ties share the gradient equally."""
@overload
def amin(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The smallest value over `dim`, or over all elements; ties share the gradient equally."""
@overload
def amin(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest value over `dim`, or over all elements; ties share the gradient equally."""
@overload
def aminmax(input: TensorLike, *, dim: Integers | None = None, keepdim: builtins.bool = False) -> tuple[Tensor, Tensor]:
    """The pair (min, max) over all elements, or along `dim`."""
@overload
def aminmax(input: TensorLike, *, axis: Integers | None = None, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]:
    """The pair (min, max) over all elements, or along `dim`."""
def angle(input: TensorLike) -> Tensor:
    """The angles of complex numbers; of real numbers 0, or π if negative. The derivative at 0 is 0."""
@overload
def any(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """Whether any element is true."""
@overload
def any(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether any element is true."""
def arange(start: Any = 0, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def arccos(input: TensorLike) -> Tensor:
    """The inverse cosine. DLMF 4.23."""
def arccos_(self: Tensor) -> Tensor: ...
def arccosh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic cosine. DLMF 4.37."""
def arccosh_(self: Tensor) -> Tensor: ...
def arcsin(input: TensorLike) -> Tensor:
    """The inverse sine. DLMF 4.23."""
def arcsin_(self: Tensor) -> Tensor: ...
def arcsinh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic sine. DLMF 4.37."""
def arcsinh_(self: Tensor) -> Tensor: ...
def arctan(input: TensorLike) -> Tensor:
    """The inverse tangent. DLMF 4.23."""
def arctan2(input: TensorLike, other: TensorLike) -> Tensor:
    """The angle of the point (other, input)."""
def arctan_(self: Tensor) -> Tensor: ...
def arctanh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic tangent. DLMF 4.37."""
def arctanh_(self: Tensor) -> Tensor: ...
@overload
def argmax(input: TensorLike, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The index of the first largest element along `dim`, or of the flattened input."""
@overload
def argmax(input: TensorLike, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first largest element along `dim`, or of the flattened input."""
@overload
def argmin(input: TensorLike, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The index of the first smallest element along `dim`, or of the flattened input."""
@overload
def argmin(input: TensorLike, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first smallest element along `dim`, or of the flattened input."""
@overload
def argsort(input: TensorLike, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False) -> Tensor:
    """The indices that sort the input along `dim`; equal elements stay in order."""
@overload
def argsort(input: TensorLike, axis: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False) -> Tensor:
    """The indices that sort the input along `dim`; equal elements stay in order."""
def as_strided_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def asin(input: TensorLike) -> Tensor:
    """The inverse sine. DLMF 4.23."""
def asin_(self: Tensor) -> Tensor: ...
def asinh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic sine. DLMF 4.37."""
def asinh_(self: Tensor) -> Tensor: ...
def atan(input: TensorLike) -> Tensor:
    """The inverse tangent. DLMF 4.23."""
def atan2(input: TensorLike, other: TensorLike) -> Tensor:
    """The angle of the point (other, input)."""
def atan_(self: Tensor) -> Tensor: ...
def atanh(input: TensorLike) -> Tensor:
    """The inverse hyperbolic tangent. DLMF 4.37."""
def atanh_(self: Tensor) -> Tensor: ...
def atleast_1d(*tensors: Sequence[TensorLike]) -> Any:
    """The tensors, where tensors of no dimensions become vectors of one element."""
def atleast_2d(*tensors: Sequence[TensorLike]) -> Any:
    """The tensors, where vectors become matrices of one row."""
def atleast_3d(*tensors: Sequence[TensorLike]) -> Any:
    """The tensors with at least three dimensions: (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1)."""
backends: Any
def baddbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2), a batch of matrix products, the input broadcast."""
def bessel_j0(input: TensorLike) -> Tensor:
    """The Bessel function J₀, accurate in every derivative. DLMF 10.2.2."""
def bessel_j1(input: TensorLike) -> Tensor:
    """The Bessel function J₁, accurate in every derivative. DLMF 10.2.2."""
def bessel_y0(input: TensorLike) -> Tensor:
    """The Bessel function Y₀, accurate in every derivative. DLMF 10.2.3."""
def bessel_y1(input: TensorLike) -> Tensor:
    """The Bessel function Y₁, accurate in every derivative. DLMF 10.2.3."""
def beta(input: TensorLike, other: TensorLike) -> Tensor:
    """The beta function Γ(input) Γ(other) / Γ(input + other) of positive numbers, without cancellation where one is large. DLMF 5.12.1."""
def betaln(input: TensorLike, other: TensorLike) -> Tensor:
    """The logarithm of the beta function Γ(input) Γ(other) / Γ(input + other) of positive numbers, without cancellation where one is large. DLMF 5.12.1."""
bfloat16: DType
def bitwise_and(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_left_shift(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_or(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_right_shift(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_xor(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor: ...
def block_diag(*tensors: Sequence[TensorLike]) -> Tensor:
    """The matrix with the given matrices along its diagonal, and zeros elsewhere; vectors are rows."""
def bmm(input: TensorLike, mat2: TensorLike) -> Tensor:
    """A batch of matrix products."""
bool: DType
def broadcast_to(input: TensorLike, *size: Integers) -> Tensor:
    """The input expanded along axes of size 1 and along new leading axes, without a copy."""
def cartesian_prod(*tensors: Sequence[TensorLike]) -> Tensor:
    """All tuples of one element of each vector, as rows."""
@overload
def cat(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
@overload
def cat(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
def cbrt(input: TensorLike) -> Tensor:
    """The real cube root, NumPy's name. The derivative at 0 is infinite."""
cdouble: DType
def ceil(input: TensorLike) -> Tensor:
    """The smallest integer not below the input; the derivative is 0."""
def ceil_(self: Tensor) -> Tensor: ...
def celu(input: TensorLike, alpha: Number = 1.0) -> Tensor:
    """The input where it is positive, else alpha (exp(input / alpha) - 1)."""
cfloat: DType
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices in the order with the fewest multiplications."""
def chebyshev_polynomial_t(input: TensorLike, n: builtins.int) -> Tensor:
    """Chebyshev polynomial t of degree n, a whole number or a tensor of them, at input; 0 for n < 0. DLMF 18.3."""
def chebyshev_polynomial_u(input: TensorLike, n: builtins.int) -> Tensor:
    """Chebyshev polynomial u of degree n, a whole number or a tensor of them, at input; 0 for n < 0. DLMF 18.3."""
def chebyshev_polynomial_v(input: TensorLike, n: builtins.int) -> Tensor:
    """Chebyshev polynomial v of degree n, a whole number or a tensor of them, at input; 0 for n < 0. DLMF 18.3."""
def chebyshev_polynomial_w(input: TensorLike, n: builtins.int) -> Tensor:
    """Chebyshev polynomial w of degree n, a whole number or a tensor of them, at input; 0 for n < 0. DLMF 18.3."""
def cholesky(input: TensorLike, upper: builtins.bool = False) -> Tensor:
    """The lower triangular factor L of a positive definite matrix L Lᴴ, or Lᴴ with `upper`. Raises RuntimeError for another matrix."""
def cholesky_inverse(L: TensorLike, upper: builtins.bool = False) -> Tensor:
    """The inverse of A for its Cholesky factor L, A = L Lᴴ, or A = Lᴴ L with `upper`."""
def cholesky_solve(B: TensorLike, L: TensorLike, upper: builtins.bool = False) -> Tensor:
    """The solution X of A X = B for the Cholesky factor L of A = L Lᴴ, or of A = Lᴴ L with `upper`."""
@overload
def chunk(input: TensorLike, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The input cut into at most `chunks` pieces along `dim`."""
@overload
def chunk(input: TensorLike, chunks: builtins.int, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The input cut into at most `chunks` pieces along `dim`."""
def clamp(input: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """The input limited to [min, max]; the derivative is 1 strictly inside and 0 elsewhere."""
def clamp_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def clamp_max(input: TensorLike, max: TensorLike | None) -> Tensor:
    """The smaller of the input and `max`; the derivative where `max` is smaller is 0."""
def clamp_max_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def clamp_min(input: TensorLike, min: TensorLike | None) -> Tensor:
    """The larger of the input and `min`; the derivative where `min` is larger is 0."""
def clamp_min_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def clip(input: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """The input limited to [min, max]; the derivative is 1 strictly inside and 0 elsewhere."""
def clip_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def clone(input: TensorLike, *, memory_format: Any = None) -> Tensor:
    """A differentiable copy, in the memory order of the input, or in that of `memory_format`."""
def column_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along their second dimension, vectors as columns."""
def combinations(input: TensorLike, r: builtins.int = 2, with_replacement: builtins.bool = False) -> Tensor:
    """All sets of `r` elements of a vector, as rows; with replacement also those that repeat an element."""
def complex(real: TensorLike, imag: TensorLike) -> Tensor:
    """The complex numbers with these real and imaginary parts."""
complex128: DType
complex64: DType
@overload
def concat(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
@overload
def concat(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
@overload
def concatenate(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
@overload
def concatenate(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors joined along an existing axis."""
def conj(input: TensorLike) -> Tensor:
    """The complex conjugates; real numbers are unchanged."""
def conj_physical(input: TensorLike) -> Tensor:
    """The complex conjugates; real numbers are unchanged."""
def conj_physical_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def copysign(input: TensorLike, other: TensorLike) -> Tensor:
    """|input| with the sign of `other`, which may be that of -0.0; the derivative at 0 is 0."""
def corrcoef(input: TensorLike) -> Tensor:
    """Pearson's correlations of the rows, which are variables."""
def cos(input: TensorLike) -> Tensor:
    """The cosine. DLMF 4.14."""
def cos_(self: Tensor) -> Tensor: ...
def cosh(input: TensorLike) -> Tensor:
    """The hyperbolic cosine. DLMF 4.28."""
def cosh_(self: Tensor) -> Tensor: ...
def cosine_integral(input: TensorLike) -> Tensor:
    """The cosine integral Ci, of positive numbers. DLMF 6.2.11."""
@overload
def cov(input: TensorLike, *, correction: Number = 1, fweights: TensorLike | None = None, aweights: TensorLike | None = None) -> Tensor:
    """The covariances of the rows, which are variables; columns are observations, with frequencies and weights."""
@overload
def cov(input: TensorLike, *, ddof: Number = 1, fweights: TensorLike | None = None, aweights: TensorLike | None = None) -> Tensor:
    """The covariances of the rows, which are variables; columns are observations, with frequencies and weights."""
cpu: Any
@overload
def cross(input: TensorLike, other: TensorLike, dim: Integers | None = None) -> Tensor:
    """The cross product along a dimension of size 3."""
@overload
def cross(input: TensorLike, other: TensorLike, axis: Integers | None = None) -> Tensor:
    """The cross product along a dimension of size 3."""
cuda: Any
@overload
def cummax(input: TensorLike, dim: builtins.int) -> Extreme:
    """The pair (values, indices) of the largest element so far along `dim`, at its last position."""
@overload
def cummax(input: TensorLike, axis: builtins.int) -> Extreme:
    """The pair (values, indices) of the largest element so far along `dim`, at its last position."""
@overload
def cummin(input: TensorLike, dim: builtins.int) -> Extreme:
    """The pair (values, indices) of the smallest element so far along `dim`, at its last position."""
@overload
def cummin(input: TensorLike, axis: builtins.int) -> Extreme:
    """The pair (values, indices) of the smallest element so far along `dim`, at its last position."""
@overload
def cumprod(input: TensorLike, dim: builtins.int, *, dtype: DType | type | None = None) -> Tensor:
    """The running product along `dim`; its derivatives are right also at zeros. Of up to 4,096 elements it has all its digits where a product of some of them overflows."""
@overload
def cumprod(input: TensorLike, axis: builtins.int, *, dtype: DType | type | None = None) -> Tensor:
    """The running product along `dim`; its derivatives are right also at zeros. Of up to 4,096 elements it has all its digits where a product of some of them overflows."""
@overload
def cumsum(input: TensorLike, dim: builtins.int, *, dtype: DType | type | None = None) -> Tensor:
    """The running sum along `dim`."""
@overload
def cumsum(input: TensorLike, axis: builtins.int, *, dtype: DType | type | None = None) -> Tensor:
    """The running sum along `dim`."""
@overload
def cumulative_trapezoid(y: TensorLike, x: TensorLike | None = None, *, dx: builtins.float | None = None, dim: builtins.int = -1) -> Tensor:
    """The running integral along `dim` by the trapezoidal rule, one element shorter than the samples."""
@overload
def cumulative_trapezoid(y: TensorLike, x: TensorLike | None = None, *, dx: builtins.float | None = None, axis: builtins.int = -1) -> Tensor:
    """The running integral along `dim` by the trapezoidal rule, one element shorter than the samples."""
def deg2rad(input: TensorLike) -> Tensor:
    """Degrees as radians: input π / 180."""
def deg2rad_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def det(input: TensorLike) -> Tensor:
    """The determinant of a square matrix."""
def detach_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def diag(input: TensorLike, diagonal: builtins.int = 0) -> Tensor:
    """A matrix's diagonal as a vector, or a vector as a diagonal matrix."""
def diag_embed(input: TensorLike, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
    """Zeros with the last dimension of the input on a diagonal of two new ones: the transpose of `diagonal`."""
def diagflat(input: TensorLike, offset: builtins.int = 0) -> Tensor:
    """The matrix with all elements of the input on a diagonal."""
def diagonal(input: TensorLike, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
    """The diagonal of two dimensions as a new last dimension: a view."""
def diagonal_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def diagonal_scatter(input: TensorLike, src: TensorLike, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
    """A copy of the input with `src` on a diagonal."""
@overload
def diff(input: TensorLike, n: builtins.int = 1, dim: builtins.int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None) -> Tensor:
    """The `n`-th differences along `dim`, of the input joined with `prepend` and `append`."""
@overload
def diff(input: TensorLike, n: builtins.int = 1, axis: builtins.int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None) -> Tensor:
    """The `n`-th differences along `dim`, of the input joined with `prepend` and `append`."""
def digamma(input: TensorLike) -> Tensor:
    """The derivative of log Γ(input). SciPy's value loses digits next to negative zeros. DLMF 5.2.2."""
def dist(input: TensorLike, other: TensorLike, p: builtins.float | str = 2) -> Tensor:
    """The p-norm of the difference."""
def div(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, rounded to an integer if `rounding_mode` is 'floor' or 'trunc' (towards zero); integers divide to floats unless it is."""
def divide(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, rounded to an integer if `rounding_mode` is 'floor' or 'trunc' (towards zero); integers divide to floats unless it is."""
def dot(input: TensorLike, other: TensorLike) -> Tensor:
    """The inner product of two vectors, without conjugation."""
double: DType
def dsplit(input: TensorLike, indices_or_sections: Integers | Tensor) -> tuple[Tensor, ...]:
    """The pieces of a tensor along dimension 2: so many equal ones, or those between indices; views."""
def dstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along their third dimension."""
def einsum(equation: str, *operands: TensorLike | Sequence[TensorLike]) -> Tensor:
    """The sum of products with subscripts given by an equation (Einstein summation)."""
def ellipe(input: TensorLike) -> Tensor:
    """The complete elliptic integral of the second kind, for m = input <= 1. DLMF 19.2.8."""
def ellipeinc(phi: TensorLike, m: TensorLike) -> Tensor:
    """The incomplete elliptic integral of the second kind from 0 to phi, for m <= 1. DLMF 19.2.5."""
def ellipk(input: TensorLike) -> Tensor:
    """The complete elliptic integral of the first kind, for m = input < 1. DLMF 19.2.8."""
def ellipkinc(phi: TensorLike, m: TensorLike) -> Tensor:
    """The incomplete elliptic integral of the first kind from 0 to phi, for m <= 1. DLMF 19.2.4."""
def ellipkm1(input: TensorLike) -> Tensor:
    """ellipk(1 - input), with all digits of small arguments. DLMF 19.2.8."""
def empty(*sizes: Any, size: Any = None, memory_format: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def empty_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, memory_format: Any = None, symbol: str | None = None) -> Tensor: ...
def empty_permuted(size: Any, physical_layout: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def empty_strided(size: Any, stride: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def entr(input: TensorLike) -> Tensor:
    """-input log(input), 0 at 0, where the derivative is infinite, and -inf below."""
def eq(input: TensorLike, other: TensorLike) -> Tensor:
    """input == other, as booleans."""
def erf(input: TensorLike) -> Tensor:
    """The error function. DLMF 7.2.1."""
def erf_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def erfc(input: TensorLike) -> Tensor:
    """1 - erf(input), accurate for large arguments. DLMF 7.2.2."""
def erfc_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def erfcx(input: TensorLike) -> Tensor:
    """exp(input²) erfc(input). The value and the derivatives do not cancel for large arguments. DLMF 7.2.3."""
def erfinv(input: TensorLike) -> Tensor:
    """The inverse of erf, on (-1, 1). The derivative is computed from the input, so that it is accurate next to the ends. DLMF 7.17.1."""
def exp(input: TensorLike) -> Tensor:
    """e**input. DLMF 4.2."""
def exp1(input: TensorLike) -> Tensor:
    """The exponential integral E₁. DLMF 6.2.1."""
def exp2(input: TensorLike) -> Tensor:
    """2**input."""
def exp2_(self: Tensor) -> Tensor: ...
def exp_(self: Tensor) -> Tensor: ...
def expand(input: TensorLike, *size: Integers) -> Tensor:
    """The input expanded along axes of size 1 and along new leading axes, without a copy."""
def expand_as(input: TensorLike, other: TensorLike) -> Tensor:
    """The input expanded to the shape of another tensor."""
def expand_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def expi(input: TensorLike) -> Tensor:
    """The exponential integral Ei. DLMF 6.2.5."""
def expit(input: TensorLike) -> Tensor:
    """1 / (1 + exp(-input))."""
def expm1(input: TensorLike) -> Tensor:
    """e**input - 1, accurate next to 0."""
def expm1_(self: Tensor) -> Tensor: ...
def eye(n: builtins.int, m: builtins.int | None = None, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def fix(input: TensorLike) -> Tensor:
    """The integer part; the derivative is 0."""
def fix_(self: Tensor) -> Tensor: ...
def flatten(input: TensorLike, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
    """The axes from `start_dim` to `end_dim` merged into one."""
def flip(input: TensorLike, *dims: Integers) -> Tensor:
    """The order reversed along `dims`."""
def fliplr(input: TensorLike) -> Tensor:
    """The order of the columns reversed."""
def flipud(input: TensorLike) -> Tensor:
    """The order of the rows reversed."""
float: DType
float16: DType
float32: DType
float64: DType
def float_power(input: TensorLike, exponent: TensorLike) -> Tensor:
    """input ** exponent, computed in double precision for every dtype."""
def floor(input: TensorLike) -> Tensor:
    """The largest integer not above the input; the derivative is 0."""
def floor_(self: Tensor) -> Tensor: ...
def floor_divide(input: TensorLike, other: TensorLike) -> Tensor:
    """The quotient rounded down; its derivative is 0. Integers raise RuntimeError if `other` is 0."""
def fmax(input: TensorLike, other: TensorLike) -> Tensor:
    """The maximum of two numbers, and the other one where one is NaN; a tie shares the gradient equally."""
def fmin(input: TensorLike, other: TensorLike) -> Tensor:
    """The minimum of two numbers, and the other one where one is NaN; a tie shares the gradient equally."""
def fmod(input: TensorLike, other: TensorLike) -> Tensor:
    """input - trunc(input / other) * other: it has the sign of the input."""
def frac(input: TensorLike) -> Tensor:
    """input - trunc(input): the fractional part."""
def frac_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def fresnel(input: TensorLike) -> Tensor:
    """Fresnel's integrals S and C, as SciPy returns them. DLMF 7.2."""
def fresnel_c(input: TensorLike) -> Tensor:
    """Fresnel's integral C, the integral of cos(πt²/2) from 0 on. DLMF 7.2.7."""
def fresnel_s(input: TensorLike) -> Tensor:
    """Fresnel's integral S, the integral of sin(πt²/2) from 0 on. DLMF 7.2.8."""
@overload
def frobenius_norm(input: TensorLike, dim: builtins.int, keepdim: builtins.bool = False) -> Tensor:
    """√Σ|x|² over one or two dimensions."""
@overload
def frobenius_norm(input: TensorLike, axis: builtins.int, keepdims: builtins.bool = False) -> Tensor:
    """√Σ|x|² over one or two dimensions."""
def full(size: Any, fill_value: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, memory_format: Any = None, symbol: str | None = None) -> Tensor: ...
def gamma(input: TensorLike) -> Tensor:
    """The gamma function Γ(input), infinite above 171.6; the value is SciPy's, within 7 ULP. DLMF 5.2.1."""
def gammainc(input: TensorLike, other: TensorLike) -> Tensor:
    """The regularized lower incomplete gamma function P(input, other), the integral of tᵃ⁻¹ exp(-t) / Γ(a) from 0 to other for a = input, with derivatives by both. Up to 10,000 the value and the first derivatives are within 4 ULP; SciPy's value, with errors up to 30,000 ULP in the tails, is used for larger numbers only. DLMF 8.2.4."""
def gammaincc(input: TensorLike, other: TensorLike) -> Tensor:
    """The regularized upper incomplete gamma function Q(input, other) = 1 - P(input, other), accurate in its tail, with derivatives by both; the errors are those of gammainc. DLMF 8.2.4."""
def gammaln(input: TensorLike) -> Tensor:
    """log|Γ(input)|. For negative arguments SciPy's value loses digits next to the zeros of the function. DLMF 5.2."""
@overload
def gather(input: TensorLike, dim: builtins.int, index: TensorLike, *, sparse_grad: builtins.bool = False) -> Tensor:
    """The elements that an index names along `dim`; the other positions are those of the index."""
@overload
def gather(input: TensorLike, axis: builtins.int, index: TensorLike, *, sparse_grad: builtins.bool = False) -> Tensor:
    """The elements that an index names along `dim`; the other positions are those of the index."""
def gcd(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor: ...
def gcd_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def ge(input: TensorLike, other: TensorLike) -> Tensor:
    """input >= other, as booleans."""
def geqrf(input: TensorLike) -> Any:
    """The triangle R of a matrix Q R, the reflections of Q below it, from whose columns an element 1 is left out, and their factors tau."""
def ger(input: TensorLike, vec2: TensorLike) -> Tensor:
    """The outer product of two vectors."""
@overload
def gradient(input: TensorLike, *, spacing: Any = 1, dim: Integers | None = None, edge_order: builtins.int = 1) -> tuple[Tensor, ...]:
    """The derivatives along dimensions by central differences, one tensor for each; `spacing` is a number, numbers, or coordinates."""
@overload
def gradient(input: TensorLike, *, spacing: Any = 1, axis: Integers | None = None, edge_order: builtins.int = 1) -> tuple[Tensor, ...]:
    """The derivatives along dimensions by central differences, one tensor for each; `spacing` is a number, numbers, or coordinates."""
def greater(input: TensorLike, other: TensorLike) -> Tensor:
    """input > other, as booleans."""
def greater_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """input >= other, as booleans."""
def gt(input: TensorLike, other: TensorLike) -> Tensor:
    """input > other, as booleans."""
half: DType
def hardshrink(input: TensorLike, lambd: Number = 0.5) -> Tensor:
    """The input, and 0 where its absolute value is at most `lambd`."""
def heaviside(input: TensorLike, values: TensorLike) -> Tensor:
    """0 where the input is negative, 1 where it is positive, and `values` where it is 0, which alone have a derivative."""
def hermite_polynomial_h(input: TensorLike, n: builtins.int) -> Tensor:
    """Hermite polynomial h of degree n, a whole number or a tensor of them, at input; 0 for n < 0. DLMF 18.3."""
def hermite_polynomial_he(input: TensorLike, n: builtins.int) -> Tensor:
    """Hermite polynomial he of degree n, a whole number or a tensor of them, at input; 0 for n < 0. DLMF 18.3."""
def hsplit(input: TensorLike, indices_or_sections: Integers | Tensor) -> tuple[Tensor, ...]:
    """The pieces of a tensor along dimension 1: so many equal ones, or those between indices; views."""
def hstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along their second dimension, vectors along their only dimension."""
def hypot(input: TensorLike, other: TensorLike) -> Tensor:
    """sqrt(input² + other²), without overflow; the derivative at (0, 0) is 0."""
def i0(input: TensorLike) -> Tensor:
    """The Bessel function I₀, accurate in every derivative. DLMF 10.25.2."""
def i0_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def i0e(input: TensorLike) -> Tensor:
    """e^-|input| I₀(input), the scaled modified Bessel function; its derivative at 0 is 0. DLMF 10.25.2."""
def i1(input: TensorLike) -> Tensor:
    """The Bessel function I₁, accurate in every derivative. DLMF 10.25.2."""
def i1e(input: TensorLike) -> Tensor:
    """e^-|input| I₁(input), the scaled modified Bessel function. DLMF 10.25.2."""
def igamma(input: TensorLike, other: TensorLike) -> Tensor:
    """The regularized lower incomplete gamma function P(input, other), the integral of tᵃ⁻¹ exp(-t) / Γ(a) from 0 to other for a = input, with derivatives by both. Up to 10,000 the value and the first derivatives are within 4 ULP; SciPy's value, with errors up to 30,000 ULP in the tails, is used for larger numbers only. DLMF 8.2.4."""
def igammac(input: TensorLike, other: TensorLike) -> Tensor:
    """The regularized upper incomplete gamma function Q(input, other) = 1 - P(input, other), accurate in its tail, with derivatives by both; the errors are those of gammainc. DLMF 8.2.4."""
def imag(input: TensorLike) -> Tensor:
    """The imaginary parts: a view."""
@overload
def index_add(input: TensorLike, dim: builtins.int, index: TensorLike, source: Integers, *, alpha: Number = 1) -> Tensor:
    """A copy of the input with alpha times the slices of `source` added to those along `dim` that a vector of integers names."""
@overload
def index_add(input: TensorLike, axis: builtins.int, index: TensorLike, source: Integers, *, alpha: Number = 1) -> Tensor:
    """A copy of the input with alpha times the slices of `source` added to those along `dim` that a vector of integers names."""
@overload
def index_copy(input: TensorLike, dim: builtins.int, index: TensorLike, source: Integers) -> Tensor:
    """A copy of the input with the slices of `source` in place of those along `dim` that a vector of integers names."""
@overload
def index_copy(input: TensorLike, axis: builtins.int, index: TensorLike, source: Integers) -> Tensor:
    """A copy of the input with the slices of `source` in place of those along `dim` that a vector of integers names."""
@overload
def index_fill(input: TensorLike, dim: builtins.int, index: TensorLike, value: TensorLike) -> Tensor:
    """A copy of the input with a number, or a tensor without dimensions, in the slices along `dim` at a vector of integers."""
@overload
def index_fill(input: TensorLike, axis: builtins.int, index: TensorLike, value: TensorLike) -> Tensor:
    """A copy of the input with a number, or a tensor without dimensions, in the slices along `dim` at a vector of integers."""
def index_put(input: TensorLike, indices: Any, values: TensorLike, accumulate: builtins.bool = False) -> Tensor:
    """A copy of the input with `values` written (or, with `accumulate`, added) at a tuple of index tensors."""
def index_put_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
@overload
def index_reduce(input: TensorLike, dim: builtins.int, index: TensorLike, source: Integers, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
    """A copy of the input with the product, mean, largest or smallest of the slices that a vector of integers sends to one place along `dim`."""
@overload
def index_reduce(input: TensorLike, axis: builtins.int, index: TensorLike, source: Integers, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
    """A copy of the input with the product, mean, largest or smallest of the slices that a vector of integers sends to one place along `dim`."""
@overload
def index_select(input: TensorLike, dim: builtins.int, index: TensorLike) -> Tensor:
    """The slices of the input along `dim` that a vector of integers names."""
@overload
def index_select(input: TensorLike, axis: builtins.int, index: TensorLike) -> Tensor:
    """The slices of the input along `dim` that a vector of integers names."""
def inner(input: TensorLike, other: TensorLike) -> Tensor:
    """The sums of products over the last dimensions of both."""
int: DType
int16: DType
int32: DType
int64: DType
int8: DType
def inverse(input: TensorLike) -> Tensor:
    """The inverse of a square matrix. Raises RuntimeError for a singular one."""
def isclose(input: TensorLike, other: TensorLike, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False) -> Tensor:
    """Whether |input - other| <= atol + rtol |other|, elementwise; equal infinities are close, and NaN is close to NaN if `equal_nan`."""
def isfinite(input: TensorLike) -> Tensor:
    """Whether neither infinite nor NaN, elementwise."""
def isinf(input: TensorLike) -> Tensor:
    """Whether infinite, elementwise."""
def isnan(input: TensorLike) -> Tensor:
    """Whether NaN, elementwise."""
def iv(order: Number, input: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of a real order, without derivative by the order. DLMF 10.25.2."""
def jv(order: Number, input: TensorLike) -> Tensor:
    """The Bessel function of the first kind of a real order, without derivative by the order. DLMF 10.2.2."""
def kron(input: TensorLike, other: TensorLike) -> Tensor:
    """The Kronecker product: each element of the input times `other`."""
@overload
def kthvalue(input: TensorLike, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Extreme:
    """The pair (values, indices) of the `k`-th smallest element along `dim`, counted from 1."""
@overload
def kthvalue(input: TensorLike, k: builtins.int, axis: builtins.int = -1, keepdims: builtins.bool = False) -> Extreme:
    """The pair (values, indices) of the `k`-th smallest element along `dim`, counted from 1."""
def kv(order: Number, input: TensorLike) -> Tensor:
    """The modified Bessel function of the second kind of a real order, without derivative by the order. DLMF 10.25.3."""
def laguerre_polynomial_l(input: TensorLike, n: builtins.int) -> Tensor:
    """Laguerre polynomial l of degree n, a whole number or a tensor of them, at input; 0 for n < 0. DLMF 18.3."""
def lambertw(input: TensorLike) -> Tensor:
    """The principal branch of Lambert's W, with W eᵂ = input, for input > -1/e; the derivative loses digits next to this end, 16 ULP at -0.36. DLMF 4.13."""
def lcm(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor: ...
def lcm_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def ldexp(input: TensorLike, other: TensorLike) -> Tensor:
    """input 2**other, finite also where 2**other is not."""
def ldexp_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def le(input: TensorLike, other: TensorLike) -> Tensor:
    """input <= other, as booleans."""
def legendre_polynomial_p(input: TensorLike, n: builtins.int) -> Tensor:
    """Legendre polynomial p of degree n, a whole number or a tensor of them, at input; 0 for n < 0. DLMF 18.3."""
def lerp(input: TensorLike, end: TensorLike, weight: TensorLike) -> Tensor:
    """input + weight (end - input): the input where the weight is 0, `end` where it is 1."""
def less(input: TensorLike, other: TensorLike) -> Tensor:
    """input < other, as booleans."""
def less_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """input <= other, as booleans."""
def lgamma(input: TensorLike) -> Tensor:
    """log|Γ(input)|. For negative arguments SciPy's value loses digits next to the zeros of the function. DLMF 5.2."""
def linspace(start: Any, end: Any, steps: builtins.int, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def log(input: TensorLike) -> Tensor:
    """The natural logarithm. DLMF 4.2."""
def log10(input: TensorLike) -> Tensor:
    """The logarithm to base 10."""
def log10_(self: Tensor) -> Tensor: ...
def log1p(input: TensorLike) -> Tensor:
    """log(1 + input), accurate next to 0."""
def log1p_(self: Tensor) -> Tensor: ...
def log2(input: TensorLike) -> Tensor:
    """The logarithm to base 2."""
def log2_(self: Tensor) -> Tensor: ...
def log_(self: Tensor) -> Tensor: ...
def log_ndtr(input: TensorLike) -> Tensor:
    """log(ndtr(input)), accurate in both tails, and so are its derivatives. DLMF 7.20.1."""
@overload
def log_softmax(input: TensorLike, dim: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
    """log(softmax(input)) along `dim`, without cancellation."""
@overload
def log_softmax(input: TensorLike, axis: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
    """log(softmax(input)) along `dim`, without cancellation."""
def logaddexp(input: TensorLike, other: TensorLike) -> Tensor:
    """log(exp(input) + exp(other)), without overflow; equal infinite numbers share the gradient equally."""
def logaddexp2(input: TensorLike, other: TensorLike) -> Tensor:
    """log2(2**input + 2**other), without overflow; equal infinite numbers share the gradient equally."""
@overload
def logcumsumexp(input: TensorLike, dim: builtins.int) -> Tensor:
    """The logarithm of the running sum of exp(input) along `dim`, without overflow, by doubling."""
@overload
def logcumsumexp(input: TensorLike, axis: builtins.int) -> Tensor:
    """The logarithm of the running sum of exp(input) along `dim`, without overflow, by doubling."""
def logdet(input: TensorLike) -> Tensor:
    """The logarithm of the determinant: NaN for a negative one, -inf for a singular matrix."""
def logical_and(input: TensorLike, other: TensorLike) -> Tensor:
    """The logical and of two truth values."""
def logical_not(input: TensorLike) -> Tensor:
    """Not `input`, elementwise."""
def logical_or(input: TensorLike, other: TensorLike) -> Tensor:
    """The logical or of two truth values."""
def logical_xor(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether exactly one of two values is true (nonzero)."""
def logit(input: TensorLike, eps: builtins.float | None = None) -> Tensor:
    """log(input / (1 - input)), of the input clamped to [eps, 1 - eps] if `eps` is given."""
def logit_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def logsigmoid(input: TensorLike) -> Tensor:
    """log(sigmoid(input)), without cancellation."""
def logspace(start: Any, end: Any, steps: builtins.int, base: builtins.float = 10.0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
@overload
def logsumexp(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """log Σ exp(input) over `dim`, without overflow."""
@overload
def logsumexp(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """log Σ exp(input) over `dim`, without overflow."""
long: DType
def lt(input: TensorLike, other: TensorLike) -> Tensor:
    """input < other, as booleans."""
def lu(A: TensorLike, pivot: builtins.bool = True, get_infos: builtins.bool = False) -> Any:
    """L below U in one array, the row exchanges from 1, and with `get_infos` the position of the first zero on the diagonal of U, or 0."""
def lu_solve(b: TensorLike, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The solution X of A X = b from the factors of A."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: builtins.bool = True, unpack_pivots: builtins.bool = True) -> Any:
    """P, L and U of A = P L U, from L below U in one array and the row exchanges; empty tensors for what is not unpacked."""
def masked_fill(input: TensorLike, mask: TensorLike, value: TensorLike) -> Tensor:
    """A copy of the input with a number, or a tensor without dimensions, where `mask` is true; shapes broadcast."""
def masked_scatter(input: TensorLike, mask: TensorLike, source: Integers) -> Tensor:
    """A copy of the input with the elements of `source`, in order, where `mask` is true."""
def masked_select(input: TensorLike, mask: TensorLike) -> Tensor:
    """The elements where `mask` holds, as a vector; shapes broadcast."""
def matmul(input: TensorLike, other: TensorLike) -> Tensor:
    """The product of vectors, matrices or stacks of matrices, with leading axes broadcast."""
def matrix_exp(input: TensorLike) -> Tensor:
    """The exponential of a square matrix, Σ Aⁿ / n!."""
def matrix_power(input: TensorLike, n: builtins.int) -> Tensor:
    """The product of n equal square matrices; of the inverses for a negative n."""
@overload
def max(input: TensorLike, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def max(input: TensorLike, axis: None = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def max(input: TensorLike, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def max(input: TensorLike, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def max(input: TensorLike, dim: Tensor | np.ndarray | Sequence[builtins.int], keepdim: builtins.bool = False) -> Tensor:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
@overload
def max(input: TensorLike, axis: Tensor | np.ndarray | Sequence[builtins.int], keepdims: builtins.bool = False) -> Tensor:
    """The largest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise maximum."""
def maximum(input: TensorLike, other: TensorLike) -> Tensor:
    """The larger of two values; a tie shares the gradient equally."""
@overload
def mean(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The mean over `dim`, or over all elements; NaN for an empty input."""
@overload
def mean(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The mean over `dim`, or over all elements; NaN for an empty input."""
@overload
def median(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The lower median of all elements; with `dim`, the pair (values, indices). The median is NaN if an element is."""
@overload
def median(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The lower median of all elements; with `dim`, the pair (values, indices). The median is NaN if an element is."""
def meshgrid(*tensors: Sequence[TensorLike], indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid, from vectors of coordinates for each axis: one tensor per axis, which varies along the dimension of that axis."""
@overload
def min(input: TensorLike, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def min(input: TensorLike, axis: None = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def min(input: TensorLike, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def min(input: TensorLike, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def min(input: TensorLike, dim: Tensor | np.ndarray | Sequence[builtins.int], keepdim: builtins.bool = False) -> Tensor:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
@overload
def min(input: TensorLike, axis: Tensor | np.ndarray | Sequence[builtins.int], keepdims: builtins.bool = False) -> Tensor:
    """The smallest value; with `dim`, the pair (values, indices); with a second tensor, the elementwise minimum."""
def minimum(input: TensorLike, other: TensorLike) -> Tensor:
    """The smaller of two values; a tie shares the gradient equally."""
def mm(input: TensorLike, other: TensorLike) -> Tensor:
    """The product of two matrices."""
@overload
def mode(input: TensorLike, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Extreme:
    """The pair (values, indices) of the most frequent element along `dim`: the smallest of several, at its last position."""
@overload
def mode(input: TensorLike, axis: builtins.int = -1, keepdims: builtins.bool = False) -> Extreme:
    """The pair (values, indices) of the most frequent element along `dim`: the smallest of several, at its last position."""
def modified_bessel_i0(input: TensorLike) -> Tensor:
    """The Bessel function I₀, accurate in every derivative. DLMF 10.25.2."""
def modified_bessel_i1(input: TensorLike) -> Tensor:
    """The Bessel function I₁, accurate in every derivative. DLMF 10.25.2."""
def modified_bessel_k0(input: TensorLike) -> Tensor:
    """The Bessel function K₀, accurate in every derivative. DLMF 10.25.3."""
def modified_bessel_k1(input: TensorLike) -> Tensor:
    """The Bessel function K₁, accurate in every derivative. DLMF 10.25.3."""
def moveaxis(input: TensorLike, source: Integers, destination: Integers) -> Tensor:
    """Axes moved to other positions; the others keep their order."""
def movedim(input: TensorLike, source: Integers, destination: Integers) -> Tensor:
    """Axes moved to other positions; the others keep their order."""
mps: Any
def mse_loss(input: TensorLike, target: TensorLike, reduction: str = 'mean') -> Tensor:
    """(input - target)², reduced by the mean, the sum, or not."""
def msort(input: TensorLike) -> Tensor:
    """The input sorted along its first dimension."""
def mul(input: TensorLike, other: TensorLike) -> Tensor:
    """input * other."""
def multigammaln(input: TensorLike, p: builtins.float | str) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p, for arguments above (p - 1)/2. DLMF 35.3.4."""
def multiply(input: TensorLike, other: TensorLike) -> Tensor:
    """input * other."""
def mv(input: TensorLike, other: TensorLike) -> Tensor:
    """The product of a matrix and a vector."""
def mvlgamma(input: TensorLike, p: builtins.float | str) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p, for arguments above (p - 1)/2. DLMF 35.3.4."""
def nan_to_num(input: TensorLike, nan: builtins.float | None = None, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> Tensor:
    """The input with numbers in place of NaN (0), inf and -inf (the largest numbers of either sign); the derivative there is 0."""
def nan_to_num_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
@overload
def nanmean(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The mean of the elements that are not NaN; NaN if there are none."""
@overload
def nanmean(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The mean of the elements that are not NaN; NaN if there are none."""
@overload
def nanmedian(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False) -> Tensor:
    """The lower median of the elements that are not NaN; with `dim`, the pair (values, indices)."""
@overload
def nanmedian(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The lower median of the elements that are not NaN; with `dim`, the pair (values, indices)."""
@overload
def nanquantile(input: TensorLike, q: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, interpolation: str = 'linear') -> Tensor:
    """The q-quantiles of the elements that are not NaN."""
@overload
def nanquantile(input: TensorLike, q: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, interpolation: str = 'linear') -> Tensor:
    """The q-quantiles of the elements that are not NaN."""
@overload
def nansum(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The sum of the elements that are not NaN."""
@overload
def nansum(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The sum of the elements that are not NaN."""
@overload
def narrow(input: TensorLike, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
    """The `length` slices of the input along `dim` from `start` on: a view."""
@overload
def narrow(input: TensorLike, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
    """The `length` slices of the input along `dim` from `start` on: a view."""
@overload
def narrow_copy(input: TensorLike, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
    """A contiguous copy of the `length` slices along `dim` from `start` on."""
@overload
def narrow_copy(input: TensorLike, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
    """A contiguous copy of the `length` slices along `dim` from `start` on."""
def ndtr(input: TensorLike) -> Tensor:
    """The distribution function of the standard normal distribution, accurate in the lower tail. DLMF 7.20."""
def ndtri(input: TensorLike) -> Tensor:
    """The inverse of ndtr, on (0, 1): the quantile of the standard normal distribution. DLMF 7.20.1."""
def ne(input: TensorLike, other: TensorLike) -> Tensor:
    """input != other, as booleans."""
def neg(input: TensorLike) -> Tensor:
    """-input."""
def neg_(self: Tensor) -> Tensor: ...
def negative(input: TensorLike) -> Tensor:
    """-input."""
def negative_(self: Tensor) -> Tensor: ...
@overload
def norm(input: TensorLike, p: builtins.float | str = 2, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The p-norm (Σ|x|^p)^(1/p) over `dim`, or over all elements; p may be a number, inf, -inf, "fro", or "nuc" for matrices."""
@overload
def norm(input: TensorLike, p: builtins.float | str = 2, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The p-norm (Σ|x|^p)^(1/p) over `dim`, or over all elements; p may be a number, inf, -inf, "fro", or "nuc" for matrices."""
def not_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """input != other, as booleans."""
@overload
def nuclear_norm(input: TensorLike, dim: builtins.int = ..., keepdim: builtins.bool = False) -> Tensor:
    """The sum of the singular values of matrices."""
@overload
def nuclear_norm(input: TensorLike, axis: builtins.int = ..., keepdims: builtins.bool = False) -> Tensor:
    """The sum of the singular values of matrices."""
def ones(*sizes: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def ones_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, memory_format: Any = None, symbol: str | None = None) -> Tensor: ...
def orgqr(input: TensorLike, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections, as `linalg.householder_product`."""
def ormqr(input: TensorLike, tau: Tensor, other: TensorLike, left: builtins.bool = True, transpose: builtins.bool = False) -> Tensor:
    """The product of reflections Q with a matrix: Q other, or other Q with `left=False`; Qᴴ in place of Q with `transpose`."""
def outer(input: TensorLike, vec2: TensorLike) -> Tensor:
    """The outer product of two vectors."""
def permute(input: TensorLike, *dims: Integers) -> Tensor:
    """The axes in another order."""
def permute_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def pinverse(input: TensorLike, rcond: builtins.float = 1e-15) -> Tensor:
    """The pseudo-inverse, without the singular values below `rcond` times the largest."""
def polar(abs: TensorLike, angle: TensorLike) -> Tensor:
    """The complex numbers with these absolute values and angles."""
def polygamma(n: builtins.int, input: TensorLike) -> Tensor:
    """The derivative of digamma(input) of order n. DLMF 5.15."""
def positive(input: TensorLike) -> Tensor:
    """The input itself."""
def pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """input ** exponent. By the exponent the derivative is y log(input), and 0 where input is 0."""
def prelu(input: TensorLike, weight: TensorLike) -> Tensor:
    """The input where it is positive, else the input times a weight: one, or one for each channel, the second dimension of the input."""
@overload
def prod(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The product over `dim`, or over all elements; its derivatives are right also at zeros. Of up to 4,096 elements it has all its digits where a product of some of them overflows."""
@overload
def prod(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The product over `dim`, or over all elements; its derivatives are right also at zeros. Of up to 4,096 elements it has all its digits where a product of some of them overflows."""
def psi(input: TensorLike) -> Tensor:
    """The derivative of log Γ(input). SciPy's value loses digits next to negative zeros. DLMF 5.2.2."""
def qr(input: TensorLike, some: builtins.bool = True) -> Any:
    """Q with orthonormal columns and the triangle R of Q R; all columns of Q with `some=False`."""
@overload
def quantile(input: TensorLike, q: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, interpolation: str = 'linear') -> Tensor:
    """The q-quantiles along `dim`, or of all elements; NaN where an element is. Several q give a new first dimension."""
@overload
def quantile(input: TensorLike, q: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, interpolation: str = 'linear') -> Tensor:
    """The q-quantiles along `dim`, or of all elements; NaN where an element is. Several q give a new first dimension."""
def rad2deg(input: TensorLike) -> Tensor:
    """Radians as degrees: input 180 / π."""
def rad2deg_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def rand(*sizes: Any, size: Any = None, generator: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def rand_like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, memory_format: Any = None, symbol: str | None = None) -> Tensor: ...
def randint(low: Any = None, high: Any = None, size: Any = None, *, generator: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def randint_like(input: Tensor, low: Any = None, high: Any = None, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, memory_format: Any = None, symbol: str | None = None) -> Tensor: ...
def randn(*sizes: Any, size: Any = None, generator: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def randn_like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, memory_format: Any = None, symbol: str | None = None) -> Tensor: ...
def randperm(n: builtins.int, *, generator: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def range(start: Any, end: Any, step: Any = 1, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def ravel(input: TensorLike) -> Tensor:
    """The elements as a vector, a view if possible."""
def real(input: TensorLike) -> Tensor:
    """The real parts, a view; a real input itself."""
def reciprocal(input: TensorLike) -> Tensor:
    """1 / input."""
def reciprocal_(self: Tensor) -> Tensor: ...
def relu(input: TensorLike) -> Tensor:
    """max(input, 0); the derivative at 0 is 0."""
def relu_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def remainder(input: TensorLike, other: TensorLike) -> Tensor:
    """input - floor(input / other) * other: it has the sign of `other`."""
@overload
def renorm(input: TensorLike, p: builtins.float | str, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
    """The slices along `dim` whose p-norm is above `maxnorm`, scaled to that norm (less a part in ten millions, as in torch)."""
@overload
def renorm(input: TensorLike, p: builtins.float | str, axis: builtins.int, maxnorm: builtins.float) -> Tensor:
    """The slices along `dim` whose p-norm is above `maxnorm`, scaled to that norm (less a part in ten millions, as in torch)."""
def repeat(input: TensorLike, *repeats: Integers | Tensor) -> Tensor:
    """The input repeated along each dimension, and along new leading ones."""
@overload
def repeat_interleave(input: TensorLike, repeats: Integers | Tensor | None = None, dim: Integers | None = None, *, output_size: builtins.int | None = None) -> Tensor:
    """Each slice along `dim`, by default each element, repeated consecutively; with `repeats` alone, the indices of these slices."""
@overload
def repeat_interleave(input: TensorLike, repeats: Integers | Tensor | None = None, axis: Integers | None = None, *, output_size: builtins.int | None = None) -> Tensor:
    """Each slice along `dim`, by default each element, repeated consecutively; with `repeats` alone, the indices of these slices."""
def reshape(input: TensorLike, *shape: Integers) -> Tensor:
    """The same elements in another shape; one size may be -1."""
def reshape_as(input: TensorLike, other: TensorLike) -> Tensor:
    """The same elements in the shape of another tensor."""
def resolve_conj(input: TensorLike) -> Tensor:
    """The input itself, since conjugation is never deferred."""
def resolve_neg(input: TensorLike) -> Tensor:
    """The input itself, since conjugation is never deferred."""
def roll(input: TensorLike, shifts: Integers, dims: Integers | None = None) -> Tensor:
    """The elements shifted cyclically along `dims`, or over the flattened input."""
def rot90(input: TensorLike, k: builtins.int = 1, dims: Integers = ...) -> Tensor:
    """The input rotated by `k` quarter turns in the plane of two dimensions, from the first towards the second."""
def round(input: TensorLike, *, decimals: builtins.int = 0) -> Tensor:
    """The nearest integer, or multiple of 10**-decimals, halves to even; the derivative is 0."""
def round_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def row_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along their first dimension, vectors as rows."""
def rsqrt(input: TensorLike) -> Tensor:
    """1 / sqrt(input)."""
def rsqrt_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def rsub(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """other - alpha * input."""
def scalar_tensor(s: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def scaled_modified_bessel_k0(input: TensorLike) -> Tensor:
    """e^input K₀(input), the scaled modified Bessel function. DLMF 10.25.3."""
def scaled_modified_bessel_k1(input: TensorLike) -> Tensor:
    """e^input K₁(input), the scaled modified Bessel function. DLMF 10.25.3."""
@overload
def scatter(input: TensorLike, dim: builtins.int, index: TensorLike, src: TensorLike | None = None, *, value: TensorLike | None = None, reduce: str | None = None) -> Tensor:
    """A copy of the input with elements of `src`, or a number, at the positions of an index along `dim`."""
@overload
def scatter(input: TensorLike, axis: builtins.int, index: TensorLike, src: TensorLike | None = None, *, value: TensorLike | None = None, reduce: str | None = None) -> Tensor:
    """A copy of the input with elements of `src`, or a number, at the positions of an index along `dim`."""
@overload
def scatter_add(input: TensorLike, dim: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
    """A copy of the input with the elements of `src` added at the positions of an index along `dim`."""
@overload
def scatter_add(input: TensorLike, axis: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
    """A copy of the input with the elements of `src` added at the positions of an index along `dim`."""
@overload
def scatter_reduce(input: TensorLike, dim: builtins.int, index: TensorLike, src: TensorLike, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
    """A copy of the input with the sum, product, mean, largest or smallest of the elements that an index along `dim` sends to one place."""
@overload
def scatter_reduce(input: TensorLike, axis: builtins.int, index: TensorLike, src: TensorLike, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
    """A copy of the input with the sum, product, mean, largest or smallest of the elements that an index along `dim` sends to one place."""
def sech(input: TensorLike) -> Tensor:
    """1 / cosh(input), without overflow. DLMF 4.28."""
@overload
def select(input: TensorLike, dim: builtins.int, index: TensorLike) -> Tensor:
    """One slice of the input along `dim`: a view."""
@overload
def select(input: TensorLike, axis: builtins.int, index: TensorLike) -> Tensor:
    """One slice of the input along `dim`: a view."""
def select_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
@overload
def select_scatter(input: TensorLike, src: TensorLike, dim: builtins.int, index: TensorLike) -> Tensor:
    """A copy of the input with `src` as one slice along `dim`."""
@overload
def select_scatter(input: TensorLike, src: TensorLike, axis: builtins.int, index: TensorLike) -> Tensor:
    """A copy of the input with `src` as one slice along `dim`."""
def selu(input: TensorLike) -> Tensor:
    """elu times a scale with which layers keep mean 0 and variance 1."""
def sgn(input: TensorLike) -> Tensor:
    """The sign; of complex numbers, the number of absolute value 1 with the same angle, and 0 at 0, as its derivative there."""
def shifted_chebyshev_polynomial_t(input: TensorLike, n: builtins.int) -> Tensor:
    """Chebyshev polynomial t of degree n, a whole number or a tensor of them, at 2 input - 1; 0 for n < 0. DLMF 18.3."""
def shifted_chebyshev_polynomial_u(input: TensorLike, n: builtins.int) -> Tensor:
    """Chebyshev polynomial u of degree n, a whole number or a tensor of them, at 2 input - 1; 0 for n < 0. DLMF 18.3."""
def shifted_chebyshev_polynomial_v(input: TensorLike, n: builtins.int) -> Tensor:
    """Chebyshev polynomial v of degree n, a whole number or a tensor of them, at 2 input - 1; 0 for n < 0. DLMF 18.3."""
def shifted_chebyshev_polynomial_w(input: TensorLike, n: builtins.int) -> Tensor:
    """Chebyshev polynomial w of degree n, a whole number or a tensor of them, at 2 input - 1; 0 for n < 0. DLMF 18.3."""
short: DType
def sici(input: TensorLike) -> Tensor:
    """The sine and the cosine integral, as SciPy returns them. DLMF 6.2."""
def sigmoid(input: TensorLike) -> Tensor:
    """1 / (1 + exp(-input))."""
def sigmoid_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def sign(input: TensorLike) -> Tensor:
    """-1, 0 or 1; the derivative is 0."""
def sin(input: TensorLike) -> Tensor:
    """The sine. DLMF 4.14."""
def sin_(self: Tensor) -> Tensor: ...
def sinc(input: TensorLike) -> Tensor:
    """sin(π input) / (π input), and 1 at 0; its derivatives of every order are accurate next to 0."""
def sinc_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
def sine_integral(input: TensorLike) -> Tensor:
    """The sine integral Si, the integral of sin(t)/t from 0 on. DLMF 6.2.9."""
def sinh(input: TensorLike) -> Tensor:
    """The hyperbolic sine. DLMF 4.28."""
def sinh_(self: Tensor) -> Tensor: ...
@overload
def slice_scatter(input: TensorLike, src: TensorLike, dim: builtins.int = 0, start: builtins.int | None = None, end: TensorLike | None = None, step: builtins.int = 1) -> Tensor:
    """A copy of the input with `src` in place of the slices from `start` to `end` along `dim`."""
@overload
def slice_scatter(input: TensorLike, src: TensorLike, axis: builtins.int = 0, start: builtins.int | None = None, end: TensorLike | None = None, step: builtins.int = 1) -> Tensor:
    """A copy of the input with `src` in place of the slices from `start` to `end` along `dim`."""
def slogdet(input: TensorLike) -> Tensor:
    """The sign of the determinant and the logarithm of its absolute value, which neither overflow nor underflow."""
@overload
def softmax(input: TensorLike, dim: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
    """exp(input) / Σ exp(input) along `dim`."""
@overload
def softmax(input: TensorLike, axis: builtins.int | None = None, dtype: DType | type | None = None) -> Tensor:
    """exp(input) / Σ exp(input) along `dim`."""
def softplus(input: TensorLike, beta: Number = 1.0, threshold: Number = 20.0) -> Tensor:
    """log(1 + exp(beta input)) / beta. It is exact everywhere, so `threshold` has no effect."""
@overload
def sort(input: TensorLike, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool | None = None) -> Extreme:
    """The pair (values, indices) of the input sorted along `dim`; equal elements stay in order, and NaN is the largest."""
@overload
def sort(input: TensorLike, axis: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool | None = None) -> Extreme:
    """The pair (values, indices) of the input sorted along `dim`; equal elements stay in order, and NaN is the largest."""
def spherical_bessel_j0(input: TensorLike) -> Tensor:
    """sin(input)/input, and 1 at 0, the spherical Bessel function j₀. DLMF 10.49.3."""
@overload
def split(tensor: TensorLike, split_size_or_sections: Integers, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim`, all of one size (the last may be smaller) or of given sizes, as views that cannot be written in place."""
@overload
def split(tensor: TensorLike, split_size_or_sections: Integers, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim`, all of one size (the last may be smaller) or of given sizes, as views that cannot be written in place."""
def split_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
@overload
def split_with_sizes(input: TensorLike, split_sizes: Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim` with given sizes, as views that cannot be written in place."""
@overload
def split_with_sizes(input: TensorLike, split_sizes: Sequence[builtins.int], axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim` with given sizes, as views that cannot be written in place."""
def split_with_sizes_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def sqrt(input: TensorLike) -> Tensor:
    """The square root."""
def sqrt_(self: Tensor) -> Tensor: ...
def square(input: TensorLike) -> Tensor:
    """input²."""
def square_(self: Tensor) -> Tensor: ...
@overload
def squeeze(input: TensorLike, dim: Integers | None = None) -> Tensor:
    """The axes of size 1 removed: all of them, or those in `dim`."""
@overload
def squeeze(input: TensorLike, axis: Integers | None = None) -> Tensor:
    """The axes of size 1 removed: all of them, or those in `dim`."""
def squeeze_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
@overload
def stack(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
@overload
def stack(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
@overload
def std(input: TensorLike, dim: Integers | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: Number | None = None) -> Tensor:
    """The standard deviation, the square root of `var`; the derivative at 0 is 0."""
@overload
def std(input: TensorLike, axis: Integers | None = None, unbiased: builtins.bool | None = None, keepdims: builtins.bool = False, *, ddof: Number | None = None) -> Tensor:
    """The standard deviation, the square root of `var`; the derivative at 0 is 0."""
@overload
def std_mean(input: TensorLike, dim: Integers | None = None, unbiased: builtins.bool | None = None, *, correction: Number | None = None, keepdim: builtins.bool = False) -> tuple[Tensor, Tensor]:
    """The pair of `std` and `mean`."""
@overload
def std_mean(input: TensorLike, axis: Integers | None = None, unbiased: builtins.bool | None = None, *, ddof: Number | None = None, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]:
    """The pair of `std` and `mean`."""
def sub(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """input - alpha * other."""
def subtract(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """input - alpha * other."""
@overload
def sum(input: TensorLike, dim: Integers | None = None, keepdim: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The sum over `dim`, or over all elements."""
@overload
def sum(input: TensorLike, axis: Integers | None = None, keepdims: builtins.bool = False, *, dtype: DType | type | None = None) -> Tensor:
    """The sum over `dim`, or over all elements."""
def sum_to_size(input: TensorLike, *size: Integers) -> Tensor:
    """The sum over the axes along which `size` would be broadcast: the transpose of `expand`."""
def svd(input: TensorLike, some: builtins.bool = True, compute_uv: builtins.bool = True) -> Any:
    """The singular value decomposition U, S, V of U diag(S) Vᴴ: the first columns of U and V, or all with `some=False`."""
def swapaxes(input: TensorLike, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """Two axes exchanged."""
def swapdims(input: TensorLike, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """Two axes exchanged."""
def t(input: TensorLike) -> Tensor:
    """The transpose of a matrix; vectors and scalars as they are."""
def t_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def take(input: TensorLike, index: TensorLike) -> Tensor:
    """The elements at positions in the flattened input, in the shape of the index."""
@overload
def take_along_dim(input: TensorLike, indices: Any, dim: Integers | None = None) -> Tensor:
    """The elements at indices along `dim`, with the other dimensions broadcast; without `dim`, those of the flattened input."""
@overload
def take_along_dim(input: TensorLike, indices: Any, axis: Integers | None = None) -> Tensor:
    """The elements at indices along `dim`, with the other dimensions broadcast; without `dim`, those of the flattened input."""
def tan(input: TensorLike) -> Tensor:
    """The tangent. DLMF 4.14."""
def tan_(self: Tensor) -> Tensor: ...
def tanh(input: TensorLike) -> Tensor:
    """The hyperbolic tangent. DLMF 4.28."""
def tanh_(self: Tensor) -> Tensor: ...
@overload
def tensor_split(input: TensorLike, indices_or_sections: Integers | Tensor, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim` as views: a number of nearly equal ones, or those between indices."""
@overload
def tensor_split(input: TensorLike, indices_or_sections: Integers | Tensor, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim` as views: a number of nearly equal ones, or those between indices."""
def tensordot(a: TensorLike, b: TensorLike, dims: Integers = 2) -> Tensor:
    """The product of two tensors summed over pairs of dimensions: the last `dims` of `a` and the first of `b`, or two lists of dimensions."""
def threshold(input: TensorLike, threshold: Number, value: TensorLike) -> Tensor:
    """The input where it is above `threshold`, else `value`; the derivative there is 0."""
def tile(input: TensorLike, *dims: Integers) -> Tensor:
    """The input repeated along its last dimensions, and along new leading ones."""
@overload
def topk(input: TensorLike, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True) -> Extreme:
    """The pair (values, indices) of the `k` largest (or smallest) elements along `dim`, the most extreme first."""
@overload
def topk(input: TensorLike, k: builtins.int, axis: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True) -> Extreme:
    """The pair (values, indices) of the `k` largest (or smallest) elements along `dim`, the most extreme first."""
def trace(input: TensorLike) -> Tensor:
    """The sum of a matrix's diagonal."""
def transpose(input: TensorLike, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """Two axes exchanged."""
def transpose_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
@overload
def trapezoid(y: TensorLike, x: TensorLike | None = None, *, dx: builtins.float | None = None, dim: builtins.int = -1) -> Tensor:
    """The integral along `dim` by the trapezoidal rule, of samples at the points `x` or at distances `dx` (1)."""
@overload
def trapezoid(y: TensorLike, x: TensorLike | None = None, *, dx: builtins.float | None = None, axis: builtins.int = -1) -> Tensor:
    """The integral along `dim` by the trapezoidal rule, of samples at the points `x` or at distances `dx` (1)."""
@overload
def trapz(y: TensorLike, x: TensorLike | None = None, *, dx: builtins.float | None = None, dim: builtins.int = -1) -> Tensor:
    """The integral along `dim` by the trapezoidal rule, of samples at the points `x` or at distances `dx` (1)."""
@overload
def trapz(y: TensorLike, x: TensorLike | None = None, *, dx: builtins.float | None = None, axis: builtins.int = -1) -> Tensor:
    """The integral along `dim` by the trapezoidal rule, of samples at the points `x` or at distances `dx` (1)."""
def triangular_solve(b: TensorLike, A: TensorLike, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool = False) -> Any:
    """The solution X of A X = b, or of Aᵀ X = b with `transpose`, for a triangular A, and A itself."""
def tril(input: TensorLike, diagonal: builtins.int = 0) -> Tensor:
    """The lower triangle of a matrix, the rest zero."""
def tril_indices(row: builtins.int, col: builtins.int, offset: builtins.int = 0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def triu(input: TensorLike, diagonal: builtins.int = 0) -> Tensor:
    """The upper triangle of a matrix, the rest zero."""
def triu_indices(row: builtins.int, col: builtins.int, offset: builtins.int = 0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def true_divide(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, rounded to an integer if `rounding_mode` is 'floor' or 'trunc' (towards zero); integers divide to floats unless it is."""
def trunc(input: TensorLike) -> Tensor:
    """The integer part; the derivative is 0."""
def trunc_(self: Tensor) -> Tensor: ...
types: Any
uint16: DType
uint32: DType
uint64: DType
uint8: DType
@overload
def unbind(input: TensorLike, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The slices of a tensor along `dim`, as views that cannot be written in place."""
@overload
def unbind(input: TensorLike, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The slices of a tensor along `dim`, as views that cannot be written in place."""
def unbind_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
@overload
def unflatten(input: TensorLike, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
    """One dimension split into several with the same product of sizes; one size may be -1."""
@overload
def unflatten(input: TensorLike, axis: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
    """One dimension split into several with the same product of sizes; one size may be -1."""
def unfold(input: TensorLike, dimension: builtins.int, size: Integers, step: builtins.int) -> Tensor:
    """The windows of `size` slices along `dimension`, `step` apart, as a new last dimension: a view."""
def unfold_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
@overload
def unsafe_chunk(input: TensorLike, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The input cut into at most `chunks` pieces along `dim`."""
@overload
def unsafe_chunk(input: TensorLike, chunks: builtins.int, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The input cut into at most `chunks` pieces along `dim`."""
@overload
def unsafe_split(tensor: TensorLike, split_size_or_sections: Integers, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim`, all of one size (the last may be smaller) or of given sizes, as views that cannot be written in place."""
@overload
def unsafe_split(tensor: TensorLike, split_size_or_sections: Integers, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim`, all of one size (the last may be smaller) or of given sizes, as views that cannot be written in place."""
@overload
def unsafe_split_with_sizes(input: TensorLike, split_sizes: Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim` with given sizes, as views that cannot be written in place."""
@overload
def unsafe_split_with_sizes(input: TensorLike, split_sizes: Sequence[builtins.int], axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The pieces of a tensor along `dim` with given sizes, as views that cannot be written in place."""
@overload
def unsqueeze(input: TensorLike, dim: builtins.int) -> Tensor:
    """A new axis of size 1 at `dim`."""
@overload
def unsqueeze(input: TensorLike, axis: builtins.int) -> Tensor:
    """A new axis of size 1 at `dim`."""
def unsqueeze_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def vander(x: TensorLike, N: builtins.int | None = None, increasing: builtins.bool = False) -> Tensor:
    """The powers of the elements of a vector as columns, descending from N - 1, or from 0 with `increasing`."""
@overload
def var(input: TensorLike, dim: Integers | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: Number | None = None) -> Tensor:
    """The variance, Σ (x - mean)² / (n - correction)."""
@overload
def var(input: TensorLike, axis: Integers | None = None, unbiased: builtins.bool | None = None, keepdims: builtins.bool = False, *, ddof: Number | None = None) -> Tensor:
    """The variance, Σ (x - mean)² / (n - correction)."""
@overload
def var_mean(input: TensorLike, dim: Integers | None = None, unbiased: builtins.bool | None = None, *, correction: Number | None = None, keepdim: builtins.bool = False) -> tuple[Tensor, Tensor]:
    """The pair of `var` and `mean`."""
@overload
def var_mean(input: TensorLike, axis: Integers | None = None, unbiased: builtins.bool | None = None, *, ddof: Number | None = None, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]:
    """The pair of `var` and `mean`."""
def vdot(input: TensorLike, other: TensorLike) -> Tensor:
    """Σ conj(input) other of two vectors."""
def view(input: TensorLike, *size: Integers, dtype: DType | type | None = None) -> Tensor:
    """The same elements in another shape, or the same bytes as elements of a dtype, sharing memory; raises if that needs a copy."""
def view_as(input: TensorLike, other: TensorLike) -> Tensor:
    """The same elements in the shape of another tensor, sharing memory."""
def view_as_complex(input: TensorLike) -> Tensor:
    """The complex numbers whose real and imaginary parts are the last dimension: a view."""
def view_as_complex_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def view_as_real(input: TensorLike) -> Tensor:
    """The real and the imaginary parts of complex numbers as a new last dimension of size 2: a view."""
def view_as_real_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def view_copy(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any: ...
def vsplit(input: TensorLike, indices_or_sections: Integers | Tensor) -> tuple[Tensor, ...]:
    """The pieces of a tensor along dimension 0: so many equal ones, or those between indices; views."""
def vstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along their first dimension, vectors as rows."""
def xlog1py(input: TensorLike, other: TensorLike) -> Tensor:
    """input log(1 + other), and 0 where the input is 0, unless other is NaN; the derivatives at (0, -1) are -inf and 0."""
def xlogy(input: TensorLike, other: TensorLike) -> Tensor:
    """input log(other), and 0 where the input is 0, unless other is NaN; the derivatives at (0, 0) are -inf and 0."""
def xlogy_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
xpu: Any
def yv(order: Number, input: TensorLike) -> Tensor:
    """The Bessel function of the second kind of a real order, without derivative by the order. DLMF 10.2.3."""
def zeros(*sizes: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, symbol: str | None = None) -> Tensor: ...
def zeros_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False, memory_format: Any = None, symbol: str | None = None) -> Tensor: ...
def zeta(input: TensorLike, other: TensorLike) -> Tensor:
    """The zeta function of Hurwitz, the sum of (other + k)^-input over k >= 0, for input > 1. For other < 0, where input must be a whole number, value and derivatives by other are SciPy's, and those by input are NaN. DLMF 25.11.1."""
