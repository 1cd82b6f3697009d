"""Trees of values, as JAX's pytrees: tuples, lists, dicts, named tuples and dataclasses, flattened to leaves and rebuilt."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["LEAF", "Spec", "flatten", "names", "transpose", "tree_map"]


@dataclasses.dataclass(frozen=True, slots=True)
class Spec:
    """The structure of a tree without its leaves: the type of each branch, the keys of its children, and their structures."""

    kind: Any  # a type, or None for a leaf
    keys: tuple[Any, ...] = ()
    parts: tuple[Spec, ...] = ()

    @property
    def count(self) -> int:
        """The number of leaves."""
        return 1 if self.kind is None else sum(part.count for part in self.parts)

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The tree of this structure with the given leaves.

        Raises ValueError for a wrong number of leaves.
        """
        kind, parts = self.kind, self.parts
        if kind is None and len(leaves) == 1:
            return leaves[0]
        if (kind is tuple or kind is list) and len(parts) == len(leaves) and self is _sequence_spec(kind, len(parts)):
            return kind(leaves)
        if len(leaves) != self.count:
            raise ValueError(f"unflatten: the tree has {self.count} leaves, but {len(leaves)} are given")
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        parts = [part._build(leaves) for part in self.parts]
        kind = self.kind
        if kind is tuple or kind is list:
            return kind(parts)
        if kind is NOTHING:
            return None
        if issubclass(kind, dict):
            return defaultdict(self.keys[-1], zip(self.keys, parts)) if kind is defaultdict else kind(zip(self.keys, parts))
        if dataclasses.is_dataclass(kind):
            out: Any = object.__new__(kind)  # type: ignore[arg-type]
            for name, part in zip(self.keys, parts):
                object.__setattr__(out, name, part)
            return out
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)

    def __repr__(self) -> str:
        return f"Spec({self.unflatten(['*'] * self.count)!r})"


NOTHING = type(None)
LEAF = Spec(None)
LEAVES: set[type] = {bool, int, float, complex}  # types of leaves; the modules that define tensors and arrays add theirs


@functools.lru_cache(256)
def _sequence_spec(kind: Any, count: int) -> Spec:
    """The structure of a tuple or list of leaves."""
    return Spec(kind, tuple(range(count)), (LEAF,) * count)


@functools.cache
def _is_leaf(kind: type) -> bool:
    """Whether everything of a type is a leaf."""
    return not (kind is NOTHING or issubclass(kind, (tuple, list, dict)) or dataclasses.is_dataclass(kind) or issubclass(kind, type))


def _branches(tree: Any) -> tuple[Any, tuple[Any, ...], list[Any]] | None:
    """The kind, keys and parts of a branch; None for a leaf."""
    kind = type(tree)
    if tree is None:
        return NOTHING, (), []
    if kind in (dict, OrderedDict, defaultdict):
        keys = tuple(tree)
        return kind, (*keys, tree.default_factory) if kind is defaultdict else keys, [tree[key] for key in keys]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        fields = tuple(field.name for field in dataclasses.fields(tree))
        return kind, fields, [getattr(tree, name) for name in fields]
    if isinstance(tree, (tuple, list)):
        return kind, tuple(range(len(tree))), list(tree)
    return None


def flatten(tree: Any) -> tuple[list[Any], Spec]:
    """The leaves of a tree from left to right, and its structure. Everything but tuples, lists, dicts, dataclasses and None is a leaf.

    >>> leaves, form = flatten({"a": (1, 2), "b": [3]})
    >>> leaves, form.unflatten([leaf * 10 for leaf in leaves])
    ([1, 2, 3], {'a': (10, 20), 'b': [30]})
    """
    kind: Any = type(tree)
    if kind in LEAVES:
        return [tree], LEAF
    if (kind is tuple or kind is list) and LEAVES.issuperset(map(type, tree)):
        return list(tree), _sequence_spec(kind, len(tree))
    if _is_leaf(kind):
        return [tree], LEAF
    found = _branches(tree)
    if found is None:
        return [tree], LEAF
    kind, keys, parts = found
    leaves: list[Any] = []
    forms = []
    for part in parts:
        below, form = flatten(part)
        leaves += below
        forms.append(form)
    return leaves, Spec(kind, keys, tuple(forms))


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The tree with a function applied to its leaves, together with those of other trees of the same structure.

    Raises ValueError for a tree of another structure.

    >>> tree_map(lambda a, b: a + b, (1, [2]), (10, [20]))
    (11, [22])
    """
    leaves, form = flatten(tree)
    columns = [leaves]
    for other in others:
        below, other_form = flatten(other)
        if other_form != form:
            raise ValueError(f"the trees have different forms: {form} and {other_form}")
        columns.append(below)
    return form.unflatten([function(*row) for row in zip(*columns)])


def names(tree: Any, name: str) -> list[str]:
    """The expression for each leaf of a tree in Python syntax, such as `x[0].weight`."""
    found = _branches(tree)
    if found is None:
        return [name]
    kind, keys, parts = found
    out: list[str] = []
    for key, part in zip(keys, parts):
        attribute = dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")
        label = kind._fields[key] if hasattr(kind, "_fields") else key
        out += names(part, f"{name}.{label}" if attribute else f"{name}[{key!r}]")
    return out


def transpose(outer: Spec, inner: Spec, leaves: Sequence[Any]) -> Any:
    """A tree of the outer structure whose leaves are trees of the inner structure, from all leaves in order."""
    step = inner.count
    return outer.unflatten([inner.unflatten(leaves[i * step:(i + 1) * step]) for i in range(outer.count)])
