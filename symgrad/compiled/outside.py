"""What a function reads of the world outside of the program: clocks, files, and random numbers of other libraries.

A function that may read them, by the names in its code, is recorded with a look at each C function that it calls.
"""

from __future__ import annotations

import _io
import abc
import array
import builtins
import collections
import contextlib
import dataclasses
import datetime
import decimal
import functools
import inspect
import logging
import operator
import os
import random
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.compiled.code import ELSEWHERE, FILLED, WRITTEN, is_in_place
from symgrad.compiled.contents import Part
from symgrad.compiled.kinds import State, is_library, state_of
from symgrad.engine.tensor import Tensor
from symgrad.factories import random_tensors
from symgrad.factories.generators import Generator, default_generator
from symgrad.system.restoring import restored

CLOCKS = tuple(f for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time", "time_ns", "perf_counter_ns", "monotonic_ns",
                              "process_time_ns", "thread_time_ns", "localtime", "gmtime", "ctime") if (f := getattr(time, name, None)) is not None)
FILES = (os.stat, os.lstat, os.listdir, os.scandir, os.getcwd, os.access, os.readlink)
DOING = tuple(f for name in """
    abort chdir chmod chown close dup dup2 execv execve fork ftruncate kill link mkdir mkfifo pipe pwrite read remove rename replace rmdir sendfile
    symlink system truncate umask unlink utime write writev
""".split() if (f := getattr(os, name, None)) is not None)  # what a program would not do again
FOR_MESSAGES = frozenset("linecache warnings traceback tokenize".split())  # modules that read source files for the text of an error or a warning
EFFECTS = frozenset(map(id, DOING))
OUTSIDE = EFFECTS | frozenset(map(id, (*CLOCKS, *FILES, os.urandom, os.open, os.getpid, _io.open, builtins.input, np.fromfile)))
WARNING = frozenset(map(id, (warnings.warn, warnings.warn_explicit)))
OF_DATES = ("now", "utcnow", "today")  # class methods, which are made anew for each call
# modules whose functions read clocks and files, and names under which code finds such functions elsewhere
MODULES = frozenset("time datetime os io secrets uuid pathlib tempfile genericpath posixpath ntpath glob shutil".split())
NAMES = frozenset(("open input load loadtxt genfromtxt fromfile read_text read_bytes read_csv urandom SystemRandom getpid "
                  "default_rng RandomState SeedSequence exists stat listdir getcwd iterdir").split())
# modules of Python whose functions depend on their arguments alone, or are looked at
KNOWN = frozenset("""
__future__ abc argparse array ast base64 binascii bisect builtins calendar cmath codecs collections colorsys configparser contextlib
contextvars copy copyreg csv dataclasses datetime decimal difflib dis doctest enum errno fractions functools genericpath glob graphlib
hashlib heapq hmac html inspect io itertools json keyword linecache logging math ntpath numbers opcode operator os pathlib pickle posixpath
pprint queue random re reprlib secrets shlex shutil statistics string struct sys tempfile textwrap threading time token tokenize tomllib
thread traceback types typing unicodedata unittest uuid warnings weakref zlib zoneinfo
""".split())
# attributes of modules that give the state of the interpreter
UNSEEN = ((sys, ("modules", "getrecursionlimit", "_getframe", "_current_frames", "getrefcount", "getallocatedblocks", "getswitchinterval", "gettrace",
                 "getprofile")),
          (threading, ("enumerate", "active_count", "current_thread", "main_thread", "get_ident", "get_native_id")),
          (warnings, ("filters",)), (inspect, ("stack", "currentframe", "getouterframes", "getinnerframes")))
STATES = {id(x): (f"{module.__name__}.{name}", name) for module, names in UNSEEN for name in names
          if getattr(x := getattr(module, name, None), "__module__", "") == module.__name__}
