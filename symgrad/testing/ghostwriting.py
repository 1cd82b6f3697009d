"""Modules and ops by the names on the command line (no text is evaluated), and the test file of an op, written from its source and docstring."""

from __future__ import annotations

import ast
import importlib
import inspect
import keyword
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import sympy

from symgrad.carriers import symbolic
from symgrad.formulas.parsing import ParseError, parse
from symgrad.frameworks.naming import framework_of, parameters_of
from symgrad.graph.domains import Domain
from symgrad.graph.op import Op
from symgrad.methods.extending import BUILT_IN
from symgrad.sampling.domain_reader import NAMED, domain_of, domains_of, parse_domains, text_that_reads
from symgrad.testing.attack import Attack
from symgrad.testing.claims import Claims, claims_of

GRADIENTS = ("{}_gradient", "{}_grad", "gradient_of_{}", "grad_of_{}", "grad_{}", "d{}", "d_{}")
MAX_FORMULA = 100  # characters of a formula found in an op


class Claim(NamedTuple):
    """A line of the file: a claim as Python, and a remark; a claim that is only proposed is commented out."""

    name: str
    value: str
    remark: str
    proposed: bool = False

    def __str__(self) -> str:
        return f"    {'# ' * self.proposed}{self.name}={self.value},  # {self.remark}"


def write(target: str, formula: str | None, domain: str | None, output: str | None, force: bool) -> str:
    """Write the test file of an op; return the text to print: the file itself if no file is named, else what to do next.

    Raises NotThere for an existing file, unless `force` is given, and what `ghostwrite` raises; OSError if it cannot be written.
    """
    path = None if output is None else Path(output)
    if path is not None and path.exists() and not (force and path.is_file()):
        raise TargetError(f"{path} is there already; name another file" + (", or write over it with --force" if path.is_file() else " in it"))
    text = ghostwrite(target, formula, domain, f"test_{target.rpartition(':')[2]}.py" if path is None else str(path))
    if path is None:
        return text.rstrip("\n")
    path.write_text(text, encoding="utf-8")
    return f"{path} is written; run it with: pytest {path}"


def ghostwrite(target: str, formula: str | None = None, domain: str | None = None, file: str = "") -> str:
    """The text of a test file for an op, MODULE:NAME, of symgrad, torch, JAX or NumPy.

    The formula is the one given, that of the op's own rule, or one in its docstring. The names of arguments, the framework and a gradient
    next to the op are found, too. The module is imported. Nothing in it is called,
    except a function of several arguments without a formula: with small arrays, to find shapes that fit each other.

    Raises NotThere, a ValueError, for a module or name that does not exist, and ValueError for a formula or a domain that cannot be read.

    >>> print(ghostwrite("symgrad:tanh").partition("symgrad.testing.op")[2])
    (
        formula="tanh(input)",  # what it should be; this is its own rule, as it is written now
        domain={"input": "real"},  # where: such as "positive", "nonzero", "-1..1" or "(0, 1]"
        special=[(0.0,), (-0.0,), (20.0,), (-20.0,)],  # points with an edge or a kink, as (input,)
    )(symgrad.tanh)
    <BLANKLINE>
    """
    module, name = split_target(target)
    if name is None:
        raise TargetError(f"{target!r} names a module; write {target}:FUNCTION for the op in it")
    here = import_module_named(module, (Path.cwd(),))
    obj = find_op(here, name)
    if isinstance(obj, (Op, tuple)):
        raise TargetError(f"{target} is {'the data of an op' if isinstance(obj, Op) else 'a tuple'}; name the function that people call")
    marked = claims_of(obj)
    if marked is not None and (formula or domain):
        raise TargetError(f"{target} says itself, by symgrad.testing.op, what it claims; change it there, and leave out --formula and --domain")
    new = name if name not in ("symgrad", module.partition(".")[0]) else f"{name}_op"
    if marked is not None:
        body = [f"from {module} import {name}  # noqa: F401  # pytest attacks it: it says itself, by symgrad.testing.op, what it claims"]
    else:
        claims = list(_claims(obj, here, module, name, formula, domain))
        imports = ["import symgrad.testing", *(["", f"import {module}"] if module != "symgrad" else [])]
        marking = [*map(str, claims)]
        if hasattr(obj, "__dict__") and not inspect.isbuiltin(obj):
            body = [*imports, "", f"{new} = symgrad.testing.op(", *marking, f")({module}.{name})"]
        else:  # compiled functions have no attributes
            arguments = ", ".join(_names(obj, formula))
            body = [*imports, "", "", "@symgrad.testing.op(", *marking, ")", f"def {new}({arguments}):", f"    return {module}.{name}({arguments})"]
    return "\n".join([f'"""{module}.{name} under attack: pytest runs every check of symgrad.testing on it, each as a test of its own.', "",
                      f"Written by `symgrad ghostwrite {target}`. Correct what is claimed here, and keep the file. To run it, with a thousand",
                      "examples for each check where it says so (it needs pip install 'symgrad[testing]'):", "",
                      f"    pytest {file or f'test_{name}.py'}",
                      f"    pytest {file or f'test_{name}.py'} --symgrad-profile thorough", '"""', "", *body, ""])


