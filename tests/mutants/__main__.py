"""`python -m tests.mutants` attacks every mutant of the rule tables and prints a table; `--write` keeps the figures of each lot in mutations.json."""

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutants.killing import Killers, differentiable_ops, equivalent
from tests.mutants.rules import mutants_of_rules
from tests.mutants.source import MODULES, mutants_of_source

FIGURES = Path(__file__).parents[1] / "support" / "data" / "mutations.json"
KILLERS = {}  # of this process, so that what is true of an op is computed once


class Lot(NamedTuple):
    """Mutants that are attacked in one process: those of the rules of one op, or of the source of one module, and which of them."""

    op: str | None
    module: str | None
    only: tuple[str, ...] | None
    part: tuple[int, int]
    profile: str
    trusting: bool
    quick: bool

    def __str__(self):
        return f"rules of {self.op}" if self.op else f"source of {self.module}"

    def mutants(self):
        """All of them, or every n-th."""
        k, n = self.part
        for count, mutant in enumerate(self._all()):
            if count % n == k:
                yield mutant

    def _all(self):
        if self.op:
            yield from mutants_of_rules(next(op for op in differentiable_ops() if op.name == self.op))
            return
        for mutant in mutants_of_source((self.module,)):
            kept = tuple((op, wrong) for op, wrong in mutant.wrong if self.only is None or op.name in self.only)
            if kept:
                yield mutant._replace(wrong=kept)


class Tally(NamedTuple):
    """What came of mutants: per kind how many were killed, survived and are equivalent, killed by which checks, and the names of the last two."""

    kinds: dict[str, Counter]
    checks: Counter
    survived: list[str]
    equivalent: list[str]
    accused: list[Any]
    seconds: float

    def take(self, other):
        """Add another one's figures; the time is not among them."""
        for kind, counts in other.kinds.items():
            self.kinds.setdefault(kind, Counter()).update(counts)
        self.checks.update(other.checks)
        for mine, more in zip(self[2:5], other[2:5]):
            mine.extend(more)


def attacked(lot):
    """Attack the mutants of a lot."""
    killers = KILLERS.setdefault((lot.profile, lot.trusting), Killers(lot.profile, honest=not lot.trusting))
    start, accused = time.process_time(), len(killers.accused)
    out = Tally(defaultdict(Counter), Counter(), [], [], [], 0.0)
    for mutant in lot.mutants():
        killed = killers.kill(mutant)
        why = "" if killed or lot.quick else equivalent(mutant)
        out.kinds[mutant.kind]["killed" if killed else "equivalent" if why else "survived"] += 1
        if killed:
            out.checks[killed.check] += 1
        else:
            (out.equivalent if why else out.survived).append(f"{mutant} ({why})" if why else str(mutant))
    return out._replace(kinds=dict(out.kinds), accused=killers.accused[accused:], seconds=time.process_time() - start)


def keep(lot, figures):
    """Replace the figures of a lot in the file."""
    known = json.loads(FIGURES.read_text(encoding="utf-8"))
    FIGURES.write_text(json.dumps({**known, str(lot): figures}, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments=None):
    """Attack, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--profile", default="dev", help="of the attacks: dev, ci or thorough")
    parser.add_argument("--op", action="append", help="only mutants of this op; may be given again")
    parser.add_argument("--module", action="append", choices=MODULES, help="only changes in this module of symgrad/ops; may be given again")
    parser.add_argument("--part", default="0/1", help="k/n: every n-th mutant of each op and of each module, from the k-th on")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--trusting", action="store_true", help="take it that the ops themselves pass, as tests/ops/test_registry.py says")
    parser.add_argument("--quick", action="store_true", help="do not prove survivors to be equivalent")
    parser.add_argument("--missing", action="store_true", help="only the rules of the ops that have no figures yet")
    parser.add_argument("--write", action="store_true", help=f"replace the figures of these lots in {FIGURES.name}; only of whole ones")
    given = parser.parse_args(arguments)
    k, n = map(int, given.part.split("/"))
    if given.write and (n > 1 or given.quick or given.op):
        parser.error("--write takes whole lots: not --part, --quick or --op")
    if given.missing:
        known = json.loads(FIGURES.read_text(encoding="utf-8"))
        given.op, given.module = [op.name for op in differentiable_ops() if f"rules of {op.name}" not in known], []
    rest = (None if given.op is None else tuple(given.op), (k, n), given.profile, given.trusting, given.quick)
    ops = [op.name for op in differentiable_ops() if given.op is None or op.name in given.op]
    modules = MODULES if given.module is None else given.module
    lots = [Lot(None, module, *rest) for module in modules] + [Lot(op, None, *rest) for op in ops if not given.module]
    total = Tally({}, Counter(), [], [], [], 0.0)
    with ProcessPoolExecutor(given.jobs) as pool:
        for lot, found in zip(lots, pool.map(attacked, lots)):
            total.take(found)
            killed = sum(c["killed"] for c in found.kinds.values())
            if given.write:
                keep(lot, {"killed": killed, "survived": sorted(found.survived), "equivalent": len(found.equivalent)})
            print(f"{lot}: {killed} killed in {found.seconds:.0f} s of CPU time", flush=True)
            for verdict, names in (("SURVIVED", found.survived), ("equivalent", found.equivalent)):
                for name in names:
                    print(f"  {verdict}: {name}", flush=True)
    killed = sum(c["killed"] for c in total.kinds.values())
    print(f"\n{'kind':<16}{'mutants':>9}{'killed':>9}{'survived':>10}{'equivalent':>12}")
    for kind, counts in sorted(total.kinds.items()):
        print(f"{kind:<16}{sum(counts.values()):>9}{counts['killed']:>9}{counts['survived']:>10}{counts['equivalent']:>12}")
    print("killed by: " + ", ".join(f"{name} {count}" for name, count in total.checks.most_common()))
    decided = killed + len(total.survived)
    rate = 100 * killed / max(1, decided)
    print(f"{killed} of {decided} killed, {rate:.2f}%; {len(total.equivalent)} more are equivalent")
    for accused in total.accused:
        print("not passed by the op itself:", *accused)
    return bool(total.survived)


if __name__ == "__main__":
    sys.exit(main())
