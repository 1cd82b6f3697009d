"""Index sets: the inputs that each element of an array depends on, and the pairs of inputs that interact in a nonlinear op.

A `Dependence` represents an array whose elements each depend on a set of the inputs 0, 1, ..., n - 1. It holds *blocks*, integer arrays whose
last axes are those of the array and whose other axes list members: element e depends on the inputs `block[..., *e]` of every block,
where -1 is none. Blocks are views if possible. Nothing is copied for a slice, a transpose, a broadcast, a sum or a product of
matrices: a summed axis becomes a member axis, and along an axis with stride 0 all elements have the same set.

The same pass finds the pattern of the second derivatives. By the chain rule the Hessian of a function is Σ λ Jᵀ H J over its ops, where J is
the derivative of an op's arguments and H the op's own Hessian. An entry (i, j) can be nonzero only if a nonlinear op combines
the inputs i and j. `Inputs` collects those pairs. Every computed set contains the true one, so a structural zero is always a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.blocks import (
    BITS,
    LIMIT,
    Blocks,
    Shape,
    broadcast_block,
    broadcast_shape,
    compact,
    contains_members,
    deduplicate,
    is_same_block,
    keys,
    mask_of,
    merge,
    without_constant_axes,
)
from symgrad.carriers.structure import is_basic

Levels = tuple[tuple[int, int], ...]  # pairs (level, number of members), the outermost first
MANY = 8  # the number of blocks above which repeated members are removed
NUMBERS = np.arange(1024, dtype=np.int64)


class Dense(Exception):
    """The error for a function that combines so many inputs that a sparse Hessian is not cheaper."""


class Inputs:
    """The inputs 0, ..., count - 1 of the sets, and the pairs of interacting inputs found so far.

    `affine` describes pairs whose blocks are both views of `numbers`, by first elements, shapes and strides; the others become `keys`, which are
    row * count + column. Pairs are collected only if `interactions` is true. `capacity` is the length of `numbers` if it is larger than `count`.
    """

    SHARES = 2  # a set with more than 1 / SHARES of the inputs needs more colours than a sparse matrix may have

    def __init__(self, count: int, interactions: bool = True, capacity: int = 0):
        self.count, self.interactions = count, interactions
        self.numbers = NUMBERS if max(count, capacity) <= len(NUMBERS) else np.arange(max(count, capacity), dtype=np.int64)
        self.affine: dict[tuple, None] = {}
        self.cliques: dict[Shape, tuple[np.ndarray, np.ndarray]] = {}  # the last clique for each shape of arrays, as a table and as a mask
        self.pending: list[tuple[np.ndarray, np.ndarray, int]] = []
        self.pending_pairs = self.total_pairs = 0  # the number of uncompressed pairs, and of all pairs so far
        self.pair_mask: np.ndarray | None = None  # the collected keys as a mask, if it is small enough
        self.key_arrays: list[np.ndarray] = []  # the collected keys, if the mask would be too large
        self.for_any_constants = True  # whether the result is independent of the values of constants

    def leaf(self, start: int, shape: Shape) -> Dependence:
        """An array of inputs, numbered from `start` row by row."""
        return Dependence(self, (self.numbers[start:start + math.prod(shape)].reshape(shape),), shape)

    def all_dependent(self, members: np.ndarray, shape: Shape) -> Dependence:
        """An array whose elements all depend on the same members."""
        if not members.size:
            return Dependence(self, (), shape)
        return Dependence(self, (np.broadcast_to(members.reshape(-1, *(1,) * len(shape)), (members.size, *shape)),), shape)

    def inputs_in(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """The sorted inputs in some arrays."""
        found = np.zeros(self.count + 1, bool)
        for array in arrays:
            found[compact(array)] = True
        found[-1] = False  # the entry of -1
        return found.nonzero()[0]

    def clique(self, x: Dependence) -> None:
        """Add all pairs within each element's set. Raises Dense if one of the sets has more than half of the inputs."""
        if not self.interactions:
            return
        blocks, nd = x.blocks, len(x.shape) + len(x.levels)
        if len(blocks) == 1 and (b := blocks[0]).ndim == nd and b.base is self.numbers and self.count > 1:
            first, shape, strides = b.item(0), b.shape, b.strides
            self.affine[first, first, shape, strides, shape, strides, nd] = None
            return
        members = 0
        for b in blocks:
            members += math.prod(b.shape[:b.ndim - nd])
        if self.SHARES * members > self.count and self.SHARES * self.inputs_in([b[(..., *(0,) * nd)] for b in blocks]).size > self.count:
            raise Dense
        if all([b.base is self.numbers for b in blocks]):
            for i, a in enumerate(blocks):
                for b in blocks[i:]:
                    self.affine[a.item(0), b.item(0), a.shape, a.strides, b.shape, b.strides, nd] = None
            return
        table = merge(blocks, nd)
        table, _ = without_constant_axes(table, table, nd)
        if len(table) > MANY:
            table = deduplicate(table, nd, self.count)
            if self.SHARES * len(table) > self.count:
                raise Dense
        shape, size = table.shape[1:], math.prod(table.shape[1:])
        if size * self.count <= BITS:  # in a loop sets grow, and only the pairs of the largest set are needed
            mask, before = mask_of(table, size, self.count), self.cliques.get(shape)
            if before is not None and not contains_members(mask, before[0], size):
                if contains_members(before[1], table, size):
                    return
                self._complete(*before)
            self.cliques[shape] = table, mask
        else:
            self._add_pairs(table, table, nd)

    def _complete(self, table: np.ndarray, mask: np.ndarray) -> None:
        """Add a clique that is contained in no later one; large sets are added by a matrix product."""
        n = self.count
        if n > 16 * len(table) or len(self.numbers) * n > BITS:
            self._add_pairs(table, table, table.ndim - 1)
            return
        members = mask[:, :n].astype(np.float32)
        np.logical_or(self._mask()[:n * n], (members.T @ members).reshape(-1), out=self._mask()[:n * n])

    def cross(self, x: Dependence, y: Dependence) -> None:
        """Add the pairs between the members of two sets, element by element."""
        if not self.interactions:
            return
        x, y = align(x, y)
        numbers, nd = self.numbers, len(x.shape) + len(x.levels)
        for a in x.blocks:
            for b in y.blocks:
                if a.base is numbers and b.base is numbers:
                    self.affine[a.item(0), b.item(0), a.shape, a.strides, b.shape, b.strides, nd] = None
                else:
                    self._add_pairs(a, b, nd)

    def _add_pairs(self, a: np.ndarray, b: np.ndarray, nd: int) -> None:
        a, b = without_constant_axes(a, b, nd)
        la, lb = a.ndim - nd, b.ndim - nd
        self.pending.append((a, b, nd))
        self.pending_pairs += math.prod(a.shape[:la]) * math.prod(b.shape[:lb]) * math.prod(max(n, m) for n, m in zip(a.shape[la:], b.shape[lb:]))
        if self.pending_pairs > LIMIT:
            self.compress()

    def compress(self) -> None:
        """Compress the collected pairs to distinct keys. Raises Dense if there are too many."""
        self.total_pairs += self.pending_pairs
        if self.total_pairs > 64 * LIMIT:
            raise Dense
        for pair in self.pending:
            for found in keys(*pair, self.count):
                if len(self.numbers) * self.count <= BITS:
                    self._mask()[found] = True
                else:
                    self.key_arrays.append(np.unique(found))
        self.pending, self.pending_pairs = [], 0

    def _mask(self) -> np.ndarray:
        if self.pair_mask is None:
            self.pair_mask = np.zeros(len(self.numbers) * self.count, bool)
        return self.pair_mask

    def keys(self) -> list[np.ndarray]:
        """The keys of all pairs that are not affine, in arrays without repetitions. Raises Dense if there are too many."""
        for table, mask in self.cliques.values():
            self._complete(table, mask)
        self.cliques = {}
        self.compress()
        return self.key_arrays if self.pair_mask is None else [*self.key_arrays, self.pair_mask.nonzero()[0]]


