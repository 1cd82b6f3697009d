"""What reports of every kind have in common: an outline, shown as text, in a terminal, as Markdown and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Shown"]


class Shown:
    """A report that says what it has to say in `outline()`; how that is written is not its affair."""

    def outline(self) -> Iterator[Any]:
        """The parts of the report, in order, as `symgrad.reports.rendering` has them; the first is a line "name: verdict"."""
        raise NotImplementedError

    def __str__(self) -> str:
        from symgrad.reports.rendering import as_text

        return as_text(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __rich__(self) -> Any:
        from symgrad.reports.rendering import as_rich

        return as_rich(self)

    def _repr_markdown_(self) -> str:
        from symgrad.reports.rendering import as_markdown

        return as_markdown(self)

    def _repr_html_(self) -> str:
        from symgrad.reports.rendering import as_html

        return as_html(self)
