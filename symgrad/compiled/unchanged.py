"""One comparison of everything that a function captures, by identity: it runs before each run of a program."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.compiled.contents import MISSING, Check, function_check

__all__ = ["unchanged"]

MOST = 100  # comparisons that are made by a function of their own


def unchanged(same: Sequence[tuple[Callable[[], Any], Any, str]], checks: Sequence[tuple[Check, str]], empty: Sequence[Any],
              typed: Sequence[tuple[Any, type]]) -> Callable[[], bool]:
    """A function that returns True if all reads give the same objects, all checks pass, and nothing was added to what was empty.

    It may return False, or raise what a read raises, where values are equal and not identical.
    """
    terms = [*[_of_read(read, value) for read, value, _ in same], *[_of_check(check) for check, _ in checks],
             *[("not {}", x) for x in empty], *[("type({}) is {}", *pair) for pair in typed]]
    if len(terms) > MOST:
        return lambda: False
    return _comparison(tuple([form for form, *_ in terms]))(*[x for _, *given in terms for x in given])


def _of_read(read: Any, value: Any) -> tuple[Any, ...]:
    """The term for what is read, and what stands for its places."""
    if type(read) is functools.partial and not read.keywords:
        if read.func is operator.getitem and type(read.args[0]) is dict and len(read.args) == 2:
            return "{}[{}] is {}", *read.args, value
        if read.func is getattr and type(read.args[0]) is types.CellType:
            return "{}.cell_contents is {}", read.args[0], value
        space: Any = getattr(read.func, "__self__", None)
        if value is MISSING and read.args[1:] == (MISSING,) and type(space) is dict:  # its method `get`
            return "{} not in {}", read.args[0], space
    return "{}() is {}", read, value


def _of_check(check: Any) -> tuple[Any, ...]:
    if type(check) is functools.partial and check.func is function_check:
        f, *before = check.args
        return "{0}.__code__ is {1} and {0}.__defaults__ is {2} and {0}.__kwdefaults__ is {3}", f, *before
    return "{}() is None", check


@functools.lru_cache(1024)
def _comparison(forms: tuple[str, ...]) -> Callable[..., Callable[[], bool]]:
    """A function that makes the comparison of all terms from what stands for their places."""
    names, terms = list[str](), list[str]()
    for form in forms:
        own = [f"x{len(names) + k}" for k in range(form.count("{") if "{0}" not in form else 4)]
        terms.append(form.format(*own))
        names += own
    return eval(f"lambda {', '.join(names)}: lambda: {' and '.join(terms) or True}", {"type": type})
