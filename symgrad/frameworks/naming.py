"""The name of a function, the names of its arguments, its import path, and its framework, which is found without importing any."""

from __future__ import annotations

import dis
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

# The public modules of functions whose `__module__` is private.
PUBLIC = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft", "jax.nn", "jax.numpy", "jax.scipy.special", "jax.lax",
          "jax.numpy.linalg", "jax.scipy.stats.norm", "autograd.numpy", "autograd.scipy.special", "numpy", "scipy.special", "symgrad",
          "symgrad.nn.functional", "symgrad.special", "symgrad.linalg")
PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def owner_of(op: Any) -> Any:
    """The `Function` class whose `apply` this is, None for any other object."""
    owner = op if inspect.isclass(op) else getattr(op, "__self__", None) if getattr(op, "__name__", "") == "apply" else None
    return owner if inspect.isclass(owner) and callable(getattr(owner, "apply", None)) else None


def name_of(op: Any) -> str:
    """The name of a function in a report; for an `apply` that of its class, for a partial that of its function.

    An object without a name has the name of a variable of its module or of the caller.

    >>> name_of(functools.partial(np.add, 1.0)), name_of(lambda x: x)
    ('add', '<lambda>')
    """
    found = getattr(owner_of(op) or op, "__name__", None)
    if not isinstance(found, str) or not found.isidentifier():
        found = _variable(op) or (name_of(op.func) if isinstance(op, functools.partial) else found)
    elif inspect.isbuiltin(op):
        found = _public_name(found)
    return found if isinstance(found, str) and found else type(op).__name__


def _variable(op: Any, of_callers: bool = True) -> str | None:
    """The name of an object in its module, or of a lambda or partial among the variables where symgrad was called; None without one."""
    frame = inspect.currentframe() if of_callers and isinstance(op, (FunctionType, functools.partial)) else None
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "symgrad":
        frame = frame.f_back
    module = sys.modules.get(home) if isinstance(home := getattr(op, "__module__", None), str) else None
    variables = [*(() if module is None else vars(module).items()), *(() if frame is None else frame.f_locals.items())]
    return next((name for name, thing in variables if thing is op and name.isidentifier()), None)


def _public_name(name: str) -> str:
    return name.removeprefix("special_").removeprefix("linalg_").removeprefix("fft_")


def argument_names(op: Any, formula: Sequence[str] | None, parameters: int, count: int | None = None) -> list[str]:
    """The names of the tensor arguments: those without a default, and those in the formula, without the last `parameters` ones.

    There are `count` of them if it is given. A function without a signature has the names of the formula, and so has a function whose
    single argument has another name. An empty list if the names are not known. Raises ValueError if the names of the formula are different
    and cannot be assigned.

    >>> argument_names(lambda x, a=1.0, n=2: a * x**n, ["a", "x"], 0), argument_names(np.hypot, None, 0)
    (['x', 'a'], ['x1', 'x2'])
    """
    placed, formula = _positional_parameters(op), list(formula or ())
    named = [p.name for p in placed or () if p.default is p.empty or p.name in formula and type(p.default) is float]
    if placed is None or not named:
        return formula or ([f"x{i}" for i in range(op.nin)] if isinstance(op, np.ufunc) else [])
    if parameters:
        required = sum(p.default is p.empty for p in placed)
        last = max((k + 1 for k, p in enumerate(placed) if p.name in formula), default=0)
        fitting = range(max(1, required - parameters), len(placed) - parameters + 1)
        named = [p.name for p in placed[:next((k for k in (count, last) if k in fitting), fitting.start)]]
    if not formula or set(formula) & set(named):
        return named
    if len(named) > 1 and len(formula) > 1:
        raise ValueError(f"symgrad.testing: the formula names {', '.join(formula)}, but the arguments of {name_of(op)} are {', '.join(named)}; "
                         f"name these in the formula")
    return formula if len(named) == len(formula) else named


def parameters_of(op: Any) -> list[inspect.Parameter] | None:
    """The parameters a function declares; those of `forward` for a module and, without its context, for a `Function`; None without a signature."""
    skip = 0
    owner = owner_of(op)
    if owner is not None:  # apply takes any arguments
        op = getattr(owner, "forward", op)
        own = (c for c in owner.__mro__[:-1] if c.__module__.partition(".")[0] not in ("torch", "symgrad"))
        skip = 0 if any("setup_context" in vars(c) for c in own) else 1
    elif hasattr(type(op), "forward") and not inspect.isroutine(op):  # a module
        op = op.forward
    try:
        return list(inspect.signature(op).parameters.values())[skip:]
    except (TypeError, ValueError):
        return None


def _positional_parameters(op: Any) -> list[inspect.Parameter] | None:
    """The positional parameters of a function, None where it takes any number or has no signature."""
    parameters = parameters_of(op)
    if parameters is None or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return [p for p in parameters if p.kind in PLACED]


