"""Pruning: a tensor of a module is name_orig * name_mask, computed before each forward, where the mask is 0 for elements that were pruned.

>>> import symgrad
>>> from symgrad import nn
>>> from symgrad.nn.utils import prune
>>> layer = nn.Linear(2, 2, bias=False)
>>> layer.load_state_dict({"weight": symgrad.tensor([[1.0, -3.0], [0.5, 2.0]])})
<All keys matched successfully>
>>> prune.l1_unstructured(layer, "weight", amount=0.5).weight.tolist(), [*layer.state_dict()]
([[0.0, -3.0], [0.0, 2.0]], ['weight_orig', 'weight_mask'])
>>> prune.remove(layer, "weight").weight.tolist()
[[0.0, -3.0], [0.0, 2.0]]
"""

from __future__ import annotations

import inspect
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS
from symgrad.factories.creation import ones_like, zeros_like
from symgrad.factories.random_tensors import rand, rand_like
from symgrad.nn.utils.parameters import parameters_to_vector

__all__ = ["BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer", "RandomStructured",
           "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
           "random_structured", "random_unstructured", "remove"]


def _same_shape(scores: Tensor, of: Tensor, what: str) -> None:
    if scores.shape != of.shape:
        raise AssertionError(f"prune: importance_scores must have the shape of {what}, {list(of.shape)}, but they have {list(scores.shape)}")


