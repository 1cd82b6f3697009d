"""The command line: `symgrad check FILE[:FUNCTION]`, `derive "formula"`, `ghostwrite MODULE:FUNCTION`, `ops` and `cache`.

`EPILOG` lists the exit codes. Output that nobody would read, as to a closed pipe, is dropped.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import symgrad
from symgrad.formulas.parsing import ParseError, parse, parse_values
from symgrad.frameworks.calling import examples_of
from symgrad.frameworks.files import (
    MODULE,
    BadInput,
    arguments_checked,
    functions_with_inputs,
    is_internal,
    load_file,
    matching_function,
    named_function,
    running,
    split_target,
)
from symgrad.frameworks.naming import FRAMEWORKS, is_foreign
from symgrad.reports.base import IMPRECISE, BaseReport, exit_code, message_of
from symgrad.reports.process import INTERRUPTED, as_process
from symgrad.reports.report import CrossReport, Report, as_latex
from symgrad.reports.streams import Output, reserved
from symgrad.sampling.domain_reader import parse_domains
from symgrad.system.limits import CHECKED, TooLarge, check_length, within

if TYPE_CHECKING:
    from symgrad.checks.measuring import Tolerances

__all__ = ["main"]

AGREED, BAD_INPUT, INTERNAL, UNWRITTEN = 0, 2, 70, 74  # the last two as in sysexits.h
POINTS, SPECIAL_POINTS = 20, 6  # the points at which a formula is compared by default, and about as many special ones as are added

DESCRIPTION = "Check first and second derivatives against SymPy and against fifty digits."
EPILOG = """examples:
  symgrad check energy.py                      every function in it whose inputs have values
  symgrad check energy.py:pressure --at v=1,t=pi/2
  symgrad check mymodel.py:loss --formula "log(1+exp(-y*x))"   a function of torch, JAX, HIPS autograd or NumPy
  symgrad derive "exp(sin(x))*y" --wrt x,y --order 2 --at x=1,y=2
  symgrad ghostwrite mypackage.ops:swish -o tests/test_swish.py         a test file, for pytest to attack the op

exit code: 0 proved, verified or imprecise, 1 refuted, 2 bad input, 3 imprecise with --strict, 70 an error in symgrad itself,
           74 the output cannot be written, 130 interrupted"""


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
    caching = commands.add_parser("cache", help="show the compiled programs on disk, or remove them", description=(
        "Show the folder of compiled programs, their number and their bytes. SYMGRAD_CACHE_DIR names another folder."))
    caching.add_argument("--clear", action="store_true", help="remove them")
    listing = commands.add_parser("ops", help="list the ops: formulas, derivatives, domains, kinks, digits", description=(
        "List the ops of the library, as a table in Markdown: formula, derivatives, domain, special points, and with --scan the largest errors."))
    listing.add_argument("names", nargs="*", metavar="NAME", help="some ops by name, such as tanh; all without it")
    listing.add_argument("--scan", type=float, default=0.0, metavar="SECONDS", help="measure the errors of each elementwise op for so long")
    listing.add_argument("--kinks", action="store_true", help="list instead what is returned at kinks and ties")
    listing.add_argument("--write", metavar="FILE", help="write a page with the counts and the table")
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


def _escape_leading_minus(argument: str) -> str:
    """The argument, after a space if it begins with a minus but is not an option, such as the formula -x**2."""
    return f" {argument}" if re.match(r"-[^-oh]|-[oh][^\w./]", argument) else argument


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on some arguments and return the exit code. By default it runs on those of the process, which is to end then."""
    return as_process(lambda: _main(sys.argv[1:], True)) if arguments is None else _main(arguments, False)


