"""Classes of nodes that are made of other ones, the one place where a recorded node gets another class, and what makes the hot path fast.

A node's class has its rule and torch's name of it. Both may be known only after the node was recorded: a name depends on the arguments, a rule on
what a pass or a hook does later. The node keeps its identity, its hooks and its place in the graph. Python allows the assignment for classes with
the same slots, so a derived class adds none, or its nodes are made of it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar


def derived(base: Any, name: str = "", **members: Any) -> Any:
    """A class of nodes like `base`, with another name or other members."""
    return type(name or base.__name__, (base,), {"__slots__": (), "__module__": base.__module__, "__doc__": base.__doc__, **members})


@functools.cache
def renamed(base: Any, name: str) -> Any:
    """A class of nodes under another name."""
    return derived(base, name)


def become(node: Any, cls: Any) -> None:
    """Give a node another class with the same slots."""
    node.__class__ = cls


F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def specialized(function: F) -> F:
    """The function, with a copy of its code.

    The interpreter specializes the instructions of a code object for the types that they meet. The closures of one definition share their code,
    so that each meets the types of all the others, and nothing is specialized.
    """
    function.__code__ = function.__code__.replace()
    return function


def blanks(cls: type[T]) -> Iterator[T]:
    """New instances of a class, without attributes: `next` of it is object.__new__(cls), without the tuple that a call makes of its arguments."""
    return itertools.starmap(object.__new__, itertools.repeat((cls,)))
