"""Random programs over aliased tensors, run on torch and on symgrad side by side: `python -m tests.parity.aliases --steps 20000 --seed 0`.

After every step the two libraries must agree on every tensor: its values, gradient, version, flags, base, layout, and on what the step raised. The
first difference is printed as a small program in torch's words. What a backward pass that fails midway leaves behind is not compared: the program
ends there.
"""

from __future__ import annotations

import argparse
import cmath
import collections
import importlib
import random
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .draw import Drawer
from .modes import SAVING
from .steps import Step, World, look, say

PASSES = ("backward", "grad", "second", "edge")
MIDWAY = re.compile(r"modified by an inplace|second time|detached in-place|moved into the graph|is a view and its base|A view was")
# What a pass refuses before it begins.
EARLY = re.compile(r"does not require grad|implicitly created|Mismatch in shape|Mismatch in dtype|One of the differentiated Tensors|"
                   r"requires_grad=False|materialize_grads|allow_unused|inputs. argument|can't be empty|appears to not have been used|no grad_fn|"
                   r"For complex Tensors")
# Where torch raises and symgrad has an answer, by the table of intended differences.
LAX = re.compile(r"not implemented for|not support(ed)?|expected scalar type|the same dtype|Found dtype|is not differentiable with respect to|derivative for|"
                 r"automatic differentiation for|is currently not supported|last dimension with stride 1|Could this error message be improved|Boolean value of Tensor with more than one|'NoneType' object has")
CONSTANT = {"argsort", "argmax", "argmin", "gt", "le", "eq", "ne", "all", "any", "count_nonzero"}  # which need no history
TURNED = {"t_", "transpose_", "unsqueeze_", "squeeze_", "swapaxes_"}  # after which torch tells another shape of a saved tensor
UNCHECKED = {"masked_fill_", "index_fill_", "scatter_", "masked_scatter_", "index_put_", "index_copy_", "index_add_", "scatter_add_",
             "fill_"}  # writes to expanded memory, which torch deprecates and does not refuse
# Messages that are the same word for word, up to the end of their first sentence; of the others only the type is compared.
PROMISED = re.compile(r"leaf Variable|is a view|A view was|modified by an inplace|second time|detach|retain_grad|register a hook|implicitly created|"
                      r"does not require grad|refer to a single memory|refers to a single memory|doesn't match the broadcast shape|"
                      r"only change requires_grad|moved into the graph|view size is not compatible|Mismatch in shape")


class Difference(AssertionError):
    """Where the libraries part."""


class Wild(Exception):
    """Numbers have left the finite: nothing is learnt from here on."""


