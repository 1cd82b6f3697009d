"""Calls in text, run with torch and with symgrad: `calls/NAME.txt` has one a line, under the [name] of a section.

The lines above the first section are run anew before each call, with `torch` for either library. A header may say more: `[name for x in a, b]` runs
the section with `x` for each of these names, and `within 1e-12` is the difference of numbers that is allowed (or of the `largest`). `values` leaves
derivatives out, `first` those of the second order. `memory` compares strides, offsets and views, `leaves` what requires grad, and `warnings` their
categories; if `refused` is said, exceptions may be of different types. Of `ours ~ theirs` torch runs the second text, where it has no derivative of
the first.
"""

from __future__ import annotations

import importlib
import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import symgrad

from .database import tensors

FOLDER = Path(__file__).parent / "calls"
HEADER = re.compile(r"\[(?P<name>\w+)(?: for (?P<variable>\w+) in (?P<choices>[\w, ]+?))?(?: within (?P<within>\S+))?"
                    r"(?P<options>(?: values| first| memory| warnings| leaves| largest| refused)*)\]")


class Section(NamedTuple):
    """The calls under one name, for one choice of a variable."""

    name: str
    given: str
    calls: list[str]
    within: float
    options: frozenset[str]


def sections(file: str) -> Iterator[Section]:
    given, *parts = re.split(r"^(\[.*\])\n", (FOLDER / f"{file}.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for head, text in zip(parts[::2], parts[1::2]):
        match = HEADER.fullmatch(head)
        assert match, head
        calls = [line for line in text.splitlines() if line]
        within, options = float(match["within"] or 1e-9), frozenset(match["options"].split())
        for choice in match["choices"].split(", ") if match["choices"] else [""]:
            more = f"{match['variable']} = {choice}\n" if choice else ""
            yield Section(f"{match['name']}-{choice}".rstrip("-"), given + more, calls, within, options)


def names(m: Any, given: str) -> dict[str, Any]:
    found = {"torch": m, "nn": m.nn, "F": m.nn.functional, "np": np, "math": math}
    found |= {short: importlib.import_module(f"{m.__name__}.{path}") for short, path in (
        ("optim", "optim"), ("schedulers", "optim.lr_scheduler"), ("data", "utils.data"))}
    for name in ("parametrize", "prune", "rnn"):
        importlib.import_module(f"{m.__name__}.nn.utils.{name}")
    exec(given, found)
    return found


def form(m: Any, value: Any, options: frozenset[str]) -> Any:
    """What is equal by itself: of tensors shapes, dtypes and, if asked, their memory."""
    if isinstance(value, m.Tensor):
        strides = tuple(s for s, n in zip(value.stride(), value.shape) if n != 1) if value.numel() else ()
        return [tuple(value.shape), str(value.dtype), *([value.requires_grad] if "leaves" in options else []),
                *([value.requires_grad, strides, value.storage_offset(), value._is_view()] if "memory" in options else [])]
    if isinstance(value, (list, tuple)):
        return [form(m, v, options) for v in value]
    plain = isinstance(value, (int, float, complex, str, type(None)))
    return ("nan" if value != value else value) if plain else str(value).replace("symgrad.", "torch.")


def weighed(m: Any, y: Any) -> Any:
    """A real number to differentiate, in which every element counts in another way."""
    weights = m.cos(m.arange(y.numel(), dtype=m.float64)).reshape(y.shape)
    return (y.abs() ** 2 * weights).sum() if y.is_complex() else (y * weights).sum() + (y * y).sum()


def evaluated(m: Any, call: str, section: Section) -> Any:
    """The result, the categories of warnings and the leaves; or the exception."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        at = names(m, section.given)
        try:
            y = eval(call, at)
        except Exception as error:
            return error
    leaves = [t for t in at.values() if isinstance(t, m.Tensor) and t.requires_grad and t.is_leaf]
    return y, [w.category for w in caught] if "warnings" in section.options else [], leaves


def array(m: Any, t: Any) -> np.ndarray:
    t = t.detach().resolve_conj()
    return (t.float() if t.dtype is m.bfloat16 else t).numpy()


def close(ours: np.ndarray, theirs: np.ndarray, within: float, largest: bool = False) -> bool:
    """Whether arrays have one dtype and shape, and numbers that are equal up to a difference, if asked relative to the largest."""
    within = {"float16": 1.9e-3, "float32": max(1e-6, within), "complex64": max(1e-6, within)}.get(theirs.dtype.name, within)
    few = theirs.dtype.itemsize == 2 or within > 1e-3  # bfloat16 comes as float32
    absolute = within * float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)) if largest else within if few else within / 10
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=within, atol=absolute, equal_nan=True)


def gradients(m: Any, results: list[Any], leaves: list[Any]) -> Any:
    """Those of a sum of results; zeros where none requires grad, and the exception where there are none."""
    found = [t for t in results if t.requires_grad]
    if not found:
        return [m.zeros_like(t) for t in leaves]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return m.autograd.grad(sum(weighed(m, t) for t in found), leaves, create_graph=True, materialize_grads=True, allow_unused=True)
        except RuntimeError as error:
            return error


def difference(call: str, section: Section) -> str:
    """How the libraries differ at a call, if they do; where torch has no derivative, ours is not compared."""
    first, _, other = call.partition(" ~ ")
    mine, theirs = evaluated(symgrad, first, section), evaluated(torch, other or first, section)
    if isinstance(mine, Exception) or isinstance(theirs, Exception):
        kinds = [kind.__name__ for kind in type(mine).__mro__]
        alike = isinstance(mine, Exception) and isinstance(theirs, Exception) and str(mine) and (
            type(theirs).__name__.lstrip("_") in kinds or "refused" in section.options)
        return "" if alike else f"{call}: torch {theirs!r}; symgrad {mine!r}"
    (y, warned, leaves), (z, their_warned, their_leaves) = mine, theirs
    a, b = ([form(m, value, section.options), said] for m, value, said in ((symgrad, y, warned), (torch, z, their_warned)))
    if a != b:
        return f"{call}: torch {b}; symgrad {a}"
    ours, results = list(tensors(y)), list(tensors(z))
    within, largest = max(section.within, 1e-6) if "float32" in call else section.within, "largest" in section.options
    orders = 0 if "values" in section.options else 1 if "first" in section.options else 2
    for order in range(orders + 1):
        found = [(array(symgrad, s), array(torch, t)) for s, t in zip(ours, results)]
        if not all(close(s, t, within, largest) for s, t in found):
            return f"{call}, derivative {order}: torch and symgrad {[(t, s) for s, t in found if not close(s, t, within, largest)]}"
        pairs = [(s, t) for s, t in zip(ours, results) if t.requires_grad]
        if order == orders or not pairs:
            break
        results = gradients(torch, [t for _, t in pairs], their_leaves)
        if isinstance(results, Exception):
            break
        ours = gradients(symgrad, [s for s, _ in pairs], leaves)
        if isinstance(ours, Exception):
            return f"{call}, derivative {order + 1}: symgrad {ours!r}"
    return ""


def differences(section: Section) -> list[str]:
    """All of them."""
    return [text for text in (difference(call, section) for call in section.calls) if text]


SECTIONS = {f"{path.stem}-{section.name}": section for path in sorted(FOLDER.glob("*.txt")) for section in sections(path.stem)}


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("name", SECTIONS)
def test_calls_give_what_they_give_in_torch(name):
    found = differences(SECTIONS[name])
    assert not found, "\n".join(found)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("call", ["x * 2 ~ x * 3", "x.sum() ~ x.prod()", "x.detach().sin() ~ x.sin()", "x * x ~ x * x.detach()", "x.long() ~ x.int()",
                                  "x[5] ~ x[0]", "x[5] ~ x.foo()", "[x, 1] ~ [x, 2]"])
def test_the_comparison_can_fail(call):
    section = Section("", "x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)", [call], 1e-9, frozenset())
    assert differences(section) and not differences(section._replace(calls=[call.partition(" ~ ")[0]]))
