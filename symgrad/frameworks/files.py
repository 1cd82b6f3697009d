"""The functions of a Python file that the command line checks: the file is executed as a module, and functions in it are selected."""

from __future__ import annotations

import contextlib
import dis
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from symgrad.engine.tensor import Tensor
from symgrad.formulas.parsing import ParseError
from symgrad.frameworks.calling import examples_of
from symgrad.reports.base import message_of
from symgrad.system.frames import is_of_library
from symgrad.system.restoring import restored

MODULE = "symgrad_checked_file"
OUTER = ArithmeticError, ImportError, MemoryError, OSError, RecursionError, SyntaxError  # errors that depend on the input and the machine
ALGEBRA = tuple(str(Path(np.__file__).parents[1] / name) + os.sep for name in ("sympy", "mpmath"))


class BadInput(Exception):
    """Invalid input of the command line, with a message for the user."""


def split_target(target: str) -> tuple[Path, str | None]:
    """The file and the function of FILE[:FUNCTION]; a colon may be part of a path."""
    path, name = Path(target), None
    if not path.is_file() and ":" in target:
        file, _, name = target.rpartition(":")
        path = Path(file)
        if path.is_file() and not name.isidentifier():
            raise BadInput(f"{name!r} is not the name of a function; write {file}:FUNCTION")
    if path.is_dir():
        raise BadInput(f"{path} is a directory; name a Python file in it")
    if not path.is_file():
        raise BadInput(f"the file {path} does not exist")
    return path, name


def load_file(path: Path) -> ModuleType:
    """Execute the file as a module, though not as `__main__`."""
    loader = importlib.machinery.SourceFileLoader(MODULE, str(path))
    spec = importlib.util.spec_from_loader(MODULE, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    folder = str(path.resolve().parent)

    def restore() -> None:
        sys.path[:] = [each for each in sys.path if each is not folder]  # this entry, wherever the file has moved it

    with restored(restore, lambda: sys.path.insert(0, folder)):
        try:
            loader.exec_module(module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise BadInput(f"{path} does not run\n{error_location(error, path)}") from None
    return module


@contextlib.contextmanager
def running(what: str, path: Path) -> Iterator[None]:
    """Raise BadInput for an error of the user's code in the block, with its line in a file; an error of symgrad itself is raised as it is."""
    try:
        yield
    except (BadInput, ParseError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if is_internal(error):
            raise
        raise BadInput(f"{what} does not run at these inputs\n{error_location(error, path)}") from None


@contextlib.contextmanager
def arguments_checked() -> Iterator[None]:
    """Raise BadInput for the errors with which a check says that its arguments are not valid."""
    try:
        yield
    except ParseError as error:
        raise BadInput(f"cannot read --formula: {error}") from None
    except (TypeError, ValueError, ImportError) as error:
        if is_internal(error):
            raise
        raise BadInput(message_of(error).partition(": ")[2].removeprefix("check: ")) from None


def is_internal(error: BaseException) -> bool:
    """Whether an error is a mistake in symgrad: no code of the user ran when it was raised, and no statement raised it, unless an assertion."""
    trace, last = error.__traceback__, None
    while trace is not None:
        if not is_of_library(path := trace.tb_frame.f_code.co_filename) and not path.startswith(ALGEBRA):
            return False
        trace, last = trace.tb_next, trace
    if last is None or isinstance(error, OUTER) or not isinstance(error, Exception):
        return False
    return isinstance(error, AssertionError) or dis.opname[last.tb_frame.f_code.co_code[last.tb_lasti]] != "RAISE_VARARGS"


def error_location(error: BaseException, path: Path) -> str:
    """The line of the user's file that raised an error, and the error."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        line = (error.text or "").rstrip("\n")
        lead = len(line) - len(line.lstrip())
        column = max((error.offset or 1) - 1 - lead, 0)
        return f"  {error.filename}, line {error.lineno}\n    {line.strip()}\n    {' ' * column}^\n  {type(error).__name__}: {error.msg}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == path.resolve()]
    place = f"  {path}, line {frames[-1].lineno}, in {frames[-1].name}\n    {frames[-1].line}\n" if frames else ""
    what = f"it calls sys.exit({error.code!r})" if isinstance(error, SystemExit) else message_of(error)
    return f"{place}  {what}"


def _functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    return {name: f for name, f in vars(module).items()
            if not name.startswith("_") and inspect.isroutine(f) and getattr(f, "__module__", None) == module.__name__ and not inspect.isclass(f)}


def named_function(module: ModuleType, name: str, path: Path) -> Any:
    """A function of the file, or a tuple of a function and its derivatives."""
    found = getattr(module, name, None)
    if found is None:
        known = ", ".join(_functions(module)) or "none"
        raise BadInput(f"{path} has no function {name!r}; its functions are: {known}")
    if not callable(found) and not (isinstance(found, tuple) and found and all(map(callable, found))):
        raise BadInput(f"{name} in {path} is not a function, but of type {type(found).__name__}; a tuple (function, gradient) can be checked, too")
    return found


def functions_with_inputs(module: ModuleType, path: Path, at: Mapping[str, Any]) -> list[tuple[str, Callable[..., Any]]]:
    """The functions to check if none is named: those whose parameters all have values, at least one of them real."""
    functions = _functions(module)
    out = []
    for known, f in functions.items():
        parameters = inspect.signature(f).parameters.values()
        names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        values = {p.name: p.default for p in parameters if p.default is not p.empty} | (examples_of(f) or {}) | dict(at)
        if names and all(name in values for name in names) and all(name in names for name in at) and (
                examples_of(f) or at or any(_is_real(values[name]) for name in names)):
            out.append((known, f))
    if not out:
        raise BadInput(f"no function in {path} has all its inputs{' with --at ' + ','.join(at) if at else ''}; {_signatures_text(functions)}\n"
                       f"give float defaults, decorate one with @symgrad.example(...), or name it and its inputs: "
                       f"symgrad check {path}:FUNCTION --at x=1,y=[1,2]")
    return out


def _signatures_text(functions: Mapping[str, Callable[..., Any]]) -> str:
    return "the functions are: " + (", ".join(f"{name}{inspect.signature(f)}" for name, f in functions.items()) or "none")


def matching_function(module: ModuleType, path: Path, names: Sequence[str]) -> list[tuple[str, Callable[..., Any]]]:
    """The one function whose arguments have the names in a formula."""
    functions = _functions(module)
    out = [(name, f) for name, f in functions.items() if set(names) <= set(inspect.signature(f).parameters)]
    if len(out) != 1:
        raise BadInput(f"{'no function' if not out else 'more than one function'} in {path} has the arguments {', '.join(names)}; "
                       f"{_signatures_text(functions)}\nname it: symgrad check {path}:FUNCTION --formula ...")
    return out


def _is_real(value: Any) -> bool:
    """Whether a value is a float, an array or tensor of floats, or a sequence that contains one."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_real, value))
    return isinstance(value, float) or getattr(getattr(value, "dtype", None), "kind", "") == "f" or (
        isinstance(value, Tensor) and value.is_floating_point())