CONSTANTS_OF_SYS = frozenset("""
__doc__ __name__ abiflags api_version argv base_exec_prefix base_prefix builtin_module_names byteorder copyright exc_info exception exec_prefix
executable exit flags float_info float_repr_style getdefaultencoding getfilesystemencoding getfilesystemencodeerrors getsizeof hash_info hexversion
implementation int_info intern is_finalizing maxsize maxunicode platform platlibdir prefix stderr stdlib_module_names stdout thread_info version
version_info
""".split())  # and what is compared, or is an effect
WRITING = frozenset(("write", "writelines", "flush", ELSEWHERE))  # what may be done with the streams of sys
STATES_OF_RANDOM_NUMBERS = frozenset("bit_generator clone_state get_state getstate jumped spawn state __getstate__ __reduce__".split())
SOURCES = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, functools._lru_cache_wrapper)  # by which code may come to that state


def unknown_module(value: Any, name: str, where: str) -> str:
    """Why a value cannot be watched that is a module of Python, or comes from one, whose functions may read anything, such as `subprocess`."""
    module = value.__name__ if isinstance(value, types.ModuleType) else value.__module__ if isinstance(
        value, (types.FunctionType, types.BuiltinFunctionType, type)) else ""
    package = (module or "").partition(".")[0]
    if package not in sys.stdlib_module_names or package == "__main__" or not KNOWN.isdisjoint((package, package.removeprefix("_"))):
        return ""
    return (f"{name.lstrip('.')}, of the module {package}, is read{where}, and what it returns may differ from call to call. Pass what is computed "
            f"with it as an argument")


def unseen(reached: Sequence[tuple[Part, str]], uses: Mapping[str, Mapping[str, str]], attributes: Mapping[str, str]) -> str:
    """Why a function that may read the state of the interpreter cannot be watched.

    `reached` are all ways to values, `attributes` are those that the code reads, and `uses` the attributes of these; each with a place.
    """
    if (place := attributes.get("__subclasses__")) is not None:
        return _differs("__subclasses__", place)
    seen, stack = set[tuple[int, str]](), [*reached]
    while stack:
        part, where = stack.pop()
        value: Any = part.value
        if not isinstance(value, SOURCES):
            continue
        known = part.uses if part.uses is not None else uses.get(part.attribute, {} if part.shared else {ELSEWHERE: where})
        used = {**attributes, **known} if ELSEWHERE in known else known  # any code may read an attribute of what is passed on
        name, own = STATES.get(id(value), ("", ""))
        if name and (part.uses is not None or part.attribute in attributes or own in attributes):
            return _unnoticed(name, attributes.get(own) or where)
        if isinstance(value, functools._lru_cache_wrapper) and "cache_info" in used:
            return _differs("cache_info", used["cache_info"])
        if not isinstance(value, types.ModuleType):
            continue
        names = [*vars(sys).keys() - CONSTANTS_OF_SYS] if value is sys else [name for module, names in UNSEEN if value is module for name in names]
        if name := min((name for name in names if name in used), default=""):
            return _unnoticed(f"{value.__name__}.{name}", used[name])
        for stream in ("stdout", "stderr") if value is sys else ():
            if stream in used and (name := min(uses.get(stream, {}).keys() - WRITING, default="")):
                return _unnoticed(f"sys.{stream}.{name}", uses[stream][name])
        if is_library(value.__name__):  # of others the attributes have been reached
            for name, place in known.items():
                x = vars(value).get(name)
                if isinstance(x, SOURCES) and (id(x), name) not in seen:
                    seen.add((id(x), name))
                    stack.append((Part(name, x, attribute=name), place))
    return ""


def _differs(name: str, place: str) -> str:
    return f"{name}() is read{place}, and what it returns may differ from call to call. Pass the value as an argument"


def _unnoticed(name: str, place: str) -> str:
    return f"{name} is read{place}, and changes of the interpreter's state cannot be noticed. Pass what is read there as an argument"


def calls_outside(objects: dict[int, Any], names: Container[str]) -> bool:
    """Whether a function may read the world outside: by the modules, functions and names that its code has."""
    return any(name in names for name in NAMES) or any(
        id(x) in OUTSIDE or x in (datetime.datetime, datetime.date) if isinstance(x, (types.BuiltinFunctionType, type)) else
        isinstance(x, (types.ModuleType, types.FunctionType)) and (x.__name__ if isinstance(x, types.ModuleType) else x.__module__) in MODULES
        for x in list(objects.values()))


