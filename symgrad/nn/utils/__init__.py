"""Helpers for the parameters of a network and their gradients."""

from typing import TYPE_CHECKING

from symgrad.nn.utils import parameters, parametrizations, parametrize, prune
from symgrad.nn.utils.parameters import *
from symgrad.system.lazy import other_names

other_names(__name__, {"symgrad.nn.utils.parameters": "clip_grad convert_parameters fusion init memory_format spectral_norm stateless weight_norm",
                       "symgrad.nn.recurrent": "rnn"})

if not TYPE_CHECKING:  # a list that is computed hides all names from mypy
    __all__ = ["parametrizations", "parametrize", "prune", "rnn", "stateless", *parameters.__all__]
