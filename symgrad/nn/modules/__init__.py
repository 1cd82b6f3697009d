"""The modules, in files with torch's names."""

from typing import TYPE_CHECKING

from symgrad.nn.modules.activation import *
from symgrad.nn.modules.adaptive import *
from symgrad.nn.modules.attention import *
from symgrad.nn.modules.batchnorm import *
from symgrad.nn.modules.channelshuffle import *
from symgrad.nn.modules.container import *
from symgrad.nn.modules.conv import *
from symgrad.nn.modules.distance import *
from symgrad.nn.modules.dropout import *
from symgrad.nn.modules.flatten import *
from symgrad.nn.modules.fold import *
from symgrad.nn.modules.instancenorm import *
from symgrad.nn.modules.linear import *
from symgrad.nn.modules.loss import *
from symgrad.nn.modules.module import Module as Module
from symgrad.nn.modules.normalization import *
from symgrad.nn.modules.padding import *
from symgrad.nn.modules.pixelshuffle import *
from symgrad.nn.modules.pooling import *
from symgrad.nn.modules.rnn import *
from symgrad.nn.modules.sparse import *
from symgrad.nn.modules.transformer import *
from symgrad.nn.modules.upsampling import *

if not TYPE_CHECKING:  # a list that is computed hides all names from mypy
    __all__ = [name for name, value in globals().items() if isinstance(value, type)]
