"""The adapter of a function: of the framework that it is written for, which is imported on use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.frameworks.adapter import PLAIN, Adapter, AdapterOptions
from symgrad.frameworks.autograd import AutogradAdapter
from symgrad.frameworks.detection import framework_of, named_framework
from symgrad.frameworks.jax import JaxAdapter, JaxPair
from symgrad.frameworks.naming import name_of
from symgrad.frameworks.supplied_derivatives import NumpyAdapter
from symgrad.frameworks.symgrad_adapter import SymgradAdapter
from symgrad.frameworks.torch import TorchAdapter, TorchPair

__all__ = ["adapter_of"]

ADAPTERS: dict[str, type[Adapter]] = {"torch": TorchAdapter, "jax": JaxAdapter, "autograd": AutogradAdapter, "numpy": NumpyAdapter,
                                      "symgrad": SymgradAdapter}
PAIRS: dict[str, type[Adapter]] = {"torch": TorchPair, "jax": JaxPair}


def adapter_of(function: Callable[..., Any], framework: str | None = None, name: str | None = None, options: AdapterOptions = PLAIN) -> Adapter:
    """The adapter of a function, whose framework is detected if it is not named.

    Derivatives that come with a function (see `AdapterOptions`) get the values of torch or JAX for a function of these, arrays for others.
    Raises ValueError for an unknown framework, ImportError if it is not installed.

    >>> adapter_of(lambda x: x * x).framework
    'symgrad'
    """
    framework = named_framework(framework) if framework else framework_of(function)
    chosen = PAIRS.get(framework or "", NumpyAdapter) if options.given else ADAPTERS[framework or "symgrad"]
    return chosen(function, name or name_of(function), options)
