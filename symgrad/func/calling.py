"""`vmap`, modules as functions of their parameters, and `Transformed`: what transforms make of functions, with their names, methods, picklable."""

from __future__ import annotations

import functools
import itertools
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from symgrad.arguments import check_option, check_range
from symgrad.carriers.batched import levels_of, new_level
from symgrad.carriers.duck import is_unbatchable
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.errors import OUT_OF_RANGE
from symgrad.func.evaluation import function_name, unshared
from symgrad.graph.modes import in_mode, thread
from symgrad.system.restoring import restored
from symgrad.trees import LEAF, NOTHING, Spec, flatten, names

Exchange = list[tuple[dict[str, Any], str, Any]]


def _tensor_slots(module: Any) -> dict[str, tuple[dict[str, Any], str]]:
    """For the full name of each parameter and buffer of a module its table and key; tied ones appear under each of their names."""
    out = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            for name in table:
                out[f"{prefix}.{name}" if prefix else name] = table, name
    return out


def _merge_dicts(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, Mapping):
        return dict(dicts)
    if not isinstance(dicts, Sequence) or not all(isinstance(d, Mapping) for d in dicts):
        raise ValueError(f"functional_call: the tensors must be a dict, or several, not {type(dicts).__name__}")
    out: dict[str, Any] = {}
    for d in dicts:
        for key in d:
            if key in out:
                raise ValueError(f"functional_call: {key!r} is in several dicts")
        out.update(d)
    return out


def _replacements(module: Any, given: dict[str, Any], tie_weights: bool, strict: bool) -> tuple[Exchange, Exchange]:
    """The replacements in a module: each table and key with the module's own tensor, and with the tensor that replaces it."""
    places = _tensor_slots(module)
    unknown = [name for name in given if name not in places]
    missing = [name for name, (table, key) in places.items() if name not in given and table[key] is not None] if strict else []
    if strict and (unknown or missing):
        problems = [f"{len(found)} {word} key(s) {', '.join(map(repr, found))}" for word, found in (("unexpected", unknown), ("missing", missing))
                if found]
        raise RuntimeError(f"functional_call: {' and '.join(problems)} for a {type(module).__name__}; the names are those of named_parameters() and "
                           f"named_buffers()")
    if unknown:
        raise KeyError(f"functional_call: {type(module).__name__} has no parameter or buffer {unknown[0]!r}; it has {', '.join(places)}")
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"functional_call: {name!r} must be a Tensor, not {type(value).__name__}")
    chosen = dict(given)
    if tie_weights:
        own = {id(places[name][0][places[name][1]]): value for name, value in given.items()}
        for name, (table, key) in places.items():
            if table[key] is not None and id(table[key]) in own:
                chosen.setdefault(name, own[id(table[key])])
    return [(*places[name], places[name][0][places[name][1]]) for name in chosen], [(*places[name], value) for name, value in chosen.items()]


def _set_tensors(places: Exchange) -> None:
    for table, name, tensor in places:
        table[name] = tensor


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Call a module with other tensors in place of its parameters and buffers: module(*args; θ), differentiable by θ.

    `parameter_and_buffer_dicts` maps the names of `named_parameters` and `named_buffers` to tensors; others are unchanged. A sequence of
    such dicts may be given. With `tie_weights`, tied parameters stay tied. `strict` requires exactly the names of the module.

    Raises KeyError for an unknown name, RuntimeError for wrong names in strict mode, TypeError for values that are not tensors, and ValueError for
    a name in several dicts.

    >>> import symgrad
    >>> from symgrad import nn
    >>> layer = nn.Linear(2, 1, dtype=symgrad.float64)
    >>> weights = {"weight": symgrad.tensor([[1.0, 2.0]]), "bias": symgrad.zeros(1)}
    >>> x = symgrad.tensor([3.0, 4.0])
    >>> symgrad.func.functional_call(layer, weights, (x,))
    tensor([11.])
    >>> symgrad.func.grad(lambda w: symgrad.func.functional_call(layer, w, (x,)).sum())(weights)["weight"]
    tensor([[3., 4.]])
    """
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    own, others = _replacements(module, _merge_dicts(parameter_and_buffer_dicts), tie_weights, strict)
    with restored(partial(_set_tensors, own), partial(_set_tensors, others)):
        return module(*given, **(kwargs or {}))


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one architecture, stacked along a new first dimension: for `vmap` over an ensemble.

    Raises RuntimeError for an empty sequence, for modules of different classes, and for a mixture of training and evaluation mode.

    >>> from symgrad import nn
    >>> from symgrad.func import stack_module_state
    >>> parameters, buffers = stack_module_state([nn.Linear(2, 3), nn.Linear(2, 3)])
    >>> parameters["weight"].shape, buffers
    (torch.Size([2, 3, 2]), {})
    """
    if len({(type(m), m.training) for m in models}) != 1:
        raise RuntimeError(f"stack_module_state: the {len(models)} modules must be of one class and in one mode, and there must be one at least")
    stacked = []
    for kind in ("named_parameters", "named_buffers"):
        rows = [dict(getattr(m, kind)()) for m in models]
        out = {}
        for name, first in rows[0].items():
            joined = traced.stack([row[name].detach() for row in rows], 0)
            out[name] = joined.requires_grad_() if first.requires_grad else joined
        stacked.append(out)
    return stacked[0], stacked[1]