class Dependence:
    """An array, represented by the inputs that its elements depend on; an array without blocks is a constant.

    For a batched array, of which rules see one member, blocks have an axis for each of its `levels`, in front of the element axes.
    """

    __slots__ = ("inputs", "blocks", "shape", "levels")
    __array_ufunc__ = None
    dtype = np.dtype(np.float64)

    def __init__(self, inputs: Inputs, blocks: Blocks, shape: Shape, levels: Levels = ()):
        self.inputs, self.shape, self.levels = inputs, shape, levels
        self.blocks = blocks if 0 not in shape else ()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"<Dependence of shape {list(self.shape)} on {self.inputs.count} inputs, {len(self.blocks)} blocks>"

    def members(self) -> np.ndarray:
        """The sorted inputs that any element depends on."""
        return self.inputs.inputs_in(self.blocks)

    def map(self, change: Callable[[np.ndarray], np.ndarray], shape: Shape) -> Dependence:
        """An array with a function applied to every block."""
        return Dependence(self.inputs, tuple([change(b) for b in self.blocks]), shape, self.levels)

    def masked(self, mask: np.ndarray) -> Dependence:
        """The same sets where a mask is true, and empty sets elsewhere."""
        if mask.all():
            return self
        mask = np.broadcast_to(mask, self.shape)
        return self.map(lambda b: np.where(mask, b, -1), self.shape) if mask.any() else constant(self)

    __add__ = __radd__ = lambda self, other: union(self, other)
    __sub__ = __rsub__ = __add__
    __mul__ = __rmul__ = lambda self, other: multiply(self, other)
    __truediv__ = lambda self, other: divide(self, other)
    __rtruediv__ = lambda self, other: divide(other, self)
    __pow__ = lambda self, other: power(self, other)
    __rpow__ = lambda self, other: power(other, self)
    __neg__ = __pos__ = __abs__ = lambda self: self
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __rand__ = __ror__ = lambda self, other: constant(self, other)
    __invert__ = lambda self: constant(self)
    __eq__ = __ne__ = __lt__
    __hash__ = None

    def __getitem__(self, index: Any) -> Dependence:
        return getitem(self, index)


