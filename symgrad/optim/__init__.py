"""Optimizers, with torch's names, options and results: they change parameters in place, by their gradients."""

from symgrad.optim import lr_scheduler
from symgrad.optim._adafactor import Adafactor
from symgrad.optim._muon import Muon
from symgrad.optim._stateless import swap_in_optimizer_params_and_state
from symgrad.optim.adadelta import Adadelta
from symgrad.optim.adagrad import Adagrad
from symgrad.optim.adam import Adam, AdamW
from symgrad.optim.adamax import Adamax
from symgrad.optim.asgd import ASGD
from symgrad.optim.lbfgs import LBFGS
from symgrad.optim.nadam import NAdam
from symgrad.optim.newton import Newton, NewtonCG
from symgrad.optim.optimizer import Optimizer
from symgrad.optim.radam import RAdam
from symgrad.optim.rmsprop import RMSprop
from symgrad.optim.rprop import Rprop
from symgrad.optim.sgd import SGD
from symgrad.system.lazy import lazy

__all__ = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Newton", "NewtonCG", "Optimizer",
           "RAdam", "RMSprop", "Rprop", "SGD", "lr_scheduler", "swap_in_optimizer_params_and_state", "swa_utils"]

__getattr__, __dir__ = lazy(__name__, {"swa_utils": "symgrad.optim.swa_utils"})  # which brings nn