T = TypeVar("T", bound=Callable[..., Any])


class Transformed:
    """The function that a transform makes of another one, with the name and the documentation of that one.

    A decorated function is pickled by its name. Any other is pickled as the call of the transform, so that its arguments must be picklable.
    """

    def __init__(self, transform: Callable[..., Any], func: Callable[..., Any], settings: tuple[Any, ...] = (),
                 words: Mapping[str, Any] = types.MappingProxyType({}), body: Callable[..., Any] | None = None):
        functools.update_wrapper(self, func)
        self._transform, self._settings = transform, (func, settings, dict(words))
        self._body: Any = body  # None where a subclass computes the result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._body(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        func, settings, words = self._settings
        return own_name(self) or (functools.partial(self._transform, **words), (func, *settings))

    def __repr__(self) -> str:
        func = self._settings[0]
        return f"<{self._transform.__name__} of {getattr(func, '__qualname__', type(func).__name__)}>"


def own_name(x: Any) -> str | None:
    """The qualified name of an object, if its module has it under that name, as it has a decorated function; then pickle needs no more."""
    name = getattr(x, "__qualname__", None) or ""
    found: Any = sys.modules.get(getattr(x, "__module__", None) or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is x else None


def transform(make: T) -> T:
    """Decorate a transform: what it returns for a function becomes a `Transformed` of that function."""
    @functools.wraps(make)
    def transforming(func: Callable[..., Any], *settings: Any, **words: Any) -> Transformed:
        return Transformed(transforming, func, settings, words, make(func, *settings, **words))

    return cast(T, transforming)


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
        raise TypeError(f"vmap: there is no argument {next(iter(words))!r}")
    check_option("vmap", "randomness", randomness, ("error", "same", "different"))
    if chunk_size is not None:
        check_range("vmap", "chunk_size", chunk_size, 1, kind=ValueError)
    caller = function_name(func)
    if not all(d is None or _is_int(d) for d in _dim_leaves(out_dims)):
        raise ValueError(f"vmap({caller}): out_dims must be an integer, None or a tree of them, not {out_dims!r}")

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
    call = f"vmap({caller}, in_dims={in_dims})"
    if not args:
        raise ValueError(f"vmap({caller}): the function is called without arguments, so that nothing is batched")
    leaves, form = flatten(args)
    found = _expand_prefix(tuple(in_dims) if isinstance(in_dims, list) else in_dims, form)
    if found is None or not _is_int(in_dims) and not isinstance(in_dims, (tuple, list)):
        raise ValueError(f"{call}: in_dims must be an integer or a tree like the arguments, {form!r}: a dimension or None for each tensor, or one "
                         "for a whole branch")

    def word(i: int) -> str:
        return [word for k, a in enumerate(args) for word in names(a, f"argument {k}")][i]

    dims: Dims = [None] * len(leaves)
    sizes = {}
    for i, (leaf, d) in enumerate(zip(leaves, found)):
        if d is None:
            continue
        if not _is_int(d):
            raise ValueError(f"{call}: the dimension {d} of {word(i)} must be an integer or None")
        if not isinstance(leaf, (Tensor, np.ndarray)) or not -leaf.ndim <= d < leaf.ndim:
            what = f"has the shape {list(leaf.shape)}" if isinstance(leaf, (Tensor, np.ndarray)) else f"is {type(leaf).__name__}"
            raise ValueError(f"{call}: {word(i)} {what}, and has no dimension {d}; use None for what all members of the batch share")
        leaves[i] = leaf = leaf if isinstance(leaf, Tensor) else wrap(leaf)
        dims[i] = at = int(d) % leaf.ndim
        sizes[i] = leaf.shape[at]
    if not sizes:
        raise ValueError(f"{call}: no argument is batched")
    if len(set(sizes.values())) > 1:
        raise ValueError(f"{call}: the batches must have one size, but {', '.join(map(word, sizes))} have {list(sizes.values())}")
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
        raise ValueError(f"vmap({caller}): out_dims={out_dims!r} must be a tree like the outputs, {shape!r}: a dimension or None for each, or one "
                         "for a whole branch")
    if _has_unused_dim(out_dims, shape):
        raise _not_a_tensor_error(caller, None)
    found = []
    for i, (y, d) in enumerate(zip(leaves, where)):
        if d is None:
            if isinstance(y, Tensor) and level in levels_of(y._value):
                raise ValueError(f"vmap({caller}): {names(output, 'the output')[i]} differs between the members of the batch; give it a dimension")
            found.append(y)
            continue
        if not isinstance(y, Tensor):
            raise _not_a_tensor_error(caller, y)
        n = y.ndim + 1
        if not -n <= d < n:
            raise IndexError(f"vmap({caller}): {OUT_OF_RANGE.format(-n, n - 1, d)} for {names(output, 'the output')[i]}")
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
    return ValueError(f"vmap({caller}): an output that is batched must be a Tensor, not {type(y).__name__}; give None in out_dims for it")
