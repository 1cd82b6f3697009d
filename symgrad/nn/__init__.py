"""Neural networks, with torch's names: modules, parameters, layers, losses, and functions."""

from symgrad.nn import functional, init, parallel, parameter, utils
from symgrad.nn.containers import ModuleDict, ModuleList, ParameterList, Sequential
from symgrad.nn.layers import Flatten, Identity, Linear, LogSigmoid, LogSoftmax, ReLU, Sigmoid, Softmax, Softplus, Tanh
from symgrad.nn.losses import BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from symgrad.nn.module import Module
from symgrad.nn.parallel import DataParallel
from symgrad.nn.parameter import Buffer, Parameter

__all__ = ["BCELoss", "BCEWithLogitsLoss", "Buffer", "CrossEntropyLoss", "DataParallel", "Flatten", "Identity", "L1Loss", "Linear", "LogSigmoid",
           "LogSoftmax", "MSELoss", "Module", "ModuleDict", "ModuleList", "NLLLoss", "Parameter", "ParameterList", "ReLU", "Sequential", "Sigmoid",
           "Softmax", "Softplus", "Tanh", "functional", "init", "parallel", "parameter", "utils"]
