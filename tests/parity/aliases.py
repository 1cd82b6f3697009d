"""Random programs over aliased tensors, run on torch and on symgrad side by side: `python -m tests.parity.aliases --programs 1000 --seed 0`.

After every step the two libraries must agree on every tensor: its values, gradient, version, flags, base, layout, and on what the step raised. The
first difference is printed as a small program in torch's words. Where a program ends, and what is not compared, stands in `aliases`.
"""

from __future__ import annotations

import argparse
import cmath
import functools
import importlib
import itertools
import multiprocessing
import operator
import random
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tests.support.tables import table

from .asked import dtype_name, flat, memory
from .draw import Drawer
from .draw_plainly import Plainly
from .steps import PASSES, Ref, Step, World, say


@dataclass
class Seen:
    """What can be asked of one tensor, as comparable data."""

    facts: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, list[float]] = field(default_factory=dict)


def look(world: World, closely: bool) -> dict[str, Seen]:
    """Everything about the tensors of a world; `closely` includes what makes torch bring a view's history up to date."""
    names: dict[int, list[str]] = {}
    for name, t in world.tensors.items():
        names.setdefault(id(t), []).append(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: _look(name, t, world.offsets[name], names, closely) for name, t in world.tensors.items()}


def _look(name: str, t: Any, first: int, names: dict[int, list[str]], closely: bool) -> Seen:
    shape, base, view, inference = tuple(t.shape), t._base, t._is_view(), t.is_inference()
    floats, empty = t.is_floating_point() or t.is_complex(), 0 in shape
    facts = {
        "shape": shape, "requires_grad": t.requires_grad, "_is_view()": view, "dtype": dtype_name(t), "is_inference()": inference and floats,
        "_version": _asked(lambda: t._version - first) if floats and not inference else None,
        "stride()": None if empty else [s if n > 1 else None for n, s in zip(shape, t.stride())],
        "storage_offset()": None if empty else t.storage_offset(),
        "_base": None if base is None else names.get(id(base), []), "is": names[id(t)], "retains_grad": t.retains_grad,
    }
    numbers = {"values": flat(t)}
    if closely:
        facts["is_leaf"] = _asked(lambda: t.is_leaf)
        facts["grad_fn"] = _asked(lambda: None if t.grad_fn is None else type(t.grad_fn).__name__)
        facts["output_nr"] = _asked(lambda: t.output_nr)
    if closely or not view:
        g = _asked(lambda: t.grad)
        facts["grad"] = g
        if g is not None and not isinstance(g, str):
            facts["grad"], numbers["grad"] = tuple(g.shape), flat(g)
    return Seen(facts, numbers)


def _asked(question: Any) -> Any:
    try:
        return question()
    except RuntimeError as e:
        return "raises INTERNAL ASSERT" if "INTERNAL ASSERT" in str(e) else "raises"


class Difference(AssertionError):
    """Where the libraries part."""


class Wild(Exception):
    """Numbers have left the finite: nothing is learnt from here on."""


DRAWERS: dict[str, Any] = {"guarded": Drawer, "plain": Plainly}
WILD = "numbers have left the finite"