def tells(objects: dict[int, Any], names: Container[str]) -> bool:
    """Whether a function may log or warn, by the names and objects that its code has."""
    return "warn" in names or "warn_explicit" in names or any(
        [isinstance(x, logging.Logger) or x is logging or isinstance(x, types.FunctionType) and x.__module__ == "logging"
         for x in list(objects.values())])


def library_states(objects: dict[int, Any], names: Container[str]) -> Iterator[tuple[State, Any, str]]:
    """The states of the random numbers that modules share, if a function may draw such numbers."""
    modules = [x.__name__.partition(".")[0] for x in objects.values() if isinstance(x, types.ModuleType)]
    found = {"random": (random._inst, "random" in modules), "numpy.random": (np.random.mtrand._rand, "random" in names and "numpy" in modules
                                                                             or "rvs" in names)}
    for name, (source, drawn) in found.items():
        if drawn and (state := state_of(source)) is not None:
            yield state, state.read(), name


def _decimal_context() -> tuple[Any, ...]:
    context = decimal.getcontext()
    return context.prec, context.rounding, context.Emin, context.Emax, tuple([flag.__name__ for flag, on in context.traps.items() if on])


def _state_of_logger(x: logging.Logger) -> tuple[Any, ...]:
    return x.getEffectiveLevel(), x.level, x.disabled, x.propagate, x.manager.disable, tuple(map(id, x.handlers)), tuple(map(id, x.filters))


def _global_hooks(space: dict[str, Any], names: Sequence[str]) -> tuple[int, ...]:
    return tuple([id(hook) for name in names if (hooks := space[name]) for hook in hooks.values()])


def settings_of_libraries(objects: dict[int, Any], names: Container[str]) -> Iterator[tuple[Callable[[], Any], str]]:
    """Settings on which results depend, if a function may read them: how each is read, and its name."""
    if "Decimal" in names or any([isinstance(x, decimal.Decimal) or x is decimal or x is decimal.Decimal for x in list(objects.values())]):
        yield _decimal_context, "the context of decimal"
    if "argv" in names:
        yield lambda: tuple(sys.argv), "sys.argv"
    if "geterr" in names:
        yield lambda: tuple(np.geterr().items()), "numpy.geterr()"
    if "isinstance" in names or "issubclass" in names:
        yield abc.get_cache_token, "an abstract class, by register(),"
    if "initial_seed" in names:
        yield default_generator.initial_seed, "symgrad.initial_seed()"
    modules = sys.modules.get("symgrad.nn.modules.module")
    for x in list(objects.values()):
        if isinstance(x, np.ndarray) and "writeable" in names:
            yield functools.partial(operator.attrgetter("flags.writeable"), x), "the flags of an array"
        elif isinstance(x, logging.Logger):
            yield functools.partial(_state_of_logger, x), f"the logger {x.name}"
        elif isinstance(x, Generator) and "initial_seed" in names:
            yield x.initial_seed, "the seed of a generator"
        elif modules is not None and isinstance(x, modules.Module):
            names_of_hooks = [name for name in vars(modules) if name.startswith("_global_")]
            yield functools.partial(_global_hooks, vars(modules), names_of_hooks), "a global hook of modules"
            modules = None


def parts_of_libraries(objects: dict[int, Any], names: Container[str]) -> Iterator[tuple[str, Any]]:
    """Variables of libraries on which results depend, if a function may read them, each with its name."""
    for x in list(objects.values()):
        if isinstance(x, types.ModuleType):
            if x is os and ("environ" in names or "getenv" in names):
                yield "os.environ", os.environ
            elif x.__name__ == "mpmath":
                yield "mpmath.mp.prec", x.mp._prec_rounding
        elif "fields" in names and isinstance(x, type) and dataclasses.is_dataclass(x):
            yield from ((f"the field {field.name}", field) for field in dataclasses.fields(x))


