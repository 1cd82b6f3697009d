"""What the drawer of steps asks about a tensor, without disturbing it."""

from __future__ import annotations

import itertools
from typing import Any


def flat(t: Any) -> list[float]:
    """The elements, in order."""
    found = t.tolist()
    if not t.ndim:
        return [found]
    for _ in range(t.ndim - 1):
        found = [x for row in found for x in row]
    return found


def nested(values: list, shape: tuple[int, ...]) -> Any:
    """A flat list as nested tuples."""
    if not shape:
        return values[0]
    size = len(values) // shape[0]
    return tuple(nested(values[i * size:(i + 1) * size], shape[1:]) for i in range(shape[0]))


def memory(t: Any) -> int:
    """The address of its storage."""
    return t.untyped_storage().data_ptr()


def dtype_name(t: Any) -> str:
    return str(t.dtype).rpartition(".")[2]


def size(t: Any) -> float:
    """The largest magnitude."""
    return max(map(abs, flat(t)), default=0.0)


def least(t: Any) -> float:
    """The smallest magnitude."""
    return min(map(abs, flat(t)), default=1.0)


def tame(word: str, t: Any) -> bool:
    """Whether the op keeps numbers of middling size, away from poles."""
    word = word.rstrip("_")
    if word == "exp":
        return size(t) < 2
    if word == "square":
        return size(t) < 5
    if word == "sqrt":
        return min((x.real for x in flat(t)), default=1.0) > 0.05
    return word != "reciprocal" or least(t) > 0.2


def places(t: Any) -> list[int]:
    """Where in its memory the elements lie."""
    return [t.storage_offset() + sum(i * s for i, s in zip(index, t.stride())) for index in itertools.product(*map(range, t.shape))]


def unordered(a: Any, b: Any) -> bool:
    """Whether writing `a` into `b` would read what was just written, unseen by torch's test for overlap, which skips memory with gaps or repeats."""
    p, q = places(a), places(b)
    if memory(a) == memory(b) and a.element_size() != b.element_size():
        return True
    if memory(a) != memory(b) or p == q or not set(p) & set(q):
        return False
    return a.shape != b.shape or any(max(x) - min(x) + 1 != len(x) for x in (p, q))


def fits_with(a: Any, b: Any) -> bool:
    """Whether the shapes broadcast together."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b)))


def fits_in(a: Any, b: Any) -> bool:
    """Whether `a` broadcasts to `b`."""
    return len(a) <= len(b) and all(m in (1, n) for m, n in zip(reversed(a), reversed(b)))


def has_grad(t: Any) -> bool:
    """Whether a gradient is there, asked without disturbing a view."""
    return not t._is_view() and (t.is_leaf or t.retains_grad) and t.grad is not None


def fills(a: Any, b: Any) -> bool:
    """Whether writing `b` into `a` leaves integers without derivatives, which torch forgets."""
    return a.is_floating_point() or a.is_complex() or not b.requires_grad
