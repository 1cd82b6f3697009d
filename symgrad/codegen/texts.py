"""Texts of expressions and of helpers."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["LONGEST", "Text", "helpers_called"]

LONGEST = 70  # characters up to which an expression is written inside another


class Text(str):
    """An expression as text, which is put in parentheses if it binds less tightly than the format requires."""

    precedence: int

    def __new__(cls, text: str, precedence: int = 9) -> Text:
        out = super().__new__(cls, text)
        out.precedence = precedence
        return out

    def __repr__(self) -> str:
        return str(self)

    def __format__(self, least: str) -> str:
        return f"({self!s})" if self.precedence < int(least or 0) else str(self)


def helpers_called(text: str, helpers: Mapping[str, str]) -> str:
    """The helpers that a text calls, each after those that it calls itself."""
    found: dict[str, str] = {}

    def find(text: str) -> None:
        for name in dict.fromkeys(re.findall(r"\b[a-z_]\w*", text)):
            if name in helpers and name not in found:
                found[name] = ""  # it may call itself
                find(helpers[name])
                del found[name]
                found[name] = helpers[name]

    find(text)
    return "".join(found.values())
