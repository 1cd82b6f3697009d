"""Parametrizations by norms: weights with a length of their own, and weights divided by their largest singular value."""

from __future__ import annotations

from functools import partial
from typing import Any

from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.factories.random_tensors import randn
from symgrad.nn import functional as F
from symgrad.nn.modules.module import Module
from symgrad.nn.normalization import norm_except_dim
from symgrad.nn.utils.parametrize import register_parametrization

__all__ = ["spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """g v / |v|, the norm over all axes but one."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The weight of a length and a direction."""
        return weight_v * (weight_g / norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The length and the direction of a weight."""
        return norm_except_dim(weight, 2, self.dim), weight


def _former_names(name: str, state_dict: Any, prefix: str, *_: Any) -> None:
    """Rename the tensors of the former weight_norm, which was no parametrization."""
    former = f"{prefix}{name}_g", f"{prefix}{name}_v"
    if all(key in state_dict for key in former):
        for i, key in enumerate(former):
            state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Make a weight g v / |v|, with parameters g of its length and v of its direction; returns the module.

    The norm is over all axes but `dim`: there is a length for each output; with None one for the whole weight.
    (Salimans and Kingma, Weight normalization, 2016.)

    Raises ValueError for a name without a tensor.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = weight_norm(nn.Linear(4, 3))
    >>> [(name, tuple(parameter.shape)) for name, parameter in layer.parametrizations.named_parameters()]
    [('weight.original0', (3, 1)), ('weight.original1', (3, 4))]
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(partial(_former_names, name))
    return module


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which a power iteration follows while the module is trained."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim, self.eps = dim % weight.ndim, eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            for which, size in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(which, F.normalize(randn(size, dtype=weight.dtype), dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix with a row for each index of the axis `dim`."""
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix: Tensor, count: int) -> None:
        with no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(matrix @ self._v, dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.conj().T @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """The weight divided by u* W v."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        return weight / self._u.clone().vdot(matrix @ self._v.clone())

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself: where its largest singular value is 1, it stays as it is."""
        return value


def spectral_norm(module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Any:
    """Divide a weight by its largest singular value, so that the linear map has norm 1; returns the module.

    A power iteration of `n_power_iterations` steps follows the singular vectors each time the weight is read in training. The weight is a
    matrix with a row for each index of the axis `dim`, by default 0. (Miyato et al., Spectral normalization, 2018.)

    Raises ValueError for a name without a tensor, IndexError for an axis that is not there.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = spectral_norm(nn.Linear(4, 3), n_power_iterations=100)
    >>> symgrad.allclose(layer.weight.svd()[1].max(), symgrad.tensor(1.0))
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, 0 if dim is None else dim, eps))
