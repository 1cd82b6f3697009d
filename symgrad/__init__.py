"""symgrad: numbers, formulas and proofs in one differentiable graph, behind PyTorch's names."""

from typing import Any

from symgrad import autograd
from symgrad import expressions as _expressions
from symgrad import surface as _surface
from symgrad.autograd import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from symgrad.checking import Report, check, example
from symgrad.creation import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    initial_seed,
    linspace,
    manual_seed,
    normal,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    symbols,
    tensor,
    zeros,
    zeros_like,
)
from symgrad.devices import FORMATS as _FORMATS
from symgrad.devices import LAYOUTS as _LAYOUTS
from symgrad.devices import device, get_default_device, layout, memory_format, set_default_device
from symgrad.dtypes import ALIASES, DTYPES, get_default_dtype, set_default_dtype
from symgrad.dtypes import DType as dtype
from symgrad.extending import elementwise, linear, multilinear, primitive
from symgrad.lift import FUNCTIONS
from symgrad.operators import NUMPY_FUNCTIONS as _NUMPY_FUNCTIONS
from symgrad.printing import get_printoptions, set_printoptions
from symgrad.tensor import Size, Tensor

__version__ = "0.1.0"

globals().update(FUNCTIONS)
globals().update(DTYPES)
globals().update({alias: DTYPES[name] for alias, name in ALIASES.items()})
globals().update(_LAYOUTS)
globals().update(_FORMATS)
