"""`MatrixForm`: a node of matrix notation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["MatrixForm", "transpose"]


@dataclass(frozen=True)
class MatrixForm:
    """A node of matrix notation: its kind, its arguments, and its rank: 0, 1 (a column), -1 (a row) or 2."""

    kind: str
    args: tuple[MatrixForm, ...] = ()
    value: Any = None
    rank: int = 2
    symmetric: bool = False


def transpose(form: MatrixForm) -> MatrixForm:
    """The transpose, with products reversed; a symmetric form is its own transpose."""
    if form.rank == 0 or form.symmetric and form.rank == 2:
        return form
    if form.kind == "transpose":
        return form.args[0]
    if form.kind == "product":
        return MatrixForm("product", tuple(map(transpose, reversed(form.args))), rank=-form.rank if abs(form.rank) == 1 else 2)
    if form.kind == "kron":
        return MatrixForm("kron", tuple(map(transpose, form.args)), rank=-form.rank if abs(form.rank) == 1 else 2)
    return MatrixForm("transpose", (form,), rank=-form.rank if abs(form.rank) == 1 else 2)
