"""The command line: `symgrad check FILE[:FUNCTION]`, `symgrad derive "formula"` and `symgrad ghostwrite MODULE:FUNCTION`.

Exit codes: 0 if every derivative is proved, verified or imprecise (named on standard error), 1 if one is refuted, 2 for input that cannot be used,
3 if one is imprecise and --strict was given, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.machinery
import importlib.util
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import symgrad
from symgrad.formulas.parsing import ParseError, parse, parse_values
from symgrad.frameworks.detection import FRAMEWORKS, is_foreign
from symgrad.frameworks.examples import examples_of
from symgrad.reports.base import BaseReport
from symgrad.reports.cross import CrossReport
from symgrad.reports.report import Report
from symgrad.reports.verdicts import IMPRECISE, exit_code
from symgrad.sampling.domain_reader import parse_domains

if TYPE_CHECKING:
    from symgrad.checks.measuring import Tolerances

__all__ = ["main"]

AGREED, BAD_INPUT, INTERRUPTED = 0, 2, 130
MODULE = "symgrad_checked_file"

DESCRIPTION = "Check first and second derivatives against SymPy and against fifty digits."
EPILOG = """examples:
  symgrad check energy.py                      every function in it whose inputs have values
  symgrad check energy.py:pressure --at v=1,t=pi/2
  symgrad check mymodel.py:loss --formula "log(1+exp(-y*x))"   a function of torch, JAX, HIPS autograd or NumPy
  symgrad derive "exp(sin(x))*y" --wrt x,y --order 2 --at x=1,y=2
  symgrad ghostwrite mypackage.ops:swish -o tests/test_swish.py         a test file, for pytest to attack the op