class BasePruningMethod(ABC):
    """The hook that computes a pruned tensor. A subclass has `compute_mask`, and says in PRUNING_TYPE what that is given if the tensor is already
    pruned: "unstructured" the remaining elements, "structured" the remaining slices along its `dim`, "global" everything."""

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str | None = None

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, str(self._tensor_name), self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor of scores, 0 also where `default_mask` is."""

    def apply_mask(self, module: Any) -> Tensor:
        """The pruned tensor."""
        if self._tensor_name is None:
            raise AssertionError(f"prune: {type(module).__name__} is not pruned")
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any) -> Any:
        """Prune the tensor `name` of a module, further if it is already pruned; if that raises, the module is as before."""
        earlier = {key: hook for key, hook in module._forward_pre_hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name}
        if len(earlier) > 1:
            raise AssertionError(f"prune: the parameter {name!r} of {type(module).__name__} has several hooks; join them in a PruningContainer")
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        for old in earlier.values():
            method = PruningContainer(*(old if isinstance(old, PruningContainer) else [old]), method)
        value = getattr(module, name)
        if importance_scores is not None:
            _same_shape(importance_scores, value, f"the parameter {name!r}")
        default = getattr(module, f"{name}_mask").detach().clone() if earlier else ones_like(value)
        mask = method.compute_mask(value if importance_scores is None else importance_scores, default_mask=default)
        for key in earlier:
            del module._forward_pre_hooks[key]
        if not earlier:
            module.register_parameter(f"{name}_orig", value)
            del module._parameters[name]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A tensor times the mask for its scores."""
        if importance_scores is not None:
            _same_shape(importance_scores, t, "t")
        return t * self.compute_mask(t if importance_scores is None else importance_scores,
                                     default_mask=ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor a parameter again, with the values that it has."""
        weight, name = self.apply_mask(module), str(self._tensor_name)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Pruning methods in sequence, for one tensor: each prunes what the earlier ones left."""

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Append a method."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"PruningContainer: it takes pruning methods, not {type(method).__name__}")
        if self._tensor_name != method._tensor_name:
            raise ValueError(f"PruningContainer: its methods prune {self._tensor_name!r}, not {method._tensor_name!r}")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method for what `default_mask` left."""
        method: Any = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            kept: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(f"{type(method).__name__}: with PRUNING_TYPE 'structured' the attribute dim is needed")
            if method.dim < -t.ndim:
                raise IndexError(f"{type(method).__name__}: dim={method.dim} is out of range for a tensor of shape {list(t.shape)}")
            dim = method.dim % t.ndim
            kept = (slice(None),) * dim + (mask.sum(dim=[d for d in range(t.ndim) if d != dim]) != 0,)
        elif method.PRUNING_TYPE == "global":
            kept = ...
        else:
            raise ValueError(f"{type(method).__name__}: PRUNING_TYPE must be 'unstructured', 'structured' or 'global', not {method.PRUNING_TYPE!r}")
        mask[kept] = method.compute_mask(t[kept], default_mask=mask[kept]).to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that is given."""
        return default_mask


class _OfAmount(BasePruningMethod):
    """Prunes so many elements or slices: a fraction in [0, 1], or a number."""

    def __init__(self, amount: Any):
        if not isinstance(amount, numbers.Real):
            raise TypeError(f"prune: amount must be an integer or a float, not {amount!r}")
        if amount < 0 or not isinstance(amount, numbers.Integral) and not amount <= 1:
            raise ValueError(f"prune: amount must be a fraction in [0, 1] or a number of elements, but it is {amount}")
        self.amount: Any = amount

    def _count(self, size: int) -> int:
        count: int = int(self.amount) if isinstance(self.amount, numbers.Integral) else round(self.amount * size)
        if count > size:
            raise ValueError(f"prune: amount={count} is more than there is, {size}")
        return count


class _Unstructured(_OfAmount):
    """Prunes the elements of the least scores."""

    PRUNING_TYPE = "unstructured"

    @abstractmethod
    def _scores(self, t: Tensor) -> Tensor: ...

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask, 0 at the elements of the least scores. Raises ValueError for more of them than there are."""
        count = self._count(t.numel())
        flat = default_mask.detach().flatten().clone()
        if count:
            flat[FUNCTIONS["topk"](self._scores(t).detach().flatten(), count, largest=False).indices] = 0
        return flat.reshape(default_mask.shape)


class RandomUnstructured(_Unstructured):
    """Prunes random elements: a fraction `amount` of them, or so many."""

    def _scores(self, t: Tensor) -> Tensor:
        return rand_like(t)


class L1Unstructured(_Unstructured):
    """Prunes the elements of least absolute value: a fraction `amount` of them, or so many."""

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()


class _Structured(_OfAmount):
    """Prunes the slices along `dim` of the least scores."""

    PRUNING_TYPE = "structured"
    dim: int

    @abstractmethod
    def _scores(self, t: Tensor) -> Tensor: ...

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask, 0 in the slices of the least scores. Raises ValueError for a vector and for more slices than there are, IndexError for `dim`."""
        if t.ndim < 2:
            raise ValueError(f"prune: slices are those of a tensor with at least 2 dimensions, but its shape is {list(t.shape)}")
        if not -t.ndim <= self.dim < t.ndim:
            raise IndexError(f"prune: dim={self.dim} is out of range for a tensor of shape {list(t.shape)}")
        dim, size = self.dim % t.ndim, t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        mask = zeros_like(t)
        mask[(slice(None),) * dim + (FUNCTIONS["topk"](self._scores(t).detach(), size - count).indices,)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class LnStructured(_Structured):
    """Prunes the slices along `dim` of the least norm of order `n`: a fraction `amount` of them, or so many."""

    def __init__(self, amount: float, n: Any, dim: int = -1):
        super().__init__(amount)
        self.n, self.dim = n, dim

    def _scores(self, t: Tensor) -> Tensor:
        dim = self.dim % t.ndim
        return FUNCTIONS["norm"](t, self.n, [d for d in range(t.ndim) if d != dim])


class RandomStructured(_Structured):
    """Prunes random slices along `dim`: a fraction `amount` of them, or so many."""

    def __init__(self, amount: float, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        return rand(t.shape[self.dim])


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"prune: the mask has the shape {list(self.mask.shape)}, and the parameter {list(default_mask.shape)}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def _function(name: str, method: type[BasePruningMethod], words: str, doc: str) -> Callable[..., Any]:
    """The function that prunes a parameter by a method; it takes the arguments of the method by these names, and returns the module."""
    kind, known = inspect.Parameter.POSITIONAL_OR_KEYWORD, words.split()
    signature = inspect.Signature([inspect.Parameter(word, kind, default=None if word == "importance_scores" else inspect.Parameter.empty)
                                   for word in ("module", "name", *known)])

    def prune(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        method.apply(given["module"], given["name"], **{word: given[word] for word in known if word in given})
        return given["module"]

    setattr(prune, "__signature__", signature)  # noqa: B010  functions have no such attribute for mypy
    prune.__name__ = prune.__qualname__ = name
    prune.__doc__ = f"The module, with {doc} of the parameter `name` pruned: a fraction `amount` of them, or so many."
    return prune


identity = _function("identity", Identity, "", "no element")
random_unstructured = _function("random_unstructured", RandomUnstructured, "amount", "random elements")
l1_unstructured = _function("l1_unstructured", L1Unstructured, "amount importance_scores", "the elements of least absolute value, or score,")
random_structured = _function("random_structured", RandomStructured, "amount dim", "random slices along `dim`")
ln_structured = _function("ln_structured", LnStructured, "amount n dim importance_scores", "the slices along `dim` of least norm of order `n`")
custom_from_mask = _function("custom_from_mask", CustomFromMask, "mask", "the elements where a `mask` is 0")


def global_unstructured(parameters: Iterable[tuple[Any, str]], pruning_method: Any, importance_scores: dict[Any, Tensor] | None = None,
                        **kwargs: Any) -> None:
    """Prune parameters, given as (module, name), together, by one unstructured method.

    Raises TypeError if `parameters` is not iterable, the scores are not a dict by (module, name), or the method is not unstructured.
    """
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(parameters, Iterable) or not isinstance(scores, dict):
        raise TypeError(f"global_unstructured: parameters must be pairs and importance_scores a dict, not {type(parameters).__name__} and "
                        f"{type(scores).__name__}")
    values = [(module, name, getattr(module, name)) for module, name in parameters]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f"global_unstructured: the method must have PRUNING_TYPE 'unstructured', not {method.PRUNING_TYPE!r}")
    mask = PruningContainer(method).compute_mask(
        parameters_to_vector([scores.get((module, name), value) for module, name, value in values]),
        parameters_to_vector([getattr(module, f"{name}_mask", ones_like(value)) for module, name, value in values]))
    for (module, name, value), part in zip(values, mask.split([value.numel() for _, _, value in values])):
        custom_from_mask(module, name, part.reshape(value.shape))


def remove(module: Any, name: str) -> Any:
    """The module, with the pruned tensor `name` as a parameter again, with the values that it has. Raises ValueError if it is not pruned."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"prune: the parameter {name!r} of {type(module).__name__} is not pruned")


def is_pruned(module: Any) -> bool:
    """Whether the module or one of its submodules is pruned."""
    return any(isinstance(hook, BasePruningMethod) for _, part in module.named_modules() for hook in part._forward_pre_hooks.values())
