"""Optimizers, with torch's names, options and results: they change parameters in place, by their gradients."""

from symgrad.optim import lr_scheduler
from symgrad.optim.first_order import ASGD, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop
from symgrad.optim.lbfgs import LBFGS
from symgrad.optim.matrices import Adafactor, Muon
from symgrad.optim.newton import Newton, NewtonCG
from symgrad.optim.optimizer import Optimizer, swap_in_optimizer_params_and_state
from symgrad.system.lazy import lazy, other_names

__all__ = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Newton", "NewtonCG", "Optimizer",
           "RAdam", "RMSprop", "Rprop", "SGD", "lr_scheduler", "swap_in_optimizer_params_and_state", "swa_utils"]

__getattr__, __dir__ = lazy(__name__, {"swa_utils": "symgrad.optim.swa_utils"})  # which brings nn
other_names(__name__, {"symgrad.optim.first_order": "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd",
                       "symgrad.optim.matrices": "_adafactor _muon"})
