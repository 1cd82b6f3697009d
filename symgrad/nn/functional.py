"""The functions behind the modules of `nn`, with torch's names: each is defined in the module of its family."""

from symgrad.nn import (
    activations,
    convolution,
    ctc,
    distances,
    likelihood,
    losses,
    multihead,
    normalization,
    padding,
    pooling,
    products,
    sampling,
)
from symgrad.nn.activations import *
from symgrad.nn.convolution import *
from symgrad.nn.ctc import *
from symgrad.nn.distances import *
from symgrad.nn.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout, gumbel_softmax
from symgrad.nn.likelihood import *
from symgrad.nn.losses import *
from symgrad.nn.multihead import *
from symgrad.nn.normalization import *
from symgrad.nn.padding import *
from symgrad.nn.pooling import *
from symgrad.nn.products import *
from symgrad.nn.sampling import *

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gumbel_softmax"]
__all__ += activations.__all__
__all__ += convolution.__all__
__all__ += ctc.__all__
__all__ += distances.__all__
__all__ += likelihood.__all__
__all__ += losses.__all__
__all__ += multihead.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += pooling.__all__
__all__ += products.__all__
__all__ += sampling.__all__
