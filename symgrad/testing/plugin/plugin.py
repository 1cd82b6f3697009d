"""The pytest plugin: ops that are marked, or named on the command line, get one test for each check.

`pytest_symgrad`, which pytest loads, imports this module with the first op or option.
"""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from symgrad.engine.traced import traced
from symgrad.frameworks.adapter import NotApplicable
from symgrad.graph.op import REGISTRY, Op
from symgrad.reports.base import plain
from symgrad.scanning import accuracy
from symgrad.testing.attack import Attack
from symgrad.testing.checks import CHECKS, run
from symgrad.testing.checks.base import ACCURACY, check_names
from symgrad.testing.claimed import is_function, special_points
from symgrad.testing.claims import Claims, claims_of, silence
from symgrad.testing.failure import CheckFailure
from symgrad.testing.plugin.options import PluginOptions, Tally, is_id, options_of, targets_of

SECONDS = {"dev": 2.0, "ci": 10.0, "thorough": 60.0}  # for the scan of one op


class OpUnderTest:
    """An op that a process tests: the first check makes its attack, which all checks share."""

    def __init__(self, op: Any, name: str, options: PluginOptions):
        self.op, self.name, self.options = op, name, options
        self._attack: Attack | Exception | None = None
        self._reporter = ""  # the test that reported why there is no attack

    @property
    def claims(self) -> Claims:
        claims = claims_of(self.op) or Claims()
        if self.options.ulp is not None and claims.ulp is None:
            claims = claims.but(ulp=self.options.ulp)
        return claims

    def attack(self, test: str) -> Attack:
        """The attack, for a test. If there is none, the first test raises NoAttack, and the others are skipped with a reference to the first."""
        if self._attack is None:
            try:
                self._attack = self._make_attack()
            except Exception as error:  # a user's module may raise anything
                self._attack = error
        if isinstance(self._attack, Exception):
            self._reporter = self._reporter or test
            if self._reporter != test:
                pytest.skip(f"it cannot be attacked, as {self._reporter} says")
            raise NoAttack(self.name, self._attack)
        return self._attack

    def _make_attack(self) -> Attack:
        attack = Attack(self.op, self.claims, profile=self.options.profile, seed=self.options.seed)
        if self.options.dtypes is not None:
            taken = attack.claims.dtypes or attack.subject.dtypes
            some = tuple(name for name in taken if name in self.options.dtypes)
            attack = Attack(self.op, self.claims.but(dtypes=some), profile=self.options.profile, seed=self.options.seed)
        for part in ("domains", "elementwise", "shapes", "truth"):  # so that wrong claims are reported here
            getattr(attack, part)
        check_names(attack.claims.without, "without", ACCURACY)
        if special_points(attack):
            attack.examples("special")
        return attack

    def place(self) -> tuple[Path | None, int | None]:
        """The file and the line (from 0) of the op, None where there is none."""
        own = self.op if isinstance(self.op, Op) else getattr(self.op, "op", None)
        function = own.forward if isinstance(own, Op) else self.op[0] if isinstance(self.op, tuple) else self.op
        thing = inspect.unwrap(function) if callable(function) else function
        try:
            return Path(inspect.getsourcefile(thing) or ""), inspect.getsourcelines(thing)[1] - 1
        except (TypeError, OSError):
            return None, None


class NoAttack(Exception):
    """Raised for an op that cannot be tested."""

    def __init__(self, name: str, error: Exception):
        said = str(error).removeprefix("check: ").removeprefix("symgrad.testing: ").removeprefix(f"{name}: ")
        kind = "" if isinstance(error, (TypeError, ValueError)) else f"{type(error).__name__}: "
        super().__init__(f"{name}: it cannot be attacked: {kind}{said}")
        self.__cause__ = error


class FailureText:
    """The text that pytest prints for a failure; its first line is in the summary."""

    def __init__(self, text: str):
        self.text = text
        self.reprcrash = SimpleNamespace(message=text.partition("\n")[0])

    def toterminal(self, writer: Any) -> None:
        for line in self.text.splitlines():
            writer.line(line)

    def __str__(self) -> str:
        return self.text