exit code: 0 proved, verified or imprecise, 1 refuted, 2 bad input, 3 imprecise with --strict"""


class BadInput(Exception):
    """Invalid input, with a message for the user."""


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("symgrad", description=DESCRIPTION, epilog=EPILOG, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"symgrad {symgrad.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    checking = commands.add_parser("check", help="check the functions of a Python file", formatter_class=raw, description=(
        "Check the derivatives of functions in a Python file. The file is run. Without FUNCTION, every function is checked whose parameters\n"
        "all have values: from defaults, from @symgrad.example(...), or from --at."))
    checking.add_argument("target", metavar="FILE[:FUNCTION]", help="a Python file, and perhaps one function in it")
    foreign = checking.add_argument_group("functions of other systems, compared with a formula")
    foreign.add_argument("--formula", metavar="TEXT", help='what the function should be, such as "log(1+exp(-y*x))"; parsed, never run as Python')
    foreign.add_argument("--domain", metavar="DOMAINS", help='where to compare, such as "x=positive,y=-1..1,z=(0,1],k={-1,1}"')
    foreign.add_argument("--framework", choices=FRAMEWORKS, help="the framework of the function, if it is not detected")
    foreign.add_argument("--gradient", metavar="NAME", help="a function in the file that gives the gradient")
    foreign.add_argument("--returns", choices=("value", "pair"), help="pair: the function returns (value, gradient)")
    digits = checking.add_argument_group("the digits of floats, compared if one of these is given, and for functions of other systems")
    digits.add_argument("--ulp", type=float, metavar="N", help="units in the last place allowed, times the condition of the point (default 1000)")
    digits.add_argument("--atol", type=float, default=0.0, metavar="X", help="an error that is allowed besides (default 0)")
    digits.add_argument("--rtol", type=float, default=0.0, metavar="X", help="an error relative to the truth that is allowed besides (default 0)")
    digits.add_argument("--range", metavar="LOW,HIGH", help="leave out points with numbers smaller or larger than that, such as 1e-100,1e100")
    deriving = commands.add_parser("derive", help="differentiate a formula and check the result", formatter_class=raw, description=(
        "Differentiate a formula and check the result. A formula is made of numbers, variables, + - * / ** ( ), pi, e, functions such as\n"
        "exp, sin, tanh, and where(a < b, ..., ...). It is parsed, never run as Python."))
    deriving.add_argument("formula", help='such as "exp(sin(x))*y"')
    deriving.add_argument("--latex", action="store_true", help="print the formulas as LaTeX")
    writing = commands.add_parser("ghostwrite", help="write the test file of an op", description="Write the test file of an op, for pytest.")
    writing.add_argument("target", metavar="MODULE:FUNCTION", help="the op, such as mypackage.ops:swish")
    writing.add_argument("--formula", metavar="TEXT", help='what it should be, such as "x/(1+exp(-x))"; parsed, never run as Python')
    writing.add_argument("--domain", metavar="DOMAINS", help='where, such as "positive" or "x=positive,y=-1..1"')
    writing.add_argument("-o", "--output", metavar="FILE", help="write to a file that is not there yet; without it, the text is printed")
    writing.add_argument("--force", action="store_true", help="write over the file")
    for command in (checking, deriving):
        command.add_argument("--at", metavar="VALUES", default="", help="inputs, such as x=1,y=[1,2],z=pi/2")
        command.add_argument("--wrt", metavar="NAMES", help="differentiate by these inputs only, such as x,y")
        command.add_argument("--order", type=int, choices=(1, 2, 3), default=2, help="the highest order of derivatives (default 2)")
        command.add_argument("--points", type=_count, metavar="N", help="random points to compare at (default 20; 100 with a formula)")
        command.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the random points (default 0)")
        command.add_argument("--json", action="store_true", help="print the report as JSON")
        command.add_argument("--strict", action="store_true", help="exit code 3 where digits are lost")
        command.add_argument("--quiet", action="store_true", help="show no progress")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _protected(argument: str) -> str:
    """An argument; one that begins with a minus and is no option, such as the formula -x**2, follows a space, so that it is not read as one."""
    return f" {argument}" if re.match(r"-[^-oh]|-[oh][^\w./]", argument) else argument


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on some arguments (those of the process, by default); return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        options = _parser().parse_args([_protected(a) for a in (sys.argv[1:] if arguments is None else arguments)])
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    try:
        return {"check": _check, "derive": _derive, "ghostwrite": _ghostwrite}[options.command](options)
    except (BadInput, ParseError) as error:
        print(f"symgrad: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("symgrad: interrupted", file=sys.stderr)
        return INTERRUPTED


def _values(options: argparse.Namespace) -> dict[str, Any]:
    try:
        return dict(parse_values(options.at))
    except ParseError as error:
        raise BadInput(f"cannot read --at: {error}") from None


def _tolerances(options: argparse.Namespace) -> Tolerances:
    """How far a float may be off, and where."""
    from symgrad.checks.measuring import Tolerances  # imports SymPy, which takes a third of a second

    try:
        ends = None if options.range is None else tuple(map(float, options.range.split(",")))
    except ValueError:
        raise BadInput(f"cannot read --range: {options.range!r}; write --range 1e-100,1e100") from None
    try:
        return Tolerances(options.ulp, options.atol, options.rtol, ends)  # type: ignore[arg-type]  # which it refuses
    except ValueError as error:
        raise BadInput(str(error).replace("check: ", "--", 1)) from None


def _names(options: argparse.Namespace) -> list[str] | None:
    if options.wrt is None:
        return None
    names = [name.strip() for name in options.wrt.split(",")]
    for name in names:
        if not name.isidentifier():
            raise BadInput(f"cannot read --wrt: {name!r} is not a name; write --wrt x,y")
        if names.count(name) > 1:
            raise BadInput(f"cannot read --wrt: {name} is given twice")
    return names


# symgrad check


def _check(options: argparse.Namespace) -> int:
    path, name = _target(options.target)
    at, wrt, tolerances = _values(options), _names(options), _tolerances(options)
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        module = _loaded(path)
        if name:
            chosen = [(name, _named(module, name, path))]
        else:
            chosen = _matching_function(module, path, options.formula) if options.formula is not None else _candidates(module, path, at)
        reports = [_checked(name, function, at, wrt, path, options, tolerances) for name, function in chosen]
    return _finish(reports, options, {"file": str(path), "reports": [report.to_dict() for report in reports]})


def _target(target: str) -> tuple[Path, str | None]:
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


def _loaded(path: Path) -> ModuleType:
    """The file as a module: it is executed, but not as `__main__`."""
    loader = importlib.machinery.SourceFileLoader(MODULE, str(path))
    spec = importlib.util.spec_from_loader(MODULE, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise BadInput(f"{path} does not run\n{_location(error, path)}") from None
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _location(error: BaseException, path: Path) -> str:
    """The line of the user's file that raised an error, and the error."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        line = (error.text or "").rstrip("\n")
        lead = len(line) - len(line.lstrip())
        column = max((error.offset or 1) - 1 - lead, 0)
        return f"  {error.filename}, line {error.lineno}\n    {line.strip()}\n    {' ' * column}^\n  {type(error).__name__}: {error.msg}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == path.resolve()]
    place = f"  {path}, line {frames[-1].lineno}, in {frames[-1].name}\n    {frames[-1].line}\n" if frames else ""
    what = f"it calls sys.exit({error.code!r})" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
    return f"{place}  {what}"


