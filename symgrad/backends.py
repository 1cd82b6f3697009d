"""`torch.backends`: none of these libraries is used, and their settings, which programs change at their start, have no effect.

>>> import symgrad
>>> symgrad.backends.cudnn.benchmark = True
>>> symgrad.backends.mps.is_available(), symgrad.backends.cudnn.version()
(False, None)
"""

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

from symgrad.types.absent import explained, missing
from symgrad.types.queries import answers

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum"]

_AVAILABLE = answers(False, "Whether the library is used: False.", "is_available", "is_built")
_FLAGS = answers(nullcontext(), "A block in which the settings have other values: without effect.", "flags")


class Backend(ModuleType):
    """The module of a library that is not used: its settings are attributes."""

    def __init__(self, name: str, **members: Any):
        super().__init__(f"{__name__}.{name}", "A library that is not used; its settings have no effect.")
        self.__dict__.update(members, __path__=[])
        sys.modules[self.__name__] = self

    def __getattr__(self, name: str) -> Any:
        raise missing(self.__name__, name)


_PRECISION = {"allow_tf32": False, "fp32_precision": "none"}
_KERNELS = ("flash", "mem_efficient", "cudnn")
cpu = Backend("cpu", **answers("NumPy", "The library that chooses the instructions of the CPU: 'NumPy'.", "get_cpu_capability"))
cuda = Backend("cuda", is_built=_AVAILABLE["is_built"],
               matmul=SimpleNamespace(**_PRECISION, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True),
               **answers(False, "Whether attention uses such a kernel: False.", *(f"{kernel}_sdp_enabled" for kernel in _KERNELS)),
               **answers(True, "Whether attention is computed by its formula: True.", "math_sdp_enabled"),
               **answers(None, "Without effect: attention is computed by its formula.", *(f"enable_{kernel}_sdp" for kernel in (*_KERNELS, "math"))))
cudnn = Backend("cudnn", enabled=True, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True, **_FLAGS,
                conv=SimpleNamespace(**_PRECISION), rnn=SimpleNamespace(**_PRECISION), is_available=_AVAILABLE["is_available"],
                **answers(None, "The version of the library: None.", "version"))
mha = Backend("mha", **answers(False, "Whether modules of attention have another path without a graph: False.", "get_fastpath_enabled"),
              **answers(None, "Without effect: there is one path.", "set_fastpath_enabled"))
mkl = Backend("mkl", is_available=_AVAILABLE["is_available"])
mkldnn = Backend("mkldnn", enabled=False, deterministic=False, **_FLAGS, is_available=_AVAILABLE["is_available"])
mps = Backend("mps", **_AVAILABLE)
nnpack = Backend("nnpack", **_FLAGS, is_available=_AVAILABLE["is_available"])
openmp = Backend("openmp", is_available=_AVAILABLE["is_available"])
opt_einsum = Backend("opt_einsum", enabled=False, strategy=None, is_available=_AVAILABLE["is_available"])


__getattr__, __path__ = explained(__name__), list[str]()
