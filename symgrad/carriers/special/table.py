"""The table of special functions: one row for each, read by every carrier.

A row names an elementwise function and says how it is computed: of arrays (a ufunc of `scipy.special`, or a function of that module and arrays), of
many-digit numbers (a function of an mpmath context and numbers), as a SymPy expression (a function of the module and expressions), and of balls.
Parameters that are numbers, such as an order, follow the values.

`sources` says how it is written by language: NumPy, Torch, Jax and C, or Python for those that have none of their own. A source is the name of a
function, a format as in `symgrad.codegen.languages`, or the definition of a helper, where `{m}` is the module of arrays; one in Python is translated
for C. A ufunc of SciPy is known by its name.
A name followed by parameters, as in "C 0", is the source for these.
What has no source is refused by the printer of the language with a TypeError.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from symgrad.carriers.special import FAMILIES, printed


class Row(NamedTuple):
    """A special function of `arity` values, followed by parameters; None where there is no enclosure."""

    arrays: str | Callable[..., Any]
    digits: Callable[..., Any]
    formula: Callable[..., Any]
    balls: Callable[..., Any] | None = None
    arity: int = 1
    sources: Mapping[str, str] = {}


SPECIAL: dict[str, Row] = {}
for _family, _names in FAMILIES.items():
    _rows = importlib.import_module(f"{__package__}.{_family}").ROWS
    SPECIAL |= {name: Row(*_rows[name]) for name in _names.split()}
for _name, _sources in printed.PRINTED.items():
    SPECIAL[_name] = SPECIAL[_name]._replace(sources={**SPECIAL[_name].sources, **_sources})
