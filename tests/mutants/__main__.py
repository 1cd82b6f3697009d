"""`python -m tests.mutants` attacks every mutant of the rule tables, prints the table, and writes the figures to tests/data/mutations.json."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutants.equivalents import equivalent  # noqa: E402
from mutants.killing import Killers  # noqa: E402
from mutants.mutant import Mutant, differentiable_ops  # noqa: E402
from mutants.rules import mutants_of_rules  # noqa: E402
from mutants.source import MODULES, mutants_of_source  # noqa: E402

FIGURES = Path(__file__).parents[1] / "data" / "mutations.json"


def every(modules: tuple[str, ...], ops: list[str] | None) -> Iterator[Mutant]:
    """All mutants, or those of some modules of `symgrad/ops` and of some ops."""
    for op in differentiable_ops():
        if ops is None or op.name in ops:
            yield from mutants_of_rules(op)
    for mutant in mutants_of_source(modules):
        kept = tuple((op, wrong) for op, wrong in mutant.wrong if ops is None or op.name in ops)
        if kept:
            yield mutant._replace(wrong=kept)


def main(arguments: list[str] | None = None) -> int:
    """Attack, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--profile", default="dev", help="of the attacks: dev, ci or thorough")
    parser.add_argument("--op", action="append", help="only mutants of this op; may be given again")
    parser.add_argument("--module", action="append", choices=MODULES, help="only changes in this module of symgrad/ops; may be given again")
    parser.add_argument("--part", default="0/1", help="k/n: every n-th mutant, from the k-th on")
    parser.add_argument("--trusting", action="store_true", help="take it that the ops themselves pass, as tests/test_registry.py says")
    parser.add_argument("--quick", action="store_true", help="do not prove survivors to be equivalent")
    parser.add_argument("--write", action="store_true", help=f"write the figures to {FIGURES.name}")
    given = parser.parse_args(arguments)
    killers = Killers(given.profile, honest=not given.trusting)
    start = time.process_time()
    kinds: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    by, survivors, same = collections.Counter(), [], []
    part, parts = map(int, given.part.split("/"))
    for k, mutant in enumerate(every(tuple(given.module or MODULES), given.op)):
        if k % parts != part:
            continue
        killed = killers.kill(mutant)
        if killed is not None:
            kinds[mutant.kind]["killed"] += 1
            by[killed.check] += 1
            continue
        why = "" if given.quick else equivalent(mutant)
        kinds[mutant.kind]["equivalent" if why else "survived"] += 1
        (same if why else survivors).append(f"{mutant}" + (f" ({why})" if why else ""))
        print(f"{'equivalent' if why else 'SURVIVED'}: {mutant} {why}", flush=True)
    killed_count = sum(c["killed"] for c in kinds.values())
    print(f"\n{'kind':<16}{'mutants':>9}{'killed':>9}{'survived':>10}{'equivalent':>12}")
    for kind, counts in sorted(kinds.items()):
        print(f"{kind:<16}{sum(counts.values()):>9}{counts['killed']:>9}{counts['survived']:>10}{counts['equivalent']:>12}")
    print("killed by: " + ", ".join(f"{name} {n}" for name, n in by.most_common()))
    rate = 100 * killed_count / max(1, killed_count + len(survivors))
    print(f"{killed_count} of {killed_count + len(survivors)} killed, {rate:.2f}%; {len(same)} more are equivalent; "
          f"{time.process_time() - start:.0f} s of CPU time")
    for accused in killers.accused:
        print("not passed by the op itself:", *accused)
    if given.write:
        figures = {"part": given.part, "killed": killed_count, "survived": sorted(survivors), "equivalent": sorted(same), "rate": round(rate, 2),
                   "kinds": {kind: dict(counts) for kind, counts in sorted(kinds.items())}, "checks": dict(by.most_common())}
        FIGURES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
