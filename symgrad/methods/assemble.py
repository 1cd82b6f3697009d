"""Attaches the methods of all tables to Tensor and Node: the only module that sets attributes of these classes."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from symgrad.engine import hooks
from symgrad.engine.tensor import Tensor
from symgrad.graph.node import Node

TABLES = [importlib.import_module(f"symgrad.{name}").METHODS for name in (
    "engine.traced", "engine.hooks", "engine.storage.views", "engine.storage.copyslices", "autograd.modes", "autograd.engine",
    "formulas.expressions", "methods.operators", "methods.numpy_ufuncs", "methods.layout", "methods.reshaping", "methods.inplace",
    "methods.counting", "methods.filling", "methods.predicates", "methods.printing", "methods.values", "methods.surface", "methods.histograms",
    "methods.spectrograms")]


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
    for table in (hooks.NODE_METHODS, nodes):
        attach(table, Node)
