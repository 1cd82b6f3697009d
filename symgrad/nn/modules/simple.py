"""Modules that call one function: activations, distances, dropout, patches, padding, pooling, resizing; and attention with several heads."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from symgrad.arguments import check_dims
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import empty
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.activations import check_probability
from symgrad.nn.modules.declarations import OfFunction, _ntuple, module_of
from symgrad.nn.modules.linear import NonDynamicallyQuantizableLinear
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter

CosineSimilarity = module_of("CosineSimilarity", F.cosine_similarity, module=__name__, shown="")
PairwiseDistance = module_of("PairwiseDistance", F.pairwise_distance, module=__name__, shown="")


class _DropoutNd(OfFunction):
    """A function with a probability, which is the identity in evaluation. Raises ValueError for a probability outside [0, 1]."""

    _shown = "p inplace"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        check_probability(self.p)


_dropout = partial(module_of, module=__name__, base=_DropoutNd)

Dropout, Dropout1d = _dropout("Dropout", F.dropout), _dropout("Dropout1d", F.dropout1d)
Dropout2d, Dropout3d = _dropout("Dropout2d", F.dropout2d), _dropout("Dropout3d", F.dropout3d)
AlphaDropout = _dropout("AlphaDropout", F.alpha_dropout, called=("p", "training"))
FeatureAlphaDropout = _dropout("FeatureAlphaDropout", F.feature_alpha_dropout, called=("p", "training"))

Unfold = module_of("Unfold", F.unfold, "kernel_size dilation padding stride", module=__name__)
Fold = module_of("Fold", F.fold, "output_size kernel_size dilation padding stride", module=__name__)
ChannelShuffle = module_of("ChannelShuffle", F.channel_shuffle, "groups", module=__name__)
PixelShuffle = module_of("PixelShuffle", F.pixel_shuffle, "upscale_factor", module=__name__)
PixelUnshuffle = module_of("PixelUnshuffle", F.pixel_unshuffle, "downscale_factor", module=__name__)


class _Pad(Module):
    """A border in `rank` dimensions, with the widths before and after each, the last dimension first; one number stands for all."""

    rank: ClassVar[int]
    mode: ClassVar[str]
    value: float | None = None
    _shown = ":padding"

    def __init__(self, padding: int | Sequence[int]):
        super().__init__()
        self.padding = _ntuple(2 * self.rank)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """The input with the border. Raises RuntimeError, ValueError or NotImplementedError for one that does not fit."""
        if self.mode == "circular":
            check_dims(type(self).__name__, input, self.rank + 1, self.rank + 2, error=ValueError)
        return F.pad(input, self.padding, self.mode, self.value)


class _ConstantPadNd(_Pad):
    _shown = "padding value"

    def __init__(self, padding: int | Sequence[int], value: float):
        super().__init__(padding)
        self.value = value


class _ZeroPad(_ConstantPadNd):
    _shown = ":padding"

    def __init__(self, padding: int | Sequence[int]):
        super().__init__(padding, 0.0)


def _padding(kind: str, mode: str, text: str, bases: Sequence[tuple[type, ...]]) -> list[Any]:
    doc = f"""The input with a border of {text}, in the last dimensions.

    `padding` has the widths before and after, for the last dimension first; one number stands for all, and a negative one cuts off.
    """
    return [type(f"{kind}Pad{rank}d", given, {"rank": rank, "mode": mode, "__module__": __name__, "__doc__": doc})
            for rank, given in zip((1, 2, 3), bases)]


ConstantPad1d, ConstantPad2d, ConstantPad3d = _constant = _padding("Constant", "constant", "one number", [(_ConstantPadNd,)] * 3)
ZeroPad1d, ZeroPad2d, ZeroPad3d = _padding("Zero", "constant", "zeros", [(_ZeroPad, base) for base in _constant])
CircularPad1d, CircularPad2d, CircularPad3d = _padding("Circular", "circular", "elements from the other end", [(_Pad,)] * 3)
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _padding("Reflection", "reflect", "the elements mirrored at the ends", [(_Pad,)] * 3)
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _padding("Replication", "replicate", "the first and the last element", [(_Pad,)] * 3)


class _Pool(OfFunction):
    """A pooling whose stride is that of the kernel if none is given."""

    rank: ClassVar[int | None] = None  # of sizes that are kept for each dimension
    _shown = "kernel_size stride padding"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        own = self.__dict__
        if own.get("stride", 0) is None and "norm_type" not in own:
            self.stride = self.kernel_size
        if self.rank is not None:
            for name in ("kernel_size", "stride", "padding"):
                setattr(self, name, _ntuple(self.rank)(getattr(self, name)))


class _Unpool(_Pool):
    """The way back, to images of a size that the stride leaves open."""

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:  # type: ignore[override]
        """The elements at their places."""
        return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPool(OfFunction):
    """The largest elements of windows at pseudorandom distances, with one of output_size and output_ratio."""

    rank: ClassVar[int]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        size, ratio, name = self.output_size, self.output_ratio, type(self).__name__
        self.register_buffer("_random_samples", self.__dict__.pop("_random_samples"))
        if (size is None) is (ratio is None):
            raise ValueError(f"{name}: give either output_size or output_ratio, not {size} and {ratio}")
        for word in ("kernel_size", "output_size", "output_ratio"):
            if (given := getattr(self, word)) is not None:
                setattr(self, word, _ntuple(self.rank)(given))
        if ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"{name}: output_ratio must lie between 0 and 1, but it is {ratio}")


def _pooling(name: str, function: str, parameters: str, ranks: tuple[int, ...] = (1, 2, 3), base: Any = _Pool, **own: Any) -> list[Any]:
    """The modules for so many dimensions."""
    return [module_of(f"{name}{rank}d", getattr(F, f"{function}{rank}d"), parameters, module=__name__, base=base, **own) for rank in ranks]


MaxPool1d, MaxPool2d, MaxPool3d = _pooling("MaxPool", "max_pool", "kernel_size stride padding dilation return_indices ceil_mode",
                                          shown="kernel_size stride padding dilation ceil_mode")
[AvgPool1d] = _pooling("AvgPool", "avg_pool", "kernel_size stride padding ceil_mode count_include_pad", (1,), rank=1)
AvgPool2d, AvgPool3d = _pooling("AvgPool", "avg_pool", "kernel_size stride padding ceil_mode count_include_pad divisor_override", (2, 3))
LPPool1d, LPPool2d, LPPool3d = _pooling("LPPool", "lp_pool", "norm_type kernel_size stride ceil_mode", shown="norm_type kernel_size stride ceil_mode")
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = _pooling("AdaptiveAvgPool", "adaptive_avg_pool", "output_size", shown="output_size")
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = _pooling("AdaptiveMaxPool", "adaptive_max_pool", "output_size return_indices",
                                                                  shown="output_size")
MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = (
    _pooling("MaxUnpool", "max_unpool", "kernel_size stride padding", (rank,), _Unpool, rank=rank)[0] for rank in (1, 2, 3))
FractionalMaxPool2d, FractionalMaxPool3d = (
    _pooling("FractionalMaxPool", "fractional_max_pool", "kernel_size output_size output_ratio return_indices _random_samples", (rank,),
            _FractionalMaxPool, shown="", rank=rank)[0] for rank in (2, 3))


class Flatten(Module):
    """The axes from `start_dim` to `end_dim` merged into one: by default all but the first, the batch axis."""

    _shown = "start_dim end_dim"

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The input with merged axes."""
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """The axis `dim` split into axes of sizes `unflattened_size`.

    Raises TypeError for sizes that are not a tuple of ints.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Unflatten(1, (2, 3))(symgrad.zeros(5, 6)).shape
    torch.Size([5, 2, 3])
    """

    _shown = "dim unflattened_size"

    def __init__(self, dim: int, unflattened_size: Any):
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)) or not all(isinstance(size, int) for size in unflattened_size):
            raise TypeError(f"Unflatten: unflattened_size must be a tuple of integers, not {unflattened_size!r}")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """The input with the axis split."""
        return input.unflatten(self.dim, self.unflattened_size)


