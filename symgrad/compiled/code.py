"""What the code of a function reads: names of globals, of attributes and of modules that it imports, each with the first line that has it."""

from __future__ import annotations

import dis
import functools
import types
from typing import NamedTuple

__all__ = ["Reads", "reads"]

CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST")  # before `is`, as in `x is None`
DYNAMIC = ("getattr", "attrgetter", "methodcaller", "hasattr", "setattr", "delattr")
FORMATTING = ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE")
NAMED = frozenset(dis.hasname)  # operations with the name of an attribute or a global variable


class Reads(NamedTuple):
    """The names in a function and in those that are defined in it; `is` counts as an attribute, and patterns of classes as `isinstance`."""

    globals: dict[str, int]
    attributes: dict[str, int]
    modules: dict[str, int]
    handles: bool  # whether an exception may be caught
    loads: set[str]  # the names that are not only written


@functools.lru_cache(4096)
def reads(code: types.CodeType) -> Reads:
    """The names that a function reads."""
    steps = list(dis.get_instructions(code))
    inner = [reads(x) for x in code.co_consts if isinstance(x, types.CodeType)]
    out = Reads({}, {}, {}, any(step.opname == "PUSH_EXC_INFO" for step in steps) or any(x.handles for x in inner), set())
    line, before = code.co_firstlineno, steps[0]
    for step in steps:
        if step.starts_line is not None and not isinstance(step.starts_line, bool):
            line = step.starts_line
        name = step.argval
        if step.opname == "MATCH_CLASS" or step.opname == "IS_OP" and before.opname not in CONSTANTS:
            out.attributes.setdefault("isinstance" if step.opname == "MATCH_CLASS" else "is", line)
        before = step
        if step.opname in FORMATTING or step.opname == "BINARY_OP" and step.argrepr in ("%", "%="):
            out.attributes.setdefault("format", line)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"):
            out.globals.setdefault(name, line)
        elif step.opname == "IMPORT_NAME":
            out.modules.setdefault(name, line)
        elif isinstance(name, str) and name in code.co_names:
            out.attributes.setdefault(name, line)
        if step.opcode in NAMED and step.opname not in ("STORE_ATTR", "DELETE_ATTR"):
            out.loads.add(name)
    if any(name in out.globals or name in out.attributes for name in DYNAMIC):  # names of attributes may be among the strings
        found = {x: line for x in code.co_consts if isinstance(x, str) and x.isidentifier()}
        out.attributes.update(found | out.attributes)
        out.loads.update(found)
    for below in inner:
        out.loads.update(below.loads)
        for mine, theirs in zip(out[:3], below[:3]):
            for name, at in theirs.items():
                mine.setdefault(name, at)
    for x in code.co_consts:
        if isinstance(x, tuple):  # names of attributes in patterns of `match`
            for name in x:
                if isinstance(name, str):
                    out.attributes.setdefault(name, line)
                    out.loads.add(name)
    return out