class Pair:
    """One program, run on torch and on another library; `ignored` names what is not compared."""

    def __init__(self, ours: Any, theirs: Any, closely: bool, ignored: frozenset[str] = frozenset()):
        world = World(theirs)
        self.worlds, self.closely, self.ignored = (world, World(ours, world)), closely, ignored
        self.program: list[Step] = []
        self.raised: list[str] = []
        self.over = ""  # why the program ends, if it does
        self.rough = False  # whether numbers of few digits are about

    def run(self, step: Step, compare: bool = True) -> None:
        """Run a step on both; raises Difference."""
        theirs, ours = self.worlds
        self.program.append(step)
        expected, got = theirs.do(step), ours.do(step)
        case = Case(step, expected[1] if expected else "", got[1] if got else "", self.program, theirs.tensors, theirs.reset)
        if expected is not None:
            self.raised.append(expected[0].__name__)
        if self._ends(case, BEFORE_TYPES):
            return
        if (expected is None) != (got is None):
            raise Difference(f"torch {_told(expected)}; symgrad {_told(got)}")
        if expected is not None and got is not None:
            names = [c.__name__ for c in got[0].__mro__]
            if expected[0].__name__ not in names:
                raise Difference(f"torch {_told(expected)}; symgrad {_told(got)}")
        ours.constant(theirs, step)
        if not self._ends(case, AFTER_TYPES) and compare:
            self.compare(self.closely)

    def _ends(self, case: Case, reasons: dict[str, Callable[[Case], bool]]) -> bool:
        self.over = next((reason for reason, holds in reasons.items() if holds(case)), "")
        return bool(self.over)

    def compare(self, closely: bool) -> None:
        theirs, ours = self.worlds
        if list(theirs.tensors) != list(ours.tensors):
            raise Difference(f"names: torch {list(theirs.tensors)}; symgrad {list(ours.tensors)}")
        seen = [(name, a, b) for (name, a), b in zip(look(theirs, closely).items(), look(ours, closely).values())]
        if any(a.facts[what] != b.facts[what] for _, a, b in seen if not a.facts["_is_view()"] for what in ("stride()", "storage_offset()")):
            self.over = "NumPy chooses another order for a result of operands in different layouts"
            return
        self.rough |= any(a.facts["dtype"] == "float32" for _, a, _ in seen)
        twice = any(dict(step.options).get("create_graph") for step in self.program)  # constant derivatives have gradients here, which are zero
        freed = any(step.form in PASSES and not dict(step.options).get("retain_graph") for step in self.program)
        for name, a, b in seen:
            if any("INTERNAL ASSERT" in fact for fact in a.facts.values() if isinstance(fact, str)):
                self.over = "a defect of torch"
                return
            if twice and a.facts.get("grad", "") is None and not any(b.numbers.get("grad", [])):
                b.facts["grad"] = None
            for what in a.facts:
                if a.facts[what] != b.facts[what] and what not in self.ignored and not named_alike(a.facts[what], b.facts[what], freed):
                    raise Difference(f"{name}.{what}: torch {a.facts[what]}; symgrad {b.facts[what]}")
            for what in a.numbers:
                if not all(map(cmath.isfinite, a.numbers[what])):
                    raise Wild
                if not _same(a.numbers[what], b.numbers.get(what), self.rough):
                    raise Difference(f"{name}.{what}: torch {a.numbers[what]}; symgrad {b.numbers.get(what)}")
        told = [[(name, numbers) for name, numbers in world.told if not twice or any(numbers)] for world in self.worlds]
        if [n for n, _ in told[0]] != [n for n, _ in told[1]] or not all(_same(a, b, self.rough) for (_, a), (_, b) in zip(*told)):
            raise Difference(f"hooks: torch {theirs.told}; symgrad {ours.told}")
        theirs.told.clear()
        ours.told.clear()


def _same(a: list[float], b: list[float] | None, rough: bool) -> bool:
    """Whether numbers agree to twelve digits, or to as many as float32 has left."""
    largest = max(map(abs, a), default=0.0) if rough else 0.0
    error = 3e-5 if rough else 1e-12
    return b is not None and len(a) == len(b) and all(x == y or abs(x - y) <= error * max(1.0, largest, abs(x)) for x, y in zip(a, b))


def _told(raised: tuple[type, str] | None) -> str:
    return "runs it" if raised is None else f"raises {raised[0].__name__}: {raised[1].splitlines()[0][:300]}"


def replay(program: Sequence[Step], *how: Any) -> str | None:
    """Run a program on a `Pair(*how)`; the difference it shows, if any. Steps that name tensors which are not there are left out."""
    pair = Pair(*how)
    try:
        for step in program:
            if pair.over:
                return None
            if step.needs() <= pair.worlds[0].tensors.keys() and (step.form != "remove" or step.word in pair.worlds[0].handles):
                pair.run(step)
        if not pair.over:
            pair.compare(True)
    except Difference as e:
        return str(e)
    except Wild:
        pass
    return None


