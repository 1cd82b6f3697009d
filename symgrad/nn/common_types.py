"""Types of arguments that are one number, or one for each dimension, with torch's names."""

from typing import Any, TypeVar

T = TypeVar("T")
_scalar_or_tuple_any_t: Any = T | tuple[T, ...]  # type: ignore[valid-type]
_size_any_t, _size_any_opt_t, _ratio_any_t = (_scalar_or_tuple_any_t[of] for of in (int, int | None, float))
for _n in range(1, 7):
    _of = globals()[f"_scalar_or_tuple_{_n}_t"] = T | tuple[(T,) * _n]  # type: ignore[misc]
    globals()[f"_size_{_n}_t"] = _of[int]
    if _n in (2, 3):
        globals()[f"_size_{_n}_opt_t"], globals()[f"_ratio_{_n}_t"] = _of[int | None], _of[float]
