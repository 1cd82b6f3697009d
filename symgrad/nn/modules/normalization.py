"""Modules of normalizations: of batches with running statistics, of instances, of layers and of groups of channels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from symgrad.arguments import check_dims
from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import empty, ones, tensor, zeros
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.modules.declarations import LazyModuleMixin, module_of
from symgrad.nn.modules.module import Module
from symgrad.nn.normalization import cross_map_lrn2d
from symgrad.nn.parameter import Parameter, UninitializedBuffer

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "CrossMapLRN2d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
           "LayerNorm", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d",
           "LocalResponseNorm", "RMSNorm", "SyncBatchNorm"]


class _NormBase(Module):
    """A weight and a bias for each channel if `affine`, and running statistics as buffers if `track_running_stats`."""

    _version = 2
    dimensions: ClassVar[tuple[int, ...]]
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    _shown = ":num_features eps momentum affine bias track_running_stats"

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
                 device: Any = None, dtype: Any = None, *, bias: bool = True):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, given in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(empty(num_features, device=device, dtype=dtype)) if given else None)
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if track_running_stats else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", tensor(0) if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the variance to 1 and the number of batches to 0."""
        if self.track_running_stats:
            for name, value in (("running_mean", 0), ("running_var", 1), ("num_batches_tracked", 0)):
                init.constant_(getattr(self, name), value)

    def reset_parameters(self) -> None:
        """Set the running statistics to their first values, the weight to 1 and the bias to 0."""
        self.reset_running_stats()
        for parameter, value in ((self.weight, 1.0), (self.bias, 0.0)):
            if self.affine and parameter is not None:
                init.constant_(parameter, value)

    def _check_input_dim(self, input: Tensor) -> None:
        check_dims(type(self).__name__, input, *self.dimensions, error=ValueError)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Mapping[str, Any], *rest: Any) -> None:
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats:  # before version 2 the batches were not counted
            state_dict.setdefault(f"{prefix}num_batches_tracked", tensor(0) if self.num_batches_tracked is None else self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Batch normalisation; without running statistics those of the input are used also in evaluation."""

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input; in training the running statistics move."""
        self._check_input_dim(input)
        tracked, momentum = self.training and self.track_running_stats, self.momentum
        if tracked and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked.add_(1)
        if momentum is None:  # the mean over all batches
            momentum = 1 / float(self.num_batches_tracked) if tracked and self.num_batches_tracked is not None else 0.0
        used = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if used else (None, None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, self.training or (self.running_mean is None and self.running_var is None),
                            momentum, self.eps)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalisation whose number of channels is that of the first input."""

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None,
                 dtype: Any = None, *, bias: bool = True):
        super().__init__(0, eps, momentum, False, False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self._without_shapes(("weight", "bias")[:1 + bias], device, dtype)
        if track_running_stats:
            self.running_mean, self.running_var = (UninitializedBuffer(device=device, dtype=dtype) for _ in range(2))
            self.num_batches_tracked = tensor(0)

    def _shapes(self, input: Tensor) -> dict[str, tuple[int, ...]]:
        self.num_features = input.shape[1]
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (self.num_features,))


def lazy_norms(*classes: type) -> list[Any]:
    """The classes of the same normalisations for as many channels as the first input has."""
    return [type(f"Lazy{of.__name__}", (_LazyNormBase, *of.__bases__), {
        "cls_to_become": of, "dimensions": vars(of)["dimensions"], "__module__": of.__module__,
        "__doc__": f"`{of.__name__}`, by default with parameters and running statistics, for as many channels as the first input has."})
        for of in classes]


class BatchNorm1d(_BatchNorm):
    """Each channel of (N, C) or (N, C, L) with mean 0 and variance 1, times weight plus bias.

    In training the mean and the variance are those of the input, and the buffers running_mean and running_var move towards them by `momentum`,
    or are their mean over all batches where that is None; in evaluation the buffers are used, if there are any.

    Raises ValueError for another number of dimensions and for one value per channel in training.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = nn.BatchNorm1d(2)
    >>> layer(symgrad.tensor([[0.0, 1.0], [2.0, 5.0]])).round(decimals=3).tolist(), layer.running_mean.tolist()
    ([[-1.0, -1.0], [1.0, 1.0]], [0.1, 0.30000000000000004])
    """

    dimensions = 2, 3


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for (N, C, H, W)."""

    dimensions = (4,)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for (N, C, D, H, W)."""

    dimensions = (5,)


LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = lazy_norms(BatchNorm1d, BatchNorm2d, BatchNorm3d)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation for any number of dimensions from two; there is one process, so that nothing has to be synchronised."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
                 process_group: Any = None, device: Any = None, dtype: Any = None, *, bias: bool = True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2 or not input.shape[1]:
            raise ValueError(f"SyncBatchNorm: the input must have channels in its second dimension, but its shape is {list(input.shape)}")

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """The module with every batch normalisation in it replaced by a `SyncBatchNorm` that has its parameters and buffers."""
        out = module
        if isinstance(module, _BatchNorm):
            out = SyncBatchNorm(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                                bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(out, name, getattr(module, name))
            out.training = module.training
        for name, child in module.named_children():
            out.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return out


class _InstanceNorm(_NormBase):
    """The normalisation, by default without parameters and running statistics; one member may come without the dimension of the batch."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False, track_running_stats: bool = False,
                 device: Any = None, dtype: Any = None, *, bias: bool = True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

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


class _Affine(Module):
    """A weight that starts at 1 and a bias that starts at 0, each of which may be missing."""

    weight: Parameter | None
    bias: Parameter | None

    def _register(self, shape: Any, device: Any, dtype: Any, **given: bool) -> None:
        for name, there in given.items():
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if there else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                init.constant_(parameter, float(name == "weight"))


class LayerNorm(_Affine):
    """(x - mean) / √(var + eps) weight + bias, with mean and variance over the last dimensions, which have the `normalized_shape`.

    Raises RuntimeError for an input of another shape.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.LayerNorm(2, eps=0.0)(symgrad.tensor([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """

    _shown = ":normalized_shape eps elementwise_affine bias"

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: Any = None, dtype: Any = None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._register(self.normalized_shape, device, dtype, weight=elementwise_affine, bias=elementwise_affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_Affine):
    """x / √(mean(x²) + eps) weight over the last dimensions, which have the `normalized_shape`; `eps` is by default that of the dtype.

    Raises RuntimeError for an input of another shape.
    """

    _shown = ":normalized_shape eps elementwise_affine"

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
                 dtype: Any = None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._register(self.normalized_shape, device, dtype, weight=elementwise_affine)

    def forward(self, x: Tensor) -> Tensor:
        """The normalised input."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Affine):
    """Normalisation over groups of channels, which are the second dimension, and all further dimensions, for each member of the batch.

    Raises ValueError unless the number of channels is divisible, RuntimeError for an input with another number of channels.
    """

    _shown = ":num_groups :num_channels eps affine bias"

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None, *,
                 bias: bool = True):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_groups={num_groups} must divide num_channels={num_channels}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._register(num_channels, device, dtype, weight=affine, bias=affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


LocalResponseNorm = module_of("LocalResponseNorm", F.local_response_norm, "size alpha beta k", module=__name__, shown=":size alpha beta k")
CrossMapLRN2d = module_of("CrossMapLRN2d", cross_map_lrn2d, "size alpha beta k", module=__name__, shown=":size alpha beta k")
