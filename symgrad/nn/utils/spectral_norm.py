"""The former spectral normalisation, which computes the weight in a hook before each forward."""

from __future__ import annotations

from typing import Any

from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.factories.random_tensors import randn
from symgrad.nn import functional as F
from symgrad.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from symgrad.nn.parameter import Parameter
from symgrad.nn.utils.weight_hooks import hook_of, remove_hook, weight_without

__all__ = ["SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook: weight = weight_orig / (uᵀ W v), where a power iteration in training moves the buffers weight_u and weight_v to singular vectors."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations must be positive, but it is {n_power_iterations}")
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix with a row for each index of the axis `dim`."""
        return weight.movedim(self.dim, 0).flatten(1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """The weight divided by its largest singular value."""
        weight, u, v = (getattr(module, f"{self.name}_{which}") for which in ("orig", "u", "v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t() @ u, dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix @ v, dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # so that the next call does not overwrite what the derivatives read
        return weight / u.dot(matrix @ v)

    def remove(self, module: Any) -> None:
        """Make the weight a parameter again, with its value."""
        weight = self.compute_weight(module, False).detach()
        for name in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + name)
        module.register_parameter(self.name, Parameter(weight))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


class SpectralNormStateDictHook:
    """Adds the version to the metadata of a state."""

    def __init__(self, fn: SpectralNorm):
        self.fn = fn

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions, key = local_metadata.setdefault("spectral_norm", {}), f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"spectral_norm: the metadata of the state has the key {key!r} already")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Computes v for a state before version 1, which has the normalised weight in its place."""

    def __init__(self, fn: SpectralNorm):
        self.fn = fn

    def __call__(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str], unexpected_keys: list[str],
                 error_msgs: list[str]) -> None:
        key = prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(f"{self.fn.name}.version")
        new = version is None and key not in state_dict and all(key + end in state_dict for end in ("_orig", "_u", "_v"))
        if version is not None and version >= 1 or new:
            return
        missing = [key + end for end in ("_orig", "", "_u") if key + end not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else [])
            return
        with no_grad():
            weight, u = state_dict[f"{key}_orig"], state_dict[f"{key}_u"]
            sigma = (weight / state_dict.pop(key)).mean()
            matrix = self.fn.reshape_weight_to_matrix(weight)
            v = matrix.pinverse() @ u  # with u proportional to W v
            state_dict[f"{key}_v"] = v * (sigma / u.dot(matrix @ v))


def spectral_norm(module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Any:
    """Divide a weight by its largest singular value before each forward; returns the module. `parametrizations.spectral_norm` is the newer one.

    The weight is a matrix with a row for each index of the axis `dim`, by default that of the outputs. (Miyato et al., Spectral normalization, 2018.)

    Raises RuntimeError for a weight that has one already, ValueError for a weight that is None or has no shape.
    """
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    weight = weight_without(SpectralNorm, module, name, module._parameters)
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    sizes = hook.reshape_weight_to_matrix(weight).shape
    vectors = {which: F.normalize(randn(n, dtype=weight.dtype), dim=0, eps=eps) for which, n in zip("uv", sizes)}
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    for which, vector in vectors.items():
        module.register_buffer(f"{name}_{which}", vector)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(SpectralNormStateDictHook(hook))
    module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Make a weight a parameter again, with its value; returns the module. Raises ValueError for one without `spectral_norm`."""
    hook = hook_of(SpectralNorm, module, name)
    hook.remove(module)
    remove_hook(hook, module._forward_pre_hooks, module._state_dict_hooks, module._load_state_dict_pre_hooks)
    return module
