"""The command line options of the plugin, of which every mistake is a usage error with its remedy; and the results of a run, for a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from symgrad.reports.base import IMPRECISE
from symgrad.testing.checks import CHECKS
from symgrad.testing.checks.base import ACCURACY
from symgrad.testing.claims import DTYPES, PROFILES, Profile
from symgrad.testing.ghostwriting import TargetError, find_op, import_module_named, modules_in, ops_in, split_target


class PluginOptions(NamedTuple):
    """The options of a run."""

    profile: Profile
    checks: tuple[str, ...]
    seed: int
    dtypes: tuple[str, ...] | None
    ulp: float | None
    accuracy: bool
    report: Path | None


class Target(NamedTuple):
    """An op that was named on the command line, and the checks of it that are to run; none means all."""

    module: str
    name: str
    op: Any
    file: Path | None
    only: frozenset[str] = frozenset()


def options_of(config: pytest.Config) -> PluginOptions:
    """The options of a run. Raises UsageError for a profile, check, dtype or file that cannot be used."""
    get = config.getoption
    checks, dtypes, orders, report = (get(f"symgrad_{name}") for name in ("checks", "dtypes", "orders", "report"))
    name, path = get("symgrad_profile") or config.getini("symgrad_profile"), config.invocation_params.dir / (report or "")
    if name not in PROFILES:
        raise pytest.UsageError(f"the ini option symgrad_profile is {name!r}; expected one of {', '.join(PROFILES)}")
    if report is not None and (path.is_dir() or not path.parent.is_dir()):
        raise pytest.UsageError(f"--symgrad-report: {report} cannot be written; name a file in a folder that exists")
    return PluginOptions(PROFILES[name] if orders is None else PROFILES[name]._replace(order=orders),
                         tuple(CHECKS) if checks is None else _names(checks, "check", CHECKS, "--symgrad-checks"), get("symgrad_seed") or 0,
                         None if dtypes is None else _names(dtypes, "dtype", DTYPES, "--symgrad-dtypes"), get("symgrad_ulp"), get("symgrad_accuracy"),
                         None if report is None else path)


def _split_commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _names(text: str, what: str, known: Iterable[str], option: str) -> tuple[str, ...]:
    wanted = _split_commas(text)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        said = f"there is no {what} {unknown[0]!r}" if unknown else f"no {what} is named"
        raise pytest.UsageError(f"{option}: {said}; those are {', '.join(known)}")
    return tuple(name for name in known if name in wanted)


def targets_of(config: pytest.Config) -> list[Target]:
    """The ops named by `--symgrad-ops` and by ids such as symgrad::module::op::check, each once.

    Raises UsageError for modules and names that do not exist, and for modules without ops.
    """
    given = [("--symgrad-ops", part, "") for text in config.getoption("symgrad_ops") for part in _split_commas(text)]
    for text in filter(is_id, config.args):
        parts = text.split("::")[1:]
        if len(parts) > 3:
            raise pytest.UsageError(f"{text} is not the id of a test; those are symgrad::MODULE::NAME::CHECK")
        given.append((text, ":".join(parts[:2]), parts[2] if len(parts) == 3 else ""))
    found: dict[tuple[str, str], Target] = {}
    for said, text, check in given:
        if check and check != ACCURACY:
            _names(check, "check", CHECKS, said)
        try:
            for t in _targets(text, (config.rootpath, config.invocation_params.dir)):
                before = found.get((t.module, t.name))
                only = frozenset([check] if check else []) if before is None else before.only | {check} if before.only and check else frozenset()
                found[t.module, t.name] = t._replace(only=only)
        except TargetError as error:
            raise pytest.UsageError(f"{said}: {error}") from None
    return list(found.values())


def is_id(argument: str) -> bool:
    """Whether an argument of the command line is an id of this plugin, not a file.

    >>> is_id("symgrad::ops::swish"), is_id("symgrad/test_ops.py::swish")
    (True, False)
    """
    return argument.startswith("symgrad::")


def _targets(text: str, folders: tuple[Path, ...]) -> list[Target]:
    name, attribute = split_target(text)
    module = import_module_named(name, folders)
    file = Path(module.__file__) if module.__file__ else None
    if attribute is not None:
        return [Target(name, attribute, find_op(module, attribute), file)]
    ops = [Target(name, key, op, file) for key, op in ops_in(module)]
    inside = [] if ops else modules_in(module)
    if inside:
        raise TargetError(f"{name} is a package without ops of its own; name the modules in it that have some, among "
                       f"{', '.join(inside)}; or name a function: --symgrad-ops {name}:FUNCTION")
    if not ops:
        raise TargetError(f"{name} has no ops; write @symgrad.testing.op(formula=...) above a function in it, or name one: "
                       f"--symgrad-ops {name}:FUNCTION")
    return ops


class Tally:
    """The result of every test of an op, by its id. Only reports are read, so that it does not matter which process ran the test."""

    def __init__(self, options: PluginOptions):
        self.options = options
        self.tests: dict[str, dict[str, Any]] = {}
        self.crashed = False

    def add(self, report: pytest.TestReport) -> None:
        """Collect a report: of a call, of a failed set-up, or of a crashed process."""
        if report.when not in ("setup", "call", "teardown"):
            self.crashed = True
            return
        if report.when != "call" and report.passed:
            return
        said = {str(key).removeprefix("symgrad."): value for key, value in report.user_properties if str(key).startswith("symgrad.")}
        check = said.pop("check", "")
        verdict = "not applicable" if report.skipped else "passed"
        test = {"id": report.nodeid, "check": check, "verdict": verdict, **said, "seconds": round(report.duration, 4)}
        if report.failed:
            test |= {"verdict": IMPRECISE if said.get("verdict") == IMPRECISE else "failed", "report": str(report.longrepr)}
        self.tests[report.nodeid] = test

    def ops(self) -> dict[str, list[dict[str, Any]]]:
        """The tests of each op, by the op's id, both sorted by their ids."""
        out: dict[str, list[dict[str, Any]]] = {}
        for nodeid, test in self.tests.items():
            out.setdefault(nodeid.removesuffix(f"[{test['check']}]").removesuffix(f"::{test['check']}"), []).append(test)
        return out

    def count(self, verdict: str) -> int:
        return sum(test["verdict"] == verdict for test in self.tests.values())

    def line(self) -> str:
        """The summary: how many ops and checks, and how many failed."""
        ops, checks = len(self.ops()), len(self.tests)
        others = "".join(f", {self.count(word)} {word}" for word in (IMPRECISE, "not applicable") if self.count(word))
        return (f"symgrad: {ops} op{'s' * (ops != 1)}, {checks} check{'s' * (checks != 1)}, {self.count('failed')} failed{others} "
                f"(profile {self.options.profile.name}, seed {self.options.seed})")

    def write(self, path: Path, complete: bool) -> None:
        """Write the report as JSON, ops and checks sorted by their ids, atomically; `complete` is false for an interrupted run."""
        order = {name: i for i, name in enumerate(self.options.checks)}
        ops = [{"id": name, "op": tests[0].get("op", name),
                "verdict": next((word for word in ("failed", IMPRECISE) if any(t["verdict"] == word for t in tests)), "passed"),
                "checks": [{k: v for k, v in t.items() if k not in ("op", "profile", "seed")}
                           for t in sorted(tests, key=lambda t: order.get(t["check"], len(order)))]}
               for name, tests in sorted(self.ops().items())]
        data = {"schema": 1, "symgrad": version("symgrad"), "profile": self.options.profile.name, "order": self.options.profile.order,
                "seed": self.options.seed, "complete": complete and not self.crashed, "ops": ops,
                "total": {"ops": len(ops), "checks": len(self.tests), **{v.replace(" ", "_"): self.count(v) for v in VERDICTS}}}
        whole = path.with_name(f"{path.name}.part")
        whole.write_text(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")
        whole.replace(path)


VERDICTS = ("passed", "failed", IMPRECISE, "not applicable")
