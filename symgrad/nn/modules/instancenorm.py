"""Modules that normalise each channel of each member of a batch."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.nn import functional as F
from symgrad.nn.modules.batchnorm import _LazyNormBase, _NormBase

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
                names, kind = " and ".join(f'"{prefix}{name}"' for name in found), type(self).__name__
                error_msgs.append(f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If state_dict is a "
                                  f"checkpoint saved before 0.4.0, this may be expected because {kind} does not track running stats by default since "
                                  f"0.4.0. Remove these keys, or set track_running_stats=True in {kind}.")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _get_no_batch_dim(self) -> int:
        return self.dimensions[0]

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        self._check_input_dim(input)
        alone = input.ndim == self._get_no_batch_dim()
        dim = 0 if alone else 1
        if input.shape[dim] != self.num_features:
            if self.affine:
                raise ValueError(f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: {input.shape[dim]}.")
            warnings.warn(f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in num_features, "
                          f"which is not used because affine=False", stacklevel=2)
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


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """`InstanceNorm1d`, with `affine` and running statistics by default, for as many channels as the second dimension of the first input has."""

    cls_to_become = InstanceNorm1d
    dimensions = 2, 3


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """`InstanceNorm2d`, with `affine` and running statistics by default, for as many channels as the second dimension of the first input has."""

    cls_to_become = InstanceNorm2d
    dimensions = 3, 4


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """`InstanceNorm3d`, with `affine` and running statistics by default, for as many channels as the second dimension of the first input has."""

    cls_to_become = InstanceNorm3d
    dimensions = 4, 5