def _functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The functions that the file defines, in order."""
    return {name: f for name, f in vars(module).items()
            if not name.startswith("_") and inspect.isroutine(f) and getattr(f, "__module__", None) == module.__name__ and not inspect.isclass(f)}


def _named(module: ModuleType, name: str, path: Path) -> Any:
    """A function of the file, or a tuple of a function and its derivatives."""
    found = getattr(module, name, None)
    if found is None:
        known = ", ".join(_functions(module)) or "none"
        raise BadInput(f"{path} has no function {name!r}; its functions are: {known}")
    if not callable(found) and not (isinstance(found, tuple) and found and all(map(callable, found))):
        raise BadInput(f"{name} in {path} is not a function, but of type {type(found).__name__}; a tuple (function, gradient) can be checked, too")
    return found


def _attached_inputs(function: Callable[..., Any]) -> dict[str, Any]:
    """The inputs attached to a function: its defaults, updated with its example."""
    defaults = {p.name: p.default for p in inspect.signature(function).parameters.values() if p.default is not p.empty}
    return defaults | (examples_of(function) or {})


def _parameter_names(function: Callable[..., Any]) -> list[str]:
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _candidates(module: ModuleType, path: Path, at: Mapping[str, Any]) -> list[tuple[str, Callable[..., Any]]]:
    """The functions to check when none is named: those whose parameters all have values, with a real number among them."""
    functions = _functions(module)
    out = []
    for known, f in functions.items():
        names = _parameter_names(f)
        values = {**_attached_inputs(f), **at}
        if names and all(name in values for name in names) and all(name in names for name in at) and (
                examples_of(f) or at or any(_is_real(values[name]) for name in names)):
            out.append((known, f))
    if not out:
        raise BadInput(f"no function in {path} has all its inputs{' with --at ' + ','.join(at) if at else ''}; {_listed(functions)}\n"
                       f"give float defaults, decorate one with @symgrad.example(...), or name it and its inputs: "
                       f"symgrad check {path}:FUNCTION --at x=1,y=[1,2]")
    return out


def _listed(functions: Mapping[str, Callable[..., Any]]) -> str:
    return "the functions are: " + (", ".join(f"{name}{inspect.signature(f)}" for name, f in functions.items()) or "none")


def _matching_function(module: ModuleType, path: Path, formula: str) -> list[tuple[str, Callable[..., Any]]]:
    """The one function whose arguments have the names in a formula."""
    from symgrad.checks.cross_reading import names_of  # imports SymPy, which takes a third of a second

    names = names_of(formula) or ()
    functions = _functions(module)
    out = [(name, f) for name, f in functions.items() if set(names) <= set(inspect.signature(f).parameters)]
    if len(out) != 1:
        raise BadInput(f"{'no function' if not out else 'more than one function'} in {path} has the arguments {', '.join(names)}; "
                       f"{_listed(functions)}\nname it: symgrad check {path}:FUNCTION --formula ...")
    return out


def _is_real(value: Any) -> bool:
    """Whether a default is a float, an array or tensor of floats, or a sequence with one in it."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_real, value))
    return isinstance(value, float) or getattr(getattr(value, "dtype", None), "kind", "") == "f" or (
        isinstance(value, symgrad.Tensor) and value.is_floating_point())


def _checked(name: str, function: Any, at: Mapping[str, Any], wrt: list[str] | None, path: Path, options: argparse.Namespace,
             tolerances: Tolerances) -> Any:
    asked = options.formula, options.domain, options.framework, options.gradient, options.returns
    if any(option is not None for option in asked) or is_foreign(function):
        return _compared(name, function, at, wrt, path, options, tolerances)
    signature = inspect.signature(function)
    values = (examples_of(function) or {}) | dict(at)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    unknown = [key for key in at if key not in signature.parameters and not open_ended]
    if unknown:
        raise BadInput(f"{name}{signature} has no parameter {unknown[0]!r}; --at may give {', '.join(signature.parameters) or 'nothing'}")
    missing = [p.name for p in signature.parameters.values() if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
               and p.name not in values]
    if missing:
        raise BadInput(f"{name}{signature} needs a value for {', '.join(missing)}; give it as --at {','.join(f'{m}=1' for m in missing)}")
    try:
        return _check_named(name, function, values, wrt, options, tolerances=tolerances)
    except KeyboardInterrupt:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ValueError) and str(error).startswith("check: "):
            raise BadInput(str(error).removeprefix("check: ")) from None
        raise BadInput(f"{name} does not run at these inputs\n{_location(error, path)}") from None


