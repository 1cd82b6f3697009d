"""Modules of batch normalisation, with running statistics, and the base of all normalisations with one parameter for each channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from symgrad.arguments import check_dims
from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import empty, ones, tensor, zeros
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.modules.lazy import LazyModuleMixin
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter, UninitializedBuffer

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "SyncBatchNorm"]


class _NormBase(Module):
    """A weight and a bias for each channel if `affine`, and running statistics as buffers if `track_running_stats`."""

    _version = 2
    dimensions: ClassVar[tuple[int, ...]]
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

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

    def extra_repr(self) -> str:
        """The parameters."""
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
                f"track_running_stats={self.track_running_stats}")

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