class Pair:
    """One program, run on torch and on another library; `ignored` names what is not compared."""

    def __init__(self, ours: Any, theirs: Any, closely: bool, ignored: frozenset[str] = frozenset()):
        self.ignored = ignored
        self.worlds, self.closely, self.program, self.over = (World(theirs), World(ours)), closely, [], False
        self.raised: list[str] = []
        self.rough = False  # whether numbers of few digits are about

    def run(self, step: Step, compare: bool = True) -> None:
        """Run a step on both; raises Difference."""
        theirs, ours = self.worlds
        self.program.append(step)
        expected, got = theirs.do(step), ours.do(step)
        if expected is not None and "INTERNAL ASSERT" in expected[1]:
            self.over = True  # a defect of torch
            return
        if expected is not None:
            self.raised.append(_normal(expected[1]))
        if expected is not None and got is None and "refer to a single memory" in expected[1] and self._the_same(step):
            self.over = True  # one memory under strides that differ where there is one element only, which NumPy does not keep as torch does
            return
        if expected is not None and got is None and (
                LAX.search(expected[1]) or "cannot be saved" in expected[1] and self._mixed(step) or step.word in CONSTANT and "base has been modified" in expected[1]):
            self.over = True
            return
        if expected is None and got is not None and "more than one element of the written-to" in got[1] and step.word in UNCHECKED:
            self.over = True
            return
        if (expected is None) != (got is None):
            raise Difference(f"torch {_told(expected)}; symgrad {_told(got)}")
        if expected is not None and got is not None:
            names = [c.__name__ for c in got[0].__mro__]
            if re.search("not implemented for|not supported for|'NoneType' object", expected[1]):
                self.over = True
                return
            if any(s.word in TURNED for s in self.program):
                expected, got = ((kind, re.sub(r"Tensor \[[^]]*\]", "Tensor", message)) for kind, message in (expected, got))
            alike = "messages" in self.ignored or not PROMISED.search(expected[1]) or _normal(got[1]).startswith(_normal(expected[1]))
            if any(word in expected[1] + got[1] for word in ("of AsStrided", "CopySlices", "modified by an")):  # one node of a view, or of two tensors
                alike |= _unnamed(got[1]) == _unnamed(expected[1])
            if step.form in PASSES and any(s.form == "delete" or s.word == "detach_" for s in self.program):
                alike |= bool(MIDWAY.search(expected[1]) and MIDWAY.search(got[1]))  # torch asks what a tensor became that nobody holds here any more
            alike |= bool(PROMISED.search(expected[1])) and bool(re.search("single memory location|cannot be saved", got[1]))  # both refuse, for two reasons, in another order
            if expected[0].__name__ not in names or not alike:
                raise Difference(f"torch {_told(expected)}; symgrad {_told(got)}")
            if step.form in PASSES and not EARLY.search(expected[1]):
                self.over = True
                return
        ours.constant(theirs, step)
        if expected is not None and ("Inplace update to inference tensor" in expected[1] or any(mode in step.mode for mode in SAVING)):
            self.over = True  # torch, or a hook, has written already
            return
        if compare:
            self.compare(self.closely)

    def _mixed(self, step: Step) -> bool:
        """Whether operands are converted, so that copies of them are saved."""
        return len({self.worlds[0].tensors[name].dtype for name in step.needs()}) > 1

    def _the_same(self, step: Step) -> bool:
        """Whether the operands of a step are the same elements of the same memory, up to dimensions of size 1."""
        names = [a.name for a in step.args if hasattr(a, "name")]
        seen = {(t.data_ptr(), tuple((n, s) for n, s in zip(t.shape, t.stride()) if n > 1)) for t in map(self.worlds[0].tensors.get, names)}
        return len(names) > 1 and len(seen) == 1

    def compare(self, closely: bool) -> None:
        """Look at everything on both sides."""
        theirs, ours = self.worlds
        if list(theirs.tensors) != list(ours.tensors):
            raise Difference(f"names: torch {list(theirs.tensors)}; symgrad {list(ours.tensors)}")
        if any(not t._is_view() and not _laid_out_alike(t, ours.tensors[name]) for name, t in theirs.tensors.items()):
            self.over = True  # a new result of operands in different layouts: NumPy chooses another order than torch, and view() then differs
            return
        self.rough |= any(str(t.dtype) == "torch.float32" for t in theirs.tensors.values())
        for name in theirs.tensors:
            a, b = look(theirs, name, closely), look(ours, name, closely)
            for what in a.facts:
                if a.facts[what] != b.facts[what] and what not in self.ignored and not _named_alike(a.facts[what], b.facts[what]):
                    raise Difference(f"{name}.{what}: torch {a.facts[what]}; symgrad {b.facts[what]}")
            for what in a.numbers:
                if not all(map(cmath.isfinite, a.numbers[what])):
                    raise Wild
                if not _same(a.numbers[what], b.numbers.get(what), self.rough):
                    raise Difference(f"{name}.{what}: torch {a.numbers[what]}; symgrad {b.numbers.get(what)}")
        if [n for n, _ in theirs.told] != [n for n, _ in ours.told] or not all(
                _same(a, b, self.rough) for (_, a), (_, b) in zip(theirs.told, ours.told)):
            raise Difference(f"hooks: torch {theirs.told}; symgrad {ours.told}")
        theirs.told.clear()
        ours.told.clear()


def _laid_out_alike(a: Any, b: Any) -> bool:
    return 0 in a.shape or a.storage_offset() == b.storage_offset() and all(n == 1 or s == t for n, s, t in zip(a.shape, a.stride(), b.stride()))


