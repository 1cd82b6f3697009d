"""The modules, which can be imported from files with torch's names, too."""

from typing import TYPE_CHECKING

from symgrad.nn.modules.container import *
from symgrad.nn.modules.conv import *
from symgrad.nn.modules.linear import *
from symgrad.nn.modules.loss import *
from symgrad.nn.modules.module import Module as Module
from symgrad.nn.modules.normalization import *
from symgrad.nn.modules.rnn import *
from symgrad.nn.modules.simple import *
from symgrad.nn.modules.transformer import *
from symgrad.system.lazy import other_names

other_names(__name__, {
    "symgrad.nn.modules.declarations": "lazy utils",
    "symgrad.nn.modules.linear": "sparse", "symgrad.nn.modules.loss": "adaptive", "symgrad.nn.modules.normalization": "batchnorm instancenorm",
    "symgrad.nn.modules.simple": "activation channelshuffle distance dropout flatten fold padding pixelshuffle pooling upsampling",
})

if not TYPE_CHECKING:  # a list that is computed hides all names from mypy
    __all__ = [name for name, value in globals().items() if isinstance(value, type)]
