"""The entry point of the pytest plugin: its options, and the hook for marked objects. `symgrad` is imported with the first marked op.

This module is installed at the top level, since pytest would import symgrad in every run with a module below `symgrad`.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

MARK = "__symgrad_op__"  # the attribute that `symgrad.testing.op` sets
OP = "symgrad.op"  # a property in the reports of this plugin's tests


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("symgrad", "symgrad: ops, attacked with every check of symgrad.testing")
    group.addoption("--symgrad-ops", action="append", default=[], metavar="MODULE[:NAME]",
                    help="attack the ops of a module, or one op of it; may be given several times, or with commas")
    group.addoption("--symgrad-profile", choices=("dev", "ci", "thorough"), help="how thoroughly (default: the ini option symgrad_profile, or dev)")
    group.addoption("--symgrad-checks", metavar="NAMES", help="run these checks only, such as value,pullback")
    group.addoption("--symgrad-list", action="store_true", help="list the checks and exit")
    group.addoption("--symgrad-orders", type=int, choices=range(4), metavar="N", help="look at derivatives up to this order only: 0, 1, 2 or 3")
    group.addoption("--symgrad-dtypes", metavar="NAMES", help="look at these dtypes only, such as float64,float32")
    group.addoption("--symgrad-ulp", type=positive, metavar="N",
                    help="the error allowed to ops that claim none, in units in the last place times the condition")
    group.addoption("--symgrad-seed", type=int, metavar="N", help="seed of the examples (default 0)")
    group.addoption("--symgrad-accuracy", action="store_true", help="scan the floats of each domain for lost digits, too: one test more for each op")
    group.addoption("--symgrad-report", metavar="FILE", help="write what every check said to a file, as JSON")
    parser.addini("symgrad_profile", "how thoroughly ops are attacked: dev, ci or thorough", default="dev")


def positive(text: str) -> float:
    """A positive number. argparse makes a usage error of ValueError."""
    if not 0 < (number := float(text)) < float("inf"):
        raise ValueError
    return number


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """List the checks, if the option is given."""
    if not config.getoption("symgrad_list"):
        return None
    from symgrad.testing.plugin.plugin import list_checks

    print(list_checks())
    return 0


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and read the options if one is given, so that a mistake is reported before any test runs."""
    config.addinivalue_line("markers", "symgrad: a check of an op, made by symgrad's plugin")
    config.pluginmanager.register(_Listener(config), "symgrad-listener")
    asked = any(value is not None and value is not False and value != [] for name, value in vars(config.option).items()
                if name.startswith("symgrad_"))
    if asked or config.getini("symgrad_profile") != "dev" or any(argument.startswith("symgrad::") for argument in config.args):
        _plugin(config)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> Any:
    """A marked function or class becomes one test for each check."""
    thing = obj.__func__ if isinstance(obj, staticmethod) else obj
    try:
        marked = MARK in thing.__dict__
    except Exception:  # a module may hold anything
        return None
    return _plugin(collector.config).marked(collector, name, thing) if marked else None


def _ignore_non_finite() -> None:
    """Add the filter of warnings that `import symgrad` adds: overflow, and division by zero, give inf or NaN and no warning.

    pytest replaces the filters for the collection and for each test, and neither an ini option nor `-W` precedes those that the user gives.
    """
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"symgrad\.")


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection() -> Any:
    """Apply the filter while test modules are imported."""
    _ignore_non_finite()
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_protocol() -> Any:
    """Apply the filter to a test and its fixtures."""
    _ignore_non_finite()
    return (yield)


class _Listener:
    """Receives the reports of tests, also from other processes while this process has collected no op."""

    def __init__(self, config: pytest.Config):
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Pass on the plugin's reports, and those of crashed processes: these have no properties, and any of their tests may be the plugin's."""
        if any(key == OP for key, _ in report.user_properties):
            _plugin(self.config).add_report(report)
        elif report.failed and report.when not in ("setup", "call", "teardown"):
            plugin = self.config.pluginmanager.get_plugin("symgrad-plugin")
            if plugin is not None:
                plugin.add_report(report)


def _plugin(config: pytest.Config) -> Any:
    found = config.pluginmanager.get_plugin("symgrad-plugin")
    if found is None:
        from symgrad.testing.plugin.plugin import Plugin

        found = Plugin(config)
        config.pluginmanager.register(found, "symgrad-plugin")
    return found
