"""Names of torch that are absent on purpose, by families, each with what to use instead (the guide page `absent.md`); and torch's modules of devices.

These are a table: queries answer that there is no such device, and what needs one raises, as in torch without it.

>>> import symgrad
>>> symgrad.cuda.is_available(), symgrad.cuda.device_count()
(False, 0)
>>> symgrad.device("cuda:0" if symgrad.cuda.is_available() else "cpu")
device(type='cpu')
>>> symgrad.backends.cudnn.benchmark = True  # without effect
"""

from __future__ import annotations

import functools
import os
import sys
from contextlib import nullcontext
from fnmatch import fnmatchcase
from types import ModuleType, SimpleNamespace
from typing import IO, Any

from symgrad.compat.legacy import CUDA_TYPES
from symgrad.layouts.devices import device, unavailable_error
from symgrad.system.lazy import ADVISERS, missing

ADVICE = "the only device is the CPU; leave the device out"
# Of each module what it answers, by the functions that do, and the functions that raise
ANSWERS: dict[str, list[tuple[Any, str]]] = {
    "accelerator": [(False, "is_available"), (0, "device_count"), (None, "current_accelerator")],
    "cpu": [(True, "is_available is_initialized"), (1, "device_count"), ("cpu", "current_device"), (None, "set_device synchronize")],
    "cuda": [
        (False, "is_available is_initialized is_bf16_supported is_tf32_supported is_current_stream_capturing"),
        (0, "device_count memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached"),
        ([], "get_arch_list get_gencode_flags"),
        (None, "manual_seed manual_seed_all seed seed_all empty_cache reset_peak_memory_stats reset_max_memory_allocated"),
    ],
    "mps": [(False, "is_available"), (0, "device_count")],
    "xpu": [
        (False, "is_available is_initialized is_bf16_supported is_tf32_supported"),
        (0, "device_count memory_allocated max_memory_allocated memory_reserved max_memory_reserved"),
        (None, "manual_seed manual_seed_all seed seed_all empty_cache"),
    ],
    "backends.cpu": [("NumPy", "get_cpu_capability")],
    "backends.cuda": [
        (False, "is_built flash_sdp_enabled mem_efficient_sdp_enabled cudnn_sdp_enabled"), (True, "math_sdp_enabled"),
        (None, "enable_flash_sdp enable_mem_efficient_sdp enable_cudnn_sdp enable_math_sdp"),
    ],
    "backends.cudnn": [(False, "is_available"), (None, "version"), (nullcontext(), "flags")],
    "backends.mha": [(False, "get_fastpath_enabled"), (None, "set_fastpath_enabled")],
    "backends.mkldnn": [(False, "is_available"), (nullcontext(), "flags")],
    "backends.mps": [(False, "is_available is_built")],
    "backends.nnpack": [(False, "is_available"), (nullcontext(), "flags")],
    **dict.fromkeys(("backends.mkl", "backends.openmp", "backends.opt_einsum"), [(False, "is_available")]),
}
REQUESTS = {
    "accelerator": """current_device_idx current_device_index current_stream device_index empty_cache empty_host_cache get_device_capability
        get_memory_info max_memory_allocated max_memory_reserved memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats
        reset_peak_memory_stats set_device_idx set_device_index set_stream synchronize""",
    "cuda": """Event Stream can_device_access_peer current_device current_stream default_stream get_device_capability get_device_name
        get_device_properties get_rng_state get_rng_state_all init initial_seed ipc_collect mem_get_info memory_stats memory_summary set_device
        set_rng_state set_rng_state_all set_stream stream synchronize utilization""",
    "mps": """Event compile_shader current_allocated_memory driver_allocated_memory empty_cache get_rng_state load_metallib manual_seed
        recommended_max_memory seed set_per_process_memory_fraction set_rng_state synchronize""",
    "xpu": """Event Stream current_device current_stream get_device_capability get_device_name get_device_properties get_rng_state init initial_seed
        mem_get_info set_device set_rng_state set_stream stream synchronize""",
}
_PRECISION = {"allow_tf32": False, "fp32_precision": "none"}
SETTINGS: dict[str, dict[str, Any]] = {
    "cuda": {"has_half": False, "has_magma": False, **CUDA_TYPES},
    "backends.cuda": {"matmul": SimpleNamespace(**_PRECISION, allow_fp16_reduced_precision_reduction=True,
                                                allow_bf16_reduced_precision_reduction=True)},
    "backends.cudnn": {"enabled": True, "benchmark": False, "benchmark_limit": 10, "deterministic": False, "allow_tf32": True,
                       "conv": SimpleNamespace(**_PRECISION), "rnn": SimpleNamespace(**_PRECISION)},
    "backends.mkldnn": {"enabled": False, "deterministic": False},
    "backends.opt_einsum": {"enabled": False, "strategy": None},
}


