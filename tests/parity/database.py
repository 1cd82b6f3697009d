"""The arguments of torch's own database of ops, and the same arguments for symgrad."""

from __future__ import annotations

import functools
import itertools
import random
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

import symgrad

RANDOM = {"bernoulli", "multinomial", "normal", "rand_like", "randint", "randint_like", "randn", "randn_like", "binomial", "poisson",
          "nn.functional.rrelu", "rrelu", "nn.functional.dropout", "nn.functional.dropout1d", "nn.functional.dropout2d", "nn.functional.dropout3d",
          "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "nn.functional.gumbel_softmax",
          "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "rand", "randperm",
          "alpha_dropout", "dropout", "feature_dropout", "feature_alpha_dropout", "native_dropout", "lobpcg"}
UNSET = {"resize_as", "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
PLACES = {"": (torch, symgrad), "linalg": (torch.linalg, symgrad.linalg), "fft": (torch.fft, symgrad.fft),
          "special": (torch.special, symgrad.special), "nn.functional": (torch.nn.functional, symgrad.nn.functional)}


class Call(NamedTuple):
    """One call of a function of torch: its arguments, and what of its result does not depend on a choice of signs, phases or order."""

    args: tuple
    kwargs: dict[str, Any]
    chosen: Callable[[Any], Any] = lambda result: result
    wrapped: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        words = [short(a) for a in self.args] + [f"{k}={short(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(words)})"


def short(value: Any) -> str:
    if isinstance(value, (torch.Tensor, symgrad.Tensor)):
        return f"{str(value.dtype).partition('.')[2]}{list(value.shape)}"
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
        return "[" + ", ".join(map(short, value)) + "]"
    return str(value)[:60]


def shared() -> list[str]:
    """The names of functions that both libraries have, `linalg.inv` for one of a module."""
    names = []
    for place, (theirs, ours) in PLACES.items():
        public = [n for n in sorted(dir(theirs)) if not n.startswith("_") and hasattr(ours, n)]
        names += [f"{place}.{n}".lstrip(".") for n in public if callable(getattr(theirs, n)) and callable(getattr(ours, n))
                  and not isinstance(getattr(theirs, n), (types.ModuleType, type))]
    return names


def pair(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function of each library, torch's first."""
    place, _, last = name.rpartition(".")
    theirs, ours = PLACES[place]
    order = ORDER.get(name, lambda function: function)
    return order(getattr(theirs, last)), order(getattr(ours, last))


@functools.cache
def database() -> dict[str, list[Any]]:
    """The entries of torch's database by the names and the aliases of their functions."""
    if "expecttest" not in sys.modules:  # torch's test library takes one base class from this package, and nothing that is used here
        try:
            import expecttest  # noqa: F401
        except ImportError:
            sys.modules["expecttest"] = types.ModuleType("expecttest")
            sys.modules["expecttest"].TestCase = unittest.TestCase  # type: ignore[attr-defined]
            sys.modules["expecttest"].assert_expected_inline = None  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    found: dict[str, list[Any]] = {}
    for entry in op_db:
        for name in {entry.name, *(alias.name for alias in entry.aliases)}:
            found.setdefault(name, []).append(entry)
    return found


def seeded(seed: int = 0) -> None:
    torch.default_generator.manual_seed(seed)  # `torch.manual_seed` writes down the stack for three devices that are not used
    random.seed(seed)
    np.random.seed(seed)


def triangular(op: Callable[..., Any], *args: Any, upper: bool = False, idx: int = 0, **kwargs: Any) -> Any:
    """The op of the triangle of an argument with ones on the diagonal, which torch's wrapper of this name makes of torch's tensors only."""
    m = torch if isinstance(args[idx], torch.Tensor) else symgrad
    x = args[idx] - m.diag_embed(args[idx].diagonal(0, -2, -1)) + m.eye(args[idx].shape[-1], dtype=args[idx].dtype)
    return op(*args[:idx], x.triu() if upper else x.tril(), *args[idx + 1:], upper, **kwargs)


WRAPPERS = {"gradcheck_wrapper_triangular_input_real_positive_diagonal": triangular}


def swapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, *rest, **kwargs: function(b, a, *rest, **kwargs)


ORDER = dict.fromkeys(("polygamma", "special.polygamma", "einsum", "where", "nn.functional.embedding", "nn.functional.embedding_bag"),
                      swapped)  # the database has the first two arguments exchanged


MOST = 150  # calls of one entry: some have more than a thousand


@functools.lru_cache(4)
def samples(name: str, dtype: torch.dtype, grad: bool) -> list[Call]:
    return list(from_database(name, dtype, grad))


def from_database(name: str, dtype: torch.dtype, grad: bool) -> Iterator[Call]:
    """These calls, one after the other."""
    for entry in database().get(name, ()):
        if dtype not in entry.dtypes:
            continue
        seeded()
        grad_too = grad and entry.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        for s in itertools.islice(each_seeded(entry.sample_inputs_func(entry, "cpu", dtype, grad_too)), MOST):
            wrapper = WRAPPERS.get(entry.gradcheck_wrapper.__name__, entry.gradcheck_wrapper)
            yield Call((s.input, *s.args), s.kwargs, s.output_process_fn_grad, wrapper)


def each_seeded(made: Iterable[Any]) -> Iterator[Any]:
    """The same items, each made of the same random numbers, so that none depends on what was made before."""
    items = iter(made)
    while True:
        seeded(1234)
        try:
            yield next(items)
        except StopIteration:
            return


def refusals(name: str) -> Iterator[Call]:
    """The calls of an op that the database says are refused."""
    for entry in database().get(name, ()):
        if entry.error_inputs_func is not None:
            seeded()
            for e in each_seeded(entry.error_inputs_func(entry, "cpu")):
                s = e.sample_input
                if not any(t.is_meta or t.ndim > 64 for t in tensors([s.input, s.args, s.kwargs])):  # NumPy has no such tensors
                    yield Call((s.input, *s.args), s.kwargs)


def tensors(value: Any) -> Iterator[Any]:
    """The tensors of nested results or arguments, in order."""
    if isinstance(value, (torch.Tensor, symgrad.Tensor)):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for v in value.values() if isinstance(value, dict) else value:
            yield from tensors(v)


def each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Nested arguments or results, each of them changed."""
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        made = [each(v, change) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return {k: each(v, change) for k, v in value.items()} if isinstance(value, dict) else change(value)


def ours(value: Any) -> Any:
    """The same arguments for symgrad: tensors with the same strides in memory of their own."""
    return each(value, our_argument)


def our_argument(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
        return getattr(symgrad, str(value).partition(".")[2])
    if isinstance(value, torch.nn.Module):
        return eval(f"symgrad.nn.{value!r}")
    if isinstance(value, torch.device):
        return str(value)
    return symgrad.Size(value) if isinstance(value, torch.Size) else value


def array(t: torch.Tensor) -> np.ndarray:
    t = t.detach().resolve_conj().resolve_neg()
    if t._is_zerotensor():
        t = t.clone()
    return t.view(torch.uint16).numpy().view(symgrad.bfloat16.numpy) if t.dtype == torch.bfloat16 else t.numpy()


def tensor(t: torch.Tensor) -> symgrad.Tensor:
    plain = t.detach().resolve_conj().resolve_neg()
    room = plain.untyped_storage().nbytes() // plain.element_size()
    if room != plain.numel() or not plain.is_contiguous():
        memory = array(plain.as_strided((room,), (1,), 0)).copy()
        made = symgrad.from_numpy(memory).as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset())
    else:
        made = symgrad.from_numpy(array(plain).copy())
    return made.requires_grad_(t.requires_grad)


def fresh(value: Any) -> Any:
    """Copies of torch's arguments, with their strides: leaves."""
    return each(value, lambda v: fresh_tensor(v) if isinstance(v, torch.Tensor) else v)


def fresh_tensor(t: torch.Tensor) -> torch.Tensor:
    if t.is_conj() or t.is_neg():
        t = t.detach().resolve_conj().resolve_neg().requires_grad_(t.requires_grad)
    if t.layout != torch.strided:
        return t
    count = t.untyped_storage().nbytes() // t.element_size()
    memory = torch.empty(0, dtype=t.dtype).set_(t.detach().untyped_storage().clone(), 0, (count,))
    return memory.as_strided(t.shape, t.stride(), t.storage_offset()).requires_grad_(t.requires_grad)
