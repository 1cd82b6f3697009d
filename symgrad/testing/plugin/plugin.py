"""The pytest plugin: ops that are marked, or named on the command line, get one test for each check.

`pytest_symgrad`, which pytest loads, imports this module with the first op or option.
"""

from __future__ import annotations

from typing import Any

import pytest

from symgrad.testing.checks import CHECKS
from symgrad.testing.plugin.items import OpItem, OpUnderTest, items_of
from symgrad.testing.plugin.options import is_id, options_of, targets_of
from symgrad.testing.plugin.reports import Tally

__all__ = ["Plugin", "list_checks"]

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