class OpItem(pytest.Item):
    """A test of one op."""

    def __init__(self, *, tested: OpUnderTest, check: str, **rest: Any):
        super().__init__(**rest, nodeid=f"{rest['parent'].nodeid}::{rest['name']}")  # as text, in the form in which pytest reads a location
        self.tested, self.check = tested, check
        self.add_properties(op=tested.name, check=check, profile=tested.options.profile.name, seed=tested.options.seed)
        self.add_marker("symgrad")

    def add_properties(self, **properties: Any) -> None:
        """Add properties of the test, which all kinds of reports contain; None and "" are left out."""
        for key, value in properties.items():
            if value not in (None, ""):
                self.user_properties.append((f"symgrad.{key}", value))

    def command(self) -> str:
        words = [self.nodeid]
        for name in ("profile", "orders", "dtypes", "ulp", "seed"):
            given = self.config.getoption(f"symgrad_{name}")
            words += [] if given is None else [f"--symgrad-{name}", str(given)]
        if self.check == ACCURACY and not is_id(self.nodeid):
            words.append("--symgrad-accuracy")
        return shlex.join(["pytest", *words])

    def reportinfo(self) -> tuple[Path, int | None, str]:
        file, line = self.tested.place()
        return file or self.path, line, f"{self.tested.name}[{self.check}]"

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """The report of the check; a traceback only for an error of symgrad itself."""
        error = excinfo.value
        if isinstance(error, (CheckFailure, NoAttack, DigitsLost)):
            return FailureText(str(error))
        return super().repr_failure(excinfo, style)


class CheckItem(OpItem):
    """One check of one op."""

    def runtest(self) -> None:
        """Run the check. Raises CheckFailure, and pytest's exception for a skipped test if the check does not apply."""
        with silence():  # NumPy warns at the ends of domains, and a user's filter may turn warnings into errors
            result = run(CHECKS[self.check], self.tested.attack(self.nodeid))
        wrong = {} if result.failure is None else {"ulp": plain(result.failure.wrong.ulp), "order": result.failure.wrong.order}
        self.add_properties(verdict=result.verdict, examples=result.examples, reason=result.reason, **wrong)
        if result.failure is not None:
            result.failure.command = self.command()
            raise CheckFailure(result.failure)
        if result.verdict == "not applicable":
            pytest.skip(result.reason)


class DigitsLost(AssertionError):
    """A scan that found a loss of digits; the message is its report."""


class AccuracyItem(OpItem):
    """The scan of one op by `symgrad.accuracy`."""

    def runtest(self) -> None:
        """Run the scan. Raises Lost if digits are lost beyond the condition of the point."""
        attack, options = self.tested.attack(self.nodeid), self.tested.options
        try:
            function, formula = scan_arguments(self.tested.op, attack)
            one = len(set(attack.domains)) == 1
            report = accuracy(function, attack.domains[0] if one else dict(zip(attack.names, attack.domains)), order=min(2, attack.order),
                              formula=formula, seconds=SECONDS[options.profile.name], seed=options.seed, progress=False)
        except (NotApplicable, TypeError, ValueError) as error:
            self.add_properties(verdict="not applicable", reason=str(error))
            pytest.skip(str(error))
        lost = [w for w in report.worst if w.verdict in ("digits are lost", "not finite")]
        worst = max((w.ulp for w in report.worst), default=0.0)
        self.add_properties(verdict="failed" if lost else "passed", examples=report.points, ulp=plain(worst))
        if lost:
            first = max(lost, key=lambda w: w.ulp)
            raise DigitsLost(f"{self.tested.name}: accuracy: {first.where} loses digits at {', '.join(map(repr, first.point))}\n{report}\n"
                       f"to see it again: {self.command()}")
        self.add_report_section("call", "accuracy", str(report))


def scan_arguments(op: Any, attack: Attack) -> tuple[Any, Any]:
    """The function and the formula for `symgrad.accuracy`. Raises NotApplicable if they cannot be scanned."""
    reason = attack.claims.without.get(ACCURACY, "" if attack.elementwise else "the scan is of functions of single numbers")
    if reason:
        raise NotApplicable(reason)
    formula = attack.claims.formula
    if is_function(formula) and next(iter(inspect.signature(formula).parameters)) == "xp":
        formula = functools.partial(formula, traced)
    own = attack.subject.op
    if isinstance(own, Op) and REGISTRY.get(own.name) is own and not attack.claims.parameters:
        return own.name, formula
    if attack.subject.framework == "symgrad":
        return with_name(lambda *xs: attack.subject.call(xs), attack), formula
    if attack.claims.parameters or attack.claims.output is not None:
        raise NotApplicable("the scan takes functions of tensors alone")
    function = attack.subject.function
    return (function, attack.claims.gradient) if attack.claims.gradient else function, formula


