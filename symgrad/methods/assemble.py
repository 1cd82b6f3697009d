"""Where Tensor and Node get their methods: the one place that sets attributes of these classes, from the tables of all families."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symgrad.autograd import engine as backward
from symgrad.autograd import modes, saving
from symgrad.engine import hooks, traced
from symgrad.engine.storage import views
from symgrad.engine.tensor import Tensor
from symgrad.formulas import expressions
from symgrad.graph.node import Node
from symgrad.methods import (
    copying,
    counting,
    filling,
    inplace,
    layout,
    legacy,
    numpy_protocol,
    operators,
    predicates,
    printing,
    reshaping,
    values,
)

__all__ = ["TABLES", "assemble", "attach", "detach"]

TABLES = (
    traced.METHODS, hooks.METHODS, views.METHODS, modes.METHODS, backward.METHODS, expressions.METHODS, operators.METHODS, numpy_protocol.METHODS,
    layout.METHODS, reshaping.METHODS, inplace.METHODS, counting.METHODS, filling.METHODS, predicates.METHODS, printing.METHODS, copying.METHODS,
    legacy.METHODS, values.METHODS,
)


def attach(table: Mapping[str, Any], owner: type = Tensor) -> None:
    """Give Tensor, or another class, the members of a table.

    Raises NameError for a name that the class has already.
    """
    for name, member in table.items():
        if name in vars(owner):
            raise NameError(f"{owner.__name__}.{name} is defined twice; one of the definitions has to go")
        setattr(owner, name, member)


def detach(names: Iterable[str]) -> None:
    """Take members away that `attach` gave."""
    for name in names:
        if name in vars(Tensor):
            delattr(Tensor, name)


def assemble(*tables: Mapping[str, Any]) -> None:
    """Give Tensor the members of all families, and of the `tables` of rooms above this one; called once, when symgrad is imported."""
    for table in (*TABLES, *tables):
        attach(table)
    for table in (hooks.NODE_METHODS, saving.NODE_METHODS):
        attach(table, Node)