# Elementwise functions


def broadcast(x: Dependence, shape: Shape) -> Dependence:
    """The array broadcast to a shape."""
    if x.shape == shape:
        return x
    nd, numbers = len(x.shape), x.inputs.numbers
    return x.map(lambda b: broadcast_block(b, shape, nd, numbers), tuple(shape))


def align(x: Dependence, y: Dependence) -> tuple[Dependence, Dependence]:
    """Two arrays as batches of the same levels."""
    if x.levels == y.levels:
        return x, y
    levels = x.levels + tuple(level for level in y.levels if level not in x.levels)
    return with_levels(x, levels), with_levels(y, levels)


def with_levels(x: Dependence, levels: Levels) -> Dependence:
    """The array as a batch of the given levels, which contain its own."""
    own, shape, numbers = x.levels, x.shape, x.inputs.numbers
    counts, ends = tuple(n for _, n in levels), len(shape) + len(own)
    order = tuple(own.index(level) for level in levels if level in own)
    index = (*(slice(None) if level in own else None for level in levels), *(slice(None),) * len(shape))

    def change(b: np.ndarray) -> np.ndarray:
        lead = b.ndim - ends
        b = b.transpose((*range(lead), *(lead + i for i in order), *range(b.ndim - len(shape), b.ndim)))
        return broadcast_block(b[(slice(None),) * lead + index], (*counts, *shape), len(index), numbers)

    return Dependence(x.inputs, tuple([change(b) for b in x.blocks]), shape, levels)


def union(*xs: Any) -> Any:
    """The sets of all arguments together, broadcast."""
    if len(xs) == 2:
        x, y = xs
        if type(y) is not Dependence:
            if type(x) is not Dependence:
                return numeric.add(x, y)
            shape = getattr(y, "shape", ())
            return x if not shape or shape == x.shape else broadcast(x, broadcast_shape(x.shape, shape))
        if type(x) is not Dependence:
            shape = getattr(x, "shape", ())
            return y if not shape or shape == y.shape else broadcast(y, broadcast_shape(y.shape, shape))
        if x is y:
            return x
        shape = x.shape
        if shape != y.shape:
            shape = broadcast_shape(shape, y.shape)
            x, y = broadcast(x, shape), broadcast(y, shape)
        if x.levels != y.levels:
            x, y = align(x, y)
        inputs = x.inputs
        blocks = x.blocks + tuple([b for b in y.blocks if not any([is_same_block(a, b, inputs.numbers) for a in x.blocks])])
        out = Dependence(inputs, blocks, shape, x.levels)
        return pack(out) if len(blocks) > MANY else out
    out = xs[0]
    for x in xs[1:]:
        out = union(out, x)
    return out