def _claims(obj: Any, here: Any, module: str, name: str, formula: str | None, domain: str | None) -> Iterator[Claim]:
    text, remark = _formula(obj, formula)
    names = _names(obj, text)
    yield Claim("formula", _quoted(text) if text else '"..."', remark, proposed=text is None)
    yield from _domain(obj, names, domain, text)
    framework = framework_of(obj)
    if framework in ("torch", "jax"):
        yield Claim("framework", _quoted(framework), "whose tensors it takes")
    elif framework == "numpy":
        beside = next((g.format(name) for g in GRADIENTS if callable(getattr(here, g.format(name), None))), None)
        yield Claim("gradient", f"{module}.{beside or f'{name}_gradient'}", f"called as gradient({', '.join(names)}): an array for each argument",
                    proposed=beside is None)
    yield from _shapes(obj, names, text, framework)
    own = getattr(obj, "op", None)
    if isinstance(own, Op) and own.docs.examples and own.parameters and _is_literal(own.docs.examples[0]):
        yield Claim("parameters", repr(own.docs.examples[0]), "what it is called with after the tensors")
    special = own.docs.special if isinstance(own, Op) else ()
    remark = f"points with an edge or a kink, as ({', '.join(names)}{',' * (len(names) == 1)})"
    yield Claim("special", repr(list(special)) if special else f"[({', '.join(['1.0'] * len(names))}{',' * (len(names) == 1)})]", remark, not special)


def _shapes(obj: Any, names: Sequence[str], formula: str | None, framework: str | None) -> Iterator[Claim]:
    """The shapes of arguments that must fit each other, found by calls with small arrays; nothing for an op that acts on elements."""
    if len(names) < 2 or formula is not None:
        return
    attack = Attack(obj, Claims(framework=framework))
    if attack.subject.op is not None or attack.elementwise:
        return
    found = attack.fitting_shapes()
    remark = f"an array of each shape for {', '.join(names)}"
    if found is not None:
        yield Claim("shapes", repr(found), f"{remark}; found by calls")
    else:
        yield Claim("shapes", f"({', '.join(['(3, 4)'] * len(names))})", f"{remark}; none of those that were tried fit each other", proposed=True)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _names(obj: Any, formula: str | None) -> list[str]:
    return Attack(obj, Claims(formula=formula)).names


# The formula


def _formula(obj: Any, given: str | None) -> tuple[str | None, str]:
    if given is not None:
        try:
            parse(given)
        except ParseError as error:
            raise ValueError(f"cannot read the formula: {error}") from None
        return given, "what it should be"
    own = getattr(obj, "op", None)
    text = _rule(own, obj) if isinstance(own, Op) else None
    if text is not None and len(text) <= MAX_FORMULA and _is_formula_of(text, None):
        return text, "what it should be; this is its own rule, as it is written now"
    known = {p.name for p in parameters_of(obj) or () if p.default is p.empty and p.kind is not p.VAR_POSITIONAL}
    text = next((t for t in _docstring_formulas(inspect.getdoc(obj) or "") if _is_formula_of(t, known)), None)
    if text is not None:
        return text, "what it should be, from its docstring"
    return None, f"what it should be, of {', '.join(sorted(known)) or 'its arguments'}; without it, derivatives are compared with finite differences"


