"""`vmap`: every op of the function is computed with an additional leading batch axis."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import levels_of, new_level
from symgrad.carriers.duck import is_unbatchable
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.evaluation import function_name, unshared
from symgrad.func.transformed import transform
from symgrad.graph.modes import in_mode, thread
from symgrad.trees import LEAF, NOTHING, Spec, flatten, names

__all__ = ["vmap"]

Dims = list[int | None]


def _is_int(dim: Any) -> bool:
    return isinstance(dim, (int, np.integer)) and not isinstance(dim, bool)


def _expand_prefix(given: Any, form: Spec) -> list[Any] | None:
    """One entry for each leaf of `form` from a tree prefix, in which one entry may apply to a whole branch. None if the prefix does not match."""
    if not isinstance(given, (tuple, list, dict)):
        return [given] * form.count
    if isinstance(given, dict) != (isinstance(form.kind, type) and issubclass(form.kind, dict)) or form.kind is None or len(given) != len(form.parts):
        return None
    if isinstance(given, dict):
        if set(given) != set(form.keys[:len(form.parts)]):
            return None
        given = [given[key] for key in form.keys[:len(form.parts)]]
    parts = [_expand_prefix(d, part) for d, part in zip(given, form.parts)]
    return None if any(part is None for part in parts) else list(itertools.chain.from_iterable(parts))  # type: ignore[arg-type]


def _dim_leaves(given: Any) -> list[Any]:
    """The leaves of a tree of dimensions, including None."""
    if isinstance(given, (tuple, list, dict)):
        return [leaf for part in (given.values() if isinstance(given, dict) else given) for leaf in _dim_leaves(part)]
    return [given]


def _has_unused_dim(given: Any, form: Spec) -> bool:
    """Whether a dimension is given for a branch without leaves."""
    if form.kind is NOTHING:
        return given is not None
    parts = given.values() if isinstance(given, dict) else given if isinstance(given, (tuple, list)) else [given] * len(form.parts)
    return any(_has_unused_dim(d, part) for d, part in zip(parts, form.parts))


@transform
def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None,
         **words: Any) -> Callable[..., Any]:
    """The function applied to every member of a batch at once: f(x)[i] = func(x[i]).

    `in_dims` is the batch dimension of each positional argument, None for an unbatched one; `out_dims` is the batch dimension of the
    results, None for a result that is equal for all members. Both may be trees like the arguments and the results. Keyword arguments are unbatched.
    `randomness` is the treatment of random numbers inside: refused ("error"), the "same" for all members, or "different". `chunk_size` bounds how
    many members are computed at a time. `in_axes` and `out_axes` are accepted for `in_dims` and `out_dims`. A vmap may be nested in another one, and
    inside and around derivatives.

    Raises ValueError for dimensions that do not match and for arguments of different sizes, IndexError for `out_dims` out of range, RuntimeError if
    the function reads the data of a member, as `if x > 0` and `x.item()` do, or writes in place.

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
    caller = function_name(func)
    if not all(d is None or _is_int(d) for d in _dim_leaves(out_dims)):
        raise ValueError(f"vmap({caller}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints representing "
                         f"where in the outputs the vmapped dimension should appear.")

    def batched(*args: Any, **kwargs: Any) -> Any:
        tensors, form, dims, size = _inputs(args, in_dims, caller)
        step = size if chunk_size is None else chunk_size
        parts = [_call_chunk(func, form, tensors, dims, kwargs, at, min(step, size - at), size, out_dims, randomness, caller)
                 for at in range(0, max(size, 1), step or 1)]
        first, shape, where = parts[0]
        if len(parts) == 1:
            return shape.unflatten(first)
        return shape.unflatten([y if d is None else traced.cat([part[0][k] for part in parts], d) for k, (y, d) in enumerate(zip(first, where))])

    return batched