def pack(x: Dependence) -> Dependence:
    """The same sets without repetitions, in at most two blocks, one of which is common to all elements."""
    inputs, shape = x.inputs, (*(n for _, n in x.levels), *x.shape)
    nd, size = len(shape), math.prod(shape)
    common = [b for b in x.blocks if not any(b.strides[b.ndim - nd:])]
    blocks = inputs.all_dependent(inputs.inputs_in(common), shape).blocks
    rest = tuple(b for b in x.blocks if any(b.strides[b.ndim - nd:]))
    if rest:
        if sum(math.prod(b.shape[:b.ndim - nd]) for b in rest) * size > LIMIT:
            return inputs.all_dependent(x.members(), x.shape)
        blocks += (deduplicate(merge(rest, nd), nd, inputs.count),)
    return Dependence(inputs, blocks, x.shape, x.levels)


def constant(*xs: Any) -> Any:
    """A function without a derivative: a constant."""
    out = union(*xs)
    return Dependence(out.inputs, (), out.shape, out.levels)


def smooth(*xs: Any) -> Any:
    """A nonlinear elementwise function: all members of an element's set interact."""
    out = xs[0] if len(xs) == 1 else union(*xs)
    if out.blocks:
        out.inputs.clique(out)
    return out


def multiply(x: Any, y: Any) -> Any:
    """A product: the members of one factor interact with those of the other."""
    out = union(x, y)
    if type(x) is Dependence and type(y) is Dependence:
        if x is y:
            out.inputs.clique(x)
        else:
            out.inputs.cross(broadcast(x, out.shape), broadcast(y, out.shape))
    return out


def divide(x: Any, y: Any) -> Any:
    """x / y: the members of y interact with each other and with those of x."""
    out = multiply(x, y)
    if type(y) is Dependence:
        out.inputs.clique(y)
    return out


def power(x: Any, y: Any) -> Any:
    """x ** y."""
    return x if type(y) in (int, float) and y == 1 else smooth(x, y)


# Elements by their positions


def positions(shape: Shape) -> np.ndarray:
    """The positions of the elements in the flattened array, as an array of the shape."""
    return np.arange(math.prod(shape)).reshape(shape)


def elements_at(x: Dependence, places: np.ndarray) -> Dependence:
    """The elements at some positions of the flattened array, in the shape of the positions; -1 is a zero."""
    inputs, nd, shape = x.inputs, len(x.shape), places.shape
    zeros = places < 0 if places.size and places.min() < 0 else None
    blocks = []
    for b in x.blocks:
        lead = b.ndim - nd
        if any(b.strides[lead:]):
            if math.prod(b.shape[:lead]) * max(x.size, places.size) > LIMIT:
                return inputs.all_dependent(x.members(), shape)
            found = b.reshape(*b.shape[:lead], -1).take(places, axis=-1)
        else:
            found = broadcast_block(b[(..., *(0,) * nd)], shape, 0, inputs.numbers)
            if math.prod(found.shape) > LIMIT:
                zeros = None
        blocks.append(found if zeros is None else np.where(zeros, -1, found))
    return Dependence(inputs, tuple(blocks), shape, x.levels)


def getitem(x: Dependence, index: Any) -> Dependence:
    """The elements at an index."""
    parts = index if type(index) is tuple else (index,)
    dots = False
    for part in parts:
        if part is Ellipsis:
            dots = True
        elif type(part) is not slice and type(part) is not int and not is_basic(part):
            return elements_at(x, positions(x.shape)[index])
    if not dots:
        parts += (...,)  # so that a single element is an array, too
    nd = len(x.shape)
    blocks = tuple([b[(slice(None),) * (b.ndim - nd) + parts] for b in x.blocks])
    shape = blocks[0].shape[x.blocks[0].ndim - nd:] if blocks else np.broadcast_to(0, x.shape)[parts].shape
    return Dependence(x.inputs, blocks, shape, x.levels)
