"""What the code of a function reads: names of globals, of attributes and of modules that it imports, each with the first line that has it."""

from __future__ import annotations

import dis
import functools
import re
import types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST")  # before `is`, as in `x is None`
DYNAMIC = ("getattr", "attrgetter", "methodcaller", "hasattr", "setattr", "delattr")
FORMATTING = ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE")
NAMED = frozenset(dis.hasname)  # operations with the name of an attribute or a global variable
LOADS = {"LOAD_GLOBAL": "global", "LOAD_NAME": "global", "LOAD_FROM_DICT_OR_GLOBALS": "global", "LOAD_ATTR": "attribute", "LOAD_METHOD": "attribute",
         "LOAD_SUPER_ATTR": "attribute", "IMPORT_NAME": "module", "IMPORT_FROM": "attribute"}
OF_CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
OWNING = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM")  # with the attribute of the value that was loaded just before
OF_NAMESPACES = ("locals", "vars")  # functions that read variables without their names
MAKING = ("__init__", "__new__", "__post_init__", "__init_subclass__", "__setstate__")  # methods that set attributes of an object that is new
WRITTEN, FILLED = ".=", "[]="  # among the attributes of a value of which an attribute, or an element, is assigned
LOAD = "LOAD_(FAST|CONST|GLOBAL|DEREF|NAME|SMALL_INT)[A-Z_]* "
TO_ELEMENT = f"((STORE|DELETE)_SUBSCR|COPY COPY|{LOAD}(STORE_SLICE|COPY COPY|BUILD_(SLICE|TUPLE) ((STORE|DELETE)_SUBSCR|COPY)))"
# operations after a value was loaded, as in `a.b = 1` and `a.b += 1`, or in `a[i] = 1`, `a[i] += 1` and `a[i:j] = 1`
WRITES = {WRITTEN: re.compile("(STORE|DELETE)_ATTR|COPY LOAD_ATTR"), FILLED: re.compile(LOAD + TO_ELEMENT)}
ELSEWHERE = ""  # among the attributes of a value that is not only asked for attributes, but passed on, returned or stored

Uses = dict[tuple[str, str], dict[str, int]]


class Operation(NamedTuple):
    """An operation of a function's code."""

    name: str
    argument: Any
    line: int


class Reads(NamedTuple):
    """The names in a function and in those that are defined in it; `is` counts as an attribute, and patterns of classes as `isinstance`."""

    globals: dict[str, int]
    attributes: dict[str, int]
    modules: dict[str, int]
    handles: bool  # whether an exception may be caught
    loads: set[str]  # the names that are not only written
    # the attributes that are read of each global variable, variable of an enclosing function ("cell"), imported module and attribute
    uses: Uses
    writes: set[str]  # variables of enclosing functions that are written; "" for global ones, for attributes of `self`, and for arguments


@functools.lru_cache(4096)
def reads(code: types.CodeType) -> Reads:
    """The names that a function reads."""
    steps = list(dis.get_instructions(code))
    inner = [reads(x) for x in code.co_consts if isinstance(x, types.CodeType)]
    out = Reads({}, {}, {}, any(step.opname == "PUSH_EXC_INFO" for step in steps) or any(x.handles for x in inner), set(), {}, set())
    line, before = code.co_firstlineno, steps[0]
    operations = list[Operation]()
    for step in steps:
        if step.starts_line is not None and not isinstance(step.starts_line, bool):
            line = step.starts_line
        name = step.argval
        if step.opname not in ("EXTENDED_ARG", "NOP"):
            operations += _single(step, line)
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
        out.uses.update({("attribute", x): {ELSEWHERE: line} for x, line in found.items()})
    _add_uses(out.uses, code, operations, inner, any(name in out.globals for name in OF_NAMESPACES))
    _add_writes(out.writes, out.uses, code, operations)
    out.writes.update(*[x.writes - {*code.co_cellvars} for x in inner])
    for value in [x for x in out.uses if x[0] == "local"]:
        del out.uses[value]
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


def _single(step: dis.Instruction, line: int) -> Iterator[Operation]:
    """An operation, or the two that one stands for, such as LOAD_FAST_LOAD_FAST."""
    pair = re.findall(r"(?:LOAD|STORE)_FAST", step.opname)
    if len(pair) == 2 and isinstance(step.argval, tuple):
        yield from [Operation(name, value, line) for name, value in zip(pair, step.argval)]
    else:
        yield Operation(step.opname, step.argval, line)


def _add_uses(uses: Uses, code: types.CodeType, operations: Sequence[Operation], inner: Sequence[Reads], all_read: bool) -> None:
    """Find which attributes are read of each value that the code loads, also through the local variables that are names for it.

    A local variable is a name for all that is assigned to it somewhere. With `all_read`, variables are read without their names.
    """
    own = {*code.co_cellvars}
    names: dict[tuple[str, str], set[tuple[str, str]]] = {}  # local variables that are names for a value
    module = ("module", "")

    def add(value: tuple[str, str], attribute: str, line: int) -> None:
        uses.setdefault(value, {}).setdefault(attribute, line)

    for below in inner:
        for (kind, name), found in below.uses.items():
            for attribute, line in found.items():
                add(("local" if kind == "cell" and name in own else kind, name), attribute, line)
    end = Operation("", None, code.co_firstlineno)
    for i, (operation, argument, _) in enumerate(operations):
        after = operations[i + 1] if i + 1 < len(operations) else end
        if operation in LOADS:
            value = LOADS[operation], argument
        elif operation in OF_CELLS:
            value = "local" if argument in own else "cell", argument
        elif operation.startswith("LOAD_FAST") and argument not in own and argument not in code.co_freevars:  # these are loaded to make a closure
            value = "local", argument
        else:
            continue
        if operation == "IMPORT_NAME":
            module = value
        elif operation == "IMPORT_FROM":
            add(module, argument, after.line)
        uses.setdefault(value, {})
        following = " ".join([x.name for x in operations[i + 1:i + 5]])
        for kind_of_write, pattern in WRITES.items():
            if pattern.match(following):
                add(value, kind_of_write, after.line)
        if after.name in OWNING:
            add(value, after.argument, after.line)
        elif (after.name.startswith("STORE_FAST") or after.name == "STORE_DEREF" and after.argument in own) and not all_read:
            names.setdefault(value, set()).add(("local", after.argument))
        elif after.name != "POP_TOP":
            add(value, ELSEWHERE, after.line)
    for value in [x for x in names if x[0] != "local"]:
        known, waiting = set[tuple[str, str]](), [*names[value]]
        while waiting:
            variable = waiting.pop()
            if variable not in known:
                known.add(variable)
                waiting += names.get(variable, ())
                for attribute, line in uses.get(variable, {}).items():
                    add(value, attribute, line)


def is_in_place(name: str) -> bool:
    """Whether a method with a name writes into a tensor."""
    return name.endswith("_") and not name.endswith("__")


def _add_writes(writes: set[str], uses: Uses, code: types.CodeType, operations: Sequence[Operation]) -> None:
    for name in code.co_varnames[:code.co_argcount]:
        used = uses.get(("local", name), {})
        if any(map(is_in_place, used)) or name in ("self", "cls") and WRITTEN in used and code.co_name not in MAKING:
            writes.add("")
    for operation in operations:
        if operation.name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            writes.add("")
        elif operation.name in ("STORE_DEREF", "DELETE_DEREF") and operation.argument in code.co_freevars:
            writes.add(operation.argument)
