"""Mutants of the rule tables: a fixed sample, each found by a check. `python -m tests.mutants` runs all of them."""

import json
import re
import zlib
from pathlib import Path

import pytest

from tests.mutants.killing import Killers, differentiable_ops, equivalent
from tests.mutants.rules import mutants_of_rules
from tests.mutants.source import MODULES, mutants_of_source

FIGURES = json.loads((Path(__file__).parents[1] / "support" / "data" / "mutations.json").read_text(encoding="utf-8"))
OPS = ("exp", "mul", "atan2", "abs", "sum", "mm", "softmax", "where", "cumsum")
ONE_IN = 6  # of the rules of these ops
ONE_IN_SOURCE = 223
killers = Killers("dev")


def chosen(name, one_in):
    return zlib.crc32(name.encode()) % one_in == 0


def survivors(mutants):
    return [str(m) for m in mutants if killers.kill(m) is None and not equivalent(m)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("op", [op for op in differentiable_ops() if op.name in OPS], ids=lambda op: op.name)
def test_mutants_of_rules_are_killed(op):
    mutants = [m for m in mutants_of_rules(op) if chosen(str(m), ONE_IN)]
    assert mutants and not survivors(mutants)


@pytest.mark.sweep
def test_mutants_of_source_are_killed():
    """Of all modules together: of the smaller ones a sample may have none."""
    mutants = list(mutants_of_source(MODULES, lambda name: chosen(name, ONE_IN_SOURCE)))
    assert len(mutants) > 10 and not survivors(mutants)


@pytest.mark.sweep
def test_a_rule_that_is_wrong_at_ties_alone_is_not_equivalent():
    """As a formula it is right: two symbols are not equal."""
    (mutant,) = mutants_of_source(("selection",), lambda name: name.endswith("at / xp.sum(at, None, False) -> at"))
    assert not equivalent(mutant) and killers.kill(mutant)


@pytest.mark.sweep
def test_an_op_itself_is_not_killed():
    for op in differentiable_ops():
        if op.name in OPS:
            mutant = next(mutants_of_rules(op))
            assert killers.kill(mutant._replace(wrong=((op, op),))) is None


def test_the_figures_are_those_of_the_guide():
    text = (Path(__file__).parents[2] / "examples" / "guide" / "new_ops.md").read_text(encoding="utf-8")
    found = re.search(r"([\d,]+) of ([\d,]+) mutants of the rule tables are detected \(([\d.]+)%\), ([\d,]+) more\s+are equivalent", text)
    assert found is not None
    killed, survived, same = (sum(map(count, FIGURES.values())) for count in (
        lambda lot: lot["killed"], lambda lot: len(lot["survived"]), lambda lot: lot["equivalent"]))
    assert found.groups() == (f"{killed:,}", f"{killed + survived:,}", f"{100 * killed / (killed + survived):.2f}", f"{same:,}")
    assert 200 * survived <= killed + survived
    lots = {f"rules of {op.name}" for op in differentiable_ops()} | {f"source of {name}" for name in MODULES}
    newer = re.findall(r"(\d+) ops, which are newer, have not been attacked in this way yet", text) or [0]
    assert FIGURES.keys() <= lots and len(lots - FIGURES.keys()) == int(*newer)
