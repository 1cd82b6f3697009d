"""symgrad: numbers, formulas and proofs in one differentiable graph, behind PyTorch's names."""

import importlib as _importlib
import math as _math
import sys as _sys
from typing import Any

if "-m" in (_program := getattr(_sys, "argv", [])[:1]) or "symgrad" in "".join(_program):  # the command line may start: interrupts end it from now on
    from symgrad.reports import process as _process

    _process.begin()

import numpy as _numpy

from symgrad.system.restoring import collection_paused as _collection_paused

with _collection_paused():  # the functions and classes that are made here stay
    from symgrad import autograd, random
    from symgrad.compat import legacy as _legacy
    from symgrad.compat import members as _members
    from symgrad.compat import storage as _storage
    from symgrad.compat.legacy import TYPES as _TYPES
    from symgrad.compat.modules import DEVICES as _DEVICES
    from symgrad.compat.storage import STORAGES as _STORAGES
    from symgrad.dtypes.dtype import ALIASES as _ALIASES
    from symgrad.dtypes.dtype import DTYPES as _DTYPES
    from symgrad.dtypes.dtype import DType as dtype
    from symgrad.engine.traced import FUNCTIONS as _FUNCTIONS
    from symgrad.layouts.devices import FORMATS as _FORMATS
    from symgrad.layouts.devices import LAYOUTS as _LAYOUTS
    from symgrad.methods import counting as _counting
    from symgrad.methods.assemble import assemble as _assemble
    from symgrad.methods.surface import METHODS_AS_FUNCTIONS as _METHODS_AS_FUNCTIONS
    from symgrad.methods.surface import SURFACE as _SURFACE
    from symgrad.methods.surface import method_as_function as _method_as_function
    from symgrad.public import METHODS as _METHODS
    from symgrad.system.lazy import missing as _missing

__version__ = "0.1.0"

# glibc gives the memory of freed arrays back and asks for it again, page by page, until it has seen one large block come and go: arrays of some
# kilobytes cost twice as much until then. Nothing is written to this one.
_numpy.empty(2**25 - 2**14, _numpy.uint8)

inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None

where = _counting.where  # called with a condition alone it gives indices, as no op does

globals().update(_DTYPES | _LAYOUTS | _FORMATS, **{alias: _DTYPES[name] for alias, name in _ALIASES.items()})
globals().update({name: kind for name, kind in (_TYPES | _STORAGES).items() if not name.startswith("UInt")}, Storage=_storage.TypedStorage)

# Public names are looked up when they are first asked for, in the modules that have them: those that `import symgrad` loads, and others
_LAZY = ("distributed", "fft", "func", "linalg", "nn", "optim", "sparse", "special", "testing", "utils", "visual")
_LOADED = {
    "autograd": """
        enable_grad inference_mode is_anomaly_check_nan_enabled is_anomaly_enabled is_grad_enabled is_inference_mode_enabled no_grad
        set_grad_enabled""",
    "compat.legacy": "set_default_tensor_type",
    "compat.members": "is_distributed",
    "compat.modules": "types",
    "compat.settings": """
        are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision
        is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_anomaly_enabled set_deterministic_debug_mode
        set_float32_matmul_precision set_flush_denormal set_warn_always sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum
        use_deterministic_algorithms""",
    "compat.storage": "is_storage TypedStorage UntypedStorage",
    "dtypes.dtype": "can_cast finfo get_default_dtype iinfo promote_types set_default_dtype",
    "engine.tensor": "Size Tensor",
    "factories.creation": """
        arange as_tensor asarray empty empty_like empty_permuted empty_strided eye from_numpy frombuffer full full_like linspace logspace
        ones ones_like range scalar_tensor symbols tril_indices triu_indices zeros zeros_like""",
    "factories.exchange": "from_dlpack from_file to_dlpack",
    "factories.windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    "graph": "return_types",
    "layouts.devices": "device get_default_device layout memory_format set_default_device",
    "methods.counting": """
        bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bucketize count_nonzero frexp gcd histc isin
        isneginf isposinf isreal lcm nextafter nonzero searchsorted signbit unique unique_consecutive""",
    "methods.extending": "elementwise linear multilinear primitive",
    "methods.predicates": """
        allclose broadcast_shapes broadcast_tensors equal is_complex is_conj is_floating_point is_inference is_nonzero is_same_size
        is_tensor numel result_type typename""",
    "methods.printing": "get_printoptions set_printoptions",
    "public": "tensor",
    "random": """
        _standard_gamma bernoulli binomial default_generator Generator get_rng_state initial_seed manual_seed multinomial normal poisson
        rand rand_like randint randint_like randn randn_like randperm seed set_rng_state""",
}
_LATER = {
    "algebra.identity": "identical",
    "carriers.duck": "Unrecordable",
    "checks": "check",
    "codegen.printers": "to_dot to_latex",
    "codegen.sources": "to_c to_jax to_python to_torch",
    "compiled.function": "compile",
    "diagnose.kinks.kinks": "kinks",
    "diagnose.nans": "explain_nan",
    "frameworks.calling": "example",
    "func": "vmap",
    "linalg": "lobpcg pca_lowrank svd_lowrank",
    "matrixcalc": "matrix_expr matrix_gradient matrix_hessian",
    "nn.activations": "feature_dropout native_dropout",
    "nn.convolution": "convolution",
    "nn.functional": """
        adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
        cosine_similarity max_pool1d max_pool1d_with_indices max_pool2d max_pool3d native_channel_shuffle pairwise_distance pdist pixel_shuffle
        pixel_unshuffle rms_norm selu_ threshold_""",
    "nn.native": """
        adaptive_max_pool1d alpha_dropout alpha_dropout_ batch_norm binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dropout dropout_
        embedding feature_alpha_dropout feature_alpha_dropout_ feature_dropout_ group_norm hinge_embedding_loss instance_norm kl_div layer_norm
        margin_ranking_loss poisson_nll_loss rrelu rrelu_ triplet_margin_loss""",
    "nn.normalization": "native_batch_norm native_group_norm native_layer_norm norm_except_dim",
    "nn.padding": "constant_pad_nd",
    "nn.products": "cdist embedding_renorm_",
    "nn.recurrent": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "nn.sampling": "affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d",
    "optim.models": "to_scipy",
    "proofs.prove": "prove",
    "reports.report": "Report",
    "scanning": "accuracy",
    "symbolic.conversion": "from_sympy",
    "symbolic.operations": "op_from_sympy",
    "symbolic.tracing": "to_sympy",
    "utils.mapping": "map",
    "utils.serialization": "load save",
}
_HOMES = {name: module for table in (_LOADED, _LATER) for module, names in table.items() for name in names.split()}

_assemble(_METHODS, _legacy.METHODS, _members.METHODS, _storage.METHODS, nodes=_members.NODE_METHODS)
globals().update(_DEVICES, **_SURFACE)

__all__ = sorted({name for name in (*globals(), *" ".join(_LOADED.values()).split(), *_FUNCTIONS, *_METHODS_AS_FUNCTIONS, "load",  # noqa: PLE0605
                                    "save")
                  if name[0] != "_" and name != "Any" and (type(globals().get(name)) is not type(_sys) or name in ("autograd", "fft", "random"))})


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return _importlib.import_module(f"symgrad.{name}")
    if name in _HOMES:
        found = getattr(_importlib.import_module(f"symgrad.{_HOMES[name]}"), name)
    elif name in _FUNCTIONS:
        found = _FUNCTIONS[name]
    elif name in _METHODS_AS_FUNCTIONS:
        found = _method_as_function(name)
    else:
        raise _missing(__name__, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES, *_LAZY})
