"""What a function captures in a test: how it reads that, and how it changes; and a number in which all of it shows.

`kinds.txt` has a block of Python for each kind of value that a function may capture (`KINDS`), of values that cannot be watched, so that
`symgrad.compile` must say so (`REFUSED`), of functions that change what they capture (`EFFECTS`), of what surrounds them (`SURROUNDINGS`), and of
clocks, random numbers and files (`OUTSIDE`).
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import symgrad

TYPES = {bool: 0.9, int: 0.55, float: 0.3, complex: 0.2, str: 0.1, type(None): 0.7}
PART = re.compile(r"(read|state|- [\w ]+):(?: (.*))?")


class Captured(NamedTuple):
    """A captured value: `read(x)` is a number, an array or a tensor that depends on it; `changes` are functions of a new number.

    If `read` changes the value, `state` tells it, and `restore` sets it for the comparison with an eager call.
    """

    read: Callable[[Any], Any]
    changes: dict[str, Callable[[Any], Any]]
    state: Callable[[], Any] | None = None

    @property
    def restore(self) -> Callable[[Any], Any]:
        return self.changes["restore"]


Kind = Callable[[Any], Captured]


def weigh(v: Any) -> Any:
    """A number in which each bit of a value shows: its type, the signs of its zeros, and its dtype."""
    if isinstance(v, symgrad.Tensor):
        v = v.double().nan_to_num(0.25)
        return (0.37 * v + symgrad.atan2(v, symgrad.tensor(-1.0))).sum()
    if isinstance(v, (np.ndarray, np.generic)):
        kind = {"f": 0.3, "i": 0.5, "b": 0.8}.get(v.dtype.kind, 0.1) + 0.01 * v.dtype.itemsize + 0.001 * v.ndim
        v = np.nan_to_num(np.asarray(v, float), nan=0.25)
        return kind + float((0.37 * v + np.arctan2(v, -1.0)).sum()) + 0.003 * v.size
    number = float(abs(v) if isinstance(v, complex) else len(v) if isinstance(v, str) else 0 if v is None else v)
    number = 0.25 if number != number else number
    return TYPES.get(type(v), 0.6) + float(0.37 * number + np.arctan2(number, -1.0))


def number_of(m: Any) -> float:
    """A number that every array can hold."""
    return float(m) if isinstance(m, (int, float)) and abs(float(m)) < 100 else 3.0


def made(source: str, **names: Any) -> dict[str, Any]:
    """The variables of a module of its own."""
    space = {"__name__": "tests.routes.made", **names}
    exec(source, space)
    return space


def _bound(lines: list[str]) -> set[str]:
    """The names that some lines bind or delete."""
    nodes = list(ast.walk(ast.parse("\n".join(lines))))
    return {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)} | {
        node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def _parts(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The parts of a block with their names, of which the first is "", and their lines of Python."""
    setup: list[str] = []
    yield "", setup
    body = setup
    for line in lines:
        if part := PART.fullmatch(line):
            name, text = part.groups()
            body = [] if text is None else [f"return {text}" if name in ("read", "state") else text]
            yield name.removeprefix("- "), body
        elif body is not setup and (not line or line.startswith("    ")):
            body.append(line[4:])
        else:
            body = setup
            setup.append(line)


def _block(where: str, lines: list[str], space: dict[str, Any]) -> Kind:
    """The function of a number that a block says."""
    parts = list(_parts(lines))
    (_, setup), functions = parts[0], parts[1:]
    outer, text = _bound(setup) | {"n"}, [*setup]
    for k, (part, body) in enumerate(functions):
        shared = sorted(_bound(body) & outer) if part != "state" else []
        head = f"def {'read(x)' if part == 'read' else f'part{k}(m=None)'}:"
        text += [head, *[f"    nonlocal {', '.join(shared)}"] * bool(shared), *(f"    {line}" for line in body)]
    given = ", ".join(f"{part!r}: part{k}" for k, (part, _) in enumerate(functions) if part not in ("read", "state"))
    state = next((f"part{k}" for k, (part, _) in enumerate(functions) if part == "state"), None)
    source = "def block(n):\n" + textwrap.indent("\n".join([*text, f"return Captured(read, {{{given}}}, {state})"]), "    ")
    exec(compile(source, where, "exec"), space)
    return space.pop("block")


def blocks(name: str) -> dict[str, dict[str, Kind]]:
    """The blocks of a file, by the names of their groups (lines that begin with `====`) and their own."""
    path = Path(__file__).parent / name
    front, *parts = re.split(r"^(?=\[.*\]$|\(.*\)$|====|####)", path.read_text(), flags=re.MULTILINE)
    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(front, path, "exec"), space)
    space["Captured"] = Captured
    groups: dict[str, dict[str, Kind]] = {}
    fragments: dict[str, list[str]] = {}
    for part in parts:
        head, *lines = part.rstrip().splitlines()
        lines = [each for line in lines for each in (fragments[line[2:]] if line.startswith("+ ") else [line])]
        if head.startswith("===="):
            found = groups[head.strip("= ")] = {}
        elif head.startswith("("):
            fragments[head[1:-1]] = lines
        elif head.startswith("["):
            found[head[1:-1]] = _block(f"{path} {head}", lines, space)
    return groups


KINDS, REFUSED, EFFECTS, SURROUNDINGS, OUTSIDE = blocks("kinds.txt").values()