def _rule(op: Op, obj: Any) -> str | None:
    """The formula of an op made from one, or the forward rule of an elementwise op applied to the names of its arguments."""
    if op.kind != "elementwise" or op.parameters or op.arity is None:
        return None
    symbols = [sympy.Symbol(n, real=True) for n in op.argument_names]
    try:
        formula = obj.expr.xreplace(dict(zip(obj.symbols, symbols))) if hasattr(obj, "expr") else op.forward(symbolic, *symbols)
    except Exception:  # the rule does not take symbols
        return None
    return re.sub(r"\b(Abs|Max|Min)\(", lambda m: {"Abs": "abs(", "Max": "maximum(", "Min": "minimum("}[m[1]], str(formula))


def _is_formula_of(text: str, names: set[str] | None) -> bool:
    """Whether text is a formula of arguments with these names, and more than a single name."""
    try:
        found = parse(text)
    except ParseError:
        return False
    return not text.strip("+-() ").isidentifier() and bool(found.names) and (names is None or set(found.names) == names)


def _docstring_formulas(doc: str) -> Iterator[str]:
    """Candidates for a formula in a docstring: the right side of f(x) = ..., text in backticks, the start of a line, text after words."""
    lines = [line.strip() for line in doc.splitlines() if line.strip()]
    for line in lines:
        _, sign, right = line.replace("`", " ").partition(" = ")
        if sign:
            yield from _prefixes(right)
    yield from (inner.partition(" = ")[2] or inner for inner in re.findall(r"`+([^`]+)`+", doc))
    for line in lines:
        yield from _prefixes(line)
    for line in lines:
        for start in re.finditer(r"[A-Za-z]{2}:? +(?=[\w(])", line):
            yield from _prefixes(line[start.end():])


def _prefixes(line: str) -> Iterator[str]:
    """The prefixes of a line up to each place where words may begin, the longest first."""
    ends = [m.start() for m in re.finditer(r"[.,;:](\s|$)| \(| (for|where|with|of|in|and|if|on|as|by|from|without|computed)\b|\s*$", line)]
    yield from (line[:end].strip() for end in reversed(ends))


# The domain


def _domain(obj: Any, names: Sequence[str], given: str | None, formula: str | None) -> Iterator[Claim]:
    remark = 'where: such as "positive", "nonzero", "-1..1" or "(0, 1]"'
    own = getattr(obj, "op", None)
    if given is not None:
        chosen = parse_domains(given) if "=" in given else {name: given for name in names}
        try:
            domains_of(chosen, names)
        except TypeError as error:
            raise ValueError(str(error)) from None
        words: dict[str, str | None] = {name: chosen.get(name, "real") for name in names}
    elif isinstance(own, Op) and own.domain:
        words = {name: _domain_text(own.domain[min(i, len(own.domain) - 1)]) for i, name in enumerate(names)}
    elif formula is not None and set(parse(formula).names) == set(names):
        words = dict(_finite_domain(formula))
    else:
        words = dict.fromkeys(names, "real")
    if None not in words.values():
        yield Claim("domain", "{" + ", ".join(f'"{name}": {_quoted(words[name] or "")}' for name in names) + "}", remark)


POINTS = (-3.0, -1.5, -1.0, -0.75, -0.25, 0.0, 0.25, 0.75, 1.0, 1.5, 3.0)
GUESSES = ("real", "nonzero", "nonnegative", "positive", "nonpositive", "negative", "-1..1", "(-1, 1)", "(-1, inf)", "[1, inf)", "(1, inf)", "(0, 1)")


