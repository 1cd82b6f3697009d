"""`python -m tests.routes --functions 1000 --seed 0 --processes 2`: random functions by every route, with what was found."""

from __future__ import annotations

import argparse
import gc
import importlib
import itertools
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from .comparing import Difference, Found, examined
from .drawing import Function, draw
from .table import ROUTES, here

BATCH = 5  # functions that a process takes at a time


@dataclass
class Tally:
    """What some functions showed."""

    functions: int = 0
    words: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    different: list[tuple[int, str]] = field(default_factory=list)  # seeds, with what was different

    def enter(self, found: Found) -> None:
        """Add what was found for one function."""
        self.functions += 1
        self.words.update(found.function.words)
        for name in ("compared", "refused", "left", "lost"):
            getattr(self, name).update(getattr(found, name))
        if found.differences:
            self.different.append((found.function.seed, shown(found)))

    def add(self, other: Tally) -> None:
        """Add another tally."""
        self.functions += other.functions
        self.different += other.different
        for name in ("words", "compared", "refused", "left", "lost"):
            getattr(self, name).update(getattr(other, name))


def reduced(function: Function, difference: Difference, tries: int = 80) -> tuple[Function, Difference]:
    """The simplest function found for which the route has a difference of the same kind."""
    routes = [route._replace(share=1.0) for route in ROUTES if route.name == difference.route]
    again = True
    while again and tries > 0:
        again = False
        for simpler in function.simpler():
            tries -= 1
            found = [d for d in examined(simpler, routes).differences if d.kind == difference.kind]
            if found:
                function, difference, again = simpler, found[0], True
                break
            if tries <= 0:
                break
    return function, difference


def shown(found: Found) -> str:
    """The differences of one function, the first of them at the simplest function with it."""
    names = Counter(d.told if d.wrong is None else "wrong" for d in found.differences)
    function, difference = reduced(found.function, found.differences[0])
    routes = ", ".join(d.route for d in found.differences[:40])
    return (f"seed {found.function.seed}, {len(found.differences)} routes ({routes}): {'; '.join(f'{n} {name}' for name, n in names.items())}\n"
            f"  {difference.route}: {difference.told}\n{function}")


def run(seeds: Sequence[int], options: argparse.Namespace) -> Tally:
    """Examine the functions of some seeds."""
    out = Tally()
    gc.collect()
    gc.freeze()
    for seed in seeds:
        found = examined(draw(seed), [r for r in ROUTES if not any(text in r.name for text in options.without)], options.share)
        found.differences = [d for d in found.differences if not any(text in d.told for text in options.ignore)]
        out.enter(found)
    return out


def tallies(seeds: Sequence[int], options: argparse.Namespace) -> Iterator[Tally]:
    """The tallies of batches of seeds."""
    batches = [seeds[i:i + BATCH] for i in range(0, len(seeds), BATCH)]
    if options.processes == 1:
        yield from map(run, batches, itertools.repeat(options))
        return
    with ProcessPoolExecutor(options.processes or None, multiprocessing.get_context("spawn")) as pool:
        own = importlib.import_module("tests.routes.__main__")  # a new process does not find this module under its other name
        yield from pool.map(own.run, batches, itertools.repeat(options))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run so many functions, and print what they showed; the number of functions with a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.routes", description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="that of the first function; the others follow")
    parser.add_argument("--processes", type=int, default=1, help="0 for one on each core")
    parser.add_argument("--share", type=float, default=1.0, help="the share of the routes that is taken for each function")
    parser.add_argument("--without", nargs="*", default=[], help="parts of the names of routes to leave out")
    parser.add_argument("--ignore", nargs="*", default=[], help="parts of the texts of differences to leave out")
    parser.add_argument("--seconds", type=float, default=0.0, help="no further functions after so many seconds")
    parser.add_argument("--refusals", type=int, default=20, help="how many kinds of refusals to print")
    options = parser.parse_args(arguments)
    start, total, seeds = time.perf_counter(), Tally(), range(options.seed, options.seed + options.functions)
    for k, tally in enumerate(tallies(seeds, options)):
        for _, text in tally.different:
            print(text, flush=True)
        total.add(tally)
        if k % 20 == 19:
            print(f"... {total.functions} functions, {total.compared.total()} comparisons, {len(total.different)} functions with differences, "
                  f"{time.perf_counter() - start:.0f} s", flush=True)
        if options.seconds and time.perf_counter() - start > options.seconds:
            break
    report(total, options.refusals, time.perf_counter() - start)
    return len(total.different)


def report(total: Tally, refusals: int, seconds: float) -> None:
    """Print the summary."""
    known = [route.name for route in ROUTES if here(route)]
    print(f"\n{total.functions} functions of {len(total.words)} words, {len(total.compared)} of {len(ROUTES)} routes, "
          f"{total.compared.total()} numbers compared, {total.lost.total()} results that lost digits as the function's own steps do, "
          f"{total.refused.total()} refusals, {len(total.different)} functions with differences, {seconds:.0f} s")
    missing = [name for name in known if name not in total.compared]
    if missing:
        print(f"never compared: {', '.join(missing)}")
    if len(known) < len(ROUTES):
        print(f"not installed: {', '.join(route.name for route in ROUTES if not here(route))}")
    for title, counter in (("refused", _merged(total.refused)), ("not compared", total.left)):
        for what, n in itertools.islice(counter.most_common(), refusals):
            print(f"{n:7} {title}: {what}")


def _merged(refused: Counter[tuple[str, str]]) -> Counter[str]:
    out: Counter[str] = Counter()
    for (_, text), n in refused.items():
        out[text] += n
    return out


if __name__ == "__main__":
    raise SystemExit(bool(main()))