def _same(a: list[float], b: list[float] | None, rough: bool) -> bool:
    error = (3e-5 if rough else 1e-12) * max(1.0, *map(abs, a), 0.0)
    return b is not None and len(a) == len(b) and all(x == y or abs(x - y) <= error for x, y in zip(a, b))


def _named_alike(a: Any, b: Any) -> bool:
    """Whether two nodes, or refusals that name a node, are the same but for that name: of the conversion in place of the operation, or of a view."""
    return b in ("ToCopyBackward0", "ViewAsRealBackward0", "ViewAsComplexBackward0") and a != b or isinstance(a, str) and isinstance(b, str) and "of AsStrided" in a + b and _unnamed(a) == _unnamed(b)


def _unnamed(message: str) -> str:
    return re.sub(r", which is output \d+ of [\w:]+,", "", _normal(message))


def _normal(message: str) -> str:
    """The first sentence, with a pair of versions told by their distance."""
    message = re.sub(r"is at version (\d+); expected version (\d+)", lambda m: f"is {int(m[1]) - int(m[2])} versions later", message)
    return re.split(r"\.\s|\n|\.$", message)[0].strip()


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


def one(seed: int, ours: Any, theirs: Any, length: int, without: frozenset[str], ignored: frozenset[str]) -> tuple[Pair, str | None]:
    """One random program and its difference."""
    source = random.Random(seed)
    pair = Pair(ours, theirs, source.random() < 0.5, ignored)
    drawer = Drawer(source, pair.worlds[0], without)
    try:
        while len(pair.program) < length and not pair.over:
            pair.run(drawer.step())
        if not pair.over:
            pair.compare(True)
    except Difference as e:
        return pair, str(e)
    except Wild:
        pass
    return pair, None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run programs until so many steps have agreed, or print the first differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=40, help="the steps of a program")
    parser.add_argument("--ours", default="symgrad", help="the library beside torch; torch itself shows that the machine is deterministic")
    parser.add_argument("--differences", type=int, default=1, help="how many kinds of differences to show before giving up")
    parser.add_argument("--without", default="", help="kinds of steps or words to leave out, such as set_data,swapaxes")
    parser.add_argument("--ignore", default="", help="what not to compare, such as grad_fn,stride(),messages")
    parser.add_argument("--statistics", action="store_true")
    options = parser.parse_args(arguments)
    ours, theirs = importlib.import_module(options.ours), importlib.import_module("torch")
    theirs.set_default_dtype(theirs.float64)
    words: collections.Counter[str] = collections.Counter()
    raised: collections.Counter[str] = collections.Counter()
    without, ignored = frozenset(options.without.split(",")), frozenset(options.ignore.split(","))
    kinds: collections.Counter[str] = collections.Counter()
    steps = programs = 0
    start = time.perf_counter()
    while steps < options.steps and len(kinds) < options.differences:
        seed = options.seed * 1_000_003 + programs
        pair, told = one(seed, ours, theirs, options.length, without, ignored)
        programs, steps = programs + 1, steps + len(pair.program)
        words.update(f"{s.form} {s.word}".strip() for s in pair.program)
        raised.update(pair.raised)
        if told is not None:
            kind = re.sub(r"\(.*\)|\[.*\]|-?\d[\d.e-]*", "#", told)
            kinds[kind] += 1
            if kinds[kind] == 1:
                program, told = shrink(pair.program, ours, theirs, pair.closely, ignored)
                print(f"seed {seed}, looked at {'after every step' if pair.closely else 'quietly'}: {told}")
                print("\n".join(f"    {say(step)}" for step in program), flush=True)
    print(f"{steps} steps in {programs} programs, {sum(kinds.values())} difference(s) of {len(kinds)} kind(s), {time.perf_counter() - start:.0f} s")
    if options.statistics:
        print(", ".join(f"{w} {n}" for w, n in words.most_common()))
        print("\n".join(f"{n:6} {m[:150]}" for m, n in raised.most_common()))
    return int(bool(kinds))


if __name__ == "__main__":
    raise SystemExit(main())
