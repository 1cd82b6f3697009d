"""Classes of nodes that are made of other ones, and the one place where a node that was recorded gets another class.

A node's class has its rule and torch's name of it. Both may be known only after the node was recorded: a name depends on the arguments, a rule on
what a pass or a hook does later. The node keeps its identity, its hooks and its place in the graph. Python allows the assignment for classes with
the same slots, so a derived class adds none, or its nodes are made of it.
"""

from __future__ import annotations

import functools
from typing import Any


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
