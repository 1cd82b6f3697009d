"""Modules that normalise each channel of each member of a batch."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.nn import functional as F
from symgrad.nn.modules.batchnorm import _NormBase, lazy_norms

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """The normalisation, by default without parameters and running statistics; one member may come without the dimension of the batch."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False, track_running_stats: bool = False,
                 device: Any = None, dtype: Any = None, *, bias: bool = True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Mapping[str, Any], strict: bool, missing_keys: list[str],
                              unexpected_keys: list[str], error_msgs: list[str]) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            found = [name for name in ("running_mean", "running_var") if state_dict.pop(prefix + name, None) is not None]
            if found:
                error_msgs.append(f"{type(self).__name__} with track_running_stats=False has no running statistics: {prefix}{' and '.join(found)} of "
                                  f"a checkpoint from before 0.4.0. Remove them, or set track_running_stats=True")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        self._check_input_dim(input)
        alone = input.ndim == self.dimensions[0]
        dim = 0 if alone else 1
        if input.shape[dim] != self.num_features:
            text = f"{type(self).__name__}: the input has {input.shape[dim]} channels, and num_features is {self.num_features}"
            if self.affine:
                raise ValueError(text)
            warnings.warn(f"{text}, which has no meaning without affine", stacklevel=2)
        out = F.instance_norm(traced.unsqueeze(input, 0) if alone else input, self.running_mean, self.running_var, self.weight, self.bias,
                              self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps)
        return traced.squeeze(out, 0) if alone else out


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each member of (N, C, L), or of (C, L), with mean 0 and variance 1, with `affine` times weight plus bias.

    With `track_running_stats` running means over the batch are kept in training and used in evaluation.

    Raises ValueError for another number of dimensions, for another number of channels with `affine`, and for one element per channel.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.InstanceNorm1d(1)(symgrad.tensor([[[0.0, 2.0]]])).round(decimals=3)
    tensor([[[-1.,  1.]]])
    """

    dimensions = 2, 3


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for (N, C, H, W), or (C, H, W)."""

    dimensions = 3, 4


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for (N, C, D, H, W), or (C, D, H, W)."""

    dimensions = 4, 5


LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = lazy_norms(InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
