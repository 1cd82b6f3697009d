"""The calls of functions that torch's database does not have: those of a related function, or a call that is written here."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing import make_tensor

from .database import Call, database, from_database, seeded

# In `written.txt`, with a call a line, `v` is a vector of four numbers, `a` a matrix of 2 x 3, `c` an image of 1 x 4 x 4 x 4, `s` a square matrix,
# `p` probabilities, `t` signs, `k` class numbers, `i` integers; `w` has one number for each channel of `c`.
# What sets or asks for a state of the whole library, reads and writes files, or transforms functions, has no arguments to draw.
NOT_DRAWN = """
are_deterministic_algorithms_enabled compile from_dlpack from_file get_default_device get_default_dtype get_deterministic_debug_mode
get_float32_matmul_precision get_rng_state initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled
is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled is_warn_always_enabled load manual_seed save seed
set_anomaly_enabled set_default_device set_default_dtype set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
set_flush_denormal set_printoptions set_rng_state set_warn_always to_dlpack use_deterministic_algorithms vmap
""".split()


@functools.cache
def texts() -> dict[str, list[str]]:
    """The arguments of the written calls by the names of functions."""
    found: dict[str, list[str]] = {}
    for text in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        name, _, arguments = text.partition("(")
        found.setdefault(name, []).append("call(" + arguments)
    return found


def named(dtype: torch.dtype, grad: bool) -> dict[str, Any]:
    """The arguments that the texts name, of one dtype."""
    seeded()
    grad = grad and (dtype.is_floating_point or dtype.is_complex)
    shapes = {"v": (4,), "a": (2, 3), "c": (1, 4, 4, 4), "s": (3, 3), "w": (4,)}
    tensors = {name: make_tensor(shape, device="cpu", dtype=dtype, low=-3, high=3, requires_grad=grad) for name, shape in shapes.items()}
    real = dtype if dtype.is_floating_point else torch.float64
    return {**tensors, "p": torch.tensor([0.25, 0.5, 0.125, 0.875], dtype=real, requires_grad=grad), "t": torch.tensor([1, -1, -1, 1], dtype=real),
            "k": torch.tensor([0, 2, 1]), "i": torch.tensor([3, 1, -2, 0]), "z": torch.tensor([1 + 2j, -0.5j], requires_grad=grad)}


def written(name: str, dtype: torch.dtype, grad: bool) -> Iterator[Call]:
    """The calls of a function without an entry in torch's database."""
    space = {"torch": torch, "np": np, "call": lambda *args, **kwargs: (args, kwargs), **named(dtype, grad)}
    for text in texts().get(name, ()):
        with contextlib.suppress(RuntimeError):  # an argument that is not made of this dtype
            yield Call(*eval(text, space))


def on_a_copy(function: Callable[..., Any], first: Any, *rest: Any, **kwargs: Any) -> Any:
    """The function of a copy of its first argument, which it writes."""
    return function(first.clone(), *rest, **kwargs)


@functools.lru_cache(32)
def calls(name: str, dtype: torch.dtype, grad: bool, most: int) -> list[Call]:
    """The first calls of any function for one dtype."""
    base = name.removesuffix("_")
    last = base.rpartition(".")[2]
    entry = next((n for n in (name, base, last, f"nn.functional.{last}") if n in database()), None)
    found = list(itertools.islice(written(name, dtype, grad) if entry is None or name in texts() else from_database(entry, dtype, grad), most))
    return [call._replace(wrapped=on_a_copy) for call in found] if base != name else found
