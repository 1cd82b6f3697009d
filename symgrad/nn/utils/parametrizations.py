"""Parametrizations: weights with a length of their own, weights divided by their largest singular value, and orthogonal weights."""

from __future__ import annotations

from functools import partial
from typing import Any

from symgrad.arguments import check_option
from symgrad.autograd.modes import no_grad
from symgrad.dtypes.dtype import finfo
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import eye, zeros
from symgrad.factories.random_tensors import randn
from symgrad.nn import functional as F
from symgrad.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from symgrad.nn.modules.module import Module
from symgrad.nn.normalization import norm_except_dim
from symgrad.nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


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


def _tensor(module: Any, name: str) -> Tensor:
    """The tensor of a name. Raises ValueError if there is none."""
    if not isinstance(weight := getattr(module, name, None), Tensor):
        raise ValueError(f"parametrizations: {type(module).__name__} has no parameter or buffer {name!r}")
    return weight


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which a power iteration follows while the module is trained."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"spectral_norm: dim={dim} is out of range for a weight of shape {list(weight.shape)}")
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations must be positive, but it is {n_power_iterations}")
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
    matrix with a row for each index of the axis `dim`, by default that of the outputs. (Miyato et al., Spectral normalization, 2018.)

    Raises ValueError for a name without a tensor, IndexError for an axis that is not there.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = spectral_norm(nn.Linear(4, 3), n_power_iterations=100)
    >>> symgrad.allclose(layer.weight.svd()[1].max(), symgrad.tensor(1.0))
    True
    """
    weight = _tensor(module, name)
    if dim is None:  # that of the outputs
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


def _orthonormal(A: Tensor) -> Tensor:
    """The orthonormal columns of A = Q R with a positive diagonal of R."""
    Q, R = traced.linalg_qr(A)
    return Q * R.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A matrix with orthonormal columns (or rows, if there are more columns), from an unconstrained one of the same shape.

    The exponential and the Cayley map take the lower triangle as a skew-symmetric matrix. Householder's reflections stand below the diagonal,
    which has signs. With a base the result is multiplied by it, so that the first matrix is the one that was there.
    """

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("orthogonal: orthogonal_map='householder' is for real weights")
        self.shape, self.orthogonal_map, self.use_trivialization = weight.shape, orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        """The matrix of a parameter."""
        wide = X.shape[-2] < X.shape[-1]
        X = X.mT if wide else X
        n, k = X.shape[-2:]
        if self.orthogonal_map == "householder":
            A = traced.tril(X, -1)
            Q = traced.householder_product(A, 2 / (1 + (A * A).sum(-2))) * X.detach().diagonal(dim1=-2, dim2=-1).trunc().unsqueeze(-2)
        else:
            A = traced.tril(X)
            A = A if n == k else traced.cat([A, zeros(*X.shape[:-1], n - k, dtype=X.dtype)], -1)
            A = A - A.mH
            if self.orthogonal_map == "matrix_exp":
                Q = traced.matrix_exp(A)
            else:
                one = eye(n, dtype=X.dtype)
                Q = traced.linalg_solve(one - A / 2, one + A / 2)
            Q = traced.narrow(Q, -1, 0, k)
        if self.use_trivialization:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        """The parameter of a matrix, whose columns are made orthonormal."""
        if Q.shape != self.shape:
            raise ValueError(f"orthogonal: the weight has the shape {list(self.shape)}, not {list(Q.shape)}")
        with no_grad():
            wide = Q.shape[-2] < Q.shape[-1]
            tall = Q.mT if wide else Q
            n, k = tall.shape[-2:]
            if self.use_trivialization:
                full = tall if n == k else traced.cat([tall, randn(*tall.shape[:-1], n - k, dtype=Q.dtype)], -1)
                near = (full.mH @ full).allclose(eye(n, dtype=Q.dtype), atol=10 * n * finfo(Q.dtype).eps)
                self.base = full.clone() if near else _orthonormal(full)
                return -eye(*Q.shape[-2:], dtype=Q.dtype).expand(Q.shape).contiguous()
            if self.orthogonal_map != "householder":
                raise NotImplementedError(f"orthogonal: a weight with {self.orthogonal_map!r} can be set with use_trivialization=True only")
            A, tau = tall.geqrf()
            signs = A.diagonal(dim1=-2, dim2=-1).sign()
            signs = traced.where(tau == 0, -signs, signs)
            A.diagonal(dim1=-2, dim2=-1).copy_(signs)
            return A.mT if wide else A


def orthogonal(module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Any:
    """Make a weight, or each of a batch of matrices, orthogonal; returns the module.

    The map from all matrices is "matrix_exp", "cayley" or "householder": by default the first for square and complex matrices, else the last. With
    `use_trivialization` the weight stays as it is where it is orthogonal. (Lezcano-Casado, Trivializations for gradient-based optimization on
    manifolds, 2019.)

    Raises ValueError for a name without a tensor, for a vector and for an unknown map.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = orthogonal(nn.Linear(3, 5))
    >>> symgrad.allclose(layer.weight.T @ layer.weight, symgrad.eye(3))
    True
    """
    weight = _tensor(module, name)
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: the weight must have at least 2 dimensions, but its shape is {list(weight.shape)}")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    check_option("orthogonal", "orthogonal_map", orthogonal_map, ("matrix_exp", "cayley", "householder"), ValueError)
    return register_parametrization(module, name, _Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True)