def _inputs(args: tuple, in_dims: Any, caller: str) -> tuple[list[Any], Spec, Dims, int]:
    """The leaves of the arguments, the batched ones as tensors, with their form and dimensions, and the batch size."""
    call = f"vmap({caller}, in_dims={in_dims}, ...)(<inputs>)"
    if not args:
        raise ValueError(f"vmap({caller})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with "
                         f"no inputs. The latter is unsupported.")
    if not _is_int(in_dims) and not isinstance(in_dims, (tuple, list)):
        raise ValueError(f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
                         f"{type(in_dims)}.")
    leaves, form = flatten(args)
    found = _expand_prefix(tuple(in_dims) if isinstance(in_dims, list) else in_dims, form)
    if found is None:
        raise ValueError(f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure {in_dims!r} but inputs has "
                         f"structure {form!r}: give a dimension or None for each tensor, or one for a whole branch")

    def word(i: int) -> str:
        return [word for k, a in enumerate(args) for word in names(a, f"argument {k}")][i]

    dims: Dims = [None] * len(leaves)
    sizes = {}
    for i, (leaf, d) in enumerate(zip(leaves, found)):
        if d is None:
            continue
        if not _is_int(d):
            raise ValueError(f"{call}: Got in_dim={d} for an input but in_dim must be either an integer dimension or None.")
        if not isinstance(leaf, Tensor):
            if not isinstance(leaf, np.ndarray):
                raise ValueError(f"{call}: Got in_dim={d} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor "
                                 f"arguments, please use None as the respective in_dim: {word(i)} is the same for all members of the batch")
            leaves[i] = leaf = wrap(leaf)
        n = leaf.ndim
        if not -n <= d < n:
            raise ValueError(f"{call}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {n} so expected in_dim to satisfy "
                             f"-{n} <= in_dim < {n}. It is {word(i)}; use None for what all members of the batch share")
        dims[i] = at = int(d) % n
        sizes[i] = leaf.shape[at]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over, but in_dims is None for all of them")
    if len(set(sizes.values())) > 1:
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {list(sizes.values())} for the mapped "
                         f"dimension of {', '.join(map(word, sizes))}")
    return leaves, form, dims, next(iter(sizes.values()))


def _call_chunk(func: Any, form: Spec, tensors: Sequence[Any], dims: Dims, kwargs: dict[str, Any], start: int, count: int, size: int, out_dims: Any,
                randomness: str, caller: str) -> tuple[list[Any], Spec, Dims]:
    """The function applied to a chunk of members: its results, their form and their dimensions."""
    level = new_level()
    given = [x if d is None else traced.batch(x if count == size else traced.narrow(x, d, start, count), d, level) for x, d in zip(tensors, dims)]
    with in_mode(batches=(*thread.modes.batches, (level, count, randomness))):
        try:
            output = func(*form.unflatten(given), **kwargs)
        except ValueError as error:
            if isinstance(error.__cause__, RuntimeError) and is_unbatchable(error.__cause__):  # of an element that is assigned to an array
                raise error.__cause__ from None
            raise
    leaves, shape = flatten(output)
    if shape is LEAF and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    where = _expand_prefix(out_dims, shape)
    if where is None:
        raise ValueError(f"vmap({caller}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
                         f"out_dims has structure {out_dims!r} but outputs has structure {shape!r}: give a dimension or None for each, or "
                         f"one for a whole branch")
    if _has_unused_dim(out_dims, shape):
        raise _not_a_tensor_error(caller, None)
    found = []
    for i, (y, d) in enumerate(zip(leaves, where)):
        if d is None:
            if isinstance(y, Tensor) and level in levels_of(y._value):
                raise ValueError(f"vmap({caller}, ...): `{caller}` can not return a BatchedTensor when out_dim is None: "
                                 f"{names(output, 'the output')[i]} differs between the members of the batch; give it a dimension")
            found.append(y)
            continue
        if not isinstance(y, Tensor):
            raise _not_a_tensor_error(caller, y)
        n = y.ndim + 1
        if not -n <= d < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d}): out_dims of "
                             f"{names(output, 'the output')[i]}")
        where[i] = d % n
        found.append(traced.unbatch(y, where[i], level, count))
    if not thread.modes.batches:  # a result must not share memory with an argument or a constant
        memory = [x._value for x in (*tensors, *leaves) if isinstance(x, Tensor) and type(x._value) is np.ndarray]
        given = output = leaves = y = None  # type: ignore[assignment]
        for i, d in enumerate(where):
            y = found[i]
            if d is not None and y._node is None:
                found[i] = wrap(unshared(y._value))
            elif d is not None and y._value.size and any(np.may_share_memory(y._value, x) for x in memory):
                found[i] = traced.clone(y)
    return found, shape, where


def _not_a_tensor_error(caller: str, y: Any) -> ValueError:
    return ValueError(f"vmap({caller}, ...): `{caller}` must only return Tensors, got type {type(y)}. Did you mean to set out_dims= to None for "
                      f"output?")
