"""The former weight normalisation, which computes the weight in a hook before each forward."""

from __future__ import annotations

import warnings
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.nn.normalization import norm_except_dim
from symgrad.nn.parameter import Parameter
from symgrad.nn.utils.weight_hooks import hook_of, remove_hook, weight_without

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook: weight = g v / |v|, with the parameters g and v of a module under the names weight_g and weight_v."""

    def __init__(self, name: str, dim: int | None):
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """The weight of a module's length and direction."""
        g, v = (getattr(module, f"{self.name}_{which}") for which in "gv")
        return v * (g / norm_except_dim(v, 2, self.dim))

    def remove(self, module: Any) -> None:
        """Make the weight a parameter again, with its value."""
        weight = self.compute_weight(module).detach()
        for name in (self.name, f"{self.name}_g", f"{self.name}_v"):
            delattr(module, name)
        setattr(module, self.name, Parameter(weight))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Make a weight g v / |v|, computed before each forward; deprecated in favour of `nn.utils.parametrizations.weight_norm`. Returns the module.

    Raises RuntimeError for a weight that has one already, ValueError for one without a shape.
    """
    warnings.warn("nn.utils.weight_norm is deprecated; use nn.utils.parametrizations.weight_norm", FutureWarning, stacklevel=2)
    weight = weight_without(WeightNorm, module, name)
    hook = WeightNorm(name, dim)
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight, 2, hook.dim).detach()))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make a weight a parameter again, with its value; returns the module. Raises ValueError for one without `weight_norm`."""
    hook = hook_of(WeightNorm, module, name)
    hook.remove(module)
    remove_hook(hook, module._forward_pre_hooks)
    return module
