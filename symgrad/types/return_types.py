"""Tuples with names that some functions return, as `torch.return_types` has them.

>>> pair = max(("large", 3))
>>> pair.values, pair.indices, len(pair)
('large', 3, 2)
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

__all__ = ["aminmax", "cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk"]


class _Named(tuple):
    """A tuple whose items have names; it is printed as torch prints it."""

    __slots__ = ()
    fields: tuple[str, ...]

    def __new__(cls, items: Iterable[Any]) -> Any:
        out = super().__new__(cls, items)
        if len(out) != len(cls.fields):
            raise TypeError(f"torch.return_types.{cls.__name__}() takes a {len(cls.fields)}-sequence ({len(out)}-sequence given)")
        return out

    def __repr__(self) -> str:
        items = ",\n".join(f"{name}={item!r}" for name, item in zip(self.fields, self))
        return f"torch.return_types.{type(self).__name__}(\n{items})"

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


def _named(name: str, *fields: str) -> Any:
    doc = f"What `symgrad.{name}` returns: {' and '.join(fields)}."
    members = {field: property(itemgetter(i), doc=f"The item {i}.") for i, field in enumerate(fields)}
    return type(name, (_Named,), {"__slots__": (), "__doc__": doc, "__module__": __name__, "fields": fields, **members})


cummax, cummin, kthvalue, max, median, min, mode, nanmedian, sort, topk = (
    _named(name, "values", "indices") for name in ("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk"))
aminmax = _named("aminmax", "min", "max")
