"""Neural networks, with torch's names: modules, parameters, layers, losses, and functions."""

from symgrad.nn import common_types, functional, grad, init, modules, parallel, parameter, utils
from symgrad.nn.modules import *
from symgrad.nn.parallel import DataParallel
from symgrad.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter, factory_kwargs

__all__ = ["Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "common_types", "factory_kwargs", "functional",
           "grad", "init", "modules", "parallel", "parameter", "utils"]
__all__ += modules.__all__
