"""Texts of other languages, which stand in files of their own."""

from __future__ import annotations

import re


def texts(path: str) -> list[tuple[str, tuple[str, ...], str]]:
    """The texts of a file, in its order: of each the name, the words behind the arrow of its head, and the text.

    A line `//: name WORD=value | other WORD=value <- words` is the head of a text of two names, in which NAME and WORD are replaced. Lines that begin
    with `// ` are comments.
    """
    found = []
    with open(path, encoding="utf-8") as file:
        blocks = re.split(r"^//: ", re.sub(r"^// .*\n", "", file.read(), flags=re.MULTILINE), flags=re.MULTILINE)[1:]
    for block in blocks:
        head, _, text = block.strip().partition("\n")
        names, _, words = head.partition(" <- ")
        for entry in names.split(" | "):
            name, *values = entry.split()
            given = {"NAME": name, **dict(value.split("=", 1) for value in values)}
            filled = [re.sub("|".join(given), lambda word: given[word[0]], each) for each in (words, text)]  # noqa: B023
            found.append((name, tuple(filled[0].split()), filled[1]))
    return found
