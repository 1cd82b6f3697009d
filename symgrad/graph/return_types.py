"""The named tuples that some functions return, as in `torch.return_types`.

>>> pair = max(("large", 3))
>>> pair.values, pair.indices, len(pair)
('large', 3, 2)
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

__all__ = ["aminmax", "cummax", "cummin", "frexp", "geqrf", "histogram", "histogramdd", "kthvalue", "linalg_cholesky_ex", "linalg_eig",
           "linalg_eigh", "linalg_inv_ex", "linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_lstsq", "linalg_lu", "linalg_lu_factor",
           "linalg_lu_factor_ex", "linalg_qr", "linalg_slogdet", "linalg_solve_ex", "linalg_svd", "lu_unpack", "max", "median", "min", "mode",
           "nanmedian", "qr", "slogdet", "sort", "svd", "topk", "triangular_solve"]


class _NamedTuple(tuple):
    """A tuple with named items and torch's repr."""

    __slots__ = ()
    fields: tuple[str, ...]

    def __new__(cls, items: Iterable[Any]) -> Any:
        out = super().__new__(cls, items)
        if len(out) != len(cls.fields):
            raise TypeError(f"return_types.{cls.__name__} takes a {len(cls.fields)}-sequence ({len(out)}-sequence given)")
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
linalg_eigh, linalg_eig = (_tuple_type(name, "eigenvalues", "eigenvectors") for name in ("linalg_eigh", "linalg_eig"))
linalg_svd, svd = _tuple_type("linalg_svd", "U", "S", "Vh"), _tuple_type("svd", "U", "S", "V")
linalg_qr, qr = (_tuple_type(name, "Q", "R") for name in ("linalg_qr", "qr"))
linalg_lu, lu_unpack = (_tuple_type(name, "P", "L", "U") for name in ("linalg_lu", "lu_unpack"))
linalg_lu_factor, linalg_lu_factor_ex = _tuple_type("linalg_lu_factor", "LU", "pivots"), _tuple_type("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_inv_ex, linalg_solve_ex = _tuple_type("linalg_inv_ex", "inverse", "info"), _tuple_type("linalg_solve_ex", "result", "info")
linalg_cholesky_ex = _tuple_type("linalg_cholesky_ex", "L", "info")
linalg_lstsq = _tuple_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_ldl_factor, linalg_ldl_factor_ex = (_tuple_type("linalg_ldl_factor", "LD", "pivots"),
                                           _tuple_type("linalg_ldl_factor_ex", "LD", "pivots", "info"))
geqrf = _tuple_type("geqrf", "a", "tau")
triangular_solve = _tuple_type("triangular_solve", "solution", "cloned_coefficient")
histogram, histogramdd = (_tuple_type(name, "hist", "bin_edges") for name in ("histogram", "histogramdd"))
frexp = _tuple_type("frexp", "mantissa", "exponent")