class _DeviceModule(ModuleType):
    """A module whose functions are made from the tables on first access; its settings are attributes."""

    def __init__(self, name: str, **members: Any):
        super().__init__(f"symgrad.{name}", f"`torch.{name}`: there is no such device or library, and settings have no effect.")
        self.__dict__.update(members, **SETTINGS.get(name, {}))
        self._name = name
        sys.modules[self.__name__] = self

    def __getattr__(self, name: str) -> Any:
        for value, names in ANSWERS.get(self._name, ()):
            if name in names.split():
                return self._function(name, functools.partial(_answer, value), f"Return {value!r}.")
        if name in REQUESTS.get(self._name, "").split():
            return self._function(name, functools.partial(_refuse, self._name), "Raise an error, as torch without the device does.")
        raise missing(self.__name__, name, advice(name) or ADVICE)

    def __dir__(self) -> list[str]:
        answers = " ".join(names for _, names in ANSWERS.get(self._name, ()))
        return sorted({*self.__dict__, *answers.split(), *REQUESTS.get(self._name, "").split()})

    def _function(self, name: str, function: Any, doc: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            return function()

        call.__name__, call.__qualname__, call.__doc__, call.__module__ = name, name, doc, self.__name__
        setattr(self, name, call)
        return call


def _answer(value: Any) -> Any:
    return [*value] if isinstance(value, list) else value


def _refuse(name: str) -> Any:
    if name == "accelerator":
        raise RuntimeError("accelerator: symgrad computes with NumPy on the CPU. Ask accelerator.is_available() first.")
    raise unavailable_error(device(name))


class _Selected:
    """A block that selects a GPU; entering it raises AssertionError, unless the index is None or negative, which selects none."""

    def __init__(self, device: Any):
        self.index = getattr(device, "index", device)

    def __enter__(self) -> None:
        if self.index is not None and not (isinstance(self.index, int) and self.index < 0):
            raise unavailable_error(device("cuda"))

    def __exit__(self, *exception: Any) -> None:
        """Do nothing, since no GPU was selected."""


BACKENDS = {name: _DeviceModule(f"backends.{name}") for name in "cpu cuda cudnn mha mkl mkldnn mps nnpack openmp opt_einsum".split()}
DEVICES = {name: _DeviceModule(name) for name in ("accelerator", "cpu", "mps", "xpu")}
DEVICES |= {"backends": _DeviceModule("backends", **BACKENDS), "cuda": _DeviceModule("cuda", device=_Selected)}

types = ModuleType("symgrad.types", "torch's names for the types of arguments.")
types.__dict__.update(Device=device | str | int | None, FileLike=str | os.PathLike[str] | IO[bytes], Number=int | float | bool)
sys.modules[types.__name__] = types


# Patterns of names, and what to use instead; names of submodules are written with dots
FAMILIES = {
    "sparse_*_tensor sparse_compressed* *_indices_copy values_copy indices_copy hspmm dsmm hsmm saddmm smm spmm sspaddmm resize_as_sparse_":
        "tensors are dense; use symgrad.sparse for matrices of SciPy",
    "ao quantization quantize* quantized* dequantize fake_quantize* fbgemm* choose_qparams* fused_moving* empty_quantized int_repr q_*":
        "tensors are not quantized; use floats",
    "cudnn_* miopen_* mkldnn_* batch_norm_* native_norm embedding_bag":
        "kernels have no names of their own; use the function of nn.functional",
    "amp *autocast* GradScaler": "nothing is cast automatically; choose dtypes with .to(dtype)",
    "jit fx export compiler Script* import_ir_module* parse_* fork wait unify_type_list merge_type* sym_constrain* sym_fresh* cond while_loop":
        "calls are recorded as they run; use symgrad.compile",
    "Event Stream OutOfMemoryError get_device_module is_vulkan_available mtia": "the only device is the CPU; leave the device out",
    "library classes utils.cpp_extension": "declare an op with symgrad.elementwise or symgrad.primitive, or call your own by func.foreign",
    "hub package utils.model_zoo": "nothing is downloaded; give symgrad.load a file",
    "distributions": "sample with rand, randn, multinomial and random.gamma, and write log probabilities as formulas",
    "futures multiprocessing": "use Python's multiprocessing, symgrad.map, or the workers of utils.data.DataLoader",
    "nested": "tensors are rectangular; use nn.utils.rnn for sequences",
    "masked": "tensors have no masks; use where and masked_fill",
    "monitor profiler autograd.profiler* utils.benchmark utils.flop_counter": "use cProfile and timeit, and symgrad.explain_nan for values",
    "overrides": "define __array_function__ of NumPy, or a subclass of Tensor",
    "serialization storage": "use save, load, UntypedStorage and TypedStorage of symgrad",
    "onnx": "use to_python, to_c, to_jax or to_torch",
    "version torch_version utils.collect_env": "use symgrad.__version__ and numpy.show_config",
    "*_num_threads *_num_interop_threads": "threads are those of NumPy's BLAS; set OMP_NUM_THREADS",
    "eig lstsq matrix_rank solve symeig": "PyTorch has removed it; use symgrad.linalg",
    "testing.assert_* testing.make_tensor": "use numpy.testing.assert_allclose, which takes tensors, and randn",
    "optim.SparseAdam": "gradients are dense; use optim.Adam",
    "utils.data.*Pipe utils.data.datapipes": "use a Dataset or an IterableDataset",
    "distributed.rpc distributed.*Store distributed.fsdp distributed.tensor distributed.launch":
        "processes are those of MPI, and tensors are whole in each; start with mpiexec, and use send, recv and DistributedDataParallel",
}


def advice(name: str) -> str | None:
    """What to use instead of a name of torch; None if the name is in no family.

    >>> advice("autocast")
    'nothing is cast automatically; choose dtypes with .to(dtype)'
    """
    return next((sentence for patterns, sentence in FAMILIES.items() if any(fnmatchcase(name, pattern) for pattern in patterns.split())), None)


ADVISERS.append(advice)
