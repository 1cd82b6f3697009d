"""The functions behind the modules of `nn`, with torch's names: each is defined in the module of its family."""

from typing import TYPE_CHECKING

from symgrad.nn.activations import *
from symgrad.nn.convolution import *
from symgrad.nn.likelihood import *
from symgrad.nn.losses import *
from symgrad.nn.multihead import *
from symgrad.nn.normalization import *
from symgrad.nn.padding import *
from symgrad.nn.pooling import *
from symgrad.nn.products import *
from symgrad.nn.sampling import *

if not TYPE_CHECKING:  # a list that is computed hides all names from mypy
    __all__ = [name for name, value in globals().items() if callable(value) and name[0] != "_"]