def _compared(name: str, function: Any, at: Mapping[str, Any], wrt: list[str] | None, path: Path, options: argparse.Namespace,
              tolerances: Tolerances) -> CrossReport:
    """Check a function of any framework against a formula."""
    from symgrad.checks.cross import cross_check  # imports SymPy, which takes a third of a second

    try:
        domains = None if options.domain is None else parse_domains(options.domain)
    except ValueError as error:
        raise BadInput(f"cannot read --domain: {error}") from None
    if options.gradient and isinstance(function, tuple):
        raise BadInput(f"{name} in {path} comes with its derivatives; leave out --gradient")
    given = (function, _named(sys.modules[MODULE], options.gradient, path)) if options.gradient else function
    try:
        return cross_check(given, (examples_of(function) or {}) | dict(at), name=name, formula=options.formula, order=options.order,
                           domain=domains, framework=options.framework, returns=options.returns, wrt=wrt, points=options.points, seed=options.seed,
                           progress=False if options.quiet else None, **vars(tolerances))
    except ParseError as error:
        raise BadInput(f"cannot read --formula: {error}") from None
    except (TypeError, ValueError, ImportError) as error:
        raise BadInput(str(error).removeprefix("check: ")) from None


def _check_named(name: str, function: Callable[..., Any], values: Mapping[str, Any], wrt: list[str] | None, options: argparse.Namespace,
                 **further: Any) -> Report:
    from symgrad.checks import check_named  # imports SymPy, which takes a third of a second

    return check_named(function, values, order=options.order, wrt=wrt, points=options.points, seed=options.seed,
                       progress=False if options.quiet else None, name=name, **further)


# symgrad derive


def _derive(options: argparse.Namespace) -> int:
    at, wrt = _values(options), _names(options)
    options.formula = options.formula.strip()
    formula = parse(options.formula)
    for name in (*at, *(wrt or ())):
        if name not in formula.names:
            raise BadInput(f"{name} is not a variable of the formula; those are {', '.join(formula.names) or 'none'}")
    if not formula.names:
        raise BadInput("there is no variable to differentiate by; write a formula such as x**2")
    missing = [name for name in formula.names if name not in at]
    values = {name: at.get(name, 1.0) for name in formula.names}
    try:
        report = _check_named(formula.text if len(formula.text) <= 60 else formula.text[:58] + " …", formula, values, wrt, options)
    except ParseError:
        raise
    except (RuntimeError, TypeError, ValueError) as error:
        raise BadInput(f"the formula cannot be computed at these values: {error}") from None
    if missing:
        report.notes.append(f"no value was given for {', '.join(missing)}; 1 was taken")
    if options.latex and not options.json:
        _print(_latex(report))
        return _exit_code([report], options)
    return _finish([report], options, report.to_dict())


def _latex(report: Report) -> str:
    """The value's formula and those of its derivatives, one equation a line."""
    import sympy  # takes a third of a second, and only this output needs it

    symbols = [sympy.Symbol(name) for name in report.names]
    lines = [f"f = {sympy.latex(report.formula)}"] if report.formula is not None else [
        f"{sympy.latex(symbol)} = {sympy.latex(e)}" for symbol, e in report.assignments]
    for index, e in report.formulas.items():
        if tuple(sorted(index)) == index:
            below = " ".join(rf"\partial {sympy.latex(symbols[i])}" for i in index)
            above = r"\partial f" if len(index) == 1 else rf"\partial^{{{len(index)}}} f"
            lines.append(rf"\frac{{{above}}}{{{below}}} = {sympy.latex(e)}")
    return "\n".join([*lines, f"% {report.verdict}: {report.reason}"])


def _ghostwrite(options: argparse.Namespace) -> int:
    from symgrad.testing.ghostwriting import write  # imports SymPy and the checks, which the other commands do not need

    try:
        with contextlib.redirect_stdout(sys.stderr):
            text = write(options.target, options.formula, options.domain, options.output, options.force)
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise BadInput(str(error)) from None
    _print(text)
    return AGREED


# Results


def _finish(reports: Sequence[BaseReport], options: argparse.Namespace, data: dict[str, Any]) -> int:
    """Print the reports, and give the exit code."""
    if options.json:
        _print(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False))
    elif sys.stdout.isatty():
        from rich.console import Console  # only terminals need it

        for report in reports:
            Console().print(report)
    else:
        _print("\n\n".join(map(str, reports)))
    return _exit_code(reports, options)


def _exit_code(reports: Sequence[BaseReport], options: argparse.Namespace) -> int:
    for report in reports:
        if report.verdict == IMPRECISE:
            print(f"symgrad: {report.headline}: digits are lost", file=sys.stderr)
    return exit_code((report.verdict for report in reports), options.strict)


def _print(text: str) -> None:
    """Print to standard output. A reader that has closed the pipe, such as `head`, changes nothing else."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the rest is flushed there when the process ends
