"""`vmap`: a function of one member as a function of a batch, by reading every rule with one more leading axis."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import batches, levels_of, new_level
from symgrad.func.evaluation import named
from symgrad.lift import traced
from symgrad.tensor import Tensor, wrap
from symgrad.trees import Spec, flatten, names

__all__ = ["vmap"]


def _dims(given: Any, form: Spec, what: str, asking: str) -> list[int | None]:
    """One dimension for each leaf, from a tree that may be cut short: what stands for a branch holds for all of it."""
    if given is None or isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return [None if given is None else int(given)] * form.count
    if isinstance(given, (tuple, list, dict)):
        leaves = given.values() if isinstance(given, dict) else given
        fits = isinstance(given, dict) == (form.kind is dict) and form.kind is not None and len(given) == len(form.parts)
        if fits and (not isinstance(given, dict) or set(given) == set(form.keys)):
            ordered = [given[key] for key in form.keys] if isinstance(given, dict) else leaves
            return list(itertools.chain.from_iterable(_dims(d, part, what, asking) for d, part in zip(ordered, form.parts)))
    raise ValueError(f"vmap({asking}): {what}={given!r} does not fit the structure {form!r}; give an int or None for each of its tensors, or one "
                     f"for a whole branch")


def _within(dim: int, ndim: int, word: str, what: str, asking: str) -> int:
    if not -ndim <= dim < ndim:
        raise ValueError(f"vmap({asking}): got {what}={dim} for {word}, which has {ndim} dimension{'s' * (ndim != 1)}; it must be from {-ndim} to "
                         f"{ndim - 1}" if ndim else f"vmap({asking}): got {what}={dim} for {word}, which has no dimensions; use None for what all "
                         f"members of the batch share")
    return dim % ndim


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None, **words: Any,
         ) -> Callable[..., Any]:
    """The function applied to every member of a batch at once: f(x)[i] = func(x[i]).

    `in_dims` says along which dimension of each argument the members lie, None for what they share; `out_dims` where they are to lie in the
    results. Both may be trees like the arguments and the results. Keyword arguments are batched along dimension 0. `randomness` says what random
    numbers inside are: refused ("error"), the "same" for all members, or "different". `chunk_size` bounds how many members are computed at a time.
    `in_axes` and `out_axes` are accepted for `in_dims` and `out_dims`. A vmap may stand inside another one, and inside and around derivatives.

    Raises ValueError for dimensions that do not fit and for arguments of different sizes, RuntimeError where the function asks for the data of a
    member, as `if x > 0` and `x.item()` do.

    >>> import symgrad
    >>> symgrad.func.vmap(symgrad.dot)(symgrad.ones(2, 3), symgrad.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    tensor([ 6., 15.])
    """
    in_dims, out_dims = words.pop("in_axes", in_dims), words.pop("out_axes", out_dims)
    if words:
        raise TypeError(f"vmap() got an unexpected keyword argument {next(iter(words))!r}")
    if randomness not in ("error", "same", "different"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    asking = named(func)

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        dims_given = list(in_dims) if isinstance(in_dims, list) else in_dims
        leaves, form = flatten((args, kwargs))
        if isinstance(dims_given, (tuple, list)) and len(dims_given) != len(args):
            raise ValueError(f"vmap({asking}): in_dims={in_dims!r} has {len(dims_given)} entries, but the function was called with {len(args)} positional "
                             f"argument{'s' * (len(args) != 1)}")
        dims = _dims(tuple(dims_given) if isinstance(dims_given, list) else dims_given, form.parts[0], "in_dims", asking) + [0] * form.parts[1].count
        labels = [word for i, a in enumerate(args) for word in names(a, f"argument {i}")] + names(kwargs, "kwargs")
        tensors, size = _batch(leaves, dims, labels, asking)
        step = size if chunk_size is None else chunk_size
        parts = [_one(func, form, tensors, dims, at, min(step, size - at), size, out_dims, randomness, asking) for at in range(0, size, step or 1)] or [
            _one(func, form, tensors, dims, 0, 0, size, out_dims, randomness, asking)]
        shape, where = parts[0][1:]
        found = [parts[0][0][k] if len(parts) == 1 or d is None else traced.cat([part[0][k] for part in parts], d) for k, d in enumerate(where)]
        return shape.unflatten(found)

    return batched


def _batch(leaves: Sequence[Any], dims: list[int | None], labels: Sequence[str], asking: str) -> tuple[list[Any], int]:
    """The leaves that are batched as tensors, their dimensions made positive, and how many members there are."""
    out, sizes = list(leaves), {}
    for i, (leaf, dim) in enumerate(zip(leaves, dims)):
        if dim is None:
            continue
        if not isinstance(leaf, Tensor):
            if not isinstance(leaf, np.ndarray):
                raise ValueError(f"vmap({asking}): {labels[i]} is {type(leaf).__name__}, which has no members; use None in in_dims for what all members "
                                 f"share")
            out[i] = leaf = wrap(leaf)
        dims[i] = _within(dim, leaf.ndim, labels[i], "in_dims", asking)
        sizes.setdefault(leaf.shape[dims[i]], labels[i])
    if not sizes:
        raise ValueError(f"vmap({asking}): no argument is batched: give at least one tensor a dimension in in_dims")
    if len(sizes) > 1:
        told = ", ".join(f"{label} has {n}" for n, label in sizes.items())
        raise ValueError(f"vmap({asking}): Expected all tensors to have the same size in the mapped dimension, got sizes {list(sizes)} for the mapped "
                         f"dimension: {told}")
    return out, next(iter(sizes))


def _one(func: Any, form: Spec, tensors: Sequence[Any], dims: Sequence[int | None], start: int, count: int, size: int, out_dims: Any,
         randomness: str, asking: str) -> tuple[list[Tensor], Spec, list[int | None]]:
    """The function on some members: its results, their form and their dimensions."""
    level = new_level()
    given = [x if d is None else traced.batch(x if count == size else traced.narrow(x, d, start, count), d, level) for x, d in zip(tensors, dims)]
    args, kwargs = form.unflatten(given)
    before = batches.entered
    batches.entered = (*before, (level, count, randomness))
    try:
        output = func(*args, **kwargs)
    finally:
        batches.entered = before
    leaves, shape = flatten(output)
    where = _dims(out_dims, shape, "out_dims", asking)
    found = []
    for i, (y, d) in enumerate(zip(leaves, where)):
        if not isinstance(y, Tensor):
            raise ValueError(f"vmap({asking}): the function must only return Tensors, got type {type(y).__name__} as {names(output, 'output')[i]}")
        if d is None:
            if level in levels_of(y._value):
                raise ValueError(f"vmap({asking}): out_dims is None for {names(output, 'output')[i]}, but it differs between the members of the batch; "
                                 f"give it a dimension")
            found.append(y)
            continue
        where[i] = _within(d, y.ndim + 1, names(output, "output")[i], "out_dims", asking)
        found.append(traced.unbatch(y, where[i], level, count))
    return found, shape, where