class Upsample(Module):
    """The input at the points of another size, which is given, or its factor, as `nn.functional.interpolate`.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Upsample(scale_factor=2, mode="bilinear")(symgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 8, 8])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                 recompute_scale_factor: bool | None = None):
        super().__init__()
        self.name, self.size = type(self).__name__, size
        self.scale_factor = tuple(map(float, scale_factor)) if isinstance(scale_factor, tuple) else float(scale_factor) if scale_factor else None
        self.mode, self.align_corners, self.recompute_scale_factor = mode, align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The input at the points of the size. Raises ValueError or NotImplementedError for one that does not fit the mode."""
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, recompute_scale_factor=self.recompute_scale_factor)

    def extra_repr(self) -> str:
        """The size or its factor, and the mode."""
        given = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{given}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images (N, C, H, W) at another size, by the nearest elements."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images (N, C, H, W) at another size, bilinear between the centers of the outer elements."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


_module = partial(module_of, module=__name__)

ReLU = _module("ReLU", F.relu)
LeakyReLU, ELU, CELU = _module("LeakyReLU", F.leaky_relu), _module("ELU", F.elu), _module("CELU", F.celu)
SELU, SiLU, Mish = _module("SELU", F.selu), _module("SiLU", F.silu), _module("Mish", F.mish)
Tanh, Sigmoid, LogSigmoid = _module("Tanh", F.tanh), _module("Sigmoid", F.sigmoid), _module("LogSigmoid", F.logsigmoid)
Softsign, Tanhshrink = _module("Softsign", F.softsign), _module("Tanhshrink", F.tanhshrink)
Hardsigmoid, Hardswish = _module("Hardsigmoid", F.hardsigmoid, shown=""), _module("Hardswish", F.hardswish, shown="")
Threshold, Softplus = _module("Threshold", F.threshold, "threshold value inplace"), _module("Softplus", F.softplus)
GELU, GLU = _module("GELU", F.gelu, shown="approximate!r"), _module("GLU", F.glu)
Hardshrink, Softshrink = _module("Hardshrink", F.hardshrink, shown=":lambd"), _module("Softshrink", F.softshrink, shown=":lambd")
Softmax, Softmin, LogSoftmax = _module("Softmax", F.softmax, "dim"), _module("Softmin", F.softmin, "dim"), _module("LogSoftmax", F.log_softmax, "dim")
RReLU = _module("RReLU", F.rrelu, "lower upper inplace")


