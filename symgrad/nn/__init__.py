"""Neural networks, with torch's names: modules, parameters, layers, losses, and functions."""

from symgrad.nn import functional, init, parallel, parameter, utils
from symgrad.nn.activation_modules import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    CosineSimilarity,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    Mish,
    PairwiseDistance,
    PReLU,
    ReLU6,
    RReLU,
    SiLU,
    Softshrink,
    Softsign,
    Tanhshrink,
    Threshold,
)
from symgrad.nn.containers import ModuleDict, ModuleList, ParameterList, Sequential
from symgrad.nn.layers import Flatten, Identity, Linear, LogSigmoid, LogSoftmax, ReLU, Sigmoid, Softmax, Softmax2d, Softmin, Softplus, Tanh
from symgrad.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CrossEntropyLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    PoissonNLLLoss,
    SmoothL1Loss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from symgrad.nn.module import Module
from symgrad.nn.parallel import DataParallel
from symgrad.nn.parameter import Buffer, Parameter

__all__ = ["BCELoss", "BCEWithLogitsLoss", "Buffer", "CELU", "CosineEmbeddingLoss", "CosineSimilarity", "CrossEntropyLoss", "DataParallel", "ELU",
           "Flatten", "GELU", "GLU", "GaussianNLLLoss", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss",
           "HuberLoss", "Identity", "KLDivLoss", "L1Loss", "LeakyReLU", "Linear", "LogSigmoid", "LogSoftmax", "MSELoss",
           "MarginRankingLoss", "Mish", "Module", "ModuleDict", "ModuleList", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
           "MultiMarginLoss", "NLLLoss", "PReLU", "PairwiseDistance", "Parameter", "ParameterList", "PoissonNLLLoss", "RReLU", "ReLU",
           "ReLU6", "SELU", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin",
           "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
           "functional", "init", "parallel", "parameter", "utils"]