def import_path(op: Any) -> tuple[str, str] | None:
    """Module and name under which a function can be imported; None for a lambda, a partial, and a nested function.

    >>> import_path(np.exp), import_path(lambda x: x)
    (('numpy', 'exp'), None)
    """
    for module in PUBLIC:
        name = getattr(op, "__name__", None)
        loaded = sys.modules.get(module)
        for n in (name, _public_name(str(name))):
            if loaded is not None and isinstance(n, str) and _is_same(vars(loaded).get(n), op):
                return module, n
    what = owner_of(op) or op
    home, path = getattr(what, "__module__", None), getattr(what, "__qualname__", None) or getattr(what, "__name__", None)
    if not isinstance(path, str) or path == "<lambda>":
        path = _variable(what, False)
    if not isinstance(home, str) or not isinstance(path, str) or "<" in path or home == "__main__":
        return None
    try:
        found: Any = importlib.import_module(home)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return (home, path) if found is what else None


def _is_same(found: Any, op: Callable[..., Any]) -> bool:
    return found is op or found is not None and inspect.isbuiltin(op) and inspect.isbuiltin(found) and found == op


FRAMEWORKS = ("torch", "jax", "autograd", "numpy", "symgrad")
FOREIGN = ("torch", "jax", "autograd")  # frameworks whose functions symgrad cannot run
PACKAGES = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "autograd": "autograd", "symgrad": "symgrad", "numpy": "numpy", "scipy": "numpy"}
DEPTH = 4  # depth of calls that is searched


def named_framework(name: str) -> str:
    """The name of a framework. Raises ValueError for an unknown one."""
    if name not in FRAMEWORKS:
        raise ValueError(f"check: framework is {name!r}; expected one of {', '.join(map(repr, FRAMEWORKS))}")
    return name


def framework_of(function: Callable[..., Any]) -> str | None:
    """The framework of a function: the first of torch, jax, autograd, symgrad and numpy that it or a function it calls uses, else None.

    >>> import numpy as np
    >>> framework_of(lambda x: np.exp(x)), framework_of(lambda x: x * x)
    ('numpy', None)
    """
    found = set(_frameworks_used(function, DEPTH, set()))
    return next((name for name in ("torch", "jax", "autograd", "symgrad", "numpy") if name in found), None)


def is_foreign(function: Any) -> bool:
    """Whether a function is a tuple with its derivatives, or written for a framework that symgrad cannot run.

    >>> is_foreign(lambda x: x * x), is_foreign((lambda x: x * x, lambda x: 2 * x))
    (False, True)
    """
    return isinstance(function, tuple) or framework_of(function) in FOREIGN


def _framework_of_package(name: Any) -> str | None:
    return PACKAGES.get(name.partition(".")[0]) if isinstance(name, str) else None


def _frameworks_used(obj: Any, depth: int, seen: set[int]) -> Iterator[str]:
    """The frameworks that an object belongs to or that its code uses."""
    if id(obj) in seen or obj is None:
        return
    seen.add(id(obj))
    if isinstance(obj, ModuleType):
        found = _framework_of_package(obj.__name__)
        if found:
            yield found
        return
    if isinstance(obj, functools.partial):
        for part in (obj.func, *obj.args):
            yield from _frameworks_used(part, depth, seen)
        return
    owner = getattr(obj, "__self__", None)
    cls = obj if inspect.isclass(obj) else type(obj)
    classes = [*cls.__mro__, *(owner.__mro__ if inspect.isclass(owner) else () if isinstance(owner, ModuleType) else type(owner).__mro__)]
    modules = [getattr(obj, "__module__", None), *(getattr(c, "__module__", None) for c in classes)]
    if isinstance(owner, ModuleType):
        modules.append(owner.__name__)
    own = isinstance(obj, FunctionType)  # detected by its code, since a function defined in symgrad need not use symgrad
    if not own and "symgrad" in map(_framework_of_package, modules):  # nodes of Functions have torch's module name for display
        yield "symgrad"
        return
    yield from (found for found in map(_framework_of_package, modules) if found and not (own and found == "symgrad"))
    if not depth or own and str(obj.__module__).startswith("scipy."):  # SciPy's code refers to other frameworks whose arrays it accepts
        return
    if hasattr(obj, "__wrapped__"):
        yield from _frameworks_used(obj.__wrapped__, depth, seen)
    if inspect.isclass(owner) or inspect.isclass(obj):
        for part in vars(obj if inspect.isclass(obj) else owner).values():
            yield from _frameworks_used(getattr(part, "__func__", part) if callable(part) or hasattr(part, "__func__") else None, depth - 1, seen)
    if inspect.ismethod(obj):
        yield from _frameworks_used(obj.__func__, depth, seen)
    elif isinstance(obj, FunctionType):
        yield from _names_in_code(obj, depth, seen)
    elif not inspect.isclass(obj) and not inspect.isroutine(obj):
        yield from _frameworks_used(vars(type(obj)).get("__call__"), depth - 1, seen)


def _names_in_code(function: FunctionType, depth: int, seen: set[int]) -> Iterator[str]:
    """The objects that the names in a function's code refer to: globals, imports inside it, and its closure."""
    stack: list[CodeType] = [function.__code__]
    while stack:
        code = stack.pop()
        stack += [c for c in code.co_consts if isinstance(c, CodeType)]
        for step in dis.get_instructions(code):
            if step.opname == "IMPORT_NAME":
                yield from filter(None, [_framework_of_package(step.argval)])
            elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in function.__globals__:
                yield from _frameworks_used(function.__globals__[step.argval], depth - 1, seen)
    for cell in function.__closure__ or ():
        try:
            yield from _frameworks_used(cell.cell_contents, depth - 1, seen)
        except ValueError:  # an empty cell
            continue
