"""The parameters of a network: norms of gradients, vectors, fused layers, layouts, calls with others, and weights that hooks compute from others."""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Iterable
from typing import Any

from symgrad import func
from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.factories.creation import tensor
from symgrad.factories.random_tensors import randn
from symgrad.methods.predicates import typename
from symgrad.nn import functional as F
from symgrad.nn.modules.conv import Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from symgrad.nn.modules.module import Module
from symgrad.nn.normalization import norm_except_dim
from symgrad.nn.parameter import Parameter, is_lazy
from symgrad.ops.rules import constant

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "convert_conv2d_weight_memory_format",
           "convert_conv3d_weight_memory_format", "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
           "get_total_norm", "parameters_to_vector", "remove_spectral_norm", "remove_weight_norm", "skip_init", "spectral_norm",
           "vector_to_parameters", "weight_norm"]

Parameters = Tensor | Iterable[Tensor]


def _listed(parameters: Parameters) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(tensors: Parameters, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """The norm of all tensors as one vector: (Σ |x|^p)^(1/p), the largest |x| for p = inf.

    Raises RuntimeError for a norm that is not finite, if `error_if_nonfinite`.

    >>> import symgrad
    >>> get_total_norm([symgrad.tensor([3.0]), symgrad.tensor([4.0])])
    tensor(5.)
    """
    norm_type = float(constant("get_total_norm", "norm_type", norm_type))
    with no_grad():
        norms = [FUNCTIONS["norm"](t, norm_type) for t in _listed(tensors)]
        total = FUNCTIONS["norm"](FUNCTIONS["stack"](norms), norm_type) if norms else tensor(0.0)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"get_total_norm: the norm of order {norm_type} is {total.item()}. Pass error_if_nonfinite=False to take it")
    return total