@contextlib.contextmanager
def looking(error: type[Exception], effect: type[Exception] | None) -> Iterator[list[str]]:
    """Refuse calls of clocks and the like in a `with` block, before they happen.

    Before a warning or an entry of a log, raise the `effect`; None notes it in the list.
    """
    before = sys.getprofile()
    noted: list[str] = []
    refused: list[Exception] = []

    def look(frame: types.FrameType, event: Any, called: Any) -> None:
        tells = ("the function warns" if event == "c_call" and id(called) in WARNING and not is_library(frame.f_globals.get("__name__") or "") else
                 "the function logs" if event == "call" and frame.f_code is logging.Logger._log.__code__ else "")
        if tells and effect is None:
            noted.append(tells)
        elif tells:
            refused.append(effect(tells))  # type: ignore[misc]
            raise refused[0]
        if event == "c_call" and (id(called) in OUTSIDE or called.__name__ in OF_DATES and isinstance(called.__self__, type)
                                  and issubclass(called.__self__, datetime.date)):
            place: Any = frame
            while noted and place is not None:
                if place.f_code is logging.Logger._log.__code__:
                    return
                place = place.f_back
            place = frame
            while place.f_back is not None and is_library(module := place.f_globals.get("__name__") or ""):
                if module.startswith("importlib") or module in FOR_MESSAGES:  # an import that happens to come while the function is recorded
                    return
                place = place.f_back
            name = f"{getattr(called, '__module__', None) or getattr(called.__self__, '__name__', '')}.{called.__name__}"
            why = ("a program would not do again what it does. Call it outside of the compiled function" if id(called) in EFFECTS else
                   "what it returns differs from call to call. Pass the value as an argument")
            refused.append(error(f"{name} is called in {place.f_code.co_qualname} (line {place.f_lineno} of {place.f_code.co_filename}), and {why}"))
            raise refused[0]
        if before is not None:
            before(frame, event, called)

    try:
        with restored(functools.partial(sys.setprofile, before), functools.partial(sys.setprofile, look)):
            yield noted
    finally:
        if refused:
            raise refused[0]


# Signs of effects in the code: no proof, but a function that has some runs as ever in its first call, and is recorded in one after it without effects
CONTAINERS = (list, dict, set, collections.deque, bytearray, array.array, np.ndarray)
FILLING = frozenset("""
add append appendleft clear discard extend extendleft fill insert itemset move_to_end partition pop popitem popleft put remove resize reverse rotate
setdefault sort update
""".split())
CHANGING = FILLING | {WRITTEN, FILLED}
TELLING = ("print", "pprint", "stdout", "stderr", "warn", "warn_explicit")
RANDOM = frozenset([*random_tensors.__all__, "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout",
                    "gumbel_softmax", "rrelu", "sample", "rsample", "uniform_", "normal_", "exponential_", "manual_seed"])
LIBRARIES = ("symgrad.nn.modules.", "symgrad.optim.")
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR, "exception": logging.ERROR,
          "critical": logging.CRITICAL}


def signs_of_effects(reached: Sequence[tuple[Part, str]], uses: Mapping[str, Mapping[str, str]], names: Mapping[str, str]) -> bool:
    """Whether the code has signs that a function prints, logs, warns, draws random numbers, or changes what it reaches.

    `reached` are all ways to the values that the function reaches, `uses` the attributes that are read of attributes, `names` those in the code.
    """
    if any(name in names for name in TELLING) or not RANDOM.isdisjoint(names):
        return True
    for part, _ in reached:
        value = part.value
        known: Any = part.uses if part.uses is not None else uses.get(part.attribute, ())
        if isinstance(value, logging.Logger):
            if any([name in known and value.isEnabledFor(level) for name, level in LEVELS.items()]):
                return True
        elif isinstance(value, Tensor):
            if FILLED in known or WRITTEN in known or any(map(is_in_place, known)) or "backward" in names and value.requires_grad:
                return True
        elif isinstance(value, CONTAINERS) and not CHANGING.isdisjoint(known) or WRITTEN in known:
            return True
        elif type(value).__module__.startswith(LIBRARIES) and _has_state(value, known):
            return True
    return False


def _has_state(value: Any, known: Any) -> bool:
    """Whether an object of the library draws or writes when it is called: dropout and batch norms in training, and optimizers."""
    if type(value).__module__.startswith(LIBRARIES[1]):
        return "step" in known
    return getattr(value, "training", False) and ("Dropout" in type(value).__name__ or getattr(value, "track_running_stats", False))