def shrink(program: list[Step], *how: Any) -> tuple[list[Step], str]:
    """A program with a difference from which no step can be left out."""
    told = replay(program, *how)
    assert told is not None, "the difference does not come again"
    for i in range(len(program)):
        plain = [*program[:i], replace(program[i], mode=""), *program[i + 1:]]
        if program[i].mode and (found := replay(plain, *how)) is not None:
            program, told = plain, found
    size = max(1, len(program) // 2)
    while True:
        at = 0
        while at < len(program):
            shorter = program[:at] + program[at + size:]
            found = replay(shorter, *how)
            if found is not None:
                program, told = shorter, found
            else:
                at += size
        if size == 1:
            return program, told
        size = max(1, size // 2)


def one(seed: int, ours: Any, theirs: Any, length: int, without: frozenset[str], ignored: frozenset[str],
        drawing: str = "guarded") -> tuple[Pair, str | None]:
    """One random program and its difference."""
    source = random.Random(seed)
    pair = Pair(ours, theirs, source.random() < 0.5, ignored)
    drawer = DRAWERS[drawing](source, pair.worlds[0], without)
    try:
        while len(pair.program) < length and not pair.over:
            pair.run(drawer.step())
        if not pair.over:
            pair.compare(True)
    except Difference as e:
        return pair, str(e)
    except Wild:
        pair.over = WILD
    return pair, None


class Tally(NamedTuple):
    """What some programs did."""

    programs: list[int]  # the seeds
    forms: Counter[str]
    words: Counter[str]
    raised: Counter[str]
    ends: Counter[str]
    different: list[int]  # the seeds of the programs with a difference


def run(seeds: Sequence[int], options: argparse.Namespace) -> Tally:
    """Run programs in torch's double precision."""
    ours, theirs, without, ignored = _libraries(options)
    tally, default = Tally([], Counter(), Counter(), Counter(), Counter(), []), theirs.get_default_dtype()
    theirs.set_default_dtype(theirs.float64)
    try:
        for seed in seeds:
            pair, told = one(seed, ours, theirs, options.length, without, ignored, options.drawing)
            tally.programs.append(seed)
            tally.forms.update(step.form for step in pair.program)
            tally.words.update(f"{step.form} {step.word}".strip() for step in pair.program)
            tally.raised.update(pair.raised)
            tally.ends[pair.over] += bool(pair.over)
            tally.different.extend([seed] * (told is not None))
    finally:
        theirs.set_default_dtype(default)
    return tally


def _libraries(options: argparse.Namespace) -> tuple[Any, Any, frozenset[str], frozenset[str]]:
    without, ignored = (frozenset(filter(None, names.split(","))) for names in (options.without, options.ignore))
    ignored |= {"grad_fn"} if options.drawing == "plain" else set()  # what torch computes in one step may be several here
    return importlib.import_module(options.ours), importlib.import_module("torch"), without, ignored


def show(seed: int, options: argparse.Namespace) -> None:
    """Print the shortest program with the difference that a seed shows."""
    ours, theirs, without, ignored = _libraries(options)
    default = theirs.get_default_dtype()
    theirs.set_default_dtype(theirs.float64)
    try:
        pair, _ = one(seed, ours, theirs, options.length, without, ignored, options.drawing)
        program, told = shrink(pair.program, ours, theirs, pair.closely, ignored)
    finally:
        theirs.set_default_dtype(default)
    print(f"seed {seed}, looked at {'after every step' if pair.closely else 'quietly'}: {told}")
    print("\n".join(f"    {say(step)}" for step in program), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run so many programs, and print what they did, and the first differences; the number of differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="that of the first program; the others follow")
    parser.add_argument("--length", type=int, default=40, help="the steps of a program")
    parser.add_argument("--processes", type=int, default=1, help="0 for one on each core")
    parser.add_argument("--drawing", choices=DRAWERS, default="guarded", help="steps as both libraries take them, or as a careless program has them")
    parser.add_argument("--ours", default="symgrad", help="the library beside torch; torch itself shows that the machine is deterministic")
    parser.add_argument("--differences", type=int, default=3, help="how many differences to show")
    parser.add_argument("--without", default="", help="kinds of steps or words to leave out, such as set_data,swapaxes,modes,types")
    parser.add_argument("--ignore", default="", help="what not to compare, such as grad_fn,stride()")
    parser.add_argument("--statistics", action="store_true")
    options = parser.parse_args(arguments)
    start, seeds = time.perf_counter(), range(options.seed, options.seed + options.programs)
    if options.processes == 1:
        tallies = [run(seeds, options)]
    else:
        with ProcessPoolExecutor(options.processes or None, multiprocessing.get_context("spawn")) as pool:
            tallies = list(pool.map(run, [seeds[i:i + 100] for i in range(0, len(seeds), 100)], itertools.repeat(options)))
    programs, forms, words, raised, ends, different = (functools.reduce(operator.iadd, found) for found in zip(*tallies))
    for seed in different[:options.differences]:
        show(seed, options)
    print(f"{len(programs)} programs, {forms.total()} steps of {len(words)} words, of which {raised.total()} raised in both libraries, "
          f"{ends.total()} programs ended by a rule, {len(different)} differences, {time.perf_counter() - start:.0f} s")
    print(", ".join(f"{form} {n}" for form, n in forms.most_common()))
    if options.statistics:
        print("\n".join(f"{n:6} programs end: {reason}" for reason, n in ends.most_common() if n))
        print(", ".join(f"{word} {n}" for word, n in words.most_common()))
        print("\n".join(f"{n:6} {message[:150]}" for message, n in raised.most_common()))
    return len(different)


if __name__ == "__main__":
    raise SystemExit(bool(main()))


CONSTANT = ("argsort", "argmax", "argmin", "gt", "le", "eq", "ne", "all", "any", "count_nonzero")
PLACING = ("masked_fill_", "index_fill_", "scatter_", "masked_scatter_", "index_put_", "index_copy_", "index_add_", "scatter_add_", "fill_",
           "scatter_reduce_")
OUTSIDE = re.compile(r"out of DATA bounds|out of range in self|out of bounds")
# What a pass refuses before it begins.
EARLY = re.compile(r"does not require grad|implicitly created|Mismatch in shape|Mismatch in dtype|One of the differentiated Tensors|"
                   r"requires_grad=False|materialize_grads|allow_unused|inputs. argument|can't be empty|appears to not have been used|no grad_fn|"
                   r"For complex Tensors")


class Case(NamedTuple):
    """A step, what torch and symgrad raised ("" for nothing), the program so far, and torch's tensors."""

    step: Step
    theirs: str
    ours: str
    program: Sequence[Step]
    tensors: dict[str, Any]
    reset: bool = False  # whether a tensor that a graph may have saved has got other data, unseen by its version

    def reads_itself(self) -> bool:
        """Whether an operand shares the memory of the tensor that is written."""
        written, *others = (memory(self.tensors[name]) if self.tensors[name].numel() else name for name in self.step.needs())
        return written in others or sum(isinstance(a, Ref) and a.name in self.step.needs() for a in self.step.args) > len(self.step.needs())

    def repeats(self) -> bool:
        """Whether the tensor that is written has an element more than once."""
        t = self.tensors[self.step.args[0].name]
        return any(n > 1 and not stride for n, stride in zip(t.shape, t.stride()))

    def one_memory(self) -> bool:
        """Whether the operands are the same elements of the same memory, up to dimensions of size 1."""
        ts = [self.tensors[name] for name in self.step.needs()]
        return len(ts) > 1 and len({(t.data_ptr(), tuple((n, s) for n, s in zip(t.shape, t.stride()) if n > 1)) for t in ts}) == 1


def _raises_alone(case: Case, words: str) -> bool:
    return bool(case.theirs) and not case.ours and bool(re.search(words, case.theirs))


BEFORE_TYPES = table(globals(), "BEFORE_TYPES")
AFTER_TYPES = table(globals(), "AFTER_TYPES")


def named_alike(a: Any, b: Any, freed: bool) -> bool:
    """Whether two nodes, or refusals that name one, are the same but for that name: of a conversion in place of the operation, or of a view."""
    if b in ("ToCopyBackward0", "ViewAsRealBackward0", "ViewAsComplexBackward0"):
        return isinstance(a, str)
    if isinstance(a, str) and isinstance(b, str) and re.sub(r"\d$", "", a) == re.sub(r"\d$", "", b):
        return freed  # the number at the end follows from arguments
    return False
