"""Neural networks, with torch's names: modules, parameters, layers, losses, and functions."""

from typing import TYPE_CHECKING

from symgrad.nn import common_types, functional, grad, init, modules, parallel, parameter, utils
from symgrad.nn.modules import *
from symgrad.nn.parallel import DataParallel as DataParallel
from symgrad.nn.parameter import *
from symgrad.system.lazy import lazy

if not TYPE_CHECKING:  # a list that is computed hides all names from mypy
    __all__ = ["DataParallel", "common_types", "functional", "grad", "init", "modules", "parallel", "parameter", "utils", *modules.__all__,
               *parameter.__all__]
    __getattr__, __dir__ = lazy(__name__, {})  # an absent name says what to use instead