class Hardtanh(Module):
    """The input limited to [min_val, max_val]; `min_value` and `max_value` are deprecated names of the bounds."""

    _shown = "min_val max_val ?inplace"

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None,
                 max_value: float | None = None):
        super().__init__()
        for old, new, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                warnings.warn(f"Hardtanh: {old} is deprecated; use {new}", FutureWarning, stacklevel=2)
        self.min_val, self.max_val = min_val if min_value is None else min_value, max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"Hardtanh: max_val must be greater than min_val, but they are {self.max_val} and {self.min_val}")

    def forward(self, input: Tensor) -> Tensor:
        """The limited input."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """The input limited to [0, 6]."""

    _shown = "?inplace"

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)


class PReLU(Module):
    """The input where it is positive, else the input times a parameter: one, or one for each channel.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.PReLU()(symgrad.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    weight: Parameter
    _shown = "num_parameters"

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the parameter to its first value again."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The input with a slope where it is negative."""
        return F.prelu(input, self.weight)


class Softmax2d(Module):
    """The softmax over the channels of an image (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """softmax(input) over the channels."""
        check_dims("Softmax2d", input, 3, 4, error=ValueError)
        return F.softmax(input, -3)


class MultiheadAttention(Module):
    """Attention of queries to keys and values in `num_heads` heads: (L, N, embed_dim), (S, N, kdim) and (S, N, vdim) give (L, N, embed_dim).

    The result is a pair with the weights (N, L, S), which are the mean over the heads, (N, num_heads, L, S) without `average_attn_weights`,
    or None without `need_weights`. Boolean masks are True where nothing is attended. With `batch_first` N is the first dimension; it may be missing.
    (Vaswani et al., Attention is all you need, 2017.)

    Raises ValueError and AssertionError for numbers of heads that do not fit, AssertionError and RuntimeError for shapes that do not.

    >>> import symgrad
    >>> from symgrad import nn
    >>> x = symgrad.ones(3, 5, 4)
    >>> output, weights = nn.MultiheadAttention(4, 2)(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([3, 5, 4]), torch.Size([5, 3, 3]))
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Any = None,
                 dtype: Any = None):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"MultiheadAttention: embed_dim={embed_dim} and num_heads={num_heads} must be positive")
        super().__init__()
        self.embed_dim, self.kdim, self.vdim = embed_dim, embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.num_heads, self.dropout, self.batch_first, self.head_dim = num_heads, dropout, batch_first, embed_dim // num_heads
        if embed_dim % num_heads:
            raise AssertionError(f"MultiheadAttention: num_heads={num_heads} must divide embed_dim={embed_dim}")
        separate = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        shapes: dict[str, Any] = {"in_proj_weight": (3 * embed_dim, embed_dim), **dict.fromkeys(separate)}
        if not self._qkv_same_embed_dim:
            shapes = {**{name: (embed_dim, size) for name, size in separate.items()}, "in_proj_weight": None}
        shapes["in_proj_bias"] = 3 * embed_dim if bias else None
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(empty(shape, device=device, dtype=dtype)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            setattr(self, name, Parameter(empty(1, 1, embed_dim, device=device, dtype=dtype)) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "bias_k", "bias_v"):
            parameter = getattr(self, name)
            if parameter is not None and name.endswith("weight"):
                init.xavier_uniform_(parameter)
            elif parameter is not None and name == "in_proj_bias":
                init.constant_(parameter, 0.0)
                init.constant_(getattr(self.out_proj, "bias"), 0.0)  # noqa: B009  it is there where this one is
            elif parameter is not None:
                init.xavier_normal_(parameter)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """The outputs and the weights."""
        first = self.batch_first and query.ndim == 3
        given = tuple(traced.transpose(x, 0, 1) for x in (query, key, value)) if first else (query, key, value)
        out, weights = F.multi_head_attention_forward(
            given[0], given[1], given[2], self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask,
            not self._qkv_same_embed_dim, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        return traced.transpose(out, 0, 1) if first else out, weights

if not TYPE_CHECKING:  # a list that is computed hides all names from mypy
    __all__ = [name for name, value in globals().items() if isinstance(value, type) and value.__module__ == __name__ and name[0] != "_"]
