"""`python -m tests.benchmarks` measures and prints the tables.

`--quick` shows in seconds that all can be measured, `--only` takes one group, `--page` writes `examples/guide/benchmarks.md`,
`--section` one section of it, of those that name their own machine.
"""

import argparse
import sys

from tests.benchmarks import compiled, fields, first, hessians, higher, ops, page, products, symbolic, training
from tests.benchmarks.table import Timing, table

INSTALL = "pip install -e '.[parity]'"
GROUPS = {
    "first": first.rows, "ops": ops.rows, "hessians": hessians.rows, "fields": fields.rows, "higher": higher.rows, "taylor": higher.jets,
    "products": products.rows, "compiled": compiled.rows, "compilers": compiled.others, "training": training.rows, "symbolic": symbolic.rows,
    "testing": symbolic.kit}

TABLES = (("first",), ("ops",), ("hessians", "fields", "higher", "taylor", "products"), ("compiled", "compilers"), ("training",),
          ("symbolic", "testing"))  # of the page


def main(arguments=None):
    """Measure, print, and say what is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repetition of everything: figures of no worth, in seconds")
    parser.add_argument("--only", action="append", choices=GROUPS, help="a group of rows; may be given again")
    parser.add_argument("--rounds", type=int, default=25, help="how often the sides take turns")
    parser.add_argument("--page", action="store_true", help=f"write the tables into {page.PAGE.name}")
    parser.add_argument("--every", action="store_true", help="with the group ops, the row of each call, too")
    parser.add_argument("--section", choices=page.SECTIONS, help=f"measure this group alone and write its section of {page.PAGE.name}")
    given = parser.parse_args(arguments)
    if (given.page or given.section) and (given.quick or given.only):
        parser.error("--page and --section need all figures: leave out --quick and --only")
    on = page.machine()
    timing = Timing(1, 0.0) if given.quick else Timing(given.rounds, 0.02)
    chosen = [given.section] if given.section else given.only or list(GROUPS)
    tables = [[row for name in names if name in chosen for row in GROUPS[name](timing)] for names in TABLES]
    for each in filter(None, tables):
        print(table(each), end="\n\n")
    print(f"{on}\nOne thread, float64 but for training; ratios of times taken in turns, medians.")
    if given.every:
        print(table([row for found in ops.every(timing) for _, row in found]))
    if given.page:
        page.PAGE.write_text(page.text(tables, ops.above(timing), on), encoding="utf-8")
    if given.section:
        above = ops.above(timing) if given.section == "ops" else ""
        page.PAGE.write_text(page.section(given.section, tables[TABLES.index((given.section,))], above, on), encoding="utf-8")
    missing = sorted({row.beside for each in tables for row in each if row.beside and row.figure == "not installed"})
    if missing:
        print(f"Not measured: {'; '.join(missing)}. To install what is missing: {INSTALL}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
