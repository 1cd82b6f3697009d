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
from symgrad.nn.losses import BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from symgrad.nn.module import Module
from symgrad.nn.parallel import DataParallel
from symgrad.nn.parameter import Buffer, Parameter

__all__ = ["BCELoss", "BCEWithLogitsLoss", "Buffer", "CELU", "CosineSimilarity", "CrossEntropyLoss", "DataParallel", "ELU", "Flatten", "GELU", "GLU",
           "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "L1Loss", "LeakyReLU", "Linear", "LogSigmoid", "LogSoftmax",
           "MSELoss", "Mish", "Module", "ModuleDict", "ModuleList", "NLLLoss", "PReLU", "PairwiseDistance", "Parameter", "ParameterList",
           "RReLU", "ReLU", "ReLU6", "SELU", "Sequential", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink",
           "Softsign", "Tanh", "Tanhshrink", "Threshold", "functional", "init", "parallel", "parameter", "utils"]
