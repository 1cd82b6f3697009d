"""The limits on what is read from text. Each is a count, so that the same text is refused on every machine, and is tested before the work is done.

A reader of text computes nothing whose cost is not bounded by these numbers: the length of the text, the nesting and the operations of a formula, its
degree as a polynomial, the digits of its numbers, and the terms of its expansion.
"""

from __future__ import annotations

LENGTH = 10_000  # characters of a formula, of values or of a domain
SHORT = 1000  # characters of a name or a declaration of dimensions
DEVICE_LENGTH = 64  # characters of a device
DTYPE_LENGTH = 32  # characters of the name of a dtype
DEPTH = 100  # parentheses, calls or powers inside one another
DEGREE = 1000  # of a polynomial
WHOLE = 200  # the degree, order or dimension of a function, such as an orthogonal polynomial
BITS = 14_000  # of a numerator or denominator: about the 4300 digits that Python converts to text
ARGUMENT = 1000  # a constant argument of a special function, which SymPy may write out in as many terms
NODES = 20_000  # of an expression as a tree
PIECES = 100  # of an argument with cases, as a tree, of a function that distinguishes cases again
COMPARED = 20  # arguments of a maximum, which SymPy compares with one another
TERMS = 200  # of an expanded expression
CHECKED = 12_000  # operations of a formula, times the points at which its derivatives are compared
GENERATED = 120  # operations of a formula from text for which code is generated and measured, weighted, times half of the variables and one more
ELEMENTS = 1_000_000  # of an array whose size is given as text


class TooLarge(ValueError):
    """The error for a formula, a number or an array that is larger than a limit."""


def within(amount: float, most: float, what: str) -> None:
    """Raise TooLarge if an amount is above a limit; `what` is the subject and the unit, with {} for the amount.

    >>> within(2e4, 1e4, "the formula has {} operations")
    Traceback (most recent call last):
        ...
    symgrad.system.limits.TooLarge: the formula has 20,000 operations, more than 10,000
    """
    if amount > most:
        shown = f"{amount:,.0f}" if amount < 1e15 else f"{amount:.0e}" if amount < float("inf") else "too many"
        raise TooLarge(f"{what.format(shown)}, more than {most:,.0f}")


def check_length(text: str, what: str, most: int = LENGTH) -> None:
    """Raise TooLarge for a text of more than `most` characters, whose beginning is shown. No pattern is matched against longer text."""
    if len(text) > most:
        raise TooLarge(f"{what} has {len(text):,} characters, more than {most:,}: {text[:40]!r}...")
