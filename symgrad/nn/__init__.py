"""Neural networks, with torch's names: modules, parameters, layers, losses, and functions."""

from symgrad.nn import functional, init, modules, parallel, parameter, utils
from symgrad.nn.modules import *  # noqa: F403  the names that its __all__ lists
from symgrad.nn.parallel import DataParallel
from symgrad.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = ["Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional", "init", "modules", "parallel",
           "parameter", "utils"]
__all__ += modules.__all__