def _finite_domain(formula: str) -> Iterator[tuple[str, str]]:
    parsed = parse(formula)

    def finite(values: dict[str, float]) -> bool:
        try:
            with np.errstate(all="ignore"):
                return bool(np.isfinite(np.asarray(parsed(**values))))
        except ParseError:  # a constant part of it is not finite
            return False

    sets = {g: {x for x in POINTS if x in domain_of(g)} for g in GUESSES}
    base = next((p for p in map(lambda x: dict.fromkeys(parsed.names, x), (0.25, 1.5, -0.25, -1.5)) if finite(p)), None)
    for name in parsed.names:
        good = set() if base is None else {x for x in POINTS if finite(base | {name: x})}
        yield name, max((g for g, points in sets.items() if points <= good), key=lambda g: len(sets[g]), default="real")


def _domain_text(domain: Domain) -> str | None:
    return next((word for word, known in NAMED.items() if known == domain), text_that_reads(domain))


class TargetError(ValueError):
    """Raised for a module or an object in it that cannot be used; the message has the remedy."""


def split_target(text: str) -> tuple[str, str | None]:
    """The module and the name of MODULE:NAME; the name is None where there is no colon.

    Raises NotThere for text that is no Python name.

    >>> split_target("package.ops:swish"), split_target("ops")
    (('package.ops', 'swish'), ('ops', None))
    """
    module, colon, name = text.partition(":")
    if module.endswith(".py"):
        dotted = ".".join(part for part in module.removesuffix(".py").split("/") if part.isidentifier())
        raise TargetError(f"{text!r} is a file; name its module as Python imports it, such as {dotted or 'mypackage.ops'}{colon}{name}")
    parts = [*module.split("."), *([name] if colon else [])]
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise TargetError(f"{text!r} is not the name of a module; write MODULE or MODULE:NAME as Python imports it, such as mypackage.ops:swish")
    return module, name if colon else None


def import_module_named(name: str, folders: Iterable[Path]) -> ModuleType:
    """Import a module, which may be in one of some folders. Raises NotThere if it is missing or its import fails."""
    for folder in map(str, folders):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _import_error_text(name, error) from error
        raise TargetError(f"there is no module {error.name!r}; go to the folder it is in, or install it") from None
    except (Exception, SystemExit) as error:
        raise _import_error_text(name, error) from error


def _import_error_text(name: str, error: BaseException) -> TargetError:
    return TargetError(f"importing {name} raised {type(error).__name__}: {error}; python -c 'import {name}' shows where")


def find_op(module: ModuleType, name: str) -> Any:
    """An op in a module: a function, a class, a pair of a function and its gradient. Raises NotThere for anything else."""
    if not hasattr(module, name):
        known = ", ".join(key for key, _ in ops_in(module)) or ", ".join(_functions(module)) or "none"
        raise TargetError(f"{module.__name__} has no {name!r}; in it there are: {known}")
    obj = getattr(module, name)
    if inspect.isclass(obj) and not callable(getattr(obj, "apply", None)):
        raise TargetError(f"{module.__name__}:{name} is a class without apply; name a function, or an instance that can be called")
    if not callable(obj) and not isinstance(obj, Op) and not (isinstance(obj, tuple) and obj and all(map(callable, obj))):
        raise TargetError(f"{module.__name__}:{name} is of type {type(obj).__name__}; name a function, or a class with apply")
    return obj


def _functions(module: ModuleType) -> list[str]:
    return [name for name, obj in vars(module).items()
            if callable(obj) and not name.startswith("_") and getattr(obj, "__module__", None) == module.__name__]


def modules_in(module: ModuleType) -> list[str]:
    """The names of the modules inside a package; [] for any other module."""
    return [f"{module.__name__}.{found.name}" for found in pkgutil.iter_modules(getattr(module, "__path__", ()))]


def ops_in(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The ops of a module with their names: marked objects, and ops declared with symgrad's constructors; imported ones are left out."""
    seen: set[int] = set()
    for name, obj in list(vars(module).items()):
        marked = claims_of(obj) is not None
        own = obj if isinstance(obj, Op) else getattr(obj, "op", None) if callable(obj) else None
        if id(obj) in seen or not marked and not (isinstance(own, Op) and own.name not in BUILT_IN):
            continue
        home = getattr(obj, "__module__", None) if marked else None
        if home is not None and not f"{home}.".startswith(f"{module.__name__}."):
            continue
        seen.add(id(obj))
        yield name, obj