def with_name(function: Any, attack: Attack) -> Any:
    """A function with the name and the arguments of the op."""
    function.__name__ = attack.name
    function.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in attack.names])
    return function


def items_of(parent: pytest.Collector, tested: OpUnderTest, form: str, only: frozenset[str] = frozenset()) -> Iterator[pytest.Item]:
    """The tests of an op, all or `only` some, named by `form`, such as "swish[{}]"."""
    for check in tested.options.checks:
        if check in only or not only:
            yield CheckItem.from_parent(parent, name=form.format(check), tested=tested, check=check)
    if ACCURACY in only or not only and tested.options.accuracy:
        yield AccuracyItem.from_parent(parent, name=form.format(ACCURACY), tested=tested, check=ACCURACY)


DONE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


def list_checks() -> str:
    """The checks with the first line of their docstrings, one a line."""
    width = max(map(len, CHECKS))
    return "\n".join(f"{name:{width}}  {(check.function.__doc__ or '').strip().partition(chr(10))[0]}".rstrip() for name, check in CHECKS.items())


class Plugin:
    """One run of pytest: its options, the ops named on the command line, and the results of the checks.

    Raises UsageError for options that cannot be used.
    """

    def __init__(self, config: pytest.Config):
        self.config = config
        self.options = options_of(config)
        self.targets = targets_of(config)
        self.tally = Tally(self.options)
        self.writes = self.options.report is not None and not hasattr(config, "workerinput") and not config.option.collectonly
        if self.options.report is not None and self.writes:  # so that a killed run does not leave the report of another run
            self.options.report.unlink(missing_ok=True)

    def marked(self, collector: pytest.Collector, name: str, op: Any) -> list[pytest.Item]:
        """The tests of a marked function or class that was found in a module, or as a static method in a test class."""
        owner = getattr(collector, "obj", None)
        if not isinstance(collector, pytest.Module) and not isinstance(vars(owner).get(name), staticmethod):
            raise collector.CollectError(f"{name} is marked by symgrad.testing.op inside a class; mark functions of a module, or static methods")
        first = next(key for key, value in vars(owner).items() if value is op or getattr(value, "__func__", None) is op)
        if first != name:  # another name of the same op
            return []
        return list(items_of(collector, OpUnderTest(op, name, self.options), f"{name}[{{}}]"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Remove the ids of this plugin's tests from the files that pytest looks for."""
        self.config.args[:] = [argument for argument in self.config.args if not is_id(argument)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the tests of the ops that were named on the command line."""
        if not self.targets:
            return
        root = Group.from_parent(session, name="symgrad", nodeid="symgrad")
        modules: dict[str, Group] = {}
        for target in self.targets:
            if target.module not in modules:
                modules[target.module] = Group.from_parent(root, name=target.module, path=target.file or session.path)
            parent = Group.from_parent(modules[target.module], name=target.name)
            made = list(items_of(parent, OpUnderTest(target.op, target.name, self.options), "{}", target.only))
            for item in made:
                parent.ihook.pytest_itemcollected(item=item)
            parent.ihook.pytest_collectreport(report=pytest.CollectReport(parent.nodeid, "passed", None, [*made]))
            items += made

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        """Report the op's location, not a line of the plugin, for a check that is skipped."""
        report = yield
        if isinstance(item, OpItem) and report.skipped and isinstance(report.longrepr, tuple):
            path, line, _ = item.reportinfo()
            report.longrepr = str(path), (line or 0) + 1, report.longrepr[2]
        return report

    def add_report(self, report: pytest.TestReport) -> None:
        self.tally.add(report)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.options.report is not None and self.writes:
            stopped = exitstatus not in DONE or bool(session.shouldfail or session.shouldstop)
            self.tally.write(self.options.report, not stopped)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.tally.tests:
            terminalreporter.write_line(self.tally.line())
        if self.writes:
            terminalreporter.write_line(f"symgrad: the report is in {self.config.getoption('symgrad_report')}")


class Group(pytest.Collector):
    """A collector of tests of ops named on the command line: one for all, one for each module, one for each op."""

    def collect(self) -> list[pytest.Item]:
        """Nothing: the tests are added by the plugin."""
        return []
