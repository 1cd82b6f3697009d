"""Texts of expressions and of helpers."""

from __future__ import annotations

import re
from collections.abc import Mapping

IN_NAMES = str.maketrans({"-": "m", ".": "p", "+": None})
LONGEST = 70  # characters up to which an expression is written inside another


class Text(str):
    """An expression as text, which is put in parentheses if it binds less tightly than the format requires.

    The format "name" writes a number as a part of an identifier.
    """

    precedence: int

    def __new__(cls, text: str, precedence: int = 9) -> Text:
        out = super().__new__(cls, text)
        out.precedence = precedence
        return out

    def __repr__(self) -> str:
        return str(self)

    def __format__(self, least: str) -> str:
        if least == "name":
            return number_in_name(self)
        return f"({self!s})" if self.precedence < int(least or 0) else str(self)


def number_in_name(text: str) -> str:
    """A number, or a fraction of two, as a part of an identifier: 2 for 2.0, and m0p75 for -3/4.

    Raises TypeError for what is no number, which no name can have.
    """
    try:
        above, _, below = text.partition("/")
        number = float(above) / float(below or 1)
    except ValueError:
        raise TypeError(f"to_c: {text} is a parameter of a special function, and must be a number") from None
    return (str(int(number)) if number.is_integer() and abs(number) < 1e9 else repr(number)).translate(IN_NAMES)


def number_of_name(part: str) -> int | float:
    """The number that `number_in_name` has written."""
    text = part.replace("m", "-").replace("p", ".")
    return int(text) if text.lstrip("-").isdigit() else float(text)


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
