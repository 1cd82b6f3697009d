"""The results of checks, collected from the reports of the tests: a line for the terminal, and a JSON file."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from symgrad.reports.verdicts import IMPRECISE
from symgrad.testing.plugin.options import PluginOptions

__all__ = ["Tally"]


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