def _main(arguments: Sequence[str], process: bool) -> int:
    out, err = Output(sys.stdout), Output(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _run(arguments, argparse.Namespace(out=out, err=err, process=process))
        if code == INTERRUPTED and process:
            out.unblock()
        out.flush()
        if out.error is not None and code != INTERRUPTED:
            err.write(f"symgrad: the output cannot be written: {out.error.strerror}\n")
            code = UNWRITTEN
        err.flush()
    return code


def _run(arguments: Sequence[str], options: argparse.Namespace) -> int:
    try:
        try:
            _parser().parse_args([_escape_leading_minus(a) for a in arguments], options)
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else BAD_INPUT
        return {"check": _check, "derive": _derive, "ghostwrite": _ghostwrite, "cache": _cache, "ops": _ops}[options.command](options)
    except (BadInput, ParseError) as error:
        options.err.write(f"symgrad: {error}\n")
        return BAD_INPUT
    except KeyboardInterrupt:
        options.err.write("symgrad: interrupted\n")
        return INTERRUPTED
    except BaseException as error:
        options.err.write(f"{''.join(traceback.format_exception(error))}symgrad: this is an error in symgrad itself; please report it "
                          f"to its developers, with the command, its input and the lines above\n")
        return INTERNAL


def _read_values(options: argparse.Namespace) -> dict[str, Any]:
    try:
        return dict(parse_values(options.at))
    except ParseError as error:
        raise BadInput(f"cannot read --at: {error}") from None


def _check_length(text: str, option: str) -> None:
    try:
        check_length(text, option)
    except TooLarge as error:
        raise BadInput(str(error)) from None


def _read_tolerances(options: argparse.Namespace) -> Tolerances:
    """The tolerances for floats and the range of the inputs."""
    from symgrad.checks.measuring import Tolerances  # imports SymPy, which takes a third of a second

    _check_length(options.range or "", "--range")
    try:
        ends = None if options.range is None else tuple(map(float, options.range.split(",")))
    except ValueError:
        raise BadInput(f"cannot read --range: {options.range!r}; write --range 1e-100,1e100") from None
    try:
        return Tolerances(options.ulp, options.atol, options.rtol, ends)  # type: ignore[arg-type]
    except ValueError as error:
        raise BadInput(str(error).replace("check: ", "--", 1)) from None


def _read_names(options: argparse.Namespace) -> list[str] | None:
    if options.wrt is None:
        return None
    _check_length(options.wrt, "--wrt")
    names = [name.strip() for name in options.wrt.split(",")]
    for name in names:
        if not name.isidentifier():
            raise BadInput(f"cannot read --wrt: {name!r} is not a name; write --wrt x,y")
        if names.count(name) > 1:
            raise BadInput(f"cannot read --wrt: {name} is given twice")
    return names


# symgrad check


def _check(options: argparse.Namespace) -> int:
    try:
        path, name = split_target(options.target)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read the file: {error}") from None
    at, wrt, tolerances = _read_values(options), _read_names(options), _read_tolerances(options)
    with contextlib.ExitStack() as stack:
        stack.enter_context(reserved(options.out, options.process) if options.json else contextlib.redirect_stdout(options.out))
        stack.enter_context(running(str(path), path))
        module = load_file(path)
        if not name and options.formula is not None:
            from symgrad.checks.cross import names_of  # imports SymPy, which takes a third of a second

            chosen = matching_function(module, path, names_of(options.formula) or ())
        elif name:
            chosen = [(name, named_function(module, name, path))]
        else:
            chosen = functions_with_inputs(module, path, at)
        reports = [_check_function(name, function, at, wrt, path, options, tolerances) for name, function in chosen]
        return _print_reports(reports, options, {"file": str(path), "reports": [report.to_dict() for report in reports]})


def _check_function(name: str, function: Any, at: Mapping[str, Any], wrt: list[str] | None, path: Path, options: argparse.Namespace,
             tolerances: Tolerances) -> Any:
    if any(vars(options)[name] is not None for name in ("formula", "domain", "framework", "gradient", "returns")) or is_foreign(function):
        return _compare_with_formula(name, function, at, wrt, path, options, tolerances)
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
    with running(name, path):
        try:
            return _check_named(name, function, values, wrt, options, tolerances=tolerances)
        except ValueError as error:
            if (message := message_of(error)).startswith(f"{type(error).__name__}: check: "):
                raise BadInput(message.partition("check: ")[2]) from None
            raise


def _compare_with_formula(name: str, function: Any, at: Mapping[str, Any], wrt: list[str] | None, path: Path, options: argparse.Namespace,
              tolerances: Tolerances) -> CrossReport:
    """Check a function of any framework against a formula."""
    from symgrad.checks.cross import cross_check  # imports SymPy, which takes a third of a second

    try:
        domains = None if options.domain is None else parse_domains(options.domain)
    except ValueError as error:
        raise BadInput(f"cannot read --domain: {error}") from None
    if options.gradient and isinstance(function, tuple):
        raise BadInput(f"{name} in {path} comes with its derivatives; leave out --gradient")
    given = (function, named_function(sys.modules[MODULE], options.gradient, path)) if options.gradient else function
    with running(name, path), arguments_checked():
        return cross_check(given, (examples_of(function) or {}) | dict(at), name=name, formula=options.formula, order=options.order,
                           domain=domains, framework=options.framework, returns=options.returns, wrt=wrt, points=options.points, seed=options.seed,
                           progress=False if options.quiet else None, **vars(tolerances))


def _check_named(name: str, function: Callable[..., Any], values: Mapping[str, Any], wrt: list[str] | None, options: argparse.Namespace,
                 **further: Any) -> Report:
    from symgrad.checks import check_named  # imports SymPy, which takes a third of a second

    return check_named(function, values, order=options.order, wrt=wrt, points=options.points, seed=options.seed,
                       progress=False if options.quiet else None, name=name, **further)


# symgrad derive


def _derive(options: argparse.Namespace) -> int:
    at, wrt = _read_values(options), _read_names(options)
    options.formula = options.formula.strip()
    formula = parse(options.formula)
    for name in (*at, *(wrt or ())):
        if name not in formula.names:
            raise BadInput(f"{name} is not a variable of the formula; those are {', '.join(formula.names) or 'none'}")
    if not formula.names:
        raise BadInput("there is no variable to differentiate by; write a formula such as x**2")
    missing = [name for name in formula.names if name not in at]
    values = {name: at.get(name, 1.0) for name in formula.names}
    points, elements = min(options.points or POINTS, POINTS) + SPECIAL_POINTS, sum(np.size(value) for value in values.values())
    weight = formula.weight + elements
    try:
        within(weight * points, CHECKED, f"its operations and inputs count as {weight:,.0f}, which at {points} points are {{}}")
    except TooLarge as error:
        raise BadInput(f"the formula is too long: {error}; give fewer --points, or a shorter formula") from None
    try:
        report = _check_named(formula.text if len(formula.text) <= 60 else formula.text[:58] + " …", formula, values, wrt, options)
    except ParseError:
        raise
    except (RuntimeError, TypeError, ValueError, ArithmeticError, MemoryError) as error:
        raise BadInput(f"the formula cannot be computed at these values: {error}") from None
    if missing:
        report.notes.append(f"no value was given for {', '.join(missing)}; 1 was taken")
    if options.latex and not options.json:
        print(as_latex(report), file=options.out)
        return _exit_code([report], options)
    return _print_reports([report], options, report.to_dict())


def _ghostwrite(options: argparse.Namespace) -> int:
    from symgrad.testing.ghostwriting import write  # imports SymPy and the checks, which the other commands do not need

    with reserved(options.out, options.process), running(options.target, Path(options.target.rpartition(":")[0])):
        try:
            text = write(options.target, options.formula and options.formula.strip(), options.domain, options.output, options.force)
        except (ValueError, TypeError, ImportError, OSError) as error:
            if is_internal(error):
                raise
            raise BadInput(message_of(error).partition(": ")[2]) from None
        print(text, file=options.out)
    return AGREED


def _cache(options: argparse.Namespace) -> int:
    from symgrad.program.native import store  # brings the back end that compiles, which the other commands do not need

    try:
        folder = store.chosen_folder()
        files = {} if folder is None else store.sizes(folder)
        count, size = sum(path.suffix == ".so" for path in files), sum(files.values())
        if options.clear and folder is not None:
            store.clear(folder)
    except OSError as error:
        raise BadInput(f"cannot read the cache: {error}") from None
    print(f"{folder}: {count} compiled program{'s' * (count != 1)}, {size:,} bytes{' removed' * options.clear}", file=options.out)
    return AGREED


def _ops(options: argparse.Namespace) -> int:
    from symgrad.reports.streams import progress_bar  # what the other commands do not need, and SymPy
    from symgrad.scanning.catalogue import catalogue, kink_table, page, table

    if options.kinks and (options.write or options.scan):
        raise BadInput("ops: --kinks goes with names alone; --write writes both tables")
    try:
        if options.kinks:
            print(kink_table(options.names), file=options.out)
            return AGREED
        with progress_bar(None if options.scan else False, "ops") as tell:
            entries = catalogue(options.names, options.scan, tell)
        if options.write:
            Path(options.write).write_text(page(entries), encoding="utf-8")
    except (ValueError, OSError) as error:
        raise BadInput(str(error)) from None
    print(f"{options.write} is written: {len(entries)} ops" if options.write else table(entries), file=options.out)
    return AGREED


# Results


def _print_reports(reports: Sequence[BaseReport], options: argparse.Namespace, data: dict[str, Any]) -> int:
    """Print the reports, and return the exit code."""
    if options.json:
        print(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False), file=options.out)
    elif options.out.isatty():
        from rich.console import Console  # only terminals need it

        for report in reports:
            Console(file=options.out).print(report)
    else:
        print("\n\n".join(map(str, reports)), file=options.out)
    return _exit_code(reports, options)


def _exit_code(reports: Sequence[BaseReport], options: argparse.Namespace) -> int:
    for report in reports:
        if report.verdict == IMPRECISE:
            options.err.write(f"symgrad: {report.headline}: digits are lost\n")
    return exit_code((report.verdict for report in reports), options.strict)
