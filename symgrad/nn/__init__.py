"""Neural networks, with torch's names: modules, parameters, layers, losses, and functions."""

from typing import Any

from symgrad.nn import common_types, functional, grad, init, modules, parallel, parameter, utils
from symgrad.nn.modules import *  # noqa: F403  the names that its __all__ lists
from symgrad.nn.parallel import DataParallel
from symgrad.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter, factory_kwargs
from symgrad.types.absent import missing as _missing

__all__ = ["Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "common_types", "factory_kwargs", "functional",
           "grad", "init", "modules", "parallel", "parameter", "utils"]
__all__ += modules.__all__


def __getattr__(name: str) -> Any:
    raise _missing(__name__, name)