def clip_grads_with_norm_(parameters: Parameters, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients, in place, by max_norm / (total_norm + 1e-6) where that is less than 1."""
    with no_grad():
        factor = (float(constant("clip_grad_norm_", "max_norm", max_norm)) / (total_norm + 1e-6)).clamp(max=1.0)
        for gradient in _gradients(_listed(parameters)):
            gradient.mul_(factor.to(gradient.dtype))


def clip_grad_norm_(parameters: Parameters, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: bool | None = None) -> Tensor:
    """Scale the gradients, in place, so that their norm as one vector is at most `max_norm`; return the norm before.

    Raises RuntimeError for a norm that is not finite, if `error_if_nonfinite`.

    >>> import symgrad
    >>> x = symgrad.tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> clip_grad_norm_(x, 1.0)
    tensor(10.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    given = _listed(parameters)
    total = get_total_norm(_gradients(given), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(given, max_norm, total)
    return total


def clip_grad_value_(parameters: Parameters, clip_value: float, foreach: bool | None = None) -> None:
    """Limit each element of the gradients, in place, to [-clip_value, clip_value]."""
    largest = float(constant("clip_grad_value_", "clip_value", clip_value))
    with no_grad():
        for gradient in _gradients(_listed(parameters)):
            gradient.clamp_(min=-largest, max=largest)


def clip_grad_norm(parameters: Parameters, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:
    """The deprecated name of `clip_grad_norm_`."""
    warnings.warn("nn.utils.clip_grad_norm is deprecated; use clip_grad_norm_", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters as one vector, differentiably.

    >>> import symgrad
    >>> parameters_to_vector([symgrad.ones(2, 2), symgrad.zeros(1)])
    tensor([1., 1., 1., 1., 0.])
    """
    return FUNCTIONS["cat"]([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the parameters to slices of one vector, as views of its memory. Raises TypeError for a vector that is not a Tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"parameters: give a Tensor, not {typename(vec)}")
    start: Any = 0
    for parameter in parameters:
        parameter.data = vec[start:start + parameter.numel()].view(parameter.shape).data
        start += parameter.numel()


def _fused(w: Any, b: Any, axis: int, mean: Any, var: Any, eps: float, weight: Any, bias: Any) -> tuple[Parameter, Parameter]:
    factor = traced.rsqrt(var + eps) if weight is None else weight * traced.rsqrt(var + eps)
    shift = -mean * factor if b is None else (b - mean) * factor
    shift = shift if bias is None else shift + bias
    shape = (*(1,) * axis, -1, *(1,) * (w.ndim - axis - 1))
    return (Parameter((w * factor.reshape(shape)).detach().to(w.dtype), w.requires_grad),
            Parameter(shift.detach().to(w.dtype if b is None else b.dtype), b is not None and b.requires_grad))


def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
                         bn_b: Tensor | None, transpose: bool = False) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a convolution, or of a transposed one, that is followed by a batch normalisation with running statistics."""
    return _fused(conv_w, conv_b, 1 if transpose else 0, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor,
                           bn_b: Tensor) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a linear map that is followed by a batch normalisation with running statistics."""
    return _fused(linear_w, linear_b, 0, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fuse(module: Any, bn: Any, axis: int) -> Any:
    if module.training or bn.training or bn.running_mean is None or bn.running_var is None:
        raise AssertionError("fuse: both modules must be in evaluation, and the normalisation must have running statistics")
    out = copy.deepcopy(module)
    out.weight, out.bias = _fused(out.weight, out.bias, axis, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return out


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what a convolution and the batch normalisation after it do in evaluation.

    Raises AssertionError for modules in training, and without running statistics.
    """
    return _fuse(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear map that does what a linear map and the batch normalisation after it do in evaluation.

    Raises AssertionError for modules in training, without running statistics, and for numbers of features that differ.

    >>> import symgrad
    >>> from symgrad import nn
    >>> linear, bn, x = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval(), symgrad.ones(4, 2)
    >>> symgrad.allclose(fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)))
    True
    """
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(f"fuse: bn.num_features={bn.num_features} must be 1 or linear.out_features={linear.out_features}")
    return _fuse(linear, bn, 0)


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters are still to be set. Here they have their first values: there is no device without memory.

    Raises RuntimeError for a class that is no module, or takes no device.
    """
    if not issubclass(module_cls, Module) or "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(f"skip_init: {module_cls.__name__} must be a module that takes a device")
    return module_cls(*args, **kwargs)


def _convert(module: Any, kinds: tuple[type[Module], ...], memory_format: Any) -> Any:
    for part in module.modules():
        if isinstance(part, kinds):
            weight: Any = part._parameters["weight"]
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Write the weights of all two-dimensional convolutions in a module anew, in an order such as `channels_last`; returns the module."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Write the weights of all three-dimensional convolutions in a module anew, in an order such as `channels_last_3d`; returns the module."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)


def functional_call(module: Any, parameters_and_buffers: dict[str, Any], args: Any = None, kwargs: dict[str, Any] | None = None, *,
                    tie_weights: bool = True, strict: bool = False) -> Any:
    """`func.functional_call`, deprecated under this name."""
    warnings.warn("nn.utils.stateless.functional_call is deprecated; use func.functional_call", FutureWarning, stacklevel=2)
    return func.functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _hooks(kind: Any, module: Any, name: str) -> list[Any]:
    return [hook for hook in module._forward_pre_hooks.values() if isinstance(hook, kind) and hook.name == name]


def weight_without(kind: Any, module: Any, name: str, table: Any = None) -> Tensor:
    """The weight of a name, in a table if one is given. Raises RuntimeError if it has a hook of that kind, ValueError if it is None or shapeless."""
    if _hooks(kind, module, name):
        raise RuntimeError(f"{kind.__name__}: the parameter {name!r} of {type(module).__name__} has one already")
    weight = getattr(module, name) if table is None else table[name]
    if weight is None or is_lazy(weight):
        raise ValueError(f"{kind.__name__}: the parameter {name!r} of {type(module).__name__} is None or has no shape yet")
    return weight


def _removed(kind: Any, module: Any, name: str) -> Any:
    """The module without the hook of a weight, and what belongs to it. Raises ValueError if there is none."""
    if not (found := _hooks(kind, module, name)):
        raise ValueError(f"{kind.__name__}: the parameter {name!r} of {type(module).__name__} has none")
    hook = found[0]
    hook.remove(module)
    for hooks in (module._forward_pre_hooks, module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key, each in list(hooks.items()):
            inner = getattr(each, "hook", each)  # of a WrappedHook
            if inner is hook or getattr(inner, "fn", None) is hook:
                del hooks[key]
    return module


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
    return _removed(WeightNorm, module, name)


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
    return _removed(SpectralNorm, module, name)
