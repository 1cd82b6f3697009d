"""The named tuples that some functions return, as in `torch.return_types`.

>>> pair = max(("large", 3))
>>> pair.values, pair.indices, len(pair)
('large', 3, 2)
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

__all__ = ["aminmax", "cummax", "cummin", "frexp", "histogram", "histogramdd", "kthvalue", "linalg_eigh", "linalg_slogdet", "max", "median",
           "min", "mode", "nanmedian", "slogdet", "sort", "topk"]


class _NamedTuple(tuple):
    """A tuple with named items and torch's repr."""

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


def _tuple_type(name: str, *fields: str) -> Any:
    doc = f"What `symgrad.{name}` returns: {' and '.join(fields)}."
    members = {field: property(itemgetter(i), doc=f"The item {i}.") for i, field in enumerate(fields)}
    return type(name, (_NamedTuple,), {"__slots__": (), "__doc__": doc, "__module__": __name__, "fields": fields, **members})


cummax, cummin, kthvalue, max, median, min, mode, nanmedian, sort, topk = (
    _tuple_type(name, "values", "indices") for name in ("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk"))
aminmax = _tuple_type("aminmax", "min", "max")
slogdet, linalg_slogdet = (_tuple_type(name, "sign", "logabsdet") for name in ("slogdet", "linalg_slogdet"))
linalg_eigh = _tuple_type("linalg_eigh", "eigenvalues", "eigenvectors")
histogram, histogramdd = (_tuple_type(name, "hist", "bin_edges") for name in ("histogram", "histogramdd"))
frexp = _tuple_type("frexp", "mantissa", "exponent")
