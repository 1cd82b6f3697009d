"""Attaches the methods of all tables to Tensor and Node: the only module that sets attributes of these classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symgrad.autograd import calls, modes
from symgrad.autograd import engine as backward
from symgrad.engine import hooks, traced
from symgrad.engine.storage import leaves, strided, views
from symgrad.engine.tensor import Tensor
from symgrad.formulas import expressions
from symgrad.graph.node import Node
from symgrad.methods import (
    copying,
    counting,
    elements,
    filling,
    histograms,
    inplace,
    integers,
    layout,
    numpy_ufuncs,
    operators,
    predicates,
    printing,
    reshaping,
    spectrograms,
    surface,
    values,
)

TABLES = (
    traced.METHODS, hooks.METHODS, views.METHODS, leaves.METHODS, strided.METHODS, modes.METHODS, backward.METHODS, expressions.METHODS,
    operators.METHODS, numpy_ufuncs.METHODS, layout.METHODS, reshaping.METHODS, inplace.METHODS, counting.METHODS,
    integers.METHODS, filling.METHODS, predicates.METHODS, printing.METHODS, copying.METHODS, values.METHODS, surface.METHODS,
    histograms.METHODS, elements.METHODS, spectrograms.METHODS,
)


def attach(table: Mapping[str, Any], owner: type = Tensor) -> None:
    """Attach the members of a table to Tensor, or to another class.

    Raises NameError for a name that the class already has.
    """
    for name, member in table.items():
        if name in vars(owner):
            raise NameError(f"{owner.__name__}.{name} is defined twice; remove one of the definitions")
        setattr(owner, name, member)


def detach(names: Iterable[str]) -> None:
    """Remove members that `attach` set."""
    for name in names:
        if name in vars(Tensor):
            delattr(Tensor, name)


def assemble(*tables: Mapping[str, Any], nodes: Mapping[str, Any]) -> None:
    """Attach all members of Tensor, with those of the `tables` of higher layers, and those of `nodes`; called once, by `import symgrad`."""
    for table in (*TABLES, *tables):
        attach(table)
    for table in (hooks.NODE_METHODS, calls.NODE_METHODS, nodes):
        attach(table, Node)
